"""Slice pushdown: moves an index below the operation it reads, so that fewer elements are computed.

Input: an index of an elementwise operation, reduction, join or padding. Output: the operation on
slices of its operands. Where an operand is read by one map (views: `rewrite/rules/views.py`, maps),
its slice is the composition (`core/index_map.py`). A reduction adds its reduced axes, which are
read whole. A join or a padding reads each operand by a map of its own, on some of its indices.

A permutation of an elementwise expression moves to its operands if that cancels other permutations.
A node with other readers is not split, so no element is computed twice. Class bitwise.

>>> print(SLICE_PUSHDOWN_RULES[0])
index-map: index(x) => ... when reads_map (bitwise)
"""

from __future__ import annotations

from tenfold.core.index_map import (
    FIXED,
    AxisMap,
    Slice,
    operand_slice,
    picks_of,
    split_new_axes,
)
from tenfold.core.op import Kind, Op
from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Pick, Shape
from tenfold.dtypes import promote
from tenfold.ops.cast import astype
from tenfold.ops.create import full
from tenfold.ops.joining import concat, stack
from tenfold.ops.movement import permute_dims
from tenfold.ops.pad import pad
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.slice_composition import (
    Picks,
    intersection,
    remaining_axes,
    shift_pick,
)
from tenfold.rewrite.rules.views import (
    insert_axes,
    make_index,
    make_slice,
    permute,
    selects_fewer,
)

(x,) = variables("x")


def is_pure_map(op: Op[...] | None) -> bool:
    """Whether an operation is elementwise and pure: its slice needs only slices of operands."""
    return op is not None and op.semantics.kind is Kind.MAP and op.semantics.pure


def _selects_fewer_unshared(match: Match) -> bool:
    """Whether the root selects fewer elements of an operand that has no other reader."""
    return selects_fewer(match) and match.root.inputs[0].single_reader


def not_live_out(match: Match) -> bool:
    """Whether the indexed array is not live-out, or is read in part for the first time."""
    return not match.root.inputs[0].live_out


MAX_JOINED = 64


def reads_join(match: Match) -> bool:
    """As not_live_out, of a join; with several readers only a join of few arrays."""
    joined = match.root.inputs[0]
    return not joined.live_out and (joined.single_reader or joined.input_count <= MAX_JOINED)


def reads_map(match: Match) -> bool:
    """As _selects_fewer_unshared, of an elementwise operation."""
    return is_pure_map(match.root.inputs[0].op) and _selects_fewer_unshared(match)


def slice_operand(match: Match, term: NodeView, part: Slice, result: Shape) -> NodeView:
    """Return the slice of an operand that a slice of an elementwise result reads."""
    if term.is_scalar:
        return term
    first = len(result) - len(term.shape)
    return make_slice(match, term, operand_slice(part, result, term.shape, first)[0])


def _index_of_map(match: Match) -> NodeView:
    mapped, (part, new_axes) = match.root.inputs[0], split_new_axes(match.root.params)
    operands = [slice_operand(match, operand, part, mapped.shape) for operand in mapped.inputs]
    return insert_axes(match, match.again(mapped, *operands), new_axes)


def reads_reduction(match: Match) -> bool:
    """As _selects_fewer_unshared, of a reduction."""
    op = match.root.inputs[0].op
    return op is not None and op.rewriting.reduces and _selects_fewer_unshared(match)


def _index_of_reduction(match: Match) -> NodeView | None:
    """Reduce only the lines that are read."""
    reduction, (part, new_axes) = match.root.inputs[0], split_new_axes(match.root.params)
    (term,) = reduction.inputs
    axes, keepdims, *options = reduction.params
    access, lengths = part
    steps = iter(access)
    term_steps: list[AxisMap] = []
    term_lengths: list[int] = []
    unit_axes: list[int] = []  # that keepdims keeps, in the result
    for axis, length in enumerate(term.shape):
        slice_axis, by, start = next(steps) if keepdims or axis not in axes else FIXED
        if axis in axes:
            if slice_axis is not None and lengths[slice_axis] == 0:
                return None
            unit_axes += [] if slice_axis is None else [slice_axis]
            slice_axis, by, start = 0, 1, 0
        term_steps.append((None if slice_axis is None else len(term_lengths), by, start))
        if slice_axis is not None:
            term_lengths.append(length if axis in axes else lengths[slice_axis])
    reduced_axes = tuple([axis for axis, *_ in (term_steps[axis] for axis in axes)])
    slice_ = make_slice(match, term, (tuple(term_steps), tuple(term_lengths)))
    result = match.again(reduction, slice_, params=(reduced_axes, False, *options))
    return insert_axes(match, insert_axes(match, result, tuple(unit_axes)), new_axes)


def _rejoin(match: Match, op: Op[...], slices: list[NodeView], axis: int) -> NodeView | None:
    """Join slices again, in the dtype of the whole join; one slice needs no join.

    The slices may promote to a narrower dtype: then one is converted. None if that costs more than
    it saves.
    """
    root, joined = match.root, match.root.inputs[0]
    if promote(slice_.type for slice_ in slices) != root.dtype:
        smallest = min(range(len(slices)), key=lambda i: slices[i].size)
        saved = joined.size - root.size if len(slices) > 1 else joined.size
        if not joined.single_reader or slices[smallest].size > saved:
            return None
        slices[smallest] = match.make(astype, slices[smallest], params=(root.dtype,))
    return (
        slices[0] if len(slices) == 1 and op is concat else match.make(op, *slices, params=(axis,))
    )


def _replace_pick(picks: Picks, axis: int, pick: Pick) -> Picks:
    return (*picks[:axis], pick, *picks[axis + 1 :])


def _index_of_concat(match: Match) -> NodeView | None:
    """Join only the slices that are read, of the operands that are read."""
    join, (picks, new_axes) = match.root.inputs[0], picks_of(*match.root.params)
    (axis,) = join.params
    pick = picks[axis]
    slices: list[NodeView] = []
    start = 0
    for operand in join.inputs:
        first, last = intersection(pick, start, operand.shape[axis])
        if first < last:
            slice_picks = _replace_pick(picks, axis, shift_pick(pick, first, last, start))
            slices.append(make_index(match, operand, slice_picks))
        start += operand.shape[axis]
    if not slices:
        slices = [make_index(match, join.inputs[0], _replace_pick(picks, axis, (0, 0, 1)))]
    if len(slices) > 1 and not _selects_fewer_unshared(match):
        return None
    if not isinstance(pick, int) and pick[2] < 0:
        slices.reverse()
    new_axis = sum(operand < axis for operand in remaining_axes(picks))
    result = _rejoin(match, concat, slices, new_axis)
    return None if result is None else insert_axes(match, result, new_axes)


def _index_of_stack(match: Match) -> NodeView | None:
    """Stack only the slices that are read, of the operands that are read."""
    stacked, (picks, new_axes) = match.root.inputs[0], picks_of(*match.root.params)
    (axis,) = stacked.params
    pick, operand_pick = picks[axis], (*picks[:axis], *picks[axis + 1 :])
    if isinstance(pick, int):
        slice_ = make_index(match, stacked.inputs[pick], operand_pick)
        result = _rejoin(match, concat, [slice_], 0)
        return None if result is None else insert_axes(match, result, new_axes)
    start, count, step = pick
    if count == 0 or not _selects_fewer_unshared(match):
        return None
    selected = [stacked.inputs[start + new_axis * step] for new_axis in range(count)]
    slices = [make_index(match, operand, operand_pick) for operand in selected]
    new_axis = sum(operand < axis for operand in remaining_axes(picks))
    result = _rejoin(match, stack, slices, new_axis)
    return None if result is None else insert_axes(match, result, new_axes)


def _index_of_pad(match: Match) -> NodeView | None:
    """Pad only the slice that is read, with the padding that is read."""
    padded, (picks, new_axes) = match.root.inputs[0], picks_of(*match.root.params)
    (term,) = padded.inputs
    widths, mode, value = padded.params
    term_picks: list[Pick] = []
    new_widths: list[tuple[int, int]] = []
    reads_term = True
    for pick, length, (width_before, _) in zip(picks, term.shape, widths, strict=True):
        first, last = intersection(pick, width_before, length)
        reads_term = reads_term and (first < last or (not isinstance(pick, int) and pick[1] == 0))
        term_picks.append(shift_pick(pick, first, last, width_before))
        if not isinstance(pick, int):
            new_widths.append((first, pick[1] - last))
    root = match.root.type
    if not reads_term:
        full_params = (root.shape, value, root.dtype, root.device)
        return match.make(full, params=full_params) if mode == "constant" else None
    if not any(width for pair in new_widths for width in pair):
        return insert_axes(match, make_index(match, term, tuple(term_picks)), new_axes)
    if mode != "constant" or not _selects_fewer_unshared(match):
        return None
    slice_ = match.make(
        pad, make_index(match, term, tuple(term_picks)), params=(tuple(new_widths), mode, value)
    )
    return insert_axes(match, slice_, new_axes)


def _no_padding(match: Match) -> bool:
    """Whether all padding widths are 0."""
    return not any(width for pair in match.root.params[0] for width in pair)


def _elementwise_region(top: NodeView) -> list[NodeView]:
    """Return the operations of the elementwise expression at `top` that have no other reader."""
    region, worklist = [], [top]
    while worklist:
        term = worklist.pop()
        region.append(term)
        worklist.extend(
            operand for operand in term.inputs if is_pure_map(operand.op) and operand.single_use
        )
    return region


def _is_flat(term: NodeView) -> bool:
    """Whether no permutation of its axes moves an element."""
    return sum(length != 1 for length in term.shape) < 2


def _cancels_permutation(leaf: NodeView, axes: tuple[int, ...]) -> bool:
    """Whether a permutation is the inverse of that of `leaf`."""
    if leaf.op is not permute_dims or len(leaf.shape) != len(axes):
        return False
    (leaf_axes,) = leaf.params
    return all(leaf_axes[axis] == position for position, axis in enumerate(axes))


def _permuted_operand(match: Match, leaf: NodeView, axes: tuple[int, ...]) -> NodeView:
    """Return an operand, perhaps of fewer axes, with its axes permuted by `axes`."""
    if not leaf.shape:
        return leaf
    missing = len(axes) - len(leaf.shape)
    order = tuple(axis - missing for axis in axes if axis >= missing)
    new_axes = tuple(position for position, axis in enumerate(axes) if axis < missing)
    return insert_axes(match, permute(match, leaf, order), new_axes)


def _permutation_of_map(match: Match) -> NodeView | None:
    """Permute the operands of an elementwise expression, if that cancels permutations.

    It pays if fewer elements are permuted than before.
    """
    root, (top,), (axes,) = match.root, match.root.inputs, match.root.params
    if not (is_pure_map(top.op) and top.single_use) or _is_flat(root):
        return None
    region = _elementwise_region(top)
    leaves = {operand for term in region for operand in term.inputs} - set(region)
    permuted_before = root.size + sum(leaf.size for leaf in leaves if leaf.op is permute_dims)
    newly_permuted = (
        leaf for leaf in leaves if not (_is_flat(leaf) or _cancels_permutation(leaf, axes))
    )
    if sum(leaf.size for leaf in newly_permuted) >= permuted_before:
        return None
    rebuilt = {leaf: _permuted_operand(match, leaf, axes) for leaf in leaves}
    for term in reversed(region):  # the region is a tree
        rebuilt[term] = match.again(term, *(rebuilt[operand] for operand in term.inputs))
    return rebuilt[top]


SLICE_PUSHDOWN_RULES = (
    Rule("index-map", pattern.index(x), _index_of_map, when=reads_map),
    Rule("index-reduction", pattern.index(x), _index_of_reduction, when=reads_reduction),
    Rule("index-concat", pattern.index(pattern.concat()), _index_of_concat, when=reads_join),
    Rule("index-stack", pattern.index(pattern.stack()), _index_of_stack, when=reads_join),
    Rule("index-pad", pattern.index(pattern.pad(x)), _index_of_pad, when=not_live_out),
    Rule("pad-nothing", pattern.pad(x), x, when=_no_padding),
    Rule("permute-map", pattern.permute_dims(x), _permutation_of_map),
)
