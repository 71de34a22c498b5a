"""Elementary functions: floating dtypes in and out, integers computed as NumPy does."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import floating


@elementwise(dtypes=floating, reference=np.exp, accuracy=2)
def exp(x: Array, /) -> Array:
    """e to the power of `x`, element by element: floating dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.exp(tn.asarray([0.0])).tolist()
    [1.0]
    """


@elementwise(dtypes=floating, reference=np.sin, accuracy=4)
def sin(x: Array, /) -> Array:
    """Sine of `x` in radians, element by element: floating dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.sin(tn.asarray([0.0])).tolist()
    [0.0]
    """
