"""Stop of derivatives (`stop_gradient`): the values of an array, as a constant for derivatives."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import any_dtype
from tenfold.core.op_decorators import elementwise


@elementwise(
    dtypes=any_dtype,
    reference=np.copy,
    kernel=lambda _, x: x,
    takes_halves=True,
    zero_derivative=True,
    section="derivatives",
)
def stop_gradient(x: Array, /) -> Array:
    """Return the values of `x`, through which no derivative goes: that of the result by `x` is 0.

    >>> import tenfold as tn
    >>> tn.grad(lambda x: x * tn.stop_gradient(x))(tn.asarray(3.0)).item()
    3.0
    """
