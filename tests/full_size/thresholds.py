"""The lengths at which the planner and the native core decide otherwise, from their own constants.

Takes the constants by introspection: the capital names of numbers in the modules of the planner,
the renderer and the devices, and `constexpr` numbers of the native core. Hands on lengths on both
sides of each. A new constant is a length in elements unless `NOT_LENGTHS` says what else it is, so
it makes new tests.

>>> "plan.traverse.RANGE" in constants()
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
from pathlib import Path

import tenfold

MOST_BYTES = 64 << 20
"""Of one array."""
ROOMS = ("plan", "devices", "render", "ir.kernel")
NATIVE = (
    "singly folds batch columns groups schedule alike submission products equal template".split()
)
"""The files of the native core that decide how arrays are computed: native/*.cpp, *.h."""

CAPACITY = "entries of a cache"
COST = "a weight of cost, not of elements"
CODE = "a number of a file format or of an interface"
NODES = "nodes or parts of a graph, not elements"
LAUNCHES = "launches, not elements"
NOT_LENGTHS = {
    "devices.cpu.MOST_PLANS": CAPACITY,
    "devices.cpu.LONGEST": NODES,
    "devices.cpu.PIECE": NODES,
    "devices.entry.FORMAT": CODE,
    "devices.entry.HASH": CODE,
    "devices.entry.LARGEST": CODE,
    "devices.factorise.STEPS": CAPACITY,
    "devices.files.OWN": CODE,
    "devices.files.DIRECTORY": CODE,
    "devices.kept.PLACES": CAPACITY,
    "devices.lapack.QUERIES": CAPACITY,
    "devices.linking.HELD": CODE,
    "devices.linking.WRITTEN": CODE,
    "devices.linking.ENTRIES": CODE,
    "devices.linking.SYMBOLS": CODE,
    "devices.linking.BARE": CODE,
    "devices.linking.WIDEST": CODE,
    "devices.loops.LENGTH": CODE,
    "devices.loops.STRIDE": CODE,
    "devices.loops.PART": CODE,
    "devices.loops.NOTHING": CODE,
    "devices.multiply.STEPS": CAPACITY,
    "devices.products.LARGEST": "more than memory holds",
    "devices.program.QUICK": "a level of LLVM's optimisation",
    "devices.program.OPTIMISED": "a level of LLVM's optimisation",
    "devices.program.USES_WORTH_OPTIMISING": LAUNCHES,
    "devices.program.REPLAYS": LAUNCHES,
    "devices.program.LATER": LAUNCHES,
    "devices.program.LATEST": LAUNCHES,
    "devices.program.MOST_PROGRAMS": CAPACITY,
    "devices.store.SWEPT": CAPACITY,
    "plan.alias.CHOICES": NODES,
    "plan.cut.LARGEST_BODY": NODES,
    "plan.cut.FORMULA_WEIGHT": COST,
    "plan.cut.MOST_CROSSING": NODES,
    "plan.fold_loop.OUTER": "axes",
    "plan.overlap.STEPS": "steps of a search",
    "plan.packets.FORMULA_WEIGHT": COST,
    "plan.packets.SHORT_BODY": NODES,
    "plan.packets.LONG_BODY": NODES,
    "plan.runs.MOST_PARTS": NODES,
    "plan.runs.FEWER": NODES,
    "plan.runs.FEW": NODES,
    "plan.scattered.LARGER": "a ratio of two sizes",
    "plan.sized.WORDS": CODE,
    "plan.traverse.STREAMED_SHARE": "a ratio of two sizes",
    "plan.traverse.WIDE_PARTS": "parts of a fold",
    "render.library_determinant.LARGE": "an exponent",
    "render.library_determinant.SMALL": "an exponent",
    "render.library_determinant.SHIFT": "an exponent",
    "render.library_determinant.MOST": "an exponent",
    "render.row.LANE_SLOTS": "slots of a counter",
    "render.row.BLOCK_LEVELS": "more than memory holds",
    "render.column.LANE_LEVELS": "levels of a tree",
    "native.groups.FEW": NODES,
    "native.groups.WIDTH": NODES,
    "native.groups.SPARSE": "a ratio of two sizes",
    "native.groups.MOST_BYTES": "of a group of many nodes: tests/graphs",
    "native.groups.SOON": NODES,
    "native.products.FORMS": CODE,
    "native.products.SIZES": CODE,
    "native.schedule.ENOUGH": NODES,
    "native.singly.LONG": NODES,
    "native.singly.MOST_LAUNCHES": LAUNCHES,
    "native.singly.SMALL_SHARE": "a ratio of two sizes",
    "native.submission.MOST_NODES": NODES,
    "native.template.AGEING": CAPACITY,
    "native.template.CAPACITY": CAPACITY,
    "native.template.MOST_NODES": NODES,
    "native.template.MOST_TEMPLATES": CAPACITY,
    "native.template.MOST_TRIES": CAPACITY,
    "native.template.PLACES": CAPACITY,
    "native.template.SEEN": CAPACITY,
    "native.columns.SOON": NODES,
    "native.equal.WORTH_IT": NODES,
}
"""Why each of these constants is not a number of elements, of bytes or of multiply-adds."""


@functools.cache
def constants() -> dict[str, int]:
    """Return every constant that is one number, by module and name, also what is no length."""
    return dict((*_python_constants(), *_native_constants()))


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
        for path in (native / f"{stem}.cpp", native / f"{stem}.h"):
            text = path.read_text(encoding="utf-8") if path.exists() else ""
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
        if value > 16 and re.search("BYTES|CACHE|PAGES|AHEAD|CHUNK|ACCUMULATED|TILE_ROW", name):
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
