"""What is replayed has the bits of what was planned: other values, other scalars, other options."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.random.expression_draft import Seeded
from tests.random.random_programs import Program, built, generate

import tenfold as tn
from tenfold import _native, pipeline
from tenfold.core.graph import Graph
from tenfold.rewrite.rule import Match
from tenfold.schedule import passes
from tenfold.schedule.in_place_updates import choose_updates
from tenfold.schedule.schedule_ir import Schedule
from tenfold.testing import assert_equal_bits

PROGRAMS = 40
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 3.7, 1e300, -2.25, float("inf"), float("nan"))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the graphs that Python has seen."""
    seen: list[int] = []
    original: Callable[..., object] = pipeline.optimise

    def noted(graph: Graph) -> object:
        seen.append(len(graph))
        return original(graph)

    monkeypatch.setattr(pipeline, "optimise", noted)
    tn.trim()
    with tn.options(tier=1):
        yield seen


def values(program: Program) -> list[bytes]:
    arrays = built(program)
    tn.eval(*arrays.values())
    return [np.asarray(each).tobytes() for each in arrays.values()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_program_computed_again_has_the_same_bits(seed: int, planned: list[int]) -> None:
    program = generate(Seeded(seed))
    first = values(program)
    assert values(program) == first


def test_other_values_are_replayed_without_python(planned: list[int]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        a, b = rng.normal(size=(2, 30, 40))
        x, y = tn.asarray(a), tn.asarray(b)
        assert_equal_bits((x - y) * 2.5 + x[::-1], (a - b) * 2.5 + a[::-1])
    assert len(planned) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64", "int8", "bool"])
def test_every_scalar_enters_a_replay_as_it_is(dtype: str, planned: list[int]) -> None:
    x = np.arange(-3, 4).astype(dtype)
    numbers = NUMBERS if dtype[0] in "fc" else (0, 1, -1, 2, 3, 5, 100, -100, True)
    for number in (*numbers, *numbers):
        with np.errstate(all="ignore"):
            wanted = x * number + number
        assert_equal_bits(tn.asarray(x) * number + number, wanted)


def test_numbers_that_meet_an_array_of_one_number_are_replayed(planned: list[int]) -> None:
    for number in (3.7, 1e300, 17.5, -3.3, 41.0):
        x = tn.zeros(8)
        x[2:] += number
        assert x.tolist() == [0.0] * 2 + [number] * 6
        assert (tn.ones(8) * number).tolist() == [number] * 8
    assert len(planned) == 2


def test_a_rule_that_looks_at_a_number_is_asked_for_each(planned: list[int]) -> None:
    def big(match: Match) -> bool:
        number = match["y"]
        return number.is_scalar and number.scalar > 100

    x, y = tn.rules.variables("x y")
    with tn.rules.using(tn.Rule("big", x * y, x * 0.0, when=big, exactness="bitwise")):
        for number in (50.25, 150.25, 60.25, 160.25, 50.25, 150.25):
            found = (tn.asarray([1.0, 2.0]) * number).tolist()
            assert found == ([0.0, 0.0] if number > 100 else [number, 2 * number])
    assert (tn.asarray([1.0, 2.0]) * 150.25).tolist() == [150.25, 300.5]


def test_options_are_part_of_what_is_replayed(planned: list[int]) -> None:
    x = tn.asarray([1.0, float("nan")])
    y = tn.asarray([3.0, 4.0])
    for _ in range(2):
        assert_equal_bits(x / y, np.asarray([1.0, np.nan]) / [3.0, 4.0])
        with tn.options(check_nans=True), pytest.raises(RuntimeError):
            ((y - y) / (y - y)).wait()
        with tn.options(device="reference"):
            assert_equal_bits(tn.asarray([1.0]) + 1, np.asarray([2.0]))


def test_a_plan_that_was_made_under_other_options_is_not_replayed(planned: list[int]) -> None:
    x = tn.asarray(np.arange(1000.0))

    def kernels(**options: bool) -> int:
        with tn.options(**options), tn.profile() as p:
            ((x + 0.5) * x - 1.5).wait()
        return p.kernels

    for _ in range(3):
        assert (kernels(fuse=True), kernels(fuse=False)) == (1, 3)
    assert len(planned) == 2


def test_live_values_are_kept_by_a_replay(planned: list[int]) -> None:
    x = tn.asarray(np.arange(5.0))
    for _ in range(3):
        part = x * 3.25
        _native.node_of(part).passed_through()  # by an earlier evaluation
        total = tn.sum(part)
        total.wait()
        before = _native.read_counters()["kernels"]
        assert_equal_bits(part, np.arange(5.0) * 3.25)
        assert _native.read_counters()["kernels"] == before
        assert tn.sum(x * 3.25).item() == total.item()


@pytest.mark.usefixtures("fused_multiply_add")
def test_a_second_part_computes_the_whole_in_a_replay_too(planned: list[int]) -> None:
    x = tn.asarray(np.arange(100.0))
    for _ in range(3):
        y = tn.exp(x)
        with tn.profile() as one:
            y[3].wait()
        with tn.profile() as two:
            y[5].wait()
        with tn.profile() as three:
            y[7].wait()
        assert (one.kernels, two.kernels, three.kernels) == (1, 1, 0)


def test_a_failure_in_a_replay_names_its_line(planned: list[int]) -> None:
    x = tn.asarray(np.arange(5))
    for at in (1, 2, 7, 3, 9):
        found = tn.take(x * 2, tn.asarray([at - 1]) + 1)
        if at < 5:
            assert found.tolist() == [2 * at]
        else:
            with pytest.raises(IndexError, match=r"test_replay\.py"):
                found.wait()


@pytest.mark.parametrize("tier", ["auto", "0", "1"])
def test_value_that_several_launches_write_is_published_when_it_is_complete(tier: str) -> None:
    ids = tn.asarray(np.arange(8) % 5)
    with tn.options(tier=tier):
        for _ in range(3):
            x = tn.asarray(np.ones((8, 8, 33)))
            zeros = x - x
            sums = tn.segment_sum(zeros, ids, 5)
            joined = tn.concat([zeros, sums])
            del x  # its buffer may be overwritten, but not before `joined` is complete
            tn.eval(joined)
            assert not np.asarray(joined).any()


def test_graph_of_which_another_thread_computes_a_node_is_planned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meanwhile: list[bool] = []

    def apply(schedule: Schedule) -> Schedule:
        decided = choose_updates(schedule)
        if not meanwhile:
            meanwhile.append(True)
            named.wait()  # as another thread does
        return decided

    with tn.options(tier="1"):
        named = tn.asarray(np.arange(1000.0)) * 3
        changed = tn.asarray(named, copy=True)
        changed[10:20] = -1.0
        first, *others = passes.PASSES
        monkeypatch.setattr(passes, "PASSES", (first._replace(apply=apply), *others))
        changed.wait()
        monkeypatch.undo()
        for _ in range(2):  # the plan is not kept for graphs in which that node is pending
            expected = np.arange(1000.0) * 3
            assert named.tolist() == expected.tolist()
            expected[10:20] = -1
            assert changed.tolist() == expected.tolist()
            named = tn.asarray(np.arange(1000.0)) * 3
            changed = tn.asarray(named, copy=True)
            changed[10:20] = -1.0
            changed.wait()
