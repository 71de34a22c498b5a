"""Indexing by every key NumPy knows, and taking: values, views, laziness, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenfold as tn
from grid import ALL_DTYPES, INTEGERS
from movement_samples import arrays_with, node_name, numbered, same_bits, special, untimed
from tenfold.errors import DTypeError, ShapeError

X = numbered((2, 3, 4))


@untimed
@given(arrays_with(), st.data())
def test_any_basic_key_equals_numpy(x: np.ndarray, data: Any) -> None:
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
    result = tn.asarray(x)[key]
    same_bits(result, x[key])


@untimed
@given(arrays_with(min_dims=1, min_side=1), st.sampled_from(INTEGERS), st.data())
def test_any_key_of_integer_arrays_equals_numpy(x: np.ndarray, dtype: str, data: Any) -> None:
    key = data.draw(hnp.integer_array_indices(x.shape))
    if dtype.startswith("u"):
        key = tuple(index % length for index, length in zip(key, x.shape, strict=True))
    key = tuple(index.astype(dtype) for index in key)
    same_bits(tn.asarray(x)[key], x[key])


@st.composite
def mixed_keys(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Keys of ints, slices, None, `...`, bools, masks and integer arrays in any order."""
    among = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    forms = ["slice", "none", "bool", "skip", "stop"] + ["int", "array", "mask"] * 2
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        length = shape[axis]
        form = draw(st.sampled_from(forms))
        width = 1
        if form in ("none", "bool"):
            width = 0
            key.append(None if form == "none" else draw(st.booleans()))
        elif form in ("skip", "stop") and not any(item is Ellipsis for item in key):
            width = draw(st.integers(0, len(shape) - axis)) if form == "skip" else len(shape)
            key.extend([Ellipsis] if form == "skip" else [])
        elif form == "mask":
            width = draw(st.integers(1, len(shape) - axis))
            key.append(draw(hnp.arrays(bool, shape[axis : axis + width])))
        elif form == "int" and length:
            key.append(draw(st.integers(-length, length - 1)))
        elif form == "array" and length:
            key.append(draw(hnp.arrays(np.int64, among, elements=st.integers(-length, length - 1))))
        else:
            key.append(draw(st.slices(length)))
        axis += width
    return tuple(key)


@untimed
@given(arrays_with(max_dims=4), st.data())
def test_any_mixed_key_equals_numpy_or_is_refused_as_by_numpy(x: np.ndarray, data: Any) -> None:
    key = data.draw(mixed_keys(x.shape))
    try:
        expected = x[key]
    except IndexError:
        with pytest.raises((IndexError, ShapeError)):
            tn.asarray(x)[key]
        return
    same_bits(tn.asarray(x)[key], expected)


A, B = np.array([0, 1]), np.array([[1], [0]])
MASK = X[:, :, 0] % 3 == 0
KEYS: list[Any] = [
    (),
    Ellipsis,
    None,
    1,
    -1,
    (1, -2, 3),
    (0, ..., 1),
    slice(None, None, -1),
    (slice(1, None), slice(0, 0), slice(5, -9, -2)),
    (None, 0, None, ..., None),
    [0, 1, 1],
    [[0], [1]],
    (A, A),
    (B, A),
    (A, slice(None), A),
    (slice(None), A, A),
    (slice(None), A, B),
    (0, slice(None), A),
    (0, A),
    (A, ..., 0),
    (slice(None), 0, A),
    (slice(None), 0, ..., A),
    (slice(None), A, None, B),
    (None, A, None),
    (A, None, slice(None, None, 2)),
    [],
    (slice(None), []),
    np.array(1),
    (np.int8(1), np.uint64(2)),
    True,
    False,
    (True, 0),
    (slice(None), True, A),
    (slice(None), False),
    np.True_,
    np.array(True),
    X > 5,
    MASK,
    (MASK, 2),
    (MASK, slice(1, 3)),
    (0, X[0] > 3),
    (slice(None), X[0] % 2 == 0),
    (..., np.array([True, False, True, True])),
    ([True, False], [0]),
    ([True, False], slice(None), [True, False, False, True]),
    np.zeros((2, 3, 4), bool),
    range(2),
]


@pytest.mark.parametrize("key", KEYS, ids=[str(number) for number in range(len(KEYS))])
def test_key_equals_numpy_with_ndarrays_and_with_arrays(key: Any) -> None:
    expected = X[list(key) if isinstance(key, range) else key]
    same_bits(tn.asarray(X)[key], expected)
    items = key if isinstance(key, tuple) else (key,)
    ours = tuple(tn.asarray(item) if isinstance(item, np.ndarray) else item for item in items)
    same_bits(tn.asarray(X)[ours], expected)
    pending = tuple(
        tn.flip(tn.flip(tn.asarray(item))) if isinstance(item, np.ndarray) else item
        for item in items
    )
    same_bits(tn.asarray(X)[pending], expected)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_is_read_bit_for_bit(dtype: str) -> None:
    values = special((4, 5), dtype)
    x = tn.asarray(values)
    for key in (2, (slice(None, None, -2), 1), [3, 0], values == values, (slice(None), [4, 4])):
        same_bits(x[key], values[key])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_every_integer_dtype(dtype: str) -> None:
    index = np.array([1, 0, 1]).astype(dtype)
    same_bits(tn.asarray(X)[tn.asarray(index)], X[index])
    same_bits(tn.take(tn.asarray(X), tn.asarray(index), axis=1), np.take(X, index, 1))


def test_basic_key_is_a_view_and_array_key_is_none() -> None:
    x = tn.asarray(X)
    assert x[1:, None].base is x
    assert node_name(x[1:, None]) == "index"
    assert x[A].base is None
    assert node_name(x[A, 1:]) == "gather"
    assert x[0, 1, 2].base is None


def test_element_can_be_changed_in_place_without_its_array() -> None:
    x = tn.asarray(X)
    element = x[0, 0, 1]
    element += 10
    assert (element.item(), x[0, 0, 1].item()) == (11, 1)


def test_index_by_pending_arrays_computes_nothing_at_the_call() -> None:
    x, index = tn.asarray(X), tn.flip(tn.asarray(A)) + 0
    with tn.profile() as profile:
        x[index, :, index]
        x[tn.sum(index), ...]
        tn.take(x, index, axis=1)
        tn.take_along_axis(x, index[:, None, None], axis=0)
    assert (profile.kernels, profile.calls, profile.host_syncs) == (0, 0, 0)


def test_pending_integer_without_axes_stands_for_an_int() -> None:
    x, position = tn.asarray(X), tn.sum(tn.asarray(A))
    same_bits(x[position], X[1])
    same_bits(x[:, position, ::2], X[:, 1, ::2])


def test_mask_computes_the_mask_and_leaves_the_array_pending() -> None:
    x = tn.asarray(X) + 1
    result = x[tn.asarray(X) > 20]
    assert result.shape == (3,)
    assert tn._native.node_of(x).pending
    same_bits(result, np.array([22, 23, 24]))


def test_rows_are_iterated_and_the_iteration_stops() -> None:
    same_bits(tuple(tn.asarray(X)), tuple(X))
    assert list(tn.zeros((0, 3))) == []
    first, second = tn.asarray([1, 2])
    assert (first.item(), second.item()) == (1, 2)


def test_an_array_without_axes_is_not_iterated() -> None:
    with pytest.raises(TypeError, match="without axes"):
        iter(tn.asarray(1.0))


def test_index_with_a_large_rank() -> None:
    x = numbered((2,) * 12)
    key = (0, slice(None, None, -1), None, ..., 1, slice(1, 2))
    same_bits(tn.asarray(x)[key], x[key])


@untimed
@given(arrays_with(min_dims=1, max_dims=4, min_side=1), st.data())
def test_take_along_axis_inverts_any_order(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    order = np.argsort(data.draw(hnp.arrays(np.int8, x.shape)), axis)
    lazy = tn.asarray(x)
    same_bits(tn.take_along_axis(lazy, order, axis=axis), np.take_along_axis(x, order, axis))


def test_take_along_axis_broadcasts_the_other_axes() -> None:
    index = np.array([[1, 0, -1]])
    expected = np.take_along_axis(X[0], np.broadcast_to(index, (3, 3)), 1)
    same_bits(tn.take_along_axis(tn.asarray(X[0]), index, axis=1), expected)


def test_take_of_the_feature_table() -> None:
    x = tn.reshape(tn.arange(20), (10, 2))
    assert tn.take(x, [8, 0, 1], axis=0).tolist() == [[16, 17], [0, 1], [2, 3]]
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with length 10"):
        tn.take(x, [10], axis=0)


def test_gather_puts_the_axes_of_the_indices_where_it_is_told() -> None:
    x = tn.asarray(X)
    assert tn.gather(x, [[0, 1]], axes=(1,)).shape == (2, 1, 2, 4)
    assert tn.gather(x, [[0, 1]], axes=(1,), place=0).shape == (1, 2, 2, 4)
    assert tn.gather(x, [[0, 1]], axes=(1,), place=-1).shape == (2, 4, 1, 2)


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("getitem", lambda x: x[2], IndexError, "index 2 is out of bounds for axis 0 with length 2"),
    ("getitem", lambda x: x[:, -4], IndexError, "index -4 .* axis 1 with length 3.*-3 to 2"),
    ("getitem", lambda x: x[:, :, :, 0], IndexError, "4 indices are too many for 3 axes"),
    ("getitem", lambda x: x[..., 0, ...], IndexError, "stands 2 times"),
    ("getitem", lambda x: x[1.0], IndexError, "1.0 of type float is not an index"),
    ("getitem", lambda x: x["a"], IndexError, "'a' of type str is not an index"),
    ("getitem", lambda x: x[[0.5]], IndexError, "an array of float64 is not an index"),
    ("getitem", lambda x: x[["a"]], IndexError, "an array of <U1 is not an index"),
    ("getitem", lambda x: x[[[0], [1, 2]]], IndexError, "rows of different lengths"),
    ("getitem", lambda x: x[::0], ShapeError, "step of 0"),
    ("getitem", lambda x: x[0.5:], DTypeError, "bounds that are no ints"),
    ("getitem", lambda x: x[[0, 5]], IndexError, "index 5 is out of bounds for axis 0"),
    ("getitem", lambda x: x[0, tn.asarray([0, 3])], IndexError, "index 3 .* axis 1 with length 3"),
    ("getitem", lambda x: x[np.array([-3], np.int8)], IndexError, "index -3 is out"),
    (
        "getitem",
        lambda x: x[np.array([2**63 + 1], np.uint64)],
        IndexError,
        "index 9223372036854775809",
    ),
    ("getitem", lambda x: x[X[0] > 1], IndexError, r"mask of shape \(3, 4\) .* shape \(2, 3\)"),
    ("getitem", lambda x: x[:, [True]], IndexError, r"mask of shape \(1,\) .* shape \(3,\)"),
    ("getitem", lambda x: x[..., [True, False]], IndexError, r"shape \(2,\) .* shape \(4,\)"),
    ("getitem", lambda x: x[[0, 1], [0, 1, 2]], ShapeError, r"shapes \(2,\) and \(3,\)"),
    ("getitem", lambda x: tn.asarray(1)[0], IndexError, "1 indices are too many for 0 axes"),
    ("index", lambda x: tn.index(x, [0]), IndexError, "make no view"),
    ("index", lambda x: tn.index(x, 2), IndexError, "index 2 is out of bounds"),
    ("take", lambda x: tn.take(x, [0]), ShapeError, "3 axes need an axis"),
    ("take", lambda x: tn.take(x, [0], axis=3), ShapeError, "axis 3 is out of range"),
    ("take", lambda x: tn.take(x, [0.0], axis=0), DTypeError, "indices are integers, not float64"),
    ("take", lambda x: tn.take(x, [4], axis=2), IndexError, "index 4 .* axis 2 with length 4"),
    ("take_along_axis", lambda x: tn.take_along_axis(x, [[0]]), ShapeError, "2 axes do not fit"),
    ("take_along_axis", lambda x: tn.take_along_axis(x, X, axis=0), IndexError, "index 2 is out"),
    ("gather", lambda x: tn.gather(x, [0], axes=(0, 1)), ShapeError, "1 index arrays do not fit"),
    ("gather", lambda x: tn.gather(x, [9]), IndexError, "index 9 is out of bounds"),
]


@pytest.mark.parametrize(("name", "program", "error", "text"), REFUSED)
def test_mistake_is_refused_at_the_call(name: str, program: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"(?s)^{name}: .*{text}"):
        program(tn.asarray(X))


PENDING = [
    lambda x, index: x[index],
    lambda x, index: x[:, index],
    lambda x, index: tn.take(x, index, axis=1),
    lambda x, index: tn.take_along_axis(x, index[:, None, None], axis=0),
]


@pytest.mark.parametrize("program", PENDING)
def test_index_whose_value_comes_late_is_refused_at_the_wait(program: Any) -> None:
    result = program(tn.asarray(X), tn.asarray([4, 4]) + 1)
    with pytest.raises(IndexError, match=r"index 5 is out of bounds for axis .*test_indexing\.py:"):
        result.wait()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("form", ["computed", "element", "pending", "numpy"])
def test_integers_without_axes_in_keys_are_ints(dtype: str, form: str) -> None:
    """Of an element of a computed array, too; the result is a copy, as for any array in a key."""
    x = tn.asarray(np.arange(60.0).reshape(3, 4, 5)).wait()
    numbers = np.asarray([0, 1, 2, -1, -3][: 3 if dtype.startswith("u") else 5], dtype)
    table = tn.asarray(numbers.reshape(1, -1))
    values = np.asarray(x)
    for n, number in enumerate(numbers.tolist()):
        i: Any = {
            "computed": lambda n=n: (table[0, n] + 0).wait(),
            "element": lambda n=n: table[0][n],
            "pending": lambda n=n: table[0, n] + 0,
            "numpy": lambda n=n: numbers[n],
        }[form]()
        for key, plain in (
            (i, number),
            ((i, 2), (number, 2)),
            ((slice(1, None), i), (slice(1, None), number)),
            ((..., i, None), (..., number, None)),
            ((None, i, slice(i, None)), (None, number, slice(number, None))),
            (slice(i, None), slice(number, None)),
            (slice(None, i, 2), slice(None, number, 2)),
            ((i, i, i), (number, number, number)),
        ):
            same_bits(x[key], values[plain])
            y = tn.asarray(x, copy=True)
            y[key] = -1.0
            expected = values.copy()
            expected[plain] = -1.0
            same_bits(y, expected)
        if form != "numpy":
            part = x[i, 1:]
            part += 1000.0
            assert float(tn.max(x)) == 59.0


@pytest.mark.parametrize("wrong", [3, -4, 2**62])
def test_integers_without_axes_out_of_bounds_raise_as_ints_do(wrong: int) -> None:
    x, table = tn.ones((3, 2)), tn.asarray(np.asarray([wrong])).wait()
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0"):
        x[table[0] + 0].wait()
    with pytest.raises(IndexError, match="out of bounds"):
        x[table[0], 0].wait()
    assert x[table[0] :].shape == np.ones((3, 2))[wrong:].shape


def test_integers_without_axes_in_keys_follow_their_array() -> None:
    x, at = tn.asarray(np.arange(5.0)), tn.asarray(np.asarray([1, 2]))
    for number in (1, 3, 4, 0):
        at[0] = number
        assert float(x[at[0]]) == number
        assert x[at[0] :].tolist() == np.arange(5.0)[number:].tolist()

    @tn.function
    def element(x: tn.Array, at: tn.Array) -> tn.Array:
        return x[at[0]] + x[at[1]]

    for number in (1, 3):
        at[0] = number
        assert float(element(x, at)) == number + 2


def test_slices_of_objects_that_are_no_integers_are_refused() -> None:
    x = tn.ones(4)
    for wrong in (1.0, "1", np.float64(2), tn.asarray(1.0), tn.asarray([1, 2])):
        with pytest.raises((TypeError, IndexError)):
            x[wrong:]
    assert x[True:].shape == (3,)
