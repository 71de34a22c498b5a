"""What assignment must show: loops that assign to slices beside NumPy and JAX, in one run.

Run: python bench/assignment.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes what docs/performance.py reads.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Sequence
from pathlib import Path

import click
from kernel_work.loops import LOOPS
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, measured, show

NAMES = [work.name for work in LOOPS]
PEERS = ("numpy", "jax")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="These rows; repeatable.")
@click.option("--peers", multiple=True, type=click.Choice(PEERS), help="These libraries.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
@click.option("--size-factor", default=1.0, show_default=True, help="Shrink every work for a look.")
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(
    only: Sequence[str],
    peers: Sequence[str],
    rounds: int,
    size_factor: float,
    smoke: bool,
    file: Path | None,
) -> None:
    """Measure the rows and say which requirements are met."""
    rounds = 0 if smoke else rounds
    found = load_all([] if smoke else peers or PEERS)
    report = facts(found, rounds, size_factor)
    begin = time.perf_counter()
    works = [work for work in LOOPS if work.name in (only or NAMES)]
    report["rows"] = list(measured(works, found, None, rounds, size_factor))
    if smoke:
        compare(report)
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


if __name__ == "__main__":
    main()
