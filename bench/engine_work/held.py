"""What a member costs under hold, by the number of members, of signatures, and of a batch.

Takes the number of rounds and whether a quick look will do; hands on a row for each form. The cost
of a member must not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import at_most, is_so, medians, milliseconds, ratio, row

FEW, MANY, SIGNATURES = 1_000, 32_000, 4_000
MOST = 1.5
"""Times the cost of a member at 1,000."""


def held(rounds: int, quick: bool) -> Iterator[Row]:
    """The rows: by the limit of a batch, and of as many signatures as members."""
    many = MANY // (8 if quick else 1)
    arrays = [*np.random.default_rng(3).random((many, 50))]
    for limit in (1, 64, None):
        title = f"{many:,} additions of 50 floats under hold, batch_limit {limit or 'none'}"
        yield growth(f"held-limit-{limit or 'none'}", title, arrays, limit, rounds)
    lengths = [np.full(length + 1, 0.5) for length in range(SIGNATURES)]
    title = f"{SIGNATURES:,} additions of as many lengths under hold"
    yield growth("held-signatures", title, lengths, None, rounds)


def growth(
    name: str, title: str, arrays: Sequence[np.ndarray], limit: int | None, rounds: int
) -> Row:
    """The cost of a member among all beside its cost among the first thousand."""
    with tn.Engine(threads=THREADS, batch_limit=limit) as engine:
        puts = [*map(engine.put, arrays)]

        def add(count: int) -> list[tn.Handle]:
            with engine.hold():
                handles = [engine.push(tn.operators.add, x, x) for x in puts[:count]]
            engine.flush()
            return handles

        sums = zip(arrays, add(len(arrays)), strict=True)
        right = all((np.asarray(total.get()) == 2 * x).all() for x, total in sums)
        turns = {"tenfold": lambda: add(len(arrays)), "few": lambda: add(FEW)}
        times = milliseconds(turns, rounds)
    median, share = medians(times), len(arrays) / FEW
    each = f"{median['tenfold'] / len(arrays) * 1e3:.2f} us each"
    return row(
        name,
        f"{title}; {each}",
        {"tenfold": median["tenfold"]},
        at_most(MOST, ratio(times, "tenfold", "few") / share, f"x the cost of a member at {FEW:,}"),
        is_so("NumPy's values", right),
    )
