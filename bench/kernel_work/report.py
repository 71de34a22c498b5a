"""A report: what a bench found, and what a reader must know to believe it.

Takes works and peers; hands on a dict, which is printed as a table and may be written as JSON.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track
from value_checks import Comparison

from kernel_work import THREADS
from kernel_work.measure import Row, measure
from kernel_work.peers import Peer
from kernel_work.rows import Work
from kernel_work.table import table
from tenfold import settings
from tenfold.machine import processor

WIDTH = 160
"""Columns of the table where the output is no terminal."""


def facts(peers: Mapping[str, Peer | None], rounds: int, factor: float) -> Row:
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
    works: Sequence[Work],
    found: Mapping[str, Peer | None],
    copy: Callable[[], float] | None,
    rounds: int,
    factor: float,
) -> Iterator[Row]:
    """The rows of these works, one by one."""
    peers = {name: peer for name, peer in found.items() if peer is not None}
    for work in track(works, "measuring", console=Console(stderr=True), transient=True):
        yield measure(work, peers, copy, rounds, factor)


def compare(report: Row, left_out: str = "") -> None:
    """Print how values compare with those of NumPy; end with 1 if they differ."""
    comparison = Comparison()
    comparison.rows(report["rows"])
    comparison.end(left_out)


def show(report: Row, file: Path | None) -> None:
    """Print the table, and write the figures to a file if one is given."""
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    console.print(table(report))
    if file is not None:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
