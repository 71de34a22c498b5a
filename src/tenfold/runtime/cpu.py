"""CPU device: runs graphs by cached plans, compiled kernels, and reference or library calls.

Takes a Graph, publishes the value of every output and of every live-out node. Plans are cached by
structure, so Python plans once for each structure.

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

from tenfold import _native
from tenfold._native import Executable, Node, Type, Value
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES
from tenfold.jit.program import PROGRAMS, Program, is_baseline, program_of
from tenfold.runtime import reference, timeline
from tenfold.runtime.blas.accumulate import accumulate
from tenfold.runtime.blas.multiply import multiply
from tenfold.runtime.device import OptimisedGraph, declare
from tenfold.runtime.executable import bind, scalar_bytes
from tenfold.runtime.graph_chunks import GraphChunks
from tenfold.runtime.lapack.dispatch import compute_linalg
from tenfold.runtime.op_kernels import loop, movement
from tenfold.runtime.reduction_kernels import fold_loop
from tenfold.runtime.symbolic_executable import generalise
from tenfold.schedule.loop_schedule import pack_sizes, parameter_bytes
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.product_choice import register_bytes
from tenfold.schedule.product_forms import ProductChoice
from tenfold.schedule.schedule import is_replayable, key_of, plan_of
from tenfold.schedule.schedule_ir import Buffer, Launch, LaunchScalar, Schedule, Step
from tenfold.schedule.vector_width import single_thread_elements
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import DEVICE_IDS, get
from tenfold.storage import dense

MAX_PLANS = 4096
"""The capacity of the plan cache."""
LONGEST, CHUNK = 1024, 256
"""The most nodes of a graph that is planned as a whole, and the nodes per chunk of a longer one."""
QUICK = 1 << 15
"""Element instructions up to which a launch keeps the GIL: microseconds at most."""


class Cpu:
    """Fused kernels on the processor."""

    name = "cpu"
    rewrites = True

    def __init__(self) -> None:
        self.plans: LruCache[tuple[object, ...], Schedule] = LruCache(
            MAX_PLANS, "schedules", "scheduling a graph takes milliseconds"
        )

    def plan(self, graph: Graph) -> Schedule:
        """Return the plan of a graph, cached by its structure."""
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        options = fused, fma, verifies(), register_bytes()
        key = key_of(graph, *options)
        plan = self.plans.get(key)
        if plan is None:
            plan = plan_of(graph, fused=fused, fma=fma)
            if key_of(graph, *options) != key:
                return plan  # another thread has computed a node meanwhile: valid for this run only
            self.plans[key] = plan
        return plan

    def compile(self, graph: Graph) -> list[Program]:
        """Plan a graph and compile its kernels with optimisation, without running them."""
        fma = not is_baseline(str(get("cpu")))
        plan = plan_of(graph, fused=bool(get("fuse")), fma=fma)
        launches = [step.launch for step in plan.steps if step.launch is not None]
        kernels = dict.fromkeys(launch.kernel for launch in launches)
        return [PROGRAMS.compile(kernel, str(get("cpu")), optimised=True) for kernel in kernels]

    def bind(self, graph: Graph, original: OptimisedGraph) -> Executable | None:
        """Plan a graph, and cache its executable for the original graph."""
        if get("check_nans") or get("debug") or len(graph) > LONGEST or not is_replayable(graph):
            return None
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        # a node made by a rule cannot be published after its operand is overwritten
        for candidate in (graph, replace(graph, dead_after_read=())):
            plan = plan_of(candidate, fused=fused, fma=fma)
            builder = bind(original, candidate, plan, threads_of, compute_call)
            if builder is not None:
                if not get("verify"):  # verification needs the lengths of each launch
                    generalise(builder, partial(plan_of, fused=fused, fma=fma), threads_of)
                return builder.executable
        return None

    def anew(self, graph: Graph) -> list[tuple[Value, ...]] | None:
        """Compute the outputs of a graph without any cache, and publish nothing. None for a graph
        that is too long, or that fails.
        """
        if len(graph) > LONGEST:
            return None
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        run = _ScheduleRun(self, graph, plan_of(graph, fused=fused, fma=fma))
        for step in run.plan.steps:
            try:
                if not run.run_step(step):
                    return None
            except (MemoryError, reference.ReferenceFailure):
                return None
        last = run.plan.items_at
        return [run.values_of(last[output]) for output in graph.outputs]

    def run(self, graph: Graph) -> Exception | None:
        """Compute a graph; nodes that depend on a failed node stay pending."""
        if get("check_nans"):
            return self._run_node_by_node(graph, check_nans=True)
        return self._run(graph) if len(graph) <= LONGEST else self._run_in_chunks(graph)

    def _run_in_chunks(self, graph: Graph) -> Exception | None:
        """Compute a long graph chunk by chunk; equal chunks share a plan."""
        chunks = GraphChunks(graph, CHUNK)
        for begin in chunks.begins():
            chunk, live_out = chunks.chunk(begin)
            if not live_out:
                continue
            run = _ScheduleRun(self, chunk, self.plan(chunk))
            for number, step in enumerate(run.plan.steps):
                try:
                    if not run.run_step(step):
                        return self._run_node_by_node(graph)
                except (MemoryError, reference.ReferenceFailure):
                    return self._run_node_by_node(graph)
                run.drop(run.plan.last_use[number])
            items = run.plan.items_at
            for position, chunk_position in live_out.items():
                chunks.store_values(position, run.values[items[chunk_position]])
        return None

    def _run(self, graph: Graph, *, check_nans: bool = False) -> Exception | None:
        run = _ScheduleRun(self, graph, self.plan(graph))
        failure: Exception | None = None
        for number, step in enumerate(run.plan.steps):
            try:
                if run.has_inputs(step) and not run.run_step(step):
                    single_op = (
                        sum(node.pending and not node.is_scalar for node in graph.nodes) == 1
                    )
                    return _with_reference(graph) if single_op else self._run_node_by_node(graph)
            except (MemoryError, reference.ReferenceFailure) as error:
                run.mark_missing(step)
                failure = failure or _named_error(step, error)
            run.drop(run.plan.last_use[number])
        if check_nans and (nan_error := run.nan_failure()) is not None:
            return nan_error.error
        run.publish()
        return failure

    def _run_node_by_node(self, graph: Graph, *, check_nans: bool = False) -> Exception | None:
        """Compute each node separately: nodes that do not depend on a failure keep their bits, and
        a node that creates NaN is identified.
        """
        first_failure: Exception | None = None
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
            if node.pending and not any(graph.nodes[i].pending for i in inputs):
                failure = self._run(Graph.of([node]), check_nans=check_nans)
                first_failure = first_failure or failure
        return first_failure


def _named_error(step: Step, error: MemoryError | reference.ReferenceFailure) -> Exception:
    """The error for the waiters of a step, with the names of its operations."""
    if isinstance(error, reference.ReferenceFailure):
        return error.error
    named = MemoryError(f"{', '.join(step.names)}: {error}")
    named.__cause__ = error
    return named


def _with_reference(graph: Graph) -> Exception | None:
    """Run a failed graph on the reference device, for the error message."""
    return reference.Reference("cpu").run(graph)


class _ScheduleRun:
    """One run of a plan, with the live values."""

    def __init__(self, device: Cpu, graph: Graph, plan: Schedule) -> None:
        self.device, self.graph, self.plan = device, graph, plan
        self.values: dict[int, tuple[Value, ...]] = {}
        self.reused_buffers = dict(plan.reused_buffers)
        self.missing: set[int] = set()
        """The results of failed steps, and the items that depend on them."""

    def has_inputs(self, step: Step) -> bool:
        """Whether all inputs of a step exist; if not, its results are missing too."""
        if self.missing.isdisjoint(step.reads):
            return True
        self.mark_missing(step)
        return False

    def mark_missing(self, step: Step) -> None:
        """Mark the results of a step as missing."""
        for buffer in step.results:
            self.missing.add(buffer.item)
            self.values.pop(buffer.item, None)

    def value(self, item: int, index: int = 0) -> Value:
        """Return the value of an item, from a step or from its node."""
        return self.values_of(item)[index]

    def values_of(self, item: int) -> tuple[Value, ...]:
        """Return all values of an item: an operation may have several results."""
        if item not in self.values:
            node = self.graph.nodes[self.plan.items[item].position]
            values: list[Value] = []
            while (value := node.value(len(values))) is not None:
                values.append(value)
            if not values:
                raise reference.no_values()
            self.values[item] = tuple(values)
        return self.values[item]

    def run_step(self, step: Step) -> bool:
        """Run one step; return False if it fails for its values."""
        start = timeline.begin()
        if step.kind == "kernel":
            assert step.launch is not None, "a kernel step has a launch"
            if not self._kernel(step, step.launch):
                return False
            timeline.record("+".join(step.names), "kernel", start)
        elif step.kind == "empty":
            for buffer in step.results:
                self.values[buffer.item] = (self._allocate(buffer),)
        elif step.kind == "alias":
            self._view(step)
        elif step.kind == "part":
            self._select_result(step)
        elif not self._call(step):
            return False
        else:
            timeline.record(step.names[0], "call", start)
        return True

    def _allocate(self, buffer: Buffer) -> Value:
        type_ = Type(buffer.shape, DTYPES[buffer.dtype], self.device.name, dense.NAME)
        value = Value.allocate(type_, buffer.nbytes)
        if buffer.strides == contiguous_strides(buffer.shape, type_.dtype.itemsize):
            return value
        return value.view(type_, buffer.strides, 0)

    def _view(self, step: Step) -> None:
        (result,) = step.results
        type_ = Type(result.shape, DTYPES[result.dtype], self.device.name, dense.NAME)
        source = self.value(step.reads[0])
        self.values[result.item] = (source.view(type_, result.strides, step.offset),)

    def _select_result(self, step: Step) -> None:
        (result,) = step.results
        source = self.value(step.reads[0], self.graph.nodes[step.position].params[0])
        if source.strides:  # as in _call
            source = dense.copy_to_pool(dense.export(source), self.device.name)
        # a separate value: the results of one call are chained, each to the next
        self.values[result.item] = (source.view(source.type, result.strides, 0),)

    def _kernel(self, step: Step, launch: Launch) -> bool:
        program = program_of(launch.kernel, launch.elements)
        if step.copies:
            _native.count("copies", step.copies)
        for buffer in step.results:
            if buffer.item in self.reused_buffers:
                self.values[buffer.item] = self.values[self.reused_buffers[buffer.item]]
                continue
            if buffer.item in self.values:
                continue  # an earlier step has allocated it
            self.values[buffer.item] = (self._allocate(buffer),)
            if buffer.item in self.plan.temporaries:
                _native.count("temporaries")
        buffers: list[Value | int] = []
        for memory in launch.memory:
            value = self.value(memory.item)
            buffers.append(value if memory.offset == 0 else value.address + memory.offset)
        totals = [np.empty(size, np.uint8) for size in launch.totals]
        buffers += [table.ctypes.data for table in totals]
        scalars = b"".join(map(self._scalar, launch.parameters))
        _native.count("kernels")
        _native.count("launches")
        return self._launch(program, launch, buffers, scalars)

    def _launch(
        self, program: Program, launch: Launch, buffers: list[Value | int], scalars: bytes
    ) -> bool:
        threads = threads_of(launch)
        if threads > _native.threads():
            _native.set_threads(threads)
        if launch.scans_in_parts(threads):
            return self._launch_phases(program, launch, buffers, scalars, threads)
        sizes = pack_sizes(launch.sizes)
        status = _native.launch(
            program.kernel,
            buffers,
            sizes,
            scalars,
            launch.scratch,
            launch.units,
            launch.grain,
            threads,
        )
        if status == 0 and program.finish:
            status = _native.launch(
                program.finish, buffers, sizes, scalars, 0, launch.finish, launch.finish, 1
            )
        return status == 0

    def _launch_phases(
        self,
        program: Program,
        launch: Launch,
        buffers: list[Value | int],
        scalars: bytes,
        threads: int,
    ) -> bool:
        """Scan the parts of rows in three phases: part totals, carries, and the scans."""
        _native.count("kernels")  # two passes over the elements
        _native.count("launches")
        units = (launch.parts, launch.units, launch.parts)
        for function, count, most_threads in zip(
            program.scan_phases, units, (threads, 1, threads), strict=True
        ):
            scratch, sizes = launch.scratch, pack_sizes(launch.sizes)
            if _native.launch(function, buffers, sizes, scalars, scratch, count, 1, most_threads):
                return False
        return True

    def _scalar(self, parameter: LaunchScalar) -> bytes:
        if parameter.item < 0:
            return parameter_bytes(parameter, np.asarray(parameter.number))
        return scalar_bytes(self.graph.nodes[self.plan.items[parameter.item].position], parameter)

    def _call(self, step: Step) -> bool:
        node = self.graph.nodes[step.position]
        inputs = [self._operand_array(i) for i in step.reads]
        result = step.results[0]
        in_place = result.item in self.reused_buffers
        try:
            values = compute_call(node, inputs, in_place=in_place, product=step.product)
        except reference.ReferenceFailure:
            return False
        self.values[result.item] = (
            self.values[self.reused_buffers[result.item]] if in_place else values
        )
        if result.item in self.plan.temporaries:
            _native.count("temporaries")
        return True

    def _operand_array(self, item: int) -> np.ndarray:
        node = self.graph.nodes[self.plan.items[item].position]
        return np.asarray(node.scalar) if node.is_scalar else dense.export(self.value(item))

    def drop(self, items: tuple[int, ...]) -> None:
        """Release values that no later step reads."""
        for item in items:
            self.values.pop(item, None)

    def nan_failure(self) -> reference.ReferenceFailure | None:
        """Return the failure of a one-operation graph that created NaN, if any."""
        (output,) = self.graph.outputs
        node, inputs = self.graph.nodes[output], self.graph.inputs[output]
        items = self.plan.items_at
        results = tuple(dense.export(value) for value in self.values[items[output]])
        return reference.nan_failure(node, [self._operand_array(items[i]) for i in inputs], results)

    def publish(self) -> None:
        """Publish the value of every live-out node."""
        for item in self.plan.live_out - self.missing:
            node = self.graph.nodes[self.plan.items[item].position]
            if node.pending:
                node.publish([*self.values[item]])


def compute_call(
    node: Node | reference.ReferenceCall,
    inputs: list[np.ndarray],
    *,
    in_place: bool = False,
    product: ProductChoice | None = None,
) -> tuple[Value, ...]:
    """Compute a call by a library or by the reference; its results are in row-major order. In place
    it returns none: the accumulated operand is the result. A product is computed as chosen.

    Raises ReferenceFailure if it fails for its values.
    """
    op = node.op
    results: tuple[Value, ...]
    if op.lowering.accumulates_into is not None:
        value = accumulate(node, inputs, in_place=in_place, choice=product)
        results = () if value is None else (value,)
    elif op.rewriting.contraction is not None:
        first, second = inputs
        results = (multiply(op, node.params, first, second, node.type, product),)
    else:
        results = compute_linalg(node, inputs)
    _native.count("calls")
    _native.count("launches")
    _native.count("multiply_adds", reference.multiply_adds(node, inputs))
    return results


def threads_of(launch: Launch) -> int:
    """Return the number of threads of a launch; 1 runs on the caller's thread, 0 keeps the GIL."""
    if launch.elements * len(launch.kernel.body) <= QUICK:
        return 0
    single_thread = launch.sequential or launch.elements <= single_thread_elements(
        launch.kernel.body
    )
    return 1 if single_thread else int(get("threads"))


declare(Cpu())
_native.set_kernel_factories(loop, fold_loop, movement, DEVICE_IDS[Cpu.name])
