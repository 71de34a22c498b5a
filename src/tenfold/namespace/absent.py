"""Missing names: the AttributeError for names that the public namespace and Array lack.

Takes the module's name and the name asked for, hands on the error: near names, and for a name of
NumPy's the operation that answers for it, the function of `tenfold.numpy`, or how the same is
written here. For an attribute of an Array or a Generator the same.

>>> print(missing_name_error("tenfold", "cumsum"))
module 'tenfold' has no attribute 'cumsum'; write tn.cumulative_sum(x, axis=...)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import numpy as np

from tenfold._native import Array
from tenfold.caches import memoized
from tenfold.core.op import OPS, Operation
from tenfold.deprecation import RENAMED_NAMES, warn_renamed
from tenfold.interop.numpy_dispatch import (
    EQUIVALENTS,
    implementation_of,
    public_name,
    similar_names,
)
from tenfold.namespace.absent_names import ABSENT_NAMES, ATTRIBUTES, GENERATORS, PEER_NAMES, SEED

NO_NAMES: Mapping[str, str] = MappingProxyType({})
LAZY = {
    "numpy": "tenfold.numpy",
    "lib": "tenfold.numpy.lib",
    "load_function": "tenfold.io.function_reader:load_function",
    "explain": "tenfold.inspect.explain:explain",
    "profile": "tenfold.inspect.profile:profile",
    "Profile": "tenfold.inspect.profile:Profile",
    "testing": "tenfold.testing",
    **{name: f"tenfold.numpy:{name}" for name in ("gradient", "median", "quantile", "transpose")},
}
"""Names of `tenfold` that are imported at their first use: NumPy's namespace, functions beyond the
standard that libraries (xarray) call in the namespace of an array, and what few programs use.
"""


def missing_name_error(module: str, name: str) -> AttributeError:
    """Return the error, to be raised, for a name that a public module does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    return AttributeError("; ".join(filter(None, (text, _remedy(module, name)))), name=name)


def _remedy(module: str, name: str) -> str:
    has_names_of_numpy = module.startswith("tenfold.numpy")
    submodule = module.removeprefix("tenfold").removeprefix(".numpy").lstrip(".")
    if has_names_of_numpy and name in ABSENT_NAMES[submodule]:
        return ABSENT_NAMES[submodule][name]
    if name.startswith("_"):
        return ""
    if not submodule and not has_names_of_numpy and name in PEER_NAMES:
        return PEER_NAMES[name]
    function, operation = _in_numpy(getattr(np, submodule, np), name)
    if operation is not None:
        return f"use {public_name(operation)}"
    if name in EQUIVALENTS:
        return f"write {EQUIVALENTS[name]}"
    if submodule == "random" and callable(function):
        return SEED
    page = f".{submodule}" if submodule in ABSENT_NAMES and submodule else ""
    ours: Any = importlib.import_module("tenfold.numpy")
    names = (getattr(ours, submodule) if page else ours).__all__
    if name in names:
        return f"use tenfold.numpy{page}.{name}"
    if name in ABSENT_NAMES[""]:
        return ABSENT_NAMES[""][name]
    if callable(function):
        return f"use np{page}.{name}(np.asarray(x)), which waits"
    if has_names_of_numpy:
        return _did_you_mean([f"{module}.{match}" for match in _close(name, names)])
    return _did_you_mean(similar_names(name))


def _in_numpy(module: ModuleType, name: str) -> tuple[Any, Operation[...] | None]:
    """Return what a module of NumPy has of a name, and the operation that implements it."""
    value = vars(module).get(name)  # getattr may warn of an old name
    return value, implementation_of(value) if callable(value) else None


def _close(name: str, names: Iterable[str]) -> list[str]:
    import difflib  # imported only for errors

    return difflib.get_close_matches(name, names, n=2, cutoff=0.75)


def _did_you_mean(suggestions: list[str]) -> str:
    return f"did you mean {' or '.join(suggestions)}?" if suggestions else ""


def missing_generator_attribute(kind: str, name: str) -> AttributeError:
    """Return the error, to be raised, for an attribute that a class of generators does not have."""
    text = f"{kind!r} object has no attribute {name!r}"
    return AttributeError("; ".join(filter(None, (text, GENERATORS.get(name)))), name=name)


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
        return ATTRIBUTES[name]
    operation = OPS.get(name) or OPS.get(f"linalg.{name}") or _in_numpy(np, name)[1]
    if operation is not None:
        return f"write {public_name(operation)}(x{', ...' if _takes_more(operation) else ''})"
    if name in EQUIVALENTS:
        return f"write {EQUIVALENTS[name]}"
    attributes = [x for x in dir(Array) if not x.startswith("_") and x != "nnz"]  # not of all
    return _did_you_mean([f"x.{attribute}" for attribute in _close(name, attributes)])


def _takes_more(operation: Operation[...]) -> bool:
    """Whether a call needs more than one argument."""
    parameters = operation.public_signature.parameters.values()
    return sum(parameter.default is parameter.empty for parameter in parameters) > 1


def module_getattr(
    module: str, public: Mapping[str, Any] | None = None, lazy: Mapping[str, str] = NO_NAMES
) -> Callable[[str], Any]:
    """Return a module's `__getattr__`: a name of `lazy` is imported; a deprecated name gives what
    `public` has under its new name; any other is refused.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807  # its name in a module
        if name in lazy:
            source, _, function = lazy[name].partition(":")
            imported = importlib.import_module(source)
            return getattr(imported, function) if function else imported
        if public is not None and RENAMED_NAMES.get(name) in public:
            return public[warn_renamed(module, name)]
        raise missing_name_error(module, name)

    return __getattr__
