"""Custom operations (`tn.op`): turn a user's Python function into a declared operation.

Takes a function, returns an Op, which is fused and batched like a built-in one if it has an element
rule. It enters the op table only with `public=True`, so that a notebook may declare a name again.

>>> import tenfold as tn
>>> @tn.op
... def addone(x): return x + 1
>>> addone(tn.asarray([1.0, 2.0])).tolist()
[2.0, 3.0]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

from tenfold import _native
from tenfold._native import Array
from tenfold.core import dtype_rules
from tenfold.core.callable_signature import signature_of
from tenfold.core.graph import Graph
from tenfold.core.op import Kind, Op, register
from tenfold.core.op_decorators import DtypeRule, elementwise
from tenfold.dtypes import canonical, promote
from tenfold.errors import DTypeError, ShapeError
from tenfold.namespace.surface import function_of
from tenfold.transforms import batch_compiler
from tenfold.transforms.py_callback import (
    Function,
    checked_cost,
    checked_function,
    declaration_error,
    declared_name,
    import_result,
    opaque_op,
    read_only_view,
    with_function_metadata,
)
from tenfold.transforms.tracer import restore_arrays


def op(
    function: Function | None = None,
    /,
    *,
    reference: Callable[..., Any] | None = None,
    dtypes: DtypeRule | str | None = None,
    shape: Any = None,
    dtype: Any = None,
    name: str | None = None,
    cost: float = 1.0,
    accuracy: int = 0,
    batch: Callable[..., Array] | None = None,
    partials: Sequence[Callable[..., Any] | float] = (),
    vjp: Callable[..., tuple[Any, ...]] | None = None,
    public: bool = False,
) -> Any:
    """Declare an operation of your own: `@tn.op`, or `@tn.op(...)` with options.

    - The body returns an expression of its arguments: an *element rule*, in elementwise operations.
      Shapes broadcast, dtypes promote, and every device has it at once.
    - With `reference`, a function of read-only ndarrays, the body is a docstring: it computes the
      values at each index of the broadcast operands, on the reference device.
    - With `shape` as well the operation need not be elementwise: `shape` and `dtype` are constants
      or functions of the inputs' Types and the keyword-only parameters.

    `dtypes` is an elementwise operation's dtype rule: the name of one of tenfold's ("floating",
    "numeric", ...) or a function from Types to (operand dtypes, result dtype). `cost` is that of an
    element in additions, `accuracy` its error bound in units in the last place. `batch`,
    with `shape`, computes the results of many members from arrays with a batch axis. `partials` are
    derivatives of elements by each operand, numbers or `partial(result, *operands)`;
    `vjp(cotangent, result, *operands)` gives the cotangents of all operands.
    `public` enters it into the table of operations: `tn.<name>` and `tn.operators.<name>`. A bad
    declaration raises TypeError or ValueError; a failure of `reference`, or a result of another
    shape or dtype than declared, RunError where a caller waits.

    >>> import numpy as np, tenfold as tn
    >>> @tn.op(reference=np.hypot, dtypes="real_floating", cost=20)
    ... def distance(x, y): "Length of the vector (x, y)."
    >>> distance(tn.asarray([3.0]), 4).tolist()
    [5.0]
    """

    def declare(user_function: Function) -> Op[...]:
        checked = checked_function("tn.op", user_function)
        fields: dict[str, Any] = {"accuracy": accuracy, "public": public, "permanent": public}
        fields["name"] = declared_name("tn.op", checked, name)
        fields["cost"] = checked_cost("tn.op", cost)
        _check_name(fields["name"], public)
        if shape is not None:
            facts = {**fields, "batch": batch, "vjp": vjp}
            result = _declare_opaque(checked, reference, shape, dtype, dtypes, facts)
        else:
            _check_no_batch(batch)
            fields |= {"partials": tuple(partials), "vjp": vjp}
            result = _declare_elementwise(checked, reference, _dtype_rule(dtypes, dtype), fields)
        return _publish_or_forget(result)

    return declare if function is None else declare(function)


def _check_name(name: str, public: bool) -> None:
    if public and name in vars(sys.modules["tenfold"]):
        rule = f"tenfold has the name {name!r} already"
        raise declaration_error(ValueError, "tn.op", rule, "choose another with name=")


def _declare_opaque(
    function: Function, reference: Any, shape: Any, dtype: Any, dtypes: Any, fields: dict[str, Any]
) -> Op[...]:
    if not callable(reference):
        rule = "an operation with shape= has no values"
        raise declaration_error(
            ValueError, "tn.op", rule, "give reference=, a function of ndarrays"
        )
    if dtypes is not None:
        rule = "dtypes= is for elementwise operations"
        raise declaration_error(ValueError, "tn.op", rule, "say the result's with dtype=")
    result = opaque_op(function, reference, read_only_view, shape=shape, dtype=dtype, **fields)
    if result.public:
        register(result)
    return result


def _check_no_batch(batch: Any) -> None:
    if batch is not None:
        rule, remedy = "batch= is for operations with shape=", "leave it out: elements need none"
        raise declaration_error(ValueError, "tn.op", rule, remedy)


def _declare_elementwise(
    function: Function, reference: Any, rule: DtypeRule | None, fields: dict[str, Any]
) -> Op[...]:
    _check_operands(function)
    if reference is None:
        return with_function_metadata(elementwise(dtypes=rule, **fields)(_element_rule(function)))
    if not callable(reference):
        message_rule = f"reference {reference!r} is not a function"
        raise declaration_error(TypeError, "tn.op", message_rule, "give a function of ndarrays")
    declare = elementwise(
        dtypes=rule or dtype_rules.any_dtype,
        reference=_guarded_reference(reference),
        can_fail=True,
        opaque=True,
        **fields,
    )
    return with_function_metadata(declare(function))


def _check_operands(function: Function) -> None:
    parameters = signature_of(function).parameters.values()
    if not parameters:
        rule = "an elementwise operation needs an operand"
        raise declaration_error(
            TypeError, "tn.op", rule, "give the function a parameter, or say shape="
        )
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY):
            rule = f"the parameter {parameter} of an elementwise operation is not an operand"
            raise declaration_error(
                TypeError, "tn.op", rule, "make one op for each value, or say shape= as well"
            )
        if parameter.default is not parameter.empty:
            rule = f"the operand {parameter.name!r} has a default"
            raise declaration_error(TypeError, "tn.op", rule, "every operand is given in the call")


def _dtype_rule(dtypes: Any, dtype: Any) -> DtypeRule | None:
    """Return the named dtype rule, or the rule of a constant dtype; None without either."""
    if dtypes is not None and dtype is not None:
        raise declaration_error(
            ValueError, "tn.op", "dtypes= and dtype= say the same", "give one of them"
        )
    if dtype is not None:
        result = canonical(dtype, "tn.op")
        return lambda types: ((promote(types),) * len(types), result)
    if dtypes is None:
        return None
    if callable(dtypes):
        return cast(DtypeRule, dtypes)
    named_rules: dict[object, DtypeRule] = {
        name: rule
        for name, rule in vars(dtype_rules).items()
        if callable(rule) and not name.startswith("_") and rule.__module__ == dtype_rules.__name__
    }
    if dtypes in named_rules:
        return named_rules[dtypes]
    rule = f"dtypes {dtypes!r} is none of {', '.join(sorted(map(str, named_rules)))}"
    raise declaration_error(
        ValueError, "tn.op", rule, "name one of them, or give a function of Types"
    )


def _element_rule(function: Function) -> Function:
    """Wrap an element rule: its result must be elementwise, of its arguments only."""

    @wraps(function)
    def element(*arguments: Array) -> Array:
        with restore_arrays(""):
            result = function(*arguments)
        if type(result) is not Array:
            rule = f"its element rule returned {type(result).__name__}, not an array"
            remedy = "return an expression of the arguments, or declare with reference="
            raise DTypeError("", rule, remedy=remedy)
        _check_reads(result, arguments)
        return result

    return element


def _check_reads(result: Array, arguments: tuple[Array, ...]) -> None:
    node = _native.node_of(result)
    if node.kind > Kind.MAP or result.ndim > max(x.ndim for x in arguments):
        raise ShapeError(
            "",
            "its element rule reads or makes other elements than those at its index",
            remedy="the body of an op is one element; use a plain function for other expressions, "
            "or declare with shape= and reference=",
        )
    argument_nodes = {_native.node_of(argument) for argument in arguments}
    for source in Graph.of([node]).nodes:
        if not (source.is_scalar or source.pending or source in argument_nodes):
            raise ShapeError(
                "",
                "its element rule reads an array that is none of its arguments",
                remedy="make that array an argument as well",
            )


def _guarded_reference(reference: Function) -> Function:
    """Wrap a user's reference: its operands and its result are read-only."""

    def computed(*operands: Any) -> Any:
        return import_result(reference(*map(read_only_view, operands)))

    return computed


def _publish_or_forget(op: Op[...]) -> Op[...]:
    """Publish a public operation; schedule the caches of another one to be dropped.

    A declaration in a loop makes a new operation in each iteration.
    """
    if op.public:
        _publish(op)
    else:
        batch_compiler.forget_op_later(op.id)
    return op


def _publish(op: Op[...]) -> None:
    """Add a public operation to `tn` and `tn.operators`."""
    package = sys.modules["tenfold"]
    setattr(package, op.name, function_of(op))
    setattr(package.operators, op.name, op)
