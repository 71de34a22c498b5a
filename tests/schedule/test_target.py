"""Targets: the facts of a machine that plans and code depend on, on whatever machine this is."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

import target_header
import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.jit.host import host_target
from tenfold.jit.program import source_of
from tenfold.runtime.blas.product_dispatch import bind_product
from tenfold.runtime.device import DEVICES
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import INSTRUCTION_SETS, Target, target_of
from tenfold.settings import CPU_LEVELS

AARCH64 = 183
"""The machine in the header of an object file of ELF."""


def formula() -> tn.Array:
    """A map, a fold of rows, one of columns and a product."""
    x = tn.asarray(np.linspace(0, 1, 12_000).reshape(100, 120))
    return tn.sum(tn.sqrt(x * x + 1), axis=1) + tn.sum(x, axis=0)[:100] + (x @ x.T)[0]


def planned(target: Target) -> Schedule:
    return schedule_graph(Graph.of([_native.node_of(formula())]), target)


def test_header_of_native_code_has_the_facts_of_the_planner() -> None:
    text = target_header.HEADER.read_text(encoding="utf-8")
    assert text == target_header.header(), "run `make stubs`"


def test_native_code_has_no_other_home_of_a_shared_fact() -> None:
    native = Path(target_header.HEADER).parents[1]
    for path in sorted(native.glob("*/*.[ch]*")):
        if path != target_header.HEADER:
            text = path.read_text(encoding="utf-8")
            for _, _, constant in target_header.SHARED:
                defined = re.search(rf"constexpr [\w:]+ {constant} =", text)
                assert not defined, f"{path.name} defines {constant}"


def test_every_level_of_the_option_has_facts() -> None:
    assert CPU_LEVELS.keys() < INSTRUCTION_SETS.keys()
    names = {level: name for name, level in CPU_LEVELS.items()}
    native = target_of("native")
    assert native.simd == target_of(names[_native.processor_level()]).simd


def test_device_makes_its_target_of_the_options() -> None:
    with tn.options(cpu="x86-64", threads=1):
        target = DEVICES["cpu"].target()
        assert target == host_target() == target_of("x86-64", threads=1)
    assert (target.simd.register_bytes, target.simd.fma, target.work.threads) == (16, False, 1)


def test_plan_depends_on_the_target(target_facts: Callable[..., None]) -> None:
    split = planned(target_of("x86-64-v3"))
    target_facts("work", max_body_ops=1)
    assert len(planned(target_of("x86-64-v3")).steps) > len(split.steps)


def test_plan_of_another_level_is_made_on_any_machine() -> None:
    with_fma, without = planned(target_of("x86-64-v4")), planned(target_of("x86-64"))
    assert [step.names for step in with_fma.steps] == [step.names for step in without.steps]
    exponential = Graph.of([_native.node_of(tn.exp(tn.asarray([1.0, 2.0])))])
    kinds = [
        schedule_graph(exponential, target_of(name)).steps[0].kind for name in INSTRUCTION_SETS
    ]
    assert kinds == ["call", "call", "kernel", "kernel", "kernel"]


def test_plan_for_another_processor_is_compiled_to_its_object_file() -> None:
    target = target_of("aarch64")
    plan = planned(target)
    assert {step.kind for step in plan.steps} >= {"kernel", "call"}
    sources = [source_of(step.launch.kernel, target) for step in plan.steps if step.launch]
    sources += [bind_product(step.product).text for step in plan.steps if step.product]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu="generic", features="+neon", opt=2
    )
    assert len(sources) > 2
    for source in sources:
        module = llvm.parse_assembly(source)
        module.triple = target.triple
        module.verify()
        image = machine.emit_object(module)
        assert image[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", image, 18) == (AARCH64,)
