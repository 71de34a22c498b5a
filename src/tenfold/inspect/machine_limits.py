"""Machine limits: the measured peak rates of this machine, stored from one process to the next.

Takes rates from `tenfold bench`, hands them on to `explain`. They are stored in the user's cache,
`tenfold/limits.json`, with the machine and the number of threads. A file for another machine, or a
damaged one, is ignored.

>>> isinstance(measured_rates(), dict)
True
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tenfold.jit.kernel_cache import default_directory
from tenfold.settings import get


def limits_file() -> Path:
    """Return the path of the file."""
    return default_directory() / "limits.json"


def _machine() -> list[object]:
    """The machine and the threads for which limits are valid."""
    import platform

    return [platform.node(), platform.machine(), os.cpu_count(), get("threads")]


def measured_rates() -> dict[str, float]:
    """Return the rates measured on this machine, each in units per second; empty where none are."""
    import json  # costs milliseconds, and only `explain` and `tenfold bench` need it

    try:
        stored = json.loads(limits_file().read_text(encoding="utf-8"))
        rates = {str(name): float(rate) for name, rate in stored["rates"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError):
        return {}  # RuntimeError: no home directory
    positive = all(0 < rate < float("inf") for rate in rates.values())
    return rates if stored.get("machine") == _machine() and positive else {}


def store_rates(rates: Mapping[str, float]) -> Path:
    """Store rates for later processes. Raises OSError where the file cannot be written."""
    import json

    path = limits_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps({"machine": _machine(), "rates": dict(rates)})
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)  # atomic
    return path
