"""Loads and stores: LLVM text that moves packets to and from memory, by an operand's step.

Input: an operand, the pointer to its element at position 0 of the packet axis, a position on that
axis and, for a partial packet, a mask. Output: lines in a SimdEmitter. Contiguous elements are
loaded directly, reversed ones loaded and reversed. Strides of 2 to 4 elements are shuffled out of
contiguous loads, all others are gathered. A lane outside the mask touches no memory.

>>> from tenfold.dtypes import FLOAT32
>>> ir = SimdEmitter()
>>> address = PacketAddress("%p", "%i", "%stride", None, 8)
>>> packet = load(ir, KernelOperand(FLOAT32, "1"), 0, address)
>>> print(ir)
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
from tenfold.core.loop_ir import SMALL_STEPS, KernelOperand
from tenfold.dtypes import BOOL, REAL_DTYPES


class PacketAddress(NamedTuple):
    """The address of a packet, as names of LLVM values."""

    base: str
    """Pointer to the element at position 0."""
    position: str
    """Position of the packet's first lane, i64."""
    stride: str
    """Bytes from one position to the next, i64; needed for the step "s" alone."""
    mask: str | None
    """The valid lanes; None: all."""
    lanes: int
    valid: str | None = None
    """The number of lanes in the mask, if the first ones are in it."""


ALL = "splat (i1 true)"
"""The mask of all lanes."""
MAX_SINGLE_LOADS = 32
"""The lanes of a packet that is loaded lane by lane without a loop."""

memory_type = (SCALARS | {BOOL: "i8"}).__getitem__
"""The LLVM type of one real element in memory."""


def iota(lanes: int, scalar: str = "i64") -> str:
    """Return the constant vector 0, 1, 2, ..."""
    return "<" + ", ".join([f"{scalar} {i}" for i in range(lanes)]) + ">"


def load(ir: SimdEmitter, operand: KernelOperand, component: int, address: PacketAddress) -> Packet:
    """Load a packet of a real operand, or of one component of a complex one (1: imaginary)."""
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    step = operand.steps[-1]
    if step == "0":
        pointer = _part_pointer(ir, operand, component, address.base)
        value = ir.value(f"load {memory_type(dtype)}, ptr {pointer}, align {dtype.itemsize}")
        return Packet(_decode(ir, value, dtype, 1), dtype, 1)
    if address.lanes == 1:
        pointer = _element_pointer(ir, operand, address)
        return load(ir, operand._replace(steps="0"), component, address._replace(base=pointer))
    if step == "1" and dtype == operand.dtype:
        value = _load_contiguous(ir, dtype, address)
    elif step == "1" and address.mask is None:
        value = _load_deinterleaved(ir, dtype, component, address)
    elif step == "-" and dtype == operand.dtype and address.mask is None:
        value = _load_reversed(ir, dtype, address)
    elif step in SMALL_STEPS and (
        address.mask is None or not _lacks_masks(ir, dtype, address.lanes)
    ):
        pointer = _strided_pointer(ir, dtype, address, int(step))
        value = strided_load.load(
            ir, memory_type(dtype), address.lanes, pointer, int(step), address.mask
        )
    else:
        value = _gather_operand(ir, operand, component, address)
    return Packet(_decode(ir, value, dtype, address.lanes), dtype, address.lanes)


def _decode(ir: SimdEmitter, value: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return value
    return ir.value(f"icmp ne {'i8' if lanes == 1 else f'<{lanes} x i8>'} {value}, {_zero(lanes)}")


def _lacks_masks(ir: SimdEmitter, dtype: np.dtype, lanes: int) -> bool:
    """Return whether the processor has no masked loads and stores for a dtype."""
    return dtype.itemsize < ir.masks and 1 < lanes <= masked_access.MASK_LANES


def _zero(lanes: int) -> str:
    return "0" if lanes == 1 else "zeroinitializer"


def _vector(dtype: np.dtype, lanes: int) -> str:
    return f"<{lanes} x {memory_type(dtype)}>"


def _part_pointer(ir: SimdEmitter, operand: KernelOperand, component: int, pointer: str) -> str:
    if not component:
        return pointer
    return ir.value(f"getelementptr i8, ptr {pointer}, i64 {operand.dtype.itemsize // 2}")


def _load_contiguous(ir: SimdEmitter, dtype: np.dtype, address: PacketAddress) -> str:
    type_ = _vector(dtype, address.lanes)
    pointer = ir.value(
        f"getelementptr {memory_type(dtype)}, ptr {address.base}, i64 {address.position}"
    )
    if address.mask is None:
        return ir.value(f"load {type_}, ptr {pointer}, align {dtype.itemsize}")
    if _lacks_masks(ir, dtype, address.lanes):
        return masked_access.load(ir, memory_type(dtype), address.lanes, pointer, address.mask)
    return ir.intrinsic(
        f"llvm.masked.load.{intrinsic_suffix(dtype, address.lanes, memory=True)}.p0",
        type_,
        [
            ("ptr", pointer),
            ("i32", str(dtype.itemsize)),
            (f"<{address.lanes} x i1>", address.mask),
            (type_, "zeroinitializer"),
        ],
    )


def _load_deinterleaved(
    ir: SimdEmitter, dtype: np.dtype, component: int, address: PacketAddress
) -> str:
    """Load interleaved components once, and shuffle one of them out."""
    lanes, scalar = address.lanes, memory_type(dtype)
    key = ("complex", address.base, address.position)
    interleaved = ir.value_cache.get(key)
    if interleaved is None:
        pair = f"{{ {scalar}, {scalar} }}"
        pointer = ir.value(f"getelementptr {pair}, ptr {address.base}, i64 {address.position}")
        interleaved = ir.value(
            f"load <{2 * lanes} x {scalar}>, ptr {pointer}, align {dtype.itemsize}"
        )
        ir.value_cache[key] = interleaved
    order = ", ".join(f"i32 {2 * i + component}" for i in range(lanes))
    pair_type = f"<{2 * lanes} x {scalar}>"
    return ir.value(
        f"shufflevector {pair_type} {interleaved}, {pair_type} poison, <{lanes} x i32> <{order}>"
    )


def _strided_pointer(ir: SimdEmitter, dtype: np.dtype, address: PacketAddress, step: int) -> str:
    """Return the pointer to the first lane of a packet of every `step`-th element."""
    offset = ir.value(f"mul i64 {address.position}, {step}")
    return ir.value(f"getelementptr {memory_type(dtype)}, ptr {address.base}, i64 {offset}")


def _load_reversed(ir: SimdEmitter, dtype: np.dtype, address: PacketAddress) -> str:
    lanes, scalar = address.lanes, memory_type(dtype)
    last_position = ir.value(f"add i64 {address.position}, {lanes - 1}")
    offset = ir.value(f"sub i64 0, {last_position}")
    pointer = ir.value(f"getelementptr {scalar}, ptr {address.base}, i64 {offset}")
    value = ir.value(f"load {_vector(dtype, lanes)}, ptr {pointer}, align {dtype.itemsize}")
    order = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))
    type_ = _vector(dtype, lanes)
    return ir.value(f"shufflevector {type_} {value}, {type_} poison, <{lanes} x i32> <{order}>")


def _lane_pointers(
    ir: SimdEmitter, operand: KernelOperand, component: int, address: PacketAddress
) -> str:
    """Return the address of each lane."""
    lanes, stride = address.lanes, _stride(operand, address)
    base = _part_pointer(ir, operand, component, address.base)
    begin_pointer = _element_pointer(ir, operand, address._replace(base=base))
    strides = ir.broadcast(Packet(stride, np.dtype(np.int64), 1), lanes)
    offsets = ir.value(f"mul <{lanes} x i64> {strides}, {iota(lanes)}")
    return ir.value(f"getelementptr i8, ptr {begin_pointer}, <{lanes} x i64> {offsets}")


def _stride(operand: KernelOperand, address: PacketAddress) -> str:
    """Return the bytes from one position to the next."""
    step = operand.steps[-1]
    if step == "s":
        return address.stride
    return str(operand.dtype.itemsize * (-1 if step == "-" else int(step)))


def _element_pointer(ir: SimdEmitter, operand: KernelOperand, address: PacketAddress) -> str:
    """Return the address of the first lane."""
    offset = ir.value(f"mul i64 {address.position}, {_stride(operand, address)}")
    return ir.value(f"getelementptr i8, ptr {address.base}, i64 {offset}")


def _gather_operand(
    ir: SimdEmitter, operand: KernelOperand, component: int, address: PacketAddress
) -> str:
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    pointers = _lane_pointers(ir, operand, component, address)
    return gather(ir, dtype, pointers, address.mask or ALL, address.lanes)


def load_offsets(
    ir: SimdEmitter,
    operand: KernelOperand,
    component: int,
    base: str,
    offset: str,
    mask: str | None,
    lanes: int,
) -> Packet:
    """Load the elements at offsets, an i64 packet, from a pointer; 0 outside the mask."""
    dtype = REAL_DTYPES.get(operand.dtype, operand.dtype)
    size = f"splat (i64 {operand.dtype.itemsize})"
    byte_offsets = ir.value(f"mul <{lanes} x i64> {offset}, {size}")
    component_base = _part_pointer(ir, operand, component, base)
    pointers = ir.value(f"getelementptr i8, ptr {component_base}, <{lanes} x i64> {byte_offsets}")
    value = gather(ir, dtype, pointers, mask or ALL, lanes)
    return Packet(_decode(ir, value, dtype, lanes), dtype, lanes)


def gather(ir: SimdEmitter, dtype: np.dtype, pointers: str, mask: str, lanes: int) -> str:
    """Load one element from each address; 0 outside the mask."""
    if ir.masks > 1 and mask == ALL and lanes <= MAX_SINGLE_LOADS:
        return _load_singly(ir, memory_type(dtype), pointers, lanes)
    if (
        ir.masks > 1 and 1 < lanes <= masked_access.MASK_LANES
    ):  # LLVM does not use the gather of AVX2
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


def _load_singly(ir: SimdEmitter, scalar: str, pointers: str, lanes: int) -> str:
    """Load a packet lane by lane: AVX2 is as fast so as with its gathers."""
    value = "poison"
    for lane in range(lanes):
        pointer = ir.value(f"extractelement <{lanes} x ptr> {pointers}, i64 {lane}")
        element = ir.value(
            f"load {scalar}, ptr {pointer}, align {masked_access.SCALAR_BYTES[scalar]}"
        )
        value = ir.value(
            f"insertelement <{lanes} x {scalar}> {value}, {scalar} {element}, i64 {lane}"
        )
    return value


def prefetch(ir: SimdEmitter, base: str, offset: str, size: int) -> None:
    """Prefetch the cache lines of some bytes, from a byte offset on."""
    for line in range(0, size, 64):
        begin = ir.value(f"add i64 {offset}, {line}")
        pointer = ir.value(f"getelementptr i8, ptr {base}, i64 {begin}")
        arguments = [("ptr", pointer), ("i32", "0"), ("i32", "3"), ("i32", "1")]
        ir.intrinsic("llvm.prefetch.p0", "void", arguments)


def store(
    ir: SimdEmitter,
    operand: KernelOperand,
    packets: list[Packet],
    address: PacketAddress,
    *,
    streamed: bool = False,
) -> None:
    """Store a packet, or both components of a complex one; `streamed`: non-temporal if unmasked."""
    dtype, lanes = packets[0].dtype, address.lanes
    if lanes == 1:
        store_single(ir, operand, packets, _element_pointer(ir, operand, address))
        return
    values = [_encode(ir, ir.broadcast(packet, lanes), dtype, lanes) for packet in packets]
    step, is_full = operand.steps[-1], address.mask is None
    if step == "1" and len(values) == 1:
        _store_contiguous(ir, dtype, values[0], address, streamed)
    elif step == "1" and is_full:
        order = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(lanes))
        type_ = _vector(dtype, lanes)
        interleaved = ir.value(
            f"shufflevector {type_} {values[0]}, {type_} {values[1]}, <{2 * lanes} x i32> <{order}>"
        )
        doubled = ir.value(f"shl i64 {address.position}, 1")
        pair_address = address._replace(position=doubled, lanes=2 * lanes)
        _store_contiguous(ir, dtype, interleaved, pair_address, streamed)
    elif (
        step in SMALL_STEPS and len(values) == 1 and is_full and not _lacks_masks(ir, dtype, lanes)
    ):
        pointer = _strided_pointer(ir, dtype, address, int(step))
        strided_load.store(ir, memory_type(dtype), lanes, values[0], pointer, int(step))
    else:
        for component, value in enumerate(values):
            pointers = _lane_pointers(ir, operand, component, address)
            _scatter(ir, dtype, value, pointers, address)


def store_single(
    ir: SimdEmitter, operand: KernelOperand, packets: list[Packet], pointer: str
) -> None:
    """Store one element, or both components of a complex one, at a pointer."""
    for component, packet in enumerate(packets):
        value, type_ = packet.text, memory_type(packet.dtype)
        if packet.lanes > 1:  # a gather makes a packet even if it reads one element
            type_of_all = llvm_type(packet.dtype, packet.lanes)
            value = ir.value(f"extractelement {type_of_all} {value}, i64 0")
        if packet.dtype == BOOL:
            value = ir.value(f"zext i1 {value} to i8")
        target = _part_pointer(ir, operand, component, pointer)
        ir.line(f"store {type_} {value}, ptr {target}, align {packet.dtype.itemsize}")


def _encode(ir: SimdEmitter, value: str, dtype: np.dtype, lanes: int) -> str:
    if dtype != BOOL:
        return value
    return ir.value(f"zext {llvm_type(dtype, lanes)} {value} to <{lanes} x i8>")


def _store_contiguous(
    ir: SimdEmitter, dtype: np.dtype, value: str, address: PacketAddress, streamed: bool
) -> None:
    type_ = _vector(dtype, address.lanes)
    pointer = ir.value(
        f"getelementptr {memory_type(dtype)}, ptr {address.base}, i64 {address.position}"
    )
    if address.mask is not None and _lacks_masks(ir, dtype, address.lanes):
        masked_access.store(ir, memory_type(dtype), address.lanes, value, pointer, address.mask)
    elif address.mask is not None:
        _store_masked(ir, dtype, value, pointer, address)
    elif streamed:
        _store_non_temporal(ir, type_, value, pointer, dtype.itemsize, address.lanes)
    else:
        ir.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")


def _store_masked(
    ir: SimdEmitter, dtype: np.dtype, value: str, pointer: str, address: PacketAddress
) -> None:
    """Emit a masked store. With AVX2 a packet with all lanes takes an ordinary one: on AMD's
    processors its masked store is so slow that a draw of uniform numbers takes 1.4 times as long.
    """
    type_, name = _vector(dtype, address.lanes), ""
    if ir.masks > 1 and address.valid is not None:
        is_full = ir.value(f"icmp eq i64 {address.valid}, {address.lanes}")
        name = is_full[1:]
        ir.line(f"br i1 {is_full}, label %{name}.whole, label %{name}.part")
        ir.label(f"{name}.whole")
        ir.line(f"store {type_} {value}, ptr {pointer}, align {dtype.itemsize}")
        ir.line(f"br label %{name}.stored")
        ir.label(f"{name}.part")
    intrinsic = f"llvm.masked.store.{intrinsic_suffix(dtype, address.lanes, memory=True)}.p0"
    mask = (f"<{address.lanes} x i1>", str(address.mask))
    arguments = [(type_, value), ("ptr", pointer), ("i32", str(dtype.itemsize)), mask]
    ir.intrinsic(intrinsic, "void", arguments)
    if name:
        ir.line(f"br label %{name}.stored")
        ir.label(f"{name}.stored")


def _store_non_temporal(
    ir: SimdEmitter, type_: str, value: str, pointer: str, itemsize: int, lanes: int
) -> None:
    """Emit a non-temporal store if the address is aligned at run time, else an ordinary store."""
    align = min(64, itemsize * lanes)
    address = ir.value(f"ptrtoint ptr {pointer} to i64")
    misalignment = ir.value(f"and i64 {address}, {align - 1}")
    aligned = ir.value(f"icmp eq i64 {misalignment}, 0")
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
    ir: SimdEmitter, dtype: np.dtype, value: str, pointers: str, address: PacketAddress
) -> None:
    lanes, mask = address.lanes, address.mask or ALL
    if ir.masks > 1 and 1 < lanes <= masked_access.MASK_LANES:
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
