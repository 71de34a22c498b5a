"""Random structures: the same expression for leaves of any lengths.

Takes a seed, hands on a Structure: leaves whose axes have the lengths n, m and k, or 1, and what is
made of them, which `computed` does with Tenfold and `expected` with NumPy.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn

Lengths = Mapping[str, int]
SHAPES: Sequence[tuple[str, ...]] = (
    *(("n", "m"), ("n", "m"), ("n", "m"), ("m",), ("n",), ("n", "1"), ("1", "m"), ()),
    *(("m", "n"), ("k", "n", "m"), ("k", "1", "m")),
)
DTYPES = ("float64", "float64", "float32", "int64", "int32", "bool", "complex128", "uint8")
MOST_ELEMENTS = 200_000


class Leaf(NamedTuple):
    """A leaf: its axes, its dtype, and whether it is computed before, so that it may be taken."""

    axes: tuple[str, ...]
    dtype: str
    computed: bool


class Structure(NamedTuple):
    """Leaves, and operations with the numbers by which they choose operands and axes."""

    leaves: Sequence[Leaf]
    steps: Sequence[tuple[str, float, float, float]]
    outputs: int


def structure(seed: int, *, slices: bool = False) -> Structure:
    """Return the structure of a seed; with `slices`, of parts of its leaves."""
    source = random.Random(seed)
    names = [*STEPS, *SLICES, *SLICES] if slices else list(STEPS)
    leaves = [
        Leaf(source.choice(SHAPES), source.choice(DTYPES), source.random() < 0.3)
        for _ in range(source.randint(1, 4))
    ]
    steps = [
        (source.choice(names), source.random(), source.random(), source.random())
        for _ in range(source.randint(1, 9))
    ]
    return Structure(leaves, steps, source.randint(1, 3))


def values(made: Structure, lengths: Lengths, seed: int) -> list[np.ndarray]:
    """Return values for the leaves."""
    rng = np.random.default_rng(seed)
    found = []
    for leaf in made.leaves:
        x = rng.normal(size=tuple(lengths.get(axis, 1) for axis in leaf.axes)) * 3
        dtype = np.dtype(leaf.dtype)
        if dtype.kind in "iu":
            x = np.abs(x * 5)
        found.append(x > 0 if dtype.kind == "b" else x.astype(dtype))
    return found


def computed(made: Structure, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results of Tenfold, computed together."""
    leaves = [_leaf(*each) for each in zip(made.leaves, given, strict=True)]
    results, _ = _results(tn, made, leaves)
    del leaves
    tn.eval(*results)
    return [np.array(each) for each in results]


def expected(made: Structure, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results of NumPy; none where it refuses other steps, for their dtypes."""
    leaves = [
        _doubled(np, x) if leaf.computed else x for leaf, x in zip(made.leaves, given, strict=True)
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results, refused = _results(np, made, leaves)
    same = refused == _results(tn, made, [tn.asarray(each) for each in leaves])[1]
    return [np.asarray(each) for each in results] if same else []


def _leaf(leaf: Leaf, x: np.ndarray) -> Any:
    return _doubled(tn, tn.asarray(x)).wait() if leaf.computed else tn.asarray(x)


def _doubled(xp: Any, x: Any) -> Any:
    return xp.logical_not(x) if x.dtype == np.bool_ else x + x


def _axis(x: Any, choice: float) -> int:
    return int(choice * x.ndim)


def _softmax(xp: Any, x: Any) -> Any:
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def _running(xp: Any, x: Any, axis: int) -> Any:
    return np.cumsum(x, axis) if xp is np else tn.cumulative_sum(x, axis=axis)


def _cast(xp: Any, x: Any, choice: float) -> Any:
    dtype = ("float64", "float32", "int32", "bool")[int(choice * 4)]
    return x.astype(dtype) if xp is np else tn.astype(x, dtype)


STEPS: Mapping[str, Callable[[Any, Any, Any, float], Any]] = {
    "add": lambda xp, x, y, c: x + y,
    "multiply": lambda xp, x, y, c: x * y,
    "subtract": lambda xp, x, y, c: x - y,
    "larger": lambda xp, x, y, c: xp.maximum(x, y),
    "where": lambda xp, x, y, c: xp.where(x > y, x, y),
    "less": lambda xp, x, y, c: x < y,
    "negative": lambda xp, x, y, c: -x,
    "modulus": lambda xp, x, y, c: xp.abs(x),
    "floor": lambda xp, x, y, c: xp.floor(x),
    "twice": lambda xp, x, y, c: x * 2,
    "scaled": lambda xp, x, y, c: 1.5 - x * 0.3,
    "sum": lambda xp, x, y, c: xp.sum(x, axis=_axis(x, c), keepdims=c > 0.5),
    "sum of all": lambda xp, x, y, c: xp.sum(x, keepdims=c > 0.5),
    "largest": lambda xp, x, y, c: xp.max(x, axis=_axis(x, c)),
    "any": lambda xp, x, y, c: xp.any(x, axis=_axis(x, c)),
    "place": lambda xp, x, y, c: xp.argmax(x, axis=_axis(x, c)),
    "variance": lambda xp, x, y, c: xp.var(x, axis=_axis(x, c)),
    "softmax": lambda xp, x, y, c: _softmax(xp, x),
    "running": lambda xp, x, y, c: _running(xp, x, _axis(x, c)),
    "cast": lambda xp, x, y, c: _cast(xp, x, c),
    "axis first": lambda xp, x, y, c: x[None],
    "axis last": lambda xp, x, y, c: x[..., None],
    "turned": lambda xp, x, y, c: x.T,
}


SLICES: Mapping[str, Callable[[Any, Any, Any, float], Any]] = {
    "tail": lambda xp, x, y, c: x[1:],
    "head": lambda xp, x, y, c: x[..., :-1],
    "inside": lambda xp, x, y, c: x[2:-3] * 2,
    "backwards": lambda xp, x, y, c: x[::-1],
    "every second": lambda xp, x, y, c: x[..., ::2],
    "every third": lambda xp, x, y, c: x[::-3] + 1,
    "few": lambda xp, x, y, c: x[:5],
    "last few": lambda xp, x, y, c: x[..., -4:],
    "one": lambda xp, x, y, c: x[0],
    "last": lambda xp, x, y, c: x[..., -1],
    "steps": lambda xp, x, y, c: x[1:] - x[:-1],
    "beside": lambda xp, x, y, c: x[:, None, 1:] if x.ndim == 2 else x[1:, None],
    "sum of a part": lambda xp, x, y, c: xp.sum(x[1:], axis=_axis(x, c)),
}


def _results(xp: Any, made: Structure, leaves: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Carry out the steps; one that is refused, or would be large, is left out: return which."""
    found, refused = list(leaves), []
    for number, (name, first, second, choice) in enumerate(made.steps):
        x, y = (found[int(at * len(found))] if at < 0.6 else found[-1] for at in (first, second))
        if name in SLICES:  # of leaves, but seldom
            x = found[min(int(first * (len(leaves) + 0.3)), len(found) - 1)]
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
            if np.prod(shape, dtype=float) > MOST_ELEMENTS or (name == "turned" and x.ndim != 2):
                refused.append(number)
                continue
            found.append({**STEPS, **SLICES}[name](xp, x, y, choice))
        except (ValueError, TypeError, IndexError):
            refused.append(number)
    return found[len(leaves) :][-made.outputs :] or [found[0] + found[0]], refused
