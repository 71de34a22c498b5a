"""What derivatives must show: gradients against values, against other libraries, over new trees.

Run: python bench/gradients.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes the figures.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from gradient_work.first_gradient import first_rows
from gradient_work.formulas import formula_rows
from gradient_work.loops import scan_rows
from gradient_work.memory import memory_rows
from gradient_work.training import training_rows
from gradient_work.tree_training import tree_rows
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, show

PEERS = ["torch", "jax"]
WORKS = {
    "formulas": formula_rows,
    "training": training_rows,
    "first": first_rows,
    "scan": scan_rows,
    "trees": tree_rows,
    "memory": memory_rows,
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*WORKS]), help="Repeatable.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="Smaller arrays, fewer trees and steps.")
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(only: Sequence[str], rounds: int, quick: bool, smoke: bool, file: Path | None) -> None:
    """Measure the rows and say which requirements are met."""
    rounds = 0 if smoke else rounds
    found = load_all([] if smoke else PEERS)
    report = {**facts(found, rounds, 1.0), "quick": quick, "rows": []}
    try:
        report["versions"]["dynet"] = None if smoke else version("dyNET38")
    except PackageNotFoundError:
        report["versions"]["dynet"] = None
    installed = {name for name, number in report["versions"].items() if number is not None}
    begin = time.perf_counter()
    for name, rows in WORKS.items():
        if not only or name in only:
            report["rows"] += rows(rounds, quick, installed)
    if smoke:
        compare(report)
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


if __name__ == "__main__":
    main()
