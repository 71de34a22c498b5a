"""Writes docs/settings.md from the table of settings. Run: python docs/settings.py"""

from __future__ import annotations

from pathlib import Path

from tenfold.settings import SETTINGS

HEAD = """# Settings

Made from `src/tenfold/settings.py` by `make docs`. A setting is given for a block, in this thread
or task (`with tn.options(name=value):`), for the process (`tn.set_options(name=value)`), or in the
environment. `tenfold doctor` shows the values in force and where each came from.

| Option | Environment | Default | What it does |
|---|---|---|---|
"""


OF_THE_MACHINE = {"threads": "as many as processors", "cache_dir": "the usual place"}
"""Defaults that another machine has others of: the page is the same everywhere."""


def page() -> str:
    """Return the page."""
    defaults = {s.name: f"`{s.default}`" for s in SETTINGS} | OF_THE_MACHINE
    rows = [
        f"| `{s.name}` | `{s.environment}` | {defaults[s.name]} | {s.doc} |\n" for s in SETTINGS
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
