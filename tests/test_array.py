"""Array: what Python gives it beside operations: what it shows, refuses, answers."""

from __future__ import annotations

import gc
import operator
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DTypeError, RunError, ShapeError
from tenfold.interop.display import MAX_SHOWN


def chain(length: int) -> tn.Array:
    x = tn.asarray([1.0, 2.0])
    with tn.options(pending_depth=0):
        for _ in range(length):
            x = x + 1
    return x


# What is shown.


def test_repr_of_a_pending_array_names_its_operation_and_computes_nothing() -> None:
    x = tn.asarray([[1.0, 2.0]]) + 1
    with tn.profile() as counted:
        text = repr(x)
    assert text == f"<Array float64[1, 2] pending add, depth 1, device '{x.device}'>"
    assert counted.kernels == counted.calls == counted.host_syncs == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.5], "Array([1. , 2.5], dtype=float64)"),
        (3, "Array(3, dtype=int64)"),
        ([[True], [False]], "Array([[ True],\n       [False]], dtype=bool)"),
        (np.zeros((0, 3), "float32"), "Array([], shape=(0, 3), dtype=float32)"),
        ([], "Array([], dtype=float64)"),
        (tn.asarray([1.5], dtype="bfloat16"), "Array([1.5], dtype=bfloat16)"),
    ],
)
def test_repr_of_a_computed_array_shows_its_values(values: Any, expected: str) -> None:
    assert repr(tn.asarray(values)) == expected


def test_repr_of_many_elements_is_short() -> None:
    assert repr(tn.asarray(np.arange(10**6))) == (
        "Array([     0,      1,      2, ..., 999997, 999998, 999999], dtype=int64)"
    )
    many_axes = tn.asarray(np.zeros((2,) * 16))
    assert len(repr(many_axes)) < 200
    assert many_axes.size > MAX_SHOWN


def test_html_escapes_and_computes_nothing() -> None:
    x = tn.asarray([1.0]) + 1
    shown = x._repr_html_()
    assert "pending add" in shown
    assert "pending" in repr(x)
    x.wait()
    assert "<pre>[2.]</pre>" in x._repr_html_()
    assert "'" not in x._repr_html_()
    assert x._repr_html_().count("<") == x._repr_html_().count(">")


def test_str_and_formats_wait_and_show_values() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    assert str(x) == "[2. 3.]"
    assert f"{x}" == "[2. 3.]"
    assert f"{tn.sum(x):.2f}" == "5.00"
    assert f"{tn.sum(x)}" == "5.0"
    assert f"{tn.asarray(255):#x}" == "0xff"
    with pytest.raises(TypeError, match=r"format '\.2f' needs a single number, not shape"):
        f"{x:.2f}"


def test_a_million_pending_nodes_are_shown_at_once() -> None:
    x = chain(10**6)
    assert repr(x) == f"<Array float64[2] pending add, depth 1000000, device '{x.device}'>"
    assert "depth 1000000" in x._repr_html_()


# Python's numbers.


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_one_element_becomes_a_python_number(convert: Any) -> None:
    made = convert(tn.asarray([[2.5]]) * 1)
    assert made == convert(2.5)
    assert type(made) is convert


@pytest.mark.parametrize(
    ("convert", "name"), [(bool, "bool"), (int, "int"), (float, "float"), (complex, "complex")]
)
@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_several_elements_or_none_are_no_number(
    convert: Any, name: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError) as caught:
        convert(tn.zeros(shape))
    assert str(caught.value).startswith(f"{name}: an array of shape {shape} is not a single number")
    asks_for_truth = name == "bool" and shape != (0,)
    assert ("use tn.any(x) or tn.all(x)" in str(caught.value)) == asks_for_truth


def test_if_of_many_elements_names_any_and_all() -> None:
    x = tn.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match=r"use tn.any\(x\) or tn.all\(x\)"):
        bool(x > 1)


def test_only_integers_of_no_axes_are_indices() -> None:
    assert operator.index(tn.asarray(3)) == 3
    assert list(range(5))[tn.asarray(2)] == 2
    with pytest.raises(TypeError, match="float64 is not an integer"):
        operator.index(tn.asarray(3.0))
    with pytest.raises(TypeError, match="bool is not an integer"):
        operator.index(tn.asarray(True))
    with pytest.raises(TypeError, match=r"shape \(1,\) is not a single number"):
        operator.index(tn.asarray([3]))


def test_complex_numbers_are_no_floats() -> None:
    for convert in (int, float):
        with pytest.raises(TypeError, match="complex numbers have two parts"):
            convert(tn.asarray(1j))
    assert complex(tn.asarray(1j)) == 1j


def test_item_and_tolist_are_python_objects() -> None:
    for dtype, kind in (("int8", int), ("bfloat16", float), ("bool", bool), ("complex64", complex)):
        x = tn.asarray([[1]], dtype=dtype)
        assert type(x.item()) is kind
        assert type(x.tolist()[0][0]) is kind
    assert tn.asarray(2).tolist() == 2
    with pytest.raises(ShapeError, match="item: 2 elements are not one"):
        tn.asarray([1, 2]).item()


# What a container answers.


def test_length_is_the_first_axis_and_computes_nothing() -> None:
    x = tn.zeros((3, 2)) + 1
    assert len(x) == 3
    assert "pending" in repr(x)
    with pytest.raises(TypeError, match="len"):
        len(tn.asarray(1))


def test_in_asks_for_an_equal_element() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    assert 3 in x
    assert 4 not in x
    assert float("nan") not in tn.asarray([float("nan")])


def test_iteration_gives_the_rows() -> None:
    first, second = tn.asarray([[1, 2], [3, 4]])
    assert first.tolist() == [1, 2]
    assert second.tolist() == [3, 4]
    with pytest.raises(TypeError):
        iter(tn.asarray(1))


def test_elements_are_assigned_and_cannot_be_deleted() -> None:
    x = tn.asarray([1, 2])
    x[0] = 3
    assert x.tolist() == [3, 2]
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x[0]


# What kind of thing it is.


def test_kinds_compose() -> None:
    a, b, c = (tn.asarray([[1.0, 2.0], [3.0, 4.0]]) for _ in range(3))
    assert a.kind == tn.Kind.VALUE
    assert (a + b).kind == tn.Kind.MAP
    assert (tn.flip(a) + b).kind == tn.Kind.VIEW
    assert (a @ b + c).kind == tn.Kind.CONTRACTION
    assert (a + b).wait().kind == tn.Kind.VALUE


def test_transposes_are_views() -> None:
    x = tn.asarray([[1, 2], [3, 4]])
    assert x.T.tolist() == x.mT.tolist() == [[1, 3], [2, 4]]
    assert tn.zeros((2, 3, 4)).mT.shape == (2, 4, 3)
    assert tn.zeros((2, 3, 4)).T.shape == (4, 3, 2)
    assert tn.zeros(3).T.shape == (3,)
    with pytest.raises(ShapeError, match="matrix"):
        tn.zeros(3).mT


def test_an_array_is_not_hashable() -> None:
    x = tn.asarray([1])
    with pytest.raises(TypeError, match="unhashable type"):
        hash(x)
    with pytest.raises(TypeError, match="unhashable type"):
        {x}


def test_an_array_is_made_by_functions_alone_and_has_no_heirs() -> None:
    with pytest.raises(TypeError, match="cannot create"):
        tn.Array()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (tn.Array,), {})


def test_weak_references_end_with_the_array() -> None:
    x = tn.asarray([1.0])
    seen: list[Any] = []
    weak = weakref.ref(x, seen.append)
    assert weak() is x
    del x
    gc.collect()
    assert weak() is None
    assert seen == [weak]


def test_absent_attributes_are_absent_to_who_asks() -> None:
    x = tn.asarray([1.0])
    assert not hasattr(x, "newbyteorder")
    assert getattr(x, "ctypes", 7) == 7
    with pytest.raises(AttributeError) as caught:
        x.itemset  # type: ignore[attr-defined]  # asked on purpose
    assert (type(caught.value), caught.value.name) == (AttributeError, "itemset")
    with pytest.raises(AttributeError, match=r"no attribute '__array_struct__'$"):
        x.__array_struct__  # type: ignore[attr-defined]  # as NumPy asks


def test_round_gives_whole_numbers_of_the_dtype() -> None:
    x = tn.asarray([0.5, 1.5, -2.6])
    assert round(x).tolist() == [0.0, 2.0, -3.0]
    assert round(tn.asarray([1, 2])).dtype == tn.int64


def test_type_errors_of_arguments_that_fit_are_left_as_they_are() -> None:
    with pytest.raises(TypeError) as caught:
        tn.zeros(3, dtype=object())
    assert "by name alone" not in str(caught.value)


def test_names_are_there_for_completion() -> None:
    names = dir(tn.asarray([1]))
    for name in ("wait", "item", "tolist", "shape", "dtype", "kind", "T", "sum", "astype"):
        assert name in names
    assert sys.getsizeof(tn.asarray([1])) > 0
    for name in ("wait", "item", "tolist", "to_device"):
        assert getattr(tn.Array, name).__doc__


# Evaluation.


def test_eval_returns_what_it_was_given() -> None:
    x, y = tn.asarray([1.0]) + 1, tn.asarray([2.0]) * 2
    assert tn.eval(x) is x
    both = tn.eval(x, y)
    assert both[0] is x
    assert both[1] is y
    assert tn.eval() == ()
    assert "pending" not in repr(x) + repr(y)


def test_eval_computes_what_is_shared_once() -> None:
    calls: list[tn.Array] = []

    @tn.operator
    def shared(x: tn.Array) -> tn.Array:
        calls.append(x)
        return x

    twice = shared(tn.asarray([1.0, 2.0]))
    tn.eval(twice + 1, twice * 2)
    assert len(calls) == 1


@pytest.mark.usefixtures("fused_multiply_add")
def test_eval_together_reads_once_what_both_read() -> None:
    x, fused = tn.exp(tn.asarray([1.0, 2.0])), tn.exp(tn.asarray([1.0, 2.0]))
    with tn.profile() as unfused_count, tn.options(fuse=False):
        tn.eval(x + 1, x * 2)
    with tn.profile() as fused_count:
        tn.eval(fused + 1, fused * 2)
    assert unfused_count.kernels == 3
    assert fused_count.kernels <= 3


@pytest.mark.parametrize("given", [1.0, [1.0], None, np.zeros(2)])
def test_eval_of_what_is_no_array_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match=r"eval: argument 2 is \w+, not an Array"):
        tn.eval(tn.asarray([1]), given)


def test_an_error_of_values_comes_at_each_wait_not_at_eval() -> None:
    singular = tn.linalg.inv(tn.zeros((2, 2)))
    fine = tn.asarray([1.0]) + 1
    assert tn.eval(singular, fine)[1].tolist() == [2]
    errors = []
    for _ in range(2):
        with pytest.raises((RunError, ValueError)) as caught:
            singular.wait()
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert "inv" in str(errors[0])


def test_wait_returns_the_array_itself() -> None:
    x = tn.asarray([1.0]) + 1
    assert x.wait() is x
    assert repr(x) == "Array([2.], dtype=float64)"


def test_an_operand_may_rebind_the_array_it_meets() -> None:
    x = tn.asarray([1.0, 2.0])

    class Meddler(np.ndarray):
        def __array_finalize__(self, _parent: Any) -> None:
            nonlocal x
            x += 1
            x.wait()

    operand = np.zeros(2).view(Meddler)
    x = tn.asarray([1.0, 2.0])
    assert tn.add(x, operand).tolist() == [1.0, 2.0]
    x = tn.asarray([1.0, 2.0])
    assert (x + operand).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("value", "held"), [(None, False), ("1", False), ([1.0, 3.0], True)])
def test_non_number_is_searched_as_in_numpy(value: Any, held: bool) -> None:
    assert (value in tn.asarray([1.0, 2.0])) is held


def test_a_reader_keeps_to_the_value_it_began_with() -> None:
    """Another thread may rebind the array between the reader's steps; one trace plays it."""
    x = tn.asarray([1.0, 2.0])
    view = (x + 1)[1:]
    base = view.base
    node = tn._native.node_of(view)
    base += 10
    assert tn.pipeline.compute([node]) is None
    assert node.value() is not None


def test_more_memory_than_there_is_leaves_independent_work_alone() -> None:
    huge, small = tn.zeros((2**56,)) + 1, tn.zeros(2) + 1
    tn.eval(huge, small)
    assert small.tolist() == [1.0, 1.0]
    with pytest.raises(MemoryError, match=r"add: the results have 536,870,912\.0 GiB"):
        huge.wait()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * [1, 2],
        lambda x: [1, 2] * x,
        lambda x: x - (1, 2),
        lambda x: x == [1, 2],
        lambda x: x != (1, 2),
        lambda x: x.__iadd__([1, 2]),
        lambda x: tn.add(x, [1, 2]),
    ],
)
def test_list_beside_an_array_without_axes_is_refused_with_the_remedy(
    program: Callable[..., Any],
) -> None:
    with pytest.raises(DTypeError, match=r"(?s)is not an array or a number.*tn\.asarray"):
        program(tn.asarray(3))


def test_operations_pickle_by_name() -> None:
    for op in (tn.operators.sin, tn.operators.mean, tn.operators.linalg_inv):
        assert pickle.loads(pickle.dumps(op)) is op
    with pytest.raises(TypeError, match="public=True"):
        pickle.dumps(tn.op(lambda x: x + 1, name="private"))


def test_parameter_of_many_digits_is_a_parameter() -> None:
    @tn.op(shape=(), dtype="float64", reference=lambda x, *, n: np.float64(n % 7))
    def residue(x: Any, *, n: int) -> Any:
        """n modulo 7."""

    assert residue(tn.asarray([1.0]), n=10**5000).item() == float(10**5000 % 7)
