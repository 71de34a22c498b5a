"""LAPACK driver calls: routines on each matrix of a stack, as kernels with the common kernel ABI.

A unit of work is one matrix: the steps run one after the other on its memory. Routines take every
argument by pointer: a character, a 32-bit number, 0, memory of the matrix, workspace, and their
info. If the info of a matrix is not 0, the kernel returns 1 + the index of the matrix. Between
routines, `codegen/lapack/matrix_copies.py` copies and tests.

>>> factor = Routine("dpotrf", "'U n0 m0 n0 report", fails=True)
>>> print(LapackCall((factor,), buffers=1))
library call of dpotrf, 1 buffers
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tenfold.codegen.gemm.emitter import if_else, load_arguments, module_text, strided_ptr
from tenfold.codegen.lapack.determinant import Determinant
from tenfold.codegen.lapack.diagonal_steps import (
    AllFinite,
    Fail,
    FiniteDiagonal,
    NonzeroDiagonal,
    PositiveDiagonal,
    TriangleSide,
)
from tenfold.codegen.lapack.matrix_copies import Conjugate, MatrixUnit, Mirror, Move, Permutation
from tenfold.codegen.lapack.symmetric_steps import (
    ExchangeRows,
    Interchanges,
    InvertibleBlocks,
    NegativePivot,
    SolveBlockDiagonal,
)
from tenfold.codegen.llvm.loop_emitter import for_range
from tenfold.codegen.llvm.simd_emitter import SimdEmitter


class Routine(NamedTuple):
    """A LAPACK routine and its arguments as operand words, each passed by pointer.

    `'U` is a character. `zero` and `one` are numbers of any floating dtype. `n2` is number 2 of the
    launch in 32 bits. `m0` is buffer 0 at the matrix of the unit. `w3` is the thread's scratch
    memory at the byte offset in number 3 of the launch. `m0+n4` is `m0` plus the byte offset in
    number 4. `report` is the info of the routine.
    """

    name: str
    arguments: str
    fails: bool = False
    """Whether an info that is not 0 is a failure."""


class Branch(NamedTuple):
    """Steps if an i32 is 0, and other steps if it is not."""

    flag: str
    if_zero: tuple[Step, ...]
    if_nonzero: tuple[Step, ...]


Check = (
    AllFinite
    | TriangleSide
    | Determinant
    | Fail
    | FiniteDiagonal
    | NonzeroDiagonal
    | PositiveDiagonal
)
Symmetric = SolveBlockDiagonal | ExchangeRows | Interchanges | NegativePivot | InvertibleBlocks
Step = Routine | Branch | Move | Mirror | Permutation | Conjugate | Check | Symmetric


@dataclass(frozen=True)
class LapackCall:
    """Steps for every matrix of a stack; `buffers` is the number of buffers."""

    steps: tuple[Step, ...]
    buffers: int

    def __str__(self) -> str:
        return f"library call of {', '.join(self.routines)}, {self.buffers} buffers"

    @property
    def routines(self) -> tuple[str, ...]:
        """The names of the routines, each once."""
        names = [step.name for step in _leaves(self.steps) if isinstance(step, Routine)]
        return tuple(dict.fromkeys(names))

    def text(self) -> str:
        """Return its LLVM module.

        Sizes are the bytes from one matrix to the next in every buffer, then the addresses of the
        routines, then the numbers.
        """
        ir = SimdEmitter()
        buffers = load_arguments(ir, "%buffers", 0, self.buffers)
        strides = load_arguments(ir, "%sizes", 0, self.buffers)
        addresses = load_arguments(ir, "%sizes", self.buffers, len(self.routines))
        functions = {
            name: ir.value(f"inttoptr i64 {address} to ptr")
            for name, address in zip(self.routines, addresses, strict=True)
        }
        failure_slot = ir.alloca(8)
        ir.line(f"store i64 0, ptr {failure_slot}")
        unit = MatrixUnit(ir, self.buffers + len(self.routines), failure_slot)
        for step in _leaves(self.steps):
            for word in _pointer_words(step):
                if word[0] not in "mw":
                    unit.pointer(word)  # arguments equal for all matrices are stored once

        def emit_matrix(index: str) -> None:
            unit.begin(index)
            for position, (buffer, stride) in enumerate(zip(buffers, strides, strict=True)):
                unit.pointers[f"m{position}"] = strided_ptr(ir, buffer, index, stride)
            _emit_steps(unit, self.steps, functions)

        for_range(ir, "%begin", "%end", 1, emit_matrix)
        ir.line(f"ret i64 {ir.value(f'load i64, ptr {failure_slot}')}")
        return module_text(ir, str(self))


def _leaves(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield the steps of all branches."""
    for step in steps:
        if isinstance(step, Branch):
            yield from _leaves(step.if_zero + step.if_nonzero)
        else:
            yield step


def _pointer_words(step: Step) -> list[str]:
    """Return the operand words of a step that may be the same for all matrices."""
    if isinstance(step, Routine):
        return step.arguments.split()
    return [step.source] if isinstance(step, Move) else []


def _emit_steps(unit: MatrixUnit, steps: tuple[Step, ...], functions: dict[str, str]) -> None:
    for step in steps:
        if isinstance(step, Routine):
            _emit_call(unit, step, functions[step.name])
        elif isinstance(step, Branch):
            _emit_branch(unit, step, functions)
        else:
            step.add(unit)


def _emit_call(unit: MatrixUnit, routine: Routine, function: str) -> None:
    arguments = ", ".join(f"ptr {unit.pointer(word)}" for word in routine.arguments.split())
    unit.ir.line(f"call void {function}({arguments})")
    if routine.fails:
        info = unit.ir.value(f"load i32, ptr {unit.pointer('report')}")
        unit.fail_if(unit.ir.value(f"icmp ne i32 {info}, 0"))


def _emit_branch(unit: MatrixUnit, branch: Branch, functions: dict[str, str]) -> None:
    flag = unit.ir.value(f"load i32, ptr {unit.pointer(branch.flag)}")
    zero = unit.ir.value(f"icmp eq i32 {flag}, 0")
    if_else(
        unit.ir,
        zero,
        lambda: _emit_steps(unit, branch.if_zero, functions),
        lambda: _emit_steps(unit, branch.if_nonzero, functions),
    )
