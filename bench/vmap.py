"""tn.vmap beside the batch written by hand, a NumPy loop over the members, jax.vmap and torch.vmap.

Run: python bench/vmap.py [threads]. A row each: the times in microseconds, by turns in one run, of
tenfold's own (the call of vmap included, which traces the function), of the same batch written by
hand, of jax.jit(jax.vmap(f)), torch.vmap(f) and NumPy's loop; launches and calls of tenfold, and
the largest difference from NumPy in units of the largest result. Peers that are not installed are
left out. For one thread:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 python bench/vmap.py 1
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn


class Work(NamedTuple):
    """A function of one member in the words of a library, and the same batch written by hand."""

    name: str
    member: Callable[[Any, Any, Any], Any]
    """member(library, row, shared)"""
    by_hand: Callable[[tn.Array, tn.Array], tn.Array]
    rows: tuple[int, ...]
    shared: tuple[int, ...]


def sample(xp: Any, x: Any, w: Any) -> Any:
    return xp.tanh(w @ x + 1)


def samples(x: tn.Array, w: tn.Array) -> tn.Array:
    return tn.tanh(x @ w.T + 1)


def distance(xp: Any, x: Any, w: Any) -> Any:
    return xp.sqrt(xp.sum((w - x) ** 2, 1))


def distances(x: tn.Array, w: tn.Array) -> tn.Array:
    return tn.sqrt(tn.sum((w - x[:, None]) ** 2, axis=2))


def product(_: Any, x: Any, w: Any) -> Any:
    return x @ x @ w


def products(x: tn.Array, w: tn.Array) -> tn.Array:
    return (x @ x) @ w


def norm(xp: Any, x: Any, w: Any) -> Any:
    return x / xp.sqrt(xp.sum(x * x, 0)) + w


def norms(x: tn.Array, w: tn.Array) -> tn.Array:
    return x / tn.sqrt(tn.sum(x * x, axis=1))[:, None] + w


WORKS = (
    Work("20,000 samples, W (8, 8)", sample, samples, (20_000, 8), (8, 8)),
    Work("1,000 samples, W (128, 128)", sample, samples, (1_000, 128), (128, 128)),
    Work("64 samples, W (512, 512)", sample, samples, (64, 512), (512, 512)),
    Work("1,000 points, 100 others in 3 axes", distance, distances, (1_000, 3), (100, 3)),
    Work("1,000 products of (8, 8), thrice", product, products, (1_000, 8, 8), (8, 8)),
    Work("2,000 matrices (16, 16), columns scaled", norm, norms, (2_000, 16, 16), (16, 16)),
)


class Torch:
    """torch by the names of the others."""

    def __init__(self) -> None:
        import torch

        self.tanh, self.sqrt, self.sum = torch.tanh, torch.sqrt, torch.sum


def peers(work: Work, x: np.ndarray, w: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    mine, own = tn.asarray(x), tn.asarray(w)
    mapped = tn.vmap(lambda row, w: work.member(Tenfold, row, w), in_axes=(0, None))
    found: dict[str, Callable[[], Any]] = {
        "tn.vmap": lambda: mapped(mine, own).wait(),
        "by hand": lambda: work.by_hand(mine, own).wait(),
    }
    if find_spec("jax"):
        import jax

        jitted = jax.jit(jax.vmap(lambda row, w: work.member(jax.numpy, row, w), (0, None)))
        at, shared = jax.numpy.asarray(x), jax.numpy.asarray(w)
        found["jax"] = lambda: jitted(at, shared).block_until_ready()
    if find_spec("torch"):
        import torch

        words, rows, matrix = Torch(), torch.from_numpy(x), torch.from_numpy(w)
        batched = torch.vmap(lambda row, w: work.member(words, row, w), (0, None))
        found["torch"] = lambda: batched(rows, matrix)
    found["NumPy loop"] = lambda: np.stack([work.member(np, row, w) for row in x])
    return found


class Tenfold:
    """tenfold by the names of the others, which take an axis by position."""

    tanh, sqrt = staticmethod(tn.tanh), staticmethod(tn.sqrt)

    @staticmethod
    def sum(x: tn.Array, axis: int) -> tn.Array:
        return tn.sum(x, axis=axis)


def by_turns(works: list[Callable[[], Any]], rounds: int = 5, least: float = 0.03) -> list[float]:
    """Return the best median of a round of each work, in microseconds."""
    best = [float("inf")] * len(works)
    for work in works * 2:
        work()
    for _ in range(rounds):
        for number, work in enumerate(works):
            times: list[float] = []
            while sum(times) < least or len(times) < 3:
                begun = time.perf_counter()
                work()
                times.append(time.perf_counter() - begun)
            best[number] = min(best[number], statistics.median(times))
    return [each * 1e6 for each in best]


def inputs(work: Work) -> list[np.ndarray]:
    """Return the rows and what all members share."""
    random = np.random.default_rng(0)
    return [random.standard_normal(s, dtype=np.float32) for s in (work.rows, work.shared)]


def compare() -> None:
    """Compare the values of every work with those of NumPy's loop."""
    comparison = Comparison()
    for work in WORKS:
        ways = peers(work, *inputs(work))
        expected = ways["NumPy loop"]()
        for name in ("tn.vmap", "by hand"):
            comparison.values(f"{work.name}, {name}", ways[name](), expected)
    comparison.end()


def main(threads: int, *, smoke: bool = False) -> None:
    tn.set_options(threads=threads)
    if smoke:
        compare()
        return
    for work in WORKS:
        ways = peers(work, *inputs(work))
        times = by_turns(list(ways.values()))
        with tn.profile() as p:
            result = np.asarray(ways["tn.vmap"]())
        wanted = ways["NumPy loop"]()
        error = np.abs(result - wanted).max() / (np.abs(wanted).max() * 2.0**-23)
        shown = "  ".join(f"{name} {t:9,.0f}" for name, t in zip(ways, times, strict=True))
        print(f"{work.name:40} {shown}  launches {p.launches}, calls {p.calls}, error {error:.1f}")


if __name__ == "__main__":
    wanted = smoke_wanted()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, smoke=wanted)
