"""Helpers for the tests of movement, indexing, joining and creation.

same_bits(result, expected)   asserts dtype, shape and every bit, NaNs and signs of zero included
numbered(shape, dtype)        an ndarray whose elements differ as far as the dtype lets them
special(shape, dtype)         an ndarray of values that a movement must not change
xp(x)                         tenfold for an Array, NumPy for an ndarray
node_name(array)              the operation of an Array's node
called(function, ...)         what a function makes of arrays and the arguments of a sample call
untimed                       Hypothesis: no test fails for being slow
arrays_with(...)              Hypothesis: small ndarrays of any shape with 0, 1 and up to six axes
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenfold as tn
from grid import special_values
from tenfold import _native
from tenfold.core.op import SampleCall
from tenfold.dtypes import DTYPES, kind_of

untimed = settings(deadline=None)


def same_bits(result: Any, expected: Any) -> None:
    """Assert that an Array (or several) holds exactly what an ndarray (or several) holds."""
    if isinstance(expected, (tuple, list)):
        assert isinstance(result, (tuple, list))
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            same_bits(one, other)
        return
    expected = np.asarray(expected)
    assert isinstance(result, tn.Array)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert np.asarray(result).tobytes() == expected.tobytes(), (result.tolist(), expected.tolist())


def numbered(shape: tuple[int, ...], dtype: str = "int64") -> np.ndarray:
    """0, 1, 2, ... in a shape, in row-major order; odd or even for bool."""
    counted = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return counted % 2 == 1 if kind_of(DTYPES[dtype]) == "b" else counted.astype(DTYPES[dtype])


def special(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Zeros of both signs, NaN, infinities, extremes in a shape."""
    return np.resize(special_values(dtype), shape)


def xp(x: Any) -> Any:
    """The library of an array: tenfold or NumPy."""
    return tn if isinstance(x, tn.Array) else np


def node_name(array: tn.Array) -> str:
    """The name of the operation of an Array's node."""
    return _native.node_of(array).name


def arrays_with(min_dims: int = 0, max_dims: int = 6, min_side: int = 0) -> Any:
    """Hypothesis: small int64 ndarrays of different elements."""
    shapes = hnp.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=4
    ).filter(lambda shape: np.prod(shape) <= 2000)
    return st.one_of(st.just(()), shapes).filter(lambda s: len(s) >= min_dims).map(numbered)


def called(
    function: Callable[..., Any], signature: Any, arrays: list[Any], sample: SampleCall
) -> Any:
    """Call with the arrays one by one, or as one list where the operation takes a sequence."""
    first = next(iter(signature.parameters.values()))
    together = first.name == "arrays" and first.kind is inspect.Parameter.POSITIONAL_ONLY
    inputs = [arrays] if together else arrays
    return function(*inputs, *sample.positional, **sample.arguments)
