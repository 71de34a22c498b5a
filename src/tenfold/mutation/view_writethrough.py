"""Write-through views: an assignment to a view replaces that part of the value of its base array.

Takes a target, a slice of it (`core/index_map.py`) and a value that fits. The base
array, however many views below, then names the value with that part replaced. Expressions that use
the old value keep it; every view reads the new one.

>>> import tenfold as tn
>>> x = tn.zeros((2, 3))
>>> write_view(x.T, whole_slice((3, 2)), 7)
>>> x.tolist()
[[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]]
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from tenfold import _native, pipeline
from tenfold._native import Array, Node
from tenfold.caches import LruCache
from tenfold.core.array_facts import ArrayFacts
from tenfold.core.index_map import (
    IndexMap,
    Slice,
    compose_view,
    repeats,
    updated_slice,
    whole_slice,
)
from tenfold.core.op import Op
from tenfold.core.shape_rules import product
from tenfold.core.trace_state import TRACE
from tenfold.errors import ShapeError, UnsupportedError, message
from tenfold.mutation import external_buffer
from tenfold.mutation.defer_shared_products import shares_product
from tenfold.ops.assignment import set_at
from tenfold.ops.cast import convert
from tenfold.ops.create import full, zeros
from tenfold.ops.indexing import slice_view
from tenfold.ops.reshaping import broadcast_to
from tenfold.storage import kinds

_retry_limits: ArrayFacts[int] = ArrayFacts()
"""Arrays whose work has failed, and at how many pending assignments it is tried again."""


def write_view(target: Array, part: Slice, value: Any) -> None:
    """Replace a slice of `target` by a value that fits; the target shows no element twice."""
    if product(part[1]) == 0:
        return
    shown_part, movements = part, list[tuple[Op[...], tuple[Any, ...]]]()
    while (base := target.base) is not None:
        op, params = _movement_of(target)
        if op.is_affine_view:
            access = compose_view(part[0], _view_map(op, base, target, params).reads)
            part = access, part[1]
            movements.append((op, params))
        elif op.lowering.replace_part is not None:
            value = replace_part(op, _shown(base, movements, shown_part), value)
        else:
            assert op.lowering.inverse_view is not None, f"{op.name} has an index map or an inverse"
            value = op.lowering.inverse_view(_with_part_replaced(target, part, value), base)
            part = shown_part = whole_slice(base.shape)
            movements.clear()
        target = base
    if _native.window_of(target) is not None:
        external_buffer.write_window(target, part, value)
        return
    advance(target, value)
    _native.rebind(target, _native.node_of(_with_part_replaced(target, part, value)))


def _movement_of(view: Array) -> tuple[Op[...], tuple[Any, ...]]:
    """Return the movement of a view; its node is not cached, as it reads the old value."""
    node = _native.node_of(view)
    return node.op, node.params


def _shown(base: Array, movements: list[tuple[Op[...], tuple[Any, ...]]], part: Slice) -> Array:
    """Return a slice of the view of `base` that these movements make, the last one first."""
    for op, params in reversed(movements):
        base = _native.apply(op.id, (base,), params)
    return base if part == whole_slice(base.shape) else slice_view(base, part)


def shown_part(x: Array) -> tuple[Op[...] | None, Array]:
    """Return the op by which a view shows a part of each element of its base, and the base; for
    other arrays None and themselves.
    """
    base, op = x.base, _native.node_of(x).op
    if base is None or op.lowering.replace_part is None:
        return None, x
    return op, base


def replace_part(op: Op[...], elements: Array, values: Any) -> Array:
    """Return elements with the part that `op` shows replaced."""
    assert op.lowering.replace_part is not None, f"{op.name} shows a part of each element"
    rule = op.lowering.replace_part(elements.dtype)
    assert rule is not None, f"{op.name} of {elements.dtype} is refused before"
    return rule(elements, values)


def advance(target: Array, value: Any) -> None:
    """Compute earlier assignments, so that loops that assign do not grow the graph.

    This runs before the next assignment, not after the last one. By then the operands of the last
    one are released, the previous value is dead, and the plan writes in place. A failure is raised
    where a caller waits. A traced function has nothing to compute.
    """
    if TRACE.get() is not None:
        return
    pending = _native.node_of(target)
    count = pending.assignments
    count_read = _native.node_of(value).assignments if isinstance(value, Array) else 0
    is_due, is_value_due, may_share = _native.due_updates(
        count, count_read, _retry_limits.get(target) or 0
    )
    if may_share and isinstance(value, Array) and shares_product(pending, _native.node_of(value)):
        return
    if is_due:
        if pipeline.compute([pending]) is None:
            _retry_limits.discard(target)
        else:
            _retry_limits[target] = max(_native.DEFERRAL.max_after_failure, 2 * count)
    if is_value_due and (nodes := _pending_assignments(_native.node_of(value))):
        pipeline.compute(nodes)


def _pending_assignments(root: Node) -> list[Node]:
    """Return the last assignments that are pending below a node."""
    assignments: list[Node] = []
    visited: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in visited or not node.assignments:
            continue
        visited.add(node)
        if node.op is not None and node.op.lowering.updates:
            assignments.append(node)
        else:
            stack += node.inputs
    return assignments


class _ViewMap(NamedTuple):
    """How a view reads its base, and whether it shows an element at several places."""

    reads: IndexMap
    repeats: bool


_view_maps: LruCache[tuple[Any, ...], _ViewMap] = LruCache(
    4096, "index maps of views", "an assignment to a view reads its map twice, at 2 microseconds"
)


def _view_map(op: Op[...], base: Array, view: Array, params: tuple[Any, ...]) -> _ViewMap:
    """Return the map of a view made by a movement that reads by steps."""
    key = op, base.shape, params
    cached = _view_maps.get(key)
    if cached is None:
        reads = op.reads(base.shape, params)
        cached = _view_maps.setdefault(key, _ViewMap(reads, repeats(reads, view.shape)))
    return cached


def refuse_read_only(target: Array, operation: str) -> None:
    """Raise ShapeError when a view shows an element of its base several times, ValueError when it
    shows a part that its elements have not.
    """
    if kinds.storage_kind(target):
        raise kinds.refusal(operation, target)
    view = target
    while (base := view.base) is not None:
        node = _native.node_of(view)
        if (replace_part := node.op.lowering.replace_part) is not None:
            if replace_part(base.dtype) is None:
                rule = f"assignment destination is read-only: {node.op.name} of {base.dtype} is 0"
                remedy = "assign to a copy: tn.asarray(x, copy=True)"
                raise ValueError(message(operation, rule, [target], remedy))
        elif not node.op.is_affine_view and node.op.lowering.inverse_view is None:
            rule = f"a view made by {node.op.name} cannot be assigned to"
            raise UnsupportedError(operation, rule, [target], "assign to its base array")
        if node.op.is_affine_view and _view_map(node.op, base, view, node.params).repeats:
            rule = f"a view of shape {base.shape} repeated to {view.shape} is read-only"
            remedy = "assign to the array that is broadcast, or to a copy: tn.asarray(x, copy=True)"
            raise ShapeError(operation, rule, [target], remedy)
        view = base


def shows_sums(target: Array) -> bool:
    """Whether a view, or one below it, shows elements several times and takes sums of terms."""
    view = target
    while (base := view.base) is not None:
        if _native.node_of(view).op.lowering.sum_of_views is not None:
            return True
        view = base
    return False


def sum_through(target: Array, terms: Any) -> tuple[Array, Array]:
    """Return the array below all views that show elements several times, and for each of its
    elements the sum of the terms of `target` that stand at it.
    """
    shown = broadcast_to(_as_terms(terms, target), target.shape)
    while shows_sums(target):
        base = target.base
        assert base is not None, "a view has a base"
        op, params = _movement_of(target)
        if op.lowering.sum_of_views is not None:
            shown = op.lowering.sum_of_views(shown, base.shape, *params)
        elif op.lowering.replace_part is not None:
            nothing = zeros(base.shape, dtype=base.dtype, device=base.device)
            shown = replace_part(op, nothing, shown)
        elif op.is_affine_view:
            part = updated_slice((_view_map(op, base, target, params).reads, target.shape))
            nothing = zeros(base.shape, dtype=shown.dtype, device=base.device)
            shown = _native.apply(set_at.id, (nothing, shown), part)
        else:
            assert op.lowering.inverse_view is not None, f"{op.name} has an index map or an inverse"
            shown = op.lowering.inverse_view(shown, base)
        target = base
    return target, shown


def _as_terms(terms: Any, target: Array) -> Array:
    if isinstance(terms, Array):
        return terms
    params = ((), terms, target.dtype, target.device)
    return cast(Array, _native.apply(full.id, (), params))


def _with_part_replaced(target: Array, part: Slice, value: Any) -> Array:
    """Return the value of `target` with a slice replaced."""
    part = updated_slice(part)
    if part == updated_slice(whole_slice(target.shape)):
        return _whole_value(target, value)
    result: Array = _native.apply(set_at.id, (target, value), part)
    return result


def _whole_value(target: Array, value: Any) -> Array:
    if not isinstance(value, Array):
        params = (target.shape, value, target.dtype, target.device)
        filled: Array = _native.apply(full.id, (), params)
        return filled
    value = convert(value, target.dtype)
    return value if value.shape == target.shape else broadcast_to(value, target.shape)
