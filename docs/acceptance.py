"""Acceptance page: every row of the stored bench runs, with its required bounds.

Input: the dicts of docs/*.json, by the name of their bench. Output: the text of
bench/acceptance.md, with one section for each bench.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]

TITLES = {"numexpr": "NumExpr", "numpy": "NumPy", "numba": "Numba", "jax": "JAX",
          "torch": "PyTorch", "torch.compile": "torch.compile",
          "blas": "BLAS by hand", "dynet": "DyNet"}  # fmt: skip
"""Libraries in the order of the columns, as a page writes them."""

HEAD = """# Acceptance

All rows of the stored bench runs, with the bounds that Tenfold must meet.
[Performance](../docs/performance.md) is the table for users. [Benchmarks](README.md) defines each
row and the method. `python docs/performance.py` writes both pages from `docs/*.json`.

A cell gives a library's time in milliseconds, then how many times as fast Tenfold is. Each run had
{threads} threads. The libraries took turns, and each time is the median of the rounds.
Every result was newly allocated.

{versions}.
"""

SECTIONS = {
    "kernels": """
## Kernels

`bench/kernels.py`, {date}, {machine}, {rounds} rounds.

The copy is `bench/copy.cpp`: it computes nothing and bypasses the cache. It moved {rate}.
"Of copy" counts every input and every result once. A row with much arithmetic has a small share.
A row whose arrays fit in the cache may exceed 100 %.
""",
    "assignment": """
## Assignment

Loops that assign to slices: `bench/assignment.py`, {date}, {machine}, {rounds} rounds.

A call does all steps of its row on untimed copies of the same arrays. NumPy and Tenfold run the
same text. JAX uses `x.at[key].set(value)` in a compiled step, with its array donated.
""",
    "algebra": """
## Linear algebra

`bench/algebra.py`, {date}, {machine}, {rounds} rounds.

Each library computes the formula as written. Matrices have order {size_factor} and are {dtype},
unless the row differs. BLAS by hand is the best sequence of calls of `scipy.linalg.blas` and
`scipy.linalg.lapack`: the best order, with all flags. "Declared" is a promise of structure, which
BLAS by hand uses too.
""",
    "plans": """
## Plans

Small arrays, new shapes, new structures, new processes and memory: `bench/plans.py`, {date},
{machine}, {rounds} rounds.

Each call builds and evaluates its expressions. NumPy runs the same text. JAX and Numba have
compiled it before, unless the row differs.
""",
    "batching": """
## Dynamic batching

Functions of samples whose structure differs: `bench/batching.py`, {date}, {machine}, {rounds}
rounds.

Each node, neighbour or step is a call of a function or an operation. Each call builds everything
anew. DyNet batches automatically; PyTorch and JAX run one operation after the other. Tenfold
computes equal parts of trees once (CSE), the others each time: 91,285 of the 136,600 nodes of this
graph of trees equal others. The programs are in `examples/`.
""",
    "engine": """
## Engine

Pushes, sums, launches, products and trees: `bench/engine.py`, {date}, {machine}, {rounds} rounds.
""",
}
"""The introduction of each section, by the bench."""


def acceptance(reports: Mapping[str, Row]) -> str:
    """Return the page."""
    (threads,) = {report["threads"] for report in reports.values()}
    parts = [HEAD.format(threads=threads, versions=versions(reports))]
    for name, text in SECTIONS.items():
        if name in reports:
            report = reports[name]
            parts += [text.format(**report, rate=copy_rate(report)), "\n", *table(report)]
            parts.append(compile_section(report))
        else:
            parts.append(f"\nNo run of `bench/{name}.py` is stored.\n")
    return "".join(parts)


def versions(reports: Mapping[str, Row]) -> str:
    """Every library of these runs with its version, Tenfold first and Python last."""
    known = {"tenfold": "Tenfold", **TITLES, "blas": "SciPy", "python": "Python"}
    found = {n: v for report in reports.values() for n, v in report["versions"].items() if v}
    return ", ".join(f"{known[n]} {found[n]}" for n in known if n in found and "." not in n)


def copy_rate(report: Row) -> str:
    rates = [row["copy_rate"] for row in report["rows"] if "copy_rate" in row]
    return f"{statistics.median(rates):.1f} GB/s" if rates else "(not measured)"


def peers_of(report: Row) -> list[str]:
    """The measured libraries, in the order of the columns."""
    return [name for name in TITLES if any(name in row["milliseconds"] for row in report["rows"])]


def table(report: Row) -> Iterator[str]:
    """The lines of the table of one run."""
    peers = peers_of(report)
    copied = any("copy_share" in row for row in report["rows"])
    names = ["Work", "Tenfold", *(TITLES[name] for name in peers)]
    names += ["of copy", "Required"] if copied else ["Required"]
    yield "| " + " | ".join(names) + " |\n"
    yield "|---" + "|--:" * (len(names) - 2) + "|---|\n"
    for row in report["rows"]:
        cells = [row["title"].replace("*", "\\*")]  # Markdown would take ** for bold
        cells += [cell(row, name) for name in ("tenfold", *peers)]
        if copied:
            cells.append(f"{row['copy_share']:.0%}" if "copy_share" in row else "")
        cells.append("<br>".join(map(verdict, row["verdicts"])))
        yield "| " + " | ".join(cells) + " |\n"


def cell(row: Row, name: str) -> str:
    times = row["milliseconds"]
    if name not in times:
        return ""
    text = f"{times[name]:.3g}"
    return f"**{text}**" if name == "tenfold" else f"{text} ({times[name] / times['tenfold']:.1f}x)"


def verdict(entry: Row) -> str:
    """A bound and whether it is met."""
    if entry["met"] is None:
        return f"{entry['required']}: not measured"
    found = entry["found"]
    shown = f"{found:,}" if isinstance(found, int) else f"{found:.3g}" if found else ""
    met = "met" if entry["met"] else f"**missed** ({shown})" if shown else "**missed**"
    return f"{entry['required']}: {met}"


def compile_section(report: Row) -> str:
    """Compile time by the number of operations."""
    row = report["compile"]
    if row is None:
        return ""
    pairs = zip(row["operations"], row["milliseconds"], strict=True)
    lines = "".join(f"| {count:,} | {time:.1f} |\n" for count, time in pairs)
    required = "; ".join(map(verdict, row["verdicts"]))
    return (
        "\n### Compile time\n\nTime to plan, render and compile a new expression, with an empty "
        f"cache. Required: {required}.\n\n| Operations | ms |\n|--:|--:|\n{lines}"
    )
