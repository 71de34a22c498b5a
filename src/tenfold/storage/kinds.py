"""Storage kinds: arrays that are stored as components, and the table of rules for them.

An Array of a kind is the node of a constructor over dense component arrays; its Type names the
kind. The node itself is never computed, its components are. Where an operation gets an operand of a
kind, native code asks `apply_to_kinds` (`make_node` in native/python/node_bindings.cpp): a rule of
the kind makes the result of operations on the components. Elements outside of the components are
0 and take part in no arithmetic.

>>> import tenfold as tn
>>> x = tn.diagonal_matrix(tn.asarray([1.0, 2.0]))
>>> storage_kind(x).name, [part.tolist() for part in components(x)]
('diagonal_matrix', [[1.0, 2.0]])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.caches import LruCache
from tenfold.core.inference import infer
from tenfold.core.op import Derived, Kind, Op, Operation, Params
from tenfold.core.op_decorators import array, values
from tenfold.core.shape_rules import broadcast
from tenfold.core.trace_state import TRACE
from tenfold.errors import UnsupportedError
from tenfold.settings import get

KindRule = Callable[..., Any]
"""From the operands and the params of a call to its result, or NotImplemented. An operand is an
Array or a Python number."""


@dataclass(kw_only=True, eq=False)
class StorageKind:
    """A storage kind: its constructor and the rules of operations on its arrays."""

    name: str
    constructor: Op[...]
    """The op whose inputs are the components."""
    to_dense: Callable[[Array], Array]
    """From an array of the kind to the dense one."""
    elementwise: Callable[[Op[...], Sequence[Any], Params], Any] | None = None
    """The rule of functions of the elements at one index."""
    get_item: Callable[[Array, Any], Any] | None = None
    """The rule of `x[key]`, or NotImplemented."""
    as_general: Callable[[Array], Array | None] | None = None
    """The same matrix in a kind of more rules, which answer where this kind has none."""
    has_pattern: bool = False
    """Whether components say where the elements are."""
    rules: dict[Operation[...], KindRule] = field(default_factory=dict)
    by_values: set[Operation[...]] = field(default_factory=set)
    """The operations whose rules look at values of components."""

    def __post_init__(self) -> None:
        _native.declare_storage(self.name)
        STORAGE_KINDS[self.name] = self

    @property
    def component_names(self) -> tuple[str, ...]:
        """The names of the components: the constructor's arguments."""
        code = self.constructor.function.__code__
        return code.co_varnames[: code.co_posonlyargcount]

    def rule(
        self, *operations: Operation[...], by_values: bool = False
    ) -> Callable[[KindRule], KindRule]:
        """Register a function as the rule of operations; `by_values`: it looks at values."""

        def declare(function: KindRule) -> KindRule:
            self.rules.update(dict.fromkeys(operations, function))
            for operation in operations:
                if isinstance(operation, Derived):
                    operation.kind_rules[self.name] = function
            if by_values:
                self.by_values.update(operations)
            return function

        return declare

    def general(self, function: Callable[[Array], Array | None]) -> None:
        """Register what makes the same matrix in a kind of more rules; None where it has none."""
        self.as_general = function

    def make(self, *parts: Array, params: Params = ()) -> Array:
        """Return the array of these components."""
        result: Array = _native.apply(self.constructor.id, parts, params)
        return result


KEEPS_ZEROS: set[Operation[...]] = set()
"""The maps that keep zeros whatever numbers their other operands are."""
STORAGE_KINDS: dict[str, StorageKind] = {}
"""All kinds by name; dense is none of them."""


def storage_kind(x: Array) -> StorageKind | None:
    """The kind of an array; None for a dense one."""
    return STORAGE_KINDS[_native.node_of(x).type.storage] if _native.has_kind(x) else None


def components(x: Array) -> tuple[Array, ...]:
    """Return the components of an array of a kind."""
    return tuple(map(_native.array_of, _native.node_of(x).inputs))


def constructor_params(x: Array) -> Params:
    """Return the params of the constructor of an array of a kind."""
    params: Params = _native.node_of(x).params
    return params


def stored_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Return nodes that are computed for nodes: themselves, or the components of a kind."""
    stored: list[Node] = []
    for node in nodes:
        stored.extend(node.inputs if node.type.storage in STORAGE_KINDS else (node,))
    return stored


def to_dense(x: Array) -> Array:
    """Return an array of elements that are stored one by one; a dense array itself.

    Counted in `tn.profile` as `densified`.

    >>> import tenfold as tn
    >>> tn.diagonal_matrix(tn.asarray([1.0, 2.0])).to_dense().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    kind = storage_kind(x)
    if kind is None:
        return x
    _native.count("densified")
    return kind.to_dense(x)


def kept_indices(x: Array, known: np.ndarray) -> Array:
    """Return checked indices, of values `known`, as a component: int32 or int64, and in memory that
    nobody writes to.
    """
    is_plain = x.dtype in (np.int32, np.int64) and _native.window_of(x) is None
    fits = x.dtype.itemsize < 4 or x.dtype == np.int32
    return x if is_plain else array(known.astype(np.int32 if fits else np.int64), x)


def dense_bytes_text(x: Array) -> str:
    """Return the bytes of the dense form of an array, as text."""
    return f"{x.size * x.dtype.itemsize:,} bytes"


def refusal(operation: str, x: Array, operands: Sequence[Any] = ()) -> UnsupportedError:
    """Return the error of an operation that an array of a kind has no rule for."""
    rule = (
        f"{_native.node_of(x).type.storage} storage has no rule for it, and the dense array of "
        f"shape {x.shape} takes {dense_bytes_text(x)}"
    )
    arrays = [operand for operand in operands if isinstance(operand, Array)] or [x]
    return UnsupportedError(operation, rule, arrays[:8], remedy="if it fits, take x.to_dense()")


def apply_to_kinds(op: Op[...], operands: Sequence[Any], params: Params) -> Any:
    """Apply an op to operands of which one has a kind. Called by native code.

    Shapes and dtypes are those of dense operands, and so are errors about them. The first kind that
    has a rule answers, then that of the same matrices in more general kinds. Without a rule
    operands become dense where a dense operand has the shape of the result anyway; else
    UnsupportedError. Where a rule looks at Types alone, native code makes the results of later
    calls itself.
    """
    types = tuple([_type_of(x) for x in operands])
    expected = infer(op, types, params, bool(get("strict_dtypes")))[0][0]
    result = _by_rules(op, operands, params, expected)
    if result is NotImplemented:
        general = [as_general(x) if isinstance(x, Array) else x for x in operands]
        if any(x is not y for x, y in zip(general, operands, strict=True)):
            result = _by_rules(op, general, params, expected)
        return _dense_result(op, operands, params) if result is NotImplemented else result
    if TRACE.get() is None and _looks_at_types(op, operands):
        placeholders: list[Array] = []
        replaced = [_placeholder(x, placeholders) for x in operands]
        made = _by_rules(op, replaced, params, expected)
        if isinstance(made, Array):
            _native.cache_kind_rule(op.id, tuple(operands), params, placeholders, made)
    return result


def _type_of(x: Any) -> Type:
    return _native.node_of(x).type if isinstance(x, Array) else _native.weak_type(x)


def _dense_result(op: Op[...], operands: Sequence[Any], params: Params) -> Any:
    """Return the result of dense operands, if one of them has its shape; else refuse."""
    arrays = [x for x in operands if isinstance(x, Array)]
    shape = broadcast(*(x.shape for x in arrays)) if op.semantics.kind is Kind.MAP else None
    if not any(x.shape == shape and not _native.has_kind(x) for x in arrays):
        raise refusal(op.name, next(x for x in arrays if _native.has_kind(x)), operands)
    dense = tuple([to_dense(x) if isinstance(x, Array) else x for x in operands])
    return _native.apply(op.id, dense, params)


def as_general(x: Array) -> Array:
    """Return the same matrix in a kind of more rules; itself where there is none."""
    kind = storage_kind(x)
    general = kind.as_general(x) if kind and kind.as_general else None
    return x if general is None else general


def item_of(x: Array, key: Any) -> Any:
    """Return `x[key]` of an array of a kind, or raise UnsupportedError."""
    for matrix in (x, as_general(x)):
        kind = storage_kind(matrix)
        found = kind.get_item(matrix, key) if kind and kind.get_item else NotImplemented
        if found is not NotImplemented:
            return found
    raise refusal("getitem", x)


def _by_rules(op: Op[...], operands: Sequence[Any], params: Params, expected: Type) -> Any:
    """Return the result by the first kind that has a rule, or NotImplemented."""
    result: Any = NotImplemented
    for x in operands:
        kind = storage_kind(x) if isinstance(x, Array) else None
        if result is NotImplemented and kind is not None:
            rule = kind.rules.get(op)
            if rule is not None:
                result = rule(*operands, *params)
            elif op.semantics.moves:
                moved = [_native.apply(op.id, (part,), params) for part in components(x)]
                result = kind.make(*moved, params=constructor_params(x))
            if result is NotImplemented and kind.elementwise and op.semantics.kind is Kind.MAP:
                result = kind.elementwise(op, operands, params)
    if result is NotImplemented or result.shape != expected.shape:
        return NotImplemented
    return result if result.dtype == expected.dtype else result.astype(expected.dtype)


def _looks_at_types(op: Op[...], operands: Sequence[Any]) -> bool:
    """Whether a rule looks at no values: of numbers, of patterns, nor whether two are the same."""
    kinds = [kind for x in operands if isinstance(x, Array) if (kind := storage_kind(x))]
    if any(op in kind.by_values for kind in kinds):
        return False
    if len(kinds) > 1 and any(kind.has_pattern for kind in kinds):
        return False
    has_numbers = not all(isinstance(x, Array) for x in operands)
    is_first = op.rewriting.commutes or isinstance(operands[0], Array)
    return not has_numbers or (op in KEEPS_ZEROS and is_first)


def _placeholder(x: Any, placeholders: list[Array]) -> Array:
    """Return an operand without values, like `x`; append its placeholders."""
    kind = storage_kind(x) if isinstance(x, Array) else None
    made = [_native.placeholder(_type_of(part)) for part in (components(x) if kind else [x])]
    placeholders.extend(made)
    return kind.make(*made, params=constructor_params(x)) if kind else made[0]


def keeps_zeros(
    op: Op[...], operands: Sequence[Any], stored: Collection[int], params: Params
) -> bool:
    """Whether an elementwise op gives 0 where operands `stored` are 0; the others are numbers."""
    key = (
        op,
        tuple([x.dtype if i in stored else (type(x), repr(x)) for i, x in enumerate(operands)]),
    )
    kept = _kept_zeros.get((*key, params))
    if kept is None:
        zeros = [array(np.zeros(1, x.dtype)) if i in stored else x for i, x in enumerate(operands)]
        result: Array = _native.apply(op.id, tuple(zeros), params)
        kept = _kept_zeros[(*key, params)] = bool(values(result, op.name)[0] == 0)
    return kept


_kept_zeros: LruCache[Any, bool] = LruCache(
    512, "kept zeros", "whether a map keeps a storage kind is computed once, at 0"
)


__all__ = [
    "KEEPS_ZEROS",
    "STORAGE_KINDS",
    "StorageKind",
    "apply_to_kinds",
    "components",
    "constructor_params",
    "dense_bytes_text",
    "item_of",
    "keeps_zeros",
    "kept_indices",
    "refusal",
    "storage_kind",
    "stored_nodes",
    "to_dense",
]
