"""Analyze: runs and times a computation, each step beside the measured limit of this machine.

Takes arrays and the schedule of a Snapshot, computes them, hands on text. GB/s counts the bytes
that a step must move; `tenfold bench` measures the limits.

>>> import tenfold as tn
>>> text = (tn.asarray([1.0, 2.0]) + 1).explain(analyze=True)
>>> "GB/s" in text
True
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from tenfold import _native, pipeline
from tenfold._native import Array
from tenfold.core.graph import Graph
from tenfold.errors import raise_if_failed
from tenfold.inspect import machine_limits
from tenfold.inspect.graph_text import operations_of, unfused_traffic
from tenfold.inspect.memory_traffic import required_bytes
from tenfold.inspect.product_text import compiled_by
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, ends, in_time, operations, shortened, with_gap
from tenfold.jit.program import program_of
from tenfold.runtime.timeline import TimelineEvent, recording


class ExpectedStep(NamedTuple):
    """A step to time: its number in the plan, its operations, bytes and multiply-adds."""

    number: int
    names: tuple[str, ...]
    nbytes: int
    multiply_adds: int = 0
    dtype: str = ""
    """Of the multiply-adds."""
    line: str = ""
    """Where its last operation was written, if that is known."""


class AnalyzedRun(NamedTuple):
    """The steps to measure, and the text about their compilation."""

    expected: list[ExpectedStep] | None
    """None where the graph has several schedules."""
    compiled: str = ""


def prepare(snapshot: Snapshot) -> AnalyzedRun:
    """Compile the kernels, so that times exclude compilation."""
    if snapshot.has_schedule and snapshot.pending_operations and snapshot.chunks > 1:
        return AnalyzedRun(None)
    return AnalyzedRun(_expected_steps(snapshot), _compile_kernels(snapshot))


def measured_text(arrays: Sequence[Array], run: AnalyzedRun) -> str:
    """Compute the arrays and return the time of each step. Raises the errors of the computation.

    The caller must hold no Snapshot of them: its references make every node live-out.
    """
    expected, compiled = run
    with recording() as record:
        raise_if_failed(pipeline.evaluate(arrays, planned=True))
    thread_events = [event for event in record.events if event.thread == threading.get_ident()]
    if expected is None:
        return _times(thread_events)
    steps = _match_events(expected, thread_events)
    rates = machine_limits.measured_rates()
    total = sum(event.end - event.begin for _, event in steps)
    head = f"measured: {in_time(total)} in {count_text(len(steps), 'step')}{compiled}"
    lines = [f"  {step.number}. {_line(step, event, rates)}" for step, event in steps]
    if steps and not any(step.line for step, _ in steps):
        lines.append(
            "  write the formula under tn.options(lines=True) to see the line of each step"
        )
    if steps and not rates:
        lines.append("  run `tenfold bench` once to see the share of this machine's limit")
    return "\n".join([head, *shortened(lines)])


def _times(events: list[TimelineEvent]) -> str:
    """The time of each launch of a graph with several schedules."""
    total = in_time(sum(event.end - event.begin for event in events))
    lines = [
        f"  {number}. {operations(events[number - 1].name.split('+'), '+')}: "
        f"{in_time(events[number - 1].end - events[number - 1].begin)}"
        for number in ends(range(1, len(events) + 1))
    ]
    head = f"measured: {total} in {count_text(len(events), 'launch')}"
    return "\n".join([head, *with_gap(lines, len(events), "launch")])


def _expected_steps(snapshot: Snapshot) -> list[ExpectedStep]:
    graph = snapshot.optimised
    if not snapshot.pending_operations:
        return []
    if not snapshot.has_schedule:
        return [_operation_step(graph, n, i) for n, i in enumerate(operations_of(graph), 1)]
    return [
        ExpectedStep(
            number,
            step.names,
            required_bytes(snapshot.plan, step.launch),
            line=_user_line(graph, snapshot.plan.items[step.results[-1].item].position),
        )
        if step.launch
        else _operation_step(graph, number, step.position)
        for number, step in enumerate(snapshot.plan.steps, 1)
        if step.kind not in ("alias", "part", "empty")
    ]


def _operation_step(graph: Graph, number: int, position: int) -> ExpectedStep:
    node, work = graph.nodes[position], graph.multiply_adds(position)
    dtype = str(node.type.dtype)
    traffic, line = unfused_traffic(graph, position), _user_line(graph, position)
    return ExpectedStep(number, (node.name,), traffic, work, dtype, line)


def _user_line(graph: Graph, position: int) -> str:
    """Return the file and line where an operation was written; nothing where it is unknown."""
    origin = graph.nodes[position].origin
    return "" if origin is None else f"{origin[0]}:{origin[1]}"


def _compile_kernels(snapshot: Snapshot) -> str:
    """Compile the kernels that are not compiled; return the time as text."""
    if not snapshot.pending_operations or not snapshot.has_schedule:
        return ""
    compiles_before, start = _native.read_counters()["compiles"], time.perf_counter_ns()
    for step in snapshot.plan.steps:
        if (compiled := compiled_by(step)) is not None:
            program_of(*compiled, snapshot.plan.target)
    count = _native.read_counters()["compiles"] - compiles_before  # others may be in the disk cache
    took = in_time(time.perf_counter_ns() - start)
    return f", after compiling {count_text(count, 'kernel')} in {took}" if count else ""


def _match_events(
    expected: list[ExpectedStep], events: list[TimelineEvent]
) -> list[tuple[ExpectedStep, TimelineEvent]]:
    """Pair steps with events: functions inside a call have events of their own."""
    remaining_events, pairs = iter(events), []
    for step in expected:
        event = next(
            (event for event in remaining_events if event.name == "+".join(step.names)), None
        )
        if event is not None:
            pairs.append((step, event))
    return pairs


def _line(step: ExpectedStep, event: TimelineEvent, rates: dict[str, float]) -> str:
    nanoseconds = max(event.end - event.begin, 1)
    if step.multiply_adds:
        limit = rates.get(f"multiply-add {step.dtype}")
        rate = _rate("GFLOP/s", 2 * step.multiply_adds, nanoseconds, limit and 2 * limit)
    else:
        rate = _rate("GB/s", step.nbytes, nanoseconds, rates.get("copy"))
    place = f", at {step.line}" if step.line else ""
    return f"{operations(step.names, '+')}: {in_time(nanoseconds)}, {rate}{place}"


def _rate(unit: str, amount: int, nanoseconds: int, limit: float | None) -> str:
    rate = amount / nanoseconds  # 10**9 per second is 1 per nanosecond
    share = f" ({rate * 1e9 / limit:.0%} of the limit)" if limit else ""
    return f"{rate:.2f} {unit}{share}"
