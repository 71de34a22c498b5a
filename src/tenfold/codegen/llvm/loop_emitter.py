"""Loop emitter: LLVM text of counted loops, branches and the pairwise reduction's binary counter.

Input: a SimdEmitter and Python functions that emit a loop's body. Output: lines. The counter
reduces a tree of neighbours while its leaves arrive one by one: slot k holds the fold of 2**k
leaves. After `count` leaves, the slots in use are the set bits of `count`. `flush` folds the
remaining slots from the lowest upwards, so that an unpaired slot moves up unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tenfold.codegen.llvm.load_store import memory_type
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.codegen.reducers import COMBINE, IN_ORDER
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import BOOL

Accumulator = tuple[Packet, ...]


def int_op(ir: SimdEmitter, operation: str, x: str, y: str | int) -> str:
    """Emit an operation on two i64."""
    return ir.value(f"{operation} i64 {x}, {y}")


def int_min(ir: SimdEmitter, x: str, y: str | int) -> str:
    """Emit the minimum of two i64."""
    return ir.intrinsic("llvm.smin.i64", "i64", [("i64", x), ("i64", str(y))])


def int_max(ir: SimdEmitter, x: str, y: str | int) -> str:
    """Emit the maximum of two i64."""
    return ir.intrinsic("llvm.smax.i64", "i64", [("i64", x), ("i64", str(y))])


def carried_loop(
    ir: SimdEmitter,
    name: str,
    carried: Sequence[tuple[str, str, str]],
    condition: Callable[[], str],
    step: Callable[[], Sequence[str]],
    *,
    body_label: str = "body",
    hint: str = "",
) -> None:
    """Emit a loop of carried values, each given as (name, LLVM type, first value).

    `condition` emits the i1 that is tested before each step; `step` emits a step, and returns the
    next values.
    """
    entry_block = ir.block
    ir.line(f"br label %{name}.test")
    ir.label(f"{name}.test")
    phi_line = len(ir.lines)
    ir.lines.extend([""] * len(carried))
    continues = condition()
    ir.line(f"br i1 {continues}, label %{name}.{body_label}, label %{name}.done")
    ir.label(f"{name}.{body_label}")
    next_values = step()
    for line, (value, type_, first) in enumerate(carried):
        edges = f"[ {first}, %{entry_block} ], [ {next_values[line]}, %{ir.block} ]"
        ir.lines[phi_line + line] = f"  {value} = phi {type_} {edges}"
    ir.line(f"br label %{name}.test{hint}")
    ir.label(f"{name}.done")


def for_range(
    ir: SimdEmitter, begin: str, end: str, step: int | str, body: Callable[[str], object]
) -> None:
    """Emit a loop over begin, begin + step, ... below end; `body` gets the index."""
    name = ir.name()[1:]
    entry_block = ir.block
    ir.line(f"br label %{name}.test")
    ir.label(f"{name}.test")
    phi_line = len(ir.lines)
    ir.lines.append("")
    continues = ir.value(f"icmp slt i64 %{name}, {end}")
    ir.line(f"br i1 {continues}, label %{name}.body, label %{name}.done")
    ir.label(f"{name}.body")
    body(f"%{name}")
    next_index = int_op(ir, "add", f"%{name}", step)
    ir.lines[phi_line] = (
        f"  %{name} = phi i64 [ {begin}, %{entry_block} ], [ {next_index}, %{ir.block} ]"
    )
    ir.line(f"br label %{name}.test")
    ir.label(f"{name}.done")


def phi(ir: SimdEmitter, edges: Sequence[tuple[Sequence[Packet], str]]) -> Accumulator:
    """Emit packets that are those of the block that was run before."""
    blocks = [block for _, block in edges]
    return tuple(
        packets[0]._replace(text=ir.value(_phi(packets, blocks)))
        for packets in zip(*(packets for packets, _ in edges), strict=True)
    )


def _phi(packets: Sequence[Packet], blocks: Sequence[str]) -> str:
    type_ = llvm_type(packets[0].dtype, packets[0].lanes)
    edges = zip(packets, blocks, strict=True)
    return f"phi {type_} " + ", ".join([f"[ {p.text}, %{block} ]" for p, block in edges])


def for_range_carrying(
    ir: SimdEmitter,
    begin: str,
    end: str,
    first: Accumulator,
    body: Callable[[str, Accumulator], Accumulator],
    *,
    is_short: bool = False,
) -> Accumulator:
    """Emit a loop over begin, begin + 1, ... below end, with packets in registers.

    `body` gets the index and the packets of the step before, and returns those of the next step.
    `is_short`: it has few steps, and is unrolled twice at most.
    """
    index = ir.name()
    packets = tuple(p._replace(text=f"{index}.{i}") for i, p in enumerate(first))

    def next_values() -> Sequence[str]:
        after = body(index, packets)
        return (int_op(ir, "add", index, 1), *(packet.text for packet in after))

    carried_loop(
        ir,
        index[1:],
        [(index, "i64", begin), *_carried(packets, first)],
        partial(ir.value, f"icmp slt i64 {index}, {end}"),
        next_values,
        hint=", !llvm.loop !1" if is_short else "",
    )
    return packets


def _carried(packets: Accumulator, first: Accumulator) -> list[tuple[str, str, str]]:
    """Return packets and their first values for `carried_loop`."""
    pairs = zip(packets, first, strict=True)
    return [(p.text, llvm_type(p.dtype, p.lanes), start.text) for p, start in pairs]


def if_then(ir: SimdEmitter, condition: str, body: Callable[[], None]) -> None:
    """Emit a body that runs only if an i1 holds."""
    name = ir.name()[1:]
    ir.line(f"br i1 {condition}, label %{name}.then, label %{name}.after")
    ir.label(f"{name}.then")
    body()
    ir.line(f"br label %{name}.after")
    ir.label(f"{name}.after")


def combine_partials(
    ir: SimdEmitter, kind: str, left: Accumulator, right: Accumulator, *, in_order: bool = False
) -> Accumulator:
    """Emit the combination of two partial results of a fold.

    `in_order`: in each lane, every left index is below every right index.
    """
    combine, count = (IN_ORDER if in_order else COMBINE)[kind], len(left)
    return emit_rule(ir, (*left, *right), lambda k, *x: combine(k, x[:count], x[count:]))


def emit_rule(
    ir: SimdEmitter, packets: Accumulator, rule: Callable[..., tuple[Element, ...]]
) -> Accumulator:
    """Emit the elements that a rule makes of those of packets: `rule(body, *elements)`."""
    ops, lanes = Body(), max(packet.lanes for packet in packets)
    inputs = [ops.load(i, packet.dtype) for i, packet in enumerate(packets)]
    result = rule(ops, *inputs)
    values: dict[int, Packet] = dict(enumerate(packets))
    for position in range(len(inputs), len(ops.instructions)):
        values[position] = ir.emit(ops.instructions[position], values, lanes)
    return tuple(values[element.position] for element in result)


class FoldCounter:
    """The slots of one fold: memory for packets of `lanes` lanes, by level, then component."""

    def __init__(
        self,
        ir: SimdEmitter,
        kind: str,
        dtypes: Sequence[np.dtype],
        lanes: int,
        memory: str,
        stride: int | str,
    ) -> None:
        """`memory` points to slot 0; `stride` is the bytes from a component's slot to the next."""
        self.ir, self.kind, self.dtypes, self.lanes = ir, kind, tuple(dtypes), lanes
        self.memory, self.stride = memory, stride

    def _slot(self, level: str, component: int) -> str:
        number = int_op(self.ir, "mul", level, len(self.dtypes))
        number = int_op(self.ir, "add", number, component)
        offset = int_op(self.ir, "mul", number, self.stride)
        return self.ir.value(f"getelementptr i8, ptr {self.memory}, i64 {offset}")

    def read(self, level: str) -> Accumulator:
        """Load a slot."""
        return tuple(
            read_packet(self.ir, self._slot(level, component), dtype, self.lanes)
            for component, dtype in enumerate(self.dtypes)
        )

    def write(self, level: str, components: Accumulator) -> None:
        """Store to a slot."""
        for component, packet in enumerate(components):
            write_packet(self.ir, self._slot(level, component), packet, self.lanes)

    def insert(self, components: Accumulator, count: str, level: int = 0) -> None:
        """Insert the next leaf, of 2**level single leaves, after `count` leaves of this size."""
        ir, rest = self.ir, self.ir.name()
        components = self._broadcast(components)
        current = tuple(p._replace(text=f"{rest}.part{i}") for i, p in enumerate(components))

        def is_occupied() -> str:
            return ir.value(f"icmp ne i64 {int_op(ir, 'and', f'{rest}.rest', 1)}, 0")

        def next_values() -> Sequence[str]:
            merged = combine_partials(
                ir, self.kind, self.read(f"{rest}.level"), current, in_order=True
            )
            remaining = int_op(ir, "lshr", f"{rest}.rest", 1)
            next_level = int_op(ir, "add", f"{rest}.level", 1)
            return remaining, next_level, *(packet.text for packet in merged)

        numbers = [(f"{rest}.rest", "i64", count), (f"{rest}.level", "i64", str(level))]
        carried = [*numbers, *_carried(current, components)]
        carried_loop(ir, rest[1:], carried, is_occupied, next_values, body_label="carry")
        self.write(f"{rest}.level", current)

    def _broadcast(self, components: Accumulator) -> Accumulator:
        return tuple(
            Packet(self.ir.broadcast(packet, self.lanes), packet.dtype, self.lanes)
            for packet in components
        )

    def flush(self, count: str, final_leaf: Accumulator | None = None) -> Accumulator:
        """Fold all pending slots, then `final_leaf` if it is given.

        Without `final_leaf`, `count` must not be 0.
        """
        ir = self.ir
        if final_leaf is None:
            level = self._lowest_bit(count)
            initial = self.read(level)
            pending = int_op(ir, "and", count, int_op(ir, "sub", count, 1))
        else:
            initial, pending = self._broadcast(final_leaf), count
        rest = ir.name()
        current = tuple(p._replace(text=f"{rest}.part{i}") for i, p in enumerate(initial))

        def next_values() -> Sequence[str]:
            earlier = self.read(self._lowest_bit(f"{rest}.rest"))
            merged = combine_partials(ir, self.kind, earlier, current, in_order=True)
            decremented = int_op(ir, "sub", f"{rest}.rest", 1)
            remaining = int_op(ir, "and", f"{rest}.rest", decremented)
            return remaining, *(packet.text for packet in merged)

        carried = [(f"{rest}.rest", "i64", pending), *_carried(current, initial)]
        is_pending = partial(ir.value, f"icmp ne i64 {rest}.rest, 0")
        carried_loop(ir, rest[1:], carried, is_pending, next_values, body_label="more")
        return current

    def _lowest_bit(self, bits: str) -> str:
        return self.ir.intrinsic("llvm.cttz.i64", "i64", [("i64", bits), ("i1", "true")])


def read_packet(ir: SimdEmitter, pointer: str, dtype: np.dtype, lanes: int) -> Packet:
    """Load a packet from the kernel's scratch memory or stack."""
    type_ = memory_type(dtype) if lanes == 1 else f"<{lanes} x {memory_type(dtype)}>"
    value = ir.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if dtype == BOOL:
        value = ir.value(f"icmp ne {type_} {value}, {'0' if lanes == 1 else 'zeroinitializer'}")
    return Packet(value, dtype, lanes)


def write_packet(ir: SimdEmitter, pointer: str, packet: Packet, lanes: int) -> None:
    """Store a packet to the kernel's scratch memory or stack."""
    value, dtype = ir.broadcast(packet, lanes), packet.dtype
    type_ = memory_type(dtype) if lanes == 1 else f"<{lanes} x {memory_type(dtype)}>"
    if dtype == BOOL:
        value = ir.value(f"zext {llvm_type(dtype, lanes)} {value} to {type_}")
    ir.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")
