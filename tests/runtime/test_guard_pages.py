"""TENFOLD_GUARD=1: each array lies between unmapped pages; whatever leaves it stops the process."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import tenfold as tn
from tenfold import _native

EQUAL_NUMPY = """
    for length in (0, 1, 33, 1024, 40_001):
        for dtype in ("int8", "float16", "float64", "complex64"):
            sample = np.arange(length).astype(dtype)
            for _ in range(3):
                x = tn.asarray(sample)
                equal(x[1:], sample[1:])
                equal(x[::-1], sample[::-1])
                equal(x[::3] == x[::3], sample[::3] == sample[::3])
                equal(tn.concat([x, x]), np.concatenate([sample, sample]))
                equal(tn.where(x == 0, x, x[:1] if length else x), np.where(
                    sample == 0, sample, sample[:1] if length else sample))
            if length and dtype != "complex64":
                equal(tn.sort(x), np.sort(sample))
                equal(tn.max(x), np.max(sample))
                equal(tn.take(x, tn.asarray([length - 1, 0])), sample[[length - 1, 0]])
    matrix = np.arange(33.0 * 65).reshape(33, 65) % 7
    for _ in range(3):
        y = tn.asarray(matrix)
        equal(y.T + 1, matrix.T + 1)
        equal(tn.sum(y, axis=0), matrix.sum(axis=0))
        equal(tn.cumulative_sum(y, axis=1), matrix.cumsum(axis=1))
        equal(y @ y.T, matrix @ matrix.T)
        y[1:3, ::2] = 5
        changed = matrix.copy()
        changed[1:3, ::2] = 5
        equal(y, changed)
"""
NEW_LENGTHS = """
    rng = np.random.default_rng(0)
    lengths = [(40, 50), (61, 70), (80, 90), (15, 60), (60, 15), (5, 40), (40, 5), (3, 3), (16, 17)]
    with tn.options(tier=1):
        for shape in lengths:
            a = rng.random(shape).astype("float32")
            b = rng.random(shape[::-1]).astype("float32")
            x, y = tn.asarray(a), tn.asarray(b)
            equal(x.T * y - x.T, a.T * b - a.T)
            equal(tn.max(x * 3.0 - x, axis=0), np.max(a * 3.0 - a, axis=0))
"""
EMPTY_PARTS = """
    import random
    source = random.Random(1)
    for _ in range(60):
        x, held, truth = tn.asarray(np.ones((5, 5, 1)), copy=True), [], np.ones((5, 5, 1))
        for _ in range(36):
            key = source.randrange(5), source.randrange(5), slice(source.randint(0, 1), None, 2)
            x[key] += 1
            truth[key] += 1
            if source.random() < 0.4:
                held.append(tn.set_at(x, key, 7.0))
            x.wait()
            if len(held) > 4:
                for each in held:
                    each.wait()
                held.clear()
        equal(x, truth)
"""
PAST_THE_END = """
    for _ in range(3):  # of any three arrays one ends at a page, and another begins at one
        whole = np.asarray(tn.asarray(np.arange(1000.0)) + 1)
        ctypes.string_at(whole.ctypes.data, whole.nbytes)
        ctypes.string_at(whole.ctypes.data {outside}, 1)
"""
OF_NOTHING = """
    for dtype in ("bool", "float32", "complex128"):
        print(dtype, flush=True)
        nothing = tn.asarray(np.zeros(0, dtype))
        for index in (np.zeros(3, "int64"), np.zeros(0, "int64")):
            for _ in range(3):
                found = tn.take(nothing, tn.asarray(index) + 0)
                try:
                    found.wait()
                    assert not len(index)
                except IndexError:
                    assert len(index)
"""


def run(code, **environment):
    begin = """
        import ctypes
        import numpy as np
        import tenfold as tn

        def equal(found, expected):
            np.testing.assert_array_equal(np.asarray(found), expected)
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(code)],
        env={**os.environ, "TENFOLD_GUARD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("tier", ["auto", "1"])
def test_operations_on_guarded_arrays_have_numpys_values(tier):
    done = run(EQUAL_NUMPY, TENFOLD_TIER=tier)
    assert done.returncode == 0, done.stderr


def test_new_lengths_that_a_template_is_not_for_stay_inside_of_guarded_arrays():
    done = run(NEW_LENGTHS)
    assert done.returncode == 0, done.stderr


def test_parts_without_elements_are_replaced_inside_of_guarded_arrays():
    done = run(EMPTY_PARTS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("outside", ["+ whole.nbytes", "- 1"])
def test_a_byte_outside_an_array_stops_the_process(outside):
    done = run(PAST_THE_END.format(outside=outside))
    assert done.returncode == -signal.SIGSEGV, done.stderr


def test_nothing_is_read_of_an_array_without_elements():
    done = run(OF_NOTHING, TENFOLD_TIER="1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_name_the_guard_and_options_cannot_change_it():
    code = "from tenfold import _native, settings\n"
    code += "assert _native.guard_pages() and settings.current()['guard'][0] is True"
    assert run(code).returncode == 0
    guarded = _native.guard_pages()
    with tn.options(guard=guarded):
        pass
    with pytest.raises(ValueError, match="set TENFOLD_GUARD before Python starts"):
        tn.set_options(guard=not guarded)
