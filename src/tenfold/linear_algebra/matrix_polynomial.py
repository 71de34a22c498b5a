"""Matrix polynomial: a sum of monomials, each a coefficient times a product of matrix factors.

A sum is a tuple of monomials. A factor is known by its number and its form: "N" plain, "T"
transposed, "J" conjugated, "C" both; or it is a sum of monomials itself. Hands on monomials
transposed and conjugated, and which of them are such of each other. It knows neither arrays nor
graphs.

>>> a = (Monomial(ONE, (MatrixFactor((0, "N"), 2, 3), MatrixFactor((1, "T"), 3, 4))),)
>>> [letter[:3] for letter in turned(a, "T", real=True)[0].letters]
[((1, 'N'), 4, 3), ((0, 'T'), 3, 2)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenfold.linear_algebra.chain_order import GENERAL, ChainStructure

Name = tuple[int, str]
"""A number that nothing else has, and a form, in which alone letters may differ."""


class Coefficient(NamedTuple):
    """What a word is multiplied by: a sign, and scalars by number, in order."""

    sign: int = 1
    scalars: tuple[int, ...] = ()

    def times(self, other: Coefficient) -> Coefficient:
        """Return the product of two."""
        if not other.scalars:
            return Coefficient(self.sign * other.sign, self.scalars)
        scalars = tuple(sorted((*self.scalars, *other.scalars)))
        return Coefficient(self.sign * other.sign, scalars)

    def without(self, other: Coefficient) -> Coefficient:
        """Return what is left when the scalars of another are taken out; all of them are here."""
        if not other.scalars:
            return Coefficient(self.sign * other.sign, self.scalars)
        left = list(self.scalars)
        for scalar in other.scalars:
            left.remove(scalar)
        return Coefficient(self.sign * other.sign, tuple(left))


ONE = Coefficient()
"""What changes nothing."""


class MatrixFactor(NamedTuple):
    """A matrix that is multiplied: one with a name, or the sum of some words."""

    name: Name | None
    rows: int
    columns: int
    words: tuple[Monomial, ...] = ()
    triangular: bool = False
    """Whether a triangle holds it that is large enough to be worth it."""


class Monomial(NamedTuple):
    """A product of letters with a coefficient."""

    coefficient: Coefficient
    letters: tuple[MatrixFactor, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the chain."""
        return (self.letters[0].rows, *[letter.columns for letter in self.letters])

    @property
    def halves(self) -> ChainStructure:
        """Of which products of the chain half is known."""
        letters = self.letters
        triangular = [at for at, letter in enumerate(letters) if letter.triangular]
        mirrored = list(_symmetric_spans(letters))
        if not (triangular or mirrored):
            return GENERAL
        return ChainStructure(frozenset(mirrored), frozenset(triangular))


def sum_of(words: tuple[Monomial, ...]) -> MatrixFactor:
    """Return the letter that is a sum of words; they are of one shape."""
    return MatrixFactor(None, words[0].letters[0].rows, words[0].letters[-1].columns, words)


_FLAGS = {"N": (0, 0), "T": (1, 0), "J": (0, 1), "C": (1, 1)}
_FORMS = {flags: form for form, flags in _FLAGS.items()}


def transposed(words: tuple[Monomial, ...], form: str, *, real: bool) -> tuple[Monomial, ...]:
    """Return the words of the transpose, the conjugate, or both."""
    if form == "N":
        return words
    step = -1 if _FLAGS[form][0] else 1
    return tuple(
        [
            Monomial(
                coefficient, tuple([_transposed_factor(each, form, real) for each in letters[::step]])
            )
            for coefficient, letters in words
        ]
    )


def _transposed_factor(letter: MatrixFactor, form: str, real: bool) -> MatrixFactor:
    rows, columns = letter.rows, letter.columns
    if _FLAGS[form][0]:
        rows, columns = columns, rows
    if letter.words:
        return MatrixFactor(None, rows, columns, transposed(letter.words, form, real=real))
    assert letter.name is not None, "a factor that is not a sum has a name"
    at, before = letter.name
    (one, conjugated), (other, again) = _FLAGS[before], _FLAGS[form]
    form = _FORMS[one ^ other, 0 if real else conjugated ^ again]
    return MatrixFactor((at, form), rows, columns, (), letter.triangular)


def transpose_relation(one: MatrixFactor, other: MatrixFactor) -> str:
    """Return "T" where a letter is the transpose of another, "C" where it is the adjoint; nothing
    where it is neither. Of a letter of real numbers it says "T".

    >>> opposite(MatrixFactor((0, "N"), 2, 3), MatrixFactor((0, "C"), 3, 2))
    'C'
    """
    if not _may_be_transposes(one, other):
        return ""
    forms = "T" if _has_scalars(one.words) else "TC"  # it may have an imaginary part
    for form in forms:
        turned_one = _transposed_factor(one, form, real=False)
        if turned_one == other or (one.words and _equal_sums(turned_one.words, other.words)):
            return form
    return ""


def _equal_sums(one: tuple[Monomial, ...], other: tuple[Monomial, ...]) -> bool:
    """Whether two sums are equal, in whatever order."""
    return Counter(one) == Counter(other)


def _may_be_transposes(one: MatrixFactor, other: MatrixFactor) -> bool:
    """Whether two letters may be transposes of each other, at first sight."""
    if one.name is None or other.name is None:
        return one.name is other.name and len(one.words) == len(other.words)
    return one.name[0] == other.name[0] and one.name != other.name


def _has_scalars(words: tuple[Monomial, ...]) -> bool:
    return any(
        word.coefficient.scalars or any(_has_scalars(letter.words) for letter in word.letters)
        for word in words
    )


def _symmetric_spans(letters: Sequence[MatrixFactor]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a chain, from a place to one beyond, that are a product with its own
    transpose or adjoint.
    """
    for middle in range(1, len(letters)):
        form = transpose_relation(letters[middle - 1], letters[middle])
        first, last = middle - 1, middle
        while form:
            yield first, last + 1
            first, last = first - 1, last + 1
            within = first >= 0 and last < len(letters)
            if not within or transpose_relation(letters[first], letters[last]) != form:
                break


def pair_transposes(words: Sequence[Monomial], *, halves: bool = True) -> list[tuple[Monomial, str]]:
    """Return words, each with the form of itself that is another word of the sum, which is left
    out: "T" for the transpose, "C" for the adjoint, nothing for most, and for all without `halves`.

    >>> a, b = MatrixFactor((0, "N"), 8, 9), MatrixFactor((1, "T"), 9, 8)
    >>> words = (Monomial(ONE, (a, b)), *turned((Monomial(ONE, (a, b)),), "T", real=True))
    >>> [(len(word.letters), form) for word, form in paired(words)]
    [(2, 'T')]
    """
    if not halves or len({_pair_signature(word) for word in words}) == len(words):
        return [(word, "") for word in words]
    forms = dict.fromkeys(range(len(words)), "")
    waiting: dict[_PairSignature, dict[Monomial, list[int]]] = {}
    for place, word in enumerate(words):
        others = waiting.setdefault(_pair_signature(word), {})
        for other, places in others.items():
            if form := _monomial_relation(other, word):
                forms[places.pop(0)] = form
                del forms[place]
                if not places:
                    del others[other]
                break
        else:
            others.setdefault(word, []).append(place)
    return [(words[place], form) for place, form in forms.items()]


_PairSignature = tuple[Coefficient, tuple[int, ...]]


def _pair_signature(word: Monomial) -> _PairSignature:
    """Return what a word has in common with its transpose and its adjoint."""
    numbers = tuple([each.name[0] if each.name else -len(each.words) for each in word.letters])
    return word.coefficient, min(numbers, numbers[::-1])


def _monomial_relation(one: Monomial, other: Monomial) -> str:
    """As opposite, for words of one likeness; nothing of a word that is its own transpose, nor of
    one letter.
    """
    if one == other or len(one.letters) == 1:
        return ""
    forms = {transpose_relation(*pair) for pair in zip(one.letters, other.letters[::-1], strict=True)}
    (form, *others) = forms
    return "" if others or (form == "C" and one.coefficient.scalars) else form
