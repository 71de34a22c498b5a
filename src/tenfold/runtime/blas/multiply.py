"""Product execution: computes the product of two dense operands from their arrays.

Takes a contraction op, its parameters, two ndarrays of any strides and the Type of the result,
hands on the Value. The schedule has chosen the routine (`schedule/product_choice.py`). Where the
arrays have another layout, because they were converted, or there is no schedule, it is chosen here.
Steps are cached by the choice, choices by shapes, strides and dtype, programs by kernel.

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
from tenfold.runtime.blas.product_dispatch import ProductStep, bind_product
from tenfold.runtime.blas.verify_products import verify_product
from tenfold.schedule.product_choice import choose_product, choose_update, register_bytes
from tenfold.schedule.product_forms import (
    ProductChoice,
    ProductOperand,
    ProductUpdate,
    copied_operand,
)
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import get

STEPS = 1024
"""The capacity of the caches of product choices and of their steps."""
QUICK, SMALL = 1 << 14, 1 << 19
"""Multiply-adds up to which a launch keeps the GIL, and up to which it runs on one thread."""


@memoized("product choices", STEPS, "choosing a kernel takes as long as a small product")
def cached_choice(
    op: Op[...],
    params: tuple[Any, ...],
    operands: tuple[ProductOperand, ProductOperand],
    update: ProductUpdate | None,
    width: int,
) -> ProductChoice:
    """Return the choice for a product of operands that are not as the schedule assumed."""
    x1, x2 = operands
    if update is not None:
        return choose_update(x1, x2, update, width=width)
    assert op.rewriting.contraction is not None, "a product says what it contracts"
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in (x1, x2))
    return choose_product(op.rewriting.contraction(types, *params), x1, x2, width=width)


@memoized("product steps", STEPS, "binding a kernel takes as long as a small product")
def cached_step(choice: ProductChoice, verify: bool) -> ProductStep:
    """Return the step of a product as chosen."""
    step = bind_product(choice)
    if verify:
        x1, x2 = choice.operands
        third = None if choice.update is None else choice.update.third
        verify_product(step, x1, copied_operand(x2, choice.copy_order), third)
    return step


def multiply(
    op: Op[...],
    params: tuple[Any, ...],
    x1: np.ndarray,
    x2: np.ndarray,
    type_: Type,
    choice: ProductChoice | None = None,
) -> Value:
    """Return the product of two arrays, each converted to the result dtype first.

    Raises MemoryError when memory runs out, CompileError when LLVM rejects the kernel.
    """
    x1, x2 = (cast_values(x, type_.dtype) for x in (x1, x2))
    operands = product_operand(x1), product_operand(x2)
    if choice is None or choice.operands != operands:
        choice = cached_choice(op, params, operands, None, register_bytes())
    step = cached_step(choice, verifies())
    arrays = x1, _copy_in_order(x2, choice.copy_order) if choice.copy_order else x2
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


def product_operand(x: np.ndarray) -> ProductOperand:
    """Return the layout of an array."""
    return ProductOperand(x.shape, x.strides, x.dtype)


def _copy_in_order(x: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    _native.count("copies")
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def _address(x: np.ndarray) -> int:
    address: int = x.__array_interface__["data"][0]
    return address
