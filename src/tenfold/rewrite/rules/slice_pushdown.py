"""Slice pushdown: moves an index below the operation it reads, so that fewer elements are computed.

Takes an index of a pending result (elementwise operations, reductions, joins, padding), hands on
that computation of the parts. Takes a permutation of an elementwise expression, where it cancels
others. A node with other readers stays whole, so nothing is computed twice. Class bitwise.

>>> print(PARTS[0])
index-map: index(x) => ... when of_a_map (bitwise)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.op import Kind, Op
from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Pick, whole_axes
from tenfold.dtypes import promote
from tenfold.ops.cast import astype
from tenfold.ops.create import full
from tenfold.ops.joining import concat, stack
from tenfold.ops.movement import permute_dims
from tenfold.ops.pad import pad
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.slice_composition import Picks, operand_picks, remaining_axes, shift_pick, overlap
from tenfold.rewrite.rules.views import selects_fewer, permute, make_index, insert_axes

(x,) = variables("x")


def is_pure_map(op: Op[...] | None) -> bool:
    """Whether a part of the operation's result is made of the parts of its operands."""
    return op is not None and op.kind is Kind.MAP and op.pure


def _selects_fewer_unshared(match: Match) -> bool:
    """Whether the root takes fewer elements of an operand that only the root needs."""
    return selects_fewer(match) and match.root.inputs[0].alone


def not_live_out(match: Match) -> bool:
    """Whether the indexed array is not live-out, or is read in part for the first time."""
    return not match.root.inputs[0].seen


MAX_JOINED = 64


def reads_join(match: Match) -> bool:
    """As unseen, of arrays that are joined; not of very many for each of many readers."""
    whole = match.root.inputs[0]
    return not whole.seen and (whole.alone or whole.width <= MAX_JOINED)


def reads_map(match: Match) -> bool:
    """As _smaller, of an elementwise operation."""
    return is_pure_map(match.root.inputs[0].op) and _selects_fewer_unshared(match)


def _index_of_map(match: Match) -> NodeView:
    whole, (picks, new) = match.root.inputs[0], match.root.params
    parts = [
        each if each.is_scalar else make_index(match, each, operand_picks(each.shape, whole.shape, picks))
        for each in whole.inputs
    ]
    return insert_axes(match, match.again(whole, *parts), new)


def reads_reduction(match: Match) -> bool:
    """As _smaller, of a reduction whose other axes are indexed."""
    op = match.root.inputs[0].op
    return op is not None and op.reduces and _selects_fewer_unshared(match)


def _index_of_reduction(match: Match) -> NodeView | None:
    """Each line along the reduced axes is folded by itself: the others need not be."""
    whole, (picks, new) = match.root.inputs[0], match.root.params
    (term,) = whole.inputs
    axes, keepdims, *rest = whole.params
    remaining = iter(picks)
    ours: list[Pick] = list(whole_axes(term.shape))
    folded: list[Pick] = []  # what is taken of the axes that keepdims keeps
    for axis in range(len(ours)):
        if axis not in axes:
            ours[axis] = next(remaining)
        elif keepdims:
            folded.append(next(remaining))
    if any(not isinstance(pick, int) and pick[1] == 0 for pick in folded):
        return None
    left = remaining_axes(ours)
    part = make_index(match, term, tuple(ours))
    params = (tuple(left.index(axis) for axis in axes), False, *rest)
    result = match.again(whole, part, params=params)
    shown = [
        axis for axis in left if axis not in axes or not isinstance(_reduced_pick(axes, folded, axis), int)
    ]
    ones = tuple(place for place, axis in enumerate(shown) if axis in axes and keepdims)
    return insert_axes(match, insert_axes(match, result, ones), new)


def _reduced_pick(axes: Sequence[int], folded: Sequence[Pick], axis: int) -> Pick:
    """What is taken of a reduced axis; an int where the reduction keeps none."""
    return folded[axes.index(axis)] if folded else 0


def _rejoin(match: Match, op: Op[...], parts: list[NodeView], axis: int) -> NodeView | None:
    """Join parts again, one of them is itself; in the dtype of the whole.

    What is left may promote to less: then one part is converted. None where that costs more than
    it spares.
    """
    root, whole = match.root, match.root.inputs[0]
    if promote(part.type for part in parts) != root.dtype:
        smallest = min(range(len(parts)), key=lambda place: parts[place].size)
        spared = whole.size - root.size if len(parts) > 1 else whole.size
        if not whole.alone or parts[smallest].size > spared:
            return None
        parts[smallest] = match.make(astype, parts[smallest], params=(root.dtype,))
    return parts[0] if len(parts) == 1 and op is concat else match.make(op, *parts, params=(axis,))


def _replace_pick(picks: Picks, axis: int, pick: Pick) -> Picks:
    return (*picks[:axis], pick, *picks[axis + 1 :])


def _index_of_concat(match: Match) -> NodeView | None:
    """Of the arrays that were joined only those that are read, and only what is read of them."""
    whole, (picks, new) = match.root.inputs[0], match.root.params
    (axis,) = whole.params
    pick = picks[axis]
    parts: list[NodeView] = []
    start = 0
    for each in whole.inputs:
        first, last = overlap(pick, start, each.shape[axis])
        if first < last:
            there = _replace_pick(picks, axis, shift_pick(pick, first, last, start))
            parts.append(make_index(match, each, there))
        start += each.shape[axis]
    if not parts:
        parts = [make_index(match, whole.inputs[0], _replace_pick(picks, axis, (0, 0, 1)))]
    if len(parts) > 1 and not _selects_fewer_unshared(match):
        return None
    if not isinstance(pick, int) and pick[2] < 0:
        parts.reverse()
    place = sum(each < axis for each in remaining_axes(picks))
    joined = _rejoin(match, concat, parts, place)
    return None if joined is None else insert_axes(match, joined, new)


def _index_of_stack(match: Match) -> NodeView | None:
    """Of the arrays that were stacked only those that are read, and only what is read of them."""
    whole, (picks, new) = match.root.inputs[0], match.root.params
    (axis,) = whole.params
    pick, others = picks[axis], (*picks[:axis], *picks[axis + 1 :])
    if isinstance(pick, int):
        part = make_index(match, whole.inputs[pick], others)
        joined = _rejoin(match, concat, [part], 0)
        return None if joined is None else insert_axes(match, joined, new)
    start, count, step = pick
    if count == 0 or not _selects_fewer_unshared(match):
        return None
    read = [whole.inputs[start + place * step] for place in range(count)]
    parts = [make_index(match, each, others) for each in read]
    place = sum(each < axis for each in remaining_axes(picks))
    joined = _rejoin(match, stack, parts, place)
    return None if joined is None else insert_axes(match, joined, new)


def _index_of_pad(match: Match) -> NodeView | None:
    """What is read of the array inside, with what is read of the padding around it."""
    whole, (picks, new) = match.root.inputs[0], match.root.params
    (term,) = whole.inputs
    widths, mode, value = whole.params
    ours: list[Pick] = []
    around: list[tuple[int, int]] = []
    inside = True
    for pick, length, (before, _) in zip(picks, term.shape, widths, strict=True):
        first, last = overlap(pick, before, length)
        inside = inside and (first < last or (not isinstance(pick, int) and pick[1] == 0))
        ours.append(shift_pick(pick, first, last, before))
        if not isinstance(pick, int):
            around.append((first, pick[1] - last))
    root = match.root.type
    if not inside:
        same = (root.shape, value, root.dtype, root.device)
        return match.make(full, params=same) if mode == "constant" else None
    if not any(width for pair in around for width in pair):
        return insert_axes(match, make_index(match, term, tuple(ours)), new)
    if mode != "constant" or not _selects_fewer_unshared(match):
        return None
    part = match.make(pad, make_index(match, term, tuple(ours)), params=(tuple(around), mode, value))
    return insert_axes(match, part, new)


def _no_padding(match: Match) -> bool:
    """Whether nothing is put around the array."""
    return not any(width for pair in match.root.params[0] for width in pair)


def _elementwise_region(top: NodeView) -> list[NodeView]:
    """The elementwise expression that ends in `top`: its operations that are its alone."""
    region, left = [], [top]
    while left:
        term = left.pop()
        region.append(term)
        left.extend(each for each in term.inputs if is_pure_map(each.op) and each.read_once)
    return region


def _is_flat(term: NodeView) -> bool:
    """Whether no permutation of its axes moves an element."""
    return sum(length != 1 for length in term.shape) < 2


def _cancels_permutation(leaf: NodeView, axes: tuple[int, ...]) -> bool:
    """Whether a permutation takes that of `leaf` back."""
    if leaf.op is not permute_dims or len(leaf.shape) != len(axes):
        return False
    (first,) = leaf.params
    return all(first[axis] == place for place, axis in enumerate(axes))


def _permuted_operand(match: Match, leaf: NodeView, axes: tuple[int, ...]) -> NodeView:
    """An operand, with fewer axes maybe, in the order that `axes` gives to the last axes."""
    if not leaf.shape:
        return leaf
    missing = len(axes) - len(leaf.shape)
    order = tuple(axis - missing for axis in axes if axis >= missing)
    new = tuple(place for place, axis in enumerate(axes) if axis < missing)
    return insert_axes(match, permute(match, leaf, order), new)


def _permutation_of_map(match: Match) -> NodeView | None:
    """Permute the operands of an elementwise expression, where that takes permutations back.

    It pays where fewer elements are permuted than before.
    """
    root, (top,), (axes,) = match.root, match.root.inputs, match.root.params
    if not (is_pure_map(top.op) and top.read_once) or _is_flat(root):
        return None
    region = _elementwise_region(top)
    leaves = {each for term in region for each in term.inputs} - set(region)
    before = root.size + sum(leaf.size for leaf in leaves if leaf.op is permute_dims)
    moved_anew = (leaf for leaf in leaves if not (_is_flat(leaf) or _cancels_permutation(leaf, axes)))
    if sum(leaf.size for leaf in moved_anew) >= before:
        return None
    made = {leaf: _permuted_operand(match, leaf, axes) for leaf in leaves}
    for term in reversed(region):  # a tree: each is read once
        made[term] = match.again(term, *(made[each] for each in term.inputs))
    return made[top]


SLICE_PUSHDOWN_RULES = (
    Rule("index-map", pattern.index(x), _index_of_map, when=reads_map),
    Rule("index-reduction", pattern.index(x), _index_of_reduction, when=reads_reduction),
    Rule("index-concat", pattern.index(pattern.concat()), _index_of_concat, when=reads_join),
    Rule("index-stack", pattern.index(pattern.stack()), _index_of_stack, when=reads_join),
    Rule("index-pad", pattern.index(pattern.pad(x)), _index_of_pad, when=not_live_out),
    Rule("pad-nothing", pattern.pad(x), x, when=_no_padding),
    Rule("permute-map", pattern.permute_dims(x), _permutation_of_map),
)
