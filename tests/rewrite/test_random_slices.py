"""Random parts of random movements, maps and reductions: the same bits with rules and without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph
from tenfold.runtime.reference import Reference
from tenfold.testing import assert_equal_bits, random_array

Generator = np.random.Generator


@pytest.fixture(autouse=True)
def on_the_reference_device() -> Iterator[None]:
    with tn.options(device="reference"):
        yield


def leaf(generator: Generator, shape: tuple[int, ...]) -> tn.Array:
    dtype = str(generator.choice(["float32", "float64", "int8", "int64"]))
    return random_array(shape, dtype, seed=int(generator.integers(1 << 30)))


def operand(generator: Generator, shape: tuple[int, ...]) -> tn.Array:
    """Return a leaf that broadcasts to `shape`."""
    ones = generator.integers(0, 4, len(shape)) == 0
    lengths = tuple(1 if one else length for one, length in zip(ones, shape, strict=True))
    return leaf(generator, lengths[int(generator.integers(0, len(shape) + 1)) :])


def key(generator: Generator, shape: tuple[int, ...]) -> tuple[object, ...]:
    terms: list[object] = []
    for length in shape:
        choice = int(generator.integers(6))
        if choice == 0 and length:
            terms.append(int(generator.integers(-length, length)))
        elif choice == 1:
            terms.append(slice(None, None, -int(generator.integers(1, 4))))
        elif choice in (2, 3):
            bounds = sorted(int(i) for i in generator.integers(0, length + 1, 2))
            terms.append(slice(*bounds, int(generator.integers(1, 3))))
        else:
            terms.append(slice(None))
        if generator.integers(8) == 0:
            terms.append(None)
    return tuple(terms)


def moved(generator: Generator, x: tn.Array) -> tn.Array:
    """Return something made of `x` by one operation."""
    choice = int(generator.integers(12))
    axis = int(generator.integers(x.ndim)) if x.ndim else 0
    if choice == 0:
        return tn.permute_dims(x, tuple(int(i) for i in generator.permutation(x.ndim)))
    if choice == 1:
        return tn.broadcast_to(x, (int(generator.integers(1, 4)), *x.shape))
    if choice == 2:
        return tn.reshape(x, tuple(generator.permutation([1, *x.shape, 1]).tolist()))
    if choice == 3 and x.ndim:
        return tn.concat([x, leaf(generator, x.shape), x], axis=axis)
    if choice == 4:
        return tn.stack([leaf(generator, x.shape), x], axis=int(generator.integers(x.ndim + 1)))
    if choice == 5:
        widths = generator.integers(0, 3, (x.ndim, 2)).tolist()
        return tn.pad(x, widths) if x.ndim else x
    if choice == 6 and x.ndim:
        return tn.sum(x, axis=axis, keepdims=bool(generator.integers(2)))
    if choice == 7 and x.ndim and 0 not in x.shape:
        return tn.max(x, axis=axis, keepdims=bool(generator.integers(2)))
    if choice == 8:
        return tn.astype(x, str(generator.choice(["float64", "int32"])))
    if choice == 9:
        return tn.where(operand(generator, x.shape) > 0, x, operand(generator, x.shape))
    return x + operand(generator, x.shape)


def program(seed: int) -> tn.Array:
    generator = np.random.default_rng(seed)
    shape = tuple(
        int(i) for i in generator.choice([0, 1, 2, 3, 4], 3, p=[0.04, 0.16, 0.3, 0.3, 0.2])
    )
    x = leaf(generator, shape)
    for _ in range(int(generator.integers(2, 7))):
        x = moved(generator, x)
        if generator.integers(2) or x.size > 5_000:
            x = x[key(generator, x.shape)]
    return x


def values(graph: Graph) -> np.ndarray:
    failure = Reference().run(graph)
    if failure is not None:
        raise failure
    return np.asarray(_native.array_of(graph.nodes[graph.outputs[0]]))


def test_random_parts_have_the_same_bits_and_compute_no_more(
    part: Part,
) -> None:
    for seed in part(range(1000)):
        plain = Graph.of([_native.node_of(program(seed))])
        graph, report = optimise_graph(Graph.of([_native.node_of(program(seed))]))
        assert computed_elements(graph) <= computed_elements(plain), seed
        try:
            assert_equal_bits(values(graph), values(plain))
        except AssertionError as error:
            pytest.fail(f"seed {seed}, {report.counts}: {error}", pytrace=False)


def computed_elements(graph: Graph) -> int:
    """Return how many elements the operations make that are no views."""
    computing = (node for node in graph.nodes if node.pending and not node.op.semantics.view)
    return sum(node.type.size for node in computing)


def test_random_parts_try_every_rule_for_parts() -> None:
    fired: set[str] = set()
    for seed in range(500):
        fired |= optimise_graph(Graph.of([_native.node_of(program(seed))]))[1].counts.keys()
    assert fired >= {"index-map", "index-reduction", "index-concat", "index-stack", "index-pad"}
    assert fired >= {"index-index", "index-permute", "index-broadcast", "permute-map"}
