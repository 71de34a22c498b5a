"""Streams: queues of a device, which overlap, and wait for each other where they share memory.

They run on the emulated device, or on that of TENFOLD_DEVICE if it has queues.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.random.expression_draft import Seeded
from tests.random.random_programs import built, generate

import tenfold as tn
from tenfold import _native
from tenfold.runtime.stream import Stream
from tenfold.settings import checked_device
from tenfold.testing import assert_equal_bits

DEFAULT = checked_device(None)
DEVICE = "emulated:0" if _native.is_host_device(DEFAULT) else DEFAULT


@pytest.fixture(params=[0, 1, 2])
def delays(request: pytest.FixtureRequest) -> Iterator[int]:
    """Late queues, and queues that run at random moments."""
    _native.seed_emulated_queues(request.param)
    yield request.param
    _native.seed_emulated_queues(0)


def test_random_programs_on_random_queues_have_the_bits_of_the_cpu(delays: int) -> None:
    queues = [tn.stream(DEVICE) for _ in range(4)]
    rng = np.random.default_rng(delays)
    for seed in range(20 * delays, 20 * delays + 20):
        program = generate(Seeded(seed))
        with np.errstate(all="ignore"):
            with tn.options(device=DEVICE):
                arrays = list(built(program).values())
                for number in rng.permutation(len(arrays)):
                    with queues[rng.integers(4)]:
                        tn.eval(arrays[number])
            with tn.options(device="cpu"):
                expected = [np.asarray(array) for array in built(program).values()]
        for array, values in zip(arrays, expected, strict=True):
            assert_equal_bits(np.asarray(array), values)


def test_updates_in_place_on_other_queues_come_after_their_readers(delays: int) -> None:
    x = tn.asarray(np.arange(64.0), device=DEVICE)
    sums = []
    for step in range(24):
        with tn.stream(DEVICE):
            sums.append(tn.eval(tn.sum(x * 2)))
        with tn.stream(DEVICE):
            x[step::7] += 1
            tn.eval(x)
    expected, found = np.arange(64.0), []
    for step in range(24):
        found.append(2 * expected.sum())
        expected[step::7] += 1
    assert [each.item() for each in sums] == found, delays
    assert x.tolist() == expected.tolist()


def queue() -> int:
    """The queue of what this thread or task computes now."""
    return _native.current_queue(DEVICE)


def test_a_block_is_of_its_thread_and_may_be_nested() -> None:
    first, second = Stream(DEVICE), Stream(DEVICE)
    seen: list[int] = []
    with first:
        with second, first, first:
            seen.append(queue())
        thread = threading.Thread(target=lambda: seen.append(queue()))
        thread.start()
        thread.join()
        seen.append(queue())
    assert (seen, queue()) == ([first._number, 0, first._number], 0)


def test_a_block_is_of_its_task() -> None:
    shared = Stream(DEVICE)
    x = tn.asarray(np.arange(8.0), device=DEVICE)

    async def task(number: int) -> tuple[bool, list[float]]:
        own = shared if number % 3 == 0 else Stream(DEVICE)
        right, y = True, x
        with own:
            for _ in range(3):
                await asyncio.sleep(0)
                right &= queue() == own._number
                y = tn.eval(y * 2 + number)
        return right and queue() == 0, y.tolist()

    async def tasks() -> list[tuple[bool, list[float]]]:
        return await asyncio.gather(*map(task, range(9)))

    for number, (right, values) in enumerate(asyncio.run(tasks())):
        assert right
        assert values == [8 * i + 7 * number for i in range(8)]


def test_block_of_a_generator_ends_before_those_inside_it() -> None:
    first, second = Stream(DEVICE), Stream(DEVICE)

    def numbers() -> Iterator[int]:
        with first:
            yield queue()

    generator = numbers()
    seen = [next(generator)]
    with second:
        seen.append(queue())
        generator.close()
        seen.append(queue())
    assert (seen, queue()) == ([first._number, second._number, second._number], 0)


def test_block_that_another_thread_has_entered_is_refused() -> None:
    entered = Stream(DEVICE)
    thread = threading.Thread(target=entered.__enter__)
    thread.start()
    thread.join()
    with pytest.raises(tn.errors.RunError, match="was not entered in this thread") as caught:
        entered.__exit__(None, None, None)
    assert "remedy: leave a block where it was entered" in str(caught.value)


def test_stream_of_no_device_is_refused() -> None:
    with pytest.raises(tn.errors.DeviceError, match="stream: device 'nowhere' does not exist"):
        tn.stream("nowhere")
