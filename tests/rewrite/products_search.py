"""The fewest multiply-adds of a sum of matrix products, by exhaustive search.

Input: monomials (a coefficient, the names of the factors) and the shapes of the names. A sum is
partitioned into groups in every way. A group is factored into a product of two sums in every way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from operator import itemgetter

Monomial = tuple[complex, tuple[str, ...]]
Shapes = dict[str, tuple[int, int]]


def fewest(monomials: list[Monomial], shapes: Shapes) -> int:
    """Return the multiply-adds of the cheapest form."""

    @cache
    def of(subset: frozenset[Monomial]) -> int:
        return min(
            sum(of_group(group) for group in groups)
            for groups in partitions(sorted(subset, key=itemgetter(1)))
        )

    @cache
    def of_group(group: tuple[Monomial, ...]) -> int:
        if len(group) == 1 and len(group[0][1]) == 1:
            return 0
        costs = [
            of(left) + of(right) + lengths(left, right) for left, right in factored(list(group))
        ]
        return min(costs, default=10**18)

    def lengths(left: frozenset[Monomial], right: frozenset[Monomial]) -> int:
        (_, first), (_, second) = next(iter(left)), next(iter(right))
        return shapes[first[0]][0] * shapes[first[-1]][1] * shapes[second[-1]][1]

    return of(frozenset(monomials))


def partitions(monomials: list[Monomial]) -> Iterator[list[tuple[Monomial, ...]]]:
    """Yield every partition of monomials into groups."""
    if not monomials:
        yield []
        return
    first, *rest = monomials
    for groups in partitions(rest):
        yield [(first,), *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], (first, *group), *groups[i + 1 :]]


def factored(group: list[Monomial]) -> Iterator[tuple[frozenset[Monomial], frozenset[Monomial]]]:
    """Yield every pair of sums whose product is the sum of a group."""
    for cuts in product(*(range(1, len(factors)) for _, factors in group)):
        pairs = {
            (factors[:cut], factors[cut:]): coefficient
            for (coefficient, factors), cut in zip(group, cuts, strict=True)
        }
        rows = list(dict.fromkeys(prefix for prefix, _ in pairs))
        columns = list(dict.fromkeys(suffix for _, suffix in pairs))
        if len(rows) * len(columns) != len(group) or len(pairs) != len(group):
            continue
        corner = pairs[rows[0], columns[0]]
        left = {row: pairs[row, columns[0]] / corner for row in rows}
        right = {column: pairs[rows[0], column] for column in columns}
        if all(
            abs(coefficient - left[prefix] * right[suffix]) <= 1e-9 * abs(coefficient)
            for (prefix, suffix), coefficient in pairs.items()
        ):
            yield (
                frozenset((coefficient, row) for row, coefficient in left.items()),
                frozenset((coefficient, column) for column, coefficient in right.items()),
            )
