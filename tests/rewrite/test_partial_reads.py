"""Partial reads: the first computes that part only, the second computes the whole."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph


def counting(seen: list[int]) -> object:
    """Return an elementwise operation that notes how many elements it is given."""

    def reference(x: np.ndarray) -> np.ndarray:
        seen.append(x.size)
        return x + 1

    @tn.op(reference=reference)
    def counted(x: tn.Array) -> tn.Array:
        """x + 1, counting."""
        return x + 1

    return counted


def test_first_partial_read_computes_that_part_only_and_the_second_the_whole() -> None:
    seen: list[int] = []
    x = counting(seen)(tn.asarray(np.arange(100.0))) * 2
    assert x[3].item() == 8.0
    assert seen == [1]
    assert x[4:6].tolist() == [10.0, 12.0]
    assert seen == [1, 100]
    assert x.tolist() == ((np.arange(100.0) + 1) * 2).tolist()
    assert seen == [1, 100]


@pytest.mark.parametrize("tier", ["auto", "1"])
@pytest.mark.parametrize(
    "whole",
    [
        lambda n: tn.arange(n),
        lambda n: tn.arange(n) * 2 + 1,
        lambda n: tn.reshape(tn.arange(10**6), (-1, 1)) * tn.arange(n // 10**6),
    ],
    ids=["range", "elementwise", "outer"],
)
def test_every_read_of_an_array_larger_than_memory_computes_its_part(
    whole: Callable[[int], tn.Array], tier: str
) -> None:
    with tn.options(tier=tier):
        x = whole(10**6)  # what is smaller is stored at the second read
        expected = [x[at].tolist() for at in (7, 8, 9)]
        y = whole(10**12)
        found = [y[at].tolist() if y.ndim == 1 else y[at, :1].tolist() for at in (7, 8, 9)]
    assert found == [value[:1] if isinstance(value, list) else value for value in expected]
    assert y[-1].shape == y.shape[1:]


@pytest.mark.parametrize(
    "key",
    [
        (1,),
        (slice(None, None, -1), 2),
        (Ellipsis, slice(3, 0, -2)),
        (0, None, slice(1, 1)),
        (None, slice(2, None), 0, None),
        (),
    ],
)
def test_part_of_a_broadcast_expression_equals_the_part_of_the_whole(
    key: tuple[object, ...],
) -> None:
    generator = np.random.default_rng(0)
    a, b, c = (generator.standard_normal(shape) for shape in ((3, 4), (4,), (3, 1)))
    x = tn.where(tn.asarray(a) > 0, tn.asarray(b) * 2, -tn.asarray(c)) + tn.asarray(a).T.T
    expected = np.where(a > 0, b * 2, -c) + a
    np.testing.assert_array_equal(np.asarray(x[key]), expected[key])


def test_part_of_a_shared_chain_takes_linear_time() -> None:
    with tn.options(pending_depth=0):
        x = tn.asarray(np.ones(4))
        for _ in range(20_000):
            x = x + x * 0.0  # each step reads the one before it twice
    assert x[1].item() == 1.0


def _newton(x: object, _y: object) -> tuple[object, object]:
    return x - (x * x - 2) / (2 * x), x


def _euler(x: object, _y: object) -> tuple[object, object]:
    return x + 0.01 * (x * (1 - x)), x


def _mean(x: object, y: object) -> tuple[object, object]:
    return (x + y) / 2, x


def _transposed(x: object, y: object) -> tuple[object, object]:
    return x.T / 2 + x.T * y, x.T * 0.5


def _with_row(x: object, y: object) -> tuple[object, object]:
    return x / 2 + y[0] * x, x * 0.5


PARTS = {
    "rows": lambda x: x[:2],
    "steps": lambda x: x[1::2, ::-1],
    "row": lambda x: x[-1],
    "transpose": lambda x: x.T[0, :2],
    "reshape": lambda x: x.reshape(-1)[:3],
    "sums": lambda x: x[0, :2] + x[1, 2:],
    "reduction": lambda x: x[1].sum(),
    "vmap": tn.vmap(lambda row: row[0]),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("step", [_newton, _euler, _mean, _transposed, _with_row])
def test_part_of_a_long_loop_of_named_arrays_equals_that_of_the_whole(
    step: Callable[..., tuple[object, object]], part: Callable[..., object]
) -> None:
    whole = None
    for reads_whole in (True, False):
        x, y = tn.asarray(np.linspace(0.5, 1, 16).reshape(4, 4)), tn.asarray(np.ones((4, 4)))
        for _ in range(30):
            x, y = step(x, y)
        if reads_whole:
            whole = tn.asarray(np.asarray(x))
    np.testing.assert_array_equal(np.asarray(part(x)), np.asarray(part(whole)))


def test_part_of_a_long_loop_has_as_many_operations_as_the_loop() -> None:
    x = tn.asarray(np.linspace(1, 2, 1000))
    for _ in range(100):
        x = x - (x * x - 2) / (2 * x)
    graph = Graph.of([_native.node_of(x[:3])])
    rewritten, report = optimise_graph(graph)
    assert rewritten.nodes[-1].type.shape == (3,)
    assert len(rewritten) <= len(graph) + 1
    assert report.counts["index-map"] <= len(graph)


def test_part_of_a_product_computes_the_product() -> None:
    x = tn.asarray(np.eye(3))
    assert (x @ x + 1)[0].tolist() == [2.0, 1.0, 1.0]


def test_part_written_under_other_options_is_read_under_strict_dtypes() -> None:
    x = tn.asarray([1, 2]) + tn.asarray([0.5, 0.5])
    with tn.options(strict_dtypes=True):
        assert x[0].item() == 1.5


def test_element_of_a_row_computes_one_element() -> None:
    seen: list[int] = []
    x = counting(seen)(tn.asarray(np.arange(12.0).reshape(3, 4)))
    assert x[1:][:, None, ::-1][0, 0][1].item() == 7.0
    assert seen == [1]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_failure_of_a_part_names_the_line_that_wrote_the_whole(device: str) -> None:
    with tn.options(device=device):
        x = tn.asarray(np.array([-1, 2]))
        power, line = x**x, sys._getframe().f_lineno
        with pytest.raises(ValueError, match="negative power") as raised:
            power[:1].wait()
    assert f"(written at {__file__}:{line})" in str(raised.value)


@pytest.mark.parametrize("seed", range(50))
def test_parts_of_parts_equal_those_of_numpy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((4, 3, 5))
    ours, theirs = tn.asarray(values) + 1, values + 1
    for _ in range(3):
        key = tuple(_random_term(generator, length) for length in theirs.shape)
        ours, theirs = ours[key], theirs[key]
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def _random_term(generator: np.random.Generator, length: int) -> object:
    choice = generator.integers(5)
    if choice == 0 and length:
        return int(generator.integers(length))
    if choice == 1:
        return slice(None, None, -1)
    if choice == 2:
        return slice(int(generator.integers(length + 1)), None, int(generator.integers(1, 3)))
    return slice(None)
