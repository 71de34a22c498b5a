"""Routines of LAPACK on each matrix of a stack, as kernels with the ABI of all others.

A unit of work is one matrix: the routines are called one after the other on its memory. They take
every argument by pointer: a character, a 32-bit number, 0, memory of the matrix, memory to work in,
and where they report. What a routine reports is not 0 for a matrix without an answer; the kernel
then returns 1 + its index.

>>> factor = Routine("dpotrf", "'U n0 m0 n0 report", fails=True)
>>> print(LibraryCall((factor,), buffers=1))
library call of dpotrf, 1 buffers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tenfold.render.loops import counted, where
from tenfold.render.packet import Text
from tenfold.render.product import advanced, given, module, times


class Routine(NamedTuple):
    """A routine and what it is given pointers to, in words.

    `'U` is a character, `zero` 0 in any floating dtype, `n2` number 2 of the launch in 32 bits,
    `m0` buffer 0 at the matrix of the unit, `w3` the thread's own memory from the byte on that
    number 3 of the launch says, and `report` where the routine says how it went.
    """

    name: str
    arguments: str
    fails: bool = False
    """Whether what it reports is a failure if it is not 0."""


@dataclass(frozen=True)
class LibraryCall:
    """Routines that are called for every matrix of a stack, which lies in so many buffers."""

    routines: tuple[Routine, ...]
    buffers: int

    def __str__(self) -> str:
        names = ", ".join(routine.name for routine in self.routines)
        return f"library call of {names}, {self.buffers} buffers"

    def text(self) -> str:
        """Return its LLVM module.

        Buffers are those of the stack, then the addresses of the routines. Sizes are the bytes from
        one matrix to the next in every buffer, then the numbers.
        """
        text = Text()
        places = given(text, "%buffers", 0, self.buffers)
        functions = given(text, "%buffers", self.buffers, len(self.routines))
        strides = given(text, "%sizes", 0, self.buffers)
        pointers = self._constants(text)
        report, failed = text.stack(4), text.stack(8)
        pointers["report"] = report
        text.line(f"store i64 0, ptr {failed}")

        def unit(index: str) -> None:
            for position, (place, stride) in enumerate(zip(places, strides, strict=True)):
                pointers[f"m{position}"] = times(text, place, index, stride)
            for routine, function in zip(self.routines, functions, strict=True):
                words = routine.arguments.split()
                listed = ", ".join(f"ptr {pointers[word]}" for word in words)
                text.line(f"call void {function}({listed})")
                if routine.fails:
                    _checked(text, report, failed, index)

        counted(text, "%begin", "%end", 1, unit)
        text.line(f"ret i64 {text.value(f'load i64, ptr {failed}')}")
        return module(text, str(self))

    def _constants(self, text: Text) -> dict[str, str]:
        """Store what is the same for all matrices."""
        found = {"zero": _kept(text, "<2 x double> zeroinitializer")}
        for word in " ".join(routine.arguments for routine in self.routines).split():
            if word[0] == "'":
                found[word] = _kept(text, f"i8 {ord(word[1])}")
            elif word[0] in "nw":
                (value,) = given(text, "%sizes", self.buffers + int(word[1:]), 1)
                found[word] = (
                    advanced(text, "%scratch", value)
                    if word[0] == "w"
                    else _kept(text, f"i32 {text.value(f'trunc i64 {value} to i32')}")
                )
        return found


def _checked(text: Text, report: str, failed: str, index: str) -> None:
    """Remember a matrix whose routine has reported something else than 0."""
    reported = text.value(f"load i32, ptr {report}")
    bad = text.value(f"icmp ne i32 {reported}, 0")
    where(
        text,
        bad,
        lambda: text.line(f"store i64 {text.value(f'add i64 {index}, 1')}, ptr {failed}"),
    )


def _kept(text: Text, value: str) -> str:
    place = text.stack(16)
    text.line(f"store {value}, ptr {place}")
    return place
