"""Inference: the Types of a call's results, and what an out-of-range scalar gives.

Native code calls `infer` once for each op, Types and params, and keeps the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from tenfold._native import Type
from tenfold.core.shape_rules import Shape, checked_shape
from tenfold.core.structure import Structure, closed, mapped, of_shape
from tenfold.dtypes import kind_of
from tenfold.errors import DeviceError, DTypeError, ExplainedError, message

if TYPE_CHECKING:
    from tenfold._native import Array
    from tenfold.core.op import Op, Params


def common_device(types: Sequence[Type]) -> str | None:
    """Return the one device of all operands (scalars have none), or raise DeviceError."""
    devices = sorted({type_.device for type_ in set(types) if not type_.weak})
    if len(devices) > 1:
        raise DeviceError(
            "",
            f"operands are on different devices: {', '.join(devices)}",
            remedy="move one with x.to_device(...)",
        )
    return devices[0] if devices else None


def _refuse_mixed(types: Sequence[Type]) -> None:
    dtypes = list(dict.fromkeys(str(type_.dtype) for type_ in types if not type_.weak))
    if len(dtypes) > 1:
        rule = f"strict_dtypes refuses to mix {', '.join(dtypes)}"
        raise DTypeError("", rule, remedy="convert one with tn.astype")


_STRUCTURE_OF = attrgetter("structure")


def _infer_structures(
    op: Op[...],
    types: Sequence[Type],
    params: Params,
    results: Sequence[tuple[Shape, np.dtype]],
) -> Sequence[int]:
    """Return the structures of the results of a call, from the op's rules and their shapes.

    Results that are no square matrices have none, but for a selection.
    """
    semantics = op.semantics
    if semantics.body is not None:
        return [node.type.structure for node in semantics.body.outputs]
    has_structure = any(map(_STRUCTURE_OF, set(types)))
    if not has_structure and semantics.makes is None:
        return [0] * len(results)
    made = semantics.makes(*params) if semantics.makes else (Structure.GENERAL,) * len(results)
    if has_structure:
        kept = _kept_structure(op, types, params)
        made = tuple([structure | kept for structure in made])
    return [
        of_shape(closed(structure, is_complex=kind_of(dtype) == "c"), shape)
        for structure, (shape, dtype) in zip(made, results, strict=True)
    ]


def _kept_structure(op: Op[...], types: Sequence[Type], params: Params) -> Structure:
    """The structure that the results have since operands have one."""
    structures = [Structure(type_.structure) for type_ in types]
    if op.semantics.structure is not None:
        return op.semantics.structure(types, structures, *params)
    if len(types) == 1 and op.zero_stays_zero is not None:
        return mapped(structures[0], zero_stays_zero=op.zero_stays_zero)
    return Structure.GENERAL


def infer(
    op: Op[...], types: tuple[Type, ...], params: Params, strict: bool
) -> tuple[tuple[Type, ...], tuple[np.dtype, ...], int]:
    """Run an op's rule for the native memo: the results' Types, the operands' dtypes, the kind."""
    try:
        # Without inputs the last parameter is the device; a call has an array, or none at all.
        device = common_device(types)
        if device is None or op.semantics.moves:
            device = params[-1]
        results, operands = op.semantics.rule(types, *params)
        if strict and len(types) > 1 and op.signature.promotes:
            # a bool operand, such as the condition of where, does not count as mixed
            indexed = enumerate(zip(types, operands, strict=True))
            _refuse_mixed(
                [
                    type_
                    for position, (type_, dtype) in indexed
                    if kind_of(dtype) != "b" and position not in op.signature.indices
                ]
            )
        structures = _infer_structures(op, types, params, results)
        result_types = tuple(
            Type(
                checked_shape(shape, dtype.itemsize),
                dtype,
                device,
                storage=op.semantics.storage,
                structure=structure,
            )
            for (shape, dtype), structure in zip(results, structures, strict=True)
        )
    except ExplainedError as error:
        raise error.completed(op.name, types[:8]) from None
    return result_types, operands, int(op.semantics.kind)


def refuse_scalar(
    op: Op[...], types: tuple[Type, ...], position: int, scalar: complex, dtype: np.dtype
) -> Array:
    """Handle an integer scalar out of range of its dtype: a comparison's result, or an error."""
    number = scalar.real
    if op.semantics.out_of_range is not None:
        return op.semantics.out_of_range(types, position, number < 0)
    if op.semantics.whole_exponent and position == 1 and number < 0:
        rule = f"integers cannot be raised to the negative power {scalar}"
        raise ValueError(message(op.name, rule, types, "convert the base to a floating dtype"))
    rule = f"Python integer {_scalar_text(scalar)} is out of bounds for {dtype}"
    remedy = "convert the array to a wider dtype, or the scalar with tn.asarray"
    raise OverflowError(message(op.name, rule, types, remedy))


def _scalar_text(scalar: complex) -> str:
    return str(scalar) if isinstance(scalar, int) else f"near {scalar.real:g}"
