"""Dask: Arrays as chunks of Dask arrays, computed where a task ends, on the threads of its worker.

`DASK_REGISTRARS` registers Arrays with Dask's modules when they are imported, on a worker too. In a
task expressions stay pending, so that fused tasks are fused kernels. `to_dask` and `from_dask` take
an array, and hand on one of the other library.

>>> import dask.array as da  # doctest: +SKIP
>>> import tenfold as tn
>>> tn.from_dask(da.exp(tn.to_dask(tn.zeros(4), chunks=2)).sum()).item()  # doctest: +SKIP
4.0
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from mmap import mmap
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from tenfold import pipeline, settings
from tenfold._native import Array
from tenfold.core.pytree import flatten
from tenfold.errors import DTypeError, UnsupportedError, raise_if_failed
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of

MAX_RESULT_ITEMS = 64
"""Items of a task's result that are looked at: Dask's reductions return a few arrays each."""


@dataclass(frozen=True)
class MappedFile:
    """The elements of a memory map as Dask's source: each process maps the file by itself.

    A memory map of NumPy is pickled with all its elements, and `dask.array.from_array` copies it.
    """

    path: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    modified: int
    """Nanoseconds: another content is another node of Dask's graphs."""

    @classmethod
    def of(cls, x: Any) -> MappedFile | None:
        """Return the file of a memory map, unless that is a part of another one, or writeable."""
        owner: Any = getattr(x, "base", None)
        if type(x) is not np.memmap or not isinstance(owner, mmap) or x.flags.writeable:
            return None
        order: Literal["C", "F"] = "C" if x.flags.c_contiguous else "F"
        path = str(x.filename)
        return cls(path, x.dtype, x.offset, x.shape, order, Path(path).stat().st_mtime_ns)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        mapped: Any = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
        return np.asarray(mapped[key])


def to_dask(x: Any, /, chunks: Any = "auto") -> Any:
    """Return a Dask array whose chunks are Arrays.

    `x` is an Array, an ndarray, a memory map, or anything that `dask.array.from_array` takes, such
    as a zarr or h5py array; `chunks` is as there. An Array is computed, then cut without a copy. A
    read-only memory map of a file, and what is not an ndarray, is read by the tasks, chunk by
    chunk. A Dask array keeps its own chunks, and `chunks` is unused.

    Raises UnsupportedError without Dask.

    >>> import tenfold as tn
    >>> tn.to_dask(tn.arange(6), chunks=4).chunks  # doctest: +SKIP
    ((4, 2),)
    """
    da = dask_array("to_dask")
    source = MappedFile.of(x) or x
    if isinstance(source, (Array, np.ndarray)):
        return _cut(da.core, asarray(source), chunks)
    if not isinstance(source, da.Array):
        source = da.from_array(source, chunks=chunks)
    return source.map_blocks(as_chunk, dtype=source.dtype, meta=empty_chunk(source))


def _cut(core: Any, x: Array, chunks: Any) -> Any:
    """Return a Dask array of the parts of an Array, which share its memory."""
    values = value_of(x, "to_dask")
    sizes = core.normalize_chunks(chunks, values.shape, dtype=values.dtype)
    name = f"tenfold-{core.tokenize(x, sizes)}"
    keys = product([name], *[range(len(along_axis)) for along_axis in sizes])
    parts = [asarray(values[part]) for part in core.slices_from_chunks(sizes)]
    graph = core.HighLevelGraph.from_collections(name, dict(zip(keys, parts, strict=True)))
    return core.Array(graph, name, sizes, meta=empty_chunk(values))


def empty_chunk(x: Any) -> Array:
    """Return an Array without elements of the dtype and axes of `x`, as Dask infers types by."""
    return asarray(np.empty((0,) * x.ndim, x.dtype))


def as_chunk(block: Any) -> Array:
    """Return an ndarray that a task of Dask has made as an Array, of the same memory if it can be.

    Tasks never write to what others have made, so the memory is not copied for safety.
    """
    try:
        return asarray(block, copy=False)
    except ValueError:  # of another byte order, say
        return asarray(block)


def from_dask(x: Any, /) -> Array:
    """Return the values of a Dask array as one Array in memory.

    They are computed by Dask's scheduler, as `x.compute()` does. Raises UnsupportedError without
    Dask, DTypeError for what is no Dask array, and what the computation raises.

    >>> import dask.array as da  # doctest: +SKIP
    >>> import tenfold as tn
    >>> tn.from_dask(da.arange(6, chunks=4)).shape  # doctest: +SKIP
    (6,)
    """
    if not isinstance(x, dask_array("from_dask").Array):
        rule = f"{type(x).__name__} is not a Dask array"
        raise DTypeError("from_dask", rule, remedy="import it with tn.asarray(...)")
    values = x.compute()
    return as_chunk(values) if x.npartitions > 1 else asarray(values)  # one may be the user's


def dask_array(operation: str) -> Any:
    """Return the module `dask.array`. Raises UnsupportedError without Dask."""
    try:
        return importlib.import_module("dask.array")
    except ImportError:
        remedy = "install it: pip install 'dask[array]'"
        raise UnsupportedError(operation, "Dask is not installed", remedy=remedy) from None


def _register_chunks(backends: Any) -> None:
    """Let Dask take Arrays as chunks and operands; its percentiles of Arrays are NumPy's."""
    importlib.import_module("dask.array.chunk_types").register_chunk_type(Array)
    of_ndarray = backends.percentile_lookup.dispatch(np.ndarray)

    def percentile(a: Array, q: Any, method: str = "linear") -> Any:
        values, count = of_ndarray(np.asarray(a), np.asarray(q), method)
        return asarray(values), count

    backends.percentile_lookup.register(Array, percentile)


def _register_sizes(module: Any) -> None:
    """Tell Dask the bytes of an Array: pending, too; of a storage kind, those of its components."""
    module.sizeof.register(Array, lambda x: sum(part.nbytes for part in flatten(x)[0]))


def _register_tokens(module: Any) -> None:
    """Name Arrays by their values, as ndarrays: equal ones are one node of Dask's graphs."""

    def token_of(x: Array) -> Any:
        parts, structure = flatten(x)
        return "tenfold", str(structure), module.normalize_token([value_of(part) for part in parts])

    module.normalize_token.register(Array, token_of)


def _compute_local_tasks(module: Any) -> None:
    """Compute results in the tasks of Dask's own schedulers: threads, processes, one thread."""
    execute = module.execute_task

    def execute_task(key: Any, task_info: Any, dumps: Any, loads: Any, *rest: Any) -> Any:
        def load(info: Any) -> Any:
            task, data = loads(info)
            return computing(task), data

        return execute(key, task_info, dumps, load, *rest)

    module.execute_task = execute_task


def _compute_worker_tasks(module: Any) -> None:
    """Compute results in the tasks of a worker of `distributed`."""
    for name in ("_run_task_simple", "apply_function_simple"):  # now; in 2025.1
        if (run := getattr(module, name, None)) is not None:
            setattr(module, name, lambda task, *rest, run=run: run(computing(task), *rest))


def computing(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return a task whose result is computed where it ends, on one thread if others run beside it.

    A pending chunk would keep all that it is made of, and be computed by its reader, many times.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if not _runs_beside_others():
            return compute_result(task(*args, **kwargs))
        with settings.override(threads=1):
            return compute_result(task(*args, **kwargs))

    return run


def compute_result(result: Any) -> Any:
    """Compute a result, or the Arrays in a list, tuple or dict. Raises the first failure."""
    items = result.values() if type(result) is dict else result
    items = items if type(result) in (tuple, list, dict) else (result,)
    if len(items) <= MAX_RESULT_ITEMS:
        arrays = [item for item in items if isinstance(item, Array)]
        if arrays:
            raise_if_failed(pipeline.evaluate(arrays))
    return result


def _runs_beside_others() -> bool:
    """Whether this is a thread or process of several; not if the user has set their number."""
    import multiprocessing  # a worker of Dask has imported it

    is_worker = (
        threading.current_thread() is not threading.main_thread()
        or multiprocessing.parent_process() is not None
    )
    return is_worker and settings.current()["threads"][1] == "default"


DASK_REGISTRARS: dict[str, Callable[[ModuleType], None]] = {
    "dask.array.backends": _register_chunks,
    "dask.sizeof": _register_sizes,
    "dask.tokenize": _register_tokens,
    "dask.local": _compute_local_tasks,
    "distributed.worker": _compute_worker_tasks,
}
"""By the module of Dask: what is done after its import."""
