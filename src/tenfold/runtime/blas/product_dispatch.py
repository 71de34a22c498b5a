"""Product dispatch: chooses a compiled kernel or BLAS for a product of two dense operands.

Takes the contracted axes of an operation and the operands' shapes, strides and dtype, hands on a
ProductStep: the kernel and the sizes of its launch. Every product is brought to one form, a stack
of (m, k) @ (k, n). Stacks of small products, integers, half types and vector products always use
packet code. Large products of floating dtypes call BLAS where it was measured to be faster and its
flags express the strides.

>>> from tenfold.dtypes import FLOAT64
>>> x = ProductOperand((512, 512), (4096, 8), FLOAT64)
>>> matrices = Contraction(((1,), (0,)), ((0,), (1,)))
>>> step = product_step(matrices, x, x, width=32)
>>> step.kind, step.reason, step.multiply_adds
('library call', '134,217,728 multiply-adds, BLAS from 134,217,728 on', 134217728)
>>> step = product_step(matrices, x, x, width=64)
>>> step.kind, step.reason
('packet code', 'faster than BLAS at every size with SIMD registers of 64 bytes')
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from tenfold.codegen.gemm.blas_call import ROUTINES, BlasGemm
from tenfold.codegen.gemm.blocked import BlockedGemm
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.emitter import Arithmetic
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.codegen.gemm.syrk_trmm import HALF_NOTES, SyrkTrmm
from tenfold.core.op import Contraction
from tenfold.ops.syrk import MIN_SYRK_SIZE, MIN_TRMM_SIZE, SYMMETRIC_RESULTS
from tenfold.runtime.blas import routines
from tenfold.runtime.blas.product_forms import ProductForm, ProductOperand, form_of, rows_into_stack

ProductKernel = SmallGemm | BlockedGemm | DotProduct | BlasGemm

UNROLL_LIMIT = 512
"""SIMD multiply-adds up to which a small product is unrolled."""
MIN_STACK = 64
"""Products in a stack from which a program for its exact lengths pays."""
MIN_DOT_LENGTH = 8
"""Elements of a row from which SIMD along it pays."""
MIN_SMALL_DOT_LENGTH = 32
"""Elements of a row or column in a small vector product from which SIMD along it pays."""
BLAS_THRESHOLD = {16: 32**3, 32: 512**3}
"""Multiply-adds from which BLAS was as fast or faster, by register bytes (bench/products.py). With
registers of 64 bytes it never was."""
PANEL = 256
"""The rows of one call of gemm."""
MAX_DIMENSION = 2**31 - 1
"""The largest integer of BLAS."""
GRAIN = 1 << 18
"""The multiply-adds of a thread's range of units."""


class ProductUpdate(NamedTuple):
    """The epilogue of a product of matrices: a scalar factor, and an optional addend."""

    conjugated: tuple[bool, bool] = (False, False)
    third: ProductOperand | None = None
    """The addend, multiplied by a second scalar, in the shape of the result. Its rows are
    contiguous, and so is a single column."""
    half: str = ""
    """The triangle of the product or of an operand that is computed or read (`ops/syrk.py`); not
    for stacks."""


@dataclass(frozen=True)
class ProductStep:
    """The launch of a product: a kernel and its launch arguments.

    The buffers of the launch are the kernel's x1 and x2, the contiguous result, the addend if
    `reads_third` (else the result contains it), then `addresses`.
    """

    kernel: ProductKernel
    operands: tuple[int, int]
    """The operands of the operation that are the kernel's x1 and x2: (0, 1) or (1, 0)."""
    sizes: tuple[int, ...]
    units: int
    grain: int
    """The units of a thread's range."""
    scratch: int
    """The scratch bytes of a thread."""
    multiply_adds: int
    reason: str
    """The reason for packet code or a library call."""

    @property
    def kind(self) -> str:
        """Either "packet code" or "library call"."""
        return "library call" if isinstance(self.kernel, BlasGemm) else "packet code"

    @property
    def reads_third(self) -> bool:
        """Whether the addend is a separate buffer of the launch, possibly the result's."""
        return isinstance(self.kernel, BlockedGemm | SmallGemm) and self.kernel.added

    @property
    def text(self) -> str:
        """The LLVM module of its kernel, whose function is called `kernel`."""
        return self.kernel.text()

    @property
    def addresses(self) -> tuple[int, ...]:
        """Further buffers: library functions, to be launched in `routines.limited_threads()`."""
        if isinstance(self.kernel, BlasGemm):
            return (routines.address_of(self.kernel.routine),)
        return ()

    def __str__(self) -> str:
        named_sizes = zip(self.kernel.sizes, self.sizes, strict=True)
        return (
            f"{self.kernel}\n  {self.kind}: {self.reason}\n"
            f"  {', '.join(f'{name} {size}' for name, size in named_sizes)}\n"
            f"  {self.units} units, {self.grain} at a time, {self.multiply_adds} multiply-adds"
        )


def product_step(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand, *, width: int
) -> ProductStep:
    """Return the step of a product on a processor with SIMD registers of `width` bytes.

    Both operands are in the dtype of the result (half types unconverted), and copied in the order
    of `copy_order`. It cannot fail.
    """
    form = form_of(contraction, x1, x2)
    return (
        _small_step(form, width)
        or _dot_step(form, width)
        or _blas_step(form, width)
        or _packet_step(form, width)
    )


def update_step(
    x1: ProductOperand, x2: ProductOperand, update: ProductUpdate, *, width: int
) -> ProductStep:
    """Return the step of `alpha * x1 @ x2 + beta * x3`, (..., m, k) @ (..., k, n)."""
    first, second = len(x1.shape), len(x2.shape)
    matrices = Contraction(((first - 1,), (second - 2,)), ((first - 2,), (second - 1,)))
    form = form_of(matrices, x1, x2, update.third)
    if update.half in HALF_NOTES:
        return _half_step(form, width, update)
    return (
        _small_step(form, width, update)
        or _blas_step(form, width, update)
        or _packet_step(form, width, update)
    )


def _half_step(form: ProductForm, width: int, update: ProductUpdate) -> ProductStep:
    """Packet code for one triangle: with registers of 32 and 64 bytes as fast as BLAS or faster,
    with 16 bytes faster than the full product by BLAS.
    """
    tile = RegisterTile.of(form.dtype, width, form.m, form.n)
    added = update.third is not None
    kernel = SyrkTrmm(tile, 0, *update.conjugated, True, added, half=update.half)
    strides = (*form.first, *form.second, *([form.third] if added else []))
    units = kernel.units(1, form.m, form.n)
    sizes = (form.m, form.n, form.k, *strides)
    first, second = MIN_SYRK_SIZE if update.half in SYMMETRIC_RESULTS else MIN_TRMM_SIZE
    reason = f"{HALF_NOTES[update.half]}, worth it from {first} x {second} on"
    full_step = _step(form, kernel, sizes, units, kernel.scratch, reason)
    order = form.k if update.half.startswith("first") else form.n
    multiply_adds = form.multiply_adds * (order + 1) // max(1, 2 * order)
    return replace(full_step, multiply_adds=multiply_adds)


def _small_step(
    form: ProductForm, width: int, update: ProductUpdate | None = None
) -> ProductStep | None:
    """The step of a stack of many small products, with a program for their lengths."""
    if form.count < MIN_STACK or form.sums.lengths or (update is None and _is_dot_like(form)):
        return None
    arithmetic, lengths = Arithmetic(form.dtype, width), (form.m, form.k, form.n)
    axes, (first, second) = len(form.stack.lengths), _conjugated(form, update)
    added = update is not None and update.third is not None
    kernel = SmallGemm(
        arithmetic, lengths, form.layouts, axes, first, second, update is not None, added
    )
    if form.m * form.n == 0 or kernel.multiply_adds > UNROLL_LIMIT:
        return None
    sizes = (*_stack_sizes(form), *form.first, *form.second, *([form.third] if added else []))
    reason = f"a stack of {form.count:,}, {kernel.multiply_adds:,} SIMD multiply-adds each"
    return _step(form, kernel, sizes, form.count, 0, reason)


def _conjugated(form: ProductForm, update: ProductUpdate | None) -> tuple[bool, bool]:
    return update.conjugated if update else (form.conjugated, False)


def _is_dot_like(form: ProductForm) -> bool:
    """Whether a small product has one row or column, and k is long enough for SIMD."""
    shortest = MIN_DOT_LENGTH if (form.m, form.n) == (1, 1) else MIN_SMALL_DOT_LENGTH
    return 1 in (form.m, form.n) and form.k >= shortest and all(_contiguous_along_k(form))


def _contiguous_along_k(form: ProductForm) -> tuple[bool, bool]:
    """Whether each operand is contiguous along k."""
    first, second = (
        stride == form.dtype.itemsize or form.k <= 1 for stride in (form.first[1], form.second[0])
    )
    return first, second


def _dot_step(form: ProductForm, width: int) -> ProductStep | None:
    """The step of a product with one row or column, vectorised along k."""
    if form.m != 1 and form.n != 1:
        return None
    contiguous = _contiguous_along_k(form)
    if (form.m, form.n) != (1, 1) and not (all(contiguous) and form.k >= MIN_DOT_LENGTH):
        return None
    form = rows_into_stack(form)
    axes = len(form.stack.lengths)
    arithmetic, sums = Arithmetic(form.dtype, width), len(form.sums.lengths)
    kernel = DotProduct(arithmetic, contiguous, axes, form.conjugated, sums)
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.k, form.first[1], form.second[0])
    return _step(form, kernel, sizes, form.count, 0, "products of vectors")


def _blas_step(
    form: ProductForm, width: int, update: ProductUpdate | None = None
) -> ProductStep | None:
    """The step of a large product by BLAS, if it is faster and its flags express the strides."""
    limit = _blas_threshold(form, width)
    if limit is None or form.m * form.k * form.n < limit or "any" in form.layouts:
        return None
    if form.sums.lengths:
        return None  # a call of BLAS has one k
    conjugated = update.conjugated if update else (False, False)
    if any(
        conjugate and layout == "row"
        for conjugate, layout in zip(conjugated, form.layouts, strict=True)
    ):
        return None  # BLAS conjugates what it transposes
    leading = [
        max(1, inner, outer // form.dtype.itemsize)
        for inner, outer in zip(_inner_lengths(form), _outer_strides(form), strict=True)
    ]
    if max(form.m, form.k, form.n, *leading) > MAX_DIMENSION:
        return None
    left, right = form.layouts
    form = replace(form, stack=form.stack._replace(third=()))
    axes = len(form.stack.lengths)
    kernel = BlasGemm(form.dtype, (left, right), axes, conjugated, update is not None)
    sizes = (*_stack_sizes(form), form.m, form.n, form.k, *leading, PANEL)
    reason = f"{form.m * form.k * form.n:,} multiply-adds, BLAS from {limit:,} on"
    return _step(form, kernel, sizes, form.count * -(-form.m // PANEL), 0, reason)


def _blas_threshold(form: ProductForm, width: int) -> int | None:
    """The multiply-adds from which BLAS computes a product, if ever."""
    return BLAS_THRESHOLD.get(width) if form.dtype in ROUTINES else None


def _inner_lengths(form: ProductForm) -> list[int]:
    lengths = {"row": (form.k, form.n), "column": (form.m, form.k)}
    return [lengths[layout][number] for number, layout in enumerate(form.layouts)]


def _outer_strides(form: ProductForm) -> list[int]:
    """The outer stride of each operand: between rows in row layout, else between columns; 0 if
    there is only one.
    """
    counts = {"row": (form.m, form.k), "column": (form.k, form.n)}
    return [
        strides[layout == "column"] if counts[layout][number] > 1 else 0
        for number, (layout, strides) in enumerate(
            zip(form.layouts, (form.first, form.second), strict=True)
        )
    ]


def _packet_step(form: ProductForm, width: int, update: ProductUpdate | None = None) -> ProductStep:
    """The step of blocked packet code, for any lengths, strides and dtype."""
    first, second = _conjugated(form, update)
    if form.n == 1 and form.m > 1 and form.layouts[0] != "row":
        form, first, second = form.transposed, second, first
    exact = form.count >= MIN_STACK
    tile = RegisterTile.of(form.dtype, width, form.m, form.n, exact=exact)
    added = update is not None and update.third is not None
    axes, sums = len(form.stack.lengths), len(form.sums.lengths)
    kernel = BlockedGemm(tile, axes, first, second, update is not None, added, sums)
    strides = (*form.first, *form.second, *([form.third] if added else []))
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.m, form.n, form.k, *strides)
    units = kernel.units(form.count, form.m, form.n)
    return _step(form, kernel, sizes, units, kernel.scratch, _packet_reason(form, width))


def _packet_reason(form: ProductForm, width: int) -> str:
    if form.dtype not in ROUTINES:
        return f"BLAS has no {form.dtype}"
    if 1 in (form.m, form.n):
        return "a matrix-vector product reads the matrix once"
    limit = _blas_threshold(form, width)
    if limit is None:
        return f"faster than BLAS at every size with SIMD registers of {width} bytes"
    if form.m * form.k * form.n < limit:
        return f"{form.m * form.k * form.n:,} multiply-adds, BLAS from {limit:,} on"
    if form.sums.lengths:
        return f"{1 + len(form.sums.lengths)} contracted axes cannot be coalesced into one"
    return "its strides cannot be expressed by BLAS"


def _step(
    form: ProductForm,
    kernel: ProductKernel,
    sizes: tuple[int, ...],
    units: int,
    scratch: int,
    reason: str,
) -> ProductStep:
    multiply_adds_per_unit = max(1, form.multiply_adds // max(1, units))
    return ProductStep(
        kernel=kernel,
        operands=(1, 0) if form.swapped else (0, 1),
        sizes=sizes,
        units=units,
        grain=max(1, GRAIN // multiply_adds_per_unit),
        scratch=scratch,
        multiply_adds=form.multiply_adds,
        reason=reason,
    )


def _stack_sizes(form: ProductForm) -> tuple[int, ...]:
    return tuple(number for axis in form.stack.axes for number in axis)


def _sum_sizes(form: ProductForm) -> tuple[int, ...]:
    """The sizes of contracted axes other than k."""
    return tuple(number for axis in form.sums.axes for number in axis)
