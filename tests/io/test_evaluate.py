"""What expressions evaluate to, what they may reach, and how failures are told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenfold.cli.compute import FAILURES
from tenfold.io.input_errors import ComputationError, ExpressionError, UserError
from tenfold.io.vocabulary import vocabulary

Compute = Callable[..., object]
X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
Y = np.array([[6.0, 5.0, 4.0], [3.0, 2.0, 1.0]])
N = np.array([1, 2, 3])

VALUES = [
    ("x + y * 2 - x / y", X + Y * 2 - X / Y),
    ("x // 2 % 3 ** 2", X // 2 % 3**2),
    ("-x + +y", -X + Y),
    ("x @ y.T", X @ Y.T),
    ("x.mT @ y", X.T @ Y),
    ("(n & 1) | ~n ^ (n << 2) >> 1", (N & 1) | ~N ^ (N << 2) >> 1),
    ("(x < y) & (x >= 2) | (x == y) ^ (x != 3)", (X < Y) & (X >= 2) | (X == Y) ^ (X != 3)),
    ("sqrt(x**2 + y**2) / mean(x)", np.sqrt(X**2 + Y**2) / X.mean()),
    ("sum(x, axis=0, keepdims=True)", X.sum(axis=0, keepdims=True)),
    ("x.sum(axis=(0, 1)) + x.mean()", X.sum() + X.mean()),
    ("where(x > 2, x, pi)", np.where(X > 2, X, np.pi)),
    ("x[0] + x[-1, ::-1] + x[1, ...]", X[0] + X[-1, ::-1] + X[1]),
    ("x[:, None, 1:] + x[:, newaxis, :2]", X[:, None, 1:] + X[:, None, :2]),
    ("reshape(x, (3, -1))", X.reshape(3, -1)),
    ("x.reshape((6,))", X.reshape(6)),
    ("stack([x, y], axis=1)", np.stack([X, Y], axis=1)),
    ("einsum('ij,kj->ik', x, y)", X @ Y.T),
    ("astype(x, float32) * 2", X.astype(np.float32) * 2),
    ("astype(n, x.dtype)", N.astype(float)),
    ("zeros((2, 3), dtype=float32)", np.zeros((2, 3), np.float32)),
    ("linalg.norm(x)", np.linalg.norm(X)),
    ("linalg.svd(x)[1]", np.linalg.svd(X)[1]),
    ("x / x.shape[0] + x.size * x.ndim", X / 2 + 12),
    ("2 ** 10 - 7 // 2 + True", 2**10 - 3 + 1),
    ("2 ** -1", 0.5),
    ("1e308 * 10", np.inf),
    ("2j * 2j", -4 + 0j),
    ("9.0 ** 9", 9.0**9),
    ("1 < 2", True),
]

REFUSED = [
    ("z", "unknown name 'z'; the inputs are: x, n"),
    ("float23", "did you mean float32?"),
    ("sqrrt(x)", "unknown function 'sqrrt' (did you mean sqrt?)"),
    ("cumsum(x)", "unknown function 'cumsum' (write cumulative_sum(x, axis=...))"),
    ("x.cumsum()", "unknown array method 'cumsum' (write cumulative_sum(x, axis=...))"),
    ("concatenate([x, x])", "unknown function 'concatenate' (write concat(x))"),
    ("load('x.npy')", "unknown function 'load'"),
    ("np.sqrt(x)", "names stand here without 'np.'; write sqrt(x)"),
    ("tn.linalg.norm(x)", "names stand here without 'tn.'; write linalg.norm(x)"),
    ("x * numpy.pi", "names stand here without 'numpy.'; write pi"),
    ("np.cumsum(x)", "names stand here without 'np.'; write cumulative_sum(x, axis=...)"),
    ("np.nothing(x)", "names stand here without 'np.'; write names alone, as in sqrt(x)"),
    ("sqrt", "sqrt is a function; call it, as in sqrt(x)"),
    ("x + sqrt", "sqrt is a function"),
    ("eval('1')", "unknown function 'eval'"),
    ("exec('1')", "unknown function 'exec'"),
    ("open('a')", "unknown function 'open'"),
    ("getattr(x, 'T')", "unknown function 'getattr'"),
    ("type(x)", "unknown function 'type'"),
    ("print(x)", "unknown function 'print'"),
    ("load('a.npy')", "unknown function 'load'"),
    ("os.system('id')", "unknown name 'os'"),
    ("linalg.os", "must be called"),
    ("linalg.os('id')", "unknown function 'linalg.os'"),
    ("linalg.linalg.norm(x)", "must be called"),
    ("linalg", "unknown name 'linalg'"),
    ("x.tofile('a')", "unknown array method 'tofile'"),
    ("x.dump('a')", "unknown array method 'dump'"),
    ("x.ctypes", "unknown property 'ctypes'; arrays have .T .dtype"),
    ("x.base.base", "unknown property 'base'"),
    ("x.data.obj", "unknown property 'data'"),
    ("x.flags", "unknown property 'flags'"),
    ("x.sum", ".sum is a method; call it, as in x.sum()"),
    ("x.sum.func", ".sum is a method"),
    ("x.dtype.type(1)", "only arrays have methods and properties, not a"),
    ("x.shape.count(1)", "only arrays have methods"),
    ("(1).real", "only arrays have methods and properties, not a int"),
    ("(1).conjugate()", "only arrays have methods"),
    ("pi.hex()", "only arrays have methods and properties, not a float"),
    ("float32.mro()", "only arrays have methods and properties"),
    ("x + float32", "operators work on arrays and numbers, not on a"),
    ("x.shape * 10", "not on several arrays"),
    ("x.shape + x.shape", "not on several arrays"),
    ("x.shape == x.shape", "not on several arrays"),
    ("newaxis + 1", "not on a NoneType"),
    ("-float32", "operators work on arrays and numbers"),
    ("float32[0]", "only arrays can be subscripted"),
    ("pi[0]", "only arrays can be subscripted, not a float"),
    ("x.shape[0:1]", "pick one by its number"),
    ("9**9**9**9", "64 bits"),
    ("10**20", "64 bits"),
    ("2**64", "64 bits"),
    ("(-2)**65", "64 bits"),
    ("1 << 64", "64 bits"),
    ("1 << 10**18", "64 bits"),
    ("18446744073709551615 * 2", "64 bits"),
    ("18446744073709551615 + 1", "64 bits"),
    ("True << 10**9", "64 bits"),
]

FAILED = [
    ("1 / 0", "column 1, operator /: ZeroDivisionError: division by zero"),
    ("1 // 0", "ZeroDivisionError"),
    ("1 << -1", "ValueError: negative shift count"),
    ("9.0 ** 9999", "OverflowError"),
    ("1 @ 2", "TypeError"),
    ("1.5 << 2", "TypeError"),
    ("~1.5", "TypeError"),
    ("x.shape[7]", "column 1, subscript: IndexError"),
    ("x[7]", "column 1, subscript: IndexError"),
    ("2 + sqrt(x, x, x, x, x)", "column 5, sqrt: TypeError"),
    ("sum(x, axi=1)", "column 1, sum: TypeError"),
    ("x + n[:2]", "column 1, operator +:"),
    ("reshape(x, (4, 4))", "column 1, reshape:"),
    ("ones((1000, 1000, 1000))", "bytes, more than"),
    ("x[:, None, None] * ones((1, 2000, 2000, 1))", "bytes, more than"),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=lambda value: str(value)[:40])
def test_value_is_that_of_numpy(compute: Compute, text: str, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(compute(text, x=X, y=Y, n=N)), expected, rtol=1e-14)


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=lambda value: str(value)[:40])
def test_name_outside_the_vocabulary_is_refused(compute: Compute, text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compute(text, x=X, n=N)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("text", "reason"), FAILED, ids=lambda value: str(value)[:40])
def test_refusal_of_an_operation_is_told_with_its_place(
    compute: Compute, text: str, reason: str
) -> None:
    with pytest.raises(ComputationError) as caught:
        compute(text, x=X, n=N)
    assert reason in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_input_may_have_the_name_of_a_function_and_of_a_constant(compute: Compute) -> None:
    assert float(np.asarray(compute("sum(sum) + e", sum=N, e=10.0))) == 16.0


def test_an_input_hides_a_page_of_the_same_name(compute: Compute) -> None:
    assert np.shape(compute("linalg.T", linalg=X)) == (3, 2)


WORDS = st.sampled_from(["x", "n", "1", "0", "2.5", "7", "pi", "float32", "x.shape[0]", "None"])
GROWN = [
    "({} + {})", "({} ** {})", "({} // {})", "({} @ {})", "({} << {})", "({} < {})", "-{}", "{}.T",
    "{}[0]", "{}[:, None]", "sqrt({})", "sum({}, axis={})", "reshape({}, ({}, -1))", "{}.sum()",
    "stack([{}, {}])", "zeros(({}, {}))", "where({}, {}, 1)", "linalg.solve({}, {})", "{}.shape",
]  # fmt: skip


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(GROWN), inner, inner)


@settings(max_examples=400, deadline=None)
@example("n ** -n")
@example("linalg.solve(zeros((2, 2)), x)")
@given(st.recursive(WORDS, grow, max_leaves=12))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_expression_has_a_value_or_fails_in_one_line(build: Compute, text: str) -> None:
    try:
        value = build(text, x=X, n=N)
    except UserError as error:
        message = str(error)
        assert message.isprintable(), message
        return
    with suppress(*FAILURES):  # of values: the wait raises, and the command line says in one line
        np.asarray(value)


ARGUMENTS = st.sampled_from(
    "x n x 0 1 -1 2.5 (0,1) (2,3) [x,x] float32 'ij->ji' axis=0 axis=-1 axis=7 keepdims=True "
    "dtype=int8 x>2 n-1 None 1j".split()
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(vocabulary().functions)), st.lists(ARGUMENTS, max_size=4))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_call_has_a_value_or_fails_as_documented(
    build: Compute, name: str, arguments: list[str]
) -> None:
    arguments.sort(key=lambda argument: "=" in argument)
    try:
        value = build(f"{name}({', '.join(arguments)})", x=X, n=N)
    except UserError as error:
        message = str(error)
        assert message.isprintable(), message
        assert "AssertionError" not in message, message
        assert "AttributeError" not in message, message
        return
    for part in value if isinstance(value, tuple) else (value,):
        with suppress(*FAILURES):  # the computation itself: a singular matrix, an index
            np.asarray(part)
