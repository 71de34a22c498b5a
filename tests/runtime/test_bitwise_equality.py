"""Random programs have the same bits in every manner of computing them, and the reference's.

A few of them run each time; `make fuzz` runs 200 in all manners.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import hypothesis
import numpy as np
import pytest
from tests.random import expression_forms, random_programs
from tests.random.expression_draft import Seeded
from tests.random.leaves import Leaf
from tests.random.random_programs import Program, Step, built, expected, generate

import tenfold as tn
from tenfold import _native, caches

FUZZ = hypothesis.settings.default.max_examples >= 1000
"""Whether the profile is that of `make fuzz`."""
PROGRAMS = 200 if FUZZ else 16


class Manner(NamedTuple):
    """How a program is computed."""

    threads: int = 1
    cpu: str = "native"
    fuse: bool = True
    tier: str = "0"
    by_columns: bool = False
    """Whether its leaves lie in Fortran's order."""
    one_by_one: bool = False
    """Whether its arrays are computed one after the other, not together."""


LEVEL = _native.processor_level()
TARGETS = [f"x86-64-v{level}" for level in (4, 3) if level <= LEVEL]
ALL_MANNERS = [
    Manner(*each)
    for each in itertools.product((1, 2, 7), TARGETS, (True, False), "01", (False, True))
]
SINGLY = [Manner(2, tier="auto", one_by_one=True), Manner(7, "native", True, "auto", True, True)]
"""Each operation on elements by a loop for any shape."""
FEW_MANNERS = [
    Manner(),
    Manner(2, TARGETS[-1], True, "1", True) if TARGETS else Manner(2),
    Manner(7, TARGETS[0], False, "0", True) if TARGETS else Manner(7),
    Manner(2, "native", False, "1", False),
]
MANNERS = (ALL_MANNERS if FUZZ else FEW_MANNERS) + SINGLY


@pytest.fixture(autouse=True)
def small_ranges(target_facts: Callable[..., None]) -> Iterator[None]:
    """Little work is shared among threads too."""
    target_facts("work", serial_elements=0, range_elements=16, min_range_elements=16)
    caches.clear_all()
    with tn.options(device="cpu"):
        yield
    caches.clear_all()


def laid(program: Program, *, by_columns: bool) -> Program:
    """A program whose leaves are read where they lie, in C's or in Fortran's order."""

    def own(drawn: Leaf) -> Leaf:
        transposed = by_columns and drawn.values.ndim > 0
        return drawn._replace(layout=".T" if transposed else "", read_only=True)

    return [
        Step(step.target, own(step.drawn)) if isinstance(step.drawn, Leaf) else step
        for step in program
    ]


def values(program: Program, manner: Manner) -> dict[str, np.ndarray]:
    """What a program's arrays are when they are computed together."""
    options = manner._asdict()
    program = laid(program, by_columns=options.pop("by_columns"))
    one_by_one = options.pop("one_by_one")
    with tn.options(**options):
        arrays = built(program)
        for array in arrays.values() if one_by_one else ():
            array.wait()
        tn.eval(*arrays.values())
        return {name: np.asarray(array) for name, array in arrays.items()}


def digest(found: dict[str, np.ndarray]) -> str:
    """A hash of shapes, dtypes and bits; all NaNs are one."""
    text = hashlib.sha256()
    for name, array in found.items():
        text.update(f"{name} {array.dtype} {array.shape} ".encode())
        parts = np.ascontiguousarray(array).reshape(-1)
        parts = parts if array.dtype.kind != "c" else parts.view(array.real.dtype)
        if expression_forms.error_bounds.kind(parts.dtype) == "f":
            parts = np.where(parts != parts, np.array(np.nan, parts.dtype), parts)
        text.update(parts.tobytes())
    return text.hexdigest()


def differing(program: Program, manners: list[Manner]) -> str:
    """The first manner whose bits are not those of the first one; nothing when all agree."""
    first, *others = manners
    wanted = values(program, first)
    for manner in others:
        found = values(program, manner)
        if digest(found) != digest(wanted):
            names = [n for n in wanted if digest({n: found[n]}) != digest({n: wanted[n]})]
            return f"{names} by {manner}\n{random_programs.text_of(program)}"
    return ""


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, 4))
def test_random_programs_have_the_same_bits_in_every_manner(first: int) -> None:
    for seed in range(first, first + 4):
        assert not (wrong := differing(generate(Seeded(seed)), MANNERS)), f"seed {seed}: {wrong}"


@pytest.mark.fuzz
def test_without_elementary_functions_the_plainest_processor_has_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = [
        family for family in random_programs.FAMILIES if family is not expression_forms.ELEMENTARY
    ]
    monkeypatch.setattr(random_programs, "FAMILIES", plain)
    seen = 0
    for seed in range(10 * PROGRAMS):
        program = generate(Seeded(seed))
        if re.search(r"abs\(|sign\(|sqrt\(|\*\*", random_programs.text_of(program)):
            continue  # powers are elementary, and these of complex numbers
        seen += 1
        manners = [Manner(), Manner(cpu="x86-64")]
        assert not (wrong := differing(program, manners)), f"seed {seed}: {wrong}"
        if seen == PROGRAMS // 2:
            break
    assert seen


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, 4))
def test_random_programs_have_the_bits_of_the_reference_where_promised(first: int) -> None:
    for seed in range(first, first + 4):
        program = generate(Seeded(seed))
        found = values(program, Manner())
        with tn.options(device="reference"):
            wanted = {name: np.asarray(array) for name, array in built(program).items()}
        for name, bounded in expected(program).items():
            promised = bounded.error == 0
            pairs = (np.where(promised, x[name], 0) for x in (found, wanted))
            ours, reference = (digest({name: x.astype(found[name].dtype)}) for x in pairs)
            assert ours == reference, f"seed {seed}: {name}\n{random_programs.text_of(program)}"
