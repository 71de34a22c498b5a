"""How the loops of a kernel go through memory: the traversal each expression gets."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.runtime.device import DEVICES
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Schedule


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


def planned(array: tn.Array) -> Schedule:
    """Return the plan of a pending array."""
    return schedule_graph(Graph.of([_native.node_of(array)]))


def traversals(array: tn.Array) -> list[str]:
    """Return the traversals of the kernels that compute an array."""
    return [step.launch.kernel.traversal for step in planned(array).steps if step.launch]


def matrix(rows: int, columns: int, dtype: str = "float32") -> tn.Array:
    """Return a matrix of different numbers."""
    return tn.asarray(np.arange(rows * columns).reshape(rows, columns).astype(dtype))


def test_contiguous_operands_are_gone_through_as_one():
    assert traversals(matrix(30, 40) + matrix(30, 40)) == ["linear"]


def test_block_of_a_matrix_is_gone_through_row_by_row():
    assert traversals(matrix(30, 40)[3:20, 5:30] * 2) == ["inner"]


def test_operands_that_disagree_are_read_by_tiles():
    assert traversals(matrix(30, 40) + matrix(40, 30).T) == ["tiled"]


def test_short_axes_are_not_worth_tiles():
    assert traversals(matrix(3, 40) + matrix(40, 3).T) == ["inner"]


def test_transposed_operands_that_agree_are_gone_through_as_one():
    x, y = matrix(30, 40), matrix(30, 40)
    assert traversals(x.T + y.T) == ["linear"]


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_result_lies_as_the_operands_agree(axes):
    x = np.arange(24.0).reshape(2, 3, 4)
    permuted = tn.permute_dims(tn.asarray(x), axes)
    result = np.asarray(permuted * permuted)
    assert result.strides == (x.transpose(axes) ** 2).strides
    assert np.array_equal(result, x.transpose(axes) ** 2)


def test_row_repeated_over_transposed_operands_leaves_their_order():
    x, row = np.ones((30, 40)), np.arange(30.0)
    result = tn.asarray(x).T + tn.asarray(row)
    assert traversals(result) == ["inner"]
    assert np.array_equal(np.asarray(result), x.T + row)


def test_result_in_another_order_can_be_reshaped_and_sliced():
    x = np.arange(24.0).reshape(4, 6)
    twice = tn.asarray(x).T * 2
    expected = x.T * 2
    assert np.array_equal(np.asarray(tn.reshape(twice, (3, 8))), expected.reshape(3, 8))
    assert np.array_equal(np.asarray(tn.flip(twice) + 1), np.flip(expected) + 1)
    assert np.array_equal(np.asarray(twice[1::2, ::3]), expected[1::2, ::3])
    assert np.array_equal(np.asarray(twice @ twice.T), expected @ expected.T)


def test_take_is_a_gather():
    x, index = matrix(30, 40), tn.asarray(np.array([2, 0]))
    assert traversals(tn.take(x, index, axis=0)) == ["gather"]


def streamed(array: tn.Array) -> bool:
    """Return whether what the one kernel of an array writes goes past the cache."""
    (launch,) = (step.launch for step in planned(array).steps if step.launch)
    return launch.kernel.streamed


def test_results_of_more_than_the_cache_go_past_it():
    x, y = (tn.asarray(np.broadcast_to(np.float64(1), 1)) for _ in range(2))
    large = tn.asarray(np.zeros(1_600_000))
    assert streamed(large * x + y)


def test_results_that_fit_the_cache_stay_in_it():
    assert not streamed(tn.asarray(np.zeros(400_000)) + 1)


def test_few_results_of_many_operands_stay_in_the_cache():
    assert not streamed(tn.sum(tn.asarray(np.zeros((200_000, 16))), axis=1))


def test_rows_off_cache_lines_are_not_streamed():
    assert not streamed(tn.asarray(np.zeros((2_000, 1_000)))[:, 1:] * 2)


@pytest.mark.parametrize("cpu", ["x86-64-v3"])  # without FMA erfc and log are kernels of their own
def test_a_column_remembers_what_a_later_pass_reads_and_no_more(cpu: str) -> None:
    x = tn.asarray(np.random.default_rng(0).random((3000, 70), dtype=np.float32))
    total = tn.floor(tn.sum(x, axis=0, keepdims=True))
    y = (x - tn.erfc(total / 4000)) * tn.log(total)
    with tn.options(cpu=cpu):
        (step,) = DEVICES["cpu"].plan(Graph.of([_native.node_of(y)])).steps
    kernel = step.launch.kernel
    assert kernel.form == "column"
    assert len(kernel.pass_results) == 2  # erfc and log, none of what they are made of
    assert step.launch.scratch >= kernel.column_bytes(1, 1)
    sums = np.floor(np.asarray(tn.sum(x, axis=0, keepdims=True)))
    wanted = (np.asarray(x) - np.asarray(tn.erfc(tn.asarray(sums) / 4000))) * np.log(sums)
    np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-5)


def test_folded_axis_is_weighed_by_the_elements_that_are_read():
    x, scale = tn.asarray(np.ones((300, 300))), tn.asarray(np.ones(300))
    for axis, form in ((0, "column"), (1, "row")):
        for other in (scale, scale[:, None], scale + scale[:, None]):
            assert traversals(tn.sum(x * other, axis=axis)) == [form]


def test_every_second_column_is_folded_by_columns():
    x = tn.asarray(np.ones((300, 300)))
    assert traversals(tn.sum(x[:, ::2], axis=0)) == ["column"]
    assert traversals(tn.sum(x[:, ::2], axis=1)) == ["row"]
