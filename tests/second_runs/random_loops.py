"""Random loops: `python tests/second_runs/random_loops.py --seconds 60 --seed 1`.

Each program runs three ways: by Tenfold, read at its end; by Tenfold, waiting in every step; and by
NumPy. The first two have the same bits; where rules may look across the products of several steps,
they differ by rounding. Prints what is wrong, with the seed and the source.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

import tenfold as tn
from loop_operations import Program
from loop_programs import draw_program
from tenfold import _native, pipeline
from tenfold.core.bitwise_equal import different
from tenfold.settings import get

OPTIONS: tuple[dict[str, Any], ...] = (
    *({},) * 5,
    *({"reassociate": False},) * 2,
    {"tier": "1"},
    {"verify": True},
    {"tier": "0"},
    {"optimise": False},
    {"batch": False},
    {"threads": 1},
)
PRODUCTS = frozenset(("matmul", "solve", "inv", "gemm"))
MORE_STEPS = (1, 2, 5, 41)
LONGEST, VERIFIED_STEPS = 500, 60
"""Steps; those that are compared with plans made anew are fewer."""
STEADY_STEPS = 300
MOST_PLANS = 150
"""Of a program; each step has one if plans are not found again."""
STEADY = 0.15
"""How often plans of loops of more than STEADY_STEPS are counted."""

Results = dict[str, np.ndarray]


class Run:
    """One way to run a program: what its source calls."""

    def __init__(self, program: Program, xp: Any, *, waits: bool = False) -> None:
        self.program, self.xp, self.waits = program, xp, waits
        self.engine: tn.Engine | None = None
        self.is_exact = not program.assigns_products or not get("reassociate")
        """Whether no rule could look across the products of several steps."""
        names = ("wait", "read", "leaf", "generator", "function", "push", "finish")
        self.scope: dict[str, Any] = {name: getattr(self, name) for name in names} | {"xp": xp}
        exec(compile(program.source, f"<loop {program.seed}>", "exec"), self.scope)

    def __call__(self, steps: int) -> Results:
        with contextlib.ExitStack() as stack:
            if self.xp is tn and "push(" in self.program.source:
                self.engine = tn.Engine()
                stack.callback(self.engine.shutdown)
            found: Results = self.scope["main"](steps)
        return found

    def wait(self, *arrays: Any) -> None:
        if self.waits:
            tn.eval(*arrays)

    def leaf(self, name: str) -> Any:
        values = self.program.leaves[name].copy()
        return tn.asarray(values) if self.xp is tn else values

    def generator(self) -> Any:
        made = tn.random.default_rng(self.program.seed)
        return made if self.xp is tn else _Draws(made)

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return tn.function(function) if self.xp is tn else function

    def push(self, function: Callable[..., Any], *arrays: Any) -> Any:
        return (
            function(*arrays) if self.engine is None else self.engine.push(function, *arrays).get()
        )

    def read(self, array: Any) -> np.ndarray:
        """Return a copy of the values."""
        if isinstance(array, tn.Array) and not self.waits:
            self._note_products([array])
        return np.array(array)

    def _note_products(self, arrays: Sequence[tn.Array]) -> None:
        pending = [node for node in map(_native.node_of, arrays) if node.pending]
        if get("reassociate") and pending and not _native.steps_of(pending):
            names = {node.name for node in pipeline.graph_of(arrays).nodes}
            self.is_exact = self.is_exact and names.isdisjoint(PRODUCTS)

    def finish(self, results: dict[str, Any]) -> Results:
        """Read the results in the way of the program."""
        order = list(results)
        reading = self.program.reading
        if reading == "reverse":
            order.reverse()
        if reading == "together" and self.xp is tn:
            arrays = [x for x in results.values() if isinstance(x, tn.Array)]
            self._note_products(arrays)
            tn.eval(*arrays)
        found = {}
        for name in order:
            array = results[name]
            if array.ndim and array.shape[0] and reading in ("part", "last"):
                part = array[:3] if reading == "part" else array[-1]
                found[name + " in part"] = self.read(part)
        return found | {name: self.read(results[name]) for name in order}


class _Draws:
    """The draws of Tenfold's generator, as NumPy's arrays."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.generator.random(shape))


def check(seed: int) -> str:
    """Run one program; return what was wrong, empty if nothing was."""
    program, rng = draw_program(seed), random.Random(seed)
    options = rng.choice(OPTIONS)
    said = ""
    head = f"seed {seed} {options} {program.steps} steps, {program.reading}"
    try:
        steps = min(program.steps, VERIFIED_STEPS if "verify" in options else LONGEST)
        for more in (0, 0, rng.choice(MORE_STEPS)):
            said = said or _wrong(program, steps + more, options)
        if not said and program.is_steady and rng.random() < STEADY:
            said = _planned_again(program)
    except Exception:  # noqa: BLE001  # what goes wrong is what is looked for
        said = traceback.format_exc(limit=-6)
    return f"{head}: {said}\n{program.source}" if said else ""


def _wrong(program: Program, steps: int, options: dict[str, Any]) -> str:
    """How the ways differ for a number of steps."""
    with tn.options(**options):
        lazy = Run(program, tn)
        found = lazy(steps)
    kept = {name: options[name] for name in options.keys() & {"reassociate"}}
    with tn.options(**kept):
        waited = Run(program, tn, waits=True)(steps)
    with np.errstate(all="ignore"):
        expected = Run(program, np)(steps)
    for name, values in expected.items():
        kinds = [(x.dtype, x.shape) for x in (found[name], values)]
        if kinds[0] != kinds[1]:
            return f"{name} is {kinds[0]}, not {kinds[1]}"
        if lazy.is_exact and different(found[name], waited[name]).any():
            return f"{name}: other bits than waiting, {found[name]} and {waited[name]}"
        for way in (found, waited):
            off = float(np.max(np.abs(way[name] - values), initial=0.0))
            if not off <= (program.tolerance if values.dtype.kind in "fc" else 0):
                return f"{name} is off by {off}, {way[name]} and {values}"
    return ""


@contextlib.contextmanager
def _count_plans() -> Iterator[list[int]]:
    """Count the plans that are made, in a list of one number."""
    count, bind_plan = [0], pipeline._bind_plan

    def counted(*arguments: Any) -> Any:
        count[0] += 1
        return bind_plan(*arguments)

    with mock.patch.object(pipeline, "_bind_plan", counted):
        yield count


def _planned_again(program: Program) -> str:
    """Whether steps need plans of their own, or some more steps other plans."""
    with tn.options(tier="1"), _count_plans() as made:
        run = Run(program, tn)
        for fewer in range(6, -1, -1):  # carries that swap end in several ways
            run(STEADY_STEPS - fewer)
        if made[0] > MOST_PLANS:
            return f"{made[0]} plans"
        made[0] = 0
        for more in range(1, 6):
            run(STEADY_STEPS + more)
    return f"{made[0]} plans for 1 to 5 more steps" if made[0] else ""


def main() -> int:
    """Run programs for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end, seed, wrong = time.monotonic() + given.seconds, given.seed, 0
    while time.monotonic() < end:
        said = check(seed)
        if said:
            wrong += 1
            print(said, flush=True)
        seed += 1
    print(f"{seed - given.seed} programs, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
