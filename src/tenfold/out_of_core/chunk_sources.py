"""Chunk sources: arrays that are read by slices, and the chunks in which they are read.

Takes anything with shape, dtype and slices: an ndarray, a memory map, an array of zarr, h5py or
Dask. Hands on the rows at which chunks begin and end. They follow the chunks of a source that has
some: h5py and zarr read a chunk whole, however small the part of it that is asked for.

>>> chunk_rows([np.zeros((200_000, 8))], [0], None)
[(0, 131072), (131072, 200000)]
>>> chunk_rows([np.zeros((10, 8))], [0], 4)
[(0, 4), (4, 8), (8, 10)]
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.canonical_reduction import BLOCK
from tenfold.core.shape_rules import normalize_axis
from tenfold.errors import DTypeError, ShapeError, UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.storage.kinds import storage_kind

TARGET_BYTES = 8 << 20
"""The bytes of a chunk of all sources, where nothing else is asked for."""
MAX_SOURCE_CHUNK_BYTES = 64 << 20
"""The bytes up to which chunks of a source are read several at a time."""


def is_source(value: Any) -> bool:
    """Whether a value has shape, dtype and slices."""
    return isinstance(value, Array) or (
        hasattr(value, "shape")
        and hasattr(value, "dtype")
        and hasattr(value, "__getitem__")
        and bool(value.shape)
    )


def source_axes(sources: Sequence[Any], axis: Any) -> list[int | None]:
    """Return for each source the axis along which it is read in chunks; None: it is read whole."""
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis] * len(sources)
    if len(axes) != len(sources):
        rule = f"axis has {len(axes)} axes for {len(sources)} sources"
        raise ShapeError("tn.blockwise", rule, remedy="give one for each, None for a whole one")
    result: list[int | None] = []
    for source, own in zip(sources, axes, strict=True):
        if own is None or not is_source(source):
            result.append(None)
            continue
        _refuse_parts(source)
        if not hasattr(own, "__index__"):
            rule = f"axis {own!r} is not an int, None or a tuple of them"
            raise DTypeError("tn.blockwise", rule, remedy="as in axis=0")
        try:
            result.append(int(normalize_axis(operator.index(own), len(source.shape))))
        except ShapeError as error:
            error.rule += f", in a source of shape {tuple(source.shape)}"
            raise error.renamed("tn.blockwise", ()) from None
    return result


def _refuse_parts(source: Any) -> None:
    """Refuse a source whose elements are not all that it has, as a mask; or of unknown length."""
    if isinstance(source, np.ma.MaskedArray):
        asarray(source)  # raises, and says what to do
    if any(length != length for length in source.shape):  # NaN
        rule = f"a Dask source of shape {source.shape} has chunks of unknown lengths"
        raise ShapeError("tn.blockwise", rule, remedy="call its compute_chunk_sizes() before")
    if isinstance(source, Array) and storage_kind(source) is not None:
        rule = f"a source of {source.storage} storage has no rows in memory"
        raise UnsupportedError("tn.blockwise", rule, remedy="pass x.to_dense()")


def chunk_rows(
    sources: Sequence[Any], axes: Sequence[int], chunk: int | None
) -> list[tuple[int, int]]:
    """Return the first row of each chunk, and the row behind its last."""
    lengths = {source.shape[axis] for source, axis in zip(sources, axes, strict=True)}
    if len(lengths) != 1:
        shapes = ", ".join(f"{source.shape}" for source in sources)
        rule = f"sources of shapes {shapes} have {sorted(lengths)} rows along their axes"
        remedy = "read sources of equal length in chunks, others whole, with axis=(0, None)"
        raise ShapeError("tn.blockwise", rule, remedy=remedy)
    length = int(*lengths)
    rows = _rows_of_chunk(sources, axes, length) if chunk is None else operator.index(chunk)
    return [(begin, min(begin + rows, length)) for begin in range(0, length, rows)]


def _rows_of_chunk(sources: Sequence[Any], axes: Sequence[int], length: int) -> int:
    """Choose as many rows as fit, in whole chunks of the sources, else in blocks of reductions."""
    row_bytes = sum(bytes_of(source) // max(length, 1) for source in sources)
    own_rows = [
        _rows_of_source_chunk(source, axis) for source, axis in zip(sources, axes, strict=True)
    ]
    own = math.lcm(*[rows for rows in own_rows if rows])
    if own > 1 and own * row_bytes <= MAX_SOURCE_CHUNK_BYTES:
        return own * max(TARGET_BYTES // max(own * row_bytes, 1), 1)
    if any(own_rows):
        return max(rows for rows in own_rows if rows)
    fitting = 1 << (max(TARGET_BYTES // max(row_bytes, 1), 1).bit_length() - 1)
    return BLOCK if fitting < BLOCK and row_bytes * BLOCK < 8 * TARGET_BYTES else fitting


def bytes_of(source: Any) -> int:
    """Return the bytes of all elements of a source."""
    return int(np.dtype(source.dtype).itemsize * math.prod(source.shape))


def _rows_of_source_chunk(source: Any, axis: int) -> int:
    """Return the rows of one chunk of a source; 0 where it has no chunks."""
    chunks = getattr(source, "chunks", None)
    if not chunks:
        return 0
    own = chunks[axis]
    return int(own[0] if isinstance(own, tuple) else own)


def is_memory(source: Any) -> bool:
    """Whether a source is read where it lies, in memory or in a mapped file."""
    return isinstance(source, (Array, np.ndarray))


def read(source: Any, axis: int, begin: int, end: int) -> Any:
    """Read rows of a source: an Array or an ndarray; of memory a view."""
    part = source[(*(slice(None),) * axis, slice(begin, end))]
    part = part if isinstance(part, Array) else np.asarray(part)
    shape = (*source.shape[:axis], end - begin, *source.shape[axis + 1 :])
    if part.shape != tuple(shape) or part.dtype != source.dtype:
        rule = f"a source gave {part.dtype}{list(part.shape)} for rows {begin} to {end}"
        wanted = f"its shape and dtype say {np.dtype(source.dtype)}{list(shape)}"
        raise ShapeError("tn.blockwise", f"{rule}: {wanted}", remedy="correct the source")
    return part
