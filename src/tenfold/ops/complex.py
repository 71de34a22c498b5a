"""Complex numbers: conjugates, parts and views as real; real dtypes have an imaginary part of 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.dtype_rules import ResolvedDtypes, arithmetic, magnitude
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, as_stack, elementwise, operation, refuse_dtype
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import REAL_DTYPES, promote
from tenfold.errors import ShapeError
from tenfold.ops.cast import convert

COMPLEX_OF_REAL = {part: whole for whole, part in REAL_DTYPES.items()}


def _conjugate_element(_: Body, x: Operand) -> Operand:
    return ComplexElement(x.real, -x.imaginary) if isinstance(x, ComplexElement) else x


def _imaginary_element(k: Body, x: Operand) -> Element:
    return x.imaginary if isinstance(x, ComplexElement) else k.constant(0, x.dtype)


@elementwise(
    dtypes=arithmetic,
    reference=np.conjugate,
    kernel=_conjugate_element,
    takes_halves=True,
    vjp=lambda g, y, x: (conj(g),),  # type: ignore[has-type]  # below
)
def conj(x: Array, /) -> Array:
    """`x` with the sign of its imaginary part turned, element by element; the dtype of `x`.

    Real dtypes are returned as they are, bool as int8.

    >>> import tenfold as tn
    >>> tn.conj(tn.asarray([1 + 2j])).tolist()
    [(1-2j)]
    """


def _complex_dtype(types: Sequence[Type]) -> ResolvedDtypes:
    dtype = promote(types)
    return (dtype,) * len(types), COMPLEX_OF_REAL[dtype]


def _join_parts_reference(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    joined = np.empty(np.broadcast_shapes(real.shape, imag.shape), COMPLEX_OF_REAL[real.dtype])
    joined.real, joined.imag = real, imag
    return joined


@elementwise(
    dtypes=_complex_dtype,
    reference=_join_parts_reference,
    kernel=lambda _, real, imag: ComplexElement(real, imag),
    public=False,
    vjp=lambda g, y, re, im: (real(g), imag(g)),  # type: ignore[has-type]  # below
)
def join_parts(real: Array | complex, imag: Array | complex, /) -> Array:
    """Complex numbers of these parts, float32 or float64, element by element; shapes broadcast."""


def _replace_real(dtype: np.dtype) -> Callable[[Array, Any], Array]:
    if dtype not in REAL_DTYPES:
        return lambda _, values: values
    return lambda x, values: join_parts(_as_part(values, x.dtype), imag(x))


def _replace_imag(dtype: np.dtype) -> Callable[[Array, Any], Array] | None:
    if dtype not in REAL_DTYPES:
        return None
    return lambda x, values: join_parts(real(x), _as_part(values, x.dtype))


def _as_part(values: Any, dtype: np.dtype) -> Any:
    return convert(values, REAL_DTYPES[dtype]) if isinstance(values, Array) else values


def _part_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides in real elements, two for each complex number."""
    return tuple(2 * stride for stride in strides)


@elementwise(
    dtypes=magnitude,
    reference=np.real,
    kernel=lambda _, x: x.real if isinstance(x, ComplexElement) else x,
    takes_halves=True,
    numpy=(np.real,),
    replace_part=_replace_real,
    strides=_part_strides,
    vjp=lambda g, y, x: (g,),
)
def real(x: Array, /) -> Array:
    """Real part of `x`, element by element: float32 for complex64, float64 for complex128.

    It is a view: an assignment to it replaces the real parts of `x`. Real dtypes are returned as
    they are, a view of all of `x`.

    >>> import tenfold as tn
    >>> z = tn.asarray([1 + 2j, 3j])
    >>> tn.real(z).tolist()
    [1.0, 0.0]
    >>> tn.real(z)[1] = 5
    >>> z.tolist()
    [(1+2j), (5+3j)]
    """


@elementwise(
    dtypes=magnitude,
    reference=np.imag,
    kernel=_imaginary_element,
    takes_halves=True,
    numpy=(np.imag,),
    replace_part=_replace_imag,
    strides=_part_strides,
    vjp=lambda g, y, x: (g * 1j if x.dtype in REAL_DTYPES else None,),
)
def imag(x: Array, /) -> Array:
    """Imaginary part of `x`, element by element: float32 for complex64, float64 for complex128.

    It is a view: an assignment to it replaces the imaginary parts of `x`. For real dtypes it is 0
    in the dtype of `x`, and read-only.

    >>> import tenfold as tn
    >>> z = tn.asarray([1 + 2j, 3j])
    >>> tn.imag(z).tolist()
    [2.0, 3.0]
    >>> tn.imag(z)[...] = 0
    >>> z.tolist()
    [(1+0j), 0j]
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
