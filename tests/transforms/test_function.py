"""tn.function: arguments and results, what is captured, when it is traced, and errors."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import RunError


def vector(*numbers: float) -> tn.Array:
    return tn.asarray(np.array(numbers, np.float64))


class Counted:
    """A function that notes how often Python has run it."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.runs = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.runs += 1
            return body(*args, **kwargs)

        counted.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
        self.call: Any = tn.function(counted)


def test_function_is_traced_once_for_arrays_of_equal_types() -> None:
    f = Counted(lambda x, y: x * 2 + y)
    for turn in range(5):
        x = vector(turn, 1.0)
        assert f.call(x, x).tolist() == [3.0 * turn, 3.0]
    assert f.runs == 1
    assert f.call(vector(1, 2, 3), vector(1, 2, 3)).tolist() == [3, 6, 9]
    assert f.call(tn.asarray([1, 2]), vector(0, 0)).dtype == np.float64
    assert f.runs == 3


Pair = namedtuple("Pair", "a b")  # one without types, too


@dataclass
class State:
    h: Any
    c: Any


@dataclass(frozen=True, slots=True)
class Frozen:
    x: Any
    scale: int = 3


TREES: dict[str, tuple[Callable[[tn.Array], Any], Callable[[Any], tn.Array]]] = {
    "array": (lambda x: x, lambda t: t),
    "tuple": (lambda x: (x, x + 1), lambda t: t[1]),
    "list": (lambda x: [x, [x * 2]], lambda t: t[1][0]),
    "dict": (lambda x: {"b": x, "a": x - 1}, lambda t: t["a"]),
    "named tuple": (lambda x: Pair(x, (x,)), lambda t: t.b[0] + t.a),
    "dataclass": (lambda x: State(x, {"k": [x]}), lambda t: t.c["k"][0] * t.h),
    "frozen": (lambda x: Frozen(x), lambda t: t.x * t.scale),
    "none": (lambda x: (None, x, ()), lambda t: t[1]),
}


@pytest.mark.parametrize("name", TREES)
def test_arguments_and_results_are_trees(name: str) -> None:
    make, read = TREES[name]
    x = vector(1.0, -2.0)
    given = Counted(lambda tree, y: read(tree) + y)
    returned = Counted(lambda x: make(x))
    for _ in range(3):
        found = given.call(make(x), y=x).tolist()
        assert found == (read(make(x)) + x).tolist()
        if name != "frozen":  # a result has arrays alone
            tree = returned.call(x)
            assert type(tree) is type(make(x))
            assert read(tree).tolist() == read(make(x)).tolist()
    assert given.runs == 1
    assert returned.runs == (1 if name != "frozen" else 0)


def test_dicts_may_have_their_items_in_any_order() -> None:
    f = Counted(lambda d: d["a"] - d["b"])
    one, two = vector(5.0), vector(2.0)
    for _ in range(3):
        assert f.call({"a": one, "b": two}).tolist() == [3.0]
        assert f.call({"b": two, "a": one}).tolist() == [3.0]


def test_other_arguments_count_by_their_values() -> None:
    f = Counted(lambda x, power=2, *, negative=False: -(x**power) if negative else x**power)
    x = vector(3.0)
    for _ in range(2):
        assert f.call(x).tolist() == [9.0]
        assert f.call(x, 3).tolist() == [27.0]
        assert f.call(x, power=3, negative=True).tolist() == [-27.0]
    assert f.runs == 3
    zero = Counted(lambda x, y: x / y)
    assert zero.call(x, 0.0).tolist() == [np.inf]
    assert zero.call(x, -0.0).tolist() == [-np.inf]
    assert zero.call(x, 1).tolist() == zero.call(x, True).tolist() == [3.0]


def test_captured_arrays_are_read_when_the_function_is_called() -> None:
    w = vector(1.0, 2.0)
    f = Counted(lambda x: tn.sum(w * x))
    x = vector(1.0, 1.0)
    before = f.call(x)
    assert f.call(x).item() == 3.0
    w[0] = 10.0
    assert f.call(x).item() == 12.0
    w += 1
    assert f.call(x).item() == 14.0
    assert before.item() == 3.0
    assert f.runs == 1


def test_results_of_captured_arrays_are_made_anew_when_they_change() -> None:
    w = vector(1.0, 2.0)
    f = Counted(lambda x: x + tn.sum(w * w))
    x = vector(0.0)
    assert f.call(x).tolist() == f.call(x).tolist() == [5.0]
    assert f.runs == 1
    w[1] = 0.0
    assert f.call(x).tolist() == [1.0]
    assert f.runs == 2


def test_views_of_captured_arrays_are_read_when_the_function_is_called() -> None:
    w = vector(1.0, 2.0, 3.0)
    row = w[1:]
    f = tn.function(lambda x: x * row)
    x = vector(1.0, 1.0)
    assert f(x).tolist() == [2.0, 3.0]
    w[2] = 7.0
    assert f(x).tolist() == [2.0, 7.0]


def test_functions_call_functions() -> None:
    inner = tn.function(lambda x: (x + 1, x * 2))
    outer = tn.function(lambda x: inner(inner(x)[0])[1] - inner(x)[0])
    assert outer(vector(1.0)).tolist() == [2.0]
    assert outer(vector(2.0)).tolist() == [3.0]


def test_methods_and_closures() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.w = vector(scale, scale)

        @tn.function
        def apply(self, x: tn.Array) -> tn.Array:
            """Scale."""
            return self.w * x

    one, two = Model(2.0), Model(3.0)
    for _ in range(3):
        assert one.apply(vector(1.0, 2.0)).tolist() == [2.0, 4.0]
        assert two.apply(vector(1.0, 2.0)).tolist() == [3.0, 6.0]
    assert Model.apply.__doc__ == "Scale."
    assert Model.apply.__name__ == "apply"
    assert "apply" in repr(Model.apply)


def test_ndarrays_are_arguments_like_others() -> None:
    f = Counted(lambda x, y: x + y)
    given = np.array([1.0, 2.0])
    assert f.call(given, np.float64(1.0)).tolist() == [2.0, 3.0]
    given[0] = 7.0
    assert f.call(given, np.float64(1.0)).tolist() == [8.0, 3.0]


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
def test_control_flow_on_values_waits() -> None:
    f = Counted(lambda x: x * 2 if tn.sum(x) > 0 else -x)
    with tn.profile() as p:
        assert f.call(vector(1.0, 2.0)).tolist() == [2.0, 4.0]
        assert f.call(vector(-1.0, -2.0)).tolist() == [1.0, 2.0]
    assert p.host_syncs >= 4
    assert f.runs == 3  # one run asked for a value that was not there


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
def test_caller_does_not_see_assignments_to_arguments() -> None:
    def body(x: tn.Array) -> tn.Array:
        x[0] = 9.0
        x += 1
        return x

    def waits(x: tn.Array) -> tn.Array:
        if x[0] > 0:
            x[0] = 9.0
        return x

    x = vector(1.0, 2.0)
    assert tn.function(body)(x).tolist() == [10.0, 3.0]
    assert tn.function(waits)(x).tolist() == [9.0, 2.0]
    assert x.tolist() == [1.0, 2.0]


def test_arrays_that_the_function_makes_may_change() -> None:
    def body(x: tn.Array) -> tn.Array:
        total = tn.zeros(2)
        for i in range(3):
            total += x * i
            total[0] = 1.0
        return total

    assert tn.function(body)(vector(1.0, 2.0)).tolist() == [1.0, 6.0]


def test_constant_and_passed_on_results() -> None:
    f = tn.function(lambda x, y: (y, tn.ones(2), 3, x + 0))
    y, ones, three, x = f(vector(1.0), vector(2.0))
    assert (y.tolist(), ones.tolist(), three.item(), x.tolist()) == ([2.0], [1.0, 1.0], 3, [1.0])
    assert tn.function(lambda x: ())(y) == ()


def test_one_result_may_be_asked_for_before_the_other() -> None:
    f = tn.function(lambda x: (x + 1, x * x))
    first, second = f(vector(3.0))
    assert first.tolist() == [4.0]
    assert second.tolist() == [9.0]
    third = f(vector(2.0))[1]
    assert (third + 1).tolist() == [5.0]


def test_reference_device_runs_it() -> None:
    f = tn.function(lambda x: (tn.sum(x), tn.exp(x)))
    x = tn.asarray([0.0, 1.0], device="reference")
    total, powers = f(x)
    assert total.device == "reference"
    assert total.item() == 1.0
    assert powers.tolist() == [1.0, np.exp(1.0)]
    with tn.options(optimise=False):
        assert f(vector(0.0, 1.0))[0].item() == 1.0


@pytest.mark.cpu
def test_explain_says_where_a_call_became_its_operations() -> None:
    f = tn.function(lambda x: tn.exp(x) + 1)
    text = f(vector(0.0)).explain("optimised")
    assert "inline at %1: <lambda>(%0, 'cpu') => its operations" in text
    assert "exp(%0)" in text


def test_result_has_the_same_bits_as_what_it_is_made_of() -> None:
    def body(x: tn.Array, y: tn.Array) -> tn.Array:
        return tn.tanh(x @ y) * tn.exp(-x) + tn.mean(y)

    random = np.random.default_rng(3)
    x, y = (tn.asarray(random.standard_normal((5, 5))) for _ in range(2))
    written, called = body(x, y), tn.function(body)(x, y)
    assert np.asarray(written).tobytes() == np.asarray(called).tobytes()


def returns_nothing(_x: tn.Array) -> None:
    return None


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = {
    "nothing": (returns_nothing, (1.0,), TypeError, "returned nothing, not an array"),
    "text": (lambda x: "a", (1.0,), TypeError, "returned str, not an array"),
    "a set": (lambda x, s: x, (1.0, {1}), TypeError, "an argument is a set"),
    "raises": (lambda x: [][x.ndim], (1.0,), IndexError, "list index"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, (x, *others), error, text = REFUSED[name]
    f = tn.function(body)
    for _ in range(2):
        with pytest.raises(error, match=text):
            f(vector(x), *others)


def test_recursion_without_end_is_refused() -> None:
    @tn.function
    def again(x: tn.Array) -> tn.Array:
        return again(x + 1)

    with pytest.raises(RunError, match="it calls itself"):
        again(vector(1.0))

    @tn.function
    def down(x: tn.Array, depth: int) -> tn.Array:
        return x if depth == 0 else down(x * 2, depth - 1)

    assert down(vector(1.0), 5).tolist() == [32.0]


def test_changing_a_captured_array_is_refused_and_undone() -> None:
    w = vector(1.0, 2.0)

    @tn.function
    def changes(x: tn.Array) -> tn.Array:
        w[0] = 5.0
        return w + x

    with pytest.raises(RunError, match="changes an array that it was not given"):
        changes(vector(1.0, 1.0))
    assert w.tolist() == [1.0, 2.0]


def test_non_function_is_refused() -> None:
    with pytest.raises(TypeError, match="not a function"):
        tn.function(3)  # type: ignore[call-overload,arg-type]
    with pytest.raises(TypeError, match="argument"):
        tn.function(lambda x: x)()


def test_failure_names_the_function_and_later_calls_are_right() -> None:
    f = tn.function(lambda a, b: tn.linalg.solve(a, b))
    good, bad = tn.asarray(np.eye(2)), tn.asarray(np.zeros((2, 2)))
    b = vector(1.0, 2.0)
    with pytest.raises(np.linalg.LinAlgError):
        f(bad, b).wait()
    assert f(good, b).tolist() == [1.0, 2.0]


def test_function_goes_with_its_last_owner() -> None:
    def used() -> weakref.ref[tn.Array]:
        w = vector(1.0)
        tn.function(lambda x: x + w)(vector(2.0)).wait()
        return weakref.ref(w)

    seen = used()
    gc.collect()
    assert seen() is None


def test_an_array_may_be_captured_and_be_a_part_of_what_is_captured() -> None:
    w = vector(1.0, 2.0)
    row = w[1:]
    f = Counted(lambda x: w * x + tn.sum(w))
    g = Counted(lambda x: row * x + tn.sum(row))
    x = vector(2.0)
    for number in (3.0, 4.0):
        w[1] = number
        assert f.call(x).tolist() == [3.0 + number, 3 * number + 1]
        assert g.call(x).tolist() == [3 * number]
        assert f.call(x).tolist() == [3.0 + number, 3 * number + 1]
    assert f.runs == 2


def test_captured_arrays_that_are_results_are_what_they_are_at_the_call() -> None:
    w = vector(1.0, 2.0)
    f = Counted(lambda x: (w, x))
    before = f.call(vector(3.0))[0]
    for number in (5.0, 6.0):
        w[0] = number
        assert f.call(vector(3.0))[0].tolist() == [number, 2.0]
    assert before.tolist() == [1.0, 2.0]
    assert f.runs == 1


@pytest.mark.cpu
def test_nothing_made_of_a_window_is_kept() -> None:
    memory = np.array([1.0, 2.0])
    w = tn.wrap(memory)
    row = w[1:]
    functions = [
        (Counted(lambda x: x + tn.sum(w)), lambda x: x + memory.sum()),
        (Counted(lambda x: w * x + tn.sum(w * w)), lambda x: memory * x + (memory**2).sum()),
        (Counted(lambda x: x * tn.sum(row)), lambda x: x * memory[1:].sum()),
    ]
    x = np.array([2.0])
    for number in (3.0, 4.0, 5.0):
        memory[1] = number
        for f, wanted in functions:
            assert f.call(tn.asarray(x)).tolist() == wanted(x).tolist()
    assert [f.runs for f, _ in functions] == [1, 1, 1]


def test_threads_may_trace_one_function_at_once() -> None:
    both = threading.Barrier(2, timeout=60)

    def meeting(x: Any) -> Any:
        both.wait()
        return x + 1

    f = tn.function(meeting)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(lambda: f(vector(1.0)).tolist()) for _ in range(2)]
        assert [each.result() for each in found] == [[2.0], [2.0]]


def test_a_function_may_fail_for_more_signatures_than_are_kept() -> None:
    f = tn.function(lambda x, y: x * y)
    x = vector(1.0, 2.0)
    for length in range(3, 303):
        for _ in range(2):
            with pytest.raises(tn.errors.ShapeError):
                f(x, tn.zeros(length))


def test_a_failure_within_a_call_names_the_line_of_the_call() -> None:
    f = tn.function(lambda a, b: tn.linalg.solve(a, b) * 2)
    made = f(tn.zeros((2, 2)), vector(1.0, 2.0))
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    with pytest.raises(np.linalg.LinAlgError, match=f"test_function.py:{line}"):
        made.wait()


def test_a_function_in_a_function_follows_what_the_inner_one_captured() -> None:
    w, v = tn.asarray([1.0, 2.0]), tn.asarray([1.0, 1.0])
    inner = tn.function(lambda x: w * x + tn.sum(v * v))
    outer = tn.function(lambda x: inner(x) + 1)
    assert outer(tn.ones((2,))).tolist() == [4.0, 5.0]
    w[0] = 10.0
    assert outer(tn.ones((2,))).tolist() == [13.0, 5.0]
    v[0] = 2.0
    assert outer(tn.ones((2,))).tolist() == [16.0, 8.0]
    again = tn.function(lambda x: inner(x) * 2)
    assert again(tn.ones((2,))).tolist() == [30.0, 14.0]
    w[0], v[0] = 1.0, 0.0
    assert again(tn.ones((2,))).tolist() == [4.0, 6.0]
