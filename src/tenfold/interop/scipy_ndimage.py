"""Targets of `scipy.ndimage`: `output=` may be an Array, which its functions in C cannot write to.

Takes the module when it is imported, and wraps its functions with such a parameter: a call that
names an Array computes into an ndarray, whose values are assigned to the Array.

>>> from scipy import ndimage
>>> import tenfold as tn
>>> target = tn.zeros(3)
>>> ndimage.uniform_filter(tn.asarray([0.0, 3.0, 0.0]), 3, output=target) is target, target.tolist()
(True, [1.0, 1.0, 1.0])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.interop.materialize import value_of

TARGETS = ("output", "distances", "indices")
"""The parameters that name an array to write to."""


def deliver_outputs(module: ModuleType) -> None:
    """Let the functions of `scipy.ndimage` write to Arrays."""
    for name, function in [*vars(module).items()]:
        if not name.startswith("_") and isinstance(function, FunctionType):
            names = [*inspect.signature(function).parameters]
            targets = {x: names.index(x) for x in TARGETS if x in names}
            if targets:
                setattr(module, name, _delivering(function, targets))


def _delivering(function: Callable[..., Any], targets: dict[str, int]) -> Callable[..., Any]:
    @wraps(function)
    def delivering(*args: Any, **options: Any) -> Any:
        given = {name: args[at] for name, at in targets.items() if at < len(args)}
        given |= {name: options[name] for name in targets if name in options}
        written = [x for x in given.values() if isinstance(x, Array)]
        if not written:
            return function(*args, **options)
        name = f"scipy.ndimage.{function.__name__}"
        copies = {id(x): np.array(value_of(x, name)) for x in written}

        def values(x: Any) -> Any:
            return copies.get(id(x), value_of(x, name)) if isinstance(x, Array) else x

        result = function(*map(values, args), **{key: values(x) for key, x in options.items()})
        for x in written:
            x[...] = copies[id(x)]
        arrays = {id(copies[id(x)]): x for x in written}
        if isinstance(result, tuple):
            return tuple(arrays.get(id(x), x) for x in result)
        return arrays.get(id(result), result)

    delivering.__module__ = "scipy.ndimage"  # where pickle finds it
    return delivering


NDIMAGE_REGISTRARS = {"scipy.ndimage": deliver_outputs}
