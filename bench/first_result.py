"""What the first result of a process costs: with nothing compiled, and with kernels on disk.

Run: python bench/first_result.py. Medians of so many processes each, taken in turn, from the first
operation of an expression of 10 to its value; importing and reading the operands are not counted.
Beside the time by the clock stands that of the processor, which others' work delays less. Operands
are not from `numpy.random`: what importing it leaves to be collected would be counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

import click
import numpy as np
from value_checks import Comparison

CODE = """
import sys, time
import numpy as np
import tenfold as tn
a, b = (tn.asarray(np.linspace(1.0 + i, 9.0, {elements})) for i in range(2))
begun, busy = time.perf_counter(), time.process_time()
value = (tn.sqrt(a * a + b * b) + a * 3.0 - b / 2.0 + tn.exp(a) * b).wait()
took = time.perf_counter() - begun, time.process_time() - busy
print(*(seconds * 1e3 for seconds in took), "llvmlite" in sys.modules)
if {file!r}:
    np.save({file!r}, value)
"""
ELEMENTS = (50, 1_000, 100_000)


def first(elements: int, place: str, file: str = "", *, cold: bool) -> tuple[float, float]:
    """Milliseconds to the first result of a process, by the clock and of the processor; the value
    is saved to a file where one is named.
    """
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(elements=elements, file=file)],
        env={**os.environ, "TENFOLD_CACHE": "1", "TENFOLD_CACHE_DIR": place},
        capture_output=True,
        text=True,
        check=True,
    )
    took, busy, imported = done.stdout.split()
    assert imported == str(cold), "warm processes do without the compiler, cold ones do not"
    return float(took), float(busy)


def compare(folder: str) -> None:
    """Compare the values of a cold process and of a warm one with those of NumPy."""
    comparison = Comparison()
    for elements in ELEMENTS:
        a, b = (np.linspace(1.0 + i, 9.0, elements) for i in range(2))
        expected = np.sqrt(a * a + b * b) + a * 3.0 - b / 2.0 + np.exp(a) * b
        for cold in (True, False):
            first(elements, f"{folder}/{elements}", f"{folder}/value.npy", cold=cold)
            title = f"{elements:,} elements, {'cold' if cold else 'warm'}"
            comparison.values(title, np.load(f"{folder}/value.npy"), expected)
    comparison.end()


@click.command()
@click.option("--processes", default=15, show_default=True, help="Of each kind.")
@click.option("--smoke", is_flag=True, help="Compare values, time nothing.")
def main(processes: int, smoke: bool) -> None:
    """Print the medians of cold processes and of warm ones."""
    with tempfile.TemporaryDirectory() as name:
        if smoke:
            compare(name)
            return
        for elements in ELEMENTS:
            warm = f"{name}/warm-{elements}"
            first(elements, warm, cold=True)
            times: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
            for number in range(processes):
                place = f"{name}/cold-{elements}-{number}"
                times["cold"].append(first(elements, place, cold=True))
                times["warm"].append(first(elements, warm, cold=False))
            for kind, found in times.items():
                clock, busy = (statistics.median(column) for column in zip(*found, strict=True))
                least = min(column[0] for column in found)
                print(
                    f"{elements:7,} elements, {kind}: {clock:5.1f} ms (least {least:.1f}), "
                    f"processor {busy:.1f} ms"
                )


if __name__ == "__main__":
    main()
