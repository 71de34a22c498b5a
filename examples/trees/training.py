"""Trains a Tree-LSTM to evaluate formulas: trees of `and`, `or`, `not`, `true` and `false`.

Every step has new formulas, so no tree is seen twice. Gradients are those of the pending graph:
`tn.grad_of(loss, parameters)` after an ordinary recursion. Adam is ten lines.

Run, from examples/: python -m trees.training --help
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import click
import numpy as np

import tenfold as tn
from trees.syntax_trees import Tree
from trees.tree_lstm import padded

LABELS = ("and", "or", "not", "true", "false")
NUMBER = {label: number for number, label in enumerate(LABELS)}
DEEPEST = 4


@dataclass
class Parameters:
    """Weights of a Tree-LSTM and of the logistic regression on the states of roots."""

    table: tn.Array
    """A row for each label, (labels, n)."""
    w: tn.Array
    """(n, 4n); the gates stand in the order input, output, forget, update."""
    b: tn.Array
    """(4n,)."""
    u: tn.Array
    """(4n, n)."""
    last: tn.Array
    """(n,)."""

    def __iter__(self) -> Iterator[tn.Array]:
        return (getattr(self, field.name) for field in fields(self))


def parameters(count: int, n: int, seed: int = 0, dtype: type = np.float32) -> Parameters:
    """Return random parameters for so many labels and states of `n` numbers."""
    draw = np.random.default_rng(seed)
    shapes = (count, n), (n, 4 * n), (4 * n,), (4 * n, n), (n,)
    return Parameters(*(tn.asarray(draw.uniform(-1, 1, s).astype(dtype) / n**0.5) for s in shapes))


Pair = tuple[tn.Array, tn.Array]
"""`u @ state` and memory of a child; or their sums over several children, gated."""
WIDEST = 4
"""Children that one call takes: wide nodes are rare, and each signature is compiled."""


def kept(gates: tn.Array, below: list[Pair]) -> Pair:
    """Return the sums over children: of `u @ state`, and of what is not forgotten of memories."""
    forget = slice(2 * gates.shape[0] // 4, 3 * gates.shape[0] // 4)
    return added([(uh, tn.sigmoid(gates[forget] + uh[forget]) * c) for uh, c in below])


def added(pairs: list[Pair]) -> Pair:
    """Return the sum of pairs."""
    states, memories = zip(*pairs, strict=True)
    return sum(states[1:], states[0]), sum(memories[1:], memories[0])


def closed(gates: tn.Array, below: list[Pair]) -> Pair:
    """Return state and memory of a node, from the sums over its children."""
    n = gates.shape[0] // 4
    for uh, _ in below:
        gates = gates + uh
    memory = tn.sigmoid(gates[:n]) * tn.tanh(gates[3 * n :])
    for _, c in below:
        memory = memory + c
    return tn.sigmoid(gates[n : 2 * n]) * tn.tanh(memory), memory


@tn.function
def cell(gates: tn.Array, below: list[Pair]) -> Pair:
    """Return state and memory of a node of few children."""
    return closed(gates, [kept(gates, below)] if below else [])


kept_of_some, sum_of_some, wide_cell = map(tn.function, (kept, added, closed))


def roots(given: Parameters, rows: tn.Array, forest: Sequence[Tree]) -> tn.Array:
    """Return the states of roots, (trees, n); `rows` has that of each node's label, in preorder."""
    n, gates = rows.shape[1], iter(rows @ given.w + given.b)
    absent = tn.zeros(4 * n, dtype=rows.dtype), tn.zeros(n, dtype=rows.dtype)

    def some(pairs: list[Pair]) -> Iterator[list[Pair]]:
        for at in range(0, len(pairs), WIDEST):
            part = pairs[at : at + WIDEST]
            yield part + [absent] * (WIDEST - len(part))

    def states(tree: Tree) -> Pair:
        own = next(gates)
        below = [(given.u @ h, c) for h, c in map(states, tree.children)]
        if len(below) <= WIDEST:
            return cell(own, padded(below, absent))
        parts = [kept_of_some(own, part) for part in some(below)]
        while len(parts) > 1:
            parts = [sum_of_some(part) for part in some(parts)]
        return wide_cell(own, parts)

    return tn.stack([states(tree)[0] for tree in forest])


def logits(given: Parameters, forest: Sequence[Tree]) -> tn.Array:
    """Return a number for each tree: above 0 means true."""
    numbers = np.array([NUMBER[node.label] for tree in forest for node in tree])
    return roots(given, given.table[numbers], forest) @ given.last


def loss_of(z: tn.Array, truths: np.ndarray) -> tn.Array:
    """Return the mean cross-entropy of logits."""
    return tn.mean(tn.logaddexp(z, tn.zeros_like(z)) - truths * z)


def formula(draw: random.Random, depth: int = DEEPEST) -> Tree:
    """Return a random formula."""
    label = draw.choice(LABELS[:3] if draw.random() < depth / DEEPEST else LABELS[3:])
    children = {"and": 2, "or": 2, "not": 1}.get(label, 0)
    return Tree(label, tuple(formula(draw, depth - 1) for _ in range(children)))


def truth(tree: Tree) -> bool:
    """Return the value of a formula."""
    below = [*map(truth, tree.children)]
    return {"and": all(below), "or": any(below), "not": not all(below), "true": True}.get(
        tree.label, False
    )


def batches(seed: int, size: int) -> Iterator[tuple[list[Tree], np.ndarray]]:
    """Give new formulas and their values, without end."""
    draw = random.Random(seed)
    while True:
        forest = [formula(draw) for _ in range(size)]
        yield forest, np.array([*map(truth, forest)], np.float32)


class Adam:
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), in place."""

    def __init__(self, parameters: Sequence[tn.Array], rate: float) -> None:
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.moments = [(tn.zeros_like(x), tn.zeros_like(x)) for x in parameters]

    def step(self, gradients: Sequence[tn.Array]) -> None:
        """Change the parameters."""
        self.steps += 1
        scale = self.rate * (1 - 0.999**self.steps) ** 0.5 / (1 - 0.9**self.steps)
        for x, g, (m, v) in zip(self.parameters, gradients, self.moments, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            x -= scale * m / (tn.sqrt(v) + 1e-8)
        tn.eval(*self.parameters, *(x for pair in self.moments for x in pair))


def train(given: Parameters, steps: int, size: int, rate: float = 0.03) -> Iterator[float]:
    """Change parameters step by step, and give the loss of each."""
    optimiser = Adam([*given], rate)
    for _, (forest, truths) in zip(range(steps), batches(1, size), strict=False):
        loss = loss_of(logits(given, forest), truths)
        gradients = tn.grad_of(loss, [*given])
        tn.eval(loss, *gradients)  # together: apart, both would compute the states
        optimiser.step(gradients)
        yield loss.item()


def accuracy(given: Parameters, count: int) -> float:
    """Return the share of new formulas whose value is found."""
    forest, truths = next(batches(2, count))
    return float(np.mean((np.asarray(logits(given, forest)) > 0) == (truths > 0)))


@click.command()
@click.option("--steps", default=60, show_default=True, type=click.IntRange(1))
@click.option("--size", default=24, show_default=True, type=click.IntRange(1), help="Of a step.")
@click.option("--hidden", default=16, show_default=True, type=click.IntRange(1))
def main(steps: int, size: int, hidden: int) -> None:
    """Train on generated formulas, and print the accuracy on others."""
    given = parameters(len(LABELS), hidden)
    for number, loss in enumerate(train(given, steps, size), 1):
        if number % 20 == 0:
            print(f"step {number:4}, loss {loss:.3f}")
    print(f"{accuracy(given, 1000):.1%} of 1,000 new formulas are evaluated correctly")


if __name__ == "__main__":
    main()
