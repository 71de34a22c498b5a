"""Interruptible calls: Ctrl-C in a long call of LAPACK or NumPy, stacks, forks, the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime import interruptible

LONG = 60.0
"""Seconds: long enough, even on a machine that is busy."""


def test_ctrl_c_ends_the_wait_before_the_call_ends() -> None:
    ended = threading.Event()

    def function(interrupted: threading.Event | None) -> None:
        assert interrupted is not None
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(LONG)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible.call(function, multiply_adds=interruptible.LONG)
    assert ended.wait(LONG)


def test_a_short_call_and_one_of_another_thread_run_where_they_are_made() -> None:
    places: list[tuple[threading.Thread, bool]] = []

    def function(interrupted: threading.Event | None) -> None:
        places.append((threading.current_thread(), interrupted is None))

    def call(multiply_adds: int) -> None:
        interruptible.call(function, multiply_adds=multiply_adds)

    call(interruptible.LONG - 1)
    other = threading.Thread(target=call, args=(interruptible.LONG,))
    other.start()
    other.join()
    assert places == [(threading.main_thread(), True), (other, True)]
    call(interruptible.LONG)
    assert places[2][0] not in (threading.main_thread(), other)


def test_error_of_a_long_call_is_raised() -> None:
    singular = tn.zeros((512, 512))
    with pytest.raises(np.linalg.LinAlgError, match="inv: Singular matrix"):
        tn.linalg.inv(singular).wait()


def test_a_long_call_has_the_options_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold.settings import get

    with tn.options(threads=3):
        found = interruptible.call(lambda _: get("threads"), multiply_adds=interruptible.LONG)
    assert found == 3


DECOMPOSITIONS: dict[str, Callable[[tn.Array], tn.Array]] = {
    "svd": lambda x: tn.linalg.svd(x)[0],
    "svdvals": tn.linalg.svdvals,
    "eig": lambda x: tn.linalg.eig(x)[1],
    "solve": lambda x: tn.linalg.solve(x, x),
    "cond": tn.linalg.cond,
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_a_stack_of_long_calls_has_the_bits_of_one_launch(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(4).normal(size=(5, 6, 6))
    found = []
    for least in (interruptible.LONG, 1):
        monkeypatch.setattr(interruptible, "LONG", least)
        tn.trim()  # plans were made for the other one
        with tn.options(threads=threads):
            found.append(np.asarray(DECOMPOSITIONS[name](tn.asarray(values))))
    np.testing.assert_array_equal(*found)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )


INTERRUPTED = """
import os, signal, threading
import numpy as np
import tenfold as tn
tn.set_options(device={device!r}, threads={threads})
x = tn.asarray(np.random.default_rng(0).normal(size=(1500, 1500)))
def calls():
    return [each for each in threading.enumerate() if each.name == "tenfold library call"]
def interrupt():
    while not calls():
        pass
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    np.asarray({call})
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted,", len(calls()), "runs")
print(tn.sum(x * 0 + 1).item())
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("call", ["tn.linalg.svd(x)[0]", "tn.linalg.eig(x)[0]"])
def test_ctrl_c_ends_a_decomposition_and_the_process_can_end(
    call: str, device: str, threads: int
) -> None:
    done = run(INTERRUPTED.format(call=call, device=device, threads=threads))
    assert done.stderr == ""
    assert done.stdout == "interrupted, 1 runs\n2250000.0\n"
    assert done.returncode == 0


FORKED = """
import os, signal, threading
import tenfold as tn
from tenfold.runtime import interruptible
forked = []
def handler(*_):
    forked.append(os.fork())
    go.set()
signal.signal(signal.SIGUSR1, handler)
go = threading.Event()
def function(interrupted):
    if interrupted is not None:
        os.kill(os.getpid(), signal.SIGUSR1)
        go.wait()
    return "done"
found = interruptible.call(function, multiply_adds=interruptible.LONG)
if forked[0] == 0:
    os._exit(7 if found == "done" else 8)
print(found, os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
"""


def test_the_child_of_a_fork_in_a_signal_handler_computes_by_itself() -> None:
    done = run(FORKED)
    assert done.stdout == "done 7\n", done.stderr


STATUS = """
import os, sys, threading
import tenfold as tn
from tenfold.runtime import interruptible
begun = threading.Event()
def function(interrupted):
    begun.set()
    threading.Event().wait()
def work():
    interruptible._Call(function).run()
threading.Thread(target=work, daemon=True).start()
begun.wait()
print("printed")
sys.exit(3)
"""


def test_the_status_and_the_output_of_a_process_that_leaves_a_call_are_as_ever() -> None:
    done = run(STATUS)
    assert (done.returncode, done.stdout, done.stderr) == (3, "printed\n", "")
