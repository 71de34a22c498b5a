"""Work in the background: Ctrl-C while a kernel is compiled, forks, failures, the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.errors import CompileError
from tenfold.jit import compile_thread, program
from tenfold.jit.compile_thread import CompileThread
from tenfold.jit.object_image import ObjectImage
from tenfold.ops.arithmetic import add
from tenfold.schedule.generic_elementwise import GenericElementwise
from tenfold.testing import assert_equal_bits

LONG = 60.0
"""Seconds after which a test that waits for ever gives up."""
FLOAT64 = np.dtype("float64")
PLANNED = {"fast": True, "cache": False}
"""Options under which a small graph is planned when it comes first, and compiled quickly."""


@pytest.fixture
def on_signal() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Takes what is to happen in the main thread when SIGUSR1 comes."""
    before = signal.getsignal(signal.SIGUSR1)

    def handle(react: Callable[[], object]) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: react())

    yield handle
    signal.signal(signal.SIGUSR1, before)


def test_a_failure_comes_to_who_waits_with_its_cause() -> None:
    work: CompileThread[int] = CompileThread()

    def fail() -> int:
        raise ValueError("refused") from KeyError("why")

    for _ in range(2):
        with pytest.raises(ValueError, match="refused") as found:
            work.run("it", fail)
        assert isinstance(found.value.__cause__, KeyError)
    assert work.run("it", lambda: 7) == 7


def test_equal_requests_wait_and_others_come_after() -> None:
    work: CompileThread[int] = CompileThread()
    begun, freed = threading.Event(), threading.Event()
    calls = []

    def slow() -> int:
        begun.set()
        assert freed.wait(LONG)
        calls.append("slow")
        return len(calls)

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(work.run, "same", slow)
        assert begun.wait(LONG)
        second = threads.submit(work.run, "same", slow)
        other = threads.submit(work.run, "other", lambda: 7)
        while second.running() and len(work._tasks) < 2:
            pass
        freed.set()
        assert first.result(LONG) == 1
        assert other.result(LONG) == 7
        assert second.result(LONG) in (1, len(calls))
    assert calls[0] == "slow"


def test_nobody_waits_for_what_is_only_begun() -> None:
    work: CompileThread[int] = CompileThread()
    freed = threading.Event()

    def slow() -> int:
        assert freed.wait(LONG)
        return 1

    assert not work.is_running("it")
    assert work.try_start("it", slow)
    assert work.is_running("it")
    for name in ("it", "other"):  # one at a time, so that an exit waits for one
        assert not work.try_start(name, lambda: 2)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(work.run, "it", lambda: 3)
        while not waiting.running():
            pass
        freed.set()
        assert waiting.result(LONG) in (1, 3)
    work.wait_idle()
    assert not work.is_running("it")
    assert not work._tasks
    assert work.try_start("other", lambda: 4)


def test_background_compilation_may_fail() -> None:
    work: CompileThread[int] = CompileThread()

    def fail() -> int:
        raise ValueError("refused")

    assert work.try_start("it", fail)
    work.wait_idle()
    assert not work._tasks
    assert work.run("it", lambda: 7) == 7


def test_ctrl_c_frees_who_waits_and_the_work_goes_on() -> None:
    work: CompileThread[str] = CompileThread()
    freed = threading.Event()
    calls = []

    def uninterruptible() -> str:
        calls.append(threading.current_thread())
        os.kill(os.getpid(), signal.SIGINT)
        assert freed.wait(LONG)  # as long as the caller waits, nobody sets it
        return "made"

    with pytest.raises(KeyboardInterrupt):
        work.run("it", uninterruptible)
    freed.set()
    calls[0].join(LONG)
    assert not work._tasks
    assert len(calls) == 1


def test_a_signal_handler_may_ask_for_more_while_its_thread_waits(
    on_signal: Callable[[Callable[[], object]], None],
) -> None:
    work: CompileThread[int] = CompileThread()
    found: list[int] = []
    on_signal(lambda: found.append(work.run("inner", lambda: 2)))

    def outer() -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        return 1

    assert work.run("outer", outer) == 1
    while not found:
        pass
    assert found == [2]


def test_the_child_of_a_fork_in_a_signal_handler_has_the_result_too(
    on_signal: Callable[[Callable[[], object]], None],
) -> None:
    work: CompileThread[int] = CompileThread()
    children: list[int] = []
    on_signal(lambda: children.append(os.fork()))

    def outer() -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        return 5

    try:
        result = work.run("outer", outer)
        while not children:
            pass
    finally:
        if children and children[0] == 0:
            os._exit(result)
    _, status = os.waitpid(children[0], 0)
    assert (result, os.waitstatus_to_exitcode(status)) == (5, 5)


def test_work_whose_thread_a_fork_has_lost_is_done_by_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: CompileThread[int] = CompileThread()
    monkeypatch.setattr(compile_thread._CompileTask, "start", lambda _: None)
    assert work.run("it", lambda: 3) == 3


def test_where_no_thread_can_be_had_the_caller_does_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(compile_thread._CompileTask, "start", start)
    assert CompileThread[int]().run("it", lambda: 3) == 3


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
import tenfold as tn
from tenfold.jit import program
tn.set_options(device="cpu", tier=1)
x = tn.asarray(np.arange(100.0))
x.wait()
(x + 1).wait()  # the compiler has been started
freed = threading.Event()
compiled = program.compile_ir
def slow(*arguments):
    found = compiled(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
    assert freed.wait(60)
    return found
program.compile_ir = slow
y = tn.exp(x) * 3 - x
try:
    y.wait()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", flush=True)  # else a child of a fork may print it, too
program.compile_ir = compiled
"""
THEN = {
    "the same and others are computed": """
freed.set()
n = np.arange(100.0)
a, b, c = np.asarray(y), np.asarray(tn.exp(x) * 3 - x), np.asarray(tn.cos(x) - 7)
wanted = np.exp(n) * 3 - n
print((a == b).all(), np.allclose(a, wanted, 1e-15), np.allclose(c, np.cos(n) - 7, 1e-15))
""",
    "a child of a fork computes": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
threading.Timer(0.05, freed.set).start()
child = os.fork()
if child == 0:
    signal.alarm(60)
    same, other = np.asarray(y), np.asarray(tn.sqrt(x * 2))
    ok = np.isfinite(same).all() and other[2] == 2.0
    sys.stdout.flush()
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.asarray(y)[0] == 3.0)
""",
    "the interpreter ends": "freed.set()",
}
PRINTED = ("True True True\n", "0 True\n", "")


@pytest.mark.parametrize(("what", "printed"), [*zip(THEN, PRINTED, strict=True)])
def test_after_ctrl_c_amid_compiling(what: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED + THEN[what]],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == "interrupted\n" + printed


def test_program_compiled_after_ctrl_c_is_kept(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    compiled = program.compile_ir
    threads: list[threading.Thread] = []

    def interrupting(text: str, cpu: str, level: int) -> ObjectImage:
        threads.append(threading.current_thread())
        found = compiled(text, cpu, level)
        if len(threads) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupted.wait(LONG)
        return found

    interrupted = threading.Event()
    monkeypatch.setattr(program, "compile_ir", interrupting)
    with tn.options(device="cpu", tier=1):
        x = tn.asarray(np.arange(50.0))
        y = x * 3.5 - 0.125
        with pytest.raises(KeyboardInterrupt):
            y.wait()
        with tn.profile() as p:
            interrupted.set()
            threads[0].join(LONG)
            assert_equal_bits(y, np.arange(50.0) * 3.5 - 0.125)
    assert len(threads) == 1
    assert p.compiles == 0, "that of an earlier block is none of this one"


def test_a_kernel_refused_in_the_background_names_its_cause(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    monkeypatch.setattr(program, "render", lambda *_, **__: "nonsense")
    options = tn.options(device="cpu", tier="0")
    with options, pytest.raises(CompileError, match="LLVM refuses") as found:
        (tn.asarray(np.arange(5.0)) * 2 + 0.0625).wait()
    assert isinstance(found.value.__cause__, RuntimeError)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until this is set nothing is compiled with optimisation."""
    freed, compiled = threading.Event(), program.compile_ir

    def slow(text: str, cpu: str, level: int) -> ObjectImage:
        assert level != program.OPTIMISED or freed.wait(LONG)
        return compiled(text, cpu, level)

    monkeypatch.setattr(program, "compile_ir", slow)
    yield freed
    freed.set()


LONGEST_REPLAY = _native.replays_until_lookup(99)
"""Launches after which a plan looks for the optimised kernel at the latest."""


def test_a_small_kernel_that_comes_often_is_optimised_while_others_use_it(
    own_programs: None, held: threading.Event
) -> None:
    x = np.arange(23.0)

    def result() -> tn.Array:
        return tn.asarray(x) * 9.625 + tn.sqrt(tn.asarray(x))

    with tn.options(**PLANNED):
        expected = np.asarray(result())
        for _ in range(200):  # it is compiled all the while
            assert_equal_bits(result(), expected)
        assert "compiled quickly (tier 0)" in result().explain("executed")
        held.set()
        program.PROGRAMS.wait_idle()
        for _ in range(LONGEST_REPLAY):
            assert_equal_bits(result(), expected)
        assert "with optimisation (tier 1)" in result().explain("executed")


def test_a_profile_counts_no_background_work_of_an_earlier_block(
    own_programs: None, held: threading.Event
) -> None:
    x = np.arange(31.0)

    def result() -> tn.Array:
        return tn.asarray(x) * 9.125 + tn.sqrt(tn.asarray(x))

    with tn.options(**PLANNED):
        with tn.profile() as begins:
            for _ in range(_native.TIERS.optimised_launches + _native.replays_until_lookup(0)):
                result().wait()
        with tn.profile() as ends:
            held.set()
            program.PROGRAMS.wait_idle()
    assert (begins.compiles, begins.background_compiles) == (1, 1)
    assert (ends.compiles, ends.background_compiles) == (0, 0)


def test_a_kernel_that_several_wait_for_is_counted_once(
    own_programs: None, held: threading.Event
) -> None:
    loop = GenericElementwise(add, (), ((FLOAT64, False),) * 2, (FLOAT64,) * 2, FLOAT64, "11")
    programs = program.PROGRAMS
    with ThreadPoolExecutor(3) as threads, tn.profile() as p:
        waiting = [
            threads.submit(programs.compile, loop, "native", optimised=True) for _ in range(3)
        ]
        while not programs._background.busy() or not all(each.running() for each in waiting):
            pass
        held.set()
        assert len({each.result(LONG) for each in waiting}) == 1
    assert p.compiles == 1


def test_a_kernel_that_cannot_be_optimised_goes_on_as_it_is(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    compiled, refused = program.compile_ir, []

    def refuse(text: str, cpu: str, level: int) -> ObjectImage:
        if level == program.OPTIMISED:
            refused.append(text)
            raise CompileError("compile", "it is refused", remedy="none")
        return compiled(text, cpu, level)

    monkeypatch.setattr(program, "compile_ir", refuse)
    x = np.arange(29.0)
    with tn.options(**PLANNED):
        for _ in range(100):
            assert_equal_bits(tn.asarray(x) * 11.875, x * 11.875)
    program.PROGRAMS.wait_idle()
    assert refused


DAEMONS = """
import itertools, threading, time
import numpy as np
import tenfold as tn

x, numbers = tn.asarray([1.0, 2.0, 3.0]), itertools.count(1)

def compile_for_ever():
    with tn.options(fast=True, cache=False):  # each is planned at once, as a kernel of its own
        for number in numbers:
            y = x
            for bit in range(20):
                y = y * 1.5 + x if number >> bit & 1 else y - tn.sqrt(x)
            np.array(y)

for _ in range(8):
    threading.Thread(target=compile_for_ever, daemon=True).start()
while next(numbers) < 20:
    time.sleep(0.05)
"""


def test_the_interpreter_ends_though_daemon_threads_go_on_compiling() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
