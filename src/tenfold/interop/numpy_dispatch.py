"""NumPy dispatch: the operation that implements a NumPy function, or the error without one.

Takes a NumPy function, returns the operation whose declaration names it in its `numpy` field.

>>> import numpy as np
>>> implementation_of(np.exp)
<op exp>
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tenfold import settings
from tenfold.core.op import OPS, Operation
from tenfold.core.trace_state import user_stacklevel
from tenfold.errors import FallbackWarning, UnsupportedError

# Names that tenfold does not have, with equivalent expressions. Table.
EQUIVALENTS = {
    "append": "tn.concat([x, y])",
    "array": "tn.asarray(...)",
    "average": "tn.mean(x), or tn.sum(x * w) / tn.sum(w)",
    "block": "tn.concat([tn.concat([A, B], axis=1), tn.concat([C, D], axis=1)])",
    "bool_": "tn.bool",
    "column_stack": "tn.stack([x, y], axis=1)",
    "copy": "copy.copy(x)",
    "cov": "d @ d.T / (n - 1) with d = x - tn.mean(x, axis=1, keepdims=True)",
    "cumprod": "tn.cumulative_prod(x, axis=...)",
    "cumsum": "tn.cumulative_sum(x, axis=...)",
    "divmod": "divmod(x, y)",
    "dot": "x @ y",
    "fabs": "abs(x)",
    "fromfile": "tn.asarray(np.fromfile(path, dtype))",
    "genfromtxt": "tn.asarray(np.genfromtxt(path))",
    "hstack": "tn.concat([x, y], axis=...)",
    "identity": "tn.eye(n)",
    "inner": "tn.vecdot(x, y)",
    "isclose": "abs(x - y) <= tolerance",
    "jit": "@tn.function to trace a function once; an expression is compiled without it",
    "load": "tn.asarray(np.load(path))",
    "loadtxt": "tn.asarray(np.loadtxt(path))",
    "matvec": "(A @ x[..., None])[..., 0]",
    "nan_to_num": "tn.where(tn.isnan(x), 0, x)",
    "nanmean": "tn.sum(tn.where(tn.isnan(x), 0, x)) / tn.sum(~tn.isnan(x))",
    "nansum": "tn.sum(tn.where(tn.isnan(x), 0, x))",
    "ptp": "tn.max(x) - tn.min(x)",
    "ravel": "tn.reshape(x, (-1,))",
    "row_stack": "tn.concat([x, y], axis=0)",
    "save": "np.save(path, x)",
    "savetxt": "np.savetxt(path, x)",
    "savez": "np.savez(path, name=x)",
    "vdot": "tn.vecdot(x, y)",
    "vstack": "tn.concat([x, y], axis=0)",
}

_implementations: dict[Callable[..., Any], Operation[...]] = {}
_indexed_ops: list[Operation[...]] = []
_warned: set[str] = set()  # names of functions; under the GIL


def implementation_of(function: Callable[..., Any]) -> Operation[...] | None:
    """Return the operation that implements a NumPy function, or None."""
    operation = _implementations.get(function)
    if operation is None and len(_indexed_ops) != len(OPS):
        _index_ops()
        operation = _implementations.get(function)
    return operation


def _index_ops() -> None:
    """Read the operations declared since the last call; the first declaration wins."""
    _indexed_ops[:] = OPS.values()
    for operation in _indexed_ops:
        for function in operation.numpy:
            _implementations.setdefault(function, operation)


def public_name(operation: Operation[...]) -> str:
    """Return the name a user writes, as in `tn.linalg.inv`."""
    return f"tn.{operation.full_name}"


def numpy_name(function: Callable[..., Any]) -> str:
    """Return the name a user writes of a NumPy function, as in `np.linalg.inv`."""
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").lstrip(".")
    public = module if module in ("linalg", "fft") else ""
    return ".".join(filter(None, ("np", public, getattr(function, "__name__", repr(function)))))


def unsupported_function(function: Callable[..., Any], method: str = "") -> UnsupportedError:
    """Return the error, to be raised, for a NumPy function, or a ufunc's method, not lazy here."""
    name = ".".join(filter(None, (numpy_name(function), method)))
    remedy = f"convert first, as in {name}(np.asarray(x)), which waits"
    base_name = name.rpartition(".")[2]
    same_named = OPS.get(name.removeprefix("np.")) or OPS.get(f"linalg.{base_name}")
    equivalent = (
        f"{public_name(same_named)}(...)" if same_named is not None else EQUIVALENTS.get(base_name)
    )
    if equivalent:
        remedy = f"write {equivalent}, or {remedy}"
    return UnsupportedError(name, "tenfold has no lazy form of it", remedy=remedy)


def check_fallback(function: Callable[..., Any], method: str = "") -> None:
    """Refuse a NumPy function that converts its Arrays, or warn of it once, as the setting says."""
    policy = settings.get("numpy_fallback")
    if policy == "raise":
        raise unsupported_function(function, method)
    name = ".".join(filter(None, (numpy_name(function), method)))
    if policy == "warn" and name not in _warned:
        _warned.add(name)
        text = (
            f"{name} converts Arrays to ndarrays, which waits: tenfold has no lazy form of it; "
            "tn.options(numpy_fallback='convert') accepts that, 'raise' refuses"
        )
        warnings.warn(text, FallbackWarning, stacklevel=user_stacklevel())


def similar_names(name: str) -> list[str]:
    """Return the public names of operations with a spelling similar to `name`, best first."""
    import difflib  # imported only for errors

    full_names = {key.rpartition(".")[2]: key for key in reversed(OPS)}
    matches = difflib.get_close_matches(name, full_names, n=3, cutoff=0.75)
    return [public_name(OPS[full_names[key]]) for key in matches]
