"""The parts of complex numbers. Real dtypes count as complex ones with an imaginary part of 0."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import arithmetic, magnitude


@elementwise(dtypes=arithmetic, reference=np.conjugate)
def conj(x: Array, /) -> Array:
    """`x` with the sign of its imaginary part turned, element by element; the dtype of `x`.

    Real dtypes are returned as they are, bool as int8.

    >>> import tenfold as tn
    >>> tn.conj(tn.asarray([1 + 2j])).tolist()
    [(1-2j)]
    """


@elementwise(dtypes=magnitude, reference=np.real, numpy=(np.real,))
def real(x: Array, /) -> Array:
    """Real part of `x`, element by element: float32 for complex64, float64 for complex128.

    Real dtypes are returned as they are.

    >>> import tenfold as tn
    >>> tn.real(tn.asarray([1 + 2j])).tolist()
    [1.0]
    """


@elementwise(dtypes=magnitude, reference=np.imag, numpy=(np.imag,))
def imag(x: Array, /) -> Array:
    """Imaginary part of `x`, element by element: float32 for complex64, float64 for complex128.

    0 in the dtype of `x` for real dtypes.

    >>> import tenfold as tn
    >>> tn.imag(tn.asarray([1 + 2j])).tolist()
    [2.0]
    """
