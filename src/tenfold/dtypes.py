"""Dtypes: the table of element types, and type promotion as in NumPy 2.

Takes dtypes and Types (`weak` marks the Type of a Python scalar), returns NumPy dtype objects.

>>> promote_dtypes(DTYPES["int32"], DTYPES["float32"])
dtype('float64')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import ml_dtypes
import numpy as np

from tenfold import _native
from tenfold.errors import DTypeError, ForeignDTypeError

# Table.
DTYPES: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
"""The names again: NumPy computes `str(dtype)` anew each time."""
BOOL, INT64, FLOAT32, FLOAT64 = (DTYPES[n] for n in ("bool", "int64", "float32", "float64"))
FLOAT16, BFLOAT16 = DTYPES["float16"], DTYPES["bfloat16"]
COMPLEX64, COMPLEX128 = DTYPES["complex64"], DTYPES["complex128"]
HALF_DTYPES = (FLOAT16, BFLOAT16)
REAL_DTYPES = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
"""The dtype of the real and of the imaginary part of a complex one."""
PYTHON_TYPES = {bool: BOOL, int: INT64, float: FLOAT64, complex: COMPLEX128}


def kind_of(dtype: np.dtype) -> str:
    """Return 'b', 'i', 'u', 'f' or 'c'; bfloat16 is 'f', unlike its NumPy kind."""
    return "f" if dtype == BFLOAT16 else dtype.kind


for _dtype in DTYPES.values():
    _native.declare_dtype(_dtype, kind_of(_dtype), _dtype.itemsize)


class Typed(Protocol):
    """The properties of a Type that promotion needs."""

    @property
    def dtype(self) -> np.dtype:
        """Its element type."""

    @property
    def weak(self) -> bool:
        """Whether it is a Python scalar's."""


def canonical(dtype: object, operation: str = "dtype") -> np.dtype:
    """Return the dtype of the table for any dtype-like object. Raises DTypeError without one."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    if isinstance(dtype, type) and dtype in PYTHON_TYPES:
        return PYTHON_TYPES[dtype]
    if dtype is None:
        raise DTypeError(operation, "None is not a dtype", remedy="name one, as in tn.float32")
    try:
        native = np.dtype(dtype).newbyteorder("=")  # type: ignore[call-overload]  # any object
    except (TypeError, ValueError):
        native = None
    for candidate in DTYPES.values():
        if native is not None and native == candidate:
            return candidate
    raise ForeignDTypeError(
        operation,
        f"dtype {dtype!r} is none of {', '.join(DTYPES)}",
        remedy="convert the data to one of these first",
    )


@cache
def promote_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the dtype that holds both, as NumPy 2; bfloat16 follows float16's pattern.

    bfloat16 has 8 bits of precision: 8-bit integers stay, 16-bit ones need float32, wider float64.
    """
    if a == b:
        return a
    if BFLOAT16 not in (a, b):
        return np.result_type(a, b)
    other = b if a == BFLOAT16 else a
    if other == FLOAT16:
        return FLOAT32
    if kind_of(other) in "iu" and other.itemsize > 1:
        return FLOAT32 if other.itemsize == 2 else FLOAT64
    return BFLOAT16 if kind_of(other) in "biu" else other


class ScalarOperand(NamedTuple):
    """The dtype of an operand that is not an Array, and whether it is weak."""

    dtype: np.dtype
    weak: bool


def promotion_operand(value: Any) -> ScalarOperand:
    """Return the promotion properties of an array, a dtype, or a Python number (weak)."""
    if type(value) in PYTHON_TYPES:
        return ScalarOperand(PYTHON_TYPES[type(value)], True)
    return ScalarOperand(dtype_of(value), False)


def dtype_of(value: Any, operation: str = "dtype") -> np.dtype:
    """Return the dtype of an array, or the dtype itself, or raise DTypeError."""
    is_dtype = isinstance(value, (type, np.dtype, str))
    return canonical(value if is_dtype else getattr(value, "dtype", value), operation)


_ORDER = "biufc"


_WEAK_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def holds_weak(strong: np.dtype, weak: np.dtype) -> bool:
    """Whether an array of `strong` keeps its dtype with a Python scalar of `weak`'s kind."""
    return _WEAK_RANK[weak.kind] <= _WEAK_RANK[kind_of(strong)]


def _promote_weak(strong: np.dtype, weak: np.dtype) -> np.dtype:
    """Return the dtype of an array of `strong` with a Python scalar of `weak`'s kind."""
    if holds_weak(strong, weak):
        return strong
    if weak.kind == "c" and kind_of(strong) == "f":
        return COMPLEX128 if strong == FLOAT64 else COMPLEX64
    return weak


def promote(types: Iterable[Typed]) -> np.dtype:
    """Return the common dtype of arrays and Python scalars; scalars are weak, as in NumPy 2."""
    strong: np.dtype | None = None
    weak: np.dtype | None = None
    for type_ in types:
        if not type_.weak:
            strong = type_.dtype if strong is None else promote_dtypes(strong, type_.dtype)
        elif weak is None or _ORDER.index(type_.dtype.kind) > _ORDER.index(weak.kind):
            weak = type_.dtype
    if strong is None:
        return weak if weak is not None else FLOAT64
    return strong if weak is None else _promote_weak(strong, weak)


def to_floating(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which NumPy computes a floating function of `dtype`."""
    if kind_of(dtype) in "fc":
        return dtype
    return {1: FLOAT16, 2: FLOAT32}.get(dtype.itemsize, FLOAT64)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a sum or product of `dtype`: small integers widen, as in NumPy."""
    kind = kind_of(dtype)
    if kind in "bi":
        return INT64
    return DTYPES["uint64"] if kind == "u" else dtype


def compute_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums of `dtype` are accumulated: float32 for the half types."""
    return FLOAT32 if dtype in HALF_DTYPES else dtype


def real_part(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part of `dtype`; a real dtype is returned unchanged."""
    return REAL_DTYPES.get(dtype, dtype)


_SAME_KIND_RANK = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}


def same_kind(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy's same-kind rule lets `source` be assigned to `target`."""
    return _SAME_KIND_RANK[kind_of(source)] <= _SAME_KIND_RANK[kind_of(target)]


def dtype_names(dtypes: Sequence[np.dtype]) -> str:
    """Return dtypes as text for messages."""
    return ", ".join(str(dtype) for dtype in dtypes)
