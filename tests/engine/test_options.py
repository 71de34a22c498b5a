"""Options are captured at the push: an operator runs with those of its pusher, on any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import settings

NEGATIVE = np.array([4.0, -1.0, 9.0])


@pytest.fixture(params=[1, 2])
def engine(request: pytest.FixtureRequest) -> Iterator[tn.Engine]:
    with tn.Engine(threads=request.param) as engine:
        yield engine


@contextmanager
def for_the_process(name: str, value: Any) -> Iterator[None]:
    before = settings.get(name)
    tn.set_options(**{name: value})
    try:
        yield
    finally:
        tn.set_options(**{name: before})


def is_mixed(handle: tn.Handle) -> bool:
    """Whether a handle has the error of dtypes that were not to be mixed."""
    error = handle.exception()
    return isinstance(error, tn.errors.DTypeError) and "strict_dtypes" in str(error)


def has_nan(handle: tn.Handle) -> bool:
    """Whether a handle has the error of a NaN that was made."""
    error = handle.exception()
    return isinstance(error, tn.errors.RunError) and "NaN" in str(error)


MIXED = (np.ones(3), np.ones(3, dtype="float32"))


@pytest.mark.parametrize("name", ["add", "matmul", "concat"])
def test_strict_dtypes_hold_for_what_was_pushed_under_them(engine: tn.Engine, name: str) -> None:
    operator = getattr(tn.operators, name)
    inputs: tuple[Any, ...] = ([*map(tn.asarray, MIXED)],) if name == "concat" else MIXED
    with engine.hold():
        before = [engine.push(operator, *inputs) for _ in range(3)]
        with tn.options(strict_dtypes=True):
            strict = [engine.push(operator, *inputs) for _ in range(3)]
        after = [engine.push(operator, *inputs) for _ in range(3)]
    assert all(is_mixed(handle) for handle in strict)
    assert all(handle.exception() is None for handle in (*before, *after))


@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_nans_are_checked_where_they_were_to_be(engine: tn.Engine, name: str) -> None:
    operator = getattr(tn.operators, name)
    with engine.hold():
        usual = [engine.push(operator, NEGATIVE) for _ in range(3)]
        with tn.options(check_nans=True):
            good = engine.push(operator, np.ones(3))
            checked = [engine.push(operator, NEGATIVE) for _ in range(3)]
    assert all(has_nan(handle) for handle in checked)
    assert good.exception() is None
    assert all(np.isnan(np.asarray(handle.get())[1]) for handle in usual)


def test_nans_are_checked_for_the_whole_process(engine: tn.Engine) -> None:
    with for_the_process("check_nans", True):
        handle = engine.push(tn.operators.sqrt, NEGATIVE)
        assert has_nan(handle)
    assert engine.push(tn.operators.sqrt, NEGATIVE).exception() is None


def test_options_of_the_process_are_those_of_the_push(engine: tn.Engine) -> None:
    with for_the_process("check_nans", True), engine.hold():
        checked = [engine.push(tn.operators.sqrt, NEGATIVE), engine.push(Root(), NEGATIVE)]
        tn.set_options(check_nans=False)
        usual = [engine.push(tn.operators.sqrt, NEGATIVE), engine.push(Root(), NEGATIVE)]
        tn.set_options(check_nans=True)
    assert all(has_nan(handle) for handle in checked)
    assert not any(has_nan(handle) for handle in usual)


def test_checked_nan_names_the_operator_and_the_line_of_its_push(engine: tn.Engine) -> None:
    with tn.options(check_nans=True):
        handle = engine.push(tn.operators.sqrt, NEGATIVE)
    text = str(handle.exception())
    assert "sqrt" in text
    assert "test_options.py" in text


class Root(tn.Operator):
    pure = True

    def run(self, x: tn.Array) -> tn.Array:
        return tn.sqrt(x)


class Roots(tn.BatchedOperator):
    pure = True
    batches: list[int]

    def signature(self, x: tn.Array) -> object:
        return bool(settings.get("strict_dtypes"))

    def run_batch(self, members: Any) -> list[tn.Array]:
        self.batches.append(len(members))
        return [tn.sqrt(x) for (x,) in members]


class AddRoot(tn.CumulativeOperator):
    def run(self, x: tn.Array) -> tn.Array:
        return tn.sqrt(x)


class AddRootTo(tn.InPlaceOperator):
    def run(self, target: tn.Array, x: tn.Array) -> tn.Array:
        return target + tn.sqrt(x)


def test_operators_of_users_run_under_the_options_of_their_push(engine: tn.Engine) -> None:
    roots = Roots()
    roots.batches = []
    pushes = [(Root(),), (roots,), (AddRoot(), engine.put(0.0)), (AddRootTo(), engine.put(0.0))]
    for operator, *target in pushes:
        with engine.hold():
            usual = engine.push(operator, *target, NEGATIVE)
            with tn.options(check_nans=True):
                checked = engine.push(operator, *target, NEGATIVE)
        if len(target):
            assert has_nan(checked)
            assert usual.exception() is None
        else:
            assert has_nan(checked)
            assert np.isnan(np.asarray(usual.get())[1])
    assert roots.batches == [1, 1]


def test_sums_of_increments_are_checked_for_nans(engine: tn.Engine) -> None:
    class Accumulate(tn.CumulativeOperator):
        pass

    infinite = np.array([np.inf, 1.0])
    total = engine.put(np.zeros(2))
    for sign in (1, -1):
        total = engine.push(Accumulate(), total, sign * infinite)
    assert np.isnan(np.asarray(total.get())[0])
    total = engine.put(np.zeros(2))
    with tn.options(check_nans=True):
        for sign in (1, -1):
            total = engine.push(Accumulate(), total, sign * infinite)
    assert has_nan(total)


def test_equal_options_share_a_batch_and_others_do_not(engine: tn.Engine) -> None:
    before = engine.stats()["batches"]
    with engine.hold():
        for _ in range(4):
            engine.push(tn.operators.add, np.ones(3), 1.0)
            with tn.options(strict_dtypes=False):
                engine.push(tn.operators.add, np.ones(3), 1.0)
            with tn.options(strict_dtypes=True):
                engine.push(tn.operators.add, np.ones(3), np.ones(3))
            with tn.options(strict_dtypes=True):
                kept = engine.push(tn.operators.add, np.ones(3), np.ones(3))
        handles = [engine.push(tn.operators.add, np.ones(3), 1.0) for _ in range(4)]
        with tn.options(strict_dtypes=True):
            handles += [engine.push(tn.operators.add, np.ones(3), np.ones(3)) for _ in range(4)]
    assert all(handle.get().tolist() == [2.0] * 3 for handle in (*handles, kept))
    assert engine.stats()["batches"] == before + 2


@pytest.mark.cpu
def test_device_of_the_push_is_that_of_the_result(engine: tn.Engine) -> None:
    with engine.hold(), tn.options(device="reference"):
        handles = [
            engine.push(tn.operators.arange, 3),
            engine.push(tn.operators.add, 1.0, 2.0),
            engine.push(tn.operators.sum, tn.asarray([1.0, 2.0])),
            engine.push(Root(), engine.put(np.ones(2))),
        ]
    assert {handle.get().device for handle in handles} == {"reference"}
    assert engine.push(tn.operators.add, 1.0, 2.0).get().device == "cpu"


def test_every_option_reaches_the_operator(engine: tn.Engine) -> None:
    class Sees(tn.Operator):
        def run(self, name: str) -> object:
            return settings.get(name), threading.get_ident()

    values = {"fuse": False, "threads": 3, "pending_depth": 77, "fast": True, "tier": "1"}
    for name, value in values.items():
        with engine.hold():
            with tn.options(**{name: value}):
                inside = engine.push(Sees(), name)
            outside = engine.push(Sees(), name)
        found, thread = inside.get()
        assert found == value
        assert thread != threading.get_ident()
        assert outside.get()[0] == settings.get(name)


def test_results_under_other_options_are_the_same_bits(engine: tn.Engine) -> None:
    x = np.random.default_rng(0).standard_normal((8, 50))
    expected = [np.asarray(engine.push(tn.operators.exp, row).get()) for row in x]
    for options in ({"fuse": False}, {"threads": 1}, {"tier": "1"}, {"check_nans": True}):
        with tn.options(**options), engine.hold():
            handles = [engine.push(tn.operators.exp, row) for row in x]
        for handle, row in zip(handles, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(handle.get()), row)


def test_products_under_checked_nans_are_one_batch_and_name_the_one_that_fails(
    engine: tn.Engine,
) -> None:
    good, bad = np.eye(2), np.array([[np.inf, -np.inf], [0.0, 0.0]])
    with tn.options(check_nans=True), engine.hold():
        handles = [engine.push(tn.operators.matmul, x, np.ones((2, 2))) for x in (good, bad, good)]
    assert [has_nan(handle) for handle in handles] == [False, True, False]
    assert handles[2].get().tolist() == [[1.0, 1.0], [1.0, 1.0]]
