"""Explain names the expressions that need the old value that is copied, and counts the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn

pytestmark = pytest.mark.usefixtures("no_history")

HELD = "the old value is referenced by "


def numbers(count: int = 4) -> tn.Array:
    """An array in memory of its own."""
    return tn.arange(float(count)).wait()


def same(x: tn.Array) -> tn.Array:
    """Another Array that names the value of `x`."""
    return tn.asarray(x, copy=True)


def assigned(x: tn.Array) -> tn.Array:
    x[1:3] = 7
    return x


def held(text: str) -> str:
    """Return of a plan who holds the old value, with the remedy; nothing where it is not copied."""
    lines = [line for line in text.splitlines() if "a copy" in line]
    assert len(lines) <= 1
    assert all(f"set_at: a copy: {HELD}" in line for line in lines)
    return lines[0].split(HELD)[1] if lines else ""


def copies(x: tn.Array) -> int:
    with tn.profile() as p:
        x.wait()
    return p.copies


def test_nobody_holds_it_and_there_is_no_copy() -> None:
    x = assigned(numbers())
    assert held(x.explain("scheduled")) == ""
    assert "reuses the operand's buffer" in x.explain()
    assert copies(x) == 0


def test_other_array_of_the_value_is_counted() -> None:
    x = numbers()
    y = same(x)
    assert held(assigned(x).explain("scheduled")) == "1 other array; drop it before assigning"
    assert copies(x) == 1
    assert y.tolist() == [0, 1, 2, 3]


def test_the_whole_text_has_the_sentence_too() -> None:
    x = numbers()
    y = same(x)
    assert f"stored, set_at: a copy: {HELD}1 other array; drop it" in assigned(x).explain()
    assert y.size == 4


def test_expression_that_is_not_computed_is_named_by_operation_and_type() -> None:
    x = numbers()
    y = x * 2
    found = "multiply -> float64[4] (pending); compute it before assigning"
    assert held(assigned(x).explain("scheduled")) == found
    assert copies(x) == 1
    assert y.tolist() == [0, 2, 4, 6]


def test_expression_that_is_computed_holds_nothing() -> None:
    x = numbers()
    y = (x * 2).wait()
    assert held(assigned(x).explain("scheduled")) == ""
    assert copies(x) == 0
    assert y.size == 4


def test_expression_that_knows_its_line_tells_it() -> None:
    x = numbers()
    y = tn.take(x, tn.asarray([3, 0]))
    line = test_expression_that_knows_its_line_tells_it.__code__.co_firstlineno + 2
    found = held(assigned(x).explain("scheduled"))
    assert found.startswith(f"gather -> float64[2] (pending, written at {__file__}:{line}); ")
    assert y.size == 2


def test_two_holders_are_both_named() -> None:
    x = numbers()
    y, z = same(x), x * 2
    assert held(assigned(x).explain("scheduled")) == (
        "1 other array and by multiply -> float64[4] (pending); "
        "drop or compute them before assigning"
    )
    assert (y.size, z.size) == (4, 4)


def test_view_alone_holds_nothing_computed_or_not() -> None:
    for wait in (False, True):
        x = numbers()
        v = x[1:]
        if wait:
            v.wait()
        assert held(assigned(x).explain("scheduled")) == ""
        assert copies(x) == 0
        assert v.tolist() == [7, 7, 3]


def test_view_that_an_expression_reads_is_named() -> None:
    x = numbers()
    v = x[1:]
    w = v + 1
    found = held(assigned(x).explain("scheduled"))
    assert found == "index -> float64[3] (pending); compute it before assigning"
    assert (v.size, w.size) == (3, 3)


def test_array_that_only_a_view_keeps_is_counted() -> None:
    x = numbers()
    v = same(x)[1:]
    found = held(assigned(x).explain("scheduled"))
    assert found.startswith("1 other array and by index -> float64[3] (pending); drop or compute")
    assert v.size == 3


def test_ndarrays_and_buffers_on_one_export_count_once() -> None:
    x = numbers()
    a = np.asarray(x)
    b, c = a[1:], a.data
    found = held(assigned(x).explain("scheduled"))
    assert found == "1 object that shares its memory; drop it before assigning"
    assert copies(x) == 1
    assert (a.tolist(), b.size, len(c)) == ([0, 1, 2, 3], 3, 4)


def test_computed_view_that_an_expression_reads_is_counted() -> None:
    x = numbers()
    v = x[1:].wait()
    w = v * 2
    del v
    assert held(assigned(x).explain("scheduled")).startswith("1 object that shares its memory; ")
    x[1:] = w
    x.wait()
    assert x.tolist() == [0, 2, 4, 6]


def test_computed_view_that_the_assignment_reads_is_told() -> None:
    x = numbers()
    x[:3] = x[1:].wait() * 2
    assert held(x.explain("scheduled")) == "1 view of it that the assignment reads"
    assert copies(x) == 1
    assert x.tolist() == [2, 4, 6, 3]


def test_memory_of_the_user_is_told() -> None:
    values = np.arange(4.0)
    values.flags.writeable = False
    x = assigned(tn.asarray(values))
    assert held(x.explain("scheduled")) == "the object it was imported from, whose memory it shares"
    assert copies(x) == 1


def test_each_assignment_names_its_own_holders() -> None:
    x, y = numbers(), numbers(5)
    first, second = same(x), y * 3
    lines = tn.explain(assigned(x), assigned(y), stage="scheduled").splitlines()
    named = [line.split(HELD)[1] for line in lines if HELD in line]
    assert named == [
        "1 other array; drop it before assigning",
        "multiply -> float64[5] (pending); compute it before assigning",
    ]
    assert (first.size, second.size) == (4, 5)


def test_old_value_that_is_asked_for_together_is_named() -> None:
    x = numbers()
    y = same(x)
    assigned(x)
    line = next(each for each in tn.explain(y, x).splitlines() if HELD in each)
    assert line.endswith("1 other array; drop it before assigning")
    assert y.size == 4


def test_old_value_that_is_not_computed_either_is_not_copied() -> None:
    x = numbers() * 2
    y = x + 1
    assert held(assigned(x).explain("scheduled")) == ""
    assert copies(x) == 0
    assert x.tolist() == [0, 7, 7, 6]
    assert y.tolist() == [1, 3, 5, 7]


def test_array_that_is_dropped_holds_nothing() -> None:
    x = numbers()
    y: tn.Array | None = same(x)
    assert held(assigned(x).explain("scheduled")).startswith("1 other array")
    y = None
    assert held(x.explain("scheduled")) == ""
    assert copies(x) == 0
    assert y is None


def test_analyze_names_who_held_it_and_makes_the_one_copy() -> None:
    x = numbers()
    y = same(x)
    with tn.profile() as p:
        text = assigned(x).explain(analyze=True)
    assert p.copies == 1
    assert "set_at: a copy: the old value is referenced by 1 other array; drop it" in text
    assert "\nmeasured: " in text
    assert "nothing is left to run" in x.explain()
    assert (x.tolist(), y.tolist()) == ([0, 7, 7, 3], [0, 1, 2, 3])
    with tn.profile() as p:
        text = assigned(x).explain(analyze=True)
    assert p.copies == 0
    assert "a copy" not in text


def test_work_that_must_not_run_twice_is_told_instead() -> None:
    @tn.operator
    def counted(x: tn.Array, /) -> tn.Array:
        return x + 1

    x = numbers()
    x[:2] = counted(x)[2:]
    text = tn.explain(x, stage="scheduled")
    assert "no update is in place beside counted, which must not run twice" in text


def test_no_more_than_some_holders_are_named() -> None:
    x = numbers()
    many = [x * i for i in range(20)]
    found = held(assigned(x).explain("scheduled"))
    assert found.count("multiply -> float64[4] (pending)") == 8
    assert found.endswith("and by 12 more; compute them before assigning")
    assert len(many) == 20


@pytest.fixture
def busy() -> Iterator[None]:
    """Another thread makes expressions, computes and drops them all the time."""
    done = threading.Event()

    def churn() -> None:
        x = numbers()
        while not done.is_set():
            for _ in range(20):
                y = (x + 1) * x
                z = [y - i for i in range(20)]
                z[3].wait()

    thread = threading.Thread(target=churn)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.usefixtures("busy")
def test_holders_are_named_while_other_threads_compute() -> None:
    for _ in range(50):
        x = numbers()
        y, z = same(x), x * 2
        found = held(assigned(x).explain("scheduled"))
        assert found.startswith("1 other array and by multiply -> float64[4] (pending);")
        assert (y.size, z.size) == (4, 4)
        assert (y.size, z.size) == (4, 4)
