"""Sum of cotangents: contributions to one node, added together once all of them are there.

Takes what rules contribute: Arrays, factors of products (ProductTerm), parts of an array
(SliceTerm). Hands on one Array. Products of one kind become one product of stacked factors, parts
become one `concat`: so a weight of a thousand small products has one product, and
slices of an array cost no kernel of their own.

>>> import tenfold as tn
>>> x, y = tn.asarray([1.0, 2.0]), tn.asarray([3.0, 4.0])
>>> outer = [ProductTerm(g, y, ((), ()), ((0,), (0,)), None, (2, 2)) for g in (x, 2 * x)]
>>> total_of(outer).tolist()
[[9.0, 12.0], [18.0, 24.0]]
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import Slice, updated_slice
from tenfold.core.shape_rules import Shape, product, whole_axes
from tenfold.interop.asarray import asarray
from tenfold.ops.assignment import set_at
from tenfold.ops.contract import contract
from tenfold.ops.create import zeros
from tenfold.ops.indexing import index_view
from tenfold.ops.joining import concat, stack
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_
from tenfold.ops.reshaping import reshape
from tenfold.ops.segment_sum import add_at
from tenfold.ops.stop_gradient import zeros_of

MAX_CHAIN = 8
"""Arrays that are added one by one; more small ones are stacked and summed."""
MAX_STACKED_ELEMENTS = 1 << 14
"""The elements of an array that is stacked: of larger ones a copy costs more than a launch."""
MAX_INNER = 16
"""The terms of the sums in a product that is stacked; more are a good product by themselves."""
MAX_PIECES = 64
"""The pieces of a `concat`."""
AxisPair = tuple[tuple[int, ...], tuple[int, ...]]


class ProductTerm(NamedTuple):
    """A product that is not made yet: its factors, and the axes of `contract`."""

    left: Array
    right: Array
    contracted: AxisPair
    free: AxisPair
    order: tuple[int, ...] | None
    """The axes of the result, where they are permuted."""
    shape: Shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the product."""
        return self.left.dtype

    @property
    def form(self) -> tuple[Any, ...]:
        """What products that become one product have in common, beside the shapes."""
        return self.contracted, self.free, self.order

    @property
    def is_stackable(self) -> bool:
        """Whether one product of stacks pays, in place of several products like this one."""
        inner = product([self.left.shape[axis] for axis in self.contracted[0]])
        counts = [len(c) + len(f) for c, f in zip(self.contracted, self.free, strict=True)]
        return inner <= MAX_INNER and counts == [self.left.ndim, self.right.ndim]

    def of_stacks(self, left: Array, right: Array) -> ProductTerm:
        """Return the product of stacks of the factors of several like this one: their sum."""
        (axes_left, axes_right), (free_left, free_right) = self.contracted, self.free
        return self._replace(
            left=left,
            right=right,
            contracted=((0, *_behind(axes_left)), (0, *_behind(axes_right))),
            free=(_behind(free_left), _behind(free_right)),
        )

    def array(self) -> Array:
        """Return the product."""
        params = self.contracted, self.free
        result = _native.apply(contract.id, (self.left, self.right), params)
        return result if self.order is None else permute_dims(result, self.order)


class SliceTerm(NamedTuple):
    """An array of zeros with a slice that has values."""

    values: Array
    part: Slice
    shape: Shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def is_row(self) -> bool:
        """Whether it is at one position of the first axis, and whole along the others."""
        piece = _piece_of(self, 0)
        return piece is not None and piece.length == 1

    def of_stacks(self, values: Array, starts: Sequence[int]) -> Array:
        """Return the sum of rows like this one, from a stack of values in the order of starts."""
        rows = _in_shape(values, (len(starts), *self.shape[1:]))
        if starts == [*range(self.shape[0])]:
            return rows
        base = zeros(self.shape, dtype=self.dtype, device=values.device)
        return add_at(base, asarray(starts, device=values.device), rows)

    def array(self) -> Array:
        """Return the whole array."""
        base = zeros(self.shape, dtype=self.dtype, device=self.values.device)
        params = updated_slice(self.part)
        result: Array = _native.apply(set_at.id, (base, self.values), params)
        return result


Term: TypeAlias = Array | ProductTerm | SliceTerm
Deferred: TypeAlias = ProductTerm | SliceTerm


def total_of(terms: Sequence[Term]) -> Array:
    """Return the sum of contributions to one node, of one shape and dtype."""
    arrays = [term for term in terms if isinstance(term, Array)]
    arrays += _products([term for term in terms if isinstance(term, ProductTerm)])
    parts = [term for term in terms if isinstance(term, SliceTerm)]
    return _with_parts(parts, arrays) if parts else sum_of_arrays(arrays)


def sum_of_arrays(arrays: Sequence[Array]) -> Array:
    """Return the sum of arrays of one shape."""
    size, is_dense = arrays[0].size, not any(map(_native.has_kind, arrays))
    if len(arrays) > MAX_CHAIN and size <= MAX_STACKED_ELEMENTS and is_dense:
        return sum_of_stack(stack(arrays))
    return _chain(arrays)


def sum_of_stack(arrays: Array) -> Array:
    """Return the sum of stacked arrays."""
    return sum_(arrays, axis=0)


def _chain(arrays: Sequence[Array]) -> Array:
    total: Array = reduce(operator.add, arrays)
    return total


def _products(terms: Sequence[ProductTerm]) -> list[Array]:
    """Return arrays of which products are the sum, as few as pay."""
    if len(terms) < 2:
        return [term.array() for term in terms]
    found = [
        group[0]
        if len(group) == 1
        else group[0]._replace(left=sum_of_arrays([term.left for term in group]))
        for group in _grouped(terms, lambda term: (_native.node_of(term.right), term.form))
    ]
    arrays = []
    for group in _grouped(found, lambda term: (term.left.shape, term.right.shape, term.form)):
        if len(group) > 1 and group[0].is_stackable:
            factors = [stack([term.left for term in group]), stack([term.right for term in group])]
            group = [group[0].of_stacks(*factors)]
        arrays += [term.array() for term in group]
    return arrays


def _behind(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return axes behind a new first one."""
    return tuple([axis + 1 for axis in axes])


def _grouped(items: Iterable[Any], key: Any) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


class _Piece(NamedTuple):
    """A piece of an array along one axis, and the values that it has."""

    start: int
    length: int
    values: Array


def _with_parts(terms: Sequence[SliceTerm], arrays: list[Array]) -> Array:
    """Return the sum of parts and arrays: one `concat` where the parts are disjoint pieces."""
    shape, dense = terms[0].shape, sum_of_arrays(arrays) if arrays else None
    merged = [
        group[0]._replace(values=sum_of_arrays([term.values for term in group]))
        for group in _grouped(terms, lambda term: term.part)
    ]
    for axis in range(len(shape)):
        pieces = [piece for term in merged if (piece := _piece_of(term, axis)) is not None]
        if len(pieces) == len(merged):
            joined = _joined(sorted(pieces, key=lambda piece: piece.start), axis, shape, dense)
            if joined is not None:
                return joined
    first = [] if dense is None else [dense]
    return _chain([*first, *(term.array() for term in merged)])


def _piece_of(term: SliceTerm, axis: int) -> _Piece | None:
    """Return a part as a piece along an axis, if it is whole along all others."""
    access, lengths = term.part
    place, own = 0, (0, 0)
    for at, ((to, by, start), length) in enumerate(zip(access, term.shape, strict=True)):
        if at == axis:
            own = start, 1 if to is None else lengths[to]
            is_regular = to in (None, place) and (own[1] < 2 or by == 1)
        else:
            is_regular = to == place and (by, start) == (1, 0) and lengths[place] == length
        if not is_regular:
            return None
        place += to is not None
    return None if place < len(lengths) else _Piece(*own, term.values)


def _in_shape(x: Array, shape: Shape) -> Array:
    """Return the elements of `x` in another shape; a reshape of a batch would not fuse."""
    return x if x.shape == shape else reshape(x, shape)


def _piece_shape(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _joined(pieces: Sequence[_Piece], axis: int, shape: Shape, dense: Array | None) -> Array | None:
    """Return the pieces and what is between them as one array; None where pieces overlap."""
    found: list[Array] = []

    def fill(start: int, stop: int) -> None:
        if stop > start and dense is None:
            lengths = _piece_shape(shape, axis, stop - start)
            found.append(_zeros_like_part(pieces, lengths, axis))
        elif stop > start and dense is not None:
            found.append(_slice(dense, axis, start, stop - start))

    end = 0
    for start, length, part in pieces:
        if start < end:
            return None
        fill(end, start)
        end = start + length
        values = _in_shape(part, _piece_shape(shape, axis, length))
        found.append(values if dense is None else _slice(dense, axis, start, length) + values)
    fill(end, shape[axis])
    if len(found) > MAX_PIECES and len(found) > len(pieces):
        return None
    return concat(found, axis=axis) if len(found) > 1 else found[0]


def _zeros_like_part(pieces: Sequence[_Piece], shape: Shape, axis: int) -> Array:
    """Return zeros of a shape, of a piece that is as long: they are batched as the piece is."""
    for piece in pieces:
        if piece.length >= shape[axis]:
            values = _in_shape(piece.values, _piece_shape(shape, axis, piece.length))
            return zeros_of(_slice(values, axis, 0, shape[axis]))
    first = pieces[0].values
    return zeros(shape, dtype=first.dtype, device=first.device)


def _slice(x: Array, axis: int, start: int, length: int) -> Array:
    picks: list[Any] = list(whole_axes(x.shape))
    picks[axis] = (start, length, 1)
    return index_view(x, tuple(picks))


__all__ = ["Deferred", "ProductTerm", "SliceTerm", "sum_of_stack", "total_of"]
