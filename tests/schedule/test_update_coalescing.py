"""Parts of one array that are replaced one upon the other are one kernel, in the array's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.ops.indexing import capture
from tenfold.schedule import passes
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Launch, Schedule
from tenfold.schedule.target import DEFAULT
from tenfold.testing import assert_equal_bits

pytestmark = pytest.mark.usefixtures("no_history")


@pytest.fixture(autouse=True)
def _planned() -> Iterator[None]:
    """No graph is interpreted while it is cold."""
    with tn.options(tier=1):
        yield


Put = Callable[[Any, Any, Any], Any]
Program = Callable[[Any, Put, Any], Any]
ROWS = 9


def ours(x: tn.Array, key: Any, value: Any) -> tn.Array:
    return tn.set_at(x, key, value)


def theirs(x: np.ndarray, key: Any, value: Any) -> np.ndarray:
    copied = x.copy()
    copied[key] = value
    return copied


def rows(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, n + 1, a[n + 1] + a[n] * 0.5)
    return a


def rows_of_another(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, n + 1, a[n] * 0.5 - b[n] + b[0])
    return a


def columns(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, (slice(None), n + 1), a[:, n + 1] + a[:, n] * 0.5)
    return a


def backwards(a: Any, put: Put, b: Any) -> Any:
    for n in reversed(range(ROWS - 1)):
        a = put(a, n, a[n] * 2 - a[n + 1])
    return a


def two_before(a: Any, put: Put, b: Any) -> Any:
    for n in range(2, ROWS):
        a = put(a, n, a[n - 1] + a[n - 2])
    return a


def one_row_again_and_again(a: Any, put: Put, b: Any) -> Any:
    for n in range(1, ROWS):
        a = put(a, 0, a[0] + a[n])
    return a


def numbers(a: Any, put: Put, b: Any) -> Any:
    for n in range(1, ROWS):
        a = put(a, n, n)
    return a


def numbers_of_a_row(a: Any, put: Put, b: Any) -> Any:
    for n in range(1, ROWS):
        a = put(a, n, b[0, n])
    return a


def every_other_element(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, (n + 1, slice(None, None, 2)), a[n, ::2] + a[n + 1, 1::2])
    return a


def against_the_order_of_memory(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, (n + 1, slice(None, None, -1)), a[n, ::-1] * 2)
    return a


def blocks(a: Any, put: Put, b: Any) -> Any:
    for n in range(2, ROWS - 1, 2):
        a = put(a, slice(n, n + 2), a[n - 2 : n] + b[n : n + 2])
    return a


def rows_over_some_of_their_elements(a: Any, put: Put, b: Any) -> Any:
    for n in range(1, ROWS):
        a = put(a, (n, slice(2, 6)), b[n, 2:6] + a[n, 4:8])
        a = put(a, n, a[n - 1] + 1)
    return a


def rows_divided_by_their_sums(a: Any, put: Put, b: Any) -> Any:
    total = tn.sum if isinstance(a, tn.Array) else lambda x: np.asarray(tn.sum(tn.asarray(x)))
    for n in range(ROWS - 1):
        a = put(a, n + 1, a[n] / total(a[n]))
    return a


def one_of_them_moves_down(a: Any, put: Put, b: Any) -> Any:
    a = put(a, (1, slice(None, -1)), b[1, 1:])
    return put(a, (2, slice(None, -1)), a[2, 1:] + a[1, :-1])


FITTING = [
    *(rows, rows_of_another, columns, backwards, two_before, one_row_again_and_again, numbers),
    *(numbers_of_a_row, every_other_element, against_the_order_of_memory, blocks),
    *(rows_over_some_of_their_elements, rows_divided_by_their_sums, one_of_them_moves_down),
]


def neighbours(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, (n + 1, slice(1, -1)), a[n, :-2] + a[n, 2:])
    return a


def shifts(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, (n + 1, slice(1, None)), a[n + 1, :-1] * 2)
    return a


def shifts_of_rows(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, slice(n + 1, None), a[n:-1] + 1)
    return a


def parts_that_overlap(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 3):
        a = put(a, slice(n, n + 3), a[n + 1 : n + 4] * 2)
    return a


def one_of_them_moves_up(a: Any, put: Put, b: Any) -> Any:
    a = put(a, (1, slice(1, None)), b[1, 1:])
    return put(a, (2, slice(1, None)), a[2, :-1] + a[1, 1:])


def row_and_column_in_turn(a: Any, put: Put, b: Any) -> Any:
    for n in range(ROWS - 1):
        a = put(a, n, a[n] + b[n])
        a = put(a, (slice(None), n), a[:, n] * 2)
    return a


def sums_of_all(a: Any, put: Put, b: Any) -> Any:
    total = tn.sum if isinstance(a, tn.Array) else lambda x: np.asarray(tn.sum(tn.asarray(x)))
    for n in range(3):
        a = put(a, n, a[n + 1] + total(a))
    return a


UNFIT = [
    neighbours,
    shifts,
    shifts_of_rows,
    parts_that_overlap,
    row_and_column_in_turn,
    sums_of_all,
]


def operands(dtype: str = "float64", shape: tuple[int, int] = (ROWS, 200)) -> list[np.ndarray]:
    return list(np.random.default_rng(3).integers(1, 9, (2, *shape)).astype(dtype))


def computed(program: Program, a: np.ndarray, b: tn.Array) -> tuple[tn.Array, Any]:
    x = program(tn.asarray(a), ours, b)
    with tn.profile() as p:
        x.wait()
    return x, p


def planned(x: tn.Array) -> Schedule:
    return schedule_graph(Graph.of([_native.node_of(x)], (1,)))


def assert_complete(found: Schedule) -> None:
    """Every step reads what is there."""
    there = {i for i, item in enumerate(found.items) if item.kind in ("value", "scalar")}
    for step in found.steps:
        assert there.issuperset(step.reads), str(step)
        there.update(made.item for made in step.results)


def launches(found: Schedule) -> list[Launch]:
    return [step.launch for step in found.steps if step.launch is not None]


@pytest.mark.parametrize("program", FITTING, ids=lambda program: program.__name__)
def test_parts_that_fit_are_one_launch_without_memory_of_its_own(program: Program) -> None:
    a, b = operands()
    given = tn.asarray(b).wait()
    for _ in range(3):
        x, _ = computed(program, a, given)
        assert_equal_bits(x, program(a, theirs, b))
    x, p = computed(program, a, given)
    assert (p.launches, p.copies, p.temporaries) == (1, 0, 0)
    # between guard pages scratch memory of the kernel is allocated for each launch
    assert p.bytes_allocated == 0 or _native.guard_pages()


@pytest.mark.parametrize("program", UNFIT, ids=lambda program: program.__name__)
def test_parts_that_do_not_fit_are_right_and_not_copied(program: Program) -> None:
    a, b = operands()
    given = tn.asarray(b).wait()
    for _ in range(3):
        x, p = computed(program, a, given)
        assert_equal_bits(x, program(a, theirs, b))
        assert p.copies == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int8", "uint32"])
@pytest.mark.parametrize("program", [two_before, blocks, backwards])
def test_every_dtype_is_rounded_as_it_is_stored(program: Program, dtype: str) -> None:
    a, b = (np.array(tn.asarray(x, dtype=getattr(tn, dtype))) for x in operands())
    x, p = computed(program, a, tn.asarray(b).wait())
    with tn.options(device="reference"):
        assert_equal_bits(x, np.asarray(program(tn.asarray(a), ours, tn.asarray(b))))
    assert p.launches == 1


def test_values_of_other_dtypes_are_converted_before_the_next_part_reads_them() -> None:
    a = operands("float32")[0]

    def program(a: Any, put: Put, b: Any) -> Any:
        for n in range(ROWS - 1):
            a = put(a, n + 1, a[n] * b)
        return a

    factor = np.full(200, 1 + 2.0**-40)
    x, p = computed(program, a, tn.asarray(factor).wait())
    assert_equal_bits(x, program(a, theirs, factor))
    assert p.launches == 1


def test_parts_through_other_views_are_one_launch() -> None:
    a, _ = operands()
    x, wanted = tn.asarray(a), a
    for n in range(ROWS - 1):
        value = tn.permute_dims(x, (1, 0))[None, :, n] * 2
        x = tn.set_at(x, slice(n + 1, n + 2), value)
        wanted = theirs(wanted, n + 1, wanted.T[:, n] * 2)
    with tn.profile() as p:
        x.wait()
    assert_equal_bits(x, wanted)
    assert p.launches == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("program", [rows_of_another, one_of_them_moves_down, backwards])
def test_long_rows_are_right_for_any_number_of_threads(program: Program, threads: int) -> None:
    a, b = operands(shape=(ROWS, 100_001))
    with tn.options(threads=threads):
        x, p = computed(program, a, tn.asarray(b).wait())
    assert_equal_bits(x, program(a, theirs, b))
    assert p.launches < ROWS - 1


def test_parts_of_which_one_must_go_upwards_go_upwards() -> None:
    a, b = operands()
    x = one_of_them_moves_down(tn.asarray(a), ours, tn.asarray(b))
    assert [launch.sequential for launch in launches(planned(x))] == [True]


def test_array_that_replaces_a_part_of_itself_is_whole_before() -> None:
    a, b = operands()
    x = tn.set_at(tn.asarray(a), 1, tn.asarray(b)[0])
    x = tn.set_at(x, slice(None, None, -1), x)
    assert_equal_bits(x, theirs(a, 1, b[0])[::-1])


def test_few_long_parts_are_gone_through_side_by_side() -> None:
    def steps(shape: tuple[int, ...], axis: int, *rest: int) -> int:
        x = tn.zeros(shape).wait()
        for n in range(16):
            key, before = ((*(slice(None),) * axis, i, ..., *rest) for i in (n + 1, n))
            x = tn.set_at(x, key, x[before] + 1)
        return len(planned(x).steps)

    assert [steps((17, n), 0) for n in (50, 4096, 100_000)] == [1, 2, 4]
    assert steps((100_000, 17), 1) == 1
    assert steps((17, 4096, 16), 0, 3) == 2


@pytest.mark.parametrize("both", [True, False])
def test_two_arrays_that_go_on_in_turn_are_one_launch(both: bool) -> None:
    def program(a: Any, b: Any, put: Put) -> tuple[Any, Any]:
        for n in range(ROWS - 1):
            a = put(a, n + 1, a[n] + b[n] * 0.5)
            b = put(b, n + 1, a[n + 1] - b[n])
        return a, b

    a, b = operands()
    for _ in range(3):
        made = list(program(tn.asarray(a), tn.asarray(b), ours)[: 1 + both])
        with tn.profile() as p:
            tn.eval(*made)
        for x, wanted in zip(made, program(a, b, theirs), strict=False):
            assert_equal_bits(x, wanted)
        assert (p.launches, p.copies, p.temporaries) == (1, 0, 0)


def test_loops_over_other_indices_read_a_part_where_it_lies() -> None:
    a, b = operands()
    for _ in range(3):
        x = rows(tn.asarray(a), ours, None)
        wanted = rows(a, theirs, None)
        y = tn.asarray(b)
        for n in range(3):
            y = tn.set_at(y, slice(3 * n, 3 * n + 2), x[n + 4][None, ::-1] + x[n + 1])
        together = [x, y]
        assert_complete(
            schedule_graph(Graph.of([_native.node_of(each) for each in together], (1,)))
        )
        with tn.profile() as p:
            tn.eval(*together)
        del together
        assert_equal_bits(x, wanted)
        for n in range(3):
            b = theirs(b, slice(3 * n, 3 * n + 2), wanted[n + 4][None, ::-1] + wanted[n + 1])
        assert_equal_bits(y, b)
        assert (p.launches, p.copies, p.temporaries) == (2, 0, 0)


def test_parts_are_read_before_another_run_writes_over_them() -> None:
    a, b = operands()
    given = tn.asarray(b).wait()
    for _ in range(3):
        x = rows(tn.asarray(a), ours, None)
        wanted = rows(a, theirs, None)
        y, z = x[4] - given[:3] * x[2], wanted[4] - b[:3] * wanted[2]
        x = tn.set_at(x, slice(2, 7), x[3:8] * 2)
        wanted = theirs(wanted, slice(2, 7), wanted[3:8] * 2)
        assert_complete(schedule_graph(Graph.of([_native.node_of(x), _native.node_of(y)], (1,))))
        with tn.profile() as p:
            tn.eval(x, y)
        assert p.copies == 0
        assert_equal_bits(x, wanted)
        assert_equal_bits(y, z)


def test_part_that_a_call_reads_of_the_last_array_is_not_copied() -> None:
    x = rows(tn.asarray(operands()[0]), ours, None)
    y = tn.sort(x[3])
    found = schedule_graph(Graph.of([_native.node_of(x), _native.node_of(y)], (1,)))
    assert [step.kind for step in found.steps] == ["kernel", "alias", "call"]


def test_runs_that_read_nothing_of_each_other_go_one_after_the_other() -> None:
    a, b = operands(shape=(17, 4096))
    given, wanted = tn.asarray(b).wait(), a.copy()
    for _ in range(3):
        x = tn.asarray(a)
        for n in range(16):
            x = tn.set_at(x, n, given[n] * 2)
            wanted[n] = b[n] * 2
        with tn.profile() as p:
            x.wait()
        assert_equal_bits(x, wanted)
        assert (p.launches, p.copies, p.temporaries) == (2, 0, 0)


def test_no_kernel_is_longer_than_any_other() -> None:
    x = tn.ones((20, 5)).wait()
    for n in range(19):
        value = x[n]
        for i in range(40):
            value = value * 1.5 - i
        x = tn.set_at(x, n + 1, value)
    bodies = [len(launch.kernel.body) for launch in launches(planned(x))]
    assert 5 < len(bodies) < 19
    assert max(bodies) <= 2 * DEFAULT.work.max_body_ops  # with its constants and parameters


KEEPERS: dict[str, tuple[Callable[[Any, int], Any], int]] = {
    "computed": (lambda x, n: x[n] + x[2], 0),
    "as it is": (lambda x, n: capture(x[n]) if isinstance(x, tn.Array) else x[n].copy(), 0),
    "sorted": (lambda x, n: np.sort(x[n]), 0),
    "repeated": (lambda x, n: x[n][None] + np.zeros((3, 1)), 0),
    "folded": (lambda x, n: np.max(x[n]), ROWS),
}
"""What is kept of an array between, and how many arrays may be copied for that."""


@pytest.mark.parametrize(("keep", "copies"), KEEPERS.values(), ids=KEEPERS)
def test_named_intermediate_array_has_memory_of_its_own(
    keep: Callable[[Any, int], Any], copies: int
) -> None:
    a, _ = operands()
    for _ in range(3):
        x, wanted, kept = tn.asarray(a), a, []
        for n in range(ROWS - 1):
            x = tn.set_at(x, n + 1, x[n + 1] + x[n])
            wanted = theirs(wanted, n + 1, wanted[n + 1] + wanted[n])
            kept.append((keep(x, n), keep(wanted, n)))
        together = [x, *(each for each, _ in kept)]
        found = schedule_graph(Graph.of([_native.node_of(each) for each in together], (1,)))
        assert_complete(found)
        assert sum(step.copies for step in found.steps) <= copies
        tn.eval(*together)
        del together, found
        assert_equal_bits(x, wanted)
        for each, row in kept:
            assert_equal_bits(each, row)


def test_row_that_a_later_pass_reads_again_is_not_written_over() -> None:
    a, _ = operands()
    x = tn.asarray(a)
    centred = a[0] - a[0].mean()
    x = tn.set_at(x, 0, x[0] - tn.mean(x[0]))
    x = tn.set_at(x, 1, x[0] / tn.sum(tn.abs(x[0])))
    wanted = theirs(theirs(a, 0, centred), 1, centred / np.abs(centred).sum())
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-14)


def test_array_between_that_somebody_holds_keeps_its_value() -> None:
    a, b = operands()
    x = rows(tn.asarray(a), ours, b)
    wanted = rows(a, theirs, b)
    y = backwards(x, ours, b)
    with tn.profile() as p:
        tn.eval(y)
    assert p.copies == 1
    assert_equal_bits(y, backwards(wanted, theirs, b))
    assert_equal_bits(x, wanted)


def test_array_that_is_read_as_a_whole_between_is_there() -> None:
    a, b = operands()
    x = rows(tn.asarray(a), ours, b)
    total = tn.sum(x)
    x = rows(x, ours, b)
    wanted = rows(a, theirs, b)
    assert total.item() == wanted.sum()
    assert_equal_bits(x, rows(wanted, theirs, b))


def test_failure_between_leaves_the_old_values_whole() -> None:
    a = tn.asarray(np.arange(12).reshape(4, 3))
    x = tn.set_at(a, 1, a[0] + 1)
    x = tn.set_at(x, 2, x[1] ** (x[2] - 8))
    x = tn.set_at(x, 3, x[2])
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            x.wait()
    assert a.tolist() == np.arange(12).reshape(4, 3).tolist()


def test_array_read_at_computed_indices_is_not_written_over() -> None:
    a = operands(shape=(ROWS, ROWS))[0]
    for size in (4, ROWS):
        values = a[:size, :size]
        x = tn.asarray(values)
        x = tn.set_at(x, slice(1, None), tn.tril(x)[:-1])
        assert_equal_bits(x, theirs(values, slice(1, None), np.tril(values)[:-1]))


def test_unfused_updates_are_steps_of_their_own() -> None:
    a, b = operands()
    with tn.options(fuse=False):
        x, p = computed(rows, a, tn.asarray(b))
        assert_equal_bits(x, rows(a, theirs, b))
    assert p.launches >= ROWS - 1


@pytest.mark.parametrize("program", [shifts, shifts_of_rows, rows_divided_by_their_sums])
def test_a_chain_is_planned_few_times(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    fuse = passes.PASSES[4]
    assert fuse.name == "fusion"

    def counted(before: Schedule) -> Schedule:
        tries.append(1)
        return fuse.apply(before)

    a, b = operands()
    x = program(tn.asarray(a), ours, tn.asarray(b))
    listed = [each._replace(apply=counted) if each is fuse else each for each in passes.PASSES]
    monkeypatch.setattr(passes, "PASSES", tuple(listed))
    planned(x)
    assert len(tries) <= 3
