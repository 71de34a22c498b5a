"""Monotone reductions: max, min, argmax, any and all move below maps that preserve order.

Input: such a reduction of a map that keeps or reverses the order of all elements. Output: the map
of the reduced elements. Class bitwise: zeros keep their signs, and NaN stays NaN.

>>> print(MONOTONE_REDUCTION_RULES[0])
max-floor: max(floor(x)) => ... when reduces_unshared (bitwise)
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tenfold.core.op import Op
from tenfold.core.pattern import pattern, variables
from tenfold.dtypes import BOOL, kind_of
from tenfold.ops import (  # noqa: F401  # declare what patterns name
    comparison,
    elementary,
    reduce,
    rounding,
    selection,
)
from tenfold.ops.predicates import logical_not
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.reductions import named_pattern, reduces_unshared

x, y = variables("x y")


def _reduce_first(match: Match, *, reversed_order: bool = False) -> NodeView | None:
    """Reduce first, then map the result.

    With `reversed_order`, the map reverses the order or the truth: use the opposite reduction.
    """
    root, inner = match.root, match.root.inputs[0]
    reduced = _opposite_reduction(match) if reversed_order else match.again(root, match["x"])
    operands = [reduced if operand == match["x"] else operand for operand in inner.inputs]
    result = match.again(inner, *operands)
    return result if result.same_type(root) else None


OPPOSITE_REDUCTIONS: dict[Op[...], Op[...]] = {
    reduce.max: reduce.min,
    reduce.min: reduce.max,
    reduce.any: reduce.all,
    reduce.all: reduce.any,
    reduce.argmax: reduce.argmin,
    reduce.argmin: reduce.argmax,
}
"""The opposite of each reduction, for maps that reverse the order or negate."""


def _opposite_reduction(match: Match) -> NodeView:
    op = match.root.op
    assert op is not None, "a reduction"
    return match.make(OPPOSITE_REDUCTIONS[op], match["x"], params=match.root.params)


_reduce_first_reversed = partial(_reduce_first, reversed_order=True)


def of_floats(match: Match) -> bool:
    """As reduces_unshared, of floats: the smallest integer is its own negative."""
    return reduces_unshared(match) and kind_of(match["x"].dtype) == "f"


def of_bools(match: Match) -> bool:
    """As reduces_unshared, of bools."""
    return reduces_unshared(match) and match["x"].dtype == BOOL


def to_bool(match: Match) -> bool:
    """As reduces_unshared, of a cast to bool."""
    return reduces_unshared(match) and match.root.inputs[0].dtype == BOOL


def keeps_order(match: Match) -> bool:
    """As reduces_unshared, of a monotone cast of real numbers."""
    source, target = match["x"].dtype, match.root.inputs[0].dtype
    are_integers = kind_of(source) in "biu" and kind_of(target) in "iu"
    to_float = kind_of(source) in "biuf" and kind_of(target) == "f"
    return reduces_unshared(match) and (to_float or (are_integers and np.can_cast(source, target)))


def by_scalar(match: Match) -> bool:
    """As reduces_unshared, of maximum or minimum with a number."""
    return reduces_unshared(match) and match["y"].is_scalar


MAX_MIN_RULES = (
    *(
        Rule(
            f"{name}-{map_}",
            named_pattern(name, named_pattern(map_, x)),
            _reduce_first,
            when=reduces_unshared,
        )
        for name in ("max", "min")
        for map_ in ("floor", "ceil", "trunc", "round")
    ),
    Rule("min-sqrt", pattern.min(pattern.sqrt(x)), _reduce_first, when=reduces_unshared),
    *(
        Rule(
            f"{name}-cast", named_pattern(name, pattern.astype(x)), _reduce_first, when=keeps_order
        )
        for name in ("max", "min")
    ),
    *(
        Rule(
            f"{name}-{map_}-number",
            named_pattern(name, named_pattern(map_, x, y)),
            _reduce_first,
            when=by_scalar,
        )
        for name in ("max", "min")
        for map_ in ("maximum", "minimum")
    ),
    *(
        Rule(f"{name}-negative", named_pattern(name, -x), _reduce_first_reversed, when=of_floats)
        for name in ("max", "min")
    ),
)
"""max and min of maps that keep or reverse the order of all numbers, zeros and NaN included. Not
max of sqrt: another element may be negative, so the result is NaN."""


def _reduce_operand(match: Match) -> NodeView:
    return match.again(match.root, match["x"])


def _negated_opposite(match: Match) -> NodeView:
    return match.make(logical_not, _opposite_reduction(match))


ARGMAX_ANY_ALL_RULES = (
    *(
        Rule(f"{op.name}-negative", pattern(op, -x), _opposite_reduction, when=of_floats)
        for op in (reduce.argmax, reduce.argmin)
    ),
    *(
        rule
        for name in ("any", "all")
        for rule in (
            Rule(
                f"{name}-not",
                named_pattern(name, pattern.logical_not(x)),
                _reduce_first_reversed,
                when=reduces_unshared,
            ),
            Rule(f"{name}-invert", named_pattern(name, ~x), _reduce_first_reversed, when=of_bools),
            Rule(
                f"{name}-nonzero",
                named_pattern(name, pattern.not_equal(x, 0)),
                _reduce_operand,
                when=reduces_unshared,
            ),
            Rule(
                f"{name}-zero",
                named_pattern(name, pattern.equal(x, 0)),
                _negated_opposite,
                when=reduces_unshared,
            ),
            Rule(
                f"{name}-cast",
                named_pattern(name, pattern.astype(x)),
                _reduce_operand,
                when=to_bool,
            ),
        )
    ),
)
"""argmax, argmin, any and all of negated or compared elements."""

MONOTONE_REDUCTION_RULES = (*MAX_MIN_RULES, *ARGMAX_ANY_ALL_RULES)
