"""Custom operations (`tn.op`): turn a user's Python function into a declared operation.

Takes a function, hands on an Op that is called like any other, fused and batched like any other
when it has an element rule. It enters no table unless `public=True` is said, so that a notebook
may declare the same name again.

>>> import tenfold as tn
>>> @tn.op
... def addone(x): return x + 1
>>> addone(tn.asarray([1.0, 2.0])).tolist()
[2.0, 3.0]
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from tenfold import _native
from tenfold._native import Array
from tenfold.core import dtype_rules
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
    checked_name,
    imported,
    named,
    opaque_op,
    refused,
    unwriteable,
)
from tenfold.transforms.tracing_scope import restored


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
    public: bool = False,
) -> Any:
    """Declare an operation of your own: `@tn.op`, or `@tn.op(...)` with what is to be said of it.

    - The body returns an expression of its arguments: an *element rule*, in elementwise operations.
      Shapes broadcast, dtypes promote, and every device has it at once.
    - With `reference`, a function of read-only ndarrays, the body is a docstring: the values at
      each index of the broadcast operands are computed by it, on the reference device.
    - With `shape` as well it is an operation of any other form: `shape` and `dtype` are constants
      or functions of the inputs' Types and the keyword-only parameters.

    `dtypes` is the dtype rule of an elementwise operation: the name of one of tenfold's
    ("floating", "numeric", ...) or a function from Types to (operand dtypes, result dtype). `cost`
    is that of one element in additions, `accuracy` its error bound in units in the last place.
    `batch`, with `shape`, makes the results of many members of arrays with another axis in front.
    `public` enters it into the table of operations: `tn.<name>` and `tn.operators.<name>`.

    A bad declaration raises TypeError or ValueError. A failure of `reference`, or a result of
    another shape or dtype than declared, raises RunError where a caller waits.

    >>> import numpy as np, tenfold as tn
    >>> @tn.op(reference=np.hypot, dtypes="real_floating", cost=20)
    ... def distance(x, y): "Length of the vector (x, y)."
    >>> distance(tn.asarray([3.0]), 4).tolist()
    [5.0]
    """

    def declare(given: Function) -> Op[...]:
        checked = checked_function("tn.op", given)
        facts = {
            "name": checked_name("tn.op", checked, name),
            "cost": checked_cost("tn.op", cost),
            "accuracy": accuracy,
            "public": public,
            "permanent": public,
        }
        if public and facts["name"] in vars(sys.modules["tenfold"]):
            rule = f"tenfold has the name {facts['name']!r} already"
            raise refused(ValueError, "tn.op", rule, "choose another with name=")
        if shape is not None:
            made = _general(checked, reference, shape, dtype, dtypes, {**facts, "batch": batch})
        else:
            _refuse_batch(batch)
            made = _elementwise(checked, reference, _dtype_rule(dtypes, dtype), facts)
        return _kept(made)

    return declare if function is None else declare(function)


def _general(
    function: Function, reference: Any, shape: Any, dtype: Any, dtypes: Any, facts: dict[str, Any]
) -> Op[...]:
    if not callable(reference):
        rule = "an operation with shape= has no values"
        raise refused(ValueError, "tn.op", rule, "give reference=, a function of ndarrays")
    if dtypes is not None:
        rule = "dtypes= is for elementwise operations"
        raise refused(ValueError, "tn.op", rule, "say the result's with dtype=")
    made = opaque_op(function, reference, unwriteable, shape=shape, dtype=dtype, **facts)
    if made.public:
        register(made)
    return made


def _refuse_batch(batch: Any) -> None:
    if batch is not None:
        rule, remedy = "batch= is for operations with shape=", "leave it out: elements need none"
        raise refused(ValueError, "tn.op", rule, remedy)


def _elementwise(
    function: Function, reference: Any, rule: DtypeRule | None, facts: dict[str, Any]
) -> Op[...]:
    _check_operands(function)
    if reference is None:
        return named(elementwise(dtypes=rule, **facts)(_element_rule(function)))
    if not callable(reference):
        shown = f"reference {reference!r} is not a function"
        raise refused(TypeError, "tn.op", shown, "give a function of ndarrays")
    declare = elementwise(
        dtypes=rule or dtype_rules.any_dtype,
        reference=_guarded(reference),
        can_fail=True,
        opaque=True,
        **facts,
    )
    return named(declare(function))


def _check_operands(function: Function) -> None:
    parameters = inspect.signature(function).parameters.values()
    if not parameters:
        rule = "an elementwise operation needs an operand"
        raise refused(TypeError, "tn.op", rule, "give the function a parameter, or say shape=")
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY):
            rule = f"the parameter {parameter} of an elementwise operation is not an operand"
            raise refused(
                TypeError, "tn.op", rule, "make one op for each value, or say shape= as well"
            )
        if parameter.default is not parameter.empty:
            rule = f"the operand {parameter.name!r} has a default"
            raise refused(TypeError, "tn.op", rule, "every operand is given in the call")


def _dtype_rule(dtypes: Any, dtype: Any) -> DtypeRule | None:
    """Return the dtype rule that was named, or that gives a constant dtype; None for neither."""
    if dtypes is not None and dtype is not None:
        raise refused(ValueError, "tn.op", "dtypes= and dtype= say the same", "give one of them")
    if dtype is not None:
        result = canonical(dtype, "tn.op")
        return lambda types: ((promote(types),) * len(types), result)
    if dtypes is None:
        return None
    if callable(dtypes):
        return cast(DtypeRule, dtypes)
    known: dict[object, DtypeRule] = {
        name: rule
        for name, rule in vars(dtype_rules).items()
        if callable(rule) and not name.startswith("_") and rule.__module__ == dtype_rules.__name__
    }
    if dtypes in known:
        return known[dtypes]
    rule = f"dtypes {dtypes!r} is none of {', '.join(sorted(map(str, known)))}"
    raise refused(ValueError, "tn.op", rule, "name one of them, or give a function of Types")


def _element_rule(function: Function) -> Function:
    """Return an element rule that checks what it returns: elementwise, of its arguments alone."""

    @wraps(function)
    def element(*arguments: Array) -> Array:
        with restored(""):
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
    own = {_native.node_of(argument) for argument in arguments}
    for below in Graph.of([node]).nodes:
        if not (below.is_scalar or below.pending or below in own):
            raise ShapeError(
                "",
                "its element rule reads an array that is none of its arguments",
                remedy="make that array an argument as well",
            )


def _guarded(reference: Function) -> Function:
    """Return a user's reference that can write neither to its operands nor later to its result."""

    def computed(*operands: Any) -> Any:
        return imported(reference(*map(unwriteable, operands)))

    return computed


def _kept(made: Op[...]) -> Op[...]:
    """Enter a public operation into the tables; one that is declared in a loop is another each
    turn, and goes.
    """
    if made.public:
        _publish(made)
    else:
        batch_compiler.forget_later(made.id)
    return made


def _publish(made: Op[...]) -> None:
    """Put a public operation where the others stand."""
    package = sys.modules["tenfold"]
    setattr(package, made.name, function_of(made))
    setattr(package.operators, made.name, made)
