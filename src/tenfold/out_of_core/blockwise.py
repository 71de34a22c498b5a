"""Blockwise: compute a function of arrays that do not fit in memory (`tn.blockwise`).

Takes a function and its sources, hands on its results. What does the work is imported at the first
call.

>>> import numpy as np
>>> import tenfold as tn
>>> tn.blockwise(lambda x: tn.sum(x, axis=0), np.ones((10, 2)), chunk=4).tolist()
[10.0, 10.0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.mutation import external_buffer


def blockwise(
    function: Callable[..., Any],
    *sources: Any,
    axis: Any = 0,
    chunk: int | None = None,
    out: Any = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    explain: bool = False,
) -> Any:
    """Return `function(*sources)`, computed in chunks of rows that fit in memory.

    - `sources` have a shape (..., n, ...), a dtype and slices: ndarrays, memory maps, arrays of
      zarr, h5py and Dask. Other values are passed on as they are.
    - `axis` is the axis of n rows along which chunks lie; or a tuple, one for each source, None for
      an array that is read whole.
    - `chunk` is the rows of a chunk. Without it chunks follow those of the sources, and have about
      8 MiB.
    - `out` takes the results that have rows: an array for each, to which slices are assigned. Other
      such results are joined in memory. It is returned in their place. It may be a source of which
      each row of the result reads the same row; other memory of a source is refused.
    - `workers` is how many chunks are computed at once, by default one for each processor.
      `workers` + 1 chunks are in memory.
    - `scheduler="dask"` returns a Dask array for each result: a task for each chunk and pass, none
      of which has run. It is stored by Dask, not by `out`.
    - `progress` shows a bar on a terminal, for which `rich` is needed.
    - `explain` returns the text of the plan instead: passes, bytes, and the peak of memory.

    `function` is traced once, on placeholders of the whole sources. Where it reduces the rows, the
    parts are combined by a fixed tree: the bits are the same for any workers, and, for chunks that
    begin at multiples of 1,024 rows, those of the reduction in memory; but products and
    `segment_sum`, whose parts are added, and scans, whose parts get a carry. An operation that
    needs an earlier reduction waits for another pass over the sources.

    Raises UnsupportedError for a function that needs all rows at once, such as a sort along `axis`;
    ShapeError for sources of different n; MemoryError, before work starts, for results that do not
    fit; RunError, with the rows, where a chunk fails.

    The canonical tree: docs/decisions/0001. Reductions by parts: Chan, Golub, LeVeque 1979.

    >>> import numpy as np, tenfold as tn
    >>> x = np.arange(12.0).reshape(6, 2)
    >>> tn.blockwise(lambda x: x - tn.mean(x, axis=0), x, chunk=4)[0].tolist()
    [-5.0, -5.0]
    """
    from tenfold.out_of_core import chunk_scheduler

    how = chunk_scheduler.Options(chunk, workers, progress, explain)
    return chunk_scheduler.run_blockwise(function, sources, axis, out, how, scheduler)


def _write_in_parts(*parts: Any) -> bool:
    """Compute an expression by parts and write each; return whether it could be cut."""
    from tenfold.out_of_core import window_writes

    return window_writes.write_in_parts(*parts)


external_buffer.set_part_writer(_write_in_parts)
