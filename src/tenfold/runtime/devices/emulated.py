"""Emulated device: a second device, whose memory the host cannot read and whose launches are late.

Takes Graphs, hands on Executables of kernels of threads (`codegen/simt/`), which run on memory of
the device (`native/threads/emulated_device.cpp`). Tests compute on it what they compute on the CPU:
a missing copy or a missing wait stops the process, or shows NaN. A form of kernel that threads do
not have is that of the CPU, and what has no kernel is computed on the host.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0], device="emulated")
>>> (x + x).device, (x + x).tolist()
('emulated:0', [2.0, 4.0])
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.codegen.simt.words import BLOCK_THREADS
from tenfold.runtime.device import declare
from tenfold.runtime.devices.cpu import Cpu
from tenfold.schedule.target import Target

NUM_DEVICES = 2


class Emulated(Cpu):
    """One of the emulated devices."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = f"emulated:{number}"

    def target(self) -> Target:
        """Return the facts of this processor, on one thread: the queue runs a launch at a time."""
        target = super().target()
        work = replace(target.work, threads=1)
        return replace(target, device=self.name, work=work, block=BLOCK_THREADS)


for _number in range(NUM_DEVICES):
    declare(Emulated(_number))
