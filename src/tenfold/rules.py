"""Rewrite rules (`tn.rules`): the public API for writing rules and switching them on.

`tn.Rule(name, pattern, replacement)` is a rewrite, written as algebra of `variables` and of the
operations in `pattern`. `add` and `remove` switch one on or off for the process, `using` switches
some on for a block. `list` returns them; `version` changes whenever the rules do.

>>> import tenfold as tn
>>> x, y = tn.rules.variables("x y")
>>> rule = tn.Rule("difference", -(x - y), y - x, exactness="fast")
>>> with tn.rules.using(rule), tn.options(fast=True):
...     (-(tn.asarray([1.0]) - 3)).tolist()
[2.0]
"""

from tenfold.core.pattern import pattern, variables
from tenfold.rewrite.rule import Match, Rule
from tenfold.rule_registry import add, list, remove, using, version  # noqa: A004  # settled

__all__ = ["Match", "Rule", "add", "list", "pattern", "remove", "using", "variables", "version"]
