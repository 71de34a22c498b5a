"""Legacy ISA lowering: replaces instructions that processors without SSE4.1 and F16C lack.

Input: a Body and the operands of a primitive. Output: the element of its result. The primitives are
rounding to whole floats, and conversion from and to float16. LLVM would call a library for these.

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> LOWERED["rint"](body, body.load(0, FLOAT32)).dtype
dtype('float32')
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.core.scalar_ir import SIGNIFICAND, UNSIGNED, Body, Element, Instruction
from tenfold.dtypes import FLOAT16, FLOAT32

_UINT32, _UINT16 = UNSIGNED[4], UNSIGNED[2]
_INFINITY, _QUIET = 0x7F800000, 0x00400000
"""Bits of float32: infinity, and the quiet bit of NaN."""


def _rint(k: Body, x: Element) -> Element:
    """At 2**23 (of float64: 2**52) the last bit is worth 1: the sum with it is rounded there."""
    unit = 2.0 ** SIGNIFICAND[x.dtype]
    magnitude = k.abs(x)
    return k.select(magnitude < unit, k.copysign((magnitude + unit) - unit, x), x)


def _floor(k: Body, x: Element) -> Element:
    rounded = _rint(k, x)
    return k.copysign(k.select(rounded > x, rounded - 1.0, rounded), x)


def _ceil(k: Body, x: Element) -> Element:
    rounded = _rint(k, x)
    return k.copysign(k.select(rounded < x, rounded + 1.0, rounded), x)


def _trunc(k: Body, x: Element) -> Element:
    return k.copysign(_floor(k, k.abs(x)), x)


def _from_half(k: Body, x: Element) -> Element:
    """Shift the significand to float32's position; a product rebiases the exponent, exactly."""
    bits = k.convert(k.bits(x, _UINT16), _UINT32)
    sign, magnitude = (bits & 0x8000) << 16, (bits & 0x7FFF) << 13
    finite = k.bits(k.bits(magnitude, FLOAT32) * 2.0**112, _UINT32)
    largest = 0x7C00 << 13
    quiet = k.select(magnitude > largest, magnitude | _QUIET, magnitude)
    return k.bits(k.select(magnitude < largest, finite, quiet | _INFINITY) | sign, FLOAT32)


def _to_half(k: Body, x: Element) -> Element:
    """To nearest, ties to even: by a carry into the upper bits, or below 2**-14 by a sum whose last
    bit is worth 2**-24.
    """
    bits = k.bits(x, _UINT32)
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    rebiased = magnitude - (112 << 23)
    normal = (rebiased + ((rebiased >> 13) & 1) + 0xFFF) >> 13
    magic = k.constant(0.5, FLOAT32)
    subnormal = k.bits(k.bits(magnitude, FLOAT32) + magic, _UINT32) - k.bits(magic, _UINT32)
    finite = k.select(magnitude < 113 << 23, subnormal, normal)
    nan = ((magnitude >> 13) & 0x3FF) | 0x7E00
    overflow = k.select(magnitude > _INFINITY, nan, 0x7C00)
    return k.bits(
        k.convert(k.select(magnitude < 143 << 23, finite, overflow) | sign, _UINT16), FLOAT16
    )


LOWERED: dict[str, Callable[[Body, Element], Element]] = {
    "rint": _rint,
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "from float16": _from_half,
    "to float16": _to_half,
}


def legacy_formula(
    instruction: Instruction, source: np.dtype
) -> Callable[[Body, Element], Element] | None:
    """Return the replacement of an instruction with this input dtype, or None to keep it."""
    if instruction.name != "convert":
        return LOWERED.get(instruction.name)
    if source == FLOAT16:
        return _from_half
    return _to_half if instruction.dtype == FLOAT16 else None
