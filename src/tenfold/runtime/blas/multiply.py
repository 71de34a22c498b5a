"""Product execution: computes the product of two dense operands from their arrays.

Takes a contraction op, its parameters, two ndarrays of any strides and the Type of the result,
hands on the Value. The dispatch of a product (`product_dispatch.py`) is cached by the shapes,
strides and dtype of its operands, its program by its kernel.

>>> from tenfold.storage import dense
>>> from tenfold.ops.contract import matmul
>>> x = np.arange(6.0).reshape(2, 3)
>>> value = multiply(matmul, (), x, x.T, Type((2, 2), x.dtype, "cpu"))
>>> dense.export(value).tolist()
[[5.0, 14.0], [14.0, 50.0]]
"""

from __future__ import annotations

import struct
from contextlib import nullcontext
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Type, Value
from tenfold.caches import memoized
from tenfold.core.op import Op
from tenfold.jit.program import program_of
from tenfold.ops.cast import cast_values
from tenfold.runtime.blas import routines
from tenfold.runtime.blas.product_dispatch import ProductStep, product_step
from tenfold.runtime.blas.product_forms import ProductOperand, copy_order
from tenfold.runtime.blas.verify_products import verify_product
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import CPU_LEVELS, get

QUICK, SMALL = 1 << 14, 1 << 19
"""Multiply-adds up to which a launch keeps the GIL, and up to which it runs on one thread."""
WIDTHS = {1: 16, 2: 16, 3: 32, 4: 64}
"""The bytes of a SIMD register by x86-64 level."""


product_steps = memoized(
    "product steps", 1024, "choosing the kernel of a product takes as long as a small product"
)


def step_of(
    op: Op[...], params: tuple[Any, ...], x1: np.ndarray, x2: np.ndarray
) -> tuple[ProductStep, tuple[np.ndarray, np.ndarray]]:
    """Return the step of a product of two arrays of one dtype, and its operands.

    The second operand is copied if its free axes cannot be coalesced.
    """
    width, factors, verify = (
        register_bytes(),
        (product_operand(x1), product_operand(x2)),
        verifies(),
    )
    order, step = cached_product_step(op, params, *factors, width, verify)
    if step is None:
        x2 = _copy_in_order(x2, order)
        step = cached_product_step(
            op, params, product_operand(x1), product_operand(x2), width, verify
        )[1]
        assert step is not None, "the axes of a copy coalesce"
    return step, (x1, x2)


@product_steps
def cached_product_step(
    op: Op[...],
    params: tuple[Any, ...],
    x1: ProductOperand,
    x2: ProductOperand,
    width: int,
    verify: bool,
) -> tuple[tuple[int, ...], ProductStep | None]:
    """Return the axis order of a copy of the second operand, or the step if no copy is needed."""
    assert op.contraction is not None, "a product says what it contracts"
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in (x1, x2))
    contraction = op.contraction(types, *params)
    order = copy_order(contraction, x1, x2)
    if order is not None:
        return order, None
    step = product_step(contraction, x1, x2, width=width)
    if verify:
        verify_product(step, x1, x2)
    return (), step


def multiply(
    op: Op[...], params: tuple[Any, ...], x1: np.ndarray, x2: np.ndarray, type_: Type
) -> Value:
    """Return the product of two arrays, each converted to the result dtype first.

    Raises MemoryError when memory runs out, CompileError when LLVM rejects the kernel.
    """
    cast = (cast_values(x, type_.dtype) for x in (x1, x2))
    step, arrays = step_of(op, params, *cast)
    result = Value.allocate(type_, type_.size * type_.dtype.itemsize)
    buffers: list[Value | int] = [_address(arrays[i]) for i in step.operands]
    program = program_of(step.kernel, step.multiply_adds)
    threads = threads_of(step)
    if threads > _native.threads():
        _native.set_threads(threads)
    with routines.limited_threads() if step.addresses else nullcontext():
        status = _native.launch(
            program.kernel,
            [*buffers, result, *step.addresses],
            struct.pack(f"{len(step.sizes)}q", *step.sizes),
            b"",
            step.scratch,
            step.units,
            step.grain,
            threads,
        )
    assert status == 0, "a product does not fail for its values"
    return result


def threads_of(step: ProductStep) -> int:
    """Return the number of threads of a product; 0 keeps the GIL."""
    if step.multiply_adds <= QUICK:
        return 0
    return int(get("threads")) if step.multiply_adds > SMALL else 1


def register_bytes() -> int:
    """Return the bytes of a SIMD register of the target processor."""
    level = CPU_LEVELS.get(str(get("cpu")), _native.processor_level())
    return WIDTHS[level]


def product_operand(x: np.ndarray) -> ProductOperand:
    """Return the layout of an array."""
    return ProductOperand(x.shape, x.strides, x.dtype)


def _copy_in_order(x: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    _native.count("copies")
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def _address(x: np.ndarray) -> int:
    address: int = x.__array_interface__["data"][0]
    return address
