"""Rules of users: what fires, what is refused, and that they come to an end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.ops.arithmetic import add, subtract
from tenfold.ops.gemm import gemm
from tenfold.rewrite.driver import RewriteReport, rewrite
from tenfold.rewrite.rule import Match, RuleSet
from tenfold.rule_registry import active, optimise_graph, rewrite_lines
from tenfold.runtime.reference import Reference
from tenfold.testing import assert_equal_bits

x, y, z = tn.rules.variables("x y z")
pattern = tn.rules.pattern
A = tn.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]), device="reference")
B = tn.asarray(np.array([[0.5, -1.0], [7.0, 0.25]]), device="reference")


def graph_of(*arrays: tn.Array) -> Graph:
    return Graph.of([_native.node_of(array) for array in arrays])


def rewritten(array: tn.Array, *rules: tn.Rule) -> tuple[Graph, RewriteReport]:
    return rewrite(graph_of(array), RuleSet(rules))


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.pending]


@pytest.fixture(autouse=True)
def on_the_reference_device() -> Iterator[None]:
    with tn.options(device="reference"):
        yield


@pytest.fixture
def cube() -> Iterator[tn.Rule]:
    rule = tn.Rule("cube", x**3, x * x * x, exactness="fast")
    yield rule
    if rule in tn.rules.list():
        tn.rules.remove(rule)


def test_rule_of_a_user_fires_until_it_is_removed(cube: tn.Rule) -> None:
    tn.rules.add(cube)
    with tn.options(fast=True):
        assert names(optimise_graph(graph_of(A**3))[0]) == ["multiply", "multiply"]
        tn.rules.remove("cube")
        assert names(optimise_graph(graph_of(A**3))[0]) == ["pow"]


def test_rule_of_class_fast_fires_only_where_fast_is_asked_for(cube: tn.Rule) -> None:
    with tn.rules.using(cube):
        assert optimise_graph(graph_of(A**3))[1].counts == {}
        with tn.options(fast=True):
            assert optimise_graph(graph_of(A**3))[1].counts == {"cube": 1}


def test_rule_of_class_linear_algebra_is_switched_off_by_reassociate() -> None:
    rule = tn.Rule("right", (x @ y) @ z, x @ (y @ z), exactness="linear-algebra")
    with tn.rules.using(rule):
        assert optimise_graph(graph_of(A @ B @ A))[1].counts == {"right": 1}
        with tn.options(reassociate=False):
            assert optimise_graph(graph_of(A @ B @ A))[1].counts == {}


def test_nothing_is_rewritten_without_optimise() -> None:
    graph = graph_of(A * 1)
    with tn.options(optimise=False):
        assert optimise_graph(graph) == (graph, RewriteReport())


def test_rule_of_a_block_does_not_reach_another_thread(cube: tn.Rule) -> None:
    seen: list[bool] = []
    with tn.rules.using(cube):
        thread = threading.Thread(target=lambda: seen.append(cube in tn.rules.list()))
        thread.start()
        thread.join()
        assert cube in tn.rules.list()
    assert cube not in tn.rules.list()
    assert seen == [False]


def test_version_is_another_for_other_rules_and_the_same_for_the_same(cube: tn.Rule) -> None:
    before = tn.rules.version()
    with tn.rules.using(cube), tn.options(fast=True):
        assert tn.rules.version() != before
        inside = tn.rules.version()
    assert tn.rules.version() == before
    with tn.rules.using(cube), tn.options(fast=True):
        assert tn.rules.version() == inside


@pytest.mark.parametrize("wrong", [A, "x * 1", None])
def test_non_rule_is_refused(wrong: object) -> None:
    with pytest.raises(tn.errors.DTypeError, match="is not a rule"):
        tn.rules.add(wrong)  # type: ignore[arg-type]


def test_name_in_force_is_not_taken_twice() -> None:
    with pytest.raises(ValueError, match="'multiply-one' is in force already"):
        tn.rules.add(tn.Rule("multiply-one", x * 1, x))


def test_removing_a_rule_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match="rule 'nothing' is not in force"):
        tn.rules.remove("nothing")


def test_builtin_rule_can_be_removed_and_added() -> None:
    rule = tn.rules.list()[-1]  # so that the order is the same afterwards
    assert rule.name == "permute-map"
    tn.rules.remove("permute-map")
    try:
        assert optimise_graph(graph_of((A.T + 1).T * 2))[1].counts == {}
    finally:
        tn.rules.add(rule)
    assert "permute-map" in optimise_graph(graph_of((A.T + 1).T * 2))[1].counts


def test_rules_that_undo_each_other_name_each_other() -> None:
    there = tn.Rule("to-sum", x - y, x + (-y))
    back = tn.Rule("to-difference", x + (-y), x - y)
    with pytest.warns(RuntimeWarning, match="'to-difference' and 'to-sum' undo each other"):
        rewritten(A - B, there, back)


def test_rule_that_feeds_itself_is_named_and_left_out() -> None:
    grow = tn.Rule("grow", pattern.exp(x), pattern.exp(x) + 0.5)
    once = tn.Rule("once", x * 1, x)
    with pytest.warns(RuntimeWarning, match="rule 'grow' feeds itself"):
        graph, report = rewritten(tn.exp(A * 1), grow, once)
    assert names(graph) == ["exp"]
    assert report.counts == {"once": 1}
    assert "left out: rule 'grow' feeds itself" in "\n".join(rewrite_lines(graph, report))


def test_program_computes_beside_a_rule_that_feeds_itself() -> None:
    x0 = tn.asarray([1.0, 2.0], device="cpu")
    grow = tn.Rule("grow", pattern.exp(x), pattern.exp(x) + 0.5)
    with tn.rules.using(grow), pytest.warns(RuntimeWarning, match="'grow' feeds itself"):
        assert (tn.exp(x0) * 0).tolist() == [0.0, 0.0]
    with tn.rules.using(grow), pytest.warns(RuntimeWarning, match="'grow' feeds itself"):
        assert "left out: rule 'grow'" in (tn.exp(x0) * 0).explain("optimised")


def test_three_rules_in_a_circle_are_named() -> None:
    circle = (
        tn.Rule("first", pattern.exp(x), pattern.sin(x)),
        tn.Rule("second", pattern.sin(x), pattern.cos(x)),
        tn.Rule("third", pattern.cos(x), pattern.exp(x)),
    )
    with pytest.warns(RuntimeWarning, match="'first' and 'second' and 'third' undo each other"):
        rewritten(tn.exp(A), *circle)


def test_rule_that_makes_ever_more_of_what_it_matches_is_named() -> None:
    double = tn.Rule("double", pattern.exp(x), pattern.exp(x + 1) * pattern.exp(x - 1))
    with pytest.warns(RuntimeWarning, match="rule 'double' feeds itself: still changing"):
        rewritten(tn.exp(A), double)


def test_rule_against_a_built_in_one_is_named_with_it() -> None:
    rule = tn.Rule("negate", pattern.abs(x), pattern.abs(pattern.negative(pattern.negative(x))))
    with (
        tn.rules.using(rule),
        pytest.warns(RuntimeWarning, match="'abs-negative' and 'negate' undo each other"),
    ):
        optimise_graph(graph_of(abs(A)))


def test_rule_against_the_order_of_a_chain_is_named_with_it() -> None:
    rule = tn.Rule("right", (x @ y) @ z, x @ (y @ z), exactness="linear-algebra")
    row = tn.ones((1, 2))
    with (
        tn.rules.using(rule),
        pytest.warns(RuntimeWarning, match="'products-chain' and 'right' undo each other"),
    ):
        optimise_graph(graph_of(row @ A @ B))


def test_rule_against_accumulating_is_named_with_it() -> None:
    rule = tn.Rule(
        "apart",
        pattern(gemm, x, y, z, params=("N", "N", 1, 0, 1)),
        lambda match: match["x"].array @ match["y"].array + match["z"].array,
        exactness="linear-algebra",
    )
    with (
        tn.rules.using(rule),
        pytest.warns(RuntimeWarning, match="'apart' and 'products-sum' undo each other"),
    ):
        optimise_graph(graph_of(A @ B + A))


def test_optimised_stage_shows_each_firing_with_what_was_before_and_after() -> None:
    a, b = (tn.asarray(np.ones((2, 3)), device="cpu") for _ in range(2))
    text = (tn.negative(-a) * 1 + tn.exp(b) * tn.exp(b)).explain("optimised")
    assert "3 rewrites: negative-twice 1, multiply-one 1, cse 1" in text
    assert "negative-twice at %2: negative(negative(%0)) => %0" in text
    assert "multiply-one at %4: multiply(%0, 1) => %0" in text
    assert "cse at %7: exp(%5) => %6" in text


def test_replacement_that_reads_what_it_replaces_is_refused() -> None:
    rule = tn.Rule("wrap", pattern.exp(x), lambda match: match.root.array + 0.5)
    with pytest.raises(tn.errors.UnsupportedError, match=r"'wrap'.*reads what it replaces"):
        rewritten(tn.exp(A), rule)


def test_rule_whose_results_are_what_it_matches_feeds_itself_and_makes_no_circle() -> None:
    rule = tn.Rule("swap", x - y, -(y - x))
    with pytest.warns(RuntimeWarning, match="rule 'swap' feeds itself"):
        rewritten(A - A * 2, rule)
    given = tn.asarray([1.0, 2.0], device="cpu")
    with tn.rules.using(rule), pytest.warns(RuntimeWarning, match="'swap' feeds itself"):
        (given - given * 2).wait()


def test_replacement_by_what_reads_what_it_replaces_is_refused() -> None:
    inner = tn.exp(A)
    outer = inner * 2 + 1
    rule = tn.Rule("outward", pattern.exp(x), lambda match: outer)
    with pytest.raises(tn.errors.UnsupportedError, match=r"'outward'.*reads what it replaces"):
        rewritten(outer, rule)


def test_rule_that_changes_the_shape_is_refused_by_name() -> None:
    rule = tn.Rule("smaller", x + y, y)
    with pytest.raises(tn.errors.ShapeError, match=r"'smaller'.*\(2, 2\) into \(2,\)"):
        rewritten(A + A[0], rule)


def test_rule_that_changes_the_dtype_is_refused_by_name() -> None:
    rule = tn.Rule("multiply-any-one", x * 1, x)
    with pytest.raises(tn.errors.DTypeError, match=r"'multiply-any-one'.*float64 into int64"):
        rewritten(tn.astype(A, tn.int64) * 1.0, rule)


def test_failing_guard_is_named() -> None:
    rule = tn.Rule("guarded", x * 1, x, when=lambda match: match["q"].shape == ())
    with pytest.raises(tn.errors.RunError, match="'guarded' failed: KeyError") as caught:
        rewritten(A * 1, rule)
    assert isinstance(caught.value.__cause__, KeyError)


def test_replacement_that_is_no_array_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError, match=r"'text'.*it returned str"):
        rewritten(A * 1, tn.Rule("text", x * 1, lambda match: "x"))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tn.Rule("r", x, x), tn.errors.DTypeError, "not an operation"),
        (lambda: tn.Rule("r", x * 1, y), ValueError, "matches no y"),
        (lambda: tn.Rule("r", x * 1, "x"), tn.errors.DTypeError, "str is not a pattern"),
        (lambda: tn.Rule("r", x * 1, x, exactness="about"), ValueError, "'about' is none of"),
        (lambda: pattern.softmax(x), tn.errors.DTypeError, "made of other operations"),
        (lambda: pattern.nothing(x), AttributeError, "unknown operation 'nothing'"),
        (lambda: pattern.exp(A), tn.errors.DTypeError, "Array is not a pattern"),
        (lambda: pattern.reading(x), tn.errors.DTypeError, "reads no operation"),
    ],
)
def test_rule_that_cannot_be_is_refused_when_it_is_made(
    make: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()  # type: ignore[operator]


def test_number_as_replacement_is_that_number_everywhere() -> None:
    graph, _ = rewritten(A - A, tn.Rule("nothing-left", x - x, 0))
    assert str(graph) == "%0 = full((2, 2), 0.0, dtype('float64'), 'reference') float64[2, 2]"


def test_replacement_may_be_a_function_that_returns_arrays() -> None:
    rule = tn.Rule("total", pattern.sum(x), lambda match: tn.sum(match["x"].array.T))
    again = tn.Rule("total", pattern.sum(pattern.exp(x)), lambda match: tn.sum(match["x"].array))
    assert names(rewritten(tn.sum(tn.exp(A)), again)[0]) == ["sum"]
    with pytest.warns(RuntimeWarning, match="feeds itself"):
        rewritten(tn.sum(A), rule)


def test_parameters_of_a_pattern_must_be_those_of_the_node() -> None:
    rule = tn.Rule("none", pattern.sum(x, params=((0,), False, None)), lambda match: None)
    fires = tn.Rule(
        "rows", pattern.sum(x, params=((0,), False, None)), pattern.max(x, params=((0,), False))
    )
    assert rewritten(tn.sum(A, axis=0), rule)[1].counts == {}
    assert rewritten(tn.sum(A, axis=1), fires)[1].counts == {}
    assert rewritten(tn.sum(A, axis=0), fires)[1].counts == {"rows": 1}


def test_operands_that_commute_match_in_either_order() -> None:
    rule = tn.Rule("fused", x * y + z, pattern.fma(x, y, z))
    for array in (A * B + 2.0, 2.0 + A * B):
        assert names(rewritten(array, rule)[0]) == ["fma"]
    ordered = tn.Rule("minus", x - 1, pattern.sin(x))
    assert rewritten(1 - A, ordered)[1].counts == {}


def test_variable_that_stands_twice_matches_one_operand_only() -> None:
    rule = tn.Rule("double", x + x, x * 2)
    assert rewritten(A + A, rule)[1].counts == {"double": 1}
    assert rewritten(A + B, rule)[1].counts == {}


def test_variable_of_some_operations_matches_no_other_operand() -> None:
    rule = tn.Rule("undone", pattern.negative(x.of(add, subtract)), x)
    nested = tn.Rule("nested", pattern.exp(pattern.negative(x.of(add, subtract))), x)
    for each in (rule, nested):
        assert rewritten(tn.exp(-(A - B)), each)[1].counts == {each.name: 1}
        assert rewritten(tn.exp(-(A * B)), each)[1].counts == {}
        assert rewritten(tn.exp(-A), each)[1].counts == {}


def test_guard_is_asked_about_a_node_once_between_two_rewrites() -> None:
    asked = []

    def is_asked(match: Match) -> bool:
        asked.append(match.root.at)
        return False

    guarded = tn.Rule("asked", pattern.exp(x), x, when=is_asked)
    rewritten(-tn.exp(A), guarded)
    assert len(asked) == 1
    rewritten(-tn.exp(A), guarded, tn.Rule("minus", -x, x * -1))
    assert len(asked) == 3


def test_node_with_another_reader_is_not_computed_twice() -> None:
    rule = tn.Rule("sum-of-product", pattern.exp(x * y), pattern.exp(x) + pattern.exp(y))
    product = A * B
    assert rewritten(tn.exp(product) - product, rule)[1].counts == {}
    assert rewritten(tn.exp(A * B), rule)[1].counts == {"sum-of-product": 1}


def test_rule_for_an_operation_of_a_user() -> None:
    @tn.op
    def twice(x: tn.Array) -> tn.Array:
        return x + x

    assert names(rewritten(twice(A), tn.Rule("twice", pattern(twice, x), x * 2))[0]) == ["multiply"]


def test_values_of_what_is_held_are_where_the_report_says() -> None:
    inner = tn.negative(-A)
    outer = inner * 3
    graph, report = optimise_graph(graph_of(outer))
    assert [graph.nodes[at].pending for _, at in report.replaced_nodes] == [False]
    assert [_native.array_of(node).shape for node, _ in report.replaced_nodes] == [(2, 2)]
    assert Reference().run(graph) is None
    assert_equal_bits(outer, np.asarray(A) * 3)


def test_held_node_that_is_needed_stays_held() -> None:
    inner = A + 1
    _native.node_of(inner).passed_through()  # by an earlier evaluation
    outer = (inner * 1) * inner
    graph, _ = optimise_graph(graph_of(outer))
    assert [graph.live_out[i] for i, node in enumerate(graph.nodes) if node.pending] == [True, True]
    assert Reference().run(graph) is None
    assert not _native.node_of(inner).pending


def test_output_that_is_an_input_is_that_leaf() -> None:
    graph, report = optimise_graph(graph_of(A * 1, A * 1 + 1))
    assert [str(graph.nodes[i].name) for i in graph.outputs] == ["leaf", "add"]
    assert [at for _, at in report.replaced_nodes] == [graph.outputs[0]]


def test_choice_does_not_leave_out_what_may_fail_or_has_an_effect() -> None:
    seen: list[int] = []

    @tn.operator
    def loud(x: tn.Array, /) -> tn.Array:
        seen.append(x.size)
        return x

    assert optimise_graph(graph_of(tn.where(True, A, loud(B))))[1].counts == {}


def test_failure_of_a_part_names_the_line_it_was_written_at() -> None:
    whole = tn.asarray([2, 3]) ** tn.asarray([1, -1])
    line = f"test_user_rules.py:{whole_line()})"
    graph, report = optimise_graph(graph_of(whole[1:]))
    assert report.counts == {"index-map": 1}
    assert line in str(Reference().run(graph))


def whole_line() -> int:
    code = test_failure_of_a_part_names_the_line_it_was_written_at.__code__
    return code.co_firstlineno + 1


def test_report_says_what_fired_where_and_what_it_was() -> None:
    graph, report = optimise_graph(graph_of((A + B * 1)[0] * 2), describe=True)
    row = "((None, 0, 0), (0, 1, 0)), (2,)"
    assert rewrite_lines(graph, report) == [
        "optimised: 7 nodes, 2 rewrites: multiply-one 1, index-map 1",
        "  multiply-one at %3: multiply(%1, 1) => %1",
        f"  index-map at %5: index(%4, {row}) => add(index(%0, {row}), index(%1, {row}))",
        *(f"  {graph.line(i)}" for i in range(7)),
    ]


def test_graph_that_no_rule_fits_is_handed_back_as_it_is() -> None:
    graph = graph_of(A + B)
    assert optimise_graph(graph)[0] is graph


def test_first_partial_read_opens_what_is_held_and_the_second_does_not() -> None:
    whole = A * B + 1
    report = optimise_graph(graph_of(whole[0]))[1]
    assert report.counts == {"index-map": 2}
    _native.node_of(whole).passed_through()  # as the executor marks it
    assert optimise_graph(graph_of(whole[0]))[1].counts == {}


def test_looking_at_a_partial_read_is_no_read() -> None:
    whole = A * B + 1
    for _ in range(2):
        assert optimise_graph(graph_of(whole[0]))[1].counts == {"index-map": 2}


def test_partial_read_beside_the_whole_computes_the_whole_alone() -> None:
    whole = A * B + 1
    assert optimise_graph(graph_of(whole[0], whole))[1].counts == {}


def test_partial_read_through_views_and_a_sum() -> None:
    whole = tn.sum((A * B)[:, None, :] + tn.zeros((2, 3, 2)), axis=1)
    part = whole.T[0]
    graph, report = optimise_graph(graph_of(part))
    assert max(node.type.size for node in graph.nodes if node.pending) == 6
    assert Reference().run(graph) is None
    (_, at), *_ = report.replaced_nodes
    assert_equal_bits(_native.array_of(graph.nodes[at]), (np.asarray(A) * np.asarray(B))[:, 0] * 3)


def test_long_chains_are_rewritten() -> None:
    with tn.options(pending_depth=0):
        array = A
        for _ in range(5_000):
            array = tn.negative(-(array * 1)) + 1
        graph, report = optimise_graph(graph_of(array))
    assert len(graph) == 1 + 2 * 5_000
    assert report.counts == {"multiply-one": 5_000, "negative-twice": 5_000}


def test_parts_of_many_things_are_found_in_linear_time() -> None:
    wholes = [A - number for number in range(1, 3_001)]
    graph, report = optimise_graph(graph_of(*[whole[0, 1] for whole in wholes]))
    assert report.counts == {"index-map": 3_000}
    assert sum(node.type.size for node in graph.nodes if node.name == "subtract") == 3_000


def test_active_rules_are_those_that_are_listed() -> None:
    with tn.options(fast=True):
        assert active().rules == tn.rules.list()
