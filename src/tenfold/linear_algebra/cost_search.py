"""Cost search: factors a sum of matrix products so that it takes the fewest multiply-adds.

Input: monomials, each a coefficient times a product of matrix factors. Output: monomials of the
same sum. Monomials with a common prefix or suffix become one, with a factor that is itself a sum,
if that is cheaper. The search is exhaustive for small sums. Beyond `SEARCH_BUDGET` examined factors
it is greedy. The module uses neither arrays nor graphs.

>>> from tenfold.linear_algebra.matrix_polynomial import ONE
>>> a, b, c = (MatrixFactor((number, "N"), 8, 8) for number in range(3))
>>> cost, monomials = cheapest_sum((Monomial(ONE, (a, b)), Monomial(ONE, (a, c))))
>>> cost.multiply_adds, [[factor.name for factor in each.factors] for each in monomials]
(512, [[(0, 'N'), None]])
>>> [[factor.name for factor in each.factors] for each in monomials[0].factors[1].monomials]
[[(1, 'N')], [(2, 'N')]]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, pairwise
from typing import NamedTuple

from tenfold.linear_algebra.chain_order import GENERAL, best_order
from tenfold.linear_algebra.matrix_polynomial import (
    Coefficient,
    MatrixFactor,
    Monomial,
    pair_transposes,
    sum_of,
)

SEARCH_BUDGET = 100
"""The number of examined factors after which the search is greedy."""
MAX_SEARCHED_MONOMIALS = 64
"""The largest number of monomials of a sum that is searched."""
MAX_SUBSET_GROUP = 5
"""The largest group of monomials with a common end of which every subset is tried."""


class Cost(NamedTuple):
    """The cost to minimise, compared lexicographically."""

    multiply_adds: int = 0
    products: int = 0
    sums: int = 0


CheapestSum = tuple[Cost, tuple[Monomial, ...]]


def cheapest_sum(monomials: tuple[Monomial, ...], *, use_structure: bool = True) -> CheapestSum:
    """Return the least cost found and its monomials.

    With `use_structure`, symmetric and triangular products count half.
    """
    search = _CostSearch(use_structure)
    cost, cheapest = search.cheapest(search.intern(monomials))
    return cost, search.to_monomials(cheapest)


class _SearchFactor:
    """An interned factor, with the monomials of a factor that is a sum.

    Equal factors are one object, so comparing and hashing take constant time.
    """

    __slots__ = ("factor", "monomials", "signature")

    def __init__(self, factor: MatrixFactor, monomials: _SearchSum) -> None:
        self.factor, self.monomials = factor, monomials
        self.signature = hash((factor.name[0] if factor.name else -len(monomials),))
        """A hash that a factor shares with its transpose."""


class _SearchMonomial:
    """An interned monomial."""

    __slots__ = ("coefficient", "cost", "factor_orders", "signature", "sum_positions")

    def __init__(self, coefficient: Coefficient, factors: tuple[_SearchFactor, ...]) -> None:
        self.coefficient = coefficient
        self.factor_orders = factors, factors[::-1]
        """The factors in order, and in reverse order."""
        self.sum_positions = [at for at, factor in enumerate(factors) if factor.monomials]
        self.signature = hash((coefficient, sum([factor.signature for factor in factors])))
        """A hash that a monomial shares with its transpose."""
        self.cost: Cost | None = None

    @property
    def may_have_structure(self) -> bool:
        """Whether a product in it may be symmetric or triangular: a cheap necessary condition."""
        factors = self.factor_orders[0]
        has_pair = any(left.signature == right.signature for left, right in pairwise(factors))
        return has_pair or any(factor.factor.triangular for factor in factors)

    @property
    def monomial(self) -> Monomial:
        """The monomial without the data of the search."""
        return Monomial(
            self.coefficient, tuple([factor.factor for factor in self.factor_orders[0]])
        )


_SearchSum = tuple[_SearchMonomial, ...]


class _CostSearch:
    """One search, with a memo of the sums examined so far."""

    def __init__(self, use_structure: bool) -> None:
        self.use_structure = use_structure
        self.cheapest_sums: dict[_SearchSum, tuple[Cost, _SearchSum]] = {}
        self.interned_factors: dict[MatrixFactor | _SearchSum, _SearchFactor] = {}
        self.interned_monomials: dict[
            tuple[Coefficient, tuple[_SearchFactor, ...]], _SearchMonomial
        ] = {}
        self.budget = SEARCH_BUDGET

    def intern(self, monomials: Sequence[Monomial]) -> _SearchSum:
        """Return the interned monomials of this search."""
        return tuple(
            [
                self._intern_monomial(
                    monomial.coefficient,
                    tuple([self._intern_factor(factor) for factor in monomial.factors]),
                )
                for monomial in monomials
            ]
        )

    def _intern_factor(self, factor: MatrixFactor) -> _SearchFactor:
        if factor.monomials:
            return self._intern_sum(self.intern(factor.monomials))
        return self.interned_factors.get(factor) or self.interned_factors.setdefault(
            factor, _SearchFactor(factor, ())
        )

    def _intern_sum(self, monomials: _SearchSum) -> _SearchFactor:
        interned = self.interned_factors.get(monomials)
        if interned is None:
            factor = sum_of(tuple([monomial.monomial for monomial in monomials]))
            interned = self.interned_factors[monomials] = _SearchFactor(factor, monomials)
        return interned

    def _intern_monomial(
        self, coefficient: Coefficient, factors: tuple[_SearchFactor, ...]
    ) -> _SearchMonomial:
        key = coefficient, factors
        return self.interned_monomials.get(key) or self.interned_monomials.setdefault(
            key, _SearchMonomial(coefficient, factors)
        )

    def cheapest(self, monomials: _SearchSum) -> tuple[Cost, _SearchSum]:
        """Return the least cost of a sum and its monomials.

        With the budget spent, only the most promising factoring is tried.
        """
        cheapest = self.cheapest_sums.get(monomials)
        if cheapest is not None:
            return cheapest
        self.budget -= sum([len(monomial.factor_orders[0]) for monomial in monomials])
        cheapest = self._unfactored_cost(monomials), monomials
        for factoring in self._factorings(monomials, all_subsets=self.budget > 0):
            candidate = self.cheapest(factoring)
            if candidate[0] < cheapest[0]:
                cheapest = candidate
            if self.budget <= 0:
                break
        self.cheapest_sums[monomials] = cheapest
        return cheapest

    def to_monomials(self, monomials: _SearchSum) -> tuple[Monomial, ...]:
        """Return plain monomials of interned ones, with the cheapest form of each inner sum."""
        return tuple([self._to_monomial(monomial) for monomial in monomials])

    def _to_monomial(self, monomial: _SearchMonomial) -> Monomial:
        factors = [
            factor.factor._replace(monomials=self.to_monomials(self.cheapest(factor.monomials)[1]))
            if factor.monomials
            else factor.factor
            for factor in monomial.factor_orders[0]
        ]
        return Monomial(monomial.coefficient, tuple(factors))

    def _unfactored_cost(self, monomials: _SearchSum) -> Cost:
        """Return the cost of the monomials one by one; inner sums are searched."""
        costs = [monomial.cost or self._monomial_cost(monomial) for monomial in monomials]
        if self.use_structure and len({monomial.signature for monomial in monomials}) < len(
            monomials
        ):
            cost_of = {
                monomial.monomial: cost for monomial, cost in zip(monomials, costs, strict=True)
            }
            costs = [
                cost_of[monomial]
                for monomial, _ in pair_transposes([monomial.monomial for monomial in monomials])
            ]
        multiply_adds, products, sums = map(sum, zip(*costs, strict=True))
        return Cost(multiply_adds, products, sums + len(monomials) - 1)

    def _monomial_cost(self, monomial: _SearchMonomial) -> Cost:
        """Return the cost of a monomial, with the cheapest form of each inner sum."""
        multiply_adds = sums = 0
        products = len(monomial.factor_orders[0]) - 1
        if products:
            product = monomial.monomial
            structure = (
                product.structure if self.use_structure and monomial.may_have_structure else GENERAL
            )
            multiply_adds = best_order(product.lengths, structure)[0]
        for at in monomial.sum_positions:
            inner = self.cheapest(monomial.factor_orders[0][at].monomials)[0]
            multiply_adds += inner.multiply_adds
            products += inner.products
            sums += inner.sums
        monomial.cost = Cost(multiply_adds, products, sums)
        return monomial.cost

    def _factorings(self, monomials: _SearchSum, *, all_subsets: bool) -> Iterator[_SearchSum]:
        """Yield sums in which monomials with a common prefix or suffix are factored.

        Factorings that save products with the largest matrices come first.
        """
        if 1 < len(monomials) <= MAX_SEARCHED_MONOMIALS:
            for _, group, count, end in sorted(_common_ends(monomials, all_subsets=all_subsets)):
                yield self._factor_out(monomials, group, count, end)
        for i, monomial in enumerate(monomials):
            for at in monomial.sum_positions:
                for spliced in self._spliced_monomials(monomial, at):
                    yield (*monomials[:i], spliced, *monomials[i + 1 :])

    def _spliced_monomials(self, monomial: _SearchMonomial, at: int) -> Iterator[_SearchMonomial]:
        """Yield the monomial with an inner sum factored into one monomial of the chain."""
        factors = monomial.factor_orders[0]
        inner = factors[at].monomials
        for end in (0, -1):
            for count in range(
                _common_prefix_length([term.factor_orders[end] for term in inner]), 0, -1
            ):
                (factored,) = self._factor_out(inner, tuple(range(len(inner))), count, end)
                coefficient = monomial.coefficient.times(factored.coefficient)
                yield self._intern_monomial(
                    coefficient, (*factors[:at], *factored.factor_orders[0], *factors[at + 1 :])
                )

    def _factor_out(
        self, monomials: _SearchSum, group: tuple[int, ...], count: int, end: int
    ) -> _SearchSum:
        """Replace a group of monomials by their common factors times the sum of the quotients."""
        common = _common_coefficient([monomials[i].coefficient for i in group])
        quotients = []
        for i in group:
            factors = monomials[i].factor_orders[0]
            quotient = factors[count:] if end == 0 else factors[:-count]
            quotients.append(
                self._intern_monomial(monomials[i].coefficient.divided_by(common), quotient)
            )
        inner, factors = self._intern_sum(tuple(quotients)), monomials[group[0]].factor_orders[0]
        factored_out = (*factors[:count], inner) if end == 0 else (inner, *factors[-count:])
        product = self._intern_monomial(common, factored_out)
        result = [monomial for i, monomial in enumerate(monomials) if i not in group]
        result.insert(group[0], product)  # the first of the group: all before it remain
        return tuple(result)


def _common_ends(
    monomials: _SearchSum, *, all_subsets: bool
) -> Iterator[tuple[int, tuple[int, ...], int, int]]:
    """Yield common prefixes and suffixes of monomials.

    Each is (minus the saved matrix elements, the indices of the monomials, the number of factors,
    0 for a prefix or -1 for a suffix).
    """
    for end in (0, -1):
        groups: dict[_SearchFactor, list[int]] = {}
        lines = [monomial.factor_orders[end] for monomial in monomials]
        for i, factors in enumerate(lines):
            if len(factors) > 1:
                groups.setdefault(factors[0], []).append(i)
        for group in groups.values():
            if len(group) == 1:
                continue
            for selection in _selections(group, all_subsets=all_subsets):
                rows = [lines[i] for i in selection]
                saved_elements = 0
                for count in range(1, _common_prefix_length(rows) + 1):
                    factor = rows[0][count - 1].factor
                    saved_elements += factor.rows * factor.columns
                    yield -saved_elements * (len(selection) - 1), selection, count, end


def _selections(group: list[int], *, all_subsets: bool) -> Iterator[tuple[int, ...]]:
    yield tuple(group)
    if len(group) <= MAX_SUBSET_GROUP and all_subsets:
        for size in range(len(group) - 1, 1, -1):
            yield from combinations(group, size)


def _common_prefix_length(rows: Sequence[tuple[_SearchFactor, ...]]) -> int:
    """Return the number of equal factors at the beginning; one factor of each row remains."""
    limit, first = min(map(len, rows)) - 1, rows[0]
    for i in range(limit):
        factor = first[i]
        for row in rows:
            if row[i] is not factor:
                return i
    return limit


def _common_coefficient(coefficients: list[Coefficient]) -> Coefficient:
    """Return the scalars common to all coefficients, and the sign of the first."""
    first = coefficients[0]
    if all(coefficient.scalars == first.scalars for coefficient in coefficients):
        return first
    if not all(coefficient.scalars for coefficient in coefficients):
        return Coefficient(first.sign)
    counts = (Counter(coefficient.scalars) for coefficient in coefficients)
    common = reduce(lambda left, right: left & right, counts)
    return Coefficient(first.sign, tuple(sorted(common.elements())))
