"""Normal form: reads the expression of matrices at a node as a matrix polynomial.

Takes a NodeView of a graph that is rewritten, hands on its monomials. Sums and products are
multiplied out, as long as they are few; transposes, conjugates, scales and signs belong to the
factors and coefficients. A factor is known by its node and its form: "N" plain, "T" transposed, "J"
conjugated, "C" both. A vector is a column, and a row where it is "T". Stacks of matrices are read
like one matrix, where all are stacks of the same lengths.

>>> a = (Monomial(ONE, (MatrixFactor((0, "N"), 2, 3), MatrixFactor((1, "T"), 3, 4))),)
>>> [letter[:3] for letter in turned(a, "T", real=True)[0].letters]
[((1, 'N'), 4, 3), ((0, 'T'), 3, 2)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from tenfold.core.op import Op
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, kind_of
from tenfold.linear_algebra.matrix_polynomial import ONE, Coefficient, MatrixFactor, Monomial, sum_of, transposed
from tenfold.linear_algebra.structure_inference import Triangle, is_matrix_transpose, triangle_of
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import gemm
from tenfold.ops.movement import permute_dims
from tenfold.ops.syrk import TRIANGULAR, syrk, trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import RewriteGraph

DTYPES = (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)
MAX_MONOMIALS = 12
"""The words that a product of sums is multiplied out to; beyond, a sum stays one letter."""
MAX_DEPTH = 32
"""The greatest depth of letters that are sums: their nodes are made by recursion. An expression
with deeper ones stays as it was written.
"""
MAX_TERMS = 4096
"""The nodes of an expression that is read."""
MAX_TRANSPOSED_FACTORS = 1 << 17
"""The letters that are transposed or conjugated while an expression is read: a long chain that is
transposed at every step is left as it was written.
"""

BLAS_PRODUCTS = (gemm, syrk, trmm)
"""The products that have their scales and what they are added to."""

Monomials = tuple[Monomial, ...]
Score = tuple[int, int]
"""The multiply-adds of an expression, and what else it takes: four for an operation, of which a
transpose is next to nothing."""


def is_matrix_operation(term: NodeView) -> bool:
    """Whether a term is an operation of an expression of matrices, all of one dtype."""
    known = term.work.notes.get(is_matrix_operation)
    if known is None:
        known = term.work.notes[is_matrix_operation] = {}
    found: bool | None = known.get(term.at)
    if found is None:  # Types never change, so neither does the answer
        fits = None if term.op is None else _FITS_BY_OP.get(term.op)
        found = fits is not None and term.dtype in DTYPES and fits(term)
        known[term.at] = found
    return found


def _fits_product(term: NodeView) -> bool:
    same = all(x.dtype == term.dtype for x in term.inputs)
    return same and (same_stack_shape(*term.inputs) or all(len(x.shape) in (1, 2) for x in term.inputs))


def same_stack_shape(first: NodeView, second: NodeView) -> bool:
    """Whether two factors of a product are matrices, or stacks of the same lengths."""
    axes = len(first.shape)
    return axes == len(second.shape) >= 2 and first.shape[:-2] == second.shape[:-2]


def _fits_sum(term: NodeView) -> bool:
    same = all(not x.is_scalar and x.type == term.type for x in term.inputs)
    return same and len(term.shape) > 0


def _fits_scale(term: NodeView) -> bool:
    return len(term.shape) > 0 and _scale_operands(term) is not None


def _fits_gemm(term: NodeView) -> bool:
    """Whether an update is part of a sum: all that it adds has its Type, so nothing broadcasts."""
    return same_stack_shape(*term.inputs[:2]) and all(x.type == term.type for x in matrix_operands(term)[2:])


def _scale_operands(term: NodeView) -> tuple[NodeView, NodeView] | None:
    """Return what is scaled and the number, or the array without axes, that it is scaled by."""
    one, other = term.inputs
    for x, by in ((one, other), (other, one)):
        number = by.is_scalar or (by.shape == () and by.dtype == term.dtype)
        if number and not x.is_scalar and x.type == term.type:
            return x, by
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
    """Whether a term is part of the expression that reads it, and only that needs it."""
    return term.alone and is_matrix_operation(term) and len(term.shape) > 0


def matrix_operands(term: NodeView) -> Sequence[NodeView]:
    """Return the matrices and vectors that an operation of an expression reads."""
    if term.op is multiply:
        found = _scale_operands(term)
        assert found is not None, "it belongs"
        return found[:1]
    if term.op in BLAS_PRODUCTS:
        *_, scales, added = term.params
        return (*term.inputs[:2], *(term.inputs[2 + scales : 3 + scales] if added else ()))
    return term.inputs


class MatrixExpression:
    """The expression that ends at a term: its operations and its leaves."""

    def __init__(self, root: NodeView) -> None:
        self.root = root
        self.operations: list[NodeView] = []
        """Inputs before users; the last is the root."""
        self.parts: dict[int, Sequence[NodeView]] = {}
        """The terms that each operation reads, by its number."""
        self.leaves: list[NodeView] = []
        """The terms that it reads and that are not part of it."""
        seen: set[int] = set()
        stack: list[tuple[NodeView, bool]] = [(root, False)]
        while stack and len(seen) <= MAX_TERMS:
            term, entered = stack.pop()
            at = term.at
            if entered:
                self.operations.append(term)
            elif at not in seen:
                seen.add(at)
                if not (term is root or is_inner(term)):
                    self.leaves.append(term)
                    continue
                self.parts[at] = read = matrix_operands(term)
                stack.append((term, True))
                stack += [(each, False) for each in read]
        self.is_whole = not stack
        """Whether it is complete: an expression above `LARGEST` terms stays as it was written."""

    @cached_property
    def made_of(self) -> frozenset[int]:
        """The matrices it is made of: as long as they are the same, it means the same."""
        return frozenset([untransposed(leaf).at for leaf in self.leaves])

    @cached_property
    def terms(self) -> tuple[NodeView, ...]:
        """What its words name by number: those of equal expressions are equal, wherever they are
        in a graph.
        """
        work = self.root.work
        named = set(self.made_of)
        for term in self.operations:
            if term.op is multiply or term.op in BLAS_PRODUCTS:
                named.update(work.refresh(term.at))
            elif term.op is conj:
                named.add(term.at)
        return tuple([NodeView(work, at) for at in sorted(named)])

    @property
    def has_product(self) -> bool:
        """Whether there is a product in it that may be read."""
        return any(term.op in (matmul, gemm) for term in self.operations)

    def score(self) -> Score:
        """Return what it takes as it is."""
        return _score(self.root.work, self.operations)

    def words(self) -> Monomials | None:
        """Return the words of the sum that it is; None for one without products."""
        return _NormalFormReader(self).words()


class _NormalFormReader:
    """What has been read of an expression: the words of terms, as columns where they are vectors,
    or as rows where a vector times a matrix has made them so.
    """

    def __init__(self, expression: MatrixExpression) -> None:
        self.expression = expression
        self.numbers = {term.at: number for number, term in enumerate(expression.terms)}
        self.known: dict[int, Monomials] = {leaf.at: self._leaf(leaf) for leaf in expression.leaves}
        self.rows: dict[int, Monomials] = {}
        self.depths: dict[int, int] = {}
        self.turned = 0

    def words(self) -> Monomials | None:
        """Read from the leaves to the root, which needs no recursion."""
        operations = self.expression.operations
        for term in operations:
            depth = self.depths[term.at] = self._depth(term)
            if depth > MAX_DEPTH or self.turned > MAX_TRANSPOSED_FACTORS:
                return None
            if term.op is matmul:
                self._multiply(term)
            else:
                self.known[term.at] = self._other(term)
        words = self._column(operations[-1])
        return words if any(len(word.letters) > 1 for word in words) else None

    def _depth(self, term: NodeView) -> int:
        """How deep sums stand in each other as letters, at most, in the words of a term."""
        read = self.expression.parts[term.at]
        depth = max([self.depths.get(x.at, 0) for x in read])
        if term.op is not matmul and term.op not in BLAS_PRODUCTS:
            return depth
        first, second = [len(self.known.get(x.at) or self.rows[x.at]) for x in read[:2]]
        return depth + (first * second > MAX_MONOMIALS)

    def _column(self, term: NodeView) -> Monomials:
        if term.at not in self.known:
            self.known[term.at] = self._turned(term, self.rows[term.at], "T")
        return self.known[term.at]

    def _row(self, term: NodeView) -> Monomials:
        if term.at not in self.rows:
            self.rows[term.at] = self._turned(term, self.known[term.at], "T")
        return self.rows[term.at]

    def _turned(self, term: NodeView, words: Monomials, form: str) -> Monomials:
        self.turned += sum(len(word.letters) for word in words)
        return transposed(words, form, real=kind_of(term.dtype) != "c")

    def _multiply(self, term: NodeView) -> None:
        x1, x2 = term.inputs
        first = self._row(x1) if len(x1.shape) == 1 else self._column(x1)
        found = _multiply_sums(first, self._column(x2))
        makes_row = (len(x1.shape), len(x2.shape)) == (1, 2)
        (self.rows if makes_row else self.known)[term.at] = found

    def _other(self, term: NodeView) -> Monomials:
        """The words of a term other than a product of two terms, from the words of its inputs."""
        op, column = term.op, self._column
        if op is gemm:
            return self._gemm(term)
        if op in (add, subtract):
            first, second = (column(each) for each in term.inputs)
            return (*first, *(second if op is add else _scale_sum(second, Coefficient(-1))))
        if op is negative:
            return _scale_sum(column(term.inputs[0]), Coefficient(-1))
        if op is multiply:
            found = _scale_operands(term)
            assert found is not None, "it belongs"
            x, by = found
            return _scale_sum(column(x), Coefficient(1, (self.numbers[by.at],)))
        form = "T" if op is permute_dims else "J"
        words = column(term.inputs[0])
        if form == "J" and kind_of(term.dtype) == "c" and self._has_complex_scalar(words):
            return self._leaf(term)
        return self._turned(term, words, form)

    def _gemm(self, term: NodeView) -> Monomials:
        first, second, sign, scales, added = term.params
        inputs = term.inputs
        x1, x2 = (
            self._turned(x, self._column(x), form)
            for x, form in zip(inputs[:2], (first, second), strict=True)
        )
        scalars = tuple([self.numbers[each.at] for each in inputs[2 : 2 + scales]])
        words = _scale_sum(_multiply_sums(x1, x2), ONE.times(Coefficient(sign, scalars)))
        if not added:
            return words
        more = tuple([self.numbers[each.at] for each in inputs[3 + scales :]])
        return (*_scale_sum(self._column(inputs[2 + scales]), Coefficient(added, more)), *words)

    def _leaf(self, term: NodeView) -> Monomials:
        rows, columns = term.shape[-2:] if len(term.shape) > 1 else (*term.shape, 1)
        of = untransposed(term)
        form = "N" if of == term else "T"
        triangular = rows == columns >= TRIANGULAR[0] and trmm_triangle(of) is not None
        return (
            Monomial(
                ONE, (MatrixFactor((self.numbers[of.at], form), rows, columns, (), triangular),)
            ),
        )

    def _has_complex_scalar(self, words: Monomials) -> bool:
        """Whether a number in the words has an imaginary part, maybe: it would be conjugated."""
        names = {name for word in words for name in word.coefficient.scalars}
        inner = {name for word in words for letter in word.letters for name in _scalar_numbers(letter)}
        terms = self.expression.terms
        return any(kind_of(terms[number].dtype) == "c" for number in names | inner)


def trmm_triangle(term: NodeView) -> Triangle | None:
    """Return the triangle that holds a matrix, where a product may do with it."""
    found = triangle_of(term)
    return None if found is None or found.side == "diagonal" else found


def untransposed(term: NodeView) -> NodeView:
    """Return the matrix that a term is the transpose of, though others read that transpose too: it
    is a look at memory that is there.
    """
    return term.inputs[0] if term.op is permute_dims and is_matrix_operation(term) else term


def _scalar_numbers(letter: MatrixFactor) -> Iterator[int]:
    for word in letter.words:
        yield from word.coefficient.scalars
        for each in word.letters:
            yield from _scalar_numbers(each)


def _scale_sum(words: Monomials, by: Coefficient) -> Monomials:
    return tuple([Monomial(by.times(word.coefficient), word.letters) for word in words])


def _multiply_sums(first: Monomials, second: Monomials) -> Monomials:
    """Multiply out, or keep sums that would become too many words as letters."""
    while len(first) * len(second) > MAX_MONOMIALS:
        if len(first) >= len(second):
            first = (Monomial(ONE, (sum_of(first),)),)
        else:
            second = (Monomial(ONE, (sum_of(second),)),)
    return tuple(
        [
            Monomial(one.coefficient.times(other.coefficient), one.letters + other.letters)
            for one in first
            for other in second
        ]
    )


def score(root: NodeView) -> Score:
    """Return what an expression takes that has been made and is not read yet. A syrk or trmm, which
    is never read again, counts where it has been made for this expression.
    """
    uses = root.work.uses
    seen = {root.at}
    operations = [root]
    for term in operations:  # it grows
        for each in matrix_operands(term):
            if each.at in seen:
                continue
            new = uses[each.at] == 0 and (is_matrix_operation(each) or each.op in BLAS_PRODUCTS)
            if new or is_inner(each):
                seen.add(each.at)
                operations.append(each)
    return _score(root.work, operations)


def _score(work: RewriteGraph, operations: Sequence[NodeView]) -> Score:
    multiply_adds = sum([work.multiply_adds(term.at) for term in operations])
    views = sum([term.op is permute_dims for term in operations])
    return multiply_adds, 4 * len(operations) - 3 * views
