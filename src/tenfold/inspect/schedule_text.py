"""Schedule report: a plan's steps with their reasons, their source text and their launches.

Takes a Snapshot of a graph on a device that plans, hands on the text of the stages "planned",
"rendered" and "executed". Its numbers are those that the counters of tn.profile() will show.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> x = tn.asarray([1.0, 2.0, 3.0])
>>> print(planned_text(Snapshot(pipeline.expression([tn.sqrt(x * x + 1)]))))
planned: 1 kernel, 0 calls, 0 temporaries
  1. kernel, linear: multiply, add, sqrt -> float64[3]
     memory from end to end
     packets of 32 elements, 1 unit of work on 1 thread
     must move 48 bytes, moves 48
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tenfold import _native
from tenfold.inspect.graph_text import bytes_of
from tenfold.inspect.live_references import reasons
from tenfold.inspect.memory_traffic import does_move, lengths_of, must_move
from tenfold.inspect.product_text import compiled_by, product_of
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import counted, in_bytes, operations, shortened
from tenfold.jit.program import Source, source_of, state_of
from tenfold.runtime.cpu import threads_of
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.schedule import Buffer, Step
from tenfold.settings import get

LITTLE = 64
"""Bytes of scratch memory that are not worth a line."""
TRAVERSALS = {
    "linear": "memory from end to end",
    "inner": "rows, each from end to end or by a stride",
    "tiled": "small blocks: two operands disagree on which axis is fast",
    "gather": "elements at computed places",
    "row": "row by row, packets along the axis that is folded",
    "column": "columns side by side, packets across them, a loop along the axis that is folded",
    "split": "few long rows, cut into blocks that are folded apart and then with one another",
    "search": "row by row: the best of each chunk, then its position where the best one is",
    "search parts": "few long rows, cut into parts that are searched apart and then compared",
    "scan": "rows side by side, each with its running value along the axis that is scanned",
    "scan blocks": "blocks of a row side by side, then what the blocks before each come to",
    "scan parts": "as scan blocks; many threads take parts of rows, first for what they come to",
    "scan columns": "columns side by side, a running value for each",
}
"""What each traversal means."""


def planned_text(look: Snapshot) -> str:
    """Return the steps: what each computes, how, why, and the bytes that it moves."""
    if (text := _unplanned("planned", look)) is not None:
        return text
    plan = look.plan
    kernels = sum(step.kind == "kernel" for step in plan.steps)
    calls = sum(_is_call(step) for step in plan.steps)
    temporaries = counted(len(plan.temporaries), "temporary")
    head = f"planned: {counted(kernels, 'kernel')}, {counted(calls, 'call')}, {temporaries}"
    lines = [
        line
        for number, (step, why) in enumerate(zip(plan.steps, reasons(look), strict=True), 1)
        for line in _planned(look, number, step, why)
    ]
    return "\n".join([head, *shortened(lines)])


def _unplanned(stage: str, look: Snapshot) -> str | None:
    """Why there is no plan to show, where there is none."""
    if not look.operations:
        return f"{stage}: nothing is left to run on {look.device}, the values are there"
    if not look.plans:
        return f"{stage}: device {look.device} has no plan, it takes one operation at a time"
    if look.pieces > 1:
        nodes = f"{len(look.optimised)} nodes are computed in {look.pieces} pieces"
        return f"{stage}: {nodes}, each with a plan of its own"
    return None


def _is_call(step: Step) -> bool:
    return step.kind not in ("kernel", "window", "part", "empty")


def _planned(look: Snapshot, number: int, step: Step, why: Sequence[str]) -> Iterator[str]:
    """The lines of a step, with the reasons why its results are stored."""
    results = ", ".join(_result(look, made) for made in step.makes)
    traversal = f", {step.launch.kernel.traversal}" if step.launch else ""
    yield f"  {number}. {step.kind}{traversal}: {operations(step.names, ', ')} -> {results}"
    notes = _kernel_notes if step.launch else _other_notes
    lines = [*notes(look, step), *_kept(why), *step.apart]
    yield from (f"     {line}" for line in lines)


def _kept(reasons: Sequence[str]) -> Iterator[str]:
    """Why results are stored; what holds for several of one name stands once."""
    for why, times in Counter(reasons).items():
        yield f"kept, {why}" if times == 1 else f"kept, {why}; {times} results"


def _result(look: Snapshot, made: Buffer) -> str:
    text = f"{made.dtype}[{', '.join(map(str, made.shape))}]"
    return f"temporary {text}" if made.item in look.plan.temporaries else text


def _kernel_notes(look: Snapshot, step: Step) -> Iterator[str]:
    launch = step.launch
    assert launch is not None, "a kernel step has a launch"
    kernel = launch.kernel
    passes = f", {kernel.passes} passes" if kernel.passes > 1 else ""
    yield TRAVERSALS[kernel.traversal] + passes
    yield f"packets of {kernel.lanes} elements, {_units(launch)}"
    yield _moved(look, launch)
    if kernel.streamed:
        yield "results are stored past the cache, which they would only fill"
    if any(made.item in dict(look.plan.over) for made in step.makes):
        yield "written over an operand that nobody needs any more"
    if launch.scratch > LITTLE:
        yield f"scratch memory: {in_bytes(launch.scratch)} a thread"


def _units(launch: Launch) -> str:
    threads = max(1, min(threads_of(launch), -(-launch.units // launch.grain)))
    units = counted(launch.units, "unit")
    return f"{units} of work on {counted(threads, 'thread')}"


def _moved(look: Snapshot, launch: Launch) -> str:
    must, does = must_move(look.plan, launch), does_move(launch)
    text = f"must move {in_bytes(must)}, moves {does:,}"
    if does <= must:
        return text
    passes = launch.kernel.passes
    if passes > 1:
        row = lengths_of(launch)[launch.kernel.folded]
        return f"{text}: later passes find their {row:,} elements in the cache"
    return f"{text}: something is read at several places"


def _other_notes(look: Snapshot, step: Step) -> Iterator[str]:
    if step.kind == "window":
        yield "another look at memory that is there: nothing moves"
    elif step.kind == "part":
        yield "one result of a call: nothing moves"
    elif step.kind == "empty":
        yield "no elements: nothing runs"
    else:
        graph = look.optimised
        product, node = product_of(look, step), graph.nodes[step.position]
        if node.op is not None and node.op.told is not None:
            yield from node.op.told(*node.params)
        else:
            yield f"{product.kind}: {product.reason}" if product else "NumPy or LAPACK computes it"
        if work := graph.multiply_adds(step.position):
            yield f"{work:,} multiply-adds"
        yield f"must move {in_bytes(bytes_of(graph, step.position))}"


def rendered_text(look: Snapshot) -> str:
    """Return the source text of each kernel; equal ones stand once."""
    if (text := _unplanned("rendered", look)) is not None:
        return text
    kernels: dict[Source, list[int]] = {}
    for number, step in enumerate(look.plan.steps, 1):
        if (found := compiled_by(look, step)) is not None:
            kernels.setdefault(found[0], []).append(number)
    lines = [f"rendered: {counted(len(kernels), 'kernel')} in LLVM's language"]
    for kernel, numbers in kernels.items():
        lines.append(f"; step {', '.join(map(str, numbers))}")
        lines.extend(source_of(kernel).splitlines())
    return "\n".join(shortened(lines))


def rendered_hint(look: Snapshot) -> str:
    """Return where the source text is to be had: among all stages it would be in the way."""
    kernels = len({found[0] for step in look.plan.steps if (found := compiled_by(look, step))})
    if not kernels:
        return "rendered: nothing"
    return f'rendered: {counted(kernels, "kernel")} in LLVM\'s language, see explain("rendered")'


def executed_text(look: Snapshot) -> str:
    """Return what would run now, launch by launch, and how it is compiled."""
    if (text := _unplanned("executed", look)) is not None:
        return text
    if look.op_by_op:
        return _singly_text(look)
    launches = [
        (number, step)
        for number, step in enumerate(look.plan.steps, 1)
        if step.launch or _is_call(step)
    ]
    lines = [
        f"  {number}. {operations(step.names, '+')}: {_ready(look, step)}"
        for number, step in launches
    ]
    if not lines:
        return f"executed: nothing is to be launched on {look.device}"
    head = f"executed: {counted(len(launches), 'launch')} to come on {look.device}"
    if get("check_nans"):
        head += ", each operation by itself (option check_nans)"
    return "\n".join([head, *shortened(lines)])


def _singly_text(look: Snapshot) -> str:
    """Return what runs while a small graph has been seen seldom: each operation by itself."""
    pending = [node for node in look.graph.nodes if node.pending and not node.is_scalar]
    nodes = [node for node in pending if node.op.reads is None]
    if not nodes:
        return f"executed: nothing is to be launched on {look.device}"
    since = f"until this has been computed {_native.HOT_THRESHOLD} times"
    if len(look.graph) > _native.LONG:
        since = f"as there are more than {_native.LONG} nodes"
    head = (
        f"executed: {counted(len(nodes), 'launch')} to come on {look.device}, each operation by "
        f"itself {since} (option tier)"
    )
    lines = [f"  {number}. {node.name}: {_way_of(node.op)}" for number, node in enumerate(nodes, 1)]
    return "\n".join([head, *shortened(lines)])


def _way_of(op: Any) -> str:
    """How a node of an operation is computed by itself."""
    if op.shapes == "broadcast":
        return "a loop for any shape"
    return "loops for any shape, axis by axis" if op.folding else "a plan of its own"


def _ready(look: Snapshot, step: Step) -> str:
    """Where the program of a step is, and at which tier it would run."""
    what = "a kernel" if step.launch else "a call"
    found = compiled_by(look, step)
    if found is None:
        return what
    tier, there = state_of(*found)
    how = "with optimisation" if tier else "quickly"
    return f"{what}, {there} {how} (tier {tier})"
