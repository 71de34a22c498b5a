"""Rule registry: the built-in rules, rules that users add, and those that options switch off.

`add` and `remove` change the process, `using` a block of one thread or task. Input: rules. Output:
the active RuleSet, whose version is part of every key of the plan cache.

>>> import tenfold as tn
>>> (x,) = tn.rules.variables("x")
>>> with tn.rules.using(tn.Rule("cube", x**3, x * x * x, exactness="fast")):
...     tn.rules.list()[-1]
<rule cube>
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from itertools import count
from threading import Lock
from typing import Any

from tenfold import _native
from tenfold._native import Scope
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.errors import DTypeError
from tenfold.linear_algebra.block_matrices import BLOCK_MATRIX_RULES
from tenfold.linear_algebra.partial_products import PARTIAL_PRODUCT_RULES
from tenfold.linear_algebra.product_rules import PRODUCT_RULES
from tenfold.linear_algebra.solve_rules import SOLVE_RULES
from tenfold.linear_algebra.structure_rules import STRUCTURE_RULES
from tenfold.rewrite.driver import RewriteReport, rewrite
from tenfold.rewrite.rewrite_graph import SymbolicNodes
from tenfold.rewrite.rule import Rule, RuleSet
from tenfold.rewrite.rules.booleans import BOOLEAN_RULES
from tenfold.rewrite.rules.constant_folding import CONSTANT_RULES
from tenfold.rewrite.rules.diagonals import DIAGONAL_RULES
from tenfold.rewrite.rules.flatten_argmax import ARGMAX_RULES
from tenfold.rewrite.rules.monotone_reductions import MONOTONE_REDUCTION_RULES
from tenfold.rewrite.rules.norms import NORM_RULES
from tenfold.rewrite.rules.partial_reads import splittable_nodes
from tenfold.rewrite.rules.reductions import REDUCTION_RULES
from tenfold.rewrite.rules.slice_pushdown import SLICE_PUSHDOWN_RULES
from tenfold.rewrite.rules.update_slices import UPDATE_SLICE_RULES
from tenfold.rewrite.rules.views import VIEW_RULES
from tenfold.settings import get

Rules = tuple[Rule, ...]


class RuleBlock(tuple[Rule, ...]):  # noqa: SLOT001  # it has an attribute
    """The rules of open blocks, with a number that no other rules have."""

    number = 0


class RulesInForce:
    """The rules of the process and of open blocks: their number, and their sets by options."""

    def __init__(self, rules: Rules, number: int) -> None:
        self.rules, self.number = rules, number
        self._sets: dict[tuple[bool, bool], RuleSet] = {}

    def under(self, *, reassociate: bool, fast: bool) -> RuleSet:
        """Return the rules that these options leave on."""
        rule_set = self._sets.get((reassociate, fast))
        if rule_set is None:
            enabled = {"bitwise": True, "linear-algebra": reassociate, "fast": fast}
            new_set = RuleSet(tuple([rule for rule in self.rules if enabled[rule.exactness]]))
            rule_set = self._sets.setdefault((reassociate, fast), new_set)
        return rule_set


_lock = Lock()  # protects _process_rules and the numbers
_process_rules: Rules = (
    *(*CONSTANT_RULES, *BOOLEAN_RULES, *VIEW_RULES, *ARGMAX_RULES, *UPDATE_SLICE_RULES),
    *(*DIAGONAL_RULES, *BLOCK_MATRIX_RULES, *SOLVE_RULES, *STRUCTURE_RULES),
    *(
        *PARTIAL_PRODUCT_RULES,
        *NORM_RULES,
        *REDUCTION_RULES,
        *MONOTONE_REDUCTION_RULES,
        *PRODUCT_RULES,
        *SLICE_PUSHDOWN_RULES,
    ),
)
_BUILT_IN_RULES = _process_rules
_numbers = count(1)
_process_version = 0
_EMPTY_BLOCK = RuleBlock()
_open_block: ContextVar[RuleBlock] = ContextVar("tenfold_rules", default=_EMPTY_BLOCK)
_rules_in_force: LruCache[tuple[Rules, Rules], RulesInForce] = LruCache(
    64, "rule sets", "equal rules have equal numbers, so that their plans are reused"
)


_native.set_rules_variable(_open_block, _EMPTY_BLOCK)


def _renumber() -> None:
    """Give the active rules a new number; the built-in rules have 0."""
    global _process_version
    _process_version = 0 if _process_rules == _BUILT_IN_RULES else next(_numbers)
    _native.set_process_rules(_process_version)


def add(rule: Rule) -> None:
    """Put a rule in force for the process, after the others.

    Raises DTypeError unless it is a Rule, ValueError if a rule of its name is in force.

    >>> import tenfold as tn
    >>> (x,) = tn.rules.variables("x")
    >>> tn.rules.add(tn.Rule("minus", 0 - x, -x, exactness="fast"))
    >>> tn.rules.remove("minus")
    """
    global _process_rules
    with _lock:
        _check_new_rule(rule, _process_rules)
        _process_rules = (*_process_rules, rule)
        _renumber()


def remove(rule: Rule | str) -> None:
    """Take a rule, or the one of that name, out of force for the process; also a built-in one.

    Raises LookupError when there is none.
    """
    global _process_rules
    with _lock:
        remaining = tuple(
            active_rule
            for active_rule in _process_rules
            if rule not in (active_rule, active_rule.name)
        )
        if len(remaining) == len(_process_rules):
            raise LookupError(f"rules.remove: rule {_name(rule)!r} is not in force")
        _process_rules = remaining
        _renumber()


def list() -> Rules:  # noqa: A001  # a settled name
    """Return the rules in the order in which they are tried; options may switch some off.

    >>> import tenfold as tn
    >>> print(next(rule for rule in tn.rules.list() if rule.name == "or-itself"))
    or-itself: bitwise_or(x, x) => x when same_type (bitwise)
    """
    return (*_process_rules, *_open_block.get())


def using(*rules: Rule) -> AbstractContextManager[None]:
    """Put rules in force for a block, in this thread or task only.

    Raises DTypeError unless each is a Rule, ValueError if a rule of its name is in force.

    >>> import tenfold as tn
    >>> x, y = tn.rules.variables("x y")
    >>> with tn.rules.using(tn.Rule("half", x / 2, x * 0.5)):
    ...     (tn.asarray([1.0, 3.0]) / 2).tolist()
    [0.5, 1.5]
    """
    return _Using(rules)


class _Using(Scope, ContextDecorator):
    """A block with further rules, or a function whose calls are such blocks."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules

    def prepare(self) -> tuple[None, Sequence[tuple[Any, Any]]]:
        """Check the rules; return those of the block."""
        for position, rule in enumerate(self.rules):
            _check_new_rule(rule, (*list(), *self.rules[:position]))
        block = RuleBlock((*_open_block.get(), *self.rules))
        with _lock:
            block.number = _in_force(block).number
        _native.enable_option_blocks()
        return None, ((_open_block, block),)


def _check_new_rule(rule: object, rules_in_force: Rules) -> None:
    if not isinstance(rule, Rule):
        text = f"{type(rule).__name__} is not a rule"
        raise DTypeError("rules", text, remedy="make one with tn.Rule(name, pattern, replacement)")
    if any(rule.name == active_rule.name for active_rule in rules_in_force):
        raise ValueError(f"rules: a rule {rule.name!r} is in force already; choose another name")


def _name(rule: Rule | str) -> str:
    return rule.name if isinstance(rule, Rule) else rule


def active() -> RuleSet:
    """Return the rules in force here, under the options in force."""
    in_force = _in_force(_open_block.get())
    return in_force.under(reassociate=get("reassociate") is True, fast=get("fast") is True)


def _in_force(block: RuleBlock) -> RulesInForce:
    """Return the rules of the process and of a block."""
    key = (_process_rules, block)
    cached = _rules_in_force.get(key)
    if cached is None:
        cached = _rules_in_force.setdefault(key, RulesInForce((*key[0], *block), next(_numbers)))
    return cached


def version() -> int:
    """Return the number of the rule set in force: equal numbers, equal rules."""
    return active().version


def rules_fingerprint() -> tuple[int, int]:
    """Return numbers that identify the active rules under any options."""
    return _process_version, _open_block.get().number


def optimise_graph(
    graph: Graph, *, describe: bool = False, symbolic: SymbolicNodes | None = None
) -> tuple[Graph, RewriteReport]:
    """Apply the active rules to a graph; return the graph and the report.

    With `tn.options(optimise=False)`, or if no rule fires, the graph is returned unchanged. With
    `describe` the report has the text of each rewrite. Rules read the lengths of `symbolic` nodes,
    if it is given. Raises what `rewrite` raises.
    """
    if not get("optimise"):
        return graph, RewriteReport()
    return rewrite(
        graph, active(), describe=describe, find_splittable=splittable_nodes, symbolic=symbolic
    )


def rewrite_lines(graph: Graph, report: RewriteReport) -> builtins.list[str]:
    r"""Return the text of the stage: the rules that fired, then the rewritten graph.

    >>> import tenfold as tn
    >>> y = -(-tn.asarray([1.0, 2.0])) + 1
    >>> after, report = optimise_graph(Graph.of([tn._native.node_of(y)]), describe=True)
    >>> print("\n".join(rewrite_lines(after, report)))
    optimised: 3 nodes, 1 rewrite: negative-twice 1
      negative-twice at %2: negative(negative(%0)) => %0
      %0 = leaf float64[2]
      %1 = scalar 1
      %2 = add(%0, %1) float64[2]
    """
    firing_count = len(report.firings)
    fired_rules = ", ".join(f"{name} {firings}" for name, firings in report.counts.items())
    rewrites = (
        f"{firing_count} rewrite{'s' * (firing_count > 1)}: {fired_rules}"
        if firing_count
        else "no rule fires"
    )
    nodes = f"{len(graph)} node{'s' * (len(graph) != 1)}"
    node_lines = [f"  {graph.line(position)}" for position in range(len(graph))]
    return [f"optimised: {nodes}, {rewrites}", *report.lines(), *node_lines]
