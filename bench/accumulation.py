"""Sums and products of matrices beside the bare product by NumPy, and beside NumPy as written.

Run: python bench/accumulation.py [threads]. float32 and float64; medians in microseconds, taken by
turns, one run. Ratios to the bare product are what everything but its multiply-adds costs; the
processor may be shared, so only ratios mean something.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits
from value_checks import Comparison, smoke_wanted

import tenfold as tn

SHAPES = [(512, 512, 512), (64, 1024, 1024), (1024, 1024, 1024)]
Work = Callable[[], object]
Row = tuple[str, list[Work]]
"""Its name, and what is run: the bare product, NumPy as written, ours, and our product alone."""


def medians(works: list[Work], least: float = 1.0) -> list[float]:
    """Return the median time of each, run by turns for so many seconds at least."""
    times: list[list[float]] = [[] for _ in works]
    end = time.perf_counter() + least
    while len(times[0]) < 9 or time.perf_counter() < end:
        for found, work in zip(times, works, strict=True):
            begun = time.perf_counter()
            work()
            found.append(time.perf_counter() - begun)
    return [1e6 * statistics.median(found[2:]) for found in times]


def shown(name: str, works: list[Work]) -> None:
    """Print a row: what NumPy takes for the bare product and as written, and what we take."""
    alone, plain, lazy, product = works
    bare, ours, own = medians([alone, lazy, product])
    (written,) = medians([plain], 0.3)  # by itself: it leaves another cache behind
    print(
        f"{name:34}{bare:10.0f}{written:10.0f}{ours:10.0f}{own:10.0f}"
        f"{ours / bare:9.2f}{ours / own:9.2f}{written / ours:9.2f}"
    )


def rows(m: int, k: int, n: int, dtype: str) -> Iterator[Row]:
    """Yield the rows of one shape."""
    random = np.random.default_rng(0)
    x, w, b, c = (
        random.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (n,), (m, n))
    )
    a = np.ascontiguousarray(x.T)
    tx, tw, tb, tc, ta = map(tn.asarray, (x, w, b, c, a))
    out = np.empty((m, n), dtype)
    name = f"{m}x{k}x{n} {dtype} "

    def bare() -> object:
        return np.matmul(x, w, out=out)

    def own() -> object:
        return (tx @ tw).wait()

    target, ours = c.copy(), tn.asarray(c)

    def grow() -> object:
        nonlocal target
        target += 2 * (x @ w)
        return target

    def grow_ours() -> object:
        nonlocal ours
        ours += 2 * (tx @ tw)
        return ours.wait()

    for title, plain, lazy in (
        ("relu(x@w+b)", lambda: np.maximum(x @ w + b, 0), lambda: tn.maximum(tx @ tw + tb, 0)),
        ("x@w+c", lambda: x @ w + c, lambda: tx @ tw + tc),
        ("a.T@(2*w)", lambda: a.T @ (2 * w), lambda: ta.T @ (2 * tw)),
    ):
        yield name + title, [bare, plain, lambda lazy=lazy: lazy().wait(), own]
    yield f"{name}y+=2*x@w", [bare, grow, grow_ours, own]


def chains(dtype: str) -> Iterator[Row]:
    """Yield the rows of chains, beside the products in the best order."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((512, 512)).astype(dtype) for _ in range(2))
    u = random.standard_normal(512).astype(dtype)
    r, s = (random.standard_normal(shape).astype(dtype) for shape in ((1000, 10), (10, 1000)))
    ta, tb, tu, tr, ts = map(tn.asarray, (a, b, u, r, s))
    for title, best, plain, lazy, own in (
        (
            "A@B@u",
            lambda: a @ (b @ u),
            lambda: a @ b @ u,
            lambda: ta @ tb @ tu,
            lambda: ta @ (tb @ tu),
        ),
        (
            "(1000,10)(10,1000)(1000,10)",
            lambda: r @ (s @ r),
            lambda: r @ s @ r,
            lambda: tr @ ts @ tr,
            lambda: tr @ (ts @ tr),
        ),
    ):
        works = [best, plain, lambda lazy=lazy: lazy().wait(), lambda own=own: own().wait()]
        yield f"{title} {dtype}", works


def compare(comparison: Comparison, name: str, works: list[Work]) -> None:
    """Compare the values of ours with those of NumPy."""
    bare, plain, lazy, product = (work() for work in works)
    comparison.values(name, lazy, plain)
    comparison.values(f"{name}, the product", product, bare)


def main() -> None:
    """Print the table, or compare values."""
    comparison = Comparison() if smoke_wanted() else None
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print(
        f"{'':34}{'bare':>10}{'NumPy':>10}{'ours':>10}{'our @':>10}"
        f"{'/bare':>9}{'/our @':>9}{'NumPy/':>9}"
    )
    with threadpool_limits(threads), tn.options(threads=threads):
        for dtype in ("float32", "float64"):
            several = [*(rows(*shape, dtype) for shape in SHAPES), chains(dtype)]
            for name, works in (row for group in several for row in group):
                if comparison is None:
                    shown(name, works)
                else:
                    compare(comparison, name, works)
    if comparison is not None:
        comparison.end()


if __name__ == "__main__":
    main()
