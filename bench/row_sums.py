"""Sums of rows by index: tn.segment_sum and tn.add_at beside np.add.at, and products by a sparse
matrix beside SciPy's CSR, by segments with numbers and between offsets.

Run: python bench/row_sums.py. Milliseconds, the best of some turns, one run, by turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn
from tenfold import _native
from tenfold.ops.gathering import gather
from tenfold.ops.segments import ragged_max, ragged_repeat, ragged_sum

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


def taken(x: tn.Array, indices: tn.Array) -> tn.Array:
    """Return rows of `x`; indices are tested by the kernel, and not at the call, too."""
    return _native.apply(gather.id, (x, indices), ((0,), 0))


def softmax_of_rows(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the softmax of the entries of each row by NumPy; no row is empty."""
    lengths = np.diff(offsets)
    powers = np.exp(values - np.repeat(np.maximum.reduceat(values, offsets[:-1]), lengths))
    return powers / np.repeat(np.add.reduceat(powers, offsets[:-1]), lengths)


def ragged_works(name: str, lengths: np.ndarray) -> dict[str, Pair]:
    """Return products by a sparse matrix whose rows have these lengths, and a softmax of rows."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = random.integers(0, ROWS, ENTRIES).astype(np.int32)
    values, x, b = random.random(ENTRIES), random.random(ROWS), random.random(ROWS)
    wide = random.random((ROWS, 16))
    matrix = csr_array((values, columns, offsets), shape=(ROWS, ROWS))
    o, i, v, lazy_x, lazy_b, w = map(tn.asarray, (offsets, columns, values, x, b, wide))

    def softmax() -> tn.Array:
        powers = tn.exp(v - ragged_repeat(ragged_max(v, o), o, ENTRIES))
        result = powers / ragged_repeat(ragged_sum(powers, o), o, ENTRIES)
        del powers
        return result.wait()

    return {
        f"csr @ x, {name}": (
            lambda: ragged_sum(v * taken(lazy_x, i), o).wait(),
            lambda: matrix @ x,
        ),
        f"2.5 * (csr @ x) + b, {name}": (
            lambda: (2.5 * ragged_sum(v * taken(lazy_x, i), o) + lazy_b).wait(),
            lambda: 2.5 * (matrix @ x) + b,
        ),
        f"csr @ (n, 16), {name}": (
            lambda: ragged_sum(v[:, None] * taken(w, i), o).wait(),
            lambda: matrix @ wide,
        ),
        f"softmax of rows, {name}": (softmax, lambda: softmax_of_rows(values, offsets)),
    }


def row_lengths() -> dict[str, np.ndarray]:
    """Return the numbers of entries of rows, each one or more: even, by chance, one huge row."""
    random = np.random.default_rng(0)
    even = np.full(ROWS, ENTRIES // ROWS)
    chance = 1 + np.bincount(random.integers(0, ROWS, ENTRIES - ROWS), minlength=ROWS)
    huge = 1 + np.bincount(random.integers(0, ROWS, ENTRIES // 2 - ROWS), minlength=ROWS)
    huge[ROWS // 2] += ENTRIES - huge.sum()
    return {"even rows": even, "rows by chance": chance, "a huge row": huge}


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
        **{
            work: pair
            for name, lengths in row_lengths().items()
            for work, pair in ragged_works(name, lengths).items()
        },
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
