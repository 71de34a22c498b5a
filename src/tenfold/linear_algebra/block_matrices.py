"""Block matrix rules: products and solves compute only a matrix's nonzero blocks.

Takes products and solves with a matrix that is joined of blocks, some of them zeros, hands on those
of the blocks, joined. A 0 times a NaN is not computed. Class linear-algebra.

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
"""The blocks of a matrix that is taken apart."""

Grid = list[list[NodeView]]
"""Blocks that lie side by side, line by line: rows of them, or columns."""


def _blocks_along(term: NodeView, axis: int) -> list[NodeView]:
    """What was joined along an axis; the term itself where nothing was."""
    parts = term.inputs if term.op is concat and term.params == (axis,) else ()
    return list(parts) or [term]


def _grid(matrix: NodeView, axis: int) -> Grid | None:
    """The blocks of a matrix, by lines that were joined along an axis; None where none is 0."""
    if len(matrix.shape) != 2 or matrix.op is not concat:
        return None
    if matrix.params == (axis,):
        grid = [_blocks_along(line, 1 - axis) for line in _blocks_along(matrix, axis)]
    else:
        lines = [_blocks_along(line, axis) for line in _blocks_along(matrix, 1 - axis)]
        if len({tuple(_lengths(line, axis)) for line in lines}) != 1:
            return None
        grid = [list(line) for line in zip(*lines, strict=True)]
    cells = [cell for line in grid for cell in line]
    plain = all(cell.dtype == matrix.dtype for cell in cells)
    some = any(map(_is_zero, cells)) and len(cells) <= MAX_BLOCKS
    return grid if plain and some else None


def _is_zero(term: NodeView) -> bool:
    return term.op is full and term.params[1] == 0


def _lengths(line: Sequence[NodeView], axis: int) -> list[int]:
    return [cell.shape[axis] for cell in line]


def _slice_lines(match: Match, term: NodeView, axis: int, first: int, last: int) -> NodeView:
    """Rows, or columns, of a matrix; elements of a vector."""
    axis = min(axis, len(term.shape) - 1)
    if term.op is concat:
        parts = _blocks_between(match, term, axis, first, last)
        if parts is not None and all(part.dtype == term.dtype for part in parts):
            return parts[0] if len(parts) == 1 else match.make(concat, *parts, params=term.params)
    picks = list(whole_axes(term.shape))
    picks[axis] = (first, last - first, 1)
    return make_index(match, term, tuple(picks))


def _blocks_between(
    match: Match, term: NodeView, axis: int, first: int, last: int
) -> list[NodeView] | None:
    """Of what was joined what lies there, where that is whole blocks; None where blocks are cut."""
    if term.params != (axis,):
        joined = all(each.op is concat and each.params == (axis,) for each in term.inputs)
        return (
            [_slice_lines(match, each, axis, first, last) for each in term.inputs] if joined else None
        )
    ends = list(pairwise(accumulate(_lengths(term.inputs, axis), initial=0)))
    there = [at for at, (begin, end) in enumerate(ends) if first <= begin and end <= last]
    if not there or (ends[there[0]][0], ends[there[-1]][1]) != (first, last):
        return None
    return [term.inputs[at] for at in there]


def _zeros(match: Match, shape: tuple[int, ...]) -> NodeView:
    root = match.root.type
    zero = {"i": 0, "u": 0, "f": 0.0, "c": 0j}[kind_of(root.dtype)]
    return match.make(full, params=(shape, zero, root.dtype, root.device))


def _block_product(match: Match, grid: Grid, other: NodeView, *, before: bool) -> NodeView | None:
    """Each line of blocks times the parts of the other matrix that it meets."""
    root = match.root
    if other.dtype != root.dtype or len(other.shape) > 2:
        return None
    if root.dtype in HALF_DTYPES or kind_of(root.dtype) == "b":
        return None  # partial sums of halves would be rounded; bools have no sums
    along = 0 if before else 1
    strips = [_line_product(match, line, other, before=before) for line in grid]
    axis = min(along, len(root.shape) - 1)
    return strips[0] if len(strips) == 1 else match.make(concat, *strips, params=(axis,))


def _line_product(match: Match, line: list[NodeView], other: NodeView, *, before: bool) -> NodeView:
    """One line of blocks times another matrix, or that times the line."""
    inner = 1 if before else 0
    ends = pairwise(accumulate(_lengths(line, inner), initial=0))
    products = []
    for cell, (first, last) in zip(line, ends, strict=True):
        if not _is_zero(cell):
            part = _slice_lines(match, other, 1 - inner, first, last)
            operands = (cell, part) if before else (part, cell)
            products.append(match.make(matmul, *operands))
    if products:
        return reduce(lambda one, more: match.make(add, one, more), products)
    length = line[0].shape[1 - inner]
    others = other.shape[1:] if before else other.shape[:-1]
    return _zeros(match, (length, *others) if before else (*others, length))


def _blocks_times(match: Match) -> NodeView | None:
    blocks, other = match.root.inputs
    grid = _grid(blocks, 0)
    return None if grid is None else _block_product(match, grid, other, before=True)


def _times_blocks(match: Match) -> NodeView | None:
    other, blocks = match.root.inputs
    grid = _grid(blocks, 1)
    return None if grid is None else _block_product(match, grid, other, before=False)


def _block_solve(match: Match) -> NodeView | None:
    """One solve for each block of a diagonal of them, and substitution where there are others on
    one side of it.
    """
    matrix, right = match.root.inputs
    grid = _grid(matrix, 0)
    if grid is None or len(right.shape) > 2 or any(len(line) != len(grid) for line in grid):
        return None
    if matrix.dtype != match.root.dtype or right.dtype != match.root.dtype:
        return None
    rows = [line[0].shape[0] for line in grid]
    if any(_lengths(line, 1) != rows for line in grid):
        return None
    order = _substitution_order(grid)
    if order is None:
        return None
    ends = list(pairwise(accumulate(rows, initial=0)))
    found: dict[int, NodeView] = {}
    for at in order:
        part = _slice_lines(match, right, 0, *ends[at])
        for other, known in found.items():
            if not _is_zero(grid[at][other]):
                part = match.make(subtract, part, match.make(matmul, grid[at][other], known))
        found[at] = match.make(solve, grid[at][at], part)
    return match.make(concat, *(found[at] for at in range(len(rows))), params=(0,))


def _substitution_order(grid: Grid) -> Sequence[int] | None:
    """In which order blocks are solved for: the first of them reads no other."""
    places = range(len(grid))
    above = all(_is_zero(grid[i][j]) for i in places for j in places if j > i)
    below = all(_is_zero(grid[i][j]) for i in places for j in places if j < i)
    return places if above else places[::-1] if below else None


BLOCK_MATRIX_RULES = tuple(
    Rule(name, matched, replacement, exactness="linear-algebra")
    for name, matched, replacement in (
        ("blocks-times", pattern.concat() @ y, _blocks_times),
        ("times-blocks", x @ pattern.concat(), _times_blocks),
        ("solve-blocks", pattern.linalg_solve(pattern.concat(), y), _block_solve),
    )
)
