"""Checks the names and the prose: one word for one thing, and the field's words.

Takes the root of a checkout; hands on one line per offender, `place: rule`, and exit status 1 if
there is any. No two modules have one name, and no two classes, in Python and in C++ apart (a C++
file may have the name of its Python twin, and a module that of its package). No two modules of
Python define one constant, nor one type alias with two meanings. No two define one function, unless
its name is public (a word of NumPy's) or in `SHARED_FUNCTIONS`. The name of a test says a fact,
with its subject first. Prose has no word of `DENIED`, and the first sentence of a module at most
`FIRST_WORDS` words. One page alone, `PAGE_OF_ABSENCE`, says what is absent: it is generated and
tried, so what it denies is so.

Example: `python tools/check_names.py`, or `python tools/check_names.py path/of/another/checkout`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

FIRST_WORDS = 20
"""Words of the first sentence of a module."""
DENIED = re.compile(r"(nobody|somebody|whoever|(?<!there )is no (?!more|longer))", re.IGNORECASE)
"""Words that stand for a caller, an array or a thread; and a negation that hides in its noun."""
ABSENCE = re.compile(
    r"\b(absen(?:t|ce)|lack(?:s|ed|ing)?|not included|(?:un|not )supported|not implemented"
    r"|not (?:yet )?available|do(?:es)? not (?:yet )?(?:exist|support|offer|provide)"
    r"|Tenfold (?:has no|has not|does not have|misses))\b",
    re.IGNORECASE,
)
"""Words that say what Tenfold has not, which a later change makes untrue."""
PAGE_OF_ABSENCE = Path("docs/absent.md")
EXECUTED = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
LINK_OR_CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)")
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")
ALIAS = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
JOINED = {"FORMULAS", "LAPACK_OPS", "METHODS", "PROPERTIES"}
"""Tables with rows in several modules, which one module of the same constant joins."""
SHARED_FUNCTIONS = {
    "finish": "emits the unit of work after those of a split row: each kernel emitter has one",
    "install": "sets a module up: called once, when `tenfold` is imported",
    "lines": "the report of a command, as text",
    "load": "emits a load: of packets, through a mask, at a stride",
    "split_unit": "emits a unit of work of a split row: each kernel emitter has one",
    "store": "emits a store: of packets, through a mask, at a stride",
    "threads_of": "the number of threads of a launch: of a product, a driver, a kernel",
    "two_sum": "Knuth's exact sum: of packets, and of ndarrays",
    "unit": "emits a unit of work: each kernel emitter has one",
}
"""Functions that several modules define on purpose, and what they do."""
PUBLIC = ("[!_]*.pyi", "__init__.pyi", "numpy/**/*.py", "array/ndarray_methods.py")
"""Modules, below the package, whose functions have public names, which others may define too."""
TEST = re.compile(r"def (test_(?:what|that|who|which|of|by|those)_\w+)")
CLASS = re.compile(r"^(?:class|struct|enum class) ([A-Za-z_]\w*)[^;]*\{", re.MULTILINE)


def offenders(root: Path) -> Iterator[str]:
    """Each name or word below `root` that breaks a rule, as `place: rule`."""
    python = sorted((root / "src" / "tenfold").rglob("*.py"))
    native = sorted(
        path
        for path in (root / "native").rglob("*")
        if path.suffix in {".h", ".cpp"} and "tests" not in path.parts
    )
    names = [path for path in python if path.stem not in {"__init__", path.parent.name}]
    yield from twice(root, "module", ((path.stem, path) for path in names))
    yield from twice(root, "module", {(path.stem, path.with_suffix("")) for path in native})
    yield from twice(root, "class", python_classes(python))
    yield from twice(root, "class", native_classes(native))
    yield from twice(root, "constant", constants(python))
    yield from twice(root, "alias", aliases(python))
    yield from twice(root, "function", functions(root / "src" / "tenfold", python))
    for path in python:
        yield from first_sentence(path, path.relative_to(root))
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name in TEST.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(root)}: {name} does not begin with its subject"
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    for path in [*python, *native, *pages]:
        if not path.name.startswith("CHANGELOG"):
            yield from denied(path, path.relative_to(root))
    for path in [*root.glob("README.md"), *(root / "docs").rglob("*.md")]:
        name = path.relative_to(root)
        if name != PAGE_OF_ABSENCE and "decisions" not in name.parts:
            yield from absences(path, name)


def twice(root: Path, kind: str, found: object) -> Iterator[str]:
    """The names that stand in two places."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in sorted(found):  # type: ignore[call-overload]
        places[name].append(str(path.relative_to(root)))
    for name, where in places.items():
        if len(where) > 1:
            yield f"{where[0]}: the {kind} {name} is in {', '.join(where[1:])} too"


def python_classes(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Each class of these files, with its file."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name, path


def assignments(paths: list[Path]) -> Iterator[tuple[str, str, Path]]:
    """Each name that a module assigns at its outermost level, with the text of its value."""
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (name for target in targets for name in ast.walk(target)):
                if isinstance(name, ast.Name):
                    yield name.id, ast.unparse(node.value), path


def constants(paths: list[Path]) -> set[tuple[str, Path]]:
    """Each constant of these modules, with its module."""
    found = assignments(paths)
    return {(name, path) for name, _, path in found if CONSTANT.fullmatch(name)} - {
        (name, path) for name in JOINED for path in paths
    }


def aliases(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Each alias with several meanings, with a module of each."""
    meanings: dict[str, dict[str, Path]] = defaultdict(dict)
    for name, value, path in assignments(paths):
        if ALIAS.fullmatch(name):
            meanings[name].setdefault(value, path)
    for name, places in meanings.items():
        yield from ((name, path) for path in places.values())


def functions(package: Path, paths: list[Path]) -> set[tuple[str, Path]]:
    """Each function of these modules whose name is neither public nor shared on purpose."""
    public = chain.from_iterable(map(package.glob, PUBLIC))
    shared = {*SHARED_FUNCTIONS, *(name for name, _ in outermost_functions(public))}
    return {(name, path) for name, path in outermost_functions(paths) if name not in shared}


def outermost_functions(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Each function without a leading underscore that a module defines at its outermost level."""
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node.name, path


def native_classes(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Each class that a C++ file defines at its outermost level."""
    for path in paths:
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            yield name, path


def first_sentence(path: Path, name: Path) -> Iterator[str]:
    """The offence of a module whose first sentence is long."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = re.split(r"(?<=[.!?])\s|\n\n", text, maxsplit=1)[0]
    if len(sentence.split()) > FIRST_WORDS:
        yield f"{name}: {len(sentence.split())} words in the first sentence, {FIRST_WORDS} at most"


def denied(path: Path, name: Path) -> Iterator[str]:
    """The lines with a denied word."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for found in DENIED.finditer(line):
            yield f"{name}:{number}: {found[0].strip()!r} is not in the language of the project"


def absences(path: Path, name: Path) -> Iterator[str]:
    """The lines of a page that say what is absent, outside code and the targets of links."""
    text = EXECUTED.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for found in ABSENCE.finditer(LINK_OR_CODE.sub("", line)):
            yield f"{name}:{number}: {found[0]!r} stands in {PAGE_OF_ABSENCE} alone"


def main() -> int:
    """Print the offenders; return the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = list(offenders(root))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
