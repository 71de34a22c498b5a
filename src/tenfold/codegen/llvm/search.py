"""Argmax search: the position of the first largest or smallest element of a row.

Input: a FunctionEmitter of a search kernel. Output: lines. A row is searched by chunks of some
packets. The extreme of a chunk is compared with the best one so far, which costs less than a
position for each lane. The start of a chunk that beats it is stored; the search for the first
element equal to the best begins there. Nothing beats NaN, true, or the end of the range of an
integer dtype: there the search ends early. A unit of work is a row ("search"), or a
part of one ("search parts"). The parts' values and positions are stored in tables, and `finish`
compares them in order.

>>> from tenfold.dtypes import FLOAT32, INT64
>>> identity_value(FLOAT32, larger=True), identity_value(INT64, larger=True)
(-inf, -9223372036854775808)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.codegen.llvm import reduce_inner
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    combine_partials,
    for_range,
    if_then,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import Packet, llvm_type
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import BOOL, INT64, kind_of

CHUNK_BYTES = 1024
"""Bytes of a chunk: enough packets to hide the cost of the comparison with the best one."""


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: a row."""
    last = emitter.kernel.axes - 1
    emitter.set_indices(number, last)
    reduce_inner.begin_row(emitter)
    _store_position(emitter, _ArgSearch(emitter).run("0", emitter.length(last)))


def split_unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: a part of a row, whose value and position are stored for `finish`."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    unit_count = _part_count(emitter)
    emitter.set_indices(int_op(ir, "udiv", number, unit_count), last)
    reduce_inner.begin_row(emitter)
    begin = int_op(ir, "mul", int_op(ir, "urem", number, unit_count), emitter.unit_length)
    end = int_min(ir, int_op(ir, "add", begin, emitter.unit_length), emitter.length(last))
    search = _ArgSearch(emitter)
    best = search.run(begin, end)
    for pointer, packet in zip(emitter.total_pointers(search.dtypes, number), best, strict=True):
        write_packet(ir, pointer, packet, 1)


def finish(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: compare the parts of a row, and store the results."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    unit_count = _part_count(emitter)
    emitter.set_indices(number, last)
    reduce_inner.begin_row(emitter)
    search = _ArgSearch(emitter)
    first_entry = int_op(ir, "mul", number, unit_count)
    slots = [search.best_slot, search.position_slot]

    def read_packets(pointers: list[str]) -> Accumulator:
        return tuple(
            read_packet(ir, pointer, dtype, 1)
            for pointer, dtype in zip(pointers, search.dtypes, strict=True)
        )

    def write_packets(packets: Accumulator) -> None:
        for pointer, packet in zip(slots, packets, strict=True):
            write_packet(ir, pointer, packet, 1)

    def compare_unit(index: str) -> None:
        packets = read_packets(
            emitter.total_pointers(search.dtypes, int_op(ir, "add", first_entry, index))
        )
        write_packets(
            combine_partials(ir, search.kind, read_packets(slots), packets, in_order=True)
        )

    write_packets(read_packets(emitter.total_pointers(search.dtypes, first_entry)))
    for_range(ir, "1", unit_count, 1, compare_unit)
    _store_position(emitter, read_packets(slots))


def _part_count(emitter: FunctionEmitter) -> str:
    rounded = int_op(emitter.ir, "sub", emitter.unit_length, 1)
    length = emitter.length(emitter.kernel.axes - 1)
    return int_op(
        emitter.ir, "udiv", int_op(emitter.ir, "add", length, rounded), emitter.unit_length
    )


def _store_position(emitter: FunctionEmitter, best: Accumulator) -> None:
    """Store the results that depend on the position."""
    (fold,) = emitter.kernel.folds
    emitter.uniform_values[fold.results[1]] = best[1]
    reduce_inner.finish_pass(emitter, 0)


def identity_value(dtype: np.dtype, *, larger: bool) -> float:
    """Return the identity of max (`larger`) or min of a real dtype."""
    if dtype == BOOL:
        return int(not larger)
    if kind_of(dtype) == "f":
        return -np.inf if larger else np.inf
    return int(np.iinfo(dtype).min if larger else np.iinfo(dtype).max)


class _ArgSearch:
    """The best element so far, and the start of its chunk."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        (fold,) = self.kernel.folds
        self.kind, self.element = fold.kind, fold.inputs[0]
        self.larger = fold.kind == "first largest"
        self.dtype = self.kernel.body[self.element].dtype
        self.dtypes = [self.dtype, INT64]
        self.is_float = kind_of(self.dtype) == "f"
        self.best_slot, self.position_slot = self.ir.alloca(8), self.ir.alloca(8)

    def _apply(self, formula: Callable[..., Element], *packets: Packet) -> Packet:
        """Emit a formula of packets."""
        body = Body()
        result = formula(body, *(body.load(i, operand.dtype) for i, operand in enumerate(packets)))
        values = dict(enumerate(packets))
        lanes = max(packet.lanes for packet in packets)
        for position in range(len(packets), len(body.instructions)):
            values[position] = self.ir.emit(body.instructions[position], values, lanes)
        return values[result.position]

    def _beats(self, _: Body, x: Element, y: Element) -> Element:
        if self.dtype == BOOL:
            return x & ~y if self.larger else y & ~x
        return y < x if self.larger else x < y

    def _select_better(self, k: Body, x: Element, y: Element) -> Element:
        """The better of two numbers; undefined for NaN."""
        if self.dtype == BOOL:
            return x | y if self.larger else x & y
        return k.select(self._beats(k, x, y), x, y)

    def run(self, begin: str, end: str) -> Accumulator:
        """Emit the search from begin to end; return the best value and its position."""
        ir, emitter = self.ir, self.emitter
        name = ir.name()[1:]
        self._store_best(self._constant(identity_value(self.dtype, larger=self.larger)), begin)
        full_end = begin
        if not self.kernel.masked:
            step = emitter.lanes * self._packets_per_chunk()
            count = int_op(ir, "sub", end, begin)
            full_end = int_op(ir, "sub", end, int_op(ir, "urem", count, step))
            for_range(ir, begin, full_end, step, lambda at: self._compare_chunk(at, name))
        for_range(ir, full_end, end, emitter.lanes, lambda at: self._compare_tail(at, end, name))
        ir.line(f"br label %{name}.settled")
        ir.label(f"{name}.settled")
        best = read_packet(ir, self.best_slot, self.dtype, 1)
        self._find_first(best, end, name)
        return best, read_packet(ir, self.position_slot, INT64, 1)

    def _packets_per_chunk(self) -> int:
        """Return the number of packets of a chunk, few for a long body."""
        size = self.emitter.lanes * self.dtype.itemsize
        return max(
            1, min(CHUNK_BYTES // size, 8 * reduce_inner.unroll_factor(self.kernel) * 64 // size)
        )

    def _constant(self, value: float) -> Packet:
        return self._apply(lambda k, _: k.constant(value, self.dtype), Packet("0", INT64, 1))

    def _store_best(self, best: Packet, position: str) -> None:
        write_packet(self.ir, self.best_slot, best, 1)
        write_packet(self.ir, self.position_slot, Packet(position, INT64, 1), 1)

    def _load_packet(self, position: str, mask: str | None) -> Packet:
        values = dict(self.emitter.uniform_values)
        self.emitter.compute([self.element], values, position, mask)
        lanes = self.emitter.lanes
        return Packet(self.ir.broadcast(values[self.element], lanes), self.dtype, lanes)

    def _compare_chunk(self, start: str, name: str) -> None:
        """Compare full packets."""
        packets = []
        for number in range(self._packets_per_chunk()):
            position = int_op(self.ir, "add", start, number * self.emitter.lanes)
            packets.append(self._load_packet(position, None))
        self._compare(packets, start, name)

    def _compare_tail(self, start: str, end: str, name: str) -> None:
        """Compare one packet; a lane past the end gets the best value."""
        mask = self.emitter.mask(start, end)
        x = self._load_packet(start, mask)
        lanes = Packet(mask, BOOL, self.emitter.lanes)
        best = read_packet(self.ir, self.best_slot, self.dtype, 1)
        self._compare(
            [self._apply(lambda k, *operands: k.select(*operands), lanes, x, best)], start, name
        )

    def _compare(self, packets: list[Packet], start: str, name: str) -> None:
        """Store the best of some packets if it beats the best so far."""
        candidate = packets[0]
        for packet in packets[1:]:
            candidate = self._apply(self._select_better, packet, candidate)
        best = read_packet(self.ir, self.best_slot, self.dtype, 1)
        beats = self._apply(self._beats, candidate, best)
        unordered = None
        if self.is_float:
            unordered = self._unordered(packets)
            beats = self._apply(lambda _, x, y: x | y, beats, unordered)
        if_then(
            self.ir,
            self._any_lane(beats),
            lambda: self._update_best(candidate, unordered, start, name),
        )

    def _unordered(self, packets: list[Packet]) -> Packet:
        """Return the lanes with NaN: one comparison tests two packets."""
        unordered = None
        for x, y in zip(packets[::2], [*packets[1::2], packets[-1]], strict=False):
            type_ = llvm_type(self.dtype, x.lanes)
            flags = self.ir.value(f"fcmp uno {type_} {x.text}, {y.text}")
            pair = Packet(flags, BOOL, x.lanes)
            unordered = self._apply(lambda _, a, b: a | b, unordered, pair) if unordered else pair
        assert unordered is not None, "there are packets"
        return unordered

    def _any_lane(self, lanes: Packet) -> str:
        mask = [(f"<{lanes.lanes} x i1>", lanes.text)]
        return self.ir.intrinsic(f"llvm.vector.reduce.or.v{lanes.lanes}i1", "i1", mask)

    def _update_best(
        self, candidate: Packet, unordered: Packet | None, start: str, name: str
    ) -> None:
        """Store the best of a chunk; exit the loop if nothing can beat it."""
        best = self._reduce_packet(candidate)
        if unordered is None:
            end = self._constant(identity_value(self.dtype, larger=not self.larger))
            is_final = self._apply(lambda _, x, y: x == y, best, end).text
        else:
            is_final = self._any_lane(unordered)
            nan = self._constant(np.nan)
            is_nan = Packet(is_final, BOOL, 1)
            best = self._apply(lambda k, *operands: k.select(*operands), is_nan, nan, best)
        self._store_best(best, start)
        next_block = self.ir.name()[1:]
        self.ir.line(f"br i1 {is_final}, label %{name}.settled, label %{next_block}")
        self.ir.label(next_block)

    def _reduce_packet(self, packet: Packet) -> Packet:
        """Return the best lane of a packet, by halves."""
        while packet.lanes > 1:
            half_lanes = packet.lanes // 2
            type_ = llvm_type(self.dtype, packet.lanes)
            halves = []
            for start in (0, half_lanes):
                order = ", ".join(f"i32 {start + i}" for i in range(half_lanes))
                operands = f"{type_} {packet.text}, {type_} poison"
                expression = f"shufflevector {operands}, <{half_lanes} x i32> <{order}>"
                if half_lanes == 1:
                    expression = f"extractelement {type_} {packet.text}, i64 {start}"
                halves.append(Packet(self.ir.value(expression), self.dtype, half_lanes))
            packet = self._apply(self._select_better, *halves)
        return packet

    def _find_first(self, best: Packet, end: str, name: str) -> None:
        """Store the position of the first element that is equal to the best one, or NaN."""
        ir, lanes = self.ir, self.emitter.lanes
        begin = read_packet(ir, self.position_slot, INT64, 1).text

        def matches(_: Body, x: Element, y: Element) -> Element:
            return (x == y) | (x != x) if self.is_float else x == y  # NaN alone differs

        def search_packet(position: str) -> None:
            mask = self.emitter.mask(position, end)
            x = self._load_packet(position, mask)
            matching = self._apply(matches, x, best)
            matching = self._apply(lambda _, a, b: a & b, matching, Packet(mask, BOOL, lanes))

            def store_position() -> None:
                match = int_op(ir, "add", position, self._first_lane(matching))
                write_packet(ir, self.position_slot, Packet(match, INT64, 1), 1)
                ir.line(f"br label %{name}.found")
                ir.label(f"{ir.name()[1:]}.unreached")

            if_then(ir, self._any_lane(matching), store_position)

        for_range(ir, begin, end, lanes, search_packet)
        ir.line(f"br label %{name}.found")
        ir.label(f"{name}.found")

    def _first_lane(self, lanes: Packet) -> str:
        ir, type_ = self.ir, f"i{lanes.lanes}"
        bitmask = ir.value(f"bitcast <{lanes.lanes} x i1> {lanes.text} to {type_}")
        lane = ir.intrinsic(f"llvm.cttz.{type_}", type_, [(type_, bitmask), ("i1", "true")])
        return lane if type_ == "i64" else ir.value(f"zext {type_} {lane} to i64")
