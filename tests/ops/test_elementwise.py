"""Every elementwise operation of the table, over dtypes, shapes, layouts and special values."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
from grid import (
    ALL_DTYPES,
    SHAPES,
    WEAK,
    arity_of,
    computed,
    elementwise_ops,
    filled,
    legal,
    numpy_dtype,
    pairs,
    same_or_close,
    shared,
    special_values,
    type_of,
)
from truths import expected

import tenfold as tn
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DTypeError
from tenfold.ir.op import Op
from tenfold.ops.cast import cast_values

SCALARS = ("int", "float", "complex")


def by_name(op: Op) -> str:
    return op.name


def stated(op: Op, names: tuple[str, ...]) -> tuple[tuple[np.dtype, ...], np.dtype]:
    """The operand dtypes and the result dtype: NumPy's where it has one, else the rule's."""
    operands, result = op.dtypes(tuple(type_of(name) for name in names))
    known = None if "bfloat16" in names and set(names) & set(SCALARS) else numpy_dtype(op, names)
    return operands, result if known is None else known


def meant(op: Op, operands: list[np.ndarray]) -> list[np.ndarray]:
    """Operands for which the operation has a value: no negative powers of integers."""
    if op.whole_exponent and kind_of(operands[0].dtype) in "i":
        exponents = np.maximum(operands[1], 0)
        return [operands[0], exponents.astype(operands[1].dtype)]
    return operands


def check(op: Op, names: tuple[str, ...], operands: list[np.ndarray]) -> None:
    """Compare a call with what it should give; operands broadcast, scalars are 0-d arrays."""
    dtypes, result = stated(op, names)
    cast = meant(op, [cast_values(x, d) for x, d in zip(operands, dtypes, strict=True)])
    given = [
        x.item() if name in SCALARS else shared(y if op.whole_exponent and x.dtype == y.dtype else x)
        for name, x, y in zip(names, operands, cast, strict=True)
    ]
    if op.whole_exponent and kind_of(dtypes[0]) == "i":
        keep = np.broadcast_arrays(*operands)[1] >= 0
        given = [g if n in SCALARS else shared(np.broadcast_to(x, keep.shape)[keep])
                 for g, n, x in zip(given, names, operands, strict=True)]
        cast = [np.broadcast_to(x, keep.shape)[keep] for x in cast]
    shape = np.broadcast_shapes(*(x.shape for x in cast))
    flat = tuple(np.broadcast_to(x, shape).ravel() for x in cast)
    right = expected(op, flat, result).reshape(shape)
    scale = None
    if op.name == "logaddexp":
        scale = np.maximum(np.abs(cast[0]), np.abs(cast[1]))
    same_or_close(computed(op(*given)), right, op.accuracy, scale)
