"""Symbolic dimensions (SymInt): a length as a formula of input lengths, and its example value.

Takes the lengths of an example, hands on SymInts with which a planner computes as with ints. Sums
and products stay formulas; a decision made by comparing them is recorded as a *guard*. Other
lengths for which all guards hold lead to the same decisions, so that the formulas hold for them.
Lengths of 0 and 1 are not SymInts, and different SymInts of single axes are different lengths. The
caller must check that for other lengths. An operation that would lose a formula raises NotSymbolic.

>>> from tenfold.core.symbolic.shape_env import ShapeEnv
>>> measure = ShapeEnv((6, 100))
>>> rows, columns = measure.lengths
>>> rows * columns >= 64, measure.guards()
(True, [('positive', rows*columns - 63)])
>>> -(-columns // 64)
ceil(columns/64)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from tenfold.core.symbolic.shape_env import ShapeEnv, SymbolicAtom


class NotSymbolic(Exception):  # no error: planning goes on with ints
    """A formula would be lost."""


Monomial = tuple[int, ...]
"""Atoms, by number, that are multiplied."""
Terms = tuple[tuple[Monomial, int], ...]


def _taken(atoms: list[int], atom: int) -> bool:
    """Whether an atom is there; then it is taken out."""
    there = atom in atoms
    if there:
        atoms.remove(atom)
    return there


class SymInt:
    """A polynomial in atoms, and its value for the example. Equal ones have equal hashes."""

    __slots__ = ("_high", "_low", "measure", "terms", "value")

    def __init__(self, measure: ShapeEnv, terms: Terms, value: int) -> None:
        self.measure, self.terms, self.value = measure, terms, value
        self._low = self._high = math.nan

    @property
    def low(self) -> float:
        """A bound from below, for whatever lengths."""
        if math.isnan(self._low):
            self._low = sum([self._bounds(at, factor)[0] for at, factor in self.terms])
        return self._low

    @property
    def high(self) -> float:
        """A bound from above."""
        if math.isnan(self._high):
            self._high = sum([self._bounds(at, factor)[1] for at, factor in self.terms])
        return self._high

    def _bounds(self, monomial: Monomial, factor: int) -> tuple[float, float]:
        low = high = 1.0
        for number in monomial:
            atom = self.measure.atoms[number]
            low *= atom.low
            high = 0.0 if 0 in (high, atom.high) else high * atom.high
        return (low * factor, high * factor) if factor > 0 else (high * factor, low * factor)

    @property
    def is_length(self) -> bool:
        """Whether it is the length of an axis, and nothing else."""
        monomial, factor = self.terms[0]
        single = factor == len(monomial) == len(self.terms) == 1
        return single and self.measure.atoms[monomial[0]].kind == "length"

    def primitive(self) -> SymInt:
        """Return it without the factors of all terms that are above 0: the sign stays."""
        common = list(self.terms[0][0])
        for monomial, _ in self.terms[1:]:
            left = list(monomial)
            common = [i for i in common if _taken(left, i)]
        common = [i for i in common if self.measure.atoms[i].low > 0]
        divisor = math.gcd(*(factor for _, factor in self.terms))
        terms: dict[Monomial, int] = {}
        for monomial, factor in self.terms:
            left = list(monomial)
            for i in common:
                left.remove(i)
            terms[tuple(left)] = factor // divisor
        made: Any = self.measure.made(terms)
        return made if isinstance(made, SymInt) else self

    # -- arithmetic: Sizes, or ints where no axis is left in it

    def __add__(self, other: object) -> Any:
        number = _number(other)
        terms = dict(self.terms)
        for monomial, factor in _terms(number):
            terms[monomial] = terms.get(monomial, 0) + factor
        return self.measure.made(terms, self.value + value_of(number))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self.measure.made({at: -factor for at, factor in self.terms}, -self.value)

    def __sub__(self, other: object) -> Any:
        return self + -_number(other)

    def __rsub__(self, other: object) -> Any:
        return -self + other

    def __mul__(self, other: object) -> Any:
        number = _number(other)
        if not isinstance(number, SymInt):
            if number == 1:
                return self
            scaled = {at: factor * number for at, factor in self.terms}
            return self.measure.made(scaled, self.value * number)
        terms: dict[Monomial, int] = {}
        for one, factor in self.terms:
            for monomial, by in number.terms:
                both = tuple(sorted((*one, *monomial)))
                terms[both] = terms.get(both, 0) + factor * by
        return self.measure.made(terms, self.value * number.value)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        return _quotient(self.measure, self, _number(other))

    def __rfloordiv__(self, other: object) -> Any:
        return _quotient(self.measure, _number(other), self)

    def __mod__(self, other: object) -> Any:
        divisor = _number(other)
        if isinstance(divisor, SymInt) or divisor <= 0:
            raise NotSymbolic
        rest: Any = self.measure.made({at: factor % divisor for at, factor in self.terms})
        if not isinstance(rest, SymInt):
            return rest % divisor
        value = rest.value % divisor
        return self.measure.atom("mod", (rest, divisor), value, 0, divisor - 1)

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def bit_length(self) -> Any:
        """Return the number of binary digits of what is not negative."""
        if self < 0:
            raise NotSymbolic
        return self.measure.atom("bits", (self,), self.value.bit_length(), 0, 64)

    # -- decisions: bools, noted as guards

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymInt):
            if self.terms == other.terms:
                return True
            if self.is_length and other.is_length:
                return False  # different lengths
        elif not isinstance(other, int):
            return NotImplemented
        elif not self.low <= other <= self.high:
            return False
        return self.measure.zero(self - other)

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return not self == other

    def __lt__(self, other: object) -> bool:
        number = _number(other)
        if not isinstance(number, SymInt) and (self.high < number or self.low >= number):
            return bool(self.high < number)
        return self.measure.positive(number - self)

    def __gt__(self, other: object) -> bool:
        number = _number(other)
        if not isinstance(number, SymInt) and (self.low > number or self.high <= number):
            return bool(self.low > number)
        return self.measure.positive(self - number)

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.value)

    # -- what an int is used for, and a formula cannot be

    def _lost(self, *_: object, **__: object) -> Any:
        raise NotSymbolic

    __index__ = __int__ = __float__ = __complex__ = __str__ = __round__ = __array__ = _lost
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __lshift__ = __rlshift__ = _lost
    __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __rmod__ = _lost
    __reduce__ = _lost

    def __format__(self, form: str) -> str:
        """As its value: only texts for people are formatted."""
        return format(self.value, form)

    def __repr__(self) -> str:
        return _text(self)


def _number(number: object) -> Any:
    """A number as an operand: an int, a SymInt, or a float that is whole."""
    if isinstance(number, (int, SymInt)):
        return number
    if isinstance(number, float) and number.is_integer():
        return int(number)
    raise NotSymbolic


def _terms(number: Any) -> Terms:
    return number.terms if isinstance(number, SymInt) else (((), number),)


def _quotient(measure: ShapeEnv, number: Any, divisor: Any) -> Any:
    """The quotient rounded down; of what is below 0 the opposite of one rounded up."""
    if not divisor > 0:
        raise NotSymbolic
    exact = _divided(number, divisor)
    if exact is not None:
        return measure.made(exact)
    if _bounds_of(number)[0] >= 0 < _bounds_of(divisor - number)[0]:
        return 0
    if number < 0:
        return -_atom_quotient(measure, "ceil", -number, divisor)
    return _atom_quotient(measure, "floor", number, divisor)


def _divided(number: Any, divisor: Any) -> dict[Monomial, int] | None:
    """The quotient of all terms by a divisor of one term, where nothing is left over."""
    terms = _terms(divisor)
    if len(terms) > 1:
        return None
    ((common, by),) = terms
    found: dict[Monomial, int] = {}
    for monomial, factor in _terms(number):
        left = list(monomial)
        for i in common:
            if i not in left:
                return None
            left.remove(i)
        if factor % by:
            return None
        found[tuple(left)] = factor // by
    return found


def _atom_quotient(measure: ShapeEnv, kind: str, number: Any, divisor: Any) -> Any:
    def divided(above: float, below: float) -> float:
        if math.isinf(above) or math.isinf(below):
            return math.inf if math.isinf(above) else float(kind == "ceil" and above > 0)
        return -(-above // below) if kind == "ceil" else above // below

    one, other = _bounds_of(number), _bounds_of(divisor)
    value, by = value_of(number), value_of(divisor)
    value = -(-value // by) if kind == "ceil" else value // by
    low = 0.0 if math.isinf(other[1]) else divided(max(one[0], 0), other[1])
    low = max(low, float(kind == "ceil" and one[0] > 0))
    high = divided(one[1], max(other[0], 1))
    return measure.atom(kind, (number, divisor), value, low, high)


def _bounds_of(number: Any) -> tuple[float, float]:
    return (number.low, number.high) if isinstance(number, SymInt) else (number, number)


def value_of(number: int) -> int:
    """Return a SymInt's value for the example, an int as it is."""
    return number.value if is_size(number) else number


def smallest(first: int, second: int) -> int:
    """Return the smaller of two numbers; of SymInts a SymInt, without a decision.

    >>> smallest(3, 4)
    3
    """
    found: int = _extreme("min", first, second)
    return found


def largest(first: int, second: int) -> int:
    """Return the larger of two numbers; of SymInts a SymInt, without a decision.

    >>> from tenfold.core.symbolic.shape_env import ShapeEnv
    >>> largest(ShapeEnv((6,)).lengths[0], 16)
    max(rows, 16)
    """
    found: int = _extreme("max", first, second)
    return found


def _extreme(kind: str, first: Any, second: Any) -> Any:
    chosen = min if kind == "min" else max
    sizes = [each for each in (first, second) if isinstance(each, SymInt)]
    if not sizes:
        return chosen(first, second)
    (low, high), (other_low, other_high) = _bounds_of(first), _bounds_of(second)
    if high <= other_low:
        return first if kind == "min" else second
    if other_high <= low:
        return second if kind == "min" else first
    value = chosen(value_of(first), value_of(second))
    bounds = chosen(low, other_low), chosen(high, other_high)
    return sizes[0].measure.atom(kind, (first, second), value, *bounds)


_NAMES = ("rows", "columns")


def _text(number: Any) -> str:
    if not isinstance(number, SymInt):
        return str(number)
    shown = ""
    for monomial, factor in sorted(number.terms, reverse=True):
        names = "*".join(_atom_text(number.measure.atoms[i]) for i in monomial)
        own = (
            names
            if abs(factor) == 1 and names
            else "*".join(filter(None, (str(abs(factor)), names)))
        )
        sign = "-" if factor < 0 else "+"
        shown = f"{shown} {sign} {own}" if shown else (own if factor > 0 else f"-{own}")
    return shown


def _atom_text(atom: SymbolicAtom) -> str:
    if atom.kind == "length":
        (number,) = atom.operands
        return _NAMES[number] if number < len(_NAMES) else f"length{number}"
    inside = [_text(each) for each in atom.operands]
    if atom.kind in ("floor", "ceil"):
        return f"{atom.kind}({inside[0]}/{inside[1]})"
    return f"{atom.kind}({', '.join(inside)})"


def is_size(number: object) -> TypeGuard[SymInt]:
    """Whether a number, for the type checker an int, is a SymInt."""
    return isinstance(number, SymInt)


def values_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return numbers with the values that SymInts have for the example."""
    return tuple([value_of(number) for number in numbers])


__all__ = [
    "Monomial",
    "NotSymbolic",
    "SymInt",
    "Terms",
    "is_size",
    "largest",
    "smallest",
    "value_of",
    "values_of",
]
