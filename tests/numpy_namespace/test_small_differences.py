"""What NumPy accepts and Tenfold once did not: values, masks, waits."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as ours
from tenfold.errors import UnsupportedError


def test_full_takes_an_array_without_axes() -> None:
    made = tn.full((2, 2), tn.asarray(1.5, dtype="float32"))
    assert made.dtype == tn.float32
    assert made.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert tn.full(2, tn.asarray(1.5), dtype=tn.int64).tolist() == [1, 1]


def test_a_number_past_int64_is_unsigned() -> None:
    made = tn.full((2,), 2**63)
    assert (made.dtype, made.tolist()) == (tn.uint64, [2**63] * 2)
    with pytest.raises(OverflowError, match="out of bounds for uint64"):
        tn.full((2,), 2**64)
    with pytest.raises(OverflowError, match="out of bounds for int64"):
        tn.full((2,), -(2**63) - 1)


def test_a_number_becomes_bool() -> None:
    for value in (1, 0.0, 2 + 1j, np.float32(3)):
        made = tn.asarray(value, dtype=tn.bool)
        assert (made.shape, made.dtype, made.item()) == ((), tn.bool, bool(value))


def test_numbers_and_ndarrays_stand_beside_arrays() -> None:
    x = tn.asarray([1.0, 2.0])
    assert [part.tolist() for part in np.broadcast_arrays(x, 0.5)] == [[1.0, 2.0], [0.5, 0.5]]
    grids = np.meshgrid(x, np.arange(3))
    assert [grid.shape for grid in grids] == [(3, 2), (3, 2)]
    assert all(isinstance(grid, tn.Array) for grid in grids)


@pytest.mark.parametrize(
    ("shape", "mask"),
    [((0, 0), (0, 1)), ((0,), (1,)), ((2, 0), (2, 1)), ((0, 2), (0, 3)), ((2, 3), (0,))],
)
def test_a_mask_is_refused_where_numpy_refuses_it(shape: Any, mask: Any) -> None:
    try:
        expected = np.zeros(shape)[np.zeros(mask, bool)].shape
    except IndexError:
        with pytest.raises(IndexError):
            tn.zeros(shape)[tn.zeros(mask, dtype=tn.bool)]
    else:
        assert tn.zeros(shape)[tn.zeros(mask, dtype=tn.bool)].shape == expected


def test_digits_are_rounded_to() -> None:
    assert round(tn.asarray(1.2345), 2).item() == round(1.2345, 2)
    assert round(tn.asarray([0.125, 2.675]), 2).tolist() == np.round([0.125, 2.675], 2).tolist()


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64"])
def test_a_range_of_whole_numbers_is_a_kernel(dtype: str) -> None:
    with tn.profile() as counted:
        made = (tn.arange(10, 1000, 7, dtype=dtype) * 2).wait()
    assert made.tolist() == (np.arange(10, 1000, 7, dtype=dtype) * 2).tolist()
    assert counted.calls == 0


def test_a_range_of_large_unsigned_numbers_is_numpys() -> None:
    start = 2**63 - 2
    made = tn.arange(start, start + 6, dtype="uint64") + tn.asarray(0, dtype="uint64")
    assert made.tolist() == list(range(start, start + 6))


def test_linalg_has_the_error_of_numpy() -> None:
    assert tn.linalg.LinAlgError is np.linalg.LinAlgError


def test_await_gives_the_computed_array() -> None:
    async def program() -> tn.Array:
        x = tn.asarray([1.0, 2.0]) * 2
        return await x

    made = asyncio.run(program())
    assert repr(made) == "Array([2., 4.], dtype=float64)"


def test_a_masked_read_of_a_constant_is_zero_outside() -> None:
    for make in (tn.ones, tn.zeros):
        for function, reference in ((tn.tril, np.tril), (tn.triu, np.triu)):
            assert function(make((3, 4))).tolist() == reference(np.asarray(make((3, 4)))).tolist()


def test_numpy_is_an_attribute_of_tenfold() -> None:
    import tenfold.numpy

    assert tn.numpy is tenfold.numpy


@pytest.mark.parametrize("shape", [3, (), (0,), (2, 3), (4, 1)])
@pytest.mark.parametrize("dtype", [None, "float32", np.int8, complex])
def test_the_array_type_makes_an_array_of_any_values(shape: Any, dtype: Any) -> None:
    arguments = () if dtype is None else (dtype,)
    x, expected = ours.ndarray(shape, *arguments), np.ndarray(shape, *arguments)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    x[...] = 1
    assert np.asarray(x).tobytes() == np.ones_like(expected).tobytes()
    assert ours.ndarray(shape=shape, order="F", dtype=dtype or float).shape == expected.shape


@pytest.mark.parametrize(
    "wrong", [(), ([2, 3],), (None,), ("ab",), (2.5,), (np.ones(2),), (ours.zeros(2),)]
)
def test_the_array_type_takes_shapes_alone(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"cannot create|integer|index"):
        ours.ndarray(*wrong)
    with pytest.raises(UnsupportedError, match="frombuffer"):
        ours.ndarray((2,), buffer=b"1" * 16)
    with pytest.raises((ValueError, OverflowError)):
        ours.ndarray((-2,))


@pytest.mark.parametrize("written_before", [False, True])
def test_a_shape_is_assigned_in_place(written_before: bool) -> None:
    for source in (ours.arange(12) * 2, ours.arange(24)[::2]):
        x = source
        name, row = x, x[:3]
        if written_before:
            x += 1
        expected = np.asarray(x).copy()
        x.shape = (3, -1)
        expected = expected.reshape(3, 4)
        assert name.shape == x.shape == (3, 4)
        assert row.shape == (3,)
        for _ in range(2):
            x[0, 0] = 50
            x *= 2
            expected[0, 0] = 50
            expected *= 2
            np.testing.assert_array_equal(x, expected)
            np.testing.assert_array_equal(row, expected[0, :3])
        row[1] = -1
        assert x[0, 1].item() == -1
        x.shape = 12
        assert (x[:3].tolist(), x.T.shape) == (row.tolist(), (12,))


def test_a_view_that_was_reshaped_in_place_writes_through() -> None:
    base = ours.zeros((4, 6))
    rows = base[1:3]
    first = rows[0]
    rows.shape = (3, 4)
    rows[...] = np.arange(12.0).reshape(3, 4)
    first[0] = 9
    expected = np.zeros((4, 6))
    expected[1:3] = np.arange(12.0).reshape(2, 6)
    expected[1, 0] = 9
    np.testing.assert_array_equal(base, expected)
    np.testing.assert_array_equal(rows, expected[1:3].reshape(3, 4))
    del base, first
    rows += 1
    assert rows[0, 0].item() == 10


def test_a_shape_that_does_not_fit_is_refused() -> None:
    x = ours.zeros((2, 3))
    with pytest.raises(ValueError, match="shape"):
        x.shape = (4, 2)
    transposed = x.T
    with pytest.raises(AttributeError, match="Incompatible shape"):
        transposed.shape = (6,)
    with pytest.raises(UnsupportedError, match="in place"):
        tn.wrap(np.zeros(6)).shape = (2, 3)
    assert x.shape == (2, 3)


def test_flags_are_equal_or_not() -> None:
    flags = ours.zeros(3).flags
    assert flags == ours.ones(3).flags
    assert (flags != ours.ones(3).flags) is False
    assert flags != 1


def test_full_of_an_array_is_an_array_of_its_own() -> None:
    row = ours.zeros(3)
    x = ours.full((2, 3), row)
    x[0, 0] = 5
    row[1] = 7
    assert (x.tolist(), row.tolist()) == ([[5, 0, 0], [0, 0, 0]], [0, 7, 0])
