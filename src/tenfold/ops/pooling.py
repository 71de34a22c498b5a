"""Pooling and nearest upsampling: reductions over windows, and their gradients.

A short window is a fused expression of its elements, so no columns are stored; a longer one is a
reduction over the sliding windows, which are a view.

>>> import tenfold as tn
>>> pool(tn.asarray([1, 5, 2, 4]), 2).tolist()
[5, 4]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import Shape, normalize_axis, product
from tenfold.dtypes import BOOL, FLOAT64, accumulator, compute_dtype, kind_of
from tenfold.errors import ShapeError
from tenfold.ops import reduce as reductions
from tenfold.ops.arange import arange
from tenfold.ops.arithmetic import add, divide
from tenfold.ops.cast import convert
from tenfold.ops.comparison import equal
from tenfold.ops.create import full, ones
from tenfold.ops.index_parsing import constant_array
from tenfold.ops.movement import expand_dims, moveaxis
from tenfold.ops.predicates import isnan, logical_and, logical_or
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.selection import maximum, minimum, where
from tenfold.ops.statistics import mean
from tenfold.ops.tile_repeat_roll import repeat_each
from tenfold.ops.windows import (
    MAX_UNROLLED,
    Padding,
    WindowGrid,
    WindowLengths,
    WindowPart,
    lengths_of,
)

PoolingAxes = int | Sequence[int] | None
POOLINGS = tuple([each.name for each in (reductions.max, reductions.min, reductions.sum, mean)])
MAX, MIN, SUM, MEAN = POOLINGS
TIES = ("first", "all")


def _grid_on(
    x: Array, window: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, mode: str
) -> WindowGrid:
    """Return the grid of a pooling on the last axes of `x`, each window with an element of `x`."""
    if mode not in POOLINGS:
        rule = f"mode {mode!r} is none of {', '.join(map(repr, POOLINGS))}"
        raise ShapeError("", rule, remedy="use one of them")
    grid = WindowGrid.parse(window, stride, padding, dilation)
    lengths = grid.spatial(x)
    if ceil_mode:
        grid = grid.covering(lengths)
    if any(not counts.all() for counts in _counts(grid, lengths)):
        rule = f"a window over {grid.extent} with padding {grid.padding} shows only padding"
        raise ShapeError("", rule, remedy="use less padding than a window has elements")
    return grid


def _counts(grid: WindowGrid, lengths: Shape) -> list[np.ndarray]:
    """Return for each axis how many elements of the array each window shows."""
    counts = []
    for i, (length, positions) in enumerate(zip(lengths, grid.positions(lengths), strict=True)):
        if grid.padding[i] == (0, 0):
            counts.append(np.full(positions, grid.window[i]))
            continue
        places = (
            np.arange(positions)[:, None] * grid.stride[i]
            + np.arange(grid.window[i]) * grid.dilation[i]
            - grid.padding[i][0]
        )
        counts.append(((places >= 0) & (places < length)).sum(1))
    return counts


def _mean_of(sums: Array, grid: WindowGrid, lengths: Shape) -> Array:
    """Return sums over the number of elements of the array that their window shows."""
    divisor: Any = 1
    for i, counts in enumerate(_counts(grid, lengths)):
        if (counts == counts[:1]).all():
            divisor = divisor * int(counts[0] if counts.size else 1)
            continue
        shape = (-1, *(1,) * (len(lengths) - 1 - i))
        column = reshape(constant_array(sums, counts), shape)
        divisor = convert(column, sums.dtype) * divisor
    return divide(sums, divisor)


def _outside(dtype: np.dtype, mode: str) -> complex:
    """Return what stands in the padding of an extreme; complex numbers are refused later."""
    kind = kind_of(dtype)
    if kind == "c":
        return 0
    if kind == "f":
        return -math.inf if mode == MAX else math.inf
    if kind == "b":
        return mode == MIN
    limits = np.iinfo(dtype)
    return int(limits.min if mode == MAX else limits.max)


def _extreme(x: Array, grid: WindowGrid, mode: str) -> Array:
    pairwise, reduction = {
        MAX: (maximum, reductions.max),
        MIN: (minimum, reductions.min),
    }[mode]
    return _reduced(x, grid, _outside(x.dtype, mode), pairwise, reduction)


def _reduced(
    x: Array, grid: WindowGrid, fill: complex, pairwise: Any, reduction: Callable[..., Array]
) -> Array:
    """Return a reduction over the elements of each window, in row-major order."""
    if product(grid.window) <= MAX_UNROLLED:
        result: Array = fold(pairwise, grid.elements(x, fill))
        return result
    count = len(grid.window)
    return reduction(grid.views(x, fill), axis=tuple(range(-count, 0)))


def _sums(x: Array, grid: WindowGrid) -> tuple[Array, np.dtype]:
    """Return sums in the dtype of the computation, and the dtype of the result."""
    result = accumulator(x.dtype)
    return _reduced(convert(x, compute_dtype(result)), grid, 0, add, reductions.sum), result


def _windows_last(x: Array, window: Any, axis: PoolingAxes) -> tuple[Array, tuple[int, ...]]:
    """Return a view of `x` with the pooled axes behind the others, and where they stood."""
    count = len(window) if isinstance(window, Sequence) else 1
    if axis is None:
        return x, tuple(range(-count, 0))
    requested = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    axes = tuple([normalize_axis(each, x.ndim) for each in requested])
    return moveaxis(x, axes, tuple(range(-len(axes), 0))), axes


def _restored(result: Array, axes: tuple[int, ...]) -> Array:
    last = tuple(range(-len(axes), 0))
    return result if axes == last else moveaxis(result, last, axes)


def _reference_grid(window: Any, options: dict[str, Any], lengths: Shape) -> WindowGrid:
    grid = WindowGrid.parse(
        window, options.get("stride"), options.get("padding", 0), options.get("dilation", 1)
    )
    return grid.covering(lengths) if options.get("ceil_mode") else grid


def _shown(grid: WindowGrid, at: Shape, lengths: Shape) -> Any:
    """Return the indices of the elements that a window shows."""
    places = [
        [p for p in range(i * s - b, i * s - b + e, d) if 0 <= p < n]
        for i, s, (b, _), e, d, n in zip(
            at, grid.stride, grid.padding, grid.extent, grid.dilation, lengths, strict=True
        )
    ]
    return np.ix_(*places)


def _pool_reference(x: np.ndarray, window: Any, **options: Any) -> np.ndarray:
    """NumPy's reduction of each window in turn, without what stands in the padding."""
    axis = options.get("axis")
    count = len(window) if isinstance(window, tuple) else 1
    axes = tuple(range(-count, 0)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    x = np.moveaxis(x, axes, range(-len(axes), 0))
    lengths = x.shape[x.ndim - len(axes) :]
    grid = _reference_grid(window, options, lengths)
    result = []
    for at in np.ndindex(*grid.positions(lengths)):
        function: Any = getattr(np, options.get("mode", MAX))
        result.append(
            function(x[(..., *_shown(grid, at, lengths))], axis=tuple(range(-len(axes), 0)))
        )
    stacked = np.stack(result, -1).reshape(*result[0].shape, *grid.positions(lengths))
    return np.asarray(np.moveaxis(stacked, range(-len(axes), 0), axes))


@derived(
    reference=_pool_reference,
    samples=[
        SampleCall(((6, 6),), positional=((2, 2),)),
        SampleCall(((2, 5, 7),), {"mode": SUM, "stride": 1}, ((3, 2),)),
        SampleCall(((2, 5, 7),), {"mode": MEAN, "ceil_mode": True, "padding": 1}, ((3, 2),)),
        SampleCall(((2, 9),), {"mode": MIN, "dilation": 2, "stride": 3}, (3,)),
        SampleCall(((2, 5, 3),), {"axis": 1, "stride": 1, "padding": 1, "mode": SUM}, (3,)),
        SampleCall(((3, 8, 9),), {"mode": MAX, "stride": 2, "padding": (3, 2)}, ((7, 6),)),
    ],
)
def pool(
    x: Array,
    /,
    window: WindowLengths,
    *,
    mode: str = MAX,
    stride: WindowLengths | None = None,
    padding: Padding = 0,
    dilation: WindowLengths = 1,
    ceil_mode: bool = False,
    axis: int | Sequence[int] | None = None,
) -> Array:
    """Return the maximum, minimum, sum or mean (`mode`) of each window of `x` on its last axes, or
    on `axis`, such as that of the channels.

    `window` has a length for each of these axes. `stride` is the distance of neighbouring windows,
    by default the window itself; `dilation` that of the elements of a window. Windows cover
    `padding` positions at both ends as well, or a pair of numbers of them; these have no elements,
    and a mean counts the elements that there are. The last window ends within the padded axis; with
    `ceil_mode` it only begins within the axis or the padding before it. Dtypes are those of the
    reductions; NaN propagates in all of them. Elements are combined in row-major order.

    Raises ShapeError for a window that does not fit or shows only padding.

    >>> import tenfold as tn
    >>> tn.pool(tn.asarray([[1, 5, 2], [4, 3, 6]]), (2, 2), stride=1).tolist()
    [[5, 6]]
    >>> tn.pool(tn.asarray([1.0, 5.0, 2.0]), 2, mode="mean", ceil_mode=True).tolist()
    [3.0, 2.0]
    """
    x, axes = _windows_last(array(x), window, axis)
    grid = _grid_on(x, window, stride, padding, dilation, ceil_mode, mode)
    if mode in (MAX, MIN):
        return _restored(_extreme(x, grid, mode), axes)
    if mode == MEAN and kind_of(x.dtype) not in "fc":
        x = convert(x, FLOAT64)
    sums, dtype = _sums(x, grid)
    if mode == MEAN:
        sums = _mean_of(sums, grid, grid.spatial(x))
    return _restored(convert(sums, dtype), axes)


class _Windowed(NamedTuple):
    """The windows of an array, and which of their elements are in the array."""

    x: Array
    grid: WindowGrid
    fill: complex

    def matches(self, element: Array, inside: Array | None, extreme: Array) -> Array:
        """Return where elements have the extreme value: NaN, where they have NaN."""
        found = equal(element, extreme)
        if kind_of(self.x.dtype) == "f":
            found = logical_or(found, isnan(element))
        return found if inside is None else logical_and(found, inside)

    def elements(self) -> list[tuple[Array, Array | None]]:
        """Return for each element of a window its view, and whether it is in the array."""
        views = [*self.grid.elements(self.x, self.fill)]
        inside = self.inside
        masks = [None] * len(views) if inside is None else self.grid.elements(inside, False)
        return [*zip(views, masks, strict=True)]

    def views(self) -> tuple[Array, Array | None]:
        """Return the windows, and whether their elements are in the array."""
        inside = self.inside
        mask = None if inside is None else self.grid.views(inside, False)
        return self.grid.views(self.x, self.fill), mask

    @property
    def inside(self) -> Array | None:
        """Ones for the elements of the array; None without padding."""
        if all(ends == (0, 0) for ends in self.grid.padding):
            return None
        return ones(self.grid.spatial(self.x), dtype=BOOL, device=self.x.device)

    def each(self, y: Array) -> Array:
        """Return an array of one element for each window, to broadcast with the windows."""
        return expand_dims(y, tuple(range(y.ndim, y.ndim + len(self.grid.window))))

    @property
    def numbers(self) -> Array:
        """The numbers of the elements of a window, in row-major order."""
        count = arange(product(self.grid.window), device=self.x.device)
        return reshape(count, self.grid.window)


def _of_all(windows: _Windowed, extreme: Array, gradient: Array) -> WindowPart:
    """Return the gradient at each element of a window that has the extreme value, else 0."""
    elements = dict(zip(np.ndindex(*windows.grid.window), windows.elements(), strict=True))

    def part(at: Shape | None) -> Array:
        if at is None:
            found = windows.matches(*windows.views(), windows.each(extreme))
            return where(found, windows.each(gradient), _ZERO)
        return where(windows.matches(*elements[at], extreme), gradient, _ZERO)

    return part


def _of_first(windows: _Windowed, extreme: Array, gradient: Array) -> WindowPart:
    """Return the gradient at the first element of a window with the extreme value, else 0."""
    window = windows.grid.window
    size = product(window)
    position: Array
    if size <= MAX_UNROLLED:
        position = full(extreme.shape, size, device=extreme.device)
        for number, element in reversed([*enumerate(windows.elements())]):
            position = where(windows.matches(*element, extreme), number, position)
    else:
        found = windows.matches(*windows.views(), windows.each(extreme))
        numbers: Any = windows.numbers
        position = reductions.min(where(found, numbers, size), axis=tuple(range(-len(window), 0)))

    def part(at: Shape | None) -> Array:
        if at is None:
            chosen = equal(windows.numbers, windows.each(position))
            return where(chosen, windows.each(gradient), _ZERO)
        return where(equal(position, int(np.ravel_multi_index(at, window))), gradient, _ZERO)

    return part


_ZERO: Any = 0


def _of_every(windows: _Windowed, gradient: Array) -> WindowPart:
    """Return the gradient at each element of a window."""

    def part(at: Shape | None) -> Array:
        if at is not None:
            return gradient
        return broadcast_to(windows.each(gradient), (*gradient.shape, *windows.grid.window))

    return part


def _unpool_reference(
    gradient: np.ndarray, x: np.ndarray, window: Any, ties: str = "first", **options: Any
) -> np.ndarray:
    """Each window in turn hands its gradient on."""
    mode = options.get("mode", MAX)
    count = len(window) if isinstance(window, tuple) else 1
    lengths = x.shape[x.ndim - count :]
    grid = _reference_grid(window, options, lengths)
    if mode == MEAN and kind_of(gradient.dtype) not in "fc":
        gradient = gradient.astype(FLOAT64)
    result = np.zeros(x.shape, gradient.dtype)
    for at in np.ndindex(*grid.positions(lengths)):
        part = _shown(grid, at, lengths)
        for lead in np.ndindex(*x.shape[: x.ndim - count]):
            values, value = x[lead][part], gradient[(*lead, *at)]
            if mode in (SUM, MEAN):
                share = value if mode == SUM else value / values.size
                result[lead][part] += share
                continue
            extreme = getattr(np, mode)(values)
            found = (values == extreme) | (values != values)
            if ties == "first":
                first = int(np.argmax(found))
                found = np.arange(found.size).reshape(found.shape) == first
            result[lead][part] += np.where(found, value, 0).astype(gradient.dtype)
    return result


@derived(
    reference=_unpool_reference,
    samples=[
        SampleCall(((3, 3), (6, 6)), positional=((2, 2),)),
        SampleCall(((2, 3, 6), (2, 5, 7)), {"mode": SUM, "stride": 1}, ((3, 2),)),
        SampleCall(
            ((2, 2, 4), (2, 5, 7)), {"mode": MEAN, "ceil_mode": True, "padding": 1}, ((3, 2),)
        ),
        SampleCall(((2, 5), (2, 9)), {"mode": MIN, "stride": 1, "dilation": 2}, (3,)),
        SampleCall(((2, 9), (2, 9)), {"ties": "all", "stride": 1, "padding": 1}, (3,)),
    ],
)
def unpool(
    gradient: Array,
    x: Array,
    /,
    window: WindowLengths,
    *,
    mode: str = MAX,
    stride: WindowLengths | None = None,
    padding: Padding = 0,
    dilation: WindowLengths = 1,
    ceil_mode: bool = False,
    axis: int | Sequence[int] | None = None,
    ties: str = "first",
) -> Array:
    """Return the gradient with respect to `x` of `tn.pool(x, window, ...)`, from the gradient with
    respect to its result.

    The element of a window that is its maximum, or minimum, gets the gradient of that window: with
    `ties="first"` the first such element in row-major order, with "all" each of them. For a NaN it
    is the first NaN, or each of them. A sum hands its gradient to all elements of the window, a
    mean divides it by their number. What an element gets of several windows is added, in row-major
    order of the positions in a window. The shape of `x` and the dtype of `gradient`; a mean of
    integers is float64.

    Raises ShapeError for a gradient that has not the shape of the result, and for other `ties`.

    >>> import tenfold as tn
    >>> x = tn.asarray([1.0, 5.0, 5.0, 2.0])
    >>> tn.unpool(tn.ones(2), x, 3, stride=1).tolist()
    [0.0, 2.0, 0.0, 0.0]
    >>> tn.unpool(tn.ones(2), x, 3, stride=1, ties="all").tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    if ties not in TIES:
        raise ShapeError("", f"ties {ties!r} are not 'first' or 'all'", remedy="use one of them")
    x, axes = _windows_last(array(x), window, axis)
    gradient, _ = _windows_last(array(gradient), window, axis)
    grid = _grid_on(x, window, stride, padding, dilation, ceil_mode, mode)
    lengths = grid.spatial(x)
    expected = (*x.shape[: x.ndim - len(lengths)], *grid.positions(lengths))
    if gradient.shape != expected:
        rule = f"a gradient of shape {gradient.shape} is not that of windows {expected}"
        raise ShapeError("", rule, remedy="give the shape of the pooled array")
    windows = _Windowed(x, grid, _outside(x.dtype, mode))
    if mode == MEAN:
        floating = gradient if kind_of(gradient.dtype) in "fc" else convert(gradient, FLOAT64)
        gradient = _mean_of(floating, grid, lengths)
    if mode in (SUM, MEAN):
        part = _of_every(windows, gradient)
    else:
        of_extreme = _of_first if ties == "first" else _of_all
        part = of_extreme(windows, _extreme(x, grid, mode), gradient)
    return _restored(grid.sum_of_windows(part, lengths), axes)


@derived(
    reference=lambda x, factor, axis=None: _repeat_reference(x, factor, axis),
    samples=[
        SampleCall(((3,),), positional=(2,)),
        SampleCall(((2, 3),), positional=(2,)),
        SampleCall(((2, 3, 4),), {"axis": (-2, -1)}, ((2, 3),)),
        SampleCall(((2, 0),), {"axis": 0}, (3,)),
    ],
)
def upsample_nearest(
    x: Array, factor: WindowLengths, /, *, axis: int | Sequence[int] | None = None
) -> Array:
    """Return `x` with each element repeated `factor` times along `axis`: one axis, several, or all
    if None. A sequence of factors has one for each of these axes.

    Its gradient is `tn.pool(gradient, factor, mode="sum")`. Raises ShapeError for a factor below 1.

    >>> import tenfold as tn
    >>> tn.upsample_nearest(tn.asarray([[1, 2]]), 2).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2]]
    """
    x = array(x)
    requested = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple([normalize_axis(each, x.ndim) for each in requested])
    factors = lengths_of(factor, len(axes), "factor")
    return _native.apply(repeat_each.id, (x,), (factors, axes))


def _repeat_reference(x: np.ndarray, factor: Any, axis: Any) -> np.ndarray:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    factors = factor if isinstance(factor, tuple) else (factor,) * len(axes)
    for each, count in zip(axes, factors, strict=True):
        x = np.repeat(x, count, each)
    return x
