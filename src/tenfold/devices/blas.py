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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tenfold.devices import forks


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
        self.lock = forks.lock()
        self.count = 0
        self.threads: list[int] = []

    def enter(self) -> None:
        """Hold the libraries, if nobody does."""
        libraries = _libraries()
        with self.lock:
            if self.count == 0:
                self.threads = [library.get_num_threads() for library in libraries]
                for library in libraries:
                    library.set_num_threads(1)
            self.count += 1

    def leave(self) -> None:
        """Let the libraries go, if nobody else holds them."""
        with self.lock:
            self.count = max(0, self.count - 1)
            if self.count == 0:
                self.release()

    def release(self) -> None:
        """Give the libraries their threads back."""
        for library, threads in zip(_libraries(), self.threads, strict=True):
            library.set_num_threads(threads)

    def forget(self) -> None:
        """In the child of a fork: the launches of other threads are gone."""
        if self.count > 0:
            self.count = 0
            self.release()


_holders = _Holders()
os.register_at_fork(after_in_child=_holders.forget)


@contextmanager
def held() -> Iterator[None]:
    """Hold BLAS to one thread inside; the threads it had are given back by the last to leave."""
    _holders.enter()
    try:
        yield
    finally:
        _holders.leave()
