"""Calls of public functions that native code answers, since one like it was bound before.

Each is compared with the same call bound anew: the same operation, parameters, Types and values.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.op import OPS, Op, SampleCall
from tenfold.namespace.surface import function_of

FOLLOWING = [op for op in OPS.values() if isinstance(op, Op) and op.call != op._call_uncached]
RANDOM = np.random.default_rng(5)


def told(made: Any) -> Any:
    """What a node says of itself."""
    node = _native.node_of(made)
    inputs = [_native.node_of(made) if each is node else each for each in node.inputs]
    return node.op, node.params, node.types, [(each.type, each.is_scalar) for each in inputs]


def arrays(sample: SampleCall) -> list[tn.Array]:
    return [tn.asarray(RANDOM.uniform(0.1, 0.9, shape)) for shape in sample.shapes]


@pytest.mark.parametrize("op", FOLLOWING, ids=lambda op: op.full_name)
def test_calls_like_one_before_make_the_same_node(op: Op[...]) -> None:
    function, seen = function_of(op), 0
    for sample in op.samples:
        given = [*arrays(sample), *sample.positional]
        try:
            anew = op._call_uncached(*given, **sample.arguments)
        except (TypeError, tn.errors.DTypeError):
            continue  # it takes other dtypes
        if not isinstance(anew, tn.Array):
            continue
        for _ in range(3):
            again = [*arrays(sample), *sample.positional]
            assert told(function(*again, **sample.arguments)) == told(anew)
            seen += 1
    assert seen or not op.samples or op.name in OTHER_DTYPES


OTHER_DTYPES = {name.rpartition(".")[2] for name in OPS if name.startswith("bitwise_")} | {
    "logical_and", "logical_not", "logical_or", "logical_xor", "view_as_real", "where",
}  # fmt: skip
"""Operations whose samples are of no floats."""


CALLS: dict[str, Callable[[tn.Array], tn.Array]] = {
    "sum": lambda x: tn.sum(x),
    "sum axis": lambda x: tn.sum(x, axis=1),
    "sum axes": lambda x: x.sum(axis=(0, -1)),
    "sum keepdims": lambda x: x.sum(axis=0, keepdims=True),
    "sum dtype": lambda x: tn.sum(x, dtype=tn.float32),
    "max by place": lambda x: x.max(axis=-1),
    "reshape": lambda x: tn.reshape(x, (4, -1)),
    "astype": lambda x: tn.astype(x, tn.int32),
    "astype by name": lambda x: tn.astype(x, "int32"),
    "astype with copy": lambda x: tn.astype(x, tn.int32, copy=False),
    "permute": lambda x: tn.permute_dims(x, (1, 0)),
    "matmul": lambda x: tn.matmul(x, tn.permute_dims(x, (1, 0))),
    "where": lambda x: tn.where(x > 0.5, x, 0),
    "maximum": lambda x: tn.maximum(0.5, x),
    "roll": lambda x: tn.roll(x, (1, 2), axis=(0, 1)),
    "full": lambda x: x + tn.full((3, 4), 2.0),
    "cumulative": lambda x: tn.cumulative_sum(x, axis=1, include_initial=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_the_first_call(name: str) -> None:
    call = CALLS[name]
    for shape in ((3, 4), (2, 2), (3, 4), (4, 3), (3, 4)):
        if name in ("reshape", "full") and shape == (2, 2):
            continue
        values = RANDOM.integers(0, 16, shape) / 16  # sums of products are exact
        if name == "full" and shape != (3, 4):
            continue
        with tn.options(device="reference"):
            expected = np.asarray(call(tn.asarray(values)))
        np.testing.assert_array_equal(np.asarray(call(tn.asarray(values))), expected)


def test_more_kinds_of_calls_than_are_remembered() -> None:
    values = RANDOM.uniform(0, 1, (2, 3, 2))
    for dtype in ("float64", "float32", "float64", "float32"):
        x = tn.asarray(values.astype(dtype))
        for axis in (None, 0, 1, 2, -1, -2, -3, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()):
            for keepdims in (False, True):
                made = tn.sum(x, axis=axis, keepdims=keepdims)
                expected = np.sum(np.asarray(x), axis=axis, keepdims=keepdims)
                np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-6)


def test_calls_for_other_lengths_are_bound_by_the_number_of_axes() -> None:
    made = [
        (tn.sum(x, axis=-1), tn.permute_dims(x), tn.astype(x, tn.float32))
        for x in (tn.zeros(shape) for shape in ((2, 3), (2,), (4, 5), (1, 2, 3), (6,), (7, 8)))
    ]
    assert [total.shape for total, _, _ in made] == [(2,), (), (4,), (1, 2), (), (7,)]
    assert [turned.shape for _, turned, _ in made][2:] == [(5, 4), (3, 2, 1), (6,), (8, 7)]
    assert made[3][2].shape == (1, 2, 3)
    halves = tn.zeros((4, 5), dtype="float16")
    assert tn.sum(halves, axis=-1).dtype == tn.float16
    assert tn.max(tn.zeros((4, 5)), axis=1).shape == (4,)
    with pytest.raises(tn.errors.ShapeError, match=r"shape \(4, 0\) is empty"):
        tn.max(tn.zeros((4, 0)), axis=1)
    with pytest.raises(tn.errors.ShapeError):
        tn.sum(tn.zeros(4), axis=1)


def test_true_is_not_one() -> None:
    assert tn.full((2,), 1).dtype == tn.int64
    assert tn.full((2,), True).dtype == tn.bool
    assert tn.full((2,), 1.0).dtype == tn.float64
    assert str(tn.full((), -0.0).item()) == "-0.0"
    assert str(tn.full((), 0.0).item()) == "0.0"


def test_wrong_calls_say_the_same_after_right_ones() -> None:
    x = tn.asarray([[1.0, 2.0]])

    def texts() -> list[str]:
        found = []
        wrong: list[Callable[[], Any]] = [
            lambda: tn.sum(x, axis=7),
            lambda: tn.sum(x, 0, True, 3),
            lambda: tn.sum(x, dim=0),
            lambda: tn.exp(x, x),
            lambda: tn.exp([1.0]),
            lambda: tn.exp(),
            lambda: tn.maximum(x, tn.zeros((3, 3))),
            lambda: tn.maximum(tn.asarray([1], dtype="int8"), 1000),
            lambda: tn.reshape(x, (3,)),
            lambda: tn.reshape(x, 2, 1),
            lambda: tn.matmul(x, x),
        ]
        for each in wrong:
            with pytest.raises((TypeError, ValueError, LookupError, OverflowError)) as caught:
                each()
            found.append(f"{type(caught.value).__name__} {caught.value}")
        return found

    first = texts()
    tn.sum(x, axis=0), tn.exp(x), tn.maximum(x, x), tn.reshape(x, (2,)), tn.matmul(x, x.T)
    assert texts() == first


def test_a_view_is_asked_anew_whether_it_can_be_read_as_another() -> None:
    x = tn.asarray(np.arange(6.0).reshape(2, 3))
    whole = tn.asarray(np.arange(6.0).reshape(3, 2))
    for _ in range(2):
        assert tn.reshape(whole, (6,), copy=False).shape == (6,)
        with pytest.raises(tn.errors.ShapeError, match="not a view"):
            tn.reshape(x.T, (6,), copy=False)


def test_a_view_made_by_an_alike_call_writes_through() -> None:
    for _ in range(2):
        x = tn.asarray(np.zeros((2, 3)))
        tn.permute_dims(x, (1, 0))[0, 1] = 5
        assert x.tolist() == [[0, 0, 0], [5, 0, 0]]


def test_options_of_a_block_count() -> None:
    for _ in range(3):
        assert tn.zeros((2,)).device == tn.asarray(1.0).device
        with tn.options(device="reference"):
            assert tn.zeros((2,)).device == "reference"


def test_strict_dtypes_count() -> None:
    x, y = tn.asarray([1.0]), tn.asarray([1])
    for _ in range(2):
        assert tn.add(x, y).dtype == tn.float64
        with tn.options(strict_dtypes=True), pytest.raises(tn.errors.DTypeError):
            tn.add(x, y)


def test_scalars_alone_become_arrays() -> None:
    assert tn.maximum(1, 2).item() == 2
    assert tn.exp(0.0).item() == 1.0


def test_functions_are_as_functions_of_python() -> None:
    for function, name in ((tn.sum, "sum"), (tn.linalg.inv, "inv"), (tn.exp, "exp")):
        assert function.__name__ == function.__qualname__ == name
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is copy.copy(function) is function
        assert inspect.getdoc(function)
        assert "x" in inspect.signature(function).parameters
        assert pydoc.render_doc(function)
        assert name in repr(function)
        assert hash(function) == hash(function)
    assert tn.sum.__module__ == "tenfold"
    assert tn.linalg.inv.__module__ == "tenfold.linalg"
    assert tn.Array.sum.__name__ == tn.sum.__name__
    bound = tn.asarray([1.0, 2.0]).sum
    assert bound().item() == 3.0
    assert bound.__name__ == "sum"


def test_names_of_arguments_are_no_argument() -> None:
    x = tn.asarray([[1.0, 2.0]])
    for _ in range(2):
        assert tn.sum(x, axis=1).tolist() == [3.0]
    with pytest.raises(TypeError):
        tn.sum(x, 1, ("axis",))  # type: ignore[call-overload]  # refused on purpose


def test_calls_on_other_lengths_are_like_those_before() -> None:
    for shape in ((3, 4), (5, 2), (1, 7), (0, 3), (4, 0), (3, 4)):
        values = np.arange(float(np.prod(shape))).reshape(shape)
        x = tn.asarray(values)
        assert np.asarray(tn.sum(x, axis=-1)).tolist() == values.sum(axis=-1).tolist()
        assert tn.sum(x, axis=0, keepdims=True).shape == (1, shape[1])
        assert np.array_equal(tn.permute_dims(x, (1, 0)), values.T)
        assert tn.astype(x, tn.float32).dtype == np.float32
        assert np.array_equal(x[1:, ::-1] * 1, values[1:, ::-1])
        if 0 in shape:
            with pytest.raises(tn.errors.ShapeError, match="is empty"):
                tn.max(x)
        else:
            assert tn.max(x).item() == values.max()


def test_calls_on_other_ranks_and_dtypes_are_other_calls() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for each in (x, x[0], x.astype("float32"), x.astype(bool), x[0, 0], x):
        found, wanted = tn.sum(tn.asarray(each), axis=-1), each.sum(axis=-1)
        assert np.array_equal(found, wanted)
        assert found.dtype == wanted.dtype
        with pytest.raises(tn.errors.ShapeError, match="out of range"):
            tn.sum(tn.asarray(each), axis=each.ndim)
