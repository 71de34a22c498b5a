"""Constant folding: simplifies operations with known numbers, without a changed bit.

Input: operations with 0 and 1, casts, `where` with a known condition, and arrays of one value.
Output: a simpler expression. `x + 0` is not `x` for -0.0, nor `0 - x` its negative; complex
products with 1 are not `x` if a part is infinite. Class bitwise.

>>> print(CONSTANT_RULES[0])
multiply-one: multiply(x, 1) => x when same_real_type (bitwise)
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from tenfold.core.cast_values import cast_values
from tenfold.core.op import Kind, Op
from tenfold.core.pattern import Constant, Number, pattern, variables
from tenfold.dtypes import BOOL, kind_of
from tenfold.ops import (  # noqa: F401  # declare what patterns name
    arithmetic,
    bitwise,
    comparison,
    elementary,
    predicates,
    selection,
)
from tenfold.ops.cast import astype
from tenfold.ops.create import full
from tenfold.rewrite.node_view import NodeView, walk_inputs
from tenfold.rewrite.rule import Match, Rule

c, x, y = variables("c x y")


def same_type(match: Match) -> bool:
    """Whether `x` has the Type of the root."""
    return match["x"].same_type(match.root)


def same_real_type(match: Match) -> bool:
    """As same_type, without complex numbers."""
    return same_type(match) and kind_of(match.root.dtype) != "c"


def same_integer_or_bool_type(match: Match) -> bool:
    """As same_type, integers and bools only."""
    return same_type(match) and kind_of(match.root.dtype) in "biu"


def same_integer_type(match: Match) -> bool:
    """As same_type, integers only."""
    return same_type(match) and kind_of(match.root.dtype) in "iu"


def same_bool_type(match: Match) -> bool:
    """As same_type, bools only."""
    return same_type(match) and match.root.dtype == BOOL


def same_float_type(match: Match) -> bool:
    """As same_type, real floating numbers only."""
    return same_type(match) and kind_of(match.root.dtype) == "f"


def may_be_negative(match: Match) -> bool:
    """Whether `x` may be negative: unsigned integers wrap."""
    return kind_of(match["x"].dtype) != "u"


def _same_type_and_removable(replacement: str, dropped: str) -> Any:
    """Return a guard: `replacement` may replace the root, and `dropped` is removable."""

    def guard(match: Match) -> bool:
        return match[replacement].same_type(match.root) and is_removable(match[dropped])

    guard.__name__ = f"dead_{dropped}"
    return guard


def is_removable(term: NodeView) -> bool:
    """Whether a term and its transitive inputs are pure and cannot fail.

    A term of more than `MAX_CHECKED_NODES` nodes is not removable, so the check is bounded.
    """
    terms = list(islice(walk_inputs(term), MAX_CHECKED_NODES + 1))
    ops = (node.op for node in terms)
    return len(terms) <= MAX_CHECKED_NODES and all(
        op is None or (op.semantics.pure and not op.semantics.can_fail) for op in ops
    )


MAX_CHECKED_NODES = 1000


def x_is_removable(match: Match) -> bool:
    """Whether dropping `x` has no visible effect."""
    return is_removable(match["x"])


_POWER_HALF = pattern.where(pattern.equal(x, -np.inf), np.inf, abs(pattern.sqrt(x)))
"""`x**0.5`: inf for -inf, and 0 for -0."""


IDENTITY_RULES = (
    Rule("multiply-one", x * 1, x, when=same_real_type),
    Rule("divide-one", x / 1, x, when=same_real_type),
    Rule("floor-divide-one", x // 1, x, when=same_integer_type),
    Rule("subtract-zero", x - 0, x, when=same_type),
    Rule("add-zero", x + 0, x, when=same_integer_or_bool_type),
    Rule("add-minus-zero", x + -0.0, x, when=same_real_type),
    Rule("power-zero", x**0, Constant(1), when=x_is_removable),
    Rule("power-one", x**1, x, when=same_type),
    Rule("power-two", x**2, pattern.square(x), when=same_type),
    Rule("power-minus-one", x**-1, pattern.reciprocal(x), when=same_type),
    Rule("power-half", x**0.5, _POWER_HALF, when=same_float_type),
    Rule("or-zero", x | 0, x, when=same_type),
    Rule("xor-zero", x ^ 0, x, when=same_type),
    Rule("shift-left-zero", x << 0, x, when=same_type),
    Rule("shift-right-zero", x >> 0, x, when=same_type),
    Rule("and-itself", x & x, x, when=same_type),
    Rule("or-itself", x | x, x, when=same_type),
    Rule("positive", +x, x, when=same_type),
    Rule("negative-twice", pattern.negative(-x), x, when=same_type),
    Rule("invert-twice", ~~x, x, when=same_type),
    Rule("not-twice", pattern.logical_not(pattern.logical_not(x)), x, when=same_bool_type),
    Rule("abs-twice", abs(abs(x)), abs(x)),
    Rule("abs-negative", abs(-x), abs(x), when=may_be_negative),
    Rule("abs-square", pattern.square(abs(x)), pattern.square(x), when=same_type),
    Rule("maximum-itself", pattern.maximum(x, x), x, when=same_type),
    Rule("minimum-itself", pattern.minimum(x, x), x, when=same_type),
)
"""Operations equal to their operand, or to a cheaper operation."""


def _can_represent(target: np.dtype, source: np.dtype) -> bool:
    """Whether `target` can represent every value of `source`."""
    if target == source or source == BOOL:
        return True
    kinds = kind_of(source) + kind_of(target)
    if kinds in ("ii", "uu", "ui"):
        return target.itemsize > source.itemsize
    if kinds in ("ff", "cc"):
        return target.itemsize > source.itemsize
    if kinds in ("if", "uf"):
        return 8 * source.itemsize <= _SIGNIFICAND_BITS[target.itemsize]
    return False


_SIGNIFICAND_BITS = {2: 8, 4: 24, 8: 53}
"""The significand bits of floating dtypes by byte size; bfloat16 has the fewest of its size."""


def _cast_directly(match: Match) -> NodeView | None:
    """Merge two casts, if the first is lossless and the kinds allow it."""
    term, target = match["x"], match.root.dtype
    source, middle = term.dtype, match.root.inputs[0].dtype
    if not _can_represent(middle, source):
        return None
    if source == target:
        return term
    kinds = {kind_of(dtype).replace("u", "i") for dtype in (source, middle, target)}
    if len(kinds) == 1 or BOOL in (source, target):
        return match.make(astype, term, params=(target,))
    return None


CAST_RULES = (
    Rule("cast-to-itself", pattern.astype(x), x, when=same_type),
    Rule("cast-of-cast", pattern.astype(pattern.astype(x)), _cast_directly),
)
"""Redundant casts."""

WHERE_CONSTANT_RULES = (
    Rule("where-true", pattern.where(True, x, y), x, when=_same_type_and_removable("x", "y")),
    Rule("where-false", pattern.where(False, y, x), x, when=_same_type_and_removable("x", "y")),
    Rule("where-same", pattern.where(c, x, x), x, when=_same_type_and_removable("x", "c")),
)
"""`where` with a known result."""


def _constant_value(term: NodeView) -> Number:
    """Return the number of a scalar, or of a `full` array in its dtype."""
    if term.is_scalar:
        return term.scalar
    _, value, dtype, _ = term.params
    number: Number = cast_values(np.asarray(value), dtype).item()
    return number


def is_bitwise_exact(op: Op[...] | None) -> bool:
    """Whether every device computes an operation to the same bits, for any loop order."""
    if op is None or op.semantics.kind is not Kind.MAP or op.reference is None:
        return False
    return not (op.accuracy or op.semantics.opaque or op.semantics.can_fail)


def _fold_constants(match: Match) -> NodeView | None:
    """Fold an exact operation on constants into a `full` array.

    Runtime scalars vary between uses of a plan, so the plan computes with them.
    """
    root = match.root
    op = root.op
    if op is None or not is_bitwise_exact(op):
        return None
    inputs = root.inputs
    if any(
        operand.is_runtime_scalar or not (operand.is_scalar or operand.op is full)
        for operand in inputs
    ):
        return None
    assert op.reference is not None, "an exact operation has a reference"
    operands = [
        cast_values(np.asarray(_constant_value(term)), dtype)
        for term, dtype in zip(inputs, root.operands, strict=True)
    ]
    if any(operand.dtype == object for operand in operands):
        return None
    with np.errstate(all="ignore"):
        result = cast_values(np.asarray(op.reference(*operands, *root.params)), root.dtype)
    type_ = root.type
    return match.make(full, params=(type_.shape, result.item(), type_.dtype, type_.device))


def _full_to_scalar(match: Match) -> NodeView | None:
    """Replace a `full` operand of an exact operation by its number."""
    root = match.root
    if root.op is None or not is_bitwise_exact(root.op):
        return None
    operand_dtypes = root.operands
    dtype_fits = [
        term.dtype == dtype for term, dtype in zip(root.inputs, operand_dtypes, strict=True)
    ]
    is_array = [not (term.is_scalar or term.op is full) for term in root.inputs]
    if not any(fits and array for fits, array in zip(dtype_fits, is_array, strict=True)):
        return None
    inputs = [
        _constant_value(term) if term.op is full and fits else term
        for term, fits in zip(root.inputs, dtype_fits, strict=True)
    ]
    if all(isinstance(operand, NodeView) for operand in inputs):
        return None
    result = match.make(root.op, *inputs, params=root.params)
    unchanged = result.same_type(root) and result.operands == operand_dtypes
    return result if unchanged else None


FULL_RULES = (
    Rule("fold", pattern.reading(pattern.full()), _fold_constants),
    Rule("number-for-full", pattern.reading(pattern.full()), _full_to_scalar),
)
"""Arrays of one value."""

CONSTANT_RULES = (*IDENTITY_RULES, *CAST_RULES, *WHERE_CONSTANT_RULES, *FULL_RULES)
