"""Programs with wrong calls of einsum: its text, its operands, its arguments.

Table.
"""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold.errors import DeviceError, DTypeError, ForeignDTypeError, ShapeError

from .error_table import wrong


@wrong(
    TypeError,
    "einsum() missing 1 required positional argument: 'subscripts'",
    operands=0,
    remedy=False,
)
def einsum_without_anything() -> None:
    tn.einsum()


@wrong(
    ShapeError,
    "einsum: 'ij,jk->ik' has 2 terms for 0 operands",
    operands=0,
)
def einsum_text_without_operands() -> None:
    tn.einsum("ij,jk->ik")


@wrong(
    ShapeError,
    "einsum: the term '' names 0 axes, operand 1 has 2",
)
def einsum_text_that_is_empty() -> None:
    tn.einsum("", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the term '' names 0 axes, operand 1 has 2",
)
def einsum_text_that_is_an_arrow_alone() -> None:
    tn.einsum("->", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: 'ij,jk->ik' has 2 terms for 3 operands",
    operands=3,
)
def einsum_more_operands_than_terms() -> None:
    tn.einsum("ij,jk->ik", tn.zeros((2, 3)), tn.zeros((3, 4)), tn.zeros(4))


@wrong(
    ShapeError,
    "einsum: 'ij,,jk->ik' has 3 terms for 2 operands",
    operands=2,
)
def einsum_a_comma_too_many() -> None:
    tn.einsum("ij,,jk->ik", tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    ShapeError,
    "einsum: 'ij jk->ik' has 1 term for 2 operands",
    operands=2,
)
def einsum_a_comma_that_is_missing() -> None:
    tn.einsum("ij jk->ik", tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    ShapeError,
    "einsum: there is a comma in the output 'i,k'",
    operands=2,
)
def einsum_a_comma_in_the_output() -> None:
    tn.einsum("ij,jk->i,k", tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    ShapeError,
    "einsum: the term 'ijk' names 3 axes, operand 1 has 2",
)
def einsum_a_term_that_names_too_many_axes() -> None:
    tn.einsum("ijk->", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the term 'i...jk' names 3 axes, operand 2 has 2",
    operands=2,
)
def einsum_a_term_that_names_too_many_axes_beside_an_ellipsis() -> None:
    tn.einsum("...,i...jk->...", tn.zeros(2), tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the term 'i' names 1 axis, operand 1 has 0",
)
def einsum_letters_for_a_number() -> None:
    tn.einsum("i,ij->j", 2, tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the output letter 'i' stands more than once in 'ii'",
)
def einsum_an_output_letter_that_stands_twice() -> None:
    tn.einsum("ij->ii", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the letter 'i' has length 2 in operand 1 and 3 in operand 1",
)
def einsum_a_diagonal_of_what_is_not_square() -> None:
    tn.einsum("ii->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the letter 'i' has length 1 in operand 1 and 3 in operand 1",
)
def einsum_a_diagonal_does_not_broadcast() -> None:
    tn.einsum("ii->i", tn.zeros((1, 3)))


@wrong(
    ShapeError,
    "einsum: the letter 'i' has length 2 in operand 1 and 4 in operand 3",
    operands=3,
)
def einsum_lengths_that_differ_in_operands_far_apart() -> None:
    tn.einsum("i,,i->", tn.zeros(2), tn.zeros(()), tn.zeros(4))


@wrong(
    ShapeError,
    "einsum: an axis of the ellipsis has length 4 in operand 1 and 5 in operand 2",
    operands=2,
)
def einsum_axes_of_the_ellipsis_that_do_not_broadcast() -> None:
    tn.einsum("...i,...i", tn.zeros((4, 2)), tn.zeros((5, 2)))


@wrong(
    ShapeError,
    "einsum: the output 'i' lacks the ellipsis that the operands have",
)
def einsum_an_ellipsis_that_the_output_lacks() -> None:
    tn.einsum("...i->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the ellipsis stands twice in the term '...i...' of operand 1",
)
def einsum_an_ellipsis_that_stands_twice_in_a_term() -> None:
    tn.einsum("...i...->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the ellipsis stands twice in the output '...i...'",
)
def einsum_an_ellipsis_that_stands_twice_in_the_output() -> None:
    tn.einsum("...i->...i...", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '.' in '..i->i' is not part of an ellipsis '...'",
)
def einsum_an_ellipsis_of_two_dots() -> None:
    tn.einsum("..i->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '…' in '…i->i' is not a letter",
)
def einsum_an_ellipsis_of_one_character() -> None:
    tn.einsum("…i->i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: the arrow '->' stands 2 times in 'ij->i->j'",
)
def einsum_an_arrow_that_stands_twice() -> None:
    tn.einsum("ij->i->j", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '-' in 'ij-i' is not part of an arrow '->'",
)
def einsum_an_arrow_without_its_head() -> None:
    tn.einsum("ij-i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '>' in 'ij>i' is not part of an arrow '->'",
)
def einsum_an_arrow_without_its_shaft() -> None:
    tn.einsum("ij>i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '<' in 'ij<-i' is not a letter",
)
def einsum_an_arrow_to_the_left() -> None:
    tn.einsum("ij<-i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '→' in 'ij→i' is not a letter",
)
def einsum_an_arrow_of_one_character() -> None:
    tn.einsum("ij→i", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: 'λ' in 'λμ->λ' is not a letter",
)
def einsum_letters_that_are_greek() -> None:
    tn.einsum("λμ->λ", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: '0' in '01->0' is not a letter",
)
def einsum_axes_named_by_digits() -> None:
    tn.einsum("01->0", tn.zeros((2, 3)))


@wrong(
    ShapeError,
    "einsum: ';' in 'ij;jk->ik' is not a letter",
    operands=2,
)
def einsum_terms_parted_by_a_semicolon() -> None:
    tn.einsum("ij;jk->ik", tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    ShapeError,
    "einsum: '\\n' in 'ij,\\njk->ik' is not a letter",
    operands=2,
)
def einsum_a_line_break_between_terms() -> None:
    tn.einsum("ij,\njk->ik", tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    DTypeError,
    "einsum: subscripts are text, not Array",
    operands=2,
)
def einsum_lists_of_axes_between_the_operands() -> None:
    tn.einsum(tn.zeros((2, 3)), [0, 1], tn.zeros((3, 4)), [1, 2], [0, 2])


@wrong(
    DTypeError,
    "einsum: subscripts are text, not bytes",
)
def einsum_text_as_bytes() -> None:
    tn.einsum(b"ij->i", tn.zeros((2, 3)))


@wrong(
    DTypeError,
    "einsum: subscripts are text, not list",
    operands=2,
)
def einsum_text_as_a_list_of_terms() -> None:
    tn.einsum(["ij", "jk"], tn.zeros((2, 3)), tn.zeros((3, 4)))


@wrong(
    DTypeError,
    "einsum: subscripts are text, not NoneType",
)
def einsum_subscripts_that_are_none() -> None:
    tn.einsum(None, tn.zeros((2, 3)))


@wrong(
    DTypeError,
    "einsum: list is not an array or a number",
)
def einsum_a_list_as_an_operand() -> None:
    tn.einsum("i,i->", tn.zeros(2), [1, 2])


@wrong(
    ForeignDTypeError,
    "einsum: dtype object holds Python objects; the dtypes are bool, int8, int16, int32, "
    "int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128",
)
def einsum_an_operand_of_python_objects() -> None:
    tn.einsum("i,i->", tn.zeros(2), np.zeros(2, object))


@wrong(
    OverflowError,
    "einsum: Python integer 300 is out of bounds for uint8",
    operands=0,
)
def einsum_an_int_beyond_the_other_operands_dtype() -> None:
    tn.einsum("i,->i", tn.zeros(2, dtype=tn.uint8), 300)


@wrong(
    DeviceError,
    "einsum: operands are on different devices: {device}, second",
    operands=2,
)
def einsum_operands_on_two_devices() -> None:
    x, y = tn.zeros((2, 3)), tn.zeros((3, 4), device="second")
    tn.einsum("ij,jk->ik", x, y)


@wrong(
    TypeError,
    "einsum() got an unexpected keyword argument 'out'; assign the result instead, as in y = "
    "tn.einsum(x)",
    operands=0,
    remedy=False,
)
def einsum_somewhere_to_put_the_result() -> None:
    tn.einsum("ij->i", tn.zeros((2, 3)), out=tn.zeros(2))


@wrong(
    TypeError,
    "einsum() got an unexpected keyword argument 'dtype'; convert first with tn.astype",
    operands=0,
    remedy=False,
)
def einsum_a_dtype_of_the_result() -> None:
    tn.einsum("ij->i", tn.zeros((2, 3)), dtype="float32")


@wrong(
    TypeError,
    "einsum() got an unexpected keyword argument 'order'; it takes optimize=",
    operands=0,
    remedy=False,
)
def einsum_an_order_of_memory() -> None:
    tn.einsum("ij->i", tn.zeros((2, 3)), order="C")
