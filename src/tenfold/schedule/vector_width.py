"""Vector width: the number of elements of a packet, from the cost of a kernel's body.

Takes the instructions of a kernel's body and its stores, hands on the live instructions, their cost
and the number of lanes.

>>> map_lanes(SHORT_BODY, 8), map_lanes(SHORT_BODY + 1, 8)
(32, 16)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.loop_ir import KernelStore
from tenfold.core.scalar_ir import PRIMITIVES, Instruction

FORMULA_WEIGHT = 25
"""The weight of an elementary function, in instructions."""
SHORT_BODY = 12
"""Instructions up to which packets may be twice as wide without spilling registers."""
LONG_BODY = 40
"""Instructions from which one copy of a body is faster than two."""

SLOW_CYCLES = {"divide": 16, "sqrt": 24}
"""Cycles of a core for 64 bytes of slow instructions; others take about one."""
SINGLE_THREAD_ELEMENTS = 1 << 15
"""Elements up to which one thread runs the kernel."""
SINGLE_THREAD_CYCLES = 24_000
"""The same of a long body, in cycles of one core: two threads need a tenth of them to share it."""
AHEAD, SHORT_AHEAD = 8192, 2048
"""The prefetch distance of a fold, in bytes: less comes too late, more evicts live data from the
first cache."""


def weight_of(body: Sequence[Instruction]) -> int:
    """Return the weight of a body, in instructions."""
    return sum(
        [FORMULA_WEIGHT if instruction.name not in PRIMITIVES else 1 for instruction in body]
    )


def single_thread_elements(body: Sequence[Instruction]) -> int:
    """Return the elements up to which one thread runs a kernel; fewer for a slow body."""
    cycles = sum(
        [
            instruction.dtype.itemsize
            * SLOW_CYCLES.get(
                instruction.name, 1 if instruction.name in PRIMITIVES else FORMULA_WEIGHT
            )
            for instruction in body
        ]
    )
    return min(SINGLE_THREAD_ELEMENTS, SINGLE_THREAD_CYCLES * 64 // max(cycles, 1))


def column_lanes(widest: int) -> int:
    """Return the elements of a packet of columns, from the bytes of the widest dtype. For a short
    body twice as many are slightly faster, but take twice as long to compile.
    """
    return 32 if widest <= 4 else 16


def map_lanes(weight: int, widest: int) -> int:
    """Return the elements of a packet of a map, from the weight of its body and the bytes of the
    widest dtype.
    """
    registers = 4 if weight <= SHORT_BODY else 2
    return min(64, 64 // widest * registers)


def eliminate_dead_code(
    body: Sequence[Instruction], stores: Sequence[tuple[int, tuple[int, ...]]]
) -> tuple[tuple[Instruction, ...], tuple[KernelStore, ...]]:
    """Drop instructions that no store needs, except one fold or scan, which has the loops."""
    live = {i for _, elements in stores for i in elements}
    live |= {i for i, instruction in enumerate(body) if instruction.name == "fail"}
    live = _with_operands(body, live)
    loop_instructions = [
        i for i, instruction in enumerate(body) if instruction.name in ("fold", "scan", "scatter")
    ]
    if loop_instructions and live.isdisjoint(loop_instructions):
        live = _with_operands(body, {*live, loop_instructions[-1]})
    new_positions = {
        old_position: new_position for new_position, old_position in enumerate(sorted(live))
    }
    live_body = tuple(body)
    if len(live) < len(body):
        live_body = tuple(
            body[old_position]._replace(
                inputs=tuple([new_positions[i] for i in body[old_position].inputs])
            )
            for old_position in new_positions
        )
    return live_body, tuple(
        [
            KernelStore(operand, tuple([new_positions[i] for i in elements]))
            for operand, elements in stores
        ]
    )


def _with_operands(body: Sequence[Instruction], positions: set[int]) -> set[int]:
    reachable = set(positions)
    for i in reversed(range(len(body))):
        if i in reachable:
            reachable.update(body[i].inputs)
    return reachable
