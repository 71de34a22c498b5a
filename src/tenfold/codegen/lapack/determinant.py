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

from tenfold.codegen.gemm.emitter import carry_loop, offset_ptr, strided_ptr
from tenfold.codegen.lapack.diagonal_steps import fori_loop, load_diagonal
from tenfold.codegen.lapack.matrix_copies import BYTES, SCALAR_PARTS, MatrixUnit, convert_scalar
from tenfold.codegen.llvm.loop_emitter import int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, literal
from tenfold.codegen.vecmath.logarithm import log
from tenfold.dtypes import FLOAT64

LARGE_EXPONENT, SMALL_EXPONENT, SHIFT_EXPONENT = 400, -400, 600
"""Numbers beyond 2**400 or below 2**-400 are multiplied by 2**-600 or 2**600."""
MAX_RESCALES = 4
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
    quantity: str = "whole"
    """Or its "sign", or the "logarithm" of its modulus."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, dtype = unit.ir, self.dtypes[0]
        parts = SCALAR_PARTS[dtype][1]

        def one(i: str, power: str, *product: str) -> list[str]:
            number, made = load_diagonal(unit, self.factors, self.order, dtype, i), list(product)
            if self.pivots:
                exchanged = self._is_exchanged(unit, i)
                number = [_negate_if(ir, exchanged, part) for part in number]
            for _ in range(1 if self.pivots else 2):
                scaled, power = _rescale(ir, number, power)
                made, power = _rescale(ir, _product(ir, made, scaled), power)
            return [power, *made]

        begun = [("i64", "0"), ("double", "1.0"), ("double", "0.0")][: 1 + parts]
        power, *product = fori_loop(ir, unit.number(self.order), begun, one)
        values = self._requested_values(ir, product, power)
        type_ = SCALAR_PARTS[self.dtypes[1]][0]
        for part, value in enumerate(values):
            place = offset_ptr(ir, unit.pointer(self.target), part * BYTES[type_])
            value = convert_scalar(ir, value, "double", type_)
            ir.line(f"store {type_} {value}, ptr {place}, align 1")

    def _requested_values(self, ir: SimdEmitter, product: list[str], power: str) -> list[str]:
        """What is asked of a number and the power of two that it is to be multiplied by."""
        if self.quantity == "whole":
            return _apply_shifts(ir, product, power)
        modulus = _modulus(ir, product)
        if self.quantity == "sign":
            zero = ir.value(f"fcmp oeq double {modulus}, 0.0")
            divisor = ir.value(f"select i1 {zero}, double 1.0, double {modulus}")
            return [ir.value(f"fdiv double {part}, {divisor}") for part in product]
        logarithm = ir.inline(log, Packet(modulus, FLOAT64, 1)).text
        count = ir.value(f"sitofp i64 {power} to double")
        shift = literal(FLOAT64, int(np.float64(SHIFT_EXPONENT * np.log(2)).view(np.uint64)))
        shifted = ir.value(f"fmul double {count}, {shift}")
        return [ir.value(f"fadd double {logarithm}, {shifted}")]

    def _is_exchanged(self, unit: MatrixUnit, i: str) -> str:
        """Whether the row was exchanged with another."""
        ir = unit.ir
        pivot = ir.value(f"load i32, ptr {strided_ptr(ir, unit.pointer(self.pivots), i, 4)}")
        row = ir.value(f"trunc i64 {int_op(ir, 'add', i, 1)} to i32")
        return ir.value(f"icmp ne i32 {pivot}, {row}")


def _negate_if(ir: SimdEmitter, condition: str, value: str) -> str:
    opposite = ir.value(f"fneg double {value}")
    return ir.value(f"select i1 {condition}, double {opposite}, double {value}")


def _product(ir: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiplied(a: str, b: str) -> str:
        return ir.value(f"fmul double {a}, {b}")

    if len(x) == 1:
        return [multiplied(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = ir.value(f"fsub double {multiplied(a, c)}, {multiplied(b, d)}")
    return [real, ir.value(f"fadd double {multiplied(a, d)}, {multiplied(b, c)}")]


def _rescale(ir: SimdEmitter, number: list[str], power: str) -> tuple[list[str], str]:
    """Bring a number between the powers of two, as far as once does; count how often."""
    sizes = [ir.intrinsic("llvm.fabs.f64", "double", [("double", part)]) for part in number]
    size = sizes[0]
    for other in sizes[1:]:
        greater = ir.value(f"fcmp ogt double {other}, {size}")
        size = ir.value(f"select i1 {greater}, double {other}, double {size}")
    large = ir.value(f"fcmp ogt double {size}, {_power_literal(LARGE_EXPONENT)}")
    small = ir.value(f"fcmp olt double {size}, {_power_literal(SMALL_EXPONENT)}")
    upwards = ir.value(f"select i1 {small}, double {_power_literal(SHIFT_EXPONENT)}, double 1.0")
    factor = ir.value(
        f"select i1 {large}, double {_power_literal(-SHIFT_EXPONENT)}, double {upwards}"
    )
    up, down = (ir.value(f"zext i1 {each} to i64") for each in (large, small))
    power = int_op(ir, "sub", int_op(ir, "add", power, up), down)
    return [ir.value(f"fmul double {part}, {factor}") for part in number], power


def _modulus(ir: SimdEmitter, number: list[str]) -> str:
    """The modulus of a number that is neither very large nor very small."""
    if len(number) == 1:
        return ir.intrinsic("llvm.fabs.f64", "double", [("double", number[0])])
    real, imaginary = (ir.value(f"fmul double {part}, {part}") for part in number)
    square = ir.value(f"fadd double {real}, {imaginary}")
    return ir.intrinsic("llvm.sqrt.f64", "double", [("double", square)])


def _power_literal(exponent: int) -> str:
    return f"0x{(1023 + exponent) << 52:016X}"


def _apply_shifts(ir: SimdEmitter, number: list[str], power: str) -> list[str]:
    """Multiply by the powers of two that were counted apart."""
    positive = ir.value(f"icmp sgt i64 {power}, 0")
    factor = ir.value(
        f"select i1 {positive}, double {_power_literal(SHIFT_EXPONENT)}, double {_power_literal(-SHIFT_EXPONENT)}"
    )
    count = ir.intrinsic("llvm.abs.i64", "i64", [("i64", power), ("i1", "false")])
    count = ir.intrinsic("llvm.smin.i64", "i64", [("i64", count), ("i64", str(MAX_RESCALES))])

    def one(*parts: str) -> list[str]:
        return [ir.value(f"fmul double {part}, {factor}") for part in parts]

    return carry_loop(ir, count, [("double", part) for part in number], one)
