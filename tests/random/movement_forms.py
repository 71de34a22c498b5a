"""The forms of movement: the same elements at other places; views where NumPy makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .error_bounds import Bounded, cast, common, moved
from .expression_draft import LARGEST, Draft, Name
from .expression_forms import ALL, Drawn, Form


def _moving(form: Callable[[Draft, Name, Bounded], tuple[str, Any] | None], view: bool) -> Form:
    """A form of one array: its text with the name, and NumPy's movement."""

    def draw(draft: Draft) -> Drawn | None:
        name = draft.array(ALL)
        made = None if name is None else form(draft, name, draft.value(name))
        if name is None or made is None:
            return None
        text, move = made
        return Drawn(text, (name,), lambda x: moved(x, move), view)

    return draw


def _slice_text(key: Any) -> str:
    if not isinstance(key, slice):
        return "..." if key is Ellipsis else repr(key)
    parts = ["" if part is None else str(part) for part in (key.start, key.stop, key.step)]
    return ":".join(parts if key.step is not None else parts[:2])


def _one_key(draft: Draft, length: int) -> Any:
    form = draft.integer(0, 3)
    if form == 0 and length:
        return draft.integer(-length, length - 1)
    if form == 1:
        return slice(None, None, draft.choose([None, -1, 2, -2]))
    bounds = (draft.choose([None, draft.integer(-length - 1, length + 1)]) for _ in range(2))
    return slice(*bounds, draft.choose([None, None, 1, -1, 2, 3, -3]))


def _indexed(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    keys = [_one_key(draft, length) for length in x.shape[: draft.integer(0, x.ndim)]]
    if draft.integer(0, 3) == 0:
        keys.insert(draft.integer(0, len(keys)), None)
    if draft.integer(0, 3) == 0:
        keys.append(Ellipsis)
    if not keys or x.ndim + keys.count(None) > 5:
        return None
    text = ", ".join(_slice_text(key) for key in keys)
    return f"{name}[{text}]", lambda v: v[tuple(keys)]


def _permuted(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any]:
    left, axes = list(range(x.ndim)), []
    while left:
        axes.append(left.pop(draft.integer(0, len(left) - 1)))
    return f"tn.permute_dims({name}, {tuple(axes)})", lambda v: np.transpose(v, axes)


def _reshaped(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any]:
    rest, shape = x.values.size, []
    while rest > 1 and len(shape) < 4 and draft.integer(0, 3):
        length = draft.choose([length for length in range(1, 13) if rest % length == 0])
        shape.append(length)
        rest //= length
    shape.append(-1 if x.values.size and draft.integer(0, 1) else rest)
    return f"tn.reshape({name}, {tuple(shape)})", lambda v: np.reshape(v, shape)


def _broadcast(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    shape = [draft.integer(0, 4) if length == 1 else length for length in x.shape]
    shape = [draft.integer(0, 3) for _ in range(draft.integer(0, 2))] + shape
    if len(shape) > 5 or np.prod(shape) > LARGEST:
        return None
    return f"tn.broadcast_to({name}, {tuple(shape)})", lambda v: np.broadcast_to(v, shape)


def _flipped(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any]:
    axis = draft.axes(x.ndim)
    # NumPy's flip of no axes is no view, but Tenfold's is.
    return f"tn.flip({name}, axis={axis})", lambda v: np.flip(v, axis) if v.ndim else v[...]


def _expanded(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    axis = draft.integer(-x.ndim - 1, x.ndim)
    if x.ndim > 4:
        return None
    return f"tn.expand_dims({name}, axis={axis})", lambda v: np.expand_dims(v, axis)


def _squeezed(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    ones = [axis for axis, length in enumerate(x.shape) if length == 1]
    if not ones:
        return None
    axis = draft.choose(ones)
    return f"tn.squeeze({name}, axis={axis})", lambda v: np.squeeze(v, axis)


def _swapped(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    if not x.ndim:
        return None
    a, b = draft.integer(-x.ndim, x.ndim - 1), draft.integer(0, x.ndim - 1)
    return f"tn.swapaxes({name}, {a}, {b})", lambda v: np.swapaxes(v, a, b)


def _diagonal(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    if x.ndim < 2:
        return None
    offset, axis = draft.integer(-3, 3), draft.integer(1, x.ndim - 1)
    text = f"tn.diagonal({name}, {offset}, 0, {axis})"
    return text, lambda v: np.diagonal(v, offset, 0, axis)


def _cropped(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any]:
    shape = tuple(draft.integer(0, length) for length in x.shape)
    starts = [(n - m) // 2 for n, m in zip(x.shape, shape, strict=True)]
    key = tuple(slice(start, start + m) for start, m in zip(starts, shape, strict=True))
    return f"tn.crop({name}, {shape})", lambda v: v[(*key, ...)]


def _padded(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    widths = [(draft.integer(0, 2), draft.integer(0, 2)) for _ in x.shape]
    shape = [a + n + b for n, (a, b) in zip(x.shape, widths, strict=True)]
    if not x.ndim or np.prod(shape) > LARGEST:
        return None
    return f"tn.pad({name}, {widths})", lambda v: np.pad(v, widths)


def _triangle(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    k = draft.integer(-2, 2)
    return (f"tn.tril({name}, {k})", lambda v: np.tril(v, k)) if x.ndim > 1 else None


def _parts(draft: Draft) -> Drawn | None:
    """The parts of complex numbers side by side, a view; the error of the modulus bounds both."""
    name = draft.array("c")
    if name is None or draft.value(name).ndim > 4:
        return None

    def part(x: Bounded) -> Bounded:
        real = x.values.real
        shape, strides = (*x.shape, 2), (*real.strides, real.itemsize)
        values = np.lib.stride_tricks.as_strided(real, shape, strides, writeable=False)
        return Bounded(values, np.broadcast_to(x.error[..., None], shape))

    return Drawn(f"tn.view_as_real({name})", (name,), part, view=True)


def _rolled(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any]:
    shift, axis = draft.integer(-5, 5), draft.axis(x.ndim)
    return f"tn.roll({name}, {shift}, axis={axis})", lambda v: np.roll(v, shift, axis)


def _repeated(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    count, axis = draft.integer(0, 3), draft.axis(x.ndim)
    if x.values.size * count > LARGEST:
        return None
    return f"tn.repeat({name}, {count}, axis={axis})", lambda v: np.repeat(v, count, axis)


def _tiled(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    counts = tuple(draft.integer(0, 3) for _ in range(draft.integer(1, 2)))
    if x.values.size * np.prod(counts) > LARGEST:
        return None
    return f"tn.tile({name}, {counts})", lambda v: np.tile(v, counts)


def _taken(draft: Draft, name: Name, x: Bounded) -> tuple[str, Any] | None:
    if not x.ndim or not all(x.shape):
        return None
    axis = draft.integer(0, x.ndim - 1)
    positions = [draft.integer(0, x.shape[axis] - 1) for _ in range(draft.integer(1, 5))]
    if x.values.size // x.shape[axis] * len(positions) > LARGEST:
        return None
    text = f"tn.take({name}, tn.asarray({positions}), axis={axis})"
    return text, lambda v: np.take(v, positions, axis)


def _joined(function: str, join: Callable[..., np.ndarray]) -> Form:
    def draw(draft: Draft) -> Drawn | None:
        first = draft.array(ALL)
        if first is None or not draft.value(first).ndim:
            return None
        shape = draft.value(first).shape
        fitting = [name for name, x in draft.arrays.items() if x.shape == shape]
        names = [first, *(draft.choose(fitting) for _ in range(draft.integer(0, 2)))]
        axis = draft.integer(-len(shape), len(shape) - 1)
        if len(shape) > 4 or draft.value(first).values.size * len(names) > LARGEST:
            return None

        def compute(*operands: Bounded) -> Bounded:
            dtype = common(*operands)
            given = [cast(x, dtype) for x in operands]
            return Bounded(
                join([x.values for x in given], axis), join([x.error for x in given], axis)
            )

        return Drawn(f"tn.{function}([{', '.join(names)}], axis={axis})", tuple(names), compute)

    return draw


def _masked(draft: Draft) -> Drawn | None:
    """A read by a mask computes at the call: its shape depends on values."""
    mask = draft.array("b", exact=True)
    if mask is None:
        return None
    shape = draft.value(mask).shape
    fitting = [name for name, x in draft.arrays.items() if x.shape == shape]
    name = draft.choose(fitting)
    return Drawn(
        f"{name}[{mask}]",
        (name, mask),
        lambda x, m: Bounded(x.values[m.values].copy(), x.error[m.values].copy()),
    )


MOVING: list[Form] = [
    _moving(_indexed, view=True),
    _moving(_indexed, view=True),
    _moving(_indexed, view=True),
    _moving(_permuted, view=True),
    _moving(_reshaped, view=True),
    _moving(_broadcast, view=True),
    _moving(_flipped, view=True),
    _moving(_expanded, view=True),
    _moving(_squeezed, view=True),
    _moving(_swapped, view=True),
    _moving(_diagonal, view=True),
    _moving(_cropped, view=True),
    _parts,
    _moving(_padded, view=False),
    _moving(_triangle, view=False),
    _moving(_rolled, view=False),
    _moving(_repeated, view=False),
    _moving(_tiled, view=False),
    _moving(_taken, view=False),
    _joined("concat", np.concatenate),
    _joined("stack", np.stack),
    _masked,
]
