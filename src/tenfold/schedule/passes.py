"""Passes: the decisions of a schedule, in the order in which they are made.

Read `PASSES` downward: each is a function of a Schedule to a Schedule, in a file of its own, and a
verifier, which states what is legal after it. To add one, write both and a line here.

A pass may find that an update cannot be in place as decided. It then hands on hazards, and the
passes start again with them: the first decides less ambitiously. Each restart gives up a decision,
so there are few.

>>> [each.name for each in PASSES][:4]
['in-place', 'coalescing', 'items', 'storage']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tenfold.errors import VerifyError
from tenfold.schedule.buffer_reuse import reuse_buffers, verify_buffers
from tenfold.schedule.driver_choice import choose_drivers, verify_drivers
from tenfold.schedule.fusion import fuse, verify_groups
from tenfold.schedule.in_place_updates import choose_updates, verify_updates
from tenfold.schedule.item_selection import select_items, verify_items
from tenfold.schedule.loop_dependence import order_loops, verify_loop_order
from tenfold.schedule.loop_schedule import schedule_loops, verify_loops
from tenfold.schedule.output_layout import choose_layouts, verify_layouts
from tenfold.schedule.pass_text import text_of
from tenfold.schedule.product_choice import choose_products, verify_products
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.steps import make_steps, verify_steps
from tenfold.schedule.stored_items import choose_stored_items, verify_stored_items
from tenfold.schedule.symbolic_graph import is_symbolic
from tenfold.schedule.update_coalescing import coalesce_updates, verify_runs
from tenfold.schedule.verify_kernel import verifies
from tenfold.schedule.write_ordering import order_units, verify_order


class Pass(NamedTuple):
    """A scheduling pass."""

    name: str
    apply: Callable[[Schedule], Schedule]
    verify: Callable[[Schedule], None]
    """Raises VerifyError where the schedule after the pass is not legal."""


PASSES = (
    Pass("in-place", choose_updates, verify_updates),
    Pass("coalescing", coalesce_updates, verify_runs),
    Pass("items", select_items, verify_items),
    Pass("storage", choose_stored_items, verify_stored_items),
    Pass("fusion", fuse, verify_groups),
    Pass("order", order_units, verify_order),
    Pass("layout", choose_layouts, verify_layouts),
    Pass("products", choose_products, verify_products),
    Pass("drivers", choose_drivers, verify_drivers),
    Pass("loops", schedule_loops, verify_loops),
    Pass("dependence", order_loops, verify_loop_order),
    Pass("steps", make_steps, verify_steps),
    Pass("buffers", reuse_buffers, verify_buffers),
)
"""What is decided, in this order."""


def run_passes(schedule: Schedule) -> Schedule:
    """Run all passes, each with its verifier where the options enable it."""
    verified = verifies() and not is_symbolic(schedule.graph)
    start = decided = schedule
    while True:
        for each in PASSES:
            decided = each.apply(decided)
            if decided.hazards:
                break
            if verified:
                verify_pass(each, decided)
        else:
            return decided
        decided = start.updated(
            updates=decided.updates, update_runs=decided.update_runs, hazards=decided.hazards
        )


def verify_pass(each: Pass, schedule: Schedule) -> None:
    """Raise VerifyError where the schedule after a pass is not legal; a note shows it."""
    try:
        each.verify(schedule)
    except VerifyError as error:
        error.add_note(f"after the scheduling pass {each.name}:\n{text_of(schedule)}")
        raise


__all__ = ["PASSES", "Pass", "run_passes", "verify_pass"]
