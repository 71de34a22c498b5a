"""Foreign operands: operators of Arrays and objects of libraries that know only NumPy's arrays.

Takes an operator and its operands, of which one is neither an array nor a number. Lists, tuples
and ranges become Arrays. SciPy's sparse matrices get the values of the Array, and their result
becomes an Array where it is dense. Others answer by their own operators.

>>> from scipy import sparse
>>> import tenfold as tn
>>> (sparse.csr_array([[1.0, 0.0]]) + tn.asarray([[2.0, 3.0]])).tolist()
[[3.0, 3.0]]
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of

FOREIGN_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}

SEQUENCE_TYPES = (list, tuple, range)


def apply_operator(symbol: str, left: Any, right: Any) -> Any:
    """Return `left <symbol> right` of an Array and a list or a sparse matrix, else NotImplemented.

    A sparse matrix waits for the values.
    """
    function = FOREIGN_OPERATORS[symbol]
    if isinstance(left, SEQUENCE_TYPES):
        return function(asarray(left), right)
    if isinstance(right, SEQUENCE_TYPES):
        return function(left, asarray(right))
    if not (_is_sparse(left) or _is_sparse(right)):
        return NotImplemented
    result = function(*(value_of(x, symbol) if isinstance(x, Array) else x for x in (left, right)))
    return asarray(result) if isinstance(result, np.ndarray) else result


def _is_sparse(value: Any) -> bool:
    sparse: Any = sys.modules.get("scipy.sparse")  # not imported: there is none
    return sparse is not None and bool(sparse.issparse(value))
