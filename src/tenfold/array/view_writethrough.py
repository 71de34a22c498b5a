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
from tenfold.array.defer_shared_products import shares
from tenfold.caches import memoized
from tenfold.core.index_map import compose_view, identity
from tenfold.core.op import Op
from tenfold.core.shape_rules import Shape, product
from tenfold.core.trace_state import TRACE
from tenfold.errors import ShapeError, UnsupportedError
from tenfold.ops.assignment import Access, normal, set_at
from tenfold.ops.cast import converted
from tenfold.ops.create import full
from tenfold.ops.reshaping import broadcast_to

MOST_PENDING = _native.MOST_PENDING
"""Assignments of an Array that may be pending one upon the other when the next one begins."""
MOST_READ = _native.MOST_READ
"""Assignments, of any Arrays, that may be pending one upon the other below what is assigned."""


MOST_SHARING = 16
"""As MOST_PENDING, where each computes the same product: together they compute it once."""
MOST_FAILED = 256
"""As MOST_PENDING, where one has failed: what can be done is done the next time."""
_failed: dict[int, int] = {}
"""Arrays, by identity, whose work has failed, and at how many pending ones it is tried again."""


def write(target: Array, access: Access, shape: Shape, value: Any) -> None:
    """Replace the part of `shape` that `access` reads of `target` by a value that fits; the target
    shows no element twice.
    """
    if product(shape) == 0:
        return
    while (base := target.base) is not None:
        op, params = _made_by(target)
        if op.reads is not None:
            access = _below(access, op, base.shape, params)
        else:
            assert op.inverse_view is not None, f"{op.name} is read by steps or undone"
            value = op.inverse_view(_replaced(target, access, shape, value), base)
            access, shape = identity(base.shape), base.shape
        target = base
    if _native.window_of(target) is not None:
        external_buffer.write(target, access, shape, value)
        return
    advance(target, value)
    _native.rebind(target, _native.node_of(_replaced(target, access, shape, value)))


def _made_by(view: Array) -> tuple[Op[...], tuple[Any, ...]]:
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
    before = _native.node_of(target)
    count, most = before.assignments, _failed.get(id(target), MOST_PENDING)
    few = MOST_PENDING <= count < MOST_SHARING
    if few and isinstance(value, Array) and shares(before, _native.node_of(value)):
        return
    if count >= most:
        if pipeline.compute([before]) is None:
            _failed.pop(id(target), None)
        else:
            weakref.finalize(target, _failed.pop, id(target), None)
            _failed[id(target)] = max(MOST_FAILED, 2 * count)
    elif most > MOST_PENDING:
        return
    if isinstance(value, Array):
        read = _native.node_of(value)
        count = read.assignments
        # It was counted when the node was made: what has been computed since is in it.
        if count and not count % MOST_READ and (nodes := _assigned(read)):
            pipeline.compute(nodes)


def _assigned(read: Node) -> list[Node]:
    """Return the last assignments that are pending below a node."""
    found: list[Node] = []
    seen: set[Node] = set()
    waiting = [read]
    while waiting:
        node = waiting.pop()
        if node in seen or not node.assignments:
            continue
        seen.add(node)
        if node.op is not None and node.op.writes is not None:
            found.append(node)
        else:
            waiting += node.inputs
    return found


@memoized("parts of views", 4096)
def _below(access: Access, op: Op[...], shape: Shape, params: tuple[Any, ...]) -> Access:
    """Return where a part of a view stands in the array of `shape` that the view is made of."""
    assert op.reads is not None, "it reads by steps"
    return compose_view(access, op.reads(shape, *params))


def refuse_repeating(target: Array, operation: str) -> None:
    """Raise ShapeError when a view shows an element of what it is a view of several times."""
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
    read = {axis for axis, *_ in op.reads(shape, *params)}
    return any(length > 1 and axis not in read for axis, length in enumerate(result))


def _replaced(target: Array, access: Access, shape: Shape, value: Any) -> Array:
    """Return the value of `target` with a part replaced."""
    access, everywhere = _normal(access, shape, target.shape)
    if everywhere:
        return _everywhere(target, value)
    result: Array = _native.apply(set_at.id, (target, value), (access, shape))
    return result


@memoized("forms of parts", 4096)
def _normal(access: Access, shape: Shape, whole: Shape) -> tuple[Access, bool]:
    """Return the one form of an access, and whether the part is all of an array of `whole`."""
    access = normal(access, shape)
    return access, shape == whole and access == identity(shape)


def _everywhere(target: Array, value: Any) -> Array:
    if not isinstance(value, Array):
        params = (target.shape, value, target.dtype, target.device)
        filled: Array = _native.apply(full.id, (), params)
        return filled
    value = converted(value, target.dtype)
    return value if value.shape == target.shape else broadcast_to(value, target.shape)
