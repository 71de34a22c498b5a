"""What a plan writes over, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Schedule
from tenfold.testing import assert_equal_bits

pytestmark = pytest.mark.usefixtures("no_history")


@pytest.fixture(autouse=True)
def lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several assignments are planned together; plans that are kept do not fall out meanwhile."""
    monkeypatch.setattr(_native, "due_updates", lambda *_: (False, False, False))
    tn.trim()


def planned(x: tn.Array) -> Schedule:
    return schedule_graph(Graph.of([_native.node_of(x)], (1,)))


def test_memory_is_written_over_once() -> None:
    x0 = tn.asarray(np.float32([[0.3]]))
    x1 = tn.asarray(x0, copy=True)
    tn.assign(x0, 0.5)
    x1[...] = x0[0:1, 0:1]
    x1 *= x1[0:1, 0::-1]
    x1[-1, 0:1:2] = 1.0
    x1[0::-1, -1] = x1[0, 0:1] - x0[0, 0::-1]
    taken = [source for _, source in planned(x1).reused_buffers]
    assert len(taken) == len(set(taken))
    assert_equal_bits(x1, np.float32([[0.5]]))


def _padded(keeps: bool) -> tuple[tn.Array, ...]:
    x = tn.asarray(np.ones((6, 8)))
    a = x * 1
    x[5] -= 0.25
    c = (x * 1).wait()
    c[3] = 1.0
    d = c + a
    del c
    e = tn.pad(d, ((1, 0), (0, 0)))[:6]
    return a @ e.T, *((x, a, d, e) if keeps else ())


def _joined(keeps: bool) -> tuple[tn.Array, ...]:
    x, y = tn.asarray(np.ones((6, 8))), tn.asarray(np.full((6, 8), 2.0))
    y[:1] = y[::-1][:1]
    x[4:] = x[::-1][4:]
    a = x + y
    x[:1] = x[::-1][:1]
    b = tn.take(a, tn.asarray([0, 5]), axis=0)
    return tn.concat([a, b]), *((a, b) if keeps else ())


@pytest.mark.parametrize("tier", ["auto", "1"])
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("program", [_padded, _joined])
def test_array_written_in_parts_is_complete_before_an_earlier_result_is_written_over(
    program: Callable[[bool], tuple[tn.Array, ...]], keeps: bool, tier: str
) -> None:
    with tn.options(tier=tier):
        results = [np.asarray(x) for x in program(keeps)]
    with tn.options(device="reference"):
        expected = [np.asarray(x) for x in program(keeps)]
    for found, value in zip(results, expected, strict=True):
        assert_equal_bits(found, value)


def test_step_that_completes_no_array_writes_over_no_published_result() -> None:
    schedule = planned(_padded(keeps=True)[0])
    parts = [step for step in schedule.steps if step.names == ("pad",)]
    (padded,) = parts[0].results
    first = next(step for step in schedule.steps if padded.item in {r.item for r in step.results})
    assert first is not parts[0]
    assert not {r.item for r in first.results} & dict(schedule.reused_buffers).keys()


def test_number_everywhere_that_is_seen_is_there_before_it_is_looked_at() -> None:
    with tn.options(optimise=False):
        x = tn.full((), False)
        y = tn.reshape(x, (1,))
        y[()] = x[...]
        assert tn.reshape(x, (1,)).tolist() == [False]


def test_values_of_no_axes_are_replaced_through_views_with_axes() -> None:
    x = tn.asarray(2.0).wait()
    x[None] += 1
    x[None, None][0] *= 2
    assert x.tolist() == 6.0


def test_elements_read_before_written_are_replaced_in_place_in_either_direction() -> None:
    for key, read in (((slice(1, None)), slice(None, -1)), (slice(None, -1), slice(1, None))):
        values = np.arange(40.0).reshape(8, 5)
        x = tn.asarray(values)
        x[key] = x[read] * 2
        assert not any(step.copies for step in planned(x).steps)
        values[key] = values[read] * 2
        assert_equal_bits(x, values)


@pytest.mark.parametrize("shape", [(3, 3), (64, 65), (300, 200)])
@pytest.mark.parametrize("by", [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1)])
def test_shifts_of_two_axes_are_as_in_numpy(shape: tuple[int, int], by: tuple[int, int]) -> None:
    values = np.random.default_rng(0).random(shape)

    def parts(n: int, shift: int) -> tuple[slice, slice]:
        return slice(max(shift, 0), n + min(shift, 0)), slice(max(-shift, 0), n + min(-shift, 0))

    (to0, from0), (to1, from1) = parts(shape[0], by[0]), parts(shape[1], by[1])
    x = tn.asarray(values)
    x[to0, to1] = x[from0, from1] + 1
    with tn.profile() as p:
        x.wait()
    values[to0, to1] = values[from0, from1].copy() + 1
    assert_equal_bits(x, values)
    assert p.copies == 0


def test_failing_step_leaves_the_old_value_whole() -> None:
    x = tn.asarray(np.arange(6)).wait()
    x[1:] = x[:-1] ** (x[1:] - 3)
    with pytest.raises(ValueError, match="negative"):
        x.wait()
    y = tn.asarray(np.arange(6))
    y[1:] = tn.take(y, y[1:] + 1)
    with pytest.raises(IndexError):
        y.wait()


def test_value_that_stands_in_memory_once_for_several_is_copied_and_says_so() -> None:
    x = tn.asarray(np.arange(1.0, 7.0).reshape(3, 2))
    x[...] = x[:1, :1]
    x.wait()
    x[1:, 0] = 9
    assert (
        "a copy: the old value is broadcast: one element in memory stands for several"
        in x.explain()
    )
    assert x.tolist() == [[1, 1], [9, 1], [9, 1]]


def test_rewritten_update_is_replayed_too() -> None:
    x = tn.asarray(np.arange(6.0)).wait()
    for _ in range(3):
        before = _native.num_cached_plans()
        x[1:] = (x[:-1] * 1 + 0.0) ** 2 - x[1:]
        x.wait()
    assert _native.num_cached_plans() == before


def test_opaque_work_runs_once_for_each_evaluation_and_is_not_written_over() -> None:
    calls: list[int] = []

    @tn.operator
    def counted(x: tn.Array, /) -> tn.Array:
        calls.append(1)
        return x + 1

    for evaluations in range(1, 4):
        operand = tn.asarray([1.0, 2.0]) * 2.5
        assert counted(operand).tolist() == [3.5, 6.0]
        assert (operand.tolist(), len(calls)) == ([2.5, 5.0], evaluations)


@pytest.mark.parametrize("wait", [False, True])
def test_triangular_solve_updates_in_place_what_its_products_read_by_views(wait: bool) -> None:
    rng, n = np.random.default_rng(7), 9
    matrix, right = rng.random((n, n)) + n * np.eye(n), rng.random(n)
    lower, b, x = tn.asarray(matrix), tn.asarray(right), tn.zeros(n).wait()
    expected = np.zeros(n)
    with tn.profile() as p:
        for i in range(n):
            x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
            expected[i] = (right[i] - matrix[i, :i] @ expected[:i]) / matrix[i, i]
            if wait:
                x.wait()
        x.wait()
    assert p.copies == 0
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12)


def test_view_that_is_read_beside_the_update_is_another_memory() -> None:
    values = np.arange(1.0, 7.0)
    x = tn.asarray(values, copy=True).wait()
    head = x[:3]
    x[:3] = head[::-1] + tn.sort(head)
    assert_equal_bits(x, np.concatenate([values[2::-1] + values[:3], values[3:]]))


def test_view_with_other_readers_keeps_the_old_value() -> None:
    values = np.arange(1.0, 7.0)
    x = tn.asarray(values, copy=True).wait()
    old = x[:4] + 0
    view = tn.sort(x[:4])
    x[1] = view[0] - 5
    assert_equal_bits(view, values[:4])
    assert_equal_bits(old, values[:4])
    assert_equal_bits(x, np.array([1.0, -4.0, 3.0, 4.0, 5.0, 6.0]))


def test_call_reads_a_view_before_an_update_that_does_not_depend_on_it() -> None:
    values = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    x, z = (tn.asarray(values, copy=True).wait() for _ in range(2))
    ordered = tn.sort(z[:4])
    z[1] = 7.0
    total = z[:4] @ x[:4]  # after the update of z, which comes after the sort
    x[1] = 9.0
    nodes = [_native.node_of(each) for each in (x, total, ordered)]
    steps = [step.names[-1] for step in schedule_graph(Graph.of(nodes, (1,))).steps]
    assert steps.index("matmul") < len(steps) - 1 - steps[::-1].index("set_at")
    del nodes
    tn.eval(x, total, ordered)
    assert total.item() == 16 + 7 * 3 + 4 + 1
    assert_equal_bits(ordered, np.array([1.0, 2.0, 3.0, 4.0]))
    assert_equal_bits(x, np.array([4.0, 9.0, 2.0, 1.0, 0.0]))
