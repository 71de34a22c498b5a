"""Target key: a hash of every input of machine code other than the IR.

Takes the target processor by its name in the settings. Hands on a hash of Tenfold's version and
files, LLVM's version and options, and the features of this processor. llvmlite is not imported: its
version is read from its files.

>>> environment("native") == environment("native")
True
"""

from __future__ import annotations

import os
import struct
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tenfold import _native
from tenfold.jit.compiler import DISABLED_FEATURES
from tenfold.jit.digest import digest
from tenfold.jit.llvm_bindings import LIBRARY, RELOCATION
from tenfold.version import __version__


@cache
def environment(cpu: str) -> bytes:
    """Return the hash. Raises OSError if llvmlite's files are not found."""
    processor = _native.processor_identity()
    items = (
        __version__.encode(),
        _source_state(),
        _llvm_build(),
        " ".join((cpu, RELOCATION, *DISABLED_FEATURES)).encode(),
        struct.pack(f"<{len(processor)}I", *processor),
    )
    return digest(b"".join(struct.pack("<Q", len(item)) + item for item in items))


SOURCE_FOLDERS = ("core", "ops", "schedule", "codegen", "jit", "runtime")
"""The folders whose files, at any depth, determine the generated code."""


def _source_state() -> bytes:
    """The state of these files, which change within one version during development.

    Other files may generate other code for the same kernel.
    """
    package = str(Path(__file__).parent.parent)
    states: list[tuple[str, int, int]] = []
    folders = [f"{package}/{name}" for name in SOURCE_FOLDERS]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    state = entry.stat()
                    states.append((entry.path[len(package) :], state.st_size, state.st_mtime_ns))
    return repr(sorted(states)).encode()


def _llvm_build() -> bytes:
    """The identity of a build of llvmlite, which contains LLVM."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("llvmlite")
    directory = Path(spec.submodule_search_locations[0])
    library = (directory / "binding" / LIBRARY).stat()
    version = (directory / "_version.py").read_bytes()
    return version + struct.pack("<QQ", library.st_size, library.st_mtime_ns)


def kernel_key(text: str, level: int, environment: bytes) -> bytes:
    """Return the key of a kernel, 32 bytes: the name of its entry."""
    return digest(environment + struct.pack("<I", level) + text.encode())
