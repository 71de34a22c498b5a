"""Graph report: the nodes as written, the rewrites applied to them, and the graph in DOT.

Takes a Snapshot, hands on the text of the stages "expression" and "optimised", and of the graph
that a device without plans runs.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> y = -(-tn.asarray([1.0, 2.0])) + 1
>>> print(optimised_text(Snapshot(pipeline.graph_of([y]))))
optimised: 3 nodes, 1 rewrite: negative-twice 1
  negative-twice at %2: negative(negative(%0)) => %0
  %0 = leaf float64[2]
  %1 = scalar 1
  %2 = add(%0, %1) float64[2]
"""

from __future__ import annotations

from tenfold._native import Node
from tenfold.core.gradient_cuts import cut_lines
from tenfold.core.graph import Graph, type_text
from tenfold.core.op import Kind
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, ends, in_bytes, shortened, with_gap


def expression_text(snapshot: Snapshot) -> str:
    """Return the nodes as they were written."""
    graph, kind = snapshot.graph, Kind(0)
    for output in graph.outputs:
        kind |= Kind(graph.nodes[output].kind)
    operations = count_text(snapshot.pending_operations, "operation")
    head = (
        f"expression: {count_text(len(graph), 'node')}, {operations}, "
        f"kind {kind.name}, device {snapshot.device}"
    )
    lines = [f"  {graph.line(i)}" for i in ends(range(len(graph)))]
    cuts = cut_lines(graph.nodes[output] for output in graph.outputs)
    return "\n".join([head, *with_gap(lines, len(graph), "node"), *cuts])


def optimised_text(snapshot: Snapshot) -> str:
    """Return which rules fired, how often and where, and the graph that they leave."""
    if snapshot.unrewritten_because:
        return f"optimised: not at all, {snapshot.unrewritten_because}"
    rewritten, report = snapshot.rewritten
    if not report.firings:
        return "\n".join(["optimised: no rule fires", *report.lines()])
    fired = ", ".join(f"{name} {times}" for name, times in report.counts.items())
    rewrites = count_text(len(report.firings), "rewrite")
    head = f"optimised: {count_text(len(rewritten), 'node')}, {rewrites}: {fired}"
    lines = [f"  {rewritten.line(i)}" for i in ends(range(len(rewritten)))]
    return "\n".join([head, *shortened(report.lines()), *with_gap(lines, len(rewritten), "node")])


def one_by_one_text(snapshot: Snapshot) -> str:
    """Return the steps of a device that runs one operation at a time, with the bytes of each."""
    graph = snapshot.optimised
    steps = operations_of(graph)
    if not steps:
        return f"executed: nothing is left to run on {snapshot.device}, all values are computed"
    head = f"executed: {count_text(len(steps), 'step')} on {snapshot.device}, one operation each"
    lines = [_step(graph, i) for i in ends(steps)]
    return "\n".join([head, *with_gap(lines, len(steps), "step")])


def operations_of(graph: Graph) -> list[int]:
    """Return the positions of the pending operations."""
    return [i for i, node in enumerate(graph.nodes) if node.pending and node.op is not None]


def _step(graph: Graph, position: int) -> str:
    node = graph.nodes[position]
    results = ", ".join(type_text(type_) for type_ in node.types)
    work = graph.multiply_adds(position)
    work_text = f", {count_text(work, 'multiply-add')}" if work else ""
    return f"  {node.name} -> {results}: {in_bytes(unfused_traffic(graph, position))}{work_text}"


def unfused_traffic(graph: Graph, position: int) -> int:
    """Return the bytes that an unfused operation must read and write."""
    node = graph.nodes[position]
    written_bytes = _bytes(node)
    is_view = node.op.semantics.kind is Kind.VIEW  # reads as much as it writes
    return written_bytes + (
        written_bytes if is_view else sum(_bytes(graph.nodes[i]) for i in graph.inputs[position])
    )


def _bytes(node: Node) -> int:
    if node.is_scalar:
        return 0
    return sum(type_.size * type_.dtype.itemsize for type_ in node.types)


def dot(graph: Graph) -> str:
    """Return the graph in DOT (Graphviz): a box for each node, an edge for each use."""
    lines = ["digraph tenfold {", "  rankdir=BT;", "  node [shape=box, fontname=monospace];"]
    for position, node in enumerate(graph.nodes):
        label = graph.line(position).replace("\\", "\\\\").replace('"', '\\"')
        style = "" if node.pending else ", style=filled"
        lines.append(f'  n{position} [label="{label}"{style}];')
        lines.extend(f"  n{i} -> n{position};" for i in graph.inputs[position])
    return "\n".join([*lines, "}"])
