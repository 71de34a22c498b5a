"""Foreign operands: operators of Arrays and objects of libraries that know only NumPy's arrays.

Takes an operator and its operands, of which one is neither an array nor a number, or holds elements
that only NumPy does: NumPy computes with those. Lists, tuples and ranges become Arrays. SciPy's
sparse matrices get the values of the Array, and their result becomes an Array where it is dense.
Others answer by their own operators.

>>> from scipy import sparse
>>> import tenfold as tn
>>> (sparse.csr_array([[1.0, 0.0]]) + tn.asarray([[2.0, 3.0]])).tolist()
[[3.0, 3.0]]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.dtypes import DTYPE_NAMES
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.interop.numpy_dispatch import check_fallback
from tenfold.interop.scipy_sparse import is_sparse

FOREIGN_OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], np.ufunc]] = {
    "+": (operator.add, np.add),
    "-": (operator.sub, np.subtract),
    "*": (operator.mul, np.multiply),
    "/": (operator.truediv, np.true_divide),
    "//": (operator.floordiv, np.floor_divide),
    "%": (operator.mod, np.remainder),
    "**": (operator.pow, np.power),
    "@": (operator.matmul, np.matmul),
    "<": (operator.lt, np.less),
    "<=": (operator.le, np.less_equal),
    "==": (operator.eq, np.equal),
    "!=": (operator.ne, np.not_equal),
    ">": (operator.gt, np.greater),
    ">=": (operator.ge, np.greater_equal),
    "&": (operator.and_, np.bitwise_and),
    "|": (operator.or_, np.bitwise_or),
    "^": (operator.xor, np.bitwise_xor),
    "<<": (operator.lshift, np.left_shift),
    ">>": (operator.rshift, np.right_shift),
}
"""The function of each operator, and the ufunc that a warning names."""

SEQUENCE_TYPES = (list, tuple, range)
NUMPY_TYPES = (np.ndarray, np.generic)


def apply_operator(symbol: str, left: Any, right: Any) -> Any:
    """Return `left <symbol> right` of an Array and a list or a sparse matrix, else NotImplemented.

    A sparse matrix becomes one of a storage kind beside an Array of one; else it waits for values.
    """
    function, ufunc = FOREIGN_OPERATORS[symbol]
    if isinstance(left, SEQUENCE_TYPES):
        return function(asarray(left), right)
    if isinstance(right, SEQUENCE_TYPES):
        return function(left, asarray(right))
    if isinstance(left, NUMPY_TYPES) or isinstance(right, NUMPY_TYPES):
        check_fallback(ufunc)  # of elements that only NumPy holds
    elif not (is_sparse(left) or is_sparse(right)):
        return NotImplemented
    if _native.has_kind(left) or _native.has_kind(right):
        return function(asarray(left), asarray(right))
    result = function(*(value_of(x, symbol) if isinstance(x, Array) else x for x in (left, right)))
    is_held = type(result) is np.ndarray and result.dtype in DTYPE_NAMES
    return asarray(result) if is_held else result
