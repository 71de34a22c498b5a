"""Operations that users declare with `tn.op`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.errors import UnsupportedError


@tn.op
def addone(x: Any) -> Any:
    """One more, element by element."""
    return x + 1


@tn.op
def lerp(a: Any, b: Any, t: Any) -> Any:
    """From a to b."""
    return a + (b - a) * t


def test_an_element_rule_of_a_user_composes_with_other_operations() -> None:
    x = tn.asarray([[-2.0, 0, 0], [0, 0, 0]])
    result = tn.maximum(addone(x) + 0.5, 0)
    assert result.tolist() == [[0, 1.5, 1.5], [1.5, 1.5, 1.5]]


def test_an_element_rule_broadcasts_and_promotes() -> None:
    a = np.arange(3, dtype=np.float32)
    b = np.arange(6, dtype=np.float64).reshape(2, 3)
    result = lerp(a, b, 0.5)
    assert (result.dtype, result.shape) == (tn.float64, (2, 3))
    np.testing.assert_array_equal(np.asarray(result), a + (b - a) * 0.5)
    assert lerp(a, tn.asarray(a), 0.5).dtype == tn.float32


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "complex64"])
def test_an_element_rule_keeps_the_dtype_of_its_expression(dtype: str) -> None:
    assert addone(tn.asarray([1, 2], dtype=dtype)).dtype == dtype


def test_halves_are_rounded_once() -> None:
    x = tn.asarray([2048.0], dtype=tn.float16)

    @tn.op
    def up_and_down(x: Any) -> Any:
        return (x + 1) - 1  # 2049 is no float16

    assert up_and_down(x).tolist() == [2048.0]
    assert ((x + 1) - 1).tolist() == [2047.0]


def test_it_is_lazy_of_kind_map_and_no_public_operation() -> None:
    x = addone(tn.asarray([1.0]))
    assert tn._native.node_of(x).pending
    assert tn._native.node_of(x).kind == tn.Kind.MAP
    assert "addone" not in OPS
    assert not hasattr(tn.operators, "addone")


def test_it_says_who_it_is() -> None:
    assert repr(addone) == "<op addone>"
    assert (addone.__name__, addone.__doc__) == ("addone", "One more, element by element.")
    assert list(inspect.signature(lerp).parameters) == ["a", "b", "t"]


def test_it_can_be_called_by_keyword() -> None:
    assert lerp(b=tn.asarray([2.0]), a=tn.asarray([0.0]), t=0.5).tolist() == [1.0]


def test_an_operand_that_is_not_read_still_broadcasts() -> None:
    @tn.op
    def first(x: Any, y: Any) -> Any:
        return x * 1

    assert first(tn.asarray([1.0]), tn.zeros((2, 3))).tolist() == [[1.0] * 3] * 2


def test_it_can_be_declared_again_under_the_same_name() -> None:
    x = tn.asarray([1.0])

    def declared(amount: int) -> Any:
        @tn.op
        def shifted(x: Any) -> Any:
            return x + amount

        return shifted

    before = declared(1)(x)
    after = declared(10)(x)
    assert (before.tolist(), after.tolist()) == ([2.0], [11.0])


def test_a_reference_computes_the_values() -> None:
    @tn.op(reference=np.hypot, dtypes="real_floating", cost=20, accuracy=1)
    def distance(x: Any, y: Any) -> Any:
        """Length of (x, y)."""

    result = distance(tn.asarray([[3], [6]]), tn.asarray([4, 8]))
    assert result.tolist() == np.hypot([[3], [6]], [4, 8]).tolist()
    assert (distance.lowering.cost, distance.accuracy) == (20.0, 1)


def test_a_reference_may_say_one_dtype() -> None:
    @tn.op(reference=lambda x: x > 1, dtype=tn.bool)
    def large(x: Any) -> Any:
        """Whether x is above 1."""

    assert large(tn.asarray([1, 2])).tolist() == [False, True]


def test_the_general_form_says_shape_and_dtype() -> None:
    @tn.op(
        shape=lambda x, *, q: (len(q), *x.shape[1:]),
        dtype=tn.float64,
        reference=lambda x, *, q: np.quantile(x, q, axis=0),
    )
    def quantiles(x: Any, *, q: tuple[float, ...] = (0.5,)) -> Any:
        """Quantiles of columns."""

    x = np.arange(12.0).reshape(4, 3)
    assert quantiles(x).tolist() == [[4.5, 5.5, 6.5]]
    two = quantiles(tn.asarray(x), q=[0, 1])
    assert two.shape == (2, 3)
    assert (two + 0).tolist() == [[0, 1, 2], [9, 10, 11]]


def test_the_general_form_has_the_first_dtype_and_constant_shapes() -> None:
    @tn.op(shape=(2, 2), reference=lambda x, y: np.full((2, 2), x.sum() + y, x.dtype))
    def filled(x: Any, y: Any = 1) -> Any:
        """All the same."""

    result = filled(tn.asarray([1, 2], dtype=tn.int16))
    assert (result.dtype, result.tolist()) == (tn.int16, [[4, 4], [4, 4]])


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((3,), None, r"liar: its rule said shape \(3,\), its computation gave \(2,\)"),
        ((2,), tn.int8, "liar: its rule said dtype int8, its computation gave float64"),
        (lambda x: (*x.shape, 1), None, r"said shape \(2, 1\), its computation gave \(2,\)"),
    ],
)
def test_a_rule_that_lies_is_found_at_the_wait(shape: Any, dtype: Any, words: str) -> None:
    liar = tn.op(lambda_free, shape=shape, dtype=dtype, reference=lambda x: x + 0, name="liar")
    result = liar(tn.asarray([1.0, 2.0]))
    for _ in range(2):
        with pytest.raises(tn.errors.RunError, match=words) as caught:
            result.wait()
        assert __file__ in str(caught.value)


def lambda_free(x: Any) -> Any:
    """Nothing."""


def test_an_elementwise_reference_that_lies_is_found_at_the_wait() -> None:
    liar = tn.op(lambda_free, reference=lambda x: x[:1], name="liar")
    with pytest.raises(tn.errors.RunError, match=r"liar: its rule said shape \(2,\)"):
        liar(tn.asarray([1.0, 2.0])).wait()


def test_a_rule_that_says_no_shape_raises_at_the_call() -> None:
    wrong = tn.op(lambda_free, shape=lambda x: "three", reference=np.abs, name="wrong")
    with pytest.raises(tn.errors.ShapeError, match="wrong: shape 'three'"):
        wrong(tn.zeros((2,)))
    wrong = tn.op(lambda_free, shape=(2,), dtype=lambda x: "text", reference=np.abs, name="wrong")
    with pytest.raises(tn.errors.DTypeError, match="wrong: dtype 'text' is none of"):
        wrong(tn.zeros((2,)))


def test_error_of_a_reference_is_a_run_error() -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        raise ValueError("no such value")

    result = tn.op(lambda_free, reference=broken, name="broken")(tn.zeros((2,)))
    with pytest.raises(tn.errors.RunError, match="broken: ValueError: no such value") as caught:
        (result + 1).wait()
    assert isinstance(caught.value.__cause__, ValueError)
    assert __file__ in str(caught.value)


def test_a_reference_cannot_write_to_its_operands() -> None:
    def greedy(x: np.ndarray) -> np.ndarray:
        x += 1
        return x

    x = tn.zeros((2,)) + 1
    with pytest.raises(tn.errors.RunError, match="read-only"):
        tn.op(lambda_free, reference=greedy, name="greedy")(x).wait()
    assert x.tolist() == [1.0, 1.0]


def test_a_result_that_is_written_to_later_does_not_change() -> None:
    kept = np.zeros(2)
    result = tn.op(lambda_free, reference=lambda x: kept, name="leaky")(tn.zeros((2,)))
    result.wait()
    kept += 1
    assert result.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda x: None, "its element rule returned NoneType, not an array"),
        (lambda x: 3.0, "its element rule returned float, not an array"),
        (lambda x: x - tn.mean(x), "reads or makes other elements"),
        (lambda x: tn.flip(tn.reshape(x, (1,))), "reads or makes other elements"),
        (lambda x: x + tn.zeros((3,)), "reads or makes other elements"),
        (lambda x: x + CAPTURED, "reads an array that is none of its arguments"),
    ],
)
def test_an_element_rule_may_only_read_its_own_elements(rule: Any, words: str) -> None:
    wrong = tn.op(rule, name="wrong")
    with pytest.raises(tn.errors.ExplainedError) as caught:
        wrong(tn.asarray([1.0, 2.0]))
    assert str(caught.value).startswith("wrong: ")
    assert words in str(caught.value)


CAPTURED = tn.asarray(1.0)


def star(*xs: Any) -> Any:
    """Any number."""


def stars(x: Any, **options: Any) -> Any:
    """Any option."""


def optional(x: Any, y: Any = 1) -> Any:
    """A default."""


def option(x: Any, *, k: int) -> Any:
    """A parameter."""


def nothing() -> Any:
    """No operand."""


@pytest.mark.parametrize(
    ("declare", "error", "words"),
    [
        (lambda: tn.op(3), TypeError, "int is not a function"),
        (lambda: tn.op(lambda x: x), ValueError, "'<lambda>' is not a name"),
        (lambda: tn.op(addone.function, name="add one"), ValueError, "'add one' is not a name"),
        (lambda: tn.op(stars), TypeError, "**options does not say"),
        (lambda: tn.op(star), TypeError, "the parameter *xs"),
        (lambda: tn.op(option), TypeError, "the parameter k"),
        (lambda: tn.op(optional), TypeError, "the operand 'y' has a default"),
        (lambda: tn.op(nothing), TypeError, "needs an operand"),
        (lambda: tn.op(lambda_free, cost=0), ValueError, "cost 0 is not a positive number"),
        (lambda: tn.op(lambda_free, cost="much"), ValueError, "cost 'much'"),
        (lambda: tn.op(lambda_free, cost=float("nan")), ValueError, "cost nan"),
        (lambda: tn.op(lambda_free, shape=(2,)), ValueError, "give reference="),
        (lambda: tn.op(lambda_free, reference=3), TypeError, "reference 3 is not a function"),
        (lambda: tn.op(lambda_free, dtypes="float"), ValueError, "none of any_dtype"),
        (
            lambda: tn.op(lambda_free, dtypes="real", dtype=tn.int8),
            ValueError,
            "dtypes= and dtype= say the same",
        ),
        (
            lambda: tn.op(lambda_free, shape=(2,), reference=np.abs, dtypes="real"),
            ValueError,
            "dtypes= is for elementwise operations",
        ),
        (
            lambda: tn.op(lambda_free, reference=np.abs, dtype="text"),
            tn.errors.DTypeError,
            "dtype 'text' is none of",
        ),
        (lambda: tn.op(lambda_free, name="add", public=True), ValueError, "has the name 'add'"),
        (lambda: tn.op(lambda_free, name="Array", public=True), ValueError, "the name 'Array'"),
    ],
)
def test_a_bad_declaration_is_refused(declare: Any, error: Any, words: str) -> None:
    with pytest.raises(error) as caught:
        declare()
    assert str(caught.value).startswith("tn.op: ")
    assert words in str(caught.value)


@pytest.fixture
def public_name() -> Iterator[str]:
    name = "declared_in_a_test"
    yield name
    OPS.pop(name, None)
    for place in (tn, tn.operators):
        vars(place).pop(name, None)


@pytest.mark.parametrize("shape", [None, (2,)])
def test_a_public_operation_stands_where_the_others_do(public_name: str, shape: Any) -> None:
    made = tn.op(lambda_free, reference=np.abs, shape=shape, name=public_name, public=True)
    assert OPS[public_name] is made
    assert getattr(tn.operators, public_name) is made
    assert getattr(tn, public_name)(tn.asarray([-1.0, 2.0])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="tenfold has the name"):
        tn.op(lambda_free, reference=np.abs, name=public_name, public=True)


def test_a_rule_may_rebind_the_array_it_is_asked_about() -> None:
    x = tn.asarray(np.arange(5.0))

    def shape(given: Any) -> Any:
        nonlocal x
        x += 1
        x.wait()  # what `x` named before is held by nobody any more
        return given.shape

    @tn.op(shape=shape, reference=lambda values: values * 2)
    def twice(values: Any) -> Any:
        """Two times."""

    result = twice(x)
    others = [x + i for i in range(3000)]  # takes the memory of what was freed
    assert result.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    del others


@pytest.mark.parametrize("test", [lambda x: x, lambda x: x > 0, lambda x: (x + 1) * x > 0])
def test_an_element_rule_cannot_choose_by_values(test: Any) -> None:
    @tn.op
    def folded(x: Any) -> Any:
        """The distance from 0."""
        return x if test(x) else -x

    with pytest.raises(UnsupportedError, match="has no values") as caught:
        folded(tn.asarray([1.0]))
    assert "tn.where" in str(caught.value)


def test_rule_runs_once_for_each_combination_of_types_and_parameters() -> None:
    runs: list[tuple[object, ...]] = []

    def rule(x: Any, *, n: int) -> tuple[int, ...]:
        runs.append((x.shape, x.dtype, n))
        return (*x.shape, n)

    @tn.op(shape=rule, reference=lambda x, *, n: np.repeat(x[..., None], n, axis=-1))
    def repeated(x: Any, *, n: int) -> Any:
        """Each element n times."""

    for _ in range(3):
        for values in (np.ones(2), np.ones(3), np.ones(2, np.float32)):
            for n in (1, 2):
                assert repeated(tn.asarray(values), n=n).shape == (len(values), n)
    assert len(runs) == len(set(runs)) == 6
