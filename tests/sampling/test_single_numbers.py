"""Single numbers of a Generator, which are made ahead after a run of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tenfold as tn
from tenfold import _native
from tenfold.errors import UnsupportedError
from tenfold.namespace.draw_counter import AHEAD, RUN
from tenfold.namespace.random_generator import Generator
from tenfold.testing import assert_equal_bits

LOC = tn.asarray(0.37)
NARROW_LOC = tn.asarray(0.37, dtype="float32")
FORMS: dict[str, Callable[[Generator], tn.Array]] = {
    "random": lambda rng: rng.random(),
    "random32": lambda rng: rng.random(dtype="float32"),
    "standard_normal": lambda rng: rng.standard_normal(),
    "standard_exponential": lambda rng: rng.standard_exponential(),
    "uniform": lambda rng: rng.uniform(0.1, 0.3),
    "normal": lambda rng: rng.normal(1e-17, 1.1),
    "normal at an array": lambda rng: rng.normal(LOC, 0.1),
    "normal at a float32": lambda rng: rng.normal(NARROW_LOC, 0.1),
    "integers": lambda rng: rng.integers(-5, 7),
    "bytes": lambda rng: rng.integers(0, 255, dtype="uint8", endpoint=True),
}


def alone(draw: Callable[[Generator], tn.Array], state: dict[str, Any]) -> tn.Array:
    """The number that a Generator gives as its first one in a state."""
    rng = tn.random.default_rng(0)
    rng.state = state
    return draw(rng)


@pytest.mark.parametrize("name", FORMS)
def test_numbers_made_ahead_have_the_bits_of_single_draws(name: str) -> None:
    rng = tn.random.default_rng(7)
    for position in range(RUN + AHEAD + 4):
        state = rng.state
        number = FORMS[name](rng)
        if position % 16 in (0, 1) or abs(position - RUN - AHEAD) < 3:
            assert_equal_bits(number, alone(FORMS[name], state))
        assert rng.state["draw"] == state["draw"] + 1


def test_forms_in_turn_and_other_draws_between_keep_their_bits() -> None:
    rng = tn.random.default_rng(7)
    for position in range(3 * RUN):
        for name in ("normal", "random", "integers"):
            state = rng.state
            number = FORMS[name](rng)
            if position > RUN and position % 8 == 0:
                assert_equal_bits(number, alone(FORMS[name], state))
        if position % 10 == 0:
            rng.normal(size=2)


def test_a_run_of_single_numbers_is_made_by_one_wait() -> None:
    rng = tn.random.default_rng(7)
    for _ in range(RUN + 1):
        rng.normal()
    before = _native.read_counters()
    numbers = [rng.normal() for _ in range(AHEAD - 1)]
    total = sum(map(float, numbers))
    after = _native.read_counters()
    assert after["host_syncs"] == before["host_syncs"]
    assert after["kernels"] == before["kernels"]
    assert total == total  # no NaN


def test_an_assigned_state_gives_its_own_numbers() -> None:
    rng = tn.random.default_rng(7)
    state = rng.state
    first = [float(rng.random()) for _ in range(RUN + 20)]
    rng.state = state
    assert [float(rng.random()) for _ in range(RUN + 20)] == first
    other = tn.random.default_rng(8)
    expected = float(alone(FORMS["random"], other.state))
    rng.state = other.state
    assert float(rng.random()) == expected


def test_a_number_made_ahead_can_be_assigned_to() -> None:
    rng = tn.random.default_rng(7)
    for _ in range(RUN + 2):
        number = rng.random()
    state = rng.state
    number = rng.random()
    number[...] = 5.0
    assert number.item() == 5.0
    assert float(alone(FORMS["random"], state)) != 5.0


def test_strict_sync_and_traces_refuse_as_before() -> None:
    rng = tn.random.default_rng(7)
    with tn.options(strict_sync=True):
        numbers = [
            (alone(lambda rng: rng.normal(), rng.state), rng.normal()) for _ in range(RUN + 4)
        ]
    for expected, number in numbers:
        assert_equal_bits(number, expected)
    for _ in range(RUN + 2):
        rng.normal()
    with pytest.raises(UnsupportedError, match="trace"):
        tn.vmap(lambda x: x + rng.normal())(tn.zeros(3))
