"""`tenfold bench`: measures this machine's limits, and workloads as shares of them.

Takes only options; prints a report on stdout, as text or with `--json` as one JSON object. All
workloads are ordinary expressions. The limits are those that kernels of Tenfold reach; the report
has the measured expression of each.

    tenfold bench
    tenfold bench --json
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import tenfold as tn
from tenfold import settings
from tenfold.inspect import machine_limits
from tenfold.inspect.progress import Progress
from tenfold.io.input_errors import error_text
from tenfold.machine import available_memory, processor

UNCACHED = 1 << 25
"""Elements of a float32 array larger than any cache: 128 MiB."""
SHARE_OF_MEMORY = 24
"""A workload uses at most 1 / SHARE_OF_MEMORY of the available memory for each array."""
POLYNOMIALS, DEGREE = 16, 8
"""Enough independent chains to hide the latency of two multiply-add units."""
MAX_SECONDS = 2.0
"""Limit of seconds of one evaluation; a longer workload is shrunk."""
SHRINK_FACTOR = 64
"""Ratio of a workload to the smaller one by which its time is estimated."""

Build = Callable[..., tn.Array]
BenchInputs = list[tn.Array]
Shapes = Callable[[int], list[tuple[int, ...]]]
BenchFacts = dict[str, Any]


@dataclass(frozen=True)
class BenchWork:
    """An expression with its input shapes and its multiply-adds."""

    name: str
    build: Build
    shapes: Shapes
    """Of the inputs, from a number of elements."""
    dtype: str
    elements: int = UNCACHED // 4

    multiply_adds: Callable[[tuple[int, ...]], int] = lambda _: 0
    """From the shape of the first input."""


def vectors(count: int) -> Shapes:
    """Return the shapes of `count` vectors."""
    return lambda elements: [(elements,)] * count


def rows(elements: int) -> list[tuple[int, ...]]:
    """A matrix of rows of 1,024 elements."""
    return [(max(elements // 1024, 1), 1024)]


def squares(elements: int) -> list[tuple[int, ...]]:
    """Two square matrices."""
    return [(max(int(elements**0.5), 1),) * 2] * 2


def matrix_stacks(elements: int) -> list[tuple[int, ...]]:
    """Two stacks of small matrices."""
    return [(max(elements // 64, 1), 8, 8)] * 2


def polynomials(x: tn.Array) -> tn.Array:
    """Several polynomials in `x` by Horner's rule, as independent chains, added pairwise."""
    values = [x] * POLYNOMIALS
    for _ in range(DEGREE):
        values = [tn.fma(value, x, 0.5 + i) for i, value in enumerate(values)]
    while len(values) > 1:
        values = [left + right for left, right in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def multiply_adds_of_polynomials(shape: tuple[int, ...]) -> int:
    """Multiply-adds of `polynomials`, from the shape of `x`."""
    return POLYNOMIALS * DEGREE * shape[0]


def multiply_adds_of_products(shape: tuple[int, ...]) -> int:
    """Multiply-adds of the products of two stacks of square matrices, from the shape of one."""
    return int(np.prod(shape)) * shape[-1]


MACHINE_LIMITS = (
    BenchWork("copy", lambda a: -a, vectors(1), "float32", UNCACHED),
    BenchWork("triad", lambda a, b: a + 3 * b, vectors(2), "float32", UNCACHED),
    *(
        BenchWork(
            f"multiply-add {dtype}",
            polynomials,
            vectors(1),
            dtype,
            UNCACHED // 8,
            multiply_adds_of_polynomials,
        )
        for dtype in ("float32", "float64")
    ),
)
MEANINGS = {
    "copy": "-a, one pass: 4 bytes read and 4 written for each element",
    "triad": "a + 3*b, one pass: 8 bytes read and 4 written for each element",
    "multiply-add float32": f"{POLYNOMIALS} polynomials of degree {DEGREE} at each element",
    "multiply-add float64": f"{POLYNOMIALS} polynomials of degree {DEGREE} at each element",
}
WORKS = (
    BenchWork(
        "(a+b)*2+a, float32", lambda a, b: (a + b) * 2 + a, vectors(2), "float32", UNCACHED // 2
    ),
    BenchWork("2a+3b-ca, float64", lambda a, b, c: 2 * a + 3 * b - c * a, vectors(3), "float64"),
    BenchWork("exp(a), float32", tn.exp, vectors(1), "float32"),
    BenchWork("sum((a-b)**2), float64", lambda a, b: tn.sum((a - b) ** 2), vectors(2), "float64"),
    BenchWork("softmax of rows, float32", lambda a: tn.softmax(a, axis=-1), rows, "float32"),
    BenchWork("a + b.T, float32", lambda a, b: a + b.T, squares, "float32"),
    BenchWork(
        "products of 8x8, float32", tn.matmul, matrix_stacks, "float32", 1 << 20,
        multiply_adds_of_products,
    ),
    BenchWork(
        "product of 1024x1024, float32", tn.matmul, squares, "float32", 1 << 20,
        multiply_adds_of_products,
    ),
)  # fmt: skip


@click.command("bench")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1))
@click.option(
    "--size-factor",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="Make every array smaller; what a cache holds is faster than memory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench_command(rounds: int, size_factor: float, as_json: bool) -> None:
    """Measure the limits of this machine, and works as shares of them.

    A limit is the best of the rounds: bytes moved, or fused multiply-adds, in a second. The share
    of a work is the time that the limit allows it by the median of its rounds. Limits of full size
    are kept in the user's cache, and explain(analyze=True) shows shares of them.
    """
    with Progress() as progress:
        limits = {work.name: limit(work, rounds, size_factor, progress) for work in MACHINE_LIMITS}
        rates = {name: float(facts["rate"]) for name, facts in limits.items()}
        works = [compare(work, rates, rounds, size_factor, progress) for work in WORKS]
    if size_factor == 1:
        save_limits(rates)
    report = {
        "machine": processor()[0] or platform.processor() or "unknown",
        "device": settings.get("device"),
        "rounds": rounds,
        "limits": limits,
        "works": works,
    }
    click.echo(json.dumps(report, indent=2) if as_json else "\n".join(lines(report)))


def save_limits(rates: dict[str, float]) -> None:
    """Store the limits for later processes; a failure only prints a line."""
    try:
        machine_limits.store_rates(rates)
    except OSError as error:
        click.echo(f"tenfold: the limits are not kept: {error_text(error)}", err=True)


def limit(work: BenchWork, rounds: int, factor: float, progress: Progress) -> BenchFacts:
    """Return the best rate of a workload of only memory traffic or only multiply-adds."""
    seconds, bytes_moved, multiply_adds = measure(work, rounds, factor, progress)
    amount, unit = (multiply_adds, "multiply-adds/s") if multiply_adds else (bytes_moved, "bytes/s")
    return {"rate": amount / min(seconds), "unit": unit, "meaning": MEANINGS[work.name]}


def compare(
    work: BenchWork, rates: dict[str, float], rounds: int, factor: float, progress: Progress
) -> BenchFacts:
    """Return the time of a workload, and the share of its binding limit in it."""
    seconds, bytes_moved, multiplied = measure(work, rounds, factor, progress)
    arithmetic = f"multiply-add {work.dtype}"
    limit_seconds = {
        "copy": bytes_moved / rates["copy"],
        arithmetic: multiplied / rates[arithmetic],
    }
    nearest = max(limit_seconds, key=limit_seconds.__getitem__)
    median = statistics.median(seconds)
    return {
        "name": work.name,
        "milliseconds": median * 1e3,
        "bytes": bytes_moved,
        "multiply_adds": multiplied,
        "limit": nearest,
        "share": limit_seconds[nearest] / median,
    }


def measure(
    work: BenchWork, rounds: int, factor: float, progress: Progress
) -> tuple[list[float], int, int]:
    """Return the seconds of each round, and the bytes moved and multiply-adds of one round."""
    progress.stage(f"measuring {work.name}", rounds)
    itemsize = np.dtype(work.dtype).itemsize
    max_elements = available_memory() // (SHARE_OF_MEMORY * itemsize)
    elements = max(min(int(work.elements * factor), max_elements), SHRINK_FACTOR)
    small_inputs = bench_inputs(work, elements // SHRINK_FACTOR)
    evaluation_seconds(work, small_inputs)  # compiles
    estimate = evaluation_seconds(work, small_inputs) * SHRINK_FACTOR
    inputs = bench_inputs(work, int(elements * min(MAX_SECONDS / estimate, 1)))
    evaluation_seconds(work, inputs)
    seconds = []
    for _ in range(rounds):
        seconds.append(evaluation_seconds(work, inputs))
        progress.advance(1)
    arrays = [*inputs, work.build(*inputs)]
    bytes_moved = sum(array.size for array in arrays) * itemsize
    return seconds, bytes_moved, work.multiply_adds(inputs[0].shape)


def bench_inputs(work: BenchWork, elements: int) -> BenchInputs:
    """Return arrays of numbers from 0 to 1, so that polynomials and exponentials are finite."""
    random = np.random.default_rng(0)
    dtype = np.float32 if work.dtype == "float32" else np.float64
    shapes = work.shapes(max(elements, 1))
    return [tn.asarray(random.random(shape, dtype)) for shape in shapes]


def evaluation_seconds(work: BenchWork, inputs: Sequence[tn.Array]) -> float:
    """Return the seconds to build the expression and compute it."""
    begin = time.perf_counter()
    work.build(*inputs).wait()
    return time.perf_counter() - begin


def lines(report: BenchFacts) -> Iterator[str]:
    """The report as text, aligned; it reads the same in a terminal and in a file."""
    yield f"{report['machine']}, device {report['device']}, {report['rounds']} rounds"
    yield click.style("limits", bold=True)
    for name, facts in report["limits"].items():
        unit = "GB/s" if facts["unit"] == "bytes/s" else "G multiply-adds/s"
        yield f"  {name:21} {facts['rate'] * 1e-9:9.2f} {unit:18} {facts['meaning']}"
    yield click.style("works", bold=True)
    for facts in report["works"]:
        yield (
            f"  {facts['name']:30} {facts['milliseconds']:9.3f} ms "
            f"{facts['share']:5.0%} of {facts['limit']}"
        )
