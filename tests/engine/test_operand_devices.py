"""Operators on the devices of their operands: moves, `run_on`, results that move back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DeviceError, RunError

pytestmark = pytest.mark.cpu  # the default device

OPERATORS = tn.operators
FIRST, SECOND = "emulated:0", "emulated:1"
X, Y = np.arange(3.0), np.array([5.0, 7.0, 9.0])


class Summed(tn.Operator):
    """Adds on the host, in NumPy, and notes where its operands are."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run(self, *inputs: tn.Array) -> np.ndarray:
        self.seen += [x.device for x in inputs]
        return sum(map(np.asarray, inputs), np.zeros(3))


class There(Summed):
    """Adds where its first operand is."""

    def run_on(self, device: str, *inputs: tn.Array) -> tn.Array:
        self.seen += [device, *(x.device for x in inputs)]
        return inputs[0] + inputs[1]


class Box(tn.EngineObject):
    def __init__(self, x: tn.Array) -> None:
        self.x = x


class Movable(Box):
    @property
    def device(self) -> str:
        return self.x.device

    def to_device(self, device: str) -> Movable:
        return Movable(self.x.to_device(device))


class Opened(tn.Operator):
    def run(self, x: tn.Array, box: Box) -> tn.Array:
        return x + box.x

    def run_on(self, device: str, x: tn.Array, box: Box) -> tn.Array:
        return self.run(x, box)


@pytest.mark.parametrize("operation", [OPERATORS.add, OPERATORS.matmul, OPERATORS.maximum])
@pytest.mark.parametrize("devices", [(FIRST, "cpu"), ("cpu", FIRST), (FIRST, SECOND)])
@pytest.mark.parametrize("count", [1, 9])
def test_operands_move_to_the_device_of_the_first(
    operation: Any, devices: tuple[str, str], count: int
) -> None:
    with tn.Engine() as engine:
        x, y = (engine.put(tn.asarray(a, device=d)) for a, d in zip((X, Y), devices, strict=True))
        with engine.hold():
            handles = [engine.push(operation, x, y) for _ in range(count)]
        for handle in handles:
            result = handle.get()
            assert result.device == devices[0]
            assert result.tolist() == getattr(np, operation.name)(X, Y).tolist()


def test_arrays_in_a_list_move_to_the_first() -> None:
    with tn.Engine() as engine:
        arrays = [tn.asarray(X, device=device) for device in (SECOND, "cpu", FIRST)]
        result = engine.push(OPERATORS.stack, arrays).get()
    assert (result.device, result.tolist()) == (SECOND, [X.tolist()] * 3)


def test_move_is_pushed_and_batched() -> None:
    with tn.Engine() as engine, engine.hold():
        handles = [engine.push(OPERATORS.to_device, X + i, device=FIRST) for i in range(40)]
        sums = [engine.push(OPERATORS.add, handle, handle) for handle in handles]
        engine.flush()
        assert {handle.get().device for handle in sums} == {FIRST}
        assert [handle.get().tolist() for handle in sums] == [
            (2 * (X + i)).tolist() for i in range(40)
        ]


def test_operator_runs_on_the_host_and_its_result_moves_back() -> None:
    operator = Summed()
    with tn.Engine() as engine:
        result = engine.push(
            operator, tn.asarray(X, device=FIRST), tn.asarray(Y, device=SECOND)
        ).get()
    assert (result.device, result.tolist()) == (FIRST, (X + Y).tolist())
    assert operator.seen == ["cpu", "cpu"]


@pytest.mark.parametrize("device", [FIRST, "cpu"])
def test_run_on_gets_operands_where_they_are(device: str) -> None:
    operator = There()
    with tn.Engine() as engine:
        result = engine.push(
            operator, tn.asarray(X, device=device), tn.asarray(Y, device="cpu")
        ).get()
    assert (result.device, result.tolist()) == (device, (X + Y).tolist())
    assert operator.seen == ([FIRST] * 3 if device == FIRST else ["cpu"] * 2)


def test_call_of_an_operator_moves_as_a_push() -> None:
    x, y = tn.asarray(X, device=FIRST), tn.asarray(Y)
    assert Summed()(x, y).device == There()(x, y).device == FIRST


def test_object_moves_by_its_own_method() -> None:
    with tn.Engine() as engine:
        box = engine.put(Movable(tn.asarray(Y)))
        result = engine.push(Opened(), tn.asarray(X, device=FIRST), box).get()
    assert (result.device, result.tolist()) == (FIRST, (X + Y).tolist())


def test_object_that_cannot_move_is_an_error_with_its_class() -> None:
    with tn.Engine() as engine:
        box = engine.put(Box(tn.asarray(Y)))
        with pytest.raises(
            DeviceError, match=r"(?s)a Box is on 'cpu'.*to_device\(self, device\) in Box"
        ):
            engine.push(Opened(), tn.asarray(X, device=FIRST), box).get()


def test_batched_in_place_and_cumulative_operators_on_a_device() -> None:
    class Norms(tn.BatchedOperator):
        def run_batch(self, inputs: Any) -> list[Any]:
            return [np.linalg.norm(np.asarray(x)) * np.ones(2) for (x,) in inputs]

    class Stacked(tn.BatchedOperator):
        stacked = True

        def run_batch(self, x: tn.Array) -> Any:
            return np.asarray(x) + 1

    class AddTo(tn.InPlaceOperator):
        def run(self, target: tn.Array, x: tn.Array) -> None:
            target += np.asarray(x)

    class Accumulate(tn.CumulativeOperator):
        pass

    with tn.Engine() as engine:
        x = engine.put(tn.asarray(Y, device=FIRST))
        with engine.hold():
            pushed = [
                engine.push(operator, x) for operator in (Norms(), Stacked()) for _ in range(3)
            ]
        pushed.append(engine.push(AddTo(), x, X))
        total = engine.put(tn.asarray(X, device=SECOND))
        for _ in range(5):
            total = engine.push(Accumulate(), total, x)
        results = [handle.get() for handle in (*pushed, total)]
    assert [each.device for each in results] == [FIRST] * 7 + [SECOND]
    wanted = [np.linalg.norm(Y) * np.ones(2)] * 3 + [Y + 1] * 3 + [X + Y, X + 5 * Y]
    for found, expected in zip(results, wanted, strict=True):
        assert found.tolist() == expected.tolist()


def test_failure_on_a_device_reaches_its_readers() -> None:
    class Fails(tn.Operator):
        def run(self, x: tn.Array) -> None:
            raise ValueError(f"at {x.device}")

    with tn.Engine() as engine:
        failed = engine.push(Fails(), tn.asarray(X, device=FIRST))
        moved = engine.push(OPERATORS.to_device, failed, device="cpu")
        with pytest.raises(RunError, match="at cpu"):
            moved.get()
