"""A known structure with other lengths is replayed without Python, to the bits of its own plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.runtime import symbolic_executable
from tenfold.runtime.devices import cpu
from tenfold.testing import assert_equal_bits

from .random_structures import Structure, computed, expected, structure, values

EDGES = (0, 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 101, 129)
LONG = (511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097)
LONGEST = (32767, 32768, 32769, 65535, 65536, 65537)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the graphs that Python has planned."""
    seen: list[int] = []
    original: Callable[..., Any] = cpu.schedule_graph

    def noted(graph: Any, **options: Any) -> Any:
        seen.append(len(graph))
        return original(graph, **options)

    monkeypatch.setattr(cpu, "schedule_graph", noted)
    tn.trim()
    with tn.options(tier=0):
        yield seen
    tn.trim()


def without_templates(compute: Callable[[], Any]) -> Any:
    tn.trim()
    _native.set_templates_enabled(False)
    try:
        return compute()
    finally:
        _native.set_templates_enabled(True)


def draw(source: random.Random) -> dict[str, int]:
    lengths = {axis: source.choice(EDGES) for axis in "nm"} | {"k": source.choice((0, 1, 2, 3))}
    which = source.random()
    if which < 0.2:
        lengths["m"] = lengths["n"]
    elif which < 0.5:
        lengths["nm"[which < 0.35]] = source.choice(LONG)
    elif which < 0.6:
        long = "nm"[which < 0.55]
        lengths = {"n": source.choice((1, 2, 3)), "m": source.choice((1, 2, 3)), "k": 1}
        lengths[long] = source.choice(LONGEST)
    return lengths


def is_close(actual: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether floats are NumPy's but for roundings; integers and bools made of such may differ."""
    if actual.dtype.kind not in "fc" or actual.size == 0:
        return actual.shape == wanted.shape
    scale = np.nanmax(np.abs(wanted[np.isfinite(wanted)]), initial=1.0)
    return np.allclose(actual, wanted, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(16))
def test_random_structures_have_the_same_bits_for_all_lengths(
    seed: int, planned: list[int]
) -> None:
    made, source = structure(seed // 2, slices=seed % 2 > 0), random.Random(seed)
    given = [values(made, draw(source), number) for number in range(24)]
    results = [computed(made, each) for each in given]
    plain = without_templates(lambda: [computed(made, each) for each in given])
    for each, found, other in zip(given, results, plain, strict=True):
        for actual, same in zip(found, other, strict=True):
            assert_equal_bits(actual, same)
        assert all(map(is_close, found, expected(made, each)))


def test_most_new_lengths_of_random_structures_are_not_planned(planned: list[int]) -> None:
    made = Structure(structure(3).leaves, structure(3).steps, 1)
    source = random.Random(0)
    for number in range(60):
        lengths = {"n": source.randint(40, 400), "m": source.randint(40, 400), "k": 2}
        computed(made, values(made, lengths, number))
    assert len(planned) < 30


def softmax(x: Any) -> Any:
    powers = tn.exp(x - tn.max(x, axis=-1, keepdims=True))
    return powers / tn.sum(powers, axis=-1, keepdims=True)


EXPRESSIONS: dict[str, tuple[Callable[..., Any], Sequence[str]]] = {
    "map": (lambda a, b, c: 2 * a + 3 * b - c * a, ("n", "n", "n")),
    "broadcast": (lambda a, b: a * b + 1, ("nm", "m")),
    "rows": (lambda a, b: (a - b).sum(axis=1), ("nm", "nm")),
    "columns": (lambda a: a.sum(axis=0), ("nm",)),
    "all": (lambda a: (a * a).sum(), ("nm",)),
    "softmax": (softmax, ("nm",)),
    "turned": (lambda a, b: a.T + b, ("nm", "mn")),
    "running": (lambda a: tn.cumulative_sum(a, axis=1), ("nm",)),
    "outer": (lambda a, b: a[:, None] * b + 1, ("n", "m")),
    "distances": (lambda a, b: tn.sum((a[:, None] - b[None]) ** 2, axis=-1), ("nk", "mk")),
    "where": (lambda a, b: tn.where(a > b, a, 0.5), ("nm", "n1")),
    "cast": (lambda a: tn.astype(a, "float32") * 3, ("nm",)),
    "steps": (lambda a: a[1:] - a[:-1], ("nm",)),
    "inside": (lambda a: (a[1:-1, :-2] * 2).sum(axis=0), ("nm",)),
    "column": (lambda a, b: a[:, 0] * b + a[:, -1], ("nm", "n")),
    "chosen": (lambda a: tn.where(a > 1, 1.0, 0.0), ("nm",)),
    "backwards": (lambda a: a[::-1, ::2] + 1, ("nm",)),
    "first few": (lambda a: (a[:5] * 2).sum(axis=0), ("nm",)),
    "last few": (lambda a: a[..., -5:] - 1, ("nm",)),
    "joined columns": (lambda a, b: tn.concat([tn.tanh(a), b * 2], axis=1), ("nm", "nk")),
    "joined rows": (lambda a, b: tn.concat([a - 1, b[::-1], a * 2], axis=0), ("nm", "km")),
    "joined parts": (
        lambda a: tn.concat([a[:, 5:] * 2, a[:, :5] + 1], axis=1).sum(axis=0),
        ("nm",),
    ),
    "stacked": (lambda a, b: tn.stack([a + 1, b * 2], axis=1), ("nm", "nm")),
    "layer": (lambda a, b, c: tn.maximum(a @ b + c, 0.0), ("nm", "mk", "k")),
    "wide layer": (lambda a, b, c: tn.maximum(a @ b, c), ("nm", "mn", "n")),
    "matrix and vector": (lambda a, b, c: c - 2.5 * (a @ b), ("nm", "m", "n")),
    "transposed": (lambda a, b: -a.T @ b, ("nm", "n")),
    "dot": (lambda a, b: (a * 2) @ b, ("n", "n")),
    "contracted": (lambda a, b: tn.tensordot(a, b, 2), ("nmk", "mk")),
}


JOINED = ("joined columns", "joined rows", "joined parts", "stacked")
VECTORS = ("layer", "matrix and vector", "transposed", "dot")
"""Products whose results are no larger than their operands."""


def arrays(axes: Sequence[str], lengths: dict[str, int], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = [tuple(lengths.get(axis, 1) for axis in each) for each in axes]
    return [tn.asarray(rng.normal(size=shape)) for shape in shapes]


SHAPES = ((40, 50), (60, 45), (45, 60), (105, 90), (110, 95), (115, 88))
WIDE_SHAPES = ((120, 76), (130, 64), (140, 56))
"""Others that have a code of their own as products with registers of 64 bytes: 5, 8, 7 packets."""


# Without FMA exp is a call, and a plan with calls is made for each shape.
@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_fifty_new_shapes_are_neither_planned_nor_compiled(
    name: str, cpu: str, planned: list[int]
) -> None:
    expression, axes = EXPRESSIONS[name]
    with tn.options(cpu=cpu):
        for n, m in (*SHAPES, *(WIDE_SHAPES if cpu == "x86-64-v4" else ())):
            expression(*arrays(axes, {"n": n, "m": m, "k": 3}, n)).wait()
        before = len(planned)
        with tn.profile() as p:
            for number in range(50):
                lengths = {"n": 100 + number, "m": 96 - number, "k": 3}
                expression(*arrays(axes, lengths, number)).wait()
    assert (len(planned) - before, p.compiles) == (0, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*list(EXPRESSIONS)[:12], "steps", "backwards", *JOINED, *VECTORS])
@pytest.mark.parametrize("edge", [2, 16, 32, 512, 1024, 4096, 1 << 15, 1 << 16])
def test_lengths_at_an_edge_have_the_same_bits(name: str, edge: int, planned: list[int]) -> None:
    expression, axes = EXPRESSIONS[name]
    near = [edge + more for more in (-1, 0, 1)]
    lengths = [{"n": near_, "m": 7} for near_ in near] + [{"n": 6, "m": near_} for near_ in near]

    def results() -> list[np.ndarray]:
        found = []
        for number, each in enumerate([{"n": 40, "m": 50}, {"n": 41, "m": 51}, *lengths]):
            found.append(np.array(expression(*arrays(axes, each, number))))
        return found

    for actual, wanted in zip(results(), without_templates(results), strict=True):
        assert_equal_bits(actual, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_larger_than_the_cache_have_the_same_bits(dtype: str, planned: list[int]) -> None:
    edge = (24 << 20) // (3 * np.dtype(dtype).itemsize)
    lengths = (edge - 64, edge - 63, edge, edge + 1, edge + 2)

    def results() -> list[np.ndarray]:
        found = []
        for length in lengths:
            x = tn.asarray(np.arange(length, dtype=dtype))
            y = tn.asarray(np.full(length, 0.3, dtype))
            found.append(np.array(x * y + 1.5))
        return found

    for actual, wanted in zip(results(), without_templates(results), strict=True):
        assert_equal_bits(actual, wanted)


def test_products_count_the_multiply_adds_of_new_lengths(planned: list[int]) -> None:
    for n, m in ((20, 30), (21, 31), (22, 32), (23, 35), (24, 33)):
        x, y = np.random.default_rng(n).normal(size=(n, m)), np.arange(float(m))
        with tn.profile() as p:
            found = (2.5 * tn.asarray(x) @ tn.asarray(y)).wait()
        np.testing.assert_allclose(np.asarray(found), 2.5 * x @ y, rtol=1e-12)
        assert (p.calls, p.multiply_adds, p.temporaries) == (1, n * m, 0)
    assert len(planned) == 3


def test_order_of_a_chain_is_decided_for_new_lengths(planned: list[int]) -> None:
    for n, m in ((20, 3), (21, 4), (22, 5), (4, 30), (5, 31), (6, 32)):
        arrays = [np.random.default_rng(n).normal(size=shape) for shape in ((n, m), (m, n), (n, m))]
        a, b, c = map(tn.asarray, arrays)
        with tn.profile() as p:
            found = np.asarray(a @ b @ c)
        np.testing.assert_allclose(found, arrays[0] @ arrays[1] @ arrays[2], rtol=1e-11, atol=1e-11)
        assert p.multiply_adds == 2 * n * m * min(n, m)
    assert len(planned) < 12


def test_lengths_that_are_equal_by_accident_need_no_plan_of_their_own(planned: list[int]) -> None:
    for n, m in ((24, 25), (26, 27), (28, 28), (29, 29), (30, 30)):
        x, y = np.random.default_rng(n).normal(size=(n, 1)), np.arange(float(m))
        assert_equal_bits(tn.asarray(x) + tn.asarray(y), x + y)
    assert len(planned) == 3  # the second is planned with Sizes as well


def test_a_template_from_lengths_equal_by_accident_is_right_for_others(planned: list[int]) -> None:
    for n, m in ((28, 28), (29, 29), (30, 31), (32, 30), (33, 33)):
        x, y = np.random.default_rng(n).normal(size=(n, m)), np.arange(float(m))
        assert_equal_bits((tn.asarray(x) + tn.asarray(y)) * tn.asarray(x), (x + y) * x)
    assert len(planned) == 3


def test_equal_lengths_of_axes_that_meet_are_another_structure(planned: list[int]) -> None:
    for n, m in ((4, 5), (6, 7), (8, 8), (9, 9), (10, 10)):
        x = np.random.default_rng(n).normal(size=(n, m))
        assert_equal_bits(tn.asarray(x).T + tn.asarray(x[:1].T), x.T + x[:1].T)
    assert len(planned) == 6


def test_other_scalars_have_the_template_of_all(planned: list[int]) -> None:
    for length, number in ((20, 3.3), (21, 4.4), (22, 5.7), (23, 6.6)):
        x = np.random.default_rng(length).normal(size=length)
        assert_equal_bits(tn.asarray(x) * number, x * number)
    assert len(planned) == 3


def test_equal_scalars_that_rules_have_seen_are_told_from_others(planned: list[int]) -> None:
    for length in (20, 21, 22, 23):
        x = np.random.default_rng(length).normal(size=length)
        for one, other in ((1.0, 1.0), (1.0, 0.0), (3.3, 3.3), (3.3, 4.4), (4.4, 4.4)):
            assert_equal_bits(tn.where(tn.asarray(x) > 0, one, other), np.where(x > 0, one, other))


def test_length_dependent_graph_is_planned_for_each_length(planned: list[int]) -> None:
    (x,) = tn.rules.variables("x")

    def short(match: Any) -> bool:
        return bool(match.root.shape[0] < 25)

    rule = tn.Rule("short", tn.rules.pattern.negative(x), x, when=short)
    with tn.rules.using(rule):
        for length in (20, 21, 22, 30, 31):
            made = np.array(-tn.asarray(np.ones(length)))
            assert made[0] == (1.0 if length < 25 else -1.0)
    assert len(planned) == 5


def test_a_temporary_is_written_over_whatever_its_length(planned: list[int]) -> None:
    for length in (20, 21, 22, 23):
        x = np.random.default_rng(length).normal(size=length)
        first = (tn.asarray(x) + 1).wait()
        second = first * 3
        del first
        with tn.profile() as p:
            found = np.array(second)
        assert_equal_bits(found, (x + 1) * 3)
        assert p.allocations == 0


def test_node_computed_by_another_thread_makes_no_template(
    planned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[Any] = []
    original: Callable[..., Any] = symbolic_executable.with_symbolic_lengths

    def computed_before(*given: Any) -> Any:
        for each in others:
            each.wait()
        return original(*given)

    monkeypatch.setattr(symbolic_executable, "with_symbolic_lengths", computed_before)
    for length in (20, 21, 22):
        x = np.random.default_rng(length).normal(size=length)
        first = tn.asarray(x) * 0.7
        second = first + 0.3
        others[:] = [first]
        assert_equal_bits(second, x * 0.7 + 0.3)
        assert_equal_bits(first, x * 0.7)
    assert _native.num_cached_templates() == 0


def test_trimming_forgets_templates(planned: list[int]) -> None:
    for length in (20, 21):
        tn.eval(tn.asarray(np.ones(length)) + 1)
    assert _native.num_cached_templates() == 1
    tn.trim()
    assert _native.num_cached_templates() == 0


def test_arrays_with_strides_of_their_own_are_planned_for_each(planned: list[int]) -> None:
    for length in (20, 21, 22, 23):
        x = np.random.default_rng(length).normal(size=(length, 2 * length))
        view = tn.asarray(np.asfortranarray(x))
        assert_equal_bits(view + 1, x + 1)
    assert _native.num_cached_templates() <= 1
