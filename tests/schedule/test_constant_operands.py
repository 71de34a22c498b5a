"""Operations that read at other indices give NumPy's values of arrays that hold one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "tril": lambda xp, x: xp.tril(x),
    "tril above": lambda xp, x: xp.tril(x, k=1),
    "triu": lambda xp, x: xp.triu(x, k=-1),
    "pad": lambda xp, x: xp.pad(x, [(1, 2), (2, 1)]),
    "pad with seven": lambda xp, x: xp.pad(x, [(1, 2), (2, 1)], constant_values=7),
    "roll": lambda xp, x: xp.roll(x, 2, axis=0),
    "take": lambda xp, x: xp.take(x, xp.asarray([0, 2, 0]), axis=0),
    "concat": lambda xp, x: xp.concat([x, x * 2, x[:1]], axis=0),
    "diagonal of tril": lambda xp, x: xp.diagonal(xp.tril(x, k=-1), 1),
    "tril of a sum": lambda xp, x: xp.tril(x + x) * 3,
    "sum of triu": lambda xp, x: xp.sum(xp.triu(x), axis=0),
    "product with tril": lambda xp, x: xp.tril(x) @ xp.permute_dims(x, (1, 0)),
}
CONSTANTS: dict[str, Callable[[Any, tuple[int, int], str], Any]] = {
    "ones": lambda xp, shape, dtype: xp.ones(shape, dtype=dtype),
    "full": lambda xp, shape, dtype: xp.full(shape, 3, dtype=dtype),
    "broadcast": lambda xp, shape, dtype: xp.broadcast_to(xp.asarray(5, dtype=dtype), shape),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("form", FORMS)
def test_reader_of_a_constant_at_other_indices_equals_numpy(
    form: str, constant: str, dtype: str, tier: int
) -> None:
    for shape in ((3, 3), (4, 6), (70, 90), (3, 3)):
        expected = FORMS[form](np, CONSTANTS[constant](np, shape, dtype))
        with tn.options(tier=tier):
            result = np.asarray(FORMS[form](tn, CONSTANTS[constant](tn, shape, dtype)))
        np.testing.assert_array_equal(result, expected, strict=True)
