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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.op import Op
from tenfold.core.structure import Structure


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

    passed_through: tuple[int, ...] = ()
    """The live nodes that need not be stored, unless an earlier evaluation passed through them."""
    new_nodes: frozenset[int] = frozenset()
    """The nodes that rewrite rules made: no array refers to them."""

    @classmethod
    def of(cls, outputs: Sequence[Node], options: tuple[int, ...] = ()) -> Graph:
        """Walk from `outputs` down to values; linear time, no recursion.

        `options` are numbers for the options in force; with them, `structure` is set.
        """
        nodes, inputs, uses, live_out, output_positions, dead_after_read, structure = (
            _native.linearize(outputs, options)
        )
        passed_through = _passed_through(nodes, inputs, live_out, output_positions, dead_after_read)
        for at in passed_through:
            live_out[at] = False
        for at in _read_again(nodes, inputs, live_out, passed_through):
            live_out[at] = True
        if passed_through and dead_after_read:
            for at in _computed_later(nodes, inputs, live_out, passed_through):
                dead_after_read[at] = False
        return cls(
            nodes,
            inputs,
            uses,
            live_out,
            output_positions,
            dead_after_read,
            structure,
            passed_through,
        )

    def named(self) -> list[int]:
        """Return the pending nodes, other than outputs, to which something outside refers."""
        live = [
            at for at, is_live in enumerate(self.live_out) if is_live and self.nodes[at].pending
        ]
        return sorted({*live, *self.passed_through}.difference(self.outputs))

    def computed_later(self) -> frozenset[int]:
        """Return the nodes from which those that are passed through are computed later: all below
        them, down to values and to live-out nodes.
        """
        below = _computed_later(self.nodes, self.inputs, self.live_out, self.passed_through)
        return frozenset(below)

    def computed_meanwhile(self) -> bool:
        """Whether another thread has computed a node since the walk. What has read the graph in
        between may have met that node both pending and computed.
        """
        structure = self.structure
        if structure is None:
            return False
        for at, node in enumerate(self.nodes):
            if node.pending == structure.is_computed(at) and not node.is_scalar:
                return True
        return False

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
            return f"{name} = leaf {_structured_text(node.type)}"
        operands = [f"%{i}" for i in self.inputs[position]]
        arguments = ", ".join([*operands, *(repr(param) for param in node.params)])
        return f"{name} = {node.name}({arguments}) {_structured_text(node.type)}"


def runs_once(node: Node) -> bool:
    """Whether a pending node must not be computed again: it has a side effect, or runs Python code
    of the user, itself or in the body of a call, a step or a branch.
    """
    op = node.op if node.pending else None
    if op is None:
        return False
    if op.semantics.opaque or not op.semantics.pure:
        return True
    if op.semantics.body is None and op.semantics.on_values is None:
        return False
    callees = [getattr(param, "subgraph", None) for param in node.params]
    bodies = [body for body in (op.semantics.body, *callees) if body is not None]
    return any(runs_once(inner) for body in bodies for inner in body.graph.nodes)


def _passed_through(
    nodes: Sequence[Node],
    inputs: Sequence[tuple[int, ...]],
    live_out: Sequence[bool],
    outputs: tuple[int, ...],
    dead_after_read: Sequence[bool],
) -> tuple[int, ...]:
    """Return the live-out nodes that nothing asks for: those that no evaluation has passed through.

    A node stays live-out if to compute it again would call a function of the user again, or would
    need an old value that this graph updates in place.
    """
    live = [at for at, is_live_out in enumerate(live_out) if is_live_out and nodes[at].pending]
    if not {*live}.difference(outputs):
        return ()
    stored = [False] * len(nodes)
    for at in _overwritten_values(nodes, inputs, dead_after_read):
        stored[at] = True
    found: list[int] = []
    for at, node in enumerate(nodes):
        if not node.pending:
            continue
        stored[at] = runs_once(node) or any(map(stored.__getitem__, inputs[at]))
        is_live = live_out[at] and not stored[at] and at not in outputs
        if is_live and not node.passed_through(mark=False):
            found.append(at)
    return tuple(found)


def _read_again(
    nodes: Sequence[Node],
    inputs: Sequence[tuple[int, ...]],
    live_out: Sequence[bool],
    passed_through: Sequence[int],
) -> list[int]:
    """Return the nodes without names that an earlier evaluation has passed through, and of which
    nodes that stay pending are computed later. Else each step of a loop would add to the graph.
    """
    visited, worklist = set(passed_through), [*passed_through]
    found: list[int] = []
    while worklist:
        for i in inputs[worklist.pop()]:
            if i in visited or not nodes[i].pending or live_out[i]:
                continue
            visited.add(i)
            if nodes[i].passed_through(mark=False):
                found.append(i)
            else:
                worklist.append(i)
    return found


def _overwritten_values(
    nodes: Sequence[Node], inputs: Sequence[tuple[int, ...]], dead_after_read: Sequence[bool]
) -> Iterator[int]:
    """Yield the dead values in which updates of the graph may be in place."""
    if not any(dead_after_read):
        return
    base_of = list(range(len(nodes)))
    for at, node in enumerate(nodes):
        op = node.op if node.pending else None
        if op is not None and op.lowering.updates:
            base_of[at] = base = base_of[inputs[at][0]]
            if dead_after_read[base]:
                yield base


def _computed_later(
    nodes: Sequence[Node],
    inputs: Sequence[tuple[int, ...]],
    live_out: Sequence[bool],
    passed_through: Sequence[int],
) -> set[int]:
    """Return the nodes that stay pending, those of which they are computed later, and the values or
    live-out nodes where that ends.
    """
    visited, worklist = set(passed_through), [*passed_through]
    while worklist:
        for i in inputs[worklist.pop()]:
            if i in visited:
                continue
            visited.add(i)
            if nodes[i].pending and not live_out[i]:
                worklist.append(i)
    return visited


def _structured_text(type_: Type) -> str:
    word = f" {Structure(type_.structure).word}" if type_.structure else ""
    return f"{type_text(type_)}{word}"


def type_text(type_: Type) -> str:
    """Return a Type as text: dtype and lengths, as in `float32[2, 3]`."""
    return f"{type_.dtype}[{', '.join(str(length) for length in type_.shape)}]"
