"""SYRK and TRMM: matrix products with a symmetric result or a triangular operand.

BLAS defines them (Dongarra, Du Croz, Hammarling, Duff: "A set of level 3 basic linear algebra
subprograms", ACM TOMS 16, 1990), but that the result of syrk is whole. Rules make them
(`linear_algebra/polynomial_lowering.py`). Their params are those of gemm, then the half.
A matrix times its own transpose is "symmetric", times its adjoint "hermitian". Else the half says
which operand is triangular and which triangle of it, in its form, may be nonzero: "first lower",
"second upper", or "first either" where only the values tell. The other triangle is not used.

Multiply-adds are counted as the textbook does: n (n + 1) / 2 elements, or steps of a row.

>>> x = np.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> syrk.reference(x, x, "N", "T", 1, 0, 0, "symmetric")
array([[ 5., 11.],
       [11., 25.]])
>>> trmm.reference(x, x, "N", "N", 1, 0, 0, "first lower")
array([[ 1.,  2.],
       [15., 22.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Epilogue, Kind
from tenfold.core.op_decorators import array, operation
from tenfold.ops.gemm import (
    TRANSPOSED,
    gemm_contraction,
    gemm_epilogue,
    gemm_reference,
    gemm_rule,
    leading_scales,
    split_arguments,
)
from tenfold.ops.lu_and_triangular import common_triangle

MIN_SYRK_SIZE = (96, 64)
"""The least rows and columns for which syrk was faster than gemm (registers of 64 bytes, float32:
the largest of all dtypes)."""
MIN_TRMM_SIZE = (64, 8)
"""The least order of a triangular matrix, and rows or columns of the other, likewise for trmm. A
vector has its own kernel."""
SYMMETRIC_RESULTS = ("symmetric", "hermitian")
OPPOSITE_TRIANGLE = {"lower": "upper", "upper": "lower", "either": "either"}


def _syrk_reference(*args: Any) -> np.ndarray:
    """The lower triangle, mirrored."""
    inputs, params = split_arguments(args)
    lower = np.tril(gemm_reference(inputs, *params))
    upper = np.tril(lower, -1).T
    if Epilogue(*params[2:]).half == "symmetric":
        return np.asarray(lower + upper)
    np.fill_diagonal(lower, np.diagonal(lower).real)
    return np.asarray(lower + upper.conj())


def _syrk_multiply_adds(types: tuple[Type, ...], first: str, *_: Any) -> int:
    rows, columns = types[0].shape[::-1] if first in TRANSPOSED else types[0].shape
    return rows * (rows + 1) // 2 * columns


@operation(
    rule=gemm_rule,
    contraction=gemm_contraction,
    epilogue=gemm_epilogue,
    reference=_syrk_reference,
    multiply_adds=_syrk_multiply_adds,
    kind=Kind.CONTRACTION,
    promotes=True,
    public=False,
)
def syrk(x: Array, /, *scales: Any, forms: str = "NT", sign: int = 1) -> BoundCall:
    """Matrix times its own transpose, or adjoint: `sign * scales * op(x) @ op(x).T`, exactly
    symmetric.

    `forms` are those of `gemm` for both operands: "NT" and "TN", of complex numbers also "JC" and
    "CJ"; "NC", "CN", "TJ" and "JT" give a Hermitian result, for which the scales must be real.

    >>> import tenfold as tn
    >>> syrk(tn.asarray([[1.0, 2.0]]), 2).tolist()
    [[10.0]]
    """
    x = array(x)
    return BoundCall((x, x, *scales), (*forms, sign, len(scales), 0, half_of_forms(forms)))


def half_of_forms(forms: str) -> str:
    """Return "symmetric" or "hermitian" for a matrix that is multiplied with itself in two forms;
    nothing where it is neither.

    >>> half_of_forms("NT"), half_of_forms("CN"), half_of_forms("NN")
    ('symmetric', 'hermitian', '')
    """
    if forms in ("NT", "TN", "JC", "CJ"):
        return "symmetric"
    return "hermitian" if forms in ("NC", "CN", "TJ", "JT") else ""


def triangle(x: np.ndarray, side: str) -> np.ndarray:
    """Return a matrix with zeros outside its triangle; all of it for "either"."""
    if side == "either":
        return x
    return np.asarray(np.tril(x) if side == "lower" else np.triu(x))


def _trmm_reference(*args: Any) -> np.ndarray:
    inputs, params = split_arguments(args)
    operand_index, side = triangular_operand(Epilogue(*params[2:]).half)
    if params[operand_index] in TRANSPOSED:
        side = OPPOSITE_TRIANGLE[side]
    inputs[operand_index] = triangle(inputs[operand_index], side)
    return np.asarray(gemm_reference(inputs, *params))


def triangular_operand(half: str) -> tuple[int, str]:
    """Return which operand is triangular, and its side.

    >>> triangular_operand("second upper")
    (1, 'upper')
    """
    operand, side = half.split()
    return ("first", "second").index(operand), side


def resolve_triangle(half: str, factors: Sequence[np.ndarray]) -> str:
    """Return a half with "either" replaced by the triangle of the values; "" if the matrix is not
    triangular. The first row and the first column decide for most.
    """
    if not half.endswith("either"):
        return half
    operand_index, _ = triangular_operand(half)
    x = factors[operand_index]
    if x[:1, 1:].any():
        side = "mixed" if x[1:, :1].any() else "upper"
    else:
        side = "lower" if x[1:, :1].any() else common_triangle(x)
    return "" if side == "mixed" else half.replace("either", side)


def transposed_half(half: str) -> str:
    """Return the half of the transposed product.

    >>> transposed_half("first lower")
    'second upper'
    """
    operand, side = triangular_operand(half)
    return f"{('second', 'first')[operand]} {OPPOSITE_TRIANGLE[side]}"


def _trmm_multiply_adds(types: tuple[Type, ...], first: str, second: str, *params: Any) -> int:
    operand_index = triangular_operand(Epilogue(*params).half)[0]
    order = types[operand_index].shape[0]
    if types[1 - operand_index].ndim == 1:
        return order * (order + 1) // 2
    other_shape, form = types[1 - operand_index].shape, (first, second)[1 - operand_index]
    vectors = other_shape[(1 - operand_index) ^ (form in TRANSPOSED)]
    return order * (order + 1) // 2 * vectors


@operation(
    rule=gemm_rule,
    contraction=gemm_contraction,
    epilogue=gemm_epilogue,
    reference=_trmm_reference,
    multiply_adds=_trmm_multiply_adds,
    kind=Kind.CONTRACTION,
    promotes=True,
    public=False,
)
def trmm(
    x1: Array,
    x2: Array,
    /,
    *scalars_and_x3: Any,
    half: str = "first lower",
    forms: str = "NN",
    sign: int = 1,
    added: int = 0,
) -> BoundCall:
    """Product of two matrices, one of them triangular, scaled and added to as in `gemm`.

    `half` says which operand, in its form of `forms`, has which triangle: "first lower", "first
    upper", "first either", and "second" likewise. The rest is as in `gemm`.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1.0, 9.0], [2.0, 3.0]])  # the 9 is not used
    >>> trmm(x, tn.eye(2)).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    return BoundCall(
        (array(x1), array(x2), *scalars_and_x3),
        (forms[0], forms[1], sign, leading_scales(scalars_and_x3), added, half),
    )
