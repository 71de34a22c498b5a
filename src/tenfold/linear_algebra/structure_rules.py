"""Structure rules: products with diagonal, identity and outer-product matrices become cheaper
operations.

Input: a product with such a matrix, or with sums and multiples of them. Output: scalings, vector
products, or the other operand; the matrix is not computed. A matrix may be assumed diagonal. An
off-main diagonal scales and shifts rows or columns. Class linear-algebra: a 0 times a NaN, or the
sign of a zero, is not computed.

>>> print(STRUCTURE_RULES[1])
diagonal-times: matmul(diag_embed(x), y) => ... when on_main_diagonal (linear-algebra)
"""

from __future__ import annotations

from functools import partial

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import whole_axes
from tenfold.core.structure import IDENTITY, Structure
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.linear_algebra.structure_inference import strip_transposes, transpose
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import real
from tenfold.ops.contract import matmul
from tenfold.ops.diagonal_tril_triu import diag_embed, diagonal
from tenfold.ops.gathering import gather
from tenfold.ops.linalg import inv
from tenfold.ops.movement import permute_dims
from tenfold.ops.pad import pad
from tenfold.ops.reduce import argmax
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes, make_index

x, y = variables("x y")
MAX_STRUCTURE_DEPTH = 8
"""The greatest depth of operations that the rules look into."""


def on_main_diagonal(match: Match) -> bool:
    """Whether a diagonal matrix has its vector on the main diagonal."""
    return all(operand.params == (0,) for operand in match.root.inputs if operand.op is diag_embed)


def _is_identity(term: NodeView) -> bool:
    return term.has_structure and IDENTITY in term.structure


def identity_on_left(match: Match) -> bool:
    """Whether the left operand is an identity and `x` has the Type of the product."""
    return _is_identity(match.root.inputs[0]) and match["x"].type == match.root.type


def identity_on_right(match: Match) -> bool:
    """Whether the right operand is an identity and `x` has the Type of the product."""
    return _is_identity(match.root.inputs[1]) and match["x"].type == match.root.type


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


def _selected(
    match: Match, matrix: NodeView, operand: NodeView, *, on_left: bool
) -> NodeView | None:
    """Take the rows of an operand that a selection has its ones at, or the columns."""
    axes = len(operand.shape)
    rows = matrix if on_left else transpose(match, matrix)
    if axes > 2 or Structure.SELECTION not in rows.structure:
        return None
    if rows.op is gather and _is_identity(rows.inputs[0]):
        positions = rows.inputs[1]
    else:
        ones = match.make(real, rows) if kind_of(rows.dtype) == "c" else rows
        positions = match.make(argmax, ones, params=((1,), False))
    axis = 0 if on_left else axes - 1
    return match.make(gather, operand, positions, params=((axis,), axis))


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
    if matrix.op is diag_embed:
        if matrix.params != (0,):
            return _off_diagonal_product(match, matrix, operand, on_left=on_left)
        return _diagonal_product(match, matrix.inputs[0], operand, on_left=on_left)
    product = None
    if depth < MAX_STRUCTURE_DEPTH and matrix.op in COMBINING_OPS and matrix.single_reader:
        product = _product_of_combined(match, matrix, operand, depth, on_left=on_left)
    if product is not None:
        return product
    if Structure.DIAGONAL in matrix.structure:
        return _assumed_diagonal_product(match, matrix, operand, on_left=on_left)
    if len(matrix.shape) == 2 and _selects(matrix, on_left=on_left):
        return _selected(match, matrix, operand, on_left=on_left)
    return None


def _product_of_combined(
    match: Match, matrix: NodeView, operand: NodeView, depth: int, *, on_left: bool
) -> NodeView | None:
    """Multiply a sum, a difference, a multiple or an outer product by an operand."""
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


def _has_structure(match: Match, *, on_left: bool) -> bool:
    """Whether an operand of a product scales or selects, by its structure alone."""
    matrix = match.root.inputs[0 if on_left else 1]
    if matrix.op is diag_embed or matrix.op in COMBINING_OPS:
        return False
    if strip_transposes(matrix).matrix.op is inv:
        return False  # a product with an inverse becomes a solve
    if matrix.has_structure and Structure.DIAGONAL in matrix.structure:
        return True
    return _selects(matrix, on_left=on_left)


def _selects(matrix: NodeView, *, on_left: bool) -> bool:
    """Whether a product with a matrix takes rows of its right operand, or columns of its left."""
    if 0 in matrix.shape:
        return False
    if matrix.has_structure and Structure.SELECTION in matrix.structure:
        return on_left or Structure.ORTHOGONAL in matrix.structure
    if on_left or matrix.op is not permute_dims:
        return False
    return Structure.SELECTION in matrix.inputs[0].structure


_diag_embed = pattern.diag_embed

STRUCTURE_RULES = (
    Rule(
        "diagonal-matrices",
        _diag_embed(x) @ _diag_embed(y),
        lambda match: match.make(
            diag_embed, match.make(multiply, match["x"], match["y"]), params=(0,)
        ),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule(
        "diagonal-times",
        _diag_embed(x) @ y,
        lambda match: _diagonal_product(match, match["x"], match["y"], on_left=True),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule(
        "times-diagonal",
        y @ _diag_embed(x),
        lambda match: _diagonal_product(match, match["x"], match["y"], on_left=False),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule("identity-times", y @ x, x, when=identity_on_left, exactness="linear-algebra"),
    Rule("times-identity", x @ y, x, when=identity_on_right, exactness="linear-algebra"),
    *(
        Rule(
            name,
            x @ y,
            partial(_combined_product, on_left=on_left),
            when=partial(_has_structure, on_left=on_left),
            exactness="linear-algebra",
        )
        for name, on_left in (("structured-times", True), ("times-structured", False))
    ),
    *(
        Rule(
            name,
            product,
            partial(_combined_product, on_left=before),
            exactness="linear-algebra",
        )
        for op, of in (
            *((op, op.name) for op in COMBINING_OPS),
            (diag_embed, "off-diagonal"),
        )
        for name, product, before in (
            (f"{of}-times", pattern(op) @ x, True),
            (f"times-{of}", x @ pattern(op), False),
        )
    ),
)
