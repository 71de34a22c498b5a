"""Normal form: reads the expression of matrices at a node as a matrix polynomial.

Input: a NodeView of a rewrite graph. Output: its monomials. Products of sums are expanded while the
result has few monomials. Transposes, conjugates, scales and signs become part of factors and
coefficients. A factor has a node and a form: "N" plain, "T" transposed, "J" conjugated, "C" both. A
vector is a column, or a row in form "T". Stacks of matrices with equal stack shapes are read like
one matrix.

>>> a = (Monomial(ONE, (MatrixFactor((0, "N"), 2, 3), MatrixFactor((1, "T"), 3, 4))),)
>>> [factor[:3] for factor in transposed(a, "T", real=True)[0].factors]
[((1, 'N'), 4, 3), ((0, 'T'), 3, 2)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from tenfold.core.op import Epilogue, Op
from tenfold.core.structure import Structure
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, kind_of
from tenfold.linear_algebra.matrix_polynomial import (
    ONE,
    Coefficient,
    MatrixFactor,
    Monomial,
    Scalar,
    sum_of,
    transposed,
)
from tenfold.linear_algebra.structure_inference import Triangle, is_matrix_transpose, triangle_of
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import gemm
from tenfold.ops.movement import permute_dims
from tenfold.ops.syrk import MIN_TRMM_SIZE, syrk, trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import RewriteGraph

INEXACT = (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)
MAX_EXPANDED_MONOMIALS = 12
"""The largest number of monomials of an expanded product; in a larger one, a sum stays a factor."""
MAX_SUM_DEPTH = 32
"""The greatest depth of nested sums, because their lowering is recursive.

An expression with deeper sums is not rewritten.
"""
MAX_NODES = 4096
"""The largest number of nodes of an expression that is read."""
MAX_TRANSPOSED_FACTORS = 1 << 17
"""The largest number of factors transposed or conjugated while an expression is read.

A long chain with a transpose at every step is not rewritten.
"""

BLAS_PRODUCTS = (gemm, syrk, trmm)
"""The products with scales and an addend."""

Monomials = tuple[Monomial, ...]
Score = tuple[int, int]
"""The multiply-adds of an expression, and its overhead: 1 for a transpose, 4 for other
operations."""


def is_matrix_operation(term: NodeView) -> bool:
    """Whether a term is an operation of a matrix expression of one dtype."""
    answers = term.graph.rule_cache.get(is_matrix_operation)
    if answers is None:
        answers = term.graph.rule_cache[is_matrix_operation] = {}
    answer: bool | None = answers.get(term.at)
    if answer is None:  # Types never change: the answer stays valid
        fits = None if term.op is None else _FITS_BY_OP.get(term.op)
        answer = fits is not None and term.dtype in INEXACT and fits(term)
        answers[term.at] = answer
    return answer


def _fits_product(term: NodeView) -> bool:
    same_dtypes = all(x.dtype == term.dtype for x in term.inputs)
    return same_dtypes and (
        same_stack_shape(*term.inputs) or all(len(x.shape) in (1, 2) for x in term.inputs)
    )


def same_stack_shape(first: NodeView, second: NodeView) -> bool:
    """Whether two factors of a product are matrices, or stacks of the same lengths."""
    axes = len(first.shape)
    return axes == len(second.shape) >= 2 and first.shape[:-2] == second.shape[:-2]


def _fits_sum(term: NodeView) -> bool:
    same_types = all(not x.is_scalar and x.same_type(term) for x in term.inputs)
    return same_types and len(term.shape) > 0


def _fits_scale(term: NodeView) -> bool:
    return len(term.shape) > 0 and _scale_operands(term) is not None


def _fits_gemm(term: NodeView) -> bool:
    """Whether a gemm adds nothing by broadcasting, and its result is not a row."""
    ndims = [len(x.shape) for x in term.inputs[:2]]
    fits = same_stack_shape(*term.inputs[:2]) or ndims in ([1, 1], [2, 1])
    return fits and all(x.same_type(term) for x in matrix_operands(term)[2:])


def epilogue_of(term: NodeView) -> Epilogue:
    """Return the epilogue of a gemm, syrk or trmm."""
    epilogue = None if term.op is None else term.op.lowering.epilogue
    assert epilogue is not None, "it is a product of BLAS"
    return epilogue(*term.params)


def _scale_operands(term: NodeView) -> tuple[NodeView, NodeView] | None:
    """Return the scaled array and the scale, a number or an array of no axes."""
    first, second = term.inputs
    for x, scale in ((first, second), (second, first)):
        is_number = scale.is_scalar or (scale.shape == () and scale.dtype == term.dtype)
        if is_number and not x.is_scalar and x.same_type(term):
            return x, scale
    return None


_FITS_BY_OP: dict[Op[...], Callable[[NodeView], bool]] = {
    matmul: _fits_product,
    add: _fits_sum,
    subtract: _fits_sum,
    negative: _fits_sum,
    conj: _fits_sum,
    multiply: _fits_scale,
    permute_dims: lambda term: is_matrix_transpose(*term.params),
    gemm: _fits_gemm,
}


def is_inner(term: NodeView) -> bool:
    """Whether a term is an inner node of the expression that reads it, with no other reader."""
    return term.single_reader and is_matrix_operation(term) and len(term.shape) > 0


def matrix_operands(term: NodeView) -> Sequence[NodeView]:
    """Return the matrices and vectors that an operation of an expression reads."""
    if term.op is multiply:
        scaled = _scale_operands(term)
        assert scaled is not None, "it belongs"
        return scaled[:1]
    if term.op in BLAS_PRODUCTS:
        addend = epilogue_of(term).addend
        return (*term.inputs[:2], *(() if addend is None else (term.inputs[addend],)))
    return term.inputs


class MatrixExpression:
    """The matrix expression at a term: its operations and its leaves."""

    def __init__(self, root: NodeView) -> None:
        self.root = root
        self.operations: list[NodeView] = []
        """Inputs before users; the last is the root."""
        self.operands: dict[int, Sequence[NodeView]] = {}
        """The matrix operands of each operation, by its position."""
        self.leaves: list[NodeView] = []
        """The operands outside the expression."""
        visited: set[int] = set()
        stack: list[tuple[NodeView, bool]] = [(root, False)]
        while stack and len(visited) <= MAX_NODES:
            term, operands_done = stack.pop()
            at = term.at
            if operands_done:
                self.operations.append(term)
            elif at not in visited:
                visited.add(at)
                if not (term is root or is_inner(term)):
                    self.leaves.append(term)
                    continue
                self.operands[at] = operands = matrix_operands(term)
                stack.append((term, True))
                stack += [(operand, False) for operand in operands]
        self.is_complete = not stack
        """Whether it has at most `MAX_NODES` terms; a larger one is not rewritten."""

    @cached_property
    def matrices(self) -> frozenset[int]:
        """The matrices it reads: equal sets mean that nothing has changed."""
        return frozenset([untransposed(leaf).at for leaf in self.leaves])

    @cached_property
    def numbered_terms(self) -> tuple[NodeView, ...]:
        """The terms that its monomials name by number.

        The numbers of equal expressions are equal, independent of their positions in the graph.
        """
        graph = self.root.graph
        numbered = set(self.matrices)
        for term in self.operations:
            if term.op is multiply or term.op in BLAS_PRODUCTS:
                numbered.update(graph.refresh(term.at))
        return tuple([NodeView(graph, at) for at in sorted(numbered)])

    @property
    def has_product(self) -> bool:
        """Whether it has a product."""
        return any(term.op in (matmul, gemm) for term in self.operations)

    def score(self) -> Score:
        """Return the score of the unchanged expression."""
        return _score(self.root.graph, self.operations)

    def monomials(self) -> Monomials | None:
        """Return the monomials of the expression; None if it has no products."""
        return _NormalFormReader(self).monomials()


class _NormalFormReader:
    """Reads an expression: the monomials of its terms.

    A vector is a column; the product of a vector and a matrix is a row.
    """

    def __init__(self, expression: MatrixExpression) -> None:
        self.expression = expression
        self.numbers = {term.at: number for number, term in enumerate(expression.numbered_terms)}
        self.columns: dict[int, Monomials] = {
            leaf.at: self._leaf(leaf) for leaf in expression.leaves
        }
        self.rows: dict[int, Monomials] = {}
        self.depths: dict[int, int] = {}
        self.transposed_count = 0

    def monomials(self) -> Monomials | None:
        """Read from the leaves to the root, without recursion."""
        operations = self.expression.operations
        for term in operations:
            depth = self.depths[term.at] = self._depth(term)
            if depth > MAX_SUM_DEPTH or self.transposed_count > MAX_TRANSPOSED_FACTORS:
                return None
            if term.op is matmul:
                self._multiply(term)
            else:
                self.columns[term.at] = self._read_operation(term)
        monomials = self._column(operations[-1])
        return monomials if any(len(monomial.factors) > 1 for monomial in monomials) else None

    def _depth(self, term: NodeView) -> int:
        """Return the greatest depth of nested sums in the monomials of a term."""
        operands = self.expression.operands[term.at]
        depth = max([self.depths.get(x.at, 0) for x in operands])
        if term.op is not matmul and term.op not in BLAS_PRODUCTS:
            return depth
        first, second = [len(self.columns.get(x.at) or self.rows[x.at]) for x in operands[:2]]
        return depth + (first * second > MAX_EXPANDED_MONOMIALS)

    def _column(self, term: NodeView) -> Monomials:
        if term.at not in self.columns:
            self.columns[term.at] = self._transposed(term, self.rows[term.at], "T")
        return self.columns[term.at]

    def _row(self, term: NodeView) -> Monomials:
        if term.at not in self.rows:
            self.rows[term.at] = self._transposed(term, self.columns[term.at], "T")
        return self.rows[term.at]

    def _transposed(self, term: NodeView, monomials: Monomials, form: str) -> Monomials:
        self.transposed_count += sum(len(monomial.factors) for monomial in monomials)
        return transposed(monomials, form, real=kind_of(term.dtype) != "c")

    def _factor(self, x: NodeView, number: int) -> Monomials:
        """Return an operand of a product: a vector on the left is a row."""
        return self._row(x) if number == 0 and len(x.shape) == 1 else self._column(x)

    def _multiply(self, term: NodeView) -> None:
        x1, x2 = term.inputs
        product = _multiply_sums(self._factor(x1, 0), self._factor(x2, 1))
        makes_row = (len(x1.shape), len(x2.shape)) == (1, 2)
        (self.rows if makes_row else self.columns)[term.at] = product

    def _read_operation(self, term: NodeView) -> Monomials:
        """Return the monomials of a term other than a matmul, from those of its inputs."""
        op, column = term.op, self._column
        if op is gemm:
            return self._gemm(term)
        if op in (add, subtract):
            first, second = (column(operand) for operand in term.inputs)
            return (*first, *(second if op is add else _scale_sum(second, Coefficient(-1))))
        if op is negative:
            return _scale_sum(column(term.inputs[0]), Coefficient(-1))
        if op is multiply:
            scaled = _scale_operands(term)
            assert scaled is not None, "it belongs"
            x, scale = scaled
            return _scale_sum(column(x), Coefficient(1, (self._scalar(scale),)))
        return self._transposed(term, column(term.inputs[0]), "T" if op is permute_dims else "J")

    def _scalar(self, scalar: NodeView, *, conjugated: bool = False) -> Scalar:
        form = "" if kind_of(scalar.dtype) != "c" else "J" if conjugated else "N"
        return self.numbers[scalar.at], form

    def _gemm(self, term: NodeView) -> Monomials:
        inputs, epilogue = term.inputs, epilogue_of(term)
        x1, x2 = (
            self._transposed(x, self._factor(x, number), form)
            for number, (x, form) in enumerate(zip(inputs[:2], term.params[:2], strict=True))
        )
        alpha, beta = (
            tuple(
                sorted(
                    self._scalar(inputs[at], conjugated=at in epilogue.conjugated)
                    for at in range(len(inputs))[positions]
                )
            )
            for positions in (epilogue.alpha, epilogue.beta)
        )
        scale = ONE.times(Coefficient(epilogue.sign, alpha))
        product = _scale_sum(_multiply_sums(x1, x2), scale)
        if epilogue.addend is None:
            return product
        addend = self._column(inputs[epilogue.addend])
        return (*_scale_sum(addend, Coefficient(epilogue.added, beta)), *product)

    def _leaf(self, term: NodeView) -> Monomials:
        rows, columns = term.shape[-2:] if len(term.shape) > 1 else (*term.shape, 1)
        matrix = untransposed(term)
        form = "N" if matrix == term else "T"
        triangular = rows == columns >= MIN_TRMM_SIZE[0] and trmm_triangle(matrix) is not None
        return (
            Monomial(
                ONE, (MatrixFactor((self.numbers[matrix.at], form), rows, columns, (), triangular),)
            ),
        )


def trmm_triangle(term: NodeView) -> Triangle | None:
    """Return the triangle of a triangular matrix for a trmm; None for other matrices."""
    triangle = triangle_of(term)
    return None if triangle is None or triangle.side == Structure.DIAGONAL else triangle


def untransposed(term: NodeView) -> NodeView:
    """Return the matrix below a transpose, or the term itself.

    Other readers of the transpose do not matter, because it is a view.
    """
    return term.inputs[0] if term.op is permute_dims and is_matrix_operation(term) else term


def _scale_sum(monomials: Monomials, scale: Coefficient) -> Monomials:
    return tuple(
        [Monomial(scale.times(monomial.coefficient), monomial.factors) for monomial in monomials]
    )


def _multiply_sums(first: Monomials, second: Monomials) -> Monomials:
    """Expand a product of sums; keep a sum as one factor if there would be too many monomials."""
    while len(first) * len(second) > MAX_EXPANDED_MONOMIALS:
        if len(first) >= len(second):
            first = (Monomial(ONE, (sum_of(first),)),)
        else:
            second = (Monomial(ONE, (sum_of(second),)),)
    return tuple(
        [
            Monomial(left.coefficient.times(right.coefficient), left.factors + right.factors)
            for left in first
            for right in second
        ]
    )


def score(root: NodeView) -> Score:
    """Return the score of a new expression without readers.

    A new syrk or trmm counts, although expressions are not read through it.
    """
    uses = root.graph.uses
    visited = {root.at}
    operations = [root]
    for term in operations:  # the list grows
        for operand in matrix_operands(term):
            if operand.at in visited:
                continue
            is_unread = uses[operand.at] == 0 and (
                is_matrix_operation(operand) or operand.op in BLAS_PRODUCTS
            )
            if is_unread or is_inner(operand):
                visited.add(operand.at)
                operations.append(operand)
    return _score(root.graph, operations)


def _score(graph: RewriteGraph, operations: Sequence[NodeView]) -> Score:
    multiply_adds = sum([graph.multiply_adds(term.at) for term in operations])
    views = sum([term.op is permute_dims for term in operations])
    return multiply_adds, 4 * len(operations) - 3 * views
