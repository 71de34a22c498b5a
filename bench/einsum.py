"""einsum beside numpy.einsum on its best path, torch.einsum and jax.jit of jax.numpy.einsum.

Run: python bench/einsum.py [threads]. A row each: the text and shapes, what tenfold counted of
multiply-adds, copies and temporaries, the times in microseconds, by turns in one run, and tenfold's
against the best of the others. A last table: what a call costs before it is evaluated, beside the
operators that it becomes. Peers that are not installed are left out. The rest of the machine should
be idle; on one that is not, one thread for all is measured best:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 python bench/einsum.py 1
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

WORKS = """
ij,jk->ik            64,64 64,64
ij,kj->ik            512,512 512,512
bij,bjk->bik         1000,8,8 1000,8,8
bji,bjk->bik         64,128,96 64,128,64
bqhd,bkhd->bhqk      4,256,8,64 4,256,8,64
bhqk,bkhd->bqhd      4,8,256,256 4,256,8,64
ijk,kl->ijl          64,128,256 256,128
ij,kjl->ikl          200,300 100,300,64
ijk,lkj->il          200,40,50 300,50,40
abcd,edcf->abef      32,32,16,16 32,16,16,32
abcd,bd->ac          100,60,80,70 60,70
bi,bj->ij            10000,64 10000,48
ij,ij->              1000,1000 1000,1000
ij,ji->              1000,1000 1000,1000
ij,ij->i             2000,500 2000,500
i,j->ij              2000 2000
ij,j,jk->ik          512,512 512 512,512
ij,jk,kl,lm->im      200,300 300,40 40,500 500,100
ijk,il,jm,kn->lmn    60,70,80 60,20 70,25 80,30
"""


def by_turns(
    works: list[Callable[[], object]], rounds: int = 5, least: float = 0.03
) -> list[float]:
    """Return the times of works in microseconds: in each round every work runs for a while, so that
    the threads of one have gone to sleep when the next is measured; the best median of a round.
    """
    best = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(rounds):
        for number, work in enumerate(works):
            times: list[float] = []
            while sum(times) < least or len(times) < 3:
                begun = time.perf_counter()
                work()
                times.append(time.perf_counter() - begun)
            best[number] = min(best[number], statistics.median(times[len(times) // 3 :]))
    return [each * 1e6 for each in best]


def numpys(text: str, arrays: list[np.ndarray]) -> Callable[[], object]:
    """Return what runs numpy.einsum in the order that its own search has found."""
    path = np.einsum_path(text, *arrays, optimize="optimal")[0]
    return lambda: np.einsum(text, *arrays, optimize=path)


def torchs(text: str, arrays: list[np.ndarray]) -> Callable[[], object]:
    """Return what runs torch.einsum."""
    import torch

    tensors = [torch.from_numpy(x) for x in arrays]
    return lambda: torch.einsum(text, *tensors)


def jaxs(text: str, arrays: list[np.ndarray]) -> Callable[[], object]:
    """Return what runs the compiled einsum of JAX."""
    import jax

    operands = [jax.numpy.asarray(x) for x in arrays]
    compiled = jax.jit(lambda *given: jax.numpy.einsum(text, *given))
    return lambda: compiled(*operands).block_until_ready()


PEERS = {"numpy": numpys, "torch": torchs, "jax": jaxs}


def operands_of(line: str) -> tuple[str, list[np.ndarray]]:
    """Return the text of a work and its operands."""
    text, *shapes = line.split()
    lengths = [tuple(map(int, shape.split(","))) for shape in shapes]
    return text, [np.random.default_rng(i).random(s, "float32") for i, s in enumerate(lengths)]


def compare() -> None:
    """Compare the values of each work with those of NumPy."""
    comparison = Comparison()
    for line in WORKS.strip().splitlines():
        text, arrays = operands_of(line)
        expected = numpys(text, arrays)()
        comparison.values(line, tn.einsum(text, *map(tn.asarray, arrays)), expected)
    comparison.end("what a call costs")


def table() -> None:
    """Print a row for each work."""
    peers = {name: make for name, make in PEERS.items() if find_spec(name)}
    heads = [*peers, "tenfold"]
    print(f"{'':54} {'multiply-adds':>14} {'copies':>6} {'temps':>5}", end=" ")
    print(" ".join(f"{head:>9}" for head in heads), " ratio")
    for line in WORKS.strip().splitlines():
        text, arrays = operands_of(line)
        given = [tn.asarray(x) for x in arrays]
        with tn.profile() as p:
            tn.einsum(text, *given).wait()
        works = [make(text, arrays) for make in peers.values()]
        works.append(lambda text=text, given=given: tn.einsum(text, *given).wait())
        taken = by_turns(works)
        counted = f"{p.multiply_adds:14,} {p.copies:6} {p.temporaries:5}"
        times = " ".join(f"{each:9.1f}" for each in taken)
        best = min(taken[:-1], default=float("nan"))
        print(f"{line:54} {counted} {times} {taken[-1] / best:6.2f}", flush=True)


def calls() -> None:
    """Print what writing an expression costs."""
    x, y, v = tn.ones((5, 6)), tn.ones((7, 6)), tn.ones((6,))
    q, k = tn.ones((2, 5, 3, 6)), tn.ones((2, 7, 3, 6))
    print(f"\n{'written, not evaluated':40} {'einsum':>8} {'operators':>10}")
    for text, operands, operators in (
        ("ij,kj->ik", (x, y), lambda: x @ y.T),
        (
            "bqhd,bkhd->bhqk",
            (q, k),
            lambda: tn.permute_dims(q, (0, 2, 1, 3)) @ tn.permute_dims(k, (0, 2, 3, 1)),
        ),
        ("ij,j,kj->ik", (x, v, y), lambda: (x * v) @ y.T),
    ):
        taken = by_turns([lambda text=text, o=operands: tn.einsum(text, *o), operators])
        print(f"{text:40} {taken[0]:8.2f} {taken[1]:10.2f}")


def main() -> None:
    """Print both tables, or compare values."""
    warnings.filterwarnings("ignore")
    smoke = smoke_wanted()
    with tn.options(**({"threads": int(sys.argv[1])} if len(sys.argv) > 1 else {})):
        if smoke:
            compare()
            return
        table()
        calls()


if __name__ == "__main__":
    main()
