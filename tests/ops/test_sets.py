"""Sets: against counting by hand, for every dtype: NaN, zeros of both signs, empty and 0-d."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenfold as tn
from grid import ALL_DTYPES, INTEGERS
from movement_samples import same_bits, special, untimed
from tenfold.errors import DTypeError, ShapeError

SMALL = hnp.arrays(
    st.sampled_from([np.int8, np.uint64, np.float32, np.complex64, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements=st.sampled_from([0, 1]),
) | hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements=st.sampled_from([0.0, -0.0, 1.5, -np.inf, np.nan]),
)


def distinct(x: np.ndarray) -> list[tuple[int, int]]:
    """First position and count of each value of the flattened array; each NaN is one of its own."""
    firsts: list[list[int]] = []
    flat = x.reshape(-1)
    for position in range(flat.size):
        same = [entry for entry in firsts if bool(flat[entry[0]] == flat[position])]
        if same:
            same[0][1] += 1
        else:
            firsts.append([position, 1])
    return sorted((first, count) for first, count in firsts)


def check(values: np.ndarray) -> None:
    x = tn.asarray(values)
    found = tn.unique_all(x)
    firsts = dict(distinct(values))
    order = np.asarray(found.indices)
    assert sorted(order.tolist()) == list(firsts)
    assert [firsts[first] for first in order.tolist()] == found.counts.tolist()
    same_bits(found.values, values.reshape(-1)[order])
    inverse = np.asarray(found.inverse_indices)
    assert inverse.shape == values.shape
    back = np.asarray(found.values)[inverse] if values.size else values
    assert bool(np.all((back == values) | ((back != back) & (values != values))))
    for part in (found.indices, found.inverse_indices, found.counts):
        assert part.dtype == tn.int64
    check_parts(x, found)


def check_parts(x: tn.Array, found: Any) -> None:
    """The other functions return the same, though not NaN of the same sign."""
    counted, inverted = tn.unique_counts(x), tn.unique_inverse(x)
    whole = np.asarray(found.values)
    number = whole == whole
    for values in (tn.unique_values(x), counted.values, inverted.values):
        each = np.asarray(values)
        assert (each.dtype, each.shape) == (whole.dtype, whole.shape)
        assert bool(np.all((each == each) == number))
        same_bits(tn.asarray(each[number]), whole[number])
    assert counted.counts.tolist() == found.counts.tolist()
    assert inverted.inverse_indices.tolist() == found.inverse_indices.tolist()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_distinct_values_of_every_dtype(dtype: str) -> None:
    for shape in ((60,), (2100,), (5, 7), (), (0, 3), (1, 2, 1, 3, 1, 2)):
        check(special(shape, dtype))


@untimed
@given(SMALL)
def test_distinct_values_of_any_array(values: np.ndarray) -> None:
    check(values)


@pytest.mark.parametrize("dtype", [name for name in ALL_DTYPES if not name.startswith("complex")])
def test_values_rise_and_nans_come_last(dtype: str) -> None:
    values = np.asarray(tn.unique_values(tn.asarray(special((60,), dtype))))
    wide = values.astype(np.float64) if values.dtype.kind not in "biu" else values
    numbers = wide[wide == wide]
    assert bool(np.all(numbers[1:] > numbers[:-1]))
    assert not np.any(wide[: numbers.size] != wide[: numbers.size])


def test_the_others_are_parts_of_unique_all() -> None:
    x = tn.asarray([[3.0, np.nan, 3.0], [-0.0, 0.0, np.nan]])
    every = tn.unique_all(x)
    same_bits(tn.unique_values(x), np.asarray(every.values))
    for name, fields in (
        ("unique_counts", ("values", "counts")),
        ("unique_inverse", ("values", "inverse_indices")),
    ):
        found = getattr(tn, name)(x)
        assert found._fields == fields
        for field in fields:
            same_bits(getattr(found, field), np.asarray(getattr(every, field)))
    assert every._fields == ("values", "indices", "inverse_indices", "counts")
    assert np.signbit(np.asarray(every.values))[0]  # the -0.0 came first


@untimed
@given(SMALL.filter(lambda x: x.ndim > 0))
def test_nonzero_equals_numpy(values: np.ndarray) -> None:
    same_bits(tn.nonzero(tn.asarray(values)), np.nonzero(values))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_nonzero_of_every_dtype(dtype: str) -> None:
    values = special((6, 7), dtype)
    same_bits(tn.nonzero(tn.asarray(values)), np.nonzero(values))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_membership_is_equality_with_any(dtype: str) -> None:
    x, candidates = special((5, 8), dtype), special((40,), dtype)[3:12:2]
    expected = (x[..., None] == candidates).any(-1)
    same_bits(tn.isin(tn.asarray(x), tn.asarray(candidates)), expected)
    same_bits(tn.isin(tn.asarray(x), tn.asarray(candidates), invert=True), ~expected)


@pytest.mark.parametrize("signed", [name for name in INTEGERS if name[0] == "i"])
def test_membership_of_signed_in_unsigned_is_exact(signed: str) -> None:
    x = np.array([-1, 0, 1, np.iinfo(signed).max]).astype(signed)
    wide = np.array([2**64 - 1, 2**63 - 1, 1], np.uint64)
    expected = [int(a) in [int(b) for b in wide] for a in x]
    assert tn.isin(tn.asarray(x), tn.asarray(wide)).tolist() == expected
    expected = [int(b) in [int(a) for a in x] for b in wide]
    assert tn.isin(tn.asarray(wide), tn.asarray(x)).tolist() == expected


def test_membership_takes_python_numbers() -> None:
    x = tn.asarray(np.array([1, 44, 3], np.uint8))
    assert tn.isin(x, 44).tolist() == [False, True, False]
    assert tn.isin(x, 300).tolist() == [False, False, False]
    assert tn.isin(2, x).item() is False
    third = tn.asarray(np.array([0.1], np.float32))
    assert tn.isin(third, 0.1).tolist() == [True]


def test_membership_is_lazy_and_the_rest_computes_at_the_call() -> None:
    x = tn.asarray([3, 1, 3]) + 0
    with tn.profile() as profile:
        tn.isin(x, x)
    assert profile.host_syncs == 0
    with tn.profile() as profile:
        tn.unique_values(x)
    assert profile.host_syncs == 1


def test_strict_sync_refuses_what_waits() -> None:
    x = tn.asarray([3, 1, 3]) + 0
    with tn.options(strict_sync=True):
        for name in ("nonzero", "unique_values", "unique_all"):
            with pytest.raises(RuntimeError, match=f"^{name}: strict_sync"):
                getattr(tn, name)(x)


def test_numpy_functions_answer_with_arrays() -> None:
    x = tn.asarray([3, 1, 3])
    assert np.nonzero(x)[0].tolist() == [0, 1, 2]
    assert np.unique_counts(x).counts.tolist() == [1, 2]
    assert np.isin(x, [1, 2]).tolist() == [False, True, False]


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("nonzero", lambda: tn.nonzero(tn.asarray(1)), ShapeError, "without axes has no positions"),
    ("unique_all", lambda: tn.unique_all("a"), DTypeError, "str is not an array"),
    ("unique_values", lambda: tn.unique_values(None), DTypeError, "NoneType is not an array"),
]


@pytest.mark.parametrize(("name", "program", "error", "text"), REFUSED)
def test_mistake_is_refused_at_the_call(name: str, program: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"(?s)^{name}: .*{text}"):
        program()
