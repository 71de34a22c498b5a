"""What the kernels must show: Tenfold beside NumPy, NumExpr, Numba, JAX and PyTorch, in one run.

Run: python bench/kernels.py (see README.md beside it). Each library that is installed takes part.
Takes nothing but options; prints a table and, with --json, writes what docs/performance.py reads.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from kernel_work import compile_time, floor
from kernel_work.peers import LOADERS, load_all
from kernel_work.report import compare, facts, measured, show
from kernel_work.rows import WORKS

import tenfold as tn
from tenfold import _native, settings
from tenfold.core.graph import Graph
from tenfold.runtime.device import DEVICES

NAMES = [*(work.name for work in WORKS), "compile-time"]


@click.command()
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="These rows; repeatable.")
@click.option("--peers", multiple=True, type=click.Choice(list(LOADERS)), help="These libraries.")
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
    found = load_all([] if smoke else peers or LOADERS)
    report = facts(found, rounds, size_factor)
    begin = time.perf_counter()
    chosen, compiles = only or NAMES, compiler()
    works = [work for work in WORKS if work.name in chosen]
    copy = floor.build() if works and not smoke else None
    report["rows"] = list(measured(works, found, copy, rounds, size_factor))
    report["compile"] = None
    if smoke:
        compare(report, "compile-time")
        return
    if "compile-time" in chosen:
        if compiles is not None:
            report["compile"] = compile_time.measure(compiles, rounds)
        else:
            click.echo(f"device {report['device']!r} compiles nothing: no compile time", err=True)
    report["seconds"] = time.perf_counter() - begin
    show(report, file)


def compiler() -> Callable[[tn.Array], object] | None:
    """What plans and compiles an expression without running it; None if the device does not."""
    compile_graph = getattr(DEVICES[str(settings.get("device"))], "compile", None)
    if compile_graph is None:
        return None

    def compile_anew(array: tn.Array) -> object:
        with tn.options(cache=False):
            return compile_graph(Graph.of([_native.node_of(array)]))

    return compile_anew


if __name__ == "__main__":
    main()
