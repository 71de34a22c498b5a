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
from tenfold.linear_algebra.block_matrices import BLOCKS
from tenfold.linear_algebra.diagonal_solve_rules import DIAGONAL_SOLVES
from tenfold.linear_algebra.partial_products import ENTRIES
from tenfold.linear_algebra.product_rules import PRODUCTS
from tenfold.linear_algebra.solve_rules import SOLVES
from tenfold.linear_algebra.structure_rules import STRUCTURE
from tenfold.rewrite.driver import RewriteReport, rewrite
from tenfold.rewrite.rule import Rule, RuleSet
from tenfold.rewrite.rules.booleans import BOOLEANS
from tenfold.rewrite.rules.constant_folding import CONSTANTS
from tenfold.rewrite.rules.diagonals import DIAGONALS
from tenfold.rewrite.rules.flatten_argmax import POSITIONS
from tenfold.rewrite.rules.monotone_reductions import ORDERS
from tenfold.rewrite.rules.norms import NORMS
from tenfold.rewrite.rules.partial_reads import opened
from tenfold.rewrite.rules.reductions import REDUCTIONS
from tenfold.rewrite.rules.slice_pushdown import PARTS
from tenfold.rewrite.rules.update_slices import REPLACED
from tenfold.rewrite.rules.views import MOVEMENT
from tenfold.settings import get

Rules = tuple[Rule, ...]


class RuleBlock(tuple[Rule, ...]):  # noqa: SLOT001  # it has an attribute
    """The rules of open blocks, with a number that no other has."""

    number = 0


_lock = Lock()  # protects _process and the numbers
_process: Rules = (
    *(*CONSTANTS, *BOOLEANS, *MOVEMENT, *POSITIONS, *REPLACED),
    *(*DIAGONALS, *BLOCKS, *SOLVES, *DIAGONAL_SOLVES, *STRUCTURE),
    *(*ENTRIES, *NORMS, *REDUCTIONS, *ORDERS, *PRODUCTS, *PARTS),
)
_BUILT_IN = _process
_numbers = count(1)
_process_number = 0
_block_numbers: LruCache[RuleBlock, int] = LruCache(64, "numbers of blocks of rules")
_NONE = RuleBlock()
_block: ContextVar[RuleBlock] = ContextVar("tenfold_rules", default=_NONE)
_sets: LruCache[tuple[Rules, Rules, bool, bool], RuleSet] = LruCache(64, "sets of rules")


_native.set_rules_variable(_block, _NONE)


def _renumber() -> None:
    """Give the rules in force a number that none had before; the built-in ones have 0."""
    global _process_number
    _process_number = 0 if _process == _BUILT_IN else next(_numbers)
    _native.set_process_rules(_process_number)


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
        _refuse(rule, _process)
        _process = (*_process, rule)
        _renumber()


def remove(rule: Rule | str) -> None:
    """Take a rule, or the one of that name, out of force for the process; also a built-in one.

    Raises LookupError when there is none.
    """
    global _process
    with _lock:
        left = tuple(each for each in _process if rule not in (each, each.name))
        if len(left) == len(_process):
            raise LookupError(f"rules.remove: rule {_name(rule)!r} is not in force")
        _process = left
        _renumber()


def list() -> Rules:  # noqa: A001  # a settled name
    """Return the rules in the order in which they are tried; options may switch some off.

    >>> import tenfold as tn
    >>> print(next(rule for rule in tn.rules.list() if rule.name == "or-itself"))
    or-itself: bitwise_or(x, x) => x when keeps (bitwise)
    """
    return (*_process, *_block.get())


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
        _refuse(rule, (*list(), *rules[:position]))
    block = RuleBlock((*_block.get(), *rules))
    with _lock:
        block.number = _block_numbers.setdefault(block, next(_numbers))
    _native.open_block()
    token = _block.set(block)
    try:
        yield
    finally:
        _block.reset(token)


def _refuse(rule: object, others: Rules) -> None:
    if not isinstance(rule, Rule):
        text = f"{type(rule).__name__} is not a rule"
        raise DTypeError("rules", text, remedy="make one with tn.Rule(name, pattern, replacement)")
    if any(rule.name == other.name for other in others):
        raise ValueError(f"rules: a rule {rule.name!r} is in force already; choose another name")


def _name(rule: Rule | str) -> str:
    return rule.name if isinstance(rule, Rule) else rule


def active() -> RuleSet:
    """Return the rules in force here, under the options in force."""
    key = (_process, _block.get(), get("reassociate") is True, get("fast") is True)
    found = _sets.get(key)
    if found is None:
        enabled = {"bitwise": True, "linear-algebra": key[2], "fast": key[3]}
        made = RuleSet(tuple(rule for rule in (*key[0], *key[1]) if enabled[rule.exactness]))
        found = _sets.setdefault(key, made)
    return found


def version() -> int:
    """Return the number of the rule set in force: equal numbers, equal rules."""
    return active().version


def fingerprint() -> tuple[int, int]:
    """Return numbers for the rules in force, whatever the options: equal ones, equal rules."""
    return _process_number, _block.get().number


def optimised(graph: Graph, *, describe: bool = False) -> tuple[Graph, RewriteReport]:
    """Return the graph that the rules in force leave, and what they did.

    With `tn.options(optimise=False)`, and where nothing fires, the graph is handed back as it is.
    With `describe` the report has the text of each rewrite. Raises what `rewrite` raises.
    """
    if not get("optimise"):
        return graph, RewriteReport()
    return rewrite(graph, active(), describe=describe, opened=opened)


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
