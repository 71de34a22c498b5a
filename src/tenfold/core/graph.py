"""Graph: an immutable DAG of nodes in topological order, with its outputs; passes take and return
it.

Takes nodes, hands on the nodes that they depend on in a canonical order: inputs before users, the
same for equal structures. Frozen; printing one gives its text form.

>>> import tenfold as tn
>>> print(Graph.of([tn._native.node_of(tn.asarray([1.0, 2.0]) + 1)]))
%0 = leaf float64[2]
%1 = scalar 1
%2 = add(%0, %1) float64[2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.op import Kind, Op


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in topological order, as parallel sequences of equal length."""

    nodes: Sequence[Node]
    inputs: Sequence[tuple[int, ...]]
    """For each node the positions of its inputs; none for a leaf and for a computed node."""
    uses: Sequence[int]
    """For each node how often the others read it."""
    live_out: Sequence[bool]
    """For each node whether a live reference outside the graph needs its value (live-out)."""
    outputs: tuple[int, ...]
    dead_after_read: Sequence[bool] = ()
    """For each node whether it is a value without other live references: it may be overwritten."""
    structure: _native.Structure | None = field(default=None, compare=False, repr=False)
    """The key of the executable that replays this graph, if it was requested."""

    regenerated: tuple[Node, ...] = ()
    """The live nodes made of draws and numbers alone that this evaluation does not store; the next
    one does."""

    @classmethod
    def of(cls, outputs: Sequence[Node], options: Sequence[int] = ()) -> Graph:
        """Walk from `outputs` down to values; linear time, no recursion.

        `options` are numbers for the options in force; with them, `structure` is set.
        """
        nodes, inputs, uses, live_out, output_positions, dead_after_read, structure = (
            _native.linearize(outputs, options)
        )
        worklist = [at for at, is_live_out in enumerate(live_out) if is_live_out]
        while worklist:
            at = worklist.pop()
            op = nodes[at].op
            if op is None or not op.semantics.promise or at in output_positions or not inputs[at]:
                continue
            (base,) = inputs[at]
            live_out[at] = False
            if dead_after_read:
                dead_after_read[base] = False
            if nodes[base].pending and not live_out[base]:
                live_out[base] = True
                worklist.append(base)
        regenerated = _regenerated(nodes, inputs, live_out, output_positions)
        for at in regenerated:
            live_out[at] = False
        return cls(
            nodes,
            inputs,
            uses,
            live_out,
            output_positions,
            dead_after_read,
            structure,
            tuple([nodes[at] for at in regenerated]),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        return "\n".join(self.line(i) for i in range(len(self)))

    def multiply_adds(self, position: int) -> int:
        """Return the multiply-adds of a pending product, factorisation or solve; else 0."""
        node = self.nodes[position]
        op = node.op if node.pending else None
        if not isinstance(op, Op) or op.lowering.multiply_adds is None:
            return 0
        return op.lowering.multiply_adds(
            tuple([self.nodes[i].type for i in self.inputs[position]]), *node.params
        )

    def line(self, position: int) -> str:
        """Return one node as text."""
        node = self.nodes[position]
        name = f"%{position}"
        if node.is_scalar:
            return f"{name} = scalar {node.scalar!r}"
        if not node.pending:
            return f"{name} = leaf {type_text(node.type)}"
        operands = [f"%{i}" for i in self.inputs[position]]
        arguments = ", ".join([*operands, *(repr(param) for param in node.params)])
        return f"{name} = {node.name}({arguments}) {type_text(node.type)}"


def _regenerated(
    nodes: Sequence[Node],
    inputs: Sequence[tuple[int, ...]],
    live_out: Sequence[bool],
    outputs: tuple[int, ...],
) -> list[int]:
    """Return the live-out nodes that draws, numbers and elementwise operations make without memory,
    if no earlier evaluation has passed through them.
    """
    if sum(live_out) == len({*outputs}):
        return []
    made, drawn, found = [False] * len(nodes), [False] * len(nodes), list[int]()
    for at, node in enumerate(nodes):
        op = node.op if node.pending else None
        if node.is_scalar:
            made[at] = True
        if op is None or not all(map(made.__getitem__, inputs[at])):
            continue
        is_draw = op.semantics.creates and op.lowering.element_at is not None
        made[at] = is_draw or (op.semantics.kind is Kind.MAP and bool(inputs[at]))
        drawn[at] = is_draw or any(map(drawn.__getitem__, inputs[at]))
        is_new = made[at] and drawn[at] and live_out[at] and at not in outputs
        if is_new and not node.read_in_part(mark=False):
            found.append(at)
    return found


def type_text(type_: Type) -> str:
    """Return a Type as text: dtype and lengths, as in `float32[2, 3]`."""
    return f"{type_.dtype}[{', '.join(str(length) for length in type_.shape)}]"
