"""What a newcomer's habits from other libraries meet: an answer that says what to write."""

from __future__ import annotations

import collections.abc
import threading
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import FallbackWarning, UnsupportedError
from tenfold.namespace.absent_names import PEER_NAMES


@pytest.mark.parametrize("name", PEER_NAMES)
def test_name_of_another_library_is_answered_by_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tn, name)
    assert str(caught.value).endswith(f"; {PEER_NAMES[name]}")


def test_options_without_a_block_warn_where_they_stand() -> None:
    with pytest.warns(RuntimeWarning, match=r"write `with tn.options\(threads=1\):`") as caught:
        tn.options(threads=1)
    assert caught[0].filename == __file__


def test_options_of_a_block_or_of_a_function_do_not_warn() -> None:
    with tn.options(threads=1):
        pass

    @tn.options(threads=1)
    def never_called() -> None: ...

    del never_called
    tn.options()


def test_options_of_a_function_that_goes_on_after_its_call_are_refused() -> None:
    async def waits() -> None: ...

    def yields() -> Any:
        yield

    for function in (waits, yields):
        with pytest.raises(TypeError, match="in it"):
            tn.options(threads=1)(function)


def test_function_that_asks_for_a_value_warns_once_and_names_the_line() -> None:
    @tn.function
    def choose(x: tn.Array) -> tn.Array:
        return x if x[0] > 0 else -x

    with pytest.warns(FallbackWarning, match=r"test_first_hour.py:\d+ asks for a value") as caught:
        assert choose(tn.asarray([-1.0])).tolist() == [1.0]
    assert caught[0].filename == __file__
    assert choose(tn.asarray([-1, 2])).tolist() == [1, -2]  # a second signature


def test_warning_under_grad_names_the_line_of_the_user() -> None:
    @tn.function
    def choose(x: tn.Array) -> tn.Array:
        return x if x[0] > 0 else -x

    with pytest.warns(FallbackWarning, match="runs untraced") as caught:
        tn.grad(lambda x: tn.sum(choose(x)))(tn.asarray([1.0]))
    assert caught[0].filename == __file__


def test_array_is_no_key_and_says_what_is() -> None:
    x = tn.asarray(1.0)
    assert not isinstance(x, collections.abc.Hashable)
    with pytest.raises(TypeError, match=r"unhashable type(.|\n)*x.item\(\)"):
        {x}


class TestHandles:
    """Handles by the names of `concurrent.futures`."""

    def test_result_is_the_value_and_keeps_its_timeout(self) -> None:
        with tn.Engine() as engine:
            handle = engine.push(tn.operators.negative, tn.asarray([1.0]))
            assert handle.result(timeout=10).tolist() == [-1.0]
            with pytest.raises(TypeError, match="result: it takes one argument"):
                handle.result(1, 2)  # type: ignore[call-arg]

    def test_callback_gets_the_handle_once_it_is_settled(self) -> None:
        called, seen = threading.Event(), []

        def note(handle: tn.Handle) -> None:
            seen.append(handle)
            called.set()

        with tn.Engine() as engine:
            with engine.hold():
                handle = engine.push(tn.operators.negative, tn.asarray([1.0]))
                handle.add_done_callback(note)
                assert not seen
            assert called.wait(10)
            with pytest.raises(TypeError, match="add_done_callback: None is not callable"):
                handle.add_done_callback(None)  # type: ignore[arg-type]
            handle.get()
            handle.add_done_callback(note)
        assert seen == [handle, handle]

    def test_callbacks_run_in_the_order_of_their_adding(self) -> None:
        called, seen = threading.Event(), list[int]()
        with tn.Engine() as engine:
            with engine.hold():
                handle = engine.push(tn.operators.negative, tn.asarray([1.0]))
                for number in range(5):
                    handle.add_done_callback(lambda _, number=number: seen.append(number))
                handle.add_done_callback(lambda _: called.set())
            assert called.wait(10)
        assert seen == [0, 1, 2, 3, 4]

    def test_array_of_a_handle_is_refused_and_names_get(self) -> None:
        with tn.Engine() as engine:
            handle = engine.put(tn.asarray([1.0]))
            with pytest.raises(TypeError, match=r"handle\.get\(\)"):
                np.asarray(handle)


def test_time_that_a_batch_waits_is_refused_above_a_second() -> None:
    with pytest.raises(ValueError, match="50 microseconds are 50e-6"):
        tn.Engine(batch_wait=50)


def test_profile_prints_times_of_steps() -> None:
    with tn.profile() as p:
        (tn.asarray([1.0]) + 1).wait()
    lines = str(p).splitlines()
    assert lines[0] == "profile"
    assert "  launches                          1" in lines
    assert lines[-1].split()[-3:] == ["1", "time", "add"]
    with tn.profile() as nothing:
        pass
    assert str(nothing) == "profile\n  of nothing"


class TestNumpysBits:
    """Generators of NumPy's bits."""

    def test_draws_are_numpys_and_arrays(self) -> None:
        ours = tn.random.default_rng(np.random.PCG64(7))
        theirs = np.random.default_rng(np.random.PCG64(7))
        for draw in (
            lambda rng: rng.normal(size=5),
            lambda rng: rng.integers(10, size=(2, 3)),
            lambda rng: rng.permutation(6),
            lambda rng: rng.choice([1, 2, 3], 4),
            lambda rng: rng.spawn(2)[1].random(2),
        ):
            found = draw(ours)
            assert isinstance(found, tn.Array)
            assert np.array_equal(np.asarray(found), draw(theirs))
        assert ours.random() == theirs.random()
        x, y = tn.arange(9), np.arange(9)
        ours.shuffle(x)
        theirs.shuffle(y)
        assert x.tolist() == y.tolist()
        assert (
            ours.uniform(0, tn.asarray([1.0, 2.0])).tolist() == theirs.uniform(0, [1, 2]).tolist()
        )

    def test_generator_of_numpy_goes_on_where_it_is(self) -> None:
        theirs = np.random.default_rng(3)
        first = tn.random.default_rng(theirs).random(2).tolist()
        assert first == np.random.default_rng(3).random(2).tolist()
        assert theirs.random() == np.random.default_rng(3).random(3)[2]

    def test_trace_refuses_them(self) -> None:
        rng = tn.random.default_rng(np.random.PCG64(7))
        with pytest.raises(UnsupportedError, match="a trace would repeat"):
            tn.vmap(lambda x: x + rng.random(2))(tn.zeros((3, 2)))

    def test_missing_method_says_so(self) -> None:
        with pytest.raises(AttributeError, match="'NumpyDraws' object has no attribute 'rand'"):
            tn.random.default_rng(np.random.PCG64(7)).rand(3)
