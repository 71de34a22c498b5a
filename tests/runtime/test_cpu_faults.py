"""Bad input and faults on the cpu device: no memory, Ctrl-C, forks, odd memory, foreign modes."""

from __future__ import annotations

import ctypes
import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numpy as np
import pytest
from tests.ops.grid import shared

import tenfold as tn
from tenfold import _native, caches, pipeline
from tenfold.testing import assert_equal_bits


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    with tn.options(device="cpu"):
        yield


def several_steps(x: tn.Array) -> tn.Array:
    """A plan with kernels, calls, temporaries, views and split rows."""
    sorted_ = tn.sort(x * 2, axis=1)
    product = tn.matmul(tn.exp(sorted_) + 1, x.T)
    return tn.softmax(product, axis=1)[:, ::2] + tn.sum(sorted_) * tn.max(product)


@pytest.mark.parametrize("fuse", [True, False])
def test_no_memory_for_any_allocation_is_an_error_and_leaves_nothing_behind(
    fuse: bool,
) -> None:
    x = tn.asarray(np.random.default_rng(0).random((70, 80)))
    with tn.options(fuse=fuse):
        wanted = np.asarray(several_steps(x))
        gc.collect()
        before = _native.live_bytes()
        failures = 0
        for n in range(1, 100):
            y = several_steps(x)
            _native.fail_allocation(n)
            try:
                # what comes after a failed replay
                failure = pipeline._compute_each([_native.node_of(y)], None)
            finally:
                _native.fail_allocation(0)
            if failure is None:
                break
            assert isinstance(failure, MemoryError)
            failures += 1
            assert_equal_bits(y, wanted)
            del y, failure
            gc.collect()
            assert _native.live_bytes() == before
    assert failures >= 3


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_garbage_collector")
@pytest.mark.parametrize(
    ("fails", "error"),
    [
        (lambda large: tn.linalg.inv(large[:200, None] * tn.zeros(200)), tn.errors.LinAlgError),
        (lambda large: tn.ones(1 << 44) + tn.sum(large), MemoryError),
    ],
    ids=["singular", "too large"],
)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_handled_error_holds_no_array(
    fails: Callable[[tn.Array], tn.Array], error: type[Exception], device: str
) -> None:
    with tn.options(device=device):
        live_bytes = []
        for _ in range(3):
            large = tn.asarray(np.ones(100_000)) * 2
            y = fails(large)
            with pytest.raises(error):
                y.wait()
            with pytest.raises(error):
                np.asarray(y)
            del large, y
            live_bytes.append(_native.live_bytes())
    assert live_bytes[1:] == [live_bytes[0]] * 2


def test_no_memory_in_a_replay_is_made_good_by_computing_anew() -> None:
    x = tn.asarray(np.random.default_rng(0).random((70, 80)))
    with tn.options(tier=1):
        wanted = np.asarray(several_steps(x))
        gc.collect()
        before = _native.live_bytes()
        for n in range(1, 10):
            y = several_steps(x)
            _native.fail_allocation(n)
            try:
                assert_equal_bits(y, wanted)
            finally:
                _native.fail_allocation(0)
            del y
            gc.collect()
            assert _native.live_bytes() == before


def test_no_memory_for_an_import_is_an_error() -> None:
    _native.fail_allocation(1)
    try:
        with pytest.raises(MemoryError):
            tn.asarray(np.ones(1 << 20))  # a small one is tried twice
    finally:
        _native.fail_allocation(0)
    assert tn.sum(tn.asarray(np.ones(1 << 20))).item() == 1 << 20


def run(code: str, timeout: int = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False
    )


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import tenfold as tn
from tenfold import _native, pipeline
tn.set_options(device="cpu", threads={threads})
x = tn.asarray(np.full(1 << 20, 0.5))
total = {total}
def launches():
    return _native.read_counters()["launches"]
before = launches()
def interrupt():
    while launches() == before:
        time.sleep(1e-3)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    total.wait()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
print(tn.sum(x).item(), (x[:3] * 2).tolist())
"""


LONG = {
    "kernel": "tn.sum(tn.cos(tn.broadcast_to(x[:, None], (1 << 20, 4096)) * tn.arange(4096.0)))",
    "product": "tn.reshape(tn.concat([x] * 25), (5120, 5120)) @ tn.ones((5120, 5120))",
}


@pytest.mark.parametrize(("what", "threads"), [("kernel", 1), ("product", 2)])
def test_ctrl_c_ends_a_long_launch_and_the_next_computation_is_right(
    what: str, threads: int
) -> None:
    done = run(INTERRUPTED.format(total=LONG[what], threads=threads))
    assert done.stderr == ""
    assert done.stdout == "interrupted\n524288.0 [1.0, 1.0, 1.0]\n"


INTERRUPTED_IN_PLACE = """
import os, signal, threading, time
import numpy as np
import tenfold as tn
from tenfold import _native
tn.set_options(device="cpu", threads=1)
x, y = tn.ones((2000, 2000)), tn.asarray(np.zeros((2000, 2000))) + 1
tn.eval(x, y)
def launches():
    return _native.read_counters()["launches"]
before = launches()
def interrupt():
    while launches() == before:
        time.sleep(1e-3)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    y += 2.0 * (x @ x)
    y.wait()
    threading.Event().wait(60)  # it may have ended before the signal came
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
print(np.unique(np.asarray(y)))
"""


def test_ctrl_c_leaves_no_half_of_a_product_in_its_target() -> None:
    done = run(INTERRUPTED_IN_PLACE)
    assert done.stderr == ""
    assert done.stdout == "interrupted\n[4001.]\n"


FORKED = """
import os, signal, threading, warnings
import numpy as np
import tenfold as tn
warnings.simplefilter("ignore", DeprecationWarning)
tn.set_options(device="cpu", threads=2)
stop = threading.Event()
def compile_much():
    n = 1
    while not stop.is_set():
        x = tn.asarray(np.ones(n % 7 + 1))
        for i in range(n % 50):
            x = x * 2 + x if n >> (i % 10) & 1 else x / 2 - 1
        x.wait()
        n += 1
def launch_much():
    x = tn.asarray(np.ones(1 << 18))
    while not stop.is_set():
        tn.sum(tn.exp(x) * x).wait()
threads = [threading.Thread(target=work) for work in (compile_much, launch_much)]
for thread in threads:
    thread.start()
pending = tn.sum(tn.asarray(np.ones(1 << 17)) * 3)
failed = 0
for i in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        x = tn.asarray(np.arange(float(i + 2)))
        y = x
        for _ in range(i):
            y = tn.sqrt(y * y)
        right = y.tolist() == x.tolist() and pending.item() == 3.0 * (1 << 17)
        os._exit(0 if right else 1)
    failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
stop.set()
for thread in threads:
    thread.join()
print(failed)
"""


def test_the_child_of_a_fork_amid_compiling_and_launching_threads_computes() -> None:
    done = run(FORKED, timeout=200)
    assert (done.stdout, done.stderr) == ("0\n", "")


def misaligned(values: np.ndarray) -> np.ndarray:
    """The same values one byte away from where their dtype wants to lie."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    found = memory[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


ODD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "misaligned": misaligned,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "backwards": lambda x: x[::-1],
    "overlapping": lambda x: np.lib.stride_tricks.as_strided(x, (100, 64), (x.itemsize,) * 2),
    "repeated": lambda x: np.broadcast_to(x[:7, None], (7, 90)),
    "one field of a record": lambda x: np.rec.fromarrays([x, x + 1]).f1,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
@pytest.mark.parametrize("name", ODD)
def test_odd_memory_is_read_right(name: str, dtype: str) -> None:
    values = ODD[name](np.arange(200).astype(dtype))
    assert_equal_bits(shared(values) * 3 + 1, (values * 3 + 1).astype(dtype))
    turned = np.moveaxis(values, 0, -1)
    assert_equal_bits(shared(turned) + shared(turned), (turned + turned).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_those_of_numpy_at_every_place_of_a_packet(dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(np.tile(special, 5), special))
    a, b = tn.asarray(x), tn.asarray(y)
    with np.errstate(all="ignore"):
        for ours, theirs in (
            (a + b, x + y),
            (a - b, x - y),
            (a * b, x * y),
            (a / b, x / y),
            (tn.sqrt(a), np.sqrt(x)),
            (a < b, x < y),
            (a == b, x == y),
        ):
            assert_equal_bits(ours, theirs)


MODES = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @set(i32 %mode) {
  %place = alloca i32
  store i32 %mode, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""
USUAL, FLUSHING = 0x1F80, 0x1F80 | 0x8040  # flush to zero, denormals are zero
TOWARDS_ZERO = 0x1F80 | 0x6000


@pytest.fixture(scope="module")
def set_modes() -> Callable[[int], None]:
    """Sets the floating-point modes of the calling thread, as a foreign library may."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(MODES), machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(engine.get_function_address("set"))
    function.engine = engine
    return function


@pytest.mark.parametrize("mode", [FLUSHING, TOWARDS_ZERO])
@pytest.mark.parametrize("size", [40, 1 << 17])
def test_foreign_float_modes_change_no_result(
    set_modes: Callable[[int], None], mode: int, size: int
) -> None:
    tiny = np.float64(4.9e-324)
    values = np.linspace(-3, 3, size) + tiny
    subnormal = np.arange(size) * tiny

    def results() -> list[tn.Array]:
        a, b = tn.asarray(values), tn.asarray(subnormal)
        return [b * 3 + b, a / 3, tn.exp(a) - a, tn.sum(b), tn.sum(a * 0.1), tn.sort(b / 2)]

    wanted = [np.asarray(y).tobytes() for y in results()]
    pending = results()
    set_modes(mode)
    try:
        for y in pending:
            y.wait()
    finally:
        set_modes(USUAL)
    assert [np.asarray(y).tobytes() for y in pending] == wanted


def test_eight_threads_compute_at_once_what_nobody_has_compiled(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    caches.clear_all()
    x = np.random.default_rng(0).random((50, 60))
    shared_part = tn.exp(tn.asarray(x)) * 2
    start = threading.Barrier(8)

    def work(number: int) -> list[bytes]:
        start.wait()
        found = []
        for turn in range(6):
            a = tn.asarray(x) * (number % 2 + turn)
            y = tn.sum(a + shared_part, axis=turn % 2) * tn.max(a)
            found.append(np.asarray(y).tobytes())
        return found

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(8)))
    assert all(found[i] == found[i % 2] for i in range(8))
    assert_equal_bits(shared_part, np.asarray(tn.exp(tn.asarray(x)) * 2))


def test_a_signal_handler_may_compute_where_a_kernel_is_being_compiled(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    x = tn.asarray(np.arange(1000.0))
    seen: list[float] = []

    def handle(*_: object) -> None:
        y = x
        for _ in range(len(seen)):
            y = y / 2
        seen.append((tn.sum(y) * 2.0 ** len(seen)).item())

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for turn in range(12):
            signal.setitimer(signal.ITIMER_REAL, 1e-3 * (1 + turn % 5))
            y = x
            for _ in range(turn):
                y = y * 2
            assert tn.sum(y).item() == 499500.0 * 2**turn
            while len(seen) <= turn:
                time.sleep(1e-4)  # CPython 3.11 may not see a signal without giving up the GIL
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(seen) == {499500.0}
