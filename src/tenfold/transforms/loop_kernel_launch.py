"""Loop kernels: run small loop steps as one kernel with the loop inside.

Takes a Callee and the Values of a loop, replaces the carry by that after many steps. The kernel is
that of `schedule/loop_kernel.py`; its bits are those of steps computed one by one. A launch runs
65,536 steps at most, so that Ctrl-C ends an endless loop.

>>> import tenfold as tn
>>> tn.scan(lambda c, x: (c * 0.5 + x, None), 0.0, tn.ones((1000,)))[0].item()
2.0
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tenfold import _native, settings
from tenfold._native import EntryPoint, Type, Value
from tenfold.core.shape_rules import product
from tenfold.core.subgraph import Subgraph
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS
from tenfold.schedule.loop_kernel import LoopKernel, loop_kernel_of
from tenfold.schedule.target import Target
from tenfold.storage import dense

MIN_STEPS = 256
"""The steps of a loop whose kernel is worth compiling."""
MAX_STEPS = 1 << 16
"""The steps of one launch."""
LoopKernels = dict[tuple[int, int, bool, Target], LoopKernel | None]


class LoopArrays(NamedTuple):
    """The arrays of a loop besides the carry: rows of each step, captures, rows of results."""

    xs: Sequence[Value]
    captures: Sequence[Value]
    ys: Sequence[Value]


class CompiledLoop(NamedTuple):
    """A loop kernel and its program."""

    loop: LoopKernel
    program: EntryPoint

    def run(
        self, carry: list[Value], arrays: LoopArrays, steps: int, stops: int, *, reverse: bool
    ) -> None:
        """Run `steps` steps; they end before if the condition, the last carry, becomes false.

        Raises KeyboardInterrupt if the waiting thread is interrupted: `_native.times_stopped()` is
        no longer `stops`.
        """
        rows = [_rows(value) for value in (*arrays.xs, *arrays.ys)]
        inputs, outputs = rows[: len(arrays.xs)], rows[len(arrays.xs) :]
        captures = [_plain(value) for value in arrays.captures]
        first_values = [_plain(value) for value in carry]
        spare: list[Value] | None = None
        for first in range(0, steps, MAX_STEPS):
            last_values = spare or [_like(value) for value in first_values]
            count = min(MAX_STEPS, steps - first)
            step = steps - 1 - first if reverse else first
            buffers: list[Value | int] = [
                *first_values,
                *last_values,
                *(row.address(step) for row in inputs),
                *captures,
                *(row.address(step) for row in outputs),
            ]
            self._launch(buffers, count, [-row.stride if reverse else row.stride for row in rows])
            spare = first_values if first else None  # the first ones are the caller's
            first_values = last_values
            carry[:] = last_values
            if _native.times_stopped() != stops:
                raise KeyboardInterrupt
            if self.until and not is_true(carry[-1]):
                return

    @property
    def until(self) -> bool:
        """Whether the steps have a condition."""
        return self.loop.kernel.body[-1].name == "continue"

    def _launch(self, buffers: list[Value | int], steps: int, strides: list[int]) -> None:
        elements = product(self.loop.shape)
        units = -(-elements // self.loop.kernel.lanes)
        sizes = (steps, elements, *strides, 1, 0)
        data = struct.pack(f"{len(sizes)}q", *sizes)
        status = _native.launch(self.program, buffers, data, b"", 0, units, units, 1)
        assert status == 0, "a step does not fail for its values"


class _Rows(NamedTuple):
    """The rows of an array: the Value that has them, the first address and bytes from row to row.

    Those of results are in C order.
    """

    value: Value
    stride: int

    def address(self, row: int) -> int:
        """Return the address of a row."""
        return self.value.address + row * self.stride


def _rows(value: Value) -> _Rows:
    type_ = value.type
    row_bytes = product(type_.shape[1:]) * type_.dtype.itemsize
    if not value.strides:
        return _Rows(value, row_bytes)
    if len(type_.shape) == 1:
        return _Rows(value, value.strides[0])
    return _Rows(_plain(value), row_bytes)


def _plain(value: Value) -> Value:
    """Return a Value in C order whose own memory can be passed to a kernel."""
    if value.strides or value.is_view:
        return dense.copy_to_pool(dense.export(value), value.type.device)
    return value


def _like(value: Value) -> Value:
    type_ = value.type
    type_ = Type(type_.shape, type_.dtype, type_.device)
    return Value.allocate(type_, type_.size * type_.dtype.itemsize)


def is_true(value: Value) -> bool:
    """Whether a computed condition holds."""
    return bool(dense.export(value).item())


def loop_kernel_for(
    step: Subgraph, known: LoopKernels, counts: tuple[int, int], *, until: bool
) -> LoopKernel | None:
    """Return the kernel of a loop; None if its steps run one by one.

    `known` are the kernels of the step; `counts` those of carries and of rows. Options that
    look at each step, or change its operations, have none.
    """
    if not step.outputs or step.outputs[0].type.device != dense.HOST:
        return None
    if settings.inspects() or settings.get("fast") or not settings.get("fuse"):
        return None
    target = host_target()
    key = (*counts, until, target)
    if key not in known:
        known[key] = loop_kernel_of(step, *counts, target, until=until)
    return known[key]


def compiled_loop(loop: LoopKernel, steps: int) -> CompiledLoop | None:
    """Return the kernel of a loop of `steps` steps; None if they are too few to compile one."""
    kernel, cpu = loop.kernel, host_target().processor
    if steps < MIN_STEPS and PROGRAMS.by_kernel.get((kernel, cpu)) is None:
        return None
    elements = steps * product(loop.shape)
    program = PROGRAMS.of(kernel, elements, str(settings.get("tier")), cpu)
    return CompiledLoop(loop, program.kernel)


__all__ = [
    "MIN_STEPS",
    "CompiledLoop",
    "LoopArrays",
    "LoopKernels",
    "compiled_loop",
    "is_true",
    "loop_kernel_for",
]
