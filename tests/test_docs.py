"""Every snippet of the documents is executed, and says what it prints."""

from __future__ import annotations

import doctest
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import plan_records
import tenfold as tn
from tenfold.core.op import OPS
from tenfold.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("page", PAGES)
def test_snippets_of_a_page_print_what_they_say_and_have_the_stored_plans(page: str) -> None:
    known = dict(OPS)
    tn.trim()
    try:
        with plan_records.recorded() as plans:
            failed, _ = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=FLAGS)
    finally:
        OPS.clear()  # a page may declare operations; they are its own
        OPS.update(known)
    assert failed == 0
    name = page.removesuffix(".md").replace("/", "-")
    assert not plan_records.check(ROOT / "tests" / "schedule" / "plans" / f"{name}.txt", plans)


def test_tour_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "docs" / "tour.py"), run_name="__main__")
    assert "the end" in capsys.readouterr().out


def test_page_of_storage_kinds_is_made_from_their_rules() -> None:
    page = (ROOT / "docs" / "storage.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "docs" / "storage.py"))["page"]
    assert page == made(), "run `make docs`"


@pytest.mark.parametrize("processors", [None, 1, 3, 64])
def test_page_of_settings_is_made_from_the_table_on_any_machine(processors: int | None) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "docs" / "settings.py"))["page"]
    if processors is not None:
        made.__globals__["SETTINGS"] = [
            replace(setting, default=processors) if setting.name == "threads" else setting
            for setting in SETTINGS
        ]
    assert page == made(), "run `make docs`"
