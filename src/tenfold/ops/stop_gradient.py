"""Constants for derivatives: the values of an array (`stop_gradient`), and zeros of its shape."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import any_dtype
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import Body, Operand
from tenfold.ops.complex_parts import componentwise


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


def _zero(k: Body, x: Operand) -> Operand:
    return componentwise(lambda k, x: k.constant(0, x.dtype))(k, x)


@elementwise(
    dtypes=any_dtype,
    reference=np.zeros_like,
    kernel=_zero,
    takes_halves=True,
    zero_derivative=True,
    public=False,
)
def zeros_of(x: Array, /) -> Array:
    """Return zeros of the shape of `x`, which is batched as `x` is."""
