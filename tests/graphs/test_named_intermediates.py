"""A name costs nothing: a notebook in which each intermediate has a name is computed as the same
expressions without names, and to ask for every name later costs at most as much again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph

N, K = 120, 40


class Notebook(NamedTuple):
    """Cells, one assignment each; the last one is asked for."""

    name: str
    cells: tuple[str, ...]
    bitwise: bool
    """Whether all rules that fire are: then the bits are equal, else close."""


NOTEBOOKS = (
    Notebook(
        "ridge",
        (
            "xt = x.T",
            "gram = xt @ x",
            "regular = gram + 2.0 * identity",
            "inverse = tn.linalg.inv(regular)",
            "moments = xt @ y",
            "weights = inverse @ moments",
            "fit = x @ weights",
            "residual = y - fit",
            "squares = residual * residual",
            "loss = tn.sum(squares)",
        ),
        bitwise=False,
    ),
    Notebook(
        "kalman",
        (
            "predicted = f @ state",
            "moved = f @ p",
            "spread = moved @ f.T",
            "covariance = spread + q",
            "seen = h @ covariance",
            "both = seen @ h.T",
            "innovation_covariance = both + r",
            "inverse = tn.linalg.inv(innovation_covariance)",
            "cross = covariance @ h.T",
            "gain = cross @ inverse",
            "expected = h @ predicted",
            "innovation = z - expected",
            "correction = gain @ innovation",
            "updated = predicted + correction",
        ),
        bitwise=False,
    ),
    Notebook(
        "softmax",
        (
            "scaled = x / 8.0",
            "largest = tn.max(scaled, axis=1, keepdims=True)",
            "shifted = scaled - largest",
            "powers = tn.exp(shifted)",
            "total = tn.sum(powers, axis=1, keepdims=True)",
            "share = powers / total",
            "logs = tn.log(share)",
            "terms = share * logs",
            "entropy = tn.sum(terms, axis=1)",
            "mean = tn.mean(entropy)",
        ),
        bitwise=True,
    ),
    Notebook(
        "stencil",
        (
            "left = x[:, :-2]",
            "middle = x[:, 1:-1]",
            "right = x[:, 2:]",
            "outer = left + right",
            "bend = outer - 2.0 * middle",
            "step = 0.1 * bend",
            "moved = middle + step",
            "clipped = tn.clip(moved, -1.0, 1.0)",
        ),
        bitwise=True,
    ),
    Notebook(
        "gaussian density",
        (
            "centred = state - mu",
            "spread = f @ f.T",
            "sigma = spread + identity",
            "inverse = tn.linalg.inv(sigma)",
            "whitened = inverse @ centred",
            "distance = centred @ whitened",
            "volume = tn.linalg.det(sigma)",
            "log_volume = tn.log(volume)",
            "exponent = -0.5 * (distance + log_volume)",
            "density = tn.exp(exponent)",
        ),
        bitwise=False,
    ),
)


def inputs() -> dict[str, Any]:
    generator = np.random.default_rng(7)
    shapes = {
        "x": (N, K),
        "y": (N,),
        "f": (K, K),
        "p": (K, K),
        "q": (K, K),
        "h": (8, K),
        "r": (8, 8),
        "state": (K,),
        "mu": (K,),
        "z": (8,),
    }
    values = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    values["r"] += 50 * np.eye(8)
    values["identity"] = np.eye(K)
    return {"tn": tn, **{name: tn.asarray(array).wait() for name, array in values.items()}}


def run_cells(cells: tuple[str, ...]) -> dict[str, Any]:
    """Run the cells; return the names that they bind."""
    scope = inputs()
    given = {*scope}
    for cell in cells:
        exec(cell, scope)
    return {name: scope[name] for name in scope if name not in given and name != "__builtins__"}


def without_names(cells: tuple[str, ...]) -> tn.Array:
    """The result of the cells, when all names but its own are gone."""
    names = run_cells(cells)
    return names[cells[-1].split(" = ")[0]]


def counts(p: tn.profile) -> tuple[int, int]:
    return p.multiply_adds, p.temporaries


def evaluated_without_names(notebook: Notebook) -> tuple[np.ndarray, tuple[int, int]]:
    result = without_names(notebook.cells)
    with tn.profile() as p:
        result.wait()
    return np.asarray(result), counts(p)


@pytest.fixture(params=("auto", "1"))
def _tier(request: pytest.FixtureRequest) -> Iterator[None]:
    with tn.options(tier=request.param):
        yield


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.usefixtures("_tier")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebook_in_which_all_is_named_costs_what_it_costs_without_names(
    notebook: Notebook,
) -> None:
    expected, without = evaluated_without_names(notebook)
    for _ in range(3):  # new, planned, replayed
        names = run_cells(notebook.cells)
        *_, result = names.values()
        with tn.profile() as p:
            result.wait()
        multiply_adds, temporaries = counts(p)
        assert multiply_adds == without[0]
        assert temporaries <= without[1]
        if notebook.bitwise:
            assert np.asarray(result).tobytes() == expected.tobytes()
        np.testing.assert_allclose(result, expected, rtol=1e-9)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
@pytest.mark.parametrize("backwards", [False, True])
def test_asking_for_every_name_costs_at_most_as_much_again(
    notebook: Notebook, backwards: bool
) -> None:
    """As what is written costs: each name once more, by its own operation."""
    by_name = {}
    written = 0
    for number, cell in enumerate(notebook.cells, 1):
        name = cell.split(" = ")[0]
        operands = run_cells(notebook.cells[:number])
        for each in operands:
            if each != name:
                operands[each].wait()
        with tn.profile() as p:
            by_name[name] = np.asarray(operands[name])
        written += p.multiply_adds
    names = run_cells(notebook.cells)
    *_, result = names.values()
    with tn.profile() as p:
        result.wait()
        for name in [*names][:: -1 if backwards else 1]:
            names[name].wait()
    assert p.multiply_adds <= 2 * written
    for name, expected in by_name.items():
        np.testing.assert_allclose(names[name], expected, rtol=1e-9, atol=1e-12)
    if notebook.bitwise:
        assert all(np.asarray(names[name]).tobytes() == by_name[name].tobytes() for name in names)


def vectors() -> tuple[tn.Array, tn.Array, tn.Array]:
    generator = np.random.default_rng(3)
    return tuple(
        tn.asarray(generator.standard_normal(shape)).wait() for shape in ((90, 90), (90, 90), (90,))
    )


def test_named_product_is_passed_through_once_then_stored() -> None:
    a, b, u = vectors()
    product = a @ b
    costs = []
    for _ in range(3):
        with tn.profile() as p:
            (product @ u).wait()
        costs.append(p.multiply_adds)
    assert costs == [2 * 90**2, 90**3 + 90**2, 90**2]
    with tn.profile() as p:
        product.wait()
    assert p.multiply_adds == 0


@pytest.mark.usefixtures("fused_multiply_add")
def test_named_intermediate_that_a_call_reads_keeps_its_value() -> None:
    a, b, _ = vectors()
    with tn.options(tier="1"):
        product = a @ b
        total = tn.sum(tn.sort(product, axis=1))
        total.wait()
        assert not _native.node_of(product).pending
        exponential = tn.exp(a)
        (exponential * 2).wait()
        assert _native.node_of(exponential).pending


def test_named_intermediate_that_is_small_beside_what_it_reads_keeps_its_value() -> None:
    a, *_ = vectors()
    with tn.options(tier="1"):
        moved = 0.9 * tn.sum(a, axis=0) + 1
        (moved * 2).wait()
        assert not _native.node_of(moved).pending
        first = tn.sort(a, axis=0)[0] * 2
        (first + 1).wait()
        assert not _native.node_of(first).pending


def test_values_below_a_pending_name_are_not_overwritten() -> None:
    with tn.options(tier="1"):
        for _ in range(3):
            x = tn.asarray(np.arange(1000.0)) * 1.5
            x.wait()
            named = x * 2
            y = named + x * 3
            del x  # only `named` and `y` read it
            y.wait()
            assert named.tolist() == (np.arange(1000.0) * 3).tolist()


def test_name_of_an_old_row_does_not_copy_the_matrix_that_is_updated_in_place() -> None:
    with tn.options(tier="1"):
        for _ in range(3):
            x = tn.asarray(np.arange(900.0).reshape(30, 30)) + 1
            x.wait()
            row = x[3] * 2
            x[3] = row
            with tn.profile() as p:
                x.wait()
            assert p.copies == 0
            expected = np.arange(900.0).reshape(30, 30) + 1
            assert row.tolist() == (2 * expected[3]).tolist()


@pytest.mark.parametrize("columns", [1, 33, 5000])
@pytest.mark.parametrize("made", ["copy", "product", "view"])
def test_small_named_value_that_an_update_writes_over_is_computed_again(
    made: str, columns: int
) -> None:
    rows = np.arange(400.0 * columns).reshape(400, columns) % 7
    for tier in ("auto", "1", "1"):
        with tn.options(tier=tier):
            named = tn.sum(tn.asarray(rows) + 1, axis=0)
            view = named[: columns // 2]
            x = tn.asarray(named if made == "copy" else named * 1 if made == "product" else view)
            x = tn.asarray(x, copy=True)
            x[: max(1, columns // 3)] = -1.0
            (x * 2).wait()
            expected = (rows + 1).sum(axis=0)
            assert named.tolist() == expected.tolist()
            assert view.tolist() == expected[: columns // 2].tolist()
            changed = expected[: columns // 2] if made == "view" else expected.copy()
            changed[: max(1, columns // 3)] = -1
            assert x.tolist() == changed.tolist()


def test_named_value_that_an_update_writes_over_is_computed_again() -> None:
    for tier in ("auto", "1", "1"):
        with tn.options(tier=tier):
            x = tn.asarray(np.arange(1000.0)).wait() * 2
            old = tn.asarray(x, copy=True)
            x[10:20] = 7.0
            assert tn.sum(x).item() == 2 * 499500 - 2 * sum(range(10, 20)) + 70
            assert old.tolist() == (np.arange(1000.0) * 2).tolist()


@pytest.mark.parametrize("size", [1, 10, 100_000])
@pytest.mark.parametrize("tier", ["auto", "0", "1"])
def test_named_value_whose_buffer_a_later_kernel_takes_is_computed_again(
    tier: str, size: int
) -> None:
    with tn.options(tier=tier):
        for _ in range(3):
            x = tn.asarray(np.arange(float(size)))
            named = tn.stack([x * x - x])
            moved = named + 1
            square = moved * moved - named
            # its kernel overwrites the leaf: what is computed before must not be lost by a failure
            between = tn.asarray(np.arange(7.0)) * -1
            tn.eval(moved, between, square)
            expected = np.arange(float(size)) ** 2 - np.arange(float(size))
            assert named.tolist() == [expected.tolist()]
            assert moved.tolist() == [(expected + 1).tolist()]
            assert square.tolist() == [((expected + 1) ** 2 - expected).tolist()]
            assert between.tolist() == (np.arange(7.0) * -1).tolist()


@pytest.mark.parametrize("size", [2, 17, 100_000])
@pytest.mark.parametrize("tier", ["auto", "0", "1"])
def test_base_of_a_named_update_that_stays_pending_is_computed_again(tier: str, size: int) -> None:
    numbers = np.arange(float(size)) % 5
    square = 2 * numbers * numbers
    expected = 1 - 2 * numbers
    expected[:-1] = (square + 46)[:-1]
    for _ in range(3):
        with tn.options(tier=tier):
            x = tn.asarray(numbers.copy())
            doubled = (x + x).wait()
            products = doubled * x
            (products + 0).wait()  # the next evaluation stores it
            named = doubled * -1 + 1
            named[:-1] = ((products + 23) * 2 - products)[:-1]
            del x  # a kernel takes its buffer: what is computed before is kept, for a failure
            selected = tn.where(named > 0, named, named * 2).wait()
            assert named.tolist() == expected.tolist()
            assert selected.tolist() == np.where(expected > 0, expected, expected * 2).tolist()


def test_named_product_that_an_update_writes_over_is_computed_again() -> None:
    a, b, _ = vectors()
    expected = np.asarray(a @ b)
    with tn.options(tier="1"):
        for _ in range(3):
            x = a @ b
            old = tn.asarray(x, copy=True)
            x[:, 10:20] = 7.0
            assert x[:, 15].tolist() == [7.0] * 90
            x.wait()
            assert old.tolist() == expected.tolist()


def test_function_of_the_user_below_a_name_is_called_once() -> None:
    calls = []

    def plus_one(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return x + 1

    @tn.op(reference=plus_one, shape=lambda x: x.shape)
    def counted(x: tn.Array) -> tn.Array:
        """The operand plus 1."""

    counting = tn.function(lambda x: counted(x) * 3)
    x = tn.asarray([1.0, 2.0])
    for function, factor in ((counted, 1), (counting, 3)):
        calls.clear()
        named = function(x) * 2
        assert (named + 1).tolist() == [4.0 * factor + 1, 6.0 * factor + 1]
        assert named.tolist() == [4.0 * factor, 6.0 * factor]
        assert len(calls) == 1


def test_loop_with_a_name_for_each_state_takes_linear_work() -> None:
    a, _, state = vectors()
    states = []
    with tn.profile() as p:
        for _ in range(50):
            state = a @ state / 100
            states.append(state)
            tn.sum(state * state).wait()
    assert p.multiply_adds <= 2 * 50 * 90**2
    assert all(np.isfinite(np.asarray(each)).all() for each in states)


@pytest.mark.parametrize("length", [0, 1, 1000, 200_000])
def test_loop_that_asks_for_one_of_two_named_states_does_not_grow(length: int) -> None:
    x, velocity = (tn.asarray(np.linspace(low, 1, length)) for low in (0, 2))
    expected_x, expected_velocity = np.asarray(x), np.asarray(velocity)
    sizes: list[int] = []
    for _ in range(40):
        velocity = velocity * 0.9 - x * 0.25
        x = x + velocity * 0.1
        with tn.options(tier=1):
            sizes.append(len(Graph.of([_native.node_of(x)])))
            x.wait()
        expected_velocity = expected_velocity * 0.9 - expected_x * 0.25
        expected_x = expected_x + expected_velocity * 0.1
    assert max(sizes[4:]) <= sizes[2]
    np.testing.assert_array_equal(np.asarray(x), expected_x)
    np.testing.assert_array_equal(np.asarray(velocity), expected_velocity)


def test_two_threads_that_read_through_a_name_see_equal_values() -> None:
    a, *_ = vectors()
    power = np.asarray(tn.exp(a)).tobytes()
    result = np.asarray(tn.exp(a) * 3 + 1).tobytes()
    with ThreadPoolExecutor(3) as threads:
        for _ in range(20):
            named = tn.exp(a)
            arrays = [named * 3 + 1, named * 3 + 1, named]
            found = list(threads.map(lambda each: np.asarray(each).tobytes(), arrays))
            assert found == [result, result, power]


def test_rules_apply_inside_a_function_in_which_all_is_named() -> None:
    a, b, u = vectors()

    @tn.function
    def solved(a: tn.Array, b: tn.Array, u: tn.Array) -> tn.Array:
        product = a @ b
        moved = product @ u
        inverse = tn.linalg.inv(a)
        return inverse @ moved

    with tn.profile() as inline:
        (tn.linalg.inv(a) @ (a @ b @ u)).wait()
    for _ in range(3):
        with tn.profile() as p:
            solved(a, b, u).wait()
        assert p.multiply_adds == inline.multiply_adds


def test_rules_apply_inside_the_step_of_a_loop_and_the_branch_of_a_condition() -> None:
    a, b, u = vectors()

    def step(carry: tuple[tn.Array, tn.Array], row: tn.Array) -> Any:
        matrix, vector = carry
        return (matrix, matrix @ matrix @ vector / 1e4), row

    with tn.profile() as p:
        tn.scan(step, (a, u), tn.zeros(5))[0][1].wait()
    assert p.multiply_adds == 5 * 2 * 90**2
    with tn.profile() as p:
        tn.cond(tn.sum(u) > 1e9, lambda a, b, u: u, lambda a, b, u: a @ b @ u, a, b, u).wait()
    assert p.multiply_adds == 2 * 90**2


def test_rules_do_not_look_across_the_boundary_of_a_call() -> None:
    a, b, u = vectors()
    product = tn.function(lambda a, b: a @ b)
    with tn.profile() as p:
        (product(a, b) @ u).wait()
    assert p.multiply_adds == 90**3 + 90**2
