"""`tenfold trace`: summarises a saved timeline as tables.

Takes a file that `with tn.profile() as p: ...` and `p.save("t.json")` wrote; prints tables on
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

TABLE_WIDTH = 100
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
    console = console if console.is_terminal else Console(width=TABLE_WIDTH)
    for section in page(summary, top):
        console.print(section)


def page(summary: TraceSummary, top: int) -> Iterator[Table | Text]:
    """Yield the tables and the lines of text between them."""
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
    """Return the operators with the longest total times, and the sum of the remaining ones."""
    table = columns("busiest", "launches", "operators", "ms", "share", "mean us", "longest us")
    all_time = sum(row.total for row in summary.busiest)
    for row in summary.busiest[:top]:
        running_text = ", still running" if row.running else ""
        table.add_row(
            Text(one_line(row.name) + running_text),
            f"{row.launches:,}",
            "" if row.operators is None else f"{row.operators:,}",
            milliseconds(row.total),
            share(row.total, all_time),
            f"{row.total / row.launches:,.1f}",
            f"{row.longest:,.1f}",
        )
    if remaining := summary.busiest[top:]:
        total = sum(row.total for row in remaining)
        launches = f"{sum(row.launches for row in remaining):,}"
        name = f"{len(remaining)} others"
        table.add_row(name, launches, "", milliseconds(total), share(total, all_time), "", "")
    return table


def waits(summary: TraceSummary, top: int) -> Table:
    """Return the operators with the longest waits: for inputs, then for a batch or thread."""
    table = columns("mean us of an operator", "operators", "for inputs", "for a launch", "running")
    for row in summary.waits[:top]:
        times = (row.for_inputs, row.for_launch, row.running)
        means = (f"{time / row.operators:,.1f}" for time in times)
        table.add_row(Text(one_line(row.name)), f"{row.operators:,}", *means)
    return table


def tracks(summary: TraceSummary) -> Table:
    """Return the busy time of each thread."""
    table = columns("thread", "slices", "busy ms", "idle")
    for track in summary.tracks:
        idle = f"{track.idle_share:.1%}"
        table.add_row(
            Text(one_line(track.name)), f"{track.slices:,}", milliseconds(track.busy), idle
        )
    return table


def batches(summary: TraceSummary) -> Table:
    """Return the histogram of batch sizes."""
    table = columns(f"batch (mean {summary.mean_batch:.1f})", "launches")
    table.add_column("", no_wrap=True)
    longest = max(bar.launches for bar in summary.batches)
    for bar in summary.batches:
        size = f"{bar.least}" if bar.least == bar.most else f"{bar.least} to {bar.most}"
        bar_text = "#" * -(-bar.launches * BAR // longest)
        table.add_row(size, f"{bar.launches:,}", bar_text)
    return table


def split_batches(summary: TraceSummary, top: int) -> Table:
    """Return the reasons for batch splits by function or operation."""
    table = columns("batches of their own", "launches")
    table.add_column("why", overflow="fold")
    for row in summary.apart[:top]:
        table.add_row(Text(one_line(row.name)), f"{row.launches:,}", Text(one_line(row.reason)))
    if remaining := summary.apart[top:]:
        launches = sum(row.launches for row in remaining)
        table.add_row(f"{len(remaining)} others", f"{launches:,}", "")
    return table


def critical(summary: TraceSummary) -> Table:
    """Return the longest links of the critical path, in their order."""
    links = summary.critical or ()
    total = sum(link.total for link in links)
    count = sum(link.count for link in links)
    of_span = share(total, summary.span)
    title = f"critical path: {milliseconds(total)} ms of {count} launches, {of_span} of the time"
    table = columns(title, "launches", "ms", "share")
    shown_links = set(sorted(range(len(links)), key=lambda index: -links[index].total)[:LINKS])
    for index, link in enumerate(links):
        if index in shown_links:
            name = Text(one_line(link.name))
            share_text = share(link.total, total)
            table.add_row(name, f"{link.count:,}", milliseconds(link.total), share_text)
    if len(links) > len(shown_links):
        table.add_row(f"{len(links) - len(shown_links)} shorter links between them", "", "", "")
    return table


def columns(text_column: str, *number_columns: str) -> Table:
    """Return a table with a text column and number columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), title_justify="left")
    table.add_column(text_column, overflow="fold")
    for name in number_columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def milliseconds(microseconds: float) -> str:
    """Return a time in milliseconds as text, to the microsecond."""
    return f"{microseconds / 1e3:,.3f}"


def share(amount: float, total: float) -> str:
    """Return a share in percent as text; 100 % of a total of 0."""
    return f"{amount / total if total else 1.0:.1%}"
