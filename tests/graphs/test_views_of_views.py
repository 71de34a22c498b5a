"""A view of a view of a view, 100,000 deep, follows its root and is dropped without recursion."""

from __future__ import annotations

import gc
import pickle
import weakref

import tenfold as tn

from .long_graphs import leaf, on_small_stack

DEEP = 100_000


def tower(root: tn.Array) -> tn.Array:
    """Reversals of reversals of ... of `root`: an even number, so all in all it is the root."""
    view = root
    with tn.options(pending_depth=0):
        for _ in range(DEEP):
            view = view[::-1]
    return view


def test_a_view_of_views_reads_its_root() -> None:
    assert on_small_stack(lambda: tower(leaf()).tolist()) == [0.0, 1.0, 2.0]


def test_a_view_of_views_reads_its_root_after_it_is_rebound() -> None:
    root = leaf()
    view = tower(root)
    root += 10
    assert on_small_stack(view.tolist) == [10.0, 11.0, 12.0]
    root *= 2
    assert on_small_stack(view.tolist) == [20.0, 22.0, 24.0]


def test_a_reader_of_a_view_of_views_keeps_what_it_captured() -> None:
    root = leaf()
    captured = tower(root) + 0.5
    root += 10
    assert captured.tolist() == [0.5, 1.5, 2.5]


def test_a_view_of_views_is_dropped_without_recursion() -> None:
    root = leaf()
    held = [tower(root)]
    dropped = weakref.ref(held[0].base)
    root += 1
    on_small_stack(held.clear)
    gc.collect()
    assert dropped() is None
    assert root.tolist() == [1.0, 2.0, 3.0]


def test_views_in_between_live_on_when_the_last_is_dropped() -> None:
    root = leaf()
    view = tower(root)
    middle = view.base.base
    del view
    root += 1
    assert middle.tolist() == [1.0, 2.0, 3.0]


def test_a_view_of_views_pickles_as_what_it_reads() -> None:
    data = on_small_stack(lambda: pickle.dumps(tower(leaf())))
    again = on_small_stack(lambda: pickle.loads(data))
    assert again.tolist() == [0.0, 1.0, 2.0]


def test_repr_and_explain_of_a_view_of_views_compute_nothing() -> None:
    view = tower(leaf())
    with tn.profile() as p:
        assert "index" in repr(view)
        assert f"{DEEP} operations" in on_small_stack(lambda: tn.explain(view))
    assert p.launches == 0


def test_reshapes_of_reshapes_take_linear_time() -> None:
    view = leaf()
    for _ in range(DEEP // 4):  # in quadratic time: a quarter of an hour
        view = tn.reshape(tn.reshape(view, (3, 1)), (3,))
    assert view.tolist() == [0.0, 1.0, 2.0]
