"""The emulated device: memory that the host cannot read, and launches that run late."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from tests.random.expression_draft import Seeded
from tests.random.random_programs import built, generate

import tenfold as tn
from tenfold import _native
from tenfold._native import Type, Value
from tenfold.storage import dense
from tenfold.testing import assert_equal_bits

pytestmark = pytest.mark.cpu  # the default device

DEVICES = ("emulated:0", "emulated:1")


@pytest.fixture(params=[0, 1, 2, 3])
def delays(request: pytest.FixtureRequest) -> Iterator[int]:
    """Late queues, and queues that run at random moments."""
    _native.seed_emulated_queues(request.param)
    yield request.param
    _native.seed_emulated_queues(0)


def values(device: str, seed: int) -> list[np.ndarray]:
    """The results of a random program on a device."""
    program = generate(Seeded(seed))
    with np.errstate(all="ignore"), tn.options(device=device):
        return [np.asarray(array) for array in built(program).values()]


def test_a_read_by_the_host_stops_the_process() -> None:
    program = (
        "import ctypes, tenfold as tn\n"
        "from tenfold import _native\n"
        "x = tn.asarray([1.0, 2.0], device='emulated')\n"
        "assert x.tolist() == [1.0, 2.0]\n"
        "ctypes.string_at(_native.node_of(x).value().address, 1)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert result.returncode == -signal.SIGSEGV, result.stderr


@pytest.mark.parametrize("device", DEVICES)
def test_new_memory_is_nan(device: str) -> None:
    value = Value.allocate(Type((5,), tn.float64, device), 40)
    assert np.isnan(dense.export(value)).all()


def test_device_without_a_number_is_the_first() -> None:
    x = tn.asarray([1], device="emulated")
    found = x.device, (x + 1).device, x.to_device("emulated:1").device
    assert found == ("emulated:0", "emulated:0", "emulated:1")
    with pytest.raises(tn.errors.DeviceError, match="emulated:2"):
        tn.asarray([1], device="emulated:2")


def test_arrays_move_between_all_devices() -> None:
    x = tn.asarray(np.arange(6.0).reshape(2, 3))
    for device in (*DEVICES, "cpu", "reference", *reversed(DEVICES)):
        x = x.to_device(device) + 1
        assert x.device == device
    assert x.tolist() == [[6, 7, 8], [9, 10, 11]]


def test_move_is_lazy_and_part_of_the_expression() -> None:
    x = tn.asarray(np.arange(6.0).reshape(2, 3))
    there = (x + 1).to_device("emulated:0") * 2
    here = there.to_device("emulated:1").to_device("cpu") - x
    assert (there.device, here.device) == ("emulated:0", "cpu")
    assert _native.node_of(there).pending
    assert here.tolist() == (np.arange(6.0).reshape(2, 3) + 2).tolist()
    assert [np.asarray(each).tolist() for each in tn.eval(x + 1, there + 1)] == [
        [[1, 2, 3], [4, 5, 6]],
        [[3, 5, 7], [9, 11, 13]],
    ]


@pytest.mark.parametrize("target", ["emulated:0", "cpu", "reference"])
def test_move_inside_a_function_and_a_vmap(target: str) -> None:
    @tn.function
    def around(x: tn.Array) -> tn.Array:
        return tn.exp(x).to_device("emulated:0").to_device(target) * 2

    def moved(x: tn.Array) -> tn.Array:
        return x.to_device(target)

    values = np.arange(4.0)
    for _ in range(2):  # the second call is planned
        results = tn.eval(*[around(tn.asarray(values + i)) for i in range(30)])
        assert {each.device for each in results} == {target}
        for i, each in enumerate(results):
            np.testing.assert_allclose(np.asarray(each), np.exp(values + i) * 2, rtol=1e-15)
    rows = tn.vmap(moved)(tn.asarray(values.reshape(2, 2)))
    assert (rows.device, rows.tolist()) == (target, [[0, 1], [2, 3]])


def test_failure_before_a_move_is_raised_behind_it() -> None:
    x = tn.asarray(np.arange(5.0))
    moved = tn.take(x, tn.asarray([0, 6]) + 1).to_device("emulated:0") + 1
    other = (x + 1).to_device("emulated:1")
    with pytest.raises(IndexError, match="7"):
        tn.eval(moved, other)[0].wait()
    assert other.tolist() == [1, 2, 3, 4, 5]


def test_loop_of_moves() -> None:
    x = tn.asarray([1.0])
    for _ in range(50):
        x = (x + 1).to_device("emulated:0").to_device("cpu")
    assert x.item() == 51


def test_operands_of_two_devices_are_refused_at_the_line() -> None:
    x, y = (tn.asarray([1.0], device=device) for device in DEVICES)
    with pytest.raises(tn.errors.DeviceError, match=r"emulated:0.*emulated:1"):
        x + y
    assert (x + 1).tolist() == [2.0]


@pytest.mark.parametrize("device", DEVICES)
def test_random_programs_have_the_bits_of_the_cpu(device: str, delays: int) -> None:
    for seed in range(10 * delays, 10 * delays + 10):
        for found, expected in zip(values(device, seed), values("cpu", seed), strict=True):
            assert_equal_bits(found, expected)


def test_second_run_and_other_lengths_have_the_bits_of_the_cpu(delays: int) -> None:
    rng = np.random.default_rng(delays)
    for n in (3, 3, 4, 100, 101, 5000):
        a = rng.standard_normal((n, 4))
        found = []
        for device in ("cpu", *DEVICES):
            x = tn.asarray(a, device=device)
            y = tn.exp(x) @ tn.asarray(np.ones((4, 3)), device=device)
            x[1:] += 1
            found.append((np.asarray(tn.sum(y, axis=0) + tn.max(x)), np.asarray(x)))
        for other in found[1:]:
            assert [a.tobytes() for a in other] == [a.tobytes() for a in found[0]]


def test_failure_of_a_queued_launch_is_raised_at_the_wait(delays: int) -> None:
    x = tn.asarray(np.arange(5.0), device="emulated")
    y = tn.take(x, tn.asarray([0, 6], device="emulated") + 1) + 1
    with pytest.raises(IndexError, match="7"):
        y.wait()
    assert (x + 1).tolist() == [1, 2, 3, 4, 5]


def test_operation_without_kernel_is_computed_on_the_host() -> None:
    x = tn.asarray([3.0, 1.0, 2.0], device="emulated")
    assert tn.sort(x).tolist() == [1, 2, 3]
    assert tn.sort(x).device == DEVICES[0]
    matrix = tn.asarray([[4.0, 2.0], [2.0, 5.0]], device="emulated")
    np.testing.assert_allclose(np.asarray(tn.linalg.inv(matrix) @ matrix), np.eye(2), atol=1e-15)


def test_no_memory_is_an_error_and_the_next_array_is_made() -> None:
    x = tn.asarray(np.float32(1), device="emulated")
    with pytest.raises(MemoryError):
        tn.asarray(tn.broadcast_to(x, (1 << 33,)) * 2).wait()
    assert (x + 1).item() == 2
