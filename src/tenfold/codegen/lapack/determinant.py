"""Determinant: the value, the sign or the log-modulus, from a matrix's factors and pivots.

Input: the factors and the pivots as operand words (see `Routine`). Output: LLVM text that
multiplies the diagonal, and counts powers of two separately.

>>> from tenfold.dtypes import FLOAT64
>>> Determinant("w0", "w1", "n1", (FLOAT64, FLOAT64), "m1").quantity
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
"""This many such powers of two make any number 0 or infinite."""


class Determinant(NamedTuple):
    """The determinant from column-major factors and pivots: the product of the diagonal, negated
    by every exchange of rows. Without pivots (Cholesky) it is the square of the product. Powers
    of two are counted separately, so that no product overflows.
    """

    factors: str
    pivots: str
    """Empty for a Cholesky factor."""
    order: str
    dtypes: tuple[np.dtype, np.dtype]
    """Of the factors, and of the result."""
    target: str
    quantity: str = "whole"
    """Or its "sign", or the "logarithm" of its modulus."""

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, dtype = unit.ir, self.dtypes[0]
        component_count = SCALAR_PARTS[dtype][1]

        def multiply_element(i: str, power: str, *product: str) -> list[str]:
            element, total = load_diagonal(unit, self.factors, self.order, dtype, i), list(product)
            if self.pivots:
                exchanged = self._is_exchanged(unit, i)
                element = [_negate_if(ir, exchanged, component) for component in element]
            for _ in range(1 if self.pivots else 2):
                scaled, power = _rescale(ir, element, power)
                total, power = _rescale(ir, _product(ir, total, scaled), power)
            return [power, *total]

        initial = [("i64", "0"), ("double", "1.0"), ("double", "0.0")][: 1 + component_count]
        power, *product = fori_loop(ir, unit.number(self.order), initial, multiply_element)
        values = self._requested_values(ir, product, power)
        type_ = SCALAR_PARTS[self.dtypes[1]][0]
        for component, value in enumerate(values):
            pointer = offset_ptr(ir, unit.pointer(self.target), component * BYTES[type_])
            value = convert_scalar(ir, value, "double", type_)
            ir.line(f"store {type_} {value}, ptr {pointer}, align 1")

    def _requested_values(self, ir: SimdEmitter, product: list[str], power: str) -> list[str]:
        """Return the requested quantity of a number times a power of two."""
        if self.quantity == "whole":
            return _apply_shifts(ir, product, power)
        modulus = _modulus(ir, product)
        if self.quantity == "sign":
            zero = ir.value(f"fcmp oeq double {modulus}, 0.0")
            divisor = ir.value(f"select i1 {zero}, double 1.0, double {modulus}")
            return [ir.value(f"fdiv double {component}, {divisor}") for component in product]
        logarithm = ir.inline(log, Packet(modulus, FLOAT64, 1)).text
        count = ir.value(f"sitofp i64 {power} to double")
        shift = literal(FLOAT64, int(np.float64(SHIFT_EXPONENT * np.log(2)).view(np.uint64)))
        shifted = ir.value(f"fmul double {count}, {shift}")
        return [ir.value(f"fadd double {logarithm}, {shifted}")]

    def _is_exchanged(self, unit: MatrixUnit, i: str) -> str:
        """Return whether the row was exchanged with another."""
        ir = unit.ir
        pivot = ir.value(f"load i32, ptr {strided_ptr(ir, unit.pointer(self.pivots), i, 4)}")
        row = ir.value(f"trunc i64 {int_op(ir, 'add', i, 1)} to i32")
        return ir.value(f"icmp ne i32 {pivot}, {row}")


def _negate_if(ir: SimdEmitter, condition: str, value: str) -> str:
    negated = ir.value(f"fneg double {value}")
    return ir.value(f"select i1 {condition}, double {negated}, double {value}")


def _product(ir: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiply(a: str, b: str) -> str:
        return ir.value(f"fmul double {a}, {b}")

    if len(x) == 1:
        return [multiply(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = ir.value(f"fsub double {multiply(a, c)}, {multiply(b, d)}")
    return [real, ir.value(f"fadd double {multiply(a, d)}, {multiply(b, c)}")]


def _rescale(ir: SimdEmitter, number: list[str], power: str) -> tuple[list[str], str]:
    """Rescale a number that is too large or too small, once, and count it in `power`."""
    magnitudes = [
        ir.intrinsic("llvm.fabs.f64", "double", [("double", component)]) for component in number
    ]
    largest = magnitudes[0]
    for magnitude in magnitudes[1:]:
        is_greater = ir.value(f"fcmp ogt double {magnitude}, {largest}")
        largest = ir.value(f"select i1 {is_greater}, double {magnitude}, double {largest}")
    too_large = ir.value(f"fcmp ogt double {largest}, {_power_literal(LARGE_EXPONENT)}")
    too_small = ir.value(f"fcmp olt double {largest}, {_power_literal(SMALL_EXPONENT)}")
    up_factor = ir.value(
        f"select i1 {too_small}, double {_power_literal(SHIFT_EXPONENT)}, double 1.0"
    )
    factor = ir.value(
        f"select i1 {too_large}, double {_power_literal(-SHIFT_EXPONENT)}, double {up_factor}"
    )
    up, down = (ir.value(f"zext i1 {flag} to i64") for flag in (too_large, too_small))
    power = int_op(ir, "sub", int_op(ir, "add", power, up), down)
    return [ir.value(f"fmul double {component}, {factor}") for component in number], power


def _modulus(ir: SimdEmitter, number: list[str]) -> str:
    """Return the modulus of a number that is neither very large nor very small."""
    if len(number) == 1:
        return ir.intrinsic("llvm.fabs.f64", "double", [("double", number[0])])
    real, imaginary = (ir.value(f"fmul double {component}, {component}") for component in number)
    square = ir.value(f"fadd double {real}, {imaginary}")
    return ir.intrinsic("llvm.sqrt.f64", "double", [("double", square)])


def _power_literal(exponent: int) -> str:
    return f"0x{(1023 + exponent) << 52:016X}"


def _apply_shifts(ir: SimdEmitter, number: list[str], power: str) -> list[str]:
    """Multiply by the powers of two that were counted separately."""
    positive = ir.value(f"icmp sgt i64 {power}, 0")
    up, down = _power_literal(SHIFT_EXPONENT), _power_literal(-SHIFT_EXPONENT)
    factor = ir.value(f"select i1 {positive}, double {up}, double {down}")
    count = ir.intrinsic("llvm.abs.i64", "i64", [("i64", power), ("i1", "false")])
    count = ir.intrinsic("llvm.smin.i64", "i64", [("i64", count), ("i64", str(MAX_RESCALES))])

    def shift_once(*components: str) -> list[str]:
        return [ir.value(f"fmul double {component}, {factor}") for component in components]

    return carry_loop(ir, count, [("double", component) for component in number], shift_once)
