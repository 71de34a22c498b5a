"""Partial folds: the accumulator values of a part of an axis, and how those of parts are combined.

Takes a reduction. Its canonical tree (`core/canonical_reduction.py`) says what the accumulator
values are, how two are combined, and how a result is made of them. For each value there is an
operation that folds an axis to it. Partial results are records of these values, one field each,
which NumPy combines by the instructions of kernels: IEEE arithmetic, so the bits are the same.

>>> left, right = (make_records([np.asarray(x)]) for x in ([1.0, 2.0], [4.0, 3.0]))
>>> combine_records("largest", left, right)["f0"].tolist()
[4.0, 3.0]
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.codegen.reducers import COMBINE
from tenfold.core.canonical_reduction import fold_axes
from tenfold.core.cast_values import cast_values
from tenfold.core.op import Inferred, Kind, Op, ReductionTree
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Instruction, Operand
from tenfold.dtypes import BOOL, INT64, kind_of, real_part

UFUNCS: dict[str, Callable[..., Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "select": np.where,
}
"""The primitives that reducers use and that NumPy has by other names."""


class Accumulator(NamedTuple):
    """The accumulator values of a reduction."""

    parts: tuple[Op[...], ...]
    """For each value the operation that folds an axis to it."""
    positions: tuple[str, ...]
    """The fields of its record that are positions along the axis."""


@functools.cache
def accumulator_of(op: Op[...], operand: np.dtype) -> Accumulator:
    """Return the accumulator of a reduction, by the dtype in which it takes its operand."""
    tree, body = op.lowering.folding, Body()
    assert tree is not None, f"{op.name} has a tree"
    index = body.index(0)
    loads = [body.load(at, real_part(operand)) for at in range(1 + (kind_of(operand) == "c"))]
    element = ComplexElement(*loads) if len(loads) > 1 else loads[0]
    values = tree.accumulate(body, element, index)
    positions = [f"f{at}" for at, x in enumerate(values) if x.position == index.position]
    parts = [_part_of(op, tree, at, value.dtype) for at, value in enumerate(values)]
    return Accumulator(tuple(parts), tuple(positions))


def compute_body(emit: Callable[..., Sequence[Element]], *operands: np.ndarray) -> list[np.ndarray]:
    """Return the value of each element that `emit(body, *elements)` returns, by NumPy."""
    body, values = Body(), list[Any]()
    results = emit(body, *[body.load(at, x.dtype) for at, x in enumerate(operands)])
    with np.errstate(all="ignore"):
        for instruction in body.instructions:
            values.append(_value(instruction, values, operands))
    return [np.asarray(values[element.position]) for element in results]


def _value(instruction: Instruction, values: list[Any], operands: Sequence[np.ndarray]) -> Any:
    name, dtype, inputs, data = instruction
    if name == "load":
        assert isinstance(data, int), "the number of an operand"
        return operands[data]
    if name == "constant":
        if kind_of(dtype) in "iu" or dtype == BOOL:
            return dtype.type(data)
        return np.asarray(data, f"u{dtype.itemsize}").view(dtype)[()]
    (first, *_) = arguments = [values[at] for at in inputs]
    if name == "convert":
        return cast_values(np.asarray(first), dtype)
    if name == "bits":
        return np.asarray(first).view(dtype)
    return (UFUNCS.get(name) or getattr(np, name))(*arguments)


def make_records(values: Sequence[np.ndarray]) -> np.ndarray:
    """Return records with the fields f0, f1, ... of these values, which broadcast."""
    record = np.dtype([(f"f{at}", value.dtype) for at, value in enumerate(values)])
    records = np.empty(np.broadcast_shapes(*[value.shape for value in values]), record)
    for at, value in enumerate(values):
        records[f"f{at}"] = value
    return records


def record_values(records: np.ndarray) -> list[np.ndarray]:
    """Return the values in records."""
    return [records[name] for name in records.dtype.names or ()]


def array_of_parts(values: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Return the array of this dtype whose real and imaginary parts are these."""
    if kind_of(dtype) != "c":
        return np.array(cast_values(values[0], dtype))  # aligned
    result = np.empty(values[0].shape, dtype)
    result.real, result.imag = values
    return result


def combine_records(kind: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Combine two arrays of records by the reducer of that name (codegen/reducers.py)."""
    fields = [*record_values(left), *record_values(right)]
    half = len(fields) // 2
    return make_records(compute_body(lambda k, *x: COMBINE[kind](k, x[:half], x[half:]), *fields))


def fold_records(
    tree: ReductionTree, records: np.ndarray, axes: Sequence[int], *, keepdims: bool
) -> np.ndarray:
    """Fold axes of records by the canonical tree of a reduction."""
    combine = functools.partial(combine_records, tree.kind)
    identity = np.array(tuple([tree.identity or 0] * len(record_values(records))), records.dtype)
    return fold_axes(combine, records, tuple(axes), keepdims, identity)


def finish_records(tree: ReductionTree, records: np.ndarray, type_: Type) -> np.ndarray:
    """Return the result of a reduction, of this Type, from its records."""

    def emit(body: Body, *values: Element) -> Sequence[Element]:
        result = tree.finish(body, values, type_.dtype)
        return [*result] if isinstance(result, ComplexElement) else [result]

    values = compute_body(emit, *record_values(records))
    return array_of_parts(values, type_.dtype).reshape(type_.shape)


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
