"""Memory of training: 100 steps over trees that are dropped, and a network of 100 layers.

Takes the number of rounds; hands on a row for each. The megabytes of a process are read from
`/proc`. A network of 100 layers is a step in a new process of one library, of which the largest
memory is taken.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from engine_work.rows import at_most, row
from kernel_work.measure import Row

from trees.training import LABELS, parameters, train

STEPS, SETTLED, TREES, HIDDEN = 100, 40, 16, 32
GROWTH = 1.02
CHILD = """
import resource, sys
import numpy as np
LAYERS, ROWS, WIDTH = 100, 4096, 128
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = np.ones((ROWS, WIDTH), np.float32)
w = [np.full((WIDTH, WIDTH), 1 / WIDTH, np.float32) for _ in range(LAYERS)]
if sys.argv[1] == "tenfold":
    import tenfold as tn
    def step(h, w):
        for each in w:
            h = tn.tanh(h @ each)
        return tn.sum(h)
    run = lambda h, w: tn.eval(*tn.value_and_grad(step, argnums=1)(h, w)[1])[-1].wait()
    give = tn.asarray
else:
    import torch
    def run(h, w):
        for each in w:
            each.requires_grad_()
            h = torch.tanh(h @ each)
        h.sum().backward()
    give = torch.from_numpy
run(give(x[:8]), [*map(give, w[:2])])
before = peak()
run(give(x), [*map(give, w)])
print(peak() - before)
"""


def memory_rows(rounds: int, _quick: bool, installed: set[str]) -> Iterator[Row]:
    """The rows."""
    if not rounds:
        return
    yield row("flat", *flat())
    kept = {
        name: kept_history(name) for name in ("tenfold", "torch") if name in {*installed, "tenfold"}
    }
    title = "memory of a step of 100 layers: " + ", ".join(
        f"{name} {megabytes:.0f} MB" for name, megabytes in kept.items()
    )
    ratio = kept["tenfold"] / kept["torch"] if "torch" in kept else None
    met = None if ratio is None else ratio <= 1.1
    yield row("history", title, {}, {"required": "<= 1.1 x torch", "found": ratio, "met": met})


def flat() -> tuple[str, dict[str, float], Row]:
    """Train over trees, and compare the memory after a settled step with that after the last."""
    steps = train(parameters(len(LABELS), HIDDEN), STEPS, TREES)
    sizes = [resident_megabytes() for _ in steps]
    after = f"{sizes[SETTLED]:.0f} MB after {SETTLED}, {sizes[-1]:.0f} after all"
    title = f"{STEPS} training steps: {after}"
    return title, {}, at_most(GROWTH, sizes[-1] / sizes[SETTLED], "x memory")


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def kept_history(name: str) -> float:
    """The megabytes by which the largest memory of a process grows in the step."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=True
    )
    return float(done.stdout) / 1024
