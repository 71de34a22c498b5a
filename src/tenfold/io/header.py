"""`.npy` header: parses and validates a header before anything is allocated.

Takes the first bytes of a file or of an archive's member, and the total number of bytes. Returns a
`Header`, or raises a one-line `InputError`.

    header = read_header("a.npy", start)
    check_size("a.npy", header, size_of_file)

NumPy's public readers parse the text, from a bounded part of the file.
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
"""Limit of the characters of a header, NumPy's default; usual headers have about 100."""
START_BYTES = MAX_HEADER + 16
"""Bytes to read for a header of that length, with its signature and length field."""


@dataclass(frozen=True)
class Header:
    """A `.npy` header: dtype, shape, order, and the offset of the elements in bytes."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    offset: int

    @property
    def size(self) -> int:
        """The size of all elements in bytes, exact for any shape."""
        return math.prod(self.shape) * self.dtype.itemsize


def unknown_format_error(path: str, start: bytes) -> InputError:
    """Return the error of a file with neither signature."""
    if not start:
        return InputError(f"{path}: the file is empty")
    if start[:1] == b"\x80":
        return InputError(
            f"{path}: a pickle, which is never loaded (it could run any code); "
            "save the array with numpy.save(..., allow_pickle=False)"
        )
    return InputError(f"{path}: neither a .npy nor a .npz file; save it with numpy.save")


def read_header(path: str, start: bytes) -> Header:
    """Return the checked header at the start of a `.npy` file's bytes."""
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
    """Refuse unsupported dtypes, above all objects, which are pickles."""
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
    """Refuse a shape that no array can have."""
    try:
        if any(isinstance(length, bool) for length in shape):
            raise ShapeError("", f"shape {shape} has a length that is not an integer")
        checked_shape(shape, dtype.itemsize)
    except ShapeError as error:
        raise InputError(f"{path}: impossible .npy header: {error.rule}") from error


def check_size(path: str, header: Header, size: int) -> None:
    """Compare the declared size with the file's size, before allocating memory."""
    content_size = size - header.offset
    if header.size != content_size:
        problem = (
            "truncated" if content_size < header.size else "its header does not fit its content"
        )
        raise InputError(
            f"{path}: {problem}: {header.dtype} of shape {header.shape} is {header.size:,} bytes, "
            f"the file holds {content_size:,}"
        )
