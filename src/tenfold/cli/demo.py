"""`tenfold demo`: what Tenfold does for formulas, algebra and trees, beside NumPy, in 15 lines.

The photograph ships with the package. Output: a PNG picture, and on stdout the times of both
libraries for three formulas, what the first runs compiled, what algebra saved, and the loss of a
network over trees that is trained for a second. `--explain` first prints the stages of the first.

    tenfold demo -o astronaut.png
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

import tenfold as tn
from tenfold.cli import picture, tree_network
from tenfold.inspect.progress import Progress
from tenfold.io.arrays import read_array
from tenfold.io.file_writing import check_output
from tenfold.io.png import write_png

REPEATS = 3
LENGTH, ORDER = 1_000_000, 1_000
"""Elements of each array of the fused formula; order of the matrix of the algebraic one."""
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
    """Compare three formulas with NumPy, and train a network over trees for a second.

    The first formula develops a photograph, which is written as a picture.
    """
    if Path(output).suffix.lower() != SUFFIX:
        raise click.UsageError(f"the picture is a PNG file; {output} must end with {SUFFIX}")
    check_output(output)
    photograph = read_photograph()
    if explain:
        show_expression(photograph)
    with Progress() as progress:
        rows = []
        for formula in formulas(photograph):
            progress.stage(f"computing {formula.title}")
            rows.append(demo_row(formula))
        progress.stage("training a network over trees")
        trained = tree_network.train()
        pixels = picture.to_bytes(np, rows[0].result)
        write_png(output, pixels)
    click.echo(f"{'':43}{'NumPy':>9}{'Tenfold':>12}{'first run of Tenfold':>31}")
    for row in rows:
        click.echo(row.text)
    click.echo(trained)
    difference = max(row.difference for row in rows)
    click.echo(f"largest difference from NumPy: {difference:.1g} of the largest value")
    click.echo("kernels of a first run are kept on disk: tenfold cache")
    click.echo(f"picture: {output}, {pixels.shape[1]} by {pixels.shape[0]} pixels")
    click.echo("where it pays on this machine: tenfold bench")
    if not explain:
        click.echo("steps: tenfold demo --explain")


class DemoFormula(NamedTuple):
    """A formula for both libraries, and its arrays."""

    title: str
    compute: Callable[..., Any]
    """Of a namespace and the arrays."""
    arrays: Sequence[NDArray[np.generic]]
    multiply_adds: int = 0
    """Of the formula as it is written."""


def formulas(photograph: NDArray[np.generic]) -> list[DemoFormula]:
    """Return the compared formulas: many steps, a fused one, one for algebra."""
    random = np.random.default_rng(0)
    a, b, c = random.random((3, LENGTH))
    h, v = random.random((ORDER, ORDER)), random.random(ORDER)
    return [
        DemoFormula("photograph: sharpened, toned, brightened", picture.develop, [photograph]),
        DemoFormula(
            "sin(a)**2 + cos(b)**2 + exp(-c), 1 million",
            lambda xp, a, b, c: xp.sin(a) ** 2 + xp.cos(b) ** 2 + xp.exp(-c),
            [a, b, c],
        ),
        DemoFormula(
            f"H.T @ H @ v, order {ORDER:,}",
            lambda _, h, v: h.T @ h @ v,
            [h, v],
            ORDER**3 + ORDER**2,
        ),
    ]


class DemoRow(NamedTuple):
    """The lines of a formula, its result, and its largest difference from NumPy."""

    text: str
    result: NDArray[np.generic]
    difference: float
    """As a share of the largest value."""


def demo_row(formula: DemoFormula) -> DemoRow:
    """Compute a formula by both libraries: the first run of Tenfold, and the best of some more."""
    lazy = [*map(tn.asarray, formula.arrays)]
    with tn.profile() as p:
        result, first = timed(lambda: formula.compute(tn, *lazy))
    ours = min(timed(lambda: formula.compute(tn, *lazy))[1] for _ in range(REPEATS))
    runs = [timed(lambda: formula.compute(np, *formula.arrays)) for _ in range(REPEATS)]
    expected, theirs = runs[0][0], min(seconds for _, seconds in runs)
    text = (
        f"{formula.title:43}{theirs * 1e3:6.1f} ms{ours * 1e3:9.2f} ms{theirs / ours:7.1f}x"
        f"{first * 1e3:8.0f} ms, {compiled_text(p)}"
    )
    if formula.multiply_adds:
        saved = 1 - p.multiply_adds / formula.multiply_adds
        text += f"\n  {saved:.1%} of {formula.multiply_adds:,} multiply-adds saved, by their order"
    difference = float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))
    return DemoRow(text, result, difference)


def timed(work: Callable[[], Any]) -> tuple[NDArray[Any], float]:
    """Return the values of an expression, and the seconds to make and compute it."""
    begin = time.perf_counter()
    return np.asarray(work()), time.perf_counter() - begin


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


def compiled_text(p: tn.Profile) -> str:
    """Return what a run compiled, as text."""
    return f"{p.compiles} compiled" if p.compiles else "kernels from the disk"
