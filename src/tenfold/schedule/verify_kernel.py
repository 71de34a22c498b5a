"""Kernel IR verification: a kernel's operands, instructions, stores, lanes and form fit together.

Takes a Kernel, raises VerifyError. Instructions read earlier ones, loads read operands that are not
written, and each written operand has one store of its dtype. A step is one that the code generator
has for its axis.

>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.loop_ir import KernelOperand, KernelStore
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 2.0
>>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
>>> verify_kernel(Kernel(operands, tuple(body.instructions), (KernelStore(1, (y.position,)),)))
"""

from __future__ import annotations

from tenfold.core.loop_ir import LANES, STEPS, Kernel, operand_of, part_of
from tenfold.core.scalar_ir import Instruction
from tenfold.dtypes import PARTS
from tenfold.schedule.launch_space import broken

MOST_LANES = 64


def verify_kernel(kernel: Kernel) -> None:
    """Refuse a kernel whose parts do not fit together."""
    if not 1 <= kernel.lanes <= MOST_LANES or kernel.lanes & (kernel.lanes - 1):
        raise broken(kernel, f"packets of {kernel.lanes} elements")
    if kernel.form in ("row", "split") and kernel.lanes != LANES:
        raise broken(kernel, f"rows are folded {LANES} lanes at a time, not {kernel.lanes}")
    for number in range(len(kernel.operands)):
        _refuse_steps(kernel, number)
    for position, made in enumerate(kernel.body):
        _refuse_instruction(kernel, position, made)
    _refuse_stores(kernel)


def _refuse_steps(kernel: Kernel, number: int) -> None:
    operand = kernel.operands[number]
    outer, last = operand.steps[:-1], operand.steps[-1]
    across = kernel.form == "map" and not operand.written and operand.steps[-2:] == "1s"
    known = all(step in "0s" for step in (outer[:-1] if across else outer))
    if len(operand.steps) != kernel.axes or not known or last not in ("0", "1", "-", "s", *STEPS):
        raise broken(kernel, f"operand {number} has steps {operand.steps!r}")
    if last in STEPS and operand.dtype in PARTS:
        raise broken(kernel, f"operand {number} has steps of real elements")
    if not operand.written or not kernel.form.startswith("scan") or not kernel.scan.first:
        return
    axis = -2 if kernel.form == "scan columns" else -1
    if operand.steps[axis] not in ("1", "s"):  # the result stands one step further on
        raise broken(kernel, f"operand {number} has steps {operand.steps!r} where it is shifted")


def _refuse_instruction(kernel: Kernel, position: int, made: Instruction) -> None:
    if any(not 0 <= i < position for i in made.inputs):
        raise broken(kernel, f"%{position} reads a value that is computed later")
    if made.name == "index" and not 0 <= int(str(made.data)) < kernel.axes:
        raise broken(kernel, f"%{position} is an index along axis {made.data}")
    if made.name == "parameter" and not 0 <= int(str(made.data)) < kernel.parameters:
        raise broken(kernel, f"%{position} is none of {kernel.parameters} parameters")
    if made.name not in ("load", "gather"):
        return
    number = operand_of(made)
    if not 0 <= number < len(kernel.operands) or kernel.operands[number].written:
        raise broken(kernel, f"%{position} reads operand {number}, which is not there to be read")
    dtype = kernel.operands[number].dtype
    if made.dtype != PARTS.get(dtype, dtype) or part_of(made) > (dtype in PARTS):
        raise broken(kernel, f"%{position} reads {made.dtype} of an operand of {dtype}")


def _refuse_stores(kernel: Kernel) -> None:
    written = [number for number, each in enumerate(kernel.operands) if each.written]
    if sorted(store.operand for store in kernel.stores) != written:
        raise broken(kernel, f"operands {written} are written, each by one store")
    for store in kernel.stores:
        dtype = kernel.operands[store.operand].dtype
        parts = [PARTS[dtype]] * 2 if dtype in PARTS else [dtype]
        if [kernel.body[i].dtype for i in store.elements] != parts:
            raise broken(kernel, f"operand {store.operand} of {dtype} is given other elements")


__all__ = ["verify_kernel"]
