"""Long graphs go through every public function, without recursion, in linear work."""

from __future__ import annotations

import copy
import gc
import pickle
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn

from .long_graphs import MANY, MILLION, chain, fan, ladder, leaf, on_small_stack

SHAPES = {"chain": chain, "fan": fan}
VALUES: dict[str, Callable[[float], list[float]]] = {
    "chain": lambda operations: [operations, operations + 1, operations + 2],
    "fan": lambda operations: [operations / 2, operations, operations * 1.5],
}


@pytest.fixture(scope="module", params=SHAPES)
def named(request: pytest.FixtureRequest) -> tuple[str, tn.Array]:
    """A pending graph of many operations, shared by the tests that leave it pending."""
    return request.param, SHAPES[request.param](MANY)


@pytest.fixture
def long(named: tuple[str, tn.Array]) -> tn.Array:
    return named[1]


def test_repr_and_html_of_a_long_graph_compute_nothing(long: tn.Array) -> None:
    with tn.profile() as p:
        assert repr(long).startswith("<Array float64[3] pending add")
        assert "float64[3]" in long._repr_html_()
    assert p.counters() == dict.fromkeys(p.counters(), 0)


def test_attributes_of_a_long_graph_compute_nothing(long: tn.Array) -> None:
    with tn.profile() as p:
        assert (long.shape, long.ndim, long.size, len(long)) == ((3,), 1, 3, 3)
        assert long.dtype == tn.float64
        assert long.kind == tn.Kind.MAP
    assert p.launches == 0


def test_explain_counts_the_operations_of_a_long_graph_and_shows_few(long: tn.Array) -> None:
    with tn.profile() as p:
        text = tn.explain(long)
    assert "operations, kind MAP" in text
    assert "more nodes ..." in text
    assert len(text.splitlines()) < 5000
    assert p.launches == 0


@pytest.mark.exhaustive
def test_dot_has_a_line_for_each_operation(long: tn.Array) -> None:
    text = tn.explain(long, format="dot")
    assert text.count("= add(") in (MANY, MANY - 1)
    assert text.endswith("}")


def test_copies_of_a_long_graph_share_its_operations(long: tn.Array) -> None:
    with tn.profile() as p:
        copies = [copy.copy(long), copy.deepcopy(long)]
    assert p.launches == p.copies == 0
    assert all(repr(each) == repr(long) for each in copies)


def test_pickle_of_a_long_graph_stays_pending_and_is_linear(
    named: tuple[str, tn.Array],
) -> None:
    name, long = named
    data = on_small_stack(lambda: pickle.dumps(long))
    assert len(data) < 11 * len(pickle.dumps(SHAPES[name](MANY // 10)))
    with tn.profile() as p:
        again = on_small_stack(lambda: pickle.loads(data))
    assert p.launches == 0
    assert repr(again) == repr(long)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("tier", "operations"), [("0", MANY), ("auto", MILLION)])
def test_a_million_operations_are_computed(shape: str, tier: str, operations: int) -> None:
    x = SHAPES[shape](operations)

    def work() -> tn.Array:
        with tn.options(tier=tier):
            return tn.eval(x)

    with tn.profile() as p:
        assert on_small_stack(work) is x
    if tier == "0" or shape == "chain":  # fused, piece by piece
        assert 1 <= p.kernels <= operations // 50
        assert p.compiles < (1000 if tier == "0" else 10)
    elif shape == "fan":  # equal operations, whose operands are there, together
        assert p.kernels < 1000
        assert p.compiles < 10
    assert x.tolist() == VALUES[shape](operations)
    assert str(x) == str(np.array(x.tolist()))
    assert "computed" in x._repr_html_()
    assert len(pickle.dumps(x)) < 1000


def test_str_of_a_pending_graph_computes_it() -> None:
    assert str(chain(MANY)) == "[100000. 100001. 100002.]"


@pytest.mark.parametrize("shape", [chain, fan, ladder])
def test_dropping_a_million_operations_needs_no_stack(shape: Callable[[int], tn.Array]) -> None:
    held = [shape(MILLION)]
    on_small_stack(held.clear)
    assert held == []


def test_collecting_garbage_leaves_a_long_graph_alone() -> None:
    cycle: list[object] = [chain(MANY)]
    cycle.append(cycle)
    del cycle
    on_small_stack(gc.collect)


def resident() -> int:
    """Pages of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_dropped_graphs_give_their_memory_to_the_next() -> None:
    chain(MANY)
    before = resident()
    for _ in range(5):
        chain(MANY)
    grown = (resident() - before) * resource.getpagesize()
    assert grown < 50e6  # five chains take 128e6; what one leaves behind may be given back late


def test_evaluation_keeps_no_value_that_nobody_needs() -> None:
    x = tn.asarray(np.zeros(2**20))  # 8 MiB, and 8 GiB if all were kept
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tn.options(pending_depth=0):
        for _ in range(1000):
            x = x + 1
    assert x[0].item() == 1000
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 200e6


def test_shared_operations_are_walked_once() -> None:
    x = ladder(MANY)
    assert repr(pickle.loads(pickle.dumps(x))) == repr(x)
    assert f"{MANY} operations" in tn.explain(x, stage="expression")
    with tn.profile() as p, tn.options(optimise=False):  # a rule knows maximum(x, x)
        assert x.tolist() == [0.0, 1.0, 2.0]
    assert 1 <= p.kernels <= MANY


def test_each_operation_is_computed_once_where_nothing_is_fused() -> None:
    x = ladder(1000)
    with tn.profile() as p, tn.options(optimise=False, fuse=False):
        x.wait()
    assert p.kernels == 1000


def test_one_operation_may_read_a_hundred_thousand_arrays() -> None:
    x = leaf()
    joined = tn.concat([x + i for i in range(100_000)])
    assert pickle.loads(pickle.dumps(joined)).shape == (300_000,)
    assert joined[-3:].tolist() == [99999.0, 100000.0, 100001.0]
    on_small_stack(lambda: None)


def test_a_failure_below_a_long_chain_reaches_its_end() -> None:
    x = tn.asarray([2, 3]) ** tn.asarray([1, -1])
    with tn.options(pending_depth=0):
        for _ in range(100_000):
            x = x + 1
    for _ in range(2):
        with pytest.raises(ValueError, match="pow"):
            x.wait()
