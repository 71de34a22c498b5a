"""Settings: where a value comes from, and where it holds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tenfold as tn
from tenfold import settings


@pytest.fixture
def process_options() -> Iterator[None]:
    """Put the options of the process back."""
    before = dict(settings._process)
    yield
    settings._process.clear()
    settings._process.update(before)
    settings._publish()


def found(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Print the options in force in a process with these variables."""
    code = "from tenfold import settings; print(settings.current())"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_environment_sets_an_option_and_is_named_as_its_source() -> None:
    done = found({"TENFOLD_STRICT_DTYPES": "yes"})
    assert "'strict_dtypes': (True, 'environment TENFOLD_STRICT_DTYPES')" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("depth", ["10", ""])
def test_environment_that_does_not_fit_leaves_the_default_and_warns(depth: str) -> None:
    variables = {"TENFOLD_STRICT_DTYPES": "maybe", "TENFOLD_DEVICE": "abacus", "TENFOLD_DEBUG": "6",
                 "TENFOLD_THREADS": "abc", "TENFOLD_PENDING_DEPTH": depth}  # fmt: skip
    done = found(variables)
    for variable, text in variables.items():
        name = variable.removeprefix("TENFOLD_").lower()
        default = next(s.default for s in settings.SETTINGS if s.name == name)
        line = f"'{name}': ({default!r}, \"default, since {variable}='{text}' does not"
        assert line in done.stdout
        assert f"RuntimeWarning: {variable}" in done.stderr


@pytest.mark.parametrize("value", ["abc", 2.5, True, 0, None])
def test_number_of_threads_that_is_none_says_what_it_may_be(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a whole number from 1 to 4096"):
        tn.set_options(threads=value)


def test_option_of_a_block_ends_with_it_also_by_an_error() -> None:
    def fail() -> None:
        with tn.options(strict_dtypes=True):
            raise LookupError(settings.get("strict_dtypes"))

    with pytest.raises(LookupError, match="True"):
        fail()
    assert settings.get("strict_dtypes") is False


def test_inner_block_keeps_what_it_does_not_name() -> None:
    with tn.options(strict_dtypes=True), tn.options(debug=0):
        assert settings.get("strict_dtypes") is True
        assert settings.current()["strict_dtypes"] == (True, "tn.options")


def test_process_option_holds_until_a_block_says_otherwise(process_options: None) -> None:
    tn.set_options(strict_dtypes=True)
    assert settings.current()["strict_dtypes"] == (True, "tn.set_options")
    with pytest.raises(tn.errors.DTypeError):
        tn.ones(1) + tn.ones(1, dtype=tn.int8)
    with tn.options(strict_dtypes=False):
        assert (tn.ones(1) + tn.ones(1, dtype=tn.int8)).item() == 2.0


def test_block_of_one_task_does_not_reach_another() -> None:
    seen: dict[str, object] = {}

    async def strict(inside: asyncio.Event, done: asyncio.Event) -> None:
        with tn.options(strict_dtypes=True):
            inside.set()
            await done.wait()
            seen["strict"] = settings.get("strict_dtypes")

    async def other(inside: asyncio.Event, done: asyncio.Event) -> None:
        await inside.wait()
        seen["other"] = settings.get("strict_dtypes")
        done.set()

    async def both() -> None:
        inside, done = asyncio.Event(), asyncio.Event()
        await asyncio.gather(strict(inside, done), other(inside, done))

    asyncio.run(both())
    assert seen == {"strict": True, "other": False}


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"speed": 9}, tn.errors.UnsupportedError, "unknown option 'speed'"),
        ({"device": "abacus"}, tn.errors.DeviceError, "device 'abacus' does not exist"),
        ({"strict_dtypes": "perhaps"}, ValueError, "neither true nor false"),
        ({"pending_depth": 12}, ValueError, "not a whole number from 65"),
        ({"pending_depth": True}, ValueError, "pending_depth"),
        ({"debug": 1.5}, ValueError, "debug"),
    ],
)
def test_option_that_cannot_be_is_refused_and_nothing_changes(
    values: dict[str, object], error: type[Exception], text: str
) -> None:
    before = settings.current()
    with pytest.raises(error, match=text):
        tn.options(**values)
    with pytest.raises(error, match=text):
        tn.set_options(**values)
    assert settings.current() == before


def test_device_of_an_array_is_that_of_the_block_it_was_made_in() -> None:
    with tn.options(device="reference"):
        assert tn.zeros(1).device == "reference"
