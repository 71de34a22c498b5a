"""`tenfold run`: what it calls, writes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Command = Callable[..., Any]


@pytest.fixture
def layer(folder: Path) -> Path:
    """A function of x and a tree, in layer.tn, and its arguments, in in.npz."""

    @tn.function
    def layer(x: Any, state: Any, *, gain: float = 2.0) -> Any:
        h = x + state["h"][0]
        return {"h": h * gain, "sums": (tn.sum(h), h)}

    layer.save(folder / "layer.tn", tn.ones(3), {"h": [tn.ones(3)]})
    np.savez(folder / "in.npz", **{"x": np.arange(3.0), "state['h'][0]": np.ones(3)})
    return folder


def test_arguments_and_results_have_names_in_archives(layer: Path, tenfold: Command) -> None:
    done = tenfold("run", "layer.tn", "in.npz", "out.npz")
    assert (done.code, done.out, done.err) == (0, "", "")
    with np.load(layer / "out.npz") as found:
        assert found["result['h']"].tolist() == [2, 4, 6]
        assert found["result['sums'][0]"].item() == 6
        assert len(found) == 3


def test_one_argument_and_one_result_are_npy_files(folder: Path, tenfold: Command) -> None:
    tn.function(lambda a: a * 2).save(folder / "f", tn.ones((2, 3)))
    assert tenfold("run", "f", "a.npy", "out.npy").code == 0
    np.testing.assert_array_equal(np.load("out.npy"), np.load("a.npy") * 2)


def test_other_arguments_are_refused_with_those_it_takes(layer: Path, refused: Command) -> None:
    text = refused(3, "run", "layer.tn", "a.npy", "out.npz")
    assert "takes x: float64[3], state['h'][0]: float64[3]" in text
    np.savez(layer / "in.npz", **{"x": np.ones(4), "state['h'][0]": np.ones(3)})
    assert "has x: float64[4]" in refused(3, "run", "layer.tn", "in.npz", "out.npz")


def test_file_that_is_no_function_is_refused(layer: Path, refused: Command) -> None:
    assert "it has no function.json" in refused(3, "run", "in.npz", "in.npz", "out.npz")
    assert "No such file" in refused(3, "run", "missing", "in.npz", "out.npz")


def test_several_results_need_an_archive(layer: Path, refused: Command) -> None:
    assert "holds one array, not 3" in refused(2, "run", "layer.tn", "in.npz", "out.npy")


def test_failure_of_the_function_is_a_failed_computation(folder: Path, refused: Command) -> None:
    tn.function(lambda a: tn.linalg.inv(a @ a.T * 0)).save(folder / "f", tn.ones((2, 3)))
    assert "Singular matrix" in refused(4, "run", "f", "a.npy", "out.npy")
