"""The text of products: what it depends on, what it needs from outside, that it has packets."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from tenfold.codegen.gemm.blas_call import BlasGemm
from tenfold.codegen.gemm.blocked import BlockedGemm
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.emitter import Arithmetic
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.dtypes import DTYPES, FLOAT32, FLOAT64

Kernel = SmallGemm | BlockedGemm | DotProduct | BlasGemm
CPUS = {16: "x86-64-v2", 32: "x86-64-v3", 64: "x86-64-v4"}


def kernels(dtype: np.dtype, width: int) -> list[Kernel]:
    """Return one packet kernel of each kind."""
    arithmetic = Arithmetic(dtype, width)
    return [
        SmallGemm(arithmetic, (3, 2, 5), ("row", "any"), axes=2),
        BlockedGemm(RegisterTile.of(dtype, width, 5, 50), axes=1, conjugated=True),
        DotProduct(arithmetic, contiguous=(True, True), axes=1),
    ]


def emitted(text: str, width: int) -> bytes:
    """Return the object code of a module for a processor with registers of so many bytes."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=CPUS[width], opt=2, jit=True)
    return bytes(machine.emit_object(module))


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", CPUS)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_objects_need_no_symbol_from_outside(dtype: np.dtype, width: int) -> None:
    for kernel in kernels(dtype, width):
        code = emitted(kernel.text(), width)
        for name in (b"__", b"memset", b"memcpy", b"fma"):
            assert name not in code, (kernel, name)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_dtype_is_multiplied_in_packets(dtype: np.dtype) -> None:
    for kernel in kernels(dtype, 32):
        assert re.search(r"llvm\.fma\.v\d|(mul|and) <\d+ x i", kernel.text())


def test_text_is_the_same_for_equal_kernels() -> None:
    for kernel, other in zip(kernels(FLOAT64, 32), kernels(FLOAT64, 32), strict=True):
        assert kernel == other
        assert kernel.text() == other.text()


def test_text_begins_with_what_it_computes() -> None:
    for kernel in (*kernels(FLOAT32, 64), BlasGemm(FLOAT32, ("row", "column"), 1)):
        lines = [line.removeprefix("; ") for line in kernel.text().splitlines()]
        assert lines[: str(kernel).count("\n") + 1] == str(kernel).splitlines()


def test_registers_of_16_bytes_have_no_fused_multiply_add() -> None:
    for kernel in kernels(FLOAT32, 16):
        assert "llvm.fma" not in kernel.text()
        assert "fmul" in kernel.text()


@pytest.mark.parametrize("width", CPUS)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_a_tile_fits_in_the_registers(dtype: np.dtype, width: int) -> None:
    arithmetic = Arithmetic(dtype, width)
    for rows in (1, 2, 3, 7, 12, 100):
        for columns in (1, 3, 16, 50, 1000):
            for exact in (False, True):
                tile = RegisterTile.of(dtype, width, rows, columns, exact=exact)
                sums = tile.rows * tile.packets * arithmetic.components
                assert sums + tile.packets < arithmetic.register_count
                assert tile.rows <= rows
                assert tile.lanes <= arithmetic.register_lanes


def test_tiles_that_are_not_exact_come_in_few_heights() -> None:
    tiles = {RegisterTile.of(FLOAT32, 64, m, n) for m in range(1, 200) for n in range(16, 200)}
    assert len(tiles) <= 26
    exact = {
        RegisterTile.of(FLOAT32, 64, m, n, exact=True)
        for m in range(1, 200)
        for n in range(16, 200)
    }
    assert len(exact) > len(tiles)


def test_an_exact_tile_leaves_little_idle() -> None:
    tile = RegisterTile.of(FLOAT32, 64, 13, 33, exact=True)
    assert (tile.rows, tile.packets) == (7, 3)


def test_library_product_calls_through_the_buffers() -> None:
    text = BlasGemm(FLOAT64, ("row", "row")).text()
    assert "declare" not in text.replace("declare i64 @llvm.smin.i64", "")
    assert re.search(r"call void %v\d+\(", text)
