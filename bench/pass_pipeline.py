"""Whether LLVM's optimising passes pay: compile and run time of kernels without and with them.

    python bench/pass_pipeline.py

Kernels are written as explicit packets; the code generator alone makes them. This program compiles
some of them both ways, and times both in turns on one thread, with data in the cache.
"""

from __future__ import annotations

import ctypes
import statistics
import time

import llvmlite.binding as llvm
import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn
from tenfold import _native
from tenfold._native import Type, Value
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.graph import Graph
from tenfold.jit.compiler import llvm_processor
from tenfold.jit.host import host_target
from tenfold.runtime.device import DEVICES
from tenfold.schedule.loop_schedule import pack_sizes
from tenfold.schedule.schedule_ir import Launch

ROUNDS = 15


def operands() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return rng.random(1 << 15), rng.random(1 << 15), rng.random((128, 1024), dtype=np.float32)


def expected() -> tuple[np.ndarray, ...]:
    """What NumPy makes of the works, in their order."""
    x, y, rows = operands()
    powers = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return (
        2 * x + 3 * y - x * y,
        np.sin(x) ** 2 + np.cos(y) ** 2 + np.exp(-x),
        np.sum((x - y) * (x - y)),
        powers / powers.sum(axis=-1, keepdims=True),
        rows.sum(axis=0),
    )


def works() -> dict[str, tn.Array]:
    x, y, rows = map(tn.asarray, operands())
    return {
        "2a+3b-ca": 2 * x + 3 * y - x * y,
        "sin(a)**2+cos(b)**2+exp(-a)": tn.sin(x) ** 2 + tn.cos(y) ** 2 + tn.exp(-x),
        "sum((a-b)*(a-b))": tn.sum((x - y) * (x - y)),
        "softmax of rows": tn.softmax(rows),
        "sum over rows": tn.sum(rows, axis=0),
    }


def launched(array: tn.Array) -> tuple[Launch, list[np.ndarray], list[int], list[Value]]:
    """The launch of the one kernel of an expression, its text, and its memory."""
    graph = Graph.of([_native.node_of(array)])
    plan = DEVICES["cpu"].plan(graph)
    (step,) = [step for step in plan.steps if step.launch is not None]
    values = []
    for memory in step.launch.memory:
        item = plan.items[memory.item]
        there = graph.nodes[item.position].value()
        type_ = Type(item.shape, item.dtype, "cpu")
        if there is None:
            there = Value.allocate(type_, item.size * item.dtype.itemsize)
            ctypes.memset(there.address, 0, there.nbytes)
        values.append(there)
    totals = [np.zeros(size, np.uint8) for size in step.launch.totals]
    addresses = [value.address for value in values] + [table.ctypes.data for table in totals]
    return step.launch, totals, addresses, values


def run(launch: Launch, address: int, addresses: list[int]) -> None:
    """Launch a kernel on one thread; its scalars are all 1."""
    scalars = np.ones(16).tobytes()
    _native.launch(
        address,
        addresses,
        pack_sizes(launch.sizes),
        scalars,
        launch.scratch,
        launch.units,
        launch.grain,
        1,
    )


def compiled(text: str, passes: bool) -> tuple[int, float, object]:
    """The address of the kernel, the milliseconds it took, and what keeps it there."""
    name, features = llvm_processor("native")
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=name, features=features, opt=2, reloc="pic", codemodel="small"
    )
    begun = time.perf_counter()
    module = llvm.parse_assembly(text)
    module.verify()
    if passes:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address("kernel")
    return address, (time.perf_counter() - begun) * 1e3, engine


def written(array: tn.Array, passes: bool) -> list[bytes]:
    """What the kernel of an expression writes, compiled without or with the passes."""
    launch, totals, addresses, values = launched(array)
    address, _, _engine = compiled(render(launch.kernel, host_target().simd), passes)
    run(launch, address, addresses)
    return [*map(bytes, values), *map(bytes, totals)]


def compare() -> None:
    """Compare the works with NumPy, and what their kernels write with the passes and without."""
    comparison = Comparison()
    for (name, array), wanted in zip(works().items(), expected(), strict=True):
        plain, passed = (written(array, passes) for passes in (False, True))
        comparison.fact(f"{name}, with the passes", plain == passed, "other bits")
        comparison.values(name, array, wanted)
    comparison.end()


def main() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if smoke_wanted():
        compare()
        return
    print(f"{'kernel':30} {'compile, with':>20} {'run, with':>20} {'run ratio':>10}")
    for name, array in works().items():
        launch, _totals, addresses, _values = launched(array)
        text = render(launch.kernel, host_target().simd)
        both = [compiled(text, passes) for passes in (False, True)]
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for (address, _, _), seconds in zip(both, times, strict=True):
                begun = time.perf_counter()
                for _ in range(5):
                    run(launch, address, addresses)
                seconds.append((time.perf_counter() - begun) / 5 * 1e6)
        plain, with_ = (statistics.median(seconds) for seconds in times)
        print(
            f"{name:30} {both[0][1]:7.1f}, {both[1][1]:7.1f} ms {plain:7.1f}, {with_:7.1f} us "
            f"{plain / with_:9.2f}x"
        )


if __name__ == "__main__":
    main()
