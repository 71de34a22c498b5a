"""Export: np.asarray and what a reader can and cannot do with it."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import RunError


def arrays() -> list[tn.Array]:
    shared = np.arange(3.0)
    shared.flags.writeable = False
    return [
        tn.asarray(np.arange(3.0)),
        tn.asarray(shared),
        tn.asarray(np.arange(3.0), copy=False),
        tn.asarray([0.0, 1.0, 2.0]),
        tn.asarray([0.0, 1.0, 2.0]) + 0,
        tn.asarray([[0.0, 1.0, 2.0]])[0, :],
        tn.asarray([2.0, 1.0, 0.0])[::-1],
        tn.arange(3, dtype="float64"),
    ]


@pytest.mark.parametrize("x", arrays())
def test_an_export_cannot_be_written(x: tn.Array) -> None:
    exported = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        exported[0] = 9
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        exported.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        exported += 1
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("x", arrays())
def test_a_shape_given_to_an_export_is_its_own(x: tn.Array) -> None:
    exported = np.asarray(x)[np.newaxis]
    assert exported.shape == (1, 3)
    assert np.asarray(x).shape == (3,)


def test_two_exports_share_memory_that_outlives_the_array() -> None:
    x = tn.asarray([1.0, 2.0]) * 3
    first, second = np.asarray(x), np.asarray(x)
    assert np.shares_memory(first, second)
    del x
    assert first.tolist() == [3, 6]


def test_exporting_and_importing_again_copies_nothing() -> None:
    x = tn.asarray(np.arange(3.0)) + 1
    with tn.profile() as counted:
        y = tn.asarray(np.asarray(x.wait()))
    assert counted.copies == 0
    assert np.shares_memory(np.asarray(x), np.asarray(y))


def test_np_array_makes_a_writeable_copy() -> None:
    x = tn.asarray([1.0, 2.0])
    mine = np.array(x)
    mine[0] = 9
    assert x.tolist() == [1, 2]
    assert np.asarray(x, copy=True).flags.writeable


def test_export_in_another_dtype_converts_as_astype_does() -> None:
    x = tn.asarray([1e20, float("nan")])
    assert np.asarray(x, dtype=np.int8).tolist() == [127, 0]
    assert np.asarray(x, dtype=object).tolist()[0] == 1e20
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, dtype=np.int8, copy=False)


def test_lists_of_arrays_become_ndarrays() -> None:
    x = tn.asarray([1.0, 2.0])
    assert np.asarray([x, x + 1]).tolist() == [[1, 2], [2, 3]]


def test_strict_sync_refuses_an_implicit_wait_and_names_the_remedy() -> None:
    x = tn.asarray([1.0]) + 1
    implicit = {
        "np.asarray": np.asarray,
        "bool": bool,
        "float": float,
        "int": int,
        "complex": complex,
        "item": tn.Array.item,
        "tolist": tn.Array.tolist,
        "str": str,
        "__dlpack__": tn.Array.__dlpack__,
    }
    with tn.options(strict_sync=True):
        for name, look in implicit.items():
            with pytest.raises(RunError) as caught:
                look(x)
            assert str(caught.value).startswith(f"{name}: strict_sync refuses")
            assert "remedy: call x.wait() or tn.eval(x) first" in str(caught.value)
        assert "pending" in repr(x)
        assert tn.eval(x) is x
        assert x.tolist() == [2]
        assert (x + 1).wait().item() == 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("value", [0, 1])
def test_a_computed_number_is_read(dtype: str, shape: tuple[int, ...], value: int) -> None:
    x = tn.asarray(np.full(shape, value, dtype=dtype))
    for array in (x, tn.logical_or(x, x), +x if dtype != "bool" else x):
        for _ in range(2):  # the first one computes it
            assert (float(array), bool(array)) == (float(value), bool(value))


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0, 5e-324])
def test_special_numbers_are_read_as_they_are(value: float) -> None:
    x = (tn.asarray([[value]]) * 1.0).wait()
    assert np.array(float(x)).tobytes() == np.array(value).tobytes()
    assert bool(x) == bool(value)


def test_a_number_of_a_view_follows_its_base() -> None:
    x = tn.asarray([1.0, 2.0])
    element = x[1:]
    assert float(element) == 2.0
    x[1] = 5.0
    assert float(element) == 5.0


def test_a_number_of_a_window_is_the_memory_s() -> None:
    memory = np.array([1.0])
    x = tn.wrap(memory)
    assert float(x) == 1.0
    memory[0] = 3.0
    assert (float(x), bool(x)) == (3.0, True)
