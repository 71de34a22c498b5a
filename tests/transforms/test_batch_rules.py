"""Every operation in its batched form is the stack of its members: bit for bit, or within the bound
of a reordered sum where a library computes it.

The rows are the samples of all operations. Of each sample every choice of operands has the batch
axis in turn, the others are shared; indices among the arguments are operands as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from movement_samples import called
from tenfold import _native
from tenfold._native import Type
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Kind, Op, Operation, SampleCall
from tenfold.core.pytree import flatten
from tenfold.dtypes import DTYPES, INT64, kind_of
from tenfold.errors import ExplainedError, ShapeError
from tenfold.testing import assert_close, assert_equal_bits
from tenfold.transforms.batch_interpreter import BatchedNode, batch_nodes

INDEXED = ("gather", "take", "take_along_axis", "put_at", "add_at", "segment_sum")
"""The operations among whose arguments are indices."""
BY_VALUES = ("unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero")
"""The shapes of their results depend on values."""
ROWS = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public and operation.name not in BY_VALUES
    for number, sample in enumerate(operation.samples)
]


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + len(shape) + sum(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    whole = rng.integers(1, 99, shape)
    return (whole if kind_of(DTYPES[dtype]) in "iu" else whole / 8).astype(DTYPES[dtype])


def operands_of(operation: Operation[...], sample: SampleCall) -> tuple[list[Any], SampleCall]:
    """Return what may be batched, shapes and the sample's indices, and the other arguments."""
    indices = [
        each
        for each in sample.positional
        if operation.name in INDEXED and isinstance(each, (list, np.ndarray))
    ]
    rest = sample.positional[len(indices) :]
    return [*sample.shapes, *indices], SampleCall((), sample.arguments, rest)


def member(operation: Operation[...], given: Any, dtype: str, number: int) -> np.ndarray:
    """An operand of one member; indices of others are the same backwards, which stays in range."""
    if isinstance(given, tuple):
        made = values(given, dtype, number)
        if dtype == "bool" and operation.namespace == "linalg" and made.ndim > 1:
            order = math.isqrt(made.size)
            if operation.name.startswith(("linalg.tensor", "tensor")) and order**2 == made.size:
                made = made.reshape(order, order)  # as it is inverted or solved
            regular = np.tril(made) | np.eye(*made.shape[-2:], dtype=bool)  # not singular
            return regular.reshape(given)
        return made
    indices = np.asarray(given)
    if isinstance(given, list) and not indices.size:
        indices = indices.astype(INT64)
    return np.flip(indices).copy() if number % 2 else indices


def outcomes(operation: Operation[...], arrays: Sequence[Any], rest: SampleCall) -> list[Any] | str:
    """The results of one call, or what is wrong with it."""
    try:
        result = called(operation, operation.public_signature, list(arrays), rest)
        return [leaf for leaf in flatten(result)[0] if isinstance(leaf, tn.Array)]
    except ExplainedError as error:
        return f"{type(error).__name__}: {error.rule}"


def bounded(graph: Graph) -> bool:
    """Whether a library computes some of it."""
    ops = [node.op for node in graph.nodes if isinstance(node.op, Op)]
    return any(
        op.rewriting.contraction or op.lowering.multiply_adds or op.namespace == "linalg"
        for op in ops
    )


def check(
    operation: Operation[...], sample: SampleCall, dtype: str, chosen: Sequence[bool], length: int
) -> None:
    given, rest = operands_of(operation, sample)
    of_members = [
        [member(operation, each, dtype, number) for each in given] for number in range(length or 1)
    ]
    types = [Type(x.shape, x.dtype, tn.zeros(0).device) for x in of_members[0]]
    placeholders = [_native.placeholder(type_) for type_ in types]
    written = outcomes(operation, placeholders, rest)
    if isinstance(written, str):
        wrong = outcomes(operation, [tn.asarray(x) for x in of_members[0]], rest)
        assert wrong == written
        return
    stand_ins = {}
    for at, placeholder in enumerate(placeholders):
        own = [x[at] for x in of_members]
        stack = np.stack(own)[:length] if chosen[at] else own[0]
        stand_ins[_native.node_of(placeholder)] = BatchedNode(tn.asarray(stack), chosen[at])
    nodes = [_native.node_of(leaf) for leaf in written]
    close = bounded(Graph.of(nodes))
    entries = batch_nodes(nodes, stand_ins)
    for place, entry in enumerate(entries):
        result = np.asarray(entry.value)
        if not entry.batched:
            result = np.broadcast_to(result, (length, *result.shape))
        assert result.shape == (length, *nodes[place].type.shape)
        assert result.dtype == nodes[place].type.dtype
        for number in range(length):
            own = [
                tn.asarray(of_members[number if is_batched else 0][at])
                for at, is_batched in enumerate(chosen)
            ]
            found = outcomes(operation, own, rest)
            assert not isinstance(found, str)
            if close:
                unit = 1e-4 if result.dtype.itemsize <= 8 and result.dtype != "f8" else 1e-11
                unit = 1e-2 if result.dtype in ("float16", DTYPES["bfloat16"]) else unit
                assert_close(result[number], np.asarray(found[place]), rtol=unit, atol=unit)
            else:
                assert_equal_bits(result[number], np.asarray(found[place]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "complex64", "bool"])
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_batched_form_is_the_stack_of_the_members(
    operation: Operation[...],
    sample: SampleCall,
    dtype: str,
    part: Part,
) -> None:
    count = len(operands_of(operation, sample)[0])
    choices = [*itertools.product((True, False), repeat=count)][:-1]
    lengths = (3, 1, 0) if dtype == "float64" else (3,)
    for length, chosen in part(itertools.product(lengths, choices)):
        check(operation, sample, dtype, chosen, length)


@pytest.mark.parametrize(
    "name", [name for name, op in OPS.items() if isinstance(op, Op) and op.public]
)
def test_every_operation_of_the_table_has_a_batch_rule(name: str) -> None:
    op = OPS[name]
    assert isinstance(op, Op)
    facts = (
        op.semantics.shapes,
        op.rewriting.reduces,
        op.lowering.scanning,
        op.transforms.batch_params,
        op.transforms.batch,
    )
    assert any(facts) or op.semantics.kind == Kind.VALUE


def test_stand_ins_of_different_lengths_are_refused() -> None:
    x, y = (_native.placeholder(Type((2,), DTYPES["float64"], "cpu")) for _ in range(2))
    stand_ins = {
        _native.node_of(each): BatchedNode(tn.zeros((length, 2)), batched=True)
        for each, length in ((x, 3), (y, 4))
    }
    with pytest.raises(ShapeError, match="batch axes of lengths 3, 4 meet"):
        batch_nodes([_native.node_of(x + y)], stand_ins)


def test_shared_operand_is_written_once() -> None:
    x, y = (_native.placeholder(Type((2,), DTYPES["float64"], "cpu")) for _ in range(2))
    stand_ins = {
        _native.node_of(x): BatchedNode(tn.ones((3, 2)), batched=True),
        _native.node_of(y): BatchedNode(tn.asarray([2.0, 3.0]), batched=False),
    }
    shared, both, constant = batch_nodes(
        [_native.node_of(each) for each in (tn.exp(y), x * y, tn.ones((4,)))], stand_ins
    )
    assert (shared.batched, both.batched, constant.batched) == (False, True, False)
    assert (shared.value.shape, both.value.shape, constant.value.shape) == ((2,), (3, 2), (4,))
    assert_equal_bits(shared.value, np.exp(np.array([2.0, 3.0])))
