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
from typing import Any

import numpy as np

from tenfold.machine import usable_processors
from tenfold.out_of_core.chunk_outputs import Outputs
from tenfold.out_of_core.chunk_plan import PREPARE, Partials, Pass, chunk_error
from tenfold.out_of_core.chunk_sources import read
from tenfold.out_of_core.dask_graph import run_on_dask
from tenfold.out_of_core.trace_plan import TracedPlan, trace_plan
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
    outputs.flush()
    return [known[at] if plan.axes[at] is None else None for at in plan.graph.outputs]


def _read(traced: TracedPlan, stage: Pass, task: int) -> dict[Any, Any]:
    ranges = stage.reads(task)
    return {r: read(traced.sources[r[0]], traced.axes[r[0]], *r[1:]) for r in ranges}


class _PassRun:
    """One pass over all chunks."""

    def __init__(
        self,
        traced: TracedPlan,
        stage: Pass,
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
            tasks = [pool.submit(copy_context().run, self._on_thread) for _ in range(threads)]
            try:
                for task in tasks:
                    task.result()
            except BaseException as interrupt:
                self.stopped = True
                pool.shutdown()
                self.outputs.flush()
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


def run_here(
    function: Callable[..., Any],
    sources: Sequence[Any],
    axis: Any,
    chunk: int | None,
    out: Any,
    workers: int | None,
    progress: bool,
    explain: bool,
) -> Any:
    """Run a function on threads of this process."""
    traced = trace_plan(function, sources, axis, chunk)
    outputs = Outputs(traced.plan, traced.structure, out)
    values = run_plan(traced, outputs, workers or usable_processors(), lambda *_: None)
    return traced.structure.unflatten(outputs.results(values))


SCHEDULERS: dict[str | None, Callable[..., Any]] = {None: run_here, "dask": run_on_dask}
"""By the name in `tn.blockwise(scheduler=)`: what traces and runs a function."""

__all__ = ["SCHEDULERS", "Report", "run_plan"]
