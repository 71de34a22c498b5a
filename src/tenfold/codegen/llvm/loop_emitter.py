"""Loop emitter: LLVM text of counted loops, branches and the pairwise reduction's binary counter.

Takes a SimdEmitter and Python functions that add a loop's body, hands on lines. The counter folds a
tree of neighbours while its leaves come one by one: slot k holds the fold of 2**k of them. After
`count` leaves, the slots in use are the bits of `count`. At the end the rest is folded from the
lowest slot upwards, so that an odd one out moves up as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenfold.codegen.llvm.load_store import in_memory
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, type_text
from tenfold.codegen.reducers import COMBINE, IN_ORDER
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import BOOL

Parts = tuple[Packet, ...]


def integer(text: SimdEmitter, operation: str, x: str, y: str | int) -> str:
    """Add an operation on two i64."""
    return text.value(f"{operation} i64 {x}, {y}")


def smaller(text: SimdEmitter, x: str, y: str | int) -> str:
    """Add the smaller of two i64."""
    return text.intrinsic("llvm.smin.i64", "i64", [("i64", x), ("i64", str(y))])


def larger(text: SimdEmitter, x: str, y: str | int) -> str:
    """Add the larger of two i64."""
    return text.intrinsic("llvm.smax.i64", "i64", [("i64", x), ("i64", str(y))])


def counted(
    text: SimdEmitter, begin: str, end: str, step: int | str, inside: Callable[[str], None]
) -> None:
    """Add a loop over begin, begin + step, ... below end; `inside` gets the name of the counter."""
    name = text.name()[1:]
    before = text.block
    text.line(f"br label %{name}.test")
    text.label(f"{name}.test")
    at = len(text.lines)
    text.lines.append("")
    more = text.value(f"icmp slt i64 %{name}, {end}")
    text.line(f"br i1 {more}, label %{name}.body, label %{name}.done")
    text.label(f"{name}.body")
    inside(f"%{name}")
    following = integer(text, "add", f"%{name}", step)
    text.lines[at] = f"  %{name} = phi i64 [ {begin}, %{before} ], [ {following}, %{text.block} ]"
    text.line(f"br label %{name}.test")
    text.label(f"{name}.done")


def where(text: SimdEmitter, condition: str, inside: Callable[[], None]) -> None:
    """Add what happens only if an i1 holds."""
    name = text.name()[1:]
    text.line(f"br i1 {condition}, label %{name}.then, label %{name}.after")
    text.label(f"{name}.then")
    inside()
    text.line(f"br label %{name}.after")
    text.label(f"{name}.after")


def combined(
    text: SimdEmitter, kind: str, left: Parts, right: Parts, *, in_order: bool = False
) -> Parts:
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
        values[position] = text.primitive(body.instructions[position], values, lanes)
    return tuple(values[element.position] for element in made)


class FoldCounter:
    """The slots of one fold: memory for packets of `lanes` lanes, level by level, part by part."""

    def __init__(
        self,
        text: SimdEmitter,
        kind: str,
        dtypes: Sequence[np.dtype],
        lanes: int,
        memory: str,
        stride: int | str,
    ) -> None:
        """`memory` points to slot 0; from one slot of one part to the next it is `stride` bytes."""
        self.text, self.kind, self.dtypes, self.lanes = text, kind, tuple(dtypes), lanes
        self.memory, self.stride = memory, stride

    def _slot(self, level: str, part: int) -> str:
        number = integer(self.text, "mul", level, len(self.dtypes))
        number = integer(self.text, "add", number, part)
        offset = integer(self.text, "mul", number, self.stride)
        return self.text.value(f"getelementptr i8, ptr {self.memory}, i64 {offset}")

    def read(self, level: str) -> Parts:
        """Add the load of a slot."""
        return tuple(
            read_packet(self.text, self._slot(level, part), dtype, self.lanes)
            for part, dtype in enumerate(self.dtypes)
        )

    def write(self, level: str, parts: Parts) -> None:
        """Add the store of a slot."""
        for part, packet in enumerate(parts):
            write_packet(self.text, self._slot(level, part), packet, self.lanes)

    def insert(self, parts: Parts, count: str, level: int = 0) -> None:
        """Add the next leaf, of 2**level single ones; `count` are already there, of this size."""
        text = self.text
        name = text.name()[1:]
        before = text.block
        parts = self._whole(parts)
        text.line(f"br label %{name}.test")
        text.label(f"{name}.test")
        phis = len(text.lines)
        text.lines.extend([""] * (2 + len(parts)))
        odd = integer(text, "and", f"%{name}.rest", 1)
        full = text.value(f"icmp ne i64 {odd}, 0")
        text.line(f"br i1 {full}, label %{name}.carry, label %{name}.done")
        text.label(f"{name}.carry")
        current = tuple(
            Packet(f"%{name}.part{i}", packet.dtype, packet.lanes) for i, packet in enumerate(parts)
        )
        merged = combined(text, self.kind, self.read(f"%{name}.level"), current, in_order=True)
        rest = integer(text, "lshr", f"%{name}.rest", 1)
        up = integer(text, "add", f"%{name}.level", 1)
        loops = [("rest", "i64", count, rest), ("level", "i64", str(level), up)]
        loops += [
            (f"part{i}", type_text(p.dtype, p.lanes), p.text, m.text)
            for i, (p, m) in enumerate(zip(parts, merged, strict=True))
        ]
        for line, (suffix, type_, first, following) in enumerate(loops, phis):
            text.lines[line] = (
                f"  %{name}.{suffix} = phi {type_} [ {first}, %{before} ], "
                f"[ {following}, %{text.block} ]"
            )
        text.line(f"br label %{name}.test")
        text.label(f"{name}.done")
        self.write(f"%{name}.level", current)

    def _whole(self, parts: Parts) -> Parts:
        return tuple(
            Packet(self.text.spread(packet, self.lanes), packet.dtype, self.lanes)
            for packet in parts
        )

    def flush(self, count: str, last: Parts | None = None) -> Parts:
        """Add the fold of everything that waits, after which comes `last` if it is given.

        Without `last`, `count` must not be 0.
        """
        text = self.text
        if last is None:
            level = self._lowest(count)
            first = self.read(level)
            rest = integer(text, "and", count, integer(text, "sub", count, 1))
        else:
            first, rest = self._whole(last), count
        name, before = text.name()[1:], text.block
        text.line(f"br label %{name}.test")
        text.label(f"{name}.test")
        phis = len(text.lines)
        text.lines.extend([""] * (1 + len(first)))
        more = text.value(f"icmp ne i64 %{name}.rest, 0")
        text.line(f"br i1 {more}, label %{name}.more, label %{name}.done")
        text.label(f"{name}.more")
        current = tuple(
            Packet(f"%{name}.part{i}", packet.dtype, packet.lanes) for i, packet in enumerate(first)
        )
        earlier = self.read(self._lowest(f"%{name}.rest"))
        merged = combined(text, self.kind, earlier, current, in_order=True)
        less = integer(text, "sub", f"%{name}.rest", 1)
        left = integer(text, "and", f"%{name}.rest", less)
        loops = [("rest", "i64", rest, left)] + [
            (f"part{i}", type_text(p.dtype, p.lanes), p.text, m.text)
            for i, (p, m) in enumerate(zip(first, merged, strict=True))
        ]
        for line, (suffix, type_, start, following) in enumerate(loops, phis):
            text.lines[line] = (
                f"  %{name}.{suffix} = phi {type_} [ {start}, %{before} ], "
                f"[ {following}, %{text.block} ]"
            )
        text.line(f"br label %{name}.test")
        text.label(f"{name}.done")
        return current

    def _lowest(self, bits: str) -> str:
        return self.text.intrinsic("llvm.cttz.i64", "i64", [("i64", bits), ("i1", "true")])


def read_packet(text: SimdEmitter, pointer: str, dtype: np.dtype, lanes: int) -> Packet:
    """Add the load of a packet from memory of the kernel's own."""
    type_ = in_memory(dtype) if lanes == 1 else f"<{lanes} x {in_memory(dtype)}>"
    found = text.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if dtype == BOOL:
        found = text.value(f"icmp ne {type_} {found}, {'0' if lanes == 1 else 'zeroinitializer'}")
    return Packet(found, dtype, lanes)


def write_packet(text: SimdEmitter, pointer: str, packet: Packet, lanes: int) -> None:
    """Add the store of a packet to memory of the kernel's own."""
    value, dtype = text.spread(packet, lanes), packet.dtype
    type_ = in_memory(dtype) if lanes == 1 else f"<{lanes} x {in_memory(dtype)}>"
    if dtype == BOOL:
        value = text.value(f"zext {type_text(dtype, lanes)} {value} to {type_}")
    text.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")
