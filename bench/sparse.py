"""Matrices in compressed rows beside SciPy's: products, sums, patterns, equations.

Run: python bench/sparse.py [--quick]. Milliseconds, medians of turns taken one after the other, one
run; SciPy computes with one thread. A matrix has 10^5 rows and 10^6 elements.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from value_checks import Comparison, smoke_wanted

import tenfold as tn

QUICK, SMOKE = "--quick" in sys.argv, smoke_wanted()
ROWS, ENTRIES, TURNS = (10**4, 10**5, 5) if QUICK or SMOKE else (10**5, 10**6, 21)
GRID, STEPS = (100, 20) if QUICK or SMOKE else (1000, 100)
Row = tuple[str, Callable[[], Any], Callable[[], Any]]


def matrix_of(lengths: np.ndarray, random: np.random.Generator) -> Any:
    """Return a matrix whose rows have so many elements, at distinct columns in order."""
    rows = np.repeat(np.arange(ROWS), lengths)
    columns = random.integers(0, ROWS, len(rows))
    matrix = sp.coo_array((random.random(len(rows)), (rows, columns)), shape=(ROWS, ROWS)).tocsr()
    matrix.sort_indices()
    return matrix


def row_lengths(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return numbers of elements: even, by chance, and one row with half of all."""
    chance = np.bincount(random.integers(0, ROWS, ENTRIES), minlength=ROWS)
    huge = np.bincount(random.integers(0, ROWS, ENTRIES // 2), minlength=ROWS)
    huge[ROWS // 2] += ENTRIES - huge.sum()
    return {"even": np.full(ROWS, ENTRIES // ROWS), "chance": chance, "one huge": huge}


def dense_of(result: Any) -> Any:
    """Return the elements that are compared: of a sparse result its data."""
    if isinstance(result, tn.Array) and result.storage == "csr":
        result = result.to_scipy()
    if sp.issparse(result):
        result = result.tocsr()
        result.sort_indices()
        return result.data
    return np.asarray(result)


def softmax_of_rows(matrix: Any) -> np.ndarray:
    """Return the softmax of the elements of each row by NumPy; no row is empty."""
    lengths, starts = np.diff(matrix.indptr), matrix.indptr[:-1]
    powers = np.exp(matrix.data - np.repeat(np.maximum.reduceat(matrix.data, starts), lengths))
    return powers / np.repeat(np.add.reduceat(powers, starts), lengths)


def products(random: np.random.Generator) -> Iterator[Row]:
    """Yield products by vectors and matrices."""
    x, b, wide = random.random(ROWS), random.random(ROWS), random.random((ROWS, 16))
    lazy_x, lazy_b, lazy_wide = map(tn.asarray, (x, b, wide))
    for name, lengths in row_lengths(random).items():
        theirs = matrix_of(lengths, random)
        ours = tn.asarray(theirs)
        yield f"csr @ x, {name}", lambda a=ours: (a @ lazy_x).wait(), lambda s=theirs: s @ x
        yield (
            f"2.5 * (csr @ x) + b, {name}",
            lambda a=ours: (2.5 * (a @ lazy_x) + lazy_b).wait(),
            lambda s=theirs: 2.5 * (s @ x) + b,
        )
        yield (
            f"csr @ (n, 16), {name}",
            lambda a=ours: (a @ lazy_wide).wait(),
            lambda s=theirs: s @ wide,
        )
        if name == "even":
            yield (
                "softmax of rows",
                lambda a=ours: tn.softmax(a, axis=1).wait(),
                lambda s=theirs: softmax_of_rows(s),
            )
            yield (
                "csr * (X @ Y.T), k = 16; csr @ (n, 16) of SciPy",
                lambda a=ours: (a * (lazy_wide @ lazy_wide.T)).wait(),
                lambda s=theirs: s @ wide,
            )


def patterns(random: np.random.Generator) -> Iterator[Row]:
    """Yield conversions, sums and products of two patterns."""
    theirs = matrix_of(np.full(ROWS, ENTRIES // ROWS), random)
    transposed = theirs.T.tocsr()
    ours, ours_transposed = tn.asarray(theirs), tn.asarray(transposed)
    order = random.permutation(theirs.nnz)
    elements = theirs.tocoo()
    data, rows, columns = (part[order] for part in (elements.data, *elements.coords))
    shuffled = sp.coo_array((data, (rows, columns)), shape=theirs.shape)
    yield (
        "COO to CSR",
        lambda: tn.csr_from_coo(data, rows, columns, theirs.shape).wait(),
        lambda: shuffled.tocsr(),
    )
    yield "CSR to CSC", lambda: ours.T.wait(), lambda: theirs.T.tocsr()
    yield "csr + csr", lambda: (ours + ours_transposed).wait(), lambda: theirs + transposed
    small = matrix_of(np.full(ROWS, 3), random)
    ours_small = tn.asarray(small)
    yield "csr @ csr", lambda: (ours_small @ ours_small).wait(), lambda: small @ small


def equations(random: np.random.Generator) -> Iterator[Row]:
    """Yield conjugate gradients on a Laplacian of GRID x GRID unknowns."""
    second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(GRID, GRID))
    one = sp.eye_array(GRID)
    theirs = (sp.kron(second, one) + sp.kron(one, second)).tocsr()
    b = random.random(GRID * GRID)
    ours, lazy_b = tn.asarray(theirs), tn.asarray(b)
    yield (
        f"cg, {STEPS} steps",
        lambda: tn.linalg.cg(ours, lazy_b, rtol=0.0, maxiter=STEPS)[0].wait(),
        lambda: scipy.sparse.linalg.cg(theirs, b, rtol=0.0, maxiter=STEPS)[0],
    )


def small_products(random: np.random.Generator) -> Iterator[Row]:
    """Yield 1,000 small products of unequal numbers of elements in one evaluation."""
    pairs = []
    for _ in range(1000):
        entries = int(random.integers(30, 90))
        rows, columns = np.divmod(np.sort(random.choice(400, entries, replace=False)), 20)
        theirs = sp.coo_array((random.random(entries), (rows, columns)), shape=(20, 20)).tocsr()
        pairs.append((theirs, random.random((20, 8))))
    ours = [(tn.asarray(theirs), tn.asarray(x)) for theirs, x in pairs]
    yield (
        "1,000 products of 20 x 20",
        lambda: tn.stack(list(tn.eval(*[tn.tanh(a @ x) for a, x in ours]))).wait(),
        lambda: np.stack([np.tanh(theirs @ x) for theirs, x in pairs]),
    )


def milliseconds(run: Callable[[], object]) -> float:
    """Return the time of one run."""
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    """Print a table, or compare values."""
    random = np.random.default_rng(0)
    comparison = Comparison()
    print(f"{'':48s} {'tenfold':>8s} {'scipy':>8s} ms  ratio")
    for family in (products, patterns, small_products, equations):
        for name, ours, theirs in family(random):
            if SMOKE:
                if "of SciPy" not in name:
                    comparison.values(name, dense_of(ours()), dense_of(theirs()))
                continue
            turns = max(3, TURNS // 7) if name.startswith("cg") else TURNS
            ours(), theirs()
            times = [[milliseconds(run) for run in (ours, theirs)] for _ in range(turns)]
            one, other = (float(np.median(column)) for column in zip(*times, strict=True))
            print(f"{name:48s} {one:8.2f} {other:8.2f}     {one / other:5.2f}", flush=True)
    if SMOKE:
        comparison.end()


if __name__ == "__main__":
    main()
