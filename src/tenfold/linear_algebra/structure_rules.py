"""Structure rules: products with diagonal, identity and outer-product matrices become cheaper
operations.

Input: a product with such a matrix, or with sums and multiples of them. Output: scalings, vector
products, or the other operand; the matrix is not computed. A matrix may be assumed diagonal. An
off-main diagonal scales and shifts rows or columns. Class linear-algebra: a 0 times a NaN, or the
sign of a zero, is not computed.

>>> print(STRUCTURE_RULES[1])
diagonal-times: matmul(diagonal_matrix(x), y) => ... when on_main_diagonal (linear-algebra)
"""

from __future__ import annotations

from functools import partial

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.linear_algebra.structure_inference import assumed_structure
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.assume import declared, verified
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.diagonal_tril_triu import diagonal, diagonal_matrix
from tenfold.ops.pad import pad
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes, make_index

x, y = variables("x y")
MAX_STRUCTURE_DEPTH = 8
"""The greatest depth of operations that the rules look into."""


def on_main_diagonal(match: Match) -> bool:
    """Whether a diagonal matrix has its vector on the main diagonal."""
    return all(
        operand.params == (0,) for operand in match.root.inputs if operand.op is diagonal_matrix
    )


def _is_identity(term: NodeView) -> bool:
    return term.op is eye and term.params[0] == term.params[1] and term.params[2] == 0


def identity_on_left(match: Match) -> bool:
    """Whether the left operand is an identity and `x` has the Type of the product."""
    return match["x"].type == match.root.type and _is_identity(match.root.inputs[0])


def identity_on_right(match: Match) -> bool:
    """Whether the right operand is an identity and `x` has the Type of the product."""
    return match["x"].type == match.root.type and _is_identity(match.root.inputs[1])


def _diagonal_product(
    match: Match, scale: NodeView, operand: NodeView, *, on_left: bool
) -> NodeView:
    """Multiply a diagonal matrix by an operand: scale its rows or columns."""
    if on_left and len(operand.shape) > 1:
        scale = insert_axes(match, scale, (len(scale.shape),))
    elif len(operand.shape) > 1 and len(scale.shape) > 1:
        scale = insert_axes(match, scale, (len(scale.shape) - 1,))
    return match.make(multiply, scale, operand)


def _off_diagonal_product(
    match: Match, matrix: NodeView, operand: NodeView, *, on_left: bool
) -> NodeView | None:
    """Multiply a matrix with an off-main diagonal by an operand.

    Its rows or columns are scaled and shifted by the offset; zeros fill the gap.
    """
    (scale,), (offset,) = matrix.inputs, matrix.params
    axes = len(operand.shape)
    if len(scale.shape) != 1 or axes > 2 or scale.size == 0 or 0 in operand.shape:
        return None
    axis = 0 if on_left else axes - 1
    shift = offset if on_left else -offset  # positive: drops the first lines
    picks = list(whole_axes(operand.shape))
    picks[axis] = (max(shift, 0), scale.size, 1)
    scaled = _diagonal_product(
        match, scale, make_index(match, operand, tuple(picks)), on_left=on_left
    )
    padding = [(0, 0)] * axes
    padding[axis] = (max(-shift, 0), max(shift, 0))
    zero = {"i": 0, "u": 0, "f": 0.0, "c": 0j}[kind_of(scaled.dtype)]
    return match.make(pad, scaled, params=(tuple(padding), "constant", zero))


def _assumed_diagonal_product(
    match: Match, matrix: NodeView, operand: NodeView, *, on_left: bool
) -> NodeView:
    """Multiply a matrix that is assumed diagonal by an operand."""
    row_axis = len(matrix.shape) - 2
    diagonal_term = match.make(diagonal, matrix, params=(0, row_axis, row_axis + 1))
    return _diagonal_product(match, diagonal_term, operand, on_left=on_left)


def _outer_product(
    match: Match, column: NodeView, row: NodeView, operand: NodeView, *, on_left: bool
) -> NodeView | None:
    """Multiply an outer product u v^T by W as u (v^T W), or W by it as (W u) v^T."""
    if len(column.shape) != 2 or column.shape[1] != 1 or len(row.shape) not in (1, 2):
        return None
    lengths = column.shape[0], row.shape[-1]
    if row.shape[:-1] not in ((), (1,)) or len(operand.shape) > 2 or min(lengths) < 2:
        return None
    column_vector = make_index(match, column, (*whole_axes(lengths[:1]), 0))
    row_vector = make_index(match, row, (0,) * (len(row.shape) - 1) + whole_axes(lengths[1:]))
    if on_left:
        left_factor = column if len(operand.shape) == 2 else column_vector
        return match.make(multiply, left_factor, match.make(matmul, row_vector, operand))
    scale = match.make(matmul, operand, column_vector)
    return match.make(multiply, insert_axes(match, scale, (1,) if scale.shape else ()), row_vector)


def _structured_product(
    match: Match, matrix: NodeView, operand: NodeView, depth: int, *, on_left: bool
) -> NodeView | None:
    """Multiply a structured matrix by an operand; None if the matrix must be computed."""
    if matrix.dtype != match.root.dtype:
        return None  # rounding or wrapping would move to another operation
    if _is_identity(matrix):
        return operand
    if matrix.op is diagonal_matrix:
        if matrix.params != (0,):
            return _off_diagonal_product(match, matrix, operand, on_left=on_left)
        return _diagonal_product(match, matrix.inputs[0], operand, on_left=on_left)
    if assumed_structure(matrix) == "diagonal":
        return _assumed_diagonal_product(match, matrix, operand, on_left=on_left)
    if depth == MAX_STRUCTURE_DEPTH or matrix.op not in COMBINING_OPS or not matrix.single_reader:
        return None
    inner = partial(_structured_product, match, operand=operand, depth=depth + 1, on_left=on_left)
    if matrix.op is negative:
        product = inner(matrix.inputs[0])
        return None if product is None else match.make(negative, product)
    first, second = matrix.inputs
    if matrix.op is not multiply:
        return _sum_product(match, matrix, [inner(first), inner(second)], operand, on_left=on_left)
    if not first.shape or not second.shape:
        scalar, inner_matrix = (second, first) if first.shape else (first, second)
        product = inner(inner_matrix) if inner_matrix.shape == matrix.shape else None
        return None if product is None else match.make(multiply, product, scalar)
    outer_product = _outer_product(match, first, second, operand, on_left=on_left)
    return outer_product or _outer_product(match, second, first, operand, on_left=on_left)


def _sum_product(
    match: Match,
    matrix: NodeView,
    products: list[NodeView | None],
    operand: NodeView,
    *,
    on_left: bool,
) -> NodeView | None:
    """Distribute a product over a sum of two matrices.

    One summand may be unstructured, if the operand is not larger than it.
    """
    no_broadcast = all(summand.shape == matrix.shape for summand in matrix.inputs)
    if (
        not no_broadcast
        or products == [None, None]
        or (None in products and operand.size > matrix.size)
    ):
        return None
    summands = [
        match.make(matmul, *((summand, operand) if on_left else (operand, summand)))
        if product is None
        else product
        for product, summand in zip(products, matrix.inputs, strict=True)
    ]
    assert matrix.op is not None, "a sum"
    return match.make(matrix.op, *summands)


COMBINING_OPS = (add, subtract, multiply, negative)
"""The operations of matrices that the rules look into."""


def _combined_product(match: Match, *, on_left: bool) -> NodeView | None:
    """Multiply by a matrix combined of others, an off-main diagonal or an assumed diagonal."""
    first, second = match.root.inputs
    matrix, operand = (first, second) if on_left else (second, first)
    dtype = match.root.dtype
    if operand.dtype != dtype or dtype in HALF_DTYPES or kind_of(dtype) == "b":
        return None
    product = _structured_product(match, matrix, operand, 0, on_left=on_left)
    return product if product is not None and product.type == match.root.type else None


_diagonal_matrix, _eye = pattern.diagonal_matrix, pattern.eye()

STRUCTURE_RULES = (
    Rule(
        "diagonal-matrices",
        _diagonal_matrix(x) @ _diagonal_matrix(y),
        lambda match: match.make(
            diagonal_matrix, match.make(multiply, match["x"], match["y"]), params=(0,)
        ),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule(
        "diagonal-times",
        _diagonal_matrix(x) @ y,
        lambda match: _diagonal_product(match, match["x"], match["y"], on_left=True),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule(
        "times-diagonal",
        y @ _diagonal_matrix(x),
        lambda match: _diagonal_product(match, match["x"], match["y"], on_left=False),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule("identity-times", _eye @ x, x, when=identity_on_left, exactness="linear-algebra"),
    Rule("times-identity", x @ _eye, x, when=identity_on_right, exactness="linear-algebra"),
    *(
        Rule(
            name,
            product,
            partial(_combined_product, on_left=before),
            exactness="linear-algebra",
        )
        for op, of in (
            *((op, op.name) for op in COMBINING_OPS),
            *((diagonal_matrix, "off-diagonal"), (declared, "declared"), (verified, "verified")),
        )
        for name, product, before in (
            (f"{of}-times", pattern(op) @ x, True),
            (f"times-{of}", x @ pattern(op), False),
        )
    ),
)
