"""The floor: the seconds that a copy past the cache takes, by the C++ program beside this folder.

Takes nothing; hands on a function without arguments, or None where no C++ compiler is found.

    copy = build()
    gigabytes_per_second = 2e-9 * SIZE / copy()
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from kernel_work import THREADS

SOURCE = Path(__file__).resolve().parent.parent / "copy.cpp"
SIZE = 128 << 20
"""Bytes read, and as many written."""
FLAGS = ("-std=c++20", "-O3", "-march=native", "-pthread", "-shared", "-fPIC")


def build() -> Callable[[], float] | None:
    """Compile the program as a library and load it."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "clang++"))), "")
    if not compiler:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "copy.so"
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(library)], check=True)
        function = ctypes.CDLL(str(library)).copy_seconds
    function.argtypes, function.restype = [ctypes.c_size_t, ctypes.c_int], ctypes.c_double
    return lambda: float(function(SIZE, THREADS))
