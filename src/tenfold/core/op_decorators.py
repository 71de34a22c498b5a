"""Op decorators: declare operations by `elementwise`, `movement`, `reduction`, `operation` and
`derived`.

Each takes the fields of an operation and decorates a function with the public signature and
docstring, and hands on the registered Op (or Derived).

- `elementwise` with `reference`: a primitive; the body is only a docstring. `kernel` is its
  definition by instructions of a kernel (`core/scalar_ir.py`).
- `elementwise` without: the body is the element rule, by other operations on Arrays.
- `movement`, `operation`: the body binds the arguments: it returns `BoundCall(inputs, params)`.
- `reduction`: the family binds `axis` and `keepdims`; the body is only a docstring.
- `derived`: the body creates the nodes itself.

Without `reference`, the first function of `numpy` is the reference.

>>> from tenfold.core.op import OPS
>>> OPS["exp"].page
'elementary'
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.callable_signature import name_of, signature_of
from tenfold.core.op import BoundCall, Derived, Inferred, Kind, Op, P, Params, register
from tenfold.core.pattern import Pattern
from tenfold.core.shape_rules import Axis, Shape, broadcast, normalize_axes, reduced
from tenfold.dtypes import HALF_DTYPES, canonical, compute_dtype, dtype_names, kind_of, promote
from tenfold.errors import DTypeError, ShapeError, UnsupportedError

DtypeRule = Callable[[Sequence[Type]], tuple[tuple[np.dtype, ...], np.dtype]]
"""From the operands' Types to (each operand's dtype in the computation, the result's dtype)."""


def array(value: Any, peer: Array | None = None) -> Array:
    """Return an argument as an Array: ndarrays and numbers are imported, to the device of `peer` if
    there is one; lists are refused.
    """
    if type(value) is Array:
        return value
    converted = _converter(value, peer)
    if converted is NotImplemented:
        raise not_an_array_error(value)
    imported: Array = converted
    return imported


def not_an_array_error(value: object, operation: str = "exp") -> DTypeError:
    """Return the error for an argument that is neither an array nor a number.

    For a rewrite pattern the remedy names the function of `tn.rules.pattern`.
    """
    rule = f"{type(value).__name__} is not an array or a number"
    remedy = "make an array of it first, with tn.asarray(...)"
    if isinstance(value, (str, bytes, os.PathLike)):
        remedy = "read a file first, as in tn.asarray(np.load(path))"
    if isinstance(value, Pattern):
        rule = f"{type(value).__name__} of a rule's pattern is not an array"
        remedy = f"write tn.rules.pattern.{operation.replace('.', '_')}(...) in a pattern"
    return DTypeError("", rule, remedy=remedy)


def as_stack(_: int, *params: Any) -> Params:
    """The `batch_params` of an operation on stacked operands: the same params."""
    return params


def along_next_axis(_: int, axis: int, *remaining: Any) -> Params:
    """The `batch_params` of an operation whose first param is an axis."""
    return (axis + 1, *remaining)


FORMULA_COST = 20.0
"""The cost of an elementary function, in additions."""
_converter: Callable[[Any, Any], Any]


def set_converter(converter: Callable[[Any, Any], Any]) -> None:
    """Set the function that imports foreign operands; called by `tenfold.array`."""
    global _converter
    _converter = converter


def values(x: Array, operation: str) -> np.ndarray:
    """Compute and return the values of `x`, read-only: a result's shape depends on them."""
    return _reader(x, operation)


_reader: Callable[[Array, str], np.ndarray]


def set_reader(reader: Callable[[Array, str], np.ndarray]) -> None:
    """Set the function that computes values; called by `tenfold.array`."""
    global _reader
    _reader = reader


def refuse_derivative(x: Array, operation: str = "") -> None:
    """Raise UnsupportedError for an array that is watched, or made of one: its values are read."""
    if kind_of(x.dtype) in "fc" and _native.node_of(x).is_made_of_watched:
        rule = "it has no derivative, since it reads values"
        remedy = "take tn.stop_gradient(x) for a constant; of lists tn.stack(arrays)"
        raise UnsupportedError(operation, rule, [x], remedy)


def _op_fields(
    function: Callable[..., Any], facts: dict[str, Any], reference: Callable[..., Any] | None
) -> dict[str, Any]:
    """Return the fields of an operation, completed from its function."""
    facts.setdefault("name", name_of(function))
    if facts.get("elementary"):
        facts.setdefault("cost", FORMULA_COST)
    page = getattr(function, "__module__", None) or ""
    facts.setdefault("page", page.rpartition(".")[2])
    facts["samples"] = tuple(facts.get("samples", ()))
    facts["numpy"] = tuple(facts.get("numpy", ()))
    ufunc = getattr(reference, "__wrapped__", reference)  # of one that is widened
    if isinstance(ufunc, np.ufunc) and ufunc not in facts["numpy"]:
        facts["numpy"] = (ufunc, *facts["numpy"])
    facts["reference"] = reference or next(iter(facts["numpy"]), None)
    return facts


def _register_if_public(op: Op[P]) -> Op[P]:
    if op.public:
        register(op)
    return op


def binder(
    function: Callable[..., Any], signature: inspect.Signature | None = None
) -> Callable[[Sequence[Any], Mapping[str, Any]], inspect.BoundArguments]:
    """Return a function that binds a call's arguments, with defaults, as `Signature.bind` does."""
    signature = signature or signature_of(function)
    parameters = signature.parameters.values()
    keyword_defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    required = {
        name for name, default in keyword_defaults.items() if default is inspect.Parameter.empty
    }
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    positional_count = (
        None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    )

    def bind(args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        if len(args) == positional_count and required <= kwargs.keys() <= keyword_defaults.keys():
            # fast path: `Signature.bind` takes longer than the remaining call
            arguments = {**dict(zip(positional, args, strict=True)), **keyword_defaults, **kwargs}
            return inspect.BoundArguments(signature, arguments)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            too_many = (
                positional_count is not None and len(args) > positional_count and keyword_defaults
            )
            hint = (
                f"; by name alone: {', '.join(f'{name}=' for name in keyword_defaults)}"
                if too_many
                else ""
            )
            raise TypeError(f"{name_of(function)}() {error}{hint}") from None
        bound.apply_defaults()
        return bound

    return bind


def elementwise(
    *, dtypes: DtypeRule | None = None, reference: Callable[..., Any] | None = None, **facts: Any
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare an operation on the elements at one index of broadcast operands.

    `dtypes` is optional for an element rule: the result has the dtype of the rule's expression, and
    half operands are computed in float32 and rounded once. `kernel(body, *operands)` is a
    primitive's kernel rule, on elements of the dtypes of `dtypes`.
    """

    def declare(function: Callable[P, Array]) -> Op[P]:
        arity = len(signature_of(function).parameters)
        bound_arguments = binder(function)
        element = function if reference is None else None

        def rule(types: tuple[Type, ...]) -> Inferred:
            shape = broadcast(*(type_.shape for type_ in types))
            if element is not None:
                return _traced(element, types, shape, dtypes or _promoted)
            assert dtypes is not None, "a primitive states its dtype rule"
            operands, result = dtypes(types)
            return Inferred(((shape, result),), operands)

        def bind(*args: Any, **kwargs: Any) -> BoundCall:
            if kwargs or len(args) != arity:
                args = bound_arguments(args, kwargs).args
            return BoundCall(args)

        bind.__name__ = name_of(function)
        return _register_if_public(
            Op.declare(
                function=function,
                kind=Kind.MAP,
                rule=rule,
                bind=bind,
                element=element,
                dtypes=dtypes or _promoted,
                shapes="broadcast",
                rule_free=True,
                promotes=True,
                **_op_fields(function, facts, reference),
            )
        )

    return declare


def _promoted(types: Sequence[Type]) -> tuple[tuple[np.dtype, ...], np.dtype]:
    """The default dtype rule of an element rule: all operands in the common dtype."""
    common = promote(types)
    return (common,) * len(types), common


def _traced(
    element: Callable[..., Array], types: Sequence[Type], shape: Shape, dtypes: DtypeRule
) -> Inferred:
    """Infer by running the element rule on placeholders; half operands enter it as float32."""
    operands = dtypes(types)[0]
    device = next(type_.device for type_ in types if not type_.weak)
    placeholders = (
        _native.placeholder(Type((), compute_dtype(dtype), device)) for dtype in operands
    )
    result = element(*placeholders).dtype
    half_dtypes = [dtype for dtype in operands if dtype in HALF_DTYPES]
    if half_dtypes and result == compute_dtype(half_dtypes[0]):
        result = half_dtypes[0]
    return Inferred(((shape, result),), tuple(compute_dtype(dtype) for dtype in operands))


def movement(
    *, shape: Callable[..., Shape], reference: Callable[..., Any] | None = None, **facts: Any
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare an operation that reads its one input at other indices: `shape(shape, *params)`."""
    facts.setdefault("bind_depends_on", "types")
    facts.setdefault("rule_free", True)

    def declare(function: Callable[P, BoundCall]) -> Op[P]:
        def rule(types: tuple[Type, ...], *params: Any) -> Inferred:
            (type_,) = types
            return Inferred(((shape(type_.shape, *params), type_.dtype),), (type_.dtype,))

        return _register_if_public(
            Op.declare(
                function=function,
                kind=Kind.VIEW,
                rule=rule,
                bind=function,
                **_op_fields(function, facts, reference),
            )
        )

    return declare


def reduction(
    *,
    dtypes: Callable[..., tuple[np.dtype, np.dtype]],
    reference: Callable[..., Any],
    empty: bool = True,
    axes_of: Callable[[Axis, int], tuple[int, ...]] = normalize_axes,
    **facts: Any,
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare a reduction over axes. The function's parameters after `x` are `axis`, then those of
    the dtype rule, then `keepdims`; params are (axes, keepdims, *remaining).

    `dtypes(type, *remaining)` gives (operand, result); `empty=False`: an empty axis is an error;
    `axes_of(axis, ndim)` gives the axes in ascending order.
    """

    def declare(function: Callable[P, Array]) -> Op[P]:
        bound_arguments = binder(function)

        def rule(
            types: tuple[Type, ...], axes: tuple[int, ...], keepdims: bool, *remaining: Any
        ) -> Inferred:
            (type_,) = types
            if not empty:
                _refuse_empty(type_, axes)
            operand, result = dtypes(type_, *remaining)
            return Inferred(((reduced(type_.shape, axes, keepdims), result),), (operand,))

        def bind(*args: Any, **kwargs: Any) -> BoundCall:
            bound = bound_arguments(args, kwargs)
            x = array(bound.arguments.pop("x"))
            axes = axes_of(bound.arguments.pop("axis"), x.ndim)
            keepdims = bool(bound.arguments.pop("keepdims"))
            remaining = tuple(
                canonical(value, function.__name__)
                if name == "dtype" and value is not None
                else value
                for name, value in bound.arguments.items()
            )
            return BoundCall((x,), (axes, keepdims, *remaining))

        return _register_if_public(
            Op.declare(
                function=function,
                kind=Kind.CONTRACTION,
                rule=rule,
                bind=bind,
                rebind=_reduction_again(function, bind, one_axis=axes_of is not normalize_axes),
                portable=True,
                reduces=True,
                shapes="reduced",
                rule_free=True,
                bind_depends_on="ranks",
                **_op_fields(function, facts, reference),
            )
        )

    return declare


def _reduction_again(
    function: Callable[..., Any], bind: Callable[..., BoundCall], *, one_axis: bool
) -> Callable[..., BoundCall]:
    """Return the `rebind` of a reduction."""
    names = [name for name in signature_of(function).parameters if name not in ("axis", "keepdims")]

    def rebind(x: Array, axes: Any, keepdims: Any, *remaining: Any) -> BoundCall:
        axis = axes if not one_axis else axes[0] if len(axes) == 1 else None
        options = dict(zip(names[1:], remaining, strict=True))
        return bind(x, axis=axis, keepdims=keepdims, **options)

    return rebind


def _refuse_empty(type_: Type, axes: Sequence[int]) -> None:
    if any(type_.shape[axis] == 0 for axis in axes):
        raise ShapeError(
            "",
            f"axis {axes if len(axes) != 1 else axes[0]} of shape {type_.shape} is empty "
            "and this reduction has no identity",
            remedy="test x.size first, or concat an identity of your own",
        )


def operation(
    *,
    rule: Callable[..., Inferred],
    reference: Callable[..., Any] | None = None,
    kind: Kind = Kind.CONTRACTION,
    **facts: Any,
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare an operation of any form: `rule(types, *params)`, `reference(*arrays, *params)`."""

    def declare(function: Callable[P, BoundCall]) -> Op[P]:
        return _register_if_public(
            Op.declare(
                function=function,
                kind=kind,
                rule=rule,
                bind=function,
                **_op_fields(function, facts, reference),
            )
        )

    return declare


def derived(
    *, reference: Callable[..., Any] | None = None, **facts: Any
) -> Callable[[Callable[P, Any]], Derived[P]]:
    """Declare a composite operation; tests compare it with `reference`."""

    def declare(function: Callable[P, Any]) -> Derived[P]:
        declared: Derived[P] = Derived(function=function, **_op_fields(function, facts, reference))
        register(declared)
        return declared

    return declare


def refuse_dtype(rule: str, types: Sequence[Type], remedy: str) -> DTypeError:
    """Return the error of a dtype rule, with the dtypes of the operands."""
    return DTypeError(
        "", f"{rule}, not {dtype_names([type_.dtype for type_ in types])}", remedy=remedy
    )


def refuse_unordered(types: Sequence[Type]) -> None:
    """Raise the DTypeError of an operation that needs an order, for complex numbers."""
    if kind_of(promote(types)) == "c":
        raise refuse_dtype(
            "needs real numbers", types, "complex numbers have no order; take tn.abs"
        )
