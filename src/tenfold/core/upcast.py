"""Upcasting: the reference device computes elementary functions in a wider dtype and rounds once.

Takes a NumPy function, hands on one that computes float32 in float64 and the half types in float32,
rounded once to their dtype. So the error is about half a unit in the last place on every CPU.

>>> widened(np.exp)(np.asarray([1.0], np.float32))
array([2.7182817], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tenfold.dtypes import FLOAT32, FLOAT64, HALF_DTYPES

Function = Callable[..., Any]


def widened(function: Function) -> Function:
    """Return `function` on real operands, computed in a wider dtype; other dtypes unchanged."""

    @wraps(function)
    def upcast_and_round(*operands: np.ndarray) -> Any:
        dtype = operands[0].dtype
        if dtype != FLOAT32 and dtype not in HALF_DTYPES:
            return function(*operands)
        result = function(*(operand.astype(FLOAT64) for operand in operands)).astype(FLOAT32)
        return result.astype(dtype)

    return upcast_and_round


def special(name: str) -> Function:
    """Return `scipy.special.<name>`, widened; scipy is imported when it first runs."""

    @widened
    def call(*operands: np.ndarray) -> Any:
        from scipy import special as functions

        return getattr(functions, name)(*operands)

    return call
