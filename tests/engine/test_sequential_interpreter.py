"""The sequential interpreter and the programs that it is asked about."""

from __future__ import annotations

import pytest

from dag_programs import colourings, exhaustive, graphs, random_program, sorts
from program_statements import Cancel, Drop, Flush, Hold, Program, Push, Put, Read, flat, show
from sequential_interpreter import CANCELLED, interpret, runs, seen


def texts(program: Program, in_time: list[bool] | None = None) -> list[str]:
    return [str(outcome) for outcome in interpret(program, in_time or [])]


def test_handle_keeps_its_value_when_work_in_place_is_pushed_on_it() -> None:
    program = (Put((1, 2)), Push("step", (0, 0)), Push("step", (1, 0)), Push("add", (0, 1)))
    assert texts(program) == ["(1, 2)", "(2, 4)", "(5, 10)", "(3, 6)"]


def test_work_in_place_on_an_old_handle_applies_to_the_newest_version() -> None:
    program = (Put((1, 2)), Push("step", (0, 0)), Push("step", (0, 0)), Push("add", (0, 1)))
    assert texts(program) == ["(1, 2)", "(2, 4)", "(5, 10)", "(3, 6)"]


def test_other_operators_make_new_objects() -> None:
    program = (Put((1, 2)), Push("note", (0,)), Push("step", (1, 0)), Push("step", (0, 0)))
    assert texts(program) == ["(1, 2)", "(2, 3)", "(5, 7)", "(2, 4)"]


def test_later_versions_of_an_object_fail_with_an_earlier_one() -> None:
    program = (Put(3), Put((1,)), Push("even_grow", (0, 1)), Push("grow", (0, 1)))
    assert texts(program)[2:] == ["even_grow 3", "even_grow 3"]


def test_increment_may_run_where_its_target_has_failed() -> None:
    pushes = (Push("even_grow", (0, 1)), Push("collect", (0, 2)), Push("grow", (0, 1)))
    program = (Put(3), Put((1,)), Put(4), *pushes)
    least, most = runs(program, interpret(program, []))
    assert (least["collect"], most["collect"], most["grow"]) == (0, 1, 0)


def test_increment_may_have_run_where_a_cancelled_version_is_cancelled_again() -> None:
    pushes = (Push("axpy", (0, 0)), Cancel(1), Push("gather", (1, 0)), Cancel(2))
    program = (Put((2,)), *pushes)
    least, most = runs(program, interpret(program, [True, True]))
    assert (least["gather"], most["gather"]) == (0, 1)


def test_version_after_a_cancelled_one_may_tell_why_that_would_have_failed() -> None:
    pushes = (Push("even_grow", (0, 1)), Push("collect", (0, 2)), Cancel(4), Push("grow", (0, 1)))
    program = (Put(3), Put((1,)), Put(4), *pushes, Push("stir", (4,)))
    outcomes = interpret(program, [True])
    assert [each.reasons for each in outcomes[4:]] == [
        {CANCELLED},
        {CANCELLED, "even_grow 3"},
        {CANCELLED},
    ]


def test_increment_is_added_to_what_the_target_had() -> None:
    program = (Put((1, 1)), Put((2, 3)), Push("gather", (0, 1)), Push("gather", (2, 1)))
    assert texts(program)[2:] == ["(5, 7)", "(9, 13)"]


def test_numbers_wrap_as_int64() -> None:
    assert texts((Put((2**62, -(2**63))), Push("add", (0, 0))))[1] == str((-(2**63), 0))


def test_failure_poisons_what_was_pushed_on_it_and_nothing_else() -> None:
    program = (Put((1, 0)), Push("even_only", (0,)), Push("add", (1, 0)), Push("note", (0,)))
    assert texts(program)[1:] == ["even_only 1", "even_only 1", "(2, 1)"]


def test_either_of_two_reasons_may_be_told() -> None:
    pushes = (Push("even_only", (0,)), Push("even_pure", (0,)), Push("add", (1, 2)))
    outcome = interpret((Put((3,)), *pushes), [])[3]
    assert outcome.reasons == {"even_only 3", "even_pure 3"}


def test_cancelling_in_time_cancels_what_was_pushed_before_and_after() -> None:
    program = (Put((1,)), Push("note", (0,)), Push("note", (1,)), Cancel(1), Push("note", (2,)))
    assert texts(program, [True])[1:] == [CANCELLED] * 3
    assert texts(program, [False])[1:] == ["(2,)", "(3,)", "(4,)"]


def test_pure_work_that_nobody_sees_need_not_run() -> None:
    program = (Put((2,)), Push("axpy", (0, 0)), Push("note", (0,)), Drop(1), Drop(2))
    least, most = runs(program, interpret(program, []))
    assert (least["axpy"], most["axpy"], least["note"], most["note"]) == (0, 1, 1, 1)


def test_dropped_work_is_seen_by_who_needs_it() -> None:
    needed = (Put((2,)), Push("axpy", (0, 0)), Push("note", (1,)), Drop(1), Drop(2))
    waited = (Put((2,)), Push("axpy", (0, 0)), Read(1), Drop(1))
    flushed = (Put((2,)), Push("axpy", (0, 0)), Flush(1), Drop(1))
    for program in (needed, waited, flushed):
        assert 1 in seen(program, interpret(program, []))


def test_work_that_never_ran_needs_nothing() -> None:
    pushes = (Push("axpy", (0, 0)), Push("even_only", (0,)), Push("add", (1, 2)))
    program = (Put((1,)), *pushes, Drop(1))
    assert 1 not in seen(program, interpret(program, []))


def test_increment_that_nobody_reads_needs_no_target() -> None:
    pushes = (Push("axpy", (0, 0)), Push("gather", (1, 0)), Drop(1))
    unread = (Put((2,)), *pushes, Drop(2))
    assert 1 not in seen(unread, interpret(unread, []))
    assert 2 in seen(unread, interpret(unread, []))
    read = (Put((2,)), *pushes)
    assert 1 in seen(read, interpret(read, []))


def test_failed_batch_of_pure_work_may_be_tried_again() -> None:
    program = (Put((1,)), Push("even_batch", (0,)))
    least, most = runs(program, interpret(program, []))
    assert (least["even_batch"], most["even_batch"]) == (1, 2)


def test_graphs_in_all_orders_of_arrival_are_all_choices_of_earlier_operators() -> None:
    counts = [sum(1 for _ in graphs(count, count)) for count in (1, 2, 3, 4, 5)]
    assert counts == [1, 2, 8, 64, 1024]
    assert [len([*colourings(count, 2)]) for count in (1, 2, 3)] == [1, 2, 4]
    assert len({show(program) for program in exhaustive(3)}) == 2 * (1 + 2 * 2 + 8 * 4)
    assert len({show(program) for program in sorts(2)}) == 2 * (8 + 2 * 64)


@pytest.mark.parametrize("seed", range(20))
def test_text_of_a_program_makes_it_again(seed: int) -> None:
    program = random_program(seed)
    made = eval(show(program))  # of our own text, with the statements imported above
    assert made == program


def test_random_programs_mix_everything() -> None:
    found: set[str] = set()
    ran = bad = 0
    for seed in range(300):
        program = random_program(seed)
        statements = [*flat(program)]
        found |= {type(each).__name__ for each in (*program, *statements)}
        found |= {each.operator for each in statements if isinstance(each, Push)}
        asked = sum(isinstance(each, Cancel) for each in statements)
        for outcome in interpret(program, [True] * asked):
            ran, bad = ran + outcome.ran, bad + bool(outcome.reasons)
    missing = {"Put", "Push", "Cancel", "Drop", "Read", "Flush", "Hold", "even_grow"} - found
    assert not missing
    assert ran > 2 * bad > 200


def test_programs_of_a_seed_are_always_the_same() -> None:
    assert random_program(5) == random_program(5)
    assert isinstance(random_program(6)[0], Put)
    assert not any(isinstance(each, Hold) for each in flat(random_program(6)))
