"""Argmax flattening: a position over several axes becomes a position along one flattened axis.

Input: argmax or argmin over several axes. Output: the same along one axis, which a kernel reduces.
The elements are read in the same row-major order, so the first of equal elements stays the first.

>>> print(ARGMAX_RULES[0].name)
argmax-flat
"""

from __future__ import annotations

from tenfold.core.op import Op
from tenfold.core.pattern import pattern, variables
from tenfold.ops import reduce
from tenfold.ops.reshaping import reshape
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule

(x,) = variables("x")


def _over_several_axes(match: Match) -> bool:
    return len(match.root.params[0]) > 1


def _flattened(match: Match) -> NodeView:
    """Return the position in the flattened array, with axes of length 1 for keepdims."""
    term, root = match["x"], match.root
    flattened = match.make(reshape, term, params=((term.size,),))
    position = match.again(root, flattened, params=((0,), False))
    if not root.shape:
        return position
    return match.make(reshape, position, params=(root.shape,))


ARGMAX_RULES = tuple(
    Rule(f"{op.name}-flat", getattr(pattern, op.name)(x), _flattened, when=_over_several_axes)
    for op in vars(reduce).values()
    if isinstance(op, Op) and op.lowering.folding is not None and op.lowering.folding.one_axis
)
