"""Chunk scheduler: run the passes of a plan on threads of this process.

Takes a traced plan and its Outputs. Each of `workers` + 1 threads takes a chunk through all stages:
it reads, computes, and writes. At most `workers` of them compute, so one more chunk is read or
written meanwhile, and no more than `workers` + 1 chunks are in memory. Records of folds are merged
as they come. A kernel runs on one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold.core.pytree import flatten
from tenfold.errors import ShapeError, message
from tenfold.inspect.progress import Progress
from tenfold.interop.asarray import asarray
from tenfold.interop.dask import to_dask
from tenfold.machine import usable_processors
from tenfold.out_of_core.chunk_outputs import Outputs, check_target, given_targets
from tenfold.out_of_core.chunk_plan import PREPARE, ChunkPass, Partials, chunk_error
from tenfold.out_of_core.chunk_sources import is_source, read
from tenfold.out_of_core.dask_graph import DaskGraph, refuse_target
from tenfold.out_of_core.plan_text import plan_text
from tenfold.out_of_core.trace_plan import TracedPlan, checked_chunks, trace_plan
from tenfold.settings import override

Report = Callable[[int, int, int], None]
"""Is told the number of a pass, and of its chunks how many are done, and how many there are."""


def run_plan(
    traced: TracedPlan, outputs: Outputs, workers: int, report: Report
) -> list[np.ndarray | None]:
    """Run all passes; return the values of the results that are whole."""
    plan, known = traced.plan, traced.plan.known
    for stage in plan.passes:
        known = stage.prepare(_read(traced, stage, PREPARE), known)
        work = _PassRun(traced, stage, outputs, known, workers, report)
        known = stage.close(work.run(), known)
    known = plan.end.prepare(_read(traced, plan.end, PREPARE), known)
    return [known[at] if plan.axes[at] is None else None for at in plan.graph.outputs]


def _read(traced: TracedPlan, stage: ChunkPass, task: int) -> dict[Any, Any]:
    ranges = stage.reads(task)
    return {r: read(traced.sources[r[0]], traced.axes[r[0]], *r[1:]) for r in ranges}


class Options(NamedTuple):
    """How a function is run: the arguments of `tn.blockwise`."""

    chunk: int | None
    workers: int | None
    progress: bool
    explain: bool


@dataclass(eq=False)
class _PassRun:
    """One pass over all chunks."""

    traced: TracedPlan
    stage: ChunkPass
    outputs: Outputs
    known: Any
    workers: int
    report: Report

    def __post_init__(self) -> None:
        self.count = len(self.traced.plan.chunks)
        self.numbers: Iterator[int] = iter(range(self.count))
        self.partials: Partials = {at: {} for at in self.stage.folds}
        self.done: list[int] = []
        self.stopped = False
        self.lock = threading.Lock()
        """Protects the fields above that change."""
        self.slots = threading.Semaphore(self.workers)
        """How many threads may compute."""

    def run(self) -> Partials:
        """Return the records of all chunks. Raises the first error of a chunk."""
        threads = min(self.workers + 1, self.count)
        if threads == 1:
            self._take_chunks()
            return self.partials
        with ThreadPoolExecutor(threads, "tenfold_chunk") as pool:
            try:
                tasks = [pool.submit(copy_context().run, self._on_thread) for _ in range(threads)]
                for task in as_completed(tasks):
                    task.result()
            except BaseException as error:
                self.stopped = True
                pool.shutdown()
                error.add_note(self._what_was_done())
                raise
        return self.partials

    def _on_thread(self) -> None:
        with override(threads=1):
            self._take_chunks()

    def _take_chunks(self) -> None:
        while not self.stopped:
            with self.lock:
                chunk = next(self.numbers, None)
            if chunk is None:
                return
            try:
                self._run_chunk(chunk)
            except Exception as error:
                self.stopped = True
                raise chunk_error(self.traced.plan, chunk, error) from error

    def _run_chunk(self, chunk: int) -> None:
        blocks = _read(self.traced, self.stage, chunk)
        with self.slots:
            result = self.stage.run(chunk, blocks, self.known)
        del blocks
        for piece in result.pieces:
            self.outputs.write(piece)
        with self.lock:
            self.partials = self.stage.merge(self.partials, result.partials)
            self.done.append(chunk)
            self.report(self.stage.number, len(self.done), self.count)

    def _what_was_done(self) -> str:
        chunks = self.traced.plan.chunks
        text = f"tn.blockwise: pass {self.stage.number + 1} of {len(self.traced.plan.passes)} "
        text += f"stopped with {len(self.done)} of {self.count} chunks done"
        if not self.stage.outputs or not self.done:
            return f"{text}; nothing is written" if not self.stage.outputs else text
        first = 0  # chunks from the begin on without a gap
        done = {*self.done}
        while first in done:
            first += 1
        beyond = sorted(f"{chunks[at][0]} to {chunks[at][1] - 1}" for at in done if at > first)
        text += f"; out has the results of rows 0 to {chunks[first - 1][1] - 1}" if first else ""
        return f"{text}; and of {', '.join(beyond)}" if beyond else text


EMPTY = "blockwise: no pass, the sources have no elements"
SCHEDULERS = (None, "dask")


def run_blockwise(
    function: Callable[..., Any],
    sources: Sequence[Any],
    axis: Any,
    out: Any,
    how: Options,
    scheduler: str | None,
) -> Any:
    """Trace a function and run it, on threads of this process or as a Dask array."""
    if scheduler not in SCHEDULERS:
        rule = f"scheduler {scheduler!r} is unknown"
        raise ValueError(message("tn.blockwise", rule, (), "take one of None, 'dask'"))
    for name, number in (("chunk", how.chunk), ("workers", how.workers)):
        if number is not None and (not hasattr(number, "__index__") or number < 1):
            rule = f"{name} {number!r} is not a number from 1 on"
            raise ShapeError("tn.blockwise", rule, remedy=f"give {name}= an int, or leave it out")
    on_dask = scheduler == "dask"
    if on_dask:
        refuse_target(out)
    if any(0 in source.shape for source in sources if is_source(source)):
        checked_chunks(sources, axis, how.chunk)
        arrays = [asarray(np.asarray(x[...])) if is_source(x) else x for x in sources]
        return EMPTY if how.explain else _run_empty(function(*arrays), out, on_dask)
    traced = trace_plan(function, sources, axis, how.chunk)
    workers = how.workers or (1 if on_dask else usable_processors())
    if how.explain:
        return plan_text(traced, workers)
    if on_dask:
        return traced.structure.unflatten(DaskGraph(traced).arrays())
    outputs = Outputs(traced.plan, traced.structure, out)
    outputs.refuse_sources(traced.sources, traced.axes)
    with Progress() if how.progress else nullcontext() as progress:
        report = partial(show, progress) if progress else lambda *_: None
        values = run_plan(traced, outputs, workers, report)
    return traced.structure.unflatten(outputs.results(values))


def show(progress: Progress, stage: int, done: int, count: int) -> None:
    """Show how many chunks of a pass are done."""
    if done <= 1:
        progress.stage(f"pass {stage + 1}", count)
    progress.update(done, count)


def _run_empty(value: Any, out: Any, on_dask: bool) -> Any:
    """Return the results of a function of arrays without elements."""
    leaves, structure = flatten(value)
    results = []
    for leaf, target in zip(leaves, given_targets(out, structure), strict=True):
        if target is not None:
            check_target(target, _native.node_of(asarray(leaf)).type)
            target[...] = np.asarray(leaf)
        results.append(to_dask(leaf) if on_dask else leaf if target is None else target)
    return structure.unflatten(results)
