"""Programs written for NumPy run on `tenfold.numpy`, with NumPy's values, twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy
import user_scripts


@pytest.mark.parametrize("script", user_scripts.SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_has_the_values_of_numpy(script: Callable[[Any], dict[str, Any]]) -> None:
    expected = script(numpy)
    for _ in range(2):
        found = script(tenfold.numpy)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            if not isinstance(value, (numpy.ndarray, numpy.generic)):
                assert found[name] == value, name
                continue
            assert isinstance(found[name], tn.Array), name
            assert found[name].dtype == value.dtype, name
            bound = 1e-5 if value.dtype == "float32" else 1e-9
            numpy.testing.assert_allclose(
                numpy.asarray(found[name]), value, rtol=bound, atol=bound, err_msg=name
            )
