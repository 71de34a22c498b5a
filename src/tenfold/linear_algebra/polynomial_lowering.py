"""Polynomial lowering: turns a matrix polynomial into nodes, with as few BLAS operations as
possible.

Takes monomials (`linear_algebra/cost_search.py`) whose factors name terms by number, hands on the
node of their sum. Products are made in the order of their chains, each accumulated into the sum so
far; the rest is elementwise. A product with a scale, a sign, a conjugate or something added is a
`gemm`; vectors are scaled and added elementwise. A matrix times its own transpose is a `syrk`, a
product with a triangle a `trmm`; a product beside its own transpose is made once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tenfold.core.op import Op
from tenfold.dtypes import kind_of
from tenfold.linear_algebra.chain_order import GENERAL, Tree, best_order, syrk_pays_off, trmm_pays_off
from tenfold.linear_algebra.cost_search import Cost
from tenfold.linear_algebra.matrix_polynomial import ONE, Coefficient, MatrixFactor, Monomial, transpose_relation, pair_transposes
from tenfold.linear_algebra.normal_form import trmm_triangle
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import CONJUGATED, TRANSPOSED, gemm
from tenfold.ops.movement import permute_dims
from tenfold.ops.syrk import MIRRORED, OTHER, half_of_forms, place_of, syrk, trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match


class _Operand(NamedTuple):
    """A node, and the form in which it is multiplied."""

    term: NodeView
    form: str = "N"

    @property
    def lengths(self) -> tuple[int, int]:
        """The rows and columns of a matrix in that form."""
        rows, columns = self.term.shape
        return (columns, rows) if self.form in TRANSPOSED else (rows, columns)


NO_OPERANDS: Mapping[int, _Operand] = MappingProxyType({})


class _Addend(NamedTuple):
    """A node, and what it is multiplied by before it is added."""

    term: NodeView
    coefficient: Coefficient = ONE


def lower_polynomial(
    match: Match,
    words: Sequence[Monomial],
    terms: Sequence[NodeView],
    *,
    accumulated: bool,
    halves: bool = True,
) -> NodeView:
    """Return the node of a sum of words, which name terms by number.

    If not `accumulated`, single matrices are added after all products, in the elementwise kernel
    that reads the sum. With `halves`, half of a product is computed where that is enough.
    """
    return _NodeBuilder(match, terms, halves).sum(words, accumulated=accumulated)


def min_operations(cost: Cost, words: Sequence[Monomial], *, accumulated: bool) -> int:
    """Return a lower bound of the operations of a sum of words, without making its node: its
    products, and the additions of single matrices that no product accumulates into.
    """
    plain = sum([len(word.letters) == 1 for word in words])
    begun = accumulated or plain == len(words)
    return cost.products + max(0, plain - begun)


def _product_op(half: str) -> Op[...]:
    """The operation of a product of which some half is enough."""
    if not half:
        return gemm
    return syrk if half in MIRRORED else trmm


def _extent(tree: Tree) -> tuple[int, int]:
    """From which matrix of a chain to one beyond which a tree goes."""
    if isinstance(tree, int):
        return tree, tree + 1
    first, last = _extent(tree[0])
    return first, 2 * last - first if tree[1] is None else _extent(tree[1])[1]


class _NodeBuilder:
    def __init__(self, match: Match, terms: Sequence[NodeView], halves: bool) -> None:
        self.match, self.terms, self.halves = match, terms, halves

    def sum(self, words: Sequence[Monomial], *, accumulated: bool = True) -> NodeView:
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
        several: list[_Addend] = []
        for word, form in pair_transposes(words, halves=self.halves):
            if form:
                several += self.with_transpose(word, form)
            elif len(word.letters) > 1:
                left, right = self.factors(word)
                if mirrored := self.mirrored(left, right, word.coefficient):
                    several.append(mirrored)
                else:
                    there = self.accumulated(left, right, word.coefficient, there)
        return self.added([*addends, *there, *several])

    def with_transpose(self, word: Monomial, form: str) -> list[_Addend]:
        """Make a product once that is added to its own transpose or adjoint."""
        left, right = self.factors(word)
        (once,) = self.accumulated(left, right, word.coefficient, [])
        other = self.plain(_Operand(once.term, form))
        return [once, _Addend(other, once.coefficient)]

    def accumulated(
        self, left: _Operand, right: _Operand, by: Coefficient, there: list[_Addend]
    ) -> list[_Addend]:
        """Add a product to what is there: in one operation, if that is a matrix."""
        if not self.is_matrix(left, right):
            return [*there, _Addend(self.product(left, right), by)]
        if not there and by == ONE:
            return [_Addend(self.product(left, right))]
        third = there[0] if there else None
        return [_Addend(self.gemm(left, right, by, third))]

    def factors(self, word: Monomial) -> tuple[_Operand, _Operand]:
        """Make all products of a word but the last one; no recursion, chains may be long."""
        order = best_order(word.lengths, word.halves if self.halves else GENERAL)[1]
        found: dict[int, _Operand] = {}
        stack: list[tuple[Tree, bool]] = [(order, False)]
        results: list[_Operand] = []
        while stack:
            tree, entered = stack.pop()
            if isinstance(tree, int):
                if tree not in found:
                    found[tree] = self.operand(word.letters[tree], word, found)
                results.append(found[tree])
                continue
            left_tree, right_tree = tree
            if not entered:
                stack.append((tree, True))
                stack += [(part, False) for part in (right_tree, left_tree) if part is not None]
                continue
            if right_tree is None:
                middle = _extent(left_tree)[1]
                form = transpose_relation(word.letters[middle - 1], word.letters[middle])
                results.append(_Operand(results[-1].term, form))
            if stack:
                right, left = results.pop(), results.pop()
                results.append(_Operand(self.product(left, right)))
        left, right = results
        return left, right

    def operand(
        self,
        letter: MatrixFactor,
        word: Monomial | None = None,
        found: Mapping[int, _Operand] = NO_OPERANDS,
    ) -> _Operand:
        """Make what a letter stands for; of a word whose letters at some places are made."""
        if letter.words:
            for place, made in found.items():
                if word is not None and (form := transpose_relation(word.letters[place], letter)):
                    return _Operand(made.term, form)
            return _Operand(self.sum(letter.words))
        assert letter.name is not None, "a factor that is not a sum has a name"
        number, form = letter.name
        return _Operand(self.terms[number], form)

    def is_matrix(self, left: _Operand, right: _Operand) -> bool:
        """Whether a product is a matrix, or a stack of them, and none of one row or column."""
        if len(left.term.shape) < 2 or len(right.term.shape) < 2:
            return False
        rows = left.term.shape[-1 if left.form in TRANSPOSED else -2]
        columns = right.term.shape[-2 if right.form in TRANSPOSED else -1]
        return min(rows, columns) > 1

    def product(self, left: _Operand, right: _Operand) -> NodeView:
        """Make a product, and nothing else of it."""
        conjugated = left.form in CONJUGATED or right.form in CONJUGATED
        if self.half(left, right) or (conjugated and self.is_matrix(left, right)):
            return self.gemm(left, right, ONE, None)
        return self.match.make(matmul, self.plain(left), self.plain(right))

    def half(self, left: _Operand, right: _Operand) -> str:
        """Return which half of a product is enough, where it is worth it; nothing for most."""
        if not self.halves or len(left.term.shape) != 2 or len(right.term.shape) != 2:
            return ""
        rows, inner = left.lengths
        columns = right.lengths[1]
        if left.term == right.term and syrk_pays_off(rows, inner):
            return half_of_forms(left.form + right.form)
        for operand, place, lines in ((left, "first", columns), (right, "second", rows)):
            order, others = operand.lengths
            if order == others and trmm_pays_off(order, lines):
                found = trmm_triangle(operand.term)
                if found is not None:
                    turned = operand.form in TRANSPOSED
                    return f"{place} {OTHER[found.side] if turned else found.side}"
        return ""

    def gemm(
        self, left: _Operand, right: _Operand, by: Coefficient, third: _Addend | None
    ) -> NodeView:
        """Make a product with its scale, and what it is added to; half of it where that is enough.

        Nothing is added to a symmetric half.
        """
        half, scalars = self.half(left, right), self.numbers(by)
        factors, op = [left.term, right.term], _product_op(half)
        if op is trmm:
            place, _ = place_of(half)
            triangle = trmm_triangle(factors[place])
            assert triangle is not None, "it has been seen"
            factors[place] = triangle.matrix
        inputs = [*factors, *scalars]
        added = 0
        if third is not None:
            inputs += [third.term, *self.numbers(third.coefficient)]
            added = third.coefficient.sign
        halves = (half,) if half else ()
        params = (left.form, right.form, *halves, by.sign, len(scalars), added)
        return self.match.make(op, *inputs, params=params)

    def mirrored(self, left: _Operand, right: _Operand, by: Coefficient) -> _Addend | None:
        """Make a product with its own transpose or adjoint; None where it is none."""
        half = self.half(left, right)
        if half not in MIRRORED:
            return None
        if half == "hermitian" and any(kind_of(each.dtype) == "c" for each in self.numbers(by)):
            return _Addend(self.gemm(left, right, ONE, None), by)
        return _Addend(self.gemm(left, right, by, None))

    def numbers(self, coefficient: Coefficient) -> list[NodeView]:
        """Return the scalars of a coefficient."""
        return [self.terms[number] for number in coefficient.scalars]

    def plain(self, operand: _Operand) -> NodeView:
        """Make an operand in its form: a vector has no transpose."""
        term, form = operand
        if form in CONJUGATED:
            term = self.match.make(conj, term)
        if form in TRANSPOSED and len(term.shape) >= 2:
            *stack, rows, columns = range(len(term.shape))
            term = self.match.make(permute_dims, term, params=((*stack, columns, rows),))
        return term

    def added(self, addends: Sequence[_Addend]) -> NodeView:
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

    def scaled(self, addend: _Addend) -> NodeView:
        """Make something times its scalars; the sign is left."""
        term = addend.term
        for number in self.numbers(addend.coefficient):
            term = self.match.make(multiply, term, number)
        return term
