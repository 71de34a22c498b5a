"""Writes docs/performance.md and docs/performance.svg from the figures of one run of each bench.

Takes docs/performance.json, which `python bench/kernels.py --json docs/performance.json` writes,
and docs/assignment.json, docs/algebra.json, docs/plans.json and docs/batching.json, each from the
bench of that name, if they are there; hands on the page and the picture of the first.
Run: python docs/performance.py
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

FIGURES = Path(__file__).with_suffix(".json")
LOOPS = FIGURES.with_name("assignment.json")
ALGEBRA = FIGURES.with_name("algebra.json")
PLANS = FIGURES.with_name("plans.json")
BATCHING = FIGURES.with_name("batching.json")
HEAD = """# Performance

Made by `python docs/performance.py` from one run of `python bench/kernels.py`: {date}, {machine},
{threads} threads for everybody, medians of {rounds} rounds in which the libraries take turns, every
result newly allocated. {versions}. What each row computes, how the
threads are held and what a turn is stands in `bench/README.md`.

![How many times as fast Tenfold is](performance.svg)

A cell gives the milliseconds of a library, and how many times as fast Tenfold is. The copy is a C++
program of a few lines (`bench/copy.cpp`) that computes nothing and stores past the cache: it moves
{rate} here. The share of it counts every input and every result once, so what needs
arithmetic more than memory has a small one, and what a cache holds may have more than 100 %.

"""
LOOPS_HEAD = """
## Assignment

Loops that assign to slices, from one run of `python bench/assignment.py`: {date}, {machine},
{threads} threads for everybody, medians of {rounds} rounds. Every call begins with copies of the
same arrays, which are not timed, and does all its steps; the same text is run by NumPy and Tenfold.
JAX has `x.at[key].set(value)` in a compiled step that may write over its array.

"""
ALGEBRA_HEAD = """
## Linear algebra

From one run of `python bench/algebra.py`: {date}, {machine}, {threads} threads for everybody,
medians of {rounds} rounds. Everybody computes what is written, of matrices of order {size_factor},
{dtype}, unless the row says otherwise; BLAS by hand is the best sequence of calls of
`scipy.linalg.blas` and `scipy.linalg.lapack` who knows the best order and all flags. "Declared" is
a promise to Tenfold, which the author of the calls by hand knows too. `bench/README.md` says how
multiply-adds are counted, and of what experiments these are.

"""
PLANS_HEAD = """
## Plans

Small arrays, new shapes, new structures, new processes and memory, from one run of
`python bench/plans.py`: {date}, {machine}, {threads} threads for everybody, medians of {rounds}
rounds. Expressions are built and evaluated in every call; NumPy runs the same text; JAX and Numba
have compiled it before, where the row does not say otherwise. What each row does stands in
`bench/README.md`.

"""
BATCHING_HEAD = """
## Trees, graphs and programs of their own

Functions of samples whose structure differs, from one run of `python bench/batching.py`: {date},
{machine}, {threads} threads for everybody, medians of {rounds} rounds. A function or operation is
called for each node, neighbour or step, and everything is built anew in every call. DyNet batches
by itself, PyTorch and JAX run one operation after the other. Tenfold computes equal parts of trees
once, the others each time: 91,285 of the 136,600 nodes of these trees' graph equal others. The
examples are in `examples/`.

"""
TITLES = {"numexpr": "NumExpr", "numpy": "NumPy", "numba": "Numba", "jax": "JAX",
          "torch": "PyTorch", "torch.compile": "torch.compile",
          "blas": "BLAS by hand", "dynet": "DyNet"}  # fmt: skip
COLOURS = {"numexpr": "#8c6bb1", "numpy": "#4c78a8", "numba": "#2a9d8f", "jax": "#e08214",
           "torch": "#d6404e", "torch.compile": "#7f2704"}  # fmt: skip
"""In the order of the legend; each is told from the others in grey, too, by its letter."""
LETTERS = {"numexpr": "E", "numpy": "N", "numba": "B", "jax": "J", "torch": "T",
           "torch.compile": "C"}  # fmt: skip

LEFT, RIGHT, TOP, STEP, WIDTH, DOT = 320, 190, 64, 30, 960, 16
"""Points: the margins of the picture, the height of a row, the width of all, and of a dot."""
OPENING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" '
    'font-family="sans-serif" font-size="13" fill="#222">'
)


def page(
    report: Row,
    loops: Row | None = None,
    algebra: Row | None = None,
    plans: Row | None = None,
    batching: Row | None = None,
) -> str:
    """Return the page."""
    rates = [row["copy_rate"] for row in report["rows"] if "copy_rate" in row]
    rate = f"{statistics.median(rates):.1f} GB/s" if rates else "(not measured)"
    facts = {**report, "versions": versions(report), "rate": rate}
    parts = [HEAD.format(**facts), *table(report), compile_section(report)]
    parts.append(loops_section(loops) if loops else "")
    parts.append(algebra_section(algebra) if algebra else "")
    parts.append(plans_section(plans) if plans else "")
    parts.append(batching_section(batching) if batching else "")
    return "".join(parts)


def versions(report: Row) -> str:
    known = {**TITLES, "python": "Python", "tenfold": "Tenfold"}
    found = {known[name]: version for name, version in report["versions"].items() if version}
    return ", ".join(f"{name} {version}" for name, version in found.items() if "." not in name)


def peers_of(report: Row) -> list[str]:
    """The libraries that were measured, in the order of the legend."""
    return [name for name in TITLES if any(name in row["milliseconds"] for row in report["rows"])]


def table(report: Row) -> Iterator[str]:
    """The lines of the table of works."""
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
    """A requirement and whether it is met."""
    if entry["met"] is None:
        return f"{entry['required']}: not measured"
    found = entry["found"]
    shown = f"{found:,}" if isinstance(found, int) else f"{found:.3g}" if found else ""
    met = "met" if entry["met"] else f"**missed** ({shown})" if shown else "**missed**"
    return f"{entry['required']}: {met}"


def compile_section(report: Row) -> str:
    """How compile time grows."""
    row = report["compile"]
    if row is None:
        return ""
    pairs = zip(row["operations"], row["milliseconds"], strict=True)
    lines = "".join(f"| {count:,} | {time:.1f} |\n" for count, time in pairs)
    required = "; ".join(map(verdict, row["verdicts"]))
    return (
        "\n## Compile time\n\nTo plan, render and compile an expression that was never seen, with "
        f"nothing cached: {required}.\n\n| Operations | ms |\n|--:|--:|\n{lines}"
    )


def loops_section(report: Row) -> str:
    """Loops that assign."""
    return LOOPS_HEAD.format(**report) + "".join(table(report))


def algebra_section(report: Row) -> str:
    """Expressions of matrices, layers, planning and counters."""
    return ALGEBRA_HEAD.format(**report) + "".join(table(report))


def plans_section(report: Row) -> str:
    """Known plans of small arrays, and what is new."""
    return PLANS_HEAD.format(**report) + "".join(table(report))


def batching_section(report: Row) -> str:
    """Functions that are batched by themselves."""
    return BATCHING_HEAD.format(**report) + "".join(table(report))


def picture(report: Row) -> str:
    """Return the picture: for each work, how many times as fast as each library Tenfold is."""
    peers, rows = peers_of(report), report["rows"]
    ratios = [time / row["milliseconds"]["tenfold"]
              for row in rows for time in row["milliseconds"].values()]  # fmt: skip
    low, high = min(0.5, *ratios) / 1.15, max(2, *ratios) * 1.15
    height = TOP + STEP * len(rows) + 40
    parts = [
        OPENING.format(WIDTH, height),
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *axis(low, high, height),
        *legend(peers),
    ]
    for number, row in enumerate(rows):
        parts += line(row, TOP + STEP * number + STEP / 2, (low, high))
    return "\n".join([*parts, "</svg>", ""])


def place(ratio: float, bounds: tuple[float, float]) -> float:
    """Where a ratio lies on the axis, which is logarithmic."""
    low, high = map(math.log, bounds)
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(ratio) - low) / (high - low)


def axis(low: float, high: float, height: int) -> Iterator[str]:
    marks = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    for mark in marks:
        x, strong = place(mark, (low, high)), mark == 1
        colour, thick = ("#222", 2) if strong else ("#ddd", 1)
        yield (
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 40}" '
            f'stroke="{colour}" stroke-width="{thick}"/>'
        )
        label = "Tenfold" if strong else f"{mark:g}x"
        yield text(x, height - 24, label, "middle")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield text(middle, height - 6, "how many times as fast Tenfold is (logarithmic)", "middle")


def legend(peers: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(peers):
        x = LEFT - 80 + 116 * number
        yield from dot(x, 22, name)
        yield text(x + 14, 27, TITLES[name])
    yield text(WIDTH - RIGHT + 20, TOP - 12, "Tenfold", weight="bold")
    yield text(WIDTH - 10, TOP - 12, "of copy", "end", "bold")


def line(row: Row, y: float, bounds: tuple[float, float]) -> Iterator[str]:
    """One work: its title, a dot for each library, Tenfold's time and share of the copy."""
    times = row["milliseconds"]
    yield text(LEFT - 16, y + 4, row["title"], "end")
    yield f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#eee"/>'
    found = sorted(
        (place(times[name] / times["tenfold"], bounds), name) for name in times if name != "tenfold"
    )
    places = [-math.inf, *(x for x, _ in found), math.inf]
    for number, (x, name) in enumerate(found):
        near = min(x - places[number], places[number + 2] - x) < DOT
        side = (-1) ** number * DOT * 0.45 if near else 0  # dots that would hide each other part
        yield from dot(x, y + side, name)
    yield text(WIDTH - RIGHT + 20, y + 4, f"{times['tenfold']:.3g} ms")
    if "copy_share" in row:
        yield text(WIDTH - 10, y + 4, f"{row['copy_share']:.0%}", "end")


def dot(x: float, y: float, name: str) -> Iterator[str]:
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT // 2}" fill="{COLOURS[name]}"/>'
    yield (
        f'<text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" font-size="10" '
        f'font-weight="bold" fill="white">{LETTERS[name]}</text>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )


if __name__ == "__main__":
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    others = [
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        for file in (LOOPS, ALGEBRA, PLANS, BATCHING)
    ]
    FIGURES.with_suffix(".md").write_text(page(figures, *others), encoding="utf-8")
    FIGURES.with_suffix(".svg").write_text(picture(figures), encoding="utf-8")
