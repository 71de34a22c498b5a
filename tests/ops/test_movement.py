"""Movement: any chain of movements against NumPy, the rows of the feature table, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Part

import tenfold as tn
from grid import ALL_DTYPES
from movement_samples import arrays_with, numbered, same_bits, untimed, xp
from tenfold.errors import DTypeError, ShapeError

X = numbered((2, 3, 4))
MOVES = {
    "T": lambda x, draw: x.T if x.ndim == 2 else x[..., None],
    "moveaxis": lambda x, draw: xp(x).moveaxis(x, *draw.axes(x, 2)) if x.ndim else x[None],
    "flip": lambda x, draw: xp(x).flip(x, axis=draw.axes(x, 1)[0]) if x.ndim else x,
    "roll": lambda x, draw: xp(x).roll(x, draw.number, axis=draw.axes(x, 1)[0]) if x.ndim else x,
    "flat": lambda x, draw: xp(x).reshape(x, (-1,)) if x.size else xp(x).reshape(x, (0, 3)),
    "halves": lambda x, draw: xp(x).reshape(x, (2, -1)) if x.size and x.size % 2 == 0 else x,
    "every second": lambda x, draw: x[..., :: draw.step] if x.ndim else x,
    "rest": lambda x, draw: x[1:] if x.ndim else x,
    "new axis": lambda x, draw: x[:, None] if x.ndim in (1, 2, 3) else x,
    "squeeze": lambda x, draw: xp(x).squeeze(x),
    "tile": lambda x, draw: xp(x).tile(x, (2, 1)) if x.size < 300 else x,
    "pad": lambda x, draw: xp(x).pad(x, 1, mode="edge") if 0 < x.size < 300 else x,
    "broadcast": lambda x, draw: xp(x).broadcast_to(x, (2, *x.shape)) if x.ndim < 6 else x,
    "diagonal": lambda x, draw: xp(x).diagonal(x, draw.number) if x.ndim > 1 else x,
    "tril": lambda x, draw: xp(x).tril(x, k=draw.number) if x.ndim > 1 else x,
    "join": lambda x, draw: xp(x).concat([x, x[:1]], axis=0) if x.ndim and x.size < 300 else x,
}


class Draw:
    """The choices of one link of a chain, the same for both libraries."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.number = seed % 7 - 3
        self.step = (-2, -1, 1, 2)[seed % 4]

    def axes(self, x: Any, count: int) -> list[int]:
        return [(self.seed // (1 + i)) % x.ndim - (self.seed % 2) * x.ndim for i in range(count)]


@untimed
@given(
    arrays_with(),
    st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 99)), max_size=7),
)
def test_any_chain_of_movements_equals_numpy(x: np.ndarray, chain: list[tuple[str, int]]) -> None:
    lazy, plain = tn.asarray(x), x
    for name, seed in chain:
        lazy, plain = MOVES[name](lazy, Draw(seed)), MOVES[name](plain, Draw(seed))
        assert lazy.shape == plain.shape
    same_bits(lazy, plain)


@untimed
@given(
    arrays_with(),
    st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 99)), max_size=4),
)
def test_a_chain_shows_its_base_as_numpy_would(x: np.ndarray, chain: list[tuple[str, int]]) -> None:
    """Views alone show the new values, as in NumPy; a copy on the way keeps the old ones."""
    x = x.copy()
    lazy_base = tn.asarray(x)
    lazy, plain = lazy_base, x
    for name, seed in chain:
        lazy, plain = MOVES[name](lazy, Draw(seed)), MOVES[name](plain, Draw(seed))
    lazy_base += 1000
    x += 1000
    same_bits(lazy, plain)


def test_transpose_of_a_matrix() -> None:
    same_bits(tn.asarray(X[0]).T, X[0].T)


def test_T_of_three_axes_reverses_them() -> None:
    same_bits(tn.asarray(X).T, X.T)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_no_padding_shows_after_any_movement_of_odd_rows(dtype: str, part: Part) -> None:
    values = numbered((5, 3), dtype)
    x = tn.asarray(values)
    same_bits(tn.reshape(x, (-1,)), values.reshape(-1))
    for name, move in part(MOVES.items()):
        for seed in (0, 1, 5):
            moved, expected = move(x, Draw(seed)), move(values, Draw(seed))
            same_bits(tn.reshape(moved, (-1,)), expected.reshape(-1)), name


def test_permutations_of_the_feature_table() -> None:
    x = tn.reshape(tn.arange(24), (2, 3, 4))
    assert tn.permute_dims(x, (2, 0, 1))[0, 0].tolist() == [0, 4, 8]
    swapped = tn.swapaxes(x, 2, 0)
    assert [row.tolist() for row in swapped[0]] == [[0, 12], [4, 16], [8, 20]]


def test_vector_broadcasts_on_an_axis_in_the_middle() -> None:
    x = tn.broadcast_to(tn.asarray([1, 2, 3]), (2, 3, 2, 2), axis=1)
    assert x.shape == (2, 3, 2, 2)
    assert bool(tn.all(x[:, 1, :, :] == 2))
    same_bits(x, np.broadcast_to(np.array([1, 2, 3])[:, None, None], (2, 3, 2, 2)))


@untimed
@given(
    arrays_with(max_dims=3), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3)
)
def test_crop_takes_off_what_pad_puts_on(x: np.ndarray, widths: list[tuple[int, int]]) -> None:
    lazy, pairs = tn.asarray(x), widths[: x.ndim]
    padded = tn.pad(lazy, pairs) if x.ndim else lazy
    same_bits(tn.crop(padded, x.shape, start=[before for before, _ in pairs]), x)
    same_bits(tn.crop(tn.pad(lazy, 2), x.shape), x)


def test_crop_takes_the_centre() -> None:
    x = tn.reshape(tn.arange(30), (5, 6))
    assert tn.crop(x, (2, 3)).tolist() == [[7, 8, 9], [13, 14, 15]]


@untimed
@given(arrays_with(min_dims=1, max_dims=3), st.data())
def test_repeat_by_counts_equals_numpy(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=x.shape[axis], max_size=x.shape[axis]))
    counts = np.array(counts, np.int64)
    same_bits(tn.repeat(tn.asarray(x), tn.asarray(counts), axis=axis), np.repeat(x, counts, axis))


def test_numpy_functions_answer_with_arrays() -> None:
    x = tn.asarray(X)
    same_bits(np.transpose(x), X.T)
    same_bits(np.flip(x, 1), np.flip(X, 1))
    same_bits(np.pad(x, 1, constant_values=7), np.pad(X, 1, constant_values=7))
    same_bits(np.split(x, 3, axis=1), np.split(X, 3, axis=1))
    same_bits(np.diagonal(x, 1, 2, 0), np.diagonal(X, 1, 2, 0))


Z = tn.zeros((2, 3))
REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("permute_dims", lambda: tn.permute_dims(Z, (0, 0)), ShapeError, r"\(0, 0\).*each of 2 axes"),
    (
        "permute_dims",
        lambda: tn.permute_dims(Z, (0, 2)),
        ShapeError,
        "axis 2 is out of range for 2",
    ),
    ("permute_dims", lambda: tn.permute_dims(Z, (0,)), ShapeError, "each of 2 axes once"),
    ("reshape", lambda: tn.reshape(Z, (4,)), ShapeError, r"6 elements of shape \(2, 3\).*\(4,\)"),
    ("reshape", lambda: tn.reshape(Z, (-1, -1)), ShapeError, "more than one -1"),
    ("reshape", lambda: tn.reshape(Z, (2.0, 3)), ShapeError, "not a sequence of ints"),
    ("broadcast_to", lambda: tn.broadcast_to(Z, (3, 2)), ShapeError, r"\(2, 3\).*\(3, 2\)"),
    ("broadcast_to", lambda: tn.broadcast_to(Z, (3,)), ShapeError, r"\(2, 3\).*\(3,\)"),
    ("broadcast_to", lambda: tn.broadcast_to(Z, (2, 3, 4), axis=1), ShapeError, "at axis 1|last"),
    ("broadcast_to", lambda: tn.broadcast_to(Z, (2, 3, 4), axis=3), ShapeError, "axis 3 is out"),
    ("broadcast_arrays", lambda: tn.broadcast_arrays(Z, Z[:, :2]), ShapeError, "lengths 3 and 2"),
    ("broadcast_shapes", lambda: tn.broadcast_shapes((2,), (3,)), ShapeError, "do not broadcast"),
    ("moveaxis", lambda: tn.moveaxis(Z, (0, 0), (0, 1)), ShapeError, "names an axis twice"),
    ("moveaxis", lambda: tn.moveaxis(Z, (0, 1), 0), ShapeError, "2 axes do not go to 1"),
    ("moveaxis", lambda: tn.moveaxis(Z, 5, 0), ShapeError, "axis 5 is out of range"),
    ("swapaxes", lambda: tn.swapaxes(Z, 0, 2), ShapeError, "axis 2 is out of range"),
    ("matrix_transpose", lambda: tn.matrix_transpose(Z[0]), ShapeError, "1 axes is not a matrix"),
    ("flip", lambda: tn.flip(Z, axis=2), ShapeError, "axis 2 is out of range"),
    ("flip", lambda: tn.flip(Z, axis=(0, -2)), ShapeError, "names an axis twice"),
    ("roll", lambda: tn.roll(Z, (1, 2), axis=(0, 1, 0)), ShapeError, "2 shifts do not fit 3 axes"),
    ("roll", lambda: tn.roll(Z, 1.5), ShapeError, "1.5 is not an int"),
    ("expand_dims", lambda: tn.expand_dims(Z, axis=4), ShapeError, "axis 4 is out of range for 3"),
    ("expand_dims", lambda: tn.expand_dims(Z, axis=(0, 0)), ShapeError, "twice"),
    ("squeeze", lambda: tn.squeeze(Z, axis=1), ShapeError, "has length 3, not 1"),
    ("repeat", lambda: tn.repeat(Z, -1), ShapeError, "negative"),
    ("repeat", lambda: tn.repeat(Z, [1, 2, 3, 4], axis=1), ShapeError, "axis of length 3"),
    ("repeat", lambda: tn.repeat(Z, [0.5, 1, 2], axis=1), DTypeError, "integers, not float64"),
    ("tile", lambda: tn.tile(Z, (2, -1)), ShapeError, "negative"),
    ("pad", lambda: tn.pad(Z, -1), ShapeError, "negative"),
    ("pad", lambda: tn.pad(Z, ((1, 2), (1, 2), (1, 2))), ShapeError, "does not fit 2 axes"),
    ("pad", lambda: tn.pad(Z, 1, "around"), ShapeError, "'around' is none of"),
    ("pad", lambda: tn.pad(Z[:0], 1, "edge"), ShapeError, "axis 0 of shape .* is empty"),
    ("pad", lambda: tn.pad(tn.arange(3), 1, constant_values=1.5), DTypeError, "1.5 is not a value"),
    ("crop", lambda: tn.crop(Z, (3, 3)), ShapeError, r"\(3, 3\) in the middle is not inside"),
    ("crop", lambda: tn.crop(Z, (1, 1), start=(2, 0)), ShapeError, r"at \(2, 0\)"),
    ("crop", lambda: tn.crop(Z, (1,)), ShapeError, "not inside"),
    ("diagonal", lambda: tn.diagonal(Z[0]), ShapeError, "1 axes has no diagonal"),
    ("diagonal", lambda: tn.diagonal(Z, axis1=1, axis2=-1), ShapeError, "are the same"),
    ("diag", lambda: tn.diag(Z[None]), ShapeError, "not a vector or a matrix"),
    ("diag_embed", lambda: tn.diag_embed(tn.asarray(1.0)), ShapeError, "not a vector"),
    ("tril", lambda: tn.tril(Z[0]), ShapeError, "not a matrix"),
    ("triu", lambda: tn.triu(Z, k=0.5), ShapeError, "0.5 is not an int"),
]


@pytest.mark.parametrize(("name", "program", "error", "text"), REFUSED)
def test_mistake_is_refused_at_the_call(name: str, program: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"(?s)^{name}: .*{text}"):
        program()


@pytest.mark.parametrize("offset", [2**31, -(2**70)])
def test_a_diagonal_beyond_the_corners_is_empty(offset: int) -> None:
    x = tn.ones((2, 3))
    assert tn.diagonal(x, offset).tolist() == []
    assert tn.linalg.trace(x, offset=offset).item() == 0


@pytest.mark.parametrize("shift", [5, (5,), ()])
def test_a_roll_along_no_axes_changes_nothing(shift: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert tn.roll(tn.asarray(x), shift, ()).tolist() == np.roll(x, shift, ()).tolist()


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1000, 12_345])
@pytest.mark.parametrize("dtype", ["bool", "int16", "bfloat16", "float64", "complex64"])
def test_each_position_is_repeated_the_same_number_of_times(dtype: str, count: int) -> None:
    x = tn.astype(tn.reshape(tn.arange(6), (2, 3)) % 5, getattr(tn, dtype))
    given = np.asarray(x)
    for axis in (None, 0, 1):
        same_bits(tn.repeat(x, count, axis=axis), np.repeat(given, count, axis))
    same_bits(tn.repeat(x, count, axis=0) == x[0], np.repeat(given, count, axis=0) == given[0])


def test_nothing_repeated_any_number_of_times_is_nothing() -> None:
    assert tn.repeat(tn.zeros(0), 10**30).tolist() == []
