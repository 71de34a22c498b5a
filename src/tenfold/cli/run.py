"""`tenfold run`: calls an exported function with arrays in a file.

Takes the file of a function, the file of its arguments, the file of its results. An argument is the
array with its name, or its name and its place in a tree, as in `state['h']`; the results are
`result`, or `result[0]`, `result['h']`, ...

    tenfold run layer.tn inputs.npz out.npz
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import tenfold as tn
from tenfold import _native
from tenfold.cli.compute import RESULT, compute_all, output_path
from tenfold.core.graph import type_text
from tenfold.core.pytree import flatten
from tenfold.errors import DeviceError, UnsupportedError
from tenfold.inspect.progress import Progress
from tenfold.io.arrays import read_arrays
from tenfold.io.file_writing import write_arrays
from tenfold.io.function_reader import LoadedFunction, load_function
from tenfold.io.input_errors import InputError, error_text, one_line


@click.command("run")
@click.argument("path", metavar="FUNCTION")
@click.argument("inputs", metavar="INPUTS")
@click.argument("output", metavar="OUTPUT")
def run_command(path: str, inputs: str, output: str) -> None:
    """Call a function that f.save has written, on arrays in INPUTS, and write OUTPUT.

    INPUTS is an .npz file with an array for each argument by its name, or an .npy file for the only
    one. OUTPUT is an .npy file for one result, else an .npz file. The function need not be trusted:
    its file is checked, and has no code.

    \b
    tenfold run layer.tn inputs.npz out.npz
    """  # noqa: D301  # click reads the character \b
    with Progress() as progress:
        progress.stage(f"reading {one_line(path)}")
        try:
            function: Any = load_function(path)
        except (ValueError, UnsupportedError, DeviceError, OSError) as error:
            raise InputError(f"{path}: {error_text(error)}") from error
        args, kwargs = arguments_of(function.save.__self__, read_arrays(inputs), inputs)
        leaves, structure = flatten(function(*args, **kwargs))
        target = output_path(output, len(leaves))
        names = [f"{RESULT}{place}" for place in structure.paths()]
        values = compute_all(dict(zip(names, leaves, strict=True)), progress)
        progress.stage(f"writing {output}", sum(value.nbytes for value in values.values()))
        write_arrays(target, values, progress.advance)


def arguments_of(
    function: LoadedFunction, arrays: Mapping[str, NDArray[np.generic]], path: str
) -> Any:
    """Return the (args, kwargs) of the trace that takes these arrays."""
    takes = []
    for call in function.saved_calls():
        names, (structure, constants) = function.argument_names(call), call.arguments
        types = [node.type for node in call.trace.subgraph.inputs[: len(names)]]
        given = dict(arrays)
        if len(names) == 1 and "" in given:
            given = {names[0]: given[""]}
        pairs = zip(names, types, strict=True)
        takes.append(", ".join(f"{name}: {type_text(type_)}" for name, type_ in pairs))
        if sorted(given) == sorted(names):
            found = [tn.asarray(given[name]) for name in names]
            if [_native.node_of(x).type for x in found] == types:
                rest = iter(found)
                return structure.unflatten([next(rest) if x is None else x for x in constants])
    has = ", ".join(f"{name or 'one array'}: {x.dtype}{[*x.shape]}" for name, x in arrays.items())
    raise InputError(f"{path}: has {has}; the function takes {' or '.join(takes[:8])}")
