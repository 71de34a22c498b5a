"""Diagonal rules: diagonals and triangles move below maps, and merge with each other.

Input: diagonals of maps, permutations, triangles and diagonal matrices, and triangles of triangles.
Output: the map of diagonals, or one operation in place of two. Class bitwise.

>>> print(DIAGONAL_RULES[0])
diagonal-map: diagonal(x) => ... when reads_map (bitwise)
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Shape, whole_axes
from tenfold.ops.diagonal_tril_triu import diagonal, tril
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.slice_composition import canonical_pick
from tenfold.rewrite.rules.slice_pushdown import reads_map
from tenfold.rewrite.rules.views import make_index, selects_fewer

(x,) = variables("x")


class DiagonalLocation(NamedTuple):
    """The location of a diagonal in the last two axes: its offset, its first row and column, its
    length, and the shape of the matrices.
    """

    offset: int
    row: int
    column: int
    length: int
    size: Shape


def diagonal_location(match: Match) -> DiagonalLocation | None:
    """Return the location of the diagonal that the root reads; None if it has other axes."""
    offset, *axes = match.root.params
    shape = match.root.inputs[0].shape
    row_axis = len(shape) - 2
    if sorted(axes) != [row_axis, row_axis + 1]:
        return None
    offset = offset if axes[0] == row_axis else -offset
    row, column = max(-offset, 0), max(offset, 0)
    return DiagonalLocation(offset, row, column, match.root.shape[-1], shape[-2:])


def operand_diagonal(match: Match, term: NodeView, location: DiagonalLocation) -> NodeView:
    """Return the elements of an operand on a diagonal of the shape that it broadcasts to."""
    if not term.shape:
        return term
    *stack, _ = whole_axes(term.shape)
    matrix_shape = (1, *term.shape)[-2:]
    rows, columns = (
        canonical_pick(begin, location.length, 1) for begin in (location.row, location.column)
    )
    if matrix_shape[1] != location.size[1]:
        columns = (0, 1, 1)
    if len(term.shape) == 1:
        return make_index(match, term, (columns,))
    if matrix_shape == location.size:
        row_axis = len(term.shape) - 2
        return match.make(diagonal, term, params=(location.offset, row_axis, row_axis + 1))
    if matrix_shape[0] == location.size[0]:
        return make_index(match, term, (*stack[:-1], rows, 0))
    return make_index(match, term, (*stack[:-1], 0, columns))


def _diagonal_of_map(match: Match) -> NodeView | None:
    """Return the map of the diagonals; an operand that broadcasts is sliced."""
    mapped, location = match.root.inputs[0], diagonal_location(match)
    if location is None or location.length == 0:
        return None
    return match.again(
        mapped, *(operand_diagonal(match, operand, location) for operand in mapped.inputs)
    )


def _diagonal_of_permutation(match: Match) -> NodeView | None:
    """Return the diagonal of the operand of a permutation."""
    permutation, (offset, first, second) = match.root.inputs[0], match.root.params
    (axes,) = permutation.params
    stack_axes = [axis for position, axis in enumerate(axes) if position not in (first, second)]
    if match["x"].op is None or stack_axes != sorted(stack_axes):
        return None
    return match.make(diagonal, match["x"], params=(offset, axes[first], axes[second]))


def _diagonal_of_diagonal(match: Match) -> NodeView | None:
    location = diagonal_location(match)
    return match["x"] if location and match.root.inputs[0].params == (location.offset,) else None


def _diagonal_of_triangle(match: Match) -> NodeView | None:
    """Read a diagonal inside a triangle from the original matrix."""
    location, triangle = diagonal_location(match), match.root.inputs[0]
    if location is None:
        return None
    (bound,) = triangle.params
    is_inside = location.offset <= bound if triangle.op is tril else location.offset >= bound
    return match.make(diagonal, match["x"], params=match.root.params) if is_inside else None


def lower_is_whole(match: Match) -> bool:
    """Whether a lower triangle is the whole matrix."""
    return bool(match.root.params[0] >= match.root.shape[-1] - 1)


def upper_is_whole(match: Match) -> bool:
    """Whether an upper triangle is the whole matrix."""
    return bool(match.root.params[0] <= 1 - match.root.shape[-2])


def _triangle_of_triangle(match: Match) -> NodeView:
    """Return the smaller of two triangles of one side."""
    inner, root = match.root.inputs[0], match.root
    tighter = min if root.op is tril else max
    params = (tighter(inner.params[0], root.params[0]),)
    return match.again(root, match["x"], params=params)


DIAGONAL_RULES = (
    Rule("diagonal-map", pattern.diagonal(x), _diagonal_of_map, when=reads_map),
    Rule(
        "diagonal-permute",
        pattern.diagonal(pattern.permute_dims(x)),
        _diagonal_of_permutation,
        when=selects_fewer,
    ),
    Rule("diagonal-of-diagonal", pattern.diagonal(pattern.diag_embed(x)), _diagonal_of_diagonal),
    Rule("diagonal-of-lower", pattern.diagonal(pattern.tril(x)), _diagonal_of_triangle),
    Rule("diagonal-of-upper", pattern.diagonal(pattern.triu(x)), _diagonal_of_triangle),
    Rule("lower-of-lower", pattern.tril(pattern.tril(x)), _triangle_of_triangle),
    Rule("upper-of-upper", pattern.triu(pattern.triu(x)), _triangle_of_triangle),
    Rule("lower-of-all", pattern.tril(x), x, when=lower_is_whole),
    Rule("upper-of-all", pattern.triu(x), x, when=upper_is_whole),
)
