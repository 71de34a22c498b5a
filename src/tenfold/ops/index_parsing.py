"""Index parsing: turns the key of `x[...]` into picks, new axes and index arrays.

>>> import tenfold as tn
>>> key = parse(tn.zeros((4, 5)), (slice(1, None), None, -1), "getitem")
>>> key.picks, key.new, key.view
(((1, 3, 1), 4), (1,), True)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.op_decorators import array, values
from tenfold.core.shape_rules import Pick, nested_levels, normalize_slice
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.ops import bounds_checks
from tenfold.storage import dense


@dataclass(frozen=True, slots=True)
class ParsedIndex:
    """A key that fits its array: picks and new axes first, then arrays index what they left."""

    picks: tuple[Pick, ...]
    """For each axis an int or (start, length, step)."""
    new: tuple[int, ...]
    """Where axes of length 1 stand in the result of the picks."""
    arrays: tuple[tuple[int, Array], ...]
    """Integer arrays, each with the axis it indexes of what the picks and new axes left."""
    place: int
    """Where the axes of the arrays stand in the result."""
    view: bool
    """Whether the result is a view, as NumPy's would be."""


_parsed: LruCache[tuple[Any, ...], ParsedIndex] = LruCache(4096, "keys of arrays")
"""By shape and key: keys without arrays, which loops use again and again."""


def parse(x: Array, key: Any, operation: str) -> ParsedIndex:
    """Parse a key against `x`. Raises IndexError, naming `operation`, for one that does not fit."""
    given = key if isinstance(key, tuple) else (key,)
    plain = _plain(given)
    known = None if plain is None else _parsed.get((x.shape, *plain))
    if known is not None:
        return known
    terms = _filled(x, [_term(x, item, operation) for item in given], operation)
    view = not any(isinstance(item, _ARRAYS) for item in given)
    if all(type(term) is int for term in terms):
        view = False  # an element, no part of the array
    parsed = _laid_out(x, _unmasked(x, terms, operation), view, operation)
    if plain is not None:
        _parsed[(x.shape, *plain)] = parsed
    return parsed


def _plain(items: tuple[Any, ...]) -> list[Any] | None:
    """Return a key of ints, slices of ints, `...` and None as what equal ones have in common."""
    found: list[Any] = []
    for item in items:
        if type(item) is slice:
            ends = item.start, item.stop, item.step
            if any(each is not None and type(each) is not int for each in ends):
                return None
            found.append(ends)
        elif type(item) is int or item is None or item is Ellipsis:
            found.append(item)
        else:
            return None
    return found


def refused(x: Array, operation: str, rule: str, remedy: str) -> IndexError:
    """Return the error of a key that does not fit, to be raised."""
    return IndexError(message(operation, rule, [x], remedy))


_SEQUENCES = (list, tuple, range)
_ARRAYS = (Array, np.ndarray, bool, np.bool_, *_SEQUENCES)


def _term(x: Array, item: Any, operation: str) -> Any:
    """Return an item as an int, slice, None, Ellipsis, bool, integer Array or mask (an ndarray)."""
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)):
        return item
    if isinstance(item, (Array, np.ndarray, *_SEQUENCES)):
        return _array_term(x, item, operation)
    if isinstance(item, np.bool_):
        return bool(item)
    if hasattr(item, "__index__"):
        return operator.index(item)
    rule = f"{item!r} of type {type(item).__name__} is not an index"
    raise refused(x, operation, rule, "use ints, slices, ..., None, integer arrays or masks")


def _array_term(x: Array, item: Any, operation: str) -> Any:
    """Return an array as a term: a mask is computed, a 0-d integer that is known is an int."""
    if isinstance(item, _SEQUENCES):
        item = _from_sequence(x, item, operation)
    kind = kind_of(item.dtype)
    if kind not in "biu":
        rule = f"an array of {item.dtype} is not an index"
        raise refused(x, operation, rule, "convert it with tn.astype(i, tn.int64), or compare")
    indices = array(item)
    if kind == "b":
        mask = values(indices, operation)
        return mask if mask.ndim else bool(mask)
    known = bounds_checks.known(indices) if indices.ndim == 0 else None
    return indices if known is None else int(known)


def _from_sequence(x: Array, items: Any, operation: str) -> np.ndarray:
    for _ in nested_levels(items, operation):
        pass  # else NumPy might never end
    try:
        indices = np.asarray(items)
    except ValueError:
        rule = f"{items!r} has rows of different lengths"
        raise refused(x, operation, rule, "give rows of equal lengths") from None
    return indices if indices.size else indices.astype(np.int64)


def _width(term: Any) -> int:
    """How many axes of the array a term takes up."""
    if isinstance(term, np.ndarray):
        return term.ndim
    return 0 if term is None or term is Ellipsis or isinstance(term, bool) else 1


def _filled(x: Array, terms: list[Any], operation: str) -> list[Any]:
    """Put whole slices after the `...`, or at the end, so that every axis has a term."""
    places = [position for position, term in enumerate(terms) if term is Ellipsis]
    if len(places) > 1:
        raise refused(x, operation, f"... stands {len(places)} times", "write it once at most")
    used = sum(map(_width, terms))
    if used > x.ndim:
        raise refused(x, operation, _too_many(terms, used, x.ndim), "leave some out")
    after = places[0] + 1 if places else len(terms)
    return [*terms[:after], *[slice(None)] * (x.ndim - used), *terms[after:]]


def _too_many(terms: list[Any], used: int, axes: int) -> str:
    written = sum(1 for term in terms if _width(term))
    if written == used:
        return f"{used} indices are too many for {axes} axes"
    return f"{written} indices take {used} axes of {axes}: a mask takes as many as it has"


def _unmasked(x: Array, terms: list[Any], operation: str) -> list[Any]:
    """Replace each mask by the positions at which it is true, an integer Array for each axis."""
    result: list[Any] = []
    axis = 0
    for term in terms:
        if isinstance(term, np.ndarray):
            covered = x.shape[axis : axis + term.ndim]
            empty = term.size == 0 and len(covered) == term.ndim  # as NumPy: it takes nothing
            if term.shape != covered and not empty:
                rule = f"a mask of shape {term.shape} does not fit axes of shape {covered}"
                raise refused(x, operation, rule, "compare the array itself, as in x[x > 0]")
            result.extend(constant(x, positions) for positions in term.nonzero())
        else:
            result.append(term)
        axis += _width(term)
    return result


def constant(x: Array, positions: np.ndarray) -> Array:
    """Return an Array on the device of `x` that adopts an ndarray without other references."""
    return _native.value_array(dense.adopt(positions, x.device))


def _laid_out(x: Array, terms: list[Any], view: bool, operation: str) -> ParsedIndex:
    picks: list[Pick] = []
    new: list[int] = []
    arrays: list[tuple[int, Array]] = []
    for term in terms:
        axis = len(new) + sum(not isinstance(pick, int) for pick in picks)
        if term is None or isinstance(term, bool):
            new.append(axis)
        elif term is not Ellipsis:
            picks.append(_pick(x, len(picks), term, operation))
        if isinstance(term, bool):  # an axis of length 1, of which all or nothing is taken
            arrays.append((axis, constant(x, np.zeros(int(term), np.int64))))
        elif isinstance(term, Array):
            bounds_checks.check_known(term, len(picks) - 1, x, operation)
            arrays.append((axis, term))
    return ParsedIndex(tuple(picks), tuple(new), tuple(arrays), _place(terms), view)


def _pick(x: Array, axis: int, term: Any, operation: str) -> Pick:
    length = x.shape[axis]
    if isinstance(term, Array):
        return normalize_slice(slice(None), length)
    if isinstance(term, slice):
        return _slice_pick(x, term, length, operation)
    position = bounds_checks.counted(term, length)
    if position is None:
        rule = bounds_checks.out_of_bounds(term, axis, length)
        raise refused(x, operation, rule, bounds_checks.remedy(length))
    return position


def _slice_pick(x: Array, term: slice, length: int, operation: str) -> Pick:
    try:
        return normalize_slice(term, length)
    except ShapeError as error:
        raise error.completed(operation, [x]) from None
    except TypeError:
        rule = f"the slice {term.start!r}:{term.stop!r}:{term.step!r} has bounds that are no ints"
        raise DTypeError(operation, rule, [x], "use ints or None") from None


def _place(terms: list[Any]) -> int:
    """Where the axes of the arrays stand: at the first if arrays and ints stand together, else
    first.
    """
    among = [isinstance(term, (Array, int)) for term in terms]
    if not any(isinstance(term, (Array, bool)) for term in terms):
        return 0
    first, last = among.index(True), len(among) - among[::-1].index(True)
    if not all(among[first:last]):
        return 0
    return sum(term is not Ellipsis for term in terms[:first])
