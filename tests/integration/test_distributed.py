"""distributed: Arrays on worker processes, which import Tenfold where they unpickle the first one.

It is a part of the extra `[integration]`: see `test_other_libraries.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).standard_normal((40, 30))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A client of two worker processes of two threads each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(2, threads_per_worker=2, dashboard_address=None) as workers,
            distributed.Client(workers) as client,
        ):
            yield client


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@tn.function
def kernel(block: tn.Array) -> tn.Array:
    return tn.exp(block) * 2 + tn.sin(block)


def values_held(dask_worker: Any) -> list[str]:
    return [repr(value) for value in dask_worker.data.values() if type(value).__name__ == "Array"]


def test_a_worker_needs_no_import_of_the_user(cluster: Any) -> None:
    assert not any(cluster.run(lambda: "tenfold" in sys.modules).values())
    found = cluster.submit(lambda x: x + 1, tn.asarray([1.0, 2.0])).result()
    assert found.tolist() == [2, 3]
    assert sum(cluster.run(lambda: "tenfold" in sys.modules).values()) == 1


def test_workers_hold_computed_values(cluster: Any) -> None:
    chunks = tn.to_dask(X, chunks=(10, 30)).map_blocks(lambda block: tn.exp(block) * 2)
    held = cluster.persist(chunks)
    distributed.wait(held)
    shown = [text for texts in cluster.run(values_held).values() for text in texts]
    assert len(shown) >= 4
    assert not any("pending" in text for text in shown)
    np.testing.assert_allclose(np.asarray(held.compute()), np.exp(X) * 2)


def test_a_task_has_its_share_of_the_threads_of_the_worker(cluster: Any) -> None:
    def threads(block: Any) -> Any:
        from tenfold import settings

        return np.array([settings.get("threads")])

    counts = tn.to_dask(X, chunks=(10, 30)).map_blocks(threads, chunks=((1,) * 4,), drop_axis=1)
    assert counts.compute().tolist() == [1, 1, 1, 1]


def test_functions_arrive_by_value(cluster: Any) -> None:
    scale = tn.asarray(3.0)
    local = tn.function(lambda block: tn.tanh(block) * scale)
    chunks = tn.to_dask(X, chunks=(10, 30))
    found = [chunks.map_blocks(f).compute() for f in (local, lambda b: kernel(b))]
    np.testing.assert_allclose(np.asarray(found[0]), np.tanh(X) * 3)
    np.testing.assert_allclose(np.asarray(found[1]), np.exp(X) * 2 + np.sin(X))


def test_error_of_a_chunk_arrives_with_its_remedy(cluster: Any) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        cluster.submit(lambda n: tn.linalg.inv(tn.zeros((n, n))), 2).result()


def test_a_pending_sum_is_small_on_the_wire() -> None:
    from distributed.protocol import serialize

    x = tn.ones(10**6).wait()
    _, frames = serialize(tn.sum(x * 2))
    assert sum(memoryview(frame).nbytes for frame in frames) < 1024


def test_chunks_of_a_killed_worker_are_computed_again(cluster: Any) -> None:
    chunks = tn.to_dask(da.from_array(X, chunks=(4, 30))).map_blocks(lambda b: tn.exp(b) * 2)
    held = cluster.persist(chunks)
    distributed.wait(held)
    held_by = cluster.who_has()
    process_ids = cluster.run(os.getpid)
    victim = max(process_ids, key=lambda worker: sum(worker in held for held in held_by.values()))
    os.kill(process_ids[victim], signal.SIGKILL)
    np.testing.assert_allclose(np.asarray(held.sum(axis=0).compute()), (np.exp(X) * 2).sum(axis=0))
