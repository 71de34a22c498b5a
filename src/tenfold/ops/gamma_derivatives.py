"""Derivatives of gamma numbers by their shape: how a quantile moves (implicit reparametrisation).

The numbers are of a rejection, but where F(z; a) is their distribution and p its density, z moves
by -(dF/da) / p (Figurnov, Mohamed, Mnih 2018, "Implicit reparameterization gradients"). dF/da is
the integral of p(t) (log t - digamma(a)) from 0 to z, or, negated, from z on: one that cancels
little is taken, by t = z exp(s) and a double exponential rule for s (Takahasi, Mori 1974, "Double
exponential formulas for numerical integration").

>>> round(float(_integrals(np.asarray(1.0), np.asarray(2.0), "slope")), 12)
1.63169146235
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, operation
from tenfold.core.shape_rules import broadcast
from tenfold.dtypes import FLOAT64
from tenfold.errors import UnsupportedError
from tenfold.ops.batch_rules import Members
from tenfold.ops.elementary import log

STEP, FIRST, LAST = 0.05, -90, 115
"""The nodes of the rule: multiples of a step."""


def _integrals(shape: np.ndarray, z: np.ndarray, what: str) -> np.ndarray:
    """Return the "slope" of z, the "change" of the slope by the shape, or the "digamma" of the
    shape; 0 where z is 0 or not finite.
    """
    from scipy import special  # imported only where it is used

    digamma = special.digamma(shape)
    if what == "digamma":
        return np.asarray(digamma + 0 * z)
    shape, z, digamma = np.broadcast_arrays(shape, z, digamma)
    is_inside = (z > 0) & np.isfinite(z) & (shape > 0)
    z = np.where(is_inside, z, 1.0)
    score = np.log(z) - digamma
    sign = np.where((score < 0) | ((shape < 1) & (z < 0.01)), -1.0, 1.0)
    rate = np.maximum(sign * (z - shape), 0) + np.sqrt(z)
    scale = np.where(sign < 0, 1 / rate, np.log1p(1 / rate))
    trigamma = special.zeta(2, shape)
    total = np.zeros(z.shape)
    for node in STEP * np.arange(FIRST, LAST):
        factor = np.exp(node - np.exp(-node))
        s = sign * scale * factor  # t is z * exp(s)
        terms = s + score if what == "slope" else s * (s + score) - trigamma
        weight = sign * scale * factor * (1 + np.exp(-node))
        with np.errstate(over="ignore"):
            total += np.exp(shape * s - z * np.expm1(s)) * terms * weight
    return np.where(is_inside, STEP * z * total, 0.0)


def _slope_back(g: Array, y: Array, shape: Array, z: Array, what: str) -> tuple[Array, Array]:
    """By z: from the derivatives of the logarithm of the density."""
    if what != "slope":
        remedy = "take tn.stop_gradient of the second one"
        raise UnsupportedError("random.standard_gamma", "it has no third derivative", remedy=remedy)
    by_z = gamma_slope(shape, z, what="digamma") - log(z) - y * ((shape - 1) / z - 1)
    return g * gamma_slope(shape, z, what="change"), g * by_z


def _slope_rule(types: tuple[Type, ...], what: str) -> Inferred:
    shape = broadcast(types[0].shape, types[1].shape)
    return Inferred(((shape, FLOAT64),), (FLOAT64, FLOAT64))


def _slope_members(members: Members, what: str) -> Array:
    ndim = max(members.ndim(0), members.ndim(1))
    result: Array = members.call([members.aligned(at, ndim) for at in (0, 1)], (what,))
    return result


@operation(
    rule=_slope_rule,
    reference=_integrals,
    promotes=True,
    public=False,
    portable=True,
    batch=_slope_members,
    samples=[SampleCall(((3,), (3,)))],
    vjp=_slope_back,
)
def gamma_slope(shape: Array, z: Array, /, *, what: str = "slope") -> BoundCall:
    """Return how gamma numbers `z` move with their shape: float64."""
    return BoundCall((array(shape), array(z)), (what,))


__all__ = ["gamma_slope"]
