"""`tenfold doctor`: reports the installation, its machine, and the origin of each setting.

Takes nothing. Hands on a report on stdout, as text or with `--json` as one JSON object. Its keys
are `machine`, `limits`, `versions`, `settings`, `cache`, `memory` and `problems`.

    tenfold doctor --json
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import click

from tenfold import _native, caches, settings
from tenfold.inspect import machine_limits
from tenfold.io.input_errors import error_text
from tenfold.io.machine import affinity, available_memory, group_processors, processor
from tenfold.jit import kernel_cache
from tenfold.jit.disk_cache import UnusableDirectory

REQUIRED = ("numpy", "llvmlite", "ml_dtypes", "scipy", "threadpoolctl", "click", "rich")
"""Distributions that tenfold needs at run time."""
FEATURES = (
    "sse4_2",
    "avx",
    "fma",
    "f16c",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "asimd",
    "sve",
)
"""Processor features that decide how wide a packet can be, narrowest first."""
MIB, GIB = 2**20, 2**30
SECTIONS = {
    "machine": "no limit",
    "limits": "no; tenfold bench measures them",
    "versions": "not installed",
    "settings": "none",
    "cache": "none",
    "memory": "none",
}
"""The tables of the report, and what a value that is not there means in each."""

Facts = dict[str, object]


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor_command(as_json: bool) -> None:
    """Report the machine, its limits, the versions and the settings.

    Of each setting it says where its value came from. The limits are those that `tenfold bench`
    has measured.
    """
    facts = examine()
    if as_json:
        click.echo(json.dumps(facts, indent=2, default=str))
    else:
        click.echo("\n".join(lines(facts)))


def examine() -> dict[str, Facts | list[str]]:
    """Everything the report says."""
    versions = installed_versions()
    return {
        "machine": machine(),
        "limits": measured_limits(),
        "versions": versions,
        "settings": setting_values(),
        "cache": disk_cache_facts(),
        "memory": memory_facts(),
        "problems": problems(versions),
    }


def machine() -> Facts:
    """Processor, processors that may be used, and memory in bytes."""
    name, flags = processor()
    return {
        "system": platform.platform(),
        "architecture": platform.machine(),
        "processor": name or platform.processor() or "unknown",
        "features": [feature for feature in FEATURES if feature in flags],
        "processors": os.cpu_count(),
        "affinity": affinity(),
        "cgroup_processors": group_processors(),
        "memory_available": available_memory(),
    }


def measured_limits() -> Facts:
    """What `tenfold bench` has measured on this machine: bytes or multiply-adds per second."""
    return dict(machine_limits.measured_rates()) or {"measured": None}


def installed_versions() -> Facts:
    """Versions of Python and of each distribution needed; None where one is missing."""
    found: Facts = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    for name in ("tenfold", *REQUIRED):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def setting_values() -> Facts:
    """Each setting's value and where it came from, in the order of their table."""
    current = settings.current()
    return {
        setting.name: {"value": current[setting.name][0], "source": current[setting.name][1]}
        for setting in settings.SETTINGS
    }


def disk_cache_facts() -> Facts:
    """The cache of compiled kernels: its directory, how many there are, their bytes, the most."""
    store = kernel_cache.store()
    if store is None:
        return {"directory": None}
    facts: Facts = {"directory": str(store.place)}
    try:
        files = store.files()
    except (UnusableDirectory, OSError):
        return facts  # a problem, told below
    found: Facts = {"kernels": len(files), "memory_taken": sum(file.size for file in files)}
    return facts | found | {"memory_limit": store.limit}


def memory_facts() -> Facts:
    """What this process keeps: bytes for reuse, and of compiled kernels; of each cache the entries
    and how many it has at most.
    """
    kept_bytes, limit = _native.pool_bytes()
    found: Facts = {"memory_for_reuse": kept_bytes, "memory_for_reuse_limit": limit}
    found["memory_of_kernels"] = _native.loaded_code_bytes()
    for cache in caches.facts():
        found[cache.name] = {"entries": cache.entries, "capacity": cache.capacity}
    return found


def cache_problems() -> list[str]:
    """Why the cache cannot be used, in no line or one."""
    try:
        if store := kernel_cache.store():
            store.files()
    except (UnusableDirectory, OSError) as error:
        return [error_text(error)]
    return []


def problems(versions: Mapping[str, object]) -> list[str]:
    """What a user should put right, one line each."""
    found = [
        f"{name} is not installed; install it with: pip install {name}"
        for name, installed_version in versions.items()
        if installed_version is None
    ]
    found += [line for setting in settings.SETTINGS if (line := setting_problem(setting))]
    found += cache_problems()
    known = {setting.environment for setting in settings.SETTINGS}
    found += [
        f"{name} is set in the environment but is not a setting of tenfold"
        for name in sorted(os.environ)
        if name.startswith("TENFOLD_") and name not in known
    ]
    if sys.flags.optimize:
        found.append("Python runs with -O: tenfold's own checks (assert) are off")
    return found


def setting_problem(setting: settings.Setting) -> str:
    """What is wrong with the value that the environment gives a setting; nothing: no words."""
    text = os.environ.get(setting.environment)
    try:
        if text is not None:
            setting.parse(text)
    except ValueError as error:
        return f"{setting.environment}={text!r} does not fit: {str(error).splitlines()[0]}"
    return ""


def lines(facts: Mapping[str, Facts | list[str]]) -> list[str]:
    """The report as text, aligned; it reads the same in a terminal and in a file."""
    report: list[str] = []
    for title, nothing in SECTIONS.items():
        section = facts[title]
        assert isinstance(section, dict)
        width = max(map(len, section), default=0)
        report.append(click.style(title, bold=True))
        for name, value in section.items():
            report.append(f"  {name:{width}}  {value_text(name, value, nothing)}")
    report.append(click.style("problems", bold=True))
    report += [f"  {line}" for line in facts["problems"]] or ["  none"]
    return report


def value_text(name: str, value: object, nothing: str) -> str:
    """One fact as text: memory in MiB or GiB, a rate, a setting with its source, a list, none."""
    if name.startswith("memory_") and isinstance(value, int):
        return f"{value / GIB:.1f} GiB" if value >= GIB else f"{value / MIB:.1f} MiB"
    if isinstance(value, float):
        unit = "G multiply-adds/s" if name.startswith("multiply-add") else "GB/s"
        return f"{value * 1e-9:.2f} {unit}"
    if isinstance(value, dict) and "capacity" in value:
        return f"{value['entries']:,} of {value['capacity']:,}"
    if isinstance(value, dict):
        return f"{value['value']!s:20} {value['source']}"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none known"
    if value is None:
        return nothing
    return str(value)
