"""Programs with shapes, axes, sizes and positions that do not fit.

Table.
"""

from __future__ import annotations

import tenfold as tn
from tenfold.errors import AxisError, IntegerError, MatrixError, NumberError, ShapeError

from .error_table import wrong


@wrong(
    ShapeError,
    "add: shapes (2, 3) and (3, 2) do not broadcast: lengths 2 and 3 meet on axis -2",
    operands=2,
)
def adding_shapes_that_do_not_broadcast() -> None:
    tn.zeros((2, 3)) + tn.zeros((3, 2))


@wrong(
    ShapeError,
    "add: shapes (0, 3) and (2, 3) do not broadcast: lengths 0 and 2 meet on axis -2",
    operands=2,
)
def an_empty_axis_is_no_wildcard() -> None:
    tn.zeros((0, 3)) + tn.zeros((2, 3))


@wrong(
    ShapeError,
    "less: shapes (4,) and (5,) do not broadcast: lengths 4 and 5 meet on axis -1",
    operands=2,
)
def comparing_shapes_that_do_not_broadcast() -> None:
    x, y = tn.zeros(4), tn.zeros(5)
    tn.all(x < y)


@wrong(
    ShapeError,
    "where: shapes (2, 2) and (2,) and (3,) do not broadcast: lengths 2 and 3 meet on axis -1",
    operands=3,
)
def where_of_shapes_that_do_not_broadcast() -> None:
    condition = tn.ones((2, 2), dtype=bool)
    tn.where(condition, tn.zeros(2), tn.zeros(3))


@wrong(
    ShapeError,
    "fma: shapes (2,) and (2,) and (3,) do not broadcast: lengths 2 and 3 meet on axis -1",
    operands=3,
)
def fma_of_shapes_that_do_not_broadcast() -> None:
    tn.fma(tn.zeros(2), tn.zeros(2), tn.zeros(3))


@wrong(
    ShapeError,
    "maximum: shapes (2, 1) and (3, 2) do not broadcast: lengths 2 and 3 meet on axis -2",
    operands=2,
)
def maximum_of_shapes_that_do_not_broadcast() -> None:
    tn.maximum(tn.zeros((2, 1)), tn.zeros((3, 2)))


@wrong(
    ShapeError,
    "broadcast_to: shape (2, 3) does not broadcast to (3,) at the last axes",
)
def broadcasting_to_a_shape_that_is_too_small() -> None:
    tn.broadcast_to(tn.zeros((2, 3)), (3,))


@wrong(
    ShapeError,
    "broadcast_to: shape (3,) does not broadcast to (2, 3, 2, 2) at axis 2",
)
def broadcasting_along_the_wrong_axis() -> None:
    tn.broadcast_to(tn.zeros(3), (2, 3, 2, 2), axis=2)


@wrong(
    ShapeError,
    "broadcast_shapes: shapes (2, 3) and (4, 3) do not broadcast: lengths 2 and 4 meet on axis -2",
    operands=0,
)
def broadcasting_shapes_that_do_not_fit() -> None:
    tn.broadcast_shapes((2, 3), (4, 3))


@wrong(
    ShapeError,
    "reshape: 6 elements of shape (2, 3) do not fill shape (4, 2)",
)
def reshaping_to_another_size() -> None:
    tn.reshape(tn.zeros((2, 3)), (4, 2))


@wrong(
    ShapeError,
    "reshape: shape (-1, -1) has more than one -1",
)
def reshaping_with_two_unknown_lengths() -> None:
    tn.reshape(tn.zeros(6), (-1, -1))


@wrong(
    ShapeError,
    "reshape: 6 elements of shape (6,) do not fill shape (4, -1)",
)
def reshaping_with_an_unknown_length_that_does_not_divide() -> None:
    tn.reshape(tn.zeros(6), (4, -1))


@wrong(
    ShapeError,
    "reshape: 0 elements of shape (0, 3) do not fill shape (0, -1)",
)
def reshaping_nothing_to_an_unknown_length() -> None:
    tn.reshape(tn.zeros((0, 3)), (0, -1))


@wrong(
    ShapeError,
    "reshape: shape (-2, -3) has a negative length",
)
def reshaping_to_a_negative_length() -> None:
    tn.reshape(tn.zeros(6), (-2, -3))


@wrong(
    ShapeError,
    "reshape: shape (3, 2) read as (6,) is not a view here",
)
def reshaping_without_a_copy_where_there_is_no_view() -> None:
    x = tn.zeros((2, 3)).T
    tn.reshape(x, (6,), copy=False)


@wrong(
    ShapeError,
    "zeros: shape (4294967296, 2147483648) has more than 2**63 - 1 bytes",
    operands=0,
)
def a_shape_of_more_than_2_to_the_63_bytes() -> None:
    tn.zeros((2**32, 2**31))


@wrong(
    ShapeError,
    "multiply: shape (2147483648, 2147483648) has more than 2**63 - 1 bytes",
    operands=2,
)
def a_result_of_more_than_2_to_the_63_bytes() -> None:
    column, row = tn.zeros((2**31, 1)), tn.zeros((1, 2**31))
    column * row


@wrong(
    ShapeError,
    "ones: shape (2, -1) has a negative length",
    operands=0,
)
def a_shape_with_a_negative_length() -> None:
    tn.ones((2, -1))


@wrong(
    IntegerError,
    "zeros: shape (2.0, 3.0) is not an int or a sequence of ints",
    operands=0,
)
def a_shape_of_floats() -> None:
    tn.zeros((2.0, 3.0))


@wrong(
    ShapeError,
    "zeros: 65 axes are more than 64",
    operands=0,
)
def more_than_64_axes() -> None:
    tn.zeros((1,) * 65)


@wrong(
    ShapeError,
    "asarray: lists of 1 and 2 items stand side by side",
    operands=0,
)
def lists_of_unequal_length() -> None:
    tn.asarray([[1, 2], [3]])


@wrong(
    AxisError,
    "sum: axis 2 is out of range for 2 axes",
)
def an_axis_out_of_range() -> None:
    tn.sum(tn.zeros((2, 3)), axis=2)


@wrong(
    AxisError,
    "max: axis -3 is out of range for 2 axes",
)
def a_negative_axis_out_of_range() -> None:
    tn.max(tn.zeros((2, 3)), axis=-3)


@wrong(
    AxisError,
    "sum: axis 0 is out of range for 0 axes",
)
def an_axis_of_an_array_without_axes() -> None:
    tn.sum(tn.asarray(1.0), axis=0)


@wrong(
    ShapeError,
    "sum: axis (0, 0) names an axis twice",
)
def an_axis_named_twice() -> None:
    tn.sum(tn.zeros((2, 3)), axis=(0, 0))


@wrong(
    ShapeError,
    "mean: axis (1, -1) names an axis twice",
)
def an_axis_named_twice_from_both_ends() -> None:
    tn.mean(tn.zeros((2, 3)), axis=(1, -1))


@wrong(
    IntegerError,
    "sum: axis 1.0 is not an int",
)
def an_axis_that_is_no_int() -> None:
    tn.sum(tn.zeros((2, 3)), axis=1.0)


@wrong(
    IntegerError,
    "argmax: axis (0, 1) is not an int: a position is counted along one axis",
)
def several_axes_where_one_is_meant() -> None:
    tn.argmax(tn.zeros((2, 3)), axis=(0, 1))


@wrong(
    AxisError,
    "sum: axis 5 is out of range for 2 axes",
)
def a_method_with_an_axis_out_of_range() -> None:
    x = tn.zeros((2, 3))
    x.sum(axis=5)


@wrong(
    ShapeError,
    "cumulative_sum: an array of 2 axes has no one axis to scan",
)
def a_scan_without_an_axis_of_several() -> None:
    tn.cumulative_sum(tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "cumulative_sum: include_initial and exclusive both put the identity first",
)
def a_scan_both_exclusive_and_with_its_identity() -> None:
    tn.cumulative_sum(tn.zeros(3), include_initial=True, exclusive=True)


@wrong(
    ShapeError,
    "max: axis 0 of shape (0,) is empty and this reduction has no identity",
)
def the_largest_of_nothing() -> None:
    tn.max(tn.zeros(0))


@wrong(
    ShapeError,
    "min: axis 1 of shape (2, 0, 3) is empty and this reduction has no identity",
)
def the_smallest_along_an_empty_axis() -> None:
    tn.min(tn.zeros((2, 0, 3)), axis=1)


@wrong(
    ShapeError,
    "argmax: axis 0 of shape (0, 3) is empty and this reduction has no identity",
)
def the_position_of_the_largest_of_nothing() -> None:
    tn.argmax(tn.zeros((0, 3)), axis=0)


@wrong(
    ShapeError,
    "permute_dims: axes (0, 1) do not name each of 3 axes once",
)
def permuting_with_an_axis_missing() -> None:
    tn.permute_dims(tn.zeros((2, 3, 4)), (0, 1))


@wrong(
    ShapeError,
    "permute_dims: axes (0, -2) do not name each of 2 axes once",
)
def permuting_with_an_axis_twice() -> None:
    tn.permute_dims(tn.zeros((2, 3)), (0, -2))


@wrong(
    ShapeError,
    "matrix_transpose: an array of 1 axes is not a matrix",
)
def transposing_what_is_no_matrix() -> None:
    tn.zeros(3).mT


@wrong(
    ShapeError,
    "matrix_transpose: an array of 1 axes is not a matrix",
)
def transposing_the_matrices_of_a_vector() -> None:
    x = tn.zeros(3)
    x.mT


@wrong(
    ShapeError,
    "moveaxis: 2 axes do not go to 1 places",
)
def moving_axes_to_fewer_places() -> None:
    tn.moveaxis(tn.zeros((2, 3, 4)), (0, 1), (2,))


@wrong(
    ShapeError,
    "squeeze: axis 0 of shape (2, 1) has length 2, not 1",
)
def squeezing_an_axis_that_is_longer_than_1() -> None:
    tn.squeeze(tn.zeros((2, 1)), axis=0)


@wrong(
    AxisError,
    "expand_dims: axis 3 is out of range for 2 axes",
)
def expanding_at_an_axis_out_of_range() -> None:
    tn.expand_dims(tn.zeros(3), axis=3)


@wrong(
    ShapeError,
    "concat: shapes (2, 3) and (2, 4) of arrays 1 and 2 differ on axis 1",
    operands=2,
)
def concatenating_lengths_that_differ() -> None:
    tn.concat([tn.zeros((2, 3)), tn.zeros((2, 4))], axis=0)


@wrong(
    ShapeError,
    "concat: shapes (2, 3) and (3,) of arrays 1 and 2 differ in the number of axes",
    operands=2,
)
def concatenating_different_numbers_of_axes() -> None:
    tn.concat([tn.zeros((2, 3)), tn.zeros(3)])


@wrong(
    ShapeError,
    "concat: no array was given",
    operands=0,
)
def concatenating_nothing() -> None:
    tn.concat([])


@wrong(
    ShapeError,
    "stack: shapes (2,) and (3,) of arrays 1 and 2 differ",
    operands=2,
)
def stacking_shapes_that_differ() -> None:
    tn.stack([tn.zeros(2), tn.zeros(3)])


@wrong(
    ShapeError,
    "split: 5 positions do not make 2 equal parts",
)
def splitting_into_unequal_parts() -> None:
    tn.split(tn.zeros(5), 2)


@wrong(
    AxisError,
    "unstack: axis 0 is out of range for 0 axes",
)
def unstacking_an_array_without_axes() -> None:
    tn.unstack(tn.asarray(1.0))


@wrong(
    ShapeError,
    "crop: a part of shape (3, 3) in the middle is not inside of shape (2, 3)",
)
def cropping_beyond_the_edge() -> None:
    tn.crop(tn.zeros((2, 3)), (3, 3))


@wrong(
    ShapeError,
    "pad: pad_width -1 is negative",
)
def padding_by_a_negative_width() -> None:
    tn.pad(tn.zeros(3), -1)


@wrong(
    ShapeError,
    "repeat: repetitions -1 are negative",
)
def repeating_a_negative_number_of_times() -> None:
    tn.repeat(tn.zeros(3), -1)


@wrong(
    ShapeError,
    "matmul: inner lengths 3 and 2 differ in (2, 3) @ (2, 3)",
    operands=2,
)
def multiplying_matrices_that_do_not_fit() -> None:
    tn.zeros((2, 3)) @ tn.zeros((2, 3))


@wrong(
    ShapeError,
    "matmul: a matrix product needs at least one axis on each side",
    operands=2,
)
def multiplying_a_matrix_by_a_scalar_with_at() -> None:
    tn.zeros((2, 3)) @ tn.asarray(2.0)


@wrong(
    ShapeError,
    "matmul: shapes (2,) and (5,) do not broadcast: lengths 2 and 5 meet on axis -1",
    operands=2,
)
def products_of_stacks_that_do_not_broadcast() -> None:
    tn.matmul(tn.zeros((2, 3, 4)), tn.zeros((5, 4, 3)))


@wrong(
    ShapeError,
    "vecdot: vectors of lengths 3 and 4 meet on axis -1",
    operands=2,
)
def vecdot_of_lengths_that_differ() -> None:
    tn.vecdot(tn.zeros(3), tn.zeros(4))


@wrong(
    ShapeError,
    "tensordot: axis 1 of the first has length 3, axis 0 of the second 2",
    operands=2,
)
def tensordot_over_axes_that_do_not_fit() -> None:
    tn.tensordot(tn.zeros((2, 3)), tn.zeros((2, 3)), axes=1)


@wrong(
    ShapeError,
    "einsum: the letter 'j' has length 3 in operand 1 and 4 in operand 2",
    operands=2,
)
def einsum_with_lengths_that_differ() -> None:
    tn.einsum("ij,jk->ik", tn.zeros((2, 3)), tn.zeros((4, 5)))


@wrong(
    ShapeError,
    "einsum: the term 'i' names 1 axis, operand 1 has 2",
)
def einsum_with_too_few_subscripts() -> None:
    tn.einsum("i->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the output letter 'k' stands in no term of an operand",
)
def einsum_with_an_output_that_no_operand_has() -> None:
    tn.einsum("ij->ik", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: 'ij,jk->ik' has 2 terms for 1 operand",
)
def einsum_with_fewer_operands_than_it_names() -> None:
    tn.einsum("ij,jk->ik", tn.zeros((2, 3)))


@wrong(
    MatrixError,
    "inv: matrices of 2 x 3 are not square",
)
def inverting_what_is_not_square() -> None:
    tn.linalg.inv(tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "solve: 3 equations have a right side of 2 rows, shape (2, 1)",
    operands=2,
)
def solving_with_sides_that_do_not_fit() -> None:
    tn.linalg.solve(tn.zeros((3, 3)), tn.zeros((2, 1)))


@wrong(
    MatrixError,
    "cholesky: shape (3,) is not a matrix",
)
def the_cholesky_factor_of_a_vector() -> None:
    tn.linalg.cholesky(tn.zeros(3))


@wrong(MatrixError, "slogdet: matrices of 2 x 3 are not square")
def the_logarithm_of_the_determinant_of_a_rectangle() -> None:
    tn.linalg.slogdet(tn.zeros((2, 3)))


@wrong(MatrixError, "lu: shape (3,) is not a matrix")
def factoring_a_vector() -> None:
    tn.linalg.lu(tn.zeros(3))


@wrong(IntegerError, "matrix_power: power 0.5 is not an int")
def the_root_of_a_matrix() -> None:
    tn.linalg.matrix_power(tn.zeros((2, 2)), 0.5)  # type: ignore[arg-type]


@wrong(ShapeError, "cross: vectors of 2 and 2 components have no cross product", operands=2)
def the_cross_product_of_vectors_of_two() -> None:
    tn.linalg.cross(tn.zeros(2), tn.zeros(2))


@wrong(
    ShapeError,
    "cross: axis 0 counts from the first axis of operands of 2 and 1 axes",
    operands=2,
)
def the_cross_product_along_a_first_axis() -> None:
    tn.linalg.cross(tn.zeros((3, 3)), tn.zeros(3), axis=0)


@wrong(ShapeError, "cond: matrices of 0 x 2 have no condition")
def the_condition_of_nothing() -> None:
    tn.linalg.cond(tn.zeros((0, 2)))


@wrong(ShapeError, "matrix_rank: rtol of shape (2,) is more than one for each of () matrices")
def a_rank_with_too_many_tolerances() -> None:
    tn.linalg.matrix_rank(tn.zeros((2, 2)), rtol=tn.ones(2))


@wrong(ShapeError, "lstsq: 3 equations have a right side of 2 rows, shape (2,)", operands=2)
def fitting_too_few_values() -> None:
    tn.linalg.lstsq(tn.zeros((3, 2)), tn.zeros(2))


@wrong(MatrixError, "matrix_norm: shape (3,) is not a matrix")
def the_norm_of_a_matrix_of_a_vector() -> None:
    tn.linalg.matrix_norm(tn.zeros(3))


@wrong(ShapeError, "assume: 'banded' is not a structure")
def declaring_what_nobody_knows() -> None:
    tn.assume(tn.zeros((2, 2)), "banded")


@wrong(
    ShapeError,
    "trace: an array of 1 axes has no diagonal",
)
def the_trace_of_a_vector() -> None:
    tn.linalg.trace(tn.zeros(3))


@wrong(
    ShapeError,
    "segment_sum: segment_ids of shape (3,) do not name the rows of shape (4, 2)",
    operands=2,
)
def segments_that_do_not_name_each_row() -> None:
    tn.segment_sum(tn.zeros((4, 2)), tn.asarray([0, 1, 1]), 2)


@wrong(
    ShapeError,
    "bool: an array of shape (2,) is not a single number",
)
def the_truth_of_several_elements() -> None:
    x = tn.asarray([1, 2])
    bool(x > 1)


@wrong(
    ShapeError,
    "bool: an array of shape (2,) is not a single number",
)
def a_not_of_several_elements() -> bool:
    x = tn.asarray([1, 2])
    return not x


@wrong(
    NumberError,
    "float: an array of shape (2,) is not a single number",
)
def a_float_of_several_elements() -> None:
    float(tn.asarray([1.0, 2.0]))


@wrong(
    ShapeError,
    "item: 2 elements are not one",
)
def an_item_of_several_elements() -> None:
    tn.asarray([1.0, 2.0]).item()


@wrong(
    ShapeError,
    "+=: a result of shape (3, 2, 2) cannot replace shape (2, 2)",
)
def a_compound_assignment_that_would_change_the_shape() -> None:
    x = tn.zeros((2, 2))
    x += tn.zeros((3, 2, 2))


@wrong(
    ShapeError,
    "setitem: a value of shape (2,) does not broadcast to the target's shape (3,)",
    operands=2,
)
def assigning_too_few_elements() -> None:
    x = tn.zeros((2, 3))
    x[0] = [1.0, 2.0]


@wrong(
    ShapeError,
    "assign: a value of shape (3,) does not broadcast to the target's shape (2, 2)",
    operands=2,
)
def a_saver_that_does_not_broadcast() -> None:
    x = tn.zeros((2, 2))
    tn.assign(x, [1.0, 2.0, 3.0])


@wrong(
    ShapeError,
    "add: shapes (2, 2) and (3, 3) do not broadcast: lengths 2 and 3 meet on axis -2",
    operands=2,
)
def a_compound_assignment_that_does_not_broadcast() -> None:
    x = tn.zeros((2, 2))
    x += tn.zeros((3, 3))


@wrong(ShapeError, "permute_dims: axes 1 is not a sequence of ints", operands=1)
def permuting_by_a_number() -> None:
    tn.permute_dims(tn.zeros((2, 3)), 1)


@wrong(ShapeError, "crop: start 1 is not a sequence of ints", operands=1)
def cropping_from_a_number() -> None:
    tn.crop(tn.zeros((2, 3)), (1, 1), start=1)


@wrong(IntegerError, "diff: n 1.5 is not an int", operands=1)
def taking_one_and_a_half_differences() -> None:
    tn.diff(tn.zeros(3), n=1.5)


@wrong(IntegerError, "segment_sum: num_segments None is not an int", operands=2)
def summing_segments_without_their_number() -> None:
    tn.segment_sum(tn.zeros(3), tn.asarray([0, 0, 1]), None)


@wrong(ShapeError, "take: indices [[1, 2], [3]] have rows of different lengths", operands=1)
def taking_at_ragged_indices() -> None:
    tn.take(tn.zeros(5), [[1, 2], [3]])
