"""The examples on 1, 2 and 7 threads with batches of at most 1, 7, 64 and any number of members.

Under `verify=True` each batch is compared with its members one by one: bit for bit wherever our own
kernels run, products within the bound of a reordered sum. So is the whole with what is computed
without batches: to the last bit where there are no products.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

import comparison
import tenfold as tn
from graphs import message_passing, real_graphs
from per_sample import adaptive_steps, particles
from tenfold.testing import assert_equal_bits
from trees import syntax_trees, tree_lstm

SOURCE = """
def f(x, *rest, key=1):
    if x in {1, 2, 3, 4, 5, 6, 7}:
        return [g(x)[0] for x in rest if x]
    print(x, key, "a", "b", "c")
"""
Results = Sequence[np.ndarray]


def of_trees(name: str) -> Results:
    forest = [tree for _ in range(4) for tree in syntax_trees.tree_of(ast.parse(SOURCE).body[0])]
    encode, _ = (
        make(tree_lstm.weights(syntax_trees.labels(forest), 8)) for make in tree_lstm.MODELS[name]
    )
    return [*map(np.asarray, comparison.computed([encode(tree) for tree in forest]))]


def of_graphs() -> Results:
    star = real_graphs.Graph.of([("hub", f"leaf {number}") for number in range(40)])
    ring = real_graphs.Graph.of([(f"{i}", f"{(i + 1) % 40}") for i in range(40)])
    passing = message_passing.message_passing(message_passing.layers(2, 6))
    begin = message_passing.beginnings([star, ring], 6)
    ends = [
        end
        for graph, states in zip([star, ring], begin, strict=True)
        for end in passing(graph, [*map(tn.asarray, states)])
    ]
    return [*map(np.asarray, comparison.computed(ends))]


def of_solutions() -> Results:
    systems = adaptive_steps.systems(12, n=5, end=0.1)
    return adaptive_steps.states(adaptive_steps.solved(systems))


def of_particles() -> Results:
    places = particles.places(80)
    near, begin = particles.neighbours_of(places), [*map(tn.asarray, places)]
    return [*map(np.asarray, comparison.computed(particles.tenfold_steps(begin, near, 2)))]


EXAMPLES: dict[str, Callable[[], Results]] = {
    **{name: lambda name=name: of_trees(name) for name in tree_lstm.MODELS},  # type: ignore[misc]
    "graphs": of_graphs,
    "solutions": of_solutions,
    "particles": of_particles,
}
WITHOUT_PRODUCTS = ("solutions", "particles")


@cache
def one_by_one(name: str) -> Results:
    """What is computed without batches, on one thread."""
    with tn.options(threads=1, batch=False), tn.profile() as p:
        found = EXAMPLES[name]()
    assert p.batches == 0
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize(("threads", "limit"), [(1, 64), (2, 0), (2, 1), (7, 7)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_batches_are_their_members(name: str, threads: int, limit: int) -> None:
    wanted = one_by_one(name)
    with tn.options(threads=threads, batch_limit=limit, verify=True), tn.profile() as p:
        found = EXAMPLES[name]()
    members = {event.members for event in p.events}
    assert (p.batches == 0) == (limit == 1)
    if limit:
        assert max(members) <= (limit if limit > 1 else 0)
    for one, other in zip(found, wanted, strict=True):
        if name in WITHOUT_PRODUCTS:
            assert_equal_bits(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", [{"batch": False}, {"batch_limit": 1}])
def test_an_engine_has_no_batches_where_there_are_to_be_none(options: dict[str, int]) -> None:
    with tn.options(**options), tn.Engine(threads=2) as engine:
        with engine.hold():
            xs = [engine.put(tn.asarray([float(i)])) for i in range(50)]
            ys = [engine.push(tn.operators.multiply, x, 3.0) for x in xs]
        assert [y.get().item() for y in ys] == [3.0 * i for i in range(50)]
        assert engine.stats()["batches"] == 50
