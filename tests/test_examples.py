"""The examples, small: what they compute is what NumPy computes, and they print and draw."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import batch_sizes
import comparison
import tenfold as tn
from fits import gaussian_process, logistic, pendulum
from graphs import message_passing, real_graphs
from per_sample import adaptive_steps, particles
from trees import syntax_trees, training, tree_lstm

FUNCTION = """
def f(x, *rest, key=1):
    if x in {1, 2, 3, 4, 5, 6, 7}:
        return [g(x)[0] for x in rest if x]
    print(x, key, "a", "b", "c")
"""
MODULES = [batch_sizes, real_graphs, syntax_trees]
ROOT = Path(comparison.__file__).parent


@pytest.fixture
def forest() -> list[syntax_trees.Tree]:
    whole = syntax_trees.tree_of(ast.parse(FUNCTION).body[0])
    return [*whole]


@pytest.fixture
def few_graphs() -> list[real_graphs.Graph]:
    star = [("hub", f"leaf {number}") for number in range(9)]
    return [real_graphs.Graph.of([("a", "b"), ("b", "c"), ("c", "a")]), real_graphs.Graph.of(star)]


SETTINGS = [(threads, limit) for threads in (1, 2, 7) for limit in (0, 1, 7, 64)]
"""Threads, and how many calls a batch may have; 0 is any number."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", tree_lstm.MODELS)
@pytest.mark.parametrize(("threads", "limit"), SETTINGS)
def test_trees_have_the_states_of_numpy(
    name: str, threads: int, limit: int, forest: list[syntax_trees.Tree]
) -> None:
    weights = tree_lstm.weights(syntax_trees.labels(forest), 8)
    own, other = (make(weights) for make in tree_lstm.MODELS[name])
    with tn.options(threads=threads, batch_limit=limit):
        roots = comparison.computed([own(tree) for tree in forest])
    for root, tree in zip(roots, forest, strict=True):
        np.testing.assert_allclose(np.asarray(root), other(tree), rtol=0, atol=1e-5)


def test_absent_children_fill_up_to_a_power_of_two() -> None:
    lengths = [len(tree_lstm.padded([1] * count, 0)) for count in range(10)]
    assert lengths == [0, 1, 2, 4, 4, 8, 8, 8, 8, 16]


def test_trees_of_the_library_are_chosen_alike() -> None:
    found = [str(tree) for tree in syntax_trees.trees(3)]
    assert found == [str(tree) for tree in syntax_trees.trees(3)]
    assert all(tree.startswith(("FunctionDef(", "AsyncFunctionDef(")) for tree in found)


@pytest.mark.parametrize(("threads", "limit"), SETTINGS)
def test_messages_are_those_of_numpy(
    threads: int, limit: int, few_graphs: list[real_graphs.Graph]
) -> None:
    layers = message_passing.layers(2, 6)
    own, other = (
        message_passing.message_passing(layers),
        message_passing.numpy_message_passing(layers),
    )
    for graph, states in zip(few_graphs, message_passing.beginnings(few_graphs, 6), strict=True):
        with tn.options(threads=threads, batch_limit=limit):
            ends = comparison.computed(own(graph, [*map(tn.asarray, states)]))
        for end, expected in zip(ends, other(graph, states), strict=True):
            np.testing.assert_allclose(np.asarray(end), expected, rtol=0, atol=1e-5)


def test_graphs_of_networkx_come_first() -> None:
    pytest.importorskip("networkx")
    assert [*map(len, real_graphs.social_graphs())] == [34, 77, 32]


def test_graphs_of_imports_are_undirected() -> None:
    graph = next(real_graphs.import_graphs())
    pairs = {(a, b) for a, others in enumerate(graph.neighbours) for b in others}
    assert pairs == {(b, a) for a, b in pairs}
    assert len(graph) >= real_graphs.LEAST


@pytest.mark.parametrize("solved", [adaptive_steps.solved, adaptive_steps.mapped])
def test_systems_take_steps_of_their_own(
    solved: Callable[[list[adaptive_steps.System]], list[adaptive_steps.Solution]],
) -> None:
    systems = adaptive_steps.systems(3, n=5, end=0.3)
    solutions = solved(systems)
    expected = [adaptive_steps.numpy_solve(system) for system in systems]
    assert [each.steps for each in solutions] == [each.steps for each in expected]
    assert len({each.steps for each in solutions}) > 1
    pairs = zip(adaptive_steps.states(solutions), adaptive_steps.states(expected), strict=True)
    for own, other in pairs:
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-10)


def bits_of_solutions() -> list[bytes]:
    solutions = adaptive_steps.solved(adaptive_steps.systems(4, n=5, end=0.2))
    return [state.tobytes() for state in adaptive_steps.states(solutions)]


def bits_of_particles() -> list[bytes]:
    places = particles.places(40)
    near, begin = particles.neighbours_of(places), [*map(tn.asarray, places)]
    found = comparison.computed(particles.tenfold_steps(begin, near, 2))
    return [np.asarray(place).tobytes() for place in found]


@pytest.mark.parametrize("bits", [bits_of_solutions, bits_of_particles])
def test_programs_have_the_same_bits_however_they_are_batched(
    bits: Callable[[], list[bytes]],
) -> None:
    found = []
    for threads, limit in [(1, 0), (7, 7)]:
        with tn.options(threads=threads, batch_limit=limit):
            found.append(bits())
    assert all(each == found[0] for each in found)


def test_a_solution_is_as_exact_as_was_asked() -> None:
    (system,) = adaptive_steps.systems(1, n=3, end=1.0)
    rough = adaptive_steps.numpy_solve(system)
    states, count = np.array([system.position, system.velocity]), 20_000
    for _ in range(count):  # Euler's steps, twice as small in their error as what is allowed
        x, v = states
        pull = np.roll(x, 1) + np.roll(x, -1) - 2 * x
        force = system.stiffness * (1 - x * x) * v - x + adaptive_steps.COUPLING * pull
        states = states + system.end / count * np.array([v, force])
    np.testing.assert_allclose(rough.position, states[0], rtol=0, atol=2e-2)


def test_particles_move_as_in_numpy() -> None:
    places = particles.places(40)
    near = particles.neighbours_of(places)
    assert len({*map(len, near)}) > 2
    expected = particles.numpy_steps(places, near, 2)
    found = comparison.computed(particles.tenfold_steps([*map(tn.asarray, places)], near, 2))
    np.testing.assert_allclose(np.array([*map(np.asarray, found)]), expected, rtol=0, atol=1e-12)


def test_neighbours_are_those_that_are_near() -> None:
    places = particles.places(60)
    far = particles.REACH + particles.ROOM
    for place, others in zip(places, particles.neighbours_of(places), strict=True):
        distances = np.hypot(*(places - place).T)
        assert sorted(others) == [*np.flatnonzero((distances < far) & (distances > 0))]


def test_training_finds_the_values_of_formulas() -> None:
    given = training.parameters(len(training.LABELS), 16)
    losses = [*training.train(given, 60, 24)]
    assert losses[-1] < 0.1 * losses[0]
    assert training.accuracy(given, 500) >= 0.99


def test_formulas_have_the_values_that_python_gives_them() -> None:
    texts = {"true": "True", "false": "False", "and": "({} and {})", "or": "({} or {})"}
    texts["not"] = "(not {})"

    def text(tree: syntax_trees.Tree) -> str:
        return texts[tree.label].format(*map(text, tree.children))

    forest, truths = next(training.batches(3, 50))
    assert [eval(text(tree)) for tree in forest] == [bool(each) for each in truths]


def test_the_pendulum_is_fitted_through_the_steps_of_its_solver() -> None:
    found, loss = pendulum.fit(pendulum.measured(0.02), 120)
    np.testing.assert_allclose(found, pendulum.TRUTH, atol=0.03)
    assert loss < 2 * 0.02**2


def test_the_gaussian_process_has_the_kernel_of_scikit_learn() -> None:
    """Of scikit-learn 1.9.1: `GaussianProcessRegressor(ConstantKernel(1) * RBF(1) +
    WhiteKernel(0.1), alpha=0)` fitted to the same points, its `log_marginal_likelihood_value_` and
    `exp(kernel_.theta)`.
    """
    found, likelihood = gaussian_process.fit(*gaussian_process.measured(40))
    assert np.isclose(likelihood, 27.95365375670491, rtol=1e-10)
    np.testing.assert_allclose(found, [0.92241965, 1.78448245, 0.0043817], rtol=1e-5)


def test_logistic_regression_finds_the_weights_of_its_model() -> None:
    x, y = logistic.samples(20_000, 5)
    *_, (w, loss) = logistic.train(x, y, 50)
    z = x @ np.asarray(w)
    np.testing.assert_allclose(x.T @ (1 / (1 + np.exp(-z)) - y) / len(x), 0, atol=0.01)
    np.testing.assert_allclose(np.asarray(w), np.linspace(-2, 2, 5), atol=0.3)
    assert loss < np.log(2)


@pytest.mark.parametrize(
    ("module", "arguments", "text"),
    [
        (training, ["--steps", "1", "--size", "4"], "new formulas are evaluated correctly"),
        (pendulum, ["--steps", "1"], "frequency"),
        (logistic, ["--count", "100", "--steps", "2"], "samples are right"),
        (gaussian_process, ["--count", "9"], "noise"),
    ],
)
def test_an_example_of_training_prints_what_it_found(
    module: ModuleType, arguments: list[str], text: str
) -> None:
    told = CliRunner().invoke(module.main, arguments)
    assert told.exit_code == 0, told.output
    assert text in told.output


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (tree_lstm, ["--count", "2", "--hidden", "4"]),
        (message_passing, ["--count", "1", "--hidden", "4"]),
        (adaptive_steps, ["--count", "2"]),
        (particles, ["--count", "30", "--steps", "1"]),
    ],
)
def test_an_example_prints_a_comparison_and_draws(
    module: ModuleType, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "TURNS", 1)
    file = tmp_path / "batches.svg"
    told = CliRunner().invoke(module.main, [*arguments, "--picture", str(file)])
    assert told.exit_code == 0, told.output
    assert "times as fast" in told.output
    assert ElementTree.parse(file).getroot().tag.endswith("svg")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_snippets_of_examples_run(module: ModuleType) -> None:
    assert doctest.testmod(module) == doctest.TestResults(0, len(snippets(module)))


def snippets(module: ModuleType) -> list[doctest.Example]:
    return [each for test in doctest.DocTestFinder().find(module) for each in test.examples]


RUN = [tree_lstm, training, message_passing, adaptive_steps, particles, pendulum, logistic]
RUN += [gaussian_process]


@pytest.mark.parametrize("module", RUN)
def test_a_page_says_how_an_example_is_run(module: ModuleType) -> None:
    folder = module.__name__.split(".")[0]
    page = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    assert f"python -m {module.__name__}" in page
    targets = [part.split(")")[0] for part in page.split("](")[1:]]
    assert all((ROOT / folder / target).exists() for target in targets)
