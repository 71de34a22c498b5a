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
from tenfold.linear_algebra.matrix_polynomial import (
    ONE,
    Coefficient,
    MatrixFactor,
    Monomial,
    sum_of,
    turned,
)
from tenfold.linear_algebra.structure_inference import Triangle, swapped, triangle_of
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import gemm
from tenfold.ops.movement import permute_dims
from tenfold.ops.syrk import TRIANGULAR, syrk, trmm
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import RewriteGraph

DTYPES = (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)
MOST_WORDS = 12
"""The words that a product of sums is multiplied out to; beyond, a sum stays one letter."""
DEEPEST = 32
"""The greatest depth of letters that are sums: their nodes are made by recursion. An expression
with deeper ones stays as it was written.
"""
LARGEST = 4096
"""The nodes of an expression that is read."""
MOST_TURNED = 1 << 17
"""The letters that are transposed or conjugated while an expression is read: a long chain that is
transposed at every step is left as it was written.
"""

UPDATES = (gemm, syrk, trmm)
"""The products that have their scales and what they are added to."""

Words = tuple[Monomial, ...]
Score = tuple[int, int]
"""The multiply-adds of an expression, and what else it takes: four for an operation, of which a
transpose is next to nothing."""


def belongs(term: NodeView) -> bool:
    """Whether a term is an operation of an expression of matrices, all of one dtype."""
    known = term.work.notes.get(belongs)
    if known is None:
        known = term.work.notes[belongs] = {}
    found: bool | None = known.get(term.at)
    if found is None:  # Types never change, so neither does the answer
        fits = None if term.op is None else _FITS.get(term.op)
        found = fits is not None and term.dtype in DTYPES and fits(term)
        known[term.at] = found
    return found


def _product(term: NodeView) -> bool:
    same = all(x.dtype == term.dtype for x in term.inputs)
    return same and (alike(*term.inputs) or all(len(x.shape) in (1, 2) for x in term.inputs))


def alike(first: NodeView, second: NodeView) -> bool:
    """Whether two factors of a product are matrices, or stacks of the same lengths."""
    axes = len(first.shape)
    return axes == len(second.shape) >= 2 and first.shape[:-2] == second.shape[:-2]


def _sum(term: NodeView) -> bool:
    same = all(not x.is_scalar and x.type == term.type for x in term.inputs)
    return same and len(term.shape) > 0


def _scale(term: NodeView) -> bool:
    return len(term.shape) > 0 and _scaled(term) is not None


def _update(term: NodeView) -> bool:
    """Whether an update is part of a sum: all that it adds has its Type, so nothing broadcasts."""
    return alike(*term.inputs[:2]) and all(x.type == term.type for x in parts(term)[2:])


def _scaled(term: NodeView) -> tuple[NodeView, NodeView] | None:
    """Return what is scaled and the number, or the array without axes, that it is scaled by."""
    one, other = term.inputs
    for x, by in ((one, other), (other, one)):
        number = by.is_scalar or (by.shape == () and by.dtype == term.dtype)
        if number and not x.is_scalar and x.type == term.type:
            return x, by
    return None


_FITS: dict[Op[...], Callable[[NodeView], bool]] = {
    matmul: _product,
    add: _sum,
    subtract: _sum,
    negative: _sum,
    conj: _sum,
    multiply: _scale,
    permute_dims: lambda term: swapped(*term.params),
    gemm: _update,
}


def joins(term: NodeView) -> bool:
    """Whether a term is part of the expression that reads it, and only that needs it."""
    return term.alone and belongs(term) and len(term.shape) > 0


def parts(term: NodeView) -> Sequence[NodeView]:
    """Return the matrices and vectors that an operation of an expression reads."""
    if term.op is multiply:
        found = _scaled(term)
        assert found is not None, "it belongs"
        return found[:1]
    if term.op in UPDATES:
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
        while stack and len(seen) <= LARGEST:
            term, entered = stack.pop()
            at = term.at
            if entered:
                self.operations.append(term)
            elif at not in seen:
                seen.add(at)
                if not (term is root or joins(term)):
                    self.leaves.append(term)
                    continue
                self.parts[at] = read = parts(term)
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
            if term.op is multiply or term.op in UPDATES:
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

    def words(self) -> Words | None:
        """Return the words of the sum that it is; None for one without products."""
        return _NormalFormReader(self).words()


class _NormalFormReader:
    """What has been read of an expression: the words of terms, as columns where they are vectors,
    or as rows where a vector times a matrix has made them so.
    """

    def __init__(self, expression: MatrixExpression) -> None:
        self.expression = expression
        self.numbers = {term.at: number for number, term in enumerate(expression.terms)}
        self.known: dict[int, Words] = {leaf.at: self._leaf(leaf) for leaf in expression.leaves}
        self.rows: dict[int, Words] = {}
        self.depths: dict[int, int] = {}
        self.turned = 0

    def words(self) -> Words | None:
        """Read from the leaves to the root, which needs no recursion."""
        operations = self.expression.operations
        for term in operations:
            depth = self.depths[term.at] = self._depth(term)
            if depth > DEEPEST or self.turned > MOST_TURNED:
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
        if term.op is not matmul and term.op not in UPDATES:
            return depth
        first, second = [len(self.known.get(x.at) or self.rows[x.at]) for x in read[:2]]
        return depth + (first * second > MOST_WORDS)

    def _column(self, term: NodeView) -> Words:
        if term.at not in self.known:
            self.known[term.at] = self._turned(term, self.rows[term.at], "T")
        return self.known[term.at]

    def _row(self, term: NodeView) -> Words:
        if term.at not in self.rows:
            self.rows[term.at] = self._turned(term, self.known[term.at], "T")
        return self.rows[term.at]

    def _turned(self, term: NodeView, words: Words, form: str) -> Words:
        self.turned += sum(len(word.letters) for word in words)
        return turned(words, form, real=kind_of(term.dtype) != "c")

    def _multiply(self, term: NodeView) -> None:
        x1, x2 = term.inputs
        first = self._row(x1) if len(x1.shape) == 1 else self._column(x1)
        found = _times(first, self._column(x2))
        makes_row = (len(x1.shape), len(x2.shape)) == (1, 2)
        (self.rows if makes_row else self.known)[term.at] = found

    def _other(self, term: NodeView) -> Words:
        """The words of a term other than a product of two terms, from the words of its inputs."""
        op, column = term.op, self._column
        if op is gemm:
            return self._gemm(term)
        if op in (add, subtract):
            first, second = (column(each) for each in term.inputs)
            return (*first, *(second if op is add else _multiplied(second, Coefficient(-1))))
        if op is negative:
            return _multiplied(column(term.inputs[0]), Coefficient(-1))
        if op is multiply:
            found = _scaled(term)
            assert found is not None, "it belongs"
            x, by = found
            return _multiplied(column(x), Coefficient(1, (self.numbers[by.at],)))
        form = "T" if op is permute_dims else "J"
        words = column(term.inputs[0])
        if form == "J" and kind_of(term.dtype) == "c" and self._has_complex_scalar(words):
            return self._leaf(term)
        return self._turned(term, words, form)

    def _gemm(self, term: NodeView) -> Words:
        first, second, sign, scales, added = term.params
        inputs = term.inputs
        x1, x2 = (
            self._turned(x, self._column(x), form)
            for x, form in zip(inputs[:2], (first, second), strict=True)
        )
        scalars = tuple([self.numbers[each.at] for each in inputs[2 : 2 + scales]])
        words = _multiplied(_times(x1, x2), ONE.times(Coefficient(sign, scalars)))
        if not added:
            return words
        more = tuple([self.numbers[each.at] for each in inputs[3 + scales :]])
        return (*_multiplied(self._column(inputs[2 + scales]), Coefficient(added, more)), *words)

    def _leaf(self, term: NodeView) -> Words:
        rows, columns = term.shape[-2:] if len(term.shape) > 1 else (*term.shape, 1)
        of = untransposed(term)
        form = "N" if of == term else "T"
        triangular = rows == columns >= TRIANGULAR[0] and triangle_for_half(of) is not None
        return (
            Monomial(
                ONE, (MatrixFactor((self.numbers[of.at], form), rows, columns, (), triangular),)
            ),
        )

    def _has_complex_scalar(self, words: Words) -> bool:
        """Whether a number in the words has an imaginary part, maybe: it would be conjugated."""
        names = {name for word in words for name in word.coefficient.scalars}
        inner = {name for word in words for letter in word.letters for name in _names(letter)}
        terms = self.expression.terms
        return any(kind_of(terms[number].dtype) == "c" for number in names | inner)


def triangle_for_half(term: NodeView) -> Triangle | None:
    """Return the triangle that holds a matrix, where a product may do with it."""
    found = triangle_of(term)
    return None if found is None or found.side == "diagonal" else found


def untransposed(term: NodeView) -> NodeView:
    """Return the matrix that a term is the transpose of, though others read that transpose too: it
    is a look at memory that is there.
    """
    return term.inputs[0] if term.op is permute_dims and belongs(term) else term


def _names(letter: MatrixFactor) -> Iterator[int]:
    for word in letter.words:
        yield from word.coefficient.scalars
        for each in word.letters:
            yield from _names(each)


def _multiplied(words: Words, by: Coefficient) -> Words:
    return tuple([Monomial(by.times(word.coefficient), word.letters) for word in words])


def _times(first: Words, second: Words) -> Words:
    """Multiply out, or keep sums that would become too many words as letters."""
    while len(first) * len(second) > MOST_WORDS:
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
        for each in parts(term):
            if each.at in seen:
                continue
            new = uses[each.at] == 0 and (belongs(each) or each.op in UPDATES)
            if new or joins(each):
                seen.add(each.at)
                operations.append(each)
    return _score(root.work, operations)


def _score(work: RewriteGraph, operations: Sequence[NodeView]) -> Score:
    multiply_adds = sum([work.multiply_adds(term.at) for term in operations])
    views = sum([term.op is permute_dims for term in operations])
    return multiply_adds, 4 * len(operations) - 3 * views
