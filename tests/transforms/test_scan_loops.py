"""tn.scan: against loops of Python."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenfold as tn
from tenfold import _native
from tenfold.testing import assert_equal_bits

from .loop_bodies import SPECIAL, decay, numbers, unrolled


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class State:
    h: Any
    n: Any


@pytest.fixture(params=["cpu", "reference"])
def on(request: pytest.FixtureRequest) -> Iterator[str]:
    with tn.options(device=request.param):
        yield request.param


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1000,)])
@pytest.mark.parametrize("length", [0, 1, 2, 37])
def test_a_scan_is_the_loop_of_python(
    on: str, dtype: str, shape: tuple[int, ...], length: int
) -> None:
    xs, init = numbers(length, *shape, dtype=dtype), numbers(*shape, 7, dtype=dtype)[..., 0]
    carry, ys = tn.scan(decay, tn.asarray(init), tn.asarray(xs))
    wanted, rows = unrolled(decay, init, xs)
    assert_equal_bits(carry, wanted)
    assert (ys.shape, ys.dtype, ys.device) == ((length, *shape), np.dtype(dtype), on)
    if dtype == "complex64":
        np.testing.assert_allclose(np.asarray(ys), np.reshape(rows, ys.shape), rtol=1e-5)
    else:
        assert_equal_bits(ys, np.asarray(rows, dtype).reshape(ys.shape))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float16", "bfloat16"])
def test_every_dtype_is_carried(on: str, dtype: str) -> None:
    xs = tn.astype(tn.asarray(np.arange(-5, 6)), getattr(tn, dtype))

    def f(carry: tn.Array, x: tn.Array) -> tuple[tn.Array, tn.Array]:
        return x, carry

    carry, ys = tn.scan(f, xs[0], xs)
    assert_equal_bits(carry, xs[-1])
    assert_equal_bits(ys[1:], xs[:-1])


def test_special_values_go_round(on: str) -> None:
    xs = np.array([SPECIAL, SPECIAL[::-1]])
    carry, ys = tn.scan(decay, tn.asarray(np.array(SPECIAL)), tn.asarray(xs))
    with np.errstate(all="ignore"):
        wanted, rows = unrolled(decay, np.array(SPECIAL), xs)
    assert_equal_bits(carry, wanted)
    assert_equal_bits(ys, np.stack(rows))


def test_a_scan_goes_backwards_and_results_lie_as_the_rows_do(on: str) -> None:
    xs = numbers(20, 3)
    carry, ys = tn.scan(decay, tn.zeros((3,)), tn.asarray(xs), reverse=True)
    wanted, rows = unrolled(decay, np.zeros(3), xs[::-1])
    assert_equal_bits(carry, wanted)
    assert_equal_bits(ys, np.stack(rows[::-1]))


def test_trees_are_carried_read_and_handed_on() -> None:
    xs = {"a": tn.asarray(numbers(4, 2)), "b": [tn.arange(4), None]}

    def f(carry: State, x: dict[str, Any]) -> tuple[State, Pair]:
        n = carry.n + x["b"][0]
        return State((carry.h[0] + x["a"],), n), Pair(carry.h[0] * 2, {"n": n, "none": None})

    carry, ys = tn.scan(f, State((tn.zeros((2,)),), 0), xs)
    assert isinstance(carry, State)
    assert isinstance(ys, Pair)
    assert ys.right["none"] is None
    assert carry.n.item() == 6
    assert ys.right["n"].tolist() == [0, 1, 3, 6]
    assert_equal_bits(
        carry.h[0], numbers(4, 2)[0] + numbers(4, 2)[1] + numbers(4, 2)[2] + numbers(4, 2)[3]
    )


def test_without_rows_the_length_says_how_many_steps() -> None:
    carry, ys = tn.scan(lambda c, x: (c * 2, None) if x is None else None, 1, length=10)
    assert carry.item() == 1024
    assert ys is None


def test_without_a_carry_it_maps() -> None:
    for empty in (None, (), {}):
        carry, ys = tn.scan(lambda c, x: (c, x * 2), empty, tn.arange(3))
        assert carry == empty
        assert ys.tolist() == [0, 2, 4]
    assert tn.scan(lambda c, _: (c, ()), (), length=3) == ((), ())


def test_unchanged_carry_is_handed_on() -> None:
    x = tn.asarray([1.0, 2.0])
    (a, b), ys = tn.scan(lambda c, _: ((c[1], c[0]), x), (x, x + 1), length=3)
    assert (a.tolist(), b.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    assert ys.tolist() == [[1.0, 2.0]] * 3
    a += 1
    assert x.tolist() == [1.0, 2.0]


def test_rows_and_results_in_any_layout() -> None:
    xs = numbers(3, 5, 4)
    for axes in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
        moved = np.transpose(xs, axes)[::-1, ::2]
        carry, ys = tn.scan(
            lambda c, x: (c + x, tn.permute_dims(x, (1, 0))[::-1]),
            tn.zeros(moved.shape[1:]),
            tn.permute_dims(tn.asarray(xs), axes)[::-1, ::2],
        )
        assert_equal_bits(
            carry, unrolled(lambda c, x: (c + x, 0), np.zeros(moved.shape[1:]), moved)[0]
        )
        assert_equal_bits(ys, np.stack([x.T[::-1] for x in moved]))


def test_nothing_runs_before_somebody_asks() -> None:
    with tn.profile() as p:
        carry, ys = tn.scan(decay, tn.zeros((3,)), tn.ones((5, 3)))
        assert (carry.shape, ys.shape, ys.dtype) == ((3,), (5, 3), np.float64)
        assert p.launches == 0
        carry.wait()
        assert p.launches > 0


def test_a_function_is_traced_once_for_each_signature() -> None:
    runs = []

    def f(carry: tn.Array, x: tn.Array) -> tuple[tn.Array, tn.Array]:
        runs.append(x.shape)
        return carry + x, carry

    for _ in range(3):
        tn.scan(f, tn.zeros((2,)), tn.ones((100, 2)))[0].wait()
    tn.scan(f, tn.zeros((3,)), tn.ones((100, 3)))[0].wait()
    assert runs == [(2,), (3,)]


def test_array_read_by_a_function_has_its_value_at_the_call() -> None:
    w, rate = tn.asarray([1.0, 2.0]), 2.0

    def f(carry: tn.Array, _: Any) -> tuple[tn.Array, None]:
        return carry + w * rate, None

    def total() -> list[float]:
        found: list[float] = tn.scan(f, tn.zeros((2,)), length=2)[0].tolist()
        return found

    assert total() == [4.0, 8.0]
    w[0] = 10.0
    assert total() == [40.0, 8.0]
    w = tn.asarray([0.0, 1.0])
    assert total() == [0.0, 4.0]
    rate = 1.0
    assert total() == [0.0, 2.0]
    before = tn.scan(f, tn.zeros((2,)), length=2)[0]
    w += 1.0
    assert before.tolist() == [0.0, 2.0]


class Model:
    """What a function may read an array from."""

    def __init__(self) -> None:
        self.layers = [{"w": tn.asarray(2.0), "scale": 1.0}]

    def step(self, carry: tn.Array, _: Any) -> tuple[tn.Array, tn.Array]:
        return carry * self.layers[0]["w"] * self.layers[0]["scale"], carry


MODEL = Model()


def scaled(x: tn.Array) -> tn.Array:
    return x * MODEL.layers[0]["w"] * MODEL.layers[0]["scale"]


def test_arrays_in_objects_and_other_functions_are_seen_too() -> None:
    model, table, runs = Model(), {"w": tn.asarray(2.0)}, []
    values = np.array([2.0])

    def of_model(carry: tn.Array, x: Any) -> Any:
        runs.append(1)
        return model.step(carry, x)

    def of_table(carry: tn.Array, _: Any) -> Any:
        return carry * table["w"], None

    def of_helper(carry: tn.Array, _: Any) -> Any:
        return scaled(carry), None

    def of_values(carry: tn.Array, _: Any) -> Any:
        return carry * tn.asarray(values)[0], None

    functions = (
        of_model,
        of_table,
        of_helper,
        of_values,
        model.step,
        lambda c, x: model.step(c, x),
    )

    def found() -> list[float]:
        return [tn.scan(f, 1.0, length=3)[0].item() for f in functions]

    assert found() == [8.0] * 6
    assert found() == [8.0] * 6
    assert len(runs) == 1
    for each in (model, MODEL):
        each.layers[0]["w"] = tn.asarray(3.0)
    table["w"] = tn.asarray(3.0)
    values[0] = 3.0
    assert found() == [27.0] * 6
    for each in (model, MODEL):
        each.layers = [{"w": tn.asarray(3.0), "scale": 2.0}]
    assert found() == [216.0, 27.0, 216.0, 27.0, 216.0, 216.0]


def test_an_object_that_is_called_is_traced_each_time() -> None:
    class Model:
        w = tn.asarray(1.0)

        def __call__(self, carry: tn.Array, _: Any) -> tuple[tn.Array, None]:
            return carry * self.w, None

    model = Model()
    assert tn.scan(model, 1.0, length=3)[0].item() == 1.0
    model.w = tn.asarray(2.0)
    assert tn.scan(model, 1.0, length=3)[0].item() == 8.0
    assert tn.scan(model.__call__, 1.0, length=3)[0].item() == 8.0


def test_lambdas_that_are_made_anew_share_their_plans() -> None:
    def total() -> float:
        found: float = tn.scan(lambda c, x: (c + tn.sin(x), None), 0.0, tn.ones((50,)))[0].item()
        return found

    total()
    with tn.profile() as p:
        for _ in range(20):
            total()
    assert p.compiles == 0


def test_a_function_that_is_gone_leaves_nothing() -> None:
    def run(w: tn.Array) -> None:
        tn.scan(lambda c, _: (c + w, None), tn.zeros((10,)), length=3)[0].wait()

    w = tn.ones((10,))
    gone = weakref.ref(w)
    run(w)
    del w
    gc.collect()
    assert gone() is None


def test_memory_is_flat_in_the_number_of_steps() -> None:
    def peak(length: int) -> int:
        begun = _native.live_bytes()
        with tn.profile() as p:
            tn.scan(lambda c, _: (tn.sin(c) + c, None), tn.ones((10_000,)), length=length)[0].wait()
        assert _native.live_bytes() - begun < 300_000
        return p.bytes_allocated

    peak(100)
    assert peak(200) - peak(100) < 100 * 80_000 / 2  # steps write over what was carried


def test_a_scan_in_a_scan() -> None:
    xs = numbers(4, 5)

    def row(total: Any, x: Any) -> tuple[Any, Any]:
        inner, sums = tn.scan(lambda c, v: (c + v, c), total, x)
        return inner, sums

    carry, ys = tn.scan(row, 0.0, tn.asarray(xs))
    flat = np.concatenate([[0.0], np.cumsum(xs.reshape(-1))])
    np.testing.assert_allclose(carry.item(), flat[-1])
    np.testing.assert_allclose(np.asarray(ys).reshape(-1), flat[:-1])


def test_a_scan_in_a_function_follows_what_is_captured() -> None:
    w = tn.asarray(2.0)

    @tn.function
    def powers(x: tn.Array) -> tn.Array:
        ys: tn.Array = tn.scan(lambda c, _: (c * w, c), x, length=4)[1]
        return ys + 1

    assert powers(tn.asarray(1.0)).tolist() == [2.0, 3.0, 5.0, 9.0]
    w[...] = 3.0
    assert powers(tn.asarray(1.0)).tolist() == [2.0, 4.0, 10.0, 28.0]
    results = tn.eval(*[powers(tn.asarray(float(i))) for i in range(40)])
    assert [each.tolist() for each in results] == [
        [i + 1, 3 * i + 1, 9 * i + 1, 27 * i + 1] for i in range(40)
    ]


def test_products_and_solves_in_a_step() -> None:
    a = numbers(3, 3) + 3 * np.eye(3)
    b = numbers(6, 3)

    def f(carry: Any, x: Any) -> tuple[Any, Any]:
        y = tn.linalg.solve(tn.asarray(a), carry + x)
        return y @ a, y

    carry, ys = tn.scan(f, tn.zeros((3,)), tn.asarray(b))
    wanted, rows = unrolled(lambda c, x: ((y := np.linalg.solve(a, c + x)) @ a, y), np.zeros(3), b)
    np.testing.assert_allclose(np.asarray(carry), wanted)
    np.testing.assert_allclose(np.asarray(ys), np.stack(rows))


def test_assignments_in_a_step_stay_in_it() -> None:
    init, xs = tn.zeros((3,)), tn.arange(4, dtype=tn.float64)

    def f(carry: tn.Array, x: tn.Array) -> tuple[tn.Array, tn.Array]:
        carry[0] += x
        carry *= 2
        return carry, carry[0]

    carry, ys = tn.scan(f, init, xs)
    assert carry.tolist() == [22.0, 0.0, 0.0]
    assert ys.tolist() == [0.0, 2.0, 8.0, 22.0]
    assert init.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [
        {"fuse": False},
        {"tier": "0"},
        {"tier": "1"},
        {"check_nans": True},
        {"optimise": False},
        {"strict_dtypes": True},
    ],
)
def test_every_mode_has_the_same_bits(options: dict[str, Any]) -> None:
    xs = tn.asarray(numbers(30, 70))

    def f(c: tn.Array, x: tn.Array) -> tuple[tn.Array, tn.Array]:
        h = tn.tanh(c + x)
        return h, tn.sum(h)

    wanted = [each.wait() for each in tn.scan(f, tn.zeros((70,)), xs)]
    with tn.options(**options):
        for found, other in zip(tn.scan(f, tn.zeros((70,)), xs), wanted, strict=True):
            assert_equal_bits(found, other)


@given(st.data())
def test_random_steps_have_the_bits_of_the_loop_of_python(data: st.DataObject) -> None:
    length = data.draw(st.integers(0, 20))
    shape = data.draw(st.sampled_from([(), (1,), (5,), (2, 3)]))
    chosen = data.draw(
        st.lists(
            st.sampled_from(["add", "multiply", "subtract", "sqrt", "sum", "where", "flip"]),
            max_size=6,
        )
    )

    def f(carry: Any, x: Any) -> tuple[Any, Any]:
        a, b = carry
        for name in chosen:
            if name in ("add", "multiply", "subtract"):
                a, b = getattr(tn, name)(a, x), a
            elif name == "sqrt":
                a = tn.sqrt(a * a + 1)
            elif name == "sum":
                b = b + tn.sum(a)
            elif name == "where":
                a = tn.where(a > b, a, b * 0.5)
            elif a.ndim:
                a = tn.flip(a)
        return (a, b), {"a": a, "b": b - x}

    rng = np.random.default_rng(length)
    xs = tn.asarray(rng.choice([*SPECIAL, 0.3, 7.0], (length, *shape)))
    init = (tn.asarray(rng.standard_normal(shape)), tn.ones(shape))
    carry, ys = tn.scan(f, init, xs)
    wanted, rows = unrolled(f, init, [xs[i] for i in range(length)])
    for found, other in zip(carry, wanted, strict=True):
        assert_equal_bits(found, other)
    for name in "ab":
        for number, row in enumerate(rows):
            assert_equal_bits(ys[name][number], row[name])


def test_scans_whose_steps_return_other_results_are_not_merged(on: str) -> None:
    h, rows = tn.asarray([0.5]), tn.asarray([[1.0], [2.0]])
    before = tn.scan(lambda carry, x: (carry + x, carry), h, rows)[1]
    after = tn.scan(lambda carry, x: ((total := carry + x), total), h, rows)[1]
    found = tn.eval(before, after)
    assert [x.tolist() for x in found] == [[[0.5], [1.5]], [[1.5], [3.5]]]
