"""Matrix chain order: the cheapest order in which to multiply many matrices, from lengths alone.

Input: the lengths of a chain, n + 1 for n matrices. Output: its multiply-adds and a tree: a number
for a matrix, a pair for a product. Up to `MAX_EXACT_MATRICES` the order is optimal, by dynamic
programming (Cormen, Leiserson, Rivest, Stein 2022, "Introduction to Algorithms", 4th edition,
14.2). Longer chains are products of three neighbouring lengths at a time. A length is removed where
a triangle with its neighbours and one with the smallest length cost no more than the two triangles
that join the smallest length with both. That is the condition of Chin 1978, "An O(n) algorithm for
determining a near-optimal computation order of matrix chain products", CACM 21. Hu and Shing 1981,
"An O(n) algorithm to find a near-optimum partition of a convex polygon", J. Algorithms 2, bound the
result by 1.155 times the best.

A symmetric or triangular product (`ChainStructure`) counts half. A span of a chain times its own
transpose is computed once; the tree has None for the transpose.

>>> best_order((1000, 10, 1000, 10))
(200000, (0, (1, 2)))
>>> best_order((100, 100, 100, 100, 100), ChainStructure(frozenset([(0, 4), (1, 3)])))
(1505000, ((0, 1), None))
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tenfold.ops.syrk import MIN_SYRK_SIZE, MIN_TRMM_SIZE

MAX_EXACT_MATRICES = 64
"""The longest chain for which dynamic programming compares every order."""


Tree = int | tuple["Tree", "Tree | None"]


class ChainStructure(NamedTuple):
    """The symmetric and triangular products of a chain: half of each is enough."""

    symmetric_spans: frozenset[tuple[int, int]] = frozenset()
    """The spans (first, last) of lengths that are a product with its own transpose or adjoint."""
    triangular: frozenset[int] = frozenset()
    """The indices of the triangular matrices."""


GENERAL = ChainStructure()


def best_order(lengths: tuple[int, ...], structure: ChainStructure = GENERAL) -> tuple[int, Tree]:
    """Return (multiply-adds, order) of a product of matrices of lengths[i] x lengths[i + 1]."""
    if structure != GENERAL:
        longest = max(lengths)
        if not (syrk_pays_off(longest, longest) or trmm_pays_off(longest, longest)):
            structure = GENERAL  # all matrices are too small
    if len(lengths) == 3 and structure == GENERAL:
        return lengths[0] * lengths[1] * lengths[2], (0, 1)
    if len(lengths) - 1 > MAX_EXACT_MATRICES:
        splits = _near_optimal_splits(lengths)
    elif structure == GENERAL and len(set(lengths)) == 1:
        return _order_of_squares(len(lengths) - 1, lengths[0])
    else:
        splits = (
            _optimal_splits(lengths)
            if structure == GENERAL
            else _optimal_structured_splits(lengths, structure)
        )
    return _build_tree(lengths, splits, structure)


def _order_of_squares(count: int, order: int) -> tuple[int, Tree]:
    """Return an order of square matrices: every order costs the same."""
    tree: Tree = count - 1
    for at in range(count - 2, -1, -1):
        tree = at, tree
    return (count - 1) * order * order * order, tree


def syrk_pays_off(rows: int, columns: int) -> bool:
    """Whether a syrk is faster than a gemm for a matrix times its transpose."""
    return rows >= MIN_SYRK_SIZE[0] and columns >= MIN_SYRK_SIZE[1]


def trmm_pays_off(order: int, lines: int) -> bool:
    """Whether a trmm is faster than a gemm for a triangular matrix and `lines` rows or columns."""
    return order >= MIN_TRMM_SIZE[0] and (lines == 1 or lines >= MIN_TRMM_SIZE[1])


def _is_symmetric_product(
    lengths: tuple[int, ...], structure: ChainStructure, split: tuple[int, int, int]
) -> bool:
    """Whether a span split in two is a product with its own transpose."""
    first, split_at, last = split
    middle = first + last == 2 * split_at and (first, last) in structure.symmetric_spans
    return middle and syrk_pays_off(lengths[first], lengths[split_at])


def _product_cost(
    lengths: tuple[int, ...], structure: ChainStructure, split: tuple[int, int, int]
) -> int:
    """Return the multiply-adds of one product."""
    first, at, last = split
    rows, inner, columns = lengths[first], lengths[at], lengths[last]
    if _is_symmetric_product(lengths, structure, split):
        return rows * (rows + 1) // 2 * inner
    if at == first + 1 and first in structure.triangular and trmm_pays_off(rows, columns):
        return rows * (rows + 1) // 2 * columns
    if last == at + 1 and at in structure.triangular and trmm_pays_off(columns, rows):
        return columns * (columns + 1) // 2 * rows
    return rows * inner * columns


Splits = dict[tuple[int, int], int]
"""For each span (first, last) of the chain, the index of the length where it is split."""


def _optimal_splits(lengths: tuple[int, ...]) -> Splits:
    count = len(lengths)
    cost = [[0] * count for _ in range(count)]
    splits: Splits = {}
    for width in range(2, count):
        for first in range(count - width):
            last = first + width
            ends = lengths[first] * lengths[last]
            row = cost[first]
            row[last], splits[first, last] = min(
                (row[at] + cost[at][last] + ends * lengths[at], at)
                for at in range(last - 1, first, -1)  # equal ones: from the left, as written
            )
    return splits


def _optimal_structured_splits(lengths: tuple[int, ...], structure: ChainStructure) -> Splits:
    """As _optimal_splits, with symmetric and triangular products."""
    count = len(lengths)
    cost: dict[tuple[int, int], int] = {(at, at + 1): 0 for at in range(count)}
    splits: Splits = {}
    for width in range(2, count):
        for first in range(count - width):
            last = first + width
            cheapest, splits[first, last] = min(
                (
                    cost[first, at]
                    + (
                        0
                        if _is_symmetric_product(lengths, structure, (first, at, last))
                        else cost[at, last]
                    )
                    + _product_cost(lengths, structure, (first, at, last)),
                    at,
                )
                for at in range(last - 1, first, -1)
            )
            cost[first, last] = cheapest
    return splits


def _near_optimal_splits(lengths: tuple[int, ...]) -> Splits:
    """Cut triangles off the polygon whose corners are the lengths, then fan out from the smallest.

    The loop visits each corner once, starting at the smallest.
    """
    count = len(lengths)
    lowest = lengths.index(min(lengths))
    smallest = lengths[lowest]
    order = [(lowest + step) % count for step in range(count)]
    triangles: list[tuple[int, int, int]] = []
    stack = [lowest]
    for corner in (*order[1:], lowest):
        while len(stack) > 1:
            previous, top = (lengths[at] for at in stack[-2:])
            following = lengths[corner]
            ends = previous * following
            if stack[-2] == lowest or corner == lowest:
                break  # these triangles are part of the fan
            if previous * top * following + ends * smallest > smallest * top * (
                previous + following
            ):
                break
            triangles.append((stack[-2], stack[-1], corner))
            stack.pop()
        stack.append(corner)
    fan = stack[1:-1]
    triangles += [(lowest, start, end) for start, end in pairwise(fan)]
    splits: Splits = {}
    for triangle in triangles:
        first, middle, last = sorted(triangle)
        splits[first, last] = middle
    return splits


def _build_tree(
    lengths: tuple[int, ...], splits: Splits, structure: ChainStructure
) -> tuple[int, Tree]:
    """Return the cost and the tree; no recursion."""
    built: dict[tuple[int, int], tuple[int, Tree]] = {}
    stack = [(0, len(lengths) - 1)]
    while stack:
        first, last = stack[-1]
        if last - first == 1:
            built[stack.pop()] = (0, first)
            continue
        middle = splits[first, last]
        split = first, middle, last
        is_symmetric = last - first > 2 and _is_symmetric_product(lengths, structure, split)
        spans = [(first, middle)] if is_symmetric else [(first, middle), (middle, last)]
        missing = [span for span in spans if span not in built]
        if missing:
            stack += missing
            continue
        operands = [built[span] for span in spans]
        left, right = operands[0][1], None if is_symmetric else operands[1][1]
        total = sum(cost for cost, _ in operands) + _product_cost(lengths, structure, split)
        built[stack.pop()] = (total, (left, right))
    return built[0, len(lengths) - 1]
