"""Groups: a large graph gives the bits of its nodes computed one by one as they are written."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import computed, program, several
from tenfold import _native
from tenfold.testing import assert_close, assert_equal_bits

MEMBERS = 600
FLOATS = (tn.float16, tn.bfloat16, tn.float32, tn.float64, tn.complex64, tn.complex128)


def check(
    one: Callable[..., tn.Array], *columns: list[Any], grouped: bool = True
) -> list[tn.Array]:
    """Compare what is made of each row with what is made of it by itself."""
    made = [one(*row) for row in zip(*columns, strict=True)]
    p = computed(made)
    assert not grouped or p.launches < len(made) / 4, p
    for x, row in zip(made, zip(*columns, strict=True), strict=True):
        alone = one(*row).wait()
        assert_equal_bits(np.asarray(x), np.asarray(alone))
    return made


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_programs_give_the_bits_of_their_nodes(seed: int, threads: int) -> None:
    nodes = (600, 1200, 3000)[(seed + threads) % 3]
    with tn.options(threads=threads):
        with tn.profile() as by_themselves:
            wanted = program(seed, nodes, lambda function: function, lambda x: x.wait())
        found = program(seed, nodes, tn.function, lambda x: x)
        p = computed(found)
    assert p.gathers > 0
    assert p.launches < by_themselves.launches / 2
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_equal_bits(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_trees_of_products_are_computed_in_groups(threads: int) -> None:
    """Of whole numbers, so that no order of a sum changes bits."""

    def joined(left: Any, right: Any) -> Any:
        return tn.sign(weights @ left + right @ weights) + left

    weights = tn.asarray(np.random.default_rng(0).integers(-3, 4, (4, 4)).astype(float))
    rng = random.Random(threads)
    leaves = [tn.round(x) for x in several(MEMBERS, 4, 4)]
    found: list[Any] = []
    for wrap, done in ((lambda f: f, lambda x: x.wait()), (tn.function, lambda x: x)):
        rng.seed(threads)
        function, trees = wrap(joined), list(leaves)
        while len(trees) > 1:  # a random tree
            at = rng.randrange(len(trees) - 1)
            trees[at : at + 2] = [done(function(trees[at], trees[at + 1]))]
        found += trees
    with tn.options(threads=threads):
        p = computed(found)
    assert p.launches < MEMBERS / 2
    assert_equal_bits(np.asarray(found[0]), np.asarray(found[1]))


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("members", [11, 12, 23])
def test_few_small_members_are_one_launch_that_copies_no_neighbours(members: int) -> None:
    lengths = range(5, 5 + 520 // members)
    for _ in range(2):  # planned, and from the cache of plans
        leaves = [several(members, length) for length in lengths]
        made = [tn.exp(x) * 0.5 - x for group in leaves for x in group]
        p = computed(made)
        few = _native.BATCHES.min_members <= members
        launches = 3 * len(lengths) * (1 if few else members)
        gathers = 2 * len(lengths) if few else 0  # the leaves, twice: results lie side by side
        assert (p.launches, p.gathers) == (launches, gathers), p
        for x, leaf in zip(made, (leaf for group in leaves for leaf in group), strict=True):
            alone = ((tn.exp(leaf).wait() * 0.5).wait() - leaf).wait()
            assert_equal_bits(np.asarray(x), np.asarray(alone))


def test_products_are_within_the_bound_of_a_reordered_sum() -> None:
    function = tn.function(lambda a, x: a @ x)
    matrices, vectors = several(MEMBERS, 5, 7), several(MEMBERS, 7, seed=1)
    for columns in ((matrices, vectors), (matrices[:1] * MEMBERS, vectors)):
        found = [function(a, x) for a, x in zip(*columns, strict=True)]
        assert computed(found).launches < MEMBERS / 4
        for y, a, x in zip(found, *columns, strict=True):
            bound = 14 * np.finfo(float).eps * (np.abs(np.asarray(a)) @ np.abs(np.asarray(x))).max()
            assert_close(np.asarray(y), np.asarray(a) @ np.asarray(x), rtol=0, atol=bound)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_that_differ_have_the_dtype_of_their_operation(dtype: Any) -> None:
    xs = several(MEMBERS, 5, dtype=dtype)
    numbers = [0.1 * i + 0.1 for i in range(MEMBERS)]
    grouped = dtype in (tn.float32, tn.float64)
    check(lambda x, number: x * number, xs, numbers, grouped=grouped)
    check(lambda x, number: number - x, xs, list(range(MEMBERS)), grouped=grouped)


@pytest.mark.parametrize("dtype", [tn.bool, tn.int8, tn.uint8, tn.int64, tn.uint64], ids=str)
def test_whole_numbers_that_differ_have_the_dtype_of_their_operation(dtype: Any) -> None:
    xs = [tn.astype(tn.asarray(np.arange(5) + i % 7), dtype).wait() for i in range(MEMBERS)]
    numbers: list[int] = [i * 37 % 128 for i in range(MEMBERS)]
    if dtype == tn.uint64:
        numbers = [2**63 + i for i in numbers]
    if dtype == tn.bool:
        numbers = [i % 2 == 0 for i in range(MEMBERS)]
    check(lambda x, number: tn.where(x == x, number, x), xs, numbers)
    check(lambda x, number: x + number, xs, numbers)


def test_powers_that_differ_are_those_of_each() -> None:
    xs = several(MEMBERS, 5)
    powers = [(2, 3, -1, 0.5, 2.0, 0, 1, -2, 0.1, 4)[i % 10] for i in range(MEMBERS)]
    check(lambda x, power: tn.abs(x) ** power, xs, powers, grouped=False)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (), (1,)], ids=str)
def test_arrays_of_few_elements_are_computed_in_groups(shape: tuple[int, ...]) -> None:
    function = tn.function(lambda x: (x + 1, tn.sum(x), x * x))
    check(lambda x: function(x)[0], several(MEMBERS, *shape))
    check(lambda x: function(x)[1], several(MEMBERS, *shape))


def test_a_member_that_fails_fails_alone() -> None:
    function = tn.function(lambda a, b: tn.linalg.solve(a, b) * 2)
    matrices = [(x + 5 * tn.eye(3)).wait() for x in several(MEMBERS, 3, 3)]
    matrices[77] = tn.zeros((3, 3))
    sides = several(MEMBERS, 3)
    found = [function(a, b) for a, b in zip(matrices, sides, strict=True)]
    tn.eval(*found)
    for number, (x, a, b) in enumerate(zip(found, matrices, sides, strict=True)):
        if number == 77:
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                x.wait()
        else:
            assert_close(np.asarray(a) @ np.asarray(x), 2 * np.asarray(b), rtol=1e-9, atol=1e-9)


def test_results_that_are_inputs_may_be_assigned_to() -> None:
    function = tn.function(lambda x: (x, x + 1, x[::-1]))
    xs = several(MEMBERS, 4)
    before = [np.array(x) for x in xs]
    found = [function(x) for x in xs]
    computed([y for results in found for y in results])
    for same, _, turned in found:
        same[0] = turned[0] = 100.0
    for x, was, (same, more, turned) in zip(xs, before, found, strict=True):
        assert_equal_bits(np.asarray(x), was)
        assert_equal_bits(np.asarray(more), was + 1)
        assert np.asarray(same).tolist() == [100.0, *was[1:]]
        assert np.asarray(turned).tolist() == [100.0, *was[::-1][1:]]


def test_rows_of_a_group_may_be_assigned_to() -> None:
    function = tn.function(lambda x: x * 2)
    found = [function(x) for x in several(MEMBERS, 4)]
    computed(found)
    before = [np.array(x) for x in found]
    for x in found[::2]:
        x[0] = 7.0
        x += 1
    for number, (x, was) in enumerate(zip(found, before, strict=True)):
        wanted = was if number % 2 else np.array([7.0, *was[1:]]) + 1
        assert_equal_bits(np.asarray(x), wanted)


def test_one_value_of_a_long_chain_may_be_read() -> None:
    function = tn.function(lambda h, x: (tn.tanh(h) + x, h * x))
    xs = several(400, 4)
    h, states = xs[0], []
    for x in xs:
        h, other = function(h, x)
        states.append((h, other))
    middle = np.asarray(states[200][0])
    wanted = xs[0]
    for x, (state, other) in zip(xs, states, strict=True):
        assert_equal_bits(np.asarray(other), np.asarray((wanted * x).wait()))
        wanted = (tn.tanh(wanted) + x).wait()
        assert_equal_bits(np.asarray(state), np.asarray(wanted))
    assert_equal_bits(middle, np.asarray(states[200][0]))


def test_calls_are_assigned_to_parts() -> None:
    function = tn.function(lambda x, y: tn.tanh(x) + y)
    xs = several(MEMBERS, 4)
    rows = tn.zeros((MEMBERS, 4))
    before = xs[0]
    for i, x in enumerate(xs):
        rows[i] = function(x, before if i % 3 == 0 else xs[0])
        before = rows[i]
    wanted = xs[0]
    for i, (x, row) in enumerate(zip(xs, np.asarray(rows), strict=True)):
        wanted = (tn.tanh(x) + (wanted if i % 3 == 0 else xs[0])).wait()
        assert_equal_bits(row, np.asarray(wanted))


def test_a_row_that_is_held_keeps_little_of_its_group() -> None:
    function = tn.function(lambda x: x * 2 + 1)
    x = tn.ones(30_000).wait()
    found = [function(x * number) for number in range(300)]
    p = computed(found)
    assert 300 / 16 <= p.batches <= 300 / 8  # so many large rows of calls lie in one array
    assert np.asarray(found[5])[0] == 11


def test_few_rows_that_are_held_are_copied() -> None:
    rows = [tn.asarray([float(i), 1.0]) * 2 + 1 for i in range(1024)]
    held = rows[7]
    while len(rows) > 1:
        rows = [one + other for one, other in zip(rows[::2], rows[1::2], strict=True)]
    assert computed([*rows, held]).batches >= 1
    assert held.tolist() == [15.0, 3.0]
    _, _, others = _native.references_of(_native.node_of(held))
    assert others == 0  # its memory is its own


@pytest.mark.parametrize("count", [2, 8, 200])
def test_bits_do_not_depend_on_how_often_a_graph_came(count: int) -> None:
    w, v, *xs = several(2, 64, 64) + several(count, 64)

    @tn.function
    def product(x: tn.Array) -> tn.Array:
        return tn.tanh(w @ x)

    @tn.function
    def chain(x: tn.Array) -> tuple[tn.Array, tn.Array]:
        return w @ v @ x, tn.sum(x)

    def several_calls() -> tn.Array:
        ends = [chain(product(x)) for x in xs]
        return tn.concat([a + b for a, b in ends] + [product(x) for x in xs])

    bits = {np.asarray(several_calls()).tobytes() for _ in range(_native.TIERS.hot_runs + 4)}
    assert len(bits) == 1


@pytest.mark.parametrize("multiplies", [True, False])
def test_bits_of_a_call_that_is_alone_do_not_depend_on_what_came_before(multiplies: bool) -> None:
    w, *xs = several(1, 64, 64) + several(300, 64)
    other = tn.function(lambda x: tn.tanh(x) + 1)

    @tn.function
    def lone(a: tn.Array, b: tn.Array, c: tn.Array) -> tuple[tn.Array, tn.Array]:
        return tn.tanh(w @ a if multiplies else a) + b * c, a - c

    def bits(places: tuple[int, int, int]) -> bytes:
        first, second = lone(*(xs[i] for i in places))
        made = [other(x) for x in xs] + [first + second]
        computed(made)
        return np.asarray(made[-1]).tobytes()

    variants = [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]
    before = [bits(places) for places in variants]
    tn.trim()
    assert [bits(places) for places in reversed(variants)] == before[::-1]


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("count", [2047, 2048, 2049, 3000])
def test_a_large_stack_of_all_members_does_not_prevent_their_batches(count: int) -> None:
    weight = tn.asarray(np.random.default_rng(1).random((32, 8)))
    bias = tn.asarray(np.random.default_rng(2).random(32))

    @tn.function
    def layer(x: tn.Array) -> tn.Array:
        return tn.tanh(weight @ x + bias)

    inputs = np.random.default_rng(3).random((count, 8))
    for _ in range(2):
        whole = tn.stack([layer(tn.asarray(x)) for x in inputs])
        p = computed([whole])
        assert p.launches <= 4, p
        expected = np.tanh(inputs @ np.asarray(weight).T + np.asarray(bias))
        np.testing.assert_allclose(np.asarray(whole), expected, 1e-12, 1e-12)


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("length", [3, 1000])
def test_operations_that_have_been_computed_do_not_make_a_graph_deep(length: int) -> None:
    rng = np.random.default_rng(3)
    start, *others = rng.random((601, 8)).astype(np.float32)
    shared = tn.asarray(start)
    for _ in range(length):
        shared = shared * np.float32(0.5) + 1
    given = [*map(tn.asarray, others)]
    sums = [tn.tanh(shared + x) for x in given]  # below all of them is a chain
    shared.wait()
    with tn.profile() as p:
        tn.eval(*sums)
        found = [np.asarray(x) for x in sums]
    assert p.batches == 2
    assert p.launches <= 4
    for one, x in zip(found, given, strict=True):
        assert one.tobytes() == np.asarray(tn.tanh(shared + x)).tobytes()


@pytest.mark.usefixtures("fused_multiply_add")
def test_small_trees_of_new_structure_are_computed_call_by_call_with_the_bits_of_a_plan() -> None:
    rng = np.random.default_rng(5)
    w, u = (tn.asarray(rng.normal(size=(12, 12)).astype(np.float32)) for _ in range(2))
    leaves = several(20, 12, dtype=np.float32)

    @tn.function
    def cell(x: tn.Array, below: list[tuple[tn.Array, tn.Array]]) -> tuple[tn.Array, tn.Array]:
        total = sum((h * c for h, c in below), x)
        return tn.tanh(total), tn.sigmoid(total)

    def encode(tree: Any) -> tuple[tn.Array, tn.Array]:
        if isinstance(tree, int):
            return cell(w @ leaves[tree], [])
        return cell(w @ leaves[0], [(u @ h, c) for h, c in map(encode, tree)])

    trees = [(1, 2), ((1, 2), 3), ((3, (4, 5)), 1), ((1, 2), (3, (4, (5, 6)))), (((1, 7), 3), 2)]
    for tree in trees:
        found = encode(tree)[0].wait()
        with tn.options(hot_threshold=1):
            planned = [encode(tree)[0].wait() for _ in range(2)][1]
        assert_equal_bits(np.asarray(found), np.asarray(planned))
    with tn.profile() as p:
        encode((((8, 2), (3, 4)), ((5, 6), (7, (1, 2)))))[0].wait()
    assert p.compiles == 0, p
    assert p.launches > 30, p
