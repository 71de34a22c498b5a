"""Program: the machine code of a kernel, and the in-memory cache of programs.

Takes a kernel and the target processor, hands on the addresses of its functions. Equal kernels are
compiled once, on the compile thread: Ctrl-C ends the wait at once, and the program is still cached.
LLVM is loaded at the first compilation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tenfold import _native
from tenfold._native import TIERS, EntryPoint, UseCounter
from tenfold.caches import LruCache
from tenfold.codegen.llvm.module_emitter import render
from tenfold.codegen.llvm.verify_alignment import verify_alignment
from tenfold.codegen.simt.module import render_threads
from tenfold.codegen.simt.verify_convergence import verify_convergence
from tenfold.codegen.simt.words import HOST_WORDS
from tenfold.core.loop_ir import Kernel
from tenfold.dtypes import DTYPE_NAMES
from tenfold.errors import CompileError
from tenfold.jit import fork_safe_lock
from tenfold.jit.compile_thread import CompileThread
from tenfold.jit.compiler import compile_ir
from tenfold.jit.kernel_cache import CachedKernels, cached_kernels
from tenfold.jit.object_image import ObjectImage
from tenfold.schedule.generic_elementwise import GenericElementwise
from tenfold.schedule.generic_reduction import GenericReduction
from tenfold.schedule.target import Target, target_of
from tenfold.schedule.verify_kernel import verifies, verify_kernel
from tenfold.settings import debug, get


@dataclass(frozen=True)
class Program:
    """A kernel's functions; any of them keeps the code alive."""

    kernel: EntryPoint
    finish: EntryPoint | None
    seconds: float
    """The time to generate and compile it."""
    scan_phases: tuple[EntryPoint, ...] = ()
    """The phases of a parallel scan, which together do the work of `kernel`."""


class ModuleSource(Protocol):
    """A kernel that writes its own LLVM module, as those of matrix products do. Equal ones have
    equal reprs.
    """

    def text(self) -> str:
        """Return the module, whose function is called `kernel`."""


Source = Kernel | GenericElementwise | GenericReduction | ModuleSource

UNOPTIMISED, OPTIMISED = 0, 2
"""LLVM's optimisation levels of the two tiers."""
NO_USES = UseCounter(bool)
"""The counter of a kernel without programs."""


@dataclass
class KernelPrograms:
    """The programs of a kernel: compiled without and with optimisation."""

    uses: UseCounter = NO_USES
    """The launches of the quick program; native code counts those of replays."""
    quick: Program | None = None
    optimised: Program | None = None
    pending_requests: int = 0
    """The number of requests for the optimised program while it was not ready."""

    @property
    def is_hot(self) -> bool:
        """Whether the quick program was launched often enough to be worth optimising."""
        return self.quick is not None and self.uses.uses >= TIERS.optimised_launches


class Programs:
    """The programs of kernels: unoptimised for small data, optimised for large data.

    Both give the same bits: LLVM gets no fast-math flags.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock.lock()  # protects the fields of KernelPrograms
        # one kernel at a time; the kernels of other Programs wait for LLVM's lock
        self._background: CompileThread[Program] = CompileThread()
        self.by_kernel: LruCache[tuple[Source, str], KernelPrograms] = LruCache(
            4096, "programs", "compiling a kernel takes 2 to 50 ms"
        )

    def of(self, kernel: Source, elements: int, tier: str, cpu: str) -> Program:
        """Return the program of a kernel for a launch of `elements`, on one processor."""
        programs = self._known(kernel, cpu)
        if programs.optimised is not None and tier != "0":
            return programs.optimised
        if tier == "auto" and elements >= TIERS.optimised_elements:
            tier = "1"
        if tier == "1":
            return self.compile(kernel, cpu, optimised=True)
        quick = programs.quick
        if quick is None:
            return self.compile(kernel, cpu, optimised=False, or_better=tier == "auto")
        if tier == "auto" and programs.is_hot:
            optimised = self._request_optimised(kernel, cpu, programs)
            if optimised is not None:
                return optimised
        programs.uses.add()
        return quick

    def _known(self, kernel: Source, cpu: str) -> KernelPrograms:
        """Return the programs of a kernel that are in memory."""
        return self.by_kernel.get((kernel, cpu)) or KernelPrograms()

    def state(self, kernel: Source, elements: int, tier: str, cpu: str) -> tuple[int, str]:
        """Return the tier of such a launch, and the state of its program in words."""
        programs, disk = self._known(kernel, cpu), cached_kernels(cache_key(kernel), cpu)
        is_worth = elements >= TIERS.optimised_elements or (programs.is_hot and disk.has(OPTIMISED))
        optimised = tier == "1" or (tier == "auto" and bool(is_worth or programs.optimised))
        if (programs.optimised if optimised else programs.quick) is not None:
            return int(optimised), "compiled"
        for level in (
            (OPTIMISED,) if optimised else _accepted_levels(UNOPTIMISED, or_better=tier == "auto")
        ):
            if disk.has(level):
                return int(level == OPTIMISED), "on disk, compiled"
        return int(optimised), "to be compiled"

    def uses_left(self, kernel: Source, tier: str, cpu: str) -> int:
        """Return the replays of a launch until its program is looked up again; -1: unlimited."""
        programs = self._known(kernel, cpu)
        if tier == "0" or programs.optimised is not None:
            return -1
        return _native.replays_until_lookup(max(programs.pending_requests - 1, 0))

    def use_counter(self, kernel: Source, cpu: str) -> UseCounter:
        """Return the counter of the launches of a kernel's unoptimised program."""
        return self._known(kernel, cpu).uses

    def request_hot(self, kernel: Source, cpu: str) -> bool:
        """Have a hot kernel optimised in the background; False to be asked again later."""
        programs = self._known(kernel, cpu)
        is_evicted = programs.quick is None
        if is_evicted or programs.optimised is not None or programs.pending_requests:
            return True
        if self._background.busy():
            return False
        optimised = self._request_optimised(kernel, cpu, programs)
        return optimised is not None or programs.pending_requests > 0

    def wait_idle(self) -> None:
        """Wait until no kernel is being compiled in the background."""
        self._background.wait_idle()

    def compile(
        self, kernel: Source, cpu: str, *, optimised: bool, or_better: bool = False
    ) -> Program:
        """Load a kernel's program from disk, or compile it, and cache it.

        `or_better`: an optimised program from disk is accepted too. Raises CompileError when LLVM
        rejects the kernel.
        """
        disk, level = (
            cached_kernels(cache_key(kernel), cpu),
            OPTIMISED if optimised else UNOPTIMISED,
        )
        if stored := self._load_from_disk(
            kernel, cpu, disk, _accepted_levels(level, or_better=or_better)
        ):
            return stored
        task = self._compile_task(kernel, cpu, disk, level)
        compiled_here: list[Source] = []

        def compile_here() -> Program:
            compiled_here.append(kernel)
            return task()

        try:
            program = self._background.run((kernel, cpu, optimised), compile_here)
        finally:  # counted here, since the work runs on after Ctrl-C
            _native.count("compiles", len(compiled_here))  # 0 if another thread compiled it
        debug(1, f"compiled {short_name(kernel)} in {program.seconds * 1e3:.1f} ms")
        return program

    def _request_optimised(
        self, kernel: Source, cpu: str, programs: KernelPrograms
    ) -> Program | None:
        """Return the optimised program from disk; else start to compile it in the background."""
        disk = cached_kernels(cache_key(kernel), cpu)
        if stored := self._load_from_disk(kernel, cpu, disk, (OPTIMISED,)):
            return stored
        name = kernel, cpu, True
        is_new = not self._background.is_running(name)
        if is_new:
            task = self._compile_task(kernel, cpu, disk, OPTIMISED)
            if not self._background.try_start(name, task):
                return None
            _native.count("background_compiles")  # at the request, not at the end
        with self._lock:
            programs.pending_requests += 1
        return None

    def _compile_task(
        self, kernel: Source, cpu: str, disk: CachedKernels, level: int
    ) -> Callable[[], Program]:
        """Return a function that compiles a kernel and caches it in memory and on disk."""
        start, functions, text = (
            time.perf_counter(),
            functions_of(kernel),
            source_of(kernel, target_of(cpu)),
        )
        debug(4, text)
        if verifies():
            if isinstance(kernel, (Kernel, GenericElementwise, GenericReduction)):
                verify_kernel(kernel if isinstance(kernel, Kernel) else kernel.kernel)
            verify_alignment(text)
            verify_convergence(text)

        def compile_kernel() -> Program:
            image = compile_ir(text, cpu, level)
            program = _program_from(_load_image(image, functions), functions, start)
            program = self._publish(kernel, cpu, level, program)
            disk.save(level, image, functions, program.seconds, description_of(kernel))
            return program

        return compile_kernel

    def cached(self, loop: GenericElementwise, cpu: str) -> Program | None:
        """Return the program of a loop from memory or disk, preferably optimised; else None."""
        programs = self._known(loop, cpu)
        if program := programs.optimised or programs.quick:
            return program
        levels = _accepted_levels(UNOPTIMISED, or_better=True)
        return self._load_from_disk(loop, cpu, cached_kernels(loop.text, cpu), levels)

    def _load_from_disk(
        self, kernel: Source, cpu: str, disk: CachedKernels, levels: tuple[int, ...]
    ) -> Program | None:
        """Load a kernel's program from disk, at the first of these levels."""
        start, functions = time.perf_counter(), functions_of(kernel)
        found = disk.load(levels, len(functions))
        if found is None:
            return None
        level, entries = found
        program = self._publish(kernel, cpu, level, _program_from(entries, functions, start))
        debug(1, f"loaded {short_name(kernel)} in {program.seconds * 1e3:.1f} ms")
        return program

    def _publish(self, kernel: Source, cpu: str, level: int, program: Program) -> Program:
        """Cache a program; if another thread was first, return that thread's program."""
        counter = UseCounter(partial(request_optimised, kernel, cpu))
        programs = self.by_kernel.setdefault((kernel, cpu), KernelPrograms(counter))
        with self._lock:
            if level == OPTIMISED:
                programs.optimised = programs.optimised or program
                return programs.optimised
            programs.quick = programs.quick or program
            return programs.quick


def _accepted_levels(level: int, *, or_better: bool) -> tuple[int, ...]:
    """Return the accepted levels, the best one first."""
    return (OPTIMISED, UNOPTIMISED) if or_better else (level,)


def _load_image(image: ObjectImage, functions: tuple[str, ...]) -> list[EntryPoint]:
    """Copy code to executable memory; return its functions, none if memory runs out."""
    return _native.load_code(image.code, [image.function_offsets[name] for name in functions])


def _program_from(entries: list[EntryPoint], functions: tuple[str, ...], start: float) -> Program:
    """Return loaded functions as a Program, by their names."""
    if not entries:
        raise CompileError(
            "compile",
            "the system refuses memory that can be executed",
            remedy="let this process have executable memory",
        )
    seconds = time.perf_counter() - start
    if len(entries) == 1:
        return Program(entries[0], None, seconds)
    by_name = dict(zip(functions, entries, strict=True))
    scan_phases = tuple(by_name[name] for name in functions if name not in ("kernel", "finish"))
    return Program(by_name["kernel"], by_name.get("finish"), seconds, scan_phases)


def functions_of(kernel: Source) -> tuple[str, ...]:
    """Return the names of a kernel's functions."""
    return kernel.functions if isinstance(kernel, Kernel) else ("kernel",)


def short_name(kernel: Source) -> str:
    """Return a short name of a kernel for log lines."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        return f"a loop of {kernel.op.name}"
    if isinstance(kernel, Kernel):
        return f"a {kernel.traversal} kernel"
    return str(kernel).partition("\n")[0]


def description_of(kernel: Source) -> str:
    """Return a description of a kernel for lists of the cache."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        kernel = kernel.kernel
    if not isinstance(kernel, Kernel):
        return short_name(kernel)
    omitted = ("load", "constant", "parameter", "index")
    operations = dict.fromkeys(
        # folds, scans and scatters by their reducer
        str(instruction.data[0])
        if instruction.name in ("fold", "scan", "scatter") and isinstance(instruction.data, tuple)
        else instruction.name
        for instruction in kernel.body
        if instruction.name not in omitted
    )
    output_dtypes = dict.fromkeys(
        DTYPE_NAMES[operand.dtype] for operand in kernel.operands if operand.written
    )
    return f"{kernel.traversal} {' '.join(output_dtypes)}: {' '.join(operations)}"


PROGRAMS = Programs()


def program_of(kernel: Source, elements: int, target: Target) -> Program:
    """Return the program of a kernel for a launch of `elements`, compiled or cached."""
    return PROGRAMS.of(kernel, elements, str(get("tier")), target.processor)


def uses_left(kernel: Source, target: Target) -> int:
    """Return the replays of a launch until its program is looked up again; -1: unlimited."""
    return PROGRAMS.uses_left(kernel, str(get("tier")), target.processor)


def use_counter(kernel: Source, target: Target) -> UseCounter:
    """Return the counter of the launches of a kernel's unoptimised program."""
    return PROGRAMS.use_counter(kernel, target.processor)


def request_optimised(kernel: Source, cpu: str) -> bool:
    """Have a hot kernel optimised in the background; False to be asked again later."""
    return PROGRAMS.request_hot(kernel, cpu)


def state_of(kernel: Source, elements: int, target: Target) -> tuple[int, str]:
    """Return the tier (0 or 1) of a launch now, and the state of its program in words, without
    compiling or loading it.
    """
    return PROGRAMS.state(kernel, elements, str(get("tier")), target.processor)


def cache_key(kernel: Source) -> str:
    """Return the key of a kernel, valid while the code generator is unchanged.

    Generating the IR takes a hundred times as long.
    """
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        return str(kernel)
    return kernel.key if isinstance(kernel, Kernel) else repr(kernel)


def source_of(kernel: Source, target: Target) -> str:
    """Return a kernel's LLVM IR for a target."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        kernel = kernel.kernel
    if not isinstance(kernel, Kernel):
        return kernel.text()
    if kernel.block:
        return render_threads(kernel, HOST_WORDS, fma=target.simd.fma)
    return render(kernel, target.simd)
