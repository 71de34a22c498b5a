"""SYRK and TRMM: matrix products with a symmetric result or a triangular operand.

BLAS defines them (Dongarra, Du Croz, Hammarling, Duff: "A set of level 3 basic linear algebra
subprograms", ACM TOMS 16, 1990), but that the result of syrk is whole. Rules make them
(`linear_algebra/polynomial_lowering.py`). Their params are those of gemm, then the `Half`:
a matrix times its own transpose is symmetric, times its adjoint Hermitian. Else it says which
operand is triangular, and which triangle of it, in its form, may be nonzero. The other triangle is
not used.

Multiply-adds are counted as the textbook does: n (n + 1) / 2 elements, or steps of a row.

>>> x = np.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> syrk.reference(x, x, "N", "T", 1, 0, 0, Half.SYMMETRIC)
array([[ 5., 11.],
       [11., 25.]])
>>> trmm.reference(x, x, "N", "N", 1, 0, 0, Half.FIRST_LOWER)
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
from tenfold.core.structure import HALF_OF, Half, Structure, transposed_structure
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


def _syrk_reference(*args: Any) -> np.ndarray:
    """The lower triangle, mirrored."""
    inputs, params = split_arguments(args)
    lower = np.tril(gemm_reference(inputs, *params))
    upper = np.tril(lower, -1).T
    if Epilogue(*params[2:]).half is Half.SYMMETRIC:
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


def half_of_forms(forms: str) -> Half:
    """Return the half of a matrix that is multiplied with itself in two forms.

    >>> half_of_forms("NT"), half_of_forms("CN"), half_of_forms("NN")
    ('symmetric', 'hermitian', '')
    """
    if forms in ("NT", "TN", "JC", "CJ"):
        return Half.SYMMETRIC
    return Half.HERMITIAN if forms in ("NC", "CN", "TJ", "JT") else Half.NONE


def _trmm_reference(*args: Any) -> np.ndarray:
    inputs, params = split_arguments(args)
    side, at = Epilogue(*params[2:]).half.value
    if params[at] in TRANSPOSED:
        side = transposed_structure(side)
    if side != Structure.TRIANGULAR:
        inputs[at] = (np.tril if side == Structure.LOWER else np.triu)(inputs[at])
    return np.asarray(gemm_reference(inputs, *params))


def resolve_triangle(half: Half, factors: Sequence[np.ndarray]) -> Half:
    """Return a half with the triangle of the values where only these tell it; none if the matrix is
    not triangular. The first row and the first column decide for most.
    """
    if half.side != Structure.TRIANGULAR:
        return half
    x = factors[half.operand]
    if x[:1, 1:].any():
        side = Structure.GENERAL if x[1:, :1].any() else Structure.UPPER
    else:
        side = Structure.LOWER if x[1:, :1].any() else common_triangle(x)
    return HALF_OF[side, half.operand] if side else Half.NONE


def _trmm_multiply_adds(types: tuple[Type, ...], first: str, second: str, *params: Any) -> int:
    operand_index = Epilogue(*params).half.operand
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
    half: Half = Half.FIRST_LOWER,
    forms: str = "NN",
    sign: int = 1,
    added: int = 0,
) -> BoundCall:
    """Product of two matrices, one of them triangular, scaled and added to as in `gemm`.

    `half` says which operand, in its form of `forms`, has which triangle. The rest is as in `gemm`.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1.0, 9.0], [2.0, 3.0]])  # the 9 is not used
    >>> trmm(x, tn.eye(2)).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    return BoundCall(
        (array(x1), array(x2), *scalars_and_x3),
        (forms[0], forms[1], sign, leading_scales(scalars_and_x3), added, half),
    )
