"""Partial products: compute only those entries of a matrix product that are read.

Input: an index, a diagonal, a trace or a sum of an `A @ B` with no other reader. Output: the
product of the rows of `A` and columns of `B` that are read, or of their sums. An element is a
product of two vectors, a diagonal is a stack of them, a trace is one contraction of all elements.
The summation order of a partial product may differ, so bits may change. Class linear-algebra.

>>> print(PARTIAL_PRODUCT_RULES[0])
index-product: index(matmul(x, y)) => ... when part_of_a_product (linear-algebra)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.core.index_map import operand_slice, picks_of, slice_of, split_new_axes
from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Shape, broadcast, whole_axes
from tenfold.core.structure import Structure
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.linear_algebra.normal_form import BLAS_PRODUCTS, epilogue_of
from tenfold.linear_algebra.polynomial_lowering import scaled
from tenfold.linear_algebra.structure_inference import apply_form, transpose
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.contract import matmul, tensordot
from tenfold.ops.diagonal_tril_triu import tril, triu
from tenfold.ops.gathering import gather
from tenfold.ops.reduce import sum as sum_over
from tenfold.ops.syrk import trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.diagonals import diagonal_location, operand_diagonal
from tenfold.rewrite.rules.slice_composition import (
    Picks,
    canonical_pick,
    remaining_axes,
)
from tenfold.rewrite.rules.slice_pushdown import slice_operand
from tenfold.rewrite.rules.views import insert_axes, make_index, selects_fewer

x, y, i, j = variables("x y i j")


def _factors(match: Match) -> tuple[NodeView, NodeView]:
    """Return the two operands of the product that the root reads, in their form."""
    product = match.root.inputs[0]
    first, second = product.inputs[:2]
    if product.op not in BLAS_PRODUCTS:
        return first, second
    forms = product.params[:2]
    factors = [apply_form(match, first, forms[0]), apply_form(match, second, forms[1])]
    if product.op is trmm:  # the other triangle need not be 0
        side, triangular = epilogue_of(product).half.value
        if side != Structure.TRIANGULAR:
            op = tril if side == Structure.LOWER else triu
            factors[triangular] = match.make(op, factors[triangular], params=(0,))
    return factors[0], factors[1]


def _apply_epilogue(
    match: Match, result: NodeView, slice_operand: Callable[[NodeView], NodeView]
) -> NodeView | None:
    """Apply the scales and the addend of a product to a part of it.

    `slice_operand` slices an operand that broadcasts to the product.
    """
    product = match.root.inputs[0]
    if product.op not in BLAS_PRODUCTS:
        return result
    epilogue, inputs = epilogue_of(product), product.inputs
    sign, added = epilogue.sign, epilogue.added
    scales = [(x, at in epilogue.conjugated) for at, x in enumerate(inputs)]
    result = scaled(match, result, scales[epilogue.alpha])
    if epilogue.addend is not None:
        addend = slice_operand(inputs[epilogue.addend])
        addend = scaled(match, addend, scales[epilogue.beta])
        first, second = (addend, result) if sign < 0 else (result, addend)
        result = match.make(subtract if sign != added else add, first, second)
        sign = -1 if sign < 0 and added < 0 else 1
    if sign < 0:
        result = match.make(negative, result)
    return result if result.dtype == match.root.dtype else None


def _stack_shape(first: NodeView, second: NodeView) -> Shape:
    """Return the lengths of the stack axes of a matrix product."""
    return broadcast(first.shape[:-2], second.shape[:-2])


def part_of_a_product(match: Match) -> bool:
    """Whether the root reads fewer elements of a product that has no other reader."""
    return selects_fewer(match) and match.root.inputs[0].single_reader


def _index_of_product(match: Match) -> NodeView | None:
    """Multiply the rows that are read by the columns that are read."""
    (first, second), product = _factors(match), match.root.inputs[0]
    part, new_axes = split_new_axes(match.root.params)
    picks, _ = picks_of(*part)
    lengths = _stack_shape(first, second)
    stack, matrix_picks = picks[: len(lengths)], picks[len(lengths) :]
    has_stack = bool(remaining_axes(stack))  # then a single row stays an axis of length 1
    remaining_picks = iter(
        [
            canonical_pick(pick, 1, 1) if isinstance(pick, int) and has_stack else pick
            for pick in matrix_picks
        ]
    )

    def stack_picks(term: NodeView) -> Picks:
        first = len(lengths) - len(term.shape[:-2])
        return picks_of(*operand_slice(slice_of(stack), lengths, term.shape[:-2], first)[0])[0]

    if len(first.shape) > 1:
        inner = whole_axes(first.shape[-1:])
        first = make_index(match, first, (*stack_picks(first), next(remaining_picks), *inner))
    if len(second.shape) > 1:
        inner = whole_axes(second.shape[-2:-1])
        second = make_index(match, second, (*stack_picks(second), *inner, next(remaining_picks)))
    result = match.make(matmul, first, second)
    if has_stack:
        dropped = [False] * len(remaining_axes(stack)) + [
            isinstance(pick, int) for pick in matrix_picks
        ]
        result = _drop_axes(match, result, dropped)

    indexed = _apply_epilogue(
        match, result, lambda term: slice_operand(match, term, part, product.shape)
    )
    return None if indexed is None else insert_axes(match, indexed, new_axes)


def _drop_axes(match: Match, term: NodeView, dropped: Sequence[bool]) -> NodeView:
    """Return a term without the dropped axes, which have length 1."""
    axes = zip(dropped, whole_axes(term.shape), strict=True)
    return make_index(match, term, tuple(0 if is_dropped else pick for is_dropped, pick in axes))


def _diagonal_of_product(match: Match) -> NodeView | None:
    """Multiply row i of the first by column i of the second: a stack of vector products."""
    (first, second), location = _factors(match), diagonal_location(match)
    length = match.root.shape[-1]
    if location is None or length == 0 or min(len(first.shape), len(second.shape)) < 2:
        return None
    rows, columns = (
        canonical_pick(location.row, length, 1),
        canonical_pick(location.column, length, 1),
    )
    *stack, _, inner = whole_axes(first.shape)
    row_vectors = make_index(match, first, (*stack, rows, inner), (len(stack) + 1,))
    transposed_second = transpose(match, second)
    *stack, _, inner = whole_axes(transposed_second.shape)
    column_vectors = make_index(
        match, transposed_second, (*stack, columns, inner), (len(stack) + 2,)
    )
    result = match.make(matmul, row_vectors, column_vectors)
    result = make_index(match, result, (*whole_axes(result.shape[:-2]), 0, 0))
    return _apply_epilogue(match, result, lambda term: operand_diagonal(match, term, location))


def _trace_of_product(match: Match) -> NodeView | None:
    """Compute the sum of a diagonal as one contraction."""
    root, diagonal = match.root, match.root.inputs[0]
    (product,) = diagonal.inputs
    first, second = product.inputs
    axes, keepdims, _ = root.params
    stack = product.shape[:-2]
    is_main_diagonal = diagonal.params == slice_of((*whole_axes(stack), 0, 0))
    if not (
        is_main_diagonal
        and len(stack) == 1
        and axes == (0,)
        and sum_before_product_is_exact(root, product)
    ):
        return None
    if first.shape[:-2] != stack or second.shape[:-2] != stack or not stack[0]:
        return None
    if not (diagonal.single_reader and product.single_reader):
        return None
    stack_pick, _, inner = whole_axes(first.shape)
    first_matrix, second_matrix = (
        make_index(match, first, (stack_pick, 0, inner)),
        make_index(match, second, (stack_pick, inner, 0)),
    )
    trace = match.make(tensordot, first_matrix, second_matrix, params=(((0, 1), (0, 1)),))
    return insert_axes(match, trace, (0,) if keepdims else ())


def sum_before_product_is_exact(root: NodeView, product: NodeView) -> bool:
    """Whether a sum may come before a product: sum, product and operands have one dtype.

    Not for bools, nor for half types, whose intermediate sums would be rounded.
    """
    dtypes = {root.dtype, product.dtype, *(operand.dtype for operand in product.inputs[:2])}
    return len(dtypes) == 1 and kind_of(root.dtype) != "b" and root.dtype not in HALF_DTYPES


def _sum_of_product(match: Match) -> NodeView | None:
    """Sum the rows of the first, or the columns of the second, before the product."""
    (first, second), product = _factors(match), match.root.inputs[0]
    axes, keepdims, dtype = match.root.params
    stack_axes = len(_stack_shape(first, second))
    if not sum_before_product_is_exact(match.root, product) or any(
        axis < stack_axes for axis in axes
    ):
        return None
    if any(addend.shape not in ((), product.shape) for addend in product.inputs[2:]):
        return None  # the addend broadcasts
    if first.shape[-1] == 0:
        return None
    if len(first.shape) > 1 and stack_axes in axes:
        params = ((len(first.shape) - 2,), stack_axes > 0, dtype)
        first = match.make(sum_over, first, params=params)
    if len(second.shape) > 1 and len(product.shape) - 1 in axes:
        params = ((len(second.shape) - 1,), stack_axes > 0, dtype)
        second = match.make(sum_over, second, params=params)
    result = match.make(matmul, first, second)
    if not stack_axes:
        result = insert_axes(match, result, axes if keepdims else ())
    elif not keepdims:
        result = _drop_axes(match, result, [axis in axes for axis in range(len(result.shape))])
    return _apply_epilogue(match, result, lambda term: match.again(match.root, term))


def _gather_of_product(match: Match) -> NodeView | None:
    """Multiply the rows of the first by the columns of the second that are read: as many products
    of vectors as there are elements (SDDMM).
    """
    root, product = match.root, match.root.inputs[0]
    first, second, rows, columns = (match[name] for name in "xyij")
    is_pair = root.params == ((0, 1), 0) and len(first.shape) == len(second.shape) == 2
    if not is_pair or rows.shape != columns.shape or len(rows.shape) != 1:
        return None
    if root.size >= product.size or not first.shape[1] or not product.single_reader:
        return None
    if not sum_before_product_is_exact(root, product) or kind_of(root.dtype) not in "fc":
        return None
    by_rows = ((0,), 0)
    row_vectors = match.make(gather, first, rows, params=by_rows)
    column_vectors = match.make(gather, transpose(match, second), columns, params=by_rows)
    terms = match.make(multiply, row_vectors, column_vectors)
    return match.make(sum_over, terms, params=((1,), False, None))


def _tensordot_as_matmul(match: Match) -> NodeView | None:
    """Lower a contraction of one axis of matrices or vectors to a matmul."""
    pairs = match.root.params[0]
    operands = [match["x"], match["y"]]
    if len(pairs[0]) != 1 or any(len(operand.shape) > 2 for operand in operands):
        return None
    for i, (axis,) in enumerate(pairs):
        if len(operands[i].shape) == 2 and axis == i:
            operands[i] = transpose(match, operands[i])
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
        "gather-product",
        pattern.gather(pattern.matmul(x, y), i, j),
        _gather_of_product,
        exactness="linear-algebra",
    ),
    Rule(
        "tensordot-matrices",
        pattern.tensordot(x, y),
        _tensordot_as_matmul,
        exactness="linear-algebra",
    ),
)
