"""Rows in a process of their own: nothing is known there, and its memory is its own.

Takes the name of a module of this folder and its arguments; hands on what that prints last, a line
of JSON. The process has the threads of this one, an empty cache directory unless one is given, and
this one's paths.

    found = run("first", "numbers", cache=folder)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PATIENCE = 3600.0
"""Seconds."""


def run(module: str, *arguments: object, cache: str | None = None) -> dict[str, Any]:
    """What the module says."""
    with tempfile.TemporaryDirectory() as empty:
        # by file: the package's folder is found from it, wherever this is called
        file = Path(__file__).with_name(f"{module}.py")
        command = [sys.executable, "-m", f"plan_work.{file.stem}", *map(str, arguments)]
        environment = {**os.environ, "TENFOLD_CACHE_DIR": cache or empty}
        paths = [str(file.parent.parent), *filter(None, sys.path)]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def warm_cache(folder: str) -> bool:
    """Let the kernels of single operations be compiled into a cache; False if there is no such
    command.
    """
    if find_spec("tenfold.cli.cache") is None:
        return False
    command = [sys.executable, "-m", "tenfold", "cache", "warm"]
    environment = {**os.environ, "TENFOLD_CACHE_DIR": folder}
    subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE, check=True)
    return True
