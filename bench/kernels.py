"""What the kernels must show: Tenfold beside NumPy, NumExpr, Numba, JAX and PyTorch, in one run.

Run: python bench/kernels.py (see README.md beside it). Each library that is installed takes part.
Takes nothing but options; prints a table and, with --json, writes what docs/performance.py reads.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
from kernel_work import THREADS  # isort: skip

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from kernel_work import compile_time, floor
from kernel_work.measure import Row, measure
from kernel_work.peers import LOADERS, Peer, load
from kernel_work.rows import WORKS
from kernel_work.table import table
from rich.console import Console
from rich.progress import track

import tenfold as tn
from tenfold import _native, settings
from tenfold.devices.device import DEVICES
from tenfold.io.machine import processor
from tenfold.ir.graph import Graph

NAMES = [*(work.name for work in WORKS), "compile-time"]
WIDTH = 160
"""Columns of the table where the output is no terminal."""


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="These rows; repeatable.")
@click.option("--peers", multiple=True, type=click.Choice(list(LOADERS)), help="These libraries.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1))
@click.option("--size-factor", default=1.0, show_default=True, help="Shrink every work for a look.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Also write the figures.")
def main(
    only: Sequence[str], peers: Sequence[str], rounds: int, size_factor: float, file: Path | None
) -> None:
    """Measure the rows and say which requirements are met."""
    found = {name: load(name) for name in LOADERS if not peers or name in peers}
    for always in ("tenfold", "numpy"):
        found[always] = found.get(always) or load(always)
    report = facts(found, rounds, size_factor)
    begin = time.perf_counter()
    chosen, compiles = only or NAMES, compiler()
    report["rows"] = list(measured(chosen, found, rounds, size_factor))
    report["compile"] = None
    if "compile-time" in chosen:
        if compiles is not None:
            report["compile"] = compile_time.measure(compiles, rounds)
        else:
            click.echo(f"device {report['device']!r} compiles nothing: no compile time", err=True)
    report["seconds"] = time.perf_counter() - begin
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    console.print(table(report))
    if file is not None:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def facts(peers: dict[str, Peer | None], rounds: int, factor: float) -> Row:
    """What a reader must know to believe the figures."""
    versions = {name: peer.version if peer else None for name, peer in peers.items()}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": processor()[0] or platform.processor(),
        "system": platform.platform(),
        "threads": THREADS,
        "device": settings.get("device"),
        "rounds": rounds,
        "size_factor": factor,
        "versions": {**versions, "python": platform.python_version()},
    }


def measured(
    names: Sequence[str], found: dict[str, Peer | None], rounds: int, factor: float
) -> Iterator[Row]:
    """The rows of these names, one by one."""
    peers = {name: peer for name, peer in found.items() if peer is not None}
    works = [work for work in WORKS if work.name in names]
    copy = floor.build() if works else None
    for work in track(works, "measuring", console=Console(stderr=True), transient=True):
        yield measure(work, peers, copy, rounds, factor)


def compiler() -> Callable[[tn.Array], object] | None:
    """What plans and compiles an expression without running it; None if the device does not."""
    compile_graph = getattr(DEVICES[str(settings.get("device"))], "compile", None)
    if compile_graph is None:
        return None
    return lambda array: compile_graph(Graph.of([_native.node_of(array)]))


if __name__ == "__main__":
    main()
