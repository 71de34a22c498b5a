"""Target key: a hash of everything besides the IR text that machine code depends on.

Takes the target processor by its name in the settings. Hands on a hash of our version and files,
LLVM's version and options, and the features of this processor. llvmlite is not imported: its
version is read from its files.

>>> environment("native") == environment("native")
True
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tenfold import _native
from tenfold.jit.compiler import REFUSED
from tenfold.jit.llvm_bindings import LIBRARY, RELOCATION
from tenfold.version import __version__


@cache
def environment(cpu: str) -> bytes:
    """Return the hash. Raises OSError where llvmlite's files are not where they should be."""
    processor = _native.processor_identity()
    parts = (
        __version__.encode(),
        _sources(),
        _compiler(),
        " ".join((cpu, RELOCATION, *REFUSED)).encode(),
        struct.pack(f"<{len(processor)}I", *processor),
    )
    return _native.sha256(b"".join(struct.pack("<Q", len(part)) + part for part in parts))


MAKERS = ("core", "ops", "schedule", "codegen", "jit", "runtime")
"""The folders whose files, at any depth, say how a kernel becomes a text, and a text machine
code.
"""


def _sources() -> bytes:
    """The key of these files, which differ within one version while a developer edits them.

    A kernel keyed by its operations may be generated in another way by other files.
    """
    package, found = Path(__file__).parent.parent, []
    for folder in MAKERS:
        if not (package / folder).is_dir():
            raise FileNotFoundError(package / folder)
        for file in (package / folder).rglob("*.py"):
            state = file.stat()
            found.append((str(file.relative_to(package)), state.st_size, state.st_mtime_ns))
    return repr(sorted(found)).encode()


def _compiler() -> bytes:
    """What tells a build of llvmlite, which has LLVM inside, from others."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("llvmlite")
    place = Path(spec.submodule_search_locations[0])
    library = (place / "binding" / LIBRARY).stat()
    version = (place / "_version.py").read_bytes()
    return version + struct.pack("<QQ", library.st_size, library.st_mtime_ns)


def key_of(text: str, level: int, environment: bytes) -> bytes:
    """Return the key of a kernel by what tells it from others: 32 bytes, which name its entry."""
    return _native.sha256(environment + struct.pack("<I", level) + text.encode())
