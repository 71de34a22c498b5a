"""Chunk plan: cut a traced function into passes over its sources, each a task for every chunk.

Takes the graph of a function and the axes along which its inputs come in chunks. The analysis says
of each node whether its value comes in chunks, along which axis, or whole, and after how many
passes: a fold of the chunked axis is whole, one pass later. Hands on the Passes. A pass has one
task for each chunk and, before them, one that computes what is whole. What a task reads is known
before it runs (`reads`). Partial results are ndarrays, combined in any order (`fold_tree.py`). So a
scheduler needs only: `prepare`, `run` for each chunk, `merge`, `close`, and at last `results`.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((9, 2), tn.float64, "cpu"))
>>> node = tn._native.node_of((x - tn.mean(x, axis=0)) * 2)
>>> plan = ChunkPlan(Graph.of([node]), [tn._native.node_of(x)], [0], [(0, 5), (5, 9)], {})
>>> [(len(p.folds), len(p.outputs)) for p in plan.passes]
[(1, 0), (0, 1)]
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tenfold import pipeline
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.errors import ExplainedError, RunError, UnsupportedError, raise_if_failed
from tenfold.out_of_core.chunk_folds import ChunkFold
from tenfold.out_of_core.chunk_rules import RowRule, is_long, row_rule
from tenfold.out_of_core.cut_node import CannotCutError, CutNode
from tenfold.out_of_core.cut_rows import Blocks, ReadRange, RowBuilder
from tenfold.out_of_core.fold_tree import Leaf, Place, close, leaves_of, merge

Known = dict[int, np.ndarray]
"""The values that are there whole, by the positions of their nodes."""
Partials = dict[int, dict[Place, np.ndarray]]
"""The records of folds, by the positions of their nodes and their places in the tree."""
PREPARE = -1
"""The number of the task before those of the chunks."""


class Piece(NamedTuple):
    """Rows of a result."""

    output: int
    begin: int
    end: int
    value: np.ndarray


class ChunkResult(NamedTuple):
    """What the task of a chunk hands on."""

    partials: Partials
    pieces: list[Piece]


class ChunkPass:
    """One pass over the chunks: the folds and the rows of results that it computes."""

    def __init__(self, plan: ChunkPlan, number: int) -> None:
        self.plan, self.number = plan, number
        self.folds = [at for at in plan.folds if plan.levels[at] == number]
        self.outputs = [
            at
            for at, node in enumerate(plan.graph.outputs)
            if plan.axes[node] is not None and plan.level_after(node) == number
        ]
        """The numbers of the results whose rows it computes."""

    def reads(self, task: int) -> list[ReadRange]:
        """Return the rows that a task reads: that of a chunk, or PREPARE. Nothing is computed."""
        if task > 0 and self.keeps_rows:
            return [(source, *self.plan.chunks[task]) for source, *_ in self._first_reads]
        blocks = Blocks(None)
        builder = RowBuilder(self.plan, blocks, self.plan.known)
        self.expressions(task, builder)
        return blocks.ranges()

    @cached_property
    def _first_reads(self) -> list[ReadRange]:
        return self.reads(0)

    @cached_property
    def keeps_rows(self) -> bool:
        """Whether each chunk reads the rows of its own numbers: then the first one tells all."""
        plan = self.plan
        lengths = [plan.folds[at].length for at in self.folds]
        lengths += [plan.output_length(at) for at in self.outputs]
        moves = any(rule.moves_rows for rule in plan.rules.values())
        return not moves and {*lengths} <= {plan.chunks[-1][1]}

    def expressions(self, task: int, builder: RowBuilder) -> list[Array]:
        """Return the lazy arrays that a task computes."""
        if task == PREPARE:
            return [builder.make(at) for at in self._wanted]
        arrays: list[Array] = []
        for folds, outputs in self._leaves(task):
            for at, (_, begin, end) in folds:
                arrays += self.plan.folds[at].parts(builder.of(at), begin, end)
            for at, (_, begin, end) in outputs:
                arrays.append(builder.rows(self.plan.graph.outputs[at], begin, end))
            builder.forget()
        return arrays

    def prepare(self, blocks: Mapping[ReadRange, Any], known: Known) -> Known:
        """Return the known values, with those that the chunks need whole."""
        builder = RowBuilder(self.plan, Blocks(blocks), known)
        arrays = [builder.whole(at) for at in self._wanted]
        return {**known, **dict(zip(self._wanted, computed(arrays), strict=True))}

    def run(self, chunk: int, blocks: Mapping[ReadRange, Any], known: Known) -> ChunkResult:
        """Compute a chunk from the rows that `reads` names."""
        builder = RowBuilder(self.plan, Blocks(blocks), known)
        result = ChunkResult({at: {} for at in self.folds}, [])
        for folds, outputs in self._leaves(chunk):
            parts = [self.plan.folds[at].parts(builder.of(at), *rows) for at, (_, *rows) in folds]
            rows = [builder.rows(self.plan.graph.outputs[at], *r) for at, (_, *r) in outputs]
            builder.forget()  # what has no name need not be stored
            values = computed([x for part in parts for x in part] + rows)
            for (at, (place, begin, _)), part in zip(folds, parts, strict=True):
                own, values = values[: len(part)], values[len(part) :]
                result.partials[at][place] = self.plan.folds[at].record(own, begin)
            for (at, (_, begin, end)), value in zip(outputs, values, strict=True):
                result.pieces.append(Piece(at, begin, end, value))
        return result

    def merge(self, *partials: Partials) -> Partials:
        """Combine the records of neighbours; in any order it comes to the same bits."""
        return {
            at: merge(self.plan.folds[at].combine, *[part[at] for part in partials])
            for at in self.folds
        }

    def close(self, partials: Partials, known: Known) -> Known:
        """Return the known values, with the results of the folds."""
        values = {**known}
        for at in self.folds:
            fold = self.plan.folds[at]
            values[at] = fold.finish(close(fold.combine, partials[at]))
        return values

    def _leaves(self, chunk: int) -> list[tuple[list[tuple[int, Leaf]], list[tuple[int, Leaf]]]]:
        """Return groups of leaves of a chunk: those of all folds and results that lie side by
        side.
        """
        plan = self.plan
        folds = [(at, plan.leaves(plan.folds[at].length)[chunk]) for at in self.folds]
        outputs = [(at, plan.leaves(plan.output_length(at))[chunk]) for at in self.outputs]
        count = max([len(leaves) for _, leaves in [*folds, *outputs]], default=0)
        return [
            (
                [(at, leaves[i]) for at, leaves in folds if i < len(leaves)],
                [(at, leaves[i]) for at, leaves in outputs if i < len(leaves)],
            )
            for i in range(count)
        ]

    @cached_property
    def _wanted(self) -> list[int]:
        """The whole nodes that this pass computes before its chunks, or at the end."""
        plan = self.plan
        return [
            at
            for at in plan.stored
            if plan.levels[at] == self.number and at not in plan.known and at not in plan.folds
        ]


class ChunkPlan:
    """The passes of a function over chunks."""

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Node],
        axes: Sequence[int],
        chunks: Sequence[tuple[int, int]],
        known: Known,
    ) -> None:
        self.graph, self.chunks, self.known = graph, chunks, known
        position = {node: at for at, node in enumerate(graph.nodes)}
        self.inputs = {position[x]: at for at, x in enumerate(inputs) if x in position}
        """The numbers of the sources, by the positions of their nodes."""
        self.axes: list[int | None] = []
        self.levels: list[int] = []
        self.rules: dict[int, RowRule] = {}
        self.folds: dict[int, ChunkFold] = {}
        self.long: list[bool] = []
        self._leaves: dict[int, list[list[Leaf]]] = {}
        for at in range(len(graph.nodes)):
            self._analyse(at, axes)
        levels = [self.levels[at] for at in self.folds]
        levels += [self.level_after(at) for at in graph.outputs if self.axes[at] is not None]
        self.passes = [ChunkPass(self, number) for number in range(max(levels, default=-1) + 1)]
        self.end = ChunkPass(self, len(self.passes))
        """Has no chunks: its `prepare` computes the results that are whole."""

    def _analyse(self, at: int, axes: Sequence[int]) -> None:
        """Find out whether a node comes in chunks, and after which pass."""
        node, inputs = self.graph.nodes[at], self.graph.inputs[at]
        source = self.inputs.get(at)
        axis = None if source is None else axes[source]
        level = max([self.level_after(i) for i in inputs], default=0)
        if any(self.axes[i] is not None for i in inputs):
            is_part = node.op is None  # of several results
            axis = self.axes[inputs[0]] if is_part else self._cut(at, node.op)
        self.axes.append(axis)
        self.levels.append(level)
        cheap_inputs = [i for i in inputs if not self.graph.nodes[i].is_scalar]
        pending = node.pending and at not in self.known and source is None
        self.long.append(
            pending
            and axis is None
            and at not in self.rules
            and is_long(node, [self.long[i] for i in cheap_inputs])
        )

    def _cut(self, at: int, op: Any) -> int | None:
        node, inputs = self.graph.nodes[at], self.graph.inputs[at]
        shapes = tuple([self.graph.nodes[i].type.shape for i in inputs])
        cut = CutNode(node, op, tuple([self.axes[i] for i in inputs]), shapes)
        try:
            if not isinstance(op, Op) or op.semantics.opaque:
                raise CannotCutError("it is a Python function, of unknown axes")
            rule = self.rules[at] = row_rule(cut)
        except CannotCutError as error:
            raise self._refusal(cut, str(error)) from None
        if rule.fold is not None:
            self.folds[at] = rule.fold
        return rule.axis

    def _refusal(self, cut: CutNode, reason: str) -> UnsupportedError:
        name = cut.node.name
        if cut.node.origin:
            file, line = cut.node.origin
            text = linecache.getline(file, line).strip()
            name = f"{name} at {file}:{line}" + (f", of the line {text!r}," if text else "")
        rule = f"{name} needs all rows at once" + (f": {reason}" if reason else "")
        remedy = (
            "read the sources in chunks along another axis, with axis=; reduce the rows before; or "
            "compute it in memory, where it fits: function(*sources)"
        )
        operands = [node.type for node in cut.node.inputs if not node.is_scalar]
        return UnsupportedError("tn.blockwise", rule, operands, remedy)

    def level_after(self, at: int) -> int:
        """Return the pass in which a node can be read: a fold's value comes after its own."""
        return self.levels[at] + (at in self.folds)

    def leaves(self, length: int) -> list[list[Leaf]]:
        """Return the leaves of each chunk, of an array with that many rows."""
        if length not in self._leaves:
            self._leaves[length] = leaves_of(self._rows(length))
        return self._leaves[length]

    def _rows(self, length: int) -> list[tuple[int, int]]:
        """Return the rows of each chunk: those of the sources, or in proportion."""
        total = self.chunks[-1][1]
        if abs(length - total) < self.chunks[0][1]:
            rows = [(min(a, length), min(b, length)) for a, b in self.chunks]
        else:
            rows = [(a * length // total, b * length // total) for a, b in self.chunks]
        return [*rows[:-1], (rows[-1][0], length)]

    def output_length(self, output: int) -> int:
        """Return the rows of a result that comes in chunks."""
        at = self.graph.outputs[output]
        axis = self.axes[at]
        assert axis is not None, "it comes in chunks"
        return int(self.graph.nodes[at].type.shape[axis])

    @cached_property
    def stored(self) -> list[int]:
        """The whole nodes whose values tasks read: they are computed once."""
        readers: dict[int, bool] = dict.fromkeys(self.graph.outputs, True)
        for at, inputs in enumerate(self.graph.inputs):
            if self.axes[at] is not None or at in self.folds or self.long[at] or at in self.rules:
                readers |= dict.fromkeys(inputs, True)
        outputs = dict.fromkeys(self.graph.outputs, True)
        return [
            at
            for at, node in enumerate(self.graph.nodes)
            if at in readers
            and self.axes[at] is None
            and not node.is_scalar
            and len(node.types) == 1
            and (not self.long[at] or at in outputs)
        ]


def chunk_error(plan: ChunkPlan, chunk: int, error: Exception) -> Exception:
    """Return the error of a task with the rows of its chunk."""
    begin, end = plan.chunks[chunk]
    where = f"chunk {chunk} (rows {begin} to {end - 1})"
    if isinstance(error, MemoryError):
        error.add_note(f"tn.blockwise: in {where}; give a smaller chunk=")
        return error
    explained = isinstance(error, ExplainedError)
    text = f"{type(error).__name__}: {error}"
    text = str(error).partition("\n  remedy:")[0] if explained else text
    remedy = getattr(error, "remedy", None)
    failure = RunError("tn.blockwise", f"{where}: {text}", remedy=remedy)
    failure.__cause__ = error
    return failure


def computed(arrays: Sequence[Array]) -> list[np.ndarray]:
    """Compute arrays together, and return their values."""
    raise_if_failed(pipeline.evaluate(arrays))
    return [np.asarray(x) for x in arrays]
