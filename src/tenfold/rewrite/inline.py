"""Inlining: replaces calls of traced functions by the operations of their bodies.

Takes the columns of a graph after its rewriting, changes them in place. So rules of class
linear-algebra do not cross the boundary of a call.
"""

from __future__ import annotations

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import Op
from tenfold.rewrite.rewrite_graph import ORIGIN, Operator, RewriteGraph

RULE_NAME = "inline"
"""The name under which the report has that a call became what it is made of."""


def is_call(op: Operator) -> bool:
    """Whether a node is a call of a traced function."""
    return isinstance(op, Op) and op.body is not None


def inline(work: RewriteGraph) -> list[tuple[int, str]]:
    """Replace each call, and each that comes of it; return where there was one, and its text."""
    found: list[tuple[int, str]] = []
    at = 0
    while at < len(work.nodes):  # what is made stands behind
        if is_call(work.ops[at]) and work.needed(at) and not _is_output(work, at):
            found.append((work.place(at), work.text(at, 1)))
            _inline_call(work, at)
        at += 1
    return found


def _is_output(work: RewriteGraph, at: int) -> bool:
    """Whether all results of a call with several are asked for: then it is computed as it is."""
    return len(work.nodes[at].types) > 1 and at in map(work.find, work.outputs)


def _inline_call(work: RewriteGraph, at: int) -> None:
    op, node = work.ops[at], work.nodes[at]
    assert isinstance(op, Op), "a call has an op"
    assert op.body is not None, "with a body"
    # a scalar stands for any of its class, so that a plan is good for all
    given = [_native.array_of(work.nodes[i]) for i in work.refresh(at)]
    token = ORIGIN.set(node.origin)  # a failure names the line of the call
    try:
        results = op.body(given)
    finally:
        ORIGIN.reset(token)
    parts = list(work.readers(at)) if len(node.types) > 1 else []
    if not parts:
        _replace_node(work, at, results[0])
    for part in parts:
        _replace_node(work, part, results[work.nodes[part].params[0]])


def _replace_node(work: RewriteGraph, at: int, by: Array) -> None:
    work.root = at
    position = work.adopt(by)
    if position != at:
        work.replace(at, position)
    work.root = -1
