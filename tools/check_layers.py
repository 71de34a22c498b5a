"""Checks the layers of the native core: includes go down, and launches go through a Device.

Takes the root of a checkout; hands on one line per offender, `place: rule`, and exit status 1 if
there is any. A file of `native/` includes files of its own layer and of those below it
(`LAYERS`). What belongs to the driver of a device stands in few files (`CONFINED`). The tests of
the core may do both.

Example: `python tools/check_layers.py`, or `python tools/check_layers.py path/of/another/checkout`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LAYERS = (
    # A lock and a thread's own object need no memory of the pool, which uses both.
    ("threads/fork_safe_lock", "threads/futex", "threads/thread_local"),
    # The pool counts its allocations, and a counter asks how references are counted.
    ("memory", "threads/counters"),
    ("threads",),
    ("jit", "lapack"),
    # A Node has its Inference, and an Inference the loops of its operation.
    ("ir", "dispatch/inference_cache", "exec/strided_kernels"),
    ("dispatch",),
    ("exec",),
    ("engine",),
    ("python",),
)
"""Rooms and files of `native/`, the lowest layer first; a file's own entry wins over its room's."""


@dataclass(frozen=True)
class Confined:
    """A pattern of C++ that only some files of `native/` may have, each for a reason."""

    what: str
    pattern: re.Pattern[str]
    files: tuple[str, ...]


CONFINED = (
    Confined(
        "the C type of a kernel",
        re.compile(r"\(\s*\*\s*\w*\s*\)\s*\(\s*void\s*\*\s*\*"),
        ("threads/cpu_device.h",),
    ),
    Confined(
        "a call of a kernel",
        re.compile(r"\bHostKernel::call\("),
        # A kernel of batch rows computes its blocks by the loop of the operation.
        ("threads/worker_pool.cpp", "engine/batch_rows.cpp"),
    ),
    Confined(
        "the address in a KernelHandle",
        re.compile(r"\.entry\(\)"),
        (
            "threads/cpu_device.h",
            "threads/cuda_device.cpp",
            "python/code_bindings.cpp",  # Python may ask for the number
        ),
    ),
    Confined(
        "a Launch on the worker pool",
        re.compile(r"\bLaunch(?:\s+\w+)?\("),
        # Python's launcher counts the Launch before it releases the GIL.
        (
            "threads/cpu_device.cpp",
            "threads/emulated_device.cpp",
            "threads/worker_pool.cpp",
            "threads/worker_pool.h",
            "python/launch_bindings.cpp",
        ),
    ),
    Confined(
        "an address of array memory without host_data()",
        re.compile(r"\.address\(\)|\ballocation->data\b"),
        # Operands of launches; what two devices copy; the address that Python may ask for.
        (
            "ir/value.h",
            "ir/value.cpp",
            "exec/executable.cpp",
            "exec/gather.cpp",
            "exec/matrix_product.cpp",
            "exec/op_interpreter.cpp",
            "exec/part_copy.cpp",
            "exec/reduction_kernels.cpp",
            "exec/stacking.cpp",
            "engine/batch_rows.cpp",
            "python/launch_bindings.cpp",
            "python/cuda_bindings.cpp",
            "python/scan_loop.cpp",
            "python/value_bindings.cpp",
        ),
    ),
    Confined(
        "a call of Device::launch",
        re.compile(r"\bdevice\w*(?:\.|->)launch\("),
        ("threads/device.h",),
    ),
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//.*")


def layer_of(name: str) -> int | None:
    """The number of the layer of a file, by its path below `native/`; none for an unknown room."""
    stem = name.rsplit(".", 1)[0]
    for entry in (stem, stem.split("/")[0]):
        for number, entries in enumerate(LAYERS):
            if entry in entries:
                return number
    return None


def offenders(root: Path) -> Iterator[str]:
    """Each include that goes up, and each confined pattern elsewhere, as `place: rule`."""
    native = root / "native"
    for path in sorted(native.rglob("*")):
        name = path.relative_to(native).as_posix()
        if path.suffix not in {".h", ".cpp"} or name.startswith("tests/"):
            continue
        text = path.read_text(encoding="utf-8")
        yield from upward_includes(name, text)
        code = COMMENT.sub("", text)
        for rule in CONFINED:
            if name not in rule.files and (found := rule.pattern.search(code)):
                line = code.count("\n", 0, found.start()) + 1
                places = ", ".join(rule.files)
                yield f"native/{name}:{line}: {rule.what} belongs to {places}"


def upward_includes(name: str, text: str) -> Iterator[str]:
    """The includes of one file that its layer does not allow."""
    own = layer_of(name)
    if own is None:
        yield f"native/{name}: its room is in no layer of tools/check_layers.py"
        return
    for found in INCLUDE.finditer(text):
        other = layer_of(found[1])
        if other is not None and other > own:
            line = text.count("\n", 0, found.start()) + 1
            yield f"native/{name}:{line}: includes {found[1]}, which is in a higher layer"


def main(arguments: list[str]) -> int:
    """Print the offenders below the given root (default: this checkout); 1 if there is one."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(offenders(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
