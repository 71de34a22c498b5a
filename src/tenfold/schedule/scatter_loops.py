"""Scatter loops: the form, the units of work and the scratch memory of a scatter.

Input: a Kernel of a scatter form, the lengths of its loops and the cells of its result. Output: the
arguments of its launch. No choice changes bits: elements of one cell are combined in loop order.

>>> from tenfold.core.loop_ir import KernelOperand, KernelStore
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.dtypes import FLOAT64, INT64
>>> body = Body()
>>> cell, x = body.load(0, INT64), body.load(1, FLOAT64)
>>> sums = body.apply("scatter", FLOAT64, cell, body.constant(0, FLOAT64), x, data=("add", 0))
>>> operands = (KernelOperand(INT64, "1"), KernelOperand(FLOAT64, "1"))
>>> operands += (KernelOperand(FLOAT64, "0", written=True),)
>>> stores = (KernelStore(2, (sums.position,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, form=KernelForm.SCATTER, lanes=8)
>>> [scatter_form(kernel, (length,), WorkSizes()).value for length in (100, 10**6)]
['scatter', 'scatter parts']
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.loop_ir import SCATTER_CHUNK, Kernel, KernelForm
from tenfold.core.shape_rules import product
from tenfold.schedule.target import WorkSizes


def scatter_form(kernel: Kernel, lengths: Sequence[int], work: WorkSizes) -> KernelForm:
    """Return the form of a scatter: by rows of neighbouring cells, or by elements."""
    if kernel.scatter.is_contiguous:
        return KernelForm.SCATTER_ROWS
    in_parts = len(lengths) == 1 and lengths[-1] >= work.scatter_elements
    return KernelForm.SCATTER_PARTS if in_parts else KernelForm.SCATTER


def scatter_partition(
    kernel: Kernel, lengths: Sequence[int], work: WorkSizes
) -> tuple[int, int, int]:
    """Return the size of a unit, the number of units, and units per range."""
    last = lengths[-1]
    if kernel.form is KernelForm.SCATTER:
        return 0, 1, 1
    if kernel.form is KernelForm.SCATTER_PARTS:
        return work.scatter_elements, -(-last // work.scatter_elements), 1
    packets = -(-last // kernel.lanes)
    if product(lengths) >= work.scatter_elements:
        packets = -(-packets // work.scatter_column_parts)
    part = kernel.lanes * packets
    units = -(-last // part)
    return part, units, -(-units // work.scatter_column_ranges)


def scatter_scratch(kernel: Kernel) -> int:
    """Return the bytes of a chunk of elements, of the offsets of their cells, and of masks."""
    if kernel.form is KernelForm.SCATTER_ROWS:
        return 0
    rows = 1 + len(kernel.scatter.values) + (kernel.form is KernelForm.SCATTER_PARTS)
    return 8 * SCATTER_CHUNK * rows + 64


__all__ = ["scatter_form", "scatter_partition", "scatter_scratch"]
