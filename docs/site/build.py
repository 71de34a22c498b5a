"""Builds the site: gathers README, docs/ and the API reference, and runs Sphinx in strict mode.

Takes the checkout and the installed package, hands on build/docs. A broken link or anchor, a page
outside the navigation, and a warning of Sphinx fail the build. Run: python docs/site/build.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import reference  # beside this file

ROOT = HERE.parent.parent
OUTPUT = ROOT / "build" / "docs"
SOURCES = ROOT / "build" / "docs-sources"
"""The pages as Sphinx reads them: in the folders of the checkout, so that every link holds."""
COPIED = ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/*.md", "docs/**/*.svg",
          "examples/**/*.svg")  # fmt: skip
REPOSITORY_ONLY = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)#]*(?<!\.md)(?<!\.svg)/?\)")
"""A link to a folder or to a program: on the site its text alone."""


class Reader(NamedTuple):
    """One entry of the navigation: a kind of reader, and the pages for them."""

    key: str
    title: str
    about: str
    pages: str


NAVIGATION = (
    Reader(
        "numpy-users",
        "NumPy users",
        "For formulas on large arrays: first steps, changes from NumPy, recipes, speed.",
        "docs/quickstart docs/numpy docs/numpy-names docs/numpy-suite docs/absent "
        "docs/how-to/README docs/limits docs/explain docs/performance-guide docs/algebra "
        "docs/storage docs/random docs/fft docs/compared docs/performance docs/settings docs/cache "
        "docs/devices",
    ),
    Reader(
        "irregular-work",
        "Irregular work",
        "For trees, graphs, simulations and tasks: traced functions, dynamic batching, futures.",
        "docs/functions docs/derivatives docs/engine examples/README",
    ),
    Reader(
        "array-api",
        "Array API",
        "For authors of libraries on the array API standard: what every expression means. The "
        "[API reference](docs/reference/index.md) has a page for each page of the standard.",
        "docs/semantics",
    ),
    Reader(
        "contributors",
        "Contributors",
        "For changes of Tenfold itself: the map of the code, its words, its decisions.",
        "CONTRIBUTING docs/architecture docs/glossary docs/adding docs/decisions/README "
        "bench/README bench/acceptance SECURITY CHANGELOG",
    ),
)
REFERENCE = "docs/reference/index"
FOLDERS = ("docs/how-to/README", "docs/decisions/README", "examples/README")
"""Index pages: the other pages of their folders stand below them."""


def navigation(reader: Reader) -> str:
    """Return the landing page of one kind of reader."""
    pages = [f"/{page}" for page in reader.pages.split()]
    tree = ["```{toctree}", ":maxdepth: 1", "", *pages, "```"]
    return "\n".join([f"# {reader.title}", "", reader.about, "", *tree, ""])


def gather(target: Path) -> None:
    """Write the sources of the site into `target`."""
    for pattern in COPIED:
        for path in sorted(ROOT.glob(pattern)):
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for path in target.rglob("*.md"):
        path.write_text(on_site(path.read_text(encoding="utf-8")), encoding="utf-8")
    (target / "README.md").rename(target / "index.md")
    _append(target / "index.md", [*(reader.key for reader in NAVIGATION), REFERENCE])
    for reader in NAVIGATION:
        (target / f"{reader.key}.md").write_text(navigation(reader), encoding="utf-8")
    for page in FOLDERS:
        index = target / f"{page}.md"
        below = sorted({*index.parent.rglob("*.md")} - {index})
        _append(index, [str(path.relative_to(index.parent).with_suffix("")) for path in below])
    (target / "docs" / "reference").mkdir()
    for name, text in reference.pages().items():
        (target / "docs" / "reference" / f"{name}.md").write_text(text, encoding="utf-8")


def on_site(text: str) -> str:
    """Return a page without links to what the site does not have; README.md is the front page."""
    text = re.sub(r"\]\(((?:\.\./)+)README\.md", r"](\1index.md", text)
    return REPOSITORY_ONLY.sub(r"\1", text)


def _append(path: Path, pages: list[str]) -> None:
    tree = "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])
    path.write_text(path.read_text(encoding="utf-8") + tree, encoding="utf-8")


def main() -> int:
    """Build the site; return Sphinx's exit status."""
    started = time.perf_counter()
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    SOURCES.mkdir(parents=True)
    gather(SOURCES)
    strict = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *strict, "-c", str(HERE)]
    cache = str(ROOT / "build" / "docs-doctrees")
    done = subprocess.run([*command, "-d", cache, str(SOURCES), str(OUTPUT)], check=False)
    if done.returncode == 0:
        took = time.perf_counter() - started
        print(f"{OUTPUT.relative_to(ROOT)}/index.html, in {took:.0f} s")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
