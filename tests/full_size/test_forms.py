"""Every form of loop on both sides of every threshold of the planner, for each level of processor.

`make full-size` (TENFOLD_FULL_SIZE=all) runs everything; else there is a choice that
TENFOLD_FULL_SIZE_SEED seeds, of which a failure names the seed. A plain run takes an eighth of it.
"""

from __future__ import annotations

import os
import random

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
import thresholds
from loop_forms import FORMS, Form
from tenfold import _native
from tenfold.dtypes import canonical, kind_of
from tenfold.settings import CPU_LEVELS

SEED = int(os.environ.get("TENFOLD_FULL_SIZE_SEED", "0"))
EVERYTHING = os.environ.get("TENFOLD_FULL_SIZE") == "all"
COMBINATIONS, LENGTHS, LONG, MOST_BYTES = 4, 4, 1 << 17, 16 << 20
"""Of a choice: dtypes and processors of a form, and lengths of each: one is LONG or more, of an
array of MOST_BYTES at the most, past the cache with its result."""

MODES = {"unfused at first": {}, "native": {"tier": "1"}} | {
    name: {"tier": "1", "cpu": name}
    for name, level in CPU_LEVELS.items()
    if level <= _native.processor_level()
}
NAMED = {form.name: form for form in FORMS}


def _cases() -> list[tuple[str, str, str, tuple[int, ...]]]:
    """Form, dtype, mode and lengths, all or a seeded choice."""
    cases = []
    for form in FORMS:
        chosen = random.Random(f"{SEED} {form.name}")
        every = [(dtype, mode) for dtype in form.dtypes for mode in MODES]
        if not EVERYTHING:
            every = chosen.sample(every, min(COMBINATIONS, len(every)))
        for dtype, mode in every:
            lengths = [n for n in thresholds.lengths(canonical(dtype).itemsize) if _fits(form, n)]
            if not EVERYTHING:
                lengths = [n for n in lengths if n * canonical(dtype).itemsize <= MOST_BYTES]
                short, long = ([n for n in lengths if (n >= LONG) == is_long] for is_long in (0, 1))
                lengths = chosen.sample(short, LENGTHS - 1) + chosen.sample(long, min(len(long), 1))
            cases.append((form.name, dtype, mode, tuple(lengths)))
    return cases


def _fits(form: Form, length: int) -> bool:
    """Whether no operand is larger than what the tests may take."""
    if length > form.longest:
        return False
    one = form.operands(np.random.default_rng(0), "float64", 2)
    return max(each.size for each in one) // 2 * length <= thresholds.MOST_BYTES // 8 or (
        form.operands.__qualname__.startswith(("matrix", "vectors"))
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "dtype", "mode", "lengths"), _cases(), ids=lambda part: str(part).replace(" ", "_")
)
def test_form_has_numpys_values_and_the_bits_of_the_reference(name, dtype, mode, lengths):
    form = NAMED[name]
    for length in lengths:
        for run in range(2):  # the second has other values, by the plan of the first
            generator = np.random.default_rng([SEED, length, run])
            operands = form.operands(generator, dtype, length)
            try:
                _check(form, operands, MODES[mode], against_reference=run == 0)
            except Exception as error:
                error.add_note(f"length {length}, run {run}, TENFOLD_FULL_SIZE_SEED={SEED}")
                raise


@pytest.mark.parametrize("mode", MODES)
def test_last_of_many_indices_that_is_out_of_bounds_raises(mode):
    lengths = [n for n in thresholds.lengths(8) if n <= 1 << 20]
    if not EVERYTHING:
        lengths = sorted(random.Random(f"{SEED} {mode}").sample(lengths, 2 * LENGTHS))
    for length in lengths:
        x, index = np.arange(1000.0), np.arange(length) % 1000
        index[-1] = 1000
        with tn.options(**MODES[mode]):
            found = tn.take(tn.asarray(x), tn.asarray(index) + 0) + 1
            with pytest.raises(IndexError):
                found.wait()
            right = tn.take(tn.asarray(x), tn.asarray(index) - 1) + 1
            index[:-1] -= 1
            index[-1] = 999
            tn.testing.assert_equal_bits(right, x[index] + 1)


def _check(form: Form, operands, options, *, against_reference: bool) -> None:
    with tn.options(**options):
        found = form.with_tenfold(operands)
    with np.errstate(all="ignore"):
        _compare(form, found, operands)
    if against_reference and form.check in ("bits", "sums"):
        with tn.options(device="reference"):
            tn.testing.assert_equal_bits(found, form.with_tenfold(operands))


def _compare(form: Form, found: np.ndarray, operands) -> None:
    if form.check == "near":
        tn.testing.assert_close(found, np.asarray(form.with_numpy(operands)), ulp=form.ulp)
    elif form.check == "bits" or kind_of(found.dtype) in "biu":
        tn.testing.assert_equal_bits(found, np.asarray(form.with_numpy(operands)))
    else:
        wide = {"float64": np.longdouble, "complex128": np.clongdouble, "complex64": np.complex128}
        exact = [
            each.astype(wide.get(each.dtype.name, np.float64)) if each.dtype.kind in "fcV" else each
            for each in operands
        ]
        expected = np.asarray(form.with_numpy(exact)).astype(found.dtype)
        unit = float(ml_dtypes.finfo(found.dtype).eps)
        # All terms are positive. The tree of a sum is no deeper; a product goes on and on.
        depth = 64.0 if form.check == "sums" else 8 * (64 + max(each.size for each in exact)) ** 0.5
        tn.testing.assert_close(found, expected, rtol=2 * unit + depth * min(unit, 2.0**-23))
