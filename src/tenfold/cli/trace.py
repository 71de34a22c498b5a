"""`tenfold trace`: summarises a saved timeline as tables.

Takes a file that `with tn.profile() as p: ...` and `p.save("t.json")` wrote; hands on tables on
stdout, or with `--json` one JSON object.

    tenfold trace t.json --top 5
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tenfold.io.input_errors import InputError, one_line
from tenfold.io.timeline_file import read_timeline
from tenfold.io.trace_summary import TraceSummary, summarise

WIDTH = 100
"""Columns of the tables where the output is not a terminal."""
BAR = 40
"""Columns of the longest bar of a histogram."""
LINKS = 12
"""Links of the critical path that are shown, the longest."""


@click.command("trace")
@click.argument("file", type=click.Path())
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="Operators.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trace_command(file: str, top: int, as_json: bool) -> None:
    """Summarise a timeline that tn.profile() saved.

    Which operators took longest, what operators waited for, how long each thread had nothing to
    do, how many operators were run at once, and the chain of operators that nothing could have
    shortened but faster work.
    """
    summary = summarise(read_timeline(file))
    if not summary.launches and not summary.pushes:
        raise InputError(f"{file}: nothing was recorded: it has no complete events")
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(summary), indent=2))
        return
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    for part in page(summary, top):
        console.print(part)


def page(summary: TraceSummary, top: int) -> Iterator[Table | Text]:
    """The tables, one by one, and the sentences between them."""
    pushed = f", {summary.pushes} pushes" if summary.pushes else ""
    yield Text(f"{milliseconds(summary.span)} ms, {summary.launches} launches{pushed}")
    yield busiest(summary, top)
    if summary.waits:
        yield waits(summary, top)
    yield tracks(summary)
    if summary.mean_batch is None:
        yield Text("batches: none, for nothing was pushed to an engine")
    else:
        yield batches(summary)
    if summary.apart:
        yield split_batches(summary, top)
    if summary.critical is None:
        yield Text("critical path: not known, for nothing was pushed to an engine")
    else:
        yield critical(summary)
    for name, peak in summary.peaks.items():
        yield Text(f"peak of {one_line(name)}: {peak:,.0f}")


def busiest(summary: TraceSummary, top: int) -> Table:
    """The operators that took longest, and what the others took together."""
    table = columns("busiest", "launches", "operators", "ms", "share", "mean us", "longest us")
    whole = sum(each.total for each in summary.busiest)
    for each in summary.busiest[:top]:
        still = ", still running" if each.running else ""
        table.add_row(
            Text(one_line(each.name) + still),
            f"{each.launches:,}",
            "" if each.operators is None else f"{each.operators:,}",
            milliseconds(each.total),
            share(each.total, whole),
            f"{each.total / each.launches:,.1f}",
            f"{each.longest:,.1f}",
        )
    if others := summary.busiest[top:]:
        total = sum(each.total for each in others)
        launches = f"{sum(each.launches for each in others):,}"
        name = f"{len(others)} others"
        table.add_row(name, launches, "", milliseconds(total), share(total, whole), "", "")
    return table


def waits(summary: TraceSummary, top: int) -> Table:
    """The operators that waited longest: for their inputs, then for their batch or a thread."""
    table = columns("mean us of an operator", "operators", "for inputs", "for a launch", "running")
    for each in summary.waits[:top]:
        times = (each.for_inputs, each.for_launch, each.running)
        means = (f"{time / each.operators:,.1f}" for time in times)
        table.add_row(Text(one_line(each.name)), f"{each.operators:,}", *means)
    return table


def tracks(summary: TraceSummary) -> Table:
    """How long each thread worked."""
    table = columns("thread", "slices", "busy ms", "idle")
    for each in summary.tracks:
        idle = f"{each.idle_share:.1%}"
        table.add_row(Text(one_line(each.name)), f"{each.slices:,}", milliseconds(each.busy), idle)
    return table


def batches(summary: TraceSummary) -> Table:
    """How many operators were run at once."""
    table = columns(f"batch (mean {summary.mean_batch:.1f})", "launches")
    table.add_column("", no_wrap=True)
    longest = max(bar.launches for bar in summary.batches)
    for bar in summary.batches:
        size = f"{bar.least}" if bar.least == bar.most else f"{bar.least} to {bar.most}"
        drawn = "#" * -(-bar.launches * BAR // longest)
        table.add_row(size, f"{bar.launches:,}", drawn)
    return table


def split_batches(summary: TraceSummary, top: int) -> Table:
    """Why batches were not one with an earlier batch of the same function or operation."""
    table = columns("batches of their own", "launches")
    table.add_column("why", overflow="fold")
    for each in summary.apart[:top]:
        table.add_row(Text(one_line(each.name)), f"{each.launches:,}", Text(one_line(each.reason)))
    if others := summary.apart[top:]:
        launches = sum(each.launches for each in others)
        table.add_row(f"{len(others)} others", f"{launches:,}", "")
    return table


def critical(summary: TraceSummary) -> Table:
    """The longest links of the critical path, in their order."""
    links = summary.critical or ()
    total = sum(link.total for link in links)
    count = sum(link.count for link in links)
    of_span = share(total, summary.span)
    title = f"critical path: {milliseconds(total)} ms of {count} launches, {of_span} of the time"
    table = columns(title, "launches", "ms", "share")
    shown = set(sorted(range(len(links)), key=lambda index: -links[index].total)[:LINKS])
    for index, link in enumerate(links):
        if index in shown:
            name = Text(one_line(link.name))
            part = share(link.total, total)
            table.add_row(name, f"{link.count:,}", milliseconds(link.total), part)
    if len(links) > len(shown):
        table.add_row(f"{len(links) - len(shown)} shorter links between them", "", "", "")
    return table


def columns(first: str, *others: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), title_justify="left")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def milliseconds(microseconds: float) -> str:
    """A time in milliseconds, to the microsecond."""
    return f"{microseconds / 1e3:,.3f}"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent; of nothing it is all."""
    return f"{part / whole if whole else 1.0:.1%}"
