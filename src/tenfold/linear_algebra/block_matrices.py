"""Block matrix rules: products and solves compute only a matrix's nonzero blocks.

Input: a product or solve with a matrix concatenated from blocks, some of them zero. Output: the
products or solves of the blocks, concatenated. A 0 times a NaN is not computed. Class
linear-algebra.

>>> import tenfold as tn
>>> x, zero = tn.ones((2, 2)), tn.zeros((2, 2))
>>> blocks = tn.concat([tn.concat([x, zero], axis=1), tn.concat([zero, x], axis=1)])
>>> with tn.profile() as p:
...     y = (blocks @ tn.asarray([[1.0] * 4, [2.0] * 4, [3.0] * 4, [4.0] * 4])).wait()
>>> p.multiply_adds
32
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import HALF_DTYPES, kind_of
from tenfold.ops.arithmetic import add, subtract
from tenfold.ops.contract import matmul
from tenfold.ops.create import full
from tenfold.ops.joining import concat
from tenfold.ops.linalg import solve
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import make_index

x, y = variables("x y")
MAX_BLOCKS = 64
"""The largest number of blocks of a matrix that the rules split."""

Grid = list[list[NodeView]]
"""Lines of blocks: rows or columns of a block matrix."""


def _blocks_along(term: NodeView, axis: int) -> list[NodeView]:
    """Return the operands of a concatenation along an axis, or the term itself."""
    operands = term.inputs if term.op is concat and term.params == (axis,) else ()
    return list(operands) or [term]


def _grid(matrix: NodeView, axis: int) -> Grid | None:
    """Return the blocks of a matrix by lines along an axis; None if no block is 0."""
    if len(matrix.shape) != 2 or matrix.op is not concat:
        return None
    if matrix.params == (axis,):
        grid = [_blocks_along(line, 1 - axis) for line in _blocks_along(matrix, axis)]
    else:
        lines = [_blocks_along(line, axis) for line in _blocks_along(matrix, 1 - axis)]
        if len({tuple(_lengths(line, axis)) for line in lines}) != 1:
            return None
        grid = [list(line) for line in zip(*lines, strict=True)]
    blocks = [block for line in grid for block in line]
    same_dtype = all(block.dtype == matrix.dtype for block in blocks)
    has_zeros = any(map(_is_zero, blocks)) and len(blocks) <= MAX_BLOCKS
    return grid if same_dtype and has_zeros else None


def _is_zero(term: NodeView) -> bool:
    return term.op is full and term.params[1] == 0


def _lengths(line: Sequence[NodeView], axis: int) -> list[int]:
    return [block.shape[axis] for block in line]


def _slice_lines(match: Match, term: NodeView, axis: int, first: int, last: int) -> NodeView:
    """Return rows or columns of a matrix, or elements of a vector."""
    axis = min(axis, len(term.shape) - 1)
    if term.op is concat:
        blocks = _blocks_between(match, term, axis, first, last)
        if blocks is not None and all(block.dtype == term.dtype for block in blocks):
            return (
                blocks[0] if len(blocks) == 1 else match.make(concat, *blocks, params=term.params)
            )
    picks = list(whole_axes(term.shape))
    picks[axis] = (first, last - first, 1)
    return make_index(match, term, tuple(picks))


def _blocks_between(
    match: Match, term: NodeView, axis: int, first: int, last: int
) -> list[NodeView] | None:
    """Return the blocks from `first` to `last`; None if that range cuts a block."""
    if term.params != (axis,):
        joined_alike = all(
            operand.op is concat and operand.params == (axis,) for operand in term.inputs
        )
        return (
            [_slice_lines(match, operand, axis, first, last) for operand in term.inputs]
            if joined_alike
            else None
        )
    ends = list(pairwise(accumulate(_lengths(term.inputs, axis), initial=0)))
    inside = [i for i, (begin, end) in enumerate(ends) if first <= begin and end <= last]
    if not inside or (ends[inside[0]][0], ends[inside[-1]][1]) != (first, last):
        return None
    return [term.inputs[i] for i in inside]


def _zeros(match: Match, shape: tuple[int, ...]) -> NodeView:
    root = match.root.type
    zero = {"i": 0, "u": 0, "f": 0.0, "c": 0j}[kind_of(root.dtype)]
    return match.make(full, params=(shape, zero, root.dtype, root.device))


def _block_product(
    match: Match, grid: Grid, operand: NodeView, *, on_left: bool
) -> NodeView | None:
    """Multiply each line of blocks by the matching slices of the other matrix."""
    root = match.root
    if operand.dtype != root.dtype or len(operand.shape) > 2:
        return None
    if root.dtype in HALF_DTYPES or kind_of(root.dtype) == "b":
        return None  # partial sums in half precision would be rounded; bools have no sums
    line_axis = 0 if on_left else 1
    line_products = [_line_product(match, line, operand, on_left=on_left) for line in grid]
    axis = min(line_axis, len(root.shape) - 1)
    return (
        line_products[0]
        if len(line_products) == 1
        else match.make(concat, *line_products, params=(axis,))
    )


def _line_product(
    match: Match, line: list[NodeView], operand: NodeView, *, on_left: bool
) -> NodeView:
    """Multiply one line of blocks by another matrix, on the side of `on_left`."""
    inner = 1 if on_left else 0
    ends = pairwise(accumulate(_lengths(line, inner), initial=0))
    products = []
    for block, (first, last) in zip(line, ends, strict=True):
        if not _is_zero(block):
            slice_ = _slice_lines(match, operand, 1 - inner, first, last)
            operands = (block, slice_) if on_left else (slice_, block)
            products.append(match.make(matmul, *operands))
    if products:
        return reduce(lambda left, right: match.make(add, left, right), products)
    length = line[0].shape[1 - inner]
    free_shape = operand.shape[1:] if on_left else operand.shape[:-1]
    return _zeros(match, (length, *free_shape) if on_left else (*free_shape, length))


def _blocks_times(match: Match) -> NodeView | None:
    blocks, operand = match.root.inputs
    grid = _grid(blocks, 0)
    return None if grid is None else _block_product(match, grid, operand, on_left=True)


def _times_blocks(match: Match) -> NodeView | None:
    operand, blocks = match.root.inputs
    grid = _grid(blocks, 1)
    return None if grid is None else _block_product(match, grid, operand, on_left=False)


def _block_solve(match: Match) -> NodeView | None:
    """Solve a block triangular system: one solve for each diagonal block, and substitution."""
    matrix, right_side = match.root.inputs
    grid = _grid(matrix, 0)
    if grid is None or len(right_side.shape) > 2 or any(len(line) != len(grid) for line in grid):
        return None
    if matrix.dtype != match.root.dtype or right_side.dtype != match.root.dtype:
        return None
    rows = [line[0].shape[0] for line in grid]
    if any(_lengths(line, 1) != rows for line in grid):
        return None
    order = _substitution_order(grid)
    if order is None:
        return None
    ends = list(pairwise(accumulate(rows, initial=0)))
    solutions: dict[int, NodeView] = {}
    for row in order:
        residual = _slice_lines(match, right_side, 0, *ends[row])
        for column, solution in solutions.items():
            if not _is_zero(grid[row][column]):
                residual = match.make(
                    subtract, residual, match.make(matmul, grid[row][column], solution)
                )
        solutions[row] = match.make(solve, grid[row][row], residual)
    return match.make(concat, *(solutions[row] for row in range(len(rows))), params=(0,))


def _substitution_order(grid: Grid) -> Sequence[int] | None:
    """Return the order of block substitution; None if the matrix is not block triangular."""
    indices = range(len(grid))
    is_lower = all(_is_zero(grid[i][j]) for i in indices for j in indices if j > i)
    is_upper = all(_is_zero(grid[i][j]) for i in indices for j in indices if j < i)
    return indices if is_lower else indices[::-1] if is_upper else None


BLOCK_MATRIX_RULES = tuple(
    Rule(name, matched, replacement, exactness="linear-algebra")
    for name, matched, replacement in (
        ("blocks-times", pattern.concat() @ y, _blocks_times),
        ("times-blocks", x @ pattern.concat(), _times_blocks),
        ("solve-blocks", pattern.linalg_solve(pattern.concat(), y), _block_solve),
    )
)
