"""Errors: exception classes derived from builtins, and the formatter of their messages.

A message says, in this order: the operation, the rule that was broken with its real values, each
operand (shape, dtype, device), and the remedy.

>>> print(ShapeError("add", "shapes (2, 3) and (3, 2) do not broadcast", remedy="reshape one"))
add: shapes (2, 3) and (3, 2) do not broadcast
  remedy: reshape one
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from typing import Protocol

import numpy as np

SCALAR_NAMES = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


class Described(Protocol):
    """An operand that a message can describe."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its axes."""

    @property
    def dtype(self) -> np.dtype:
        """Its element type."""

    @property
    def device(self) -> str:
        """The name of its device."""


def message(
    operation: str, rule: str, operands: Iterable[Described] = (), remedy: str | None = None
) -> str:
    """Format one error: operation and rule, a line for each operand, a line for the remedy."""
    lines = [f"{operation}: {rule}" if rule else operation]
    for position, operand in enumerate(operands, 1):
        lines.append(f"  operand {position}: {describe_operand(operand)}")
    if remedy:
        lines.append(f"  remedy: {remedy}")
    return "\n".join(lines)


def describe_operand(operand: Described) -> str:
    """Return an operand's shape, dtype and device as text, or the type of a Python scalar."""
    is_type = hasattr(type(operand), "weak")  # an Array has no such name, and would seek a remedy
    if is_type and getattr(operand, "weak", False):
        return f"a Python {SCALAR_NAMES[operand.dtype.kind]}"
    return f"shape {tuple(operand.shape)}, {operand.dtype}, device {operand.device!r}"


class ExplainedError(Exception):
    """An error of operation, rule, operands and remedy; an outer operation can rename it."""

    def __init__(
        self,
        operation: str,
        rule: str = "",
        operands: Iterable[Described] = (),
        remedy: str | None = None,
    ) -> None:
        self.operation, self.rule, self.remedy = operation, rule, remedy
        self.operands = tuple(operands)
        super().__init__(message(operation, rule, self.operands, remedy))

    def __reduce__(self) -> tuple[type[ExplainedError], tuple[str]]:
        return type(self), (str(self),)

    def completed(self, operation: str, operands: Iterable[Described]) -> ExplainedError:
        """Return the error of a rule with the missing operation and operands added."""
        return type(self)(
            self.operation or operation, self.rule, self.operands or operands, self.remedy
        )

    def renamed(self, operation: str, operands: Iterable[Described]) -> ExplainedError:
        """Return the error of an inner operation as an error of the outer one."""
        return type(self)(operation, self.rule, tuple(operands) or self.operands, self.remedy)


class ShapeError(ExplainedError, ValueError):
    """Shapes, axes or sizes that do not fit."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis that the array does not have: a ShapeError that is NumPy's AxisError too."""


class IntegerError(ShapeError, TypeError):
    """A shape, an axis or a count that is not an int: a ShapeError that is a TypeError too."""


class NumberError(ShapeError, TypeError):
    """An array that is not a single number: a ShapeError that is a TypeError too."""


class IndexShapeError(ShapeError, IndexError):
    """Index arrays that do not broadcast: a ShapeError that is an IndexError too."""


class MatrixError(ShapeError, np.linalg.LinAlgError):
    """A shape that is none of (square) matrices: a ShapeError that is NumPy's LinAlgError too."""


class DTypeError(ExplainedError, TypeError):
    """Dtypes that do not fit, or that tenfold does not have."""


class ForeignDTypeError(DTypeError):
    """Elements that tenfold does not hold: text, objects, dates, records, wider floats."""


class DeviceError(ExplainedError, ValueError):
    """Operands of different devices, or a device that does not exist."""


class AliasError(ExplainedError, ValueError):
    """A broken promise that memory is not shared."""


class UnsupportedError(ExplainedError, NotImplementedError):
    """Something NumPy or the standard has and tenfold does not; the remedy names the substitute."""


class FallbackWarning(UserWarning):
    """A NumPy function without a lazy form converts Arrays: the setting `numpy_fallback`; or a
    function of `tn.function` that asks for values runs untraced.
    """


class CompileError(ExplainedError, RuntimeError):
    """A kernel could not be compiled."""


class VerifyError(ExplainedError, AssertionError):
    """A kernel violates an invariant: a bug of Tenfold, found before the kernel runs."""


class RunError(ExplainedError, RuntimeError):
    """A computation failed for its values; raised from the original error where a caller waits."""


def no_address_space(num_bytes: int) -> MemoryError:
    """Return the error of a compilation that would find less than `num_bytes` of address space."""
    remedy = "delete arrays, or raise the limit (ulimit -v)"
    return MemoryError(f"compile: {num_bytes >> 20} MiB of address space are not free; {remedy}")


def raise_if_failed(failure: Exception | None) -> None:
    """Raise the failure that a computation returned, if it failed.

    No frame of tenfold refers to the error afterwards, so that the arrays of the computation are
    freed without the garbage collector: the caller must not bind the failure to a variable.
    """
    if failure is not None:
        _clear_frames(failure)
        try:
            raise failure
        finally:
            del failure


def _clear_frames(failure: BaseException) -> None:
    """Clear the variables of the finished frames of tenfold below an error and its causes.

    Frames of users keep theirs, for a debugger.
    """
    error: BaseException | None = failure
    while error is not None:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        frame = frames[-1] if frames else None
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith("tenfold."):
                try:
                    frame.clear()
                except RuntimeError:  # it is running, and so are the frames that called it
                    break
            frame = frame.f_back
        error = error.__cause__


LinAlgError = np.linalg.LinAlgError
"""NumPy's: a matrix without a result (singular, say), raised where a caller waits."""
