"""Generator: NumPy's methods, its state, and threads."""

from __future__ import annotations

import array
import collections
import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.trace_state import TRACE
from tenfold.errors import ShapeError, UnsupportedError

NUMPY_METHODS = sorted(
    name
    for name in dir(np.random.Generator)
    if not name.startswith("_") and name != "bit_generator"
)
CALLS: dict[str, tuple[Any, ...]] = {
    "beta": (2.0, 3.0),
    "binomial": (10, 0.3),
    "chisquare": (3,),
    "choice": (5,),
    "dirichlet": ([1.0, 2.0],),
    "f": (3, 5),
    "gamma": (2.5,),
    "geometric": (0.3,),
    "hypergeometric": (5, 6, 4),
    "integers": (10,),
    "logseries": (0.5,),
    "multinomial": (10, [0.2, 0.8]),
    "multivariate_hypergeometric": ([3, 4], 5),
    "multivariate_normal": ([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]),
    "negative_binomial": (3, 0.4),
    "noncentral_chisquare": (3, 1.5),
    "noncentral_f": (3, 5, 1.5),
    "pareto": (3,),
    "poisson": (3.5,),
    "power": (2,),
    "standard_gamma": (2.5,),
    "standard_t": (5,),
    "triangular": (0, 1, 3),
    "vonmises": (0.5, 2.0),
    "wald": (2, 3),
    "weibull": (2,),
    "zipf": (2.5,),
}
NOT_DRAWS = {"bytes", "permutation", "permuted", "shuffle", "spawn"}


def test_generator_has_the_methods_of_numpys() -> None:
    assert [name for name in NUMPY_METHODS if not hasattr(tn.random.Generator, name)] == []


@pytest.mark.parametrize("name", [name for name in NUMPY_METHODS if name not in NOT_DRAWS])
def test_method_has_the_shape_and_dtype_of_numpys(name: str) -> None:
    args = CALLS.get(name, ())
    ours, theirs = tn.random.default_rng(1), np.random.default_rng(1)
    for size in (None, 4, (2, 3)):
        x = getattr(ours, name)(*args, size=size)
        expected = np.asarray(getattr(theirs, name)(*args, size=size))
        assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
        assert np.asarray(x).shape == expected.shape
        assert bool(tn.all(tn.isfinite(x)))


def test_parameters_broadcast_with_size() -> None:
    rng = tn.random.default_rng(3)
    assert rng.normal([0.0, 100.0], [[1.0], [2.0], [3.0]]).shape == (3, 2)
    assert bool(tn.all(rng.normal([0.0, 1000.0], 1.0, (50, 2))[:, 1] > 900))
    assert bool(tn.all(rng.poisson([0.0, 1000.0], (50, 2))[:, 0] == 0))
    assert rng.integers([0, 10, 20], [5, 15, 25], (100, 3)).shape == (100, 3)
    with pytest.raises(ShapeError):
        rng.normal(tn.zeros(3), size=2)


def test_equal_seeds_give_equal_numbers_and_other_seeds_others() -> None:
    first, same, other = (tn.random.default_rng(seed) for seed in (7, 7, 8))
    assert first.normal(size=5).tolist() == same.normal(size=5).tolist()
    assert first.normal(size=5).tolist() != other.normal(size=5).tolist()
    assert tn.random.default_rng().state != tn.random.default_rng().state


def test_state_is_read_and_assigned() -> None:
    rng = tn.random.default_rng(2026)
    rng.random(3)
    state = rng.state
    first = [rng.random(3).tolist(), rng.integers(100, size=4).tolist()]
    rng.state = state
    assert [rng.random(3).tolist(), rng.integers(100, size=4).tolist()] == first
    other = tn.random.default_rng(0)
    other.state = state
    assert other.random(3).tolist() == first[0]
    with pytest.raises(ValueError, match="MT19937"):
        rng.state = {"bit_generator": "MT19937"}


def test_generator_is_pickled_and_copied_with_its_state() -> None:
    rng = tn.random.default_rng(1)
    rng.random(2)
    for twin in (pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng), copy.copy(rng)):
        assert twin.state == rng.state
        twin.random()
        assert twin.state != rng.state


def test_spawned_generators_are_independent_and_reproducible() -> None:
    children = [g.state["key"] for g in tn.random.default_rng(5).spawn(50)]
    again = tn.random.default_rng(5)
    assert [g.state["key"] for g in (*again.spawn(20), *again.spawn(30))] == children
    assert len({*children, again.state["key"]}) == 51


def test_generator_is_a_seed_of_itself() -> None:
    rng = tn.random.default_rng(1)
    assert tn.random.default_rng(rng) is rng
    sequence = np.random.SeedSequence(9)
    assert tn.random.default_rng(sequence).state == tn.random.default_rng(9).state


@pytest.mark.parametrize(
    ("seed", "error"), [("text", TypeError), (1.5, TypeError), (-1, ValueError)]
)
def test_other_seeds_are_refused(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tn.random.default_rng(seed)


def test_threads_take_different_draws() -> None:
    rng = tn.random.default_rng(1)
    start = rng.state["draw"]
    taken: list[int] = []

    def take() -> None:
        taken.extend([rng.next_draw()[1] for _ in range(2000)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [start + i for i in range(8000)]


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
def test_traced_function_with_a_generator_draws_anew_at_each_call() -> None:
    rng, twin = tn.random.default_rng(1), tn.random.default_rng(1)
    noisy = tn.function(lambda x: x + rng.random(3))
    for _ in range(3):
        assert noisy(tn.zeros(3)).tolist() == twin.random(3).tolist()
    with pytest.raises(UnsupportedError, match="draw number"):
        tn.vmap(lambda x: x + rng.random(3))(tn.zeros((2, 3)))
    assert TRACE.get() is None


def test_permutations_have_the_same_elements() -> None:
    rng = tn.random.default_rng(4)
    assert sorted(rng.permutation(100).tolist()) == [*range(100)]
    x = tn.reshape(tn.arange(12), (3, 4))
    rows = rng.permutation(x).tolist()
    assert sorted(rows) == x.tolist()
    columns = np.asarray(rng.permutation(x, axis=1))
    assert sorted(columns.T.tolist()) == np.asarray(x).T.tolist()
    each = np.asarray(rng.permuted(x, axis=1))
    assert np.sort(each, axis=1).tolist() == x.tolist()
    assert sorted(np.asarray(rng.permuted(x)).ravel().tolist()) == [*range(12)]


def test_shuffle_works_in_place() -> None:
    rng = tn.random.default_rng(4)
    x, y = tn.arange(50), np.arange(50)
    other = x + 0
    rng.shuffle(x)
    rng.shuffle(y)
    assert sorted(x.tolist()) == sorted(y.tolist()) == other.tolist()
    assert x.tolist() != other.tolist() != y.tolist()
    with pytest.raises(TypeError, match="permutation"):
        rng.shuffle((1, 2))


def test_shuffle_moves_the_items_of_a_sequence() -> None:
    rng = tn.random.default_rng(4)
    items: list[Any] = [*range(50), "text", None]
    moved = [*items]
    rng.shuffle(moved)
    assert moved != items
    assert sorted(map(str, moved)) == sorted(map(str, items))
    for sequence in (array.array("d", [1, 2, 3]), collections.deque([1, 2, 3]), bytearray(b"123")):
        kind, before = type(sequence), sorted(sequence)
        rng.shuffle(sequence)
        assert (type(sequence), sorted(sequence)) == (kind, before)
    with pytest.raises(TypeError, match="axis 1"):
        rng.shuffle([[1, 2], [3, 4]], axis=1)


@pytest.mark.parametrize("population", [range(5), collections.deque(range(5)), (0, 1, 2, 3, 4)])
def test_any_sequence_is_a_population(population: Any) -> None:
    rng = tn.random.default_rng(4)
    assert sorted(rng.permutation(population).tolist()) == [*range(5)]
    assert sorted(rng.permuted(population).tolist()) == [*range(5)]
    assert len(set(rng.choice(population, 4, replace=False).tolist())) == 4
    assert rng.choice(population).shape == ()
    assert rng.uniform(population, range(1, 6)).shape == (5,)


def test_choice_without_replacement_has_no_element_twice() -> None:
    rng = tn.random.default_rng(4)
    assert len(set(rng.choice(100, 60, replace=False).tolist())) == 60
    weights = np.arange(10) / 45
    chosen = np.asarray(rng.choice(10, (4, 2), replace=False, p=weights)).ravel().tolist()
    assert len(set(chosen)) == 8
    assert 0 not in chosen
    with pytest.raises(ValueError, match="replacement"):
        rng.choice(3, 4, replace=False)


def test_choice_takes_parts_of_arrays_and_probabilities() -> None:
    rng = tn.random.default_rng(4)
    x = tn.reshape(tn.arange(12), (3, 4))
    assert rng.choice(x, 5).shape == (5, 4)
    assert rng.choice(x, 5, axis=1).shape == (3, 5)
    assert set(rng.choice([10, 20, 30], 50, p=[0.5, 0.0, 0.5]).tolist()) == {10, 30}
    with pytest.raises(ValueError, match="sum is 1"):
        rng.choice(3, 2, p=[0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="no element"):
        rng.choice(0, 2)


def test_bytes_have_their_length() -> None:
    rng = tn.random.default_rng(4)
    assert [len(rng.bytes(length)) for length in (0, 1, 7, 8, 9, 100)] == [0, 1, 7, 8, 9, 100]


WRONG: dict[str, Callable[[tn.random.Generator], Any]] = {
    "scale": lambda rng: rng.normal(0, -1),
    "lam": lambda rng: rng.poisson(-1),
    "p": lambda rng: rng.binomial(10, 1.5),
    "order": lambda rng: rng.integers(5, 5),
    "range": lambda rng: rng.integers(0, 300, dtype="int8"),
    "mode": lambda rng: rng.triangular(0, 5, 3),
    "nsample": lambda rng: rng.hypergeometric(3, 4, 8),
    "method": lambda rng: rng.multivariate_normal([0.0], [[1.0]], method="qr"),
    "array lam": lambda rng: rng.poisson(tn.asarray([1.0, -1.0])).wait(),
    "array p": lambda rng: rng.binomial(10, tn.asarray([0.5, 2.0])).wait(),
    "array bounds": lambda rng: rng.integers(tn.asarray([1, 5]), tn.asarray([3, 5])).wait(),
    "pvals": lambda rng: rng.multinomial(3, [0.8, 0.8, 0.1]).wait(),
}


@pytest.mark.parametrize("name", WRONG)
def test_parameters_out_of_range_are_value_errors(name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each has its text
        WRONG[name](tn.random.default_rng(1))


def test_dtypes_of_numpy_are_kept() -> None:
    rng = tn.random.default_rng(1)
    assert rng.random(3, dtype="float32").dtype == tn.float32
    for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64", "bool"):
        assert rng.integers(0, 2, 3, dtype=dtype).dtype == np.dtype(dtype)
    with pytest.raises(TypeError):
        rng.random(3, dtype="float16")
    with pytest.raises(TypeError):
        rng.integers(0, 2, 3, dtype="float64")


def test_signatures_take_numpys_arguments_by_name() -> None:
    for name in ("normal", "uniform", "poisson", "integers", "choice", "gamma"):
        ours = inspect.signature(getattr(tn.random.Generator, name)).parameters
        doc = (getattr(np.random.Generator, name).__doc__ or "").strip().splitlines()[0]
        names = [
            part.split("=")[0].strip() for part in doc.partition("(")[2].rstrip(")").split(",")
        ]
        assert [each for each in names if each not in ours and each not in ("*", "out")] == []


def test_parameters_of_few_bits_do_not_overflow() -> None:
    rng = tn.random.default_rng(3)
    ends = [np.array([end], np.int32) for end in (0, 50_000, 100_000)]
    assert abs(float(tn.mean(rng.triangular(*ends, size=4000))) - 50_000) < 2000
    low, high = tn.asarray([-100], dtype="int8") * 1, tn.asarray([100], dtype="int8") * 1
    drawn = np.asarray(rng.uniform(low, high, size=4000))
    assert -100 <= drawn.min() < -90
    assert 90 < drawn.max() < 100
    with pytest.raises(ValueError, match="low <= high"):
        rng.uniform(np.array([255], np.uint8), np.array([10], np.uint8))
    with pytest.raises(TypeError, match="complex"):
        rng.normal(np.array([1j]), 1.0)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "endpoint"),
    [
        (np.array([1, 2], "u1"), 10, "int64", False),
        (np.array([0, 2**63], "u8"), np.array([3, 2**63 + 2], "u8"), "uint64", False),
        (np.array([-128, 5], "i1"), np.array([128, 6], "i2"), "int8", False),
        (0, np.array([10, 255]), "uint8", True),
        (0, np.array([2**63], "u8"), "int64", False),
        (np.array([False, True]), 2, "bool", False),
        (0, np.array([10, 300]), "uint8", False),
        (0, np.array([10, 256]), "uint8", True),
        (np.array([-1, 0]), 5, "uint8", False),
        (0, np.array([3, 2]), "bool", False),
        (np.array([0]), 0, "uint64", False),
        (np.array([3]), np.array([3]), "int64", False),
    ],
)
def test_bounds_that_are_arrays_are_those_of_numpy(
    low: Any, high: Any, dtype: str, endpoint: bool
) -> None:
    drawn = tn.random.default_rng(3).integers(low, high, (50, 2), dtype, endpoint)
    try:
        expected = np.random.default_rng(3).integers(low, high, (50, 2), dtype, endpoint)
    except ValueError:
        with pytest.raises(ValueError, match=r"low is not below high, or a bound is beyond"):
            drawn.wait()
        return
    assert (drawn.dtype, drawn.shape) == (expected.dtype, expected.shape)
    values, last = np.asarray(drawn), np.asarray(high) - (0 if endpoint else 1)
    assert ((values >= low) & (values <= last.astype(dtype))).all()
