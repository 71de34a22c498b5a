"""`tn.blockwise` reads and writes arrays of zarr, h5py and Dask."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.random.default_rng(1).normal(size=(230, 3))


def library(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def standardize(x: Any) -> Any:
    return (x - tn.mean(x, axis=0)) / tn.std(x, axis=0)


EXPECTED = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_is_read_and_written_by_its_chunks(version: int, tmp_path: Path) -> None:
    zarr = library("zarr")
    options = {"shape": X.shape, "chunks": (50, 2), "dtype": "f8", "zarr_format": version}
    source = zarr.create_array(str(tmp_path / "x"), **options)
    target = zarr.create_array(str(tmp_path / "y"), **options)
    source[...] = X
    text = tn.blockwise(standardize, source, explain=True)
    assert "over 1 chunk of 230 rows" in text or "chunks of 50 rows" in text
    assert tn.blockwise(standardize, source, out=target, chunk=40) is target
    np.testing.assert_allclose(target[...], EXPECTED)


def test_hdf5_is_read_and_written(tmp_path: Path) -> None:
    h5py = library("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = file.create_dataset("x", data=X, chunks=(64, 3))
        target = file.create_dataset("y", X.shape, "f8")
        tn.blockwise(standardize, source, out=target, chunk=64)
        np.testing.assert_allclose(target[...], EXPECTED)


def test_dask_array_is_a_source() -> None:
    dask = library("dask.array")
    result = tn.blockwise(standardize, dask.from_array(X, chunks=(60, 3)))
    np.testing.assert_allclose(result, EXPECTED)


def test_targets_of_zarr_stand_in_tuples_and_dicts(tmp_path: Path) -> None:
    zarr = library("zarr")
    options = {"shape": X.shape, "chunks": (50, 3), "dtype": "f8"}
    targets = [zarr.create_array(str(tmp_path / name), **options) for name in "xy"]
    tn.blockwise(lambda x: (x * 2, {"a": x}), X, out=(targets[0], {"a": targets[1]}))
    np.testing.assert_array_equal(targets[0][...], X * 2)
    np.testing.assert_array_equal(targets[1][...], X)


def test_dask_source_of_unknown_lengths_is_refused_with_a_remedy() -> None:
    dask = library("dask.array")
    x = dask.from_array(X, chunks=(60, 3))
    with pytest.raises(tn.errors.ShapeError, match=r"call its compute_chunk_sizes\(\) before"):
        tn.blockwise(standardize, x[x[:, 0] > 0])
    with pytest.raises(tn.errors.DTypeError, match="ndarray is not a Dask array"):
        tn.from_dask(X)
