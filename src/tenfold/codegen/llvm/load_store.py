"""Loads and stores: LLVM text that moves packets to and from memory, by an operand's step.

Takes an operand, the pointer to its element at position 0 of the packet axis, a position on that
axis and, for a partial packet, a mask; hands on lines in a SimdEmitter. Contiguous elements are
loaded directly, backwards ones reversed, every second to fourth shuffled out of contiguous loads,
all others gathered. A lane that the mask leaves out touches no memory.

>>> from tenfold.dtypes import FLOAT32
>>> text = SimdEmitter()
>>> address = PacketAddress("%p", "%i", "%stride", None, 8)
>>> packet = load(text, KernelOperand(FLOAT32, "1"), 0, address)
>>> print(text)
  %v0 = getelementptr float, ptr %p, i64 %i
  %v1 = load <8 x float>, ptr %v0, align 4
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.codegen.llvm import masked_access, strided_load
from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet, SimdEmitter, suffix, type_text
from tenfold.core.loop_ir import STEPS, KernelOperand
from tenfold.dtypes import BOOL, PARTS


class PacketAddress(NamedTuple):
    """Where a packet lies: all are names of LLVM values."""

    pointer: str
    """To the element at position 0."""
    position: str
    """Of the packet's first lane, i64."""
    stride: str
    """Bytes from one position to the next, i64; needed for the step "s" alone."""
    mask: str | None
    """Which lanes there are; None: all."""
    lanes: int


def in_memory(dtype: np.dtype) -> str:
    """Return the LLVM type of one real element in memory."""
    return "i8" if dtype == BOOL else SCALARS[dtype]


def iota(lanes: int, scalar: str = "i64") -> str:
    """Return the constant vector 0, 1, 2, ..."""
    return "<" + ", ".join(f"{scalar} {i}" for i in range(lanes)) + ">"


def load(text: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress) -> Packet:
    """Load a packet of a real operand, or of a part of a complex one: 0 the real, 1 the other."""
    dtype = PARTS.get(operand.dtype, operand.dtype)
    step = operand.steps[-1]
    if step == "0":
        pointer = _part(text, operand, part, place.pointer)
        found = text.value(f"load {in_memory(dtype)}, ptr {pointer}, align {dtype.itemsize}")
        return Packet(_from_memory(text, found, dtype, 1), dtype, 1)
    if step == "1" and dtype == operand.dtype:
        found = _contiguous(text, dtype, place)
    elif step == "1" and place.mask is None:
        found = _deinterleaved(text, dtype, part, place)
    elif step == "-" and dtype == operand.dtype and place.mask is None:
        found = _backwards(text, dtype, place)
    elif step in STEPS and (place.mask is None or not _unmasked(text, dtype, place.lanes)):
        pointer = _stepped(text, dtype, place, int(step))
        found = strided_load.load(
            text, in_memory(dtype), place.lanes, pointer, int(step), place.mask
        )
    else:
        found = _gathered(text, operand, part, place)
    return Packet(_from_memory(text, found, dtype, place.lanes), dtype, place.lanes)


def _from_memory(text: SimdEmitter, found: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return found
    return text.value(
        f"icmp ne {'i8' if lanes == 1 else f'<{lanes} x i8>'} {found}, {_zero(lanes)}"
    )


def _unmasked(text: SimdEmitter, dtype: np.dtype, lanes: int) -> bool:
    """Whether the processor cannot load or store elements of a dtype by a mask."""
    return dtype.itemsize < text.masks and 1 < lanes <= masked_access.LANES


def _zero(lanes: int) -> str:
    return "0" if lanes == 1 else "zeroinitializer"


def _vector(dtype: np.dtype, lanes: int) -> str:
    return f"<{lanes} x {in_memory(dtype)}>"


def _part(text: SimdEmitter, operand: KernelOperand, part: int, pointer: str) -> str:
    if not part:
        return pointer
    return text.value(f"getelementptr i8, ptr {pointer}, i64 {operand.dtype.itemsize // 2}")


def _contiguous(text: SimdEmitter, dtype: np.dtype, place: PacketAddress) -> str:
    type_ = _vector(dtype, place.lanes)
    pointer = text.value(
        f"getelementptr {in_memory(dtype)}, ptr {place.pointer}, i64 {place.position}"
    )
    if place.mask is None:
        return text.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if _unmasked(text, dtype, place.lanes):
        return masked_access.load(text, in_memory(dtype), place.lanes, pointer, place.mask)
    return text.intrinsic(
        f"llvm.masked.load.{suffix(dtype, place.lanes, memory=True)}.p0",
        type_,
        [
            ("ptr", pointer),
            ("i32", str(dtype.itemsize)),
            (f"<{place.lanes} x i1>", place.mask),
            (type_, "zeroinitializer"),
        ],
    )


def _deinterleaved(text: SimdEmitter, dtype: np.dtype, part: int, place: PacketAddress) -> str:
    """Both parts lie side by side: they are loaded once and picked apart."""
    lanes, scalar = place.lanes, in_memory(dtype)
    key = ("complex", place.pointer, place.position)
    both = text.seen.get(key)
    if both is None:
        pair = f"{{ {scalar}, {scalar} }}"
        pointer = text.value(f"getelementptr {pair}, ptr {place.pointer}, i64 {place.position}")
        both = text.value(f"load <{2 * lanes} x {scalar}>, ptr {pointer}, align {dtype.itemsize}")
        text.seen[key] = both
    picked = ", ".join(f"i32 {2 * i + part}" for i in range(lanes))
    wide = f"<{2 * lanes} x {scalar}>"
    return text.value(f"shufflevector {wide} {both}, {wide} poison, <{lanes} x i32> <{picked}>")


def _stepped(text: SimdEmitter, dtype: np.dtype, place: PacketAddress, step: int) -> str:
    """The pointer to the first lane of a packet of every `step`-th element."""
    first = text.value(f"mul i64 {place.position}, {step}")
    return text.value(f"getelementptr {in_memory(dtype)}, ptr {place.pointer}, i64 {first}")


def _backwards(text: SimdEmitter, dtype: np.dtype, place: PacketAddress) -> str:
    lanes, scalar = place.lanes, in_memory(dtype)
    last = text.value(f"add i64 {place.position}, {lanes - 1}")
    offset = text.value(f"sub i64 0, {last}")
    pointer = text.value(f"getelementptr {scalar}, ptr {place.pointer}, i64 {offset}")
    found = text.value(f"load {_vector(dtype, lanes)}, ptr {pointer}, align {dtype.itemsize}")
    turned = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))
    type_ = _vector(dtype, lanes)
    return text.value(f"shufflevector {type_} {found}, {type_} poison, <{lanes} x i32> <{turned}>")


def _pointers(text: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress) -> str:
    """The address of each lane."""
    lanes = place.lanes
    stride = place.stride
    step = operand.steps[-1]
    if step != "s":
        stride = str(operand.dtype.itemsize * (-1 if step == "-" else int(step)))
    begin = text.value(f"mul i64 {place.position}, {stride}")
    pointer = _part(text, operand, part, place.pointer)
    first = text.value(f"getelementptr i8, ptr {pointer}, i64 {begin}")
    each = text.spread(Packet(stride, np.dtype(np.int64), 1), lanes)
    offsets = text.value(f"mul <{lanes} x i64> {each}, {iota(lanes)}")
    return text.value(f"getelementptr i8, ptr {first}, <{lanes} x i64> {offsets}")


def _gathered(text: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress) -> str:
    dtype = PARTS.get(operand.dtype, operand.dtype)
    pointers = _pointers(text, operand, part, place)
    return gather(text, dtype, pointers, place.mask or "splat (i1 true)", place.lanes)


def load_at(
    text: SimdEmitter,
    operand: KernelOperand,
    part: int,
    begin: str,
    offset: str,
    mask: str | None,
    lanes: int,
) -> Packet:
    """Load the elements at offsets, an i64 packet, from a pointer; 0 where the mask says no."""
    dtype = PARTS.get(operand.dtype, operand.dtype)
    size = f"splat (i64 {operand.dtype.itemsize})"
    jumps = text.value(f"mul <{lanes} x i64> {offset}, {size}")
    first = _part(text, operand, part, begin)
    pointers = text.value(f"getelementptr i8, ptr {first}, <{lanes} x i64> {jumps}")
    found = gather(text, dtype, pointers, mask or "splat (i1 true)", lanes)
    return Packet(_from_memory(text, found, dtype, lanes), dtype, lanes)


def gather(text: SimdEmitter, dtype: np.dtype, pointers: str, mask: str, lanes: int) -> str:
    """Load one element from each of the addresses that the mask lets, else 0."""
    if text.masks > 1 and 1 < lanes <= masked_access.LANES:  # AVX2 has it, but LLVM thinks it slow
        return masked_access.gather(text, in_memory(dtype), lanes, pointers, mask)
    type_ = _vector(dtype, lanes)
    return text.intrinsic(
        f"llvm.masked.gather.{suffix(dtype, lanes, memory=True)}.v{lanes}p0",
        type_,
        [
            (f"<{lanes} x ptr>", pointers),
            ("i32", str(dtype.itemsize)),
            (f"<{lanes} x i1>", mask),
            (type_, "zeroinitializer"),
        ],
    )


def store(
    text: SimdEmitter,
    operand: KernelOperand,
    packets: list[Packet],
    place: PacketAddress,
    *,
    streamed: bool = False,
) -> None:
    """Store a packet, or both parts of a complex one; `streamed`: whole ones past the cache."""
    dtype, lanes = packets[0].dtype, place.lanes
    values = [_to_memory(text, text.spread(packet, lanes), dtype, lanes) for packet in packets]
    step, whole = operand.steps[-1], place.mask is None
    if step == "1" and len(values) == 1:
        _store_contiguous(text, dtype, values[0], place, streamed)
    elif step == "1" and whole:
        order = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(lanes))
        type_ = _vector(dtype, lanes)
        both = text.value(
            f"shufflevector {type_} {values[0]}, {type_} {values[1]}, <{2 * lanes} x i32> <{order}>"
        )
        twice = text.value(f"shl i64 {place.position}, 1")
        wide = place._replace(position=twice, lanes=2 * lanes)
        _store_contiguous(text, dtype, both, wide, streamed)
    elif step in STEPS and len(values) == 1 and whole and not _unmasked(text, dtype, lanes):
        pointer = _stepped(text, dtype, place, int(step))
        strided_load.store(text, in_memory(dtype), lanes, values[0], pointer, int(step))
    else:
        for part, value in enumerate(values):
            pointers = _pointers(text, operand, part, place)
            _scatter(text, dtype, value, pointers, place)


def store_single(
    text: SimdEmitter, operand: KernelOperand, packets: list[Packet], pointer: str
) -> None:
    """Store one element, both parts of a complex one, at a pointer."""
    for part, packet in enumerate(packets):
        value, type_ = packet.text, in_memory(packet.dtype)
        if packet.lanes > 1:  # a gather makes a packet also where it reads one element
            type_of_all = type_text(packet.dtype, packet.lanes)
            value = text.value(f"extractelement {type_of_all} {value}, i64 0")
        if packet.dtype == BOOL:
            value = text.value(f"zext i1 {value} to i8")
        target = _part(text, operand, part, pointer)
        text.line(f"store {type_} {value}, ptr {target}, align {packet.dtype.itemsize}")


def _to_memory(text: SimdEmitter, value: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return value
    return text.value(f"zext {type_text(dtype, lanes)} {value} to <{lanes} x i8>")


def _store_contiguous(
    text: SimdEmitter, dtype: np.dtype, value: str, place: PacketAddress, streamed: bool
) -> None:
    type_ = _vector(dtype, place.lanes)
    pointer = text.value(
        f"getelementptr {in_memory(dtype)}, ptr {place.pointer}, i64 {place.position}"
    )
    if place.mask is not None and _unmasked(text, dtype, place.lanes):
        masked_access.store(text, in_memory(dtype), place.lanes, value, pointer, place.mask)
    elif place.mask is not None:
        name = f"llvm.masked.store.{suffix(dtype, place.lanes, memory=True)}.p0"
        mask = (f"<{place.lanes} x i1>", place.mask)
        arguments = [(type_, value), ("ptr", pointer), ("i32", str(dtype.itemsize)), mask]
        text.intrinsic(name, "void", arguments)
    elif streamed:
        _store_non_temporal(text, type_, value, pointer, dtype.itemsize, place.lanes)
    else:
        text.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")


def _store_non_temporal(
    text: SimdEmitter, type_: str, value: str, pointer: str, itemsize: int, lanes: int
) -> None:
    """Store past the cache where the address is aligned, which is tested; else as any other."""
    align = min(64, itemsize * lanes)
    address = text.value(f"ptrtoint ptr {pointer} to i64")
    rest = text.value(f"and i64 {address}, {align - 1}")
    aligned = text.value(f"icmp eq i64 {rest}, 0")
    name = text.name()[1:]
    text.line(f"br i1 {aligned}, label %{name}.aligned, label %{name}.unaligned")
    text.label(f"{name}.aligned")
    text.line(f"store {type_} {value}, ptr {pointer}, align {align}, !nontemporal !0")
    text.line(f"br label %{name}.stored")
    text.label(f"{name}.unaligned")
    text.line(f"store {type_} {value}, ptr {pointer}, align {itemsize}")
    text.line(f"br label %{name}.stored")
    text.label(f"{name}.stored")


def _scatter(
    text: SimdEmitter, dtype: np.dtype, value: str, pointers: str, place: PacketAddress
) -> None:
    lanes, mask = place.lanes, place.mask or "splat (i1 true)"
    if text.masks > 1 and 1 < lanes <= masked_access.LANES:
        masked_access.scatter(text, in_memory(dtype), lanes, value, pointers, mask)
        return
    text.intrinsic(
        f"llvm.masked.scatter.{suffix(dtype, lanes, memory=True)}.v{lanes}p0",
        "void",
        [
            (_vector(dtype, lanes), value),
            (f"<{lanes} x ptr>", pointers),
            ("i32", str(dtype.itemsize)),
            (f"<{lanes} x i1>", mask),
        ],
    )
