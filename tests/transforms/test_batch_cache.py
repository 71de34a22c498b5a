"""Groups that are like earlier ones: computed without Python, with the bits of their nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import program, several
from tenfold import _native
from tenfold._native import Type
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import FLOAT32
from tenfold.runtime.devices import cpu
from tenfold.testing import assert_close, assert_equal_bits
from tenfold.transforms import batch_compiler
from tenfold.transforms.batch_compiler import compute_batch

MEMBERS = 600
OFTEN = 6
"""Evaluations after which a form of groups is known."""
Make = Callable[[], list[tn.Array]]


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the members of each group that Python computes."""
    noted: list[int] = []

    def counted(*given: Any) -> Any:
        noted.append(given[3])
        return compute_batch(*given)

    monkeypatch.setattr(batch_compiler, "compute_batch", counted)
    return noted


def computed(arrays: list[tn.Array]) -> list[np.ndarray]:
    tn.eval(*arrays)
    return [np.asarray(x) for x in arrays]


def settled(make: Make) -> None:
    """Have the groups known."""
    for _ in range(OFTEN):
        computed(make())


def known() -> int:
    return next(entries for name, entries, *_ in _native.caches() if name == "batches")


@pytest.mark.usefixtures("no_history")
def test_python_computes_a_group_until_it_is_known(by_python: list[int]) -> None:
    rounds = iter(range(100))

    def make() -> list[tn.Array]:
        return [tn.tanh(x + 1) for x in several(MEMBERS, 4, seed=next(rounds))]

    settled(make)
    assert by_python
    by_python.clear()
    given = several(MEMBERS, 4, seed=77)
    found = computed([tn.tanh(x + 1) for x in given])
    assert by_python == []
    for one, x in zip(found, given, strict=True):
        assert_equal_bits(one, np.asarray(tn.tanh(x + 1)))


def test_other_numbers_of_members_need_no_python(by_python: list[int]) -> None:
    given = several(1024, 4)
    rows = np.stack(given)
    with tn.options(tier=1):  # else optimised kernels need a new plan once
        settled(lambda: [x * x - 1 for x in given[:600]])
        by_python.clear()
        for members in range(1024, 512, -37):
            found = computed([x * x - 1 for x in given[:members]])
            assert_equal_bits(np.stack(found), (rows * rows - 1)[:members])
    assert by_python == []


def test_shared_arguments_of_calls_in_new_places_need_no_python(by_python: list[int]) -> None:
    cell = tn.function(lambda x, y, z: tn.exp(x) * y - z)
    given = several(3 * MEMBERS, 7)
    shared = several(1, 7, seed=5)[0]

    def make(place: int) -> list[list[tn.Array]]:
        calls = [given[3 * i : 3 * i + 3] for i in range(MEMBERS)]
        return [[*one[:place], shared, *one[place + 1 :]] for one in calls]

    with tn.options(tier=1):
        for _ in range(2):  # a batch has a plan from its second time on
            computed([cell(*one) for one in make(0)])
        by_python.clear()
        for place in (0, 1, 2):
            calls = make(place)
            found = computed([cell(*one) for one in calls])
            for result, one in zip(found, calls, strict=True):
                assert_equal_bits(result, np.asarray(cell(*one)))
    assert by_python == []


def test_plans_of_few_rows_and_of_many_do_not_replace_each_other(by_python: list[int]) -> None:
    given = several(MEMBERS, 128)
    matrix = tn.asarray(np.random.default_rng(2).random((128, 128)))

    def make() -> list[tn.Array]:
        first = [matrix @ x for x in given]
        return [*first, *(matrix @ x for x in first[:2])]

    with tn.options(tier=1):
        settled(make)
        by_python.clear()
        computed(make())
    assert by_python == []


def test_rows_of_any_number_may_have_the_length_of_an_axis(by_python: list[int]) -> None:
    given, others = several(700, 30), several(700, 600)
    with tn.options(tier=1):
        settled(lambda: [tn.sum(x) * 2 + x for x in given])
        settled(lambda: [tn.sum(x) * 2 + x for x in others])
        singles = np.stack([np.asarray(tn.sum(x) * 2 + x) for x in others])
        by_python.clear()
        for members in (600, 601, 520, 699):
            found = computed([tn.sum(x) * 2 + x for x in others[:members]])
            assert_equal_bits(np.stack(found), singles[:members])
    assert by_python == []


@tn.op(
    shape=lambda x: x.shape,
    reference=lambda x: x + x,
    batch=lambda x: x * 2 if x.shape[0] < 560 else x + x + 0,
)
def doubled(x: Any) -> Any:
    "Twice each element; its batch rule looks at the number of members."


def test_operations_of_users_are_batched_by_their_rules_for_each_number(
    by_python: list[int],
) -> None:
    x = _native.placeholder(Type((4,), FLOAT32, "cpu"))
    call = tn.function(lambda y: doubled(y) - 1)(x)
    for result in (doubled(x) + 1, call):
        member = Subgraph("member", [_native.node_of(result)], [_native.node_of(x)])
        assert not batch_compiler.is_uniform(member)
    given = several(1024, 4)
    for members in (530, 1024):
        by_python.clear()
        settled(lambda members=members: [doubled(x) - 1 for x in given[:members]])
        assert by_python


@pytest.mark.parametrize("limit", [17, 33, 100])
def test_rows_that_nobody_reads_keep_the_limit(limit: int) -> None:
    given = several(MEMBERS, 4)
    with tn.options(batch_limit=limit):
        for _ in range(OFTEN + 2):
            found = computed([tn.sum(x * x) / (n + 1) for n, x in enumerate(given)])
    for n, (one, x) in enumerate(zip(found, given, strict=True)):
        assert_equal_bits(one, np.asarray(tn.sum(x * x) / (n + 1)))


@pytest.mark.parametrize(
    ("number", "other"), [(0.0, -0.0), (1, 1.0), (True, 1), (float("nan"), 2.5), (2**70, 2**70 + 1)]
)
def test_numbers_that_differ_are_other_groups(number: Any, other: Any) -> None:
    given = several(MEMBERS, 4)
    settled(lambda: [x * number for x in given])
    found = computed([x * other for x in given])
    for one, x in zip(found, given, strict=True):
        assert_equal_bits(one, np.asarray(x) * float(other))


def test_numbers_that_differ_among_members_are_columns() -> None:
    given = several(MEMBERS, 4)
    for begin in range(OFTEN + 1):
        found = computed([x * (begin + n) for n, x in enumerate(given)])
    for n, (one, x) in enumerate(zip(found, given, strict=True)):
        assert_equal_bits(one, np.asarray(x) * (OFTEN + n))


def test_shared_operand_is_read_anew() -> None:
    weights = tn.asarray(np.arange(4.0))
    cell = tn.function(lambda x: (x * weights + tn.sum(x), x))
    given = several(MEMBERS, 4)

    def make() -> list[tn.Array]:
        return [part for x in given for part in cell(x * 2)]

    settled(make)
    weights += 10.0
    found = computed(make())
    for one, x in zip(found[::2], given, strict=True):
        double = x * 2
        assert_equal_bits(one, np.asarray(double * weights + tn.sum(double)))


def test_results_that_no_member_changes_have_a_row_for_each() -> None:
    weights = tn.asarray(np.arange(4.0))
    cell = tn.function(lambda x: (x + 1, weights * 2, x))
    given = several(MEMBERS, 4)
    for _ in range(OFTEN + 1):
        found = computed([part for x in given for part in cell(x * 2)])
    for row, x in enumerate(given):
        assert_equal_bits(found[3 * row], np.asarray(x) * 2 + 1)
        assert_equal_bits(found[3 * row + 1], np.arange(4.0) * 2)
        assert_equal_bits(found[3 * row + 2], np.asarray(x) * 2)


def test_results_of_one_evaluation_are_not_written_over_by_the_next() -> None:
    given = [several(MEMBERS, 4, seed=seed) for seed in range(2 * OFTEN)]
    made = [[tn.tanh(x * 3) for x in each] for each in given]
    kept = [computed(each) for each in made]
    for found, arrays in zip(kept, given, strict=True):
        for one, x in zip(found, arrays, strict=True):
            assert_equal_bits(one, np.asarray(tn.tanh(x * 3)))


def test_products_of_known_groups_are_those_of_new_ones() -> None:
    w = tn.asarray(np.random.default_rng(1).normal(size=(8, 8)))
    for seed in range(OFTEN + 2):
        given = several(MEMBERS, 8, seed=seed)
        for one, x in zip(computed([tn.tanh(w @ x) for x in given]), given, strict=True):
            assert_close(one, np.tanh(np.asarray(w) @ np.asarray(x)), atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_programs_that_come_again_have_the_same_bits(seed: int) -> None:
    def found() -> list[bytes]:
        made = program(seed, 600, tn.function, lambda x: x)
        return [x.tobytes() for x in computed(made)]

    wanted = [np.asarray(x).tobytes() for x in program(seed, 600, lambda f: f, lambda x: x.wait())]
    for _ in range(OFTEN):
        assert found() == wanted
    tn.trim()
    assert found() == wanted


def test_trim_forgets_known_groups() -> None:
    given = several(MEMBERS, 4)
    settled(lambda: [x * 5 + 2 for x in given])
    assert known() > 0
    tn.trim()
    assert known() == 0
    found = computed([x * 5 + 2 for x in given])
    for one, x in zip(found, given, strict=True):
        assert_equal_bits(one, np.asarray(x) * 5 + 2)


def test_threads_compute_known_groups_at_once() -> None:
    w = tn.asarray(np.random.default_rng(1).integers(-3, 4, (64, 64)).astype(float))
    cell = tn.function(lambda x, y: (w @ x + y) * 0.5)
    wrong: list[str] = []

    def work(seed: int) -> None:
        given = [tn.round(x) for x in several(MEMBERS, 64, seed=seed)]
        wanted = [np.asarray(w) @ np.asarray(x) + np.asarray(x) for x in given]
        for _ in range(2 * OFTEN):
            for one, row in zip(computed([cell(x, x) for x in given]), wanted, strict=True):
                if one.tobytes() != (row * 0.5).tobytes():
                    wrong.append(f"{seed}: {one} is not {row * 0.5}")
                    return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_options_are_those_of_the_evaluation(by_python: list[int]) -> None:
    given = several(MEMBERS, 4)

    def make() -> list[tn.Array]:
        return [tn.tanh(x) * 7 for x in given]

    settled(make)
    by_python.clear()
    with tn.options(verify=True):
        computed(make())
    assert by_python, "who compares needs all members"
    with tn.options(threads=1):
        found = computed(make())
    for one, x in zip(found, given, strict=True):
        assert_equal_bits(one, np.asarray(tn.tanh(x) * 7))


def test_a_call_that_fails_fails_alone_where_its_group_is_known() -> None:
    table = tn.asarray(np.arange(10.0))
    pick = tn.function(lambda at, x: tn.take(table, at) + x)
    given = several(MEMBERS, 3)
    good = [tn.asarray(np.array([1, 2, n % 10])) for n in range(MEMBERS)]
    settled(lambda: [pick(at, x) for at, x in zip(good, given, strict=True)])
    bad = list(good)
    bad[17] = tn.asarray(np.array([1, 2, 10]))
    made = [pick(at, x) for at, x in zip(bad, given, strict=True)]
    tn.eval(*made)
    with pytest.raises(IndexError):
        made[17].wait()
    for n in (16, 18):
        assert_equal_bits(np.asarray(made[n]), np.array([1.0, 2.0, n % 10]) + np.asarray(given[n]))


@pytest.mark.parametrize("members", [2, 5, 17, 600])
def test_a_function_of_python_is_called_once_for_each_member(members: int) -> None:
    calls: list[int] = []

    def reference(x: np.ndarray) -> np.ndarray:
        calls.append(x.size)
        return x * 2

    @tn.op(shape=lambda x: x.shape, reference=reference)
    def twice(x: tn.Array) -> tn.Array:
        """Twice the elements."""

    @tn.function
    def cell(x: tn.Array) -> tn.Array:
        return tn.tanh(twice(x) + 1)

    inputs = [np.random.default_rng(i).random(4) for i in range(members)]
    for _ in range(2):
        calls.clear()
        others = [x + 1 for x in several(MEMBERS, 4)]
        found = computed([cell(tn.asarray(x)) for x in inputs] + others)
        assert len(calls) == members
        for x, result in zip(inputs, found, strict=False):
            assert_close(result, np.tanh(x * 2 + 1), ulp=4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("members", [2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40])
@pytest.mark.parametrize("length", [1, 3, 8, 16, 17, 32, 33])
def test_short_rows_of_any_number_have_the_bits_of_single_ones(members: int, length: int) -> None:
    rng = np.random.default_rng(members)
    matrix = tn.asarray(rng.random((length, length)))

    @tn.function
    def cell(x: tn.Array, y: tn.Array) -> tn.Array:
        return tn.tanh((x + y) @ matrix)

    inputs = [(rng.random(length), rng.random(length)) for _ in range(members)]
    single = [np.asarray(cell(tn.asarray(x), tn.asarray(y))) for x, y in inputs]
    for _ in range(5):
        others = [x + 1 for x in several(MEMBERS, 4)]
        found = computed([cell(tn.asarray(x), tn.asarray(y)) for x, y in inputs] + others)
        for result, expected in zip(found, single, strict=False):
            assert_close(result, expected, ulp=4)


def test_sizes_share_a_plan_until_its_kernels_are_optimised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned: list[int] = []
    bind = cpu.bind_symbolic

    def counted(original: Any, *others: Any) -> Any:
        planned.append(len(original))
        return bind(original, *others)

    monkeypatch.setattr(cpu, "bind_symbolic", counted)
    cell = tn.function(lambda x, y: tn.exp(x) * 2.75 - y)
    given = several(1000, 7, seed=5)
    pairs = [*pairwise(given)]
    wanted = [np.asarray(cell(*pair)).tobytes() for pair in pairs]
    for size in range(520, 680, 8):
        found = computed([cell(*pair) for pair in pairs[:size]])
        assert [x.tobytes() for x in found] == wanted[:size]
    assert 1 <= len(planned) <= 6


@pytest.mark.parametrize("multiplies", [False, True])
def test_calls_alone_have_the_bits_of_their_pattern_however_often_they_came(
    multiplies: bool,
) -> None:
    w = tn.asarray(np.random.default_rng(1).integers(-3, 4, (4, 4)).astype(float))

    @tn.function
    def cell(first: tn.Array, rest: list[tn.Array]) -> tn.Array:
        total = w @ first if multiplies else tn.tanh(first)
        return sum(rest, total) * 0.5

    given = several(MEMBERS, 4)
    patterns = [[given[k % one] for k in range(5)] for one in (1, 2, 3, 5)]
    wanted = None
    for _ in range(25):
        alone = [cell(given[k], [*pattern[: 4 + k % 2]]) for k, pattern in enumerate(patterns)]
        found = computed([*alone, *(tn.tanh(x + 1) for x in given)])
        bits = [x.tobytes() for x in found]
        assert wanted in (None, bits)
        wanted = bits
    for found, k in zip(computed(alone), range(4), strict=True):
        first = np.asarray(given[k])
        start = np.asarray(w) @ first if multiplies else np.asarray(tn.tanh(given[k]))
        expected = sum(map(np.asarray, patterns[k][: 4 + k % 2]), start) * 0.5
        if multiplies:
            assert_close(found, expected, atol=1e-12)
        else:
            assert_equal_bits(found, expected)
