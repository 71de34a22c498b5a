"""Factorise: which calls of linear algebra are LAPACK's by our pool, and which stay NumPy's.

Takes the node of a call and its operands, hands on its results. NumPy's functions call LAPACK too,
matrix by matrix, but keep the GIL where results are small. Our pool does where a stack is worth
sharing out to threads, and for a large matrix where that is as fast: decision 0010. Both obey
`tn.options(threads=...)` and compute float32 in float64, as numpy.linalg does. A matrix without an
answer is left to NumPy, which says so.

>>> import tenfold as tn
>>> tn.linalg.inv(tn.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
[[0.5, 0.0], [0.0, 0.25]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from tenfold._native import Node, Type
from tenfold.devices import blas, factored, factorisations, reference
from tenfold.devices.lapack import CALL, LARGEST
from tenfold.devices.reference import Called, Values
from tenfold.dtypes import COMPLEX128, FLOAT64, kind_of
from tenfold.ir.op import Op
from tenfold.ops import factors, linalg, spectra, triangles
from tenfold.settings import get


class Way(NamedTuple):
    """How an operation is computed by LAPACK, and from where on (bench/lapack.py)."""

    compute: Callable[..., Values | None]
    alone: float = math.inf
    """The order from which it is on one thread, too."""
    least: int = 1
    """The order from which it is on several."""


WAYS: dict[Op[...], Way] = {
    linalg.cholesky: Way(factorisations.cholesky, alone=256),
    linalg.inv: Way(factorisations.inverse, alone=128),
    linalg.solve: Way(factorisations.solve, alone=256),
    linalg.det: Way(factorisations.determinant, alone=256, least=16),
    linalg.qr: Way(factorisations.qr),
    linalg.eigh: Way(factorisations.eigh),
    linalg.svd: Way(factorisations.svd),
    spectra.eigvalsh: Way(factored.spectrum),
    spectra.svdvals: Way(factorisations.singular_values),
    triangles.lu: Way(factored.lu, alone=1),
    triangles.triangular_solve: Way(factored.triangular_solve, alone=1),
    factors.factors: Way(factored.factors, alone=1),
    factors.solve_factored: Way(factored.solve, alone=1),
    factors.inv_factored: Way(factored.inverse, alone=1),
}
STACK = 5 << 18
"""The multiply-adds of a stack, with `CALL` for each matrix, that are worth several threads."""
THREADED = 1 << 16
"""The multiply-adds of a matrix from which NumPy's BLAS may start threads."""


def factorise(node: Node | Called, inputs: list[np.ndarray]) -> Values:
    """Compute a call: by LAPACK where that pays, else by its reference.

    Raises reference.Failure where it fails for its values.
    """
    way = WAYS.get(node.op)
    if way is None or not all(x.size for x in inputs):
        return reference.run_op(node, inputs)
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in inputs)
    matrices = max(x.size // math.prod(x.shape[-2:]) for x in inputs)
    assert node.op.multiply_adds is not None, "what LAPACK computes counts them"
    each = node.op.multiply_adds(types, *node.params) // matrices
    threads = int(get("threads"))
    if _pays(way, inputs[0].shape, matrices, each, threads):
        operands = map(reference.cast_operand, inputs, node.operands)
        with np.errstate(all="ignore"):
            found = way.compute(*map(_wide, operands), *node.params)
            if found is not None:
                pairs = zip(found, node.types, strict=True)
                return tuple(values.astype(type_.dtype, copy=False) for values, type_ in pairs)
    with blas.held(threads, "numpy") if each >= THREADED else nullcontext():
        return reference.run_op(node, inputs)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(COMPLEX128 if kind_of(x.dtype) == "c" else FLOAT64, copy=False)


def _pays(way: Way, shape: tuple[int, ...], matrices: int, each: int, threads: int) -> bool:
    """Whether matrices of so many multiply-adds each are LAPACK's by our pool."""
    if max(shape[-2:]) > LARGEST:
        return False
    order = min(shape[-2:])
    shared = threads > 1 and matrices > 1 and matrices * (each + CALL) >= STACK
    return order >= way.alone or (shared and order >= way.least)
