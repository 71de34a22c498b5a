"""Batches on a device: as many launches as on the CPU, by rows that no copy of the host stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from comparison import computed
from graphs import message_passing, real_graphs
from tenfold import _native, settings
from trees import syntax_trees, training, tree_lstm

pytestmark = pytest.mark.cpu  # names its devices

DEVICE = "emulated:0"
Work = Callable[[], Sequence[Any]]
COUNT = 64
MANY = 500
"""More rows than the table of a launch has."""


def forest_of(count: int) -> Work:
    forest = syntax_trees.trees(count)
    encode = tree_lstm.tree_lstm(tree_lstm.weights(tree_lstm.labels(forest), 8))
    return lambda: computed([encode(tree) for tree in forest])


def passed_messages() -> Work:
    graphs = real_graphs.graphs(6)
    run = message_passing.message_passing(message_passing.layers(2, 8))
    states = [[*map(tn.asarray, each)] for each in message_passing.beginnings(graphs, 8)]
    return lambda: computed([end for ends in map(run, graphs, states) for end in ends])


def training_step() -> Work:
    given = training.parameters(len(training.LABELS), 8)
    forest, truths = next(training.batches(3, 16))

    def run() -> Sequence[Any]:
        loss = training.loss_of(training.logits(given, forest), truths)
        return computed([loss, *tn.grad_of(loss, [*given])])

    return run


def mixed_shapes() -> Work:
    lengths = np.random.default_rng(0).integers(3, 9, 200)
    xs = [tn.asarray(numbers((int(n),), n)) for n in lengths]
    f = tn.function(lambda x: tn.sum(tn.exp(x) * x))
    return lambda: computed([f(x) for x in xs])


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def pushed(operator: Any, *shapes: Any) -> Work:
    """Pushes of an operator on arrays of these shapes; a float is a number of each."""
    engine = tn.Engine(threads=1)
    members = [
        [tn.asarray(numbers(s, i)) if isinstance(s, tuple) else s * i for s in shapes]
        for i in range(COUNT)
    ]

    def run() -> Sequence[Any]:
        with engine.hold():
            handles = [engine.push(operator, *member) for member in members]
        engine.flush()
        return [handle.get() for handle in handles]

    return run


PROGRAMS: dict[str, Callable[[], Work]] = {
    "Tree-LSTM": lambda: forest_of(8),
    "message passing": passed_messages,
    "training step": training_step,
    "mixed shapes": mixed_shapes,
    "function": lambda: pushed(tn.function(lambda x, y: tn.tanh(y @ x) + x), (9,), (9, 9)),
    "product": lambda: pushed(tn.operators.matmul, (6, 6), (6, 6)),
    "sum": lambda: pushed(tn.operators.sum, (6, 6)),
    "addition": lambda: pushed(tn.operators.add, (6, 6), (6, 6)),
    "a number for each": lambda: pushed(tn.operators.multiply, (7,), 0.5),
    "complex numbers": lambda: pushed(tn.operators.subtract, 0.5j, (7,)),
}


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_of_a_device_have_the_launches_of_the_cpu(name: str) -> None:
    found = []
    for device in ("cpu", DEVICE):
        with tn.options(device=device):
            work = PROGRAMS[name]()
            work(), work()  # by now everything has a plan
            before = _native.emulated_traffic()
            with tn.profile() as p:
                results = work()
            launches, copies, waits = np.subtract(_native.emulated_traffic(), before)
            found.append((p, [np.asarray(result) for result in results]))
    (cpu, wanted), (p, got) = found
    assert (p.batches, p.gathers) == (cpu.batches, max(p.gathers, cpu.gathers))
    assert p.launches <= cpu.launches  # what is not batched has a plan, of fewer kernels
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    if name == "training step":  # which imports labels, and checks indices
        return
    assert launches <= p.launches + 2 * (p.gathers + 1)  # none for each member
    assert (copies, waits) == (0, 0)


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "rows": lambda x: x,
    "columns": lambda x: tn.permute_dims(tn.asarray(x), (1, 0)),
    "parts": lambda x: tn.asarray(x)[1:, ::2],
    "a broadcast": lambda x: tn.broadcast_to(tn.asarray(x[:1]), (3, 4)),
}


@pytest.mark.parametrize("dtype", ["float64", "complex64", "bool", "int8", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_any_layout_are_stacked(layout: str, dtype: str) -> None:
    f = tn.function(lambda x, y: tn.where(x == y, x, y))
    y = (3 * numbers((4, 4))).astype(dtype)
    members = [(3 * numbers((3, 4), i)).astype(dtype) for i in range(MANY)]
    with tn.options(device=DEVICE), tn.Engine(threads=1) as engine:
        xs = [tn.eval(tn.asarray(LAYOUTS[layout](x))) for x in members]
        other = tn.asarray(y[: xs[0].shape[0], : xs[0].shape[1]])
        for _ in range(2):
            before = _native.emulated_traffic()
            with engine.hold():
                handles = [engine.push(f, x, other) for x in xs]
            engine.flush()
            _, copies, waits = np.subtract(_native.emulated_traffic(), before)
            assert (copies, waits) == (0, 0)
        got, theirs = [np.asarray(handle.get()) for handle in handles], np.asarray(other)
        for x, result in zip(xs, got, strict=True):
            wanted = np.asarray(x)
            np.testing.assert_array_equal(result, np.where(wanted == theirs, wanted, theirs))


class Accumulate(tn.CumulativeOperator):
    pass


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int16", "float16"])
@pytest.mark.parametrize("count", [3, COUNT, MANY + 200])
def test_increments_have_the_sum_of_the_cpu_in_one_launch(count: int, dtype: str) -> None:
    sums = []
    for device in ("cpu", DEVICE):
        with tn.options(device=device), tn.Engine(threads=1) as engine:
            parts = [engine.put((9 * numbers((3, 5), i)).astype(dtype)) for i in range(count)]
            for _ in range(2):
                total = engine.put(np.ones((3, 5), dtype))
                before = _native.emulated_traffic()
                with engine.hold():
                    for part in parts:
                        total = engine.push(Accumulate(), total, part)
                engine.flush()
                made, copies, _ = np.subtract(_native.emulated_traffic(), before)
            sums.append(np.asarray(total.get()))
    assert sums[0].tobytes() == sums[1].tobytes()
    if dtype != "float16":  # whose sums are rounded after each addition
        assert copies == 0
        assert made == 1 or (count > MANY and made < 16)


def test_limits_of_batches_are_those_of_the_device() -> None:
    with tn.options(batch_limit="64, emulated=3, emulated:1=5", batch_wait="10, cpu=20"):
        found = []
        for device in ("cpu", "emulated:0", "emulated:1"):
            with tn.options(device=device):
                found.append((settings.batch_limit(), settings.on_device("batch_wait")))
        assert found == [(64, 20), (3, 10), (5, 10)]
        with tn.options(device=DEVICE), tn.Engine(threads=1) as engine:
            with engine.hold():
                handles = [engine.push(tn.operators.exp, np.ones(3)) for _ in range(7)]
            engine.flush()
            assert (engine.stats()["batches"], len(handles)) == (3, 7)
    with pytest.raises(ValueError, match="'x' is not a whole number"):
        tn.set_options(batch_limit="cpu=x")
