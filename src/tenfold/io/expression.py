"""Expression parser: checks the text of a formula against an allow-list, without `eval`.

Takes text such as `sqrt(x**2 + y**2) / mean(x)`. Returns a `CheckedExpression`, Python's syntax
tree of the text, in which the type and context of every node are permitted. Nothing is looked up
or computed here; `evaluate.py` does that, with the names of `vocabulary.py`.

    >>> sorted(parse_expression("sqrt(x**2 + y**2) / mean(x)").names)
    ['x', 'y']
    >>> parse_expression("x.__class__")
    Traceback (most recent call last):
    tenfold.io.input_errors.ExpressionError: expression, column 1: names beginning with ...

The text is parsed by `ast.parse` in mode "eval", which builds a tree and runs nothing.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tenfold.io.input_errors import ExpressionError, error_text

MAX_TEXT = 10_000
MAX_NESTING = 100
MAX_STRING = 100
MAX_INTEGER = 2**64
"""Limit of integer literals and results: no array has a larger integer."""


class SyntaxContext(Enum):
    """The context of a node, which decides whether text, lists, None or slices are allowed."""

    OPERAND = "operand"
    ARGUMENT = "argument"
    INDEX = "index"


@dataclass(frozen=True)
class CheckedExpression:
    """A checked expression: its text, its tree, and the names it reads (functions not counted)."""

    text: str
    body: ast.expr
    names: frozenset[str]


EXPRESSION_REMEDIES: dict[type[ast.AST], str] = {
    ast.BoolOp: "'and' and 'or' are not allowed; use & and | in parentheses, or logical_and(a, b)",
    ast.IfExp: "'a if c else b' is not allowed; use where(c, a, b)",
    ast.Lambda: "lambda is not allowed; write the expression out",
    ast.ListComp: "comprehensions are not allowed; use operations on whole arrays",
    ast.SetComp: "comprehensions are not allowed; use operations on whole arrays",
    ast.DictComp: "comprehensions are not allowed; use operations on whole arrays",
    ast.GeneratorExp: "comprehensions are not allowed; use operations on whole arrays",
    ast.JoinedStr: "formatted text is not allowed; write the text out",
    ast.NamedExpr: "':=' is not allowed; name a result with a second --expression NAME=EXPR",
    ast.Starred: "'*' and '**' before an argument are not allowed; write the arguments out",
    ast.Dict: "dictionaries are not allowed; expressions are made of arrays and numbers",
    ast.Set: "sets are not allowed; expressions are made of arrays and numbers",
    ast.Await: "'await' is not allowed; results are waited for by themselves",
    ast.Yield: "'yield' is not allowed in an expression",
    ast.YieldFrom: "'yield' is not allowed in an expression",
}

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
COMPARISON_NODES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def expression_error(node: ast.AST, reason: str) -> ExpressionError:
    """Return the error of a node, with its column in the text."""
    return ExpressionError(f"expression, column {getattr(node, 'col_offset', 0) + 1}: {reason}")


def parse_expression(text: str) -> CheckedExpression:
    """Read an expression, or raise `ExpressionError` naming the column, the rule and the remedy.

    Raises no other error: at most `MAX_TEXT` characters are parsed, and the tree is traversed
    without recursion.
    """
    body = _tree(text)
    names: set[str] = set()
    pending: list[tuple[ast.expr, SyntaxContext, int]] = [(body, SyntaxContext.OPERAND, 1)]
    while pending:
        node, context, depth = pending.pop()
        if depth > MAX_NESTING:
            raise expression_error(
                node,
                f"nested deeper than {MAX_NESTING}; split it, or use parentheses "
                "to make long sums and products balanced",
            )
        if isinstance(node, ast.Name):
            names.add(checked_identifier(node, node.id))
        pending.extend(
            (child, child_context, depth + 1) for child, child_context in _children(node, context)
        )
    return CheckedExpression(text, body, frozenset(names))


def _tree(text: str) -> ast.expr:
    """Return the syntax tree of the text. Python's parser raises on deep nesting."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(
            f"expression: {len(text):,} characters, the most is {MAX_TEXT:,}; split it"
        )
    if not text.strip():
        raise ExpressionError("expression: it is empty; write for example 'x + 1'")
    try:
        with warnings.catch_warnings():
            # Python warns about odd literals ("1if x", "\d"): the line is the user's, not Python's.
            warnings.simplefilter("ignore")
            body = ast.parse(text.strip(), filename="expression", mode="eval").body
    except SyntaxError as error:
        column = f", column {error.offset}" if error.offset else ""
        raise ExpressionError(f"expression{column}: {error.msg}") from None
    except (MemoryError, RecursionError):
        raise ExpressionError(f"expression: nested deeper than {MAX_NESTING}; split it") from None
    except ValueError as error:
        raise ExpressionError(f"expression: {error_text(error)}") from None
    if not text.isascii():
        _count_characters(text.strip(), body)
    return body


def _count_characters(text: str, body: ast.expr) -> None:
    """Convert Python's columns from bytes of UTF-8 to characters."""
    rows = [row.encode() for row in re.split(r"\r\n?|\n", text)]  # as Python's parser does
    for node in ast.walk(body):
        if isinstance(node, ast.expr):
            prefix = rows[node.lineno - 1][: node.col_offset]
            node.col_offset = len(prefix.decode(errors="replace"))


def checked_identifier(node: ast.AST, name: str) -> str:
    """Return the name; refuse a leading underscore, which gives access to Python internals."""
    if name.startswith("_"):
        raise expression_error(node, f"names beginning with _ are not allowed, got {name[:40]!r}")
    return name


def _children(node: ast.expr, context: SyntaxContext) -> Iterator[tuple[ast.expr, SyntaxContext]]:
    """Check one node and yield its children with their contexts."""
    match node:
        case ast.Name():
            return
        case ast.Constant():
            _check_constant(node, context)
        case ast.UnaryOp():
            yield _unary(node), SyntaxContext.OPERAND
        case ast.BinOp(left=left, right=right):
            if not isinstance(node.op, ARITHMETIC + BITWISE):
                raise expression_error(node, f"operator {type(node.op).__name__} is not allowed")
            yield left, SyntaxContext.OPERAND
            yield right, SyntaxContext.OPERAND
        case ast.Compare(left=left, comparators=comparators):
            _check_comparison(node)
            yield left, SyntaxContext.OPERAND
            yield comparators[0], SyntaxContext.OPERAND
        case ast.Call():
            yield from _call(node)
        case ast.Attribute(value=value, attr=attribute):
            checked_identifier(node, attribute)
            yield value, SyntaxContext.OPERAND
        case ast.Subscript(value=value, slice=index):
            _check_subscripted(value)
            yield value, SyntaxContext.OPERAND
            yield index, SyntaxContext.INDEX
        case ast.Slice(lower=lower, upper=upper, step=step):
            yield from (
                (bound, SyntaxContext.INDEX) for bound in (lower, upper, step) if bound is not None
            )
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            _check_sequence(node, context)
            yield from ((element, context) for element in elements)
        case _:
            raise expression_error(
                node, EXPRESSION_REMEDIES.get(type(node), f"{type(node).__name__} is not allowed")
            )


def _unary(node: ast.UnaryOp) -> ast.expr:
    if isinstance(node.op, ast.Not):
        raise expression_error(node, "'not' is not allowed; use logical_not(x), or ~x for booleans")
    return node.operand


def _check_constant(node: ast.Constant, context: SyntaxContext) -> None:
    value = node.value
    if isinstance(value, str):
        if context is not SyntaxContext.ARGUMENT:
            raise expression_error(
                node, "text is allowed only as an argument of a function, as in einsum('ij->ji', x)"
            )
        if len(value) > MAX_STRING:
            raise expression_error(
                node, f"text of {len(value)} characters; the most is {MAX_STRING}"
            )
    elif value is None:
        if context is SyntaxContext.OPERAND:
            raise expression_error(
                node, "None is allowed only as an argument or in a subscript, as in x[:, None]"
            )
    elif value is Ellipsis:
        if context is not SyntaxContext.INDEX:
            raise expression_error(node, "'...' is allowed only in a subscript, as in x[..., 0]")
    elif isinstance(value, int) and abs(value) >= MAX_INTEGER:
        raise expression_error(
            node, "an integer of more than 64 bits; write it as a float, as in 1e30"
        )
    elif not isinstance(value, int | float | complex):
        raise expression_error(node, f"constants of type {type(value).__name__} are not allowed")


def _check_comparison(node: ast.Compare) -> None:
    if len(node.ops) > 1:
        raise expression_error(
            node,
            "a < b < c is not allowed (it asks for one truth of many elements); "
            "write (a < b) & (b < c)",
        )
    if not isinstance(node.ops[0], COMPARISON_NODES):
        raise expression_error(node, "'in' and 'is' are not allowed; compare with == < <= > >= !=")


def _call(node: ast.Call) -> Iterator[tuple[ast.expr, SyntaxContext]]:
    """Yield the arguments of a call, and the owner of a method; the name is not a value."""
    if isinstance(node.func, ast.Name):
        checked_identifier(node.func, node.func.id)
    elif isinstance(node.func, ast.Attribute):
        checked_identifier(node.func, node.func.attr)
        yield node.func.value, SyntaxContext.OPERAND
    else:
        raise expression_error(
            node, "only functions and array methods can be called, by their names"
        )
    for keyword in node.keywords:
        if keyword.arg is None:
            raise expression_error(keyword.value, EXPRESSION_REMEDIES[ast.Starred])
        checked_identifier(keyword.value, keyword.arg)
        yield keyword.value, SyntaxContext.ARGUMENT
    yield from ((argument, SyntaxContext.ARGUMENT) for argument in node.args)


def _check_subscripted(value: ast.expr) -> None:
    if isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Compare):
        raise expression_error(value, "only arrays can be subscripted, as in x[0] or sort(x)[-1]")


def _check_sequence(node: ast.List | ast.Tuple, context: SyntaxContext) -> None:
    if context is SyntaxContext.ARGUMENT or (
        context is SyntaxContext.INDEX and isinstance(node, ast.Tuple)
    ):
        return
    kind = "a list" if isinstance(node, ast.List) else "a tuple"
    raise expression_error(
        node, f"{kind} is allowed only as an argument of a function, as in reshape(x, (2, 3))"
    )
