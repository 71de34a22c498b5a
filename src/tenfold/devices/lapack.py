"""LAPACK: its routines on stacks of matrices, with the threads of the options.

The routines are those SciPy hands to other extension modules (`scipy.linalg.cython_lapack`); they
take matrices by columns and run without the GIL. The matrices of a stack are shared out to our
pool, with BLAS held to one thread in each; a single matrix is left to BLAS and its threads.

>>> x = np.array([[4.0, 0.0], [2.0, 5.0]])
>>> factor = Routine("dpotrf", "'U n0 m0 n0 report", fails=True)
>>> run((factor,), (x[None],), (2,), multiply_adds=1)  # the upper triangle by columns
True
>>> x.tolist()
[[2.0, 0.0], [1.0, 2.0]]
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from tenfold import _native
from tenfold.devices import blas
from tenfold.devices.program import program_of
from tenfold.render.library_call import LibraryCall, Routine
from tenfold.settings import get

QUERIES = 1024
"""Sizes of work memory that are kept; those not asked for longest go first."""
CALL = 1 << 10
"""What calling a routine costs, in multiply-adds."""
SHARED = 1 << 18
"""Multiply-adds of a stack from which it is shared out to threads."""
GRAIN = 1 << 17
"""The multiply-adds of a range that is given to a thread."""
LONE = 1 << 24
"""Multiply-adds of a single matrix from which BLAS takes threads of its own."""
LARGEST = 1 << 14
"""The order up to which LAPACK can count what it works in by 32 bits."""


@cache
def address_of(routine: str) -> int:
    """Return the address of a LAPACK routine, such as "dpotrf"."""
    from scipy.linalg import cython_lapack  # imported only where it is used

    return blas.entry_point(cython_lapack, routine)


@cache
def _kernel(routines: tuple[Routine, ...], buffers: int) -> LibraryCall:
    return LibraryCall(routines, buffers)


def run(
    routines: tuple[Routine, ...],
    stacks: Sequence[np.ndarray],
    numbers: Sequence[int],
    *,
    work: int = 0,
    multiply_adds: int,
) -> bool:
    """Call routines on every matrix of contiguous stacks, in place; False where one fails.

    The first axis of every array is the stack; `work` is the bytes a thread works in, and
    `multiply_adds` those of one matrix. Raises MemoryError when there is no memory.
    """
    kernel, units = _kernel(routines, len(stacks)), len(stacks[0])
    threads, cost = int(get("threads")), multiply_adds + CALL
    sizes = (*(stack.strides[0] for stack in stacks), *numbers)
    alone = units == 1 or units * cost < SHARED
    if not alone and threads > _native.threads():
        _native.set_threads(threads)
    with blas.held(threads if units == 1 and multiply_adds >= LONE else 1):
        status = _native.launch(
            program_of(kernel, units).kernel,
            [
                *(stack.__array_interface__["data"][0] for stack in stacks),
                *(address_of(routine.name) for routine in routines),
            ],
            struct.pack(f"{len(sizes)}q", *sizes),
            b"",
            work,
            units,
            max(1, GRAIN // cost),
            1 if alone else threads,
        )
    return bool(status == 0)


@lru_cache(QUERIES)
def work_length(routine: str, arguments: tuple[str | int | None, ...]) -> int:
    """Ask a routine of float64 or complex128 how many elements of memory it works in best.

    Arguments are characters, numbers and None for memory, as far as the one for its report. The
    memory that is asked for stands before the first -1.
    """
    asked = arguments.index(-1) - 1
    # no memory is read: work lengths come back as the first element of each
    given = [
        ctypes.create_string_buffer(each.encode() if isinstance(each, str) else b"", 64)
        if each is None or isinstance(each, str)
        else ctypes.c_int(each)
        for each in arguments
    ]
    report = ctypes.c_int(0)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(given) + 1))(address_of(routine))
    function(*(ctypes.addressof(each) for each in (*given, report)))
    assert report.value == 0, f"{routine} does not know how much memory it needs"
    return int(ctypes.c_double.from_buffer(given[asked]).value)


def placed(*areas: tuple[np.dtype, int]) -> tuple[tuple[int, ...], int]:
    """Return from which byte on each array of (dtype, length) lies in a thread's memory, and its
    size; all begin at multiples of 64 bytes.
    """
    offsets = [0]
    for dtype, length in areas:
        offsets.append(offsets[-1] + (length * dtype.itemsize + 63) // 64 * 64)
    return tuple(offsets[:-1]), offsets[-1]
