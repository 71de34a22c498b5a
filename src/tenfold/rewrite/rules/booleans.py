"""Boolean simplification: choices, comparisons and truth values with fewer operations.

Input: `where`, comparisons and logical or bitwise operations. Output: fewer of them. Comparisons
with NaN keep their results: `x == x` is true for integers only, and for floats `not (x < y)`
differs from `x >= y`. A removed operand must neither fail nor have an effect. Class bitwise.

>>> print(BOOLEAN_RULES[0])
where-not: where(logical_not(c), x, y) => where(c, y, x) (bitwise)
"""

from __future__ import annotations

import numpy as np

from tenfold.core.pattern import Constant, Number, pattern, variables
from tenfold.dtypes import BOOL, kind_of
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.constant_folding import (
    is_removable,
    same_bool_type,
    same_type,
    x_is_removable,
)

c, x, y, z = variables("c x y z")


def condition_is_bool(match: Match) -> bool:
    """Whether the condition is bool: then its inverse is its negation."""
    return match["c"].dtype == BOOL


def keeps_condition(match: Match) -> bool:
    """Whether the condition and the root are bool and have one Type."""
    return match.root.dtype == BOOL and match["c"].same_type(match.root)


def y_is_removable(match: Match) -> bool:
    """Whether `x` may replace the root, and dropping `y` has no visible effect."""
    return same_type(match) and is_removable(match["y"])


def bool_y_is_removable(match: Match) -> bool:
    """As y_is_removable, for bools: other truth values are converted."""
    return same_bool_type(match) and is_removable(match["y"])


def x_is_removable_integer(match: Match) -> bool:
    """Whether `x` is integer or bool (no NaN), and dropping it has no visible effect."""
    return kind_of(match["x"].dtype) in "biu" and x_is_removable(match)


def both_integer(match: Match) -> bool:
    """Whether both operands are integer or bool, so that they are totally ordered."""
    return all(kind_of(match[name].dtype) in "biu" for name in ("x", "y"))


def same_dtypes(match: Match) -> bool:
    """Whether both operands have the dtype of the root."""
    return match["x"].dtype == match["y"].dtype == match.root.dtype


def _where_of(match: Match, first: NodeView, second: NodeView) -> NodeView | None:
    """Return the root's `where` of other operands, if `y` is removable and the Type is equal."""
    if not is_removable(match["y"]):
        return None
    result = match.again(match.root, match["c"], first, second)
    return result if result.same_type(match.root) else None


ZERO, TRUE, FALSE = Constant(0), Constant(True), Constant(False)
_and, _or = pattern.logical_and, pattern.logical_or
_not, _where = pattern.logical_not, pattern.where

WHERE_NOT_RULES = (
    Rule("where-not", _where(_not(c), x, y), _where(c, y, x)),
    Rule("where-invert", _where(~c, x, y), _where(c, y, x), when=condition_is_bool),
    Rule(
        "where-where",
        _where(c, _where(c, x, y), z),
        lambda match: _where_of(match, match["x"], match["z"]),
    ),
    Rule(
        "where-else-where",
        _where(c, z, _where(c, y, x)),
        lambda match: _where_of(match, match["z"], match["x"]),
    ),
    Rule("where-true-false", _where(c, True, False), c, when=keeps_condition),
    Rule("where-false-true", _where(c, False, True), _not(c), when=keeps_condition),
)
"""`where` with an inverted condition, with the same condition twice, and of truth values."""


def _all_bits(match: Match) -> Number:
    """Return the element with every bit set."""
    dtype = match.root.dtype
    return True if dtype == BOOL else int(np.invert(dtype.type(0)))


LOGIC_RULES = (
    Rule("and-or", x & (x | y), x, when=y_is_removable),
    Rule("or-and", x | (x & y), x, when=y_is_removable),
    Rule("logical-and-or", _and(x, _or(x, y)), x, when=bool_y_is_removable),
    Rule("logical-or-and", _or(x, _and(x, y)), x, when=bool_y_is_removable),
    Rule("logical-and-itself", _and(x, x), x, when=same_bool_type),
    Rule("logical-or-itself", _or(x, x), x, when=same_bool_type),
    Rule("and-inverse", x & ~x, ZERO, when=x_is_removable),
    Rule("or-inverse", x | ~x, _all_bits, when=x_is_removable),
    Rule("xor-itself", x ^ x, ZERO, when=x_is_removable),
    Rule("and-true", x & True, x, when=same_bool_type),
    Rule("and-of-inverses", ~x & ~y, ~(x | y), when=same_dtypes),
    Rule("or-of-inverses", ~x | ~y, ~(x & y), when=same_dtypes),
)
"""Absorption, inverses, and De Morgan's laws."""

_equal, _not_equal = pattern.equal(x, y), pattern.not_equal(x, y)

COMPARISON_RULES = (
    Rule("equal-itself", pattern.equal(x, x), TRUE, when=x_is_removable_integer),
    Rule("other-than-itself", pattern.not_equal(x, x), FALSE, when=x_is_removable_integer),
    Rule("most-itself", pattern.less_equal(x, x), TRUE, when=x_is_removable_integer),
    Rule("least-itself", pattern.greater_equal(x, x), TRUE, when=x_is_removable_integer),
    Rule("less-than-itself", pattern.less(x, x), FALSE, when=x_is_removable),
    Rule("greater-than-itself", pattern.greater(x, x), FALSE, when=x_is_removable),
    *(
        rule
        for name, inverse in (("not", _not), ("invert", pattern.bitwise_invert))
        for rule in (
            Rule(f"{name}-equal", inverse(_equal), _not_equal),
            Rule(f"{name}-not-equal", inverse(_not_equal), _equal),
            Rule(f"{name}-less", inverse(x < y), x >= y, when=both_integer),
            Rule(f"{name}-less-equal", inverse(x <= y), x > y, when=both_integer),
            Rule(f"{name}-greater", inverse(x > y), x <= y, when=both_integer),
            Rule(f"{name}-greater-equal", inverse(x >= y), x < y, when=both_integer),
        )
    ),
)
"""Comparisons of `x` with itself, and inverses of comparisons: NaN is neither less nor greater."""

BOOLEAN_RULES = (*WHERE_NOT_RULES, *LOGIC_RULES, *COMPARISON_RULES)
