"""tn.while_loop and tn.cond; threads, engines and failures of loops."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import UnsupportedError
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK
from tenfold.testing import assert_equal_bits

from .loop_bodies import collatz, decay, numbers, steps_of, unrolled


@pytest.fixture(params=["cpu", "reference"])
def on(request: pytest.FixtureRequest) -> Iterator[str]:
    with tn.options(device=request.param):
        yield request.param


def test_a_while_loop_is_the_loop_of_python(on: str) -> None:
    for n in (1, 2, 3, 7, 27, 97):
        assert collatz(n).item() == steps_of(n)


def test_a_while_loop_that_does_not_begin_hands_on_what_it_was_given() -> None:
    x = tn.asarray([1.0, 2.0])
    found = tn.while_loop(lambda c: tn.any(c < 0), lambda c: c + 1, x)
    assert found.tolist() == [1.0, 2.0]
    found += 1
    assert x.tolist() == [1.0, 2.0]
    assert tn.while_loop(lambda c: tn.asarray(False), lambda c: c * 2, 3).item() == 3


def test_the_condition_reads_what_is_there_at_the_call() -> None:
    limit = tn.asarray(10)

    def below(c: tn.Array) -> tn.Array:
        return c < limit

    def up(c: tn.Array) -> tn.Array:
        return c + 3

    assert tn.while_loop(below, up, 0).item() == 12
    limit[...] = 20
    assert tn.while_loop(below, up, 0).item() == 21
    limit = tn.asarray(1)
    assert tn.while_loop(below, up, 0).item() == 3


def test_a_condition_may_change_what_it_is_given() -> None:
    def below(c: tn.Array) -> tn.Array:
        c += 100
        return c < 105

    assert tn.while_loop(below, lambda c: c + 1, 0).item() == 5


@pytest.mark.parametrize(("a", "b"), [(False, True), (True, False), (True, True)])
def test_a_condition_and_a_body_that_are_alike_read_each_its_own(a: bool, b: bool) -> None:
    def flipped(other: tn.Array) -> Any:
        return lambda c: (c ^ other) & c

    found = tn.while_loop(flipped(tn.asarray(a)), flipped(tn.asarray(b)), True)
    wanted = True
    while (wanted ^ a) & wanted:
        wanted = (wanted ^ b) & wanted
    assert found.item() == wanted


def test_newton_in_a_while_loop_is_newton_in_python() -> None:
    def newton(a: float) -> float:
        x = np.float64(1.0)
        while abs(x * x - a) > 1e-9 * a:
            x = (x + a / x) / 2
        return float(x)

    for a in (0.25, 2.0, 1e10):
        found = tn.while_loop(
            lambda x, a=a: tn.abs(x * x - a) > 1e-9 * a, lambda x, a=a: (x + a / x) / 2, 1.0
        )
        assert found.item() == newton(a)


def test_loops_in_each_other() -> None:
    def row(i: tn.Array) -> tn.Array:
        return tn.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0))[1]

    sums = tn.scan(
        lambda c, i: (c + 1, tn.cond(i % 2 == 0, row, lambda i: -i, i)), 0, tn.arange(8)
    )[1]
    assert sums.tolist() == [0, -1, 1, -3, 6, -5, 15, -7]


def test_a_cond_takes_one_branch(on: str) -> None:
    x = tn.asarray([3.0, 4.0])
    for chosen in (True, False, np.True_, tn.asarray(True), tn.sum(x) > 1, tn.sum(x) < 1):
        found = tn.cond(chosen, lambda a, b: (a + b, a), lambda a, b: (a - b, b), x, 2 * x)
        wanted = [[9.0, 12.0], [3.0, 4.0]] if chosen else [[-3.0, -4.0], [6.0, 8.0]]
        assert [each.tolist() for each in found] == wanted


def test_only_the_branch_that_is_taken_is_computed() -> None:
    singular, fine = tn.zeros((2, 2)), tn.eye(2)
    took: list[str] = []

    @tn.operator(pure=True)
    def noted(x: tn.Array) -> tn.Array:
        took.append("noted")
        return x

    def inverse(m: tn.Array) -> tn.Array:
        return noted(tn.linalg.inv(m))

    for matrix, regular in ((singular, False), (fine, True)):
        found = tn.cond(tn.asarray(regular), inverse, lambda m: m + 1, matrix)
        assert found.tolist() == ([[1.0, 0.0], [0.0, 1.0]] if regular else [[1.0, 1.0]] * 2)
    assert took == ["noted"]


def test_a_branch_without_operands_is_computed_only_if_it_is_taken() -> None:
    singular = tn.zeros((2, 2))
    there = singular + 1
    found = tn.cond(tn.asarray(False), lambda: tn.linalg.inv(singular), lambda: there * 2)
    assert found.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert tn.cond(tn.asarray(True), lambda: 1.5, lambda: tn.asarray(0.5)).item() == 1.5
    assert tn.cond(tn.asarray(True), lambda: None or (), lambda: ()) == ()


def test_a_branch_hands_on_what_it_was_given() -> None:
    x = tn.asarray([1.0, 2.0])
    found = tn.cond(tn.asarray(True), lambda x: x, lambda x: x + 1, x)
    found[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


def test_several_threads_run_one_loop() -> None:
    xs = tn.asarray(numbers(300, 8))
    wanted = tn.scan(decay, tn.zeros((8,)), xs)[1].wait()
    found: list[Any] = []

    def work() -> None:
        for _ in range(10):
            found.append(tn.scan(decay, tn.zeros((8,)), xs)[1].wait())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    for each in found:
        assert_equal_bits(each, wanted)


def test_operators_of_an_engine_run_loops() -> None:
    class Steps(tn.Operator):
        pure = True

        def run(self, n: tn.Array) -> tn.Array:
            made: tn.Array = tn.vmap(collatz)(n)
            return made

    with tn.Engine(threads=2) as engine:
        handles = [engine.push(Steps(), tn.arange(i, i + 5)) for i in range(1, 20)]
        for i, handle in enumerate(handles, 1):
            assert handle.get().tolist() == [steps_of(n) for n in range(i, i + 5)]


def test_large_loops_are_submitted() -> None:
    carry, ys = tn.eval(*tn.scan(decay, tn.zeros((20_000,)), tn.ones((5, 20_000))))
    assert_equal_bits(carry, unrolled(decay, np.zeros(20_000), np.ones((5, 20_000)))[0])
    assert ys.shape == (5, 20_000)


def test_a_step_that_fails_says_where(on: str) -> None:
    def f(m: Any, x: Any) -> tuple[Any, Any]:
        m = m - x * tn.eye(2)
        return tn.linalg.inv(m), tn.sum(m)

    line = f.__code__.co_firstlineno + 2
    fine = tn.scan(decay, 0.0, tn.ones((3,)))[0]
    carry, ys = tn.scan(f, tn.eye(2), tn.asarray([2.0, -3.0, 0.5]))
    for made in (carry, ys, carry + 1):
        with pytest.raises(tn.errors.LinAlgError) as caught:
            made.wait()
        assert str(caught.value).startswith("tn.scan, step 2: inv: Singular matrix")
        assert f"{__file__}:{line}" in str(caught.value)
    assert fine.item() == 1.75
    with pytest.raises(tn.errors.LinAlgError, match="step 0: inv: Singular"):
        tn.while_loop(lambda m: tn.sum(m) < 9, tn.linalg.inv, tn.zeros((2, 2))).wait()
    with pytest.raises(tn.errors.LinAlgError, match="inv: Singular"):
        tn.cond(tn.asarray(True), tn.linalg.inv, lambda m: m, tn.zeros((2, 2))).wait()


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
def test_a_function_that_asks_for_values_is_refused_where_it_asks() -> None:
    def f(c: Any, _: Any) -> Any:
        return (c if c > 0 else -c), None

    line = f"{__file__}:{f.__code__.co_firstlineno + 1}"
    for call in (
        lambda: tn.scan(f, 1.0, length=2),
        lambda: tn.function(lambda x: tn.scan(f, x, length=2)[0])(tn.asarray(1.0)),
        lambda: tn.vmap(lambda x: tn.scan(f, x, length=2)[0])(tn.asarray([1.0])),
    ):
        with pytest.raises(UnsupportedError, match="asks for a value") as caught:
            call()
        assert line in str(caught.value)


def test_a_pending_loop_is_not_pickled() -> None:
    carry, _ = tn.scan(decay, 0.0, tn.ones((3,)))
    with pytest.raises(UnsupportedError, match="compute the array first"):
        pickle.dumps(carry)
    assert pickle.loads(pickle.dumps(carry.wait())).item() == 1.75


def test_explain_shows_what_a_step_and_a_branch_are() -> None:
    carry, _ = tn.scan(decay, 0.0, tn.ones((3,)))
    text = str(carry.explain())
    assert "<decay: 3 operations>" in text
    assert "3 steps, each of them:\n       %0 = leaf float64[]" in text
    assert "steps until %4 is false:" in str(
        tn.while_loop(lambda n: n < 3, lambda n: n + 1, 0).explain("scheduled")
    )
    text = str(tn.cond(tn.asarray(True), tn.sin, tn.cos, 1.0).explain("scheduled"))
    assert "where it is true, sin:" in text
    assert "else, cos:" in text


def test_eval_returns_before_a_loop_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        EXTERNAL_BUFFER_LOCK, "enabled", False
    )  # programs with windows compute at once

    class Opened(threading.Event):
        waits = 0

    gate = Opened()

    @tn.operator
    def wait(x: tn.Array) -> tn.Array:
        gate.waits += 1
        assert gate.wait(100)
        return x

    carry, _ = tn.eval(*tn.scan(lambda c, _: (wait(c) + 1, c), 0.0, length=3))
    gate.set()  # had it been computed before, nobody would have come here
    assert carry.item() == 3.0
    assert gate.waits == 3
