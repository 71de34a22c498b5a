"""What named operations must do, one test for each fact: an input, and what must be seen."""

from __future__ import annotations

import io
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp
from tenfold.testing import assert_equal_bits


def test_softmax_of_large_numbers_and_its_gradients() -> None:
    assert tn.softmax(tn.asarray([1000.0, 1000.0])).tolist() == [0.5, 0.5]
    p = tn.softmax(tn.asarray([[0.0, 0.0], [1000.0, 0.0], [5.0, 5.0]]))
    labels = tn.asarray([1, 0, -1])
    plain = tn.softmax_gradient(p, labels, ignore_label=-1)
    assert plain.tolist() == [[0.5, -0.5], [0.0, 0.0], [0.0, 0.0]]
    smoothed = tn.softmax_gradient(p, labels, smoothing=0.25, ignore_label=-1)
    assert smoothed.tolist() == [[0.25, -0.25], [0.25, -0.25], [0.0, 0.0]]


def test_gathered_rows_and_their_gradient_are_bounds_checked() -> None:
    x = tn.reshape(tn.arange(20.0), (10, 2))
    assert tn.take(x, [8, 0, 1], axis=0).tolist() == [[16.0, 17.0], [0.0, 1.0], [2.0, 3.0]]
    gradient = np.asarray(tn.add_at(tn.zeros((10, 2)), tn.asarray([8, 1, 8]), 1.0))
    assert np.flatnonzero(gradient.any(1)).tolist() == [1, 8]
    with pytest.raises(IndexError):
        tn.take(x, [10], axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "s", "d"), [*itertools.product((2, 3), (1, 2), (1, 2, 3))])
def test_im2col_and_col2im_are_an_adjoint_pair(k: int, s: int, d: int, dtype: str) -> None:
    rng = np.random.default_rng(k + 10 * s + 100 * d)
    x = rng.standard_normal((2, 3, 13, 11)).astype(dtype)
    columns = np.asarray(tn.im2col(tn.asarray(x), (k, k), stride=s, dilation=d))
    y = rng.standard_normal(columns.shape).astype(dtype)
    image = np.asarray(tn.col2im(tn.asarray(y), (13, 11), (k, k), stride=s, dilation=d))
    difference = np.vdot(columns.astype("f8"), y) - np.vdot(x.astype("f8"), image)
    assert abs(difference) < (1e-3 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_maxima_of_blocks_and_their_gradient(threads: int) -> None:
    x = 0.1 * np.add.outer(np.arange(6), np.arange(6))
    with tn.options(threads=threads):
        pooled = tn.pool(tn.asarray(x), (2, 2))
        np.testing.assert_allclose(
            np.asarray(pooled), [[0.2, 0.4, 0.6], [0.4, 0.6, 0.8], [0.6, 0.8, 1]]
        )
        gradient = np.asarray(tn.unpool(tn.ones((3, 3)), tn.asarray(x), (2, 2)))
    assert np.array_equal(gradient, np.kron(np.ones((3, 3)), [[0, 0], [0, 1]]))
    floor, ceil = (
        tn.pool(tn.zeros((7, 7)), (2, 2), ceil_mode=mode).shape for mode in (False, True)
    )
    assert (floor, ceil) == ((3, 3), (4, 4))
    ties = [tn.unpool(tn.ones(1), tn.zeros(3), 3, ties=rule).tolist() for rule in ("first", "all")]
    assert ties == [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_values_are_sorted_by_their_keys_and_within_segments() -> None:
    assert tn.arange(5, 0, -1).tolist() == [5, 4, 3, 2, 1]
    keys, values = tn.sort_by_key(tn.asarray([3, 1, 2, 1, 3, 0]), tn.arange(6), descending=True)
    assert keys.tolist() == [3, 3, 2, 1, 1, 0]
    assert values.tolist() == [0, 4, 2, 1, 3, 5]
    x, ids = tn.asarray([3, 1, 9, 7, 8]), tn.asarray([0, 0, 1, 1, 1])
    assert tn.segment_sort(x, ids).tolist() == [1, 3, 7, 8, 9]
    assert tn.segment_max(x, ids, 2).tolist() == [3, 9]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_draws_of_one_expression_differ_and_repeat_with_their_seed(threads: int) -> None:
    def draw() -> np.ndarray:
        rng = tn.random.default_rng(7)
        return np.asarray(rng.uniform(size=1000) - rng.uniform(size=1000))

    expected = draw()
    assert expected.any()
    with tn.options(threads=threads):
        assert draw().tobytes() == expected.tobytes()


def test_gaussian_and_identity_matrices_are_made_by_pushed_operators() -> None:
    with tn.Engine(threads=2) as engine:
        identity = engine.push(tn.operators.eye, 3)
        gaussian = engine.push(tn.operators.random.normal, 5, 0, size=(200, 3))
        product = engine.push(tn.operators.matmul, gaussian, identity)
        assert product.get().tolist() == gaussian.get().tolist()
        values = np.asarray(gaussian.get())
    assert_equal_bits(values, np.asarray(tn.random.normal(5, 0, size=(200, 3))))
    assert abs(values.mean()) < 0.2


def test_saved_arrays_have_their_bits_and_saved_graphs_their_values() -> None:
    x = tn.astype(tn.reshape(tn.arange(24.0), (2, 3, 4)) / 7, tn.float16)
    file = io.BytesIO()
    tnp.save(file, x)
    file.seek(0)
    assert_equal_bits(tnp.load(file), np.asarray(x))
    file = io.BytesIO()
    tnp.savez(file, x=x, y=x + 1)
    file.seek(0)
    loaded: Any = np.load(file)
    assert_equal_bits(tn.asarray(loaded["y"]), np.asarray(x + 1))
    a = tn.asarray(np.random.default_rng(0).standard_normal((4, 4)))
    graph = tn.softmax(tn.sin(a) @ a + 1, axis=0)
    assert_equal_bits(pickle.loads(pickle.dumps(graph)), np.asarray(graph))


def test_pushes_to_a_key_add_up_or_are_gathered() -> None:
    calls: list[Any] = []
    with tn.Engine(threads=2) as engine:
        store = engine.store()
        store.init(0, np.zeros(3))
        for priority in range(4):
            store.push(0, np.ones(3), priority=priority)
        assert store.pull(0).get().tolist() == [4.0, 4.0, 4.0]
        gathered = engine.store(combine="gather")
        for i in range(4):
            gathered.push(0, np.full(3, float(i)))
        pulled = gathered.pull(0, callback=calls.append)
        assert pulled.get().shape == (4, 3)
        engine.flush()
    assert [np.asarray(call)[:, 0].tolist() for call in calls] == [[0.0, 1.0, 2.0, 3.0]]
