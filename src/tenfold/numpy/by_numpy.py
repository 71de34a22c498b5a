"""What NumPy does and says where Tenfold refuses: foreign elements, and the classes of errors.

Takes a function and NumPy's of the same name, hands on a function that NumPy computes for elements
which only NumPy holds, and whose errors have the classes of NumPy's.

>>> from tenfold.numpy.manipulation import ravel
>>> with settings.override(numpy_fallback="convert"):
...     or_by_numpy(ravel, np.ravel)([["a"], ["b"]]).tolist()
['a', 'b']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any, ParamSpec

import numpy as np

from tenfold import settings
from tenfold._native import Array
from tenfold.errors import ExplainedError, ForeignDTypeError, UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.interop.numpy_dispatch import check_fallback, numpy_name
from tenfold.numpy.arguments import deliver, export, imported, may_wait

P = ParamSpec("P")
CLASSES_OF_NUMPYS = (
    np.exceptions.AxisError,
    np.linalg.LinAlgError,
    IndexError,
    OverflowError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)
"""The classes of NumPy's errors, each before its bases."""
LIKE_FUNCTIONS = (np.empty_like, np.zeros_like, np.ones_like, np.full_like)
"""Functions whose result is of the library of their first argument: a caller, as Dask, takes an
ndarray only where that refuses."""
MAX_PLACEHOLDERS = 100_000
"""Elements of arrays for which NumPy is asked what its error is."""


def by_numpy(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what NumPy's function returns for elements that only NumPy holds; computes at the
    call. Raises the ForeignDTypeError that is handled under `numpy_fallback="raise"`, in a trace,
    and where nothing may wait.
    """
    is_of_array = function in LIKE_FUNCTIONS and isinstance(args[0], Array)
    if is_of_array or not may_wait() or settings.get("numpy_fallback") == "raise":
        raise
    if any(isinstance(value, Array) for value in (*args, *kwargs.values())):
        check_fallback(function)
    name = numpy_name(function)
    if isinstance(kwargs.get("out"), Array):
        values = np.array(value_of(kwargs["out"], name))
        function(*export(args, name), **export(kwargs, name) | {"out": values})
        return deliver(asarray(values), kwargs["out"])
    return imported(function(*export(args, name), **export(kwargs, name)))


def with_class_of_numpys(
    error: ExplainedError, theirs: Callable[..., Any], args: Any, kwargs: Any
) -> ExplainedError:
    """Return the error of a call, named; it has the class of NumPy's too, whose text it quotes."""
    arrays = [value for value in args if isinstance(value, Array)]
    named = error.completed(theirs.__name__, arrays)
    leaves = [*_leaves(args), *_leaves(kwargs)]
    num_elements = sum([x.size for x in leaves if isinstance(x, (Array, np.ndarray))])
    calls_back = any(callable(x) and not isinstance(x, type) for x in leaves)
    if num_elements > MAX_PLACEHOLDERS or calls_back or isinstance(error, UnsupportedError):
        return named
    try:
        theirs(*placeholders(args), **placeholders(kwargs))
    except Exception as other:  # noqa: BLE001  # of any class, as NumPy says
        kind = next((x for x in CLASSES_OF_NUMPYS if isinstance(other, x)), None)
        if kind is None or "read-only" in str(other):
            return named
        text = f"{named.rule}; NumPy: {other}"
        ours: Any = type(named)
        both: Callable[..., ExplainedError] = _both_classes(ours, kind)
        return both(named.operation, text, named.operands, named.remedy)
    return named


@cache
def _both_classes(ours: Any, theirs: type[Exception]) -> Any:
    if issubclass(ours, theirs):
        return ours
    methods = {"__reduce__": lambda self: (ours, (str(self),)), "__str__": ours.__str__}
    return type(ours.__name__, (ours, theirs), methods)


def placeholders(value: Any) -> Any:
    """Return arguments with ndarrays of zeros in the place of Arrays, and of ndarrays, which NumPy
    could write to: of their shapes and dtypes, without values.
    """
    if isinstance(value, (Array, np.ndarray)):
        return np.zeros(value.shape, value.dtype)
    if type(value) in (list, tuple):
        return type(value)(map(placeholders, value))
    if type(value) is dict:
        return {name: placeholders(item) for name, item in value.items()}
    return value


def _leaves(value: Any) -> Iterator[Any]:
    items = value.values() if type(value) is dict else value
    if type(value) not in (list, tuple, dict):
        yield value
        return
    for item in items:
        yield from _leaves(item)


def or_by_numpy(function: Callable[P, Any], theirs: Callable[..., Any]) -> Callable[P, Any]:
    """Let NumPy's function compute with elements that only NumPy holds; name it in errors."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return function(*args, **kwargs)
        except ForeignDTypeError:
            return by_numpy(theirs, args, kwargs)
        except ExplainedError as error:
            raise with_class_of_numpys(error, theirs, args, kwargs) from None

    return call
