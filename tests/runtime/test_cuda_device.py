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


SHARED = (
    "import ctypes, gc, fake_cuda, foreign_cuda, numpy as np, tenfold as tn\n"
    "driver = fake_cuda.install()\n"
    "driver.fake_cuda_seed(ctypes.c_uint64({seed}))\n"
    "rows = np.arange(24, dtype=np.float32).reshape(4, 6)\n"
    "x = tn.asarray(rows, device='cuda:1')\n"
    "library = foreign_cuda.Library(driver)\n"
)
"""The beginning of a program in which another library shares memory."""


@pytest.mark.parametrize("seed", [0, 5])
def test_memory_is_lent_behind_what_writes_it_and_is_written_behind_who_reads_it(
    environment: dict[str, str], seed: int
) -> None:
    program = (
        SHARED.format(seed=seed) + "assert (x * 2).__dlpack_device__() == (2, 1)\n"
        "for copy in (None, True, False):\n"
        "    for stream in (None, 1, 2, library.stream.value):\n"
        "        with tn.stream('cuda:1'):\n"
        "            y = tn.exp(x * 0) + x\n"
        "        found = library.values_of(y, stream=stream, copy=copy)\n"
        "        assert library.is_read_only == (copy is False)\n"
        "        if stream == library.stream.value: assert np.array_equal(found, rows + 1)\n"
        "assert np.array_equal(library.values_of(x[1:, ::2], copy=False), rows[1:, ::2])\n"
        "for dtype in ('int8', 'uint16', 'complex64', 'complex128', 'bool', 'float16'):\n"
        "    z = tn.astype(x > 3, dtype)\n"
        "    assert np.array_equal(library.values_of(z), np.asarray(z)), dtype\n"
        "for step in range(20):\n"
        "    y = tn.eval(x + step)\n"
        "    late = library.values_of(y, copy=False, waits=False)\n"
        "    if step % 2: y[...] = 0\n"
        "    else: del y; y = x * 0\n"
        "    tn.eval(y)\n"
        "    assert np.array_equal(late(), rows + step), step\n"
        "assert np.array_equal(np.from_dlpack(x, device='cpu', copy=True), rows)\n"
        "for request in ({'stream': 0}, {'stream': 'a'}, {'dl_device': (2, 0)},\n"
        "                {'dl_device': (1, 0), 'copy': False},\n"
        "                {'dl_device': (1, 0), 'stream': 1}):\n"
        "    try: x.__dlpack__(**request)\n"
        "    except BufferError as error: assert 'remedy: ' in str(error)\n"
        "    else: raise AssertionError(request)\n"
        "assert driver.fake_cuda_misuse() == b''\n"
    )
    output_of(program, environment)


@pytest.mark.parametrize("seed", [0, 5])
def test_memory_is_borrowed_behind_its_owner_who_gets_it_back_when_it_was_read(
    environment: dict[str, str], seed: int
) -> None:
    program = (
        SHARED.format(seed=seed) + "Other = foreign_cuda.ForeignArray\n"
        "for dtype in ('float32', 'int8', 'uint16', 'complex128', 'bool'):\n"
        "    values = rows.astype(dtype)\n"
        "    other = Other(library, values, 1)\n"
        "    a = tn.from_dlpack(other)\n"
        "    assert a.device == 'cuda:1' and a.dtype == dtype and other.lent == 0\n"
        "    assert np.array_equal(np.asarray(a), values)\n"
        "other = Other(library, rows, 1)\n"
        "parts = [slice(None), np.s_[1:3, ::2], np.s_[::-1, 2], 0]\n"
        "for copy in (False, True, None):\n"
        "    views = [tn.from_dlpack(other.part(part), copy=copy) for part in parts]\n"
        "    for part, view in zip(parts, views):\n"
        "        assert np.array_equal(np.asarray(tn.sort(view)), np.sort(rows[part]))\n"
        "        with tn.stream('cuda:1'): twice = tn.eval(view * 2)\n"
        "        assert np.array_equal(np.asarray(twice), rows[part] * 2)\n"
        "del views, view; (x + 1).tolist(); gc.collect()\n"
        "assert other.lent == 0\n"
        "overlapping = tn.from_dlpack(other.part(slice(2, 4)), copy=False)\n"
        "try: tn.from_dlpack(other, copy=False)\n"
        "except ValueError as error: assert 'overlaps' in str(error)\n"
        "assert np.array_equal(np.asarray(tn.from_dlpack(other)), rows)\n"
        "del overlapping; (x + 1).tolist()\n"
        "empty = tn.from_dlpack(other.part(slice(0, 0)), copy=False)\n"
        "assert empty.shape == (0, 6) and tn.sum(empty).item() == 0\n"
        "for step in range(20):\n"
        "    other = Other(library, rows + step, 1)\n"
        "    other.clears = True\n"  # its owner writes to what it gets back
        "    y = tn.eval(tn.from_dlpack(other, copy=False) * 2)\n"
        "    gc.collect(); np.asarray(x)\n"
        "    assert np.array_equal(np.asarray(y), (rows + step) * 2), step\n"
        "assert tn.asarray(other, dtype='float64').dtype == 'float64'\n"
        "assert tn.from_dlpack(Other(library, rows, 1), device='cpu').device == 'cpu'\n"
        "class Ours:\n"
        "    __dlpack__ = staticmethod(lambda **_: x.__dlpack__(**_, copy=False))\n"
        "    __dlpack_device__ = x.__dlpack_device__\n"
        "back = tn.from_dlpack(Ours(), copy=False)\n"
        "assert np.array_equal(np.asarray(back + x), rows * 2)\n"
        "del back; assert np.array_equal(np.asarray(x), rows)\n"
        "other.number = 9\n"
        "try: tn.from_dlpack(other)\n"
        "except tn.errors.DeviceError as error: assert 'cuda:9' in str(error)\n"
        "assert driver.fake_cuda_misuse() == b''\n"
    )
    output_of(program, environment)


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
