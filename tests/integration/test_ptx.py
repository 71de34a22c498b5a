"""PTX of kernels of threads: ptxas, of the package nvidia-cuda-nvcc, assembles all of it.

A fixed sample with all kernels of rows, for one processor; `make ptx` takes all kernels and three
processors.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from sampled_kernels import all_kernels, common_words
from tenfold.codegen.simt.row_table import RowTable
from tenfold.core.loop_ir import Kernel, KernelForm
from tenfold.jit.program import source_of
from tenfold.jit.ptx import ThreadKernel, ptx_of, ptx_source
from tenfold.schedule.target import DEFAULT

SAMPLE = 300
EVERY = os.environ.get("TENFOLD_PTX") == "all"
PROCESSORS = ("sm_75", "sm_90", "sm_120") if EVERY else ("sm_90",)
PARTS = 20
"""The tests that share the kernels."""


@pytest.fixture(scope="module")
def ptxas() -> Path:
    package = find_spec("nvidia")
    places = package.submodule_search_locations if package is not None else None
    for place in places or ():
        for program in Path(place).glob("**/bin/ptxas"):
            return program
    return pytest.skip("nvidia-cuda-nvcc is not installed")


@pytest.fixture(scope="module")
def kernels(ptxas: Path) -> list[ThreadKernel]:
    assert ptxas.exists()  # nothing is generated where it is missing
    found = all_kernels()
    assert len(found) > 2000
    rows_first = sorted(found, key=lambda kernel: not isinstance(kernel, RowTable))
    return rows_first if EVERY else rows_first[:SAMPLE]


def assembled(ptxas: Path, folder: Path, text: str, processor: str) -> str:
    """What ptxas says of the registers and the stack of a text."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [ptxas, "--verbose", f"--gpu-name={processor}", source, "--output-file=/dev/null"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{result.stderr}\n{text}"
    return result.stderr


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("processor", PROCESSORS)
def test_ptx_has_the_text_of_the_host_is_assembled_and_rounds_each_operation(
    processor: str, part: int, kernels: list[ThreadKernel], ptxas: Path, tmp_path: Path
) -> None:
    for kernel in kernels[part::PARTS]:
        text = ptx_of(kernel, processor)
        for forbidden in (".approx", ".ftz", "min.NaN", "max.NaN"):
            assert forbidden not in text, kernel
        assert not re.search(r"\b(add|sub|mul|div|fma|sqrt)\.f(16|32|64)", text), kernel
        source = ptx_source(kernel)
        assert common_words(source) == common_words(source_of(kernel, DEFAULT))
        asked = re.findall(r"= call .*@llvm\.fma\.(?:v(\d+))?", source)  # of so many numbers
        assert text.count("fma.rn.") <= sum(int(lanes or 1) for lanes in asked), kernel
        report = assembled(ptxas, tmp_path, text, processor)
        if isinstance(kernel, Kernel) and kernel.form is KernelForm.MAP:
            spilled = re.findall(r"(\d+) bytes spill", report)
            assert set(spilled) == {"0"}, f"{kernel}\n{report}"
