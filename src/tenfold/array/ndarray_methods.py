"""Methods of ndarray on Array: NumPy's names and positions, defined by functions of tenfold.numpy.

Takes NumPy's arguments, hands on what the function of that name returns. `tenfold.numpy` is
imported at the first call. Where the array API has the method, its form comes first, uncached.

>>> import tenfold as tn
>>> x = tn.asarray([[1, 2], [3, 4]])
>>> x.sum(0).tolist(), x.reshape(4, 1).shape, x.cumsum().tolist()
([4, 6], (4, 1), [1, 3, 6, 10])
"""

from __future__ import annotations

import builtins
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, take_place_of_view, window_of
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import ForeignDTypeError, UnsupportedError, message
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.ops.cast import astype as cast
from tenfold.ops.complex import conj as conjugates
from tenfold.ops.indexing import index
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import forget_strides
from tenfold.ops.reshaping import reshape as reshaped
from tenfold.submission import eval as submit

COPY_VALUES = "take values = np.array(x), whose flags are set"
"""The remedy for memory with flags of its own."""


def _functions() -> ModuleType:
    import tenfold.numpy  # at the first call: `import tenfold` takes less time without it

    return tenfold.numpy


class NumpyParameters:
    """The parameters of a method: those of the function of its name. inspect asks for them, and
    imports `tenfold.numpy` then.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(getattr(_functions(), self.name))
        first, *others = signature.parameters.values()
        return signature.replace(
            parameters=[first.replace(name="self", annotation="Array"), *others]
        )


def astype(
    self: Array,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: str | None = None,
) -> Any:
    """Return the elements in another dtype. Raises TypeError where `casting` does not allow it."""
    arguments = _functions().arguments
    arguments.check_order(order)
    arguments.check_casts((self,), dtype, casting)
    try:
        return cast(self, dtype, copy=copy, device=device)
    except ForeignDTypeError:
        return _functions().by_numpy.by_numpy(np.ndarray.astype, (self, dtype), {})


def awaited(self: Array) -> Any:
    """`await x`: submit the array, and wait for its values in a thread of the event loop."""

    async def wait() -> Array:
        import asyncio  # whoever awaits has imported it

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
    if order != "C":
        _functions().arguments.check_order(order)
    return asarray(self, copy=True)


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
    self[...] = value if isinstance(value, np.integer) else cast(asarray(value), self.dtype)


def flatten(self: Array, order: str = "C") -> Array:
    """Return a copy of the elements along one axis."""
    result: Array = _functions().ravel(asarray(self, copy=True), order)
    return result


def partition(
    self: Array, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    """Sort along `axis` in place, which parts it at every index."""
    self[...] = _functions().partition(self, kth, axis)


def put(self: Array, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values at indices of the flattened array; waits."""
    _functions().put(self, indices, values, mode)


def reshape(self: Array, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Array:
    """Return the elements in another shape, which may be given as several integers."""
    lengths = shape[0] if len(shape) == 1 else shape
    result: Array = _functions().reshape(self, lengths, order, copy=copy)
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


def tobytes(self: Array, order: str = "C") -> bytes:
    """Return the bytes of the values; waits."""
    return value_of(self, "tobytes").tobytes(order)  # type: ignore[arg-type]  # NumPy checks it


def tofile(self: Array, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the values into a file, as NumPy's; waits."""
    value_of(self, "tofile").tofile(fid, sep, format)


def transpose(self: Array, *axes: Any) -> Array:
    """Return the axes in another order, reversed by default."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return permute_dims(self, None if order is None else tuple(order))


def view(self: Array, dtype: Any = None, type: Any = None) -> Any:
    """Return a view; with another dtype a copy of the bytes in that dtype, which waits.

    A class of NumPy's, or a dtype that Arrays do not have, gives a read-only ndarray.
    """
    if isinstance(dtype, int):
        raise TypeError(message("view", f"{dtype} is not a dtype", remedy="write x.reshape(shape)"))
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


FLAG_KEYS = {
    **dict.fromkeys(("C", "CONTIGUOUS", "C_CONTIGUOUS"), "c_contiguous"),
    **dict.fromkeys(("F", "FORTRAN", "F_CONTIGUOUS"), "f_contiguous"),
    **dict.fromkeys(("O", "OWNDATA"), "owndata"),
    **dict.fromkeys(("W", "WRITEABLE"), "writeable"),
    **dict.fromkeys(("A", "ALIGNED"), "aligned"),
    **dict.fromkeys(("X", "WRITEBACKIFCOPY"), "writebackifcopy"),
    **dict.fromkeys(("B", "BEHAVED"), "behaved"),
    **dict.fromkeys(("CA", "CARRAY"), "carray"),
    **dict.fromkeys(("FA", "FARRAY"), "farray"),
    "FNC": "fnc",
    "FORC": "forc",
}
"""The attribute of each key of NumPy's flags."""


class Flags(NamedTuple):
    """The flags of an array's memory, as NumPy's: C-contiguous, of its own, writeable.

    They are not set; UnsupportedError says so.
    """

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool = True
    aligned: bool = True
    writebackifcopy: bool = False

    @property
    def contiguous(self) -> bool:
        """Whether rows follow each other in memory."""
        return self.c_contiguous

    @property
    def fortran(self) -> bool:
        """Whether columns follow each other in memory."""
        return self.f_contiguous

    @property
    def behaved(self) -> bool:
        """Whether the memory is aligned and takes writes."""
        return self.aligned and self.writeable

    @property
    def carray(self) -> bool:
        """Whether the memory is behaved, and rows follow each other."""
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        """Whether the memory is behaved, and columns follow each other, and rows do not."""
        return self.behaved and self.fnc

    @property
    def fnc(self) -> bool:
        """Whether columns follow each other in memory, and rows do not."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """Whether rows or columns follow each other in memory."""
        return self.f_contiguous or self.c_contiguous

    def __eq__(self, other: object) -> bool:
        return builtins.all(getattr(other, x, None) == getattr(self, x) for x in self._fields)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __getitem__(self, key: Any) -> Any:
        name = FLAG_KEYS.get(key)
        if name is None:
            raise KeyError("Unknown flag")
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise AttributeError(f"Flags has no attribute {name!r}")
        if value != getattr(self, name):
            raise UnsupportedError("flags", f"{name} of an Array is not set", (), COPY_VALUES)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, FLAG_KEYS.get(key, key), value)


def flags(self: Array) -> Flags:
    """The flags of the values as they are exported; an Array takes writes always."""
    is_column = builtins.sum(length != 1 for length in self.shape) < 2 or not self.size
    return Flags(c_contiguous=True, f_contiguous=is_column, owndata=self.base is None)


def data(self: Array) -> memoryview:
    """The memory of the values, read-only; waits."""
    return memoryview(self)


def setflags(self: Array, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Refuse other flags than those that the array has."""
    for name, value in (("writeable", write), ("aligned", align), ("writebackifcopy", uic)):
        if value is not None:
            setattr(flags(self), name, bool(value))


def _form_of(name: str, doc: str = "") -> Callable[..., Any]:
    """Return a method that passes its arguments on to the function of its name."""

    def method(self: Array, *args: Any, **options: Any) -> Any:
        return getattr(_functions(), name)(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    method.__wrapped__ = NumpyParameters(name)  # type: ignore[attr-defined]  # inspect reads it
    return method


def _by_name(*methods: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {method.__name__: method for method in methods}


PASSED_ON = {
    "argpartition": "Return the indices that sort along `axis`, which parts it at every index.",
    "choose": "Return the element of the choice that each index names.",
    "cumprod": "Return running products along `axis`, or of the flattened array.",
    "cumsum": "Return running sums along `axis`, or of the flattened array.",
    "diagonal": "Return the elements whose indices on two axes differ by `offset`.",
    "dot": "Return products summed over the last axis and the second last of `b`.",
    "nonzero": "Return the indices of elements that are not 0, one array for each axis; waits.",
    "ravel": "Return the elements along one axis.",
    "repeat": "Return each element repeated, along `axis` or of the flattened array.",
    "round": "Return the elements rounded to some decimals, the even ones of two.",
    "squeeze": "Return the array without axes of length 1.",
    "swapaxes": "Return the array with two axes exchanged.",
    "take": "Return the elements at indices along `axis`, or of the flattened array.",
    "trace": "Return the sum of a diagonal.",
}
"""The documentation of methods that are functions of `tenfold.numpy`."""
METHODS = _by_name(
    *(
        byteswap,
        clip,
        compress,
        conj,
        copy,
        dump,
        dumps,
        fill,
        flatten,
        partition,
        put,
        setflags,
        sort,
    ),
    *(tobytes, tofile, transpose, view),
)
METHODS["conjugate"], METHODS["__await__"] = conj, awaited
METHODS.update((name, _form_of(name, doc)) for name, doc in PASSED_ON.items())
PROPERTIES = {
    function.__name__: property(function) for function in (data, flags, itemsize, nbytes, strides)
} | {
    "flat": property(flat, set_flat),
}
WIDENED = _by_name(
    *(astype, reshape),
    *map(_form_of, ("all", "any", "argmax", "argmin", "argsort", "max", "mean", "min", "prod")),
    *map(_form_of, ("searchsorted", "std", "sum", "var")),
)
"""NumPy's forms of methods that are operations of the array API."""
