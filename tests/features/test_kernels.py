"""What kernels must do, one test for each fact: an input, and what must be seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.inspect.profile import Profile
from tenfold.testing import assert_close, assert_equal_bits


@pytest.fixture(autouse=True)
def fused_kernels_at_once() -> Iterator[None]:
    with tn.options(device="cpu", tier="1"):
        yield


def randoms(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def computed(array: tn.Array) -> Profile:
    """The counters of computing one array."""
    with tn.profile() as p:
        array.wait()
    return p


def traversals(array: tn.Array) -> list[str]:
    """How the kernels of an array's plan go through memory."""
    return re.findall(r"\. kernel, (\w+)", array.explain("scheduled"))


def test_a_chain_of_maps_is_one_pass_without_temporaries() -> None:
    a, b, c, d = (tn.asarray(randoms(10**6, seed=i)) for i in range(4))
    y = (a + b) * c - d / 2
    tn.trim()  # what the pool has kept is not counted
    p = computed(y)
    assert (p.kernels, p.calls, p.temporaries) == (1, 0, 0)
    assert p.allocations == 1
    na, nb, nc, nd = (randoms(10**6, seed=i) for i in range(4))
    assert_equal_bits(y, (na + nb) * nc - nd / 2)


def test_building_counts_nothing_and_small_vectors_take_one_kernel() -> None:
    a, b, c, d = (tn.asarray(randoms(4, seed=i)) for i in range(4))
    with tn.profile() as building:
        y = (a + b) * c - d
    assert building.kernels == 0
    assert computed(y).kernels == 1


def test_a_sum_of_squared_differences_has_no_temporaries() -> None:
    x, y = randoms(10**6), randoms(10**6, seed=1)
    total = tn.sum((tn.asarray(x) - tn.asarray(y)) ** 2)
    p = computed(total)
    assert p.temporaries == 0
    assert 1 <= p.kernels <= 2
    assert_close(total, np.sum(np.square(x - y, dtype=np.longdouble)).astype(float), ulp=16)


def test_an_opaque_operation_that_is_shared_is_computed_once() -> None:
    passed: list[int] = []

    @tn.operator
    def f(x: tn.Array, /) -> tn.Array:
        passed.append(x.size)
        return x + 1

    s = f(tn.asarray(randoms(100)))
    assert_equal_bits(s * s + s, (randoms(100) + 1) ** 2 + (randoms(100) + 1))
    assert passed == [100]


def test_accurate_sums_do_not_depend_on_fusion() -> None:
    x = tn.asarray(np.float32([2**24] + [1] * 1000))
    assert abs(tn.sum(x).item() - 16778216) <= 8
    assert tn.sum(x * 1).item() == tn.sum(x).item()


def test_computing_holds_nothing_beside_its_result() -> None:
    a, b = (tn.asarray(randoms(10**6, seed=i)) for i in range(2))
    before = _native.live_bytes()
    y = (a + b) * b - a / 2
    tn.trim()  # what the pool has kept is not counted
    assert computed(y).allocations == 1
    assert _native.live_bytes() - before < 8.5e6  # a class of sizes above 8 MB


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16"])
def test_views_and_broadcasts_join_the_pass(dtype: str) -> None:
    x, row = randoms(70, 90, dtype=dtype), randoms(90, dtype=dtype, seed=1)
    a, b = tn.asarray(x), tn.asarray(row)
    y = tn.flip(a[:60, 5:65], axis=1).T + a[10:70, 5:65] * b[None, 5:65]
    p = computed(y)
    assert (p.kernels, p.calls, p.temporaries) == (1, 0, 0)
    assert_close(y, x[:60, 5:65][:, ::-1].T + x[10:70, 5:65] * row[None, 5:65], ulp=0)


def test_products_and_reductions_stand_inside_maps() -> None:
    x, y, z = (randoms(40, 40, seed=i) for i in range(3))
    a, b, c = map(tn.asarray, (x, y, z))
    assert_close(tn.matmul(a, b) + c, x @ y + z, ulp=40)
    assert_close(c + tn.matmul(a, b), z + x @ y, ulp=40)
    found = tn.sum(a, axis=1, keepdims=True) * b + 1
    assert_close(found, np.sum(x, axis=1, keepdims=True) * y + 1, ulp=40)


def test_the_map_after_a_product_is_one_kernel() -> None:
    x, y, z = (randoms(300, 300, seed=i) - 0.5 for i in range(3))
    result = tn.maximum(tn.matmul(tn.asarray(x), tn.asarray(y)) + tn.asarray(z), 0)
    p = computed(result)
    assert (p.calls, p.kernels) == (1, 1)
    np.testing.assert_allclose(np.asarray(result), np.maximum(x @ y + z, 0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_opaque_source_is_computed_once_and_then_broadcast(device: str) -> None:
    passed: list[int] = []

    @tn.operator
    def f(x: tn.Array, /) -> tn.Array:
        passed.append(x.size)
        return x * 2

    with tn.options(device=device):
        y = tn.asarray(np.zeros((500, 1000))) + f(tn.asarray(np.arange(1000.0)))
        assert y[3, 7].item() == 14.0
        y.wait()
    assert set(passed) == {1000}
    assert len(passed) <= 2  # an element, and then all


@pytest.mark.usefixtures("fused_multiply_add")
def test_a_dear_source_is_kept_before_it_is_broadcast() -> None:
    row, x = tn.asarray(randoms(1000)), tn.asarray(randoms(500, 1000))
    dear, cheap = computed(x + tn.sin(tn.exp(row))), computed(x + row * 2)
    assert (dear.temporaries, cheap.temporaries) == (1, 0)


@pytest.mark.usefixtures("fused_multiply_add")
def test_operand_of_a_product_is_kept_and_explain_says_its_cost() -> None:
    a, b = (tn.asarray(randoms(64, 64, seed=i)) for i in range(2))
    product = tn.matmul(tn.exp(a) + 1, b)
    text = product.explain("scheduled")
    assert computed(product).temporaries == 1
    assert re.search(r"recomputed for each reader [\d,.]+ additions, stored once [\d,.]+", text), (
        text
    )
    assert computed(tn.exp(a) + 1 + b).temporaries == 0


EXPLAINED: dict[str, Callable[[tn.Array, tn.Array, tn.Array], tn.Array]] = {
    "chain": lambda a, b, c: (a + b) * c - b / 2,
    "product": lambda a, b, c: tn.matmul(a, b) + c,
    "epilogue": lambda a, b, c: tn.maximum(tn.matmul(a, b) + c, 0),
    "sum of rows": lambda a, b, c: tn.sum(a, axis=1, keepdims=True) * b + 1,
    "nested product": lambda a, b, c: tn.matmul(tn.exp(a) + 1, b),
    "nested map": lambda a, b, c: tn.exp(a) + 1 + b,
    "softmax": lambda a, b, c: tn.softmax(a, axis=1),
    "variance": lambda a, b, c: tn.var(a, axis=0),
    "both axes": lambda a, b, c: tn.sum(a * b),
    "transposed": lambda a, b, c: a + b.T,
    "rows taken": lambda a, b, c: tn.take(a, tn.asarray([3, 1]), axis=0) + 1,
    "sorted": lambda a, b, c: tn.sort(a + b, axis=0) * 2,
}


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_plan_says_what_the_counters_count(name: str) -> None:
    y = EXPLAINED[name](*(tn.asarray(randoms(64, 64, seed=i)) for i in range(3)))
    text = y.explain("scheduled")
    found = re.match(r"scheduled: (\d+) kernels?, (\d+) calls?, (\d+) temporar", text)
    assert found is not None, text
    p = computed(y)
    assert tuple(map(int, found.groups())) == (p.kernels, p.calls, p.temporaries)


def test_the_plan_of_a_sum_names_one_kernel() -> None:
    a, b = (tn.asarray(randoms(100, seed=i)) for i in range(2))
    assert (a + b).explain("scheduled").startswith("scheduled: 1 kernel, 0 calls, 0 temporaries")


@pytest.mark.usefixtures("fused_multiply_add")
def test_softmax_is_stable_and_one_kernel() -> None:
    assert tn.softmax(tn.asarray([1000.0, 1000.0])).tolist() == [0.5, 0.5]
    x = randoms(64, 1000, dtype="float32")
    y = tn.softmax(tn.asarray(x), axis=1)
    assert computed(y).kernels == 1
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    assert_close(y, exact.astype(np.float32), ulp=8)


def test_rows_are_normalised_in_one_kernel() -> None:
    x = tn.asarray(randoms(64, 1000, dtype="float32"))
    mean, deviation = tn.mean(x, axis=1, keepdims=True), tn.std(x, axis=1, keepdims=True)
    p = computed((x - mean) / (deviation + 1e-5))
    assert (p.kernels, p.temporaries) == (1, 0)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_new_memory_begins_at_multiples_of_64_bytes(dtype: str, count: int) -> None:
    y = (tn.asarray(randoms(count, dtype=dtype)) + 1).wait()
    value = _native.node_of(y).value()
    assert value is not None
    assert value.address % 64 == 0


def test_the_plan_names_the_traversal() -> None:
    a, b = (tn.asarray(randoms(100, 120, seed=i)) for i in range(2))
    square = tn.asarray(randoms(120, 120, seed=2))
    assert traversals(a + b) == ["linear"]
    assert traversals(a[10:50, 20:60] + b[5:45, 3:43]) == ["inner"]
    assert traversals(square + square.T) == ["tiled"]
    taken = tn.take(a, tn.asarray([5, 0, 7]), axis=0) + 1
    assert re.search(r"(kernel, |call: )gather", taken.explain("scheduled"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_at_every_offset_and_of_every_length_equal_numpy(dtype: str) -> None:
    v, w = randoms(150, dtype=dtype), randoms(150, dtype=dtype, seed=1)
    first, second = tn.asarray(v).wait(), tn.asarray(w).wait()
    for offset in range(16):
        lengths = range(offset % 4, 131, 4)
        sums = [first[offset : offset + n] + second[offset : offset + n] for n in lengths]
        tn.eval(*sums)
        for n, u in zip(lengths, sums, strict=True):
            assert_equal_bits(u, v[offset : offset + n] + w[offset : offset + n])


def test_a_long_sum_has_the_same_bits_on_any_number_of_threads() -> None:
    x = tn.asarray(randoms(10**7, dtype="float32"))
    found = set()
    for threads in (1, 2, 8):
        with tn.options(threads=threads):
            found.add(np.asarray(tn.sum(x)).tobytes())
    assert len(found) == 1


def test_little_work_stays_on_one_thread() -> None:
    with tn.options(threads=8):
        text = (tn.asarray(randoms(100)) + 1).explain("scheduled")
        assert "on 1 thread" in text
        long = (tn.asarray(randoms(10**6)) + 1).explain("scheduled")
        assert "on 8 threads" in long
