"""Driver choice: which driver of LAPACK computes a call of linear algebra.

A pass. Takes the calls of a schedule, and the layouts of their operands. Hands on a DriverChoice
for each that LAPACK supports, perhaps on row-major copies; NumPy computes the others. The runtime
binds the choice to native code (`runtime/lapack/drivers.py`), and `explain` reads its routines.

>>> from tenfold.ops.linalg import inv
>>> matrix = StackedLayout((4, 4), (32, 8), FLOAT64)
>>> choice = choose_driver(inv, (), (matrix,), (Type((4, 4), FLOAT64, "cpu"),))
>>> choice.routines, choice.copies
(('dgetrf', 'dlaset', 'dgetrs'), ())
>>> reversed_stack = StackedLayout((2, 3, 4, 4), (384, -128, 32, 8), FLOAT64)
>>> choice = choose_driver(inv, (), (reversed_stack,), (Type((2, 3, 4, 4), FLOAT64, "cpu"),))
>>> choice.copies[0].strides
(384, 128, 32, 8)
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tenfold._native import Type
from tenfold.caches import memoized
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import row_major
from tenfold.dtypes import FLOAT64
from tenfold.schedule.lapack import eig_svd_qr, factor_solve
from tenfold.schedule.lapack.driver_builder import (
    COMPUTE_DTYPES,
    DriverChoice,
    StackedLayout,
    UnsupportedLayout,
)
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import ItemKind, Schedule
from tenfold.schedule.target import DEFAULT

LAPACK_OPS = {**factor_solve.LAPACK_OPS, **eig_svd_qr.LAPACK_OPS}
"""The operations that a driver computes, and the functions that choose it."""
MAX_CACHED_CHOICES = 1024
"""The capacity of the LRU cache of choices."""
Layouts = tuple[StackedLayout, ...]


def choose_drivers(schedule: Schedule) -> Schedule:
    """Choose the driver of each call of linear algebra."""
    drivers = {
        unit: choice
        for unit in schedule.order
        if isinstance(unit, int) and (choice := _choice_of(schedule, unit)) is not None
    }
    return schedule.updated(drivers=drivers) if drivers else schedule


def verify_drivers(schedule: Schedule) -> None:
    """Each driver reads its operands as they are, or copies of the same matrices in row-major
    order, and writes results of the call's Types.
    """
    for unit, choice in schedule.drivers.items():
        item = schedule.items[unit]
        layouts = _layouts(schedule, unit)
        require(choice.operands == layouts, "driver {} reads other layouts", unit)
        for layout, copy in zip(layouts, choice.copies, strict=False):
            strides = tuple([copy.dtype.itemsize * step for step in row_major(copy.shape)])
            same = copy.strides == strides and copy.shape[-2:] == layout.shape[-2:]
            require(same, "driver {} reads a copy of {} that is not row-major", unit, layout)
        types = schedule.graph.nodes[item.position].types
        results = [type_ for type_, _ in choice.results]
        require(results == [*types], "driver {} writes results of other Types", unit)


def _layouts(schedule: Schedule, number: int) -> Layouts:
    items = schedule.items
    return tuple(
        [
            StackedLayout(items[i].shape, schedule.layouts[i], items[i].dtype)
            for i in items[number].inputs
        ]
    )


def _choice_of(schedule: Schedule, number: int) -> DriverChoice | None:
    """The driver of a call; None where NumPy computes it, or it is not linear algebra."""
    item = schedule.items[number]
    if item.kind is not ItemKind.CALL:
        return None
    node = schedule.graph.nodes[item.position]
    if node.op not in LAPACK_OPS:
        return None
    return choose_driver(node.op, node.params, _layouts(schedule, number), tuple(node.types))


@memoized("LAPACK drivers", MAX_CACHED_CHOICES, "choosing a driver takes as long as a small solve")
def choose_driver(
    op: Op[...], params: Params, operands: Layouts, types: tuple[Type, ...]
) -> DriverChoice | None:
    """Return the driver of an operation and the layouts that it reads; None if it is unsupported.

    If the operands' own layouts are unsupported, it reads row-major copies.
    """
    choose = LAPACK_OPS.get(op)
    if choose is None or not all(math.prod(layout.shape) for layout in operands):
        return None
    if max(max(layout.shape[-2:]) for layout in operands) > DEFAULT.libraries.max_order:
        return None
    for copies in ((), _row_major_layouts(operands)):
        try:
            choice = choose(copies or operands, types, *params)
        except UnsupportedLayout:
            continue
        return replace(choice, operands=operands, copies=copies)
    return None


def _row_major_layouts(layouts: Layouts) -> Layouts:
    """Return row-major matrices, broadcast to the stack unless they are one matrix."""
    stack = np.broadcast_shapes(*(layout.shape[:-2] for layout in layouts))
    copies = []
    for shape, _, dtype in layouts:
        copied = shape if math.prod(shape[:-2]) == 1 else (*stack, *shape[-2:])
        compute_dtype = COMPUTE_DTYPES.get(dtype, FLOAT64)
        strides = tuple([compute_dtype.itemsize * step for step in row_major(copied)])
        copies.append(StackedLayout(copied, strides, compute_dtype))
    return tuple(copies)


__all__ = ["LAPACK_OPS", "choose_driver", "choose_drivers", "verify_drivers"]
