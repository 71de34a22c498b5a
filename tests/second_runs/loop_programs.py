"""Random loops: programs whose loops name their state, written as Python source.

The source runs with `tenfold` and with `numpy` as `xp`. A carry is scaled at the end of each step
so that it is at most 1, and moves by at most 0.9 of what the state before moved: rounding errors
do not grow from step to step, and `error` bounds them.

>>> "def main(steps):" in draw_program(3).source
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loop_operations import OPERATIONS, SLOPE, Drawing, Program, Shape, Value, scaled

DTYPES = ("float64",) * 6 + ("float32", "float32", "complex128", "int64", "int32")
STEPS = (0, 1, 2, 3, 7, 20, 45, 60, 61, 100, 129, 200, 300, 500)


def draw_body(d: Drawing, operations: int) -> list[str]:
    """The lines of a step: operations, then assignments to the carries."""
    d.lines, d.values = [], list(d.carries)
    while len(d.lines) < operations:
        before = len(d.lines), len(d.values)
        while before == (len(d.lines), len(d.values)):
            d.rng.choice(OPERATIONS)(d)
    assign_carries(d)
    return d.lines


def assign_carries(d: Drawing) -> None:
    """Bind the carries anew, or update them in place; they stay within their bounds."""
    a, b = (d.carries * 2)[:2]
    if a != b and (a.shape, a.dtype) == (b.shape, b.dtype) and d.rng.random() < 0.4:
        total = scaled(Value(f"({a.source} + {b.source})", a.shape, a.dtype, 2, 2, 2), 0.45)
        if a.kind == "i":
            total = replace(total, source=f"({a.source} + {b.source}) % 7")
        d.lines.append(f"{a.source}, {b.source} = {b.source}, {total.source}")
        rest = d.carries[2:]
    else:
        rest = d.carries
    for carry in rest:
        value = next_value(d, carry)
        d.program.error = max(d.program.error, value.error)
        if carry.kind in "fc" and carry.shape and d.rng.random() < 0.25:
            part = d.rng.choice(("[1:]", "[::2]", ""))
            d.lines.append(f"{carry.source} *= 0.5")
            d.lines.append(f"{carry.source}{part} += 0.5 * {value.source}{part}")
        else:
            d.lines.append(f"{carry.source} = {value.source}")


def next_value(d: Drawing, carry: Value) -> Value:
    """What a carry becomes: a value of its shape and dtype, scaled."""
    found = [
        value
        for value in d.values
        if (value.shape, value.dtype) == (carry.shape, carry.dtype) and value not in d.carries
    ]
    if found:
        value = d.rng.choice(found[-2:])
    elif carry.kind == "i":
        value = replace(carry, source=f"({carry.source} * 3 + 1) % 7")
    else:
        number = d.pick(lambda v: v.dtype == carry.dtype) or carry
        value = replace(
            carry,
            source=f"({carry.source} + xp.mean({number.source}))",
            bound=1 + number.bound,
            slope=1 + number.slope,
            error=2 + number.error + 12 * number.bound,
        )
    largest = max(value.bound / 0.99, value.slope / SLOPE)
    if carry.kind == "i" or largest <= 1:
        return value
    return scaled(value, math.floor(1000 / largest) / 1000)


def draw_carries(d: Drawing) -> list[str]:
    """One to four carries, and the lines that make them."""
    shapes: tuple[Shape, ...] = ((), (d.n,), (d.n,), (d.m, d.n), (d.n, d.n), (d.n, 1))
    dtype = d.rng.choice(DTYPES)
    lines = []
    for _ in range(d.rng.choice((1, 1, 2, 2, 3, 4))):
        dtype = dtype if d.rng.random() < 0.6 else d.rng.choice(DTYPES)
        if d.carries and d.rng.random() < 0.5:
            shape, dtype = d.carries[-1].shape, d.carries[-1].dtype
        else:
            shape = d.rng.choice(shapes)
        leaf = d.leaf(shape, dtype)
        name = d.name("a")
        lines.append(f"{name} = leaf({leaf.source!r})")
        d.carries.append(replace(leaf, source=name, slope=0.0 if leaf.kind == "i" else 1.0))
    return lines


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def draw_loop(d: Drawing, operations: int) -> list[str]:
    """A loop whose step is a part of the program or a function of its own."""
    body = draw_body(d, operations)
    names = [carry.source for carry in d.carries]
    wait = f"wait({', '.join(names)})"
    if d.rng.random() < 0.25:
        arguments = ", ".join(["k", *names])
        step = d.name("step")
        results = ", ".join(names)
        define = [f"def {step}({arguments}):", *indented([*body, f"return {results}"])]
        body = [f"{results} = {step}({arguments})"]
    else:
        define = []
        body += draw_extras(d)
        wait = f"wait({', '.join(names)}, *losses[-1:])"
    if d.rng.random() < 0.2:
        inner = d.rng.choice((2, 3, 6))
        after = draw_body(d, 2)
        body = ["k = o", f"for k in range({inner}):", *indented([*body, wait]), *after, wait]
        return [*define, f"for o in range(steps // {inner}):", *indented(body)]
    return [*define, "for k in range(steps):", *indented([*body, wait])]


def draw_extras(d: Drawing) -> list[str]:
    """What a loop does beside its steps: it reads, keeps states, collects losses."""
    lines, carry = [], d.rng.choice(d.carries).source
    period = d.rng.choice((1, 3, 10, 50))
    chances = {
        f"if k % {period} == {period - 1}: seen.append(read({carry}))": 0.1,
        f"if k % 10 == 0: kept.append({carry})": 0.15,
        f"if k == {period}: old = {carry}": 0.15,
    }
    temporary = d.pick(lambda value: value.kind == "f" and value.source.isidentifier())
    if temporary is not None:
        chances[f"losses.append(xp.mean({temporary.source}))"] = 0.2
        chances[f"last = {temporary.source}"] = 0.15
    for line, chance in chances.items():
        if d.rng.random() < chance:
            lines.append(line)
            d.program.is_steady = d.program.is_steady and line.startswith(("if k == ", "last"))
    return lines


RESULTS = (
    "if kept and len({x.shape for x in kept}) == 1: results['kept'] = xp.stack(kept)",
    "if kept: results['kept'] = sum(kept)",
    "results |= {f'kept {i}': x for i, x in enumerate(kept)}",
)
READINGS = ("each", "each", "together", "one", "part", "last", "reverse")


def draw_program(seed: int) -> Program:
    """Draw a program of one or two loops, each with a step of 2 to 15 operations."""
    d = Drawing(seed)
    d.program.steps = d.rng.choice(STEPS)
    start = draw_carries(d)
    loops = []
    for _ in range(d.rng.choice((1, 1, 1, 2))):
        loops += draw_loop(d, d.rng.choice((2, 3, 4, 6, 9, 15)))
    names = [carry.source for carry in d.carries]
    program = d.program
    program.reading = d.rng.choice(READINGS)
    if program.reading == "one":
        names = d.rng.sample(names, k=1)
    results = ", ".join(f"{name!r}: {name}" for name in names)
    leaves = [f"{name} = leaf({name!r})" for name in program.leaves if name not in "".join(start)]
    body = [
        "rng, kept, losses, seen, old, last = generator(), [], [], [], None, None",
        *leaves,
        *start,
        *loops,
        f"results = {{{results}}}",
        "results |= {f'loss {i}': x for i, x in enumerate(losses)}",
        "results |= {f'seen {i}': x for i, x in enumerate(seen)}",
        "if last is not None: results['last'] = last",
        "if old is not None: results['old'] = old",
        d.rng.choice(RESULTS),
        "return finish(results)",
    ]
    program.source = "\n".join([*d.functions, "def main(steps):", *indented(body)])
    if "rng.random" in program.source:
        program.is_steady = False  # a part of a product of a number and a draw is planned anew
    program.is_single = any(x.dtype == np.float32 for x in program.leaves.values())
    return program
