"""What `tn.eval` submits: computed by another thread, seen by everybody as if it were there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, submission
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

SIDE = 400
"""The side of a matrix that is large."""


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    """Where a test has made a window, everything is computed at once in this process."""
    before, EXTERNAL_BUFFER_LOCK.enabled = EXTERNAL_BUFFER_LOCK.enabled, False
    yield
    EXTERNAL_BUFFER_LOCK.enabled = before


def large(value: float = 1.0) -> tn.Array:
    return tn.asarray(np.full((SIDE, SIDE), value))


def is_pending(array: tn.Array) -> bool:
    return _native.node_of(array).pending


@contextmanager
def held() -> Iterator[None]:
    """Keep what is submitted from running."""
    tn.eval(large() + 1)
    submission.wait_idle()
    engine = submission._queue._engine
    assert engine is not None
    with engine.hold():
        yield


def test_small_arrays_are_computed_at_once() -> None:
    with held():
        assert not is_pending(tn.eval(tn.asarray([1.0, 2.0]) * 3))


def test_large_arrays_are_computed_meanwhile() -> None:
    with held():
        x = tn.eval(large() * 3)
        assert is_pending(x)
    assert np.asarray(x)[0, 0] == 3.0


def test_products_of_middling_matrices_are_computed_meanwhile() -> None:
    a = tn.asarray(np.ones((80, 80)))
    with held():
        assert is_pending(tn.eval(a @ a))
        assert not is_pending(tn.eval(a + a))


def test_reader_waits_for_a_value() -> None:
    found: list[float] = []
    with held():
        x = tn.eval(large() * 3)
        others = [
            threading.Thread(target=lambda: found.append(tn.sum(x + 1).item())),
            threading.Thread(target=lambda: found.append(np.asarray(x).sum() + SIDE**2)),
        ]
        for other in others:
            other.start()
        for other in others:
            other.join(0.05)
        assert not found
        assert is_pending(x)
    for other in others:
        other.join(60)
    assert found == [4.0 * SIDE**2] * 2


@pytest.mark.usefixtures("fused_multiply_add")
def test_submitted_graph_is_computed_once() -> None:
    a = large(0.5)
    with tn.profile() as profile:
        x = tn.eval(tn.exp(a))
        y = x.wait()
    assert y is x
    assert profile.launches == 1


def test_several_are_computed_together_in_the_order_of_the_calls() -> None:
    with held():
        x = large(2.0)
        steps = []
        for _ in range(10):
            x = x * 1.5 - 1
            steps.append(tn.eval(x))
        first, last = tn.eval(x + 1, x - 1)
    expected = np.full((SIDE, SIDE), 2.0)
    for step in steps:
        expected = expected * 1.5 - 1
        np.testing.assert_array_equal(np.asarray(step), expected)
    np.testing.assert_array_equal(np.asarray(first), expected + 1)
    np.testing.assert_array_equal(np.asarray(last), expected - 1)


def test_operand_may_be_submitted_later() -> None:
    with held():
        y = tn.sin(large())
        x = tn.eval(y + 1)
        tn.eval(y)
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y) + 1)


def test_later_assignment_does_not_change_what_was_submitted() -> None:
    with held():
        x = large()
        y = tn.eval(x + 1)
        x[0, 0] = 7.0
        x += 1
    assert np.asarray(y)[0, 0] == 2.0
    assert np.asarray(x)[0, 0] == 8.0


@pytest.mark.usefixtures("fused_multiply_add")
def test_options_are_those_of_the_call() -> None:
    launches = {}
    for fuse in (True, False):
        with tn.profile() as profile:
            with held(), tn.options(fuse=fuse):
                x = tn.eval(tn.sin(large()) + 1)
            x.wait()
        launches[fuse] = profile.launches
    assert launches[False] == launches[True] + 1


def test_failure_is_raised_to_each_who_waits() -> None:
    x = tn.eval(tn.linalg.inv(tn.asarray(np.zeros((100, 100)))))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            x.wait()
    assert tn.sum(tn.eval(large() + 1)).item() == 2 * SIDE**2


def test_more_than_may_wait_are_computed_by_who_asks() -> None:
    with held():
        waiting = [tn.eval(large(i)) for i in range(3)]
        waiting += [tn.eval(large(i) + 1) for i in range(submission.MAX_PENDING)]
        beyond = tn.eval(large() + 5)
        assert not is_pending(beyond)
    expected = [i + 1 for i in range(submission.MAX_PENDING)]
    assert [np.asarray(x)[0, 0] for x in waiting[3:]] == expected


def test_inside_an_operator_everything_is_computed_at_once() -> None:
    class Twice(tn.Operator):
        def run(self, x: tn.Array) -> bool:
            return is_pending(tn.eval(x * 2))

    with held(), tn.Engine(threads=1) as engine:
        assert engine.push(Twice(), large()).get() is False


def test_interrupt_ends_the_waiting() -> None:
    with held():
        x = tn.eval(large() * 3)
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])

        def interrupted() -> None:
            timer.start()
            x.wait()

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        timer.join()
    assert np.asarray(x)[0, 0] == 3.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_child_of_a_fork_computes_what_its_parent_submitted() -> None:
    with held():
        x = tn.eval(large() * 3)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.asarray(x)[0, 0] == 3.0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.asarray(x)[0, 0] == 3.0


def test_values_are_there_at_the_end_of_the_interpreter() -> None:
    code = (
        "import atexit, numpy as np\n"
        "atexit.register(lambda: print(float(x.wait()[0, 0])))\n"
        "import tenfold as tn\n"
        "xs = [tn.eval(tn.asarray(np.ones((500, 500))) + i) for i in range(50)]\n"
        "x = xs[-1]\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "50.0\n", "")


def test_many_threads_submit_and_wait() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        x = large(number)
        for step in range(20):
            x = tn.eval(x + 1)
            if step % 3 == 0 and np.asarray(x)[3, 4] != number + step + 1:
                wrong.append(f"{number} {step}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_nobody_waits_for_what_could_not_be_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError

    x = large() * 3
    with held():
        monkeypatch.setattr(submission._queue._engine, "push", refuse)
        with pytest.raises(MemoryError):
            tn.eval(x)
        monkeypatch.undo()
        assert np.asarray(x)[0, 0] == 3.0
