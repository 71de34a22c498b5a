"""Operand devices: the device on which the engine runs an operator, and moves to it.

It is that of the first operand that has one. An operation of tenfold takes its operands there. An
operator of a user runs on the host, and its results move back, unless it has `run_on`.

>>> import tenfold as tn
>>> x, y = tn.asarray([1.0], device="emulated:0"), tn.asarray([2.0])
>>> device_of((3, x, y)), [operand.device for operand in all_moved((x, y), "emulated:0")]
('emulated:0', ['emulated:0', 'emulated:0'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tenfold import _native, settings
from tenfold._native import Array
from tenfold.engine.engine_object import EngineObject
from tenfold.engine.operands import compute_array, operator_result
from tenfold.storage import dense

HAVE_DEVICES = (Array, EngineObject)


def device_of(operands: Sequence[Any]) -> str:
    """Return the device of the first operand that has one; else the host's."""
    return next(_devices_in(operands), dense.HOST)


def _devices_in(operands: Sequence[Any]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, HAVE_DEVICES):
            yield operand.device
        elif _is_list_of_arrays(operand):
            yield from (item.device for item in operand if isinstance(item, HAVE_DEVICES))


def _is_list_of_arrays(value: Any) -> bool:
    """Whether a value is a list or tuple that begins with what has a device, as for `tn.stack`."""
    return isinstance(value, (tuple, list)) and bool(value) and isinstance(value[0], HAVE_DEVICES)


def moved(value: Any, device: str, kinds: type | tuple[type, ...] = HAVE_DEVICES) -> Any:
    """Return a value on a device: an Array, an EngineObject by its `to_device`, or a tuple or list
    of them; other kinds have no device.
    """
    if isinstance(value, kinds):
        assert isinstance(value, HAVE_DEVICES), "no other kind moves"
        if value.device == device:
            return value
        copied = value.to_device(device)
        return compute_array(copied) if isinstance(copied, Array) else copied
    if not _is_list_of_arrays(value) or all(each == device for each in _devices_in([value])):
        return value
    items = [moved(item, device, kinds) if isinstance(item, kinds) else item for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def all_moved(operands: Sequence[Any], device: str) -> list[Any]:
    """Return each operand on a device."""
    return [moved(operand, device) for operand in operands]


def run_member(
    operator: Any,
    run: Callable[..., Any],
    inputs: Sequence[Any],
    params: Mapping[str, Any],
    *,
    updates: bool = False,
) -> Any:
    """Return what `run` of a user's operator returns for inputs on any devices; the first of them
    if it `updates` that one and returns None.
    """
    device = device_of(inputs)
    where = device if hasattr(operator, "run_on") else host_of(device)
    operands = all_moved(inputs, where)
    if _native.is_host_device(device):
        result = run(*operands, **params)
    else:
        if where == device:
            run = partial(operator.run_on, device)
        with settings.options(device=where):  # of the arrays that it makes
            result = run(*operands, **params)
    return moved_back(operands[0] if updates and result is None else result, device)


def on_host(run: Callable[..., Any], *inputs: Any) -> Any:
    """Return what a function returns for inputs that the host can read, its Arrays moved back."""
    device = device_of(inputs)
    return moved_back(run(*all_moved(inputs, host_of(device))), device)


def host_of(device: str) -> str:
    """Return a device, or the host's if host code cannot read its memory."""
    return device if _native.is_host_device(device) else dense.HOST


def moved_back(result: Any, device: str) -> Any:
    """Return the result of a function on the host as one of a device."""
    return result if host_of(device) == device else moved(operator_result(result), device, Array)
