"""Passes as text: a program, the schedule before a pass, and what the pass adds or changes.

Each file is named after its pass. `python tests/schedule/passes/test_passes.py` writes the files
again from the programs; read the difference before you commit it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.schedule.pass_text import text_of
from tenfold.schedule.passes import PASSES, verify_pass
from tenfold.schedule.schedule_ir import Schedule

ROOM = Path(__file__).parent
NAMES = [each.name for each in PASSES]
LEAVES: dict[str, tuple[int, ...]] = {
    "a": (6,),
    "b": (6,),
    "m": (3, 4),
    "w": (3, 4),
    "s": (200, 200),
}


class Fixture(NamedTuple):
    """A program in text, and the two parts of the text of its schedule."""

    name: str
    program: str
    before: str
    after: str


def fixtures(name: str) -> Iterator[Fixture]:
    """The fixtures of a pass."""
    text = (ROOM / f"{name}.txt").read_text(encoding="utf-8")
    for block in text.split("\nprogram: ")[1:]:
        program, rest = block.split("\n", 1)
        before, after = rest.split("after:\n")
        yield Fixture(name, program, before.removeprefix("before:\n").rstrip(), after.rstrip())


def graph_of(program: str) -> Graph:
    """The graph of a program, whose last statement is the result."""
    names: dict[str, Any] = {"tn": tn, "np": np}
    for leaf, shape in LEAVES.items():
        numbers = np.arange(1.0, 1.0 + int(np.prod(shape))).reshape(shape)
        names[leaf] = tn.asarray(numbers)
    *statements, last = ast.parse(program).body
    assert isinstance(last, ast.Expr), f"the result of {program}"
    exec(compile(ast.Module(statements, []), program, "exec"), names)
    results = eval(compile(ast.Expression(last.value), program, "eval"), names)
    results = results if isinstance(results, tuple) else (results,)
    return Graph.of([_native.node_of(array) for array in results], (1,))


def schedules(graph: Graph, name: str) -> tuple[Schedule, Schedule]:
    """The schedule before a pass, and after it; of the last round where there are several."""
    before = decided = start = Schedule(graph)
    found: tuple[Schedule, Schedule] | None = None
    while True:
        for each in PASSES:
            before, decided = decided, each.apply(decided)
            if each.name == name:
                found = before, decided
            if decided.hazards:
                break
            verify_pass(each, decided)
        else:
            assert found is not None
            return found
        if each.name == name:
            return before, decided
        decided = start.updated(
            updates=decided.updates, update_runs=decided.update_runs, hazards=decided.hazards
        )


def texts(program: str, name: str) -> tuple[str, str]:
    """The text before a pass, and the lines that the pass adds or changes."""
    with tn.options(cpu="x86-64-v3"):  # the width of its registers decides between routines
        before, after = (text_of(each).splitlines() for each in schedules(graph_of(program), name))
    added = [line for line in after if line not in before]
    return "\n".join(_indented(before)), "\n".join(_indented(added or ["nothing"]))


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


CASES = (
    [each for name in NAMES for each in fixtures(name)] if (ROOM / "buffers.txt").exists() else []
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}: {case.program}")
def test_a_pass_decides_what_its_fixture_says(case: Fixture) -> None:
    before, after = texts(case.program, case.name)
    assert before == case.before
    assert after == case.after


@pytest.mark.parametrize("name", NAMES)
def test_each_pass_has_three_fixtures(name: str) -> None:
    assert sum(case.name == name for case in CASES) >= 3


def write(name: str) -> None:
    """Write the fixtures of a pass again, from their programs."""
    path = ROOM / f"{name}.txt"
    head, *blocks = path.read_text(encoding="utf-8").split("\nprogram: ")
    lines = [head.rstrip()]
    for block in blocks:
        program = block.split("\n", 1)[0]
        before, after = texts(program, name)
        before = f"{before}\n" if before.strip() else ""
        lines.append(f"\nprogram: {program}\nbefore:\n{before}after:\n{after}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each_name in NAMES:
        write(each_name)
