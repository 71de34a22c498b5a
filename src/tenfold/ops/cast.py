"""Casts: the operation `astype`, and conversions of elements for kernels.

Takes arrays or elements, hands them on in another dtype. Each conversion gives the values that
`core/cast_values.py` defines.

>>> import tenfold as tn
>>> astype(tn.asarray([3.7, -3.7, 1e20, np.nan]), np.dtype("int32")).tolist()
[3, -3, 2147483647, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.cast_values import cast_values
from tenfold.core.op import BoundCall, Inferred, Kind
from tenfold.core.op_decorators import array, operation
from tenfold.core.scalar_ir import UNSIGNED, Body, ComplexElement, Element, Operand
from tenfold.core.structure import cast_structure
from tenfold.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT32,
    FLOAT64,
    HALF_DTYPES,
    REAL_DTYPES,
    canonical,
    kind_of,
)
from tenfold.errors import DTypeError, UnsupportedError
from tenfold.settings import checked_device


def convert(x: Array, dtype: np.dtype) -> Array:
    """Return `x` in `dtype`: itself where it has it, which takes no node."""
    return x if x.dtype == dtype else astype(x, dtype)


def constant_element(k: Body, value: complex, dtype: np.dtype) -> Operand:
    """Return a Python scalar as a constant of `dtype`, with tenfold's meaning of a cast."""
    if dtype in REAL_DTYPES:
        part_dtype, complex_value = REAL_DTYPES[dtype], complex(value)
        return ComplexElement(
            k.constant(complex_value.real, part_dtype), k.constant(complex_value.imag, part_dtype)
        )
    if dtype == BOOL:
        return k.constant(value != 0, dtype)
    number = value if isinstance(value, int) else value.real
    if dtype == BFLOAT16:
        number = float(cast_values(np.asarray(number, FLOAT64), dtype))
    return k.constant(number, dtype)


def convert_element(k: Body, x: Operand, dtype: np.dtype) -> Operand:
    """Return an element in another dtype as `cast_values` does: with one rounding, saturated."""
    if isinstance(x, ComplexElement):
        if dtype == BOOL:
            return (x.real != 0) | (x.imaginary != 0)
        return ComplexElement(
            k.convert(x.real, REAL_DTYPES[dtype]), k.convert(x.imaginary, REAL_DTYPES[dtype])
        )
    if dtype in REAL_DTYPES:
        part_dtype = REAL_DTYPES[dtype]
        return ComplexElement(_convert_real(k, x, part_dtype), k.constant(0.0, part_dtype))
    return _convert_real(k, x, dtype)


def _convert_real(k: Body, x: Element, dtype: np.dtype) -> Element:
    """As converted_element, between real dtypes."""
    if x.dtype == dtype:
        return x
    if x.dtype in HALF_DTYPES:
        x = k.convert(x, FLOAT32)
    kinds = kind_of(x.dtype), kind_of(dtype)
    if dtype in HALF_DTYPES:
        return round_to_half(k, x, dtype)
    if kinds[0] == "f" and kinds[1] in "iu":
        return _saturate_element(k, x, dtype)
    if kinds[0] in "iu" and kinds[1] == "f" and x.dtype.itemsize == 8:
        return k.convert(
            _int64_to_float64(k, x if dtype == FLOAT64 else _round_to_sticky_bit(k, x)), dtype
        )
    return k.convert(x, dtype)


def round_to_half(k: Body, x: Element, dtype: np.dtype) -> Element:
    """Return an element as a half type, rounded once: as `cast_values`, by a float32 to odd."""
    if kind_of(x.dtype) == "b" or x.dtype.itemsize < 4 or x.dtype == FLOAT32:
        return k.convert(k.convert(x, FLOAT32), dtype)
    is_wide_integer = x.dtype.itemsize == 8 and kind_of(x.dtype) != "f"
    exact = (
        _int64_to_float64(k, _round_to_sticky_bit(k, x))
        if is_wide_integer
        else k.convert(x, FLOAT64)
    )
    rounded = k.convert(exact, FLOAT32)
    rounded_exact = k.convert(rounded, FLOAT64)
    bits = k.bits(rounded, UNSIGNED[4])
    towards_zero = k.select(k.abs(rounded_exact) > k.abs(exact), bits - 1, bits)
    inexact = (rounded_exact < exact) | (exact < rounded_exact)
    odd_bits = k.select(inexact, towards_zero | 1, bits)
    return k.convert(k.bits(odd_bits, FLOAT32), dtype)


def _round_to_sticky_bit(k: Body, x: Element) -> Element:
    """Return an integer of 64 bits that is a float64, and rounds to shorter floats as `x` does.

    One sticky bit tells whether the bits beyond a float64's precision are all 0.
    """
    bound = 2**53
    is_exact = x < bound if kind_of(x.dtype) == "u" else (x < bound) & (x > -bound)
    return k.select(is_exact | ((x & 0xFFF) == 0), x, x & -0x1000 | 0x800)


def _int64_to_float64(k: Body, x: Element) -> Element:
    """Return an integer of 64 bits as a float64, rounded once: by halves, as the last bits of
    floats that are large; processors before AVX-512 convert no packets of such integers.
    """
    offset = 1.5 * 2.0**52
    high = k.bits((x >> 32) + k.bits(k.constant(offset, FLOAT64), x.dtype), FLOAT64) - offset
    offset = 2.0**52
    low = k.bits((x & 0xFFFFFFFF) | k.bits(k.constant(offset, FLOAT64), x.dtype), FLOAT64) - offset
    return high * 2.0**32 + low


def float64_to_int64(k: Body, x: Element, dtype: np.dtype) -> Element:
    """Return a whole float64 as an integer of 64 bits, modulo 2**64."""
    high = k.floor(x * 2.0**-32)
    low = k.bits(x - high * 2.0**32 + 2.0**52, dtype) & 0xFFFFFFFF
    return (k.bits(high + 1.5 * 2.0**52, dtype) << 32) | low


def _saturate_element(k: Body, x: Element, dtype: np.dtype) -> Element:
    """As `cast_values`, from a float to an integer."""
    limits = np.iinfo(dtype)
    top = x >= 2.0 ** (limits.bits - (limits.min < 0))
    bottom = x < float(limits.min)
    in_range = k.select(top | bottom | (x != x), 0.0, x)
    if limits.bits == 64:
        result = float64_to_int64(k, k.trunc(k.convert(in_range, FLOAT64)), dtype)
    else:
        result = k.convert(in_range, dtype)
    return k.select(bottom, int(limits.min), k.select(top, int(limits.max), result))


def _rule(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    (type_,) = types
    if kind_of(type_.dtype) == "c" and kind_of(dtype) not in "cb":
        raise DTypeError(
            "", f"cannot make {dtype} of {type_.dtype}", remedy="take tn.real(x) or tn.abs(x) first"
        )
    return Inferred(((type_.shape, dtype),), (type_.dtype,))


@operation(
    rule_free=True,
    bind_depends_on="ranks",
    shapes="broadcast",
    rule=_rule,
    structure=cast_structure,
    reference=cast_values,
    kernel=convert_element,
    takes_halves=True,
    kind=Kind.MAP,
    method=True,
    vjp=lambda g, y, x, dtype: (g,),
)
def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> BoundCall:
    """Return `x` in another dtype: shape (...), the dtype named.

    Floats become integers by truncation, saturated to the range, NaN as 0; integers wrap. `copy` is
    accepted for the standard's sake: values never change under a reader, so none is ever needed.
    Raises DTypeError for complex to real, UnsupportedError for another `device` than that of `x`.

    >>> import tenfold as tn
    >>> tn.astype(tn.asarray([3.7, -3.7]), tn.int32).tolist()
    [3, -3]
    """
    x = array(x)
    if device is not None and checked_device(device) != x.device:
        rule = f"a cast stays on its device, {x.device!r}, and does not go to {device!r}"
        raise UnsupportedError("", rule, remedy="move the array first, with x.to_device(...)")
    return BoundCall((x,), (canonical(dtype, "astype"),))
