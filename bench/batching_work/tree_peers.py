"""The child-sum Tree-LSTM of examples/trees in the other libraries, as who knows each writes it.

Takes weights; hands on a function from trees to the states of their roots, which are computed when
it returns. JAX and PyTorch go node by node, DyNet batches by itself.

    states = torch_tree_lstm(weights)(trees)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from kernel_work import THREADS

import tenfold as tn
from trees.syntax_trees import Tree
from trees.tree_lstm import Weights, numpy_tree_lstm, tree_lstm

Forest = Sequence[Tree]
Runner = Callable[[Forest], Sequence[Any]]


def tenfold_runner(weights: Weights) -> Runner:
    encode = tree_lstm(weights)

    def run(trees: Forest) -> Sequence[tn.Array]:
        roots = [encode(tree) for tree in trees]
        tn.eval(*roots)
        roots[-1].wait()  # what was submitted together ends together
        return roots

    return run


def numpy_runner(weights: Weights) -> Runner:
    encode = numpy_tree_lstm(weights)
    return lambda trees: [encode(tree) for tree in trees]


def torch_runner(weights: Weights) -> Runner:
    """Eager: products with their bias in one call, gates that share a function in one."""
    torch = import_module("torch")
    torch.set_num_threads(THREADS)
    n, parts = weights.u.shape[1], gates(weights)
    given = {name: torch.from_numpy(values) for name, values in parts.items()}
    w, b, w_leaf, b_leaf, u_rest = (given[name] for name in "w b w_leaf b_leaf u_rest".split())
    u_forget = given["u_forget"]
    embedding = {label: torch.from_numpy(x) for label, x in weights.embedding.items()}
    addmv, addmm, sigmoid, tanh = torch.addmv, torch.addmm, torch.sigmoid, torch.tanh

    def states(tree: Tree) -> tuple[Any, Any]:
        x = embedding[tree.label]
        if not tree.children:
            opened, update = addmv(b_leaf, w_leaf, x).split_with_sizes((2 * n, n))
            i, o = sigmoid(opened).split(n)
            c = i * tanh(update)
            return o * tanh(c), c
        below = [states(child) for child in tree.children]
        rest, forget = addmv(b, w, x).split_with_sizes((3 * n, n))
        if len(below) == 1:
            ((h, memory),) = below
            kept = sigmoid(addmv(forget, u_forget, h)) * memory
        else:
            hs = torch.stack([h for h, _ in below])
            h, forget = hs.sum(0), addmm(forget, hs, u_forget.t())
            kept = (sigmoid(forget) * torch.stack([c for _, c in below])).sum(0)
        opened, update = addmv(rest, u_rest, h).split_with_sizes((2 * n, n))
        i, o = sigmoid(opened).split(n)
        c = torch.addcmul(kept, i, tanh(update))
        return o * tanh(c), c

    def run(trees: Forest) -> Sequence[Any]:
        with torch.inference_mode():
            return [states(tree)[0] for tree in trees]

    return run


def jax_runner(weights: Weights) -> Runner:
    """Eager: each operation is dispatched by itself."""
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    n, parts = weights.u.shape[1], gates(weights)
    given = {name: jax.device_put(values) for name, values in parts.items()}
    w, b, w_leaf, b_leaf, u_rest = (given[name] for name in "w b w_leaf b_leaf u_rest".split())
    u_forget = jax.device_put(parts["u_forget"].T)
    embedding = {label: jax.device_put(x) for label, x in weights.embedding.items()}
    sigmoid, tanh = jax.nn.sigmoid, jnp.tanh
    cut = partial(jax.lax.split, sizes=(n, n, n))

    def states(tree: Tree) -> tuple[Any, Any]:
        x = embedding[tree.label]
        if not tree.children:
            i, o, update = cut(w_leaf @ x + b_leaf)
            c = sigmoid(i) * tanh(update)
            return sigmoid(o) * tanh(c), c
        below = [states(child) for child in tree.children]
        rest, forget = jax.lax.split(w @ x + b, (3 * n, n))
        hs = jnp.stack([h for h, _ in below])
        memories = jnp.stack([c for _, c in below])
        kept = (sigmoid(forget + hs @ u_forget) * memories).sum(0)
        i, o, update = cut(rest + u_rest @ hs.sum(0))
        c = kept + sigmoid(i) * tanh(update)
        return sigmoid(o) * tanh(c), c

    return lambda trees: jax.block_until_ready([states(tree)[0] for tree in trees])


def dynet_runner(weights: Weights) -> Runner:
    """Batched by DyNet itself; the products of a sum are one `affine_transform`."""
    dy = load_dynet()
    n, parts = weights.u.shape[1], gates(weights)
    labels = {label: number for number, label in enumerate(weights.embedding)}
    owner = dy.ParameterCollection()
    embedding = owner.add_lookup_parameters((len(labels), n))
    embedding.init_from_array(np.stack([*weights.embedding.values()]))
    given = [
        owner.parameters_from_numpy(np.ascontiguousarray(parts[name][k * n : (k + 1) * n]))
        for name, count in (("w", 4), ("b", 4), ("u_rest", 3), ("u_forget", 1))
        for k in range(count)
    ]
    affine, logistic, tanh, cmult, esum = (
        dy.affine_transform, dy.logistic, dy.tanh, dy.cmult, dy.esum)  # fmt: skip

    def run(trees: Forest) -> Sequence[np.ndarray]:
        assert owner.parameter_count()  # parameters go with their owner, so it is kept
        dy.renew_cg()
        wi, wo, wu, wf, bi, bo, bu, bf, ui, uo, uu, uf = given

        def states(tree: Tree) -> tuple[Any, Any]:
            x = dy.lookup(embedding, labels[tree.label], update=False)
            if not tree.children:
                c = cmult(logistic(affine([bi, wi, x])), tanh(affine([bu, wu, x])))
                return cmult(logistic(affine([bo, wo, x])), tanh(c)), c
            below = [states(child) for child in tree.children]
            h = esum([h for h, _ in below]) if len(below) > 1 else below[0][0]
            kept = [cmult(logistic(affine([bf, wf, x, uf, h])), c) for h, c in below]
            i, o = logistic(affine([bi, wi, x, ui, h])), logistic(affine([bo, wo, x, uo, h]))
            c = esum([cmult(i, tanh(affine([bu, wu, x, uu, h]))), *kept])
            return cmult(o, tanh(c)), c

        roots = dy.concatenate_cols([states(tree)[0] for tree in trees])
        return [*roots.npvalue().reshape(n, -1).T]

    return run


def load_dynet() -> Any:
    """DyNet, which is told by a module of its own what it is to be, before it is imported."""
    import_module("dynet_config").set(mem=2048, autobatch=1, random_seed=1)
    return import_module("dynet")


def gates(weights: Weights) -> dict[str, np.ndarray]:
    """The weights of an inner node and of a leaf, which forgets nothing; the forget gate last."""
    n = weights.u.shape[1]

    def rest(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[: 2 * n], x[3 * n :]])

    forget = slice(2 * n, 3 * n)
    return {
        "w": np.concatenate([rest(weights.w), weights.w[forget]]),
        "b": np.concatenate([rest(weights.b), weights.b[forget]]),
        "w_leaf": rest(weights.w),
        "b_leaf": rest(weights.b),
        "u_rest": rest(weights.u),
        "u_forget": weights.u[forget].copy(),
    }
