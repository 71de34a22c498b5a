"""Reductions over axes, folded by the canonical tree (`ops/fold.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import accumulator, wide
from tenfold.ir.declare import reduction
from tenfold.ir.shape import Axis
from tenfold.ops.fold import fold_axes


def _accumulating(type_: Type, dtype: np.dtype | None) -> tuple[np.dtype, np.dtype]:
    result = accumulator(type_.dtype) if dtype is None else dtype
    return wide(result), result


def _sum(x: np.ndarray, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> np.ndarray:
    return fold_axes(np.add, x, axes, keepdims, identity=0)


@reduction(dtypes=_accumulating, reference=_sum, method=True, numpy=(np.sum,))
def sum(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum over `axis` (all axes when None); an empty sum is 0.

    Integers are summed in int64 or uint64, halves in float32 with one rounding at the end. The tree
    of additions depends on the lengths alone: 32 interleaved lanes in blocks of 1,024, pairwise
    (Higham 1993, "The accuracy of floating point summation").

    >>> import tenfold as tn
    >>> tn.sum(tn.asarray([[1, 5], [7, 0]]), axis=1).tolist()
    [6, 7]
    """
