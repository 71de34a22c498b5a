"""Windows: sliding windows as views, as the columns of a matrix (im2col), and summed (col2im).

A sliding window is a view with overlapping strides, so a reduction over windows reads the array
itself and stores no columns. `col2im` is the exact adjoint of `im2col`: a fused sum over the
positions in a window (Chellapilla, Puri, Simard 2006, "High performance convolutional neural
networks for document processing").

>>> import tenfold as tn
>>> tn.sum(sliding_window_view(tn.arange(5), 3), axis=-1).tolist()
[3, 6, 9]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import slice_of, updated_slice
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, derived, movement
from tenfold.core.shape_rules import Shape, normalize_axis, product, whole_axes
from tenfold.dtypes import BOOL, INT64, compute_dtype
from tenfold.errors import IntegerError, ShapeError
from tenfold.ops.arithmetic import add
from tenfold.ops.assignment import set_at
from tenfold.ops.cast import convert
from tenfold.ops.create import zeros
from tenfold.ops.gathering import take
from tenfold.ops.index_parsing import constant_array
from tenfold.ops.indexing import index_view, slice_view
from tenfold.ops.movement import moveaxis, permute_dims
from tenfold.ops.pad import pad
from tenfold.ops.reshaping import reshape
from tenfold.ops.segment_sum import add_at

WindowLengths = int | Sequence[int]
Padding = int | Sequence[int | tuple[int, int]]


def _windows_shape(shape: Shape, window: Shape, axes: Shape) -> Shape:
    lengths = list(shape)
    for axis, length in zip(axes, window, strict=True):
        if length > lengths[axis]:
            rule = f"a window of {length} does not fit axis {axis} of shape {shape}"
            raise ShapeError("", rule, remedy="use a shorter window, or tn.pad the array")
        lengths[axis] -= length - 1
    return (*lengths, *window)


def _sum_of_windows(terms: Array, shape: Shape, window: Shape, axes: Shape) -> Array:
    """Return the sums of terms at the elements of an array that its windows show.

    An axis of the array that has several windows is summed over them one after the other.
    """
    for number in reversed(range(len(window))):
        axis, length = axes[number], window[number]
        terms = moveaxis(terms, axis, -2)
        earlier = sum_of_lengths(shape[axis], window[:number], axes[:number], axis)
        grid = WindowGrid((length,), (1,), (1,), ((0, 0),))
        sums = grid.sum_of_windows(window_part(terms), (earlier,))
        terms = moveaxis(sums, -1, axis)
    return terms


def sum_of_lengths(length: int, window: Shape, axes: Shape, axis: int) -> int:
    """Return how many positions an axis has after windows of these axes."""
    return length - sum([n - 1 for n, each in zip(window, axes, strict=True) if each == axis])


def _windows_strides(
    shape: Shape, strides: Sequence[int], window: Shape, axes: Shape
) -> tuple[int, ...]:
    return (*strides, *(strides[axis] for axis in axes))


@movement(
    shape=_windows_shape,
    view=True,
    strides=_windows_strides,
    sum_of_views=_sum_of_windows,
    numpy=(np.lib.stride_tricks.sliding_window_view,),
    batch_params=lambda _, window, axes: (window, tuple(axis + 1 for axis in axes)),
    samples=[
        SampleCall(((5,),), positional=(3,)),
        SampleCall(((4, 5),), positional=((2, 3),)),
        SampleCall(((3, 4),), {"axis": 0}, (2,)),
        SampleCall(((6,),), {"axis": (0, 0)}, ((2, 3),)),
        SampleCall(((0, 3),), {"axis": 1}, (3,)),
    ],
)
def sliding_window_view(
    x: Array, /, window_shape: WindowLengths, axis: int | Sequence[int] | None = None
) -> BoundCall:
    """Return the view of all windows of `x`: the result has an axis of positions for each axis of
    `x`, then an axis of `window_shape` for each of `axis` (all axes if None).

    An axis of n elements has n - window + 1 positions. Slices give strides and dilation: the
    windows of every second position are `view[::2]`. `view += e` adds each element of `e` to the
    element that it stands at, so one that several windows show gets several; other assignments are
    refused, for they have no order.

    Raises ShapeError for a window that is longer than its axis.

    >>> import tenfold as tn
    >>> tn.sliding_window_view(tn.asarray([1, 2, 3, 4]), 3).tolist()
    [[1, 2, 3], [2, 3, 4]]
    """
    x = array(x)
    window = lengths_of(window_shape, None, "window_shape", 0)
    requested = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(normalize_axis(each, x.ndim) for each in requested)
    if len(axes) != len(window):
        rule = f"{len(window)} lengths of a window do not fit {len(axes)} axes"
        raise ShapeError("", rule, remedy="give one length for each axis, or name the axes")
    return BoundCall((x,), (window, axes))


def lengths_of(value: Any, count: int | None, name: str, least: int = 1) -> Shape:
    """Return an int or a sequence of ints as a tuple, one int for each of `count` axes."""
    try:
        items = tuple(value) if isinstance(value, Sequence) else (value,) * (count or 1)
        lengths = tuple(operator.index(item) for item in items)
    except TypeError:
        rule = f"{name} {value!r} is not an int or a sequence of ints"
        raise IntegerError("", rule, remedy="give an int, or one for each axis") from None
    if count is not None and len(lengths) != count:
        rule = f"{name} {value!r} does not fit {count} axes"
        raise ShapeError("", rule, remedy="give an int, or one for each axis")
    if any(length < least for length in lengths):
        raise ShapeError("", f"{name} {value!r} is below {least}", remedy=f"use {least} or more")
    return lengths


class WindowGrid(NamedTuple):
    """Where windows stand on the last axes of an array: a number for each of those axes."""

    window: Shape
    """The elements of a window."""
    stride: Shape
    """The distance from a window to the next one."""
    dilation: Shape
    """The distance between the elements of a window."""
    padding: tuple[tuple[int, int], ...]
    """The positions before and after the array that windows cover as well."""

    @classmethod
    def parse(cls, window: Any, stride: Any, padding: Any, dilation: Any) -> WindowGrid:
        """Return the grid of the public arguments; `stride` None is the window."""
        lengths = lengths_of(window, None, "window")
        count = len(lengths)
        step = lengths if stride is None else lengths_of(stride, count, "stride")
        pairs = padding if isinstance(padding, Sequence) else (padding,) * count
        if len(pairs) != count:
            rule = f"padding {padding!r} does not fit {count} axes"
            raise ShapeError("", rule, remedy="give an int, or an int or a pair for each axis")
        ends = [lengths_of(pair, 2, "padding", 0) for pair in pairs]
        return cls(
            lengths,
            step,
            lengths_of(dilation, count, "dilation"),
            tuple([(before, after) for before, after in ends]),
        )

    @property
    def extent(self) -> Shape:
        """The elements from the first to the last one of a window."""
        return tuple([(k - 1) * gap + 1 for k, gap in zip(self.window, self.dilation, strict=True)])

    def positions(self, lengths: Sequence[int]) -> Shape:
        """Return how many windows stand on axes of these lengths."""
        counts: list[int] = []
        for length, extent, step, ends in zip(
            lengths, self.extent, self.stride, self.padding, strict=True
        ):
            free = length + ends[0] + ends[1] - extent
            if free < 0:
                rule = (
                    f"a window over {extent} elements does not fit {length} elements "
                    f"with padding {ends}"
                )
                raise ShapeError("", rule, remedy="use a smaller window, or more padding")
            counts.append(free // step + 1)
        return tuple(counts)

    def covering(self, lengths: Sequence[int]) -> WindowGrid:
        """Return the grid with padding behind, so that a last window may begin within the axis."""
        padding = []
        for length, extent, step, (before, after) in zip(
            lengths, self.extent, self.stride, self.padding, strict=True
        ):
            missing = -(length + before + after - extent) % step
            last = length + before + after + missing - extent  # where the last window begins
            covers = missing and last < length + before
            padding.append((before, after + missing if covers else after))
        return self._replace(padding=tuple(padding))

    def spatial(self, x: Array) -> Shape:
        """Return the lengths of the axes on which the windows stand: the last ones of `x`."""
        count = len(self.window)
        if x.ndim < count:
            rule = f"a window of {count} axes does not fit an array of {x.ndim}"
            raise ShapeError("", rule, remedy="give one length for each of the last axes")
        return x.shape[x.ndim - count :]

    def views(self, x: Array, fill: complex = 0) -> Array:
        """Return the windows: the shape of `x` with positions for its last axes, then the axes of
        a window. `fill` stands in the padding.
        """
        first = x.ndim - len(self.window)
        counts = self.positions(self.spatial(x))
        x = self.padded(x, fill)
        params = self.extent, tuple(range(first, x.ndim))
        windows: Array = _native.apply(sliding_window_view.id, (x,), params)
        picks = [*whole_axes(x.shape[:first])]
        picks += [(0, n, s if n > 1 else 1) for n, s in zip(counts, self.stride, strict=True)]
        picks += [
            (0, k, gap if k > 1 else 1) for k, gap in zip(self.window, self.dilation, strict=True)
        ]
        return index_view(windows, tuple(picks))

    def padded(self, x: Array, fill: complex) -> Array:
        """Return `x` with `fill` in the padding of its last axes."""
        if all(ends == (0, 0) for ends in self.padding):
            return x
        leading = ((0, 0),) * (x.ndim - len(self.window))
        return pad(x, leading + self.padding, constant_values=fill)

    def elements(self, x: Array, fill: complex) -> Iterator[Array]:
        """Yield for each element of a window the view of it in all windows, in row-major order."""
        counts = self.positions(self.spatial(x))
        x = self.padded(x, fill)
        leading = whole_axes(x.shape[: x.ndim - len(counts)])
        for at in np.ndindex(*self.window):
            picks = [
                (i * gap, n, step if n > 1 else 1)
                for i, gap, n, step in zip(at, self.dilation, counts, self.stride, strict=True)
            ]
            yield index_view(x, (*leading, *picks))

    def sum_of_windows(self, part: WindowPart, lengths: Shape) -> Array:
        """Return the sums, on axes of these lengths, of the elements of all windows.

        `part(at)` is the array (..., *positions) of the element `at` of all windows, `part(None)`
        that of all elements (..., *positions, *window). Each element of the result is a sum in
        row-major order of the positions in a window; of a long window axis by axis.
        """
        if product(self.window) > MAX_UNROLLED:
            return self._sum_by_axes(part(None), lengths)
        total: Array | None = None
        for at in np.ndindex(*self.window):
            term = part(at)
            dtype = _accumulation_dtype(term.dtype)
            if total is None:
                shape = (*term.shape[: term.ndim - len(lengths)], *lengths)
                total = zeros(shape, dtype=dtype, device=term.device)
            total = self._added(total, convert(term, dtype), at)
        assert total is not None, "a window has elements"
        return convert(total, _sum_dtype(part(None).dtype))

    def _added(self, total: Array, term: Array, at: Shape) -> Array:
        """Return the sums with one element of all windows added at the place of each."""
        leading = term.ndim - len(at)
        source, target = [[*whole_axes(x.shape[:leading])] for x in (term, total)]
        for i, position in enumerate(at):
            step, start = self.stride[i], position * self.dilation[i] - self.padding[i][0]
            first = -(start // step) if start < 0 else 0
            last = min(term.shape[leading + i], -((start - total.shape[leading + i]) // step))
            if first >= last:
                return total
            source.append((first, last - first, 1))
            target.append((start + first * step, last - first, step if last - first > 1 else 1))
        place = slice_of(target)
        sums = add(slice_view(total, place), index_view(term, tuple(source)))
        return _native.apply(set_at.id, (total, sums), updated_slice(place))

    def _sum_by_axes(self, windows: Array, lengths: Shape) -> Array:
        """Return the sums of windows (..., *positions, *window), one axis after the other."""
        result = convert(windows, _accumulation_dtype(windows.dtype))
        count = len(lengths)
        for i in reversed(range(count)):
            axis = result.ndim - count - 1
            positions, length = result.shape[axis], result.shape[-1]
            rows = moveaxis(result, (axis, -1), (0, 1))
            rows = reshape(rows, (positions * length, *rows.shape[2:]))
            targets = (
                np.arange(positions)[:, None] * self.stride[i]
                + np.arange(length) * self.dilation[i]
                - self.padding[i][0]
            ).reshape(-1)
            inside = np.flatnonzero((targets >= 0) & (targets < lengths[i]))
            if len(inside) < len(targets):
                rows = take(rows, constant_array(rows, inside), axis=0)
            start = zeros((lengths[i], *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
            sums = add_at(start, constant_array(rows, targets[inside]), rows)
            result = moveaxis(sums, 0, axis)
        return convert(result, _sum_dtype(windows.dtype))


WindowPart = Callable[[Shape | None], Array]
MAX_UNROLLED = 32
"""The longest window whose elements are terms of one expression, 3 to 17 times as fast."""


def _accumulation_dtype(dtype: np.dtype) -> np.dtype:
    return compute_dtype(_sum_dtype(dtype))


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    return INT64 if dtype == BOOL else dtype


def _grid_of(window: Any, options: Any) -> WindowGrid:
    return WindowGrid.parse(
        window, options.get("stride", 1), options.get("padding", 0), options.get("dilation", 1)
    )


def _im2col_reference(x: np.ndarray, window: Any, **options: Any) -> np.ndarray:
    """NumPy's windows of a padded array, one position after the other."""
    grid = _grid_of(window, options)
    count = len(grid.window)
    padded = np.pad(x, ((0, 0),) * (x.ndim - count) + grid.padding)
    counts = grid.positions(x.shape[x.ndim - count :])
    lead = x.shape[: x.ndim - count - 1]
    columns = []
    for at in np.ndindex(*counts):
        key: Any = [
            slice(p * s, p * s + e, d)
            for p, s, e, d in zip(at, grid.stride, grid.extent, grid.dilation, strict=True)
        ]
        columns.append(padded[(..., *key)].reshape(*lead, -1))
    return np.stack(columns, -1)


@derived(
    reference=_im2col_reference,
    samples=[
        SampleCall(((2, 5),), positional=(3,)),
        SampleCall(((2, 4, 5),), {"stride": (2, 1), "padding": (1, (0, 2))}, ((2, 3),)),
        SampleCall(((3, 1, 6, 5),), {"dilation": 2, "stride": 3}, ((2, 2),)),
    ],
)
def im2col(
    x: Array,
    /,
    window: WindowLengths,
    *,
    stride: WindowLengths = 1,
    padding: Padding = 0,
    dilation: WindowLengths = 1,
) -> Array:
    """Return the windows of images as columns: (..., c, *spatial) to (..., c * w, p).

    `window` has a length for each spatial axis; w is the product of them, p the number of
    positions, both in row-major order. `stride` is the distance of neighbouring windows,
    `dilation` that of the elements of a window; `padding` adds zeros at both ends of each axis, or
    a pair of numbers of them. A product of filters (f, c * w) with the columns is a convolution.

    Raises ShapeError for a window that does not fit.

    >>> import tenfold as tn
    >>> tn.im2col(tn.asarray([[1, 2, 3, 4]]), 2, stride=2).tolist()
    [[1, 3], [2, 4]]
    """
    x, grid = array(x), WindowGrid.parse(window, stride, padding, dilation)
    count = len(grid.window)
    first = x.ndim - len(grid.spatial(x))
    _require_channels(x, first)
    windows = grid.views(x)
    positions, inner = range(first, first + count), range(first + count, windows.ndim)
    rows = permute_dims(windows, (*range(first), *inner, *positions))
    shape = x.shape[: first - 1]
    columns = product(windows.shape[first : first + count])
    return reshape(rows, (*shape, x.shape[first - 1] * product(grid.window), columns))


def _require_channels(x: Array, first: int) -> None:
    if first < 1:
        rule = f"an array of {x.ndim} axes has no axis of channels"
        raise ShapeError("", rule, remedy="give it one of length 1: x[None]")


def _col2im_reference(columns: np.ndarray, shape: Any, window: Any, **options: Any) -> np.ndarray:
    """NumPy's sums at the indices that im2col reads."""
    grid = _grid_of(window, options)
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    channels = columns.shape[-2] // product(grid.window)
    image_shape = (*columns.shape[:-2], channels, *lengths)
    numbers = np.arange(1, product(image_shape) + 1).reshape(image_shape)
    places = _im2col_reference(numbers, window, **options)  # 0: in the padding
    sums = np.zeros(product(image_shape) + 1, columns.dtype)
    np.add.at(sums, places, columns)
    return sums[1:].reshape(image_shape)


@derived(
    reference=_col2im_reference,
    samples=[
        SampleCall(((6, 3),), positional=(5, 3)),
        SampleCall(((2, 12, 15),), {"stride": (2, 1), "padding": 1}, ((4, 5), (2, 3))),
        SampleCall(((3, 4, 4),), {"dilation": 2, "stride": 3}, ((6, 6), (2, 2))),
    ],
)
def col2im(
    columns: Array,
    /,
    shape: WindowLengths,
    window: WindowLengths,
    *,
    stride: WindowLengths = 1,
    padding: Padding = 0,
    dilation: WindowLengths = 1,
) -> Array:
    """Return images of the sums of columns: (..., c * w, p) to (..., c, *shape), the adjoint of
    `tn.im2col`.

    `shape` has the spatial lengths of the image; `window`, `stride`, `padding` and `dilation` are
    those of `tn.im2col`. An element that several windows show is the sum of theirs, in
    row-major order of the positions in a window; one that no window shows is 0; what stands in the
    padding is dropped. The dtype of `columns`, int64 for bool: small integers wrap, halves
    accumulate in float32.

    Raises ShapeError for columns that do not fit the image.

    >>> import tenfold as tn
    >>> tn.col2im(tn.asarray([[1, 2, 3], [10, 20, 30]]), 4, 2).tolist()
    [[1, 12, 23, 30]]
    """
    columns, grid = array(columns), WindowGrid.parse(window, stride, padding, dilation)
    count = len(grid.window)
    lengths = lengths_of(shape, count, "shape", 0)
    counts = grid.positions(lengths)
    size = product(grid.window)
    fits = columns.ndim >= 2 and columns.shape[-1] == product(counts)
    if not fits or columns.shape[-2] % size:
        rule = (
            f"columns of shape {columns.shape} are not windows of {size} elements "
            f"at {product(counts)} positions"
        )
        raise ShapeError("", rule, remedy="give what tn.im2col returns for images of that shape")
    *stack, rows, _ = columns.shape
    windows = reshape(columns, (*stack, rows // size, *grid.window, *counts))
    first = len(stack) + 1
    inner, positions = range(first, first + count), range(first + count, windows.ndim)
    windows = permute_dims(windows, (*range(first), *positions, *inner))
    return grid.sum_of_windows(window_part(windows), lengths)


def window_part(windows: Array) -> WindowPart:
    """Return the elements of windows (..., *positions, *window), for `sum_of_windows`.

    >>> import tenfold as tn
    >>> window_part(tn.asarray([[1, 2], [3, 4]]))((1,)).tolist()
    [2, 4]
    """

    def part(at: Shape | None) -> Array:
        if at is None:
            return windows
        return index_view(windows, (*whole_axes(windows.shape[: windows.ndim - len(at)]), *at))

    return part


__all__ = [
    "WindowGrid",
    "WindowPart",
    "col2im",
    "im2col",
    "lengths_of",
    "sliding_window_view",
    "window_part",
]
