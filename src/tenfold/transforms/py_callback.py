"""Python callback: an operation whose values are computed by a user's Python function.

Takes a function and the declared Type of its result, returns an Op that is one node. Positional
parameters are arrays; keyword-only ones are hashable parameters: numbers, text, dtypes, tuples of
them. The result's shape and dtype are constants, or functions of the inputs' Types (which have
`shape`, `dtype`, `ndim`, `size`) and the parameters by name. An exception of the function becomes a
RunError at the wait, raised from the original.

>>> import numpy as np, tenfold as tn
>>> @tn.op(shape=lambda x: x.shape[:1], reference=lambda x: np.median(x, axis=1))
... def row_median(x): "Median of each row."
>>> row_median(tn.asarray([[1.0, 2.0, 9.0]])).tolist()
[2.0]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.callable_signature import input_signature, name_of, signature_of
from tenfold.core.op import BoundCall, Inferred, Kind, Op
from tenfold.core.op_decorators import array, binder
from tenfold.core.shape_rules import Shape, checked_shape
from tenfold.dtypes import canonical
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.interop.materialize import value_of
from tenfold.ops.batch_rules import Members
from tenfold.runtime.reference import Reference
from tenfold.settings import checked_device
from tenfold.storage import dense

Function = Callable[..., Any]
Types = tuple[Type, ...]


def declaration_error(
    error: type[Exception], declaration: str, rule: str, remedy: str
) -> Exception:
    """Return the error of an invalid declaration, to be raised."""
    return error(message(declaration, rule, remedy=remedy))


def checked_function(declaration: str, function: object) -> Function:
    """Return the declared function, or raise TypeError for one without named parameters."""
    if not callable(function):
        rule_ = f"{type(function).__name__} is not a function"
        raise declaration_error(TypeError, declaration, rule_, f"write @{declaration} above a def")
    for parameter in signature_of(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            rule = f"**{parameter.name} does not say which parameters there are"
            raise declaration_error(
                TypeError, declaration, rule, "name each after a *, as in f(x, *, count)"
            )
    return function


def declared_name(declaration: str, function: Function, name: object) -> str:
    """Return the name of a declaration: `name`, or the function's name."""
    result = name_of(function) if name is None else name
    if isinstance(result, str) and result.isidentifier():
        return result
    raise declaration_error(
        ValueError, declaration, f"{result!r} is not a name", "give one, as in name='addone'"
    )


def checked_cost(declaration: str, cost: object) -> float:
    """Return the cost of one element: a positive number."""
    number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
    if number and 0 < cost < float("inf"):  # type: ignore[operator]  # a number by now
        return float(cost)  # type: ignore[arg-type]  # likewise
    raise declaration_error(
        ValueError, declaration, f"cost {cost!r} is not a positive number", "an addition costs 1"
    )


def opaque_op(
    function: Function,
    compute: Function,
    operand: Callable[[np.ndarray, str], Any],
    *,
    shape: Any,
    dtype: Any,
    batch: Function | None = None,
    vjp: Function | None = None,
    **fields: Any,
) -> Op[...]:
    """Declare an op that `compute(*operands, **parameters)` evaluates.

    `operand` converts the read-only values and the device of each input. `shape` and `dtype`
    declare the result; None stands for those of the first input. `batch` computes the results of
    many members from operands with the batch axis in front, `vjp` the cotangents of the operands.
    """
    signature = input_signature(function)
    bound_arguments = binder(function, signature)
    names = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]

    def rule(types: Types, values: tuple[Any, ...], _: str) -> Inferred:
        parameters = dict(zip(names, values, strict=True))
        lengths = _declared_shape(shape, types, parameters)
        result = lengths, _declared_dtype(dtype, types, parameters)
        return Inferred((result,), tuple(type_.dtype for type_ in types))

    def reference(*operands: Any) -> np.ndarray:
        *inputs, values, device = operands
        parameters = dict(zip(names, values, strict=True))
        return import_result(compute(*(operand(x, device) for x in inputs), **parameters))

    def bind(*args: Any, **kwargs: Any) -> BoundCall:
        bound = bound_arguments(args, kwargs)
        inputs = tuple(array(value) for value in bound.args)
        values = tuple(_canonical_parameter(name, bound.kwargs[name]) for name in names)
        return BoundCall(inputs, (values, inputs[0].device if inputs else checked_device(None)))

    def batch_rule(members: Members, values: tuple[Any, ...], _: str) -> Any:
        if batch is None:
            return NotImplemented
        operands = [members.in_front(at) for at in range(len(members.operands))]
        return batch(*operands, **dict(zip(names, values, strict=True)))

    return with_function_metadata(
        Op.declare(
            function=function,
            page=getattr(function, "__module__", None) or "",
            kind=Kind.CONTRACTION,
            rule=rule,
            bind=bind,
            reference=reference,
            batch=batch_rule,
            vjp=None if vjp is None else partial(_call_vjp, vjp, names),
            can_fail=True,
            opaque=True,
            **fields,
        )
    )


def _call_vjp(vjp: Function, names: list[str], *arguments: Any) -> Any:
    """Call a user's derivative with the parameters by their names."""
    *arrays, values, _device = arguments
    return vjp(*arrays, **dict(zip(names, values, strict=True)))


def with_function_metadata(op: Op[...]) -> Op[...]:
    """Give an op the name, docstring and signature of its function, for `help`."""
    function = op.function
    described = {"__name__": op.name, "__doc__": function.__doc__, "__wrapped__": function}
    vars(op).update(described, __module__=getattr(function, "__module__", None))
    return op


def _declared_shape(shape: Any, types: Sequence[Type], parameters: Mapping[str, Any]) -> Shape:
    if shape is None:
        if not types:
            raise ShapeError("", "no input whose shape it could have", remedy="declare with shape=")
        return types[0].shape
    declared = shape(*types, **parameters) if callable(shape) else shape
    return checked_shape(tuple(declared) if isinstance(declared, list) else declared)


def _declared_dtype(dtype: Any, types: Sequence[Type], parameters: Mapping[str, Any]) -> np.dtype:
    if dtype is None:
        if not types:
            raise DTypeError("", "no input whose dtype it could have", remedy="declare with dtype=")
        return types[0].dtype
    is_function = callable(dtype) and not isinstance(dtype, (type, np.dtype))
    return canonical(dtype(*types, **parameters) if is_function else dtype, "")


def _canonical_parameter(name: str, value: Any) -> Any:
    """Return a parameter in canonical form, or raise DTypeError when it has none."""
    if isinstance(value, (list, tuple)):
        return tuple(_canonical_parameter(name, item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Array, np.ndarray)):
        rule = f"the parameter {name!r} is an array"
        raise DTypeError("", rule, remedy="arrays are passed by position")
    try:
        hash(value)
    except TypeError:
        rule = f"the parameter {name!r}, a {type(value).__name__}, is unhashable"
        raise DTypeError("", rule, remedy="pass a number, text or a tuple") from None
    return value


def read_only_view(values: np.ndarray, _device: str = "") -> np.ndarray:
    """Return a view that a user's function cannot write to."""
    values = values.view()
    values.flags.writeable = False
    return values


def import_result(result: Any) -> np.ndarray:
    """Return the result of a user's function as a read-only ndarray."""
    if type(result) is Array:
        return value_of(result)
    return dense.export(dense.import_values(np.asarray(result), Reference().name))
