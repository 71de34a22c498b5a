"""Programs with indices out of bounds or of a wrong kind.

Table.
"""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold.errors import AxisError, DTypeError, IndexShapeError, ShapeError

from .error_table import wrong, wrong_values


@wrong(
    IndexError,
    "getitem: index 2 is out of bounds for axis 0 with length 2",
)
def an_index_out_of_bounds() -> None:
    x = tn.zeros((2, 3))
    x[2]


@wrong(
    IndexError,
    "getitem: index -4 is out of bounds for axis 1 with length 3",
)
def a_negative_index_out_of_bounds() -> None:
    x = tn.zeros((2, 3))
    x[0, -4]


@wrong(
    IndexError,
    "getitem: index 0 is out of bounds for axis 0 with length 0",
)
def an_index_into_an_empty_axis() -> None:
    x = tn.zeros((0, 3))
    x[0]


@wrong(
    IndexError,
    "getitem: 3 indices are too many for 2 axes",
)
def too_many_indices() -> None:
    x = tn.zeros((2, 3))
    x[0, 0, 0]


@wrong(
    IndexError,
    "getitem: 2 indices take 3 axes of 2: a mask takes as many as it has",
)
def a_mask_beside_an_index_for_an_axis_it_has_taken() -> None:
    x = tn.zeros((2, 3))
    x[np.ones((2, 3), bool), 0]


@wrong(
    IndexError,
    "getitem: ... stands 2 times",
)
def two_ellipses() -> None:
    x = tn.zeros((2, 3))
    x[..., ...]


@wrong(
    IndexError,
    "getitem: 1.0 of type float is not an index",
)
def an_index_that_is_a_float() -> None:
    x = tn.zeros(3)
    x[1.0]


@wrong(
    IndexError,
    "getitem: 'first' of type str is not an index",
)
def an_index_that_is_text() -> None:
    x = tn.zeros(3)
    x["first"]


@wrong(
    ShapeError,
    "getitem: the slice None:None:0 has a step of 0",
)
def a_slice_that_does_not_move() -> None:
    x = tn.zeros(3)
    x[::0]


@wrong(
    DTypeError,
    "getitem: the slice 0.5:None:None has bounds that are no ints",
)
def a_slice_of_floats() -> None:
    x = tn.zeros(3)
    x[0.5:]


@wrong(
    IndexError,
    "getitem: an array of float64 is not an index",
)
def an_array_of_floats_as_index() -> None:
    x = tn.zeros(3)
    x[tn.asarray([0.0, 1.0])]


@wrong(
    IndexError,
    "getitem: a mask of shape (3,) does not fit axes of shape (2,)",
)
def a_mask_of_another_shape() -> None:
    x = tn.zeros((2, 3))
    x[tn.asarray([True, False, True])]


@wrong(
    IndexError,
    "getitem: index 10 is out of bounds for axis 0 with length 10",
)
def a_list_of_positions_out_of_bounds() -> None:
    x = tn.zeros(10)
    x[[8, 10]]


@wrong(
    IndexShapeError,
    "getitem: shapes (2,) and (3,) do not broadcast: lengths 2 and 3 meet on axis -1",
)
def index_arrays_that_do_not_broadcast() -> None:
    x = tn.zeros((3, 3))
    x[[0, 1], [0, 1, 2]]


@wrong(
    DTypeError,
    "take: indices are integers, not float64",
    operands=2,
)
def taking_with_floats() -> None:
    tn.take(tn.zeros(3), tn.asarray([0.0]), axis=0)


@wrong(
    AxisError,
    "take: axis 1 is out of range for 1 axes",
    operands=2,
)
def taking_along_an_axis_out_of_range() -> None:
    tn.take(tn.zeros(3), tn.asarray([0]), axis=1)


@wrong(
    ShapeError,
    "take_along_axis: indices of 1 axes do not fit an array of 2",
    operands=2,
)
def taking_along_an_axis_with_shapes_that_do_not_fit() -> None:
    tn.take_along_axis(tn.zeros((2, 3)), tn.asarray([0]), axis=1)


@wrong(IndexError, "setitem: index 3 is out of bounds for axis 0 with length 3")
def assigning_to_an_element_out_of_bounds() -> None:
    x = tn.zeros(3)
    x[3] = 1.0


@wrong(IndexError, "setitem: index 7 is out of bounds for axis 0 with length 3")
def assigning_to_positions_out_of_bounds() -> None:
    x = tn.zeros(3)
    x[[0, 7]] = 1.0


@wrong(IndexError, "setitem: a mask of shape (2,) does not fit axes of shape (3,)")
def assigning_under_a_mask_of_another_shape() -> None:
    x = tn.zeros(3)
    x[tn.asarray([True, False])] = 1.0


@wrong_values(
    IndexError,
    "put_at: index 3 is out of bounds for axis 0 with length 3; use -3 to 2 (written at {place})",
)
def assigning_to_computed_positions_out_of_bounds() -> tn.Array:
    x, i = tn.zeros(3), tn.asarray([2]) + 1
    return tn.put_at(x, i, 1.0)


@wrong(ShapeError, "setitem: a view of shape (3,) repeated to (2, 3) is read-only")
def assigning_to_a_repeated_view() -> None:
    x = tn.zeros(3)
    tn.broadcast_to(x, (2, 3))[0] = 1.0


@wrong(
    TypeError,
    "delitem: elements of an array cannot be deleted",
    operands=0,
)
def deleting_an_element() -> None:
    x = tn.zeros(3)
    del x[0]


@wrong_values(
    IndexError,
    "gather: index 10 is out of bounds for axis 0 with length 10; use -10 to 9 (written "
    "at {place})",
)
def an_index_from_an_array_out_of_bounds() -> tn.Array:
    x = tn.zeros(10)
    return x[tn.asarray([8, 9]) + 1]


@wrong_values(
    IndexError,
    "gather: index 10 is out of bounds for axis 0 with length 10; use -10 to 9 (written "
    "at {place})",
)
def taking_a_position_out_of_bounds() -> tn.Array:
    x, positions = tn.zeros((10, 2)), tn.asarray([0, 5]) * 2
    return tn.take(x, positions, axis=0)


@wrong_values(
    IndexError,
    "take_along_axis: index 3 is out of bounds for axis 1 with length 3; use -3 to 2 "
    "(written at {place})",
)
def taking_along_an_axis_out_of_bounds() -> tn.Array:
    positions = tn.asarray([[0], [3]]) + 0
    return tn.take_along_axis(tn.zeros((2, 3)), positions, axis=1)


@wrong_values(
    IndexError,
    "add_at: index 3 at [1] is out of range -3 to 2 (written at {place})",
    remedy=True,
)
def adding_at_a_position_out_of_bounds() -> tn.Array:
    positions = tn.asarray([0, 3]) + 0
    return tn.add_at(tn.zeros(3), positions, 1.0)


@wrong_values(
    IndexError,
    "segment_sum: segment id 2 at [2] is out of range 0 to 1 (written at {place})",
    remedy=True,
)
def a_segment_out_of_bounds() -> tn.Array:
    ids = tn.asarray([0, 1, 2]) + 0
    return tn.segment_sum(tn.zeros(3), ids, 2)


@wrong(
    IndexError,
    "getitem: index 3 is out of bounds for axis 0 with length 3",
)
def a_numpy_index_array_out_of_bounds() -> None:
    x = tn.zeros(3)
    x[np.array([0, 3])]
