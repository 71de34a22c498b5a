"""A child-sum Tree-LSTM and a recursive network over trees, one function call for each node.

The formulas are those of Tai, Socher, Manning, "Improved Semantic Representations From
Tree-Structured Long Short-Term Memory Networks" (2015), equations 2 to 8. A node multiplies its
state by all that its parent will want of it, `u @ h`: the parent's gates are sums then.

Run, from examples/: python -m trees.tree_lstm --help
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import tenfold as tn
from comparison import compare, computed
from trees.syntax_trees import Tree, labels
from trees.syntax_trees import trees as syntax_trees

Encoder = Callable[[Tree], Any]
"""From a tree to the state of its root."""


@dataclass(frozen=True)
class Weights:
    """The gates stand in the order input, output, forget, update; `n` is the size of a state."""

    embedding: Mapping[str, np.ndarray]
    """For each label, (n,)."""
    w: np.ndarray
    """(4n, n)."""
    u: np.ndarray
    """(4n, n)."""
    b: np.ndarray
    """(4n,)."""


def weights(labels: Sequence[str], hidden: int, seed: int = 8) -> Weights:
    """Return random weights, float32, for trees of these labels."""
    random = np.random.default_rng(seed)

    def uniform(*shape: int, bound: float) -> np.ndarray:
        return random.uniform(-bound, bound, shape).astype(np.float32)

    bound = hidden**-0.5
    return Weights(
        {label: uniform(hidden, bound=1.0) for label in labels},
        uniform(4 * hidden, hidden, bound=bound),
        uniform(4 * hidden, hidden, bound=bound),
        uniform(4 * hidden, bound=bound),
    )


def tree_lstm(weights: Weights) -> Encoder:
    """Return a Tree-LSTM of Tenfold: an ordinary recursion, which computes nothing."""
    w, u, b = map(tn.asarray, (weights.w, weights.u, weights.b))
    embedding = {label: tn.asarray(x) for label, x in weights.embedding.items()}
    n = weights.u.shape[1]
    absent = tuple(tn.zeros(length, dtype=w.dtype).wait() for length in (4 * n, n))

    @tn.function
    def cell(wx: tn.Array, below: list[tuple[tn.Array, tn.Array]]) -> tuple[tn.Array, tn.Array]:
        gates = wx + b
        total, c = gates, None
        for uh, memory in below:
            total = total + uh
            kept = tn.sigmoid(gates[2 * n : 3 * n] + uh[2 * n : 3 * n]) * memory
            c = kept if c is None else c + kept
        written = tn.sigmoid(total[:n]) * tn.tanh(total[3 * n :])
        c = written if c is None else written + c
        return tn.sigmoid(total[n : 2 * n]) * tn.tanh(c), c

    def states(tree: Tree) -> tuple[tn.Array, tn.Array]:
        below = [(u @ h, c) for h, c in map(states, tree.children)]
        return cell(w @ embedding[tree.label], padded(below, absent))

    return lambda tree: states(tree)[0]


def padded(below: list[Any], absent: Any) -> list[Any]:
    """Return a list of 0, 1, 2, 4, 8, ... children: one that is absent adds nothing.

    So nodes of five children are batched with those of eight, and few signatures suffice.
    """
    count = len(below)
    missing = (1 << (count - 1).bit_length()) - count if count else 0
    return below + [absent] * missing if missing else below


def recursive_network(weights: Weights) -> Encoder:
    """Return a recursive neural network of Tenfold, `tanh(w @ x + u @ (sum of children) + b)`."""
    n = weights.u.shape[1]
    w, u, b = map(tn.asarray, (weights.w[:n], weights.u[:n], weights.b[:n]))
    embedding = {label: tn.asarray(x) for label, x in weights.embedding.items()}
    absent = tn.zeros(n, dtype=w.dtype).wait()

    @tn.function
    def cell(wx: tn.Array, below: list[tn.Array]) -> tn.Array:
        return tn.tanh(sum(below, wx + b))

    def encode(tree: Tree) -> tn.Array:
        below = [u @ encode(child) for child in tree.children]
        return cell(w @ embedding[tree.label], padded(below, absent))

    return encode


def numpy_tree_lstm(weights: Weights) -> Encoder:
    """Return the same Tree-LSTM written for NumPy, node by node."""
    n = weights.u.shape[1]
    w, u, b = weights.w, weights.u, weights.b
    w_leaf = np.concatenate([w[: 2 * n], w[3 * n :]])  # a leaf has nothing to forget
    b_leaf = np.concatenate([b[: 2 * n], b[3 * n :]])
    u_rest, u_forget = np.concatenate([u[: 2 * n], u[3 * n :]]), u[2 * n : 3 * n].T.copy()

    def states(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        x = weights.embedding[tree.label]
        if not tree.children:
            gates = w_leaf @ x
            gates += b_leaf
            opened = numpy_sigmoid(gates[: 2 * n])
            c = opened[:n] * np.tanh(gates[2 * n :])
            return opened[n:] * np.tanh(c), c
        below = [states(child) for child in tree.children]
        gates = w @ x
        gates += b
        forget = gates[2 * n : 3 * n]
        if len(below) == 1:
            ((h, memory),) = below
            kept = numpy_sigmoid(h @ u_forget + forget) * memory
        else:
            hs, memories = np.array([h for h, _ in below]), np.array([c for _, c in below])
            h = hs.sum(axis=0)
            kept = np.einsum("kn,kn->n", numpy_sigmoid(hs @ u_forget + forget), memories)
        rest = u_rest @ h
        opened = numpy_sigmoid(gates[: 2 * n] + rest[: 2 * n])
        c = opened[:n] * np.tanh(gates[3 * n :] + rest[2 * n :]) + kept
        return opened[n:] * np.tanh(c), c

    return lambda tree: states(tree)[0]


def numpy_sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), in few passes."""
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1
    return np.reciprocal(y, out=y)


def numpy_recursive_network(weights: Weights) -> Encoder:
    """Return the same recursive network written for NumPy."""
    n = weights.u.shape[1]
    w, u, b = weights.w[:n], weights.u[:n], weights.b[:n]

    def encode(tree: Tree) -> np.ndarray:
        total = w @ weights.embedding[tree.label]
        total += b
        if tree.children:
            total += u @ sum(map(encode, tree.children))
        return np.tanh(total)

    return encode


MODELS = {
    "tree-lstm": (tree_lstm, numpy_tree_lstm),
    "recursive": (recursive_network, numpy_recursive_network),
}


@click.command()
@click.option("--count", default=128, show_default=True, type=click.IntRange(1), help="Trees.")
@click.option("--hidden", default=128, show_default=True, type=click.IntRange(1))
@click.option("--model", default="tree-lstm", show_default=True, type=click.Choice([*MODELS]))
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the batches (SVG).")
def main(count: int, hidden: int, model: str, picture: Path | None) -> None:
    """Encode syntax trees of the standard library, and compare with NumPy."""
    forest = syntax_trees(count)
    given = weights(labels(forest), hidden)
    own, other = (make(given) for make in MODELS[model])
    nodes, depth = sum(tree.size for tree in forest), max(tree.depth for tree in forest)
    compare(
        f"{count:,} trees of {nodes:,} nodes, at most {depth} deep, {model}",
        lambda: computed([own(tree) for tree in forest]),
        lambda: [other(tree) for tree in forest],
        picture,
    )


if __name__ == "__main__":
    main()
