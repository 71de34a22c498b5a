"""Pushes of one signature are one launch on stacked operands, with the bits that each has alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.ops.batch_rules import Members

COUNT = 70
"""Members: more than a batch of 64, and a number that is padded."""

Inputs = Callable[[np.random.Generator], tuple[Any, ...]]


def matrix(*shape: int, dtype: str = "float64") -> Callable[[np.random.Generator], np.ndarray]:
    return lambda random: (4 * random.standard_normal(shape)).astype(dtype)


def regular(n: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda random: random.random((n, n)) + n * np.eye(n)


def transposed(*shape: int) -> Callable[[np.random.Generator], tn.Array]:
    return lambda random: tn.eval(tn.asarray(4 * random.standard_normal(shape[::-1])).T)


def places(count: int, end: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda random: random.integers(0, end, count)


def number(random: np.random.Generator) -> float:
    return float(random.integers(1, 5)) / 2


Case = tuple[str, Sequence[Callable[[np.random.Generator], Any]], dict[str, Any], int]
CASES: dict[str, Case] = {
    "sums": ("add", (matrix(50), matrix(50)), {}, 1),
    "numbers": ("multiply", (matrix(5), number), {}, 1),
    "broadcast": ("subtract", (matrix(3, 4), matrix(4)), {}, 1),
    "strided": ("exp", (transposed(3, 4),), {}, 1),
    "mixed dtypes": ("add", (matrix(6, dtype="float32"), matrix(6)), {}, 1),
    "reduction": ("sum", (matrix(6, 5),), {"axis": 0}, 1),
    "place of the maximum": ("argmax", (matrix(6, 5),), {"axis": 1}, 1),
    "products": ("matmul", (matrix(4, 4), matrix(4, 4)), {}, 1),
    "products of two dtypes": ("matmul", (matrix(4, 3, dtype="float32"), matrix(3, 5)), {}, 1),
    "transposed products": ("matmul", (transposed(5, 4), transposed(4, 3)), {}, 1),
    "transposed and not": ("matmul", (transposed(5, 4), matrix(4, 3)), {}, 1),
    "complex products": ("matmul", (matrix(3, 4, dtype="complex128"), matrix(4, 3)), {}, 1),
    "matrix times vector": ("matmul", (matrix(9, 12), matrix(12)), {}, 1),
    "vector times matrix": ("matmul", (matrix(12), matrix(12, 9)), {}, 1),
    "columns": ("matmul", (matrix(5, 16), matrix(16, 1)), {}, 1),
    "vectors": ("vecdot", (matrix(12), matrix(12)), {}, 1),
    "stacks": ("matmul", (matrix(3, 4, 4), matrix(3, 4, 4)), {}, 1),
    "tensordot": ("tensordot", (matrix(3, 4), matrix(4, 5)), {"axes": 1}, 1),
    "inverse": ("linalg.inv", (regular(4),), {}, 1),
    "solve": ("linalg.solve", (regular(4), matrix(4)), {}, 1),
    "sort": ("sort", (matrix(9),), {}, 1),
    "order": ("argsort", (matrix(9),), {}, 1),
    "take": ("take", (matrix(6, 3), places(4, 6)), {"axis": 0}, 2),
    "running sum": ("cumulative_sum", (matrix(9, 4),), {"axis": 0}, 1),
    "differences": ("diff", (matrix(9),), {}, 1),
    "slices": ("linalg.cross", (matrix(3), matrix(2, 3)), {}, 2),
}
"""An operation, the inputs of a member, parameters, and the launches of a batch."""


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def members_of(case: Case, seed: int = 1) -> list[tuple[Any, ...]]:
    random = np.random.default_rng(seed)
    return [tuple(make(random) for make in case[1]) for _ in range(COUNT)]


def alone(case: Case, members: Sequence[tuple[Any, ...]]) -> list[np.ndarray]:
    """What each is by itself."""
    operation, params = attrgetter(case[0])(tn), case[2]
    return [
        np.asarray(operation(*[x if type(x) is float else tn.asarray(x) for x in member], **params))
        for member in members
    ]


def pushed(
    engine: tn.Engine, case: Case, members: Sequence[tuple[Any, ...]]
) -> tuple[Any, list[np.ndarray]]:
    """The counters of a held batch, and its results."""
    operator = attrgetter(case[0])(tn.operators)
    puts = [[x if type(x) is float else engine.put(x) for x in member] for member in members]
    with tn.profile() as p:
        with engine.hold():
            handles = [engine.push(operator, *inputs, **case[2]) for inputs in puts]
        engine.flush()
    return p, [np.asarray(handle.get()) for handle in handles]


def assert_same(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("fused_multiply_add")
def test_batch_is_one_launch_with_the_bits_of_each_alone(engine: tn.Engine, name: str) -> None:
    case = CASES[name]
    for seed in (1, 2):  # the batch that is planned, and the next one
        members = members_of(case, seed)
        p, found = pushed(engine, case, members)
        assert (p.launches, p.batches) == (case[3], 1)
        assert_same(found, alone(case, members))


VIEWS: dict[str, Callable[[tn.Array], tn.Array]] = {
    "step": lambda x: x[:, ::2],
    "flip": tn.flip,
    "transpose": tn.matrix_transpose,
    "broadcast": lambda x: tn.broadcast_to(x[0], (3, 4)),
    "diagonal": tn.linalg.diagonal,
}


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["multiply", "less", "fma"])
@pytest.mark.usefixtures("fused_multiply_add")
def test_number_that_members_share_is_read_beside_strided_operands(
    engine: tn.Engine, name: str, view: str, dtype: str
) -> None:
    random, operator = np.random.default_rng(3), getattr(tn.operators, name)
    matrices = [tn.asarray(random.integers(-2, 3, (4, 4)), dtype=dtype) for _ in range(3)]
    arrays = [tn.eval(VIEWS[view](x)) for x in matrices]
    for numbers in [(3, 2), (1, 3), (2, 1), (1, 1)]:
        used = numbers if name == "fma" else numbers[:1]
        with tn.profile() as p:
            with engine.hold():
                handles = [engine.push(operator, x, *used) for x in arrays]
            engine.flush()
        assert (p.launches, p.batches) == (1, 1)
        wanted = [np.asarray(operator(x, *used)) for x in arrays]
        assert_same([np.asarray(handle.get()) for handle in handles], wanted)


@pytest.mark.cpu  # another device reads numbers as arrays
def test_batch_without_the_number_of_its_members_is_not_planned(
    engine: tn.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Members.call

    def call_with_one(members: Members, operands: Sequence[Any], params: Any = ()) -> Any:
        return call(members, [x if x.ndim else 1.0 for x in operands], params)

    monkeypatch.setattr(Members, "call", call_with_one)
    arrays = [tn.eval(tn.flip(tn.asarray([1.0, 2.0, x]))) for x in range(3)]
    with tn.profile() as p:
        with engine.hold():
            handles = [engine.push(tn.operators.multiply, x, 10.0) for x in arrays]
        engine.flush()
    assert p.launches == 3
    assert [handle.get().tolist() for handle in handles] == [
        [10.0 * x, 20.0, 10.0] for x in range(3)
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", [1, 7, 64, None])
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_batches_of_any_size_have_the_bits_of_each_alone(
    name: str, verify: bool, threads: int, limit: int | None
) -> None:
    case = CASES[name]
    members = members_of(case)
    wanted = alone(case, members)
    with (
        tn.options(threads=threads, verify=verify),
        tn.Engine(threads=threads, batch_limit=limit) as engine,
    ):
        for _ in range(2):
            assert_same(pushed(engine, case, members)[1], wanted)


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("name", ["products", "matrix times vector", "columns", "stacks", "solve"])
def test_shared_operand_is_not_copied_for_each(engine: tn.Engine, name: str, shared: int) -> None:
    case = CASES[name]
    members = members_of(case)
    for _ in range(2):
        one = engine.put(members[0][shared])
        pairs = [[engine.put(x) for x in member] for member in members]
        for pair in pairs:
            pair[shared] = one
        operator = attrgetter(case[0])(tn.operators)
        with tn.profile() as p:
            with engine.hold():
                handles = [engine.push(operator, *pair) for pair in pairs]
            engine.flush()
        assert (p.launches, p.gathers, p.batches) == (case[3], 1, 1)
        inputs = [[x.get() for x in pair] for pair in pairs]
        assert_same([np.asarray(handle.get()) for handle in handles], alone(case, inputs))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [*product((1, 2, 3, 8, 17), (1, 2, 5, 7, 8, 9, 15, 16, 24, 31, 32, 40), (1, 2, 9))],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int16", "float16"])
@pytest.mark.usefixtures("fused_multiply_add")
def test_products_of_any_lengths_have_the_bits_of_each_alone(
    m: int, k: int, n: int, dtype: str
) -> None:
    random = np.random.default_rng([m, k, n])
    lefts, rights = (
        [(4 * random.standard_normal(shape)).astype(dtype) for _ in range(COUNT)]
        for shape in ((m, k), (k, n))
    )
    with tn.Engine(threads=2) as engine:
        for form in ("pairs", "left", "right"):
            ones = lefts[:1] * COUNT if form == "left" else lefts
            others = rights[:1] * COUNT if form == "right" else rights
            puts = [[engine.put(x) for x in some] for some in (lefts, rights)]
            handles = [
                (puts[0][0 if form == "left" else i], puts[1][0 if form == "right" else i])
                for i in range(COUNT)
            ]
            with engine.hold():
                results = [engine.push(tn.operators.matmul, *pair) for pair in handles]
            wanted = [
                np.asarray(tn.asarray(a) @ tn.asarray(b)) for a, b in zip(ones, others, strict=True)
            ]
            assert_same([np.asarray(result.get()) for result in results], wanted)


def test_chain_of_batches_reads_the_results_of_the_last_one_where_they_are() -> None:
    values = [np.random.default_rng(i).random((4, 4)) for i in range(COUNT)]
    with tn.Engine(threads=2) as engine:
        for _ in range(2):
            puts = [engine.put(x) for x in values]
            with tn.profile() as p:
                with engine.hold():
                    squares = [engine.push(tn.operators.matmul, x, x) for x in puts]
                    fourths = [engine.push(tn.operators.matmul, x, x) for x in squares]
                engine.flush()
        assert (p.launches, p.batches) == (2, 2)
        assert p.gathers == 2  # both operands of the first batch
        for x, handle in zip(values, fourths, strict=True):
            square = tn.asarray(x) @ tn.asarray(x)
            assert np.asarray(handle.get()).tobytes() == np.asarray(square @ square).tobytes()


@pytest.mark.cpu
@pytest.mark.parametrize("wrapped", [False, True])
def test_batches_of_other_sizes_and_engines_need_no_new_plan(wrapped: bool) -> None:
    random = np.random.default_rng(9)
    if wrapped:  # from now on memory of others may be in use
        tn.wrap(np.zeros(3))
    members = [(random.random((1, 16)), random.random((16, 16))) for _ in range(43)]

    def new_plans(engine: tn.Engine, count: int) -> int:
        before = _native.num_cached_plans()
        with engine.hold():
            handles = [engine.push(tn.operators.matmul, *pair) for pair in members[:count]]
        engine.flush()
        for (a, b), handle in zip(members, handles, strict=False):
            wanted = np.asarray(tn.asarray(a) @ tn.asarray(b))
            assert np.asarray(handle.get()).tobytes() == wanted.tobytes()
        return _native.num_cached_plans() - before

    tn.trim()
    with tn.Engine(threads=1) as engine:
        news = [new_plans(engine, count) > 0 for count in (10, 21, 43, 5)]
        assert news == [True, False, False, False]
    with tn.Engine(threads=1) as engine:
        assert [new_plans(engine, count) for count in (10, 21)] == [0, 0]


@pytest.mark.usefixtures("fused_multiply_add")
def test_calls_of_a_function_are_one_launch(engine: tn.Engine) -> None:
    weight = tn.asarray(np.random.default_rng(1).random((6, 8)))

    @tn.function
    def cell(x: tn.Array, y: tn.Array) -> tuple[tn.Array, tn.Array]:
        return tn.tanh(x + y) * 2.0, tn.exp(x) - y

    @tn.function
    def layer(x: tn.Array) -> tn.Array:
        return tn.tanh(weight @ x)

    random = np.random.default_rng(3)
    xs, ys = ([random.random(8) for _ in range(COUNT)] for _ in range(2))
    for _ in range(2):
        with tn.profile() as p:
            with engine.hold():
                cells = [engine.push(cell, x, y) for x, y in zip(xs, ys, strict=True)]
            engine.flush()
        assert (p.launches, p.batches) == (1, 1)
        for x, y, handle in zip(xs, ys, cells, strict=True):
            assert_same(
                [np.asarray(found) for found in handle.get()],
                [np.asarray(found) for found in cell(tn.asarray(x), tn.asarray(y))],
            )
        with tn.profile() as p:
            with engine.hold():
                layers = [engine.push(layer, x) for x in xs]
            engine.flush()
        assert (p.launches, p.batches) == (2, 1)
        wanted = [np.asarray(layer(tn.asarray(x))) for x in xs]
        assert_same([np.asarray(handle.get()) for handle in layers], wanted)


Call = tuple[str, Callable[..., tuple[Any, ...]], Sequence[Any], dict[str, Any], int]
CALLS: dict[str, Call] = {
    "concat": ("concat", lambda *x: ([*x],), (matrix(3, 4), matrix(2, 4)), {}, 2),
    "concat of axis 1": ("concat", lambda *x: (x,), (matrix(3, 4), matrix(3, 2)), {"axis": 1}, 2),
    "stack": ("stack", lambda *x: ([*x],), (matrix(5), matrix(5), matrix(5), matrix(5)), {}, 4),
    "stack of two dtypes": ("stack", lambda *x: ([*x],), (matrix(5), matrix(5, dtype="f4")), {}, 2),
    "einsum": ("einsum", lambda *x: ("ij,jk->ik", *x), (matrix(3, 4), matrix(4, 5)), {}, 1),
    "trace": ("einsum", lambda x: ("ii->", x), (matrix(4, 4),), {}, 1),
    "several results": ("linalg.slogdet", lambda x: (x,), (regular(4),), {}, 3),
    "factors": ("linalg.qr", lambda x: (x,), (matrix(5, 3),), {}, COUNT),
    "parts": ("unstack", lambda x: (x,), (matrix(3, 5),), {}, 0),
    "grids": ("meshgrid", lambda *x: x, (matrix(2), matrix(3), matrix(2), matrix(1)), {}, 0),
}
"""An operation, its arguments from operands, the operands, parameters, launches of a batch: one
for each part that is written, none for views. Factors have no batch rule of equal bits.
"""


def leaves(results: Any) -> list[np.ndarray]:
    return [*map(np.asarray, results if isinstance(results, (list, tuple)) else [results])]


def check_calls(engine: tn.Engine, name: str, rounds: int, count: int = COUNT) -> Any:
    """Push batches of such calls; compare bits and types, and return the last counters."""
    operation, arguments, makers, params, _ = CALLS[name]
    operator = attrgetter(operation)(tn.operators)
    random = np.random.default_rng(5)
    for _ in range(rounds):
        members = [[make(random) for make in makers] for _ in range(count)]
        puts = [[*map(engine.put, member)] for member in members]
        with tn.profile() as p:
            with engine.hold():
                handles = [engine.push(operator, *arguments(*x), **params) for x in puts]
            engine.flush()
        for member, handle in zip(members, handles, strict=True):
            wanted = attrgetter(operation)(tn)(*arguments(*map(tn.asarray, member)), **params)
            found = handle.get()
            assert type(found) is type(wanted)
            assert_same(leaves(found), leaves(wanted))
    return p


@pytest.mark.cpu
@pytest.mark.parametrize("name", CALLS)
def test_lists_texts_and_several_results_are_one_batch(engine: tn.Engine, name: str) -> None:
    p = check_calls(engine, name, 3)
    assert (p.launches, p.batches) == (CALLS[name][4], 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", [1, 7, 64, None])
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_batches_of_calls_have_the_bits_of_each_alone(
    name: str, verify: bool, threads: int, limit: int | None
) -> None:
    with (
        tn.options(threads=threads, verify=verify),
        tn.Engine(threads=threads, batch_limit=limit) as engine,
    ):
        for count in (1, 2, COUNT):
            check_calls(engine, name, 2, count)


@pytest.mark.parametrize("name", ["concat", "stack", "einsum"])
def test_ndarrays_are_batched_as_arrays_and_read_at_the_push(engine: tn.Engine, name: str) -> None:
    operation, arguments, makers, params, launches = CALLS[name]
    random = np.random.default_rng(6)
    for seen in (False, True):  # the first push of a call runs alone
        members = [[make(random) for make in makers] for _ in range(COUNT)]
        with tn.profile() as p, engine.hold():
            handles = [
                engine.push(getattr(tn.operators, operation), *arguments(*x), **params)
                for x in members
            ]
            wanted = [
                np.asarray(getattr(tn, operation)(*arguments(*map(tn.asarray, x)), **params))
                for x in members
            ]
            for x in (each for member in members for each in member):
                x[:] = 0
        with tn.profile() as p:
            engine.flush()
        assert p.launches <= launches + (not seen) * launches
        assert_same([np.asarray(handle.get()) for handle in handles], wanted)


def test_list_of_new_lengths_is_not_planned_for_each(engine: tn.Engine) -> None:
    def planned(length: int) -> int:
        before = _native.num_cached_plans()
        with engine.hold():
            x = engine.put(np.arange(float(length)))
            handle = engine.push(tn.operators.concat, [x, x])
            pushed = _native.num_cached_plans() - before  # no worker has begun
        assert handle.get().tolist() == [*range(length)] * 2
        return pushed

    tn.trim()
    assert [planned(length) for length in range(401, 430)] == [0] * 29
    assert planned(429) > 0


def test_list_that_does_not_fit_raises_at_the_wait(engine: tn.Engine) -> None:
    x, y = engine.put(np.ones((2, 3))), engine.put(np.ones((2, 4)))
    for _ in range(3):
        handle = engine.push(tn.operators.concat, [x, y])
        with pytest.raises(tn.errors.ShapeError, match="concat"):
            handle.get()


@tn.op(
    shape=(),
    reference=lambda x: np.max(x) - np.min(x),
    batch=lambda x: tn.max(x, axis=1) - tn.min(x, axis=1),
)
def extent(x: Any) -> Any:
    """The largest element less the smallest."""


@tn.op(shape=(), reference=lambda x: np.max(x) - np.min(x))
def extent_of_one(x: Any) -> Any:
    """The same, without a batch rule."""


@pytest.mark.parametrize(("op", "calls"), [(extent, 0), (extent_of_one, COUNT)])
def test_operations_of_users_are_batched_by_their_rule(
    engine: tn.Engine, op: Any, calls: int
) -> None:
    random = np.random.default_rng(2)
    values = [random.random(9) for _ in range(COUNT)]
    for _ in range(2):
        with tn.profile() as p:
            with engine.hold():
                handles = [engine.push(op, x) for x in values]
            engine.flush()
        assert p.calls == calls
        assert p.launches == (calls or p.launches) < 4 + calls
        assert_same(
            [np.asarray(handle.get()) for handle in handles],
            [np.asarray(np.ptp(x)) for x in values],
        )


def test_large_arrays_are_computed_one_by_one_and_counted_so(engine: tn.Engine) -> None:
    values = [np.full(5_000, float(i)) for i in range(6)]
    puts = [engine.put(x) for x in values]
    for _ in range(2):
        with tn.profile() as p:
            with engine.hold():
                handles = [engine.push(tn.operators.add, x, x) for x in puts]
            engine.flush()
        assert (p.launches, p.kernels, p.gathers, p.batches) == (6, 6, 0, 1)
        assert_same([np.asarray(handle.get()) for handle in handles], [x + x for x in values])


def test_one_bad_member_fails_by_itself(engine: tn.Engine) -> None:
    matrices = [np.eye(3) * (i + 1) for i in range(COUNT)]
    matrices[7] = np.zeros((3, 3))
    for _ in range(2):
        with engine.hold():
            handles = [engine.push(tn.operators.linalg.inv, x) for x in matrices]
        for index, (x, handle) in enumerate(zip(matrices, handles, strict=True)):
            if index == 7:
                with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                    handle.get()
            else:
                np.testing.assert_allclose(np.asarray(handle.get()), np.linalg.inv(x))


def test_results_of_a_batch_are_accounted_one_by_one(engine: tn.Engine) -> None:
    puts = [engine.put(np.full(50, float(i))) for i in range(COUNT)]
    before = engine.stats()["live_bytes"]
    with engine.hold():
        handles = [engine.push(tn.operators.add, x, x) for x in puts]
    engine.flush()
    assert engine.stats()["live_bytes"] - before == COUNT * 400
    del handles[1:]
    assert engine.stats()["live_bytes"] - before == 400
    assert handles[0].get().tolist() == [0.0] * 50


@pytest.mark.cpu
@pytest.mark.parametrize(("limit", "own_memory"), [(None, False), ("1MiB", True)])
def test_results_under_a_memory_limit_have_memory_of_their_own(
    limit: str | None, own_memory: bool
) -> None:
    with tn.Engine(threads=2, memory_limit=limit) as engine:
        puts = [engine.put(np.full(50, float(i))) for i in range(COUNT)]
        with engine.hold():
            handles = [engine.push(tn.operators.add, x, x) for x in puts]
        results = [np.asarray(handle.get()) for handle in handles]
        for i, values in enumerate(results):
            assert (values == 2 * i).all()
        begins = [values.ctypes.data for values in results]
        assert all(begin % 64 == 0 for begin in begins) == own_memory


@pytest.mark.cpu
def test_windows_are_copied_when_they_are_pushed() -> None:
    memory = np.ones(5)
    window = tn.wrap(memory)

    @tn.function
    def add_window(x: Any) -> Any:
        return x + window

    with tn.Engine(threads=1) as engine:
        assert engine.push(add_window, tn.ones((5,))).get().tolist() == [2.0] * 5
        window[:] = 1  # the trace of the function keeps the value that it met
        with engine.hold():
            handles = [
                engine.push(tn.operators.add, window, window),
                engine.push(add_window, tn.ones((5,))),
                engine.push(tn.operators.add, window[:], 1.0),
            ]
            with tn.profile() as profile:
                window[:] = 7  # no worker reads the memory, so nothing is copied now
        assert profile.copies == 0
        for handle in handles:
            assert handle.get().tolist() == [2.0] * 5
    assert memory.tolist() == [7.0] * 5
