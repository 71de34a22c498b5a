"""The graph interpreter applies a rule to each node once, inputs before users, in linear time."""

import pickle
import weakref
from typing import Any

import pytest

import tenfold as tn
from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret, rebuild, rebuild_with_origin
from tenfold.core.subgraph import Subgraph

LONG = 100_000


def graph_of(*arrays: tn.Array) -> Graph:
    return Graph.of([_native.node_of(array) for array in arrays])


def placeholder() -> tn.Array:
    return _native.placeholder(Type((2,), tn.float64, "cpu"))


def subgraph_of(inputs: list[tn.Array], *outputs: tn.Array) -> Subgraph:
    return Subgraph("made", [*map(_native.node_of, outputs)], [*map(_native.node_of, inputs)])


def depth(_: Node, depths: list[int]) -> int:
    return max(depths, default=-1) + 1


def test_each_node_is_interpreted_once_and_after_its_inputs() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x + 1
    visited: list[Node] = []

    def rule(node: Node, operands: list[int]) -> int:
        assert all(at < len(visited) for at in operands)
        visited.append(node)
        return len(visited) - 1

    interpret(graph_of(y * y, y - x), {}, rule)
    assert len(visited) == len(set(visited)) == 5


def test_results_of_the_outputs_are_returned_in_their_order() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x + 1
    assert interpret(graph_of(y * 2 * 3, x, y), {}, depth) == [3, 0, 1]


def test_the_environment_takes_the_place_of_a_node() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x + 1
    assert interpret(graph_of(y * 2), {_native.node_of(y): 10}, depth) == [11]


def test_long_chains_are_interpreted_without_recursion() -> None:
    with tn.options(pending_depth=0):
        x = tn.asarray([1.0, 2.0])
        for _ in range(LONG):
            x = -x
        assert interpret(graph_of(x), {}, depth) == [LONG]


def test_a_result_is_dropped_after_its_last_reader() -> None:
    class Result:
        """An object that can be weakly referenced."""

    alive: list[weakref.ref[Result]] = []
    most = 0

    def rule(_: Node, operands: list[Result]) -> Result:
        nonlocal most
        del operands[:]
        most = max(most, sum(reference() is not None for reference in alive))
        result = Result()
        alive.append(weakref.ref(result))
        return result

    x = tn.asarray([1.0, 2.0])
    for _ in range(20):
        x = -x
    interpret(graph_of(x), {}, rule)
    assert most <= 1


@pytest.mark.parametrize("rule", [rebuild, rebuild_with_origin])
def test_parts_of_several_results_are_rebuilt(rule: Any) -> None:
    x = placeholder()
    values, vectors = tn.linalg.eigh(tn.outer(x, x))
    y = tn.asarray([3.0, 4.0])
    rebuilt = interpret(graph_of(values * 1.5, vectors), {_native.node_of(x): y}, rule)
    wanted = tn.linalg.eigh(tn.outer(y, y))
    assert rebuilt[0].tolist() == (wanted[0] * 1.5).tolist()
    assert rebuilt[1].tolist() == wanted[1].tolist()


def test_a_subgraph_is_applied_to_other_arrays() -> None:
    x, y = placeholder(), placeholder()
    subgraph = subgraph_of([x, y], x * 2 + y, y)
    operands = [tn.asarray([1.0, 2.0]), tn.asarray([5.0, 7.0])]
    assert [array.tolist() for array in subgraph.apply(operands)] == [[7.0, 11.0], [5.0, 7.0]]
    assert subgraph.types == tuple(node.type for node in subgraph.outputs)


def test_a_result_that_is_an_operand_has_a_name_of_its_own() -> None:
    x = placeholder()
    operand = tn.asarray([1.0, 2.0])
    first, second = subgraph_of([x], x, x).apply([operand])
    first += 1
    assert (operand.tolist(), second.tolist()) == ([1.0, 2.0], [1.0, 2.0])


def test_a_subgraph_is_not_pickled() -> None:
    x = placeholder()
    with pytest.raises(tn.errors.UnsupportedError, match="was traced from a function"):
        pickle.dumps(subgraph_of([x], x + 1))
