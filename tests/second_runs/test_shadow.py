"""Shadow mode: under `verify=True` the bits of a cached plan are those of a plan made anew."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime.scheduled_graph import ScheduledGraph


def _formula(x, c, d):
    return (x * c + 1) / d


@pytest.fixture
def tied_scalars(monkeypatch):
    """Plant a fault: plans take scalars that are equal for one."""
    position = ScheduledGraph.position

    def tied(self, node):
        if node.is_scalar:
            nodes = self.original.graph.nodes
            return next(i for i, n in enumerate(nodes) if n.is_scalar and n.scalar == node.scalar)
        return position(self, node)

    tn.trim()
    monkeypatch.setattr(ScheduledGraph, "position", tied)
    yield
    tn.trim()


def test_a_fault_of_a_key_is_found(tied_scalars):
    x = tn.asarray(np.arange(1.0, 9.0))
    with tn.options(tier=1):
        _formula(x, 20, 20).wait()
        wrong = np.asarray(_formula(x, 20, 19))
        assert not np.array_equal(wrong, _formula(np.arange(1.0, 9.0), 20, 19))
        with tn.options(verify=True), pytest.raises(tn.errors.RunError) as raised:
            _formula(x, 20, 19).wait()
    assert "a cached plan gives" in str(raised.value)
    assert "divide" in str(raised.value)


def test_bits_are_those_of_the_optimised_graph():
    a = tn.asarray(np.random.default_rng(0).standard_normal((40, 40)))
    for formula in (lambda: (a @ a @ a[0]) * 1.5, lambda: tn.linalg.vector_norm(a, axis=1) * 3):
        with tn.options(verify=True):
            found = np.asarray(formula())
        assert found.tobytes() == np.asarray(formula()).tobytes()


def test_plans_are_those_without_verify():
    x = tn.asarray(np.arange(1.0, 9.0))
    with tn.options(tier=1):
        _formula(x, 77.5, 3).wait()
        with tn.options(verify=True), tn.profile() as p:
            np.testing.assert_array_equal(
                np.asarray(_formula(x, 78.5, 3)), _formula(np.arange(1.0, 9.0), 78.5, 3)
            )
    assert p.compiles == 0


def test_users_functions_run_once():
    runs = []

    def count(x):
        runs.append(1)
        return x + 1

    @tn.op(reference=count, dtypes="floating")
    def counted(x):
        """x + 1, and a note of it."""

    with tn.options(verify=True):
        assert (counted(tn.asarray([1.0])) * 2).tolist() == [4.0]
    assert len(runs) == 1


def test_windows_are_written_once():
    memory = np.zeros(4)
    window = tn.wrap(memory)
    with tn.options(verify=True):
        window += 1
        window.wait()
    np.testing.assert_array_equal(memory, 1)
