"""What a worker calls in Python may raise anything: the process goes on, and a handle has it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Unprintable(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise ValueError("no text")


class UnprintableExit(BaseException):
    """The same, and worse."""

    def __str__(self) -> str:
        raise SystemExit(1)


class TwoArguments(MemoryError):
    """An exception that is made in its own way."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(one, other)


class Unmade(Exception):
    """An exception that cannot be made."""

    def __init__(self) -> None:
        raise KeyboardInterrupt


ERRORS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "group": lambda: BaseExceptionGroup("several", [SystemExit(1), ValueError()]),
    "Unprintable": Unprintable,
    "UnprintableExit": UnprintableExit,
    "TwoArguments": lambda: TwoArguments(1, 2),
    "Unmade": Unmade,
}


def fail(error: str) -> NoReturn:
    raised = ERRORS[error]()
    raise raised


class Returns(tn.Operator):
    """Has a result of which nothing is known before it runs."""

    def run(self, x: Any) -> Any:
        return x


class Raises(tn.Operator):
    def __init__(self, error: str) -> None:
        self.error = error

    def run(self, x: float) -> float:
        fail(self.error)


class RaisesInBatches(tn.BatchedOperator):
    """Raises where a batch calls it first: for its signature, or to run."""

    def __init__(self, error: str, *, where: str, pure: bool) -> None:
        self.error, self.where, self.pure = error, where, pure

    def signature(self, x: float) -> object:
        if self.where == "signature":
            fail(self.error)
        return None

    def run_batch(self, members: list[tuple[float]]) -> list[float]:
        fail(self.error)


class RaisesOnStacks(tn.BatchedOperator):
    stacked = True

    def __init__(self, error: str, *, pure: bool) -> None:
        self.error, self.pure = error, pure

    def run_batch(self, x: tn.Array) -> tn.Array:
        fail(self.error)


def works(engine: tn.Engine) -> bool:
    """Whether an engine still computes."""
    found = engine.push(tn.operators.add, np.ones(3), 1.0).get(timeout=30)
    return found.tolist() == [2.0] * 3


def assert_failed(handles: list[tn.Handle], name: str) -> None:
    for handle in handles:
        with pytest.raises(tn.errors.RunError, match=name):
            handle.get(timeout=30)


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_an_operator_raises_is_the_failure_of_its_handle(
    engine: tn.Engine, error: str
) -> None:
    handle = engine.push(Raises(error), 1.0)
    assert_failed([handle, engine.push(tn.operators.exp, handle)], "Raises")
    assert works(engine)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_batch_raises_is_the_failure_of_each_member(
    engine: tn.Engine, error: str, pure: bool
) -> None:
    for operator, x in [
        (RaisesInBatches(error, where="signature", pure=pure), 1.0),
        (RaisesInBatches(error, where="run", pure=pure), 1.0),
        (RaisesOnStacks(error, pure=pure), np.ones(3)),
    ]:
        with engine.hold():
            handles = [engine.push(operator, x) for _ in range(3)]
        assert_failed(handles, "Raises")
    assert works(engine)


@pytest.mark.parametrize("name", ["pow", "divide", "remainder", "linalg_inv"])
def test_operation_that_can_fail_is_prepared_by_a_worker(engine: tn.Engine, name: str) -> None:
    x, others = 2 * np.eye(2), () if name == "linalg_inv" else (2.0,)
    operator = getattr(tn.operators, name)
    with engine.hold():
        handles = [engine.push(operator, engine.push(Returns(), x), *others) for _ in range(3)]
    for handle in handles:
        assert np.array_equal(
            np.asarray(handle.get()), np.asarray(operator(tn.asarray(x), *others))
        )


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt", "UnprintableExit", "group"])
def test_error_of_a_batch_rule_is_the_failure_of_each_member(engine: tn.Engine, error: str) -> None:
    def raise_error(x: Any) -> Any:
        fail(error)

    @tn.op(shape=(), reference=np.max, batch=raise_error)
    def largest(x: Any) -> Any:
        """The largest element."""

    with engine.hold():
        handles = [engine.push(largest, np.arange(3.0) + i) for i in range(3)]
    assert_failed(handles, "largest")
    assert works(engine)


def test_members_are_computed_alone_where_their_batch_rule_fails(engine: tn.Engine) -> None:
    def raise_error(x: Any) -> Any:
        raise Unprintable

    @tn.op(shape=(), reference=np.max, batch=raise_error)
    def largest(x: Any) -> Any:
        """The largest element."""

    with engine.hold():
        handles = [engine.push(largest, np.arange(3.0) + i) for i in range(3)]
    assert [float(handle.get()) for handle in handles] == [2.0, 3.0, 4.0]


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException] | None]:
    """The errors that no caller could catch."""
    errors: list[type[BaseException] | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: errors.append(found.exc_type))
    return errors


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt", "Unprintable"])
def test_error_of_a_finalizer_is_reported(
    engine: tn.Engine, error: str, unraisable: list[type[BaseException]]
) -> None:
    class Finalized:
        def __del__(self) -> None:
            fail(error)

    class Makes(tn.Operator):
        def run(self) -> Finalized:
            return Finalized()

    handle = engine.push(Makes())
    handle.exception()
    del handle
    engine.flush()
    assert unraisable == [type(ERRORS[error]())]
    assert works(engine)


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt", "Unprintable"])
def test_error_of_a_callback_is_reported(error: str, unraisable: list[type[BaseException]]) -> None:
    gate = threading.Event()

    class Waits(tn.Operator):
        def run(self) -> float:
            assert gate.wait(60)
            return 1.0

    def raise_error() -> None:
        fail(error)

    with tn.Engine(threads=1) as engine:
        handle = engine.push(Waits())
        assert handle._call_when_settled(raise_error)
        gate.set()
        assert handle.get() == 1.0
        assert works(engine)
    assert unraisable == [type(ERRORS[error]())]


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt", "Unprintable"])
def test_error_of_a_log_handler_is_reported(
    engine: tn.Engine, error: str, unraisable: list[type[BaseException]]
) -> None:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            fail(error)

    handler = Handler()
    logging.getLogger("tenfold").addHandler(handler)
    try:
        engine.push(Raises("SystemExit"), 1.0)
        engine.flush()
    finally:
        logging.getLogger("tenfold").removeHandler(handler)
    assert unraisable == [type(ERRORS[error]())]
    assert works(engine)
