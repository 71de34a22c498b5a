"""Adding an operation is one declaration: it appears in namespace, methods, operators, stubs,
tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold._native import Array
from tenfold.core.canonical_reduction import fold_axes
from tenfold.core.op import OPS, BoundCall, Op, SampleCall
from tenfold.core.op_decorators import array, elementwise, movement, reduction
from tenfold.core.shape_rules import Axis
from tenfold.namespace import stubs, surface

MOST_LINES = 12
"""Of one declaration, docstring included."""


def declare_elementwise() -> Op[...]:
    @elementwise(accuracy=4, method=True)
    def logit(x: Array, /) -> Array:
        """log(x / (1 - x)), element by element: floating dtypes."""
        return tn.log(x / (1 - x))

    return logit


def declare_movement() -> Op[...]:
    @movement(
        shape=lambda shape, step: (-(-shape[0] // step), *shape[1:]),
        reference=lambda x, step: x[::step],
        method=True,
        samples=[SampleCall(((5, 2),), positional=(2,))],
    )
    def every(x: Array, /, step: int) -> BoundCall:
        """Every `step`-th row of `x`: shape (m, ...) to (ceil(m / step), ...)."""
        return BoundCall((array(x),), (int(step),))

    return every


def declare_reduction() -> Op[...]:
    @reduction(
        dtypes=lambda type_: (type_.dtype, type_.dtype),
        reference=lambda x, axes, keep: fold_axes(np.bitwise_xor, x, axes, keep, identity=0),
        method=True,
    )
    def parity(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
        """The exclusive or of the elements over `axis`: integers."""

    return parity


DECLARATIONS = {
    "logit": (declare_elementwise, (tn.asarray([0.5]),), [0.0]),
    "every": (declare_movement, (tn.asarray([0, 1, 2, 3, 4]), 2), [0, 2, 4]),
    "parity": (declare_reduction, (tn.asarray([1, 2, 7]),), 4),
}


@pytest.fixture(params=list(DECLARATIONS))
def added(request: pytest.FixtureRequest) -> Iterator[tuple[str, Op[...], Any, Any]]:
    """Declare an operation, and take it out of the table again."""
    declare, arguments, expected = DECLARATIONS[request.param]
    op = declare()
    surface.install_methods()
    try:
        yield request.param, op, arguments, expected
    finally:
        del OPS[request.param]
        delattr(Array, request.param)
        surface.operators()


def test_declaration_makes_function_method_operator_and_stub(
    added: tuple[str, Op[...], Any, Any],
) -> None:
    name, op, arguments, expected = added
    assert op(*arguments).tolist() == expected
    assert surface.functions()[name](*arguments).tolist() == expected
    assert getattr(arguments[0], name)(*arguments[1:]).tolist() == expected
    assert getattr(surface.operators(), name) is op
    assert f"def {name}(" in stubs.public_text() or f"def {name}(" in stubs.methods_text()
    assert f"def {name}(self" in stubs.methods_text()


@pytest.mark.parametrize("name", list(DECLARATIONS))
def test_declaration_is_short(name: str) -> None:
    lines = inspect.getsource(DECLARATIONS[name][0]).splitlines()
    assert len(lines) - 3 <= MOST_LINES  # without the function around it and its return


def test_a_field_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="shifted: a declaration has no kernal"):

        @elementwise(kernal=None)
        def shifted(x: Array) -> Array:
            return x + 1
