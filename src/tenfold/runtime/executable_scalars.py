"""Executable scalars: the scalars of a launch, as bytes or as casts at each replay.

Takes a node that is a Python scalar, or an array of one number everywhere, and a kernel's scalar
parameter; hands on the 8 bytes that the launch passes.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.dtypes import FLOAT64
>>> (_, scalar) = _native.node_of(tn.asarray([1.0]) * 2).inputs
>>> scalar_bytes(scalar, LaunchScalar(0, FLOAT64)) == np.float64(2).tobytes()
True
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Node
from tenfold.dtypes import kind_of
from tenfold.runtime import reference
from tenfold.schedule.loop_schedule import parameter_bytes
from tenfold.schedule.lowering import LaunchScalar


def scalar_bytes(node: Node, parameter: LaunchScalar) -> bytes:
    """Return what a launch is given for a Python scalar, or an array of one number everywhere."""
    if node.is_scalar:
        value = np.asarray(node.scalar)
    else:
        with np.errstate(all="ignore"):
            value = np.asarray(node.op.constant_fill(*node.params)).astype(node.type.dtype)
    return parameter_bytes(parameter, reference.cast_operand(value, parameter.dtype))


def castable(number: object, dtype: np.dtype) -> bool:
    """Whether native code casts such a number to the dtype as NumPy does."""
    if kind_of(dtype) == "f":
        return dtype.itemsize >= 4 and isinstance(number, (bool, int, float))
    return kind_of(dtype) == "c" or isinstance(number, (bool, int))
