"""Writes docs/absent.md from the tables of absent names. Run: python docs/absent.py

Takes the tables of `tenfold.namespace.absent_names` and the features below, runs the snippet of
each row, and hands on the page: what the snippet raises, and the remedy that the error names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tenfold
import tenfold.numpy
from tenfold.interop.numpy_dispatch import EQUIVALENTS
from tenfold.namespace.absent_names import ABSENT_NAMES, ATTRIBUTES, GENERATORS, PEER_NAMES

HEAD = """# What is absent

`make docs` generates this page from `src/tenfold/namespace/absent_names.py` and the namespaces. It
is the one place that says what Tenfold has not. The tests run each snippet, look for each name in
both namespaces, and ask the installed NumPy for names that the page forgets.

A name of NumPy that the main namespace `tn` spells in another way is not in the table. Its error
says where it is:

```python
>>> import tenfold as tn
>>> tn.percentile
Traceback (most recent call last):
...
AttributeError: module 'tenfold' has no attribute 'percentile'; use tenfold.numpy.percentile

```

| Name | Remedy | Snippet | Raises |
|---|---|---|---|
"""


class Feature(NamedTuple):
    """A row without a name of its own; an empty remedy is that of the error."""

    name: str
    snippet: str
    remedy: str = ""


FEATURES = (
    Feature("GPUs", "tn.zeros(3, device='cuda')", "take JAX or PyTorch"),
    Feature("sparse arrays", "tn.sparse", "write tn.csr: docs/storage.md"),
    Feature("masked arrays", "tn.asarray(np.ma.array([1.0]))"),
    Feature("text", "tn.asarray(['a'])"),
    Feature("dates", "tn.asarray(np.zeros(3, 'datetime64[s]'))"),
    Feature("records", "tn.asarray(np.zeros(3, [('a', 'f8')]))"),
    Feature("Python objects", "tn.asarray(np.array([None]))"),
    Feature("extended precision", "tn.asarray(np.zeros(3, 'longdouble'))"),
    Feature("lists as operands of functions of `tn`", "tn.add(tn.zeros(2), [1, 2])"),
    Feature("another dtype in place", "tn.zeros(3).dtype = 'int8'", "write x.astype('int8')"),
)


def rows() -> Iterator[Feature]:
    """Each row: the features, names of other libraries, NumPy's names, attributes."""
    yield from FEATURES
    shown = {row.snippet for row in FEATURES}
    for name in sorted(EQUIVALENTS):
        known = hasattr(tenfold, name) or hasattr(tenfold.numpy, name)
        if not known and f"tn.{name}" not in shown:
            yield Feature(f"`{name}`", f"tn.{name}")
    yield from (
        Feature(f"`{name}`", f"tn.{name}") for name in sorted(PEER_NAMES.keys() - EQUIVALENTS)
    )
    for module, names in ABSENT_NAMES.items():
        place = ".".join(filter(None, ("tenfold.numpy", module)))
        for name in sorted(names):
            yield Feature(f"`{'.'.join(filter(None, (module, name)))}`", f"{place}.{name}")
    yield from (Feature(f"`x.{name}`", f"tn.zeros(3).{name}") for name in sorted(ATTRIBUTES))
    for name in sorted(GENERATORS):
        yield Feature(f"`rng.{name}`", f"tenfold.numpy.random.RandomState(0).{name}")


def error_of(snippet: str) -> Exception:
    """Return what a snippet raises."""
    names: dict[str, Any] = {"tn": tenfold, "tenfold": tenfold, "np": np}
    try:
        exec(snippet, names)  # a row of the table
    except Exception as error:  # noqa: BLE001  # the row says which
        return error
    raise AssertionError(f"{snippet} raises nothing: its row is to be deleted")


def remedy_of(error: Exception) -> str:
    """Return the remedy that an error names."""
    return getattr(error, "remedy", "") or str(error).partition("; ")[2]


def page() -> str:
    """Return the page."""
    lines = []
    for name, snippet, remedy in rows():
        error = error_of(snippet)
        remedy = remedy or remedy_of(error)
        lines.append(f"| {name} | {remedy} | `{snippet}` | {type(error).__name__} |\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
