"""Index parsing: turns the key of `x[...]` into a slice and index arrays.

>>> import tenfold as tn
>>> key = parse_index(tn.zeros((4, 5)), (slice(1, None), None, -1), "getitem")
>>> key.part, key.view
((((0, 1, 1), (None, 0, 4)), (3, 1)), True)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.index_map import IndexMap, Slice, slice_of, strides_in
from tenfold.core.op_decorators import array, refuse_derivative, values
from tenfold.core.shape_rules import Pick, Shape, nested_levels, normalize_slice
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.ops import bounds_checks
from tenfold.storage import dense


@dataclass(frozen=True, slots=True)
class ParsedIndex:
    """A parsed key: its ints, slices and new axes apply first, then the index arrays."""

    part: Slice
    """The slice that ints, slices and new axes take."""
    arrays: tuple[tuple[int, Array], ...]
    """Integer arrays, each with the axis of the slice that it indexes."""
    index_axis: int
    """The position of the index arrays' axes in the result."""
    view: bool
    """Whether the result is a view, as NumPy's would be."""


_parsed: LruCache[tuple[Any, ...], ParsedIndex] = LruCache(
    4096, "parsed indices", "parsing an index takes 12 microseconds"
)
"""Parsed keys without arrays, by shape and key."""


def parse_index(x: Array, key: Any, operation: str) -> ParsedIndex:
    """Parse a key against `x`. Raises IndexError, naming `operation`, for one that does not fit."""
    items = key if isinstance(key, tuple) else (key,)
    cache_key = _cacheable_items(items)
    cached = None if cache_key is None else _parsed.get((x.shape, *cache_key))
    if cached is not None:
        return cached
    terms = _expand_ellipsis(x, [_normalize_item(x, item, operation) for item in items], operation)
    view = not any(isinstance(item, _ARRAYS) for item in items)
    if all(type(term) is int for term in terms):
        view = False  # an element, no part of the array
    parsed = _build_index(x, _expand_masks(x, terms, operation), view, operation)
    if cache_key is not None:
        _parsed[(x.shape, *cache_key)] = parsed
    return parsed


def _cacheable_items(items: tuple[Any, ...]) -> list[Any] | None:
    """Return a key of ints, slices of ints, `...` and None in hashable form, else None."""
    key_items: list[Any] = []
    for item in items:
        if type(item) is slice:
            ends = item.start, item.stop, item.step
            if any(end is not None and type(end) is not int for end in ends):
                return None
            key_items.append(ends)
        elif type(item) is int or item is None or item is Ellipsis:
            key_items.append(item)
        else:
            return None
    return key_items


def index_error(x: Array, operation: str, rule: str, remedy: str) -> IndexError:
    """Return the error of a key that does not fit, to be raised."""
    return IndexError(message(operation, rule, [x], remedy))


_SEQUENCES = (list, tuple, range)
_ARRAYS = (Array, np.ndarray, bool, np.bool_, *_SEQUENCES)


def _normalize_item(x: Array, item: Any, operation: str) -> Any:
    """Return an item as an int, slice, None, Ellipsis, bool, integer Array or mask (an ndarray)."""
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)):
        return item
    if isinstance(item, (Array, np.ndarray, *_SEQUENCES)):
        return _normalize_array_item(x, item, operation)
    if isinstance(item, np.bool_):
        return bool(item)
    if hasattr(item, "__index__"):
        return operator.index(item)
    rule = f"{item!r} of type {type(item).__name__} is not an index"
    raise index_error(x, operation, rule, "use ints, slices, ..., None, integer arrays or masks")


def _normalize_array_item(x: Array, item: Any, operation: str) -> Any:
    """Return an array as a term: a mask is computed, a computed 0-d integer is an int."""
    if isinstance(item, _SEQUENCES):
        item = _from_sequence(x, item, operation)
    kind = kind_of(item.dtype)
    if kind not in "biu":
        rule = f"an array of {item.dtype} is not an index"
        raise index_error(x, operation, rule, "convert it with tn.astype(i, tn.int64), or compare")
    indices = array(item)
    if kind == "b":
        mask = values(indices, operation)
        return mask if mask.ndim else bool(mask)
    known_value = bounds_checks.known_values(indices) if indices.ndim == 0 else None
    return indices if known_value is None else int(known_value)


def _from_sequence(x: Array, items: Any, operation: str) -> np.ndarray:
    for _ in nested_levels(items, operation):
        pass  # else NumPy might never end
    try:
        indices = np.asarray(items)
    except ValueError:
        rule = f"{items!r} has rows of different lengths"
        raise index_error(x, operation, rule, "give rows of equal lengths") from None
    return indices if indices.size else indices.astype(np.int64)


def _axes_of_term(term: Any) -> int:
    """How many axes of the array a term takes up."""
    if isinstance(term, np.ndarray):
        return term.ndim
    return 0 if term is None or term is Ellipsis or isinstance(term, bool) else 1


def _expand_ellipsis(x: Array, terms: list[Any], operation: str) -> list[Any]:
    """Put whole slices after the `...`, or at the end, so that every axis has a term."""
    ellipses = [position for position, term in enumerate(terms) if term is Ellipsis]
    if len(ellipses) > 1:
        raise index_error(
            x, operation, f"... stands {len(ellipses)} times", "write it once at most"
        )
    indexed_axes = sum(map(_axes_of_term, terms))
    if indexed_axes > x.ndim:
        raise index_error(x, operation, _too_many(terms, indexed_axes, x.ndim), "leave some out")
    insert_at = ellipses[0] + 1 if ellipses else len(terms)
    return [*terms[:insert_at], *[slice(None)] * (x.ndim - indexed_axes), *terms[insert_at:]]


def _too_many(terms: list[Any], indexed_axes: int, axes: int) -> str:
    index_count = sum(1 for term in terms if _axes_of_term(term))
    if index_count == indexed_axes:
        return f"{indexed_axes} indices are too many for {axes} axes"
    return (
        f"{index_count} indices take {indexed_axes} axes of {axes}: a mask takes as many as it has"
    )


def _expand_masks(x: Array, terms: list[Any], operation: str) -> list[Any]:
    """Replace each mask by the positions at which it is true, an integer Array for each axis."""
    result: list[Any] = []
    axis = 0
    for term in terms:
        if isinstance(term, np.ndarray):
            masked_shape = x.shape[axis : axis + term.ndim]
            fits = len(masked_shape) == term.ndim and all(
                length in (0, n)  # as NumPy: an axis of length 0 takes nothing
                for length, n in zip(term.shape, masked_shape, strict=True)
            )
            if not fits:
                rule = f"a mask of shape {term.shape} does not fit axes of shape {masked_shape}"
                raise index_error(x, operation, rule, "compare the array itself, as in x[x > 0]")
            result.extend(constant_array(x, positions) for positions in term.nonzero())
        else:
            result.append(term)
        axis += _axes_of_term(term)
    return result


def constant_array(x: Array, positions: np.ndarray) -> Array:
    """Return an Array on the device of `x` that adopts an ndarray without other references.

    Raises UnsupportedError for floating values of an array that derivatives go through.
    """
    if kind_of(positions.dtype) in "fc":
        refuse_derivative(x)
    return _native.value_array(dense.adopt(positions, x.device))


def _build_index(x: Array, terms: list[Any], view: bool, operation: str) -> ParsedIndex:
    picks: list[Pick] = []
    new_axes: list[int] = []
    arrays: list[tuple[int, Array]] = []
    for term in terms:
        axis = len(new_axes) + sum(not isinstance(pick, int) for pick in picks)
        if term is None or isinstance(term, bool):
            new_axes.append(axis)
        elif term is not Ellipsis:
            picks.append(_pick(x, len(picks), term, operation))
        if isinstance(term, bool):  # an axis of length 1, of which all or nothing is taken
            arrays.append((axis, constant_array(x, np.zeros(int(term), np.int64))))
        elif isinstance(term, Array):
            bounds_checks.check_known(term, len(picks) - 1, x, operation)
            arrays.append((axis, term))
    return ParsedIndex(slice_of(picks, new_axes), tuple(arrays), _index_axis(terms), view)


def part_of_values(x: np.ndarray, access: IndexMap, shape: Shape) -> np.ndarray:
    """Return a slice of an ndarray, a view of it, to be assigned to."""
    if 0 in shape:
        return np.empty(shape, x.dtype)
    strides, _ = strides_in(access, x.strides, len(shape))
    origin: Any = (*(slice(start, None) for *_, start in access), ...)
    return np.lib.stride_tricks.as_strided(x[origin], shape, strides)


def _pick(x: Array, axis: int, term: Any, operation: str) -> Pick:
    length = x.shape[axis]
    if isinstance(term, Array):
        return normalize_slice(slice(None), length)
    if isinstance(term, slice):
        return _slice_pick(x, term, length, operation)
    position = bounds_checks.normalize_position(term, length)
    if position is None:
        rule = bounds_checks.out_of_bounds(term, axis, length)
        raise index_error(x, operation, rule, bounds_checks.remedy(length))
    return position


def _slice_pick(x: Array, term: slice, length: int, operation: str) -> Pick:
    try:
        return normalize_slice(term, length)
    except ShapeError as error:
        raise error.completed(operation, [x]) from None
    except TypeError:
        rule = f"the slice {term.start!r}:{term.stop!r}:{term.step!r} has bounds that are no ints"
        raise DTypeError(operation, rule, [x], "use ints or None") from None


def _index_axis(terms: list[Any]) -> int:
    """The position of the index arrays' axes: the first index if all are adjacent, else 0."""
    is_index = [isinstance(term, (Array, int)) for term in terms]
    if not any(isinstance(term, (Array, bool)) for term in terms):
        return 0
    first, last = is_index.index(True), len(is_index) - is_index[::-1].index(True)
    if not all(is_index[first:last]):
        return 0
    return sum(term is not Ellipsis for term in terms[:first])
