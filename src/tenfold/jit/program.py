"""Program: the machine code of a kernel, and the in-memory cache of programs.

Takes a kernel and the processor to compile for, hands on the addresses of its functions. Equal ones
are compiled once, in the background: Ctrl-C gives the prompt back at once, and the program is
cached. LLVM is loaded when the first one is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tenfold import _native
from tenfold._native import EntryPoint
from tenfold.caches import LruCache, register
from tenfold.codegen.lapack.driver_call import LapackCall
from tenfold.codegen.llvm.module_emitter import render
from tenfold.codegen.llvm.verify_alignment import verify_alignment
from tenfold.core.loop_ir import Kernel
from tenfold.errors import CompileError
from tenfold.jit import fork_safe_lock
from tenfold.jit.compile_thread import CompileThread
from tenfold.jit.compiler import compiled
from tenfold.jit.kernel_cache import CachedKernels, kept_at
from tenfold.jit.object_image import ObjectImage
from tenfold.runtime.blas.product_dispatch import ProductKernel
from tenfold.runtime.timeline import debug
from tenfold.schedule.generic_elementwise import GenericElementwise
from tenfold.schedule.generic_reduction import GenericReduction
from tenfold.schedule.verify_kernel import verifies, verify_kernel
from tenfold.settings import CPU_LEVELS, get


@dataclass(frozen=True)
class Program:
    """A kernel's functions; their code stays as long as one of them."""

    kernel: EntryPoint
    finish: EntryPoint | None
    seconds: float
    """That rendering and compiling it took."""
    parts: tuple[EntryPoint, ...] = ()
    """What does the same as `kernel`, one after the other, for many threads."""


Source = Kernel | GenericElementwise | GenericReduction | ProductKernel | LapackCall

WORTH_OPTIMISING = 1 << 14
"""Elements of one launch from which a kernel is compiled with optimisation at once."""
MASKS = {1: 16, 2: 16, 3: 4, 4: 1}
"""For each level the bytes of the smallest elements loaded and stored by a mask; 16: none are."""
QUICK, OPTIMISED = 0, 2
"""LLVM's levels of optimisation, of the two tiers."""
USES_WORTH_OPTIMISING = 8
"""Launches of a small one after which it is compiled again, with optimisation, while others go on
with what there is."""
REPLAYS, LATER, LATEST = 64, 8, 2
"""Launches by a plan until Python plans anew, with what is optimised by then; how many times as
many there are where it is not, and how often more than before."""


MOST_PROGRAMS = 4096
"""Programs of each kind that are kept."""


@dataclass
class QuickProgram:
    """What was compiled quickly, and how often it was launched."""

    program: Program
    uses: int = 1
    asked: int = 0
    """How often an optimised one was looked for that was being compiled."""


class Programs:
    """The programs of kernels: quickly compiled for small data, with optimisation for more.

    Both have the same bits: LLVM is never told that it may round otherwise.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock.lock()  # protects the counts of uses
        # It compiles one kernel at a time; those of other Programs wait at LLVM's own lock.
        self._background: CompileThread[Program] = CompileThread()
        self.quick: LruCache[tuple[Source, str], QuickProgram] = LruCache(MOST_PROGRAMS)
        self.optimised: LruCache[tuple[Source, str], Program] = LruCache(MOST_PROGRAMS)

    def of(self, kernel: Source, elements: int, tier: str, cpu: str) -> Program:
        """Return the program of a kernel for a launch of so many elements, on one processor."""
        key = kernel, cpu
        found = self.optimised.get(key)
        if found is not None and tier != "0":
            return found
        quick = self.quick.get(key)
        if tier == "auto" and elements >= WORTH_OPTIMISING:
            tier = "1"
        if tier == "1":
            return found or self.compiled(kernel, cpu, optimised=True)
        if quick is None:
            return self.compiled(kernel, cpu, optimised=False, or_better=tier == "auto")
        if tier == "auto" and quick.uses >= USES_WORTH_OPTIMISING:
            found = self._better(kernel, cpu, quick)
            if found is not None:
                return found
        self._count(quick)
        return quick.program

    def state(self, kernel: Source, elements: int, tier: str, cpu: str) -> tuple[int, str]:
        """Return the tier at which such a launch would run, and in words how far its program is."""
        key, kept = (kernel, cpu), kept_at(told(kernel), cpu)
        quick = self.quick.get(key)
        worth = quick is not None and quick.uses >= USES_WORTH_OPTIMISING
        much = elements >= WORTH_OPTIMISING or (worth and kept.has(OPTIMISED))
        optimised = tier == "1" or (tier == "auto" and (much or key in self.optimised))
        if key in (self.optimised if optimised else self.quick):
            return int(optimised), "compiled"
        for level in (OPTIMISED,) if optimised else _levels(QUICK, or_better=tier == "auto"):
            if kept.has(level):
                return int(level == OPTIMISED), "on disk, compiled"
        return int(optimised), "to be compiled"

    def uses_left(self, kernel: Source, tier: str, cpu: str) -> int:
        """How often a launch may be replayed before its program is asked for; -1: for ever."""
        if tier == "0" or (kernel, cpu) in self.optimised:
            return -1
        quick = self.quick.get((kernel, cpu))
        vain = max(quick.asked - 1, 0) if quick else 0
        return REPLAYS * int(LATER ** min(vain, LATEST))

    def note_use(self, kernel: Source, cpu: str) -> None:
        """Note that a quickly compiled program has been launched without being asked for; have it
        optimised if that is worth it by now.
        """
        quick = self.quick.get((kernel, cpu))
        if quick is None:  # it was forgotten
            return
        self._count(quick)
        worth = quick.uses >= USES_WORTH_OPTIMISING and not quick.asked
        if worth and (kernel, cpu) not in self.optimised and not self._background.busy():
            self._better(kernel, cpu, quick)

    def wait_idle(self) -> None:
        """Wait until no kernel is being compiled in the background."""
        self._background.wait_idle()

    def _count(self, quick: QuickProgram) -> None:
        with self._lock:
            quick.uses += 1

    def compiled(
        self, kernel: Source, cpu: str, *, optimised: bool, or_better: bool = False
    ) -> Program:
        """Compile a kernel and keep its program, unless an earlier process has left it on disk.

        `or_better`: an optimised one from there will do too. Raises CompileError when LLVM refuses
        the kernel.
        """
        kept, level = kept_at(told(kernel), cpu), OPTIMISED if optimised else QUICK
        if left := self._left(kernel, cpu, kept, _levels(level, or_better=or_better)):
            return left
        compiling = self._compiling(kernel, cpu, kept, level)
        own: list[Source] = []

        def made() -> Program:
            own.append(kernel)
            return compiling()

        try:
            program = self._background.run((kernel, cpu, optimised), made)
        finally:  # counted here: Ctrl-C leaves the work to run on into what others count
            _native.count("compiles", len(own))  # 0 where it waited for what another has begun
        debug(1, f"compiled {named(kernel)} in {program.seconds * 1e3:.1f} ms")
        return program

    def _better(self, kernel: Source, cpu: str, quick: QuickProgram) -> Program | None:
        """Return the optimised program of a kernel from disk; else have it compiled while others
        use what there is.
        """
        kept = kept_at(told(kernel), cpu)
        if left := self._left(kernel, cpu, kept, (OPTIMISED,)):
            return left
        name = kernel, cpu, True
        begun = not self._background.runs(name)
        if begun:
            compiling = self._compiling(kernel, cpu, kept, OPTIMISED)
            if not self._background.begin(name, compiling):
                return None
            _native.count("background_compiles")  # by what asks, not when it ends
        with self._lock:
            quick.asked += 1
        return None

    def _compiling(
        self, kernel: Source, cpu: str, kept: CachedKernels, level: int
    ) -> Callable[[], Program]:
        """Return what renders and compiles a kernel and keeps its program, here and on disk."""
        begun, functions, text = time.perf_counter(), functions_of(kernel), source_of(kernel, cpu)
        debug(4, text)
        if verifies():
            if isinstance(kernel, (Kernel, GenericElementwise, GenericReduction)):
                verify_kernel(kernel if isinstance(kernel, Kernel) else kernel.kernel)
            verify_alignment(text)

        def made() -> Program:
            image = compiled(text, cpu, level)
            program = _program(_loaded(image, functions), functions, begun)
            program = self._keep(kernel, cpu, level, program)
            kept.keep(level, image, functions, program.seconds, described(kernel))
            return program

        return made

    def there(self, loop: GenericElementwise, cpu: str) -> Program | None:
        """Return the program of a loop, an optimised one rather than another, if one is in memory
        or on disk.
        """
        if found := self.optimised.get((loop, cpu)):
            return found
        quick = self.quick.get((loop, cpu))
        levels = _levels(QUICK, or_better=True)
        return quick.program if quick else self._left(loop, cpu, kept_at(loop.text, cpu), levels)

    def _left(
        self, kernel: Source, cpu: str, kept: CachedKernels, levels: tuple[int, ...]
    ) -> Program | None:
        """Load what an earlier process has left of a kernel, at the first of these levels."""
        begun, functions = time.perf_counter(), functions_of(kernel)
        for level in levels:
            entries = kept.loaded(level, len(functions))
            if entries is not None:
                program = self._keep(kernel, cpu, level, _program(entries, functions, begun))
                debug(1, f"loaded {named(kernel)} in {program.seconds * 1e3:.1f} ms")
                return program
        return None

    def _keep(self, kernel: Source, cpu: str, level: int, program: Program) -> Program:
        """Keep the first program: of two threads that load one, both get that."""
        if level == OPTIMISED:
            return self.optimised.setdefault((kernel, cpu), program)
        return self.quick.setdefault((kernel, cpu), QuickProgram(program)).program


def _levels(level: int, *, or_better: bool) -> tuple[int, ...]:
    """Return the levels that will do, the best one first."""
    return (OPTIMISED, QUICK) if or_better else (level,)


def _loaded(image: ObjectImage, functions: tuple[str, ...]) -> list[EntryPoint]:
    """Copy code to executable memory; return its functions, none where memory runs out."""
    return _native.load_code(image.code, [image.places[name] for name in functions])


def _program(entries: list[EntryPoint], functions: tuple[str, ...], begun: float) -> Program:
    """Say of code that has been loaded what its functions are for."""
    if not entries:
        raise CompileError(
            "compile",
            "the system refuses memory that can be executed",
            remedy="let this process have executable memory",
        )
    seconds = time.perf_counter() - begun
    if len(entries) == 1:
        return Program(entries[0], None, seconds)
    at = dict(zip(functions, entries, strict=True))
    parts = tuple(at[name] for name in functions if name not in ("kernel", "finish"))
    return Program(at["kernel"], at.get("finish"), seconds, parts)


def functions_of(kernel: Source) -> tuple[str, ...]:
    """Return the names of a kernel's functions."""
    return kernel.functions if isinstance(kernel, Kernel) else ("kernel",)


def named(kernel: Source) -> str:
    """Return what a kernel is called in a line of text."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        return f"a loop of {kernel.op.name}"
    if isinstance(kernel, Kernel):
        return f"a {kernel.traversal} kernel"
    return str(kernel).partition("\n")[0]


def described(kernel: Source) -> str:
    """Return what a kernel computes, in words for a list."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        kernel = kernel.kernel
    if not isinstance(kernel, Kernel):
        return named(kernel)
    silent = ("load", "constant", "parameter", "index")
    operations = dict.fromkeys(
        # of a fold or a scan its kind says more
        str(made.data[0])
        if made.name in ("fold", "scan") and isinstance(made.data, tuple)
        else made.name
        for made in kernel.body
        if made.name not in silent
    )
    written = dict.fromkeys(str(each.dtype) for each in kernel.operands if each.written)
    return f"{kernel.traversal} {' '.join(written)}: {' '.join(operations)}"


def level_of(cpu: str) -> int:
    """Return the level of a processor by its name in the settings."""
    return CPU_LEVELS.get(cpu, _native.processor_level())


def is_baseline(cpu: str) -> bool:
    """Whether a processor may lack FMA, SSE4.1 and F16C: elementary functions are calls there."""
    return level_of(cpu) < CPU_LEVELS["x86-64-v3"]


PROGRAMS = Programs()
register("programs compiled quickly", PROGRAMS.quick)
register("programs compiled with optimisation", PROGRAMS.optimised)


def program_of(kernel: Source, elements: int) -> Program:
    """Return the program of a kernel for a launch of so many elements: compiled, or known."""
    return PROGRAMS.of(kernel, elements, str(get("tier")), str(get("cpu")))


def uses_left(kernel: Source) -> int:
    """Return how often a launch may be replayed before its program is asked for; -1: for ever."""
    return PROGRAMS.uses_left(kernel, str(get("tier")), str(get("cpu")))


def note_use(kernel: Source, cpu: str) -> None:
    """Note that a quickly compiled program has been launched without being asked for."""
    PROGRAMS.note_use(kernel, cpu)


def state_of(kernel: Source, elements: int) -> tuple[int, str]:
    """Return the tier (0 or 1) of a launch now, and in words how far its program is: nothing is
    compiled or loaded.
    """
    return PROGRAMS.state(kernel, elements, str(get("tier")), str(get("cpu")))


def told(kernel: Source) -> str:
    """Return the key of a kernel, valid while the code generator is unchanged.

    To generate the kernel's text takes a hundred times as long.
    """
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        return str(kernel)
    return repr(kernel) if isinstance(kernel, Kernel) else kernel.text()


def source_of(kernel: Source, cpu: str | None = None) -> str:
    """Return a kernel's source text, as it is compiled for a processor or that of the options."""
    if isinstance(kernel, (GenericElementwise, GenericReduction)):
        kernel = kernel.kernel
    if not isinstance(kernel, Kernel):
        return kernel.text()
    cpu = cpu or str(get("cpu"))
    return render(kernel, baseline=is_baseline(cpu), masks=MASKS[level_of(cpu)])
