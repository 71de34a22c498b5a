"""`tn.blockwise` computes in chunks what a function computes in memory."""

from __future__ import annotations

import _thread
import random
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from chunk_programs import FOLDS, ROWS, SUMS, Program

import tenfold as tn
from tenfold.errors import DTypeError, RunError, ShapeError, UnsupportedError
from tenfold.inspect.progress import Progress

RNG = np.random.default_rng(7)
SMALL = np.round(RNG.normal(size=(41, 3)), 2)
LONG = RNG.normal(size=(5000, 2))


class Source:
    """An object with shape, dtype and slices, which may do something at each read."""

    def __init__(self, values: np.ndarray, on_read: Any = lambda key: None) -> None:
        self.values, self.on_read = values, on_read
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        self.on_read(key)
        part: np.ndarray = self.values[key].copy()
        return part


def bits_of(result: Any) -> bytes:
    return np.asarray(result).tobytes()


@pytest.mark.parametrize("name", [*FOLDS, *ROWS, *SUMS])
def test_result_is_that_in_memory(name: str) -> None:
    program = {**FOLDS, **ROWS, **SUMS}[name]
    expected = np.asarray(program(tn.asarray(SMALL)))
    for chunk in (7, 41):
        result = np.asarray(tn.blockwise(program, SMALL, chunk=chunk, workers=2))
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FOLDS)
def test_fold_has_the_bits_of_memory_where_chunks_begin_at_blocks(name: str) -> None:
    expected = bits_of(FOLDS[name](tn.asarray(LONG)))
    for chunk in (2048, 3072):
        assert bits_of(tn.blockwise(FOLDS[name], LONG, chunk=chunk)) == expected


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32", "uint8", "bool"])
def test_fold_has_the_bits_of_memory_for_each_dtype(dtype: str) -> None:
    x = tn.asarray(LONG * 3).wait()
    values = np.asarray(tn.astype(tn.abs(x) if dtype in ("uint8", "bool") else x, dtype))
    for name in ("sum", "prod", "var", "max", "argmax"):
        if dtype == "complex64" and name in ("max", "argmax"):
            continue
        expected = bits_of(FOLDS[name](tn.asarray(values)))
        assert bits_of(tn.blockwise(FOLDS[name], values, chunk=1024)) == expected, name


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "min", "argmax", "softmax", "any"])
def test_special_values_are_those_of_memory(name: str) -> None:
    values = LONG[:3000].copy()
    values[[5, 1500], [0, 1]] = np.nan, np.inf
    values[2900, 1] = -0.0
    with np.errstate(all="ignore"):
        expected = np.asarray(FOLDS[name](tn.asarray(values)))
        result = np.asarray(tn.blockwise(FOLDS[name], values, chunk=1024))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["standardized", "gram", "running sum", "var", "segments"])
def test_bits_are_the_same_for_any_workers_and_order_of_arrival(name: str) -> None:
    program = {**FOLDS, **SUMS}[name]
    values = RNG.normal(size=(300, 3))
    delays = random.Random(3)
    source = Source(values, lambda key: time.sleep(delays.random() / 500))
    results = {
        bits_of(tn.blockwise(program, source, chunk=11, workers=workers)) for workers in (1, 2, 3)
    }
    assert len(results) == 1


@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=15)
def test_program_of_random_steps_is_that_in_memory(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 4)))
    axis, chunk = data.draw(st.integers(0, 1)), data.draw(st.integers(1, 40))
    steps = data.draw(st.lists(st.sampled_from(list(_steps())), min_size=1, max_size=4))
    values = np.random.default_rng(data.draw(st.integers(0, 9))).normal(size=shape)

    def program(x: Any) -> Any:
        for step in steps:
            x = _steps()[step](x, axis)
        return x

    expected = np.asarray(program(tn.asarray(values)))
    result = np.asarray(tn.blockwise(program, values, axis=axis, chunk=chunk, workers=1))
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


def _steps() -> dict[str, Any]:
    return {
        "center": lambda x, axis: x - tn.mean(x, axis=axis, keepdims=True),
        "scale": lambda x, axis: x / (1 + tn.max(tn.abs(x), axis=1 - axis, keepdims=True)),
        "add last": lambda x, axis: x + (x[-1:] if axis == 0 else x[:, -1:]),
        "cumulate": lambda x, axis: tn.cumulative_sum(x, axis=axis),
        "flip": lambda x, axis: tn.flip(x, axis=0),
        "shift": lambda x, axis: tn.pad(x, ((1, 0), (0, 0)))[:-1],
        "square": lambda x, axis: x * x,
        "softmax": lambda x, axis: tn.softmax(x, axis=axis),
        "sort": lambda x, axis: tn.sort(x, axis=1) if axis == 0 else x + 1,
    }


def test_number_of_compilations_does_not_depend_on_the_number_of_chunks() -> None:
    def compiled(chunk: int, factor: float) -> int:
        with tn.options(tier=1), tn.profile() as profile:
            tn.blockwise(lambda x: tn.sum(tn.exp(x * factor) - 1, axis=0), LONG, chunk=chunk)
        return int(profile.compiles)

    assert compiled(1024, 0.5) <= 2
    assert compiled(50, 0.25) <= 2


def test_function_is_traced_once() -> None:
    calls = []

    def centered(x: Any) -> Any:
        calls.append(x)
        return x - tn.mean(x, axis=0)

    tn.blockwise(centered, SMALL, chunk=5)
    assert len(calls) == 1


def test_no_more_than_workers_and_one_chunk_are_in_memory() -> None:
    parts: list[weakref.ref[np.ndarray]] = []
    most = [0]

    class Counting(Source):
        def __getitem__(self, key: Any) -> np.ndarray:
            part: np.ndarray = self.values[key].copy()
            parts.append(weakref.ref(part))
            most[0] = max(most[0], sum(part() is not None for part in parts))
            return part

    source = Counting(RNG.normal(size=(400, 3)))
    tn.blockwise(lambda x: tn.sum(x, axis=0), source, chunk=10, workers=2)
    assert 0 < most[0] <= 3


def test_chunks_lie_along_the_named_axis() -> None:
    result = tn.blockwise(lambda x: x - tn.mean(x, axis=1, keepdims=True), SMALL.T, axis=1, chunk=7)
    np.testing.assert_allclose(result, SMALL.T - SMALL.T.mean(axis=1, keepdims=True))


def test_source_without_axis_is_read_whole() -> None:
    weights = np.arange(6.0).reshape(3, 2)
    result = tn.blockwise(lambda x, w: x @ w, SMALL, weights, axis=(0, None), chunk=9)
    np.testing.assert_allclose(result, SMALL @ weights)


def test_captured_array_is_read_beside_its_chunk() -> None:
    offsets = tn.asarray(np.arange(41.0))
    result = tn.blockwise(lambda x: x + offsets[:, None], SMALL, chunk=9)
    np.testing.assert_array_equal(result, SMALL + np.arange(41.0)[:, None])


def test_source_without_rows_is_computed_in_memory() -> None:
    empty = np.zeros((0, 3))
    assert tn.blockwise(lambda x: tn.sum(x, axis=0), empty).tolist() == [0, 0, 0]
    assert tn.blockwise(lambda x: x + 1, empty).shape == (0, 3)


def test_results_go_to_out(tmp_path: Path) -> None:
    target = np.memmap(tmp_path / "out", np.float64, "w+", shape=(41, 3))
    rows, total = tn.blockwise(
        lambda x: (x * 2, tn.sum(x, axis=0)), SMALL, chunk=6, out=(target, None)
    )
    assert rows is target
    np.testing.assert_array_equal(target, SMALL * 2)
    np.testing.assert_allclose(total, SMALL.sum(axis=0))


def test_out_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"out has shape \(4,\), the result has \(41, 3\)"):
        tn.blockwise(lambda x: x, SMALL, out=np.zeros(4))
    with pytest.raises(DTypeError, match="out of int64 cannot hold a result of float64"):
        tn.blockwise(lambda x: x, SMALL, out=np.zeros((41, 3), np.int64))


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (lambda x: tn.sort(x, axis=0), "sort"),
        (lambda x: x @ x.T, "matmul"),
        (lambda x: tn.fft.fft(x, axis=0), "fft"),
        (lambda x: x[:3] + x[:3].T, "add"),
    ],
)
def test_operation_that_needs_all_rows_is_refused(program: Program, name: str) -> None:
    with pytest.raises(
        UnsupportedError, match=rf"{name} at .*test_blockwise.py.* at once"
    ) as error:
        tn.blockwise(program, SMALL, chunk=5)
    assert "axis=" in str(error.value)


def test_function_that_asks_for_values_is_refused_with_its_line() -> None:
    with pytest.raises(UnsupportedError, match=r"test_blockwise.py:\d+ asks for a value"):
        tn.blockwise(lambda x: x if float(tn.sum(x)) > 0 else -x, SMALL, chunk=5)


def test_sources_of_unequal_length_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\[3, 41\] rows"):
        tn.blockwise(lambda x, y: x, SMALL, SMALL.T)


def test_error_of_a_chunk_names_its_rows_and_the_line() -> None:
    table, places = np.arange(4.0), np.zeros(30, np.int64)
    places[17] = 9
    with pytest.raises(RunError, match=r"chunk 2 \(rows 16 to 23\).*test_blockwise.py") as error:
        tn.blockwise(lambda i: tn.take(tn.asarray(table), i), places, chunk=8)
    assert isinstance(error.value.__cause__, IndexError)


def test_error_of_a_read_names_its_rows() -> None:
    def fail(key: Any) -> None:
        if key[0].start == 20:
            raise OSError("the disk is gone")

    with pytest.raises(RunError, match=r"rows 20 to 29\): OSError: the disk is gone"):
        tn.blockwise(lambda x: x + 1, Source(SMALL, fail), chunk=10)


def test_interrupt_says_what_is_written() -> None:
    target = np.zeros(SMALL.shape)
    main = threading.main_thread()
    assert threading.current_thread() is main

    def interrupt(key: Any) -> None:
        if key[0].start == 30:
            _thread.interrupt_main()
            time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt) as error:
        tn.blockwise(lambda x: x + 1, Source(SMALL, interrupt), chunk=5, out=target, workers=1)
    (note,) = error.value.__notes__
    assert "of 9 chunks done; out has the results of rows 0 to " in note
    last = int(note.partition("rows 0 to ")[2].partition(";")[0])
    np.testing.assert_array_equal(target[: last + 1], SMALL[: last + 1] + 1)


def test_explain_lists_passes_and_bytes_before_anything_is_read() -> None:
    source = Source(SMALL, lambda key: pytest.fail("it reads"))
    text = tn.blockwise(FOLDS["standardized"], source, chunk=16, explain=True, workers=2)
    assert text.splitlines()[:3] == [
        "blockwise: 2 passes over 3 chunks of 16 rows, axis 0",
        "pass 1: reads 984 bytes; reduces sum, squared_deviations",
        "pass 2: reads 984 bytes; makes the rows of result 1: float64[41], 328 bytes",
    ]
    assert text.splitlines()[3].startswith("peak memory: ")


def test_halo_is_read_with_the_chunk() -> None:
    reads: list[tuple[int, int]] = []
    source = Source(SMALL, lambda key: reads.append((key[0].start, key[0].stop)))
    tn.blockwise(ROWS["window of three"], source, chunk=20, workers=1)
    assert sorted(reads) == [(0, 22), (20, 41)]


def test_progress_counts_the_chunks_of_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []
    monkeypatch.setattr(Progress, "stage", lambda _, name, total: shown.append((name, total)))
    monkeypatch.setattr(Progress, "update", lambda _, done, total: shown.append(("done", done)))
    tn.blockwise(FOLDS["standardized"], SMALL, chunk=14, progress=True, workers=1)
    counts = [("done", 1), ("done", 2), ("done", 3)]
    assert shown == [("pass 1", 3), *counts, ("pass 2", 3), *counts]


def test_unknown_scheduler_is_refused() -> None:
    with pytest.raises(ValueError, match="scheduler 'spark' is unknown"):
        tn.blockwise(lambda x: x, SMALL, scheduler="spark")


def test_out_has_the_tree_of_the_results() -> None:
    first, second, third = (np.zeros((41, 3)) for _ in range(3))
    result = tn.blockwise(
        lambda x: ({"b": x * 2, "a": (x + 1, tn.sum(x, axis=0))}, x),
        SMALL,
        chunk=9,
        out=({"a": (first, None), "b": second}, third),
    )
    assert result[0]["b"] is second
    for array, expected in ((first, SMALL + 1), (second, SMALL * 2), (third, SMALL)):
        np.testing.assert_array_equal(array, expected)
    np.testing.assert_allclose(result[0]["a"][1], SMALL.sum(axis=0))
    with pytest.raises(ShapeError, match="out has 1 arrays for 2 results"):
        tn.blockwise(lambda x: {"b": x, "a": -x}, SMALL, out=(first, second))


def test_product_with_a_sparse_matrix_takes_rows() -> None:
    matrix = tn.csr([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 2, 3], (3, 3))
    dense = np.asarray(matrix.to_dense())
    result = tn.blockwise(lambda x: (x @ matrix, matrix @ x.T), SMALL, chunk=9)
    np.testing.assert_allclose(result[0], SMALL @ dense)
    np.testing.assert_allclose(result[1], dense @ SMALL.T)


def test_refusal_shows_what_the_user_wrote() -> None:
    with pytest.raises(UnsupportedError, match=r"of the line '.*tn\.median\(x, axis=0\)"):
        tn.blockwise(lambda x: tn.median(x, axis=0), SMALL, chunk=9)


def test_generator_of_random_numbers_is_refused_with_a_remedy() -> None:
    rng = tn.random.default_rng(1)
    with pytest.raises(
        UnsupportedError, match=r"test_blockwise\.py:\d+: a trace would repeat"
    ) as e:
        tn.blockwise(lambda x: x + rng.random(3), SMALL)
    assert "pass a draw number" in str(e.value)


@pytest.mark.parametrize(
    "options", [{"chunk": 1.5}, {"chunk": 0}, {"workers": 0}, {"workers": "a"}]
)
def test_count_that_is_no_number_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match=r"is not a number from 1 on\n  remedy: give"):
        tn.blockwise(lambda x: x, SMALL, **options)


def test_axis_that_is_not_there_is_refused_with_the_source() -> None:
    with pytest.raises(ShapeError, match=r"tn\.blockwise: axis 2 .* source of shape \(41, 3\)"):
        tn.blockwise(lambda x: x, SMALL, axis=2)


def test_error_of_a_chunk_says_what_is_written() -> None:
    def fail(key: Any) -> None:
        if key[0].start == 30:
            raise OSError("the disk is gone")

    target = np.zeros((41, 3))
    with pytest.raises(RunError, match="the disk is gone") as error:
        tn.blockwise(lambda x: x, Source(SMALL, fail), chunk=10, out=target, workers=1)
    assert "of 5 chunks done; out has the results of rows 0 to" in error.value.__notes__[0]
