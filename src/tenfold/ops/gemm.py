"""GEMM: `alpha * op(x1) @ op(x2) + beta * x3` of matrices or stacks, one library call.

BLAS defines it (Dongarra, Du Croz, Hammarling, Duff: "A set of level 3 basic linear algebra
subprograms", ACM TOMS 16, 1990). Rules make it of sums, products, scales, transposes and conjugates
(`linear_algebra/product_rules.py`); it is not public. The scalars are operands, so that a plan is
good for all of them; only their signs are parameters.

>>> x = np.asarray([[1.0, 2.0]])
>>> gemm.reference(x, x, np.asarray(2), np.float64(1), "N", "T", -1, 1, 1)
array([[-9.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Kind, Params
from tenfold.core.op_decorators import array, operation
from tenfold.core.shape_rules import Shape, broadcast, product
from tenfold.dtypes import promote
from tenfold.ops.cast import cast_values

TRANSPOSED, CONJUGATED = "TC", "CJ"
"""Forms of an operand: "N" as it is, "T" transposed, "J" conjugated, "C" both."""


def _lengths(types: Sequence[Type], params: Params) -> tuple[int, int, int]:
    """Return (m, k, n)."""
    (m, k), (inner, n) = (
        type_.shape[-2:][::-1] if form in TRANSPOSED else type_.shape[-2:]
        for type_, form in zip(types[:2], params[:2], strict=True)
    )
    assert k == inner, "rules multiply what fits"
    return m, k, n


def _stack(types: Sequence[Type]) -> Shape:
    return broadcast(types[0].shape[:-2], types[1].shape[:-2])


def gemm_rule(types: tuple[Type, ...], *params: Any) -> Inferred:
    """Return the Type of a gemm, and the dtypes of its operands."""
    m, _, n = _lengths(types, params)
    dtype = promote(types)
    return Inferred((((*_stack(types), m, n), dtype),), (dtype,) * len(types))


def _multiply_adds(types: tuple[Type, ...], *params: Any) -> int:
    m, k, n = _lengths(types, params)
    return product(_stack(types)) * m * k * n


def transpose_by_form(x: np.ndarray, form: str) -> np.ndarray:
    """Return the view of an operand that its form transposes; it does not conjugate."""
    return np.swapaxes(x, -1, -2) if form in TRANSPOSED else x


def addend_of(inputs: Sequence[np.ndarray], params: Params) -> np.ndarray | None:
    """Return x3, or None if nothing is added."""
    *_, scales, added = params
    return inputs[2 + scales] if added else None


def scalars_of(
    inputs: Sequence[np.ndarray], params: Params, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha and beta in the dtype; beta is 0 where nothing is added."""
    *_, sign, scales, added = params
    scalars = []
    for factor, operands in ((sign, inputs[2 : 2 + scales]), (added, inputs[3 + scales :])):
        numbers = [cast_values(operand, dtype) for operand in operands]
        with np.errstate(all="ignore"):
            value = reduce(np.multiply, numbers) if numbers else np.asarray(factor, dtype)
            scalars.append(np.asarray(-value if numbers and factor < 0 else value))
    return scalars[0], scalars[1]


def gemm_reference(*args: Any) -> np.ndarray:
    """Return NumPy's value of a gemm of operands and params."""
    inputs, params = args[:-5], args[-5:]
    alpha, beta = scalars_of(inputs, params, inputs[0].dtype)
    x1, x2 = (
        np.conj(transpose_by_form(x, form)) if form in CONJUGATED else transpose_by_form(x, form)
        for x, form in zip(inputs[:2], params[:2], strict=True)
    )
    result = alpha * np.matmul(x1, x2)
    x3 = addend_of(inputs, params)
    return np.asarray(result if x3 is None else result + beta * x3)


@operation(
    rule=gemm_rule,
    reference=gemm_reference,
    multiply_adds=_multiply_adds,
    accumulates_into=lambda *params: 2 + params[3] if params[4] else None,
    kind=Kind.CONTRACTION,
    promotes=True,
    public=False,
)
def gemm(
    x1: Array, x2: Array, /, *scalars_and_x3: Any, forms: str = "NN", sign: int = 1, added: int = 0
) -> BoundCall:
    """Matrix product, scaled and added to: `sign * scales * op(x1) @ op(x2) + added * ... * x3`.

    `scalars_and_x3` are the scales of the product, then, if `added` is 1 or -1, x3, which
    broadcasts to (..., m, n), and its scales. `forms` has one letter for each
    operand: "N" as it is, "T" transposed, "J" conjugated, "C" both. All are of one dtype. Stacks
    broadcast.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1.0, 2.0]])
    >>> gemm(x, x, 2, forms="NT").tolist()
    [[10.0]]
    """
    scales = next(
        (i for i, x in enumerate(scalars_and_x3) if isinstance(x, Array)), len(scalars_and_x3)
    )
    return BoundCall(
        (array(x1), array(x2), *scalars_and_x3), (forms[0], forms[1], sign, scales, added)
    )
