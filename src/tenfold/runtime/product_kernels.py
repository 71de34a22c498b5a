"""Product kernels: compile the product of two vectors, once for any length and strides.

Takes an operation, a dtype and which vectors are contiguous from native code. Hands on the kernel
of all such nodes (`native/exec/vector_product.cpp`). It is the kernel that a schedule chooses.

    entry = vector_product(matmul, FLOAT64, True, False)
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint, Type
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.core.op import Op
from tenfold.jit.program import PROGRAMS
from tenfold.runtime.blas.product_dispatch import bind_product
from tenfold.schedule.product_choice import choose_product, register_bytes
from tenfold.schedule.product_forms import ProductOperand
from tenfold.settings import get

LENGTH = 2
"""The length for which the kernel is chosen; the choice is the same for every other one."""


def vector_product(
    op: Op[...], dtype: np.dtype, first_contiguous: bool, second_contiguous: bool
) -> EntryPoint:
    """Return the entry point of the kernel. Its sizes are the length and both strides in bytes."""
    assert op.rewriting.contraction is not None, "a product says what it contracts"
    x1, x2 = (
        ProductOperand((LENGTH,), (dtype.itemsize * (1 if contiguous else 2),), dtype)
        for contiguous in (first_contiguous, second_contiguous)
    )
    types = (Type((LENGTH,), dtype, "cpu"),) * 2
    step = bind_product(
        choose_product(op.rewriting.contraction(types), x1, x2, width=register_bytes())
    )
    assert isinstance(step.kernel, DotProduct), "products of vectors"
    assert step.sizes == (LENGTH, *x1.strides, *x2.strides), "as native code packs them"
    # without optimisation it runs several times as long
    program = PROGRAMS.of(step.kernel, 0, "1", str(get("cpu")))
    _native.count("generic_compiles")
    return program.kernel


__all__ = ["vector_product"]
