"""Size program: SymInts as rows of operations on numbered registers, evaluated by native code.

Takes a ShapeEnv and SymInts made of it, hands on the constants and the rows (operation, left,
right): the registers are first the lengths, then the constants, then the result of each row. Shared
subexpressions are computed once.

>>> from tenfold.core.symbolic.shape_env import ShapeEnv
>>> measure = ShapeEnv((6, 100))
>>> formulas = SizeProgram(measure)
>>> at = formulas.place(8 * measure.lengths[1] + 1)
>>> formulas.constants, formulas.numbered(), formulas.register(at)
([1, 8], [('times', 3, 1), ('plus', 2, 4)], 5)
"""

from __future__ import annotations

from functools import partial, reduce

from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.sym_int import SymInt, is_size

Place = tuple[str, int]
"""Where a number will stand: ("length" | "constant" | "row", which)."""


class SizeProgram:
    """The constants and rows of some SymInts."""

    def __init__(self, measure: ShapeEnv) -> None:
        self.measure = measure
        self.constants: list[int] = []
        self.rows: list[tuple[str, Place, Place]] = []
        self._known: dict[object, Place] = {}

    def place(self, number: object) -> Place:
        """Return where a number will stand."""
        if not is_size(number):
            assert isinstance(number, int), "a Size or an int"
            return self._constant(number)
        key = number.terms
        if key not in self._known:
            self._known[key] = self._sum(number)
        return self._known[key]

    def _constant(self, number: int) -> Place:
        if ("constant", number) not in self._known:
            self._known["constant", number] = "constant", len(self.constants)
            self.constants.append(number)
        return self._known["constant", number]

    def _row(self, operation: str, left: Place, right: Place) -> Place:
        key = operation, left, right
        if key not in self._known:
            self._known[key] = "row", len(self.rows)
            self.rows.append(key)
        return self._known[key]

    def _sum(self, number: SymInt) -> Place:
        total: Place | None = None
        for monomial, factor in number.terms:
            factors = [self._atom(i) for i in monomial]
            if factor != 1 or not monomial:
                factors.insert(0, self._constant(factor))
            made = reduce(partial(self._row, "times"), factors)
            total = made if total is None else self._row("plus", total, made)
        assert total is not None, "a Size has terms"
        return total

    def _atom(self, number: int) -> Place:
        atom = self.measure.atoms[number]
        if atom.kind == "length":
            return "length", atom.operands[0]
        places = [self.place(each) for each in atom.operands]
        return self._row(atom.kind, places[0], places[-1])

    def register(self, place: Place) -> int:
        """Return the number of a register, once all places have been asked for."""
        kind, number = place
        lengths = len(self.measure.lengths)
        before = {"length": 0, "constant": lengths, "row": lengths + len(self.constants)}
        return before[kind] + number

    def numbered(self) -> list[tuple[str, int, int]]:
        """Return the rows with registers for operands."""
        return [
            (name, self.register(left), self.register(right)) for name, left, right in self.rows
        ]


__all__ = ["Place", "SizeProgram"]
