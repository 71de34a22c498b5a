"""The batch rule of solves: many members as one call.

Takes matrices (n, n) and right sides, vectors (n,) or matrices (n, k), hands on the solutions.

>>> import tenfold as tn
>>> from tenfold.ops.linalg import solve
>>> sides = tn.asarray([[2.0, 8.0], [4.0, 4.0]])
>>> members = Members(solve, 2, (tn.eye(2) * 2, sides), (False, True))
>>> solve_members(members).tolist()
[[1.0, 4.0], [2.0, 2.0]]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenfold._native import Array
from tenfold.ops.members import Members
from tenfold.ops.movement import permute_dims, squeeze
from tenfold.ops.reshaping import reshape


def solve_members(members: Members, *params: Any) -> Array:
    """The members' solves: with one matrix for all as one with many right sides."""
    first, second = members.ndim(0), members.ndim(1)
    if not members.batched[1]:
        made: Array = members.call((members.aligned(0, second), members.operands[1]), params)
        return made
    right = members.operands[1] if second > 1 else members.spread(1, 1, 1)
    if members.batched[0] or first > 2 or second > 2:
        stacks = max(first, second, 2)
        both = replace(members, operands=(members.operands[0], right))
        found = members.call((both.aligned(0, stacks), both.aligned(1, stacks)), params)
    else:
        length, order, columns = right.shape
        sides = reshape(permute_dims(right, (1, 0, 2)), (order, length * columns))
        found = reshape(
            members.call((members.operands[0], sides), params), (order, length, columns)
        )
        found = permute_dims(found, (1, 0, 2))
    return found if second > 1 else squeeze(found, -1)
