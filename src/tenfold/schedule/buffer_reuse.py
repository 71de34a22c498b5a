"""Liveness and in-place buffer reuse: which results take the buffer of a dead operand.

Takes the steps of a schedule, hands on the items that are dead after each step, and pairs
(result, dead operand). The kernel reads an element of the operand only before it writes the same
element of the result. The operand is a result of the schedule, or an input without other
references, and has no view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tenfold.schedule.loop_schedule import Launch

ReusePairs = tuple[tuple[int, int], ...]


class ReusableBuffer(Protocol):
    """A result of a step."""

    @property
    def item(self) -> int:
        """Its number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""

    @property
    def dtype(self) -> str:
        """The dtype of its elements."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Its strides, in bytes."""


class LivenessStep(Protocol):
    """One step of a plan."""

    @property
    def kind(self) -> str:
        """The kind of the step."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The items it reads."""

    @property
    def results(self) -> Sequence[ReusableBuffer]:
        """The results in memory after the step."""

    @property
    def launch(self) -> Launch | None:
        """The kernel and its sizes, where a kernel runs."""

    @property
    def unaliased_result(self) -> bool:
        """Whether it is a call whose result has its own buffer, without aliases."""

    @property
    def accumulated_operand(self) -> int:
        """The item that it reads and may add to in its memory; -1 for none."""


def dead_after_steps(
    steps: Sequence[LivenessStep], live_out: Collection[int]
) -> tuple[tuple[int, ...], ...]:
    """Return for each step the items that no later step reads and that are not live-out."""
    last_step: dict[int, int] = {}
    for number, step in enumerate(steps):
        for item in (*step.reads, *(result.item for result in step.results)):
            last_step[item] = number
    dead: list[list[int]] = [[] for _ in steps]
    for item, number in last_step.items():
        if item not in live_out:
            dead[number].append(item)
    return tuple(map(tuple, dead))


def reuse_buffers(
    steps: Sequence[LivenessStep],
    dead_after_step: Sequence[Sequence[int]],
    reusable_leaves: Mapping[int, ReusableBuffer],
    node_values: Collection[int],
    overwritten: Collection[int] = (),
) -> ReusePairs:
    """Return pairs of a result and the dead operand whose buffer it reuses.

    `reusable_leaves` are earlier values without other live references. Nothing can be computed
    from them again once they are overwritten. So the result must be the value of a node (one of
    `node_values`), published at once, and so must all live results that were computed from them.
    Other steps overwrite parts of the items in `overwritten`.
    """
    aliased = {*overwritten} | {i for step in steps if not _owns_buffers(step) for i in step.reads}
    results = {
        results.item: results for step in steps if _owns_buffers(step) for results in step.results
    }
    write_counts = Counter(results.item for step in steps for results in step.results)
    reused: dict[int, int] = {}
    restartable = restartable_steps(steps, dead_after_step, node_values)
    for step, dead, is_restartable in zip(steps, dead_after_step, restartable, strict=True):
        candidates = {
            i: results[i] for i in dead if i in results and i not in aliased and i in step.reads
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
    return tuple(reused.items())


def _owns_buffers(step: LivenessStep) -> bool:
    """Whether its result has its own buffer, with views as the only aliases."""
    return step.kind == "kernel" or step.unaliased_result


def restartable_steps(
    steps: Sequence[LivenessStep],
    dead_after_step: Sequence[Sequence[int]],
    node_values: Collection[int],
) -> list[bool]:
    """Say of each step whether it cannot fail and all items live after it are values of nodes."""
    dead: set[int] = set()
    live_temporaries: set[int] = set()  # live, but not the value of a node
    restartable = []
    for step, dead_now in zip(steps, dead_after_step, strict=True):
        dead.update(dead_now)
        live_temporaries.update(
            result.item for result in step.results if result.item not in node_values
        )
        live_temporaries.difference_update(dead_now)
        live_temporaries.difference_update(
            [result.item for result in step.results if result.item in dead]
        )
        restartable.append(not live_temporaries and not _may_fail(step))
    return restartable


def _may_fail(step: LivenessStep) -> bool:
    """Whether a step may end with an error: a call, or a kernel that looks for one."""
    if step.launch is None:
        return step.accumulated_operand < 0
    return any(instruction.name == "fail" for instruction in step.launch.kernel.body)


def _can_reuse(
    step: LivenessStep, number: int, operand: ReusableBuffer, result: ReusableBuffer
) -> bool:
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
