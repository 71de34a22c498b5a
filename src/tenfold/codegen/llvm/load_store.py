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
from tenfold.codegen.llvm.simd_emitter import (
    SCALARS,
    Packet,
    SimdEmitter,
    intrinsic_suffix,
    llvm_type,
)
from tenfold.core.loop_ir import STEPS, KernelOperand
from tenfold.dtypes import BOOL, REAL_DTYPES


class PacketAddress(NamedTuple):
    """Where a packet lies: all are names of LLVM values."""

    base: str
    """To the element at position 0."""
    position: str
    """Of the packet's first lane, i64."""
    stride: str
    """Bytes from one position to the next, i64; needed for the step "s" alone."""
    mask: str | None
    """Which lanes there are; None: all."""
    lanes: int


def memory_type(dtype: np.dtype) -> str:
    """Return the LLVM type of one real element in memory."""
    return "i8" if dtype == BOOL else SCALARS[dtype]


def iota(lanes: int, scalar: str = "i64") -> str:
    """Return the constant vector 0, 1, 2, ..."""
    return "<" + ", ".join(f"{scalar} {i}" for i in range(lanes)) + ">"


def load(ir: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress) -> Packet:
    """Load a packet of a real operand, or of a part of a complex one: 0 the real, 1 the other."""
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    step = operand.steps[-1]
    if step == "0":
        pointer = _part_pointer(ir, operand, part, place.base)
        found = ir.value(f"load {memory_type(dtype)}, ptr {pointer}, align {dtype.itemsize}")
        return Packet(_decode(ir, found, dtype, 1), dtype, 1)
    if step == "1" and dtype == operand.dtype:
        found = _load_contiguous(ir, dtype, place)
    elif step == "1" and place.mask is None:
        found = _load_deinterleaved(ir, dtype, part, place)
    elif step == "-" and dtype == operand.dtype and place.mask is None:
        found = _load_reversed(ir, dtype, place)
    elif step in STEPS and (place.mask is None or not _lacks_masks(ir, dtype, place.lanes)):
        pointer = _strided_pointer(ir, dtype, place, int(step))
        found = strided_load.load(
            ir, memory_type(dtype), place.lanes, pointer, int(step), place.mask
        )
    else:
        found = _gather_operand(ir, operand, part, place)
    return Packet(_decode(ir, found, dtype, place.lanes), dtype, place.lanes)


def _decode(ir: SimdEmitter, found: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return found
    return ir.value(f"icmp ne {'i8' if lanes == 1 else f'<{lanes} x i8>'} {found}, {_zero(lanes)}")


def _lacks_masks(ir: SimdEmitter, dtype: np.dtype, lanes: int) -> bool:
    """Whether the processor cannot load or store elements of a dtype by a mask."""
    return dtype.itemsize < ir.masks and 1 < lanes <= masked_access.LANES


def _zero(lanes: int) -> str:
    return "0" if lanes == 1 else "zeroinitializer"


def _vector(dtype: np.dtype, lanes: int) -> str:
    return f"<{lanes} x {memory_type(dtype)}>"


def _part_pointer(ir: SimdEmitter, operand: KernelOperand, part: int, pointer: str) -> str:
    if not part:
        return pointer
    return ir.value(f"getelementptr i8, ptr {pointer}, i64 {operand.dtype.itemsize // 2}")


def _load_contiguous(ir: SimdEmitter, dtype: np.dtype, place: PacketAddress) -> str:
    type_ = _vector(dtype, place.lanes)
    pointer = ir.value(
        f"getelementptr {memory_type(dtype)}, ptr {place.base}, i64 {place.position}"
    )
    if place.mask is None:
        return ir.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if _lacks_masks(ir, dtype, place.lanes):
        return masked_access.load(ir, memory_type(dtype), place.lanes, pointer, place.mask)
    return ir.intrinsic(
        f"llvm.masked.load.{intrinsic_suffix(dtype, place.lanes, memory=True)}.p0",
        type_,
        [
            ("ptr", pointer),
            ("i32", str(dtype.itemsize)),
            (f"<{place.lanes} x i1>", place.mask),
            (type_, "zeroinitializer"),
        ],
    )


def _load_deinterleaved(ir: SimdEmitter, dtype: np.dtype, part: int, place: PacketAddress) -> str:
    """Both parts lie side by side: they are loaded once and picked apart."""
    lanes, scalar = place.lanes, memory_type(dtype)
    key = ("complex", place.base, place.position)
    both = ir.value_cache.get(key)
    if both is None:
        pair = f"{{ {scalar}, {scalar} }}"
        pointer = ir.value(f"getelementptr {pair}, ptr {place.base}, i64 {place.position}")
        both = ir.value(f"load <{2 * lanes} x {scalar}>, ptr {pointer}, align {dtype.itemsize}")
        ir.value_cache[key] = both
    picked = ", ".join(f"i32 {2 * i + part}" for i in range(lanes))
    wide = f"<{2 * lanes} x {scalar}>"
    return ir.value(f"shufflevector {wide} {both}, {wide} poison, <{lanes} x i32> <{picked}>")


def _strided_pointer(ir: SimdEmitter, dtype: np.dtype, place: PacketAddress, step: int) -> str:
    """The pointer to the first lane of a packet of every `step`-th element."""
    first = ir.value(f"mul i64 {place.position}, {step}")
    return ir.value(f"getelementptr {memory_type(dtype)}, ptr {place.base}, i64 {first}")


def _load_reversed(ir: SimdEmitter, dtype: np.dtype, place: PacketAddress) -> str:
    lanes, scalar = place.lanes, memory_type(dtype)
    last = ir.value(f"add i64 {place.position}, {lanes - 1}")
    offset = ir.value(f"sub i64 0, {last}")
    pointer = ir.value(f"getelementptr {scalar}, ptr {place.base}, i64 {offset}")
    found = ir.value(f"load {_vector(dtype, lanes)}, ptr {pointer}, align {dtype.itemsize}")
    turned = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))
    type_ = _vector(dtype, lanes)
    return ir.value(f"shufflevector {type_} {found}, {type_} poison, <{lanes} x i32> <{turned}>")


def _lane_pointers(ir: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress) -> str:
    """The address of each lane."""
    lanes = place.lanes
    stride = place.stride
    step = operand.steps[-1]
    if step != "s":
        stride = str(operand.dtype.itemsize * (-1 if step == "-" else int(step)))
    begin = ir.value(f"mul i64 {place.position}, {stride}")
    pointer = _part_pointer(ir, operand, part, place.base)
    first = ir.value(f"getelementptr i8, ptr {pointer}, i64 {begin}")
    each = ir.broadcast(Packet(stride, np.dtype(np.int64), 1), lanes)
    offsets = ir.value(f"mul <{lanes} x i64> {each}, {iota(lanes)}")
    return ir.value(f"getelementptr i8, ptr {first}, <{lanes} x i64> {offsets}")


def _gather_operand(
    ir: SimdEmitter, operand: KernelOperand, part: int, place: PacketAddress
) -> str:
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    pointers = _lane_pointers(ir, operand, part, place)
    return gather(ir, dtype, pointers, place.mask or "splat (i1 true)", place.lanes)


def load_offsets(
    ir: SimdEmitter,
    operand: KernelOperand,
    part: int,
    begin: str,
    offset: str,
    mask: str | None,
    lanes: int,
) -> Packet:
    """Load the elements at offsets, an i64 packet, from a pointer; 0 where the mask says no."""
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    size = f"splat (i64 {operand.dtype.itemsize})"
    jumps = ir.value(f"mul <{lanes} x i64> {offset}, {size}")
    first = _part_pointer(ir, operand, part, begin)
    pointers = ir.value(f"getelementptr i8, ptr {first}, <{lanes} x i64> {jumps}")
    found = gather(ir, dtype, pointers, mask or "splat (i1 true)", lanes)
    return Packet(_decode(ir, found, dtype, lanes), dtype, lanes)


def gather(ir: SimdEmitter, dtype: np.dtype, pointers: str, mask: str, lanes: int) -> str:
    """Load one element from each of the addresses that the mask lets, else 0."""
    if ir.masks > 1 and 1 < lanes <= masked_access.LANES:  # AVX2 has it, but LLVM thinks it slow
        return masked_access.gather(ir, memory_type(dtype), lanes, pointers, mask)
    type_ = _vector(dtype, lanes)
    return ir.intrinsic(
        f"llvm.masked.gather.{intrinsic_suffix(dtype, lanes, memory=True)}.v{lanes}p0",
        type_,
        [
            (f"<{lanes} x ptr>", pointers),
            ("i32", str(dtype.itemsize)),
            (f"<{lanes} x i1>", mask),
            (type_, "zeroinitializer"),
        ],
    )


def store(
    ir: SimdEmitter,
    operand: KernelOperand,
    packets: list[Packet],
    place: PacketAddress,
    *,
    streamed: bool = False,
) -> None:
    """Store a packet, or both parts of a complex one; `streamed`: whole ones past the cache."""
    dtype, lanes = packets[0].dtype, place.lanes
    values = [_encode(ir, ir.broadcast(packet, lanes), dtype, lanes) for packet in packets]
    step, whole = operand.steps[-1], place.mask is None
    if step == "1" and len(values) == 1:
        _store_contiguous(ir, dtype, values[0], place, streamed)
    elif step == "1" and whole:
        order = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(lanes))
        type_ = _vector(dtype, lanes)
        both = ir.value(
            f"shufflevector {type_} {values[0]}, {type_} {values[1]}, <{2 * lanes} x i32> <{order}>"
        )
        twice = ir.value(f"shl i64 {place.position}, 1")
        wide = place._replace(position=twice, lanes=2 * lanes)
        _store_contiguous(ir, dtype, both, wide, streamed)
    elif step in STEPS and len(values) == 1 and whole and not _lacks_masks(ir, dtype, lanes):
        pointer = _strided_pointer(ir, dtype, place, int(step))
        strided_load.store(ir, memory_type(dtype), lanes, values[0], pointer, int(step))
    else:
        for part, value in enumerate(values):
            pointers = _lane_pointers(ir, operand, part, place)
            _scatter(ir, dtype, value, pointers, place)


def store_single(
    ir: SimdEmitter, operand: KernelOperand, packets: list[Packet], pointer: str
) -> None:
    """Store one element, both parts of a complex one, at a pointer."""
    for part, packet in enumerate(packets):
        value, type_ = packet.text, memory_type(packet.dtype)
        if packet.lanes > 1:  # a gather makes a packet also where it reads one element
            type_of_all = llvm_type(packet.dtype, packet.lanes)
            value = ir.value(f"extractelement {type_of_all} {value}, i64 0")
        if packet.dtype == BOOL:
            value = ir.value(f"zext i1 {value} to i8")
        target = _part_pointer(ir, operand, part, pointer)
        ir.line(f"store {type_} {value}, ptr {target}, align {packet.dtype.itemsize}")


def _encode(ir: SimdEmitter, value: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return value
    return ir.value(f"zext {llvm_type(dtype, lanes)} {value} to <{lanes} x i8>")


def _store_contiguous(
    ir: SimdEmitter, dtype: np.dtype, value: str, place: PacketAddress, streamed: bool
) -> None:
    type_ = _vector(dtype, place.lanes)
    pointer = ir.value(
        f"getelementptr {memory_type(dtype)}, ptr {place.base}, i64 {place.position}"
    )
    if place.mask is not None and _lacks_masks(ir, dtype, place.lanes):
        masked_access.store(ir, memory_type(dtype), place.lanes, value, pointer, place.mask)
    elif place.mask is not None:
        name = f"llvm.masked.store.{intrinsic_suffix(dtype, place.lanes, memory=True)}.p0"
        mask = (f"<{place.lanes} x i1>", place.mask)
        arguments = [(type_, value), ("ptr", pointer), ("i32", str(dtype.itemsize)), mask]
        ir.intrinsic(name, "void", arguments)
    elif streamed:
        _store_non_temporal(ir, type_, value, pointer, dtype.itemsize, place.lanes)
    else:
        ir.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")


def _store_non_temporal(
    ir: SimdEmitter, type_: str, value: str, pointer: str, itemsize: int, lanes: int
) -> None:
    """Store past the cache where the address is aligned, which is tested; else as any other."""
    align = min(64, itemsize * lanes)
    address = ir.value(f"ptrtoint ptr {pointer} to i64")
    rest = ir.value(f"and i64 {address}, {align - 1}")
    aligned = ir.value(f"icmp eq i64 {rest}, 0")
    name = ir.name()[1:]
    ir.line(f"br i1 {aligned}, label %{name}.aligned, label %{name}.unaligned")
    ir.label(f"{name}.aligned")
    ir.line(f"store {type_} {value}, ptr {pointer}, align {align}, !nontemporal !0")
    ir.line(f"br label %{name}.stored")
    ir.label(f"{name}.unaligned")
    ir.line(f"store {type_} {value}, ptr {pointer}, align {itemsize}")
    ir.line(f"br label %{name}.stored")
    ir.label(f"{name}.stored")


def _scatter(
    ir: SimdEmitter, dtype: np.dtype, value: str, pointers: str, place: PacketAddress
) -> None:
    lanes, mask = place.lanes, place.mask or "splat (i1 true)"
    if ir.masks > 1 and 1 < lanes <= masked_access.LANES:
        masked_access.scatter(ir, memory_type(dtype), lanes, value, pointers, mask)
        return
    ir.intrinsic(
        f"llvm.masked.scatter.{intrinsic_suffix(dtype, lanes, memory=True)}.v{lanes}p0",
        "void",
        [
            (_vector(dtype, lanes), value),
            (f"<{lanes} x ptr>", pointers),
            ("i32", str(dtype.itemsize)),
            (f"<{lanes} x i1>", mask),
        ],
    )
