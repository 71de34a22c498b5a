"""Machine limits: the measured peak rates of this machine, stored from one process to the next.

Takes rates from `tenfold bench`, hands them on to `explain`. They are stored in a file of the
user's cache, `tenfold/limits.json`, with the machine and the threads they were measured for. A file
for another machine, or a damaged one, is ignored.

>>> isinstance(known(), dict)
True
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from tenfold.jit.kernel_cache import usual_directory
from tenfold.settings import get


def limits_file() -> Path:
    """Return the file."""
    return usual_directory() / "limits.json"


def _machine() -> list[object]:
    """What a limit holds for."""
    return [platform.node(), platform.machine(), os.cpu_count(), get("threads")]


def measured_rates() -> dict[str, float]:
    """Return the rates measured on this machine, each in units per second; empty where none are."""
    try:
        found = json.loads(limits_file().read_text(encoding="utf-8"))
        rates = {str(name): float(rate) for name, rate in found["rates"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError):
        return {}  # RuntimeError: there is no home to look in
    positive = all(0 < rate < float("inf") for rate in rates.values())
    return rates if found.get("machine") == _machine() and positive else {}


def store_rates(rates: Mapping[str, float]) -> Path:
    """Keep rates for later processes. Raises OSError where the file cannot be written."""
    path = limits_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps({"machine": _machine(), "rates": dict(rates)})
    written.write_text(text, encoding="utf-8")
    written.replace(path)  # whole or not at all
    return path
