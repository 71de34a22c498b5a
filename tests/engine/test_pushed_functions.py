"""Traced functions that are pushed give what their calls give, in batches, without the GIL."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np
import pytest

import tenfold as tn

COUNT = 20
VALUES = [np.arange(4.0) + number for number in range(COUNT)]


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


@tn.function
def cell(x: tn.Array, h: tn.Array) -> tn.Array:
    return tn.tanh(x * h + 1.0)


@tn.function
def parts(x: tn.Array, scale: float = 2.0) -> dict[str, Any]:
    return {"scaled": x * scale, "rest": (x, tn.sum(x))}


def bits(value: Any) -> bytes:
    return np.asarray(value).tobytes()


@pytest.mark.usefixtures("fused_multiply_add")
def test_pushes_of_one_function_are_one_batch_that_launches_once(engine: tn.Engine) -> None:
    one = engine.put(np.ones(4))
    inputs = [engine.put(x) for x in VALUES]
    engine.push(cell, inputs[0], one).get()  # traced, and planned
    with tn.profile() as p:
        with engine.hold():
            handles = [engine.push(cell, x, one) for x in inputs]
        engine.flush()
    assert (p.launches, p.batches) == (1, 1)
    assert engine.stats()["batch_sizes"][COUNT] == 1
    for x, handle in zip(VALUES, handles, strict=True):
        assert bits(handle.get()) == bits(cell(tn.asarray(x), tn.ones(4)))


@pytest.mark.usefixtures("fused_multiply_add")
def test_pushes_on_what_is_pending_are_batches_by_depth(engine: tn.Engine) -> None:
    engine.push(cell, VALUES[0], VALUES[0]).get()
    with engine.hold():
        states = [engine.push(cell, x, x) for x in VALUES]
        for _ in range(3):
            states = [engine.push(cell, x, h) for x, h in zip(VALUES, states, strict=True)]
    engine.flush()
    assert engine.stats()["batch_sizes"] == {1: 1, COUNT: 4}
    wanted = tn.asarray(VALUES[7])
    for _ in range(4):
        wanted = cell(tn.asarray(VALUES[7]), wanted)
    assert bits(states[7].get()) == bits(wanted)


def test_a_batch_runs_while_another_thread_keeps_the_gil(engine: tn.Engine) -> None:
    x = engine.put(VALUES[1])
    engine.push(parts, x).get()
    before, end = sys.getswitchinterval(), time.monotonic() + 60
    sys.setswitchinterval(1000)  # who waits for the GIL waits longer than this test
    try:
        with engine.hold():
            handles = [engine.push(parts, x) for _ in range(COUNT)]
        while not all(handle.done() for handle in handles):
            assert time.monotonic() < end, "a worker waits for the GIL"
    finally:
        sys.setswitchinterval(before)


def test_get_gives_the_tree_that_a_call_gives(engine: tn.Engine) -> None:
    for scale in (2.0, 3.0):  # a number is part of the signature, as in a call
        found = engine.push(parts, VALUES[2], scale).get()
        assert found["scaled"].tolist() == (VALUES[2] * scale).tolist()
        assert found["rest"][0].tolist() == VALUES[2].tolist()
        assert found["rest"][1].item() == VALUES[2].sum()
    assert engine.push(parts, VALUES[2], scale=0.5).get()["scaled"].tolist() == [1, 1.5, 2, 2.5]


@dataclass
class State:
    h: tn.Array
    c: tn.Array


@tn.function
def step(state: State, given: dict[str, tn.Array]) -> State:
    return State(state.h + given["x"], state.c * given["x"])


def test_handles_stand_in_trees(engine: tn.Engine) -> None:
    h, x = engine.put(VALUES[1]), engine.push(cell, VALUES[2], VALUES[3])
    pushed: Any = engine.push
    found = pushed(step, State(h, tn.ones(4)), {"x": x}).get()
    wanted = step(State(tn.asarray(VALUES[1]), tn.ones(4)), {"x": x.get()})
    assert type(found) is State
    assert (bits(found.h), bits(found.c)) == (bits(wanted.h), bits(wanted.c))
    again = engine.push(step, engine.push(step, found, {"x": h}), {"x": x.get()})
    with pytest.raises(tn.errors.ShapeError):
        engine.push(step, engine.push(cell, h, VALUES[0][:3]), {"x": x.get()}).get()
    assert again.get().h.tolist() == (found.h + VALUES[1] + x.get()).tolist()


class Read(tn.Operator):
    """Its result has a Type that nobody knows beforehand."""

    pure = True

    def run(self, x: Any) -> Any:
        return x


def test_inputs_whose_types_only_their_values_tell(engine: tn.Engine) -> None:
    with engine.hold():
        known = engine.push(Read(), VALUES[1])
        handle = engine.push(cell, known, VALUES[2])
        tree = engine.push(parts, handle)
        listed = engine.push(both, [known, VALUES[2]])
        with pytest.raises(TypeError, match=r"(?s)both: a dict holds handles.*remedy") as caught:
            engine.push(both, {"a": known})
        assert "list or tuple" in str(caught.value)
    assert bits(handle.get()) == bits(cell(tn.asarray(VALUES[1]), tn.asarray(VALUES[2])))
    assert bits(tree.get()["scaled"]) == bits(handle.get() * 2.0)
    assert bits(listed.get()) == bits(VALUES[1] + VALUES[2])


@tn.function
def both(given: Any) -> tn.Array:
    first, second = given
    return first + second


def test_captured_array_has_its_value_at_the_push(engine: tn.Engine) -> None:
    weight = tn.asarray(np.full(4, 2.0)) * 1.5  # pending

    @tn.function
    def weighted(x: tn.Array) -> tn.Array:
        return x * weight

    with engine.hold():
        before = [engine.push(weighted, x) for x in VALUES]
        weight += 1.0
        after = [engine.push(weighted, x) for x in VALUES]
    engine.flush()
    assert [h.get().tolist() for h in before] == [(x * 3.0).tolist() for x in VALUES]
    assert [h.get().tolist() for h in after] == [(x * 4.0).tolist() for x in VALUES]
    assert engine.stats()["batch_sizes"] == {2 * COUNT: 1}


def test_products_have_the_bits_of_each_alone(engine: tn.Engine) -> None:
    matrix = tn.asarray(np.random.default_rng(1).random((4, 4)))

    @tn.function
    def layer(x: tn.Array) -> tn.Array:
        return tn.tanh(matrix @ x)

    with engine.hold():
        handles = [engine.push(layer, x / 8) for x in VALUES]
    for x, handle in zip(VALUES, handles, strict=True):
        assert bits(handle.get()) == bits(layer(tn.asarray(x / 8)))


def test_options_are_those_of_the_push(engine: tn.Engine) -> None:
    @tn.function
    def root(x: tn.Array) -> tn.Array:
        return tn.sqrt(x)

    with engine.hold():
        with tn.options(check_nans=True):
            told = engine.push(root, np.array([-1.0]))
        usual = engine.push(root, np.array([-1.0]))
    assert np.isnan(usual.get().item())
    with pytest.raises(tn.errors.RunError, match=r"(?s)root.*pushed at .*test_pushed_functions"):
        told.get()


def test_errors_name_the_function_and_the_push(engine: tn.Engine) -> None:
    @tn.function
    def solved(x: tn.Array) -> tn.Array:
        return tn.linalg.solve(x, x)

    good, bad = engine.push(solved, np.eye(2)), engine.push(solved, np.zeros((2, 2)))
    after = engine.push(cell, bad, VALUES[0][:2])
    wrong = engine.push(solved, np.zeros((2, 3)))
    assert good.get().tolist() == np.eye(2).tolist()
    for handle in (bad, after, wrong):
        with pytest.raises(ValueError, match=r"(?s)solved.*pushed at .*test_pushed_functions.py"):
            handle.get()
    with pytest.raises(TypeError, match=r"(?s)push: cell: missing.*'h'.*remedy"):
        engine.push(cell, VALUES[0])


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
def test_a_function_that_asks_for_values_runs_as_it_is_written(engine: tn.Engine) -> None:
    @tn.function
    def decided(x: tn.Array) -> tn.Array:
        return x + 1.0 if x[0] > 0 else x - 1.0

    found = [engine.push(decided, x) for x in (np.array([1.0]), np.array([-1.0]))]
    assert [handle.get().item() for handle in found] == [2.0, -2.0]


def test_views_and_other_layouts_are_read_as_they_lie(engine: tn.Engine) -> None:
    x = tn.eval(tn.asarray(np.arange(12.0).reshape(3, 4)).T)
    y = tn.asarray(np.arange(24.0))[1:13:3]
    assert bits(engine.push(cell, x, x).get()) == bits(cell(x, x))
    assert bits(engine.push(cell, y, y).get()) == bits(cell(y, y))


def test_dropped_call_is_freed_and_not_run(engine: tn.Engine) -> None:
    with engine.hold():
        handles = [engine.push(cell, x, x) for x in VALUES]
        del handles
    engine.flush()
    stats = engine.stats()
    assert (stats["dropped"], stats["live_objects"]) == (COUNT, 0)


def test_a_function_that_is_gone_takes_what_it_captured_with_it(engine: tn.Engine) -> None:
    def pushed() -> tuple[tn.Handle, ref[tn.Array]]:
        captured = tn.asarray(np.ones(4))

        @tn.function
        def more(x: tn.Array) -> tn.Array:
            return x + captured

        return engine.push(more, VALUES[0]), ref(captured)

    handle, captured = pushed()
    assert handle.get().tolist() == [1.0, 2.0, 3.0, 4.0]
    gc.collect()
    assert captured() is None


def test_a_push_within_an_operator_is_one_of_the_batch(engine: tn.Engine) -> None:
    class Push(tn.Operator):
        def run(self, x: Any) -> Any:
            return [engine.push(cell, x, x)]

    (inner,) = engine.push(Push(), VALUES[3]).get()
    assert bits(inner.get()) == bits(cell(tn.asarray(VALUES[3]), tn.asarray(VALUES[3])))


def test_more_inputs_than_operations_have(engine: tn.Engine) -> None:
    @tn.function
    def total(*arrays: tn.Array) -> tn.Array:
        return sum(arrays[1:], arrays[0])

    with engine.hold():
        handles = [engine.push(total, *VALUES[:9]) for _ in range(COUNT)]
    assert handles[0].get().tolist() == sum(VALUES[:9]).tolist()
    assert engine.stats()["batch_sizes"] == {COUNT: 1}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tn.cumulative_sum(x) * 0.5,
        lambda x: tn.sort(x),
        lambda x: tn.linalg.vector_norm(x),
        lambda x: tn.cond(tn.sum(x) > 0, lambda x: x + 1, lambda x: x - 1, x),
    ],
)
@pytest.mark.parametrize("length", [1, 3])
def test_call_run_by_python_has_its_type_before(
    engine: tn.Engine, function: Any, length: int
) -> None:
    captured = tn.asarray([10.0]).wait()
    first, second = tn.function(function), tn.function(lambda x: x + captured)
    third = tn.function(lambda tree: tree["x"] * captured)
    with engine.hold():
        a = engine.push(first, np.ones(length))
        b, c = engine.push(second, a), engine.push(third, {"x": a})
        captured *= 100.0
    wanted = np.asarray(function(tn.ones(length)))
    assert bits(a.get()) == bits(wanted)
    assert bits(b.get()) == bits(wanted + 10.0)
    assert bits(c.get()) == bits(wanted * 10.0)


def test_too_many_inputs_are_told_the_most(engine: tn.Engine) -> None:
    inputs = [engine.put(np.ones(2)) for _ in range(300)]
    every = tn.function(lambda *xs: sum(xs))
    with pytest.raises(TypeError, match="takes at most 255 inputs, not 300") as caught:
        engine.push(every, *inputs)
    assert "many inputs in a list" in str(caught.value)
    listed = tn.function(lambda xs: sum(xs))
    assert engine.push(listed, inputs).get().tolist() == [300.0, 300.0]
