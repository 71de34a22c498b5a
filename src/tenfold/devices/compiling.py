r"""Compiling: the text of a kernel as machine code.

Takes LLVM IR, the processor by its name in the settings and how much LLVM is to optimise, hands on
an Image. llvmlite is imported when the first text is compiled, and by nobody else.

>>> text = "define i64 @kernel() {\n  ret i64 3\n}"
>>> sorted(compiled(text, "native", 0).places)
['kernel']
"""

from __future__ import annotations

from typing import Any

from tenfold.devices.linking import Image, Unlinkable, link
from tenfold.errors import CompileError

REFUSED = ("avx512bf16", "avx512fp16")
"""Features of a processor that kernels must not use: the conversion of the one flushes subnormals,
the arithmetic of the other rounds differently."""
RELOCATION = "pic"
"""Code holds distances, no addresses: it runs wherever it lies."""

# What LLVM compiles for, by the processor's name and the level of optimisation. It is changed
# and used by one thread at a time, that of the programs' background.
_machines: dict[tuple[str, int], Any] = {}


def compiled(text: str, cpu: str, level: int) -> Image:
    """Compile a text. Raises CompileError when LLVM refuses it.

    Two threads must not be in here at once.
    """
    import llvmlite.binding as binding

    try:
        if (cpu, level) not in _machines:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            _machines[cpu, level] = target_machine(binding, cpu, level)
        machine = _machines[cpu, level]
        module = binding.parse_assembly(text)
        module.verify()
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        return link(machine.emit_object(module))
    except (RuntimeError, Unlinkable) as error:
        rule = f"LLVM refuses a kernel: {error}"
        if isinstance(error, Unlinkable):
            rule = f"a kernel cannot be loaded: {error}"
        remedy = "report it, with what TENFOLD_DEBUG=4 prints"
        raise CompileError("compile", rule, remedy=remedy) from error


def target_machine(binding: Any, cpu: str, level: int) -> Any:
    """Return llvmlite's machine for a processor by its name in the settings."""
    name, features = cpu, ""
    if cpu == "native":
        name, features = binding.get_host_cpu_name(), _features(binding)
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=level, reloc=RELOCATION, codemodel="small"
    )


def _features(binding: Any) -> str:
    """The features of this processor, without those that kernels must not use."""
    features = binding.get_host_cpu_features()
    for refused in REFUSED:
        features[refused] = False
    return str(features.flatten())
