"""Launch binding: the steps that become native launches, as instructions.

Takes a step that is a kernel, a product or a call of LAPACK, asks for its program, and hands on the
launch with its buffers, sizes and scalars. A launch has the position of the node that it computes,
so that a failed run names it.
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import TIERS, Executable, Node
from tenfold.core.loop_ir import Kernel
from tenfold.dtypes import kind_of
from tenfold.jit.program import Program, Source, use_counter, uses_left
from tenfold.runtime import instructions, interruptible, reference
from tenfold.runtime.blas import product_launch, routines
from tenfold.runtime.blas.product_launch import BoundProduct
from tenfold.runtime.lapack import dispatch, drivers
from tenfold.runtime.publication import Publication
from tenfold.runtime.reference import ReferenceCall
from tenfold.runtime.scheduled_graph import ScheduledGraph
from tenfold.runtime.slot_table import SlotTable
from tenfold.runtime.thread_count import threads_of
from tenfold.schedule.schedule_ir import LaunchScalar, Step

PRODUCT_READS = 0b1011
"""By bit: the buffers that a product reads alone: two factors, an addend behind the result."""


class LaunchBinder:
    """Binds steps to launches; records what limits the use of their executable."""

    def __init__(
        self, scheduled: ScheduledGraph, slots: SlotTable, publication: Publication
    ) -> None:
        self.scheduled, self.slots, self.publication = scheduled, slots, publication
        self.instructions = slots.instructions
        self.exact_scalars = scheduled.original.report.read_scalars
        """Whether the executable holds for these Python scalars alone."""
        self.replay_limit = -1
        """The replays until the executable is built again, with optimised programs; -1: none."""

    def bind_kernel(self, step: Step) -> bool:
        """Emit the launch of a kernel; return whether it overwrites the value of a node."""
        launch, target = step.launch, self.scheduled.plan.target
        assert launch is not None, "a kernel step has a launch"
        for _ in range(step.copies):
            self.instructions.append(instructions.CountCopy())
        claims_value = self.publication.store(step.results)
        # a hot structure gets the optimised program at once
        elements = TIERS.optimised_elements if self.scheduled.structure.is_hot else launch.elements
        program = self._program(launch.kernel, elements)
        threads, tables = threads_of(launch, target), list[int]()
        phases = [(program.kernel, program.finish, launch.finish)]
        if launch.scans_in_parts(threads):  # two launches that share the tables
            tables = [self.slots.allocate_scratch(size) for size in launch.totals]
            totals, carries, parts = program.scan_phases
            phases = [(totals, carries, launch.units), (parts, None, 0)]
        for phase in phases:
            operands = [(self.slots.slot(memory.item), memory.offset) for memory in launch.memory]
            if launch.kernel.waits:
                operands.append((Executable.ADDRESS, _native.block_runner()))
            self.instructions.append(
                instructions.LaunchKernel(
                    *phase,
                    operands + [(table, 0) for table in tables],
                    launch.sizes,
                    launch.scratch,
                    launch.parts if tables else launch.units,
                    1 if tables else launch.grain,
                    threads,
                    claims_value,
                    "+".join(step.names),
                    self.scheduled.source_of(step),
                    [self._scalar(parameter) for parameter in launch.parameters],
                    () if tables else launch.totals,
                    -1 - launch.multiply_adds if launch.kernel.folds else -1,
                    written=_written(launch.kernel) if target.block else instructions.ALL_WRITTEN,
                )
            )
        if tables:
            self.instructions.append(instructions.Drop(tables))
        return claims_value

    def _program(self, kernel: Source, elements: int) -> Program:
        """Return the program of a launch. Uses of an unoptimised one are counted and limited: after
        them the executable is built once more.
        """
        target = self.scheduled.plan.target
        if target.ptx_processor:
            from tenfold.jit.ptx import ptx_program, runs_as_ptx  # imported only for such a device

            if runs_as_ptx(kernel):
                return ptx_program(kernel, target)
        program = self.scheduled.program_of(kernel, elements)
        limit = uses_left(kernel, target)
        if limit >= 0:
            self.replay_limit = max(self.replay_limit, limit)
            self.instructions.append(instructions.CountUse(use_counter(kernel, target)))
        return program

    def _scalar(self, parameter: LaunchScalar) -> int | instructions.NodeScalar:
        """Return a scalar of a launch: a scalar node of the walk, or 64 constant bits."""
        if parameter.item < 0:
            return parameter.number
        node = self.scheduled.node_of(parameter.item)
        position = self.scheduled.position(node)
        if node.is_scalar and position is not None and casts_natively(node.scalar, parameter.dtype):
            return instructions.NodeScalar(position, parameter.dtype, parameter.part == 1)
        self.exact_scalars = self.exact_scalars or node.is_scalar
        return scalar_bits(node, parameter)

    def bind_product(self, step: Step, call: ReferenceCall) -> bool | None:
        """Emit the launch of a product; return whether it overwrites the value of a node, or None
        if it needs Python.
        """
        if step.product is None:
            return None
        nodes, items = [*map(self.scheduled.node_of, step.reads)], self.scheduled.plan.items
        dtypes = [
            None if node.is_scalar else items[item].dtype
            for node, item in zip(nodes, step.reads, strict=True)
        ]
        multiply_adds = self.scheduled.graph.multiply_adds(step.position)
        bound = product_launch.bound_product(call, dtypes, step.product, multiply_adds)
        if bound is None or not all(
            self.scheduled.position(node) is not None
            and casts_natively(node.scalar, call.type.dtype)
            for node in nodes
            if node.is_scalar
        ):
            return None
        return self._launch_product(step, bound)

    def _launch_product(self, step: Step, bound: BoundProduct) -> bool:
        product, operand = bound.step, self.slots.operand
        claims_value = self.publication.store(step.results)
        program = self._program(product.kernel, product.multiply_adds)
        items = [step.reads[index] for index in bound.reads]
        items.insert(2, step.results[0].item)
        scales = [
            scale._replace(factors=[operand(step.reads[at]) for at in scale.factors])
            for scale in bound.scales
        ]
        self.instructions.append(
            instructions.LaunchKernel(
                program.kernel,
                program.finish,
                0,
                [(self.slots.slot(item), 0) for item in items] + bound.functions,
                product.sizes,
                product.scratch,
                product.units,
                product.grain,
                product_launch.threads_of(product),
                claims_value,
                step.names[0],
                self.scheduled.source_of(step),
                multiply_adds=bound.multiply_adds,
                scales=scales,
                blas_libraries=routines.libraries() if bound.functions else (),
                written=instructions.ALL_WRITTEN ^ PRODUCT_READS,
            )
        )
        return claims_value

    def bind_driver(self, step: Step, call: ReferenceCall) -> bool | None:
        """Emit the launch of a LAPACK driver, which overwrites no value (False); return None if it
        needs Python: for copies, to be interrupted, and for memory that the host cannot read.
        """
        choice = step.driver
        if not _native.is_host_device(self.scheduled.device):
            return None
        if choice is None or choice.copies or choice.multiply_adds >= interruptible.LONG:
            return None
        launch, item = drivers.bind_driver(choice), step.results[0].item
        slots = self.slots.new(item, len(choice.results))
        temporary = item in self.scheduled.plan.temporaries
        for slot, (type_, size) in zip(slots, choice.results, strict=True):
            self.instructions.append(
                instructions.Allocate(slot, type_, size, (), temporary and slot == slots[0])
            )
        buffers = [(slot, 0) for slot in (*map(self.slots.slot, step.reads), *slots)]
        buffers += [(Executable.ADDRESS, address) for address in launch.addresses]
        blas_threads, fallback = drivers.blas_threads(launch), dispatch.fallback_counter(call)
        self.instructions.append(
            instructions.LaunchKernel(
                launch.kernel,
                None,
                0,
                buffers,
                launch.sizes,
                launch.scratch,
                choice.units,
                launch.grain,
                drivers.threads_of(launch),
                False,
                step.names[0],
                self.scheduled.source_of(step),
                multiply_adds=reference.multiply_adds(call, choice.operands),
                blas_libraries=routines.libraries() if blas_threads else (),
                blas_threads=blas_threads,
                extra_work=instructions.ExtraWork(slots[0], *fallback) if fallback else None,
            )
        )
        return False


def _written(kernel: Kernel) -> int:
    """Return the mask of the buffers that a launch may write: those behind the operands, too."""
    operands = enumerate(kernel.operands[:63])
    read = sum([1 << at for at, operand in operands if not operand.written])
    return instructions.ALL_WRITTEN ^ read


def scalar_bits(node: Node, parameter: LaunchScalar) -> int:
    """Return the scalar of a launch for a Python scalar or a constant fill, as 64 bits.

    >>> import tenfold as tn
    >>> from tenfold import _native
    >>> (_, scalar) = _native.node_of(tn.asarray([1.0]) * 2).inputs
    >>> scalar_bits(scalar, LaunchScalar(0, np.dtype("float64"))) == np.float64(2).view(np.int64)
    np.True_
    """
    if node.is_scalar:
        value = np.asarray(node.scalar)
    else:
        with np.errstate(all="ignore"):
            value = np.asarray(node.op.rewriting.constant_fill(*node.params)).astype(
                node.type.dtype
            )
    converted = _parameter_bytes(parameter, reference.cast_operand(value, parameter.dtype))
    return int.from_bytes(converted, "little", signed=True)


def casts_natively(number: object, dtype: np.dtype) -> bool:
    """Whether native code casts this number to the dtype as NumPy does."""
    if kind_of(dtype) == "f":
        return dtype.itemsize >= 4 and isinstance(number, (bool, int, float))
    return kind_of(dtype) == "c" or isinstance(number, (bool, int))


def _parameter_bytes(parameter: LaunchScalar, converted: np.ndarray) -> bytes:
    """Return a scalar as 8 bytes for a launch; `converted` has the dtype of the parameter."""
    component = (converted.real, converted.imag)[parameter.part]
    return np.asarray(component).tobytes().ljust(8, b"\0")
