"""Tree-LSTM over trees that a process has not seen: every round has new ones.

Takes nothing of the rounds of other rows; hands on a row for each number of trees at once. A turn
is a new process of one library, whose kernels are on disk; its time is that of five rounds. What
repeats in none of them is the structure: a plan of a tree would be used once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from engine_work.rows import at_least, at_most, row
from kernel_work.measure import Row

BENCH = Path(__file__).resolve().parents[1]
TREES = 512
"""In a round."""
SAME = {1: 1.0, 16: 2.0, 64: 2.5, 256: 2.5, 512: 2.5}
"""By trees at once: how many times as fast as DyNet, where equal labels have one array."""
DISTINCT = {64: 2.0, 256: 2.0, 512: 2.0}
"""The same where each node has an array of its own, so that no two nodes are equal."""
LAUNCHES, BOUND = 6.0, 1e-5


def new_tree_rows(rounds: int, quick: bool, installed: Mapping[str, object]) -> Iterator[Row]:
    """A row for each number of trees at once, and whether leaves are shared."""
    per_round = TREES // (8 if quick or not rounds else 1)
    for form, needs in {"same": SAME, "distinct": DISTINCT}.items():
        for size, need in needs.items():
            if size <= per_round and (rounds or size == 64):
                yield _row(per_round, size, form, need, rounds, installed)


def _row(
    per_round: int, size: int, form: str, need: float, rounds: int, installed: Mapping[str, object]
) -> Row:
    title = f"Tree-LSTM, 5 rounds of {per_round} new trees, {size} at once"
    if form == "distinct":
        title += ", no two nodes equal"
    libraries = ["tenfold", *(["dynet"] if installed.get("dynet") is not None else [])]
    with TemporaryDirectory() as cache:
        filled = _turn("tenfold", per_round, size, form, cache)
        turns = {
            library: [_turn(library, per_round, size, form, cache) for _ in range(min(rounds, 3))]
            for library in libraries
        }
    times = {
        library: [1e3 * sum(turn["seconds"]) for turn in found] for library, found in turns.items()
    }
    error = max(filled["errors"])
    wrong = {} if error <= BOUND else {"tenfold": f"differs from NumPy's by {error:.3g}"}
    if not rounds:
        return {**row(f"new-trees-{form}-{size}", title, {}), "wrong": wrong}
    ratio = median(times["dynet"]) / median(times["tenfold"]) if "dynet" in times else None
    verdicts = [at_least(need, ratio, "x DyNet")]
    if size >= 16:
        worst = max(turns["tenfold"][0]["launches"][1:])
        verdicts.append(at_most(LAUNCHES, worst, "launches by depth of the deepest tree"))
    middle = {library: median(found) for library, found in times.items()}
    return {**row(f"new-trees-{form}-{size}", title, middle, *verdicts), "wrong": wrong}


def _turn(library: str, per_round: int, size: int, form: str, cache: str) -> Any:
    command = [sys.executable, "-m", "batching_work.new_trees_child", library]
    done = subprocess.run(
        [*command, str(per_round), str(size), form],
        cwd=BENCH,
        env={**os.environ, "TENFOLD_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
