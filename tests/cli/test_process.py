"""The command as a process of its own: exit codes, streams, an empty PATH, a terminal, a pipe."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.inspect.progress import Progress

Command = Callable[..., Any]


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tenfold` with an environment of just these variables, and an empty PATH."""
    return subprocess.run(
        [sys.executable, "-m", "tenfold", *words],
        cwd=folder,
        env={"PATH": "", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_demo_runs_with_an_empty_path(folder: Path) -> None:
    done = run(folder, "demo", "-o", "a.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "a.png").stat().st_size > 100_000
    first, last = re.findall(r"loss ([\d.]+) -> ([\d.]+)", done.stdout)[0]
    assert float(last) < 0.6 * float(first)


def test_eval_runs_as_a_process(folder: Path) -> None:
    done = run(folder, "eval", "x + 1", "x=a.npy", "-o", "out.npy")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    np.testing.assert_array_equal(np.load(folder / "out.npy"), np.load(folder / "a.npy") + 1)


def test_failure_is_one_line_and_a_code_without_a_traceback(folder: Path) -> None:
    done = run(folder, "eval", "x @ x", "x=a.npy")
    assert (done.returncode, done.stdout) == (4, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("tenfold: ")


def test_bytes_that_are_no_text_are_refused_in_one_line(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"tenfold", b"eval", b"x + \xff", b"x=\xff.npy"],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"Traceback" not in done.stderr


def test_help_is_shown_without_words(folder: Path) -> None:
    done = run(folder)
    assert "Usage:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_command(tenfold: Command) -> None:
    commands = ("demo", "eval", "explain", "doctor")
    for words in (["--help"], ["-h"]):
        assert all(command in tenfold(*words).out for command in commands)
    for command in commands:
        shown = tenfold(command, "--help").out
        assert "Usage:" in shown
        assert "\\b" not in shown  # click's mark, for itself


def test_reader_that_goes_away_is_no_traceback(folder: Path) -> None:
    np.save(folder / "long.npy", np.arange(900.0))
    words = [sys.executable, "-m", "tenfold", "eval", "x", "x=long.npy"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            words, cwd=folder, stdout=closed, stderr=subprocess.PIPE, text=True, check=False,
            timeout=120,
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def everything(descriptor: int) -> str:
    """What a terminal was sent until now."""
    os.set_blocking(descriptor, False)
    parts = []
    try:
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts).decode()


def test_progress_is_shown_on_a_terminal_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("tenfold.inspect.progress.SHOW_AFTER_SECONDS", 0.0)
        monkeypatch.setenv("TERM", "xterm")
        with Progress() as progress:
            progress.stage("reading [a].npz", 100)
            progress.update(50, 100)
            progress.advance(50)
            assert progress.timer.finished.wait(10)
            progress.timer.join(10)
        terminal.flush()
        shown = everything(ours)
    os.close(ours)
    assert "reading [a].npz" in shown
    assert "100%" in shown


def test_progress_is_silent_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.stage("reading")
        progress.update(1, 2)
        progress.advance(1)
    assert capfd.readouterr() == ("", "")


def test_progress_is_not_shown_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("tenfold.inspect.progress.SHOW_AFTER_SECONDS", 3600.0)
        with Progress() as progress:
            progress.stage("reading")
        terminal.flush()
        assert everything(ours) == ""
    os.close(ours)


INTERRUPTED = """
import sys
import tenfold_command
class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
tenfold_command.main()
"""


@pytest.mark.parametrize(
    "module", ["tenfold", "tenfold._native", "tenfold.engine.engine", "tenfold.cli.main"]
)
def test_interrupt_while_modules_are_imported_is_one_line_and_code_130(module: str) -> None:
    code = INTERRUPTED.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "tenfold: interrupted; no file was changed\n"
