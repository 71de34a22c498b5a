"""Diagonal solve rules: a solve with a diagonal matrix becomes a division.

Takes a substitution with a matrix that is diagonal, by inference or by a promise
(`linear_algebra/structure_inference.py`), hands on the division by its diagonal. The matrix is not
made, and the division is fused into the kernel around it. Class linear-algebra.

>>> import tenfold as tn
>>> x = tn.linalg.solve(tn.diag(tn.asarray([2.0, 4.0])), tn.asarray([1.0, 1.0]))
>>> x.tolist()
[0.5, 0.25]
"""

from __future__ import annotations

from tenfold.core.pattern import pattern, variables
from tenfold.dtypes import FLOAT32, FLOAT64
from tenfold.ops.diagonal_solve import solve_diagonal
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.lu_and_triangular import triangular_solve
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes

x, y = variables("x y")


def _diagonal_division(match: Match) -> NodeView | None:
    """The right side divided by the diagonal; None for an empty system, which cannot fail."""
    root, matrix, right = match.root, match["x"], match["y"]
    if root.params != ("diagonal", False) or root.dtype not in (FLOAT32, FLOAT64) or not root.size:
        return None
    if matrix.dtype != root.dtype or right.dtype != root.dtype:
        return None
    last = len(matrix.shape) - 2
    on_it = match.make(diagonal, matrix, params=(0, last, last + 1))
    if len(right.shape) > 1:
        on_it = insert_axes(match, on_it, (last + 1,))
    made = match.make(solve_diagonal, right, on_it)
    return made if made.type == root.type else None


DIAGONAL_SOLVES = (
    Rule("solve-diagonal", pattern(triangular_solve, x, y), _diagonal_division, exactness="linear-algebra"),
)
