"""Function reader (`tn.load_function`): makes a function of an exported file, which it checks.

Takes a file of `f.save`, hands on a function that is called as the saved one. All limits are tested
before memory is allocated. Each node is made by the checks of a call and by the inference of its
operation, and its Types must be those in the file. Nothing is evaluated, unpickled or imported, and
there is no machine code: kernels come from the compiler and the disk cache of this process.

    layer = tn.load_function("layer.tn")
"""

from __future__ import annotations

import errno
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, NoReturn

import numpy as np

from tenfold import _native, settings
from tenfold._native import Array, Type
from tenfold.core.graph import type_text
from tenfold.core.interpreter import rebuild
from tenfold.core.op import exact_params
from tenfold.core.pytree import TreeDef
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import BFLOAT16, BOOL
from tenfold.errors import DeviceError, UnsupportedError, message
from tenfold.io import function_codec as codec
from tenfold.io.archive import read_member_array
from tenfold.io.arrays import normalized, open_regular
from tenfold.io.input_errors import error_text, one_line
from tenfold.machine import available_memory
from tenfold.storage import dense
from tenfold.transforms.call_op import Callee, interned_callee
from tenfold.transforms.function import Function, TracedCallable, caller_for
from tenfold.transforms.trace_cache import CachedTrace
from tenfold.transforms.tracer import CapturedArray, TracedFunction

MAX_BODY_NODES = 1_000_000
"""Limit of the nodes of a body, with those of the bodies that it calls."""
MAX_BODY_DEPTH = 128
"""Limit of bodies that call one another."""
MAX_MEMBERS = 1 << 16
"""Limit of the members of a file."""


def load_function(path: Any, *, limit: int | None = None) -> TracedCallable[..., Any]:
    """Return the function that `f.save(path)` has written, of a `tn.function`.

    It is called with arguments of the Types (shapes, dtypes, device), trees and static values that
    it was saved with, returns arrays as the saved function does, with the same bits, and is itself
    a `tn.function`: it can be batched, mapped, differentiated and pushed. The arrays that the
    function had captured are in the file. It compiles here, or takes kernels from the disk cache.

    The file need not be trusted: it is checked as data, and has no code. `limit` is the largest
    number of bytes of an array in it, by default the memory that is available.

    Raises ValueError for a damaged file, UnsupportedError for one of another version or with an
    operation that is unknown here, DeviceError for a device that does not exist here, and OSError
    where it cannot be read. A call with other Types raises TypeError.

    >>> import tempfile, pathlib, tenfold as tn
    >>> double = tn.function(lambda x: x * 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     double.save(pathlib.Path(folder) / "double.tn", tn.ones(3))
    ...     loaded = tn.load_function(pathlib.Path(folder) / "double.tn")
    >>> loaded(tn.asarray([1.0, 2.0, 3.0])).tolist()
    [2.0, 4.0, 6.0]
    """
    name = os.fspath(path)
    if limit is not None and (type(limit) is not int or limit < 0):
        rule = f"limit {limit!r} is not a number of bytes"
        raise ValueError(message("load_function", rule, remedy="give an int, or leave it out"))
    try:
        with open_regular(name) as file, zipfile.ZipFile(file) as archive:
            size = os.fstat(file.fileno()).st_size
            largest = available_memory() if limit is None else limit
            reader = _FileReader(name, archive, size, largest)
            with settings.override(strict_dtypes=False, pending_depth=0):
                loaded: TracedCallable[..., Any] = caller_for(reader.function())
        return loaded
    except (UnsupportedError, DeviceError, MemoryError):
        raise
    except Exception as error:  # damaged bytes raise errors of many kinds
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.EOVERFLOW):
            raise  # not of a place in the file that is none
        rule = f"{one_line(name)} is not an exported function, or damaged: {error_text(error)}"
        remedy = "save it again with f.save(path)"
        raise ValueError(message("load_function", one_line(rule), remedy=remedy)) from error


class LoadedFunction(Function):
    """A function whose traces come from a file: there is no other."""

    def __init__(self, name: str, signature: Signature | None) -> None:
        def unavailable(*_: Any, **__: Any) -> NoReturn:
            raise TypeError(message(name, "its Python function is not in the file"))

        unavailable.__name__ = unavailable.__qualname__ = name
        unavailable.__doc__ = "A function of tn.load_function."
        vars(unavailable).update({} if signature is None else {"__signature__": signature})
        super().__init__(unavailable)
        self.signature = signature
        self.loaded: dict[Any, CachedTrace] = {}

    def saved_calls(self) -> list[CachedTrace]:
        """Return all traces."""
        return [*self.loaded.values()]

    def argument_names(self, call: CachedTrace) -> list[str]:
        """Return a name for each array: that of its parameter, and its place in a tree."""
        structure, constants = call.arguments
        args, kwargs = structure.children
        parameters = [*self.signature.parameters] if self.signature is not None else []
        numbered = [f"argument{at}" for at in range(len(parameters), len(args.children))]
        heads = [*parameters, *numbered][: len(args.children)]
        pairs = zip([*heads, *kwargs.keys], [*args.children, *kwargs.children], strict=True)
        names = [f"{head}{place}" for head, tree in pairs for place in tree.paths()]
        return [name for name, x in zip(names, constants, strict=True) if x is None]

    def _lookup(self, leaves: list[Any], structure: TreeDef) -> Any:
        types = [_native.node_of(x).type if isinstance(x, Array) else None for x in leaves]
        try:
            plain = codec.plain_tree(structure)
        except TypeError:
            plain = structure
        for known in (types, [type_ and type_.with_structure(0) for type_ in types]):
            pairs = zip(known, leaves, strict=True)
            key = plain, tuple([type_ or exact_params(leaf) for type_, leaf in pairs])
            if key in self.loaded:
                call = self.loaded[key]
                return call, [capture.node for capture in call.trace.captured]
        arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
        saved = "; ".join([_arguments_text(call) for call in self.saved_calls()[:8]])
        rule = f"the file has no trace for these arguments: it has those for {saved}"
        remedy = "give such arrays and the same other values, or save it with these arguments, too"
        raise TypeError(message(self.name, rule, arrays[:8], remedy))


def _arguments_text(call: CachedTrace) -> str:
    """Return the arguments of a call as text, with Types for arrays."""
    structure, constants = call.arguments
    types = iter([type_text(node.type) for node in call.trace.subgraph.inputs])
    args, kwargs = structure.unflatten([next(types) if x is None else x for x in constants])
    return f"{args}{kwargs or ''}"


class _FileReader:
    """Makes the function of one open file."""

    def __init__(self, path: str, archive: zipfile.ZipFile, size: int, limit: int) -> None:
        self.path, self.archive, self.limit = path, archive, limit
        members = archive.infolist()
        self.members = {member.filename: member for member in members}
        is_whole = len(self.members) == len(members) <= MAX_MEMBERS
        if not is_whole or sum(member.file_size for member in members) > min(size, 2 * limit):
            raise ValueError("its members do not fit into it")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("a member is compressed")
        if codec.GRAPH_MEMBER not in self.members:
            raise ValueError(f"it has no {codec.GRAPH_MEMBER}")
        if self.members[codec.GRAPH_MEMBER].file_size > codec.MAX_GRAPH_BYTES:
            raise ValueError(f"its graph has more than {codec.MAX_GRAPH_BYTES:,} bytes")
        text = archive.read(codec.GRAPH_MEMBER)
        self.content = json.loads(text, parse_float=_refuse_number, parse_constant=_refuse_number)
        self.version = str(self.content["version"])[: codec.MAX_NAME]
        if self.content["format"] != codec.FUNCTION_FORMAT:
            written = f"format {self.content['format']}, which tenfold {self.version} wrote"
            rule = f"{one_line(path)} has {written[: codec.MAX_NAME]}"
            rule += f"; this is format {codec.FUNCTION_FORMAT}"
            remedy = f"load it with tenfold {self.version}, or save it again with this one"
            raise UnsupportedError("load_function", rule, remedy=remedy)
        self.types: list[Type] = []
        self.constants: dict[int, np.ndarray] = {}
        self.bodies: list[Subgraph] = []
        self.weights: list[tuple[int, int]] = []
        """For each body the nodes and the depth, those of the bodies that it calls included."""
        self.callees: dict[tuple[int, bool], Callee] = {}

    def function(self) -> LoadedFunction:
        """Return the function of the file."""
        self.types = [codec.decode_type(type_, self.limit) for type_ in self.content["types"]]
        for body in self.content["bodies"]:
            self.bodies.append(self._body(body))
        loaded = LoadedFunction(_text(self.content["name"]), self._signature())
        for trace in self.content["traces"]:
            self._add_trace(loaded, trace)
        return loaded

    def _signature(self) -> Signature | None:
        entries = self.content["parameters"]
        if entries is None:
            return None
        kinds: Any = type(Parameter.KEYWORD_ONLY)  # by numbers
        return Signature(
            [
                Parameter(
                    _text(name),
                    kinds(_number(kind)),
                    default=codec.decode(*default) if default else Parameter.empty,
                )
                for name, kind, *default in entries
            ]
        )

    def _add_trace(self, loaded: LoadedFunction, trace: Mapping[str, Any]) -> None:
        leaves: list[Any] = []
        structure = codec.decode_tree(trace["arguments"], leaves)
        is_call = structure.type is tuple and [c.type for c in structure.children] == [tuple, dict]
        results = codec.decode_tree(trace["results"], [])
        body, captured = (_item(self.bodies, trace[name]) for name in ("body", "captured"))
        types = [_item(self.types, leaf["array"]) if "array" in leaf else None for leaf in leaves]
        constants = [None if "array" in leaf else codec.decode(leaf["value"]) for leaf in leaves]
        given = [type_ for type_ in types if type_ is not None]
        wanted = [node.type for node in body.inputs]
        if not is_call or captured.inputs or results.leaves != len(body.outputs):
            raise ValueError("a trace does not fit its body")
        if [*given, *captured.types] != wanted:
            raise ValueError("the arguments of a trace are not the inputs of its body")
        own = Subgraph(loaded.name, body.outputs, body.inputs, rebuild, len(given))
        captures = tuple([CapturedArray(node, None) for node in captured.outputs])
        traced = TracedFunction(own, results, captures, ())
        arguments = structure, tuple(constants)
        key = (
            structure,
            tuple([t or exact_params(value) for t, value in zip(types, constants, strict=True)]),
        )
        loaded.loaded[key] = CachedTrace(traced, Callee(own, family=loaded), [], arguments)

    def _body(self, content: Mapping[str, Any]) -> Subgraph:
        """Make a body, whose nodes call bodies before it."""
        inputs = [_native.placeholder(_item(self.types, number)) for number in content["inputs"]]
        if len(content["nodes"]) > MAX_BODY_NODES:
            raise ValueError(f"a body has more than {MAX_BODY_NODES:,} nodes")
        self.weights.append((len(content["nodes"]), 1))
        values: list[Any] = [*inputs]
        for at, node in enumerate(content["nodes"]):
            try:
                values.append(self._node(node, values))
            except (UnsupportedError, DeviceError, MemoryError):
                raise
            except Exception as error:
                raise ValueError(f"node {at}: {error_text(error)}") from error
        outputs = [_node_of_array(_item(values, number)) for number in content["outputs"]]
        return Subgraph(_text(content["name"]), outputs, [_native.node_of(x) for x in inputs])

    def _node(self, node: Mapping[str, Any], values: Sequence[Any]) -> Any:
        """Make a node: an Array, a number, or a tuple of Arrays."""
        if "number" in node:
            number = codec.decode(node["number"])
            if type(number) not in (bool, int, float, complex):
                raise ValueError(f"{number!r} is not a number")
            return number
        operands = tuple([_item(values, number) for number in node.get("of", ())])
        if "part" in node:
            (several,) = operands
            if not isinstance(several, tuple):
                raise ValueError("a part is not of several arrays")
            return _item(several, node["part"])
        types = [_item(self.types, number) for number in node["types"]]
        if "constants" in node:
            pairs = zip(node["constants"], types, strict=True)
            result: Any = tuple([self._constant(number, type_) for number, type_ in pairs])
            return result[0] if len(result) == 1 else result
        if any(isinstance(operand, tuple) for operand in operands):
            raise ValueError("an operand is several arrays")
        with settings.override(device=types[0].device):
            result = self._call(node, operands, types)
        made = result if isinstance(result, tuple) else (result,)
        found = [_node_of_array(x).type for x in made]
        if found != types:
            texts = [", ".join(map(type_text, several)) for several in (found, types)]
            raise ValueError(f"it gives {texts[0]}, not {texts[1]} as by tenfold {self.version}")
        return result

    def _call(self, node: Mapping[str, Any], operands: tuple[Any, ...], types: list[Type]) -> Any:
        if "body" in node:
            callee = self._callee(node["body"], own_derivative="own_derivative" in node)
            _check_inputs(callee.subgraph, operands)
            return _native.apply(callee.op.id, operands, callee.op.signature.bind().params)
        try:
            op = codec.op_of_name(node["op"])
        except LookupError as error:
            rule = f"{one_line(self.path)}, which tenfold {self.version} wrote: {error.args[0]}"
            remedy = f"load it with tenfold {self.version}"
            raise UnsupportedError("load_function", rule, remedy=remedy) from None
        params = codec.decode(node["params"], self._loop_callee)
        if node["op"] in codec.CONTROL_OPS:
            if params[-1] != types[0].device:
                raise ValueError(f"a loop is not on {types[0].device}")
            CONTROL_CHECKS[op.name](operands, *params)
        else:
            codec.check_params(op, operands, params)
        return _native.apply(op.id, operands, params)

    def _called_body(self, number: Any) -> Subgraph:
        """Return a body that the one in work calls, and count its nodes."""
        body: Subgraph = _item(self.bodies, number)
        (nodes, depth), (own_nodes, own_depth) = self.weights[number], self.weights[-1]
        self.weights[-1] = total, deepest = nodes + own_nodes, max(depth + 1, own_depth)
        if total > MAX_BODY_NODES or deepest > MAX_BODY_DEPTH:
            raise ValueError("its bodies call one another too often")
        return body

    def _loop_callee(self, number: Any) -> Callee:
        return interned_callee(self._called_body(number))

    def _callee(self, number: Any, *, own_derivative: bool) -> Callee:
        body = self._called_body(number)
        callee = Callee(body, vjp=_refuse_derivative) if own_derivative else Callee(body)
        return self.callees.setdefault((number, own_derivative), callee)

    def _constant(self, number: Any, type_: Type) -> Array:
        """Return a constant, with the structure of its Type."""
        name = f"{_number(number)}.npy"
        if number not in self.constants:
            values = read_member_array(f"{self.path}:{name}", self.archive, self.members[name])
            self.constants[number] = normalized(name, values)
        values = self.constants[number]
        if type_.dtype == BFLOAT16 and values.dtype == np.uint16:
            values = values.view(BFLOAT16)
        if (values.shape, values.dtype) != (type_.shape, type_.dtype) or type_.storage != "dense":
            raise ValueError(f"{name} is another array than {type_text(type_)}")
        value = dense.import_values(values, type_.device)
        if type_.structure:
            codec.check_promise(values, type_)
            value = value.view(type_, value.strides or values.strides, 0)
        return _native.value_array(value)


def _check_inputs(body: Subgraph, operands: Sequence[Any]) -> None:
    """Raise ValueError unless operands are what a body takes."""
    wanted = [node.type for node in body.inputs]
    found = [_node_of_array(x).type for x in operands]
    pairs = zip(wanted, found, strict=False)
    fits = [
        a.with_structure(0) == b.with_structure(0) and a.structure & ~b.structure == 0
        for a, b in pairs
    ]
    if len(wanted) != len(found) or not all(fits):
        raise ValueError(f"{body.name} is called with other Types than it takes")


def _check_scan(
    operands: Sequence[Any],
    step: Callee,
    carry_count: int,
    xs_count: int,
    length: int,
    reverse: bool,
    _: str,
) -> None:
    body, xs_end = step.subgraph, _number(carry_count) + _number(xs_count)
    carry, xs = operands[:carry_count], operands[carry_count:xs_end]
    rows = [Type(x.shape[1:], x.dtype, x.device) for x in xs]
    if any(x.shape[:1] != (_number(length),) for x in xs) or type(reverse) is not bool:
        raise ValueError("the rows of a scan are not its steps")
    placeholders = [_native.placeholder(row) for row in rows]
    _check_inputs(body, [*carry, *placeholders, *operands[xs_end:]])
    _check_carry(body.types, carry, carry_count)


def _check_carry(types: Sequence[Type], carry: Sequence[Array], count: int) -> None:
    if len(carry) != count or _arrays_of(types[:count]) != _arrays_of(carry):
        raise ValueError("the carry of a loop changes")


def _arrays_of(values: Sequence[Any]) -> list[Any]:
    """Return shape and dtype of Types or Arrays."""
    return [(x.shape, x.dtype) for x in values]


def _check_while(operands: Sequence[Any], step: Callee, carry_count: int, _: str) -> None:
    condition, *rest = operands
    _check_inputs(step.subgraph, rest)
    _check_carry(step.subgraph.types, rest[: _number(carry_count)], carry_count)
    (last,) = step.subgraph.types[carry_count:]
    _check_condition(condition, last)


def _check_condition(*values: Any) -> None:
    if any(of_value != ((), BOOL) for of_value in _arrays_of(values)):
        raise ValueError("a condition is not a bool")


def _check_cond(
    operands: Sequence[Any], true_branch: Callee, false_branch: Callee, count: int, own: int, _: str
) -> None:
    condition, *rest = operands
    _check_condition(condition)
    end = _number(count) + _number(own)
    _check_inputs(true_branch.subgraph, rest[:end])
    _check_inputs(false_branch.subgraph, [*rest[:count], *rest[end:]])
    if _arrays_of(true_branch.subgraph.types) != _arrays_of(false_branch.subgraph.types):
        raise ValueError("the branches give different Types")


def _check_checkpoint(operands: Sequence[Any], call: Callee, _: str) -> None:
    _check_inputs(call.subgraph, operands)


CONTROL_CHECKS: dict[str, Callable[..., None]] = {
    "scan": _check_scan,
    "while_loop": _check_while,
    "cond": _check_cond,
    "checkpoint": _check_checkpoint,
}
"""What loops and branches of a file must satisfy, which their functions do for a call."""


def _refuse_derivative(*_: Any) -> NoReturn:
    rule = "the derivative of a tn.custom_vjp or tn.custom_jvp is not in the file"
    remedy = "save the function that tn.grad returns"
    raise UnsupportedError("grad", rule, remedy=remedy)


def _item(items: Sequence[Any], number: Any) -> Any:
    return items[_number(number)]


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{str(value)[:60]} is not a position or a count")
    return value


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > codec.MAX_NAME or not value.isprintable():
        raise ValueError("a name is not a printable text")
    return value


def _node_of_array(value: Any) -> Any:
    if not isinstance(value, Array):
        raise ValueError("an operand or a result is not an array")
    return _native.node_of(value)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:60]} is a number that JSON writes inexactly")


__all__ = ["LoadedFunction", "load_function"]
