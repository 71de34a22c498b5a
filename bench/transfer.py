"""What it costs to get values into Arrays and out of them, beside NumPy and PyTorch.

Run: python bench/transfer.py (PyTorch is measured when it is installed). Arrays of 8 float64, which
are computed before. Best of 9 rounds in microseconds, one run, by turns.
"""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROUNDS, CALLS = 9, 20_000

ROWS = {
    "np.asarray(x)": ("np.asarray(x)", "torch.from_numpy(a)"),
    "np.array(x)": ("np.array(x)", "np.array(a)"),
    "tn.asarray(a)": ("tn.asarray(a)", "torch.tensor(a)"),
    "tn.asarray(read-only a)": ("tn.asarray(r)", "torch.from_numpy(a)"),
    "tn.asarray(list)": ("tn.asarray([1.0, 2.0, 3.0, 4.0])", "np.asarray([1.0, 2.0, 3.0, 4.0])"),
    "tn.asarray(1.5)": ("tn.asarray(1.5)", "np.asarray(1.5)"),
    "float(s)": ("float(s)", "float(b)"),
    "int(s)": ("int(s)", "int(b)"),
    "s.item()": ("s.item()", "b.item()"),
    "x.tolist()": ("x.tolist()", "a.tolist()"),
    "list(x)": ("list(x)", "list(a)"),
    "[float(v) for v in x]": ("[float(v) for v in x]", "[float(v) for v in a]"),
}
"""By row: Tenfold, and the other library."""


def names() -> dict[str, Any]:
    """The names of all statements: ndarrays a, r, b, Arrays x, s."""
    a = np.arange(8.0)
    r = a.copy()
    r.flags.writeable = False
    x, s = (tn.asarray(a) + 0).wait(), tn.sum(tn.asarray(a)).wait()
    return {"np": np, "tn": tn, "a": a, "r": r, "b": np.asarray(28.0), "x": x, "s": s}


def compare() -> None:
    """Compare the values of every row with those of NumPy."""
    comparison, known = Comparison(), names()
    eager = {**known, "tn": np, "x": known["a"], "s": known["b"]}
    for name, (text, _) in ROWS.items():
        comparison.values(name, np.asarray(eval(text, known)), np.asarray(eval(text, eager)))
    comparison.end()


def main() -> None:
    """Print a table, or compare values."""
    if smoke_wanted():
        compare()
        return
    known = names()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed; its rows are left out")
    else:
        known["torch"] = torch
    print(f"{'':26s} {'tenfold':>8s} {'other':>8s}  other")
    for name, texts in ROWS.items():
        measured = [text for text in texts if "torch" not in text or "torch" in known]
        rounds: list[list[float]] = [[] for _ in measured]
        for _ in range(ROUNDS):
            for text, times in zip(measured, rounds, strict=True):
                times.append(timeit.timeit(text, globals=known, number=CALLS) / CALLS * 1e6)
        cells = " ".join(f"{min(times):8.3f}" for times in rounds)
        print(f"{name:26s} {cells}  {measured[1] if len(measured) > 1 else ''}")


if __name__ == "__main__":
    main()
