"""Leaves: ndarrays of every dtype, many shapes and layouts, special values among plain ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import tenfold as tn

from .error_bounds import converted, kind
from .expression_draft import LARGEST, Draft

LAYOUTS = {
    "": lambda x: x,
    "[::2]": lambda x: np.repeat(x, 2, axis=0)[::2],
    "[::-1]": lambda x: x[::-1].copy()[::-1],
    ".T": lambda x: np.ascontiguousarray(x.T).T,
}
"""Layouts in memory that hold the same values."""


def literal(value: Any) -> str:
    """Nested lists of numbers as Python reads them; NaN and infinity are called nan and inf."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)


class Leaf(NamedTuple):
    """An ndarray, and the layout in which it is imported; or equal elements by `tn.full`."""

    values: np.ndarray
    layout: str = ""
    read_only: bool = False
    is_constant: bool = False

    @property
    def number(self) -> Any:
        """The element of a constant, as a Python number."""
        element = self.values.reshape(-1)[0]
        return float(element) if self.values.dtype.kind == "V" else element.item()

    @property
    def text(self) -> str:
        values = self.values
        if self.is_constant:
            return f"tn.full({values.shape}, {literal(self.number)}, dtype=tn.{values.dtype})"
        listed = values.astype(np.float32) if values.dtype.kind == "V" else values
        text = f"np.zeros({values.shape})" if 0 in values.shape else literal(listed.tolist())
        return f"tn.asarray({text}, dtype=tn.{values.dtype})"

    def imported(self) -> tn.Array:
        if self.is_constant:
            return tn.full(self.values.shape, self.number, dtype=self.values.dtype)
        values = LAYOUTS[self.layout](self.values.copy())
        if self.read_only:
            values.flags.writeable = False
        return tn.asarray(values)


def draw_leaf(draft: Draft) -> Leaf:
    """An array of 0 to 4 axes, mostly small; some long enough for each level of the sums' tree."""
    form = draft.integer(0, 9)
    shape: tuple[int, ...] = tuple(draft.integer(0, 5) for _ in range(draft.integer(0, 4)))
    if form == 0:
        shape = (draft.integer(30, LARGEST // 2),)
    elif form < 8:
        shape = tuple(max(length, 1) for length in shape)
    dtype = draft.dtype()
    generator = np.random.default_rng(draft.integer(0, 2**32 - 1))
    values = _values(draft.integer(0, 3), shape, dtype, generator)
    if draft.integer(0, 5) == 0 and values.size:
        return Leaf(np.full_like(values, values.reshape(-1)[0]), is_constant=True)
    layout = draft.choose(list(LAYOUTS)) if len(shape) else ""
    return Leaf(values, layout, draft.integer(0, 1) == 1)


def _values(
    form: int, shape: tuple[int, ...], dtype: np.dtype, generator: np.random.Generator
) -> np.ndarray:
    """Small whole numbers, fractions, numbers of any size, or special values among small ones."""
    values = generator.integers(-8, 9, shape).astype(np.float64)
    if form == 1:
        values = values / 8
    elif form == 2:
        values = generator.normal(size=shape) * 10.0 ** generator.integers(-4, 5, shape)
    if dtype.kind == "c":
        values = values + 1j * (np.flip(values) - 1)
    with np.errstate(all="ignore"):
        values = converted(np.abs(values) if kind(dtype) == "u" else values, dtype)
    if form == 3:
        specials = tn.testing.special_values(dtype)
        picked = generator.choice(specials, shape)
        values = np.where(generator.random(shape) < 0.3, picked, values).astype(dtype)
    return np.asarray(values)
