"""Value range analysis: bounds the elements of a kernel's body by interval arithmetic.

Takes instructions, the lengths of the loops and the numbers given at the launch, hands on the least
and the greatest value of an element, under conditions of known truth. Interval arithmetic is that
of R. Moore, "Interval Analysis", 1966, chapter 2. Conditions narrow intervals as in P. Cousot and
R. Cousot, POPL 1977, section 9.2. It shows that the index of a gather lies in its array: the mask
of the gather is such a condition, and so is that the launch has not failed.

>>> from tenfold.dtypes import INT64
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> place = body.index(0) - 2
>>> ranges = ValueRanges(body.instructions, (8,), {})
>>> ranges.of(place.position, {}), ranges.of(place.position, ranges.where((place >= 0).position))
((-2, 5), (0, 5))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tenfold.core.loop_ir import operand_of
from tenfold.core.scalar_ir import Instruction
from tenfold.dtypes import BOOL, FLOAT64, kind_of

Interval = tuple[float, float]
"""The least and the greatest value: ints of integers and bools, floats of floats."""
Facts = Mapping[int, Interval]
"""What conditions say of elements."""

STEPS = 4096
"""Elements that one question may look at; what is left then may be any number."""


class ValueRanges:
    """The ranges of the elements of one body."""

    def __init__(
        self,
        body: Sequence[Instruction],
        lengths: Sequence[int],
        numbers: Mapping[int, int],
        loads: Mapping[int, Interval] | None = None,
    ) -> None:
        """`numbers`: of parameters that follow from shapes, by their positions."""
        self.body, self.lengths, self.numbers, self.loads = body, lengths, numbers, loads or {}
        self.steps = STEPS
        self._known: dict[int, Interval] = {}
        """Where nothing is assumed."""

    def of(self, position: int, facts: Facts) -> Interval:
        """Return the range of an element where some facts hold."""
        self.steps = STEPS
        return self._of(position, facts, self._known if not facts else {})

    def where(self, condition: int, facts: Facts | None = None, *, holds: bool = True) -> Facts:
        """Return facts, and what follows from them and from a condition that holds, or does not."""
        found = dict(facts or {})
        self._assume(condition, holds, found)
        return found

    def _of(self, position: int, facts: Facts, known: dict[int, Interval]) -> Interval:
        if position in known:
            return known[position]
        made = self.body[position]
        self.steps -= 1
        low, high = _any(made.dtype)
        if self.steps > 0:
            found = self._made(made, facts, known)
            if low <= found[0] and found[1] <= high:  # else it may have wrapped
                low, high = found
        if position in facts:
            low, high = max(low, facts[position][0]), min(high, facts[position][1])
        known[position] = low, high
        return low, high

    def _made(self, made: Instruction, facts: Facts, known: dict[int, Interval]) -> Interval:
        unknown = (-math.inf, math.inf)
        if made.name == "constant":
            return _constant(made)
        if made.name == "index":
            return 0, self.lengths[int(str(made.data))] - 1
        if made.name == "parameter":
            number = self.numbers.get(int(str(made.data)))
            return unknown if number is None else (number, number)
        if made.name == "load":
            return self.loads.get(operand_of(made), unknown)
        if made.name == "select":
            condition, *chosen = made.inputs
            either = [
                self._of(x, self.where(condition, facts, holds=holds), {})
                for x, holds in zip(chosen, (True, False), strict=True)
            ]
            either = [each for each in either if each[0] <= each[1]]  # else it is never chosen
            return _around([end for each in either for end in each]) if either else unknown
        if made.name == "convert":
            source = self.body[made.inputs[0]]
            return _converted(source, made, self._of(made.inputs[0], facts, known))
        rule = RULES.get(made.name)
        if rule is None or (kind_of(made.dtype) == "f" and made.dtype != FLOAT64):
            return unknown
        return rule(*(self._of(i, facts, known) for i in made.inputs))

    def _assume(self, condition: int, holds: bool, facts: dict[int, Interval]) -> None:
        made = self.body[condition]
        if made.dtype != BOOL or self.steps <= 0:
            return
        self.steps -= 1
        if made.name == "constant" and bool(made.data) != holds:
            facts[condition] = (1, 0)  # never
        if made.name == ("and" if holds else "or"):
            for each in made.inputs:
                self._assume(each, holds, facts)
        elif made.name == "xor":
            for one, other in (made.inputs, made.inputs[::-1]):
                if self.body[other].name == "constant":
                    self._assume(one, holds != bool(self.body[other].data), facts)  # inverted
        elif made.name in ("less", "less_equal", "equal"):
            self._compare(made, holds, facts)

    def _compare(self, made: Instruction, holds: bool, facts: dict[int, Interval]) -> None:
        first, second = made.inputs
        if kind_of(self.body[first].dtype) not in "iu":
            return
        if made.name == "equal":
            if holds:
                x, y = (self._of(i, facts, {}) for i in (first, second))
                for each in (first, second):
                    self._narrow(each, (max(x[0], y[0]), min(x[1], y[1])), facts)
            return
        apart = int(made.name == "less") if holds else int(made.name == "less_equal")
        lesser, greater = (first, second) if holds else (second, first)
        x, y = (self._of(i, facts, {}) for i in (lesser, greater))
        self._narrow(lesser, (-math.inf, y[1] - apart), facts)
        self._narrow(greater, (x[0] + apart, math.inf), facts)

    def _narrow(self, position: int, to: Interval, facts: dict[int, Interval]) -> None:
        """Note a range, also of what the element is made of by adding what is the same for all."""
        low, high = facts.get(position, (-math.inf, math.inf))
        facts[position] = max(low, to[0]), min(high, to[1])
        made = self.body[position]
        if made.name not in ("add", "subtract"):
            return
        (x, y), (least, most) = made.inputs, facts[position]
        (shift, same), limits = self._of(y, {}, self._known), _any(made.dtype)
        if shift != same:
            return
        shift = shift if made.name == "add" else -shift
        own = self._of(x, facts, {})
        wraps = own[0] + shift < limits[0] or limits[1] < own[1] + shift
        if not wraps:
            self._narrow(x, (least - shift, most - shift), facts)


def _any(dtype: np.dtype) -> Interval:
    if dtype == BOOL:
        return 0, 1
    if kind_of(dtype) in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return -math.inf, math.inf


def _constant(made: Instruction) -> Interval:
    if kind_of(made.dtype) != "f":
        # the data of such an instruction is a number
        return int(made.data), int(made.data)  # type: ignore[call-overload]
    if made.dtype != FLOAT64:
        return -math.inf, math.inf
    value = float(np.uint64(int(str(made.data))).view(np.float64))
    return (-math.inf, math.inf) if math.isnan(value) else (value, value)


def _converted(source: Instruction, made: Instruction, values: Interval) -> Interval:
    """The range of what a conversion makes: it is monotone, but for halves, which are not asked."""
    if kind_of(made.dtype) == "f" and made.dtype != FLOAT64:
        return -math.inf, math.inf
    if kind_of(source.dtype) != "f":
        is_float = kind_of(made.dtype) == "f"
        return values if not is_float else (float(values[0]), float(values[1]))
    if source.dtype != FLOAT64 or not all(map(math.isfinite, values)):
        return -math.inf, math.inf
    return math.trunc(values[0]), math.trunc(values[1])


def _around(values: Sequence[float]) -> Interval:
    if any(math.isnan(value) for value in values):
        return -math.inf, math.inf
    return min(values), max(values)


def _times(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y  # of 0 and inf, which stands for any number


def _product(x: Interval, y: Interval) -> Interval:
    return _around([_times(a, b) for a in x for b in y])


def _quotient(x: Interval, y: Interval) -> Interval:
    if y[0] <= 0 <= y[1]:
        return -math.inf, math.inf
    return _around([a / b for a in x for b in y])


RULES: Mapping[str, Callable[..., Interval]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _product,
    "divide": _quotient,
}
"""What arithmetic makes of ranges; of floats rounding to nearest is monotone, so the ends are
exact."""


__all__ = ["Facts", "Interval", "ValueRanges"]
