"""Strided loads: packets of every second, third or fourth element, by contiguous loads and
shuffles.

Input: the type in memory, a pointer to the first lane and a step known to the kernel. Output:
lines. Adjacent registers are loaded, and the elements are shuffled out of them. The last register
ends with the last element, so nothing past it is read. The elements between are read and not used;
a constant mask excludes them from stores.

>>> ir = SimdEmitter(masks=1)
>>> load(ir, "double", 8, "%p", 2)
'%v3'
>>> print(ir)
  %v0 = load <8 x double>, ptr %p, align 8
  %v1 = getelementptr double, ptr %p, i64 7
  %v2 = load <8 x double>, ptr %v1, align 8
  %v3 = shufflevector <8 x double> %v0, <8 x double> %v2, <8 x i32> <i32 0, i32 2, i32 4, i32 6, \
i32 9, i32 11, i32 13, i32 15>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.codegen.llvm.masked_access import SCALAR_BYTES
from tenfold.codegen.llvm.simd_emitter import SimdEmitter

REGISTERS = {1: 64, 4: 32, 16: 16}
"""The bytes of a register, by those of the smallest elements with masked loads."""


def load(
    ir: SimdEmitter, scalar: str, lanes: int, pointer: str, step: int, mask: str | None = None
) -> str:
    """Load every `step`-th element from a pointer on, inside a mask."""
    width = min(lanes, REGISTERS[ir.masks] // SCALAR_BYTES[scalar])
    packet = _Strided(ir, scalar, lanes, pointer, step, mask)
    registers = [packet.register(lane, width) for lane in range(0, lanes, width)]
    while len(registers) > 1:
        wide = f"<{width} x {scalar}>"
        order = ", ".join(f"i32 {i}" for i in range(2 * width))
        registers = [
            ir.value(f"shufflevector {wide} {low}, {wide} {high}, <{2 * width} x i32> <{order}>")
            for low, high in zip(registers[::2], registers[1::2], strict=True)
        ]
        width *= 2
    return registers[0]


class _Strided(NamedTuple):
    """A packet of every `step`-th element, loaded register by register."""

    ir: SimdEmitter
    scalar: str
    lanes: int
    pointer: str
    step: int
    mask: str | None

    def register(self, lane: int, width: int) -> str:
        """Load `width` lanes from `lane` on, by `step` loads of which the last ends with them."""
        ir, step = self.ir, self.step
        result, indices = self._loaded(lane * step, width), list(range(0, width, step))
        for number in range(1, step):
            is_last = number == step - 1
            offset = step * (width - 1) + 1 - width if is_last else number * width
            loaded_lanes, end_lane = (
                len(indices),
                width if is_last else -(-(number + 1) * width // step),
            )
            if loaded_lanes == end_lane:
                continue
            loaded = self._loaded(lane * step + offset, width)
            order = [
                *indices,
                *(width + lane * step - offset for lane in range(loaded_lanes, end_lane)),
            ]
            type_ = f"<{width} x {self.scalar}>"
            result = ir.value(
                f"shufflevector {type_} {result}, {type_} {loaded}, "
                f"<{width} x i32> <{_shuffle_indices(order, width)}>"
            )
            indices = list(range(end_lane))
        return result

    def _loaded(self, offset: int, width: int) -> str:
        """Load contiguous elements; with a mask only those of valid lanes."""
        ir, type_ = self.ir, f"<{width} x {self.scalar}>"
        pointer, align = (
            _element_pointer(ir, self.scalar, self.pointer, offset),
            SCALAR_BYTES[self.scalar],
        )
        if self.mask is None:
            return ir.value(f"load {type_}, ptr {pointer}, align {align}")
        elements = range(offset, offset + width)
        order = ", ".join(
            f"i32 {self.lanes if e % self.step else e // self.step}" for e in elements
        )
        bits = f"<{self.lanes} x i1>"
        lane_mask = ir.value(
            f"shufflevector {bits} {self.mask}, {bits} zeroinitializer, <{width} x i32> <{order}>"
        )
        return ir.intrinsic(
            f"llvm.masked.load.v{width}{_suffix(self.scalar)}.p0",
            type_,
            [
                ("ptr", pointer),
                ("i32", str(align)),
                (f"<{width} x i1>", lane_mask),
                (type_, "zeroinitializer"),
            ],
        )


def _shuffle_indices(order: Sequence[int], width: int) -> str:
    """Return the indices of a shuffle; lanes of later loads are poison."""
    indices = [f"i32 {i}" for i in order]
    return ", ".join([*indices, *["i32 poison"] * (width - len(indices))])


def store(ir: SimdEmitter, scalar: str, lanes: int, value: str, pointer: str, step: int) -> None:
    """Store to every `step`-th element from a pointer on, and not between."""
    width = min(lanes * step, REGISTERS[ir.masks] // SCALAR_BYTES[scalar])
    type_, name = f"<{lanes} x {scalar}>", f"llvm.masked.store.v{width}{_suffix(scalar)}.p0"
    for offset in range(0, lanes * step, width):
        used = [(offset + i) % step == 0 and offset + i < lanes * step for i in range(width)]
        if not any(used):
            continue
        order = ", ".join(
            f"i32 {(offset + i) // step}" if is_used else "i32 poison"
            for i, is_used in enumerate(used)
        )
        expanded = ir.value(
            f"shufflevector {type_} {value}, {type_} poison, <{width} x i32> <{order}>"
        )
        mask = ", ".join(f"i1 {'true' if is_used else 'false'}" for is_used in used)
        arguments = [
            (f"<{width} x {scalar}>", expanded),
            ("ptr", _element_pointer(ir, scalar, pointer, offset)),
            ("i32", str(SCALAR_BYTES[scalar])),
            (f"<{width} x i1>", f"<{mask}>"),
        ]
        ir.intrinsic(name, "void", arguments)


def _suffix(scalar: str) -> str:
    return {"float": "f32", "double": "f64"}.get(scalar, scalar)


def _element_pointer(ir: SimdEmitter, scalar: str, pointer: str, element: int) -> str:
    if not element:
        return pointer
    return ir.value(f"getelementptr {scalar}, ptr {pointer}, i64 {element}")
