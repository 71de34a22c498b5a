"""Write-through views: an assignment to a view replaces that part of the value of its base array.

Takes a target, an index map of the part (`core/index_map.py`) and a value that fits. The base
array, however many views below, then names the value with that part replaced. Expressions that use
the old value keep it; every view reads the new one.

>>> import tenfold as tn
>>> x = tn.zeros((2, 3))
>>> write(x.T, identity((3, 2)), (3, 2), 7)
>>> x.tolist()
[[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]]
"""

from __future__ import annotations

import weakref
from typing import Any

from tenfold import _native, pipeline
from tenfold._native import Array, Node
from tenfold.array import external_buffer
from tenfold.array.defer_shared_products import shares_product
from tenfold.caches import memoized
from tenfold.core.index_map import compose_view, identity
from tenfold.core.op import Op
from tenfold.core.shape_rules import Shape, product
from tenfold.core.trace_state import TRACE
from tenfold.errors import ShapeError, UnsupportedError
from tenfold.ops.assignment import Access, normalize_access, set_at
from tenfold.ops.cast import convert
from tenfold.ops.create import full
from tenfold.ops.reshaping import broadcast_to

MAX_PENDING = _native.MOST_PENDING
"""The most assignments to an Array that may be pending when the next one begins."""
MAX_READ = _native.MOST_READ
"""The most pending assignments, to any Arrays, below an assigned value."""


MAX_SHARING = 16
"""As MAX_PENDING, where each computes the same product: together they compute it once."""
MAX_AFTER_FAILURE = 256
"""As MAX_PENDING, after a failure."""
_retry_limits: dict[int, int] = {}
"""Arrays, by identity, whose work has failed, and at how many pending ones it is tried again."""


def write(target: Array, access: Access, shape: Shape, value: Any) -> None:
    """Replace the part of `shape` that `access` reads of `target` by a value that fits; the target
    shows no element twice.
    """
    if product(shape) == 0:
        return
    while (base := target.base) is not None:
        op, params = _movement_of(target)
        if op.reads is not None:
            access = _base_access(access, op, base.shape, params)
        else:
            assert op.inverse_view is not None, f"{op.name} is read by steps or undone"
            value = op.inverse_view(_with_part_replaced(target, access, shape, value), base)
            access, shape = identity(base.shape), base.shape
        target = base
    if _native.window_of(target) is not None:
        external_buffer.write(target, access, shape, value)
        return
    advance(target, value)
    _native.rebind(target, _native.node_of(_with_part_replaced(target, access, shape, value)))


def _movement_of(view: Array) -> tuple[Op[...], tuple[Any, ...]]:
    """Return the movement of a view; its node is not cached, as it reads the old value."""
    node = _native.node_of(view)
    return node.op, node.params


def advance(target: Array, value: Any) -> None:
    """Compute earlier assignments, so that loops that assign do not grow the graph.

    This runs before the next assignment, not after the last one. By then the operands of the last
    one are released, the previous value is dead, and the plan writes in place. A failure is raised
    where a caller waits. A traced function has nothing to compute.
    """
    if TRACE.get() is not None:
        return
    pending = _native.node_of(target)
    count, limit = pending.assignments, _retry_limits.get(id(target), MAX_PENDING)
    may_share = MAX_PENDING <= count < MAX_SHARING
    if may_share and isinstance(value, Array) and shares_product(pending, _native.node_of(value)):
        return
    if count >= limit:
        if pipeline.compute([pending]) is None:
            _retry_limits.pop(id(target), None)
        else:
            weakref.finalize(target, _retry_limits.pop, id(target), None)
            _retry_limits[id(target)] = max(MAX_AFTER_FAILURE, 2 * count)
    elif limit > MAX_PENDING:
        return
    if isinstance(value, Array):
        value_node = _native.node_of(value)
        count = value_node.assignments
        # The count is from the creation of the node, so it includes computed assignments.
        if count and not count % MAX_READ and (nodes := _pending_assignments(value_node)):
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
        if node.op is not None and node.op.writes is not None:
            assignments.append(node)
        else:
            stack += node.inputs
    return assignments


@memoized("parts of views", 4096)
def _base_access(access: Access, op: Op[...], shape: Shape, params: tuple[Any, ...]) -> Access:
    """Return the index map of a view's part in the base array of `shape`."""
    assert op.reads is not None, "it reads by steps"
    return compose_view(access, op.reads(shape, *params))


def refuse_repeating(target: Array, operation: str) -> None:
    """Raise ShapeError when a view shows an element of its base several times."""
    view = target
    while (base := view.base) is not None:
        node = _native.node_of(view)
        if node.op.reads is None and node.op.inverse_view is None:
            rule = f"a view made by {node.op.name} cannot be assigned to"
            raise UnsupportedError(operation, rule, [target], "assign to its base array")
        if _repeats(node.op, base.shape, view.shape, node.params):
            rule = f"a view of shape {base.shape} repeated to {view.shape} is read-only"
            remedy = "assign to the array that is broadcast, or to a copy: tn.asarray(x, copy=True)"
            raise ShapeError(operation, rule, [target], remedy)
        view = base


@memoized("views that repeat elements", 4096)
def _repeats(op: Op[...], shape: Shape, result: Shape, params: tuple[Any, ...]) -> bool:
    """Whether a view of the array of `shape` shows an element at several places."""
    if op.reads is None:
        return False
    read_axes = {axis for axis, *_ in op.reads(shape, *params)}
    return any(length > 1 and axis not in read_axes for axis, length in enumerate(result))


def _with_part_replaced(target: Array, access: Access, shape: Shape, value: Any) -> Array:
    """Return the value of `target` with a part replaced."""
    access, is_whole = _normalized(access, shape, target.shape)
    if is_whole:
        return _whole_value(target, value)
    result: Array = _native.apply(set_at.id, (target, value), (access, shape))
    return result


@memoized("forms of parts", 4096)
def _normalized(access: Access, shape: Shape, target_shape: Shape) -> tuple[Access, bool]:
    """Return the canonical form of an access, and whether the part is the whole target."""
    access = normalize_access(access, shape)
    return access, shape == target_shape and access == identity(shape)


def _whole_value(target: Array, value: Any) -> Array:
    if not isinstance(value, Array):
        params = (target.shape, value, target.dtype, target.device)
        filled: Array = _native.apply(full.id, (), params)
        return filled
    value = convert(value, target.dtype)
    return value if value.shape == target.shape else broadcast_to(value, target.shape)
