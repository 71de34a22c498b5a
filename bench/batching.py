"""What batching of functions must show: trees, loops, calls, graphs, adaptive steps, reads.

Run: python bench/batching.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes the figures.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from batching_work.calls import calls
from batching_work.graphs import graph_rows
from batching_work.levels import levels
from batching_work.loops import loops
from batching_work.new_trees import new_tree_rows
from batching_work.odes import odes
from batching_work.reads import reads
from batching_work.trees import tree_lstm_rows
from kernel_work.measure import Row
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, show

PEERS = ["numpy", "torch", "jax"]
DYNET = "dyNET38"
"""The package of DyNet."""
NAMES = ["trees", "new-trees", "levels", "loops", "calls", "graphs", "odes", "reads"]


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Repeatable.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="Fewer trees, calls, graphs and systems.")
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(only: Sequence[str], rounds: int, quick: bool, smoke: bool, file: Path | None) -> None:
    """Measure the rows and say which requirements are met."""
    rounds = 0 if smoke else rounds
    found = load_all([] if smoke else PEERS)
    report = {**facts(found, rounds, 1.0), "quick": quick, "rows": []}
    report["versions"]["dynet"] = None if smoke else dynet_version()
    begin = time.perf_counter()
    for name, rows in works(report["versions"]).items():
        report["rows"] += rows(rounds, quick) if not only or name in only else []
    if smoke:
        compare(report)
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


def works(versions: Mapping[str, str | None]) -> Mapping[str, partial[Iterator[Row]]]:
    return {
        "trees": partial(tree_lstm_rows, installed=versions),
        "new-trees": partial(new_tree_rows, installed=versions),
        "levels": partial(levels),
        "loops": partial(loops),
        "calls": partial(calls),
        "graphs": partial(graph_rows, installed=versions),
        "odes": partial(odes),
        "reads": partial(reads),
    }


def dynet_version() -> str | None:
    try:
        return version(DYNET)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
