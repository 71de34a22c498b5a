"""The expression that a template makes for a number of rows is that of the batch rules."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from movement_samples import called
from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Operation, SampleCall
from tenfold.core.pytree import flatten
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import FLOAT32
from tenfold.errors import ExplainedError
from tenfold.transforms import batch_compiler
from tenfold.transforms.batch_interpreter import batch_implicitly
from tenfold.transforms.batch_templates import BatchTemplate, is_uniform

EXAMPLES = (3, 7)
"""The numbers of rows by which a template is found."""
OTHERS = (2, 16, 17, 127, 1001)
OPERATIONS = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public
    for number, sample in enumerate(operation.samples)
]


def member_of(operation: Operation[...], sample: SampleCall) -> Subgraph | None:
    """The operation of one member on placeholders; None where it needs values."""
    inputs = [_native.placeholder(Type(shape, FLOAT32, "cpu")) for shape in sample.shapes]
    rest = SampleCall((), sample.arguments, sample.positional)
    try:
        result = called(operation, operation.public_signature, list(inputs), rest)
    except (ExplainedError, TypeError, ValueError, RuntimeError):
        return None
    outputs = [_native.node_of(x) for x in flatten(result)[0] if isinstance(x, tn.Array)]
    known = {*map(_native.node_of, inputs)}
    leaves = {node for node in Graph.of(outputs).nodes if node.op is None and not node.is_scalar}
    if not outputs or not leaves or not leaves <= known:
        return None
    return Subgraph(operation.name, outputs, [*map(_native.node_of, inputs)])


def batched(member: Subgraph, flags: tuple[bool, ...], rows: int) -> Subgraph:
    batch = batch_implicitly(member, flags, rows)
    return batch.to_subgraph(batch.result_flags())


def outline(subgraph: Subgraph) -> list[Any]:
    """Operations, parameters, Types and edges; leaves by their place among the inputs."""
    graph, places = subgraph.graph, {node: at for at, node in enumerate(subgraph.inputs)}

    def facts(node: Node) -> tuple[Any, ...]:
        types = [(type_.shape, type_.dtype) for type_ in node.types]
        number = repr(node.scalar) if node.is_scalar else None
        return node.op, repr(node.params), types, number, places.get(node)

    return [[facts(node) for node in graph.nodes], graph.inputs, graph.outputs]


@pytest.mark.parametrize(("operation", "sample"), OPERATIONS)
def test_it_is_that_of_the_batch_rules(
    operation: Operation[...], sample: SampleCall, part: Part
) -> None:
    member = member_of(operation, sample)
    if member is None or not is_uniform(member):
        pytest.skip("it needs values")
    for flags in part([*itertools.product((True, False), repeat=len(member.inputs))][:-1]):
        first, second = (batched(member, flags, rows) for rows in EXAMPLES)
        template = BatchTemplate.of((EXAMPLES[0], first), (EXAMPLES[1], second))
        for rows in OTHERS if template is not None else ():
            assert template is not None
            assert outline(template.subgraph(rows)) == outline(batched(member, flags, rows))


def test_most_operations_have_one() -> None:
    found = []
    for parameter in OPERATIONS:
        member = member_of(*parameter.values)
        if member is None or not member.inputs:
            continue
        flags = (True,) * len(member.inputs)
        first, second = (batched(member, flags, rows) for rows in EXAMPLES)
        found.append(BatchTemplate.of((EXAMPLES[0], first), (EXAMPLES[1], second)) is not None)
    assert len(found) > 100
    assert sum(found) > 0.8 * len(found)


def turned(rows: int, factor: float = 2.0) -> Subgraph:
    x = _native.placeholder(Type((rows, 4), FLOAT32, "cpu"))
    return Subgraph(
        "turned", [_native.node_of(tn.reshape(x * factor, (4, rows)))], [_native.node_of(x)]
    )


def test_parameters_have_the_number_of_rows() -> None:
    template = BatchTemplate.of((3, turned(3)), (5, turned(5)))
    assert template is not None
    subgraph = template.subgraph(9)
    values = np.arange(36, dtype=np.float32).reshape(9, 4)
    (result,) = subgraph.apply([tn.asarray(values)])
    assert np.array_equal(np.asarray(result), (values * 2).reshape(4, 9))


def test_numbers_that_differ_otherwise_have_none() -> None:
    assert BatchTemplate.of((3, turned(3, 2.0)), (5, turned(5, 3.0))) is None
    assert BatchTemplate.of((3, turned(3, 0.0)), (5, turned(5, -0.0))) is None
    assert BatchTemplate.of((3, turned(6)), (5, turned(10))) is None


@tn.op(
    shape=lambda x: x.shape,
    reference=lambda x: x + x,
    batch=lambda x: x * 2 if x.shape[0] < 10 else x + x,
)
def doubled(x: Any) -> Any:
    "Twice each element; its batch rule looks at the number of members."


def test_operations_of_users_are_batched_by_their_rules() -> None:
    x = _native.placeholder(Type((4,), FLOAT32, "cpu"))
    member = Subgraph("member", [_native.node_of(doubled(x) + 1)], [_native.node_of(x)])
    call = tn.function(lambda y: doubled(y) - 1)(x)
    inside = Subgraph("inside", [_native.node_of(call)], [_native.node_of(x)])
    assert not is_uniform(member)
    assert not is_uniform(inside)


@pytest.mark.usefixtures("fused_multiply_add")
def test_batch_rules_run_for_two_sizes_of_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    build = batch_compiler._build_expression

    def counted(call: Any) -> Any:
        built.append(call.types[0].shape[0])
        return build(call)

    monkeypatch.setattr(batch_compiler, "_build_expression", counted)

    @tn.function
    def cell(x: tn.Array, y: tn.Array) -> tn.Array:
        return tn.tanh(x[1:4] * 2) + tn.sum(y)

    random = np.random.default_rng(4)
    for members in (700, 600, 1000, 530, 2000, 1300):
        given = [*random.random((members, 2, 5)).astype(np.float32)]
        results = [cell(tn.asarray(x), tn.asarray(y)) for x, y in given]
        tn.eval(*results)
        for result, (x, y) in zip(results, given, strict=True):
            expected = np.asarray(cell(tn.asarray(x), tn.asarray(y)))
            assert np.asarray(result).tobytes() == expected.tobytes()
    assert len(built) == 2
