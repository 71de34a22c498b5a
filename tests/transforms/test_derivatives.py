"""Gradients of functions and of pending graphs: conventions, history, errors, kernels."""

from __future__ import annotations

import dataclasses
import gc
import re
import sys
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp
from tenfold.errors import DTypeError, RunError, ShapeError, UnsupportedError
from tenfold.testing import check_gradients

RNG = np.random.default_rng(11)
A, B, V = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3)), RNG.standard_normal(3)


def gradient(function: Any, *values: Any) -> list[Any]:
    result: list[Any] = tn.grad(function)(*map(tn.asarray, values)).tolist()
    return result


def test_contributions_of_all_paths_are_added() -> None:
    def paths(x: tn.Array) -> tn.Array:
        y = x * x
        return tn.sum(y * y + x)

    assert gradient(paths, [1.0]) == [5]


def test_slices_of_one_form_are_differentiated_where_they_begin() -> None:
    x = tn.asarray(np.random.default_rng(0).normal(size=(40, 3)))

    def chain(x: tn.Array) -> tn.Array:
        h = x[0] * x[39]
        for at in range(38):
            h = h * 0.5 + x[at] * x[at + 1] * tn.sum(x[at : at + 2, 1:])
        return tn.sum(h)

    for _ in range(2):  # recorded, then made again
        tn.testing.check_gradients(chain, x)
    loss = tn.asarray(np.asarray(x))
    loss[3] = loss[5] * 2.0
    loss[7] = loss[9] * 2.0
    tn.watch(loss)
    assigned = loss * 1.0
    assigned[3] = assigned[5] * 2.0
    assigned[7] = assigned[9] * 2.0
    found = np.asarray(tn.grad_of(tn.sum(assigned), loss))
    expected = np.ones((40, 3))
    expected[[3, 7]], expected[[5, 9]] = 0, 3
    np.testing.assert_array_equal(found, expected)


def test_numbers_that_differ_from_call_to_call_have_their_own_derivatives() -> None:
    x = tn.asarray([2.0, 3.0])
    for number in [0, 1, 2, 2.0, -1, 0.5, *range(3, 20), 0.0, 1.0]:
        for f, expected in (
            (lambda x, k: x * k, lambda x, k: np.full(2, float(k))),
            (lambda x, k: x**k, lambda x, k: k * x ** (k - 1.0) if k else np.zeros(2)),
            (lambda x, k: k / x, lambda x, k: -k / x**2),
            (lambda x, k: tn.where(x > k, x, k), lambda x, k: (x > k) * 1.0),
        ):
            found = tn.grad(lambda x, f=f, k=number: tn.sum(f(x, k)))(x)
            np.testing.assert_allclose(found, expected(np.asarray(x), number), rtol=1e-14)


def test_derivatives_by_some_of_the_operands_and_by_all() -> None:
    x, y = tn.asarray([2.0, 3.0]), tn.asarray([5.0, 7.0])
    for _ in range(2):
        assert tn.grad_of(tn.sum(x * y), y).tolist() == [2, 3]
        assert [g.tolist() for g in tn.grad_of(tn.sum(x * y), [x, y])] == [[5, 7], [2, 3]]
        assert tn.grad_of(tn.sum(x * y), x).tolist() == [5, 7]


def test_rules_of_users_run_each_time() -> None:
    factor = [1.0]

    @tn.op(vjp=lambda g, y, x: (g * factor[0],))
    def as_stated(x: tn.Array) -> tn.Array:
        return x * 1.0

    for factor[0] in (1.0, 2.0, 3.0):
        assert gradient(lambda x: tn.sum(as_stated(x)), [1.0]) == [factor[0]]


def test_derivatives_of_known_operations_run_no_python() -> None:
    def rounds(x: tn.Array, count: int) -> tn.Array:
        for _ in range(count):
            x = tn.tanh(x[1:] * x[:-1] + tn.sum(x)) * 0.5
            x = tn.concat([x, x[:1]])
        return tn.sum(x)

    def frames(count: int) -> int:
        x, called = tn.asarray([0.5, 0.25, 0.125]), 0
        loss = rounds(x, count)

        def note(frame: Any, event: str, arg: Any) -> None:
            nonlocal called
            called += event == "call"

        gc.collect()
        gc.disable()  # what it frees may run Python of other tests
        sys.setprofile(note)
        try:
            tn.grad_of(loss, x)
        finally:
            sys.setprofile(None)
            gc.enable()
        return called

    _ = [frames(count) for count in (10, 100)]  # what no earlier test has made known
    assert frames(100) == frames(10) < 100


# conventions


def test_derivatives_at_kinks_are_zero() -> None:
    assert gradient(lambda x: tn.sum(tn.abs(x)), [0.0, -1.0, 2.0]) == [0, -1, 1]
    assert gradient(lambda x: tn.sum(tn.relu(x)), [0.0, -1.0, 2.0]) == [0, 0, 1]


def test_ties_share_equally() -> None:
    assert gradient(lambda x: tn.sum(tn.maximum(x, 1.0)), [1.0, 0.0, 2.0]) == [0.5, 0, 1]
    assert gradient(lambda x: tn.sum(tn.minimum(1.0, x)), [1.0, 0.0, 2.0]) == [0.5, 1, 0]
    assert gradient(tn.max, [3.0, 1.0, 3.0]) == [0.5, 0, 0.5]
    assert gradient(tn.min, [3.0, 1.0, 3.0]) == [0, 1, 0]
    ids = tn.asarray([0, 1, 0, 1])
    assert gradient(lambda x: tn.sum(tn.segment_max(x, ids, 2)), [2.0, 1.0, 2.0, 5.0]) == [
        *(0.5, 0, 0.5, 1)
    ]


def test_clip_passes_one_at_a_bound() -> None:
    assert gradient(lambda x: tn.sum(tn.clip(x, -1, 1)), [-2.0, -1.0, 0.0, 1.0, 2.0]) == [
        *(0, 1, 1, 1, 0)
    ]


def test_derivatives_at_the_origin_are_zero() -> None:
    assert gradient(tn.linalg.norm, [0.0, 0.0]) == [0, 0]
    assert gradient(lambda x: tn.sum(tn.hypot(x, x)), [0.0]) == [0]
    assert gradient(lambda x: tn.sum(tn.atan2(x, x)), [0.0]) == [0]


def test_power_zero_has_derivative_zero_at_zero() -> None:
    assert gradient(lambda x: tn.sum(x**0), [0.0, 2.0]) == [0, 0]
    assert gradient(lambda x: tn.sum(x ** tn.asarray([0.0, 2.0])), [0.0, 3.0]) == [0, 6]
    exponent = gradient(lambda n: tn.sum(tn.asarray([0.0, 2.0]) ** n), [0.0, 1.0])
    assert exponent == [0, 2 * np.log(2)]


def test_products_are_exact_with_zeros() -> None:
    x = np.array([0.0, 2.0, 3.0])
    assert gradient(tn.prod, x) == [6, 0, 0]
    assert gradient(tn.prod, [0.0, 0.0, 3.0]) == [0, 0, 0]
    assert gradient(lambda x: tn.sum(tn.cumulative_prod(x)), x) == [1 + 2 + 6, 0, 0]
    second = tn.grad(lambda x: tn.grad(tn.prod)(x)[0])(tn.asarray(x))
    assert second.tolist() == [0, 3, 2]


def test_where_masks_what_it_does_not_select() -> None:
    x = [1.0, -1.0]
    assert gradient(lambda x: tn.sum(tn.where(x > 0, x * 3, 7.0)), x) == [3, 0]


def test_gradient_of_complex_numbers_descends() -> None:
    z = tn.asarray([1 + 2j, -3j])
    assert tn.grad(lambda z: tn.sum(tn.abs2(z)))(z).tolist() == [2 + 4j, -6j]
    mixed = tn.grad(lambda x: tn.sum(tn.abs2(x * (1 + 1j))))(tn.asarray([2.0]))
    assert (mixed.dtype, mixed.tolist()) == (tn.float64, [8.0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_have_the_dtype_of_their_argument(dtype: str) -> None:
    x = tn.astype(tn.asarray(np.linspace(0, 1, 5)), dtype)
    got = tn.grad(lambda x: tn.sum(tn.tanh(x) * x))(x)
    assert got.dtype == x.dtype
    exact = tn.grad(lambda x: tn.sum(tn.tanh(x) * x))(tn.astype(x, "float64"))
    assert np.allclose(np.asarray(got, float), np.asarray(exact), rtol=2e-2)


# the interface


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


def test_arguments_are_trees() -> None:
    layers = [Layer(tn.asarray(A), tn.asarray(V)), Layer(tn.asarray(B), tn.asarray(V))]

    def loss(layers: list[Layer], x: Any) -> Any:
        for layer in layers:
            x = tn.tanh(layer.weight @ x + layer.bias)
        return tn.sum(x * x)

    gradients = tn.grad(loss)(layers, tn.asarray(V))
    assert isinstance(gradients[1], Layer)
    assert gradients[0].weight.shape == (3, 3)
    check_gradients(loss, layers, V)


def test_argnums_and_aux() -> None:
    def loss(x: Any, y: Any) -> Any:
        return tn.sum(x * y), "aux"

    value, gradients = tn.value_and_grad(loss, argnums=(0, -1), has_aux=True)(2.0, np.ones(2))
    assert (value[0].item(), value[1]) == (4.0, "aux")
    assert (gradients[0].item(), gradients[1].tolist()) == (2.0, [2, 2])
    assert tn.grad(loss, argnums=1, has_aux=True)(2.0, np.ones(2))[1] == "aux"


def test_captured_arrays_are_constants() -> None:
    x = tn.asarray([3.0])
    assert tn.grad(lambda y: tn.sum(x * y))(x).tolist() == [3.0]
    assert tn.grad(lambda y, z: tn.sum(y * z))(x, x).tolist() == [3.0]


def test_functions_may_branch_on_values() -> None:
    def f(x: Any) -> Any:
        y = tn.exp(x)
        return tn.sum(y * y if y.item() > 2 else y)

    assert tn.grad(f)(0.0).item() == 1.0
    assert abs(tn.grad(f)(1.0).item() - 2 * np.exp(2)) < 1e-12


def test_gradients_of_gradients() -> None:
    def f(x: Any) -> Any:
        return tn.sum(x**4)

    x = tn.asarray([1.0, 2.0])
    second = tn.grad(lambda x: tn.sum(tn.grad(f)(x)))
    assert second(x).tolist() == [12.0, 48.0]
    assert tn.grad(lambda x: tn.sum(second(x)))(x).tolist() == [24.0, 48.0]
    assert tn.grad_of(tn.sum(tn.grad(f)(x)), x).tolist() == [12.0, 48.0]


def test_vmap_and_grad_compose() -> None:
    def f(w: Any, x: Any) -> Any:
        return tn.sum(tn.sin(w @ x))

    w, rows = tn.asarray(A), tn.asarray(B)
    each = tn.vmap(tn.grad(f), in_axes=(None, 0))(w, rows)
    alone = [np.asarray(tn.grad(f)(w, row)) for row in rows]
    assert np.allclose(np.asarray(each), alone)
    total = tn.grad(lambda w: tn.sum(tn.vmap(f, in_axes=(None, 0))(w, rows)))(w)
    assert np.allclose(np.asarray(total), np.sum(alone, axis=0))


def test_vjp_and_jvp_are_adjoint() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"a": tn.sin(x) @ y, "b": tn.sum(x)}

    value, pull = tn.vjp(f, A, V)
    assert set(value) == {"a", "b"}
    by_x, by_y = pull({"a": V, "b": np.float64(2)})
    _, tangent = tn.jvp(f, (A, V), (B, V))
    left = np.sum(np.asarray(by_x) * B) + np.sum(np.asarray(by_y) * V)
    right = np.sum(np.asarray(tangent["a"]) * V) + 2 * tangent["b"].item()
    assert abs(left - right) < 1e-12


def test_stop_gradient_is_a_constant() -> None:
    assert gradient(lambda x: tn.sum(x * tn.stop_gradient(x)), [3.0]) == [3.0]


def test_assignments_are_rebinding() -> None:
    def f(x: Any, y: Any) -> Any:
        x[1:] = y * y
        x[0] += y[0]
        x[tn.asarray([2, 2])] = y
        return tn.sum(x * x * x)

    check_gradients(f, V, V[:2], order=2)


def test_gathers_add_what_they_take_twice() -> None:
    table = tn.zeros((10, 2))
    rows = tn.asarray([8, 0, 8])
    got = tn.grad(lambda t: tn.sum(tn.take(t, rows, axis=0)))(table)
    assert np.flatnonzero(np.asarray(got)[:, 0]).tolist() == [0, 8]
    assert got[8].tolist() == [2, 2]
    check_gradients(lambda x: x[tn.asarray([0, -1]), tn.asarray([[1], [1]])], A)


@pytest.mark.parametrize("reverse", [False, True])
def test_carries_that_are_rows_need_no_second_scan(reverse: bool) -> None:
    rows = tn.asarray(np.random.default_rng(2).uniform(0.5, 1, (20, 3)))

    def loss(start: tn.Array, w: tn.Array) -> tn.Array:
        def step(carry: Any, x: tn.Array) -> tuple[Any, Any]:
            a, b = carry
            new = tn.tanh(w * a + x), b * a
            return new, (new[1], new[0], x * b)

        last, outputs = tn.scan(step, (start, start + 1), rows, reverse=reverse)
        return sum((tn.sum(x * x) for x in (*last, *outputs)), start=tn.asarray(0.0))

    given = tn.asarray([0.3, 0.7, 0.2]), tn.asarray([0.5, 0.6, 0.9])
    check_gradients(loss, *given, order=2)
    value, gradients = tn.value_and_grad(loss, argnums=(0, 1))(*given)
    text = tn.explain(value, *gradients, stage="scheduled")
    assert text.count("call: scan") == 2


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_has_a_reverse_scan(reverse: bool) -> None:
    def f(w: Any, start: Any, rows: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            state, count = carry
            state = tn.tanh(w @ state + row)
            return (state, count + 1), (tn.sum(state * row), state[0])

        (state, _), outputs = tn.scan(step, (start, 0), rows, reverse=reverse)
        return state, outputs[0]

    check_gradients(f, A, V, B)
    rows = np.concatenate([B, A, B])
    check_gradients(lambda w: tn.sum(f(w, V, rows)[0]), A, order=2)


def test_cond_differentiates_the_branch_that_it_takes() -> None:
    def f(x: Any, y: Any, take: Any) -> Any:
        return tn.cond(take > 0, lambda x: tn.sin(x) * y, lambda x: x * x * x, x)

    check_gradients(lambda x, y: f(x, y, tn.asarray(1.0)), V, V + 1, order=2)
    check_gradients(lambda x, y: f(x, y, tn.asarray(-1.0)), V, V + 1, order=2)


def test_second_derivative_of_a_likelihood() -> None:
    def likelihood(factor: Any, x: Any) -> Any:
        matrix = factor @ factor.T + tn.eye(3)
        return x @ tn.linalg.solve(matrix, x) + tn.linalg.slogdet(matrix)[1]

    check_gradients(likelihood, A, V, order=2)


def test_storage_kinds_are_differentiated_by_their_components() -> None:
    def product(data: Any, x: Any) -> Any:
        indices, indptr = tn.asarray([0, 2, 1]), tn.asarray([0, 2, 2, 3])
        matrix = tn.csr(data, indices, indptr, (3, 3))
        return matrix @ x, tn.diagonal_matrix(data) @ tn.linalg.solve(tn.diagonal_matrix(x), x * x)

    check_gradients(product, V, V, order=2)
    diagonal = tn.diagonal_matrix(tn.asarray(V))
    assert tn.grad(lambda d: tn.sum(d @ tn.asarray(V)))(diagonal).storage == "diagonal_matrix"


# pending graphs and history


def test_gradient_of_a_recursion_over_trees() -> None:
    def build(depth: int, rng: Any) -> Any:
        return rng.integers(3) if depth == 0 else [build(depth - 1, rng) for _ in range(2)]

    trees = [build(depth, np.random.default_rng(depth)) for depth in (1, 2, 3)]

    @tn.function
    def cell(w: Any, left: Any, right: Any) -> Any:
        return tn.tanh(w @ (left * right + left))

    def encode(tree: Any, w: Any, table: Any) -> Any:
        if not isinstance(tree, list):
            return table[int(tree)]
        return cell(w, encode(tree[0], w, table), encode(tree[1], w, table))

    def loss(w: Any, table: Any) -> Any:
        total = 0.0
        for tree in trees:
            total = total + tn.sum(encode(tree, w, table))
        return total

    check_gradients(loss, A, B)
    w, table = tn.asarray(A), tn.asarray(B)
    pending = tn.grad_of(loss(w, table), [w, table])
    for got, expected in zip(pending, tn.grad(loss, argnums=(0, 1))(w, table), strict=True):
        assert np.allclose(np.asarray(got), np.asarray(expected))


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_equal_calls_have_one_derivative() -> None:
    w = tn.asarray(RNG.standard_normal((8, 8)))

    @tn.function
    def layer(x: Any) -> Any:
        return tn.tanh(w @ x)

    xs = [tn.asarray(row) for row in RNG.standard_normal((600, 8))]
    loss = tn.sum(tn.stack([layer(x) for x in xs]))
    gradients = tn.grad_of(loss, xs)
    with tn.profile() as p:
        tn.eval(loss, *gradients)
        loss.wait()
    assert p.batches > 0
    assert p.launches < 100
    single = tn.grad(lambda x: tn.sum(tn.tanh(w @ x)))(xs[5])
    assert np.allclose(gradients[5].tolist(), single.tolist())


def test_history_that_is_gone_is_an_error() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x * x
    y.tolist()
    with pytest.raises(RunError, match=r"multiply.*is computed.*\n.*\n.*tn.watch"):
        tn.grad_of(tn.sum(x * y), x)


def test_earlier_computed_array_is_a_constant() -> None:
    data = (tn.asarray([1.0, 2.0]) * 3).wait()
    w = tn.asarray([1.0, 1.0])
    assert tn.grad_of(tn.sum(w * data), w).tolist() == [3.0, 6.0]


def test_watched_arrays_keep_history() -> None:
    x = tn.watch(tn.asarray([1.0, 2.0]))
    y = x * x
    y.tolist()
    loss = tn.sum(x * y)
    assert loss.item() == 9.0
    assert tn.grad_of(loss, x).tolist() == [3.0, 12.0]
    tn.watch(y)
    assert tn.grad_of(tn.sum(y * 2), x).tolist() == [0.0, 0.0]


def test_kept_history_is_not_overwritten() -> None:
    x = tn.watch(tn.asarray(np.arange(4.0)))
    y = tn.asarray(np.ones(4)) * 2
    y.wait()
    y[1:] = x[1:] * y[:3]
    y[0] = x[3]
    y *= x
    assert y.tolist() == [0.0, 2.0, 8.0, 18.0]
    assert tn.grad_of(tn.sum(y), x).tolist() == [3.0, 4.0, 8.0, 12.0]


def test_values_below_kept_history_are_not_overwritten() -> None:
    x = tn.watch(tn.asarray(np.ones(4)))
    y = tn.asarray(np.arange(4.0)) + 0.0  # not made of x: it is computed again from its leaf
    z = x * y
    del y
    assert z.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert tn.grad_of(tn.sum(z * z), x).tolist() == [0.0, 2.0, 8.0, 18.0]


STATEMENTS = (
    "x[1:] = x[:-1] * y[1:]",
    "y[2] = x[3]",
    "x += tn.sin(y)",
    "y *= 0.5",
    "y[tn.asarray([1, 1, 3])] = x[:3]",
    "x = tn.where(x > 0.3, x * y, x)",
    "y = tn.concat([x[2:], y[:2]])",
)


@pytest.mark.parametrize("seed", range(12))
def test_reads_between_change_no_gradient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = rng.choice(STATEMENTS, 8).tolist()
    reads = ["x.tolist()", "y.tolist()", "None"]
    read_lines = [line for one in lines for line in (one, str(rng.choice(reads)))]

    def program(statements: list[str]) -> Any:
        def loss(w: Any) -> Any:
            names = {"tn": tn, "x": w * 1.0, "y": tn.asarray(np.arange(4.0)) + 0.0}
            exec("\n".join(statements), names)
            return tn.sum(names["x"] * names["y"])

        return loss

    start = rng.uniform(0.1, 0.9, 4)
    expected = np.asarray(tn.grad(program(lines))(start))
    assert np.allclose(np.asarray(tn.grad(program(read_lines))(start)), expected, rtol=1e-12)
    w = tn.watch(tn.asarray(start))
    loss = program(read_lines)(w).wait()
    assert np.allclose(np.asarray(tn.grad_of(loss, w)), expected, rtol=1e-12)


def test_steps_of_training_keep_no_history() -> None:
    w = tn.watch(tn.asarray(A))
    x = tn.asarray(B)
    for _ in range(4):
        loss = tn.sum((w @ x) ** 2)
        w -= 0.01 * tn.grad_of(loss, w)
        tn.watch(w)
        w.wait()
        assert tn._native.node_of(w).inputs == ()


def test_gradients_keep_no_history_of_their_arguments() -> None:
    w = tn.asarray(A)
    for _ in range(3):
        value, got = tn.value_and_grad(lambda w: tn.sum(tn.exp(w)))(w)
        w = w - 0.01 * got
        tn.eval(value, w)
        w.wait()
        assert not tn._native.node_of(w).is_made_of_watched
        assert tn._native.node_of(w).inputs == tn._native.node_of(value).inputs == ()


def test_update_of_weights_is_in_place() -> None:
    w = tn.asarray(RNG.standard_normal((64, 64)))
    x = tn.asarray(RNG.standard_normal((64, 64)))

    def step() -> None:
        nonlocal w
        w -= 0.001 * tn.grad(lambda w: tn.sum(tn.tanh(w @ x)))(w)
        w.wait()

    for _ in range(6):
        step()
    with tn.profile() as p:
        step()
    assert p.copies == 0


# kernels


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_value_and_gradient_are_one_kernel() -> None:
    x = tn.asarray(np.linspace(0.1, 2, 1_000_000))
    compute = tn.value_and_grad(lambda x: tn.sum(tn.sin(x) * tn.exp(-x * x)))
    value, got = compute(x)
    with tn.profile() as p:
        tn.eval(value, got)
        value.wait()
        got.wait()
    assert (p.kernels, p.temporaries) == (1, 0)
    values = np.asarray(x)
    expected = (np.cos(values) - 2 * values * np.sin(values)) * np.exp(-values * values)
    assert np.abs(np.asarray(got) - expected).max() < 1e-14


def test_traced_gradients_are_cached() -> None:
    traces = []

    def loss(x: Any) -> Any:
        traces.append(x)
        return tn.sum(tn.sin(x) * x)

    step = tn.function(tn.value_and_grad(loss))
    for at in range(3):
        value, got = step(tn.asarray([1.0 + at, 2.0]))
    assert len(traces) == 1
    assert np.allclose(got.tolist(), np.sin([3.0, 2.0]) + [3.0, 2.0] * np.cos([3.0, 2.0]))
    assert np.isclose(value.item(), 3 * np.sin(3) + 2 * np.sin(2))


def test_vjp_in_a_traced_function_is_differentiated() -> None:
    def slope(x: Any) -> Any:
        return tn.vjp(lambda y: y**3, x)[1](tn.ones_like(x))[0]

    x = tn.asarray([1.0, 2.0])
    for f in (slope, tn.function(slope), tn.vmap(slope)):
        assert tn.grad(lambda x, f=f: tn.sum(f(x)))(x).tolist() == [6.0, 12.0]


# errors


def test_operation_without_derivative_names_its_line() -> None:
    def f(x: Any) -> Any:
        return tn.while_loop(lambda carry: carry < 10, lambda carry: carry * x, x)

    with pytest.raises(UnsupportedError, match=r"it has no derivative in reverse, and .*\.py:\d+"):
        tn.grad(f)(2.0)


def test_explain_lists_what_a_derivative_did_not_go_through() -> None:
    x = tn.asarray([1.5, 2.5])

    def f(x: Any) -> Any:
        whole = tn.astype(tn.astype(x, tn.int32), tn.float64)
        return tn.sum(x * tn.floor(x) * whole + tn.stop_gradient(x))

    text = tn.explain(tn.grad(f)(x), stage="expression")
    assert "not differentiated: floor" in text
    assert "whose derivative is 0" in text
    assert re.search(r"not differentiated: astype at .*\.py:\d+, whose result is int32", text)
    assert "not differentiated: stop_gradient" in text
    assert "not differentiated" not in tn.explain(tn.grad(lambda x: tn.sum(x * x))(x))
    zero = tn.grad_of(tn.sum(tn.round(x)), x)
    assert "not differentiated: round" in tn.explain(zero, stage="expression")


def test_functions_of_python_have_no_derivative() -> None:
    @tn.op(reference=np.hypot, dtypes="real_floating")
    def distance(x: Any, y: Any) -> Any:
        """Length."""

    with pytest.raises(UnsupportedError, match="distance: it has no derivative"):
        tn.grad(lambda x: tn.sum(distance(x, 1.0)))(V)


def test_own_operations_state_their_derivatives() -> None:
    @tn.op(
        reference=np.hypot,
        dtypes="real_floating",
        partials=(lambda r, x, y: x / r, lambda r, x, y: y / r),
    )
    def distance(x: Any, y: Any) -> Any:
        """Length."""

    check_gradients(lambda x, y: distance(x, y), V, V + 1, order=2)

    @tn.op(
        reference=lambda x, *, by: x[::by],
        shape=lambda x, by: (x.shape[0] // by,),
        dtype="float64",
        vjp=lambda g, y, x, by: (tn.reshape(tn.stack([g, g * 0], axis=1), x.shape),),
    )
    def every(x: Any, *, by: int) -> Any:
        """Every other element."""

    check_gradients(lambda x: every(x, by=2), np.arange(4.0))


def test_own_element_rules_have_one() -> None:
    @tn.op
    def swish(x: Any, slope: Any) -> Any:
        return x * tn.sigmoid(slope * x)

    check_gradients(lambda x, slope: swish(x, slope), V, np.array(0.5), order=2)
    check_gradients(lambda x: swish(x, 2), V)


def test_reading_values_is_no_silent_constant() -> None:
    with pytest.raises(UnsupportedError, match="reads values"):
        tn.grad(lambda x: tn.sum(tn.full((2,), x)))(1.0)
    with pytest.raises(UnsupportedError, match="reads values"):
        tn.grad(lambda x: tn.sum(tn.unique_values(x)))(V)
    with pytest.raises(UnsupportedError, match="reads values"):
        tn.grad(lambda x: tn.sum(tn.asarray([x, x])))(V)
    with pytest.raises(UnsupportedError, match=r"np.vander: .*reads values"):
        tn.grad(lambda x: tn.sum(tnp.vander(x)))(V)
    constant = tn.grad(lambda x: tn.sum(x * tn.asarray([tn.stop_gradient(x)])))(V)
    assert np.allclose(np.asarray(constant), V)


def test_arguments_must_be_floating() -> None:
    with pytest.raises(DTypeError, match="no derivative by int64"):
        tn.grad(lambda x: tn.sum(x * 1.0))(tn.asarray([1]))
    with pytest.raises(DTypeError, match="no derivative by int64"):
        tn.watch(tn.asarray([1]))
    with pytest.raises(DTypeError, match="str has no derivative"):
        tn.grad(lambda x: x)("x")


def test_result_must_be_one_real_number() -> None:
    with pytest.raises(ShapeError, match="not one real number"):
        tn.grad(lambda x: x * x)(V)
    with pytest.raises(ShapeError, match="not one real number"):
        tn.grad(lambda x: x * 1j)(1.0)
    with pytest.raises(ShapeError, match="another shape"):
        tn.vjp(lambda x: x, tn.asarray(V))[1](np.ones(2))


def test_gradient_by_an_unreached_array_is_zero_or_an_error() -> None:
    x, y = tn.asarray(V), tn.asarray(V)
    loss = tn.sum(x * tn.astype(tn.astype(y, "int64"), "float64"))
    assert tn.grad_of(loss, {"x": x, "y": y})["y"].tolist() == [0, 0, 0]
    with pytest.raises(RunError, match="does not depend on array 1"):
        tn.grad_of(loss, [x, y], missing="error")
    with pytest.raises(ValueError, match="neither"):
        tn.grad_of(loss, x, missing="none")


@pytest.mark.cpu
def test_views_and_windows_are_not_watched() -> None:
    with pytest.raises(DTypeError, match="view"):
        tn.watch(tn.asarray(A)[0])
    with pytest.raises(DTypeError, match="view"):
        tn.watch(tn.wrap(np.zeros(2)))
