"""What optimising costs: planning structures that were never seen, and rewriting a long graph.

Takes nothing; hands on rows for the table: the median and the worst time, in milliseconds, to
rewrite and plan an expression of 20 operations, without compiling; how often Python
plans a structure that is evaluated many times; seconds to rewrite graphs of 10^5 nodes.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
from kernel_work.measure import Row
from kernel_work.thinking import calls

import tenfold as tn
from tenfold import _native, pipeline
from tenfold.core.graph import Graph
from tenfold.rewrite.driver import rewrite
from tenfold.rule_registry import active
from tenfold.schedule.schedule import schedule_graph

OPERATIONS, NEW, KNOWN = 20, 60, 20
"""Operations of an expression, expressions of each kind, and how many are planned before."""
EVALUATIONS = 20
NODES = 100_000
MOST_MILLISECONDS, MOST_SECONDS = 3.0, 5.0
KINDS = ("elementwise", "products", "mixed")

Pool = list[tn.Array]
Choice = Callable[[random.Random, tn.Array, Pool], tn.Array]
MAPS: tuple[Choice, ...] = (
    lambda _, x, __: tn.exp(x),
    lambda _, x, __: tn.tanh(x),
    lambda choose, x, __: x * choose.uniform(2, 3),
    lambda choose, x, pool: tn.maximum(x, choose.choice(pool)),
    lambda choose, x, pool: x * choose.choice(pool),
    lambda choose, x, pool: x - choose.choice(pool),
)
PRODUCTS: tuple[Choice, ...] = (
    lambda choose, x, pool: x @ choose.choice(pool),
    lambda choose, x, pool: choose.choice(pool) @ x,
    lambda choose, x, pool: x + choose.choice(pool),
    lambda choose, x, pool: choose.choice(pool) - x,
    lambda choose, x, __: x * choose.uniform(2, 3),
    lambda _, x, __: x.T,
)
CHOICES = {"elementwise": MAPS, "products": PRODUCTS, "mixed": MAPS + PRODUCTS}


def expression(kind: str, seed: int) -> tn.Array:
    """An expression of `OPERATIONS` operations on five square matrices; a seed, a structure."""
    choose = random.Random(seed)
    order = choose.randrange(16, 48)
    pool = [tn.asarray(np.full((order, order), 0.01 * n)).wait() for n in range(5)]
    x = choose.choice(pool)
    for _ in range(OPERATIONS):
        x = choose.choice(CHOICES[kind])(choose, x, pool)
    return x


def planned(x: tn.Array) -> float:
    """Milliseconds to rewrite and plan an expression."""
    begin = time.perf_counter()
    graph = pipeline.optimise(pipeline.graph_of([x]))[0]
    schedule_graph(graph)
    return (time.perf_counter() - begin) * 1e3


def new_structures(kind: str) -> Row:
    """The time that structures take which were never seen."""
    for seed in range(KNOWN):
        planned(expression(kind, -1 - seed))
    times = [planned(expression(kind, seed)) for seed in range(NEW)]
    median = statistics.median(times)
    return {
        "name": f"planning-{kind}",
        "group": "planning",
        "title": f"planning {OPERATIONS} new operations, {kind}, worst {max(times):.2f} ms",
        "wrong": {},
        "milliseconds": {"tenfold": median},
        "worst": max(times),
        "verdicts": [
            {
                "required": f"median <= {MOST_MILLISECONDS:g} ms",
                "found": median,
                "met": median <= MOST_MILLISECONDS,
            }
        ],
    }


def again(tier: str, most: int, why: str) -> Row:
    """Evaluating structures many times, with new values: how often Python plans one."""
    begin, found = time.perf_counter(), []
    with tn.options(tier=tier):
        for kind in KINDS:
            for seed in range(5):
                waits = (expression(kind, seed).wait for _ in range(EVALUATIONS))
                found.append(sum(calls(wait) > 0 for wait in waits))
    return {
        "name": f"planning-again-{tier}",
        "group": "planning",
        "title": f"plans in {EVALUATIONS} evaluations of one structure, tier {tier}{why}",
        "wrong": {},
        "milliseconds": {"tenfold": (time.perf_counter() - begin) * 1e3},
        "verdicts": [
            {"required": f"at most {most}", "found": max(found), "met": max(found) <= most}
        ],
    }


def matrices() -> Pool:
    """Three small matrices that are known."""
    return [tn.asarray(np.eye(4) * n).wait() for n in (1, 2, 3)]


def long_graph() -> tn.Array:
    """A graph of `NODES` nodes: products, sums, scales and maps, some of which rules take away."""
    a, b, _ = matrices()
    x, nodes = a, 0
    while nodes < NODES:
        for _ in range(20):
            x = tn.tanh(x * 1 + b) - a * 0.5
        x = (x @ a).T + 2 * (b @ x)
        nodes += 20 * 7 + 6
    return x


def wide_sum() -> tn.Array:
    """A sum of many `A @ B + C`, of few matrices."""
    pool = [*matrices(), *matrices()]
    x = pool[0]
    for at in range(NODES // 3):
        x = x + (pool[at % 6] @ pool[(at * 5 + 1) % 6] + pool[(at + 2) % 6])
    return x


def equal_products() -> tn.Array:
    """A sum of one product that is written many times."""
    a, b, _ = matrices()
    x = a @ b
    for _ in range(NODES // 2):
        x = x + a @ b
    return x


def maps_between() -> tn.Array:
    """Products of three matrices with a map between one and the next."""
    x, a, b = matrices()
    for _ in range(NODES // 3):
        x = tn.tanh(x @ a) @ b
    return x


GRAPHS = (
    ("rewriting", "products and maps", long_graph),
    ("rewriting-wide-sum", "a wide sum of A @ B + C", wide_sum),
    ("rewriting-equal-products", "a sum of equal products", equal_products),
    ("rewriting-maps-between", "products with maps between", maps_between),
)


def rewriting(name: str, title: str, written: Callable[[], tn.Array]) -> Row:
    """Seconds to rewrite a long graph."""
    with tn.options(pending_depth=0):
        graph = Graph.of([_native.node_of(written())])
    begin = time.perf_counter()
    _, report = rewrite(graph, active())
    seconds = time.perf_counter() - begin
    return {
        "name": name,
        "group": "planning",
        "title": f"rewriting {title}, {len(graph):,} nodes, {len(report.firings):,} rewrites",
        "wrong": {},
        "milliseconds": {"tenfold": seconds * 1e3},
        "verdicts": [
            {"required": f"< {MOST_SECONDS:g} s", "found": seconds, "met": seconds < MOST_SECONDS}
        ],
    }


def rows() -> Iterator[Row]:
    """All rows."""
    yield from map(new_structures, KINDS)
    yield again("auto", 3, ": again when kernels are optimised, for it or for others")
    yield again("1", 1, "")
    for graph in GRAPHS:
        yield rewriting(*graph)
