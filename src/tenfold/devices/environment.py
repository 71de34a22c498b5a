"""Environment: what machine code depends on beside its text.

Takes the processor that kernels are compiled for by its name in the settings, hands on a hash of
our version, LLVM's, how it is called, and of what this processor says of itself. llvmlite is not
imported: what its version is, its files say.

>>> environment("native") == environment("native")
True
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tenfold import _native
from tenfold.devices.compiling import REFUSED, RELOCATION
from tenfold.version import __version__

LIBRARY = "libllvmlite.so"


@cache
def environment(cpu: str) -> bytes:
    """Return the hash. Raises OSError where llvmlite's files are not where they should be."""
    processor = _native.processor_identity()
    parts = (
        __version__.encode(),
        _compiler(),
        " ".join((cpu, RELOCATION, *REFUSED)).encode(),
        struct.pack(f"<{len(processor)}I", *processor),
    )
    return _native.sha256(b"".join(struct.pack("<Q", len(part)) + part for part in parts))


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
    """Return the key of a kernel by its text: 32 bytes, which name its entry."""
    return _native.sha256(environment + struct.pack("<I", level) + text.encode())
