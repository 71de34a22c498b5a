"""Kernels are verified before they are compiled: every form passes, and planted mistakes are found.

A mistake is planted in a launch that is right: another size, another stride, less memory. Each must
be refused, by the rule that it breaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold._native import Array
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel, KernelStore
from tenfold.errors import VerifyError
from tenfold.schedule.buffer_extents import BufferExtent, extents_of
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Launch, Schedule
from tenfold.schedule.target import target_of
from tenfold.schedule.verify_kernel import verify_launch, verify_plan

Extents = dict[int, BufferExtent]


def ones(*shape: int, dtype: str = "float64") -> Array:
    return tn.asarray(np.ones(shape, dtype))


def planned(*arrays: Array) -> tuple[Graph, Schedule]:
    graph = Graph.of([_native.node_of(array) for array in arrays])
    return graph, schedule_graph(graph)


def launched(*arrays: Array) -> tuple[Launch, Extents]:
    """The last launch of a plan and the extents of its operands."""
    _, plan = planned(*arrays)
    launch = plan.steps[-1].launch
    assert launch is not None, "the last step is a kernel"
    return launch, extents_of(plan)


def normalized(x: Array) -> Array:
    """A row goes over its elements twice, and keeps what the first pass has computed."""
    return tn.exp(x) / tn.sum(tn.exp(x), axis=1)[:, None]


LENGTHS = (1, 2, 7, 16, 31, 32, 33, 64, 100, 1000, 1023, 1024, 1025, 2823, 4095, 4096, 4097, 70000)
FORMS: dict[str, Callable[[int, str], Array]] = {
    "map": lambda n, dtype: ones(n, dtype=dtype) + ones(n, dtype=dtype),
    "inner": lambda n, dtype: ones(3, n, dtype=dtype) * ones(n, dtype=dtype),
    "backwards": lambda n, dtype: ones(n, dtype=dtype)[::-1] + ones(n, dtype=dtype),
    "every second": lambda n, dtype: ones(2 * n, dtype=dtype)[::2] + ones(n, dtype=dtype),
    "every seventh, backwards": lambda n, dtype: ones(7 * n, dtype=dtype)[::-7] * 2,
    "strided rows": lambda n, dtype: ones(5, n + 3, dtype=dtype)[::-2, 1 : n + 1] * 2,
    "tiled": lambda n, dtype: ones(18, n, dtype=dtype) + ones(n, 18, dtype=dtype).T,
    "row": lambda n, dtype: tn.sum(ones(9, n, dtype=dtype), axis=1),
    "passes": lambda n, dtype: normalized(ones(9, n, dtype=dtype)),
    "split": lambda n, dtype: tn.sum(ones(n, dtype=dtype)),
    "column": lambda n, dtype: tn.sum(ones(n, 33, dtype=dtype), axis=0),
    "columns": lambda n, dtype: tn.sum(ones(5, n, dtype=dtype), axis=0),
    "search": lambda n, dtype: tn.argmax(ones(9, n, dtype=dtype), axis=1),
    "search parts": lambda n, dtype: tn.argmax(ones(n, dtype=dtype)),
    "scan": lambda n, dtype: tn.cumulative_sum(ones(40, n, dtype=dtype), axis=1),
    "scan of a row": lambda n, dtype: tn.cumulative_sum(ones(n, dtype=dtype)),
    "initial": lambda n, dtype: tn.cumulative_sum(ones(n, dtype=dtype), include_initial=True),
    "scan columns": lambda n, dtype: tn.cumulative_sum(ones(n, 20, dtype=dtype), axis=0),
    "triangle": lambda n, dtype: tn.tril(ones(3, n, dtype=dtype), k=-1),
    "repeated": lambda n, dtype: tn.repeat(ones(n, dtype=dtype), 3),
    "rolled": lambda n, dtype: tn.roll(ones(n, dtype=dtype), 5),
    "gathered": lambda n, dtype: tn.take(ones(n, dtype=dtype), tn.asarray([0, -1]) + 0),
    "scatter": lambda n, dtype: tn.segment_sum(ones(n, dtype=dtype), ids(n), 5),
    "scatter rows": lambda n, dtype: tn.add_at(ones(4, n, dtype=dtype), ids(3), 1),
    "put": lambda n, dtype: tn.put_at(ones(n, dtype=dtype), ids(2, 3), 1),
    "joined": lambda n, dtype: tn.concat([ones(n, dtype=dtype), ones(3, dtype=dtype)]),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex128"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_any_length_keeps_the_rules(form: str, dtype: str) -> None:
    if dtype == "complex128" and form.startswith("search"):
        pytest.skip("complex numbers have no order")
    for length in LENGTHS:
        launches = verify_plan(planned(FORMS[form](length, dtype))[1])
        assert launches or length == 1  # a scan of one element is a call


def test_long_rows_keep_the_rules() -> None:
    for length in ((1 << 18) + 1, 1 << 20, 3_000_001):
        x = ones(length, dtype="int8")
        for made in (tn.cumulative_sum(x), tn.argmax(x), tn.sum(x), x + x):
            assert verify_plan(planned(made)[1]) > 0


def a_map() -> tuple[Launch, Extents]:
    return launched(ones(40, 5000)[:, :4990] + ones(40, 5000)[:, 3:4993])


def a_line() -> tuple[Launch, Extents]:
    return launched(ones(5646, dtype="float32") * 2.5)


def a_reversed_map() -> tuple[Launch, Extents]:
    return launched(ones(100)[::-1] * 2.0)


def a_tiled_map() -> tuple[Launch, Extents]:
    return launched(ones(100, 200) + ones(200, 100).T)


def a_row() -> tuple[Launch, Extents]:
    return launched(normalized(ones(20, 100)))


def a_split_row() -> tuple[Launch, Extents]:
    return launched(tn.sum(ones(200_000)))


def a_column() -> tuple[Launch, Extents]:
    return launched(tn.sum(ones(5000, 300), axis=0))


def a_search() -> tuple[Launch, Extents]:
    return launched(tn.argmax(ones(200_000)))


def a_scan() -> tuple[Launch, Extents]:
    return launched(tn.cumulative_sum(ones(40, 100), axis=1))


def a_scan_in_parts() -> tuple[Launch, Extents]:
    return launched(tn.cumulative_sum(ones(300_000)))


def a_scan_of_columns() -> tuple[Launch, Extents]:
    return launched(tn.cumulative_sum(ones(100, 700), axis=0))


def a_gather() -> tuple[Launch, Extents]:
    return launched(tn.take(ones(50), tn.asarray([1, 2, 3]) + 0))


def ids(*shape: int) -> tn.Array:
    return tn.zeros(shape, dtype=tn.int64).wait()


def a_scatter() -> tuple[Launch, Extents]:
    return launched(tn.segment_sum(ones(100_000), ids(100_000), 50))


def a_row_scatter() -> tuple[Launch, Extents]:
    return launched(tn.segment_sum(ones(9, 40), ids(9), 5))


def sized(launch: Launch, name: str, value: int, operand: int = 0, axis: int = 0) -> Launch:
    """A launch with another value of one size."""
    sizes = [*launch.sizes]
    sizes[launch.kernel.sizes.index((name, operand, axis))] = value
    return replace(launch, sizes=tuple(sizes))


def moved(launch: Launch, number: int, **changes: object) -> Launch:
    """A launch with another memory of one operand."""
    memory = [*launch.memory]
    memory[number] = memory[number]._replace(**changes)
    return replace(launch, memory=tuple(memory))


def stepped(launch: Launch, number: int, steps: str) -> Launch:
    """A launch whose kernel steps through one operand otherwise."""
    operands = [*launch.kernel.operands]
    operands[number] = operands[number]._replace(steps=steps)
    return replace(launch, kernel=replace(launch.kernel, operands=tuple(operands)))


def with_kernel(launch: Launch, **changes: object) -> Launch:
    return replace(launch, kernel=replace(launch.kernel, **changes))


def swapped(launch: Launch, one: int, other: int) -> Launch:
    sizes = [*launch.sizes]
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return replace(launch, sizes=tuple(sizes))


def unguarded(launch: Launch) -> Launch:
    """A gather whose index is not looked at: its failure is no failure any more."""
    body = tuple(
        made._replace(name="convert") if made.name == "fail" else made
        for made in launch.kernel.body
    )
    return with_kernel(launch, body=body)


def of_other_operand(kernel: Kernel) -> tuple[KernelStore, ...]:
    return tuple(store._replace(operand=0) for store in kernel.stores)


Case = tuple[Callable[[], tuple[Launch, Extents]], Callable[[Launch], Launch], str]
PLANTED: dict[str, Case] = {
    "a part of no whole packets": (a_line, lambda x: sized(x, "part", 2823), "whole number of"),
    "a part of nothing": (a_map, lambda x: sized(x, "part", 0), "whole number of"),
    "a shorter part": (a_map, lambda x: sized(x, "part", 64), "units, but"),
    "one unit too few": (a_map, lambda x: replace(x, units=x.units - 1), "units, but"),
    "one unit too many": (a_map, lambda x: replace(x, units=x.units + 1), "units, but"),
    "one row too few": (a_row, lambda x: replace(x, units=x.units - 1), "units, but"),
    "one tile too many": (a_tiled_map, lambda x: replace(x, units=x.units + 1), "units, but"),
    "one column part too few": (a_column, lambda x: replace(x, units=x.units - 1), "units, but"),
    "ranges of no units": (a_map, lambda x: replace(x, grain=0), "ranges of 0"),
    "a stride one element off": (
        a_map,
        lambda x: sized(x, "stride", x.sizes[2] + 8, 0, 0),
        "steps 40008 bytes along loop 0",
    ),
    "memory one element wider": (
        a_map,
        lambda x: moved(sized(x, "stride", 40008, 0, 0), 0, strides=(40008, 8)),
        "touches bytes",
    ),
    "an offset before the buffer": (a_map, lambda x: moved(x, 0, offset=-8), "touches bytes -8"),
    "an offset too far on": (a_map, lambda x: moved(x, 1, offset=96), "touches bytes"),
    "a result behind its buffer": (a_line, lambda x: moved(x, 1, offset=4), "touches bytes"),
    "an offset within an element": (a_map, lambda x: moved(x, 0, offset=4), "not aligned"),
    "a step backwards gone forwards": (
        a_reversed_map,
        lambda x: stepped(x, 0, "1"),
        "steps 8 bytes along loop 0",
    ),
    "memory backwards from its first": (
        a_reversed_map,
        lambda x: moved(x, 0, offset=0),
        "touches bytes -792",
    ),
    "scratch of a row too small": (
        a_row,
        lambda x: replace(x, scratch=x.scratch - 65),
        "scratch memory",
    ),
    "scratch of a column too small": (
        a_column,
        lambda x: replace(x, scratch=x.scratch - 65),
        "scratch memory",
    ),
    "scratch of a tile too small": (
        a_tiled_map,
        lambda x: replace(x, scratch=x.scratch - 1),
        "scratch memory",
    ),
    "scratch of a scan too small": (
        a_scan,
        lambda x: replace(x, scratch=x.scratch - 65),
        "scratch memory",
    ),
    "scratch of scanned columns too small": (
        a_scan_of_columns,
        lambda x: replace(x, scratch=x.scratch - 65),
        "scratch memory",
    ),
    "too few slots": (a_column, lambda x: sized(x, "slots", 2), "2 slots"),
    "totals of a split row too small": (
        a_split_row,
        lambda x: replace(x, totals=tuple(size - 8 for size in x.totals)),
        "tables of",
    ),
    "no totals": (a_search, lambda x: replace(x, totals=x.totals[:1]), "tables of"),
    "totals of a scan too small": (
        a_scan_in_parts,
        lambda x: replace(x, totals=tuple(size - 8 for size in x.totals)),
        "tables of",
    ),
    "parts that begin within a packet of blocks": (
        a_scan_in_parts,
        lambda x: sized(x, "part", 12),
        "packets of blocks",
    ),
    "a row that is not finished": (a_split_row, lambda x: replace(x, finish=0), "finished"),
    "a part of a scan too few": (
        a_scan_in_parts,
        lambda x: replace(x, parts=x.parts - 1),
        "parts of rows",
    ),
    "a written broadcast": (
        a_map,
        lambda x: stepped(sized_out(x), 2, "01"),
        "written twice",
    ),
    "lengths swapped": (a_map, lambda x: swapped(x, 0, 1), "loops of lengths"),
    "strides swapped": (a_tiled_map, lambda x: swapped(x, 2, 3), "bytes along loop"),
    "a size missing": (a_map, lambda x: replace(x, sizes=x.sizes[:-1]), "sizes are read"),
    "lanes that are no power of two": (a_map, lambda x: with_kernel(x, lanes=24), "packets of 24"),
    "lanes of a row": (a_row, lambda x: with_kernel(x, lanes=16), "lanes at a time"),
    "a store to what is read": (
        a_line,
        lambda x: with_kernel(x, stores=of_other_operand(x.kernel)),
        "each by one store",
    ),
    "an index that is not looked at": (a_gather, unguarded, "gathers at offsets"),
    "an id that is not looked at": (a_scatter, unguarded, "scatters at offsets"),
    "a row that is not looked at": (a_row_scatter, unguarded, "scatters at offsets"),
    "no room for a chunk": (a_scatter, lambda x: replace(x, scratch=8000), "scratch memory"),
    "a part without a flag": (
        a_scatter,
        lambda x: replace(x, totals=(x.totals[0] - 8,)),
        "tables of",
    ),
    "elements of two parts": (a_scatter, lambda x: replace(x, units=x.units - 1), "units"),
    "fewer elements than loops": (a_map, lambda x: replace(x, elements=1), "1 elements"),
}


def sized_out(launch: Launch) -> Launch:
    """A launch of which all rows of the result lie at one place, and of which the sizes say so."""
    place = launch.kernel.sizes.index(("stride", 2, 0))
    sizes = (*launch.sizes[:place], *launch.sizes[place + 1 :])
    return moved(replace(launch, sizes=sizes), 2, strides=(0, 8))


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistake_is_found(name: str) -> None:
    right, plant, rule = PLANTED[name]
    launch, extents = right()
    verify_launch(launch, extents)
    with pytest.raises(VerifyError, match=rule):
        verify_launch(plant(launch), extents)


def in_place(offset: int, *, sequential: bool = False) -> tuple[Launch, Extents]:
    """A map that reads its operand `offset` elements after where it writes its result."""
    launch, extents = launched(ones(100)[2:98] * 2.0)
    read, written = launch.memory
    shared = extents[read.item]
    extents[written.item] = replace(shared, origin=shared.origin)
    memory = (read._replace(offset=16 + 8 * offset), written._replace(offset=16))
    return replace(launch, memory=memory, sequential=sequential), extents


def test_reading_the_cell_that_is_written_is_right() -> None:
    verify_launch(*in_place(0))


def test_reading_ahead_of_what_is_written_needs_one_thread() -> None:
    verify_launch(*in_place(1, sequential=True))
    with pytest.raises(VerifyError, match="of one buffer"):
        verify_launch(*in_place(1))


def test_reading_behind_what_is_written_is_refused() -> None:
    with pytest.raises(VerifyError, match="of one buffer"):
        verify_launch(*in_place(-1, sequential=True))


def test_fold_that_writes_over_what_it_reads_is_refused() -> None:
    launch, extents = launched(tn.sum(ones(20, 100), axis=1))
    read, written = launch.memory
    extents[written.item] = extents[read.item]
    with pytest.raises(VerifyError, match="of one buffer"):
        verify_launch(launch, extents)


def test_gather_from_what_is_written_is_refused() -> None:
    launch, extents = a_gather()
    written = next(memory for memory in launch.memory if memory.written)
    extents[written.item] = extents[launch.memory[1].item]
    with pytest.raises(VerifyError, match="gathered from"):
        verify_launch(launch, extents)


def test_two_results_in_one_place_are_refused() -> None:
    x = ones(100)
    launch, extents = launched(x + 1.0, x * 2.0)
    first, second = [memory.item for memory in launch.memory if memory.written]
    extents[second] = extents[first]
    with pytest.raises(VerifyError, match="of one buffer"):
        verify_launch(launch, extents)


def test_error_names_kernel_and_rule() -> None:
    launch, extents = a_line()
    with pytest.raises(VerifyError) as caught:
        verify_launch(replace(launch, units=0), extents)
    assert "0 units, but" in str(caught.value)
    assert "kernel of 1 axis, linear" in str(caught.value)
    assert isinstance(caught.value, AssertionError)


def test_option_verify_verifies_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold.schedule import passes

    seen: list[Schedule] = []

    def noted(each: passes.Pass, made: Schedule) -> None:
        if each.name == "buffers":
            seen.append(made)

    monkeypatch.setattr(passes, "verify_pass", noted)
    with tn.options(verify=False, verify_kernels=False):
        planned(ones(3) + 1)
    assert not seen
    for name in ("verify", "verify_kernels"):
        with tn.options(**{"verify": False, "verify_kernels": False, name: True}):
            planned(ones(3) + 1)
    assert len(seen) == 2


def test_index_of_columns_is_looked_at_before_it_is_read_by() -> None:
    """An index is the same all along the folded axis: it failed when all had been read."""
    index = tn.asarray(np.arange(64) % 10) + 0
    launch, _ = launched(tn.sum(ones(100, 64) * tn.take(ones(10), index), axis=0))
    assert launch.kernel.form == "column"
    lines = render(launch.kernel, target_of("x86-64-v4").simd).splitlines()
    fails = [number for number, line in enumerate(lines) if re.match(r" +ret i64 %", line)]
    pattern = r"llvm\.masked\.gather\.\w*f64"
    reads = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    assert max(fails) < min(number for number in reads if "call" in lines[number])


def test_index_out_of_bounds_of_columns_raises() -> None:
    index = tn.asarray(np.full(64, 10**12)) + 0
    made = tn.sum(ones(100, 64) * tn.take(ones(10), index), axis=0)
    with tn.options(tier="1"), pytest.raises(IndexError, match="out of bounds"):
        made.wait()


def test_window_that_goes_backwards_has_its_bytes_before_its_origin() -> None:
    launch, extents = launched(ones(4) * 2.0)
    read = launch.memory[0]
    backwards = moved(stepped(launch, 0, "-"), 0, strides=(-8,))
    extents[read.item] = replace(extents[read.item], origin=24)
    verify_launch(backwards, extents)
    extents[read.item] = replace(extents[read.item], origin=16)
    with pytest.raises(VerifyError, match="touches bytes -8 to 24"):
        verify_launch(backwards, extents)
