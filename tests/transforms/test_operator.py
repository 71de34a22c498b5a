"""Opaque Python functions as one node: `@tn.operator`."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tenfold as tn


class Counting:
    """An opaque function that counts the elements passed to it."""

    def __init__(self) -> None:
        self.elements = 0

    def __call__(self, x: Any) -> Any:
        self.elements += x.size
        return x * 2


@pytest.fixture
def counting() -> Counting:
    return Counting()


@tn.operator
def doubled(x: Any) -> Any:
    """Twice as much."""
    return np.asarray(x) * 2


def test_a_shared_call_is_evaluated_once(counting: Counting) -> None:
    f = tn.operator(counting, name="f")
    s = f(tn.asarray(np.arange(100.0)))
    result = s * s + s
    assert counting.elements == 0
    np.testing.assert_array_equal(
        np.asarray(result), 4 * np.arange(100.0) ** 2 + 2 * np.arange(100)
    )
    assert counting.elements == 100


def test_a_shared_call_nobody_holds_is_evaluated_once(counting: Counting) -> None:
    f = tn.operator(counting, name="f")
    s = f(tn.asarray(np.arange(100.0)))
    result = s * s + s
    del s
    gc.collect()
    result.wait()
    assert counting.elements == 100


def test_outputs_computed_together_share_a_call(counting: Counting) -> None:
    s = tn.operator(counting, name="f")(tn.asarray(np.arange(100.0)))
    tn.eval(s + 1, s * 3)
    assert counting.elements == 100


def test_a_held_result_is_never_computed_again(counting: Counting) -> None:
    s = tn.operator(counting, name="f")(tn.asarray(np.arange(100.0)))
    (s + 1).wait()
    (s + 2).wait()
    assert counting.elements == 100


def test_it_is_given_computed_arrays() -> None:
    seen: list[Any] = []

    @tn.operator
    def look(x: Any, y: Any) -> Any:
        seen.extend([x, y])
        return x

    look(tn.asarray([1, 2]) + 1, 3.0).wait()
    assert [type(item) for item in seen] == [tn.Array, tn.Array]
    assert not any(tn._native.node_of(item).pending for item in seen)
    assert (seen[0].tolist(), seen[1].tolist()) == ([2, 3], 3.0)


def test_it_may_return_an_expression_an_ndarray_or_a_list() -> None:
    x = tn.asarray([1.0, 2.0])
    for function in (lambda x: x + 1, lambda x: np.asarray(x) + 1, lambda x: [2.0, 3.0]):
        assert tn.operator(function, name="more")(x).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64"])
def test_the_result_is_like_the_first_input(dtype: str) -> None:
    @tn.operator
    def same(x: Any, y: Any) -> Any:
        return x

    x = tn.asarray([[1, 0]], dtype=dtype)
    result = same(x, tn.zeros((5,)))
    assert (result.dtype, result.shape) == (x.dtype, x.shape)
    assert result.tolist() == x.tolist()


def test_shape_and_dtype_may_be_constants_or_functions_of_types() -> None:
    @tn.operator(shape=(), dtype=tn.int64)
    def count(x: Any) -> Any:
        return np.asarray(np.count_nonzero(np.asarray(x)))

    @tn.operator(
        shape=lambda x, y, *, times: (x.size * y.size * times,),
        dtype=lambda x, y, *, times: np.result_type(x.dtype, y.dtype),
    )
    def products(x: Any, y: Any, *, times: int = 1) -> Any:
        return tn.tile(tn.reshape(tn.outer(x, y), (-1,)), (times,))

    assert count(tn.asarray([0, 1, 2])).item() == 2
    x, y = tn.asarray([1, 2], dtype=tn.int8), tn.asarray([0.5], dtype=tn.float32)
    assert products(x, y).tolist() == [0.5, 1.0]
    assert products(x, y, times=2).tolist() == [0.5, 1.0] * 2
    assert products(x, y).dtype == tn.float32


def test_it_takes_any_number_of_arrays_and_none() -> None:
    @tn.operator
    def total(*xs: Any) -> Any:
        return sum(np.asarray(x) for x in xs)

    @tn.operator(shape=3, dtype=tn.int64)
    def three(*, start: int = 0) -> Any:
        return np.arange(start, start + 3)

    x = tn.asarray([1.0, 2.0])
    assert total(x, x, x).tolist() == [3.0, 6.0]
    assert (three() + three(start=10)).tolist() == [10, 12, 14]
    with pytest.raises(tn.errors.ShapeError, match="total: no input whose shape"):
        total()


def test_a_method_of_nothing_is_hidden() -> None:
    assert repr(doubled) == "<op doubled>"
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice as much.")
    assert doubled.semantics.pure is False
    assert tn.operator(pure=True, cost=5)(doubled.function).semantics.pure is True


def test_error_of_an_operator_surfaces_at_the_wait() -> None:
    @tn.operator
    def failing(x: Any) -> Any:
        raise KeyError("lost")

    result = failing(tn.zeros((2,)))
    line = test_error_of_an_operator_surfaces_at_the_wait.__code__.co_firstlineno + 5
    for _ in range(2):
        with pytest.raises(tn.errors.RunError) as caught:
            (result + 1).wait()
        assert "failing: KeyError: 'lost'" in str(caught.value)
        assert f"{__file__}:{line}" in str(caught.value)
        assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [IndexError, ValueError, MemoryError, np.linalg.LinAlgError])
def test_every_error_of_a_function_is_a_run_error(error: type[Exception]) -> None:
    def failing(x: Any) -> Any:
        raise error("gone")

    with pytest.raises(tn.errors.RunError, match=f"failing: {error.__name__}: gone") as caught:
        tn.operator(failing)(tn.zeros((2,))).wait()
    assert type(caught.value.__cause__) is error


def test_a_mistake_inside_names_the_inner_operation_too() -> None:
    @tn.operator
    def mistaken(x: Any) -> Any:
        return x + tn.zeros((3,))

    with pytest.raises(tn.errors.RunError, match="mistaken: ShapeError: add: shapes") as caught:
        mistaken(tn.zeros((2,))).wait()
    assert isinstance(caught.value.__cause__, tn.errors.ShapeError)


@pytest.mark.parametrize("device", list(tn.settings.DEVICE_IDS))
def test_it_computes_on_the_device_of_its_inputs(device: str) -> None:
    seen: list[str] = []

    @tn.operator
    def shifted(x: tn.Array) -> tn.Array:
        seen.append(x.device)
        return x + 1

    assert shifted(tn.asarray([1.0], device=device)).tolist() == [2.0]
    assert seen == [device]


def test_an_interrupt_goes_up_as_it_is() -> None:
    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tn.operator(interrupted)(tn.zeros((2,))).wait()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: [1.0, 2.0], "its rule said shape (3,), its computation gave (2,)"),
        (lambda x: np.arange(3), "its rule said dtype float64, its computation gave int64"),
        (lambda x: np.zeros(3, np.float32), "said dtype float64, its computation gave float32"),
        (lambda x: None, "DTypeError"),
        (lambda x: ["a", "b", "c"], "DTypeError"),
    ],
)
def test_a_wrong_result_is_refused(function: Any, words: str) -> None:
    result = tn.operator(function, name="wrong")(tn.zeros((3,)))
    with pytest.raises(tn.errors.RunError) as caught:
        result.wait()
    assert str(caught.value).startswith("wrong: ")
    assert words in str(caught.value)
    assert __file__ in str(caught.value)


def test_it_cannot_write_to_its_inputs() -> None:
    @tn.operator
    def greedy(x: Any) -> Any:
        values = np.asarray(x)
        values += 1
        return values

    x = tn.zeros((2,)) + 1
    with pytest.raises(tn.errors.RunError, match="read-only"):
        greedy(x).wait()
    assert x.tolist() == [1.0, 1.0]


def test_a_result_that_is_written_to_later_does_not_change() -> None:
    kept = np.zeros(2)
    result = tn.operator(lambda x: kept, name="leaky")(tn.zeros((2,))).wait()
    kept += 1
    assert result.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: doubled([1, 2]), "doubled: list is not an array or a number"),
        (lambda: powers(tn.zeros((2,)), k=tn.zeros(())), "powers: the parameter 'k' is an array"),
        (lambda: powers(tn.zeros((2,)), k={}), "the parameter 'k', a dict, is unhashable"),
    ],
)
def test_a_bad_call_is_refused(call: Any, words: str) -> None:
    with pytest.raises(tn.errors.DTypeError) as caught:
        call()
    assert words in str(caught.value)


@tn.operator
def powers(x: Any, *, k: Any) -> Any:
    """To the power k."""
    return x**k


def test_parameters_are_part_of_the_call() -> None:
    x = tn.asarray([2.0, 3.0])
    assert (powers(x, k=2) + powers(x, k=3)).tolist() == [12.0, 36.0]
    assert powers(x, k=np.int64(2)).tolist() == [4.0, 9.0]


@pytest.mark.parametrize(
    ("declare", "error", "words"),
    [
        (lambda: tn.operator(3), TypeError, "int is not a function"),
        (lambda: tn.operator(lambda x: x), ValueError, "'<lambda>' is not a name"),
        (lambda: tn.operator(lambda **k: k), TypeError, "**k does not say which"),
        (lambda: tn.operator(cost=-1)(powers.function), ValueError, "cost -1 is not a positive"),
    ],
)
def test_a_bad_declaration_is_refused(declare: Any, error: Any, words: str) -> None:
    with pytest.raises(error) as caught:
        declare()
    assert str(caught.value).startswith("tn.operator: ")
    assert words in str(caught.value)


def test_it_is_a_call_of_kind_complex() -> None:
    before = tn._native.read_counters()["calls"]
    result = doubled(tn.zeros((2,)))
    assert tn._native.node_of(result).kind == tn.Kind.CONTRACTION
    result.wait()
    assert tn._native.read_counters()["calls"] == before + 1
