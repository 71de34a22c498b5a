"""Dtype rules: the dtypes in which an elementwise operation computes, from the Types of its
operands.

Each returns (the dtype of every operand, the result's dtype), as NumPy 2 does, or raises DTypeError
with the violated rule.

>>> from tenfold._native import Type
>>> from tenfold.dtypes import DTYPES
>>> floating((Type((3,), DTYPES["int64"], "reference"),))
((dtype('float64'),), dtype('float64'))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold._native import Type
from tenfold.core.op_decorators import DtypeRule, refuse_dtype, refuse_unordered
from tenfold.dtypes import (
    BOOL,
    DTYPES,
    FLOAT16,
    FLOAT64,
    kind_of,
    promote,
    promote_dtypes,
    real_part,
    to_floating,
)

ResolvedDtypes = tuple[tuple[np.dtype, ...], np.dtype]


def _common_dtype(types: Sequence[Type], kinds: str, expected: str, remedy: str) -> np.dtype:
    dtype = promote(types)
    if kind_of(dtype) not in kinds:
        raise refuse_dtype(f"needs {expected}", types, remedy)
    return dtype


def _common_dtype_rule(kinds: str, expected: str, remedy: str) -> DtypeRule:
    def rule(types: Sequence[Type]) -> ResolvedDtypes:
        dtype = _common_dtype(types, kinds, expected, remedy)
        return (dtype,) * len(types), dtype

    return rule


any_dtype = _common_dtype_rule("biufc", "any dtype", "")
"""All operands and the result in the common dtype."""
numeric = _common_dtype_rule(
    "iufc", "numbers", "convert booleans with tn.astype(x, tn.int8), or use ^ or ~"
)
"""As any_dtype, without bool."""
real = _common_dtype_rule("biuf", "real numbers", "take tn.real(x), tn.imag(x) or tn.abs(x) first")
"""As any_dtype, without complex."""
real_numeric = _common_dtype_rule(
    "iuf", "real numbers", "take tn.real(x) or tn.abs(x), or convert with tn.astype"
)
"""As any_dtype, without bool and complex."""
integral = _common_dtype_rule("biu", "integers or booleans", "convert with tn.astype(x, tn.int64)")
"""As any_dtype, without floating dtypes."""
integers = _common_dtype_rule("iu", "integers", "convert with tn.astype(x, tn.int64)")
"""Integers only."""


def _bool_as_int8_rule(kinds: str, expected: str, remedy: str) -> DtypeRule:
    """As _common_dtype_rule, but operands that are all bool are computed as int8, as in NumPy."""

    def rule(types: Sequence[Type]) -> ResolvedDtypes:
        dtype = _common_dtype(types, kinds, expected, remedy)
        dtype = DTYPES["int8"] if dtype == BOOL else dtype
        return (dtype,) * len(types), dtype

    return rule


arithmetic = _bool_as_int8_rule("biufc", "any dtype", "")
"""As any_dtype, with bool as int8."""
real_arithmetic = _bool_as_int8_rule(
    "biuf", "real numbers", "take tn.real(x), tn.imag(x) or tn.abs(x) first"
)
"""As real, with bool as int8."""
shifting = _bool_as_int8_rule("biu", "integers", "convert with tn.astype(x, tn.int64)")
"""As integral, with bool as int8."""


def floating(types: Sequence[Type]) -> ResolvedDtypes:
    """Compute in the floating dtype that holds every operand: int8 in float16, int64 in float64."""
    dtype = _floating(types)
    return (dtype,) * len(types), dtype


def real_floating(types: Sequence[Type]) -> ResolvedDtypes:
    """As floating, without complex."""
    dtype = _floating(types)
    if kind_of(dtype) == "c":
        raise refuse_dtype("needs real numbers", types, "take tn.real(x), tn.imag(x) or tn.abs(x)")
    return (dtype,) * len(types), dtype


def _floating(types: Sequence[Type]) -> np.dtype:
    common = promote(types)
    if kind_of(common) in "fc" or any(type_.weak for type_ in types):
        return to_floating(common)
    # Integers float one by one: int8 with uint8 is float16, although int16 would hold both.
    dtypes = [to_floating(type_.dtype) for type_ in types]
    for dtype in dtypes[1:]:
        dtypes[0] = promote_dtypes(dtypes[0], dtype)
    return dtypes[0]


def division(types: Sequence[Type]) -> ResolvedDtypes:
    """True division: integers and booleans are divided in float64, as NumPy does."""
    dtype = promote(types)
    if kind_of(dtype) in "biu":
        dtype = FLOAT64
    return (dtype,) * len(types), dtype


def comparison(types: Sequence[Type]) -> ResolvedDtypes:
    """Compare in the common dtype; a signed integer and a uint64 are compared as they are."""
    kinds = {kind_of(type_.dtype) for type_ in types if not type_.weak}
    if kinds == {"i", "u"} and kind_of(promote(types)) == "f":
        return tuple(type_.dtype for type_ in types), BOOL
    return (promote(types),) * len(types), BOOL


def ordering(types: Sequence[Type]) -> ResolvedDtypes:
    """As comparison, without complex."""
    refuse_unordered(types)
    return comparison(types)


def logical(types: Sequence[Type]) -> ResolvedDtypes:
    """Every operand as a truth value."""
    return (BOOL,) * len(types), BOOL


def predicate(types: Sequence[Type]) -> ResolvedDtypes:
    """A predicate of a number: bool for any dtype."""
    return tuple(type_.dtype for type_ in types), BOOL


def magnitude(types: Sequence[Type]) -> ResolvedDtypes:
    """The dtype of a modulus: the real part's for complex."""
    (type_,) = types
    return (type_.dtype,), real_part(type_.dtype)


def rounding(types: Sequence[Type]) -> ResolvedDtypes:
    """The dtype itself; bool is rounded in float16, as NumPy does."""
    (type_,) = types
    dtype = FLOAT16 if type_.dtype == BOOL else type_.dtype
    return (dtype,), dtype


def selection(types: Sequence[Type]) -> ResolvedDtypes:
    """A truth value first, then the common dtype of the remaining operands."""
    dtype = promote(types[1:])
    return (BOOL, *((dtype,) * (len(types) - 1))), dtype


def real_predicate(types: Sequence[Type]) -> ResolvedDtypes:
    """As predicate, without complex."""
    if kind_of(promote(types)) == "c":
        raise refuse_dtype("needs real numbers", types, "take tn.real(x) or tn.imag(x) first")
    return predicate(types)
