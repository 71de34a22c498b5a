"""Handles are values: what operators in place and cumulative ones do to objects and who sees it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn

WORKERS = [1, 2, 4, 8]


@pytest.fixture(params=WORKERS)
def engine(request: pytest.FixtureRequest) -> Iterator[tn.Engine]:
    with tn.Engine(threads=request.param) as engine:
        yield engine


class AddTo(tn.InPlaceOperator):
    def run(self, a: Any, b: Any) -> Any:
        a += b
        return a


class MultiplyBy(tn.InPlaceOperator):
    def run(self, a: Any, b: Any) -> Any:
        a *= b
        return a


class SubtractFrom(tn.InPlaceOperator):
    def run(self, a: Any, b: Any) -> Any:
        a -= b
        return a


class Increase(tn.CumulativeOperator):
    def run(self, b: Any) -> Any:
        return b


def test_older_handle_keeps_its_value(engine: tn.Engine) -> None:
    old = engine.put(np.array([[0.0, 1.0], [2.0, 3.0]]))
    c = engine.push(tn.operators.add, old, np.ones((2, 2)))
    new = engine.push(AddTo(), old, np.ones((2, 2)))
    assert c.get().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert old.get().tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert new.get().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_operators_in_place_run_in_the_order_of_the_program(engine: tn.Engine) -> None:
    x = engine.put(np.array([1.0]))
    engine.push(AddTo(), x, 1.0)
    engine.push(MultiplyBy(), x, 3.0)
    last = engine.push(SubtractFrom(), x, 2.0)
    assert last.get().tolist() == [4.0]
    assert x.get().tolist() == [1.0]


def test_thousand_increments_are_all_added(engine: tn.Engine) -> None:
    target = engine.put(np.zeros((4, 4)))
    for _ in range(1000):
        target = engine.push(Increase(), target, np.eye(4))
    np.testing.assert_array_equal(np.asarray(target.get()), 1000 * np.eye(4))


def test_each_handle_of_a_sum_has_what_was_added_until_then(engine: tn.Engine) -> None:
    start = engine.put(np.array([0.5]))
    handles = [engine.push(Increase(), start, float(i)) for i in range(130)]
    sums = [float(handle.get()[0]) for handle in handles]
    assert sums == [0.5 + i * (i + 1) / 2 for i in range(130)]
    assert start.get().tolist() == [0.5]


def test_increments_and_work_in_place_keep_their_order(engine: tn.Engine) -> None:
    x = engine.put(np.array([1.0]))
    for _ in range(3):
        engine.push(Increase(), x, 2.0)
    engine.push(MultiplyBy(), x, 10.0)
    for _ in range(3):
        last = engine.push(Increase(), x, 1.0)
    assert last.get().tolist() == [73.0]


class Term:
    """A sum as it was written: what was added to what."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Term) -> Term:
        return Term(f"({self.text}+{other.text})")


def pairwise(names: list[str]) -> str:
    """The sum of these by the documented tree: the left part has the greatest power of two."""
    if len(names) == 1:
        return names[0]
    left = 1 << (len(names) - 1).bit_length() - 1
    return f"({pairwise(names[:left])}+{pairwise(names[left:])})"


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13, 31, 63])
def test_increments_are_added_pairwise_in_the_order_of_pushes(
    engine: tn.Engine, count: int
) -> None:
    target = engine.put(Term("x"))
    for index in range(count):
        target = engine.push(Increase(), target, Term(str(index)))
    assert target.get().text == f"(x+{pairwise([str(index) for index in range(count)])})"


@pytest.mark.parametrize("count", [64, 65, 100, 128, 129, 4096, 4200])
def test_shape_of_a_long_sum_depends_on_its_length_alone(count: int) -> None:
    texts = set()
    for threads in WORKERS:
        with tn.Engine(threads=threads) as engine:
            target = engine.put(Term("x"))
            for index in range(count):
                target = engine.push(Increase(), target, Term(str(index)))
                if threads == 4 and index % 7 == 0:
                    target.get()
            texts.add(target.get().text)
    (text,) = texts
    names = text.replace("(", "").replace(")", "").split("+")
    assert names == ["x", *map(str, range(count))]


def test_run_of_a_cumulative_operator_does_not_see_the_target(engine: tn.Engine) -> None:
    seen = []

    class Product(tn.CumulativeOperator):
        def run(self, *inputs: Any) -> Any:
            seen.append(len(inputs))
            return inputs[0] * inputs[1]

    target = engine.push(Product(), np.array([1.0]), np.array([2.0]), np.array([3.0]))
    assert target.get().tolist() == [7.0]
    assert seen == [2]


def test_increments_are_added_by_add_where_there_is_one(engine: tn.Engine) -> None:
    class Join(tn.CumulativeOperator):
        def run(self, b: list[int]) -> list[int]:
            return b

        def add(self, a: list[int], b: list[int]) -> list[int]:
            return [*a, *b]

    target = engine.put([0])
    for index in range(1, 100):
        target = engine.push(Join(), target, [index])
    assert target.get() == [*range(100)]


class Box(tn.EngineObject):
    """Counts how often it was copied and freed."""

    copies = 0
    freed = 0

    def __init__(self, number: int) -> None:
        self.number = number

    nbytes = 1000

    def copy(self) -> Box:
        Box.copies += 1
        return Box(self.number)

    def free(self) -> None:
        Box.freed += 1


class Advance(tn.InPlaceOperator):
    def run(self, box: Any) -> None:
        box.number += 1


@pytest.fixture
def fresh() -> None:
    Box.copies = Box.freed = 0


@pytest.mark.usefixtures("fresh")
def test_object_that_nobody_else_sees_is_changed_where_it_is(engine: tn.Engine) -> None:
    handle = engine.put(Box(0))
    with engine.hold():  # no push runs before its input handle is dropped
        for _ in range(10):
            handle = engine.push(Advance(), handle)
    assert handle.get().number == 10
    assert Box.copies == 0


@pytest.mark.usefixtures("fresh")
def test_object_that_a_handle_sees_is_copied_once(engine: tn.Engine) -> None:
    old = engine.put(Box(0))
    with engine.hold():
        handle = engine.push(Advance(), old)
        for _ in range(9):
            handle = engine.push(Advance(), handle)
    assert (old.get().number, handle.get().number) == (0, 10)
    assert Box.copies == 1


@pytest.mark.usefixtures("fresh")
def test_object_that_the_caller_holds_is_copied(engine: tn.Engine) -> None:
    mine = Box(5)
    assert engine.push(Advance(), mine).get().number == 6
    assert mine.number == 5


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("threads", WORKERS)
def test_objects_are_freed_once_each(threads: int) -> None:
    with tn.Engine(threads=threads) as engine:
        old = engine.put(Box(0))
        new = engine.push(Advance(), old)
        new.get()
        del old, new
    assert Box.freed == 2  # the end of the engine has waited for what its threads held


@pytest.mark.usefixtures("fresh")
def test_bytes_of_objects_are_counted(engine: tn.Engine) -> None:
    before = engine.stats()["live_bytes"]
    handle = engine.put(Box(0))
    assert engine.stats()["live_bytes"] >= before + 1000
    del handle
    engine.flush()
    assert engine.stats()["live_bytes"] == before
    assert engine.stats()["peak_bytes"] >= 1000


def test_objects_of_no_class_of_ours_are_copied_deeply(engine: tn.Engine) -> None:
    class Append(tn.InPlaceOperator):
        def run(self, target: list[Any], value: float) -> None:
            target[0].append(value)

    mine = [[1.0]]
    kept = copy.deepcopy(mine)
    assert engine.push(Append(), mine, 2.0).get() == [[1.0, 2.0]]
    assert mine == kept


def test_increments_of_many_threads_are_all_added(engine: tn.Engine) -> None:
    shared = engine.put(np.zeros(1))
    own: list[tn.Handle | None] = [None] * 4

    def produce(index: int) -> None:
        mine = engine.put(np.zeros(1))
        for _ in range(500):
            mine = engine.push(Increase(), mine, 1.0)
            engine.push(Increase(), shared, 1.0)
        own[index] = mine

    threads = [threading.Thread(target=produce, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(handle.get()[0]) for handle in own if handle is not None] == [500.0] * 4
    assert engine.push(Increase(), shared, 0.0).get().tolist() == [2000.0]


def test_program_with_floats_has_the_same_bits_whatever_the_schedule() -> None:
    random = np.random.default_rng(0)
    terms = [random.standard_normal(3) * 10.0 ** random.integers(-8, 8) for _ in range(300)]
    found = set()
    for threads in WORKERS:
        for _ in range(3):
            with tn.Engine(threads=threads) as engine:
                target = engine.put(np.zeros(3))
                for term in terms:
                    scaled = engine.push(tn.operators.multiply, term, 1.1)
                    target = engine.push(Increase(), target, scaled)
                found.add(np.asarray(target.get()).tobytes())
    assert len(found) == 1
