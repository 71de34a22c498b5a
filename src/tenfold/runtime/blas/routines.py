"""BLAS routines: their addresses, and the limit on the threads of their library.

The routines are those SciPy hands to other extension modules (`scipy.linalg.cython_blas`): C
functions that take every argument by pointer, 32-bit integers, matrices by columns, and need no
GIL. Of SciPy only that extension module is loaded, at the first use: all of `scipy.linalg` takes
ten times as long. BLAS threads would compete with Tenfold's pool. So library calls limit BLAS to
one thread: by `with limited_threads():` in Python, and by the core in a replay
(`native/threads/blas_threads.h`). Both share one count of holders. NumPy has a separate copy of
BLAS.

>>> blas_address("dgemm") != 0
True
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from tenfold._native import BlasLibrary, Scope
from tenfold.jit import fork_safe_lock


@cache
def blas_address(routine: str) -> int:
    """Return the address of a BLAS routine, such as "dgemm"."""
    return entry_point(exports("cython_blas"), routine)


_loading = fork_safe_lock.lock()


@cache
def exports(name: str) -> Mapping[str, Any]:
    """Return the capsules of the C functions that an extension module of `scipy.linalg` exports."""
    import scipy  # imported only where it is used

    module_name = f"scipy.linalg.{name}"
    with _loading:
        if "scipy.linalg" in sys.modules:
            return dict(import_module(module_name).__pyx_capi__)
        loaders = ExtensionFileLoader, EXTENSION_SUFFIXES
        found = FileFinder(str(Path(scipy.__file__).parent / "linalg"), loaders).find_spec(name)
        spec = spec_from_file_location(module_name, found.origin if found else None)
        if spec is None or spec.loader is None:
            raise ImportError(module_name)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop(module_name, None)  # an import of it must set it in its package
    return dict(module.__pyx_capi__)


def entry_point(capsules: Mapping[str, Any], routine: str) -> int:
    """Return the address of a C function among those that a Cython module exports."""
    capsule = capsules[routine]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, name(capsule))
    assert isinstance(address, int), "a capsule holds an address"
    return address


THREAD_FUNCTIONS = {
    "openblas": ("openblas_get_num_threads", "openblas_set_num_threads"),
    "openmp": ("omp_get_max_threads", "omp_set_num_threads"),
    "mkl": ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    "blis": ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
    "flexiblas": ("flexiblas_get_num_threads", "flexiblas_set_num_threads"),
}
"""The getter and setter of the thread count of a library; OpenBLAS may use OpenMP's."""
AFFIXES = [(prefix, suffix) for prefix in ("", "scipy_") for suffix in ("", "64_", "_64")]
"""The prefixes and suffixes of function names in builds of OpenBLAS."""


@cache
def libraries(package: str = "scipy") -> tuple[BlasLibrary, ...]:
    """Return the BLAS of a package, "scipy" or "numpy": its bundled copy, or all loaded ones."""
    from threadpoolctl import ThreadpoolController

    blas_address("dgemm")  # so that SciPy's is loaded
    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    of_package = [
        controller for controller in controllers if package in Path(controller.filepath).parent.name
    ] or controllers
    functions = [_functions(controller) for controller in of_package]
    return tuple([BlasLibrary(*controller) for controller in functions if controller])


def _functions(controller: Any) -> tuple[int, int] | None:
    """Return the addresses of the thread getter and setter; None for an unthreaded library."""
    layer = getattr(controller, "threading_layer", "")
    names = THREAD_FUNCTIONS.get("openmp" if layer == "openmp" else controller.internal_api)
    if names is None:
        return None
    for prefix, suffix in AFFIXES:
        symbols = [getattr(controller.dynlib, f"{prefix}{name}{suffix}", None) for name in names]
        get, set_ = [
            ctypes.cast(symbol, ctypes.c_void_p).value if symbol else None for symbol in symbols
        ]
        if get and set_:
            return get, set_
    return None


os.register_at_fork(after_in_child=BlasLibrary.forget_holders)


def limited_threads(threads: int = 1, package: str = "scipy") -> Scope:
    """Limit the BLAS of "scipy" or "numpy" to `threads` threads in the block.

    The last block to exit restores the number of threads.
    """
    return Scope(
        *[
            (partial(library.limit_threads, threads), library.unlimit_threads)
            for library in libraries(package)
        ]
    )
