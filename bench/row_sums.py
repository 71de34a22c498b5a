"""Sums of rows by index: tn.segment_sum and tn.add_at beside np.add.at, and a product by a sparse
matrix of unsorted elements beside SciPy's CSR; `bench/sparse.py` has those of storage kinds.

Run: python bench/row_sums.py. Milliseconds, the best of some turns, one run, by turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROWS, ENTRIES, TURNS = 10**5, 10**6, 21
Pair = tuple[Callable[[], object], Callable[[], object]]


def added(shape: tuple[int, ...], ids: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return sums of rows by NumPy."""
    sums = np.zeros(shape)
    np.add.at(sums, ids, values)
    return sums


def sparse_product() -> Pair:
    """Return a product of a sparse matrix by a vector: by segments, and by SciPy."""
    random = np.random.default_rng(0)
    rows = np.sort(random.integers(0, ROWS, ENTRIES))
    columns, values = random.integers(0, ROWS, ENTRIES), random.random(ENTRIES)
    x = random.random(ROWS)
    lazy_rows, lazy_columns, lazy_values, lazy_x = map(tn.asarray, (rows, columns, values, x))

    def by_segments() -> tn.Array:
        return tn.segment_sum(lazy_values * lazy_x[lazy_columns], lazy_rows, ROWS).wait()

    from scipy.sparse import csr_matrix

    matrix = csr_matrix((values, (rows, columns)), shape=(ROWS, ROWS))
    return by_segments, lambda: matrix @ x


def works() -> dict[str, Pair]:
    """Return the rows: Tenfold, and the other library."""
    random = np.random.default_rng(0)
    ids, values = random.integers(0, ROWS, ENTRIES), random.random(ENTRIES)
    wide, wide_ids = random.random((ROWS, 16)), random.integers(0, 1000, ROWS)
    sorted_ids = np.sort(ids)
    i, s, v, w, k = map(tn.asarray, (ids, sorted_ids, values, wide, wide_ids))
    few, few_values = tn.asarray(ids[:8] % 50), tn.asarray(values[:8])
    zeros = tn.zeros(ROWS).wait()
    return {
        "segment_sum, 10^6": (
            lambda: tn.segment_sum(v, i, ROWS).wait(),
            lambda: added((ROWS,), ids, values),
        ),
        "segment_sum, 10^6, sorted": (
            lambda: tn.segment_sum(v, s, ROWS).wait(),
            lambda: added((ROWS,), sorted_ids, values),
        ),
        "add_at, 10^6": (
            lambda: tn.add_at(zeros, i, v).wait(),
            lambda: added((ROWS,), ids, values),
        ),
        "segment_sum, 10^5 rows of 16": (
            lambda: tn.segment_sum(w, k, 1000).wait(),
            lambda: added((1000, 16), wide_ids, wide),
        ),
        "segment_sum, 8": (
            lambda: tn.segment_sum(few_values, few, 50).wait(),
            lambda: added((50,), ids[:8] % 50, values[:8]),
        ),
        "sparse product, 10^6 entries": sparse_product(),
    }


def milliseconds(run: Callable[[], object]) -> float:
    """Return the time of one run."""
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    """Print a table, or compare values."""
    rows = works()
    if smoke_wanted():
        comparison = Comparison()
        for name, (one, other) in rows.items():
            comparison.values(name, one(), other())
        comparison.end()
        return
    print(f"{'':30s} {'tenfold':>8s} {'other':>8s} ms")
    for name, pair in rows.items():
        for run in pair:
            run()
        times = [[milliseconds(run) for run in pair] for _ in range(TURNS)]
        one, other = (min(column) for column in zip(*times, strict=True))
        print(f"{name:30s} {one:8.3f} {other:8.3f}")


if __name__ == "__main__":
    main()
