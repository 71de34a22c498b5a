"""`tenfold bench`: measures this machine's limits, and where Tenfold pays on it beside NumPy.

Takes only options; prints a report on stdout, as text or with `--json` as one JSON object. All
workloads are ordinary expressions, for both libraries. The limits are those that kernels of Tenfold
reach; the report has the measured expression of each.

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
from typing import Any, NamedTuple

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
ROUND_SECONDS = 0.002
"""A round repeats an evaluation that is shorter."""
PAYING_RATIO = 1.2
"""As many times as fast as NumPy is where Tenfold pays: less is noise."""

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
    numpy: Callable[..., Any] | None = None
    """The same for NumPy's arrays, where `build` calls a function."""


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


def numpy_softmax(a: Any) -> Any:
    """Softmax of rows."""
    powers = np.exp(a - a.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def formula(a: Any, b: Any, c: Any) -> Any:
    """Three products and two sums."""
    return 2 * a + 3 * b - c * a


WORKS = (
    BenchWork(
        "(a+b)*2+a, float32", lambda a, b: (a + b) * 2 + a, vectors(2), "float32", UNCACHED // 2
    ),
    BenchWork("2a+3b-ca, float64", formula, vectors(3), "float64"),
    *(
        BenchWork(f"2a+3b-ca of {length:,} elements", formula, vectors(3), "float64", length)
        for length in (100, 100_000)
    ),
    BenchWork("a+b of 10 elements", lambda a, b: a + b, vectors(2), "float64", 10),
    BenchWork("exp(a), float32", tn.exp, vectors(1), "float32", numpy=np.exp),
    BenchWork(
        "sum((a-b)**2), float64", lambda a, b: tn.sum((a - b) ** 2), vectors(2), "float64",
        numpy=lambda a, b: np.sum((a - b) ** 2),
    ),
    BenchWork(
        "softmax of rows, float32", lambda a: tn.softmax(a, axis=-1), rows, "float32",
        numpy=numpy_softmax,
    ),
    BenchWork("a + b.T, float32", lambda a, b: a + b.T, squares, "float32"),
    BenchWork(
        "products of 8x8, float32", tn.matmul, matrix_stacks, "float32", 1 << 20,
        multiply_adds_of_products, np.matmul,
    ),
    BenchWork(
        "product of 1024x1024, float32", tn.matmul, squares, "float32", 1 << 20,
        multiply_adds_of_products, np.matmul,
    ),
    BenchWork(
        "a.T @ a @ b of 1024x1024, float64", lambda a, b: a.T @ a @ b[0], squares, "float64",
        1 << 20,
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
    """Measure the limits of this machine, works as shares of them, and where Tenfold pays.

    A limit is the best of the rounds: bytes moved, or fused multiply-adds, in a second. The share
    of a work is the time that the limit allows it by the median of its rounds. NumPy computes the
    same works, without compilation; later runs of Tenfold need none either. Limits of full size
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
    found = measure(work, rounds, factor, progress)
    amount, unit = found.bytes_moved, "bytes/s"
    if found.multiply_adds:
        amount, unit = found.multiply_adds, "multiply-adds/s"
    rate = amount / min(found.seconds)
    return {"rate": rate, "unit": unit, "meaning": MEANINGS[work.name]}


def compare(
    work: BenchWork, rates: dict[str, float], rounds: int, factor: float, progress: Progress
) -> BenchFacts:
    """Return the times of a workload by both libraries, and the share of its binding limit."""
    found = measure(work, rounds, factor, progress)
    arithmetic = f"multiply-add {work.dtype}"
    limit_seconds = {
        "copy": found.bytes_moved / rates["copy"],
        arithmetic: found.multiply_adds / rates[arithmetic],
    }
    nearest = max(limit_seconds, key=limit_seconds.__getitem__)
    median = statistics.median(found.seconds)
    arrays = [*map(np.asarray, found.inputs)]
    compute = work.numpy or work.build
    seconds = [mean_seconds(lambda: compute(*arrays), found.repeats) for _ in range(rounds)]
    return {
        "name": work.name,
        "milliseconds": median * 1e3,
        "numpy_milliseconds": statistics.median(seconds) * 1e3,
        "bytes": found.bytes_moved,
        "multiply_adds": found.multiply_adds,
        "limit": nearest,
        "share": limit_seconds[nearest] / median,
    }


class BenchRounds(NamedTuple):
    """What the rounds of a workload took and moved."""

    seconds: list[float]
    """Of one evaluation, in each round."""
    repeats: int
    """Evaluations of a round."""
    inputs: BenchInputs
    bytes_moved: int
    multiply_adds: int


def measure(work: BenchWork, rounds: int, factor: float, progress: Progress) -> BenchRounds:
    """Return the rounds of a workload, which is shrunk where it would take too long."""
    progress.stage(f"measuring {work.name}", rounds)
    itemsize = np.dtype(work.dtype).itemsize
    max_elements = available_memory() // (SHARE_OF_MEMORY * itemsize)
    elements = max(min(int(work.elements * factor), max_elements), 1)
    small_inputs = bench_inputs(work, elements // SHRINK_FACTOR)
    evaluation_seconds(work, small_inputs)  # compiles
    estimate = evaluation_seconds(work, small_inputs) * SHRINK_FACTOR
    inputs = bench_inputs(work, int(elements * min(MAX_SECONDS / estimate, 1)))
    evaluation_seconds(work, inputs)
    repeats = max(int(ROUND_SECONDS / evaluation_seconds(work, inputs)), 1)
    seconds = []
    for _ in range(rounds):
        seconds.append(evaluation_seconds(work, inputs, repeats))
        progress.advance(1)
    arrays = [*inputs, work.build(*inputs)]
    bytes_moved = sum(array.size for array in arrays) * itemsize
    return BenchRounds(seconds, repeats, inputs, bytes_moved, work.multiply_adds(inputs[0].shape))


def bench_inputs(work: BenchWork, elements: int) -> BenchInputs:
    """Return arrays of numbers from 0 to 1, so that polynomials and exponentials are finite."""
    random = np.random.default_rng(0)
    dtype = np.float32 if work.dtype == "float32" else np.float64
    shapes = work.shapes(max(elements, 1))
    return [tn.asarray(random.random(shape, dtype)) for shape in shapes]


def evaluation_seconds(work: BenchWork, inputs: Sequence[tn.Array], repeats: int = 1) -> float:
    """Return the mean seconds to build the expression and compute it."""
    return mean_seconds(lambda: work.build(*inputs).wait(), repeats)


def mean_seconds(evaluate: Callable[[], object], repeats: int) -> float:
    """Return the mean seconds of so many calls."""
    begin = time.perf_counter()
    for _ in range(repeats):
        evaluate()
    return (time.perf_counter() - begin) / repeats


def lines(report: BenchFacts) -> Iterator[str]:
    """The report as text, aligned; it reads the same in a terminal and in a file."""
    yield f"{report['machine']}, device {report['device']}, {report['rounds']} rounds"
    yield click.style("limits", bold=True)
    for name, facts in report["limits"].items():
        unit = "GB/s" if facts["unit"] == "bytes/s" else "G multiply-adds/s"
        yield f"  {name:21} {facts['rate'] * 1e-9:9.2f} {unit:18} {facts['meaning']}"
    yield click.style("works", bold=True)
    yield f"  {'':32}{'Tenfold':>12}{'NumPy':>13}{'':10}share of a limit"
    verdict: dict[bool, list[str]] = {True: [], False: []}
    for facts in report["works"]:
        ours, theirs = facts["milliseconds"], facts["numpy_milliseconds"]
        verdict[theirs >= PAYING_RATIO * ours].append(facts["name"])
        yield (
            f"  {facts['name']:32}{ours:9.3f} ms{theirs:10.3f} ms{theirs / ours:8.1f}x "
            f"{facts['share']:5.0%} of {facts['limit']}"
        )
    yield click.style(f"where Tenfold pays here, {PAYING_RATIO}x or more", bold=True)
    yield f"  it pays: {'; '.join(verdict[True]) or 'nowhere'}"
    yield f"  NumPy is as good: {'; '.join(verdict[False]) or 'nowhere'}"
    yield "  a new formula compiles at its first run, in about 50 to 500 ms; see tenfold demo"
