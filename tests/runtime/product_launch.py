"""Runs products of arrays as the device does: the kernel compiled, the launch native."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tenfold import _native
from tenfold._native import Type
from tenfold.core.op import Contraction
from tenfold.ops import contract
from tenfold.runtime.blas import routines
from tenfold.runtime.blas.product_dispatch import ProductStep, bind_product
from tenfold.schedule.product_choice import choose_product
from tenfold.schedule.product_forms import ProductOperand, ScaledProduct, copy_order
from tenfold.schedule.target import target_of

CPUS = {16: "x86-64-v2", 32: "x86-64-v3", 64: "x86-64-v4"}
_kept: list[object] = []


@cache
def widths() -> tuple[int, ...]:
    """Return the widths of registers, in bytes, that this machine has."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    wide = all(features.get(f"avx512{each}") for each in ("f", "bw", "dq", "vl", "cd"))
    return (32, 64) if wide else (32,)


@cache
def compiled(text: str, width: int) -> int:
    """Return the address of the kernel of a module."""
    widths()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=CPUS[width], opt=2, jit=True)
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _kept.append(engine)
    return int(engine.get_function_address("kernel"))


def product_step(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand, *, width: int
) -> ProductStep:
    """Return the step of a product, as a schedule chooses it."""
    return bind_product(choose_product(contraction, x1, x2, target=target_of(CPUS[width])))


def scaled_step(
    x1: ProductOperand,
    x2: ProductOperand,
    scaled: ScaledProduct,
    *,
    width: int,
    conjugated: tuple[bool, bool] = (False, False),
) -> ProductStep:
    """Return the step of a scaled product of matrices, as a schedule chooses it."""
    first, second = len(x1.shape), len(x2.shape)
    contracted, free = ((first - 1,), (second - 2,)), ((first - 2,), (second - 1,))
    matrices = Contraction(contracted, free, conjugated)
    return bind_product(choose_product(matrices, x1, x2, scaled, target=target_of(CPUS[width])))


def step_of(operation: str, params: tuple[Any, ...], x1: Any, x2: Any, width: int) -> ProductStep:
    """Return the step of a product of two arrays."""
    factors = [ProductOperand(x.shape, x.strides, x.dtype) for x in (x1, x2)]
    return product_step(contraction_of(operation, params, x1, x2), *factors, width=width)


def contraction_of(operation: str, params: tuple[Any, ...], x1: Any, x2: Any) -> Contraction:
    """Return what the declaration of an operation says of two arrays."""
    op: Any = getattr(contract, operation)
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in (x1, x2))
    return op.rewriting.contraction(types, *params)  # type: ignore[no-any-return]  # an Op's field


def _copied(x: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    if order is None:
        return x
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def multiply(
    operation: str,
    params: tuple[Any, ...],
    x1: np.ndarray,
    x2: np.ndarray,
    shape: tuple[int, ...],
    *,
    width: int = 32,
    threads: int = 1,
) -> np.ndarray:
    """Return a product of two arrays of one dtype; its memory held other values before."""
    factors = [ProductOperand(x.shape, x.strides, x.dtype) for x in (x1, x2)]
    order = copy_order(contraction_of(operation, params, x1, x2), *factors)
    arrays = [x1, _copied(x2, order)]
    step = step_of(operation, params, *arrays, width)
    result = np.full(shape, -1, np.int8).astype(x1.dtype)
    if result.dtype.kind in "fc":
        result[...] = np.nan
    buffers = [arrays[i].ctypes.data for i in step.operands] + [result.ctypes.data, *step.addresses]
    with routines.limited_threads() if step.addresses else nullcontext():
        status = _native.launch(
            compiled(step.text, width),
            buffers,
            struct.pack(f"{len(step.sizes)}q", *step.sizes),
            b"",
            step.scratch,
            step.units,
            step.grain,
            threads,
        )
    assert status == 0
    return result
