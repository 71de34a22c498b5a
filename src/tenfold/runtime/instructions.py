"""Instructions of an executable: one frozen tuple for each class that native code replays.

Takes what the builder has decided, hands it on to the native Executable (`append_to`). A field that
is marked `FORMULA` may hold SymInts, where lengths are symbolic; native code then computes it for
other lengths (`native/exec/symbolic_executable.h`), and knows it by the same name.

>>> FORMULA_FIELDS[View]
{2: 'type', 3: 'strides', 4: 'offset'}
"""
# Annotations are read: they are no strings here.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple, get_args

import numpy as np

from tenfold._native import BlasLibrary, EntryPoint, Executable, Type, UseCounter, Value

FORMULA = object()
"""Marks a field of an instruction that may hold SymInts."""
ALL_WRITTEN = (1 << 64) - 1
BufferRef = tuple[int, int]
"""A slot and an offset in bytes; for the slot `Executable.ADDRESS`, the address of a function."""


class NodeScalar(NamedTuple):
    """A scalar of a launch: that of a node in the walk, cast to a dtype; or its imaginary part."""

    position: int
    dtype: np.dtype
    imaginary: bool


class Scale(NamedTuple):
    """A scalar of a product, as 16 bytes behind the numbers of its launch: an element, or with
    factors their product. A factor is a slot, or ~position of a scalar node.
    """

    element: bytes
    dtype: np.dtype
    negative: bool
    conjugated: bool
    factors: Sequence[int]


class ExtraWork(NamedTuple):
    """Multiply-adds that count for each nonzero float64 of `elements` that a launch leaves in a
    slot, from `offset` bytes on, `stride` bytes apart.
    """

    slot: int
    offset: int
    stride: int
    elements: int
    multiply_adds: int


class Load(NamedTuple):
    """Put the value of a node into a slot; of several results one of them."""

    slot: int
    position: int
    result: int


class Allocate(NamedTuple):
    """Put a new array into a slot; without strides it is in C order."""

    slot: int
    type: Annotated[Type, FORMULA]
    bytes: Annotated[int, FORMULA]
    strides: Annotated[Sequence[int], FORMULA]
    temporary: bool


class Share(NamedTuple):
    """Let a slot reuse the buffer of another in place, which loses the values of these nodes."""

    slot: int
    source: int
    donated: Sequence[int]


class View(NamedTuple):
    """Put a view of the array of another slot into a slot; the offset is in bytes."""

    slot: int
    source: int
    type: Annotated[Type, FORMULA]
    strides: Annotated[Sequence[int], FORMULA]
    offset: Annotated[int, FORMULA]


class LaunchKernel(NamedTuple):
    """Run all units of a kernel, then those of `finish`, which is of the same code."""

    kernel: EntryPoint
    finish: EntryPoint | None
    finish_units: Annotated[int, FORMULA]
    buffers: Annotated[Sequence[BufferRef], FORMULA]
    sizes: Annotated[Sequence[int], FORMULA]
    scratch: Annotated[int, FORMULA]
    """The bytes of a thread."""
    units: Annotated[int, FORMULA]
    grain: Annotated[int, FORMULA]
    threads: Annotated[int, FORMULA]
    uninterruptible: bool
    label: str
    source: int | None
    """The node in the walk that it computes, of several the last one."""
    numbers: Annotated[Sequence[int | NodeScalar], FORMULA] = ()
    """Scalars: the 64 bits of a constant, or that of a node."""
    scratch_tables: Annotated[Sequence[int], FORMULA] = ()
    """The bytes of memory for this launch alone, behind the buffers."""
    multiply_adds: Annotated[int, FORMULA] = -1
    """Of a product or driver, which counts as a call; -1 - n: a kernel with n of them."""
    scales: Sequence[Scale] = ()
    blas_libraries: Sequence[BlasLibrary] = ()
    """The libraries that have at most `blas_threads` threads while it runs."""
    blas_threads: int = 1
    extra_work: ExtraWork | None = None
    written: int = ALL_WRITTEN
    """By bit: the buffers that it may write; the last bit stands for those behind 63."""


class Call(NamedTuple):
    """Call a function of Python on Values and scalars; without a label it computes no operation.

    An input is a slot, or ~position of a scalar node.
    """

    function: Callable[..., Sequence[Value]]
    inputs: Sequence[int]
    outputs: Sequence[int]
    label: str = ""
    multiply_adds: int = 0
    temporary: bool = False
    """Whether its result is a temporary."""
    of_user: bool = False
    source: int | None = None
    """The node in the walk that it computes."""


class Drop(NamedTuple):
    """Free slots."""

    slots: Sequence[int]


class Publish(NamedTuple):
    """Give a node its value, which is in a slot; of several results one slot each."""

    position: int
    slots: Sequence[int]


class MarkPassedThrough(NamedTuple):
    """Record that the value of a node was computed and not stored."""

    position: int


class CountCopy(NamedTuple):
    """Count a copy."""


class CountUse(NamedTuple):
    """Count a use of an unoptimised program."""

    counter: UseCounter


_SlotInstruction = Load | Allocate | Share | View | Drop | Publish
ReplayInstruction = (
    _SlotInstruction | LaunchKernel | Call | MarkPassedThrough | CountCopy | CountUse
)
FORMULA_FIELDS: Mapping[type[ReplayInstruction], Mapping[int, str]] = {
    kind: {
        index: name
        for index, (name, annotation) in enumerate(kind.__annotations__.items())
        if FORMULA in getattr(annotation, "__metadata__", ())
    }
    for kind in get_args(ReplayInstruction)
}
"""For each class the fields that may hold SymInts: their indices and names."""


def append_to(executable: Executable, instructions: Iterable[ReplayInstruction]) -> None:
    """Append instructions to an executable."""
    for instruction in instructions:
        match instruction:
            case Load():
                executable.load(*instruction)
            case Allocate():
                executable.allocate(*instruction)
            case Share():
                executable.share(*instruction)
            case View():
                executable.view(*instruction)
            case LaunchKernel():
                executable.launch(*instruction)
            case Call():
                executable.call(*instruction)
            case Drop():
                executable.drop(*instruction)
            case Publish():
                executable.publish(*instruction)
            case MarkPassedThrough():
                executable.mark_passed_through(*instruction)
            case CountCopy():
                executable.count_copy()
            case _:  # CountUse: mypy refuses any other class that has no case
                executable.count_use(*instruction)
