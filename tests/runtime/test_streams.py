"""Streams: queues of a device, which overlap, and wait for each other where they share memory.

They run on the emulated device, or on that of TENFOLD_DEVICE if it has queues.
"""

from __future__ import annotations

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


def test_a_block_is_of_its_thread_and_may_be_nested() -> None:
    first, second = Stream(DEVICE), Stream(DEVICE)
    seen: list[int] = []

    def look() -> None:
        seen.append(_native.use_queue(DEVICE, 0))

    with first:
        with second, first:
            pass
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        inside = _native.use_queue(DEVICE, first._number)
    assert (seen, inside, _native.use_queue(DEVICE, 0)) == ([0], first._number, 0)


def test_stream_of_no_device_is_refused() -> None:
    with pytest.raises(tn.errors.DeviceError, match="stream: device 'nowhere' does not exist"):
        tn.stream("nowhere")
