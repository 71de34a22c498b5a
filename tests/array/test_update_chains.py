"""Random chains of replaced parts mean what NumPy makes of them, whatever is planned together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.testing import assert_equal_bits

LENGTH = 6
Place = tuple[int, bool]
"""A row or a column, and whether every other element of it alone is meant, from the last."""


class Line(NamedTuple):
    """One assignment: a part, what is read, what becomes of that, and what is kept afterwards."""

    axis: int
    to: Place
    first: int
    second: int
    form: int
    keeps: str


LINES = st.builds(
    Line,
    st.sampled_from([0, 0, 0, 1]),
    st.tuples(st.integers(0, LENGTH - 1), st.sampled_from([False, False, False, True])),
    st.integers(0, LENGTH - 1),
    st.integers(0, LENGTH - 1),
    st.integers(0, 6),
    st.sampled_from([*["nothing"] * 9, "row", "column", "all", "waits"]),
)


def key(axis: int, place: Place) -> tuple[Any, ...]:
    number, some = place
    along = slice(None, None, -2) if some else slice(None)
    return (number, along) if axis == 0 else (along, number)


def value(x: Any, b: Any, line: Line) -> Any:
    """What a line computes, of arrays of NumPy's or of ours."""
    axis, some = line.axis, line.to[1]
    one, two = x[key(axis, (line.first, some))], x[key(axis, (line.second, some))]
    if line.form == 0:
        return 3
    if line.form == 1:
        return x[line.first, line.second]
    if line.form == 2:
        return one - b[key(axis, (line.second, some))]
    if line.form == 3:
        return x[key(1 - axis, (line.first, some))] + two
    return one if line.form == 4 else one * 2 + two


def kept(x: Any, line: Line) -> Any:
    if line.keeps in ("row", "column"):
        return x[key(int(line.keeps == "column"), (line.second, False))] * 1
    return x * 1 if line.keeps == "all" else None


def check(lines: list[Line], dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted, b = rng.integers(0, 9, (2, LENGTH, LENGTH)).astype(dtype)
    x, given = tn.asarray(wanted), tn.asarray(b)
    pairs = []
    for line in lines:
        part = key(line.axis, line.to)
        x = tn.set_at(x, part, value(x, given, line))
        wanted[part] = np.array(value(wanted, b, line))
        if line.keeps == "waits":
            x.wait()
        elif line.keeps != "nothing":
            pairs.append((kept(x, line), kept(wanted, line)))
    tn.eval(x, *(ours for ours, _ in pairs))
    assert_equal_bits(x, wanted)
    for ours, theirs in pairs:
        assert_equal_bits(ours, theirs)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(LINES, min_size=2, max_size=9),
    st.sampled_from(["float64", "int32", "float16", "complex64"]),
)
def test_random_chains_equal_numpy_when_planned_and_when_replayed(
    lines: list[Line], dtype: str
) -> None:
    for seed in range(2):
        check(lines, dtype, seed)


@settings(deadline=None, max_examples=20)
@given(st.lists(LINES, min_size=2, max_size=9))
def test_random_chains_equal_numpy_on_the_reference_device(lines: list[Line]) -> None:
    with tn.options(device="reference"):
        check(lines, "float64", 2)
