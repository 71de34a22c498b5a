"""Executable products: the record by which a replay launches a matrix product without Python.

Takes a product, the layouts of its operands and the choice of the schedule. Hands on a
BoundProduct, or None if a replay must call Python: for operands that are converted or copied first,
for a triangle whose side depends on the values, for library calls with an addend, and for scalars
that native code does not multiply as NumPy does.

>>> from tenfold._native import Type
>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.op import Contraction
>>> from tenfold.ops.contract import matmul
>>> from tenfold.schedule.product_choice import choose_product
>>> type_ = Type((8, 8), FLOAT64, "cpu")
>>> node = ReferenceCall(matmul, (), (FLOAT64, FLOAT64), (type_,), type_, "matmul")
>>> x = ProductOperand((8, 8), (64, 8), FLOAT64)
>>> choice = choose_product(Contraction(((1,), (0,)), ((0,), (1,))), x, x, width=32)
>>> found = bound_product(node, [x, x], choice)
>>> found.reads, found.multiply_adds, found.scales
((0, 1), 512, ())
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Executable, Type
from tenfold.dtypes import kind_of
from tenfold.runtime.blas.multiply import cached_step
from tenfold.runtime.blas.product_dispatch import ProductStep
from tenfold.runtime.reference import ReferenceCall
from tenfold.schedule.product_choice import broadcast_operand, has_contiguous_rows, update_of
from tenfold.schedule.product_forms import ProductChoice, ProductOperand
from tenfold.schedule.verify_kernel import verifies

SCALED_DTYPES = ("float32", "float64", "complex64", "complex128")
"""The dtypes of scalars that native code multiplies. Of complex scalars it multiplies no two: NumPy
rounds their products once or twice."""


class ProductScale(NamedTuple):
    """The scalar factor of a product (alpha) or of its addend (beta)."""

    element: bytes
    """The sign, as bytes of the dtype."""
    negative: bool
    operands: tuple[int, ...]
    """The positions of scalar operands to multiply: Python numbers and 0-d arrays."""


class BoundProduct(NamedTuple):
    """The native launch of a product."""

    step: ProductStep
    reads: tuple[int, ...]
    """The operands in launch order; the result comes third."""
    scales: tuple[ProductScale, ...]
    multiply_adds: int
    """The value for the counter of multiply-adds."""

    @property
    def functions(self) -> list[tuple[int, int]]:
        """The library functions that it calls, as further buffers of the launch."""
        return [(Executable.ADDRESS, address) for address in self.step.addresses]

    @property
    def sizes(self) -> bytes:
        """The sizes of its launch."""
        return struct.pack(f"{len(self.step.sizes)}q", *self.step.sizes)


def bound_product(
    node: ReferenceCall, operands: Sequence[ProductOperand | None], choice: ProductChoice
) -> BoundProduct | None:
    """Return the native launch of a product; a Python number among the operands is None."""
    if any(x is not None and x.dtype != node.type.dtype for x in operands) or choice.copy_order:
        return None
    bind = _product if choice.update is None else _update
    match = bind(node, operands, choice)
    if match is None:
        return None
    step, third, scales = match
    if step.addresses and third in range(len(operands)):
        return None  # the addend must be copied to the result first
    assert node.op.lowering.multiply_adds is not None, "a product says what it costs"
    types = tuple(
        Type(x.shape, x.dtype, "cpu") if x else Type((), node.type.dtype, "cpu") for x in operands
    )
    reads = (*step.operands, *([third] if step.reads_third else []))
    return BoundProduct(step, reads, scales, node.op.lowering.multiply_adds(types, *node.params))


ProductMatch = tuple[ProductStep, int, tuple[ProductScale, ...]]
"""The step, the position of the addend, and alpha and beta."""


def _product(
    _node: ReferenceCall, _operands: Sequence[ProductOperand | None], choice: ProductChoice
) -> ProductMatch:
    return cached_step(choice, verifies()), -1, ()


def _update(
    node: ReferenceCall, operands: Sequence[ProductOperand | None], choice: ProductChoice
) -> ProductMatch | None:
    *_, count, added = node.params
    third, type_ = 2 + count, node.type
    x3 = operands[third] if added else None
    if added and (x3 is None or not has_contiguous_rows(broadcast_operand(x3, type_.shape))):
        return None  # it is copied first
    if update_of(node.params, type_.dtype, None).half.endswith("either"):
        return None  # the side depends on the values
    step = cached_step(choice, verifies())
    scales = _scales(node, range(2, third), range(third + 1, len(operands)))
    return None if scales is None else (step, third, scales)


def _scales(node: ReferenceCall, alpha: range, beta: range) -> tuple[ProductScale, ...] | None:
    """Return the factors of the product and of its addend."""
    *_, sign, _, added = node.params
    dtype = node.type.dtype
    most_factors = max(len(alpha), len(beta))
    if most_factors and (
        str(dtype) not in SCALED_DTYPES or (kind_of(dtype) == "c" and most_factors > 1)
    ):
        return None
    pairs = ((sign, alpha), (added, beta))
    return tuple(
        ProductScale(np.asarray(factor, dtype).tobytes(), factor < 0, (*operands,))
        for factor, operands in pairs
    )
