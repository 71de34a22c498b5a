"""Function codec: what an exported function is made of as JSON: params, Types and trees.

Takes values, hands on what `json` writes; or takes what `json` read, and hands on checked values.
Nothing is looked up but dtypes, devices, storage kinds and operations, each in its table. Numbers
keep their bits. A file of format 1 has the member `function.json` beside an `.npy` file for each
constant (`io/function_writer.py`, `io/function_reader.py`).

>>> encode((1, -0.0, None))
[1, {'float': '8000000000000000'}, None]
>>> decode([1, {"float": "8000000000000000"}, None])
(1, -0.0, None)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import OPS, Op, Params, exact_params
from tenfold.core.pytree import LEAF_TREE, TreeDef
from tenfold.core.shape_rules import checked_shape
from tenfold.core.structure import Structure, of_shape
from tenfold.dtypes import DTYPES
from tenfold.errors import UnsupportedError, message
from tenfold.interop.pickling import inner_op, inner_op_name
from tenfold.ops.assume import false_promise
from tenfold.settings import checked_device
from tenfold.storage.kinds import STORAGE_KINDS
from tenfold.transforms.control_flow_ops import CHECKPOINT, COND, SCAN, WHILE

FUNCTION_FORMAT = 1
"""The version of the file format."""
GRAPH_MEMBER = "function.json"
MAX_GRAPH_BYTES = 1 << 26
"""Limit of the bytes of the graph."""
MAX_NAME = 1_000
"""Limit of the characters of a name or a param."""
MAX_BITS = 128
"""Limit of the bits of an integer."""
CONTROL_OPS = {f"control:{op.name}": op for op in (SCAN, WHILE, COND, CHECKPOINT)}
_TREES: dict[str, type] = {
    "none": type(None),
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "kind": Array,
}
_NUMBERS = {"float": ">d", "complex": ">dd"}


def _is_plain(value: Any) -> bool:
    """Whether a value is its own JSON: None, a bool, a short int or text."""
    if type(value) is int:
        return value.bit_length() <= MAX_BITS
    return value is None or type(value) is bool or (type(value) is str and len(value) <= MAX_NAME)


def encode(value: Any, body_of: Callable[[Any], int] | None = None) -> Any:
    """Return a param or another static value as JSON. Raises TypeError for one without a form.

    `body_of` gives the number of the body that a traced function has in the file.
    """
    if _is_plain(value):
        return value
    if type(value) is float:
        return {"float": struct.pack(">d", value).hex()}
    if type(value) is complex:
        return {"complex": struct.pack(">dd", value.real, value.imag).hex()}
    if type(value) is tuple:
        return [encode(item, body_of) for item in value]
    if isinstance(value, np.dtype) and value in DTYPES.values():
        return {"dtype": str(value)}
    if body_of is not None and hasattr(value, "subgraph"):
        return {"body": body_of(value.subgraph)}
    raise TypeError(f"a {type(value).__name__} has no form in a file")


def decode(value: Any, bodies: Callable[[Any], Any] | None = None) -> Any:
    """Return the value of JSON, or raise ValueError. `bodies` gives what is called by number."""
    if _is_plain(value):
        return value
    if type(value) is list:
        return tuple([decode(item, bodies) for item in value])
    if type(value) is dict and len(value) == 1:
        ((form, content),) = value.items()
        if form in _NUMBERS and type(content) is str:
            parts = struct.unpack(_NUMBERS[form], bytes.fromhex(content))
            return parts[0] if form == "float" else complex(*parts)
        if form == "dtype" and content in DTYPES:
            return DTYPES[content]
        if form == "body" and bodies is not None:
            return bodies(content)
    raise ValueError(f"{str(value)[:60]} is not a value")


def encode_type(type_: Type) -> list[Any]:
    """Return a Type as JSON."""
    return [str(type_.dtype), [*type_.shape], type_.device, type_.storage, type_.structure]


def decode_type(value: Any, limit: int) -> Type:
    """Return the Type of JSON, or raise ValueError: also for one of more than `limit` bytes."""
    dtype_name, shape, device, storage, structure = value
    dtype = DTYPES[dtype_name]
    whole = all(type(number) is int for number in (*shape, structure))
    if not whole or type(device) is not str:
        raise ValueError(f"{value} is not a Type")
    lengths = checked_shape(tuple(shape), dtype.itemsize)
    if storage == "dense" and np.prod(lengths, dtype=object) * dtype.itemsize > limit:
        raise ValueError(f"an array of shape {lengths} has more than {limit:,} bytes")
    if storage != "dense" and storage not in STORAGE_KINDS:
        raise ValueError(f"{storage!r} is not a storage kind")
    if (
        not 0 <= structure < 2 * max(Structure)
        or of_shape(Structure(structure), lengths) != structure
    ):
        raise ValueError(f"matrices of shape {lengths} have no structure {structure}")
    return Type(
        lengths,
        dtype,
        checked_device(device, "load_function"),
        storage=storage,
        structure=structure,
    )


def check_promise(values: np.ndarray, type_: Type) -> None:
    """Raise ValueError for a constant that has not the structure of its Type."""
    word = false_promise(values, Structure(type_.structure))
    if word is not None:
        rule = f"a constant of shape {values.shape} is not {word}, as it was assumed to be"
        raise ValueError(message("save", rule, remedy="correct the values, or the assumption"))


def encode_tree(structure: TreeDef, leaves: Iterator[Any]) -> Any:
    """Return a tree as JSON, with leaves that are JSON; named tuples as tuples."""
    if structure.type is None:
        return next(leaves)
    children = [encode_tree(child, leaves) for child in structure.children]
    if structure.type is type(None):
        return {"none": []}
    if structure.type is dict:
        return {"dict": [[encode(key), x] for key, x in zip(structure.keys, children, strict=True)]}
    if structure.type is Array:
        op: Any = structure.keys[0]
        return {"kind": [name_of_op(op), encode(structure.keys[1:]), children]}
    if structure.type is list or issubclass(structure.type, tuple):
        return {"list" if structure.type is list else "tuple": children}
    raise TypeError(f"a {structure.type.__name__} has no form in a file")


def decode_tree(value: Any, leaves: list[Any]) -> TreeDef:
    """Return the TreeDef of JSON; append its leaves, as they are, to `leaves`."""
    ((form, content),) = value.items()
    if form in ("array", "value"):
        leaves.append(value)
        return LEAF_TREE
    keys: tuple[Any, ...] = ()
    if form == "dict":
        keys, content = tuple([decode(key) for key, _ in content]), [item for _, item in content]
        if len({*keys}) < len(keys):
            raise ValueError("a dict has a key twice")
    elif form == "kind":
        name, params, content = content
        keys = op_of_name(name), *decode(params)
        if not any(kind.constructor is keys[0] for kind in STORAGE_KINDS.values()):
            raise ValueError(f"{name} makes no storage kind")
    children = tuple([decode_tree(item, leaves) for item in content])
    return TreeDef(_TREES[form], keys, children, sum([child.leaves for child in children]))


def plain_tree(structure: TreeDef) -> TreeDef:
    """Return the structure that a file has of a tree: with tuples for named tuples."""
    leaf = {"array": 0}
    return decode_tree(encode_tree(structure, iter([leaf] * structure.leaves)), [])


def name_of_op(op: Op[...]) -> str:
    """Return the name of an operation in a file. Raises UnsupportedError if it may be in none."""
    name = next((name for name, control in CONTROL_OPS.items() if control is op), None)
    if name is None and op.is_portable:
        name = op.full_name if OPS.get(op.full_name) is op else inner_op_name(op)
    if name is None:
        rule = f"the operation {op.full_name} is not one of Tenfold's that a file may have"
        raise UnsupportedError("save", rule)
    return name


def op_of_name(name: Any) -> Op[...]:
    """Return the operation of a name in a file, or raise LookupError."""
    op = CONTROL_OPS.get(name) or (inner_op(name) if ":" in name else OPS.get(name))
    if not isinstance(op, Op) or not (name in CONTROL_OPS or op.is_portable):
        raise LookupError(f"the operation {str(name)[:60]!r} is not known")
    return op


def _key(operands: tuple[Any, ...], params: Params) -> tuple[Any, ...]:
    """Return what two calls with equal operands have in common."""
    nodes = [_native.node_of(x) if isinstance(x, Array) else exact_params(x) for x in operands]
    return tuple(nodes), exact_params(params)


def check_params(op: Op[...], operands: tuple[Any, ...], params: Params) -> None:
    """Raise an error unless a call of the operation would make this node."""
    bound = op.rebound(operands, params)
    if _key(tuple(bound.inputs), bound.params) != _key(operands, params):
        raise ValueError(f"no call of {op.full_name} has the params {params}"[:MAX_NAME])
