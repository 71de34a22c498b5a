"""Shape environment (ShapeEnv): symbolic dimensions and their guards.

Takes lengths of 2 or more, hands on a SymInt for each, and the guards: the conditions under which
other lengths lead to the same decisions. A condition that holds for all lengths is not a guard; of
similar ones the strongest remains.

>>> shape_env = ShapeEnv((6, 100))
>>> rows, columns = shape_env.lengths
>>> columns > 16, columns > 32, rows * columns > rows, rows != columns
(True, True, True, True)
>>> shape_env.guards()
[('positive', columns - 32)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tenfold.core.symbolic.sym_int import Monomial, NotSymbolic, SymInt, Terms

LOWEST = 2
"""The smallest length that is a SymInt."""
MAX_GUARDS = 128
MAX_FORMULA_TERMS = 64
"""The most terms of a formula; a planner's formulas have a few."""


class SymbolicAtom(NamedTuple):
    """An atom of a formula: a length, or an operation on formulas that is not a polynomial."""

    kind: str
    """length, floor, ceil: a quotient; mod: a remainder; min, max; bits: the binary digits."""
    operands: tuple[Any, ...]
    value: int
    low: float
    high: float


class ShapeEnv:
    """The lengths of an example as SymInts, and the guards of decisions made with them."""

    def __init__(self, lengths: Sequence[int]) -> None:
        assert all(length >= LOWEST for length in lengths), "0 and 1 are not symbolic"
        self.atoms: list[SymbolicAtom] = []
        self._numbers: dict[tuple[str, tuple[Any, ...]], int] = {}
        self._positive: dict[Terms, int] = {}
        self._zero: dict[tuple[str, Terms], None] = {}
        self._interned: dict[Terms, SymInt] = {}
        self.computed: dict[tuple[str, int, int, bool], Any] = {}
        """Results of operations on SymInts, by name, operands and whether both are SymInts."""
        self.lengths: tuple[int, ...] = tuple(
            self.atom("length", (number,), length, LOWEST, math.inf)
            for number, length in enumerate(lengths)
        )

    def atom(
        self, kind: str, operands: tuple[Any, ...], value: int, low: float, high: float
    ) -> Any:
        """Return the SymInt that is one atom."""
        key = kind, tuple([operand_key(operand) for operand in operands])
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(SymbolicAtom(kind, operands, value, low, high))
        return self.interned((((number,), 1),), value)

    def interned(self, terms: Terms, value: int) -> SymInt:
        """Return the SymInt of these terms."""
        known = self._interned.get(terms)
        if known is None:
            known = self._interned[terms] = SymInt(self, terms, value, len(self._interned))
        return known

    def polynomial(self, terms: dict[Monomial, int], value: int | None = None) -> Any:
        """Return the sum of terms, an int if it is constant; `value` is its value, if known."""
        nonzero = sorted(filter(itemgetter(1), terms.items()))
        if not nonzero or nonzero[-1][0] == ():  # the constant comes first
            return nonzero[0][1] if nonzero else 0
        if len(nonzero) > MAX_FORMULA_TERMS:
            raise NotSymbolic
        if value is None:
            value = 0
            for monomial, factor in nonzero:
                for number in monomial:
                    factor *= self.atoms[number].value
                value += factor
        return self.interned(tuple(nonzero), value)

    def is_positive(self, number: Any) -> bool:
        """Whether a number is above 0; an answer that its bounds do not prove becomes a guard."""
        if not isinstance(number, SymInt):
            return bool(number > 0)
        if number.low > 0:
            return True
        if number.high <= 0:
            return False
        number = number.primitive()
        if number.low > 0 or number.high <= 0:
            return bool(number.low > 0)
        decision = number.value > 0
        self._add_guard(number if decision else 1 - number)
        return bool(decision)

    def _add_guard(self, number: SymInt) -> None:
        """Add the guard that a number is above 0; of guards on equal terms the strongest stays."""
        terms = dict(number.terms)
        constant = terms.pop((), 0)
        variable_terms = tuple(sorted(terms.items()))
        self._positive[variable_terms] = min(constant, self._positive.get(variable_terms, constant))
        self._check_guard_count()

    def is_zero(self, number: Any) -> bool:
        """Whether a number is 0; an answer that its bounds do not prove becomes a guard."""
        if not isinstance(number, SymInt):
            return bool(number == 0)
        if number.low > 0 or number.high < 0:
            return False
        number = number.primitive()
        if number.low > 0 or number.high < 0 or self._is_length_difference(number):
            return False
        decision = bool(number.value == 0)
        self._zero["zero" if decision else "other", number.terms] = None
        self._check_guard_count()
        return decision

    def _check_guard_count(self) -> None:
        if len(self._positive) + len(self._zero) > MAX_GUARDS:
            raise NotSymbolic

    def _is_length_difference(self, number: SymInt) -> bool:
        """Whether a formula is the difference of two lengths, which are not equal."""
        if len(number.terms) != 2:
            return False
        (left_monomial, factor), (right_monomial, other_factor) = number.terms
        single = len(left_monomial) == len(right_monomial) == 1 and factor == -other_factor
        return single and all(
            self.atoms[monomial[0]].kind == "length" for monomial in (left_monomial, right_monomial)
        )

    def guards(self) -> list[tuple[str, SymInt]]:
        """Return the guards: a number is above 0 ("positive"), 0 ("zero"), or not 0 ("other")."""
        guards: list[tuple[str, Any]] = [
            ("positive", self.polynomial({**dict(terms), (): constant}))
            for terms, constant in self._positive.items()
        ]
        return [
            *guards,
            *(
                (kind, self.polynomial(dict(terms)))
                for kind, terms in self._zero
                if not self._excluded(terms)
            ),
        ]

    def _excluded(self, terms: Terms) -> bool:
        """Whether a positive guard already implies that a formula is not 0."""
        variable_terms = dict(terms)
        constant = variable_terms.pop((), 0)
        bound = self._positive.get(tuple(sorted(variable_terms.items())))
        return bound is not None and bound <= constant


def operand_key(operand: object) -> object:
    """Return what equal operands of atoms have in common."""
    return operand.terms if isinstance(operand, SymInt) else operand


__all__ = ["LOWEST", "ShapeEnv", "SymbolicAtom"]
