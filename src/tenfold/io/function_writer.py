"""Function writer: exports the traces of a `tn.function` to a file, without machine code.

Takes a traced function and calls of it, writes one zip file, atomically: `function.json` has the
graphs, Types and trees, `0.npy`, `1.npy`, ... the arrays that the function has captured. A node is
one JSON object, whose operands are numbers of inputs or earlier nodes.

    {"op": "add", "of": [0, 1], "params": [], "types": [0]}

Each node is made once more before it is written, by the checks that the reader makes.
"""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from collections.abc import Sequence
from inspect import Signature
from typing import Any

import numpy as np

import tenfold as tn
from tenfold import _native, settings
from tenfold._native import Node, Type
from tenfold.core.interpreter import interpret
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import BFLOAT16
from tenfold.errors import ExplainedError, UnsupportedError
from tenfold.io import function_codec as codec
from tenfold.io.file_writing import ENTRY_DATE, open_replacing
from tenfold.io.input_errors import OutputError
from tenfold.storage import dense
from tenfold.transforms.function import Function
from tenfold.transforms.trace_cache import CachedTrace
from tenfold.version import __version__


def write_function(path: Any, function: Function, calls: Sequence[CachedTrace]) -> None:
    """Write calls of a function to a file. Raises UnsupportedError, OSError."""
    file_path = os.fspath(path)
    tables = FileTables()
    with settings.override(strict_dtypes=False, pending_depth=0):
        traces = [_trace(tables, function, call) for call in calls]
    content = {
        "format": codec.FUNCTION_FORMAT,
        "version": __version__,
        "name": function.name,
        "parameters": _parameters(function.signature),
        "types": [codec.encode_type(type_) for type_ in tables.types],
        "bodies": tables.bodies,
        "traces": traces,
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > codec.MAX_GRAPH_BYTES:
        rule = f"the graph of {function.name} has {len(text):,} bytes, of {codec.MAX_GRAPH_BYTES:,}"
        raise UnsupportedError("save", rule, remedy="repeat steps by tn.scan, or save parts")
    try:
        with open_replacing(file_path) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo(codec.GRAPH_MEMBER, ENTRY_DATE), text)
            for number, values in enumerate(tables.constants):
                entry = zipfile.ZipInfo(f"{number}.npy", ENTRY_DATE)
                with archive.open(entry, "w", force_zip64=True) as member:
                    bits = values.view(np.uint16) if values.dtype == BFLOAT16 else values
                    np.lib.format.write_array(member, bits, allow_pickle=False)
    except OutputError as error:
        raise OSError(str(error)) from error


def _parameters(signature: Signature | None) -> list[Any] | None:
    """Return the names, kinds and defaults of parameters; None where a default has no form."""
    if signature is None:
        return None
    try:
        return [
            [p.name, int(p.kind), *([] if p.default is p.empty else [codec.encode(p.default)])]
            for p in signature.parameters.values()
        ]
    except TypeError:
        return None


def _trace(tables: FileTables, function: Function, call: CachedTrace) -> dict[str, Any]:
    trace = call.trace
    arrays = trace.captured_arrays()
    tn.eval(*arrays)
    captured = Subgraph("captured", [_native.node_of(x) for x in arrays], [])
    structure, constants = call.arguments
    inputs = iter(trace.subgraph.inputs)
    try:
        leaves = [
            {"value": codec.encode(x)}
            if x is not None
            else {"array": tables.type(next(inputs).type)}
            for x in constants
        ]
        arguments = codec.encode_tree(structure, iter(leaves))
        results = codec.encode_tree(trace.structure, iter([{"array": 0}] * trace.structure.leaves))
    except TypeError as error:
        remedy = "take and return tuples, lists and dicts of arrays; other arguments are numbers, "
        rule = f"an argument or a result of {function.name} cannot be in a file: {error}"
        raise UnsupportedError("save", rule, remedy=f"{remedy}texts, dtypes or None") from None
    return {
        "arguments": arguments,
        "results": results,
        "captured": tables.body(captured),
        "body": tables.body(trace.subgraph),
    }


class FileTables:
    """The tables of a file: Types, bodies and constants, each once."""

    def __init__(self) -> None:
        self.types: dict[Type, int] = {}
        self.bodies: list[dict[str, Any]] = []
        self.constants: list[np.ndarray] = []
        self._numbers: dict[Any, int] = {}
        """Numbers of bodies and constants by what they are of, which it keeps alive."""

    def type(self, type_: Type) -> int:
        """Return the number of a Type."""
        return self.types.setdefault(type_, len(self.types))

    def body(self, subgraph: Subgraph) -> int:
        """Return the number of a body; the bodies that it calls have lower ones."""
        if subgraph not in self._numbers:
            nodes: list[dict[str, Any]] = []
            first = len(subgraph.inputs)

            def write(node: Node, operands: list[int]) -> int:
                nodes.append(self._node(node, operands))
                return first + len(nodes) - 1

            environment = {node: at for at, node in enumerate(subgraph.inputs)}
            outputs = interpret(subgraph.graph, environment, write)
            types = [self.type(node.type) for node in subgraph.inputs]
            content = {"name": subgraph.name, "inputs": types, "nodes": nodes, "outputs": outputs}
            self._numbers[subgraph] = len(self.bodies)
            self.bodies.append(content)
        return self._numbers[subgraph]

    def _node(self, node: Node, operands: list[int]) -> dict[str, Any]:
        """Return a node as JSON. Raises UnsupportedError for an operation that is in no file."""
        if node.is_scalar:
            return {"number": codec.encode(node.scalar)}
        types = [self.type(type_) for type_ in node.types]
        if not operands and not node.pending:
            return {"constants": self._constants(node), "types": types}
        if node.op is None:
            return {"part": node.params[0], "of": operands}
        body = node.op.semantics.body
        if body is not None:
            own = {"own_derivative": True} if node.op.transforms.vjp is not None else {}
            return {"body": self.body(body), "of": operands, "types": types, **own}
        try:
            name = codec.name_of_op(node.op)
            if name not in codec.CONTROL_OPS:
                inputs = [x.scalar if x.is_scalar else _native.array_of(x) for x in node.inputs]
                with settings.override(device=node.type.device):
                    codec.check_params(node.op, tuple(inputs), node.params)
        except UnsupportedError as error:
            raise _refusal(node, error.rule) from None
        except (ExplainedError, TypeError, ValueError) as error:
            rule = f"a call of {node.op.full_name} cannot be in a file: {error}"
            raise _refusal(node, rule.partition("\n")[0]) from error
        params = codec.encode(node.params, self.body)
        return {"op": name, "of": operands, "params": params, "types": types}

    def _constants(self, node: Node) -> list[int]:
        """Return the numbers of the constants of a computed node, one for each result."""
        if node not in self._numbers:
            self._numbers[node] = len(self.constants)
            values = [node.value(at) for at in range(len(node.types))]
            if None in values:
                raise UnsupportedError(
                    "save", "an array that is traced has no values", remedy="save it outside"
                )
            arrays = [dense.export_or_copy(value) for value in values if value is not None]
            for array, type_ in zip(arrays, node.types, strict=True):
                if type_.structure:
                    codec.check_promise(array, type_)
            self.constants += arrays
        return [*range(self._numbers[node], self._numbers[node] + len(node.types))]


def _refusal(node: Node, rule: str) -> UnsupportedError:
    """Return the error of a node, with its line, or that of the declaration of its operation."""
    code = getattr(inspect.unwrap(node.op.function), "__code__", None)
    if node.origin is not None:
        rule += f" (written at {node.origin[0]}:{node.origin[1]})"
    elif code is not None:
        rule += f" (declared at {code.co_filename}:{code.co_firstlineno})"
    remedy = "write it by operations of tenfold, or save the functions before and after it"
    return UnsupportedError("save", rule, remedy=remedy)


__all__ = ["FileTables", "write_function"]
