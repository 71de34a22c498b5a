"""Symbolic dimensions (SymInt): a length as a formula of input lengths, and its example value.

Takes the lengths of an example, hands on SymInts with which a planner computes as with ints. Sums
and products stay formulas; a decision made by comparing them is recorded as a *guard*. Other
lengths for which all guards hold lead to the same decisions, so that the formulas hold for them.
Lengths of 0 and 1 are not SymInts, and different SymInts of single axes are different lengths. The
caller must check that for other lengths. An operation without a symbolic result raises NotSymbolic.

>>> from tenfold.core.symbolic.shape_env import ShapeEnv
>>> shape_env = ShapeEnv((6, 100))
>>> rows, columns = shape_env.lengths
>>> rows * columns >= 64, shape_env.guards()
(True, [('positive', rows*columns - 63)])
>>> -(-columns // 64)
ceil(columns/64)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from tenfold.core.symbolic.shape_env import ShapeEnv, SymbolicAtom


class NotSymbolic(Exception):  # no error: planning goes on with ints
    """An operation has no symbolic result."""


Monomial = tuple[int, ...]
"""A product of atoms, each by its number."""
Terms = tuple[tuple[Monomial, int], ...]


def _remove_if_present(atoms: list[int], atom: int) -> bool:
    """Remove an atom from a list; return whether it was present."""
    present = atom in atoms
    if present:
        atoms.remove(atom)
    return present


class SymInt:
    """A polynomial in atoms, and its value for the example. Equal ones have equal hashes.

    A ShapeEnv has one SymInt of equal terms (`ShapeEnv.interned`), and keeps what it has computed.
    """

    __slots__ = ("high", "low", "number", "shape_env", "terms", "value")

    def __init__(self, shape_env: ShapeEnv, terms: Terms, value: int, number: int) -> None:
        self.shape_env, self.terms, self.value, self.number = shape_env, terms, value, number
        self.low = self.high = 0.0  # bounds, valid for any lengths
        for monomial, factor in terms:
            low = high = 1.0
            for number in monomial:
                atom = shape_env.atoms[number]
                low *= atom.low
                high = 0.0 if 0 in (high, atom.high) else high * atom.high
            self.low += factor * (low if factor > 0 else high)
            self.high += factor * (high if factor > 0 else low)

    @property
    def is_length(self) -> bool:
        """Whether it is exactly the length of one axis."""
        monomial, factor = self.terms[0]
        single = factor == len(monomial) == len(self.terms) == 1
        return single and self.shape_env.atoms[monomial[0]].kind == "length"

    def primitive(self) -> SymInt:
        """Return it divided by the common positive factors of its terms; the sign stays."""
        common = list(self.terms[0][0])
        for monomial, _ in self.terms[1:]:
            remaining = list(monomial)
            common = [i for i in common if _remove_if_present(remaining, i)]
        common = [i for i in common if self.shape_env.atoms[i].low > 0]
        divisor = math.gcd(*(factor for _, factor in self.terms))
        terms: dict[Monomial, int] = {}
        for monomial, factor in self.terms:
            remaining = list(monomial)
            for i in common:
                remaining.remove(i)
            terms[tuple(remaining)] = factor // divisor
        polynomial: Any = self.shape_env.polynomial(terms)
        return polynomial if isinstance(polynomial, SymInt) else self

    # -- arithmetic: SymInts, or ints if the result is constant

    def __add__(self, other: object) -> Any:
        return self._computed("add", SymInt._sum, _number(other))

    def _computed(self, name: str, compute: Callable[[SymInt, Any], Any], other: Any) -> Any:
        """Return the result of an operation, computed once for equal operands."""
        of_two = isinstance(other, SymInt)
        key = name, self.number, other.number if of_two else other, of_two
        result = self.shape_env.computed.get(key)
        if result is None:
            result = self.shape_env.computed[key] = compute(self, other)
        return result

    def _sum(self, number: Any) -> Any:
        terms = dict(self.terms)
        if not isinstance(number, SymInt):
            terms[()] = terms.get((), 0) + number
            return self.shape_env.polynomial(terms, self.value + number)
        for monomial, factor in number.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return self.shape_env.polynomial(terms, self.value + number.value)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self.shape_env.polynomial({at: -factor for at, factor in self.terms}, -self.value)

    def __sub__(self, other: object) -> Any:
        return self._computed("subtract", lambda one, number: one + -number, _number(other))

    def __rsub__(self, other: object) -> Any:
        return -self + other

    def __mul__(self, other: object) -> Any:
        return self._computed("multiply", SymInt._product, _number(other))

    def _product(self, number: Any) -> Any:
        if not isinstance(number, SymInt):
            if number == 1:
                return self
            scaled = {at: factor * number for at, factor in self.terms}
            return self.shape_env.polynomial(scaled, self.value * number)
        terms: dict[Monomial, int] = {}
        for left_monomial, factor in self.terms:
            for right_monomial, other_factor in number.terms:
                product = tuple(sorted((*left_monomial, *right_monomial)))
                terms[product] = terms.get(product, 0) + factor * other_factor
        return self.shape_env.polynomial(terms, self.value * number.value)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        return _quotient(self.shape_env, self, _number(other))

    def __rfloordiv__(self, other: object) -> Any:
        return _quotient(self.shape_env, _number(other), self)

    def __mod__(self, other: object) -> Any:
        divisor = _number(other)
        if isinstance(divisor, SymInt) or divisor <= 0:
            raise NotSymbolic
        remainder: Any = self.shape_env.polynomial(
            {at: factor % divisor for at, factor in self.terms}
        )
        if not isinstance(remainder, SymInt):
            return remainder % divisor
        value = remainder.value % divisor
        return self.shape_env.atom("mod", (remainder, divisor), value, 0, divisor - 1)

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def bit_length(self) -> Any:
        """Return the number of binary digits of a non-negative number."""
        if self < 0:
            raise NotSymbolic
        return self.shape_env.atom("bits", (self,), self.value.bit_length(), 0, 64)

    # -- decisions: bools, noted as guards

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return bool(self._computed("equal", SymInt._is_equal, other))

    def _is_equal(self, other: Any) -> bool:
        if isinstance(other, SymInt):
            if self.is_length and other.is_length:
                return False  # different lengths
        elif not self.low <= other <= self.high:
            return False
        return self.shape_env.is_zero(self - other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return not self == other

    def __lt__(self, other: object) -> bool:
        number = other if isinstance(other, (int, SymInt)) else _number(other)
        if not isinstance(number, SymInt) and (self.high < number or self.low >= number):
            return bool(self.high < number)
        return self.shape_env.is_positive(number - self)

    def __gt__(self, other: object) -> bool:
        number = other if isinstance(other, (int, SymInt)) else _number(other)
        if not isinstance(number, SymInt) and (self.low > number or self.high <= number):
            return bool(self.low > number)
        return self.shape_env.is_positive(self - number)

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.value)

    # -- operations of int without a symbolic result

    def _not_symbolic(self, *_: object, **__: object) -> Any:
        raise NotSymbolic

    __index__ = __int__ = __float__ = __complex__ = __str__ = __round__ = __array__ = _not_symbolic
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __lshift__ = __rlshift__ = _not_symbolic
    __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __rmod__ = _not_symbolic
    __reduce__ = _not_symbolic

    def __format__(self, form: str) -> str:
        """Format the example value; only messages are formatted."""
        return format(self.value, form)

    def __repr__(self) -> str:
        return _sum_text(self)


def _number(number: object) -> Any:
    """A number as an operand: an int, a SymInt, or an integral float."""
    if isinstance(number, (int, SymInt)):
        return number
    if isinstance(number, float) and number.is_integer():
        return int(number)
    raise NotSymbolic


def _terms(number: Any) -> Terms:
    return number.terms if isinstance(number, SymInt) else (((), number),)


def _quotient(shape_env: ShapeEnv, number: Any, divisor: Any) -> Any:
    """The floor quotient; of a negative number minus the ceiling quotient of its opposite."""
    if not divisor > 0:
        raise NotSymbolic
    exact = _exact_quotient(number, divisor)
    if exact is not None:
        return shape_env.polynomial(exact)
    if _bounds_of(number)[0] >= 0 < _bounds_of(divisor - number)[0]:
        return 0
    if number < 0:
        return -_atom_quotient(shape_env, "ceil", -number, divisor)
    return _atom_quotient(shape_env, "floor", number, divisor)


def _exact_quotient(number: Any, divisor: Any) -> dict[Monomial, int] | None:
    """The quotient of all terms by a divisor of one term; None if it is not exact."""
    terms = _terms(divisor)
    if len(terms) > 1:
        return None
    ((common, common_factor),) = terms
    quotient: dict[Monomial, int] = {}
    for monomial, factor in _terms(number):
        remaining = list(monomial)
        for i in common:
            if i not in remaining:
                return None
            remaining.remove(i)
        if factor % common_factor:
            return None
        quotient[tuple(remaining)] = factor // common_factor
    return quotient


def _atom_quotient(shape_env: ShapeEnv, kind: str, number: Any, divisor: Any) -> Any:
    def quotient_of(numerator: float, denominator: float) -> float:
        if math.isinf(numerator) or math.isinf(denominator):
            return math.inf if math.isinf(numerator) else float(kind == "ceil" and numerator > 0)
        return -(-numerator // denominator) if kind == "ceil" else numerator // denominator

    number_bounds, divisor_bounds = _bounds_of(number), _bounds_of(divisor)
    value, divisor_value = example_value(number), example_value(divisor)
    value = -(-value // divisor_value) if kind == "ceil" else value // divisor_value
    low = (
        0.0
        if math.isinf(divisor_bounds[1])
        else quotient_of(max(number_bounds[0], 0), divisor_bounds[1])
    )
    low = max(low, float(kind == "ceil" and number_bounds[0] > 0))
    high = quotient_of(number_bounds[1], max(divisor_bounds[0], 1))
    return shape_env.atom(kind, (number, divisor), value, low, high)


def _bounds_of(number: Any) -> tuple[float, float]:
    return (number.low, number.high) if isinstance(number, SymInt) else (number, number)


def example_value(number: Any) -> int:
    """Return a SymInt's value for the example, an int as it is."""
    value: int = number.value if isinstance(number, SymInt) else number
    return value


def pinned(number: Any) -> int:
    """Return the value of a SymInt, as a decision: other lengths with another value do not fit.

    >>> pinned(3)
    3
    """
    value: int = number
    if isinstance(number, SymInt) and number == number.value:
        value = number.value
    return value


def smallest(first: int, second: int) -> int:
    """Return the smaller of two numbers; of SymInts a SymInt, without a decision.

    >>> smallest(3, 4)
    3
    """
    if type(first) is type(second) is int:
        return min(first, second)
    result: int = _extreme("min", first, second)
    return result


def largest(first: int, second: int) -> int:
    """Return the larger of two numbers; of SymInts a SymInt, without a decision.

    >>> from tenfold.core.symbolic.shape_env import ShapeEnv
    >>> largest(ShapeEnv((6,)).lengths[0], 16)
    max(rows, 16)
    """
    if type(first) is type(second) is int:
        return max(first, second)
    result: int = _extreme("max", first, second)
    return result


def _extreme(kind: str, first: Any, second: Any) -> Any:
    choose = min if kind == "min" else max
    sizes = [number for number in (first, second) if isinstance(number, SymInt)]
    if not sizes:
        return choose(first, second)
    (low, high), (other_low, other_high) = _bounds_of(first), _bounds_of(second)
    if high <= other_low:
        return first if kind == "min" else second
    if other_high <= low:
        return second if kind == "min" else first
    value = choose(example_value(first), example_value(second))
    bounds = choose(low, other_low), choose(high, other_high)
    return sizes[0].shape_env.atom(kind, (first, second), value, *bounds)


_NAMES = ("rows", "columns")


def _sum_text(number: Any) -> str:
    if not isinstance(number, SymInt):
        return str(number)
    text = ""
    for monomial, factor in sorted(number.terms, reverse=True):
        names = "*".join(_atom_text(number.shape_env.atoms[i]) for i in monomial)
        term_text = (
            names
            if abs(factor) == 1 and names
            else "*".join(filter(None, (str(abs(factor)), names)))
        )
        sign = "-" if factor < 0 else "+"
        text = (
            f"{text} {sign} {term_text}" if text else (term_text if factor > 0 else f"-{term_text}")
        )
    return text


def _atom_text(atom: SymbolicAtom) -> str:
    if atom.kind == "length":
        (number,) = atom.operands
        return _NAMES[number] if number < len(_NAMES) else f"length{number}"
    operand_texts = [_sum_text(operand) for operand in atom.operands]
    if atom.kind in ("floor", "ceil"):
        return f"{atom.kind}({operand_texts[0]}/{operand_texts[1]})"
    return f"{atom.kind}({', '.join(operand_texts)})"


def is_size(number: object) -> TypeGuard[SymInt]:
    """Whether a number, for the type checker an int, is a SymInt."""
    return isinstance(number, SymInt)


def values_of(numbers: Iterable[Any]) -> tuple[int, ...]:
    """Return numbers with the values that SymInts have for the example."""
    return tuple([x.value if isinstance(x, SymInt) else x for x in numbers])


__all__ = [
    "Monomial",
    "NotSymbolic",
    "SymInt",
    "Terms",
    "example_value",
    "is_size",
    "largest",
    "pinned",
    "smallest",
    "values_of",
]
