"""BLAS: addresses of its routines, and its threads.

The routines are those SciPy hands to other extension modules (`scipy.linalg.cython_blas`): C
functions that take every argument by pointer, 32-bit integers, matrices by columns, and need no
GIL. SciPy is imported at the first use. A routine that starts threads of its own would compete with
our pool, so while library calls run its library is held to one thread: `with held():`. NumPy has a
copy of its own.

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

    return entry_point(cython_blas, routine)


def entry_point(module: Any, routine: str) -> int:
    """Return the address of a C function that a Cython module hands out."""
    capsule = module.__pyx_capi__[routine]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = pointer(capsule, name(capsule))
    assert isinstance(found, int), "a capsule holds an address"
    return found


class _Library:
    """One BLAS and who holds it: how many there are, and the threads it had before."""

    def __init__(self, controller: Any) -> None:
        self.controller = controller
        self.lock = forks.lock()  # protects both
        self.holders = 0
        self.threads = 0

    def enter(self, threads: int) -> None:
        """Hold it to so many threads at most."""
        with self.lock:
            present = self.controller.get_num_threads()
            if self.holders == 0:
                self.threads = present
            if threads < present:
                self.controller.set_num_threads(threads)
            self.holders += 1

    def leave(self) -> None:
        """Let it go, if nobody else holds it."""
        with self.lock:
            self.holders = max(0, self.holders - 1)
            if self.holders == 0:
                self.release()

    def release(self) -> None:
        """Give it its threads back."""
        if self.controller.get_num_threads() != self.threads:
            self.controller.set_num_threads(self.threads)

    def forget(self) -> None:
        """In the child of a fork: the launches of other threads are gone."""
        if self.holders > 0:
            self.holders = 0
            self.release()


_known: dict[str, _Library] = {}
"""By the path of its file; two packages may share one."""


@cache
def _libraries(package: str) -> tuple[_Library, ...]:
    """Return the BLAS of a package: its own copy, or all that are loaded."""
    from threadpoolctl import ThreadpoolController

    address_of("dgemm")  # so that SciPy's is loaded
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [each for each in found if package in Path(each.filepath).parent.name] or found
    # two threads may look at once: the first to enter a library wins
    return tuple(_known.setdefault(each.filepath, _Library(each)) for each in own)


def _forget() -> None:
    for library in _known.values():
        library.forget()


os.register_at_fork(after_in_child=_forget)


@contextmanager
def held(threads: int = 1, package: str = "scipy") -> Iterator[None]:
    """Hold the BLAS of "scipy" or "numpy" to so many threads at most, while somebody is inside.

    The threads it had are given back by the last to leave.
    """
    libraries = _libraries(package)
    for library in libraries:
        library.enter(threads)
    try:
        yield
    finally:
        for library in libraries:
            library.leave()
