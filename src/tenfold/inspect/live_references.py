"""Live references: names the references that make an assignment copy the old value.

Takes the snapshot of arrays, hands on a sentence for each such assignment. It names pending
expressions by operation, dtype, shape and line, and counts arrays and other objects. Schedules do
not depend on this module.

>>> import tenfold as tn
>>> x = tn.arange(4.0).wait()
>>> y = x * 2
>>> x[1:] = 0
>>> print(*(line for line in x.explain("scheduled").splitlines() if "copy" in line))
     stored, set_at: a copy: the old value is referenced by multiply -> float64[4] (pending); \
compute it before assigning
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Value
from tenfold.core.graph import Graph, runs_once, type_text
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text
from tenfold.schedule.in_place_updates import REFERENCED
from tenfold.schedule.schedule import is_repeatable
from tenfold.schedule.schedule_ir import Step
from tenfold.storage import dense

MAX_REFERENCES = 8
"""The most references that are listed."""
FOREIGN = "the object it was imported from, whose memory it shares"
WINDOW = "the window whose memory it shares"


class LiveReference(NamedTuple):
    """What refers to an old value, as text, how many they are, and the verb that ends it."""

    text: str
    number: int = 1
    remedy: str = ""


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
    sentences = {}
    for node, (references, of_value, of_memory) in counts.items():
        if node not in positions:
            continue  # a rewrite rule created it
        outside = references - graph.uses[positions[node]] - 2  # ours, and the graph's
        readers = [reader for reader in _native.readers_of(node) if reader not in positions]
        found = [*_readers(node, readers, outside), *_aliases(node, graph, of_value + of_memory)]
        if found:
            sentences[node] = _sentence(found)
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


def _readers(node: Node, readers: Sequence[Node], outside: int) -> Iterator[LiveReference]:
    """The Arrays of a node, and the expressions outside of the graph that read it; `outside` is the
    number of references by either.
    """
    arrays = outside - sum(operand == node for reader in readers for operand in reader.inputs)
    if arrays > 0:
        yield LiveReference(count_text(arrays, "other array"), arrays, "drop")
    for reader in readers:
        results = ", ".join(type_text(type_) for type_ in reader.types)
        line = f", written at {reader.origin[0]}:{reader.origin[1]}" if reader.origin else ""
        yield LiveReference(f"{reader.name} -> {results} (pending{line})", remedy="compute")


def _aliases(node: Node, graph: Graph, count: int) -> Iterator[LiveReference]:
    """Other references to the value of a node, or to its memory; `count` of them exist."""
    value = node.value()
    if value is None:
        return
    if value.owner is not None:
        yield LiveReference(WINDOW if isinstance(value.owner, dense.ExternalMemory) else FOREIGN)
        return
    identity = _native.identity_of(value)
    keys = {_reference_key(identity, other) for other in graph.nodes if other != node} - {None}
    if keys:
        yield LiveReference(f"{count_text(len(keys), 'view')} of it that the assignment reads")
    if (others := count - len(keys)) > 0:
        text = f"{count_text(others, 'object')} that share{'s' * (others == 1)} its memory"
        yield LiveReference(text, others, "drop")


def _reference_key(identity: tuple[int, int], node: Node) -> Hashable:
    """The key by which references to a Value, or to its memory, are counted once."""
    value: Value | None = node.value()
    if value is None:
        return None
    value_identity, memory_identity = _native.identity_of(value)
    if value_identity == identity[0]:
        return ("value", node)
    return ("memory", value_identity) if memory_identity == identity[1] else None


def _sentence(found: Sequence[LiveReference]) -> str:
    """The references, and what ends them."""
    texts = [reference.text for reference in found[:MAX_REFERENCES]]
    if len(found) > len(texts):
        texts.append(f"{len(found) - len(texts)} more")
    *leading, last = texts
    listed = f"{', by '.join(leading)} and by {last}" if leading else last
    verbs = dict.fromkeys(reference.remedy for reference in found if reference.remedy)
    pronoun = "it" if sum(reference.number for reference in found) == 1 else "them"
    remedy = f"; {' or '.join(verbs)} {pronoun} before assigning" if verbs else ""
    return f"the old value is referenced by {listed}{remedy}"
