"""Questions about elements, and logic on truth values: bool results."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import logical, predicate, real_predicate


@elementwise(dtypes=predicate, reference=np.isfinite)
def isfinite(x: Array, /) -> Array:
    """Whether `x` is neither infinite nor NaN, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isfinite(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [True, False, False]
    """


@elementwise(dtypes=predicate, reference=np.isinf)
def isinf(x: Array, /) -> Array:
    """Whether `x` is infinite, for complex in either part, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isinf(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [False, True, False]
    """


@elementwise(dtypes=predicate, reference=np.isnan)
def isnan(x: Array, /) -> Array:
    """Whether `x` is NaN, for complex in either part, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isnan(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [False, False, True]
    """


@elementwise(dtypes=real_predicate, reference=np.signbit)
def signbit(x: Array, /) -> Array:
    """Whether the sign of `x` is minus, element by element: bool; True for -0. Real dtypes.

    >>> import tenfold as tn
    >>> tn.signbit(tn.asarray([-0.0, 0.0, -3.0])).tolist()
    [True, False, True]
    """


@elementwise(dtypes=logical, reference=np.logical_and)
def logical_and(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether both `x1` and `x2` are true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_and(tn.asarray([0, 1, 2]), True).tolist()
    [False, True, True]
    """


@elementwise(dtypes=logical, reference=np.logical_or)
def logical_or(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1` or `x2` is true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_or(tn.asarray([0, 1, 2]), False).tolist()
    [False, True, True]
    """


@elementwise(dtypes=logical, reference=np.logical_xor)
def logical_xor(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether one of `x1` and `x2` alone is true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_xor(tn.asarray([0, 1, 2]), True).tolist()
    [True, False, False]
    """


@elementwise(dtypes=logical, reference=np.logical_not)
def logical_not(x: Array, /) -> Array:
    """Whether `x` is false (0), element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.logical_not(tn.asarray([0.0, 2.5, float("nan")])).tolist()
    [True, False, False]
    """
