"""Live references: the references to an old value because of which an assignment copies it.

Takes the snapshot of arrays, hands on a sentence for each such assignment. It names Arrays and
ndarrays by their variables, pending expressions by operation, dtype and shape, and counts the
rest. A schedule does not depend on any of this.

>>> import tenfold as tn
>>> x = tn.arange(4.0).wait()
>>> y = x * 2
>>> x[1:] = 0
>>> print(*(line for line in x.explain("scheduled").splitlines() if "copy" in line))
     stored, set_at: a copy: the old value is referenced by multiply -> float64[4] ('y', pending); \
compute 'y' before assigning
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Value
from tenfold.core.graph import Graph, type_text
from tenfold.inspect.frame_variables import FrameVariable, variables
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text
from tenfold.schedule.in_place_updates import REFERENCED, copy_reason, update_positions
from tenfold.schedule.schedule import Step, is_replayable
from tenfold.storage import dense

MOST_HOLDERS = 8
"""Holders that are named."""
MOST_NAMES = 3
"""Names of one object that are told."""
UNNAMED = "without a variable here"
FOREIGN = "the object it was imported from, whose memory it shares"
WINDOW = "the window whose memory it shares"


class NamedObject(NamedTuple):
    """An object that variables name: the names with their calls, the names alone, and an Array's
    node or the Value that something else shows.
    """

    text: str
    names: tuple[str, ...]
    view: bool
    node: Node | None
    value: Value | None


@dataclass
class HolderReport:
    """Who holds one old value, in words, and what is to be done about it."""

    holders: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    compute: list[str] = field(default_factory=list)

    def add_droppable(self, holder: str, named: NamedObject) -> None:
        """Add a holder that is one no more once its variables are gone."""
        self.holders.append(holder)
        self.drop += named.names

    def __str__(self) -> str:
        shown = self.holders[:MOST_HOLDERS]
        if len(self.holders) > len(shown):
            shown.append(f"{len(self.holders) - len(shown)} more")
        *others, last = shown
        held = f"{', by '.join(others)} and by {last}" if others else last
        return f"the old value is referenced by {held}{self._remedy()}"

    def _remedy(self) -> str:
        verbs = {"drop": self.drop, "compute": self.compute}
        todo = [f"{verb} {_join_names(what)}" for verb, what in verbs.items() if what]
        return f"; {' and '.join(todo)} before assigning" if todo else ""


def _join_names(names: Sequence[str]) -> str:
    """Some names, each once."""
    names = [*dict.fromkeys(names)]
    return ", ".join([*names[:MOST_HOLDERS], "..."] if len(names) > MOST_HOLDERS else names)


class ReplacedValues(NamedTuple):
    """The old values that are copied, by the positions of the assignments in what the rules leave;
    and the operations, if there are any, because of which nothing is written over.
    """

    nodes: dict[int, Node]
    impure_ops: str


def replaced_values(look: Snapshot) -> ReplacedValues | None:
    """Return the old values that are copied because they are held, if there are any."""
    if not look.has_schedule or not look.pending_operations or look.chunks > 1:
        return None
    graph, once = look.optimised, ""
    every = update_positions(graph)
    if every and not is_replayable(graph):
        graph, once = replace(graph, dead_after_read=()), _runs_once(graph)
    held = {
        at: graph.nodes[graph.inputs[at][0]] for at in every if copy_reason(graph, at) == REFERENCED
    }
    return ReplacedValues(held, once) if held else None


def reference_texts(arrays: Sequence[Array], old: ReplacedValues) -> dict[int, str]:
    """Return for each assignment who holds its old value. No Snapshot at the arrays may be left: it
    would be counted. The caller has one handle of each old value.
    """
    if old.impure_ops:
        why = f"no update is in place beside {old.impure_ops}, which must not run twice"
        return dict.fromkeys(old.nodes, why)
    graph = pipeline.graph_of(arrays)
    places = {node: position for position, node in enumerate(graph.nodes)}
    counts = {node: _native.references_of(node) for node in old.nodes.values()}
    known = _LiveNames(variables(Array, np.ndarray, memoryview))
    sentences = {}
    for node, (references, of_value, of_memory) in counts.items():
        if node not in places:
            continue  # a rule has made it
        held = references - graph.uses[places[node]] - 2  # ours, and the graph's
        found = HolderReport()
        _add_readers(found, known, node, places, held)
        _add_aliases(found, known, node, graph, of_value + of_memory)
        if found.holders:
            sentences[node] = str(found)
    return {at: sentences[node] for at, node in old.nodes.items() if node in sentences}


def step_reasons(look: Snapshot) -> Iterator[tuple[str, ...]]:
    """Return the reasons of each step of a plan, with names where the plan has none."""
    begun: set[int] = set()
    for step in look.plan.steps:
        own = [made.item for made in step.results if made.item not in begun]
        begun.update(own)
        positions = [look.plan.items[item].position for item in own]
        named = iter([look.holders[at] for at in positions if at in look.holders])
        yield tuple(_named_reasons(step, named))


def _named_reasons(step: Step, named: Iterator[str]) -> Iterator[str]:
    for why in step.reasons:
        yield why.replace(REFERENCED, next(named, REFERENCED)) if why.endswith(REFERENCED) else why


def _runs_once(graph: Graph) -> str:
    """The operations because of which nothing is written over."""
    nodes = [node for node in graph.nodes if node.pending and node.op is not None]
    names = [node.name for node in nodes if node.op.opaque or not node.op.pure]
    return ", ".join(dict.fromkeys(names))


class _LiveNames:
    """The Arrays, and what else shows their memory, that variables name; each object once."""

    def __init__(self, variables: Sequence[FrameVariable]) -> None:
        by_object: dict[int, list[FrameVariable]] = {}
        for each in variables:
            by_object.setdefault(id(each.obj), []).append(each)
        found = [_named_object(each) for each in by_object.values()]
        self.arrays = [(each, each.node) for each in found if each.node is not None]
        self.exported = [(each, each.value) for each in found if each.value is not None]
        self.pending = [(array, node) for array, node in self.arrays if node.pending]
        self.pending_graph = Graph.of([node for _, node in self.pending])

    def dependents_of(self, nodes: Sequence[Node]) -> dict[Node, list[tuple[NamedObject, Node]]]:
        """For each of some nodes the Arrays that are not computed and need it."""
        needed: dict[Node, list[tuple[NamedObject, Node]]] = {node: [] for node in nodes}
        graph = self.pending_graph
        bits = {node: 1 << number for number, node in enumerate(nodes)}
        below: list[int] = []
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
            reached = bits.get(node, 0)
            for i in inputs:
                reached |= below[i]
            below.append(reached)
        for source, output in zip(self.pending, graph.outputs, strict=True):
            for node, bit in bits.items():
                if below[output] & bit:
                    needed[node].append(source)
        return needed


def _named_object(variables: Sequence[FrameVariable]) -> NamedObject:
    """One object, by the variables of one call that name it."""
    first, held = variables[0], variables[0].obj
    same = [each for each in variables if each.location == first.location][:MOST_NAMES]
    text, names = " = ".join(map(str, same)), tuple(repr(each.name) for each in same)
    if isinstance(held, Array):
        return NamedObject(text, names, held.base is not None, _native.kept_node(held), None)
    return NamedObject(text, names, False, None, _exported_value(held))


def _exported_value(held: object) -> Value | None:
    """The Value whose memory an ndarray that was exported shows."""
    while isinstance(held, (np.ndarray, memoryview)):
        held = held.base if isinstance(held, np.ndarray) else held.obj
    keeper = (
        getattr(held, "memory_owner", None) if type(held).__module__ == dense.__name__ else None
    )
    return keeper if isinstance(keeper, Value) else None


def _add_readers(
    found: HolderReport, known: _LiveNames, node: Node, graph: Collection[Node], held: int
) -> None:
    """Name the Arrays that have a node, and the expressions outside of the graph that read it."""
    for array, kept in known.arrays:
        if kept == node:
            found.add_droppable(_array_text(array), array)
            held -= 1
    readers = [reader for reader in _native.readers_of(node) if reader not in graph]
    held -= sum(each == node for reader in readers for each in reader.inputs)
    for reader, needing in known.dependents_of(readers).items():
        views = [array for array, kept in needing if kept == reader and array.view]
        needing = [(array, kept) for array, kept in needing if array not in views]
        for view in views:
            found.add_droppable(_array_text(view), view)
        if needing or not views:
            found.holders.append(_expression_text(reader, needing))
            found.compute += [name for array, _ in needing for name in array.names] or ["it"]
    if held > 0:
        found.holders.append(f"{count_text(held, 'array')} {UNNAMED}")


def _array_text(array: NamedObject) -> str:
    return f"the view {array.text} of it" if array.view else f"the array {array.text}"


def _expression_text(node: Node, needing: Sequence[tuple[NamedObject, Node]]) -> str:
    """An expression that is not computed: what it makes, who has it or needs it, and its line."""
    results = ", ".join(type_text(type_) for type_ in node.types)
    told = [array.text for array, kept in needing if kept == node] + ["pending"]
    if len(told) == 1 and needing:
        told.append(f"needed for {', '.join(array.text for array, _ in needing[:MOST_NAMES])}")
    if node.origin is not None:
        told.append(f"written at {node.origin[0]}:{node.origin[1]}")
    return f"{node.name} -> {results} ({', '.join(told)})"


def _add_aliases(
    found: HolderReport, known: _LiveNames, node: Node, graph: Graph, count: int
) -> None:
    """Name what else shows the value of a node, or its memory; `count` says how many there are."""
    value = node.value()
    if value is None:
        return
    if value.owner is not None:
        found.holders.append(WINDOW if isinstance(value.owner, dense.ExternalMemory) else FOREIGN)
        return
    mine, holds = _native.identity_of(value), set[Hashable]()
    for array, kept in known.arrays:
        if kept != node and (hold := _reference_key(mine, kept.value(), kept)) is not None:
            holds.add(hold)
            found.add_droppable(_array_text(array), array)
    for other, shown in known.exported:
        if (hold := _reference_key(mine, shown, id(shown))) is not None:
            holds.add(hold)
            found.add_droppable(f"the ndarray {other.text}", other)
    read = {each: _reference_key(mine, each.value(), each) for each in graph.nodes if each != node}
    if here := {*read.values()} - holds - {None}:
        found.holders.append(f"{count_text(len(here), 'view')} of it that the assignment reads")
    holds |= here
    elsewhere = {
        each: _reference_key(mine, each.value(), each) for each in known.pending_graph.nodes
    }
    behind = {each: hold for each, hold in elsewhere.items() if hold not in {None, *holds}}
    behind.pop(node, None)
    for needing in known.dependents_of([*behind]).values():
        for array, kept in needing:
            found.holders.append(_expression_text(kept, [(array, kept)]))
            found.compute += array.names
    if (left := count - len(holds.union(behind.values()))) > 0:
        found.holders.append(f"{count_text(left, 'object')} {UNNAMED} that shares its memory")


def _reference_key(mine: tuple[int, int], value: Value | None, holder: Hashable) -> Hashable:
    """What counts once among those who see a Value, or its memory through another Value."""
    if value is None:
        return None
    own, memory = _native.identity_of(value)
    if own == mine[0]:
        return ("value", holder)
    return ("memory", own) if memory == mine[1] else None
