"""`tenfold demo`: develops a photograph with Tenfold and with plain NumPy, and compares them.

Takes: nothing, the photograph ships with the package. Hands on: a PNG picture, and on stdout where
it is, the time of both libraries, what the first run compiled, and the largest difference of the
results. `--explain` prints the expression and its stages before that.

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
from tenfold.cli.progress import Progress
from tenfold.io.arrays import read_array
from tenfold.io.file_writing import check_output
from tenfold.io.png import write_png

REPEATS = 3
SHOWN_STEPS, WIDTH = 6, 100
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
        ours, our_seconds, compiled = time_runs(lambda: develop_with_tenfold(photograph))
        progress.stage("developing with numpy")
        theirs, their_seconds, _ = time_runs(lambda: picture.develop(np, photograph))
        pixels = picture.to_bytes(np, ours)
        write_png(output, pixels)
    click.echo(f"picture: {output}, {pixels.shape[1]} by {pixels.shape[0]} pixels")
    report(ours, theirs, our_seconds, their_seconds)
    click.echo(f"first run of tenfold: {compiled}; later runs replay them")
    if not explain:
        click.echo("steps: tenfold demo --explain")


def show_expression(photograph: NDArray[np.generic]) -> None:
    """Print the formula and, shortened, the stages of the expression that it makes."""
    lazy = picture.develop(tn, tn.asarray(photograph))
    click.echo("The expression, which both libraries compute:\n")
    click.echo(source())
    click.echo(f"\nAs a Tenfold array: {lazy!r}\n")
    click.echo(shorten(tn.explain(lazy)) + "\n")


def read_photograph() -> NDArray[np.generic]:
    """The photograph, uint8 (512, 512, 3); also when the package is inside a zip file."""
    with as_file(files("tenfold") / "data" / "astronaut.npz") as path:
        return read_array(str(path))


def develop_with_tenfold(photograph: NDArray[np.generic]) -> NDArray[np.generic]:
    """The photograph developed by Tenfold, from importing the pixels to exporting the result."""
    return np.asarray(picture.develop(tn, tn.asarray(photograph)))


def source() -> str:
    """The lines of the formula itself, without their comment."""
    lines = inspect.getsource(picture.develop).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.strip().startswith("image ="))
    return "\n".join(lines[begin:])


def shorten(text: str) -> str:
    """The title of each stage of an explanation with the first of the lines below it, clipped."""
    shown: list[str] = []
    hidden = below = 0
    for line in [*text.splitlines(), ""]:
        below = below + 1 if line.startswith(" ") else 0
        if below == 0 and hidden:
            shown.append(f"  ... {hidden:,} more")
            hidden = 0
        if below <= SHOWN_STEPS:
            shown.append(line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ...")
        else:
            hidden += 1
    return "\n".join(shown).rstrip()


def time_runs(
    work: Callable[[], NDArray[np.generic]],
) -> tuple[NDArray[np.generic], list[float], str]:
    """The result, the seconds of the first run and each later one, and what the first compiled."""
    marks = [time.perf_counter()]
    with tn.profile() as p:
        result = work()
    marks.append(time.perf_counter())
    for _ in range(REPEATS):
        work()
        marks.append(time.perf_counter())
    return result, [end - begin for begin, end in pairwise(marks)], compiled_text(p)


def compiled_text(p: tn.Profile) -> str:
    """How many of the kernels of a run were compiled in it, as text."""
    kernels = f"{p.kernels} kernel{'s' * (p.kernels != 1)}"
    if not p.compiles:
        return f"{kernels}, none compiled: the disk cache has them"
    return f"{kernels}, {p.compiles} compiled by LLVM"


def report(
    ours: NDArray[np.generic],
    theirs: NDArray[np.generic],
    our_seconds: list[float],
    their_seconds: list[float],
) -> None:
    """Print the times side by side, and how far the results are apart."""
    for name, seconds in (("tenfold", our_seconds), ("numpy", their_seconds)):
        first, best = seconds[0] * 1e3, min(seconds[1:]) * 1e3
        click.echo(f"{name:8} first {first:8.1f} ms, best of {REPEATS} more {best:8.1f} ms")
    levels = picture.to_bytes(np, ours).astype(int) - picture.to_bytes(np, theirs).astype(int)
    apart = float(np.max(np.abs(ours - theirs)))  # type: ignore[operator]  # both are there
    click.echo(
        f"largest difference: {apart:.2g} of 1, and {int(np.max(np.abs(levels)))} of 255 levels"
    )
