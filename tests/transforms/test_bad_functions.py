"""Functions that users write by mistake: a clear error or a result that makes sense, nothing lost,
and no hang. What is refused when a function is traced stands in test_function.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import several
from tenfold import _native
from tenfold.errors import DeviceError, RunError, ShapeError

MEMBERS = 300
BAD = 77


@tn.op(shape=lambda x: x.shape, reference=lambda x: 1 // 0 if x.min() == BAD else x * 2)
def picky(x: Any) -> Any:
    "Twice; of one value nothing."


@tn.operator(shape=lambda x: x.shape)
def opaque(x: Any) -> Any:
    if x[0].item() == BAD:
        raise KeyError(BAD)
    return x * 2


@tn.op(shape=lambda x: x.shape, reference=lambda x: 1 // 0 if (x == BAD).any() else x * 2)
def of_all(x: Any) -> Any:
    "Twice all members; with one value among them nothing."


@tn.op(
    shape=lambda x: x.shape,
    reference=lambda x: 1 // 0 if x.min() == BAD else x * 2,
    batch=lambda x: of_all(x),
)
def batched(x: Any) -> Any:
    "As `picky`, with a rule for many."


@pytest.mark.exhaustive
@pytest.mark.parametrize("step", [picky, opaque, batched], ids=["op", "operator", "batched"])
@pytest.mark.parametrize("options", [{}, {"verify": True}, {"batch": False}, {"threads": 7}])
def test_error_for_one_sample_fails_that_one_alone(
    step: Callable[[Any], Any], options: dict[str, Any]
) -> None:
    before = tn.function(lambda x: step(x) + 1)
    after = tn.function(lambda x, y: (x * 3, y))
    with tn.options(**options):
        calls = [before(tn.asarray([float(i), float(i)])) for i in range(MEMBERS)]
        ends = [after(call, x) for call, x in zip(calls, several(MEMBERS, 2), strict=True)]
        tn.eval(*[end for end, _ in ends])
        for number, (end, _) in enumerate(ends):
            if number == BAD:
                with pytest.raises(RunError, match=r"(ZeroDivision|Key)Error.*written at .*"):
                    end.wait()
                with pytest.raises(RunError):
                    calls[number].wait()
            else:
                assert end.tolist() == [6.0 * number + 3] * 2


def test_another_form_of_result_for_equal_signatures_is_not_seen() -> None:
    """A function is traced once for a signature: what it would return the next time nobody asks."""
    turns: list[int] = []

    @tn.function
    def shifting(x: Any) -> Any:
        turns.append(1)
        return (x, x + 1) if len(turns) % 2 else [x, x + 1, x + 2]

    calls = [shifting(x) for x in several(MEMBERS, 3)]
    assert {(type(call), len(call)) for call in calls} == {(tuple, 2)}
    assert type(shifting(tn.ones(2))) is list  # of another signature
    assert type(shifting(tn.ones(3))) is tuple
    assert len(turns) == 2
    tn.eval(*[part for call in calls for part in call])
    for first, second in calls:
        assert np.array_equal(np.asarray(first) + 1, np.asarray(second))


@pytest.mark.cpu
def test_a_captured_array_of_another_device_is_refused() -> None:
    elsewhere = tn.asarray([1.0, 2.0], device="reference")
    mixed = tn.function(lambda x: x + elsewhere)
    both = tn.function(lambda x: (x + 1, elsewhere * 2))
    for function in (mixed, both):
        for _ in range(2):
            with pytest.raises(DeviceError, match="different devices: cpu, reference"):
                function(tn.ones(2))
    assert mixed(tn.ones(2, device="reference")).tolist() == [2.0, 3.0]
    assert both(elsewhere)[1].tolist() == [2.0, 4.0]


def test_ragged_lists() -> None:
    total = tn.function(lambda xs: sum(tn.sum(x) for x in xs))
    assert total([tn.ones(2), tn.ones(3)]).item() == 5.0  # a signature of its own
    assert total([tn.ones(3), tn.ones(2), tn.ones(1)]).item() == 6.0
    stacked = tn.function(lambda xs: tn.stack(xs))
    with pytest.raises(ShapeError, match="stack"):
        stacked([tn.ones(2), tn.ones(3)])
    numbers = tn.function(lambda x, rows: x + tn.sum(tn.asarray(rows)))
    with pytest.raises(ShapeError, match="lists of 1 and 2 items"):
        numbers(tn.ones(2), [[1, 2], [3]])
    assert numbers(tn.ones(2), [[1, 2], [3, 4]]).tolist() == [11.0, 11.0]
    ragged = [[total(row) for row in ([tn.ones(2)] * n, [tn.ones(3)] * n)] for n in range(1, 60)]
    tn.eval(*[x for row in ragged for x in row])
    assert [[x.item() for x in row] for row in ragged] == [[2.0 * n, 3.0 * n] for n in range(1, 60)]


def test_a_function_may_be_redefined_with_the_same_name() -> None:
    def made(by: float) -> Any:
        @tn.function
        def scaled(x: Any) -> Any:
            return x * by

        return scaled

    scaled = made(2.0)
    xs = several(MEMBERS, 3)
    before = [scaled(x) for x in xs]
    scaled = made(3.0)
    after = [scaled(x) for x in xs]
    mixed = [one + other for one, other in zip(before, after, strict=True)]
    tn.eval(*mixed)
    for x, both, one, other in zip(xs, mixed, before, after, strict=True):
        values = np.asarray(x)
        assert np.array_equal(np.asarray(one), values * 2)
        assert np.array_equal(np.asarray(other), values * 3)
        assert np.array_equal(np.asarray(both), values * 2 + values * 3)


@pytest.mark.parametrize("change", ["item", "add", "assign", "view"])
def test_a_captured_array_that_is_changed_in_any_way_has_its_value_back(change: str) -> None:
    w = tn.asarray([1.0, 2.0])
    row = w[:1]
    ways: dict[str, Callable[[], object]] = {
        "item": lambda: w.__setitem__(0, 5.0),
        "add": lambda: w.__iadd__(1),
        "assign": lambda: tn.assign(w, w * 2),
        "view": lambda: row.__setitem__(0, 7.0),
    }

    @tn.function
    def changes(x: Any) -> Any:
        ways[change]()
        return w + x

    calls = [tn.tanh(x) for x in several(MEMBERS, 2)]
    for _ in range(2):
        with pytest.raises(RunError, match="changes an array that it was not given"):
            changes(tn.ones(2))
    assert w.tolist() == [1.0, 2.0]
    assert row.tolist() == [1.0]
    tn.eval(*calls)
    assert tn.function(lambda x: x + w)(tn.ones(2)).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_while_tracing_leaves_nothing_behind(error: type[BaseException]) -> None:
    fails = [True]

    @tn.function
    def sometimes(x: Any) -> Any:
        y = x * 2
        if fails:
            raise error
        return y

    for _ in range(3):
        with pytest.raises(error):
            sometimes(tn.ones(2))
    assert (tn.ones(2) + 1).tolist() == [2.0, 2.0]  # nobody watches what is made
    assert float(tn.sum(tn.ones(2))) == 2.0
    fails.clear()
    assert sometimes(tn.ones(2)).tolist() == [2.0, 2.0]


LOCKS = """
    import threading
    import tenfold as tn
    lock, results = threading.Lock(), []

    @tn.function
    def guarded(x, by):
        with lock:
            return tn.tanh(x) * by

    @tn.function
    def waits(x):
        with lock:
            return x * 2 if float(tn.sum(x)) > 0 else x

    @tn.operator(shape=lambda x: x.shape)
    def opaque(x):
        with lock:
            return x + 1

    def work(number):
        for turn in range(20):
            calls = [guarded(tn.ones(4), turn * 8 + number) for _ in range(600)]
            tn.eval(*calls)
            results.append(calls[-1].tolist()[0])
            results.append(waits(tn.ones(4) * number).tolist()[0])
            results.append(opaque(tn.ones(4)).tolist()[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    calls = [guarded(tn.ones(4), -1) for _ in range(600)]
    with lock:  # what was traced takes it no more
        tn.eval(*calls)
        results.append(calls[0].tolist()[0])
    @tn.function
    def fails(x):
        with lock:
            raise ValueError("while it is held")
    try:
        fails(tn.ones(4))
    except ValueError:
        results.append(lock.locked())
    print(len(results), results[-1])
"""


def test_a_function_that_holds_a_lock_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", dedent(LOCKS)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [str(8 * 20 * 3 + 2), "False"]


def test_a_result_may_be_named_by_several_places() -> None:
    @tn.function
    def twice(x: Any) -> Any:
        y = tn.tanh(x)
        return {"a": y, "b": (y, x), "c": []}

    made = twice(tn.zeros(2))
    assert made["a"].tolist() == made["b"][0].tolist() == made["b"][1].tolist() == [0.0, 0.0]
    assert made["c"] == []
    made["a"][0] = 5.0  # arrays of their own
    assert made["b"][0].tolist() == [0.0, 0.0]
    assert _native.node_of(made["b"][1]).type.shape == (2,)
