"""Targets that are sources, files that are mapped twice, sources that are not what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import AliasError, DTypeError, RunError, ShapeError, UnsupportedError
from tenfold.out_of_core import window_writes
from tenfold.out_of_core.chunk_outputs import Output


def rows() -> np.ndarray:
    return np.arange(12.0).reshape(6, 2)


def test_target_that_is_the_source_takes_rows_where_they_were_read() -> None:
    x = rows()
    wanted = x - x.mean(axis=0)
    assert tn.blockwise(lambda a: a - tn.mean(a, axis=0), x, out=x, chunk=2) is x
    assert np.array_equal(x, wanted)


@pytest.mark.parametrize("shift", [0, 1])
def test_target_whose_rows_are_read_later_is_refused(shift: int) -> None:
    x = np.arange(14.0).reshape(7, 2)
    with pytest.raises(AliasError, match="write to another array"):
        tn.blockwise(lambda a: tn.flip(a, axis=0), x[:6], out=x[shift : 6 + shift], chunk=2)


def test_two_results_in_one_array_are_refused() -> None:
    out = np.zeros((6, 2))
    with pytest.raises(AliasError, match="give each its own"):
        tn.blockwise(lambda a: (a, a + 1), rows(), out=(out, out), chunk=2)


def test_target_that_cannot_be_written_is_refused_before_work() -> None:
    out = np.zeros((6, 2))
    out.flags.writeable = False
    with pytest.raises(AliasError, match="read-only"):
        tn.blockwise(lambda a: a + 1, rows(), out=out)
    with pytest.raises(DTypeError, match="out is a list"):
        tn.blockwise(lambda a: a + 1, rows(), out=[[0]])


def test_rows_that_nothing_wrote_are_noticed() -> None:
    output = Output(np.zeros((4, 2)), 0)
    output.write(0, np.ones((3, 2)))
    with pytest.raises(RunError, match="3 of 4 rows"):
        output.whole()


def test_file_that_is_mapped_twice_is_one_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4000.0).reshape(2000, 2))
    written = np.load(tmp_path / "x.npy", mmap_mode="r+")
    read = np.load(tmp_path / "x.npy", mmap_mode="r")
    flipped = tn.flip(tn.asarray(read), axis=0)
    assert not window_writes.write_in_parts(
        flipped, tn.wrap(written), written, written.__setitem__, 1
    )
    elsewhere = np.zeros((2000, 2))
    assert window_writes.write_in_parts(
        flipped, tn.wrap(elsewhere), elsewhere, elsewhere.__setitem__, 1
    )
    assert np.array_equal(elsewhere, read[::-1])


def test_a_view_of_a_window_is_written_to_it_in_one_go() -> None:
    x = np.arange(8.0).reshape(2, 4)
    window = tn.wrap(x)
    assert not window_writes.write_in_parts(window[:, ::-1], window, x, x.__setitem__, 1)
    window[...] = window[:, ::-1]
    assert x.tolist() == [[3.0, 2.0, 1.0, 0.0], [7.0, 6.0, 5.0, 4.0]]


def test_a_row_that_is_read_again_is_not_written() -> None:
    x = np.arange(8.0)
    with pytest.raises(AliasError, match="read later"):
        tn.blockwise(lambda a: (a * 2, a - tn.sum(a)), x, chunk=2, out=(x, np.zeros(8)))
    assert x.tolist() == np.arange(8.0).tolist()


@pytest.mark.parametrize("window_is_source", [False, True])
def test_a_window_of_a_source_is_its_memory(window_is_source: bool) -> None:
    x = np.arange(8.0)
    source, out = (tn.wrap(x), x) if window_is_source else (x, tn.wrap(x))
    with pytest.raises(AliasError, match="read later"):
        tn.blockwise(lambda a: a[::-1] * 2, source, chunk=2, out=out)
    with pytest.raises(AliasError, match="two results"):
        tn.blockwise(lambda a: (a, a * 2), np.ones(8), chunk=2, out=(x, tn.wrap(x)))
    tn.blockwise(lambda a: a * 2, source, chunk=2, out=out)
    assert x.tolist() == (2 * np.arange(8.0)).tolist()


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_rules_that_are_asked_for_no_rows(chunk: int) -> None:
    def scanned(a: tn.Array) -> tn.Array:
        return tn.cumulative_prod(tn.cumulative_prod(a, include_initial=True), include_initial=True)

    def windows(a: tn.Array) -> tn.Array:
        return tn.pad(tn.mean(tn.sliding_window_view(a, 3, axis=0), axis=-1), ((1, 1),))

    for function, x in ((scanned, np.arange(1.0, 4)), (windows, np.arange(11.0))):
        found = tn.blockwise(function, x, chunk=chunk)
        np.testing.assert_allclose(found, function(tn.asarray(x)), rtol=1e-14)
        total = tn.blockwise(lambda a, f=function: tn.sum(f(a)), x, chunk=chunk)
        np.testing.assert_allclose(total, tn.sum(function(tn.asarray(x))), rtol=1e-14)


def test_a_whole_operand_is_joined_across_the_rows() -> None:
    x, column = np.arange(28.0).reshape(7, 4), tn.ones((7, 1))
    found = tn.blockwise(lambda a: tn.concat([column, a], axis=1), x, chunk=3)
    assert np.array_equal(found, np.hstack([np.ones((7, 1)), x]))
    stacked = tn.blockwise(lambda a: tn.stack([a, tn.zeros((7, 4))], axis=0), x, chunk=3)
    assert np.array_equal(stacked, np.stack([x, np.zeros((7, 4))]))


class Wrong:
    """A source that gives fewer rows than it is asked for."""

    shape, dtype = (6, 2), np.dtype("float64")

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.ones(self.shape)[key][:1]


def test_source_that_is_not_what_it_says_is_refused() -> None:
    with pytest.raises(RunError, match="correct the source") as caught:
        tn.blockwise(lambda a: tn.mean(a, axis=0), Wrong(), chunk=3)
    assert isinstance(caught.value.__cause__, ShapeError)
    with pytest.raises(DTypeError, match="mask"):
        tn.blockwise(tn.sum, np.ma.array([1.0, 2.0], mask=[0, 1]))
    with pytest.raises(UnsupportedError, match="csr storage"):
        tn.blockwise(lambda a: a * 2, tn.csr([2.0], [1], [0, 1], (1, 2)))


@pytest.mark.parametrize("op", [tn.tril, tn.triu])
def test_triangle_across_the_rows_is_refused_and_of_each_matrix_is_cut(op: Any) -> None:
    with pytest.raises(UnsupportedError, match="needs all rows"):
        tn.blockwise(op, np.ones((4, 2)), chunk=2)
    stack = np.ones((4, 3, 3))
    assert np.array_equal(np.asarray(tn.blockwise(op, stack, chunk=2)), np.asarray(op(stack)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32"])
@pytest.mark.parametrize("order", [0, 1, 2, 3, np.inf])
def test_norm_over_the_rows_is_computed_in_the_dtype_of_the_norm(dtype: str, order: Any) -> None:
    x = np.full(9, 100, dtype)
    found = tn.blockwise(lambda a: tn.linalg.vector_norm(a, ord=order), x, chunk=4)
    wanted = tn.linalg.vector_norm(tn.asarray(x), ord=order)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-3)


def test_product_whose_one_row_broadcasts_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="its one row broadcasts"):
        tn.blockwise(lambda a: a @ tn.ones((5, 3, 2)), np.ones((1, 2, 3)))


def test_empty_sources_are_checked_as_others_are() -> None:
    empty = np.zeros((0, 3))
    for wrong in ({"chunk": 0}, {"axis": 7}, {"out": np.zeros((1, 3))}):
        with pytest.raises((ShapeError, IndexError, ValueError)):
            tn.blockwise(lambda a: a * 2, empty, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="rows along their axes"):
        tn.blockwise(lambda a, b: tn.sum(a), empty, np.zeros((4, 3)))
    with pytest.raises(DTypeError, match="cannot hold"):
        tn.blockwise(lambda a: a * 2, empty, out=np.zeros((0, 3), np.int64))
    assert "no pass" in tn.blockwise(lambda a: a * 2, empty, explain=True)


def test_targets_of_named_results_are_found_by_name() -> None:
    x, out = rows(), {"b": None, "a": np.zeros((6, 2))}
    results = tn.blockwise(lambda a: {"a": a + 1, "b": a * 2}, x, out=out, chunk=4)
    assert results["a"] is out["a"]
    assert np.array_equal(out["a"], x + 1)
    assert np.array_equal(np.asarray(results["b"]), x * 2)
    with pytest.raises(ShapeError, match="name each result"):
        tn.blockwise(lambda a: {"a": a}, x, out={"c": np.zeros((6, 2))})
