"""Size program: SymInts as rows of operations on numbered registers, evaluated by native code.

Takes a ShapeEnv and SymInts made of it, hands on the constants and the rows (operation, left,
right): the registers are first the lengths, then the constants, then the result of each row. Shared
subexpressions are computed once.

>>> from tenfold.core.symbolic.shape_env import ShapeEnv
>>> shape_env = ShapeEnv((6, 100))
>>> program = SizeProgram(shape_env)
>>> ref = program.ref(8 * shape_env.lengths[1] + 1)
>>> program.constants, program.instructions(), program.register(ref)
([1, 8], [('times', 3, 1), ('plus', 2, 4)], 5)
"""

from __future__ import annotations

from functools import partial, reduce

from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.sym_int import SymInt, is_size

SizeRef = tuple[str, int]
"""A reference to a number: ("length" | "constant" | "row", its index)."""


class SizeProgram:
    """The constants and rows that compute some SymInts."""

    def __init__(self, shape_env: ShapeEnv) -> None:
        self.shape_env = shape_env
        self.constants: list[int] = []
        self.rows: list[tuple[str, SizeRef, SizeRef]] = []
        self._refs: dict[object, SizeRef] = {}

    def ref(self, number: object) -> SizeRef:
        """Return the reference of a number."""
        if not is_size(number):
            assert isinstance(number, int), "a SymInt or an int"
            return self._constant(number)
        key = number.terms
        if key not in self._refs:
            self._refs[key] = self._sum(number)
        return self._refs[key]

    def _constant(self, number: int) -> SizeRef:
        if ("constant", number) not in self._refs:
            self._refs["constant", number] = "constant", len(self.constants)
            self.constants.append(number)
        return self._refs["constant", number]

    def _row(self, operation: str, left: SizeRef, right: SizeRef) -> SizeRef:
        key = operation, left, right
        if key not in self._refs:
            self._refs[key] = "row", len(self.rows)
            self.rows.append(key)
        return self._refs[key]

    def _sum(self, number: SymInt) -> SizeRef:
        total: SizeRef | None = None
        for monomial, factor in number.terms:
            factors = [self._atom(i) for i in monomial]
            if factor != 1 or not monomial:
                factors.insert(0, self._constant(factor))
            term = reduce(partial(self._row, "times"), factors)
            total = term if total is None else self._row("plus", total, term)
        assert total is not None, "a SymInt has terms"
        return total

    def _atom(self, number: int) -> SizeRef:
        atom = self.shape_env.atoms[number]
        if atom.kind == "length":
            return "length", atom.operands[0]
        operand_refs = [self.ref(operand) for operand in atom.operands]
        return self._row(atom.kind, operand_refs[0], operand_refs[-1])

    def register(self, ref: SizeRef) -> int:
        """Return the register of a reference, once all references exist."""
        kind, number = ref
        lengths = len(self.shape_env.lengths)
        first_register = {"length": 0, "constant": lengths, "row": lengths + len(self.constants)}
        return first_register[kind] + number

    def instructions(self) -> list[tuple[str, int, int]]:
        """Return the rows with register numbers as operands."""
        return [
            (name, self.register(left), self.register(right)) for name, left, right in self.rows
        ]


__all__ = ["SizeProgram", "SizeRef"]
