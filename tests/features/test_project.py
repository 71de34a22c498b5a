"""What the house must do, one test for each fact: an input, and what must be seen."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from tests.errors import (
    call_errors,
    dtype_errors,
    einsum_errors,
    index_errors,
    loop_errors,
    shape_errors,
)
from tests.errors.error_table import MISTAKES

import tenfold as tn
from tenfold.errors import DTypeError, ShapeError
from tenfold.testing import all_dtypes, assert_close, assert_equal_bits


def test_operators_build_and_nothing_runs_before_somebody_asks() -> None:
    a, b, c, d = (tn.asarray(np.float32([1, 2, 3, 4]) * k) for k in (1, 2, 3, 4))
    with tn.profile() as building:
        y = (a + b) * c - d
    assert (building.kernels, building.calls, building.host_syncs) == (0, 0, 0)
    with tn.profile() as computing:
        tn.eval(y)
    assert computing.kernels >= 1
    assert_equal_bits(y, np.float32([5, 28, 69, 128]))


def test_an_expression_keeps_its_operands_alive() -> None:
    def made() -> tn.Array:
        a, b = tn.asarray(np.arange(1000.0)), tn.asarray(np.ones(1000))
        return tn.sqrt(a * a + b) * 2

    y = made()
    gc.collect()
    junk = [np.full(1000, -1.0) for _ in range(50)]
    assert_equal_bits(y, np.sqrt(np.arange(1000.0) ** 2 + 1) * 2)
    assert len(junk) == 50


def test_a_value_is_value_a_map_is_map_a_view_is_view_and_a_product_is_complex() -> None:
    a, b, c = tn.ones((2, 2)).wait(), tn.ones((2, 2)).wait(), tn.ones((2, 2)).wait()
    assert a.kind == tn.Kind.VALUE == 0
    assert (a + b).kind == tn.Kind.MAP == 1
    assert (tn.flip(a) + b).kind == tn.Kind.VIEW == 3
    assert (a @ b + c).kind == tn.Kind.CONTRACTION == 7
    for kind in (a.T, a[::-1], tn.reshape(a, (4,))):
        assert kind.kind == tn.Kind.VIEW
    assert tn.sum(a).kind == tn.sort(a).kind == tn.Kind.CONTRACTION


def test_an_element_operation_of_a_user_joins_expressions() -> None:
    @tn.op
    def addone(x: tn.Array, /) -> tn.Array:
        """One more."""
        return x + 1

    x = tn.asarray([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    y = tn.maximum(addone(x) + 0.5, 0)
    assert y.kind == tn.Kind.MAP
    assert y.tolist() == [[0, 1.5, 1.5], [1.5, 1.5, 1.5]]


def test_an_element_operation_of_a_user_may_be_a_function_of_ndarrays() -> None:
    @tn.op(reference=lambda x: x + 1, cost=2)
    def addone(x: tn.Array, /) -> tn.Array:
        """One more."""

    x = tn.asarray([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert tn.maximum(addone(x) + 0.5, 0).tolist() == [[0, 1.5, 1.5], [1.5, 1.5, 1.5]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_of_a_comparison_equals_numpy_with_nan(dtype: str) -> None:
    generator = np.random.default_rng(7)
    x, y = generator.normal(size=(2, 1000)).astype(dtype)
    x[::17] = np.nan
    y[::13] = np.nan
    a, b = tn.asarray(x), tn.asarray(y)
    assert_equal_bits(tn.where(a > b, -a, abs(b)), np.where(x > y, -x, np.abs(y)))


def test_python_scalars_are_weak_in_any_slot() -> None:
    a = tn.asarray(np.float32([1, 2, 3]))
    m = a > 1.5
    for y in (tn.where(m, 1, a), tn.where(m, a, 0.5), 2 * a / 3, a**2, 1 - a, tn.maximum(a, 0)):
        assert y.dtype == tn.float32
    assert_equal_bits(tn.where(m, 1, a), np.float32([1, 1, 1]))
    assert_equal_bits(2 * a / 3, 2 * np.float32([1, 2, 3]) / 3)
    assert (tn.asarray([True]) + 1).dtype == tn.int64
    assert (a + 1j).dtype == tn.complex64


def test_strict_mode_refuses_to_mix_and_names_both_dtypes() -> None:
    a, b = tn.zeros(2, dtype=tn.float32), tn.zeros(2, dtype=tn.float64)
    assert (a + b).dtype == tn.float64
    with tn.options(strict_dtypes=True), pytest.raises(DTypeError, match="float32, float64"):
        a + b
    with tn.options(strict_dtypes=True):
        assert (a + tn.astype(b, tn.float32) * 2).dtype == tn.float32


def test_a_cast_to_integers_truncates() -> None:
    assert tn.astype(tn.asarray([3.7, -3.7]), tn.int32).tolist() == [3, -3]


def test_float16_rounds_to_nearest_even() -> None:
    x = tn.asarray([2049.0, 2051.0, 65519.0, 65520.0, -65520.0])
    assert tn.astype(x, tn.float16).tolist() == [2048.0, 2052.0, 65504.0, np.inf, -np.inf]


def test_bfloat16_rounds_to_nearest_even() -> None:
    x = tn.asarray([1.005859375, 1.01171875, 1.00390625])
    assert tn.astype(x, tn.bfloat16).tolist() == [1.0078125, 1.015625, 1.0]


def test_half_types_round_after_each_operation() -> None:
    x = tn.asarray([2048.0], dtype=tn.float16)
    assert ((x + 1) + 1).tolist() == [2048.0]
    b = tn.asarray([256.0], dtype=tn.bfloat16)
    assert ((b + 1) + 1).tolist() == [256.0]


def test_half_sums_accumulate_in_float32() -> None:
    x = tn.ones(4096, dtype=tn.float16)
    assert_equal_bits(tn.sum(x), np.float16(4096))
    assert tn.sum(tn.ones(1000, dtype=tn.bfloat16)).item() == 1000.0


def test_shapes_that_do_not_fit_raise_while_building() -> None:
    with tn.profile() as p, pytest.raises(ShapeError) as caught:
        tn.zeros((2, 3)) + tn.zeros((3, 2))
    assert all(text in str(caught.value) for text in ("(2, 3)", "(3, 2)", "add"))
    assert p.kernels == 0


def test_an_empty_axis_is_exact_and_never_a_wildcard() -> None:
    with pytest.raises(ShapeError):
        tn.zeros((0, 3)) + tn.zeros((2, 3))
    assert_equal_bits(tn.zeros((2, 0)) @ tn.zeros((0, 3)), np.zeros((2, 3)))
    assert (tn.zeros((0, 3)) + tn.zeros((1, 3))).shape == (0, 3)


def test_broadcasting_along_a_named_axis_repeats_over_the_others() -> None:
    x = tn.broadcast_to(tn.asarray([1, 2, 3]), (2, 3, 2, 2), axis=1)
    for i in range(2):
        for j in range(3):
            assert_equal_bits(x[i, j], np.full((2, 2), j + 1))
    assert tn.tile(tn.asarray([[1, 2]]), (2, 2)).tolist() == [[1, 2, 1, 2], [1, 2, 1, 2]]


def test_shared_node_of_one_evaluation_is_computed_once() -> None:
    passed: list[int] = []

    @tn.operator
    def f(x: tn.Array, /) -> tn.Array:
        passed.append(x.size)
        return x * 2

    s = f(tn.asarray(np.arange(100.0)))
    y = s * s + s
    assert passed == []
    assert_equal_bits(y, 4 * np.arange(100.0) ** 2 + 2 * np.arange(100.0))
    assert passed == [100]


@pytest.mark.parametrize(
    ("tiny", "dtype"), [(1e-20, "float32"), (1e-20, "float64"), (4.9e-320, "float64")]
)
def test_a_quotient_is_no_product_with_the_reciprocal(tiny: float, dtype: str) -> None:
    m = tn.asarray(np.full((3, 5), tiny, dtype))
    assert_equal_bits(m / m, np.ones((3, 5), dtype))


def test_reductions_over_an_axis_take_the_first_of_equals() -> None:
    x = tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]])
    assert tn.sum(x, axis=1).tolist() == [13, 13]
    assert tn.max(x, axis=0).tolist() == [7, 7, 5, 2]
    assert tn.argmax(x, axis=1).tolist() == [1, 0]
    assert tn.argmin(x, axis=1).tolist() == [0, 3]
    assert tn.sum(x, axis=(0, 1), keepdims=True).tolist() == [[26]]


@pytest.mark.parametrize(("axes", "wanted"), [((1, 2), [2, 2.8, 3.6]), ((0, 2), [3, 5.4])])
def test_all_axes_but_one_are_reduced_by_naming_the_others(
    axes: tuple[int, int], wanted: list
) -> None:
    i, j, k = np.indices((3, 2, 4))
    x = tn.asarray(0.1 * i + 0.2 * j + 0.1 * k)
    assert_close(tn.sum(x, axis=axes), wanted, ulp=8)


def test_reductions_have_true_identities_and_nan_goes_through() -> None:
    assert tn.max(tn.asarray([-np.inf, -np.inf])).item() == -np.inf
    assert np.isnan(tn.max(tn.asarray([1.0, np.nan, 2.0])).item())
    assert tn.sum(tn.zeros(0)).item() == 0
    assert tn.prod(tn.zeros(0)).item() == 1
    with pytest.raises(ValueError, match="empty"):
        tn.max(tn.zeros(0))


def test_sums_are_accurate() -> None:
    x = tn.asarray(np.float32([2**24] + [1] * 1000))
    assert abs(tn.sum(x).item() - 16778216) <= 8
    generator = np.random.default_rng(3)
    a, b = generator.random((2, 10**6))
    difference = tn.asarray(a) - tn.asarray(b)
    assert_close(
        tn.sum(difference**2), np.sum(np.square(a - b, dtype=np.longdouble)).astype(float), ulp=16
    )


def test_scans_are_inclusive_or_exclusive() -> None:
    x = tn.asarray([[0, 1, 2], [3, 4, 5]])
    assert tn.cumulative_sum(x, axis=1).tolist() == [[0, 1, 3], [3, 7, 12]]
    assert tn.cumulative_sum(x, axis=1, exclusive=True).tolist() == [[0, 0, 1], [0, 3, 7]]
    assert tn.cumulative_sum(x, axis=0).tolist() == [[0, 1, 2], [3, 5, 7]]


MOVEMENTS: dict[str, Callable[[tn.Array], tn.Array]] = {
    "nothing": lambda x: x,
    "transposed twice": lambda x: x.T.T,
    "flipped twice": lambda x: tn.flip(tn.flip(x)),
    "by columns": lambda x: tn.stack([x[:, i] for i in range(3)], axis=1),
    "cropped from a pad": lambda x: tn.crop(
        tn.pad(x, ((1, 2), (3, 4)), constant_values=1), (5, 3), start=(1, 3)
    ),
    "rolled and back": lambda x: tn.roll(tn.roll(x, 7), -7),
    "cut and joined": lambda x: tn.concat([x[:2], x[2:]], axis=0),
    "taken": lambda x: tn.take(x, tn.asarray([0, 1, 2, 3, 4]), axis=0),
    "broadcast": lambda x: tn.broadcast_to(x, (2, 5, 3))[1],
    "every second of doubles": lambda x: tn.repeat(x, 2, axis=1)[:, ::2],
    "tiled": lambda x: tn.tile(x, (2, 2))[5:, 3:],
}


@pytest.mark.parametrize("movement", MOVEMENTS)
@pytest.mark.parametrize("dtype", all_dtypes(), ids=str)
def test_no_padding_of_odd_rows_is_ever_visible(dtype: np.dtype, movement: str) -> None:
    numbers = np.arange(15).astype(dtype)
    x = MOVEMENTS[movement](tn.asarray(numbers.reshape(5, 3)))
    assert_equal_bits(tn.reshape(x, -1), numbers)


def test_axes_are_permuted_as_views() -> None:
    x = tn.reshape(tn.arange(24), (2, 3, 4))
    assert x.permute_dims((2, 0, 1))[0, 0].tolist() == [0, 4, 8]
    assert tn.swapaxes(x, 2, 0)[0].tolist() == [[0, 12], [4, 16], [8, 20]]
    assert x.permute_dims((2, 0, 1)).base is x
    assert x.permute_dims((2, 0, 1)).kind == tn.Kind.VIEW


def test_a_crop_is_in_the_middle_and_undoes_a_pad() -> None:
    x = tn.reshape(tn.arange(30), (5, 6))
    assert tn.crop(x, (2, 3)).tolist() == [[7, 8, 9], [13, 14, 15]]
    for width in (0, 1, 3):
        assert_equal_bits(tn.crop(tn.pad(x, width), (5, 6)), np.arange(30).reshape(5, 6))
    assert tn.flip(x, axis=1)[0].tolist() == [5, 4, 3, 2, 1, 0]
    assert tn.pad(x[0, :3], 2, "reflect").tolist() == [2, 1, 0, 1, 2, 1, 0]
    with pytest.raises(ShapeError):
        tn.crop(x, (6, 6))


def test_rows_are_taken_by_position_within_bounds() -> None:
    x = tn.reshape(tn.arange(20), (10, 2))
    assert tn.take(x, tn.asarray([8, 0, 1]), axis=0).tolist() == [[16, 17], [0, 1], [2, 3]]
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with length 10"):
        tn.take(x, tn.asarray([10]), axis=0).wait()
    with pytest.raises(IndexError):
        x[10]


def test_rows_scattered_to_one_row_add_up() -> None:
    x = tn.add_at(tn.zeros((10, 2)), tn.asarray([8, 1, 8]), tn.asarray([1.0, 2.0]))
    wanted = np.zeros((10, 2))
    wanted[8], wanted[1] = [2, 4], [1, 2]
    assert_equal_bits(x, wanted)


def test_ranges_count_down_and_repeat() -> None:
    assert tn.arange(5, 0, -1).tolist() == [5, 4, 3, 2, 1]
    assert tn.arange(3, repeat=2).tolist() == [0, 0, 1, 1, 2, 2]


def test_sorting_down_is_stable() -> None:
    keys = tn.asarray([3, 1, 2, 1, 3, 0])
    assert tn.argsort(keys, descending=True).tolist() == [0, 4, 2, 1, 3, 5]
    assert tn.sort(keys, descending=True).tolist() == [3, 3, 2, 1, 1, 0]


def test_segments_are_summed_by_id() -> None:
    x = tn.asarray([1.0, 2.0, 3.0, 4.0])
    assert tn.segment_sum(x, tn.asarray([0, 2, 0, 2]), 4).tolist() == [4.0, 0.0, 6.0, 0.0]


@pytest.mark.parametrize("dtype", all_dtypes("c"), ids=str)
def test_complex_numbers_multiply_and_conjugate(dtype: np.dtype) -> None:
    x, y = tn.asarray([1 + 2j], dtype=dtype), tn.asarray([2 - 1j], dtype=dtype)
    assert_equal_bits(x * y, np.array([4 + 3j], dtype))
    assert_equal_bits(tn.conj(x), np.array([1 - 2j], dtype))
    z = tn.asarray([1 + 2j, 3 + 1j], dtype=dtype)
    assert tn.abs2(z).tolist() == [5.0, 10.0]
    assert tn.abs2(z).dtype == tn.real(z * tn.conj(z)).dtype == np.array(0, dtype).real.dtype


def test_the_parts_of_complex_numbers_lie_interleaved() -> None:
    z = tn.asarray([1 + 2j, 3 - 1j])
    assert np.asarray(z).view(np.float64).tolist() == [1.0, 2.0, 3.0, -1.0]
    parts = tn.view_as_real(z)
    assert parts.tolist() == [[1.0, 2.0], [3.0, -1.0]]
    assert_equal_bits(tn.view_as_complex(parts), np.array([1 + 2j, 3 - 1j]))


def test_a_table_of_programs_must_raise() -> None:
    assert {mistake.program.__module__ for mistake in MISTAKES} == {
        module.__name__
        for module in (
            call_errors,
            dtype_errors,
            index_errors,
            loop_errors,
            shape_errors,
            einsum_errors,
        )
    }
    assert len(MISTAKES) >= 60
    assert all(mistake.message for mistake in MISTAKES)
