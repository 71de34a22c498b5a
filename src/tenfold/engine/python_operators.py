"""Python operators: run batches of user-defined operators on the engine's workers, under the GIL.

Takes an operator and the inputs of each member of a batch, returns a result for each. A result is a
value, `(None, value)` if the value is a tuple, or `(exception,)`.

>>> from tenfold.engine.operators import Operator
>>> class Double(Operator):
...     def run(self, x): return 2 * x
>>> run(OperatorKind.USER, Double(), {}, [(1,), ("a",)], 0)
[2, 'aa']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.engine.operand_devices import (
    all_moved,
    device_of,
    host_of,
    moved_back,
    on_host,
    run_member,
)
from tenfold.engine.operands import operator_result, stored_value
from tenfold.errors import ExplainedError, RunError, message


class OperatorKind(IntEnum):
    """How an operator runs: Operation::Kind of native/engine/future.h."""

    ELEMENTS = 1
    GENERAL = 2
    USER = 3
    BATCHED = 4
    IN_PLACE = 5
    CUMULATIVE = 6
    FOLD = 7


RunInputs = tuple[Any, ...]


def run(
    kind: int, operator: Any, params: Mapping[str, Any], members: Sequence[RunInputs], leaves: int
) -> list[Any]:
    """Run an operator for each member; for increments `operator` is a list with one per member.

    The last `leaves` inputs of a FOLD are increments.
    """
    if kind == OperatorKind.BATCHED:
        return _run_batch(operator, params, members, retry=operator.pure)
    if kind == OperatorKind.CUMULATIVE:
        return _run_increments(operator, params, members)

    def run_one(inputs: RunInputs) -> Any:
        if kind == OperatorKind.FOLD:
            return _fold_sum(partial(on_host, operator.add), inputs, leaves)
        if kind <= OperatorKind.GENERAL:
            return operator(*all_moved(inputs, device_of(inputs)), **params)
        updates = kind == OperatorKind.IN_PLACE
        return run_member(operator, operator.run, inputs, params, updates=updates)

    return [_catch(partial(run_one, inputs)) for inputs in members]


def _catch(function: Callable[[], Any]) -> Any:
    """Return the stored form of a function's result, or its exception in a tuple."""
    try:
        return _wrap_tuple(operator_result(function()))
    except BaseException as error:  # noqa: BLE001  # the handle stores any error
        return (error,)


def _wrap_tuple(value: Any) -> Any:
    return (None, value) if type(value) is tuple else value


def _run_batch(
    operator: Any, params: Mapping[str, Any], members: Sequence[RunInputs], *, retry: bool
) -> list[Any]:
    """Run a batch. With `retry`, run its members one at a time if it fails."""
    try:
        return _batch_results(operator, params, members)
    except BaseException as error:  # noqa: BLE001  # the handle stores any error
        if not retry or len(members) == 1:
            return [(error,)] * len(members)
    return [_run_single(operator, params, inputs) for inputs in members]


def _run_increments(
    operators: Sequence[Any], params: Mapping[str, Any], members: Sequence[RunInputs]
) -> list[Any]:
    if hasattr(operators[0], "run_batch"):
        return _run_batch(operators[0], params, members, retry=False)
    return [
        _catch(partial(run_member, operator, operator.run, inputs, params))
        for operator, inputs in zip(operators, members, strict=True)
    ]


def _run_single(operator: Any, params: Mapping[str, Any], inputs: RunInputs) -> Any:
    try:
        return _batch_results(operator, params, [inputs])[0]
    except BaseException as error:  # noqa: BLE001  # the handle stores any error
        return (error,)


def _batch_results(
    operator: Any, params: Mapping[str, Any], members: Sequence[RunInputs]
) -> list[Any]:
    devices = [device_of(inputs) for inputs in members]
    members = [
        tuple(all_moved(inputs, host_of(device)))
        for inputs, device in zip(members, devices, strict=True)
    ]
    if getattr(operator, "stacked", False):
        columns = [stored_value(np.stack(column)) for column in zip(*members, strict=True)]
        results: Any = [*run_stacked(operator, columns, len(members), **params)]
    else:
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
    pairs = zip(results, devices, strict=True)
    return [_catch(partial(moved_back, result, device)) for result, device in pairs]


def run_stacked(operator: Any, inputs: Sequence[Array], count: int, **params: Any) -> Array:
    """Run `run_batch` on stacked inputs and return its computed result, a row for each member.

    Raises ValueError for another result.
    """
    result = operator_result(on_host(partial(operator.run_batch, **params), *inputs))
    if isinstance(result, Array) and result.shape[:1] == (count,):
        return result
    returned = f"shape {result.shape}" if isinstance(result, Array) else type(result).__name__
    rule = f"run_batch returned {returned} for {count} stacked inputs"
    remedy = "return an array with one row for each, in their order"
    raise ValueError(message(type(operator).__name__, rule, remedy=remedy))


def _fold_sum(add: Callable[[Any, Any], Any], values: Sequence[Any], leaves: int) -> Any:
    """Return base + (blocks + pairwise sum of the leaves)."""
    block_count = len(values) - leaves
    total = _pairwise_sum(add, values[block_count:])
    for value in reversed(values[:block_count]):
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
    """Return the exception that a waiter raises for a failure; None means cancelled."""
    if error is None:
        from concurrent.futures import CancelledError  # imported only for errors

        return CancelledError(f"{name}: it was cancelled, or an operator that it needs")
    push_location = f"pushed at {file}:{line}" if file else "pushed"
    try:
        waiter_error = _error_of_its_class(error, name, push_location)
    except Exception:  # noqa: BLE001  # of a user's class that has no text, or other arguments
        waiter_error = None
    if waiter_error is None:
        original_text = ": ".join(filter(None, (type(error).__name__, _text_of(error))))
        waiter_error = RunError(name, f"{original_text} ({push_location})")
    waiter_error.__cause__ = error
    return waiter_error


def _error_of_its_class(
    error: BaseException, name: str, push_location: str
) -> BaseException | None:
    """Return an error of the same class for the classes that callers tell apart; else None."""
    if isinstance(error, ExplainedError):
        if error.operation not in ("", name, name.rpartition(".")[2]):
            push_location = f"in {name}, {push_location}"
        rule = f"{error.rule or error} ({push_location})"
        return type(error)(error.operation or name, rule, error.operands, error.remedy)
    if isinstance(error, np.linalg.LinAlgError | MemoryError):
        return type(error)(f"{name}: {_text_of(error)} ({push_location})")
    return None


def _text_of(error: BaseException) -> str:
    """Return the text of an error; that of a user's class may raise anything."""
    try:
        return str(error)
    except BaseException as raised:  # noqa: BLE001  # it is no failure of the waiter
        return f"its text raises {type(raised).__name__}"


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
