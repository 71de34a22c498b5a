"""Training a Tree-LSTM: forward, backward and update, with new syntax trees in every step.

Takes the number of rounds, of which 0 compares values alone; hands on a row for each number of
trees in a step. Tenfold and DyNet have the same model, weights, trees and rate, and take turns,
step by step; DyNet batches by itself. The time is the median of the steps from `WARM` on.

The loss is the mean of `(state of a root @ vector - TARGET)**2`. Both libraries update the rows of
labels that occur, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
from batching_work.tree_peers import load_dynet
from engine_work.rows import at_least, at_most, row
from kernel_work.measure import Row

import tenfold as tn
from trees.syntax_trees import Tree, labels, trees
from trees.training import Parameters, parameters, roots
from trees.tree_lstm import Weights, numpy_tree_lstm

HIDDEN, STEPS, WARM, RATE = 128, 30, 5, 1e-3
SIZES = {64: 1.6, 256: 1.5}
"""By trees in a step: how many times as fast as DyNet."""
LAUNCHES = 2.5
"""Those of the backward by those of the forward."""
TARGET = 1.0
FEW, DISTANCE, BOUND = 6, 1e-6, 1e-6
Step = Callable[[Sequence[Tree]], float]
"""Changes the parameters; returns the loss."""


def tree_rows(rounds: int, quick: bool, installed: set[str]) -> Iterator[Row]:
    """The rows."""
    wrong = wrong_derivative()
    for size, need in SIZES.items() if rounds else ():
        yield {**_row(size, need, 10 if quick else STEPS, "dynet" in installed), "wrong": wrong}
    if not rounds:
        yield {**row("tree-training", "derivative of a Tree-LSTM", {}), "wrong": wrong}


def _row(size: int, need: float, steps: int, has_dynet: bool) -> Row:
    forest = trees(size * steps)
    names = labels(forest)
    number_of = {name: number for number, name in enumerate(names)}
    given = parameters(len(names), HIDDEN)
    runs = {"dynet": dynet_step(given, number_of)} if has_dynet else {}
    runs["tenfold"] = tenfold_step(given, number_of)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    losses: dict[str, float] = {}
    for begin in range(0, len(forest) - size + 1, size):
        for name, run in runs.items():
            start = time.perf_counter()
            losses[name] = run(forest[begin : begin + size])
            seconds[name].append(time.perf_counter() - start)
    first = ", ".join(f"{1e3 * each:.0f}" for each in seconds["tenfold"][:WARM])
    middle = {name: 1e3 * median(each[WARM:]) for name, each in seconds.items()}
    ratio = middle["dynet"] / middle["tenfold"] if has_dynet else None
    verdicts = [at_least(need, ratio, "x DyNet")]
    if has_dynet:
        off = abs(losses["dynet"] / losses["tenfold"] - 1)
        verdicts.append(at_most(1e-3, off, "off DyNet's loss after all steps"))
    forward, both = launches(given, number_of, forest[:size])
    verdicts.append(at_most(LAUNCHES, (both - forward) / forward, "x launches of the forward"))
    title = f"training a Tree-LSTM, {size} new trees a step; steps 1 to {WARM}: {first} ms"
    return row(f"tree-training-{size}", title, middle, *verdicts, launches=[forward, both])


def rows_of(given: Parameters, number_of: dict[str, int], forest: Sequence[Tree]) -> Any:
    """Return numbers of the labels of all nodes, and the rows of the table."""
    numbers = np.array([number_of[node.label] for tree in forest for node in tree])
    return numbers, given.table[numbers]


def loss_of(given: Parameters, rows: tn.Array, forest: Sequence[Tree]) -> tn.Array:
    return tn.mean((roots(given, rows, forest) @ given.last - TARGET) ** 2)


def tenfold_step(given: Parameters, number_of: dict[str, int]) -> Step:
    def step(forest: Sequence[Tree]) -> float:
        numbers, rows = rows_of(given, number_of, forest)
        loss = loss_of(given, rows, forest)
        dense = [given.w, given.b, given.u, given.last]
        by_rows, *gradients = tn.grad_of(loss, [rows, *dense])
        tn.eval(loss, by_rows, *gradients)
        given.table = tn.add_at(given.table, numbers, -RATE * by_rows)
        for x, g in zip(dense, gradients, strict=True):
            x -= RATE * g
        tn.eval(given.table, *dense)
        return loss.item()

    return step


def launches(
    given: Parameters, number_of: dict[str, int], forest: Sequence[Tree]
) -> tuple[int, int]:
    """Return the launches of a warm forward, and of loss and gradients."""
    counts = []
    for has_gradient in (False, False, True, True):
        with tn.profile() as p:
            _, rows = rows_of(given, number_of, forest)
            loss = loss_of(given, rows, forest)
            wrt = [rows, given.w, given.b, given.u, given.last]
            tn.eval(loss, *(tn.grad_of(loss, wrt) if has_gradient else ()))
            loss.wait()
        counts.append(p.launches)
    return counts[1], counts[3]


def wrong_derivative() -> dict[str, str]:
    """Compare the derivative along a direction with differences of NumPy's losses, in float64."""
    forest = sorted(trees(64), key=lambda tree: tree.size)[20 : 20 + FEW]
    number_of = {name: number for number, name in enumerate(labels(forest))}
    given = parameters(len(number_of), HIDDEN, dtype=np.float64)
    _, rows = rows_of(given, number_of, forest)
    loss = loss_of(given, rows, forest)
    gradients = [*map(np.asarray, tn.grad_of(loss, [*given]))]
    random = np.random.default_rng(5)
    values = [*map(np.asarray, given)]
    directions = [random.standard_normal(x.shape) for x in values]
    ends = [
        numpy_loss([x + s * d for x, d in zip(values, directions, strict=True)], number_of, forest)
        for s in (-DISTANCE, DISTANCE)
    ]
    found = sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))
    error = abs(found - (ends[1] - ends[0]) / (2 * DISTANCE)) / abs(found)
    return {} if error <= BOUND else {"tenfold": f"differs from differences by {error:.3g}"}


def numpy_loss(
    values: Sequence[np.ndarray], number_of: dict[str, int], forest: Sequence[Tree]
) -> float:
    table, w, b, u, last = values
    embedding = {name: table[number] for name, number in number_of.items()}
    encode = numpy_tree_lstm(Weights(embedding, w.T.copy(), u, b))
    return float(np.mean([(encode(tree) @ last - TARGET) ** 2 for tree in forest]))


def dynet_step(given: Parameters, number_of: dict[str, int]) -> Step:
    """Return the step of DyNet, with copies of the parameters."""
    dy = load_dynet()
    n, owner = HIDDEN, dy.ParameterCollection()
    table = owner.add_lookup_parameters((len(number_of), n))
    table.init_from_array(np.asarray(given.table))
    w, b, u = np.asarray(given.w).T, np.asarray(given.b), np.asarray(given.u)
    blocks = [
        owner.parameters_from_numpy(np.ascontiguousarray(x[k * n : (k + 1) * n]))
        for k in range(4)
        for x in (b, w, u)
    ]
    last = owner.parameters_from_numpy(np.array(given.last))
    trainer = dy.SimpleSGDTrainer(owner, RATE)
    trainer.set_clip_threshold(0)
    affine, logistic, tanh, cmult = dy.affine_transform, dy.logistic, dy.tanh, dy.cmult

    def states(tree: Tree) -> tuple[Any, Any]:
        gates = [blocks[3 * k : 3 * k + 3] for k in range(4)]
        (bi, wi, ui), (bo, wo, uo), (bf, wf, uf), (bu, wu, uu) = gates
        x = dy.lookup(table, number_of[tree.label])
        if not tree.children:
            c = cmult(logistic(affine([bi, wi, x])), tanh(affine([bu, wu, x])))
            return cmult(logistic(affine([bo, wo, x])), tanh(c)), c
        below = [states(child) for child in tree.children]
        h = dy.esum([h for h, _ in below]) if len(below) > 1 else below[0][0]
        kept = [cmult(logistic(affine([bf, wf, x, uf, h])), c) for h, c in below]
        i, o = logistic(affine([bi, wi, x, ui, h])), logistic(affine([bo, wo, x, uo, h]))
        c = dy.esum([cmult(i, tanh(affine([bu, wu, x, uu, h]))), *kept])
        return cmult(o, tanh(c)), c

    def step(forest: Sequence[Tree]) -> float:
        assert owner.parameter_count()  # parameters go with their owner, so it is kept
        dy.renew_cg()
        losses = [dy.square(dy.dot_product(last, states(tree)[0]) - TARGET) for tree in forest]
        loss = dy.esum(losses) / len(losses)
        value = float(loss.value())
        loss.backward()
        trainer.update()
        return value

    return step
