"""Subgraph: a closed graph, whose leaves are its inputs.

Takes result nodes and the nodes that stand for its inputs, hands on the graph to interpret. It is
the form of a traced function, a loop step, a branch, a batched operation and a pickled expression.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((2,), tn.float64, "cpu"))
>>> double = Subgraph("double", [_native.node_of(x * 2)], [_native.node_of(x)])
>>> double, [y.tolist() for y in double.apply([tn.asarray([1.0, 2.0])])]
(<double: 1 operation>, [[2.0, 4.0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.core.graph import Graph
from tenfold.core.interpreter import NodeRule, interpret, rebuild
from tenfold.errors import UnsupportedError


class Subgraph:
    """A closed graph: results on inputs. A constant, such as a number, stands for itself.

    `rule` makes its operations on other inputs: with `rebuild_with_origin` at the lines of its own.
    The first `num_arguments` inputs are the arguments of a traced function, the others captured.
    """

    def __init__(
        self,
        name: str,
        outputs: Sequence[Node],
        inputs: Sequence[Node],
        rule: NodeRule[Any] = rebuild,
        num_arguments: int = 0,
    ) -> None:
        self.name, self.outputs, self.inputs = name, tuple(outputs), tuple(inputs)
        self.graph, self.rule, self.num_arguments = Graph.of(self.outputs), rule, num_arguments
        self.rewritten: tuple[Any, Any] = (None, None)
        """The rules and options under which it was rewritten last, and the result."""

    @property
    def types(self) -> tuple[Type, ...]:
        """The Types of its results."""
        return tuple([node.type for node in self.outputs])

    def apply(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """Return its results as lazy arrays on other inputs; each has a name of its own."""
        environment = dict(zip(self.inputs, operands, strict=True))
        results = interpret(self.graph, environment, self.rule)
        return tuple(map(_native.array_of, map(_native.node_of, results)))

    def __repr__(self) -> str:
        count = sum(node.op is not None for node in self.graph.nodes)
        return f"<{self.name}: {count} operation{'s' if count != 1 else ''}>"

    def __reduce__(self) -> NoReturn:
        rule = f"{self.name!r} was traced from a function, which the reader does not have"
        raise UnsupportedError("pickle", rule, remedy="compute the array first, with x.wait()")


__all__ = ["Subgraph"]
