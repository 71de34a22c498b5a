"""The site: every public name has one entry, every page a place, every relative link a target."""

from __future__ import annotations

import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.namespace.api_sections import API_SECTIONS

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "site"
MODULES = [name for section in API_SECTIONS for name in section.modules]
HEAD = re.compile(r"^`{5,}\{py:(?:function|class|exception|data)\} (tenfold\.[\w.]+)(.*)$", re.M)
QUOTED = re.compile(r"'[^']*'")
ALSO = re.compile(r"^Also .*\.$", re.M)

BUILTINS = "None Any bool bytes complex float int list object str tuple type dict"
TYPING = "Callable AbstractContextManager Iterable Iterator Literal Mapping PathLike Sequence P R"
OF_RULES = "Match NodeView Pattern PatternVariable"
OF_RESULTS = (
    "CholeskyFactor FloatingInfo Generator IntegerInfo LUFactors NamespaceInfo NumpyDraws "
    "PolarResult TracedCallable UniqueAll UniqueCounts UniqueInverse"
)
OF_DTYPES = "Type dtype ndarray"
SHOWN = {*f"{BUILTINS} {TYPING} {OF_RULES} {OF_RESULTS} {OF_DTYPES}".split(), *tn.__all__}
"""The types that a signature may show."""


def program(name: str) -> dict[str, Any]:
    """Run a module of the site, which imports those beside it."""
    sys.path.insert(0, str(SITE))
    try:
        return runpy.run_path(str(SITE / f"{name}.py"))
    finally:
        sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return program("reference")["pages"]()


def public_names() -> Iterator[str]:
    """Every public name, those of submodules with their module."""
    yield from (f"tenfold.{name}" for name in tn.__all__ if name not in MODULES)
    for module in MODULES:
        found: ModuleType = getattr(tn, module)
        own = [
            k
            for k, v in vars(found).items()
            if isinstance(v, type) and k.endswith(("Error", "Warning"))
        ]
        yield from (f"tenfold.{module}.{name}" for name in getattr(found, "__all__", own))


def test_every_public_name_is_on_one_page(pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    entries = Counter(name for name, _ in HEAD.findall(text))
    second = re.findall(r"`(tenfold[\w.]+)`", " ".join(ALSO.findall(text)))
    assert sorted({*public_names()} - {*entries, *second}) == []
    assert [name for name, times in entries.items() if times > 1] == []
    assert {*entries} <= {*public_names()}


def test_signatures_show_public_types_alone(pages: dict[str, str]) -> None:
    wrong = []
    for name, signature in HEAD.findall("\n".join(pages.values())):
        types = re.findall(r"(?:: |-> )((?:[^=,()]|\[[^\]]*\])+)", QUOTED.sub("", signature))
        wrong += [
            (name, w) for t in types for w in re.findall(r"[A-Za-z_]\w*", t) if w not in SHOWN
        ]
    assert wrong == []


def test_entry_has_the_docstring_with_its_example_fenced(pages: dict[str, str]) -> None:
    (found,) = (text for text in pages.values() if "{py:function} tenfold.flip(" in text)
    assert "tenfold.flip(x: Array, /, axis: int | tuple[int, ...] | None = None)" in found
    assert "```pycon\n>>> import tenfold as tn" in found


def test_every_page_has_one_place_in_the_navigation() -> None:
    names = program("build")
    listed = [page for reader in names["NAVIGATION"] for page in reader.pages.split()]
    assert [page for page, times in Counter(listed).items() if times > 1] == []
    below = {str(Path(page).parent) for page in names["FOLDERS"]}
    written = {
        str(path.relative_to(ROOT).with_suffix("")) for path in (ROOT / "docs").rglob("*.md")
    }
    alone = {page for page in written if str(Path(page).parent) not in below}
    assert sorted(alone - {*listed}) == []
    assert [page for page in listed if not (ROOT / f"{page}.md").exists()] == []


# Links.

FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/**/*.md", "changelog.d/*.md")
    for path in ROOT.glob(pattern)
)


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.+)$", prose(path), re.M)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


def broken(path: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    folder = ROOT if path.parent.name == "changelog.d" else path.parent  # they move to CHANGELOG.md
    found = (folder / name) if name else path
    return not found.exists() or bool(anchor and anchor not in anchors(found))


def test_relative_links_have_targets() -> None:
    links = [(path, target) for path in DOCUMENTS for target in LINK.findall(prose(path))]
    assert [link for link in links if broken(*link)] == []


@pytest.mark.parametrize("target", ["no-such.md", "limits.md#no-such", "#no-such"])
def test_link_without_a_target_is_found(target: str) -> None:
    assert broken(ROOT / "docs" / "quickstart.md", target)


def test_operation_of_a_user_is_in_no_section() -> None:
    from tenfold.core.op_decorators import derived
    from tenfold.namespace.api_sections import names_by_section

    @derived()
    def twice_of_a_test(x: Any) -> Any:
        """2x."""
        return x + x

    try:
        assert "twice_of_a_test" not in {
            name for names in names_by_section().values() for name in names
        }
    finally:
        del OPS["twice_of_a_test"]
