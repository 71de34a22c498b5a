"""Joining and parting: values for all dtypes, what is a view, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenfold as tn
from grid import ALL_DTYPES
from movement_samples import arrays_with, node_name, numbered, same_bits, special, untimed
from tenfold.errors import DTypeError, ShapeError

X = numbered((2, 3))


@untimed
@given(arrays_with(min_dims=1, max_dims=4), st.data())
def test_parts_joined_again_are_the_array(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(-2, 6), max_size=4)))
    parts = tn.split(tn.asarray(x), cuts, axis=axis)
    same_bits(parts, np.split(x, cuts, axis=axis))
    inside = sorted({cut for cut in cuts if 0 <= cut <= x.shape[axis]})
    same_bits(tn.concat(tn.split(tn.asarray(x), inside, axis=axis), axis=axis), x)


@untimed
@given(arrays_with(max_dims=4), st.data())
def test_stack_and_unstack_are_inverse(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    layers = [x, x + 1, x - 1]
    stacked = tn.stack([tn.asarray(layer) for layer in layers], axis=axis)
    same_bits(stacked, np.stack(layers, axis=axis))
    same_bits(tn.unstack(stacked, axis=axis), layers)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_is_joined_bit_for_bit(dtype: str) -> None:
    x, y = special((3, 2), dtype), special((3, 5), dtype)[::-1]
    same_bits(tn.concat([tn.asarray(x), tn.asarray(y)], axis=1), np.concatenate([x, y], axis=1))
    same_bits(tn.concat([tn.asarray(x), tn.asarray(y)], axis=None), np.concatenate([x, y], None))


def test_equal_parts() -> None:
    x = numbered((6, 2))
    for sections in (1, 2, 3, 6):
        same_bits(tn.split(tn.asarray(x), sections), np.split(x, sections))
    same_bits(tn.split(tn.asarray(x)[:0], 3), np.split(x[:0], 3))


def test_join_reads_the_values_of_the_call() -> None:
    x = tn.asarray(X)
    joined = tn.concat([x, x + 1])
    x += 100
    same_bits(joined, np.concatenate([X, X + 1]))


def test_join_of_many_arrays_is_one_node() -> None:
    parts = [tn.full((1, 2), number) for number in range(1000)]
    joined = tn.concat(parts)
    assert node_name(joined) == "concat"
    same_bits(joined, np.repeat(np.arange(1000), 2).reshape(1000, 2))


def test_ndarrays_are_joined_with_arrays() -> None:
    same_bits(tn.concat([tn.asarray(X), X.astype(np.float32)]), np.concatenate([X, X]) * 1.0)


def test_rows_of_one_array_are_joined() -> None:
    same_bits(tn.concat(tn.asarray(numbered((2, 3, 4)))), np.concatenate(numbered((2, 3, 4))))


def test_numpy_functions_answer_with_arrays() -> None:
    x = tn.asarray(X)
    same_bits(np.concatenate([x, x], axis=1), np.concatenate([X, X], axis=1))
    same_bits(np.stack([x, X], -1), np.stack([X, X], -1))


def test_strict_dtypes_refuses_to_join_two_dtypes() -> None:
    x = tn.asarray(X)
    with tn.options(strict_dtypes=True), pytest.raises(DTypeError, match=r"concat.*int64, float32"):
        tn.concat([x, tn.astype(x, tn.float32)])


Z = tn.zeros((2, 3))
REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    (
        "concat",
        lambda: tn.concat([Z, tn.zeros((2, 4))]),
        ShapeError,
        r"\(2, 3\) and \(2, 4\) of arrays 1 and 2 differ on axis 1",
    ),
    ("concat", lambda: tn.concat([Z, Z, Z[0]]), ShapeError, "1 and 3 differ in the number of axes"),
    ("concat", lambda: tn.concat([Z], axis=2), ShapeError, "axis 2 is out of range for 2 axes"),
    ("concat", lambda: tn.concat([]), ShapeError, "no array was given"),
    ("concat", lambda: tn.concat([tn.asarray(1)]), ShapeError, "without axes.*tn.stack"),
    ("concat", lambda: tn.concat([Z, "a"]), DTypeError, "str is not an array"),
    ("concat", lambda: tn.concat(1), DTypeError, "int is not a sequence of arrays"),
    ("stack", lambda: tn.stack([Z, Z[0]]), ShapeError, r"\(2, 3\) and \(3,\) of arrays 1 and 2"),
    ("stack", lambda: tn.stack([Z], axis=-4), ShapeError, "axis -4 is out of range for 3 axes"),
    ("stack", lambda: tn.stack([]), ShapeError, "no array was given"),
    ("unstack", lambda: tn.unstack(tn.asarray(1)), ShapeError, "axis 0 is out of range for 0 axes"),
    ("split", lambda: tn.split(Z, 2, axis=1), ShapeError, "3 positions do not make 2 equal parts"),
    ("split", lambda: tn.split(Z, 0), ShapeError, "do not make 0 equal parts"),
    ("split", lambda: tn.split(Z, [0.5]), ShapeError, "are no ints"),
]


@pytest.mark.parametrize(("name", "program", "error", "text"), REFUSED)
def test_mistake_is_refused_at_the_call(name: str, program: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"(?s)^{name}: .*{text}"):
        program()


@pytest.mark.parametrize("count", [2, 17, 100, 600])
@pytest.mark.parametrize("join", [tn.stack, tn.concat])
def test_rows_side_by_side_are_joined_without_a_copy(join: Any, count: int) -> None:
    x = tn.asarray(numbered((count, 4))) + 0
    x.wait()
    for _ in range(20):  # cold, then hot
        rows = [row if join is tn.stack else row[None] for row in tn.unstack(x)]
        with tn.profile() as p:
            joined = join(rows).wait()
        same_bits(joined, np.asarray(x))
        assert p.bytes_allocated == 0 or count <= 16, p
    same_bits(join(rows[::-1]), np.asarray(x)[::-1])
    x[0] = 7  # what was joined keeps its values
    same_bits(joined, numbered((count, 4)))
    joined[1] = 8
    assert np.asarray(x)[1, 0] == numbered((count, 4))[1, 0]


def test_rows_of_an_ndarray_are_copied_by_a_join() -> None:
    given_rows = np.ones((40, 3))
    joined = tn.stack([tn.asarray(given_rows, copy=False)[i] for i in range(40)]).wait()
    given_rows[:] = 2
    same_bits(joined, np.ones((40, 3)))


def test_few_rows_of_a_large_array_do_not_keep_it_alive() -> None:
    x = (tn.zeros((4096, 64)) + 1).wait()
    tn.trim()  # so that no free memory is used again
    with tn.profile() as p:
        tn.stack([x[i] for i in range(20)]).wait()
    assert p.bytes_allocated == 20 * 64 * 8
