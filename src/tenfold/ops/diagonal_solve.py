"""Diagonal solve: elementwise division by a matrix's diagonal, with an error for 0.

Takes the right sides of equations and the diagonals, shaped to broadcast with them. Rules make it
of solves with diagonal matrices (`linear_algebra/diagonal_solve_rules.py`), so that the matrix need
not be made. It is not public.

>>> solve_diagonal.reference(np.asarray([2.0, 6.0]), np.asarray([1.0, 3.0]))
array([2., 2.])
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import real_floating
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import Body, Element
from tenfold.ops.linalg import SINGULAR


def _divide_reference(rhs: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    if not diagonal.all():
        raise np.linalg.LinAlgError("Singular matrix: 0 on the diagonal")
    return np.asarray(rhs / diagonal)


def _divide_element(k: Body, x: Element, diagonal: Element) -> Element:
    k.fail(diagonal == 0)
    return x / diagonal


@elementwise(
    dtypes=real_floating,
    reference=_divide_reference,
    kernel=_divide_element,
    can_fail=True,
    remedy=SINGULAR,
    public=False,
    name="solve",
    cost=4,
)
def solve_diagonal(rhs: Array, diagonal: Array, /) -> Array:
    """Quotient `right / diagonal`, element by element; raises LinAlgError at the wait for a 0 on
    the diagonal.
    """
