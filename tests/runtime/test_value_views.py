"""Views of Values: parts of computed memory, exported where they lie."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tenfold as tn
from tenfold._native import Type, Value, node_of, value_array
from tenfold.dtypes import DTYPES
from tenfold.storage import dense

ALL = tuple(DTYPES.values())


def computed(shape: tuple[int, ...], dtype: np.dtype) -> tuple[Value, np.ndarray]:
    """A Value of the pool, and an ndarray with the same elements."""
    expected = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    return dense.copy_to_pool(expected, "reference"), expected


def part(value: Value, like: np.ndarray, whole: np.ndarray) -> Value:
    """The view of `value` that is to `value` what `like` is to `whole`."""
    offset = like.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return value.view(Type(like.shape, like.dtype, "reference"), like.strides, offset)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_view_exports_the_elements_where_they_lie(dtype: np.dtype) -> None:
    value, whole = computed((4, 6), dtype)
    for like in (
        *(whole[1:3, 2:5], whole[::-1, ::2], whole.T, whole[2], whole[:, 3]),
        *(whole[3, 5], whole[:0], whole[2:, :0], whole[1][:, np.newaxis], whole),
        np.broadcast_to(whole[0], (5, 6)),
    ):
        view = part(value, np.asarray(like), whole) if like.shape else None
        if view is None:
            view = value.view(Type((), dtype, "reference"), (), 23 * dtype.itemsize)
        exported = dense.export(view)
        assert exported.dtype == dtype
        assert exported.shape == like.shape
        np.testing.assert_array_equal(exported, like)
        assert not exported.size or np.shares_memory(exported, dense.export(value))


def test_view_in_c_order_has_no_strides() -> None:
    value, whole = computed((4, 6), np.dtype("float64"))
    assert part(value, whole[1:3], whole).strides == ()
    assert part(value, whole[1:2, :3], whole).strides == ()
    assert part(value, whole[:, :3], whole).strides == (48, 8)
    assert part(value, whole[1:3], whole).address == value.address + 48


@pytest.mark.parametrize("origin", ["pool", "foreign"])
def test_export_of_a_view_can_never_be_written(origin: str) -> None:
    value, whole = computed((4, 6), np.dtype("float64"))
    if origin == "foreign":
        value = dense.adopt(whole.copy(), "reference")
    exported = dense.export(part(value, whole[:, 1:3], whole))
    for array in (exported, exported.view(), exported[1:], np.asarray(exported)):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        exported[0] = 1
    assert memoryview(exported.data).readonly


def test_part_of_a_value_lends_no_bytes() -> None:
    value, whole = computed((4,), np.dtype("float64"))
    assert memoryview(value).nbytes == 32
    with pytest.raises(BufferError, match="part"):
        memoryview(part(value, whole[1:], whole))


def test_export_of_a_view_keeps_the_memory_alive() -> None:
    expected = np.arange(6.0)
    owner = np.arange(6.0)
    alive = weakref.ref(owner)
    exported = dense.export(part(dense.adopt(owner, "reference"), expected[::2], expected))
    del owner
    gc.collect()
    assert alive() is not None or exported.tolist() == [0, 2, 4]
    value, whole = computed((1000,), np.dtype("float64"))
    exported = dense.export(part(part(value, whole[1:], whole), whole[11::2], whole[1:]))
    del value
    tn.trim()
    Value.allocate(Type((1000,), np.dtype("float64"), "reference"), 8000)
    assert exported.tolist() == list(range(11, 1000, 2))


def test_view_of_a_view_adds_the_offsets() -> None:
    value, whole = computed((10,), np.dtype("int32"))
    outer = part(value, whole[2:], whole)
    inner = part(outer, whole[8:1:-3], whole[2:])
    assert dense.export(inner).tolist() == [8, 5, 2]
    assert inner.is_view
    assert not value.is_view


def test_view_of_foreign_memory_begins_at_its_first_element() -> None:
    backwards = np.arange(10.0)[::-1]
    value = dense.adopt(backwards, "reference")
    assert value.view(value.type, (-16,), 0).strides == (-16,)
    exported = dense.export(part(value, backwards[1:4], backwards))
    assert exported.tolist() == [8, 7, 6]


@pytest.mark.parametrize(("strides", "offset"), [((8,), 8), ((8,), -8), ((16,), 0), ((-8,), 0)])
def test_view_beyond_its_memory_is_refused(strides: tuple[int, ...], offset: int) -> None:
    value, _ = computed((4,), np.dtype("float64"))
    with pytest.raises(ValueError, match="leaves the memory"):
        value.view(value.type, strides, offset)


def test_view_needs_a_stride_for_each_axis() -> None:
    value, _ = computed((4,), np.dtype("float64"))
    with pytest.raises(ValueError, match="stride for each axis"):
        value.view(value.type, (), 0)


def test_exporting_and_importing_a_view_again_and_again_piles_nothing_up() -> None:
    value, whole = computed((1000,), np.dtype("float64"))
    for _ in range(20_000):  # a chain as long would overflow the stack when it is dropped
        value = dense.import_values(dense.export(part(value, whole[:], whole)), "reference")
    owners = 0
    owner: object = dense.export(value)
    while owner is not None and owners < 10:
        owner = (
            owner.base if isinstance(owner, np.ndarray) else getattr(owner, "memory_owner", None)
        )
        owners += 1
    assert owners < 10
    assert dense.export(value).tolist() == whole.tolist()


def test_array_of_a_view_behaves_as_any_other() -> None:
    x = tn.asarray(np.arange(12.0).reshape(3, 4)).wait()
    value = node_of(x).value()
    assert value is not None
    device = value.type.device
    view = value.view(Type((4, 2), np.dtype("float64"), device), (8, 64), 0)
    y = value_array(view)
    assert (y + 1).tolist() == (np.arange(12.0).reshape(3, 4)[::2].T + 1).tolist()


def test_adopted_memory_can_be_broadcast_by_numpy() -> None:
    values = np.ones((3, 4))[:, ::2]
    dense.adopt(values, "reference")
    assert not values.flags.writeable
    assert np.broadcast_arrays(values, np.ones((2, 1, 1)))[0].shape == (2, 3, 2)
