"""`tenfold demo`: a picture is written, the two libraries agree, and failures are one line."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.cli import demo, picture, tree_network

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps: the process of tests/cli/test_process.py trains for as long as a user's."""
    monkeypatch.setattr(tree_network, "SECONDS", 0.0)
    monkeypatch.setattr(tree_network, "MIN_TRAINING_STEPS", 2)


def test_demo_writes_a_picture_and_reports(folder: Path, tenfold: Command) -> None:
    done = tenfold("demo")
    assert done.code == 0, done.err
    content = Path("tenfold-demo.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack_from(">II", content, 16) == (512, 512)
    for words in ("picture: tenfold-demo.png", "99.8% of 1,001,000,000 multiply-adds saved"):
        assert words in done.out
    row = r" ms +[\d.]+x +\d+ ms, (\d+ compiled|kernels from the disk)"
    assert len(re.findall(row, done.out)) == 3
    assert re.search(r"loss 0\.[67]\d -> 0\.[67]\d, 2 steps", done.out)
    assert len(done.out.splitlines()) <= 15


def test_explain_shows_the_expression_and_its_stages(folder: Path, tenfold: Command) -> None:
    done = tenfold("demo", "--explain")
    assert done.code == 0, done.err
    for words in ("image = xp.astype(", "\nexpression: ", "\nscheduled: ", "\nexecuted: "):
        assert words in done.out
    assert "largest difference" in done.out


def test_both_libraries_develop_the_same_picture() -> None:
    photograph = demo.read_photograph()
    ours = np.asarray(picture.develop(tn, tn.asarray(photograph)))
    theirs = picture.develop(np, photograph)
    assert ours.dtype == theirs.dtype == np.float32
    assert ours.shape == photograph.shape
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    levels = picture.to_bytes(np, ours).astype(int) - picture.to_bytes(np, theirs)
    assert np.max(np.abs(levels)) <= 1


def test_photograph_is_the_one_that_its_readme_names() -> None:
    photograph = demo.read_photograph()
    assert photograph.dtype == np.uint8
    assert photograph.shape == (512, 512, 3)
    assert int(photograph.sum(dtype=np.int64)) == 90_124_324


def test_blur_keeps_a_constant_picture_and_the_sum_of_a_point() -> None:
    flat = np.full((20, 20, 3), 0.5, np.float32)
    np.testing.assert_allclose(picture.blur(np, flat, 0), flat, rtol=1e-6)
    point = np.zeros((40, 40, 3), np.float32)
    point[20, 20] = 1
    blurred = picture.blur(np, picture.blur(np, point, 0), 1)
    np.testing.assert_allclose(blurred.sum(axis=(0, 1)), 1, rtol=1e-5)
    np.testing.assert_allclose(blurred[:, 20], blurred[20, :], rtol=1e-6)


def test_long_explanation_is_shortened() -> None:
    long = [f"  {n}" for n in range(1000)]
    text = "\n".join(["one: 1000 steps", *long, "two: 1 step", "  0"])
    assert demo.shorten(text).splitlines() == [
        "one: 1000 steps", *long[:6], "  ... 994 more", "two: 1 step", "  0",
    ]  # fmt: skip
    assert demo.shorten("one\n  two") == "one\n  two"


def test_long_line_of_an_explanation_is_clipped() -> None:
    assert demo.shorten("one\n  " + "x" * 500).splitlines()[1] == f"  {'x' * 94} ..."


def test_picture_of_another_format_is_refused(folder: Path, refused: Command) -> None:
    assert "a.jpg must end with .png" in refused(2, "demo", "-o", "a.jpg")
    assert not Path("a.jpg").exists()


def test_demo_that_cannot_write_says_so_in_one_line(folder: Path, refused: Command) -> None:
    assert "directory does not exist" in refused(5, "demo", "-o", "missing/a.png")
    Path("a.png").mkdir()
    assert "not a regular file" in refused(5, "demo", "-o", "a.png")
