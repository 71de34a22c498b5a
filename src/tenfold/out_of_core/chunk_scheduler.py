"""Chunk scheduler: run the passes of a plan on threads of this process.

Takes a traced plan and its Outputs. Each of `workers` + 1 threads takes a chunk through all stages:
it reads, computes, and writes. At most `workers` of them compute, so one more chunk is read or
written meanwhile, and no more than `workers` + 1 chunks are in memory. Records of folds are merged
as they come. A kernel runs on one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold.core.pytree import flatten
from tenfold.inspect.progress import Progress
from tenfold.interop.asarray import asarray
from tenfold.machine import usable_processors
from tenfold.out_of_core.chunk_outputs import Outputs, check_target, given_targets
from tenfold.out_of_core.chunk_plan import PREPARE, ChunkPass, Partials, chunk_error
from tenfold.out_of_core.chunk_sources import is_source, read
from tenfold.out_of_core.dask_graph import run_on_dask
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


class _PassRun:
    """One pass over all chunks."""

    def __init__(
        self,
        traced: TracedPlan,
        stage: ChunkPass,
        outputs: Outputs,
        known: Any,
        workers: int,
        report: Report,
    ) -> None:
        self.traced, self.stage, self.outputs, self.known = traced, stage, outputs, known
        self.workers, self.report = workers, report
        self.count = len(traced.plan.chunks)
        self.numbers: Iterator[int] = iter(range(self.count))
        self.partials: Partials = {at: {} for at in stage.folds}
        self.done: list[int] = []
        self.error: Exception | None = None
        self.stopped = False
        self.lock = threading.Lock()
        """Protects the fields above that change."""
        self.slots = threading.Semaphore(workers)
        """How many threads may compute."""

    def run(self) -> Partials:
        """Return the records of all chunks. Raises the first error of a chunk."""
        threads = min(self.workers + 1, self.count)
        if threads == 1:
            self._take_chunks()
        else:
            self._run_threads(threads)
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None
        return self.partials

    def _run_threads(self, threads: int) -> None:
        with ThreadPoolExecutor(threads, "tenfold_chunk") as pool:
            try:
                tasks = [pool.submit(copy_context().run, self._on_thread) for _ in range(threads)]
                for task in tasks:
                    task.result()
            except BaseException as interrupt:
                self.stopped = True
                pool.shutdown()
                interrupt.add_note(self._what_was_done())
                raise

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
            except Exception as error:  # noqa: BLE001  # raised by `run`, with the chunk
                with self.lock:
                    self.error = self.error or chunk_error(self.traced.plan, chunk, error)
                self.stopped = True

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


def run_here(
    function: Callable[..., Any], sources: Sequence[Any], axis: Any, out: Any, how: Options
) -> Any:
    """Run a function on threads of this process."""
    if any(0 in source.shape for source in sources if is_source(source)):
        checked_chunks(sources, axis, how.chunk)
        return EMPTY if how.explain else _run_empty(function, sources, out)
    traced = trace_plan(function, sources, axis, how.chunk)
    workers = usable_processors() if how.workers is None else how.workers
    if how.explain:
        return plan_text(traced, workers)
    outputs = Outputs(traced.plan, traced.structure, out)
    outputs.refuse_sources(traced.sources, traced.axes)
    if not how.progress:
        values = run_plan(traced, outputs, workers, lambda *_: None)
    else:
        with Progress() as progress:
            values = run_plan(traced, outputs, workers, partial(show, progress))
    return traced.structure.unflatten(outputs.results(values))


def show(progress: Progress, stage: int, done: int, count: int) -> None:
    """Show how many chunks of a pass are done."""
    if done <= 1:
        progress.stage(f"pass {stage + 1}", count)
    progress.update(done, count)


def _run_empty(function: Callable[..., Any], sources: Sequence[Any], out: Any) -> Any:
    """Run a function of arrays without elements."""
    arrays = [asarray(np.asarray(x[...])) if is_source(x) else x for x in sources]
    leaves, structure = flatten(function(*arrays))
    targets = given_targets(out, structure)
    results = []
    for leaf, target in zip(leaves, targets, strict=True):
        if target is not None:
            check_target(target, _native.node_of(asarray(leaf)).type)
            target[...] = np.asarray(leaf)
        results.append(leaf if target is None else target)
    return structure.unflatten(results)


SCHEDULERS: dict[str | None, Callable[..., Any]] = {None: run_here, "dask": run_on_dask}
"""By the name in `tn.blockwise(scheduler=)`: what traces and runs a function."""
