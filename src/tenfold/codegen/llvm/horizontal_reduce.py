"""Horizontal reduction: folds a block's 32 SIMD lanes by halves, lane j with j + 16, then j + 8.

Takes the packets of a fold and how many lanes are valid, hands on scalars. It is written once as a
function of the program, for each kind of fold and its dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.codegen.llvm.load_store import iota
from tenfold.codegen.llvm.loop_emitter import Parts, combined, integer, smaller
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, type_text
from tenfold.core.loop_ir import LANES, Fold
from tenfold.dtypes import BOOL


def lanes_folded(text: SimdEmitter, fold: Fold, parts: Parts, valid: str) -> Parts:
    """Fold 32 lanes by halves, of which `valid` are there: a function of its own, called."""
    dtypes = [packet.dtype for packet in parts]
    name = f"lanes.{fold.kind.replace(' ', '.')}.{'.'.join(map(str, dtypes))}"
    scalars = ", ".join(type_text(dtype, 1) for dtype in dtypes)
    if name not in text.functions:
        text.functions[name] = _lanes_function(text, name, fold.kind, dtypes, scalars)
    arguments = [f"{type_text(p.dtype, LANES)} {p.text}" for p in parts]
    called = text.value(f"call {{ {scalars} }} @{name}({', '.join([*arguments, f'i64 {valid}'])})")
    return tuple(
        Packet(text.value(f"extractvalue {{ {scalars} }} {called}, {i}"), dtype, 1)
        for i, dtype in enumerate(dtypes)
    )


def _lanes_function(
    text: SimdEmitter, name: str, kind: str, dtypes: Sequence[np.dtype], scalars: str
) -> str:
    inner = SimdEmitter(baseline=text.baseline)
    inner.declared, inner.globals, inner.functions = text.declared, text.globals, text.functions
    parts = tuple(Packet(f"%part{i}", dtype, LANES) for i, dtype in enumerate(dtypes))
    all_there = inner.value(f"icmp eq i64 %valid, {LANES}")
    inner.line(f"br i1 {all_there}, label %full, label %ragged")
    for label, valid in (("full", None), ("ragged", "%valid")):
        inner.label(label)
        result = "poison"
        for i, packet in enumerate(_by_halves(inner, kind, parts, valid)):
            value = f"{type_text(packet.dtype, 1)} {packet.text}"
            result = inner.value(f"insertvalue {{ {scalars} }} {result}, {value}, {i}")
        inner.line(f"ret {{ {scalars} }} {result}")
    given = [f"{type_text(dtype, LANES)} %part{i}" for i, dtype in enumerate(dtypes)]
    head = f"define internal {{ {scalars} }} @{name}({', '.join([*given, 'i64 %valid'])}) noinline"
    return f"{head} {{\nentry:\n{inner}\n}}"


def _by_halves(text: SimdEmitter, kind: str, parts: Parts, valid: str | None) -> Parts:
    """Fold lanes; where not all are there, one without a partner stays as it is."""
    half = LANES // 2
    while half:
        low = tuple(_half(text, packet, 0, half) for packet in parts)
        high = tuple(_half(text, packet, half, half) for packet in parts)
        parts = combined(text, kind, low, high)
        if valid is not None:
            pairs = integer(text, "sub", valid, half)
            parts = tuple(
                _where_paired(text, pairs, a, b, half) for a, b in zip(parts, low, strict=True)
            )
            valid = smaller(text, valid, half)
        half //= 2
    return parts


def _half(text: SimdEmitter, packet: Packet, first: int, count: int) -> Packet:
    type_ = type_text(packet.dtype, 2 * count)
    if count == 1:
        return Packet(
            text.value(f"extractelement {type_} {packet.text}, i64 {first}"), packet.dtype, 1
        )
    picked = ", ".join(f"i32 {first + i}" for i in range(count))
    found = text.value(
        f"shufflevector {type_} {packet.text}, {type_} poison, <{count} x i32> <{picked}>"
    )
    return Packet(found, packet.dtype, count)


def _where_paired(text: SimdEmitter, pairs: str, merged: Packet, low: Packet, lanes: int) -> Packet:
    """The merged lane where both were there, else the lower one."""
    if lanes == 1:
        paired = text.value(f"icmp sgt i64 {pairs}, 0")
    else:
        short = text.value(f"trunc i64 {pairs} to i32")
        each = text.spread(Packet(short, np.dtype(np.int32), 1), lanes)
        paired = text.value(f"icmp slt <{lanes} x i32> {iota(lanes, 'i32')}, {each}")
    type_ = type_text(low.dtype, lanes)
    mask = type_text(BOOL, lanes)
    chosen = text.value(f"select {mask} {paired}, {type_} {merged.text}, {type_} {low.text}")
    return Packet(chosen, low.dtype, lanes)
