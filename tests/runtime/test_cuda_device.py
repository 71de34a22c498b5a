"""The CUDA device: on a fake driver that runs the text of the kernels, and without a driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fake_cuda

pytestmark = pytest.mark.cpu  # names its devices
ROOT = Path(__file__).parents[2]
SELECTION = (
    "tests/tiny",
    "tests/runtime/test_streams.py",
)
"""What `make fake-cuda` has all of."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a process that finds the fake driver."""
    if not shutil.which("c++") or not fake_cuda.NATIVE.is_dir():
        pytest.skip("needs a compiler of C++ and native/")
    folder = fake_cuda.build(tmp_path_factory.mktemp("driver"))
    return {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT / "tests/runtime")}


def output_of(program: str, environment: dict[str, str]) -> str:
    """What a program prints."""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_device_without_a_driver_says_what_is_missing() -> None:
    program = (
        "import tenfold as tn\n"
        "try: tn.asarray([1.0]).to_device('cuda')\n"
        "except tn.errors.DeviceError as error: print(error)\n"
    )
    folder = "/nowhere"
    printed = output_of(program, {**os.environ, "LD_LIBRARY_PATH": folder})
    if "does not exist" not in printed:
        pytest.skip("there is a driver")
    assert "to_device: device 'cuda' does not exist: " in printed
    assert "remedy: install NVIDIA's driver for Linux, whose library is libcuda.so.1" in printed
    assert "the devices here are: 'reference', 'cpu', 'emulated:0', 'emulated:1'" in printed


def test_kernels_and_what_the_host_computes_have_the_bits_of_the_cpu(
    environment: dict[str, str],
) -> None:
    program = (
        "import fake_cuda, numpy as np, tenfold as tn\n"
        "driver = fake_cuda.install()\n"
        "values = np.random.default_rng(0).standard_normal((70, 50)).astype(np.float32)\n"
        "def results(device):\n"
        "    x = tn.asarray(values, device=device)\n"
        "    long = tn.asarray(np.tile(values.ravel(), 30), device=device)\n"
        "    found = [tn.exp(x) * 2, tn.sum(x, axis=0), tn.sum(x, axis=1), tn.sum(long), x @ x.T]\n"
        "    found += [tn.sort(x), tn.cumulative_sum(x, axis=1), tn.linalg.svdvals(x)]\n"
        "    assert {each.device for each in found} == {x.device}\n"
        "    return [np.asarray(each).tobytes() for each in found]\n"
        "expected = results('cpu')\n"
        "for device in ('cuda', 'cuda:1', 'cuda:0'):\n"
        "    assert results(device) == expected\n"
        "assert driver.fake_cuda_misuse() == b''\n"
        "try: tn.asarray([1], device='cuda:2')\n"
        "except tn.errors.DeviceError as error: print(str(error).splitlines()[-1])\n"
    )
    printed = output_of(program, environment)
    assert printed.strip().endswith("'emulated:0', 'emulated:1', 'cuda:0', 'cuda:1'")


def test_child_of_a_fork_gets_an_error(environment: dict[str, str]) -> None:
    program = (
        "import fake_cuda, os, tenfold as tn\n"
        "fake_cuda.install()\n"
        "x = tn.eval(tn.asarray([1.0], device='cuda') + 1)\n"
        "if child := os.fork():\n"
        "    assert os.waitpid(child, 0)[1] == 0 and (x + 1).tolist() == [3.0]\n"
        "else:\n"
        "    for use in (x.tolist, (x * 2).wait, lambda: tn.asarray([1.0], device='cuda')):\n"
        "        try: use()\n"
        "        except tn.errors.DeviceError as error: assert 'fork has no device' in str(error)\n"
        "        else: os._exit(1)\n"
        "    assert (tn.asarray([1.0]) * 2).tolist() == [2.0]\n"
        "    os._exit(0)\n"
    )
    output_of(program, environment)


def test_call_of_the_driver_that_fails_is_an_error_for_each_use(
    environment: dict[str, str],
) -> None:
    program = (
        "import ctypes, fake_cuda, numpy as np, tenfold as tn\n"
        "driver = fake_cuda.install()\n"
        "x = tn.eval(tn.asarray(np.ones(8), device='cuda') + 1)\n"
        "x.tolist()\n"
        "driver.fake_cuda_fail(ctypes.c_long(3), 999)\n"
        "pushed = tn.Engine().push(tn.operators.exp, x)\n"
        "for use in ((x * 2).wait, x.tolist, (x * 2).wait, pushed.get):\n"
        "    try: use()\n"
        "    except tn.errors.DeviceError as error: print(str(error).splitlines()[0])\n"
    )
    lines = output_of(program, environment).splitlines()
    assert len(lines) >= 3
    for line in lines:
        assert "device 'cuda:0' has failed: cu" in line
        assert "CUDA_ERROR_FAKE (as the test wants it)" in line


def test_a_selection_of_tests_passes_on_the_fake_driver(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fake_cuda", "--numprocesses=0"]
    command += ["--no-header", "-p", "no:cacheprovider", *SELECTION]
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "TENFOLD_DEVICE": "cuda"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
