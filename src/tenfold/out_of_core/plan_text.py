"""Plan text: what `tn.blockwise(..., explain=True)` prints, before anything runs.

Takes a traced plan and the number of workers, hands on text: for each pass its chunks, the bytes
that it reads, what it reduces, and the rows that it makes; at last the peak of memory.

>>> import numpy as np, tenfold as tn
>>> from tenfold.out_of_core.trace_plan import trace_plan
>>> traced = trace_plan(lambda x: x - tn.mean(x, axis=0), [np.ones((3000, 2))], 0, 1024)
>>> print(plan_text(traced, 2))
blockwise: 2 passes over 3 chunks of 1,024 rows, axis 0
pass 1: reads 48,000 bytes; reduces sum
pass 2: reads 48,000 bytes; makes the rows of result 1: float64[3000, 2], 48,000 bytes
peak memory: 49,152 bytes: 3 chunks with 16,384 bytes of sources and results each
"""

from __future__ import annotations

from tenfold import pipeline
from tenfold._native import Array
from tenfold.core.graph import type_text
from tenfold.inspect.memory_traffic import peak_memory
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, in_bytes
from tenfold.out_of_core.chunk_plan import ChunkPass
from tenfold.out_of_core.chunk_sources import bytes_of, is_memory
from tenfold.out_of_core.cut_rows import Blocks, ReadRange, RowBuilder
from tenfold.out_of_core.trace_plan import TracedPlan


def plan_text(traced: TracedPlan, workers: int) -> str:
    """Return the passes of a plan as text, with the bytes that they move."""
    plan, count = traced.plan, len(traced.plan.chunks)
    rows = plan.chunks[0][1] - plan.chunks[0][0]
    axes = ", ".join(str(axis) for axis in sorted({*traced.axes}))
    head = f"{count_text(len(plan.passes), 'pass').replace('passs', 'passes')} over "
    lines = [f"blockwise: {head}{count_text(count, 'chunk')} of {rows:,} rows, axis {axes}"]
    lines += [_pass_text(traced, stage) for stage in plan.passes]
    most = max([_chunk_bytes(traced, stage) for stage in plan.passes], default=0)
    held = min(workers + 1, count)
    joined = f"peak memory: {in_bytes(held * most)}: {count_text(held, 'chunk')} with "
    lines.append(f"{joined}{in_bytes(most)} of sources and results each")
    return "\n".join(lines)


def _pass_text(traced: TracedPlan, stage: ChunkPass) -> str:
    plan = traced.plan
    read = sum(
        _range_bytes(traced, part) for chunk in _chunks(traced) for part in stage.reads(chunk)
    )
    parts = [f"pass {stage.number + 1}: reads {in_bytes(read)}"]
    if stage.folds:
        names = [plan.graph.nodes[at].name for at in stage.folds]
        parts.append(f"reduces {', '.join(names)}")
    for output in stage.outputs:
        type_ = plan.graph.nodes[plan.graph.outputs[output]].type
        size = in_bytes(type_.size * type_.dtype.itemsize)
        parts.append(f"makes the rows of result {output + 1}: {type_text(type_)}, {size}")
    return "; ".join(parts)


def _chunks(traced: TracedPlan) -> range:
    return range(len(traced.plan.chunks))


def _range_bytes(traced: TracedPlan, part: ReadRange) -> int:
    source, begin, end = part
    values, axis = traced.sources[source], traced.axes[source]
    return bytes_of(values) // max(int(values.shape[axis]), 1) * (end - begin)


def _chunk_bytes(traced: TracedPlan, stage: ChunkPass) -> int:
    """Return the bytes that the task of a full chunk holds: sources, results, temporaries."""
    read = [part for part in stage.reads(0) if not is_memory(traced.sources[part[0]])]
    builder = RowBuilder(traced.plan, Blocks(None), traced.plan.known)
    arrays: list[Array] = stage.expressions(0, builder)
    snapshot = Snapshot(pipeline.graph_of(arrays))
    computed = peak_memory(snapshot.plan, snapshot.optimised) if snapshot.has_schedule else 0
    return computed + sum(_range_bytes(traced, part) for part in read)
