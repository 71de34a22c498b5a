"""BLAS: addresses of its routines, and its threads.

The routines are those SciPy hands to other extension modules (`scipy.linalg.cython_blas`): C
functions that take every argument by pointer, 32-bit integers, matrices by columns, and need no
GIL. SciPy is imported at the first use. A routine that starts threads of its own would compete with
our pool, so while library calls run its library is held to one thread: `with held():`.

>>> address_of("dgemm") != 0
True
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any


@cache
def address_of(routine: str) -> int:
    """Return the address of a BLAS routine, such as "dgemm"."""
    from scipy.linalg import cython_blas  # imported only where it is used

    capsule = cython_blas.__pyx_capi__[routine]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = pointer(capsule, name(capsule))
    assert isinstance(found, int), "a capsule holds an address"
    return found


@cache
def _libraries() -> tuple[Any, ...]:
    """Return what sets the threads of SciPy's BLAS: of its own copy, or of all that are loaded."""
    from threadpoolctl import ThreadpoolController

    address_of("dgemm")  # so that it is loaded
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [library for library in found if "scipy" in Path(library.filepath).parent.name]
    return tuple(own or found)


class _Holders:
    """How many launches hold BLAS now; the lock protects that and the threads it had before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.threads: list[int] = []


_holders = _Holders()
# A child of fork has none of the threads that may hold the lock.
os.register_at_fork(after_in_child=_holders.__init__)  # type: ignore[misc]  # begins anew


@contextmanager
def held() -> Iterator[None]:
    """Hold BLAS to one thread inside; the threads it had are given back by the last to leave."""
    libraries = _libraries()
    with _holders.lock:
        if _holders.count == 0:
            _holders.threads = [library.get_num_threads() for library in libraries]
            for library in libraries:
                library.set_num_threads(1)
        _holders.count += 1
    try:
        yield
    finally:
        with _holders.lock:
            _holders.count -= 1
            if _holders.count == 0:
                for library, threads in zip(libraries, _holders.threads, strict=True):
                    library.set_num_threads(threads)
