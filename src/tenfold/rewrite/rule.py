"""Rewrite rule: a pattern, a guard, a replacement and an exactness class; and sets of rules.

Takes patterns (`core/pattern.py`), a guard and a replacement, hands on a Rule; of several a
RuleSet, which finds the rules that may fit a node by the operations there.

>>> from tenfold.core.pattern import pattern, variables
>>> (x,) = variables("x")
>>> print(Rule("square", x * x, pattern.square(x)))
square: multiply(x, x) => square(x) (bitwise)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, NamedTuple

from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.op import Op, Params
from tenfold.core.pattern import (
    AnyUserPattern,
    Constant,
    Number,
    OperationPattern,
    Pattern,
    PatternVariable,
    names_in,
    operand_orders,
    pattern_of,
)
from tenfold.errors import DTypeError
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import ORIGIN, SCALAR, Operator, RewriteGraph

Exactness = Literal["bitwise", "linear-algebra", "fast"]
CLASSES: tuple[Exactness, ...] = ("bitwise", "linear-algebra", "fast")


class Match:
    """What a rule matched: the node at its root, and what each variable stands for."""

    __slots__ = ("_bound", "_work", "root")

    def __init__(self, work: RewriteGraph, at: int, bound: dict[str, int]) -> None:
        self.root = NodeView(work, at)
        self._work, self._bound = work, bound

    def __getitem__(self, name: str) -> NodeView:
        return NodeView(self._work, self._bound[name])

    def make(self, op: Op[...], *operands: NodeView | Number, params: Params = ()) -> NodeView:
        """Return the node of an operation on terms and numbers; equal ones are made once."""
        inputs = [x.at if isinstance(x, NodeView) else Constant(x) for x in operands]
        return NodeView(self._work, self._work.make(op, inputs, params))

    def again(
        self, term: NodeView, *operands: NodeView | Number, params: Params | None = None
    ) -> NodeView:
        """Return the operation of `term` on other operands; a failure names the same line."""
        assert term.op is not None, "an operation"
        token = ORIGIN.set(self._work.nodes[term.at].origin)
        try:
            return self.make(term.op, *operands, params=term.params if params is None else params)
        finally:
            ORIGIN.reset(token)


Guard = Callable[[Match], bool]
Replacement = Callable[[Match], NodeView | Array | Number | None]


@dataclass(frozen=True, eq=False)
class Rule:
    """A named rewrite: what matches `pattern` becomes `replacement`, if `when` says so.

    `pattern` is algebra of variables (`tn.rules.variables`), numbers and operations
    (`tn.rules.pattern`). `replacement` is such a pattern too, or a function of the Match that
    returns what takes the place (an Array, a number, one of its terms) or None for nothing. The
    guard `when` is asked with the Match: `match["x"].dtype`, `match.root.shape`.

    `exactness` is "bitwise" (no bit of any result changes: always on), "linear-algebra" (as
    `tn.options(reassociate=)` says) or "fast" (`tn.options(fast=True)`). A replacement of another
    shape or dtype is refused with a ShapeError or DTypeError when the rule fires. What is read
    elsewhere too is not computed twice: then a pattern does not fire.

    Raises DTypeError for a side that is not a pattern, ValueError for an unknown exactness or
    variable.

    >>> import tenfold as tn
    >>> x, y = tn.rules.variables("x y")
    >>> print(tn.Rule("difference", tn.rules.pattern.negative(x - y), y - x, exactness="fast"))
    difference: negative(subtract(x, y)) => subtract(y, x) (fast)
    """

    name: str
    pattern: Pattern
    replacement: Pattern | Replacement
    when: Guard | None = field(default=None, kw_only=True)
    exactness: Exactness = field(default="bitwise", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, (OperationPattern, AnyUserPattern)):
            rule = f"rule {self.name!r} matches {self.pattern}, which is not an operation"
            raise DTypeError("Rule", rule, remedy="begin the pattern with an operation")
        if self.exactness not in CLASSES:
            listed = ", ".join(repr(name) for name in CLASSES)
            raise ValueError(f"Rule: exactness {self.exactness!r} is none of {listed}")
        if isinstance(self.replacement, Pattern) or not callable(self.replacement):
            replacement = pattern_of(self.replacement)
            object.__setattr__(self, "replacement", replacement)
            unknown = names_in(replacement) - names_in(self.pattern)
            if unknown:
                shown = ", ".join(sorted(unknown))
                raise ValueError(f"Rule: {self.name!r} matches no {shown}, and replaces by it")

    def __str__(self) -> str:
        by = self.replacement
        shown = str(by) if isinstance(by, Pattern) else "..."
        when = f" when {getattr(self.when, '__name__', '...')}" if self.when else ""
        return f"{self.name}: {self.pattern} => {shown}{when} ({self.exactness})"

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


class RuleCandidate(NamedTuple):
    """A rule with its operands in one order, and what is seen of a match at once."""

    rule: Rule
    pattern: OperationPattern
    needs: tuple[tuple[int, tuple[Operator, ...]], ...]
    """Which inputs must have one of which ops."""
    names: tuple[str, ...] | None
    """The variables, where the operands are nothing but variables, each another."""

    def fits(self, inputs: tuple[Operator, ...]) -> bool:
        """Whether the ops of a node's inputs are those that are needed."""
        return all(place < len(inputs) and inputs[place] in ops for place, ops in self.needs)


PlacedCandidates = tuple[tuple[RuleCandidate, int | None], ...]
MAX_CACHED_CANDIDATES = 4096
"""The ops of nodes and their inputs for which a RuleSet remembers what fits: it is a part of the
cache of sets."""


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules in the order in which they are tried; the version is another for every set."""

    rules: tuple[Rule, ...]
    version: int = field(init=False, default_factory=count(1).__next__)
    _roots: dict[tuple[Operator, bool], list[Rule]] = field(init=False, default_factory=dict)
    """The rules by the operation at their root, and whether a node must only read it."""
    _candidates: LruCache[tuple[Operator, bool], list[RuleCandidate]] = field(
        init=False, default_factory=lambda: LruCache(MAX_CACHED_CANDIDATES)
    )
    """Their orders, of the operations that graphs have had."""
    _fitting: LruCache[tuple[Operator, ...], PlacedCandidates] = field(
        init=False, default_factory=lambda: LruCache(MAX_CACHED_CANDIDATES)
    )
    """What `fitting` has found, by the ops of a node and of its inputs."""

    def __post_init__(self) -> None:
        for rule in self.rules:
            root = _root_operation(rule.pattern)
            self._roots.setdefault((root.op, root is not rule.pattern), []).append(rule)

    def _with_root(self, op: Operator, *, read: bool) -> list[RuleCandidate]:
        known = self._candidates.get((op, read))
        if known is None:
            known = []
            for rule in self._roots.get((op, read), ()):
                patterns: list[OperationPattern] = []
                for tree in operand_orders(rule.pattern):
                    if _root_operation(tree) not in patterns:
                        patterns.append(_root_operation(tree))
                known += [
                    RuleCandidate(rule, each, _input_ops(each), _variable_names(each)) for each in patterns
                ]
            if _is_permanent(op):
                self._candidates[op, read] = known
        return known

    def fitting(self, op: Operator, inputs: tuple[Operator, ...]) -> PlacedCandidates:
        """Return the candidates for a node of `op` with inputs of these ops, in their order; each
        with the place of the input that it matches, where it matches no node itself.
        """
        known = self._fitting.get((op, *inputs))
        if known is None:
            found: list[tuple[RuleCandidate, int | None]] = [
                (each, None) for each in self._with_root(op, read=False) if each.fits(inputs)
            ]
            if isinstance(op, Op):
                for place, read in enumerate(inputs):
                    found += [(each, place) for each in self._with_root(read, read=True)]
            known = tuple(found)
            if all(map(_is_permanent, (op, *inputs))):
                self._fitting[(op, *inputs)] = known
        return known

    def may_match(self, graph: Graph, ops: Sequence[Operator]) -> bool:
        """Whether some rule fits a node at first sight."""
        return any(
            self.fitting(op, tuple([ops[i] for i in inputs]))
            for op, inputs in zip(ops, graph.inputs, strict=True)
        )


def _is_permanent(op: Operator) -> bool:
    """Whether an operation may be kept: that of a traced function goes with the function."""
    return not (isinstance(op, Op) and op.body is not None)


def _root_operation(pattern: Pattern) -> OperationPattern:
    """The operation at the root of a rule's pattern, or that must be read there."""
    inner = pattern.operand if isinstance(pattern, AnyUserPattern) else pattern
    assert isinstance(inner, OperationPattern), "a Rule matches nothing else"
    return inner


def _input_ops(tree: OperationPattern) -> tuple[tuple[int, tuple[Operator, ...]], ...]:
    needs: list[tuple[int, tuple[Operator, ...]]] = []
    for position, operand in enumerate(tree.operands):
        if isinstance(operand, OperationPattern):
            needs.append((position, (operand.op,)))
        elif isinstance(operand, Constant):
            needs.append((position, (SCALAR,)))
        elif isinstance(operand, PatternVariable) and operand.ops:
            needs.append((position, operand.ops))
    return tuple(needs)


def _variable_names(tree: OperationPattern) -> tuple[str, ...] | None:
    found = [operand.name for operand in tree.operands if isinstance(operand, PatternVariable)]
    plain = tree.params is None and found and len(set(found)) == len(tree.operands)
    return tuple(found) if plain else None
