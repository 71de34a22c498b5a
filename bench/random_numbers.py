"""tn.random beside NumPy's Generator: pi by samples, draws, and memory.

Run: python bench/random_numbers.py [threads] [samples]. Times are the least of three runs, in
milliseconds; NumPy draws in pieces that fit the cache.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn
from tenfold.settings import get

PIECE = 1 << 16
DRAWS: dict[
    str, tuple[Callable[[tn.random.Generator, int], tn.Array], Callable[..., np.ndarray]]
] = {
    "random": (lambda rng, n: rng.random(n), lambda rng, n: rng.random(n)),
    "random float32": (
        lambda rng, n: rng.random(n, dtype="float32"),
        lambda rng, n: rng.random(n, dtype="float32"),
    ),
    "integers": (
        lambda rng, n: rng.integers(1000, size=n),
        lambda rng, n: rng.integers(1000, size=n),
    ),
    "standard_normal": (
        lambda rng, n: rng.standard_normal(n),
        lambda rng, n: rng.standard_normal(n),
    ),
    "standard_exponential": (
        lambda rng, n: rng.standard_exponential(n),
        lambda rng, n: rng.standard_exponential(n),
    ),
    "poisson 3.5": (lambda rng, n: rng.poisson(3.5, n), lambda rng, n: rng.poisson(3.5, n)),
    "standard_gamma": (
        lambda rng, n: rng.standard_gamma(2.5, n),
        lambda rng, n: rng.standard_gamma(2.5, n),
    ),
}


def pi_of_tenfold(samples: int, seed: int = 0) -> float:
    """Return pi by samples in the square: one kernel."""
    rng = tn.random.default_rng(seed)
    x, y = rng.random(samples), rng.random(samples)
    inside = tn.mean((x * x + y * y) < 1)
    return 4 * float(inside.item())


def pi_of_numpy(samples: int, seed: int = 0) -> float:
    """Return pi by samples in pieces."""
    rng, inside = np.random.default_rng(seed), 0
    for begin in range(0, samples, PIECE):
        count = min(PIECE, samples - begin)
        x, y = rng.random(count), rng.random(count)
        inside += int(np.count_nonzero(x * x + y * y < 1))
    return 4 * inside / samples


def best(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the least time of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return 1000 * min(times)


def megabytes() -> float:
    """Return the peak memory of the process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def smoke() -> None:
    """Compare pi, and each draw with that of the reference device."""
    comparison = Comparison()
    comparison.values("pi", pi_of_tenfold(10**6), np.pi, 1e-2)
    for name, (tenfolds, _) in DRAWS.items():
        with tn.options(device="reference"):
            expected = np.asarray(tenfolds(tn.random.default_rng(1), 10**5))
        found = np.asarray(tenfolds(tn.random.default_rng(1), 10**5))
        comparison.fact(name, np.array_equal(found, expected))
    comparison.end()


def print_draw(name: str, n: int) -> None:
    """Print the times of a draw of `n` numbers."""
    tenfolds, numpys = DRAWS[name]
    rng, generator = tn.random.default_rng(1), np.random.default_rng(1)
    ours = best(lambda: tenfolds(rng, n).wait())
    theirs = best(lambda: numpys(generator, n))
    print(f"{name}, {n:.0e}: {ours:.2f}, NumPy {theirs:.2f}: {theirs / ours:.2f}x")


def main() -> None:
    """Print the rows."""
    if smoke_wanted():
        smoke()
        return
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else int(get("threads"))
    samples = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10**8
    with tn.options(threads=threads):
        pi_of_tenfold(1_000_000)
        before = megabytes()
        ours = best(lambda: pi_of_tenfold(samples))
        grown = megabytes() - before
        theirs = best(lambda: pi_of_numpy(samples))
        print(f"pi, {samples:.0e} samples: {ours:.0f}, NumPy in pieces {theirs:.0f}")
        print(f"  {theirs / ours:.1f}x, memory grown by {grown:.0f} MB")
        for name in DRAWS:
            print_draw(name, 10**6)


if __name__ == "__main__":
    main()
