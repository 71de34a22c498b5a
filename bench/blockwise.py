"""Arrays larger than memory: `tn.blockwise` and assignment by parts, beside `dask.array`.

Run: python bench/blockwise.py [--folder FOLDER] (Dask is the peer, zarr the format of one row; each
is left out where it is not installed). The array is float64 of 1,600,000 x 100, 1.28 GB, in a file
that is in the page cache; both sides have 2 workers, Dask chunks of 80 MB, as its documents advise.
A row is measured by turns, `ROUNDS` times: the best time, and the peak of the process and its
children above the start: RssAnon, sampled at 100 Hz.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROUNDS, WORKERS = 3, 2
SHAPE = (1_600_000, 100)
PEER_ROWS = 100_000
SOURCE_ROWS = 16_384
"""The rows of a chunk of the zarr array."""
SAMPLE_SECONDS = 0.01
Row = tuple[str, Callable[[], Any], Callable[[], Any] | None]


def anonymous_bytes() -> int:
    """RssAnon of this process and of its children, in bytes."""
    return sum(map(_anonymous_bytes, [Path("/proc/self"), *_children()]))


def _children() -> list[Path]:
    try:
        numbers = Path("/proc/self/task").glob("*/children")
        return [Path("/proc") / n for path in numbers for n in path.read_text().split()]
    except OSError:
        return []


def _anonymous_bytes(folder: Path) -> int:
    try:
        lines = (folder / "status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of a call, and its peak in MiB above the start."""
    start, most, ended = anonymous_bytes(), [0], threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            most[0] = max(most[0], anonymous_bytes() - start)

    sampler = threading.Thread(target=sample)
    sampler.start()
    begin = time.perf_counter()
    work()
    seconds = time.perf_counter() - begin
    ended.set()
    sampler.join()
    return seconds, most[0] / 2**20


def standardized(x: Any, module: Any) -> Any:
    """(x - mean) / std, eight operations, and the sum of each row."""
    y = (x - x.mean(axis=0)) / x.std(axis=0)
    y = module.sqrt(module.abs(y) * 0.5 + 1) - 0.25
    return module.tanh(y * y + y).sum(axis=1)


class Generated:
    """An array that is made when it is read: 10 GB without a file."""

    dtype = np.dtype("float64")

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = (rows, columns)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows = np.arange(*key[0].indices(self.shape[0]), dtype=np.float64)
        return rows[:, None] + np.arange(self.shape[1])


def rows_of(folder: Path, shape: tuple[int, int], peer: Any) -> list[Row]:
    """Make the files, and return the rows: Tenfold, and the peer."""
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float64, shape)
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, shape)
    random = np.random.default_rng(0)
    for begin in range(0, len(x), PEER_ROWS):
        part = x[begin : begin + PEER_ROWS]
        part[...] = np.round(random.normal(size=part.shape), 2)
        y[begin : begin + PEER_ROWS] = 0
    x = np.load(folder / "x.npy", mmap_mode="r")  # what can be written to is copied
    window = tn.wrap(y)

    def assign() -> None:
        window[...] = tn.tanh(tn.asarray(x)) * 2

    def store() -> None:
        chunks = peer.from_array(x, chunks=(PEER_ROWS, shape[1]))
        peer.store(peer.tanh(chunks) * 2, y, lock=False, scheduler="threads", num_workers=WORKERS)

    def blockwise(function: Callable[[Any], Any], source: Any, **options: Any) -> Any:
        return lambda: tn.blockwise(function, source, workers=WORKERS, **options)

    def blocks(make: Callable[[], Any]) -> Callable[[], Any] | None:
        if peer is None:
            return None
        return lambda: standardized(make(), peer).compute(scheduler="threads", num_workers=WORKERS)

    rows: list[Row] = [
        (
            "standardized, npy",
            blockwise(lambda x: standardized(x, tn), x),
            blocks(lambda: peer.from_array(x, chunks=(PEER_ROWS, shape[1]))),
        ),
        ("out=memmap", blockwise(lambda x: tn.tanh(x) * 2, x, out=y), store if peer else None),
        ("tn.wrap(memmap)[...] =", assign, store if peer else None),
    ]
    zarr = imported("zarr")
    if zarr is not None:
        path = str(folder / "x.zarr")
        z = zarr.create_array(path, shape=shape, chunks=(SOURCE_ROWS, shape[1]), dtype="f8")
        for begin in range(0, len(x), SOURCE_ROWS):
            z[begin : begin + SOURCE_ROWS] = x[begin : begin + SOURCE_ROWS]
        own = blockwise(lambda x: standardized(x, tn), z)
        rows.insert(1, ("standardized, zarr", own, blocks(lambda: peer.from_zarr(path))))
    return rows


def imported(name: str) -> Any:
    """Return a library, or None where it is not installed."""
    sys.modules.setdefault("sparse", None)  # type: ignore[arg-type]  # Dask would find ours
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed; its rows are left out")
        return None


def compare() -> None:
    """Compare the values of every row with those of NumPy."""
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(Path(folder), (20_000, 10), None)
        x = np.load(Path(folder) / "x.npy", mmap_mode="r")
        y = np.load(Path(folder) / "y.npy", mmap_mode="r")
        for name, own, _ in rows:
            result = own()
            if name.startswith("standardized"):
                comparison.values(name, np.asarray(result), standardized(np.asarray(x), np))
            else:
                comparison.values(name, np.asarray(y), np.tanh(x) * 2)
    generated = tn.blockwise(lambda x: tn.sum(x, axis=0), Generated(10_000, 3))
    comparison.values("generated", np.asarray(generated), 49_995_000 + 10_000 * np.arange(3.0))
    comparison.end()


def main() -> None:
    """Print a table, or compare values."""
    if smoke_wanted():
        compare()
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the files are made: 4 GB are needed")
    parser.add_argument("--only", default="", help="the rows whose names begin so")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"{'':24s} {'tenfold':>16s} {'dask.array':>16s}  ratio")
        for name, *sides in rows_of(Path(folder), SHAPE, imported("dask.array")):
            if name.startswith(options.only):
                print_row(name, [side for side in sides if side is not None])
    source = Generated(12_500_000, 100)
    if "generated".startswith(options.only):
        print_row(
            "generated, 10 GB",
            [lambda: tn.blockwise(lambda x: tn.sum(x, axis=0), source, workers=WORKERS)],
            rounds=1,
        )


def print_row(name: str, sides: list[Callable[[], Any]], rounds: int = ROUNDS) -> None:
    """Measure a row by turns, and print it."""
    results: list[list[tuple[float, float]]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, measurements in zip(sides, results, strict=True):
            measurements.append(measured(side))
    best = [min(seconds for seconds, _ in side) for side in results]
    peaks = [max(peak for _, peak in side) for side in results]
    cells = [f"{s:7.3f} s {p:4.0f} MiB" for s, p in zip(best, peaks, strict=True)]
    ratio = f"{best[0] / best[1]:6.2f}" if len(best) > 1 else ""
    print(f"{name:24s} {'  '.join(cells)} {ratio}")


if __name__ == "__main__":
    main()
