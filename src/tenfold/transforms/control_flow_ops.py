"""Control flow operations: compute loops and branches, and their batch rules.

Takes the operands of `tn.scan`, `tn.while_loop` and `tn.cond` (`transforms/control_flow.py`) with
the Subgraphs of their functions as parameters, hands on their results. A step is a call of its
Subgraph: planned once, replayed by native code (`native/python/scan_loop.cpp`) as often as there
are steps. The batch rules write the Subgraph for all members.

The operands of a scan are the carry, then the arrays with a row for each step. Those of a
while_loop are whether there is a first step, then the carry. Those of a cond are its condition,
then the operands of its functions. In all three the captured arrays come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type, Value
from tenfold.caches import remembered
from tenfold.core.op import BoundCall, Inferred, Kind, Op
from tenfold.dtypes import BOOL
from tenfold.errors import UnsupportedError
from tenfold.ops.batch_rules import Members
from tenfold.ops.reduce import any as any_
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where
from tenfold.storage import dense
from tenfold.transforms.batch_interpreter import UNASKED, BatchedNode, batched, in_front
from tenfold.transforms.subgraph import Subgraph, expression

Compute = Callable[..., Sequence[Value]]


def _scan(
    given: Sequence[Value],
    step: Subgraph,
    carries: int,
    reads: int,
    length: int,
    reverse: bool,
    device: str,
) -> list[Value]:
    carried, others = list(given[:carries]), given[carries:]
    written = []
    for type_ in step.types[carries:]:
        whole = Type((length, *type_.shape), type_.dtype, device)
        written.append(Value.allocate(whole, whole.size * whole.dtype.itemsize))
    read, shared = others[:reads], others[reads:]
    step.repeat("tn.scan", carried, read, shared, written, steps=length, reverse=reverse)
    return [*carried, *written]


def _while(given: Sequence[Value], step: Subgraph, carries: int, _: str) -> list[Value]:
    first, *others = given
    carried = others[:carries]
    if _is_true(first):
        step.repeat("tn.while_loop", carried, (), others[carries:])
    return carried


def _cond(
    given: Sequence[Value], yes: Subgraph, no: Subgraph, count: int, of_yes: int, _: str
) -> list[Value]:
    chosen, *others = given
    takes = _is_true(chosen)
    own = others[count : count + of_yes] if takes else others[count + of_yes :]
    return (yes if takes else no).compute([*others[:count], *own])


def _is_true(value: Value) -> bool:
    return bool(memoryview(value)[0])


def _computing(compute: Compute) -> dict[str, Callable[..., Any]]:
    """Return how an operation is computed of Values, and of ndarrays, from how its results are."""

    def of_values(given: Sequence[Value], *params: Any) -> tuple[Value, ...]:
        """Return Values in row-major order, of which none lies in what was given, or in another."""
        device, found = params[-1], []
        taken = {_native.identity_of(value)[1] for value in given}
        for value in compute(given, *params):
            is_own = not (value.strides or value.part or value.owner is not None)
            if not is_own or _native.identity_of(value)[1] in taken:
                value = dense.copied(dense.export(value), device)
            taken.add(_native.identity_of(value)[1])
            found.append(value)
        return tuple(found)

    def of_arrays(*operands: Any) -> tuple[np.ndarray, ...]:
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        params = operands[len(arrays) :]
        given = [dense.adopt(x, params[-1]) for x in arrays]
        return tuple(map(dense.export, of_values(given, *params)))

    return {"on_values": of_values, "reference": of_arrays}


def _scan_rule(types: tuple[Type, ...], *params: Any) -> Inferred:
    step, carries, _, length, *_ = params
    ys = [((length, *made.shape), made.dtype) for made in step.types[carries:]]
    carried = [(made.shape, made.dtype) for made in step.types[:carries]]
    return Inferred((*carried, *ys), tuple([type_.dtype for type_ in types]))


def _while_rule(types: tuple[Type, ...], step: Subgraph, carries: int, _: str) -> Inferred:
    made = tuple([(type_.shape, type_.dtype) for type_ in step.types[:carries]])
    return Inferred(made, tuple([type_.dtype for type_ in types]))


def _cond_rule(types: tuple[Type, ...], yes: Subgraph, *_: Any) -> Inferred:
    made = tuple([(type_.shape, type_.dtype) for type_ in yes.types])
    return Inferred(made, tuple([type_.dtype for type_ in types]))


class BatchedSubgraph:
    """An Subgraph for all members: its results, and the placeholders that it is made of."""

    def __init__(self, one: Subgraph, flags: Sequence[bool], length: int) -> None:
        self.one, self.length = one, length
        self.inputs = []
        stand_ins = {}
        for node, batch in zip(one.inputs, flags, strict=True):
            own, type_ = _native.array_of(node), node.type
            if batch:
                own = _native.placeholder(Type((length, *type_.shape), type_.dtype, type_.device))
                stand_ins[node] = BatchedNode(own, batched=True)
            self.inputs.append(own)
        self.results = batched(one.outputs, stand_ins)

    def flags(self) -> list[bool]:
        """Which of its results differ from member to member."""
        return [entry.batched for entry in self.results]

    def expression(self, flags: Sequence[bool]) -> Subgraph:
        """Return it; of these results there is one for each member."""
        outputs = [
            in_front(entry, self.length) if batch else entry.value
            for entry, batch in zip(self.results, flags, strict=True)
        ]
        return written(self.one.name, outputs, self.inputs)


def written(name: str, outputs: Sequence[Array], inputs: Sequence[Array]) -> Subgraph:
    """Return the Subgraph of arrays that were made of placeholders."""
    return expression(name, [*map(_native.node_of, outputs)], [*map(_native.node_of, inputs)])


def _settled(step: Subgraph, flags: list[bool], carries: int, length: int) -> BatchedSubgraph:
    """Lift a step: what differs from member to member after one differs before the next."""
    while True:
        made = BatchedSubgraph(step, flags, length)
        wider = [was or now for was, now in zip(flags[:carries], made.flags(), strict=False)]
        if wider == flags[:carries]:
            return made
        flags[:carries] = wider


def _operands(members: Members, flags: Sequence[bool]) -> list[Any]:
    """Return the operands; of these there is one for each member."""
    positions = range(len(members.operands))
    return [members.in_front(at) if flags[at] else members.operands[at] for at in positions]


def _called(members: Members, operands: Sequence[Any], params: tuple[Any, ...]) -> list[Array]:
    made = members.call(operands, params)
    return list(made) if isinstance(made, tuple) else [made]


def _all_in_front(members: Members, results: Sequence[Array], flags: Sequence[bool]) -> Any:
    """Return the results of all members, as a batch rule hands them on."""
    pairs = zip(results, flags, strict=True)
    made = [in_front(BatchedNode(x, batch), members.length) for x, batch in pairs]
    return made[0] if len(made) == 1 else tuple(made)


def _scan_members(members: Members, *params: Any) -> Any:
    step, carries, reads, length, reverse, device = params
    flags = list(members.batched)
    lifted = _settled(step, flags, carries, members.length)
    made = [*flags[:carries], *lifted.flags()[carries:]]
    operands = _operands(members, flags)
    for at in range(carries, carries + reads):
        if flags[at]:
            operands[at] = members.to_front(operands[at], 1)
    own = (lifted.expression(made), carries, reads, length, reverse, device)
    results = _called(members, operands, own)
    for at in range(carries, len(results)):
        if made[at]:
            results[at] = members.to_front(results[at], 1)
    return _all_in_front(members, results, made)


def _while_members(members: Members, step: Subgraph, carries: int, device: str) -> Any:
    (first, *flags), length = members.batched, members.length
    lifted = _settled(step, flags, carries, length)
    if not first and not lifted.flags()[carries]:
        operands = _operands(members, (first, *flags))
        made = lifted.expression([*flags[:carries], False])
        results = _called(members, operands, (made, carries, device))
        return _all_in_front(members, results, flags[:carries])
    flags[:carries] = [True] * carries
    lifted = BatchedSubgraph(step, flags, length)
    runs = _native.placeholder(Type((length,), BOOL, device))
    *after, more = [in_front(entry, length) for entry in lifted.results]
    kept = [_chosen(runs, x, was) for x, was in zip(after, lifted.inputs, strict=False)]
    runs_on = runs & more
    made = written(step.name, [runs_on, *kept, any_(runs_on)], [runs, *lifted.inputs])
    begins, *operands = _operands(members, (True, *flags))
    own = (made, carries + 1, device)
    _, *results = _called(members, [any_(begins), begins, *operands], own)
    return _all_in_front(members, results, flags[:carries])


def _chosen(pred: Array, x: Array, y: Array) -> Array:
    """Return for each member `x` where `pred`, else `y`."""
    return where(reshape(pred, (*pred.shape, *(1,) * (x.ndim - 1))), x, y)


def _cond_members(members: Members, *params: Any) -> Any:
    yes, no, count, of_yes, device = params
    chosen, *flags = members.batched
    length, own = members.length, count + of_yes
    places = [*range(own)], [*range(count), *range(own, len(flags))]
    lifted = [
        BatchedSubgraph(branch, [flags[at] for at in of_branch], length)
        for branch, of_branch in zip((yes, no), places, strict=True)
    ]
    if not chosen:
        made = [a or b for a, b in zip(lifted[0].flags(), lifted[1].flags(), strict=True)]
        branches = [each.expression(made) for each in lifted]
        own_params = (*branches, count, of_yes, device)
        return _all_in_front(members, _called(members, members.operands, own_params), made)
    if UNASKED.get():
        rule = "each member computes what it has chosen"
        raise UnsupportedError("tn.cond", rule, remedy="compute them one by one")
    pred, *operands = members.operands
    both = [
        each.expression([True] * len(each.results)).apply([operands[at] for at in of_branch])
        for each, of_branch in zip(lifted, places, strict=True)
    ]
    results = [_chosen(pred, x, y) for x, y in zip(*both, strict=True)]
    return _all_in_front(members, results, [True] * len(results))


@remembered("bodies of loops with their conditions", 256)
def followed(body: Subgraph, test: Subgraph, count: int) -> Subgraph:
    """Return a body that says whether there is a next step: a condition on what it makes.

    Both take `count` arrays, then what they have captured.
    """
    own = [_native.placeholder(node.type) for node in test.inputs[count:]]
    made = [_native.array_of(node) for node in body.outputs]
    given = [_native.array_of(node) for node in body.inputs]
    return written(body.name, [*made, *test.apply([*made, *own])], [*given, *own])


def _lines(head: str, of: Subgraph) -> list[str]:
    return [head, *(f"  {line}" for line in str(of.graph).splitlines())]


def _told_of_scan(step: Subgraph, _carries: int, _reads: int, length: int, *_: Any) -> list[str]:
    return _lines(f"{length:,} steps, each of them:", step)


def _told_of_while(step: Subgraph, carries: int, _: str) -> list[str]:
    return _lines(f"steps until %{step.graph.outputs[carries]} is false:", step)


def _told_of_cond(yes: Subgraph, no: Subgraph, *_: Any) -> list[str]:
    return [*_lines(f"where it is true, {yes.name}:", yes), *_lines(f"else, {no.name}:", no)]


def _bind(*inputs: Array, params: tuple[Any, ...]) -> BoundCall:
    return BoundCall(inputs, params)


def _named(name: str, **facts: Any) -> Op[...]:
    return Op(
        name=name,
        page="control",
        function=_bind,
        kind=Kind.CONTRACTION,
        bind=_bind,
        can_fail=True,
        public=False,
        **facts,
    )


SCAN = _named(
    "scan",
    rule=_scan_rule,
    **_computing(_scan),
    batch=_scan_members,
    explain_lines=_told_of_scan,
    unbounded_time=True,
)
WHILE = _named(
    "while_loop",
    rule=_while_rule,
    **_computing(_while),
    batch=_while_members,
    explain_lines=_told_of_while,
    unbounded_time=True,
)
COND = _named("cond", rule=_cond_rule, **_computing(_cond), batch=_cond_members, explain_lines=_told_of_cond)

__all__ = ["COND", "SCAN", "WHILE", "followed"]
