"""Vector width: how many elements a packet has, from the cost of a kernel's body.

Takes the instructions of a kernel's body and its stores, hands on the live instructions, their cost
and the number of lanes.

>>> lanes_of_map(SHORT_BODY, 8), lanes_of_map(SHORT_BODY + 1, 8)
(32, 16)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenfold.core.loop_ir import KernelStore
from tenfold.core.scalar_ir import PRIMITIVES, Instruction

FORMULA_WEIGHT = 25
"""What an elementary function counts as, in instructions."""
SHORT_BODY = 12
"""Up to so many instructions packets may be twice as wide: there are registers enough."""
LONG_BODY = 40
"""From so many instructions on one copy of a body is better than two."""

SLOW = {"divide": 16, "sqrt": 24}
"""Cycles that a core takes for 64 bytes of what is slower than the others, which take about one."""
ALONE = 1 << 15
"""Elements up to which one thread computes them all."""
ALONE_CYCLES = 24_000
"""The same of a long body, in cycles of one core: two threads need a tenth of them to share it."""
AHEAD, SHORT_AHEAD = 8192, 2048
"""Bytes from what a fold computes to what it asks for: less comes too late, more drives out of a
first cache what is in use."""


def weight_of(body: Sequence[Instruction]) -> int:
    """Return how many instructions a body counts as."""
    return sum(FORMULA_WEIGHT if made.name not in PRIMITIVES else 1 for made in body)


def alone_up_to(body: Sequence[Instruction]) -> int:
    """Return the elements up to which one thread computes all: fewer where each takes long."""
    cycles = sum(
        made.dtype.itemsize * SLOW.get(made.name, 1 if made.name in PRIMITIVES else FORMULA_WEIGHT)
        for made in body
    )
    return min(ALONE, ALONE_CYCLES * 64 // max(cycles, 1))


def columns_at_once(widest: int) -> int:
    """Return the elements of a packet of columns, from the bytes of the widest of what is computed;
    of a short body twice as many are a little faster, and take twice as long to compile.
    """
    return 32 if widest <= 4 else 16


def lanes_of_map(weight: int, widest: int) -> int:
    """Return the elements of a packet of a map, from the weight of its body and the bytes of the
    widest of what is computed.
    """
    registers = 4 if weight <= SHORT_BODY else 2
    return min(64, 64 // widest * registers)


def pruned(
    body: Sequence[Instruction], stores: Sequence[tuple[int, tuple[int, ...]]]
) -> tuple[tuple[Instruction, ...], tuple[KernelStore, ...]]:
    """Drop what nothing stored needs, but for one fold or scan, around which there are loops."""
    needed = {i for _, elements in stores for i in elements}
    needed |= {i for i, made in enumerate(body) if made.name == "fail"}
    needed = _with_inputs(body, needed)
    turned = [i for i, made in enumerate(body) if made.name in ("fold", "scan")]
    if turned and needed.isdisjoint(turned):
        needed = _with_inputs(body, {*needed, turned[-1]})
    places = {old: new for new, old in enumerate(sorted(needed))}
    kept = tuple(body)
    if len(needed) < len(body):
        kept = tuple(
            replace(body[old], inputs=tuple(places[i] for i in body[old].inputs)) for old in places
        )
    return kept, tuple(
        KernelStore(operand, tuple(places[i] for i in elements)) for operand, elements in stores
    )


def _with_inputs(body: Sequence[Instruction], needed: set[int]) -> set[int]:
    found = set(needed)
    for i in reversed(range(len(body))):
        if i in found:
            found.update(body[i].inputs)
    return found
