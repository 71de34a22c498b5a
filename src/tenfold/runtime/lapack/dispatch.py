"""LAPACK dispatch: computes linear algebra by LAPACK, and by NumPy where that has no answer.

Takes an operation with its operands, hands on its results. NumPy's functions call LAPACK too, on
one thread, but keep the GIL where results are small. Here a kernel goes through a stack, on our
pool where that pays: decision 0010. Both obey `tn.options(threads=...)` and compute float32 in
float64, as numpy.linalg does. A matrix without an answer is left to NumPy, which says so.

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
from tenfold.runtime.lapack.drivers import LARGEST, DriverLaunch, launched
from tenfold.runtime.lapack.lapack_program import WIDE, StackedLayout, Unlike
from tenfold.runtime.reference import ReferenceCall
from tenfold.settings import get
from tenfold.storage import dense

RECIPES = {**factor_solve.RECIPES, **eig_svd_qr.RECIPES}
STEPS = 1024
"""Steps that are kept; the one not used for longest goes first."""
THREADED = 1 << 16
"""The multiply-adds of a call from which NumPy's BLAS may start threads."""


@memoized("calls of LAPACK", STEPS)
def step_of(
    op: Op[...],
    params: Params,
    given: tuple[tuple[Shape, tuple[int, ...], np.dtype], ...],
    types: tuple[Type, ...],
) -> DriverLaunch | None:
    """Return how LAPACK computes an operation of operands of layouts; None where it cannot."""
    recipe, layouts = RECIPES.get(op), tuple(StackedLayout(*each) for each in given)
    if recipe is None or not all(math.prod(each.shape) for each in layouts):
        return None
    if max(max(each.shape[-2:]) for each in layouts) > LARGEST:
        return None
    try:
        return recipe(layouts, types, *params)
    except Unlike:
        return None


def factorise(node: Node | ReferenceCall, inputs: Sequence[np.ndarray]) -> tuple[Value, ...]:
    """Compute a call: by LAPACK if it has a recipe, else, or without an answer, by its reference.

    Raises reference.Failure where it fails for its values.
    """
    if node.op in RECIPES:
        found = solved(node.op, node.params, inputs, node.types)
        if found is not None:
            if node.op is factors.factors and node.params != ("gauss",):
                _native.count("multiply_adds", factors.gone_back(dense.export(found[0])))
            return found
    large = reference.multiply_adds(node, inputs) >= THREADED
    with routines.limited_threads(int(get("threads")), "numpy") if large else nullcontext():
        made = reference.run_op(node, list(inputs))
    ordered = [x if x.flags.c_contiguous else x.copy(order="C") for x in made]
    return tuple(dense.adopt(x, "cpu") for x in ordered)


def counted_more(node: ReferenceCall) -> tuple[int, int, int, int] | None:
    """Return where numbers of factors are which tell whether a way was taken after another: (bytes
    to the first, bytes from one to the next, how many, multiply-adds of each).
    """
    if node.op is not factors.factors or node.params == ("gauss",):
        return None
    found, item = factors.tried(node.type.shape), node.type.dtype.itemsize
    length = math.prod(node.type.shape[-2:])
    return found.at * item, length * item, node.type.size // length, found.multiply_adds


def solved(
    op: Op[...], params: Params, inputs: Sequence[np.ndarray], types: tuple[Type, ...]
) -> tuple[Value, ...] | None:
    """Compute an operation with a recipe by LAPACK; None where LAPACK reports a failure."""
    step = step_of(op, params, tuple([(x.shape, x.strides, x.dtype) for x in inputs]), types)
    if step is None:
        inputs = _alike(inputs)
        step = step_of(op, params, tuple([(x.shape, x.strides, x.dtype) for x in inputs]), types)
    return None if step is None else launched(step, inputs)


def _alike(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Copy operands to matrices by rows, and for every matrix of the stack where there are more."""
    stack = np.broadcast_shapes(*(x.shape[:-2] for x in inputs))
    return [
        np.ascontiguousarray(
            x if math.prod(x.shape[:-2]) == 1 else np.broadcast_to(x, (*stack, *x.shape[-2:])),
            WIDE.get(x.dtype, FLOAT64),
        )
        for x in inputs
    ]
