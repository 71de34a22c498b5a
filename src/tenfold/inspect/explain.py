"""Explain: shows every stage of a computation as text or as a DOT graph, without side effects.

Takes Arrays, hands on text. `analyze=True` computes them and shows the time of each step.

>>> import tenfold as tn
>>> print(tn.explain(tn.asarray([1.0, 2.0]) + 1))
expression: 3 nodes, 1 operation, kind MAP, device cpu
  %0 = leaf float64[2]
  %1 = scalar 1
  %2 = add(%0, %1) float64[2]
optimised: no rule fires
planned: 1 kernel, 0 calls, 0 temporaries
  1. kernel, linear: add -> float64[2]
     memory from end to end
     packets of 32 elements, 1 unit of work on 1 thread
     must move 32 bytes, moves 32
rendered: 1 kernel in LLVM's language, see explain("rendered")
executed: 1 launch to come on cpu...
  1. add: a ...
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold import pipeline
from tenfold._native import Array
from tenfold.errors import UnsupportedError, message
from tenfold.inspect import batch_text, live_references, schedule_text
from tenfold.inspect.analyze import measured_text, prepared
from tenfold.inspect.graph_text import dot, expression_text, one_by_one_text, optimised_text
from tenfold.inspect.snapshot import Snapshot


def explain(
    *arrays: Array,
    stage: str | None = None,
    analyze: bool = False,
    format: str = "text",  # noqa: A002  # a settled name
) -> str:
    """Return how `arrays` are (to be) computed, stage by stage; nothing is computed by it.

    "expression" lists the nodes as they were written; "groups" which of a large graph are computed
    together, and why others are not; "optimised" the rules that fire and what they
    leave; "planned" the steps: kernels with what they fuse and how they go through memory, calls,
    temporaries and the reasons, and the bytes that each must move; "rendered" the source text of
    the kernels; "executed" what is to be launched. Of an array that is computed its value is left.
    `stage` names one of them, `format` is "text" or "dot". With `analyze` the arrays are computed
    once, and each step's time is shown with its GB/s: 10**9 bytes that it must move, in a second.
    It is one run: what else the machine does then, and memory that is touched for the first time,
    are in it. Where an assignment must copy an old value because somebody holds it, the plan names
    the variables, of the functions that are running, and the expressions that do.

    Raises UnsupportedError for a stage or a format that does not exist, TypeError for what is no
    Array.

    >>> import tenfold as tn
    >>> x = tn.asarray([1.0, 2.0, 3.0])
    >>> print(tn.explain((x + 1) * x, stage="planned"))
    planned: 1 kernel, 0 calls, 0 temporaries
      1. kernel, linear: add, multiply -> float64[3]
         memory from end to end
         packets of 32 elements, 1 unit of work on 1 thread
         must move 48 bytes, moves 48
    """
    if not arrays:
        return "nothing to explain"
    for number, array in enumerate(arrays, 1):
        if not isinstance(array, Array):
            raise _no_array(number, array)
    _known("format", format, ("text", "dot"))
    if stage is not None:
        _known("stage", stage, tuple(STAGES))
    look = Snapshot(pipeline.expression(arrays))
    if format == "dot":
        return dot(look.graph)
    if stage in (None, "planned") and (old := live_references.replaced(look)):
        del look  # it has handles of every node, which would be counted
        names = live_references.told(arrays, old)
        del old
        look = Snapshot(pipeline.expression(arrays), names)
    texts = [STAGES[stage](look)] if stage is not None else _all(look)
    if analyze:
        steps = prepared(look)
        del look  # whoever holds a node counts as somebody who wants its value
        texts.append(measured_text(arrays, steps))
    return "\n".join(texts)


def _all(look: Snapshot) -> list[str]:
    """The stages that there are, short where their text would be in the way."""
    if not look.operations:
        return [expression_text(look), executed_text(look)]
    texts = [expression_text(look)]
    if batch_text.go(look):
        texts.append(batch_text.groups_text(look))
    texts.append(optimised_text(look))
    if look.plans and look.pieces > 1:
        return [*texts, schedule_text.planned_text(look)]
    if look.plans:
        texts += [schedule_text.planned_text(look), schedule_text.rendered_hint(look)]
    return [*texts, executed_text(look)]


def executed_text(look: Snapshot) -> str:
    """Return what the device runs: the launches of a plan, or one operation after the other."""
    return schedule_text.executed_text(look) if look.plans else one_by_one_text(look)


def _no_array(number: int, given: object) -> TypeError:
    """The error for a stage that is not given by name, and for whatever else is no Array."""
    rule = f"argument {number} is {type(given).__name__}, no Array"
    remedy = f"give the stage by name: stage={given!r}"
    if not isinstance(given, str):
        remedy = "pass Arrays one by one: tn.explain(x, y)"
    return TypeError(message("explain", rule, remedy=remedy))


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        listed = ", ".join(repr(known) for known in names)
        raise UnsupportedError("explain", f"there is no {what} {name!r}", remedy=f"use {listed}")


STAGES: dict[str, Callable[[Snapshot], str]] = {
    "expression": expression_text,
    "groups": batch_text.groups_text,
    "optimised": optimised_text,
    "planned": schedule_text.planned_text,
    "rendered": schedule_text.rendered_text,
    "executed": executed_text,
}
"""The stages by name, in the order of the pipeline."""
