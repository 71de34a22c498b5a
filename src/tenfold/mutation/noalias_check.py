"""Alias check: verifies the promise `noalias=True`, that the right side reads no byte of its
target.

Takes the target and the right side as they are before the assignment. Raises AliasError when a read
of the right side and the target share bytes. Reads are followed through views, of the array that
the target is a view of and of other memory. It runs under `tn.options(verify=True)` only.

>>> import tenfold as tn
>>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> verify(x, tn.ones((2, 2)) @ tn.ones((2, 2)))
>>> verify(x[0], x[1] * 2)
>>> verify(x, x @ x)
Traceback (most recent call last):
...
tenfold.errors.AliasError: assign: the promise noalias=True does not hold: bytes 0 to 31 of ...
"""

from __future__ import annotations

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.index_map import strides_in
from tenfold.core.interpreter import interpret
from tenfold.core.op import Op
from tenfold.core.shape_rules import row_major
from tenfold.core.strided_overlap import StridedRegion, overlap
from tenfold.errors import AliasError


def verify(target: Array, expr: Array) -> None:
    """Raise AliasError, naming both byte ranges, where `expr` reads bytes of `target`."""
    views = []
    root = target
    while root.base is not None:
        views.append(_native.node_of(root))
        root = root.base
    origin = _native.node_of(root)
    target_region = root_region = _region(origin)
    for view in reversed(views):
        target_region = _view_region(view, target_region)
    for name, read_region in _reads(Graph.of([_native.node_of(expr)]), origin, root_region):
        overlap_result = overlap(target_region, read_region)
        if not (target_region.empty or read_region.empty or overlap_result.disjoint):
            written_bytes, read_bytes = (
                _byte_range(region, root_region) for region in (target_region, read_region)
            )
            raise AliasError(
                "assign",
                f"the promise noalias=True does not hold: bytes {written_bytes} of the array are "
                f"written, bytes {read_bytes} read by {name} ({overlap_result.verdict.value})",
                [target, expr],
                "leave noalias out: the reads then see the old values",
            )


def _region(node: Node) -> StridedRegion:
    """The memory region of a node; for one not computed, row-major order at address 0."""
    type_, value = node.type, node.value()
    size = type_.dtype.itemsize
    strides = tuple(size * step for step in row_major(type_.shape))
    if value is None:
        return StridedRegion(0, type_.shape, strides, size)
    return StridedRegion(value.address, type_.shape, value.strides or strides, size)


def _view_region(view: Node, region: StridedRegion) -> StridedRegion:
    """Return the part of a region that a view shows; all of it where that is not known."""
    op: Op[...] = view.op
    type_ = view.type
    if op.is_affine_view:
        access = op.reads(region.shape, view.params)
        strides, offset = strides_in(access, region.strides, type_.ndim)
        return StridedRegion(region.address + offset, type_.shape, strides, region.itemsize)
    if op.lowering.strides is None or type_.dtype.itemsize != region.itemsize:
        return region
    found = op.lowering.strides(region.shape, region.strides, *view.params)
    return StridedRegion(region.address, type_.shape, found, region.itemsize) if found else region


def _reads(
    graph: Graph, origin: Node, root_region: StridedRegion
) -> list[tuple[str, StridedRegion]]:
    """Return operations with the regions they read: of `origin`, and of memory it may share."""
    reads: list[tuple[str, StridedRegion]] = []
    environment: dict[Node, StridedRegion | None] = {origin: root_region}

    def region(node: Node, regions: list[StridedRegion | None]) -> StridedRegion | None:
        if not node.is_scalar and node.value() is not None and origin.value() is not None:
            return _region(node)
        if node.op is not None and node.op.semantics.view and regions and regions[0] is not None:
            return _view_region(node, regions[0])
        reads.extend([(node.name, read) for read in regions if read is not None])
        return None

    outputs = interpret(graph, environment, region)
    return [*reads, *[("the assignment", read) for read in outputs if read is not None]]


def _byte_range(region: StridedRegion, root_region: StridedRegion) -> str:
    """A range of bytes counted from the array's first."""
    begin, end_ = (bound - root_region.range[0] for bound in region.range)
    return f"{begin} to {end_ - 1}"
