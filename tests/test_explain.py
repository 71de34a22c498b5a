"""Explain reads, computes nothing, and says what will run, why, and what ran."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.inspect import machine_limits
from tenfold.inspect.profile import Profile

Build = Callable[[tn.Array], tn.Array]


def filled(*shape: int, dtype: str = "float64") -> tn.Array:
    return tn.asarray(np.ones(shape, dtype))


def counted(*arrays: tn.Array) -> tuple[str, Profile]:
    """Return the plan as text and the counters of computing by it."""
    text = tn.explain(*arrays, stage="scheduled")
    with tn.options(tier=1), tn.profile() as p:  # without, a graph seen seldom has no plan
        tn.eval(*arrays)
        for array in arrays:
            array.wait()
    return text, p


def agrees(text: str, p: Profile) -> bool:
    """Whether a plan's first line says what the counters counted."""
    found = re.match(r"scheduled: (\d+) kernels?, (\d+) calls?, (\d+) temporar", text)
    assert found is not None, text
    return tuple(map(int, found.groups())) == (p.kernels, p.calls, p.temporaries)


def test_explain_computes_nothing() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    with tn.profile() as p:
        text = x.explain()
    assert (p.launches, p.compiles) == (0, 0)
    assert repr(x).startswith("<Array float64[2] pending")
    assert "add(%0, %1) float64[2]" in text


def test_explaining_a_part_does_not_count_as_reading_it() -> None:
    whole = filled(1000) + 1
    parts = [whole[:10] for _ in range(3)]
    for part in parts:
        part.explain()
    parts[0].wait()
    assert repr(whole).startswith("<Array float64[1000] pending")


def test_all_stages_stand_in_the_order_of_the_pipeline() -> None:
    heads = [
        line.split(":")[0] for line in (filled(2) + 1).explain().splitlines() if line[0] != " "
    ]
    assert heads == ["expression", "optimised", "scheduled", "generated", "executed"]


def test_shared_node_stands_once() -> None:
    x = tn.asarray([1.0])
    shared = tn.exp(x)
    text = tn.explain(shared * shared + shared, stage="expression")
    assert text.count("exp(") == 1


def test_several_roots_are_explained_together() -> None:
    x = tn.exp(tn.asarray([1.0]))
    assert tn.explain(x + 1, x + 2).startswith("expression: 6 nodes, 3 operations, kind MAP")


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_computed_array_says_that_nothing_is_left(device: str) -> None:
    with tn.options(device=device):
        x = (tn.asarray([1.0]) + 1).wait()
    for stage in (None, "scheduled", "generated", "executed"):
        assert "nothing is left to run" in x.explain(stage)


def test_rules_that_fire_are_told_with_place_before_and_after() -> None:
    negated = -filled(3)
    text = (-negated + 1).explain("optimised")
    assert text.startswith("optimised: 3 nodes, 1 rewrite: negative-twice 1\n")
    assert "negative-twice at %2: negative(negative(%0)) => %0" in text
    assert (filled(3) + filled(3)).explain("optimised") == "optimised: no rule fires"
    with tn.options(optimise=False):
        text = (-negated).explain("optimised")
    assert text == "optimised: not at all, the option optimise is off"


# -------------------------------------------------------------------------------------------------
# The plan, beside the counters


def test_sum_of_two_arrays_is_one_linear_kernel() -> None:
    text, p = counted(filled(1000) + filled(1000))
    assert "1. kernel, linear: add -> float64[1000]" in text
    assert "must move 24,000 bytes, moves 24,000" in text
    assert agrees(text, p)
    assert (p.kernels, p.temporaries) == (1, 0)


def test_chain_of_maps_and_broadcasts_is_one_kernel() -> None:
    a, b, row = filled(100, 200), filled(100, 200), filled(200)
    text, p = counted((a + b) * row - a / 2)
    assert ": add, multiply, divide, subtract -> float64[100, 200]" in text
    assert agrees(text, p)
    assert (p.kernels, p.temporaries) == (1, 0)


@pytest.mark.parametrize(
    ("traversal", "array"),
    [
        ("linear", lambda x: x + x),
        ("inner", lambda x: x[1:50, 2:60] + 1),
        ("tiled", lambda x: x + x.T),
        ("gather", lambda x: tn.take(x, tn.asarray([3, 1]), axis=0) * 2),
        ("row", lambda x: tn.sum(x, axis=1)),
        ("column", lambda x: tn.sum(x, axis=0)),
        ("split", lambda x: tn.sum(tn.concat([x[0] * 2] * 400))),
        ("scan", lambda x: tn.cumulative_sum(x, axis=1)),
        ("scan columns", lambda x: tn.cumulative_sum(x, axis=0)),
    ],
)
def test_traversal_is_named_and_explained(traversal: str, array: Build) -> None:
    text, p = counted(array(filled(300, 300)))
    name, meaning = re.findall(r"kernel, ([a-z ]+): .*\n     (.+)", text)[-1]
    assert name == traversal
    assert len(meaning) >= len("contiguous")
    assert agrees(text, p)


def test_gather_moves_what_it_takes() -> None:
    x = filled(1000)
    text = tn.take(x, tn.asarray([3, 1, 7])).explain("scheduled")
    assert "must move 72 bytes, moves 72" in text  # three indices, three elements, three results


def test_several_outputs_share_one_pass() -> None:
    x = filled(50, 60)
    text, p = counted(tn.mean(x, axis=1), tn.var(x, axis=1))
    assert agrees(text, p)
    assert p.temporaries == 0


@pytest.mark.usefixtures("fused_multiply_add")
def test_softmax_of_rows_is_one_kernel_in_passes() -> None:
    text, p = counted(tn.softmax(filled(30, 100, dtype="float32"), axis=1))
    assert "3 passes" in text
    assert "must move 24,000 bytes, moves 36,000: later passes read the row of 100 elements" in text
    assert agrees(text, p)
    assert (p.kernels, p.temporaries) == (1, 0)


def test_value_of_a_later_pass_is_loaded_in_that_pass() -> None:
    x, y = (tn.asarray(np.arange(6.0)) for _ in range(2))
    text = (tn.sqrt(y * y + 1) / tn.sum(x)).explain("scheduled")
    assert "2 passes" in text
    assert "must move 144 bytes, moves 144" in text


def test_reason_that_holds_for_several_results_stands_once() -> None:
    x = tn.asarray(np.ones((70, 3)))
    pairs = tn.sum(x * x, axis=1)[:, None] + tn.sum(x * 2, axis=1)[None, :]
    text = pairs.explain("scheduled")
    assert text.count("stored, sum: another kernel reads it; 2 results") == 1


@pytest.mark.usefixtures("fused_multiply_add")
def test_operand_of_a_product_is_kept_and_both_costs_are_told() -> None:
    a, b = filled(64, 64), filled(64, 64)
    text, p = counted((tn.exp(a) + 1) @ b)
    assert "exp, add -> temporary float64[64, 64]" in text
    costs = re.search(r"recomputed for each reader ([\d,]+) additions, stored once ([\d,]+)", text)
    assert costs is not None, text
    again, once = (int(cost.replace(",", "")) for cost in costs.groups())
    assert again > once
    assert "262,144 multiply-adds" in text
    assert agrees(text, p)
    assert p.temporaries == 1


@pytest.mark.usefixtures("fused_multiply_add")
def test_named_intermediate_is_passed_through_stored_or_rewritten_away() -> None:
    x = filled(50)
    named = tn.exp(x)
    assert "float64[50]: passed through; to store 400 bytes" in (named + 1).explain("scheduled")
    with tn.options(tier=1):
        (named + 1).wait()
    text = (named + 1).explain("scheduled")
    assert "stored, exp: live-out" in text
    assert "float64[50]: stored; to store 400 bytes" in text
    product = filled(30, 20) @ filled(20, 30)
    assert "float64[30, 30]: rewritten away" in (product @ filled(30)).explain("scheduled")
    text = (tn.exp(x) + 1).explain("scheduled")  # not in the assert, which would keep the exp
    assert "live-out" not in text
    assert "live-out" not in tn.explain(named, named + 1, stage="scheduled")


@pytest.mark.usefixtures("fused_multiply_add")
def test_operand_of_a_map_is_not_kept() -> None:
    a, b = filled(64, 64), filled(64, 64)
    text, p = counted((tn.exp(a) + 1) + b)
    assert agrees(text, p)
    assert (p.kernels, p.temporaries) == (1, 0)
    assert "temporary " not in text


def test_epilogue_of_a_product_is_one_kernel_behind_one_call() -> None:
    a, b, c = filled(20, 30), filled(30, 40), filled(20, 40)
    text, p = counted(tn.maximum(a @ b + c, 0))
    assert agrees(text, p)
    expression = tn.maximum(a @ b + c, 0)
    _, *steps, thresholds = expression.explain("executed").splitlines()
    assert p.launches == len(steps) == 2
    assert thresholds.startswith("  thresholds: optimised from ")


@pytest.mark.parametrize("size", [3, 8, 64, 512])
def test_product_is_packet_code_or_a_library_call_and_says_why(size: int) -> None:
    x = filled(size, size)
    (line,) = re.findall(r"(?:generated code|BLAS dgemm): .+", (x @ x).explain("scheduled"))
    assert f"{size**3:,} multiply-adds" in (x @ x).explain("scheduled")
    assert len(line) > 20
    assert "define i64 @kernel(" in (x @ x).explain("generated")
    assert "1. matmul: a call, " in (x @ x).explain("executed")


def test_product_of_which_half_is_known_says_so() -> None:
    x = filled(128, 128)
    text = (x @ x.T).explain("scheduled")
    assert "generated code: of a symmetric result the lower half, copied to the upper one" in text
    assert "worth it from 96 x 64 on" in text
    assert f"{128 * 129 // 2 * 128:,} multiply-adds" in text
    text = (tn.assume(x, "triangular") @ x).explain("scheduled")
    assert (
        "generated code: of x1 the lower triangle, or the upper, as is found when it runs" in text
    )


def test_pieces_of_a_join_are_computed_where_they_lie() -> None:
    x = filled(20, 30)
    text, p = counted(tn.concat([x + 1, x * 2]))
    assert agrees(text, p)
    assert p.temporaries == 0
    text, p = counted(tn.sort(tn.concat([x + 1, x * 2]), axis=0))
    assert agrees(text, p)


@pytest.mark.usefixtures("fused_multiply_add")
def test_result_is_written_over_an_operand_that_dies() -> None:
    x = filled(1000)
    over = tn.exp(tn.sort(tn.sort(x) + 1)) * 2 + tn.sort(x + 3)
    text, p = counted(over)
    assert agrees(text, p)


@pytest.mark.usefixtures("fused_multiply_add")
def test_repeated_operation_is_computed_once_and_both_costs_are_told() -> None:
    row = filled(200)  # held: else what is kept is written over it
    text, p = counted(tn.exp(tn.sin(row)) + filled(100, 200))
    assert "stored, exp: recomputed for each reader" in text
    assert "add not fused with exp: it iterates over other indices" in text
    assert agrees(text, p)
    assert (p.kernels, p.temporaries) == (2, 1)


def test_folds_of_different_axes_say_why_they_are_apart() -> None:
    x = filled(100, 200)
    text, p = counted(tn.sum(x, axis=0) + tn.sum(x, axis=1, keepdims=True))
    assert "sum not fused with sum: another axis is reduced" in text
    assert agrees(text, p)


def test_view_of_memory_moves_nothing() -> None:
    text, p = counted(tn.permute_dims(filled(20, 30), (1, 0))[3:])
    assert "view, no copy" in text
    assert agrees(text, p)
    assert p.launches == 0
    executed = filled(20, 30)[3:].explain("executed")
    assert executed == "executed: nothing to launch on cpu"


def test_reshaped_result_is_no_temporary() -> None:
    text, p = counted(tn.reshape(filled(20, 30) + 1, (600,)))
    assert agrees(text, p)
    assert p.temporaries == 0


def test_small_work_stays_on_one_thread() -> None:
    with tn.options(threads=2):
        assert "on 1 thread\n" in (filled(100) + 1).explain("scheduled")
        assert "on 2 threads\n" in (filled(1_000_000) + 1).explain("scheduled")


def test_large_results_pass_the_cache() -> None:
    assert "non-temporal stores" not in (filled(1000) + 1).explain("scheduled")
    assert "non-temporal stores" in (filled(2_000_000) + 1).explain("scheduled")


def test_operand_read_at_two_places_moves_more_than_it_must() -> None:
    x = filled(1000)
    text = (x[1:] - x[:-1]).explain("scheduled")
    assert "must move 15,992 bytes, moves 23,976: an operand is read at several offsets" in text


def test_source_text_is_readable_and_names_its_step() -> None:
    text = (filled(10) * 2).explain("generated")
    assert text.startswith("generated: 1 kernel in LLVM IR\n; step 1\n; kernel of 1 axis")
    assert "define i64 @kernel(" in text
    assert "fmul" in text


def test_tier_of_a_launch_is_told() -> None:
    def rare(count: int) -> tn.Array:  # no other test has its kernel
        x = filled(count)
        return tn.floor(x) - tn.sqrt(x) * x / 17

    with tn.options(tier="auto"):
        for _ in range(_native.TIERS.hot_runs):
            rare(5).wait()
        assert "to be compiled quickly (tier 0)" in rare(5).explain("executed")
        assert "to be compiled with optimisation (tier 1)" in rare(200_000).explain("executed")
    with tn.options(tier="1"):
        assert "(tier 1)" in rare(5).explain("executed")
        rare(5).wait()
        assert "a kernel, compiled with optimisation (tier 1)" in rare(5).explain("executed")
    with tn.options(tier="0"):
        assert "(tier 0)" in rare(100_000).explain("executed")


# -------------------------------------------------------------------------------------------------
# Measured


@pytest.mark.usefixtures("fused_multiply_add")
def test_analyze_computes_and_says_what_each_step_took() -> None:
    x = filled(64, 64)
    y = (tn.exp(x) + 7) @ x
    text = y.explain("scheduled", analyze=True)
    assert re.search(r"measured: [\d.]+ [um]s in 2 steps", text)
    assert re.search(r"\n  1\. exp\+add: [\d.]+ [um]s, [\d.]+ GB/s", text)
    assert re.search(r"\n  2\. matmul: [\d.]+ [um]s, [\d.]+ GFLOP/s", text)
    assert repr(y).startswith("Array(")


def test_cold_structure_is_said_to_run_operation_by_operation() -> None:
    x = filled(77)

    def expression() -> tn.Array:
        return (x * 3.25 - x) / 1.125

    assert "executed: 3 launches pending on cpu, each operation unfused" in expression().explain()
    with tn.profile() as p:
        expression().wait()
    assert (p.kernels, p.launches, p.temporaries) == (3, 3, 2)
    for _ in range(_native.TIERS.hot_runs - 1):
        expression().wait()
    assert "executed: 1 launch pending on cpu\n" in expression().explain()
    with tn.profile() as p:
        expression().wait()
    assert (p.kernels, p.launches, p.temporaries) == (1, 1, 0)


def test_analyze_runs_what_runs_without_it() -> None:
    x = filled(1000)
    counts = []
    for _ in range(_native.TIERS.hot_runs):
        (tn.exp(x) * 3 - x).wait()
    for run in (tn.Array.wait, tn.Array.wait, lambda y: tn.explain(y, analyze=True)):
        y = tn.exp(x) * 3 - x
        with tn.profile() as p:
            run(y)
        counts.append(p.counters() | {"host_syncs": 0, "background_compiles": 0})
    assert counts[1] == counts[2]  # the first may compile


def test_analyze_compiles_before_it_measures() -> None:
    x = filled(77)
    first = (tn.cbrt(x) / 3 - tn.sinh(x) * x).explain("expression", analyze=True)
    assert re.search(r"after compiling 1 kernel in [\d.]+ [um]s", first)
    again = (tn.cbrt(x) / 3 - tn.sinh(x) * x).explain("expression", analyze=True)
    assert "compiling" not in again


def test_analyze_names_the_lines_of_steps_that_rules_made_too() -> None:
    a = tn.asarray(np.ones((40, 40)))
    with tn.options(lines=True):
        x = tn.sum((tn.exp(a) @ a) * 2)
    steps = (
        tn.explain(x, stage="executed", analyze=True).partition("measured: ")[2].splitlines()[1:]
    )
    steps = [step for step in steps if "tenfold bench" not in step]
    assert len(steps) > 1
    assert all("test_explain.py:" in step for step in steps), steps
    assert "options(lines=True)" in tn.explain(tn.exp(a) + 1, analyze=True)


def test_analyze_of_a_failure_raises_it() -> None:
    singular = tn.asarray(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        tn.linalg.inv(singular).explain(analyze=True)


def test_share_of_the_limit_is_told_where_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine_limits.measured_rates() == {}
    assert "run `tenfold bench` once" in (filled(3) + 1).explain(analyze=True)
    machine_limits.store_rates({"copy": 1e9})
    assert machine_limits.measured_rates() == {"copy": 1e9}
    assert re.search(r"GB/s \(\d+% of the limit\)", (filled(3) + 1).explain(analyze=True))


@pytest.mark.parametrize("text", ["", "[]", '{"rates": {"copy": -1}}', '{"rates": {"copy": 1}}'])
def test_limits_in_doubt_count_as_none(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine_limits.store_rates({"copy": 1e9})
    machine_limits.limits_file().write_text(text, encoding="utf-8")
    assert machine_limits.measured_rates() == {}


# -------------------------------------------------------------------------------------------------
# The reference device


@pytest.mark.usefixtures("fused_multiply_add")
def test_reference_device_takes_one_operation_at_a_time() -> None:
    with tn.options(device="reference"):
        x = tn.asarray(np.ones((4, 4)))
        y = tn.sum(tn.exp(x @ x) + x, axis=0)
        steps = y.explain("executed").splitlines()[1:]
        with tn.profile() as p:
            y.wait()
    assert p.launches == len(steps) == 4
    assert p.multiply_adds == 64
    assert "64 multiply-adds" in steps[0]
    assert [event.name for event in p.events] == [step.split()[0] for step in steps]


def test_reference_device_says_that_it_has_no_plan() -> None:
    with tn.options(device="reference"):
        x = tn.asarray([1.0]) + 1
    for stage in ("scheduled", "generated"):
        expected = f"{stage}: device reference has no schedule, it runs one operation at a time"
        assert x.explain(stage) == expected
    assert "scheduled" not in x.explain()
    assert "device reference computes what was written" in x.explain("optimised")
    assert re.search(
        r"measured: [\d.]+ [um]s in 1 step\n  1\. add: [\d.]+ [um]s", x.explain(analyze=True)
    )


def test_movement_moves_what_it_takes_be_its_input_as_large_as_it_may() -> None:
    with tn.options(device="reference"):
        x = tn.asarray(np.ones(1000))[:10]
    assert "index -> float64[10]: 160 bytes" in x.explain("executed")


# -------------------------------------------------------------------------------------------------
# DOT, and what is refused


def test_dot_has_a_box_for_each_node_and_an_edge_for_each_use() -> None:
    x = tn.asarray([1.0])
    text = (x * x + 0).explain(format="dot")
    assert text.startswith("digraph tenfold {")
    assert text.endswith("}")
    assert len(re.findall(r"^  n\d+ \[label=", text, re.M)) == 4
    assert len(re.findall(r"^  n\d+ -> n\d+;", text, re.M)) == 4


def test_labels_of_dot_are_quoted() -> None:
    @tn.op(shape=(), dtype="float64", reference=lambda x, *, text: np.float64(0))
    def labelled(x: tn.Array, *, text: str) -> tn.Array:
        """0."""

    text = labelled(tn.asarray([1.0]), text='"a\\b"').explain(format="dot")
    (label,) = re.findall(r'label="(%1.*?)"\];', text)
    assert not re.search(r'(?<!\\)(\\\\)*"', label)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_long_graphs_are_shown_by_their_ends(device: str) -> None:
    with tn.options(pending_depth=0, device=device):
        x = tn.asarray([1.0])
        for _ in range(5_000):
            x = x + x
        texts = [
            x.explain(stage).splitlines() for stage in ("expression", "scheduled", "generated")
        ]
    assert all(len(lines) < 1_100 for lines in texts)
    assert any("more nodes" in line for line in texts[0])


@pytest.mark.usefixtures("fused_multiply_add")
def test_long_source_text_is_shown_by_its_ends() -> None:
    x = y = filled(10)
    for _ in range(40):
        y = tn.exp(y) * x
    lines = y.explain("generated").splitlines()
    assert len(lines) < 1_100
    assert any("more lines" in line for line in lines)


def test_graph_that_is_computed_in_pieces_says_so() -> None:
    x = tn.asarray([1.0])
    for _ in range(2_000):
        x = x + 1
    text = x.explain()
    assert "scheduled: 2000 steps of one plan, one after another" in text
    assert text.endswith("\n  step 1: add\n  steps 2 to 2000: add")
    assert "executed" not in text
    assert x.explain("executed", analyze=True).count(" add") >= 1


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"stage": "dreamt"}, "unknown stage 'dreamt'"),
        ({"format": "html"}, "unknown format 'html'"),
    ],
)
def test_unknown_stage_is_refused(arguments: dict[str, str], rule: str) -> None:
    with pytest.raises(tn.errors.UnsupportedError, match=rf"(?s)explain: {rule}.*remedy"):
        tn.explain(tn.asarray([1.0]), **arguments)


@pytest.mark.parametrize(
    ("given", "remedy"), [("scheduled", "stage='scheduled'"), (3, "one by one")]
)
def test_non_array_is_refused(given: object, remedy: str) -> None:
    with pytest.raises(TypeError, match=rf"(?s)explain: argument 2 is .*, not an Array.*{remedy}"):
        tn.explain(tn.asarray([1.0]), given)  # type: ignore[arg-type]  # the point of it


@pytest.mark.parametrize(
    ("older", "stage"), [("planned", "scheduled"), ("rendered", "generated"), ("groups", "batched")]
)
def test_older_names_of_stages_are_accepted(older: str, stage: str) -> None:
    x = filled(3) + 1
    assert x.explain(older) == x.explain(stage)
    assert x.explain(stage).startswith(f"{stage}: ")


@pytest.mark.parametrize(
    ("array", "library"),
    [
        (lambda x: tn.linalg.cholesky(x @ x.T + tn.eye(64)), "LAPACK dpotrf"),
        (lambda x: tn.linalg.inv(x), "LAPACK dgetrf, dlaset, dgetrs"),
        (lambda x: tn.linalg.svdvals(tn.astype(x, "complex128")), "LAPACK zgesdd"),
        (lambda x: tn.linalg.solve(tn.assume(x, "triangular"), x), "BLAS dtrsm"),
        (  # on copies of both stacks
            lambda x: tn.linalg.solve(tn.reshape(x, (4, 1, 32, 32)), tn.reshape(x, (1, 4, 32, 32))),
            "LAPACK dgetrf, dgetrs",
        ),
        (lambda x: tn.concat([x] * 10) @ tn.concat([x] * 10).T, "generated code: "),
        (lambda x: tn.sort(x), "NumPy, reference function of sort"),
    ],
)
def test_call_names_its_library_routine(array: Build, library: str) -> None:
    assert f"\n     {library}" in array(filled(64, 64)).explain("scheduled")


def test_call_of_a_python_function_names_it() -> None:
    doubled = tn.operator(lambda x: x * 2, name="doubled")
    assert "\n     Python function doubled" in doubled(filled(3)).explain("scheduled")


@pytest.mark.parametrize(
    ("array", "peak"),
    [
        (lambda x: x + 1, 8_000),
        (lambda x: tn.sort(x), 8_000),
        (lambda x: tn.sort(tn.sort(x) + 1), 16_000),  # add reuses the buffer of the first sort
        (lambda x: tn.sum(x), 8),
        (lambda x: x[5:], 0),
        (lambda x: tn.linalg.eigh(tn.reshape(x[:900], (30, 30)))[0], 8 * (30 + 900)),
    ],
)
def test_peak_memory_is_printed(array: Build, peak: int) -> None:
    x = filled(1000)
    text = array(x).explain("scheduled")
    assert text.endswith(f"\n  peak memory: {peak:,} bytes, inputs not counted")


def test_result_in_the_buffer_of_a_dead_input_needs_no_memory() -> None:
    text = (filled(1000) + 1).explain("scheduled")
    assert "reuses the operand's buffer: it is dead after this read" in text
    assert text.endswith("\n  peak memory: 0 bytes, inputs not counted")


def test_nothing_is_explained_as_nothing() -> None:
    assert tn.explain() == "nothing to explain"
