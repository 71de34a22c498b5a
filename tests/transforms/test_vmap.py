"""tn.vmap: a function of one member as a function of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.errors import DTypeError, RunError, ShapeError, UnsupportedError
from tenfold.testing import assert_equal_bits


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class State:
    h: Any
    c: Any


def numbers(*shape: int, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return rng.standard_normal(shape).astype(dtype)


def line_below(function: Any) -> str:
    """The file and line of a function's first statement."""
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno + 1}"


def test_three_bundles_of_matrices_are_scaled_and_added_to_each() -> None:
    bundles = tn.reshape(tn.arange(48, dtype=tn.float64), (3, 4, 4))

    def scaled(matrix: tn.Array) -> tn.Array:
        norms = tn.sqrt(tn.sum(matrix * matrix, axis=0))
        return matrix / norms + tn.eye(4)

    found = np.asarray(tn.vmap(scaled)(bundles))
    for number, values in enumerate(np.arange(48.0).reshape(3, 4, 4)):
        wanted = values / np.sqrt((values * values).sum(axis=0)) + np.eye(4)
        assert_equal_bits(found[number], wanted)


def test_members_lie_along_any_axis_and_arguments_may_be_shared() -> None:
    x, y = numbers(4, 3), numbers(4)
    found = tn.vmap(lambda a, b: a * b, in_axes=(1, None))(tn.asarray(x), tn.asarray(y))
    assert_equal_bits(found, np.stack([x[:, i] * y for i in range(3)]))
    found = tn.vmap(lambda a, b: a * b, in_axes=(-1, None), out_axes=-1)(x, y)
    assert_equal_bits(found, x * y[:, None])


def test_axes_are_given_as_trees() -> None:
    weights = {"w": tn.asarray(numbers(3, 2)), "b": tn.asarray(numbers(2))}
    x = tn.asarray(numbers(5, 2))

    def layer(given: dict[str, tn.Array], x: tn.Array) -> dict[str, Any]:
        h = given["w"] @ x
        return {"out": (h, tn.sum(x)), "bias": given["b"]}

    found = tn.vmap(layer, in_axes=(None, 0), out_axes={"out": (1, 0), "bias": None})(weights, x)
    assert found["bias"] is not None
    assert found["out"][0].shape == (3, 5)
    assert found["out"][1].shape == (5,)
    assert_equal_bits(found["bias"], weights["b"])
    per_axis = tn.vmap(layer, in_axes=({"w": None, "b": 0}, None), out_axes=0)
    assert per_axis(weights, x[0])["out"][0].shape == (2, 3)


def test_trees_of_every_sort_come_back_as_they_were_given() -> None:
    state = State(tn.asarray(numbers(3, 2)), [tn.asarray(numbers(3)), None])
    pair = Pair(state, (tn.asarray(numbers(3)),))
    found = tn.vmap(lambda given: given)(pair)
    assert isinstance(found, Pair)
    assert isinstance(found.left, State)
    assert found.left.c[1] is None
    assert_equal_bits(found.left.h, state.h)
    assert_equal_bits(found.right[0], pair.right[0])


def test_arguments_by_name_are_mapped_over_their_first_axis() -> None:
    x, y = numbers(3, 2), numbers(3)
    found = tn.vmap(lambda a, *, scale: a * scale)(x, scale=y)
    assert_equal_bits(found, x * y[:, None])


def test_captured_array_is_shared_and_computed_once() -> None:
    x, w = tn.asarray(numbers(6, 4)), tn.asarray(numbers(4, 4))
    shared = tn.exp(w)
    found = tn.vmap(lambda row: tn.sum(tn.log(shared) + row))(x)
    graph = Graph.of([_native.node_of(found)])
    shapes = {node.name: node.type.shape for node in graph.nodes}
    assert (shapes["exp"], shapes["log"], shapes["add"]) == ((4, 4), (4, 4), (6, 4, 4))
    assert [node for node in graph.nodes if node == _native.node_of(shared)]
    wanted = [np.asarray(tn.sum(tn.log(shared) + x[i])) for i in range(6)]
    assert_equal_bits(found, np.stack(wanted))


def test_a_result_that_depends_on_no_member_is_repeated_or_handed_on() -> None:
    x = tn.asarray(numbers(3, 2))
    assert tn.vmap(lambda row: tn.ones((2,)))(x).shape == (3, 2)
    assert tn.vmap(lambda row: tn.ones((2,)), out_axes=1)(x).shape == (2, 3)
    assert tn.vmap(lambda row: tn.ones((2,)), out_axes=None)(x).shape == (2,)
    assert tn.vmap(lambda row: 1.5)(x).tolist() == [1.5, 1.5, 1.5]


def test_vmap_of_vmap_maps_two_axes() -> None:
    a, b = numbers(3, 2), numbers(4, 2)

    def dot(x: tn.Array, y: tn.Array) -> tn.Array:
        return tn.sum(x * y)

    table = tn.vmap(tn.vmap(dot, in_axes=(None, 0)), in_axes=(0, None))
    wanted = [[np.asarray(tn.sum(tn.asarray(x) * tn.asarray(y))) for y in b] for x in a]
    assert_equal_bits(table(a, b), np.array(wanted))
    inner = tn.vmap(lambda x: tn.vmap(lambda y: tn.sum(x * y))(tn.asarray(b)))(tn.asarray(a))
    assert_equal_bits(inner, np.array(wanted))


def test_no_members_and_one_member() -> None:
    for length in (0, 1):
        found = tn.vmap(lambda row: (tn.sort(row), tn.sum(row)))(tn.zeros((length, 4)))
        assert [each.shape for each in found] == [(length, 4), (length,)]


@pytest.mark.usefixtures("fused_multiply_add")
def test_nothing_is_computed_before_a_result_is_asked_for() -> None:
    x = tn.asarray(numbers(3, 2))
    with tn.profile() as p:
        found = tn.vmap(lambda row: tn.exp(row) + 1)(x)
    assert p.launches == 0
    assert found.shape == (3, 2)


def test_the_mapped_function_keeps_its_name_and_text() -> None:
    @tn.vmap
    def double(x: tn.Array) -> tn.Array:
        """Twice x."""
        return x + x

    assert (double.__name__, double.__doc__) == ("double", "Twice x.")
    assert double(tn.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_assignments_inside_reach_no_argument() -> None:
    x = tn.asarray(numbers(3, 4))
    before = np.asarray(x).copy()

    def cleared(row: tn.Array) -> tn.Array:
        row[1:3] = tn.sum(row)
        row[0] += 1
        return row

    found = np.asarray(tn.vmap(cleared)(x))
    for number, values in enumerate(before):
        wanted = tn.asarray(values)
        wanted[1:3] = tn.sum(wanted)
        wanted[0] += 1
        assert_equal_bits(found[number], wanted)
    assert_equal_bits(x, before)


def test_no_result_is_a_name_of_an_argument() -> None:
    x, w = tn.asarray(numbers(3, 4)), tn.asarray(numbers(4))
    before, shared = np.asarray(x).copy(), np.asarray(w).copy()
    program = tn.vmap(lambda row, w: (row, w), in_axes=(0, None), out_axes=(0, None))
    for same in (*program(x, w), tn.vmap(lambda row: row[1:], in_axes=1)(x)):
        same += 1

    def changed(row: tn.Array, w: tn.Array) -> tn.Array:
        w *= row
        return w

    assert_equal_bits(tn.vmap(changed, in_axes=(0, None))(x, w), before * shared)
    assert_equal_bits(x, before)
    assert_equal_bits(w, shared)


def test_a_change_of_an_array_that_was_not_given_is_refused_and_taken_back() -> None:
    total, x = tn.asarray(numbers(2)), tn.asarray(numbers(3, 2))
    before = np.asarray(total).copy()

    def adds(row: tn.Array) -> tn.Array:
        nonlocal total
        total += row
        return row * 2

    for mapped, given in ((tn.vmap(adds), x), (tn.vmap(tn.vmap(adds)), x[None])):
        with pytest.raises(RunError, match="changes an array that it was not given") as caught:
            mapped(given)
        assert "remedy: return the new value" in str(caught.value)
        assert_equal_bits(total, before)

    def fails(row: tn.Array) -> tn.Array:
        total[0] = row[1]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tn.vmap(fails)(x)
    assert_equal_bits(total, before)


def test_a_traced_function_is_told_what_a_map_inside_reads() -> None:
    w, x = tn.asarray(numbers(2)), tn.asarray(numbers(3, 2))
    inside = tn.function(lambda x: tn.vmap(lambda row: tn.sum(w * row))(x))
    around = tn.vmap(tn.function(lambda row: tn.sum(w * row)))
    for factor in (1, 2):
        w *= factor
        for program in (inside, around):
            wanted = [np.asarray(tn.sum(w * x[i])) for i in range(3)]
            assert_equal_bits(program(x), np.array(wanted))


def test_a_shared_python_number_stays_weak() -> None:
    x = tn.asarray(numbers(3, 4, dtype="float32"))
    assert tn.vmap(lambda row, s: row * s, in_axes=(0, None))(x, 2.0).dtype == tn.float32


def test_members_on_the_reference_device_stay_there() -> None:
    x = tn.asarray(numbers(3, 4), device="reference")
    found = tn.vmap(lambda row: tn.sum(tn.exp(row)[tn.argsort(row)][:2]))(x)
    wanted = [tn.sum(tn.sort(tn.exp(x[i]))[:2]).item() for i in range(3)]
    assert (found.device, found.tolist()) == ("reference", wanted)


@tn.op(reference=np.hypot, dtypes="real_floating")
def distance(x: Any, y: Any) -> Any:
    """Length of (x, y)."""


@tn.op
def smooth_step(x: Any) -> Any:
    """3 x^2 - 2 x^3."""
    return x * x * (3 - 2 * x)


@tn.op(shape=lambda x: x.shape[:1], reference=lambda x: np.median(x, axis=1))
def row_median(x: Any) -> Any:
    """Median of each row."""


@tn.operator(shape=(2,), dtype=tn.float64)
def extremes(x: tn.Array) -> list[float]:
    """Smallest and largest."""
    values = x.tolist()
    return [min(values), max(values)]


def test_operations_of_users_have_batched_forms() -> None:
    x = numbers(3, 2, 4)

    def program(member: tn.Array) -> tuple[tn.Array, tn.Array, tn.Array]:
        medians = row_median(smooth_step(member))
        return distance(medians, member[:, 0]), extremes(member[0]), medians

    found = tn.vmap(program)(tn.asarray(x))
    for number, member in enumerate(x):
        for one, other in zip(found, program(tn.asarray(member)), strict=True):
            assert_equal_bits(np.asarray(one)[number], other)


@tn.op(
    shape=lambda x, *, rows: (rows, *x.shape[1:]),
    reference=lambda x, *, rows: np.sort(x, axis=0)[:rows],
    batch=lambda x, *, rows: tn.sort(x, axis=1)[:, :rows],
)
def smallest_rows(x: Any, *, rows: int) -> Any:
    """The smallest of each column."""


def test_a_batch_rule_of_a_user_makes_all_members_at_once() -> None:
    x = numbers(3, 5, 2)
    found = tn.vmap(lambda member: smallest_rows(member + 0, rows=2))(tn.asarray(x))
    graph = Graph.of([_native.node_of(found)])
    assert {node.name for node in graph.nodes} == {"leaf", "add", "sort", "index"}
    for number, member in enumerate(x):
        assert_equal_bits(np.asarray(found)[number], smallest_rows(member, rows=2))


def test_a_batch_rule_of_another_shape_is_refused() -> None:
    wrong = tn.op(shape=(2,), reference=lambda x: x[:2], batch=lambda x: x, name="firsts")
    firsts = wrong(lambda x: None)
    with pytest.raises(ShapeError, match=r"firsts: its batch rule .* shape \(4, 2\)"):
        tn.vmap(firsts)(tn.ones((4, 3)))
    with pytest.raises(ValueError, match="batch= is for operations with shape="):
        tn.op(batch=lambda x: x, name="more")(lambda x: x + 1)


def test_an_operator_without_a_batch_rule_maps_over_no_members() -> None:
    assert tn.vmap(extremes)(tn.zeros((0, 3))).shape == (0, 2)


def test_a_condition_on_a_member_names_its_line() -> None:
    def signed(x: tn.Array) -> tn.Array:
        return x if x > 0 else -x

    with pytest.raises(UnsupportedError) as caught:
        tn.vmap(signed)(tn.ones((3,)))
    assert line_below(signed) in str(caught.value)
    assert "tn.where" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tn.nonzero(x),
        lambda x: tn.unique_values(x),
        lambda x: x[x > 0],
        lambda x: tn.repeat(x, tn.astype(x, tn.int64)),
        lambda x: np.asarray(x),
        lambda x: x.tolist(),
        lambda x: range(tn.astype(tn.sum(x), tn.int64)),
        lambda x: tn.vmap(lambda y: y if y > 0 else -y)(x),
    ],
)
def test_value_dependent_branch_is_refused_with_its_line(function: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"test_vmap\.py:\d+ asks for a value"):
        tn.vmap(function)(tn.ones((3, 2)))


WRONG: list[tuple[Any, dict[str, Any], Any, type[Exception], str]] = [
    (lambda x: None, {}, (np.ones(3),), DTypeError, "the function returned None"),
    (lambda x: {"a": "b"}, {}, (np.ones(3),), DTypeError, r"a str, not an array, at \['a'\]"),
    (lambda x, y: x, {}, (np.ones(3), np.ones(4)), ShapeError, r"args\[0\] has 3, args\[1\] has 4"),
    (lambda x: x, {"in_axes": None}, (np.ones(3),), ShapeError, "no argument is mapped"),
    (lambda x: x, {"in_axes": 1}, (np.ones(3),), ShapeError, r"args\[0\]: axis 1 of an array of 1"),
    (lambda x: x, {"in_axes": (0, 0)}, (np.ones(3),), ShapeError, "2 axes for 1 positional"),
    (lambda x: x, {"in_axes": ({},)}, (np.ones(3),), ShapeError, "does not fit the structure"),
    (lambda x: x, {"in_axes": "0"}, (np.ones(3),), TypeError, "not an int, None or a tuple"),
    (lambda x: x, {"in_axes": (0.5,)}, (np.ones(3),), TypeError, "0.5 is not an axis"),
    (lambda x: x, {"out_axes": 2}, (np.ones(3),), ShapeError, "out_axes: axis 2"),
    (lambda x: x, {"out_axes": None}, (np.ones(3),), ShapeError, "differs from member to member"),
    (lambda x: x, {"out_axes": (0, 0)}, (np.ones(3),), ShapeError, "out_axes: .* does not fit"),
    (lambda x: x, {}, ("abc",), DTypeError, r"args\[0\] is a str, not an array"),
    (lambda x: x, {}, (2.0,), ShapeError, "None: it has no members"),
    (lambda x: x["h"], {}, ({"h": [1.0]},), ShapeError, r"args\[0\]\['h'\]\[0\]"),
    (3, {}, (np.ones(3),), TypeError, "int is not a function"),
]


@pytest.mark.parametrize(("function", "axes", "args", "error", "text"), WRONG)
def test_a_mistake_says_what_is_wrong(
    function: Any, axes: dict[str, Any], args: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        tn.vmap(function, **axes)(*args)
    assert "tn.vmap" in str(caught.value)


def test_a_member_that_fails_names_the_users_line() -> None:
    def solved(matrix: tn.Array) -> tn.Array:
        return tn.linalg.inv(matrix)

    found = tn.vmap(solved)(tn.asarray(np.stack([np.eye(2), np.zeros((2, 2))])))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        found.wait()
    assert line_below(solved) in str(caught.value)
