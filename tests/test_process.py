"""Threads, forks, other processes, and the end of the interpreter."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native


def total(x: tn.Array) -> float:
    return float(tn.sum(x * 2).item())


def test_many_threads_evaluate_one_expression() -> None:
    x = tn.asarray(np.arange(1000.0))
    y = tn.sum(x * x + tn.asarray(1.0))
    expected = float(np.sum(np.arange(1000.0) ** 2 + 1))
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: y.item(), range(64))) == {expected}


def test_threads_that_end_leave_the_counts_of_others_right() -> None:
    x = tn.asarray(np.arange(6.0))
    node = _native.node_of(x)
    before = _native.references_of(node)
    found: list[np.ndarray] = []

    def work(number: int) -> None:
        found.append(np.asarray((x * number + tn.ones((6,))) @ tn.ones((6,))))

    for number in range(60):
        threads = [threading.Thread(target=work, args=(number,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        work(number)
        for thread in threads:
            thread.join()
    assert sorted(map(float, found)) == [
        15.0 * number + 6 for number in range(60) for _ in range(4)
    ]
    assert _native.references_of(node) == before


def test_reader_sees_the_value_before_or_after_an_assignment_never_a_mixture() -> None:
    x = tn.zeros(1000)
    stop = threading.Event()
    mixtures: list[np.ndarray] = []

    def read() -> None:
        while not stop.is_set():
            values = np.asarray(x + 0)
            if values.min() != values.max():
                mixtures.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(300):
        x += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert not mixtures
    assert x[0].item() == 300.0


def test_options_of_one_thread_are_not_those_of_another() -> None:
    found: list[object] = []
    with tn.options(strict_dtypes=True):
        thread = threading.Thread(
            target=lambda: found.append((tn.ones(1) + tn.ones(1, dtype=tn.int8)).item())
        )
        thread.start()
        thread.join()
        with pytest.raises(tn.errors.DTypeError):
            tn.ones(1) + tn.ones(1, dtype=tn.int8)
    assert found == [2.0]


def test_child_of_a_fork_amid_an_import_can_import_the_module(tmp_path: Path) -> None:
    (tmp_path / "imported_late.py").write_text("import time\ntime.sleep(0.2)\n", encoding="utf-8")
    program = """
import os, signal, sys, threading
import tenfold
tenfold.__path__.append(sys.argv[1])
def imports():
    import tenfold.imported_late
thread = threading.Thread(target=imports)
thread.start()
while "tenfold.imported_late" not in sys.modules:
    pass
if not (child := os.fork()):
    signal.alarm(20)  # else it may wait for ever
    imports()
    os._exit(3)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"


def test_child_of_a_fork_amid_busy_threads_computes() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            total(tn.asarray(np.ones(100)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    pending = tn.asarray(np.ones(10)) + 1
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that hangs ends by itself
                os._exit(0 if total(pending) == 40.0 else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_arrays_travel_to_other_processes(method: str) -> None:
    context = multiprocessing.get_context(method)
    pending = tn.asarray(np.ones(10)) + 1
    with context.Pool(1) as pool:
        # A public function is found by name in any process; a module of tests is not.
        assert pool.apply_async(tn.sum, (pending,)).get(timeout=60).item() == 20.0


@pytest.mark.parametrize(
    "program",
    [
        """
import atexit, builtins
x = tn.zeros(10) + 1
atexit.register(lambda: print(x[0].item()))
builtins.kept = [x * 2, *(tn.zeros(3)[i:] for i in range(3))]
""",
        "import threading; threading.Thread(target=lambda: tn.sum(tn.ones(1000)).item()).start()",
    ],
)
def test_interpreter_ends_quietly_with_arrays_alive(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import tenfold as tn\n{program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


ENDING = """
import builtins, os, threading
import tenfold as tn

class Last:
    def __del__(self, stat=os.stat):
        for _ in range(2000):
            stat("/")  # gives the GIL away, and whoever comes for it is ended

def work():
    x = tn.ones(1_000_000)
    for number in range(10**9):
        (x * 2 + number).wait()
        if number == 9:
            ready.set()

builtins.last = Last()
ready = threading.Event()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
"""


def test_interpreter_ends_quietly_while_daemon_threads_replay() -> None:
    command = [sys.executable, "-c", ENDING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


BLOCKED = """
import builtins, os, threading, time
import numpy as np
import tenfold as tn

read_end, write_end = os.pipe()
entered = threading.Event()

def block(*_):  # until finalization: the thread then asks for the GIL, and is ended
    entered.set()
    os.read(read_end, 1)
    return 1

class Last:
    def __del__(self, write=os.write, stat=os.stat, clock=time.monotonic, end=write_end):
        write(end, bytes(100))
        until = clock() + 0.1  # a thread has this time to do harm
        while clock() < until:
            stat("/")  # gives the GIL away

class Signed(tn.BatchedOperator):
    pure = True
    signature = block

def reference(a):
    block()
    return a + 0

@tn.op(reference=reference)
def declared(a):
    "The values of a."

def start(function):
    threading.Thread(target=function, daemon=True).start()

x, engine = tn.ones((3, 4)), tn.engine()
builtins.last = Last()
{act}
entered.wait()
"""


@pytest.mark.parametrize(
    "act",
    [
        "start(lambda: declared(x).wait())",
        "start(lambda: tn.scan(lambda c, a: (declared(c), a), x[0], x)[0].wait())",
        "handle = engine.push(declared, x)",
        "handle = engine.push(Signed(), x)",
    ],
)
def test_interpreter_ends_quietly_while_a_thread_is_in_python_below_native_frames(
    act: str,
) -> None:
    command = [sys.executable, "-c", BLOCKED.replace("{act}", act)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_is_light() -> None:
    heavy = [*"llvmlite scipy click rich asyncio concurrent decimal fractions json logging".split(),
             *"multiprocessing shutil tempfile difflib hashlib".split()]  # fmt: skip
    code = (
        "import sys, numpy; before = {*sys.modules}; import tenfold\n"
        "found = [name for name in sys.modules if name not in before]\n"
        f"print([name for name in {heavy} if name in found])\n"
        "print(sum(not name.startswith('tenfold') for name in found), len(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, counts = done.stdout.splitlines()
    assert found == "[]"
    others, all_of_them = map(int, counts.split())
    assert others <= 36  # those of other Pythons too; of 3.11 there are 29
    assert all_of_them <= 450
