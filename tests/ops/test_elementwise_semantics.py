"""What elementwise operations mean where NumPy, C and other libraries differ, fact by fact."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from exact_values import fused
from grid import computed, distance, same_or_close, shared
from tenfold.errors import DTypeError

pytestmark = pytest.mark.usefixtures("tier")

INF, NAN = float("inf"), float("nan")


def array(values: object, dtype: object = None) -> tn.Array:
    return tn.asarray(np.array(values, dtype))


def of(values: list[object], dtype: str) -> tn.Array:
    return tn.asarray(np.array(values, object).astype(tn.dtypes.DTYPES[dtype]))


def test_integer_divided_by_zero_is_zero() -> None:
    for dtype in ("int8", "int64", "uint8", "uint64"):
        assert (of([7, 0], dtype) // of([0, 0], dtype)).tolist() == [0, 0]
        assert (of([7, 0], dtype) % of([0, 0], dtype)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_quotients_next_to_whole_ones_are_rounded_down(dtype: str) -> None:
    info = np.iinfo(dtype)
    some = (-49, -7, 1, 3, 7, 10, 2**31 - 1, 2**49 + 1)
    for divisor in (d for d in some if d in range(*_of(info))):
        largest = min(2**50, info.max) // abs(divisor)
        near = [n * divisor + e for n in (1, 2, largest - 1, largest) for e in (-1, 0, 1)]
        near = [n for n in near if n in range(*_of(info))]
        x = of([*near], dtype)
        assert (x // divisor).tolist() == [n // divisor for n in near]
        assert (x % divisor).tolist() == [n % divisor for n in near]


def _of(info: np.iinfo) -> tuple[int, int]:
    return int(info.min), int(info.max) + 1


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_most_negative_integer_divided_by_minus_one_is_itself(dtype: str) -> None:
    lowest = int(np.iinfo(dtype).min)
    assert (of([lowest], dtype) // of([-1], dtype)).tolist() == [lowest]
    assert (of([lowest], dtype) % of([-1], dtype)).tolist() == [0]
    assert abs(of([lowest], dtype)).tolist() == [lowest]
    assert (-of([lowest], dtype)).tolist() == [lowest]


def test_floating_quotient_and_remainder_have_the_signs_of_numpy() -> None:
    x = array([7.0, -7.0, 7.0, -7.0, 0.0, -0.0, 6.0, -6.0, 1.0, INF, 5.0, -5.0])
    y = array([3.0, 3.0, -3.0, -3.0, 2.0, 2.0, -3.0, 3.0, 0.0, 2.0, INF, INF])
    with np.errstate(all="ignore"):
        same_or_close(computed(x // y), np.floor_divide(np.asarray(x), np.asarray(y)))
        same_or_close(computed(x % y), np.remainder(np.asarray(x), np.asarray(y)))
    assert np.signbit(computed(x % y))[[6, 7]].tolist() == [True, False]


@pytest.mark.parametrize("count", [8, 9, 64, 127, -1, -128])
def test_shift_past_the_width_gives_zero_or_the_sign(count: int) -> None:
    x = of([1, -1, 127, -128], "int8")
    counts = of([count] * 4, "int8")
    assert (x << counts).tolist() == [0, 0, 0, 0]
    assert (x >> counts).tolist() == [0, -1, 0, -1]
    if count > 0:
        assert (of([255], "uint8") >> of([count], "uint8")).tolist() == [0]


def test_shift_of_uint64_past_the_width_gives_zero() -> None:
    x = of([2**63], "uint64")
    assert (x >> of([2**63], "uint64")).tolist() == [0]
    assert (x << of([64], "uint64")).tolist() == [0]
    assert (x >> of([63], "uint64")).tolist() == [1]


def test_integers_wrap_without_a_warning() -> None:
    assert (of([100], "int8") + of([100], "int8")).tolist() == [-56]
    assert (of([200], "uint8") * of([2], "uint8")).tolist() == [144]
    assert (of([2], "int8") ** of([7], "int8")).tolist() == [-128]
    assert tn.square(of([16], "uint8")).tolist() == [0]


def test_reciprocal_of_an_integer_is_rounded_towards_zero() -> None:
    assert tn.reciprocal(of([0, 1, -1, 2, -128], "int8")).tolist() == [0, 1, -1, 0, 0]


def test_integer_to_a_negative_scalar_power_is_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"^pow: integers .* power -1"):
        array([1, 2]) ** -1


def test_integer_to_a_negative_power_in_an_array_is_refused_at_the_wait() -> None:
    powers = array([2, 3]) ** array([1, -1])
    with pytest.raises(ValueError, match=r"pow: .*test_elementwise_semantics\.py") as raised:
        powers.tolist()
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("power", [0.5, -1.0, 0.0, 1.0, 2.0, -0.5])
def test_power_is_the_same_for_a_scalar_and_for_an_array(dtype: str, power: float) -> None:
    x = of([-INF, -2.0, -0.0, 0.0, 2.0, INF, NAN], dtype)
    same_or_close(computed(x**power), computed(x ** of([power] * 7, dtype)))


def test_square_root_by_power_is_positive_at_minus_zero_and_minus_infinity() -> None:
    assert str((array([-INF, -0.0]) ** 0.5).tolist()) == "[inf, 0.0]"


def test_maximum_and_minimum_propagate_nan_from_either_side() -> None:
    for function in (tn.maximum, tn.minimum):
        assert np.isnan(computed(function(array([NAN, 1.0]), array([1.0, NAN])))).all()
        assert np.isnan(computed(function(of([NAN], "bfloat16"), 1))).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_minus_zero_is_below_zero(dtype: str) -> None:
    x, y = of([0.0, -0.0, 0.0, -0.0], dtype), of([-0.0, 0.0, 0.0, -0.0], dtype)
    assert np.signbit(computed(tn.maximum(x, y))).tolist() == [False, False, False, True]
    assert np.signbit(computed(tn.minimum(x, y))).tolist() == [True, True, False, True]


def test_sign_of_nan_is_nan_and_of_zero_is_zero() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        result = computed(tn.sign(of([NAN, -0.0, -2.0], dtype)))
        assert np.isnan(result[0])
        assert result[1:].tolist() == [0, -1]


def test_int64_and_uint64_are_compared_exactly() -> None:
    x, y = of([2**62 + 1, -1, 2**63 - 1], "int64"), of([2**62, 2**64 - 1, 2**63], "uint64")
    assert (x == y).tolist() == [False, False, False]
    assert (x < y).tolist() == [False, True, True]
    assert (y > x).tolist() == [False, True, True]
    assert (of([-1], "int8") < of([2**63], "uint64")).tolist() == [True]


@pytest.mark.parametrize("scalar", [300, -1, 2**63, 2**64, 2**70, -(2**70), 10**400])
def test_integer_beyond_the_dtype_is_compared_by_value(scalar: int) -> None:
    x = of([0, 1, 255], "uint8")
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        assert compare(x, scalar).tolist() == [compare(v, scalar) for v in (0, 1, 255)]
        assert compare(scalar, x).tolist() == [compare(scalar, v) for v in (0, 1, 255)]


def test_comparison_with_an_integer_beyond_the_dtype_keeps_shape_and_dtype() -> None:
    x = of([[1], [2]], "int8")
    result = tn.less(x, 1000)
    assert (result.shape, result.dtype, result.device) == ((2, 1), np.dtype(bool), x.device)
    assert tn.less(2**64, of([[1, 2]], "int64")).tolist() == [[False, False]]


def test_arithmetic_with_an_integer_beyond_the_dtype_is_refused() -> None:
    with pytest.raises(OverflowError, match=r"^add: Python integer 300 is out of bounds for uint8"):
        of([1], "uint8") + 300


def test_logical_operations_take_any_dtype_for_truth() -> None:
    x = array([0.0, -0.0, 0.5, NAN])
    assert tn.logical_and(x, True).tolist() == [False, False, True, True]
    assert tn.logical_or(x, array([0j, 1j, 0j, 0j])).tolist() == [False, True, True, True]
    assert tn.logical_xor(x, 300).tolist() == [True, True, False, False]
    assert tn.logical_not(of([0, 3], "uint8")).tolist() == [True, False]


def test_round_goes_to_even_at_a_tie() -> None:
    assert tn.round(array([0.5, 1.5, 2.5, -0.5, -1.5])).tolist() == [0, 2, 2, 0, -2]
    assert tn.round(array([0.5 + 1.5j])).tolist() == [2j]
    assert tn.round(array([2**62 + 1])).tolist() == [2**62 + 1]


@pytest.mark.parametrize("function", ["floor", "ceil", "trunc", "round"])
def test_rounding_leaves_integers_as_they_are(function: str) -> None:
    x = of([2**62 + 1, -7], "int64")
    result = getattr(tn, function)(x)
    assert (result.dtype, result.tolist()) == (x.dtype, x.tolist())


def test_where_takes_any_condition_for_truth_and_scalars_anywhere() -> None:
    assert tn.where(array([0.0, NAN, 2.0]), 1, array([5, 6, 7])).tolist() == [5, 1, 1]
    assert tn.where(array([True, False]), 1.5, 2).dtype == np.dtype(np.float64)
    assert tn.where(True, of([1], "int8"), of([2], "uint8")).dtype == np.dtype(np.int16)


def test_where_broadcasts_all_three() -> None:
    assert tn.where(array([[True], [False]]), array([1, 2, 3]), 0).tolist() == [
        [1, 2, 3],
        [0, 0, 0],
    ]


def test_strict_dtypes_let_a_condition_be_bool() -> None:
    with tn.options(strict_dtypes=True):
        assert tn.where(array([True]), array([1.0]), array([2.0])).tolist() == [1.0]
        with pytest.raises(DTypeError, match="float32"):
            tn.where(array([True]), array([1.0]), of([1], "float32"))


def test_clip_holds_between_bounds() -> None:
    x = array([-5.0, -0.5, 0.5, 5.0, NAN])
    assert tn.clip(x, -1, 1).tolist()[:4] == [-1, -0.5, 0.5, 1]
    assert np.isnan(computed(tn.clip(x, -1, 1))[4])
    assert tn.clip(x, min=0).tolist()[:2] == [0, 0]
    assert tn.clip(x, max=array([[1.0], [2.0]])).shape == (2, 5)
    assert tn.clip(x).tolist()[:4] == x.tolist()[:4]
    assert tn.clip(array([1, 5, 9]), 7, 3).tolist() == [3, 3, 3]


def test_clip_keeps_the_dtype_of_x() -> None:
    for dtype in ("int8", "uint8", "float16", "bfloat16", "float32"):
        x = of([1, 2, 3], dtype)
        assert tn.clip(x, 1, 2).dtype == x.dtype
        assert (
            tn.clip(x, of([1], "uint8"), of([2], "int64") if x.dtype.kind in "iu" else 2.0).dtype
            == x.dtype
        )
    assert tn.clip(of([1.5], "float32"), array([1.0]), array([2.0])).dtype == np.dtype(np.float32)


def test_clip_never_wraps_a_bound() -> None:
    x = of([0, 100, 255], "uint8")
    assert tn.clip(x, -5, 300).tolist() == [0, 100, 255]
    assert tn.clip(x, array([-5]), array([300])).tolist() == [0, 100, 255]
    assert tn.clip(of([-1, 5], "int64"), of([1], "uint64"), of([2**64 - 1], "uint64")).tolist() == [
        1,
        5,
    ]
    assert tn.clip(of([3, 2**64 - 1], "uint64"), -1, array([-1])).tolist() == [0, 0]


def test_clip_refuses_bounds_that_do_not_fit() -> None:
    with pytest.raises(DTypeError, match=r"^clip: .*float64.*int64"):
        tn.clip(array([1, 2]), 0.5)
    with pytest.raises(DTypeError, match=r"^clip: "):
        tn.clip(array([1j]), 0, 1)
    with pytest.raises(DTypeError, match=r"^clip: .*bool"):
        tn.clip(array([True]), 0, 1)
    with pytest.raises(OverflowError, match="out of bounds"):
        tn.clip(of([1], "int8"), 200)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_activations_are_stable_for_huge_arguments(dtype: str) -> None:
    x = of(
        [-INF, -3e38 if dtype != "float16" else -6e4, 3e38 if dtype != "float16" else 6e4, INF],
        dtype,
    )
    huge = x.tolist()[2]
    assert tn.sigmoid(x).tolist() == [0, 0, 1, 1]
    assert tn.softplus(x).tolist() == [0, 0, huge, INF]
    assert tn.gelu(x).tolist() == [0, 0, huge, INF]
    assert tn.relu(x).tolist() == [0, 0, huge, INF]
    for function in (tn.sigmoid, tn.softplus, tn.gelu, tn.relu):
        assert np.isnan(computed(function(of([NAN], dtype)))).all()


def test_relu_of_integers_stays_in_their_dtype() -> None:
    assert tn.relu(of([-3, 4], "int8")).dtype == np.dtype(np.int8)
    assert tn.relu(of([3, 4], "uint8")).tolist() == [3, 4]


def test_fma_rounds_once() -> None:
    tiny = 1 + 2.0**-30
    assert tn.fma(array([tiny]), tiny, -1 - 2.0**-29).tolist() == [2.0**-60]
    # By way of float64 this would be a tie, and the sum 2**24 of float32.
    x, y, z = (of([v], "float32") for v in (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80))
    exact_without_z = 1 + 2.0**-11 + 2.0**-24
    assert tn.fma(x, y, z).item() == np.nextafter(np.float32(1 + 2.0**-11), np.float32(2))
    assert float(np.float32(exact_without_z + 2.0**-80)) == 1 + 2.0**-11


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_fma_of_sums_near_a_tie_equals_fractions_rounded_once(dtype: str) -> None:
    """The third operand is, up to a few bits, half a unit of the product, or cancels most of it."""
    kind = tn.dtypes.DTYPES[dtype]
    digits = ml_dtypes.finfo(kind).nmant + 1
    random = np.random.default_rng(11)
    x, y = random.uniform(-4, 4, (2, 2000)).astype(kind)
    product = x.astype(np.float64) * y.astype(np.float64)
    away = random.choice([0, 1 - digits, -digits, -digits - 1, digits - 1, digits], 2000)
    sign = random.choice([-1, 1], 2000)
    z = (sign * 2.0 ** np.rint(np.log2(np.abs(product)) + away)).astype(kind)
    z = np.where(away == 0, -product, z.astype(np.float64)).astype(kind)
    same_or_close(computed(tn.fma(shared(x), shared(y), shared(z))), fused(x, y, z))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("odd", [1, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_fma_of_a_tie_and_a_trifle_falls_to_the_side_of_the_trifle(
    dtype: str, odd: int, sign: int
) -> None:
    digits = ml_dtypes.finfo(tn.dtypes.DTYPES[dtype]).nmant + 1
    half = digits // 2
    x, y = 1 + 2.0**-half, 1 + odd * 2.0 ** (half - digits)  # the product ends in half a unit
    trifle = sign * (2.0**-24 if dtype == "float16" else 2.0**-120)
    operands = [np.array([v]).astype(tn.dtypes.DTYPES[dtype]) for v in (x, y, trifle)]
    same_or_close(computed(tn.fma(*map(shared, operands))), fused(*operands))


def test_fma_survives_the_ends_of_the_exponents() -> None:
    x = array([1e200, 1e-200, 5e-324, -1e-200, 1.7e308, 1e200])
    y = array([1e200, 1e-200, 0.5, 1e-200, 2.0, 1e200])
    z = array([-INF, 1.0, 5e-324, 0.0, -1.7e308, -1.0])
    assert tn.fma(x, y, z).tolist() == [-INF, 1.0, 1e-323, -0.0, 1.7e308, INF]
    assert np.signbit(computed(tn.fma(x, y, z))[3])


def test_logaddexp_does_not_overflow() -> None:
    assert tn.logaddexp(
        array([1000.0, -1000.0, -INF, INF]), array([1000.0, -1000.0, -INF, 1.0])
    ).tolist() == [
        1000.6931471805599,
        -999.3068528194401,
        -INF,
        INF,
    ]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nextafter_steps_by_one_in_half_types(dtype: str) -> None:
    x = of([0.0, 1.0, -1.0, 300.0], dtype)
    up = computed(tn.nextafter(x, INF))
    assert (distance(up, np.asarray(x)) == 1).all()
    assert (up > np.asarray(x)).all()


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter_of_equal_numbers_is_the_second(dtype: str, device: str) -> None:
    x, y = of([0.0, -0.0, 0.0, -0.0, 3.0], dtype), of([-0.0, 0.0, 0.0, -0.0, 3.0], dtype)
    with tn.options(device=device):
        found = tn.nextafter(tn.asarray(np.asarray(x)), tn.asarray(np.asarray(y)))
        assert np.asarray(found).tobytes() == np.asarray(y).tobytes()


def test_booleans_have_no_difference_and_no_negative() -> None:
    for call in (lambda x: x - x, lambda x: -x, lambda x: +x, tn.sign):
        with pytest.raises(DTypeError, match="bool"):
            call(array([True]))


# The rows of the feature table.


def test_row_7_operator_surface_where_of_a_comparison_equals_numpy() -> None:
    random = np.random.default_rng(7)
    a, b = random.standard_normal((2, 1000))
    a[::17], b[::13] = NAN, NAN
    x, y = shared(a), shared(b)
    same_or_close(computed(tn.where(x > y, -x, abs(y))), np.where(a > b, -a, np.abs(b)))


def test_row_8_scalars_in_any_slot_are_weak() -> None:
    a = of([1.5, 2.5], "float32")
    chosen = tn.where(array([True, False]), 1, a)
    assert (chosen.dtype, chosen.tolist()) == (np.dtype(np.float32), [1.0, 2.5])
    assert (2 * a / 3).dtype == np.dtype(np.float32)
    assert (2 - a).dtype == (a**2).dtype == tn.maximum(0.1, a).dtype == np.dtype(np.float32)
    assert (of([1], "bfloat16") * 0.1).dtype == tn.bfloat16


def test_row_9_strict_mode_refuses_to_mix_and_names_both_dtypes() -> None:
    single, double = of([1.0], "float32"), of([1.0], "float64")
    with tn.options(strict_dtypes=True), pytest.raises(DTypeError) as raised:
        single + double
    assert "float32" in str(raised.value)
    assert "float64" in str(raised.value)
    assert (single + double).dtype == np.dtype(np.float64)
    assert tn.astype(array([3.7, -3.7]), tn.int32).tolist() == [3, -3]


def test_row_10_half_types_round_to_nearest_even_after_each_operation() -> None:
    exact = of([2049.0, 65519.0, 65520.0], "float32")
    assert tn.astype(exact, tn.float16).tolist() == [2048.0, 65504.0, INF]
    assert (of([2048], "float16") + 1 + 1).tolist() == [2048.0]  # 2049 is a tie, twice
    assert (of([65504], "float16") + 15).tolist() == [65504.0]
    assert (of([65504], "float16") + 16).tolist() == [INF]
    assert tn.astype(of([1.005859375], "float32"), tn.bfloat16).tolist() == [1.0078125]
    assert (of([1], "bfloat16") + of([0.005859375], "bfloat16")).tolist() == [1.0078125]


def test_row_10_sums_of_half_types_accumulate_in_float32() -> None:
    ones = tn.asarray(np.concatenate([[2048], np.ones(100)]).astype(np.float16))
    assert tn.sum(ones).tolist() == 2148.0


@pytest.mark.parametrize(
    ("value", "dtype"), [(1e-20, "float32"), (4.9e-320, "float64"), (6e-8, "float16")]
)
def test_row_30_tiny_divisors_divide_exactly(value: float, dtype: str) -> None:
    x = of([[value] * 5] * 5, dtype)
    assert tn.all((x / x) == 1).item()
    assert computed(x / x).dtype == x.dtype


def test_row_48_complex_product_conjugate_and_squared_modulus() -> None:
    for dtype in (np.complex64, np.complex128):
        x, y = array([1 + 2j], dtype), array([2 - 1j], dtype)
        assert (x * y).tolist() == [4 + 3j]
        assert tn.conj(x).tolist() == [1 - 2j]
        both = array([1 + 2j, 3 - 1j], dtype)
        assert tn.real(both * tn.conj(both)).tolist() == [5.0, 10.0]
        assert (tn.real(x).dtype, tn.imag(x).dtype) == (abs(x).dtype,) * 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_bits_of_complex_products_do_not_depend_on_the_layout(dtype: str) -> None:
    generator = np.random.default_rng(0)
    parts = generator.standard_normal((4, 500))
    x, y = (parts[0] + 1j * parts[1]).astype(dtype), (parts[2] + 1j * parts[3]).astype(dtype)
    plain = np.asarray(tn.asarray(x) * tn.asarray(y))
    reversed_twice = tn.asarray(x[::-1].copy())[::-1] * tn.asarray(y)
    assert np.asarray(reversed_twice).tobytes() == plain.tobytes()


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logaddexp_keeps_its_bound_near_a_result_of_zero(dtype: str, device: str) -> None:
    x = -np.random.default_rng(6).uniform(0, 8, 20_000).astype(dtype)
    y = np.log(-np.expm1(x.astype(np.float64))).astype(dtype)
    op = tn.operators.logaddexp
    found = np.asarray(tn.logaddexp(tn.asarray(x, device=device), tn.asarray(y, device=device)))
    right = np.logaddexp(x.astype(np.longdouble), y.astype(np.longdouble))
    unit = np.spacing(np.maximum(np.abs(right), op.accuracy_floor).astype(dtype))
    assert (np.abs(right) < np.finfo(dtype).eps * 2).any()
    assert (np.abs(found - right) <= op.accuracy * unit).all()
