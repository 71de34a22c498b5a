"""Derivatives of one's own (`tn.custom_vjp`): a function with its vector-Jacobian product.

Takes a function of arrays, and later the pair of functions that differentiate it. Hands on a
function, each call of which is one node: a call of the traced function (`transforms/call_op.py`)
whose op states `vjp`. A call that `tn.vmap` batches has the batched derivative.

>>> import tenfold as tn
>>> rounded = tn.custom_vjp(lambda x: tn.round(x))
>>> rounded.defvjp(lambda x: (tn.round(x), None), lambda _, g: (g,))
>>> tn.grad(lambda x: tn.sum(rounded(x) ** 2))(tn.asarray([0.6, 2.0])).tolist()
[2.0, 4.0]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.callable_signature import name_of, signature_of
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import kind_of
from tenfold.errors import ShapeError, message
from tenfold.interop.asarray import asarray
from tenfold.ops.batch_rules import Members
from tenfold.ops.create import zeros
from tenfold.ops.reduce import sum as sum_
from tenfold.transforms.batch_interpreter import BatchedSubgraph
from tenfold.transforms.call_op import Callee
from tenfold.transforms.function import caller_of
from tenfold.transforms.loop_carry import checked_callable
from tenfold.transforms.trace_cache import cached_trace
from tenfold.transforms.vmap import vmap

Pull = Callable[[Sequence[Array], Sequence[Array]], Sequence[Array | None]]
"""From the operands of a call and the cotangents of its results to those of its arguments."""


class CustomDerivative:
    """A function of arrays with a derivative that its user states."""

    _operation = "tn.custom_vjp"
    _remedy = "defvjp(forward, backward)"

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = checked_callable(self._operation, function)
        self._name, self._signature = name_of(function), signature_of(function)
        self._pull: Callable[..., Any] | None = None
        self._callees: LruCache[Hashable, Callee] = LruCache(
            64, "custom derivatives", "equal calls have one operation, so that these are batched"
        )
        update_wrapper(self, function)

    def _state(self, pulled: Callable[..., Any]) -> None:
        """State the derivative: from arguments, and the cotangent of the result, to the cotangents
        of the floating arrays of the arguments.
        """
        self._pull = caller_of(pulled)
        self._callees.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the node of a call."""
        if self._pull is None:
            remedy = f"call {self._name}.{self._remedy} first"
            raise TypeError(message(self._name, "it has no derivative yet", remedy=remedy))
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            rule = f"{next(iter(bound.kwargs))} is no positional argument"
            raise TypeError(message(self._name, rule, remedy="give arguments by position"))
        given, structure = flatten(bound.args)
        leaves = [leaf if _is_constant(leaf) else asarray(leaf) for leaf in given]
        cached = cached_trace(self._operation, self._function, structure.unflatten(leaves))
        arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
        constants = tuple([None if isinstance(leaf, Array) else leaf for leaf in leaves])
        body, results = cached.trace.subgraph, cached.trace.structure
        key = cached.callee, structure, constants, results
        callee = self._callees.get(key)
        if callee is None:
            pull = self._pull_of(structure, constants, results)
            callee = self._callees[key] = self._callee_of(body, pull, len(arrays))
        inputs = (*arrays, *cached.trace.captured_arrays())
        made = _native.apply(callee.op.id, inputs, callee.op.signature.bind(*inputs).params)
        return results.unflatten((made,) if results.leaves == 1 else made)

    def _checked_terms(self, args: tuple[Any, ...], terms: Any) -> list[Array]:
        """Return the cotangents of the floating arrays of the arguments."""
        if not isinstance(terms, (tuple, list)) or len(terms) != len(args):
            found = len(terms) if isinstance(terms, (tuple, list)) else type(terms).__name__
            rule = f"backward gave {found}, not a tuple of {len(args)}: an item for each argument"
            raise TypeError(message(self._name, rule, remedy="return a tuple, as in (g * y,)"))
        found_terms = []
        for at, (arg, term) in enumerate(zip(args, terms, strict=True)):
            leaves, structure = flatten(arg)
            if term is not None and flatten(term)[1] != structure:
                rule = f"the cotangent of argument {at} has another structure than {structure}"
                raise ShapeError(self._name, rule, remedy="return an array for each array")
            given = [None] * len(leaves) if term is None else flatten(term)[0]
            for x, g in zip(leaves, given, strict=True):
                if not is_floating(x):
                    continue
                g = zeros(x.shape, dtype=x.dtype, device=x.device) if g is None else asarray(g)
                if (g.shape, g.dtype) != (x.shape, x.dtype):
                    rule = f"the cotangent of argument {at} has another shape or dtype than it"
                    raise ShapeError(self._name, rule, [g, x], "sum, broadcast or convert it")
                found_terms.append(g)
        return found_terms

    def _pull_of(self, structure: TreeDef, constants: tuple[Any, ...], results: TreeDef) -> Pull:
        """Return the derivative of calls with these constants, on the operands of the op."""
        pull = self._pull
        assert pull is not None, "it is stated"

        def pull_arrays(arrays: Sequence[Array], cotangents: Sequence[Array]) -> list[Array | None]:
            rest = iter(arrays)
            leaves = [next(rest) if value is None else value for value in constants]
            found = iter(pull(structure.unflatten(leaves), results.unflatten(cotangents)))
            return [next(found) if is_floating(x) else None for x in arrays]

        return pull_arrays

    def _callee_of(self, body: Subgraph, pull: Pull, count: int) -> Callee:
        """Return the operation of a body whose first `count` inputs are arguments."""

        def vjp(g: Any, _result: Any, *operands: Any) -> Sequence[Array | None]:
            given = g if isinstance(g, tuple) else (g,)
            cotangents = [
                zeros(node.type.shape, dtype=node.type.dtype, device=node.type.device)
                if x is None
                else x
                for x, node in zip(given, body.outputs, strict=True)
            ]
            return pull(operands[:count], cotangents)

        def batch(members: Members, *params: Any) -> Any:
            key = body, members.batched, members.length
            callee = self._callees.get(key)
            if callee is None:
                batched = BatchedSubgraph(body, members.batched, members.length)
                stacked = batched.to_subgraph([True] * len(body.outputs))
                of_members = _batched_pull(pull, members.batched[:count])
                callee = self._callees[key] = self._callee_of(stacked, of_members, count)
            return _native.apply(callee.op.id, tuple(members.operands), params)

        return Callee(body, family=self, vjp=vjp, batch=batch)


class custom_vjp(CustomDerivative):  # noqa: N801  # a function to its user, as `partial`
    """Give a function of arrays a vector-Jacobian product of your own: `@tn.custom_vjp`.

    `f.defvjp(forward, backward)` states it. `forward(*args)` returns (result, residuals): what the
    function returns, and what `backward` needs. `backward(residuals, cotangent)` returns a tuple
    with an item for each argument: its cotangent, of the structure, shapes and dtypes of the
    argument, or None for nothing. Arguments and results are arrays and numbers, or trees of them;
    other arguments, such as ints and texts, are constants. All three functions are traced once for
    each signature. `forward` and `backward` are differentiated for derivatives of higher order.

    Raises TypeError before `defvjp`, for keyword-only arguments, and for what is no pair or tuple;
    ShapeError for a cotangent of another structure, shape or dtype than its argument. A derivative
    by an array that the function reads without it being an argument raises UnsupportedError.

    The form is that of `jax.custom_vjp` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> @tn.custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (tn.clip(g, -1, 1),))
    >>> tn.grad(lambda x: tn.sum(clipped(x) ** 2))(tn.asarray([0.25, 4.0])).tolist()
    [0.5, 1.0]
    """

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """State the derivative: see `tn.custom_vjp`."""
        for function in (forward, backward):
            checked_callable(self._operation, function)

        def pulled(args: tuple[Any, ...], cotangent: Any) -> list[Array]:
            pair = forward(*args)
            if not (isinstance(pair, tuple) and len(pair) == 2):
                rule = f"{name_of(forward)} did not return a pair (result, residuals)"
                raise TypeError(message(self._name, rule, remedy="return both, or None for one"))
            return self._checked_terms(args, backward(pair[1], cotangent))

        self._state(pulled)


def _batched_pull(pull: Pull, batched: tuple[bool, ...]) -> Pull:
    """Return a derivative for members: that of an argument which they share is the sum."""

    def pull_members(arrays: Sequence[Array], cotangents: Sequence[Array]) -> list[Array | None]:
        wanted = [is_floating(x) for x in arrays]

        def member(own: list[Array], own_cotangents: list[Array]) -> list[Array]:
            return [x for x in pull(own, own_cotangents) if x is not None]

        axes = [0 if is_batched else None for is_batched in batched]
        terms = iter(vmap(member, (axes, 0))(list(arrays), list(cotangents)))
        return [
            (next(terms) if is_batched else sum_(next(terms), axis=0)) if is_wanted else None
            for is_wanted, is_batched in zip(wanted, batched, strict=True)
        ]

    return pull_members


def _is_constant(leaf: Any) -> bool:
    """Whether an argument is neither an array nor a number with a derivative."""
    return isinstance(leaf, (Array, int, str)) or not hasattr(leaf, "__float__")


def is_floating(x: Any) -> bool:
    """Whether a leaf of arguments has a derivative."""
    return isinstance(x, Array) and kind_of(x.dtype) in "fc"


__all__ = ["CustomDerivative", "custom_vjp", "is_floating"]
