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
    Parts,
    combined,
    counted,
    integer,
    read_packet,
    smaller,
    where,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import Packet, type_text
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import BOOL, INT64, kind_of

CHUNK = 1024
"""Bytes of a chunk: packets enough to hide what the comparison with the best one costs."""


def unit(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a row."""
    last = frame.kernel.axes - 1
    frame.stand_at(number, last)
    reduce_inner.begin(frame)
    _named(frame, _ArgSearch(frame).run("0", frame.length(last)))


def part(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row, whose value and position are stored for `finish`."""
    text, last = frame.text, frame.kernel.axes - 1
    parts = _parts_of(frame)
    frame.stand_at(integer(text, "udiv", number, parts), last)
    reduce_inner.begin(frame)
    begin = integer(text, "mul", integer(text, "urem", number, parts), frame.part)
    end = smaller(text, integer(text, "add", begin, frame.part), frame.length(last))
    search = _ArgSearch(frame)
    found = search.run(begin, end)
    for place, packet in zip(frame.total_places(search.dtypes, number), found, strict=True):
        write_packet(text, place, packet, 1)


def finish(frame: FunctionEmitter, number: str) -> None:
    """Compare the parts of a row, and store what follows from the position."""
    text, last = frame.text, frame.kernel.axes - 1
    parts = _parts_of(frame)
    frame.stand_at(number, last)
    reduce_inner.begin(frame)
    search = _ArgSearch(frame)
    first = integer(text, "mul", number, parts)
    best = [search.best, search.place]

    def read(places: list[str]) -> Parts:
        return tuple(
            read_packet(text, place, dtype, 1)
            for place, dtype in zip(places, search.dtypes, strict=True)
        )

    def write(found: Parts) -> None:
        for place, packet in zip(best, found, strict=True):
            write_packet(text, place, packet, 1)

    def inside(index: str) -> None:
        found = read(frame.total_places(search.dtypes, integer(text, "add", first, index)))
        write(combined(text, search.kind, read(best), found, in_order=True))

    write(read(frame.total_places(search.dtypes, first)))
    counted(text, "1", parts, 1, inside)
    _named(frame, read(best))


def _parts_of(frame: FunctionEmitter) -> str:
    more = integer(frame.text, "sub", frame.part, 1)
    length = frame.length(frame.kernel.axes - 1)
    return integer(frame.text, "udiv", integer(frame.text, "add", length, more), frame.part)


def _named(frame: FunctionEmitter, found: Parts) -> None:
    """Store what follows from the position."""
    (fold,) = frame.kernel.folds
    frame.known[fold.results[1]] = found[1]
    reduce_inner.ended(frame, 0)


def worst(dtype: np.dtype, *, larger: bool) -> float:
    """Return the number of a real dtype that no other one is below (of a smallest one: above)."""
    if dtype == BOOL:
        return int(not larger)
    if kind_of(dtype) == "f":
        return -np.inf if larger else np.inf
    return int(np.iinfo(dtype).min if larger else np.iinfo(dtype).max)


class _ArgSearch:
    """The best element so far, and where the chunk begins in which it is."""

    def __init__(self, frame: FunctionEmitter) -> None:
        self.frame, self.text, self.kernel = frame, frame.text, frame.kernel
        (fold,) = self.kernel.folds
        self.kind, self.element = fold.kind, fold.inputs[0]
        self.larger = fold.kind == "first largest"
        self.dtype = self.kernel.body[self.element].dtype
        self.dtypes = [self.dtype, INT64]
        self.is_float = kind_of(self.dtype) == "f"
        self.best, self.place = self.text.stack(8), self.text.stack(8)

    def _made(self, formula: Callable[..., Element], *packets: Packet) -> Packet:
        """Add a formula of packets."""
        body = Body()
        made = formula(body, *(body.load(i, each.dtype) for i, each in enumerate(packets)))
        values = dict(enumerate(packets))
        lanes = max(packet.lanes for packet in packets)
        for position in range(len(packets), len(body.instructions)):
            values[position] = self.text.primitive(body.instructions[position], values, lanes)
        return values[made.position]

    def _beats(self, _: Body, x: Element, y: Element) -> Element:
        if self.dtype == BOOL:
            return x & ~y if self.larger else y & ~x
        return y < x if self.larger else x < y

    def _better(self, k: Body, x: Element, y: Element) -> Element:
        """The better of two numbers; what it is of NaN is nothing to go by."""
        if self.dtype == BOOL:
            return x | y if self.larger else x & y
        return k.select(self._beats(k, x, y), x, y)

    def run(self, begin: str, end: str) -> Parts:
        """Add the search from one position to another; return the best value and its position."""
        text, frame = self.text, self.frame
        name = text.name()[1:]
        self._keep(self._constant(worst(self.dtype, larger=self.larger)), begin)
        whole = begin
        if not self.kernel.masked:
            step = frame.lanes * self._together()
            count = integer(text, "sub", end, begin)
            whole = integer(text, "sub", end, integer(text, "urem", count, step))
            counted(text, begin, whole, step, lambda at: self._chunk(at, name))
        counted(text, whole, end, frame.lanes, lambda at: self._last(at, end, name))
        text.line(f"br label %{name}.settled")
        text.label(f"{name}.settled")
        best = read_packet(text, self.best, self.dtype, 1)
        self._find(best, end, name)
        return best, read_packet(text, self.place, INT64, 1)

    def _together(self) -> int:
        """How many packets are a chunk; few of a long body."""
        size = self.frame.lanes * self.dtype.itemsize
        return max(1, min(CHUNK // size, 8 * reduce_inner.together(self.kernel) * 64 // size))

    def _constant(self, value: float) -> Packet:
        return self._made(lambda k, _: k.constant(value, self.dtype), Packet("0", INT64, 1))

    def _keep(self, best: Packet, place: str) -> None:
        write_packet(self.text, self.best, best, 1)
        write_packet(self.text, self.place, Packet(place, INT64, 1), 1)

    def _elements(self, position: str, mask: str | None) -> Packet:
        known = dict(self.frame.known)
        self.frame.compute([self.element], known, position, mask)
        lanes = self.frame.lanes
        return Packet(self.text.spread(known[self.element], lanes), self.dtype, lanes)

    def _chunk(self, start: str, name: str) -> None:
        """Compare whole packets."""
        found = []
        for number in range(self._together()):
            at = integer(self.text, "add", start, number * self.frame.lanes)
            found.append(self._elements(at, None))
        self._compare(found, start, name)

    def _last(self, start: str, end: str, name: str) -> None:
        """Compare one packet; a lane behind the end is the best one again."""
        mask = self.frame.mask(start, end)
        x = self._elements(start, mask)
        lanes = Packet(mask, BOOL, self.frame.lanes)
        best = read_packet(self.text, self.best, self.dtype, 1)
        self._compare([self._made(lambda k, *given: k.select(*given), lanes, x, best)], start, name)

    def _compare(self, packets: list[Packet], start: str, name: str) -> None:
        """Keep the best of some packets if it beats the best so far."""
        top = packets[0]
        for packet in packets[1:]:
            top = self._made(self._better, packet, top)
        best = read_packet(self.text, self.best, self.dtype, 1)
        beats = self._made(self._beats, top, best)
        unordered = None
        if self.is_float:
            unordered = self._unordered(packets)
            beats = self._made(lambda _, x, y: x | y, beats, unordered)
        where(self.text, self._some(beats), lambda: self._take(top, unordered, start, name))

    def _unordered(self, packets: list[Packet]) -> Packet:
        """Which lanes have NaN: one comparison sees it in two packets."""
        found = None
        for x, y in zip(packets[::2], [*packets[1::2], packets[-1]], strict=False):
            type_ = type_text(self.dtype, x.lanes)
            made = self.text.value(f"fcmp uno {type_} {x.text}, {y.text}")
            each = Packet(made, BOOL, x.lanes)
            found = self._made(lambda _, a, b: a | b, found, each) if found else each
        assert found is not None, "there are packets"
        return found

    def _some(self, lanes: Packet) -> str:
        mask = [(f"<{lanes.lanes} x i1>", lanes.text)]
        return self.text.intrinsic(f"llvm.vector.reduce.or.v{lanes.lanes}i1", "i1", mask)

    def _take(self, top: Packet, unordered: Packet | None, start: str, name: str) -> None:
        """Keep the best of a chunk; leave the loop where nothing can beat it."""
        best = self._across(top)
        if unordered is None:
            end = self._constant(worst(self.dtype, larger=not self.larger))
            settled = self._made(lambda _, x, y: x == y, best, end).text
        else:
            settled = self._some(unordered)
            nan = self._constant(np.nan)
            is_nan = Packet(settled, BOOL, 1)
            best = self._made(lambda k, *given: k.select(*given), is_nan, nan, best)
        self._keep(best, start)
        following = self.text.name()[1:]
        self.text.line(f"br i1 {settled}, label %{name}.settled, label %{following}")
        self.text.label(following)

    def _across(self, packet: Packet) -> Packet:
        """The best lane of a packet, by halves."""
        while packet.lanes > 1:
            half = packet.lanes // 2
            type_ = type_text(self.dtype, packet.lanes)
            halves = []
            for first in (0, half):
                picked = ", ".join(f"i32 {first + i}" for i in range(half))
                both = f"{type_} {packet.text}, {type_} poison"
                taken = f"shufflevector {both}, <{half} x i32> <{picked}>"
                if half == 1:
                    taken = f"extractelement {type_} {packet.text}, i64 {first}"
                halves.append(Packet(self.text.value(taken), self.dtype, half))
            packet = self._made(self._better, *halves)
        return packet

    def _find(self, best: Packet, end: str, name: str) -> None:
        """Put the position of the first element that is the best one, or NaN, into its place."""
        text, lanes = self.text, self.frame.lanes
        begin = read_packet(text, self.place, INT64, 1).text

        def is_it(_: Body, x: Element, y: Element) -> Element:
            return (x == y) | (x != x) if self.is_float else x == y  # NaN alone differs

        def inside(position: str) -> None:
            mask = self.frame.mask(position, end)
            x = self._elements(position, mask)
            same = self._made(is_it, x, best)
            same = self._made(lambda _, a, b: a & b, same, Packet(mask, BOOL, lanes))

            def leave() -> None:
                first = integer(text, "add", position, self._first(same))
                write_packet(text, self.place, Packet(first, INT64, 1), 1)
                text.line(f"br label %{name}.found")
                text.label(f"{text.name()[1:]}.unreached")

            where(text, self._some(same), leave)

        counted(text, begin, end, lanes, inside)
        text.line(f"br label %{name}.found")
        text.label(f"{name}.found")

    def _first(self, lanes: Packet) -> str:
        text, type_ = self.text, f"i{lanes.lanes}"
        whole = text.value(f"bitcast <{lanes.lanes} x i1> {lanes.text} to {type_}")
        first = text.intrinsic(f"llvm.cttz.{type_}", type_, [(type_, whole), ("i1", "true")])
        return first if type_ == "i64" else text.value(f"zext {type_} {first} to i64")
