"""Elementwise operations of small dtypes, exhaustively: all pairs of 8 bits, all values of 16."""

from __future__ import annotations

import numpy as np
import pytest

from exact_values import expected
from grid import (
    computed,
    distance,
    elementwise_ops,
    every_combination,
    every_value,
    legal,
    same_or_close,
    shared,
    type_of,
)
from tenfold.core.cast_values import cast_values
from tenfold.core.op import Op
from tenfold.dtypes import kind_of

BYTES = ("int8", "uint8")


def name_of(op: Op) -> str:
    return op.name


def all_pairs(op: Op, first: str, second: str) -> list[np.ndarray]:
    """All 65,536 pairs; without the negative exponents of integers."""
    x, y = every_combination([every_value(first), every_value(second)])
    if op.semantics.whole_exponent:
        x, y = x[y >= 0], y[y >= 0]
    return [x, y]


def check(op: Op, names: tuple[str, ...], given: list[np.ndarray]) -> None:
    dtypes, result = op.semantics.dtypes(tuple(map(type_of, names)))
    cast = tuple(cast_values(x, dtype) for x, dtype in zip(given, dtypes, strict=True))
    same_or_close(computed(op(*map(shared, given))), expected(op, cast, result), op.accuracy)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", elementwise_ops(2), ids=name_of)
@pytest.mark.parametrize("name", BYTES)
def test_all_pairs_of_eight_bits_are_right(op: Op, name: str) -> None:
    check(op, (name, name), all_pairs(op, name, name))


@pytest.mark.parametrize(
    "op", [op for op in elementwise_ops(2) if legal(op, ("int8", "uint8"))], ids=name_of
)
def test_all_pairs_of_a_signed_and_an_unsigned_byte_are_right(op: Op) -> None:
    check(op, ("int8", "uint8"), all_pairs(op, "int8", "uint8"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", elementwise_ops(1), ids=name_of)
@pytest.mark.parametrize("name", ["bool", *BYTES, "int16", "uint16"])
def test_all_values_of_small_integers_are_right(op: Op, name: str) -> None:
    if legal(op, (name,)):
        check(op, (name,), [every_value(name)])


@pytest.mark.parametrize(
    "op", [op for op in elementwise_ops(1) if legal(op, ("float16",))], ids=name_of
)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_all_values_of_a_half_type_are_the_float32_result_rounded_once(op: Op, name: str) -> None:
    values = every_value(name)
    _, dtype = op.semantics.dtypes((type_of(name),))
    right = expected(op, (values,), dtype)
    result = computed(op(shared(values)))
    same_or_close(result, right, min(op.accuracy, 1))
    if op.accuracy and kind_of(dtype) == "f":
        # float32 is not right to the last digit: a tie may fall to the other side, rarely.
        off = distance(result, right)[~np.isnan(right)]
        assert (off != 0).mean() < 1e-3
