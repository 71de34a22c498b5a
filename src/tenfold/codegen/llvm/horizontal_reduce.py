"""Horizontal reduction: folds 32 SIMD lanes by halves, lane j with j + 16, then j + 8; or fewer.

Input: the packets of a fold and the number of valid lanes. Output: scalars. Each kind of fold and
dtypes has one function of the module.
"""

from __future__ import annotations

import numpy as np

from tenfold.codegen.llvm.load_store import iota
from tenfold.codegen.llvm.loop_emitter import Accumulator, combine_partials, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.core.loop_ir import Fold
from tenfold.dtypes import BOOL


def reduce_lanes(ir: SimdEmitter, fold: Fold, components: Accumulator, valid: str) -> Accumulator:
    """Call the function that folds the lanes by halves, of which `valid` are valid."""
    lanes = components[0].lanes
    dtypes = [packet.dtype for packet in components]
    name = f"lanes.{lanes}.{fold.kind.replace(' ', '.')}.{'.'.join(map(str, dtypes))}"
    scalars = ", ".join(llvm_type(dtype, 1) for dtype in dtypes)
    if name not in ir.functions:
        ir.functions[name] = _lanes_function(ir, name, fold.kind, components, scalars)
    arguments = [f"{llvm_type(p.dtype, lanes)} {p.text}" for p in components]
    called = ir.value(f"call {{ {scalars} }} @{name}({', '.join([*arguments, f'i64 {valid}'])})")
    return tuple(
        Packet(ir.value(f"extractvalue {{ {scalars} }} {called}, {i}"), dtype, 1)
        for i, dtype in enumerate(dtypes)
    )


def _lanes_function(
    ir: SimdEmitter, name: str, kind: str, packets: Accumulator, scalars: str
) -> str:
    inner = SimdEmitter(baseline=ir.baseline)
    inner.declarations, inner.globals, inner.functions = ir.declarations, ir.globals, ir.functions
    components = tuple(
        Packet(f"%part{i}", packet.dtype, packet.lanes) for i, packet in enumerate(packets)
    )
    is_full = inner.value(f"icmp eq i64 %valid, {packets[0].lanes}")
    inner.line(f"br i1 {is_full}, label %full, label %ragged")
    for label, valid in (("full", None), ("ragged", "%valid")):
        inner.label(label)
        result = "poison"
        for i, packet in enumerate(_reduce_by_halves(inner, kind, components, valid)):
            value = f"{llvm_type(packet.dtype, 1)} {packet.text}"
            result = inner.value(f"insertvalue {{ {scalars} }} {result}, {value}, {i}")
        inner.line(f"ret {{ {scalars} }} {result}")
    parameters = [f"{llvm_type(p.dtype, p.lanes)} {p.text}" for p in components]
    signature = f"{name}({', '.join([*parameters, 'i64 %valid'])})"
    head = f"define internal {{ {scalars} }} @{signature} noinline"
    return f"{head} {{\nentry:\n{inner}\n}}"


def _reduce_by_halves(
    ir: SimdEmitter, kind: str, components: Accumulator, valid: str | None
) -> Accumulator:
    """Fold lanes; if not all are valid, a lane without a partner is unchanged."""
    half = components[0].lanes // 2
    while half:
        low = tuple(_slice_lanes(ir, packet, 0, half) for packet in components)
        high = tuple(_slice_lanes(ir, packet, half, half) for packet in components)
        components = combine_partials(ir, kind, low, high)
        if valid is not None:
            pairs = int_op(ir, "sub", valid, half)
            components = tuple(
                _select_paired(ir, pairs, a, b, half) for a, b in zip(components, low, strict=True)
            )
            valid = int_min(ir, valid, half)
        half //= 2
    return components


def _slice_lanes(ir: SimdEmitter, packet: Packet, start: int, count: int) -> Packet:
    type_ = llvm_type(packet.dtype, 2 * count)
    if count == 1:
        return Packet(
            ir.value(f"extractelement {type_} {packet.text}, i64 {start}"), packet.dtype, 1
        )
    order = ", ".join(f"i32 {start + i}" for i in range(count))
    sliced = ir.value(
        f"shufflevector {type_} {packet.text}, {type_} poison, <{count} x i32> <{order}>"
    )
    return Packet(sliced, packet.dtype, count)


def _select_paired(ir: SimdEmitter, pairs: str, merged: Packet, low: Packet, lanes: int) -> Packet:
    """Select the merged lane if both were valid, else the lower one."""
    if lanes == 1:
        paired = ir.value(f"icmp sgt i64 {pairs}, 0")
    else:
        pairs_i32 = ir.value(f"trunc i64 {pairs} to i32")
        limit = ir.broadcast(Packet(pairs_i32, np.dtype(np.int32), 1), lanes)
        paired = ir.value(f"icmp slt <{lanes} x i32> {iota(lanes, 'i32')}, {limit}")
    type_ = llvm_type(low.dtype, lanes)
    mask = llvm_type(BOOL, lanes)
    selected = ir.value(f"select {mask} {paired}, {type_} {merged.text}, {type_} {low.text}")
    return Packet(selected, low.dtype, lanes)
