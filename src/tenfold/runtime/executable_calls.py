"""Executable calls: the Python functions that a replay calls for steps without a kernel.

Takes a step and its caller, hands on a function of Values and numbers, for `Executable.call`.

    plan.call(calling(called, caller, temporary), inputs, outputs, name)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Value
from tenfold.runtime import reference
from tenfold.runtime.reference import ReferenceCall
from tenfold.storage import dense

Caller = Callable[..., tuple[Value, ...]]
"""Computes a call from its node and the arrays of its operands; `in_place=True` in the memory of
the one that it adds to, and returns nothing."""


def calling(
    called: ReferenceCall, caller: Caller, temporary: bool
) -> Callable[..., Sequence[Value] | None]:
    """Return what a replay calls: None where it fails for its values."""
    of_values = called.op.on_values

    def on_values(*inputs: Any) -> Sequence[Value] | None:
        try:
            assert of_values is not None, "it is there where this is called"
            made = of_values([_value(x, called.type.device) for x in inputs], *called.params)
        except (MemoryError, reference.ReferenceFailure):
            return None
        for name in ("calls", "launches", *["temporaries"] * temporary):
            _native.count(name)
        return made

    def call(*inputs: Any) -> Sequence[Value] | None:
        given = [dense.export(x) if isinstance(x, Value) else np.asarray(x) for x in inputs]
        try:
            made = caller(called, given)
        except (MemoryError, reference.ReferenceFailure):
            return None
        if temporary:
            _native.count("temporaries")
        return made

    return call if of_values is None else on_values


def _value(x: Any, device: str) -> Value:
    return x if isinstance(x, Value) else dense.adopt(np.asarray(x), device)
