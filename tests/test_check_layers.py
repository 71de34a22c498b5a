"""The checker of native layers finds every kind of offender, and this repository has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def check(root: Path) -> tuple[int, list[str]]:
    program = [sys.executable, str(ROOT / "tools" / "check_layers.py"), str(root)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def write(root: Path, name: str, text: str) -> None:
    path = root / "native" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_this_repository_has_no_offender() -> None:
    assert check(ROOT) == (0, [])


def test_includes_of_the_own_layer_and_below_pass(tmp_path: Path) -> None:
    write(tmp_path, "exec/a.cpp", '#include <span>\n#include "exec/b.h"\n#include "ir/node.h"\n')
    write(tmp_path, "memory/pool.cpp", '#include "threads/counters.h"\n')
    write(tmp_path, "tests/test_a.cpp", "Result result = Launch(work).run();\n")
    assert check(tmp_path) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "ir/node.h",
            '#include <span>\n#include "exec/gather.h"\n',
            "native/ir/node.h:2: includes exec/gather.h, which is in a higher layer",
        ),
        (
            "memory/slab.h",
            '#include "threads/device.h"\n',
            "native/memory/slab.h:1: includes threads/device.h, which is in a higher layer",
        ),
        (
            "graphics/a.cpp",
            "",
            "native/graphics/a.cpp: its room is in no layer of tools/check_layers.py",
        ),
        (
            "exec/a.h",
            "// (*)(void** buffers)\nusing Kernel = int64_t (*)(void** buffers,\n",
            "native/exec/a.h:2: the C type of a kernel belongs to threads/cpu_device.h",
        ),
        (
            "exec/a.cpp",
            "HostKernel::call(kernel, buffers);\n",
            (
                "native/exec/a.cpp:1: a call of a kernel belongs to threads/worker_pool.cpp,"
                " engine/batch_rows.cpp"
            ),
        ),
        (
            "exec/a.cpp",
            "auto function = kernel.entry();\n",
            (
                "native/exec/a.cpp:1: the address in a KernelHandle belongs to"
                " threads/cpu_device.h, threads/cuda_device.cpp, python/code_bindings.cpp"
            ),
        ),
        (
            "exec/a.cpp",
            "\nLaunch launch(work);\n",
            (
                "native/exec/a.cpp:2: a Launch on the worker pool belongs to"
                " threads/cpu_device.cpp, threads/emulated_device.cpp, threads/worker_pool.cpp,"
                " threads/worker_pool.h, python/launch_bindings.cpp"
            ),
        ),
        (
            "python/a.cpp",
            "return *static_cast<bool*>(value->buffers[0].address());\n",
            (
                "native/python/a.cpp:1: an address of array memory without host_data() belongs to"
                " ir/value.h, ir/value.cpp, exec/executable.cpp, exec/gather.cpp,"
                " exec/matrix_product.cpp, exec/op_interpreter.cpp, exec/part_copy.cpp,"
                " exec/reduction_kernels.cpp, exec/stacking.cpp, engine/batch_rows.cpp,"
                " python/launch_bindings.cpp, python/cuda_bindings.cpp, python/scan_loop.cpp,"
                " python/value_bindings.cpp"
            ),
        ),
        (
            "exec/a.cpp",
            "plan.device->launch(work, context);\n",
            "native/exec/a.cpp:1: a call of Device::launch belongs to threads/device.h",
        ),
    ],
)
def test_each_rule_names_its_offender(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, name, text)
    assert check(tmp_path) == (1, [message])
