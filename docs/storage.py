"""Writes the table of docs/storage.md from the rules of the kinds. Run: python docs/storage.py"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenfold as tn

PAGE = Path(__file__).with_suffix(".md")
HEAD = "| Operation |"
N = 4


def _kinds() -> dict[str, tn.Array]:
    ones = tn.ones(N)
    return {
        "diagonal_matrix": tn.diagonal_matrix(ones),
        "permutation": tn.permutation(list(range(N))),
        "csr": tn.csr(ones, list(range(N)), list(range(N + 1)), (N, N)),
    }


DENSE, VECTOR = tn.ones((N, N)), tn.ones(N)
Operation = Callable[[Any], Any]
OPERATIONS: dict[str, Operation] = {
    "x @ v, x @ b": lambda x: x @ DENSE,
    "v @ x, b @ x": lambda x: DENSE @ x,
    "x @ x": lambda x: x @ x,
    "x.T": lambda x: x.T,
    "2 * x, x / 2": lambda x: 2 * x,
    "-x, tn.sin(x)": lambda x: tn.sin(x),
    "x > 1": lambda x: x > 1,
    "x + x.T": lambda x: x + x.T,
    "x * x.T": lambda x: x * x.T,
    "x * v, x * b": lambda x: x * DENSE,
    "x + b": lambda x: x + DENSE,
    "x + 1, tn.exp(x)": lambda x: x + 1,
    "sum, mean": lambda x: tn.sum(x, axis=0),
    "max, min, any, count_nonzero": lambda x: tn.max(x, axis=0),
    "x.diagonal(), trace": lambda x: x.diagonal(),
    "x.astype(dtype)": lambda x: x.astype(tn.float32),
    "x[i]": lambda x: x[0],
    "x[i:j], x[[i, j]]": lambda x: x[0:2],
    "x[i, j]": lambda x: x[0, 0],
    "x[:, j]": lambda x: x[:, 0],
    "linalg.solve(x, v)": lambda x: tn.linalg.solve(x, VECTOR),
    "linalg.cg(x, v)": lambda x: tn.linalg.cg(x, VECTOR).x,
    "linalg.inv(x)": lambda x: tn.linalg.inv(x),
    "linalg.det(x)": lambda x: tn.linalg.det(x),
    "x.to_dense()": lambda x: x.to_dense(),
    "x.to_scipy()": lambda x: tn.asarray(x.to_scipy()),
    "x[i] = 1, np.asarray(x)": lambda x: x.__setitem__(0, 1.0),
}


def _result(operation: Operation, x: tn.Array) -> str:
    """The kind of a result, in words."""
    try:
        with tn.profile() as p:
            result = operation(x)
    except tn.errors.UnsupportedError:
        return "-"
    made_dense = " (made dense)" if p.densified and x.storage != "dense" else ""
    kind = result.storage if hasattr(result, "nnz") else "dense"
    return f"{kind}{made_dense if kind == 'dense' else ''}"


def page() -> str:
    """Return the page with its table made anew."""
    kinds = _kinds()
    lines = [f"{HEAD} {' | '.join(f'`{kind}`' for kind in kinds)} |", "|---|---|---|---|"]
    for name, operation in OPERATIONS.items():
        results = [_result(operation, x) for x in kinds.values()]
        lines.append(f"| `{name}` | {' | '.join(results)} |")
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
