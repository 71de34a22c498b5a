"""`__array_ufunc__`: dispatches NumPy ufuncs and ndarray operators on Arrays to lazy operations.

Takes a ufunc, its called method, and the arguments; returns a lazy Array. A call with an ndarray as
its target, as `ndarray += x`, computes at once, into that ndarray.

>>> from tenfold.interop.asarray import asarray
>>> np.add(np.float32(0.5), asarray([1, 2], dtype="float32")).dtype
dtype('float32')
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.array.array_function import array_like, tenfold_function
from tenfold.errors import ForeignDTypeError
from tenfold.interop.numpy_dispatch import check_fallback, implementation_of

LAZY_METHODS = {
    "__call__": frozenset[str](),
    "outer": frozenset[str](),
    "at": frozenset({"add"}),
    "reduce": frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"}),
    "accumulate": frozenset({"add", "multiply"}),
}
"""The methods that are lazy, each with the ufuncs for which it is; empty: all with an operation."""


_OWN_OPERANDS = frozenset((Array, np.ndarray, bool, int, float, complex, *np.sctypeDict.values()))
"""Usual types of operands that are not another library's."""


def array_ufunc(_self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Dispatch a ufunc; NotImplemented if an operand is an array of another library."""
    if any(_is_foreign(value) for value in (*inputs, *kwargs.get("out", ()))):
        return NotImplemented
    operation = implementation_of(ufunc)
    if method == "__call__" and not kwargs and operation is not None:
        with suppress(ForeignDTypeError):  # the form lets NumPy compute
            return operation(*map(array_like, inputs))
    from tenfold.numpy.ufuncs import Ufunc  # at the first call, as `tenfold_function`

    form = tenfold_function(ufunc)
    if not isinstance(form, Ufunc):
        form = Ufunc(ufunc, operation)
    if form.function is None or not _is_lazy(ufunc, method):
        check_fallback(ufunc, "" if method == "__call__" else method)
    return (form if method == "__call__" else getattr(form, method))(*inputs, **kwargs)


def _is_lazy(ufunc: np.ufunc, method: str) -> bool:
    names = LAZY_METHODS.get(method)
    return names is not None and (not names or ufunc.__name__ in names)


def _is_foreign(value: object) -> bool:
    """Whether another library overrides NumPy's ufuncs for this value."""
    if type(value) in _OWN_OPERANDS:
        return False
    ufunc_override = getattr(type(value), "__array_ufunc__", None)
    return ufunc_override is not None and not isinstance(value, (Array, np.ndarray, np.generic))
