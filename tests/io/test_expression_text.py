"""Which texts are expressions, and what is said of those that are not."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenfold.io.expression import MAX_TEXT, parse_expression
from tenfold.io.input_errors import ExpressionError

ALLOWED = [
    "x",
    "1",
    "1.5e300",
    "2j",
    "True",
    "x + y * 2 - z / 3",
    "x // 2 % 3",
    "x ** 2",
    "x @ y",
    "(x & y) | ~z ^ (x << 2) >> 1",
    "-x",
    "+x",
    "x < y",
    "x == y",
    "(a < b) & (b < c)",
    "sqrt(x**2 + y**2) / mean(x)",
    "x.sum(axis=0, keepdims=True)",
    "x.T",
    "x.mT @ y",
    "linalg.solve(a, b)",
    "x[0]",
    "x[-1, ::2, ..., None]",
    "x[:, newaxis]",
    "x[(x > 0)]",
    "x[y + 1]",
    "reshape(x, (2, -1))",
    "stack([x, y], axis=1)",
    "asarray([[1, 2], [3, 4]])",
    "einsum('ij,jk->ik', x, y)",
    "sum(x, axis=None)",
    "svd(x)[0]",
    "x.shape[0] * 2",
    "astype(x, float32)",
    " x\n",
    "(x\n+ y)",
    "\u03b1 + \u03b22",
    "x.sum().reshape((1,))",
    "clip(x, 0, inf)",
    "18446744073709551615",
]

FORBIDDEN = [
    # into Python's insides
    ("x.__class__", "beginning with _"),
    ("x.__class__.__bases__[0].__subclasses__()", "beginning with _"),
    ("().__class__", "beginning with _"),
    ("''.__class__.__mro__", "beginning with _"),
    ("__import__('os').system('id')", "beginning with _"),
    ("__builtins__", "beginning with _"),
    ("_", "beginning with _"),
    ("_x", "beginning with _"),
    ("x._buffer", "beginning with _"),
    ("f(_a=1)", "beginning with _"),
    ("f(__class__=1)", "beginning with _"),
    (
        "x.\uff3f\uff3fclass\uff3f\uff3f",
        "invalid character",
    ),  # full-width _, which Python folds to _
    # calling what is not a function's name
    ("(lambda: 1)()", "by their names"),
    ("f()()", "by their names"),
    ("x[0](1)", "by their names"),
    ("(f)(1)(2)", "by their names"),
    # text and its formatting
    ("'{0.__class__}'.format(x)", "text is allowed only"),
    ("'a' * 10**9", "text is allowed only"),
    ("'a' + 'b'", "text is allowed only"),
    ("'%s' % x", "text is allowed only"),
    ("'abc'", "text is allowed only"),
    ("'abc'[0]", "only arrays can be subscripted"),
    ("x['key']", "text is allowed only"),
    ("f'{x}'", "formatted text"),
    ("f(f'{x.__class__}')", "formatted text"),
    ("f('" + "a" * 101 + "')", "101 characters"),
    ("b'abc'", "constants of type bytes"),
    ("f(b'abc')", "constants of type bytes"),
    # statements in disguise, control, names
    ("lambda: x", "lambda"),
    ("x if y else z", "use where"),
    ("[x for x in y]", "comprehensions"),
    ("{x for x in y}", "comprehensions"),
    ("{x: 1 for x in y}", "comprehensions"),
    ("f(x for x in y)", "comprehensions"),
    ("(y := x)", "':=' is not allowed"),
    ("f(*x)", "before an argument"),
    ("f(**x)", "before an argument"),
    ("f(a=1, **{'b': 2})", "before an argument"),
    ("[*x]", "a list is allowed only"),
    ("f([*x])", "before an argument"),
    ("x[*y]", "before an argument"),
    ("{'a': 1}", "dictionaries"),
    ("{1, 2}", "sets"),
    ("(yield x)", "expression"),
    ("await x", "expression"),
    ("import os", "invalid syntax"),
    ("x = 1", "expression"),
    ("x; y", "expression"),
    ("x\ny", "expression"),
    ("del x", "invalid syntax"),
    # words of Python that arrays cannot answer
    ("x and y", "use & and |"),
    ("x or y", "use & and |"),
    ("not x", "logical_not"),
    ("a < b < c", "(a < b) & (b < c)"),
    ("a == b == c", "(a < b) & (b < c)"),
    ("x in y", "'in' and 'is'"),
    ("x not in y", "'in' and 'is'"),
    ("x is y", "'in' and 'is'"),
    ("x is None", "'in' and 'is'"),
    ("x + None", "None is allowed only"),
    ("None", "None is allowed only"),
    ("...", "'...' is allowed only"),
    ("f(...)", "'...' is allowed only"),
    # lists and tuples where arrays belong
    ("[1, 2]", "a list is allowed only"),
    ("[1, 2] * 10**9", "a list is allowed only"),
    ("(1, 2) * 10**9", "a tuple is allowed only"),
    ("x, y", "a tuple is allowed only"),
    ("[1, 2][0]", "only arrays can be subscripted"),
    ("(1, 2)[0]", "only arrays can be subscripted"),
    ("1[0]", "only arrays can be subscripted"),
    ("x[[0, 1]]", "a list is allowed only"),
    ("f([x] * 10**9)", "a list is allowed only"),
    # numbers without end
    ("18446744073709551616", "64 bits"),
    ("-99999999999999999999", "64 bits"),
    ("9" * 5000, "expression"),
    ("0x" + "f" * 9000, "64 bits"),
    # depth and length
    ("", "empty"),
    ("   ", "empty"),
    ("x" * (MAX_TEXT + 1), "characters"),
    ("+".join(["x"] * 101 * 2), "deeper"),
    ("-" * 9_000 + "x", "deeper"),
    ("~" * 150 + "x", "deeper"),
    ("(" * 3_000 + "x" + ")" * 3_000, "expression"),
    ("[" * 3_000 + "]" * 3_000, "expression"),
    ("f(" * 150 + "x" + ")" * 150, "deeper"),
    ("x" + ".T" * 4_000, "deeper"),
    ("x" + "[0]" * 3_000, "deeper"),
    ("x" + "**x" * 3_000, "deeper"),
    ("x if " * 1_900 + "x", "expression"),
    ("lambda:" * 1_400 + "x", "expression"),
    # text that is no text
    ("x\0y", "null"),
    ("x + \udcff", "expression"),
    ("x +", "invalid syntax"),
    ("x $ y", "invalid syntax"),
    ("1 2", "invalid syntax"),
    ("'abc", "unterminated"),
    ("(x", "never closed"),
    ("x)", "unmatched"),
    ("# only a comment", "invalid syntax"),
]


@pytest.mark.parametrize("text", ALLOWED)
def test_text_is_an_expression(text: str) -> None:
    assert parse_expression(text).text == text


@pytest.mark.parametrize(("text", "reason"), FORBIDDEN, ids=lambda value: str(value)[:40])
def test_text_is_refused_with_its_reason_on_one_line(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    message = str(caught.value)
    assert reason in message
    assert message.startswith("expression")
    assert message.isprintable()
    assert len(message) <= 1_000


def test_names_are_the_inputs_without_the_functions() -> None:
    assert parse_expression("sqrt(x) + linalg.norm(y) + z.sum()").names == {"x", "y", "z", "linalg"}


def test_the_column_of_a_mistake_is_told() -> None:
    with pytest.raises(ExpressionError, match="expression, column 6: 'not' is not allowed"):
        parse_expression("x & (not y)")


def test_columns_are_counted_in_characters_not_in_bytes() -> None:
    with pytest.raises(ExpressionError, match="expression, column 6: 'not' is not allowed"):
        parse_expression("\u03b1 & (not y)")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
@example("#\r\u00ba")  # a line ends at a carriage return, too
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        parse_expression(text)
    except ExpressionError as error:
        message = str(error)
        assert message.isprintable(), message


PIECES = st.sampled_from(
    [
        "x",
        "y",
        "_",
        "1",
        "9",
        ".",
        "...",
        ",",
        ":",
        ";",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "+",
        "-",
        "**",
        "*",
        "/",
        "//",
        "%",
        "@",
        "~",
        "&",
        "|",
        "^",
        "<<",
        ">>",
        "<",
        "<=",
        "==",
        "!=",
        "=",
        ":=",
        "and",
        "or",
        "not",
        "in",
        "is",
        "if",
        "else",
        "for",
        "lambda",
        "await",
        "yield",
        "f'",
        "'",
        '"',
        "\\",
        "None",
        "True",
        "sum",
        "linalg",
        ".T",
        ".sum()",
        "__class__",
        "1e9",
        "2j",
        "#",
        "\n",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=30).map(" ".join))
def test_any_mixture_of_tokens_is_an_expression_or_refused(text: str) -> None:
    try:
        parse_expression(text)
    except ExpressionError as error:
        message = str(error)
        assert message.isprintable(), message
