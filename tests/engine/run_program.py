"""Runs a program on an engine and compares what every handle has with the sequential interpreter.

Takes an engine and a program; hands on nothing, or raises AssertionError with the program's text.

    conduct(engine, (Put((1, 2)), Push("add", (0, 0))))
"""

from __future__ import annotations

from concurrent.futures import CancelledError

import tenfold as tn
from engine_operators import LOG, export_value, import_value, operator
from program_operators import OPERATIONS, Odd
from program_statements import Cancel, Drop, Flush, Hold, Program, Push, Put, Read, Value, show
from sequential_interpreter import CANCELLED, Outcome, interpret, runs
from watchdog import WATCHDOG

PATIENCE = 30.0
"""Seconds after which a wait for one handle counts as a hang."""

Observed = Value | str
"""What a wait gave: a value, or the text of why there is none."""


class Conductor:
    """The handles of one run, what was seen at each wait, and which cancels came in time."""

    def __init__(self, engine: tn.Engine, batch_limit: int | None) -> None:
        self.engine, self.batch_limit = engine, batch_limit
        self.handles: list[tn.Handle | None] = []
        self.in_time: list[bool] = []
        self.observed: list[tuple[int, Observed]] = []

    def execute(self, program: Program) -> None:
        """Execute every statement in order."""
        for statement in program:
            match statement:
                case Put(value):
                    self.handles.append(self.engine.put(import_value(value)))
                case Push(name, inputs):
                    given = [self.handles[each] for each in inputs]
                    self.handles.append(self.engine.push(operator(name), *given))
                case Cancel(handle):
                    self.in_time.append(self.handle(handle).cancel())
                case Drop(handle):
                    self.handles[handle] = None
                case Read(handle):
                    self.observed.append((handle, observe(self.handle(handle))))
                case Flush(None):
                    self.engine.flush()
                case Flush(handle):
                    self.engine.flush(self.handle(handle))
                case Hold(body):
                    with self.engine.hold():
                        self.execute(body)

    def handle(self, number: int) -> tn.Handle:
        found = self.handles[number]
        assert found is not None, "the program uses a handle that it has dropped"
        return found

    def look(self) -> None:
        """Wait for every handle that is left, the last first."""
        for number, handle in reversed([*enumerate(self.handles)]):
            if handle is not None:
                self.observed.append((number, observe(handle)))

    def compare(self, program: Program) -> list[Outcome]:
        """Compare what was seen with the interpreter, and return what that says."""
        outcomes = interpret(program, self.in_time)
        for number, seen in self.observed:
            assert agrees(seen, outcomes[number]), (
                f"handle {number} has {seen}, and should have {outcomes[number]}"
            )
        self.handles.clear()
        return outcomes

    def count(self, program: Program, outcomes: list[Outcome]) -> None:
        """Compare how often each operator ran, and what is left."""
        self.engine.flush()
        least, most = runs(program, outcomes)
        for name, operation in OPERATIONS.items():
            if operation.form != "compiled":
                found = LOG.runs[name]
                assert least[name] <= found <= most[name], (
                    f"{name} ran {found} times, and should {least[name]} to {most[name]} times"
                )
        assert not LOG.complaints, "; ".join(LOG.complaints)
        if self.batch_limit is not None:
            assert LOG.largest <= self.batch_limit, f"a batch of {LOG.largest}"
        left = self.engine.stats()["live_objects"]
        assert left == 0, f"{left} objects are left when nobody has a handle"


def observe(handle: tn.Handle) -> Observed:
    """Wait for a handle; return its value or why there is none."""
    try:
        return export_value(handle.get(timeout=PATIENCE))
    except CancelledError:
        return CANCELLED
    except tn.errors.RunError as error:
        if not isinstance(error.__cause__, Odd):
            raise
        return str(error.__cause__)


def agrees(seen: Observed, outcome: Outcome) -> bool:
    """Whether what was seen is what a handle has."""
    return seen in outcome.reasons if outcome.reasons else seen == outcome.value


def conduct_beside_others(engine: tn.Engine, program: Program) -> None:
    """Run a program and compare its values alone: others run on the engine, too."""
    conductor = Conductor(engine, None)
    try:
        conductor.execute(program)
        conductor.look()
        conductor.compare(program)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{show(program)}") from error


def conduct(engine: tn.Engine, program: Program, batch_limit: int | None = None) -> None:
    """Run a program and compare. Raises AssertionError with the program's text."""
    LOG.clear()
    WATCHDOG.watch(program)
    conductor = Conductor(engine, batch_limit)
    try:
        conductor.execute(program)
        conductor.look()
        conductor.count(program, conductor.compare(program))
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{show(program)}") from error
    finally:
        WATCHDOG.watch(None)
