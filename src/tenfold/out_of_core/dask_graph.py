"""Dask graph: the passes of a chunk plan as a Dask array, a task for each chunk and pass.

Takes a function and its sources, as `tn.blockwise` does; hands on Dask arrays whose chunks are
Arrays. Nothing is computed. The graph of a pass: one task that makes its Stage (the plan, and what
is known before it), which each worker gets once; a task for each chunk, which reads the sources by
itself, unless their rows are other tasks' results, or in memory; a tree that merges the partial
results of folds, MERGED at a time. The plan is pickled as its graph, never as Python code.

>>> import numpy as np, tenfold as tn
>>> d = tn.blockwise(tn.exp, np.zeros(5), chunk=2, scheduler="dask")  # doctest: +SKIP
>>> d.chunks  # doctest: +SKIP
((2, 2, 1),)
"""

from __future__ import annotations

import copyreg
import importlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.graph import Graph
from tenfold.errors import UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.interop.dask import MappedFile, as_chunk, dask_array, empty_chunk, to_dask
from tenfold.interop.pickling import restore_nodes, write_nodes
from tenfold.out_of_core.chunk_plan import (
    PREPARE,
    ChunkPass,
    ChunkPlan,
    Known,
    Partials,
    chunk_error,
)
from tenfold.out_of_core.chunk_sources import read
from tenfold.out_of_core.cut_node import with_length
from tenfold.out_of_core.cut_rows import ReadRange, cut
from tenfold.out_of_core.trace_plan import TracedPlan
from tenfold.storage import dense

MERGED = 16
"""Neighbouring partial results that one task merges."""


@dataclass(frozen=True)
class Stage:
    """What the tasks of one pass read: the plan, the values known before it, and the sources."""

    plan: ChunkPlan
    number: int
    known: Known
    sources: Mapping[int, Any]
    """The sources that tasks read by themselves, by number."""
    axes: Sequence[int]

    @property
    def own(self) -> ChunkPass:
        """The pass; behind the last one, the end."""
        return [*self.plan.passes, self.plan.end][self.number]

    def merge(self, *partials: Partials) -> Partials:
        """Merge the partial results of neighbouring chunks."""
        return self.own.merge(*partials)

    def prepared(self, blocks: Sequence[Any]) -> Stage:
        """Return the stage with the values that its chunks need whole."""
        return replace(self, known=self.own.prepare(self.read(PREPARE, blocks), self.known))

    def read(self, task: int, blocks: Sequence[Any]) -> dict[ReadRange, Any]:
        """Return the rows that a task reads: from a source, or of blocks that are there."""
        there = dict(zip(blocks[0], blocks[1:], strict=True)) if blocks else {}
        return {r: self._rows(r, there) for r in self.own.reads(task)}

    def _rows(self, wanted: ReadRange, there: Mapping[ReadRange, Any]) -> Any:
        number, begin, end = wanted
        axis = self.axes[number]
        if number in self.sources:
            return read(self.sources[number], axis, begin, end)
        parts = [
            cut(as_chunk(block), axis, max(begin - low, 0), min(end, high) - low)
            for (source, low, high), block in there.items()
            if source == number and low < end and begin < high
        ]
        if not parts:
            (node,) = [at for at, source in self.plan.inputs.items() if source == number]
            type_ = self.plan.graph.nodes[node].type
            return np.empty(with_length(type_.shape, axis, 0), type_.dtype)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)


def first_stage(
    plan: ChunkPlan, sources: Mapping[int, Any], axes: Sequence[int], *blocks: Any
) -> Stage:
    """Return the stage of the first pass."""
    return Stage(plan, 0, plan.known, sources, axes).prepared(blocks)


def next_stage(stage: Stage, partials: Partials, *blocks: Any) -> Stage:
    """Return the stage of the next pass, from the partial results of this one."""
    known = stage.own.close(partials, stage.known)
    return replace(stage, number=stage.number + 1, known=known).prepared(blocks)


def run_chunk(stage: Stage, chunk: int, wanted: int | None, *blocks: Any) -> Any:
    """Compute a chunk of a pass: (its partial results, its rows of each result), or one of them."""
    try:
        result = stage.own.run(chunk, stage.read(chunk, blocks), stage.known)
    except Exception as error:
        raise chunk_error(stage.plan, chunk, error) from error
    rows: dict[int, list[Any]] = {at: [] for at in stage.own.outputs}
    for piece in result.pieces:
        rows[piece.output].append(piece.value)
    results = (result.partials, *[_joined(stage.plan, at, rows[at]) for at in rows])
    return results if wanted is None else results[wanted]


def _joined(plan: ChunkPlan, output: int, pieces: Sequence[Any]) -> Array:
    node = plan.graph.outputs[output]
    axis, type_ = plan.axes[node], plan.graph.nodes[node].type
    assert axis is not None, "it comes in chunks"
    if pieces:
        joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)
        return asarray(joined, copy=False)
    return asarray(np.empty([n * (at != axis) for at, n in enumerate(type_.shape)], type_.dtype))


def whole_result(stage: Stage, node: int) -> Array:
    """Return a result that is whole, from the last stage."""
    return as_chunk(stage.known[node])


class DaskGraph:
    """The tasks of all passes of a traced plan."""

    def __init__(self, traced: TracedPlan) -> None:
        self.plan, self.axes = traced.plan, traced.axes
        self.spec: Any = importlib.import_module("dask._task_spec")
        self.name = f"blockwise-{uuid.uuid4().hex}"
        self.tasks: dict[Any, Any] = {}
        self.passes = [*self.plan.passes, self.plan.end]
        self.sources = {at: MappedFile.of(x) or x for at, x in enumerate(traced.sources)}
        """The sources that tasks read by themselves; the others are blocks."""
        self.blocks: dict[int, list[Any]] = {}
        """For each other source a Dask array of its chunks for each pass: a second pass makes them
        again, or all of them would be kept between the two."""
        for at, x in [*self.sources.items()]:
            if isinstance(x, (Array, np.ndarray)) or hasattr(x, "__dask_graph__"):
                self.blocks[at] = self._chunks_of(self.sources.pop(at), self.axes[at])
        for number in range(len(self.passes)):
            self._add_stage(number)

    def _chunks_of(self, x: Any, axis: int) -> list[Any]:
        sizes: list[Any] = [-1] * x.ndim
        sizes[axis] = tuple([end - begin for begin, end in self.plan.chunks])
        if isinstance(x, (Array, np.ndarray)):
            return [to_dask(x, tuple(sizes))] * len(self.passes)
        rows = x.rechunk(tuple(sizes))
        clone: Any = importlib.import_module("dask.graph_manipulation").clone
        return [rows if number == 0 else clone(rows) for number in range(len(self.passes))]

    def _add(self, key: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add a task; return the reference to its result."""
        self.tasks[key] = self.spec.Task(key, function, *arguments)
        return self.spec.TaskRef(key)

    def _add_stage(self, number: int) -> None:
        own = self.passes[number]
        key: Any = (f"{self.name}-stage", number)
        blocks = self._blocks_of(number, PREPARE)
        if number == 0:
            self.stage = self._add(key, first_stage, self.plan, self.sources, self.axes, *blocks)
        else:
            self.stage = self._add(key, next_stage, self.stage, self.partials, *blocks)
        self.partials: Any = {}
        if own is self.plan.end:
            return
        is_single = len(own.outputs) + bool(own.folds) == 1
        wanted = (0 if own.folds else 1) if is_single else None
        parts = []
        for chunk in range(len(self.plan.chunks)):
            key = (f"{self.name}-pass", number, chunk)
            if wanted == 1:
                key = self.key_of(own.outputs[0], chunk)
            blocks = self._blocks_of(number, chunk)
            result = self._add(key, run_chunk, self.stage, chunk, wanted, *blocks)
            if wanted is None:
                for at, output in enumerate(own.outputs):
                    self._add(self.key_of(output, chunk), getitem, result, at + 1)
                key = (f"{self.name}-partials", number, chunk)
                result = self._add(key, getitem, result, 0) if own.folds else None
            parts.append(result)
        if own.folds:
            self.partials = self._merged(number, parts)

    def _merged(self, number: int, parts: list[Any]) -> Any:
        level = 0
        while len(parts) > 1:
            groups = [parts[at : at + MERGED] for at in range(0, len(parts), MERGED)]
            keys = [(f"{self.name}-merge", number, level, at) for at in range(len(groups))]
            parts = [
                self._add(key, Stage.merge, self.stage, *group)
                for key, group in zip(keys, groups, strict=True)
            ]
            level += 1
        return parts[0]

    def _blocks_of(self, number: int, task: int) -> Iterator[Any]:
        """Yield the ranges of the blocks that a task reads, then references to them."""
        if not self.blocks:
            return
        wanted: dict[ReadRange, Any] = {}
        size = self.plan.chunks[0][1]
        for source, low, high in self.passes[number].reads(task):
            for at in range(low // size, -(-high // size)) if source in self.blocks else ():
                rows = self.blocks[source][number]
                index = [at * (axis == self.axes[source]) for axis in range(rows.ndim)]
                wanted[source, *self.plan.chunks[at]] = self.spec.TaskRef((rows.name, *index))
        yield tuple(wanted)
        yield from wanted.values()

    def key_of(self, output: int, chunk: int = 0) -> Any:
        """Return the key of a chunk of a result."""
        node = self.plan.graph.outputs[output]
        axes = range(len(self.plan.graph.nodes[node].type.shape))
        return (f"{self.name}-{output}", *[chunk * (at == self.plan.axes[node]) for at in axes])

    def arrays(self) -> list[Any]:
        """Return the Dask arrays of all results."""
        plan, results = self.plan, []
        graphs: Any = importlib.import_module("dask.highlevelgraph").HighLevelGraph
        made_of = [rows for of_passes in self.blocks.values() for rows in of_passes]
        for output, node in enumerate(plan.graph.outputs):
            type_, axis = plan.graph.nodes[node].type, plan.axes[node]
            sizes: list[Any] = [(n,) for n in type_.shape]
            if axis is None:
                self._add(self.key_of(output), whole_result, self.stage, node)
            else:
                leaves = plan.leaves(type_.shape[axis])
                sizes[axis] = tuple([sum(end - begin for _, begin, end in own) for own in leaves])
            results.append((f"{self.name}-{output}", tuple(sizes), empty_chunk(type_)))
        da = dask_array("tn.blockwise")
        return [
            da.Array(graphs.from_collections(name, self.tasks, made_of), name, sizes, meta=meta)
            for name, sizes, meta in results
        ]


def refuse_target(out: Any) -> None:
    """Raise UnsupportedError without Dask, and for a target, which no task would write."""
    dask_array("tn.blockwise")
    if out is not None:
        rule = "a Dask array is stored when it is computed"
        remedy = "leave out= out, and store the result: dask.array.store(result, out)"
        raise UnsupportedError("tn.blockwise", rule, remedy=remedy)


def _reduce_plan(plan: ChunkPlan) -> tuple[Any, ...]:
    """Return the pickled form of a plan: its graph, in which inputs are placeholders."""
    inputs = sorted(plan.inputs, key=plan.inputs.__getitem__)
    origins = [node.origin for node in plan.graph.nodes]
    axes = [plan.axes[at] for at in inputs]
    columns = write_nodes(plan.graph, traced=True)
    numbers = [plan.inputs[at] for at in inputs]
    chunks = plan.chunks[0][1], plan.chunks[-1][1]  # not a pair for each of 100,000 chunks
    facts = (plan.graph.outputs, inputs, numbers, axes, chunks, plan.known)
    return _restore_plan, (columns, origins, *facts)


def _restore_plan(
    columns: tuple[Any, ...],
    origins: Sequence[tuple[str, int] | None],
    outputs: Sequence[int],
    inputs: Sequence[int],
    numbers: Sequence[int],
    axes: Sequence[int],
    chunks: tuple[int, int],
    known: Known,
) -> ChunkPlan:
    restored = restore_nodes(columns, origins)
    graph = Graph.of([_native.node_of(restored[at]) for at in outputs])
    unused = _native.placeholder(Type((0,), np.dtype(bool), dense.HOST))
    sources = [_native.node_of(unused)] * (1 + max(numbers, default=-1))
    all_axes = [0] * len(sources)
    for at, number, axis in zip(inputs, numbers, axes, strict=True):
        sources[number], all_axes[number] = _native.node_of(restored[at]), axis
    size, total = chunks
    rows = [(begin, min(begin + size, total)) for begin in range(0, total, size)]
    return ChunkPlan(graph, sources, all_axes, rows, known)


copyreg.pickle(ChunkPlan, _reduce_plan)
