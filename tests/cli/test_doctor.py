"""`tenfold doctor`: what it reports, and what it finds wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import tenfold as tn
from tenfold import settings
from tenfold.cli import doctor
from tenfold.inspect import machine_limits

Command = Callable[..., Any]


def test_report_as_json_has_every_setting_with_its_source(tenfold: Command) -> None:
    facts = json.loads(tenfold("doctor", "--json").out)
    assert list(facts) == [
        "machine", "limits", "versions", "settings", "cache", "memory", "problems",
    ]  # fmt: skip
    kept = facts["memory"]["inferred types"]
    assert 0 <= kept["entries"] <= kept["capacity"]
    assert facts["memory"]["memory_of_kernels"] >= 0
    assert list(facts["versions"])[:2] == ["python", "tenfold"]
    assert facts["versions"]["numpy"]
    assert facts["machine"]["processors"] >= 1
    assert facts["machine"]["memory_available"] > 0
    assert list(facts["settings"]) == [setting.name for setting in settings.SETTINGS]
    assert all(set(fact) == {"value", "source"} for fact in facts["settings"].values())


def test_setting_given_by_an_option_says_so(tenfold: Command) -> None:
    with tn.options(strict_dtypes=True):
        facts = json.loads(tenfold("doctor", "--json").out)
    assert facts["settings"]["strict_dtypes"] == {"value": True, "source": "tn.options"}


def test_report_as_text_has_a_line_for_each_fact(tenfold: Command) -> None:
    done = tenfold("doctor")
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "machine", "limits", "versions", "settings", "cache", "memory", "problems",
    ]  # fmt: skip
    for word in ("processor", "memory_available", "numpy", "strict_dtypes"):
        assert any(line.split()[0] == word for line in lines if line.startswith(" "))


def test_limits_are_those_that_were_measured(
    tenfold: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "tenfold bench measures them" in tenfold("doctor").out
    machine_limits.store_rates({"copy": 2.5e9, "multiply-add float32": 1e9})
    out = tenfold("doctor").out
    assert "2.50 GB/s" in out
    assert "1.00 G multiply-adds/s" in out


def test_missing_distribution_is_a_problem(
    tenfold: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "rich":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    done = tenfold("doctor")
    assert done.code == 0
    assert "rich is not installed; install it with: pip install rich" in done.out


def test_unknown_variable_is_a_problem(tenfold: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_TREADS", "2")
    assert "TENFOLD_TREADS is set in the environment but is not a setting" in tenfold("doctor").out


def test_value_that_does_not_fit_is_a_problem(
    tenfold: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENFOLD_TIER", "7")
    monkeypatch.setenv("TENFOLD_DEVICE", "abacus")
    out = tenfold("doctor").out
    assert "TENFOLD_TIER='7' does not fit: '7' is none of auto, 0, 1" in out
    assert "TENFOLD_DEVICE='abacus' does not fit" in out


def test_machine_that_says_nothing_is_reported(
    tenfold: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "processor", lambda: ("", frozenset()))
    monkeypatch.setattr(doctor, "group_processors", lambda: None)
    out = tenfold("doctor").out
    assert "none known" in out
    assert "no limit" in out
