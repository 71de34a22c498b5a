"""Kernels of a few instructions for the tests of launches, compiled by LLVM when imported.

Hands on the addresses in `ADDRESS`, and `launch` with sizes and scalars as Python numbers.

>>> cells = np.zeros(4, np.int64)
>>> launch("count", [cells], units=4), cells.tolist()
(0, [1, 1, 1, 1])
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm
import numpy as np

from tenfold import _native

SIGNATURE = "(ptr %buffers, ptr %sizes, ptr %scalars, ptr %scratch, i64 %begin, i64 %end)"


def _loop(name: str, body: str) -> str:
    """A kernel that runs `body` for each unit `%i`; `%first` is its first buffer."""
    return f"""
define i64 @{name}{SIGNATURE} {{
entry:
  %first = load ptr, ptr %buffers
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %latch]
{body}
  br label %latch
latch:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}}
"""


SOURCE = "\n".join(
    [
        _loop(
            "count",
            """
  %cell = getelementptr i64, ptr %first, i64 %i
  %old = load i64, ptr %cell
  %new = add i64 %old, 1
  store i64 %new, ptr %cell""",
        ),
        # Buffer 0: [units run, threads inside, whether to hurry]; a unit takes about 50 us, and
        # next to nothing once it is to hurry.
        _loop(
            "spin",
            """
  %inside = getelementptr i64, ptr %first, i64 1
  %entered = atomicrmw add ptr %inside, i64 1 seq_cst
  %ran = atomicrmw add ptr %first, i64 1 seq_cst
  %told = getelementptr i64, ptr %first, i64 2
  %hurry = load atomic i64, ptr %told seq_cst, align 8
  %hurries = icmp ne i64 %hurry, 0
  br i1 %hurries, label %left, label %turn
turn:
  %turns = phi i64 [0, %loop], [%turned, %turn]
  %turned = add i64 %turns, 1
  call void @llvm.x86.sse2.pause()
  %enough = icmp eq i64 %turned, 1000
  br i1 %enough, label %left, label %turn
left:
  %going = atomicrmw sub ptr %inside, i64 1 seq_cst""",
        ),
        # Fails at the first unit that, counted from 1, is a multiple of the first size.
        f"""
define i64 @refuse{SIGNATURE} {{
  %size = load i64, ptr %sizes
  %above = add i64 %begin, %size
  %multiple = sdiv i64 %above, %size
  %number = mul i64 %multiple, %size
  %within = icmp sle i64 %number, %end
  %status = select i1 %within, i64 %number, i64 0
  ret i64 %status
}}
define i64 @given{SIGNATURE} {{
  %first = load ptr, ptr %buffers
  %size = load i64, ptr %sizes
  store i64 %size, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  %scalar = load i64, ptr %scalars
  store i64 %scalar, ptr %second
  %third = getelementptr i64, ptr %first, i64 2
  %address = ptrtoint ptr %scratch to i64
  store i64 %address, ptr %third
  ret i64 0
}}
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse2.pause()
define i64 @set_float_mode{SIGNATURE} {{
  %mode = alloca i32
  %wide = load i64, ptr %sizes
  %narrow = trunc i64 %wide to i32
  store i32 %narrow, ptr %mode
  call void @llvm.x86.sse.ldmxcsr(ptr %mode)
  ret i64 0
}}
""",
        _loop(
            "twice",
            """
  %cell = getelementptr double, ptr %first, i64 %i
  %old = load double, ptr %cell
  %new = fadd double %old, %old
  store double %new, ptr %cell""",
        ),
    ]
)


def _compiled(source: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(source), machine)
    engine.finalize_object()
    return engine


_engine = _compiled(SOURCE)
ADDRESS = {
    name: _engine.get_function_address(name)
    for name in ("count", "spin", "refuse", "given", "set_float_mode", "twice")
}


def launch(
    kernel: str,
    buffers: Sequence[np.ndarray | _native.Value | int] = (),
    *,
    sizes: Sequence[int] = (),
    scalars: bytes = b"",
    scratch: int = 0,
    units: int = 1,
    grain: int = 1,
    threads: int = 1,
) -> int:
    """Launch a kernel by its name; an ndarray stands for its address."""
    places = [b.ctypes.data if isinstance(b, np.ndarray) else b for b in buffers]
    lengths = np.array(sizes, np.int64).tobytes()
    address = ADDRESS[kernel]
    return _native.launch(address, places, lengths, scalars, scratch, units, grain, threads)
