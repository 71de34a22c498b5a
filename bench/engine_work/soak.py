"""Mixed work on one engine for a long time: no hang, no error, and memory that stays flat.

Run: make soak, or in bench/ python -m engine_work.soak --minutes 20. Three threads do pieces of
`mixed.py` in random order, every value checked. Prints the resident memory twice a minute; exits
with 1 when a value is wrong, when a thread makes no progress for two minutes (and says where all
threads stand), or when the memory of the last fifth of the time is above that of the second fifth
by more than is allowed.
"""

from __future__ import annotations

import faulthandler
import gc
import random
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Sequence

import click
from plan_work.pending import kilobytes

import tenfold as tn
from engine_work.mixed import WORKS

PRODUCERS = 3
STUCK = 150.0
"""Seconds without progress that count as a hang."""
FLAT = 4 << 10
"""Kilobytes by which memory may rise, or a fiftieth of it."""
SAMPLES_PER_MINUTE = 12


class Producer(threading.Thread):
    """Does pieces of work until it is told to stop; `done` is how many."""

    def __init__(self, engine: tn.Engine, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"producer {seed}", daemon=True)
        self.engine, self.source, self.stop = engine, random.Random(seed), stop
        self.done, self.failure = 0, ""
        self.counts = dict.fromkeys((work.__name__ for work in WORKS), 0)

    def run(self) -> None:
        while not self.stop.is_set():
            work = self.source.choice(WORKS)
            try:
                work(self.engine, self.source)
            except BaseException:  # noqa: BLE001  # told by who watches
                self.failure = f"{work.__name__}:\n{traceback.format_exc()}"
                return
            self.done += 1
            self.counts[work.__name__] += 1


def watched(producers: Sequence[Producer], seconds: float) -> list[tuple[float, int]]:
    """Return the resident memory in kilobytes at times in seconds; exit where one is stuck."""
    begin = time.monotonic()
    samples: list[tuple[float, int]] = []
    last = {producer: (begin, producer.done) for producer in producers}
    while (now := time.monotonic()) - begin < seconds:
        time.sleep(60 / SAMPLES_PER_MINUTE)
        for producer in producers:
            if producer.failure:
                sys.exit(f"a value is wrong, or an error came: {producer.failure}")
            if producer.done != last[producer][1]:
                last[producer] = now, producer.done
            elif now - last[producer][0] > STUCK:
                faulthandler.dump_traceback()
                sys.exit(f"{producer.name} hangs after {producer.done} pieces of work")
        samples.append((now - begin, kilobytes("VmRSS")))
        if len(samples) % (SAMPLES_PER_MINUTE // 2) == 0:
            total = sum(producer.done for producer in producers)
            print(
                f"{now - begin:6.0f} s  {total:9,} pieces  {samples[-1][1] >> 10} MiB", flush=True
            )
    return samples


def risen(samples: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return how many kilobytes memory rose from the second fifth to the last, and may rise."""
    fifth = len(samples) // 5
    early = statistics.median(size for _, size in samples[fifth : 2 * fifth])
    late = statistics.median(size for _, size in samples[-fifth:])
    return late - early, max(FLAT, early / 50)


@click.command()
@click.option("--minutes", default=20.0, show_default=True, type=click.FloatRange(0.5))
@click.option("--seed", default=0, show_default=True)
def main(minutes: float, seed: int) -> None:
    """Run mixed work and say whether it hung, failed or took more and more memory."""
    stop = threading.Event()
    with tn.Engine(threads=2, memory_limit="256MiB") as engine:
        producers = [Producer(engine, seed + number, stop) for number in range(PRODUCERS)]
        for producer in producers:
            producer.start()
        samples = watched(producers, minutes * 60)
        stop.set()
        for producer in producers:
            producer.join(STUCK)
            if producer.is_alive() or producer.failure:
                faulthandler.dump_traceback()
                sys.exit(f"{producer.name} does not end: {producer.failure}")
        gc.collect()
        engine.flush()
        left = engine.stats()["live_objects"]
    for name in producers[0].counts:
        print(f"{name:20} {sum(producer.counts[name] for producer in producers):9,}")
    more, allowed = risen(samples)
    slope = statistics.linear_regression(*zip(*samples[len(samples) // 5 :], strict=True)).slope
    print(f"memory rose by {more:.0f} kB, {allowed:.0f} are allowed; {slope * 60:.1f} kB a minute")
    if left:
        sys.exit(f"{left} objects are alive though nobody has a handle")
    if more > allowed:
        sys.exit("memory is not flat")


if __name__ == "__main__":
    main()
