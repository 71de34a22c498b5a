"""Value range analysis: bounds the elements of a kernel's body by interval arithmetic.

Takes instructions, the lengths of the loops and the integer scalars of the launch, hands on the
least and the greatest value of an element, under conditions of known truth. Interval arithmetic is
that of R. Moore, "Interval Analysis", 1966, chapter 2. Conditions narrow intervals as in P. Cousot
and R. Cousot, POPL 1977, section 9.2. It proves that gathers are within bounds: their masks, and
earlier checks that did not fail, are such conditions.

>>> from tenfold.dtypes import INT64
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> index = body.index(0) - 2
>>> ranges = ValueRanges(body.instructions, (8,), {})
>>> is_valid = ranges.refine((index >= 0).position)
>>> ranges.range_of(index.position, {}), ranges.range_of(index.position, is_valid)
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
Intervals = Mapping[int, Interval]
"""The ranges of elements under conditions."""

MAX_VISITED = 4096
"""Elements that one query may visit; others may have any value."""


class ValueRanges:
    """The ranges of the elements of one body."""

    def __init__(
        self,
        body: Sequence[Instruction],
        lengths: Sequence[int],
        numbers: Mapping[int, int],
        loads: Mapping[int, Interval] | None = None,
    ) -> None:
        """`numbers`: values of parameters that follow from shapes, by their positions."""
        self.body, self.lengths, self.numbers, self.loads = body, lengths, numbers, loads or {}
        self.steps = MAX_VISITED
        self._unconditional: dict[int, Interval] = {}
        """The ranges without facts."""

    def range_of(self, position: int, facts: Intervals) -> Interval:
        """Return the range of an element under the given facts."""
        self.steps = MAX_VISITED
        return self._range_of(position, facts, self._unconditional if not facts else {})

    def refine(
        self, condition: int, facts: Intervals | None = None, *, holds: bool = True
    ) -> Intervals:
        """Return facts, refined by a condition that holds, or does not hold."""
        refined = dict(facts or {})
        self._assume(condition, holds, refined)
        return refined

    def _range_of(self, position: int, facts: Intervals, computed: dict[int, Interval]) -> Interval:
        if position in computed:
            return computed[position]
        instruction = self.body[position]
        self.steps -= 1
        low, high = _dtype_range(instruction.dtype)
        if self.steps > 0:
            derived = self._instruction_range(instruction, facts, computed)
            if low <= derived[0] and derived[1] <= high:  # else it may have wrapped
                low, high = derived
        if position in facts:
            low, high = max(low, facts[position][0]), min(high, facts[position][1])
        computed[position] = low, high
        return low, high

    def _instruction_range(
        self, instruction: Instruction, facts: Intervals, computed: dict[int, Interval]
    ) -> Interval:
        unknown = (-math.inf, math.inf)
        if instruction.name == "constant":
            return _constant_range(instruction)
        if instruction.name == "index":
            return 0, self.lengths[int(str(instruction.data))] - 1
        if instruction.name == "parameter":
            number = self.numbers.get(int(str(instruction.data)))
            return unknown if number is None else (number, number)
        if instruction.name == "load":
            return self.loads.get(operand_of(instruction), unknown)
        if instruction.name == "select":
            condition, *branches = instruction.inputs
            branch_ranges = [
                self._range_of(x, self.refine(condition, facts, holds=holds), {})
                for x, holds in zip(branches, (True, False), strict=True)
            ]
            branch_ranges = [
                branch_range for branch_range in branch_ranges if branch_range[0] <= branch_range[1]
            ]  # else it is never chosen
            return (
                _hull([end for branch_range in branch_ranges for end in branch_range])
                if branch_ranges
                else unknown
            )
        if instruction.name == "convert":
            source = self.body[instruction.inputs[0]]
            return _converted_range(
                source, instruction, self._range_of(instruction.inputs[0], facts, computed)
            )
        rule = RULES.get(instruction.name)
        if rule is None or (kind_of(instruction.dtype) == "f" and instruction.dtype != FLOAT64):
            return unknown
        return rule(*(self._range_of(i, facts, computed) for i in instruction.inputs))

    def _assume(self, condition: int, holds: bool, facts: dict[int, Interval]) -> None:
        instruction = self.body[condition]
        if instruction.dtype != BOOL or self.steps <= 0:
            return
        self.steps -= 1
        if instruction.name == "constant" and bool(instruction.data) != holds:
            facts[condition] = (1, 0)  # never
        if instruction.name == ("and" if holds else "or"):
            for operand in instruction.inputs:
                self._assume(operand, holds, facts)
        elif instruction.name == "xor":
            for negated, constant in (instruction.inputs, instruction.inputs[::-1]):
                if self.body[constant].name == "constant":
                    self._assume(
                        negated, holds != bool(self.body[constant].data), facts
                    )  # inverted
        elif instruction.name in ("less", "less_equal", "equal"):
            self._compare(instruction, holds, facts)

    def _compare(self, instruction: Instruction, holds: bool, facts: dict[int, Interval]) -> None:
        first, second = instruction.inputs
        if kind_of(self.body[first].dtype) not in "iu":
            return
        if instruction.name == "equal":
            if holds:
                x, y = (self._range_of(i, facts, {}) for i in (first, second))
                for operand in (first, second):
                    self._narrow(operand, (max(x[0], y[0]), min(x[1], y[1])), facts)
            return
        gap = int(instruction.name == "less") if holds else int(instruction.name == "less_equal")
        lesser, greater = (first, second) if holds else (second, first)
        x, y = (self._range_of(i, facts, {}) for i in (lesser, greater))
        self._narrow(lesser, (-math.inf, y[1] - gap), facts)
        self._narrow(greater, (x[0] + gap, math.inf), facts)

    def _narrow(self, position: int, bounds: Interval, facts: dict[int, Interval]) -> None:
        """Record a range, also of the operand where the element is an operand plus a constant."""
        low, high = facts.get(position, (-math.inf, math.inf))
        facts[position] = max(low, bounds[0]), min(high, bounds[1])
        instruction = self.body[position]
        if instruction.name not in ("add", "subtract"):
            return
        (x, y), (least, most) = instruction.inputs, facts[position]
        (shift, shift_high), limits = (
            self._range_of(y, {}, self._unconditional),
            _dtype_range(instruction.dtype),
        )
        if shift != shift_high:
            return
        shift = shift if instruction.name == "add" else -shift
        operand_range = self._range_of(x, facts, {})
        wraps = operand_range[0] + shift < limits[0] or limits[1] < operand_range[1] + shift
        if not wraps:
            self._narrow(x, (least - shift, most - shift), facts)


def _dtype_range(dtype: np.dtype) -> Interval:
    if dtype == BOOL:
        return 0, 1
    if kind_of(dtype) in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return -math.inf, math.inf


def _constant_range(instruction: Instruction) -> Interval:
    if kind_of(instruction.dtype) != "f":
        # the data of such an instruction is a number
        return int(instruction.data), int(instruction.data)  # type: ignore[call-overload]
    if instruction.dtype != FLOAT64:
        return -math.inf, math.inf
    value = float(np.uint64(int(str(instruction.data))).view(np.float64))
    return (-math.inf, math.inf) if math.isnan(value) else (value, value)


def _converted_range(source: Instruction, conversion: Instruction, values: Interval) -> Interval:
    """The range of a conversion, which is monotone except for halves."""
    if kind_of(conversion.dtype) == "f" and conversion.dtype != FLOAT64:
        return -math.inf, math.inf
    if kind_of(source.dtype) != "f":
        is_float = kind_of(conversion.dtype) == "f"
        return values if not is_float else (float(values[0]), float(values[1]))
    if source.dtype != FLOAT64 or not all(map(math.isfinite, values)):
        return -math.inf, math.inf
    return math.trunc(values[0]), math.trunc(values[1])


def _hull(values: Sequence[float]) -> Interval:
    if any(math.isnan(value) for value in values):
        return -math.inf, math.inf
    return min(values), max(values)


def _multiply_ends(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y  # 0 * inf, where inf stands for any number


def _multiply_ranges(x: Interval, y: Interval) -> Interval:
    return _hull([_multiply_ends(a, b) for a in x for b in y])


def _divide_ranges(x: Interval, y: Interval) -> Interval:
    if y[0] <= 0 <= y[1]:
        return -math.inf, math.inf
    return _hull([a / b for a in x for b in y])


RULES: Mapping[str, Callable[..., Interval]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _multiply_ranges,
    "divide": _divide_ranges,
}
"""Interval arithmetic by instruction. Rounding to nearest is monotone, so the ends are exact."""


__all__ = ["Interval", "Intervals", "ValueRanges"]
