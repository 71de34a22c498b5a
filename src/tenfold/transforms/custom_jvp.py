"""Forward derivatives of one's own (`tn.custom_jvp`): a function with its Jacobian-vector product.

Takes a function of arrays, and later the function that gives its result and its tangent. The
derivative of a call is the transpose of the stated one, which is linear in the tangents; so there
is one mechanism for both directions (`transforms/custom_vjp.py`).

>>> import tenfold as tn
>>> sine = tn.custom_jvp(lambda x: tn.sin(x))
>>> sine.defjvp(lambda x, v: (tn.sin(*x), tn.cos(*x) * v[0]))
>>> tn.grad(sine)(tn.asarray(0.0)).item(), tn.jvp(sine, (0.0,), (3.0,))[1].item()
(1.0, 3.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold import _native
from tenfold._native import Array, Scope
from tenfold.core.callable_signature import name_of
from tenfold.core.graph import Graph
from tenfold.core.pytree import flatten
from tenfold.errors import ShapeError, UnsupportedError, message
from tenfold.interop.asarray import asarray
from tenfold.transforms.custom_vjp import CustomDerivative, is_floating
from tenfold.transforms.derivative_rules import TRANSPOSES
from tenfold.transforms.derivatives import gradients_of
from tenfold.transforms.loop_carry import checked_callable


class custom_jvp(CustomDerivative):  # noqa: N801  # as `custom_vjp`
    """Give a function of arrays a Jacobian-vector product of your own: `@tn.custom_jvp`.

    `f.defjvp(along)` states it. `along(primals, tangents)` gets the tuple of arguments, and one of
    equal structure with the tangents of their floating arrays, and None for all else. It returns
    (result, tangent): what the function returns, and the tangent of that, of the same structure,
    shapes and dtypes, linear in the tangents. It serves `tn.jvp` and `tn.grad`, is traced once for
    each signature, and is differentiated for derivatives of higher order. Arguments and results are
    as in `tn.custom_vjp`.

    Raises TypeError before `defjvp`, for keyword-only arguments, and for what is no pair;
    ShapeError for a tangent of another structure, shape or dtype than its result; UnsupportedError
    for one that is not linear in the tangents or goes through a `tn.while_loop`, and by an array
    that is read without being an argument.

    The form is that of `jax.custom_jvp` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> @tn.custom_jvp
    ... def softplus(x): return tn.log(1 + tn.exp(x))
    >>> softplus.defjvp(lambda x, v: (softplus(*x), v[0] / (1 + tn.exp(-x[0]))))
    >>> tn.grad(lambda x: tn.sum(softplus(x)))(tn.asarray([0.0, 800.0])).tolist()
    [0.5, 1.0]
    """

    _operation, _remedy = "tn.custom_jvp", "defjvp(along)"

    def defjvp(self, along: Callable[..., Any]) -> None:
        """State the derivative: see `tn.custom_jvp`."""
        checked_callable(self._operation, along)

        def pulled(args: tuple[Any, ...], cotangent: Any) -> list[Array]:
            leaves, structure = flatten(args)
            duals = [
                _native.placeholder(_native.node_of(x).type) if is_floating(x) else None
                for x in leaves
            ]
            pair = along(args, structure.unflatten(duals))
            if not (isinstance(pair, tuple) and len(pair) == 2):
                rule = f"{name_of(along)} did not return a pair (result, tangent)"
                raise TypeError(message(self._name, rule, remedy="return both"))
            outputs, seeds = self._checked_tangents(pair[1], cotangent)
            wrt = [_native.node_of(x) for x in duals if x is not None]
            with Scope((TRANSPOSES, False)):  # the transpose is in reverse
                terms = gradients_of(outputs, seeds, wrt)
            used = set(Graph.of([_native.node_of(x) for x in terms]).nodes)
            if not used.isdisjoint(wrt):
                rule = f"the tangent of {name_of(along)} is not linear in the tangents"
                raise UnsupportedError(self._name, rule, remedy="multiply and add them alone")
            return terms

        self._state(pulled)

    def _checked_tangents(self, tangent: Any, cotangent: Any) -> tuple[list[Any], list[Array]]:
        """Return the nodes of the tangents of floating results, and their cotangents."""
        leaves, structure = flatten(tangent)
        seeds, expected = flatten(cotangent)
        if structure != expected:
            rule = f"the tangent has another structure than {expected}"
            raise ShapeError(self._name, rule, remedy="return an array for each array")
        pairs = [(asarray(x), g) for x, g in zip(leaves, seeds, strict=True) if is_floating(g)]
        for x, g in pairs:
            if (x.shape, x.dtype) != (g.shape, g.dtype):
                rule = "the tangent has another shape or dtype than the result"
                raise ShapeError(self._name, rule, [x, g], "sum, broadcast or convert it")
        return [_native.node_of(x) for x, _ in pairs], [g for _, g in pairs]


__all__ = ["custom_jvp"]
