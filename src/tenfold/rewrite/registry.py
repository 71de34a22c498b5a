"""Rule registry: the built-in families, rules that users add, and those that options switch off.

`add` and `remove` hold for the process, `using` for a block of one thread or task. Takes rules,
hands on the RuleSet in force, whose version is part of every key of the plan cache.

>>> import tenfold as tn
>>> (x,) = tn.rules.variables("x")
>>> with tn.rules.using(tn.Rule("cube", x**3, x * x * x, exactness="fast")):
...     tn.rules.list()[-1]
<rule cube>
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from threading import Lock

from tenfold import _native
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.errors import DTypeError
from tenfold.linear_algebra.block_matrices import BLOCK_MATRIX_RULES
from tenfold.linear_algebra.diagonal_solve_rules import DIAGONAL_SOLVES
from tenfold.linear_algebra.partial_products import PARTIAL_PRODUCT_RULES
from tenfold.linear_algebra.product_rules import PRODUCT_RULES
from tenfold.linear_algebra.solve_rules import SOLVE_RULES
from tenfold.linear_algebra.structure_rules import STRUCTURE_RULES
from tenfold.rewrite.driver import RewriteReport, rewrite
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
    """The rules of open blocks, with a number that no other has."""

    number = 0


_lock = Lock()  # protects _process and the numbers
_process_rules: Rules = (
    *(*CONSTANT_RULES, *BOOLEAN_RULES, *VIEW_RULES, *ARGMAX_RULES, *UPDATE_SLICE_RULES),
    *(*DIAGONAL_RULES, *BLOCK_MATRIX_RULES, *SOLVE_RULES, *DIAGONAL_SOLVES, *STRUCTURE_RULES),
    *(*PARTIAL_PRODUCT_RULES, *NORM_RULES, *REDUCTION_RULES, *MONOTONE_REDUCTION_RULES, *PRODUCT_RULES, *SLICE_PUSHDOWN_RULES),
)
_BUILT_IN_RULES = _process_rules
_numbers = count(1)
_process_version = 0
_block_numbers: LruCache[RuleBlock, int] = LruCache(64, "numbers of blocks of rules")
_EMPTY_BLOCK = RuleBlock()
_open_block: ContextVar[RuleBlock] = ContextVar("tenfold_rules", default=_EMPTY_BLOCK)
_rule_sets: LruCache[tuple[Rules, Rules, bool, bool], RuleSet] = LruCache(64, "sets of rules")


_native.set_rules_variable(_open_block, _EMPTY_BLOCK)


def _renumber() -> None:
    """Give the rules in force a number that none had before; the built-in ones have 0."""
    global _process_number
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
    global _process
    with _lock:
        _check_new_rule(rule, _process_rules)
        _process_rules = (*_process_rules, rule)
        _renumber()


def remove(rule: Rule | str) -> None:
    """Take a rule, or the one of that name, out of force for the process; also a built-in one.

    Raises LookupError when there is none.
    """
    global _process
    with _lock:
        left = tuple(each for each in _process_rules if rule not in (each, each.name))
        if len(left) == len(_process_rules):
            raise LookupError(f"rules.remove: rule {_name(rule)!r} is not in force")
        _process_rules = left
        _renumber()


def list() -> Rules:  # noqa: A001  # a settled name
    """Return the rules in the order in which they are tried; options may switch some off.

    >>> import tenfold as tn
    >>> print(next(rule for rule in tn.rules.list() if rule.name == "or-itself"))
    or-itself: bitwise_or(x, x) => x when keeps (bitwise)
    """
    return (*_process_rules, *_open_block.get())


@contextmanager
def using(*rules: Rule) -> Iterator[None]:
    """Put rules in force for a block, in this thread or task only.

    Raises DTypeError unless each is a Rule, ValueError if a rule of its name is in force.

    >>> import tenfold as tn
    >>> x, y = tn.rules.variables("x y")
    >>> with tn.rules.using(tn.Rule("half", x / 2, x * 0.5)):
    ...     (tn.asarray([1.0, 3.0]) / 2).tolist()
    [0.5, 1.5]
    """
    for position, rule in enumerate(rules):
        _check_new_rule(rule, (*list(), *rules[:position]))
    block = RuleBlock((*_open_block.get(), *rules))
    with _lock:
        block.number = _block_numbers.setdefault(block, next(_numbers))
    _native.open_block()
    token = _open_block.set(block)
    try:
        yield
    finally:
        _open_block.reset(token)


def _check_new_rule(rule: object, others: Rules) -> None:
    if not isinstance(rule, Rule):
        text = f"{type(rule).__name__} is not a rule"
        raise DTypeError("rules", text, remedy="make one with tn.Rule(name, pattern, replacement)")
    if any(rule.name == other.name for other in others):
        raise ValueError(f"rules: a rule {rule.name!r} is in force already; choose another name")


def _name(rule: Rule | str) -> str:
    return rule.name if isinstance(rule, Rule) else rule


def active() -> RuleSet:
    """Return the rules in force here, under the options in force."""
    key = (_process_rules, _open_block.get(), get("reassociate") is True, get("fast") is True)
    found = _rule_sets.get(key)
    if found is None:
        enabled = {"bitwise": True, "linear-algebra": key[2], "fast": key[3]}
        made = RuleSet(tuple(rule for rule in (*key[0], *key[1]) if enabled[rule.exactness]))
        found = _rule_sets.setdefault(key, made)
    return found


def version() -> int:
    """Return the number of the rule set in force: equal numbers, equal rules."""
    return active().version


def fingerprint() -> tuple[int, int]:
    """Return numbers for the rules in force, whatever the options: equal ones, equal rules."""
    return _process_version, _open_block.get().number


def optimise_graph(graph: Graph, *, describe: bool = False) -> tuple[Graph, RewriteReport]:
    """Return the graph that the rules in force leave, and what they did.

    With `tn.options(optimise=False)`, and where nothing fires, the graph is handed back as it is.
    With `describe` the report has the text of each rewrite. Raises what `rewrite` raises.
    """
    if not get("optimise"):
        return graph, RewriteReport()
    return rewrite(graph, active(), describe=describe, opened=splittable_nodes)


def lines(graph: Graph, report: RewriteReport) -> builtins.list[str]:
    r"""Return the text of the stage: what fired, how often and where, then the graph that is left.

    >>> import tenfold as tn
    >>> y = -(-tn.asarray([1.0, 2.0])) + 1
    >>> after, report = optimised(Graph.of([tn._native.node_of(y)]), describe=True)
    >>> print("\n".join(lines(after, report)))
    optimised: 3 nodes, 1 rewrite: negative-twice 1
      negative-twice at %2: negative(negative(%0)) => %0
      %0 = leaf float64[2]
      %1 = scalar 1
      %2 = add(%0, %1) float64[2]
    """
    number = len(report.firings)
    fired = ", ".join(f"{name} {times}" for name, times in report.counts.items())
    rewrites = f"{number} rewrite{'s' * (number > 1)}: {fired}" if number else "no rule fires"
    nodes = f"{len(graph)} node{'s' * (len(graph) != 1)}"
    shown = [f"  {graph.line(position)}" for position in range(len(graph))]
    return [f"optimised: {nodes}, {rewrites}", *report.lines(), *shown]
