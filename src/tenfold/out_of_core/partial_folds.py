"""Partial folds: reduce a part of an axis to accumulator values, and combine those of all parts.

Takes a reduction. Its canonical tree (`core/canonical_reduction.py`) says what the accumulator
values are, how two are combined, and how a result is made of them. For each value there is an
operation that folds an axis to it. Partial results are records of these values, one field each.

>>> import tenfold as tn
>>> from tenfold.ops.reduce import argmax
>>> fold = PartialFold.of(argmax, np.dtype("float64"))
>>> left, right = (fold.records(fold.apply(tn.asarray(x), (0,))) for x in ([1.0, 7.0], [7.0, 2.0]))
>>> fold.combine(left, fold.moved(right, 2)).tolist()
(7.0, 1)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.codegen.reducers import COMBINE
from tenfold.core.canonical_reduction import fold_axes
from tenfold.core.cast_values import cast_values
from tenfold.core.op import Inferred, Kind, Op, Params, ReductionTree
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.dtypes import INT64, kind_of, real_part
from tenfold.out_of_core.body_values import compute_body


@dataclass(frozen=True, eq=False)
class PartialFold:
    """The accumulator values of a reduction of operands of one dtype."""

    op: Op[...]
    tree: ReductionTree
    record: np.dtype
    """A field for each accumulator value."""
    positions: tuple[str, ...]
    """The fields that are positions along the axis."""
    parts: tuple[Op[...], ...]
    """For each field the operation that folds an axis to it."""

    @classmethod
    @functools.cache
    def of(cls, op: Op[...], operand: np.dtype) -> PartialFold:
        """Return the partial folds of a reduction, by the dtype in which it takes its operand."""
        tree = op.lowering.folding
        assert tree is not None, f"{op.name} has a tree"
        body = Body()
        index = body.index(0)
        values = tree.accumulate(body, _load(body, operand), index)
        names = [f"f{at}" for at in range(len(values))]
        record = np.dtype([(n, value.dtype) for n, value in zip(names, values, strict=True)])
        positions = [
            n for n, value in zip(names, values, strict=True) if value.position == index.position
        ]
        parts = [_part_of(op, tree, at, value.dtype) for at, value in enumerate(values)]
        return cls(op, tree, record, tuple(positions), tuple(parts))

    def apply(self, x: Array, axes: Sequence[int], params: Params = ()) -> tuple[Array, ...]:
        """Return the accumulator values over axes; `params` are those behind axes and keepdims."""
        return tuple(
            [_native.apply(op.id, (x,), (tuple(axes), False, *params)) for op in self.parts]
        )

    def records(self, values: Sequence[Any]) -> np.ndarray:
        """Return accumulator values as records."""
        return make_records([np.asarray(value) for value in values])

    def moved(self, records: np.ndarray, distance: int) -> np.ndarray:
        """Return records of a part that begins at a distance from the begin of the axis."""
        for name in self.positions:
            records[name] += distance
        return records

    def combine(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Combine the records of neighbouring parts, of which `left` comes first."""
        return combine_records(self.tree.kind, left, right)

    def finish(self, records: np.ndarray, axes: Sequence[int], type_: Type) -> np.ndarray:
        """ChunkFold the remaining axes of records, and return the result of the reduction."""
        folded = fold_records(self.tree, records, axes, keepdims=True)
        dtype = type_.dtype

        def emit(body: Body, *values: Element) -> Sequence[Element]:
            result = self.tree.finish(body, values, dtype)
            return [*result] if isinstance(result, ComplexElement) else [result]

        values = compute_body(emit, *[folded[name] for name in self.record.names or ()])
        if kind_of(dtype) == "c":
            result = np.empty(folded.shape, dtype)
            result.real, result.imag = values
            return result.reshape(type_.shape)
        return np.array(cast_values(values[0], dtype)).reshape(type_.shape)


def combine_records(kind: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Combine two arrays of records by the reducer of that name."""
    names = left.dtype.names or ()

    def emit(body: Body, *values: Element) -> Sequence[Element]:
        return COMBINE[kind](body, values[: len(names)], values[len(names) :])

    fields = [side[name] for side in (left, right) for name in names]
    return make_records(compute_body(emit, *fields))


def fold_records(
    tree: ReductionTree, records: np.ndarray, axes: Sequence[int], *, keepdims: bool
) -> np.ndarray:
    """ChunkFold axes of records by the canonical tree of a reduction."""
    combine = functools.partial(combine_records, tree.kind)
    identity = np.array(tuple([tree.identity or 0] * len(records.dtype.names or ())), records.dtype)
    return fold_axes(combine, records, tuple(axes), keepdims, identity)


def make_records(values: Sequence[np.ndarray]) -> np.ndarray:
    """Return records with the fields f0, f1, ... of these values, which broadcast."""
    record = np.dtype([(f"f{at}", value.dtype) for at, value in enumerate(values)])
    records = np.empty(np.broadcast_shapes(*[value.shape for value in values]), record)
    for at, value in enumerate(values):
        records[f"f{at}"] = value
    return records


def _load(body: Body, dtype: np.dtype) -> Operand:
    if kind_of(dtype) != "c":
        return body.load(0, dtype)
    return ComplexElement(body.load(0, real_part(dtype)), body.load(1, real_part(dtype)))


def _part_of(op: Op[...], tree: ReductionTree, at: int, dtype: np.dtype) -> Op[...]:
    """Declare the operation whose result is one accumulator value of a reduction."""

    def finish(_: Body, values: tuple[Element, ...], __: np.dtype) -> Operand:
        return values[at]

    def rule(types: tuple[Type, ...], *params: Any) -> Inferred:
        inferred = op.semantics.rule(types, *params)
        return Inferred(((inferred.results[0][0], dtype),), inferred.operands)

    def reference(x: np.ndarray, axes: tuple[int, ...], keepdims: bool, *_: Any) -> np.ndarray:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        shape = [1 if axis in axes else length for axis, length in enumerate(x.shape)]
        lines, folded = x, axes
        if tree.one_axis:
            lines = np.transpose(x, (*kept, *axes)).reshape(*[x.shape[a] for a in kept], -1)
            folded = (len(kept),)
        values = fold_records(tree, _accumulate(tree, lines), folded, keepdims=False)[f"f{at}"]
        return values.reshape(shape) if keepdims else values

    return Op.declare(
        name=f"{op.name}_part_{at}",
        page="out_of_core",
        function=op.function,
        kind=Kind.CONTRACTION,
        rule=rule,
        bind=op.signature.bind,
        reference=reference,
        reduces=True,
        shapes="reduced",
        folding=tree._replace(finish=finish),
        public=False,
    )


def _accumulate(tree: ReductionTree, x: np.ndarray) -> np.ndarray:
    """Return the records of single elements; a position is that along the last axis."""
    operands = [x.real, x.imag] if kind_of(x.dtype) == "c" else [x]
    positions = np.broadcast_to(np.arange(x.shape[-1]) if x.ndim else 0, x.shape)

    def emit(body: Body, *values: Element) -> Sequence[Element]:
        element = ComplexElement(*values[:-1]) if len(values) > 2 else values[0]
        return tree.accumulate(body, element, values[-1])

    values = compute_body(emit, *operands, positions.astype(INT64))
    return make_records([np.broadcast_to(value, x.shape) for value in values])
