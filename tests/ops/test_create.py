"""Creation: NumPy's values bit for bit, dtypes without a name, laziness, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenfold as tn
from grid import ALL_DTYPES, INTEGERS
from movement_samples import node_name, numbered, same_bits, special, untimed
from tenfold import _native
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DeviceError, DTypeError, ShapeError

NUMBERS = [name for name in ALL_DTYPES if name != "bool"]
SHAPES = [(), (0,), (3,), (2, 0, 3), (1, 2, 1, 3, 1, 2), 4]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_filled_arrays_equal_numpy(shape: Any, dtype: str) -> None:
    native = DTYPES[dtype]
    same_bits(tn.zeros(shape, dtype=dtype), np.zeros(shape, native))
    same_bits(tn.ones(shape, dtype=native), np.ones(shape, native))
    same_bits(tn.full(shape, 3, dtype=dtype), np.full(shape, 3, native))
    assert tn.empty(shape, dtype=dtype).shape == np.empty(shape).shape
    x = tn.asarray(special((2, 3), dtype))
    for like, expected in ((tn.zeros_like, np.zeros), (tn.ones_like, np.ones)):
        same_bits(like(x), expected((2, 3), native))
        same_bits(like(x, dtype=tn.int8), expected((2, 3), np.int8))
    same_bits(tn.full_like(x, 2), np.full((2, 3), 2, native))
    assert (tn.empty_like(x).shape, tn.empty_like(x).dtype) == ((2, 3), native)


def test_dtype_without_a_name_is_the_default_one() -> None:
    assert [tn.full(2, value).dtype for value in (True, 1, 1.0, 1j)] == [
        tn.bool,
        tn.int64,
        tn.float64,
        tn.complex128,
    ]
    assert tn.full(2, np.float32(1)).dtype == tn.float32
    assert (
        tn.zeros(2).dtype == tn.ones(2).dtype == tn.eye(2).dtype == tn.empty(2).dtype == tn.float64
    )
    assert tn.arange(2).dtype == tn.int64
    assert tn.arange(2.0).dtype == tn.arange(0, 2, 0.5).dtype == tn.float64
    assert tn.linspace(0, 1, 2).dtype == tn.float64
    assert tn.linspace(0, 1j, 2).dtype == tn.complex128


def test_fill_values_become_the_dtype() -> None:
    assert tn.full(1, -0.0).tolist() == [0.0]
    assert np.signbit(np.asarray(tn.full(1, -0.0)))[0]
    assert np.isnan(tn.full((), float("nan")).item())
    assert tn.full(1, 2.9, dtype=tn.int8).tolist() == [2]
    assert tn.full(1, 1e9, dtype=tn.int8).tolist() == [127]
    assert tn.full(1, 0.5, dtype=tn.bool).tolist() == [True]
    assert tn.full(1, True, dtype=tn.float32).tolist() == [1.0]
    assert tn.full(1, 2**64 - 1, dtype=tn.uint64).tolist() == [2**64 - 1]
    assert tn.full(1, 10**40, dtype=tn.float32).tolist() == [float("inf")]


def test_equal_calls_have_equal_parameters() -> None:
    calls = [tn.full((2, 3), 1.0), tn.full([2, 3], 1, dtype=float), tn.ones((np.int8(2), 3))]
    assert len({_native.node_of(call).params for call in calls}) == 1


@pytest.mark.parametrize("make", [lambda: tn.zeros(3), lambda: tn.arange(3), lambda: tn.eye(2)])
def test_creation_is_lazy_and_of_kind_value(make: Any) -> None:
    with tn.profile() as profile:
        made = make()
    assert made.kind == tn.Kind.VALUE
    assert (profile.kernels, profile.calls) == (0, 0)


def test_an_array_larger_than_memory_can_be_named() -> None:
    assert tn.zeros((10**6, 10**6, 10**3)).size == 10**15


def test_like_reads_no_values() -> None:
    x = tn.zeros((10**6, 10**6)) + 1
    assert node_name(tn.ones_like(x)) == "full"
    assert _native.node_of(tn.ones_like(x)).inputs == ()


BOUNDS = st.one_of(st.integers(-40, 40), st.floats(-40, 40, width=16))
STEPS = BOUNDS.filter(lambda step: abs(step) > 0.01)


@untimed
@given(BOUNDS, BOUNDS, STEPS, st.sampled_from([None, *NUMBERS]))
def test_any_arange_equals_numpy(start: Any, stop: Any, step: Any, dtype: str | None) -> None:
    native = None if dtype is None else DTYPES[dtype]
    try:
        expected = np.arange(start, stop, step, native)
    except OverflowError:
        with pytest.raises(OverflowError, match="out of bounds for uint"):
            tn.arange(start, stop, step, dtype=dtype)
        return
    same_bits(tn.arange(start, stop, step, dtype=dtype), expected)


@untimed
@given(BOUNDS, BOUNDS, st.integers(0, 60), st.booleans(), st.sampled_from([None, *NUMBERS]))
def test_any_linspace_equals_numpy(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: str | None
) -> None:
    native = None if dtype is None else DTYPES[dtype]
    if dtype is not None and kind_of(DTYPES[dtype]) == "u":
        start, stop = abs(start), abs(stop)
    expected = np.linspace(start, stop, num, endpoint=endpoint, dtype=native)
    same_bits(tn.linspace(start, stop, num, endpoint=endpoint, dtype=dtype), expected)


def test_linspace_of_large_and_complex_bounds() -> None:
    same_bits(tn.linspace(1e300, -1e300, 7), np.linspace(1e300, -1e300, 7))
    same_bits(tn.linspace(5e-324, 1e-323, 3), np.linspace(5e-324, 1e-323, 3))
    same_bits(tn.linspace(1 - 2j, 3j, 5), np.linspace(1 - 2j, 3j, 5))
    same_bits(tn.linspace(0, 2**70, 3), np.linspace(0, 2.0**70, 3))


def test_ranges_of_the_feature_table() -> None:
    assert tn.arange(5, 0, -1).tolist() == [5, 4, 3, 2, 1]
    assert tn.arange(2, 8, 3, repeat=2).tolist() == [2, 2, 5, 5]
    assert tn.arange(3, repeat=0).shape == (0,)


def test_arange_counts_wrap_as_in_numpy_after_the_first_two() -> None:
    same_bits(tn.arange(250, 260, dtype=tn.uint8), np.arange(250, 260, dtype=np.uint8))


def test_arange_of_wide_integers_is_exact() -> None:
    assert tn.arange(2**62, 2**62 + 3).tolist() == [2**62, 2**62 + 1, 2**62 + 2]
    assert tn.arange(2**63, 2**63 + 2, dtype=tn.uint64).tolist() == [2**63, 2**63 + 1]
    assert tn.arange(-(2**63), 2**63 - 1, 2**62).tolist() == [-(2**63), -(2**62), 0, 2**62]
    assert tn.arange(0, 2**59).shape == (2**59,)


def test_bounds_may_be_arrays_of_one_element() -> None:
    assert tn.arange(tn.asarray(1), np.int8(3)).tolist() == [1, 2]
    assert tn.linspace(tn.asarray(0.0), np.float32(1), 3).tolist() == [0, 0.5, 1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(3, None), (2, 4), (4, 2), (0, 3), (3, 0), (1, 1)])
def test_eye_equals_numpy(rows: int, columns: int | None, dtype: str) -> None:
    for k in (-9, -2, -1, 0, 1, 2, 9):
        expected = np.eye(rows, columns, k, DTYPES[dtype])
        same_bits(tn.eye(rows, columns, k=k, dtype=dtype), expected)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(), (3,), (2, 3), (2, 3, 4), (0, 2), (1, 2, 3, 1)], ids=str)
def test_meshgrid_equals_numpy(lengths: tuple[int, ...], indexing: str) -> None:
    vectors = [numbered((length,)) + length for length in lengths]
    expected = np.meshgrid(*vectors, indexing=indexing)
    same_bits(tn.meshgrid(*map(tn.asarray, vectors), indexing=indexing), expected)


def test_meshgrid_takes_numbers_and_keeps_dtypes() -> None:
    grids = tn.meshgrid(tn.asarray(2.5), tn.arange(3, dtype=tn.int8))
    same_bits(grids, np.meshgrid(2.5, np.arange(3, dtype=np.int8)))


def test_numpy_functions_answer_with_arrays() -> None:
    x = tn.asarray(numbered((2, 3)))
    same_bits(np.full_like(x, 7, dtype=np.float32), np.full((2, 3), 7, np.float32))
    same_bits(np.zeros_like(x), np.zeros((2, 3), np.int64))


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("full", lambda: tn.full(2, 300, dtype=tn.uint8), OverflowError, "300 is out of .* uint8"),
    ("full", lambda: tn.full(2, 2**64), OverflowError, "18446744073709551616 is out of .* uint64"),
    ("full", lambda: tn.full(2, -1, dtype=tn.uint64), OverflowError, "-1 is out of bounds"),
    ("full", lambda: tn.full(2, 10**400, dtype=tn.float64), OverflowError, "of 1329 bits"),
    ("full", lambda: tn.full(2, 1j, dtype=tn.float64), DTypeError, "1j cannot become float64"),
    ("full", lambda: tn.full(2, "a"), DTypeError, "str is not a number"),
    ("full", lambda: tn.full(2, tn.asarray([1])), DTypeError, "Array is not a number"),
    ("full", lambda: tn.full(2, 1, dtype="text"), DTypeError, "'text' is none of bool"),
    ("zeros", lambda: tn.zeros((2, -1)), ShapeError, r"\(2, -1\) has a negative length"),
    ("zeros", lambda: tn.zeros((2, 1.5)), ShapeError, "or a sequence of ints"),
    ("ones", lambda: tn.ones((2**40, 2**40)), ShapeError, "more than 2"),
    ("zeros_like", lambda: tn.zeros_like("a"), DTypeError, "str is not an array"),
    ("arange", lambda: tn.arange(0, 5, 0), ShapeError, "a step of 0 never arrives"),
    ("arange", lambda: tn.arange(0, float("inf")), ShapeError, "has no length"),
    ("arange", lambda: tn.arange(float("nan")), ShapeError, "has no length"),
    ("arange", lambda: tn.arange(1e300), ShapeError, "more than 2"),
    ("arange", lambda: tn.arange(-3, 3, dtype=tn.uint8), OverflowError, "-3 is out of bounds"),
    ("arange", lambda: tn.arange(2**63, 2**63 + 2), OverflowError, "out of bounds for int64"),
    ("arange", lambda: tn.arange(1j), DTypeError, "1j is not a real number"),
    ("arange", lambda: tn.arange(3, dtype=bool), DTypeError, "bool does not count"),
    ("arange", lambda: tn.arange(3, repeat=-1), ShapeError, "repeat -1 is negative"),
    ("linspace", lambda: tn.linspace(0, 1, -1), ShapeError, "num -1 is negative"),
    ("linspace", lambda: tn.linspace(0, 1, 2.5), ShapeError, "num 2.5 is not an int"),
    ("linspace", lambda: tn.linspace(0, 1j, 2, dtype=float), DTypeError, "float64 cannot hold"),
    ("linspace", lambda: tn.linspace(0, 1, 2, dtype=bool), DTypeError, "bool cannot hold"),
    ("eye", lambda: tn.eye(-1), ShapeError, "negative length"),
    ("eye", lambda: tn.eye(2, k=0.5), ShapeError, "0.5 is not an int"),
    ("meshgrid", lambda: tn.meshgrid(tn.zeros((2, 2))), ShapeError, "2 axes is not a vector"),
    ("meshgrid", lambda: tn.meshgrid(tn.zeros(2), indexing="yx"), ShapeError, "'yx' is neither"),
]


@pytest.mark.parametrize(("name", "program", "error", "text"), REFUSED)
def test_mistake_is_refused_at_the_call(name: str, program: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"(?s)^{name}: .*{text}"):
        program()


@pytest.mark.parametrize("make", [tn.zeros, tn.arange, tn.eye, tn.ones])
def test_unknown_device_is_refused(make: Any) -> None:
    with pytest.raises(DeviceError, match=r"(?s)'abacus' does not exist.*'reference'"):
        make(2, device="abacus")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_limits_of_integers_are_held(dtype: str) -> None:
    limits = np.iinfo(dtype)
    assert tn.full((), int(limits.max), dtype=dtype).item() == limits.max
    with pytest.raises(OverflowError):
        tn.full((), int(limits.max) + 1, dtype=dtype)
    with pytest.raises(OverflowError):
        tn.full((), int(limits.min) - 1, dtype=dtype)
