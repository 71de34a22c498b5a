"""What a program declares and traces goes with the last reference to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn
from tenfold import _native

X = tn.asarray(np.arange(4.0))


def declared() -> tuple[Any, weakref.ref[Any]]:
    class Marked:
        """Something that only the body has."""

    mark = Marked()

    @tn.op
    def shifted(x: tn.Array) -> tn.Array:
        return x + (1.0 if mark else 0.0)

    return shifted, weakref.ref(mark)


def test_declared_op_goes_with_its_last_reference() -> None:
    shifted, mark = declared()
    del shifted
    gc.collect()
    assert mark() is None


def test_declared_op_lives_as_long_as_its_calls() -> None:
    shifted, mark = declared()
    pending = shifted(X)
    del shifted
    gc.collect()
    tn.trim()
    assert mark() is not None
    assert pending.tolist() == [1.0, 2.0, 3.0, 4.0]
    del pending
    gc.collect()
    tn.trim()
    gc.collect()
    assert mark() is None


def remembered_types() -> int:
    return next(each.entries for each in tn.caches.facts() if each.name == "inferred types")


def test_types_of_scans_of_new_bodies_are_not_remembered() -> None:
    def scanned(number: float) -> None:
        step: Callable[..., Any] = lambda s, v: (s + v * number, s)  # noqa: E731  # a lambda
        tn.scan(step, tn.asarray(0.0), X)[0].wait()

    scanned(-1.0)
    before = remembered_types()
    for i in range(10):
        scanned(float(i))
    # One for the call of each body, none for the scan itself, whose parameters hold the body.
    assert remembered_types() <= before + 10


def adding(number: float) -> Any:
    @tn.op
    def shifted(x: tn.Array) -> tn.Array:
        return x + number

    return shifted


def test_types_of_ops_that_are_declared_in_a_loop_are_forgotten() -> None:
    tn.trim()
    before, declared = remembered_types(), _native.declared_ops()
    for i in range(600):
        adding(float(i))(X)
    gc.collect()
    assert remembered_types() <= before + 256
    assert _native.declared_ops() <= declared + 256
    tn.trim()
    gc.collect()
    assert _native.declared_ops() <= declared


def test_op_that_was_forgotten_is_inferred_anew() -> None:
    first = adding(1.0)
    assert first(X).tolist() == [1.0, 2.0, 3.0, 4.0]
    for i in range(300):
        adding(float(i))(X)
    assert first(X).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert first(X[:2]).tolist() == [1.0, 2.0]


def test_functions_of_a_loop_leave_no_record_and_no_plan() -> None:
    def called(number: float) -> None:
        x = tn.function(lambda x: x * number + 1)(X)
        tn.eval(*[x, x * 2])

    def entries() -> int:
        gc.collect()
        names = ("executables", "inferred types")
        return sum(each.entries for each in tn.caches.facts() if each.name in names)

    called(1.0)
    before, declared = entries(), _native.declared_ops()
    for i in range(520):
        called(float(i) + 0.3)
    assert entries() <= before + 2 * 256
    assert _native.declared_ops() <= declared + 256
    tn.trim()
    gc.collect()
    assert _native.declared_ops() <= declared


def test_a_plan_is_not_found_for_an_op_in_the_place_of_another() -> None:
    """Numbers of ops do not come twice, though their records take the same memory again."""
    with tn.options(tier=0):
        for i in range(16):
            shifted = adding(float(i))
            for length in (3, 5):
                found = (shifted(tn.ones(length)) * 2).tolist()
                assert found == [2.0 * (1 + i)] * length
            del shifted
            tn.trim() if i % 8 == 7 else None
            gc.collect()
