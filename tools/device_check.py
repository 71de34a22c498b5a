"""Checks a device in one run of at most eight minutes, and writes what it finds as JSON.

Takes the name of a device; hands on `build/device-check.json` and exit status 1 if a step fails:
the build, a selection of tests, compute-sanitizer where it is installed, figures (bandwidth of a
copy, a map, sums of rows and columns; a product; the latency of a launch), a Tree-LSTM against
PyTorch where that is installed.

Example: `python tools/device_check.py --device emulated`, a rehearsal with small arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 480
TESTS = {
    "cuda": (
        "tests/tiny",
        "tests/runtime/test_streams.py",
        "tests/features",
        "tests/codegen/test_thread_kernels.py",
    ),
    "emulated": ("tests/tiny/test_main_facts.py", "--numprocesses=0"),
}
"""By kind of device; the first must not take more than three minutes."""
SANITIZED = "import tenfold as tn; x = tn.ones((999, 77)) + 1; print(tn.sum(x @ x.T).item())"


def run(arguments: list[str], device: str, limit: float) -> dict[str, Any]:
    """Run a program on a device; return whether it succeeded, and the end of what it printed."""
    environment = {**os.environ, "TENFOLD_DEVICE": device}
    try:
        result = subprocess.run(
            arguments,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "output": f"not done after {limit:.0f} s"}
    printed = (result.stdout + result.stderr)[-3000:]
    return {"ok": result.returncode == 0, "output": printed}


def best_seconds(compute: Callable[[], object], tries: int = 7) -> float:
    """Return the shortest time of a computation, which ends with all that is queued."""
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        compute()
        times.append(time.perf_counter() - start)
    return min(times)


def figures(device: str) -> dict[str, float]:
    """Measure a device: bytes and multiply-adds per second, and seconds of a launch."""
    import numpy as np

    import tenfold as tn

    is_small = not device.startswith("cuda")
    rows, order = (64, 96) if is_small else (1 << 14, 4096)
    host = np.random.default_rng(0).standard_normal((rows, 4096), dtype=np.float32)
    with tn.options(device=device):
        x = tn.asarray(host)
        square = tn.eval(tn.ones((order, order), dtype=tn.float32) + 1)
        few = tn.eval(tn.ones(32) + 1)

        def finished(array: tn.Array, repeats: int = 1) -> None:
            """Compute it so often, then wait for the last element to reach the host."""
            for _ in range(repeats - 1):
                tn.eval(array + 0)
            tn.eval(array).reshape(-1)[-1:].tolist()

        idle = best_seconds(lambda: finished(few + 1))
        seconds = {
            "copy to the device": best_seconds(lambda: finished(tn.asarray(host))),
            "copy to the host": best_seconds(lambda: np.asarray(x + 0)),
            "map": best_seconds(lambda: finished(x * 2 + 1)),
            "row sums": best_seconds(lambda: finished(tn.sum(x, axis=1))),
            "column sums": best_seconds(lambda: finished(tn.sum(x, axis=0))),
        }
        moved = {"map": 2 * host.nbytes, "copy to the host": 3 * host.nbytes}
        found = {
            f"{name}, bytes/s": moved.get(name, host.nbytes) / max(taken - idle, 1e-9)
            for name, taken in seconds.items()
        }
        product = best_seconds(lambda: finished(square @ square))
        found["product of float32, multiply-adds/s"] = order**3 / max(product - idle, 1e-9)
        found["launch and wait, s"] = idle
        chain = best_seconds(lambda: finished(few, 200))
        found["launch, s"] = (chain - idle) / 200
    return found


def tree_lstm(device: str) -> dict[str, Any]:
    """Compare a cell of a Tree-LSTM, forwards, with PyTorch's eager one on the same device."""
    import numpy as np

    import tenfold as tn

    torch: Any = import_module("torch")
    nodes, width = (64, 32) if not device.startswith("cuda") else (4096, 512)
    rng = np.random.default_rng(0)
    shapes = ((nodes, 2 * width), (nodes, 2 * width), (2 * width, 5 * width))
    values = [rng.standard_normal(shape, dtype=np.float32) / width**0.5 for shape in shapes]

    def cell(library: Any, h: Any, c: Any, weights: Any) -> Any:
        gates = h @ weights
        i, left, right, o, u = (gates[:, k * width : (k + 1) * width] for k in range(5))
        sigmoid, tanh = library.sigmoid, library.tanh
        kept = sigmoid(left) * c[:, :width] + sigmoid(right) * c[:, width:]
        return sigmoid(o) * tanh(sigmoid(i) * tanh(u) + kept)

    where = device.replace("emulated", "cpu").partition(":")[0]
    theirs = [torch.tensor(each, device=where) for each in values]
    with tn.options(device=device):
        ours = [tn.eval(tn.asarray(each) + 0) for each in values]
        result = np.asarray(cell(tn, *ours))
        expected = cell(torch, *theirs).cpu().numpy()
        error = float(np.abs(result - expected).max())
        own = best_seconds(lambda: np.asarray(cell(tn, *ours)))
    other = best_seconds(lambda: cell(torch, *theirs).cpu().numpy())
    return {"ok": error < 1e-4, "largest difference": error, "s": own, "PyTorch, s": other}


def steps(device: str, deadline: float) -> dict[str, dict[str, Any]]:
    """Run all steps, each in what is left of the time; return what they found."""
    kind, found = device.partition(":")[0], dict[str, dict[str, Any]]()
    program = [sys.executable, str(Path(__file__)), "--device", device, "--only"]
    commands = {
        "build": [sys.executable, "-c", "import tenfold"],
        "figures": [*program, "figures"],
        "tree_lstm": [*program, "tree_lstm"],
        "sanitizer": ["compute-sanitizer", "--error-exitcode=1", sys.executable, "-c", SANITIZED],
        "tests": [sys.executable, "-m", "pytest", "-q", "--maxfail=20", *TESTS[kind]],
    }
    if kind != "cuda" or not shutil.which("compute-sanitizer"):
        del commands["sanitizer"]
    for name, command in commands.items():
        start = time.monotonic()
        found[name] = run(command, device, max(deadline - start, 1))
        if name == "build" and not found[name]["ok"]:
            install = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "-e", "."]
            found[name] = run([*install, "--no-deps"], "cpu", max(deadline - start, 1))
        last = found[name]["output"].strip().rpartition("\n")[2]
        if last.startswith("{"):
            found[name] = {"ok": found[name]["ok"], **json.loads(last)}
        found[name]["seconds"] = round(time.monotonic() - start, 2)
        print(name, json.dumps(found[name])[:400], flush=True)
    return found


def main() -> int:
    """Run the check; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "build/device-check.json")
    parser.add_argument("--only", choices=["figures", "tree_lstm"])
    arguments = parser.parse_args()
    if arguments.only == "figures":
        print(json.dumps(figures(arguments.device)))
        return 0
    if arguments.only == "tree_lstm":
        try:
            print(json.dumps(tree_lstm(arguments.device)))
        except ImportError:
            print(json.dumps({"missing": "PyTorch"}))
        return 0
    found = steps(arguments.device, time.monotonic() + SECONDS)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"device": arguments.device, "steps": found}, indent=2))
    return 0 if all(step["ok"] for step in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
