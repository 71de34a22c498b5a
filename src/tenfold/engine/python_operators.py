"""Python operators: run batches of user-defined operators on the engine's workers, under the GIL.

Takes an operator and the inputs of each member of a batch, hands on a result for each. A result is
a value, a tuple of None and a value that is a tuple itself, or a tuple of one exception.

>>> from tenfold.engine.operators import Operator
>>> class Double(Operator):
...     def run(self, x): return 2 * x
>>> run(OperatorKind.USER, Double(), {}, [(1,), ("a",)], 0)
[2, 'aa']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from tenfold.engine.operands import operator_result
from tenfold.errors import ExplainedError, RunError, message


class OperatorKind(IntEnum):
    """How an operator runs: Operation::Kind of native/engine/future.h."""

    ELEMENTS = 1
    PRODUCT = 2
    GENERAL = 3
    USER = 4
    BATCHED = 5
    IN_PLACE = 6
    CUMULATIVE = 7
    FOLD = 8


Inputs = tuple[Any, ...]


def run(
    kind: int, operator: Any, params: Mapping[str, Any], members: Sequence[Inputs], leaves: int
) -> list[Any]:
    """Run an operator for each member: of increments each its own, alike, which are in a list.

    Of a fold the last `leaves` inputs are increments.
    """
    if kind == OperatorKind.BATCHED:
        return _run_batch(operator, params, members, again=operator.pure)
    if kind == OperatorKind.CUMULATIVE:
        return _run_increments(operator, params, members)

    def one(inputs: Inputs) -> Any:
        if kind == OperatorKind.FOLD:
            return _fold_sum(operator.add, inputs, leaves)
        result = (operator if kind <= OperatorKind.GENERAL else operator.run)(*inputs, **params)
        return inputs[0] if kind == OperatorKind.IN_PLACE and result is None else result

    return [_catch(partial(one, inputs)) for inputs in members]


def _catch(function: Callable[[], Any]) -> Any:
    """Return what a function returns as the engine keeps it, or its exception in a tuple."""
    try:
        return _wrap_tuple(operator_result(function()))
    except BaseException as error:  # noqa: BLE001  # it waits on the handle, whatever it is
        return (error,)


def _wrap_tuple(value: Any) -> Any:
    return (None, value) if type(value) is tuple else value


def _run_batch(
    operator: Any, params: Mapping[str, Any], members: Sequence[Inputs], *, again: bool
) -> list[Any]:
    """Run a batch; one that fails is run again one by one, once, where that does no harm."""
    try:
        return _batch_results(operator, params, members)
    except BaseException as error:  # noqa: BLE001  # it waits on the handle, whatever it is
        if not again or len(members) == 1:
            return [(error,)] * len(members)
    return [_run_single(operator, params, inputs) for inputs in members]


def _run_increments(
    operators: Sequence[Any], params: Mapping[str, Any], members: Sequence[Inputs]
) -> list[Any]:
    if hasattr(operators[0], "run_batch"):
        return _run_batch(operators[0], params, members, again=False)
    pairs = zip(operators, members, strict=True)
    return [_catch(partial(operator.run, *inputs, **params)) for operator, inputs in pairs]


def _run_single(operator: Any, params: Mapping[str, Any], inputs: Inputs) -> Any:
    try:
        return _batch_results(operator, params, [inputs])[0]
    except BaseException as error:  # noqa: BLE001  # it waits on the handle, whatever it is
        return (error,)


def _batch_results(
    operator: Any, params: Mapping[str, Any], members: Sequence[Inputs]
) -> list[Any]:
    results = operator.run_batch(list(members), **params)
    try:
        count = len(results)
    except TypeError:
        count = -1
    if count != len(members):
        returned = f"{count} results" if count >= 0 else type(results).__name__
        rule = f"run_batch returned {returned} for {len(members)} inputs"
        remedy = "return a list with one result for each, in their order"
        raise ValueError(message(type(operator).__name__, rule, remedy=remedy))
    return [_catch(partial(_identity, result)) for result in results]


def _identity(value: Any) -> Any:
    return value


def _fold_sum(add: Callable[[Any, Any], Any], values: Sequence[Any], leaves: int) -> Any:
    """Return base + (blocks + pairwise sum of the leaves)."""
    before = len(values) - leaves
    total = _pairwise_sum(add, values[before:])
    for value in reversed(values[:before]):
        total = operator_result(add(value, total))
    return total


def _pairwise_sum(add: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    """Return a sum whose left part has the greatest power of two below its length."""
    if len(values) == 1:
        return values[0]
    half = 1 << ((len(values) - 1).bit_length() - 1)
    return operator_result(
        add(_pairwise_sum(add, values[:half]), _pairwise_sum(add, values[half:]))
    )


def error_for_waiter(error: BaseException | None, name: str, file: str, line: int) -> BaseException:
    """Return the exception of one wait for what has failed, or was cancelled (None)."""
    if error is None:
        return CancelledError(f"{name}: it was cancelled, or an operator that it needs")
    place = f"pushed at {file}:{line}" if file else "pushed"
    made: BaseException
    if isinstance(error, ExplainedError):
        if error.operation not in ("", name, name.rpartition(".")[2]):
            place = f"in {name}, {place}"
        rule = f"{error.rule or error} ({place})"
        made = type(error)(error.operation or name, rule, error.operands, error.remedy)
    elif isinstance(error, np.linalg.LinAlgError | MemoryError):
        made = type(error)(f"{name}: {error} ({place})")
    else:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        made = RunError(name, f"{said} ({place})")
    made.__cause__ = error
    return made


def log_unretrieved(error: BaseException, name: str, file: str, line: int) -> None:
    """Log an error that was never raised to a caller."""
    import logging  # costs milliseconds, and most programs never come here

    logging.getLogger("tenfold").error(
        "%s failed, pushed at %s:%s, and its error was never retrieved",
        name,
        file,
        line,
        exc_info=error,
    )
