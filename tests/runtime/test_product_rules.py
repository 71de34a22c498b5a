"""Products are verified before they are launched: every kind passes, planted mistakes are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from product_launch import product_step, scaled_step
from tenfold.core.op import Contraction
from tenfold.core.structure import Half, Structure
from tenfold.dtypes import COMPLEX128, FLOAT16, FLOAT64
from tenfold.errors import VerifyError
from tenfold.runtime.blas.product_dispatch import ProductStep
from tenfold.runtime.blas.verify_products import verify_product
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.product_forms import ProductOperand, ScaledProduct

MATRICES = Contraction(((1,), (0,)), ((0,), (1,)))


def matrix(*shape: int, dtype: np.dtype = FLOAT64) -> ProductOperand:
    return ProductOperand(shape, contiguous_strides(shape, dtype.itemsize), dtype)


def turned(x: ProductOperand) -> ProductOperand:
    return ProductOperand(x.shape[::-1], x.strides[::-1], x.dtype)


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT16, COMPLEX128], ids=str)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_products_of_any_lengths_and_strides_keep_the_rules(dtype: np.dtype, width: int) -> None:
    for m, k, n in ((1, 1, 1), (3, 5, 7), (1, 40, 9), (40, 9, 1), (200, 129, 33), (600, 600, 600)):
        x1, x2 = matrix(m, k, dtype=dtype), matrix(k, n, dtype=dtype)
        backwards = ProductOperand((m, k), (-x1.strides[0], -x1.strides[1]), x1.dtype)
        for one in (x1, turned(matrix(k, m, dtype=dtype)), backwards):
            verify_product(product_step(MATRICES, one, x2, width=width), one, x2)


def test_stacks_of_products_keep_the_rules() -> None:
    stacks = Contraction(((2,), (1,)), ((1,), (2,)))
    for count in (2, 100):
        for m, k, n in ((3, 4, 5), (1, 50, 1), (40, 40, 40)):
            x1, x2 = matrix(count, m, k), matrix(count, k, n)
            verify_product(product_step(stacks, x1, x2, width=32), x1, x2)


def test_products_to_which_something_is_added_keep_the_rules() -> None:
    x = matrix(100, 100)
    for half in Half:
        for third in (None, x):
            if half.side == Structure.TRIANGULAR or (half.is_result and third is not None):
                continue
            update = ScaledProduct(third=third, half=half)
            verify_product(scaled_step(x, x, update, width=32), x, x, third)


def another_size(step: ProductStep, name: str, value: int) -> ProductStep:
    sizes = [*step.sizes]
    sizes[step.kernel.sizes.index(name)] = value
    return replace(step, sizes=tuple(sizes))


PLANTED: dict[str, tuple[Callable[[ProductStep], ProductStep], str]] = {
    "one unit too few": (lambda x: replace(x, units=x.units - 1), "units, but"),
    "one unit too many": (lambda x: replace(x, units=x.units + 1), "units, but"),
    "ranges of no units": (lambda x: replace(x, grain=0), "ranges of 0"),
    "scratch too small": (lambda x: replace(x, scratch=x.scratch - 8), "scratch memory"),
    "a row too wide": (lambda x: another_size(x, "row of x1", 1048), "x1 is read from"),
    "a column too wide": (lambda x: another_size(x, "column of x2", 16), "x2 is read from"),
    "a row backwards": (lambda x: another_size(x, "row of x2", -800), "x2 is read from"),
    "one more row": (lambda x: another_size(x, "m", 201), "multiply-adds"),
    "operands swapped": (lambda x: replace(x, operands=(1, 0)), "is read from"),
    "a size missing": (lambda x: replace(x, sizes=x.sizes[:-1]), "sizes are read"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistake_is_found(name: str) -> None:
    plant, rule = PLANTED[name]
    x1, x2 = matrix(200, 130), matrix(130, 100)
    step = product_step(MATRICES, x1, x2, width=32)
    verify_product(step, x1, x2)
    with pytest.raises(VerifyError, match=rule):
        verify_product(plant(step), x1, x2)
