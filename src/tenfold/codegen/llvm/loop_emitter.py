"""Loop emitter: LLVM text of counted loops, branches and the pairwise reduction's binary counter.

Takes a SimdEmitter and Python functions that add a loop's body, hands on lines. The counter folds a
tree of neighbours while its leaves come one by one: slot k holds the fold of 2**k of them. After
`count` leaves, the slots in use are the bits of `count`. At the end the rest is folded from the
lowest slot upwards, so that an odd one out moves up as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenfold.codegen.llvm.load_store import memory_type
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.codegen.reducers import COMBINE, IN_ORDER
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import BOOL

Accumulator = tuple[Packet, ...]


def int_op(ir: SimdEmitter, operation: str, x: str, y: str | int) -> str:
    """Add an operation on two i64."""
    return ir.value(f"{operation} i64 {x}, {y}")


def int_min(ir: SimdEmitter, x: str, y: str | int) -> str:
    """Add the smaller of two i64."""
    return ir.intrinsic("llvm.smin.i64", "i64", [("i64", x), ("i64", str(y))])


def int_max(ir: SimdEmitter, x: str, y: str | int) -> str:
    """Add the larger of two i64."""
    return ir.intrinsic("llvm.smax.i64", "i64", [("i64", x), ("i64", str(y))])


def for_range(
    ir: SimdEmitter, begin: str, end: str, step: int | str, inside: Callable[[str], None]
) -> None:
    """Add a loop over begin, begin + step, ... below end; `inside` gets the name of the counter."""
    name = ir.name()[1:]
    before = ir.block
    ir.line(f"br label %{name}.test")
    ir.label(f"{name}.test")
    at = len(ir.lines)
    ir.lines.append("")
    more = ir.value(f"icmp slt i64 %{name}, {end}")
    ir.line(f"br i1 {more}, label %{name}.body, label %{name}.done")
    ir.label(f"{name}.body")
    inside(f"%{name}")
    following = int_op(ir, "add", f"%{name}", step)
    ir.lines[at] = f"  %{name} = phi i64 [ {begin}, %{before} ], [ {following}, %{ir.block} ]"
    ir.line(f"br label %{name}.test")
    ir.label(f"{name}.done")


def if_then(ir: SimdEmitter, condition: str, inside: Callable[[], None]) -> None:
    """Add what happens only if an i1 holds."""
    name = ir.name()[1:]
    ir.line(f"br i1 {condition}, label %{name}.then, label %{name}.after")
    ir.label(f"{name}.then")
    inside()
    ir.line(f"br label %{name}.after")
    ir.label(f"{name}.after")


def combine_partials(
    ir: SimdEmitter, kind: str, left: Accumulator, right: Accumulator, *, in_order: bool = False
) -> Accumulator:
    """Add the combination of two partial results of a fold; `in_order`: in each lane, all on the
    left comes before all on the right.
    """
    body = Body()
    lanes = max(packet.lanes for packet in (*left, *right))
    inputs = [body.load(i, packet.dtype) for i, packet in enumerate((*left, *right))]
    combine = (IN_ORDER if in_order else COMBINE)[kind]
    made = combine(body, tuple(inputs[: len(left)]), tuple(inputs[len(left) :]))
    values: dict[int, Packet] = dict(enumerate((*left, *right)))
    for position in range(len(inputs), len(body.instructions)):
        values[position] = ir.emit(body.instructions[position], values, lanes)
    return tuple(values[element.position] for element in made)


class FoldCounter:
    """The slots of one fold: memory for packets of `lanes` lanes, level by level, part by part."""

    def __init__(
        self,
        ir: SimdEmitter,
        kind: str,
        dtypes: Sequence[np.dtype],
        lanes: int,
        memory: str,
        stride: int | str,
    ) -> None:
        """`memory` points to slot 0; from one slot of one part to the next it is `stride` bytes."""
        self.ir, self.kind, self.dtypes, self.lanes = ir, kind, tuple(dtypes), lanes
        self.memory, self.stride = memory, stride

    def _slot(self, level: str, part: int) -> str:
        number = int_op(self.ir, "mul", level, len(self.dtypes))
        number = int_op(self.ir, "add", number, part)
        offset = int_op(self.ir, "mul", number, self.stride)
        return self.ir.value(f"getelementptr i8, ptr {self.memory}, i64 {offset}")

    def read(self, level: str) -> Accumulator:
        """Add the load of a slot."""
        return tuple(
            read_packet(self.ir, self._slot(level, part), dtype, self.lanes)
            for part, dtype in enumerate(self.dtypes)
        )

    def write(self, level: str, parts: Accumulator) -> None:
        """Add the store of a slot."""
        for part, packet in enumerate(parts):
            write_packet(self.ir, self._slot(level, part), packet, self.lanes)

    def insert(self, parts: Accumulator, count: str, level: int = 0) -> None:
        """Add the next leaf, of 2**level single ones; `count` are already there, of this size."""
        ir = self.ir
        name = ir.name()[1:]
        before = ir.block
        parts = self._broadcast(parts)
        ir.line(f"br label %{name}.test")
        ir.label(f"{name}.test")
        phis = len(ir.lines)
        ir.lines.extend([""] * (2 + len(parts)))
        odd = int_op(ir, "and", f"%{name}.rest", 1)
        full = ir.value(f"icmp ne i64 {odd}, 0")
        ir.line(f"br i1 {full}, label %{name}.carry, label %{name}.done")
        ir.label(f"{name}.carry")
        current = tuple(
            Packet(f"%{name}.part{i}", packet.dtype, packet.lanes) for i, packet in enumerate(parts)
        )
        merged = combine_partials(
            ir, self.kind, self.read(f"%{name}.level"), current, in_order=True
        )
        rest = int_op(ir, "lshr", f"%{name}.rest", 1)
        up = int_op(ir, "add", f"%{name}.level", 1)
        loops = [("rest", "i64", count, rest), ("level", "i64", str(level), up)]
        loops += [
            (f"part{i}", llvm_type(p.dtype, p.lanes), p.text, m.text)
            for i, (p, m) in enumerate(zip(parts, merged, strict=True))
        ]
        for line, (suffix, type_, first, following) in enumerate(loops, phis):
            ir.lines[line] = (
                f"  %{name}.{suffix} = phi {type_} [ {first}, %{before} ], "
                f"[ {following}, %{ir.block} ]"
            )
        ir.line(f"br label %{name}.test")
        ir.label(f"{name}.done")
        self.write(f"%{name}.level", current)

    def _broadcast(self, parts: Accumulator) -> Accumulator:
        return tuple(
            Packet(self.ir.broadcast(packet, self.lanes), packet.dtype, self.lanes)
            for packet in parts
        )

    def flush(self, count: str, last: Accumulator | None = None) -> Accumulator:
        """Add the fold of everything that waits, after which comes `last` if it is given.

        Without `last`, `count` must not be 0.
        """
        ir = self.ir
        if last is None:
            level = self._lowest_bit(count)
            first = self.read(level)
            rest = int_op(ir, "and", count, int_op(ir, "sub", count, 1))
        else:
            first, rest = self._broadcast(last), count
        name, before = ir.name()[1:], ir.block
        ir.line(f"br label %{name}.test")
        ir.label(f"{name}.test")
        phis = len(ir.lines)
        ir.lines.extend([""] * (1 + len(first)))
        more = ir.value(f"icmp ne i64 %{name}.rest, 0")
        ir.line(f"br i1 {more}, label %{name}.more, label %{name}.done")
        ir.label(f"{name}.more")
        current = tuple(
            Packet(f"%{name}.part{i}", packet.dtype, packet.lanes) for i, packet in enumerate(first)
        )
        earlier = self.read(self._lowest_bit(f"%{name}.rest"))
        merged = combine_partials(ir, self.kind, earlier, current, in_order=True)
        less = int_op(ir, "sub", f"%{name}.rest", 1)
        left = int_op(ir, "and", f"%{name}.rest", less)
        loops = [("rest", "i64", rest, left)] + [
            (f"part{i}", llvm_type(p.dtype, p.lanes), p.text, m.text)
            for i, (p, m) in enumerate(zip(first, merged, strict=True))
        ]
        for line, (suffix, type_, start, following) in enumerate(loops, phis):
            ir.lines[line] = (
                f"  %{name}.{suffix} = phi {type_} [ {start}, %{before} ], "
                f"[ {following}, %{ir.block} ]"
            )
        ir.line(f"br label %{name}.test")
        ir.label(f"{name}.done")
        return current

    def _lowest_bit(self, bits: str) -> str:
        return self.ir.intrinsic("llvm.cttz.i64", "i64", [("i64", bits), ("i1", "true")])


def read_packet(ir: SimdEmitter, pointer: str, dtype: np.dtype, lanes: int) -> Packet:
    """Add the load of a packet from memory of the kernel's own."""
    type_ = memory_type(dtype) if lanes == 1 else f"<{lanes} x {memory_type(dtype)}>"
    found = ir.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if dtype == BOOL:
        found = ir.value(f"icmp ne {type_} {found}, {'0' if lanes == 1 else 'zeroinitializer'}")
    return Packet(found, dtype, lanes)


def write_packet(ir: SimdEmitter, pointer: str, packet: Packet, lanes: int) -> None:
    """Add the store of a packet to memory of the kernel's own."""
    value, dtype = ir.broadcast(packet, lanes), packet.dtype
    type_ = memory_type(dtype) if lanes == 1 else f"<{lanes} x {memory_type(dtype)}>"
    if dtype == BOOL:
        value = ir.value(f"zext {llvm_type(dtype, lanes)} {value} to {type_}")
    ir.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")
