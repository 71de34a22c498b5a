"""Rewrite driver: applies named rules to a graph until a fixed point.

Input: a Graph and a RuleSet (`rewrite/rule.py`). Output: the rewritten Graph and a report: which
rule fired where, and which nodes now have the values of replaced nodes. CSE (`rewrite/cse.py`)
merges equal nodes. Equal products and solves are merged before or after the rules, whichever takes
fewer multiply-adds; other nodes are merged after.

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

import warnings
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

from tenfold._native import Array, Node, Scope
from tenfold.core.graph import Graph
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import OPS, Op
from tenfold.core.pattern import Constant, Number, OperationPattern, Pattern, PatternVariable
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import PYTHON_TYPES
from tenfold.errors import DeviceError, DTypeError, ExplainedError, RunError, ShapeError
from tenfold.rewrite.cse import Pairs, costly_pairs, equal_pairs
from tenfold.rewrite.inline import RULE_NAME as INLINED
from tenfold.rewrite.inline import inline, is_call
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import SCALAR_OP, RewriteGraph, SymbolicNodes, operators_of
from tenfold.rewrite.rule import Match, Rule, RuleCandidate, RuleSet
from tenfold.settings import options_fingerprint, override

FUEL_BASE, FUEL_PER_NODE = 1000, 100
CSE_NAME = "cse"
"""The name of a CSE merge in the report."""


class RuleFiring(NamedTuple):
    """One rewrite: the rule, the node of the original graph, and its text before and after."""

    rule: str
    original_node: int
    before: str
    after: str


@dataclass(frozen=True)
class RewriteReport:
    """The result of a rewrite."""

    firings: tuple[RuleFiring, ...] = ()
    replaced_nodes: tuple[tuple[Node, int], ...] = ()
    """Each replaced node that is an output, live-out or passed through, with the position of its
    value in the new graph."""
    read_scalars: bool = False
    """Whether a rule has read the value of a scalar: see `RewriteGraph.read_scalars`."""
    read_shapes: bool = False
    """Whether a rule has read lengths: see `RewriteGraph.read_shapes`."""
    left_out: tuple[str, ...] = ()
    """Which rules did not terminate, so that the graph was rewritten without them."""

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule fired."""
        return dict(Counter(firing.rule for firing in self.firings))

    def lines(self) -> list[str]:
        """Return the rules left out and the rewrites as text: rule, place, before and after."""
        rewrites = [
            f"  {f.rule} at %{f.original_node}: {f.before} => {f.after}" for f in self.firings
        ]
        return [*[f"  left out: {text}" for text in self.left_out], *rewrites]


class _EndlessRules(Exception):
    """Rules that still change the graph after as many rewrites as a rewrite may take."""

    def __init__(self, names: frozenset[str], count: int) -> None:
        super().__init__()
        self.names = names
        listed = " and ".join(repr(name) for name in sorted(names))
        problem = (
            f"rules {listed} undo each other" if len(names) > 1 else f"rule {listed} feeds itself"
        )
        self.text = f"{problem}: still changing after {count} rewrites"


def rewrite(
    graph: Graph,
    rules: RuleSet,
    *,
    describe: bool = False,
    find_splittable: Callable[[RewriteGraph], set[int]] = lambda _: set(),
    symbolic: SymbolicNodes | None = None,
) -> tuple[Graph, RewriteReport]:
    """Return the graph with the rules applied to a fixed point, and the report.

    A graph without matches is returned unchanged. With `describe` the report has the text of each
    rewrite. `find_splittable` returns live-out nodes that rules may split. `symbolic` gives nodes
    symbolic lengths, so that decisions about lengths become guards. Rules that do not terminate are
    left out, with a RuntimeWarning that names them.
    """
    left_out: tuple[str, ...] = ()
    while True:
        try:
            result, report = _rewrite(graph, rules, describe, find_splittable, symbolic)
            return result, replace(report, left_out=left_out) if left_out else report
        except _EndlessRules as endless:
            rules = rules.without(endless.names)
            left_out = (*left_out, endless.text)
            remedy = "remove one with tn.rules.remove(name)"
            warnings.warn(
                f"rewrite: {endless.text}; computed without\n  remedy: {remedy}",
                RuntimeWarning,
                stacklevel=2,
            )


def _rewrite(
    graph: Graph,
    rules: RuleSet,
    describe: bool,
    find_splittable: Callable[[RewriteGraph], set[int]],
    symbolic: SymbolicNodes | None,
) -> tuple[Graph, RewriteReport]:
    """Return the graph with the rules applied, and the report; raise _EndlessRules."""
    ops = operators_of(graph)
    rewrite_graph = RewriteGraph(graph, ops, symbolic)
    pairs = equal_pairs(rewrite_graph)
    calls = True in [is_call(op) for op in set(ops)]
    matching = rules.nodes_with_candidates(graph, ops)
    if not pairs and not calls and not matching:
        return graph, RewriteReport()
    rewrite_graph.splittable = find_splittable(rewrite_graph)
    run = _RewriteRun(rewrite_graph, rules, describe, pairs, matching)
    # Nodes keep the dtypes of the options they were written under, and nothing is computed here.
    with override(strict_dtypes=False, pending_depth=0):
        early_pairs = costly_pairs(graph, pairs)
        if early_pairs and run.run_pass():
            rewrite_graph = RewriteGraph(graph, operators_of(graph), symbolic)
            rewrite_graph.splittable = find_splittable(rewrite_graph)
            early_run = _RewriteRun(rewrite_graph, rules, describe, pairs, matching)
            early_run.merge_equal(early_pairs)
            run = min(early_run.run(), run.run(), key=_RewriteRun.cost)
        else:
            run.merge_equal(early_pairs)
            run.run()
        rewrite_graph, firings = run.graph, run.firings
        if calls:
            firings += _inline_calls(rewrite_graph, rules, describe)
    if not firings:
        return graph, RewriteReport((), (), rewrite_graph.read_scalars, rewrite_graph.read_shapes)
    optimised, replaced_nodes = rewrite_graph.finish()
    return optimised, RewriteReport(
        tuple(firings),
        tuple(replaced_nodes),
        rewrite_graph.read_scalars,
        rewrite_graph.read_shapes,
    )


def _inline_calls(graph: RewriteGraph, rules: RuleSet, describe: bool) -> list[RuleFiring]:
    """Replace calls by their bodies, each rewritten by itself; return the rewrites."""
    firings: list[RuleFiring] = []

    def rewrite_body(body: Subgraph, at: int) -> Graph:
        if graph.symbolic is not None:  # a trace has the lengths of its call
            return body.graph
        rewritten, report = _rewritten_body(body, rules, describe)
        graph.read_shapes = graph.read_shapes or report.read_shapes
        firings.extend(
            [
                RuleFiring(each.rule, at, f"in {body.name}, {each.before}", each.after)
                for each in report.firings
            ]
        )
        return rewritten

    calls = [
        RuleFiring(INLINED, at, text, "its operations") for at, text in inline(graph, rewrite_body)
    ]
    return [*firings, *calls]


def _rewritten_body(body: Subgraph, rules: RuleSet, describe: bool) -> tuple[Graph, RewriteReport]:
    """Return the rewritten graph of a body and the report; it keeps the last."""
    key = (rules.version, options_fingerprint(), describe)
    last_key, last = body.rewritten
    if last_key == key:
        result: tuple[Graph, RewriteReport] = last
        return result
    is_output = [position in body.graph.outputs for position in range(len(body.graph))]
    body_graph = replace(body.graph, live_out=is_output, passed_through=())
    result = rewrite(body_graph, rules, describe=describe)
    body.rewritten = (key, result)
    return result


class _RewriteRun:
    """One run of the rewriter: passes over all nodes, inputs first, to a fixed point."""

    def __init__(
        self,
        graph: RewriteGraph,
        rules: RuleSet,
        describe: bool,
        pairs: Pairs,
        matching: Set[int],
    ) -> None:
        self.graph, self.rules, self.describe = graph, rules, describe
        self.pairs = pairs
        """The equal nodes of the original graph."""
        self.matching = matching
        """The nodes of the original graph that have candidates."""
        self.fuel = FUEL_BASE + FUEL_PER_NODE * graph.original_count
        self.firings: list[RuleFiring] = []
        self.last_tried: dict[int, int] = {}
        """For a node without a match, the number of firings then: the next try follows the next
        firing."""

    def run(self) -> _RewriteRun:
        """Apply the rules and merge equal nodes until a fixed point."""
        while self.run_pass() or self.merge_equal(self._equal_pairs()):
            pass
        return self

    def _equal_pairs(self) -> Pairs:
        return (
            equal_pairs(self.graph, self.graph.topological_order()) if self.firings else self.pairs
        )

    def merge_equal(self, pairs: Pairs) -> bool:
        """Replace nodes by earlier equal nodes; return whether there were any."""
        graph = self.graph
        for at, representative in pairs:
            if graph.is_live(at):
                self._record_firing(CSE_NAME, at, graph.find(representative), 1)
                graph.splittable -= {at, representative}
                graph.replace(at, graph.find(representative))
        return bool(pairs)

    def cost(self) -> tuple[int, int]:
        """Return the multiply-adds and the number of operations of the live nodes."""
        graph = self.graph
        live_nodes = graph.topological_order()
        operations = sum(isinstance(graph.ops[at], Op) for at in live_nodes)
        return sum(map(graph.multiply_adds, live_nodes)), operations

    def run_pass(self) -> bool:
        """Try the rules at each node, then at the new nodes; return whether one fired.

        Of new nodes those that read the latest nodes come first.
        """
        graph, firings, last_tried = self.graph, self.firings, self.last_tried
        firings_before = len(firings)
        for start in graph.topological_order() if firings else range(graph.original_count):
            if not firings and start not in self.matching:
                continue
            heap = [(graph.users_first(start), start)]
            while heap:
                at = heappop(heap)[1]
                node_count = len(graph.nodes)
                if last_tried.get(at) == len(firings) or not graph.is_live(at):
                    continue
                if self._rewrite_node(at):
                    for new_node in range(node_count, len(graph.nodes)):
                        heappush(heap, (graph.users_first(new_node), new_node))
                else:
                    last_tried[at] = len(firings)
        return len(firings) > firings_before

    def _rewrite_node(self, at: int) -> bool:
        """Try the rules at one node; return whether one fired."""
        graph, rules = self.graph, self.rules
        ops, inputs = graph.ops, graph.refresh(at)
        for candidate, input_index in rules.candidates(
            ops[at], tuple(map(ops.__getitem__, inputs))
        ):
            if self._try_candidate(
                candidate, at, at if input_index is None else inputs[input_index]
            ):
                return True
        return False

    def _try_candidate(self, candidate: RuleCandidate, at: int, top: int) -> bool:
        """Match at `top` (the node or an input), check the guard and replace the node.

        Returns whether the node was replaced.
        """
        graph, rule = self.graph, candidate.rule
        bindings: dict[str, int] = {}
        matched: list[int] = []
        if candidate.variable_names is not None:
            inputs = graph.inputs[top]
            if len(inputs) != len(candidate.variable_names):
                return False
            bindings.update(zip(candidate.variable_names, graph.refresh(top), strict=True))
            matched.append(top)
        elif not _match_pattern(candidate.pattern, top, graph, bindings, matched):
            return False
        match = Match(graph, at, bindings)
        graph.root = at
        try:
            if rule.when is not None and not rule.when(match):
                return False
            replacement = self._replacement(rule, match, bindings, matched)
        except ExplainedError as error:
            text = f"rule {rule.name!r}: {error.operation}: {error.rule}"
            raise type(error)("rewrite", text, error.operands, error.remedy) from error
        except Exception as error:
            text = f"rule {rule.name!r} failed: {type(error).__name__}: {error}"
            raise RunError("rewrite", text, remedy="correct its guard or replacement") from error
        finally:
            graph.root = -1
        if (
            replacement is None
            or replacement == at
            or self._duplicates_work(rule, matched, replacement)
        ):
            return False
        _check_type(rule, graph, at, replacement)
        self._record_firing(rule.name, at, replacement, len(matched))
        graph.replace(at, replacement)
        return True

    def _replacement(
        self, rule: Rule, match: Match, bindings: dict[str, int], matched: list[int]
    ) -> int | None:
        """Return the node that replaces the match; None for none."""
        graph, replacement = self.graph, rule.replacement
        for position in matched[1:]:
            graph.register(position)
        with Scope((ORIGIN, graph.nodes[graph.root].origin)):
            result = (
                _build(replacement, graph, bindings)
                if isinstance(replacement, Pattern)
                else _replacement_node(replacement(match), graph)
            )
        if isinstance(result, int) and graph.ops[result] is SCALAR_OP:
            result = Constant(graph.scalar(result))
        return _full_of_value(result.value, match) if isinstance(result, Constant) else result

    def _duplicates_work(self, rule: Rule, matched: list[int], replacement: int) -> bool:
        """Whether a replacement pattern would compute a shared node twice."""
        if not isinstance(rule.replacement, Pattern):
            return False
        freed = sum(self.graph.single_reader(at) for at in matched[1:]) + 1
        return freed < len(matched) and len(self.graph.unshared_operations(replacement)) > freed

    def _record_firing(self, name: str, at: int, replacement: int, levels: int) -> None:
        graph = self.graph
        texts = (
            (graph.text(at, max(levels, 1)), graph.text(replacement, 0))
            if self.describe
            else ("", "")
        )
        self.firings.append(RuleFiring(name, graph.original_node(at), *texts))
        self.fuel -= 1
        if self.fuel < 0:
            fired = [firing.rule for firing in self.firings if firing.rule != CSE_NAME]
            raise _EndlessRules(frozenset(fired[-FUEL_BASE // 2 :]), len(self.firings))


def _match_pattern(
    tree: Pattern, at: int, graph: RewriteGraph, bindings: dict[str, int], matched: list[int]
) -> bool:
    """Match a pattern with the node `at`; record the bindings and the matched nodes."""
    if isinstance(tree, PatternVariable):
        if tree.ops and graph.ops[at] not in tree.ops:
            return False
        bound_node = bindings.setdefault(tree.name, at)
        return bound_node == at or _same_scalar(graph, bound_node, at)
    if isinstance(tree, Constant):
        if graph.ops[at] is not SCALAR_OP:
            return False
        graph.read_scalars = graph.read_scalars or not tree.notable
        return tree.equals(graph.nodes[at].scalar)
    assert isinstance(tree, OperationPattern), "a pattern inside an operation"
    if graph.ops[at] is not tree.op:
        return False
    if tree.params is not None and graph.nodes[at].params != tree.params:
        return False
    matched.append(at)
    if not tree.operands:
        return True
    inputs = graph.refresh(at)
    if len(inputs) != len(tree.operands):
        return False
    for operand, i in zip(tree.operands, inputs, strict=True):
        if not _match_pattern(operand, i, graph, bindings, matched):
            return False
    return True


def _same_scalar(graph: RewriteGraph, first: int, second: int) -> bool:
    if graph.ops[first] is not SCALAR_OP or graph.ops[second] is not SCALAR_OP:
        return False
    first_number, second_number = graph.scalar(first), graph.scalar(second)
    return type(first_number) is type(second_number) and Constant(first_number).equals(
        second_number
    )


def _build(tree: Pattern, graph: RewriteGraph, bindings: dict[str, int]) -> int | Constant:
    """Build the nodes of a replacement pattern."""
    if isinstance(tree, PatternVariable):
        return bindings[tree.name]
    if isinstance(tree, Constant):
        return tree
    assert isinstance(tree, OperationPattern), "a pattern inside an operation"
    operands = [_build(operand, graph, bindings) for operand in tree.operands]
    return graph.make(tree.op, operands, tree.params or ())


def _replacement_node(result: object, graph: RewriteGraph) -> int | Constant | None:
    """Return the result of a replacement function as a node or a number."""
    if result is None:
        return None
    if isinstance(result, NodeView):
        return graph.find(result.at)
    if type(result) is Array:
        return graph.adopt(result)
    if type(result) in PYTHON_TYPES:
        return Constant(result)  # type: ignore[arg-type]  # the table's keys are the Numbers
    text = f"it returned {type(result).__name__}, not an array or a number"
    raise DTypeError("replacement", text, remedy="return a term, an Array, a number, or None")


def _full_of_value(value: Number, match: Match) -> int:
    """Return the node of an array of the root's Type that holds `value` everywhere."""
    full: Any = OPS["full"]
    root = match.root.type
    call = full.signature.bind(root.shape, value, dtype=root.dtype, device=root.device)
    return match.make(full, params=call.params).at


def _check_type(rule: Rule, graph: RewriteGraph, at: int, replacement: int) -> None:
    """Refuse a replacement of another Type, naming the rule; its structure does not matter."""
    types = (graph.nodes[node].type for node in (at, replacement))
    before, after = (type_.with_structure(0) for type_ in types)
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
