"""GEMM execution: computes `alpha * op(x1) @ op(x2) + beta * x3` of operand arrays.

Takes the node of a `gemm` and its operands, hands on the Value, or accumulates into x3. The
schedule has chosen the routine, as for other products (`multiply.py`). Only x3 is copied: if its
rows are not contiguous, or if it is live and BLAS would overwrite it.

>>> from tenfold.storage import dense
>>> from tenfold.runtime.reference import ReferenceCall
>>> from tenfold.ops.gemm import gemm
>>> x = np.eye(2)
>>> type_ = Type((2, 2), x.dtype, "cpu")
>>> node = ReferenceCall(gemm, ("N", "T", 1, 1, 1), (x.dtype,) * 4, (type_,), type_, "gemm")
>>> dense.export(accumulate(node, [x, x, np.asarray(3), x])).tolist()
[[4.0, 0.0], [0.0, 4.0]]
"""

from __future__ import annotations

import struct
from contextlib import nullcontext

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint, Node, Type, Value
from tenfold.jit.program import program_of
from tenfold.ops.gemm import addend_of, scalars_of, transpose_by_form
from tenfold.ops.syrk import resolve_triangle
from tenfold.runtime.blas import routines
from tenfold.runtime.blas.multiply import cached_choice, cached_step, product_operand, threads_of
from tenfold.runtime.blas.product_dispatch import ProductStep
from tenfold.runtime.reference import ReferenceCall
from tenfold.schedule.product_choice import (
    has_contiguous_rows,
    register_bytes,
    update_of,
)
from tenfold.schedule.product_forms import ProductChoice
from tenfold.schedule.verify_kernel import verifies
from tenfold.storage import dense


def accumulate(
    node: Node | ReferenceCall,
    inputs: list[np.ndarray],
    *,
    in_place: bool = False,
    choice: ProductChoice | None = None,
) -> Value | None:
    """Return the value of a gemm; in place, it overwrites x3 and returns nothing.

    In place, x3 has the result's shape and row-major order. Raises MemoryError when memory runs
    out, CompileError when LLVM refuses the kernel; then nothing has been written.
    """
    x1, x2 = (
        transpose_by_form(x, form) for x, form in zip(inputs[:2], node.params[:2], strict=True)
    )
    type_ = node.type
    x3 = addend_of(inputs, node.params)
    if x3 is not None and not in_place:
        x3 = _with_contiguous_rows(
            x3 if x3.shape == type_.shape else np.broadcast_to(x3, type_.shape)
        )
    update = update_of(node.params, type_.dtype, None if x3 is None else product_operand(x3))
    update = update._replace(half=resolve_triangle(update.half, (x1, x2)))
    operands = product_operand(x1), product_operand(x2)
    if choice is None or choice.operands != operands or choice.update != update:
        choice = cached_choice(node.op, node.params, operands, update, register_bytes())
    step = cached_step(choice, verifies())
    program = program_of(step.kernel, step.multiply_adds)
    *_, sign, scales, added = node.params
    if len(inputs) == 2 + scales + bool(added) and not scales:
        numbers = _sign_bytes(type_.dtype, sign, added)
    else:
        numbers = _scalar_bytes(*scalars_of(inputs, node.params, type_.dtype))
    result = None if in_place else _allocate_result(type_, None if step.reads_third else x3)
    buffers: list[Value | int] = [_address((x1, x2)[i]) for i in step.operands]
    buffers.append(_address(x3) if result is None else result)
    if step.reads_third:
        buffers.append(_address(x3))
    _launch(step, program.kernel, [*buffers, *step.addresses], numbers)
    return result


def _sign_bytes(dtype: np.dtype, sign: int, added: int) -> bytes:
    """Alpha and beta of a product without scalar factors."""
    return _scalar_bytes(np.asarray(sign, dtype), np.asarray(added, dtype))


def _scalar_bytes(alpha: np.ndarray, beta: np.ndarray) -> bytes:
    return b"".join(scalar.tobytes().ljust(16, b"\0") for scalar in (alpha, beta))


def _allocate_result(type_: Type, x3: np.ndarray | None) -> Value:
    """Allocate the result, initialised with the addend if it is given."""
    if x3 is None:
        return Value.allocate(type_, type_.size * type_.dtype.itemsize)
    return dense.copy_to_pool(x3, type_.device)


def _launch(
    step: ProductStep, kernel: EntryPoint, buffers: list[Value | int], numbers: bytes
) -> None:
    threads = threads_of(step)
    if threads > _native.threads():
        _native.set_threads(threads)
    sizes = struct.pack(f"{len(step.sizes)}q", *step.sizes)
    with routines.limited_threads() if step.addresses else nullcontext():
        status = _native.launch(
            kernel, buffers, sizes, numbers, step.scratch, step.units, step.grain, threads
        )
    assert status == 0, "a product does not fail for its values"


def _with_contiguous_rows(x3: np.ndarray) -> np.ndarray:
    if has_contiguous_rows(product_operand(x3)):
        return x3
    _native.count("copies")
    return np.ascontiguousarray(x3)


def _address(x: np.ndarray | None) -> int:
    assert x is not None, "it is added"
    address: int = x.__array_interface__["data"][0]
    return address
