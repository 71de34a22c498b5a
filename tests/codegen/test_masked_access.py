"""Masked loads and stores by functions, for processors that lack the instructions."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, settings
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.loop_ir import Kernel, KernelOperand, KernelStore
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import DTYPES
from tenfold.schedule.target import Simd
from tenfold.testing import assert_equal_bits

CPUS = [
    name
    for name, level in settings.CPU_LEVELS.items()
    if level <= _native.processor_level() and level <= 3
]
SIZES = (1, 31, 64, 65, 257)


def kernel(dtype: str, steps: str) -> Kernel:
    body = Body()
    x = body.load(0, DTYPES[dtype])
    operands = (
        KernelOperand(DTYPES[dtype], steps),
        KernelOperand(DTYPES[dtype], "1", written=True),
    )
    return Kernel(operands, tuple(body.instructions), (KernelStore(1, (x.position,)),), lanes=32)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", ["int8", "float16", "int32", "float64", "complex64"])
def test_packets_that_are_not_whole_have_the_bits_of_numpy(dtype: str, cpu: str) -> None:
    with tn.options(device="cpu", cpu=cpu):
        for size in SIZES:
            values = np.arange(2 * size).reshape(2, size).astype(dtype)
            x = tn.asarray(values)
            assert_equal_bits(x + x, values + values)
            assert_equal_bits(x[:, ::-1] + x[:, ::-1], (values + values)[:, ::-1])
            assert_equal_bits(x.T + x.T, (values + values).T)


@pytest.mark.parametrize(
    ("dtype", "steps", "smallest", "called"),
    [
        ("int8", "1", 1, False),
        ("int8", "1", 4, True),
        ("float32", "1", 4, False),
        ("float32", "1", 16, True),
        ("float32", "s", 4, True),
        ("float32", "s", 1, False),
    ],
)
def test_functions_stand_in_where_the_processor_lacks_an_instruction(
    dtype: str, steps: str, smallest: int, called: bool
) -> None:
    text = render(kernel(dtype, steps), Simd(masked_bytes=smallest))
    assert ("call <32 x " in text and "@masked." in text) == called
    assert ("@llvm.masked.load" in text or "@llvm.masked.gather" in text) == (not called)


def test_each_function_stands_once_in_a_module() -> None:
    body = Body()
    values = [body.load(i, DTYPES["int16"]) for i in range(3)]
    total = values[0] + values[1] + values[2]
    operands = [KernelOperand(DTYPES["int16"], "1", written=i == 3) for i in range(4)]
    stored = (KernelStore(3, (total.position,)),)
    text = render(
        Kernel(tuple(operands), tuple(body.instructions), stored, lanes=32), Simd(masked_bytes=4)
    )
    assert text.count("define internal") == 2


def long_maps(x: tn.Array) -> tuple[tn.Array, ...]:
    """Return results of more than 40 instructions, whose loop has one masked body."""
    y = x
    for i in range(1, 16):
        y = y * x + i
        y = tn.where(y > 100, y - 100, y)
    return y, y > 50, y * 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_long_bodies_store_whole_packets_and_tails(dtype: str, cpu: str, threads: int) -> None:
    with tn.options(device="cpu", cpu=cpu, tier=1, threads=threads):
        for size in (1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000, 70_001):
            values = (np.arange(size) % 7 / 4).astype(dtype)
            with tn.options(device="reference"):
                expected = [np.asarray(each) for each in long_maps(tn.asarray(values))]
            for _ in range(2):
                found = tn.eval(*long_maps(tn.asarray(values)))
                for one, other in zip(found, expected, strict=True):
                    assert_equal_bits(one, other)


@pytest.mark.parametrize(("smallest", "branches"), [(1, 0), (4, 1), (16, 0)])
def test_a_packet_with_all_lanes_takes_an_ordinary_store_with_avx2(
    smallest: int, branches: int
) -> None:
    body = Body()
    x = body.load(0, DTYPES["float64"])
    operands = (
        KernelOperand(DTYPES["float64"], "1"),
        KernelOperand(DTYPES["float64"], "1", written=True),
    )
    stores = (KernelStore(1, ((x * 2.0).position,)),)
    masked = Kernel(operands, tuple(body.instructions), stores, lanes=16, masked=True)
    text = render(masked, Simd(masked_bytes=smallest))
    assert text.count(".whole:") == branches
