"""Vector width: the number of elements of a packet, from the cost of a kernel's body.

Takes the instructions of a kernel's body and its stores, hands on the live instructions, their cost
and the number of lanes.

>>> map_lanes(12, 8), map_lanes(13, 8)
(32, 16)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.loop_ir import KernelStore, operand_of
from tenfold.core.scalar_ir import PRIMITIVES, Instruction
from tenfold.schedule.schedule_ir import UnorderedOperand
from tenfold.schedule.target import DEFAULT, Simd, Target


def weight_of(body: Sequence[Instruction], simd: Simd = DEFAULT.simd) -> int:
    """Return the weight of a body, in instructions."""
    return sum([1 if instruction.name in PRIMITIVES else simd.formula_ops for instruction in body])


def serial_elements(body: Sequence[Instruction], target: Target) -> int:
    """Return the elements up to which one thread runs a kernel; fewer for a slow body."""
    work = target.work
    slow_cycles = {"divide": work.divide_cycles, "sqrt": work.sqrt_cycles}
    formula_cycles = target.simd.formula_ops
    cycles = sum(
        [
            instruction.dtype.itemsize
            * slow_cycles.get(
                instruction.name, 1 if instruction.name in PRIMITIVES else formula_cycles
            )
            for instruction in body
        ]
    )
    return min(work.serial_elements, work.serial_cycles * 64 // max(cycles, 1))


def column_lanes(widest: int) -> int:
    """Return the elements of a packet of columns, from the bytes of the widest dtype. For a short
    body twice as many are slightly faster, but take twice as long to compile.
    """
    return 32 if widest <= 4 else 16


def map_lanes(weight: int, widest: int, simd: Simd = DEFAULT.simd) -> int:
    """Return the elements of a packet of a map, from the weight of its body and the bytes of the
    widest dtype.
    """
    parts = 4 if weight <= simd.short_body_ops else 2
    return min(simd.max_lanes, simd.packet_bytes // widest * parts)


def gathered_axes(
    body: Sequence[Instruction], memory: Sequence[UnorderedOperand]
) -> list[tuple[int, set[int]]]:
    """Return for each gather whose reads are contiguous along an axis that axis, and all on which
    they depend.

    >>> from tenfold.core.scalar_ir import Body
    >>> from tenfold.dtypes import BOOL, INT64
    >>> body = Body()
    >>> offset = body.index(0) * body.constant(16, INT64) + body.index(1)
    >>> x = body.gather(0, INT64, offset, body.constant(True, BOOL))
    >>> gathered_axes(body.instructions, ())
    [(1, {0, 1})]
    """
    found: list[tuple[int, set[int]]] = []
    if "gather" not in [instruction.name for instruction in body]:
        return found
    axes: list[set[int]] = []  # that an instruction depends on
    unit: list[set[int]] = []  # along which it grows by one
    for instruction in body:
        inputs, steps = instruction.inputs, set[int]()
        depends = set().union(*(axes[i] for i in inputs))
        if instruction.name == "index":
            steps = depends = {int(str(instruction.data))}
        elif instruction.name == "load":
            strides = memory[operand_of(instruction)].strides
            depends = {axis for axis, stride in enumerate(strides) if stride}
        elif instruction.name in ("add", "subtract"):
            first, second = inputs
            steps = unit[first] - axes[second]
            if instruction.name == "add":
                steps |= unit[second] - axes[first]
        elif instruction.name == "gather":
            found += [(axis, depends) for axis in unit[inputs[0]]]
        axes.append(depends)
        unit.append(steps)
    return found


def eliminate_dead_code(
    body: Sequence[Instruction], stores: Sequence[tuple[int, tuple[int, ...]]]
) -> tuple[tuple[Instruction, ...], tuple[KernelStore, ...]]:
    """Drop instructions that no store needs, except one fold or scan, which has the loops."""
    live = {i for _, elements in stores for i in elements}
    live |= {i for i, instruction in enumerate(body) if instruction.name in ("fail", "segment")}
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
