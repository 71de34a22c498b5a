"""Structure rules: products with diagonal, identity and outer-product matrices become cheaper
operations.

Takes a product with such a matrix, or with sums and multiples of them, hands on scalings, products
of vectors, or the other operand itself: the matrix is not made. "Diagonal" may be a promise; an
off-main diagonal scales rows, or columns, that are moved. Class linear-algebra: a 0 times a NaN, or
the sign of a zero, is not computed.

>>> print(STRUCTURE[1])
diagonal-times: matmul(diagonal_matrix(x), y) => ... when is_main (linear-algebra)
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
from tenfold.rewrite.rules.views import make_index, insert_axes

x, y = variables("x y")
MAX_DEPTH = 8
"""Up to so many operations deep a matrix is looked into."""


def on_main_diagonal(match: Match) -> bool:
    """Whether a diagonal matrix has its vector on the main diagonal."""
    return all(each.params == (0,) for each in match.root.inputs if each.op is diagonal_matrix)


def _is_identity(term: NodeView) -> bool:
    return term.op is eye and term.params[0] == term.params[1] and term.params[2] == 0


def identity_on_left(match: Match) -> bool:
    """Whether an identity stands before `x`, which has the Type of the product."""
    return match["x"].type == match.root.type and _is_identity(match.root.inputs[0])


def identity_on_right(match: Match) -> bool:
    """Whether an identity stands behind `x`, which has the Type of the product."""
    return match["x"].type == match.root.type and _is_identity(match.root.inputs[1])


def _diagonal_product(match: Match, scale: NodeView, other: NodeView, *, before: bool) -> NodeView:
    """A diagonal matrix times another: rows of it scaled, or columns."""
    if before and len(other.shape) > 1:
        scale = insert_axes(match, scale, (len(scale.shape),))
    elif len(other.shape) > 1 and len(scale.shape) > 1:
        scale = insert_axes(match, scale, (len(scale.shape) - 1,))
    return match.make(multiply, scale, other)


def _off_diagonal_product(match: Match, matrix: NodeView, other: NodeView, *, before: bool) -> NodeView | None:
    """A diagonal beside the main one times another matrix: rows of that, or columns, are scaled,
    and moved by the offset; what they leave is 0.
    """
    (scale,), (offset,) = matrix.inputs, matrix.params
    axes = len(other.shape)
    if len(scale.shape) != 1 or axes > 2 or scale.size == 0 or 0 in other.shape:
        return None
    axis = 0 if before else axes - 1
    away = offset if before else -offset  # above 0: what comes first is left out
    picks = list(whole_axes(other.shape))
    picks[axis] = (max(away, 0), scale.size, 1)
    made = _diagonal_product(match, scale, make_index(match, other, tuple(picks)), before=before)
    around = [(0, 0)] * axes
    around[axis] = (max(-away, 0), max(away, 0))
    zero = {"i": 0, "u": 0, "f": 0.0, "c": 0j}[kind_of(made.dtype)]
    return match.make(pad, made, params=(tuple(around), "constant", zero))


def _assumed_diagonal_product(match: Match, matrix: NodeView, other: NodeView, *, before: bool) -> NodeView:
    """A matrix that was promised to be diagonal times another."""
    last = len(matrix.shape) - 2
    on_it = match.make(diagonal, matrix, params=(0, last, last + 1))
    return _diagonal_product(match, on_it, other, before=before)


def _outer_product(
    match: Match, column: NodeView, row: NodeView, other: NodeView, *, before: bool
) -> NodeView | None:
    """An outer product u v^T times a matrix W: u (v^T W); or W times it: (W u) v^T."""
    if len(column.shape) != 2 or column.shape[1] != 1 or len(row.shape) not in (1, 2):
        return None
    lengths = column.shape[0], row.shape[-1]
    if row.shape[:-1] not in ((), (1,)) or len(other.shape) > 2 or min(lengths) < 2:
        return None
    first = make_index(match, column, (*whole_axes(lengths[:1]), 0))
    second = make_index(match, row, (0,) * (len(row.shape) - 1) + whole_axes(lengths[1:]))
    if before:
        left = column if len(other.shape) == 2 else first
        return match.make(multiply, left, match.make(matmul, second, other))
    scale = match.make(matmul, other, first)
    return match.make(multiply, insert_axes(match, scale, (1,) if scale.shape else ()), second)


def _structured_product(
    match: Match, matrix: NodeView, other: NodeView, depth: int, *, before: bool
) -> NodeView | None:
    """A matrix times another, where the matrix need not be made; None where it must."""
    if matrix.dtype != match.root.dtype:
        return None  # it would be rounded, or wrap, elsewhere
    if _is_identity(matrix):
        return other
    if matrix.op is diagonal_matrix:
        if matrix.params != (0,):
            return _off_diagonal_product(match, matrix, other, before=before)
        return _diagonal_product(match, matrix.inputs[0], other, before=before)
    if assumed_structure(matrix) == "diagonal":
        return _assumed_diagonal_product(match, matrix, other, before=before)
    if depth == MAX_DEPTH or matrix.op not in COMBINING_OPS or not matrix.alone:
        return None
    inner = partial(_structured_product, match, other=other, depth=depth + 1, before=before)
    if matrix.op is negative:
        made = inner(matrix.inputs[0])
        return None if made is None else match.make(negative, made)
    first, second = matrix.inputs
    if matrix.op is not multiply:
        return _sum_product(match, matrix, [inner(first), inner(second)], other, before=before)
    if not first.shape or not second.shape:
        number, rest = (second, first) if first.shape else (first, second)
        made = inner(rest) if rest.shape == matrix.shape else None
        return None if made is None else match.make(multiply, made, number)
    found = _outer_product(match, first, second, other, before=before)
    return found or _outer_product(match, second, first, other, before=before)


def _sum_product(
    match: Match, matrix: NodeView, parts: list[NodeView | None], other: NodeView, *, before: bool
) -> NodeView | None:
    """A sum of two matrices times another, distributed over the sum. One summand may lack a
    product of its structure, if the other operand is not larger than it.
    """
    whole = all(each.shape == matrix.shape for each in matrix.inputs)
    if not whole or parts == [None, None] or (None in parts and other.size > matrix.size):
        return None
    made = [
        match.make(matmul, *((each, other) if before else (other, each))) if part is None else part
        for part, each in zip(parts, matrix.inputs, strict=True)
    ]
    assert matrix.op is not None, "a sum"
    return match.make(matrix.op, *made)


COMBINING_OPS = (add, subtract, multiply, negative)
"""Of which operations a matrix is looked into."""


def _combined_product(match: Match, *, before: bool) -> NodeView | None:
    """The product with a matrix that is combined of others, or is diagonal in another way."""
    first, second = match.root.inputs
    matrix, other = (first, second) if before else (second, first)
    dtype = match.root.dtype
    if other.dtype != dtype or dtype in HALF_DTYPES or kind_of(dtype) == "b":
        return None
    made = _structured_product(match, matrix, other, 0, before=before)
    return made if made is not None and made.type == match.root.type else None


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
        lambda match: _diagonal_product(match, match["x"], match["y"], before=True),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule(
        "times-diagonal",
        y @ _diagonal_matrix(x),
        lambda match: _diagonal_product(match, match["x"], match["y"], before=False),
        when=on_main_diagonal,
        exactness="linear-algebra",
    ),
    Rule("identity-times", _eye @ x, x, when=identity_on_left, exactness="linear-algebra"),
    Rule("times-identity", x @ _eye, x, when=identity_on_right, exactness="linear-algebra"),
    *(
        Rule(
            name,
            product,
            partial(_combined_product, before=before),
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
