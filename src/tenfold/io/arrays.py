"""Array files: reads `.npy` and `.npz` files safely, trusting nothing that they declare.

Takes `picture.npy`, `results.npz` (with one array) or `results.npz:key`. Returns a read-only
`numpy.ndarray`. A `.npy` file is memory-mapped, so that it can be larger than memory.

    read_array("results.npz:heights")

One-line errors refuse pickles and object arrays (loading them would run the file's code) and
unsupported dtypes. The same holds for headers that do not match the file's size, truncated and
damaged files, and archives that unpack to more than memory.
"""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tenfold.io.archive import Progress, no_progress, read_member
from tenfold.io.header import START_BYTES, check_size, read_header, unknown_format_error
from tenfold.io.input_errors import InputError, error_text
from tenfold.machine import available_memory


def read_array(source: str, progress: Progress = no_progress) -> NDArray[np.generic]:
    """Return the read-only array of `file.npy`, `file.npz` or `file.npz:key`.

    Raises `InputError` for every invalid file.
    """
    path, key = split_source(source)
    try:
        with open_regular(path) as file:
            start = file.read(6)
            file.seek(0)
            if start == npy.MAGIC_PREFIX:
                return normalized(path, _map_file(source, path, key, file))
            if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
                return normalized(path, read_member(path, key, file, progress))
            raise unknown_format_error(path, start)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error_text(error)}") from error


def read_arrays(path: str) -> dict[str, NDArray[np.generic]]:
    """Return all arrays of a `.npz` file by name, or that of a `.npy` file as ""."""
    if not path.endswith(".npz"):
        return {"": read_array(path)}
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read: {error_text(error)}") from error
    return {name: read_array(f"{path}:{name}") for name in names}


def split_source(source: str) -> tuple[str, str | None]:
    """Split `file.npz:key` into (file, key); an existing file name with a colon is not split."""
    path, colon, key = source.rpartition(":")
    if not colon or _exists(source) or not (path.endswith(".npz") or _exists(path)):
        return source, None
    return path, key


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with a null character: not a file's name
        return False


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file. Pipes and devices have no size to check a header against."""
    if "\0" in path:
        raise InputError(f"{path!r}: not a file name")
    # A pipe without a writer would block; a regular file does not notice the flag.
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path}: not a regular file; save the array in a .npy or .npz file first")
    return os.fdopen(descriptor, "rb")


def _map_file(source: str, path: str, key: str | None, file: IO[bytes]) -> NDArray[np.generic]:
    if key is not None:
        raise InputError(f"{source}: {path} is a .npy file, which holds one array without a key")
    header = read_header(path, file.read(START_BYTES))
    check_size(path, header, os.fstat(file.fileno()).st_size)
    if header.size == 0:
        return np.empty(header.shape, header.dtype)
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    try:
        mapped: NDArray[np.generic] = np.memmap(
            file, header.dtype, mode="r", offset=header.offset, shape=header.shape, order=order
        )
    except (ValueError, OverflowError, TypeError) as error:
        raise InputError(f"{path}: cannot be mapped: {error_text(error)}") from error
    return mapped


def normalized(path: str, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the array in native byte order, aligned and read-only, so that it can be shared."""
    if not (array.dtype.isnative and array.flags.aligned):
        if array.nbytes > available_memory():
            raise InputError(
                f"{path}: larger than memory and of foreign byte order or alignment; "
                "convert it in parts"
            )
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise InputError(f"{path}: damaged: booleans that are neither 0 nor 1")
    array.flags.writeable = False
    return array
