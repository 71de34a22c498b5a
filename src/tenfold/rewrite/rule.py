"""Rewrite rule: a pattern, a guard, a replacement and an exactness class; and sets of rules.

Input: patterns (`core/pattern.py`), a guard and a replacement. Output: a Rule, and a RuleSet of
several rules, which finds the candidates for a node by its operation and those of its inputs.

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

from tenfold._native import Array, Scope
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.interpreter import ORIGIN
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
from tenfold.rewrite.rewrite_graph import SCALAR_OP, Operator, RewriteGraph

Exactness = Literal["bitwise", "linear-algebra", "fast"]
CLASSES: tuple[Exactness, ...] = ("bitwise", "linear-algebra", "fast")


class Match:
    """A match of a rule: the root node and the binding of each variable."""

    __slots__ = ("_bound", "_graph", "root")

    def __init__(self, graph: RewriteGraph, at: int, bindings: dict[str, int]) -> None:
        self.root = NodeView(graph, at)
        self._graph, self._bound = graph, bindings

    def __getitem__(self, name: str) -> NodeView:
        return NodeView(self._graph, self._bound[name])

    def make(self, op: Op[...], *operands: NodeView | Number, params: Params = ()) -> NodeView:
        """Return the node of an operation on terms and numbers; equal nodes are built once."""
        inputs = [x.at if isinstance(x, NodeView) else Constant(x) for x in operands]
        return NodeView(self._graph, self._graph.make(op, inputs, params))

    def again(
        self, term: NodeView, *operands: NodeView | Number, params: Params | None = None
    ) -> NodeView:
        """Return the operation of `term` on other operands; a failure reports the same line."""
        assert term.op is not None, "an operation"
        with Scope((ORIGIN, self._graph.nodes[term.at].origin)):
            return self.make(term.op, *operands, params=term.params if params is None else params)


Guard = Callable[[Match], bool]
Replacement = Callable[[Match], NodeView | Array | Number | None]


@dataclass(frozen=True, eq=False)
class Rule:
    """A named rewrite: a match of `pattern` becomes `replacement` if the guard `when` holds.

    `pattern` is algebra of variables (`tn.rules.variables`), numbers and operations
    (`tn.rules.pattern`). `replacement` is also a pattern, or a function of the Match that returns
    the replacement (an Array, a number, one of its terms) or None for none. The guard `when` is
    called with the Match: `match["x"].dtype`, `match.root.shape`.

    `exactness` is "bitwise" (no bit of any result changes: always on), "linear-algebra" (on with
    `tn.options(reassociate=True)`) or "fast" (`tn.options(fast=True)`). A replacement of another
    shape or dtype is refused with a ShapeError or DTypeError when the rule fires. A replacement
    pattern does not fire if it would compute a shared node twice.

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
            classes = ", ".join(repr(name) for name in CLASSES)
            raise ValueError(f"Rule: exactness {self.exactness!r} is none of {classes}")
        if isinstance(self.replacement, Pattern) or not callable(self.replacement):
            replacement = pattern_of(self.replacement)
            object.__setattr__(self, "replacement", replacement)
            unknown = names_in(replacement) - names_in(self.pattern)
            if unknown:
                names = ", ".join(sorted(unknown))
                raise ValueError(f"Rule: {self.name!r} matches no {names}, and replaces by it")

    def __str__(self) -> str:
        replacement = self.replacement
        replacement_text = str(replacement) if isinstance(replacement, Pattern) else "..."
        guard_text = f" when {getattr(self.when, '__name__', '...')}" if self.when else ""
        return f"{self.name}: {self.pattern} => {replacement_text}{guard_text} ({self.exactness})"

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


class RuleCandidate(NamedTuple):
    """A rule with its operands in one order, and a cheap necessary condition of a match."""

    rule: Rule
    pattern: OperationPattern
    input_ops: tuple[tuple[int, tuple[Operator, ...]], ...]
    """Pairs (index of an input, the ops of which it must have one)."""
    variable_names: tuple[str, ...] | None
    """The variables, if the operands are distinct variables only; else None."""

    def fits(self, inputs: tuple[Operator, ...]) -> bool:
        """Whether the ops of a node's inputs meet `input_ops`."""
        for index, ops in self.input_ops:
            if index >= len(inputs) or inputs[index] not in ops:
                return False
        return True


PlacedCandidates = tuple[tuple[RuleCandidate, int | None], ...]


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules in the order in which they are tried; every set has a unique version."""

    rules: tuple[Rule, ...]
    version: int = field(init=False, default_factory=count(1).__next__)
    _roots: dict[tuple[Operator, bool], list[Rule]] = field(init=False, default_factory=dict)
    """The rules by the operation of their pattern, and whether an input must have it."""
    _candidates: dict[tuple[Operator, bool], list[RuleCandidate]] = field(
        init=False, default_factory=dict
    )
    """The candidates by the same key, from its first use on."""
    _candidate_cache: LruCache[tuple[Operator, ...], PlacedCandidates] = field(
        init=False,
        default_factory=lambda: LruCache(
            4096, "rule candidates", "finding them anew makes rewriting half as slow again"
        ),
    )
    """The results of `candidates`, by the ops of a node and of its inputs."""
    _remaining: dict[frozenset[str], RuleSet] = field(init=False, default_factory=dict)
    """The results of `without`."""

    def __post_init__(self) -> None:
        for rule in self.rules:
            pattern = rule.pattern
            root = pattern.operand if isinstance(pattern, AnyUserPattern) else pattern
            assert isinstance(root, OperationPattern), "a Rule matches nothing else"
            self._roots.setdefault((root.op, root is not rule.pattern), []).append(rule)

    def without(self, names: frozenset[str]) -> RuleSet:
        """Return the set without the rules of these names."""
        remaining = self._remaining.get(names)
        if remaining is None:
            rules = tuple([rule for rule in self.rules if rule.name not in names])
            remaining = self._remaining.setdefault(names, RuleSet(rules))
        return remaining

    def _with_root(self, op: Operator, *, as_input: bool) -> list[RuleCandidate]:
        rules = self._roots.get((op, as_input))
        if not rules:
            return []
        candidates = self._candidates.get((op, as_input))
        if candidates is None:
            candidates = []
            for rule in rules:
                candidates += [
                    RuleCandidate(rule, tree, _input_ops(tree), _variable_names(tree))
                    for tree in operand_orders(_root_operation(rule.pattern))
                ]
            self._candidates[op, as_input] = candidates
        return candidates

    def candidates(self, op: Operator, inputs: tuple[Operator, ...]) -> PlacedCandidates:
        """Return the candidates for a node of `op` with inputs of these ops, in order.

        Each has the index of the input that it matches; None if it matches the node.
        """
        cached = self._candidate_cache.get((op, *inputs))
        if cached is None:
            fitting: list[tuple[RuleCandidate, int | None]] = [
                (candidate, None)
                for candidate in self._with_root(op, as_input=False)
                if candidate.fits(inputs)
            ]
            if isinstance(op, Op):
                for index, input_op in enumerate(inputs):
                    fitting += [
                        (candidate, index) for candidate in self._with_root(input_op, as_input=True)
                    ]
            cached = tuple(fitting)
            if _are_permanent((op, *inputs)):
                self._candidate_cache[(op, *inputs)] = cached
        return cached

    def nodes_with_candidates(self, graph: Graph, ops: Sequence[Operator]) -> set[int]:
        """Return the nodes of an original graph that a rule may match."""
        forms = [
            (op, tuple(map(ops.__getitem__, inputs)))
            for op, inputs in zip(ops, graph.inputs, strict=True)
        ]
        matching = {form for form in set(forms) if self.candidates(*form)}
        return {at for at, form in enumerate(forms) if form in matching}


def _are_permanent(ops: Sequence[Operator]) -> bool:
    """Whether operations may be cached: that of a traced function dies with the function."""
    return not [op for op in ops if isinstance(op, Op) and op.semantics.body is not None]


def _root_operation(pattern: Pattern) -> OperationPattern:
    """Return the operation of a rule's pattern, at the root or at an input of it."""
    inner = pattern.operand if isinstance(pattern, AnyUserPattern) else pattern
    assert isinstance(inner, OperationPattern), "a Rule matches nothing else"
    return inner


def _input_ops(tree: OperationPattern) -> tuple[tuple[int, tuple[Operator, ...]], ...]:
    input_ops: list[tuple[int, tuple[Operator, ...]]] = []
    for position, operand in enumerate(tree.operands):
        if isinstance(operand, OperationPattern):
            input_ops.append((position, (operand.op,)))
        elif isinstance(operand, Constant):
            input_ops.append((position, (SCALAR_OP,)))
        elif isinstance(operand, PatternVariable) and operand.ops:
            input_ops.append((position, operand.ops))
    return tuple(input_ops)


def _variable_names(tree: OperationPattern) -> tuple[str, ...] | None:
    if tree.params is not None or not tree.operands:
        return None
    names = [operand.name for operand in tree.operands if isinstance(operand, PatternVariable)]
    return tuple(names) if len(set(names)) == len(tree.operands) else None
