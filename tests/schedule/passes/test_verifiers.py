"""The verifier of each pass refuses a schedule that breaks one of its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from tests.schedule.passes.test_passes import graph_of

from tenfold.errors import VerifyError
from tenfold.schedule.passes import PASSES, Pass, verify_pass
from tenfold.schedule.schedule_ir import Schedule, UpdateDecisions, UpdateRuns

UPDATE = "x = tn.zeros(6).wait(); x[:-1] = x[1:] * 2; x"
RUN = "x = tn.set_at(tn.zeros((3, 4)).wait(), 0, 1.0); x = tn.set_at(x, 1, x[0] * 2); x"
CALL = "tn.sort(a * 2) + b"
ROWS = "m - tn.max(m, axis=1, keepdims=True)"


class Fault(NamedTuple):
    """What a pass might do wrong, and what its verifier says of it."""

    name: str
    program: str
    spoiled: Callable[[Schedule], Schedule]
    message: str


def with_item(schedule: Schedule, number: int, **facts: Any) -> Schedule:
    items = list(schedule.items)
    items[number] = items[number]._replace(**facts)
    return schedule.updated(items=tuple(items))


def with_group(schedule: Schedule, number: int, **facts: Any) -> Schedule:
    groups = list(schedule.groups)
    groups[number] = replace(groups[number], **facts)
    return schedule.updated(groups=tuple(groups))


def with_launch(schedule: Schedule, number: int, **facts: Any) -> Schedule:
    launch = replace(schedule.launches[number], **facts)
    return schedule.updated(launches={**schedule.launches, number: launch})


def with_step(schedule: Schedule, number: int, **facts: Any) -> Schedule:
    steps = list(schedule.steps)
    steps[number] = replace(steps[number], **facts)
    return schedule.updated(steps=tuple(steps))


FAULTS = [
    Fault("in-place", UPDATE, lambda s: s.updated(updates=UpdateDecisions()), "are decided"),
    Fault(
        "in-place",
        "x = tn.zeros(6).wait(); y = x * 2; x[1:] = 1; x",
        lambda s: s.updated(updates=UpdateDecisions({}, {2: ()})),
        "overwrites a live-out value",
    ),
    Fault(
        "in-place",
        UPDATE,
        lambda s: s.updated(updates=UpdateDecisions({}, {4: (2,)})),
        "has the directions",
    ),
    Fault(
        "coalescing",
        RUN,
        lambda s: s.updated(update_runs=replace(s.update_runs, parts={6: (6,)})),
        "stores",
    ),
    Fault(
        "coalescing",
        RUN,
        lambda s: s.updated(update_runs=replace(s.update_runs, values={})),
        "which is not computed",
    ),
    Fault("items", CALL, lambda s: with_item(s, 2, inputs=(5,)), "reads a later one"),
    Fault("items", CALL, lambda s: with_item(s, 2, shape=(5,)), "another type"),
    Fault("items", "a[1:]", lambda s: with_item(s, 1, reads=((0, 1, 2),)), "reads (2, 6) of 6"),
    Fault("storage", CALL, lambda s: s.updated(stored_because={}), "not stored"),
    Fault("storage", CALL, lambda s: s.updated(inlined=frozenset()), "no root and not inlined"),
    Fault("fusion", ROWS, lambda s: s.updated(groups=()), "other items than the roots"),
    Fault("fusion", ROWS, lambda s: with_group(s, 0, outputs=()), "is live-out"),
    Fault("fusion", ROWS, lambda s: with_group(s, 0, axis=0), "reduces another axis"),
    Fault("fusion", "m + 1", lambda s: with_group(s, 0, roots={2: (1, 0)}), "of another length"),
    Fault("order", CALL, lambda s: s.updated(order=s.order[::-1]), "of a later step"),
    Fault("order", CALL, lambda s: s.updated(order=s.order[:2]), "is in no step"),
    Fault(
        "order",
        "x = tn.zeros(6).wait(); y = tn.sort(x); x[1:] = a[1:]; y, x",
        lambda s: s.updated(order=s.order[::-1]),
        "after it is overwritten",
    ),
    Fault("layout", CALL, lambda s: s.updated(layouts={0: (16,)}), "has other strides"),
    Fault("layout", CALL, lambda s: s.updated(layouts={**s.layouts, 2: (16,)}), "has the strides"),
    Fault(
        "drivers",
        "tn.linalg.inv(m[:, :3])",
        lambda s: s.updated(drivers={n: replace(c, operands=()) for n, c in s.drivers.items()}),
        "reads other layouts",
    ),
    Fault(
        "drivers",
        "tn.linalg.inv(m[:, :3])",
        lambda s: s.updated(
            drivers={n: replace(c, copies=c.operands) for n, c in s.drivers.items()}
        ),
        "that is not row-major",
    ),
    Fault(
        "drivers",
        "tn.linalg.inv(m[:, :3])",
        lambda s: s.updated(drivers={n: replace(c, results=()) for n, c in s.drivers.items()}),
        "writes results of other Types",
    ),
    Fault("products", "m @ a[:4]", lambda s: s.updated(products={}), "has no routine"),
    Fault(
        "products",
        "m @ a[:4]",
        lambda s: s.updated(
            products={n: replace(c, form=replace(c.form, k=5)) for n, c in s.products.items()}
        ),
        "does 15 multiply-adds",
    ),
    Fault(
        "products",
        "m @ a[:4]",
        lambda s: s.updated(
            products={n: replace(c, routine="sgemm") for n, c in s.products.items()}
        ),
        "of another dtype",
    ),
    Fault("loops", CALL, lambda s: s.updated(launches={}), "is not run"),
    Fault("loops", CALL, lambda s: with_launch(s, 0, units=2), "2 units, but 1 cover"),
    Fault("dependence", UPDATE, lambda s: with_launch(s, 0, sequential=False), "of one buffer"),
    Fault("steps", CALL, lambda s: with_step(s, 0, reads=()), "loads more than it reads"),
    Fault("steps", CALL, lambda s: s.updated(steps=s.steps[::-1]), "no earlier step stores"),
    Fault("steps", CALL, lambda s: s.updated(steps=s.steps[:2]), "are not stored"),
    Fault(
        "buffers",
        CALL,
        lambda s: s.updated(last_use=((2,), *s.last_use[1:])),
        "item 2 is read after its end",
    ),
    Fault(
        "buffers",
        "tn.flip(tn.sort(a)) * 2",
        lambda s: s.updated(reused_buffers=((4, 1),)),
        "of one buffer",
    ),
    Fault("buffers", CALL, lambda s: s.updated(reused_buffers=((5, 4), (3, 4))), "twice"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.name}: {fault.message}")
def test_a_verifier_refuses_a_schedule_that_breaks_its_rule(fault: Fault) -> None:
    schedule = Schedule(graph_of(fault.program))
    for each in PASSES:
        schedule = each.apply(schedule)
        if each.name == fault.name:
            break
    verify_pass(each, schedule)
    with pytest.raises(VerifyError) as caught:
        verify_pass(each, fault.spoiled(schedule))
    assert fault.message in str(caught.value)


def test_each_pass_has_a_fault() -> None:
    assert {fault.name for fault in FAULTS} == {each.name for each in PASSES}


def test_an_error_of_a_verifier_names_the_pass_and_shows_the_schedule() -> None:
    schedule = Schedule(graph_of("a + b"))
    items: Pass = PASSES[2]
    spoiled = with_item(items.apply(schedule), 2, shape=(5,))
    with pytest.raises(VerifyError) as caught:
        verify_pass(items, spoiled)
    assert caught.value.__notes__[0].splitlines()[:2] == [
        "after the scheduling pass items:",
        "%0 = value float64[6]",
    ]


def test_runs_of_no_update_are_legal() -> None:
    schedule = Schedule(graph_of("a + b"))
    verify_pass(PASSES[1], schedule.updated(update_runs=UpdateRuns()))
