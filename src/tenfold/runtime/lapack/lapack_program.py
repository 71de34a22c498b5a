"""LAPACK program: a library call as a list of copies and routines, for operands of known layout.

Takes lengths, strides and dtypes, hands on a DriverLaunch (`drivers.py`): copies into the thread's
scratch memory, column-major and in double precision, routines of LAPACK, and copies to the results.
It does not depend on values.

>>> program = LapackProgram(FLOAT64, 2)
>>> side = Side("m0", 16, 8, FLOAT64)
>>> program.by_columns(side, program.scratch_area(FLOAT64, 4), 2).layout  # rows become columns
'across'
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.codegen.lapack.driver_call import LapackCall, Routine
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.codegen.lapack.matrix_copies import INT32, Move
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, kind_of
from tenfold.runtime.lapack.drivers import DriverLaunch, address_of, work_length

SERIAL_ORDER = 96
"""The order up to which BLAS starts no threads for a factorisation and a single column; with
several columns it does for any order."""
PREFIXES = {FLOAT64: "d", COMPLEX128: "z"}
COMPUTE_DTYPES = {FLOAT32: FLOAT64, FLOAT64: FLOAT64, COMPLEX64: COMPLEX128, COMPLEX128: COMPLEX128}


class StackedLayout(NamedTuple):
    """An operand: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


class Side(NamedTuple):
    """A matrix of a stack: its pointer, and its strides in bytes by row and by column."""

    pointer: str
    rows: int
    columns: int
    dtype: np.dtype


class UnsupportedLayout(Exception):
    """The operands must be copied first, or LAPACK does not support them."""


class LapackProgram:
    """Builds the steps of a kernel."""

    def __init__(self, dtype: np.dtype, order: int) -> None:
        self.dtype, self.order, self.item = (
            COMPUTE_DTYPES[dtype],
            order,
            COMPUTE_DTYPES[dtype].itemsize,
        )
        self.steps: list[KernelStep] = []
        self.numbers: list[int] = []
        self.scratch = 0
        self.n = self.number(order)

    def number(self, value: int) -> str:
        """Add a number to the launch arguments; return its name."""
        self.numbers.append(value)
        return f"n{len(self.numbers) - 1}"

    def scratch_area(self, dtype: np.dtype, length: int) -> str:
        """Allocate scratch memory of the thread; return its name."""
        word = self.number(self.scratch)
        self.scratch += (length * dtype.itemsize + 63) // 64 * 64
        return f"w{word[1:]}"

    def call(self, routine: str, arguments: str, *, fails: bool = True) -> Routine:
        """Return a call of a routine for the dtype; `n` in its arguments is the order."""
        operands = " ".join(self.n if name == "n" else name for name in arguments.split())
        return Routine(PREFIXES[self.dtype] + routine, operands, fails)

    def square(self, side: Side, target: str) -> Move:
        """Return the copy of a square matrix to column-major order."""
        return self.by_columns(side, target, self.order)

    def by_columns(self, side: Side, target: str, count: int) -> Move:
        """Return the copy of `count` columns to contiguous columns."""
        inner = (self.order, side.rows, self.item)
        outer = (count, side.columns, self.order * self.item)
        return self.move(side.pointer, target, (side.dtype, self.dtype), outer, inner)

    def by_rows(
        self, source: str, target: str, dtype: np.dtype, count: int, *, rows: int = 0, of: int = 0
    ) -> Move:
        """Return the copy of contiguous columns to contiguous rows of a dtype: `rows` rows from
        columns of `of` elements, by default the order.
        """
        rows, of = rows or self.order, of or self.order
        inner = (count, of * self.item, dtype.itemsize)
        outer = (rows, self.item, count * dtype.itemsize)
        if count == 1:
            inner, outer = (rows, self.item, dtype.itemsize), (1, 0, 0)
        return self.move(source, target, (self.dtype, dtype), outer, inner)

    def work(self, routine: str, arguments: tuple[str | int | None, ...]) -> str:
        """Return the names of a routine's work memory and of its length."""
        length = work_length(PREFIXES[self.dtype] + routine, arguments)
        return f"{self.scratch_area(self.dtype, length)} {self.number(length)}"

    def move(
        self,
        source: str,
        target: str,
        dtypes: tuple[np.dtype, np.dtype],
        outer: tuple[int, int, int],
        inner: tuple[int, int, int],
    ) -> Move:
        """Return a copy along axes of (length, bytes in the source, bytes in the target)."""
        kind = "any"
        if dtypes[0] == dtypes[1] and inner[1] == inner[2] == dtypes[0].itemsize:
            words_per_item = dtypes[0].itemsize // 8
            if words_per_item:
                inner, dtypes, kind = (inner[0] * words_per_item, 8, 8), (FLOAT64, FLOAT64), "rows"
        elif dtypes == (FLOAT64, FLOAT64) and outer[1] == inner[2] == 8:
            kind = "across"
        outer_numbers = tuple(self.number(value) for value in outer)
        inner_numbers = tuple(self.number(value) for value in inner)
        return Move(
            source,
            target,
            dtypes,
            (outer_numbers[0], outer_numbers[1], outer_numbers[2]),
            (inner_numbers[0], inner_numbers[1], inner_numbers[2]),
            kind,
        )

    def copy_pivots(self, source: str, target: str, dtypes: tuple[np.dtype, np.dtype]) -> Move:
        """Return the copy of the pivots, which are contiguous."""
        inner = (self.order, dtypes[0].itemsize, dtypes[1].itemsize)
        return self.move(source, target, dtypes, (1, 0, 0), inner)

    def lu_factor(self, side: Side) -> tuple[str, str]:
        """Factor a matrix by Gaussian elimination; return the names of factors and pivots."""
        matrix, pivots = (
            self.scratch_area(self.dtype, self.order**2),
            self.scratch_area(INT32, self.order),
        )
        self.steps += [
            self.square(side, matrix),
            self.call("getrf", f"n n {matrix} n {pivots} report"),
        ]
        return matrix, pivots


class MatrixStack(NamedTuple):
    """A stack of matrices with a single stack axis: its stride in bytes, and a matrix."""

    distance: int
    side: Side


def operand_of(number: int, layout: StackedLayout, stack: Shape) -> MatrixStack:
    """Return a broadcast operand. Raises UnsupportedLayout if its stack axes do not coalesce."""
    if layout.dtype not in COMPUTE_DTYPES:
        raise UnsupportedLayout
    *steps, row, column = layout.strides
    lengths = layout.shape[:-2]
    missing = len(stack) - len(lengths)
    repeated = [0] * missing + [
        0 if length == 1 else step for length, step in zip(lengths, steps, strict=True)
    ]
    distance, expected = 0, None
    for length, step in zip(reversed(stack), reversed(repeated), strict=True):
        if length == 1:
            continue
        if expected is None:
            distance = step
        elif step != expected:
            raise UnsupportedLayout
        expected = step * length
    return MatrixStack(distance, Side(f"m{number}", row, column, layout.dtype))


def square_program(layouts: tuple[StackedLayout, ...]) -> tuple[MatrixStack, LapackProgram, int]:
    """Return the stack of square matrices, a new program, and the number of matrices."""
    shape = layouts[0].shape
    operand = operand_of(0, layouts[0], shape[:-2])
    return operand, LapackProgram(layouts[0].dtype, shape[-1]), math.prod(shape[:-2])


def load_pivots(program: LapackProgram, packed: MatrixStack) -> str:
    """Load the pivots as LAPACK integers; return their name. They are 0 for a Cholesky factor."""
    if packed.side.columns != program.item or packed.side.rows != program.order * program.item:
        raise UnsupportedLayout
    pivots, pivots_offset = (
        program.scratch_area(INT32, program.order),
        program.number(program.order**2 * program.item),
    )
    program.steps.append(program.copy_pivots(f"m0+{pivots_offset}", pivots, (program.dtype, INT32)))
    return pivots


def as_matrix(layout: StackedLayout) -> StackedLayout:
    """Return a vector as a matrix of one column."""
    if len(layout.shape) > 1:
        return layout
    return StackedLayout((*layout.shape, 1), (*layout.strides, 0), layout.dtype)


def driver_launch(
    program: LapackProgram,
    operands: Sequence[MatrixStack],
    types: tuple[Type, ...],
    units: int,
    multiply_adds: int,
    columns: int = 1,
) -> DriverLaunch:
    """Return the launch of a program for `units` matrices, of `multiply_adds` each."""
    kernel = LapackCall(tuple(program.steps), len(operands) + len(types))
    sizes = [type_.size * type_.dtype.itemsize for type_ in types]
    stack_strides = [
        *(operand.distance for operand in operands),
        *(size // units for size in sizes),
    ]
    numbers = [*stack_strides, *map(address_of, kernel.routines), *program.numbers]
    return DriverLaunch(
        kernel,
        struct.pack(f"{len(numbers)}q", *numbers),
        program.scratch,
        units,
        multiply_adds,
        columns == 1 and program.order <= SERIAL_ORDER,
        tuple(zip(types, sizes, strict=True)),
    )


def compute_dtype(first: np.dtype, second: np.dtype) -> np.dtype:
    """Return the computation dtype of two dtypes. Raises UnsupportedLayout without one."""
    if first not in COMPUTE_DTYPES or second not in COMPUTE_DTYPES:
        raise UnsupportedLayout
    return COMPLEX128 if "c" in (kind_of(first), kind_of(second)) else FLOAT64
