"""Measured: a computation run and timed, each step beside what this machine can do.

Takes arrays and a Look at them, computes the arrays, hands on text. What a step moves in a second is
taken of the bytes that it must move; the limits are those that `tenfold bench` has measured here.

>>> import tenfold as tn
>>> text = (tn.asarray([1.0, 2.0]) + 1).explain(analyze=True)
>>> text.splitlines()[-1].startswith("  1. add: ")
True
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from tenfold import pipeline
from tenfold._native import Array
from tenfold.devices.program import program_of, state_of
from tenfold.devices.timeline import Event, recording
from tenfold.explain import limits
from tenfold.explain.graphs import bytes_of, multiply_adds_of, operations_of
from tenfold.explain.look import Look
from tenfold.explain.text import counted, in_time, shortened
from tenfold.explain.traffic import must_move


class Expected(NamedTuple):
    """A step that will be timed: its name in the timeline, and what it must do."""

    name: str
    nbytes: int
    multiply_adds: int = 0
    dtype: str = ""
    """Of the multiply-adds."""


def measured_text(arrays: Sequence[Array], look: Look) -> str:
    """Compute the arrays and return what each step took.

    Kernels are compiled first, so that the times are those of running. Raises what computing raises.
    """
    expected = _expected(look)  # before the nodes drop their inputs
    compiled = _compiled(look)
    with recording() as events:
        failure = pipeline.evaluate(arrays)
    if failure is not None:
        raise failure
    steps = _matched(expected, events)
    rates = limits.known()
    total = sum(event.end - event.begin for _, event in steps)
    head = f"measured: {in_time(total)} in {counted(len(steps), 'step')}{compiled}"
    lines = [f"  {number}. {_line(*step, rates)}" for number, step in enumerate(steps, 1)]
    if steps and not rates:
        lines.append("  `tenfold bench` measures what this machine can do; then shares are shown")
    return "\n".join([head, *shortened(lines)])


def _expected(look: Look) -> list[Expected]:
    graph = look.optimised
    if not look.operations:
        return []
    if not look.plans:
        return [_operation(look, graph.nodes[i].name, i) for i in operations_of(graph)]
    return [
        Expected("+".join(step.names), must_move(look.plan, step.launch))
        if step.launch
        else _operation(look, step.names[0], step.position)
        for step in look.plan.steps
        if step.kind not in ("window", "part", "empty")
    ]


def _operation(look: Look, name: str, position: int) -> Expected:
    graph = look.optimised
    dtype = str(graph.nodes[position].type.dtype)
    return Expected(name, bytes_of(graph, position), multiply_adds_of(graph, position), dtype)


def _compiled(look: Look) -> str:
    """Compile what is not compiled, and say how long that took."""
    if not look.operations or not look.plans:
        return ""
    count, begun = 0, time.perf_counter_ns()
    for step in look.plan.steps:
        if step.launch is not None:
            kernel, elements = step.launch.kernel, step.launch.elements
            _, known = state_of(kernel, elements)
            count += not known
            program_of(kernel, elements)
    took = in_time(time.perf_counter_ns() - begun)
    return f", after compiling {counted(count, 'kernel')} in {took}" if count else ""


def _matched(expected: list[Expected], events: list[Event]) -> list[tuple[Expected, Event]]:
    """Pair steps with events: other threads, and functions inside a call, have some of their own."""
    own = iter([event for event in events if event.thread == threading.get_ident()])
    found = []
    for step in expected:
        event = next((event for event in own if event.name == step.name), None)
        if event is not None:
            found.append((step, event))
    return found


def _line(step: Expected, event: Event, rates: dict[str, float]) -> str:
    nanoseconds = max(event.end - event.begin, 1)
    if step.multiply_adds:
        limit = rates.get(f"multiply-add {step.dtype}")
        rate = _rate("GFLOP/s", 2 * step.multiply_adds, nanoseconds, limit and 2 * limit)
    else:
        rate = _rate("GB/s", step.nbytes, nanoseconds, rates.get("copy"))
    return f"{step.name}: {in_time(nanoseconds)}, {rate}"


def _rate(unit: str, amount: int, nanoseconds: int, limit: float | None) -> str:
    rate = amount / nanoseconds  # a thousand million in a second is one in a nanosecond
    share = f" ({rate * 1e9 / limit:.0%} of the limit)" if limit else ""
    return f"{rate:.2f} {unit}{share}"
