"""Batch templates: the expression of a batch, for any number of rows.

Takes the expressions of one batch signature for two numbers of rows, as the batch rules have made
them. Where they differ only in that number, hands on a template, which makes the expression for
another number without the rules.

>>> import tenfold as tn
>>> def turned(rows):
...     x = _native.placeholder(Type((rows, 2), tn.float64, "cpu"))
...     result = _native.node_of(tn.reshape(x * 2, (2, rows)))
...     return Subgraph("turned", [result], [_native.node_of(x)])
>>> template = BatchTemplate.of((3, turned(3)), (5, turned(5)))
>>> template.subgraph(7).types[0].shape
(2, 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.interpreter import interpret
from tenfold.core.op import Op, Params
from tenfold.core.subgraph import Subgraph


class _OpenRowCount:
    """Stands for the number of rows among parameters."""

    def __repr__(self) -> str:
        return "rows"


ROWS = _OpenRowCount()


class NotUniform(Exception):
    """The expressions differ by more than the number of rows."""


class BatchTemplate:
    """An expression whose number of rows is open."""

    def __init__(self, example: Subgraph, is_stacked: Sequence[bool]) -> None:
        self.example, self.is_stacked = example, tuple(is_stacked)
        self.sized_params: dict[Node, Params] = {}
        """The parameters of nodes that have ROWS among them."""

    @staticmethod
    def of(first: tuple[int, Subgraph], second: tuple[int, Subgraph]) -> BatchTemplate | None:
        """Return the template of two expressions, each with its number of rows; None where they
        differ in anything else.
        """
        (rows, one), (other_rows, other) = first, second
        pairs = [*zip(one.inputs, other.inputs, strict=True)]
        template = BatchTemplate(one, [x.type != y.type for x, y in pairs])
        try:
            template._compare(rows, other_rows, other)
        except NotUniform:
            return None
        return template

    def _compare(self, rows: int, other_rows: int, other: Subgraph) -> None:
        graph, other_graph = self.example.graph, other.graph
        if (graph.inputs, graph.outputs) != (other_graph.inputs, other_graph.outputs):
            raise NotUniform
        positions = dict(zip(self.example.inputs, range(len(other.inputs)), strict=True))
        for node, other_node in zip(graph.nodes, other_graph.nodes, strict=True):
            if node in positions:
                if other.inputs[positions[node]] != other_node:
                    raise NotUniform
                continue
            if node.op is not other_node.op or node.is_scalar != other_node.is_scalar:
                raise NotUniform
            if not isinstance(node.op, Op):
                self._compare_leaf(node, other_node)
                continue
            params = _common(node.params, other_node.params, rows, other_rows)
            if params != node.params:
                self.sized_params[node] = params

    def _compare_leaf(self, node: Node, other: Node) -> None:
        if node.is_scalar:
            if repr(node.scalar) != repr(other.scalar):
                raise NotUniform
        elif node != other:  # a part of several results, or a constant of its own
            raise NotUniform

    def subgraph(self, rows: int) -> Subgraph:
        """Return the expression for a number of rows."""
        arrays = [
            _native.placeholder(
                Type((rows, *node.type.shape[1:]), node.type.dtype, node.type.device)
                if is_stacked
                else node.type
            )
            for node, is_stacked in zip(self.example.inputs, self.is_stacked, strict=True)
        ]
        rebuild, sized_params = self.example.rule, self.sized_params

        def rule(node: Node, operands: list[Any]) -> Any:
            params = sized_params.get(node)
            if params is None:
                return rebuild(node, operands)
            return _native.apply(node.op.id, tuple(operands), _filled(params, rows))

        inputs = [*map(_native.node_of, arrays)]
        environment = dict(zip(self.example.inputs, arrays, strict=True))
        results = interpret(self.example.graph, environment, rule)
        outputs = [*map(_native.node_of, results)]
        return Subgraph(self.example.name, outputs, inputs, rebuild)


def _common(one: Any, other: Any, rows: int, other_rows: int) -> Any:
    """Return what is common to parameters; ROWS where both have their number of rows."""
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        return tuple([_common(x, y, rows, other_rows) for x, y in zip(one, other, strict=True)])
    if type(one) is int and type(other) is int and (one, other) == (rows, other_rows):
        return ROWS
    if type(one) is not type(other) or one != other or repr(one) != repr(other):
        raise NotUniform
    return one


def _filled(params: Any, rows: int) -> Any:
    if params is ROWS:
        return rows
    return tuple([_filled(each, rows) for each in params]) if type(params) is tuple else params


def is_uniform(member: Subgraph) -> bool:
    """Whether batch rules that Tenfold declares make the batch: they compare no number of rows."""
    ops = [node.op for node in member.graph.nodes if isinstance(node.op, Op)]
    return all(is_uniform(op.semantics.body) if op.semantics.body else op.permanent for op in ops)


__all__ = ["BatchTemplate", "is_uniform"]
