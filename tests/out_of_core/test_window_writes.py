"""Large expressions are assigned to windows by parts; results that do not fit are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.mutation import external_buffer
from tenfold.out_of_core import chunk_sources
from tenfold.runtime import result_memory

ROWS = 3000
X = np.random.default_rng(2).normal(size=(ROWS, 4))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_buffer, "PART_BYTES", 1024)
    monkeypatch.setattr(external_buffer, "MIN_SOURCE_BYTES", 512)
    monkeypatch.setattr(chunk_sources, "TARGET_BYTES", 4096)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: tn.tanh(x) * 2,
        lambda x: x - tn.mean(x, axis=0),
        lambda x: tn.cumulative_sum(x, axis=0),
        lambda x: tn.astype(x > 0, tn.float64) + tn.arange(4.0),
    ],
)
def test_assignment_by_parts_writes_what_is_computed(program: Callable[[Any], Any]) -> None:
    memory = np.zeros((ROWS, 4))
    tn.wrap(memory)[...] = program(tn.asarray(X))
    np.testing.assert_allclose(memory, np.asarray(program(tn.asarray(X))), atol=1e-12)


def test_assignment_by_parts_does_not_compute_the_whole_value() -> None:
    memory, value = np.zeros((ROWS, 4)), tn.asarray(X) * 2
    tn.wrap(memory)[...] = value
    assert "pending" in repr(value)
    np.testing.assert_array_equal(memory, X * 2)
    np.testing.assert_array_equal(value, X * 2)


def test_assignment_to_a_slice_goes_by_parts() -> None:
    memory = np.zeros((ROWS + 2, 5))
    tn.wrap(memory)[1:-1, 1:] = tn.asarray(X) + 1
    np.testing.assert_array_equal(memory[1:-1, 1:], X + 1)
    assert not memory[0].any()
    assert not memory[:, 0].any()


def test_reader_of_the_old_value_keeps_it() -> None:
    memory = np.ones((ROWS, 4))
    window = tn.wrap(memory)
    old = window + 0
    window[...] = tn.asarray(X) * 2
    np.testing.assert_array_equal(old, np.ones((ROWS, 4)))


@pytest.mark.parametrize(
    "program",
    [lambda w: w * 2, lambda w: tn.flip(w, axis=0), lambda w: w - tn.mean(w, axis=0)],
)
def test_expression_of_the_memory_itself_is_computed_before(program: Callable[[Any], Any]) -> None:
    memory = X.copy()
    window = tn.wrap(memory)
    window[...] = program(window)
    np.testing.assert_allclose(memory, np.asarray(program(tn.asarray(X))), atol=1e-12)


def test_failure_leaves_the_memory_unchanged() -> None:
    memory, places = np.zeros((ROWS, 4)), np.zeros((ROWS, 4), np.int64)
    places[-1] = 99
    with pytest.raises(IndexError):
        tn.wrap(memory)[...] = tn.take(tn.arange(5.0), tn.asarray(places), axis=0)
    assert not memory.any()


@pytest.mark.parametrize("compute", [lambda x: x.wait(), np.asarray, lambda x: tn.eval(x).wait()])
def test_result_that_does_not_fit_is_refused_before_work(compute: Callable[[Any], Any]) -> None:
    with pytest.raises(MemoryError, match=r"have 32,768.0 GiB.*\n.*tn.wrap.* = e.*out="):
        compute(tn.zeros((1 << 22, 1 << 20)) + 1)


def test_result_without_out_that_does_not_fit_is_refused_before_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(result_memory, "available_memory", lambda: 0)
    monkeypatch.setattr(result_memory, "CHECKED_BYTES", 1)
    monkeypatch.setattr("tenfold._native.pool_bytes", lambda: (0, 0))
    with pytest.raises(MemoryError, match="96,000 bytes"):
        tn.blockwise(lambda x: x + 1, X)


def test_view_of_a_large_shape_needs_no_memory() -> None:
    wide = tn.broadcast_to(tn.asarray([1.0]), (1 << 22, 1 << 20))
    assert wide[5, 7].item() == 1


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("program", "by_parts"),
    [
        (lambda w: w * 2, True),
        (lambda w: w - tn.mean(w, axis=0) + w[:, :1] * tn.asarray(X), True),
        (lambda w: w + tn.flip(w, axis=0), False),
    ],
)
def test_window_is_changed_in_place_where_rows_need_themselves(
    program: Callable[[Any], Any], by_parts: bool
) -> None:
    memory, expected = X.copy(), np.asarray(program(tn.asarray(X)))
    window = tn.wrap(memory)
    value = program(window)
    with tn.profile() as profile:
        window[...] = value
    np.testing.assert_allclose(memory, expected, atol=1e-12)
    assert (profile.launches > 3) == by_parts


def test_readers_of_a_window_that_is_changed_in_place_keep_its_old_value() -> None:
    memory = X.copy()
    window = tn.wrap(memory)
    doubled = window * 2
    reader, old = doubled + 1, window + 0
    window[...] = doubled
    for array, expected in ((reader, X * 2 + 1), (old, X), (doubled, X * 2), (window, X * 2)):
        np.testing.assert_array_equal(array, expected)
    window[...] = 0.0
    np.testing.assert_array_equal(doubled, X * 2)
    assert not memory.any()
