"""A run takes a part of each exhaustive grid: every value of every parameter, always the same."""

from __future__ import annotations

import itertools

from .conftest import EVERY, PART, is_taken, part_of, sample

GRID = [
    f"tests/a.py::test_f[{op}-{dtype}-{tier}]"
    for op, dtype, tier in itertools.product(
        ("exp", "sin", "tan"), ("float16", "float32", "float64", "int8"), "01"
    )
]


def test_every_value_of_every_parameter_is_in_the_sample() -> None:
    taken = sample(GRID)
    for number in range(3):
        values = {nodeid[:-1].partition("[")[2].split("-")[number] for nodeid in GRID}
        assert {nodeid[:-1].partition("[")[2].split("-")[number] for nodeid in taken} == values
    assert len(taken) < len(GRID) / 2


def test_sample_does_not_depend_on_the_order_of_the_grid() -> None:
    assert sorted(sample(GRID)) == sorted(sample(GRID[::-1]))


def test_sample_has_more_cases_of_a_larger_grid() -> None:
    grid = [f"t::f[{one}-{other}]" for one in range(30) for other in range(30)]
    assert len(sample(grid)) >= 900 // EVERY


def test_an_eighth_is_taken_where_each_case_has_a_value_of_its_own() -> None:
    assert len(sample([f"t::f[{seed}]" for seed in range(20)])) == 3
    assert sample(["t::f"]) == ["t::f"]


def test_a_seed_takes_a_part_of_all_tests_by_their_names() -> None:
    parts = [{nodeid for nodeid in GRID * 2 if is_taken(nodeid, 3, seed)} for seed in range(20)]
    assert all(len(GRID) / 9 < len(part) < len(GRID) / 1.5 for part in parts)
    assert set.union(*parts) == set(GRID)
    assert all(is_taken(nodeid, 1, 7) for nodeid in GRID)


def test_a_loop_takes_a_part_and_its_rest_is_all_the_others() -> None:
    for count, name in itertools.product((1, 2, PART, 30), GRID):
        cases = [*range(count)]
        taken, rest = (part_of(cases, name, grids) for grids in ("sample", "rest"))
        assert sorted(taken + rest) == part_of(cases, name, "all") == cases
        assert count // PART <= len(taken) <= -(-count // PART)
        assert taken
    assert part_of([], "t::f", "sample") == []


def test_tests_of_one_loop_take_different_parts() -> None:
    taken = {case for name in GRID for case in part_of([*range(12)], name, "sample")}
    assert len(taken) == 12
