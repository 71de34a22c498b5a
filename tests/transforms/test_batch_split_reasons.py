"""Why calls and operations are not computed together: what explain and the timeline say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import computed, several
from tenfold import _native
from tenfold.schedule.target import DEFAULT


@tn.function
def cell(x: Any, h: Any, w: Any, by: int = 1) -> Any:
    return tn.tanh(w @ x + h * by)


def states(count: int, length: int = 40, dtype: Any = tn.float64) -> list[tn.Array]:
    return several(count, length, dtype=dtype)


def weights(length: int = 40, dtype: Any = tn.float64) -> tn.Array:
    return several(1, length, length, dtype=dtype)[0]


def layered(w: tn.Array) -> list[tn.Array]:
    """Calls of four depths: 200, 150, 100, 50."""
    made: list[tn.Array] = []
    h = states(200)
    for count in (200, 150, 100, 50):
        h = [cell(x, one, w) for x, one in zip(states(count), h, strict=False)]
        made += h
    return made


def lines(*arrays: tn.Array) -> list[str]:
    """The text without its last line, the thresholds."""
    text = tn.explain(*arrays, stage="batched").splitlines()
    return [line for line in text if not line.startswith("  thresholds: ")]


def test_thresholds_in_force_are_told() -> None:
    *_, last = tn.explain(*layered(weights()), stage="batched").splitlines()
    least, elements = _native.BATCHES.min_mean_group_size, DEFAULT.batches.stacked_elements
    assert last.startswith(f"  thresholds: {least} nodes per signature, ")
    assert last.endswith(f"operands up to {elements:,} elements")


def test_reasons_are_those_of_the_issue() -> None:
    w, other = weights(), weights()
    calls = layered(w)
    calls += [cell(x, x, weights(dtype=tn.float32)) for x in states(12, dtype=tn.float32)]
    calls += [cell(x, x, weights(20)) for x in states(7, 20)]
    calls += [cell(x, x, other) for x in states(5)]
    calls += [cell(x, x, w, by=3) for x in states(3)]
    text = lines(*calls)
    assert text[0] == "batched: 527 nodes in 8 launches, 5 signatures"
    operands = "(float64[40], float64[40], float64[40, 40])"
    assert text[1:] == [
        f"  cell: 500 members, {operands}; 4 launches: 4 dependency levels",
        "  cell: 12 members of another dtype, float32",
        "  cell: 7 members of another shape, (20,), (20, 20)",
        "  cell: 5 members that share another operand, operand 3: float64[40, 40]",
        "  cell: 3 members with other arguments besides arrays",
    ]
    p = computed(calls)
    assert p.batches == 8  # as it was told
    told = {(event.members, event.apart) for event in p.events if event.members}
    assert len(told) == 8
    assert {(count, "at a later dependency level") for count in (150, 100, 50)} < told
    # each says how it differs from that before it that is most like it, the first nothing
    assert {why.split(",")[0] for members, why in told if members not in (150, 100, 50)} == {
        "",
        "of another dtype",
        "of another shape",
        "that share another operand",
        "with other arguments besides arrays",
    }


def test_limits_are_told() -> None:
    calls = layered(weights())
    with tn.options(batch_limit=64):
        (head, line) = lines(*calls)
        p = computed(calls)
    assert head == "batched: 500 nodes in 10 launches, 1 signature"
    assert line.endswith("10 launches: 4 dependency levels and batch_limit is 64")
    assert p.batches == 10
    cut = {event.members for event in p.events if event.apart == "beyond the limit of one batch"}
    assert cut == {64, 8, 22, 36}


def test_memory_is_a_limit() -> None:
    function = tn.function(lambda x: x * 2 + 1)
    x = tn.ones(30_000).wait()
    calls = [function(tn.ones(30_000) * number) for number in range(300)]
    text = lines(*calls)
    assert (
        "300 members, (float64[30000]); 19 launches: 16 members fill the memory limit"
        in " ".join(text)
    )
    assert x.shape == (30_000,)


def test_functions_of_one_name_are_told_apart() -> None:
    def made() -> Any:
        def step(x: Any) -> Any:
            return x * 2 + 1

        return tn.function(step)

    one, other = made(), made()
    text = lines(*[one(x) for x in states(300)], *[other(x) for x in states(280)])
    assert text[1:] == ["  step: 300 members, (float64[40])", "  step: 280 members, (float64[40])"]


@pytest.mark.usefixtures("fused_multiply_add")
def test_unbatched_operation_is_counted() -> None:
    xs = states(600)
    arrays = [*[x + 1 for x in xs], *[tn.tanh(x) for x in xs[:5]], tn.concat(xs[:2])]
    assert lines(*arrays)[-1] == (
        "  not batched: 5 tanh, 1 concat; 6 of them have too few ready members of their signature"
    )


def test_many_groups_of_one_kind_are_counted_together() -> None:
    arrays = [x + 1 for length in range(10, 20) for x in states(60, length)]
    text = lines(*arrays)
    assert text[0] == "batched: 600 nodes in 10 launches, 10 signatures"
    assert text[2:] == ["  add: 540 members in 9 signatures of other shapes"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"batch": False}, "the option batch is off"),
        ({"batch_limit": 1}, "the option batch_limit is 1"),
        ({"fuse": False}, "the option fuse is False"),
    ],
)
def test_a_graph_that_does_not_go_in_groups_says_why(options: dict[str, Any], why: str) -> None:
    calls = layered(weights())
    with tn.options(**options):
        assert lines(*calls)[0].startswith(f"batched: none, {why}")


def test_a_chain_has_no_groups() -> None:
    x = tn.ones(4)
    for _ in range(600):
        x = tn.tanh(x) + 1
    narrow = "1,801 nodes on 1,201 dependency levels, fewer than 4 per level"
    assert lines(x) == [f"batched: none, it is narrow: {narrow}"]


def test_large_operands_are_not_stacked_and_the_limit_is_named() -> None:
    x = tn.ones(70_000)
    arrays = [x + number for number in range(600)]
    limit = "operands have more than 65,536 elements, the limit for stacking"
    assert lines(*arrays) == [f"batched: none, {limit}"]


def test_a_graph_of_different_operations_has_too_few_members() -> None:
    arrays = [tn.ones(length) + 1 for length in range(2, 602)]
    assert lines(*arrays) == ["batched: none, fewer than 4 ready nodes share a signature"]


@pytest.mark.cpu
def test_arrays_on_several_devices_have_no_groups() -> None:
    there = tn.asarray([1.0, 2.0], device="reference")
    arrays = [*[x + 1 for x in states(600)], there + 1]
    assert lines(*arrays) == ["batched: none, its arrays are on several devices: cpu, reference"]


def test_groups_are_a_part_of_the_whole_text() -> None:
    text = tn.explain(*layered(weights()))
    assert (
        text.index("expression: ") < text.index("\nbatched: 500 nodes") < text.index("\noptimised")
    )
    assert "batched" not in tn.explain(tn.ones(3) + 1)


def test_explaining_groups_computes_nothing() -> None:
    calls = layered(weights())
    with tn.profile() as p:
        lines(*calls)
    assert p.launches == p.batches == 0
    assert computed(calls).batches == 4
    wanted = np.asarray(calls[0])
    assert wanted.shape == (40,)


def test_a_file_has_the_reasons(tmp_path: Path) -> None:
    p = computed(layered(weights()))
    p.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    found = {event["args"]["apart"] for event in events if "apart" in event.get("args", {})}
    assert found == {"at a later dependency level"}
