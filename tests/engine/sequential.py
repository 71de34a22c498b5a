"""The sequential interpreter: what every handle of a program has, said without any engine.

Takes a program, and which of its `Cancel` statements came in time, which an engine alone knows;
hands on an `Outcome` for each handle. A handle is a value: no later statement changes what it has. What
failed or was cancelled poisons whatever was pushed on it; of several reasons any may be told.

>>> from statements import Push, Put
>>> [outcome.value for outcome in interpret((Put((1, 2)), Push("add", (0, 0))), [])]
[(1, 2), (2, 4)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from statements import Cancel, Drop, Flush, Program, Push, Put, Read, Value, flat, makers
from vocabulary import OPERATIONS, Odd

CANCELLED = "cancelled"


@dataclass(frozen=True)
class Outcome:
    """A value, or why there is none: texts of errors, or `CANCELLED`; any of them may be told."""

    value: Value | None = None
    reasons: frozenset[str] = frozenset()
    ran: bool = False

    def __str__(self) -> str:
        return " or ".join(sorted(self.reasons)) if self.reasons else str(self.value)


def interpret(program: Program, in_time: Sequence[bool]) -> list[Outcome]:
    """Return what each handle has. `in_time` says of each `Cancel`, in order, whether it was."""
    asked = [each.handle for each in flat(program) if isinstance(each, Cancel)]
    cancelled = {handle for handle, timely in zip(asked, in_time, strict=True) if timely}
    outcomes: list[Outcome] = []
    for handle, made in enumerate(makers(program)):
        if handle in cancelled:
            outcomes.append(Outcome(reasons=frozenset({CANCELLED})))
        elif isinstance(made, Put):
            outcomes.append(Outcome(made.value))
        else:
            outcomes.append(pushed(made, [outcomes[each] for each in made.inputs]))
    return outcomes


def pushed(push: Push, inputs: Sequence[Outcome]) -> Outcome:
    """Return the outcome of an operator whose inputs have these."""
    reasons = frozenset[str]().union(*(each.reasons for each in inputs))
    if reasons:
        return Outcome(reasons=reasons)
    try:
        value = OPERATIONS[push.operator].meaning(*(each.value for each in inputs))
    except Odd as error:
        return Outcome(reasons=frozenset({str(error)}), ran=True)
    return Outcome(value, ran=True)


def runs(program: Program, outcomes: Sequence[Outcome]) -> tuple[Counter[str], Counter[str]]:
    """Return how often each operator must run at least, and may run at most.

    What nobody can see of pure work need not run; all else runs once. A batch of pure work that has
    failed is tried again, one by one.
    """
    needed = seen(program, outcomes)
    least, most = Counter[str](), Counter[str]()
    for handle, made in enumerate(makers(program)):
        if isinstance(made, Push) and outcomes[handle].ran:
            operation = OPERATIONS[made.operator]
            least[made.operator] += handle in needed
            again = operation.pure and operation.fails and operation.form == "batched"
            most[made.operator] += 2 if again else 1
    return least, most


def seen(program: Program, outcomes: Sequence[Outcome]) -> set[int]:
    """Return the handles that somebody can see: kept, waited for, impure, or needed by such.

    Work that never ran, because something before it failed, needs nothing.
    """
    dropped = {each.handle for each in flat(program) if isinstance(each, Drop)}
    awaited = {each.handle for each in flat(program) if isinstance(each, Read | Flush)}
    made = makers(program)
    found: set[int] = set()
    for handle in reversed(range(len(made))):
        maker = made[handle]
        must = isinstance(maker, Push) and not OPERATIONS[maker.operator].pure
        if handle in found or handle not in dropped or handle in awaited or must:
            found.add(handle)
            if isinstance(maker, Push) and outcomes[handle].ran:
                found.update(maker.inputs)
    return found
