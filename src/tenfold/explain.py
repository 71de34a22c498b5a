"""Explain: every stage of a computation as text or as a DOT graph. It reads, and never changes.

Takes Arrays, hands on text. `analyze=True` computes them and says what each step took.

>>> import tenfold as tn
>>> print(tn.explain(tn.asarray([1.0, 2.0]) + 1))
expression: 3 nodes, 1 operation, kind MAP, device reference
  %0 = leaf float64[2]
  %1 = scalar 1
  %2 = add(%0, %1) float64[2]
executed: 1 step on reference, one operation each
  add -> float64[2]: 32 bytes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold import pipeline
from tenfold._native import Array, Node
from tenfold.devices.timeline import Event, recording
from tenfold.errors import UnsupportedError
from tenfold.ir.graph import Graph, type_text
from tenfold.ir.op import Kind, Op

LONGEST = 1000
"""Lines of one stage that are shown; of a longer one the beginning and the end are."""


def explain(
    *arrays: Array,
    stage: str | None = None,
    analyze: bool = False,
    format: str = "text",  # noqa: A002  # a settled name
) -> str:
    """Return how `arrays` are (to be) computed, stage by stage; nothing is computed by it.

    "expression" lists the nodes as they were written, "executed" the steps the device has to take,
    each with the bytes it reads and writes; of an array that is computed its value is left. `stage`
    names one of them, `format` is "text" or "dot". With `analyze` the arrays are computed, and each
    step's time is shown. Raises UnsupportedError for a stage or a format that does not exist.

    >>> import tenfold as tn
    >>> print(tn.explain(tn.asarray([1.0]) * 2, stage="executed"))
    executed: 1 step on reference, one operation each
      multiply -> float64[1]: 16 bytes
    """
    if not arrays:
        return "nothing to explain"
    _known("format", format, ("text", "dot"))
    if stage is not None:
        _known("stage", stage, tuple(STAGES))
    graph = pipeline.expression(arrays)
    if format == "dot":
        return dot(graph)
    events: list[Event] = []
    texts = [show(graph) for name, show in STAGES.items() if stage in (None, name)]
    if analyze:
        with recording() as events:
            failure = pipeline.evaluate(arrays)
        if failure is not None:
            raise failure
        texts.append(_analyzed(events))
    return "\n".join(texts)


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        listed = ", ".join(repr(known) for known in names)
        raise UnsupportedError("explain", f"there is no {what} {name!r}", remedy=f"use {listed}")


def _ends(positions: Sequence[int]) -> Sequence[int]:
    """The positions whose lines are shown, so that a million lines are never made."""
    if len(positions) <= LONGEST:
        return positions
    return [*positions[: LONGEST // 2], *positions[-(LONGEST // 2) :]]


def _with_gap(lines: list[str], count: int, noun: str) -> list[str]:
    """Say in the middle of the lines shown how many of `count` are not."""
    if len(lines) == count:
        return lines
    half = len(lines) // 2
    return [*lines[:half], f"  ... {count - len(lines)} more {noun}s ...", *lines[half:]]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def expression_text(graph: Graph) -> str:
    """Return the nodes as they were written."""
    operations = sum(node.pending for node in graph.nodes)
    kind = Kind(0)
    for output in graph.outputs:
        kind |= Kind(graph.nodes[output].kind)
    device = graph.nodes[graph.outputs[0]].type.device
    head = (
        f"expression: {_plural(len(graph), 'node')}, {_plural(operations, 'operation')}, "
        f"kind {kind.name}, device {device}"
    )
    lines = [f"  {graph.line(i)}" for i in _ends(range(len(graph)))]
    return "\n".join([head, *_with_gap(lines, len(graph), "node")])


def steps_text(graph: Graph) -> str:
    """Return the steps in which the device computes the graph, with the bytes each must move."""
    steps = [i for i, node in enumerate(graph.nodes) if node.pending and node.op is not None]
    device = graph.nodes[graph.outputs[0]].type.device
    if not steps:
        return f"executed: nothing is left to run on {device}, the values are there"
    head = f"executed: {_plural(len(steps), 'step')} on {device}, one operation each"
    lines = [_step(graph, i) for i in _ends(steps)]
    return "\n".join([head, *_with_gap(lines, len(steps), "step")])


def _step(graph: Graph, position: int) -> str:
    node = graph.nodes[position]
    wrote = _bytes(node)
    moves = node.op.kind is Kind.VIEW  # reads what it writes, be its input as large as it may
    read = wrote if moves else sum(_bytes(graph.nodes[i]) for i in graph.inputs[position])
    results = ", ".join(type_text(type_) for type_ in node.types)
    return f"  {node.name} -> {results}: {wrote + read} bytes{_work(graph, position)}"


def _bytes(node: Node) -> int:
    if node.is_scalar:
        return 0
    return sum(type_.size * type_.dtype.itemsize for type_ in node.types)


def _work(graph: Graph, position: int) -> str:
    node = graph.nodes[position]
    op: Op[...] = node.op
    if op.multiply_adds is None:
        return ""
    types = tuple(graph.nodes[i].type for i in graph.inputs[position])
    count = op.multiply_adds(types, *node.params)
    return f", {count} multiply-adds"


def _analyzed(events: list[Event]) -> str:
    shown = (events[i] for i in _ends(range(len(events))))
    lines = [f"  {event.name}: {(event.end - event.begin) / 1e3:.1f} us" for event in shown]
    total = sum(event.end - event.begin for event in events) / 1e3
    head = f"measured: {total:.1f} us in {_plural(len(events), 'step')}"
    return "\n".join([head, *_with_gap(lines, len(events), "step")])


def dot(graph: Graph) -> str:
    """Return the graph in DOT, Graphviz' language: a box for each node, an edge for each use."""
    lines = ["digraph tenfold {", "  rankdir=BT;", "  node [shape=box, fontname=monospace];"]
    for position, node in enumerate(graph.nodes):
        label = graph.line(position).replace("\\", "\\\\").replace('"', '\\"')
        style = "" if node.pending else ", style=filled"
        lines.append(f'  n{position} [label="{label}"{style}];')
        lines.extend(f"  n{i} -> n{position};" for i in graph.inputs[position])
    return "\n".join([*lines, "}"])


STAGES: dict[str, Callable[[Graph], str]] = {
    "expression": expression_text,
    "executed": steps_text,
}
