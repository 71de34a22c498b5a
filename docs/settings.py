"""Writes docs/settings.md from the table of settings. Run: python docs/settings.py"""

from __future__ import annotations

from pathlib import Path

from tenfold.settings import SETTINGS

HEAD = """# Settings

`make docs` generates this page from `src/tenfold/settings.py`. There are three scopes:

- a block, in this thread or task: `with tn.options(name=value):`
- the process: `tn.set_options(name=value)`
- the environment variable, read at import.

A block overrides the process, which overrides the environment. `tenfold doctor` shows each
value in force and its source.

| Option | Environment | Default | Effect |
|---|---|---|---|
"""


OF_THE_MACHINE = {"threads": "usable processors", "cache_dir": "user cache directory"}
"""Defaults that depend on the machine, as words: the page is the same everywhere."""


def page() -> str:
    """Return the page."""
    defaults = {s.name: f"`{s.default}`" for s in SETTINGS} | OF_THE_MACHINE
    rows = [
        f"| `{s.name}` | `{s.environment}` | {defaults[s.name]} | {s.doc} |\n" for s in SETTINGS
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
