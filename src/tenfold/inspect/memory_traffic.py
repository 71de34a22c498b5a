"""Memory traffic: the bytes that a kernel must move, and those that its loops move.

Takes a Launch, hands on bytes. A kernel *must* read each needed element once and write each result
once. Its loops move more where an operand is read at two offsets or in several passes; repeated
reads that are near in time hit the cache.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> from tenfold.inspect.snapshot import Snapshot
>>> x = tn.asarray([1.0, 2.0, 4.0])
>>> plan = Snapshot(pipeline.graph_of([x[1:] - x[:-1]])).plan
>>> required_bytes(plan, plan.steps[0].launch), loop_bytes(plan.steps[0].launch)
(40, 48)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel, operand_of
from tenfold.core.shape_rules import product
from tenfold.schedule.schedule_ir import Buffer, Launch, Schedule, Step


def required_bytes(plan: Schedule, launch: Launch) -> int:
    """Return the bytes that a launch reads and writes, each element once."""
    total, elements_read = 0, Counter[int]()
    for memory, elements in zip(launch.memory, elements_touched(launch), strict=True):
        if memory.written:
            total += elements * memory.dtype.itemsize
        else:
            elements_read[memory.item] += elements
    for item, elements in elements_read.items():
        total += min(elements, plan.items[item].size) * plan.items[item].dtype.itemsize
    return total


def peak_memory(plan: Schedule, graph: Graph) -> int:
    """Return the most bytes of results and temporaries that are allocated at one time.

    Inputs and the scratch memory of kernels are not counted. A view shares the buffer of its base,
    and a result that reuses the buffer of a dead operand shares that one. All results of one call
    count until the last of them is dead.
    """
    buffers: dict[int, int] = {}
    sizes: dict[int, int] = {}
    reused_buffers, live = dict(plan.reused_buffers), Counter[int]()
    peak = 0
    for step, dead_items in zip(plan.steps, plan.last_use, strict=True):
        for result in step.results:
            if result.item in buffers:
                continue  # another part in the same buffer
            base = _buffer_of(step, result.item, reused_buffers)
            buffers[result.item] = buffers.get(base, base)
            if base == result.item:
                sizes[base] = _allocated_bytes(graph, step, result)
            live[buffers[result.item]] += 1
        peak = max(peak, sum(sizes.get(buffer, 0) for buffer in +live))
        live.subtract(Counter(buffers[item] for item in dead_items if item in buffers))
    return peak


def _allocated_bytes(graph: Graph, step: Step, result: Buffer) -> int:
    """The bytes of the results of a step."""
    types = graph.nodes[step.position].types if step.kind == "call" else ()
    return sum(type_.size * type_.dtype.itemsize for type_ in types) or result.nbytes


def _buffer_of(step: Step, item: int, over: Mapping[int, int]) -> int:
    """The item whose buffer a result uses: itself where it has its own."""
    if step.kind in ("alias", "part"):
        return step.reads[0]
    return over.get(item, item)


def loop_bytes(launch: Launch) -> int:
    """Return the bytes that the loops of a launch load and store, without scratch memory."""
    loads = loads_of(launch.kernel)
    return sum(
        (1 if memory.written else loads[number]) * touched * memory.dtype.itemsize
        for number, (memory, touched) in enumerate(
            zip(launch.memory, elements_touched(launch), strict=True)
        )
    )


def elements_touched(launch: Launch) -> list[int]:
    """Return for each operand how many elements the loops access."""
    kernel, lengths = launch.kernel, loop_lengths(launch)
    axes = [
        {axis for axis, step in enumerate(operand.steps) if step != "0"}
        for operand in kernel.operands
    ]
    varying_axes = _axes_of(kernel)
    for instruction in kernel.body:
        if instruction.name == "gather":
            axes[operand_of(instruction)] |= varying_axes[instruction.inputs[0]]
    return [product(lengths[axis] for axis in operand_axes) for operand_axes in axes]


def _axes_of(kernel: Kernel) -> list[frozenset[int]]:
    """For each instruction the loops along which its value differs."""
    axes: list[frozenset[int]] = []
    for instruction in kernel.body:
        instruction_axes: frozenset[int] = frozenset().union(*(axes[i] for i in instruction.inputs))
        if instruction.name == "index":
            instruction_axes |= {int(str(instruction.data))}
        elif instruction.name == "load":
            steps = kernel.operands[operand_of(instruction)].steps
            instruction_axes |= {axis for axis, step in enumerate(steps) if step != "0"}
        axes.append(instruction_axes)
    return axes


def loop_lengths(launch: Launch) -> tuple[int, ...]:
    """Return the lengths of the loops, outer ones first."""
    return launch.sizes[: launch.kernel.axes]


def loads_of(kernel: Kernel) -> Counter[int]:
    """Return for each operand in how many passes it is loaded."""
    loads = Counter[int]()
    for number in range(kernel.passes):
        loads.update(set(_loaded_in(kernel, number)))
    for instruction, level in zip(kernel.body, kernel.levels, strict=True):
        if instruction.name == "gather" or (instruction.name == "load" and level < 0):
            loads[operand_of(instruction)] = 1  # the latter: invariant along the reduced axis
    return loads


def _loaded_in(kernel: Kernel, number: int) -> Iterator[int]:
    """The operands that one pass loads, for its stores, folds, checks and cached values."""
    levels, pass_level = kernel.levels, 2 * number
    pending = [i for store in kernel.stores if kernel.pass_of(store) // 2 == number
              for i in store.elements]  # fmt: skip
    pending += [i for i in kernel.cached_elements if levels[i] == pass_level]
    for i, instruction in enumerate(kernel.body):
        if (instruction.name == "fold" and levels[i] == pass_level + 1) or (
            instruction.name == "fail" and levels[i] // 2 == number
        ):
            pending.extend(instruction.inputs)
    visited: set[int] = set()
    while pending:
        i = pending.pop()
        if i in visited or levels[i] < 0 or (levels[i] % 2 and levels[i] < pass_level):
            continue  # computed before this pass
        visited.add(i)
        if levels[i] < pass_level and i in kernel.cached_elements:
            continue
        if kernel.body[i].name == "load":
            yield operand_of(kernel.body[i])
        pending.extend(kernel.body[i].inputs)
