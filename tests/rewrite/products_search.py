"""The fewest multiply-adds of a sum of products of matrices, by trying everything.

Takes words (a coefficient, the names that are multiplied) and the shapes of the names. A sum is cut
into groups in every way; a group is a product of two sums, in every way in which all its words are
one of the first times one of the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

Word = tuple[float, tuple[str, ...]]
Shapes = dict[str, tuple[int, int]]


def fewest(words: list[Word], shapes: Shapes) -> int:
    """Return the multiply-adds of the best way."""

    @cache
    def of(given: frozenset[Word]) -> int:
        return min(sum(of_group(group) for group in groups) for groups in partitions(sorted(given)))

    @cache
    def of_group(group: tuple[Word, ...]) -> int:
        if len(group) == 1 and len(group[0][1]) == 1:
            return 0
        costs = [
            of(left) + of(right) + lengths(left, right) for left, right in factored(list(group))
        ]
        return min(costs, default=10**18)

    def lengths(left: frozenset[Word], right: frozenset[Word]) -> int:
        (_, first), (_, second) = next(iter(left)), next(iter(right))
        return shapes[first[0]][0] * shapes[first[-1]][1] * shapes[second[-1]][1]

    return of(frozenset(words))


def partitions(words: list[Word]) -> Iterator[list[tuple[Word, ...]]]:
    """Yield every way of cutting words into groups."""
    if not words:
        yield []
        return
    first, *rest = words
    for groups in partitions(rest):
        yield [(first,), *groups]
        for place, group in enumerate(groups):
            yield [*groups[:place], (first, *group), *groups[place + 1 :]]


def factored(group: list[Word]) -> Iterator[tuple[frozenset[Word], frozenset[Word]]]:
    """Yield every pair of sums whose product is the sum of a group."""
    for cuts in product(*(range(1, len(letters)) for _, letters in group)):
        pairs = {
            (letters[:cut], letters[cut:]): by
            for (by, letters), cut in zip(group, cuts, strict=True)
        }
        rows = list(dict.fromkeys(one for one, _ in pairs))
        columns = list(dict.fromkeys(other for _, other in pairs))
        if len(rows) * len(columns) != len(group) or len(pairs) != len(group):
            continue
        corner = pairs[rows[0], columns[0]]
        left = {row: pairs[row, columns[0]] / corner for row in rows}
        right = {column: pairs[rows[0], column] for column in columns}
        if all(
            abs(by - left[one] * right[other]) <= 1e-9 * abs(by)
            for (one, other), by in pairs.items()
        ):
            yield (
                frozenset((by, row) for row, by in left.items()),
                frozenset((by, column) for column, by in right.items()),
            )
