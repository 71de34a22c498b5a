"""LAPACK dispatch: computes linear algebra by LAPACK, with NumPy as fallback.

Takes an operation with its operands, hands on its results. NumPy's functions call LAPACK too, on
one thread, but keep the GIL for small results. Here a kernel runs over a stack of matrices, on
Tenfold's thread pool if that pays: decision 0010. Both obey `tn.options(threads=...)` and compute
float32 in float64, as numpy.linalg does. If LAPACK fails for a matrix, NumPy raises the error.

>>> import tenfold as tn
>>> tn.linalg.inv(tn.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
[[0.5, 0.0], [0.0, 0.25]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from tenfold import _native
from tenfold._native import Node, Type, Value
from tenfold.caches import memoized
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import FLOAT64
from tenfold.ops import factors
from tenfold.runtime import reference
from tenfold.runtime.blas import routines
from tenfold.runtime.lapack import eig_svd_qr, factor_solve
from tenfold.runtime.lapack.drivers import MAX_ORDER, DriverLaunch, launch
from tenfold.runtime.lapack.launch_builder import COMPUTE_DTYPES, StackedLayout, UnsupportedLayout
from tenfold.runtime.reference import ReferenceCall
from tenfold.settings import get
from tenfold.storage import dense

LAPACK_OPS = {**factor_solve.LAPACK_OPS, **eig_svd_qr.LAPACK_OPS}
STEPS = 1024
"""The capacity of the LRU cache of launches."""
THREADED = 1 << 16
"""Multiply-adds of a call from which NumPy's BLAS may start threads."""


@memoized("LAPACK calls", STEPS, "writing the calls takes as long as a small solve")
def launch_of(
    op: Op[...],
    params: Params,
    operands: tuple[tuple[Shape, tuple[int, ...], np.dtype], ...],
    types: tuple[Type, ...],
) -> DriverLaunch | None:
    """Return the LAPACK launch of an operation, from its operands' layouts; None if unsupported."""
    build_launch, layouts = (
        LAPACK_OPS.get(op),
        tuple(StackedLayout(*layout) for layout in operands),
    )
    if build_launch is None or not all(math.prod(layout.shape) for layout in layouts):
        return None
    if max(max(layout.shape[-2:]) for layout in layouts) > MAX_ORDER:
        return None
    try:
        return build_launch(layouts, types, *params)
    except UnsupportedLayout:
        return None


def compute_linalg(node: Node | ReferenceCall, inputs: Sequence[np.ndarray]) -> tuple[Value, ...]:
    """Compute a call by LAPACK if supported; else, or if LAPACK fails, by its reference.

    Raises ReferenceFailure if it fails for its values.
    """
    if node.op in LAPACK_OPS:
        values = solve_by_lapack(node.op, node.params, inputs, node.types)
        if values is not None:
            if node.op is factors.factors and node.params != ("gauss",):
                _native.count(
                    "multiply_adds", factors.failed_multiply_adds(dense.export(values[0]))
                )
            return values
    uses_threads = reference.multiply_adds(node, inputs) >= THREADED
    with routines.limited_threads(int(get("threads")), "numpy") if uses_threads else nullcontext():
        results = reference.run_op(node, list(inputs))
    ordered = [x if x.flags.c_contiguous else x.copy(order="C") for x in results]
    return tuple(dense.adopt(x, "cpu") for x in ordered)


def fallback_counter(node: ReferenceCall) -> tuple[int, int, int, int] | None:
    """Return where the factors record that a fallback factorisation ran: (offset of the first flag
    in bytes, stride in bytes, count, multiply-adds of each fallback); None without a fallback.
    """
    if node.op is not factors.factors or node.params == ("gauss",):
        return None
    tried, item = factors.failed_attempt(node.type.shape), node.type.dtype.itemsize
    length = math.prod(node.type.shape[-2:])
    return tried.at * item, length * item, node.type.size // length, tried.multiply_adds


def solve_by_lapack(
    op: Op[...], params: Params, inputs: Sequence[np.ndarray], types: tuple[Type, ...]
) -> tuple[Value, ...] | None:
    """Compute a supported operation by LAPACK; None if LAPACK reports a failure."""
    driver = launch_of(op, params, tuple([(x.shape, x.strides, x.dtype) for x in inputs]), types)
    if driver is None:
        inputs = _contiguous_operands(inputs)
        driver = launch_of(
            op, params, tuple([(x.shape, x.strides, x.dtype) for x in inputs]), types
        )
    return None if driver is None else launch(driver, inputs)


def _contiguous_operands(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Copy operands to row-major matrices, broadcast to the stack unless they are one matrix."""
    stack = np.broadcast_shapes(*(x.shape[:-2] for x in inputs))
    return [
        np.ascontiguousarray(
            x if math.prod(x.shape[:-2]) == 1 else np.broadcast_to(x, (*stack, *x.shape[-2:])),
            COMPUTE_DTYPES.get(x.dtype, FLOAT64),
        )
        for x in inputs
    ]
