"""LAPACK dispatch: computes linear algebra by LAPACK, with NumPy as fallback.

Takes an operation with its operands and the driver of the schedule, hands on its results. NumPy's
functions call LAPACK too, on one thread, but keep the GIL for small results. Here a kernel runs
over a stack of matrices, on Tenfold's thread pool if that pays: decision 0010. Both obey
`tn.options(threads=...)` and compute float32 in float64, as numpy.linalg does. If LAPACK fails for
a matrix, NumPy raises the error.

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
from tenfold._native import Node, Value
from tenfold.ops import factors
from tenfold.runtime import reference
from tenfold.runtime.blas import routines
from tenfold.runtime.lapack.drivers import bind_driver, launch
from tenfold.runtime.reference import ReferenceCall
from tenfold.schedule.driver_choice import choose_driver
from tenfold.schedule.lapack.driver_builder import DriverChoice, StackedLayout
from tenfold.settings import get
from tenfold.storage import dense

MIN_THREADED_MULTIPLY_ADDS = 1 << 16
"""Multiply-adds of a call from which NumPy's BLAS may start threads."""


def compute_linalg(
    node: Node | ReferenceCall, inputs: Sequence[np.ndarray], choice: DriverChoice | None = None
) -> tuple[Value, ...]:
    """Compute a call by its driver, if it has one; else, or if LAPACK fails, by its reference.

    Raises ReferenceFailure if it fails for its values.
    """
    layouts = tuple([StackedLayout(x.shape, x.strides, x.dtype) for x in inputs])
    if choice is None or choice.operands != layouts:
        choice = choose_driver(node.op, node.params, layouts, tuple(node.types))
    values = None if choice is None else _run_driver(choice, inputs)
    if values is not None:
        if node.op in factors.FACTOR_OPS and node.params != ("gauss",):
            _native.count("multiply_adds", factors.failed_multiply_adds(dense.export(values[0])))
        return values
    uses_threads = reference.multiply_adds(node, inputs) >= MIN_THREADED_MULTIPLY_ADDS
    with routines.limited_threads(int(get("threads")), "numpy") if uses_threads else nullcontext():
        results = reference.run_op(node, list(inputs))
    ordered = [x if x.flags.c_contiguous else x.copy(order="C") for x in results]
    return tuple(dense.adopt(x, "cpu") for x in ordered)


def fallback_counter(node: ReferenceCall) -> tuple[int, int, int, int] | None:
    """Return where the factors record that a fallback factorisation ran: (offset of the first flag
    in bytes, stride in bytes, count, multiply-adds of each fallback); None without a fallback.
    """
    if node.op not in factors.FACTOR_OPS or node.params == ("gauss",):
        return None
    tried, item = factors.failed_attempt(node.type.shape), node.type.dtype.itemsize
    length = math.prod(node.type.shape[-2:])
    return tried.at * item, length * item, node.type.size // length, tried.multiply_adds


def _run_driver(choice: DriverChoice, inputs: Sequence[np.ndarray]) -> tuple[Value, ...] | None:
    """Run a driver on operands, or on copies of them; None if LAPACK reports a failure."""
    if choice.copies:
        inputs = [
            np.ascontiguousarray(np.broadcast_to(x, copy.shape), copy.dtype)
            for x, copy in zip(inputs, choice.copies, strict=True)
        ]
    return launch(bind_driver(choice), inputs)
