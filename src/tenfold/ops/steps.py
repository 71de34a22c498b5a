"""Steps: the operations that have made an array of others, to be made of others once more.

Takes an Array that was just made and those it was made of, hands on the operations between them: a
function that decides much before it makes a few nodes decides once for operands of the same Types.

>>> import tenfold as tn
>>> x, y = tn.ones((2, 3)), tn.ones((3, 2))
>>> z = x @ y
>>> steps = steps_between(z * z, [x, y])
>>> [step.places for step in steps]
[(0, 1), (2, 2)]
>>> again(steps, [2 * x, y]).tolist()
[[36.0, 36.0], [36.0, 36.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Array, Node


class Step(NamedTuple):
    """An operation: its number, its params, and which of the arrays and earlier steps it reads."""

    op: int
    params: tuple[Any, ...]
    places: tuple[int, ...]


def steps_between(result: Array, arrays: Sequence[Array]) -> tuple[Step, ...] | None:
    """Return the operations that make a result of arrays; None where they read anything else, such
    as a number, and where two of the arrays are one node.
    """
    places = {_native.node_of(x): place for place, x in enumerate(arrays)}
    if len(places) < len(arrays):
        return None
    steps: list[Step] = []
    stack: list[Node] = [_native.node_of(result)]
    while stack:
        node = stack[-1]
        missing = [each for each in node.inputs if each not in places]
        if node in places:
            stack.pop()
        elif node.op is None or node.op.noted is not None or not node.inputs:
            return None
        elif missing:
            stack += missing
        else:
            places[stack.pop()] = len(arrays) + len(steps)
            inputs = tuple(places[each] for each in node.inputs)
            steps.append(Step(node.op.id, node.params, inputs))
    return tuple(steps) or None


def again(steps: Sequence[Step], arrays: Sequence[Array]) -> Array:
    """Make the operations of other arrays of the same Types."""
    made = [*arrays]
    for op, params, places in steps:
        made.append(_native.apply(op, tuple([made[place] for place in places]), params))
    return made[-1]
