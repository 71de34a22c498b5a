"""tn.fft beside scipy.fft: transforms, and convolution by the transform.

Run: python bench/fourier.py [threads]. Times are microseconds, the least of some rounds by turns;
SciPy has as many workers where Tenfold has several.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.fft
from value_checks import Comparison, smoke_wanted

import tenfold as tn
from tenfold.settings import get

Work = Callable[[], object]
SHAPES = ((1 << 10,), (1 << 16,), (1 << 20,), (1000, 1000), (64, 4096))
LENGTHS = (1 << 10, 1 << 16, 1 << 20)


def convolved(a: tn.Array, b: tn.Array, n: int) -> tn.Array:
    """Return the convolution of two real arrays."""
    return tn.fft.irfft(tn.fft.rfft(a, n) * tn.fft.rfft(b, n), n)


def scipy_convolved(a: np.ndarray, b: np.ndarray, n: int, workers: int) -> np.ndarray:
    """Return the convolution of two real arrays, by SciPy."""
    product = scipy.fft.rfft(a, n, workers=workers) * scipy.fft.rfft(b, n, workers=workers)
    return np.asarray(scipy.fft.irfft(product, n, workers=workers))


Pair = tuple[Callable[[], tn.Array], Callable[[], np.ndarray]]


def transforms(name: str, x: np.ndarray, workers: int) -> Pair:
    """Return a transform of the last axis by Tenfold and by SciPy."""
    array, ours, theirs = tn.asarray(x), getattr(tn.fft, name), getattr(scipy.fft, name)
    return lambda: ours(array), lambda: theirs(x, workers=workers)


def convolutions(n: int, workers: int) -> Pair:
    """Return a convolution of two real arrays by Tenfold and by SciPy."""
    random = np.random.default_rng(n)
    a, b = random.standard_normal(n), random.standard_normal(n)
    x, y = tn.asarray(a), tn.asarray(b)
    return lambda: convolved(x, y, 2 * n), lambda: scipy_convolved(a, b, 2 * n, workers)


def rows(workers: int) -> dict[str, Pair]:
    """Return the works of Tenfold and SciPy by their names."""
    random, found = np.random.default_rng(0), dict[str, Pair]()
    for shape in SHAPES:
        x = random.standard_normal(shape)
        found[f"rfft float64 {shape}"] = transforms("rfft", x, workers)
        z = x + 1j * random.standard_normal(shape)
        found[f"fft complex128 {shape}"] = transforms("fft", z, workers)
    found |= {f"convolution {n}": convolutions(n, workers) for n in LENGTHS}
    return found


def waited(work: Callable[[], tn.Array]) -> None:
    """Compute an array."""
    work().wait()


def by_turns(works: tuple[Work, Work], rounds: int = 7) -> list[float]:
    """Return the least times of two works, in microseconds."""
    best = [float("inf")] * 2
    for _ in range(rounds):
        for number, work in enumerate(works):
            begun = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - begun)
    return [1e6 * each for each in best]


def main() -> None:
    """Print the rows, or compare their values."""
    smoke = smoke_wanted()
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else int(get("threads"))
    comparison = Comparison()
    with tn.options(threads=threads):
        for name, (tenfolds, scipys) in rows(threads).items():
            if smoke:
                comparison.values(name, np.asarray(tenfolds()), scipys())
                continue
            ours, theirs = by_turns((partial(waited, tenfolds), scipys))
            print(f"{name}: {ours:.0f}, SciPy {theirs:.0f}: {ours / theirs:.2f} of its time")
    if smoke:
        comparison.end()


if __name__ == "__main__":
    main()
