"""Comparisons of elements: bool results, exact between int64 and uint64, order for real numbers.

A Python integer beyond the other operand's dtype is compared by its value, never refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import BOOL
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import comparison, ordering
from tenfold.ir.op import device_of
from tenfold.ir.shape import broadcast
from tenfold.ops.create import full


def _beyond(*, smaller: bool, larger: bool) -> Callable[[tuple[Type, ...], int, bool], Array]:
    """The answer for a scalar beyond its dtype, given those for `x1` smaller and `x1` larger."""

    def answer(types: tuple[Type, ...], position: int, negative: bool) -> Array:
        shape = broadcast(*(type_.shape for type_ in types))
        first_is_smaller = (position == 1) != negative
        value = smaller if first_is_smaller else larger
        return full(shape, value, dtype=BOOL, device=device_of(types))

    return answer


@elementwise(
    dtypes=comparison,
    reference=np.equal,
    symbol="==",
    out_of_range=_beyond(smaller=False, larger=False),
)
def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 == x2`, element by element: bool. NaN equals nothing, -0 equals 0.

    >>> import tenfold as tn
    >>> tn.equal(tn.asarray([1, 2]), 2).tolist()
    [False, True]
    """


@elementwise(
    dtypes=comparison,
    reference=np.not_equal,
    symbol="!=",
    out_of_range=_beyond(smaller=True, larger=True),
)
def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 != x2`, element by element: bool. NaN differs from everything.

    >>> import tenfold as tn
    >>> tn.not_equal(tn.asarray([1, 2]), 2).tolist()
    [True, False]
    """


@elementwise(
    dtypes=ordering,
    reference=np.less,
    symbol="<",
    out_of_range=_beyond(smaller=True, larger=False),
)
def less(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 < x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less(tn.asarray([1, 2], dtype=tn.uint8), 300).tolist()
    [True, True]
    """


@elementwise(
    dtypes=ordering,
    reference=np.less_equal,
    symbol="<=",
    out_of_range=_beyond(smaller=True, larger=False),
)
def less_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 <= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """


@elementwise(
    dtypes=ordering,
    reference=np.greater,
    symbol=">",
    out_of_range=_beyond(smaller=False, larger=True),
)
def greater(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 > x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater(tn.asarray([1, 2, 3]), 2).tolist()
    [False, False, True]
    """


@elementwise(
    dtypes=ordering,
    reference=np.greater_equal,
    symbol=">=",
    out_of_range=_beyond(smaller=False, larger=True),
)
def greater_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 >= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
