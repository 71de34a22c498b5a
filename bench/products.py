"""Products by packet code and by BLAS, beside numpy.matmul: where schedule/product_choice.py
changes over.

Run: python bench/products.py [width of registers in bytes] [--smoke]. The width is
this processor's unless one is given. Three tables: square products by packet
code, by gemm in panels on our threads, by one gemm that starts its own threads, and by NumPy;
stacks of 10,000 small ones; vectors. Microseconds, medians, one run, results in memory that is
there already (NumPy: out=). The rest of the machine should be idle.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
from value_checks import Comparison, smoke_wanted

from tenfold import _native
from tenfold._native import Type
from tenfold.jit.host import host_target
from tenfold.ops.contract import matmul
from tenfold.runtime.blas import product_dispatch, routines
from tenfold.runtime.blas.product_dispatch import ProductStep, bind_product
from tenfold.schedule.product_choice import choose_product
from tenfold.schedule.product_forms import ProductOperand
from tenfold.schedule.target import target_of

CPUS = {16: "x86-64-v2", 32: "x86-64-v3", 64: "x86-64-v4"}
SQUARE_DTYPES = ("float32", "float64", "complex64", "complex128")
SQUARES = (16, 64, 128, 256, 512, 1024, 2048)
STACK_DTYPES = ("float32", "float64", "complex64", "int32")
STACKS = (2, 3, 4, 8, 12, 16, 24, 32)
VECTOR_DTYPES = ("float32", "float64")
VECTORS = (
    ((1000, 1000), (1000,)),
    ((1000,), (1000, 1000)),
    ((4000, 4000), (4000,)),
    ((4000,), (4000, 4000)),
    ((100_000, 8), (8,)),
    ((100_000, 3), (3,)),
    ((1_000_000,), (1_000_000,)),
)
_kept: list[object] = []
_blas_limit: list[int | None] = [None]


def median(work: Callable[[], object], least: float = 0.15) -> float:
    """Return the median time in microseconds of repeated runs of at least `least` seconds."""
    times: list[float] = []
    while sum(times) < least or len(times) < 3:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def compiled(text: str, width: int) -> int:
    """Return the address of the kernel of a module."""
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=CPUS[width], opt=2, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    _kept.append(engine)
    return int(engine.get_function_address("kernel"))


def launcher(
    x1: np.ndarray, x2: np.ndarray, out: np.ndarray, width: int, threads: int
) -> tuple[ProductStep, Callable[[], None]]:
    """Return the step of a matrix product and what launches it."""
    factors = [ProductOperand(x.shape, x.strides, x.dtype) for x in (x1, x2)]
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in (x1, x2))
    assert matmul.rewriting.contraction is not None, "a product says what it contracts"
    target = target_of(CPUS[width])
    libraries = replace(target.libraries, blas_multiply_adds=_blas_limit[0])
    target = replace(target, libraries=libraries)
    contraction = matmul.rewriting.contraction(types)
    step = bind_product(choose_product(contraction, *factors, target=target))
    address, sizes = compiled(step.text, width), struct.pack(f"{len(step.sizes)}q", *step.sizes)
    arrays = [(x1, x2)[i] for i in step.operands]
    buffers = [*(x.ctypes.data for x in (*arrays, out)), *step.addresses]

    def run() -> None:
        with routines.limited_threads() if step.addresses and threads else nullcontext():
            _native.launch(
                address, buffers, sizes, b"", step.scratch, step.units, step.grain, threads
            )

    return step, run


def forced(limit: int | None) -> None:
    """Let every matrix be a library call, or none."""
    _blas_limit[0] = limit


def squares(width: int, threads: int) -> None:
    """Packet code, panels, one threaded call and NumPy."""
    print(f"{'dtype':10} {'n':>5} {'packets':>10} {'panels':>10} {'one gemm':>10} {'numpy':>10}")
    for dtype in SQUARE_DTYPES:
        for n in SQUARES:
            x1, x2 = (np.random.default_rng(0).normal(size=(n, n)).astype(dtype) for _ in range(2))
            out = np.empty_like(x1)
            row = []
            for limit, panel in ((None, 0), (0, 256), (0, n)):
                forced(limit)
                product_dispatch.PANEL = panel or 256
                # one gemm: on the caller's thread, not held, so BLAS starts threads of its own
                run = launcher(x1, x2, out, width, 0 if panel == n else threads)[1]
                row.append(median(run))
            row.append(median(lambda x1=x1, x2=x2, out=out: np.matmul(x1, x2, out=out)))
            print(f"{dtype:10} {n:5} " + " ".join(f"{us:10.1f}" for us in row), flush=True)


def stacks(width: int, threads: int) -> None:
    """10,000 small products."""
    print(f"{'dtype':10} {'n':>5} {'packets':>10} {'numpy':>10} {'ratio':>6}")
    forced(None)
    for dtype in STACK_DTYPES:
        for n in STACKS:
            x1, x2 = (np.ones((10_000, n, n), dtype) for _ in range(2))
            out = np.empty_like(x1)
            ours = median(launcher(x1, x2, out, width, threads)[1])
            numpy = median(lambda x1=x1, x2=x2, out=out: np.matmul(x1, x2, out=out))
            print(f"{dtype:10} {n:5} {ours:10.1f} {numpy:10.1f} {numpy / ours:6.1f}", flush=True)


def vectors(width: int, threads: int) -> None:
    """A matrix times a vector, from either side, and two vectors."""
    print(f"{'dtype':10} {'shapes':>24} {'packets':>10} {'numpy':>10} {'ratio':>6}")
    forced(None)
    for dtype in VECTOR_DTYPES:
        for first, second in VECTORS:
            x1, x2 = np.ones(first, dtype), np.ones(second, dtype)
            out = np.asarray(x1 @ x2).copy()
            ours = median(launcher(x1, x2, out, width, threads)[1])
            numpy = median(lambda x1=x1, x2=x2: np.matmul(x1, x2))
            print(
                f"{dtype:10} {f'{first} @ {second}':>24} {ours:10.1f} {numpy:10.1f} "
                f"{numpy / ours:6.1f}",
                flush=True,
            )


def checked(
    comparison: Comparison, name: str, x1: np.ndarray, x2: np.ndarray, width: int, threads: int
) -> None:
    """Compare one product with that of NumPy."""
    expected = np.asarray(x1 @ x2)
    out = np.zeros_like(expected)
    launcher(x1, x2, out, width, threads)[1]()
    title = f"{x1.dtype} {x1.shape} @ {x2.shape}, {name}"
    comparison.values(title, out, expected)


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return small integers as numbers of a dtype."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(dtype)


def compare(width: int, threads: int) -> None:
    """Compare the products of all tables with those of NumPy."""
    comparison = Comparison()
    for dtype in SQUARE_DTYPES:
        for n in SQUARES:
            x1, x2 = (np.random.default_rng(0).normal(size=(n, n)).astype(dtype) for _ in range(2))
            for name, limit, panel in (
                ("packets", None, 256),
                ("panels", 0, 256),
                ("one gemm", 0, n),
            ):
                forced(limit)
                product_dispatch.PANEL = panel
                checked(comparison, name, x1, x2, width, 0 if name == "one gemm" else threads)
    forced(None)
    product_dispatch.PANEL = 256
    stacked = [((10_000, n, n), (10_000, n, n), dtype) for dtype in STACK_DTYPES for n in STACKS]
    vectors = [(*each, dtype) for dtype in VECTOR_DTYPES for each in VECTORS]
    for *shapes, dtype in (*stacked, *vectors):
        x1, x2 = (sample(shape, dtype) for shape in shapes)
        checked(comparison, "packets", x1, x2, width, threads)
    comparison.end()


def main() -> None:
    """Print the tables, or compare values."""
    smoke = smoke_wanted()
    width, threads = int(sys.argv[1]) if len(sys.argv) > 1 else host_target().simd.register_bytes, 2
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _native.set_threads(threads)
    if smoke:
        compare(width, threads)
        return
    for table in (squares, stacks, vectors):
        table(width, threads)


if __name__ == "__main__":
    main()
