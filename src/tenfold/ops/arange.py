"""Ranges (`arange`, `linspace`, grids): evenly spaced numbers, bit for bit NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.gather_rules import ResultIndex
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, derived, operation, refuse_derivative
from tenfold.core.scalar_ir import Body, Element
from tenfold.core.shape_rules import checked_shape, normalize_count
from tenfold.dtypes import DTYPES, FLOAT32, FLOAT64, canonical, kind_of
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.ops.create import default_dtype, number, number_of
from tenfold.ops.indexing import capture
from tenfold.ops.reshaping import broadcast_to
from tenfold.settings import checked_device


def _range_rule(types: tuple[Type, ...], *parameters: Any) -> Inferred:
    *_, length, dtype, _ = parameters
    return Inferred((((length,), dtype),), ())


def _arange_reference(
    start: Any, stop: Any, step: Any, repeat: int, length: int, dtype: np.dtype, device: str
) -> np.ndarray:
    return np.repeat(np.arange(start, stop, step, dtype=dtype), repeat)


_KERNEL_DTYPES = (FLOAT32, FLOAT64, *(DTYPES[n] for n in ("int32", "int64", "uint32", "uint64")))


def _arange_at(
    k: Body, at: ResultIndex, start: Any, stop: Any, step: Any, repeat: int, *params: Any
) -> Any:
    """As NumPy: the first two elements exactly, the others by the difference of these."""
    length, dtype, _ = params
    if repeat != 1 or length < 3 or dtype not in _KERNEL_DTYPES:
        return NotImplemented
    first_two = np.arange(start, start + 3 * step, step, dtype=dtype)[:2]
    if first_two.size < 2:
        return NotImplemented
    with np.errstate(all="ignore"):
        difference = first_two[1] - first_two[0]
    first, second, increment = (
        _runtime_constant(k, at, value) for value in (*first_two, difference)
    )
    element = first + k.convert(at[0], dtype) * increment
    return k.select(at[0] < 2, k.select(at[0] == 0, first, second), element)


def _runtime_constant(k: Body, at: ResultIndex, value: np.generic) -> Element:
    """A scalar kernel argument, bound at the launch."""
    if value.dtype.kind in "iu":
        return k.convert(at.number(int(value.astype(np.int64))), value.dtype)
    bits = int(np.float64(value).view(np.int64))
    return k.convert(k.bits(at.number(bits), FLOAT64), value.dtype)


@operation(
    rule_free=True,
    bind_depends_on="options",
    rule=_range_rule,
    param_names="start stop step repeat - dtype device",
    reference=_arange_reference,
    element_at=_arange_at,
    kind=Kind.VALUE,
    samples=[
        SampleCall((), positional=(5,)),
        SampleCall((), positional=(5, 0, -1)),
        SampleCall((), positional=(0.0, 1.0, 0.1)),
        SampleCall((), {"dtype": "float32"}, (2, 2)),
    ],
)
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    repeat: int = 1,
    dtype: Any = None,
    device: str | None = None,
) -> BoundCall:
    """Return the numbers from `start` (0 when only one is given) below `stop` in steps of `step`,
    each `repeat` times; without a dtype int64 for ints and float64 for floats.

    Length ceil((stop - start) / step), element i being start + i * d for the difference d of the
    first two as the dtype has them: NumPy's values, bit for bit. Raises OverflowError when an
    integer dtype cannot hold the first two numbers.

    >>> import tenfold as tn
    >>> tn.arange(5, 0, -1).tolist()
    [5, 4, 3, 2, 1]
    >>> tn.arange(3, repeat=2).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    first, last = (0, start) if stop is None else (start, stop)
    bounds = tuple(_real_scalar(value, "arange") for value in (first, last, step))
    result_dtype = default_dtype(bounds) if dtype is None else canonical(dtype, "arange")
    if kind_of(result_dtype) == "b":
        raise DTypeError("", "bool does not count", remedy="name a dtype of numbers")
    length = _length(*bounds)
    _refuse_out_of_range(bounds, length, result_dtype)
    repetitions = normalize_count(repeat, "repeat")
    (total,) = checked_shape((length * repetitions,), result_dtype.itemsize)
    count = repetitions if length else 0  # NumPy refuses to count to 2**63 even where nothing is
    return BoundCall((), (*bounds, count, total, result_dtype, checked_device(device)))


def _python_scalar(value: Any, operation: str) -> Any:
    """Return a bound as a Python number; a 0-d Array gives its value."""
    if isinstance(value, Array) and value.ndim == 0:
        refuse_derivative(value, operation)
        value = value.item()
    scalar = number(value, operation)
    return int(scalar) if isinstance(scalar, bool) else scalar


def _real_scalar(value: Any, operation: str) -> Any:
    scalar = _python_scalar(value, operation)
    if isinstance(scalar, complex):
        raise DTypeError(operation, f"{value} is not a real number", remedy="give ints or floats")
    return scalar


def _length(start: Any, stop: Any, step: Any) -> int:
    if step == 0:
        raise ShapeError("", "a step of 0 never arrives", remedy="give a step that is not 0")
    if all(isinstance(value, int) for value in (start, stop, step)):
        return max(0, -((start - stop) // step))
    steps = (stop - start) / step
    if not math.isfinite(steps):
        raise ShapeError(
            "", f"from {start} to {stop} by {step} has no length", remedy="use finite numbers"
        )
    return max(0, math.ceil(steps))


def _refuse_out_of_range(bounds: tuple[Any, ...], length: int, dtype: np.dtype) -> None:
    """The first two numbers must fit an integer dtype; the rest is counted in it, as in NumPy."""
    if kind_of(dtype) not in "iu":
        return
    start, _, step = bounds
    limits = np.iinfo(dtype)
    for value in (start, start + step)[:length]:
        if not int(limits.min) <= int(value) <= int(limits.max):
            rule = f"Python integer {int(value)} is out of bounds for {dtype}"
            raise OverflowError(message("arange", rule, (), "name a dtype that can hold it"))


def _linspace_reference(
    start: Any, stop: Any, endpoint: bool, length: int, dtype: np.dtype, device: str
) -> np.ndarray:
    return np.linspace(start, stop, length, endpoint=endpoint, dtype=dtype)


def _linspace_at(
    k: Body, at: ResultIndex, start: Any, stop: Any, endpoint: bool, *params: Any
) -> Any:
    length, dtype, _ = params
    if length < 2 or dtype not in (FLOAT32, FLOAT64):
        return NotImplemented
    with np.errstate(all="ignore"):
        step = (np.float64(stop) - np.float64(start)) / (length - 1 if endpoint else length)
    if step == 0:
        return NotImplemented  # NumPy divides first, for distances that are too small
    first, last, increment = (
        _runtime_constant(k, at, np.float64(value)) for value in (start, stop, step)
    )
    element = k.convert(at[0], FLOAT64) * increment + first
    if endpoint:
        element = k.select(at[0] == at.number(length - 1), last, element)
    return k.convert(element, dtype)


@operation(
    rule_free=True,
    bind_depends_on="options",
    rule=_range_rule,
    param_names="start stop endpoint num dtype device",
    reference=_linspace_reference,
    element_at=_linspace_at,
    kind=Kind.VALUE,
    samples=[
        SampleCall((), positional=(0, 1, 5)),
        SampleCall((), {"endpoint": False, "dtype": "float32"}, (1.5, -2, 7)),
        SampleCall((), positional=(0, 1j, 3)),
        SampleCall((), positional=(2, 3, 1)),
    ],
)
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> BoundCall:
    """Return `num` numbers at equal distances from `start` to `stop`, the last one included unless
    `endpoint` is False; without a dtype float64, or complex128 for complex bounds.

    Computed in float64 or complex128 and converted at the end: NumPy's values, bit for bit.

    >>> import tenfold as tn
    >>> tn.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    bounds = [_python_scalar(value, "linspace") for value in (start, stop)]
    default = default_dtype((*bounds, 1.0))
    result_dtype = default if dtype is None else canonical(dtype, "linspace")
    if kind_of(result_dtype) == "b" or (kind_of(default) == "c" and kind_of(result_dtype) != "c"):
        raise DTypeError(
            "",
            f"{result_dtype} cannot hold numbers from {start} to {stop}",
            remedy="name a dtype that can hold them",
        )
    (length,) = checked_shape((normalize_count(num, "num"),), result_dtype.itemsize)
    ends = (number_of(value, default, "linspace") for value in bounds)
    return BoundCall((), (*ends, bool(endpoint), length, result_dtype, checked_device(device)))


@derived(
    numpy=(np.meshgrid,),
    samples=[SampleCall(((2,), (3,))), SampleCall(((2,), (3,), (1,)), {"indexing": "ij"})],
)
def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Return for vectors of lengths n1, n2, ... an array each of the grid (n1, n2, ...) they span,
    with the vector's own value at each point. `indexing="xy"` puts the second axis first: (n2, n1,
    ...).

    Raises ShapeError for arrays of more than one axis.

    >>> import tenfold as tn
    >>> [grid.tolist() for grid in tn.meshgrid(tn.asarray([1, 2]), tn.asarray([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(
            "", f"indexing {indexing!r} is neither 'xy' nor 'ij'", remedy="use one of them"
        )
    vectors = [array(x) for x in arrays]
    for x in vectors:
        if x.ndim > 1:
            raise ShapeError(
                "", f"an array of {x.ndim} axes is not a vector", remedy="flatten it first"
            )
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = reversed(order[:2])
    lengths = tuple(vectors[position].size for position in order)
    return tuple(
        capture(broadcast_to(x, lengths, axis=order.index(position) if x.ndim else None))
        for position, x in enumerate(vectors)
    )
