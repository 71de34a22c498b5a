"""What the tests of the commands share: files to compute with, and ways to run a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tenfold.cli.main import program


@dataclass(frozen=True)
class Done:
    """A command that has ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of a test, with a.npy (2, 3), b.npz (keys one, two) and n.npy (3,)."""
    monkeypatch.chdir(tmp_path)
    values = np.arange(1.0, 7.0).reshape(2, 3)
    np.save("a.npy", values)
    np.savez("b.npz", one=values * 2, two=values * 3)
    np.save("n.npy", np.arange(3))
    return tmp_path


@pytest.fixture
def tenfold() -> Command:
    """Run `tenfold` with these words, inside this process."""

    def run(*words: str) -> Done:
        result = CliRunner().invoke(program, list(words), prog_name="tenfold")
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def refused(tenfold: Command) -> Callable[..., str]:
    """Run a command that must fail with this code and one line on stderr, which is handed on."""

    def run(code: int, *words: str) -> str:
        done = tenfold(*words)
        assert done.code == code, done
        assert done.out == ""
        lines = done.err.splitlines()
        assert len(lines) == 1, done.err
        assert lines[0].startswith("tenfold: ")
        assert lines[0].isprintable()
        return lines[0]

    return run
