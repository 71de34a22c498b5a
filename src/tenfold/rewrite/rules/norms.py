"""Norm lowering: norms become sums and maxima of moduli, fused into the kernel around them.

Input: a vector norm of order 1, 2 or infinity, or a Frobenius norm of matrices. Output: the
reduction that defines it (Golub and Van Loan 2013, 2.2.1 and 2.3.1). As in NumPy the elements are
not scaled first: a square that overflows the dtype makes the norm infinite. Other norms, and norms
of integers and half types, are library calls. Class linear-algebra.

>>> import tenfold as tn
>>> norm = tn.linalg.norm(tn.asarray([3.0, 4.0]))
>>> norm.explain("scheduled").splitlines()[0]
'scheduled: 1 kernel, 0 calls, 0 temporaries'
"""

from __future__ import annotations

import math

from tenfold.core.pattern import pattern, variables
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from tenfold.ops.arithmetic import abs as modulus
from tenfold.ops.complex import abs2
from tenfold.ops.elementary import sqrt
from tenfold.ops.norm import norm
from tenfold.ops.reduce import max as largest_of
from tenfold.ops.reduce import sum as sum_over
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule

(x,) = variables("x")


def _norm_as_reduction(match: Match) -> NodeView | None:
    """Return the root of the sum of squares, the sum of moduli or their maximum."""
    elements, (order, axes, keepdims, _) = match["x"], match.root.params
    if elements.dtype not in (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128) or not elements.size:
        return None
    if order in (None, "fro") or (order == 2 and len(axes) == 1):
        squares = match.make(sum_over, match.make(abs2, elements), params=(axes, keepdims, None))
        return match.make(sqrt, squares)
    if len(axes) != 1 or order not in (1, math.inf):
        return None
    moduli = match.make(modulus, elements)
    if order == 1:
        return match.make(sum_over, moduli, params=(axes, keepdims, None))
    return match.make(largest_of, moduli, params=(axes, keepdims))


NORM_RULES = (Rule("norm", pattern(norm, x), _norm_as_reduction, exactness="linear-algebra"),)
