"""In-place buffer reuse, from liveness: which results take the buffer of a dead operand.

Takes the steps of a schedule and the items that are dead after each, hands on pairs (result, dead
operand). The kernel reads an element of the operand only before it writes the same element of the
result. The operand is a result of the schedule, or an input without other references, and has no
view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tenfold.schedule.loop_schedule import Launch

Pairs = tuple[tuple[int, int], ...]


class ReusableBuffer(Protocol):
    """Something that a step makes."""

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
        """What is done."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The items it reads."""

    @property
    def makes(self) -> Sequence[ReusableBuffer]:
        """What is there afterwards."""

    @property
    def launch(self) -> Launch | None:
        """The kernel and its sizes, where a kernel runs."""

    @property
    def fresh(self) -> bool:
        """Whether it is a call whose result has its own buffer, without aliases."""

    @property
    def adds_to(self) -> int:
        """The item that it reads and may add to in its memory; -1 for none."""


def written_over(
    steps: Sequence[LivenessStep],
    dying: Sequence[Sequence[int]],
    leaves: Mapping[int, ReusableBuffer],
    whole: Collection[int],
    taken: Collection[int] = (),
) -> Pairs:
    """Return which results take the memory of which operands that die in that step.

    `leaves` are earlier values without other live references. Nothing can be computed from them
    again once they are overwritten. So the result must be the value of a node (one of `whole`),
    published at once, and so must all live results that were computed from them. Other steps
    write over parts of the items in `taken`.
    """
    looked_at = {*taken} | {i for step in steps if not _owns(step) for i in step.reads}
    made = {made.item: made for step in steps if _owns(step) for made in step.makes}
    times = Counter(made.item for step in steps for made in step.makes)
    over: dict[int, int] = {}
    anew = may_begin_anew(steps, dying, whole)
    for step, ends, is_anew in zip(steps, dying, anew, strict=True):
        left = {i: made[i] for i in ends if i in made and i not in looked_at and i in step.reads}
        if is_anew:
            left |= {i: leaves[i] for i in ends if i in leaves and i not in looked_at}
        for result in step.makes if _owns(step) else ():
            if times[result.item] > 1:
                continue  # written in pieces: its operands may still be read
            source = next((i for i in left if _fits(step, i, left[i], result)), None)
            if source is not None:
                del left[source]
                over[result.item] = source
    return tuple(over.items())


def _owns(step: LivenessStep) -> bool:
    """Whether its result has its own buffer, with windows as the only aliases."""
    return step.kind == "kernel" or step.fresh


def may_begin_anew(
    steps: Sequence[LivenessStep], dying: Sequence[Sequence[int]], whole: Collection[int]
) -> list[bool]:
    """Say of each step whether it cannot fail and all items live after it are values of nodes."""
    gone: set[int] = set()
    between: set[int] = set()  # live, but not the value of a node
    answers = []
    for step, ends in zip(steps, dying, strict=True):
        gone.update(ends)
        between.update(made.item for made in step.makes if made.item not in whole)
        between.difference_update(ends)
        between.difference_update([made.item for made in step.makes if made.item in gone])
        answers.append(not between and not _may_fail(step))
    return answers


def _may_fail(step: LivenessStep) -> bool:
    """Whether a step may end with an error: a call, or a kernel that looks for one."""
    if step.launch is None:
        return step.adds_to < 0
    return any(made.name == "fail" for made in step.launch.kernel.body)


def _fits(step: LivenessStep, number: int, dying: ReusableBuffer, made: ReusableBuffer) -> bool:
    if (dying.shape, dying.dtype, dying.strides) != (made.shape, made.dtype, made.strides):
        return False
    launch = step.launch
    if launch is None:
        return step.adds_to == number
    if launch.kernel.traversal not in ("linear", "inner"):
        return False
    written, *others = (m for m in launch.memory if m.written and m.item == made.item)
    if others:
        return False
    read = [m for m in launch.memory if not m.written and m.item == dying.item]
    return all(m.strides == written.strides and m.offset == written.offset for m in read)
