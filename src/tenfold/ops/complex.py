"""Complex numbers: conjugates, parts and views as real; real dtypes have an imaginary part of 0."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.dtype_rules import arithmetic, magnitude
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, as_stack, elementwise, operation, refuse_dtype
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import REAL_DTYPES
from tenfold.errors import ShapeError

COMPLEX_OF_REAL = {part: whole for whole, part in REAL_DTYPES.items()}


def _conjugate_element(_: Body, x: Operand) -> Operand:
    return ComplexElement(x.real, -x.imaginary) if isinstance(x, ComplexElement) else x


def _imaginary_element(k: Body, x: Operand) -> Element:
    return x.imaginary if isinstance(x, ComplexElement) else k.constant(0, x.dtype)


@elementwise(
    dtypes=arithmetic, reference=np.conjugate, kernel=_conjugate_element, takes_halves=True
)
def conj(x: Array, /) -> Array:
    """`x` with the sign of its imaginary part turned, element by element; the dtype of `x`.

    Real dtypes are returned as they are, bool as int8.

    >>> import tenfold as tn
    >>> tn.conj(tn.asarray([1 + 2j])).tolist()
    [(1-2j)]
    """


@elementwise(
    dtypes=magnitude,
    reference=np.real,
    kernel=lambda _, x: x.real if isinstance(x, ComplexElement) else x,
    takes_halves=True,
    numpy=(np.real,),
)
def real(x: Array, /) -> Array:
    """Real part of `x`, element by element: float32 for complex64, float64 for complex128.

    Real dtypes are returned as they are.

    >>> import tenfold as tn
    >>> tn.real(tn.asarray([1 + 2j])).tolist()
    [1.0]
    """


@elementwise(
    dtypes=magnitude,
    reference=np.imag,
    kernel=_imaginary_element,
    takes_halves=True,
    numpy=(np.imag,),
)
def imag(x: Array, /) -> Array:
    """Imaginary part of `x`, element by element: float32 for complex64, float64 for complex128.

    0 in the dtype of `x` for real dtypes.

    >>> import tenfold as tn
    >>> tn.imag(tn.asarray([1 + 2j])).tolist()
    [2.0]
    """


@elementwise(dtypes=magnitude, accuracy=2)
def abs2(x: Array, /) -> Array:
    """Square of the modulus of `x`, element by element: real, without the square root of `abs`.

    >>> import tenfold as tn
    >>> tn.abs2(tn.asarray([1 + 2j, 3 - 1j])).tolist()
    [5.0, 10.0]
    """
    return real(x) * real(x) + imag(x) * imag(x)


def _view_as_real_rule(types: tuple[Type, ...]) -> Inferred:
    (type_,) = types
    if type_.dtype not in REAL_DTYPES:
        raise refuse_dtype("needs complex numbers", types, "real numbers have one part each")
    return Inferred((((*type_.shape, 2), REAL_DTYPES[type_.dtype]),), (type_.dtype,))


def _view_as_real_reference(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], axis=-1)


def _view_as_real_inverse(parts: Array, x: Array) -> Array:
    return view_as_complex(parts)


def _view_as_real_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides in real elements, two for each complex number."""
    return (*(2 * stride for stride in strides), 1)


@operation(
    rule=_view_as_real_rule,
    reference=_view_as_real_reference,
    kind=Kind.VIEW,
    view=True,
    strides=_view_as_real_strides,
    inverse_view=_view_as_real_inverse,
    batch_params=as_stack,
    section="manipulation",
)
def view_as_real(x: Array, /) -> BoundCall:
    """Return the parts of complex `x` side by side, a view: shape (...) to (..., 2), real.

    >>> import tenfold as tn
    >>> tn.view_as_real(tn.asarray([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    return BoundCall((array(x),))


def _view_as_complex_rule(types: tuple[Type, ...]) -> Inferred:
    (type_,) = types
    if type_.dtype not in COMPLEX_OF_REAL:
        raise refuse_dtype("needs float32 or float64", types, "convert with tn.astype first")
    if not type_.shape or type_.shape[-1] != 2:
        raise ShapeError(
            "",
            f"the last axis of shape {type_.shape} does not hold two parts",
            remedy="stack the parts, as in tn.stack([real, imag], axis=-1)",
        )
    return Inferred(((type_.shape[:-1], COMPLEX_OF_REAL[type_.dtype]),), (type_.dtype,))


def _view_as_complex_reference(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(COMPLEX_OF_REAL[x.dtype])[..., 0]


def _view_as_complex_inverse(numbers: Array, x: Array) -> Array:
    return view_as_real(numbers)


def _view_as_complex_strides(shape: Shape, strides: Shape) -> Shape | None:
    """Strides in complex numbers; None where real and imaginary parts are not adjacent."""
    *outer_strides, part_stride = strides
    if part_stride != 1 or any(stride % 2 for stride in outer_strides):
        return None
    return tuple(stride // 2 for stride in outer_strides)


@operation(
    rule=_view_as_complex_rule,
    reference=_view_as_complex_reference,
    kind=Kind.VIEW,
    view=True,
    strides=_view_as_complex_strides,
    inverse_view=_view_as_complex_inverse,
    batch_params=as_stack,
    samples=[SampleCall(((3, 2),)), SampleCall(((0, 2),))],
    section="manipulation",
)
def view_as_complex(x: Array, /) -> BoundCall:
    """Return real `x` with real and imaginary parts side by side as complex numbers, a view: shape
    (..., 2) to (...).

    >>> import tenfold as tn
    >>> tn.view_as_complex(tn.asarray([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    return BoundCall((array(x),))
