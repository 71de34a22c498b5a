"""Product dispatch: binds the choice of a schedule to a compiled kernel or a routine of BLAS.

Takes a ProductChoice (`schedule/product_choice.py`), hands on a ProductStep: the kernel and the
sizes of its launch. Nothing is decided here.

>>> from tenfold.core.op import Contraction
>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.schedule.product_choice import choose_product
>>> from tenfold.schedule.product_forms import ProductOperand
>>> x = ProductOperand((512, 512), (4096, 8), FLOAT64)
>>> matrices = Contraction(((1,), (0,)), ((0,), (1,)))
>>> step = bind_product(choose_product(matrices, x, x, width=32))
>>> step.kind, step.reason, step.multiply_adds
('library call', '134,217,728 multiply-adds, BLAS from 134,217,728 on', 134217728)
>>> bind_product(choose_product(matrices, x, x, width=64)).kind
'packet code'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tenfold.codegen.gemm.blas_call import BlasGemm
from tenfold.codegen.gemm.blocked import BlockedGemm
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.emitter import Arithmetic
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.codegen.gemm.syrk_trmm import SyrkTrmm
from tenfold.runtime.blas import routines
from tenfold.schedule.product_choice import (
    MIN_STACK,
    contiguous_along_k,
    leading_dimensions,
)
from tenfold.schedule.product_forms import (
    ProductChoice,
    ProductForm,
    rows_into_stack,
)

ProductKernel = SmallGemm | BlockedGemm | DotProduct | BlasGemm

PANEL = 256
"""The rows of one call of gemm."""
GRAIN = 1 << 18
"""The multiply-adds of a thread's range of units."""


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


def bind_product(choice: ProductChoice) -> ProductStep:
    """Return the step that computes a product as chosen. The second operand is copied already, if
    the choice says so.
    """
    return KERNELS.get(choice.routine, _blas_step)(choice)


def _half_step(choice: ProductChoice) -> ProductStep:
    """Packet code for one triangle."""
    form, update = choice.form, choice.update
    assert update is not None, "a half is one of an update"
    tile = RegisterTile.of(form.dtype, choice.width, form.m, form.n)
    added = update.third is not None
    kernel = SyrkTrmm(tile, 0, *update.conjugated, True, added, half=update.half)
    strides = (*form.first, *form.second, *([form.third] if added else []))
    units = kernel.units(1, form.m, form.n)
    sizes = (form.m, form.n, form.k, *strides)
    full_step = _step(choice, form, kernel, sizes, units, kernel.scratch)
    order = form.k if update.half.startswith("first") else form.n
    multiply_adds = form.multiply_adds * (order + 1) // max(1, 2 * order)
    return replace(full_step, multiply_adds=multiply_adds)


def _small_step(choice: ProductChoice) -> ProductStep:
    """A stack of many small products, with a program for their lengths."""
    form, update = choice.form, choice.update
    arithmetic, lengths = Arithmetic(form.dtype, choice.width), (form.m, form.k, form.n)
    axes, (first, second) = len(form.stack.lengths), _conjugated(choice)
    added = update is not None and update.third is not None
    kernel = SmallGemm(
        arithmetic, lengths, form.layouts, axes, first, second, update is not None, added
    )
    sizes = (*_stack_sizes(form), *form.first, *form.second, *([form.third] if added else []))
    return _step(choice, form, kernel, sizes, form.count, 0)


def _conjugated(choice: ProductChoice) -> tuple[bool, bool]:
    return choice.update.conjugated if choice.update else (choice.form.conjugated, False)


def _dot_step(choice: ProductChoice) -> ProductStep:
    """A product with one row or column, vectorised along k."""
    contiguous, form = contiguous_along_k(choice.form), rows_into_stack(choice.form)
    axes, sums = len(form.stack.lengths), len(form.sums.lengths)
    arithmetic = Arithmetic(form.dtype, choice.width)
    kernel = DotProduct(arithmetic, contiguous, axes, form.conjugated, sums)
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.k, form.first[1], form.second[0])
    return _step(choice, form, kernel, sizes, form.count, 0)


def _blas_step(choice: ProductChoice) -> ProductStep:
    """Calls of BLAS, a panel of rows each."""
    form, update = choice.form, choice.update
    conjugated = update.conjugated if update else (False, False)
    left, right = form.layouts
    leading = leading_dimensions(form)
    form = replace(form, stack=form.stack._replace(third=()))
    axes = len(form.stack.lengths)
    kernel = BlasGemm(form.dtype, (left, right), axes, conjugated, update is not None)
    sizes = (*_stack_sizes(form), form.m, form.n, form.k, *leading, PANEL)
    return _step(choice, form, kernel, sizes, form.count * -(-form.m // PANEL), 0)


def _blocked_step(choice: ProductChoice) -> ProductStep:
    """Blocked packet code, for any lengths, strides and dtype."""
    form, update = choice.form, choice.update
    first, second = _conjugated(choice)
    if form.n == 1 and form.m > 1 and form.layouts[0] != "row":
        form, first, second = form.transposed, second, first
    exact = form.count >= MIN_STACK
    tile = RegisterTile.of(form.dtype, choice.width, form.m, form.n, exact=exact)
    added = update is not None and update.third is not None
    axes, sums = len(form.stack.lengths), len(form.sums.lengths)
    kernel = BlockedGemm(tile, axes, first, second, update is not None, added, sums)
    strides = (*form.first, *form.second, *([form.third] if added else []))
    sizes = (*_stack_sizes(form), *_sum_sizes(form), form.m, form.n, form.k, *strides)
    units = kernel.units(form.count, form.m, form.n)
    return _step(choice, form, kernel, sizes, units, kernel.scratch)


KERNELS: Mapping[str, Callable[[ProductChoice], ProductStep]] = {
    "small": _small_step,
    "dot": _dot_step,
    "half": _half_step,
    "blocked": _blocked_step,
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
    multiply_adds_per_unit = max(1, form.multiply_adds // max(1, units))
    return ProductStep(
        kernel=kernel,
        operands=(1, 0) if form.swapped else (0, 1),
        sizes=sizes,
        units=units,
        grain=max(1, GRAIN // multiply_adds_per_unit),
        scratch=scratch,
        multiply_adds=form.multiply_adds,
        reason=choice.reason,
    )


def _stack_sizes(form: ProductForm) -> tuple[int, ...]:
    return tuple(number for axis in form.stack.axes for number in axis)


def _sum_sizes(form: ProductForm) -> tuple[int, ...]:
    """The sizes of contracted axes other than k."""
    return tuple(number for axis in form.sums.axes for number in axis)
