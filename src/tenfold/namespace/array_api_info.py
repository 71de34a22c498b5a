"""Array API inspection: the constants, dtypes and info functions that the standard requires.

Takes dtypes and Arrays, hands on facts. The standard: https://data-apis.org/array-api/2025.12

>>> finfo("float32").bits, iinfo("int8").max
(32, 127)
>>> isdtype("int8", "integral")
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tenfold import settings
from tenfold.core.shape_rules import MAX_AXES
from tenfold.dtypes import (
    BFLOAT16,
    DTYPES,
    FLOAT16,
    HALF_DTYPES,
    canonical,
    dtype_of,
    kind_of,
    promote,
    promote_dtypes,
    promotion_operand,
    real_part,
)
from tenfold.errors import DTypeError, message

Dtype = np.dtype[Any]

VERSION = "2025.12"
API_CONSTANTS: dict[str, float | None] = {
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "pi": math.pi,
}
KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""The standard's kinds of dtypes, as the kinds of `dtypes.kind_of`."""


@dataclass(frozen=True)
class FloatingInfo:
    """The limits of a floating dtype (of its real part, when it is complex)."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Dtype


def _refuse(operation: str, dtype: Dtype, kind: str) -> DTypeError:
    return DTypeError(operation, f"{dtype} is not a {kind} dtype", remedy=f"name a {kind} dtype")


def finfo(type: Any, /) -> FloatingInfo:
    """Return the limits of a floating dtype, or of an array's; complex ones have their part's.

    `bits` counts bits; the others are Python floats. Raises DTypeError for other dtypes.

    >>> import tenfold as tn
    >>> tn.finfo(tn.float64).eps == 2.0**-52
    True
    """
    dtype = dtype_of(type, "finfo")
    if kind_of(dtype) not in "fc":
        raise _refuse("finfo", dtype, "floating")
    part = real_part(dtype)
    limits: Any = (ml_dtypes.finfo if part == BFLOAT16 else np.finfo)(part)
    return FloatingInfo(
        bits=int(limits.bits),
        eps=float(limits.eps),
        max=float(limits.max),
        min=float(limits.min),
        smallest_normal=float(limits.smallest_normal),
        dtype=part,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of an array's, as Python ints; `bits` counts bits.

    Raises DTypeError for other dtypes.

    >>> import tenfold as tn
    >>> tn.iinfo(tn.uint8).max
    255
    """
    dtype = dtype_of(type, "iinfo")
    if kind_of(dtype) not in "iu":
        raise _refuse("iinfo", dtype, "integer")
    limits = np.iinfo(dtype)
    return IntegerInfo(limits.bits, int(limits.max), int(limits.min), dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, one of the standard's words, or a tuple of such.

    The words: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric". Raises ValueError for another word.

    >>> import tenfold as tn
    >>> tn.isdtype(tn.float32, ("real floating", "complex floating"))
    True
    """
    checked = canonical(dtype, "isdtype")
    return any(
        _is_of(checked, single_kind)
        for single_kind in (kind if isinstance(kind, tuple) else (kind,))
    )


def _is_of(dtype: Dtype, kind: Any) -> bool:
    if not isinstance(kind, str):
        return dtype == canonical(kind, "isdtype")
    if kind not in KINDS:
        remedy = f"the kinds are: {', '.join(map(repr, KINDS))}; or give a dtype"
        raise ValueError(message("isdtype", f"{kind!r} is not a kind of dtype", remedy=remedy))
    return kind_of(dtype) in KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> Dtype:
    """Return the dtype that an operation on these arrays, dtypes and Python numbers has.

    Promotion is NumPy 2's, Python numbers are weak; bfloat16 follows float16's pattern. Raises
    ValueError for no argument, DTypeError for what has no dtype.

    >>> import tenfold as tn
    >>> tn.result_type(tn.float32, tn.asarray([1], dtype=tn.int8), 2.5)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise ValueError(
            message(
                "result_type",
                "needs at least one array or dtype",
                remedy="name one, as in tn.result_type(x, tn.float32)",
            )
        )
    return promote(promotion_operand(value) for value in arrays_and_dtypes)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether every value of a dtype, or of an array's, is a value of another dtype.

    >>> import tenfold as tn
    >>> tn.can_cast(tn.int32, tn.float64), tn.can_cast(tn.int64, tn.int32)
    (True, False)
    """
    source, target = dtype_of(from_, "can_cast"), canonical(to, "can_cast")
    if BFLOAT16 not in (source, target):
        return bool(np.can_cast(source, target))
    if {source, target} == {BFLOAT16, FLOAT16}:
        return False
    return promote_dtypes(source, target) == target


class NamespaceInfo:
    """What `__array_namespace_info__()` returns: the standard's questions about tenfold itself."""

    def capabilities(self) -> dict[str, Any]:
        """Whether shapes may depend on data, and the most axes an array can have."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": MAX_AXES,
        }

    def default_device(self) -> str:
        """Return the device of arrays made without naming one."""
        return settings.checked_device(None)

    def devices(self) -> tuple[str, ...]:
        """Return the names of all devices."""
        return tuple(settings.DEVICE_IDS)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Dtype]:
        """Return the dtype of what is made without naming one, by kind; it is every device's."""
        settings.checked_device(device)
        names = {
            "real floating": "float64",
            "complex floating": "complex128",
            "integral": "int64",
            "indexing": "int64",
        }
        return {kind: DTYPES[name] for kind, name in names.items()}

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Dtype]:
        """Return the standard's dtypes by name: all, or those of a kind or of a tuple of kinds.

        The half types are ours beside the standard's, which asks for its own alone.
        """
        settings.checked_device(device)
        wanted = tuple(KINDS) if kind is None else kind
        standard = {name: dtype for name, dtype in DTYPES.items() if dtype not in HALF_DTYPES}
        return {name: dtype for name, dtype in standard.items() if isdtype(dtype, wanted)}


def namespace_info() -> NamespaceInfo:
    """Return what the standard's inspection API asks of this namespace.

    >>> import tenfold as tn
    >>> tn.__array_namespace_info__().capabilities()["max dimensions"]
    64
    """
    return NamespaceInfo()


STANDARD_NAMES: dict[str, Any] = {
    **API_CONSTANTS,
    "__array_api_version__": VERSION,
    "__array_namespace_info__": namespace_info,
    "can_cast": can_cast,
    "finfo": finfo,
    "iinfo": iinfo,
    "isdtype": isdtype,
    "result_type": result_type,
}
"""What the public namespace takes from here, by public name."""
