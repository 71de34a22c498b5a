"""What processes of a pool compute: a module of its own, which each of them can import."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import tenfold as tn


def twice(x: float) -> float:
    with tn.Engine(threads=2) as engine:
        return float(engine.push(tn.operators.multiply, x, 2.0).get())


def twice_by_default(x: float) -> float:
    return float(tn.engine().push(tn.operators.multiply, x, 2.0).get())


HELD: list[AbstractContextManager[None]] = []


class Write(tn.Operator):
    """Writes a file; impure."""

    def run(self, path: str) -> None:
        Path(path).write_text("written", encoding="utf-8")


def push_and_return(path: str) -> None:
    """Push work that nobody waits for, and that does not run before the function has returned."""
    engine = tn.Engine(threads=1)
    HELD.append(engine.hold())
    HELD[-1].__enter__()
    engine.push(Write(), path)
