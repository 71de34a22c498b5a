"""A trace that fails or is given up leaves every array and every window as it found them."""

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import RunError

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning"),
]

CALLS = 3
Change = Callable[["State", Any], object]


class State:
    """Arrays and windows that functions capture, and views of them."""

    def __init__(self) -> None:
        self.a = tn.asarray(np.arange(9.0).reshape(3, 3))
        self.b, self.c = tn.zeros(3), tn.ones(3)
        self.row, self.turned, self.flat = self.a[1], self.a.T, tn.reshape(self.a, (9,))
        self.diagonal = tn.diagonal(self.a)
        self.memory = np.arange(6.0)
        self.window, self.other = tn.wrap(self.memory), tn.wrap(self.memory[2:])
        self.part = self.window[1:4]

    def values(self) -> list[list[Any]]:
        """The values of everything; what shows the memory of the windows shows the same."""
        arrays = [self.a, self.b, self.c, self.row, self.turned, self.flat, self.diagonal]
        assert self.window.tolist() == self.memory.tolist()
        assert self.other.tolist() == self.memory[2:].tolist()
        assert self.part.tolist() == self.memory[1:4].tolist()
        return [*(x.tolist() for x in arrays), self.memory.tolist()]


def both(s: State, x: Any) -> None:
    s.a[0] = x
    s.b += x


def twice(s: State, x: Any) -> None:
    s.a[0] = x
    s.a[1] += x


def masked(s: State, x: Any) -> None:
    s.a[s.a > 4] = 0.5


def overlapping(s: State, x: Any) -> None:
    s.window[2] = 7.0
    s.other[0] += 1.0


def array_and_window(s: State, x: Any) -> None:
    s.b[0] += 1.0
    s.window[0] += 1.0


ARRAYS: dict[str, Change] = {
    "number": lambda s, x: operator.setitem(s.a, 0, 5.0),
    "item": lambda s, x: operator.setitem(s.a, 0, x),
    "add to item": lambda s, x: operator.setitem(s.b, 0, s.b[0] + 1.0),
    "twice": twice,
    "two arrays": both,
    "in place": lambda s, x: operator.iadd(s.a, x),
    "number in place": lambda s, x: operator.imul(s.a, 2),
    "mask": masked,
    "positions": lambda s, x: operator.setitem(s.a, tn.asarray([0, 2]), x),
    "view": lambda s, x: operator.setitem(s.row, slice(None), x),
    "view in place": lambda s, x: operator.iadd(s.row, x),
    "transposed": lambda s, x: operator.setitem(s.turned, 0, x),
    "reshaped": lambda s, x: operator.setitem(s.flat, slice(2, 5), x),
    "diagonal": lambda s, x: operator.setitem(s.diagonal, slice(1, None), 3.0),
    "assign": lambda s, x: tn.assign(s.a, x),
    "assign to view": lambda s, x: tn.assign(s.row, x, "+="),
    "assign to joined": lambda s, x: tn.assign(tn.concat([s.b, s.c]), tn.arange(6.0)),
}
WINDOWS: dict[str, Change] = {
    "number to window": lambda s, x: operator.setitem(s.window, 0, 5.0),
    "item to window": lambda s, x: operator.setitem(s.window, slice(3), x),
    "window in place": lambda s, x: operator.iadd(s.window, 1.0),
    "part of window": lambda s, x: operator.iadd(s.part, x),
    "overlapping windows": overlapping,
    "array and window": array_and_window,
    "assign to joined window": lambda s, x: tn.assign(tn.concat([s.b, s.window]), tn.ones(9)),
}


def returns(_: Any) -> None:
    """End as usual."""


def raises(_: Any) -> None:
    raise KeyError("mine")


def misfits(_: Any) -> None:
    tn.add(tn.ones(2), tn.ones(3))


def interrupts(_: Any) -> None:
    raise KeyboardInterrupt


def waits(x: Any) -> None:
    if float(tn.sum(x)) < 0:
        raise AssertionError


def waits_and_raises(x: Any) -> None:
    waits(x)
    raise KeyError("mine")


ENDINGS = [returns, raises, misfits, interrupts, waits, waits_and_raises]


def vector() -> tn.Array:
    return tn.asarray([1.0, 2.0, 3.0])


def pushed(f: Any) -> Any:
    function = tn.function(f)

    def call(x: Any) -> Any:
        with tn.Engine() as engine:
            return engine.push(function, x).get()

    return call


def nested(f: Any) -> Any:
    inside = tn.function(f)
    return tn.function(lambda x: inside(x) * 2)


GIVE_UP: dict[str, Callable[[Any], Any]] = {
    "function": tn.function,
    "nested": nested,
    "push": pushed,
}
"""What traces a function, and runs it as it is written where it waits."""
REFUSE: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: lambda x: tn.vmap(f)(tn.stack([x, x])),
    "vmap in vmap": lambda f: lambda x: tn.vmap(tn.vmap(f))(x[None, None]),
    "function in vmap": lambda f: lambda x: tn.vmap(tn.function(f))(tn.stack([x, x])),
    "vmap in function": lambda f: tn.function(lambda x: tn.vmap(f)(tn.stack([x, x]))),
    "scan": lambda f: lambda x: tn.scan(lambda c, r: (c, f(r)), 0.0, tn.stack([x, x]))[1],
    "scan in function": lambda f: tn.function(lambda x: tn.scan(lambda c, _: (f(c), c), x, x)[1]),
    "cond": lambda f: lambda x: tn.cond(tn.asarray(True), f, lambda x: x, x),
    "other branch": lambda f: lambda x: tn.cond(tn.asarray(True), lambda x: x, f, x),
    "condition": lambda f: lambda x: tn.while_loop(lambda c: tn.all(f(c) > 9), lambda c: c, x),
    "body": lambda f: lambda x: tn.while_loop(lambda c: tn.all(c > 9), f, x),
    "op": lambda f: tn.op(lambda x: f(x), name="changing"),
}
"""What traces a function, and raises where it waits."""


def changing(change: Change, ending: Callable[[Any], None]) -> tuple[State, Callable[[Any], Any]]:
    """Return a function that changes what it captures, and that."""
    state = State()

    def changes(x: Any) -> Any:
        change(state, x)
        ending(x)
        return x * 1.0

    return state, changes


def outcome(call: Callable[[Any], Any]) -> str:
    """What comes of a call: its values, or the error that it raises."""
    try:
        return str(call(vector()).tolist())
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # any is an outcome
        return f"{type(error).__name__}: {error}"


def cases_refused() -> list[Any]:
    """All changes in the plain tracers, some in those that are one inside another."""
    plain, some = ("vmap", "scan", "op"), ("item", "two arrays", "view", "window in place")
    return [
        pytest.param(tracer, change, ending, id=f"{tracer}-{change}-{ending.__name__}")
        for tracer in REFUSE
        for change in ([*ARRAYS, *WINDOWS] if tracer in plain else some)
        for ending in ENDINGS
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("tracer", "change", "ending"), cases_refused())
def test_untraceable_function_is_refused_each_time_and_changes_nothing(
    tracer: str, change: str, ending: Callable[[Any], None]
) -> None:
    state, changes = changing({**ARRAYS, **WINDOWS}[change], ending)
    before, call = state.values(), REFUSE[tracer](changes)
    found = []
    for _ in range(CALLS):
        found.append(outcome(call))
        assert state.values() == before
    assert set(found) == {found[0]}
    assert "Error" in found[0] or "KeyboardInterrupt" in found[0]
    if ending is returns:
        assert "changes" in found[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("ending", [returns, raises, misfits, interrupts])
@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("tracer", GIVE_UP)
def test_a_function_that_does_not_wait_is_refused_each_time_and_changes_nothing(
    tracer: str, change: str, ending: Callable[[Any], None]
) -> None:
    state, changes = changing(ARRAYS[change], ending)
    before, call = state.values(), GIVE_UP[tracer](changes)
    found = []
    for _ in range(CALLS):
        found.append(outcome(call))
        assert state.values() == before
    assert set(found) == {found[0]}
    wanted = {
        returns: "changes an array",
        raises: "mine",
        misfits: "ShapeError",
        interrupts: "Keyboard",
    }
    assert wanted[ending] in found[0]


def cases_as_written() -> list[Any]:
    """A function that waits, or assigns to a window, runs as it is written."""
    cases = [(change, ending) for change in ARRAYS for ending in (waits, waits_and_raises)]
    cases += [(change, ending) for change in WINDOWS for ending in ENDINGS]
    return [
        pytest.param(tracer, *case, id=f"{tracer}-{case[0]}-{case[1].__name__}")
        for tracer in GIVE_UP
        for case in cases
        if tracer != "push" or case[1] is not interrupts  # which would end the engine's thread
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("tracer", "change", "ending"), cases_as_written())
def test_a_function_that_is_not_traced_changes_things_once_at_each_call(
    tracer: str, change: str, ending: Callable[[Any], None]
) -> None:
    one = {**ARRAYS, **WINDOWS}[change]
    state, changes = changing(one, ending)
    other, plainly = changing(one, ending)
    call = GIVE_UP[tracer](changes)
    for _ in range(CALLS):
        found, wanted = outcome(call), outcome(plainly)
        assert state.values() == other.values()
        assert ("Error" in found) == ("Error" in wanted)


def test_an_element_changed_before_an_if_on_values_is_changed_once() -> None:
    a = tn.zeros(2)

    @tn.function
    def changes(x: tn.Array) -> tn.Array:
        a[0] += 1
        return x * 2 if x[0] > 0 else x

    for count in (1.0, 2.0, 3.0):
        assert changes(vector()).tolist() == [2.0, 4.0, 6.0]
        assert a.tolist() == [count, 0.0]


def test_arrays_of_the_function_and_its_arguments_may_be_changed_often() -> None:
    runs, x = [], vector()

    @tn.function
    def changes(x: tn.Array) -> tn.Array:
        runs.append(1)
        y = tn.zeros(3)
        for i in range(3):
            y[i] = x[2 - i]
            x[i] *= 2
        y += x
        return y

    for _ in range(CALLS):
        assert changes(x).tolist() == [5.0, 6.0, 8.0]
        assert x.tolist() == [1.0, 2.0, 3.0]
    assert len(runs) == 1


def test_a_function_of_a_long_row_of_assignments_runs_as_it_is_written() -> None:
    runs = []

    @tn.function
    def fills(x: tn.Array) -> tn.Array:
        runs.append(1)
        y = tn.zeros(100)
        for i in range(100):
            y[i] = x[0] + i
        return y

    for count in (2, 3, 4):  # it is traced at the first call, and given up
        assert fills(vector()).tolist() == [1.0 + i for i in range(100)]
        assert len(runs) == count


def test_a_function_around_a_refused_one_goes_on_and_reads_what_it_captures() -> None:
    w, runs = tn.ones(3), []

    @tn.function
    def inside(x: tn.Array) -> tn.Array:
        w[0] = x[0]
        return x

    @tn.function
    def around(x: tn.Array) -> tn.Array:
        runs.append(1)
        try:
            return inside(x)
        except RunError:
            return w * x

    for number in (1.0, 4.0, 5.0):
        w[0] = number
        assert around(vector()).tolist() == [number, 2.0, 3.0]
        assert w.tolist() == [number, 1.0, 1.0]
    assert len(runs) == 1


def test_an_array_of_the_function_around_has_its_value_back() -> None:
    @tn.function
    def around(x: tn.Array) -> tn.Array:
        own = x * 1
        own[0] = 7.0

        def fails(x: tn.Array) -> tn.Array:
            own[1] = x[0]
            raise KeyError("mine")

        with pytest.raises(KeyError):
            tn.function(fails)(x + 1)
        own[2] = 9.0
        return own

    for _ in range(CALLS):
        assert around(vector()).tolist() == [7.0, 2.0, 9.0]


def test_an_array_that_is_put_back_by_the_function_is_read_at_each_call() -> None:
    a, b = vector(), tn.zeros(3)
    tn.assign(b, a)
    row = a[:1]

    @tn.function
    def borrows(x: tn.Array) -> tn.Array:
        nonlocal a
        a += 1
        y = a * x + row
        tn.assign(a, b)
        return y

    assert borrows(vector()).tolist() == [4.0, 8.0, 14.0]
    for _ in range(2):
        a[0] = 4.0
        tn.assign(b, a)
        assert borrows(vector()).tolist() == [10.0, 11.0, 17.0]
        assert a.tolist() == [4.0, 2.0, 3.0]


def test_a_window_that_the_function_makes_is_written_to_at_each_call() -> None:
    memory = np.zeros(3)

    @tn.function
    def counts(x: tn.Array) -> tn.Array:
        window = tn.wrap(memory)
        window += 1
        return x + window

    for count in (1.0, 2.0, 3.0):
        assert counts(vector()).tolist() == [1.0 + count, 2.0 + count, 3.0 + count]
        assert memory.tolist() == [count] * 3


@pytest.mark.parametrize("tracer", ["vmap", "scan", "cond", "op"])
def test_a_refusal_that_the_function_catches_is_raised(tracer: str) -> None:
    state = State()

    def changes(x: Any) -> Any:
        try:
            state.window[0] = 5.0
        except RunError:
            return x + 1
        return x

    before, call = state.values(), REFUSE[tracer](changes)
    for _ in range(CALLS):
        with pytest.raises(RunError, match="changes the memory of a window"):
            call(vector())
        assert state.values() == before


def test_assignment_of_another_thread_stays() -> None:
    w = vector()

    def assigns() -> None:
        w[0] = 5.0

    @tn.function
    def reads(x: tn.Array) -> tn.Array:
        y = w * x
        other = threading.Thread(target=assigns)
        other.start()
        other.join()
        return y

    assert reads(tn.ones(3)).tolist() == [1.0, 2.0, 3.0]
    assert w.tolist() == [5.0, 2.0, 3.0]


def test_each_thread_restores_what_its_own_trace_has_changed() -> None:
    arrays = [tn.zeros(2), tn.ones(2)]
    meeting = threading.Barrier(2, timeout=60)
    found: list[str] = []

    def traces(array: tn.Array) -> None:
        @tn.function
        def changes(x: tn.Array) -> tn.Array:
            meeting.wait()
            array[0] = x[0]
            meeting.wait()
            return x[:2] + array

        with pytest.raises(RunError, match="changes an array that it was not given"):
            changes(vector())
        found.append("refused")

    threads = [threading.Thread(target=traces, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["refused"] * 2
    assert [x.tolist() for x in arrays] == [[0.0, 0.0], [1.0, 1.0]]
    assert (arrays[0] + 1).tolist() == [1.0, 1.0]
