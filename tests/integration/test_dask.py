"""Dask: Arrays as chunks, on its schedulers of threads and processes.

Dask is a part of the extra `[integration]`: see `test_other_libraries.py`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import settings
from tenfold.errors import FallbackWarning, UnsupportedError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.standard_normal((2, 12, 10))
N = RANDOM.integers(0, 5, (12, 10))
B = X[:10] + 20 * np.eye(10)


@pytest.fixture(autouse=True)
def no_fallback() -> Iterator[None]:
    """Warnings of the libraries' own are theirs; a fallback of ours is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FallbackWarning)
        yield


def sum_of_blocks(block: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(block, axis=axis, keepdims=keepdims)


OPERATIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda x, y, n, b: x + y,
    "negative": lambda x, y, n, b: -x,
    "power": lambda x, y, n, b: x**2,
    "remainder": lambda x, y, n, b: x % y,
    "floor_divide": lambda x, y, n, b: x // y,
    "matmul": lambda x, y, n, b: x.T @ y,
    "dot": lambda x, y, n, b: da.dot(x.T, y),
    "vdot": lambda x, y, n, b: da.vdot(x, y),
    "outer": lambda x, y, n, b: da.outer(x[:, 0], y[:, 0]),
    "tensordot": lambda x, y, n, b: da.tensordot(x, y, axes=((0, 1), (0, 1))),
    "einsum": lambda x, y, n, b: da.einsum("ij,ik->jk", x, y),
    "exp": lambda x, y, n, b: da.exp(x),
    "arctan2": lambda x, y, n, b: da.arctan2(x, y),
    "logaddexp": lambda x, y, n, b: da.logaddexp(x, y),
    "hypot of numpy": lambda x, y, n, b: np.hypot(x, y),
    "isnan": lambda x, y, n, b: da.isnan(x),
    "isclose": lambda x, y, n, b: da.isclose(x, y),
    "round": lambda x, y, n, b: da.round(x, 2),
    "clip": lambda x, y, n, b: da.clip(x, -1, 1),
    "where": lambda x, y, n, b: da.where(x > 0, x, y),
    "choose": lambda x, y, n, b: da.choose(n % 2, [x, y]),
    "select": lambda x, y, n, b: da.select([x > 1, x < -1], [x, y], 0),
    "piecewise": lambda x, y, n, b: da.piecewise(x, [x > 0], [abs, np.negative]),
    "astype": lambda x, y, n, b: x.astype("float32"),
    "imag": lambda x, y, n, b: (x + 1j * y).imag,
    "left_shift": lambda x, y, n, b: n << 1,
    "sum": lambda x, y, n, b: x.sum(),
    "sum of rows": lambda x, y, n, b: x.sum(axis=1),
    "mean": lambda x, y, n, b: x.mean(axis=1),
    "std": lambda x, y, n, b: x.std(),
    "var": lambda x, y, n, b: x.var(axis=0, ddof=1),
    "moment": lambda x, y, n, b: x.moment(3),
    "max": lambda x, y, n, b: x.max(axis=1),
    "min": lambda x, y, n, b: x.min(),
    "prod": lambda x, y, n, b: x.prod(),
    "any": lambda x, y, n, b: (x > 0).any(axis=0),
    "all": lambda x, y, n, b: (x > 0).all(),
    "argmax": lambda x, y, n, b: x.argmax(axis=0),
    "argmin": lambda x, y, n, b: da.argmin(x, axis=1),
    "nansum": lambda x, y, n, b: da.nansum(da.where(x > 0, x, np.nan)),
    "nanmean": lambda x, y, n, b: da.nanmean(da.where(x > 0, x, np.nan), axis=0),
    "nanmax": lambda x, y, n, b: da.nanmax(da.where(x > 0, x, np.nan), axis=0),
    "count_nonzero": lambda x, y, n, b: da.count_nonzero(n, axis=0),
    "nonzero": lambda x, y, n, b: da.nonzero(n)[0],
    "ptp": lambda x, y, n, b: da.ptp(x, axis=0),
    "average": lambda x, y, n, b: da.average(x, axis=0, weights=abs(y)),
    "cov": lambda x, y, n, b: da.cov(x),
    "corrcoef": lambda x, y, n, b: da.corrcoef(x),
    "cumsum": lambda x, y, n, b: x.cumsum(axis=0),
    "cumprod": lambda x, y, n, b: x.cumprod(axis=1),
    "diff": lambda x, y, n, b: da.diff(x, axis=0),
    "gradient": lambda x, y, n, b: da.gradient(x, axis=0),
    "bincount": lambda x, y, n, b: da.bincount(n.ravel(), minlength=5),
    "histogram": lambda x, y, n, b: da.histogram(x, bins=5, range=(-3, 3))[0],
    "digitize": lambda x, y, n, b: da.digitize(x, np.array([-1, 0, 1])),
    "isin": lambda x, y, n, b: da.isin(n, [1, 2]),
    "percentile": lambda x, y, n, b: da.percentile(x.ravel(), [25, 50]),
    "median": lambda x, y, n, b: da.median(x, axis=0),
    "quantile": lambda x, y, n, b: da.quantile(x, 0.3, axis=0),
    "topk": lambda x, y, n, b: da.topk(x, 3, axis=0),
    "argtopk": lambda x, y, n, b: da.argtopk(x, 3, axis=0),
    "concatenate": lambda x, y, n, b: da.concatenate([x, y], axis=0),
    "concatenate of numpy": lambda x, y, n, b: np.concatenate([x, y]),
    "stack": lambda x, y, n, b: da.stack([x, y]),
    "block": lambda x, y, n, b: da.block([[x, y], [y, x]]),
    "transpose": lambda x, y, n, b: x.T,
    "ravel": lambda x, y, n, b: x.ravel(),
    "moveaxis": lambda x, y, n, b: da.moveaxis(x, 0, 1),
    "expand_dims": lambda x, y, n, b: da.expand_dims(x, 1),
    "squeeze": lambda x, y, n, b: x[:1].squeeze(),
    "roll": lambda x, y, n, b: da.roll(x, 3, axis=0),
    "flip": lambda x, y, n, b: da.flip(x, 0),
    "rot90": lambda x, y, n, b: da.rot90(x),
    "repeat": lambda x, y, n, b: da.repeat(x, 2, axis=0),
    "tile": lambda x, y, n, b: da.tile(x, (2, 1)),
    "pad": lambda x, y, n, b: da.pad(x, 1, mode="reflect"),
    "insert": lambda x, y, n, b: da.insert(x, 2, 0, axis=0),
    "delete": lambda x, y, n, b: da.delete(x, [1, 2], axis=0),
    "broadcast_to": lambda x, y, n, b: da.broadcast_to(x, (3, 12, 10)),
    "slices": lambda x, y, n, b: x[1:9:2, ::-1],
    "index": lambda x, y, n, b: x[[0, 5, 3]],
    "mask": lambda x, y, n, b: x[x > 0],
    "vindex": lambda x, y, n, b: x.vindex[[0, 1], [2, 3]],
    "take": lambda x, y, n, b: da.take(x, [1, 2, 0], axis=1),
    "compress": lambda x, y, n, b: da.compress([True, False] * 6, x, axis=0),
    "tril": lambda x, y, n, b: da.tril(x),
    "trace": lambda x, y, n, b: da.trace(x),
    "rechunk": lambda x, y, n, b: x.rechunk((12, 3)),
    "coarsen": lambda x, y, n, b: da.coarsen(np.sum, x, {0: 2, 1: 5}),
    "map_blocks": lambda x, y, n, b: x.map_blocks(lambda block: block + 1),
    "map_overlap": lambda x, y, n, b: x.map_overlap(abs, depth=1, boundary="reflect"),
    "reduction": lambda x, y, n, b: da.reduction(x, sum_of_blocks, sum_of_blocks, dtype=float),
    "apply_along_axis": lambda x, y, n, b: da.apply_along_axis(np.sum, 0, x),
    "apply_gufunc": lambda x, y, n, b: da.apply_gufunc(
        lambda a: a.sum(-1), "(i)->()", x.rechunk((4, 10))
    ),
    "sliding_window_view": lambda x, y, n, b: da.lib.stride_tricks.sliding_window_view(
        x, 3, axis=0
    ).sum(-1),
    "norm": lambda x, y, n, b: da.linalg.norm(x),
    "qr": lambda x, y, n, b: abs(da.linalg.qr(x.rechunk((6, 10)))[1]),
    "svd": lambda x, y, n, b: da.linalg.svd(x.rechunk((6, 10)))[1],
    "solve": lambda x, y, n, b: da.linalg.solve(b, b[:, :5]),
    "cholesky": lambda x, y, n, b: da.linalg.cholesky(b.T @ b),
    "inv": lambda x, y, n, b: da.linalg.inv(b),
    "lu": lambda x, y, n, b: da.linalg.lu(b)[2],
    "fft": lambda x, y, n, b: da.fft.fft(x.rechunk((12, 5)), axis=0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_of_dask_has_the_values_of_ndarray_chunks(name: str) -> None:
    operation = OPERATIONS[name]
    of_ndarrays = [da.from_array(a, chunks=5 if a is B else (4, 5)) for a in (X, Y, N, B)]
    expected = np.asarray(operation(*of_ndarrays).compute())
    found = np.asarray(operation(*map(tn.to_dask, of_ndarrays)).compute())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_chunks_are_computed_where_their_task_ends() -> None:
    source = np.arange(6.0).view()
    source.flags.writeable = False
    for scheduler in ("sync", "threads"):
        chunks = tn.to_dask(source, chunks=3) * 2
        held = dask.persist(chunks, {"sum": chunks.sum()}, scheduler=scheduler)[0]
        assert [repr(value)[:6] for value in held.dask.values()] == ["Array(", "Array("]


def test_a_reduction_of_several_arrays_is_computed_where_its_task_ends() -> None:
    x = tn.ones(4).wait()
    task = dask.delayed(lambda: {"total": tn.sum(x), "squares": tn.sum(x * x), "name": "x"})()
    result = task.compute()
    assert {name: repr(value)[:5] for name, value in result.items()} == {
        "total": "Array",
        "squares": "Array",
        "name": "'x'",
    }


def test_error_of_a_chunk_is_raised_by_its_task() -> None:
    singular = tn.to_dask(np.zeros((2, 2)), chunks=2).map_blocks(tn.linalg.inv, dtype=float)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        dask.persist(singular, scheduler="threads")


def test_tasks_beside_others_have_one_thread_each_unless_the_user_says() -> None:
    tasks = [dask.delayed(lambda _: settings.get("threads"))(i) for i in range(4)]
    assert dask.compute(*tasks, scheduler="threads") == (1, 1, 1, 1)
    counts = dask.compute(*tasks, scheduler="processes", num_workers=1, chunksize=4)
    assert sorted(counts)[:3] == [1, 1, 1]  # one task, the first, imports Tenfold
    assert set(dask.compute(*tasks, scheduler="sync")) == {settings.get("threads")}
    default = settings._process["threads"]
    try:
        tn.set_options(threads=3)
        assert dask.compute(*tasks, scheduler="threads") == (3, 3, 3, 3)
    finally:
        settings._process["threads"] = default
        settings._publish()


def test_processes_compute_what_threads_compute() -> None:
    chunks = tn.to_dask(da.from_array(X, chunks=(4, 5)))
    scale = tn.asarray(3.0)
    scaled = chunks.map_blocks(tn.function(lambda block: tn.tanh(block) * scale)).mean(axis=0)
    found = [scaled.compute(scheduler=name, num_workers=2) for name in ("threads", "processes")]
    tn.testing.assert_equal_bits(*found)
    np.testing.assert_allclose(np.asarray(found[0]), (np.tanh(X) * 3).mean(axis=0))


def test_sizes_are_those_of_the_values() -> None:
    from dask.sizeof import sizeof

    x = tn.ones((30, 40), dtype="float32").wait()
    assert sizeof(x) == sizeof(x + 1) == 4800
    assert sizeof(tn.diagonal_matrix(tn.ones(100))) == 800


def test_tokens_are_equal_for_equal_values() -> None:
    from dask.base import tokenize

    x = tn.asarray([1.0, 2.0])
    assert tokenize(x) == tokenize(tn.asarray([1.0, 2.0])) == tokenize(x * 2 / 2)
    different = [x, x + 1, tn.astype(x, tn.float32), x.reshape((2, 1)), tn.diagonal_matrix(x)]
    assert len({tokenize(a) for a in different}) == 5
    half = tn.astype(x, tn.bfloat16)
    assert tokenize(half) == tokenize(half + 0)


def test_to_dask_cuts_arrays_without_copying() -> None:
    x = tn.arange(10.0)
    chunked = tn.to_dask(x, chunks=4)
    assert chunked.chunks == ((4, 4, 2),)
    assert isinstance(chunked._meta, tn.Array)
    parts = [np.asarray(chunked.blocks[i].compute()) for i in range(3)]
    assert all(np.shares_memory(part, np.asarray(x)) for part in parts)
    assert tn.from_dask(chunked).tolist() == x.tolist()


def test_to_dask_takes_what_dask_takes(tmp_path: Any) -> None:
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=(5, 4), dtype=X.dtype)
    stored[...] = X
    swapped = X.astype(">f8")
    for source in (X, stored, swapped, da.from_array(X, chunks=6), tn.asarray(X)):
        assert np.array_equal(np.asarray(tn.from_dask(tn.to_dask(source))), X)
    assert tn.to_dask(stored, chunks=stored.chunks).chunks == ((5, 5, 2), (4, 4, 2))
    assert tn.to_dask(da.from_array(X, chunks=6), chunks=3).chunks == ((6, 6), (6, 4))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_is_mapped_by_each_process(order: Any, tmp_path: Any) -> None:
    x = np.asarray(np.arange(60_000.0).reshape(300, 200), order=order)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    chunked = tn.to_dask(mapped, chunks=100)
    assert len(pickle.dumps(chunked)) < 10_000
    assert np.array_equal(np.asarray(tn.from_dask(chunked)), x)
    assert np.array_equal(np.asarray(tn.from_dask(tn.to_dask(mapped[1:], chunks=100))), x[1:])
    total = chunked.sum().compute(scheduler="processes", num_workers=1)
    assert total.item() == x.sum()


def test_from_dask_shares_no_memory_that_the_user_may_write_to() -> None:
    mine = np.zeros(3)
    x = tn.from_dask(da.from_array(mine, chunks=3))
    mine[0] = 1
    assert x.tolist() == [0, 0, 0]


def test_to_dask_without_dask_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.array", None)
    for convert in (tn.to_dask, tn.from_dask):
        with pytest.raises(UnsupportedError, match="Dask is not installed"):
            convert(X)


@pytest.mark.parametrize("order", ["tenfold, dask.array", "dask.array, tenfold"])
def test_registration_does_not_depend_on_the_order_of_imports(order: str) -> None:
    program = f"""import {order}
import dask.sizeof, numpy as np
chunked = dask.array.from_array(np.ones(4), chunks=2).map_blocks(tenfold.asarray)
held = (chunked * 2).persist(scheduler="threads")
print(any("pending" in repr(v) for v in held.dask.values()), dask.sizeof.sizeof(tenfold.ones(9)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "72"], done.stderr


def test_import_of_dask_imports_no_tenfold() -> None:
    program = "import dask.array, sys; print('tenfold' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr
