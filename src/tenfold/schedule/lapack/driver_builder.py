"""Driver builder: a LAPACK driver with its routines and sizes, for operands of known layout.

Takes the layouts of operands and the Types of results, hands on a DriverChoice: for one driver of
`native/lapack` the layouts, lengths and areas of the thread's scratch memory, in the order of the
driver's struct of sizes. It depends neither on values nor on the library: the runtime queries work
lengths and lays out the areas (`runtime/lapack/drivers.py`).

>>> build = DriverBuilder(FLOAT64, order=2, units=1)
>>> build.area(3), build.area(5), build.areas
(Area(number=0), Area(number=1), [24, 40])
>>> flattened((StackedMatrix(32, 16, 8, FLOAT64), build.order, True, Area(1)))
(32, 16, 8, 1, 2, 1, Area(number=1))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import COMPLEX64, COMPLEX128, DTYPES, FLOAT32, FLOAT64, kind_of
from tenfold.schedule.target import DEFAULT

PREFIXES = {FLOAT64: "d", COMPLEX128: "z"}
COMPUTE_DTYPES = {FLOAT32: FLOAT64, FLOAT64: FLOAT64, COMPLEX64: COMPLEX128, COMPLEX128: COMPLEX128}
ELEMENT_CODES = {FLOAT32: 0, FLOAT64: 1, COMPLEX64: 2, COMPLEX128: 3}
"""The element types as native code numbers them."""
INT32 = DTYPES["int32"]


class StackedLayout(NamedTuple):
    """An operand: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


class StackedMatrix(NamedTuple):
    """The matrices of a stack: the bytes from one to the next, and the strides of each in bytes."""

    distance: int
    row: int
    column: int
    dtype: np.dtype

    @property
    def transposed(self) -> StackedMatrix:
        """The transposes."""
        return self._replace(row=self.column, column=self.row)


class UnsupportedLayout(Exception):
    """The operands must be copied first, or LAPACK does not support them."""


Arguments = tuple[str | int | None, ...]
"""Arguments of a routine: characters, numbers, and None for memory."""


@dataclass(frozen=True)
class WorkQuery:
    """Work memory whose length a routine says, in elements of `itemsize` bytes."""

    routine: str
    arguments: Arguments
    itemsize: int


@dataclass(frozen=True)
class Area:
    """The offset of an area of scratch memory."""

    number: int


@dataclass(frozen=True)
class WorkLength:
    """The length of an area, which is work memory, in elements."""

    number: int


LengthSource = int | Area | WorkLength


@dataclass(frozen=True)
class DriverChoice:
    """Which driver of LAPACK computes an operation, on operands of which layouts."""

    driver: str
    is_complex: bool
    routines: tuple[str, ...]
    sizes: tuple[LengthSource, ...]
    """What native code reads, in its order."""
    areas: tuple[int | WorkQuery, ...]
    """The scratch memory of a thread: bytes, or work memory."""
    distances: tuple[int, ...]
    """The bytes from one matrix to the next, of operands and results."""
    units: int
    multiply_adds: int
    """Of one unit."""
    single_threaded: bool
    """Whether BLAS starts no threads for such sizes."""
    results: tuple[tuple[Type, int], ...]
    """Types and bytes."""
    operands: tuple[StackedLayout, ...] = ()
    """The layouts for which it is chosen, before a copy."""
    copies: tuple[StackedLayout, ...] = ()
    """The layouts of the copies that it reads; empty: it reads the operands."""


class DriverBuilder:
    """Collects the scratch memory of a driver, and builds its choice."""

    def __init__(self, dtype: np.dtype, order: int, units: int) -> None:
        self.dtype, self.order, self.units = COMPUTE_DTYPES[dtype], order, units
        self.item, self.is_complex = self.dtype.itemsize, kind_of(dtype) == "c"
        self.areas: list[int | WorkQuery] = []

    def area(self, length: int, dtype: np.dtype | None = None) -> Area:
        """Return new scratch memory, by default of the computation dtype."""
        self.areas.append(length * (dtype or self.dtype).itemsize)
        return Area(len(self.areas) - 1)

    def work(self, routine: str, arguments: Arguments) -> tuple[Area, WorkLength]:
        """Return the work memory of a routine, and its length."""
        number = len(self.areas)
        self.areas.append(WorkQuery(PREFIXES[self.dtype] + routine, arguments, self.item))
        return Area(number), WorkLength(number)

    def result(self, type_: Type) -> StackedMatrix:
        """Return a result of row-major matrices."""
        item = type_.dtype.itemsize
        distance = type_.size * item // self.units
        return StackedMatrix(distance, type_.shape[-1] * item, item, type_.dtype)

    def vector_result(self, type_: Type) -> StackedMatrix:
        """Return a result of vectors or numbers, as matrices of one column."""
        item = type_.dtype.itemsize
        return StackedMatrix(type_.size * item // self.units, item, item, type_.dtype)

    def choice(
        self,
        driver: str,
        routines: Sequence[str],
        operands: Sequence[StackedMatrix],
        sizes: tuple[object, ...],
        types: tuple[Type, ...],
        multiply_adds: int,
        columns: int = 1,
    ) -> DriverChoice:
        """Return the choice of a driver, of `multiply_adds` for each matrix."""
        result_bytes = [type_.size * type_.dtype.itemsize for type_ in types]
        return DriverChoice(
            driver,
            self.is_complex,
            tuple([PREFIXES[self.dtype] + routine for routine in routines]),
            flattened(sizes),
            tuple(self.areas),
            (*(x.distance for x in operands), *(size // self.units for size in result_bytes)),
            self.units,
            multiply_adds,
            columns == 1 and self.order <= DEFAULT.libraries.serial_order,
            tuple(zip(types, result_bytes, strict=True)),
        )


def flattened(sizes: object) -> tuple[LengthSource, ...]:
    """Return nested sizes in the order in which native code reads them."""
    if isinstance(sizes, Area | WorkLength):
        return (sizes,)
    if isinstance(sizes, tuple):
        return tuple([number for size in sizes for number in flattened(size)])
    if isinstance(sizes, np.dtype):
        return (ELEMENT_CODES[sizes],)
    assert isinstance(sizes, int), "sizes are integers, dtypes and tuples of them"
    return (int(sizes),)


def driver_operand(layout: StackedLayout, stack: Shape) -> StackedMatrix:
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
    return StackedMatrix(distance, row, column, layout.dtype)


def stack_of(layouts: tuple[StackedLayout, ...]) -> tuple[StackedMatrix, DriverBuilder]:
    """Return a stack of matrices, and a new builder whose order is the number of rows."""
    *stack, rows, _ = layouts[0].shape
    operand = driver_operand(layouts[0], tuple(stack))
    return operand, DriverBuilder(layouts[0].dtype, rows, math.prod(stack))


def packed_stack_of(
    layouts: tuple[StackedLayout, ...], stack: Shape
) -> tuple[StackedMatrix, DriverBuilder]:
    """Return a stack of packed factors (`ops/factors.py`), and a new builder."""
    packed, order = driver_operand(layouts[0], stack), layouts[0].shape[-1]
    build = DriverBuilder(packed.dtype, order, math.prod(stack))
    if packed[1:] != (order * build.item, build.item, build.dtype):
        raise UnsupportedLayout
    return packed, build


def as_matrix(layout: StackedLayout) -> StackedLayout:
    """Return a vector as a matrix of one column."""
    if len(layout.shape) > 1:
        return layout
    return StackedLayout((*layout.shape, 1), (*layout.strides, 0), layout.dtype)


def driver_dtype(first: np.dtype, second: np.dtype) -> np.dtype:
    """Return the computation dtype of two dtypes. Raises UnsupportedLayout without one."""
    if first not in COMPUTE_DTYPES or second not in COMPUTE_DTYPES:
        raise UnsupportedLayout
    return COMPLEX128 if "c" in (kind_of(first), kind_of(second)) else FLOAT64
