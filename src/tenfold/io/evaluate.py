"""Expression evaluation: turns a checked expression and its inputs into a lazy array.

Takes a `CheckedExpression`, arrays by name, a `Vocabulary` (the callable names), a limit in bytes.
Returns the value, usually a lazy `tenfold.Array`.

    evaluate(parse("x * 2 + 1"), {"x": tn.asarray([1.0])}, vocabulary(), limit=10**9)

Only the functions, methods, properties and names of the vocabulary are looked up. Python integers
are limited to 64 bits and results to `limit` bytes, so that a short line (`9**9**9**9`,
`zeros(10**12)`) can neither hang nor exhaust the machine.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from tenfold.io.expression import MAX_INTEGER, CheckedExpression, expression_error
from tenfold.io.input_errors import ComputationError, ExpressionError, UserError, error_text
from tenfold.io.vocabulary import Vocabulary

MODULE_ROOTS = ("np", "numpy", "tn", "tenfold")
"""Module prefixes of names in Python programs."""

MULTI_RESULT_FUNCTIONS = ("unstack", "split")
"""Functions whose number of results depends on an axis or an int."""
MAX_RESULTS = 10_000

UNARY_OPS: dict[type[ast.unaryop], Callable[[object], object]] = {
    # In the stubs each function has another type; the table needs one type for all.
    ast.UAdd: operator.pos,  # type: ignore[dict-item]
    ast.USub: operator.neg,  # type: ignore[dict-item]
    ast.Invert: operator.invert,  # type: ignore[dict-item]
}

BINARY_OPS: dict[type[ast.AST], tuple[str, Callable[[object, object], object]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.MatMult: ("@", operator.matmul),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    # As above.
    ast.Lt: ("<", operator.lt),  # type: ignore[dict-item]
    ast.LtE: ("<=", operator.le),  # type: ignore[dict-item]
    ast.Gt: (">", operator.gt),  # type: ignore[dict-item]
    ast.GtE: (">=", operator.ge),  # type: ignore[dict-item]
}

Number = bool | int | float | complex


@dataclass(frozen=True)
class Scope:
    """The scope of an evaluation: inputs, vocabulary, and the limit of a result in bytes."""

    inputs: Mapping[str, object]
    vocabulary: Vocabulary
    limit: int


def evaluate_expression(
    expression: CheckedExpression,
    inputs: Mapping[str, object],
    vocabulary: Vocabulary,
    *,
    limit: int,
) -> object:
    """Return the value of an expression; no intermediate result may exceed `limit` bytes.

    Raises `ExpressionError` for syntax or names that are not allowed, and `ComputationError` (from
    the original) for an error of an operation: wrong shapes, dtypes, arguments, sizes.
    """
    return _value(expression.body, Scope(inputs, vocabulary, limit))


def _value(node: ast.expr, scope: Scope) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _lookup_name(node, name, scope)
        case ast.UnaryOp(op=op, operand=operand):
            number = _operand(operand, scope)
            return _run_step(node, "operator", lambda: UNARY_OPS[type(op)](number), scope)
        case ast.BinOp(left=left, op=binary, right=right):
            return _binary(node, binary, left, right, scope)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return _binary(node, comparison, left, right, scope)
        case ast.Call():
            return _call(node, scope)
        case ast.Attribute(value=owner, attr=attribute):
            return _property(node, owner, attribute, scope)
        case ast.Subscript(value=owner, slice=index):
            return _subscript(node, owner, index, scope)
        case ast.List(elts=elements):
            return [_value(element, scope) for element in elements]
        case ast.Tuple(elts=elements):
            return tuple(_value(element, scope) for element in elements)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if p is None else _value(p, scope) for p in (lower, upper, step)))
    raise expression_error(node, f"{type(node).__name__} is not allowed")


def _lookup_name(node: ast.expr, name: str, scope: Scope) -> object:
    """Return an input, or else a constant or dtype of the vocabulary."""
    if name in scope.inputs:
        return scope.inputs[name]
    if name in scope.vocabulary.names:
        return scope.vocabulary.names[name]
    if name in scope.vocabulary.functions:
        raise expression_error(node, f"{name} is a function; call it, as in {name}(x)")
    known_names = [*scope.inputs, *scope.vocabulary.names]
    input_names = ", ".join(scope.inputs) or "none"
    suggestion = _suggestion(name, known_names, scope)
    raise expression_error(
        node, f"unknown name {name[:40]!r}{suggestion}; the inputs are: {input_names}"
    )


def _suggestion(name: str, candidates: Iterable[str], scope: Scope) -> str:
    equivalent = scope.vocabulary.equivalent(name)
    if equivalent:
        return f" (write {equivalent})"
    matches = difflib.get_close_matches(name[:40], list(candidates), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""


def _operand(node: ast.expr, scope: Scope) -> object:
    """Return the operand of an operator: an array or a number, not a dtype or a tuple."""
    value = _value(node, scope)
    if not isinstance(value, Number | scope.vocabulary.array):
        raise expression_error(node, f"operators work on arrays and numbers, not on {_kind(value)}")
    return value


def _kind(value: object) -> str:
    if isinstance(value, tuple | list):
        return "several arrays; pick one, as in svd(x)[0]"
    return f"a {type(value).__name__}"


def _binary(node: ast.expr, kind: ast.AST, left: ast.expr, right: ast.expr, scope: Scope) -> object:
    sign, function = BINARY_OPS[type(kind)]
    a, b = _operand(left, scope), _operand(right, scope)
    if isinstance(a, int) and isinstance(b, int):
        _check_integers(node, sign, a, b)
    return _run_step(node, f"operator {sign}", lambda: function(a, b), scope)


def _check_integers(node: ast.expr, sign: str, a: int, b: int) -> None:
    """Refuse integers of more than 64 bits before computing them; 9**9**9 has 150 MB."""
    grows = sign == "**" and b > 1 and abs(a) > 1 and (a.bit_length() - 1) * b >= 64
    if grows or (sign == "<<" and a != 0 and b >= 64):
        raise expression_error(
            node, f"{a} {sign} {b} has more than 64 bits; write floats, as in 9.0**9"
        )


def _call(node: ast.Call, scope: Scope) -> object:
    name, function = _function(node.func, scope)
    arguments = [_value(argument, scope) for argument in node.args]
    keywords = {str(k.arg): _value(k.value, scope) for k in node.keywords}
    _check_count(node, name, [*arguments, *keywords.values()])
    return _run_step(node, name, lambda: function(*arguments, **keywords), scope)


def _function(node: ast.expr, scope: Scope) -> tuple[str, Callable[..., object]]:
    """Return the called function: `name`, `page.name` such as `linalg.solve`, or a method."""
    names = scope.vocabulary
    if isinstance(node, ast.Name):
        if node.id not in names.functions:
            raise _unknown_error(node, node.id, names.functions, scope)
        return node.id, names.functions[node.id]
    assert isinstance(node, ast.Attribute), "parse() lets no other thing be called"
    _refuse_module(node, scope)
    if page := _page(node.value, scope):
        name = f"{page}.{node.attr}"
        if name not in names.functions:
            raise _unknown_error(node, name, names.functions, scope)
        return name, names.functions[name]
    owner = _array(node.value, scope)
    if node.attr not in names.methods:
        raise _unknown_error(node, node.attr, names.methods, scope, "array method")
    return node.attr, getattr(owner, node.attr)


def _page(node: ast.expr, scope: Scope) -> str:
    """Return the name if it is a page of the namespace, else ""."""
    if isinstance(node, ast.Name) and node.id not in scope.inputs:
        return node.id if node.id in scope.vocabulary.pages else ""
    return ""


def _unknown_error(
    node: ast.expr, name: str, candidates: Iterable[str], scope: Scope, kind: str = "function"
) -> ExpressionError:
    return expression_error(
        node, f"unknown {kind} {name[:60]!r}{_suggestion(name, candidates, scope)}"
    )


def _refuse_module(node: ast.Attribute, scope: Scope) -> None:
    """Refuse `np.sqrt` and the like; the remedy is the name without a module."""
    owner, name_parts = node.value, [node.attr]
    while isinstance(owner, ast.Attribute):
        name_parts.insert(0, owner.attr)
        owner = owner.value
    if not isinstance(owner, ast.Name) or owner.id not in MODULE_ROOTS or owner.id in scope.inputs:
        return
    words, name = scope.vocabulary, ".".join(name_parts)
    bare_form = f"{name}(x)" if name in words.functions else name if name in words.names else ""
    remedy = f"write {bare_form or words.equivalent(name) or 'names alone, as in sqrt(x)'}"
    raise expression_error(node, f"names stand here without {owner.id + '.'!r}; {remedy}")


def _array(node: ast.expr, scope: Scope) -> object:
    value = _value(node, scope)
    if not isinstance(value, scope.vocabulary.array):
        raise expression_error(node, f"only arrays have methods and properties, not {_kind(value)}")
    return value


def _property(node: ast.Attribute, owner: ast.expr, attribute: str, scope: Scope) -> object:
    _refuse_module(node, scope)
    if _page(owner, scope):
        raise expression_error(node, f".{attribute[:40]} must be called, as in linalg.norm(x)")
    value = _array(owner, scope)
    if attribute in scope.vocabulary.methods:
        raise expression_error(node, f".{attribute} is a method; call it, as in x.{attribute}()")
    if attribute not in scope.vocabulary.properties:
        property_names = " ".join(f".{name}" for name in sorted(scope.vocabulary.properties))
        raise expression_error(
            node, f"unknown property {attribute[:40]!r}; arrays have {property_names}, and methods"
        )
    return _run_step(node, f".{attribute}", lambda: getattr(value, attribute), scope)


def _subscript(node: ast.expr, owner: ast.expr, index: ast.expr, scope: Scope) -> object:
    """Return a subscript of an array, or one of several results (`svd(x)[0]`, `x.shape[1]`)."""
    value, subscript = _value(owner, scope), _value(index, scope)
    if isinstance(value, tuple | list):
        if not isinstance(subscript, int):
            raise expression_error(
                index, "of several results, pick one by its number, as in svd(x)[0]"
            )
    elif not isinstance(value, scope.vocabulary.array):
        raise expression_error(owner, f"only arrays can be subscripted, not {_kind(value)}")
    read = partial(operator.getitem, value, subscript)
    return _run_step(node, "subscript", read, scope)


def _run_step(
    node: ast.expr, step_name: str, compute: Callable[[], object], scope: Scope
) -> object:
    """Run one step; any error becomes a one-line error with the step's location."""
    try:
        result = compute()
    except UserError:
        raise
    except Exception as error:  # user-defined operations may raise any error
        location = f"column {node.col_offset + 1}, {step_name}"
        raise ComputationError(
            f"{location}: {type(error).__name__}: {error_text(error)}"
        ) from error
    _check_size(node, step_name, result, scope)
    return result


def _check_count(node: ast.expr, name: str, arguments: list[object]) -> None:
    """Refuse too many results before they are made, from the length of an axis or an int."""
    if name not in MULTI_RESULT_FUNCTIONS:
        return
    lengths = [argument for argument in arguments if type(argument) is int]
    if name == "unstack":
        axis = lengths[0] if lengths else 0
        shapes = [getattr(argument, "shape", ()) for argument in arguments]
        lengths = [shape[axis] for shape in shapes if -len(shape) <= axis < len(shape)]
    if any(length > MAX_RESULTS for length in lengths):
        raise ComputationError(
            f"column {node.col_offset + 1}, {name}: gives more than {MAX_RESULTS:,} arrays; "
            "pick a part with a subscript, as in x[3]"
        )


def _check_size(node: ast.expr, step_name: str, result: object, scope: Scope) -> None:
    if isinstance(result, int) and abs(result) >= MAX_INTEGER:
        raise expression_error(
            node, f"{step_name} gives an integer of more than 64 bits; write floats"
        )
    for array in result if isinstance(result, tuple | list) else (result,):
        size = getattr(array, "size", 0) * getattr(getattr(array, "dtype", None), "itemsize", 0)
        if size > scope.limit:
            raise ComputationError(
                f"column {node.col_offset + 1}, {step_name}: the result has {size:,} bytes, "
                f"more than the {scope.limit:,} of memory available; make it smaller"
            )
