"""Program: machine code of a kernel, and the cache of them.

Takes a kernel and the processor to compile for, hands on the addresses of its functions. Equal ones
are compiled once, in the background: Ctrl-C gives the prompt back at once, and the program is kept.
llvmlite is imported when the first one is.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

from tenfold import _native
from tenfold.devices import forks
from tenfold.devices.background import Background
from tenfold.devices.products import ProductKernel
from tenfold.devices.timeline import debug
from tenfold.errors import CompileError
from tenfold.ir.kernel import Kernel
from tenfold.render.library_call import LibraryCall
from tenfold.render.llvm import render
from tenfold.settings import CPU_LEVELS, get


@dataclass(frozen=True)
class Program:
    """Where a kernel's functions are; `finish` is 0 where there is none."""

    kernel: int
    finish: int
    seconds: float
    """That rendering and compiling it took."""
    parts: tuple[int, ...] = ()
    """What does the same as `kernel`, one after the other, for many threads."""


Source = Kernel | ProductKernel | LibraryCall

WORTH_OPTIMISING = 1 << 14
"""Elements of one launch from which a kernel is compiled with optimisation at once."""
MASKS = {1: 16, 2: 16, 3: 4, 4: 1}
"""For each level the bytes of the smallest elements loaded and stored by a mask; 16: none are."""
USES_WORTH_OPTIMISING = 8
"""Launches of a small one after which it is compiled again, with optimisation."""


class Programs:
    """The programs of kernels: quickly compiled for small data, with optimisation for more.

    Both have the same bits: LLVM is never told that it may round otherwise.
    """

    def __init__(self) -> None:
        self._lock = forks.lock()  # protects the counts of uses
        # What it runs alone touches LLVM and the engines: one kernel is compiled at a time.
        self._background: Background[Program] = Background()
        self._quick: dict[tuple[Source, str], tuple[Program, int]] = {}
        self._optimised: dict[tuple[Source, str], Program] = {}
        self._engines: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._numbers = itertools.count(1)

    def of(self, kernel: Source, elements: int, tier: str, cpu: str) -> Program:
        """Return the program of a kernel for a launch of so many elements, on one processor."""
        key = kernel, cpu
        found = self._optimised.get(key)
        if found is not None and tier != "0":
            return found
        with self._lock:
            quick, uses = self._quick.get(key, (None, 0))
        if tier == "auto" and (uses >= USES_WORTH_OPTIMISING or elements >= WORTH_OPTIMISING):
            tier = "1"
        if tier == "1":
            return self._optimised.get(key) or self.compiled(kernel, cpu, optimised=True)
        quick = quick or self.compiled(kernel, cpu, optimised=False)
        self.note_use(kernel, cpu)
        return quick

    def state(self, kernel: Source, elements: int, tier: str, cpu: str) -> tuple[int, bool]:
        """Return the tier at which such a launch would run, and whether its program is there."""
        key = kernel, cpu
        _, uses = self._quick.get(key, (None, 0))
        much = elements >= WORTH_OPTIMISING or uses >= USES_WORTH_OPTIMISING
        if tier == "1" or (tier == "auto" and (much or key in self._optimised)):
            return 1, key in self._optimised
        return 0, key in self._quick

    def uses_left(self, kernel: Source, tier: str, cpu: str) -> int:
        """How often a launch may be replayed before its program is asked for; -1: for ever."""
        if tier == "0" or (kernel, cpu) in self._optimised:
            return -1
        _, uses = self._quick.get((kernel, cpu), (None, 0))
        return max(USES_WORTH_OPTIMISING - uses, 1)

    def note_use(self, kernel: Source, cpu: str) -> None:
        """Note that a quickly compiled program has been launched without being asked for."""
        with self._lock:
            quick, uses = self._quick[kernel, cpu]
            self._quick[kernel, cpu] = quick, uses + 1

    def compiled(self, kernel: Source, cpu: str, *, optimised: bool) -> Program:
        """Compile a kernel and keep its program. Raises CompileError when LLVM refuses it."""
        begun = time.perf_counter()
        named = str(kernel).partition("\n")[0]
        if isinstance(kernel, Kernel):
            named = f"a {kernel.traversal} kernel"
        text = source_of(kernel, cpu)
        debug(4, text)
        functions = kernel.functions if isinstance(kernel, Kernel) else ("kernel",)

        def made() -> Program:
            at = self._addresses(text, cpu, functions, optimised=optimised)
            parts = tuple(at[name] for name in functions if name not in ("kernel", "finish"))
            seconds = time.perf_counter() - begun
            program = Program(at["kernel"], at.get("finish", 0), seconds, parts)
            if optimised:
                self._optimised[kernel, cpu] = program
            else:
                self._quick[kernel, cpu] = program, 0
            _native.count("compiles")
            return program

        program = self._background.run((kernel, cpu, optimised), made)
        debug(1, f"compiled {named} in {program.seconds * 1e3:.1f} ms")
        return program

    def _addresses(
        self, text: str, cpu: str, functions: tuple[str, ...], *, optimised: bool
    ) -> dict[str, int]:
        """Compile a text; return where its functions are."""
        number = next(self._numbers)
        names = {name: f"{name}.{number}" for name in functions}
        for name, own in names.items():
            text = text.replace(f"@{name}(", f"@{own}(")
        try:
            binding, engine = self._engine(cpu, 2 if optimised else 0)
            module = binding.parse_assembly(text)
            module.verify()
            engine.add_module(module)
            engine.finalize_object()
        except RuntimeError as error:
            rule = f"LLVM refuses a kernel: {error}"
            remedy = "report it, with what TENFOLD_DEBUG=4 prints"
            raise CompileError("compile", rule, remedy=remedy) from error
        return {name: engine.get_function_address(own) for name, own in names.items()}

    def _engine(self, cpu: str, level: int) -> tuple[Any, Any]:
        if (cpu, level) not in self._engines:
            import llvmlite.binding as binding

            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            machine = target_machine(binding, cpu, level)
            engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
            # a signal handler may have made another meanwhile, and code lies in it
            self._engines.setdefault((cpu, level), (binding, engine))
        return self._engines[cpu, level]


def level_of(cpu: str) -> int:
    """Return the level of a processor by its name in the settings."""
    return CPU_LEVELS.get(cpu, _native.processor_level())


def is_baseline(cpu: str) -> bool:
    """Whether a processor may lack FMA, SSE4.1 and F16C: elementary functions are calls there."""
    return level_of(cpu) < CPU_LEVELS["x86-64-v3"]


def target_machine(binding: Any, cpu: str, level: int) -> Any:
    """Return llvmlite's machine for a processor by its name in the settings."""
    name, features = cpu, ""
    if cpu == "native":
        name, features = binding.get_host_cpu_name(), _features(binding)
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=level, jit=True)


def _features(binding: Any) -> str:
    """The features of this processor, without those that kernels must not use."""
    features = binding.get_host_cpu_features()
    # its conversion flushes subnormals; half arithmetic would round differently
    for refused in ("avx512bf16", "avx512fp16"):
        features[refused] = False
    return str(features.flatten())


PROGRAMS = Programs()


def program_of(kernel: Source, elements: int) -> Program:
    """Return the program of a kernel for a launch of so many elements: compiled, or known."""
    return PROGRAMS.of(kernel, elements, str(get("tier")), str(get("cpu")))


def uses_left(kernel: Source) -> int:
    """Return how often a launch may be replayed before its program is asked for; -1: for ever."""
    return PROGRAMS.uses_left(kernel, str(get("tier")), str(get("cpu")))


def note_use(kernel: Source, cpu: str) -> None:
    """Note that a quickly compiled program has been launched without being asked for."""
    PROGRAMS.note_use(kernel, cpu)


def state_of(kernel: Source, elements: int) -> tuple[int, bool]:
    """Return the tier (0 or 1) of a launch now, and whether it is compiled; compiles nothing."""
    return PROGRAMS.state(kernel, elements, str(get("tier")), str(get("cpu")))


def source_of(kernel: Source, cpu: str | None = None) -> str:
    """Return a kernel's source text, as it is compiled for a processor or that of the options."""
    if not isinstance(kernel, Kernel):
        return kernel.text()
    cpu = cpu or str(get("cpu"))
    return render(kernel, baseline=is_baseline(cpu), masks=MASKS[level_of(cpu)])
