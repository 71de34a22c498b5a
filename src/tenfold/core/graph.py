"""Graph: an immutable DAG of nodes in topological order, with its outputs; passes take and return
it.

Takes nodes, hands on the nodes below them in the canonical order: inputs before users, the same for
equal structures. Frozen; printing one gives its text form.

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
from tenfold.core.op import Op


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can be computed, as four columns of equal length."""

    nodes: Sequence[Node]
    inputs: Sequence[tuple[int, ...]]
    """For each node the positions of its inputs; none for a leaf and for a computed node."""
    uses: Sequence[int]
    """For each node how often the others read it."""
    held: Sequence[bool]
    """For each node whether a live reference outside the graph needs its value (live-out)."""
    outputs: tuple[int, ...]
    dying: Sequence[bool] = ()
    """For each node whether it is a value without other live references: it may be overwritten."""
    structure: _native.Structure | None = field(default=None, compare=False, repr=False)
    """The key under which a plan of this graph is replayed, where it was asked for."""

    @classmethod
    def of(cls, outputs: Sequence[Node], options: Sequence[int] = ()) -> Graph:
        """Walk from `outputs` down to values; linear time, no recursion.

        `options` are numbers that stand for the options in force: with them, `structure` is there.
        """
        nodes, inputs, uses, held, places, dying, structure = _native.walk(outputs, options)
        left = [at for at, is_held in enumerate(held) if is_held]
        while left:
            at = left.pop()
            op = nodes[at].op
            if op is None or not op.promise or at in places or not inputs[at]:
                continue
            (base,) = inputs[at]
            held[at] = False
            if dying:
                dying[base] = False
            if nodes[base].pending and not held[base]:
                held[base] = True
                left.append(base)
        return cls(nodes, inputs, uses, held, places, dying, structure)

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        return "\n".join(self.line(i) for i in range(len(self)))

    def multiply_adds(self, position: int) -> int:
        """Return those of a product, factorisation or solve that is pending; 0 for all else."""
        node = self.nodes[position]
        op = node.op if node.pending else None
        if not isinstance(op, Op) or op.multiply_adds is None:
            return 0
        return op.multiply_adds(
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
        inside = ", ".join([*operands, *(repr(param) for param in node.params)])
        return f"{name} = {node.name}({inside}) {type_text(node.type)}"


def type_text(type_: Type) -> str:
    """Return a Type as text: dtype and lengths, as in `float32[2, 3]`."""
    return f"{type_.dtype}[{', '.join(str(length) for length in type_.shape)}]"
