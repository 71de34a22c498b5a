"""An own operator with `stacked = True` gets the inputs of many pushes as stacked arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import tenfold as tn

COUNT = 40


class Scaled(tn.BatchedOperator):
    """Notes the shapes that come."""

    pure = True
    stacked = True
    shapes: ClassVar[list[tuple[int, ...]]] = []

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def run_batch(self, x: tn.Array, y: tn.Array) -> tn.Array:
        Scaled.shapes.append(x.shape)
        return x * self.factor + y


class Checked(tn.BatchedOperator):
    """Refuses stacks that have a negative number."""

    stacked = True

    def __init__(self, pure: bool) -> None:
        self.pure = pure

    def run_batch(self, x: tn.Array) -> np.ndarray:
        values = np.asarray(x)
        if (values < 0).any():
            raise ValueError("negative")
        return np.sqrt(values)


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    Scaled.shapes = []
    with tn.Engine(threads=2) as engine:
        yield engine


def values(*shape: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).random(shape) for i in range(COUNT)]


@pytest.mark.parametrize("limit", [1, 7, 64, None])
def test_run_batch_gets_a_row_for_each_push(limit: int | None) -> None:
    Scaled.shapes = []
    xs, ys = values(3, 2), values(3, 2)
    with tn.Engine(threads=2, batch_limit=limit) as engine:
        with engine.hold():
            handles = [engine.push(Scaled(2.0), x, y) for x, y in zip(xs, ys, strict=True)]
        engine.flush()
    for x, y, handle in zip(xs, ys, handles, strict=True):
        assert np.asarray(handle.get()).tobytes() == (x * 2.0 + y).tobytes()
    size = min(limit or COUNT, COUNT)
    assert Scaled.shapes[0] == (size, 3, 2)
    assert sum(shape[0] for shape in Scaled.shapes) == COUNT
    assert len(Scaled.shapes) == -(-COUNT // size)


def test_operators_of_other_attributes_shapes_and_dtypes_are_other_batches(
    engine: tn.Engine,
) -> None:
    with engine.hold():
        handles = [engine.push(Scaled(2.0), x, x) for x in values(3)]
        handles += [engine.push(Scaled(3.0), x, x) for x in values(3)]
        handles += [engine.push(Scaled(2.0), x[:2], x[:2]) for x in values(3)]
        handles += [engine.push(Scaled(2.0), x.astype(np.float32), x) for x in values(3)]
    engine.flush()
    assert sorted(Scaled.shapes) == [(COUNT, 2), (COUNT, 3), (COUNT, 3), (COUNT, 3)]
    wanted = [x * factor + x for factor in (2.0, 3.0) for x in values(3)]
    for handle, expected in zip(handles, wanted, strict=False):
        assert np.asarray(handle.get()).tobytes() == expected.tobytes()


def test_strided_inputs_and_numbers_are_stacked_too(engine: tn.Engine) -> None:
    xs = [tn.asarray(x) for x in values(4, 3)]
    with engine.hold():
        strided = [engine.push(Scaled(2.0), tn.eval(x.T), x.T) for x in xs]
        numbers = [engine.push(Scaled(2.0), float(i), i) for i in range(COUNT)]
    for x, handle in zip(xs, strided, strict=True):
        assert (np.asarray(handle.get()) == np.asarray(x).T * 2.0 + np.asarray(x).T).all()
    assert [handle.get().item() for handle in numbers] == [3.0 * i for i in range(COUNT)]


def test_a_pure_operator_that_fails_runs_each_member_by_itself(engine: tn.Engine) -> None:
    with engine.hold():
        handles = [engine.push(Checked(True), np.asarray([float(x)])) for x in (4, -1, 9)]
    assert handles[0].get().tolist() == [2.0]
    assert handles[2].get().tolist() == [3.0]
    with pytest.raises(tn.errors.RunError, match="negative"):
        handles[1].get()


def test_an_impure_operator_that_fails_fails_all(engine: tn.Engine) -> None:
    with engine.hold():
        handles = [engine.push(Checked(False), np.asarray([float(x)])) for x in (4, -1, 9)]
    for handle in handles:
        with pytest.raises(tn.errors.RunError, match="negative"):
            handle.get()


@pytest.mark.parametrize("result", [[1.0, 2.0], 3.0, np.zeros(1), np.zeros(())])
def test_a_result_without_a_row_for_each_is_an_error(engine: tn.Engine, result: Any) -> None:
    class Wrong(tn.BatchedOperator):
        stacked = True

        def run_batch(self, x: tn.Array) -> Any:
            return result

    with engine.hold():
        handles = [engine.push(Wrong(), np.zeros(3)) for _ in range(5)]
    for handle in handles:
        with pytest.raises(tn.errors.RunError, match=r"run_batch returned .* for 5 stacked inputs"):
            handle.get()


def test_a_call_with_values_is_a_batch_of_one() -> None:
    assert Scaled(2.0)(tn.asarray([1.0, 2.0]), tn.asarray([1.0, 1.0])).tolist() == [3.0, 5.0]
