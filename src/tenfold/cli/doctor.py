"""`tenfold doctor`: reports the installation, its machine, and the origin of each setting.

Prints a report on stdout, as text or with `--json` as one JSON object. Its keys are `machine`,
`limits`, `versions`, `settings`, `cache`, `memory` and `problems`.

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
from tenfold.jit import kernel_cache
from tenfold.jit.disk_cache import UnusableDirectory
from tenfold.machine import affinity, available_memory, group_processors, processor

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
"""Processor features that decide the vector width, narrowest first."""
MIB, GIB = 2**20, 2**30
DOCTOR_SECTIONS = {
    "machine": "no limit",
    "limits": "no; tenfold bench measures them",
    "versions": "not installed",
    "settings": "none",
    "cache": "none",
    "memory": "none",
}
"""The tables of the report, with the text of a missing value in each."""

Checks = dict[str, object]


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


def examine() -> dict[str, Checks | list[str]]:
    """Return all facts of the report."""
    versions = installed_versions()
    return {
        "machine": machine_facts(),
        "limits": measured_limits(),
        "versions": versions,
        "settings": setting_values(),
        "cache": disk_cache_facts(),
        "memory": memory_facts(),
        "problems": problems(versions),
    }


def machine_facts() -> Checks:
    """Return the processor, usable processors, and memory in bytes."""
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


def measured_limits() -> Checks:
    """Return the rates that `tenfold bench` has measured: bytes or multiply-adds per second."""
    return dict(machine_limits.measured_rates()) or {"measured": None}


def installed_versions() -> Checks:
    """Return the versions of Python and of each dependency; None for a missing one."""
    versions: Checks = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    for name in ("tenfold", *REQUIRED):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def setting_values() -> Checks:
    """Return the value and the source of each setting, in the order of their table."""
    current = settings.current()
    return {
        setting.name: {"value": current[setting.name][0], "source": current[setting.name][1]}
        for setting in settings.SETTINGS
    }


def disk_cache_facts() -> Checks:
    """Return the disk cache's directory, its kernels, their size in bytes, and its limit."""
    store = kernel_cache.configured_cache()
    if store is None:
        return {"directory": None}
    facts: Checks = {"directory": str(store.path)}
    try:
        files = store.files()
    except (UnusableDirectory, OSError):
        return facts  # listed under problems
    contents: Checks = {"kernels": len(files), "memory_taken": sum(file.size for file in files)}
    return facts | contents | {"memory_limit": store.limit}


def memory_facts() -> Checks:
    """Return the pool's bytes, the bytes of loaded kernels, and the facts of each cache."""
    pool_bytes, pool_limit = _native.pool_bytes()
    facts: Checks = {"memory_for_reuse": pool_bytes, "memory_for_reuse_limit": pool_limit}
    facts["memory_of_kernels"] = _native.loaded_code_bytes()
    for cache in caches.facts():
        facts[cache.name] = {
            "entries": cache.entries,
            "capacity": cache.capacity,
            "bytes": cache.bytes,
            "reason": cache.reason,
        }
    return facts


def cache_problems() -> list[str]:
    """Return the reason why the disk cache is unusable, as a list of at most one line."""
    try:
        if store := kernel_cache.configured_cache():
            store.files()
    except (UnusableDirectory, OSError) as error:
        return [error_text(error)]
    return []


def problems(versions: Mapping[str, object]) -> list[str]:
    """Return the problems that a user should fix, one line each."""
    messages = [
        f"{name} is not installed; install it with: pip install {name}"
        for name, installed_version in versions.items()
        if installed_version is None
    ]
    messages += [line for setting in settings.SETTINGS if (line := setting_problem(setting))]
    messages += cache_problems()
    known_variables = {setting.environment for setting in settings.SETTINGS}
    messages += [
        f"{name} is set in the environment but is not a setting of tenfold"
        for name in sorted(os.environ)
        if name.startswith("TENFOLD_") and name not in known_variables
    ]
    if sys.flags.optimize:
        messages.append("Python runs with -O: tenfold's own checks (assert) are off")
    return messages


def setting_problem(setting: settings.Setting) -> str:
    """Return the problem of a setting's value in the environment; "" without one."""
    text = os.environ.get(setting.environment)
    try:
        if text is not None:
            setting.parse(text)
    except ValueError as error:
        return f"{setting.environment}={text!r} does not fit: {str(error).splitlines()[0]}"
    return ""


def lines(facts: Mapping[str, Checks | list[str]]) -> list[str]:
    """The report as text, aligned; it reads the same in a terminal and in a file."""
    report: list[str] = []
    for title, nothing in DOCTOR_SECTIONS.items():
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
        size = f", {value['bytes'] / MIB:.1f} MiB" if value["bytes"] else ""
        return f"{value['entries']:,} of {value['capacity']:,}{size}: {value['reason']}"
    if isinstance(value, dict):
        return f"{value['value']!s:20} {value['source']}"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none known"
    if value is None:
        return nothing
    return str(value)
