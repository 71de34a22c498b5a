"""Reduction rules: merge reductions, and skip elements that need not be computed or reduced.

Input: reductions of reductions, of broadcasts, and of products of broadcast elements. Output: fewer
elements, one reduction in place of two, or a matrix product. Exact rules are of class bitwise. A
rule that reorders float sums, or moves them before a factor, is of class fast.

>>> print(REDUCTION_RULES[0].name)
sum-sum
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tenfold.core.pattern import Pattern, pattern, variables
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.ops import reduce  # noqa: F401  # declares what patterns name
from tenfold.ops.arithmetic import multiply
from tenfold.ops.cast import astype
from tenfold.ops.contract import matmul
from tenfold.ops.reshaping import broadcast_to
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes, make_index, permute

x, y = variables("x y")
Axes = tuple[int, ...]


def reduces_unshared(match: Match) -> bool:
    """Whether the root reduces an operand that has no other reader."""
    return match.root.reduces_size() and match.root.inputs[0].single_reader


def _reduce_axes(match: Match, term: NodeView, axes: Axes, removed: Axes) -> NodeView:
    """Apply the root's reduction over some axes, and remove axes of length 1."""
    _, _, *options = match.root.params
    remaining = [axis for axis in range(len(term.shape)) if axis not in axes]
    reduced = match.again(match.root, term, params=(axes, False, *options)) if axes else term
    picks = zip(remaining, whole_axes(reduced.shape), strict=True)
    return make_index(match, reduced, tuple(0 if axis in removed else pick for axis, pick in picks))


def _same_rounding(match: Match, inner_axes: Axes, outer_axes: Axes) -> bool:
    """Whether two nested float reductions have the same bits as one.

    The inner reduction must have the last axes, and all dtypes must be equal.
    """
    dtypes = {match["x"].dtype, match.root.inputs[0].dtype, match.root.dtype}
    exact = len(dtypes) == 1 and match.root.dtype not in HALF_DTYPES
    return exact and max(outer_axes, default=-1) < min(inner_axes, default=len(match["x"].shape))


def _reduction_of_reduction(match: Match, *, ordered: bool) -> NodeView | None:
    """Reduce all axes at once."""
    root, inner, term = match.root, match.root.inputs[0], match["x"]
    (inner_axes, inner_keeps, *_), (outer_positions, keepdims, *options) = inner.params, root.params
    remaining = [a for a in range(len(term.shape)) if inner_keeps or a not in inner_axes]
    outer_axes = tuple(remaining[axis] for axis in outer_positions)
    are_integers = kind_of(root.dtype) in "biu" and kind_of(inner.dtype) in "biu"
    are_integers = are_integers and inner.dtype == root.dtype
    if ordered and not are_integers and not _same_rounding(match, inner_axes, outer_axes):
        return None
    axes = tuple(sorted({*inner_axes, *outer_axes}))
    result = match.again(root, term, params=(axes, False, *options))
    if result.dtype != root.dtype:
        result = match.again(root, term, params=(axes, False, root.dtype))
    result_axes = [a for a in remaining if keepdims or a not in outer_axes]
    return insert_axes(
        match, result, tuple(position for position, a in enumerate(result_axes) if a in axes)
    )


def _repeated_axes(term: NodeView) -> tuple[Axes, int]:
    """Return the axes along which a broadcast repeats its input, and the first input axis."""
    (target, begin), (inner,) = term.params, term.inputs
    input_axes = {
        begin + axis for axis, length in enumerate(inner.shape) if length == target[begin + axis]
    }
    return tuple(axis for axis in range(len(target)) if axis not in input_axes), begin


def _reduction_of_broadcast(
    match: Match, finish: Callable[[Match, NodeView, int], NodeView | None]
) -> NodeView | None:
    """Reduce the input of a broadcast, then apply `finish` for the repeated axes."""
    root, broadcast, term = match.root, match.root.inputs[0], match["x"]
    axes, keepdims, *_ = root.params
    repeated, begin = _repeated_axes(broadcast)
    repeats = prod(broadcast.shape[axis] for axis in axes if axis in repeated)
    if not repeats or not broadcast.single_reader or not set(axes) & set(repeated):
        return None
    input_axes = [axis - begin for axis in axes if begin <= axis < begin + len(term.shape)]
    reduced_axes = tuple(axis for axis in input_axes if axis + begin not in repeated)
    result = finish(match, _reduce_axes(match, term, reduced_axes, tuple(input_axes)), repeats)
    if result is None:
        return None
    lengths = tuple(n for axis, n in enumerate(broadcast.shape) if axis not in axes)
    if result.shape != lengths:
        new_begin = begin - sum(axis < begin for axis in axes)
        result = match.make(broadcast_to, result, params=(lengths, new_begin))
    return insert_axes(match, result, axes if keepdims else ())


def _cast_to_root(match: Match, term: NodeView, _: int = 1) -> NodeView:
    """Return a term in the root's dtype; repetition does not change max, min, any and all."""
    dtype = match.root.dtype
    return term if term.dtype == dtype else match.make(astype, term, params=(dtype,))


def _multiply_integer(match: Match, term: NodeView, repeats: int) -> NodeView | None:
    """Sum equal integers by a product, if the dtype can represent the number of repeats."""
    dtype = match.root.dtype
    if kind_of(dtype) not in "iu" or repeats > np.iinfo(dtype).max:
        return None
    return match.make(multiply, _cast_to_root(match, term), repeats)


def _multiply_float(match: Match, term: NodeView, repeats: int) -> NodeView | None:
    """Sum equal floats by a product, with one rounding in place of many."""
    dtype = match.root.dtype
    if kind_of(dtype) != "f" or dtype in HALF_DTYPES or kind_of(term.dtype) == "c":
        return None
    return match.make(multiply, _cast_to_root(match, term), float(repeats))


def _with_axes(match: Match, term: NodeView, ndim: int) -> NodeView:
    """Return an operand with `ndim` axes."""
    return insert_axes(match, term, tuple(range(ndim - len(term.shape))))


def _factors(match: Match) -> tuple[NodeView, NodeView] | None:
    """Return the operands, with equal numbers of axes, of a product that only this sum reads.

    None if the dtypes would move a rounding or a wrap to another operation.
    """
    root, product = match.root, match.root.inputs[0]
    first, second = match["x"], match["y"]
    dtypes = {root.dtype, product.dtype, first.dtype, second.dtype}
    same_dtype = len(dtypes) == 1 and kind_of(root.dtype) != "b" and root.dtype not in HALF_DTYPES
    if not same_dtype or first.is_scalar or second.is_scalar or not product.single_reader:
        return None
    if first.size + second.size >= product.size:
        return None
    ndim = len(product.shape)
    return _with_axes(match, first, ndim), _with_axes(match, second, ndim)


def _varies(term: NodeView, axis: int) -> bool:
    return term.shape[axis] != 1


def _sum_of_factors(match: Match) -> NodeView | None:
    """If only one factor varies along each summed axis: multiply their sums."""
    factors = _factors(match)
    axes, keepdims, _ = match.root.params
    if factors is None or any(all(_varies(factor, axis) for factor in factors) for axis in axes):
        return None
    sums = [
        _reduce_axes(match, factor, tuple(axis for axis in axes if _varies(factor, axis)), axes)
        for factor in factors
    ]
    return insert_axes(match, match.make(multiply, *sums), axes if keepdims else ())


def _sum_of_outer(match: Match) -> NodeView | None:
    """Lower a sum of outer products to a matrix product."""
    factors = _factors(match)
    axes, keepdims, _ = match.root.params
    if factors is None or len(axes) != 1:
        return None
    first, second = factors
    result_axes = [axis for axis in range(len(first.shape)) if axis not in axes]
    rows = [a for a in result_axes if _varies(first, a) and not _varies(second, a)]
    columns = [a for a in result_axes if _varies(second, a) and not _varies(first, a)]
    if not all(_varies(factor, axes[0]) for factor in factors) or (len(rows), len(columns)) != (
        1,
        1,
    ):
        return None
    stack = [axis for axis in result_axes if axis not in rows + columns]
    left_matrix = _drop_and_permute(match, first, columns[0], (*stack, *rows, *axes))
    right_matrix = _drop_and_permute(match, second, rows[0], (*stack, *axes, *columns))
    product = match.make(matmul, left_matrix, right_matrix)
    order = (*stack, *rows, *columns)
    product = permute(match, product, tuple(order.index(axis) for axis in result_axes))
    return insert_axes(match, product, axes if keepdims else ())


def _drop_and_permute(match: Match, term: NodeView, dropped: int, order: Axes) -> NodeView:
    """Return a term without an axis of length 1, the others permuted."""
    return permute(
        match, _reduce_axes(match, term, (), (dropped,)), tuple(a - (a > dropped) for a in order)
    )


def named_pattern(name: str, *operands: Pattern) -> Any:
    """Return the pattern of the operation of that name."""
    return getattr(pattern, name)(*operands)


NESTED_RULES = tuple(
    Rule(
        f"{name}-{name}",
        named_pattern(name, named_pattern(name, x)),
        partial(_reduction_of_reduction, ordered=name in ("sum", "prod")),
        when=reduces_unshared,
    )
    for name in ("sum", "prod", "max", "min", "any", "all")
)
"""Reductions of reductions."""

BROADCAST_RULES = (
    *(
        Rule(
            f"{name}-broadcast",
            named_pattern(name, pattern.broadcast_to(x)),
            partial(_reduction_of_broadcast, finish=finish),
        )
        for name, finish in (
            ("max", _cast_to_root),
            ("min", _cast_to_root),
            ("any", _cast_to_root),
            ("all", _cast_to_root),
            ("sum", _multiply_integer),
        )
    ),
    Rule(
        "sum-broadcast-floats",
        pattern.sum(pattern.broadcast_to(x)),
        partial(_reduction_of_broadcast, finish=_multiply_float),
        exactness="fast",
    ),
)
"""Reductions of broadcasts."""

FACTOR_RULES = (
    Rule("sum-factors", pattern.sum(x * y), _sum_of_factors, exactness="fast"),
    Rule("sum-outer", pattern.sum(x * y), _sum_of_outer, exactness="fast"),
)
"""Sums of elementwise products whose operands broadcast."""

REDUCTION_RULES = (*NESTED_RULES, *BROADCAST_RULES, *FACTOR_RULES)
