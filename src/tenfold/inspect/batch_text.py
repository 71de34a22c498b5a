"""Batch text: which nodes of a large graph run as one batch, and why others do not.

Takes a Snapshot, hands on the text of the stage "batched".

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> rows = [tn.asarray([float(i), 1.0]) + 1 for i in range(600)]
>>> print(groups_text(Snapshot(pipeline.graph_of(rows))))
batched: 600 nodes in 1 launch, 1 signature
  add: 600 members, (float64[2], a number)
  thresholds: 4 nodes per signature, 12-24 members ready, 2 of calls, operands up to 65,536 elements
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tenfold import _native, pipeline
from tenfold._native import BATCHES, Node
from tenfold.core.graph import Graph, type_text
from tenfold.core.interpreter import interpret
from tenfold.inspect import batch_split_reasons
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, shortened
from tenfold.schedule.target import DEFAULT
from tenfold.settings import batch_limit, changed_compute_options, get

MAX_LISTED = 3
"""Signatures of one kind that are listed; more are counted."""


class BatchSummary(NamedTuple):
    """Nodes of one signature, by launch."""

    features: batch_split_reasons.BatchFeatures
    position: int
    launches: list[list[int]]
    limited_launches: int
    """Launches that only a limit separates from the one before."""
    unbatched: list[int]
    """Nodes that are ready together with too few others."""

    @property
    def members(self) -> int:
        """How many nodes are batched."""
        return sum(map(len, self.launches))


def groups_text(snapshot: Snapshot) -> str:
    """Return the launches and signatures, their members, and why they were not merged."""
    graph = snapshot.graph
    groups = groups_of(snapshot)
    if groups is None:
        return f"batched: none, {_why_unbatched(snapshot)}"
    batched = [group for group in groups if group.launches]
    members, launches = sum(g.members for g in batched), sum(len(g.launches) for g in batched)
    head = (
        f"batched: {members:,} nodes in {count_text(launches, 'launch')}, "
        f"{count_text(len(batched), 'signature')}"
    )
    families: dict[Any, list[BatchSummary]] = {}
    for group in batched:
        op = graph.nodes[group.position].op
        families.setdefault(batch_split_reasons.family(op), []).append(group)
    lines = [
        line for family_groups in families.values() for line in _family_lines(graph, family_groups)
    ]
    return "\n".join([head, *shortened(lines), *_unbatched_line(graph, groups), _thresholds()])


def _thresholds() -> str:
    """The numbers by which nodes are batched."""
    operand = f"operands up to {DEFAULT.batches.stacked_elements:,} elements"
    least = f"{BATCHES.min_members}-{BATCHES.min_large_members} members ready"
    least += f", {BATCHES.min_planned_members} of calls"
    return f"  thresholds: {BATCHES.min_mean_group_size} nodes per signature, {least}, {operand}"


def groups_of(snapshot: Snapshot) -> list[BatchSummary] | None:
    """Return the groups of a graph, in the order of their first launch; None without batches."""
    graph = snapshot.graph
    outputs = [graph.nodes[at] for at in graph.outputs]
    native_groups = _native.batches_of(outputs, pipeline.options_key())
    if native_groups is None:
        return None
    groups: dict[int, BatchSummary] = {}
    for number, positions, is_batch, exceeds_limit in native_groups:
        first = positions[0]
        if number not in groups:
            groups[number] = BatchSummary(_features(graph, first), first, [], 0, [])
        group = groups[number]
        if is_batch:
            group.launches.append(positions)
            groups[number] = group._replace(limited_launches=group.limited_launches + exceeds_limit)
        else:
            group.unbatched.extend(positions)
    return list(groups.values())


def _features(graph: Graph, position: int) -> batch_split_reasons.BatchFeatures:
    node, inputs = graph.nodes[position], graph.inputs[position]
    nodes = [graph.nodes[at] for at in inputs]
    types = tuple([batch_split_reasons.operand_signature(operand.type) for operand in nodes])
    shared = tuple([at if _is_common(graph, at) else None for at in inputs])
    return batch_split_reasons.BatchFeatures(node.op, node.params, types, shared)


def _is_common(graph: Graph, position: int) -> bool:
    node = graph.nodes[position]
    leaf = not node.is_scalar and not node.pending
    return leaf and graph.uses[position] > 1 and node.type.size >= DEFAULT.batches.shared_elements


def _family_lines(graph: Graph, groups: Sequence[BatchSummary]) -> Iterator[str]:
    """The largest group of an operation or function, and why the others are separate."""
    largest = max(groups, key=lambda group: group.members)
    node = graph.nodes[largest.position]
    inputs = ", ".join(_operand(graph.nodes[at]) for at in graph.inputs[largest.position])
    yield f"  {node.name}: {_size(largest)}, ({inputs}){_launches(largest)}"
    kinds: dict[str, list[tuple[BatchSummary, batch_split_reasons.SplitReason]]] = {}
    for group in sorted(groups, key=lambda group: -group.members):
        if group is not largest:
            reason = batch_split_reasons.split_reason(largest.features, group.features)
            kinds.setdefault(reason.kind, []).append((group, reason))
    for kind, same_kind in kinds.items():
        if len(same_kind) > MAX_LISTED:
            members = sum(group.members for group, _ in same_kind)
            total = f"{members:,} members in {len(same_kind)} signatures"
            yield f"  {node.name}: {total} {batch_split_reasons.PLURAL_KINDS.get(kind, kind)}"
            continue
        for group, reason in same_kind:
            yield f"  {node.name}: {_size(group)} {reason}{_launches(group)}"


def _operand(node: Node) -> str:
    return "a number" if node.is_scalar else type_text(node.type)


def _size(group: BatchSummary) -> str:
    return f"{group.members:,} members"


def _launches(group: BatchSummary) -> str:
    """The number of launches of a group, and why it is not one."""
    count = len(group.launches)
    if count == 1:
        return ""
    levels, reasons = count - group.limited_launches, []
    if levels > 1:
        reasons.append(f"{levels} dependency levels")
    if group.limited_launches:
        limit = batch_limit()
        largest = max(map(len, group.launches))
        reasons.append(
            f"batch_limit is {limit}"
            if limit == largest
            else f"{largest:,} members fill the memory limit"
        )
    return f"; {count} launches: {' and '.join(reasons)}"


def _unbatched_line(graph: Graph, groups: Sequence[BatchSummary]) -> Iterator[str]:
    """The operations that are not batched, except views and parts of results."""
    batched = {at for group in groups for launch in group.launches for at in launch}
    too_few = {at for group in groups for at in group.unbatched}
    unbatched = [
        at
        for at, node in enumerate(graph.nodes)
        if at not in batched and node.pending and node.op is not None and not node.op.semantics.view
    ]
    if not unbatched:
        return
    names = Counter(graph.nodes[at].name for at in unbatched)
    most_frequent = ", ".join(f"{times} {name}" for name, times in names.most_common(8))
    remainder = f", and {count_text(len(names) - 8, 'more operation')}" if len(names) > 8 else ""
    ready_count = sum(at in too_few for at in unbatched)
    reason = (
        f"; {ready_count:,} of them have too few ready members of their signature"
        if ready_count
        else ""
    )
    yield f"  not batched: {most_frequent}{remainder}{reason}"


def _why_unbatched(snapshot: Snapshot) -> str:
    """Why a graph is not batched."""
    graph = snapshot.graph
    devices = {node.type.device for node in graph.nodes if not node.is_scalar}
    weight = sum(
        node.op.lowering.cost if node.op.semantics.body else 1
        for node in graph.nodes
        if node.op is not None
    )
    if batch_limit() == 1:
        option = "batch_limit is 1" if get("batch") else "batch is off"
        return f"the option {option}"
    if len(devices) > 1:
        return f"its arrays are on several devices: {', '.join(sorted(devices))}"
    if weight <= DEFAULT.work.max_planned_nodes:
        return f"it has no more than {DEFAULT.work.max_planned_nodes} operations"
    if changed_options := [name for name in changed_compute_options() if name != "verify"]:
        return f"the option {changed_options[0]} is {get(changed_options[0])}"
    return _limit_reached(graph)


def _limit_reached(graph: Graph) -> str:
    """The limit that prevents batches in a large graph."""
    calls = any(node.op is not None and node.op.semantics.body is not None for node in graph.nodes)
    levels = _levels(graph)
    if not calls and len(graph) < BATCHES.min_mean_group_size * levels:
        nodes = f"{len(graph):,} nodes on {levels:,} dependency levels"
        return f"it is narrow: {nodes}, fewer than {BATCHES.min_mean_group_size} per level"
    operands = [inputs for inputs in graph.inputs if inputs]
    if all(any(_is_large(graph, at) for at in inputs) for inputs in operands):
        limit = DEFAULT.batches.stacked_elements
        return f"operands have more than {limit:,} elements, the limit for stacking"
    return f"fewer than {BATCHES.min_mean_group_size} ready nodes share a signature"


def _levels(graph: Graph) -> int:
    """The length of the longest chain of pending nodes."""

    def depth(node: Node, depths: list[int]) -> int:
        return max(depths, default=0) + (node.pending and not node.is_scalar)

    return max(interpret(graph, {}, depth))


def _is_large(graph: Graph, position: int) -> bool:
    node = graph.nodes[position]
    is_large = not node.is_scalar and node.type.size > DEFAULT.batches.stacked_elements
    return is_large and not _is_common(graph, position)


def applies(snapshot: Snapshot) -> bool:
    """Whether the stage applies: a graph is large, or has several calls."""
    if not snapshot.has_schedule or not snapshot.pending_operations:
        return False
    calls = sum(
        node.op is not None and node.op.semantics.body is not None for node in snapshot.graph.nodes
    )
    return len(snapshot.graph) > DEFAULT.work.max_planned_nodes or calls > 1
