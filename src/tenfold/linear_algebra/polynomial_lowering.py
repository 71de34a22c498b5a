"""Polynomial lowering: turns a matrix polynomial into nodes, with as few BLAS operations as
possible.

Input: monomials (`linear_algebra/cost_search.py`) whose factors name terms by number. Output: the
node of their sum. Products are built in the cheapest chain order, each accumulated into the sum so
far; other operations are elementwise. A product with a scale, a sign, a conjugate or an addend is a
`gemm`, with vectors too. A matrix times its own transpose is a `syrk`, a product with a triangle a
`trmm`. A product added to its own transpose is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tenfold.core.op import Op
from tenfold.core.structure import HALF_OF, Half, transposed_structure
from tenfold.linear_algebra.chain_order import (
    GENERAL,
    Tree,
    best_order,
    syrk_pays_off,
    trmm_pays_off,
)
from tenfold.linear_algebra.cost_search import Cost
from tenfold.linear_algebra.matrix_polynomial import (
    ONE,
    Coefficient,
    MatrixFactor,
    Monomial,
    Scalar,
    pair_transposes,
    transpose_relation,
)
from tenfold.linear_algebra.normal_form import trmm_triangle
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import CONJUGATED, TRANSPOSED, gemm
from tenfold.ops.movement import permute_dims
from tenfold.ops.syrk import (
    half_of_forms,
    syrk,
    trmm,
)
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match


class _Operand(NamedTuple):
    """A node and its form in the product."""

    term: NodeView
    form: str = "N"

    @property
    def gemm_form(self) -> str:
        """The form as a gemm has it: a vector is not transposed."""
        if len(self.term.shape) > 1:
            return self.form
        return "J" if self.form in CONJUGATED else "N"

    @property
    def lengths(self) -> tuple[int, int]:
        """The rows and columns of a matrix in that form; a vector is a column."""
        rows, columns = self.term.shape if len(self.term.shape) > 1 else (*self.term.shape, 1)
        return (columns, rows) if self.form in TRANSPOSED else (rows, columns)


NO_OPERANDS: Mapping[int, _Operand] = MappingProxyType({})


class _Addend(NamedTuple):
    """A node and its coefficient in the sum."""

    term: NodeView
    coefficient: Coefficient = ONE


def lower_polynomial(
    match: Match,
    monomials: Sequence[Monomial],
    terms: Sequence[NodeView],
    *,
    accumulate: bool,
    use_structure: bool = True,
) -> NodeView:
    """Return the node of a sum of monomials, which name terms by number.

    Without `accumulate`, single matrices are added after all products, in the elementwise kernel
    that reads the sum. With `use_structure`, symmetric and triangular products compute one half.
    """
    return _NodeBuilder(match, terms, use_structure).sum(monomials, accumulate=accumulate)


def min_operations(cost: Cost, monomials: Sequence[Monomial], *, accumulate: bool) -> int:
    """Return a lower bound of the operations of a sum of monomials.

    It counts the products, and the additions of single matrices without an accumulating product.
    """
    single_matrices = sum([len(monomial.factors) == 1 for monomial in monomials])
    has_accumulator = accumulate or single_matrices == len(monomials)
    return cost.products + max(0, single_matrices - has_accumulator)


def scaled(match: Match, term: NodeView, scalars: Iterable[tuple[NodeView, bool]]) -> NodeView:
    """Return a term times scalars, each as it is or conjugated: no value of one is read."""
    for scalar, conjugated in scalars:
        term = match.make(conj, term) if conjugated else term
        term = match.make(multiply, term, scalar)
        term = match.make(conj, term) if conjugated else term
    return term


def _product_op(half: Half) -> Op[...]:
    """Return the operation of a product for a half: gemm for none, syrk or trmm."""
    if not half:
        return gemm
    return syrk if half.is_result else trmm


def _extent(tree: Tree) -> tuple[int, int]:
    """Return the range [first, last) of the matrices of a tree."""
    if isinstance(tree, int):
        return tree, tree + 1
    first, last = _extent(tree[0])
    return first, 2 * last - first if tree[1] is None else _extent(tree[1])[1]


class _NodeBuilder:
    def __init__(self, match: Match, terms: Sequence[NodeView], use_structure: bool) -> None:
        self.match, self.terms, self.use_structure = match, terms, use_structure

    def sum(self, monomials: Sequence[Monomial], *, accumulate: bool = True) -> NodeView:
        """Build the sum of monomials; each product accumulates into the sum so far."""
        addends = [
            _Addend(self.materialize(self.lower_factor(monomial.factors[0])), monomial.coefficient)
            for monomial in monomials
            if len(monomial.factors) == 1
        ]
        accumulator: list[_Addend] = []
        if accumulate and addends:
            accumulator = addends if len(addends) == 1 else [_Addend(self.sum_addends(addends))]
            addends = []
        separate: list[_Addend] = []
        for monomial, form in pair_transposes(monomials, use_structure=self.use_structure):
            if form:
                separate += self.with_transpose(monomial, form)
            elif len(monomial.factors) > 1:
                left, right = self.final_operands(monomial)
                if symmetric := self.symmetric_product(left, right, monomial.coefficient):
                    separate.append(symmetric)
                else:
                    accumulator = self.accumulate(left, right, monomial.coefficient, accumulator)
        return self.sum_addends([*addends, *accumulator, *separate])

    def with_transpose(self, monomial: Monomial, form: str) -> list[_Addend]:
        """Build a product once and add its transpose or adjoint."""
        left, right = self.final_operands(monomial)
        (product,) = self.accumulate(left, right, monomial.coefficient, [])
        transposed = self.materialize(_Operand(product.term, form))
        return [product, _Addend(transposed, product.coefficient)]

    def accumulate(
        self, left: _Operand, right: _Operand, coefficient: Coefficient, accumulator: list[_Addend]
    ) -> list[_Addend]:
        """Add a product to the accumulator: one gemm."""
        if not accumulator and coefficient == ONE:
            return [_Addend(self.product(left, right))]
        addend = accumulator[0] if accumulator else None
        return [_Addend(self.gemm(left, right, coefficient, addend))]

    def final_operands(self, monomial: Monomial) -> tuple[_Operand, _Operand]:
        """Build all products of a monomial except the last; no recursion, chains may be long."""
        structure = monomial.structure if self.use_structure else GENERAL
        _, order = best_order(monomial.lengths, structure)
        operands: dict[int, _Operand] = {}
        stack: list[tuple[Tree, bool]] = [(order, False)]
        results: list[_Operand] = []
        while stack:
            tree, visited = stack.pop()
            if isinstance(tree, int):
                if tree not in operands:
                    operands[tree] = self.lower_factor(monomial.factors[tree], monomial, operands)
                results.append(operands[tree])
                continue
            left_tree, right_tree = tree
            if not visited:
                stack.append((tree, True))
                stack += [
                    (subtree, False) for subtree in (right_tree, left_tree) if subtree is not None
                ]
                continue
            if right_tree is None:
                middle = _extent(left_tree)[1]
                form = transpose_relation(monomial.factors[middle - 1], monomial.factors[middle])
                results.append(_Operand(results[-1].term, form))
            if stack:
                right, left = results.pop(), results.pop()
                results.append(_Operand(self.product(left, right)))
        left, right = results
        return left, right

    def lower_factor(
        self,
        factor: MatrixFactor,
        monomial: Monomial | None = None,
        lowered: Mapping[int, _Operand] = NO_OPERANDS,
    ) -> _Operand:
        """Build a factor of a monomial; `lowered` has the operands built so far, by index."""
        if factor.monomials:
            for i, operand in lowered.items():
                if monomial is not None and (
                    form := transpose_relation(monomial.factors[i], factor)
                ):
                    return _Operand(operand.term, form)
            return _Operand(self.sum(factor.monomials))
        assert factor.name is not None, "a factor that is not a sum has a name"
        number, form = factor.name
        return _Operand(self.terms[number], form)

    def product(self, left: _Operand, right: _Operand) -> NodeView:
        """Build a product without a scale or addend."""
        conjugated = left.form in CONJUGATED or right.form in CONJUGATED
        if conjugated or self.half(left, right):
            return self.gemm(left, right, ONE, None)
        return self.match.make(matmul, self.materialize(left), self.materialize(right))

    def half(self, left: _Operand, right: _Operand) -> Half:
        """Return the half for a syrk or trmm; none for a gemm."""
        if not self.use_structure or max(len(left.term.shape), len(right.term.shape)) > 2:
            return Half.NONE
        rows, inner = left.lengths
        columns = right.lengths[1]
        if left.term == right.term and syrk_pays_off(rows, inner):
            return half_of_forms(left.form + right.form)
        for operand, position, lines in ((left, 0, columns), (right, 1, rows)):
            order, other_length = operand.lengths
            if order == other_length and trmm_pays_off(order, lines):
                triangle = trmm_triangle(operand.term)
                if triangle is not None:
                    side = triangle.side
                    if operand.form in TRANSPOSED:
                        side = transposed_structure(side)
                    return HALF_OF[side, position]
        return Half.NONE

    def gemm(
        self, left: _Operand, right: _Operand, coefficient: Coefficient, addend: _Addend | None
    ) -> NodeView:
        """Build a gemm, syrk or trmm with its scale and addend; a syrk has no addend."""
        half, scalars = self.half(left, right), list(coefficient.scalars)
        factors, op = [left.term, right.term], _product_op(half)
        if op is trmm:
            triangle = trmm_triangle(factors[half.operand])
            assert triangle is not None, "half() found it"
            factors[half.operand] = triangle.matrix
        operands: list[NodeView | Scalar] = [*factors, *scalars]
        addend_sign = 0
        if addend is not None:
            operands += [addend.term, *addend.coefficient.scalars]
            addend_sign = addend.coefficient.sign
        inputs = [x if isinstance(x, NodeView) else self.terms[x[0]] for x in operands]
        conjugated = tuple(
            [at for at, x in enumerate(operands) if not isinstance(x, NodeView) and x[1] == "J"]
        )
        params = (*(x.gemm_form for x in (left, right)), coefficient.sign, len(scalars))
        half_params = (half, conjugated) if conjugated else (half,) if half else ()
        return self.match.make(op, *inputs, params=(*params, addend_sign, *half_params))

    def symmetric_product(
        self, left: _Operand, right: _Operand, coefficient: Coefficient
    ) -> _Addend | None:
        """Build a matrix times its own transpose or adjoint; None for other products."""
        half = self.half(left, right)
        if not half.is_result:
            return None
        if half is Half.HERMITIAN and any(form for _, form in coefficient.scalars):
            return _Addend(self.gemm(left, right, ONE, None), coefficient)
        return _Addend(self.gemm(left, right, coefficient, None))

    def materialize(self, operand: _Operand) -> NodeView:
        """Return an operand as a node, transposed and conjugated; a vector has no transpose."""
        term, form = operand
        if form in CONJUGATED:
            term = self.match.make(conj, term)
        if form in TRANSPOSED and len(term.shape) >= 2:
            *stack, rows, columns = range(len(term.shape))
            term = self.match.make(permute_dims, term, params=((*stack, columns, rows),))
        return term

    def sum_addends(self, addends: Sequence[_Addend]) -> NodeView:
        """Build an elementwise sum; an addend of positive sign comes first, if there is one."""
        first = next((addend for addend in addends if addend.coefficient.sign > 0), addends[0])
        total = self.scale_addend(first)
        if first.coefficient.sign < 0:
            total = self.match.make(negative, total)
        remaining = list(addends)
        remaining.remove(first)
        for addend in remaining:
            op = add if addend.coefficient.sign > 0 else subtract
            total = self.match.make(op, total, self.scale_addend(addend))
        return total

    def scale_addend(self, addend: _Addend) -> NodeView:
        """Multiply an addend by its scalars, without its sign."""
        return scaled(
            self.match,
            addend.term,
            [(self.terms[number], form == "J") for number, form in addend.coefficient.scalars],
        )
