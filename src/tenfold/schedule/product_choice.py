"""Product choice: which routine computes a product of two dense operands, and why.

A pass. Takes the calls of a schedule that are products, and the layouts of their operands. Hands on
a ProductChoice for each, which the runtime binds to a kernel (`runtime/blas/product_dispatch.py`).
Every product is brought to one form, a stack of (m, k) @ (k, n). Stacks of small products,
integers, half types and vector products always use generated kernels. Large products of floating
dtypes call BLAS where it was measured to be faster and its flags express the strides.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.schedule.target import target_of
>>> x = ProductOperand((512, 512), (4096, 8), FLOAT64)
>>> matrices = Contraction(((1,), (0,)), ((0,), (1,)))
>>> choice = choose_product(matrices, x, x, target=target_of("x86-64-v3"))
>>> choice.routine, choice.reason
('dgemm', '134,217,728 multiply-adds, BLAS from 134,217,728 on')
>>> choice = choose_product(matrices, x, x, target=target_of("x86-64-v4"))
>>> choice.routine, choice.reason
('blocked', 'faster than BLAS at every size with SIMD registers of 64 bytes')
"""

from __future__ import annotations

import numpy as np

from tenfold.core.op import Contraction, Op
from tenfold.core.shape_rules import Shape
from tenfold.core.structure import HALF_OF, Half, Structure
from tenfold.dtypes import BOOL, DTYPES, FLOAT32, HALF_DTYPES, REAL_DTYPES
from tenfold.ops.syrk import MIN_SYRK_SIZE, MIN_TRMM_SIZE
from tenfold.schedule.output_layout import strides_in_order
from tenfold.schedule.pass_rules import require
from tenfold.schedule.product_forms import (
    BLAS_ROUTINES,
    ProductChoice,
    ProductForm,
    ProductOperand,
    ScaledProduct,
    copied_operand,
    copy_order,
    form_of,
)
from tenfold.schedule.schedule_ir import ItemKind, Schedule
from tenfold.schedule.target import Libraries, Target

SUM_DTYPES = {DTYPES["int8"]: DTYPES["int16"], DTYPES["uint8"]: DTYPES["uint16"]}
SUM_DTYPES |= dict.fromkeys(HALF_DTYPES, FLOAT32)
"""The dtype of the accumulators of a product, where it is another one."""
MAX_DIMENSION = 2**31 - 1
"""The largest integer of BLAS."""


def choose_products(schedule: Schedule) -> Schedule:
    """Choose the routine of each product."""
    products = {
        unit: choice
        for unit in schedule.order
        if isinstance(unit, int) and (choice := _choice_of(schedule, unit)) is not None
    }
    return schedule.updated(products=products) if products else schedule


def verify_products(schedule: Schedule) -> None:
    """Each product has a choice, which does all its multiply-adds on the layouts of its operands. A
    routine of BLAS gets what its arguments express.
    """
    graph = schedule.graph
    for unit in schedule.order:
        if not isinstance(unit, int) or not _is_product(schedule, unit):
            continue
        choice, item = schedule.products.get(unit), schedule.items[unit]
        require(choice is not None, "product {} has no routine", unit)
        assert choice is not None, "required"
        form, node = choice.form, graph.nodes[item.position]
        for i, operand in zip(item.inputs, choice.operands, strict=False):
            known = schedule.items[i].dtype != operand.dtype or sorted(operand.strides) == sorted(
                schedule.layouts[i]
            )
            require(known, "product {} reads item {} in another layout", unit, i)
        if not (choice.scaled and choice.scaled.half):
            expected = graph.multiply_adds(item.position)
            computed_meanwhile = not graph.nodes[item.position].pending
            same = form.multiply_adds == expected or 0 in node.type.shape or computed_meanwhile
            require(same, "product {} does {} multiply-adds", unit, form.multiply_adds)
        if choice.is_blas:
            lengths = form.m, form.k, form.n
            fits = "any" not in form.layouts and max(lengths) <= MAX_DIMENSION
            require(fits and not form.sums.lengths, "product {} cannot be expressed", unit)
            same = BLAS_ROUTINES.get(form.dtype) == choice.routine
            require(same, "product {} calls {}, of another dtype", unit, choice.routine)


def choose_product(
    contraction: Contraction,
    x1: ProductOperand,
    x2: ProductOperand,
    scaled: ScaledProduct | None = None,
    *,
    target: Target,
) -> ProductChoice:
    """Choose the routine of a product on a target; it cannot fail.

    All operands are in the dtype of the result, half types unconverted. Which triangle of an
    operand is zero may depend on values; then the lower one is assumed.
    """
    order = copy_order(contraction, x1, x2) or ()
    form = form_of(contraction, x1, copied_operand(x2, order), scaled and scaled.third)
    half = scaled.half if scaled else Half.NONE
    is_known = half.side != Structure.TRIANGULAR
    half = half if is_known else HALF_OF[Structure.LOWER, half.operand]
    if half:
        routine, reason = "half", _half_reason(half, 1 in (form.m, form.n))
        has_threads = target.block and 1 not in (form.m, form.n) and half is not Half.HERMITIAN
        if has_threads and is_known:
            note = "a symmetric result, whole" if half.is_result else half.note
            routine, reason = "threads", f"{note}: tiles by blocks of threads"
        elif not is_known:
            reason = reason.replace("triangle", "triangle, or the upper, as is found when it runs")
    else:
        known = _threads(form, target) or _small(form, target) or _dot(form, target)
        routine, reason = known or _full_routine(form, target)
    assumed = scaled and scaled._replace(half=half)
    width = target.simd.register_bytes
    return ProductChoice(routine, reason, form, width, (x1, x2), assumed, order)


def _is_product(schedule: Schedule, number: int) -> bool:
    item = schedule.items[number]
    if item.kind is not ItemKind.CALL:
        return False
    op: Op[...] = schedule.graph.nodes[item.position].op
    return op.rewriting.contraction is not None


def _choice_of(schedule: Schedule, number: int) -> ProductChoice | None:
    """The choice for a call; None where it is not a product."""
    if not _is_product(schedule, number):
        return None
    item, graph = schedule.items[number], schedule.graph
    node, dtype = graph.nodes[item.position], graph.nodes[item.position].type.dtype
    types = tuple([graph.nodes[i].type for i in graph.inputs[item.position][:2]])
    scaled = None
    if node.op.lowering.epilogue is not None:
        epilogue = node.op.lowering.epilogue(*node.params)
        scaled = ScaledProduct(half=epilogue.half)
        if epilogue.addend is not None:
            x3 = _operand(schedule, item.inputs[epilogue.addend], dtype)
            scaled = scaled._replace(third=broadcast_operand(x3, node.type.shape))
    x1, x2 = (_operand(schedule, i, dtype) for i in item.inputs[:2])
    contraction = node.op.rewriting.contraction(types, *node.params)
    return choose_product(contraction, x1, x2, scaled, target=schedule.target)


def _operand(schedule: Schedule, number: int, dtype: np.dtype) -> ProductOperand:
    """The layout of an operand in the dtype of the result: a conversion keeps the axis order."""
    item = schedule.items[number]
    strides = schedule.layouts.get(number, (0,) * len(item.shape))
    if item.dtype != dtype:
        axes = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
        strides = strides_in_order(item.shape, axes, dtype.itemsize)
    return ProductOperand(item.shape, strides, dtype)


def broadcast_operand(x: ProductOperand, shape: Shape) -> ProductOperand:
    """Return the layout of an operand broadcast to a shape."""
    strides = [0] * (len(shape) - len(x.shape)) + [*x.strides]
    lengths = (1,) * (len(shape) - len(x.shape)) + x.shape
    aligned = zip(shape, lengths, strides, strict=True)
    return ProductOperand(
        shape, tuple(stride if n == length else 0 for length, n, stride in aligned), x.dtype
    )


def _small(form: ProductForm, target: Target) -> tuple[str, str] | None:
    """The kernel of a stack of many small products, with a program for their lengths."""
    libraries = target.libraries
    if form.count < libraries.min_stack or form.sums.lengths or _is_dot_like(form, libraries):
        return None
    lengths = form.m, form.k, form.n
    multiply_adds = simd_multiply_adds(form.dtype, lengths, target.simd.register_bytes)
    if form.m * form.n == 0 or multiply_adds > libraries.unrolled_multiply_adds:
        return None
    return "small", f"a stack of {form.count:,}, {multiply_adds:,} SIMD multiply-adds each"


def simd_multiply_adds(dtype: np.dtype, lengths: tuple[int, int, int], width: int) -> int:
    """Return the multiply-adds of SIMD registers in one small product (m, k) @ (k, n)."""
    (m, k, n), scalar = lengths, DTYPES["uint8"] if dtype == BOOL else REAL_DTYPES.get(dtype, dtype)
    components = dtype.itemsize // scalar.itemsize
    lanes = width // (scalar if dtype == BOOL else SUM_DTYPES.get(scalar, scalar)).itemsize
    return m * k * -(-n * components // lanes) * components


def _is_dot_like(form: ProductForm, libraries: Libraries) -> bool:
    """Whether a small product has one row or column, and k is long enough for SIMD: in a stack it
    has the bits that it has alone.
    """
    long_enough = form.k >= libraries.min_dot_elements and all(contiguous_along_k(form))
    return 1 in (form.m, form.n) and long_enough


def contiguous_along_k(form: ProductForm) -> tuple[bool, bool]:
    """Whether each operand is contiguous along k."""
    first, second = (
        stride == form.dtype.itemsize or form.k <= 1 for stride in (form.first[1], form.second[0])
    )
    return first, second


def _dot(form: ProductForm, target: Target) -> tuple[str, str] | None:
    """The kernel of a product with one row or column, vectorised along k."""
    if form.m != 1 and form.n != 1:
        return None
    if (form.m, form.n) != (1, 1) and not _is_dot_like(form, target.libraries):
        return None
    return "dot", "products of vectors"


def _threads(form: ProductForm, target: Target) -> tuple[str, str] | None:
    """Numbers by warps, or tiles by blocks of threads, on a device that has them."""
    if not target.block:
        return None
    if (dot := _dot(form, target)) is not None:
        return None if form.sums.lengths else ("warps", dot[1])
    return "threads", f"{form.m * form.k * form.n:,} multiply-adds, tiles by blocks of threads"


def _half_reason(half: Half, is_vector: bool) -> str:
    """Why one triangle suffices: with registers of 32 and 64 bytes as fast as BLAS or faster, with
    16 bytes faster than the full product by BLAS.
    """
    if is_vector:
        return f"{half.note}, all that is read of the matrix"
    first, second = MIN_SYRK_SIZE if half.is_result else MIN_TRMM_SIZE
    return f"{half.note}, worth it from {first} x {second} on"


def _full_routine(form: ProductForm, target: Target) -> tuple[str, str]:
    """A routine of BLAS, if it is faster and its flags express the strides, or the blocked kernel,
    for any lengths, strides and dtype.
    """
    if (limit := _blas_limit(form, target)) is not None:
        reason = f"{form.m * form.k * form.n:,} multiply-adds, BLAS from {limit:,} on"
        return BLAS_ROUTINES[form.dtype], reason
    return "blocked", _blocked_reason(form, target)


def _blas_limit(form: ProductForm, target: Target) -> int | None:
    """The multiply-adds from which BLAS is faster, where it is and its arguments suffice."""
    limit = _blas_threshold(form, target)
    if limit is None or form.m * form.k * form.n < limit or "any" in form.layouts:
        return None
    if form.sums.lengths:
        return None  # a call of BLAS has one k
    if blas_conjugation(form) is None:
        return None
    longest = max(form.m, form.k, form.n, *leading_dimensions(form))
    return limit if longest <= MAX_DIMENSION else None


def blas_conjugation(form: ProductForm) -> tuple[tuple[bool, bool], bool] | None:
    """Return which operands BLAS conjugates, and whether the result is conjugated after it.

    BLAS conjugates only what it transposes, a matrix in column layout. conj(x1) @ conj(x2) is the
    conjugate of x1 @ x2. None: neither way is possible.
    """
    for of_result in (False, True):
        first, second = (conjugated != of_result for conjugated in form.conjugated)
        by_blas = zip((first, second), form.layouts, strict=True)
        if all(layout == "column" or not conjugated for conjugated, layout in by_blas):
            return (first, second), of_result
    return None


def leading_dimensions(form: ProductForm) -> list[int]:
    """Return the leading dimension of each operand, in elements."""
    return [
        max(1, inner, outer // form.dtype.itemsize)
        for inner, outer in zip(_inner_lengths(form), _outer_strides(form), strict=True)
    ]


def _blas_threshold(form: ProductForm, target: Target) -> int | None:
    """The multiply-adds from which BLAS computes a product, if ever."""
    return target.libraries.blas_multiply_adds if form.dtype in BLAS_ROUTINES else None


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


def _blocked_reason(form: ProductForm, target: Target) -> str:
    if form.dtype not in BLAS_ROUTINES:
        return f"BLAS has no {form.dtype}"
    if 1 in (form.m, form.n):
        return "a matrix-vector product reads the matrix once"
    limit = _blas_threshold(form, target)
    if limit is None:
        width = target.simd.register_bytes
        return f"faster than BLAS at every size with SIMD registers of {width} bytes"
    if form.m * form.k * form.n < limit:
        return f"{form.m * form.k * form.n:,} multiply-adds, BLAS from {limit:,} on"
    if form.sums.lengths:
        return f"{1 + len(form.sums.lengths)} contracted axes cannot be coalesced into one"
    return "its strides cannot be expressed by BLAS"


__all__ = [
    "blas_conjugation",
    "choose_product",
    "choose_products",
    "contiguous_along_k",
    "leading_dimensions",
    "simd_multiply_adds",
    "verify_products",
]
