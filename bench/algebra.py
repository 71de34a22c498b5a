"""What linear algebra must show: awareness, layers, planning and counters, in one run.

Run: python bench/algebra.py (see README.md beside it). Takes nothing but options; prints a table
and, with --json, writes what docs/performance.py reads.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Sequence
from pathlib import Path

import click
from algebra_work import counters, folding, planning
from algebra_work.experiments import EXPERIMENTS, PEERS
from algebra_work.layers import LAYERS
from algebra_work.measure import blas_peer, measure, of_several
from kernel_work.peers import load_all
from kernel_work.report import compare, facts, show
from rich.console import Console
from rich.progress import track

TIMED = (*EXPERIMENTS, *LAYERS)
OTHERS = {"planning": planning.rows, "counters": counters.rows, "folding": folding.rows}
TIMES = ("planning", "folding")
"""Groups of which only times are required."""
NAMES = [each.work.name for each in TIMED]
GROUPS = [*dict.fromkeys(each.group for each in TIMED), *OTHERS]


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*GROUPS, *NAMES]), help="Repeatable.")
@click.option("--peers", multiple=True, type=click.Choice(PEERS), help="These libraries.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
@click.option("--size", default=1000, show_default=True, help="The order of the matrices.")
@click.option("--dtype", default="float64", type=click.Choice(["float32", "float64"]))
@click.option("--smoke", is_flag=True, help="Compare values at full size; time nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(
    only: Sequence[str],
    peers: Sequence[str],
    rounds: int,
    size: int,
    dtype: str,
    smoke: bool,
    file: Path | None,
) -> None:
    """Measure the rows and say which requirements are met."""
    rounds, peers = (0, ("numpy", "blas")) if smoke else (rounds, peers)
    found = {name: peer and of_several(peer) for name, peer in load_all(peers or PEERS).items()}
    if "blas" in (peers or PEERS):
        found["blas"] = blas_peer(dtype)
    report = {**facts(found, rounds, size), "dtype": dtype}
    begin = time.perf_counter()
    there = {name: peer for name, peer in found.items() if peer is not None}
    wanted = set(only or GROUPS)
    chosen = [each for each in TIMED if {each.group, each.work.name} & wanted]
    console = Console(stderr=True)
    report["rows"] = [
        measure(each, there, rounds, size, dtype)
        for each in track(chosen, "measuring", console=console, transient=True)
    ]
    for group, rows in OTHERS.items():
        left_out = smoke and group in TIMES
        report["rows"] += rows() if group in wanted and not left_out else []
    if smoke:
        compare(report, ", ".join(TIMES))
        return
    report["compile"] = None
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


if __name__ == "__main__":
    main()
