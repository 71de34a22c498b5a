"""Launch space: recomputes a launch's loop lengths and strides from its operands, for the verifier.

Takes a Launch, hands on the lengths of the loops and the strides that the kernel steps with. They
are recomputed from the space and the strides of the operands. They must equal the sizes and the
steps of the kernel: VerifyError names the first that does not.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> launch = schedule_graph(Graph.of([_native.node_of(x + tn.matrix_transpose(x))])).steps[0].launch
>>> space = loop_space(launch)
>>> space.lengths, sorted(space.strides)
((2, 2), [(8, 16), (16, 8), (16, 8)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenfold.core.loop_ir import SMALL_STEPS, Kernel, KernelForm, KernelOperand
from tenfold.core.shape_rules import product
from tenfold.core.strided_overlap import StridedRegion
from tenfold.errors import VerifyError
from tenfold.schedule.schedule_ir import Launch, UnorderedOperand

Strides = tuple[int, ...]


@dataclass(frozen=True)
class LaunchSpace:
    """The loops of a launch."""

    launch: Launch
    lengths: tuple[int, ...]
    strides: tuple[Strides, ...]
    """For each operand the bytes of one step of each loop."""
    part: int
    slots: int
    touched_lengths: tuple[tuple[int, ...], ...] = field(default=())
    """For each operand the lengths that are accessed: a scan with an identity writes one more."""

    @property
    def kernel(self) -> Kernel:
        """The kernel that is launched."""
        return self.launch.kernel

    def region(self, number: int, address: int = 0) -> StridedRegion:
        """Return the cells of an operand that the loops access, from an address on."""
        memory = self.launch.memory[number]
        shape, strides = self.touched_lengths[number], self.strides[number]
        return StridedRegion(address + memory.offset, shape, strides, memory.dtype.itemsize)


def violation(kernel: Kernel, rule: str) -> VerifyError:
    """Return the error for a rule that a kernel, or its launch, violates."""
    return VerifyError("verify", f"{rule}\n{kernel}")


def loop_space(launch: Launch) -> LaunchSpace:
    """Return the loops of a launch; raise VerifyError where sizes and memory differ."""
    kernel, sizes = launch.kernel, launch.sizes
    if len(sizes) != len(kernel.sizes):
        raise violation(kernel, f"{len(kernel.sizes)} sizes are read, {len(sizes)} are given")
    if len(launch.memory) != len(kernel.operands):
        raise violation(kernel, f"{len(launch.memory)} buffers for {len(kernel.operands)} operands")
    named_sizes = dict(zip(kernel.sizes, sizes, strict=True))
    lengths = tuple([named_sizes["length", axis, 0] for axis in range(kernel.axes)])
    if min(lengths) < 1 or product(lengths) != product(launch.space):
        raise violation(kernel, f"loops of lengths {lengths} for a space of {launch.space}")
    counted = lengths
    if kernel.form is KernelForm.SEGMENTS:  # an entry has one row
        counted = lengths[: kernel.folded - 1] + lengths[kernel.folded :]
    if launch.elements != product(counted):
        raise violation(kernel, f"{launch.elements} elements, but loops of lengths {lengths}")
    coalesced = _coalesced_axes(launch, lengths)
    strides = []
    for number, (memory, operand) in enumerate(zip(launch.memory, kernel.operands, strict=True)):
        if (memory.dtype, memory.written) != (operand.dtype, operand.written):
            raise violation(kernel, f"operand {number} is {operand}, its memory {memory}")
        strides.append(_strides(kernel, number, named_sizes, lengths))
        _refuse_other_strides(launch, number, strides[-1], coalesced)
    part_size, slots = named_sizes["part", 0, 0], named_sizes["slots", 0, 0]
    touched = tuple(
        [_touched_lengths(kernel, kernel_operand, lengths) for kernel_operand in kernel.operands]
    )
    return LaunchSpace(launch, lengths, tuple(strides), part_size, slots, touched)


def _coalesced_axes(launch: Launch, lengths: Sequence[int]) -> list[list[int]]:
    """The axes of the space that each loop coalesces, outer ones first."""
    if sorted(launch.order) != list(range(len(launch.space))):
        raise violation(launch.kernel, f"the order {launch.order} is not one of {launch.space}")
    axes = iter([axis for axis in launch.order if launch.space[axis] > 1])
    coalesced: list[list[int]] = []
    for length in lengths:
        coalesced.append([])
        while product(launch.space[axis] for axis in coalesced[-1]) < length:
            coalesced[-1].append(next(axes, -1))
            if coalesced[-1][-1] < 0:
                break
        if -1 in coalesced[-1] or product(launch.space[axis] for axis in coalesced[-1]) != length:
            raise violation(launch.kernel, f"loops of lengths {lengths} for a space {launch.space}")
    return coalesced


def _strides(
    kernel: Kernel,
    number: int,
    named_sizes: dict[tuple[str, int, int], int],
    lengths: Sequence[int],
) -> Strides:
    """The strides of the kernel."""
    operand = kernel.operands[number]
    return tuple(
        [
            named_sizes["stride", number, axis] if step == "s" else step_bytes(operand, step)
            for axis, (step, _) in enumerate(zip(operand.steps, lengths, strict=True))
        ]
    )


def step_bytes(operand: KernelOperand, step: str) -> int:
    """Return the bytes of a step that is a constant of the kernel."""
    if step in SMALL_STEPS:
        return int(step) * operand.dtype.itemsize
    return {"0": 0, "1": operand.dtype.itemsize, "-": -operand.dtype.itemsize}[step]


def _refuse_other_strides(
    launch: Launch, number: int, strides: Strides, coalesced: Sequence[Sequence[int]]
) -> None:
    """Refuse strides that differ from those of the operand's memory."""
    memory: UnorderedOperand = launch.memory[number]
    for loop, loop_axes in enumerate(coalesced):
        expected = strides[loop]
        for axis in reversed(loop_axes):
            if memory.strides[axis] != expected:
                rule = f"operand {number} steps {strides[loop]} bytes along loop {loop}"
                mismatch = f"its memory {memory.strides[axis]} along axis {axis}, not {expected}"
                raise violation(launch.kernel, f"{rule}, but {mismatch}")
            expected *= launch.space[axis]


def _touched_lengths(
    kernel: Kernel, operand: KernelOperand, lengths: tuple[int, ...]
) -> tuple[int, ...]:
    """The lengths of the accessed part of an operand."""
    if not (operand.written and kernel.form.is_scan):
        return lengths
    axis = len(lengths) - (2 if kernel.form is KernelForm.SCAN_COLUMNS else 1)
    initial_count = int(kernel.scan.initial_mode == "initial")
    return (*lengths[:axis], lengths[axis] + initial_count, *lengths[axis + 1 :])


__all__ = ["LaunchSpace", "loop_space", "step_bytes", "violation"]
