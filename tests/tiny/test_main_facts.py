"""The main facts in a few seconds: what `make test-tiny` runs after every edit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DTypeError, ShapeError


def test_building_computes_nothing_and_waiting_computes() -> None:
    a, b, c, d = (tn.asarray(np.arange(4.0)) for _ in range(4))
    with tn.profile() as counted:
        x = (a + b) * c - d
        assert counted.kernels == 0
        assert x.tolist() == [0, 1, 6, 15]
        assert counted.kernels > 0


def test_kinds_compose() -> None:
    a = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
    kinds = [a.kind, (a + a).kind, (tn.flip(a) + a).kind, (a @ a + a).kind]
    assert kinds == [tn.Kind.VALUE, tn.Kind.MAP, tn.Kind.VIEW, tn.Kind.CONTRACTION]


def test_arrays_are_names_for_values() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x + 0
    old = x
    x = x + 10
    assert (old.tolist(), y.tolist()) == ([1, 2], [1, 2])
    z = y * 2
    y += 1
    assert (z.tolist(), y.tolist()) == ([2, 4], [2, 3])


def test_mistakes_raise_at_the_line_that_makes_them() -> None:
    with pytest.raises(ShapeError) as caught:
        tn.zeros((2, 3)) + tn.zeros((3, 2))
    for word in ("add", "(2, 3)", "(3, 2)"):
        assert word in str(caught.value)
    with pytest.raises(DTypeError, match="text"):
        tn.asarray(["a"])


@pytest.mark.cpu
def test_import_copies_what_can_be_written() -> None:
    values = np.arange(3.0)
    with tn.profile() as counted:
        x = tn.asarray(values) * 2
    values[:] = -1
    assert x.tolist() == [0, 2, 4]
    assert counted.copies == 1
    values.flags.writeable = False
    with tn.profile() as counted:
        tn.asarray(values)
    assert counted.copies == 0


def test_export_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(tn.asarray([1.0]) + 1)[0] = 3


def test_python_numbers_are_weak() -> None:
    x = tn.asarray([1, 2], dtype="float32")
    assert (2 * x / 3).dtype == tn.float32
    assert (np.float64(2) * x).dtype == tn.float64


def test_numpys_functions_stay_lazy() -> None:
    x = tn.asarray([3.0, 4.0])
    made = np.sqrt(np.sum(x * np.array([3.0, 4.0])))
    assert "pending" in repr(made)
    assert made.item() == 5


def test_reductions_and_broadcasting() -> None:
    x = tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]])
    assert tn.sum(x, axis=1).tolist() == [13, 13]
    assert tn.max(x, axis=0).tolist() == [7, 7, 5, 2]
    assert (x - tn.mean(x, axis=1, keepdims=True)).shape == (2, 4)


def test_movement_and_products() -> None:
    x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert (x @ x.T)[0, ::-1].tolist() == [11, 5]
    assert tn.concat([x, x])[-1].tolist() == [3, 4]


def test_pending_expressions_pickle() -> None:
    x = tn.asarray([1.0, 2.0]) * 3
    assert pickle.loads(pickle.dumps(x)).tolist() == [3, 6]


def test_long_chains_stay_flat() -> None:
    x = tn.asarray([0.0])
    with tn.options(pending_depth=1000):
        for _ in range(10_000):
            x = x + 1
    assert x.item() == 10_000
