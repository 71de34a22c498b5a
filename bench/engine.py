"""What the engine must show: pushes, sums, launches, memory, and batches that come by themselves.

Run: python bench/engine.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes the figures.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Sequence
from pathlib import Path

import click
from engine_work.additions import additions
from engine_work.held import held
from engine_work.launches import launches
from engine_work.products import products
from engine_work.stacked import stacked
from engine_work.sums import sums
from engine_work.trees import trees
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, show

PEERS = ["numpy", "torch"]
NAMES = ["additions", "held", "stacked", "sums", "launches", "products", "trees"]


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Repeatable.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="Fewer pushes.")
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(only: Sequence[str], rounds: int, quick: bool, smoke: bool, file: Path | None) -> None:
    """Measure the rows and say which requirements are met."""
    rounds = 0 if smoke else rounds
    found, wanted = load_all([] if smoke else PEERS), only or NAMES
    report = {**facts(found, rounds, 1.0), "quick": quick}
    begin = time.perf_counter()
    report["rows"] = [*additions(rounds, quick, found)] if "additions" in wanted else []
    others = {
        "held": held,
        "stacked": stacked,
        "sums": sums,
        "launches": launches,
        "products": products,
        "trees": trees,
    }
    for name, rows in others.items():
        report["rows"] += rows(rounds, quick) if name in wanted else []
    if smoke:
        compare(report)
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


if __name__ == "__main__":
    main()
