"""Determinant: the value, the sign or the log-modulus, from a matrix's factors and pivots.

Takes the factors and the pivots by their words (`Routine` says which there are), hands on LLVM text
that multiplies the diagonal, and counts powers of two separately.

>>> from tenfold.dtypes import FLOAT64
>>> Determinant("w0", "w1", "n1", (FLOAT64, FLOAT64), "m1").part
'whole'
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.codegen.gemm.emitter import advanced, carrying, times
from tenfold.codegen.lapack.diagonal_steps import diagonal, folded
from tenfold.codegen.lapack.matrix_copies import BYTES, PARTS, MatrixUnit, converted
from tenfold.codegen.llvm.loop_emitter import integer
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, literal
from tenfold.codegen.vecmath.logarithm import log
from tenfold.dtypes import FLOAT64

LARGE, SMALL, SHIFT = 400, -400, 600
"""Numbers beyond 2**400 or below 2**-400 are multiplied by 2**-600 or 2**600."""
MOST = 4
"""So many such powers of two make any number 0 or infinite."""


class Determinant(NamedTuple):
    """The determinant from the factors by columns and the pivots: the product of the diagonal, its
    sign turned by every exchange of rows; of a factor of Cholesky's, without pivots, its square.
    Powers of two are counted apart, so that no product overflows on its way.
    """

    factors: str
    pivots: str
    """ "" of Cholesky's."""
    order: str
    dtypes: tuple[np.dtype, np.dtype]
    """Of the factors, and of the result."""
    target: str
    part: str = "whole"
    """Or its "sign", or the "logarithm" of its modulus."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, dtype = unit.text, self.dtypes[0]
        parts = PARTS[dtype][1]

        def one(i: str, power: str, *product: str) -> list[str]:
            number, made = diagonal(unit, self.factors, self.order, dtype, i), list(product)
            if self.pivots:
                exchanged = self._exchanged(unit, i)
                number = [_turned(text, exchanged, part) for part in number]
            for _ in range(1 if self.pivots else 2):
                scaled, power = _scaled(text, number, power)
                made, power = _scaled(text, _product(text, made, scaled), power)
            return [power, *made]

        begun = [("i64", "0"), ("double", "1.0"), ("double", "0.0")][: 1 + parts]
        power, *product = folded(text, unit.number(self.order), begun, one)
        values = self._asked(text, product, power)
        type_ = PARTS[self.dtypes[1]][0]
        for part, value in enumerate(values):
            place = advanced(text, unit.pointer(self.target), part * BYTES[type_])
            value = converted(text, value, "double", type_)
            text.line(f"store {type_} {value}, ptr {place}, align 1")

    def _asked(self, text: SimdEmitter, product: list[str], power: str) -> list[str]:
        """What is asked of a number and the power of two that it is to be multiplied by."""
        if self.part == "whole":
            return _by_power(text, product, power)
        modulus = _modulus(text, product)
        if self.part == "sign":
            zero = text.value(f"fcmp oeq double {modulus}, 0.0")
            divisor = text.value(f"select i1 {zero}, double 1.0, double {modulus}")
            return [text.value(f"fdiv double {part}, {divisor}") for part in product]
        logarithm = text.inlined(log, Packet(modulus, FLOAT64, 1)).text
        count = text.value(f"sitofp i64 {power} to double")
        shift = literal(FLOAT64, int(np.float64(SHIFT * np.log(2)).view(np.uint64)))
        shifted = text.value(f"fmul double {count}, {shift}")
        return [text.value(f"fadd double {logarithm}, {shifted}")]

    def _exchanged(self, unit: MatrixUnit, i: str) -> str:
        """Whether the row was exchanged with another."""
        text = unit.text
        pivot = text.value(f"load i32, ptr {times(text, unit.pointer(self.pivots), i, 4)}")
        row = text.value(f"trunc i64 {integer(text, 'add', i, 1)} to i32")
        return text.value(f"icmp ne i32 {pivot}, {row}")


def _turned(text: SimdEmitter, condition: str, value: str) -> str:
    opposite = text.value(f"fneg double {value}")
    return text.value(f"select i1 {condition}, double {opposite}, double {value}")


def _product(text: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiplied(a: str, b: str) -> str:
        return text.value(f"fmul double {a}, {b}")

    if len(x) == 1:
        return [multiplied(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = text.value(f"fsub double {multiplied(a, c)}, {multiplied(b, d)}")
    return [real, text.value(f"fadd double {multiplied(a, d)}, {multiplied(b, c)}")]


def _scaled(text: SimdEmitter, number: list[str], power: str) -> tuple[list[str], str]:
    """Bring a number between the powers of two, as far as once does; count how often."""
    sizes = [text.intrinsic("llvm.fabs.f64", "double", [("double", part)]) for part in number]
    size = sizes[0]
    for other in sizes[1:]:
        greater = text.value(f"fcmp ogt double {other}, {size}")
        size = text.value(f"select i1 {greater}, double {other}, double {size}")
    large = text.value(f"fcmp ogt double {size}, {_power(LARGE)}")
    small = text.value(f"fcmp olt double {size}, {_power(SMALL)}")
    upwards = text.value(f"select i1 {small}, double {_power(SHIFT)}, double 1.0")
    factor = text.value(f"select i1 {large}, double {_power(-SHIFT)}, double {upwards}")
    up, down = (text.value(f"zext i1 {each} to i64") for each in (large, small))
    power = integer(text, "sub", integer(text, "add", power, up), down)
    return [text.value(f"fmul double {part}, {factor}") for part in number], power


def _modulus(text: SimdEmitter, number: list[str]) -> str:
    """The modulus of a number that is neither very large nor very small."""
    if len(number) == 1:
        return text.intrinsic("llvm.fabs.f64", "double", [("double", number[0])])
    real, imaginary = (text.value(f"fmul double {part}, {part}") for part in number)
    square = text.value(f"fadd double {real}, {imaginary}")
    return text.intrinsic("llvm.sqrt.f64", "double", [("double", square)])


def _power(exponent: int) -> str:
    return f"0x{(1023 + exponent) << 52:016X}"


def _by_power(text: SimdEmitter, number: list[str], power: str) -> list[str]:
    """Multiply by the powers of two that were counted apart."""
    positive = text.value(f"icmp sgt i64 {power}, 0")
    factor = text.value(f"select i1 {positive}, double {_power(SHIFT)}, double {_power(-SHIFT)}")
    count = text.intrinsic("llvm.abs.i64", "i64", [("i64", power), ("i1", "false")])
    count = text.intrinsic("llvm.smin.i64", "i64", [("i64", count), ("i64", str(MOST))])

    def one(*parts: str) -> list[str]:
        return [text.value(f"fmul double {part}, {factor}") for part in parts]

    return carrying(text, count, [("double", part) for part in number], one)
