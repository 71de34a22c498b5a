"""Reading: the words of the expression of matrices that ends at a node.

Takes a Term of a graph that is rewritten, hands on its words: sums and products are multiplied out,
as long as they are few; transposes, conjugates, scales and signs are with the letters and
coefficients. A letter is known by its node and its form: "N" as it is, "T" transposed, "J"
conjugated, "C" both. A vector is a column, and a row where it is "T".

>>> a = (Word(ONE, (Letter((0, "N"), 2, 3), Letter((1, "T"), 3, 4))),)
>>> [letter[:3] for letter in turned(a, "T", real=True)[0].letters]
[((1, 'N'), 4, 3), ((0, 'T'), 3, 2)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, kind_of
from tenfold.ir.op import Op
from tenfold.ir.term import Term
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.gemm import gemm
from tenfold.ops.movement import permute_dims
from tenfold.rules.factoring import ONE, Coefficient, Letter, Word, sum_of

DTYPES = (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)
MOST_WORDS = 12
"""The words that a product of sums is multiplied out to; beyond, a sum stays one letter."""
LARGEST = 4096
"""The nodes of an expression that is read."""

Words = tuple[Word, ...]


def belongs(term: Term) -> bool:
    """Whether a term is an operation of an expression of matrices, all of one dtype."""
    known = term.work.notes.setdefault(belongs, {})
    found: bool | None = known.get(term.at)
    if found is None:  # Types never change, so neither does the answer
        fits = None if term.op is None else _FITS.get(term.op)
        found = fits is not None and term.dtype in DTYPES and fits(term)
        known[term.at] = found
    return found


def _product(term: Term) -> bool:
    return all(x.dtype == term.dtype and len(x.shape) in (1, 2) for x in term.inputs)


def _sum(term: Term) -> bool:
    same = all(not x.is_scalar and x.type == term.type for x in term.inputs)
    return same and len(term.shape) in (1, 2)


def _scale(term: Term) -> bool:
    return len(term.shape) in (1, 2) and _scaled(term) is not None


def _scaled(term: Term) -> tuple[Term, Term] | None:
    """Return what is scaled and the number, or the array without axes, that it is scaled by."""
    one, other = term.inputs
    for x, by in ((one, other), (other, one)):
        number = by.is_scalar or (by.shape == () and by.dtype == term.dtype)
        if number and not x.is_scalar and x.type == term.type:
            return x, by
    return None


_FITS: dict[Op[...], Callable[[Term], bool]] = {
    matmul: _product,
    add: _sum,
    subtract: _sum,
    negative: _sum,
    conj: _sum,
    multiply: _scale,
    permute_dims: lambda term: term.params == ((1, 0),),
    gemm: lambda _: True,
}


def joins(term: Term) -> bool:
    """Whether a term is part of the expression that reads it: nobody else needs it."""
    return term.alone and belongs(term) and len(term.shape) > 0


def parts(term: Term) -> Sequence[Term]:
    """Return the matrices and vectors that an operation of an expression reads."""
    if term.op is multiply:
        found = _scaled(term)
        assert found is not None, "it belongs"
        return found[:1]
    if term.op is gemm:
        _, _, _, scales, added = term.params
        return (*term.inputs[:2], *(term.inputs[2 + scales : 3 + scales] if added else ()))
    return term.inputs


def read(root: Term) -> Words | None:
    """Return the words of the expression that ends at a term; None for one without products, and
    for a very large one.
    """
    known: dict[Term, Words] = {}
    stack = [root]
    while stack:
        if len(known) > LARGEST:
            return None
        term = stack[-1]
        if term != root and not joins(term):
            known[stack.pop()] = _leaf(term)
            continue
        missing = [each for each in parts(term) if each not in known]
        if missing:
            stack += missing
            continue
        known[stack.pop()] = _words(term, known)
    words = known[root]
    return words if any(len(word.letters) > 1 for word in words) else None


def leaves(root: Term) -> frozenset[int]:
    """Return what the expression that ends at a term is made of: nodes that are no part of it."""
    found: set[int] = set()
    seen = {root}
    stack = [root]
    while stack:
        term = stack.pop()
        if term != root and not joins(term):
            found.add(_untransposed(term).at)
            continue
        new = [each for each in parts(term) if each not in seen]
        seen.update(new)
        stack += new
    return frozenset(found)


def _leaf(term: Term) -> Words:
    rows, columns = (*term.shape, 1)[:2]
    of = _untransposed(term)
    form = "N" if of == term else "T"
    return (Word(ONE, (Letter((of.at, form), rows, columns),)),)


def _untransposed(term: Term) -> Term:
    """Return the matrix that a term is the transpose of, though others read that transpose too: it
    is a look at memory that is there.
    """
    return term.inputs[0] if term.op is permute_dims and belongs(term) else term


def _words(term: Term, known: dict[Term, Words]) -> Words:
    """The words of an operation, from those of what it reads."""
    real, op = kind_of(term.dtype) != "c", term.op
    if op is matmul:
        x1, x2 = term.inputs
        first, second = known[x1], known[x2]
        if len(x1.shape) == 1:
            first = turned(first, "T", real=real)
        found = _times(first, second)
        return turned(found, "T", real=real) if (len(x1.shape), len(x2.shape)) == (1, 2) else found
    if op is gemm:
        return _gemm_words(term, known, real=real)
    if op in (add, subtract):
        first, second = (known[each] for each in term.inputs)
        return (*first, *(second if op is add else _multiplied(second, Coefficient(-1))))
    if op is negative:
        return _multiplied(known[term.inputs[0]], Coefficient(-1))
    if op is multiply:
        found_scale = _scaled(term)
        assert found_scale is not None, "it belongs"
        x, by = found_scale
        return _multiplied(known[x], Coefficient(1, (by.at,)))
    form = "T" if op is permute_dims else "J"
    words = known[term.inputs[0]]
    if form == "J" and not real and _has_complex_scalar(words, term):
        return _leaf(term)
    return turned(words, form, real=real)


def _gemm_words(term: Term, known: dict[Term, Words], *, real: bool) -> Words:
    first, second, sign, scales, added = term.params
    inputs = term.inputs
    x1, x2 = (
        turned(known[x], form, real=real)
        for x, form in zip(inputs[:2], (first, second), strict=True)
    )
    scalars = tuple(each.at for each in inputs[2 : 2 + scales])
    words = _multiplied(_times(x1, x2), ONE.times(Coefficient(sign, scalars)))
    if not added:
        return words
    more = tuple(each.at for each in inputs[3 + scales :])
    return (*_multiplied(known[inputs[2 + scales]], Coefficient(added, more)), *words)


def _has_complex_scalar(words: Words, term: Term) -> bool:
    """Whether a number in the words has an imaginary part, maybe: it would be conjugated."""
    names = {name for word in words for name in word.coefficient.scalars}
    inner = {name for word in words for letter in word.letters for name in _names(letter)}
    return any(kind_of(Term(term.work, at).dtype) == "c" for at in names | inner)


def _names(letter: Letter) -> Iterator[int]:
    for word in letter.words:
        yield from word.coefficient.scalars
        for each in word.letters:
            yield from _names(each)


def _multiplied(words: Words, by: Coefficient) -> Words:
    return tuple(word._replace(coefficient=by.times(word.coefficient)) for word in words)


def _times(first: Words, second: Words) -> Words:
    """Multiply out, or keep sums that would become too many words as letters."""
    while len(first) * len(second) > MOST_WORDS:
        if len(first) >= len(second):
            first = (Word(ONE, (sum_of(first),)),)
        else:
            second = (Word(ONE, (sum_of(second),)),)
    return tuple(
        Word(one.coefficient.times(other.coefficient), one.letters + other.letters)
        for one in first
        for other in second
    )


_FLAGS = {"N": (0, 0), "T": (1, 0), "J": (0, 1), "C": (1, 1)}
_FORMS = {flags: form for form, flags in _FLAGS.items()}


def turned(words: Words, form: str, *, real: bool) -> Words:
    """Return the words of the transpose, the conjugate, or both."""
    if form == "N":
        return words
    return tuple(
        word._replace(
            letters=tuple(
                _turned_letter(letter, form, real)
                for letter in (word.letters[::-1] if _FLAGS[form][0] else word.letters)
            )
        )
        for word in words
    )


def _turned_letter(letter: Letter, form: str, real: bool) -> Letter:
    rows, columns = letter.rows, letter.columns
    if _FLAGS[form][0]:
        rows, columns = columns, rows
    if letter.words:
        return Letter(None, rows, columns, turned(letter.words, form, real=real))
    assert letter.name is not None, "what is no sum has a name"
    at, before = letter.name
    (one, conjugated), (other, again) = _FLAGS[before], _FLAGS[form]
    return Letter((at, _FORMS[one ^ other, 0 if real else conjugated ^ again]), rows, columns)


def score(root: Term) -> tuple[int, int]:
    """Return the multiply-adds of the expression that ends at a term, and what else it takes:
    operations, where a transpose is next to nothing.
    """
    work = root.work
    multiply_adds = others = 0
    seen = {root}
    stack = [root]
    while stack:
        term = stack.pop()
        op = term.op
        assert isinstance(op, Op), "it belongs"
        if op.multiply_adds is not None:
            types = tuple(each.type for each in term.inputs)
            multiply_adds += op.multiply_adds(types, *term.params)
        others += 1 if op is permute_dims else 4
        for each in parts(term):
            new = work.uses[each.at] == 0 and belongs(each)
            if each not in seen and (new or joins(each)):
                seen.add(each)
                stack.append(each)
    return multiply_adds, others
