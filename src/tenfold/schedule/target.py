"""Target: the facts of a machine that scheduling and code generation read, frozen.

Takes the device and the instruction set, hands on numbers: a pass reads them from the Schedule, and
the plan is cached under them. A device makes its own by `Device.target`. Numbers that native code
reads too are in `native/memory/target_facts.h`, which `make stubs` writes from the defaults here.

>>> target_of("x86-64-v3").simd.register_bytes
32
>>> Target() == target_of("x86-64-v3")
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tenfold import _native
from tenfold.settings import CPU_LEVELS
from tenfold.storage.dense import HOST


@dataclass(frozen=True)
class Simd:
    """Vector instructions."""

    register_bytes: int = 32
    """Bytes of a register."""
    fma: bool = True
    """Whether there are FMA and conversions of half types; operations that need them are calls."""
    masked_bytes: int = 4
    """The smallest itemsize with masked loads and stores; 16: none."""
    packet_bytes: int = 64
    """Bytes of a packet of one part. It is the same for every register, so that the schedule is."""
    short_body_ops: int = 12
    """Instructions up to which packets may be twice as wide without spilling registers."""
    long_body_ops: int = 40
    """Instructions from which one copy of a body is faster than two."""
    formula_ops: int = 25
    """The weight of an elementary function, in instructions."""
    wide_fold_parts: int = 2
    """The most parts of a fold with packets of twice the width: more do not stay in registers."""
    narrowest_lanes: int = 4
    """The fewest lanes of a packet of columns."""
    short_row_lanes: int = 8
    """The fewest elements of a row that are folded as one packet; those of fewer side by side."""
    max_lanes: int = 64
    """The most lanes of a packet."""
    min_transposed_elements: int = 16
    """The shortest axes whose blocks are transposed in registers."""


@dataclass(frozen=True)
class Caches:
    """Sizes that follow from the caches."""

    streamed_bytes: int = 24 << 20
    """A kernel that reads and writes more than this uses non-temporal stores."""
    streamed_share: int = 8
    """At least one byte in so many must be written; fewer are better left in the cache."""
    fused_row_elements: int = 1 << 16
    """Elements up to which a row that is read several times stays in a cache of its core."""
    column_scratch_bytes: int = 1 << 18
    """Scratch memory of a part of the columns of a fold."""
    scanned_columns: int = 512
    """The most columns of a unit of work of a scan: running values stay in the first cache."""
    prefetch_bytes: int = 8192
    """The prefetch distance of a fold: less comes too late, more evicts live data from the first
    cache."""
    short_prefetch_bytes: int = 2048
    """The prefetch distance of short rows."""
    short_row_elements: int = 512
    """Elements up to which rows are short: a prefetch beyond their end is common."""
    copied_part_bytes: int = 1 << 14
    """Bytes up to which a part of an array is small: some pages."""
    cached_part_bytes: int = 1 << 19
    """Bytes up to which a part stays in a cache of its core."""
    max_parts: int = 64
    """The most small parts that one kernel writes: more evict each other from the cache."""
    max_large_parts: int = 8
    """The most parts that stay in a cache."""
    max_huge_parts: int = 4
    """The most larger parts."""
    slab_bytes: int = 32768
    """Bytes of the panel of the second operand of a product that stays in the first cache."""
    product_rows: int = 192
    """Rows of the first operand of a product that stay in a cache of its core."""
    alignment_bytes: int = 64
    """The alignment of buffers and of areas of scratch memory: a line of the cache."""


@dataclass(frozen=True)
class WorkSizes:
    """Sizes of units and ranges of work; a thread claims a range at once."""

    threads: int = 0
    """The most threads of a launch; 0: the setting of the process. No plan depends on it."""
    gil_instructions: int = 1 << 15
    """Element instructions up to which a launch keeps the GIL: microseconds at most."""
    gil_elements: int = 1 << 12
    """Elements up to which a kernel for any shape keeps the GIL."""
    serial_elements: int = 1 << 15
    """Elements up to which one thread runs a kernel."""
    grain_elements: int = 1 << 14
    """Elements of one range of a kernel for any shape."""
    serial_cycles: int = 24_000
    """Cycles of one core up to which one thread runs a long body: two threads need a tenth of them
    to share it."""
    divide_cycles: int = 16
    """Cycles of a core to divide 64 bytes; other instructions but roots take about one."""
    sqrt_cycles: int = 24
    """Cycles of a core for the roots of 64 bytes."""
    range_elements: int = 1 << 15
    """Elements of one range."""
    min_range_elements: int = 1 << 10
    """Elements of one range of a long body: a few thousand cycles."""
    max_range_elements: int = 1 << 17
    """Elements of one range of a map of many elements."""
    max_unit_elements: int = 4096
    """Elements of a row that are one unit of work at most: whole packets."""
    few_rows: int = 8
    """Rows from which each thread has rows of its own; of fewer a long one is split."""
    unfused_rows: int = 3
    """Rows up to which passes over long rows are kernels of their own, each split."""
    unfused_row_elements: int = 4096
    """Elements up to which such rows stay in one kernel."""
    split_row_elements: int = 1 << 16
    """Elements from which a single row is split among units of work."""
    searched_part_bytes: int = 1 << 17
    """The fewest bytes of the first operand in a part of a searched row."""
    blocked_scan_elements: int = 1 << 14
    """Elements from which blocks of a row are vectorised even with many rows."""
    parallel_scan_elements: int = 1 << 18
    """Elements from which a single row is scanned in parts by many threads."""
    scatter_elements: int = 1 << 15
    """Elements from which a scatter is done in parts, each by one thread."""
    scatter_column_parts: int = 16
    """Parts of the columns of a large scatter, each a unit of work."""
    scatter_column_ranges: int = 4
    """Ranges of such parts."""
    segment_elements: int = 1 << 13
    """Entries and rows, times columns, of a unit of work on segments."""
    max_body_ops: int = 300
    """Instructions of a kernel, at most: its compile time grows with them."""
    max_planned_nodes: int = 512
    """Nodes of a graph that is planned as a whole: planning a longer one is slow."""


@dataclass(frozen=True)
class Libraries:
    """From where on a library routine is as fast as a kernel, or another way to call it."""

    blas_multiply_adds: int | None = 512**3
    """Multiply-adds from which a product by BLAS was as fast or faster (bench/products.py); None:
    it never was."""
    unrolled_multiply_adds: int = 512
    """SIMD multiply-adds up to which a small product is unrolled."""
    min_stack: int = 64
    """Products in a stack from which a program for its exact lengths pays."""
    min_dot_elements: int = 8
    """Elements of a row from which SIMD along it pays."""
    min_contiguous_elements: int = 8
    """Elements of an axis from which its order in memory decides the layout of a product."""
    gil_multiply_adds: int = 1 << 14
    """Multiply-adds up to which a product or a driver keeps the GIL."""
    serial_multiply_adds: int = 1 << 19
    """Multiply-adds up to which a product runs on one thread."""
    product_grain: int = 1 << 18
    """Multiply-adds of a range of units of a product."""
    stack_multiply_adds: int = 1 << 18
    """Multiply-adds of a stack from which a driver of LAPACK distributes it over threads."""
    driver_grain: int = 1 << 17
    """Multiply-adds of a range of units of a driver."""
    call_multiply_adds: int = 1 << 10
    """The overhead of calling a routine."""
    blas_threaded_multiply_adds: int = 1 << 24
    """Multiply-adds of a single matrix from which BLAS uses its own threads."""
    serial_order: int = 96
    """The order up to which BLAS starts no threads for a factorisation and a single column."""
    substitution_order: int = 128
    """The order up to which a driver of ours solves, without a call of LAPACK."""
    max_order: int = 1 << 14
    """The largest order of a matrix of a driver of LAPACK."""


@dataclass(frozen=True)
class Batches:
    """Limits of a batch, whose members are stacked."""

    stacked_bytes: int = 1 << 14
    """Bytes up to which an operand of a pushed member is put beside others."""
    stacked_elements: int = 1 << 16
    """Elements up to which an array of a graph is put beside others."""
    shared_elements: int = 1 << 10
    """Elements from which an operand that members share justifies batches of its own."""
    max_bytes: int = 256 << 20
    """Bytes of the results and stacked operands of a batch."""


@dataclass(frozen=True)
class Target:
    """A machine, as scheduling and code generation see it. The defaults are those of a processor
    with registers of 32 bytes and FMA.

    >>> Target().device, Target().processor
    ('cpu', 'x86-64-v3')
    """

    device: str = HOST
    processor: str = "x86-64-v3"
    """The processor's name in the option `cpu`, or LLVM's."""
    triple: str = ""
    """LLVM's triple of a machine that is not this one."""
    block: int = 0
    """The threads of a block, on a device that runs one for each element; 0: a processor."""
    ptx_processor: str = ""
    """The processor of a device whose kernels are PTX, such as sm_90."""
    simd: Simd = Simd()
    caches: Caches = Caches()
    work: WorkSizes = WorkSizes()
    libraries: Libraries = Libraries()
    batches: Batches = Batches()


DEFAULT = Target()
"""The facts that all targets share, for kernels of any shape and for the host's libraries."""
INSTRUCTION_SETS = {
    "x86-64": Target(simd=Simd(16, fma=False, masked_bytes=16), libraries=Libraries(32**3)),
    "x86-64-v2": Target(simd=Simd(16, fma=False, masked_bytes=16), libraries=Libraries(32**3)),
    "x86-64-v3": Target(),
    "x86-64-v4": Target(simd=Simd(64, masked_bytes=1), libraries=Libraries(None)),
    "aarch64": Target(
        triple="aarch64-unknown-linux-gnu",
        simd=Simd(16, masked_bytes=16),
        libraries=Libraries(32**3),
    ),
}
"""The facts of processors, by the name of what they can."""


@cache
def target_of(processor: str, *, threads: int = 0) -> Target:
    """Return the target of a processor by its name in the option `cpu`.

    >>> target_of("x86-64").simd.fma
    False
    """
    known = processor
    if processor == "native":
        level = _native.processor_level()
        known = next(name for name, each in CPU_LEVELS.items() if each == level)
    facts = INSTRUCTION_SETS[known]
    work = replace(facts.work, threads=threads)
    return replace(facts, processor=processor, work=work)
