"""When things go wrong: each a clear error where somebody waits, nothing lost, no hang."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Boom(Exception):
    pass


class Fails(tn.Operator):
    """Raises if its input is negative."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, x: float) -> float:
        self.runs += 1
        if x < 0:
            raise Boom(f"no root of {x}")
        return x**0.5


class Count(tn.Operator):
    def __init__(self) -> None:
        self.runs = 0

    def run(self, *inputs: Any) -> Any:
        self.runs += 1
        return inputs[0]


class Gate(tn.Operator):
    def __init__(self) -> None:
        self.open = threading.Event()

    def run(self) -> float:
        assert self.open.wait(60)
        return 1.0


def here() -> str:
    """This file and the line of the caller."""
    return f"{__file__.rsplit('/', 1)[-1]}:{sys._getframe(1).f_lineno}"


def works(engine: tn.Engine) -> bool:
    """Whether an engine still computes."""
    found = engine.push(tn.operators.add, np.ones(3), 1.0).get(timeout=30)
    return found.tolist() == [2.0] * 3


def test_operator_that_raises_poisons_its_handle(engine: tn.Engine) -> None:
    handle, line = engine.push(Fails(), -4.0), here()
    with pytest.raises(tn.errors.RunError) as caught:
        handle.get()
    assert isinstance(caught.value.__cause__, Boom)
    assert "Fails" in str(caught.value)
    assert line in str(caught.value)
    assert "no root of -4.0" in str(caught.value)
    assert works(engine)


def test_each_wait_raises_a_fresh_error(engine: tn.Engine) -> None:
    handle = engine.push(Fails(), -4.0)
    errors = []
    for _ in range(2):
        with pytest.raises(tn.errors.RunError) as caught:
            handle.get()
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert isinstance(handle.exception(), tn.errors.RunError)


def test_dependants_raise_the_same_without_running(engine: tn.Engine) -> None:
    handle, line = engine.push(Fails(), -4.0), here()
    count = Count()
    last = engine.push(count, engine.push(count, handle))
    with pytest.raises(tn.errors.RunError) as caught:
        last.get()
    assert isinstance(caught.value.__cause__, Boom)
    assert line in str(caught.value)
    assert "Fails" in str(caught.value)
    assert count.runs == 0


def test_error_of_native_code_is_of_its_class(engine: tn.Engine) -> None:
    handle, line = engine.push(tn.operators.linalg_inv, np.zeros((2, 2))), here()
    after = engine.push(tn.operators.sum, handle)
    for each in (handle, after):
        with pytest.raises(tn.errors.LinAlgError) as caught:
            each.get()
        assert "inv" in str(caught.value)
    assert line in str(caught.value)
    assert works(engine)


def test_shapes_that_do_not_fit_are_told_at_the_wait(engine: tn.Engine) -> None:
    handle = engine.push(tn.operators.add, np.ones(2), np.ones(3))
    with pytest.raises(tn.errors.ShapeError, match="do not broadcast"):
        handle.get()
    assert works(engine)


class Members(tn.BatchedOperator):
    """Fails for a batch that has a negative number."""

    def __init__(self, *, pure: bool) -> None:
        self.pure = pure
        self.batches: list[int] = []

    def signature(self, x: float) -> object:
        return None

    def run_batch(self, members: list[tuple[float]]) -> list[float]:
        self.batches.append(len(members))
        for (x,) in members:
            if x < 0:
                raise Boom(f"member {x}")
        return [x + 1 for (x,) in members]


def pushed_together(engine: tn.Engine, operator: tn.Operator, *inputs: float) -> list[tn.Handle]:
    with engine.hold():
        return [engine.push(operator, x) for x in inputs]


def test_failed_batch_of_pure_operators_is_tried_again_one_by_one(engine: tn.Engine) -> None:
    members = Members(pure=True)
    first, bad, last = pushed_together(engine, members, 1.0, -2.0, 3.0)
    assert (first.get(), last.get()) == (2.0, 4.0)
    with pytest.raises(tn.errors.RunError, match=r"member -2\.0"):
        bad.get()
    assert members.batches == [3, 1, 1, 1]


def test_failed_batch_of_impure_operators_is_not_tried_again(engine: tn.Engine) -> None:
    members = Members(pure=False)
    for handle in pushed_together(engine, members, 1.0, -2.0, 3.0):
        with pytest.raises(tn.errors.RunError, match=r"member -2\.0"):
            handle.get()
    assert members.batches == [3]


def test_failed_operator_is_not_tried_again(engine: tn.Engine) -> None:
    fails = Fails()
    with pytest.raises(tn.errors.RunError):
        engine.push(fails, -1.0).get()
    assert fails.runs == 1


def test_failure_in_place_harms_no_older_value(engine: tn.Engine) -> None:
    class Spoil(tn.InPlaceOperator):
        def run(self, target: list[int]) -> None:
            target.append(1)
            raise Boom

    old = engine.put([0])
    new = engine.push(Spoil(), old)
    later = engine.push(Spoil(), old)
    for handle in (new, later):
        with pytest.raises(tn.errors.RunError):
            handle.get()
    assert old.get() == [0]


def test_error_of_an_increment_is_that_of_later_versions(engine: tn.Engine) -> None:
    class Increase(tn.CumulativeOperator):
        def run(self, x: float) -> float:
            if x < 0:
                raise Boom(f"increment {x}")
            return x

    target = engine.put(0.0)
    before = engine.push(Increase(), target, 1.0)
    bad = engine.push(Increase(), target, -1.0)
    after = engine.push(Increase(), target, 1.0)
    assert before.get() == 1.0
    for handle in (bad, after):
        with pytest.raises(tn.errors.RunError, match=r"increment -1\.0"):
            handle.get()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_results_is_told(engine: tn.Engine, count: int) -> None:
    class Short(tn.BatchedOperator):
        def signature(self, x: float) -> object:
            return None

        def run_batch(self, members: list[Any]) -> list[float]:
            return [0.0] * count

    for handle in pushed_together(engine, Short(), 1.0, 2.0):
        with pytest.raises(tn.errors.RunError, match=rf"(?s)Short.*{count}.*2"):
            handle.get()
    assert works(engine)


def test_batch_that_returns_no_list_is_told(engine: tn.Engine) -> None:
    class Nothing(tn.BatchedOperator):
        def signature(self, x: float) -> object:
            return None

        def run_batch(self, members: list[Any]) -> Any:
            return None

    for handle in pushed_together(engine, Nothing(), 1.0, 2.0):
        with pytest.raises(tn.errors.RunError, match="Nothing"):
            handle.get()


def test_unhashable_signature_is_told(engine: tn.Engine) -> None:
    class Unhashable(Members):
        def signature(self, x: float) -> object:
            return [x]

    for handle in pushed_together(engine, Unhashable(pure=True), 1.0, 2.0):
        with pytest.raises(tn.errors.RunError, match=r"(?s)Unhashable.*is unhashable"):
            handle.get()
    assert works(engine)


def test_signature_that_raises_is_told(engine: tn.Engine) -> None:
    class Raises(Members):
        def signature(self, x: float) -> object:
            raise Boom("no signature")

    for handle in pushed_together(engine, Raises(pure=True), 1.0, 2.0):
        with pytest.raises(tn.errors.RunError, match=r"(?s)Raises.*no signature"):
            handle.get()


def test_wrong_arity_is_told_at_the_push(engine: tn.Engine) -> None:
    for inputs in ((), (1.0,), (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError, match="add"):
            engine.push(tn.operators.add, *inputs)
    with pytest.raises(TypeError, match="Fails"):
        engine.push(Fails(), 1.0, 2.0)
    assert works(engine)


def test_parameter_that_there_is_not_is_told_at_the_push(engine: tn.Engine) -> None:
    with pytest.raises(TypeError, match="axes"):
        engine.push(tn.operators.sum, np.ones(3), axes=0)


@pytest.mark.parametrize("wrong", [None, 3, "add", print, Fails, object()])
def test_non_operator_is_refused_at_the_push(engine: tn.Engine, wrong: object) -> None:
    with pytest.raises(TypeError):
        engine.push(wrong, 1.0)
    assert works(engine)


def test_operator_on_an_object_that_it_cannot_take_is_told(engine: tn.Engine) -> None:
    handle = engine.push(tn.operators.add, object(), 1.0)
    with pytest.raises((TypeError, tn.errors.RunError), match="add"):
        handle.get()


def test_handle_of_another_engine_is_told_at_the_push(engine: tn.Engine) -> None:
    with tn.Engine(threads=1) as other:
        foreign = other.put(1.0)
        with pytest.raises(ValueError, match="another engine"):
            engine.push(tn.operators.add, foreign, 1.0)
        with pytest.raises(ValueError, match="another engine"):
            engine.flush(foreign)
    assert works(engine)


def test_handles_of_a_closed_engine_keep_what_they_have() -> None:
    with tn.Engine(threads=1) as engine:
        handle = engine.push(tn.operators.add, 1.0, 2.0)
    assert handle.get() == 3.0
    for use in (
        lambda: engine.push(tn.operators.add, handle, 1.0),
        lambda: engine.put(1.0),
        engine.flush,
    ):
        with pytest.raises(RuntimeError, match=r"closed|shut down"):
            use()
    engine.shutdown()


def test_exception_inside_with_is_handed_on_and_cancels_what_is_pending() -> None:
    count = Count()
    handles = []

    def block() -> None:
        with tn.Engine(threads=1) as engine, engine.hold():
            handles.append(engine.push(count, 1.0))
            raise Boom

    with pytest.raises(Boom):
        block()
    (handle,) = handles
    try:
        assert handle.get() == 1.0  # the hold ended before the engine did
    except CancelledError:
        assert count.runs == 0
    else:
        assert count.runs == 1


def test_shutdown_without_waiting_cancels() -> None:
    engine, gate, count = tn.Engine(threads=1), Gate(), Count()
    running = engine.push(gate)
    pending = engine.push(count, running)
    gate.open.set()
    engine.shutdown(wait=False)
    with pytest.raises((CancelledError, AssertionError)):
        assert pending.get() == 0.0
    assert pending.done()


def test_get_with_a_timeout_raises_and_leaves_the_engine_usable(engine: tn.Engine) -> None:
    gate = Gate()
    handle = engine.push(gate)
    with pytest.raises(TimeoutError):
        handle.get(timeout=0.01)
    with pytest.raises(TimeoutError):
        handle.exception(timeout=0)
    assert works(engine)
    gate.open.set()
    assert handle.get() == 1.0


def test_error_that_nobody_looked_at_is_logged(
    engine: tn.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "tenfold"):
        handle = engine.push(Fails(), -1.0)
        engine.flush()
        assert caplog.text == ""
        del handle
        engine.flush()
    assert "Fails" in caplog.text
    assert "no root of -1.0" in caplog.text


def test_error_that_somebody_looked_at_is_not_logged(
    engine: tn.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "tenfold"):
        handle = engine.push(Fails(), -1.0)
        dependant = engine.push(Count(), handle)
        assert handle.exception() is not None
        assert dependant.exception() is not None
        del handle, dependant
        engine.flush()
    assert caplog.text == ""


def test_errors_are_logged_at_the_end_of_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "tenfold"), tn.Engine(threads=1) as engine:
        kept = engine.push(Fails(), -1.0)
    assert "no root of -1.0" in caplog.text
    assert kept.done()


class Alarm(Exception):
    pass


@pytest.mark.parametrize("wait", ["get", "flush", "flush one", "exception"])
def test_interrupt_ends_any_wait_and_the_engine_goes_on(engine: tn.Engine, wait: str) -> None:
    gate = Gate()
    handle = engine.push(gate)
    waits = {
        "get": handle.get,
        "flush": engine.flush,
        "flush one": lambda: engine.flush(handle),
        "exception": handle.exception,
    }

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            waits[wait]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gate.open.set()
    assert handle.get() == 1.0
    assert works(engine)


def test_engines_are_made_and_ended_many_times() -> None:
    before = threading.active_count()
    for _ in range(1_000):
        with tn.Engine(threads=2) as engine:
            assert engine.push(tn.operators.add, 1.0, 2.0).get() == 3.0
    assert threading.active_count() <= before + 1


def test_engine_that_is_forgotten_ends() -> None:
    count = Count()
    for _ in range(20):
        engine = tn.Engine(threads=1)
        handle = engine.push(count, 1.0)
        del engine
        assert handle.get(timeout=30) == 1.0


def test_handles_in_cycles_are_collected(engine: tn.Engine) -> None:
    class Knot:
        handle: tn.Handle

    for _ in range(10):
        knot = Knot()
        knot.handle = engine.put(knot)
        gone = weakref.ref(knot)
        del knot
    engine.flush()
    gc.collect()
    assert gone() is None
    assert engine.stats()["live_objects"] == 0


def test_system_exit_of_an_operator_reaches_the_handle(engine: tn.Engine) -> None:
    class Exits(tn.Operator):
        def run(self) -> None:
            raise SystemExit(3)

    with pytest.raises((tn.errors.RunError, SystemExit)):
        engine.push(Exits()).get()
    assert works(engine)


def test_result_that_is_the_input_is_fine(engine: tn.Engine) -> None:
    thing = object()
    assert engine.push(Count(), engine.push(Count(), thing)).get() is thing
