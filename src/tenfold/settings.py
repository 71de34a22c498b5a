"""Settings: one table of options, the source of each value, and scopes (block or process).

Input: names and values, as keyword arguments or as `TENFOLD_<NAME>` in the environment. Output: the
value in force. Inside `with options(...)` a value holds for that context (thread or task) alone.

>>> with options(strict_dtypes=True):
...     get("strict_dtypes")
True
>>> get("strict_dtypes")
False
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tenfold import _native
from tenfold._native import Scope
from tenfold.caches import LruCache
from tenfold.errors import DeviceError, UnsupportedError, message
from tenfold.machine import usable_processors

Value = bool | int | str


@dataclass(frozen=True)
class Setting:
    """One setting: name, default, parser of text or values, and one line of documentation."""

    name: str
    default: Value
    parse: Callable[[object], Value]
    doc: str

    @property
    def environment(self) -> str:
        """The environment variable that sets it."""
        return f"TENFOLD_{self.name.upper()}"


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"{value!r} is neither true nor false; use 1 or 0")


def _integer(minimum: int, maximum: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        try:
            number = minimum - 1 if isinstance(value, bool) else int(str(value))
        except ValueError:
            number = minimum - 1
        if not minimum <= number <= maximum:
            raise ValueError(f"{value!r} is not a whole number from {minimum} to {maximum}")
        return number

    return parse


def _for_devices(maximum: int) -> Callable[[object], int | str]:
    """A number, or text such as "64, emulated=16": that of all devices, then those of some."""
    parse_number = _integer(0, maximum)

    def parse(value: object) -> int | str:
        if not isinstance(value, str) or "=" not in value:
            return parse_number(value)
        for item in value.split(","):
            parse_number(item.rpartition("=")[2].strip())
        return value

    return parse


def _choice(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if isinstance(value, bool) or str(value) not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    return parse


def _pending_depth(value: object) -> int:
    """0 means no limit; the core does not check depths below 65."""
    return 0 if str(value) == "0" else _integer(65, 2**32 - 2)(value)


CPU_LEVELS = {"x86-64": 1, "x86-64-v2": 2, "x86-64-v3": 3, "x86-64-v4": 4}
"""Target processors of kernels besides `native`."""


def _cpu(value: object) -> str:
    text = _choice("native", *CPU_LEVELS)(value)
    highest = _native.processor_level()
    if CPU_LEVELS.get(text, 0) > highest:
        supported = next(name for name, level in CPU_LEVELS.items() if level == highest)
        raise ValueError(
            f"{text!r} has instructions that this processor, of {supported!r}, does not"
        )
    return text


def _directory(value: object) -> str:
    """Empty text means the default directory."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise ValueError(f"{value!r} is not a directory")
    return str(value) and str(Path(value).expanduser().absolute())


def _guard(value: object) -> bool:
    """The pool reads the environment when it is loaded, before the first array."""
    flag = _flag(value)
    if flag != _native.guard_pages():
        raise ValueError(f"{value!r} comes too late; set TENFOLD_GUARD before Python starts")
    return flag


DEVICE_IDS: dict[str, int] = {}


def declare_device(name: str) -> None:
    """Register a device by name; called by the module that declares the device."""
    DEVICE_IDS[name] = _native.declare_device(name)


_late_devices: dict[str, Callable[[], tuple[str, str]]] = {}


def declare_late_devices(kind: str, find: Callable[[], tuple[str, str]]) -> None:
    """Register a kind of devices: `find` declares those that are there, when one is first named.

    It returns what is missing, and what to do about it; empty texts if nothing is.
    """
    _late_devices[kind] = find


def _device(value: object, operation: str = "options") -> str:
    late = _late_devices.get(str(value).partition(":")[0])
    missing, remedy = late() if late is not None else ("", "")
    for name in (value, f"{value}:0"):  # without a number it is the first of its kind
        if isinstance(value, str) and name in DEVICE_IDS:
            return str(name)
    devices = ", ".join(repr(name) for name in DEVICE_IDS)
    raise DeviceError(
        operation,
        f"device {value!r} does not exist{missing and ': '}{missing}",
        remedy=f"{remedy}{remedy and '; '}the devices here are: {devices}",
    )


def device_failure(operation: str, device: str) -> DeviceError | None:
    """Return the error of a device that computes no more; None if it does."""
    why = _native.device_failure(device)
    if why is None:
        return None
    remedy = "compute on it in a process of its own, started anew and not by a fork"
    return DeviceError(operation, f"device {device!r} has failed: {why}", remedy=remedy)


# Table.
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "device",
        "cpu",
        _device,
        "The device of new arrays. Captured when an array is made.",
    ),
    Setting(
        "strict_dtypes",
        False,
        _flag,
        "Refuse to mix dtypes: no promotion, only `tn.astype`. Captured when a node is made.",
    ),
    Setting(
        "numpy_fallback",
        "warn",
        _choice("raise", "convert", "warn"),
        "NumPy's functions without a lazy form, called with Arrays: raise an error, convert to "
        "ndarrays (which waits), or convert and warn, once for each function.",
    ),
    Setting(
        "strict_sync",
        False,
        _flag,
        "Raise an error at an implicit wait (bool, float, print, np.asarray); only `wait()` waits.",
    ),
    Setting(
        "pending_depth",
        100_000,
        _pending_depth,
        "Depth of a pending graph, in operations, above which it is computed (0: no limit).",
    ),
    Setting(
        "optimise",
        True,
        _flag,
        "Apply rewrite rules. If off, the expression is computed as written.",
    ),
    Setting(
        "reassociate",
        True,
        _flag,
        "Let rewrite rules reassociate and factor matrix products and solves.",
    ),
    Setting(
        "fast",
        False,
        _flag,
        "Let rewrite rules trade exactness for speed: reciprocals, x**3 by products, sums in any "
        "order.",
    ),
    Setting(
        "fuse",
        True,
        _flag,
        "Fuse operations into kernels. If off, every operation has its own kernel.",
    ),
    Setting(
        "tier",
        "auto",
        _choice("auto", "0", "1"),
        "Optimisation level of the compiler: 0 (fast to compile), 1 (optimised), or auto, which "
        "also interprets small graphs operation by operation until they come often. Same bits.",
    ),
    Setting(
        "hot_threshold",
        _native.TIERS.hot_runs,
        _integer(1, 1000),
        "Runs of a small graph after which `tier=auto` plans it; a graph that updates an array of "
        f"few elements is planned after up to {_native.TIERS.few_elements_factor} times as many.",
    ),
    Setting(
        "cpu",
        "native",
        _cpu,
        "Target processor of kernels: native, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4.",
    ),
    Setting(
        "cache",
        True,
        _flag,
        "Use the kernel cache on disk.",
    ),
    Setting(
        "cache_dir",
        "",
        _directory,
        "Directory of the disk cache; empty: `$XDG_CACHE_HOME/tenfold` or `~/.cache/tenfold`.",
    ),
    Setting(
        "cache_limit",
        256,
        _integer(1, 2**20),
        "Largest size of the disk cache, in MiB. The least recently used kernels are removed.",
    ),
    Setting(
        "check_nans",
        False,
        _flag,
        "Raise an error, with operation and line, where NaN arises from operands without NaN. "
        "Unfused.",
    ),
    Setting(
        "lines",
        False,
        _flag,
        "Remember where each operation was written, so that `explain(analyze=True)` and errors "
        "name the line. An operation takes about 0.3 us more to write.",
    ),
    Setting(
        "verify",
        False,
        _flag,
        "Check promises and results; evaluations take many times as long. Promises: "
        "`noalias=True` of `tn.assign` (AliasError), `tn.assume`. Results: each batch against "
        "its members one by one; a cached plan against a new one, bit for bit (RunError). "
        "Kernels: as `verify_kernels`.",
    ),
    Setting(
        "verify_kernels",
        False,
        _flag,
        "Verify the schedule after each pass. Prove before compiling that each kernel accesses "
        "memory in bounds and covers each loop once (VerifyError). Takes half as long as planning.",
    ),
    Setting(
        "threads",
        usable_processors(),
        _integer(1, 4096),
        "Number of threads of a kernel; the default is the number of usable processors.",
    ),
    Setting(
        "batch",
        True,
        _flag,
        "Batch equal operations of large graphs, and equal pushed operators of new engines.",
    ),
    Setting(
        "batch_limit",
        0,
        _for_devices(2**31 - 1),
        "Largest number of members of a batch, also in new engines (0: any number). Text such as "
        '`"64, emulated=16"` has a number for the devices of a name; the option `device` chooses.',
    ),
    Setting(
        "batch_wait",
        50,
        _for_devices(60_000_000),
        "Microseconds without a push or an end of a task after which a batch runs, in new "
        "engines. The argument `tn.Engine(batch_wait=...)` is in seconds. A number for each "
        "device, as for `batch_limit`.",
    ),
    Setting(
        "memory_limit",
        0,
        _integer(0, 2**62),
        "Largest size of the live values of a new engine, in bytes (0: any size).",
    ),
    Setting(
        "guard",
        False,
        _guard,
        "Put each array between unmapped pages, so that an access out of bounds stops the "
        "process; slow, for tests. From the environment only.",
    ),
    Setting(
        "debug",
        0,
        _integer(0, 5),
        "Messages on stderr: 1 shows each evaluation and its device, 2 to 5 also each of its "
        "steps.",
    ),
)
_TABLE: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


class OptionSet:
    """Equal values of all settings: their number, which no other set ever has, and their context.

    The context is made when work is first pushed under these settings (`submission_options`).
    """

    __slots__ = ("inspects", "native", "number", "submission")

    def __init__(self, number: int, *, inspects: bool = False) -> None:
        self.number, self.inspects = number, inspects
        self.submission: tuple[int, bool, Context] | None = None
        self.native: tuple[int, _native.Options] | None = None
        """The options for native code, and the number of the process options then."""


class OptionsBlock(dict[str, Value]):
    """The options of an open block, with their set for one state of the process options."""

    of_process: OptionSet | None = None
    option_set: OptionSet | None = None


_process: dict[str, tuple[Value, str]] = {}
_context: ContextVar[OptionsBlock | None] = ContextVar("tenfold_options", default=None)
_native_context: ContextVar[_native.Options] = ContextVar("tenfold_native_options")


def _parse_option(name: str, value: object) -> Value:
    if name not in _TABLE:
        raise UnsupportedError(
            "options",
            f"unknown option {name!r}",
            remedy=f"the options are: {', '.join(_TABLE)}",
        )
    try:
        return _TABLE[name].parse(value)
    except (ValueError, TypeError) as error:
        if isinstance(error, DeviceError):
            raise
        raise ValueError(f"options: {name}: {error}") from None


def get(name: str) -> Value:
    """Return the current value of a setting."""
    inner = _context.get()
    if inner is not None and name in inner:
        return inner[name]
    return _process[name][0]


def current() -> dict[str, tuple[Value, str]]:
    """Return the current value of every setting, with its source as text."""
    values = dict(_process)
    for name, value in (_context.get() or {}).items():
        values[name] = (value, "tn.options")
    return values


_option_sets: LruCache[tuple[Value, ...], OptionSet] = LruCache(
    1024, "option sets", "equal options have equal numbers, so that their plans are reused"
)
_next_number = count(1)
_process_set = OptionSet(0)


def options_fingerprint() -> int:
    """Return a number of the current settings: equal numbers mean equal settings.

    >>> with options(fuse=False):
    ...     one = options_fingerprint()
    >>> one == options_fingerprint()
    False
    """
    return _current_set().number


def inspects() -> bool:
    """Whether what is computed is verified, checked for NaN, or logged."""
    return _current_set().inspects


def _current_set() -> OptionSet:
    block = _context.get()
    if block is None:
        return _process_set
    if block.option_set is None or block.of_process is not _process_set:
        block.option_set = _set_of({name: block.get(name, _process[name][0]) for name in _TABLE})
        block.of_process = _process_set
    return block.option_set


def _set_of(values: Mapping[str, Value]) -> OptionSet:
    key = tuple(values.values())
    if (known := _option_sets.get(key)) is not None:
        return known
    inspects = any(bool(values[name]) for name in ("verify", "check_nans", "debug"))
    return _option_sets.setdefault(key, OptionSet(next(_next_number), inspects=inspects))


def _native_options() -> _native.Options:
    """Return the options in force for native code."""
    options, process_number = _current_set(), _process_set.number
    if options.native is None or options.native[0] != process_number:
        options.native = process_number, _make_native_options(options.number, process_number)
    return options.native[1]


def _make_native_options(number: int, process_number: int) -> _native.Options:
    depth, changed_options = int(get("pending_depth")), changed_compute_options()
    return _native.Options(
        strict=bool(get("strict_dtypes")),
        device=DEVICE_IDS.get(str(get("device")), 0),
        pending_depth=depth if depth else 2**32 - 1,
        origins=bool(get("lines") or get("check_nans") or get("verify")),
        number=number,
        process_number=process_number,
        interprets=not changed_options,
        target=CPU_LEVELS.get(str(get("cpu")), 0),
        threads=int(get("threads")),
        batch_limit=batch_limit(),
        rules=bool(get("optimise")),
        verify=changed_options == ["verify"],
        strict_sync=bool(get("strict_sync")),
        hot_threshold=int(get("hot_threshold")),
    )


_COMPUTE_OPTIONS = ("fast", "fuse", "tier", "check_nans", "verify", "debug")
"""Options of how graphs are computed: with one of them changed, cold graphs are compiled too."""


def changed_compute_options() -> list[str]:
    """Return the changed options that turn off the op interpreter and dynamic batching."""
    return [name for name in _COMPUTE_OPTIONS if get(name) != _TABLE[name].default]


def batch_limit() -> int:
    """Return the largest number of members of a batch: 0 for any number, 1 without batching."""
    return on_device("batch_limit") if get("batch") else 1


def on_device(name: str) -> int:
    """Return an option that may have a number for each device, for the device in force.

    >>> with options(batch_wait="10, cpu=20, emulated=30"):
    ...     on_device("batch_wait")
    20
    """
    device, number = str(get("device")), int(_TABLE[name].default)
    for item in str(get(name)).split(","):
        key, _, text = item.rpartition("=")
        if key.strip() in ("", device, device.partition(":")[0]):
            number = int(text)
    return number


def options(**values: Value) -> AbstractContextManager[None]:
    """Set options for a block, in this thread or task only.

    Raises UnsupportedError for an unknown option and ValueError for an invalid value.

    >>> import tenfold as tn
    >>> with tn.options(strict_dtypes=True):
    ...     tn.asarray([1]) + tn.asarray([1.0])
    Traceback (most recent call last):
    ...
    tenfold.errors.DTypeError: add: strict_dtypes refuses to mix int64, float64
      operand 1: shape (1,), int64, device 'cpu'
      operand 2: shape (1,), float64, device 'cpu'
      remedy: convert one with tn.astype
    """
    return _Options({name: _parse_option(name, value) for name, value in values.items()})


class _Options(Scope, ContextDecorator):
    """A block with checked options, or a function whose calls are such blocks."""

    def __init__(self, checked: dict[str, Value]) -> None:
        super().__init__()
        self.checked = checked
        self.used = False

    def __call__(self, function: Any) -> Any:
        """Return the function with these options during each call."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            rule = f"{function.__name__} goes on after its call has returned"
            self.used = True
            raise TypeError(
                message("tn.options", rule, remedy="write `with tn.options(...)` in it")
            )
        self.used = True
        return super().__call__(function)

    def __del__(self) -> None:
        """Warn of options that no block had."""
        if self.checked and not getattr(self, "used", True):
            given = ", ".join(f"{name}={value!r}" for name, value in self.checked.items())
            text = (
                f"tn.options({given}) changes nothing by itself; write `with tn.options({given}):`"
            )
            text += f", or tn.set_options({given}) for good"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def prepare(self) -> tuple[None, Sequence[tuple[Any, Any]]]:
        """Return the options of the block, those around it included."""
        self.used = True
        _native.enable_option_blocks()
        return None, _changes(self.checked)


def override(**values: Value) -> Scope:
    """Set options for an internal block, in which no user code keeps the context.

    After the block nodes are made as fast as if there had been none.
    """
    return Scope(*internal_changes(**values))


def internal_changes(**values: Value) -> Sequence[tuple[Any, Any]]:
    """Return the changes of `override`, for a Scope that changes more."""
    return _INTERNAL, *_changes(values)


_INTERNAL = (
    partial(_native.enter_internal_block, True),
    partial(_native.enter_internal_block, False),
)


def _changes(checked: dict[str, Value]) -> Sequence[tuple[Any, Any]]:
    block = OptionsBlock({**(_context.get() or {}), **checked})
    with Scope((_context, block)):
        native_options = _native_options()
    return (_context, block), (_native_context, native_options)


def submission_options() -> tuple[int, bool, Context]:
    """Return the current settings for later work on another thread.

    Returns their number, whether native code may compute batches, and a context with the settings.
    """
    options = _current_set()
    if options.submission is None:
        context = Context()
        context.run(_install_options, {name: get(name) for name in _TABLE})
        is_batchable = not get("check_nans") and not get("debug")
        options.submission = (options.number, is_batchable, context)
    return options.submission


def _install_options(values: dict[str, Value]) -> None:
    _context.set(OptionsBlock(values))
    _native_context.set(_native_options())


def set_options(**values: Value) -> None:
    """Set options for the whole process, for good.

    >>> import tenfold as tn
    >>> tn.set_options(strict_dtypes=False)
    """
    checked = {name: _parse_option(name, value) for name, value in values.items()}
    for name, value in checked.items():
        _process[name] = (value, "tn.set_options")
    _publish()


def _publish() -> None:
    global _process_set
    _process_set = _set_of({name: _process[name][0] for name in _TABLE})
    with Scope((_context, None)):
        _native.set_process_options(_native_options())


def load_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Read every setting from the environment; called once, after the devices are declared.

    An invalid value must not prevent a program from starting: the default is used, with a warning,
    and `current()` (and `tenfold doctor`) names the invalid value in the source.
    """
    for setting in SETTINGS:
        text = environment.get(setting.environment)
        source = "default" if text is None else f"environment {setting.environment}"
        value = setting.default
        try:
            value = value if text is None else _parse_option(setting.name, text)
        except ValueError as error:
            source = f"default, since {setting.environment}={text!r} does not fit"
            warnings.warn(f"{setting.environment}: {error}", RuntimeWarning, stacklevel=2)
        _process[setting.name] = (value, source)
    _publish()


_native.set_options_variable(_native_context)


def checked_device(name: str | None, operation: str = "") -> str:
    """Return the device `name`, or the current one for None. Raises DeviceError if unknown."""
    return str(get("device")) if name is None else _device(name, operation)


def debug(level: int, text: str) -> None:
    """Write a line to stderr when `TENFOLD_DEBUG` (or the option `debug`) is at least `level`."""
    if int(get("debug")) >= level:
        print(f"tenfold: {text}", file=sys.stderr)
