"""What a program declares and traces goes with the last reference to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

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
        step: Callable[..., Any] = lambda s, v: (s + v * number, s)  # noqa: E731
        tn.scan(step, tn.asarray(0.0), X)[0].wait()

    scanned(-1.0)
    before = remembered_types()
    for i in range(10):
        scanned(float(i))
    # One for the call of each body, none for the scan itself, whose parameters hold the body.
    assert remembered_types() <= before + 10
