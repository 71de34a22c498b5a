"""Norms of vectors are fused with what is around them, and have NumPy's special values."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn


def test_a_vector_divided_by_its_norm_is_no_call() -> None:
    x = tn.asarray(np.linspace(1.0, 2.0, 300))
    with tn.profile() as counts:
        unit = (x / tn.linalg.vector_norm(x)).wait()
    assert counts.calls == 0
    np.testing.assert_allclose(tn.linalg.norm(unit).item(), 1.0, rtol=1e-15)


@pytest.mark.parametrize("order", [1, 2, np.inf])
@pytest.mark.parametrize(
    "values",
    [[0.0, -0.0], [1.0, np.nan], [np.inf, -1.0], [np.nan, np.inf], [1e200, 1e200], [1e-200, 0.0]],
)
def test_norms_of_special_values_are_numpys(order: float, values: list[float]) -> None:
    for x in (np.asarray(values), np.asarray(values, complex)):
        with np.errstate(all="ignore"):
            expected = np.linalg.norm(x, order)
        found = tn.linalg.norm(tn.asarray(x), ord=order).item()
        np.testing.assert_allclose(found, expected, rtol=1e-15)
