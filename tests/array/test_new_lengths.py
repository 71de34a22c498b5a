"""Assignments to parts of ever new lengths: after the first few they are computed operation by
operation, in place where no other reference is left, without a new plan.

Tenfold and NumPy run the same lines; a failure can be had again by its seed.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import hypothesis
import numpy as np
import pytest

import tenfold as tn

PROGRAMS = max(24, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""

Key = tuple[Any, ...]


@pytest.mark.parametrize("length", [200, 200_000, 1_000_000])
def test_a_part_of_a_new_length_is_not_planned(planned: list[int], length: int) -> None:
    x = tn.zeros((length,)).wait()
    truth = np.zeros(length)
    for i in range(100):
        x[i:] += 1.0
        truth[i:] += 1.0
        x.wait()
    assert len(planned) <= 8
    assert np.asarray(x).tobytes() == truth.tobytes()


@pytest.mark.parametrize("length", [2**17 - 1, 2**17, 2**17 + 1, 2**21 - 1, 2**21, 2**21 + 1])
def test_lengths_around_the_limits_have_the_values_of_numpy_twice(length: int) -> None:
    """At the sizes from which on a plan comes sooner, or at each length."""
    for number in (1.0, 3.5):
        x, truth = tn.zeros((length,)).wait(), np.zeros(length)
        for _ in range(2):
            for i in range(0, 9 * 4097, 4097):
                x[i:] += number
                truth[i:] += number
                x.wait()
        assert np.asarray(x).tobytes() == truth.tobytes()


def test_elimination_is_planned_a_few_times(planned: list[int]) -> None:
    """Each step changes what is right of a column and below a row."""
    matrix = np.random.default_rng(0).standard_normal((40, 40)) + 40 * np.eye(40)
    a, truth = tn.asarray(matrix, copy=True), matrix.copy()
    for k in range(39):
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factors[:, None] * a[k, k:]
        a.wait()
        truth[k + 1 :, k:] -= (truth[k + 1 :, k] / truth[k, k])[:, None] * truth[k, k:]
    assert len(planned) <= 16
    np.testing.assert_allclose(np.asarray(a), truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 50, 5000])
def test_parts_of_an_array_that_is_being_assigned_to_are_not_planned(
    planned: list[int], length: int
) -> None:
    """Single elements, as a loop over a table compares and replaces them."""
    for _ in range(2):
        x, truth = tn.arange(float(length)).wait(), np.arange(float(length))
        for i in range(60):
            first, second, third = i % length, (i * i) % length, (7 * i + 3) % length
            x[first] = max(x[first], x[second] + x[third] / 4)
            truth[first] = max(truth[first], truth[second] + truth[third] / 4)
        assert np.asarray(x).tobytes() == truth.tobytes()
    assert len(planned) <= 4


@pytest.mark.parametrize("length", [2, 3, 100, 70_000])
def test_a_part_that_is_moved_in_its_own_array_is_not_overwritten_as_it_is_read(
    length: int,
) -> None:
    for _ in range(2):
        x, truth = tn.arange(float(length)).wait(), np.arange(float(length))
        for i in range(40):
            first, count = i % (length - 1), length // 2
            for array in (x, truth):
                array[first] = array[first + 1]
                array[1:] = array[:-1]
                array[:count] = array[length - count :][::-1]
                array[:] = array[::-1]
            if i % 3:
                x.wait()
        assert np.asarray(x).tobytes() == truth.tobytes()


@pytest.mark.parametrize("image", [(2, 9, 9, 1), (1, 24, 20, 3), (4, 40, 40, 2)])
def test_sums_of_windows_are_planned_a_few_times(
    planned: list[int], image: tuple[int, ...]
) -> None:
    """As a convolution is written: of a pending image, too, of which each reads a part."""
    batch, height, width, channels = image
    numbers = np.random.default_rng(3)
    values, weights = numbers.standard_normal(image), numbers.standard_normal((3, 3, channels, 5))
    expected: Any = None
    for module in (np, tn, tn):
        x, w = (module.asarray(each) for each in (values, weights))
        source = module.where(x > 0, x, 0 * x)
        result = module.zeros((batch, height - 2, width - 2, 5))
        for i in range(height - 2):
            for j in range(width - 2):
                part = source[:, i : i + 3, j : j + 3, :, None] * w[None]
                result[:, i, j, :] = module.sum(part, axis=(1, 2, 3))
        if module is np:
            expected = result
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)
    assert len(planned) <= 8


def test_nobody_else_sees_the_new_values() -> None:
    for held in ("value", "expression", "view", "export"):
        x = tn.zeros((50,)).wait()
        for i in range(40):
            truth = np.asarray(x).copy()
            before = {
                "value": lambda x=x: tn.asarray(x, copy=False) + 0,
                "expression": lambda x=x: x * 1.0,
                "view": lambda x=x: tn.reshape(x[::-1], (5, 10)) + 0,
                "export": lambda x=x: np.from_dlpack(x),
            }[held]()
            x[i:] += 1.0
            x.wait()
            wanted = truth[::-1].reshape(5, 10) if held == "view" else truth
            assert np.asarray(before).tobytes() == wanted.tobytes()
            truth[i:] += 1.0
            assert np.asarray(x).tobytes() == truth.tobytes()


def test_others_that_read_the_old_value_in_the_same_evaluation_have_it() -> None:
    x, truth = tn.zeros((50,)).wait(), np.zeros(50)
    for i in range(40):
        y, z, wanted = x * 2.0 + 1.0, x[5:] - 1.0, truth * 2.0 + 1.0
        x[i:] += 1.0
        tn.eval(x, y, z)
        assert np.asarray(y).tobytes() == wanted.tobytes()
        assert np.asarray(z).tobytes() == (truth[5:] - 1.0).tobytes()
        truth[i:] += 1.0
        assert np.asarray(x).tobytes() == truth.tobytes()


@pytest.mark.parametrize("form", ["sort", "take", "fails"])
def test_operations_that_python_computes_read_what_was_assigned(form: str) -> None:
    truth = np.arange(100.0)[::-1].copy()
    x, indices = tn.asarray(truth, copy=True), tn.asarray([3, 1000 if form == "fails" else 50])
    for i in range(40):
        x[i:] += 1.0
        truth[i:] += 1.0
        made = tn.sort(x) if form == "sort" else tn.take(x, indices + 0)
        if form == "fails":
            with pytest.raises(IndexError):
                made.wait()
        else:
            wanted = np.sort(truth) if form == "sort" else truth[[3, 50]]
            assert np.asarray(made).tobytes() == wanted.tobytes()
        assert np.asarray(x).tobytes() == truth.tobytes()


@pytest.mark.parametrize("length", [50, 20_000])
def test_a_later_failure_leaves_what_others_read_right(length: int) -> None:
    """What was computed of the old value, and what would be, after that is written over."""
    x, truth = tn.zeros((length,)).wait(), np.zeros(length)
    for i in range(40):
        y, wanted = x * 2.0, truth * 2.0
        z, other = y * 3.0 - x, wanted * 3.0 - truth
        x[i:] += 1.0
        truth[i:] += 1.0
        outside = tn.asarray([3, length if i > 8 else 4]) + 0
        last = tn.sum(y) + tn.sum(z) + tn.sum(tn.take(x, outside))
        del y
        if i > 8:
            with pytest.raises(IndexError):
                last.wait()
        else:
            last.wait()
        assert np.asarray(z).tobytes() == other.tobytes()
        assert np.asarray(x).tobytes() == truth.tobytes()


def test_another_thread_reads_the_old_value_amid_an_evaluation() -> None:
    large = tn.asarray(np.random.default_rng(0).standard_normal(300_000)).wait()
    x, truth = tn.zeros((200,)).wait(), np.zeros(200)
    for i in range(40):
        y, wanted = x * 2.0, truth * 2.0
        x[i:] += 1.0
        truth[i:] += 1.0
        last = tn.sum(y) + tn.sum(tn.sort(large * tn.sum(x))) + tn.sum(x)
        other = threading.Thread(target=y.wait)
        computing = threading.Thread(target=last.wait)
        computing.start()
        other.start()
        computing.join()
        other.join()
        assert np.asarray(y).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int8", "uint64", "bool"])
def test_numbers_are_those_of_numpy(dtype: str) -> None:
    numbers: list[Any] = {"c": [1 + 2j, -1j, complex("nan+1j"), 3], "f": [0.1, -0.0, 1e300],
                          "i": [-7], "u": [2**63 + 1, 5], "b": [True]}[dtype[0]]  # fmt: skip
    for number in numbers:
        x, truth = tn.zeros((60,), dtype=dtype).wait(), np.zeros(60, dtype)
        for i in range(40):
            with np.errstate(over="ignore"):
                truth[i :: 1 + i % 2] = number
            x[i :: 1 + i % 2] = number
            assert np.asarray(x).tobytes() == truth.tobytes()


class Program:
    """A few lines that are run again and again with other parts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.rank = pick((1, 1, 2, 2, 3))
        self.shape = tuple(pick((1, 2, 7, 30, 70)) for _ in range(self.rank))
        if self.rank == 1:
            self.shape = (pick((40, 300, 5000, 140_000)),)
        self.dtype = pick(
            ("float64", "float64", "float32", "int64", "int8", "complex64", "complex128", "bool")
        )
        numbers = np.random.default_rng(seed)
        values = numbers.integers(0, 2 if self.dtype == "bool" else 9, (2, *self.shape))
        self.numpy = [values[0].astype(self.dtype), values[1].astype(self.dtype)]
        self.ours = [tn.asarray(each, copy=True) for each in self.numpy]
        if pick((0, 0, 1)):  # another layout
            self.numpy = [each.T.copy().T for each in self.numpy]
            self.ours = [
                tn.permute_dims(tn.asarray(each.T.copy()), range(self.rank)[::-1]).wait()
                for each in self.numpy
            ]
        lines = (self.number, self.own, self.other, self.shifted, self.computed, self.sorted)
        self.line = pick(lines)
        self.held: list[tuple[Any, np.ndarray]] = []

    def key(self) -> Key:
        pick, key = self.random.choice, []
        for length in self.shape:
            kind = self.random.randrange(6)
            if kind == 0:
                key.append(self.random.randrange(length))
            elif kind == 1:
                key.append(slice(None))
            else:
                begin = self.random.randint(-length - 1, length)
                end = pick((None, self.random.randint(-length, length + 1)))
                key.append(slice(begin, end, pick((None, 1, 2, 3, -1, -2))))
        return tuple(key[: self.random.randint(1, self.rank)])

    def number(self, arrays: list[Any], key: Key) -> None:
        arrays[0][key] = True if self.dtype == "bool" else 3

    def own(self, arrays: list[Any], key: Key) -> None:
        if self.dtype == "bool":
            arrays[0][key] = arrays[0][key] ^ arrays[1][key]
        else:
            arrays[0][key] += 1

    def other(self, arrays: list[Any], key: Key) -> None:
        arrays[0][key] = arrays[1][key]

    def shifted(self, arrays: list[Any], key: Key) -> None:
        part = arrays[0][key]
        if getattr(part, "ndim", 0):
            arrays[0][key] = part[::-1]

    def computed(self, arrays: list[Any], key: Key) -> None:
        if self.dtype == "bool":
            arrays[0][key] = ~arrays[1][key]
        else:
            arrays[0][key] = arrays[1][key] * 2 - arrays[0][key]

    def sorted(self, arrays: list[Any], key: Key) -> None:
        """With an operation that Python computes, between two assignments."""
        self.number(arrays, key)
        if "complex" not in self.dtype:
            module = tn if isinstance(arrays[0], tn.Array) else np
            arrays[1] = module.sort(arrays[0], axis=-1)
        arrays[0][key] = arrays[1][key]

    def disturb(self) -> None:
        ours, truth = self.ours[0], self.numpy[0]
        form = self.random.randrange(5)
        if form == 0:
            self.held.append((ours, truth.copy()))
            self.ours[0] = tn.asarray(ours, copy=True)
        elif form == 1 and self.dtype != "bool":
            self.held.append((ours * 2, truth * 2))
        elif form == 2:
            self.held.append((np.asarray(ours), truth.copy()))
        elif form == 3:
            self.held.append(
                (
                    ours[..., ::-1] | False if self.dtype == "bool" else ours[..., ::-1] * 1,
                    truth[..., ::-1].copy(),
                )
            )
        else:
            self.ours.reverse()
            self.numpy.reverse()

    def run(self) -> None:
        for _ in range(60):
            key = self.key()
            together = self.random.randint(1, 3)
            for _ in range(together):
                self.line(self.ours, key)
                self.line(self.numpy, key)
            if self.random.randrange(3):
                self.ours[0].wait()
            if self.random.randrange(12) == 0:
                self.disturb()
            if self.random.randrange(6) == 0:
                np.testing.assert_array_equal(np.asarray(self.ours[0]), self.numpy[0])
        for ours, truth in [*zip(self.ours, self.numpy, strict=True), *self.held]:
            np.testing.assert_array_equal(np.asarray(ours), truth)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_parts(seed: int) -> None:
    Program(seed).run()


def test_readers_in_other_threads_see_whole_values() -> None:
    """A reader has the array from before an assignment or from after it."""
    x, wrong = tn.zeros((60_000,)).wait(), []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            values = np.asarray(x * 1.0)
            if (np.diff(values) > 0).any() or values[0] != values[1]:
                wrong.append(values)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for i in range(2, 400):
        x[: 60_000 - i] += 1.0
        x.wait()
    done.set()
    for each in readers:
        each.join()
    assert not wrong
    assert float(x[0]) == 398.0
