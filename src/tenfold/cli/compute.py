"""`tenfold eval` and `tenfold explain`: compute formulas over files, or explain the computation.

Takes EXPR, `name=file` for each of its inputs, options. Output: a `.npy` file (one result), a
`.npz` file (several, by name), or text on stdout.

    tenfold eval "sqrt(x**2 + y**2) / mean(x)" x=a.npy y=b.npz:key -o out.npy
    tenfold eval -e s="x + y" -e d="s - 2*y" x=a.npy y=b.npy -o both.npz
"""

from __future__ import annotations

import keyword
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

import tenfold as tn
from tenfold.dtypes import DTYPES
from tenfold.errors import RunError, UnsupportedError
from tenfold.inspect.explain import STAGES
from tenfold.inspect.progress import Progress
from tenfold.io.arrays import read_array
from tenfold.io.evaluate import evaluate_expression
from tenfold.io.expression import CheckedExpression, parse_expression
from tenfold.io.file_writing import SUFFIXES, check_output, open_replacing, write_arrays
from tenfold.io.input_errors import ComputationError, ExpressionError, error_text, one_line
from tenfold.io.vocabulary import Vocabulary, vocabulary
from tenfold.machine import available_memory, usable_processors
from tenfold.mutation.external_buffer import MIN_SOURCE_BYTES, PART_BYTES
from tenfold.out_of_core.chunk_outputs import Outputs
from tenfold.out_of_core.chunk_scheduler import run_plan, show
from tenfold.out_of_core.window_writes import PartTarget, expression_plan

RESULT = "result"
"""The name of the only result, and its key in a .npz file."""
MAX_ITEMSIZE = 8
"""Bytes: an intermediate result may have as many elements of this size as the largest input."""
FAILURES = (ValueError, ArithmeticError, LookupError, RunError)
"""Errors of a computation that depend on values."""


@dataclass(frozen=True)
class ComputeTask:
    """The task of a command line: expressions by name, and files by name."""

    expressions: dict[str, CheckedExpression]
    files: dict[str, str]


WORDS_ARGUMENT = click.argument("words", nargs=-1, metavar="[EXPR] [NAME=FILE]...")
EXPRESSION_OPTION = click.option(
    "-e",
    "--expression",
    "named",
    multiple=True,
    metavar="NAME=EXPR",
    help="A named result, instead of EXPR; may be repeated. Later ones may use earlier ones.",
)


@click.command("eval")
@WORDS_ARGUMENT
@EXPRESSION_OPTION
@click.option("-o", "--output", metavar="FILE", help="A .npy file, or .npz for several results.")
@click.option("--dtype", metavar="DTYPE", help="Convert each result, as in float32.")
@click.option("--explain", is_flag=True, help="Also print how the expression is computed.")
def eval_command(
    words: Sequence[str], named: Sequence[str], output: str | None, dtype: str | None, explain: bool
) -> None:
    """Compute EXPR over arrays in files.

    FILE is a .npy file (read in place, so it may be larger than memory), a .npz file with one
    array, or file.npz:key. EXPR uses operators, the functions of the array API standard (sqrt,
    sum, linalg.solve, ...), methods (x.sum(axis=0)), properties (x.T, x.shape) and subscripts.
    Without -o the results are printed. A large result for a .npy file is computed and written in
    parts, if it can be cut by rows.

    \b
    tenfold eval "sqrt(x**2 + y**2) / mean(x)" x=a.npy y=b.npz:key -o out.npy
    tenfold eval -e s="x + y" -e d="s - 2*y" x=a.npy y=b.npy -o both.npz
    """  # noqa: D301  # click reads the character \b: the lines below it stay lines
    if dtype is not None and dtype not in DTYPES:
        raise click.UsageError(f"unknown dtype {dtype!r}; there are: {', '.join(DTYPES)}")
    task = read_task(words, named)
    path = None if output is None else output_path(output, len(task.expressions))
    with Progress() as progress:
        results = build(task, vocabulary(), progress)
        if dtype is not None:
            results = {name: convert_result(name, array, dtype) for name, array in results.items()}
        text = tn.explain(*results.values()) if explain else None
        is_written = path is not None and save_in_parts(path, results, progress)
        values = {} if is_written else compute_all(results, progress)
        if path is not None and not is_written:
            progress.stage(f"writing {output}", sum(value.nbytes for value in values.values()))
            write_arrays(path, values, progress.advance)
    if text is not None:
        click.echo(text)
    if path is None:
        print_values(values)


@click.command("explain")
@WORDS_ARGUMENT
@EXPRESSION_OPTION
@click.option("--stage", metavar="STAGE", help=f"One only of {', '.join(STAGES)}.")
@click.option("--format", "form", type=click.Choice(["text", "dot"]), default="text")
@click.option("--analyze", is_flag=True, help="Compute it as well, and show what each step took.")
def explain_command(
    words: Sequence[str], named: Sequence[str], stage: str | None, form: str, analyze: bool
) -> None:
    """Show how EXPR would be computed, without computing it.

    EXPR and FILE are those of `tenfold eval`.

    \b
    tenfold explain "sum(x * 2, axis=0)" x=a.npy
    tenfold explain "sum(x * 2, axis=0)" x=a.npy --stage scheduled --analyze
    """  # noqa: D301  # as above
    task = read_task(words, named)
    with Progress() as progress:
        results = build(task, vocabulary(), progress)
    try:
        text = tn.explain(*results.values(), stage=stage, format=form, analyze=analyze)
    except UnsupportedError as error:  # a stage that does not exist
        raise click.UsageError(str(error)) from error
    except FAILURES as error:
        if not analyze:  # nothing was computed
            raise
        raise computation_error(error) from error
    click.echo(text)


def read_task(words: Sequence[str], named: Sequence[str]) -> ComputeTask:
    """Separate expressions from inputs, check every name, and parse every expression."""
    if named:
        pairs = [split_pair(argument, "NAME=EXPR") for argument in named]
    elif words:
        pairs, words = [(RESULT, words[0])], words[1:]
    else:
        raise click.UsageError("no expression was given; write for example 'x + 1' x=a.npy")
    expressions: dict[str, CheckedExpression] = {}
    for name, text in pairs:
        check_name_free(name, expressions)
        expressions[name] = parse_expression(text)
    files: dict[str, str] = {}
    for argument in words:
        name, file = split_pair(argument, "NAME=FILE")
        check_name_free(name, files, {} if not named else expressions)
        files[name] = file
    return ComputeTask(expressions, files)


def split_pair(argument: str, form: str) -> tuple[str, str]:
    """Split `name=text`; names are normalised as in Python (NFKC)."""
    name, equals, text = argument.partition("=")
    name = unicodedata.normalize("NFKC", name.strip())
    if not equals or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise click.UsageError(
            f"{one_line(argument)[:60]!r} is not {form}; a name begins with a letter "
            "and is made of letters, digits and _, as in x=a.npy"
        )
    if not text:
        raise click.UsageError(f"nothing stands after {name}=")
    return name, text


def check_name_free(name: str, *used_names: dict[str, CheckedExpression] | dict[str, str]) -> None:
    """Refuse a name that is already used."""
    if any(name in names for names in used_names):
        raise click.UsageError(f"the name {name} is given twice")


def output_path(output: str, results: int) -> str:
    """Return the output path: the suffix chooses the format, a missing suffix is added."""
    if not output:
        raise click.UsageError("-o names no file; write for example -o out.npy")
    suffix = Path(output).suffix
    if not suffix:
        output += ".npy" if results == 1 else ".npz"
    elif suffix not in SUFFIXES:
        raise click.UsageError(f"the output {output} ends with {suffix}; it must be .npy or .npz")
    elif suffix == ".npy" and results > 1:
        raise click.UsageError(f"a .npy file holds one array, not {results}; use a .npz file")
    check_output(output)
    return output


def build(task: ComputeTask, names: Vocabulary, progress: Progress) -> dict[str, tn.Array]:
    """Read the inputs and build every expression; each may use the names of earlier ones."""
    scope: dict[str, object] = {}
    limit = available_memory()
    for name, file in task.files.items():
        progress.stage(f"reading {one_line(file)}")
        values = read_array(file, progress.update)
        limit = max(limit, values.size * MAX_ITEMSIZE)
        scope[name] = tn.asarray(values)
    results: dict[str, tn.Array] = {}
    for name, expression in task.expressions.items():
        value = evaluate_expression(expression, scope, names, limit=limit)
        results[name] = scope[name] = as_result(name, value)
    return results


def as_result(name: str, value: object) -> tn.Array:
    """Return an expression's value as one array."""
    if isinstance(value, tn.Array):
        return value
    if isinstance(value, bool | int | float | complex):
        return tn.asarray(value)
    if isinstance(value, tuple | list):
        raise ExpressionError(
            f"{name}: gives {len(value)} values; pick one, as in svd(x)[0], or name each with -e"
        )
    raise ExpressionError(f"{name}: gives a {type(value).__name__}, not an array")


def convert_result(name: str, array: tn.Array, dtype: str) -> tn.Array:
    """Convert a result to another dtype."""
    try:
        return tn.astype(array, DTYPES[dtype])
    except (TypeError, ValueError) as error:
        raise ComputationError(f"{name}: cannot be converted to {dtype}: {error}") from error


def compute_all(results: dict[str, tn.Array], progress: Progress) -> dict[str, NDArray[np.generic]]:
    """Compute all results together and return them as ndarrays."""
    size, available = sum(map(array_bytes, results.values())), available_memory()
    if size > available:
        raise ComputationError(
            f"the results have {size:,} bytes, more than the {available:,} of memory available"
        )
    progress.stage("computing " + ", ".join(results))
    try:
        tn.eval(*results.values())
        return {name: np.asarray(array) for name, array in results.items()}
    except FAILURES as error:
        raise computation_error(error) from error


def save_in_parts(path: str, results: dict[str, tn.Array], progress: Progress) -> bool:
    """Compute one large result by parts, and write each; return whether it could be cut by rows."""
    array, *others = results.values()
    if others or path.endswith(".npz") or array_bytes(array) < PART_BYTES:
        return False
    traced = expression_plan(array, MIN_SOURCE_BYTES) if array.dtype.kind in "biufc" else None
    if traced is None or traced.plan.axes[traced.plan.graph.outputs[0]] != 0:
        return False
    facts = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    with open_replacing(path) as file:
        npy.write_array_header_1_0(file, facts)
        file.flush()
        start, row_bytes = file.tell(), array_bytes(array) // array.shape[0]

        def write(key: tuple[slice], values: NDArray[np.generic]) -> None:
            os.pwrite(file.fileno(), values.tobytes(), start + key[0].start * row_bytes)

        outputs = Outputs(traced.plan, traced.structure, PartTarget(array, write))
        run_plan(traced, outputs, usable_processors(), partial(show, progress))
    return True


def computation_error(error: Exception) -> ComputationError:
    """Return a failure of the computation as a user error, without the source line."""
    text = re.sub(r" \(written at [^()]*\)", "", error_text(error))
    return ComputationError(f"{type(error).__name__}: {text}")


def array_bytes(array: tn.Array) -> int:
    """Return the size of an array in bytes; nothing is computed."""
    return array.size * array.dtype.itemsize


def print_values(values: dict[str, NDArray[np.generic]]) -> None:
    """Print the results as text, long ones shortened as in NumPy."""
    for name, value in values.items():
        head = "" if list(values) == [RESULT] else f"{name} = "
        click.echo(head + np.array2string(value, separator=", "))
