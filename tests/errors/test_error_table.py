"""Each program of the table raises what the table says, at the wrong line or at the wait."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tenfold as tn
from tenfold.core.graph import Graph
from tenfold.runtime import device

from . import call_errors, dtype_errors, einsum_errors, index_errors, loop_errors, shape_errors
from .error_table import MISTAKES, Mistake

MODULES = (call_errors, dtype_errors, index_errors, loop_errors, shape_errors, einsum_errors)
PACKAGE = Path(tn.__file__).parent
AT_THE_LINE = [mistake for mistake in MISTAKES if not mistake.at_wait]
AT_THE_WAIT = [mistake for mistake in MISTAKES if mistake.at_wait]


class Second:
    """A device that exists, and computes nothing."""

    name = "second"

    def run(self, graph: Graph) -> Any:
        raise AssertionError("nothing here is computed")


@pytest.fixture(scope="module", autouse=True)
def second_device() -> Iterator[None]:
    device.declare(Second())
    yield
    device.DEVICES.pop("second")
    tn.settings.DEVICE_IDS.pop("second")


def name_of(mistake: Mistake) -> str:
    return mistake.program.__name__


def raised(mistake: Mistake) -> BaseException:
    with pytest.raises(mistake.error) as caught:
        mistake.program()
    return caught.value


def line_outside(error: BaseException) -> tuple[str, int | None]:
    """The last place in a traceback that is no line of tenfold."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if PACKAGE not in Path(frame.filename).parents]
    return outside[-1].filename, outside[-1].lineno


def check_text(mistake: Mistake, error: BaseException) -> None:
    lines = str(error).splitlines()
    first = mistake.message.replace("{place}", f"{mistake.file}:{mistake.line}")
    assert lines[0] == first.replace("{device}", tn.zeros(1).device)
    operands = [line for line in lines if line.startswith("  operand ")]
    assert [line.split(":")[0] for line in operands] == [
        f"  operand {position}" for position in range(1, mistake.operands + 1)
    ]
    assert all(" shape " in line or ": a Python " in line for line in operands)
    assert len(lines) == 1 + mistake.operands + mistake.remedy
    assert not mistake.remedy or lines[-1].startswith("  remedy: ")


def test_the_table_has_many_programs() -> None:
    assert len(MISTAKES) >= 150
    assert len({name_of(mistake) for mistake in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("mistake", AT_THE_LINE, ids=name_of)
def test_a_mistake_raises_where_it_is_written_and_nothing_runs(mistake: Mistake) -> None:
    with tn.profile() as p:
        error = raised(mistake)
    assert type(error) is mistake.error
    assert line_outside(error) == (mistake.file, mistake.line)
    check_text(mistake, error)
    assert p.kernels + p.calls == 0
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize("mistake", AT_THE_LINE, ids=name_of)
def test_a_mistake_made_twice_raises_the_same(mistake: Mistake) -> None:
    first, second = raised(mistake), raised(mistake)
    assert first is not second
    assert str(first) == str(second)


@pytest.mark.parametrize("mistake", AT_THE_WAIT, ids=name_of)
def test_a_failure_for_values_raises_at_the_wait_only(mistake: Mistake) -> None:
    with tn.profile() as p:
        array = mistake.program()
        assert repr(array).startswith("<Array ")
        assert array.shape is not None
        dependant = array + 1
    assert p.kernels + p.calls == 0
    for waited in (array, dependant):
        with pytest.raises(mistake.error) as caught:
            waited.wait()
        assert type(caught.value) is mistake.error
        check_text(mistake, caught.value)


@pytest.mark.parametrize("mistake", AT_THE_WAIT, ids=name_of)
def test_each_wait_raises_a_fresh_exception_from_the_original(mistake: Mistake) -> None:
    array = mistake.program()
    errors = []
    for _ in range(3):
        with pytest.raises(mistake.error) as caught:
            array.wait()
        errors.append(caught.value)
    assert len({id(error) for error in errors}) == 3
    assert len({str(error) for error in errors}) == 1
    depths = [len(traceback.extract_tb(error.__traceback__)) for error in errors]
    assert depths[0] == depths[1] == depths[2]
    lying = "lies" in name_of(mistake)
    assert lying or all(error.__cause__ is not None for error in errors)


@pytest.mark.parametrize("mistake", AT_THE_WAIT, ids=name_of)
def test_a_failure_leaves_independent_work_alone(mistake: Mistake) -> None:
    array = mistake.program()
    independent = tn.asarray([1, 2]) * 3
    after = independent + 1
    tn.eval(independent, array, after)
    assert independent.tolist() == [3, 6]
    assert after.tolist() == [4, 7]
    with pytest.raises(mistake.error):
        array.wait()
    assert (tn.asarray([1, 2]) + 1).tolist() == [2, 3]


def test_programs_are_wrong_in_their_last_line() -> None:
    for module in MODULES:
        for node in ast.parse(Path(module.__file__).read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            last = node.body[-1].body[-1] if isinstance(node.body[-1], ast.With) else node.body[-1]
            assert last.lineno == last.end_lineno, f"{node.name} ends in several lines"
