"""`tn.blockwise(..., scheduler="dask")`: the bits of the run without Dask, on each scheduler.

Dask is a part of the extra `[integration]`: see `test_other_libraries.py`.
"""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.pytree import flatten
from tenfold.errors import RunError, UnsupportedError
from tenfold.out_of_core.dask_graph import DaskGraph
from tenfold.out_of_core.trace_plan import trace_plan

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).standard_normal((5000, 3))
SCALE = tn.asarray([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "map with a captured array": lambda x: tn.exp(x) * SCALE,
    "sum": lambda x: tn.sum(x * SCALE),
    "argmax": lambda x: tn.argmax(x, axis=0),
    "product": lambda x: x.T @ x,
    "standardised in two passes": lambda x: (x - tn.mean(x, axis=0)) / tn.std(x, axis=0),
    "rows and a fold": lambda x: {"rows": -x, "largest": tn.max(x)},
    "cumulative sum": lambda x: tn.cumulative_sum(x, axis=0),
    "difference of neighbours": lambda x: x[1:] - x[:-1],
    "traced function": tn.function(lambda x: tn.tanh(x) + SCALE),
}


def arrays_of(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dask_has_the_bits_of_threads(name: str) -> None:
    function = FUNCTIONS[name]
    expected = arrays_of(tn.blockwise(function, X, chunk=1024))
    for workers in (1, 2):
        made = tn.blockwise(function, X, chunk=1024, scheduler="dask")
        found = arrays_of(dask.compute(made, scheduler="threads", num_workers=workers)[0])
        assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]
        assert [x.shape for x in found] == [x.shape for x in expected]


def test_sources_are_read_by_tasks_or_made_by_others(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    stored = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(700, 2))
    for function in (
        FUNCTIONS["standardised in two passes"],
        FUNCTIONS["difference of neighbours"],
    ):
        expected = tn.blockwise(function, X, chunk=1024)
        for source in (mapped, stored, tn.asarray(X), da.from_array(X, chunks=(900, 2))):
            made = tn.blockwise(function, source, chunk=1024, scheduler="dask")
            assert np.asarray(made.compute()).tobytes() == np.asarray(expected).tobytes()
            if source is mapped or source is stored:
                assert len(pickle.dumps(made)) < 20_000


def test_chunks_are_arrays_and_follow_those_of_the_plan() -> None:
    made = tn.blockwise(lambda x: x[1:] * 2, X, chunk=1024, scheduler="dask")
    assert made.chunks == ((1024, 1024, 1024, 1024, 903), (3,))
    assert isinstance(made._meta, tn.Array)
    assert (made.sum() + 1).compute().item() == pytest.approx(X[1:].sum() * 2 + 1)


def test_a_pass_has_a_task_for_each_chunk_and_a_tree() -> None:
    function = FUNCTIONS["standardised in two passes"]
    chunks, passes = 1000, 2
    traced = trace_plan(function, [np.zeros((chunks, 3))], 0, chunk=1)
    tree, stages = 63 + 4 + 1, passes + 1  # of 16 partial results each
    assert len(DaskGraph(traced).tasks) == chunks * passes + tree + stages


def test_a_plan_is_pickled_as_its_graph() -> None:
    traced = trace_plan(FUNCTIONS["standardised in two passes"], [X], 0, 1024)
    plan = pickle.loads(pickle.dumps(traced.plan))
    assert [(p.folds, p.outputs) for p in plan.passes] == [
        (p.folds, p.outputs) for p in traced.plan.passes
    ]
    assert plan.passes[1].reads(3) == traced.plan.passes[1].reads(3)


class Failing:
    """A source whose rows cannot be read from 2,048 on."""

    shape, dtype, ndim = (4096,), np.dtype(float), 1

    def __getitem__(self, key: Any) -> Any:
        if key[0].stop > 2048:
            raise OSError("no such rows")
        return np.zeros(key[0].stop - key[0].start)


def test_error_of_a_chunk_names_its_rows() -> None:
    made = tn.blockwise(lambda x: x * 2, Failing(), chunk=1024, scheduler="dask")
    with pytest.raises(RunError, match=r"chunk [23] \(rows .* no such rows"):
        made.compute(scheduler="threads")


def test_error_of_a_chunk_names_the_line_of_the_function_in_another_process() -> None:
    matrices = np.broadcast_to(np.eye(2), (4096, 2, 2)).copy()
    matrices[3000] = 0
    made = tn.blockwise(lambda x: tn.linalg.inv(x), matrices, chunk=1024, scheduler="dask")
    with pytest.raises(
        RunError, match=r"chunk 2 \(rows 2048 to 3071\): .* inv: .*test_dask_blockwise"
    ):
        made.compute(scheduler="processes", num_workers=1)


def test_a_source_without_rows_is_computed_at_once() -> None:
    made = tn.blockwise(lambda x: (x * 2, tn.sum(x)), np.zeros((0, 3)), scheduler="dask")
    rows, total = dask.compute(*made)
    assert rows.shape == (0, 3)
    assert total.item() == 0


def test_plan_is_explained_before_anything_runs() -> None:
    text = tn.blockwise(lambda x: x - tn.mean(x), X, scheduler="dask", explain=True)
    assert text.startswith("blockwise: 2 passes over")


def test_out_is_refused_with_the_remedy() -> None:
    with pytest.raises(UnsupportedError, match="is stored when it is computed"):
        tn.blockwise(lambda x: x, X, out=np.zeros_like(X), scheduler="dask")


def test_chunks_of_a_killed_worker_are_computed_again() -> None:
    function = FUNCTIONS["standardised in two passes"]
    expected = tn.blockwise(function, X, chunk=256)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as workers,
        distributed.Client(workers) as client,
    ):
        held = client.persist(tn.blockwise(function, X, chunk=256, scheduler="dask"))
        distributed.wait(held)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert np.asarray(held.compute()).tobytes() == np.asarray(expected).tobytes()
