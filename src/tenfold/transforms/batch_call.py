"""Batch call: an operation on stacked operands, and the graph of one member of it.

Takes an operation, or a call of a traced function, with its members' stacked operands
(`native/exec/dynamic_batching.h`). Hands on the Subgraph of one member, and the batched one.

>>> import tenfold as tn
>>> value = _native.node_of(tn.zeros((4, 3)).wait()).value()
>>> call = BatchCall.of(tn.operators.add, (), ((value, True), (1.0, False)))
>>> call.rows, member_subgraph(call)
(4, <add: 1 operation>)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Node, Type, Value
from tenfold.core.op import Op, Params
from tenfold.core.subgraph import Subgraph
from tenfold.transforms.batch_interpreter import BatchedSubgraph, batch_implicitly

StackedOperands = Sequence[tuple[Any, bool]]
"""The value or number of each operand, and whether it has a row for each member."""


class ExactNumber:
    """A number that equals only numbers of the same type and bits."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, (type(value), repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactNumber) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class BatchCall(NamedTuple):
    """A call of an operation on stacked operands."""

    op: Op[...]
    params: Params
    types: tuple[Type | None, ...]
    """The Types of operands in the batch; None for scalars."""
    stacked_flags: tuple[bool, ...]
    scalars: tuple[Any, ...]

    @classmethod
    def of(cls, op: Op[...], params: Params, operands: StackedOperands) -> BatchCall:
        """Return the call of an operation on these operands."""
        types = tuple([x.type if isinstance(x, Value) else None for x, _ in operands])
        stacked_flags = tuple([stacked for _, stacked in operands])
        scalars = tuple([None if isinstance(x, Value) else ExactNumber(x) for x, _ in operands])
        return cls(op, params, types, stacked_flags, scalars)

    @property
    def rows(self) -> int:
        """The length of the batch axis; 0 where no operand has one."""
        pairs = zip(self.types, self.stacked_flags, strict=True)
        return next((type_.shape[0] for type_, stacked in pairs if type_ and stacked), 0)


def member_subgraph(call: BatchCall) -> Subgraph:
    """Return an operation of one member, with constants for its scalars."""
    op, params, types, stacked_flags, scalars = call
    operands: list[Any] = []
    inputs: list[Node] = []
    for type_, stacked, scalar in zip(types, stacked_flags, scalars, strict=True):
        if type_ is None:
            operands.append(scalar.value)
            continue
        shape = type_.shape[1:] if stacked else type_.shape
        operands.append(_native.placeholder(Type(shape, type_.dtype, type_.device)))
        inputs.append(_native.node_of(operands[-1]))
    results = (
        op.semantics.body.apply(operands)
        if op.semantics.body
        else _native.apply(op.id, tuple(operands), params)
    )
    arrays = results if isinstance(results, tuple) else (results,)
    return Subgraph(op.name, list(map(_native.node_of, arrays)), inputs)


def batch_member(member: Subgraph, call: BatchCall) -> BatchedSubgraph:
    """Batch the Subgraph of one member of a call."""
    flags = [
        stacked for type_, stacked in zip(call.types, call.stacked_flags, strict=True) if type_
    ]
    return batch_implicitly(member, flags, call.rows)
