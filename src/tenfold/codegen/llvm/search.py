"""Argmax search: the position of the first largest or smallest element of a row.

Takes a FunctionEmitter of a kernel with that one task, hands on lines. A row is searched by chunks
of some packets. The extreme of a chunk is compared with the best one so far, which costs less than
a position for each lane. A chunk that beats it is remembered; the search for the first element
equal to the best begins at the last remembered chunk. Nothing beats NaN, true, or the end of the
range of an integer dtype: there the search ends early. A unit of work is a row ("search"), or a
part of one ("search parts"). The parts' values and positions are stored in tables, and `finish`
compares them in order.

>>> from tenfold.dtypes import FLOAT32, INT64
>>> worst(FLOAT32, larger=True), worst(INT64, larger=True)
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

CHUNK = 1024
"""Bytes of a chunk: packets enough to hide what the comparison with the best one costs."""


def unit(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a row."""
    last = emitter.kernel.axes - 1
    emitter.set_indices(number, last)
    reduce_inner.begin_row(emitter)
    _store_position(emitter, _ArgSearch(emitter).run("0", emitter.length(last)))


def split_unit(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row, whose value and position are stored for `finish`."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    parts = _part_count(emitter)
    emitter.set_indices(int_op(ir, "udiv", number, parts), last)
    reduce_inner.begin_row(emitter)
    begin = int_op(ir, "mul", int_op(ir, "urem", number, parts), emitter.unit_length)
    end = int_min(ir, int_op(ir, "add", begin, emitter.unit_length), emitter.length(last))
    search = _ArgSearch(emitter)
    found = search.run(begin, end)
    for place, packet in zip(emitter.total_pointers(search.dtypes, number), found, strict=True):
        write_packet(ir, place, packet, 1)


def finish(emitter: FunctionEmitter, number: str) -> None:
    """Compare the parts of a row, and store what follows from the position."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    parts = _part_count(emitter)
    emitter.set_indices(number, last)
    reduce_inner.begin_row(emitter)
    search = _ArgSearch(emitter)
    first = int_op(ir, "mul", number, parts)
    best = [search.best_slot, search.position_slot]

    def read(places: list[str]) -> Accumulator:
        return tuple(
            read_packet(ir, place, dtype, 1)
            for place, dtype in zip(places, search.dtypes, strict=True)
        )

    def write(found: Accumulator) -> None:
        for place, packet in zip(best, found, strict=True):
            write_packet(ir, place, packet, 1)

    def inside(index: str) -> None:
        found = read(emitter.total_pointers(search.dtypes, int_op(ir, "add", first, index)))
        write(combine_partials(ir, search.kind, read(best), found, in_order=True))

    write(read(emitter.total_pointers(search.dtypes, first)))
    for_range(ir, "1", parts, 1, inside)
    _store_position(emitter, read(best))


def _part_count(emitter: FunctionEmitter) -> str:
    more = int_op(emitter.ir, "sub", emitter.unit_length, 1)
    length = emitter.length(emitter.kernel.axes - 1)
    return int_op(emitter.ir, "udiv", int_op(emitter.ir, "add", length, more), emitter.unit_length)


def _store_position(emitter: FunctionEmitter, found: Accumulator) -> None:
    """Store what follows from the position."""
    (fold,) = emitter.kernel.folds
    emitter.uniform_values[fold.results[1]] = found[1]
    reduce_inner.finish_pass(emitter, 0)


def identity_value(dtype: np.dtype, *, larger: bool) -> float:
    """Return the number of a real dtype that no other one is below (of a smallest one: above)."""
    if dtype == BOOL:
        return int(not larger)
    if kind_of(dtype) == "f":
        return -np.inf if larger else np.inf
    return int(np.iinfo(dtype).min if larger else np.iinfo(dtype).max)


class _ArgSearch:
    """The best element so far, and where the chunk begins in which it is."""

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
        """Add a formula of packets."""
        body = Body()
        made = formula(body, *(body.load(i, each.dtype) for i, each in enumerate(packets)))
        values = dict(enumerate(packets))
        lanes = max(packet.lanes for packet in packets)
        for position in range(len(packets), len(body.instructions)):
            values[position] = self.ir.emit(body.instructions[position], values, lanes)
        return values[made.position]

    def _beats(self, _: Body, x: Element, y: Element) -> Element:
        if self.dtype == BOOL:
            return x & ~y if self.larger else y & ~x
        return y < x if self.larger else x < y

    def _select_better(self, k: Body, x: Element, y: Element) -> Element:
        """The better of two numbers; what it is of NaN is nothing to go by."""
        if self.dtype == BOOL:
            return x | y if self.larger else x & y
        return k.select(self._beats(k, x, y), x, y)

    def run(self, begin: str, end: str) -> Accumulator:
        """Add the search from one position to another; return the best value and its position."""
        ir, emitter = self.ir, self.emitter
        name = ir.name()[1:]
        self._store_best(self._constant(identity_value(self.dtype, larger=self.larger)), begin)
        whole = begin
        if not self.kernel.masked:
            step = emitter.lanes * self._packets_per_chunk()
            count = int_op(ir, "sub", end, begin)
            whole = int_op(ir, "sub", end, int_op(ir, "urem", count, step))
            for_range(ir, begin, whole, step, lambda at: self._compare_chunk(at, name))
        for_range(ir, whole, end, emitter.lanes, lambda at: self._compare_tail(at, end, name))
        ir.line(f"br label %{name}.settled")
        ir.label(f"{name}.settled")
        best = read_packet(ir, self.best_slot, self.dtype, 1)
        self._find_first(best, end, name)
        return best, read_packet(ir, self.position_slot, INT64, 1)

    def _packets_per_chunk(self) -> int:
        """How many packets are a chunk; few of a long body."""
        size = self.emitter.lanes * self.dtype.itemsize
        return max(1, min(CHUNK // size, 8 * reduce_inner.unroll_factor(self.kernel) * 64 // size))

    def _constant(self, value: float) -> Packet:
        return self._apply(lambda k, _: k.constant(value, self.dtype), Packet("0", INT64, 1))

    def _store_best(self, best: Packet, place: str) -> None:
        write_packet(self.ir, self.best_slot, best, 1)
        write_packet(self.ir, self.position_slot, Packet(place, INT64, 1), 1)

    def _load_packet(self, position: str, mask: str | None) -> Packet:
        known = dict(self.emitter.uniform_values)
        self.emitter.compute([self.element], known, position, mask)
        lanes = self.emitter.lanes
        return Packet(self.ir.broadcast(known[self.element], lanes), self.dtype, lanes)

    def _compare_chunk(self, start: str, name: str) -> None:
        """Compare whole packets."""
        found = []
        for number in range(self._packets_per_chunk()):
            at = int_op(self.ir, "add", start, number * self.emitter.lanes)
            found.append(self._load_packet(at, None))
        self._compare(found, start, name)

    def _compare_tail(self, start: str, end: str, name: str) -> None:
        """Compare one packet; a lane behind the end is the best one again."""
        mask = self.emitter.mask(start, end)
        x = self._load_packet(start, mask)
        lanes = Packet(mask, BOOL, self.emitter.lanes)
        best = read_packet(self.ir, self.best_slot, self.dtype, 1)
        self._compare(
            [self._apply(lambda k, *given: k.select(*given), lanes, x, best)], start, name
        )

    def _compare(self, packets: list[Packet], start: str, name: str) -> None:
        """Keep the best of some packets if it beats the best so far."""
        top = packets[0]
        for packet in packets[1:]:
            top = self._apply(self._select_better, packet, top)
        best = read_packet(self.ir, self.best_slot, self.dtype, 1)
        beats = self._apply(self._beats, top, best)
        unordered = None
        if self.is_float:
            unordered = self._unordered(packets)
            beats = self._apply(lambda _, x, y: x | y, beats, unordered)
        if_then(
            self.ir, self._any_lane(beats), lambda: self._update_best(top, unordered, start, name)
        )

    def _unordered(self, packets: list[Packet]) -> Packet:
        """Which lanes have NaN: one comparison sees it in two packets."""
        found = None
        for x, y in zip(packets[::2], [*packets[1::2], packets[-1]], strict=False):
            type_ = llvm_type(self.dtype, x.lanes)
            made = self.ir.value(f"fcmp uno {type_} {x.text}, {y.text}")
            each = Packet(made, BOOL, x.lanes)
            found = self._apply(lambda _, a, b: a | b, found, each) if found else each
        assert found is not None, "there are packets"
        return found

    def _any_lane(self, lanes: Packet) -> str:
        mask = [(f"<{lanes.lanes} x i1>", lanes.text)]
        return self.ir.intrinsic(f"llvm.vector.reduce.or.v{lanes.lanes}i1", "i1", mask)

    def _update_best(self, top: Packet, unordered: Packet | None, start: str, name: str) -> None:
        """Keep the best of a chunk; leave the loop where nothing can beat it."""
        best = self._reduce_packet(top)
        if unordered is None:
            end = self._constant(identity_value(self.dtype, larger=not self.larger))
            settled = self._apply(lambda _, x, y: x == y, best, end).text
        else:
            settled = self._any_lane(unordered)
            nan = self._constant(np.nan)
            is_nan = Packet(settled, BOOL, 1)
            best = self._apply(lambda k, *given: k.select(*given), is_nan, nan, best)
        self._store_best(best, start)
        following = self.ir.name()[1:]
        self.ir.line(f"br i1 {settled}, label %{name}.settled, label %{following}")
        self.ir.label(following)

    def _reduce_packet(self, packet: Packet) -> Packet:
        """The best lane of a packet, by halves."""
        while packet.lanes > 1:
            half = packet.lanes // 2
            type_ = llvm_type(self.dtype, packet.lanes)
            halves = []
            for first in (0, half):
                picked = ", ".join(f"i32 {first + i}" for i in range(half))
                both = f"{type_} {packet.text}, {type_} poison"
                taken = f"shufflevector {both}, <{half} x i32> <{picked}>"
                if half == 1:
                    taken = f"extractelement {type_} {packet.text}, i64 {first}"
                halves.append(Packet(self.ir.value(taken), self.dtype, half))
            packet = self._apply(self._select_better, *halves)
        return packet

    def _find_first(self, best: Packet, end: str, name: str) -> None:
        """Put the position of the first element that is the best one, or NaN, into its place."""
        ir, lanes = self.ir, self.emitter.lanes
        begin = read_packet(ir, self.position_slot, INT64, 1).text

        def is_it(_: Body, x: Element, y: Element) -> Element:
            return (x == y) | (x != x) if self.is_float else x == y  # NaN alone differs

        def inside(position: str) -> None:
            mask = self.emitter.mask(position, end)
            x = self._load_packet(position, mask)
            same = self._apply(is_it, x, best)
            same = self._apply(lambda _, a, b: a & b, same, Packet(mask, BOOL, lanes))

            def leave() -> None:
                first = int_op(ir, "add", position, self._first_lane(same))
                write_packet(ir, self.position_slot, Packet(first, INT64, 1), 1)
                ir.line(f"br label %{name}.found")
                ir.label(f"{ir.name()[1:]}.unreached")

            if_then(ir, self._any_lane(same), leave)

        for_range(ir, begin, end, lanes, inside)
        ir.line(f"br label %{name}.found")
        ir.label(f"{name}.found")

    def _first_lane(self, lanes: Packet) -> str:
        ir, type_ = self.ir, f"i{lanes.lanes}"
        whole = ir.value(f"bitcast <{lanes.lanes} x i1> {lanes.text} to {type_}")
        first = ir.intrinsic(f"llvm.cttz.{type_}", type_, [(type_, whole), ("i1", "true")])
        return first if type_ == "i64" else ir.value(f"zext {type_} {first} to i64")
