"""Kernel verification: proves launches correct before their kernels are compiled.

Takes a Schedule, or a Launch and the BufferExtents of its operands; raises
VerifyError, which names the kernel and the rule that it violates. It runs no kernel, and its time
does not depend on lengths. The rules, each in its own file:

- the loops and the strides agree with those of the memory (`schedule/launch_space.py`);
- units cover the loops once, in whole packets; scratch memory and tables of partial results are as
  large as the renderer uses them (`schedule/verify_units.py`);
- every access, gathers too, is within its buffer; no two indices write one cell; in-place
  operands are read before they are written (`schedule/verify_accesses.py`);
- a kernel's operands, instructions, stores, lanes and form fit together (`verify_kernel`).

Alignment above that of an element is claimed only where an address is tested at run time, and for
scratch memory (`codegen/llvm/verify_alignment.py`).

It runs under `tn.options(verify=True)`, and in tests (`verify_kernels`), when a graph is planned:
replays and cached plans are verified already. It takes about 75 microseconds a launch (50 to
150; `bench/verify_kernels.py`), a fifth of the planning time and less than a hundredth of the
compile time. Of launches by native code only the kernels are verified: unfused operations, and
symbolic executables for other lengths, which `verify=True` does not use.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([1.0, 2.0])
>>> verify_plan(schedule_graph(Graph.of([_native.node_of(x + x)])))
1
"""

from __future__ import annotations

from collections.abc import Mapping

from tenfold.core.canonical_reduction import LANES
from tenfold.core.loop_ir import SMALL_STEPS, THREAD_FORMS, Kernel, KernelForm, operand_of, part_of
from tenfold.core.scalar_ir import Instruction
from tenfold.dtypes import REAL_DTYPES
from tenfold.schedule.buffer_extents import BufferExtent, extents_of
from tenfold.schedule.launch_space import loop_space, violation
from tenfold.schedule.schedule_ir import Launch, Schedule
from tenfold.schedule.target import DEFAULT
from tenfold.schedule.verify_accesses import refuse_accesses, refuse_hazards
from tenfold.schedule.verify_units import refuse_units
from tenfold.settings import get


def verifies() -> bool:
    """Whether the current options enable the verifier."""
    return bool(get("verify") or get("verify_kernels"))


def verify_plan(schedule: Schedule) -> int:
    """Verify the launches of a schedule; return how many there are."""
    launches = schedule.launches.values()
    extents = extents_of(schedule) if launches else {}
    for launch in launches:
        verify_launch(launch, extents)
    return len(launches)


def verify_launch(launch: Launch, extents: Mapping[int, BufferExtent]) -> None:
    """Verify a launch whose operands have these extents."""
    verify_kernel(launch.kernel)
    space = loop_space(launch)
    refuse_units(space)
    refuse_accesses(space, extents)
    refuse_hazards(space, extents)


def verify_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that is not well-formed.

    Instructions read earlier ones, loads read operands that are not written, and each written
    operand has one store of its dtype. A step is one that the code generator has for its axis.

    >>> from tenfold.core.loop_ir import THREAD_FORMS, KernelOperand, KernelStore
    >>> from tenfold.core.scalar_ir import Body
    >>> from tenfold.dtypes import FLOAT32
    >>> body = Body()
    >>> y = body.load(0, FLOAT32) * 2.0
    >>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
    >>> verify_kernel(Kernel(operands, tuple(body.instructions), (KernelStore(1, (y.position,)),)))
    """
    if not 1 <= kernel.lanes <= DEFAULT.simd.max_lanes or kernel.lanes & (kernel.lanes - 1):
        raise violation(kernel, f"packets of {kernel.lanes} elements")
    if kernel.block and (kernel.lanes != 1 or kernel.form not in THREAD_FORMS):
        raise violation(kernel, "threads compute one element at a time, in maps and folds")
    is_row = kernel.form in (KernelForm.ROW, KernelForm.SPLIT)
    if is_row and not kernel.block and kernel.lanes != LANES:
        raise violation(kernel, f"rows are folded {LANES} lanes at a time, not {kernel.lanes}")
    if kernel.form is KernelForm.SHORT_ROW and kernel.lanes > LANES:
        raise violation(kernel, f"short rows of {kernel.lanes} lanes are folded as {LANES} are not")
    for number in range(len(kernel.operands)):
        _refuse_steps(kernel, number)
    for position, instruction in enumerate(kernel.body):
        _refuse_instruction(kernel, position, instruction)
    _refuse_stores(kernel)


def _refuse_steps(kernel: Kernel, number: int) -> None:
    operand = kernel.operands[number]
    outer, packet_step = operand.steps[:-1], operand.steps[-1]
    transposed = (
        kernel.form is KernelForm.MAP and not operand.written and operand.steps[-2:] == "1s"
    )
    if kernel.form is KernelForm.SEGMENTS:  # rows may be contiguous
        outer = outer.replace("1", "s", 1)
    outer_known = all(step in "0s" for step in (outer[:-1] if transposed else outer))
    if (
        len(operand.steps) != kernel.axes
        or not outer_known
        or packet_step not in ("0", "1", "-", "s", *SMALL_STEPS)
    ):
        raise violation(kernel, f"operand {number} has steps {operand.steps!r}")
    if packet_step in SMALL_STEPS and operand.dtype in REAL_DTYPES:
        raise violation(kernel, f"operand {number} has steps of real elements")
    if not operand.written or not kernel.form.is_scan or not kernel.scan.initial_mode:
        return
    axis = -2 if kernel.form is KernelForm.SCAN_COLUMNS else -1
    if operand.steps[axis] not in ("1", "s"):  # the result is stored one step later
        raise violation(kernel, f"operand {number} has steps {operand.steps!r} where it is shifted")


def _refuse_instruction(kernel: Kernel, position: int, instruction: Instruction) -> None:
    if any(not 0 <= i < position for i in instruction.inputs):
        raise violation(kernel, f"%{position} reads a value that is computed later")
    if instruction.name == "index" and not 0 <= int(str(instruction.data)) < kernel.axes:
        raise violation(kernel, f"%{position} is an index along axis {instruction.data}")
    if instruction.name == "parameter" and not 0 <= int(str(instruction.data)) < kernel.parameters:
        raise violation(kernel, f"%{position} is none of {kernel.parameters} parameters")
    if instruction.name not in ("load", "gather"):
        return
    number = operand_of(instruction)
    if not 0 <= number < len(kernel.operands) or kernel.operands[number].written:
        raise violation(
            kernel, f"%{position} reads operand {number}, which is not there to be read"
        )
    dtype = kernel.operands[number].dtype
    if instruction.dtype != REAL_DTYPES.get(dtype, dtype) or part_of(instruction) > (
        dtype in REAL_DTYPES
    ):
        raise violation(kernel, f"%{position} reads {instruction.dtype} of an operand of {dtype}")


def _refuse_stores(kernel: Kernel) -> None:
    written_operands = [number for number, operand in enumerate(kernel.operands) if operand.written]
    if sorted(store.operand for store in kernel.stores) != written_operands:
        raise violation(kernel, f"operands {written_operands} are written, each by one store")
    for store in kernel.stores:
        dtype = kernel.operands[store.operand].dtype
        parts = [REAL_DTYPES[dtype]] * 2 if dtype in REAL_DTYPES else [dtype]
        if [kernel.body[i].dtype for i in store.elements] != parts:
            raise violation(kernel, f"operand {store.operand} of {dtype} is given other elements")


__all__ = ["verifies", "verify_kernel", "verify_launch", "verify_plan"]
