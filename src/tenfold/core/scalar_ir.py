"""Scalar IR: a Body of primitive operations on the elements at one index of a kernel.

Takes calls of its methods and of the operators of Elements, hands on instructions in execution
order. Equal instructions are merged, so shared parts of formulas are computed once (CSE). An
element has one of the real dtypes of `tenfold.dtypes`; a complex one is a ComplexElement of two.
Half types are only moved, selected and converted: their arithmetic is done in float32.

Integers wrap; a shift takes a distance below the width of its dtype; `convert` from a float to an
integer truncates and expects a value that fits (NaN, too large: any value, never a trap).

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> x = body.load(0, FLOAT32)
>>> y = (x + x) * (x + x)
>>> print(body)
%0 = load float32, 0
%1 = add float32 %0 %0
%2 = multiply float32 %1 %1
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from tenfold.dtypes import (
    BOOL,
    DTYPE_NAMES,
    DTYPES,
    FLOAT32,
    FLOAT64,
    HALF_DTYPES,
    INT64,
    kind_of,
)

Real = bool | int | float
PRIMITIVES = frozenset(
    "constant load gather parameter index add subtract multiply divide and or xor shift_left "
    "shift_right equal not_equal less less_equal select convert bits negative absolute sqrt floor "
    "ceil trunc rint copysign fma table fold scan scatter segment carry continue fail".split()
)
"""The names of primitive operations; any other name is a composite formula."""


class Instruction(NamedTuple):
    """One primitive operation: its name, result dtype, the positions of its inputs, and its data:
    the value of a constant, the number of an operand, the axis of an index.
    """

    name: str
    dtype: np.dtype
    inputs: tuple[int, ...] = ()
    data: Hashable = None

    def __str__(self) -> str:
        inputs = "".join(map(" %{}".format, self.inputs))
        data = "" if self.data is None else f", {self.data}"
        return f"{self.name} {DTYPE_NAMES[self.dtype]}{inputs}{data}"


class Element:
    """The value of a body's instruction; operators on it emit further instructions.

    A Python number as the other operand becomes a constant of its dtype. Comparisons give bool
    elements; `&`, `|`, `^`, `~` work on bools and integers; `>>` keeps the sign.
    """

    __hash__ = None  # type: ignore[assignment]  # == makes an element
    __slots__ = ("body", "dtype", "position")

    def __init__(self, body: Body, position: int, dtype: np.dtype) -> None:
        self.body, self.position, self.dtype = body, position, dtype

    def __repr__(self) -> str:
        return f"<%{self.position} {self.dtype}>"

    def _binary(self, name: str, other: Element | Real, dtype: np.dtype | None = None) -> Element:
        peer = self.body.like(other, self)
        return self.body.apply(name, dtype or self.dtype, self, peer)

    def __add__(self, other: Element | Real) -> Element:
        return self._binary("add", other)

    def __sub__(self, other: Element | Real) -> Element:
        return self._binary("subtract", other)

    def __mul__(self, other: Element | Real) -> Element:
        return self._binary("multiply", other)

    def __truediv__(self, other: Element | Real) -> Element:
        assert kind_of(self.dtype) == "f", "integers are divided by the rules of their operation"
        return self._binary("divide", other)

    def __radd__(self, other: Real) -> Element:
        return self.body.like(other, self) + self

    def __rsub__(self, other: Real) -> Element:
        return self.body.like(other, self) - self

    def __rmul__(self, other: Real) -> Element:
        return self.body.like(other, self) * self

    def __rtruediv__(self, other: Real) -> Element:
        return self.body.like(other, self) / self

    def __neg__(self) -> Element:
        if kind_of(self.dtype) == "f":
            return self.body.apply("negative", self.dtype, self)
        return 0 - self

    def __and__(self, other: Element | Real) -> Element:
        return self._binary("and", other)

    def __or__(self, other: Element | Real) -> Element:
        return self._binary("or", other)

    def __xor__(self, other: Element | Real) -> Element:
        return self._binary("xor", other)

    def __invert__(self) -> Element:
        return self ^ (True if self.dtype == BOOL else -1)

    def __lshift__(self, other: Element | Real) -> Element:
        return self._binary("shift_left", other)

    def __rshift__(self, other: Element | Real) -> Element:
        return self._binary("shift_right", other)

    def __lt__(self, other: Element | Real) -> Element:
        return self._binary("less", other, BOOL)

    def __le__(self, other: Element | Real) -> Element:
        return self._binary("less_equal", other, BOOL)

    def __gt__(self, other: Element | Real) -> Element:
        return self.body.like(other, self) < self

    def __ge__(self, other: Element | Real) -> Element:
        return self.body.like(other, self) <= self

    def __eq__(self, other: object) -> Element:  # type: ignore[override]  # makes an element
        assert isinstance(other, (Element, bool, int, float)), "an element or a number"
        return self._binary("equal", other, BOOL)

    def __ne__(self, other: object) -> Element:  # type: ignore[override]  # makes an element
        assert isinstance(other, (Element, bool, int, float)), "an element or a number"
        return self._binary("not_equal", other, BOOL)


_POSITION = attrgetter("position")


class ComplexElement(NamedTuple):
    """A complex element."""

    real: Element
    imaginary: Element


Operand = Element | ComplexElement
"""An operand and a result of an operation's kernel rule."""


class Body:
    """Instructions in the order in which they were first emitted, without duplicates."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._positions: dict[Instruction, int] = {}

    def __str__(self) -> str:
        return "\n".join(f"%{i} = {instruction}" for i, instruction in enumerate(self.instructions))

    def emit(self, instruction: Instruction) -> Element:
        """Return the element of an instruction; equal instructions are emitted once."""
        position = self._positions.get(instruction)
        if position is None:
            position = self._positions[instruction] = len(self.instructions)
            self.instructions.append(instruction)
        return Element(self, position, instruction.dtype)

    def apply(self, name: str, dtype: np.dtype, *inputs: Element, data: Hashable = None) -> Element:
        """Return the element of a primitive, or of an elementary function by its name."""
        return self.emit(Instruction(name, dtype, tuple(map(_POSITION, inputs)), data))

    def call(self, name: str, *inputs: Element) -> Element:
        """Return an elementary function of floating elements, by the name of its operation."""
        return self.apply(name, inputs[0].dtype, *inputs)

    def constant(self, value: Real, dtype: np.dtype) -> Element:
        """Return a constant; a float is rounded to its dtype once, an integer wraps."""
        if kind_of(dtype) in "iu":
            bits = 8 * dtype.itemsize
            value = int(value) % 2**bits
            value -= 2**bits if kind_of(dtype) == "i" and value >= 2 ** (bits - 1) else 0
            return self.apply("constant", dtype, data=value)
        if dtype == BOOL:
            return self.apply("constant", dtype, data=bool(value))
        # By its bits: -0.0 equals 0.0, and a NaN does not equal itself.
        with np.errstate(all="ignore"):
            bits = int(np.asarray(value).astype(dtype).view(f"u{dtype.itemsize}"))
        return self.apply("constant", dtype, data=bits)

    def like(self, value: Element | Real, peer: Element) -> Element:
        """Return an operand of `peer`'s dtype: a number becomes a constant."""
        if isinstance(value, Element):
            assert value.dtype == peer.dtype, f"{value.dtype} beside {peer.dtype}"
            return value
        return self.constant(value, peer.dtype)

    def select(self, condition: Element, x: Element | Real, y: Element | Real) -> Element:
        """Return `x` where the bool `condition` is true, else `y`, NaN and -0 as they are."""
        if not isinstance(x, Element):
            assert isinstance(y, Element), "one of them says the dtype"
            x = self.like(x, y)
        return self.apply("select", x.dtype, condition, x, self.like(y, x))

    def convert(self, x: Element, dtype: np.dtype) -> Element:
        """Return `x` in another dtype: integers wrap, floats are rounded to nearest, ties to even.

        bool becomes 0 or 1, a number becomes the bool "is not 0". Between half types and other
        dtypes than float32 the caller converts by way of float32.
        """
        if x.dtype == dtype:
            return x
        if dtype == BOOL:
            return x != 0
        half_dtypes = [side_dtype for side_dtype in (x.dtype, dtype) if side_dtype in HALF_DTYPES]
        assert not half_dtypes or FLOAT32 in (x.dtype, dtype), (
            f"{x.dtype} to {dtype} goes by float32"
        )
        return self.apply("convert", dtype, x)

    def bits(self, x: Element, dtype: np.dtype) -> Element:
        """Return the same bits as an element of another dtype of the same size."""
        assert x.dtype.itemsize == dtype.itemsize, "a bitcast keeps the size"
        return x if x.dtype == dtype else self.apply("bits", dtype, x)

    def fma(self, x: Element, y: Element | Real, z: Element | Real) -> Element:
        """Return `x * y + z` rounded once (float32, float64)."""
        return self.apply("fma", x.dtype, x, self.like(y, x), self.like(z, x))

    def polynomial(self, x: Element, coefficients: Sequence[float]) -> Element:
        """Return c[0] + c[1]*x + c[2]*x**2 + ... by Horner's rule with fma."""
        *lower_coefficients, leading_coefficient = coefficients
        value = self.constant(leading_coefficient, x.dtype)
        for coefficient in reversed(lower_coefficients):
            value = self.fma(value, x, coefficient)
        return value

    def abs(self, x: Element) -> Element:
        """Return a float without its sign, or an integer's magnitude (INT_MIN stays)."""
        if kind_of(x.dtype) == "f":
            return self.apply("absolute", x.dtype, x)
        return x if kind_of(x.dtype) == "u" else self.select(x < 0, 0 - x, x)

    def sqrt(self, x: Element) -> Element:
        """Return the square root of a float, correctly rounded."""
        return self.apply("sqrt", x.dtype, x)

    def floor(self, x: Element) -> Element:
        """Return the largest whole float not above `x`."""
        return self.apply("floor", x.dtype, x)

    def ceil(self, x: Element) -> Element:
        """Return the smallest whole float not below `x`."""
        return self.apply("ceil", x.dtype, x)

    def trunc(self, x: Element) -> Element:
        """Return a float without its fraction."""
        return self.apply("trunc", x.dtype, x)

    def rint(self, x: Element) -> Element:
        """Return the nearest whole float, the even one at a tie."""
        return self.apply("rint", x.dtype, x)

    def copysign(self, x: Element, y: Element) -> Element:
        """Return the float with the magnitude of `x` and the sign of `y`."""
        return self.apply("copysign", x.dtype, x, y)

    def load(self, operand: int, dtype: np.dtype) -> Element:
        """Return the element of an operand of the kernel at the index of the loops."""
        return self.apply("load", dtype, data=operand)

    def gather(self, operand: int, dtype: np.dtype, offset: Element, valid: Element) -> Element:
        """Return the element of an operand at an offset in elements (int64) where `valid`, else 0.

        Nothing is read where `valid` is false.
        """
        return self.apply("gather", dtype, offset, valid, data=operand)

    def table(self, position: Element, values: Sequence[int], dtype: np.dtype) -> Element:
        """Return the constant at a position (int64, from 0) of a table; floats come as bits."""
        return self.apply("table", dtype, position, data=tuple(values))

    def rare(self, condition: Element, name: str, usual: Element, *inputs: Element) -> Element:
        """Return the formula `name` of `inputs` where `condition` holds, else `usual`.

        The formula is skipped for a packet in which the condition holds for no element.
        """
        return self.apply("rare", usual.dtype, condition, usual, *inputs, data=name)

    def fail(self, condition: Element) -> None:
        """Report the index of an element for which `condition` holds: the launch has failed."""
        self.apply("fail", BOOL, condition)

    def parameter(self, number: int, dtype: np.dtype) -> Element:
        """Return a scalar argument of the launch."""
        return self.apply("parameter", dtype, data=number)

    def index(self, axis: int) -> Element:
        """Return the position along a loop axis, int64."""
        return self.apply("index", INT64, data=axis)


UNSIGNED = {1: DTYPES["uint8"], 2: DTYPES["uint16"], 4: DTYPES["uint32"], 8: DTYPES["uint64"]}
SIGNED = {1: DTYPES["int8"], 2: DTYPES["int16"], 4: DTYPES["int32"], 8: DTYPES["int64"]}
"""The integer dtypes by size in bytes, for bitcasts of floats."""
SIGNIFICAND = {FLOAT32: 23, FLOAT64: 52}
"""The stored bits of a float's significand."""
