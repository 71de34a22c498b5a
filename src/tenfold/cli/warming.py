"""Cache warming: lists the kernels that most programs need first.

Takes names of dtypes, returns kernels without duplicates. They are the scheduler's kernels of
single operations on contiguous operands, and the loops of the op interpreter. Nothing is compiled
or computed.

>>> len(list(kernels(["float32"]))) > 50 < len(list(loops(["float32"])))
True
>>> len(list(fold_loops(["float32"])))
54
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain, product
from typing import Any

import numpy as np

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Kind, Op
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DTypeError
from tenfold.jit.host import host_target
from tenfold.jit.program import Source
from tenfold.ops.selection import where
from tenfold.schedule.elementwise_lowering import has_rule
from tenfold.schedule.generic_elementwise import GenericElementwise, canonical_steps
from tenfold.schedule.generic_reduction import GenericReduction
from tenfold.schedule.schedule import schedule_graph

Apply = Callable[..., tn.Array]

DEFAULT_DTYPES = ("float64", "float32", "int64", "int32", "bool")
MIXED_PAIRS = (("float64", "float32"), ("float64", "int64"))
"""Frequent pairs of dtypes in mixed operations."""
WARMED_LENGTH = 1000
REDUCED_SHAPES = (((WARMED_LENGTH,), None), ((20, 100), 1), ((100, 64), 0))
"""Shapes with the reduced axis: all elements, rows, columns."""
SCALAR_VALUES = {"b": True, "u": 3, "i": 3, "f": 0.75, "c": 0.75}
"""A scalar operand for each kind; kernels get its value at launch."""


def kernels(dtypes: Sequence[str]) -> Iterator[Source]:
    """Yield the kernels of each operation on arrays of these dtypes."""
    yielded: set[Source] = set()
    arrays = chain(
        creations(dtypes), elementwise_operations(dtypes), conversions(dtypes), reductions(dtypes)
    )
    for array in arrays:
        plan = schedule_graph(Graph.of([_native.node_of(array)]), host_target())
        for step in plan.steps:
            if step.launch is not None and step.launch.kernel not in yielded:
                yielded.add(step.launch.kernel)
                yield step.launch.kernel


def loops(dtypes: Sequence[str]) -> Iterator[Source]:
    """Yield the loops of each elementwise operation and conversion, for all operand layouts."""
    yielded: set[Source] = set()
    fma = host_target().simd.fma
    for array in chain(elementwise_operations(dtypes), mixed_dtypes(dtypes), conversions(dtypes)):
        node = _native.node_of(array)
        op, params, operands, result = node.op, node.params, node.operands, node.type.dtype
        if not has_rule(op, params, operands, result, fma=fma):
            continue
        inputs = tuple(
            [(input_node.type.dtype, input_node.is_scalar) for input_node in node.inputs]
        )
        for form in forms(sum(not scalar for _, scalar in inputs)):
            loop = GenericElementwise(op, params, inputs, operands, result, form)
            if loop not in yielded:
                yielded.add(loop)
                yield loop


def fold_loops(dtypes: Sequence[str]) -> Iterator[Source]:
    """Yield the loops of each reduction: of one axis for all layouts, of several if contiguous."""
    yielded: set[Source] = set()
    for array in reductions(dtypes):
        for node in Graph.of([_native.node_of(array)]).nodes:
            op: Any = node.op
            if op is None or op.lowering.folding is None:
                continue
            source = node.inputs[0].type.dtype
            loop = GenericReduction(op, source, node.operands[0], node.type.dtype)
            for variant in (*one_axis_loops(loop), *multi_axis_loops(loop)):
                if variant not in yielded:
                    yielded.add(variant)
                    yield variant


def one_axis_loops(loop: GenericReduction) -> Iterator[GenericReduction]:
    """Yield the loops of one axis."""
    for column, strided in product((False, True), repeat=2):
        yield replace(loop, column=column, strided=strided)


def multi_axis_loops(loop: GenericReduction) -> Iterator[GenericReduction]:
    """Yield the loops of the first, the last and a middle one of several axes."""
    if loop.folding.order != "each":
        return
    first = replace(loop, leaves=False)
    last = replace(loop, source=first.stored_dtype, enters=False)
    middle = replace(last, leaves=False)
    for variant in (first, middle, last):
        yield variant
        yield replace(variant, column=True, strided=variant is not last)
    yield replace(first, column=True)


def forms(arrays: int) -> list[str]:
    """Return the layouts of several arrays that need separate loops."""
    layouts = map("".join, product("1s0", repeat=arrays))
    return list(dict.fromkeys(map(canonical_steps, layouts)))


def creations(dtypes: Sequence[str]) -> Iterator[tn.Array]:
    """Yield constant arrays and ranges."""
    for dtype in dtypes:
        number = SCALAR_VALUES[kind_of(DTYPES[dtype])]
        yield from apply(tn.full, (WARMED_LENGTH,), number, dtype=DTYPES[dtype])
        yield from apply(tn.arange, WARMED_LENGTH, dtype=DTYPES[dtype])


def maps() -> Iterator[tuple[Op[...], int]]:
    """Yield each elementwise operation with its arity."""
    for op in OPS.values():
        if isinstance(op, Op) and op.semantics.kind == Kind.MAP and op.semantics.dtypes is not None:
            yield op, len(inspect.signature(op.function).parameters)


def elementwise_operations(dtypes: Sequence[str]) -> Iterator[tn.Array]:
    """Yield each elementwise operation on arrays of one dtype, and on arrays and numbers."""
    for op, arity in maps():
        for dtype, arrays in product(dtypes, product((True, False), repeat=arity)):
            number = SCALAR_VALUES[kind_of(DTYPES[dtype])]
            operands = [
                leaf(dtype, (WARMED_LENGTH,), operand_index) if array else number
                for operand_index, array in enumerate(arrays)
            ]
            if op is where and arrays[0]:
                yield from apply(op, leaf("bool", (WARMED_LENGTH,)), *operands[1:])
            elif any(arrays) and (arity < 3 or all(arrays)):
                yield from apply(op, *operands)


def mixed_dtypes(dtypes: Sequence[str]) -> Iterator[tn.Array]:
    """Yield each elementwise operation on two arrays of a frequent pair of dtypes."""
    pairs = [
        ordered_pair
        for pair in MIXED_PAIRS
        for ordered_pair in (pair, pair[::-1])
        if set(pair) <= set(dtypes)
    ]
    for (op, arity), pair in product(maps(), pairs):
        operands = [
            leaf(dtype, (WARMED_LENGTH,), operand_index) for operand_index, dtype in enumerate(pair)
        ]
        if arity == 3:
            operands.insert(0, leaf("bool", (WARMED_LENGTH,), 2))
        if arity in (2, 3):
            yield from apply(op, *operands)


def conversions(dtypes: Sequence[str]) -> Iterator[tn.Array]:
    """Yield each conversion of one dtype to another."""
    for source, target in product(dtypes, repeat=2):
        if source != target:
            yield from apply(tn.astype, leaf(source, (WARMED_LENGTH,)), DTYPES[target])


def reductions(dtypes: Sequence[str]) -> Iterator[tn.Array]:
    """Yield each reduction of all elements, of rows and of columns."""
    ops: list[Apply] = [tn.mean, tn.var, tn.std]
    ops += [op for op in OPS.values() if isinstance(op, Op) and op.lowering.folding is not None]
    for op in ops:
        for dtype, (shape, axis) in product(dtypes, REDUCED_SHAPES):
            yield from apply(op, leaf(dtype, shape), axis=axis)


def apply(op: Callable[..., tn.Array], *operands: object, **options: object) -> Iterator[tn.Array]:
    """Yield the result of an operation, if it supports these operands."""
    with suppress(DTypeError):
        yield op(*operands, **options)


@cache
def leaf(dtype: str, shape: tuple[int, ...], index: int = 0) -> tn.Array:  # noqa: ARG001  # the key
    """Return a computed array, another one for each operand index."""
    return tn.asarray(np.zeros(shape, DTYPES[dtype]))
