"""The executor names the instruction that failed, calls a function once, and counts by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, pipeline
from tenfold._native import Failure
from tenfold.jit import program
from tenfold.runtime.graph_chunks import MAX_WHOLE_NODES
from tenfold.testing import assert_equal_bits

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def failure_of(*arrays: tn.Array) -> Failure:
    """The Failure of a plan of arrays."""
    nodes = [_native.node_of(x) for x in arrays]
    options = pipeline.options_key()
    executable = pipeline._bind_plan(nodes, options)
    parts = [nodes]
    found = _native.replay(parts, options, None, True, executable)
    assert isinstance(found, Failure)
    assert parts == [nodes]
    return found


def test_failure_names_the_operation_its_node_and_the_cause() -> None:
    x = tn.linalg.inv(tn.asarray(SINGULAR))
    found = failure_of(x * 2 + 1)
    assert (found.operation, found.cause, found.error) == ("inv", "values", None)
    assert found.node == _native.node_of(x)


def test_failure_for_memory_has_the_bytes() -> None:
    x = tn.ones(1 << 44) + 1
    found = failure_of(x)
    assert (found.cause, found.nbytes) == ("memory", 1 << 47)


@pytest.fixture
def calls() -> list[int]:
    return []


@pytest.mark.parametrize("options", [{}, {"check_nans": True}, {"verify": True}])
def test_a_function_that_raises_is_called_once_under_any_option(options: dict[str, bool]) -> None:
    calls: list[int] = []

    @tn.operator
    def refuses(x: tn.Array, /) -> tn.Array:
        calls.append(1)
        raise ValueError("no")

    with tn.options(**options), pytest.raises(tn.errors.RunError):
        refuses(tn.asarray([1.0]) * 2.5).wait()
    assert len(calls) == 1


def test_failure_of_a_function_has_its_exception_and_it_was_called_once(calls: list[int]) -> None:
    @tn.operator
    def refuses(x: Any) -> Any:
        calls.append(1)
        raise ValueError("not these")

    x = refuses(tn.asarray([1.0, 2.0]))
    y = x * 2
    with pytest.raises(tn.errors.RunError, match="not these") as raised:
        y.wait()
    assert f"{__file__}:" in str(raised.value)
    assert calls == [1]


def test_function_is_not_called_again_where_a_later_operation_fails(calls: list[int]) -> None:
    @tn.operator
    def counted(x: Any) -> Any:
        calls.append(1)
        return np.asarray(x)

    x = counted(tn.asarray(SINGULAR)) + 0.0
    y = tn.linalg.inv(x) * 2
    with pytest.raises(tn.errors.LinAlgError):
        y.wait()
    assert calls == [1]


def test_function_of_a_user_is_in_the_plan_and_called_by_each_evaluation(
    planned: list[int], calls: list[int]
) -> None:
    @tn.operator
    def counted(x: Any) -> Any:
        calls.append(1)
        return np.asarray(x) * 2

    for number in range(1, 4):
        x = tn.asarray(np.arange(4.0) * number)
        assert_equal_bits(counted(x + 1) - 0.5, (np.arange(4.0) * number + 1) * 2 - 0.5)
    assert calls == [1, 1, 1]
    assert len(planned) == 1


def test_independent_results_of_a_failure_are_computed_with_their_bits() -> None:
    x = np.linspace(0.0, 3.0, 50)
    a = tn.asarray(x)
    wanted = np.asarray(tn.exp(a) * 3 - 1)
    bad = tn.linalg.inv(tn.asarray(SINGULAR)) * 2
    good = tn.exp(tn.asarray(x)) * 3 - 1
    assert isinstance(pipeline.evaluate([bad, good], planned=True), tn.errors.LinAlgError)
    assert _native.node_of(bad).pending
    assert not _native.node_of(good).pending
    assert_equal_bits(good, wanted)


@pytest.mark.usefixtures("fused_multiply_add")
def test_warm_tree_of_calls_counts_its_launches() -> None:
    random = np.random.default_rng(0)
    weights = tn.asarray(random.random((8, 8), np.float32))

    @tn.function
    def cell(left: tn.Array, right: tn.Array) -> tn.Array:
        return tn.tanh((left + right) @ weights)

    def tree(calls: int) -> tn.Array:
        level = [tn.asarray(random.random(8, np.float32)) for _ in range(calls + 1)]
        while len(level) > 1:
            pairs = [*zip(level[::2], level[1::2], strict=False)]
            level = [cell(*pair) for pair in pairs] + level[2 * len(pairs) :]
        return level[0]

    for _ in range(_native.TIERS.optimised_launches + 4):
        tree(500).wait()
        program.PROGRAMS.wait_idle()
    last = tree(500)
    with tn.profile() as p:
        last.wait()
    assert p.batches > 0
    assert p.launches >= p.batches


def test_long_graph_is_computed_in_chunks_beside_a_failure() -> None:
    values = np.linspace(0.0, 1.0, 20_000)

    def chain() -> tn.Array:
        x = tn.asarray(values)
        for _ in range(MAX_WHOLE_NODES):
            x = x * 0.999 + 0.5
        return x

    planned = chain()
    pipeline.evaluate([planned], planned=True)
    wanted = np.asarray(planned)
    good, inverse = chain(), tn.linalg.inv(tn.asarray(SINGULAR))
    bad = good + inverse[0, 0]
    with tn.profile() as p:
        failure = pipeline.evaluate([bad, good], planned=True)
    assert isinstance(failure, tn.errors.LinAlgError)
    assert _native.node_of(bad).pending
    assert_equal_bits(good, wanted)
    assert p.compiles <= 1, "the chunks of the chain are known, the last sum may not be"
