"""The lengths at which the planner and the native core decide otherwise, from their own constants.

Takes the constants by introspection: the sizes of a target, the capital names of numbers in the
modules of the planner, the renderer and the devices, and `constexpr` numbers of the native core.
Hands on lengths on both sides of each. A new constant is a length in elements unless `NOT_LENGTHS`
says what else it is, so it makes new tests.

>>> "schedule.target.work.range_elements" in constants()
True
>>> lengths(8)[:4]
(1, 2, 3, 4)
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import tenfold
from tenfold.schedule.target import DEFAULT

UNITS = ("_elements", "_bytes", "_instructions", "_multiply_adds", "_cycles", "_columns", "_order")
"""The last words of the names of facts that are sizes."""
MOST_BYTES = 64 << 20
"""Of one array."""
ROOMS = ("schedule", "runtime", "jit", "codegen", "core.loop_ir")
NATIVE = (
    "op_interpreter",
    "work_size",
    "part_copy",
    "reduction_kernels",
    "operator_batch",
    "batch_rows",
    "stacked_batch",
    "stacking",
    "dynamic_batching",
    "submission",
    "cse",
    "symbolic_executable",
)
"""The files of the native core that decide how arrays are computed: native/*/*.cpp, *.h."""

CAPACITY = "entries of a cache"
COST = "a weight of cost, not of elements"
CODE = "a number of a file format or of an interface"
NODES = "nodes or parts of a graph, not elements"
LAUNCHES = "launches, not elements"
NOT_LENGTHS = {
    "runtime.devices.cpu.MAX_PLANS": CAPACITY,
    "runtime.graph_chunks.MAX_WHOLE_NODES": NODES,
    "runtime.graph_chunks.CHUNK_NODES": NODES,
    "jit.cache_entry.ENTRY_FORMAT": CODE,
    "jit.cache_entry.HASH": CODE,
    "jit.cache_entry.MAX_ENTRY_BYTES": CODE,
    "runtime.lapack.drivers.LAUNCHES": CAPACITY,
    "jit.atomic_write.OPEN_FLAGS": CODE,
    "jit.atomic_write.DIRECTORY": CODE,
    "schedule.lapack.right_hand_sides.IN_PLACE": CODE,
    "schedule.driver_choice.MAX_CACHED_CHOICES": CAPACITY,
    "jit.object_image.SHF_ALLOC": CODE,
    "jit.object_image.SHF_WRITE": CODE,
    "jit.object_image.SHT_RELA": CODE,
    "jit.object_image.SHT_SYMTAB": CODE,
    "jit.object_image.SHT_NOBITS": CODE,
    "jit.object_image.PAGE_BYTES": CODE,
    "runtime.op_kernels.LENGTHS": CODE,
    "runtime.op_kernels.STRIDES": CODE,
    "runtime.op_kernels.PARTS": CODE,
    "runtime.op_kernels.NO_SIZE": CODE,
    "runtime.blas.product_launch.MAX_CACHED_STEPS": CAPACITY,
    "schedule.product_choice.MAX_DIMENSION": "more than memory holds",
    "jit.program.UNOPTIMISED": "a level of LLVM's optimisation",
    "jit.program.OPTIMISED": "a level of LLVM's optimisation",
    "jit.disk_cache.SWEEP_KEYS": CAPACITY,
    "schedule.dependence.MAX_DIRECTIONS": NODES,
    "schedule.kernel_splitting.FORMULA_WEIGHT": COST,
    "schedule.kernel_splitting.MAX_CROSSING_VALUES": NODES,
    "schedule.generic_reduction.OUTER": "axes",
    "schedule.materialize_views.SIZE_RATIO": "a ratio of two sizes",
    "schedule.symbolic_graph.WORDS_PER_AXIS": CODE,
    "codegen.llvm.reduce_inner.LANE_SLOTS": "slots of a counter",
    "codegen.llvm.reduce_inner.BLOCK_LEVELS": "more than memory holds",
    "codegen.llvm.reduce_outer.LANE_LEVELS": "levels of a tree",
    "native.dynamic_batching.PREFETCH_DISTANCE": NODES,
    "native.batch_rows.PREFETCH_DISTANCE": NODES,
    "native.stacked_batch.CAPACITY": CAPACITY,
    "native.stacked_batch.MAX_PLANS": CAPACITY,
    "native.stacked_batch.MAX_TRIES": "rows that are tried",
    "native.op_interpreter.MAX_LAUNCHES": LAUNCHES,
    "native.symbolic_executable.CAPACITY": CAPACITY,
    "native.symbolic_executable.NUM_SEEN": CAPACITY,
    "native.stacking.PREFETCH_DISTANCE": NODES,
    "native.cse.MIN_ELEMENTS": NODES,
}
"""Why each of these constants is not a number of elements, of bytes or of multiply-adds."""


@functools.cache
def constants() -> dict[str, int]:
    """Return every constant that is one number, by module and name, also what is no length."""
    return dict((*_target_facts(), *_python_constants(), *_native_constants()))


def _target_facts() -> Iterator[tuple[str, int]]:
    """The facts of a target, and the thresholds of the native policies, that are sizes, by the unit
    at the end of their names.
    """
    for policy in ("TIERS", "BATCHES"):
        for name, value in vars(getattr(tenfold._native, policy)).items():
            if name.endswith(UNITS):
                yield f"native.{policy}.{name}", value
    for group in fields(DEFAULT):
        facts = getattr(DEFAULT, group.name)
        for fact in fields(facts) if is_dataclass(facts) else ():
            if fact.name.endswith(UNITS):
                yield f"schedule.target.{group.name}.{fact.name}", getattr(facts, fact.name)


def _python_constants() -> Iterator[tuple[str, int]]:
    root = Path(tenfold.__file__).parent
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if not module.startswith(ROOMS) or "vecmath" in module:
            continue
        for name in _capital_names(ast.parse(path.read_text(encoding="utf-8"))):
            value = getattr(importlib.import_module(f"tenfold.{module}"), name)
            if type(value) is int:
                yield f"{module}.{name}", value


def _capital_names(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name) and re.fullmatch("[A-Z][A-Z0-9_]*", node.id):
                yield node.id


def _native_constants() -> Iterator[tuple[str, int]]:
    native = Path(__file__).parents[2] / "native"
    for stem in NATIVE:
        for path in sorted(native.glob(f"*/{stem}.*")):
            text = path.read_text(encoding="utf-8")
            for line in re.findall(r"constexpr (?:std::)?\w+ ([A-Z][^;]*);", text):
                for name, value in re.findall(r"([A-Z][A-Z_]+) = ([^,]*)", line):
                    number = _number(value)
                    if number is not None:
                        yield f"native.{stem}.{name}", number


def _number(text: str) -> int | None:
    """The value of a literal, or of one shifted."""
    found = re.fullmatch(r"(?:[\w:]+\()?([\d']+)(?:ull|u)?\)?(?: << (\d+))?", text.strip())
    if not found:
        return None
    return int(found[1].replace("'", "")) << int(found[2] or 0)


@functools.cache
def thresholds(itemsize: int) -> tuple[int, ...]:
    """Return the lengths in elements of arrays for which something is decided otherwise."""
    found = set()
    for name, value in constants().items():
        if name in NOT_LENGTHS or value < 1:
            continue
        found.add(value)
        if value > 16 and re.search(
            "BYTES|_bytes|CACHE|PAGES|AHEAD|CHUNK|ACCUMULATED|TILE_ROW", name
        ):
            found |= {max(value // (itemsize * operands), 1) for operands in (1, 2, 3)}
    return tuple(sorted(n for n in found if n * itemsize <= MOST_BYTES))


@functools.cache
def lengths(itemsize: int) -> tuple[int, ...]:
    """Return the lengths on both sides of each threshold: T - 1, T, T + 1, a little more by half a
    packet, and twice as many with a rest.
    """
    lanes = min(64, 64 // itemsize * 2)
    found = set()
    for at in thresholds(itemsize):
        found |= {at - 1, at, at + 1, at + lanes // 2, 2 * at + 7}
    return tuple(sorted(n for n in found if 0 < n * itemsize <= MOST_BYTES))
