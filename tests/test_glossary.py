"""The glossary has one line for each word that is printed, and each word occurs in its file."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import tenfold as tn
from tenfold import errors
from tenfold.inspect.explain import STAGES
from tenfold.inspect.schedule_text import TRAVERSALS
from tenfold.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| `([^`|]+)` \|$", re.M)
ROWS = ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
WORDS = {word for word, *_ in ROWS}


def test_each_word_occurs_in_its_file() -> None:
    texts = {row[3]: (ROOT / row[3]).read_text(encoding="utf-8").lower() for row in ROWS}
    assert [(row[0], row[3]) for row in ROWS if row[0].lower() not in texts[row[3]]] == []


def test_every_line_of_a_table_is_a_row() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(lines) == len(ROWS) + page.count("| Word |")


def test_each_table_has_a_word_once() -> None:
    assert [word for word, times in Counter(row[0] for row in ROWS).items() if times > 2] == []


def test_every_stage_traversal_and_kind_of_step_has_a_line() -> None:
    assert {*STAGES, *TRAVERSALS, "alias"} <= WORDS


def test_every_counter_has_a_line() -> None:
    with tn.profile() as p:
        pass
    assert set(p.counters()) <= WORDS


def test_every_setting_has_a_line() -> None:
    assert {setting.name for setting in SETTINGS} <= WORDS


def test_every_error_class_has_a_line() -> None:
    classes = {name for name, kind in vars(errors).items() if name.endswith("Error")}
    assert classes - {"LinAlgError"} <= WORDS


def test_every_statistic_of_an_engine_has_a_line() -> None:
    with tn.Engine() as engine:
        assert set(engine.stats()) <= WORDS
