"""The sequential interpreter: what every handle of a program has, said without any engine.

Takes a program, and which of its `Cancel` statements came in time, which an engine alone knows;
hands on an `Outcome` for each handle. A handle names one version of an object for ever. Operators
in place and cumulative ones apply to the newest version of the object that a handle names, in the
order of the pushes, and make its next; every other operator makes a new object. What failed or was
cancelled poisons whatever was pushed on it; of several reasons any may be told.

>>> from program_statements import Push, Put
>>> [outcome.value for outcome in interpret((Put((1, 2)), Push("add", (0, 0))), [])]
[(1, 2), (2, 4)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from program_operators import OPERATIONS, Odd
from program_statements import Cancel, Drop, Flush, Program, Push, Put, Read, Value, flat, makers

CANCELLED = "cancelled"
CHANGES = ("in_place", "cumulative")
"""Forms of operators that make the next version of their first input's object."""


@dataclass(frozen=True)
class Outcome:
    """A value, or why there is none: texts of errors, or `CANCELLED`; any of them may be told.

    `ran` says that the operator must have run, unless nobody could see it; `may` that it may have:
    a cumulative one does not see its target, so that it runs or not where the target failed. Later
    versions of its object may tell the reasons of `later` besides: why it would have failed had it
    not been cancelled.
    """

    value: Value | None = None
    reasons: frozenset[str] = frozenset()
    ran: bool = False
    may: bool = False
    later: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return " or ".join(sorted(self.reasons)) if self.reasons else str(self.value)


def takes(program: Program) -> list[tuple[int, ...]]:
    """Return the handles whose values each handle's operator takes: of a target the newest."""
    objects: list[int] = []
    newest: dict[int, int] = {}
    found: list[tuple[int, ...]] = []
    for handle, made in enumerate(makers(program)):
        inputs = made.inputs if isinstance(made, Push) else ()
        if isinstance(made, Push) and OPERATIONS[made.operator].form in CHANGES:
            objects.append(objects[inputs[0]])
            inputs = (newest[objects[handle]], *inputs[1:])
        else:
            objects.append(handle)
        newest[objects[handle]] = handle
        found.append(inputs)
    return found


def interpret(program: Program, in_time: Sequence[bool]) -> list[Outcome]:
    """Return what each handle has. `in_time` says of each `Cancel`, in order, whether it was."""
    asked = [each.handle for each in flat(program) if isinstance(each, Cancel)]
    cancelled = {handle for handle, timely in zip(asked, in_time, strict=True) if timely}
    outcomes: list[Outcome] = []
    for handle, (made, inputs) in enumerate(zip(makers(program), takes(program), strict=True)):
        if isinstance(made, Put):
            outcomes.append(Outcome(made.value))
            continue
        outcome = pushed(made.operator, [outcomes[each] for each in inputs])
        if handle in cancelled:  # perhaps for the second time: it may have been poisoned before
            may, later = outcome.may and not outcome.ran, outcome.reasons | outcome.later
            outcome = Outcome(reasons=frozenset({CANCELLED}), may=may, later=later)
        outcomes.append(outcome)
    return outcomes


def pushed(name: str, inputs: Sequence[Outcome]) -> Outcome:
    """Return the outcome of an operator whose inputs have these."""
    operation = OPERATIONS[name]
    reasons = frozenset[str]().union(*(each.reasons for each in inputs))
    if operation.form in CHANGES:
        reasons |= inputs[0].later
    if reasons:
        blind = operation.form == "cumulative" and not any(each.reasons for each in inputs[1:])
        return Outcome(reasons=reasons, may=blind)
    try:
        value = operation.meaning(*(each.value for each in inputs))
    except Odd as error:
        return Outcome(reasons=frozenset({str(error)}), ran=True, may=True)
    return Outcome(value, ran=True, may=True)


def runs(program: Program, outcomes: Sequence[Outcome]) -> tuple[Counter[str], Counter[str]]:
    """Return how often each operator must run at least, and may run at most.

    What nobody can see of pure work need not run; all else runs once. A batch of pure work that has
    failed is tried again, one by one.
    """
    needed = seen(program, outcomes)
    least, most = Counter[str](), Counter[str]()
    for handle, made in enumerate(makers(program)):
        if isinstance(made, Push):
            operation, outcome = OPERATIONS[made.operator], outcomes[handle]
            least[made.operator] += outcome.ran and handle in needed
            again = operation.pure and operation.fails and operation.form == "batched"
            most[made.operator] += outcome.may * (2 if again else 1)
    return least, most


def seen(program: Program, outcomes: Sequence[Outcome]) -> set[int]:
    """Return the handles whose work somebody can see: kept, waited for, impure, needed by such.

    Work that never ran, because something before it failed, needs nothing. A cumulative operator
    needs its target where its sum is asked for; its increment needs the other inputs alone.
    """
    dropped = {each.handle for each in flat(program) if isinstance(each, Drop)}
    wanted = {each.handle for each in flat(program) if isinstance(each, Read | Flush)}
    made, taken = makers(program), takes(program)
    wanted |= set(range(len(made))) - dropped
    found = set()
    for handle in reversed(range(len(made))):
        maker = made[handle]
        operation = OPERATIONS[maker.operator] if isinstance(maker, Push) else None
        if handle in wanted or (operation and not operation.pure):
            found.add(handle)
            if operation and outcomes[handle].ran:
                blind = operation.form == "cumulative" and handle not in wanted
                wanted.update(taken[handle][blind:])
    return found
