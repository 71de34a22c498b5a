"""Numbers that are assigned to elements, by products and joins: each has a plan of its own, and the
op interpreter assigns it. So the position changes no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native

RANDOM = np.random.default_rng(17)
TURNS = 24
"""More than assignments need to be deferred, and more than a cache line has elements."""


@pytest.fixture(autouse=True)
def _no_plans() -> Iterator[None]:
    tn.trim()
    yield
    tn.trim()


NUMBERS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "sum of a product": lambda a, v, x, i: (a * v[i % 2] @ v).sum() * 0.5,
    "product of three": lambda a, v, x, i: v @ (a * a) @ v,
    "joined": lambda a, v, x, i: tn.sum(tn.concat([v * v[0], a[i % 2] + 1])),
    "of the target": lambda a, v, x, i: (a @ v).sum() + x[i - 1] * x.sum(),
    "one element of an axis": lambda a, v, x, i: tn.sum(a @ a, axis=(0, 1), keepdims=True)[0] + i,
    "quantile": lambda a, v, x, i: tn.sort(a @ v + i)[0],
}


def run(number: Callable[..., Any], a: np.ndarray, start: np.ndarray, key: Any) -> np.ndarray:
    """The target after assignments to each position; a name of the old value keeps it."""
    x = tn.asarray(start, copy=True)
    matrix = tn.asarray(a)
    old = x * 1
    for i in range(min(TURNS, len(start))):
        x[key(i)] = number(matrix, matrix[0] + 1, x, i)
    result = np.array(x)
    assert np.asarray(old).tobytes() == start.tobytes()
    return result


KEYS: dict[str, tuple[int, Callable[[int], Any]]] = {
    "element": (1, lambda i: i),
    "row": (2, lambda i: (i, slice(1, 3))),
    "last": (1, lambda i: -1 - i),
}


CASES = [(name, key) for name in NUMBERS for key in KEYS if (name, key) != ("of the target", "row")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "key"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [2, 25, 300])
@pytest.mark.parametrize("threads", [1, 7])
def test_an_assigned_number_has_the_bits_of_the_plan_of_its_assignment(
    name: str, key: str, dtype: str, size: int, threads: int
) -> None:
    ndim, at = KEYS[key]
    a = RANDOM.uniform(-1, 1, (size, size)).astype(dtype)
    a[0, -1] = np.nan if size == 25 else 0.25
    start = RANDOM.uniform(0, 1, (TURNS, 4)[:ndim]).astype(dtype)
    with tn.options(threads=threads):
        with tn.options(tier=1):
            planned = run(NUMBERS[name], a, start, at)
        for _ in range(2):
            found = run(NUMBERS[name], a, start, at)
            np.testing.assert_array_equal(found, planned)
            assert np.isnan(a).any() or found.tobytes() == planned.tobytes()


def test_an_assigned_number_is_that_of_numpy() -> None:
    a, expected = RANDOM.uniform(-1, 1, (9, 9)), np.zeros(TURNS)
    x, matrix = tn.zeros((TURNS,)), tn.asarray(a)
    for i in range(TURNS):
        expected[i] = 0.5 * np.sum(np.hstack((a * i @ a, a)))
        x[i] = 0.5 * tn.sum(tn.concat([matrix * i @ matrix, matrix], axis=1))
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12)


def plans(turns: int) -> int:
    """The plans of so many assignments."""
    a = tn.asarray(np.arange(9.0).reshape(3, 3))
    x = tn.zeros((TURNS,)).wait()
    before = _native.num_cached_plans()
    for i in range(turns):
        x[i] = tn.sum(tn.concat([a * 2.25 @ a, a]))
        x.wait()
    return _native.num_cached_plans() - before


def test_the_position_of_an_assigned_number_changes_no_plan() -> None:
    assert plans(1) == 1
    assert plans(TURNS) == 0


@pytest.mark.parametrize("position", [0, 3])
def test_an_assigned_number_that_fails_is_reported_at_its_line(position: int) -> None:
    singular = tn.asarray(np.zeros((3, 3)))
    for _ in range(2):
        x = tn.asarray(np.arange(5.0), copy=True)
        x[position] = tn.sum(tn.linalg.inv(singular * 2.0))
        with pytest.raises(tn.linalg.LinAlgError):
            x.wait()


def test_a_function_of_the_user_runs_once_for_an_assigned_number() -> None:
    calls: list[int] = []

    def reference(x: np.ndarray) -> np.ndarray:
        calls.append(x.size)
        raise ValueError("no")

    @tn.op(reference=reference)
    def failing(x: tn.Array) -> tn.Array:
        """Fails."""
        return x + 1

    x = tn.asarray(np.arange(5.0), copy=True)
    x[1] = tn.sum(failing(tn.asarray(np.arange(3.0))))
    with pytest.raises(Exception, match="no"):
        x.wait()
    assert calls == [3]


def test_the_target_is_written_in_place() -> None:
    values = np.arange(16.0).reshape(4, 4)
    a, expected = tn.asarray(values), float((values @ values + values).sum())
    x = tn.asarray(np.zeros(100_000), copy=True).wait()
    for i in range(3):
        x[i] = tn.sum(tn.concat([a @ a, a]))
        with tn.profile() as p:
            x.wait()
        assert p.copies == 0
    assert x[:3].tolist() == [expected] * 3
