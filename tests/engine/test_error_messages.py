"""What users may get wrong: each an error that names the operation and the argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=1) as engine:
        yield engine


class Same(tn.Operator):
    def run(self, x: Any, y: int = 1) -> Any:
        return x


WRONG = [
    ({"threads": "a"}, TypeError),
    ({"threads": 1.5}, TypeError),
    ({"threads": True}, TypeError),
    ({"threads": 0}, ValueError),
    ({"threads": 1025}, ValueError),
    ({"batch_limit": 1.5}, TypeError),
    ({"batch_limit": "64"}, TypeError),
    ({"batch_limit": 0}, ValueError),
    ({"batch_wait": "50us"}, TypeError),
    ({"batch_wait": 1j}, TypeError),
    ({"batch_wait": -1}, ValueError),
    ({"batch_wait": float("nan")}, ValueError),
    ({"memory_limit": 1.5}, TypeError),
    ({"memory_limit": 0}, ValueError),
    ({"memory_limit": -1}, ValueError),
    ({"memory_limit": "2 GB or so"}, ValueError),
]


@pytest.mark.parametrize(("argument", "error"), WRONG)
def test_argument_of_an_engine_is_named(argument: dict[str, Any], error: type[Exception]) -> None:
    ((name, value),) = argument.items()
    with pytest.raises(error, match=f"Engine: {name} (is )?{value!r}"):
        tn.Engine(**argument)


def test_arguments_of_an_engine_may_be_numbers_of_numpy() -> None:
    tn.Engine(threads=np.int64(2), batch_wait=np.float32(0.5), memory_limit=np.int64(10)).shutdown()


@pytest.mark.parametrize("wait", ["get", "exception"])
@pytest.mark.parametrize(
    ("timeout", "error"), [(-1, ValueError), (float("nan"), ValueError), ("1", TypeError)]
)
def test_timeout_that_is_none_is_told(
    engine: tn.Engine, wait: str, timeout: Any, error: type[Exception]
) -> None:
    handle = engine.put(1.0)
    with pytest.raises(error, match=f"{wait}: timeout is {timeout!r}"):
        getattr(handle, wait)(timeout=timeout)
    assert getattr(handle, wait)(timeout=float("inf")) in (1.0, None)


@pytest.mark.parametrize("operator", [tn.operators.sum, Same()])
def test_handle_as_a_parameter_is_told(engine: tn.Engine, operator: Any) -> None:
    name = "axis" if operator is tn.operators.sum else "y"
    handle = engine.put(1)
    for given in (handle, (handle,), [0, [handle]]):
        with pytest.raises(TypeError, match=f"push: parameter '{name}' is a handle"):
            engine.push(operator, np.ones(3), **{name: given})


def test_bare_handle_as_a_result_is_told(engine: tn.Engine) -> None:
    handle = engine.put(1)

    class Returns(tn.Operator):
        def run(self) -> Any:
            return handle

    with pytest.raises(tn.errors.RunError, match=r"(?s)Returns.*it returned a handle"):
        engine.push(Returns()).get()


def test_operator_may_return_a_list_of_handles(engine: tn.Engine) -> None:
    handle = engine.put(1)

    class Returns(tn.Operator):
        def run(self) -> Any:
            return [handle]

    assert engine.push(Returns()).get()[0].get() == 1


@pytest.mark.filterwarnings("error")
def test_coroutine_as_a_result_is_told(engine: tn.Engine) -> None:
    class Later(tn.Operator):
        async def run(self) -> int:
            return 1

    with pytest.raises(tn.errors.RunError, match=r"(?s)Later.*coroutine.*without async"):
        engine.push(Later()).get()


def test_integer_that_no_dtype_holds_is_told_with_the_operator(engine: tn.Engine) -> None:
    error = engine.push(tn.operators.add, 2**70, 2).exception()
    assert isinstance(error.__cause__, OverflowError)
    assert str(error).startswith("add: ")
    assert "dtype=tn.float64" in str(error)


def test_names_in_the_graph_are_quoted(engine: tn.Engine) -> None:
    odd = type('say "hi" \\', (tn.Operator,), {"run": lambda self: None})
    with engine.hold():
        engine.push(odd())
        text = engine.graph()
    assert r'label="say \"hi\" \\ ' in text


def test_error_of_memory_says_what_was_called_and_why() -> None:
    with tn.Engine(threads=1, memory_limit=100) as engine:
        with pytest.raises(MemoryError, match=r"put: 800 bytes .* nothing that runs"):
            engine.put(np.ones(100))
        with pytest.raises(MemoryError, match="push: 800 bytes"):
            engine.push(tn.operators.add, np.ones(100), 1.0)
        kept = engine.put(np.ones(5))
        with engine.hold():
            handles = [engine.push(tn.operators.add, kept, kept)]
            with pytest.raises(MemoryError, match=r"push: .* under hold nothing runs"):
                handles.append(engine.push(tn.operators.add, kept, 1.0))
