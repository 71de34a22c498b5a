r"""Input errors: exceptions for bad files and command lines, each shown as one printable line.

Takes any message, returns exceptions whose text is one printable line and whose class has the exit
code. The library itself raises the classes of `tenfold.errors`; these four are for files and
command lines.

    >>> InputError("a.npy: line one\nline two").exit_code
    3
    >>> str(InputError("a.npy: line one\nline two"))
    'a.npy: line one; line two'
"""

from __future__ import annotations

from typing import ClassVar

MAX_LINE = 1_000
"""Limit of the characters of a message: file names and errors may be longer."""


def one_line(text: str) -> str:
    """Return the text on one line, without control characters.

    File names and keys of archives are untrusted: they may contain terminal escapes.
    """
    line = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    if len(printable) <= MAX_LINE:
        return printable
    # A message begins with its subject and ends with the remedy: the middle can be cut.
    half = MAX_LINE // 2 - 3
    return f"{printable[:half]} ... {printable[-half:]}"


def error_text(error: BaseException) -> str:
    """Return the text of an operating-system or library error, without number and path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class UserError(Exception):
    """An error that the user can fix: one line of text and an exit code."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ExpressionError(UserError):
    """The text of an expression is not allowed. Nothing was computed."""

    exit_code: ClassVar[int] = 2


class InputError(UserError):
    """An input file is missing, damaged, unsafe or not an array of a supported dtype."""

    exit_code: ClassVar[int] = 3


class ComputationError(UserError):
    """A valid expression over valid inputs cannot be computed."""

    exit_code: ClassVar[int] = 4


class OutputError(UserError):
    """The result cannot be written. The output file is unchanged."""

    exit_code: ClassVar[int] = 5
