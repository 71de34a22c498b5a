"""The end of work: of what operators push while they run, of an engine, of the interpreter."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import tenfold as tn
from test_fork_and_exit import run

PATIENCE = 60


class Countdown(tn.Operator):
    """Notes a number, and pushes itself on the next lower one."""

    def __init__(self, engine: tn.Engine) -> None:
        self.engine = engine
        self.seen: list[int] = []

    def run(self, number: int) -> int:
        self.seen.append(number)
        if number:
            self.engine.push(self, number - 1)
        return number


class Ever(tn.Operator):
    """Pushes itself for ever."""

    def __init__(self, engine: tn.Engine) -> None:
        self.engine, self.runs = engine, 0

    def run(self) -> None:
        self.runs += 1
        self.engine.push(self)


class Wait(tn.Operator):
    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def run(self) -> None:
        self.begun.set()
        assert self.open.wait(PATIENCE)


def push_for_ever(engine: tn.Engine) -> None:
    while True:
        engine.push(tn.operators.add, 1.0, 2.0)


@contextmanager
def interrupted() -> Iterator[None]:
    """Interrupt the block, which must end by that."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_flush_waits_for_what_operators_push(threads: int) -> None:
    with tn.Engine(threads=threads) as engine:
        for _ in range(20):
            count = Countdown(engine)
            engine.push(count, 30)
            engine.flush()
            assert count.seen == [*range(30, -1, -1)]
            assert engine.stats()["pending"] == 0


def test_flush_waits_for_increments_that_operators_push() -> None:
    class Add(tn.CumulativeOperator):
        pass

    class Adds(tn.Operator):
        def __init__(self, engine: tn.Engine, total: tn.Handle) -> None:
            self.engine, self.handles = engine, [total]

        def run(self, x: int) -> None:
            self.handles.append(self.engine.push(Add(), self.handles[0], x))

    with tn.Engine(threads=2) as engine:
        adds = Adds(engine, engine.put(0))
        for i in range(10):
            engine.push(adds, i)
        engine.flush()
        assert all(handle.done() for handle in adds.handles)
        assert adds.handles[-1].get() == 45


@pytest.mark.parametrize("threads", [1, 4])
def test_end_of_the_block_waits_for_what_operators_push(threads: int) -> None:
    with tn.Engine(threads=threads) as engine:
        count = Countdown(engine)
        handle = engine.push(count, 200)
    assert count.seen == [*range(200, -1, -1)]
    assert handle.get() == 200


def test_end_under_hold_runs_what_operators_push() -> None:
    engine = tn.Engine(threads=1)
    count = Countdown(engine)
    with engine.hold():
        engine.push(count, 3)
        engine.shutdown()
    assert count.seen == [3, 2, 1, 0]


def test_push_from_outside_raises_once_the_engine_is_about_to_end() -> None:
    engine, wait = tn.Engine(threads=1), Wait()
    count = Countdown(engine)
    engine.push(wait)
    engine.push(count, 2)
    ending = threading.Thread(target=engine.shutdown)
    ending.start()
    with pytest.raises(RuntimeError, match="shut down"):
        push_for_ever(engine)
    wait.open.set()
    ending.join(PATIENCE)
    assert not ending.is_alive()
    assert engine.closed
    assert count.seen == [2, 1, 0]


def test_interrupt_ends_a_flush_of_what_pushes_for_ever() -> None:
    engine = tn.Engine(threads=2)
    ever = Ever(engine)
    engine.push(ever)
    with interrupted():
        engine.flush()
    assert engine.push(tn.operators.add, 1.0, 2.0).get(timeout=PATIENCE) == 3.0
    engine.shutdown(wait=False)


def test_interrupt_ends_a_block_whose_operators_push_for_ever() -> None:
    with interrupted(), tn.Engine(threads=2) as engine:
        engine.push(Ever(engine))
    assert engine.closed


def test_interrupt_of_a_shutdown_leaves_the_engine_usable() -> None:
    engine, wait = tn.Engine(threads=1), Wait()
    engine.push(wait)
    with interrupted():
        engine.shutdown()
    wait.open.set()
    assert engine.push(tn.operators.add, 1.0, 2.0).get(timeout=PATIENCE) == 3.0
    engine.shutdown()
    assert engine.closed


def test_block_of_an_engine_that_was_shut_down_raises() -> None:
    engine = tn.Engine(threads=1)
    engine.shutdown()
    with pytest.raises(RuntimeError, match=r"with: .*shut down"), engine:
        pass


def test_shutdown_inside_an_operator_raises() -> None:
    class Ends(tn.Operator):
        def run(self, engine: tn.Engine) -> None:
            engine.shutdown()

    with tn.Engine(threads=1) as engine:
        with pytest.raises(tn.errors.RunError, match="shutdown: an operator waits"):
            engine.push(Ends(), engine).get()
        assert not engine.closed


def test_engines_end_while_their_operators_run() -> None:
    for number in range(300):
        engine, wait = tn.Engine(threads=2), Wait()
        engine.push(wait)
        assert wait.begun.wait(PATIENCE)
        wait.open.set()
        engine.shutdown(wait=False)
        for _ in range(100 * number):  # its worker ends meanwhile, and comes for the GIL
            pass
        del engine


def test_operators_of_two_engines_may_wait_for_each_other() -> None:
    meeting = threading.Barrier(2)

    class Meets(tn.Operator):
        def run(self) -> int:
            return meeting.wait(PATIENCE)

    with tn.Engine(threads=1) as one, tn.Engine(threads=1) as other:
        handles = [engine.push(Meets()) for engine in (one, other)]
        assert sorted(handle.get() for handle in handles) == [0, 1]


def gone(reference: Callable[[], object]) -> bool:
    """Whether something dies without a call of Tenfold."""
    until = time.monotonic() + PATIENCE
    while reference() is not None and time.monotonic() < until:
        threading.Event().wait(0.001)
    return reference() is None


def test_objects_of_the_last_operator_are_freed_without_another_call() -> None:
    class Thing:
        pass

    class Drops(tn.Operator):
        def __init__(self, thing: Thing) -> None:
            self.thing, self.open = thing, threading.Event()

        def run(self, x: Thing) -> None:
            self.open.wait(PATIENCE)

    engine, thing, other = tn.Engine(threads=1), Thing(), Thing()
    drops = Drops(thing)
    references, opens = [weakref.ref(thing), weakref.ref(other)], drops.open
    engine.push(drops, other)
    del thing, other, drops
    assert all(reference() is not None for reference in references)
    opens.set()
    assert all(gone(reference) for reference in references)
    engine.shutdown()


def test_engine_that_only_its_operators_hold_ends_with_them() -> None:
    engine = tn.Engine(threads=1)
    wait, count = Wait(), Countdown(engine)
    engine.push(wait)
    engine.push(count, 3)
    reference, seen = weakref.ref(engine), count.seen
    del engine, count
    wait.open.set()
    assert gone(reference)
    assert seen == [3, 2, 1, 0]


def test_impure_work_runs_at_the_end_of_the_interpreter() -> None:
    code, out, err = run(
        """
        import tenfold as tn
        class Save(tn.Operator):
            def __init__(self, engine): self.engine = engine
            def run(self, x):
                print(f"saved {x}\\n", end="", flush=True)
                if x < 3: self.engine.push(self, x + 1)
        class Pure(tn.Operator):
            pure = True
            def run(self, x): print("computed", flush=True); return x
        class Needed(Pure):
            def run(self, x): return x
        holds = []
        for engine in (tn.Engine(threads=1), tn.engine()):
            holds.append(engine.hold()); holds[-1].__enter__()
            engine.push(Save(engine), engine.push(Needed(), 1))
            kept = engine.push(Pure(), engine.push(Pure(), 1))
        print("the end", flush=True)
        """
    )
    assert (code, err) == (0, "")
    first, *saved = out.splitlines()
    assert first == "the end"
    assert sorted(saved) == sorted(["saved 1", "saved 2", "saved 3"] * 2)


def test_operator_that_outlives_the_interpreter_is_told_in_one_line() -> None:
    code, out, err = run(
        """
        import threading
        import tenfold as tn
        from tenfold.engine import engine as module
        module.EXIT_SECONDS = 0.1
        class Stuck(tn.Operator):
            def run(self): threading.Event().wait()
        class Save(tn.Operator):
            def run(self, x): print("saved", flush=True)
        engine = tn.Engine(threads=1)
        stuck = engine.push(Stuck())
        for _ in range(3): engine.push(Save(), stuck)
        print("the end", flush=True)
        """
    )
    assert (code, out) == (0, "the end\n")
    (line,) = err.splitlines()
    assert "cancelled 0.1 s after the end" in line
    assert "3 x Save, 1 x Stuck (running)" in line


def test_interpreter_ends_though_operators_push_for_ever() -> None:
    code, out, err = run(
        """
        import tenfold as tn
        from tenfold.engine import engine as module
        module.EXIT_SECONDS = 0.1
        class Ever(tn.Operator):
            def run(self): engine.push(self)
        engine = tn.Engine(threads=2)
        engine.push(Ever())
        print("the end", flush=True)
        """
    )
    assert (code, out) == (0, "the end\n")
    assert "Ever" in err.splitlines()[0]


def test_failure_at_the_end_of_the_interpreter_is_logged() -> None:
    code, _, err = run(
        """
        import tenfold as tn
        class Fails(tn.Operator):
            def run(self): raise ValueError("mine")
        engine = tn.Engine(threads=1)
        hold = engine.hold(); hold.__enter__()
        handle = engine.push(Fails())
        """
    )
    assert code == 0
    assert "Fails failed" in err
    assert "ValueError: mine" in err


def test_interrupt_at_the_end_of_the_interpreter_ends_it() -> None:
    code, _, err = run(
        """
        import threading
        import tenfold as tn
        from tenfold.engine import engine as module
        module.EXIT_SECONDS = 1000.0
        class Stuck(tn.Operator):
            def run(self): print("stuck", flush=True); threading.Event().wait()
        hold = tn.engine().hold(); hold.__enter__()  # until the program has ended
        tn.engine().push(Stuck())
        """,
        interrupt_at="stuck",
    )
    assert code == 0
    assert "Stuck" in err
