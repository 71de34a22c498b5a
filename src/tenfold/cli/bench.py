"""`tenfold bench`: measures this machine's limits, and how near to them a handful of workloads
come.

Takes only options; hands on a report on stdout, as text or with `--json` as one JSON object.
Everything is an expression, built and evaluated as a user would. The limits are those that kernels
of Tenfold reach, so the report says beside each how it was measured.

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
from tenfold.cli.progress import Progress
from tenfold.inspect import machine_limits
from tenfold.io.input_errors import error_text
from tenfold.io.machine import available_memory, processor

ELEMENTS = 1 << 25
"""Elements of a float32 array that no cache holds: 128 MiB."""
SHARE_OF_MEMORY = 24
"""A work takes at most this part of the memory that is available, several arrays together."""
POLYNOMIALS, DEGREE = 16, 8
"""Enough that two units of multiply-adds never wait for the last result of one of them."""
MAX_SECONDS = 2.0
"""Seconds that one evaluation may take; a work that would take longer is shrunk."""
SHRINK_FACTOR = 64
"""How much smaller the work is by which its time is estimated."""

Build = Callable[..., tn.Array]
Inputs = list[tn.Array]
Shapes = Callable[[int], list[tuple[int, ...]]]
Facts = dict[str, Any]


@dataclass(frozen=True)
class BenchWork:
    """An expression, what it must move and multiply for each element, and of how many."""

    name: str
    build: Build
    shapes: Shapes
    """Of the inputs, from a number of elements."""
    dtype: str
    elements: int = ELEMENTS // 4

    multiply_adds: Callable[[tuple[int, ...]], int] = lambda _: 0
    """From the shape of the first input."""


def vectors(count: int) -> Shapes:
    """So many vectors."""
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
    """Several polynomials in `x`, by Horner's rule: each waits for its own last step alone. In the
    end they are added, by pairs.
    """
    values = [x] * POLYNOMIALS
    for _ in range(DEGREE):
        values = [tn.fma(value, x, 0.5 + i) for i, value in enumerate(values)]
    while len(values) > 1:
        values = [one + other for one, other in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def multiply_adds_of_polynomials(shape: tuple[int, ...]) -> int:
    """Multiply-adds of `polynomials`, from the shape of `x`."""
    return POLYNOMIALS * DEGREE * shape[0]


def multiply_adds_of_products(shape: tuple[int, ...]) -> int:
    """Multiply-adds of the products of two stacks of square matrices, from the shape of one."""
    return int(np.prod(shape)) * shape[-1]


LIMITS = (
    BenchWork("copy", lambda a: -a, vectors(1), "float32", ELEMENTS),
    BenchWork("triad", lambda a, b: a + 3 * b, vectors(2), "float32", ELEMENTS),
    *(
        BenchWork(
            f"multiply-add {dtype}",
            polynomials,
            vectors(1),
            dtype,
            ELEMENTS // 8,
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
        "(a+b)*2+a, float32", lambda a, b: (a + b) * 2 + a, vectors(2), "float32", ELEMENTS // 2
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
        found = {work.name: limit(work, rounds, size_factor, progress) for work in LIMITS}
        rates = {name: float(facts["rate"]) for name, facts in found.items()}
        works = [compare(work, rates, rounds, size_factor, progress) for work in WORKS]
    if size_factor == 1:
        save_limits(rates)
    report = {
        "machine": processor()[0] or platform.processor() or "unknown",
        "device": settings.get("device"),
        "rounds": rounds,
        "limits": found,
        "works": works,
    }
    click.echo(json.dumps(report, indent=2) if as_json else "\n".join(lines(report)))


def save_limits(rates: dict[str, float]) -> None:
    """Keep the limits for later processes; the report does not need that they can be kept."""
    try:
        machine_limits.store_rates(rates)
    except OSError as error:
        click.echo(f"tenfold: the limits are not kept: {error_text(error)}", err=True)


def limit(work: BenchWork, rounds: int, factor: float, progress: Progress) -> Facts:
    """The best rate of a work that is nothing but traffic or nothing but multiply-adds."""
    seconds, moved, multiplied = measure(work, rounds, factor, progress)
    amount, unit = (multiplied, "multiply-adds/s") if multiplied else (moved, "bytes/s")
    return {"rate": amount / min(seconds), "unit": unit, "meaning": MEANINGS[work.name]}


def compare(
    work: BenchWork, rates: dict[str, float], rounds: int, factor: float, progress: Progress
) -> Facts:
    """The time of a work, and the share of it that its nearest limit accounts for."""
    seconds, moved, multiplied = measure(work, rounds, factor, progress)
    arithmetic = f"multiply-add {work.dtype}"
    needed = {"copy": moved / rates["copy"], arithmetic: multiplied / rates[arithmetic]}
    nearest = max(needed, key=needed.__getitem__)
    median = statistics.median(seconds)
    return {
        "name": work.name,
        "milliseconds": median * 1e3,
        "bytes": moved,
        "multiply_adds": multiplied,
        "limit": nearest,
        "share": needed[nearest] / median,
    }


def measure(
    work: BenchWork, rounds: int, factor: float, progress: Progress
) -> tuple[list[float], int, int]:
    """Seconds of each round, bytes moved and multiply-adds, each a round's."""
    progress.stage(f"measuring {work.name}", rounds)
    itemsize = np.dtype(work.dtype).itemsize
    most = available_memory() // (SHARE_OF_MEMORY * itemsize)
    elements = max(min(int(work.elements * factor), most), SHRINK_FACTOR)
    small = inputs_of(work, elements // SHRINK_FACTOR)
    evaluate(work, small)  # compiles
    estimate = evaluate(work, small) * SHRINK_FACTOR
    inputs = inputs_of(work, int(elements * min(MAX_SECONDS / estimate, 1)))
    evaluate(work, inputs)
    seconds = []
    for _ in range(rounds):
        seconds.append(evaluate(work, inputs))
        progress.advance(1)
    arrays = [*inputs, work.build(*inputs)]
    moved = sum(array.size for array in arrays) * itemsize
    return seconds, moved, work.multiply_adds(inputs[0].shape)


def inputs_of(work: BenchWork, elements: int) -> Inputs:
    """Arrays of numbers between 0 and 1, of which polynomials and exponentials stay finite."""
    random = np.random.default_rng(0)
    dtype = np.float32 if work.dtype == "float32" else np.float64
    shapes = work.shapes(max(elements, 1))
    return [tn.asarray(random.random(shape, dtype)) for shape in shapes]


def evaluate(work: BenchWork, inputs: Sequence[tn.Array]) -> float:
    """Seconds to build the expression and compute it."""
    begin = time.perf_counter()
    work.build(*inputs).wait()
    return time.perf_counter() - begin


def lines(report: Facts) -> Iterator[str]:
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
