"""Rewrite graph: a mutable graph during rewriting, as one list per node property.

Input: a Graph. Output: the rewritten Graph. A node is identified by its position; new nodes are
appended. Replacing the inputs of a node changes only its entry in `inputs`, so the node keeps its
origin and publishes its own value. `uses` always counts the live readers.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> graph = Graph.of([tn._native.node_of(tn.asarray([1.0]) * 1)])
>>> rewrite_graph = RewriteGraph(graph, operators_of(graph))
>>> rewrite_graph.replace(graph.outputs[0], 0)
>>> print(rewrite_graph.finish()[0])
%0 = leaf float64[1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import Op, Params, exact_params
from tenfold.core.pattern import Constant, Number
from tenfold.core.shape_rules import Shape
from tenfold.errors import UnsupportedError


class OpMarker:
    """A placeholder operator of a node without an op."""

    def __init__(self, name: str) -> None:
        self.name = name


SCALAR_OP, LEAF_OP = OpMarker("scalar"), OpMarker("leaf")
EXACT_INT_BITS = 64
"""The largest bit length of an int that plan keys contain exactly."""
Operator = Op[...] | OpMarker


def operators_of(graph: Graph) -> list[Operator]:
    """Return the op of each pending node, SCALAR_OP for a Python scalar, LEAF_OP for others."""
    operators: list[Operator] = []
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        if inputs or node.pending:
            operators.append(node.op or LEAF_OP)  # one of several results has no op
        else:
            operators.append(SCALAR_OP if node.is_scalar else LEAF_OP)
    return operators


def _cycle_error() -> UnsupportedError:
    rule = "a replacement reads what it replaces, so it would never end"
    return UnsupportedError("rewrite", rule, remedy="make it of the variables")


SymbolicNodes = Callable[[Node, list[Any]], Any]
"""Returns a node with symbolic lengths, from the native node and its inputs with such lengths."""


class RewriteGraph:
    """The mutable graph; one thread uses it."""

    def __init__(
        self, graph: Graph, ops: list[Operator], symbolic: SymbolicNodes | None = None
    ) -> None:
        self.nodes = list(graph.nodes)
        self.symbolic = symbolic
        """With it, rules read symbolic lengths: their decisions become guards."""
        self._symbolic_nodes: dict[int, Any] = {}
        self.inputs = list(graph.inputs)
        self.live_out = list(graph.live_out)
        self.passed_through = frozenset(graph.passed_through)
        self.dead_after_read = graph.dead_after_read
        self.original_inputs = graph.inputs
        self.ops = ops
        self.outputs = graph.outputs
        self.original_count = len(self.nodes)
        """The number of nodes of the original graph."""
        self.uses = list(graph.uses)
        for output in graph.outputs:
            self.uses[output] += 1
        self.splittable: set[int] = set()
        """Nodes that may be computed in part although they are live-out or read twice."""
        self.original_nodes: list[int] = []
        """For each new node the original node that it replaces."""
        self.root = -1
        """The node that a rule is replacing."""
        self.read_scalars = False
        """Whether a rule has read the value of a scalar that plan keys do not contain, so that the
        result is valid for that value only. Notable numbers are part of every key."""
        self.read_shapes = False
        """Whether a rule has read lengths, so that the result is valid for those only. Lengths 0
        and 1, and equality of lengths, do not count."""
        self.rule_cache: dict[Any, Any] = {}
        """Data of rules that stays valid during the rewrite."""
        self._forward: dict[int, int] = {}
        self._replaced: list[int] = []
        """The replaced nodes, in order."""
        self._nodes_by_key: dict[tuple[Any, ...], int] = {}
        self._positions: dict[Node, int] | None = None
        self._readers: dict[int, list[int]] = {}
        self._indexed_nodes, self._indexed_replacements = 0, 0
        """The numbers of nodes and of replacements that `_readers` includes."""

    def find(self, at: int) -> int:
        """Return the node that now replaces a node (union-find)."""
        forward, start = self._forward, at
        while at in forward:
            at = forward[at]
        while start != at:  # path compression
            forward[start], start = at, forward[start]
        return at

    def refresh(self, at: int) -> tuple[int, ...]:
        """Update the inputs of a node to their replacements; return them."""
        inputs, forward = self.inputs[at], self._forward
        for i in inputs:
            if i in forward:
                self.inputs[at] = inputs = tuple([self.find(i) for i in inputs])
                break
        return inputs

    def original_node(self, at: int) -> int:
        """Return the original node that a node is or replaces."""
        return at if at < self.original_count else self.original_nodes[at - self.original_count]

    def users_first(self, at: int) -> tuple[int, int]:
        """Return a sort key by which a node comes before new nodes that read earlier nodes.

        A rule that moves an operation to the operands of what it reads then makes all its nodes on
        an operand with several readers, which are one node, before one is replaced.
        """
        return min([(-self.original_node(i), -i) for i in self.inputs[at]], default=(0, 0))

    def single_reader(self, at: int) -> bool:
        """Whether it has a single reader and is not live-out, so that rules may split it."""
        return (self.uses[at] == 1 and not self.live_out[at]) or at in self.splittable

    def is_named(self, at: int) -> bool:
        """Whether an array or an expression outside of the graph refers to it."""
        return self.live_out[at] or at in self.passed_through

    def multiply_adds(self, at: int) -> int:
        """Return the multiply-adds of a product, factorisation or solve; 0 for others."""
        op = self.ops[at]
        if not isinstance(op, Op) or op.lowering.multiply_adds is None:
            return 0
        types = tuple([self._type(i) for i in self.refresh(at)])
        return op.lowering.multiply_adds(types, *self.nodes[at].params)

    def shape(self, at: int) -> Shape:
        """Return the lengths of a node, for a rule."""
        if self.symbolic is None:
            self.read_shapes = True
        shape: Shape = self._type(at).shape
        return shape

    def _type(self, at: int) -> Any:
        """Return the Type of a node, or a symbolic one."""
        return self.nodes[at].type if self.symbolic is None else self._symbolic_node(at).type

    def _symbolic_node(self, at: int) -> Any:
        """Return a node with symbolic lengths, made of its inputs; graphs may be deep."""
        found, stack = self._symbolic_nodes, [at]
        assert self.symbolic is not None, "the caller has asked"
        while stack:
            inputs = self.inputs[stack[-1]]
            missing = [i for i in inputs if i not in found]
            if missing:
                stack += missing
                continue
            position = stack.pop()
            if position not in found:
                operands = [found[i] for i in inputs]
                found[position] = self.symbolic(self.nodes[position], operands)
        return found[at]

    def readers(self, at: int) -> Iterator[int]:
        """Yield the live readers of a node, newest first."""
        readers_of = self._readers
        for reader in range(self._indexed_nodes, len(self.nodes)):
            for i in set(self.refresh(reader)):
                readers_of.setdefault(i, []).append(reader)
        self._indexed_nodes = len(self.nodes)
        if self._indexed_replacements < len(self._replaced):
            for replaced in self._replaced[self._indexed_replacements :]:
                if replaced in readers_of:
                    readers_of.setdefault(self.find(replaced), []).extend(readers_of.pop(replaced))
            self._indexed_replacements = len(self._replaced)
        yielded: set[int] = set()
        for reader in reversed(readers_of.get(at, [])):
            if reader not in yielded and self.is_live(reader) and at in self.refresh(reader):
                yielded.add(reader)
                yield reader

    def unshared_operations(self, at: int) -> set[int]:
        """Return the operations that only this node would need."""
        unshared: set[int] = set()
        stack = [at]
        while stack:
            position = stack.pop()
            if not self.uses[position] and isinstance(self.ops[position], Op):
                unshared.add(position)
                stack.extend(i for i in self.refresh(position) if i not in unshared)
        return unshared

    def is_live(self, at: int) -> bool:
        """Whether a node has readers and has not been replaced."""
        return self.uses[at] > 0 and at not in self._forward

    def replace(self, at: int, replacement: int) -> None:
        """Replace `at` by `replacement`, for all its readers and live references."""
        readers, was_internal = self.uses[at], not self.live_out[replacement]
        self._forward[at] = replacement
        self._replaced.append(at)
        self.live_out[replacement] = self.live_out[replacement] or self.live_out[at]
        self._add_uses(replacement, readers)
        self._remove_uses(at, readers)
        if at in self.splittable and was_internal and self.uses[replacement] == readers:
            self.splittable.add(replacement)  # it inherits the partial reads of `at`

    def _add_uses(self, at: int, readers: int) -> None:
        stack = [(at, readers)]
        while stack:
            position, added = stack.pop()
            if not self.uses[position]:
                stack += [(i, 1) for i in self.refresh(position)]
            self.uses[position] += added

    def _remove_uses(self, at: int, readers: int) -> None:
        stack = [(at, readers)]
        while stack:
            position, removed = stack.pop()
            self.uses[position] -= removed
            if not self.uses[position]:
                stack += [(self.find(i), 1) for i in self.inputs[position]]

    def register(self, at: int) -> None:
        """Make `make` return this node for an equal operation."""
        op = self.ops[at]
        if isinstance(op, Op):
            key = (op, self.refresh(at), exact_params(self.nodes[at].params))
            if self._existing_node(key) is None:
                self._nodes_by_key[key] = at

    def _existing_node(self, key: tuple[Any, ...]) -> int | None:
        """Return the existing node of a key, unless it has been replaced.

        Its replacement may read the root, which would be a cycle.
        """
        at = self._nodes_by_key.get(key)
        return None if at == self.root or at in self._forward else at

    def make(self, op: Op[...], operands: Sequence[int | Constant], params: Params = ()) -> int:
        """Return an existing or new node of an operation on nodes and numbers."""
        inputs = tuple([x if isinstance(x, Constant) else self.find(x) for x in operands])
        key_inputs = tuple([f"{x.value!r}" if isinstance(x, Constant) else x for x in inputs])
        key = (op, key_inputs, exact_params(params))
        if self.root in inputs:
            raise _cycle_error()
        existing = self._existing_node(key)
        if existing is not None:
            return existing
        operand_values = tuple(
            [x.value if isinstance(x, Constant) else self.operand_value(x) for x in inputs]
        )
        array = _native.apply(op.id, operand_values, params)
        if type(array) is not Array:
            rule = f"{op.name} has several results"
            raise UnsupportedError("rewrite", rule, remedy="replace by operations with one result")
        node = _native.node_of(array)
        if node.op is not op:  # a comparison with a result known from the dtype's range
            return self.adopt(array)
        positions = [
            self._append(node.inputs[k], SCALAR_OP, ()) if isinstance(x, Constant) else x
            for k, x in enumerate(inputs)
        ]
        at = self._append(node, op, tuple(positions))
        self._nodes_by_key[key] = at
        return at

    def _refuse_cycle(self, at: int) -> None:
        """Refuse a replacement that reads the root, directly or through other nodes."""
        root_original, visited, stack = self.original_node(self.root), {at}, [at]
        while stack:
            position = stack.pop()
            if self.original_node(position) < root_original:  # it precedes the root
                continue
            unvisited = [i for i in self.refresh(position) if i not in visited]
            if self.root in unvisited:
                raise _cycle_error()
            visited.update(unvisited)
            stack.extend(unvisited)

    def operand_value(self, at: int) -> Any:
        """Return a node as an operand of a call: an Array or a Python scalar."""
        return self.scalar(at) if self.ops[at] is SCALAR_OP else _native.array_of(self.nodes[at])

    def scalar(self, at: int) -> Number:
        """Return the value of a Python scalar."""
        number: Number = self.nodes[at].scalar
        huge = isinstance(number, int) and number.bit_length() > EXACT_INT_BITS
        self.read_scalars = self.read_scalars or huge or not _native.is_special_value(number)
        return number

    def _append(self, node: Node, op: Operator, inputs: tuple[int, ...]) -> int:
        self.nodes.append(node)
        self.ops.append(op)
        self.inputs.append(inputs)
        self.uses.append(0)
        self.live_out.append(False)
        self.original_nodes.append(self.original_node(self.root))
        if self._positions is not None:
            self._positions[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def adopt(self, array: Array) -> int:
        """Return the position of an Array built from nodes of this graph; equal nodes are one."""
        if self._positions is None:
            self._positions = {node: at for at, node in enumerate(self.nodes)}
        positions = self._positions
        stack = [_native.node_of(array)]
        while stack:
            node = stack[-1]
            if node in positions:
                stack.pop()
                continue
            inputs = node.inputs
            missing = [operand for operand in inputs if operand not in positions]
            if missing:
                stack.extend(missing)
                continue
            op: Operator = (
                SCALAR_OP if node.is_scalar else (node.op if node.pending else None) or LEAF_OP
            )
            operands = tuple([self.find(positions[operand]) for operand in inputs])
            key = (op, operands, exact_params(node.scalar if op is SCALAR_OP else node.params))
            merges = op is SCALAR_OP or (isinstance(op, Op) and op.merges)
            existing = self._existing_node(key) if merges else None
            if existing is not None:
                positions[node] = existing
                continue
            at = self._append(node, op, operands)
            if merges:
                self._nodes_by_key[key] = at
        at = self.find(positions[_native.node_of(array)])
        self._refuse_cycle(at)
        return at

    def topological_order(self) -> list[int]:
        """Return the live nodes in topological order, from the outputs."""
        visited: set[int] = set()
        order: list[int] = []
        for output in self.outputs:
            stack = [(self.find(output), False)]
            while stack:
                at, inputs_done = stack.pop()
                if inputs_done:
                    order.append(at)
                elif at not in visited:
                    visited.add(at)
                    inputs = self.refresh(at)
                    if not inputs:
                        order.append(at)
                        continue
                    stack.append((at, True))
                    stack += [(i, False) for i in inputs[::-1] if i not in visited]
        return order

    def finish(self) -> tuple[Graph, list[tuple[Node, int]]]:
        """Return the rewritten graph, and each replaced node that is an output, live-out or passed
        through, with the position of its value in that graph.
        """
        order = self.topological_order()
        positions = {at: position for position, at in enumerate(order)}
        inputs = [tuple(positions[i] for i in self.inputs[at]) for at in order]
        uses = [0] * len(order)
        for operands in inputs:
            for i in operands:
                uses[i] += 1
        outputs = tuple(positions[self.find(output)] for output in self.outputs)
        live_out = [self.live_out[at] for at in order]
        replaced_nodes = [
            (self.nodes[at], positions[replacement])
            for at in self._forward
            if at < self.original_count
            and self.is_named(at)
            and (replacement := self.find(at)) in positions
        ]
        dead_after_read: Sequence[bool] = ()
        if self.dead_after_read:
            needed_later = self._needed_later(positions)
            # later computations read these values, so their memory must not be updated in place
            updated = {at for at in map(self._update_base, order) if at in needed_later}
            live_out = [
                is_live_out or at in updated
                for at, is_live_out in zip(order, live_out, strict=True)
            ]
            dead_after_read = [
                self._is_dead_after_read(at) and at not in needed_later for at in order
            ]
        passed = {positions.get(self.find(at), -1) for at in self.passed_through}
        graph = Graph(
            [self.nodes[at] for at in order],
            inputs,
            uses,
            live_out,
            outputs,
            dead_after_read,
            passed_through=tuple([at for at in sorted(passed) if at >= 0 and not live_out[at]]),
            new_nodes=frozenset([positions[at] for at in order if at >= self.original_count]),
        )
        return graph, replaced_nodes

    def _update_base(self, at: int) -> int:
        """Return the node of which this one updates a slice; -1 for none."""
        op = self.ops[at]
        updates = isinstance(op, Op) and op.lowering.updates and self.nodes[at].pending
        return self.inputs[at][0] if updates else -1

    def _needed_later(self, positions: Mapping[int, int]) -> set[int]:
        """Return the original inputs of live-out nodes that this graph does not compute.

        Those nodes are computed later, in their original form.
        """
        worklist = [
            at
            for at in range(self.original_count)
            if self.live_out[at] and self.original_inputs[at] and self.find(at) not in positions
        ]
        needed: set[int] = set()
        while worklist:
            for i in self.original_inputs[worklist.pop()]:
                computed = self.live_out[i] and self.find(i) in positions
                if i not in needed and not (computed and self.original_inputs[i]):
                    needed.add(i)
                    worklist.append(i)
        return needed

    def _is_dead_after_read(self, at: int) -> bool:
        """Whether it is a value without live references that replaces no live-out node."""
        return at < self.original_count and self.dead_after_read[at] and not self.live_out[at]

    def text(self, at: int, depth: int) -> str:
        """Return a node as text: `depth` levels, but up to six levels of new nodes."""
        node, op = self.nodes[at], self.ops[at]
        if op is SCALAR_OP:
            return repr(node.scalar)
        if not isinstance(op, Op) or (depth <= 0 and (at < self.original_count or depth <= -6)):
            return f"%{self.original_node(at)}"
        operands = [self.text(self.find(i), depth - 1) for i in self.inputs[at]]
        return f"{op.name}({', '.join([*operands, *(repr(param) for param in node.params)])})"
