"""Partial products: compute only those entries of a matrix product that are read.

Takes an index, a diagonal, a trace or a sum of an `A @ B` that is not needed whole. Hands on the
product of those rows of `A` and columns of `B` that are read, or of their sums. An element is a
product of two vectors, a diagonal a stack of such, a trace one contraction of all elements. Sums of
a part of a product have another order than its library's, so bits may change. Class linear-algebra.

>>> print(ENTRIES[0])
index-product: index(matmul(x, y)) => ... when part_of_a_product (linear-algebra)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Shape, broadcast, whole_axes
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.linear_algebra.normal_form import BLAS_PRODUCTS
from tenfold.linear_algebra.structure_inference import apply_form, transpose
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.contract import matmul, tensordot
from tenfold.ops.diagonal_tril_triu import tril, triu
from tenfold.ops.reduce import sum as sum_over
from tenfold.ops.syrk import place_of, trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.diagonals import diagonal_location, operand_diagonal
from tenfold.rewrite.rules.slice_composition import Picks, operand_picks, remaining_axes, canonical_pick
from tenfold.rewrite.rules.views import selects_fewer, make_index, insert_axes

x, y = variables("x y")


def _factors(match: Match) -> tuple[NodeView, NodeView]:
    """The two operands of the product that the root reads, in their form."""
    product = match.root.inputs[0]
    first, second = product.inputs[:2]
    if product.op not in BLAS_PRODUCTS:
        return first, second
    forms = product.params[:2]
    factors = [apply_form(match, first, forms[0]), apply_form(match, second, forms[1])]
    if product.op is trmm:  # what lies beside the triangle need not be 0
        place, side = place_of(product.params[2])
        if side != "either":
            op = tril if side == "lower" else triu
            factors[place] = match.make(op, factors[place], params=(0,))
    return factors[0], factors[1]


def _apply_epilogue(match: Match, made: NodeView, part: Callable[[NodeView], NodeView]) -> NodeView | None:
    """What multiplies a product, and what is added to it, for a part of them: `part` takes that of
    an operand which broadcasts to the product.
    """
    product = match.root.inputs[0]
    if product.op not in BLAS_PRODUCTS:
        return made
    *_, sign, scales, added = product.params
    numbers, others = product.inputs[2 : 2 + scales], product.inputs[2 + scales :]
    made = _multiply_scalars(match, made, numbers)
    if added:
        third = _multiply_scalars(match, part(others[0]), others[1:])
        first, second = (third, made) if sign < 0 else (made, third)
        made = match.make(subtract if sign != added else add, first, second)
        sign = -1 if sign < 0 and added < 0 else 1
    if sign < 0:
        made = match.make(negative, made)
    return made if made.dtype == match.root.dtype else None


def _multiply_scalars(match: Match, term: NodeView, numbers: Sequence[NodeView]) -> NodeView:
    for number in numbers:
        term = match.make(multiply, term, number)
    return term


def _stack_shape(first: NodeView, second: NodeView) -> Shape:
    """The axes of a matrix product that are a stack: the others are rows and columns."""
    return broadcast(first.shape[:-2], second.shape[:-2])


def part_of_a_product(match: Match) -> bool:
    """Whether the root reads fewer elements of a product that only the root needs."""
    return selects_fewer(match) and match.root.inputs[0].alone


def _index_of_product(match: Match) -> NodeView | None:
    """The rows that are read times the columns that are read."""
    (first, second), whole = _factors(match), match.root.inputs[0]
    picks, new = match.root.params
    lengths = _stack_shape(first, second)
    stack, rest = picks[: len(lengths)], picks[len(lengths) :]
    stays = bool(remaining_axes(stack))  # then one row alone stays an axis: vectors would be a matrix
    held = iter([canonical_pick(pick, 1, 1) if isinstance(pick, int) and stays else pick for pick in rest])

    def of_stack(term: NodeView) -> Picks:
        return operand_picks(term.shape[:-2], lengths, stack)

    if len(first.shape) > 1:
        inner = whole_axes(first.shape[-1:])
        first = make_index(match, first, (*of_stack(first), next(held), *inner))
    if len(second.shape) > 1:
        inner = whole_axes(second.shape[-2:-1])
        second = make_index(match, second, (*of_stack(second), *inner, next(held)))
    made = match.make(matmul, first, second)
    if stays:
        gone = [False] * len(remaining_axes(stack)) + [isinstance(pick, int) for pick in rest]
        made = _drop_axes(match, made, gone)

    def part(term: NodeView) -> NodeView:
        return make_index(match, term, operand_picks(term.shape, whole.shape, picks))

    by = _apply_epilogue(match, made, part)
    return None if by is None else insert_axes(match, by, new)


def _drop_axes(match: Match, term: NodeView, gone: Sequence[bool]) -> NodeView:
    """A term without those of its axes, of length 1, that are to be gone."""
    axes = zip(gone, whole_axes(term.shape), strict=True)
    return make_index(match, term, tuple(0 if leaves else whole for leaves, whole in axes))


def _diagonal_of_product(match: Match) -> NodeView | None:
    """Row i of the first times column i of the second, for each i: a stack of two vectors each."""
    (first, second), found = _factors(match), diagonal_location(match)
    length = match.root.shape[-1]
    if found is None or length == 0 or min(len(first.shape), len(second.shape)) < 2:
        return None
    rows, columns = canonical_pick(found.row, length, 1), canonical_pick(found.column, length, 1)
    *stack, _, inner = whole_axes(first.shape)
    left = make_index(match, first, (*stack, rows, inner), (len(stack) + 1,))
    turned = transpose(match, second)
    *stack, _, inner = whole_axes(turned.shape)
    right = make_index(match, turned, (*stack, columns, inner), (len(stack) + 2,))
    made = match.make(matmul, left, right)
    made = make_index(match, made, (*whole_axes(made.shape[:-2]), 0, 0))
    return _apply_epilogue(match, made, lambda term: operand_diagonal(match, term, found))


def _trace_of_product(match: Match) -> NodeView | None:
    """The sum of a diagonal, which is a stack of products of vectors, as one contraction."""
    root, diagonal = match.root, match.root.inputs[0]
    (product,) = diagonal.inputs
    first, second = product.inputs
    axes, keepdims, _ = root.params
    stack = product.shape[:-2]
    taken_whole = diagonal.params == ((*whole_axes(stack), 0, 0), ())
    if not (taken_whole and len(stack) == 1 and axes == (0,) and sum_before_product_is_exact(root, product)):
        return None
    if first.shape[:-2] != stack or second.shape[:-2] != stack or not stack[0]:
        return None
    if not (diagonal.alone and product.alone):
        return None
    along, _, inner = whole_axes(first.shape)
    left, right = make_index(match, first, (along, 0, inner)), make_index(match, second, (along, inner, 0))
    made = match.make(tensordot, left, right, params=(((0, 1), (0, 1)),))
    return insert_axes(match, made, (0,) if keepdims else ())


def sum_before_product_is_exact(root: NodeView, product: NodeView) -> bool:
    """Whether a sum is computed in the dtype of a product and both operands: then it may come
    before the product. Not of bools, whose products do not count, nor halves, which would be
    rounded in between.
    """
    dtypes = {root.dtype, product.dtype, *(each.dtype for each in product.inputs[:2])}
    return len(dtypes) == 1 and kind_of(root.dtype) != "b" and root.dtype not in HALF_DTYPES


def _sum_of_product(match: Match) -> NodeView | None:
    """The sum of the rows of the first, or of the columns of the second, before the product."""
    (first, second), product = _factors(match), match.root.inputs[0]
    axes, keepdims, dtype = match.root.params
    stack = len(_stack_shape(first, second))
    if not sum_before_product_is_exact(match.root, product) or any(axis < stack for axis in axes):
        return None
    if any(each.shape not in ((), product.shape) for each in product.inputs[2:]):
        return None  # what is added is repeated
    if first.shape[-1] == 0:
        return None
    if len(first.shape) > 1 and stack in axes:
        params = ((len(first.shape) - 2,), stack > 0, dtype)
        first = match.make(sum_over, first, params=params)
    if len(second.shape) > 1 and len(product.shape) - 1 in axes:
        params = ((len(second.shape) - 1,), stack > 0, dtype)
        second = match.make(sum_over, second, params=params)
    made = match.make(matmul, first, second)
    if not stack:
        made = insert_axes(match, made, axes if keepdims else ())
    elif not keepdims:
        made = _drop_axes(match, made, [axis in axes for axis in range(len(made.shape))])
    return _apply_epilogue(match, made, lambda term: match.again(match.root, term))


def _tensordot_as_matmul(match: Match) -> NodeView | None:
    """A contraction of one axis of matrices or vectors, as the product that all rules know."""
    pairs = match.root.params[0]
    operands = [match["x"], match["y"]]
    if len(pairs[0]) != 1 or any(len(each.shape) > 2 for each in operands):
        return None
    for place, (axis,) in enumerate(pairs):
        if len(operands[place].shape) == 2 and axis == place:
            operands[place] = transpose(match, operands[place])
    return match.make(matmul, *operands)


PARTIAL_PRODUCT_RULES = (
    *(
        Rule(
            f"{name}-{product}",
            read(factors),
            replacement,
            when=part_of_a_product,
            exactness="linear-algebra",
        )
        for name, read, replacement in (
            ("index", pattern.index, _index_of_product),
            ("diagonal", pattern.diagonal, _diagonal_of_product),
            ("sum", pattern.sum, _sum_of_product),
        )
        for product, factors in (
            ("product", pattern.matmul(x, y)),
            *((op.name, pattern(op)) for op in BLAS_PRODUCTS),
        )
    ),
    Rule(
        "trace-product",
        pattern.sum(pattern.index(pattern.matmul(x, y))),
        _trace_of_product,
        exactness="linear-algebra",
    ),
    Rule(
        "tensordot-matrices",
        pattern.tensordot(x, y),
        _tensordot_as_matmul,
        exactness="linear-algebra",
    ),
)
