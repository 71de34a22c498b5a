"""Matrix chain order: the cheapest order in which to multiply many matrices, from lengths alone.

Takes the lengths of a chain, n + 1 for n matrices, hands on its multiply-adds and a tree of places:
a number for a matrix, a pair for a product. Up to `EXACT` matrices the order is optimal, by dynamic
programming (Cormen, Leiserson, Rivest, Stein 2022, "Introduction to Algorithms", 4th edition,
14.2). Longer chains are products of three neighbouring lengths at a time. A length is removed where
a triangle with its neighbours and one with the smallest length cost no more than the two triangles
that join the smallest length with both. That is the condition of Chin 1978, "An O(n) algorithm for
determining a near-optimal computation order of matrix chain products", CACM 21. Hu and Shing 1981,
"An O(n) algorithm to find a near-optimum partition of a convex polygon", J. Algorithms 2, bound the
result by 1.155 times the best.

Where half of a product is known (`Halves`), it counts half; a part of a chain times its own
transpose is made once, and its place in the tree is None.

>>> chain((1000, 10, 1000, 10))
(200000, (0, (1, 2)))
>>> chain((100, 100, 100, 100, 100), Halves(frozenset([(0, 4), (1, 3)])))
(1505000, ((0, 1), None))
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tenfold.caches import memoized
from tenfold.ops.syrk import SYMMETRIC, TRIANGULAR

MAX_EXACT_MATRICES = 64
"""The matrices up to which every order is weighed."""


Tree = int | tuple["Tree", "Tree | None"]


class ChainStructure(NamedTuple):
    """The products of a chain of which half is known."""

    mirrored: frozenset[tuple[int, int]] = frozenset()
    """From which of the lengths to which a part of the chain is a product with its own transpose or
    adjoint."""
    triangular: frozenset[int] = frozenset()
    """Which matrices are triangular."""


GENERAL = ChainStructure()


@memoized("orders of chains of products", 1024)
def best_order(lengths: tuple[int, ...], halves: ChainStructure = GENERAL) -> tuple[int, Tree]:
    """Return (multiply-adds, order) of a product of matrices of lengths[i] x lengths[i + 1]."""
    longest = max(lengths)
    if not (syrk_pays_off(longest, longest) or trmm_pays_off(longest, longest)):
        halves = GENERAL  # none of them is worth it
    if len(lengths) - 1 > MAX_EXACT_MATRICES:
        splits = _near_optimal_splits(lengths)
    elif halves == GENERAL and len(set(lengths)) == 1:
        return _order_of_squares(len(lengths) - 1, longest)
    else:
        splits = _optimal_splits(lengths) if halves == GENERAL else _optimal_structured_splits(lengths, halves)
    return _build_tree(lengths, splits, halves)


def _order_of_squares(count: int, order: int) -> tuple[int, Tree]:
    """Every order of square matrices takes as much."""
    tree: Tree = count - 1
    for at in range(count - 2, -1, -1):
        tree = at, tree
    return (count - 1) * order**3, tree


def syrk_pays_off(rows: int, columns: int) -> bool:
    """Whether half of a product of so many rows with its transpose is worth it."""
    return rows >= SYMMETRIC[0] and columns >= SYMMETRIC[1]


def trmm_pays_off(order: int, lines: int) -> bool:
    """Whether half of a triangular matrix is worth it beside so many rows or columns."""
    return order >= TRIANGULAR[0] and lines >= TRIANGULAR[1]


def _is_symmetric_product(lengths: tuple[int, ...], halves: ChainStructure, split: tuple[int, int, int]) -> bool:
    """Whether a product, of a part split in two, is one with its own transpose."""
    first, at, last = split
    middle = first + last == 2 * at and (first, last) in halves.mirrored
    return middle and syrk_pays_off(lengths[first], lengths[at])


def _product_cost(lengths: tuple[int, ...], halves: ChainStructure, split: tuple[int, int, int]) -> int:
    """The multiply-adds of one product."""
    first, at, last = split
    rows, inner, columns = lengths[first], lengths[at], lengths[last]
    if _is_symmetric_product(lengths, halves, split):
        return rows * (rows + 1) // 2 * inner
    if at == first + 1 and first in halves.triangular and trmm_pays_off(rows, columns):
        return rows * (rows + 1) // 2 * columns
    if last == at + 1 and at in halves.triangular and trmm_pays_off(columns, rows):
        return columns * (columns + 1) // 2 * rows
    return rows * inner * columns


Splits = dict[tuple[int, int], int]
"""For a part of the chain, from one of the lengths to another, the length it is split at."""


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


def _optimal_structured_splits(lengths: tuple[int, ...], halves: ChainStructure) -> Splits:
    """As _exact, where half of some products is known."""
    count = len(lengths)
    cost: dict[tuple[int, int], int] = {(at, at + 1): 0 for at in range(count)}
    splits: Splits = {}
    for width in range(2, count):
        for first in range(count - width):
            last = first + width
            best, splits[first, last] = min(
                (
                    cost[first, at]
                    + (0 if _is_symmetric_product(lengths, halves, (first, at, last)) else cost[at, last])
                    + _product_cost(lengths, halves, (first, at, last)),
                    at,
                )
                for at in range(last - 1, first, -1)
            )
            cost[first, last] = best
    return splits


def _near_optimal_splits(lengths: tuple[int, ...]) -> Splits:
    """Cut triangles off the polygon whose corners are the lengths, then fan out from the smallest.

    Corners are gone through once, from the smallest on and around to it.
    """
    count = len(lengths)
    low = lengths.index(min(lengths))
    smallest = lengths[low]
    order = [(low + step) % count for step in range(count)]
    triangles: list[tuple[int, int, int]] = []
    stack = [low]
    for corner in (*order[1:], low):
        while len(stack) > 1:
            before, top = (lengths[at] for at in stack[-2:])
            after = lengths[corner]
            ends = before * after
            if stack[-2] == low or corner == low:
                break  # these triangles are part of the fan
            if before * top * after + ends * smallest > smallest * top * (before + after):
                break
            triangles.append((stack[-2], stack[-1], corner))
            stack.pop()
        stack.append(corner)
    around = stack[1:-1]
    triangles += [(low, one, other) for one, other in pairwise(around)]
    splits: Splits = {}
    for triangle in triangles:
        first, middle, last = sorted(triangle)
        splits[first, last] = middle
    return splits


def _build_tree(lengths: tuple[int, ...], splits: Splits, halves: ChainStructure) -> tuple[int, Tree]:
    """Return the tree and its cost; no recursion."""
    done: dict[tuple[int, int], tuple[int, Tree]] = {}
    stack = [(0, len(lengths) - 1)]
    while stack:
        first, last = stack[-1]
        if last - first == 1:
            done[stack.pop()] = (0, first)
            continue
        middle = splits[first, last]
        split = first, middle, last
        once = last - first > 2 and _is_symmetric_product(lengths, halves, split)
        parts = [(first, middle)] if once else [(first, middle), (middle, last)]
        missing = [part for part in parts if part not in done]
        if missing:
            stack += missing
            continue
        found = [done[part] for part in parts]
        left, right = found[0][1], None if once else found[1][1]
        total = sum(each for each, _ in found) + _product_cost(lengths, halves, split)
        done[stack.pop()] = (total, (left, right))
    return done[0, len(lengths) - 1]
