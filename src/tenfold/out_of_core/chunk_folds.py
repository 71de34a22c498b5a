"""Chunk folds: reduce the chunked axis by parts, and combine the parts to the whole result.

Takes a node that reduces, contracts, scatters or scans the chunked axis. A ChunkFold makes the
expression of one part from its rows, records of its value, and from the records of two neighbouring
parts those of both; at the end the result. Records are ndarrays: they are pickled, and combined in
any order of arrival.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((9, 2), tn.float64, "cpu"))
>>> node = tn._native.node_of(tn.max(x, axis=0))
>>> fold = reduction_fold(CutNode(node, node.op, (0,), ((9, 2),)), 0, 0)
>>> left, right = (fold.record([np.asarray(x)], 0) for x in ([1.0, 2.0], [4.0, 3.0]))
>>> fold.finish(fold.combine(left, right)).tolist()
[4.0, 3.0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import ReductionTree
from tenfold.core.shape_rules import Pick, whole_axes
from tenfold.dtypes import HALF_DTYPES, compute_dtype, kind_of
from tenfold.ops.arithmetic import add, multiply
from tenfold.ops.cast import astype
from tenfold.ops.indexing import index_view
from tenfold.ops.movement import expand_dims
from tenfold.out_of_core.cut_node import CannotCutError, CutNode, Rows
from tenfold.out_of_core.partial_folds import (
    Accumulator,
    accumulator_of,
    array_of_parts,
    combine_records,
    finish_records,
    fold_records,
    make_records,
    record_values,
)


@dataclass(frozen=True)
class ChunkFold:
    """Results of parts, of the shape of the whole result, that a reducer combines."""

    cut: CutNode
    length: int
    """The rows that are folded."""
    kind: str
    """The reducer, by name (codegen/reducers.py)."""
    axes: tuple[int | None, ...]
    """For each operand the axis of its rows; None: it is whole."""

    def parts(self, source: Rows, begin: int, end: int) -> Sequence[Array]:
        """Return the values of the part from row `begin` to `end`: of a half type in float32, which
        is rounded at the end.
        """
        rows = [
            source.whole(at) if axis is None else source.rows(at, begin, end, axis=axis)
            for at, axis in enumerate(self.axes)
        ]
        wide = [
            astype(x, compute_dtype(x.dtype)) if self.kind == "add" and is_half(x) else x
            for x in rows
        ]
        return (self.cut.call(wide),)

    def record(self, values: Sequence[np.ndarray], _begin: int, /) -> np.ndarray:
        """Return the record of a part, from its values and its first row."""
        (x,) = values
        return make_records([x.real, x.imag] if kind_of(x.dtype) == "c" else [x])

    def combine(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the record of two neighbouring parts."""
        return combine_records(self.kind, left, right)

    def finish(self, record: np.ndarray) -> np.ndarray:
        """Return the result, from the record of all parts."""
        return array_of_parts(record_values(record), self.cut.node.type.dtype)


def is_half(x: Any) -> bool:
    """Whether an operand is an array of a half type."""
    return isinstance(x, Array) and x.dtype in HALF_DTYPES


def contraction_fold(
    cut: CutNode, contracted: tuple[Sequence[int], Sequence[int]], place: int
) -> ChunkFold:
    """Return the fold of a product over rows: products of parts are added."""
    axes = [contracted[at][place] for at in (0, 1)]
    if any(axis not in (None, own) for axis, own in zip(cut.axes, axes, strict=True)):
        raise CannotCutError("its operands come in chunks along axes that do not meet")
    return ChunkFold(cut, cut.shapes[0][axes[0]], "add", tuple(axes))


def scatter_fold(cut: CutNode) -> ChunkFold:
    """Return the fold of a scatter: cells of parts are combined by its reducer."""
    rule = cut.op.lowering.scatter
    assert rule is not None, "it scatters"
    if rule.base is not None or {axis for _, axis in cut.chunked} != {0}:
        raise CannotCutError("its cells lie along the rows")
    axes = [
        0 if axis is None and shape else axis
        for axis, shape in zip(cut.axes, cut.shapes, strict=True)
    ]
    return ChunkFold(cut, cut.shapes[rule.value][0], rule.kind, tuple(axes))


@dataclass(frozen=True)
class ReductionFold(ChunkFold):
    """A reduction by its canonical tree: the axes behind the chunked one are folded first."""

    tree: ReductionTree
    accumulator: Accumulator
    inner: tuple[int, ...]
    """The axes that a part folds: the chunked one, and those behind it."""
    outer: tuple[int, ...]
    distance: int
    """How many positions one row stands for."""

    def parts(self, source: Rows, begin: int, end: int) -> Sequence[Array]:
        """Return the accumulator values of the part."""
        x, params = source.rows(0, begin, end), (self.inner, False, *self.cut.node.params[2:])
        return [_native.apply(op.id, (x,), params) for op in self.accumulator.parts]

    def record(self, values: Sequence[np.ndarray], begin: int, /) -> np.ndarray:
        """Return the records of accumulator values, with positions in the whole axis."""
        records = make_records(values)
        for name in self.accumulator.positions:
            records[name] += begin * self.distance
        return records

    def finish(self, record: np.ndarray) -> np.ndarray:
        """Fold the outer axes, and return the result."""
        folded = fold_records(self.tree, record, self.outer, keepdims=True)
        return finish_records(self.tree, folded, self.cut.node.type)


def reduction_fold(cut: CutNode, at: int, axis: int) -> ReductionFold:
    """Return the fold of a reduction over the chunked axis and others."""
    axes, tree, shape = cut.node.params[0], cut.op.lowering.folding, cut.shapes[at]
    if tree is None:
        raise CannotCutError
    inner = tuple([a for a in axes if a >= axis])
    outer = tuple([a for a in axes if a < axis])
    if tree.one_axis and outer:
        raise CannotCutError("positions in the flattened array follow the order of the first axis")
    accumulator = accumulator_of(cut.op, cut.node.operands[0])
    distance = math.prod(shape[a] for a in inner if a > axis)
    reducer = shape[axis], tree.kind, cut.axes
    return ReductionFold(cut, *reducer, tree, accumulator, inner, outer, distance)


@dataclass(frozen=True)
class ScanFold(ChunkFold):
    """A scan along the chunked axis: a part has its total, and gets the carry of those before."""

    axis: int

    @property
    def params(self) -> tuple[Any, ...]:
        """The params without an initial element; halves are scanned in float32."""
        axis, dtype, _, exclusive = self.cut.node.params
        result = self.cut.node.type.dtype
        return axis, compute_dtype(result) if result in HALF_DTYPES else dtype, False, exclusive

    def parts(self, source: Rows, begin: int, end: int) -> Sequence[Array]:
        """Return the total of a part."""
        scanned = self.cut.call((source.rows(0, begin, end),), (*self.params[:3], False))
        picks: list[Pick] = [*whole_axes(scanned.shape)]
        picks[self.axis] = end - begin - 1
        return (index_view(scanned, tuple(picks)),)

    def record(self, values: Sequence[np.ndarray], _begin: int, /) -> np.ndarray:
        """Return the total as a list of one."""
        return np.array(values[0])[None]

    def combine(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Join the lists."""
        return np.concatenate((left, right))

    def finish(self, record: np.ndarray) -> np.ndarray:
        """Return the carry into each part: the totals before it, in order."""
        product = self.kind == "product"
        identity = record.dtype.type(1 if product else -0.0)
        totals = np.concatenate((np.full_like(record[:1], identity), record[:-1]))
        with np.errstate(all="ignore"):
            scan = np.multiply if product else np.add
            return scan.accumulate(totals, axis=0, dtype=totals.dtype)

    def rows(self, source: Rows, begin: int, end: int) -> Array:
        """Return rows of the scan: from the begin of a part, with its carry."""
        _, _, initial, _ = self.cut.node.params
        low, high = max(begin - initial, 0), max(end - initial, 0)
        start, carry = source.carry(low)
        params = (*self.params[:2], initial and begin == 0, self.params[3])
        scanned = self.cut.call((source.rows(0, start, high),), params)
        picks: list[Pick] = [*whole_axes(scanned.shape)]
        picks[self.axis] = (low - start, end - begin, 1)
        is_more = scanned.shape[self.axis] != end - begin  # an initial element of no rows, too
        part = index_view(scanned, tuple(picks)) if is_more else scanned
        combine = multiply if self.kind == "product" else add
        result = combine(expand_dims(carry, axis=self.axis), part)
        dtype = self.cut.node.type.dtype
        return result if result.dtype == dtype else astype(result, dtype)


def scan_fold(cut: CutNode, at: int) -> ScanFold:
    """Return the fold of a scan."""
    axis = cut.node.params[0]
    return ScanFold(cut, cut.shapes[at][axis], cut.op.lowering.scanning, cut.axes, axis)
