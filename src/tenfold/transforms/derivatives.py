"""Derivatives (`tn.grad`, `tn.vjp`): the reverse walk over a graph, without a tape.

Takes results and the arrays to differentiate by, hands on ordinary lazy arrays: values and
gradients are computed together, and a gradient can be differentiated again. The vector-Jacobian
product is primitive; the Jacobian-vector product is its transpose (`transforms/tangents.py`).

>>> import tenfold as tn
>>> tn.grad(lambda x: tn.sum(x * x))(tn.asarray([1.0, 2.0])).tolist()
[2.0, 4.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Scope, Type
from tenfold.core.callable_signature import name_of
from tenfold.core.gradient_cuts import note_cuts
from tenfold.core.index_map import whole_slice
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Kind
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, RunError, ShapeError
from tenfold.interop.asarray import asarray
from tenfold.ops.arithmetic import add, positive
from tenfold.ops.create import ones, zeros
from tenfold.ops.indexing import capture, slice_view
from tenfold.ops.joining import stack
from tenfold.transforms.cotangent_sum import Deferred, sum_of_stack, total_of
from tenfold.transforms.derivative_rules import contributions, recorded_contributions
from tenfold.transforms.loop_carry import checked_callable


def pull_back(
    outputs: Sequence[Node],
    cotangents: Sequence[Array | None],
    wrt: Sequence[Node],
    check: Callable[[Sequence[Node], Sequence[Node]], None] | None = None,
) -> list[Array | None]:
    """Return the cotangents of `wrt`; None for a node that no output depends on.

    The walk is native (`native/python/derivative_walk.cpp`): the rules below run where it meets an
    operation on new Types. `check` gets the nodes whose history is forgotten, and the first ones
    of which no cotangent goes on, before.
    """

    def contribute(node: Node, g: Any, inputs: Sequence[Node], needs: tuple[bool, ...]) -> Any:
        with Scope((ORIGIN, node.origin or ORIGIN.get())):
            terms = contributions(node, g, inputs, needs, pull_back)
        return [term.array() if isinstance(term, Deferred) else term for term in terms]

    def make_recipe(
        node: Node,
        inputs: Sequence[Node],
        needs: tuple[bool, ...],
        types: Sequence[Type | None],
    ) -> Any:
        return recorded_contributions(node, inputs, needs, types, pull_back)

    rules = add.id, stack.id, make_recipe, contribute, total_of, sum_of_stack
    return _native.pull_back(outputs, cotangents, wrt, rules, check)


def grad_of(loss: Any, wrt: Any, cotangents: Any = None, missing: str = "zeros") -> Any:
    """Return the gradients of `loss` by `wrt`: the derivatives of a graph that exists already.

    `loss` is a real array of one element; or, with `cotangents` of the same structure, an array or
    a tree of arrays (tuple, list, dict, dataclass) of any shapes. `wrt` is an array or a tree; the
    gradients have its structure, shapes and dtypes. They are lazy: evaluate them with the loss.
    `missing="error"` raises RunError for an array that the loss does not depend on; else its
    gradient is 0, as it is through integers, comparisons and roundings.

    The gradient by complex z = x + iy is df/dx + i df/dy, so that `z -= rate * gradient` descends.

    Raises RunError where a node was computed, so that what it was made of is forgotten: `tn.watch`
    before keeps that. Raises UnsupportedError for an operation without derivative, with its line.
    ShapeError and DTypeError: a loss that is not one real number, an array that is not floating.

    >>> import tenfold as tn
    >>> w = tn.asarray([1.0, 2.0])
    >>> loss = tn.sum(w * w * w)
    >>> tn.grad_of(loss, w).tolist()
    [3.0, 12.0]
    """
    if missing not in ("zeros", "error"):
        raise ValueError(f"missing={missing!r} is neither 'zeros' nor 'error'")
    results, structure = tree_arrays("tn.grad_of", loss)
    leaves, wrt_structure = tree_arrays("tn.grad_of", wrt)
    seeds = checked_cotangents("tn.grad_of", results, structure, cotangents)
    check_floating("tn.grad_of", leaves)
    nodes = [_native.node_of(x) for x in leaves]
    outputs = [_native.node_of(x) for x in results]
    check, cuts = _history_check(nodes), list[Node]()

    def look(forgotten: Sequence[Node], cut: Sequence[Node]) -> None:
        check(forgotten)
        cuts.extend(cut)

    terms = pull_back(outputs, seeds, nodes, look)
    return wrt_structure.unflatten(_terms_or_zeros(terms, nodes, cuts, missing))


def gradients_of(
    outputs: Sequence[Node], seeds: Sequence[Array], wrt: Sequence[Node]
) -> list[Array]:
    """Return the cotangents of `wrt`: zeros for a node that no output depends on."""
    cuts: list[Node] = []
    terms = pull_back(outputs, seeds, wrt, lambda _, cut: cuts.extend(cut))
    return _terms_or_zeros(terms, wrt, cuts)


def _terms_or_zeros(
    terms: Sequence[Array | None],
    wrt: Sequence[Node],
    cuts: Sequence[Node],
    missing: str = "zeros",
) -> list[Array]:
    unreached = [at for at, term in enumerate(terms) if term is None]
    if missing == "error" and unreached:
        at = unreached[0]
        rule = f"the result does not depend on array {at} of wrt, or through integers alone"
        remedy = "leave it out, or ask for zeros with missing='zeros'"
        raise RunError("tn.grad_of", rule, [_native.array_of(wrt[at])], remedy)
    found = [
        zeros(node.type.shape, dtype=node.type.dtype, device=node.type.device)
        if term is None
        else term
        for node, term in zip(wrt, terms, strict=True)
    ]
    if cuts:
        note_cuts([_native.node_of(x) for x in found], cuts)
    return found


def _history_check(wrt: Sequence[Node]) -> Callable[[Sequence[Node]], None]:
    """Return the check for computed nodes that may depend on an array that was not watched.

    It raises RunError.
    """
    numbers = [node.creation_number for node in wrt if not node.watched and not _is_input(node)]

    def check(forgotten: Sequence[Node]) -> None:
        for node in forgotten:
            is_older = not numbers or node.creation_number <= min(numbers)
            if is_older or (node.op is not None and node.op.semantics.kind == Kind.VALUE):
                continue
            place = "" if node.origin is None else " at {}:{}".format(*node.origin)
            rule = f"the result of {node.name}{place} is computed: what it was made of is forgotten"
            remedy = "call tn.watch(x) on the arrays of wrt first: what is made of them keeps it"
            raise RunError("tn.grad_of", rule, [_native.array_of(node)], remedy)

    return check


def _is_input(node: Node) -> bool:
    """Whether a node is an input of a traced function, so that no value can be made of it."""
    return node.name == "leaf" and node.value() is None


def watch(x: Array) -> Array:
    """Let arrays that are made of `x` from now on keep their history, and return `x`.

    What is made of `x` can then be differentiated after it was computed, or printed. History is
    memory: it goes with the last array that was made of `x`, or when `x` is watched again after an
    assignment. Raises TypeError for a view or a window, and DTypeError unless `x` is floating.

    >>> import tenfold as tn
    >>> x = tn.watch(tn.asarray([1.0, 2.0]))
    >>> y = tn.exp(x)
    >>> loss = tn.sum(y * y).wait()
    >>> tn.grad_of(loss, x).shape
    (2,)
    """
    check_floating("tn.watch", [x])
    if x.base is not None or _native.window_of(x) is not None:
        rule = "a view, or a window on memory of yours, is not watched"
        raise DTypeError("tn.watch", rule, [x], "watch the array that it shows, or a copy")
    value = _native.node_of(x).value()
    fresh = _same_values(x) if value is None else _native.value_array(value)
    node = _native.node_of(fresh)
    node.watch(forget=True)
    _native.rebind(x, node)
    return x


def _same_values(x: Array) -> Array:
    """Return an Array of the same values, made of `x` by a node of its own."""
    return capture(slice_view(x, whole_slice(x.shape)))


def watched(x: Array) -> Array:
    """Return the values of `x` as a watched Array of its own."""
    fresh = _same_values(x)
    _native.node_of(fresh).watch()
    return fresh


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the gradient of `function`, a real array of one element.

    `argnums` are the positional arguments to differentiate by: floating arrays or numbers, or trees
    of them; for several the gradients are a tuple. With `has_aux` the function returns (result,
    anything), and its gradient function (gradient, anything). `function` runs in each call, on
    arrays, so it may branch on their values. Errors and conventions are those of `tn.grad_of`.

    >>> import tenfold as tn
    >>> tn.grad(lambda x, y: tn.sum(tn.sin(x) * y), argnums=1)(tn.zeros(2), tn.ones(2)).tolist()
    [0.0, 0.0]
    """
    with_value = value_and_grad(function, argnums, has_aux)

    @wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = with_value(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the value of `function` and its gradient: see `tn.grad`.

    Both are lazy; evaluated together, as with `tn.eval(value, gradient)`, they share their kernels.

    >>> import tenfold as tn
    >>> value, gradient = tn.value_and_grad(lambda x: tn.sum(x**3))(tn.asarray([1.0, 2.0]))
    >>> value.item(), gradient.tolist()
    (9.0, [3.0, 12.0])
    """
    checked_callable("tn.grad", function)

    @wraps(function)
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        call = WatchedCall("tn.grad", function, argnums, has_aux, args, kwargs)
        results, structure = tree_arrays("tn.grad", call.result)
        seeds = checked_cotangents("tn.grad", results, structure, None)
        found = gradients_of([_native.node_of(x) for x in results], seeds, call.nodes)
        forget_watched(call.nodes, [*flatten(call.value)[0], *found])
        return call.value, call.unflatten(found)

    return with_gradient


class WatchedCall:
    """A call of a function on watched arguments: those that `argnums` name."""

    def __init__(
        self,
        operation: str,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        has_aux: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        arguments = list(args)
        self._is_single = isinstance(argnums, int)
        positions = [argnums] if isinstance(argnums, int) else list(argnums)
        if len({at % max(1, len(args)) for at in positions}) < len(positions):
            rule = f"argnums {argnums} name an argument twice"
            raise ShapeError(operation, rule, remedy="name each argument once")
        for at in positions:
            if not -len(args) <= at < len(args):
                rule = f"argument {at} of {name_of(function)} is not given by position"
                raise ShapeError(operation, rule, remedy="argnums count positional arguments")
        picked = tuple([arguments[at] for at in positions])
        self._arrays, self._structure = watched_inputs(operation, picked)
        for at, argument in zip(positions, self._structure.unflatten(self._arrays), strict=True):
            arguments[at] = argument
        self.nodes = [_native.node_of(x) for x in self._arrays]
        self.value = function(*arguments, **kwargs)
        if has_aux and not (isinstance(self.value, tuple) and len(self.value) == 2):
            rule = f"{name_of(function)} did not return a pair (result, anything)"
            raise DTypeError(operation, rule, remedy="return a pair, or leave out has_aux")
        self.result = self.value[0] if has_aux else self.value

    def directions(self, operation: str, tangents: Any) -> list[Array]:
        """Return the leaves of a tuple of tangents of the arguments, checked."""
        return checked_cotangents(operation, self._arrays, self._structure, tangents)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Return an item for each argument that is differentiated by; of an int argnums the one."""
        items = self._structure.unflatten(leaves)
        return items[0] if self._is_single else items


def forget_watched(sources: Sequence[Node], leaves: Sequence[Any]) -> None:
    """Let what was made of watched arguments forget its history, unless others are watched."""
    for node in sources:
        node.stop_watching()
    _native.forget_history([_native.node_of(x) for x in leaves if isinstance(x, Array)])


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the result of `function` at `primals`, and the function from a cotangent of the result
    to the tuple of cotangents of `primals`: the vector-Jacobian product.

    Arguments and results are floating arrays or trees of them. With `has_aux` the function returns
    (result, anything), and that is the third item. The cotangent of a complex array is conjugate:
    see `tn.grad_of`.

    >>> import tenfold as tn
    >>> y, pull = tn.vjp(lambda x: x * x, tn.asarray([1.0, 2.0]))
    >>> pull(tn.asarray([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    arrays, structure = watched_inputs("tn.vjp", primals)
    wrt = [_native.node_of(x) for x in arrays]
    value = checked_callable("tn.vjp", function)(*structure.unflatten(arrays))
    value, *aux = value if has_aux else (value,)
    results, result_structure = tree_arrays("tn.vjp", value)
    outputs = [_native.node_of(x) for x in results]

    def pull(cotangent: Any) -> Any:
        seeds = checked_cotangents("tn.vjp", results, result_structure, cotangent)
        return structure.unflatten(without_history(gradients_of(outputs, seeds, wrt), wrt))

    return (value, pull, *aux)


def without_history(gradients: list[Array], sources: Sequence[Node]) -> list[Array]:
    """Return gradients of which nothing keeps its history, unless other nodes are watched, too, or
    they are traced: what is traced may be differentiated.
    """
    if TRACE.get() is not None:
        return gradients
    for node in sources:
        node.stop_watching()
    is_kept = any(_native.node_of(g).is_made_of_watched for g in gradients)
    for node in sources:
        node.watch()
    if is_kept:
        return gradients
    copies = list(map(positive, gradients))
    for node in map(_native.node_of, copies):
        node.watch(forget=True)  # it alone: the nodes below serve further calls
        node.stop_watching()
    return copies


def tree_arrays(operation: str, tree: Any) -> tuple[list[Array], TreeDef]:
    """Return the Arrays of a tree, which may have numbers in their places, and its structure."""
    leaves, structure = flatten(tree)
    arrays = []
    for leaf in leaves:
        if not isinstance(leaf, (Array, np.ndarray, np.generic, float, complex)):
            rule = f"{type(leaf).__name__} has no derivative"
            raise DTypeError(operation, rule, remedy="give floating arrays, or trees of them")
        arrays.append(leaf if isinstance(leaf, Array) else asarray(leaf))
    return arrays, structure


def watched_inputs(operation: str, tree: Any) -> tuple[list[Array], TreeDef]:
    """Return the Arrays of arguments as watched Arrays of their own, and the structure."""
    arrays, structure = tree_arrays(operation, tree)
    check_floating(operation, arrays)
    return [watched(x) for x in arrays], structure


def check_floating(operation: str, arrays: Sequence[Any]) -> None:
    """Raise DTypeError for an array, or another leaf, that has no derivative."""
    for x in arrays:
        if not isinstance(x, Array) or kind_of(x.dtype) not in "fc":
            kind = x.dtype if isinstance(x, Array) else type(x).__name__
            rule = f"there is no derivative by {kind}"
            raise DTypeError(operation, rule, remedy="convert it with tn.astype(x, tn.float64)")


def checked_cotangents(
    operation: str, results: Sequence[Array], structure: TreeDef, cotangents: Any
) -> list[Array]:
    """Return the cotangents of results: those given, or that of one real number."""
    if cotangents is None:
        if len(results) != 1 or results[0].size != 1 or kind_of(results[0].dtype) != "f":
            rule = "the result to differentiate is not one real number"
            remedy = "take tn.sum(...), or give cotangents with tn.grad_of or tn.vjp"
            raise ShapeError(operation, rule, results[:4], remedy)
        (x,) = results
        return [ones(x.shape, dtype=x.dtype, device=x.device)]
    arrays, given = tree_arrays(operation, cotangents)
    if given != structure:
        rule = f"cotangents {given} do not have the structure {structure} of the result"
        raise ShapeError(operation, rule, remedy="give an array for each array")
    for g, x in zip(arrays, results, strict=True):
        if g.shape != x.shape or g.dtype != x.dtype:
            rule = "a cotangent or a tangent has another shape or dtype than its array"
            raise ShapeError(operation, rule, [g, x], "give one of the shape and dtype of each")
    return arrays


__all__ = [
    "WatchedCall",
    "check_floating",
    "checked_cotangents",
    "forget_watched",
    "grad",
    "grad_of",
    "gradients_of",
    "pull_back",
    "tree_arrays",
    "value_and_grad",
    "vjp",
    "watch",
    "watched",
    "watched_inputs",
    "without_history",
]
