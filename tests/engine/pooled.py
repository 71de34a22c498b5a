"""What processes of a pool compute: a module of its own, which each of them can import."""

from __future__ import annotations

import tenfold as tn


def twice(x: float) -> float:
    with tn.Engine(threads=2) as engine:
        return float(engine.push(tn.operators.multiply, x, 2.0).get())


def twice_by_default(x: float) -> float:
    return float(tn.engine().push(tn.operators.multiply, x, 2.0).get())
