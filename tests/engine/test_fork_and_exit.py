"""Engines in processes that fork, spawn, are interrupted and end with work that is pending."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from pool_worker import push_and_return, twice, twice_by_default

PATIENCE = 60


def run(code: str, *, interrupt_at: str | None = None) -> tuple[int, str, str]:
    """Run a program in a process of its own; Ctrl-C it when it has printed a line of that text."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = ""
    try:
        if interrupt_at is not None:
            assert process.stdout is not None
            while interrupt_at not in seen:
                line = process.stdout.readline()
                assert line, "the process ended too early"
                seen += line
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, seen + out, err


@pytest.mark.cpu
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_engines_work_in_pools_of_processes(method: str) -> None:
    assert twice(1.0) == twice_by_default(1.0) == 2.0
    with multiprocessing.get_context(method).Pool(2) as pool:
        for function in (twice, twice_by_default):
            assert pool.map_async(function, [1.0, 2.0, 3.0]).get(PATIENCE) == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_impure_work_runs_at_the_end_of_a_process(method: str, tmp_path: Path) -> None:
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=push_and_return, args=(str(tmp_path / "file"),))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert (tmp_path / "file").read_text(encoding="utf-8") == "written"


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_of_a_fork_is_told_that_pending_handles_are_the_parents() -> None:
    with tn.Engine(threads=2) as engine, engine.hold():
        done = engine.put(np.ones(2))
        pending = engine.push(tn.operators.add, done, 1.0)
        child = os.fork()
        if child == 0:
            os._exit(child_sees(engine, done, pending))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    assert pending.get().tolist() == [2.0, 2.0]


def child_sees(engine: Any, done: Any, pending: Any) -> int:
    """Return 0 if the child of a fork may read what is there, and is told of all else."""
    try:
        if done.get().tolist() != [1.0, 1.0]:
            return 1
        for use in (pending.get, engine.flush, lambda: engine.push(tn.operators.add, 1.0, 1.0)):
            try:
                use()
            except RuntimeError as error:
                if "fork" not in str(error):
                    return 2
            else:
                return 3
    except BaseException:  # noqa: BLE001  # the child must not go on as the parent would
        return 4
    return 0


def test_process_ends_with_ten_thousand_operators_pending() -> None:
    code, out, err = run(
        """
        import tenfold as tn
        import numpy as np
        class Slow(tn.Operator):
            def run(self, x): return x
        engine = tn.Engine(threads=2)
        x = engine.put(np.ones(3))
        handles = [engine.push(Slow(), x) for _ in range(5000)]
        hold = engine.hold(); hold.__enter__()
        handles += [engine.push(tn.operators.add, x, 1.0) for _ in range(5000)]
        default = [tn.engine().push(tn.operators.add, 1.0, 1.0) for _ in range(100)]
        print("the end")
        """
    )
    assert (code, out, err) == (0, "the end\n", "")


def test_process_ends_though_an_operator_waits_for_ever() -> None:
    code, out, _ = run(
        """
        import threading
        import tenfold as tn
        from tenfold.engine import engine
        engine.EXIT_SECONDS = 0.1
        class Stuck(tn.Operator):
            def run(self): threading.Event().wait()
        handle = tn.Engine(threads=1).push(Stuck())
        print("the end", flush=True)
        """
    )
    assert (code, out) == (0, "the end\n")


def test_interrupt_of_a_wait_ends_it_and_the_engine_goes_on() -> None:
    code, out, err = run(
        """
        import threading
        import tenfold as tn
        gate = threading.Event()
        class Gate(tn.Operator):
            def run(self):
                gate.wait()
                return 1
        engine = tn.Engine(threads=1)
        handle = engine.push(Gate())
        try:
            print("waiting", flush=True)
            handle.get()
        except KeyboardInterrupt:
            print("interrupted")
        gate.set()
        print(handle.get(), engine.push(tn.operators.add, 1.0, 2.0).get())
        """,
        interrupt_at="waiting",
    )
    assert (code, err) == (0, "")
    assert out == "waiting\ninterrupted\n1 3.0\n"


def test_exception_inside_the_block_ends_the_process_with_it() -> None:
    code, _, err = run(
        """
        import tenfold as tn
        with tn.Engine(threads=2) as engine:
            handles = [engine.push(tn.operators.add, 1.0, 2.0) for _ in range(1000)]
            raise ValueError("mine")
        """
    )
    assert code == 1
    assert err.splitlines()[-1] == "ValueError: mine"
