"""Plan records: the plans that a program makes, for three levels of processors, beside stored ones.

While a record is open, each graph that is planned is planned for `LEVELS` as well, on whatever
machine it runs. Hands on the plans as text: the steps for the first level, then those steps of
another level that differ. Plans of one text are one plan; a long one ends with a checksum.

Levels may differ in the routine of a product, in the elements of a packet, in streaming, and,
without FMA, in operations that are calls: `check` refuses any other difference.

    with recorded() as plans:
        run()
    problems = check(Path("plans.txt"), plans)
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenfold.runtime.devices import cpu
from tenfold.schedule.schedule_ir import Schedule, Step
from tenfold.schedule.symbolic_graph import is_symbolic
from tenfold.schedule.target import target_of

LEVELS = ("x86-64-v3", "x86-64-v4", "x86-64-v2")
WRITES = "TENFOLD_WRITE_PLANS"
"""The variable of the environment with which `check` writes what it would compare."""
MAX_PLANS = 100
"""The plans of a record that is stored in full."""
MAX_STEPS = 16
"""The steps of a plan that are stored as text."""
VARYING = re.compile(r"; by \w+|, packets of \d+|, streamed|, \d+ units")
"""What may differ between levels with FMA."""

OTHERWISE = "planned otherwise"

Plans = dict[str, str]
"""By the text of a plan for the first level that of the record."""


@contextmanager
def recorded() -> Iterator[Plans]:
    """Record the plans of a block."""
    original = vars(cpu)["schedule_graph"]
    plans: Plans = {}

    def schedule_graph(graph: Any, *given: Any, **options: Any) -> Any:
        if not is_symbolic(graph):
            _record(plans, [original(graph, target_of(each), **_unset(options)) for each in LEVELS])
        return original(graph, *given, **options)

    vars(cpu)["schedule_graph"] = schedule_graph
    try:
        yield plans
    finally:
        vars(cpu)["schedule_graph"] = original


def _unset(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "target"}


def _record(plans: Plans, schedules: list[Schedule]) -> None:
    first, *others = ([*map(_line, each.steps)] for each in schedules)
    key = "\n".join(first)
    lines = first[:MAX_STEPS]
    if len(first) > MAX_STEPS:
        lines.append(f"{len(first)} steps, checksum {zlib.crc32(key.encode()):08x}")
    for level, other in zip(LEVELS[1:], others, strict=True):
        lines += [f"  {level}: {line}" for line in other[:MAX_STEPS] if line not in first]
        free = [[VARYING.sub("", line) for line in each] for each in (first, other)]
        if free[0] != free[1] and level != "x86-64-v2":
            lines.append(f"  {level}: {OTHERWISE}")
    plans[key] = "\n".join(lines)


def _line(step: Step) -> str:
    """A step with what is decided about its loops or its routine."""
    if step.product is not None:
        return f"{step}; by {step.product.routine}"
    if step.driver is not None:
        return f"{step}; by {step.driver.driver}"
    if step.launch is None:
        return str(step)
    kernel = step.launch.kernel
    streamed = ", streamed" if kernel.streamed else ""
    return f"{step}, packets of {kernel.lanes}{streamed}, {step.launch.units} units"


def text_of(plans: Plans) -> str:
    """Return the text of a record, which no order of evaluation changes."""
    texts = sorted(set(plans.values()))
    if len(texts) > MAX_PLANS:
        texts = [_abridged(text) for text in texts]
    return "".join(f"{text}\n\n" for text in texts)


def _abridged(text: str) -> str:
    """The first line of a plan, with a checksum of all."""
    first, *others = text.splitlines()
    return f"{first}; {len(others)} more lines, checksum {zlib.crc32(text.encode()):08x}"


def differing(plans: Plans) -> list[str]:
    """Return the plans of which a level with FMA has others than routines, lanes and streaming."""
    return [text for text in sorted(set(plans.values())) if OTHERWISE in text]


def check(stored: Path, plans: Plans) -> str:
    """Return what differs from the stored record, or write it; nothing where all is as stored."""
    text = text_of(plans)
    if os.environ.get(WRITES):
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(text, encoding="utf-8") if text else stored.unlink(missing_ok=True)
        return ""
    known = stored.read_text(encoding="utf-8") if stored.exists() else ""
    found, expected = ({*each.split("\n\n")} for each in (text, known))
    lines = [f"new plan:\n{each}" for each in sorted(found - expected)]
    lines += [f"plan that is not made:\n{each}" for each in sorted(expected - found)]
    lines += differing(plans)
    return "\n".join([*lines, f"see {stored}; {WRITES}=1 writes it"] if lines else [])
