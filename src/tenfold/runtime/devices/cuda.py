"""CUDA device: the devices of NVIDIA's driver, whose kernels of threads are PTX (`jit/ptx.py`).

Takes Graphs, hands on Executables that the driver in `native/threads/cuda_device.cpp` runs. The
driver's library is opened when a program first names such a device; without it nothing else
changes. A form of kernel that threads do not have, and what has no kernel, runs on the host.

>>> import tenfold as tn
>>> try:
...     x = tn.asarray([1.0, 2.0]).to_device("cuda:99")
... except tn.errors.DeviceError as error:
...     print(str(error).partition(" exist")[0])
to_device: device 'cuda:99' does not
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tenfold import _native
from tenfold.codegen.simt.words import BLOCK_THREADS
from tenfold.runtime.device import declare
from tenfold.runtime.devices.cpu import Cpu
from tenfold.schedule.target import Target
from tenfold.settings import declare_late_devices

DRIVER_REMEDY = "install NVIDIA's driver for Linux, whose library is libcuda.so.1"


class Cuda(Cpu):
    """One of the devices."""

    def __init__(self, number: int, processor: str) -> None:
        super().__init__()
        self.name, self.processor = f"cuda:{number}", processor

    def target(self) -> Target:
        """Return the facts of the device, with those of the host for what runs there."""
        target = super().target()
        return replace(target, device=self.name, block=BLOCK_THREADS, ptx_processor=self.processor)


@cache
def declare_devices() -> tuple[str, str]:
    """Declare the devices that the driver finds; return what is missing, and what to do."""
    processors, missing = _native.cuda_processors()
    for number, processor in enumerate(processors):
        declare(Cuda(number, processor))
    return (missing, DRIVER_REMEDY) if missing else ("", "")


declare_late_devices("cuda", declare_devices)
