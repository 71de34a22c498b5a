"""Op: the declaration of an operation with all facts about it, and the table of all operations.

A declaration is a decorated function (`core/op_decorators.py` has the decorators). Its signature is
the public one, its docstring the public one; its body binds the arguments of a call or states the
element rule. Namespace functions, methods, `tn.operators`, stubs and the table-driven tests are
generated from the table.

>>> from tenfold.ops.elementary import sin
>>> sin.name, sin.accuracy
('sin', 2)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import EnumType, IntFlag
from inspect import Parameter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.cached_property import cached
from tenfold.core.index_map import IndexMap, strides_in
from tenfold.core.public_signature import with_public_types
from tenfold.core.scalar_ir import Body, Element, Operand
from tenfold.core.scatter_rules import ScatterRule
from tenfold.core.shape_rules import Shape
from tenfold.core.structure import Half, Structure, keeps_zero
from tenfold.deprecation import warn_renamed
from tenfold.errors import ExplainedError, message

if TYPE_CHECKING:
    from tenfold.core.subgraph import Subgraph

P = ParamSpec("P")
MAX_OPERANDS = 3
"""The most operands of an elementwise op with a native call path
(native/python/function_objects.cpp)."""
Params = tuple[Any, ...]  # values with a canonical form: native/python/type_tables.cpp


def exact_params(params: Any) -> Hashable:
    """Return a key of parameters that distinguishes -0.0 from 0.0 and treats NaNs as equal."""
    if isinstance(params, tuple):  # most of its items need no call
        return tuple(
            [
                exact_params(item)
                if isinstance(item, (tuple, float, complex))
                else (type(item), item)
                for item in params
            ]
        )
    return type(params), repr(params) if isinstance(params, (float, complex)) else params


class _KindType(EnumType):
    """The type of `Kind`, with the deprecated alias COMPLEX of CONTRACTION."""

    @property
    def COMPLEX(cls) -> Kind:  # noqa: N802  # a member's name
        warn_renamed("Kind", "COMPLEX")
        return Kind.CONTRACTION


class Kind(IntFlag, metaclass=_KindType):
    """The kind of work of a node; kinds compose by bitwise or."""

    VALUE = 0
    """No work: the value exists."""
    MAP = 1
    """Each element depends on the elements at its own index."""
    VIEW = 3
    """Each element is read from another index."""
    CONTRACTION = 7
    """Non-elementwise loops: products, reductions, sorting."""


class BoundCall(NamedTuple):
    """A call with bound arguments: its input arrays, and its parameters in canonical form."""

    inputs: tuple[Any, ...]
    params: Params = ()


class Inferred(NamedTuple):
    """The inference of a call by an op's rule: result shapes and dtypes, and operand dtypes."""

    results: tuple[tuple[Shape, np.dtype], ...]
    operands: tuple[np.dtype, ...]


class ReductionTree(NamedTuple):
    """The canonical fold of a reduction: its partial results, and how they are combined."""

    kind: str
    """The reducer that combines two partial results, by name: codegen/reducers.py."""
    dtype: Callable[[np.dtype], np.dtype]
    """From the operand's dtype to the accumulator dtype."""
    accumulate: Callable[[Body, Operand, Element], tuple[Element, ...]]
    """From the operand's element and its index along the axis to the accumulator values."""
    finish: Callable[[Body, tuple[Element, ...], np.dtype], Operand]
    """From the final accumulator values to the element of the result's dtype."""
    identity: complex | None = None
    """The identity element, the result of an empty reduction; None without one."""
    one_axis: bool = False
    """Whether it folds a single axis: its accumulator values are not stored between axes."""
    exact: bool = False
    """Whether every order of folding gives the same bits."""

    @property
    def order(self) -> str:
        """How native code folds several axes: "each" separately, "as one", or in "any order"."""
        if self.one_axis:
            return "as one"
        return "any order" if self.exact else "each"


class Contraction(NamedTuple):
    """The contracted and the free axes of the two operands of a product.

    The remaining axes are batch axes, and broadcast. The result has the batch axes, then the free
    axes of the first operand, then those of the second. Axes count from 0, for both operands.
    """

    contracted: tuple[tuple[int, ...], tuple[int, ...]]
    free: tuple[tuple[int, ...], tuple[int, ...]]
    conjugated: tuple[bool, bool] = (False, False)
    """Which operands are conjugated, if they are complex."""


class Epilogue(NamedTuple):
    """What follows the sums of a product: `sign * scales * product + added * scales * addend`.

    The operands of such a product are x1, x2, the scales of the product, then, if `added` is 1 or
    -1, the addend, which broadcasts to the result, and its scales.
    """

    sign: int = 1
    scales: int = 0
    added: int = 0
    half: Half = Half.NONE
    """The half of the product or of an operand that suffices (`ops/syrk.py`)."""
    conjugated: tuple[int, ...] = ()
    """The positions of the scales that are conjugated."""

    @property
    def addend(self) -> int | None:
        """The position of the addend among the operands."""
        return 2 + self.scales if self.added else None

    @property
    def alpha(self) -> slice:
        """The positions of the scales of the product."""
        return slice(2, 2 + self.scales)

    @property
    def beta(self) -> slice:
        """The positions of the scales of the addend."""
        return slice(3 + self.scales, None)


@dataclass(frozen=True, eq=False, kw_only=True)
class OpSignature:
    """What a call may be: its arguments, their binding, its named results."""

    bind: Callable[..., BoundCall]
    """From the arguments of a call to the BoundCall."""
    bind_depends_on: str = ""
    """The cache key of `bind`, in addition to numbers, strings and tuples: "ranks" (and dtypes) of
    the arrays; their "types"; "types of wholes": their types, if none is a view; "options": their
    types and the options in force; "": not cached, since values matter. Calls with equal keys are
    bound once (native/python/function_objects.cpp)."""
    symbol: str | None = None
    """Python's operator for it, such as "+"."""
    indices: tuple[int, ...] = ()
    """The positions of index operands, which are not promoted."""
    promotes: bool = False
    """Whether its operands are promoted to a common dtype, which `strict_dtypes` refuses."""
    result_type: Callable[..., Any] | None = None
    """The named tuple of several named results."""
    param_names: str = ""
    """The parameters of its function that its params are the values of, in order, with a `-` for
    others. Without names they are those behind the arrays."""
    rebind: Callable[..., BoundCall] | None = None
    """From the inputs and the params of a node in a file to the BoundCall of an equal call, which
    raises for params that no call has. None: `bind`, with the params as `param_names` says."""
    portable: bool = False
    """Whether nodes of an operation that is not public may be in a file, too."""
    on_call: Callable[[Array, Sequence[Any]], None] | None = None
    """A hook that runs after each call, with its result and its inputs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OpSemantics:
    """The meaning of an operation: kind, Types, values, failures, effects."""

    kind: Kind
    rule: Callable[..., Inferred]
    """From `(types, *params)` to the Types of the results and the dtypes of the operands."""
    structure: Callable[..., Structure] | None = None
    """The structure of its result where an operand has one: `structure(types, structures of the
    operands, *params)` (core/structure.py). A function of one element has no rule: that of its
    result follows from its zero."""
    makes: Callable[..., tuple[Structure, ...]] | None = None
    """The structures that its results have in any case, by its params."""
    storage: str = "dense"
    """The storage kind of its result, whose components are its operands (storage/kinds.py)."""
    dtypes: Callable[..., tuple[tuple[np.dtype, ...], np.dtype]] | None = None
    """The dtype rule of an elementwise op: from Types to (the operands' dtypes, the result's)."""
    shapes: str = ""
    """Native shape inference of its single result: "broadcast" of all operands, "reduced" or
    "permuted" by the axes in the first param; "" by `rule` only. Otherwise new shapes do not call
    `rule` (native/ir/inferred_shapes.cpp)."""
    element: Callable[..., Array] | None = None
    """The definition of a non-primitive elementwise op by other ops, on Arrays."""
    on_values: Callable[..., Sequence[Any]] | None = None
    """`reference` without NumPy: from the Values of the operands and the params to new Values in
    row-major order."""
    body: Subgraph | None = None
    """For a call of a traced function: the Subgraph that it computes."""
    family: object = None
    """For a call of a traced function: a key that all traces of that function share."""
    view: bool = False
    """Whether its result is a view of its first input; writes go through."""
    whole_exponent: bool = False
    """Whether a negative integer scalar as exponent of an integer base is an error."""
    out_of_range: Callable[[tuple[Type, ...], int, bool], Array] | None = None
    """For comparisons: the result for an integer scalar out of range of its dtype, from the Types,
    the scalar's position and whether it is negative. Without it the scalar is an OverflowError."""
    can_fail: bool = False
    """Whether it can fail depending on its values; the error then names the user's line."""
    remedy: str = ""
    """The remedy in the error of such a failure."""
    pure: bool = True
    """Whether it has no side effects; slices are pushed through pure ops only."""
    creates: bool = False
    """Whether all its operands may be numbers, such as a key of random numbers: its rule then gives
    the dtype, and its last param is the device."""
    moves: bool = False
    """Whether its results are on the device that its last param names, not on its operands'."""
    opaque: bool = False
    """Whether a user's Python function computes it; any exception becomes a RunError."""
    unbounded_time: bool = False
    """Whether its run time has no bound, even for small arrays (a user's Python function):
    `tn.eval` returns before it is computed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OpLowering:
    """How a schedule and kernels compute an operation, and its costs."""

    kernel: Callable[..., Operand] | None = None
    """The kernel rule, its element in primitives: `kernel(body, *operands, *params)`. It returns
    NotImplemented for unsupported dtypes; without it a library call computes the op."""
    takes_halves: bool = False
    """Whether `kernel` takes half operands as their bits; else it computes in float32, which is
    rounded to the half type of the result."""
    elementary: bool = False
    """Whether its kernel on real floats is the elementary function of the same name."""
    folding: ReductionTree | None = None
    """For a reduction in the canonical tree: how it is folded."""
    scanning: str = ""
    """For a scan along an axis, sequential in blocks: its reducer by name (codegen/reducers.py);
    its params are (axis, dtype, include_initial, exclusive)."""
    element_at: Callable[..., Any] | None = None
    """The gather rule, for an op that reads its inputs at computed indices: the element at an
    index, `element_at(body, position, *sources, *params)`, or NotImplemented
    (core/gather_rules.py)."""
    gathers: bool = False
    """Whether its params are the axes along which it takes elements of its first input, at the
    integers in the others, and the place of their axes in the result."""
    joins: bool = False
    """Whether its first param is the axis along which, or the new axis along which, it puts its
    inputs one behind the other."""
    scatter: ScatterRule | None = None
    """For an op that combines elements into cells of its result at computed indices: how."""
    segments: str = ""
    """For an op on the rows of a first input between the offsets in its second: the reducer of each
    segment (codegen/reducers.py), or "repeat" where a segment gets one row."""
    pieces: Callable[..., Any] | None = None
    """For an op that joins blocks, such as concat: `pieces(input shapes, *params)` gives the blocks
    (core/gather_rules.py) that cover the result, or NotImplemented."""
    index_map: Callable[..., IndexMap] | None = None
    """Which slice of its first input an affine view reads, or an update replaces:
    `index_map(shape, *params)` of that input's shape (core/index_map.py)."""
    updates: bool = False
    """Whether it returns its first input with a slice replaced by the second; its params are the
    Slice."""
    strides: Callable[..., tuple[int, ...] | None] | None = None
    """For a view without an index map, such as a reshape: the result's strides from (shape,
    strides) of its input and the params."""
    inverse_view: Callable[[Array, Array], Array] | None = None
    """For a view of all elements of its input: `inverse_view(values, input)` maps values of the
    view back to the shape of the input."""
    replace_part: Callable[[np.dtype], Callable[[Array, Any], Array] | None] | None = None
    """For an elementwise op that shows a part of each element of its input, and is a view of it:
    `replace_part(dtype)` of the input is the rule `rule(elements, values)` that returns elements
    with that part replaced by values, Arrays or numbers; None where the part is read-only."""
    sum_of_views: Callable[..., Array] | None = None
    """For a view that shows elements several times, to which `+=` and `-=` may write:
    `sum_of_views(terms, shape, *params)` adds terms of the view's shape at the elements of its
    input, of that shape, that they stand at."""
    epilogue: Callable[..., Epilogue] | None = None
    """For products that are scaled or added to an operand, possibly in place (gemm):
    `epilogue(*params)` says how."""
    cost: float = 1.0
    """The cost of one element in additions, for the choice to recompute or to store."""
    multiply_adds: Callable[..., int] | None = None
    """For products and solves: the multiply-adds of a call with these Types and params."""
    explain_lines: Callable[..., Sequence[str]] | None = None
    """Further lines of `explain` for a call: `explain_lines(*params)`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OpRewriting:
    """The facts that rewrite rules ask for."""

    commutes: bool = False
    """Whether it is commutative, bit for bit."""
    reduces: bool = False
    """Whether it is a reduction over axes; its params are (axes, keepdims, ...)."""
    contraction: Callable[..., Contraction] | None = None
    """For products of two operands: `contraction(types, *params)` gives the contracted axes."""
    constant_fill: Callable[..., complex] | None = None
    """For an array of equal elements, such as `full`: `constant_fill(*params)` is their value."""
    rule_free: bool = False
    """Whether it may be computed before its readers are known: the only rewrite rules that match it
    together with other such ops keep all bits (native/exec/op_interpreter.cpp)."""
    keeps_products: bool = False
    """Whether no rewrite rule matches it together with a product that it reads."""
    shares_factors: bool = False
    """Whether rewrite rules let all such operations on one matrix share its factorisation."""
    multiplies: bool = False
    """For a call of a traced function: whether its body has products or solves."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OpTransforms:
    """How function transformations map an operation."""

    batch_params: Callable[..., Params] | None = None
    """The batching rule by params, for operands with a leading batch axis, which the results keep:
    `batch_params(batch size, *params)`. Unbatched operands are repeated."""
    batch: Callable[..., Any] | None = None
    """The batching rule of other ops: `batch(members, *params)` gives the results of a batch
    (ops/batch_rules.py). NotImplemented: the members are computed one by one."""
    partials: tuple[Callable[..., Any] | float, ...] = ()
    """For an elementwise op: for each operand the partial derivative by it, a number or
    `partial(result, *operands)`. A bool Array is a mask: the derivative is 1 or 0."""
    vjp: Callable[..., Sequence[Any]] | None = None
    """The vector-Jacobian product: `vjp(cotangent, result, *operands, *params)` gives for each
    operand the cotangent that it contributes, an Array, or None for 0. Of several results there are
    tuples of cotangents, each perhaps None, and of results."""
    jvp: Callable[..., Sequence[Any]] | None = None
    """The Jacobian-vector product of an op without one in reverse, such as an endless loop:
    `jvp(tangents, *operands, *params)` gives the tangent of each result. A tangent may be None."""
    expression: Callable[..., Any] | None = None
    """The same values by other ops, which are differentiated in its place:
    `expression(*operands, *params)`."""
    zero_derivative: bool = False
    """Whether its derivative is 0 wherever it exists, as of a rounding: it passes no cotangent."""


class SampleCall(NamedTuple):
    """A call for the table-driven tests: shapes of the inputs, and the other arguments."""

    shapes: tuple[Shape, ...]
    arguments: Mapping[str, Any] = MappingProxyType({})
    positional: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation(Generic[P]):
    """The base of a primitive operation with a node (Op) and of a composite one (Derived)."""

    name: str
    page: str
    """The module of `tenfold.ops` that declares it, and its page in the documentation."""
    section: str = ""
    """Its section of the reference, if it differs from that of its page
    (namespace/api_sections.py)."""
    function: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    """The NumPy implementation: the reference device runs it (Op), tests compare with it."""
    method: bool = False
    """Whether it is also a method of Array."""
    numpy: tuple[Callable[..., Any], ...] = ()
    """The NumPy functions that dispatch to it on an Array."""
    accuracy: int = 0
    """The bound on the error of one element, in units in the last place of the result dtype."""
    accuracy_floor: float = 0.0
    """The magnitude whose unit bounds the error of smaller results (cancellation)."""
    samples: tuple[SampleCall, ...] = ()
    namespace: str = ""
    """The public submodule; empty for the top level."""
    also: tuple[str, ...] = ()
    """Further public namespaces, such as "linalg"."""
    public: bool = True
    """Whether it is in the table of all operations; a custom op is on request."""

    @property
    def doc(self) -> str:
        """The public docstring."""
        return inspect.getdoc(self.function) or ""

    @cached
    def public_signature(self) -> inspect.Signature:
        """The public signature."""
        return inspect.signature(self.public_function)

    @cached
    def public_function(self) -> Callable[..., Any]:
        """The declared function, with annotations that name public types alone."""
        return with_public_types(self.function, len(getattr(self, "result_names", ())))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Apply it: the public function."""
        raise NotImplementedError

    @property
    def full_name(self) -> str:
        """The name in the table, with the submodule as prefix, as in linalg.inv."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    def __reduce__(self) -> tuple[Callable[[str], Operation[...]], tuple[str]]:
        if OPS.get(self.full_name) is not self:
            rule = f"{self.name} is not in the table of operations"
            remedy = "declare it with public=True where it is pickled and where it is read"
            raise TypeError(message("pickle", rule, remedy=remedy))
        return operation_by_name, (self.full_name,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


FACETS: dict[str, type[Any]] = {
    "signature": OpSignature,
    "semantics": OpSemantics,
    "lowering": OpLowering,
    "rewriting": OpRewriting,
    "transforms": OpTransforms,
}
"""The facets of an op, by their names in Op."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Op(Operation[P]):
    """An operation with its own node in the graph.

    Its facts are in five facets; `Op.declare` takes them flat, as a declaration states them.
    """

    signature: OpSignature
    semantics: OpSemantics
    lowering: OpLowering = field(default_factory=OpLowering)
    rewriting: OpRewriting = field(default_factory=OpRewriting)
    transforms: OpTransforms = field(default_factory=OpTransforms)
    permanent: bool = True
    """Whether it is never freed; else its owner and its nodes own it."""
    id: int = field(init=False)
    record: object = field(init=False, default=None)
    """The owner of its native record, if it is not permanent."""
    call: Callable[..., Any] = field(init=False)
    """The callable of a call: the call cache, or `_call_uncached`."""

    @classmethod
    def declare(cls, **facts: Any) -> Op[P]:
        """Return the op of these facts, each put into its facet; an unknown one is a TypeError."""
        facets = {}
        for name, facet in FACETS.items():
            names = [fact.name for fact in fields(facet) if fact.name in facts]
            facets[name] = facet(**{fact: facts.pop(fact) for fact in names})
        unknown = sorted(facts.keys() - {fact.name for fact in fields(cls)})
        if unknown:
            rule = f"a declaration has no {', '.join(unknown)}"
            remedy = "the fields are those of the facets in tenfold.core.op"
            raise TypeError(message(facts["name"], rule, remedy=remedy))
        return cls(**facets, **facts)

    def __post_init__(self) -> None:
        number = _native.declare_op(
            self,
            self.name,
            view=self.semantics.view,
            shows_part=self.lowering.replace_part is not None,
            can_fail=self.semantics.can_fail,
            whole_exponent=self.semantics.whole_exponent,
            updates=self.lowering.updates,
            shapes=self.semantics.shapes,
            rule_free=self.rewriting.rule_free,
            zero_derivative=self.transforms.zero_derivative,
            folding=self.lowering.folding.order if self.lowering.folding else "",
            weight=max(2, int(self.lowering.cost)) if self.semantics.body else 1,
            num_arguments=self.semantics.body.num_arguments if self.semantics.body else 0,
            pure=self.semantics.pure,
            merges=self.merges,
            unbounded_time=self.semantics.unbounded_time,
            multiplies=self.rewriting.multiplies,
            contracts=self.rewriting.contraction is not None,
            creates=self.semantics.creates,
            constant_fill=self.rewriting.constant_fill is not None,
            gathers=self.lowering.gathers,
            scatters=self.lowering.scatter is not None and self.lowering.scatter.replaces,
            joins=self.lowering.joins,
            keeps_products=self.rewriting.keeps_products,
            shares_factors=self.rewriting.shares_factors,
            per_member=self.is_per_member,
            is_permanent=self.permanent and self.semantics.body is None,
        )
        object.__setattr__(self, "id", number)
        if not self.permanent or self.semantics.body is not None:
            object.__setattr__(self, "record", _native.op_record(number))
        object.__setattr__(self, "call", self.with_call_cache(self._call_uncached))
        if self.signature.symbol is not None:
            _native.bind_symbol(self.signature.symbol, number)

    @cached
    def merges(self) -> bool:
        """Whether equal calls are merged (CSE)."""
        return self.semantics.pure and not self.semantics.opaque and not self.lowering.updates

    @cached
    def zero_stays_zero(self) -> bool | None:
        """Whether a function of one element is 0 at 0; None for other operations."""
        if self.semantics.kind is not Kind.MAP or self.semantics.dtypes is None:
            return None
        return keeps_zero(self.reference)

    @cached
    def is_per_member(self) -> bool:
        """Whether a batch may call it, or an op of its body, once for each member."""
        if self.semantics.body is not None:
            ops = [node.op for node in self.semantics.body.graph.nodes]
            return any(isinstance(op, Op) and op.is_per_member for op in ops)
        transforms, rewriting = self.transforms, self.rewriting
        has_rule = bool(
            transforms.batch is not None
            or transforms.batch_params is not None
            or self.semantics.shapes in ("broadcast", "permuted")
            or rewriting.reduces
            or self.lowering.scanning
        )
        return self.semantics.opaque or not has_rule

    @cached
    def is_affine_view(self) -> bool:
        """Whether it reads its first input by an index map."""
        return self.lowering.index_map is not None and not self.lowering.updates

    def reads(self, shape: Shape, params: Params) -> IndexMap:
        """Return the index map by which an affine view reads an input of this shape."""
        assert self.lowering.index_map is not None, f"{self.name} has no index map"
        return self.lowering.index_map(shape, *params)

    def view_strides(
        self, shape: Shape, strides: Shape, params: Params, ndim: int
    ) -> tuple[int, ...] | None:
        """Return the strides of a view with `ndim` axes; None where it has none in this layout."""
        if self.is_affine_view:
            return strides_in(self.reads(shape, params), strides, ndim)[0]
        return (
            self.lowering.strides(shape, strides, *params)
            if self.lowering.strides is not None
            else None
        )

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of several named results; else empty."""
        return getattr(self.signature.result_type, "_fields", ())

    def with_call_cache(self, python: Callable[..., Any]) -> Callable[..., Any]:
        """Return `python` behind a native cache of calls; a hit runs no Python."""
        code = getattr(self.function, "__code__", None)
        elements = 0
        if (
            self.semantics.kind == Kind.MAP
            and self.semantics.dtypes is not None
            and code is not None
        ):
            operands = code.co_argcount if not code.co_kwonlyargcount else 0
            elements = operands if operands <= MAX_OPERANDS else 0
        if self.signature.on_call is not None or not (elements or self.signature.bind_depends_on):
            return python
        return _native.function(python, self.id, elements, self.signature.bind_depends_on)

    @property
    def is_portable(self) -> bool:
        """Whether its nodes may be in a file: it is Tenfold's, and says which params are valid."""
        is_own = self.function.__module__.startswith("tenfold.") and not self.semantics.opaque
        is_map = self.semantics.dtypes is not None
        return is_own and (self.public or is_map or self.signature.portable)

    def rebound(self, inputs: tuple[Any, ...], params: Params) -> BoundCall:
        """Bind inputs and params, such as those in a file, by all checks of a call.

        Raises the errors of a call; the params of the result differ from those that no call has.
        """
        if self.signature.rebind is not None:
            return self.signature.rebind(*inputs, *params)
        parameters = self.public_signature.parameters
        names = [*parameters]
        args: list[Any] = [*inputs]
        if names[:1] == ["arrays"]:
            args, names = [args], names[1:]
        elif any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
            names = [name for name in names if parameters[name].kind is Parameter.KEYWORD_ONLY]
        else:
            names = names[len(inputs) :]
        kwargs: dict[str, Any] = {}
        for name, value in zip(self.signature.param_names.split() or names, params, strict=False):
            if name != "-" and parameters[name].kind is Parameter.POSITIONAL_ONLY:
                args.append(value)
            elif name != "-":
                kwargs[name] = value
        return self.signature.bind(*args, **kwargs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Create the node of a call."""
        result: Array = self.call(*args, **kwargs)
        return result

    def _call_uncached(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        try:
            inputs, params = self.signature.bind(*args, **kwargs)
        except ExplainedError as error:
            raise error.completed(self.name, _arrays_in(args)) from None
        # An op with several results gives a tuple of Arrays; the stubs say which.
        results: Array = _native.apply(self.id, inputs, params)
        if self.signature.result_type is not None:
            results = self.signature.result_type(*results)
        if self.signature.on_call is not None:
            self.signature.on_call(results, inputs)
        return results


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Derived(Operation[P]):
    """A composite operation: a call creates the nodes of other operations.

    An error of `tenfold.errors` at the call carries its own name; an error at the wait carries the
    name of the operation that failed.
    """

    kind_rules: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """What answers for a first operand of a storage kind, by its name."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        """Create the nodes of its operations."""
        function = self.function
        if self.kind_rules and args and isinstance(args[0], Array):
            function = self.kind_rules.get(_native.node_of(args[0]).type.storage, function)
        try:
            result: Array = function(*args, **kwargs)
            return result
        except ExplainedError as error:
            raise error.renamed(self.name, _arrays_in(args)) from None


OPS: dict[str, Operation[...]] = {}
"""Every public operation by its public name (`linalg.` before those of the submodule)."""


def operation_by_name(name: str) -> Operation[...]:
    """Return the operation of that name in the table; raise LookupError when there is none."""
    if name not in OPS:
        rule = f"unknown operation {name!r}"
        raise LookupError(message("pickle", rule, remedy="import what declares it first"))
    return OPS[name]


def register(operation: Operation[...]) -> None:
    """Enter an operation into the table; a duplicate name is a ValueError."""
    name = operation.full_name
    if name in OPS:
        raise ValueError(f"the operation {name!r} is declared already; choose another name")
    OPS[name] = operation


def _arrays_in(values: Sequence[object]) -> list[Array]:
    arrays: list[Array] = []
    for value in values:
        if isinstance(value, Array):
            arrays.append(value)
        elif isinstance(value, (list, tuple)):
            arrays.extend(item for item in value if isinstance(item, Array))
    return arrays[:8]
