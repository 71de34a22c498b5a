"""Chains: in which order a product of many matrices is computed. Pure numbers, no arrays.

Takes the lengths of a chain, n + 1 for n matrices, hands on its multiply-adds and a tree of places:
a number for a matrix, a pair for a product. Up to `EXACT` matrices the order is the best there is,
by dynamic programming (Cormen, Leiserson, Rivest, Stein 2022, "Introduction to Algorithms", 4th
edition, 14.2). Longer chains are products of three neighbouring lengths at a time: a length goes
where a triangle with its neighbours and one with the smallest length cost no more than the two
which join the smallest length with both (the condition of Chin 1978, "An O(n) algorithm for
determining a near-optimal computation order of matrix chain products", CACM 21; Hu and Shing 1981,
"An O(n) algorithm to find a near-optimum partition of a convex polygon", J. Algorithms 2, bound
the result by 1.155 times the best).

>>> chain((1000, 10, 1000, 10))
(200000, (0, (1, 2)))
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

EXACT = 64
"""The matrices up to which every order is weighed."""

Tree = int | tuple["Tree", "Tree"]


@lru_cache(1024)
def chain(lengths: tuple[int, ...]) -> tuple[int, Tree]:
    """Return (multiply-adds, order) of a product of matrices of lengths[i] x lengths[i + 1]."""
    splits = _exact(lengths) if len(lengths) - 1 <= EXACT else _near(lengths)
    return _built(lengths, splits)


Splits = dict[tuple[int, int], int]
"""For a part of the chain, from one of the lengths to another, the length it is split at."""


def _exact(lengths: tuple[int, ...]) -> Splits:
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


def _near(lengths: tuple[int, ...]) -> Splits:
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


def _built(lengths: tuple[int, ...], splits: Splits) -> tuple[int, Tree]:
    """Return the tree and its cost; no recursion."""
    done: dict[tuple[int, int], tuple[int, Tree]] = {}
    stack = [(0, len(lengths) - 1)]
    while stack:
        first, last = stack[-1]
        if last - first == 1:
            done[stack.pop()] = (0, first)
            continue
        middle = splits[first, last]
        parts = (first, middle), (middle, last)
        missing = [part for part in parts if part not in done]
        if missing:
            stack += missing
            continue
        (one, left), (other, right) = (done[part] for part in parts)
        here = lengths[first] * lengths[middle] * lengths[last]
        done[stack.pop()] = (one + other + here, (left, right))
    return done[0, len(lengths) - 1]
