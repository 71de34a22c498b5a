"""Transposed op: the transpose of a Jacobian-vector product, for ops without a reverse derivative.

Takes an op that states `jvp`, its operands and cotangents of its results, hands on cotangents of
its operands: placeholders, in the first walk of `tn.jvp` (`transforms/tangents.py`), of a map that
the second walk transposes back. So they are never computed but for cotangents 0, whose are 0.

>>> TRANSPOSED_OP
<op transposed>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type, Value
from tenfold.core.op import BoundCall, Inferred, Kind, Op
from tenfold.dtypes import kind_of
from tenfold.errors import UnsupportedError
from tenfold.storage import dense

REMEDY = (
    "take tn.jvp, or a loop of a fixed number of steps by tn.scan; or state the derivative of its "
    "result by tn.custom_vjp"
)


def transposed_terms(
    op: Op[...],
    cotangents: Sequence[Array | None],
    operands: Sequence[Array],
    params: tuple[Any, ...],
    needs: Sequence[bool],
) -> list[Array | None]:
    """Return placeholders of the cotangents of operands that need one."""
    given = tuple(g is not None for g in cotangents)
    pairs = zip(operands, needs, strict=True)
    wanted = tuple(is_needed and kind_of(x.dtype) in "fc" for x, is_needed in pairs)
    inputs = (*(g for g in cotangents if g is not None), *operands)
    made = _native.apply(TRANSPOSED_OP.id, inputs, (op, params, given, wanted, operands[0].device))
    terms = iter(made if isinstance(made, tuple) else (made,))
    return [next(terms) if is_wanted else None for is_wanted in wanted]


def _vjp(g: Any, _result: Any, *arguments: Any) -> list[Array | None]:
    *arrays, op, params, given, wanted, _ = arguments
    count = sum(given)
    parts = iter(g if isinstance(g, tuple) else (g,))
    tangents = [next(parts) if is_wanted else None for is_wanted in wanted]
    found = op.transforms.jvp(tangents, *arrays[count:], *params)
    terms = [x for x, is_given in zip(found, given, strict=True) if is_given]
    return [*terms, *[None] * len(wanted)]


def _rule(types: tuple[Type, ...], _op: Any, _params: Any, given: Any, wanted: Any, _: str) -> Any:
    pairs = zip(types[sum(given) :], wanted, strict=True)
    results = tuple([(type_.shape, type_.dtype) for type_, is_wanted in pairs if is_wanted])
    return Inferred(results, tuple([type_.dtype for type_ in types]))


def _reference(*operands: Any) -> tuple[np.ndarray, ...]:
    *arrays, op, _, given, wanted, _ = operands
    count = sum(given)
    if any(np.any(g) for g in arrays[:count]):
        raise UnsupportedError(op.name, "it has no derivative in reverse", remedy=REMEDY)
    pairs = zip(arrays[count:], wanted, strict=True)
    return tuple([np.zeros_like(x) for x, is_wanted in pairs if is_wanted])


def _on_values(inputs: Sequence[Value], *params: Any) -> tuple[Value, ...]:
    results = _reference(*map(dense.export, inputs), *params)
    return tuple([dense.copy_to_pool(x, params[-1]) for x in results])


def _bind(*inputs: Array, params: tuple[Any, ...]) -> BoundCall:
    return BoundCall(inputs, params)


TRANSPOSED_OP: Op[...] = Op.declare(
    name="transposed",
    page="control",
    function=_bind,
    bind=_bind,
    kind=Kind.CONTRACTION,
    rule=_rule,
    reference=_reference,
    on_values=_on_values,
    can_fail=True,
    public=False,
    vjp=_vjp,
)

__all__ = ["REMEDY", "TRANSPOSED_OP", "transposed_terms"]
