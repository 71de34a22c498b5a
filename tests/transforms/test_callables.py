"""Every kind of Python callable: as a traced function, pushed, mapped, a step, an operator."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp
from tenfold.testing import assert_equal_bits

X = np.array([1.0, 2.0, 4.0])


@dataclass
class Scaled:
    """A callable object without a name, which holds an array."""

    factor: Any

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def method(self, x: Any) -> Any:
        return x + self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x / self.factor


def scaled(x: Any, factor: Any, shift: Any = 0.0) -> Any:
    return x * factor + shift


@functools.wraps(scaled)
def wrapped(x: Any) -> Any:
    return scaled(x, 3.0)


CALLABLES: dict[str, Callable[..., Any]] = {
    "partial": functools.partial(scaled, factor=2.0),
    "partial of an array": functools.partial(scaled, factor=tn.asarray([2.0, 3.0, 4.0])),
    "partial by position": functools.partial(operator.mul, 3.0),
    "partial of a ufunc": functools.partial(np.multiply, 2.0),
    "partial of a partial": functools.partial(functools.partial(scaled, shift=1.0), factor=2.0),
    "object": Scaled(2.0),
    "object with an array": Scaled(tn.asarray([2.0, 3.0, 4.0])),
    "object with slots": Slotted(tn.asarray(2.0)),
    "method": Scaled(5.0).method,
    "wrapper of fewer arguments": wrapped,
    "ufunc": np.exp,
    "ufunc of tenfold.numpy": tnp.exp,
    "function of numpy": np.cumsum,
    "operation": tn.exp,
    "builtin": abs,
    "builtin without a signature": operator.attrgetter("T"),
    "class": tn.Array.copy,
    "function with kwargs": lambda x, **named: x * named.get("factor", 2.0),
    "traced function": tn.function(Scaled(3.0).method),
}
REFUSED = (wrapped, CALLABLES["function with kwargs"])
"""An operator states its parameters: these tell others than they take, or none."""
each_callable = pytest.mark.parametrize("callable_", CALLABLES.values(), ids=CALLABLES)


@each_callable
def test_any_callable_is_a_traced_function(callable_: Callable[..., Any]) -> None:
    x = tn.asarray(X)
    traced, expected = tn.function(callable_), np.asarray(callable_(x))
    for _ in range(2):
        assert_equal_bits(np.asarray(traced(x)), expected)
    with tn.Engine() as engine:
        assert_equal_bits(np.asarray(engine.push(traced, x).get()), expected)


@each_callable
def test_any_callable_is_mapped_chosen_and_declared(callable_: Callable[..., Any]) -> None:
    x = tn.asarray(X)
    expected = np.asarray(callable_(x))
    rows = tn.vmap(callable_)(tn.stack([x, x]))
    assert_equal_bits(np.asarray(rows[1]), expected)
    assert_equal_bits(np.asarray(tn.cond(True, callable_, callable_, x)), expected)
    if callable_ not in REFUSED:
        assert_equal_bits(np.asarray(tn.operator(callable_, name="declared")(x)), expected)


def test_a_binary_ufunc_is_a_traced_function() -> None:
    x, y = tn.asarray([1.0, 2.0]), tn.asarray([3.0, 5.0])
    ufunc: Any
    for ufunc in (np.add, np.matmul, np.hypot, tnp.add, operator.add, tn.add, pow):
        assert_equal_bits(np.asarray(tn.function(ufunc)(x, y)), np.asarray(ufunc(x, y)))
    traced: Any = tn.function(np.add)
    assert traced(x, y, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("array", [False, True])
def test_a_step_may_be_a_partial_or_an_object(array: bool) -> None:
    factor: Any = tn.asarray(2.0) if array else 2.0

    def step(factor: Any, carry: Any, x: Any) -> Any:
        return carry + x * factor, carry

    class Step:
        def __call__(self, carry: Any, x: Any) -> Any:
            return step(factor, carry, x)

    for body in (functools.partial(step, factor), Step(), Step().__call__):
        carry, before = tn.scan(body, 0.0, tn.asarray(X))
        assert (carry.item(), before.tolist()) == (14.0, [0.0, 2.0, 6.0])


def test_arrays_of_a_partial_are_read_at_each_call() -> None:
    weight = tn.asarray([1.0, 2.0, 3.0])
    traced = tn.function(functools.partial(scaled, factor=weight))
    assert traced(tn.asarray(X)).tolist() == [1, 4, 12]
    weight += 1
    assert traced(tn.asarray(X)).tolist() == [2, 6, 16]


def test_pushes_of_a_partial_are_batched() -> None:
    traced = tn.function(functools.partial(scaled, factor=tn.asarray([2.0, 3.0, 4.0])))
    with tn.Engine() as engine:
        with engine.hold():
            handles = [engine.push(traced, tn.asarray(X) + i) for i in range(4)]
        assert [handle.get()[0].item() for handle in handles] == [2, 4, 6, 8]


def test_a_partial_has_the_name_of_its_function() -> None:
    traced: Any = tn.function(functools.partial(scaled, factor=2.0))
    assert repr(traced) == "<tn.function scaled>"
    assert traced.__name__ == "scaled"
    assert tn.operator(functools.partial(scaled, factor=2.0)).name == "scaled"
