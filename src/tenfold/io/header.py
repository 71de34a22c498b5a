"""`.npy` header: parses and validates a header before anything is allocated.

Takes: the first bytes of a file or of an archive's member, and how many bytes there are in all.
Hands on: a `Header`, or `InputError` with one line.

    header = read_header("a.npy", start)
    check_size("a.npy", header, size_of_file)

The text is parsed by NumPy's own public readers, from a bounded piece of the file.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib import format as npy

from tenfold.core.shape_rules import checked_shape
from tenfold.dtypes import DTYPES
from tenfold.errors import ShapeError
from tenfold.io.input_errors import InputError, error_text

MAX_HEADER = 10_000
"""Characters of a header, NumPy's own default; ours are about 100."""
START_BYTES = MAX_HEADER + 16
"""Bytes to read so as to have all of a header of that length, with its signature and length."""


@dataclass(frozen=True)
class Header:
    """What a `.npy` header says: dtype, shape, order, and where the elements begin, in bytes."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    offset: int

    @property
    def size(self) -> int:
        """Bytes of all elements, exact however large the shape claims to be."""
        return math.prod(self.shape) * self.dtype.itemsize


def unknown_format_error(path: str, start: bytes) -> InputError:
    """What to say of a file that begins with neither signature."""
    if not start:
        return InputError(f"{path}: the file is empty")
    if start[:1] == b"\x80":
        return InputError(
            f"{path}: a pickle, which is never loaded (it could run any code); "
            "save the array with numpy.save(..., allow_pickle=False)"
        )
    return InputError(f"{path}: neither a .npy nor a .npz file; save it with numpy.save")


def read_header(path: str, start: bytes) -> Header:
    """The header at the start of a `.npy` file's bytes, parsed by NumPy and then checked by us."""
    file = io.BytesIO(start)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of files written by Python 2
            version = npy.read_magic(file)
            shape, fortran, dtype = _header_reader(version)(file, max_header_size=MAX_HEADER)
    except Exception as error:  # NumPy lets many through: tokenizer, syntax, memory
        raise InputError(f"{path}: damaged .npy header: {error_text(error)}") from error
    check_dtype(path, dtype)
    check_shape(path, shape, dtype)
    return Header(dtype, shape, fortran, file.tell())


def _header_reader(
    version: tuple[int, int],
) -> Callable[..., tuple[tuple[int, ...], bool, np.dtype[np.generic]]]:
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(
            f"version {version[0]}.{version[1]} of the format is not for plain numbers"
        )
    return readers[version]


def check_dtype(path: str, dtype: np.dtype[np.generic]) -> None:
    """Refuse what Tenfold does not compute with, above all objects: they are pickles."""
    if dtype.hasobject:
        raise InputError(
            f"{path}: holds Python objects (a pickle), which are never loaded; "
            "save an array of numbers, for example numpy.save(path, array.astype(float))"
        )
    if dtype.newbyteorder("=") not in DTYPES.values():
        hint = (
            " (bfloat16 has no name in .npy files; save it as float32)"
            if dtype.str[1:] == "V2"
            else ""
        )
        raise InputError(
            f"{path}: dtype {dtype} is not one of ours{hint}; convert it to a number type"
        )


def check_shape(path: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    """Refuse a shape that no array can have, whatever the file holds."""
    try:
        if any(isinstance(length, bool) for length in shape):
            raise ShapeError("", f"shape {shape} has a length that is not an integer")
        checked_shape(shape, dtype.itemsize)
    except ShapeError as error:
        raise InputError(f"{path}: impossible .npy header: {error.rule}") from error


def check_size(path: str, header: Header, size: int) -> None:
    """Compare what the header promises with the bytes there are, before allocating anything."""
    present = size - header.offset
    if header.size != present:
        what = "truncated" if present < header.size else "its header does not fit its content"
        raise InputError(
            f"{path}: {what}: {header.dtype} of shape {header.shape} is {header.size:,} bytes, "
            f"the file holds {present:,}"
        )
