"""What tests of devices share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tenfold as tn
from tenfold.jit import program


@pytest.fixture
def own_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without programs; no plan outlives those that are made: it would run code of theirs."""
    tn.trim()
    with monkeypatch.context() as patch:
        patch.setattr(program, "PROGRAMS", program.Programs())
        yield
        program.PROGRAMS.wait_idle()  # what a test has patched is not for others
        tn.trim()
