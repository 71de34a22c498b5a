"""Cuts of gradients: the operations that a derivative did not go through, and why.

Takes the nodes of gradients and those where the walk stopped, hands on lines for `explain`. They
are kept for the latest gradients, by the number of a node.

>>> import tenfold as tn
>>> gradient = tn.grad(lambda x: tn.sum(x * tn.floor(x)))(tn.asarray([1.5]))
>>> print(tn.explain(gradient, stage="expression").splitlines()[-1])
not differentiated: floor, whose derivative is 0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold._native import Node
from tenfold.caches import LruCache
from tenfold.dtypes import kind_of

_cuts: LruCache[int, tuple[str, ...]] = LruCache(
    1024, "cuts of gradients", "explain says what a derivative did not go through"
)


def note_cuts(gradients: Iterable[Node], cut: Sequence[Node]) -> None:
    """Remember where the walk to these gradients stopped."""
    lines = tuple(dict.fromkeys(map(_line_of, cut)))
    for node in gradients:
        _cuts[node.creation_number] = lines


def cut_lines(gradients: Iterable[Node]) -> list[str]:
    """Return a line for each operation that the derivatives did not go through."""
    found = [_cuts.get(node.creation_number) or () for node in gradients]
    return list(dict.fromkeys(line for lines in found for line in lines))


def _line_of(node: Node) -> str:
    place = "" if node.origin is None else " at {}:{}".format(*node.origin)
    is_floating = any(kind_of(type_.dtype) in "fc" for type_ in node.types)
    reason = "whose derivative is 0" if is_floating else f"whose result is {node.type.dtype}"
    if node.name == "stop_gradient":
        reason = "which makes a constant"
    return f"not differentiated: {node.name}{place}, {reason}"


__all__ = ["cut_lines", "note_cuts"]
