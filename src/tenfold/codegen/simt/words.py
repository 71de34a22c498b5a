"""Word tables: the few places in which the text of a thread differs between targets.

Takes the text of a module in common words, hands on LLVM IR for one target. `HOST_WORDS` are those
of x86-64, where the emulated device runs the threads of a block as fibers
(`native/threads/thread_blocks.h`), one after another where they never wait for each other.
`PTX_WORDS` are those of PTX by LLVM.

>>> substitute("  %v1 = load pointer, ptr %v0", PTX_WORDS).splitlines()[0]
'  %v1.global = load ptr addrspace(1), ptr %v0'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WARP = 32
"""Threads that exchange registers."""
BLOCK_THREADS = 256
"""Threads of a block, which share memory."""
COMMON = {
    "pointer": re.compile(r"^  (%[\w.]+) = load pointer, ptr (%[\w.]+)$", re.MULTILINE),
    "shuffle": re.compile(
        r"^  (%[\w.]+) = shuffle i32 (%[\w.]+), i32 (%[\w.]+|\d+)$", re.MULTILINE
    ),
    "barrier": re.compile(r"^  barrier$", re.MULTILINE),
    "head": re.compile(
        r"^thread (\w+) operands (\d+) sizes (\d+) scalars (\d+) words (\d+) shared (\d+)"
        r" (alone|waiting):$",
        re.MULTILINE,
    ),
}
"""The common words: a pointer to memory of the device is loaded; a lane reads the register of
another one; all threads of a block wait for each other; a function begins, with its name, the
number of its operands, the words of its arguments where sizes and scalars begin and how many there
are, its shared bytes, and whether its threads wait. Behind the operands of such a kernel the host
has the address of what runs them; other targets leave the word empty.
"""


@dataclass(frozen=True)
class Words:
    """The words of a target, as templates of the groups of `COMMON`."""

    pointer: str
    shuffle: str
    barrier: str
    head: str
    """The calling convention. It defines %buffers, %sizes, %scalars, %scratch (shared memory),
    %status (the lowest number of a failing element, 1 for the first) and %unit, the thread."""
    alone: str
    """Of the host what runs a block of threads that never wait for each other."""
    waiting: str
    """The same for threads that wait."""
    waits: str
    """What a waiting thread loads first."""
    declarations: str
    """What a module ends with."""


HOST_ARGUMENTS = "ptr %buffers, ptr %sizes, ptr %scalars, ptr %scratch"
HOST_WORDS = Words(
    pointer=r"  \1 = load ptr, ptr \2",
    shuffle=r"  \1 = call i32 %shuffle(ptr %status, i32 \2, i32 \3)",
    barrier="  call void %barrier(ptr %status)",
    head=f"define internal void @NAME.thread({HOST_ARGUMENTS}, ptr %status, i64 %unit) {{\nentry:",
    alone=f"""define i64 @NAME({HOST_ARGUMENTS}, i64 %begin, i64 %end) {{
entry:
  %status = alloca i64
  store i64 -1, ptr %status
  br label %test
test:
  %unit = phi i64 [ %begin, %entry ], [ %next, %run ]
  %more = icmp slt i64 %unit, %end
  br i1 %more, label %run, label %done
run:
  call void @NAME.thread({HOST_ARGUMENTS}, ptr %status, i64 %unit)
  %next = add i64 %unit, 1
  br label %test
done:
  %lowest = load i64, ptr %status
  %none = icmp eq i64 %lowest, -1
  %result = select i1 %none, i64 0, i64 %lowest
  ret i64 %result
}}
""",
    waiting=f"""define i64 @NAME({HOST_ARGUMENTS}, i64 %begin, i64 %end) {{
entry:
  %slot = getelementptr ptr, ptr %buffers, i64 OPERANDS
  %runner = load ptr, ptr %slot
  %result = call i64 %runner(ptr @NAME.thread, {HOST_ARGUMENTS}, i64 %begin, i64 %end)
  ret i64 %result
}}
""",
    waits="""
  %shuffle.slot = getelementptr ptr, ptr %status, i64 1
  %shuffle = load ptr, ptr %shuffle.slot
  %barrier.slot = getelementptr ptr, ptr %status, i64 2
  %barrier = load ptr, ptr %barrier.slot""",
    declarations="",
)
PTX_WORDS = Words(
    pointer=r"  \1.global = load ptr addrspace(1), ptr \2"
    "\n"
    r"  \1 = addrspacecast ptr addrspace(1) \1.global to ptr",
    shuffle=r"  \1 = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 \2, i32 \3, i32 31)",
    barrier="  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
    head=f"""@NAME.shared = internal addrspace(3) global [SHARED x i8] poison, align 16
define ptx_kernel void @NAME(ptr byval([WORDS x i64]) align 8 %buffers) #0 {{
entry:
  %sizes = getelementptr i64, ptr %buffers, i64 SIZES
  %scalars = getelementptr i64, ptr %buffers, i64 SCALARS
  %status.slot = getelementptr i64, ptr %buffers, i64 STATUS
  %status.global = load ptr addrspace(1), ptr %status.slot
  %status = addrspacecast ptr addrspace(1) %status.global to ptr
  %scratch = addrspacecast ptr addrspace(3) @NAME.shared to ptr
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %thread.wide = zext i32 %thread to i64
  %block.wide = zext i32 %block to i64
  %block.first = mul i64 %block.wide, {BLOCK_THREADS}
  %unit = add i64 %block.first, %thread.wide""",
    alone="",
    waiting="",
    waits="",
    declarations=f"""declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
attributes #0 = {{ "nvvm.reqntid"="{BLOCK_THREADS}" }}
""",
)


def substitute(text: str, words: Words) -> str:
    """Return a module in the words of a target."""

    def head(match: re.Match[str]) -> str:
        *numbers, waits = match.groups()
        parts = [words.alone, words.head]
        if waits == "waiting":
            parts = [words.waiting, words.head, words.waits]
        names = "NAME", "OPERANDS", "SIZES", "SCALARS", "WORDS", "SHARED"
        values = dict(zip(names, numbers, strict=True)) | {"STATUS": str(int(numbers[4]) - 1)}
        return re.sub("|".join(values), lambda word: values[word.group()], "".join(parts))

    for name in ("pointer", "shuffle", "barrier"):
        text = COMMON[name].sub(getattr(words, name), text)
    return COMMON["head"].sub(head, text) + words.declarations
