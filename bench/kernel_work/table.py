"""The rows as a table for a terminal.

Takes the dict that bench/kernels.py also writes as JSON; hands on rich's table.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]


def table(report: Row) -> Table:
    """All rows. A ratio says how many times as fast Tenfold is."""
    peers = [name for name in report["versions"] if name not in ("tenfold", "python")]
    made = Table(title=title(report), show_lines=True)
    made.add_column("work")
    copied = any("copy_share" in row for row in report["rows"])
    for name in ("tenfold", *peers, *(["% of copy"] if copied else [])):
        made.add_column(name, justify="right")
    made.add_column("required")
    for row in report["rows"]:
        cells = [cell(row, name, report["versions"]) for name in ("tenfold", *peers)]
        if copied:
            share = row.get("copy_share")
            cells.append("" if share is None else f"{share:.0%}")
        made.add_row(escape(row["title"]), *cells, "\n".join(map(verdict, row["verdicts"])))
    if (compiling := report["compile"]) is not None:
        pairs = zip(compiling["operations"], compiling["milliseconds"], strict=True)
        times = "\n".join(f"{count:,}: {ms:.1f}" for count, ms in pairs)
        empty = [""] * (len(peers) + copied)
        required = "\n".join(map(verdict, compiling["verdicts"]))
        made.add_row(compiling["title"], times, *empty, required)
    return made


def title(report: Row) -> str:
    """What all figures have in common, with the rate of the copy that is the floor."""
    text = f"milliseconds, medians of {report['rounds']} rounds, {report['threads']} threads"
    rates = [row["copy_rate"] for row in report["rows"] if "copy_rate" in row]
    return text + (f", copy {statistics.median(rates):.1f} GB/s" if rates else "")


def cell(row: Row, peer: str, versions: Mapping[str, str | None]) -> str:
    """The time of one peer, and how many times as fast Tenfold is."""
    milliseconds = row["milliseconds"].get(peer)
    if milliseconds is None:
        return "" if versions[peer] or not row["milliseconds"] else "not installed"
    text = f"{milliseconds:.3g}"
    if peer != "tenfold":
        text += f"\n{milliseconds / row['milliseconds']['tenfold']:.2f}x"
    return text + (f"\n[red]{row['wrong'][peer]}[/]" if peer in row["wrong"] else "")


def verdict(entry: Row) -> str:
    """A requirement, what was found, and whether that meets it."""
    if entry["met"] is None:
        return f"[yellow]not measured[/] {entry['required']}"
    word = "[green]met[/]" if entry["met"] else "[red]missed[/]"
    found = "" if entry["found"] is None else f" ({number(entry['found'])})"
    return f"{word} {entry['required']}{found}"


def number(found: float) -> str:
    """A count in full, anything else to three digits."""
    return f"{found:,}" if isinstance(found, int) else f"{found:.3g}"
