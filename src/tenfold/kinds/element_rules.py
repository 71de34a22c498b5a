"""Elementwise rules of the kinds that store some elements in one component, and where they are in
others.

An operation keeps such a kind if it gives 0 where the kind has no element. A product with anything
does: what has no element takes part in no arithmetic.

>>> import tenfold as tn
>>> x = tn.diagonal_matrix(tn.asarray([1.0, 4.0]))
>>> tn.sqrt(x).storage, (x * tn.full((2, 2), tn.nan)).to_dense().tolist()
('diagonal_matrix', [[nan, 0.0], [0.0, nan]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import broadcast
from tenfold.ops.arithmetic import divide, floor_divide, multiply, remainder
from tenfold.storage.kinds import (
    KEEPS_ZEROS,
    components,
    constructor_params,
    keeps_zeros,
    storage_kind,
)

NUMERATORS = (divide, floor_divide, remainder)
"""The operations that keep the zeros of their first operand, whatever the second one is."""
KEEPS_ZEROS.update((multiply, *NUMERATORS))


def has_axes(y: Any) -> bool:
    """Whether an operand is an array of elements: a number is the same at all places."""
    return isinstance(y, Array) and y.ndim > 0


def with_elements(x: Array, elements: Array) -> Array:
    """Return the array of a kind with other elements at the same places."""
    kind = storage_kind(x)
    assert kind is not None, "x has a kind"
    return kind.make(elements, *components(x)[1:], params=constructor_params(x))


def has_places_of(x: Array, y: Any) -> bool:
    """Whether both have one kind, and their elements are at the same places."""
    if not isinstance(y, Array) or x.shape != y.shape or storage_kind(x) is not storage_kind(y):
        return False
    first, second = (_native.node_of(z).inputs[1:] for z in (x, y))
    return all(one == other for one, other in zip(first, second, strict=True))


def rule_of(
    pick: Callable[[Array, Array], Array],
) -> Callable[[Op[...], Sequence[Any], Params], Any]:
    """Return the elementwise rule of a kind; `pick(x, y)` gives the elements of a dense `y`, which
    broadcasts to the shape of `x`, at the places of those of `x`.
    """

    def elementwise(op: Op[...], operands: Sequence[Any], params: Params) -> Any:
        at = next(i for i, x in enumerate(operands) if isinstance(x, Array) and storage_kind(x))
        x = operands[at]
        others = [y for i, y in enumerate(operands) if i != at and isinstance(y, Array)]
        kinded = [y for y in others if storage_kind(y)]
        if not all(has_places_of(x, y) for y in kinded):
            return NotImplemented
        keeps = op is multiply or (op in NUMERATORS and at == 0 and not kinded)
        if not keeps and len(kinded) < len(others):
            return NotImplemented
        if broadcast(*(y.shape for y in (x, *others))) != x.shape:
            return NotImplemented
        stored = {i for i, y in enumerate(operands) if isinstance(y, Array) and storage_kind(y)}
        if not keeps and not keeps_zeros(op, operands, stored, params):
            return NotImplemented
        elements = [
            components(y)[0] if i in stored else pick(x, y) if has_axes(y) else y
            for i, y in enumerate(operands)
        ]
        return with_elements(x, _native.apply(op.id, tuple(elements), params))

    return elementwise
