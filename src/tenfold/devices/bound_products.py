"""Bound products: what a replay is given so that it launches a product without Python.

Takes what is multiplied and how its operands lie, hands on a BoundProduct; None where a replay
calls Python: for operands that are converted or copied first, for library calls, which hold BLAS
to one thread, and for scalars that native code does not multiply as NumPy does.

>>> from tenfold._native import Type
>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.ops.contract import matmul
>>> type_ = Type((8, 8), FLOAT64, "cpu")
>>> node = Called(matmul, (), (FLOAT64, FLOAT64), (type_,), type_, "matmul")
>>> x = Factor((8, 8), (64, 8), FLOAT64)
>>> found = bound_product(node, [x, x])
>>> found.reads, found.multiply_adds, found.numbers
((0, 1), 512, ())
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.devices import accumulate, multiply
from tenfold.devices.product_forms import Factor
from tenfold.devices.products import ProductStep
from tenfold.devices.reference import Called

Word = bytes | int
"""A word of the launch's scalars, or which operand, a Python number, the word before is multiplied
by."""
CASTABLE = ("float32", "float64")
"""The dtypes in which native code multiplies numbers."""


class BoundProduct(NamedTuple):
    """How a product is launched."""

    step: ProductStep
    reads: tuple[int, ...]
    """The operands in the order in which the launch has them; the result comes third."""
    numbers: tuple[Word, ...]
    multiply_adds: int
    """What it counts as."""

    @property
    def sizes(self) -> bytes:
        """The sizes of its launch."""
        return struct.pack(f"{len(self.step.sizes)}q", *self.step.sizes)


def bound_product(node: Called, operands: Sequence[Factor | None]) -> BoundProduct | None:
    """Return how native code launches a product; a Python number among the operands is None."""
    if node.op.accumulates is not None:
        found = _update(node, operands)
    elif node.op.contraction is not None:
        found = _product(node, operands)
    else:
        found = None
    if found is None or found[0].addresses:
        return None
    step, third, numbers = found
    assert node.op.multiply_adds is not None, "a product says what it costs"
    types = tuple(
        Type(x.shape, x.dtype, "cpu") if x else Type((), node.type.dtype, "cpu") for x in operands
    )
    reads = (*step.operands, *([third] if step.reads_third else []))
    return BoundProduct(step, reads, numbers, node.op.multiply_adds(types, *node.params))


Found = tuple[ProductStep, int, tuple[Word, ...]]
"""The step, which operand is added, and the scalars."""


def _product(node: Called, operands: Sequence[Factor | None]) -> Found | None:
    x1, x2 = operands
    assert x1 is not None, "a product has two arrays"
    assert x2 is not None, "a product has two arrays"
    if not x1.dtype == x2.dtype == node.type.dtype:
        return None
    width = multiply.register_bytes()
    step = multiply.decided(node.op, node.params, x1, x2, width)[1]
    return None if step is None else (step, -1, ())


def _update(node: Called, operands: Sequence[Factor | None]) -> Found | None:
    *_, scales, added = node.params
    third, dtype = 2 + scales, node.type.dtype
    arrays = [0, 1, third] if added else [0, 1]
    if [place for place, x in enumerate(operands) if x is not None] != arrays:
        return None  # a number is an array without axes
    found = [x for x in operands if x is not None]
    if any(x.dtype != dtype for x in found):
        return None
    row = 0
    if added:
        x3 = accumulate.broadcast_factor(found[2], node.type.shape)
        if not accumulate.rows_beside(x3):
            return None
        row = x3.strides[0]
    x1, x2 = map(accumulate.turned_factor, found, node.params[:2])
    update = accumulate.update_of(node.params, dtype, row)
    step = accumulate.decided(x1, x2, update, multiply.register_bytes())
    numbers = _scalars(node, range(2, third), range(third + 1, len(operands)))
    return None if numbers is None else (step, third, numbers)


def _scalars(node: Called, alpha: range, beta: range) -> tuple[Word, ...] | None:
    """Return alpha and beta, 16 bytes each: their signs, and the operands they are multiplied by."""
    *_, sign, _, added = node.params
    dtype, numbers = node.type.dtype, []
    if (alpha or beta) and str(dtype) not in CASTABLE:
        return None
    for factor, places in ((sign, alpha), (added, beta)):
        word = np.asarray(factor, dtype).tobytes().ljust(16, b"\0")
        numbers += [word[:8], *places, word[8:]]
    return tuple(numbers)
