"""What is run as one launch, when it is run, and what a hold and a flush ask for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.inspect.profile import Profile


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def matrices(count: int, *shape: int) -> list[np.ndarray]:
    random = np.random.default_rng([count, *shape])
    return [random.standard_normal(shape) for _ in range(count)]


def held(engine: tn.Engine, push: Any) -> tuple[Profile, list[tn.Handle]]:
    """The counters of what a function pushed under hold, when all of it has run."""
    with tn.profile() as p:
        with engine.hold():
            handles = push()
        engine.flush()
    return p, handles


def products(engine: tn.Engine, lefts: Any, rights: Any) -> list[tn.Handle]:
    return [
        engine.push(tn.operators.matmul, left, right)
        for left, right in zip(lefts, rights, strict=True)
    ]


@pytest.mark.parametrize(("count", "launches"), [(1, 1), (63, 1), (64, 1), (65, 2), (128, 2)])
def test_equal_products_are_one_launch_for_each_full_batch(count: int, launches: int) -> None:
    lefts, rights = matrices(count, 4, 4), matrices(count, 4, 4)
    with tn.Engine(threads=2, batch_limit=64) as engine:
        puts = [[engine.put(each) for each in some] for some in (lefts, rights)]
        p, handles = held(engine, lambda: products(engine, *puts))
        assert p.launches == launches
        for left, right, handle in zip(lefts, rights, handles, strict=True):
            np.testing.assert_allclose(np.asarray(handle.get()), left @ right, 1e-12, 1e-12)


def test_two_shapes_are_two_launches_and_none_before_the_end(engine: tn.Engine) -> None:
    small, large = matrices(40, 4, 4), matrices(40, 5, 5)
    with tn.profile() as p, engine.hold():
        handles = products(engine, small, small) + products(engine, large, large)
        assert p.launches == 0
        assert not any(handle.done() for handle in handles)
    with tn.profile() as q:
        engine.flush()
    assert p.launches + q.launches == 2
    for matrix, handle in zip(small + large, handles, strict=True):
        np.testing.assert_allclose(np.asarray(handle.get()), matrix @ matrix, 1e-12, 1e-12)


def test_additions_of_one_shape_are_one_launch(engine: tn.Engine) -> None:
    values = matrices(100, 50)
    puts = [engine.put(each) for each in values]
    p, handles = held(engine, lambda: [engine.push(tn.operators.add, x, x) for x in puts])
    assert p.launches == 1
    for value, handle in zip(values, handles, strict=True):
        np.testing.assert_array_equal(np.asarray(handle.get()), value + value)


@pytest.mark.parametrize("side", ["left", "right"])
def test_products_with_a_shared_operand_are_one_larger_product(
    engine: tn.Engine, side: str
) -> None:
    (shared,), others = matrices(1, 16, 16), matrices(32, 16, 16)
    one = engine.put(shared)
    many = [engine.put(each) for each in others]
    pairs = [(one, each) if side == "left" else (each, one) for each in many]
    p, handles = held(engine, lambda: products(engine, *zip(*pairs, strict=True)))
    assert p.launches == 1
    assert p.multiply_adds == 32 * 16**3
    for other, handle in zip(others, handles, strict=True):
        expected = shared @ other if side == "left" else other @ shared
        np.testing.assert_allclose(np.asarray(handle.get()), expected, 1e-11, 1e-12)


@pytest.mark.parametrize("shapes", [((1, 16), (16, 16)), ((3, 4), (4, 5)), ((4, 1), (1, 4))])
def test_products_of_oblong_matrices_are_one_launch(
    engine: tn.Engine, shapes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    lefts, rights = (matrices(20, *shape) for shape in shapes)
    puts = [[engine.put(each) for each in some] for some in (lefts, rights)]
    p, handles = held(engine, lambda: products(engine, *puts))
    assert p.launches == 1
    for left, right, handle in zip(lefts, rights, handles, strict=True):
        np.testing.assert_allclose(np.asarray(handle.get()), left @ right, 1e-12, 1e-12)


def test_chains_of_depth_ten_are_ten_launches() -> None:
    matrix = np.eye(3) * 0.5
    with tn.Engine(threads=2, batch_limit=64) as engine:

        def chains() -> list[tn.Handle]:
            ends = [engine.put(matrix) for _ in range(3)]
            for _ in range(10):
                ends = [engine.push(tn.operators.matmul, end, matrix) for end in ends]
            return ends

        p, handles = held(engine, chains)
        assert p.launches <= 10
        for handle in handles:
            np.testing.assert_array_equal(np.asarray(handle.get()), matrix * 0.5**10)


class Accumulate(tn.CumulativeOperator):
    def run(self, increment: Any) -> Any:
        return increment


@pytest.mark.cpu
def test_sum_of_many_products_is_few_launches(engine: tn.Engine) -> None:
    lefts, rights = matrices(64, 8, 8), matrices(64, 8, 8)
    puts = [[engine.put(each) for each in some] for some in (lefts, rights)]
    start = engine.put(np.zeros((8, 8)))

    def push() -> list[tn.Handle]:
        target = start
        for product in products(engine, *puts):
            target = engine.push(Accumulate(), target, product)
        return [target]

    p, (handle,) = held(engine, push)
    expected = sum(left @ right for left, right in zip(lefts, rights, strict=True))
    np.testing.assert_allclose(np.asarray(handle.get()), expected, 1e-10, 1e-11)
    assert p.launches <= 2


class Doubled(tn.BatchedOperator):
    """Notes how many came at once; batched by the sign of a number."""

    pure = True

    def __init__(self) -> None:
        self.batches: list[list[float]] = []
        self.lock = threading.Lock()  # of batches

    def signature(self, x: float) -> object:
        return x < 0

    def run_batch(self, members: list[tuple[float]]) -> list[float]:
        with self.lock:
            self.batches.append([x for (x,) in members])
        return [2 * x for (x,) in members]


def test_members_of_a_batch_have_one_signature(engine: tn.Engine) -> None:
    doubled = Doubled()
    numbers = [float(i) if i % 3 else -float(i) - 1 for i in range(30)]
    with engine.hold():
        handles = [engine.push(doubled, x) for x in numbers]
    assert [handle.get() for handle in handles] == [2 * x for x in numbers]
    assert len(doubled.batches) == 2
    assert all(len({x < 0 for x in batch}) == 1 for batch in doubled.batches)


def test_batch_is_in_the_order_of_pushes(engine: tn.Engine) -> None:
    doubled = Doubled()
    with engine.hold():
        handles = [engine.push(doubled, float(x)) for x in range(20)]
    engine.flush()
    assert doubled.batches == [[float(x) for x in range(20)]]
    assert len(handles) == 20


def test_batches_of_a_flush_under_hold_are_in_the_order_of_pushes() -> None:
    doubled = Doubled()
    with tn.Engine(threads=1, batch_limit=3) as engine, engine.hold():
        numbers = [float(x) for x in range(10)]
        handles = [engine.push(doubled, x) for x in numbers]
        engine.flush(handles[4])
        assert doubled.batches == [[4.0]]
        handles[7].get()
        handles[2].get()
        assert doubled.batches == [[4.0], [7.0], [2.0]]
        engine.flush()
    assert doubled.batches[3:] == [[0.0, 1.0, 3.0], [5.0, 6.0, 8.0], [9.0]]


@pytest.mark.parametrize("limit", [1, 7, 64, None])
def test_each_of_many_members_runs_once_whatever_is_awaited_first(limit: int | None) -> None:
    random = np.random.default_rng(5)
    doubled = Doubled()
    with tn.Engine(threads=2, batch_limit=limit) as engine:
        with engine.hold():
            handles = [engine.push(doubled, float(x)) for x in range(500)]
            for index in random.permutation(500)[:40]:
                assert handles[index].get() == 2.0 * index
            del handles[::3]
        engine.flush()
        dropped = engine.stats()["dropped"]
    ran = [x for batch in doubled.batches for x in batch]
    assert len(ran) == len({*ran}) == 500 - dropped
    assert dropped > 100


def test_batch_limit_bounds_the_batches_of_users() -> None:
    doubled = Doubled()
    with tn.Engine(threads=2, batch_limit=8) as engine:
        with engine.hold():
            handles = [engine.push(doubled, float(x)) for x in range(20)]
        engine.flush()
    assert sorted(map(len, doubled.batches)) == [4, 8, 8]
    assert len(handles) == 20


def test_batch_limit_is_an_option_too() -> None:
    doubled = Doubled()
    with tn.options(batch_limit=5), tn.Engine(threads=1) as engine, engine.hold():
        handles = [engine.push(doubled, float(x)) for x in range(10)]
    assert [handle.get() for handle in handles] == [2.0 * x for x in range(10)]
    assert sorted(map(len, doubled.batches)) == [5, 5]


class Count(tn.Operator):
    """Counts its runs."""

    def __init__(self) -> None:
        self.runs: list[object] = []

    def run(self, x: Any) -> Any:
        self.runs.append(x)
        return x


def test_nothing_runs_under_hold_and_all_of_it_after(engine: tn.Engine) -> None:
    count = Count()
    with engine.hold():
        handles = [engine.push(count, float(x)) for x in range(10)]
        assert count.runs == []
    engine.flush()
    assert sorted(count.runs) == [float(x) for x in range(10)]
    assert all(handle.done() for handle in handles)


def test_flush_under_hold_runs_ancestors_only(engine: tn.Engine) -> None:
    x, y = Count(), Count()
    with engine.hold():
        of_x = engine.push(x, engine.push(x, 1.0))
        of_y = engine.push(y, engine.push(y, 1.0))
        engine.flush(of_x)
        assert of_x.done()
        assert (len(x.runs), len(y.runs)) == (2, 0)
    assert of_y.get() == 1.0


def test_flush_under_hold_leaves_members_that_nobody_needs(engine: tn.Engine) -> None:
    doubled = Doubled()
    with engine.hold():
        first, second = engine.push(doubled, 1.0), engine.push(doubled, 2.0)
        engine.flush(first)
        assert doubled.batches == [[1.0]]
    assert second.get() == 4.0


def test_flush_without_hold_takes_ready_members_along() -> None:
    doubled, gate = Doubled(), threading.Event()

    class Wait(tn.Operator):
        def run(self) -> float:
            assert gate.wait(30)
            return 0.0

    with tn.Engine(threads=1, batch_wait=1) as engine:
        busy = engine.push(Wait())
        handles = [engine.push(doubled, float(x)) for x in range(5)]
        gate.set()
        engine.flush(handles[3])
        assert doubled.batches == [[0.0, 1.0, 2.0, 3.0, 4.0]]
        busy.get()


def test_get_under_hold_runs_ancestors(engine: tn.Engine) -> None:
    x, y = Count(), Count()
    with engine.hold():
        wanted = engine.push(x, 1.0)
        other = engine.push(y, 2.0)
        assert wanted.get() == 1.0
        assert y.runs == []
    assert other.get() == 2.0


def test_holds_nest(engine: tn.Engine) -> None:
    count = Count()
    with engine.hold():
        with engine.hold():
            handle = engine.push(count, 1.0)
        assert count.runs == []
    assert handle.get() == 1.0


def test_hold_ends_when_its_block_raises(engine: tn.Engine) -> None:
    count = Count()
    handles = []

    def block() -> None:
        with engine.hold():
            handles.append(engine.push(count, 1.0))
            raise KeyError

    with pytest.raises(KeyError):
        block()
    (handle,) = handles
    assert handle.get() == 1.0


def test_work_that_is_dropped_is_cancelled_only_if_it_is_pure(engine: tn.Engine) -> None:
    class Pure(Count):
        pure = True

    pure, impure = Pure(), Count()
    with engine.hold():
        engine.push(pure, 1.0)
        engine.push(impure, 2.0)
        needed = engine.push(impure, engine.push(pure, 3.0))
    engine.flush()
    assert pure.runs == [3.0]
    assert sorted(impure.runs) == [2.0, 3.0]
    assert needed.get() == 3.0


@pytest.mark.usefixtures("fused_multiply_add")
def test_work_of_the_op_table_that_is_dropped_is_never_run(engine: tn.Engine) -> None:
    x = np.ones(3)
    p, _ = held(engine, lambda: [None for _ in range(10) if engine.push(tn.operators.exp, x)])
    assert p.launches == 0


def test_waiting_inside_an_operator_raises(engine: tn.Engine) -> None:
    class Waits(tn.Operator):
        def __init__(self, wait: Any) -> None:
            self.wait = wait

        def run(self, x: float) -> float:
            with engine.hold():
                pending = engine.push(tn.operators.add, x, 1.0)
                self.wait(pending)
            return x

    for wait in (lambda pending: pending.get(), engine.flush, lambda pending: engine.flush()):
        handle = engine.push(Waits(wait), 1.0)
        with pytest.raises(RuntimeError) as caught:
            handle.get()
        assert isinstance(caught.value.__cause__, RuntimeError)
    assert engine.push(tn.operators.add, 1.0, 1.0).get() == 2.0


def test_operator_may_push(engine: tn.Engine) -> None:
    pushed: list[tn.Handle] = []

    class Pushes(tn.Operator):
        def run(self, x: float) -> float:
            pushed.append(engine.push(tn.operators.add, x, 1.0))
            return x

    engine.push(Pushes(), 1.0).get()
    assert pushed[0].get() == 2.0


def test_more_operators_than_workers_wait_for_each_other_without_hanging() -> None:
    for threads in (1, 2):
        with tn.Engine(threads=threads, batch_limit=3) as engine, engine.hold():
            count = Count()
            ends = [engine.push(count, float(x)) for x in range(7)]
            for _ in range(5):
                ends = [engine.push(tn.operators.add, a, ends[0]) for a in ends]
        assert ends[0].get() == 0.0


def test_several_launches_of_a_batch_have_the_bits_of_one_by_one() -> None:
    values = matrices(30, 3, 3)
    names = ("exp", "negative", "sum", "softmax")
    found = []
    for limit in (1, 7, None):
        with tn.Engine(threads=2, batch_limit=limit) as engine:
            with engine.hold():
                handles = [
                    engine.push(getattr(tn.operators, name), x) for name in names for x in values
                ]
            found.append([np.asarray(handle.get()).tobytes() for handle in handles])
    assert found[0] == found[1] == found[2]


DTYPES = ("float32", "float64", "complex128", "int64")


@pytest.mark.parametrize("seed", range(4))
def test_random_products_and_sums_held_together_equal_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    sizes = (0, 1, 2, 3, 7)
    pool = [
        random.integers(-9, 9, (rows, columns)).astype(dtype)
        for rows in sizes
        for columns in sizes
        for _ in range(2)
    ]
    pool += [each.T for each in pool[10:20]] + [each[::-1] for each in pool[20:30]]
    with tn.Engine(threads=2, batch_limit=(None, 5)[seed % 2]) as engine:
        puts = [engine.put(each) for each in pool]
        expected, handles = [], []
        with engine.hold():
            for _ in range(400):
                left, right = random.integers(len(pool), size=2)
                a, b = pool[left], pool[right]
                if a.shape[1] == b.shape[0]:
                    expected.append(a @ b)
                    handles.append(engine.push(tn.operators.matmul, puts[left], puts[right]))
                if a.shape == b.shape:
                    expected.append(a + b)
                    handles.append(engine.push(tn.operators.add, puts[left], puts[right]))
        for handle, values in zip(handles, expected, strict=True):
            found = np.asarray(handle.get())
            np.testing.assert_array_equal(found, values, strict=True)  # whole numbers: exact
