"""Missing names: the AttributeError for names that the public namespace and Array lack.

Takes the module's name and the name asked for, hands on the error: near names, and for a name of
NumPy's the operation that answers for it, or how the same is written here. For an attribute of an
Array the same.

>>> print(missing_name_error("tenfold", "cumsum"))
module 'tenfold' has no attribute 'cumsum'; write tn.cumulative_sum(x, axis=...)
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import numpy as np

from tenfold._native import Array
from tenfold.caches import memoized
from tenfold.core.op import OPS, Operation
from tenfold.deprecation import RENAMED, warn_renamed
from tenfold.interop.numpy_dispatch import (
    EQUIVALENTS,
    implementation_of,
    public_name,
    similar_names,
)

# What arrays of other libraries have and Array has not. Table.
ATTRIBUTES = {
    "H": "tn.conj(x.mT)",
    "cpu": "x.to_device('cpu')",
    "data": "memoryview(x), which waits",
    "numpy": "np.asarray(x), which waits",
    "ptp": "tn.max(x) - tn.min(x)",
    "to": "x.to_device(device), or tn.astype(x, dtype)",
}


NOTHING: Mapping[str, str] = MappingProxyType({})
LAZY = {
    "numpy": "tenfold.numpy",
    "lib": "tenfold.numpy.lib",
    **{name: f"tenfold.numpy:{name}" for name in ("gradient", "median", "quantile", "transpose")},
}
"""Names of `tenfold` that are imported at their first use: NumPy's namespace, and functions beyond
the standard that libraries (xarray) call in the namespace of an array.
"""


def missing_name_error(module: str, name: str) -> AttributeError:
    """Return the error, to be raised, for a name that a public module does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        text = "; ".join(filter(None, (text, _remedy(module, name))))
    return AttributeError(text, name=name)


def _remedy(module: str, name: str) -> str:
    submodule = module.partition(".")[2]
    numpy_module: Any = getattr(np, submodule, np)
    function = getattr(numpy_module, name, None)
    if isinstance(function, ModuleType):
        return f"write np.{name} with np.asarray(x), which waits"
    operation = implementation_of(function) if callable(function) else None
    if operation is not None:
        return f"use {public_name(operation)}"
    if name in EQUIVALENTS:
        return f"write {EQUIVALENTS[name]}"
    if submodule == "random" and callable(function):
        return "make a generator: rng = tn.random.default_rng(seed)"
    if callable(function):
        prefix = "np" if numpy_module is np else f"np.{submodule}"
        return f"use {prefix}.{name}(np.asarray(x)), which waits"
    suggestions = similar_names(name)
    return f"did you mean {' or '.join(suggestions)}?" if suggestions else ""


def missing_attribute(_self: Array, name: str) -> NoReturn:
    """Refuse an attribute that Array does not have; native code refuses private names itself.

    >>> import tenfold as tn
    >>> tn.zeros(3).ptp
    Traceback (most recent call last):
    ...
    AttributeError: 'tenfold.Array' object has no attribute 'ptp'; write tn.max(x) - tn.min(x)
    """
    text = f"'tenfold.Array' object has no attribute {name!r}"
    raise AttributeError("; ".join(filter(None, (text, _attribute_remedy(name)))), name=name)


@memoized("attribute remedies", 256, "libraries try attributes of others, at 0.2 ms a remedy")
def _attribute_remedy(name: str) -> str:
    if name in ATTRIBUTES:
        return f"write {ATTRIBUTES[name]}"
    operation = (
        OPS.get(name) or OPS.get(f"linalg.{name}") or implementation_of(getattr(np, name, len))
    )
    if operation is not None:
        return f"write {public_name(operation)}(x{', ...' if _takes_more(operation) else ''})"
    if name in EQUIVALENTS:
        return f"write {EQUIVALENTS[name]}"
    if hasattr(np.ndarray, name):
        return f"use np.asarray(x).{name}, which waits"
    attributes = [attribute for attribute in dir(Array) if not attribute.startswith("_")]
    suggestions = difflib.get_close_matches(name, attributes, n=2, cutoff=0.75)
    return (
        f"did you mean {' or '.join(f'x.{attribute}' for attribute in suggestions)}?"
        if suggestions
        else ""
    )


def _takes_more(operation: Operation[...]) -> bool:
    """Whether a call needs more than one argument."""
    parameters = operation.public_signature.parameters.values()
    return sum(parameter.default is parameter.empty for parameter in parameters) > 1


def module_getattr(
    module: str, public: Mapping[str, Any] | None = None, lazy: Mapping[str, str] = NOTHING
) -> Callable[[str], Any]:
    """Return a module's `__getattr__`: a name of `lazy` is imported; a deprecated name gives what
    `public` has under its new name; any other is refused.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807  # its name in a module
        if name in lazy:
            source, _, function = lazy[name].partition(":")
            imported = importlib.import_module(source)
            return getattr(imported, function) if function else imported
        if public is not None and RENAMED.get(name) in public:
            return public[warn_renamed(module, name)]
        raise missing_name_error(module, name)

    return __getattr__
