"""Programs with dtypes and numbers that do not fit.

Table.
"""

from __future__ import annotations

import datetime

import numpy as np

import tenfold as tn
from tenfold.errors import DTypeError, ForeignDTypeError, RunError

from .error_table import wrong, wrong_values


@wrong(
    OverflowError,
    "add: Python integer 300 is out of bounds for uint8",
    operands=2,
)
def an_integer_too_large_for_its_array() -> None:
    x = tn.asarray([1, 2], dtype=tn.uint8)
    x + 300


@wrong(
    OverflowError,
    "multiply: Python integer -1 is out of bounds for uint16",
    operands=2,
)
def a_negative_integer_with_unsigned_ones() -> None:
    x = tn.asarray([1, 2], dtype=tn.uint16)
    -1 * x


@wrong(
    OverflowError,
    "add: Python integer near 1.18059e+21 is out of bounds for int64",
    operands=2,
)
def an_integer_beyond_64_bits() -> None:
    x = tn.asarray([1, 2])
    x + 2**70


@wrong(
    OverflowError,
    "full: Python integer 300 is out of bounds for uint8",
    operands=0,
)
def filling_with_an_integer_that_does_not_fit() -> None:
    tn.full((2,), 300, dtype=tn.uint8)


@wrong(
    OverflowError,
    "asarray: Python integer 300 is out of bounds for int8",
    operands=0,
)
def a_list_of_integers_that_do_not_fit() -> None:
    tn.asarray([1, 300], dtype=tn.int8)


@wrong(
    ValueError,
    "pow: integers cannot be raised to the negative power -1",
    operands=2,
)
def an_integer_to_a_negative_power() -> None:
    x = tn.asarray([2, 3])
    x**-1


@wrong_values(
    ValueError,
    "pow: integers cannot be raised to the negative power -1 (written at {place})",
    remedy=True,
)
def integers_to_the_power_of_negative_ones() -> tn.Array:
    x = tn.asarray([2, 3])
    return x ** tn.asarray([1, -1])


@wrong(
    DTypeError,
    "subtract: needs numbers, not bool, bool",
    operands=2,
)
def subtracting_truth_values() -> None:
    tn.asarray([True]) - tn.asarray([False])


@wrong(
    DTypeError,
    "negative: needs numbers, not bool",
)
def negating_truth_values() -> None:
    -tn.asarray([True])


@wrong(
    DTypeError,
    "sign: needs numbers, not bool",
)
def the_sign_of_truth_values() -> None:
    tn.sign(tn.asarray([True]))


@wrong(
    DTypeError,
    "bitwise_left_shift: needs integers, not float64, int64",
    operands=2,
)
def shifting_floats() -> None:
    tn.asarray([1.0]) << 2


@wrong(
    DTypeError,
    "bitwise_and: needs integers or booleans, not int64, float64",
    operands=2,
)
def the_bits_of_floats() -> None:
    tn.asarray([1]) & tn.asarray([1.0])


@wrong(
    DTypeError,
    "bitwise_invert: needs integers or booleans, not float64",
)
def inverting_floats() -> None:
    ~tn.asarray([1.0])


@wrong(
    DTypeError,
    "less: needs real numbers, not complex128, complex128",
    operands=2,
)
def ordering_complex_numbers() -> None:
    tn.less(tn.asarray([1j]), tn.asarray([2j]))


@wrong(
    DTypeError,
    "maximum: needs real numbers, not complex128, float64",
    operands=2,
)
def the_larger_of_complex_numbers() -> None:
    tn.maximum(tn.asarray([1j]), 0.0)


@wrong(
    DTypeError,
    "max: needs real numbers, not complex128",
)
def the_largest_of_complex_numbers() -> None:
    tn.max(tn.asarray([1j]))


@wrong(
    DTypeError,
    "sort: needs real numbers, not complex128",
)
def sorting_complex_numbers() -> None:
    tn.sort(tn.asarray([1j]))


@wrong(
    DTypeError,
    "floor_divide: needs real numbers, not complex128, int64",
    operands=2,
)
def the_whole_quotient_of_complex_numbers() -> None:
    tn.asarray([1j]) // 2


@wrong(
    DTypeError,
    "floor: needs real numbers, not complex128",
)
def the_floor_of_complex_numbers() -> None:
    tn.floor(tn.asarray([1j]))


@wrong(
    DTypeError,
    "astype: cannot make float64 of complex128",
)
def casting_complex_to_real() -> None:
    tn.astype(tn.asarray([1j]), tn.float64)


@wrong(
    DTypeError,
    "sum: cannot accumulate complex128 in float32",
)
def summing_complex_as_real() -> None:
    tn.sum(tn.asarray([1j]), dtype=tn.float32)


@wrong(
    DTypeError,
    "full: 1j cannot become float64",
    operands=0,
)
def filling_reals_with_a_complex_number() -> None:
    tn.full((2,), 1j, dtype=tn.float64)


@wrong(
    ForeignDTypeError,
    "zeros: dtype 'float8' is none of bool, int8, int16, int32, int64, uint8, uint16, "
    "uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
    operands=0,
)
def a_dtype_that_does_not_exist() -> None:
    tn.zeros(3, dtype="float8")


@wrong(
    ForeignDTypeError,
    "astype: dtype <class 'numpy.longdouble'> is none of bool, int8, int16, int32, int64,"
    " uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128",
)
def a_dtype_of_numpy_that_is_not_here() -> None:
    tn.astype(tn.zeros(3), np.longdouble)


@wrong(
    ForeignDTypeError,
    "asarray: dtype <U1 holds text; the dtypes are bool, int8, int16, int32, int64, "
    "uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128",
    operands=0,
)
def an_array_of_text() -> None:
    tn.asarray(["a", "b"])


@wrong(
    ForeignDTypeError,
    "asarray: dtype |S2 holds text; the dtypes are bool, int8, int16, int32, int64, "
    "uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128",
    operands=0,
)
def an_array_of_bytes() -> None:
    tn.asarray(np.array([b"ab"]))


@wrong(
    ForeignDTypeError,
    "asarray: dtype object holds Python objects; the dtypes are bool, int8, int16, int32,"
    " int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, "
    "complex64, complex128",
    operands=0,
)
def an_array_of_objects() -> None:
    tn.asarray(np.array([1, None], dtype=object))


@wrong(
    ForeignDTypeError,
    "asarray: dtype datetime64[D] holds dates; the dtypes are bool, int8, int16, int32, "
    "int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, "
    "complex64, complex128",
    operands=0,
)
def an_array_of_dates() -> None:
    tn.asarray(np.array(["2020-01-01"], dtype="datetime64[D]"))


@wrong(
    ForeignDTypeError,
    "asarray: dtype [('x', '<f8')] holds records; the dtypes are bool, int8, int16, "
    "int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, "
    "complex64, complex128",
    operands=0,
)
def an_array_of_records() -> None:
    tn.asarray(np.zeros(2, dtype=[("x", "f8")]))


@wrong(
    ForeignDTypeError,
    "asarray: a masked array would lose its mask",
    operands=0,
)
def a_masked_array() -> None:
    tn.asarray(np.ma.masked_array([1.0, 2.0], [True, False]))


@wrong(
    ForeignDTypeError,
    "asarray: date is not an array or a number",
    operands=0,
)
def an_array_of_something_else() -> None:
    tn.asarray(datetime.date(2020, 1, 1))


@wrong(DTypeError, "sin: list is not an array or a number", operands=0)
def a_list_where_an_array_is_meant() -> None:
    tn.sin([0.0, 1.0])


@wrong(
    TypeError,
    "unsupported operand type(s) for +: 'tenfold.Array' and 'str'",
    operands=0,
    remedy=False,
)
def adding_text() -> None:
    tn.zeros(3) + "1"


@wrong(DTypeError, "subtract: list is not an array or a number", operands=1)
def subtracting_from_a_list() -> None:
    [1, 2, 3] - tn.asarray(0.0)


@wrong(
    DTypeError,
    "add: strict_dtypes refuses to mix float32, float64",
    operands=2,
)
def mixing_dtypes_where_that_is_refused() -> None:
    x, y = tn.zeros(2, dtype=tn.float32), tn.zeros(2)
    with tn.options(strict_dtypes=True):
        x + y


@wrong(
    DTypeError,
    "where: strict_dtypes refuses to mix int8, float64",
    operands=3,
)
def choosing_among_dtypes_where_mixing_is_refused() -> None:
    condition, x, y = tn.ones(2, dtype=bool), tn.zeros(2, dtype=tn.int8), tn.zeros(2)
    with tn.options(strict_dtypes=True):
        tn.where(condition, x, y)


@wrong(
    DTypeError,
    "+=: a result of float64 cannot replace int64 (same-kind rule)",
)
def a_compound_assignment_that_would_change_the_dtype() -> None:
    x = tn.asarray([1, 2])
    x += 1.5


@wrong(DTypeError, "setitem: a Python float cannot replace elements of int64 (same-kind rule)")
def assigning_a_fraction_to_integers() -> None:
    x = tn.asarray([1, 2])
    x[...] = 1.5


@wrong(
    DTypeError,
    "setitem: complex128 cannot replace elements of float64 (same-kind rule)",
    operands=2,
)
def assigning_complex_numbers_to_real_ones() -> None:
    x = tn.zeros(2)
    x[1:] = tn.asarray([1j])


@wrong(
    DTypeError,
    "/=: a result of float64 cannot replace int64 (same-kind rule)",
)
def a_compound_division_of_integers() -> None:
    x = tn.asarray([1, 2])
    x /= 2


@wrong(
    TypeError,
    "float: complex numbers have two parts",
)
def a_float_of_a_complex_number() -> None:
    float(tn.asarray(1j))


@wrong(
    TypeError,
    "int: complex numbers have two parts",
)
def an_int_of_a_complex_number() -> None:
    int(tn.asarray([1 + 0j]))


@wrong(
    TypeError,
    "index: float64 is not an integer",
)
def an_index_from_a_float() -> None:
    range(tn.asarray(3.0))


@wrong(
    TypeError,
    "unhashable type: 'tenfold.Array'",
    operands=0,
    remedy=True,
)
def an_array_as_a_key() -> None:
    {tn.zeros(3): 1}


@wrong(
    TypeError,
    "len: an array without axes has no length",
    operands=0,
)
def the_length_of_no_axes() -> None:
    len(tn.asarray(1.0))


@wrong(
    TypeError,
    "len: an array without axes has no length",
    operands=0,
)
def iterating_over_no_axes() -> None:
    list(tn.asarray(1.0))


@wrong(
    RunError,
    "float: strict_sync refuses an implicit wait",
)
def an_implicit_wait_where_that_is_refused() -> None:
    x = tn.zeros(()) + 1
    with tn.options(strict_sync=True):
        float(x)


@wrong(
    DTypeError,
    "inv: linear algebra does not support float16",
)
def inverting_a_matrix_of_truth_values_in_half() -> None:
    tn.linalg.inv(tn.zeros((2, 2), dtype=tn.float16))


@wrong_values(
    np.linalg.LinAlgError,
    "inv: Singular matrix: x, float64 (2, 2) (written at {place})",
    remedy=True,
)
def inverting_a_singular_matrix() -> tn.Array:
    x = tn.zeros((2, 2)) + 1
    return tn.linalg.inv(x)


@wrong_values(
    np.linalg.LinAlgError,
    "solve: Singular matrix: x1, float64 (2, 2) (written at {place})",
    remedy=True,
)
def solving_with_a_singular_matrix() -> tn.Array:
    x = tn.zeros((2, 2)) * 3
    return tn.linalg.solve(x, tn.ones((2, 1)))


@wrong_values(
    np.linalg.LinAlgError,
    "cholesky: Matrix is not positive definite: x, float64 (3, 3) (written at {place})",
    remedy=True,
)
def the_cholesky_factor_of_a_negative_matrix() -> tn.Array:
    x = -tn.eye(3)
    return tn.linalg.cholesky(x)


@wrong_values(
    np.linalg.LinAlgError,
    "triangular_solve: Singular matrix: x1, float64 (2, 2) (written at {place})",
    remedy=True,
)
def substituting_with_a_zero_on_the_diagonal() -> tn.Array:
    x = tn.zeros((2, 2)) * 3
    return tn.linalg.triangular_solve(x, tn.ones(2))


@wrong(DTypeError, "cross: needs numbers, not bool", operands=2)
def the_cross_product_of_truth_values() -> None:
    tn.linalg.cross(tn.zeros(3, dtype=bool), tn.zeros(3, dtype=bool))


@wrong(DTypeError, "take: indices are integers, not float64", operands=2)
def taking_at_an_index_that_is_no_number() -> None:
    tn.take(tn.zeros(5), tn.asarray(float("nan")))


@wrong(DTypeError, "var: correction 1j is not a real number", operands=1)
def correcting_a_variance_by_a_complex_number() -> None:
    tn.var(tn.zeros(5), correction=1j)
