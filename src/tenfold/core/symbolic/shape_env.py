"""Shape environment (ShapeEnv): symbolic dimensions and their guards.

Takes lengths of 2 or more, hands on a SymInt for each, and the guards: the conditions under which
other lengths lead to the same decisions. A condition that holds for all lengths is not a guard; of
similar ones the strongest remains.

>>> measure = ShapeEnv((6, 100))
>>> rows, columns = measure.lengths
>>> columns > 16, columns > 32, rows * columns > rows, rows != columns
(True, True, True, True)
>>> measure.guards()
[('positive', columns - 32)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.core.symbolic.sym_int import Monomial, NotSymbolic, SymInt, Terms

LOWEST = 2
"""The smallest length that is a SymInt."""
MOST_GUARDS = 128
MOST_TERMS = 64
"""Of a formula; a planner's have a few."""


class SymbolicAtom(NamedTuple):
    """An atom of a formula: a length, or an operation on formulas that is not a polynomial."""

    kind: str
    """length, floor, ceil: a quotient; mod: a remainder; min, max; bits: the binary digits."""
    operands: tuple[Any, ...]
    value: int
    low: float
    high: float


class ShapeEnv:
    """The lengths of an example as SymInts, and what has been decided with them."""

    def __init__(self, lengths: Sequence[int]) -> None:
        assert all(length >= LOWEST for length in lengths), "0 and 1 are no Sizes"
        self.atoms: list[SymbolicAtom] = []
        self._numbers: dict[tuple[str, tuple[Any, ...]], int] = {}
        self._positive: dict[Terms, int] = {}
        self._zero: dict[tuple[str, Terms], None] = {}
        self.lengths: tuple[int, ...] = tuple(
            self.atom("length", (number,), length, LOWEST, math.inf)
            for number, length in enumerate(lengths)
        )

    def atom(
        self, kind: str, operands: tuple[Any, ...], value: int, low: float, high: float
    ) -> Any:
        """Return the SymInt that is one atom."""
        key = kind, tuple([key_of(each) for each in operands])
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(SymbolicAtom(kind, operands, value, low, high))
        return SymInt(self, (((number,), 1),), value)

    def made(self, terms: dict[Monomial, int], value: int | None = None) -> Any:
        """Return the sum of terms, of that value where it is known: an int where no length is left
        in it.
        """
        kept = sorted([each for each in terms.items() if each[1]])
        if not kept or kept[-1][0] == ():  # the constant comes first
            return kept[0][1] if kept else 0
        if len(kept) > MOST_TERMS:
            raise NotSymbolic
        if value is None:
            value = sum([factor * self._value(monomial) for monomial, factor in kept])
        return SymInt(self, tuple(kept), value)

    def _value(self, monomial: Monomial) -> int:
        return math.prod([self.atoms[i].value for i in monomial])

    def positive(self, number: Any) -> bool:
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
        found = number.value > 0
        self._note(number if found else 1 - number)
        return bool(found)

    def _note(self, number: SymInt) -> None:
        """Add the guard that a number is above 0; of guards on equal terms the strongest stays."""
        terms = dict(number.terms)
        constant = terms.pop((), 0)
        left = tuple(sorted(terms.items()))
        self._positive[left] = min(constant, self._positive.get(left, constant))
        self._check()

    def zero(self, number: Any) -> bool:
        """Whether a number is 0; an answer that its bounds do not prove becomes a guard."""
        if not isinstance(number, SymInt):
            return bool(number == 0)
        if number.low > 0 or number.high < 0:
            return False
        number = number.primitive()
        if number.low > 0 or number.high < 0 or self._differ(number):
            return False
        found = bool(number.value == 0)
        self._zero["zero" if found else "other", number.terms] = None
        self._check()
        return found

    def _check(self) -> None:
        if len(self._positive) + len(self._zero) > MOST_GUARDS:
            raise NotSymbolic

    def _differ(self, number: SymInt) -> bool:
        """Whether a formula is the difference of two lengths, which are not equal."""
        if len(number.terms) != 2:
            return False
        (one, factor), (other, by) = number.terms
        single = len(one) == len(other) == 1 and factor == -by
        return single and all(self.atoms[each[0]].kind == "length" for each in (one, other))

    def guards(self) -> list[tuple[str, SymInt]]:
        """Return what must hold: a number is above 0 ("positive"), 0 ("zero"), or not ("other")."""
        found: list[tuple[str, Any]] = [
            ("positive", self.made({**dict(terms), (): constant}))
            for terms, constant in self._positive.items()
        ]
        return [
            *found,
            *(
                (kind, self.made(dict(terms)))
                for kind, terms in self._zero
                if not self._excluded(terms)
            ),
        ]

    def _excluded(self, terms: Terms) -> bool:
        """Whether a formula cannot be 0 since something else must be above 0."""
        left = dict(terms)
        constant = left.pop((), 0)
        bound = self._positive.get(tuple(sorted(left.items())))
        return bound is not None and bound <= constant


def key_of(operand: object) -> object:
    """Return what equal operands of atoms have in common."""
    return operand.terms if isinstance(operand, SymInt) else operand


__all__ = ["LOWEST", "ShapeEnv", "SymbolicAtom"]
