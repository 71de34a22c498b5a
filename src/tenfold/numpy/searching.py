"""Searching, sorting and choosing: order, positions and elements by index or mask.

Takes NumPy's arguments, hands on Arrays. Data-dependent shapes compute at the call.

>>> where([0, 1, 1])[0].tolist()
[1, 2]
>>> select([[True, False]], [[1, 2]], 9).tolist()
[1, 9]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import BOOL, kind_of, same_kind
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    as_arrays,
    as_new,
    as_operand,
    as_operands,
    cast,
    cast_for,
    deliver_whole,
    export,
    ordered,
)
from tenfold.ops import (
    arithmetic,
    bounds_checks,
    diagonal_tril_triu,
    gathering,
    norm,
    reshaping,
    selection,
    sets,
    sorting,
)
from tenfold.ops.joining import stack

__all__ = [
    "argpartition", "argsort", "argwhere", "choose", "compress", "copyto", "diagonal", "ediff1d",
    "extract", "fill_diagonal", "flatnonzero", "intersect1d", "isin", "lexsort", "nonzero",
    "partition", "place", "put", "put_along_axis", "putmask", "searchsorted", "select", "setdiff1d",
    "setxor1d", "sort", "sort_complex", "take", "take_along_axis", "trace", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


def _along(a: Any, axis: int | None) -> tuple[Array, int]:
    """Return an Array and its axis; without an axis the flattened Array."""
    x = as_array(a)
    if axis is None:
        return reshaping.reshape(x, (-1,)), 0
    return x, normalize_axis(axis, x.ndim)


def _check_sort(kind: Any, order: Any) -> None:
    """Refuse what NumPy refuses: an unknown algorithm, and fields, which no Array has."""
    if kind is not None or order is not None:
        np.sort([0], kind=kind, order=order)


def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool | None = None,
) -> Array:
    """Return the elements in rising or descending order along an axis, NaN last."""
    x, along = _along(a, axis)
    _check_sort(kind, order)
    if kind_of(x.dtype) == "c":
        positions = argsort(x, along, descending=descending)
        return gathering.take_along_axis(x, positions, axis=along)
    return sorting.sort(x, axis=along, descending=bool(descending))


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool | None = None,
) -> Array:
    """Return the indices that sort along an axis; equal elements keep their order."""
    x, along = _along(a, axis)
    _check_sort(kind, order)
    if kind_of(x.dtype) == "c":
        z = export(x, "np.argsort")
        missing = np.isnan(z.imag) + 2 * np.isnan(z.real)  # NaN comes last in both orders
        signed = -z if descending else z
        return as_array(np.lexsort((signed.imag, signed.real, missing), axis=along))
    return sorting.argsort(x, axis=along, descending=bool(descending))


def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Array:
    """Return the elements sorted along an axis, which parts them at every index."""
    _check_kth(as_array(a), kth, axis)
    return sort(a, axis)


def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Array:
    """Return the indices that sort along an axis, which parts it at every index."""
    _check_kth(as_array(a), kth, axis)
    return argsort(a, axis)


def _check_kth(x: Array, kth: Any, axis: int | None) -> None:
    length = x.size if axis is None else x.shape[normalize_axis(axis, x.ndim)]
    for position in np.atleast_1d(kth):
        if length and not -length <= position < length:
            raise ValueError(f"kth(={position}) out of bounds ({length})")


@ordered
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Return the indices at which elements of `v` keep `a` sorted."""
    order = None if sorter is None else as_array(sorter)
    return sorting.searchsorted(as_array(a), as_array(v), side=side, sorter=order)


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return `x` where the condition holds and `y` elsewhere; without them its true indices."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return selection.where(cast(as_array(condition), BOOL), *as_operands((x, y)))


def nonzero(a: Any) -> tuple[Array, ...]:
    """Return the indices of elements that are not 0, one array for each axis; waits."""
    return tuple(sets.nonzero(as_array(a)))


def flatnonzero(a: Any) -> Array:
    """Return the indices in the flattened array of elements that are not 0; waits."""
    return sets.nonzero(reshaping.reshape(as_array(a), (-1,)))[0]


def argwhere(a: Any) -> Array:
    """Return the indices of elements that are not 0 as rows; waits."""
    x = as_array(a)
    if x.ndim == 0:
        return as_array(np.argwhere(np.asarray(x)))
    return stack(nonzero(x), 1)


def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Return the elements at indices along an axis, or of the flattened array."""
    x, along = _along(a, axis)
    positions = as_array(indices)
    length = x.shape[along]
    if mode == "wrap":
        positions = arithmetic.remainder(cast(positions, np.int64), length)
    elif mode == "clip":
        positions = selection.clip(cast(positions, np.int64), 0, length - 1)
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    positions = cast(positions, np.int64) if not positions.size else positions
    return deliver_whole(gathering.take(x, positions, axis=along), out)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Array:
    """Return the elements at the indices along an axis."""
    x, along = _along(arr, axis)
    return gathering.take_along_axis(x, as_array(indices), axis=along)


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Return the slices along an axis where the condition holds; waits for it."""
    x, along = _along(a, axis)
    return deliver_whole(gathering.take(x, flatnonzero(condition), axis=along), out)


def extract(condition: Any, arr: Any) -> Array:
    """Return the elements where the condition holds; waits for it."""
    result: Array = compress(reshaping.reshape(as_array(condition), (-1,)), arr)
    return result


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """Return the element of the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    operands = [as_operand(x) for x in (*choicelist, default)]
    dtype = np.result_type(*(x.dtype if isinstance(x, Array) else x for x in operands))
    *choices, result = (
        cast(x, dtype) if isinstance(x, Array) else as_array(x, dtype) for x in operands
    )
    for condition, choice in zip(reversed(as_arrays(condlist)), reversed(choices), strict=True):
        if condition.dtype != BOOL:
            raise TypeError("invalid entry in condlist: should be boolean ndarray")
        result = selection.where(condition, choice, result)
    return as_array(result)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Return the element of the choice that each index names. Raises ValueError for an index that
    names none, IndexError at the wait for one that was not known.
    """
    if mode != "raise":
        return Immediate(np.choose)(a, choices, out=out, mode=mode)
    operands = as_operands(tuple(choices))  # Python's numbers are weak
    named = as_array(a)
    known = bounds_checks.known_values(named)
    if known is not None and ((known < 0) | (known >= len(operands))).any():
        raise ValueError("invalid entry in choice array")
    if known is None and kind_of(named.dtype) == "i":
        named = selection.where(named < 0, len(operands), cast(named, np.int64))
    types = [x.dtype if isinstance(x, Array) else x for x in operands]
    dtype = np.result_type(*types)
    arrays = list(reshaping.broadcast_arrays(named, *(as_array(x, dtype) for x in operands)))
    positions = reshaping.reshape(arrays[0], (1, *arrays[0].shape))
    if not arrays[0].ndim:
        return deliver_whole(gathering.take(stack(arrays[1:], 0), positions, axis=0)[0], out)
    chosen = gathering.take_along_axis(stack(arrays[1:], 0), positions, axis=0)
    chosen = reshaping.reshape(chosen, arrays[0].shape)
    return deliver_whole(cast_for(as_new(chosen), out, "unsafe"), out)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the elements whose indices on two axes differ by `offset`."""
    return diagonal_tril_triu.diagonal(as_array(a), offset, axis1, axis2)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """Return the sum of a diagonal."""
    return deliver_whole(norm.trace(as_array(a), offset, axis1, axis2, dtype), out)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Array:
    """Return whether each element is one of others."""
    return sets.isin(as_array(element), as_array(test_elements), invert=invert)


def unique_all(x: Any) -> Any:
    """Return unique elements, their first indices, the inverse and their counts; waits."""
    return sets.unique_all(as_array(x))


def unique_counts(x: Any) -> Any:
    """Return unique elements and their counts; waits."""
    return sets.unique_counts(as_array(x))


def unique_inverse(x: Any) -> Any:
    """Return unique elements and the inverse; waits."""
    return sets.unique_inverse(as_array(x))


def unique_values(x: Any) -> Array:
    """Return unique elements; waits."""
    return sets.unique_values(as_array(x))


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values into an Array or ndarray, where the mask holds."""
    if not isinstance(dst, Array):
        Immediate(np.copyto)(dst, src, casting=casting, where=where)
        return
    is_integer = type(src) is int and kind_of(dst.dtype) in "iu"
    values = as_array(src, dst.dtype if is_integer else None)
    if casting == "unsafe" or same_kind(values.dtype, dst.dtype):
        values = cast(values, dst.dtype)  # one that is not of its kind is refused below
    dst[...] = values if where is True else selection.where(as_array(where), values, dst)


unique = Immediate(np.unique)
ediff1d = Immediate(np.ediff1d)
intersect1d = Immediate(np.intersect1d)
lexsort = Immediate(np.lexsort)
setdiff1d = Immediate(np.setdiff1d)
setxor1d = Immediate(np.setxor1d)
sort_complex = Immediate(np.sort_complex)
union1d = Immediate(np.union1d)
fill_diagonal = Immediate(np.fill_diagonal, writes=True)
place = Immediate(np.place, writes=True)
put = Immediate(np.put, writes=True)
put_along_axis = Immediate(np.put_along_axis, writes=True)
putmask = Immediate(np.putmask, writes=True)
