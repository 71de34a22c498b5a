"""Launches of kernels: results, failures, Ctrl-C, threads, forks, the end of the interpreter."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sample_kernels import ADDRESS, launch
from tenfold import _native
from tenfold._native import Type, Value

ENDLESS = 1 << 50
LONG = 1 << 20
"""Units of a launch that goes on until a signal comes, be the machine ever so busy: a minute."""


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = _native.threads()
    _native.set_threads(4)
    yield
    _native.set_threads(before)


def counted(units: int, grain: int, threads: int) -> bool:
    """Whether a launch runs every unit once."""
    cells = np.zeros(units + 1, np.int64)
    status = launch("count", [cells], units=units, grain=grain, threads=threads)
    return status == 0 and bool((cells[:-1] == 1).all()) and cells[-1] == 0


@pytest.mark.parametrize("threads", [0, 1, 2, 4, 100])
@pytest.mark.parametrize("grain", [1, 7, 1000, 1 << 60])
def test_every_unit_runs_once(grain: int, threads: int) -> None:
    assert counted(10_000, grain, threads)


def test_no_units_are_no_call() -> None:
    assert _native.launch(1, (), b"", b"", 0, 0, 1, 2) == 0


@pytest.mark.parametrize("threads", [0, 1, 2, 4])
def test_status_is_the_smallest_failure(threads: int) -> None:
    for grain in (1, 10):
        for bad in (1, 3, 1000, 9_999, 10_000):
            status = launch("refuse", sizes=[bad], units=10_000, grain=grain, threads=threads)
            assert status == bad
    assert launch("refuse", sizes=[10_001], units=10_000, threads=threads) == 0


def test_sizes_and_scalars_keep_their_bits_and_scratch_is_aligned() -> None:
    seen = np.zeros(3, np.int64)
    scalar = np.array([-(2**63) + 1], np.int64).tobytes()
    launch("given", [seen], sizes=[2**62 + 1], scalars=scalar, scratch=100)
    assert seen[:2].tolist() == [2**62 + 1, -(2**63) + 1]
    assert seen[2] != 0
    assert seen[2] % 64 == 0


def test_python_function_is_a_kernel_too() -> None:
    ranges = []
    lock = threading.Lock()

    def kernel(*arguments: int) -> int:
        with lock:
            ranges.append(arguments[-2:])
        return 0

    signature = ctypes.CFUNCTYPE(
        ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64
    )
    function = signature(kernel)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    assert _native.launch(address, (), b"", b"", 0, 10, 4, 3) == 0
    assert sorted(ranges) == [(0, 4), (4, 8), (8, 10)]


def test_values_are_buffers() -> None:
    value = Value.allocate(Type((4,), np.dtype("int64"), "reference"), 32)
    cells = np.frombuffer(memoryview(value), np.int64)
    cells[:] = 0
    launch("count", [value.view(Type((2,), cells.dtype, "reference"), (8,), 16)], units=2)
    assert cells.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, (), b"", b"", 0, 1, 1, 1), ValueError),
        ((1, (), b"", b"", 0, 1, 0, 1), ValueError),
        ((1, (), b"", b"", -1, 1, 1, 1), ValueError),
        ((1, (), b"", b"", 0, -1, 1, 1), ValueError),
        ((1, (), b"", b"", 0, 1, 1, -1), ValueError),
        ((1, (), b"1234", b"", 0, 1, 1, 1), TypeError),
        ((1, (), [1], b"", 0, 1, 1, 1), TypeError),
        ((1, ("x",), b"", b"", 0, 1, 1, 1), TypeError),
        ((1, 5, b"", b"", 0, 1, 1, 1), TypeError),
        ((1, (), b"", b"", 0, 1, 1), TypeError),
        ((1, (), b"", b"", 0, 1 << 80, 1, 1), TypeError),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        _native.launch(*arguments)  # type: ignore[arg-type]


def test_memory_that_fails_is_a_memory_error_and_the_next_launch_works() -> None:
    cells = np.zeros(10, np.int64)
    for n in (1, 2, 3):
        _native.fail_allocation(n)
        with pytest.raises(MemoryError, match="bytes of scratch"):
            launch("count", [cells], scratch=(1 << 20) << n, units=10, threads=3)
    assert not cells.any()
    assert counted(100, 1, 3)


def test_allocation_that_fails_names_its_bytes_and_fails_once() -> None:
    type_ = Type((3,), np.dtype("float64"), "reference")
    _native.fail_allocation(2)
    Value.allocate(type_, 24)
    with pytest.raises(MemoryError, match="24 bytes"):
        Value.allocate(type_, 24)
    Value.allocate(type_, 24)
    _native.fail_allocation(1)
    _native.fail_allocation(0)
    Value.allocate(type_, 24)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_float_mode_of_a_foreign_library_changes_nothing(threads: int) -> None:
    smallest = np.full(100, 5e-324)
    change = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)(ADDRESS["set_float_mode"])
    change(0, np.array([0x9FC0], np.int64).ctypes.data, 0, 0, 0, 0)  # FTZ and DAZ, as -Ofast sets
    try:
        assert np.float64(5e-324) + np.float64(5e-324) == 0
        launch("twice", [smallest], units=100, threads=threads)
        assert np.float64(5e-324) + np.float64(5e-324) == 0  # still what it was
    finally:
        change(0, np.array([0x1F80], np.int64).ctypes.data, 0, 0, 0, 0)
    assert (smallest == 1e-323).all()


def test_launches_of_several_python_threads_at_once() -> None:
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda i: counted(1000 + i, 1 + i % 13, 1 + i % 5), range(300))
        assert all(found)


def test_more_threads_can_be_asked_for_later() -> None:
    for threads in (1, 6, 2, 9):
        _native.set_threads(threads)
        assert _native.threads() == threads
        assert counted(10_000, 10, threads)


def test_children_forked_amid_launches_launch() -> None:
    stop = threading.Event()
    wrong: list[int] = []

    def work() -> None:
        while not stop.is_set():
            if not counted(5_000, 5, 3):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # a child that hangs ends by itself
                os._exit(0 if all(counted(5_000, 5, n) for n in (1, 3)) else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


def program(text: str) -> tuple[int, str, str]:
    """Run a program that has a thread interrupt it once its endless kernel runs."""
    start = f"""
import atexit
at_last = []  # called after whatever the import of tenfold leaves for the end
atexit.register(lambda: [function() for function in at_last])
import os, signal, sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from sample_kernels import launch
from tenfold import _native
_native.set_threads(3)
seen = np.zeros(3, np.int64)
def interrupt(after=10):
    while seen[0] < after:
        pass
    os.kill(os.getpid(), signal.SIGINT)
def spin(threads):
    return launch("spin", [seen], units={ENDLESS}, threads=threads)
"""
    done = subprocess.run(
        [sys.executable, "-c", start + text],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


INTERRUPTED = """
for threads in (1, 3):
    seen[:] = 0
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        spin(threads)
    except KeyboardInterrupt:
        print("interrupted, inside:", seen[1])
    thread.join()
    cells = np.zeros(1000, np.int64)
    launch("count", [cells], units=1000, threads=threads)
    print("next:", (cells == 1).all())
"""

HANDLED = """
cells = np.zeros(1000, np.int64)
def handler(*_):
    print("handler:", launch("count", [cells], units=1000, threads=3), (cells == 1).all())
    seen[2] = 1
signal.signal(signal.SIGINT, handler)
thread = threading.Thread(target=interrupt)
thread.start()
print("status:", launch("spin", [seen], units={LONG}, threads=2), seen.tolist())
"""

FORKED = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from 3.12 on
def handler(*_):
    if os.fork() == 0:
        signal.alarm(20)
    seen[2] = 1
signal.signal(signal.SIGINT, handler)
threading.Thread(target=interrupt).start()
try:
    status = launch("spin", [seen], units={LONG}, threads=2)
except RuntimeError as error:
    cells = np.zeros(1000, np.int64)
    launch("count", [cells], units=1000, threads=3)
    os._exit(3 if "forked" in str(error) and (cells == 1).all() else 4)
print("parent:", status, seen.tolist(), os.waitstatus_to_exitcode(os.wait()[1]))
"""

ENDING = """
thread = threading.Thread(target=lambda: spin({threads}), daemon=True)
thread.start()
while seen[0] < 10:
    pass
def last(name):
    print(name, launch("spin", [np.zeros(3, np.int64)], units=3, threads=2))
atexit.register(last, "early:")
at_last.append(lambda: last("late:"))
"""


def test_ctrl_c_ends_a_launch_and_the_next_one_works() -> None:
    lines = "interrupted, inside: 0\nnext: True\n"
    assert program(INTERRUPTED) == (0, 2 * lines, "")


def test_signal_handler_may_launch_and_the_launch_goes_on() -> None:
    lines = f"handler: 0 True\nstatus: 0 [{LONG}, 0, 1]\n"
    assert program(HANDLED.replace("{LONG}", str(LONG))) == (0, lines, "")


def test_launch_that_a_signal_handler_forks_in_is_cut_short_in_the_child() -> None:
    lines = f"parent: 0 [{LONG}, 0, 1] 3\n"
    assert program(FORKED.replace("{LONG}", str(LONG))) == (0, lines, "")


@pytest.mark.parametrize("threads", [1, 3])
def test_interpreter_ends_quietly_while_a_daemon_thread_launches(threads: int) -> None:
    assert program(ENDING.format(threads=threads)) == (0, "early: 0\nlate: 0\n", "")
