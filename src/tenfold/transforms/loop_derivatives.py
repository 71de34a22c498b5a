"""Derivatives of loops and branches: the reverse scan of `tn.scan`, the branches of `tn.cond`.

Takes the cotangents of an operation and its operands, hands on those of the operands; of
`tn.while_loop`, which has no reverse, from tangents of operands to those of results. A reverse
scan goes through the steps backwards. Its carry is the cotangent of the carry, and the sum of the
cotangents of captured arrays; its rows are the carries before each step, which a scan stores.

>>> import tenfold as tn
>>> def last(x): return tn.scan(lambda carry, _: (carry * x, None), x, length=3)[0]
>>> tn.grad(last)(2.0).item()  # of x**4
32.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.core.op import Op
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import kind_of
from tenfold.ops.create import zeros
from tenfold.ops.joining import concat
from tenfold.ops.movement import expand_dims
from tenfold.transforms.call_op import Callee, interned_callee
from tenfold.transforms.derivatives import pull_back
from tenfold.transforms.tangents import LinearMap


def scan_back(op: Op[...], g: Any, result: Any, *arguments: Any) -> list[Array | None]:
    """Return the cotangents of the operands of a scan, by a scan in reverse."""
    *operands, step, carry_count, xs_count, length, reverse, device = arguments
    body: Subgraph = step.subgraph
    given = g if isinstance(g, tuple) else (g,)
    xs_end = carry_count + xs_count
    carried = _floating(body.inputs[:carry_count])
    captured = [xs_end + at for at in _floating(body.inputs[xs_end:])]
    rows = [carry_count + at for at in _floating(body.inputs[carry_count:xs_end])]
    seeds = [
        _placeholder(node) if (at in carried if at < carry_count else x is not None) else None
        for at, (node, x) in enumerate(zip(body.outputs, given, strict=True))
    ]
    sums = [_placeholder(body.inputs[at]) for at in captured]
    terms = _pulled(body, seeds, [*carried, *captured, *rows])
    last = len(carried) + len(captured)
    added = [x + y for x, y in zip(sums, terms[len(carried) : last], strict=True)]
    step_seeds = [x for x in seeds[carry_count:] if x is not None]
    backward = Subgraph(
        f"vjp_{body.name}",
        list(map(_native.node_of, [*terms[: len(carried)], *added, *terms[last:]])),
        [
            *(_native.node_of(x) for x in (*(seeds[at] for at in carried), *sums) if x is not None),
            *body.inputs[:xs_end],
            *map(_native.node_of, step_seeds),
            *body.inputs[xs_end:],
        ],
        body.rule,
    )
    carries = _carries_in_rows(body, operands[:carry_count], result, reverse=reverse)
    if carries is None:
        storing = [*body.outputs[:carry_count], *body.inputs[:carry_count]]
        stored = Subgraph(body.name, storing, body.inputs, body.rule)
        params = carry_count, xs_count, length, reverse, device
        carries = _apply(op, operands, (interned_callee(stored), *params))[carry_count:]
    starts = [_zeros(body.inputs[at]) if given[at] is None else given[at] for at in carried]
    results = _apply(
        op,
        [
            *(*starts, *(_zeros(body.inputs[at]) for at in captured)),
            *(*carries, *operands[carry_count:xs_end]),
            *(x for x in given[carry_count:] if x is not None),
            *operands[xs_end:],
        ],
        (interned_callee(backward), last, xs_end + len(step_seeds), length, not reverse, device),
    )
    found = dict(zip([*carried, *captured, *rows], results, strict=True))
    return [found.get(at) for at in range(len(operands))]


def _carries_in_rows(
    body: Subgraph, first: Sequence[Array], result: Any, *, reverse: bool
) -> list[Array] | None:
    """Return the carries before each step where all of them are rows of the result, else None."""
    carries = []
    for node, before in zip(body.outputs[: len(first)], first, strict=True):
        known = [at for at in range(len(first), len(body.outputs)) if body.outputs[at] == node]
        if not known or node.type.shape != before.shape or node.type.dtype != before.dtype:
            return None
        rows, start = result[known[0]], expand_dims(before)
        carries.append(concat([rows[1:], start] if reverse else [start, rows[:-1]]))
    return carries


def cond_back(op: Op[...], g: Any, _result: Any, *arguments: Any) -> list[Array | None]:
    """Return the cotangents of the operands of a branch: those of the branch that is chosen."""
    condition, *operands, true_branch, false_branch, count, true_count, device = arguments
    given = g if isinstance(g, tuple) else (g,)
    shared = _floating(true_branch.subgraph.inputs[:count])
    first = count
    wanted, branches = [*shared], []
    for branch in (true_branch, false_branch):
        captures = branch.subgraph.inputs[count:]
        wanted += [first + at for at in _floating(captures)]
        first += len(captures)
    first = count
    nodes = [*true_branch.subgraph.inputs, *false_branch.subgraph.inputs[count:]]
    for branch in (true_branch, false_branch):
        body: Subgraph = branch.subgraph
        own = {at: at for at in range(count)}  # from the position of an operand to that of an input
        own.update({first + at - count: at for at in range(count, len(body.inputs))})
        first += len(body.inputs) - count
        seeds = [
            None if x is None else _placeholder(node)
            for node, x in zip(body.outputs, given, strict=True)
        ]
        terms = iter(_pulled(body, seeds, [own[at] for at in wanted if at in own]))
        results = [next(terms) if at in own else _zeros(nodes[at]) for at in wanted]
        seed_nodes = [_native.node_of(x) for x in seeds if x is not None]
        inputs = [*body.inputs[:count], *seed_nodes, *body.inputs[count:]]
        outputs = list(map(_native.node_of, results))
        branches.append(Callee(Subgraph(f"vjp_{body.name}", outputs, inputs, body.rule)))
    seeds_given = [x for x in given if x is not None]
    found = _apply(
        op,
        [condition, *operands[:count], *seeds_given, *operands[count:]],
        (*branches, count + len(seeds_given), true_count, device),
    )
    by_position = dict(zip(wanted, found, strict=True))
    return [None, *(by_position.get(at) for at in range(len(operands)))]


def while_along(op: Op[...], tangents: Sequence[Array | None], *arguments: Any) -> list[Array]:
    """Return the tangents of the results of a `while_loop`: a loop that carries them, too."""
    condition, *operands, step, count, device = arguments
    body: Subgraph = step.subgraph
    carried = _floating(body.inputs[:count])
    captured = [at for at in range(count, len(operands)) if tangents[1 + at] is not None]
    wrt = [*carried, *captured]
    linear = LinearMap(body.outputs[:count], [body.inputs[at] for at in wrt])
    directions = [_placeholder(body.inputs[at]) for at in wrt]
    found = linear(directions)
    direction_nodes = list(map(_native.node_of, directions))
    dual_body = Subgraph(
        body.name,
        [
            *body.outputs[:count],
            *(_native.node_of(found[at]) for at in carried),
            *body.outputs[count:],
        ],
        [
            *(*body.inputs[:count], *direction_nodes[: len(carried)]),
            *(*body.inputs[count:], *direction_nodes[len(carried) :]),
        ],
        body.rule,
    )
    starts = [_zeros(body.inputs[at]) if (v := tangents[1 + at]) is None else v for at in carried]
    results = _apply(
        op,
        [
            *(condition, *operands[:count], *starts),
            *(*operands[count:], *(v for at in captured if (v := tangents[1 + at]) is not None)),
        ],
        (interned_callee(dual_body), count + len(carried), device),
    )
    by_position = dict(zip(carried, results[count:], strict=True))
    return [
        by_position[at] if at in by_position else _zeros(body.outputs[at]) for at in range(count)
    ]


def checkpoint_back(op: Op[...], g: Any, _result: Any, *arguments: Any) -> list[Array | None]:
    """Return the cotangents of the operands of a checkpoint, which computes its body again."""
    *operands, call, device = arguments
    body: Subgraph = call.subgraph
    given = g if isinstance(g, tuple) else (g,)
    seeds = [
        None if x is None else _placeholder(node)
        for node, x in zip(body.outputs, given, strict=True)
    ]
    wanted = _floating(body.inputs)
    outputs = list(map(_native.node_of, _pulled(body, seeds, wanted)))
    inputs = [*body.inputs, *(_native.node_of(x) for x in seeds if x is not None)]
    backward = Subgraph(f"vjp_{body.name}", outputs, inputs, body.rule)
    seeds_given = [x for x in given if x is not None]
    results = _apply(op, [*operands, *seeds_given], (interned_callee(backward), device))
    found = dict(zip(wanted, results, strict=True))
    return [found.get(at) for at in range(len(operands))]


def _floating(nodes: Sequence[Node]) -> list[int]:
    return [at for at, node in enumerate(nodes) if kind_of(node.type.dtype) in "fc"]


def _placeholder(node: Node) -> Array:
    return _native.placeholder(Type(node.type.shape, node.type.dtype, node.type.device))


def _zeros(node: Node) -> Array:
    return zeros(node.type.shape, dtype=node.type.dtype, device=node.type.device)


def _pulled(body: Subgraph, seeds: Sequence[Array | None], positions: list[int]) -> list[Array]:
    """Return the cotangents of inputs of a body; zeros for those that it does not depend on."""
    wanted = [body.inputs[at] for at in positions]
    terms = pull_back(body.outputs, seeds, wanted)
    pairs = zip(terms, wanted, strict=True)
    return [_zeros(node) if term is None else term for term, node in pairs]


def _apply(op: Op[...], operands: Sequence[Array], params: tuple[Any, ...]) -> list[Array]:
    result: Any = _native.apply(op.id, tuple(operands), params)
    return list(result) if isinstance(result, tuple) else [result]


__all__ = ["checkpoint_back", "cond_back", "scan_back", "while_along"]
