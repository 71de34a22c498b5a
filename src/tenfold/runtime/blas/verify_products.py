"""Product verification: a launch reads within its operands, writes its whole result, and covers it
once.

Takes a ProductStep and the layouts of the operands, raises VerifyError. Lengths and strides are
read from the sizes of the launch, as the kernel does; they must cover the operands' memory exactly.

>>> from dataclasses import replace
>>> from tenfold.runtime.blas.product_dispatch import bind_product
>>> from tenfold.schedule.product_choice import choose_product
>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.op import Contraction
>>> x = ProductOperand((20, 30), (240, 8), FLOAT64), ProductOperand((30, 40), (320, 8), FLOAT64)
>>> from tenfold.schedule.target import DEFAULT
>>> matrices = Contraction(((1,), (0,)), ((0,), (1,)))
>>> choice = choose_product(matrices, *x, target=DEFAULT)
>>> step = bind_product(choice)
>>> verify_product(step, *x)
>>> verify_product(replace(step, units=step.units + 1), *x)
Traceback (most recent call last):
...
tenfold.errors.VerifyError: verify: 5 units, but 4 cover 20 x 40 once
product x1 @ x2 of float64, stack of 0 axes
  tiles of 4 rows by 3 packets of 4 lanes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenfold.codegen.gemm.blas_call import STRIP, BlasGemm
from tenfold.codegen.gemm.blocked import BlockedGemm
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.codegen.gemm.syrk_trmm import SyrkTrmm
from tenfold.codegen.simt.thread_gemm import ThreadGemm
from tenfold.codegen.simt.warp_dot import WarpDot
from tenfold.core.shape_rules import product
from tenfold.core.strided_overlap import StridedRegion
from tenfold.errors import VerifyError
from tenfold.schedule.product_forms import ProductOperand

if TYPE_CHECKING:
    from tenfold.runtime.blas.product_dispatch import ProductStep

ProductShape = tuple[int, int]


class LaunchSizes(NamedTuple):
    """The sizes of a launch as its kernel reads them: lengths, and strides in bytes."""

    stack: list[tuple[int, ...]]
    """The length of each axis, and its strides in the operands."""
    sums: list[tuple[int, ...]]
    m: int
    n: int
    k: int
    first: ProductShape
    second: ProductShape
    third: ProductShape
    units: int
    """The expected number of units."""


def verify_product(
    step: ProductStep, x1: ProductOperand, x2: ProductOperand, third: ProductOperand | None = None
) -> None:
    """Refuse a product whose sizes do not fit its operands; `third` is the addend."""
    kernel = step.kernel
    if len(step.sizes) != len(kernel.sizes):
        raise _verify_error(
            step, f"{len(kernel.sizes)} sizes are read, {len(step.sizes)} are given"
        )
    sizes = _parse_sizes(step)
    if step.units != sizes.units:
        rule = f"{step.units} units, but {sizes.units} cover {sizes.m} x {sizes.n} once"
        raise _verify_error(step, rule)
    if step.grain < 1:
        raise _verify_error(step, f"ranges of {step.grain} units")
    if isinstance(kernel, BlasGemm | BlockedGemm):
        _refuse_scratch(step, kernel)
    counts = [axis[0] for axis in (*sizes.stack, *sizes.sums)]
    multiply_adds = product(counts) * sizes.m * sizes.n * sizes.k
    is_half = isinstance(kernel, SyrkTrmm) or (
        isinstance(kernel, (DotProduct, ThreadGemm)) and kernel.triangle
    )
    if not is_half and step.multiply_adds != multiply_adds:
        raise _verify_error(
            step, f"{step.multiply_adds} multiply-adds, its loops have {multiply_adds}"
        )
    if not multiply_adds:
        return  # nothing is read
    operands = [(x1, x2)[index] for index in step.operands]
    shapes = (sizes.m, sizes.k), (sizes.k, sizes.n)
    strides = sizes.first, sizes.second
    for number, (operand, shape, operand_strides) in enumerate(
        zip(operands, shapes, strides, strict=True), 1
    ):
        axes = [(axis[0], axis[number]) for axis in (*sizes.stack, *sizes.sums)]
        _refuse_out_of_bounds(
            step, f"x{number}", operand, [*axes, *zip(shape, operand_strides, strict=True)]
        )
    if third is not None and step.reads_third:
        axes = [(axis[0], axis[3]) for axis in sizes.stack]
        rows = zip((sizes.m, sizes.n), sizes.third, strict=True)
        _refuse_out_of_bounds(step, "x3", third, [*axes, *rows])


def _verify_error(step: ProductStep, rule: str) -> VerifyError:
    return VerifyError("verify", f"{rule}\n{step.kernel}")


def _parse_sizes(step: ProductStep) -> LaunchSizes:
    """The sizes of a launch, by the order in which each kernel reads them."""
    kernel, sizes = step.kernel, [*step.sizes]

    def axes(count: int, width: int) -> list[tuple[int, ...]]:
        return [tuple([sizes.pop(0) for _ in range(width)]) for _ in range(count)]

    added = step.reads_third
    stack = axes(kernel.axes, 3 + added)
    sums = axes(kernel.sums, 3) if isinstance(kernel, (BlockedGemm, DotProduct, ThreadGemm)) else []
    count = product(axis[0] for axis in stack)
    if isinstance(kernel, (DotProduct, WarpDot)):
        k, first_stride, second_stride, *_ = sizes
        first, second = (0, first_stride), (second_stride, 0)
        units = count * (32 if isinstance(kernel, WarpDot) else 1)
        return LaunchSizes(stack, sums, 1, 1, k, first, second, (0, 0), units)
    if isinstance(kernel, BlasGemm):
        m, n, k, *leading, panel = [*sizes[:5], sizes[-1]]
        third = (sizes[5], sizes[6]) if added else (0, 0)
        first, second = (
            (width * size, size) if layout == "row" else (size, width * size)
            for layout, width in zip(kernel.layouts, leading, strict=True)
            for size in [kernel.dtype.itemsize]
        )
        return LaunchSizes(stack, sums, m, n, k, first, second, third, count * -(-m // panel))
    if isinstance(kernel, SmallGemm):
        (m, k, n), units = kernel.lengths, count
    else:
        m, n, k = (sizes.pop(0) for _ in range(3))
        rows, columns, threads = 64, 64, 256
        if not isinstance(kernel, ThreadGemm):
            rows, columns, threads = kernel.tile.block, kernel.tile.columns, 1
        units = count * -(-m // rows) * -(-n // columns) * threads
    row1, column1, row2, column2, *addend = sizes
    third_row, third_column = (*addend, _itemsize(kernel))[:2] if addend else (0, 0)
    third = third_row, third_column
    return LaunchSizes(stack, sums, m, n, k, (row1, column1), (row2, column2), third, units)


def _itemsize(kernel: SmallGemm | BlockedGemm | ThreadGemm) -> int:
    arithmetic = kernel.tile.arithmetic if isinstance(kernel, BlockedGemm) else kernel.arithmetic
    return arithmetic.dtype.itemsize


def _refuse_scratch(step: ProductStep, kernel: BlasGemm | BlockedGemm) -> None:
    """Refuse too little scratch memory: for a slab, the sums of a block, and the end of a row; of
    BLAS for a strip of a panel.
    """
    if isinstance(kernel, BlasGemm):
        needed = step.sizes[-1] * STRIP * kernel.dtype.itemsize if kernel.scaled else 0
    else:
        tile = kernel.tile
        row = tile.packets * tile.lanes * tile.arithmetic.sum_dtype.itemsize
        needed = row * (tile.slab + tile.block * tile.arithmetic.components + 1)
    if step.scratch < needed:
        raise _verify_error(step, f"{step.scratch} bytes of scratch memory, {needed} are used")


def _refuse_out_of_bounds(
    step: ProductStep, name: str, operand: ProductOperand, axes: Sequence[ProductShape]
) -> None:
    """Refuse reads out of an operand's bounds."""
    lengths, strides = zip(*axes, strict=True)
    size = operand.dtype.itemsize
    first, last = StridedRegion(0, lengths, strides, size).range
    low, high = StridedRegion(0, operand.shape, operand.strides, size).range
    if first < low or high < last:
        rule = f"{name} is read from byte {first} to {last}, but bytes {low} to {high} exist"
        raise _verify_error(step, rule)


__all__ = ["verify_product"]
