"""Every elementwise operation of the table, over dtypes, shapes, layouts and special values."""

from __future__ import annotations

import inspect
import itertools
import operator

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from exact_values import expected
from grid import (
    ALL_DTYPES,
    SHAPES,
    WEAK,
    arity_of,
    computed,
    elementwise_ops,
    every_combination,
    legal,
    numpy_dtype,
    same_or_close,
    shared,
    type_of,
    values_for,
)
from tenfold.core.cast_values import cast_values
from tenfold.core.op import Op, Operation
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DTypeError

pytestmark = pytest.mark.usefixtures("tier")

SCALARS = tuple(name for name in WEAK if name not in DTYPES)
TRIPLES = (
    ("bool", "float32", "float32"),
    ("float32", "float32", "float32"),
    ("float64", "float64", "float64"),
    ("float16", "float16", "float16"),
    ("bfloat16", "bfloat16", "bfloat16"),
    ("int32", "int32", "int32"),
    ("uint8", "uint8", "uint8"),
    ("bool", "complex64", "float32"),
    ("float64", "int8", "uint8"),
    ("bool", "int", "float32"),
    ("bool", "int64", "float"),
    ("bool", "bool", "bool"),
)
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "neg": operator.neg, "pos": operator.pos, "abs": abs, "~": operator.invert,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def name_of(op: Operation) -> str:
    return op.name


every_op = pytest.mark.parametrize("op", elementwise_ops(), ids=name_of)
unary_op = pytest.mark.parametrize("op", elementwise_ops(1), ids=name_of)
binary_op = pytest.mark.parametrize("op", elementwise_ops(2), ids=name_of)
ternary_op = pytest.mark.parametrize("op", elementwise_ops(3), ids=name_of)


def check(op: Op, names: tuple[str, ...], given: list[np.ndarray]) -> None:
    """Compare a call with what it should give; an operand named for a scalar's class is one."""
    dtypes, result = op.semantics.dtypes(tuple(map(type_of, names)))
    cast = [cast_values(x, dtype) for x, dtype in zip(given, dtypes, strict=True)]
    flat = tuple(x.ravel() for x in np.broadcast_arrays(*cast))
    right = expected(op, flat, result).reshape(np.broadcast_shapes(*(x.shape for x in cast)))
    arguments = [
        x.item() if name in SCALARS else shared(x) for x, name in zip(given, names, strict=True)
    ]
    same_or_close(computed(op(*arguments)), right, op.accuracy, op.accuracy_floor)


def check_special(op: Op, names: tuple[str, ...]) -> None:
    """Compare every combination of special values; a scalar is one value."""
    values = values_for(op, names)
    strong = [x for x, name in zip(values, names, strict=True) if name not in SCALARS]
    combined = iter(every_combination(strong))
    check(
        op,
        names,
        [x[0] if n in SCALARS else next(combined) for x, n in zip(values, names, strict=True)],
    )


def refuses(op: Op, names: tuple[str, ...]) -> None:
    """Assert that a call with these dtypes raises DTypeError with the operation's name."""
    arguments = [
        WEAK[name] if name in SCALARS else shared(np.ones(2, DTYPES[name])) for name in names
    ]
    with pytest.raises(DTypeError, match=rf"^{op.name}: ") as raised:
        op(*arguments)
    for name in set(names) - set(SCALARS):
        assert name in str(raised.value)


@pytest.mark.exhaustive
@unary_op
@pytest.mark.parametrize("name", ALL_DTYPES)
def test_unary_operation_of_special_values_is_right(op: Op, name: str) -> None:
    if legal(op, (name,)):
        check_special(op, (name,))
    else:
        refuses(op, (name,))


def meets(op: Op, first: str, second: str) -> bool:
    """Whether two dtypes are computed with: equal ones always, others by a third of the operations.

    The kernels of all mixed pairs, which differ in a conversion, would take a minute to compile.
    """
    turn = ALL_DTYPES.index(first) + ALL_DTYPES.index(second) + elementwise_ops(2).index(op)
    return first == second or turn % 3 == 0


@pytest.mark.exhaustive
@binary_op
@pytest.mark.parametrize("first", ALL_DTYPES)
def test_binary_operation_of_special_values_is_right(op: Op, first: str, part: Part) -> None:
    for second in part(ALL_DTYPES):
        if not legal(op, (first, second)):
            refuses(op, (first, second))
        elif meets(op, first, second):
            check_special(op, (first, second))


@pytest.mark.exhaustive
@binary_op
@pytest.mark.parametrize("scalar", SCALARS)
def test_python_scalar_is_weak_in_either_place(op: Op, scalar: str, part: Part) -> None:
    for name in part(ALL_DTYPES):
        for names in ((name, scalar), (scalar, name)):
            if legal(op, names):
                check_special(op, names)
            else:
                refuses(op, names)


@ternary_op
@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_ternary_operation_of_special_values_is_right(op: Op, names: tuple[str, ...]) -> None:
    if legal(op, names):
        values = [x[:12] for x in values_for(op, names)]
        strong = [x for x, name in zip(values, names, strict=True) if name not in SCALARS]
        combined = iter(every_combination(strong))
        given = [
            x[0] if n in SCALARS else next(combined) for x, n in zip(values, names, strict=True)
        ]
        check(op, names, given)
    else:
        refuses(op, names)


@every_op
def test_result_dtype_is_the_one_of_numpy(op: Op) -> None:
    arity = arity_of(op)
    for names in itertools.product((*ALL_DTYPES, *SCALARS), repeat=arity if arity < 3 else 0):
        strong = set(names) - set(SCALARS)
        wanted = numpy_dtype(op, names) if strong else None
        if wanted is None or not legal(op, names) or ("bfloat16" in names and len(strong) < arity):
            continue  # NumPy does not take Python scalars for weak beside bfloat16
        assert op.semantics.dtypes(tuple(map(type_of, names)))[1] == wanted, names


@every_op
def test_order_of_complex_numbers_alone_is_refused(op: Op) -> None:
    arity = arity_of(op)
    for names in itertools.product(ALL_DTYPES, repeat=arity if arity < 3 else 0):
        if not legal(op, names) and numpy_dtype(op, names) is not None:
            assert op.name in "less less_equal greater greater_equal maximum minimum".split()
            assert any(name.startswith("complex") for name in names)


def typical(op: Op) -> list[tuple[str, ...]]:
    """A few dtypes of the operands that stand for all in tests of shapes and layouts."""
    found = [("float64",), ("bfloat16",), ("int16",), ("bool",), ("complex64",)]
    every = [names * arity_of(op) for names in found]
    if arity_of(op) > 1:
        every += [("float32", "int8", "uint8")[: arity_of(op)]]
    return [names for names in every if legal(op, names)]


@pytest.mark.exhaustive
@every_op
def test_shapes_broadcast_and_empty_ones_stay_empty(op: Op, part: Part) -> None:
    for names in part(typical(op)):
        values = values_for(op, names)
        for first, second in SHAPES:
            shapes = [second, first, second][-arity_of(op) :] if arity_of(op) > 1 else [first]
            given = [
                np.resize(np.roll(x, -3 * i), shape)
                for i, (x, shape) in enumerate(zip(values, shapes, strict=True))
            ]
            check(op, names, given)


@pytest.mark.exhaustive
@every_op
def test_layout_in_memory_changes_nothing(op: Op, layouts, part: Part) -> None:
    for names in part(typical(op)):
        values = values_for(op, names)
        given = [np.resize(np.roll(x, -3 * i), (3, 2, 4)) for i, x in enumerate(values)]
        plain = computed(op(*map(shared, given)))
        variants = [layouts(x) for x in given]
        for layout in variants[0]:
            result = computed(op(*(tn.asarray(variant[layout]) for variant in variants)))
            same_or_close(result, plain)
        one = [np.broadcast_to(x[0, 0, 0], (3, 2, 4)) for x in given]
        single = computed(op(*(shared(x.copy()) for x in one)))
        same_or_close(computed(op(*map(tn.asarray, one))), single)


@pytest.mark.parametrize("op", [op for op in elementwise_ops() if op.signature.symbol], ids=name_of)
def test_python_operator_is_the_operation(op: Op) -> None:
    names = next(
        names for names in (("int32",) * 2, ("bool",) * 2) if legal(op, names[: arity_of(op)])
    )
    values = [x[:6] for x in values_for(op, names[: arity_of(op)])]
    arguments = [shared(x) for x in every_combination(values)]
    same_or_close(computed(OPERATORS[op.signature.symbol](*arguments)), computed(op(*arguments)))


@pytest.mark.parametrize(
    "op", [op for op in elementwise_ops(2) if op.signature.symbol], ids=name_of
)
def test_reflected_operator_keeps_the_order_of_operands(op: Op) -> None:
    array = shared(np.array([1, 2, 3], np.int32))
    same_or_close(computed(OPERATORS[op.signature.symbol](2, array)), computed(op(2, array)))


def test_every_symbol_of_python_is_bound() -> None:
    assert set(OPERATORS) <= {op.signature.symbol for op in elementwise_ops()}


@every_op
def test_declaration_is_complete(op: Op) -> None:
    assert (op.reference is None) != (op.semantics.element is None)
    assert ">>> import tenfold as tn" in op.doc
    assert 0 <= op.accuracy <= 12
    kinds = {parameter.kind for parameter in op.public_signature.parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_ONLY}


def test_operation_declared_by_a_user_is_in_the_grid() -> None:
    from tenfold.core.dtype_rules import any_dtype
    from tenfold.core.op import OPS
    from tenfold.core.op_decorators import elementwise

    @elementwise(dtypes=any_dtype, reference=np.add)
    def added_by_a_test(x1: tn.Array, x2: tn.Array, /) -> tn.Array:
        """Sum."""

    try:
        assert added_by_a_test in elementwise_ops(2)
        assert (
            kind_of(added_by_a_test.semantics.dtypes((type_of("int8"), type_of("float32")))[1])
            == "f"
        )
        check_special(added_by_a_test, ("int8", "float32"))
    finally:
        del OPS["added_by_a_test"]
