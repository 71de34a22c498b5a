"""Product dispatch: binds the choice of a schedule to a compiled kernel or a routine of BLAS.

Takes a ProductChoice (`schedule/product_choice.py`), hands on a ProductStep: the kernel and the
sizes of its launch. Nothing is decided here.

>>> from tenfold.core.op import Contraction
>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.schedule.product_choice import choose_product
>>> from tenfold.schedule.product_forms import ProductOperand
>>> x = ProductOperand((512, 512), (4096, 8), FLOAT64)
>>> matrices = Contraction(((1,), (0,)), ((0,), (1,)))
>>> from tenfold.schedule.target import target_of
>>> step = bind_product(choose_product(matrices, x, x, target=target_of("x86-64-v3")))
>>> step.kind, step.reason, step.multiply_adds
('library call', '134,217,728 multiply-adds, BLAS from 134,217,728 on', 134217728)
>>> bind_product(choose_product(matrices, x, x, target=target_of("x86-64-v4"))).kind
'packet code'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tenfold import _native
from tenfold.codegen.gemm.blas_call import PANEL, BlasGemm
from tenfold.codegen.gemm.blocked import BlockedGemm
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.emitter import Arithmetic, addend_sizes
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.codegen.gemm.syrk_trmm import SyrkTrmm
from tenfold.codegen.simt.words import BLOCK_THREADS, WARP
from tenfold.core.structure import Half, Structure
from tenfold.core.symbolic.sym_int import largest
from tenfold.runtime.blas import routines
from tenfold.schedule.product_choice import (
    blas_conjugation,
    contiguous_along_k,
    leading_dimensions,
)
from tenfold.schedule.product_forms import (
    ProductChoice,
    ProductForm,
    rows_into_stack,
)
from tenfold.schedule.target import DEFAULT

if TYPE_CHECKING:  # what only devices of threads need is imported where it is used
    from tenfold.codegen.simt.thread_gemm import ThreadGemm
    from tenfold.codegen.simt.warp_dot import WarpDot

CpuKernel = SmallGemm | BlockedGemm | DotProduct
ProductKernel: TypeAlias = "CpuKernel | BlasGemm | ThreadGemm | WarpDot"


@dataclass(frozen=True)
class ProductStep:
    """The launch of a product: a kernel and its launch arguments.

    The buffers of the launch are the kernel's x1 and x2, the contiguous result, the addend if
    `reads_third`, then `addresses`.
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
        """Whether the addend is a buffer of the launch, possibly the result's."""
        return bool(self.kernel.addend)

    @property
    def text(self) -> str:
        """The LLVM module of its kernel, whose function is called `kernel`."""
        return self.kernel.text()

    @property
    def addresses(self) -> tuple[int, ...]:
        """Further buffers: library functions, to be launched in `routines.limited_threads()`."""
        if isinstance(self.kernel, BlasGemm):
            return (routines.blas_address(self.kernel.routine),)
        return () if isinstance(self.kernel, CpuKernel) else (_native.block_runner(),)

    def __str__(self) -> str:
        named_sizes = zip(self.kernel.sizes, self.sizes, strict=True)
        return (
            f"{self.kernel}\n  {self.kind}: {self.reason}\n"
            f"  {', '.join(f'{name} {size}' for name, size in named_sizes)}\n"
            f"  {self.units} units, {self.grain} at a time, {self.multiply_adds} multiply-adds"
        )


def bind_product(choice: ProductChoice) -> ProductStep:
    """Return the step that computes a product as chosen. The second operand is copied already, if
    the choice says so.
    """
    return KERNELS.get(choice.routine, _blas_step)(choice)


def _half_step(choice: ProductChoice) -> ProductStep:
    """Packet code for one triangle."""
    form, scaled = choice.form, choice.scaled
    assert scaled is not None, "a half is one of a scaled product"
    half = scaled.half
    if 1 in (form.m, form.n) and all(contiguous_along_k(form)):
        side = half.transposed.side if half.operand else half.side
        full_step = _dot_step(choice, side)
    else:
        if form.n == 1:
            form, half = form.transposed, half.transposed
        tile = RegisterTile.of(form.dtype, choice.width, form.m, form.n)
        kernel = SyrkTrmm(tile, 0, *form.conjugated, True, form.addend, half=half)
        strides = (*form.first, *form.second, *_addend_strides(form))
        units = kernel.units(1, form.m, form.n)
        sizes = (form.m, form.n, form.k, *strides)
        full_step = _step(choice, form, kernel, sizes, units, kernel.scratch)
    return replace(full_step, multiply_adds=_half_multiply_adds(choice.form, half))


def _half_multiply_adds(form: ProductForm, half: Half) -> int:
    order = form.k if half.operand == 0 else form.n
    return form.multiply_adds * (order + 1) // max(1, 2 * order)


def _small_step(choice: ProductChoice) -> ProductStep:
    """A stack of many small products, with a program for their lengths."""
    form, axes = choice.form, len(choice.form.stack.lengths)
    arithmetic, lengths = Arithmetic(form.dtype, choice.width), (form.m, form.k, form.n)
    flags = (*form.conjugated, choice.scaled is not None, form.addend)
    kernel = SmallGemm(arithmetic, lengths, form.layouts, axes, *flags)
    sizes = (*_stack_sizes(form), *form.first, *form.second, *_addend_strides(form))
    return _step(choice, form, kernel, sizes, form.count, 0)


def _addend_strides(form: ProductForm) -> tuple[int, ...]:
    """The strides of the addend that a generated kernel reads (`addend_sizes`)."""
    return form.third[: len(addend_sizes(form.addend))] if form.third else ()


def _dot_step(choice: ProductChoice, triangle: Structure = Structure.GENERAL) -> ProductStep:
    """A product with one row or column, vectorised along k."""
    contiguous, form = contiguous_along_k(choice.form), rows_into_stack(choice.form)
    axes, sums = len(form.stack.lengths), len(form.sums.lengths)
    arithmetic = Arithmetic(form.dtype, choice.width)
    flags = (*form.conjugated, sums, choice.scaled is not None, form.addend)
    kernel = DotProduct(arithmetic, contiguous, axes, *flags, triangle)
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.k, form.first[1], form.second[0])
    return _step(choice, form, kernel, sizes, form.count, 0)


def _blas_step(choice: ProductChoice) -> ProductStep:
    """Calls of BLAS, a panel of rows each."""
    form, axes = choice.form, len(choice.form.stack.lengths)
    conjugation = blas_conjugation(form)
    assert conjugation is not None, "another routine is chosen"
    flags = (choice.scaled is not None, form.addend)
    kernel = BlasGemm(form.dtype, form.layouts, axes, *conjugation, *flags)
    lengths = (form.m, form.n, form.k, *leading_dimensions(form))
    sizes = (*_stack_sizes(form), *lengths, *(form.third or ()), PANEL)
    units = form.count * -(-form.m // PANEL)
    return _step(choice, form, kernel, sizes, units, kernel.scratch)


def _blocked_step(choice: ProductChoice) -> ProductStep:
    """Blocked packet code, for any lengths, strides and dtype."""
    form = choice.form
    if form.n == 1 and form.m > 1 and form.layouts[0] != "row":
        form = form.transposed
    exact = form.count >= DEFAULT.libraries.min_stack
    tile = RegisterTile.of(form.dtype, choice.width, form.m, form.n, exact=exact)
    axes, sums = len(form.stack.lengths), len(form.sums.lengths)
    flags = (*form.conjugated, choice.scaled is not None, form.addend)
    kernel = BlockedGemm(tile, axes, *flags, sums)
    strides = (*form.first, *form.second, *_addend_strides(form))
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.m, form.n, form.k, *strides)
    units = kernel.units(form.count, form.m, form.n)
    return _step(choice, form, kernel, sizes, units, kernel.scratch)


def _thread_step(choice: ProductChoice) -> ProductStep:
    """Tiles by blocks of threads, for any lengths, strides and dtype."""
    from tenfold.codegen.simt.thread_gemm import ThreadGemm

    form, axes = choice.form, len(choice.form.stack.lengths)
    half = choice.scaled.half if choice.scaled else Half.NONE
    flags = (*form.conjugated, choice.scaled is not None, form.addend)
    kernel = ThreadGemm(
        Arithmetic(form.dtype, choice.width), axes, *flags, len(form.sums.lengths), half
    )
    strides = (*form.first, *form.second, *_addend_strides(form))
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.m, form.n, form.k, *strides)
    units = kernel.threads(form.count, form.m, form.n)
    step = _step(choice, form, kernel, sizes, units, kernel.shared_bytes)
    multiply_adds = _half_multiply_adds(form, half) if half else step.multiply_adds
    return replace(step, grain=BLOCK_THREADS, multiply_adds=multiply_adds)


def _warp_step(choice: ProductChoice) -> ProductStep:
    """A product with one row or column: a warp for each number."""
    from tenfold.codegen.simt.warp_dot import WarpDot

    contiguous, form = contiguous_along_k(choice.form), rows_into_stack(choice.form)
    flags = (*form.conjugated, choice.scaled is not None, form.addend)
    arithmetic, axes = Arithmetic(form.dtype, choice.width), len(form.stack.lengths)
    kernel = WarpDot(arithmetic, axes, *flags, contiguous)
    sizes = (*_stack_sizes(form), form.k, form.first[1], form.second[0], form.count)
    step = _step(choice, form, kernel, sizes, form.count * WARP, 0)
    return replace(step, grain=BLOCK_THREADS)


KERNELS: Mapping[str, Callable[[ProductChoice], ProductStep]] = {
    "small": _small_step,
    "dot": _dot_step,
    "half": _half_step,
    "blocked": _blocked_step,
    "threads": _thread_step,
    "warps": _warp_step,
}
"""The generated kernels; every other routine is one of BLAS."""


def _step(
    choice: ProductChoice,
    form: ProductForm,
    kernel: ProductKernel,
    sizes: tuple[int, ...],
    units: int,
    scratch: int,
) -> ProductStep:
    multiply_adds_per_unit = largest(1, form.multiply_adds // largest(1, units))
    return ProductStep(
        kernel=kernel,
        operands=(1, 0) if form.swapped else (0, 1),
        sizes=sizes,
        units=units,
        grain=largest(1, DEFAULT.libraries.product_grain // multiply_adds_per_unit),
        scratch=scratch,
        multiply_adds=form.multiply_adds,
        reason=choice.reason,
    )


def _stack_sizes(form: ProductForm) -> tuple[int, ...]:
    return tuple(number for axis in form.stack.axes for number in axis)


def _sum_sizes(form: ProductForm) -> tuple[int, ...]:
    """The sizes of contracted axes other than k."""
    return tuple(number for axis in form.sums.axes for number in axis)
