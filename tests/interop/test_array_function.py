"""NumPy's functions on Arrays: answered by the operation that names them, or refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.errors import ExplainedError, FallbackWarning, RunError, UnsupportedError
from tenfold.interop import numpy_dispatch
from tenfold.interop.numpy_dispatch import numpy_name

FUNCTIONS = [
    (operation, function)
    for operation in OPS.values()
    for function in operation.numpy
    if not isinstance(function, np.ufunc)
]
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
INDEX = np.array([2, 0])

# What a function takes beside its first array: positional arguments, then keywords.
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "broadcast_to": (((2, 3, 3),), {}),
    "cumulative_prod": ((), {"axis": 0}),
    "cumulative_sum": ((), {"axis": 0}),
    "clip": ((0.5, 2.0), {}),
    "convolve": (([1.0, 2.0],), {}),
    "correlate": (([1.0, 2.0], "same"), {}),
    "expand_dims": ((0,), {}),
    "full_like": ((7,), {}),
    "isin": (([1.0, 2.0],), {}),
    "kron": ((SQUARE,), {}),
    "linalg.cross": ((SQUARE,), {}),
    "linalg.matmul": ((SQUARE,), {}),
    "linalg.matrix_power": ((3,), {}),
    "linalg.outer": ((SQUARE[0],), {}),
    "linalg.solve": ((SQUARE,), {}),
    "linalg.tensordot": ((SQUARE,), {"axes": 1}),
    "linalg.tensorinv": ((1,), {}),
    "linalg.tensorsolve": ((SQUARE[0],), {}),
    "linalg.vecdot": ((SQUARE,), {}),
    "moveaxis": ((0, 1), {}),
    "outer": ((SQUARE[0],), {}),
    "pad": ((1,), {}),
    "repeat": ((2,), {"axis": 0}),
    "reshape": (((9,),), {}),
    "roll": ((1,), {"axis": 0}),
    "searchsorted": ((np.array([0.1, 3.0]),), {}),
    "sliding_window_view": (((2, 2),), {}),
    "split": ((3,), {}),
    "squeeze": ((0,), {}),
    "swapaxes": ((0, 1), {}),
    "take": ((INDEX,), {"axis": 0}),
    "take_along_axis": ((np.argsort(SQUARE, axis=0),), {"axis": 0}),
    "tensordot": ((SQUARE,), {"axes": 1}),
    "tile": (((2, 1),), {}),
    "vecdot": ((SQUARE,), {}),
    "where": ((1.0, 0.0), {}),
}
OF_LISTS = {"concatenate", "stack", "concat", "column_stack"}
OF_VECTORS = {
    "convolve",
    "correlate",
    "outer",
    "linalg.outer",
    "searchsorted",
    "meshgrid",
    "diag",
    "linalg.cross",
    "trim_zeros",
}
ONE_ROW = {"squeeze"}


def first_argument(name: str) -> np.ndarray:
    if name in OF_VECTORS:
        return np.array([0.5, 1.0, 2.5])
    return SQUARE[:1] if name in ONE_ROW else SQUARE


def flattened(result: Any) -> list[np.ndarray]:
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flattened(item)]
    return [np.asarray(result)]


def both(function: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    name = numpy_name(function).removeprefix("np.")
    positional, named = ARGUMENTS.get(name, ((), {}))
    values = first_argument(name)
    if name == "einsum":
        return (
            flattened(function("ij,jk->ik", tn.asarray(values), values)),
            flattened(function("ij,jk->ik", values, values)),
        )
    if name == "linalg.multi_dot":
        return (
            flattened(function([tn.asarray(values), values])),
            flattened(function([values, values])),
        )
    if name in OF_LISTS:
        return (
            flattened(function([tn.asarray(values), values], axis=0)),
            flattened(function([values, values], axis=0)),
        )
    ours = function(tn.asarray(values), *positional, **named)
    return flattened(ours), flattened(function(values, *positional, **named))


@pytest.mark.parametrize(
    ("operation", "function"), FUNCTIONS, ids=[numpy_name(f) for _, f in FUNCTIONS]
)
def test_a_function_answers_as_numpy_does(operation: Any, function: Any) -> None:
    ours, theirs = both(function)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        if "empty" not in operation.name:
            np.testing.assert_allclose(np.abs(mine), np.abs(other), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("operation", "function"), FUNCTIONS, ids=[numpy_name(f) for _, f in FUNCTIONS]
)
def test_a_function_of_three_axes_agrees_or_is_refused(operation: Any, function: Any) -> None:
    """A default that means another axis than NumPy's must not pass in silence."""
    values = np.stack([SQUARE, SQUARE + np.eye(3), 2 * SQUARE])
    try:
        theirs = flattened(function(values))
        ours = flattened(function(tn.asarray(values)))
    except (ExplainedError, TypeError, ValueError, IndexError):
        return
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        if "empty" not in operation.name:
            np.testing.assert_allclose(np.abs(mine), np.abs(other), rtol=1e-12, atol=1e-12)


def test_no_function_of_numpy_is_claimed_by_two_operations() -> None:
    claimed = [function for operation in OPS.values() for function in operation.numpy]
    assert len(claimed) == len(set(claimed))


def test_a_function_of_numpy_computes_nothing() -> None:
    x, y = tn.asarray([1.0, 2.0]) + 1, tn.asarray([3.0])
    with tn.profile() as counted:
        joined = np.concatenate([x, y, np.array([4.0])])
        total = np.sum(joined, axis=0)
        chosen = np.where(joined > 2, joined, 0)
    assert counted.kernels == counted.calls == 0
    assert total.item() == 12
    assert chosen.tolist() == [0, 3, 3, 4]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: np.sum(x, 1), [3.0, 7.0]),
        (lambda x: np.sum(a=x, axis=1, keepdims=True), [[3.0], [7.0]]),
        (lambda x: np.sum(x, axis=None, out=None), 10.0),
        (lambda x: np.std(x, axis=0, ddof=1), [2**0.5, 2**0.5]),
        (lambda x: np.clip(x, 2, 3), [[2.0, 2.0], [3.0, 3.0]]),
        (lambda x: np.clip(x, a_min=2, a_max=None), [[2.0, 2.0], [3.0, 4.0]]),
        (lambda x: np.clip(x, max=3), [[1.0, 2.0], [3.0, 3.0]]),
        (lambda x: np.moveaxis(a=x, source=0, destination=1), [[1.0, 3.0], [2.0, 4.0]]),
        (lambda x: np.transpose(x), [[1.0, 3.0], [2.0, 4.0]]),
        (lambda x: np.linalg.inv(np.diagonal(x)[:, None] * np.eye(2)), [[1.0, 0.0], [0.0, 0.25]]),
    ],
)
def test_arguments_are_handed_over_by_name_and_by_position(call: Any, expected: Any) -> None:
    made = call(tn.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(made, tn.Array)
    np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-15)


CONVERTED = [
    (lambda x: np.poly(x), "np.poly"),
    (lambda x: np.histogram_bin_edges(x), "np.histogram_bin_edges"),
    (lambda x: np.unwrap(x), "np.unwrap"),
    (lambda x: np.linalg.eigvals(x[:, None] * x), "np.linalg.eigvals"),
    (lambda x: np.unique(x), "np.unique"),
    (lambda x: np.busday_count(x, x), "np.busday_count"),
]


@pytest.mark.parametrize(("call", "name"), CONVERTED, ids=[name for _, name in CONVERTED])
def test_a_function_without_a_lazy_form_is_refused_by_the_setting(call: Any, name: str) -> None:
    with tn.options(numpy_fallback="raise"), pytest.raises(UnsupportedError) as caught:
        call(tn.asarray([1.0, 2.0]))
    assert str(caught.value).startswith(f"{name}: ")
    assert f"{name}(np.asarray(x))" in str(caught.value)


@pytest.mark.parametrize(("call", "name"), CONVERTED[:-1], ids=[name for _, name in CONVERTED[:-1]])
def test_a_function_without_a_lazy_form_is_numpys_by_the_setting(call: Any, name: str) -> None:
    values = np.array([1.0, 2.0])
    with tn.options(numpy_fallback="convert"):
        made = flattened(call(tn.asarray(values)))
    for mine, other in zip(made, flattened(call(values)), strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


def test_a_conversion_warns_once_for_each_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_dispatch, "_warned", set())
    x = tn.asarray([1.0, 2.0])
    with pytest.warns(FallbackWarning, match=r"np\.unwrap converts Arrays") as caught:
        assert np.unwrap(x).tolist() == [1.0, 2.0]
    assert caught[0].filename == __file__
    np.unwrap(x)  # a second warning would be an error
    with pytest.warns(FallbackWarning, match=r"np\.subtract\.reduce converts Arrays"):
        assert np.subtract.reduce(x).item() == -1.0


def test_wrong_arguments_are_type_errors_as_in_numpy() -> None:
    with pytest.raises(TypeError, match="colour"):
        np.sum(tn.asarray([1.0]), colour=3)


def test_type_query_computes_nothing() -> None:
    x = tn.asarray([[1, 2, 3]], dtype="float32") + 1
    assert np.shape(x) == (1, 3)
    assert np.ndim(x) == 2
    assert np.size(x) == 3
    assert np.size(x, 1) == 3
    assert np.result_type(x, np.float64) == np.float64
    assert not np.iscomplexobj(x)
    assert "pending" in repr(x)


def test_value_query_waits() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    with tn.options(strict_sync=True), pytest.raises(RunError, match=r"np\.allclose: strict_sync"):
        np.allclose(x, [2, 3])
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    assert np.load(file).tolist() == [2, 3]
    assert np.array_equal(x, [2, 3])
    assert np.allclose([2, 3], x)
    target = np.zeros(2)
    np.copyto(target, x)
    assert target.tolist() == [2, 3]
    np.testing.assert_array_equal(x, [2, 3])


class Other:
    """An array of another library, which answers for itself."""

    def __array_function__(self, *_: Any) -> str:
        return "other"


def test_another_library_may_answer() -> None:
    assert np.concatenate([tn.asarray([1]), Other()]) == "other"
