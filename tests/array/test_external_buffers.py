"""Windows: `tn.wrap`, and assignments that go into the caller's memory."""

from __future__ import annotations

import array
import gc
import mmap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold.errors import AliasError, DeviceError, DTypeError, RunError, ShapeError

from .assignment_programs import MANNERS, Machine, bits
from .copying_interpreter import Name

pytestmark = pytest.mark.usefixtures("no_history")

CHUNK = 50
PROGRAMS = max(200, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""


class WindowMachine(Machine):
    """A program whose buffers are windows, some of them on parts of one memory."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__(seed, device)
        self.memories: list[tuple[np.ndarray, Name]] = []

    def leaf(self) -> None:
        if self.chance(5):
            super().leaf()
            return
        rank = self.random.choice((1, 1, 2, 2, 3))
        shape = tuple(self.random.randrange(1, 7) for _ in range(rank))
        dtype = np.dtype(self.random.choice(("float64", "int64", "float32", "uint8", "complex128")))
        memory = (np.arange(int(np.prod(shape))).reshape(shape) % 97).astype(dtype)
        truth = Name.of(memory)
        self.memories.append((memory, truth))
        for _ in range(self.random.choice((1, 2, 2, 3))):
            move, text = self.regular(shape)
            while not move(memory).size:
                move, text = self.regular(shape)
            # To views of it a window is an array like any other, however its memory lies.
            name = Name(truth.value, np.array(move(truth.numbers), order="C"))
            self.add(tn.wrap(move(memory)), name, f"wrap {shape} {dtype}{text}")

    def regular(self, shape: tuple[int, ...]) -> tuple[Callable[[Any], Any], str]:
        """A movement that NumPy makes by strides."""
        if self.chance(2):
            return (lambda x: x), ""
        basic = self.basic_key(shape)
        key = basic if ... in basic else (*basic, ...)
        if self.chance(3):
            return (lambda x: x[key].T), f"[{key}].T"
        return (lambda x: x[key]), f"[{key}]"

    def run(self) -> None:
        super().run()
        for memory, truth in self.memories:
            if bits(memory) != bits(truth.read()):
                self.fail("the memory", memory, truth.read())


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs_over_windows_equal_the_interpreter(first: int, part: Part) -> None:
    for seed in part(range(first, first + CHUNK)):
        manner = MANNERS[seed % len(MANNERS)]
        try:
            with tn.options(**manner), np.errstate(all="ignore"):
                WindowMachine(seed, str(manner["device"])).run()
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)


def numbered(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


# What is written.


def test_compound_operator_shows_in_the_source() -> None:
    source = np.arange(12)
    x = tn.wrap(source[::2])
    x += 1
    x.wait()
    assert source.tolist() == [1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11]
    assert tn.asarray(x) is x


WRITES: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.__setitem__((1, 2), 50),
    "slice": lambda x: x.__setitem__((slice(None), slice(None, None, -2)), [[7, 8]]),
    "row of itself": lambda x: x.__setitem__(0, x[1]),
    "shifted": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "mask": lambda x: x.__setitem__(x > 4, -1),
    "array": lambda x: x.__setitem__(np.array([2, 0]), x[1]),
    "transpose": lambda x: x.T.__setitem__(1, 9),
    "view of a view": lambda x: x[1:][:, ::-1][::1, 1:].__setitem__(..., 3),
    "compound view": lambda x: x[1:].__iadd__(x[:-1]),
}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", WRITES)
def test_every_manner_of_assignment_goes_into_the_memory(name: str, device: str) -> None:
    source, theirs = numbered(3, 4), numbered(3, 4)
    WRITES[name](theirs)
    with tn.options(device=device):
        x = tn.wrap(source)
        WRITES[name](x)
    assert source.tolist() == theirs.tolist() == x.tolist()


@pytest.mark.parametrize("step", [2, 3])
def test_elements_are_read_before_they_are_written_over(step: int) -> None:
    source = np.arange(9)
    x = tn.wrap(source)
    x[0 : 3 * step : step] = x[0:3]
    assert source[0 : 3 * step : step].tolist() == [0, 1, 2]
    x[3:0:-1] = x[:3]
    assert source[3:0:-1].tolist() == [0, 1, {2: 1, 3: 2}[step]]


def test_windows_take_saver_and_joined_targets() -> None:
    source, other = np.zeros(3), np.zeros(2)
    x, y = tn.wrap(source), tn.wrap(other)
    tn.assign(x, [1, 2, 3], "-=")
    tn.assign(tn.concat([x[1:], y]), tn.arange(4.0))
    assert (source.tolist(), other.tolist()) == ([-1.0, 0.0, 1.0], [2.0, 3.0])


def test_joined_windows_stay_when_the_right_side_fails() -> None:
    source, other = numbered(2, 2), numbered(2, 2)
    x, y = tn.wrap(source), tn.wrap(other)
    bad = tn.concat([tn.ones((2, 2)), tn.linalg.inv(tn.zeros((2, 2)))])
    with pytest.raises(tn.errors.LinAlgError):
        tn.assign(tn.concat([x, y]), bad)
    assert source.tolist() == other.tolist() == numbered(2, 2).tolist()


def test_failure_is_raised_at_the_assignment_and_the_memory_stays() -> None:
    source = np.zeros((2, 2))
    x = tn.wrap(source)
    with pytest.raises(tn.errors.LinAlgError):
        x[...] = tn.linalg.inv(x)
    with pytest.raises(DTypeError):
        x += 1j
    with pytest.raises(ShapeError):
        x[0] = tn.ones(3)
    with pytest.raises(IndexError):
        x[5] = 1
    assert source.tolist() == [[0.0, 0.0], [0.0, 0.0]]


BUFFERS: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(4),
    "array": lambda: array.array("d", [0, 0, 0]),
    "memoryview": lambda: memoryview(bytearray(6))[::2],
    "negative strides": lambda: np.zeros((2, 3), np.int16)[::-1, ::-1],
    "no axes": lambda: np.zeros(()),
    "no elements": lambda: np.zeros((0, 3)),
    "anonymous map": lambda: mmap.mmap(-1, 16),
    "bfloat16": lambda: np.zeros(3, tn.bfloat16),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers_that_can_be_written_to_are_wrapped(name: str) -> None:
    source = BUFFERS[name]()
    x = tn.wrap(source)
    x[...] = 3
    x += 1
    seen = np.asarray(memoryview(source)) if name != "bfloat16" else source.astype(float)
    assert (seen == 4).all()
    assert seen.shape == x.shape


def test_memory_map_of_a_file_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(32))
    source = np.memmap(path, np.int64, "r+")
    tn.wrap(source)[1:3] = [7, 8]
    source.flush()
    assert np.fromfile(path, np.int64).tolist() == [0, 7, 8, 0]


def test_dlpack_of_the_cpu_is_wrapped() -> None:
    class Producer:
        def __init__(self, values: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
            self.values, self.device = values, device

        def __dlpack__(self, **options: Any) -> Any:
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.device

    source = np.zeros(3)
    x = tn.wrap(Producer(source))
    x += 2
    assert source.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(DeviceError, match=r"wrap: memory of DLPack device \(2, 0\)"):
        tn.wrap(Producer(source, (2, 0)))
    source.flags.writeable = False
    with pytest.raises(ValueError, match="wrap: the buffer is read-only"):
        tn.wrap(Producer(source))


# What is refused.


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "read-only ndarray": (lambda: np.broadcast_to(np.zeros(3), (2, 3)), ValueError, "read-only"),
    "bytes": (lambda: b"abc", ValueError, "read-only"),
    "export": (lambda: np.asarray(tn.zeros(3)), ValueError, "read-only"),
    "number of NumPy's": (lambda: np.float64(3), ValueError, "read-only"),
    "byte-swapped": (lambda: np.zeros(2, ">f8"), ValueError, "byte-swapped elements"),
    "misaligned": (lambda: np.zeros(17, "u1")[1:].view("f8"), ValueError, "misaligned elements"),
    "objects": (lambda: np.zeros(2, object), DTypeError, "holds Python objects"),
    "long double": (lambda: np.zeros(2, "c16").astype(np.clongdouble), DTypeError, "none of ours"),
    "masked": (lambda: np.ma.zeros(2), DTypeError, "lose its mask"),
    "overlapping itself": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8)),
        ShapeError,
        "may stand there twice",
    ),
    "list": (lambda: [1, 2], TypeError, "list lends no memory"),
    "Array": (lambda: tn.zeros(2), TypeError, "an Array is tenfold's own"),
    "closed map": (lambda: closed(mmap.mmap(-1, 8)), ValueError, "closed"),
}


def closed(memory: mmap.mmap) -> mmap.mmap:
    memory.close()
    return memory


@pytest.mark.parametrize("name", REFUSED)
def test_read_only_buffer_is_refused(name: str) -> None:
    make, error, why = REFUSED[name]
    with pytest.raises(error, match=why):
        tn.wrap(make())


def test_wrapped_memory_cannot_be_resized_or_closed() -> None:
    numbers, mapped = bytearray(8), mmap.mmap(-1, 8)
    x, y = tn.wrap(numbers), tn.wrap(np.ndarray(8, np.uint8, mapped))
    with pytest.raises(BufferError):
        numbers.append(1)
    with pytest.raises(BufferError):
        mapped.close()
    pending = x + y
    del x, y
    assert pending.tolist() == [0] * 8
    numbers.append(1)
    mapped.close()


BEHIND: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda memory: memory,
    "a part": lambda memory: memory[2:5],
    "a lent buffer": memoryview,
    "moved strides": lambda memory: np.lib.stride_tricks.as_strided(memory, (3,), (16,)),
}


@pytest.mark.parametrize("name", BEHIND)
def test_wrapped_ndarray_cannot_be_resized_by_force(name: str) -> None:
    source = np.ones(8)
    x = tn.wrap(BEHIND[name](source))
    pending = x * 2
    for length in (1, 1 << 20):
        with pytest.raises(ValueError, match="cannot resize"):
            source.resize(length, refcheck=False)
    x += 1
    assert pending.tolist() == [2.0] * len(x)
    assert x.tolist() == [2.0] * len(x)
    del x, pending
    source.resize(1, refcheck=False)


@pytest.mark.parametrize("writeable", [False, True])
def test_ndarray_whose_memory_is_shared_cannot_be_resized_by_force(writeable: bool) -> None:
    source = np.ones(8)
    source.flags.writeable = writeable
    x = tn.asarray(source, copy=False)
    exported = np.asarray(x)
    del x
    with pytest.raises(ValueError, match="cannot resize"):
        source.resize(1 << 20, refcheck=False)
    assert exported.tolist() == [1.0] * 8
    del exported
    source.resize(1 << 20, refcheck=False)


def test_array_whose_memory_was_replaced_is_not_written_to() -> None:
    source = np.zeros(100_000)
    x = tn.wrap(source)
    source.__setstate__(np.zeros(10).__reduce__()[2])  # NumPy types it as str
    with pytest.raises(ValueError, match="has been resized"):
        x[0] = 1


# Who else has seen the memory.


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_captured_old_value_is_kept(device: str) -> None:
    with tn.options(device=device):
        source = numbered(2, 3)
        x = tn.wrap(source)
        pending, computed, same = x * 2, (x[0] + 0).wait(), tn.asarray(x, copy=True)
        taken, seen = tn.asarray(x.T[1], copy=True), np.asarray(x)
        tn.eval(taken, same)
        with tn.profile() as p:
            x[:, 1] = 50
        assert p.copies == 1  # of the old value, for `pending`
        assert pending.tolist() == (numbered(2, 3) * 2).tolist()
        assert (computed.tolist(), taken.tolist()) == ([0.0, 1.0, 2.0], [1.0, 4.0])
        assert same.tolist() == seen.tolist() == numbered(2, 3).tolist()
        assert source.tolist() == [[0.0, 50.0, 2.0], [3.0, 50.0, 5.0]]


def test_nothing_is_copied_where_nobody_else_has_seen_the_value() -> None:
    source = numbered(4, 5)
    x = tn.wrap(source)
    row = x[1]
    row.wait()
    with tn.profile() as p:
        x += 1
        x[1:-1, 1:-1] += x[:-2, 1:-1] + x[2:, 1:-1]
        row *= 2
        x.T[0] = x[1:2, 0:1]
    assert (p.copies, row.tolist()) == (0, source[1].tolist())


def test_element_that_was_taken_keeps_no_more_than_itself() -> None:
    source = np.arange(100_000.0)
    x = tn.wrap(source)
    element = x[7]
    with tn.profile() as p:
        x[9] = element
        x[7] += 1
    assert p.copies == 1
    assert p.bytes_allocated < 100_000
    assert (element.item(), source[9], source[7]) == (7.0, 7.0, 8.0)


def test_loop_over_a_window_allocates_nothing() -> None:
    source = np.zeros((200, 200))
    source[0] = 1
    x, theirs = tn.wrap(source), source.copy()

    def step(u: Any) -> None:
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])

    tn.trim()  # a pool that is full already keeps nothing
    step(x)
    step(x)
    with tn.profile() as p:
        for _ in range(10):
            step(x)
    for _ in range(12):
        step(theirs)
    assert (p.copies, p.allocations) == (0, 0)
    assert source.tobytes() == theirs.tobytes()


def test_value_outlives_its_window_and_later_windows_on_the_memory() -> None:
    source = np.arange(1000)
    x = tn.wrap(source[:10])
    pending = x[::-1] + 0
    del x
    gc.collect()
    later = tn.wrap(source)
    later[...] = -1
    assert pending.tolist() == list(range(9, -1, -1))
    assert (source == -1).all()


def test_sparse_window_is_kept_for_its_readers() -> None:
    source = np.zeros((300, 4000))
    x = tn.wrap(source[:, 7])
    old = x + 1
    x[...] = 5
    assert (old.tolist(), source.sum()) == ([1.0] * 300, 1500.0)


def test_windows_that_overlap_show_each_others_elements() -> None:
    source = np.arange(10)
    whole, part, apart = tn.wrap(source), tn.wrap(source[7:2:-1]), tn.wrap(source[1::2])
    view, old = part[1:3], part + 0
    evens = apart * 1
    with tn.profile() as p:
        whole[4:7:2] = 100
    assert p.copies == 1  # for `old`; no cell of `apart` was written to
    assert (part.tolist(), view.tolist()) == ([7, 100, 5, 100, 3], [100, 5])
    part += whole[:5]
    assert whole.tolist() == source.tolist() == [0, 1, 2, 103, 103, 7, 101, 7, 8, 9]
    assert (old.tolist(), evens.tolist()) == ([7, 6, 5, 4, 3], [1, 3, 5, 7, 9])


def test_writing_into_the_buffer_shows_at_the_next_computation() -> None:
    source = numbered(2, 3)
    for device in ("cpu", "reference"):
        with tn.options(device=device):
            x = tn.wrap(source)
            view = tn.flip(x)[:, 1:]
            view.wait()
            source += 10
            assert (x.tolist(), view.tolist()) == (source.tolist(), source[::-1, 1::-1].tolist())
            assert (view + 0).tolist() == source[::-1, 1::-1].tolist()


def test_index_that_the_buffer_changed_meanwhile_is_checked_again() -> None:
    source = np.array([0, 1])
    indices = tn.wrap(source)
    taken = tn.arange(3.0)[indices]
    source[0] = 10**9
    with pytest.raises(IndexError, match="1000000000 is out of bounds"):
        taken.wait()


def test_exports_are_read_only_and_stay() -> None:
    source = numbered(3)
    x = tn.wrap(source)
    seen, consumed = np.asarray(x), np.from_dlpack(x)
    x += 1
    source[0] = 50
    assert seen.tolist() == consumed.tolist() == [0.0, 1.0, 2.0]
    assert not seen.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        seen.flags.writeable = True


# In which order.


def test_reader_in_another_thread_sees_the_value_before_or_after() -> None:
    source = np.zeros(100_000)
    x = tn.wrap(source)
    mixed: list[np.ndarray] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for values in (np.asarray(x), np.asarray(x[::-1] * 2), np.asarray(x + x)):
                if (values != values[0]).any():
                    mixed.append(values)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(200):
            x += 1
            x[...] = x * 1
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not mixed
    assert (source == 200).all()


def test_operation_cannot_assign_to_the_window_it_is_computed_from() -> None:
    source, apart = np.zeros(2), np.zeros(2)
    x, other = tn.wrap(source), tn.wrap(apart)

    @tn.operator
    def assigning(values: Any) -> Any:
        nonlocal x
        other[...] = 1
        x += 1
        return np.asarray(values)

    assert assigning(tn.ones(2)).tolist() == [1.0, 1.0]
    assert (source.tolist(), apart.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(RunError, match="assigns to a window whose value is just being computed"):
        assigning(x).wait()
    assert source.tolist() == [1.0, 1.0]


def test_promise_is_checked_across_windows() -> None:
    source = np.arange(6.0)
    x, y = tn.wrap(source[:4]), tn.wrap(source[2:])
    with tn.options(verify=True):
        with pytest.raises(AliasError, match=r"bytes 0 to 31 .* bytes 16 to 47 read"):
            tn.assign(x, y * 2, noalias=True)
        tn.assign(x[:2], y[2:] * 2, noalias=True)
    assert source.tolist() == [8.0, 10.0, 2.0, 3.0, 4.0, 5.0]


# Copies in, and what changes meanwhile.


def test_import_copies_what_can_be_written_to_once() -> None:
    source = np.arange(4)
    with tn.profile() as p:
        x = tn.asarray(source)
    assert p.copies == 1
    with tn.profile() as p:
        shared = tn.asarray(source, copy=False)
        source.flags.writeable = False
        tn.asarray(source)
    assert p.copies == 0
    assert x.tolist() == shared.tolist()


def test_change_of_the_source_between_writing_and_waiting_is_not_seen() -> None:
    source = np.arange(1000.0)
    x = tn.asarray(source)
    y, z = x * 2, x[::-1]
    source[:] = -1
    x[:500] = 0
    source[:] = -2
    assert y.tolist() == [2.0 * i for i in range(1000)]
    assert z.tolist()[:500] == [float(i) for i in range(999, 499, -1)]
    assert x.tolist() == [0.0] * 500 + [float(i) for i in range(500, 1000)]
