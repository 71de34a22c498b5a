"""Target header: writes the numbers that native code shares with Python's planner.

Takes the defaults of `tenfold.schedule.target.Target`, the lanes and the block of the canonical
reduction tree, and the table of rows. Hands on the text of native/memory/target_facts.h, which
`make stubs` writes.

    python tools/target_header.py [--check]
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from tenfold.codegen.simt import row_table
from tenfold.core import canonical_reduction
from tenfold.schedule import target

HEADER = Path(__file__).parents[1] / "native" / "memory" / "target_facts.h"
HEAD = """\
// Target facts: the numbers that native code shares with the planner. tools/target_header.py writes
// this file from schedule/target.py, core/canonical_reduction.py and codegen/simt/row_table.py.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenfold {

"""
COUNTS = ("alignment_bytes", "max_planned_nodes", "max_bytes")
"""Facts that native code compares with sizes of containers; others with lengths of arrays."""
SHARED = (
    (target.Caches, "alignment_bytes", "ALIGNMENT_BYTES"),
    (target.WorkSizes, "gil_elements", "GIL_ELEMENTS"),
    (target.WorkSizes, "serial_elements", "SERIAL_ELEMENTS"),
    (target.WorkSizes, "grain_elements", "GRAIN_ELEMENTS"),
    (target.WorkSizes, "max_unit_elements", "MAX_UNIT_ELEMENTS"),
    (target.WorkSizes, "max_planned_nodes", "MAX_PLANNED_NODES"),
    (target.Batches, "stacked_bytes", "STACKED_BYTES"),
    (target.Batches, "stacked_elements", "STACKED_ELEMENTS"),
    (target.Batches, "shared_elements", "SHARED_ELEMENTS"),
    (target.Batches, "max_bytes", "MAX_BATCH_BYTES"),
)
"""The class of a fact, its name and that in native code."""


def docs_of(facts: type) -> Iterator[tuple[str, str]]:
    """Yield the name of each field of a class, and the docstring that follows it."""
    (tree,) = ast.parse(inspect.getsource(facts)).body
    assert isinstance(tree, ast.ClassDef), "a class"
    for field, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(following, ast.Expr), "each field has a docstring"
            yield field.target.id, " ".join(str(ast.literal_eval(following.value)).split())


def header() -> str:
    """Return the text of the header."""
    lines = []
    for facts, name, constant in SHARED:
        type_ = "std::size_t" if name in COUNTS else "int64_t"
        lines.append(f"// {dict(docs_of(facts))[name]}\n")
        lines.append(f"constexpr {type_} {constant} = {getattr(facts(), name)};\n")
    for constant in ("LANES", "BLOCK"):
        value = getattr(canonical_reduction, constant)
        lines.append(
            f"// Of the canonical reduction tree.\nconstexpr int64_t TREE_{constant} = {value};\n"
        )
    for constant in ("TABLE_AXES", "TABLE_ROWS"):
        value = getattr(row_table, constant)
        lines.append(f"// Of a kernel of rows.\nconstexpr std::size_t {constant} = {value};\n")
    return HEAD + "".join(lines) + "\n} // namespace tenfold\n"


def main() -> None:
    """Write the header, or fail where it is not up to date."""
    text = header()
    if "--check" in sys.argv[1:]:
        if HEADER.read_text(encoding="utf-8") != text:
            sys.exit(f"{HEADER} is not up to date: run `make stubs`")
        return
    HEADER.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
