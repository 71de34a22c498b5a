"""What programs for NumPy catch and view: its errors, its classes, dtypes without numbers."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as ours
from tenfold.errors import AxisError, DTypeError, ShapeError
from tenfold.testing import assert_equal_bits

VALUES = np.arange(6.0).reshape(2, 3)

WRONG_AXES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda m, x: m.sum(x, axis=5),
    "sum of the method": lambda m, x: x.sum(axis=5),
    "sort": lambda m, x: m.sort(x, axis=7),
    "concatenate": lambda m, x: m.concatenate([x, x], axis=9),
    "moveaxis": lambda m, x: m.moveaxis(x, 0, 9),
    "take": lambda m, x: m.take(x, [0], 9),
    "delete": lambda m, x: m.delete(x, 0, 9),
    "partition": lambda m, x: m.partition(x, 1, axis=9),
    "norm": lambda m, x: m.linalg.norm(x, axis=9),
}


def test_wrong_keyword_names_the_public_function() -> None:
    x = ours.array(VALUES)
    for name in ("prod", "min", "nansum", "nanmax", "nanstd", "cumulative_prod"):
        with pytest.raises(
            TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'on'$"
        ):
            getattr(ours, name)(x, on=1)
    with pytest.raises(
        TypeError, match=r"^nanquantile\(\) got an unexpected keyword argument 'on'$"
    ):
        getattr(ours, "nanquantile")(x, 0.5, on=1)  # noqa: B009  # a wrong call
    with pytest.raises(TypeError, match=r"^percentile\(\) missing a required argument: 'q'$"):
        getattr(ours, "percentile")(x)  # noqa: B009  # a wrong call


@pytest.mark.parametrize("call", WRONG_AXES.values(), ids=WRONG_AXES)
def test_a_wrong_axis_is_an_axis_error_of_numpy(call: Callable[[Any, Any], Any]) -> None:
    for module, x in ((np, VALUES), (ours, ours.array(VALUES))):
        with pytest.raises(np.exceptions.AxisError, match=r"out of (range|bounds)"):
            call(module, x)
    with pytest.raises(AxisError, match="remedy: use -2 to 1") as caught:
        tn.sum(tn.asarray(VALUES), axis=5)
    assert isinstance(caught.value, ShapeError)
    assert isinstance(caught.value, IndexError)


WRONG_MATRICES: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda m, x: m.linalg.inv(x),
    "det": lambda m, x: m.linalg.det(x),
    "solve": lambda m, x: m.linalg.solve(x, m.ones(2)),
    "cholesky": lambda m, x: m.linalg.cholesky(x),
    "eigh": lambda m, x: m.linalg.eigh(x),
    "slogdet": lambda m, x: m.linalg.slogdet(x),
    "svd of a vector": lambda m, x: m.linalg.svd(x[0]),
    "qr of a vector": lambda m, x: m.linalg.qr(x[0]),
    "matrix_power": lambda m, x: m.linalg.matrix_power(x, 2),
}


@pytest.mark.parametrize("call", WRONG_MATRICES.values(), ids=WRONG_MATRICES)
def test_non_square_matrix_is_a_linalg_error(call: Callable[[Any, Any], Any]) -> None:
    for module, x in ((np, VALUES), (ours, ours.array(VALUES))):
        with pytest.raises(np.linalg.LinAlgError):
            call(module, x)
    with pytest.raises(ShapeError, match="remedy"):
        call(ours, ours.array(VALUES))


def test_a_class_of_numpy_is_a_view_of_the_values() -> None:
    x = tn.asarray(VALUES)
    for made in (x.view(np.ndarray), x.view(type=np.ndarray), x.view("f8", np.ndarray)):
        assert type(made) is np.ndarray
        assert_equal_bits(made, VALUES)
        assert not made.flags.writeable
    assert type(x.view(np.matrix)) is np.matrix
    assert_equal_bits(x.view("i8", np.ndarray), VALUES.view("i8"))
    assert isinstance(x.view(ours.ndarray), tn.Array)
    assert x.view(np.float32).shape == (2, 6)


@pytest.mark.parametrize("dtype", ["V8", "S8", "M8[s]", [("number", "f8")]])
def test_a_view_in_a_dtype_that_arrays_lack_is_an_ndarray(dtype: Any) -> None:
    made = tn.asarray(VALUES).view(dtype)
    assert made.dtype == np.dtype(dtype)
    assert made.tobytes() == VALUES.tobytes()


@pytest.mark.parametrize("order", [*"cfakCFAK", None])
def test_an_order_is_written_in_either_case(order: Any) -> None:
    x, transposed = ours.array(VALUES), order in ("f", "F")
    flat = VALUES.ravel("F" if transposed else "C").tolist()
    assert x.flatten(order).tolist() == x.ravel(order).tolist() == flat
    assert ours.ravel(x, order).tolist() == flat
    assert x.tobytes(order) == VALUES.tobytes(order)
    if order not in ("k", "K"):
        assert (
            ours.reshape(x, (3, 2), order).tolist() == VALUES.reshape((3, 2), order=order).tolist()
        )


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("ldexp", (1.0, 3)),
        ("ldexp", ([1.0, 2.0], [3, 2])),
        ("ldexp", (np.float32(1.5), 3)),
        ("frexp", (8.0,)),
        ("modf", (2.5,)),
        ("nextafter", (1.0, 2)),
        ("spacing", (1.0,)),
        ("heaviside", (1, 0.5)),
        ("gcd", (4, 6)),
    ],
)
def test_ufuncs_take_numbers_of_several_types(name: str, operands: Any) -> None:
    expected: Any = getattr(np, name)(*operands)
    result = getattr(ours, name)(*operands)
    pairs = zip(result, expected, strict=True) if type(expected) is tuple else [(result, expected)]
    for mine, theirs in pairs:
        assert_equal_bits(np.asarray(mine), np.asarray(theirs))


def test_bytes_of_a_saved_bfloat16_are_refused_with_the_view_that_names_them() -> None:
    file = io.BytesIO()
    np.save(file, tn.asarray([1.0, -2.5], dtype="bfloat16"))
    file.seek(0)
    loaded = np.load(file)
    assert loaded.dtype == np.dtype("V2")
    with pytest.raises(DTypeError, match=r"as in data\.view\(ml_dtypes\.bfloat16\)"):
        tn.asarray(loaded)
    assert tn.asarray(loaded.view(ml_dtypes.bfloat16)).tolist() == [1.0, -2.5]
    with pytest.raises(DTypeError, match=r"as in data\.view\(np\.uint8\)"):
        tn.asarray(np.zeros(2, "V3"))
    assert tn.asarray(np.zeros(2, "V3").view(np.uint8)).shape == (6,)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "index arrays": lambda m: m.zeros((5, 5))[[0, 1], [0, 1, 2]],
    "assigned index arrays": lambda m: m.zeros((5, 5)).__setitem__(([0, 1], [0, 1, 2]), 0),
    "float": lambda m: float(m.zeros(3)),
    "bool": lambda m: bool(m.zeros(3)),
    "step of 0": lambda m: m.arange(0, 1, 0),
    "length": lambda m: m.zeros(2.9),
    "lengths": lambda m: m.full((2.5,), 1),
    "reshape": lambda m: m.arange(3).reshape(3.0),
    "order": lambda m: m.zeros(3, order="Q"),
    "order of a copy": lambda m: m.zeros(3).copy("Q"),
    "kind": lambda m: m.sort([1], kind="foo"),
    "fields": lambda m: m.argsort([1], order="a"),
    "outer": lambda m: m.linalg.outer(m.ones((2, 2)), m.ones(2)),
    "position": lambda m: m.insert(m.array([1, 2]), [1.0], 9),
    "shape of out": lambda m: m.concatenate(([1], [2]), out=m.zeros((1, 2))),
    "out": lambda m: m.einsum("i->", m.ones(2), out="a"),
    "layout": lambda m: m.require([1], None, ["C", "F"]),
    "mode": lambda m: m.convolve([1], [1], "x"),
    **{
        f"{kind} of {number}": lambda m, kind=kind, number=number: m.zeros(3, kind).__setitem__(
            slice(None), np.int64(number)
        )
        for kind, number in (("i1", 300), ("i2", -(2**20)))
    },
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_errors_have_the_classes_of_numpys(call: Callable[[Any], Any]) -> None:
    with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError)) as expected:
        call(np)
    with pytest.raises(expected.type):
        call(ours)


ACCEPTED: dict[str, Callable[[Any, Any], Any]] = {
    "tolerances": lambda m, x: m.isclose(x, x + 0.5, rtol=[0, 0, 0], atol=[1, 0, 1]),
    "mode": lambda m, x: m.convolve(x[0], x[1], 2),
    "bases": lambda m, x: m.logspace(1, 2, 3, base=m.array([2, 3]), axis=1),
    "lengths": lambda m, x: m.fft.fftn(x, s=(2, None), axes=(0, 1)),
    "ranks": lambda m, x: m.linalg.matrix_rank(m.stack([x, x]), rtol=[0.1, 0.2]),
    "clip": lambda m, x: m.clip(x, 1, 3, out=m.zeros((2, 3), "i4"), casting="unsafe"),
    "choose": lambda m, x: m.choose([0, 1, 0], list(x), out=m.zeros(3, "i4")),
    "einsum": lambda m, x: m.einsum("ij->", x, out=m.zeros((), "i4"), casting="unsafe"),
    "strides": lambda m, x: m.lib.stride_tricks.as_strided(x, (2, 2, 2), (24, 8, 8)),
    "keys of flags": lambda m, x: [x.flags[key] for key in ("C", "CA", "FARRAY", "B", "X", "FNC")],
    "foreign target": lambda m, x: m.add(x, x, out=np.zeros((2, 3), "longdouble")),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call", ACCEPTED.values(), ids=ACCEPTED)
def test_arguments_of_numpy_give_its_results(call: Callable[[Any, Any], Any]) -> None:
    expected = call(np, VALUES)
    np.testing.assert_allclose(np.asarray(call(ours, ours.array(VALUES))), expected, rtol=1e-12)


def test_means_of_no_elements_warn_at_the_call() -> None:
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        ours.mean(ours.zeros((0, 3)), axis=0)
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        ours.var([1.0], ddof=1)
    assert ours.zeros(3).flags == np.zeros(3).flags
