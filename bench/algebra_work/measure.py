"""One experiment measured: values and multiply-adds first, then rounds of turns.

Takes an `Experiment`, the peers, rounds, the order of the matrices and their dtype; hands on a dict
for the table and the JSON file, as `kernel_work.measure` does. The ratio to BLAS by hand is the
median of the ratios of the rounds, so that what slows the machine down meets both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from kernel_work.measure import Row, Runner, difference, median, take_turns
from kernel_work.peers import Function, Peer, as_is
from kernel_work.rows import Work

import tenfold as tn
from algebra_work.experiments import Experiment, Limit
from algebra_work.hand import Blas

TOLERANCES = {"float32": 2e-2, "float64": 1e-8}
"""Of the largest value: how far values may be from NumPy's, which has them as written."""


def blas_peer(dtype: str) -> Peer:
    """BLAS by hand, as if it were a library."""
    scipy = __import__("scipy")
    by = Blas(dtype)
    return Peer("blas", scipy.__version__, as_is, lambda work: work.formula("blas", by), together)


def together(values: Any) -> np.ndarray:
    """One array of what may be several."""
    if isinstance(values, tuple):
        return np.stack([np.asarray(each) for each in values])
    return np.asarray(values)


def of_several(peer: Peer) -> Peer:
    """The peer for formulas that may have several results."""
    prepare = {"tenfold": tenfold_function, "jax": jax_function}.get(peer.name, peer.prepare)
    return replace(peer, prepare=prepare, values=together)


def tenfold_function(work: Work) -> Function:
    """Build, evaluate all at once, and wait."""
    formula = work.formula("tenfold", tn)

    def function(*inputs: Any) -> Any:
        made = formula(*inputs)
        if not isinstance(made, tuple):
            return made.wait()
        tn.eval(*made)
        return tuple(each.wait() for each in made)

    return function


def jax_function(work: Work) -> Function:
    jax = __import__("jax")
    function = jax.jit(work.formula("jax", jax.numpy))
    return lambda *inputs: jax.block_until_ready(function(*inputs))


def measure(
    experiment: Experiment, peers: Mapping[str, Peer], rounds: int, size: int, dtype: str
) -> Row:
    """Everything the table says of an experiment."""
    work, dtype = experiment.work, experiment.dtype or dtype
    made = work.inputs(np.random.default_rng(20), size)
    arrays = [np.ascontiguousarray(array, dtype) for array in made]
    expected = together(peers["numpy"].prepare(work)(*arrays))
    allowed = TOLERANCES[dtype]
    tolerance = (allowed, allowed * float(np.max(np.abs(expected))))
    row: Row = {"name": work.name, "group": experiment.group, "title": work.title, "wrong": {}}
    runners: dict[str, Runner] = {}
    for name in work.peers:
        if name in peers:
            runners[name] = runner = Runner.of(work, peers[name], arrays)
            values = peers[name].values(runner.function(*runner.make()))
            told = "" if name in experiment.apart else difference(values, expected, tolerance)
            if told:
                row["wrong"][name] = told
            if rounds:
                runner.fill_turn()
    row["multiply_adds"] = counted(runners["tenfold"])
    row["rounds"] = take_turns(runners, None, rounds)
    row["milliseconds"] = {name: median(row["rounds"][name]) for name in runners}
    row["verdicts"] = [judged(limit, row["rounds"]) for limit in experiment.limits]
    if experiment.least is not None:
        row["verdicts"].append(count(experiment, row["multiply_adds"], size))
    if "tenfold" in row["wrong"]:
        row["verdicts"].append({"required": "NumPy's values", "found": None, "met": False})
    return row


def counted(runner: Runner) -> int:
    """The multiply-adds of one call that is not timed, of a known plan."""
    inputs = runner.make()
    runner.function(*inputs)
    with tn.profile() as profile:
        runner.function(*inputs)
    return profile.multiply_adds


def judged(limit: Limit, rounds: Mapping[str, list[float]]) -> Row:
    """What is required of the time: of the median of the ratios of the rounds."""
    if limit.peer not in rounds:
        return {"required": limit.text, "found": None, "met": None}
    pairs = zip(rounds["tenfold"], rounds[limit.peer], strict=True)
    ratio = median([one / other for one, other in pairs])
    return {"required": limit.text, "found": ratio, "met": ratio <= limit.times}


def count(experiment: Experiment, found: int, size: int) -> Row:
    """What is required of the multiply-adds."""
    assert experiment.least is not None, "it has a count"
    least = experiment.least(size)
    text = f"multiply-adds {experiment.formula} = {least:,}"
    return {"required": text, "found": found, "met": found <= least, "exact": True}
