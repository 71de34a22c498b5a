"""A difference is reported as a small program that shows it, and the bounds are what they claim."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tenfold as tn

from . import error_bounds
from .error_bounds import exact, to_bfloat16
from .expression_draft import Name, Seeded
from .expression_forms import Drawn
from .leaves import Leaf
from .random_programs import Step, check, compare, difference, expected, generate, text_of


def with_a_mistake(seed: int) -> list[Step]:
    """A random program, and a line of which NumPy's side is told something else."""
    program = generate(Seeded(seed))
    leaf = Step(Name("u"), Leaf(np.array([1.5, np.nan, -np.inf])))
    wrong = Drawn("u + 1", (Name("u"),), lambda x: error_bounds.add(x, 2))
    other = Drawn("tn.sqrt(w)", (Name("w"),), error_bounds.sqrt)
    return [leaf, *program, Step(Name("w"), wrong), Step(Name("y"), other)]


@pytest.mark.parametrize("seed", range(5))
def test_a_report_is_a_program_that_still_differs(seed: int) -> None:
    with pytest.raises(AssertionError) as caught:
        check(with_a_mistake(seed), random.Random(seed))
    difference_line, *program = str(caught.value).splitlines()
    assert difference_line.startswith("w: ")
    assert program[3:] == ["u = tn.asarray([1.5, nan, -inf], dtype=tn.float64)", "w = u + 1"]
    scope: dict[str, Any] = {}
    exec("\n".join(program), scope)
    tn.testing.assert_equal_bits(scope["w"], np.array([2.5, np.nan, -np.inf]))


@pytest.mark.parametrize("seed", range(20))
def test_the_text_of_a_program_is_the_program(seed: int) -> None:
    program = generate(Seeded(seed))
    scope: dict[str, Any] = {}
    exec(text_of(program), scope)
    for name, wanted in expected(program).items():
        assert compare(np.asarray(scope[name]), wanted) == ""
    assert difference(program) == ""


def test_one_changed_bit_of_an_exact_value_is_a_difference() -> None:
    wanted = exact(np.float32([1.0, 0.0]))
    assert compare(np.float32([1.0, 0.0]), wanted) == ""
    assert "-0.0" in compare(np.float32([1.0, -0.0]), wanted)
    assert compare(np.float32([np.nextafter(np.float32(1), 2), 0.0]), wanted)
    assert "float64" in compare(np.array([1.0, 0.0]), wanted)
    assert "[1]" in compare(np.float32([1.0]), wanted)


def test_the_bound_of_arithmetic_holds_the_exact_result() -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        a, b, c, d = (
            float(x) for x in generator.normal(size=4) * 10.0 ** generator.integers(-3, 4)
        )
        product = error_bounds.smooth(exact(np.array([abs(a)])), np.cbrt, 4, monotone=True)
        x = error_bounds.multiply(
            error_bounds.add(product, exact(np.array([b]))), exact(np.array([c]))
        )
        y = error_bounds.divide(x, exact(np.array([d])))
        low = (float(np.cbrt(np.longdouble(abs(a)))) + b) * c / d
        assert abs(y.values[0] - low) <= y.error[0] < 1e-10 * max(1, abs(low), abs(b * c / d))


def test_bfloat16_is_rounded_once_to_the_nearest_even() -> None:
    generator = np.random.default_rng(2)
    middle = 1 + (2 * generator.integers(0, 2**7, 200) + 1) * 2.0**-8
    near = np.concatenate(
        [middle, middle + 2.0**-40, middle - 2.0**-40, generator.normal(size=200)]
    )
    rounded = to_bfloat16(near)
    for given, found in zip(near, rounded, strict=True):
        unit = Fraction(2) ** int(np.floor(np.log2(abs(given)))) / 128
        steps = Fraction(float(given)) / unit
        assert Fraction(float(found)) == round(steps) * unit
    tn.testing.assert_equal_bits(tn.astype(tn.asarray(near), tn.bfloat16), rounded)
