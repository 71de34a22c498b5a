"""Derivative rules: what a node contributes to the cotangents of its inputs.

Takes a node, its cotangent and its inputs, hands on an Array for each input, or None for nothing.
A rule follows from what the declaration of an op states: `vjp`, `partials`, `expression`, an
element rule or a body, an index map, a contraction, a join, a gather or a scatter. An op with none
of these raises UnsupportedError.

The cotangent of a complex array is the gradient df/dx + i df/dy of a real f, as in PyTorch. So a
derivative d contributes `conj(d) * cotangent`.

>>> import tenfold as tn
>>> x = tn.asarray([0.0, 2.0])
>>> node = _native.node_of(x * x)
>>> [g.tolist() for g in contributions(node, tn.asarray([1.0, 1.0]), node.inputs, (True, True))]
[[0.0, 2.0], [0.0, 2.0]]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.caches import LruCache
from tenfold.core.index_map import Slice, is_permutation, takes_all
from tenfold.core.op import Op, exact_params
from tenfold.core.shape_rules import Shape, product, row_major, whole_axes
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import BOOL, INT64, compute_dtype, kind_of
from tenfold.errors import UnsupportedError, message
from tenfold.ops.arange import arange
from tenfold.ops.assignment import put_at, set_at
from tenfold.ops.cast import convert
from tenfold.ops.complex import conj, real
from tenfold.ops.contract import contract
from tenfold.ops.create import full, zeros
from tenfold.ops.gathering import gather
from tenfold.ops.indexing import index_view, slice_view
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.segment_sum import add_at
from tenfold.ops.selection import where
from tenfold.transforms.call_op import Callee
from tenfold.transforms.cotangent_sum import AxisPair, Deferred, ProductTerm, SliceTerm
from tenfold.transforms.transposed_op import REMEDY, transposed_terms

Contributions = Sequence[Any]
"""For each input an Array, a deferred contribution, or None."""
Needs = tuple[bool, ...]
PullBack = Callable[[Sequence[Node], Sequence[Array | None], Sequence[Node]], list[Array | None]]
"""From results, their cotangents and inputs to the cotangents of the inputs."""

TRANSPOSES: ContextVar[bool] = ContextVar("tenfold_transposes", default=False)
"""Whether a walk is one of the two of a Jacobian-vector product: its cotangents are transposed, and
not computed, so that an op without a reverse derivative has one (`transforms/tangents.py`)."""


def contributions(
    node: Node,
    g: Any,
    inputs: Sequence[Node],
    needs: Needs,
    pull_back: PullBack | None = None,
    result: Array | None = None,
) -> Contributions:
    """Return what a node contributes to those of its inputs that need it; the others are None.

    `g` is its cotangent, of several results a tuple. `pull_back` differentiates the body of a call,
    an element rule or an expression. `result` stands for the only result.
    """
    rule = _rule_of(node.op)
    if rule is None:
        raise no_rule_error(node)
    terms = rule(_DifferentiatedNode(node, g, inputs, needs, pull_back, result))
    broadcasts = node.op.signature.promotes
    return [
        None if term is None or not is_needed else _fitted(term, source, broadcasts)
        for term, source, is_needed in zip(terms, inputs, needs, strict=True)
    ]


def recorded_contributions(
    node: Node,
    inputs: Sequence[Node],
    needs: Needs,
    cotangents: Sequence[Type | None],
    pull_back: PullBack,
) -> tuple[list[Array], list[Any]] | None:
    """Return placeholders, and what a node on them contributes: it holds for all of these Types.

    A contribution is an Array, None, or a DeferredRecipe.

    The placeholders are those of inputs that are no numbers, of the only result, and of cotangents.
    Return None for an operation with a rule of its user, which may read what Types do not show, and
    for one that has a derivative in the walks of a Jacobian-vector product alone.
    """
    op = node.op
    is_users = not op.permanent and (op.semantics.body is None or op.transforms.vjp is not None)
    if is_users or _is_forward_alone(node):
        return None
    operands = [
        source if source.is_scalar else _native.node_of(_native.placeholder(source.type))
        for source in inputs
    ]
    given = [_native.array_of(x) for x in operands if not x.is_scalar]
    result = _native.placeholder(node.type) if len(node.types) == 1 else None
    if result is not None:
        given.append(result)
    seeds = [None if type_ is None else _native.placeholder(type_) for type_ in cotangents]
    g = tuple(seeds) if len(node.types) > 1 else seeds[0]
    terms = contributions(node, g, operands, needs, pull_back, result)
    recorded = [_recorded(term, node) if isinstance(term, Deferred) else term for term in terms]
    return [*given, *(x for x in seeds if x is not None)], recorded


def _is_forward_alone(node: Node) -> bool:
    """Whether a node, or one in a body of it, has no derivative in reverse."""
    nodes, bodies = [node], set[Subgraph]()
    for inner in nodes:  # which grows
        if not isinstance(inner.op, Op):
            continue
        if inner.op.transforms.jvp is not None:
            return True
        found = {param.subgraph for param in inner.params if isinstance(param, Callee)}
        if inner.op.semantics.body is not None:
            found.add(inner.op.semantics.body)
        for body in found - bodies:
            nodes.extend(body.graph.nodes)
        bodies |= found
    return False


class DeferredRecipe(NamedTuple):
    """How a deferred contribution is made: as an object, and as an array."""

    make: Callable[..., Deferred]
    """From its arrays, and the parameters of the operation that contributes."""
    arrays: tuple[Array, ...]
    placeholders: tuple[Array, ...]
    result: Array
    """The contribution as an array, made of the placeholders in place of the arrays."""
    of_stacks: Callable[[Array, Any], Array] | None
    """From the stacks of the arrays of many; of slices, from that of their values in the order of
    where they begin, and that. None if there is no sum of stacks."""


def _recorded(term: Deferred, node: Node) -> DeferredRecipe:
    def stand_in(x: Array) -> Array:
        return _native.placeholder(_native.node_of(x).type)

    if isinstance(term, ProductTerm):
        left, right = stand_in(term.left), stand_in(term.right)

        def make_product(left: Array, right: Array, _params: Any) -> Deferred:
            return term._replace(left=left, right=right)

        made = make_product(left, right, None).array()
        summed = _array_of_stacks(term) if term.is_stackable else None
        return DeferredRecipe(make_product, (term.left, term.right), (left, right), made, summed)
    op, shape = node.op, term.shape

    def make_slice(values: Array, params: Any) -> Deferred:
        return SliceTerm(values, (op.reads(shape, params), values.shape), shape)

    values = stand_in(term.values)
    made = make_slice(values, node.params).array()
    of_stacks = term._replace(values=values).of_stacks if term.is_row else None
    return DeferredRecipe(make_slice, (term.values,), (values,), made, of_stacks)


def _array_of_stacks(term: ProductTerm) -> Callable[[Array, Array], Array]:
    like = term._replace(
        left=_native.placeholder(_native.node_of(term.left).type),
        right=_native.placeholder(_native.node_of(term.right).type),
    )
    return lambda left, right: like.of_stacks(left, right).array()


class _DifferentiatedNode:
    """A node that is differentiated, with its operands as Arrays and numbers."""

    def __init__(
        self,
        node: Node,
        g: Any,
        inputs: Sequence[Node],
        needs: Needs,
        pull_back: PullBack | None,
        result: Array | None,
    ) -> None:
        self.node, self.g, self.inputs, self.needs = node, g, inputs, needs
        self._result = result
        self.op: Op[...] = node.op
        self.params, self.pull_back = node.params, pull_back
        self.operands: list[Any] = [
            source.scalar if source.is_scalar else _native.array_of(source) for source in inputs
        ]

    def result(self) -> Any:
        """Return its result, or the tuple of its results."""
        if self._result is not None:
            return self._result
        if len(self.node.types) == 1:
            return _native.array_of(self.node)
        return _native.apply(self.op.id, tuple(self.operands), self.params)


def no_rule_error(
    node: Node,
    rule: str = "it has no derivative",
    remedy: str = "write it by other operations, or take tn.stop_gradient of its argument",
) -> UnsupportedError:
    """Return the error of an operation without a rule, with the line of its call."""
    place = "" if node.origin is None else ", and {}:{} calls it".format(*node.origin)
    return UnsupportedError(node.name, f"{rule}{place}", remedy=remedy)


def _fitted(term: Any, source: Node, broadcasts: bool) -> Any:
    """Return a contribution in the shape and the dtype of its input."""
    type_ = source.type
    if isinstance(term, Deferred):
        if (term.shape, term.dtype) == (type_.shape, type_.dtype):
            return term
        term = term.array()
    if broadcasts and term.shape != type_.shape:
        term = summed_to(term, type_.shape)
    if kind_of(term.dtype) == "c" and kind_of(type_.dtype) != "c":
        term = real(term)
    return convert(term, type_.dtype)


def summed_to(x: Array, shape: Shape) -> Array:
    """Return the sums of `x` over the axes along which `shape` broadcasts to its shape."""
    missing = x.ndim - len(shape)
    axes = tuple(
        axis
        for axis in range(x.ndim)
        if axis < missing or (shape[axis - missing] == 1 and x.shape[axis] != 1)
    )
    sums = sum_(x, axis=axes, keepdims=True) if axes else x
    return broadcast_to(reshape(sums, sums.shape[missing:]), shape) if missing >= 0 else sums


def _widened(x: Any) -> Any:
    """Return a half type as float32: derivatives reach further than the values."""
    return convert(x, compute_dtype(x.dtype)) if isinstance(x, Array) else x


def _by_partials(call: _DifferentiatedNode) -> Contributions:
    result = _widened(call.result())
    partials = _checked_terms(call, "partials", call.op.transforms.partials)
    operands = list(map(_widened, call.operands))
    return [
        _scaled(call.g, partial(result, *operands) if callable(partial) else partial)
        if is_needed
        else None
        for partial, is_needed in zip(partials, call.needs, strict=True)
    ]


def _scaled(g: Array, partial: Any) -> Array | None:
    """Return the cotangent times a partial derivative, conjugated; a bool one is a mask."""
    if isinstance(partial, Array):
        if partial.dtype == BOOL:
            return where(partial, g, 0)
        return g * conj(partial) if kind_of(partial.dtype) == "c" else g * partial
    if partial == 0:
        return None
    if partial in (1, -1):
        return g if partial == 1 else -g
    return g * complex(partial).conjugate() if isinstance(partial, complex) else g * partial


_bodies: LruCache[Any, Subgraph] = LruCache(
    256, "derivative expressions", "an element rule is traced once for each Types"
)
_vjps: LruCache[Any, tuple[Callee | None, tuple[bool, ...]]] = LruCache(
    256, "derivatives of bodies", "equal calls have one derivative, so that these are batched"
)


def _of_expression(call: _DifferentiatedNode) -> Contributions:
    """Differentiate an expression of the same values, or an element rule, inline."""
    expression = call.op.transforms.expression or call.op.semantics.element
    assert expression is not None, "it has one"
    arrays = [
        _widened(x)
        if isinstance(x, Array)
        else full((), x, dtype=dtype, device=call.node.type.device)
        for x, dtype in zip(call.operands, call.node.operands, strict=True)
    ]
    types = tuple([Type(x.shape, x.dtype, x.device) for x in arrays])
    key = call.op, exact_params(call.params), types
    body = _bodies.get(key)
    if body is None:
        inputs = [_native.placeholder(type_) for type_ in types]
        result = _native.node_of(expression(*inputs, *call.params))
        body = Subgraph(call.op.name, [result], [_native.node_of(x) for x in inputs])
        _bodies[key] = body
    callee, reached = _vjp_of(body, call.needs, (True,), call.pull_back)
    g = convert(call.g, body.outputs[0].type.dtype)
    terms = iter(callee.subgraph.apply([*arrays, g]) if callee is not None else ())
    return [next(terms) if is_reached else None for is_reached in reached]


def _of_call(call: _DifferentiatedNode) -> Contributions:
    """The derivative of a call is a call: equal ones are batched as the calls are."""
    body = call.op.semantics.body
    assert body is not None, "a call"
    cotangents = call.g if isinstance(call.g, tuple) else (call.g,)
    given = tuple(g is not None for g in cotangents)
    callee, reached = _vjp_of(body, call.needs, given, call.pull_back)
    if callee is None:
        return [None] * len(reached)
    inputs = (*call.operands, *(g for g in cotangents if g is not None))
    results = _native.apply(callee.op.id, inputs, callee.op.signature.bind(*inputs).params)
    terms = iter(results if isinstance(results, tuple) else (results,))
    return [next(terms) if is_reached else None for is_reached in reached]


def _vjp_of(
    body: Subgraph, needs: Needs, given: tuple[bool, ...], pull_back: PullBack | None
) -> tuple[Callee | None, tuple[bool, ...]]:
    """Return the function from inputs and cotangents of a body to the cotangents of those inputs
    that need one and that its results depend on, and which these are.
    """
    key = body, needs, given, TRANSPOSES.get()
    found = _vjps.get(key)
    if found is not None:
        return found
    assert pull_back is not None, "a body is differentiated by the walk"
    cotangents = [
        _native.placeholder(Type(node.type.shape, node.type.dtype, node.type.device))
        if is_given
        else None
        for node, is_given in zip(body.outputs, given, strict=True)
    ]
    wanted = [node for node, is_needed in zip(body.inputs, needs, strict=True) if is_needed]
    terms = iter(pull_back(body.outputs, cotangents, wanted))
    results = [next(terms) if is_needed else None for is_needed in needs]
    outputs = [_native.node_of(x) for x in results if x is not None]
    inputs = [*body.inputs, *(_native.node_of(g) for g in cotangents if g is not None)]
    callee = Callee(Subgraph(f"vjp_{body.name}", outputs, inputs, body.rule)) if outputs else None
    found = _vjps[key] = callee, tuple(x is not None for x in results)
    return found


def _of_update(call: _DifferentiatedNode) -> Contributions:
    """The replaced part of the array has no cotangent; the values have that of the part."""
    return [_native.apply(set_at.id, (call.g, 0), call.params), slice_view(call.g, call.params)]


def _of_view(call: _DifferentiatedNode) -> Contributions:
    """Write the cotangents where the view reads; where it repeats an element they are added."""
    shape, g = call.operands[0].shape, call.g
    access = call.op.reads(shape, call.params)
    axes = [step[0] for step in access if step[0] is not None]
    lengths = tuple(g.shape[axis] for axis in axes)
    if len(access) == g.ndim and is_permutation(access, g.ndim) and lengths == shape:
        return [permute_dims(g, axes)]
    repeated = tuple(axis for axis, n in enumerate(g.shape) if n != 1 and axis not in axes)
    if repeated:
        g = sum_(g, axis=repeated, keepdims=True)
    part: Slice = access, g.shape
    if len(set(axes)) == len(axes) and takes_all(part, shape):
        return [reshape(g, shape)]
    return [SliceTerm(g, part, shape)]


def _of_product(call: _DifferentiatedNode) -> Contributions:
    """Each operand has the product of the cotangent with the other one."""
    assert call.op.rewriting.contraction is not None, "a product"
    types = tuple(Type(x.shape, x.dtype, x.device) for x in call.operands)
    contracted, free, conjugated = call.op.rewriting.contraction(types, *call.params)
    factors = [
        conj(x) if kind_of(x.dtype) == "c" and not conjugates else x
        for x, conjugates in zip(call.operands, conjugated, strict=True)
    ]  # conjugates of what is multiplied
    terms: list[Array | Deferred] = []
    for at in (0, 1):
        term = _factor_term(call.g, at, factors[1 - at], types, contracted, free)
        is_conjugate = conjugated[at] and kind_of(term.dtype) == "c"
        terms.append(conj(_made(term)) if is_conjugate else term)
    return terms


def _made(term: Array | Deferred) -> Array:
    return term if isinstance(term, Array) else term.array()


def _factor_term(
    g: Array,
    at: int,
    other: Array,
    types: tuple[Type, ...],
    contracted: AxisPair,
    free: AxisPair,
) -> Array | Deferred:
    """Return the cotangent of operand `at` of a product: that of the result, contracted with the
    other operand over its free axes, and over the axes of the stack that operand `at` lacks.
    """
    key = at, g.shape, types, contracted, free
    axes = _factor_axes.get(key)
    if axes is None:
        axes = _factor_axes.setdefault(key, _axes_of_factor(*key))
    params, order, has_stack = axes
    if not has_stack and g.dtype == other.dtype:
        return ProductTerm(g, other, *params, order, types[at].shape)
    term = _native.apply(contract.id, (g, other), params)
    return term if order is None else permute_dims(term, order)


_factor_axes: LruCache[Any, tuple[tuple[AxisPair, AxisPair], tuple[int, ...] | None, bool]] = (
    LruCache(1024, "axes of factors", "equal products have cotangents of the same axes")
)


def _axes_of_factor(
    at: int, shape: Shape, types: tuple[Type, ...], contracted: AxisPair, free: AxisPair
) -> tuple[tuple[AxisPair, AxisPair], tuple[int, ...] | None, bool]:
    """Return the parameters of `contract`, the axes of its result, and whether there is a stack."""
    to, ndim = 1 - at, len(shape)
    stacks = [
        [a for a in range(type_.ndim) if a not in contracted[i] and a not in free[i]]
        for i, type_ in enumerate(types)
    ]
    stack = ndim - len(free[0]) - len(free[1])
    result_axes = (
        tuple(range(stack, stack + len(free[0]))),
        tuple(range(stack + len(free[0]), ndim)),
    )
    lacking = stack - len(stacks[at])
    shift = stack - len(stacks[to])
    lengths = types[to].shape
    shared = [
        p for p in range(lacking) if p >= shift and shape[p] == lengths[stacks[to][p - shift]]
    ]
    summed = ((*shared, *result_axes[to]), (*(stacks[to][p - shift] for p in shared), *free[to]))
    kept = result_axes[at], contracted[to]
    stack_left = stack - len(shared)
    positions = {axis: stack_left + i for i, axis in enumerate((*free[at], *contracted[at]))}
    first = stack_left - len(stacks[at])
    positions.update({axis: first + i for i, axis in enumerate(stacks[at])})
    order = (*range(first), *(positions[axis] for axis in range(types[at].ndim)))
    return (summed, kept), None if order == tuple(range(len(order))) else order, stack > 0


def _of_join(call: _DifferentiatedNode) -> Contributions:
    """Each operand has its part of the cotangent."""
    (axis,), g = call.params, call.g
    picks: list[Any] = list(whole_axes(g.shape))
    if g.ndim > call.operands[0].ndim:
        return [
            index_view(g, (*picks[:axis], at, *picks[axis + 1 :])) for at in range(g.shape[axis])
        ]
    lengths = [x.shape[axis] for x in call.operands]
    starts = accumulate(lengths, initial=0)
    return [
        index_view(g, (*picks[:axis], (start, length, 1), *picks[axis + 1 :]))
        for start, length in zip(starts, lengths, strict=False)
    ]


def _of_gather(call: _DifferentiatedNode) -> Contributions:
    """Add the cotangents of the elements at the positions that they are taken from."""
    (x, *indices), (axes, index_axis), g = call.operands, call.params, call.g
    nothing: list[Array | None] = [None] * len(indices)
    remaining = tuple(axis for axis in range(x.ndim) if axis not in axes)
    count = g.ndim - len(remaining)
    taken = range(index_axis, index_axis + count)
    if index_axis:
        g = permute_dims(g, (*taken, *(axis for axis in range(g.ndim) if axis not in taken)))
    lengths = tuple(x.shape[axis] for axis in axes)
    rows = indices[0]
    if len(axes) > 1:
        rows = _flat_positions(indices, lengths)
    shape = (product(lengths), *(x.shape[axis] for axis in remaining))
    sums = add_at(zeros(shape, dtype=g.dtype, device=g.device), rows, g)
    moved = reshape(sums, (*lengths, *shape[1:]))
    order = (*axes, *remaining)
    inverse = tuple(order.index(axis) for axis in range(x.ndim))
    return [moved if inverse == tuple(range(x.ndim)) else permute_dims(moved, inverse), *nothing]


def _flat_positions(indices: Sequence[Array], lengths: Shape) -> Array:
    """Return positions along several axes as positions in these axes, flattened."""
    terms = []
    for index, length, stride in zip(indices, lengths, row_major(lengths), strict=True):
        position = convert(index, INT64)
        terms.append(where(position < 0, position + length, position) * stride)
    return reduce(operator.add, terms)


def _of_sums(call: _DifferentiatedNode) -> Contributions:
    """Sums by index: the base has the cotangent, each row that of its sum."""
    scatter = call.op.lowering.scatter
    assert scatter is not None, "a scatter"
    terms: list[Array | None] = [None] * len(call.operands)
    rows = call.operands[scatter.indices.start]
    terms[scatter.value] = _native.apply(gather.id, (call.g, rows), ((0,), 0))
    if scatter.base is not None:
        terms[scatter.base] = call.g
    return terms


def _of_replacement(call: _DifferentiatedNode) -> Contributions:
    """Replaced elements have no cotangent; of the values at one position the last one has it."""
    (x, _, *indices), g = call.operands, call.g
    (part_type,) = _native.node_of(_native.apply(gather.id, (g, *indices), call.params)).types
    shape = part_type.shape
    numbers = reshape(arange(product(shape), device=g.device), shape)
    writers = zeros(x.shape, dtype=INT64, device=g.device)
    last = _native.apply(put_at.id, (writers, numbers, *indices), call.params)
    wins = _native.apply(gather.id, (last, *indices), call.params) == numbers
    values = where(wins, _native.apply(gather.id, (g, *indices), call.params), 0)
    return [_native.apply(put_at.id, (g, 0, *indices), call.params), values, *[None] * len(indices)]


def _by_vjp(call: _DifferentiatedNode) -> Contributions:
    assert call.op.transforms.vjp is not None, "a rule"
    terms = call.op.transforms.vjp(call.g, call.result(), *call.operands, *call.params)
    if call.op.semantics.body is None:
        return _checked_terms(call, "vjp", terms)
    count = len(terms)  # captured arrays come after the arguments
    if any(call.needs[count:]):
        rule = "it reads an array that is no argument, and that has no derivative here"
        remedy = "make the array an argument, or take tn.stop_gradient of it before"
        raise UnsupportedError(call.op.name, rule, call.operands[count:][:4], remedy)
    return [*terms, *[None] * (len(call.inputs) - count)]


def _by_jvp(call: _DifferentiatedNode) -> Contributions:
    """In a Jacobian-vector product its transpose; in reverse there is none."""
    if not TRANSPOSES.get():
        raise no_rule_error(call.node, "it has no derivative in reverse", REMEDY)
    cotangents = call.g if isinstance(call.g, tuple) else (call.g,)
    return transposed_terms(call.op, cotangents, call.operands, call.params, call.needs)


def _checked_terms(call: _DifferentiatedNode, fact: str, terms: Any) -> Contributions:
    """Return the terms that a user's rule gave; raise TypeError unless there is one an operand."""
    count = len(call.inputs)
    if isinstance(terms, (tuple, list)) and len(terms) == count:
        return terms
    found = len(terms) if isinstance(terms, (tuple, list)) else type(terms).__name__
    rule = f"{fact}= gave {found}, not a tuple of {count}: a cotangent, or None, for each operand"
    raise TypeError(message(call.op.name, rule, remedy="return a tuple, as in (g * y,)"))


def _by_inverse_view(call: _DifferentiatedNode) -> Contributions:
    assert call.op.lowering.inverse_view is not None, "a view of all elements"
    return [call.op.lowering.inverse_view(call.g, call.operands[0])]


def _by_sum_of_views(call: _DifferentiatedNode) -> Contributions:
    assert call.op.lowering.sum_of_views is not None, "a view that repeats elements"
    return [call.op.lowering.sum_of_views(call.g, call.operands[0].shape, *call.params)]


def _adds(op: Op[...]) -> bool:
    return op.lowering.scatter is not None and op.lowering.scatter.kind == "add"


DERIVATIVE_RULES: tuple[
    tuple[Callable[[Op[...]], Any], Callable[[_DifferentiatedNode], Contributions]], ...
] = (
    (lambda op: op.transforms.vjp, _by_vjp),
    (lambda op: op.transforms.jvp, _by_jvp),
    (lambda op: op.transforms.partials, _by_partials),
    (lambda op: op.transforms.zero_derivative, lambda call: [None] * len(call.inputs)),
    (lambda op: op.semantics.body, _of_call),
    (lambda op: op.transforms.expression or op.semantics.element, _of_expression),
    (lambda op: op.lowering.updates, _of_update),
    (lambda op: op.lowering.index_map, _of_view),
    (lambda op: op.lowering.inverse_view, _by_inverse_view),
    (lambda op: op.lowering.sum_of_views, _by_sum_of_views),
    (lambda op: op.rewriting.contraction and not op.lowering.epilogue, _of_product),
    (lambda op: op.lowering.joins, _of_join),
    (lambda op: op.lowering.gathers, _of_gather),
    (_adds, _of_sums),
    (lambda op: op.lowering.scatter is not None and op.lowering.scatter.replaces, _of_replacement),
)
"""The facts from which a derivative follows, each with the rule; the first one counts."""


def _rule_of(op: Op[...]) -> Callable[[_DifferentiatedNode], Contributions] | None:
    return next((rule for fact, rule in DERIVATIVE_RULES if fact(op)), None)


def has_derivative(op: Op[...]) -> bool:
    """Whether the declaration of an op says what its derivative is."""
    return _rule_of(op) is not None


__all__ = [
    "contributions",
    "has_derivative",
    "no_rule_error",
    "recorded_contributions",
    "summed_to",
]
