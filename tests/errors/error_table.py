"""The table of programs that must raise, filled by decorators: the class, the message, and where.

>>> @wrong(ValueError, "math domain error", operands=0, remedy=False)
... def the_root_of_a_negative_number() -> None:
...     import math
...     math.sqrt(-1)
>>> MISTAKES.pop().line == the_root_of_a_negative_number.__code__.co_firstlineno + 3
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Program = TypeVar("Program", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mistake:
    """A program whose last line is wrong."""

    program: Callable[..., Any]
    error: type[BaseException]
    message: str
    """The first line of what is raised."""
    operands: int
    """The lines that describe operands."""
    remedy: bool
    """Whether the last line says what to do."""
    at_wait: bool = False
    """Whether it depends on values: the program returns an Array, and a wait for that raises."""

    @property
    def line(self) -> int:
        """The number of the program's last line."""
        return max(line for _, _, line in self.program.__code__.co_lines() if line is not None)

    @property
    def file(self) -> str:
        return self.program.__code__.co_filename


MISTAKES: list[Mistake] = []


def wrong(
    error: type[BaseException], message: str, *, operands: int = 1, remedy: bool = True
) -> Callable[[Program], Program]:
    """The program's last line raises, while the expression is built."""

    def enter(program: Program) -> Program:
        MISTAKES.append(Mistake(program, error, message, operands, remedy))
        return program

    return enter


def wrong_values(
    error: type[BaseException], message: str, *, operands: int = 0, remedy: bool = False
) -> Callable[[Program], Program]:
    """The program's last line makes an Array whose values cannot be had; `{place}` is that line."""

    def enter(program: Program) -> Program:
        MISTAKES.append(Mistake(program, error, message, operands, remedy, at_wait=True))
        return program

    return enter
