"""Generic reduction kernel: one reduction along one axis, for any shape and layout of its operand.

Takes the operation, dtypes, whether elements enter and results leave, and the operand's layout,
hands on its kernel of two outer axes, which native code launches for any node of that kind
(`native/exec/reduction_kernels.cpp`). It has the reduction tree of every plan, so the same bits.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.ops.reduce import sum
>>> print(GenericReduction(sum, FLOAT32, FLOAT32, FLOAT32).kernel)
kernel of 3 axes, row
  operand 0: float32, steps s s 1
  operand 1: float32, steps s s 0, written
  %0 = load float32, 0
  %1 = fold float32 %0, ('add', 0)
  %2 = constant float32, 0
  %3 = add float32 %1 %2
  store %3 in operand 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tenfold.core.cached_property import cached
from tenfold.core.canonical_reduction import LANES
from tenfold.core.loop_ir import Kernel, KernelForm, KernelOperand
from tenfold.core.op import OPS, Op, ReductionTree
from tenfold.core.scalar_ir import Body
from tenfold.ops.cast import convert_element
from tenfold.schedule.generic_elementwise import load_operand
from tenfold.schedule.lowering import append_fold, parts_of
from tenfold.schedule.target import DEFAULT
from tenfold.schedule.vector_width import (
    column_lanes,
    eliminate_dead_code,
    map_lanes,
    weight_of,
)

OUTER = 2
"""Outer axes of such a kernel."""


@dataclass(frozen=True)
class GenericReduction:
    """A reduction along one axis, for one layout of its operand."""

    op: Op[...]
    source: np.dtype
    """The dtype in memory: of elements, or of partial results where no elements enter."""
    operand: np.dtype
    """The dtype in which elements enter the computation."""
    result: np.dtype
    """The dtype of the operation's result."""
    column: bool = False
    """Whether packets go along an outer axis, else along the reduced one."""
    strided: bool = False
    """Whether elements are read by a stride along the axis of the packets."""
    enters: bool = True
    """Whether elements are read; else the partial results of an earlier axis."""
    leaves: bool = True
    """Whether results are written; else partial results for a later axis."""

    def __str__(self) -> str:
        """The text that identifies it; a user's operation may have the same name."""
        if OPS.get(self.op.full_name) is not self.op:
            return self.kernel.key
        return (
            f"fold {self.op.full_name}: {self.source} as {self.operand} -> {self.result}, "
            f"column {self.column}, strided {self.strided}, enters {self.enters}, "
            f"leaves {self.leaves}"
        )

    @property
    def folding(self) -> ReductionTree:
        """The reduction tree."""
        assert self.op.lowering.folding is not None, "it folds"
        return self.op.lowering.folding

    @property
    def stored_dtype(self) -> np.dtype:
        """The dtype that is written."""
        return self.result if self.leaves else self.folding.dtype(self.operand)

    @cached
    def kernel(self) -> Kernel:
        """The kernel: of two outer axes, the folded one and, but for a row, that of the columns."""
        body = Body()
        source = load_operand(body, 0, self.source)
        if self.enters:
            source = convert_element(body, source, self.operand)
            components = self.folding.accumulate(body, source, body.index(OUTER))
        else:
            components = parts_of(source)
        result = append_fold(body, self.folding.kind, components)
        if self.leaves:
            result = parts_of(self.folding.finish(body, result, self.result))
        instructions, stores = eliminate_dead_code(
            body.instructions, [(1, tuple(component.position for component in result))]
        )
        step = "s" if self.strided else "1"
        operands = (
            KernelOperand(self.source, ("sss" if self.column else "ss") + step),
            KernelOperand(self.stored_dtype, "ss01" if self.column else "ss0", written=True),
        )
        form = KernelForm.COLUMN if self.column else KernelForm.ROW
        ahead = DEFAULT.caches.short_prefetch_bytes
        kernel = Kernel(operands, instructions, stores, form=form, prefetch_distance=ahead)
        if not self.column and kernel.is_search:
            kernel = replace(kernel, form=KernelForm.SEARCH)
        return replace(kernel, lanes=_lanes(kernel))


def _lanes(kernel: Kernel) -> int:
    """The elements of a packet; rows are reduced by the lanes of the tree."""
    if kernel.form is KernelForm.ROW:
        return LANES
    if kernel.form is KernelForm.SEARCH:
        read_dtypes = kernel.operands[0].dtype, kernel.body[kernel.folds[0].inputs[0]].dtype
        return map_lanes(weight_of(kernel.body), max(dtype.itemsize for dtype in read_dtypes))
    sizes = [operand.dtype.itemsize for operand in kernel.operands]
    sizes += [instruction.dtype.itemsize for instruction in kernel.body]
    return column_lanes(max(sizes))
