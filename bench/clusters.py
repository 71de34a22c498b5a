"""Dask with Tenfold chunks beside Dask with NumPy chunks: time, memory, tasks.

Run: python bench/clusters.py [--quick] [--only ROW] [--kind KIND] [--chunks N]. It needs
`dask[array]` and `distributed`. Each measurement is a process of its own; of the turns, taken one
after the other, the medians are printed. Peak is the anonymous memory (RssAnon) of the process and
its children above that at the start, sampled at 100 Hz. Scheduler time is processor time of the
process that has client and scheduler.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = str(Path(__file__).resolve().parent)
sys.path.insert(0, FOLDER)
from value_checks import Comparison, smoke_wanted  # noqa: E402  # in the folder

sys.path[:] = [place for place in sys.path if place != FOLDER]  # Dask would import `sparse` there

import tenfold as tn  # noqa: E402  # after the paths

SMOKE = smoke_wanted()
parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
parser.add_argument("--only", help="a row: threads, cluster, chunks or made")
parser.add_argument("--kind", help="numpy, tenfold or blockwise")
parser.add_argument("--chunks", type=int, help="how many chunks the row `chunks` has")
parser.add_argument("--measure", nargs=3, help="of one process: the row, the kind, a file")
OPTIONS = parser.parse_args()
QUICK = OPTIONS.quick or SMOKE
ROWS, COLUMNS, CHUNK_ROWS = (40_000, 128, 2_500) if QUICK else (640_000, 128, 10_000)
CHUNKS = OPTIONS.chunks or (2_000 if QUICK else 100_000)
MADE_BYTES = 10**9 if QUICK else 10**10
TURNS = 3
WORKERS = 2


class Made:
    """A source whose rows are made when they are read: the numbers of its rows."""

    dtype, ndim = np.dtype(float), 2

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = (rows, columns)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows = key[0] if isinstance(key, tuple) else key
        begin, end, _ = rows.indices(self.shape[0])
        made = np.empty((end - begin, self.shape[1]))
        made[...] = np.arange(begin, end)[:, None] % 1000 / 1000
        return made


def formula(y: Any) -> Any:
    """Return eight operations on elements, of a Dask array or an Array."""
    return np.sqrt(np.exp(-y * y) * 2 + y * y + 1) - abs(y)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[tn.Array], tn.Array]]] = {
    "standardised": (
        lambda x: formula((x - x.mean()) / x.std()).sum(axis=1),
        lambda x: tn.sum(formula((x - tn.mean(x)) / tn.std(x)), axis=1),
    ),
    "one pass": (lambda x: formula(x).sum(axis=1), lambda x: tn.sum(formula(x), axis=1)),
    "total": (
        lambda x: formula((x - x.mean()) / x.std()).sum(),
        lambda x: tn.sum(formula((x - tn.mean(x)) / tn.std(x))),
    ),
    "plain sum": (lambda x: (x * 2 + 1).sum(), lambda x: tn.sum(x * 2 + 1)),
}
"""The computations, of a Dask array and of an Array."""


def of(kind: str, source: Any, chunk_rows: int, name: str) -> Any:
    """Return the Dask array of a row: of NumPy chunks, of Tenfold chunks, or of tn.blockwise."""
    import dask.array as da

    of_dask, of_array = FUNCTIONS[name]
    if kind == "blockwise":
        return tn.blockwise(of_array, source, chunk=chunk_rows, scheduler="dask")
    chunks = da.from_array(source, chunks=(chunk_rows, -1), asarray=False)
    return of_dask(tn.to_dask(chunks) if kind == "tenfold" else chunks)


def anonymous_bytes(processes: Sequence[int]) -> int:
    """Return the anonymous memory of processes."""
    total = 0
    for process in processes:
        try:
            status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        except OSError:
            continue
        total += sum(int(x.split()[1]) for x in status.splitlines() if x.startswith("RssAnon"))
    return total << 10


def measured(run: Callable[[], Any]) -> dict[str, Any]:
    """Run once; return seconds, peak, and values."""
    import psutil

    this = psutil.Process()
    processes = [this.pid, *[child.pid for child in this.children(recursive=True)]]
    start, peak, is_done = anonymous_bytes(processes), [0], threading.Event()

    def sample() -> None:
        while not is_done.wait(0.01):
            peak[0] = max(peak[0], anonymous_bytes(processes))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        result = timed(run)
    finally:
        is_done.set()
        sampler.join()
    return {**result, "peak": max(peak[0] - start, 0)}


def timed(run: Callable[[], Any]) -> dict[str, Any]:
    """Run once; return seconds of the clock and of this process, and values."""
    begin, processor = time.perf_counter(), time.process_time()
    value = np.asarray(run())
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    shown = np.ravel(value)[:: max(value.size // 1000, 1)].tolist()
    return {"seconds": seconds, "peak": 0, "scheduler": processor, "values": shown}


def threads(kind: str, path: str) -> dict[str, Any]:
    """Measure the scheduler of threads, in a process that has computed nothing."""
    source = tn.interop.dask.MappedFile.of(np.load(path, mmap_mode="r"))
    x = of(kind, source, CHUNK_ROWS, "standardised")
    return measured(lambda: x.compute(scheduler="threads", num_workers=WORKERS))


def cluster(kind: str, path: str) -> dict[str, Any]:
    """Measure a cluster of processes of one thread each; the second run."""
    source = tn.interop.dask.MappedFile.of(np.load(path, mmap_mode="r"))
    make = partial(of, kind, source, CHUNK_ROWS, "one pass")
    return on_cluster(make, make)


def on_cluster(
    make: Callable[[], Any],
    warm: Callable[[], Any],
    measure: Callable[[Callable[[], Any]], dict[str, Any]] = measured,
) -> dict[str, Any]:
    """Measure a computation on a cluster of worker processes, after another one."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(WORKERS, threads_per_worker=1, dashboard_address=None) as workers,
        Client(workers),
    ):
        warm().compute()
        return measure(lambda: make().compute())


def chunks(kind: str, _: str) -> dict[str, Any]:
    """Measure many chunks of a source that costs nothing; without samples, which take time too."""
    import dask

    few, source = Made(100, 2), Made(CHUNKS * 2, 2)
    make = partial(of, kind, source, 2, "plain sum")
    result = on_cluster(make, partial(of, kind, few, 2, "plain sum"), timed)
    (graph,) = dask.optimize(make())
    tasks = dict(graph.__dask_graph__())
    return {**result, "graph": len(pickle.dumps(tasks)), "tasks": len(tasks)}


def made(kind: str, _: str) -> dict[str, Any]:
    """Measure the memory of a source that is made on the fly, on threads."""
    source = Made(MADE_BYTES // (8 * COLUMNS), COLUMNS)
    x = of(kind, source, CHUNK_ROWS, "total")
    return measured(lambda: x.compute(scheduler="threads", num_workers=WORKERS))


MEASUREMENTS = {"threads": threads, "cluster": cluster, "chunks": chunks, "made": made}
KINDS = ("numpy", "tenfold", "blockwise")


def in_process(name: str, kind: str, path: str) -> dict[str, Any]:
    """Return the result of a measurement, from a process of its own."""
    options = [*["--quick"] * QUICK, "--chunks", str(CHUNKS)]
    command = [sys.executable, __file__, *options, "--measure", name, kind, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}, {kind}: {done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Print a table, or compare values."""
    if not find_spec("distributed") or not find_spec("dask.array"):
        print("Dask is not installed; nothing is measured")
        return
    if OPTIONS.measure:
        name, kind, path = OPTIONS.measure
        warnings.simplefilter("ignore")
        print(json.dumps(MEASUREMENTS[name](kind, path)))
        return
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.npy"
        x = np.lib.format.open_memmap(path, "w+", float, (ROWS, COLUMNS))
        for begin in range(0, ROWS, CHUNK_ROWS):
            part = np.random.default_rng(begin).standard_normal((CHUNK_ROWS, COLUMNS))
            x[begin : begin + CHUNK_ROWS] = part
        del x
        print(f"{'':22s} {'s':>7s} {'peak MiB':>9s} {'scheduler s':>12s} {'us/task':>8s} tasks")
        for name in MEASUREMENTS:
            if OPTIONS.only not in (None, name):
                continue
            expected: dict[str, Any] = {}
            for kind in [kind for kind in KINDS if OPTIONS.kind in (None, kind)]:
                turns = TURNS if name in ("threads", "cluster") and not SMOKE else 1
                results = [in_process(name, kind, path) for _ in range(turns)]
                expected = expected or results[0]
                comparison.values(f"{name}, {kind}", results[0]["values"], expected["values"])
                seconds, peak = (
                    statistics.median(r[field] for r in results) for field in ("seconds", "peak")
                )
                last, tasks = results[-1], results[-1].get("tasks", 0)
                row = f"{seconds:7.2f} {peak / 2**20:9.0f} {last.get('scheduler', 0):12.2f} "
                row += f"{last['scheduler'] / tasks * 1e6:8.0f} {tasks}" if tasks else ""
                row += f" ({last['graph'] / tasks:.0f} bytes each)" if tasks else ""
                print(f"{name + ', ' + kind:22s} {row if not SMOKE else ''}", flush=True)
    if SMOKE:
        comparison.end()


if __name__ == "__main__":
    main()
