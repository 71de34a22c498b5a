"""The cold path in Python frames: what the first evaluation of a new structure takes.

A frame is one call event of `sys.setprofile` in the evaluating thread, but none of `threading` and
its sets: how often it waits for the compiler depends on the machine. The bounds are the counts when
they were last lowered. They are measured in a process of their own, after the evaluation of another
structure, with an empty disk cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import _weakrefset
import sys
import threading
import numpy as np
import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph
from tenfold.schedule.schedule import schedule_graph

rng = np.random.default_rng(0)
a, b = (tn.asarray(rng.random(200_000)) for _ in range(2))

waiting = threading.__file__, _weakrefset.__file__

def frames(work):
    counts = {}
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename not in waiting:
            name = frame.f_code.co_qualname
            counts[name] = counts.get(name, 0) + 1
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counts

def number(work):
    return sum(frames(work).values())
"""

FORMULA = """
def formula():
    return tn.sqrt((a + b) * 2 + a)

(tn.sqrt(b * 3) + a).wait()
counts = frames(formula().wait)
print(counts["Graph.of"], sum(counts.values()), number(formula().wait))
"""

TREE = """
import random
matrix, other, bias = (tn.asarray(rng.random(shape)) for shape in ((16, 16), (16, 16), 16))

@tn.function
def cell(left, right):
    return tn.tanh(left @ matrix + right @ other + bias)

def tree():
    choices = random.Random(3)
    nodes = [tn.asarray(rng.random(16)) for _ in range(501)]
    while len(nodes) > 1:
        left, right = (nodes.pop(choices.randrange(len(nodes))) for _ in range(2))
        nodes.append(cell(left, right))
    return nodes[0]

(tn.tanh(b * 3) + a).wait()
cold = number(tree().wait)
print(cold, min(number(tree().wait) for _ in range(5)))
"""

SMALL_TREE = """
weights = tn.asarray(rng.random((8, 8)))

@tn.function
def cell(left, right):
    return tn.tanh((left + right) @ weights)

def tree():
    level = [tn.asarray(rng.random(8)) for _ in range(501)]
    while len(level) > 1:
        pairs = [*zip(level[::2], level[1::2])]
        level = [cell(*pair) for pair in pairs] + level[2 * len(pairs) :]
    return level[0]

(tn.tanh(b * 3) + a).wait()
cold = number(tree().wait)
print(cold, min(number(tree().wait) for _ in range(5)))
"""

CHAIN = """
def chain(operations):
    x, y = a[:1000], b[:1000]
    for i in range(operations // 2):
        x = (x + y) * y
    return x

def plan(graph):
    schedule_graph(optimise_graph(graph)[0])

plan(Graph.of([_native.node_of(chain(4))]))
print(*(number(lambda: plan(Graph.of([_native.node_of(chain(n))]))) for n in (10, 1000)))
"""

SOLVE = """
size = 40
lower, x = tn.asarray(rng.random((size, size)) + size * np.eye(size)), tn.zeros(size)

def solve(i):
    x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    x.wait()

for i in range(30):
    solve(i)
print(min(number(lambda: solve(i)) for i in range(30, 40)))
"""


def counts(program: str, cache: Path) -> list[int]:
    """The numbers that a program prints in a process with default options and no kernels."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TENFOLD_")
    }
    environment["TENFOLD_CACHE_DIR"] = str(cache)
    result = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return [int(number) for number in result.stdout.split()]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="comprehensions have no frames there")
class TestFrames:
    """Upper bounds of the counts of Python 3.11."""

    def test_formula_is_linearised_once_and_a_second_one_needs_no_python(
        self, tmp_path: Path
    ) -> None:
        linearised, cold, warm = counts(FORMULA, tmp_path)
        assert (linearised, warm) == (1, 0)
        assert cold <= 1200  # ten more without FMA than with it

    def test_tree_of_calls_needs_no_python_when_it_is_warm(self, tmp_path: Path) -> None:
        cold, warm = counts(TREE, tmp_path)
        assert cold <= 27_000  # a background compilation more or less
        assert warm == 0
        with_kernels, _ = counts(TREE, tmp_path)
        assert with_kernels <= 12_500  # with the rules in the body of the function

    def test_tree_of_one_product_is_planned_once_for_all_batch_sizes(self, tmp_path: Path) -> None:
        counts(SMALL_TREE, tmp_path)
        with_kernels, warm = counts(SMALL_TREE, tmp_path)
        assert with_kernels <= 8_200
        assert warm == 0

    def test_chain_takes_a_constant_number_of_frames_for_each_operation(
        self, tmp_path: Path
    ) -> None:
        short, long = counts(CHAIN, tmp_path)
        assert short <= 1000
        assert long <= 50_000

    def test_triangular_solve_at_a_new_length(self, tmp_path: Path) -> None:
        assert counts(SOLVE, tmp_path)[0] <= 30  # the Type of a product of this length
