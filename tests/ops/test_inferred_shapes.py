"""Types of results for new shapes: what broadcast operands, reductions and other orders of axes
give, as NumPy's, and without asking the rules again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op_decorators import elementwise, reduction

RANDOM = np.random.default_rng(11)


def shape() -> tuple[int, ...]:
    return tuple(int(n) for n in RANDOM.choice([0, 1, 2, 3], RANDOM.integers(0, 5)))


def test_operands_broadcast_as_those_of_numpy() -> None:
    for _ in range(2000):
        first, second, third = shape(), shape(), shape()
        try:
            expected = np.broadcast_shapes(first, second, third)
        except ValueError:
            with pytest.raises(tn.errors.ShapeError, match="do not broadcast"):
                tn.fma(tn.zeros(first), tn.zeros(second), tn.zeros(third))
        else:
            assert tn.fma(tn.zeros(first), tn.zeros(second), tn.zeros(third)).shape == expected


@pytest.mark.parametrize("name", ["sum", "max", "argmax"])
def test_reductions_leave_out_the_axes_that_numpy_does(name: str) -> None:
    for _ in range(700):
        values, keepdims = np.zeros(shape()), bool(RANDOM.integers(2))
        count = RANDOM.integers(0, values.ndim + 1)
        axes: tuple[int, ...] | int | None
        axes = tuple(int(n) for n in RANDOM.permutation(values.ndim)[:count])
        if name == "argmax":
            axes = axes[0] if axes else None
        try:
            expected = getattr(np, name)(values, axis=axes, keepdims=keepdims).shape
        except ValueError:
            with pytest.raises(ValueError, match="empty"):
                getattr(tn, name)(tn.asarray(values), axis=axes, keepdims=keepdims)
        else:
            made = getattr(tn, name)(tn.asarray(values), axis=axes, keepdims=keepdims)
            assert made.shape == expected


def test_permuted_axes_lie_as_those_of_numpy() -> None:
    for _ in range(500):
        values = np.zeros(shape())
        axes = tuple(int(n) for n in RANDOM.permutation(values.ndim))
        assert tn.permute_dims(tn.asarray(values), axes).shape == values.transpose(axes).shape


def test_a_rule_is_asked_once_for_dtypes() -> None:
    asked = []

    def dtypes(types: Sequence[Type]) -> tuple[tuple[np.dtype, ...], np.dtype]:
        asked.append(tuple(type_.dtype for type_ in types))
        return tuple(type_.dtype for type_ in types), types[0].dtype

    @elementwise(dtypes=dtypes, reference=np.add, public=False)
    def noted(x1: Array, x2: Array, /) -> Array:
        """Add."""
        raise NotImplementedError

    @reduction(
        dtypes=lambda type_: (dtypes([type_])[1],) * 2, reference=np.sum, public=False, empty=False
    )
    def noted_sum(x: Array, /, *, axis: int, keepdims: bool = False) -> Array:
        """Sum."""
        raise NotImplementedError

    for n in range(1, 20):
        x, y = tn.zeros((n, 2)), tn.zeros((n, 1), dtype=tn.float32)
        assert noted(x, y).shape == noted(x, 1.5).shape == (n, 2)
        assert noted_sum(y, axis=0).shape == (1,)
    assert len(asked) == 3
    assert noted_sum(tn.zeros((2, 2, 5), dtype=tn.float32), axis=0).shape == (2, 5)
    assert len(asked) == 4, "other axes are another reduction"
    _native.trim()
    noted(tn.zeros(3), 1.5)
    assert len(asked) == 5


def test_strictness_and_devices_are_asked_anew() -> None:
    x, y = tn.zeros((2,)), tn.zeros((2,), dtype=tn.int64)
    assert (x + y).dtype == tn.float64
    with tn.options(strict_dtypes=True), pytest.raises(tn.errors.DTypeError):
        tn.zeros((3,)) + tn.zeros((3,), dtype=tn.int64)
    with pytest.raises(tn.errors.DeviceError):
        tn.zeros((7,), device="reference") + tn.zeros((7,), device="cpu")


def test_a_result_larger_than_memory_is_refused_at_the_line() -> None:
    assert (tn.zeros((2, 1)) + tn.zeros((1, 2))).shape == (2, 2)
    with pytest.raises(tn.errors.ShapeError, match="bytes"):
        tn.zeros((2**31, 1)) + tn.zeros((1, 2**31))
