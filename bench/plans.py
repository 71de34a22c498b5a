"""What plans must show: small arrays, new shapes, new structures, new processes and memory.

Run: python bench/plans.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes what docs/performance.py reads.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Sequence
from pathlib import Path

import click
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, show
from plan_work import shapes, warm
from plan_work.processes import GROUPS

NAMES = ["warm", "shapes", *GROUPS]


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Repeatable.")
@click.option("--peers", multiple=True, type=click.Choice(warm.PEERS), help="These libraries.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="Fewer programs, nodes and evaluations.")
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(
    only: Sequence[str],
    peers: Sequence[str],
    rounds: int,
    quick: bool,
    smoke: bool,
    file: Path | None,
) -> None:
    """Measure the rows and say which requirements are met."""
    rounds = 0 if smoke else rounds
    found = load_all([] if smoke else peers or warm.PEERS)
    wanted = set(only or NAMES) - ({"memory"} if smoke else set())
    report = {**facts(found, rounds, 1.0), "quick": quick}
    begin = time.perf_counter()
    report["rows"] = [*warm.rows(found, rounds)] if "warm" in wanted else []
    report["rows"] += [*shapes.rows(rounds)] if "shapes" in wanted else []
    for name, rows in GROUPS.items():
        report["rows"] += rows(rounds, quick) if name in wanted else []
    if smoke:
        compare(report, "memory")
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


if __name__ == "__main__":
    main()
