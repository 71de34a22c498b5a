"""Jacobians (`tn.jacobian`, `tn.hessian`, `tn.hvp`): derivatives of arrays, and second ones.

Takes a function, hands on one that computes all its partial derivatives: a forward or a reverse
derivative, whose directions are the members of a `tn.vmap`. So there is one batched pass.

>>> import tenfold as tn
>>> jacobian(lambda x: tn.stack([x[0] * x[1], x[1] ** 2]))(tn.asarray([2.0, 3.0])).tolist()
[[3.0, 2.0], [0.0, 6.0]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import accumulate
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.core.pytree import flatten
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError
from tenfold.ops.complex import conj
from tenfold.ops.create import eye
from tenfold.ops.indexing import index_view
from tenfold.ops.reshaping import reshape
from tenfold.transforms.derivatives import (
    WatchedCall,
    check_floating,
    checked_cotangents,
    forget_watched,
    gradients_of,
    tree_arrays,
)
from tenfold.transforms.loop_carry import checked_callable
from tenfold.transforms.tangents import LinearMap
from tenfold.transforms.vmap import vmap


def jacobian(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `function`: all partial derivatives.

    For an argument of shape `(n, ...)` and a result of shape `(m, ...)` it has the shape
    `(m, ..., n, ...)`. Arguments, named by `argnums` as in `tn.grad`, and results are floating
    arrays or trees of them; the Jacobian has the structure of the result, with that of the argument
    in the place of each array. It takes one batched pass: forward, in the directions of the
    arguments, if these have fewer elements than the results, else in reverse. With `has_aux` the
    function returns (result, anything), and its Jacobian function (Jacobian, anything).

    Of complex results by real arguments the Jacobian is complex; of real results by complex
    z = x + iy it is df/dx + i df/dy, as in `tn.grad`. For complex results by complex arguments give
    `holomorphic=True`, which promises that df/dz exists, and gives that.

    Raises DTypeError for an array that is not floating, and for complex ones by complex ones
    without that promise; ShapeError and UnsupportedError as `tn.grad`.

    >>> import tenfold as tn
    >>> tn.jacobian(lambda x: x**2)(tn.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    operation = "tn.jacobian"
    checked_callable(operation, function)

    @wraps(function)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        call = WatchedCall(operation, function, argnums, has_aux, args, kwargs)
        results, structure = tree_arrays(operation, call.result)
        check_floating(operation, results)
        sources = [_native.array_of(node) for node in call.nodes]
        rows = _blocks(results, sources, holomorphic)
        forget_watched(call.nodes, [*flatten(call.value)[0], *(x for row in rows for x in row)])
        found = structure.unflatten([call.unflatten(row) for row in rows])
        return (found, call.value[1]) if has_aux else found

    return derivative


def hessian(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the Hessian of `function`: all second derivatives.

    For an argument of shape `(n, ...)` and a result of one real number it has the shape
    `(n, ..., n, ...)`; for a result of shape `(m, ...)` that stands before. It is the Jacobian of
    the Jacobian, with the trees, `argnums`, `has_aux` and errors of `tn.jacobian`. Complex
    arguments raise DTypeError: `tn.hvp` takes them.

    >>> import tenfold as tn
    >>> tn.hessian(lambda x: x[0] ** 2 * x[1])(tn.asarray([2.0, 3.0])).tolist()
    [[6.0, 4.0], [4.0, 0.0]]
    """
    return jacobian(jacobian(function, argnums, has_aux), argnums, has_aux)


def hvp(function: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Return the product of the Hessian of `function` at `primals` with `tangents`.

    `primals` and `tangents` are tuples with an item for each argument: floating arrays or trees of
    them, of equal structures, shapes and dtypes. So is the result; for one argument it is its item.
    `function` returns one real number. The Hessian is not formed: the product is the gradient of
    the gradient's part along the tangents (Pearlmutter 1994), a few times the work of `function`.
    By complex z = x + iy it is that of the real function of x and y, in the form of `tn.grad`.

    Raises ShapeError for a result that is not one real number, and for tangents of other shapes or
    dtypes than primals; DTypeError and UnsupportedError as `tn.grad`.

    >>> import tenfold as tn
    >>> x, v = tn.asarray([1.0, 2.0]), tn.asarray([1.0, 0.0])
    >>> tn.hvp(lambda x: tn.sum(x**3), (x,), (v,)).tolist()
    [6.0, 0.0]
    """
    operation, args = "tn.hvp", tuple(primals)
    argnums = 0 if len(args) == 1 else tuple(range(len(args)))
    call = WatchedCall(operation, checked_callable(operation, function), argnums, False, args, {})
    results, structure = tree_arrays(operation, call.result)
    seeds = checked_cotangents(operation, results, structure, None)
    gradients = gradients_of([_native.node_of(x) for x in results], seeds, call.nodes)
    directions = call.directions(operation, tuple(tangents))
    products = gradients_of([_native.node_of(x) for x in gradients], directions, call.nodes)
    forget_watched(call.nodes, [*results, *products])
    return call.unflatten(products)


def _blocks(
    results: Sequence[Array], sources: Sequence[Array], holomorphic: bool
) -> list[list[Array]]:
    """Return for each result its Jacobian by each source."""
    outputs, wrt = list(map(_native.node_of, results)), list(map(_native.node_of, sources))
    is_forward = _is_forward(results, sources, holomorphic)
    if is_forward:
        map_ = LinearMap(outputs, wrt)
        parts = vmap(lambda *tangents: map_(tangents), out_axes=-1)(*_basis(sources))
        return [_split(x, -1, y.shape, sources) for x, y in zip(parts, results, strict=True)]
    parts = vmap(lambda *seeds: gradients_of(outputs, list(seeds), wrt))(*_basis(results))
    if holomorphic:
        parts = [conj(x) if kind_of(x.dtype) == "c" else x for x in parts]
    columns = [_split(x, 0, y.shape, results) for x, y in zip(parts, sources, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _is_forward(results: Sequence[Array], sources: Sequence[Array], holomorphic: bool) -> bool:
    """Whether tangents are fewer than cotangents; a complex side takes those of the real one."""
    complex_results, complex_sources = (
        any(kind_of(x.dtype) == "c" for x in arrays) for arrays in (results, sources)
    )
    if complex_results != complex_sources:
        return complex_results
    if complex_results and not holomorphic:
        rule = "a complex result has no one derivative by a complex argument"
        remedy = "give holomorphic=True for one that df/dz states, or differentiate its real and "
        raise DTypeError("tn.jacobian", rule, [*results, *sources][:4], f"{remedy}imaginary part")
    return sum(x.size for x in sources) < sum(x.size for x in results)


def _basis(arrays: Sequence[Array]) -> list[Array]:
    """Return for each array the parts of all unit vectors, `(elements of all, *shape)`."""
    count = sum(x.size for x in arrays)
    starts = accumulate((x.size for x in arrays), initial=0)
    return [
        reshape(eye(count, x.size, k=-start, dtype=x.dtype, device=x.device), (count, *x.shape))
        for x, start in zip(arrays, starts, strict=False)
    ]


def _split(x: Array, axis: int, shape: tuple[int, ...], arrays: Sequence[Array]) -> list[Array]:
    """Return the parts of an axis of the elements of arrays, in the shape of each of them.

    `shape` is that of the other axes: they are in front for the last axis, else behind.
    """
    axes, parts, start = list(whole_axes(x.shape)), [], 0
    for y in arrays:
        axes[axis] = (start, y.size, 1)
        start += y.size
        part = index_view(x, tuple(axes))
        parts.append(reshape(part, (*shape, *y.shape) if axis else (*y.shape, *shape)))
    return parts


__all__ = ["hessian", "hvp", "jacobian"]
