"""Op: the declaration of an operation with all facts about it, and the table of all operations.

A declaration is a decorated function (`core/op_decorators.py` has the decorators). Its signature is
the public one, its docstring the public one; its body binds the arguments of a call or gives the
element rule. Namespace functions, methods, `tn.operators`, stubs and the table-driven tests are
made from the table.

>>> from tenfold.ops.elementary import sin
>>> sin.name, sin.accuracy
('sin', 2)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import EnumType, IntFlag
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, ParamSpec

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.public_signature import with_public_types
from tenfold.core.scalar_ir import Body, Element, Operand
from tenfold.core.shape_rules import Shape, checked_shape
from tenfold.deprecation import warn_renamed
from tenfold.dtypes import kind_of
from tenfold.errors import DeviceError, DTypeError, ExplainedError, message

P = ParamSpec("P")
MOST_OPERANDS = 3
"""Of an operation on elements that native code calls (native/python/function_objects.cpp)."""
Params = tuple[Any, ...]  # what the core can give a canonical form: native/python/type_tables.cpp


class _KindType(EnumType):
    """The type of `Kind`, which answers for the name that CONTRACTION had."""

    @property
    def COMPLEX(cls) -> Kind:  # noqa: N802  # a member's name
        warn_renamed("Kind", "COMPLEX")
        return Kind.CONTRACTION


class Kind(IntFlag, metaclass=_KindType):
    """The work that a node takes; kinds compose by bitwise or."""

    VALUE = 0
    """Nothing: the value is there."""
    MAP = 1
    """Each element depends on the elements at its own index."""
    VIEW = 3
    """Each element is read from another index."""
    CONTRACTION = 7
    """Loops of its own: products, reductions, sorting."""


class BoundCall(NamedTuple):
    """A call with its arguments bound: the arrays it reads and its parameters in canonical form."""

    inputs: tuple[Any, ...]
    params: Params = ()


class Inferred(NamedTuple):
    """What an op's rule says of a call: shape and dtype of each result, dtype of each operand."""

    results: tuple[tuple[Shape, np.dtype], ...]
    operands: tuple[np.dtype, ...]


class ReductionTree(NamedTuple):
    """How a reduction is folded: the parts that are combined, and what becomes of them."""

    kind: str
    """How two partial results become one, by name: codegen/reducers.py."""
    dtype: Callable[[np.dtype], np.dtype]
    """From the operand's dtype to that of a folded value."""
    enter: Callable[[Body, Operand, Element], tuple[Element, ...]]
    """From the operand's element and its index along the axis to the parts."""
    leave: Callable[[Body, tuple[Element, ...], np.dtype], Operand]
    """From the parts of the whole to the element of the result's dtype."""
    identity: complex | None = None
    """What nothing folds to, where there is such a value."""
    one_axis: bool = False
    """Whether it folds one axis alone: what it folds has parts that no memory holds."""
    exact: bool = False
    """Whether every order of folding has the same bits."""

    @property
    def order(self) -> str:
        """How native code may fold several axes: "each" by itself, all "as one", in "any order"."""
        if self.one_axis:
            return "as one"
        return "any order" if self.exact else "each"


class Contraction(NamedTuple):
    """Which axes of two operands a product sums over, and which it keeps of one alone.

    The others are a stack, and broadcast. The result has the axes of the stack, then those that are
    kept of the first, then those of the second. Each is given for both operands, from 0.
    """

    contracted: tuple[tuple[int, ...], tuple[int, ...]]
    kept: tuple[tuple[int, ...], tuple[int, ...]]
    conjugated: bool = False
    """Whether the first operand is conjugated, if it is complex."""


class SampleCall(NamedTuple):
    """A call for the table-driven tests: shapes of the inputs, and the other arguments."""

    shapes: tuple[Shape, ...]
    arguments: Mapping[str, Any] = MappingProxyType({})
    positional: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation(Generic[P]):
    """What every public operation has, be it a node of its own (Op) or made of others (Derived)."""

    name: str
    page: str
    """The module of `tenfold.ops` that declares it: the page it stands on."""
    section: str = ""
    """Its section of the reference, where that is not the one of its page
    (namespace/api_sections.py)."""
    function: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    """NumPy's meaning: the reference device runs it (Op), or tests compare with it (Derived)."""
    method: bool = False
    """Whether it is a method of Array as well."""
    numpy: tuple[Callable[..., Any], ...] = ()
    """The NumPy functions it answers for when one is called on an Array."""
    accuracy: int = 0
    """The bound on the error of one element, in units in the last place of the result dtype."""
    accuracy_floor: float = 0.0
    """The magnitude whose unit counts for smaller results, where the computation cancels."""
    samples: tuple[SampleCall, ...] = ()
    namespace: str = ""
    """The public submodule it stands in; empty for the top."""
    also: tuple[str, ...] = ()
    """Other public namespaces it stands in as well, such as "linalg"."""
    public: bool = True
    """Whether it stands in the table of all operations; a user's own does where asked."""

    @property
    def doc(self) -> str:
        """The public docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def signature(self) -> inspect.Signature:
        """The public signature."""
        return inspect.signature(self.public_function)

    @property
    def public_function(self) -> Callable[..., Any]:
        """The declared function, with annotations that name public types alone."""
        return with_public_types(self.function, len(getattr(self, "result_names", ())))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Apply it: the public function."""
        raise NotImplementedError

    @property
    def full_name(self) -> str:
        """The name in the table: with the submodule's before it, as in linalg.inv."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    def __reduce__(self) -> tuple[Callable[[str], Operation[...]], tuple[str]]:
        if OPS.get(self.full_name) is not self:
            rule = f"{self.name} is not in the table of operations"
            remedy = "declare it with public=True where it is pickled and where it is read"
            raise TypeError(message("pickle", rule, remedy=remedy))
        return named, (self.full_name,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Op(Operation[P]):
    """An operation that is a node of its own.

    `rule(types, *params)` infers; `bind(*args, **kwargs)` turns a call's arguments into a
    BoundCall. An op that is not a primitive has `element`: its value in other ops, on Arrays. A
    primitive has `kernel`: its value in instructions of a kernel's body.
    """

    kind: Kind
    rule: Callable[..., Inferred]
    bind: Callable[..., BoundCall]
    dtypes: Callable[..., tuple[tuple[np.dtype, ...], np.dtype]] | None = None
    """The dtype rule of an elementwise op: from Types to (the operands' dtypes, the result's)."""
    element: Callable[..., Array] | None = None
    kernel: Callable[..., Operand] | None = None
    """Its value at an index in primitives, for kernels: `kernel(body, *operands, *params)`. It may
    return NotImplemented for dtypes it has no primitives for; with None a call computes it."""
    takes_halves: bool = False
    """Whether `kernel` takes half operands as they are, their bits; else it gets and gives float32,
    which is rounded to the half type of the result."""
    formula: bool = False
    """Whether its kernel on real floats is the elementary function of its name."""
    symbol: str | None = None
    """Python's operator for it, such as "+"."""
    view: bool = False
    """Whether its result is a view of its first input, that writes through."""
    promise: bool = False
    """Whether it states a property of its operand and computes nothing. It gets no value while
    others read it, so that the property stays; a reference to it keeps its operand alive."""
    undo: Callable[[Array, Array], Array] | None = None
    """For a view of all elements in another form: `undo(values of the view, input)` gives them in
    the form of the input."""
    noted: Callable[[Array, Sequence[Any]], None] | None = None
    """What is told of each call, its result and its inputs, where a result is to know them."""
    strides: Callable[..., tuple[int, ...] | None] | None = None
    """For a view: the result's strides from (shape, strides) of its input and the params."""
    can_fail: bool = False
    """Whether it can fail for its values; a failure then names the user's line."""
    remedy: str = ""
    """What to do when it fails for its values."""
    pure: bool = True
    """Whether it does nothing but hand on its result: a part of one that does not is not read."""
    lasts: bool = False
    """Whether it may take any time, however small its arrays are: `tn.eval` does not compute it
    before it returns."""
    opaque: bool = False
    """Whether a user's Python function computes it: whatever that raises becomes a RunError."""
    cost: float = 1.0
    """What one element costs, in additions, where recomputing is weighed against keeping."""
    promotes: bool = False
    """Whether its operands meet in one dtype, which `strict_dtypes` refuses to choose."""
    folding: ReductionTree | None = None
    """For a reduction in the canonical tree: what is folded, and what becomes of it."""
    scanning: str = ""
    """For a scan along an axis, sequential in blocks: how it combines, by name
    (codegen/reducers.py); its params are (axis, dtype, include_initial, exclusive)."""
    reads: Callable[..., tuple[tuple[int | None, int, int], ...]] | None = None
    """For a view whose index is affine in the result's: `reads(shape, *params)` gives for each axis
    of the input (axis of the result or None, coefficient, start)."""
    element_at: Callable[..., Any] | None = None
    """For what reads its inputs at other indices: the element at an index, for kernels:
    `element_at(body, position, *sources, *params)` (core/gather_rules.py). It may return
    NotImplemented."""
    pieces: Callable[..., Any] | None = None
    """For what sets blocks side by side: `pieces(shapes of the inputs, *params)` gives the blocks
    (core/gather_rules.py), which cover the result, or NotImplemented."""
    writes: Callable[..., tuple[tuple[tuple[int | None, int, int], ...], Shape]] | None = None
    """For its first input with a part replaced by the second: `writes(*params)` gives where the
    part lies, for each axis (axis of the part or None, coefficient, start), and its shape."""
    fills: Callable[..., complex] | None = None
    """For a creation of equal elements: their value, from the params."""
    commutes: bool = False
    """Whether its two operands may change places, every bit of the result kept."""
    reduces: bool = False
    """Whether it folds axes, each line by itself: its params are (axes, keepdims, ...)."""
    indices: tuple[int, ...] = ()
    """The positions of operands that are indices: they take no part in promotion."""
    whole_exponent: bool = False
    """Whether integers refuse a negative integer scalar as second operand."""
    out_of_range: Callable[[tuple[Type, ...], int, bool], Array] | None = None
    """For comparisons: the answer when an integer scalar is beyond its dtype, given the Types, the
    scalar's position and whether it is negative. Without it such a scalar is an OverflowError."""
    contraction: Callable[..., Contraction] | None = None
    """For products of two operands: `contraction(types, *params)` says which axes meet."""
    shapes: str = ""
    """How the shape of its one result follows, where dtypes do not depend on it: "broadcast" from
    all operands, "reduced" by the axes that params begin with, "permuted" by them; "": as `rule`
    says. Of new shapes `rule` is not asked then (native/ir/inferred_shapes.cpp)."""
    by_itself: bool = False
    """Whether it may be computed before what reads it is looked at: of rules, only such as leave
    all bits match it together with others that may (native/exec/op_interpreter.cpp)."""
    follow: str = ""
    """The facts that determine the params of a call, beside its numbers, texts and tuples:
    "ranks" (and dtypes) of its arrays; their "types"; "types of wholes": their types, if none is
    a view; "options": their types and the options in force; "": more, such as values.
    Calls with equal facts are bound once (native/python/function_objects.cpp)."""
    accumulates: Callable[..., int | None] | None = None
    """For what adds to one of its operands, and may do so in that one's memory: the operand's
    position, from the params."""
    multiply_adds: Callable[..., int] | None = None
    """The multiply-adds of a call with these Types and params, for products and solves."""
    body: Callable[[Sequence[Array]], tuple[Array, ...]] | None = None
    """For a call of a traced function: its results, in the operations it is made of."""
    family: object = None
    """For a call of a traced function: what all traces of that function have in common."""
    multiplies: bool = False
    """Of a call: whether what it is made of has products or solves."""
    batch_params: Callable[..., Params] | None = None
    """Of a call on operands with another axis in front, whose results have it too:
    `batch_params(length of the axis, *params)`. Operands that all members share are repeated."""
    batch: Callable[..., Any] | None = None
    """The results for many members at once where neither `batch_params` nor another fact says them:
    `batch(members, *params)` (ops/batch_rules.py). It may return NotImplemented: one by one
    then."""
    on_values: Callable[..., Sequence[Any]] | None = None
    """For a call whose `reference` needs no NumPy: the same from the Values of its operands, then
    its params, to Values in row-major order and memory of their own."""
    told: Callable[..., Sequence[str]] | None = None
    """What `explain` says of a call besides, line by line, from its params."""
    result_type: Callable[..., Any] | None = None
    """The named tuple of its results, where there are several with names."""
    permanent: bool = True
    """Whether it is never freed; else its owner and its nodes keep it alive."""
    id: int = field(init=False)
    record: object = field(init=False, default=None)
    """Where it is not permanent: what frees its native record with it."""
    call: Callable[..., Any] = field(init=False)
    """What a call calls."""

    def __post_init__(self) -> None:
        number = _native.declare_op(
            self,
            self.name,
            view=self.view,
            can_fail=self.can_fail,
            whole_exponent=self.whole_exponent,
            assigns=self.writes is not None,
            shapes=self.shapes,
            by_itself=self.by_itself,
            folds=self.folding.order if self.folding else "",
            weight=max(2, int(self.cost)) if self.body else 1,
            pure=self.pure,
            merges=self.merges,
            lasts=self.lasts,
            multiplies=self.multiplies,
            is_permanent=self.permanent and self.body is None,
        )
        object.__setattr__(self, "id", number)
        if not self.permanent or self.body is not None:
            object.__setattr__(self, "record", _native.op_record(number))
        object.__setattr__(self, "call", self.quickly(self._bound))
        if self.symbol is not None:
            _native.bind_symbol(self.symbol, number)

    @property
    def merges(self) -> bool:
        """Whether calls of it on the same inputs are one."""
        return self.pure and not self.opaque and self.writes is None

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of its results, where there are several with names."""
        return getattr(self.result_type, "_fields", ())

    def quickly(self, python: Callable[..., Any]) -> Callable[..., Any]:
        """Return what calls `python`, but for calls that are like earlier ones: these take none."""
        code = getattr(self.function, "__code__", None)
        elements = 0
        if self.kind == Kind.MAP and self.dtypes is not None and code is not None:
            operands = code.co_argcount if not code.co_kwonlyargcount else 0
            elements = operands if operands <= MOST_OPERANDS else 0
        if self.noted is not None or not (elements or self.follow):
            return python
        return _native.function(python, self.id, elements, self.follow)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Make the node of a call."""
        made: Array = self.call(*args, **kwargs)
        return made

    def _bound(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        try:
            inputs, params = self.bind(*args, **kwargs)
        except ExplainedError as error:
            raise error.completed(self.name, _arrays_in(args)) from None
        # An op with several results gives a tuple of Arrays; the stubs say which.
        results: Array = _native.apply(self.id, inputs, params)
        if self.result_type is not None:
            results = self.result_type(*results)
        if self.noted is not None:
            self.noted(results, inputs)
        return results


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Derived(Operation[P]):
    """An operation made of others: a call makes their nodes.

    What the call refuses with an error of `tenfold.errors` bears its own name; what fails at the
    wait bears that of the operation that failed.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Make the nodes of the operations it is made of."""
        try:
            result: Array = self.function(*args, **kwargs)
            return result
        except ExplainedError as error:
            raise error.renamed(self.name, _arrays_in(args)) from None


OPS: dict[str, Operation[...]] = {}
"""Every public operation by its public name (`linalg.` before those of the submodule)."""


def named(name: str) -> Operation[...]:
    """Return the operation of that name in the table; raise LookupError when there is none."""
    if name not in OPS:
        rule = f"unknown operation {name!r}"
        raise LookupError(message("pickle", rule, remedy="import what declares it first"))
    return OPS[name]


def register(operation: Operation[...]) -> None:
    """Enter an operation into the table; a name is taken once."""
    name = operation.full_name
    if name in OPS:
        raise ValueError(f"the operation {name!r} is declared already; choose another name")
    OPS[name] = operation


def _arrays_in(values: Sequence[object]) -> list[Array]:
    found: list[Array] = []
    for value in values:
        if isinstance(value, Array):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(item for item in value if isinstance(item, Array))
    return found[:8]


def device_of(types: Sequence[Type]) -> str | None:
    """Return the one device of all operands (scalars have none), or raise DeviceError."""
    devices = sorted({type_.device for type_ in types if not type_.weak})
    if len(devices) > 1:
        raise DeviceError(
            "",
            f"operands are on different devices: {', '.join(devices)}",
            remedy="move one with x.to_device(...)",
        )
    return devices[0] if devices else None


def _refuse_mixed(types: Sequence[Type]) -> None:
    dtypes = list(dict.fromkeys(str(type_.dtype) for type_ in types if not type_.weak))
    if len(dtypes) > 1:
        rule = f"strict_dtypes refuses to mix {', '.join(dtypes)}"
        raise DTypeError("", rule, remedy="convert one with tn.astype")


def infer(
    op: Op[...], types: tuple[Type, ...], params: Params, strict: bool
) -> tuple[tuple[Type, ...], tuple[np.dtype, ...], int]:
    """Run an op's rule for the native memo: the results' Types, the operands' dtypes, the kind."""
    try:
        # Without inputs the last parameter is the device; a call has an array, or none at all.
        device = device_of(types) or params[-1]
        results, operands = op.rule(types, *params)
        if strict and len(types) > 1 and op.promotes:
            # What is read as a truth value is mixed with nothing: the condition of where.
            read = enumerate(zip(types, operands, strict=True))
            _refuse_mixed(
                [
                    type_
                    for position, (type_, dtype) in read
                    if kind_of(dtype) != "b" and position not in op.indices
                ]
            )
        made = tuple(
            Type(checked_shape(shape, dtype.itemsize), dtype, device) for shape, dtype in results
        )
    except ExplainedError as error:
        raise error.completed(op.name, types[:8]) from None
    return made, operands, int(op.kind)


def refuse_scalar(
    op: Op[...], types: tuple[Type, ...], position: int, scalar: complex, dtype: np.dtype
) -> Array:
    """Answer for an integer scalar that its dtype cannot hold: comparisons know, others refuse."""
    number = scalar.real
    if op.out_of_range is not None:
        return op.out_of_range(types, position, number < 0)
    if op.whole_exponent and position == 1 and number < 0:
        rule = f"integers cannot be raised to the negative power {scalar}"
        raise ValueError(message(op.name, rule, types, "convert the base to a floating dtype"))
    rule = f"Python integer {_shown(scalar)} is out of bounds for {dtype}"
    remedy = "convert the array to a wider dtype, or the scalar with tn.asarray"
    raise OverflowError(message(op.name, rule, types, remedy))


def _shown(scalar: complex) -> str:
    return str(scalar) if isinstance(scalar, int) else f"near {scalar.real:g}"
