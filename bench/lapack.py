"""Linear algebra by LAPACK, without Python between its calls, beside numpy.linalg and SciPy.

Run: python bench/lapack.py [float64 or complex128] [operation ...]. Positive definite matrices, one
or a stack. Everything has one thread, but for `pool`, where a stack is shared out to two. Times are
processor time in microseconds, of the busier thread where there are two, so that it matters little
what else the machine does; of runs taken by turns the best counts. Ratios are NumPy's (for lu and
triangular_solve SciPy's) time over ours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController
from value_checks import Comparison, smoke_wanted

import tenfold as tn

SHAPES = [
    *((n, n) for n in (4, 16, 64, 100, 128, 180, 256, 360, 500, 700, 1000)),
    *((10, 4, 4), (100, 4, 4), (1000, 4, 4), (10000, 4, 4), (100, 16, 16), (1000, 16, 16)),
    *((10, 64, 64), (100, 64, 64), (20, 128, 128), (8, 256, 256)),
]
CASES: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "cholesky": (tn.linalg.cholesky, np.linalg.cholesky),
    "inv": (tn.linalg.inv, np.linalg.inv),
    "solve": (
        lambda x: tn.linalg.solve(x, x[..., :1]),
        lambda x: np.linalg.solve(x, x[..., :1]),
    ),
    "det": (tn.linalg.det, np.linalg.det),
    "slogdet": (lambda x: tn.eval(*tn.linalg.slogdet(x))[0], np.linalg.slogdet),
    "qr": (lambda x: tn.linalg.qr(x).Q, np.linalg.qr),
    "eigh": (lambda x: tn.linalg.eigh(x).eigenvectors, np.linalg.eigh),
    "svd": (
        lambda x: tn.linalg.svd(x, full_matrices=False).U,
        lambda x: np.linalg.svd(x, full_matrices=False),
    ),
    "eigvalsh": (tn.linalg.eigvalsh, np.linalg.eigvalsh),
    "eigvals": (tn.linalg.eigvals, np.linalg.eigvals),
    "svdvals": (tn.linalg.svdvals, np.linalg.svdvals),
    "lu": (lambda x: tn.linalg.lu(x).U, scipy.linalg.lu),
    "triangular_solve": (
        lambda x: tn.linalg.triangular_solve(x, x[..., :1]),
        lambda x: scipy.linalg.solve_triangular(x, x[..., :1], lower=True, check_finite=False),
    ),
}


def best(works: list[Callable[[], object]], least: float = 0.4) -> list[float]:
    """Return the best time of each, run by turns for so many seconds at least."""
    found, end, rounds = [float("inf")] * len(works), time.perf_counter() + least, 0
    while rounds < 5 or time.perf_counter() < end:
        rounds += 1
        for which, work in enumerate(works):
            everywhere, own = time.process_time(), time.thread_time()
            work()
            own = time.thread_time() - own
            others = time.process_time() - everywhere - own
            found[which] = min(found[which], max(own, others))
    return [seconds * 1e6 for seconds in found]


MAGNITUDES = ("eigh", "svd")
"""Vectors: their signs are free."""
VECTORS = 1e-6
"""How far vectors may be from NumPy's: values lie close together."""


def expected_of(name: str, found: Any) -> Any:
    """Return the one of the results of NumPy or SciPy that is ours."""
    found = found[{"eigh": 1, "lu": 2}.get(name, 0)] if isinstance(found, tuple) else found
    return comparable(name, found)


def comparable(name: str, found: Any) -> np.ndarray:
    """Return the part of values that does not depend on the routine: magnitudes, a sorted set."""
    values = np.asarray(found)
    if name == "eigvals":
        return np.sort(values.real)
    return np.abs(values) if name in MAGNITUDES else values


def compare(dtype: str, names: Iterable[str]) -> None:
    """Compare the values of every operation and shape with those of NumPy or SciPy."""
    comparison = Comparison()
    for name in names:
        print(name, flush=True)
        ours, numpys = CASES[name]
        for shape in SHAPES:
            x, title = definite(shape, dtype), f"{name} {'x'.join(map(str, shape))}"
            expected = expected_of(name, numpys(x))
            tolerance = VECTORS if name in MAGNITUDES else None
            for threads in (1, 2) if len(shape) > 2 else (1,):
                with tn.options(threads=threads):
                    found = comparable(name, ours(tn.asarray(x)))
                comparison.values(f"{title}, {threads} threads", found, expected, tolerance)
    comparison.end()


def on(threads: int, work: Callable[..., object], x: np.ndarray) -> Callable[[], None]:
    """Return what computes with so many threads of our pool."""
    given = tn.asarray(x)

    def run() -> None:
        with tn.options(threads=threads):
            work(given).wait()  # type: ignore[attr-defined]  # an Array

    return run


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return positive definite matrices."""
    random = np.random.default_rng(0)
    x = random.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * random.standard_normal(shape)
    squares = x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * np.eye(shape[-1])
    return np.asarray(squares / shape[-1]).astype(dtype)


def main(dtype: str = "float64", *names: str, smoke: bool = False) -> None:
    """Print a line for every operation and shape, or compare values."""
    if smoke:
        with ThreadpoolController().limit(limits=1):
            compare(dtype, names or CASES)
            return
    columns = f"{'lapack':>10} {'pool':>10} {'numpy':>10}  lapack  pool"
    print(f"{dtype}\n{'':10} {'shape':>15} {columns}")
    with ThreadpoolController().limit(limits=1):
        for name in names or CASES:
            ours, numpys = CASES[name]
            for shape in SHAPES:
                x = definite(shape, dtype)
                stack = 2 if len(shape) > 2 else 1
                alone, pool, numpy = best([on(1, ours, x), on(stack, ours, x), partial(numpys, x)])
                times = f"{alone:10.1f} {pool:10.1f} {numpy:10.1f}"
                ratios = f"{numpy / alone:7.2f} {numpy / pool:5.2f}"
                print(f"{name:10} {'x'.join(map(str, shape)):>15} {times} {ratios}", flush=True)


if __name__ == "__main__":
    wanted = smoke_wanted()
    main(*sys.argv[1:], smoke=wanted)
