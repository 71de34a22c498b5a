"""Calls at the edges of dtypes and options, once different from NumPy's, in both libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy as ours

CALLS = """
np.fmod(np.array([-128, 5, -7, 7], dtype='i1'), np.array([3, -128, 2, -2], dtype='i1'))
np.fmod(np.array([-(2**63)]), np.array([3]))
np.fmod(np.array([2**63 + 1], dtype='u8'), np.array([-2]))
np.fmod(np.array([True, False]), np.array([True, True]))
np.bitwise_or.reduce(np.array([1, 2, 4]), initial=8, where=np.array([True, False, True]))
np.logical_and.reduce(np.array([1, 2]), initial=False)
np.sum(np.array([1, 2], dtype='i1'), initial=2.5)
np.prod(np.array([1.0, 2.0], dtype='f4'), initial=np.float64(2.5))
np.max(np.array([1, 2]), initial=2.5)
np.max(np.array([1, 2], dtype='i1'), initial=300)
np.min(np.array([1, 2], dtype='f4'), initial=1.5, where=np.array([False, True]))
np.mean(np.array([1.5, 2.5, 3.5]), dtype=int)
np.var(np.array([1, 2, 4]), dtype=int)
np.std(np.array([[1, 2], [4, 8]]), axis=0, dtype='i4', keepdims=True)
np.einsum('ij->i', np.ones((2, 2), dtype='f4'), dtype='f8')
np.cross(np.array([1, 2, 3]), np.array([3, 4]))
np.cross(np.array([1, 2]), np.array([3, 4]))
np.linspace(np.float32(0), np.float32(1), 3)
np.logspace(np.float16(0), 1, 3)
np.clip(np.array([1, 200], dtype='u1'), -1, 300)
np.clip(np.array([1, 200], dtype='u1'), 2, 100)
np.clip(np.array([1 + 2j, -3j]), 0, 1 + 1j)
np.clip(np.array([True, False]), -1, np.int8(2))
np.add.accumulate(np.array([1, 200, 100], dtype='u1'))
np.multiply.accumulate(np.array([True, True]))
np.add.reduce(np.array(3), axis=-1)
np.argmax(np.array(3.0), axis=0)
np.cumsum(np.array(3, dtype='i1'), axis=0)
np.max(np.array([1 + 1j, 2]), where=np.array([True, False]))
np.add(np.array([np.nan, 1.5]), np.array([1, 2]), dtype='i2')
np.add(np.array([3, 1.5]), np.array([1, 2]), dtype='i2', casting='unsafe')
np.quantile(np.array([1, 5, 2]), 1)
np.quantile(np.array([-np.inf, 2.0]), [0, 1])
np.quantile(np.array([1.5, 2.5], dtype='f2'), np.float32(0.3))
np.nanpercentile(np.array([1.5, np.nan, 2.5], dtype='f4'), 50)
np.var(np.array([1, 2, 4]), dtype='c16')
np.sum(np.array([1, 2, 3], dtype='f2') / 3, out=np.zeros(()))
np.cov(np.array([[1.0, 2.0, 4.0]]), rowvar=False)
np.diff(np.array([1.5, 2.5]), n=0, prepend=3)
np.select([np.array([True, False])], [np.array([1, 2], dtype='u4')], 7)
np.select([np.array([True, False])] * 2, [np.array([1.5, 2], dtype='f4'), np.array([True, True])])
np.repeat(np.zeros((0, 3)), [], axis=0)
np.insert(np.array([[1], [2], [3]]), slice(0, 2), [7, 8], axis=-1)
np.logaddexp2(1, np.array([1, 2], dtype='i1'))
np.heaviside(np.array([1, 0], dtype='u2'), -1.5)
np.heaviside(np.array([1, 0], dtype='i1'), 1)
np.logaddexp2(np.array([1, 2], dtype='u2'), 1.5)
np.quantile(np.array([1.5, 2.5], dtype='f4'), 0.25, method='hazen')
np.nanquantile(np.array([1.5, 2.5], dtype='f2'), 0.25, method='midpoint')
np.quantile(np.array([1.5, 2.5], dtype='f4'), np.array(0.25))
np.cumulative_sum(np.array(3, dtype='i1'), include_initial=True)
np.cumulative_prod(np.array(3.5), axis=-1)
np.fft.fftn(np.array(2.0 + 1j))
np.take(np.array([1, 2, 3]), np.array([5, -7], dtype='i1'), mode='wrap')
np.take(np.arange(300), np.array([120, -7], dtype='i1'), mode='clip')
"""
WRITES = """
np.add(np.array([1, 2]), np.array([3, 4]), out=x, where=np.array([True, False]))
np.clip(np.array([1, 9]), 2, 5, out=x, where=np.array([False, True]))
np.copyto(x, 1)
np.sum(np.array([[1, 2], [3, 4]], dtype='i2') * 300, axis=0, out=x)
np.prod(np.array([[100, 100], [100, 100]], dtype='i1'), axis=0, out=x)
np.copyto(x, np.array([1, 2]), where=np.array([True, False]))
np.copyto(x, np.array([2**60, 2], dtype='u8'))
np.nan_to_num(x, copy=False)
setattr(x, 'flat', [7])
setattr(x, 'real', [2, 3])
setattr(x, 'imag', 1)
np.add.at(x, np.array([True, False]), 3)
"""


def outcome(call: str, np: Any, x: Any = None) -> Any:
    """The result of a call, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, {"np": np, "x": x})  # a row of the table
            return numpy.asarray(result) if isinstance(result, tn.Array) else result
        except Exception as error:  # noqa: BLE001  # compared with the other library's
            return error


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_a_call_at_an_edge_gives_what_numpy_gives(call: str) -> None:
    expected = outcome(call, numpy)
    for result in (outcome(call, ours), outcome(call, ours)):  # the second one by a cached plan
        if isinstance(expected, Exception):
            assert isinstance(result, Exception), result
            for kind in (TypeError, ValueError, OverflowError):
                assert isinstance(result, kind) == isinstance(expected, kind), result
            continue
        assert numpy.asarray(result).dtype == numpy.asarray(expected).dtype
        numpy.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("call", WRITES.strip().splitlines())
def test_a_write_at_an_edge_writes_what_numpy_writes(call: str, dtype: str) -> None:
    start = numpy.array([0.5, numpy.nan] if dtype != "i8" else [3, 4]).astype(dtype)
    theirs, mine = start.copy(), tn.asarray(start)
    expected, result = outcome(call, numpy, theirs), outcome(call, ours, mine)
    assert isinstance(result, Exception) == isinstance(expected, Exception), (result, expected)
    numpy.testing.assert_array_equal(mine, theirs)
    assert mine.dtype == theirs.dtype
