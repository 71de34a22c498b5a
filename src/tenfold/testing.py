"""Testing helpers (`tn.testing`): bitwise and ULP comparison, special values, random arrays.

Takes Arrays, ndarrays or anything that `tn.asarray` accepts; raises AssertionError with the first
difference.

>>> import tenfold as tn
>>> tn.testing.assert_equal_bits(tn.asarray([1, 2]) * 2, [2, 4])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tenfold._native import Array
from tenfold.core.bitwise_equal import both_nan, different
from tenfold.core.cast_values import cast_values
from tenfold.core.pytree import flatten
from tenfold.core.shape_rules import Shape, checked_shape
from tenfold.dtypes import DTYPES, canonical, kind_of
from tenfold.errors import DTypeError
from tenfold.interop.asarray import asarray
from tenfold.transforms.derivatives import vjp
from tenfold.transforms.tangents import jvp

__all__ = [
    "all_dtypes",
    "assert_close",
    "assert_equal_bits",
    "check_gradients",
    "random_array",
    "special_values",
]


def all_dtypes(kinds: str = "biufc") -> tuple[np.dtype, ...]:
    """Return the dtypes tenfold has, of these kinds: bool, int, unsigned, floating, complex.

    >>> all_dtypes("fc")[:2]
    (dtype('float16'), dtype(bfloat16))
    """
    return tuple(dtype for dtype in DTYPES.values() if kind_of(dtype) in kinds)


def special_values(dtype: Any) -> np.ndarray:
    """Return the values of a dtype at which mistakes show, as (n,): limits, zeros of both signs,
    the smallest numbers, infinities, NaN; for complex every pair of some of them.

    >>> special_values("int8")
    array([-128, -127,   -1,    0,    1,  126,  127], dtype=int8)
    """
    dtype = canonical(dtype)
    kind = kind_of(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        numbers = {limits.min, limits.min + 1, -1, 0, 1, limits.max - 1, limits.max}
        return np.array(sorted(n for n in numbers if n >= limits.min), dtype)
    if kind == "c":
        components = [-np.inf, -1.5, -0.0, 0.0, 1.0, np.inf, np.nan]
        return np.array([complex(a, b) for a in components for b in components], dtype)
    return _special_floats(dtype)


def _special_floats(dtype: np.dtype) -> np.ndarray:
    limits = _limits(dtype)
    positive = [
        0.0,
        limits.smallest_subnormal,
        limits.smallest_normal,
        limits.eps,
        0.5,
        1.0,
        1.0 + float(limits.eps),
        3.0,
        limits.max,
        np.inf,
    ]
    values = np.array(positive, np.float64).astype(dtype)
    return np.concatenate((-values[::-1], values, np.array([np.nan], dtype)))


def random_array(shape: Shape | int, dtype: Any = "float64", *, seed: int = 0) -> Array:
    """Return an Array of random values, the same for the same seed: integers over the whole range
    of their dtype, floats (and parts of complex numbers) from a normal distribution of deviation 1.

    >>> random_array((2, 3), "uint8").shape
    (2, 3)
    """
    dtype = canonical(dtype)
    lengths = checked_shape(shape, dtype.itemsize)
    generator = np.random.default_rng(seed)
    kind = kind_of(dtype)
    values: np.ndarray
    if kind == "b":
        values = generator.integers(0, 2, lengths).astype(bool)
    elif kind in "iu":
        limits = np.iinfo(dtype)
        values = generator.integers(limits.min, limits.max, lengths, dtype, endpoint=True)
    else:
        values = generator.standard_normal(lengths)
        if kind == "c":
            values = values + 1j * generator.standard_normal(lengths)
        values = cast_values(np.asarray(values), dtype)
    return asarray(values)


def assert_equal_bits(actual: Any, desired: Any) -> None:
    """Raise AssertionError unless shapes, dtypes and every bit agree; any NaN equals any other.

    -0.0 differs from 0.0. A `desired` without a dtype, as a list of Python numbers, takes the dtype
    of `actual`.

    >>> assert_equal_bits(np.float32([0.0]), np.float32([-0.0]))
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 elements differ, first at (0,): 0.0 is not -0.0
    """
    actual_values, desired_values = _as_ndarrays(actual, desired)
    _raise_difference(actual_values, desired_values, different(actual_values, desired_values))


def assert_close(
    actual: Any, desired: Any, *, ulp: float = 0, rtol: float = 0, atol: float = 0
) -> None:
    """Raise AssertionError unless shapes and dtypes agree and every element is near enough.

    Near enough is within `ulp` units in the last place of the desired element (of its modulus for
    complex), or within `atol + rtol * |desired|`; NaN is near NaN, an infinity near itself.

    >>> assert_close(np.float32([1.0000001]), np.float32([1.0]), ulp=1)
    >>> assert_close([1.1], [1.0], rtol=0.01)
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 elements differ, first at (0,): 1.1 is not 1.0
    """
    actual_values, desired_values = _as_ndarrays(actual, desired)
    wide_dtype = np.complex128 if kind_of(actual_values.dtype) == "c" else np.longdouble
    with np.errstate(all="ignore"):
        x: Any = actual_values.astype(wide_dtype)
        y: Any = desired_values.astype(wide_dtype)
        size = np.abs(y)
        tolerance = np.maximum(ulp * _ulp(size, actual_values.dtype), atol + rtol * size)
        is_near = (np.abs(x - y) <= tolerance) & np.isfinite(size)
    _raise_difference(
        actual_values,
        desired_values,
        ~(is_near | (actual_values == desired_values) | both_nan(actual_values, desired_values)),
    )


def _ulp(size: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """One unit in the last place of numbers of these sizes."""
    if kind_of(dtype) in "biu":
        return np.ones(size.shape)
    limits = _limits(dtype)
    exponent = np.frexp(np.maximum(size, limits.smallest_normal))[1]
    return np.asarray(np.ldexp(np.longdouble(limits.eps), exponent - 1))


def _limits(dtype: np.dtype) -> Any:
    """Return `np.finfo` of a dtype, bfloat16 included."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # theirs


def _as_ndarrays(actual: Any, desired: Any) -> tuple[np.ndarray, np.ndarray]:
    actual_values = np.asarray(actual)
    open_dtype = not hasattr(desired, "dtype")
    desired_values = np.asarray(desired, dtype=actual_values.dtype if open_dtype else None)
    if actual_values.shape != desired_values.shape:
        raise AssertionError(f"shape {actual_values.shape} is not {desired_values.shape}")
    if actual_values.dtype != desired_values.dtype:
        raise AssertionError(f"dtype {actual_values.dtype} is not {desired_values.dtype}")
    return actual_values, desired_values


def _raise_difference(actual: np.ndarray, desired: np.ndarray, differs: np.ndarray) -> None:
    if not np.any(differs):
        return
    first = tuple(int(i) for i in np.argwhere(np.asarray(differs))[0])
    raise AssertionError(
        f"{np.count_nonzero(differs)} of {actual.size} elements differ, first at {first}: "
        f"{actual[first]} is not {desired[first]}"
    )


def check_gradients(
    function: Callable[..., Any],
    *primals: Any,
    order: int = 1,
    tolerance: float = 1e-6,
    step: float = 1e-5,
    seed: int = 0,
) -> None:
    """Check the derivatives of `function` at `primals`, trees of float64 or complex128 arrays.

    Along a random direction the vector-Jacobian product must equal the central difference of step
    `step`, relative to it up to `tolerance`, and the Jacobian-vector product up to 1e-10. With
    `order=2` those of the first derivative are checked as well. Raises AssertionError with both
    numbers.

    >>> import tenfold as tn
    >>> check_gradients(tn.sin, tn.asarray([0.5, 2.0]), order=2)
    """
    leaves, structure = flatten(primals)
    arrays = [np.asarray(leaf) for leaf in leaves]
    if any(x.dtype not in (np.float64, np.complex128) for x in arrays):
        rule = "central differences need float64 or complex128"
        raise DTypeError("check_gradients", rule, remedy="convert the primals with tn.astype")
    rng = np.random.default_rng(seed)
    direction = [_direction(rng, x) for x in arrays]

    def moved(distance: float) -> list[np.ndarray]:
        shifted = [x + distance * v for x, v in zip(arrays, direction, strict=True)]
        return _leaves(function(*structure.unflatten([asarray(x) for x in shifted])))

    tree = structure.unflatten([asarray(x) for x in arrays])
    value, pull = vjp(function, *tree)
    results, result_structure = flatten(value)
    cotangents = [_direction(rng, np.asarray(x)) for x in results]
    seeds = result_structure.unflatten([asarray(u) for u in cotangents])
    backward = _inner(_leaves(pull(seeds)), direction)
    tangents = structure.unflatten([asarray(v) for v in direction])
    forward = _inner(_leaves(jvp(function, tree, tangents)[1]), cotangents)
    above, below = moved(step), moved(-step)
    difference = (_inner(above, cotangents) - _inner(below, cotangents)) / (2 * step)
    scale = max(1.0, abs(difference))
    if not abs(backward - difference) <= tolerance * scale:
        raise AssertionError(f"vjp gives {backward!r}, the central difference {difference!r}")
    if not abs(forward - backward) <= 1e-10 * scale:
        raise AssertionError(f"jvp gives {forward!r}, vjp {backward!r}")
    if order > 1:

        def gradient(*arguments: Any) -> Any:
            return vjp(function, *arguments)[1](seeds)

        check_gradients(
            gradient, *tree, order=order - 1, tolerance=tolerance, step=step, seed=seed + 1
        )


def _direction(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Return random numbers of the shape and the dtype of `x`."""
    numbers = rng.standard_normal((2, *x.shape))
    return np.asarray(numbers[0] + 1j * numbers[1] if x.dtype.kind == "c" else numbers[0], x.dtype)


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


def _inner(x: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> float:
    """Return the real inner product of two lists of arrays."""
    return float(sum(np.vdot(a, b).real for a, b in zip(x, y, strict=True)))
