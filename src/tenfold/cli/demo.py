"""`tenfold demo`: develops a photograph with Tenfold and with plain NumPy, and compares them.

The photograph ships with the package. Output: a PNG picture, and on stdout its path, the times of
both libraries, the number of compiled kernels, and the largest difference of the results.
`--explain` prints the expression and its stages first.

    tenfold demo -o astronaut.png
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import tenfold as tn
from tenfold.cli import picture
from tenfold.inspect.progress import Progress
from tenfold.io.arrays import read_array
from tenfold.io.file_writing import check_output
from tenfold.io.png import write_png

REPEATS = 3
SHOWN_STEPS, LINE_WIDTH = 6, 100
"""Lines of each stage, and characters of a line, that are printed; `tn.explain` shows all."""
SUFFIX = ".png"


@click.command("demo")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="tenfold-demo.png",
    show_default=True,
    help="Where to write the picture.",
)
@click.option("--explain", is_flag=True, help="Also print the expression and its stages.")
def demo_command(output: str, explain: bool) -> None:
    """Develop a photograph with one lazy expression.

    NumPy computes the same formula; the times and the largest difference are printed.
    """
    if Path(output).suffix.lower() != SUFFIX:
        raise click.UsageError(f"the picture is a PNG file; {output} must end with {SUFFIX}")
    check_output(output)
    photograph = read_photograph()
    if explain:
        show_expression(photograph)
    with Progress() as progress:
        progress.stage("developing with tenfold")
        tenfold_result, tenfold_seconds, compiled = time_runs(
            lambda: develop_with_tenfold(photograph)
        )
        progress.stage("developing with numpy")
        numpy_result, numpy_seconds, _ = time_runs(lambda: picture.develop(np, photograph))
        pixels = picture.to_bytes(np, tenfold_result)
        write_png(output, pixels)
    click.echo(f"picture: {output}, {pixels.shape[1]} by {pixels.shape[0]} pixels")
    report(tenfold_result, numpy_result, tenfold_seconds, numpy_seconds)
    click.echo(f"first run of tenfold: {compiled}; later runs replay them")
    if not explain:
        click.echo("steps: tenfold demo --explain")


def show_expression(photograph: NDArray[np.generic]) -> None:
    """Print the formula, and the shortened stages of its expression."""
    lazy = picture.develop(tn, tn.asarray(photograph))
    click.echo("The expression, which both libraries compute:\n")
    click.echo(source())
    click.echo(f"\nAs a Tenfold array: {lazy!r}\n")
    click.echo(shorten(tn.explain(lazy)) + "\n")


def read_photograph() -> NDArray[np.generic]:
    """Return the photograph, uint8 (512, 512, 3); the package may be in a zip file."""
    with as_file(files("tenfold") / "data" / "astronaut.npz") as path:
        return read_array(str(path))


def develop_with_tenfold(photograph: NDArray[np.generic]) -> NDArray[np.generic]:
    """Develop the photograph with Tenfold, from importing the pixels to exporting the result."""
    return np.asarray(picture.develop(tn, tn.asarray(photograph)))


def source() -> str:
    """Return the source lines of the formula, without its docstring."""
    lines = inspect.getsource(picture.develop).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.strip().startswith("image ="))
    return "\n".join(lines[begin:])


def shorten(text: str) -> str:
    """Return the title of each stage of an explanation with its first lines, clipped."""
    output: list[str] = []
    hidden_count = line_in_stage = 0
    for line in [*text.splitlines(), ""]:
        line_in_stage = line_in_stage + 1 if line.startswith(" ") else 0
        if line_in_stage == 0 and hidden_count:
            output.append(f"  ... {hidden_count:,} more")
            hidden_count = 0
        if line_in_stage <= SHOWN_STEPS:
            output.append(line if len(line) <= LINE_WIDTH else f"{line[: LINE_WIDTH - 4]} ...")
        else:
            hidden_count += 1
    return "\n".join(output).rstrip()


def time_runs(
    work: Callable[[], NDArray[np.generic]],
) -> tuple[NDArray[np.generic], list[float], str]:
    """Return the result, the seconds of the first and each later run, and the compiled kernels."""
    marks = [time.perf_counter()]
    with tn.profile() as p:
        result = work()
    marks.append(time.perf_counter())
    for _ in range(REPEATS):
        work()
        marks.append(time.perf_counter())
    return result, [end - begin for begin, end in pairwise(marks)], compiled_text(p)


def compiled_text(p: tn.Profile) -> str:
    """Return the number of kernels of a run, and of compiled ones, as text."""
    kernels = f"{p.kernels} kernel{'s' * (p.kernels != 1)}"
    if not p.compiles:
        return f"{kernels}, none compiled: the disk cache has them"
    return f"{kernels}, {p.compiles} compiled by LLVM"


def report(
    tenfold_result: NDArray[np.generic],
    numpy_result: NDArray[np.generic],
    tenfold_seconds: list[float],
    numpy_seconds: list[float],
) -> None:
    """Print the times and the largest difference of the results."""
    for name, seconds in (("tenfold", tenfold_seconds), ("numpy", numpy_seconds)):
        first, best = seconds[0] * 1e3, min(seconds[1:]) * 1e3
        click.echo(f"{name:8} first {first:8.1f} ms, best of {REPEATS} more {best:8.1f} ms")
    results = (tenfold_result, numpy_result)
    tenfold_levels, numpy_levels = (picture.to_bytes(np, x).astype(int) for x in results)
    signed = tenfold_result - numpy_result  # type: ignore[operator]  # floats
    difference = float(np.max(np.abs(signed)))
    levels = int(np.max(np.abs(tenfold_levels - numpy_levels)))
    click.echo(f"largest difference: {difference:.2g} of 1, and {levels} of 255 levels")
