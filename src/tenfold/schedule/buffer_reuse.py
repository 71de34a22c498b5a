"""Liveness and in-place buffer reuse: which results take the buffer of a dead operand.

A pass, the last. Takes the steps of a schedule, hands on the items that are dead after each step,
the temporaries, and pairs (result, dead operand). The kernel reads an element of the operand only
before it writes the same element of the result. The operand is a result of the schedule, or an
input without other references, and has no view. A result also takes the buffer of the array that it
updates in place; where that would lose a value after an error, the pass hands on a hazard.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([2.0, 1.0])
>>> schedule = schedule_graph(Graph.of([_native.node_of(tn.sort(tn.cumulative_sum(x) + 1))]))
>>> schedule.last_use, schedule.reused_buffers, sorted(schedule.temporaries)
(((0,), (1,), (3,)), ((3, 1),), [1])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tenfold.schedule.buffer_extents import extents_of
from tenfold.schedule.in_place_updates import CAN_FAIL
from tenfold.schedule.launch_space import loop_space
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import Buffer, InPlaceHazard, ItemKind, Schedule, Step
from tenfold.schedule.verify_accesses import refuse_hazards


def reuse_buffers(schedule: Schedule) -> Schedule:
    """Find dead items, and the results that reuse their buffers."""
    if schedule.graph.passed_through:
        schedule = _with_named_results(schedule)
    steps, live_out = schedule.steps, schedule.live_out
    last_use, restartable, reused = _reuses(schedule)
    for base, concat in schedule.overwriter_of.items():
        writers = [n for n, step in enumerate(steps) if concat in [m.item for m in step.results]]
        if not writers:
            continue  # dead
        number = writers[0]
        if not restartable[number]:
            hazard = InPlaceHazard(schedule.items[concat].position, CAN_FAIL)
            return schedule.updated(hazards=(hazard,))
        reused[concat] = base
    return schedule.updated(
        live_out=live_out,
        last_use=last_use,
        reused_buffers=tuple(reused.items()),
        temporaries=_temporaries(steps, live_out, reused),
    )


def _with_named_results(schedule: Schedule) -> Schedule:
    """Make live-out what is stored anyway and is the value of a live node, or of its inputs. The
    result of an elementwise kernel keeps its value only if no other takes its buffer.
    """
    stored = _named_results(schedule)
    costly = [item for item in stored if not _is_elementwise(schedule, item)]
    schedule = schedule.updated(live_out=schedule.live_out.union(costly))
    if len(costly) == len(stored):
        return schedule
    taken = _reuses(schedule)[2].values()
    return schedule.updated(live_out=schedule.live_out.union(stored.difference(taken)))


def _reuses(
    schedule: Schedule,
) -> tuple[tuple[tuple[int, ...], ...], list[bool], dict[int, int]]:
    """Return the dead items after each step, which steps are restartable, and the reuse pairs."""
    last_use = _dead_after_steps(schedule.steps, schedule.live_out)
    restartable = _restartable_steps(schedule.steps, last_use, set(schedule.items_at.values()))
    return last_use, restartable, _reuse_pairs(schedule, last_use, restartable)


def _named_results(schedule: Schedule) -> set[int]:
    """Return the results of steps that are the values of live nodes which nothing asks for, or of
    the nodes from which such a one is computed later.
    """
    graph, items_at = schedule.graph, schedule.items_at
    stored = {
        result.item
        for step in schedule.steps
        if step.kind not in ("alias", "empty")
        for result in step.results
        if schedule.items[result.item].kind is not ItemKind.SLICE_STORE
    }
    stored -= schedule.overwriter_of.keys()
    named = {*graph.passed_through}
    found, visited, worklist = set[int](), {*named}, [*named]
    while worklist:
        at = worklist.pop()
        item = items_at[at]
        if item in stored and (at in named or at not in graph.new_nodes):
            found.add(item)
        if item not in stored and not graph.live_out[at]:
            unvisited = [i for i in graph.inputs[at] if i not in visited]
            visited.update(unvisited)
            worklist += unvisited
    return found


def _is_elementwise(schedule: Schedule, item: int) -> bool:
    """Whether computing an item again costs about as much as reading it."""
    node = schedule.graph.nodes[schedule.items[item].position]
    reduces = node.op is not None and node.op.lowering.folding is not None
    return not reduces and schedule.items[item].kind in (
        ItemKind.MAP,
        ItemKind.GATHER,
        ItemKind.VIEW,
        ItemKind.CONCAT,
    )


def verify_buffers(schedule: Schedule) -> None:
    """A buffer is reused once, after the last read of its item, by a result of its size. Launches
    read the elements of a buffer before they overwrite them.
    """
    reused = dict(schedule.reused_buffers)
    require(len(set(reused.values())) == len(reused), "a buffer is reused twice")
    last_read: dict[int, int] = {}
    first_store: dict[int, int] = {}
    for place, step in enumerate(schedule.steps):
        last_read.update(dict.fromkeys(step.reads, place))
        for result in step.results:
            first_store.setdefault(result.item, place)
    for taker, operand in reused.items():
        place = first_store[taker]
        require(operand not in schedule.live_out, "the live-out item {} is overwritten", operand)
        require(last_read.get(operand, -1) <= place, "item {} is read after its end", operand)
        same = schedule.buffer(taker).nbytes <= schedule.buffer(operand).nbytes
        same = same and schedule.layouts[taker] == schedule.layouts[operand]
        require(same, "item {} reuses a buffer of another layout", taker)
    for place, dead in enumerate(schedule.last_use):
        for item in dead:
            require(item not in schedule.live_out, "the live-out item {} is dropped", item)
            require(last_read.get(item, -1) <= place, "item {} is read after its end", item)
    launches = [
        step.launch
        for step in schedule.steps
        if step.launch is not None and any(result.item in reused for result in step.results)
    ]
    extents = extents_of(schedule) if launches else {}
    for launch in launches:
        refuse_hazards(loop_space(launch), extents)


def _temporaries(
    steps: Sequence[Step], live_out: Collection[int], reused: Mapping[int, int]
) -> frozenset[int]:
    """The items that steps store in their own buffers and of which no element is live-out."""
    not_temporary = set(live_out)
    for step in reversed(steps):
        for buffer in step.results:
            if buffer.item in not_temporary and buffer.item in reused:
                not_temporary.add(reused[buffer.item])
        if step.kind in ("alias", "part") and step.results[0].item in not_temporary:
            not_temporary.update(step.reads)
    stored = [
        result.item
        for step in steps
        if step.kind not in ("alias", "part", "empty")
        for result in step.results
    ]
    return frozenset(stored) - not_temporary - reused.keys()


def _dead_after_steps(
    steps: Sequence[Step], live_out: Collection[int]
) -> tuple[tuple[int, ...], ...]:
    """Return for each step the items that no later step reads and that are not live-out."""
    last_step: dict[int, int] = {}
    for number, step in enumerate(steps):
        for item in (*step.reads, *[result.item for result in step.results]):
            last_step[item] = number
    dead: list[list[int]] = [[] for _ in steps]
    for item, number in last_step.items():
        if item not in live_out:
            dead[number].append(item)
    return tuple(map(tuple, dead))


def _reuse_pairs(
    schedule: Schedule, dead_after_step: Sequence[Sequence[int]], restartable: Sequence[bool]
) -> dict[int, int]:
    """By result: the dead operand whose buffer it reuses.

    The operand may be an earlier value without other live references. Nothing can be computed from
    it again once it is overwritten. So the step must be restartable: the result is the value of a
    node, published at once, and so are all live results that were computed before. The same holds
    of a result that was published so: its own operands are overwritten.
    """
    steps, overwritten = schedule.steps, schedule.overwriter_of
    base_of = {concat: base for base, concat in overwritten.items()}
    reusable_leaves = _reusable_leaves(schedule)
    aliased = {*overwritten} | {i for step in steps if not _owns_buffers(step) for i in step.reads}
    results = {
        results.item: results for step in steps if _owns_buffers(step) for results in step.results
    }
    write_counts = Counter(results.item for step in steps for results in step.results)
    reused: dict[int, int] = {}
    computed, published = set[int](), set[int]()
    for step, dead, is_restartable in zip(steps, dead_after_step, restartable, strict=True):
        candidates = {
            i: results[i]
            for i in dead
            if i in results and i not in aliased and i in step.reads
            if is_restartable or i not in published
        }
        if is_restartable:
            candidates |= {
                i: reusable_leaves[i] for i in dead if i in reusable_leaves and i not in aliased
            }
        for result in step.results if _owns_buffers(step) else ():
            if write_counts[result.item] > 1:
                continue  # written in parts: its operands may still be read
            operand = next(
                (i for i in candidates if _can_reuse(step, i, candidates[i], result)), None
            )
            if operand is not None:
                del candidates[operand]
                reused[result.item] = operand
        step_results = [result.item for result in step.results]
        computed.update(step_results)
        overwrites = {reused.get(item, base_of.get(item, -1)) for item in step_results} - {-1}
        if not overwrites <= computed - published:
            published |= computed
    return reused


def _reusable_leaves(schedule: Schedule) -> dict[int, Buffer]:
    """The earlier values that a replay may overwrite: they have no other live reference."""
    dead_after_read = schedule.graph.dead_after_read
    if not any(dead_after_read):
        return {}
    return {
        number: schedule.buffer(number)
        for number, item in enumerate(schedule.items)
        if item.kind is ItemKind.VALUE
        and dead_after_read[item.position]
        and number not in schedule.live_out
    }


def _owns_buffers(step: Step) -> bool:
    """Whether its result has its own buffer, with views as the only aliases."""
    return step.kind == "kernel" or step.unaliased_result


def _restartable_steps(
    steps: Sequence[Step],
    dead_after_step: Sequence[Sequence[int]],
    node_values: Collection[int],
) -> list[bool]:
    """Say of each step whether it cannot fail and all items live after it are complete values of
    nodes. What is written in parts is complete after the last one.
    """
    last_write = last_writes(steps)
    dead: set[int] = set()
    live_temporaries: set[int] = set()  # live, but not the value of a node
    restartable = []
    for number, (step, dead_now) in enumerate(zip(steps, dead_after_step, strict=True)):
        dead.update(dead_now)
        for result in step.results:
            item = result.item
            is_complete = last_write[item] == number and item in node_values
            if is_complete or item in dead:
                live_temporaries.discard(item)
            else:
                live_temporaries.add(item)
        live_temporaries.difference_update(dead_now)
        restartable.append(not live_temporaries and not _may_fail(step))
    return restartable


def last_writes(steps: Sequence[Step]) -> dict[int, int]:
    """Return the number of the last step that writes each result."""
    last_step: dict[int, int] = {}
    for number, step in enumerate(steps):
        for result in step.results:
            last_step[result.item] = number
    return last_step


def _may_fail(step: Step) -> bool:
    """Whether a step may end with an error: a call, or a kernel that looks for one."""
    if step.launch is None:
        return step.accumulated_operand < 0
    return "fail" in [instruction.name for instruction in step.launch.kernel.body]


def _can_reuse(step: Step, number: int, operand: Buffer, result: Buffer) -> bool:
    if (operand.shape, operand.dtype, operand.strides) != (
        result.shape,
        result.dtype,
        result.strides,
    ):
        return False
    launch = step.launch
    if launch is None:
        return step.accumulated_operand == number
    if launch.kernel.traversal not in ("linear", "inner"):
        return False
    store, *other_stores = (m for m in launch.memory if m.written and m.item == result.item)
    if other_stores:
        return False
    loads = [m for m in launch.memory if not m.written and m.item == operand.item]
    return all(m.strides == store.strides and m.offset == store.offset for m in loads)


__all__ = ["last_writes", "reuse_buffers", "verify_buffers"]
