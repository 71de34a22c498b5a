"""Names the public namespace does not have: what the AttributeError says of them.

Takes the module's name and the name asked for, hands on the error: near names, and for a name of
NumPy's the operation that answers for it, or how the same is written here.

>>> print(absent("tenfold", "cumsum"))
module 'tenfold' has no attribute 'cumsum'; write tn.cumulative_sum(x, axis=...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tenfold.interop.answers import WRITTEN, answer, public_name, similar


def absent(module: str, name: str) -> AttributeError:
    """Return the error, to be raised, for a name that a public module does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        text = "; ".join(filter(None, (text, _remedy(module, name))))
    return AttributeError(text, name=name)


def _remedy(module: str, name: str) -> str:
    theirs: Any = np.linalg if module.endswith(".linalg") else np
    function = getattr(theirs, name, None)
    operation = answer(function) if callable(function) else None
    if operation is not None:
        return f"use {public_name(operation)}"
    if name in WRITTEN:
        return f"write {WRITTEN[name]}"
    if callable(function):
        prefix = "np.linalg" if theirs is np.linalg else "np"
        return f"use {prefix}.{name}(np.asarray(x)), which waits"
    near = similar(name)
    return f"did you mean {' or '.join(near)}?" if near else ""


def refusing(module: str) -> Callable[[str], NoReturn]:
    """Return a module's `__getattr__`."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807  # what it is called in a module
        raise absent(module, name)

    return __getattr__
