"""LAPACK drivers: their kernels, the addresses of routines, and launches on stacks of matrices.

Takes a DriverChoice of the schedule, hands on a DriverLaunch, and runs it. It decides nothing: it
queries work lengths, lays out scratch memory and packs sizes.

The drivers are native code (`native/lapack`) with the common kernel ABI: routines on each matrix of
a stack, with copies between them. The routines are those SciPy exports to other extension modules
(`scipy.linalg.cython_lapack`); they take column-major matrices and run without the GIL. The
matrices of a stack are distributed over Tenfold's thread pool, with one BLAS thread each; a single
large matrix uses BLAS threads. Routines are uninterruptible: long ones are interruptible calls
(`runtime/interruptible.py`).

>>> driver_address("dpotrf") != 0
True
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint, Value
from tenfold.caches import memoized
from tenfold.runtime import interruptible
from tenfold.runtime.blas import routines
from tenfold.runtime.thread_count import above, threads_for
from tenfold.schedule.lapack.driver_builder import Area, DriverChoice, WorkLength, WorkQuery
from tenfold.schedule.loop_schedule import pack_sizes
from tenfold.schedule.target import DEFAULT
from tenfold.settings import get

LAUNCHES = 1024
"""The capacity of the LRU cache of launches."""


@cache
def driver_address(routine: str) -> int:
    """Return the address of a routine of LAPACK, such as "dpotrf", or of BLAS, such as "dtrsm"."""
    lapack = routines.exports("cython_lapack")
    if routine in lapack:
        return routines.entry_point(lapack, routine)
    return routines.blas_address(routine)


class DriverLaunch(NamedTuple):
    """A launch without the addresses of operands and results."""

    choice: DriverChoice
    kernel: EntryPoint
    sizes: tuple[int, ...]
    scratch: int
    """The scratch bytes of a thread."""

    @property
    def addresses(self) -> list[int]:
        """The addresses of the routines, which are buffers behind those of the results."""
        return [driver_address(routine) for routine in self.choice.routines]

    @property
    def work(self) -> int:
        """The multiply-adds of all units, with the call overhead."""
        return self.choice.units * (
            self.choice.multiply_adds + DEFAULT.libraries.call_multiply_adds
        )

    @property
    def grain(self) -> int:
        """The fewest units of a thread."""
        return max(
            1,
            DEFAULT.libraries.driver_grain
            // (self.choice.multiply_adds + DEFAULT.libraries.call_multiply_adds),
        )


@memoized("LAPACK calls", LAUNCHES, "querying work lengths takes as long as a small solve")
def bind_driver(choice: DriverChoice) -> DriverLaunch:
    """Return the launch of a driver as chosen."""
    kernel, size_count = _native.lapack_driver(choice.driver, choice.is_complex)
    assert len(choice.sizes) == size_count, f"the driver {choice.driver} reads other sizes"
    offsets, lengths, scratch = lay_out(choice.areas)
    numbers = [
        offsets[size.number]
        if isinstance(size, Area)
        else lengths[size.number]
        if isinstance(size, WorkLength)
        else size
        for size in choice.sizes
    ]
    return DriverLaunch(choice, kernel, tuple(numbers), scratch)


def lay_out(areas: Sequence[int | WorkQuery]) -> tuple[list[int], list[int], int]:
    """Return the offsets of areas of scratch memory, the lengths of work memory, and all bytes."""
    offsets: list[int] = []
    lengths: list[int] = []
    scratch, alignment = 0, DEFAULT.caches.alignment_bytes
    for area in areas:
        if isinstance(area, WorkQuery):
            lengths.append(work_length(area.routine, area.arguments))
            area_bytes = lengths[-1] * area.itemsize
        else:
            lengths.append(0)
            area_bytes = area
        offsets.append(scratch)
        scratch += -(-area_bytes // alignment) * alignment
    return offsets, lengths, scratch


def threads_of(step: DriverLaunch) -> int:
    """Return the number of threads of a launch; 0 keeps the GIL."""
    if step.choice.units == 1:
        return above(step.work, DEFAULT.libraries.gil_multiply_adds)
    return threads_for(
        step.work,
        DEFAULT.libraries.gil_multiply_adds,
        DEFAULT.libraries.stack_multiply_adds - 1,
        int(get("threads")),
    )


def blas_threads(step: DriverLaunch) -> int:
    """Return the limit of BLAS threads for a launch; 0 if BLAS starts none."""
    choice = step.choice
    if choice.single_threaded:
        return 0
    uses_threads = (
        choice.units == 1 and choice.multiply_adds >= DEFAULT.libraries.blas_threaded_multiply_adds
    )
    return int(get("threads")) if uses_threads else 1


def launch(step: DriverLaunch, arrays: Sequence[np.ndarray]) -> tuple[Value, ...] | None:
    """Run a launch on operands; None if LAPACK fails for a matrix.

    Raises MemoryError when memory runs out.
    """
    choice, threads = step.choice, threads_of(step)
    if threads > _native.threads():
        _native.set_threads(threads)
    values = tuple([Value.allocate(type_, bytes_) for type_, bytes_ in choice.results])

    def run(interrupted: threading.Event | None) -> int:
        blas_limit = blas_threads(step)
        units_per_call = choice.units if interrupted is None else max(1, threads)
        with routines.limited_threads(blas_limit) if blas_limit else nullcontext():
            for first in range(0, choice.units, units_per_call):
                if interrupted is not None and interrupted.is_set():
                    break
                units = min(units_per_call, choice.units - first)
                if (status := _status(step, arrays, values, first, units)) != 0:
                    return status
        return 0

    status = interruptible.call(run, multiply_adds=choice.multiply_adds)
    return values if status == 0 else None


def _status(
    step: DriverLaunch,
    arrays: Sequence[np.ndarray],
    values: Sequence[Value],
    first_unit: int,
    units: int,
) -> int:
    """Launch some units; return 0, or another number if LAPACK fails for a matrix."""
    buffers = [*(x.__array_interface__["data"][0] for x in arrays), *values]
    if first_unit:
        addresses = [x.address if isinstance(x, Value) else x for x in buffers]
        pairs = zip(addresses, step.choice.distances, strict=True)
        buffers = [address + first_unit * distance for address, distance in pairs]
    return _native.launch(
        step.kernel,
        [*buffers, *step.addresses],
        pack_sizes(step.sizes),
        b"",
        step.scratch,
        units,
        step.grain,
        threads_of(step),
    )


def work_length(routine: str, arguments: tuple[str | int | None, ...]) -> int:
    """Query a routine of float64 or complex128 for its best work length, in elements.

    Arguments are characters, numbers and None for memory, without the final info argument. The
    queried work memory is the argument before the first -1.
    """
    query_index = arguments.index(-1) - 1
    # a query reads no memory: it writes the work length to the first element
    c_arguments = [
        ctypes.create_string_buffer(argument.encode() if isinstance(argument, str) else b"", 64)
        if argument is None or isinstance(argument, str)
        else ctypes.c_int(argument)
        for argument in arguments
    ]
    report = ctypes.c_int(0)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(c_arguments) + 1))(
        driver_address(routine)
    )
    function(*(ctypes.addressof(argument) for argument in (*c_arguments, report)))
    assert report.value == 0, f"{routine} does not know how much memory it needs"
    return int(ctypes.c_double.from_buffer(c_arguments[query_index]).value)
