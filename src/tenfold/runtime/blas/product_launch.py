"""Product launch: the one way in which a product is launched, in a replay and step by step.

Takes the node of a product and the choice of the schedule (`schedule/product_choice.py`). A replay
gets a BoundProduct, which native code launches (`bound_product`). Without an Executable, and where
operands are converted or copied first, `compute_product` launches the same step from arrays. If the
arrays have another layout than the schedule assumed, because they were converted, the routine is
chosen here. Steps are cached by the choice, programs by kernel.

>>> from tenfold.storage import dense
>>> from tenfold.ops.contract import matmul
>>> from tenfold.ops.gemm import gemm
>>> x = np.arange(6.0).reshape(2, 3)
>>> type_ = Type((2, 2), x.dtype, "cpu")
>>> node = ReferenceCall(matmul, (), (x.dtype,) * 2, (type_,), type_, "matmul")
>>> dense.export(compute_product(node, [x, x.T])).tolist()
[[5.0, 14.0], [14.0, 50.0]]
>>> node = ReferenceCall(gemm, ("N", "T", 1, 1, 1), (x.dtype,) * 4, (type_,), type_, "gemm")
>>> dense.export(compute_product(node, [x, x, np.asarray(2), np.eye(2)])).tolist()
[[11.0, 28.0], [28.0, 101.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import Executable, Node, Type, Value
from tenfold.caches import memoized
from tenfold.core.cast_values import cast_values
from tenfold.core.op import Epilogue, Op
from tenfold.core.structure import Structure
from tenfold.dtypes import kind_of
from tenfold.jit.host import host_target
from tenfold.jit.program import program_of
from tenfold.ops.gemm import scalars_of, transpose_by_form
from tenfold.ops.syrk import resolve_triangle
from tenfold.runtime.blas import routines
from tenfold.runtime.blas.product_dispatch import ProductStep, bind_product
from tenfold.runtime.instructions import Scale
from tenfold.runtime.reference import ReferenceCall
from tenfold.runtime.thread_count import threads_for
from tenfold.schedule.loop_schedule import pack_sizes
from tenfold.schedule.product_choice import choose_product
from tenfold.schedule.product_forms import (
    ProductChoice,
    ProductOperand,
    ScaledProduct,
    copied_operand,
)
from tenfold.schedule.target import DEFAULT, Target
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import get

MAX_CACHED_STEPS = 1024
"""The capacity of the caches of product choices and of their steps."""
SCALED_DTYPES = ("float32", "float64", "complex64", "complex128")
"""The dtypes of scalars that native code multiplies. Of complex scalars it multiplies no two: NumPy
rounds their products once or twice."""


class BoundProduct(NamedTuple):
    """The native launch of a product."""

    step: ProductStep
    reads: tuple[int, ...]
    """The operands in launch order; the result comes third."""
    scales: tuple[Scale, ...]
    """The scalar factors of the product (alpha) and of its addend (beta): a sign, and the positions
    of scalar operands to multiply, Python numbers and 0-d arrays."""
    multiply_adds: int
    """The value for the counter of multiply-adds."""

    @property
    def functions(self) -> list[tuple[int, int]]:
        """The library functions that it calls, as further buffers of the launch."""
        return [(Executable.ADDRESS, address) for address in self.step.addresses]


def threads_of(step: ProductStep) -> int:
    """Return the number of threads of a product; 0 keeps the GIL."""
    return threads_for(
        step.multiply_adds,
        DEFAULT.libraries.gil_multiply_adds,
        DEFAULT.libraries.serial_multiply_adds,
        int(get("threads")),
    )


@memoized("product choices", MAX_CACHED_STEPS, "choosing a kernel takes as long as a small product")
def cached_choice(
    op: Op[...],
    params: tuple[Any, ...],
    operands: tuple[ProductOperand, ProductOperand],
    scaled: ScaledProduct | None,
    target: Target,
) -> ProductChoice:
    """Return the choice for a product of operands that are not as the schedule assumed."""
    assert op.rewriting.contraction is not None, "a product says what it contracts"
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in operands)
    contraction = op.rewriting.contraction(types, *params)
    return choose_product(contraction, *operands, scaled, target=target)


@memoized("product steps", MAX_CACHED_STEPS, "binding a kernel takes as long as a small product")
def cached_step(choice: ProductChoice, verify: bool) -> ProductStep:
    """Return the step of a product as chosen."""
    step = bind_product(choice)
    if verify:
        from tenfold.runtime.blas.verify_products import verify_product  # imported only here

        x1, x2 = choice.operands
        third = None if choice.scaled is None else choice.scaled.third
        verify_product(step, x1, copied_operand(x2, choice.copy_order), third)
    return step


def bound_product(
    node: ReferenceCall,
    dtypes: Sequence[np.dtype | None],
    choice: ProductChoice,
    multiply_adds: int,
) -> BoundProduct | None:
    """Return the native launch of a product of operands of these dtypes; None for Python numbers.

    The result is None if a replay must call Python: for operands that are converted or copied
    first, for a triangle whose side depends on the values, and for scalars that native code does
    not multiply as NumPy does.
    """
    dtype, epilogue = node.type.dtype, _epilogue(node)
    if any(each is not None and each != dtype for each in dtypes) or choice.copy_order:
        return None
    if epilogue is not None and epilogue.half.side == Structure.TRIANGULAR:
        return None
    scales = () if epilogue is None else _scales(epilogue, len(dtypes), dtype)
    if scales is None:
        return None
    # a step with formulas belongs to one symbolic executable
    is_symbolic = choice.form.is_symbolic
    step = bind_product(choice) if is_symbolic else cached_step(choice, verifies())
    addend = (epilogue.addend,) if epilogue and epilogue.addend is not None else ()
    return BoundProduct(step, (*step.operands, *addend), scales, multiply_adds)


def _epilogue(node: Node | ReferenceCall) -> Epilogue | None:
    return None if node.op.lowering.epilogue is None else node.op.lowering.epilogue(*node.params)


def _scales(epilogue: Epilogue, operands: int, dtype: np.dtype) -> tuple[Scale, ...] | None:
    """Return the factors of the product and of its addend."""
    alpha, beta = (range(operands)[at] for at in (epilogue.alpha, epilogue.beta))
    most_factors = max(len(alpha), len(beta))
    if most_factors and (
        str(dtype) not in SCALED_DTYPES or (kind_of(dtype) == "c" and most_factors > 1)
    ):
        return None
    pairs = ((epilogue.sign, alpha), (epilogue.added, beta))
    return tuple(
        Scale(
            np.asarray(factor, dtype).tobytes(),
            dtype,
            factor < 0,
            not {*positions}.isdisjoint(epilogue.conjugated),
            (*positions,),
        )
        for factor, positions in pairs
    )


def compute_product(
    node: Node | ReferenceCall,
    inputs: Sequence[np.ndarray],
    *,
    in_place: bool = False,
    choice: ProductChoice | None = None,
) -> Value | None:
    """Return the value of a product of arrays; in place, it overwrites the addend and returns None.

    The factors are converted to the dtype of the result. In place, the addend has the result's
    shape and row-major order. Raises MemoryError when memory runs out, CompileError when LLVM
    rejects the kernel; then nothing has been written.
    """
    type_, epilogue = node.type, _epilogue(node)
    x1, x2 = (cast_values(x, type_.dtype) for x in inputs[:2])
    scaled, x3, numbers = None, None, b""
    if epilogue is not None:
        scaled, x3 = _scaled_product(node, epilogue, [x1, x2, *inputs[2:]])
        numbers = _scalar_bytes(*scalars_of(inputs, epilogue, type_.dtype))
    operands = product_operand(x1), product_operand(x2)
    if choice is None or choice.operands != operands or choice.scaled != scaled:
        choice = cached_choice(node.op, node.params, operands, scaled, host_target())
    step = cached_step(choice, verifies())
    if choice.copy_order:
        x2 = _copy_in_order(x2, choice.copy_order)
    result = None if in_place else Value.allocate(type_, type_.size * type_.dtype.itemsize)
    buffers: list[Value | int] = [_address((x1, x2)[i]) for i in step.operands]
    buffers.append(_address(x3) if result is None else result)
    if step.reads_third:
        buffers.append(_address(x3))
    _launch(step, buffers, numbers)
    return result


def _scaled_product(
    node: Node | ReferenceCall, epilogue: Epilogue, inputs: Sequence[np.ndarray]
) -> tuple[ScaledProduct, np.ndarray | None]:
    """Return what the routine depends on, and the addend in the shape of the result."""
    pairs = zip(inputs[:2], node.params[:2], strict=True)
    half = resolve_triangle(epilogue.half, [transpose_by_form(x, form) for x, form in pairs])
    if epilogue.addend is None:
        return ScaledProduct(half=half), None
    x3 = cast_values(inputs[epilogue.addend], node.type.dtype)
    x3 = x3 if x3.shape == node.type.shape else np.broadcast_to(x3, node.type.shape)
    return ScaledProduct(product_operand(x3), half), x3


def _scalar_bytes(alpha: np.ndarray, beta: np.ndarray) -> bytes:
    return b"".join(scalar.tobytes().ljust(16, b"\0") for scalar in (alpha, beta))


def _launch(step: ProductStep, buffers: list[Value | int], numbers: bytes) -> None:
    program, threads = program_of(step.kernel, step.multiply_adds, host_target()), threads_of(step)
    if threads > _native.threads():
        _native.set_threads(threads)
    with routines.limited_threads() if step.addresses else nullcontext():
        status = _native.launch(
            program.kernel,
            [*buffers, *step.addresses],
            pack_sizes(step.sizes),
            numbers,
            step.scratch,
            step.units,
            step.grain,
            threads,
        )
    assert status == 0, "a product does not fail for its values"


def product_operand(x: np.ndarray) -> ProductOperand:
    """Return the layout of an array."""
    return ProductOperand(x.shape, x.strides, x.dtype)


def _copy_in_order(x: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    _native.count("copies")
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def _address(x: np.ndarray | None) -> int:
    assert x is not None, "it is added"
    address: int = x.__array_interface__["data"][0]
    return address
