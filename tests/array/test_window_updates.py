"""`+=` and `-=` through views that show elements several times: every term is added, as np.add.at
does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DTypeError, UnsupportedError


def added(x: np.ndarray, places: np.ndarray, terms: Any) -> np.ndarray:
    """The elements of `x` with the terms added at their numbers."""
    result = x.copy().reshape(-1)
    np.add.at(result, places, np.broadcast_to(terms, places.shape))
    return result.reshape(x.shape)


CHAINS = {
    "windows": lambda x, np_: np_(x, (2, 3)),
    "one axis": lambda x, np_: np_(x, 2, axis=1),
    "an axis twice": lambda x, np_: np_(x, (2, 2), axis=(1, 1)),
    "windows of windows": lambda x, np_: np_(np_(x, 2, axis=0), 3, axis=1),
    "windows of a slice": lambda x, np_: np_(x[1:, ::-1], (2, 2)),
    "windows of a transpose": lambda x, np_: np_(x.T, (3, 2)),
    "a slice of windows": lambda x, np_: np_(x, (2, 3))[::2, 1:, :, ::2],
}


def view_of(x: Any, chain: str) -> Any:
    if isinstance(x, tn.Array):
        return CHAINS[chain](x, tn.sliding_window_view)
    return CHAINS[chain](x, np.lib.stride_tricks.sliding_window_view)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("chain", CHAINS)
def test_terms_are_added_at_every_element_that_a_view_shows(chain: str, dtype: str) -> None:
    x = np.arange(20).reshape(4, 5).astype(dtype)
    places = np.ascontiguousarray(view_of(np.arange(20).reshape(4, 5), chain))
    terms = (np.arange(places.size).reshape(places.shape) % 5).astype(dtype)
    array = tn.asarray(x)
    old = array + 0
    for sign in (1, -1):
        view = view_of(array, chain)
        if sign > 0:
            view += tn.asarray(terms)
        else:
            view -= tn.asarray(terms)
        x = added(x, places, sign * terms)
        assert np.array_equal(np.asarray(array), x)
        assert np.array_equal(np.asarray(view), view_of(x, chain))
    view = view_of(array, chain)
    view += 2
    assert np.array_equal(np.asarray(array), added(x, places, 2))
    assert np.array_equal(np.asarray(old), np.arange(20).reshape(4, 5).astype(dtype))


def test_a_part_of_windows_is_updated_by_its_key() -> None:
    x, places = np.zeros(6), np.lib.stride_tricks.sliding_window_view(np.arange(6), 3)
    array = tn.asarray(x)
    view = tn.sliding_window_view(array, 3)
    view[1:] += 1.0
    tn.assign(view[:, 0], np.arange(4.0), "-=")
    expected = added(added(x, places[1:].copy(), 1.0), places[:, 0].copy(), -np.arange(4.0))
    assert np.array_equal(np.asarray(array), expected)


def test_windows_of_the_memory_of_the_caller_are_updated_there() -> None:
    memory = np.zeros(5)
    view = tn.sliding_window_view(tn.wrap(memory), 2)
    view += 1.0
    view.wait()
    assert memory.tolist() == [1.0, 2.0, 2.0, 2.0, 1.0]


def test_windows_are_updated_inside_a_traced_function() -> None:
    @tn.function
    def overlap_add(frames: tn.Array) -> tn.Array:
        signal = tn.zeros(6)
        view = tn.sliding_window_view(signal, 3)
        view += frames
        return signal

    for _ in range(2):
        assert overlap_add(tn.ones((4, 3))).tolist() == [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]


def assign_product(view: tn.Array) -> None:
    view *= 2


def assign_part(view: tn.Array) -> None:
    view[0] = 1.0


@pytest.mark.parametrize("write", [assign_product, assign_part, lambda view: tn.assign(view, 1.0)])
def test_other_assignments_to_windows_are_refused(write: Any) -> None:
    x = tn.zeros(4)
    with pytest.raises(UnsupportedError, match="a view made by sliding_window_view"):
        write(tn.sliding_window_view(x, 2))
    assert x.tolist() == [0.0] * 4


def test_terms_of_another_kind_are_refused() -> None:
    x = tn.zeros(4, dtype=tn.int64)
    view = tn.sliding_window_view(x, 2)
    with pytest.raises(DTypeError, match="same-kind"):
        view += 0.5
    assert x.tolist() == [0] * 4
