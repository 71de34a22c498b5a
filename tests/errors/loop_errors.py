"""Programs with wrong loops and branches.

Table.
"""

from __future__ import annotations

from typing import Any

import tenfold as tn
from tenfold.errors import DTypeError, LinAlgError, ShapeError

from .error_table import wrong, wrong_values


def add(carry: Any, x: Any) -> Any:
    return carry + x, None


@wrong(
    DTypeError,
    "tn.scan: the carry changes: carry is int64[] before a step, and float64[] after it, in add",
    operands=0,
)
def a_carry_that_begins_as_an_int() -> None:
    xs = tn.ones(3)
    tn.scan(add, 0, xs)


@wrong(
    DTypeError,
    "tn.scan: the carry changes: carry['h'][0] is float32[2] before a step, "
    "and float64[2] after it, in <lambda>",
    operands=0,
)
def a_leaf_of_a_carry_that_becomes_wider() -> None:
    h, x = tn.ones(2, dtype=tn.float32), tn.ones((3, 2))
    tn.scan(lambda c, x: ({"h": [c["h"][0] * x]}, None), {"h": [h]}, x)


@wrong(
    ShapeError,
    "tn.while_loop: the carry changes: carry is float64[2] before a step, "
    "and float64[3, 2] after it, in <lambda>",
    operands=0,
)
def a_carry_that_grows() -> None:
    x = tn.ones((3, 2))
    tn.while_loop(lambda c: tn.sum(c) < 9, lambda c: c + x, tn.ones(2))


@wrong(
    TypeError,
    "tn.while_loop: the carry is (*, *) in init, and <lambda> returned [*, *]",
    operands=0,
)
def a_carry_in_another_container() -> None:
    init = (0, 1)
    tn.while_loop(lambda c: c[0] < 9, lambda c: [c[0] + 1, c[1]], init)


@wrong(TypeError, "tn.scan: <lambda> returned an array, no pair of a carry and y", operands=0)
def a_step_without_y() -> None:
    xs = tn.ones(3)
    tn.scan(lambda carry, x: carry + x, 0.0, xs)


@wrong(
    ShapeError,
    "tn.scan: the numbers of steps differ: xs['a'] has 3 rows, xs['b'] has 4 rows",
    operands=0,
)
def rows_of_two_lengths() -> None:
    xs = {"a": tn.ones(3), "b": tn.ones(4)}
    tn.scan(lambda carry, x: (carry + x["a"], None), 0.0, xs)


@wrong(ShapeError, "tn.scan: the numbers of steps differ: xs has 3 rows, length is 4", operands=0)
def a_length_that_is_none_of_the_rows() -> None:
    xs = tn.ones(3)
    tn.scan(add, 0.0, xs, length=4)


@wrong(ShapeError, "tn.scan: neither xs nor length say how many steps there are", operands=0)
def a_scan_without_an_end() -> None:
    tn.scan(add, 0.0)


@wrong(ShapeError, "tn.scan: length -1 is negative", operands=0)
def fewer_than_no_steps() -> None:
    tn.scan(add, 0.0, length=-1)


@wrong(TypeError, "tn.scan: length 2.5 is not an int", operands=0)
def half_a_step() -> None:
    tn.scan(add, 0.0, length=2.5)  # type: ignore[arg-type]


@wrong(ShapeError, "tn.scan: xs has no axis to go along")
def rows_of_a_number() -> None:
    tn.scan(add, 0.0, 3.0)


@wrong(DTypeError, "tn.scan: init['name'] is a str, not an array", operands=0)
def text_in_a_carry() -> None:
    tn.scan(add, {"name": "x"}, length=2)


@wrong(TypeError, "tn.scan: int is not a function", operands=0)
def a_step_that_is_a_number() -> None:
    tn.scan(3, 0.0, length=2)  # type: ignore[arg-type]


@wrong(DTypeError, "tn.while_loop: what <lambda> returned is int64, no bool", operands=0)
def a_condition_that_is_a_number() -> None:
    tn.while_loop(lambda n: n, lambda n: n - 1, 5)


@wrong(
    ShapeError,
    "tn.while_loop: what <lambda> returned has shape (2,), and one truth value is wanted",
    operands=0,
)
def a_condition_of_many() -> None:
    x = tn.ones(2)
    tn.while_loop(lambda x: x < 3, lambda x: x + 1, x)


@wrong(
    TypeError,
    "tn.while_loop: what <lambda> returned is (*,), no 0-d array of bool",
    operands=0,
)
def a_condition_in_a_tuple() -> None:
    tn.while_loop(lambda x: (x < 3,), lambda x: x + 1, 0)


@wrong(
    TypeError,
    "tn.while_loop: init has no array, so that nothing could end the loop",
    operands=0,
)
def a_loop_of_nothing() -> None:
    tn.while_loop(lambda _: False, lambda carry: carry, ())


@wrong(ShapeError, "tn.cond: pred has shape (3,), and one truth value is wanted", operands=0)
def a_choice_by_many() -> None:
    x = tn.ones(3)
    tn.cond(x > 0, lambda: 1, lambda: 2)


@wrong(DTypeError, "tn.cond: pred is int64, no bool", operands=0)
def a_choice_by_a_number() -> None:
    tn.cond(1, lambda: 1, lambda: 2)


@wrong(
    DTypeError,
    "tn.cond: result['a'] is float64[2] of true_function (<lambda>), "
    "and float32[2] of false_function (<lambda>)",
    operands=0,
)
def branches_of_two_dtypes() -> None:
    x = tn.ones(2)
    tn.cond(True, lambda x: {"a": x}, lambda x: {"a": tn.astype(x, tn.float32)}, x)


@wrong(
    ShapeError,
    "tn.cond: the result is float64[2] of true_function (<lambda>), "
    "and float64[] of false_function (<lambda>)",
    operands=0,
)
def branches_of_two_shapes() -> None:
    x = tn.ones(2)
    tn.cond(True, lambda x: x, lambda x: tn.sum(x), x)


@wrong(
    TypeError,
    "tn.cond: true_function (<lambda>) returned an array, "
    "false_function (<lambda>) returned (*, None)",
    operands=0,
)
def branches_of_two_forms() -> None:
    x = tn.ones(2)
    tn.cond(True, lambda x: x, lambda x: (x, None), x)


@wrong_values(
    LinAlgError,
    "tn.scan, step 1: inv: Singular matrix: x, float64 (2, 2) (written at {place})",
    remedy=True,
)
def a_step_that_has_no_answer() -> tn.Array:
    less = tn.eye(2)
    return tn.scan(lambda m, _: (tn.linalg.inv(m) - less, None), less, length=2)[0]


@wrong_values(
    LinAlgError, "inv: Singular matrix: x, float64 (2, 2) (written at {place})", remedy=True
)
def a_branch_that_has_no_answer() -> tn.Array:
    m = tn.zeros((2, 2))
    return tn.cond(tn.asarray(True), lambda m: tn.linalg.inv(m), lambda m: m, m)
