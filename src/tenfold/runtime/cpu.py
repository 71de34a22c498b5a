"""CPU device: runs graphs by cached plans, compiled kernels, and reference or library calls.

Takes a Graph, publishes the value of every output and of every live node. Plans are cached by
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
from tenfold.runtime.executable import bind
from tenfold.runtime.executable_scalars import scalar_bytes
from tenfold.runtime.graph_chunks import GraphChunks
from tenfold.runtime.lapack.dispatch import factorise
from tenfold.runtime.op_kernels import loop, movement
from tenfold.runtime.reduction_kernels import fold_loop
from tenfold.runtime.symbolic_executable import generalise
from tenfold.schedule.loop_schedule import Launch, pack_sizes, parameter_bytes
from tenfold.schedule.lowering import LaunchScalar, contiguous_strides
from tenfold.schedule.schedule import Buffer, Schedule, Step, is_replayable, key_of, plan_of
from tenfold.schedule.schedule_ir import items_by_node
from tenfold.schedule.vector_width import single_thread_elements
from tenfold.schedule.verify_kernel import verifies
from tenfold.settings import DEVICE_IDS, get
from tenfold.storage import dense

MOST_PLANS = 4096
"""Plans that are kept."""
LONGEST, PIECE = 1024, 256
"""Nodes of a graph that is planned as a whole, and of the pieces that a longer one is cut into."""
QUICK = 1 << 15
"""Instructions for elements up to which a launch keeps the GIL: microseconds at most."""


class Cpu:
    """Fused kernels on the processor."""

    name = "cpu"
    rewrites = True

    def __init__(self) -> None:
        self.plans: LruCache[tuple[object, ...], Schedule] = LruCache(MOST_PLANS, "plans of steps")

    def plan(self, graph: Graph) -> Schedule:
        """Return the plan of a graph, from the cache where there is one."""
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        key = key_of(graph, fused, fma, verifies())
        plan = self.plans.get(key)
        if plan is None:
            plan = plan_of(graph, fused=fused, fma=fma)
            if key_of(graph, fused, fma, verifies()) != key:
                return plan  # another thread has computed a part meanwhile: good for this run alone
            self.plans[key] = plan
        return plan

    def compile(self, graph: Graph) -> list[Program]:
        """Plan a graph anew and compile its kernels, with optimisation; nothing is run."""
        fma = not is_baseline(str(get("cpu")))
        plan = plan_of(graph, fused=bool(get("fuse")), fma=fma)
        launches = [step.launch for step in plan.steps if step.launch is not None]
        kernels = dict.fromkeys(launch.kernel for launch in launches)
        return [PROGRAMS.compiled(kernel, str(get("cpu")), optimised=True) for kernel in kernels]

    def bind(self, graph: Graph, written: OptimisedGraph) -> Executable | None:
        """Plan a graph, and keep what replays the plan for what was written."""
        if get("check_nans") or get("debug") or len(graph) > LONGEST or not is_replayable(graph):
            return None
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        # what a rule has made may have no node to be given to, once its operand is written over
        for each in (graph, replace(graph, dead_after_read=())):
            plan = plan_of(each, fused=fused, fma=fma)
            bound = bind(written, each, plan, threads_of, called)
            if bound is not None:
                if not get("verify"):  # each launch is to be verified, for its own lengths
                    generalise(bound, partial(plan_of, fused=fused, fma=fma), threads_of)
                return bound.kept
        return None

    def anew(self, graph: Graph) -> list[tuple[Value, ...]] | None:
        """Plan a graph without any cache and compute the values of its outputs; nothing is
        published. None for a graph that is too long, or that fails.
        """
        if len(graph) > LONGEST:
            return None
        fused, fma = bool(get("fuse")), not is_baseline(str(get("cpu")))
        run = _ScheduleRun(self, graph, plan_of(graph, fused=fused, fma=fma))
        for step in run.plan.steps:
            try:
                if not run.step(step):
                    return None
            except (MemoryError, reference.ReferenceFailure):
                return None
        last = items_by_node(list(run.plan.items))
        return [run.values_of(last[output]) for output in graph.outputs]

    def run(self, graph: Graph) -> Exception | None:
        """Compute a graph; what depends on a failure is left alone."""
        if get("check_nans"):
            return self._one_by_one(graph, check_nans=True)
        return self._run(graph) if len(graph) <= LONGEST else self._in_pieces(graph)

    def _in_pieces(self, graph: Graph) -> Exception | None:
        """Compute a long graph piece by piece; equal pieces have one plan."""
        pieces = GraphChunks(graph, PIECE)
        for begin in pieces.begins():
            piece, wanted = pieces.take(begin)
            if not wanted:
                continue
            run = _ScheduleRun(self, piece, self.plan(piece))
            for number, step in enumerate(run.plan.steps):
                try:
                    if not run.step(step):
                        return self._one_by_one(graph)
                except (MemoryError, reference.ReferenceFailure):
                    return self._one_by_one(graph)
                run.drop(run.plan.last_use[number])
            items = run.plan.items_at
            for position, place in wanted.items():
                pieces.made(position, run.values[items[place]])
        return None

    def _run(self, graph: Graph, *, check_nans: bool = False) -> Exception | None:
        run = _ScheduleRun(self, graph, self.plan(graph))
        failure: Exception | None = None
        for number, step in enumerate(run.plan.steps):
            try:
                if run.can(step) and not run.step(step):
                    alone = sum(node.pending and not node.is_scalar for node in graph.nodes) == 1
                    return _with_reference(graph) if alone else self._one_by_one(graph)
            except (MemoryError, reference.ReferenceFailure) as error:
                run.without(step)
                failure = failure or _named(step, error)
            run.drop(run.plan.last_use[number])
        if check_nans and (born := run.nan_failure()) is not None:
            return born.error
        run.publish()
        return failure

    def _one_by_one(self, graph: Graph, *, check_nans: bool = False) -> Exception | None:
        """Compute each node by itself: what does not depend on a failure has the bits it always
        has, and a node that makes NaN of other numbers can be told.
        """
        first: Exception | None = None
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
            if node.pending and not any(graph.nodes[i].pending for i in inputs):
                failure = self._run(Graph.of([node]), check_nans=check_nans)
                first = first or failure
        return first


def _named(step: Step, error: MemoryError | reference.ReferenceFailure) -> Exception:
    """What those who wait for a step are to see: it names the operations."""
    if isinstance(error, reference.ReferenceFailure):
        return error.error
    made = MemoryError(f"{', '.join(step.names)}: {error}")
    made.__cause__ = error
    return made


def _with_reference(graph: Graph) -> Exception | None:
    """An operation has failed for its values: the reference says why."""
    return reference.Reference("cpu").run(graph)


class _ScheduleRun:
    """One run of a plan: the values that are there."""

    def __init__(self, device: Cpu, graph: Graph, plan: Schedule) -> None:
        self.device, self.graph, self.plan = device, graph, plan
        self.values: dict[int, tuple[Value, ...]] = {}
        self.reused_buffers = dict(plan.reused_buffers)
        self.missing: set[int] = set()
        """What a step has failed to make, and what depends on it."""

    def can(self, step: Step) -> bool:
        """Whether everything that a step reads is there; if not, what it makes is missing too."""
        if self.missing.isdisjoint(step.reads):
            return True
        self.without(step)
        return False

    def without(self, step: Step) -> None:
        """Go on without what a step makes."""
        for made in step.results:
            self.missing.add(made.item)
            self.values.pop(made.item, None)

    def value(self, item: int, index: int = 0) -> Value:
        """The value of an item: a step has made it, or it was there."""
        return self.values_of(item)[index]

    def values_of(self, item: int) -> tuple[Value, ...]:
        """All values of an item: an operation may have several results."""
        if item not in self.values:
            node = self.graph.nodes[self.plan.items[item].position]
            found: list[Value] = []
            while (value := node.value(len(found))) is not None:
                found.append(value)
            if not found:
                raise reference.no_values()
            self.values[item] = tuple(found)
        return self.values[item]

    def step(self, step: Step) -> bool:
        """Take one step; False when it fails for its values."""
        begun = timeline.begin()
        if step.kind == "kernel":
            assert step.launch is not None, "a kernel step has a launch"
            if not self._kernel(step, step.launch):
                return False
            timeline.record("+".join(step.names), "kernel", begun)
        elif step.kind == "empty":
            for made in step.results:
                self.values[made.item] = (self._allocated(made),)
        elif step.kind == "window":
            self._window(step)
        elif step.kind == "part":
            self._part(step)
        elif not self._call(step):
            return False
        else:
            timeline.record(step.names[0], "call", begun)
        return True

    def _allocated(self, made: Buffer) -> Value:
        type_ = Type(made.shape, DTYPES[made.dtype], self.device.name, dense.NAME)
        value = Value.allocate(type_, made.nbytes)
        if made.strides == contiguous_strides(made.shape, type_.dtype.itemsize):
            return value
        return value.view(type_, made.strides, 0)

    def _window(self, step: Step) -> None:
        (made,) = step.results
        type_ = Type(made.shape, DTYPES[made.dtype], self.device.name, dense.NAME)
        source = self.value(step.reads[0])
        self.values[made.item] = (source.view(type_, made.strides, step.offset),)

    def _part(self, step: Step) -> None:
        (made,) = step.results
        source = self.value(step.reads[0], self.graph.nodes[step.position].params[0])
        if source.strides:  # as in _call
            source = dense.copy_to_pool(dense.export(source), self.device.name)
        # a value of its own: the results of one call are chained, each to the next
        self.values[made.item] = (source.view(source.type, made.strides, 0),)

    def _kernel(self, step: Step, launch: Launch) -> bool:
        program = program_of(launch.kernel, launch.elements)
        if step.copies:
            _native.count("copies", step.copies)
        for made in step.results:
            if made.item in self.reused_buffers:
                self.values[made.item] = self.values[self.reused_buffers[made.item]]
                continue
            if made.item in self.values:
                continue  # an earlier step has made another piece of it
            self.values[made.item] = (self._allocated(made),)
            if made.item in self.plan.temporaries:
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
        return self._launched(program, launch, buffers, scalars)

    def _launched(
        self, program: Program, launch: Launch, buffers: list[Value | int], scalars: bytes
    ) -> bool:
        threads = threads_of(launch)
        if threads > _native.threads():
            _native.set_threads(threads)
        if launch.scans_in_parts(threads):
            return self._in_parts(program, launch, buffers, scalars, threads)
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

    def _in_parts(
        self,
        program: Program,
        launch: Launch,
        buffers: list[Value | int],
        scalars: bytes,
        threads: int,
    ) -> bool:
        """Scan parts of rows: what they come to, what comes before each, and then themselves."""
        _native.count("kernels")  # elements are gone through twice
        _native.count("launches")
        units = (launch.parts, launch.units, launch.parts)
        for function, count, most in zip(program.parts, units, (threads, 1, threads), strict=True):
            scratch, sizes = launch.scratch, pack_sizes(launch.sizes)
            if _native.launch(function, buffers, sizes, scalars, scratch, count, 1, most):
                return False
        return True

    def _scalar(self, parameter: LaunchScalar) -> bytes:
        if parameter.item < 0:
            return parameter_bytes(parameter, np.asarray(parameter.number))
        return scalar_bytes(self.graph.nodes[self.plan.items[parameter.item].position], parameter)

    def _call(self, step: Step) -> bool:
        node = self.graph.nodes[step.position]
        inputs = [self._exported(i) for i in step.reads]
        made = step.results[0]
        in_place = made.item in self.reused_buffers
        try:
            values = called(node, inputs, in_place=in_place)
        except reference.ReferenceFailure:
            return False
        self.values[made.item] = self.values[self.reused_buffers[made.item]] if in_place else values
        if made.item in self.plan.temporaries:
            _native.count("temporaries")
        return True

    def _exported(self, item: int) -> np.ndarray:
        node = self.graph.nodes[self.plan.items[item].position]
        return np.asarray(node.scalar) if node.is_scalar else dense.export(self.value(item))

    def drop(self, items: tuple[int, ...]) -> None:
        """Let go of values that no later step reads."""
        for item in items:
            self.values.pop(item, None)

    def nan_failure(self) -> reference.ReferenceFailure | None:
        """Of a graph of one operation: whether it has made NaN of other numbers."""
        (output,) = self.graph.outputs
        node, inputs = self.graph.nodes[output], self.graph.inputs[output]
        items = items_by_node(list(self.plan.items))
        results = tuple(dense.export(value) for value in self.values[items[output]])
        return reference.nan_failure(node, [self._exported(items[i]) for i in inputs], results)

    def publish(self) -> None:
        """Give every live-out node its value."""
        for item in self.plan.live_out - self.missing:
            node = self.graph.nodes[self.plan.items[item].position]
            if node.pending:
                node.publish([*self.values[item]])


def called(
    node: Node | reference.ReferenceCall, inputs: list[np.ndarray], *, in_place: bool = False
) -> tuple[Value, ...]:
    """Compute a call by a library or by the reference; its results lie in row-major order. In place
    there are none: the operand that it adds to has become the result.

    Raises reference.Failure where it fails for its values.
    """
    op = node.op
    results: tuple[Value, ...]
    if op.accumulates_into is not None:
        made = accumulate(node, inputs, in_place=in_place)
        results = () if made is None else (made,)
    elif op.contraction is not None:
        first, second = inputs
        results = (multiply(op, node.params, first, second, node.type),)
    else:
        results = factorise(node, inputs)
    _native.count("calls")
    _native.count("launches")
    _native.count("multiply_adds", reference.multiply_adds(node, inputs))
    return results


def threads_of(launch: Launch) -> int:
    """Return on how many threads a launch may run; small ones stay on their caller's, 0 keeps the
    GIL.
    """
    if launch.elements * len(launch.kernel.body) <= QUICK:
        return 0
    alone = launch.sequential or launch.elements <= single_thread_elements(launch.kernel.body)
    return 1 if alone else int(get("threads"))


declare(Cpu())
_native.set_loops(loop, fold_loop, movement, DEVICE_IDS[Cpu.name])
