"""Vectorising map (`tn.vmap`): maps a function of one member over the named axes of many.

Takes a function and axes, returns a function. A call traces the function once, on placeholders of
one member's shapes, and batches the traced expression (`transforms/batch_interpreter.py`). Nothing
is computed.

>>> import tenfold as tn
>>> tn.vmap(lambda x, y: tn.sum(x * y))(tn.ones((3, 2)), tn.ones((3, 2))).tolist()
[2.0, 2.0, 2.0]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.pytree import TreeDef, broadcast_prefix, flatten
from tenfold.core.shape_rules import normalize_axis
from tenfold.errors import DTypeError, ExplainedError, ShapeError, message
from tenfold.interop.asarray import asarray
from tenfold.ops.indexing import capture
from tenfold.ops.movement import moveaxis
from tenfold.ops.reshaping import broadcast_to
from tenfold.transforms.batch_interpreter import BatchedNode, batch_nodes
from tenfold.transforms.tracer import tracing

VALUES_REMEDY = (
    "choose by values with tn.where or tn.cond, repeat with tn.while_loop, count with tn.sum(mask);"
    " members of different shapes cannot be batched: call the function for each"
)


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return the function that applies `function` to every member along an axis, all at once.

    - `in_axes` is the batch axis of the arguments: an int for all, or a tuple with an int, None
      (the members share the argument), or a tree of these for each positional argument.
      Negative axes count from the end. Keyword arguments are mapped over axis 0.
    - `out_axes` is the batch axis of the results; None for a result that all members share.
    - Arguments and results may be tuples, named tuples, lists, dicts and dataclasses of arrays, to
      any depth. Captured arrays are shared by all members.

    `function` runs once in each call, on placeholders of one member's shape; nothing is computed
    before a result is asked for. The result of a member does not depend on the batch size: it has
    the bits of an unbatched call. Products and linear algebra are the exception: libraries batch
    them, within the bound of a reordered sum.

    Raises ShapeError when nothing is mapped, lengths differ, or an axis is out of range; DTypeError
    for a result that is not an array; UnsupportedError where `function` asks for values.

    The name and the axes are those of `jax.vmap` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> def distance(x, point): return tn.sqrt(tn.sum((x - point) ** 2))
    >>> points = tn.asarray([[3.0, 4.0], [6.0, 8.0]])
    >>> tn.vmap(distance, in_axes=(0, None))(points, tn.zeros((2,))).tolist()
    [5.0, 10.0]
    >>> tn.vmap(lambda row: {"sum": tn.sum(row)}, out_axes={"sum": 0})(points)["sum"].tolist()
    [7.0, 14.0]
    """
    user_function: object = function
    if not callable(user_function):
        rule = f"{type(user_function).__name__} is not a function"
        raise TypeError(message("tn.vmap", rule, remedy="as in tn.vmap(lambda x: x + 1)"))

    @wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        axes = _leaf_axes(in_axes, structure, len(args))
        operands = _mapped_operands(leaves, axes, structure)
        length = _mapped_length(operands, structure)
        with tracing("tn.vmap", VALUES_REMEDY):
            members, replacements = _placeholders(operands)
            own_args, own_kwargs = structure.unflatten(members)
            result = function(*own_args, **own_kwargs)
        outputs, result_structure = flatten(result)
        arrays = _result_arrays(outputs, result_structure)
        batched_nodes = batch_nodes([_native.node_of(x) for x in arrays], replacements)
        result_axes = _broadcast_axes("out_axes", out_axes, result_structure)
        return result_structure.unflatten(
            map(_place_batch_axis, batched_nodes, result_axes, [length] * len(batched_nodes))
        )

    return mapped


def _leaf_axes(in_axes: Any, structure: TreeDef, count: int) -> list[Any]:
    """Return the batch axis of each leaf of the arguments; None for a shared leaf."""
    args_structure, kwargs_structure = structure.children
    if not (in_axes is None or isinstance(in_axes, (int, tuple, list))):
        rule = f"in_axes {in_axes!r} is not an int, None or a tuple"
        raise TypeError(message("tn.vmap", rule, remedy="give an axis for each argument"))
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != count:
        rule = f"in_axes has {len(in_axes)} axes for {count} positional arguments"
        remedy = "give one for each; arguments by name are mapped over axis 0"
        raise ShapeError("tn.vmap", rule, remedy=remedy)
    prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    return [*_broadcast_axes("in_axes", prefix, args_structure), *[0] * kwargs_structure.leaves]


def _broadcast_axes(name: str, prefix: Any, structure: TreeDef) -> list[Any]:
    try:
        return broadcast_prefix(prefix, structure)
    except ValueError as error:
        remedy = "give an int or None for a whole part, or axes in the form of the part"
        raise ShapeError("tn.vmap", f"{name}: {error}", remedy=remedy) from None


def _mapped_operands(
    leaves: Sequence[Any], axes: Sequence[Any], structure: TreeDef
) -> list[BatchedNode]:
    """Return each leaf with its batch axis in front; a shared leaf is unchanged."""
    operands = []
    for at, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            operands.append(BatchedNode(leaf, batched=False))
            continue
        try:
            x = capture(leaf) if isinstance(leaf, Array) else asarray(leaf)
        except (TypeError, ValueError):
            rule = f"{_leaf_name(structure, at)} is a {type(leaf).__name__}, not an array"
            remedy = "share it with None in in_axes"
            raise DTypeError("tn.vmap", rule, remedy=remedy) from None
        normal_axis = _normalize_axis(axis, x.ndim, x, partial(_axis_label, structure, at))
        operands.append(
            BatchedNode(moveaxis(x, normal_axis, 0) if normal_axis else x, batched=True)
        )
    return operands


def _axis_label(structure: TreeDef, at: int) -> str:
    return f"in_axes of {_leaf_name(structure, at)}"


def _normalize_axis(axis: Any, ndim: int, x: Array, label: Callable[[], str]) -> int:
    """Return a nonnegative axis, or raise an error that names the argument."""
    try:
        if isinstance(axis, bool):
            raise TypeError
        return normalize_axis(operator.index(axis), ndim)
    except ExplainedError:
        rule = f"{label()}: axis {axis} of an array of {ndim} axes"
        remedy = f"{-ndim} to {ndim - 1}" if ndim else "None: it has no members"
        raise ShapeError("tn.vmap", rule, [x], remedy=f"give {remedy}") from None
    except TypeError:
        rule = f"{label()}: {axis!r} is not an axis"
        raise TypeError(message("tn.vmap", rule, [x], "give an int or None")) from None


def _leaf_name(structure: TreeDef, at: int) -> str:
    """Return the path of a leaf of (args, kwargs) in the user's notation."""
    path = structure.paths()[at]
    return f"args{path[3:]}" if path.startswith("[0]") else f"kwargs{path[3:]}"


def _mapped_length(operands: Sequence[BatchedNode], structure: TreeDef) -> int:
    lengths: dict[int, int] = {}
    for at, operand in enumerate(operands):
        if operand.batched:
            lengths.setdefault(operand.value.shape[0], at)
    if not lengths:
        remedy = "give an axis of one argument at least in in_axes"
        raise ShapeError("tn.vmap", "no argument is mapped", remedy=remedy)
    if len(lengths) > 1:
        details = ", ".join(f"{_leaf_name(structure, at)} has {n}" for n, at in lengths.items())
        remedy = "mapped axes are equally long; share an argument with None in in_axes"
        raise ShapeError("tn.vmap", f"the numbers of members differ: {details}", remedy=remedy)
    return next(iter(lengths))


def _placeholders(operands: Sequence[BatchedNode]) -> tuple[list[Any], dict[Any, BatchedNode]]:
    """Return the arguments of one member's call, and the replacements of its placeholders.

    Shared arrays are copied, since the function may assign to its arguments.
    """
    arguments, replacements = [], {}
    for operand in operands:
        argument = operand.value
        if operand.batched:
            argument = _native.placeholder(
                Type(argument.shape[1:], argument.dtype, argument.device)
            )
            replacements[_native.node_of(argument)] = operand
        elif isinstance(argument, Array):
            argument = capture(argument)
        arguments.append(argument)
    return arguments, replacements


def _result_arrays(outputs: Sequence[Any], structure: TreeDef) -> list[Array]:
    """Return the results as arrays, or raise DTypeError for a result that is not one."""
    if structure.type is type(None):
        remedy = "return an array, or a tuple, list, dict or dataclass of arrays"
        raise DTypeError("tn.vmap", "the function returned None", remedy=remedy)
    arrays = []
    for at, output in enumerate(outputs):
        if not isinstance(output, (Array, np.ndarray, np.generic, bool, int, float, complex)):
            rule = f"the function returned a {type(output).__name__}, not an array"
            rule += f", at {structure.paths()[at]}" if structure.children else ""
            raise DTypeError("tn.vmap", rule, remedy="return arrays and numbers")
        arrays.append(output if isinstance(output, Array) else asarray(output))
    return arrays


def _place_batch_axis(result: BatchedNode, axis: Any, length: int) -> Array:
    """Return a result with its batch axis at `axis`; None for a result that all members share."""
    x: Array = result.value
    if axis is None:
        if result.batched:
            rule = "out_axes is None for a result that differs from member to member"
            raise ShapeError("tn.vmap", rule, [x], remedy="give the axis where members are to lie")
        return x
    ndim = x.ndim + (not result.batched)
    normal_axis = _normalize_axis(axis, ndim, x, lambda: "out_axes")
    if not result.batched:
        x = _native.apply(broadcast_to.id, (x,), ((length, *x.shape), 1))
    return moveaxis(x, 0, normal_axis) if normal_axis else x


__all__ = ["vmap"]
