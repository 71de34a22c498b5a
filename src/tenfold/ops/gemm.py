"""GEMM: `alpha * op(x1) @ op(x2) + beta * x3` of matrices, stacks or vectors, one library call.

BLAS defines it (Dongarra, Du Croz, Hammarling, Duff: "A set of level 3 basic linear algebra
subprograms", ACM TOMS 16, 1990). Rules make it of sums, products, scales, transposes and conjugates
(`linear_algebra/product_rules.py`); it is not public. The scalars are operands, so that a plan is
good for all of them; only their signs are parameters. A vector is a row on the left and a column on
the right, as in `matmul`: with one it is BLAS's gemv, with two a dot product.

>>> x = np.asarray([[1.0, 2.0]])
>>> gemm.reference(x, x, np.asarray(2), np.float64(1), "N", "T", -1, 1, 1)
array([[-9.]])
>>> gemm.reference(x, x[0], "N", "N", -1, 0, 0)
array([-5.])
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.cast_values import cast_values
from tenfold.core.op import BoundCall, Contraction, Epilogue, Inferred, Kind
from tenfold.core.op_decorators import array, operation
from tenfold.core.shape_rules import Shape, broadcast, product
from tenfold.dtypes import promote

TRANSPOSED, CONJUGATED = "TC", "CJ"
"""Forms of an operand: "N" as it is, "T" transposed, "J" conjugated, "C" both. A vector is not
transposed."""


def gemm_contraction(types: tuple[Type, ...], first: str, second: str, *_: Any) -> Contraction:
    """Return the contracted and the free axes of the operands in their forms."""
    (rows, k1), (k2, columns) = (
        _matrix_axes(types[0].ndim, first, first=True),
        _matrix_axes(types[1].ndim, second, first=False),
    )
    contracted = k1 + k2
    assert types[0].shape[k1[0]] == types[1].shape[k2[0]], "rules multiply what fits"
    return Contraction(
        (contracted[:1], contracted[1:]),
        (rows, columns),
        (first in CONJUGATED, second in CONJUGATED),
    )


def _matrix_axes(ndim: int, form: str, *, first: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the row axis and the column axis of an operand in its form; a vector has only one."""
    if ndim == 1:
        assert form not in TRANSPOSED, "a vector is not transposed"
        return ((), (0,)) if first else ((0,), ())
    rows, columns = (ndim - 2,), (ndim - 1,)
    return (columns, rows) if form in TRANSPOSED else (rows, columns)


def _result_shape(types: Sequence[Type], contraction: Contraction) -> Shape:
    stack = broadcast(types[0].shape[:-2], types[1].shape[:-2])
    lengths = [
        type_.shape[axis]
        for type_, axes in zip(types[:2], contraction.free, strict=True)
        for axis in axes
    ]
    return (*stack, *lengths)


def gemm_rule(types: tuple[Type, ...], *params: Any) -> Inferred:
    """Return the Type of a gemm, and the dtypes of its operands."""
    dtype = promote(types)
    shape = _result_shape(types, gemm_contraction(types, *params))
    return Inferred(((shape, dtype),), (dtype,) * len(types))


def _multiply_adds(types: tuple[Type, ...], *params: Any) -> int:
    contraction = gemm_contraction(types, *params)
    (k,) = contraction.contracted[0]
    return product(_result_shape(types, contraction)) * types[0].shape[k]


def transpose_by_form(x: np.ndarray, form: str) -> np.ndarray:
    """Return the view of an operand that its form transposes; it does not conjugate."""
    return np.swapaxes(x, -1, -2) if form in TRANSPOSED else x


def gemm_epilogue(_first: str, _second: str, *params: Any) -> Epilogue:
    """Return the epilogue of a gemm, syrk or trmm."""
    return Epilogue(*params)


def scalars_of(
    inputs: Sequence[np.ndarray], epilogue: Epilogue, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha and beta in the dtype; beta is 0 where nothing is added."""
    scalars = []
    for factor, at in ((epilogue.sign, epilogue.alpha), (epilogue.added, epilogue.beta)):
        numbers = [
            np.conj(number) if position in epilogue.conjugated else number
            for position in range(len(inputs))[at]
            for number in [cast_values(inputs[position], dtype)]
        ]
        with np.errstate(all="ignore"):
            value = reduce(np.multiply, numbers) if numbers else np.asarray(factor, dtype)
            scalars.append(np.asarray(-value if numbers and factor < 0 else value))
    return scalars[0], scalars[1]


def split_arguments(arguments: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the operands and the params of a product; the first param is a form."""
    count = next(i for i, argument in enumerate(arguments) if isinstance(argument, str))
    return list(arguments[:count]), tuple(arguments[count:])


def gemm_reference(inputs: Sequence[np.ndarray], first: str, second: str, *params: Any) -> Any:
    """Return NumPy's value of a gemm of operands and params."""
    epilogue = Epilogue(*params)
    alpha, beta = scalars_of(inputs, epilogue, inputs[0].dtype)
    x1, x2 = (
        np.conj(transpose_by_form(x, form)) if form in CONJUGATED else transpose_by_form(x, form)
        for x, form in zip(inputs[:2], (first, second), strict=True)
    )
    result = alpha * np.matmul(x1, x2)
    if epilogue.addend is None:
        return result
    return result + beta * inputs[epilogue.addend]


def _reference(*args: Any) -> np.ndarray:
    inputs, params = split_arguments(args)
    return np.asarray(gemm_reference(inputs, *params))


@operation(
    rule=gemm_rule,
    contraction=gemm_contraction,
    epilogue=gemm_epilogue,
    reference=_reference,
    multiply_adds=_multiply_adds,
    kind=Kind.CONTRACTION,
    promotes=True,
    public=False,
)
def gemm(
    x1: Array, x2: Array, /, *scalars_and_x3: Any, forms: str = "NN", sign: int = 1, added: int = 0
) -> BoundCall:
    """Matrix product, scaled and added to: `sign * scales * op(x1) @ op(x2) + added * ... * x3`.

    `scalars_and_x3` are the scales of the product, then, if `added` is 1 or -1, x3, which
    broadcasts to the shape of the product, and its scales. `forms` has one letter for each
    operand: "N" as it is, "T" transposed, "J" conjugated, "C" both. All are of one dtype. Stacks
    broadcast; a vector is a row on the left, a column on the right.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1.0, 2.0]])
    >>> gemm(x, x, 2, forms="NT").tolist()
    [[10.0]]
    >>> gemm(x, x[0], sign=-1).tolist()
    [-5.0]
    """
    return BoundCall(
        (array(x1), array(x2), *scalars_and_x3),
        (forms[0], forms[1], sign, leading_scales(scalars_and_x3), added),
    )


def leading_scales(scalars_and_x3: Sequence[Any]) -> int:
    """Return how many scales, numbers and arrays of no axes, stand before the addend."""
    arrays = (i for i, x in enumerate(scalars_and_x3) if isinstance(x, Array) and x.ndim)
    return next(arrays, len(scalars_and_x3))
