"""What depends on the level of the processor is tested at a level that the test sets.

Which routine computes a product depends on the registers, and whether an elementary function is
part of a kernel on fused multiply-add. A test that names such a routine, or counts launches of such
functions, has a parameter `cpu`, sets the level, or has the fixture `fused_multiply_add`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenfold.core.op import OPS

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = [name for name, op in OPS.items() if getattr(op, "accuracy", 0) and "." not in name]
CALLED = re.compile(rf"\b(?:tn|operators|O)\.(?:{'|'.join(FUNCTIONS)}|softmax|logsumexp)\b")
COUNTED = re.compile(r"\.(?:kernels|launches|temporaries|calls)\b")
ROUTINE = re.compile(r"BLAS [sdcz]gemm")
PINNED = re.compile(r"\bcpu\b|TENFOLD_CPU|fused_multiply_add|generated code")
"""What sets a level; or says both, the routine and the kernel instead of it."""
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def depends(text: str, *, counts: bool = True) -> bool:
    """Whether a program depends on the level of the processor."""
    return bool(ROUTINE.search(text) or (counts and CALLED.search(text) and COUNTED.search(text)))


def is_open(text: str, *, counts: bool = True) -> bool:
    """Whether a program depends on the level of the processor, which it does not set."""
    return depends(text, counts=counts) and not PINNED.search(text)


def sources_of(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the source of each test of a file, with what it uses of the file."""
    text = path.read_text(encoding="utf-8")
    lines, module = text.splitlines(), ast.parse(text)

    def source(node: Any) -> str:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        return "\n".join(lines[first - 1 : node.end_lineno])

    shared = {name: source(node) for node in module.body for name in names_of(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            used = set(re.findall(r"\w+", source(node))) & shared.keys() - {node.name}
            yield node.name, "\n".join([source(node), *(shared[name] for name in sorted(used))])


def names_of(node: ast.stmt) -> list[str]:
    """The functions and constants that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", ())
    return [each.id for each in targets if isinstance(each, ast.Name)]


def test_tests_set_the_level_on_which_they_depend() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in files
        if path != Path(__file__) and depends(path.read_text(encoding="utf-8"))
        for name, text in sources_of(path)
        if is_open(text)
    ]
    assert not found


def test_snippets_set_the_level_on_which_they_depend() -> None:
    # That the pages run with fused multiply-add their test sees to.
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        f"{page.relative_to(ROOT)}: {snippet}"
        for page in pages
        for snippet in SNIPPET.findall(page.read_text(encoding="utf-8"))
        if is_open(snippet, counts=False)
    ]
    assert not found


def test_program_that_names_a_routine_or_counts_functions_is_open() -> None:
    routine, counts = '"BLAS dgemm" in tn.explain(a @ b)', "tn.exp(x).wait()\nassert p.kernels == 1"
    assert is_open(routine)
    assert is_open(counts)
    assert not is_open(f"with tn.options(cpu='x86-64-v3'):\n    {routine}")
    assert not is_open("tn.add(x, x).wait()\nassert p.kernels == 1")
    assert not is_open(counts, counts=False)
