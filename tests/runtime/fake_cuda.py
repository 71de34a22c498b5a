"""Fake CUDA driver in Python's tests: a plugin of pytest that lets it run the kernels of the host.

`native/tests/fake_cuda.cpp` is the driver, as `libcuda.so.1` on LD_LIBRARY_PATH. For each text of
PTX this plugin compiles the same kernel for the processor, and tells the driver, which then runs
it as it would run the text.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import zlib
from pathlib import Path

import pytest

from tenfold.codegen.simt.module import common_text
from tenfold.codegen.simt.thread_product import ThreadProduct
from tenfold.jit import ptx
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS, Program

NATIVE = Path(__file__).parents[2] / "native"
LIBRARY = "libcuda.so.1"
HEAD = re.compile(
    r"^thread (\w+) operands \d+ sizes (\d+) scalars (\d+) words (\d+) shared (\d+)", re.MULTILINE
)


def build(folder: Path) -> Path:
    """Compile the driver; return its folder."""
    command = ["c++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-Wl,-soname,{LIBRARY}"]
    command += [f"-I{NATIVE}", str(NATIVE / "tests/fake_cuda.cpp"), "-o", str(folder / LIBRARY)]
    subprocess.run(command, check=True)
    return folder


def install() -> ctypes.CDLL:
    """Let the driver run what becomes PTX; return it."""
    driver, text_of = ctypes.CDLL(LIBRARY), ptx.ptx_of
    driver.fake_cuda_misuse.restype = ctypes.c_char_p
    kept: list[Program] = []  # the driver calls their functions

    def defined(kernel: ptx.ThreadKernel, processor: str) -> str:
        text, target = text_of(kernel, processor), host_target()
        program = PROGRAMS.compile(kernel, target.processor, optimised=False)
        kept.append(program)
        words = (
            kernel.common_text()
            if isinstance(kernel, ThreadProduct)
            else common_text(kernel, fma=target.simd.fma)
        )
        for name, *numbers in HEAD.findall(words):
            sizes, scalars, end, shared = map(int, numbers)
            function = program.finish if name == "finish" else program.kernel
            assert function is not None
            counts = [sizes, scalars - sizes, end - 1 - scalars, shared]
            address = ctypes.c_void_p(function.address)
            arguments = map(ctypes.c_size_t, counts)
            driver.fake_cuda_define(text.encode(), name.encode(), address, *arguments)
        return text

    ptx.ptx_of = defined
    return driver


def pytest_configure(config: pytest.Config) -> None:
    """Install it; half of the processes run queued work at random moments."""
    driver, worker = install(), getattr(config, "workerinput", {}).get("workerid", "")
    driver.fake_cuda_seed(ctypes.c_uint64(zlib.crc32(worker.encode())))
    config.add_cleanup(lambda: check_use(driver))


def check_use(driver: ctypes.CDLL) -> None:
    """Check that nothing was misused."""
    assert driver.fake_cuda_misuse() == b""
