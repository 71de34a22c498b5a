"""External buffers (`tn.wrap`): Arrays over the caller's own memory, into which assignments write
at once.

Takes writeable buffers, hands on Arrays. Assignments to other Arrays are only recorded
(`view_writethrough.py`); here they change the memory. The right side is computed first, as a whole.
Readers of the old value, through this Array or one that overlaps it, then get a copy. Then the
memory changes.

>>> import numpy as np
>>> memory = np.zeros(4)
>>> x = wrap(memory)
>>> x[1:3] = 7
>>> memory
array([0., 7., 7., 0.])
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Type, Value
from tenfold.core.index_map import Slice
from tenfold.core.strided_overlap import StridedRegion, overlap
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import canonical
from tenfold.errors import DeviceError, DTypeError, RunError, ShapeError, message, raise_if_failed
from tenfold.interop import dlpack
from tenfold.interop.materialize import value_of
from tenfold.ops.cast import convert
from tenfold.ops.index_parsing import part_of_values
from tenfold.settings import checked_device
from tenfold.storage import dense
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

Values = np.ndarray[Any, Any]

BYTE = canonical("uint8")
PART_BYTES = 1 << 26
"""An expression of as many bytes is computed and written by parts of its rows, where it can be."""
MIN_SOURCE_BYTES = 1 << 20
"""The bytes of an array that such an expression reads by parts."""
SPARSE_FACTOR = 4
"""A strided copy that spans more than this times its elements' bytes is mapped page by page."""


PartWriter = Callable[[Array, Array, Values, Callable[[Any, Values], None], int], bool]
_part_writer: PartWriter


def set_part_writer(writer: PartWriter) -> None:
    """Set the function that writes large expressions by parts; called by `tenfold.out_of_core`."""
    global _part_writer
    _part_writer = writer


class OrphanedBuffer:
    """The readers of a window that has been freed.

    It keeps neither their Value nor the memory: with the last reader the memory goes.
    """

    __slots__ = ("memory", "number", "region", "type")

    def __init__(self, memory: dense.ExternalMemory, type_: Type, region: StridedRegion) -> None:
        self.memory = weakref.ref(memory, _forget_orphan)
        self.type, self.region = type_, region
        self.number = 0
        """Of the memory, by which native code finds it."""

    def is_alone(self) -> bool:
        """Whether no reader is left."""
        return not _native.is_watched(self.number)

    def detach_readers(self) -> None:
        """Give the readers a copy that does not change."""
        if (memory := self.memory()) is not None:
            _native.count("copies")
            _native.swap_watched_memory(self.number, _fixed_copy(memory, self.type, self.region))
            _forget_orphan(self.memory)


class Window:
    """The memory that a window Array writes to, the Value that reads it, and its strided region.

    When the Array is freed while others refer to the memory, native code lists its `orphan`.
    """

    __slots__ = ("__weakref__", "_array", "memory", "orphan", "owner", "region", "value")

    def __init__(self, memory: dense.ExternalMemory, value: Value, array: Array) -> None:
        self.memory, self.value = memory, value
        self.region, self.owner = region_of(memory.values), _memory_extent(memory.values)
        self.orphan = OrphanedBuffer(memory, value.type, self.region)
        self._array = weakref.ref(array)

    def is_alone(self) -> bool:
        """Whether only the window refers to the memory. Cached nodes of its views are dropped."""
        array = self._array()
        if array is not None:
            _native.invalidate_views(array)
        return _native.is_unshared(self.value, array)

    def detach_readers(self) -> None:
        """Give the other references to the Value a fixed copy, and the window a new Value."""
        array, type_ = self._array(), self.value.type
        copy = _fixed_copy(self.memory, type_, self.region)
        reader = _native.value_array(_window_value(self.memory, type_.device))
        _native.count("copies")
        _native.detach_readers(self, copy, reader, array)

    def refuse_resized(self) -> None:
        """Raise ValueError when the array that was wrapped has other memory by now."""
        if _memory_extent(self.memory.values) != self.owner:
            rule = "the array that was wrapped has been resized: its memory is gone"
            raise ValueError(message("assign", rule, remedy="wrap it anew"))


LiveBuffer = Window | OrphanedBuffer
# Both change in steps that no signal splits: calls of C.
_WINDOWS: set[weakref.ref[Window]] = set()
_ORPHANED: dict[weakref.ref[dense.ExternalMemory], OrphanedBuffer] = {}
_native.list_orphans(_ORPHANED)


def _forget_orphan(memory: weakref.ref[dense.ExternalMemory]) -> None:
    _ORPHANED.pop(memory, None)


def _overlapping_buffers(region: StridedRegion) -> list[LiveBuffer]:
    """Return the windows that overlap a region, and the readers of freed ones."""
    living = [window for reference in _WINDOWS.copy() if (window := reference()) is not None]
    buffers: list[LiveBuffer] = [*living, *_ORPHANED.copy().values()]
    first, last = region.range
    touched = []
    for buffer in buffers:
        if not buffer.region.empty:
            buffer_begin, buffer_end = buffer.region.range
            if (
                buffer_begin < last
                and first < buffer_end
                and not overlap(buffer.region, region).disjoint
            ):
                touched.append(buffer)
    return touched


def wrap(buffer: Any, /) -> Array:
    """Return a window on a writeable buffer: an Array whose assignments go into that memory.

    `buffer` is an ndarray of any strides, a memory map, a bytearray or what else lends its memory
    for writing, or DLPack on the CPU. `x[key] = e`, `x += e`, `tn.assign(x, e)` and assignments to
    views of it compute `e` and write at once; what fails raises there, and the memory is
    unchanged. Who used the old value keeps it, in a copy that is made then. Windows that overlap
    show each other's elements, and what is written straight into the buffer is seen by the next
    computation: between writing an expression and waiting for it, leave the buffer alone. An `e` of
    64 MiB or more that cannot fail is computed and written by parts of its rows, if it reads other
    memory, or in each row the same row of the buffer.

    Raises ValueError for a read-only buffer and for elements that are byte-swapped or misaligned,
    ShapeError for one that shows an element twice, DTypeError for a dtype that tenfold has not,
    DeviceError for memory that the CPU cannot read, TypeError for what lends no memory.

    >>> import tenfold as tn
    >>> import numpy as np
    >>> memory = np.arange(6.0)
    >>> evens = tn.wrap(memory[::2])
    >>> evens *= 10
    >>> memory.tolist()
    [0.0, 1.0, 20.0, 3.0, 40.0, 5.0]
    """
    values = _writeable_memory(buffer)
    dtype = dense.checked_dtype(values, "wrap")
    if values.dtype != dtype or not values.flags.aligned:
        raise ValueError(dense.copy_needed_text(values, dtype, "wrap"))
    values = values.view(np.ndarray)
    if not values.flags.writeable:
        raise _read_only_error()
    if _may_repeat(values):
        rule = f"an element of shape {values.shape}, strides {values.strides} may stand there twice"
        raise ShapeError("wrap", rule, remedy="wrap what it is a view of")
    EXTERNAL_BUFFER_LOCK.enabled = True
    memory = dense.ExternalMemory(values)
    device = checked_device(None, "wrap")
    if not _native.is_host_device(device):
        rule = f"a window is on memory of the host, which {device!r} does not compute in"
        raise DeviceError("wrap", rule, remedy=f"wrap it with tn.options(device={dense.HOST!r})")
    value = _window_value(memory, device)
    array = _native.value_array(value)
    window = Window(memory, value, array)
    _native.open_window(array, window)
    _WINDOWS.add(weakref.ref(window, _WINDOWS.discard))
    return array


def write_window(array: Array, part: Slice, value: Any) -> None:
    """Replace a slice of a window by an Array or a number.

    Raises what computing the value raises, and RunError in an operation that is just computed from
    what the window shows and in a function that is traced; then nothing has changed.
    """
    refuse_traced(array)
    window: Window = _native.window_of(array)
    window.refuse_resized()
    written = part_of_values(window.memory.values, *part)
    if not isinstance(value, Array):
        _write(array, written, np.full((), value, array.dtype), None)
        return
    value = convert(value, array.dtype)
    is_large = value.size * value.dtype.itemsize >= PART_BYTES and _native.node_of(value).pending
    write_part = _write_part(array, written)
    if is_large and _part_writer(value, array, written, write_part, MIN_SOURCE_BYTES):
        return
    _write(array, written, *_compute(value))


def _write_part(array: Array, written: Values) -> Callable[[Any, Values], None]:
    """Return the function that writes a part of a window."""
    return lambda key, values: _write(array, written[key], values, None)


def _write(array: Array, written: Values, values: Values, shared_value: Value | None) -> None:
    """Write values into memory of a window; readers of the old ones get a copy before."""
    region = region_of(written)

    def captured() -> list[LiveBuffer]:
        others = [window for window in _overlapping_buffers(region) if not window.is_alone()]
        if others and EXTERNAL_BUFFER_LOCK.is_reading():
            rule = "an operation assigns to a window whose value is just being computed from"
            raise RunError("assign", rule, [array], "assign before, or after, the wait")
        return others

    with EXTERNAL_BUFFER_LOCK.write_lock(lambda: not captured()):
        if shared_value is not None:
            _native.swap_elements(shared_value, dense.copy_to_pool(values, array.device))
        for other in captured():
            other.detach_readers()
        if values.size and not overlap(region_of(values), region).disjoint:
            values = values.copy()  # NumPy 2.4 does not in a[0:5:2] = a[0:3]
        np.copyto(written, values)


def refuse_traced(array: Array) -> None:
    """Raise RunError where a function is traced: it would write once, and not at each call."""
    if (trace := TRACE.get()) is not None:
        trace.waited = trace.assigned = True
        rule = "a function that is traced changes the memory of a window"
        remedy = "return the new value, and assign it where the function is called"
        raise RunError("assign", rule, [array], remedy)


def _compute(value: Array) -> tuple[Values, Value | None]:
    """Compute an Array; a part of a window's memory is not copied yet.

    Also return the Value of an Array that is not a view but shares a part of a window's memory, as
    `x[3]` does: a copy of that part is smaller than a copy of the whole window.
    """
    node = _native.node_of(value)
    raise_if_failed(pipeline.compute([node]))
    result = node.value()
    if result is None:
        return value_of(value), None  # which raises: a rule is being traced
    shares_window = (
        result.is_view and value.base is None and isinstance(result.owner, dense.ExternalMemory)
    )
    return dense.export(result), result if shares_window else None


def compute_before_writes(joined: Array, values: Sequence[Any]) -> None:
    """Compute the values of several writes before the first one; raise the failure of any.

    `joined` drops its reference to the old values, since the caller joins the new ones.
    """
    nodes = [_native.node_of(value) for value in values if isinstance(value, Array)]
    if nodes:
        raise_if_failed(pipeline.compute(nodes))
    type_ = _native.node_of(joined).type
    _native.rebind(joined, _native.node_of(_native.placeholder(type_)))


def region_of(values: Values) -> StridedRegion:
    """Return the strided memory region of an ndarray."""
    address = values.__array_interface__["data"][0]
    return StridedRegion(address, values.shape, values.strides, values.itemsize)


def _window_value(memory: dense.ExternalMemory, device: str) -> Value:
    """Return the Value of a window's memory."""
    values, region = memory.values, region_of(memory.values)
    begin, end = (region.address,) * 2 if region.empty else region.range
    strides = () if values.flags.c_contiguous else values.strides
    type_ = Type(values.shape, values.dtype, device, dense.DENSE)
    return Value.foreign(type_, begin, end - begin, strides, memory, region.address - begin)


def _fixed_copy(memory: dense.ExternalMemory, type_: Type, region: StridedRegion) -> Value:
    """Return a copy of a window's memory, laid out as it is, that nothing is written over in."""
    begin, end = region.range
    byte_count, source = end - begin, memory.values
    owner: Any
    if byte_count > SPARSE_FACTOR * source.nbytes + mmap.PAGESIZE:
        space = np.frombuffer(mmap.mmap(-1, byte_count), np.uint8)
        owner = (space,)
    else:
        owner = Value.allocate(Type((byte_count,), BYTE, type_.device, dense.DENSE), byte_count)
        space = np.frombuffer(memoryview(owner), np.uint8)
    offset = region.address - begin
    copy: Values = np.ndarray(source.shape, source.dtype, space.data, offset, source.strides)
    np.copyto(copy, source)
    address = space.__array_interface__["data"][0]
    return Value.foreign(type_, address, byte_count, source.strides, owner, offset)


def _memory_extent(values: Values) -> tuple[int, int]:
    """Return address and length of the memory that an ndarray, at the end, is a view of."""
    while isinstance(values.base, np.ndarray):
        values = values.base
    address: int = values.__array_interface__["data"][0]
    return address, values.nbytes


def _may_repeat(values: Values) -> bool:
    """Whether two indices may be one element: each stride must reach over the smaller ones."""
    if not values.size:
        return False
    reach = values.itemsize
    axes = zip(map(abs, values.strides), values.shape, strict=True)
    for stride, length in sorted((stride, length) for stride, length in axes if length > 1):
        if stride < reach:
            return True
        reach += stride * (length - 1)
    return False


class _WriteableView:
    """Memory that its producer lends for writing, where NumPy thinks that it is read-only."""

    def __init__(self, values: Values) -> None:
        self.values = values
        interface = values.view(f"V{values.itemsize}").__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _writeable_memory(buffer: Any) -> Values:
    """Return an ndarray over the memory of a writeable buffer."""
    if isinstance(buffer, np.ndarray):
        return buffer
    if isinstance(buffer, Array):
        rule = "an Array is tenfold's own, no memory of yours"
        raise TypeError(message("wrap", rule, [buffer], "assign to it as it is"))
    try:
        view = memoryview(buffer)
    except TypeError:
        if hasattr(buffer, "__dlpack__") and hasattr(buffer, "__dlpack_device__"):
            return _from_dlpack(buffer)
        rule = f"{type(buffer).__name__} lends no memory"
        raise TypeError(
            message("wrap", rule, remedy="import its values with tn.asarray(...)")
        ) from None
    if view.readonly:
        raise _read_only_error()
    try:
        return np.asarray(view)
    except ValueError as error:  # a format that NumPy does not know
        rule = f"{type(buffer).__name__} has elements that are not numbers: {error}"
        raise DTypeError("wrap", rule, remedy="convert them first") from None


def _from_dlpack(buffer: Any) -> Values:
    if dlpack.resolve_lazy(buffer) is not buffer:
        rule = "the tensor is conjugated or negated lazily: its memory holds other values"
        raise ValueError(message("wrap", rule, remedy="import it with tn.asarray(...)"))
    try:
        values, read_only = dlpack.import_dlpack(buffer)
    except DeviceError as error:
        raise error.renamed("wrap", ()) from None
    if read_only:
        raise _read_only_error()
    return (
        values if values.flags.writeable else np.asarray(_WriteableView(values)).view(values.dtype)
    )


def _read_only_error() -> ValueError:
    rule = "the buffer is read-only: nothing can be assigned into it"
    return ValueError(message("wrap", rule, remedy="import it with tn.asarray(...)"))
