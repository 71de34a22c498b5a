"""Rewrite graph: the mutable columns of a graph while its nodes are replaced.

Takes a Graph, hands on the Graph that is left. A node is known by its position; new ones are put
behind the last. A node whose inputs are replaced by others of the same Types stays the node it is:
only the column of its inputs changes, so it keeps its origin and publishes its own value. `uses`
counts the readers that are still needed, at every moment.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> graph = Graph.of([tn._native.node_of(tn.asarray([1.0]) * 1)])
>>> work = RewriteGraph(graph, markers(graph))
>>> work.replace(graph.outputs[0], 0)
>>> print(work.finish()[0])
%0 = leaf float64[1]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import Op, Params
from tenfold.core.pattern import Constant, Number
from tenfold.errors import UnsupportedError

Origin = tuple[str, int] | None
ORIGIN: ContextVar[Origin] = ContextVar("tenfold_origin", default=None)
"""The user's line of what a rule replaces, while the replacement is made."""


class OpMarker:
    """What stands for the op of a node that has none, in the column of ops."""

    def __init__(self, name: str) -> None:
        self.name = name


SCALAR, LEAF = OpMarker("scalar"), OpMarker("leaf")
EXACT_INT_BITS = 64
"""Of ints that keys have in full."""
Operator = Op[...] | OpMarker


def operators_of(graph: Graph) -> list[Operator]:
    """Return the op of each pending node; SCALAR for a Python scalar, LEAF for all else."""
    found: list[Operator] = []
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        if inputs or node.pending:
            found.append(node.op or LEAF)  # a part of several results has no op of its own
        else:
            found.append(SCALAR if node.is_scalar else LEAF)
    return found


def _cycle_error() -> UnsupportedError:
    rule = "a replacement reads what it replaces, so it would never end"
    return UnsupportedError("rewrite", rule, remedy="make it of the variables")


class RewriteGraph:
    """The columns; one thread works on them."""

    def __init__(self, graph: Graph, ops: list[Operator]) -> None:
        self.nodes = list(graph.nodes)
        self.inputs = list(graph.inputs)
        self.live_out = list(graph.live_out)
        self.dead_after_read = graph.dead_after_read
        self.written = graph.inputs
        self.ops = ops
        self.outputs = graph.outputs
        self.count = len(self.nodes)
        """The number of nodes there were at the beginning."""
        self.uses = list(graph.uses)
        for output in graph.outputs:
            self.uses[output] += 1
        self.opened: set[int] = set()
        """Nodes that may be computed in part although they are live-out or are read twice."""
        self.read_in_part: list[int] = []
        """Nodes that are computed in part now, and as a whole at their next read."""
        self.places: list[int] = []
        """For each new node the old node that it replaces."""
        self.root = -1
        """The node that a rule is replacing."""
        self.looked = False
        """Whether the value of a scalar has been looked at, beyond what every rule may know of it:
        with another number the rules might do otherwise. What is notable is part of every key."""
        self.measured = False
        """Whether lengths have been looked at: with others the rules might do otherwise. Which axes
        have length 0 or 1, and which are equally long, does not count."""
        self.notes: dict[Any, Any] = {}
        """What rules have found out that stays true while the graph is rewritten."""
        self._forward: dict[int, int] = {}
        self._gone: list[int] = []
        """What has been replaced, in order."""
        self._made: dict[tuple[Any, ...], int] = {}
        self._known: dict[Node, int] | None = None
        self._readers: dict[int, list[int]] = {}
        self._entered, self._moved = 0, 0
        """How many nodes have been entered among the readers, and how many replacements."""

    def find(self, at: int) -> int:
        """Return what stands now in the place of a node."""
        forward, first = self._forward, at
        while at in forward:
            at = forward[at]
        while first != at:  # so that the next look is short
            forward[first], first = at, forward[first]
        return at

    def refresh(self, at: int) -> tuple[int, ...]:
        """Let a node read what stands in the place of its inputs; return them."""
        inputs, forward = self.inputs[at], self._forward
        for i in inputs:
            if i in forward:
                self.inputs[at] = inputs = tuple([self.find(i) for i in inputs])
                break
        return inputs

    def place(self, at: int) -> int:
        """Return the old node that a node is or replaces."""
        return at if at < self.count else self.places[at - self.count]

    def alone(self, at: int) -> bool:
        """Whether its one reader is all that needs it: it may be taken apart."""
        return (self.uses[at] == 1 and not self.live_out[at]) or at in self.opened

    def multiply_adds(self, at: int) -> int:
        """Return those of a product, factorisation or solve; 0 for all else."""
        op = self.ops[at]
        if not isinstance(op, Op) or op.multiply_adds is None:
            return 0
        types = tuple([self.nodes[i].type for i in self.refresh(at)])
        return op.multiply_adds(types, *self.nodes[at].params)

    def readers(self, at: int) -> Iterator[int]:
        """Yield the nodes that read a node and are needed, the newest first."""
        table = self._readers
        for reader in range(self._entered, len(self.nodes)):
            for i in set(self.refresh(reader)):
                table.setdefault(i, []).append(reader)
        self._entered = len(self.nodes)
        if self._moved < len(self._gone):
            for gone in self._gone[self._moved :]:
                if gone in table:
                    table.setdefault(self.find(gone), []).extend(table.pop(gone))
            self._moved = len(self._gone)
        seen: set[int] = set()
        for reader in reversed(table.get(at, [])):
            if reader not in seen and self.needed(reader) and at in self.refresh(reader):
                seen.add(reader)
                yield reader

    def unread(self, at: int) -> set[int]:
        """Return the operations that would have to be computed for a node and for nothing else."""
        found: set[int] = set()
        stack = [at]
        while stack:
            position = stack.pop()
            if not self.uses[position] and isinstance(self.ops[position], Op):
                found.add(position)
                stack.extend(i for i in self.refresh(position) if i not in found)
        return found

    def needed(self, at: int) -> bool:
        """Whether a node is still read and stands for itself."""
        return self.uses[at] > 0 and at not in self._forward

    def replace(self, at: int, by: int) -> None:
        """Put `by` in the place of `at`, for all its readers and live references."""
        readers, hidden = self.uses[at], not self.live_out[by]
        self._forward[at] = by
        self._gone.append(at)
        self.live_out[by] = self.live_out[by] or self.live_out[at]
        self._gain(by, readers)
        self._lose(at, readers)
        if at in self.opened and hidden and self.uses[by] == readers:
            self.opened.add(by)  # the partial reads of `at` are now those of `by`

    def _gain(self, at: int, readers: int) -> None:
        stack = [(at, readers)]
        while stack:
            position, more = stack.pop()
            if not self.uses[position]:
                stack += [(i, 1) for i in self.refresh(position)]
            self.uses[position] += more

    def _lose(self, at: int, readers: int) -> None:
        stack = [(at, readers)]
        while stack:
            position, fewer = stack.pop()
            self.uses[position] -= fewer
            if not self.uses[position]:
                stack += [(self.find(i), 1) for i in self.inputs[position]]

    def remember(self, at: int) -> None:
        """Let what would be made like this node be this node."""
        op = self.ops[at]
        if isinstance(op, Op):
            key = (op, self.refresh(at), repr(self.nodes[at].params))
            if self._standing(key) is None:
                self._made[key] = at

    def _standing(self, key: tuple[Any, ...]) -> int | None:
        """Return the node of a key that is there. Not one that has been replaced since: what stands
        in its place may read the root, and the graph would be a circle.
        """
        at = self._made.get(key)
        return None if at == self.root or at in self._forward else at

    def make(self, op: Op[...], operands: Sequence[int | Constant], params: Params = ()) -> int:
        """Return the node of an operation on nodes and numbers: one that is there, or a new one."""
        inputs = tuple([x if isinstance(x, Constant) else self.find(x) for x in operands])
        shown = tuple([f"{x.value!r}" if isinstance(x, Constant) else x for x in inputs])
        key = (op, shown, repr(params))
        if self.root in inputs:
            raise _cycle_error()
        found = self._standing(key)
        if found is not None:
            return found
        given = tuple([x.value if isinstance(x, Constant) else self.given(x) for x in inputs])
        made = _native.apply(op.id, given, params)
        if type(made) is not Array:
            rule = f"{op.name} has several results"
            raise UnsupportedError("rewrite", rule, remedy="replace by operations with one result")
        node = _native.node_of(made)
        if node.op is not op:  # a comparison that is known by the range of its dtype
            return self.adopt(made)
        positions = [
            self._append(node.inputs[k], SCALAR, ()) if isinstance(x, Constant) else x
            for k, x in enumerate(inputs)
        ]
        at = self._append(node, op, tuple(positions))
        self._made[key] = at
        return at

    def _refuse_circle(self, at: int) -> None:
        """Refuse a replacement that reads the root, be it by nodes that were there."""
        earliest, seen, stack = self.place(self.root), {at}, [at]
        while stack:
            position = stack.pop()
            if self.place(position) < earliest:  # it was there before the root
                continue
            new = [i for i in self.refresh(position) if i not in seen]
            if self.root in new:
                raise _cycle_error()
            seen.update(new)
            stack.extend(new)

    def given(self, at: int) -> Any:
        """Return a node as an operand of a call: an Array, or the scalar it is."""
        return self.scalar(at) if self.ops[at] is SCALAR else _native.array_of(self.nodes[at])

    def scalar(self, at: int) -> Number:
        """Return the number that a Python scalar is."""
        number: Number = self.nodes[at].scalar
        huge = isinstance(number, int) and number.bit_length() > EXACT_INT_BITS
        self.looked = self.looked or huge or not _native.is_notable(number)
        return number

    def _append(self, node: Node, op: Operator, inputs: tuple[int, ...]) -> int:
        self.nodes.append(node)
        self.ops.append(op)
        self.inputs.append(inputs)
        self.uses.append(0)
        self.live_out.append(False)
        self.places.append(self.place(self.root))
        if self._known is not None:
            self._known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def adopt(self, array: Array) -> int:
        """Return the position of an Array that was made of nodes known here."""
        if self._known is None:
            self._known = {node: at for at, node in enumerate(self.nodes)}
        known = self._known
        stack = [_native.node_of(array)]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            inputs = node.inputs
            missing = [each for each in inputs if each not in known]
            if missing:
                stack.extend(missing)
                continue
            op: Operator = SCALAR if node.is_scalar else (node.op if node.pending else None) or LEAF
            self._append(node, op, tuple(self.find(known[each]) for each in inputs))
        at = self.find(known[_native.node_of(array)])
        self._refuse_circle(at)
        return at

    def order(self) -> list[int]:
        """Return the nodes that are needed, inputs before users, as a walk from the outputs."""
        seen: set[int] = set()
        ordered: list[int] = []
        for output in self.outputs:
            stack = [(self.find(output), False)]
            while stack:
                at, entered = stack.pop()
                if entered:
                    ordered.append(at)
                elif at not in seen:
                    seen.add(at)
                    inputs = self.refresh(at)
                    if not inputs:
                        ordered.append(at)
                        continue
                    stack.append((at, True))
                    stack += [(i, False) for i in inputs[::-1] if i not in seen]
        return ordered

    def finish(self) -> tuple[Graph, list[tuple[Node, int]]]:
        """Return the rewritten graph, and each replaced node that is an output or live-out with the
        position of its value in that graph.
        """
        ordered = self.order()
        positions = {at: position for position, at in enumerate(ordered)}
        inputs = [tuple(positions[i] for i in self.inputs[at]) for at in ordered]
        uses = [0] * len(ordered)
        for row in inputs:
            for i in row:
                uses[i] += 1
        outputs = tuple(positions[self.find(output)] for output in self.outputs)
        held = [self.live_out[at] for at in ordered]
        replaced = [
            (self.nodes[at], positions[by])
            for at in self._forward
            if at < self.count and self.live_out[at] and (by := self.find(at)) in positions
        ]
        dying: Sequence[bool] = ()
        if self.dead_after_read:
            needed = self._needed_later(positions)
            # later computations read these values, so their memory must not be updated in place
            updated = {at for at in map(self._updated, ordered) if at in needed}
            held = [is_held or at in updated for at, is_held in zip(ordered, held, strict=True)]
            dying = [self._dies(at) and at not in needed for at in ordered]
        graph = Graph([self.nodes[at] for at in ordered], inputs, uses, held, outputs, dying)
        return graph, replaced

    def _updated(self, at: int) -> int:
        """The node of which this one updates a part; -1 for none."""
        op = self.ops[at]
        updates = isinstance(op, Op) and op.writes is not None and self.nodes[at].pending
        return self.inputs[at][0] if updates else -1

    def _needed_later(self, positions: Mapping[int, int]) -> set[int]:
        """Return the old nodes below live-out nodes that this graph does not compute. Those are
        computed later, as they were written.
        """
        left = [
            at
            for at in range(self.count)
            if self.live_out[at] and self.written[at] and self.find(at) not in positions
        ]
        found: set[int] = set()
        while left:
            for i in self.written[left.pop()]:
                computed = self.live_out[i] and self.find(i) in positions
                if i not in found and not (computed and self.written[i]):
                    found.add(i)
                    left.append(i)
        return found

    def _dies(self, at: int) -> bool:
        """Whether it is a value without live references, and replaces no live-out node."""
        return at < self.count and self.dead_after_read[at] and not self.live_out[at]

    def text(self, at: int, depth: int) -> str:
        """Return a node as text: `depth` levels of it, of what is new every level up to six."""
        node, op = self.nodes[at], self.ops[at]
        if op is SCALAR:
            return repr(node.scalar)
        if not isinstance(op, Op) or (depth <= 0 and (at < self.count or depth <= -6)):
            return f"%{self.place(at)}"
        inside = [self.text(self.find(i), depth - 1) for i in self.inputs[at]]
        return f"{op.name}({', '.join([*inside, *(repr(param) for param in node.params)])})"
