"""Random programs: their making, their running by Tenfold and by NumPy, and the comparison.

Takes a source of choices, hands on a Program whose text a user could have written; a difference
between Tenfold and NumPy is an AssertionError that prints a small program which shows it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn

from . import error_bounds
from .error_bounds import Bounded
from .expression_draft import Draft, Name, Source
from .expression_forms import ARITHMETIC, DISCRETE, ELEMENTARY, FOLDING, Drawn, Form
from .leaves import Leaf, draw_leaf
from .movement_forms import MOVING

FAMILIES: list[list[Form]] = [ARITHMETIC, ARITHMETIC, DISCRETE, FOLDING, MOVING, ELEMENTARY]
LONGEST = 40


class Step(NamedTuple):
    """One line: `target = text`, or `target op= text` where `symbol` is set."""

    target: Name
    drawn: Drawn | Leaf
    symbol: str = ""

    @property
    def line(self) -> str:
        return f"{self.target} {self.symbol}= {self.drawn.text}"


Program = Sequence[Step]
Arrays = dict[Name, Bounded]


def generate(source: Source) -> list[Step]:
    """Make a program of 1 to 40 operations over 1 to 4 leaves."""
    draft = Draft(source)
    steps: list[Step] = []
    for _ in range(draft.integer(1, 4)):
        _append(steps, draft, draw_leaf(draft))
    for _ in range(draft.integer(1, LONGEST)):
        if draft.integer(0, 9) == 0:
            step = _assignment(draft, steps)
            if step is not None:
                take_step(step, draft.arrays)
                steps.append(step)
            continue
        drawn = draft.choose(draft.choose(FAMILIES))(draft)
        if drawn is not None:
            _append(steps, draft, drawn)
    return steps


def _append(steps: list[Step], draft: Draft, drawn: Drawn | Leaf) -> None:
    step = Step(Name(f"v{len(draft.arrays)}"), drawn)
    take_step(step, draft.arrays)
    steps.append(step)


ASSIGNING: dict[str, Callable[..., Bounded]] = {
    "+": error_bounds.add,
    "-": error_bounds.subtract,
    "*": error_bounds.multiply,
    "/": error_bounds.divide,
}


def _assignment(draft: Draft, steps: Program) -> Step | None:
    """`x op= e` on a whole array: the shape stays, and the dtype by the same-kind rule."""
    whole = [
        step.target for step in steps if not isinstance(step.drawn, Drawn) or not step.drawn.view
    ]
    target = draft.choose(whole)
    pair = draft.pair("biufc" if target else "", near=target)
    symbol = draft.choose(list(ASSIGNING))
    if pair is None:
        return None
    operand, x = pair[0], draft.value(target)
    if isinstance(operand, Name) and draft.value(operand).shape not in ((), x.shape):
        return None
    result = error_bounds.common(x, draft.arrays.get(operand, operand))
    if symbol == "/" and error_bounds.kind(result) in "biu":
        result = np.dtype(np.float64)
    if (symbol == "-" and result == np.bool_) or not _same_kind(result, x.dtype):
        return None
    if not isinstance(operand, Name) and x.kind == "u" and not 0 <= operand.real <= 255:
        return None
    return Step(target, Drawn(repr(operand), (target, operand), ASSIGNING[symbol]), symbol)


def _same_kind(source: np.dtype, target: np.dtype) -> bool:
    order = "buifc"
    return order.index(error_bounds.kind(source)) <= order.index(error_bounds.kind(target))


def take_step(step: Step, arrays: Arrays) -> None:
    """Have NumPy take one step: views share memory, everything else has its own."""
    drawn = step.drawn
    if isinstance(drawn, Leaf):
        arrays[step.target] = error_bounds.exact(drawn.values)
        return
    with np.errstate(all="ignore"):
        result = drawn.function(
            *(arrays.get(each, each) if isinstance(each, Name) else each for each in drawn.operands)
        )
    if step.symbol:
        target = arrays[step.target]
        with np.errstate(all="ignore"):
            result = error_bounds.cast(result, target.dtype)
        np.copyto(target.values, result.values)
        np.copyto(target.error, result.error)
    elif drawn.view:
        arrays[step.target] = result
    else:
        arrays[step.target] = Bounded(
            np.array(result.values, order="C"), np.array(result.error, np.float64, order="C")
        )


def expected(program: Program) -> Arrays:
    """What NumPy makes of a program: every array, as it is at the end."""
    arrays: Arrays = {}
    for step in program:
        take_step(step, arrays)
    return arrays


def built(program: Program, waits: frozenset[int] = frozenset()) -> dict[Name, tn.Array]:
    """Run a program's text with Tenfold; after the lines `waits` the newest array is computed."""
    scope: dict[str, Any] = {"tn": tn, "np": np}
    lines = []
    for number, step in enumerate(program):
        if isinstance(step.drawn, Leaf):
            scope[f"leaf{number}"] = step.drawn.imported()
            lines.append(f"{step.target} = leaf{number}")
        else:
            lines.append(step.line)
        if number in waits:
            lines.append(f"{step.target}.wait()")
    exec(compile("\n".join(lines), "<program>", "exec"), scope)
    return {step.target: scope[step.target] for step in program}


Values = dict[Name, np.ndarray]


def one_by_one(arrays: dict[Name, tn.Array], order: Sequence[Name]) -> Values:
    return {name: np.asarray(arrays[name]) for name in order}


def together(arrays: dict[Name, tn.Array], order: Sequence[Name]) -> Values:
    half = len(order) // 2
    if half:
        tn.eval(*(arrays[name] for name in order[:half]))
    tn.eval(*(arrays[name] for name in order))
    return one_by_one(arrays, order)


def by_two_threads(arrays: dict[Name, tn.Array], order: Sequence[Name]) -> Values:
    """Compute all arrays on two threads at once, in opposite orders; both must see the same."""
    with ThreadPoolExecutor(2) as threads:
        orders = (order, order[::-1])
        first, second = threads.map(lambda names: one_by_one(arrays, names), orders)
    for name in order:
        if first[name].tobytes() != second[name].tobytes():
            raise AssertionError(f"two threads saw different values of {name}")
    return first


MANNERS = (one_by_one, together, by_two_threads)


def check(program: Program, choices: random.Random) -> None:
    """Run a program in a random manner and compare every array of it with NumPy's."""
    order = [step.target for step in program if not step.symbol]
    choices.shuffle(order)
    waits = frozenset(i for i in range(len(program)) if choices.random() < 0.05)
    manner = choices.choice(MANNERS)
    wrong = difference(program, lambda arrays: manner(arrays, order), waits)
    if wrong:
        raise AssertionError(report(program, wrong, manner.__name__))


def difference(
    program: Program,
    compute: Callable[[dict[Name, tn.Array]], Values] | None = None,
    waits: frozenset[int] = frozenset(),
) -> str:
    """Say where Tenfold's values are not NumPy's; nothing when they all are."""
    wanted = expected(program)
    try:
        arrays = built(program, waits)
        found = compute(arrays) if compute else one_by_one(arrays, list(arrays))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is reported
        return f"{type(error).__name__}: {error}"
    for name in wanted:
        text = compare(found[name], wanted[name])
        if text:
            return f"{name}: {text}"
    return ""


def compare(found: np.ndarray, wanted: Bounded) -> str:
    """Say where an array is further from what is wanted than the bound; nothing if nowhere."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return (
            f"{found.dtype}{list(found.shape)} where NumPy has {wanted.dtype}{list(wanted.shape)}"
        )
    real = found.dtype.kind != "c"
    kinds = np.float64 if real else np.complex128
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(kinds) - wanted.values.astype(kinds))
        nan = (found != found) & (wanted.values != wanted.values)
        bits = _same_bits(found, wanted.values)
        good = bits | nan | (distance <= wanted.error) & (wanted.error > 0)
        good |= wanted.error == np.inf
    if good.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(np.asarray(~good))[0])
    return f"{found[at]!r} at {at}, where NumPy has {wanted.values[at]!r} +- {wanted.error[at]:.3g}"


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "c":
        return _same_bits(a.real, b.real) & _same_bits(a.imag, b.imag)
    unsigned = np.dtype(f"uint{8 * a.dtype.itemsize}")
    rows = (np.array(x, order="C").view(unsigned) for x in (a, b))
    return np.asarray(np.equal(*rows))


def report(program: Program, wrong: str, manner: str) -> str:
    """Print a small program that still differs, or the whole one if only this run of it did."""
    small = reduced(list(program))
    if not difference(small):
        return f"{wrong}\n(only when run {manner})\n{text_of(program)}"
    return f"{difference(small)}\n{text_of(small)}"


def text_of(program: Program) -> str:
    """A program as a user can run it."""
    head = ["import numpy as np", "import tenfold as tn", "nan, inf = np.nan, np.inf"]
    return "\n".join([*head, *(step.line for step in program)])


def reduced(program: list[Step]) -> list[Step]:
    """Leave out lines, or replace them by their values, as long as a difference stays."""
    position = len(program) - 1
    while position >= 0:
        for smaller in _without(program, position):
            if _differs(smaller):
                program = smaller
                break
        position = min(position, len(program)) - 1
    return program


def _differs(program: list[Step]) -> bool:
    try:
        return bool(program) and bool(difference(program))
    except (KeyError, ValueError, TypeError, IndexError):
        return False  # what is left is no program


def _without(program: list[Step], position: int) -> list[list[Step]]:
    step = program[position]
    left = program[:position] + program[position + 1 :]
    found = [left] if step.symbol or not _is_read(step.target, left) else []
    if not isinstance(step.drawn, Leaf) and not step.symbol:
        value = expected(program[: position + 1])[step.target].values
        found.append(
            [*program[:position], Step(step.target, Leaf(value)), *program[position + 1 :]]
        )
    return found


def _is_read(name: Name, program: list[Step]) -> bool:
    return any(
        name == step.target or (isinstance(step.drawn, Drawn) and name in step.drawn.operands)
        for step in program
    )
