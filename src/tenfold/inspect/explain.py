"""Explain: every stage of a computation as text or as a DOT graph, without computing it.

Takes Arrays, hands on text. `analyze=True` computes them and prints the time of each step.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> print(tn.explain(x + 1))
expression: 3 nodes, 1 operation, kind MAP, device cpu
  %0 = leaf float64[2]
  %1 = scalar 1
  %2 = add(%0, %1) float64[2]
optimised: no rule fires
scheduled: 1 kernel, 0 calls, 0 temporaries
  1. kernel, linear: add -> float64[2]
     contiguous
     packets of 32 elements, 1 unit of work on 1 thread
     must move 32 bytes, moves 32
  peak memory: 16 bytes, inputs not counted
generated: 1 kernel in LLVM IR, see explain("generated")
executed: 1 launch pending on cpu...
  1. add: a ...
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold import pipeline
from tenfold._native import Array
from tenfold.errors import UnsupportedError, message
from tenfold.inspect import batch_text, live_references, schedule_text
from tenfold.inspect.analyze import measured_text, prepare
from tenfold.inspect.graph_text import dot, expression_text, one_by_one_text, optimised_text
from tenfold.inspect.snapshot import Snapshot


def explain(
    *arrays: Array,
    stage: str | None = None,
    analyze: bool = False,
    format: str = "text",  # noqa: A002  # public name
) -> str:
    """Return how `arrays` are computed, stage by stage, as text; it computes nothing.

    The stages, in order:

    - "expression": the nodes as they were written.
    - "batched": which nodes of a large graph run as one batch, and why others do not.
    - "optimised": the rewrite rules that fire, and the graph that they leave.
    - "scheduled": the kernels with their fused operations and traversal, the library calls, the
      stored intermediates with the reason for each, the bytes of each step, and the peak memory.
    - "generated": the LLVM IR of the kernels.
    - "executed": the pending launches. A computed array has none.

    `stage` selects one; "groups", "planned" and "rendered" are accepted as older names of
    "batched", "scheduled" and "generated". `format` is "text" or "dot". With `analyze` the arrays
    are computed once, and each step's time is printed with its GB/s: 10**9 bytes that it must
    move, per second. It is a single run: page faults and the load of the machine are in it. Where
    an assignment copies, the schedule names the references to the old value.

    Raises UnsupportedError for an unknown stage or format, TypeError for an argument that is not an
    Array.

    >>> import tenfold as tn
    >>> x = tn.asarray([1.0, 2.0, 3.0])
    >>> print(tn.explain((x + 1) * x, stage="scheduled"))
    scheduled: 1 kernel, 0 calls, 0 temporaries
      1. kernel, linear: add, multiply -> float64[3]
         contiguous
         packets of 32 elements, 1 unit of work on 1 thread
         must move 48 bytes, moves 48
      peak memory: 24 bytes, inputs not counted
    """
    if not arrays:
        return "nothing to explain"
    for number, array in enumerate(arrays, 1):
        if not isinstance(array, Array):
            raise _not_an_array(number, array)
    _check_choice("format", format, ("text", "dot"))
    if stage is not None:
        stage = ALIASES.get(stage, stage)
        _check_choice("stage", stage, tuple(STAGES))
    snapshot = Snapshot(pipeline.graph_of(arrays))
    if format == "dot":
        return dot(snapshot.graph)
    if stage in (None, "scheduled") and (old_values := live_references.replaced_values(snapshot)):
        del snapshot  # its references to every node would be counted
        names = live_references.reference_texts(arrays, old_values)
        del old_values
        snapshot = Snapshot(pipeline.graph_of(arrays), names)
    texts = [STAGES[stage](snapshot)] if stage is not None else _all_stages(snapshot)
    if analyze:
        steps = prepare(snapshot)
        del snapshot  # a referenced node is live-out and would be stored
        texts.append(measured_text(arrays, steps))
    return "\n".join(texts)


def _all_stages(snapshot: Snapshot) -> list[str]:
    """All stages of these arrays, abbreviated where their text is long."""
    if not snapshot.pending_operations:
        return [expression_text(snapshot), device_text(snapshot)]
    texts = [expression_text(snapshot)]
    if batch_text.applies(snapshot):
        texts.append(batch_text.groups_text(snapshot))
    texts.append(optimised_text(snapshot))
    if snapshot.has_schedule and snapshot.chunks > 1:
        return [*texts, schedule_text.planned_text(snapshot)]
    if snapshot.has_schedule:
        texts += [schedule_text.planned_text(snapshot), schedule_text.rendered_hint(snapshot)]
    return [*texts, device_text(snapshot)]


def device_text(snapshot: Snapshot) -> str:
    """Return what the device runs: the launches of a schedule, or one operation at a time."""
    return (
        schedule_text.executed_text(snapshot)
        if snapshot.has_schedule
        else one_by_one_text(snapshot)
    )


def _not_an_array(number: int, argument: object) -> TypeError:
    """The error for a stage passed by position, and for any other value that is not an Array."""
    rule = f"argument {number} is {type(argument).__name__}, not an Array"
    remedy = f"pass the stage by keyword: stage={argument!r}"
    if not isinstance(argument, str):
        remedy = "pass Arrays one by one: tn.explain(x, y)"
    return TypeError(message("explain", rule, remedy=remedy))


def _check_choice(noun: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        listed = ", ".join(repr(choice) for choice in names)
        raise UnsupportedError("explain", f"unknown {noun} {name!r}", remedy=f"use {listed}")


STAGES: dict[str, Callable[[Snapshot], str]] = {
    "expression": expression_text,
    "batched": batch_text.groups_text,
    "optimised": optimised_text,
    "scheduled": schedule_text.planned_text,
    "generated": schedule_text.rendered_text,
    "executed": device_text,
}
"""The stages by name, in the order of the pipeline."""
ALIASES = {"groups": "batched", "planned": "scheduled", "rendered": "generated"}
"""Older names of stages, which are accepted as well."""
