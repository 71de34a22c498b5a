"""Thread launch: kernels of one thread for each element, and how many threads a launch has.

Takes the kernel that a processor would have, hands on that of a device that runs threads in blocks:
a unit of work is a thread, and a range of them a block.

    kernel = thread_kernel(kernel, target.block)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.loop_ir import THREAD_FORMS, Kernel, KernelForm
from tenfold.core.shape_rules import product


def thread_kernel(kernel: Kernel, block: int) -> Kernel:
    """Return the kernel of threads in blocks of so many; the same one if the block is 0, or threads
    do not have its form.
    """
    if not block or kernel.form not in THREAD_FORMS:
        return kernel
    parts = kernel.operands, kernel.body, kernel.stores, kernel.parameters, kernel.form
    return Kernel(*parts, lanes=1, block=block)


def num_threads(kernel: Kernel, lengths: Sequence[int]) -> int:
    """Return the threads of a launch: one for each element or column, a warp for each row or block
    of a row, a block for each tile.
    """
    if kernel.transposed_operands:
        tiles = -(-lengths[-2] // LANES) * -(-lengths[-1] // LANES)
        return product(lengths[:-2]) * tiles * kernel.block
    if kernel.form is KernelForm.COLUMN:
        return product(lengths[:-2]) * lengths[-1]
    if kernel.form is KernelForm.MAP:
        return product(lengths)
    blocks = -(-lengths[-1] // BLOCK) if kernel.form is KernelForm.SPLIT else 1
    return product(lengths[:-1]) * blocks * LANES
