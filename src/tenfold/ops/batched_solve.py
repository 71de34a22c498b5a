"""Batched solves: the batch rules of solves, many members as one call.

Takes matrices (n, n) and right sides, vectors (n,) or matrices (n, k), hands on the solutions.

>>> import tenfold as tn
>>> from tenfold.ops.linalg import solve
>>> sides = tn.asarray([[2.0, 8.0], [4.0, 4.0]])
>>> members = Members(solve, 2, (tn.eye(2) * 2, sides), (False, True))
>>> stacked_solves(members).tolist()
[[1.0, 4.0], [2.0, 2.0]]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenfold._native import Array
from tenfold.ops.batch_rules import Members
from tenfold.ops.movement import permute_dims, squeeze
from tenfold.ops.reshaping import reshape


def stacked_solves(members: Members, *params: Any) -> Array:
    """The members' solves as a stack; of a matrix that they share the planner makes the factors
    once, where it has to make any.
    """
    matrix_ndim, rhs_ndim = members.ndim(0), members.ndim(1)
    if not members.batched[1]:
        result: Array = members.call((members.aligned(0, rhs_ndim), members.operands[1]), params)
        return result
    rhs = members.operands[1] if rhs_ndim > 1 else members.spread(1, 1, 1)
    ndim = max(matrix_ndim, rhs_ndim, 2)
    columns = replace(members, operands=(members.operands[0], rhs))
    found = members.call((columns.aligned(0, ndim), columns.aligned(1, ndim)), params)
    return found if rhs_ndim > 1 else squeeze(found, -1)


def solves_as_one(members: Members, *params: Any) -> Array:
    """The members' solves; with one matrix for all as one solve with all right sides."""
    rhs_ndim = members.ndim(1)
    if members.batched[0] or members.ndim(0) > 2 or rhs_ndim > 2:
        return stacked_solves(members, *params)
    rhs = members.operands[1] if rhs_ndim > 1 else members.spread(1, 1, 1)
    length, order, columns = rhs.shape
    rhs_matrix = reshape(permute_dims(rhs, (1, 0, 2)), (order, length * columns))
    solutions = reshape(
        members.call((members.operands[0], rhs_matrix), params), (order, length, columns)
    )
    solutions = permute_dims(solutions, (1, 0, 2))
    return solutions if rhs_ndim > 1 else squeeze(solutions, -1)
