"""Explain names who holds the old value that an assignment must copy, and counts the rest."""

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


def test_array_is_named_by_its_variable() -> None:
    x = numbers()
    y = same(x)
    assert held(assigned(x).explain("scheduled")) == "the array 'y'; drop 'y' before assigning"
    assert copies(x) == 1
    assert y.tolist() == [0, 1, 2, 3]


def test_the_whole_text_has_the_sentence_too() -> None:
    x = numbers()
    y = same(x)
    assert (
        "stored, set_at: a copy: the old value is referenced by the array 'y'"
        in assigned(x).explain()
    )
    assert y.size == 4


def test_array_of_two_names_is_one_holder() -> None:
    x = numbers()
    y = z = same(x)
    found = held(assigned(x).explain("scheduled"))
    assert found == "the array 'y' = 'z'; drop 'y', 'z' before assigning"
    assert y is z


def test_expression_that_is_not_computed_is_named_by_operation_type_and_variable() -> None:
    x = numbers()
    y = x * 2
    found = "multiply -> float64[4] ('y', pending); compute 'y' before assigning"
    assert held(assigned(x).explain("scheduled")) == found
    assert copies(x) == 1
    assert y.tolist() == [0, 2, 4, 6]


def test_expression_that_is_computed_holds_nothing() -> None:
    x = numbers()
    y = (x * 2).wait()
    assert held(assigned(x).explain("scheduled")) == ""
    assert copies(x) == 0
    assert y.size == 4


def test_expression_below_a_variable_says_for_what_it_is_needed() -> None:
    x = numbers()
    y = tn.exp(x[1:]) + 1
    found = "index -> float64[3] (pending, needed for 'y'); compute 'y' before assigning"
    assert held(assigned(x).explain("scheduled")) == found
    assert y.size == 3


def test_expression_that_no_variable_names_is_named_by_its_operation() -> None:
    x = numbers()
    hidden = iter([x - 1])
    found = "subtract -> float64[4] (pending); compute it before assigning"
    assert held(assigned(x).explain("scheduled")) == found
    assert next(hidden).size == 4


def test_expression_that_knows_its_line_tells_it() -> None:
    x = numbers()
    y = tn.take(x, tn.asarray([3, 0]))
    line = test_expression_that_knows_its_line_tells_it.__code__.co_firstlineno + 2
    found = held(assigned(x).explain("scheduled"))
    told = f"gather -> float64[2] ('y', pending, written at {__file__}:{line}); compute 'y'"
    assert found.startswith(told)
    assert y.size == 2


def test_two_holders_are_both_named() -> None:
    x = numbers()
    y, z = same(x), x * 2
    assert held(assigned(x).explain("scheduled")) == (
        "the array 'y' and by multiply -> float64[4] ('z', pending); "
        "drop 'y' and compute 'z' before assigning"
    )
    assert (y.size, z.size) == (4, 4)


def test_holders_inside_of_containers_and_objects_are_named() -> None:
    class Model:
        def __init__(self, weights: tn.Array) -> None:
            self.weights = weights

        def explained(self, x: tn.Array) -> str:
            return x.explain("scheduled")

    class Slotted:
        __slots__ = ("weights",)

        def __init__(self, weights: tn.Array) -> None:
            self.weights = weights

    x = numbers()
    rows = [1, None, same(x)]
    assert held(assigned(x).explain("scheduled")).startswith("the array 'rows[2]'; drop")
    x, rows = numbers(), []
    table = {"old": same(x), 3: x}
    assert held(assigned(x).explain("scheduled")).startswith("the array \"table['old']\"; drop")
    x = numbers()
    table, pair = {}, (x, same(x))
    assert held(assigned(x).explain("scheduled")).startswith("the array 'pair[1]'; drop")
    x = numbers()
    pair, model = (x, x), Model(same(x))
    assert held(model.explained(assigned(x))).startswith("the array 'self.weights'")
    assert held(x.explain("scheduled")).startswith("the array 'model.weights'; drop")
    x = numbers()
    model.weights = x
    assert held(assigned(x).explain("scheduled")) == ""
    x = numbers()
    slotted = Slotted(same(x))
    assert held(assigned(x).explain("scheduled")).startswith("the array 'slotted.weights'; drop")
    assert (len(rows), len(table), len(pair), slotted.weights.size) == (0, 0, 2, 4)


def test_variable_of_an_outer_call_says_whose_it_is() -> None:
    def outer() -> str:
        x = numbers()
        y = same(x)
        found = inner(assigned(x))
        assert y.size == 4
        return found

    def inner(z: tn.Array) -> str:
        return held(z.explain("scheduled"))

    assert outer() == "the array 'y' of outer(); drop 'y' before assigning"


kept: tn.Array | None = None


def test_global_variable_is_named() -> None:
    global kept
    x = numbers()
    kept = same(x)
    try:
        found = held(assigned(x).explain("scheduled"))
        assert found == "the array 'kept'; drop 'kept' before assigning"
    finally:
        kept = None


def test_arrays_without_a_name_are_counted() -> None:
    x = numbers()
    hidden = [iter([same(x)])]
    assert held(assigned(x).explain("scheduled")) == "1 array without a variable here"
    x = numbers()
    y = same(x)
    hidden = [iter([same(x), same(x)])]
    found = held(assigned(x).explain("scheduled"))
    assert found.startswith("the array 'y' and by 2 arrays without a variable here; drop 'y'")
    assert (len(hidden), y.size) == (1, 4)


def test_view_alone_holds_nothing_computed_or_not() -> None:
    for wait in (False, True):
        x = numbers()
        v = x[1:]
        if wait:
            v.wait()
        assert held(assigned(x).explain("scheduled")) == ""
        assert copies(x) == 0
        assert v.tolist() == [7, 7, 3]


def test_reader_of_a_view_is_named() -> None:
    x = numbers()
    v = x[1:]
    w = v + 1
    assert held(assigned(x).explain("scheduled")) == (
        "index -> float64[3] (pending, needed for 'w'); compute 'w' before assigning"
    )
    assert w.size == 3


def test_array_that_only_a_view_keeps_is_named_through_it() -> None:
    x = numbers()
    v = same(x)[1:]
    found = held(assigned(x).explain("scheduled"))
    assert found.startswith("the array 'v.base' and by the view 'v' of it; drop")
    assert v.size == 3


def test_ndarray_that_shows_the_memory_is_named() -> None:
    x = numbers()
    a = np.asarray(x)
    assert held(assigned(x).explain("scheduled")) == "the ndarray 'a'; drop 'a' before assigning"
    assert copies(x) == 1
    assert a.tolist() == [0, 1, 2, 3]


def test_ndarrays_and_buffers_on_one_export_are_named_and_count_once() -> None:
    x = numbers()
    a = np.asarray(x)
    b, c = a[1:], a.data
    found = held(assigned(x).explain("scheduled"))
    assert found.startswith("the ndarray 'a', by the ndarray 'b' and by the ndarray 'c'; drop")
    assert (b.size, len(c)) == (3, 4)


def test_memory_that_something_without_a_name_shows_is_counted() -> None:
    x = numbers()
    hidden = iter([np.asarray(x)])
    found = held(assigned(x).explain("scheduled"))
    assert found == "1 object without a variable here that shares its memory"
    assert next(hidden).size == 4


def test_expression_that_reads_a_computed_view_is_named() -> None:
    x = numbers()
    v = x[1:].wait()
    w = v * 2
    del v
    found = held(assigned(x).explain("scheduled"))
    assert found == "multiply -> float64[3] ('w', pending); compute 'w' before assigning"
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
        "the array 'first'; drop 'first' before assigning",
        "multiply -> float64[5] ('second', pending); compute 'second' before assigning",
    ]
    assert (first.size, second.size) == (4, 5)


def test_old_value_that_is_asked_for_together_is_named() -> None:
    x = numbers()
    y = same(x)
    assigned(x)
    line = next(each for each in tn.explain(y, x).splitlines() if HELD in each)
    assert line.endswith("the array 'y'; drop 'y' before assigning")


def test_old_value_that_is_not_computed_either_is_not_copied() -> None:
    x = numbers() * 2
    y = x + 1
    assert held(assigned(x).explain("scheduled")) == ""
    assert copies(x) == 0
    assert x.tolist() == [0, 7, 7, 6]
    assert y.tolist() == [1, 3, 5, 7]


def test_explaining_keeps_nothing_of_the_variables() -> None:
    x = numbers()
    y: tn.Array | None = same(x)
    assert held(assigned(x).explain("scheduled")).startswith("the array 'y'")
    y = None
    assert held(x.explain("scheduled")) == ""
    assert copies(x) == 0
    assert y is None


def test_explaining_leaves_what_locals_returned_alone() -> None:
    x = numbers()
    y = same(x)
    seen = locals()
    assert held(assigned(x).explain("scheduled")).startswith("the array 'y'")
    assert (seen["x"] is x, seen["y"] is y) == (True, True)


def test_analyze_names_who_held_it_and_makes_the_one_copy() -> None:
    x = numbers()
    y = same(x)
    with tn.profile() as p:
        text = assigned(x).explain(analyze=True)
    assert p.copies == 1
    assert "set_at: a copy: the old value is referenced by the array 'y'; drop" in text
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
    many = [same(x) for _ in range(20)]
    found = held(assigned(x).explain("scheduled"))
    assert found.count("the array") == 8
    assert "and by 12 more; drop" in found
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
        assert found.startswith("the array 'y' and by multiply -> float64[4] ('z', pending);")
        assert (y.size, z.size) == (4, 4)
