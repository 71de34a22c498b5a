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
from tenfold.core.shape_rules import Shape, row_major
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
Layouts = tuple[tuple[Shape, tuple[int, ...], np.dtype], ...]
"""The shape, the strides in bytes and the dtype of each operand."""
THREADED = 1 << 16
"""Multiply-adds of a call from which NumPy's BLAS may start threads."""


@memoized("LAPACK calls", STEPS, "writing the calls takes as long as a small solve")
def launch_of(
    op: Op[...],
    params: Params,
    operands: Layouts,
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
    layouts = tuple([(x.shape, x.strides, x.dtype) for x in inputs])
    driver, read_layouts = launch_with_copies(op, params, layouts, types)
    if driver is None:
        return None
    if read_layouts is not layouts:
        inputs = [
            np.ascontiguousarray(np.broadcast_to(x, shape), dtype)
            for x, (shape, _, dtype) in zip(inputs, read_layouts, strict=True)
        ]
    return launch(driver, inputs)


def launch_with_copies(
    op: Op[...], params: Params, layouts: Layouts, types: tuple[Type, ...]
) -> tuple[DriverLaunch | None, Layouts]:
    """Return the launch of an operation, and the layouts that it reads.

    They are those of row-major copies if the operands' own layouts are unsupported.
    """
    driver = launch_of(op, params, layouts, types)
    if driver is not None:
        return driver, layouts
    copies = _row_major_layouts(layouts)
    return launch_of(op, params, copies, types), copies


def _row_major_layouts(layouts: Layouts) -> Layouts:
    """Return row-major matrices, broadcast to the stack unless they are one matrix."""
    stack = np.broadcast_shapes(*(shape[:-2] for shape, _, _ in layouts))
    copies = []
    for shape, _, dtype in layouts:
        copied = shape if math.prod(shape[:-2]) == 1 else (*stack, *shape[-2:])
        compute_dtype = COMPUTE_DTYPES.get(dtype, FLOAT64)
        strides = tuple([compute_dtype.itemsize * step for step in row_major(copied)])
        copies.append((copied, strides, compute_dtype))
    return tuple(copies)
