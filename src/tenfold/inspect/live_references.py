"""Live references: names the references that make an assignment copy the old value.

Takes the snapshot of arrays, hands on a sentence for each such assignment. It names Arrays and
ndarrays by their variables, pending expressions by operation, dtype and shape, and counts all
others. Schedules do not depend on this module.

>>> import tenfold as tn
>>> x = tn.arange(4.0).wait()
>>> y = x * 2
>>> x[1:] = 0
>>> print(*(line for line in x.explain("scheduled").splitlines() if "copy" in line))
     stored, set_at: a copy: the old value is referenced by multiply -> float64[4] ('y', pending); \
compute 'y' before assigning
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Value
from tenfold.core.graph import Graph, runs_once, type_text
from tenfold.core.interpreter import interpret
from tenfold.inspect.frame_variables import FrameVariable, find_variables
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text
from tenfold.schedule.in_place_updates import REFERENCED
from tenfold.schedule.schedule import is_repeatable
from tenfold.schedule.schedule_ir import Step
from tenfold.storage import dense

MAX_HOLDERS = 8
"""The most references that are named."""
NAMES_SHOWN = 3
"""The most names of one object that are printed."""
UNNAMED = "without a variable here"
FOREIGN = "the object it was imported from, whose memory it shares"
WINDOW = "the window whose memory it shares"


class NamedObject(NamedTuple):
    """An object with variables: the names with their frames, the names alone, and an Array's node
    or the Value that another object exports.
    """

    text: str
    names: tuple[str, ...]
    view: bool
    node: Node | None
    value: Value | None


@dataclass
class HolderReport:
    """The references to one old value, as text, and the remedy."""

    holders: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    compute: list[str] = field(default_factory=list)

    def add_droppable(self, holder: str, named_object: NamedObject) -> None:
        """Add a reference that ends with its variables."""
        self.holders.append(holder)
        self.drop += named_object.names

    def __str__(self) -> str:
        listed = self.holders[:MAX_HOLDERS]
        if len(self.holders) > len(listed):
            listed.append(f"{len(self.holders) - len(listed)} more")
        *leading, last = listed
        holders = f"{', by '.join(leading)} and by {last}" if leading else last
        return f"the old value is referenced by {holders}{self._remedy()}"

    def _remedy(self) -> str:
        verbs = {"drop": self.drop, "compute": self.compute}
        todo = [f"{verb} {_join_names(names)}" for verb, names in verbs.items() if names]
        return f"; {' and '.join(todo)} before assigning" if todo else ""


def _join_names(names: Sequence[str]) -> str:
    """The names without duplicates, joined."""
    names = [*dict.fromkeys(names)]
    return ", ".join([*names[:MAX_HOLDERS], "..."] if len(names) > MAX_HOLDERS else names)


class ReplacedValues(NamedTuple):
    """The old values that are copied, by the positions of the assignments in the optimised graph;
    and the impure operations that forbid every in-place update.
    """

    nodes: dict[int, Node]
    impure_ops: str


def replaced_values(snapshot: Snapshot) -> ReplacedValues | None:
    """Return the old values that are copied because they are live; None if there are none."""
    if not snapshot.has_schedule or not snapshot.pending_operations or snapshot.chunks > 1:
        return None
    graph = snapshot.optimised
    old_nodes = {
        at: graph.nodes[graph.inputs[at][0]]
        for at, reason in snapshot.plan.updates.copy_reasons.items()
        if reason == REFERENCED
    }
    if not old_nodes:
        return None
    return ReplacedValues(old_nodes, "" if is_repeatable(graph) else _runs_once(graph))


def reference_texts(arrays: Sequence[Array], old_values: ReplacedValues) -> dict[int, str]:
    """Return for each assignment the references to its old value. The caller must hold no Snapshot
    of the arrays, which would be counted, and one handle of each old value.
    """
    if old_values.impure_ops:
        reason = f"no update is in place beside {old_values.impure_ops}, which must not run twice"
        return dict.fromkeys(old_values.nodes, reason)
    graph = pipeline.graph_of(arrays)
    positions = {node: position for position, node in enumerate(graph.nodes)}
    counts = {node: _native.references_of(node) for node in old_values.nodes.values()}
    live_names = _LiveNames(find_variables(Array, np.ndarray, memoryview))
    sentences = {}
    for node, (references, of_value, of_memory) in counts.items():
        if node not in positions:
            continue  # a rewrite rule created it
        unexplained = references - graph.uses[positions[node]] - 2  # ours, and the graph's
        report = HolderReport()
        _add_readers(report, live_names, node, positions, unexplained)
        _add_aliases(report, live_names, node, graph, of_value + of_memory)
        if report.holders:
            sentences[node] = str(report)
    return {at: sentences[node] for at, node in old_values.nodes.items() if node in sentences}


def step_reasons(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    """Return the reasons of each step of a plan, with the names of references."""
    updated_items: set[int] = set()
    for step in snapshot.plan.steps:
        new_items = [result.item for result in step.results if result.item not in updated_items]
        updated_items.update(new_items)
        positions = [snapshot.plan.items[item].position for item in new_items]
        holder_texts = iter([snapshot.holders[at] for at in positions if at in snapshot.holders])
        yield tuple(_named_reasons(step, holder_texts))


def _named_reasons(step: Step, holder_texts: Iterator[str]) -> Iterator[str]:
    for reason in step.reasons:
        yield (
            reason.replace(REFERENCED, next(holder_texts, REFERENCED))
            if reason.endswith(REFERENCED)
            else reason
        )


def _runs_once(graph: Graph) -> str:
    """The impure operations that forbid every in-place update."""
    names = [node.name for node in graph.nodes if runs_once(node)]
    return ", ".join(dict.fromkeys(names))


class _LiveNames:
    """The Arrays and the exports of their memory that have variables; each object once."""

    def __init__(self, variables: Sequence[FrameVariable]) -> None:
        by_object: dict[int, list[FrameVariable]] = {}
        for variable in variables:
            by_object.setdefault(id(variable.obj), []).append(variable)
        objects = [_named_object(variable) for variable in by_object.values()]
        self.arrays = [
            (variable, variable.node) for variable in objects if variable.node is not None
        ]
        self.exported = [
            (variable, variable.value) for variable in objects if variable.value is not None
        ]
        self.pending = [(array, node) for array, node in self.arrays if node.pending]
        self.pending_graph = Graph.of([node for _, node in self.pending])

    def dependents_of(self, nodes: Sequence[Node]) -> dict[Node, list[tuple[NamedObject, Node]]]:
        """For each of the given nodes the pending Arrays that depend on it."""
        dependents: dict[Node, list[tuple[NamedObject, Node]]] = {node: [] for node in nodes}
        bits = {node: 1 << number for number, node in enumerate(nodes)}

        def reachable(node: Node, masks: list[int]) -> int:
            return functools.reduce(operator.or_, masks, bits.get(node, 0))

        masks = interpret(self.pending_graph, {}, reachable)
        for source, mask in zip(self.pending, masks, strict=True):
            for node, bit in bits.items():
                if mask & bit:
                    dependents[node].append(source)
        return dependents


def _named_object(variables: Sequence[FrameVariable]) -> NamedObject:
    """One object, by its variables in one frame."""
    first, obj = variables[0], variables[0].obj
    same_frame = [variable for variable in variables if variable.location == first.location][
        :NAMES_SHOWN
    ]
    text, names = (
        " = ".join(map(str, same_frame)),
        tuple(repr(variable.name) for variable in same_frame),
    )
    if isinstance(obj, Array):
        return NamedObject(text, names, obj.base is not None, _native.stored_node(obj), None)
    return NamedObject(text, names, False, None, _exported_value(obj))


def _exported_value(obj: object) -> Value | None:
    """The Value whose memory an exported ndarray shares."""
    while isinstance(obj, (np.ndarray, memoryview)):
        obj = obj.base if isinstance(obj, np.ndarray) else obj.obj
    owner = obj.memory_owner if isinstance(obj, _native.ReadOnlyMemory) else None
    return owner if isinstance(owner, Value) else None


def _add_readers(
    report: HolderReport,
    live_names: _LiveNames,
    node: Node,
    graph: Collection[Node],
    unexplained: int,
) -> None:
    """Add the Arrays of a node, and the expressions outside of the graph that read it."""
    for array, array_node in live_names.arrays:
        if array_node == node:
            report.add_droppable(_array_text(array), array)
            unexplained -= 1
    readers = [reader for reader in _native.readers_of(node) if reader not in graph]
    unexplained -= sum(operand == node for reader in readers for operand in reader.inputs)
    for reader, dependents in live_names.dependents_of(readers).items():
        views = [array for array, array_node in dependents if array_node == reader and array.view]
        dependents = [(array, array_node) for array, array_node in dependents if array not in views]
        for view in views:
            report.add_droppable(_array_text(view), view)
        if dependents or not views:
            report.holders.append(_expression_text(reader, dependents))
            report.compute += [name for array, _ in dependents for name in array.names] or ["it"]
    if unexplained > 0:
        report.holders.append(f"{count_text(unexplained, 'array')} {UNNAMED}")


def _array_text(array: NamedObject) -> str:
    return f"the view {array.text} of it" if array.view else f"the array {array.text}"


def _expression_text(node: Node, dependents: Sequence[tuple[NamedObject, Node]]) -> str:
    """A pending expression: results, the Arrays of it or that need it, and its line."""
    results = ", ".join(type_text(type_) for type_ in node.types)
    details = [array.text for array, array_node in dependents if array_node == node] + ["pending"]
    if len(details) == 1 and dependents:
        details.append(
            f"needed for {', '.join(array.text for array, _ in dependents[:NAMES_SHOWN])}"
        )
    if node.origin is not None:
        details.append(f"written at {node.origin[0]}:{node.origin[1]}")
    return f"{node.name} -> {results} ({', '.join(details)})"


def _add_aliases(
    report: HolderReport, live_names: _LiveNames, node: Node, graph: Graph, count: int
) -> None:
    """Add other references to the value of a node, or to its memory; `count` of them exist."""
    value = node.value()
    if value is None:
        return
    if value.owner is not None:
        report.holders.append(WINDOW if isinstance(value.owner, dense.ExternalMemory) else FOREIGN)
        return
    identity, counted_keys = _native.identity_of(value), set[Hashable]()
    for array, array_node in live_names.arrays:
        if (
            array_node != node
            and (key := _reference_key(identity, array_node.value(), array_node)) is not None
        ):
            counted_keys.add(key)
            report.add_droppable(_array_text(array), array)
    for exported_object, exported_value in live_names.exported:
        if (key := _reference_key(identity, exported_value, id(exported_value))) is not None:
            counted_keys.add(key)
            report.add_droppable(f"the ndarray {exported_object.text}", exported_object)
    keys_in_graph = {
        reader: _reference_key(identity, reader.value(), reader)
        for reader in graph.nodes
        if reader != node
    }
    if read_views := {*keys_in_graph.values()} - counted_keys - {None}:
        report.holders.append(
            f"{count_text(len(read_views), 'view')} of it that the assignment reads"
        )
    counted_keys |= read_views
    keys_in_pending = {
        reader: _reference_key(identity, reader.value(), reader)
        for reader in live_names.pending_graph.nodes
    }
    pending_keys = {
        reader: key for reader, key in keys_in_pending.items() if key not in {None, *counted_keys}
    }
    pending_keys.pop(node, None)
    for dependents in live_names.dependents_of([*pending_keys]).values():
        for array, array_node in dependents:
            report.holders.append(_expression_text(array_node, [(array, array_node)]))
            report.compute += array.names
    if (unexplained := count - len(counted_keys.union(pending_keys.values()))) > 0:
        report.holders.append(
            f"{count_text(unexplained, 'object')} {UNNAMED} that shares its memory"
        )


def _reference_key(identity: tuple[int, int], value: Value | None, holder: Hashable) -> Hashable:
    """The key by which references to a Value, or to its memory, are counted once."""
    if value is None:
        return None
    value_identity, memory_identity = _native.identity_of(value)
    if value_identity == identity[0]:
        return ("value", holder)
    return ("memory", value_identity) if memory_identity == identity[1] else None
