"""Maps that go by tiles, against NumPy: every itemsize, edges, outer axes, several operands."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn

DTYPES = ["bool", "int8", "uint16", "float16", "int32", "float32", "float64", "int64"]
COMPLEX = ["complex64", "complex128"]


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Return small whole numbers, all of which every dtype has."""
    values = np.random.default_rng(seed).integers(0, 100, shape)
    return (values % 2 if dtype == "bool" else values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES + COMPLEX)
@pytest.mark.parametrize("shape", [(16, 16), (17, 31), (64, 64), (65, 129), (200, 40)])
def test_operand_across_is_read_at_its_own_index(dtype, shape):
    x, y = numbers(shape, dtype), numbers(shape[::-1], dtype, 1)
    result = tn.asarray(x) + tn.asarray(y).T
    assert np.array_equal(np.asarray(result), x + y.T)


@pytest.mark.parametrize("shape", [(3, 20, 33), (20, 2, 70), (2, 3, 18, 19)])
def test_outer_axes_stay_outside_of_the_tiles(shape):
    x = numbers(shape, "float32")
    for axes in ((0, 2, 1), (2, 1, 0), (1, 2, 0)):
        axes = axes if len(shape) == 3 else (0, *(axis + 1 for axis in axes))
        y = numbers(tuple(shape[axes.index(i)] for i in range(len(shape))), "float32", 2)
        result = tn.asarray(x) * tn.permute_dims(tn.asarray(y), axes)
        assert np.array_equal(np.asarray(result), x * y.transpose(axes))


def test_operands_of_several_sizes_lie_across_in_one_kernel():
    x, y = numbers((70, 90), "float64"), numbers((90, 70), "int8", 1)
    z, c = numbers((90, 70), "complex128", 2), numbers((90, 70), "bool", 3)
    a, b, d, e = map(tn.asarray, (x, y, z, c))
    result = tn.where(e.T, a + b.T, d.T)
    assert np.array_equal(np.asarray(result), np.where(c.T, x + y.T, z.T))


def test_broadcast_operands_stand_beside_one_that_lies_across():
    x, y = numbers((40,), "float32"), numbers((40, 50), "float32", 1)
    column = numbers((50, 1), "float32", 2)
    result = tn.asarray(y).T * tn.asarray(x) - tn.asarray(column)
    assert np.array_equal(np.asarray(result), y.T * x - column)


def test_window_of_a_larger_array_lies_across():
    x, y = numbers((33, 47), "float64"), numbers((100, 100), "float64", 1)
    result = tn.asarray(x) - tn.asarray(y)[3:50, 5:38].T
    assert np.array_equal(np.asarray(result), x - y[3:50, 5:38].T)


def test_large_result_goes_past_the_cache():
    x, y = numbers((1100, 2048), "float64"), numbers((2048, 1100), "float64", 1)
    result = tn.asarray(x) + tn.asarray(y).T
    assert np.array_equal(np.asarray(result), x + y.T)


def test_every_thread_count_has_the_same_bits():
    x, y = numbers((300, 310), "float32"), numbers((310, 300), "float32", 1)
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            result = tn.sqrt(tn.asarray(x) + tn.asarray(y).T)
            assert np.array_equal(np.asarray(result), np.sqrt(x + y.T))
