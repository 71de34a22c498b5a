"""Performance page: one table of workloads, from the stored bench runs.

Input: docs/performance.json, which `python bench/kernels.py --json docs/performance.json` writes,
and docs/{assignment,algebra,plans,batching,engine}.json of the other benches, where they exist.
Output: docs/performance.md, docs/performance.svg and bench/acceptance.md.
Example: `python docs/performance.py`
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from acceptance import TITLES, Row, acceptance, versions  # beside this file
from speed_picture import picture

HERE = Path(__file__).resolve().parent
FILES = {"kernels": "performance", "assignment": "assignment", "algebra": "algebra",
         "plans": "plans", "batching": "batching", "engine": "engine"}  # fmt: skip
"""The stored run of each bench: the name of its file in docs/."""

HEAD = """# Performance

{facts}

`python docs/performance.py` writes this page from the stored runs in `docs/*.json`. The programs in
`bench/` repeat the runs: [Benchmarks](../bench/README.md) has the commands and the method.
[Acceptance](../bench/acceptance.md) has every row, every library and the required bounds.

![How many times as fast Tenfold is](performance.svg)

| Work | Tenfold | Against NumPy | Against the best other library |
|---|--:|--:|--:|
"""
TAIL = """
## How to read it

- `2x` means that Tenfold takes half the time; **slower** marks every ratio below 0.95.
- BLAS by hand is expert code on SciPy's BLAS and LAPACK: the best order of calls, with all flags.
- Tenfold gains most on formulas of several operations, and where algebra saves work; a plain
  `A @ B` or `solve` is at most as fast as in the best other library.
- It is slower on work that is small and new each time: different expressions that run once, lists
  of tiny vectors, one tree at a time.
- It does not pay in a short process with an empty kernel cache: see the rows of a first result.
"""


class Workload(NamedTuple):
    """One row of the table: a row of a stored run, as a user would call it."""

    name: str
    """The row of the run; `compile-10` is compile time of 10 operations."""
    title: str = ""
    """That of the run if empty."""
    other: str = ""
    """A library whose milliseconds only the title of the row has."""
    same_work: tuple[str, ...] = ()
    """Rows of the same work in other batches: each other library counts with its best."""


class Group(NamedTuple):
    """Rows of one kind, from one or several benches."""

    title: str
    workloads: dict[str, tuple[Workload, ...]]
    """By the bench."""


JOINED = "PyTorch, graphs joined by hand"
GROUPS = (
    Group("Elementwise", {"kernels": (
        Workload("linear32", "`(a+b)*2+a`, float32, 16 M"),
        Workload("linear64", "`2*a+3*b-c*a`, float64, 4 M"),
        Workload("waves", "`sin(a)**2+cos(b)**2+exp(-c)`, float64, 4 M"),
        Workload("black-scholes", "Black-Scholes prices, float32, 4 M"),
        Workload("add-transposed", "`a + b.T`, float32, 4096x4096"),
    )}),
    Group("Reductions", {"kernels": (
        Workload("distance", "`sum((a-b)**2)`, float64, 4 M"),
        Workload("softmax", "softmax of rows, float32, 8192x1024"),
        Workload("layer-norm", "layer norm of rows, float32, 8192x1024"),
        Workload("variance", "variance of rows, float32, 8192x1024"),
        Workload("sum-axis-0", "sum over axis 0, float32, 256x512x256"),
        Workload("sum-axis-2", "sum over axis 2, float32, 256x512x256"),
    )}),
    Group("Linear algebra, float64, order 1000", {"algebra": (
        Workload("gemm", "`A @ B`"),
        Workload("syrk", "`A @ A.T`"),
        Workload("vector-right", "`H.T @ H @ x`"),
        Workload("chain-right", "`A @ B @ C`, C 1000x200"),
        Workload("element-sum", "`(A + B)[2, 2]`"),
        Workload("trmm", "`tril(A) @ B`"),
        Workload("solve", "`solve(A, B)`"),
        Workload("solve-definite", "`solve(S, B)`, S declared positive-definite"),
        Workload("inverse-vector", "`inv(A) @ b`"),
        Workload("relu-64x1024x1024-float32", "`relu(x @ W + b)`, float32, 64x1024x1024"),
    ), "kernels": (
        Workload("products", "10,000 products of 8x8, float32"),
    )}),
    Group("Assignment loops", {"assignment": (
        Workload("heat", "heat equation in place, float64, 1 M, 100 steps"),
        Workload("jacobi", "Jacobi's method, float64, 2000x2000, 100 steps"),
        Workload("life", "game of life, uint8, 2048x2048, 50 steps"),
        Workload("prefix", "halved prefix sums, float64, 2,000 rows of 4,096"),
        Workload("small-jacobi", "Jacobi's method, float64, 50x50, 500 steps"),
        Workload("small-prefix", "halved prefix sums, float64, 50 rows of 50"),
    )}),
    Group("Small arrays and plans", {"plans": (
        Workload("operators-float32-50", "10 operators on 50 elements, float32"),
        Workload("operators-float32-10000", "10 operators on 10,000 elements, float32"),
        Workload("linear-10", "`2*a+3*b-c*a` on 10 elements, float64"),
        Workload("linear-100000", "`2*a+3*b-c*a` on 100,000 elements, float64"),
        Workload("shapes-linear", "`2*a+3*b-c*a` on 50 new shapes, once each"),
        Workload("graphs-once", "500 random programs of 23 operations, once each"),
        Workload("graphs-small", "1,000 expressions on 100 elements, once each"),
        Workload("pending-100000", "1,000,000 pending operations on 50 elements"),
        Workload("first-operators-cold", "first result of a process, empty kernel cache"),
        Workload("first-operators-disk", "first result of a process, kernels on disk"),
    ), "kernels": (
        Workload("compile-1000", "compiling a new expression of 1,000 operations"),
    )}),
    Group("Irregular work, dynamic batching", {"batching": (
        Workload("trees-1", "Tree-LSTM of 128 numbers, 512 trees, one at a time"),
        Workload("trees-512", "Tree-LSTM of 128 numbers, 512 trees together; DyNet: 16 at once",
                 same_work=("trees-1", "trees-16", "trees-64", "trees-256")),
        Workload("levels", "Tree-LSTM of 512 numbers, 256 trees; NumPy: its products alone"),
        Workload("loop-pairs", "`a @ b` of 20,000 pairs of 8x8, float32"),
        Workload("loop-maps", "`tanh(x + 1)` of 20,000 vectors of 8, float32"),
        Workload("calls", "1,000,000 calls of a cell over 1,000 trees"),
        Workload("graphs", "messages in 1,000 graphs, two layers", JOINED),
        Workload("odes", "1,000 systems of 32 equations, adaptive steps"),
    )}),
    Group("Engine", {"engine": (
        Workload("additions"),
        Workload("push"),
        Workload("chain"),
    )}),
)  # fmt: skip
QUOTED = {
    "Engine": (
        ("one of 10,000 pushes under `hold`, for the caller", 0.15e-3),
        ("64 products 4x4 after a `hold`, while Python is busy", 19e-3),
    )
}
"""Milliseconds that CHANGELOG.md states, for a group without a stored run."""


def page(reports: Mapping[str, Row]) -> str:
    """Return the page."""
    (threads,) = {report["threads"] for report in reports.values()}
    rounds = sorted({report["rounds"] for report in reports.values()})
    facts = (
        f"{' '.join(machines(reports))} Each library had {threads} threads and the same arrays. "
        f"The libraries took turns. A time is the median of {rounds[0]} to {rounds[-1]} rounds. "
        f"Versions: {versions(reports)}. M is 10^6."
    )
    lines = fill(facts, 100, break_on_hyphens=False, break_long_words=False)
    return HEAD.format(facts=lines) + "".join(table(reports)) + TAIL


def machines(reports: Mapping[str, Row]) -> Iterator[str]:
    """Sentences: where and when the rows were measured."""
    places = {bench: f"{r['machine']}, {r['date']}" for bench, r in reports.items()}
    most = Counter(places.values()).most_common(1)[0][0]
    yield f"Measured on {most}."
    for group in GROUPS:
        elsewhere = sorted({places.get(bench, most) for bench in group.workloads} - {most})
        if elsewhere:
            yield f"{group.title}: {'; '.join(elsewhere)}."
        if group.title in QUOTED and not reports.keys() & group.workloads:
            yield f"{group.title}: figures of the changelog, without a stored run."


def table(reports: Mapping[str, Row]) -> Iterator[str]:
    """The lines of the table, below its head."""
    for group in GROUPS:
        lines = [
            line(workload, reports[bench])
            for bench, workloads in group.workloads.items()
            for workload in workloads
            if bench in reports and not without_compile_time(workload, reports[bench])
        ]
        if not lines:
            lines = [
                f"| {title} | {duration(time)} |  |  |\n"
                for title, time in QUOTED.get(group.title, ())
            ]
        if lines:
            yield f"| **{group.title}** | | | |\n"
            yield from lines


def line(workload: Workload, report: Row) -> str:
    """One row: Tenfold's time, its ratios to NumPy and to the fastest other library."""
    row = row_of(workload.name, report)
    times = dict(row["milliseconds"])
    own, numpy = times.pop("tenfold"), times.pop("numpy", None)
    for name in workload.same_work:
        again = row_of(name, report)["milliseconds"]
        times = {peer: min(time, again.get(peer, time)) for peer, time in times.items()}
    others = {TITLES[name]: time for name, time in times.items()}
    if workload.other:
        (found,) = re.findall(r"by hand: ([\d.]+) ms", row["title"])
        others[workload.other] = float(found)
    title = workload.title or row["title"].replace("*", "\\*")
    cells = [title, duration(own), ratio(numpy / own) if numpy else ""]
    best = min(others, key=others.__getitem__, default=None)
    cells.append(f"{ratio(others[best] / own)} ({best})" if best else "")
    return "| " + " | ".join(cells) + " |\n"


def without_compile_time(workload: Workload, report: Row) -> bool:
    """Whether the row is compile time, and the run left it out."""
    return workload.name.startswith("compile-") and report["compile"] is None


def row_of(name: str, report: Row) -> Row:
    """The row of a run; `compile-10` is compile time of 10 operations."""
    compiling, count = report["compile"], name.removeprefix("compile-")
    if compiling and count.isdigit():
        index = compiling["operations"].index(int(count))
        return {"milliseconds": {"tenfold": compiling["milliseconds"][index]}}
    (found,) = (row for row in report["rows"] if row["name"] == name)
    return found


def duration(milliseconds: float) -> str:
    """A time to three digits, in the unit in which it is 1 to 1000."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * factor >= 0.9995:
            return f"{milliseconds * factor:.3g} {unit}"
    return f"{milliseconds * 1e6:.3g} ns"


def ratio(times_as_fast: float) -> str:
    """How many times as fast Tenfold is."""
    if times_as_fast < 0.95:
        return f"**slower: {times_as_fast:.2g}x**"
    return f"{times_as_fast:.1f}x" if times_as_fast < 99.95 else f"{times_as_fast:,.0f}x"


def stored() -> dict[str, Row]:
    """The stored runs, by the bench."""
    files = {bench: HERE / f"{name}.json" for bench, name in FILES.items()}
    return {
        bench: json.loads(file.read_text(encoding="utf-8"))
        for bench, file in files.items()
        if file.exists()
    }


if __name__ == "__main__":
    reports = stored()
    (HERE / "performance.md").write_text(page(reports), encoding="utf-8")
    (HERE / "performance.svg").write_text(picture(reports["kernels"]), encoding="utf-8")
    (HERE.parent / "bench" / "acceptance.md").write_text(acceptance(reports), encoding="utf-8")
