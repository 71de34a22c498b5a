"""Methods of ndarray on Array: NumPy's names and positions, defined by functions of tenfold.numpy.

Takes NumPy's arguments, hands on what the function of that name returns. `tenfold.numpy` is
imported at the first call. Where the array API has the method, its form comes first, uncached.

>>> import tenfold as tn
>>> x = tn.asarray([[1, 2], [3, 4]])
>>> x.sum(0).tolist(), x.reshape(4, 1).shape, x.cumsum().tolist()
([4, 6], (4, 1), [1, 3, 6, 10])
"""

from __future__ import annotations

import asyncio
import builtins
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tenfold._native import Array, take_place_of_view, window_of
from tenfold.core.public_signature import parameters_of
from tenfold.core.shape_rules import Axis
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.ops.cast import astype as cast
from tenfold.ops.complex import conj as conjugates
from tenfold.ops.indexing import index
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import forget_strides
from tenfold.ops.reshaping import reshape as reshaped
from tenfold.submission import eval as submit


def _functions() -> ModuleType:
    import tenfold.numpy  # at the first call: `import tenfold` takes less time without it

    return tenfold.numpy


def all(
    self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return whether all elements along `axis` are true."""
    return _functions().all(self, axis, out, keepdims, where=where)


def any(
    self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return whether an element along `axis` is true."""
    return _functions().any(self, axis, out, keepdims, where=where)


def argmax(self: Array, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the largest element along `axis`."""
    return _functions().argmax(self, axis, out, keepdims=keepdims)


def argmin(self: Array, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the smallest element along `axis`."""
    return _functions().argmin(self, axis, out, keepdims=keepdims)


def argpartition(
    self: Array,
    kth: Any,
    axis: int | None = -1,
    kind: str = "introselect",
    order: Any = None,
) -> Array:
    """Return the indices that sort along `axis`, which parts it at every index."""
    result: Array = _functions().argpartition(self, kth, axis, kind, order)
    return result


def argsort(
    self: Array,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Array:
    """Return the indices that sort along `axis`."""
    options = {"stable": stable, "descending": descending}
    result: Array = _functions().argsort(self, axis, kind, order, **options)
    return result


def astype(
    self: Array,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: str | None = None,
) -> Array:
    """Return the elements in another dtype. Raises TypeError where `casting` does not allow it."""
    if not np.can_cast(self.dtype, np.dtype(dtype), casting):  # type: ignore[arg-type]  # text
        raise TypeError(
            f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to the "
            f"rule {casting!r}"
        )
    return cast(self, dtype, copy=copy, device=device)


def awaited(self: Array) -> Any:
    """`await x`: submit the array, and wait for its values in a thread of the event loop."""

    async def wait() -> Array:
        submit(self)
        await asyncio.get_running_loop().run_in_executor(None, self.wait)
        return self

    return wait().__await__()


def byteswap(self: Array, inplace: bool = False) -> Array:
    """Return the elements with their bytes in reverse order; waits."""
    swapped = asarray(value_of(self, "byteswap").byteswap())
    if not inplace:
        return swapped
    self[...] = swapped
    return self


def choose(self: Array, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Return the element of the choice that each index names."""
    return _functions().choose(self, choices, out, mode)


def clip(self: Array, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    """Return the elements limited to a range."""
    return _functions().clip(self, min, max, out, **options)


def compress(self: Array, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    """Return the slices along `axis` where the condition holds; waits for it."""
    return _functions().compress(condition, self, axis, out)


def conj(self: Array) -> Array:
    """Return the complex conjugates; real numbers as they are."""
    return conjugates(self) if kind_of(self.dtype) == "c" else self


def copy(self: Array, order: str = "C") -> Array:
    """Return a new Array of the same values."""
    return asarray(self, copy=True)


def cumprod(self: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running products along `axis`, or of the flattened array."""
    return _functions().cumprod(self, axis, dtype, out)


def cumsum(self: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running sums along `axis`, or of the flattened array."""
    return _functions().cumsum(self, axis, dtype, out)


def diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the elements whose indices on two axes differ by `offset`."""
    result: Array = _functions().diagonal(self, offset, axis1, axis2)
    return result


def dot(self: Array, b: Any, out: Any = None) -> Any:
    """Return products summed over the last axis and the second last of `b`."""
    return _functions().dot(self, b, out)


def dump(self: Array, file: Any) -> None:
    """Pickle the array into a file, given by name or open."""
    if isinstance(file, (str, Path)):
        Path(file).write_bytes(pickle.dumps(self))
    else:
        pickle.dump(self, file)


def dumps(self: Array) -> bytes:
    """Return the pickled array."""
    return pickle.dumps(self)


def fill(self: Array, value: Any) -> None:
    """Write a number into every element, cast to the dtype."""
    self[...] = cast(asarray(value), self.dtype)


def flatten(self: Array, order: str = "C") -> Array:
    """Return a copy of the elements along one axis."""
    result: Array = _functions().ravel(asarray(self, copy=True), order)
    return result


def max(
    self: Array,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the largest element along `axis`."""
    return _functions().max(self, axis, out, keepdims, initial, where)


def mean(
    self: Array,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Return the mean of elements along `axis`."""
    return _functions().mean(self, axis, dtype, out, keepdims, where=where)


@parameters_of(max)
def min(self: Array, *args: Any, **options: Any) -> Any:
    """Return the smallest element along `axis`."""
    return _functions().min(self, *args, **options)


def nonzero(self: Array) -> tuple[Array, ...]:
    """Return the indices of elements that are not 0, one array for each axis; waits."""
    result: tuple[Array, ...] = _functions().nonzero(self)
    return result


def partition(
    self: Array, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    """Sort along `axis` in place, which parts it at every index."""
    self[...] = _functions().partition(self, kth, axis)


def prod(
    self: Array,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product of elements along `axis`."""
    return _functions().prod(self, axis, dtype, out, keepdims, initial, where)


def put(self: Array, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values at indices of the flattened array; waits."""
    _functions().put(self, indices, values, mode)


def ravel(self: Array, order: str = "C") -> Array:
    """Return the elements along one axis."""
    result: Array = _functions().ravel(self, order)
    return result


def repeat(self: Array, repeats: Any, axis: int | None = None) -> Array:
    """Return each element repeated, along `axis` or of the flattened array."""
    result: Array = _functions().repeat(self, repeats, axis)
    return result


def reshape(self: Array, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Array:
    """Return the elements in another shape, which may be given as several integers."""
    lengths = shape[0] if len(shape) == 1 else shape
    result: Array = _functions().reshape(self, lengths, order, copy=copy)
    return result


def round(self: Array, decimals: int = 0, out: Any = None) -> Any:
    """Return the elements rounded to some decimals, the even ones of two."""
    return _functions().round(self, decimals, out)


def searchsorted(self: Array, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Return the indices at which elements of `v` keep the array sorted."""
    result: Array = _functions().searchsorted(self, v, side, sorter)
    return result


def sort(
    self: Array,
    axis: int = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool | None = None,
) -> None:
    """Sort along `axis` in place."""
    options = {"stable": stable, "descending": descending}
    self[...] = _functions().sort(self, axis, kind, order, **options)


def squeeze(self: Array, axis: Axis = None) -> Array:
    """Return the array without axes of length 1."""
    result: Array = _functions().squeeze(self, axis)
    return result


def std(
    self: Array,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Return the root of the variance along `axis`."""
    options = {"where": where, "mean": mean, "correction": correction}
    return _functions().std(self, axis, dtype, out, ddof, keepdims, **options)


@parameters_of(prod)
def sum(self: Array, *args: Any, **options: Any) -> Any:
    """Return the sum of elements along `axis`."""
    return _functions().sum(self, *args, **options)


def swapaxes(self: Array, axis1: int, axis2: int) -> Array:
    """Return the array with two axes exchanged."""
    result: Array = _functions().swapaxes(self, axis1, axis2)
    return result


def take(
    self: Array, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Return the elements at indices along `axis`, or of the flattened array."""
    return _functions().take(self, indices, axis, out, mode)


def tobytes(self: Array, order: str = "C") -> bytes:
    """Return the bytes of the values; waits."""
    return value_of(self, "tobytes").tobytes(order)  # type: ignore[arg-type]  # NumPy checks it


def tofile(self: Array, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the values into a file, as NumPy's; waits."""
    value_of(self, "tofile").tofile(fid, sep, format)


def trace(
    self: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """Return the sum of a diagonal."""
    return _functions().trace(self, offset, axis1, axis2, dtype, out)


def transpose(self: Array, *axes: Any) -> Array:
    """Return the axes in another order, reversed by default."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return permute_dims(self, None if order is None else tuple(order))


@parameters_of(std)
def var(self: Array, *args: Any, **options: Any) -> Any:
    """Return the variance along `axis`."""
    return _functions().var(self, *args, **options)


def view(self: Array, dtype: Any = None, type: Any = None) -> Any:
    """Return a view; with another dtype a copy of the bytes in that dtype, which waits.

    A class of NumPy's, or a dtype that Arrays do not have, gives a read-only ndarray.
    """
    if isinstance(dtype, builtins.type) and issubclass(dtype, (Array, np.ndarray)):
        dtype, type = None, dtype
    if type is None or issubclass(type, Array):
        if dtype is None or np.dtype(dtype) == self.dtype:
            return index(self, ...)
        values = value_of(self, "view").view(dtype)
        return asarray(values) if values.dtype in DTYPES.values() else values
    values = value_of(self, "view")
    return (values if dtype is None else values.view(dtype)).view(type)


def flat(self: Array) -> Array:
    """The elements along one axis; writes go through."""
    return reshaped(self, (-1,))


def set_flat(self: Array, value: Any) -> None:
    """Write values into the elements in order, from the first one again where they end."""
    values = asarray(value)
    if not values.size:
        raise ValueError("flat: no values to write")
    self[...] = cast(_functions().resize(values, self.shape), self.dtype)


def set_shape(self: Array, shape: Any) -> None:
    """Give the array another shape in place; its views keep theirs. Refused while tracing."""
    if TRACE.get() is not None or window_of(self) is not None:
        rule = "neither a traced array nor a window is reshaped in place"
        raise UnsupportedError("shape", rule, [self], "write x = x.reshape(...)")
    view = reshaped(self, shape)
    if view.base is not self:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with "
            "the desired shape."
        )
    take_place_of_view(self, view)
    forget_strides(self)


def itemsize(self: Array) -> int:
    """The bytes of one element."""
    return self.dtype.itemsize


def nbytes(self: Array) -> int:
    """The bytes of all elements."""
    return self.size * self.dtype.itemsize


def strides(self: Array) -> tuple[int, ...]:
    """The bytes between neighbours along each axis of the values as they are exported."""
    lengths = (*self.shape[1:], 1)
    steps = [self.dtype.itemsize]
    for length in lengths[-2::-1]:
        steps.append(steps[-1] * (length or 1))
    return tuple(steps[::-1]) if self.ndim else ()


METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(argpartition, byteswap, choose, clip, compress, conj, copy, cumprod, cumsum, diagonal),
        *(dot, dump, dumps, fill, flatten, nonzero, partition, put, ravel, repeat, round, sort),
        *(squeeze, swapaxes, take, tobytes, tofile, trace, transpose, view),
    )
} | {"conjugate": conj, "__await__": awaited}
PROPERTIES = {function.__name__: property(function) for function in (itemsize, nbytes, strides)} | {
    "flat": property(flat, set_flat),
}
WIDENED: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(all, any, argmax, argmin, argsort, astype, max, mean, min, prod, reshape, searchsorted),
        *(std, sum, var),
    )
}
"""NumPy's forms of methods that are operations of the array API."""
