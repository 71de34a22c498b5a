"""Schedule text: the steps of a schedule, their reasons, generated source and launches.

Takes a Snapshot at a graph whose device schedules, hands on the text of the stages "scheduled",
"generated" and "executed". The numbers equal the counters of tn.profile().

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> x = tn.asarray([1.0, 2.0, 3.0])
>>> print(planned_text(Snapshot(pipeline.graph_of([tn.sqrt(x * x + 1)]))))
scheduled: 1 kernel, 0 calls, 0 temporaries
  1. kernel, linear: multiply, add, sqrt -> float64[3]
     contiguous
     packets of 32 elements, 1 unit of work on 1 thread
     must move 48 bytes, moves 48
  peak memory: 24 bytes, inputs not counted
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tenfold import _native
from tenfold._native import DEFERRAL, TIERS, Node
from tenfold.inspect.graph_text import unfused_traffic
from tenfold.inspect.live_references import step_reasons
from tenfold.inspect.memory_traffic import loop_bytes, loop_lengths, peak_memory, required_bytes
from tenfold.inspect.named_intermediates import named_lines
from tenfold.inspect.product_text import compiled_by, library_of, product_line
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, in_bytes, operations, shortened
from tenfold.jit.program import Source, source_of, state_of
from tenfold.runtime.thread_count import threads_of
from tenfold.schedule.schedule_ir import Buffer, Launch, Step
from tenfold.schedule.target import DEFAULT, Target
from tenfold.settings import get

SMALL_SCRATCH_BYTES = 64
"""Bytes of scratch memory up to which no line is printed."""
TRAVERSALS = {
    "linear": "contiguous",
    "inner": "nested loops, the innermost contiguous or strided",
    "tiled": "tiles: two operands disagree on which axis is contiguous",
    "gather": "elements at computed indices",
    "row": "row by row, vectorised along the reduced axis",
    "short row": "row by row, each one packet",
    "column": "vectorised across columns, a loop along the reduced axis",
    "split": "few long rows, split into blocks that are reduced and then combined",
    "search": "row by row: the best value of each chunk, then its index in the best chunk",
    "search parts": "few long rows, split into parts that are searched and then compared",
    "scan": "vectorised across rows, a running value of each along the scanned axis",
    "scan blocks": "vectorised across blocks of a row, then the prefix of each block is added",
    "scan parts": "as scan blocks; threads take parts of rows, after a pass for their totals",
    "scan columns": "vectorised across columns, a running value of each",
    "segments": "row by row, each the entries between two offsets, vectorised across columns",
    "scatter": "elements combined with the cells that they name, one by one",
    "scatter parts": "as scatter; threads take parts of elements whose cells ascend",
    "scatter rows": "rows combined with the cells that they name, vectorised across columns",
}
"""What each traversal means."""


def planned_text(snapshot: Snapshot) -> str:
    """Return the steps: operations, loops, reasons, and the bytes that each moves."""
    if (text := _missing_schedule_text("scheduled", snapshot)) is not None:
        return text
    plan = snapshot.plan
    kernels = sum(step.kind == "kernel" for step in plan.steps)
    calls = sum(_is_call(step) for step in plan.steps)
    temporaries = count_text(len(plan.temporaries), "temporary")
    head = f"scheduled: {count_text(kernels, 'kernel')}, {count_text(calls, 'call')}, {temporaries}"
    lines = [
        line
        for number, (step, reasons_of_step) in enumerate(
            zip(plan.steps, step_reasons(snapshot), strict=True), 1
        )
        for line in _step_lines(snapshot, number, step, reasons_of_step)
    ]
    peak = in_bytes(peak_memory(snapshot.plan, snapshot.optimised))
    footer = f"  peak memory: {peak}, inputs not counted"
    return "\n".join([head, *shortened(lines), *named_lines(snapshot), footer])


def _missing_schedule_text(stage: str, snapshot: Snapshot) -> str | None:
    """Why there is no schedule to show; None where there is one."""
    if not snapshot.pending_operations:
        return f"{stage}: nothing is left to run on {snapshot.device}, all values are computed"
    if snapshot.device_parts:
        return "\n".join([f"{stage}: on several devices, in parts", *_device_lines(snapshot)])
    if not snapshot.has_schedule:
        return f"{stage}: device {snapshot.device} has no schedule, it runs one operation at a time"
    if snapshot.steps:
        head, *lines = _loop_lines(snapshot)
        return "\n".join([f"{stage}: {head}", *shortened(lines)])
    if snapshot.chunks > 1:
        nodes = f"{len(snapshot.optimised)} nodes are computed in {snapshot.chunks} chunks"
        return f"{stage}: {nodes}, each with its own schedule"
    return None


def _device_lines(snapshot: Snapshot) -> list[str]:
    """The device of each part, with its operations."""
    parts = snapshot.device_parts
    results = {node for outputs in parts for node in outputs}
    return [
        f"  {outputs[0].type.device}: {operations(_operations_above(outputs, results), ', ')}"
        for outputs in parts
    ]


def _loop_lines(snapshot: Snapshot) -> list[str]:
    """The number of steps of a loop and of their plans, then each run of equal steps with the
    operations of one.
    """
    runs: list[tuple[int, int, list[Node]]] = []
    for outputs, count, kind in snapshot.steps:
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + count, runs[-1][2])
        else:
            runs.append((kind, count, outputs))
    # the first step reads what was there before the loop, the last one has other readers
    kinds = {kind for kind, *_ in runs[1:-1] or runs[:1]}
    steps = sum(count for _, count, _ in runs)
    plans = "one plan" if len(kinds) == 1 else f"{len(kinds)} plans"
    lines = [f"{steps} steps of {plans}, one after another, with the bits of waiting in each"]
    results = {node for outputs, *_ in snapshot.steps for node in outputs}
    first = 1
    for _, count, outputs in runs:
        which = f"step {first}" if count == 1 else f"steps {first} to {first + count - 1}"
        lines.append(f"  {which}: {operations(_operations_above(outputs, results), ', ')}")
        first += count
    return lines


def _operations_above(outputs: Sequence[Node], results: set[Node]) -> list[str]:
    """The names of the operations that compute results from those of earlier steps."""
    names: list[str] = []
    worklist, visited = [*outputs], {*outputs}
    while worklist:
        node = worklist.pop()
        if not node.pending or node.is_scalar:
            continue
        names.append(node.name)
        inputs = [x for x in node.inputs if x not in visited and x not in results]
        visited.update(inputs)
        worklist += inputs
    return names[::-1]


def _is_call(step: Step) -> bool:
    return step.kind not in ("kernel", "alias", "part", "empty")


def _step_lines(
    snapshot: Snapshot, number: int, step: Step, stored_because: Sequence[str]
) -> Iterator[str]:
    """The lines of a step, with the reasons why its results are stored."""
    results = ", ".join(_result(snapshot, result) for result in step.results)
    traversal = f", {step.launch.kernel.traversal}" if step.launch else ""
    yield f"  {number}. {step.kind}{traversal}: {operations(step.names, ', ')} -> {results}"
    notes = _kernel_notes if step.launch else _call_notes
    lines = [
        *notes(snapshot, step),
        *_live_out(snapshot, step),
        *_stored_lines(stored_because),
        *step.not_fused_because,
    ]
    yield from (f"     {line}" for line in lines)


def _live_out(snapshot: Snapshot, step: Step) -> Iterator[str]:
    """The results of a step that were not asked for, but that an array still refers to."""
    graph = snapshot.optimised
    for result in step.results:
        position = snapshot.plan.items[result.item].position
        if result.item in snapshot.plan.live_out and position not in graph.outputs:
            yield f"stored, {graph.nodes[position].name}: live-out"


def _stored_lines(reasons: Sequence[str]) -> Iterator[str]:
    """Why intermediates are stored; equal reasons are printed once."""
    for reason, times in Counter(reasons).items():
        yield f"stored, {reason}" if times == 1 else f"stored, {reason}; {times} results"


def _result(snapshot: Snapshot, buffer: Buffer) -> str:
    text = f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
    return f"temporary {text}" if buffer.item in snapshot.plan.temporaries else text


def _kernel_notes(snapshot: Snapshot, step: Step) -> Iterator[str]:
    launch = step.launch
    assert launch is not None, "a kernel step has a launch"
    kernel = launch.kernel
    passes = f", {kernel.passes} passes" if kernel.passes > 1 else ""
    yield TRAVERSALS[kernel.traversal] + passes
    if kernel.block:
        yield f"{launch.units:,} threads in blocks of {kernel.block}"
    else:
        yield f"packets of {kernel.lanes} elements, {_units(launch, snapshot.plan.target)}"
    yield _traffic_line(snapshot, launch)
    if kernel.streamed:
        yield "non-temporal stores: the results are larger than the cache"
    if any(result.item in dict(snapshot.plan.reused_buffers) for result in step.results):
        yield "reuses the operand's buffer: it is dead after this read"
    if launch.scratch > SMALL_SCRATCH_BYTES:
        yield f"scratch memory: {in_bytes(launch.scratch)} per thread"


def _units(launch: Launch, target: Target) -> str:
    threads = max(1, min(threads_of(launch, target), -(-launch.units // launch.grain)))
    units = count_text(launch.units, "unit")
    return f"{units} of work on {count_text(threads, 'thread')}"


def _traffic_line(snapshot: Snapshot, launch: Launch) -> str:
    required, loop_traffic = required_bytes(snapshot.plan, launch), loop_bytes(launch)
    text = f"must move {in_bytes(required)}, moves {loop_traffic:,}"
    if loop_traffic <= required:
        return text
    passes = launch.kernel.passes
    if passes > 1:
        row = loop_lengths(launch)[launch.kernel.folded]
        return f"{text}: later passes read the row of {row:,} elements from cache"
    return f"{text}: an operand is read at several offsets"


def _call_notes(snapshot: Snapshot, step: Step) -> Iterator[str]:
    if step.kind == "alias":
        yield "view, no copy"
    elif step.kind == "part":
        yield "one result of the call, no copy"
    elif step.kind == "empty":
        yield "no elements: nothing runs"
    else:
        graph = snapshot.optimised
        product, node = step.product, graph.nodes[step.position]
        if node.op is not None and node.op.lowering.explain_lines is not None:
            yield from node.op.lowering.explain_lines(*node.params)
        else:
            yield product_line(product) if product else library_of(snapshot, step)
        if not _native.is_host_device(snapshot.device) and product is None:
            yield "computed on the host: operands and results are copied"
        if work := graph.multiply_adds(step.position):
            yield f"{work:,} multiply-adds"
        yield f"must move {in_bytes(unfused_traffic(graph, step.position))}"


def rendered_text(snapshot: Snapshot) -> str:
    """Return the source text of each kernel; equal kernels are printed once."""
    if (text := _missing_schedule_text("generated", snapshot)) is not None:
        return text
    kernels: dict[Source, list[int]] = {}
    for number, step in enumerate(snapshot.plan.steps, 1):
        if (compiled := compiled_by(step)) is not None:
            kernels.setdefault(compiled[0], []).append(number)
    lines = [f"generated: {count_text(len(kernels), 'kernel')} in LLVM IR"]
    for kernel, numbers in kernels.items():
        lines.append(f"; step {', '.join(map(str, numbers))}")
        lines.extend(source_of(kernel, snapshot.plan.target).splitlines())
    return "\n".join(shortened(lines))


def rendered_hint(snapshot: Snapshot) -> str:
    """Return how to print the source text, which is too long for the list of all stages."""
    kernels = len({compiled[0] for step in snapshot.plan.steps if (compiled := compiled_by(step))})
    if not kernels:
        return "generated: nothing"
    return f'generated: {count_text(kernels, "kernel")} in LLVM IR, see explain("generated")'


def executed_text(snapshot: Snapshot) -> str:
    """Return the launches that would run now, and how each is compiled."""
    if (text := _missing_schedule_text("executed", snapshot)) is not None:
        return text
    if snapshot.is_cold:
        return _interpreter_text(snapshot)
    launches = [
        (number, step)
        for number, step in enumerate(snapshot.plan.steps, 1)
        if step.launch or _is_call(step)
    ]
    lines = [
        f"  {number}. {operations(step.names, '+')}: {_program_state(step, snapshot.plan.target)}"
        for number, step in launches
    ]
    if not lines:
        return f"executed: nothing to launch on {snapshot.device}"
    head = f"executed: {count_text(len(launches), 'launch')} pending on {snapshot.device}"
    if get("check_nans"):
        head += ", each operation unfused (option check_nans)"
    return "\n".join([head, *shortened(lines), *_optimisation_thresholds()])


def _optimisation_thresholds() -> Iterator[str]:
    """The numbers by which kernels are compiled with optimisation, if they decide."""
    if get("tier") == "auto":
        elements, launches = f"{TIERS.optimised_elements:,}", TIERS.optimised_launches
        yield f"  thresholds: optimised from {elements} elements, else after {launches} launches"


def _interpreter_thresholds(snapshot: Snapshot) -> str:
    """The numbers by which a graph is interpreted, and by which its assignments wait."""
    pending = [node for node in snapshot.graph.nodes if node.pending and node.op is not None]
    updates = any(node.op.lowering.updates for node in pending)
    elements = TIERS.max_update_elements if updates else TIERS.max_elements
    if len(snapshot.graph) > DEFAULT.work.max_planned_nodes:
        elements = TIERS.max_long_elements
    text = f"  thresholds: {get('hot_threshold')} runs, arrays of at most {elements:,} elements"
    if not updates:
        return text
    waiting = f"up to {DEFERRAL.max_deferred} assignments wait"
    return f"{text}; {waiting} after {DEFERRAL.min_run} to similar parts"


def _interpreter_text(snapshot: Snapshot) -> str:
    """Return the launches of a cold structure or a large graph: each operation unfused."""
    pending = [node for node in snapshot.graph.nodes if node.pending and not node.is_scalar]
    nodes = [node for node in pending if not node.op.is_affine_view]
    if not nodes:
        return f"executed: nothing to launch on {snapshot.device}"
    condition = f"until this structure has run {get('hot_threshold')} times"
    if len(snapshot.graph) > DEFAULT.work.max_planned_nodes:
        condition = f"as the graph has more than {DEFAULT.work.max_planned_nodes} nodes"
    launches = count_text(len(nodes), "launch")
    head = (
        f"executed: {launches} pending on {snapshot.device}, each operation "
        f"unfused {condition} (option tier)"
    )
    lines = [
        f"  {number}. {node.name}: {_kernel_kind(node)}" for number, node in enumerate(nodes, 1)
    ]
    return "\n".join([head, *shortened(lines), _interpreter_thresholds(snapshot)])


def _kernel_kind(node: Any) -> str:
    """How the op interpreter computes a node."""
    op = node.op
    if op.semantics.shapes == "broadcast":
        return "a strided kernel for any shape"
    if op.lowering.folding:
        return "a reduction kernel for any shape, axis by axis"
    if op.rewriting.contraction is not None and [x.type.ndim for x in node.inputs] == [1, 1]:
        return "a kernel of two vectors of any length"
    return "its own schedule"


def _program_state(step: Step, target: Target) -> str:
    """The state of a step's program in the caches, and its tier."""
    noun = "a kernel" if step.launch else "a call"
    compiled = compiled_by(step)
    if compiled is None:
        return noun
    tier, availability = state_of(*compiled, target)
    optimisation = "with optimisation" if tier else "quickly"
    return f"{noun}, {availability} {optimisation} (tier {tier})"
