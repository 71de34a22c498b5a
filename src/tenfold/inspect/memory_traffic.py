"""Memory traffic: the bytes that a kernel must move, and those that its loops move.

Takes a Launch, hands on bytes. A kernel *must* read every element that it needs once and write
every result once. Its loops move more where an operand is read at two places or in several passes;
repeated reads that are near in time hit the cache.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> from tenfold.inspect.snapshot import Snapshot
>>> x = tn.asarray([1.0, 2.0, 4.0])
>>> plan = Snapshot(pipeline.expression([x[1:] - x[:-1]])).plan
>>> must_move(plan, plan.steps[0].launch), does_move(plan.steps[0].launch)
(40, 48)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel, operand_of
from tenfold.core.shape_rules import product
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.schedule import Buffer, Schedule, Step


def required_bytes(plan: Schedule, launch: Launch) -> int:
    """Return the bytes of what a launch reads and writes, each element once."""
    wrote, read = 0, Counter[int]()
    for memory, touched in zip(launch.memory, elements_touched(launch), strict=True):
        if memory.written:
            wrote += touched * memory.dtype.itemsize
        else:
            read[memory.item] += touched
    for item, touched in read.items():
        wrote += min(touched, plan.items[item].size) * plan.items[item].dtype.itemsize
    return wrote


def peak_memory(plan: Schedule, graph: Graph) -> int:
    """Return the most bytes of results and temporaries that are allocated at one time.

    Inputs and the scratch memory of kernels are not counted. A view shares the buffer of its base,
    and a result that reuses the buffer of a dead operand shares that one. All results of one call
    count until the last of them is dead.
    """
    buffers: dict[int, int] = {}
    sizes: dict[int, int] = {}
    over, live = dict(plan.reused_buffers), Counter[int]()
    peak = 0
    for step, dead in zip(plan.steps, plan.last_use, strict=True):
        for made in step.results:
            if made.item in buffers:
                continue  # another part of it, in the same buffer
            base = _buffer_of(step, made.item, over)
            buffers[made.item] = buffers.get(base, base)
            if base == made.item:
                sizes[base] = _allocated_bytes(graph, step, made)
            live[buffers[made.item]] += 1
        peak = max(peak, sum(sizes.get(buffer, 0) for buffer in +live))
        live.subtract(Counter(buffers[item] for item in dead if item in buffers))
    return peak


def _allocated_bytes(graph: Graph, step: Step, made: Buffer) -> int:
    """The bytes of what a step makes: of a call, of all its results."""
    types = graph.nodes[step.position].types if step.kind == "call" else ()
    return sum(each.size * each.dtype.itemsize for each in types) or made.nbytes


def _buffer_of(step: Step, item: int, over: Mapping[int, int]) -> int:
    """The item in whose buffer a step stores another: itself where it has its own."""
    if step.kind in ("window", "part"):
        return step.reads[0]
    return over.get(item, item)


def loop_bytes(launch: Launch) -> int:
    """Return the bytes that the loops of a launch load and store, scratch memory apart."""
    loads = loads_of(launch.kernel)
    return sum(
        (1 if memory.written else loads[number]) * touched * memory.dtype.itemsize
        for number, (memory, touched) in enumerate(
            zip(launch.memory, elements_touched(launch), strict=True)
        )
    )


def elements_touched(launch: Launch) -> list[int]:
    """Return for each operand how many places the loops take it to."""
    kernel, lengths = launch.kernel, lengths_of(launch)
    axes = [
        {axis for axis, step in enumerate(operand.steps) if step != "0"}
        for operand in kernel.operands
    ]
    varies = _axes_of(kernel)
    for made in kernel.body:
        if made.name == "gather":
            axes[operand_of(made)] |= varies[made.inputs[0]]
    return [product(lengths[axis] for axis in found) for found in axes]


def _axes_of(kernel: Kernel) -> list[frozenset[int]]:
    """For each instruction the loops along which its value differs."""
    found: list[frozenset[int]] = []
    for made in kernel.body:
        own: frozenset[int] = frozenset().union(*(found[i] for i in made.inputs))
        if made.name == "index":
            own |= {int(str(made.data))}
        elif made.name == "load":
            steps = kernel.operands[operand_of(made)].steps
            own |= {axis for axis, step in enumerate(steps) if step != "0"}
        found.append(own)
    return found


def lengths_of(launch: Launch) -> tuple[int, ...]:
    """Return the lengths of the loops, outer ones first."""
    return launch.sizes[: launch.kernel.axes]


def loads_of(kernel: Kernel) -> Counter[int]:
    """Return for each operand in how many passes it is loaded."""
    loads = Counter[int]()
    for number in range(kernel.passes):
        loads.update(set(_loaded_in(kernel, number)))
    for made, level in zip(kernel.body, kernel.levels, strict=True):
        if made.name == "gather" or (made.name == "load" and level < 0):
            loads[operand_of(made)] = 1  # the latter: the same everywhere along the folded axis
    return loads


def _loaded_in(kernel: Kernel, number: int) -> Iterator[int]:
    """The operands that one pass loads: what it stores, folds, tests or keeps needs them anew."""
    levels, own = kernel.levels, 2 * number
    wanted = [i for store in kernel.stores if kernel.pass_of(store) // 2 == number
              for i in store.elements]  # fmt: skip
    wanted += [i for i in kernel.cached_elements if levels[i] == own]
    for i, made in enumerate(kernel.body):
        if (made.name == "fold" and levels[i] == own + 1) or (
            made.name == "fail" and levels[i] // 2 == number
        ):
            wanted.extend(made.inputs)
    seen: set[int] = set()
    while wanted:
        i = wanted.pop()
        if i in seen or levels[i] < 0 or (levels[i] % 2 and levels[i] < own):
            continue  # known before this pass
        seen.add(i)
        if levels[i] < own and i in kernel.cached_elements:
            continue
        if kernel.body[i].name == "load":
            yield operand_of(kernel.body[i])
        wanted.extend(kernel.body[i].inputs)
