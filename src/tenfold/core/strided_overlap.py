"""Strided overlap, the alias test: decides whether two strided regions of memory share a byte.

Takes two StridedRegions, hands on an Overlap: a verdict and its reason. Two cells share a byte
where their addresses differ by less than an itemsize. So overlap means that an equation
`sum(coefficient * x) = total` has a solution in integers `0 <= x <= bound`. In general that is
NP-hard. A depth-first search by ranges and greatest common divisors is fast for the layouts that
occur in practice (P. Ramachandran, "Use of extended Euclidean algorithm in solving a
system of linear Diophantine equations with bounded variables", ANTS-VII, LNCS 4076, 2006, p. 182).
The search is bounded; beyond the bound the verdict is UNKNOWN, which counts as an overlap.

>>> evens, odds = StridedRegion(0, (4,), (16,), 8), StridedRegion(8, (4,), (16,), 8)
>>> print(overlap(evens, odds))
disjoint: multiples of 16 bytes never bring them nearer than 8
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import gcd

from tenfold.core.shape_rules import Shape

MAX_TRIES = 2000
"""Values that one search may try: a few milliseconds."""


@dataclass(frozen=True, slots=True)
class StridedRegion:
    """The cells of a strided array: addresses in bytes; strides may be negative or 0.

    >>> StridedRegion(64, (3, 2), (-16, 8), 8).range
    (32, 80)
    """

    address: int
    """Of the cell at index 0 on every axis."""
    shape: Shape
    strides: tuple[int, ...]
    itemsize: int

    @property
    def empty(self) -> bool:
        """Whether it has no cell."""
        return 0 in self.shape

    @property
    def range(self) -> tuple[int, int]:
        """The first byte and the end of the last, of a region that is not empty."""
        first = last = self.address
        for length, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                first += stride * (length - 1)
            else:
                last += stride * (length - 1)
        return first, last + self.itemsize


class OverlapVerdict(Enum):
    """Which bytes two regions share."""

    DISJOINT = "disjoint"
    """No byte."""
    SAME = "same"
    """Every cell, and at the same index."""
    PARTIAL = "partial"
    """Some byte."""
    UNKNOWN = "unknown"
    """The search exceeded its bound: counts as an overlap."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A verdict and why."""

    verdict: OverlapVerdict
    reason: str

    @property
    def disjoint(self) -> bool:
        """Whether no byte is shared; True is always proved."""
        return self.verdict is OverlapVerdict.DISJOINT

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reason}"


NO_CELLS = Overlap(OverlapVerdict.DISJOINT, "one of them has no cells")
SAME_CELLS = Overlap(OverlapVerdict.SAME, "every index is the same cell in both")
SHARED_BYTES = Overlap(OverlapVerdict.PARTIAL, "some of their cells share bytes")
INTERLEAVED = Overlap(OverlapVerdict.DISJOINT, "the cells of one lie between those of the other")


def overlap(first: StridedRegion, second: StridedRegion, *, steps: int = MAX_TRIES) -> Overlap:
    """Decide whether two regions share a byte; exact unless the search takes more than `steps`.

    >>> print(overlap(StridedRegion(0, (9,), (8,), 8), StridedRegion(8, (9,), (8,), 8)))
    partial: some of their cells share bytes
    """
    if first.empty or second.empty:
        return NO_CELLS
    if _is_same_region(first, second):
        return SAME_CELLS
    equation = OverlapEquation()
    first_low, first_high = equation.add_region(first)
    second_low, second_high = equation.add_region(second)
    gap_before, gap_after = (
        second_low - first_high - first.itemsize,
        first_low - second_high - second.itemsize,
    )
    if gap_before >= 0 or gap_after >= 0:
        gap = max(gap_before, gap_after)
        return Overlap(OverlapVerdict.DISJOINT, f"their address ranges lie {gap} bytes apart")
    # Cells of the second are counted from the last: then all coefficients are positive.
    equation.total = second_high - first_low + second.itemsize - 1
    slack = first.itemsize + second.itemsize - 2
    solvable = equation.solvable(slack, steps)
    if solvable is None:
        return Overlap(OverlapVerdict.UNKNOWN, f"not decided in {steps} steps, taken as an overlap")
    if solvable:
        return SHARED_BYTES
    step = gcd(*equation.bounds)
    if step and equation.total % step > slack:
        nearest = min((second_low - first_low) % step, (first_low - second_low) % step)
        reason = f"multiples of {step} bytes never bring them nearer than {nearest}"
        return Overlap(OverlapVerdict.DISJOINT, reason)
    return INTERLEAVED


def _is_same_region(first: StridedRegion, second: StridedRegion) -> bool:
    if (first.address, first.shape, first.itemsize) != (
        second.address,
        second.shape,
        second.itemsize,
    ):
        return False
    if first.strides == second.strides:
        return True
    axes = zip(first.shape, first.strides, second.strides, strict=True)
    return all(length == 1 or stride == other_stride for length, stride, other_stride in axes)


class OverlapEquation:
    """`sum(coefficient * x) = total - z` in integers `0 <= x <= bound`, `0 <= z <= slack`."""

    __slots__ = ("bounds", "pair", "total")

    def __init__(self, total: int = 0) -> None:
        self.total = total
        self.bounds: dict[int, int] = {}
        self.pair: tuple[int, int, int] | None = None

    def add(self, coefficient: int, bound: int) -> None:
        """Add a term; the sum of two terms of equal coefficient is a term of added bounds."""
        if coefficient < 0:
            self.total -= coefficient * bound  # counts down from the bound instead
            coefficient = -coefficient
        if coefficient and bound:
            self.bounds[coefficient] = self.bounds.get(coefficient, 0) + bound

    def add_region(self, region: StridedRegion) -> tuple[int, int]:
        """Add the terms of a region, all with positive coefficients; return its end addresses."""
        first = last = region.address
        bounds = self.bounds
        for length, stride in zip(region.shape, region.strides, strict=True):
            if stride > 0 and length > 1:
                last += stride * (length - 1)
                bounds[stride] = bounds.get(stride, 0) + length - 1
            elif stride and length > 1:
                first += stride * (length - 1)
                bounds[-stride] = bounds.get(-stride, 0) + length - 1
        return first, last

    def add_pair(self, first: int, second: int, bound: int) -> None:
        """Add `first * x + second * y` with `x, y >= 0` and `x + y <= bound`.

        With a slack variable there are three numbers of a given sum. Any constant may be subtracted
        from their coefficients (first, second, 0): the least of them leaves two terms.
        """
        least = min(first, second, 0)
        self.total -= least * bound
        _, lesser, larger = sorted((first - least, second - least, -least))
        if lesser in (0, larger):
            self.add(larger, bound)
        elif bound:
            self.pair = (larger, lesser, bound)

    def solvable(self, slack: int, steps: int) -> bool | None:
        """Decide whether a solution exists; None: undecided after `steps` values."""
        total, pair = self.total, self.pair
        divisor = gcd(*self.bounds, *pair[:2]) if pair else gcd(*self.bounds)
        if total < 0 or not divisor:
            return 0 <= total <= slack
        total, remainder = divmod(total, divisor)
        if remainder > slack:
            return False  # z is smaller than the remainder
        terms = _merged_terms(self.bounds, divisor, (slack - remainder) // divisor)
        largest = sum([coefficient * bound for coefficient, bound in terms])
        if pair is not None:
            larger_coefficient, lesser_coefficient, pair_bound = (
                pair[0] // divisor,
                pair[1] // divisor,
                pair[2],
            )
            if total > largest + larger_coefficient * pair_bound:
                return False
            return _DiophantineSearch(terms, (larger_coefficient, lesser_coefficient), steps).visit(
                0, total, pair_bound
            )
        if total > largest:
            return False
        if len(terms) == 1:
            return True  # its coefficient is 1: the common divisor was divided out
        if len(terms) == 2:
            return _solve_two_terms(terms[0], terms[1], total)
        return _DiophantineSearch(terms, None, steps).visit(0, total, 0)


def _solve_two_terms(small_term: tuple[int, int], large_term: tuple[int, int], total: int) -> bool:
    """Decide whether two terms, of coefficients without a common divisor, add up to a total."""
    (unit, bound), (coefficient, value_bound) = small_term, large_term
    value = min(value_bound, total // coefficient)
    if unit > 1:  # the remainder must be a multiple of it
        value -= (value - total * pow(coefficient, -1, unit)) % unit
    return value >= 0 and total - coefficient * value <= unit * bound


def _merged_terms(bounds: dict[int, int], divisor: int, slack: int) -> list[tuple[int, int]]:
    """Join terms that leave no gaps between them: `c * x + m*c * y` where x has m values.

    Contiguous rows become one term that way, for any number of axes.
    """
    merged = [(1, slack)] if slack else []
    for stride in sorted(bounds):
        coefficient, bound = stride // divisor, bounds[stride]
        for position, (unit, count) in enumerate(merged):
            if coefficient <= unit * (count + 1) and coefficient % unit == 0:
                merged[position] = (unit, count + coefficient // unit * bound)
                break
        else:
            merged.append((coefficient, bound))
    return merged


class _DiophantineSearch:
    """Depth-first search, largest coefficient first, pruned by the reach of later terms.

    It tries only values whose remainder is a multiple of the divisor of the later coefficients. So
    of the last two terms every value in range is a solution.
    """

    def __init__(
        self, terms: list[tuple[int, int]], pair: tuple[int, int] | None, steps: int
    ) -> None:
        self.steps = steps
        self.first_of_pair = -1
        if pair is not None:  # the two terms share the bound `pair_budget`
            terms = sorted([*terms, (pair[0], -1), (pair[1], -1)])
            self.first_of_pair = len(terms) - 1 - terms.index((pair[0], -1))
        self.terms = terms[::-1]
        self.before_last = len(terms) - 2
        self.divisors, self.moduli, self.inverses = [0], [0], [0]
        self.reach, self.reach_per_unit = [0], [0]
        """The greatest sum of later terms: constant part, and part per unit of the pair budget."""
        divisor = reach = per_unit = 0
        for coefficient, bound in terms:
            later_divisor, divisor = divisor, gcd(divisor, coefficient)
            self.divisors.append(divisor)
            self.moduli.append(later_divisor // divisor)
            self.inverses.append(pow(coefficient // divisor, -1, later_divisor // divisor or 1))
            self.reach.append(reach)
            self.reach_per_unit.append(per_unit)
            if bound < 0:
                per_unit = coefficient
            else:
                reach += coefficient * bound
        for table in (self.divisors, self.moduli, self.inverses, self.reach, self.reach_per_unit):
            table.reverse()

    def visit(self, term: int, total: int, pair_budget: int) -> bool | None:
        """Try the values of one term."""
        coefficient, bound = self.terms[term]
        reach, modulus, paired = self.reach[term], self.moduli[term], bound < 0
        shortfall = total - reach - self.reach_per_unit[term] * pair_budget
        # The two terms of the pair share one budget.
        unit = (
            coefficient - self.reach_per_unit[term] if term == self.first_of_pair else coefficient
        )
        low = max(-(-shortfall // unit), 0)
        value = min(pair_budget if paired else bound, total // coefficient)
        residue = total // self.divisors[term] * self.inverses[term]
        value -= (value - residue) % modulus
        if term == self.before_last:
            return value >= low
        while value >= low:
            self.steps -= 1
            if self.steps < 0:
                return None
            solution = self.visit(
                term + 1,
                total - coefficient * value,
                pair_budget - value if paired else pair_budget,
            )
            if solution is not False:
                return solution
            value -= modulus
        return False
