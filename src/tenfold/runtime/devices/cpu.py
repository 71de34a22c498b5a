"""CPU device: schedules a graph, compiles its kernels and binds its Executable.

Takes a Graph, hands on the Executable, which the native executor runs. Executables are cached by
structure, so Python plans once for each structure. `compute_call` is the Python callback of
operations that are neither kernels nor native calls.

>>> import tenfold as tn
>>> with tn.options(device="cpu"):
...     x = tn.asarray([1.0, 2.0])
>>> (x + x).tolist()
[2.0, 4.0]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tenfold._native import Executable, Node, Value
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS, Program
from tenfold.runtime import timeline
from tenfold.runtime.blas.product_launch import compute_product
from tenfold.runtime.device import OptimisedGraph, Rewrite, declare
from tenfold.runtime.executable import bind
from tenfold.runtime.graph_chunks import MAX_WHOLE_NODES
from tenfold.runtime.lapack.dispatch import compute_linalg
from tenfold.runtime.reference import ReferenceCall
from tenfold.runtime.symbolic_executable import bind_symbolic, generalise
from tenfold.schedule.lapack.driver_builder import DriverChoice
from tenfold.schedule.product_forms import ProductChoice
from tenfold.schedule.schedule import schedule_graph, schedule_key
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import Target
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import get

MAX_PLANS = 4096
"""The capacity of the plan cache."""


class Cpu:
    """Fused kernels on the processor."""

    name = "cpu"
    rewrites = True

    def __init__(self) -> None:
        self.plans: LruCache[tuple[object, ...], Schedule] = LruCache(
            MAX_PLANS, "schedules", "scheduling a graph takes milliseconds"
        )

    def target(self) -> Target:
        """Return the facts of this processor, or of that of the option `cpu`."""
        return host_target()

    def plan(self, graph: Graph) -> Schedule:
        """Return the plan of a graph, cached by its structure."""
        fused, target = bool(get("fuse")), self.target()
        options = fused, target, verifies()
        key = schedule_key(graph, *options)
        plan = self.plans.get(key)
        if plan is None:
            plan = schedule_graph(graph, target, fused=fused)
            if schedule_key(graph, *options) != key:
                return plan  # another thread has computed a node meanwhile: valid for this run only
            self.plans[key] = plan
        return plan

    def compile(self, graph: Graph) -> list[Program]:
        """Plan a graph and compile its kernels with optimisation, without running them."""
        target = self.target()
        plan = schedule_graph(graph, target, fused=bool(get("fuse")))
        launches = [step.launch for step in plan.steps if step.launch is not None]
        kernels = dict.fromkeys(launch.kernel for launch in launches)
        return [PROGRAMS.compile(kernel, target.processor, optimised=True) for kernel in kernels]

    def bind(self, original: Graph, optimise: Rewrite, *, cached: bool = True) -> Executable | None:
        """Plan a graph and build its executable; with `cached`, for each graph of its structure.

        None if it needs several, or if another thread has computed a node meanwhile.
        """
        planner = partial(schedule_graph, target=self.target(), fused=bool(get("fuse")))
        generalises = cached and not get("verify")  # verification needs the lengths of each launch
        if generalises and timeline.in_batch() and len(original) <= MAX_WHOLE_NODES:
            executable = bind_symbolic(original, optimise, planner, compute_call)
            if executable is not None:
                return executable
        graph, report = optimise(original)
        if len(graph) > MAX_WHOLE_NODES:
            return None
        # a node made by a rule cannot be published after its operand is overwritten
        for candidate in (graph, replace(graph, dead_after_read=())):
            both = OptimisedGraph(original, report)
            builder = bind(both, candidate, planner(candidate), compute_call)
            if original.computed_meanwhile():
                return None
            if builder is None:
                continue
            if cached:
                builder.cache()
            if generalises:
                generalise(builder, planner)
            return builder.executable
        return None


def compute_call(
    node: Node | ReferenceCall,
    inputs: list[np.ndarray],
    *,
    in_place: bool = False,
    product: ProductChoice | None = None,
    driver: DriverChoice | None = None,
) -> tuple[Value, ...]:
    """Compute a call by a library or by the reference; its results are in row-major order. In place
    it returns none: the accumulated operand is the result. A product or a driver is that chosen.

    Raises ReferenceFailure if it fails for its values.
    """
    results: tuple[Value, ...]
    if node.op.rewriting.contraction is not None:
        value = compute_product(node, inputs, in_place=in_place, choice=product)
        results = () if value is None else (value,)
    else:
        results = compute_linalg(node, inputs, driver)
    return results


declare(Cpu())
