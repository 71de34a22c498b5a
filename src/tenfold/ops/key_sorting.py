"""Sorting by key: values in the order of their keys, and elements sorted within segments.

Both are made of stable positions (`tn.argsort`) and gathers.

>>> import tenfold as tn
>>> sort_by_key(tn.asarray([2, 1]), tn.asarray([10, 20])).values.tolist()
[20, 10]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.gathering import take, take_along_axis
from tenfold.ops.movement import expand_dims
from tenfold.ops.sorting import argsort, sorted_positions


class SortedByKey(NamedTuple):
    """What `sort_by_key` returns."""

    keys: Array
    values: Array


def _sort_by_key_reference(
    keys: np.ndarray, values: np.ndarray, axis: int = -1, descending: bool = False
) -> Any:
    order = sorted_positions(-keys if descending else keys, axis)
    rows = order.reshape(*order.shape, *(1,) * (values.ndim - keys.ndim))
    return (
        np.take_along_axis(keys, order, axis),
        np.take_along_axis(values, rows, axis % keys.ndim),
    )


@derived(
    reference=_sort_by_key_reference,
    samples=[
        SampleCall(((5,), (5,))),
        SampleCall(((4, 3), (4, 3)), {"axis": 0}),
        SampleCall(((4,), (4, 2))),
        SampleCall(((0,), (0,))),
    ],
)
def sort_by_key(keys: Array, values: Array, /, *, axis: int = -1, descending: bool = False) -> Any:
    """Return `keys` sorted along `axis`, and `values` in the order of their keys.

    `values` has the shape of `keys`, then maybe more axes, which are moved along. Always stable;
    NaN comes last, descending too. Returns a named tuple. Raises ShapeError for shapes that do not
    fit, DTypeError for complex keys.

    >>> import tenfold as tn
    >>> keys, values = tn.sort_by_key(tn.asarray([3, 1, 2]), tn.asarray([[30], [10], [20]]))
    >>> keys.tolist(), values.tolist()
    ([1, 2, 3], [[10], [20], [30]])
    """
    keys, values = array(keys), array(values)
    position = normalize_axis(axis, keys.ndim)
    if values.shape[: keys.ndim] != keys.shape:
        rule = f"values of shape {values.shape} are not one for each key of shape {keys.shape}"
        raise ShapeError("", rule, remedy="give the shape of the keys, then axes that move along")
    order = argsort(keys, axis=position, descending=descending)
    rows = expand_dims(order, tuple(range(keys.ndim, values.ndim)))
    return SortedByKey(
        take_along_axis(keys, order, axis=position), take_along_axis(values, rows, axis=position)
    )


def _segment_sort_reference(x: np.ndarray, ids: Any, descending: bool = False) -> np.ndarray:
    result = x.copy()
    for number in np.unique(ids):
        places = np.flatnonzero(np.asarray(ids) == number)
        part = x[places]
        result[places] = part[sorted_positions(-part if descending else part)]
    return result


@derived(
    reference=_segment_sort_reference,
    samples=[
        SampleCall(((6,),), positional=(np.asarray([0, 0, 1, 1, 1, 4]),)),
        SampleCall(((5,),), {"descending": True}, (np.asarray([1, 0, 1, 0, 1]),)),
        SampleCall(((0,),), positional=(np.asarray([], np.int64),)),
    ],
)
def segment_sort(x: Array, segment_ids: Array, /, *, descending: bool = False) -> Array:
    """Return the elements of each segment of `x`, (n,), sorted among the places of that segment.

    A segment is the elements that bear the same id of `segment_ids`, (n,) integers, wherever they
    stand. Stable; NaN comes last in its segment, descending too. Raises ShapeError for shapes that
    do not fit, DTypeError for ids that are not integers and for complex `x`.

    >>> import tenfold as tn
    >>> tn.segment_sort(tn.asarray([3, 1, 9, 7]), tn.asarray([0, 0, 1, 1])).tolist()
    [1, 3, 7, 9]
    """
    x = array(x)
    ids = array(segment_ids, x)
    if kind_of(ids.dtype) not in "iu":
        rule = f"segment_ids are integers, not {ids.dtype}"
        raise DTypeError("", rule, remedy="convert with tn.astype(i, tn.int64)")
    if x.ndim != 1 or ids.shape != x.shape:
        rule = f"segment_ids of shape {ids.shape} do not name the elements of shape {x.shape}"
        raise ShapeError("", rule, remedy="give one axis, and one id for each element")
    by_value = argsort(x, descending=descending)
    by_segment = take(by_value, argsort(take(ids, by_value, axis=0)), axis=0)
    places = argsort(ids)  # of the elements, segment by segment
    return take(take(x, by_segment, axis=0), argsort(places), axis=0)
