"""Every second, third and fourth element: picked out of registers, and nothing past the last."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, settings
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import SMALL_STEPS, Kernel, KernelOperand, KernelStore
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import DTYPES
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.target import target_of
from tenfold.testing import assert_equal_bits

CPUS = [name for name, level in settings.CPU_LEVELS.items() if level <= _native.processor_level()]
NAMES = ["bool", "int8", "float16", "int32", "float64", "complex64"]


def kernel(dtype: str, step: str, lanes: int) -> Kernel:
    """Return a kernel that copies elements at a step to elements at the same."""
    body = Body()
    x = body.load(0, DTYPES[dtype])
    operands = (
        KernelOperand(DTYPES[dtype], step),
        KernelOperand(DTYPES[dtype], step, written=True),
    )
    return Kernel(operands, tuple(body.instructions), (KernelStore(1, (x.position,)),), lanes=lanes)


def steps(array: tn.Array) -> list[str]:
    """Return how the operands of the one kernel of an array are stepped through."""
    (launch,) = (step.launch for step in schedule_graph(graph(array)).steps if step.launch)
    return [operand.steps for operand in launch.kernel.operands]


def graph(array: tn.Array) -> Graph:
    """Return the graph of a pending array."""
    return Graph.of([_native.node_of(array)])


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", NAMES)
def test_elements_at_small_strides_have_the_bits_of_numpy(name: str, cpu: str) -> None:
    with tn.options(cpu=cpu):
        for stride in (2, 3, 4, 5):
            for size in (1, 63 * stride + 1, 64 * stride, 150 * stride - 1):
                values = (np.arange(size) % 113).astype(name)
                part = values[size % stride :: stride]
                result = tn.asarray(values)[size % stride :: stride]
                assert_equal_bits(tn.where(result == 0, result, result), part)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", NAMES)
def test_elements_between_those_replaced_stay_as_they_are(name: str, cpu: str) -> None:
    with tn.options(cpu=cpu):
        for stride in (2, 3, 4):
            values = (np.arange(301 * stride) % 113).astype(name)
            x = tn.asarray(values.copy())
            x[1::stride] = x[1::stride][::-1] == x[1::stride]
            expected = values.copy()
            expected[1::stride] = expected[1::stride][::-1] == expected[1::stride]
            assert_equal_bits(x, expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_past_the_last_element_is_written(name: str, cpu: str) -> None:
    """Bytes that are made of wider elements: a packet of them does not fill its last register."""
    given = np.arange(96).astype(name)
    with tn.options(cpu=cpu):
        for stride in (2, 3, 4):
            for count in (8, 16, 24, 32, 64, 96):
                values = np.ones(stride * count + 200, bool)
                x, wide = tn.asarray(values), tn.asarray(given[:count]).wait()
                x[: stride * count : stride] = wide == 5
                values[: stride * count : stride] = given[:count] == 5
                assert_equal_bits(x, values)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("axis", [0, 1])
def test_folds_of_every_second_element_have_the_bits_of_the_reference(axis: int, cpu: str) -> None:
    values = np.random.default_rng(0).random((70, 211), dtype=np.float32)
    for stride in (2, 3):
        with tn.options(cpu=cpu):
            part = tn.asarray(values)[::stride, 1::stride]
            result = np.asarray(tn.sum(part * part, axis=axis))
        with tn.options(device="reference"):
            part = tn.asarray(values)[::stride, 1::stride]
            assert_equal_bits(result, np.asarray(tn.sum(part * part, axis=axis)))


def test_small_strides_of_real_elements_are_known_to_the_kernel():
    x = tn.asarray(np.arange(400.0))
    assert steps(x[::2] + x[1::2]) == ["2", "2", "1"]
    assert steps(x[::4] + 1) == ["4", "1"]
    assert steps(x[::5] + 1) == ["s", "1"]
    assert steps(x[::-2] + 1) == ["s", "1"]
    assert steps(tn.asarray(np.ones(400, "complex64"))[::2] + 1) == ["s", "1"]


@pytest.fixture
def page():
    """Bytes up to the end of a page, after which comes one that may not be touched."""
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    whole = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None).mprotect
    guard = ctypes.c_void_p(whole.ctypes.data + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE)
    assert protect(*guard, 0) == 0
    yield whole[: mmap.PAGESIZE]
    assert protect(*guard, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@pytest.mark.parametrize("cpu", CPUS)
def test_nothing_past_the_last_element_is_read(page: np.ndarray, cpu: str) -> None:
    with tn.options(cpu=cpu):
        for name in ("int8", "float32", "float64"):
            for stride in (2, 3, 4):
                values = page.view(name)
                part = values[(values.size - 1) % stride :: stride]
                part[...] = np.arange(part.size) % 100
                result = tn.from_dlpack(values, copy=False)[(values.size - 1) % stride :: stride]
                assert_equal_bits(tn.minimum(result, result), part)


@pytest.mark.parametrize("step", SMALL_STEPS)
def test_whole_packets_need_no_gather_and_no_scatter(step: str) -> None:
    text = render(kernel("float64", step, 16), target_of("x86-64-v4").simd)
    before, after = text.split(".then:")  # the packet that is not whole
    assert "gather" not in before
    assert "scatter" not in before
    assert "load <8 x double>" in before
    assert "masked.load.v8f64" in after
