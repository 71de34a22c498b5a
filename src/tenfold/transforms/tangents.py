"""Tangents (`tn.jvp`, `tn.linearize`): the derivative of a function along directions.

Takes results and the nodes that they are differentiated by, hands on the linear function from
tangents of these to tangents of the results. The cotangents of the arguments are linear in those
of the results, the duals; the transpose of that map is the Jacobian-vector product (Radul et al.,
"You only linearize once", POPL 2023).

>>> import tenfold as tn
>>> value, linear = linearize(lambda x: x**2, tn.asarray([1.0, 3.0]))
>>> value.tolist(), linear(tn.asarray([1.0, 10.0])).tolist()
([1.0, 9.0], [2.0, 60.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Array, Node, Scope
from tenfold.core.pytree import flatten
from tenfold.dtypes import kind_of
from tenfold.ops.create import zeros
from tenfold.transforms.derivative_rules import TRANSPOSES
from tenfold.transforms.derivatives import (
    checked_cotangents,
    forget_watched,
    pull_back,
    tree_arrays,
    watched,
    watched_inputs,
    without_history,
)
from tenfold.transforms.loop_carry import checked_callable


class LinearMap:
    """The derivative of outputs by nodes, as a map of tangents; it is computed along with them."""

    def __init__(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
        self._zeros = [
            zeros(t.shape, dtype=t.dtype, device=t.device) for t in (x.type for x in outputs)
        ]
        self.duals = {
            at: watched(x) for at, x in enumerate(self._zeros) if kind_of(x.dtype) in "fc"
        }
        duals = [self.duals.get(at) for at in range(len(outputs))]
        with Scope((TRANSPOSES, True)):
            self._terms = pull_back(outputs, duals, wrt)

    def __call__(self, tangents: Sequence[Array | None]) -> list[Array]:
        """Return the tangents of the outputs: zeros for those that are not reached."""
        pairs = [(x, v) for x, v in zip(self._terms, tangents, strict=True) if x is not None]
        terms, seeds = [_native.node_of(x) for x, _ in pairs], [v for _, v in pairs]
        with Scope((TRANSPOSES, True)):
            found = pull_back(terms, seeds, [_native.node_of(x) for x in self.duals.values()])
        by_position = dict(zip(self.duals, found, strict=True))
        return [x if (v := by_position.get(at)) is None else v for at, x in enumerate(self._zeros)]


def linearize(
    function: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the result of `function` at `primals`, and its derivative there, a linear function.

    The linear function takes a tangent for each primal, of its structure, shapes and dtypes, and
    returns the tangents of the result. `function` runs once, for any number of tangents. Primals
    and results are floating arrays, or trees of them; an integer result has tangent 0. With
    `has_aux` the function returns (result, anything), and that is the third item.

    Raises ShapeError for a tangent of another structure, shape or dtype than its primal; DTypeError
    for a primal that is not floating; UnsupportedError for an operation without derivative.

    The form is that of `jax.linearize` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> value, linear = tn.linearize(lambda x, y: x * y, 3.0, 5.0)
    >>> value.item(), linear(1.0, 0.0).item(), linear(0.0, 1.0).item()
    (15.0, 5.0, 3.0)
    """
    value, aux, derivative, sources, duals = _linearized("tn.linearize", function, primals, has_aux)
    forget_watched(sources, flatten((value, aux))[0])

    def linear(*tangents: Any) -> Any:
        found, structure = flatten(derivative(tangents))
        return structure.unflatten(without_history(found, duals))

    return (value, linear, *aux)


def jvp(
    function: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the result of `function` at `primals`, and its derivative along `tangents`: the
    Jacobian-vector product.

    Both are tuples with an item for each argument, of the same structures, shapes and dtypes. With
    `has_aux` the function returns (result, anything), and that is the third item.

    >>> import tenfold as tn
    >>> x, direction = tn.asarray([1.0, 2.0]), tn.asarray([1.0, 0.0])
    >>> tn.jvp(lambda x: x * x, (x,), (direction,))[1].tolist()
    [2.0, 0.0]
    """
    value, aux, derivative, sources, duals = _linearized(
        "tn.jvp", function, tuple(primals), has_aux
    )
    found = derivative(tuple(tangents))
    forget_watched([*duals, *sources], flatten((value, aux, found))[0])
    return (value, found, *aux)


def _linearized(
    operation: str, function: Callable[..., Any], primals: Any, has_aux: bool
) -> tuple[Any, list[Any], Callable[[Any], Any], list[Node], list[Node]]:
    """Return the value, what comes with it, the derivative, and the nodes of primals and duals."""
    arrays, structure = watched_inputs(operation, primals)
    sources = [_native.node_of(x) for x in arrays]
    value = checked_callable(operation, function)(*structure.unflatten(arrays))
    value, *aux = value if has_aux else (value,)
    results, result_structure = tree_arrays(operation, value)
    linear = LinearMap([_native.node_of(x) for x in results], sources)

    def derivative(tangents: Any) -> Any:
        directions = checked_cotangents(operation, arrays, structure, tangents)
        return result_structure.unflatten(linear(directions))

    return value, aux, derivative, sources, [_native.node_of(x) for x in linear.duals.values()]


__all__ = ["LinearMap", "jvp", "linearize"]
