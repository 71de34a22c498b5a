"""Engines against the sequential interpreter: every small graph, and random programs.

A quick part by default. `make model` tries every graph of up to 5 operators and 100,000 random
programs with each number of workers: MODEL_OPERATORS, MODEL_SORTS and MODEL_PROGRAMS say how much.
MODEL_SEED is where the seeds begin. A failing program is shown as text that makes it again:

    conduct(tn.Engine(threads=2), (Put((1, 2)), Push("add", (0, 0))))
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

import tenfold as tn
from dag_programs import exhaustive, random_program, siblings, sorts
from run_program import conduct, conduct_beside_others
from tenfold import _native

OPERATORS = int(os.environ.get("MODEL_OPERATORS", "3"))
SORTS = int(os.environ.get("MODEL_SORTS", "2"))
PROGRAMS = int(os.environ.get("MODEL_PROGRAMS", "200"))
SEED = int(os.environ.get("MODEL_SEED", "0"))
DELAYS = int(os.environ.get("MODEL_DELAYS", "50"))
"""Random programs on a device, each with delays of its own."""
PER_ENGINE = 500
"""Programs after which there is another engine."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Errors that nobody looked at are logged; programs have many of them, on purpose."""
    logger = logging.getLogger("tenfold")
    before, logger.disabled = logger.disabled, True
    yield
    logger.disabled = before


workers = pytest.mark.parametrize("threads", [1, 2, 4, 8])


@workers
@pytest.mark.parametrize("batch_limit", [1, 2, 3, 4])
def test_every_small_graph_in_every_order_of_arrival(threads: int, batch_limit: int) -> None:
    programs = exhaustive(OPERATORS)
    while some := [*islice(programs, PER_ENGINE)]:
        with tn.Engine(threads=threads, batch_limit=batch_limit) as engine:
            for program in some:
                conduct(engine, program, batch_limit)


@workers
def test_every_small_graph_of_operators_of_every_sort(threads: int) -> None:
    programs = sorts(SORTS)
    while some := [*islice(programs, PER_ENGINE)]:
        with tn.Engine(threads=threads) as engine:
            for program in some:
                conduct(engine, program)


@workers
@pytest.mark.parametrize("batch_limit", [None, 1, 2])
def test_member_that_fails_harms_no_other(threads: int, batch_limit: int | None) -> None:
    with tn.Engine(threads=threads, batch_limit=batch_limit) as engine:
        for program in siblings(4):
            conduct(engine, program, batch_limit)


@workers
def test_random_programs(threads: int) -> None:
    for begin in range(SEED, SEED + PROGRAMS, PER_ENGINE):
        limit = (None, 1, 2, 5)[begin // PER_ENGINE % 4]
        with tn.Engine(threads=threads, batch_limit=limit) as engine:
            for seed in range(begin, min(begin + PER_ENGINE, SEED + PROGRAMS)):
                conduct(engine, random_program(seed), limit)


@pytest.mark.parametrize("threads", [1, 2])
def test_random_programs_on_a_device_whose_queues_run_at_random_moments(threads: int) -> None:
    with tn.options(device="emulated"), tn.Engine(threads=threads) as engine:
        for seed in range(SEED, SEED + DELAYS):
            _native.seed_emulated_queues(seed + 1)
            conduct(engine, random_program(seed))
    _native.seed_emulated_queues(0)


@workers
def test_random_programs_of_several_threads_at_once(threads: int) -> None:
    seeds = [*range(SEED, SEED + PROGRAMS)]
    with tn.Engine(threads=threads) as engine, ThreadPoolExecutor(4) as producers:
        programs = map(random_program, seeds)
        for _ in producers.map(conduct_beside_others, [engine] * len(seeds), programs):
            pass
        engine.flush()
        assert engine.stats()["live_objects"] == 0
