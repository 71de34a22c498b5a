"""Derivatives at kinks and degenerate points, and the page of `tools/compare_derivatives.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compare_derivatives
import tenfold as tn

SINC = -(np.pi**2) / 3
EYE = [[1.0, 0.0], [0.0, 1.0]]
RIGHT: dict[str, Any] = {
    "`abs(x)`, x = 0": 0,
    "`sign(x)`, x = 0": 0,
    "`relu(x)`, x = 0": 0,
    "`maximum(x, 1)`, x = 1": 0.5,
    "`max(x)`, x = [2, 2]": [0.5, 0.5],
    "`max(x)`, x = [2, 2, 2]": [1 / 3] * 3,
    "`clip(x, -1, 1)`, x = 1": 1,
    "`clip(x, lower, upper)`, arrays": 1,
    "`x**0`, x = 0": 0,
    "`x**y` by x, x = 0, array y = 0": 0,
    "`0**x`, x = 2": 0,
    "`norm(x)`, x = [0, 0]": [0, 0],
    "`hypot(x, y)`, [0, 0]": [0, 0],
    "`atan2(x, y)`, [0, 0]": [0, 0],
    "`where(x > 0, sqrt(x), 0)`, x = 0": np.nan,
    "`hypot(x, 1)`, second, x = 1": 8**-0.5,
    "`sinc(x)`, second, x = 0": SINC,
    "`det`, [[1, 2], [2, 4]]": [[4, -2], [-2, 1]],
    "`det`, ones of 3 x 3": [[0] * 3] * 3,
    "`std(x)`, x = [1, 1]": [0, 0],
    "`prod(x)`, x = [0, 2, 3]": [6, 0, 0],
    "`prod(x)`, x = [0, 0, 3]": [0, 0, 0],
    "`sum(cumprod(x))`, [0, 2, 3]": [9, 0, 0],
    "`logsumexp(x)`, [-inf, -inf]": [np.nan] * 2,
    "`sort(x)[0]`, x = [1, 1]": [1, 0],
    "`median(x)`, x = [1, 2, 3]": [0, 1, 0],
    "`median(x)`, x = [1, 2, 3, 4]": [0, 0.5, 0.5, 0],
    "`sum(eigvalsh(x))`, identity": EYE,
    "`sum(svdvals(x))`, identity": EYE,
    "`cholesky(x)[1, 0]`, [[1, 0], [0, 1]]": [[0, 0.5], [0.5, 0]],
    "`abs(z)**2`, z = 1 + 2i": 2 + 4j,
    "`floor(x)`, x = 1.5": 0,
    "`round(x)`, x = 1.2": 0,
    "`arccos(x)`, x = 1": -np.inf,
}
POINTS = compare_derivatives.points(compare_derivatives.LIBRARIES["tenfold"][1]())


@pytest.mark.parametrize("title", RIGHT)
def test_derivative_at_a_kink_is_the_conventional_one(title: str) -> None:
    np.testing.assert_allclose(POINTS[title](), RIGHT[title], rtol=1e-14, atol=1e-14)


def test_integer_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError, match="there is no derivative by int64"):
        POINTS["`k * k / 2`, integer k = 3"]()


def test_shares_of_ties_are_those_of_the_mean() -> None:
    for at in (2, 3):
        shares = np.asarray(tn.grad(tn.max)(tn.asarray([1.0, *[5.0] * at])))
        np.testing.assert_allclose(shares, [0, *[1 / at] * at])
    both = tn.jacobian(lambda z: tn.maximum(z[0], z[1]))(tn.asarray([1.0, 1.0]))
    assert both.tolist() == [0.5, 0.5]


def test_hessian_on_the_diagonal_of_hypot_is_that_of_the_formula() -> None:
    for z in ([1.0, 1.0], [1.0, -1.0], [2.0, 2.0]):
        found = tn.hessian(lambda z: tn.hypot(z[0], z[1]))(tn.asarray(z))
        expected = tn.hessian(lambda z: tn.sqrt(z[0] ** 2 + z[1] ** 2))(tn.asarray(z))
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_page_has_the_derivatives_of_this_version_and_the_pinned_peers() -> None:
    page = compare_derivatives.PAGE.read_text()
    lines = page.split(compare_derivatives.BEGIN)[1].split(compare_derivatives.END)[0].splitlines()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines if line.startswith("|")]
    shown = {title.removeprefix("| "): ours for title, ours, *_ in rows[2:]}
    assert list(shown) == list(POINTS)
    for title, expected in RIGHT.items():
        assert shown[title] == compare_derivatives.text(expected)
    for name, (first, *_) in compare_derivatives.PEERS.items():
        version = first.split("==")[1]
        assert f"{compare_derivatives.LIBRARIES[name][0]} {version}" in page
