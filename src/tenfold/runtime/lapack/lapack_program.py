"""LAPACK program: a library call as a list of copies and routines, for operands of known layout.

Takes lengths, strides and dtypes, hands on a DriverLaunch (`drivers.py`): copies into memory of the
thread, by columns and in double precision, routines of LAPACK, and copies of the results to where
they belong. Nothing of it depends on values.

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
"""The order up to which BLAS starts no threads of its own for factors and a single column; with
several columns it does for any order.
"""
PREFIXES = {FLOAT64: "d", COMPLEX128: "z"}
COMPUTE_DTYPES = {FLOAT32: FLOAT64, FLOAT64: FLOAT64, COMPLEX64: COMPLEX128, COMPLEX128: COMPLEX128}


class StackedLayout(NamedTuple):
    """An operand: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


class Side(NamedTuple):
    """A matrix of a stack: where it lies, and its strides in bytes by row and by column."""

    pointer: str
    rows: int
    columns: int
    dtype: np.dtype


class UnsupportedLayout(Exception):
    """Operands that have to be copied first, or that LAPACK does not take."""


class LapackProgram:
    """What a kernel does, written down step by step."""

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
        """Return the word for a number of the launch."""
        self.numbers.append(value)
        return f"n{len(self.numbers) - 1}"

    def scratch_area(self, dtype: np.dtype, length: int) -> str:
        """Return the word for memory of the thread."""
        word = self.number(self.scratch)
        self.scratch += (length * dtype.itemsize + 63) // 64 * 64
        return f"w{word[1:]}"

    def call(self, routine: str, arguments: str, *, fails: bool = True) -> Routine:
        """Return a routine for the dtype, which stands for `n` in its arguments by the order."""
        operands = " ".join(self.n if name == "n" else name for name in arguments.split())
        return Routine(PREFIXES[self.dtype] + routine, operands, fails)

    def square(self, side: Side, target: str) -> Move:
        """Return the copy of a square matrix by columns."""
        return self.by_columns(side, target, self.order)

    def by_columns(self, side: Side, target: str, count: int) -> Move:
        """Return the copy of so many columns, each contiguous then."""
        inner = (self.order, side.rows, self.item)
        outer = (count, side.columns, self.order * self.item)
        return self.move(side.pointer, target, (side.dtype, self.dtype), outer, inner)

    def by_rows(
        self, source: str, target: str, dtype: np.dtype, count: int, *, rows: int = 0, of: int = 0
    ) -> Move:
        """Return the copy of contiguous columns to contiguous rows of some dtype: so many rows of
        columns of `of` elements, both the order if they are not given.
        """
        rows, of = rows or self.order, of or self.order
        inner = (count, of * self.item, dtype.itemsize)
        outer = (rows, self.item, count * dtype.itemsize)
        if count == 1:
            inner, outer = (rows, self.item, dtype.itemsize), (1, 0, 0)
        return self.move(source, target, (self.dtype, dtype), outer, inner)

    def work(self, routine: str, arguments: tuple[str | int | None, ...]) -> str:
        """Return the words for what a routine works in best, and for its length."""
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
        """Return the copy of the pivots, which lie beside each other."""
        inner = (self.order, dtypes[0].itemsize, dtypes[1].itemsize)
        return self.move(source, target, dtypes, (1, 0, 0), inner)

    def lu_factor(self, side: Side) -> tuple[str, str]:
        """Factor a matrix by Gauss's elimination; return where the factors and the pivots are."""
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
    """A stack of matrices with one axis of the stack: bytes from one to the next, and a matrix."""

    distance: int
    side: Side


def operand_of(number: int, layout: StackedLayout, stack: Shape) -> MatrixStack:
    """Return an operand for every matrix of a stack. Raises Unlike where the axes do not unite."""
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
    """Return the stack of square matrices, what begins, and how many matrices there are."""
    shape = layouts[0].shape
    operand = operand_of(0, layouts[0], shape[:-2])
    return operand, LapackProgram(layouts[0].dtype, shape[-1]), math.prod(shape[:-2])


def load_pivots(program: LapackProgram, packed: MatrixStack) -> str:
    """Return where the pivots are, as LAPACK has them: 0 where the factor is Cholesky's."""
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
    """Return the step of a recipe for so many units, of so many multiply-adds each."""
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
    """Return the dtype in which two are computed. Raises Unlike where there is none."""
    if first not in COMPUTE_DTYPES or second not in COMPUTE_DTYPES:
        raise UnsupportedLayout
    return COMPLEX128 if "c" in (kind_of(first), kind_of(second)) else FLOAT64
