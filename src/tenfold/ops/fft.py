"""Fourier transforms: pocketfft through `scipy.fft`, lazily, of any axes; `tn.fft`.

Takes real or complex arrays; float32 and the half types give complex64, all others complex128.
SciPy is imported when the first transform is computed; it uses the threads of the worker pool's
setting.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tenfold._native import Array, Type, Value
from tenfold.core.cast_values import cast_values
from tenfold.core.op import BoundCall, Derived, Inferred, Op, P, SampleCall
from tenfold.core.op_decorators import array, derived, operation, refuse_dtype
from tenfold.core.shape_rules import Axis, Shape, normalize_axis
from tenfold.dtypes import (
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    HALF_DTYPES,
    canonical,
    kind_of,
    real_part,
)
from tenfold.errors import DTypeError, IntegerError, ShapeError
from tenfold.ops.arange import arange
from tenfold.ops.cast import convert
from tenfold.ops.complex import conj
from tenfold.ops.indexing import index
from tenfold.ops.pad import pad
from tenfold.ops.selection import where
from tenfold.ops.tile_repeat_roll import roll
from tenfold.settings import get
from tenfold.storage import dense

NORMS = ("backward", "ortho", "forward")
TO_REAL = ("irfftn", "hfftn")
"""Transforms whose length is that of the result."""
MIN_THREADED_ELEMENTS = 1 << 15
"""Elements from which several transforms use several threads."""


def _workers(x: np.ndarray) -> int:
    return int(get("threads")) if x.size >= MIN_THREADED_ELEMENTS else 1


@cache
def _library() -> Any:
    from scipy import fft as library  # imported only where it is used

    return library


def _compute(name: str, x: np.ndarray, lengths: Shape, axes: Shape, norm: str) -> np.ndarray:
    library, workers = _library(), _workers(x)
    if len(axes) == 1:  # SciPy's functions of one axis take half the time of the others
        transform = getattr(library, name.removesuffix("n"))
        points = x.shape[axes[0]]
        default = 2 * (points - 1) if name in TO_REAL else points
        length = None if lengths[0] == default else lengths[0]  # a given one takes a microsecond
        return np.asarray(transform(x, length, axes[0], norm, workers=workers))
    return np.asarray(getattr(library, name)(x, lengths, axes, norm, workers=workers))


def _complex_reference(name: str) -> Any:
    """Return the NumPy implementation of a complex transform; SciPy refuses an axis twice."""

    def reference(x: np.ndarray, lengths: Shape, axes: Shape, norm: str) -> np.ndarray:
        if not axes:
            return x.astype(np.result_type(x, COMPLEX64))
        if len({*axes}) == len(axes):
            return _compute(name, x, lengths, axes, norm)
        for length, axis in reversed([*zip(lengths, axes, strict=True)]):
            x = _compute(name, x, (length,), (axis,), norm)
        return x

    return reference


def _from_real_reference(x: np.ndarray, lengths: Shape, axes: Shape, norm: str) -> np.ndarray:
    """The real transform of the last axis, then complex ones of the others."""
    if len({*axes}) == len(axes):
        return _compute("rfftn", x, lengths, axes, norm)
    x = _compute("rfftn", x, lengths[-1:], axes[-1:], norm)
    return np.asarray(_complex_reference("fftn")(x, lengths[:-1], axes[:-1], norm))


def _to_real_reference(x: np.ndarray, lengths: Shape, axes: Shape, norm: str) -> np.ndarray:
    """Complex transforms of all axes but the last, then the one that returns real numbers."""
    if len({*axes}) == len(axes):
        return _compute("irfftn", x, lengths, axes, norm)
    x = _complex_reference("ifftn")(x, lengths[-2::-1], axes[-2::-1], norm)  # the first axis first
    return _compute("irfftn", x, lengths[-1:], axes[-1:], norm)


def _hermitian_reference(name: str) -> Any:
    def reference(x: np.ndarray, lengths: Shape, axes: Shape, norm: str) -> np.ndarray:
        return _compute(name, x, lengths, axes, norm)

    return reference


def _is_single(dtype: np.dtype) -> bool:
    return real_part(dtype) == FLOAT32 or dtype in HALF_DTYPES


def _complex_rule(types: tuple[Type, ...], lengths: Shape, axes: Shape, norm: str) -> Inferred:
    """Complex from real or complex; each axis gets its length."""
    ((shape, dtype),) = ((type_.shape, type_.dtype) for type_ in types)
    single = _is_single(dtype)
    result = COMPLEX64 if single else COMPLEX128
    operand = result if kind_of(dtype) == "c" else FLOAT32 if single else FLOAT64
    return Inferred(((_resized(shape, lengths, axes), result),), (operand,))


def _from_real_rule(types: tuple[Type, ...], lengths: Shape, axes: Shape, norm: str) -> Inferred:
    """Complex from real; the last axis gets half its length and 1."""
    (type_,) = types
    if kind_of(type_.dtype) == "c":
        raise refuse_dtype("transforms real numbers", types, "use fft, or take tn.real first")
    single = _is_single(type_.dtype)
    halved = (*lengths[:-1], lengths[-1] // 2 + 1)
    result = _resized(type_.shape, halved, axes), COMPLEX64 if single else COMPLEX128
    return Inferred((result,), (FLOAT32 if single else FLOAT64,))


def _to_real_rule(types: tuple[Type, ...], lengths: Shape, axes: Shape, norm: str) -> Inferred:
    """Real from complex; `lengths` are those of the result."""
    (type_,) = types
    single = _is_single(type_.dtype)
    shape = _resized(type_.shape, lengths[::-1], axes[::-1])  # the last axis is the last one here
    result = shape, FLOAT32 if single else FLOAT64
    return Inferred((result,), (COMPLEX64 if single else COMPLEX128,))


def _resized(shape: Shape, lengths: Shape, axes: Shape) -> Shape:
    """Return the shape after transforms of the last axis first; an axis may be there twice."""
    result = list(shape)
    for length, axis in reversed([*zip(lengths, axes, strict=True)]):
        result[axis] = length
    return tuple(result)


def _batch_params(_: int, lengths: Shape, axes: Shape, norm: str) -> tuple[Any, ...]:
    return lengths, tuple(axis + 1 for axis in axes), norm


def _checked_norm(norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in NORMS:
        raise ShapeError("", f"norm {norm!r} is not one of {', '.join(NORMS)}", remedy="use one")
    return norm


def _checked_length(length: Any, default: int) -> int:
    """Return the length of a transform; a default is that of the array."""
    try:
        number = default if length is None else operator.index(length)
    except TypeError:
        rule = f"length {length!r} of a transform is not an int"
        raise IntegerError("", rule, remedy="give an int") from None
    if number < 1:
        rule = f"a transform of {number} points does not exist"
        raise ShapeError("", rule, remedy="give a length of 1 or more, which pads with 0")
    return number


def _one_axis(x: Any, n: int | None, axis: int, norm: str | None, hermitian: bool) -> BoundCall:
    x = array(x)
    position = normalize_axis(axis, x.ndim)
    length = x.shape[position]
    default = 2 * (length - 1) if hermitian else length
    params = (_checked_length(n, default),), (position,), _checked_norm(norm)
    return BoundCall((x,), params)


def _several_axes(
    x: Any, s: Sequence[int] | None, axes: Axis, norm: str | None, *, hermitian: bool = False
) -> BoundCall:
    x = array(x)
    if axes is None:
        positions = [*range(x.ndim)] if s is None else [*range(x.ndim - len(s), x.ndim)]
        if positions and positions[0] < 0:
            rule = f"{len(positions)} lengths do not fit an array of {x.ndim} axes"
            raise ShapeError("", rule, remedy="give at most one for each axis")
    else:
        requested = axes if isinstance(axes, Sequence) else (axes,)
        positions = [normalize_axis(axis, x.ndim) for axis in requested]
    lengths = [x.shape[axis] for axis in positions] if s is None else [*s]
    if len(lengths) != len(positions):
        rule = f"{len(lengths)} lengths do not fit {len(positions)} axes"
        raise ShapeError("", rule, remedy="give one length for each axis")
    if hermitian and not positions:
        raise ShapeError("", "needs at least one axis", remedy="name the axes")
    if hermitian and (s is None or s[-1] == -1):
        lengths[-1] = 2 * (x.shape[positions[-1]] - 1)
    checked = [
        _checked_length(x.shape[axis] if length == -1 else length, 0)
        for length, axis in zip(lengths, positions, strict=True)
    ]
    return BoundCall((x,), (tuple(checked), tuple(positions), _checked_norm(norm)))


_ADJOINT_NORMS = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _set_length(x: Array, axis: int, length: int) -> Array:
    """Return `x` cut along an axis, or padded with 0."""
    missing = length - x.shape[axis]
    if missing > 0:
        return pad(x, [(0, missing * (at == axis)) for at in range(x.ndim)])
    return index(x, (*(slice(None),) * axis, slice(0, length)))


def _transformed_back(
    g: Array, y: Array, x: Array, lengths: Shape, axes: Shape, norm: str
) -> tuple[Array]:
    """The adjoint of a transform is the inverse one, scaled; that of real numbers is real."""
    ((axis,), (length,)) = axes, lengths
    back = ifft(g, n=length, axis=axis, norm=_ADJOINT_NORMS[norm])
    return (_set_length(back, axis, x.shape[axis]),)


def _inverse_back(
    g: Array, y: Array, x: Array, lengths: Shape, axes: Shape, norm: str
) -> tuple[Array]:
    ((axis,), (length,)) = axes, lengths
    back = fft(g, n=length, axis=axis, norm=_ADJOINT_NORMS[norm])
    return (_set_length(back, axis, x.shape[axis]),)


def _to_real_back(
    g: Array, y: Array, x: Array, lengths: Shape, axes: Shape, norm: str
) -> tuple[Array]:
    """As above; each number stands for its conjugate too, but the first, and the last of an even
    length.
    """
    ((axis,), (length,)) = axes, lengths
    back = rfft(g, n=length, axis=axis, norm=_ADJOINT_NORMS[norm])
    counts = np.full(length // 2 + 1, 2.0, g.dtype)
    counts[0] = 1
    if length % 2 == 0:
        counts[-1] = 1
    column = array(counts.reshape(-1, *(1,) * (x.ndim - 1 - axis)), x)
    return (_set_length(back * column, axis, x.shape[axis]),)


def _by_axes(name: str) -> Callable[..., Array]:
    """Return the expression of a transform of several axes by those of one axis."""

    def expression(x: Array, lengths: Shape, axes: Shape, norm: str) -> Array:
        last, *others = reversed([*zip(lengths, axes, strict=True)])
        if name == "rfftn":
            x = rfft(x, *last, norm)
        if name == "irfftn":
            others.reverse()
        for pair in others if name in ("rfftn", "irfftn") else [last, *others]:
            x = (fft if name in ("fftn", "rfftn") else ifft)(x, *pair, norm)
        return irfft(x, *last, norm) if name == "irfftn" else x

    return expression


def _transform(
    numpy_function: Any, rule: Any, reference: Any, **facts: Any
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Return the decorator of a transform."""
    operands: dict[np.dtype, np.dtype] = {}
    """What each dtype is converted to."""

    def on_values(inputs: Sequence[Value], *params: Any) -> tuple[Value, ...]:
        """As the reference, without the steps of a NumPy call."""
        (x,) = inputs
        type_ = x.type
        operand = operands.get(type_.dtype)
        if operand is None:
            (operand,) = rule((type_,), *params).operands
            operands[type_.dtype] = operand
        result = reference(cast_values(dense.export(x), operand), *params)
        return (dense.adopt(np.asarray(result, order="C"), type_.device),)

    samples = [
        SampleCall(((6,),)),
        SampleCall(((3, 5),)),
        SampleCall(((2, 3, 4),), {"norm": "ortho"}),
    ]
    return operation(
        namespace="fft",
        rule=rule,
        reference=reference,
        on_values=on_values,
        bind_depends_on="types",
        rebind=_several_axes,
        batch_params=_batch_params,
        numpy=(numpy_function,),
        samples=samples,
        accuracy=64,
        accuracy_floor=8.0,
        **facts,
    )


@_transform(np.fft.fft, _complex_rule, _complex_reference("fftn"), vjp=_transformed_back)
def fft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the discrete Fourier transform of `x` along an axis, of `n` points: it is cut, or
    padded with 0. `norm` is "backward" (None), "ortho" or "forward": where 1/n stands.

    Real numbers too. complex64 for float32, complex64 and the half types, else complex128.
    Raises ShapeError for no points.

    >>> import tenfold as tn
    >>> tn.abs(tn.fft.fft(tn.asarray([1.0, -1.0, 1.0, -1.0]))).tolist()
    [0.0, 0.0, 4.0, 0.0]
    """
    return _one_axis(x, n, axis, norm, False)


@_transform(np.fft.ifft, _complex_rule, _complex_reference("ifftn"), vjp=_inverse_back)
def ifft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the inverse of `fft` along an axis.

    >>> import tenfold as tn
    >>> tn.fft.ifft(tn.asarray([3 + 0j, 0j, 0j])).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    return _one_axis(x, n, axis, norm, False)


@_transform(np.fft.rfft, _from_real_rule, _from_real_reference, vjp=_transformed_back)
def rfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the n // 2 + 1 first numbers of the transform of real `x`; the others are their
    conjugates. Raises DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.fft.rfft(tn.asarray([1.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _one_axis(x, n, axis, norm, False)


@_transform(np.fft.irfft, _to_real_rule, _to_real_reference, vjp=_to_real_back)
def irfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the inverse of `rfft`: `n` real numbers, 2 * (length - 1) if it is None.

    >>> import tenfold as tn
    >>> tn.fft.irfft(tn.asarray([3 + 0j, 0j]), n=3).tolist()
    [1.0, 1.0, 1.0]
    """
    return _one_axis(x, n, axis, norm, True)


@_transform(
    np.fft.hfft,
    _to_real_rule,
    _hermitian_reference("hfftn"),
    expression=lambda x, lengths, axes, norm: irfft(
        conj(x), lengths[0], axes[0], _ADJOINT_NORMS[norm]
    ),
)
def hfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the transform, which is real, of numbers with Hermitian symmetry, of which `x` has the
    first half.

    >>> import tenfold as tn
    >>> tn.fft.hfft(tn.asarray([1 + 0j, 1 + 0j])).tolist()
    [2.0, 0.0]
    """
    return _one_axis(x, n, axis, norm, True)


@_transform(
    np.fft.ihfft,
    _from_real_rule,
    _hermitian_reference("ihfftn"),
    expression=lambda x, lengths, axes, norm: conj(
        rfft(x, lengths[0], axes[0], _ADJOINT_NORMS[norm])
    ),
)
def ihfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> BoundCall:
    """Return the inverse of `hfft`, of real `x`: n // 2 + 1 numbers.

    >>> import tenfold as tn
    >>> tn.real(tn.fft.ihfft(tn.asarray([2.0, 0.0]))).tolist()
    [1.0, 1.0]
    """
    return _one_axis(x, n, axis, norm, False)


@_transform(np.fft.fftn, _complex_rule, _complex_reference("fftn"), expression=_by_axes("fftn"))
def fftn(
    x: Array, /, s: tuple[int, ...] | None = None, axes: Axis = None, norm: str | None = None
) -> BoundCall:
    """Return the transform along several axes, all of them if `axes` is None; `s` has a length for
    each, or for the last ones.

    >>> import tenfold as tn
    >>> tn.real(tn.fft.fftn(tn.asarray([[1.0, 2.0], [3.0, 5.0]]))).tolist()
    [[11.0, -3.0], [-5.0, 1.0]]
    """
    return _several_axes(x, s, axes, norm)


@_transform(np.fft.ifftn, _complex_rule, _complex_reference("ifftn"), expression=_by_axes("ifftn"))
def ifftn(
    x: Array, /, s: tuple[int, ...] | None = None, axes: Axis = None, norm: str | None = None
) -> BoundCall:
    """Return the inverse of `fftn`.

    >>> import tenfold as tn
    >>> tn.real(tn.fft.ifftn(tn.asarray([[4.0, 0.0], [0.0, 0.0]]))).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _several_axes(x, s, axes, norm)


@_transform(np.fft.rfftn, _from_real_rule, _from_real_reference, expression=_by_axes("rfftn"))
def rfftn(
    x: Array, /, s: tuple[int, ...] | None = None, axes: Axis = None, norm: str | None = None
) -> BoundCall:
    """Return the transform of real `x` along several axes: of the last one as `rfft`.

    >>> import tenfold as tn
    >>> tn.fft.rfftn(tn.zeros((4, 6))).shape
    (4, 4)
    """
    bound = _several_axes(x, s, axes, norm)
    if not bound.params[0]:
        raise ShapeError("", "needs at least one axis", remedy="name the axes")
    return bound


@_transform(np.fft.irfftn, _to_real_rule, _to_real_reference, expression=_by_axes("irfftn"))
def irfftn(
    x: Array, /, s: tuple[int, ...] | None = None, axes: Axis = None, norm: str | None = None
) -> BoundCall:
    """Return the inverse of `rfftn`; `s` are the lengths of the result.

    >>> import tenfold as tn
    >>> tn.fft.irfftn(tn.fft.rfftn(tn.ones((2, 2)))).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _several_axes(x, s, axes, norm, hermitian=True)


def _of_matrices(numpy_function: Any) -> Callable[[Callable[P, Array]], Derived[P]]:
    """Return the decorator of a transform along the last two axes."""
    return derived(
        namespace="fft",
        numpy=(numpy_function,),
        samples=[SampleCall(((4, 6),))],
        accuracy=64,
        accuracy_floor=8.0,
    )


@_of_matrices(np.fft.fft2)
def fft2(
    x: Array,
    /,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the transform along the last two axes.

    >>> import tenfold as tn
    >>> tn.fft.fft2(tn.zeros((3, 4, 6))).shape
    (3, 4, 6)
    """
    return fftn(x, s, axes, norm)


@_of_matrices(np.fft.ifft2)
def ifft2(
    x: Array,
    /,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the inverse of `fft2`.

    >>> import tenfold as tn
    >>> tn.fft.ifft2(tn.zeros((3, 4, 6))).shape
    (3, 4, 6)
    """
    return ifftn(x, s, axes, norm)


@_of_matrices(np.fft.rfft2)
def rfft2(
    x: Array,
    /,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the transform of real `x` along the last two axes.

    >>> import tenfold as tn
    >>> tn.fft.rfft2(tn.zeros((3, 4, 6))).shape
    (3, 4, 4)
    """
    return rfftn(x, s, axes, norm)


@_of_matrices(np.fft.irfft2)
def irfft2(
    x: Array,
    /,
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the inverse of `rfft2`.

    >>> import tenfold as tn
    >>> tn.fft.irfft2(tn.zeros((3, 4, 4))).shape
    (3, 4, 6)
    """
    return irfftn(x, s, axes, norm)


def _frequencies(numbers: Array, n: int, d: float, dtype: Any) -> Array:
    result = FLOAT64 if dtype is None else canonical(dtype, "fftfreq")
    if kind_of(result) != "f":
        raise DTypeError("", f"frequencies are real numbers, not {result}", remedy="name a float")
    return convert(numbers * (1.0 / (n * d)), result)


@derived(
    namespace="fft",
    reference=np.fft.fftfreq,
    samples=[SampleCall((), positional=(5,)), SampleCall((), {"d": 0.1}, (8,))],
)
def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return the frequencies of the `n` numbers of a transform, for samples at distances `d`: 0 and
    the positive ones, then the negative ones.

    >>> import tenfold as tn
    >>> tn.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    count = _checked_length(n, 0)
    numbers = arange(count, device=device)
    return _frequencies(
        where(numbers < (count + 1) // 2, numbers, numbers - count), count, d, dtype
    )


@derived(
    namespace="fft",
    reference=np.fft.rfftfreq,
    samples=[SampleCall((), positional=(5,)), SampleCall((), {"d": 0.1}, (8,))],
)
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return the frequencies of the n // 2 + 1 numbers of `rfft`.

    >>> import tenfold as tn
    >>> tn.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    count = _checked_length(n, 0)
    return _frequencies(arange(count // 2 + 1, device=device), count, d, dtype)


def _rolled_halves(x: Any, axes: Axis, sign: int) -> Array:
    x = array(x)
    requested = range(x.ndim) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    positions = [normalize_axis(axis, x.ndim) for axis in requested]
    if not positions:
        return x
    # the half of an odd length is rounded down before the sign
    return roll(x, tuple(sign * (x.shape[axis] // 2) for axis in positions), axis=tuple(positions))


_SHIFT_SAMPLES = [SampleCall(((5,),)), SampleCall(((3, 4),)), SampleCall(((3, 4),), {"axes": 1})]


@derived(namespace="fft", numpy=(np.fft.fftshift,), samples=_SHIFT_SAMPLES)
def fftshift(x: Array, /, axes: Axis = None) -> Array:
    """Return `x` with the number of frequency 0 in the middle of each of `axes` (all if None).

    >>> import tenfold as tn
    >>> tn.fft.fftshift(tn.asarray([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _rolled_halves(x, axes, 1)


@derived(namespace="fft", numpy=(np.fft.ifftshift,), samples=_SHIFT_SAMPLES)
def ifftshift(x: Array, /, axes: Axis = None) -> Array:
    """Return the inverse of `fftshift`.

    >>> import tenfold as tn
    >>> tn.fft.ifftshift(tn.asarray([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    return _rolled_halves(x, axes, -1)
