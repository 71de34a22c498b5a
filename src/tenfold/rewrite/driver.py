"""Rewrite driver: applies named rules to a graph until a fixed point.

`rewrite` takes a Graph and a RuleSet (`rewrite/rule.py`) and hands on the Graph that is left with a
Report: which rule fired where, and where the values of removed nodes now come from. CSE
(`rewrite/cse.py`) merges equal nodes. Products and solves that are written twice are merged before
the rules run or after, whichever takes fewer multiply-adds, all else after.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.core.pattern import variables
>>> (x,) = variables("x")
>>> graph = Graph.of([tn._native.node_of(tn.asarray([1.0]) * 1 + 2)])
>>> after, report = rewrite(graph, RuleSet((Rule("mul-one", x * 1, x),)))
>>> print(after)
%0 = leaf float64[1]
%1 = scalar 2
%2 = add(%0, %1) float64[1]
>>> report.counts
{'mul-one': 1}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Op
from tenfold.core.pattern import Constant, Number, OperationPattern, Pattern, PatternVariable
from tenfold.dtypes import PYTHON_TYPES
from tenfold.errors import DeviceError, DTypeError, ExplainedError, RunError, ShapeError
from tenfold.rewrite.cse import Pairs, costly_pairs, equal_pairs
from tenfold.rewrite.inline import RULE_NAME as INLINED
from tenfold.rewrite.inline import inline, is_call
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import ORIGIN, SCALAR, RewriteGraph, operators_of
from tenfold.rewrite.rule import Match, Rule, RuleCandidate, RuleSet
from tenfold.settings import override

FUEL_BASE, FUEL_PER_NODE = 1000, 100
CSE_NAME = "cse"
"""The name under which the report has that a node became another that computes the same."""


class RuleFiring(NamedTuple):
    """One rewrite: the rule, the node of the graph as it was, and its text before and after."""

    rule: str
    place: int
    before: str
    after: str


@dataclass(frozen=True)
class RewriteReport:
    """What a rewrite did."""

    firings: tuple[RuleFiring, ...] = ()
    replaced: tuple[tuple[Node, int], ...] = ()
    """Each replaced node that is an output or live-out, with the position of its value in the new
    graph."""
    looked: bool = False
    """Whether a rule has looked at the value of a scalar: see `RewriteGraph.looked`."""
    measured: bool = False
    """Whether a rule has looked at lengths: see `RewriteGraph.measured`."""
    parts: tuple[Node, ...] = ()
    """Nodes that are computed in part for the first time: the executor marks them so."""

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule fired."""
        return dict(Counter(firing.rule for firing in self.firings))

    def lines(self) -> list[str]:
        """Return the rewrites as text: rule, place, before and after."""
        return [f"  {f.rule} at %{f.place}: {f.before} => {f.after}" for f in self.firings]


def rewrite(
    graph: Graph,
    rules: RuleSet,
    *,
    describe: bool = False,
    opened: Callable[[RewriteGraph], set[int]] | None = None,
) -> tuple[Graph, RewriteReport]:
    """Return the graph with the rules applied until none fires any more, and what was done.

    A graph that no rule fits is handed back as it is. With `describe` the report has the texts of
    what was replaced. `opened` names nodes that rules may take apart although they are held.
    Raises RunError, naming them, for rules that do not come to an end.
    """
    ops = operators_of(graph)
    work = RewriteGraph(graph, ops)
    pairs = equal_pairs(work)
    calls = any(map(is_call, ops))
    if not pairs and not calls and not rules.may_match(graph, ops):
        return graph, RewriteReport()
    done = _RewriteRun(_with_splittable(work, opened), rules, describe, pairs)
    # What was written under other options stays as it was, and nothing is computed meanwhile.
    with override(strict_dtypes=False, pending_depth=0):
        early = costly_pairs(work, pairs)
        if early and done.over_all():
            work = RewriteGraph(graph, operators_of(graph))
            other = _RewriteRun(_with_splittable(work, opened), rules, describe, pairs)
            other.merge(early)
            done = min(other.run(), done.run(), key=_RewriteRun.takes)
        else:
            done.merge(early)
            done.run()
        work, firings = done.work, done.firings
        if calls:
            firings += [
                RuleFiring(INLINED, at, call, "its operations") for at, call in inline(work)
            ]
    parts = tuple(work.nodes[at] for at in work.read_in_part)
    if not firings:
        return graph, RewriteReport((), (), work.looked, work.measured, parts)
    after, replaced = work.finish()
    return after, RewriteReport(tuple(firings), tuple(replaced), work.looked, work.measured, parts)


def _with_splittable(work: RewriteGraph, opened: Callable[[RewriteGraph], set[int]] | None) -> RewriteGraph:
    if opened is not None:
        work.opened = opened(work)
    return work


class _RewriteRun:
    """One run of the rewriter: passes over all nodes, inputs first, until one changes nothing."""

    def __init__(self, work: RewriteGraph, rules: RuleSet, describe: bool, pairs: Pairs) -> None:
        self.work, self.rules, self.describe = work, rules, describe
        self.pairs = pairs
        """What is equal as it was written."""
        self.fuel = FUEL_BASE + FUEL_PER_NODE * work.count
        self.firings: list[RuleFiring] = []
        self.tried: dict[int, int] = {}
        """For a node that no rule fitted, the firings there were then: it is not tried again before
        the next one."""

    def run(self) -> _RewriteRun:
        """Apply the rules, and merge what is equal then, until nothing changes any more."""
        while self.over_all() or self.merge(self._equal()):
            pass
        return self

    def _equal(self) -> Pairs:
        return equal_pairs(self.work, self.work.order()) if self.firings else self.pairs

    def merge(self, pairs: Pairs) -> bool:
        """Let nodes that are equal to others before them be those; whether there were any."""
        work = self.work
        for at, by in pairs:
            if work.needed(at):
                self._note(CSE_NAME, at, work.find(by), 1)
                work.opened -= {at, by}
                work.replace(at, work.find(by))
        return bool(pairs)

    def takes(self) -> tuple[int, int]:
        """Return the multiply-adds of what is left, and its operations."""
        work = self.work
        left = work.order()
        operations = sum(isinstance(work.ops[at], Op) for at in left)
        return sum(map(work.multiply_adds, left)), operations

    def over_all(self) -> bool:
        """Try the rules at each node, then at what was made in its place; whether one fired."""
        work, firings, tried = self.work, self.firings, self.tried
        before = len(firings)
        for first in work.order() if firings else range(work.count):
            stack = [first]
            while stack:
                at = stack.pop()
                made = len(work.nodes)
                if tried.get(at) == len(firings) or not work.needed(at):
                    continue
                if self._at(at):
                    stack.extend(range(len(work.nodes) - 1, made - 1, -1))
                else:
                    tried[at] = len(firings)
        return len(firings) > before

    def _at(self, at: int) -> bool:
        """Try the rules at one node; whether one fired."""
        work, rules = self.work, self.rules
        ops, inputs = work.ops, work.refresh(at)
        for candidate, place in rules.fitting(ops[at], tuple([ops[i] for i in inputs])):
            if self._try(candidate, at, at if place is None else inputs[place]):
                return True
        return False

    def _try(self, candidate: RuleCandidate, at: int, top: int) -> bool:
        """Match at `top`, the node itself or what it reads, ask the guard, make the replacement and
        put it in place; whether that was done.
        """
        work, rule = self.work, candidate.rule
        bound: dict[str, int] = {}
        inner: list[int] = []
        if candidate.names is not None:
            inputs = work.inputs[top]
            if len(inputs) != len(candidate.names):
                return False
            bound.update(zip(candidate.names, work.refresh(top), strict=True))
            inner.append(top)
        elif not _match_pattern(candidate.pattern, top, work, bound, inner):
            return False
        match = Match(work, at, bound)
        work.root = at
        try:
            if rule.when is not None and not rule.when(match):
                return False
            by = self._replacement(rule, match, bound, inner)
        except ExplainedError as error:
            text = f"rule {rule.name!r}: {error.operation}: {error.rule}"
            raise type(error)("rewrite", text, error.operands, error.remedy) from error
        except Exception as error:
            text = f"rule {rule.name!r} failed: {type(error).__name__}: {error}"
            raise RunError("rewrite", text, remedy="correct its guard or replacement") from error
        finally:
            work.root = -1
        if by is None or by == at or self._doubles(rule, inner, by):
            return False
        _check_type(rule, work, at, by)
        self._note(rule.name, at, by, len(inner))
        work.replace(at, by)
        return True

    def _replacement(
        self, rule: Rule, match: Match, bound: dict[str, int], inner: list[int]
    ) -> int | None:
        """Return the node that takes the place of what matched; None for none."""
        work, by = self.work, rule.replacement
        for position in inner[1:]:
            work.remember(position)
        token = ORIGIN.set(work.nodes[work.root].origin)
        try:
            made = _build(by, work, bound) if isinstance(by, Pattern) else _replacement_node(by(match), work)
        finally:
            ORIGIN.reset(token)
        if isinstance(made, int) and work.ops[made] is SCALAR:
            made = Constant(work.scalar(made))
        return _full_of_value(made.value, match) if isinstance(made, Constant) else made

    def _doubles(self, rule: Rule, inner: list[int], by: int) -> bool:
        """Whether something that is read elsewhere too would be computed again by a pattern."""
        if not isinstance(rule.replacement, Pattern):
            return False
        freed = sum(self.work.alone(at) for at in inner[1:]) + 1
        return freed < len(inner) and len(self.work.unread(by)) > freed

    def _note(self, name: str, at: int, by: int, levels: int) -> None:
        work = self.work
        texts = (work.text(at, max(levels, 1)), work.text(by, 0)) if self.describe else ("", "")
        self.firings.append(RuleFiring(name, work.place(at), *texts))
        self.fuel -= 1
        if self.fuel < 0:
            last = {firing.rule for firing in self.firings[-FUEL_BASE // 2 :]} - {CSE_NAME}
            names = " and ".join(repr(name) for name in sorted(last))
            several = len(last) > 1
            what = f"rules {names} undo each other" if several else f"rule {names} feeds itself"
            rule_text = f"{what}: still changing after {len(self.firings)} rewrites"
            raise RunError("rewrite", rule_text, remedy="remove one with tn.rules.remove(name)")


def _match_pattern(
    tree: Pattern, at: int, work: RewriteGraph, bound: dict[str, int], inner: list[int]
) -> bool:
    """Match a pattern with the node `at`; note what variables stand for and the nodes it names."""
    if isinstance(tree, PatternVariable):
        if tree.ops and work.ops[at] not in tree.ops:
            return False
        before = bound.setdefault(tree.name, at)
        return before == at or _same_scalar(work, before, at)
    if isinstance(tree, Constant):
        if work.ops[at] is not SCALAR:
            return False
        work.looked = work.looked or not tree.notable
        return tree.equals(work.nodes[at].scalar)
    assert isinstance(tree, OperationPattern), "a pattern inside an operation"
    if work.ops[at] is not tree.op:
        return False
    if tree.params is not None and work.nodes[at].params != tree.params:
        return False
    inner.append(at)
    if not tree.operands:
        return True
    inputs = work.refresh(at)
    if len(inputs) != len(tree.operands):
        return False
    for operand, i in zip(tree.operands, inputs, strict=True):
        if not _match_pattern(operand, i, work, bound, inner):
            return False
    return True


def _same_scalar(work: RewriteGraph, first: int, second: int) -> bool:
    if work.ops[first] is not SCALAR or work.ops[second] is not SCALAR:
        return False
    one, other = work.scalar(first), work.scalar(second)
    return type(one) is type(other) and Constant(one).equals(other)


def _build(tree: Pattern, work: RewriteGraph, bound: dict[str, int]) -> int | Constant:
    """Make the nodes of a replacement."""
    if isinstance(tree, PatternVariable):
        return bound[tree.name]
    if isinstance(tree, Constant):
        return tree
    assert isinstance(tree, OperationPattern), "a pattern inside an operation"
    operands = [_build(operand, work, bound) for operand in tree.operands]
    return work.make(tree.op, operands, tree.params or ())


def _replacement_node(result: object, work: RewriteGraph) -> int | Constant | None:
    """Return what a replacement's function returned as a node or a number."""
    if result is None:
        return None
    if isinstance(result, NodeView):
        return work.find(result.at)
    if type(result) is Array:
        return work.adopt(result)
    if type(result) in PYTHON_TYPES:
        return Constant(result)  # type: ignore[arg-type]  # the table's keys are the Numbers
    text = f"it returned {type(result).__name__}, not an array or a number"
    raise DTypeError("replacement", text, remedy="return a term, an Array, a number, or None")


def _full_of_value(value: Number, match: Match) -> int:
    """Return the node of an array of the root's Type that holds `value` everywhere."""
    full: Any = OPS["full"]
    root = match.root.type
    call = full.bind(root.shape, value, dtype=root.dtype, device=root.device)
    return match.make(full, params=call.params).at


def _check_type(rule: Rule, work: RewriteGraph, at: int, by: int) -> None:
    """Refuse a replacement of another Type, naming the rule."""
    before, after = work.nodes[at].type, work.nodes[by].type
    if before == after:
        return
    remedy = "give the rule a guard with when="
    text = f"rule {rule.name!r} would change"
    if before.shape != after.shape:
        text = f"{text} shape {before.shape} into {after.shape}"
        raise ShapeError("rewrite", text, [before, after], remedy)
    if before.dtype != after.dtype:
        text = f"{text} {before.dtype} into {after.dtype}"
        raise DTypeError("rewrite", text, [before, after], remedy)
    text = f"{text} device {before.device!r} into {after.device!r}"
    raise DeviceError("rewrite", text, [before, after], remedy)
