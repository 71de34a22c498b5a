"""Patterns: match expressions of variables, numbers and operations, the left side of rewrite rules.

Takes variables, Python's operators and the operations by name, hands on a Pattern. A variable
matches any operand (the same one at every occurrence), a number a Python scalar of that value and
sign, an operation its node. `==` compares patterns; equality of elements is `pattern.equal(x, y)`.

>>> import tenfold as tn
>>> x, y = variables("x y")
>>> print(pattern.exp(x) * (y + 1))
multiply(exp(x), add(y, 1))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from tenfold import _native
from tenfold.core.op import OPS, Op, Params
from tenfold.dtypes import PYTHON_TYPES
from tenfold.errors import DTypeError

Number = bool | int | float | complex


def _operators(
    symbol: str,
) -> tuple[Callable[[Any, Pattern | Number], Pattern], Callable[[Any, Number], Pattern]]:
    """Return the methods of a pattern for an operator of Python, the reflected one second."""
    return (
        lambda self, other: _symbol(symbol, self, other),
        lambda self, other: _symbol(symbol, other, self),
    )


class Pattern:
    """A pattern of an operand; Python's operators build patterns of operations from it."""

    __slots__ = ()

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __truediv__, __rtruediv__ = _operators("/")
    __floordiv__, __rfloordiv__ = _operators("//")
    __mod__, __rmod__ = _operators("%")
    __pow__, __rpow__ = _operators("**")
    __matmul__ = _operators("@")[0]
    __and__, __rand__ = _operators("&")
    __or__, __ror__ = _operators("|")
    __xor__, __rxor__ = _operators("^")
    __lshift__, __rlshift__ = _operators("<<")
    __rshift__, __rrshift__ = _operators(">>")
    __lt__, __gt__ = _operators("<")[0], _operators(">")[0]
    __le__, __ge__ = _operators("<=")[0], _operators(">=")[0]

    def __neg__(self) -> Pattern:
        return _symbol("neg", self)

    def __pos__(self) -> Pattern:
        return _symbol("pos", self)

    def __abs__(self) -> Pattern:
        return _symbol("abs", self)

    def __invert__(self) -> Pattern:
        return _symbol("~", self)


@dataclass(frozen=True, slots=True)
class PatternVariable(Pattern):
    """Matches any operand; every occurrence of the name must match the same one."""

    name: str
    ops: tuple[Op[...], ...] = ()
    """The operations that it matches; empty: every operand, leaves and scalars too."""

    def of(self, *ops: Op[...]) -> PatternVariable:
        """Return the variable restricted to nodes of these operations.

        >>> from tenfold.ops.linalg import inv
        >>> (x,) = variables("x")
        >>> x.of(inv).ops
        (<op inv>,)
        """
        return PatternVariable(self.name, ops)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant(Pattern):
    """Matches a Python scalar of this value; a zero of this sign only."""

    value: Number

    def __str__(self) -> str:
        return repr(self.value)

    @property
    def notable(self) -> bool:
        """Whether plan keys distinguish this number from all others."""
        return _native.is_special_value(self.value)

    def equals(self, scalar: Number) -> bool:
        """Whether the operand `scalar` has the same value, bit for bit."""
        value = self.value
        if isinstance(scalar, complex) or isinstance(value, complex):
            both_complex = isinstance(scalar, complex) and isinstance(value, complex)
            return both_complex and repr(scalar) == repr(value)
        if value == scalar:
            return value != 0 or math.copysign(1, value) == math.copysign(1, scalar)
        return value != value and scalar != scalar


@dataclass(frozen=True, slots=True)
class OperationPattern(Pattern):
    """Matches the node of an operation whose operands match; without operands, any of them."""

    op: Op[...]
    operands: tuple[Pattern, ...]
    params: Params | None = None
    """The parameters the node must have; None for any."""

    def __str__(self) -> str:
        params = () if self.params is None else self.params
        arguments = [str(operand) for operand in self.operands] + [repr(param) for param in params]
        return f"{self.op.name}({', '.join(arguments) if self.operands or params else '...'})"


@dataclass(frozen=True, slots=True)
class AnyUserPattern(Pattern):
    """Matches the node of any operation that has an operand which matches."""

    operand: OperationPattern

    def __str__(self) -> str:
        return f"reading({self.operand})"


class Patterns:
    """The operations by name, for patterns: `pattern.exp(x)`, `pattern.linalg_inv(x)`.

    Without operands, as in `pattern.concat()`, the pattern matches any operands. `params=` gives
    the parameters the node must have (in a replacement: has), in canonical form.
    """

    def __getattr__(self, name: str) -> Any:
        def build(*operands: Pattern | Number, params: Params | None = None) -> Pattern:
            return self(_by_name(name), *operands, params=params)

        _by_name(name)
        return build

    def __call__(
        self, op: Op[...], *operands: Pattern | Number, params: Params | None = None
    ) -> Pattern:
        """Return the pattern of an operation that is not in the table, such as a custom op."""
        return OperationPattern(op, tuple(pattern_of(operand) for operand in operands), params)

    def reading(self, operand: Pattern) -> Pattern:
        """Return the pattern of any operation of which an operand matches `operand`."""
        if not isinstance(operand, OperationPattern):
            raise DTypeError("pattern", f"reading({operand}) reads no operation", remedy="name one")
        return AnyUserPattern(operand)


pattern = Patterns()


def variables(names: str) -> tuple[PatternVariable, ...]:
    """Return the pattern variables of these names, which spaces separate.

    >>> x, y = variables("x y")
    >>> str(x), str(y)
    ('x', 'y')
    """
    return tuple(PatternVariable(name) for name in names.split())


def pattern_of(value: object) -> Pattern:
    """Return a pattern as it is and a number as a Constant, or raise DTypeError."""
    if isinstance(value, Pattern):
        return value
    if type(value) in PYTHON_TYPES:
        return Constant(value)  # type: ignore[arg-type]  # the table's keys are the Numbers
    rule = f"{type(value).__name__} is not a pattern or a number"
    remedy = "make variables with tn.rules.variables and operations with tn.rules.pattern"
    raise DTypeError("pattern", rule, remedy=remedy)


def names_in(tree: Pattern) -> set[str]:
    """Return the names of the variables of a pattern."""
    if isinstance(tree, PatternVariable):
        return {tree.name}
    if isinstance(tree, AnyUserPattern):
        return names_in(tree.operand)
    operands = tree.operands if isinstance(tree, OperationPattern) else ()
    return set().union(*(names_in(operand) for operand in operands))


def operand_orders(tree: OperationPattern) -> list[OperationPattern]:
    """Return a pattern in every order of the operands of its commutative operations."""
    choices = [
        operand_orders(operand) if isinstance(operand, OperationPattern) else [operand]
        for operand in tree.operands
    ]
    orders: list[OperationPattern] = []
    for operands in product(*choices):
        orders.append(OperationPattern(tree.op, operands, tree.params))
        if tree.op.rewriting.commutes and len(operands) == 2 and operands[0] != operands[1]:
            orders.append(OperationPattern(tree.op, operands[::-1], tree.params))
    return orders


def _symbol(symbol: str, *operands: object) -> Pattern:
    return pattern(_by_symbol(symbol), *(pattern_of(operand) for operand in operands))


def _by_symbol(symbol: str) -> Op[...]:
    return next(op for op in OPS.values() if isinstance(op, Op) and op.signature.symbol == symbol)


def _by_name(name: str) -> Op[...]:
    operation = OPS.get(name) or OPS.get(name.replace("_", ".", 1))
    if operation is None:
        raise AttributeError(f"unknown operation {name!r}")
    if not isinstance(operation, Op):
        rule = f"{name} is made of other operations and has no node of its own"
        raise DTypeError("pattern", rule, remedy="match the operations it makes: x.explain()")
    return operation
