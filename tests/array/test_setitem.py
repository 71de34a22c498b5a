"""`x[key] = e` and `x[key] op= e`: every key of NumPy, on both devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DeviceError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("no_history")


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with tn.options(device=request.param):
        yield request.param


def numbered(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


KEYS: list[Any] = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(2, 2),
    (slice(None), 2),
    (1, 2, 3),
    (..., 1),
    (0, ..., slice(1, None)),
    (slice(1, None), None, 2),
    (None, ..., None),
    ...,
    (),
    [0, 2],
    [-1, -1],
    np.array([[0, 1], [2, 0]]),
    ([0, 2], [1, 1]),
    ([0, 2], slice(None), [1, 1]),
    (slice(None), [0, 2], slice(1, None)),
    (1, slice(None), [0, 0, 2]),
    ([[0], [1]], [2, 3]),
    (np.arange(3), 1),
    np.array([True, False, True]),
    [True, False, True],
    (slice(None), np.array([True, False, False, True])),
    np.arange(12).reshape(3, 4) % 2 == 0,
    np.arange(60).reshape(3, 4, 5) % 3 == 0,
    np.zeros(3, bool),
    True,
    False,
    np.array([], np.int64),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: " ".join(repr(key).split())[:40])
def test_part_is_replaced_as_by_numpy(key: Any) -> None:
    theirs = numbered(3, 4, 5)
    part = theirs[key]
    columns = -numbered(*np.shape(part)[:1]).reshape((-1, *(1,) * (np.ndim(part) - 1)))
    for value in (7, -numbered(*np.shape(part)) - 1, columns if np.ndim(part) > 1 else 8.0):
        x = tn.asarray(theirs)
        x[key] = value
        theirs[key] = value
        tn.testing.assert_equal_bits(x, theirs)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: " ".join(repr(key).split())[:40])
def test_compound_operator_on_a_part_is_numpys(key: Any) -> None:
    theirs = numbered(3, 4, 5)
    x = tn.asarray(theirs)
    view = x[1:]
    x[key] += 2
    x[key] *= tn.asarray(theirs[key])
    twice = theirs.copy()
    twice[key] += 2
    twice[key] *= theirs[key]
    tn.testing.assert_equal_bits(x, twice)
    tn.testing.assert_equal_bits(view, twice[1:])


@pytest.mark.parametrize("name", DTYPES)
def test_part_of_every_dtype_is_replaced(name: str) -> None:
    values = np.resize(tn.testing.special_values(DTYPES[name]), (5, 7))
    value = np.ascontiguousarray(values[::-1, :3])
    for key in ((slice(None), slice(2, 5)), (slice(None), slice(None, None, 3))):
        x = tn.asarray(values)
        x[key] = value
        theirs = values.copy()
        theirs[key] = value
        tn.testing.assert_equal_bits(x, theirs)


def test_key_of_an_array_that_is_not_computed_is_taken() -> None:
    x, i = tn.zeros(4), tn.asarray([1, 2]) + 1
    x[i] = tn.asarray([5.0, 6.0])
    assert x.tolist() == [0.0, 0.0, 5.0, 6.0]


def test_last_of_equal_indices_wins_and_adding_counts_once() -> None:
    x = tn.zeros(3)
    x[[0, 0, 2]] = [1.0, 2.0, 3.0]
    assert x.tolist() == [2.0, 0.0, 3.0]
    x[[0, 0, 2]] += 10
    assert x.tolist() == [12.0, 0.0, 13.0]


def test_mask_with_a_single_value_computes_nothing_at_the_call() -> None:
    x, y = tn.asarray(numbered(3, 4)), tn.asarray([100.0, 200.0, 300.0, 400.0])
    rows = tn.asarray([True, False, True])
    with tn.profile() as p:
        x[x > 5] = 0
        x[rows] = y
        x[rows] = y + 1
    assert p.launches == 0
    theirs = numbered(3, 4)
    theirs[theirs > 5] = 0
    theirs[[0, 2]] = np.array([101.0, 201.0, 301.0, 401.0])
    tn.testing.assert_equal_bits(x, theirs)


def test_mask_with_a_value_for_each_true_is_computed_at_the_call() -> None:
    x = tn.asarray([1.0, -2.0, 3.0, -4.0])
    x[x < 0] = [20, 40]
    x[x > 10] *= 2
    assert x.tolist() == [1.0, 40.0, 3.0, 80.0]


def test_captured_array_keeps_the_old_value() -> None:
    x = tn.asarray([1, 2, 3])
    double, same, first = x * 2, tn.asarray(x, copy=True), x[0]
    tail = x[1:]
    after = tail + 1
    x[...] = 9
    tail[0] = 7
    assert (double.tolist(), same.tolist(), first.tolist()) == ([2, 4, 6], [1, 2, 3], 1)
    assert after.tolist() == [3, 4]
    assert (x.tolist(), tail.tolist()) == ([9, 7, 9], [7, 9])


def test_right_side_is_read_before_anything_is_written() -> None:
    x = tn.arange(6)
    x[1:] = x[:-1]
    x[::2] += x[1::2]
    x[...] = x[::-1]
    assert x.tolist() == [4, 7, 2, 3, 0, 0]
    m = tn.asarray([[1, 2], [3, 4]])
    m[...] = m.T
    m[...] = m @ m
    assert m.tolist() == [[7, 15], [10, 22]]


def test_ndarray_on_the_right_is_copied() -> None:
    source = np.ones(2)
    x = tn.zeros(4)
    x[1:3] = source
    source[:] = 5
    assert x.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_narrower_kinds_are_converted_and_numbers_are_weak() -> None:
    x = tn.zeros(2, dtype=tn.float32)
    x[0] = tn.asarray(0.1)
    x[1] = 3
    tn.testing.assert_equal_bits(x, np.float32([0.1, 3]))
    small = tn.zeros(4, dtype=tn.uint8)
    small[:3] = [1, 2, 255]
    small[3] = True
    assert (small.tolist(), small.dtype) == ([1, 2, 255, 1], tn.uint8)
    large = tn.zeros(3, dtype=tn.uint64)
    large[::2] = 2**64 - 1
    assert large.tolist() == [2**64 - 1, 0, 2**64 - 1]


def test_rows_of_an_iteration_write_through() -> None:
    x = tn.zeros((2, 3))
    for row in x:
        row += 1
        row[0] = 5
    assert x.tolist() == [[5.0, 1.0, 1.0], [5.0, 1.0, 1.0]]


def test_part_assigned_to_itself_is_no_work() -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    before = _native.node_of(x)
    x[1:] = x[1:]
    assert _native.node_of(x) == before
    x[1:] += 1
    assert _native.node_of(x).inputs[0] == before, "one assignment, not two"


def test_feature_of_slices_as_targets() -> None:
    x = tn.reshape(tn.arange(24), (2, 3, 4))
    x[:, 1:2] = 100
    assert (np.asarray(x) == 100).sum() == 8
    m = tn.reshape(tn.arange(1, 10), (3, 3))
    m[1:, 1:] = m[:-1, :-1]
    assert m.tolist() == [[1, 2, 3], [4, 1, 2], [7, 4, 5]]


def test_region_that_a_kernel_can_store_is_no_call() -> None:
    for key in (np.s_[1:-1, 1:-1], np.s_[::2], np.s_[:, ::-1], np.s_[1]):
        x = tn.asarray(numbered(40, 40)) + 1
        with tn.profile() as p:
            x[key] = x[key] * 2
            x.wait()
        if x.device == "cpu":
            assert (p.calls, p.kernels > 0) == (0, True)


# What is wrong leaves everything as it is.

WRONG: list[tuple[str, Any, Any, type[Exception], str]] = [
    ("shape", slice(None), [1, 2], ShapeError, r"value of shape \(2,\).*target's shape \(3,\)"),
    ("axes", slice(None), [[1, 2, 3], [4, 5, 6]], ShapeError, r"\(2, 3\).*\(3,\)"),
    ("positions", [0, 1], [1, 2, 3], ShapeError, r"\(3,\).*\(2,\)"),
    ("mask count", np.array([True, False, True]), [1, 2, 3], ShapeError, r"\(3,\).*\(2,\)"),
    ("float", 0, 1.5, DTypeError, "a Python float cannot replace elements of int64"),
    ("float array", slice(None), np.ones(3), DTypeError, "float64 cannot replace .* int64"),
    ("complex", ..., 1j, DTypeError, "a Python complex .* int64"),
    ("masked float", np.array([True, False, True]), 1.5, DTypeError, "Python float"),
    ("text", 0, "a", DTypeError, "str is not an array or a number"),
    ("index", 3, 1, IndexError, "index 3 is out of bounds for axis 0 with length 3"),
    ("indices", [0, -4], 1, IndexError, "index -4 is out of bounds"),
    ("too many", (0, 0), 1, IndexError, "2 indices are too many"),
    ("mask", np.array([True, False]), 1, IndexError, r"mask of shape \(2,\) does not fit"),
    ("float index", 1.0, 1, IndexError, "1.0 of type float is not an index"),
    ("large", 1, 2**63, OverflowError, "out of bounds for int64"),
]


@pytest.mark.parametrize(
    ("key", "value", "error", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_wrong_assignment_raises_and_changes_nothing(
    key: Any, value: Any, error: type[Exception], text: str
) -> None:
    x = tn.asarray([1, 2, 3])
    view = x[::-1]
    for target in (x, view):
        with pytest.raises(error, match=rf"(?s)^setitem: .*{text}"):
            target[key] = value
    assert (x.tolist(), view.tolist(), x.dtype) == ([1, 2, 3], [3, 2, 1], tn.int64)


def test_index_out_of_bounds_that_is_not_known_raises_at_the_wait() -> None:
    x = tn.zeros(3)
    x[tn.asarray([1, 2]) + 1] = 5.0
    with pytest.raises(IndexError, match=r"put_at: index 3 is out of bounds.*test_setitem\.py"):
        x.wait()


def test_repeated_view_is_read_only() -> None:
    x = tn.asarray([1, 2, 3])
    wide = tn.broadcast_to(x, (2, 3))
    for target in (wide, wide[0], wide.T):
        with pytest.raises(ShapeError, match=r"(?s)repeated to \(2, 3\) is read-only.*remedy"):
            target[...] = 0
        with pytest.raises(ShapeError, match=r"\+=: a view"):
            target += 1
    assert x.tolist() == [1, 2, 3]


def test_value_on_another_device_is_refused(device: str) -> None:
    other = {"cpu": "reference", "reference": "cpu"}[device]
    x = tn.zeros(3)
    for key in (..., slice(1), [0, 1], np.array([True, False, True])):
        with pytest.raises(DeviceError, match=r"setitem: .*different devices"):
            x[key] = tn.asarray(1.0, device=other)
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_strict_dtypes_refuse_to_convert() -> None:
    x = tn.zeros(3, dtype=tn.float32)
    with tn.options(strict_dtypes=True):
        x[0] = 1
        with pytest.raises(DTypeError, match="setitem: strict_dtypes refuses to mix"):
            x[...] = tn.ones(3)
    assert x.tolist() == [1.0, 0.0, 0.0]


def test_every_kind_fits_as_the_same_kind_rule_says() -> None:
    for source in DTYPES.values():
        for target in DTYPES.values():
            x, e = tn.zeros(2, dtype=target), tn.ones(2, dtype=source)
            ranks = ["buifc".index(kind_of(dtype)) for dtype in (source, target)]
            fits = ranks[0] <= ranks[1] or {kind_of(source), kind_of(target)} == {"i"}
            try:
                x[1:] = e[1:]
            except DTypeError:
                assert not fits
            else:
                assert fits
                assert x.dtype == target


def test_rewritten_value_is_assigned_in_place() -> None:
    random = np.random.default_rng(5)
    a, b = random.uniform(0, 1, (40, 30)), random.uniform(0, 1, (30, 40))
    ours, others = tn.asarray(a), tn.asarray(b)
    c = tn.zeros((40,)).wait()
    for i in range(40):
        with tn.profile() as p:
            c[i] = (ours @ others)[i, i]
            c.wait()
        assert p.copies == 0
    np.testing.assert_allclose(np.asarray(c), np.diagonal(a @ b))


@pytest.mark.parametrize("key", [0, slice(0, 2), [0, 2], ..., np.array([True, False, True])])
def test_zero_and_one_are_truth_values(key: Any) -> None:
    for value in (0, 1, 1.0, True):
        x, expected = tn.asarray([True, False, True]), np.array([True, False, True])
        x[key] = value
        expected[key] = value
        assert x.tolist() == expected.tolist()
    x = tn.asarray([True, False, True])
    for refused in (2, 0.5, 1j):
        with pytest.raises(DTypeError, match="cannot replace elements of bool"):
            x[key] = refused
    x[...] = [0, 1, 1.0]
    assert x.tolist() == [False, True, True]
    with pytest.raises(DTypeError, match="cannot replace elements of bool"):
        x[...] = [0, 1, 2]


OVERLAPPING = {
    "windows": lambda x: tn.sliding_window_view(x, 2),
    "windows of windows": lambda x: tn.flip(tn.sliding_window_view(x, 2)[::2]),
    "toeplitz": tn.linalg.toeplitz,
    "broadcast": lambda x: tn.broadcast_to(x, (3, 4)),
}


@pytest.mark.parametrize("tier", ["auto", 1])
@pytest.mark.parametrize("name", OVERLAPPING)
def test_elements_that_share_memory_are_assigned_apart(name: str, tier: str | int) -> None:
    made = tn.function(OVERLAPPING[name])
    truth = np.asarray(made(tn.asarray([1.0, 2.0, 3.0, 4.0]))).copy()
    truth[0, 1], truth[1] = 9, truth[1] * 2
    for _ in range(3):
        with tn.options(tier=tier):
            x = made(tn.asarray([1.0, 2.0, 3.0, 4.0])).wait()
            x[0, 1] = 9
            x[1] *= 2
            assert np.array_equal(np.asarray(x), truth)
            y = made(tn.asarray([1.0, 2.0, 3.0, 4.0])).wait()
            y *= y + 1
            z = np.asarray(made(tn.asarray([1.0, 2.0, 3.0, 4.0])))
            assert np.array_equal(np.asarray(y), z * (z + 1))


@pytest.mark.parametrize("value", [np.int64(300), np.uint8(200), np.uint64(2**63 + 5)])
def test_integers_of_numpy_that_do_not_fit_are_refused_or_wrap_as_in_numpy(value: Any) -> None:
    signed = tn.zeros(3, dtype="int8")
    for key in (0, slice(0, 2), ...):
        with pytest.raises(OverflowError):
            signed[key] = value
    with pytest.raises(OverflowError):
        signed.fill(value)
    if value.dtype.kind == "u":
        wide, truth = tn.zeros(3, dtype="uint8"), np.zeros(3, "uint8")
        wide[0] = truth[0] = value
        assert wide.tolist() == truth.tolist()
