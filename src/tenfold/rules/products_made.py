"""Making: the nodes of a sum of words, with as few operations as BLAS needs.

Takes words (`rules/factoring.py`) whose letters are nodes and their forms, hands on the node of
their sum: products in the order that their chains say, each accumulated into what is there, the
rest elementwise. A product with a scale, a sign, a conjugate or something added is a `gemm`;
vectors are scaled and added elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.ir.rule import Match
from tenfold.ir.term import Term
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import CONJUGATED, TRANSPOSED, gemm
from tenfold.ops.movement import permute_dims
from tenfold.rules.chains import Tree, chain
from tenfold.rules.factoring import ONE, Coefficient, Letter, Word


class _Operand(NamedTuple):
    """A node, and the form in which it is multiplied."""

    term: Term
    form: str = "N"


class _Addend(NamedTuple):
    """A node, and what it is multiplied by before it is added."""

    term: Term
    coefficient: Coefficient = ONE


def made(match: Match, words: Sequence[Word], *, accumulated: bool) -> Term:
    """Return the node of a sum of words. If not `accumulated`, what is no product is added after
    all products, elementwise: by whoever reads the sum.
    """
    return _Maker(match).sum(words, accumulated=accumulated)


class _Maker:
    def __init__(self, match: Match) -> None:
        self.match, self.work = match, match.root.work

    def sum(self, words: Sequence[Word], *, accumulated: bool = True) -> Term:
        """Make the sum of words; all but one product are accumulated into what is there."""
        addends = [
            _Addend(self.plain(self.operand(word.letters[0])), word.coefficient)
            for word in words
            if len(word.letters) == 1
        ]
        there: list[_Addend] = []
        if accumulated and addends:
            there = addends if len(addends) == 1 else [_Addend(self.added(addends))]
            addends = []
        for word in words:
            if len(word.letters) > 1:
                there = self.accumulated(word, there)
        return self.added([*addends, *there])

    def accumulated(self, word: Word, there: list[_Addend]) -> list[_Addend]:
        """Add a product to what is there: in one operation, if that is a matrix."""
        left, right = self.factors(word)
        if not self.is_matrix(left, right):
            return [*there, _Addend(self.product(left, right), word.coefficient)]
        if not there and word.coefficient == ONE:
            return [_Addend(self.product(left, right))]
        third = there[0] if there else None
        return [_Addend(self.gemm(left, right, word.coefficient, third))]

    def factors(self, word: Word) -> tuple[_Operand, _Operand]:
        """Make all products of a word but the last one; no recursion, chains may be long."""
        order = chain(word.lengths)[1]
        found: dict[int, _Operand] = {}
        stack: list[tuple[Tree, bool]] = [(order, False)]
        results: list[_Operand] = []
        while stack:
            tree, entered = stack.pop()
            if isinstance(tree, int):
                if tree not in found:
                    found[tree] = self.operand(word.letters[tree])
                results.append(found[tree])
            elif not entered:
                stack += [(tree, True), (tree[1], False), (tree[0], False)]
            elif stack:
                right, left = results.pop(), results.pop()
                results.append(_Operand(self.product(left, right)))
        left, right = results
        return left, right

    def operand(self, letter: Letter) -> _Operand:
        """Make what a letter stands for."""
        if letter.words:
            return _Operand(self.sum(letter.words))
        assert letter.name is not None, "what is no sum has a name"
        at, form = letter.name
        return _Operand(Term(self.work, at), form)

    def is_matrix(self, left: _Operand, right: _Operand) -> bool:
        """Whether a product is a matrix, or a stack of them, and none of one row or column."""
        if len(left.term.shape) < 2 or len(right.term.shape) < 2:
            return False
        rows = left.term.shape[-1 if left.form in TRANSPOSED else -2]
        columns = right.term.shape[-2 if right.form in TRANSPOSED else -1]
        return min(rows, columns) > 1

    def product(self, left: _Operand, right: _Operand) -> Term:
        """Make a product, and nothing else of it."""
        conjugated = left.form in CONJUGATED or right.form in CONJUGATED
        if conjugated and self.is_matrix(left, right):
            return self.gemm(left, right, ONE, None)
        return self.match.make(matmul, self.plain(left), self.plain(right))

    def gemm(self, left: _Operand, right: _Operand, by: Coefficient, third: _Addend | None) -> Term:
        """Make a product with its scale, and what it is added to."""
        scalars = self.numbers(by)
        inputs = [left.term, right.term, *scalars]
        added = 0
        if third is not None:
            inputs += [third.term, *self.numbers(third.coefficient)]
            added = third.coefficient.sign
        params = (left.form, right.form, by.sign, len(scalars), added)
        return self.match.make(gemm, *inputs, params=params)

    def numbers(self, coefficient: Coefficient) -> list[Term]:
        """Return the scalars of a coefficient."""
        return [Term(self.work, at) for at in coefficient.scalars]

    def plain(self, operand: _Operand) -> Term:
        """Make an operand in its form: a vector has no transpose."""
        term, form = operand
        if form in CONJUGATED:
            term = self.match.make(conj, term)
        if form in TRANSPOSED and len(term.shape) >= 2:
            *stack, rows, columns = range(len(term.shape))
            term = self.match.make(permute_dims, term, params=((*stack, columns, rows),))
        return term

    def added(self, addends: Sequence[_Addend]) -> Term:
        """Make the sum of what is there, elementwise; one that is not taken off comes first."""
        first = next((each for each in addends if each.coefficient.sign > 0), addends[0])
        total = self.scaled(first)
        if first.coefficient.sign < 0:
            total = self.match.make(negative, total)
        left = list(addends)
        left.remove(first)
        for each in left:
            op = add if each.coefficient.sign > 0 else subtract
            total = self.match.make(op, total, self.scaled(each))
        return total

    def scaled(self, addend: _Addend) -> Term:
        """Make something times its scalars; the sign is left."""
        term = addend.term
        for number in self.numbers(addend.coefficient):
            term = self.match.make(multiply, term, number)
        return term
