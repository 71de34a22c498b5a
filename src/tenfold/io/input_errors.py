r"""Input errors: exceptions for bad files and command lines, each shown as one printable line.

Takes: any message, however long or strange. Hands on: exceptions whose text is one printable line
and whose class gives the exit code. The library itself raises the classes of `tenfold.errors`;
these four are for input from outside of Python.

    >>> InputError("a.npy: line one\nline two").exit_code
    3
    >>> str(InputError("a.npy: line one\nline two"))
    'a.npy: line one; line two'
"""

from __future__ import annotations

from typing import ClassVar

MAX_LINE = 1_000
"""Characters of a message that are shown: an array's file name or an error may be longer."""


def one_line(text: str) -> str:
    """The text on one line, without control characters: file names and keys are not ours.

    A key inside an archive may hold terminal escapes; printed raw they could repaint the screen.
    """
    joined = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
    if len(shown) <= MAX_LINE:
        return shown
    # A message begins with what it is about and ends with what to do: the middle can be spared.
    half = MAX_LINE // 2 - 3
    return f"{shown[:half]} ... {shown[-half:]}"


def error_text(error: BaseException) -> str:
    """What an operating-system or library error says, without its number and without the path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class UserError(Exception):
    """Something a user can put right: one line of text, and what a program exits with."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ExpressionError(UserError):
    """The text of an expression is not one that is allowed. Nothing was computed."""

    exit_code: ClassVar[int] = 2


class InputError(UserError):
    """An input file is missing, damaged, unsafe or not an array of a dtype we know."""

    exit_code: ClassVar[int] = 3


class ComputationError(UserError):
    """The expression is allowed and the inputs are sound, but it cannot be computed."""

    exit_code: ClassVar[int] = 4


class OutputError(UserError):
    """The result cannot be written. Whatever the output file held before, it still holds."""

    exit_code: ClassVar[int] = 5
