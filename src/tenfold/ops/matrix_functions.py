"""Functions of matrices and equations of tensors: exponentials, square roots, products, inverses.

Takes stacks of matrices, hands on library calls (SciPy's, one for each matrix), or operations that
`tn.linalg` has.

>>> import tenfold as tn
>>> expm(tn.zeros((2, 2))).tolist()
[[1.0, 0.0], [0.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import normalize_axis, product
from tenfold.dtypes import COMPLEX64, COMPLEX128, real_part
from tenfold.errors import MatrixError, ShapeError
from tenfold.ops.cast import convert
from tenfold.ops.contract import matmul
from tenfold.ops.create import zeros_like
from tenfold.ops.joining import concat
from tenfold.ops.linalg import adjoint, computation_dtype, inv, matrix_operation, solve, square
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import reshape


def _expm_rule(types: tuple[Type, ...]) -> Inferred:
    square(types[0].shape)
    dtype = computation_dtype(types)
    return Inferred(((types[0].shape, dtype),), (dtype,))


def _expm_reference(x: np.ndarray) -> np.ndarray:
    """SciPy's, matrix by matrix, which may warn of overflows."""
    from scipy import linalg  # imported only where it is used

    result = np.empty_like(x)
    with np.errstate(all="ignore"):
        for at in np.ndindex(*x.shape[:-2]) if x.size else ():
            result[at] = linalg.expm(x[at])
    return result


def _block_matrix(g: Array, y: Array, x: Array) -> Array:
    """Return the block matrix of which a function has the cotangent of `x` beside its diagonal
    (Mathias 1996, "A chain rule for matrix functions and applications").
    """
    diagonal = adjoint(convert(x, y.dtype))
    rows = [concat([diagonal, g], axis=-1), concat([zeros_like(diagonal), diagonal], axis=-1)]
    return concat(rows, axis=-2)


def _expm_back(g: Array, y: Array, x: Array) -> tuple[Array]:
    n = x.shape[-1]
    return (expm(_block_matrix(g, y, x))[..., :n, n:],)


@matrix_operation(
    bind_depends_on="types",
    rule=_expm_rule,
    reference=_expm_reference,
    multiply_adds=lambda types: 8 * product(types[0].shape) * types[0].shape[-1],
    vjp=_expm_back,
)
def expm(x: Array, /) -> BoundCall:
    """Exponential of square matrices, the sum of x^k / k!: (..., n, n), floating dtypes.

    By scaling, squaring and Pade approximation (Al-Mohy, Higham 2009, "A new scaling and squaring
    algorithm for the matrix exponential"), about 8 n^3 multiply-adds. Raises ShapeError for
    matrices that are not square, DTypeError for halves; NaN or infinity gives NaN.

    >>> import tenfold as tn
    >>> tn.linalg.expm(tn.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return BoundCall((array(x),))


def _sqrtm_rule(types: tuple[Type, ...]) -> Inferred:
    square(types[0].shape)
    dtype = computation_dtype(types)
    result = COMPLEX64 if real_part(dtype) == real_part(COMPLEX64) else COMPLEX128
    return Inferred(((types[0].shape, result),), (dtype,))


def _sqrtm_reference(x: np.ndarray) -> np.ndarray:
    """SciPy's, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    result = np.empty(x.shape, np.result_type(x.dtype, COMPLEX64))
    with np.errstate(all="ignore"):
        for at in np.ndindex(*x.shape[:-2]) if x.size else ():
            result[at] = linalg.sqrtm(x[at])
    return result


def _sqrtm_back(g: Array, y: Array, x: Array) -> tuple[Array]:
    n = x.shape[-1]
    return (sqrtm(_block_matrix(g, y, x))[..., :n, n:],)


@matrix_operation(
    bind_depends_on="types",
    rule=_sqrtm_rule,
    reference=_sqrtm_reference,
    multiply_adds=lambda types: 14 * product(types[0].shape) * types[0].shape[-1],
    vjp=_sqrtm_back,
)
def sqrtm(x: Array, /) -> BoundCall:
    """Principal square root of square matrices, s @ s = x: (..., n, n), complex.

    The dtype is complex64 for float32 and complex64, else complex128; also where the root is real:
    then take `tn.real` of it. A singular matrix may have no root; SciPy then warns, and the result
    has no digits or NaN. By the Schur form, about 14 n^3 multiply-adds: Higham 2008, "Functions of
    matrices", algorithm 6.3. Raises ShapeError for matrices that are not square, DTypeError for
    halves.

    >>> import tenfold as tn
    >>> tn.real(tn.linalg.sqrtm(tn.asarray([[4.0, 0.0], [0.0, 9.0]]))).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return BoundCall((array(x),))


@derived(
    namespace="linalg",
    numpy=(np.linalg.multi_dot,),
    samples=[SampleCall(((2, 3), (3, 4), (4, 2))), SampleCall(((3,), (3, 4), (4,)))],
)
def multi_dot(arrays: Sequence[Array], /) -> Array:
    """Return the product of two or more matrices; the first and the last may be vectors.

    The rules choose the cheapest order, as for `a @ b @ c` (docs/algebra.md). Raises ShapeError for
    fewer than two arrays, and for shapes that do not fit.

    >>> import tenfold as tn
    >>> x = tn.ones((2, 2))
    >>> tn.linalg.multi_dot([x, x, tn.asarray([1.0, 2.0])]).tolist()
    [6.0, 6.0]
    """
    factors = [array(x) for x in arrays]
    if len(factors) < 2:
        rule = f"{len(factors)} arrays have no product"
        raise ShapeError("", rule, remedy="give two or more")
    for position, factor in enumerate(factors):
        at_end = position in (0, len(factors) - 1)
        if factor.ndim != 2 and not (factor.ndim == 1 and at_end):
            rule = f"array {position} of shape {factor.shape} is not a matrix"
            raise MatrixError("", rule, remedy="give matrices, at the ends maybe vectors")
    result: Array = fold(matmul, factors)
    return result


@derived(
    namespace="linalg",
    numpy=(np.linalg.tensorinv,),
    samples=[SampleCall(((2, 3, 6),)), SampleCall(((4, 4),), {"ind": 1})],
)
def tensorinv(x: Array, /, ind: int = 2) -> Array:
    """Return the inverse of `x` as a map from its last axes to its first `ind` ones, the axes of
    the result in the order of `x.shape[ind:] + x.shape[:ind]`.

    `tn.tensordot(inverse, x, ind)` is the identity. Raises ShapeError unless both groups have
    equally many elements, DTypeError for halves, and LinAlgError at the wait for a singular map.

    >>> import tenfold as tn
    >>> tn.linalg.tensorinv(tn.reshape(tn.eye(4) * 2.0, (2, 2, 4))).shape
    (4, 2, 2)
    """
    x = array(x)
    if not 0 < ind <= x.ndim:
        rule = f"ind {ind} does not split {x.ndim} axes"
        raise ShapeError("", rule, remedy="give the number of the first axes, 1 or more")
    matrix = reshape(x, (product(x.shape[:ind]), product(x.shape[ind:])))
    return reshape(inv(matrix), (*x.shape[ind:], *x.shape[:ind]))


@derived(
    namespace="linalg",
    numpy=(np.linalg.tensorsolve,),
    samples=[
        SampleCall(((2, 3, 6), (2, 3))),
        SampleCall(((2, 6, 3), (2, 3)), {"axes": (1,)}),
    ],
)
def tensorsolve(x1: Array, x2: Array, /, axes: Sequence[int] | None = None) -> Array:
    """Solve `tn.tensordot(x1, x, x.ndim) = x2` for x, whose axes are the last ones of `x1`.

    `axes` names axes of `x1` that go to its end first. Raises ShapeError unless x has as many
    elements as `x2`, DTypeError for halves, and LinAlgError at the wait for singular equations.

    >>> import tenfold as tn
    >>> tn.linalg.tensorsolve(tn.reshape(tn.eye(4) * 2.0, (2, 2, 4)), tn.ones((2, 2))).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    x1, x2 = array(x1), array(x2)
    if axes is not None:
        moved = [normalize_axis(axis, x1.ndim) for axis in axes]
        x1 = permute_dims(x1, (*(i for i in range(x1.ndim) if i not in moved), *moved))
    shape = x1.shape[x2.ndim :]
    if product(x1.shape) != product(shape) ** 2 or product(shape) != product(x2.shape):
        rule = f"{product(x2.shape)} equations do not determine the {product(shape)} elements"
        raise ShapeError("", f"{rule} of {shape}", remedy="give as many of both")
    matrix = reshape(x1, (product(shape), product(shape)))
    return reshape(solve(matrix, reshape(x2, (-1,))), shape)
