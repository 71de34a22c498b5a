"""Item assignment: `x[key] = e` for every key that NumPy accepts.

Takes an Array, a key and the right side, and writes. Ints, slices, `...` and None select a regular
part. Integer arrays and masks select positions; for an element selected twice the last value wins.
Where the value does not depend on how many elements a mask selects, the mask is not computed.

>>> import tenfold as tn
>>> x = tn.arange(6)
>>> set_item(x, slice(1, None, 2), 0)
>>> set_item(x, x > 2, tn.asarray(9))
>>> x.tolist()
[0, 0, 2, 0, 9, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import whole_slice
from tenfold.core.op import Op
from tenfold.core.scatter_rules import indexed_shape
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import kind_of
from tenfold.errors import ExplainedError
from tenfold.interop.asarray import asarray
from tenfold.mutation.coerce_rhs import coerce_rhs, fit_to_part
from tenfold.mutation.view_writethrough import (
    refuse_read_only,
    replace_part,
    shown_part,
    write_view,
)
from tenfold.ops.assignment import put_at
from tenfold.ops.cast import convert
from tenfold.ops.gathering import gather
from tenfold.ops.index_parsing import ParsedIndex, parse_index
from tenfold.ops.indexing import index, index_view, slice_view
from tenfold.ops.selection import where

OPERATION = "setitem"


def set_item(x: Array, key: Any, value: Any) -> None:
    """Assign `value` to `x[key]`: the shape and the dtype of `x` stay as they are.

    Raises IndexError for a key that does not fit, ShapeError for a value that does not broadcast to
    the part and for a view that repeats elements, DTypeError for a value of another kind. Then
    nothing has changed.
    """
    if isinstance(value, Array) and value.base is x and _names_itself(x, key, value):
        return  # `x[1:] += e` ends by assigning the view to `x[1:]`
    refuse_read_only(x, OPERATION)
    if (mask := _mask(x, key)) is not None:
        value = coerce_rhs(value, x, OPERATION)
        if not isinstance(value, Array) or value.ndim <= x.ndim - mask.ndim:
            _set_where(x, mask, value)
            return
    parsed = parse_index(x, key, OPERATION)
    if parsed.arrays:
        _set_at(x, parsed, coerce_rhs(value, x, OPERATION))
    else:
        value = fit_to_part(coerce_rhs(value, x, OPERATION), x, parsed.part[1], OPERATION)
        write_view(x, parsed.part, value)


def _names_itself(x: Array, key: Any, value: Array) -> bool:
    """Whether a view of `x` is assigned to itself."""
    parsed = parse_index(x, key, OPERATION)
    return not parsed.arrays and is_view_of(value, x, index, parsed.part)


def is_view_of(value: Any, base: Array, op: Op[...], params: tuple[Any, ...]) -> bool:
    """Whether a value is this view itself: `x[1:] += e` ends by assigning the view to `x[1:]`."""
    if not isinstance(value, Array) or value.base is not base:
        return False
    node = _native.node_of(value)
    return node.op is op and bool(node.params == params)


def _mask(x: Array, key: Any) -> Array | None:
    """Return a key that is one mask of the first axes of `x`."""
    if type(key) is tuple and len(key) == 1:
        (key,) = key
    if not isinstance(key, (Array, np.ndarray)) or kind_of(key.dtype) != "b" or key.ndim == 0:
        return None
    return asarray(key, device=x.device) if key.shape == x.shape[: key.ndim] else None


def _set_where(x: Array, mask: Array, value: Any) -> None:
    """Choose between value and present value, element by element, when it is computed."""
    value = fit_to_part(value, x, x.shape[mask.ndim :], OPERATION)
    if mask.ndim < x.ndim:
        mask = index_view(mask, whole_axes(mask.shape), tuple(range(mask.ndim, x.ndim)))
    if isinstance(value, Array):
        value = convert(value, x.dtype)
    try:
        result = where(mask, value, x)
    except ExplainedError as error:
        raise error.renamed(OPERATION, [x, mask]) from None
    write_view(x, whole_slice(x.shape), result)


def _set_at(x: Array, parsed: ParsedIndex, value: Any) -> None:
    """Write a value at the positions of index arrays, in the view of the rest of the key.

    A part of complex numbers is written with these numbers, and not with the whole array.
    """
    shown, elements = shown_part(x)
    view = elements
    if parsed.part != whole_slice(x.shape):
        view = slice_view(elements, parsed.part)
    axes, indices = zip(*parsed.arrays, strict=True)
    try:
        shape = indexed_shape(
            view.shape, [index.shape for index in indices], axes, parsed.index_axis
        )
    except ExplainedError as error:
        raise error.completed(OPERATION, [x, *indices]) from None
    value = fit_to_part(value, x, shape, OPERATION)
    try:
        if shown is not None:
            present = _native.apply(gather.id, (view, *indices), (axes, parsed.index_axis))
            value = replace_part(shown, present, value)
        result = _native.apply(put_at.id, (view, value, *indices), (axes, parsed.index_axis))
    except ExplainedError as error:
        raise error.renamed(OPERATION, [x]) from None
    write_view(view, whole_slice(view.shape), result)
