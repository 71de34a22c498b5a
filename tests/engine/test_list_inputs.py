"""Inputs that are lists of handles and arrays; operations of submodules, with several results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Pair(NamedTuple):
    left: Any
    right: Any


class Sees(tn.Operator):
    """Hands on what it is given, as it is, with its type."""

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        return ("saw", *inputs)


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_list_of_handles_and_arrays_is_one_input(engine: tn.Engine, name: str) -> None:
    x, y = np.arange(4.0), np.arange(4.0) + 10
    sum_ = engine.push(tn.operators.add, x, y)
    given = [sum_, tn.asarray(x), y, engine.put(y)]
    expected = getattr(np, {"concat": "concatenate"}.get(name, name))([x + y, x, y, y])
    for inputs in (given, tuple(given)):
        found = engine.push(getattr(tn.operators, name), inputs).get()
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_parameters_stand_beside_lists(engine: tn.Engine) -> None:
    x = engine.put(np.ones((2, 3)))
    assert engine.push(tn.operators.concat, [x, x], axis=1).get().shape == (2, 6)
    assert engine.push(tn.operators.stack, [x, x], axis=-1).get().shape == (2, 3, 2)


def test_array_of_a_list_is_not_seen_to_change(engine: tn.Engine) -> None:
    x = np.zeros(3)
    with engine.hold():
        handle = engine.push(tn.operators.concat, [x, x])
        x[:] = 1
    assert handle.get().tolist() == [0.0] * 6


def test_operands_of_einsum_are_handles(engine: tn.Engine) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    handle = engine.push(tn.operators.einsum, "ij,jk->ik", engine.put(x), engine.put(y))
    np.testing.assert_array_equal(np.asarray(handle.get()), x @ y)


def test_operation_that_returns_a_list_has_its_arrays_computed(engine: tn.Engine) -> None:
    x, y = engine.put(np.arange(2.0)), engine.put(np.arange(3.0))
    grids = engine.push(tn.operators.meshgrid, x, y).get()
    assert [grid.shape for grid in grids] == [(3, 2), (3, 2)]


def test_operator_of_a_user_is_given_the_list(engine: tn.Engine) -> None:
    one, two = engine.put(1), engine.push(tn.operators.add, 1.0, 1.0)
    found = engine.push(Sees(), [one, [two, "text"]], (one,), Pair(one, 3), [1, 2]).get()
    assert found[1] == [1, [2.0, "text"]]
    assert found[2] == (1,)
    assert found[3] == Pair(1, 3)
    assert type(found[3]) is Pair
    assert found[4] == [1, 2]


def test_list_without_handles_is_the_object_itself(engine: tn.Engine) -> None:
    given = [1, np.ones(2)]
    assert engine.push(Sees(), given).get()[1] is given


def test_failure_of_an_item_is_that_of_the_reader(engine: tn.Engine) -> None:
    bad = engine.push(tn.operators.add, np.ones(2), np.ones(3))
    handle = engine.push(tn.operators.concat, [np.ones(2), bad])
    with pytest.raises(tn.errors.ShapeError, match="add"):
        handle.get()


def test_items_of_a_list_are_freed_with_it(engine: tn.Engine) -> None:
    handle = engine.push(tn.operators.concat, [engine.put(np.ones(3)) for _ in range(10)])
    assert handle.get().shape == (30,)
    del handle
    engine.flush()
    assert engine.stats()["live_objects"] == 0


def test_pure_work_on_a_list_is_dropped_with_its_handle(engine: tn.Engine) -> None:
    with engine.hold():
        x = engine.push(tn.operators.add, np.ones(3), 1.0)
        handle = engine.push(tn.operators.concat, [x, x])
        del handle, x
    engine.flush()
    stats = engine.stats()
    assert (stats["done"], stats["live_objects"]) == (0, 0)


def test_increments_and_targets_may_be_lists(engine: tn.Engine) -> None:
    class Extend(tn.InPlaceOperator):
        def run(self, target: list[Any], more: list[Any]) -> None:
            target.extend(more)

    one = engine.put(1)
    assert engine.push(Extend(), [one], [one, 2]).get() == [1, 1, 2]


def test_handle_of_another_engine_in_a_list_is_told(engine: tn.Engine) -> None:
    with tn.Engine(threads=1) as other, pytest.raises(ValueError, match="another engine"):
        engine.push(tn.operators.concat, [engine.put(np.ones(2)), other.put(np.ones(2))])
    engine.flush()
    assert engine.stats()["live_objects"] == 0


def test_list_that_holds_itself_is_told(engine: tn.Engine) -> None:
    knot: list[Any] = [engine.put(1)]
    knot.append(knot)
    with pytest.raises(RecursionError):
        engine.push(Sees(), knot)


def test_handles_inside_what_is_put_are_told(engine: tn.Engine) -> None:
    with pytest.raises(TypeError, match="put: a list or tuple that holds handles"):
        engine.put([engine.put(1)])


def spread(values: np.ndarray) -> np.ndarray:
    return values + np.eye(len(values)) * len(values)


OPERANDS: dict[str, Callable[[np.ndarray], list[Any]]] = {
    "outer": lambda a: [a[0], a[0]],
    "cho_solve": lambda a: [(a, True), a[0]],
    "lu_solve": lambda a: [(a, np.arange(3)), a],
    "multi_dot": lambda a: [[a, a, a]],
    "solve_banded": lambda a: [(1, 1), a, a[0]],
    "solve_triangular": lambda a: [a, a],
    "tensorinv": lambda a: [np.kron(a, a).reshape(3, 3, 3, 3)],
    "tensorsolve": lambda a: [a, a[0]],
}
OF_LINALG = sorted(name for name in vars(tn.operators.linalg) if not name.startswith("__"))


@pytest.mark.parametrize("name", OF_LINALG)
def test_operations_of_linalg_are_operators(engine: tn.Engine, name: str) -> None:
    operation = getattr(tn.operators.linalg, name)
    a = spread(np.random.default_rng(1).standard_normal((3, 3)))
    a = a + a.T
    second = {"cross", "lstsq", "matmul", "outer", "solve", "tensordot", "triangular_solve"}
    inputs = [a, a] if name in second | {"vecdot"} else [a, 2] if name == "matrix_power" else [a]
    inputs = OPERANDS[name](a) if name in OPERANDS else inputs
    plain = name in (
        "cho_solve",
        "lu_solve",
        "multi_dot",
        "solve_banded",
    )  # what comes first is no array
    operands = inputs if plain else [tn.asarray(inputs[0]), *inputs[1:]]
    expected = getattr(tn.linalg, name)(*operands)
    found = engine.push(operation, *inputs).get()
    if not isinstance(expected, tuple):
        found, expected = [found], [expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_several_results_are_a_tuple_with_names(engine: tn.Engine) -> None:
    found = engine.push(tn.operators.linalg.svd, np.eye(2)).get()
    assert found._fields == ("U", "S", "Vh")
    assert all(isinstance(each, tn.Array) for each in found)


def test_operators_of_a_submodule_stand_in_one(engine: tn.Engine) -> None:
    assert tn.operators.linalg.inv is tn.operators.linalg_inv
    assert tn.operators.linalg.matmul is tn.operators.matmul
    with pytest.raises(AttributeError):
        _ = tn.operators.linalg.exp
