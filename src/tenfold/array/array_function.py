"""`__array_function__`: dispatches NumPy functions on Arrays to the functions of `tenfold.numpy`.

Takes a NumPy function with its arguments, returns what `tenfold.numpy` has of that name: a lazy
Array. A function that computes at the call, or that has no form there, gets ndarrays, as the
setting `numpy_fallback` says.

>>> from tenfold.interop.asarray import asarray
>>> np.sum(asarray([[1, 2], [3, 4]]), axis=0).tolist()
[4, 6]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.interop.asarray import asarray
from tenfold.interop.numpy_dispatch import check_fallback

Function = Callable[..., Any]

VALUE_FUNCTIONS: frozenset[Function] = frozenset(
    (
        *(np.save, np.savez, np.savez_compressed, np.savetxt),
        *(np.array2string, np.array_repr, np.array_str),
    )
)
"""Functions of values that return no array: they wait, whatever `numpy_fallback` says."""


def array_function(
    _self: Array, function: Function, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Dispatch a NumPy function; NotImplemented if `types` has arrays of another library."""
    if not all(issubclass(type_, (Array, np.ndarray)) for type_ in types):
        return NotImplemented
    from tenfold.numpy.arguments import Immediate  # at the first call, as `tenfold_function`

    form = tenfold_function(function)
    if isinstance(form, Immediate) and function not in VALUE_FUNCTIONS:
        check_fallback(function)
    if form is None:
        check_fallback(function)
        form = Immediate(function)
    return form(*args, **kwargs)


def tenfold_function(function: Function) -> Function | None:
    """Return the function of `tenfold.numpy` that has a NumPy function's name, or None."""
    try:
        return _forms().get(function)
    except TypeError:  # an unhashable callable
        return None


@cache
def _forms() -> dict[Function, Function]:
    """Return the functions and ufuncs of `tenfold.numpy` by those of NumPy."""
    import tenfold.numpy as ours  # at the first call: `import tenfold` takes less time without it

    pairs = [(np, ours), (np.linalg, ours.linalg), (np.fft, ours.fft)]
    pairs.append((np.lib.stride_tricks, ours.lib.stride_tricks))
    return {
        getattr(theirs, name): getattr(mine, name)
        for theirs, mine in pairs
        for name in dir(mine)
        if callable(getattr(theirs, name, None)) and not isinstance(getattr(theirs, name), type)
        if getattr(mine, name) is not getattr(theirs, name)
    }


def array_like(value: Any) -> Any:
    """Convert a list or tuple to an Array; return any other value unchanged."""
    return asarray(value) if isinstance(value, (list, tuple)) else value
