"""Views: what shows the new value of its base, what keeps the old; one node for each spelling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from movement_samples import node_name, numbered, same_bits, xp
from tenfold import _native
from tenfold.errors import ShapeError

X = numbered((2, 3, 4))
VIEWS = {
    "slice": lambda x: x[1:],
    "negative step": lambda x: x[:, ::-2],
    "new axis": lambda x: x[None],
    "ellipsis": lambda x: x[...],
    "row": lambda x: x[0],
    "element with ellipsis": lambda x: x[0, 1, 2, ...],
    "reshape": lambda x: xp(x).reshape(x, (6, 4)),
    "moveaxis": lambda x: xp(x).moveaxis(x, 0, 2),
    "swapaxes": lambda x: xp(x).swapaxes(x, 0, 1),
    "mT": lambda x: x.mT,
    "flip": lambda x: xp(x).flip(x),
    "expand_dims": lambda x: xp(x).expand_dims(x, axis=1),
    "diagonal": lambda x: xp(x).diagonal(x, axis1=1, axis2=2),
    "broadcast_to": lambda x: xp(x).broadcast_to(x, (5, 2, 3, 4)),
    "unstack": lambda x: xp(x).unstack(x, axis=1)[2],
    "split": lambda x: xp(x).split(x, [1], axis=2)[1],
    "view of a view": lambda x: xp(x).reshape(x[1], (2, 6))[:, 1:],
    "squeeze": lambda x: xp(x).squeeze(x[:1], axis=0),
}
COPIES = {
    "element": lambda x: x[0, 1, 2],
    "integer array": lambda x: x[np.array([0, 1])],
    "mask": lambda x: x[np.array([True, False])],
    "reshape of a transposed view": lambda x: xp(x).reshape(x.mT, (-1,)),
    "roll": lambda x: xp(x).roll(x, 1),
    "tile": lambda x: xp(x).tile(x, 2),
    "repeat": lambda x: xp(x).repeat(x, 2, axis=0),
    "concat": lambda x: xp(x).concat([x, x]),
    "stack": lambda x: xp(x).stack([x, x]),
    "take": lambda x: xp(x).take(x, np.array([1]), axis=0),
    "pad": lambda x: xp(x).pad(x, 1),
    "tril": lambda x: xp(x).tril(x),
    "meshgrid": lambda x: xp(x).meshgrid(x[0, 0], x[1, 0])[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_shows_the_new_value_of_its_base(name: str) -> None:
    plain, lazy = X.copy(), tn.asarray(X)
    expected, view = VIEWS[name](plain), VIEWS[name](lazy)
    plain += 100
    lazy += 100
    assert view.base is not None
    same_bits(view, expected)


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_numpy_keep_the_old_value(name: str) -> None:
    plain, lazy = X.copy(), tn.asarray(X)
    expected, result = COPIES[name](plain), COPIES[name](lazy)
    plain += 100
    lazy += 100
    same_bits(result, expected)


@pytest.mark.parametrize("name", VIEWS)
def test_expression_made_of_a_view_keeps_the_old_value(name: str) -> None:
    lazy = tn.asarray(X)
    expression = VIEWS[name](lazy) * 1
    lazy += 100
    same_bits(expression, VIEWS[name](X) * 1)


@pytest.mark.parametrize("name", VIEWS)
def test_computed_view_shows_the_new_value_too(name: str) -> None:
    lazy = tn.asarray(X)
    view = VIEWS[name](lazy).wait()
    lazy += 100
    same_bits(view, VIEWS[name](X + 100))


SPELLINGS = [
    ("permute_dims", lambda x: tn.moveaxis(x, 0, -1)),
    ("permute_dims", lambda x: tn.swapaxes(x, 0, 1)),
    ("permute_dims", lambda x: tn.matrix_transpose(x)),
    ("permute_dims", lambda x: x.mT),
    ("permute_dims", lambda x: tn.permute_dims(x)),
    ("index", lambda x: tn.flip(x)),
    ("index", lambda x: tn.expand_dims(x, axis=0)),
    ("index", lambda x: tn.squeeze(x, axis=())),
    ("index", lambda x: tn.unstack(x)[0]),
    ("index", lambda x: tn.split(x, 2)[0]),
    ("index", lambda x: tn.crop(x, (1, 1, 1))),
    ("broadcast_to", lambda x: tn.broadcast_arrays(x, tn.zeros((5, 1, 1, 1)))[0]),
    ("diagonal", lambda x: tn.diag(x[0])),
    ("gather", lambda x: tn.take(x, [1], axis=0)),
]


@pytest.mark.parametrize(("name", "spelling"), SPELLINGS)
def test_another_spelling_is_one_node_of_the_movement(name: str, spelling: Any) -> None:
    x = tn.asarray(X)
    result = spelling(x)
    assert node_name(result) == name
    if name not in ("gather", "diagonal"):
        assert result.base is x


def test_equal_movements_have_equal_parameters() -> None:
    x = tn.asarray(X)
    same = [x[1:2, ::1], x[-1:, 0:3], x[1::7, 0:99], x[1:], x[np.int8(1) :, ...]]
    assert len({_native.node_of(view).params for view in same}) == 1
    assert _native.node_of(tn.flip(x, axis=0)).params == _native.node_of(x[::-1]).params
    rolled = [tn.roll(x, 5, axis=1), tn.roll(x, (1, 1), axis=-2), tn.roll(x, (-1,), axis=(1,))]
    assert len({_native.node_of(each).params for each in rolled}) == 1


def test_copy_false_refuses_a_reshape_that_is_no_view() -> None:
    x = tn.asarray(X)
    assert tn.reshape(x, (-1,), copy=False).base is x
    with pytest.raises(ShapeError, match="not a view"):
        tn.reshape(x.mT, (-1,), copy=False)


def test_copy_true_is_no_view_of_its_input() -> None:
    x = tn.asarray(X)
    copied = tn.reshape(x, (24,), copy=True)
    x += 1
    same_bits(copied, X.reshape(24))
