"""Kernels of segments: their loops, what is computed in packets, and launches that are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import SEGMENT_CHUNK, Kernel, KernelForm
from tenfold.errors import VerifyError
from tenfold.ops.segments import ragged_max, ragged_repeat, ragged_sum
from tenfold.schedule.buffer_extents import extents_of
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Launch, Schedule
from tenfold.schedule.target import DEFAULT
from tenfold.schedule.verify_kernel import verify_launch

ENTRIES, ROWS = 3 * 4096, 500


def planned(y: tn.Array) -> tuple[Schedule, Launch]:
    schedule = schedule_graph(Graph.of([_native.node_of(y)]))
    (launch,) = schedule.launches.values()
    return schedule, launch


def operands(*rest: int) -> tuple[tn.Array, tn.Array, tn.Array, tn.Array]:
    offsets = np.linspace(0, ENTRIES, ROWS + 1).astype(np.int32)
    indices = np.arange(ENTRIES, dtype=np.int32) % 40
    arrays = np.ones(ENTRIES), offsets, indices, np.ones((40, *rest))
    data, bounds, places, x = map(tn.asarray, arrays)
    return data, bounds, places, x


def product(*rest: int) -> tn.Array:
    data, bounds, places, x = operands(*rest)
    taken = tn.take(x, places, axis=0)
    return ragged_sum((data[:, None] if rest else data) * taken, bounds)


def kernel_of(y: tn.Array) -> Kernel:
    return planned(y)[1].kernel


def test_packets_go_along_columns() -> None:
    kernel = kernel_of(product(16))
    assert (kernel.form, kernel.traversal) == (KernelForm.SEGMENTS, "segments")
    assert (kernel.axes, kernel.folded, kernel.lanes) == (3, 1, 16)
    assert not kernel.cached_elements


def test_offsets_of_gathers_are_computed_in_packets() -> None:
    kernel = kernel_of(product())
    assert (kernel.axes, kernel.folded) == (2, 1)
    (offset,) = kernel.cached_elements
    assert [x.inputs[0] for x in kernel.body if x.name == "gather"][1] == offset


@pytest.mark.usefixtures("fused_multiply_add")
def test_elementary_functions_are_computed_in_packets() -> None:
    data, bounds, _, _ = operands()
    powers = tn.exp(data - ragged_repeat(ragged_max(data, bounds), bounds, ENTRIES))
    kernel = kernel_of(powers / ragged_repeat(ragged_sum(powers, bounds), bounds, ENTRIES))
    assert kernel.passes == 3
    assert [kernel.body[i].name for i in kernel.cached_elements] == ["exp"]


def test_sums_without_gathers_need_no_scratch_memory() -> None:
    data, bounds, _, _ = operands()
    assert kernel_of(ragged_sum(data * 2, bounds)).cached_elements == ()


@pytest.mark.parametrize("rest", [(), (16,)])
def test_units_have_as_many_rows_and_entries(rest: tuple[int, ...]) -> None:
    _, launch = planned(product(*rest))
    columns = int(np.prod(rest))
    part = launch.sizes[-2]
    assert part * columns == DEFAULT.work.segment_elements
    assert launch.units == -(-(ENTRIES + ROWS) // part)
    assert launch.elements == ENTRIES * columns


BROKEN: dict[str, Callable[[Launch], Launch]] = {
    "units, but": lambda launch: replace(launch, units=launch.units - 1),
    "scratch memory": lambda launch: replace(launch, scratch=8 * SEGMENT_CHUNK),
    "elements, but": lambda launch: replace(launch, elements=launch.elements + 1),
    "touches bytes": lambda launch: replace(
        launch, memory=tuple(m._replace(offset=m.offset + 8) for m in launch.memory)
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_launch_that_does_not_fit_is_refused(rule: str) -> None:
    schedule, launch = planned(product())
    extents: Any = extents_of(schedule)
    verify_launch(launch, extents)
    with pytest.raises(VerifyError, match=rule):
        verify_launch(BROKEN[rule](launch), extents)
