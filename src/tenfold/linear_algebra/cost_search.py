"""Cost search: factors a sum of matrix products so that it takes the fewest multiply-adds.

Takes monomials: a coefficient and the factors that are multiplied, each with its lengths. Hands on
monomials of the same sum. Monomials with a common beginning or end become one, around a factor that
is a sum itself, where that is cheaper. Small sums are searched as a whole, larger ones until
`EFFORT` factors have been examined, and greedily from there. It knows neither arrays nor graphs.

>>> from tenfold.linear_algebra.matrix_polynomial import ONE
>>> a, b, c = (MatrixFactor((number, "N"), 8, 8) for number in range(3))
>>> cost, words = best((Monomial(ONE, (a, b)), Monomial(ONE, (a, c))))
>>> cost.multiply_adds, [[letter.name for letter in word.letters] for word in words]
(512, [[(0, 'N'), None]])
>>> [[letter.name for letter in word.letters] for word in words[0].letters[1].words]
[[(1, 'N')], [(2, 'N')]]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, pairwise
from typing import NamedTuple

from tenfold.caches import memoized
from tenfold.linear_algebra.chain_order import GENERAL, best_order
from tenfold.linear_algebra.matrix_polynomial import Coefficient, MatrixFactor, Monomial, pair_transposes, sum_of

SEARCH_BUDGET = 100
"""The letters of sums that are looked at before a search follows only what promises most."""
MAX_MONOMIALS = 64
"""The words of a sum that is searched at all."""
MAX_SUBSET_GROUP = 5
"""Of so many words that begin alike every selection is tried; of more only all together."""


class Cost(NamedTuple):
    """What is to be little: the first counts most."""

    multiply_adds: int = 0
    products: int = 0
    sums: int = 0


@memoized("factored sums", 256)
def cheapest_sum(words: tuple[Monomial, ...], *, halves: bool = True) -> tuple[Cost, tuple[Monomial, ...]]:
    """Return the least cost that was found, and the words that have it; with `halves` half of a
    product counts where the other half is known.
    """
    search = _CostSearch(halves)
    cost, found = search.of(search.entered(words))
    return cost, search.written(found)


class _SearchFactor:
    """A letter of a search, and the words of one that is a sum. Equal ones are one object: they
    compare and hash at once, however deep their sums are.
    """

    __slots__ = ("letter", "number", "words")

    def __init__(self, letter: MatrixFactor, words: _SearchSum) -> None:
        self.letter, self.words = letter, words
        self.number = hash((letter.name[0] if letter.name else -len(words),))
        """The same for a letter and its transpose; few others have it, nor sums of it."""


class _SearchMonomial:
    """A word of a search, one object as its letters are."""

    __slots__ = ("coefficient", "cost", "likeness", "lines", "sums")

    def __init__(self, coefficient: Coefficient, letters: tuple[_SearchFactor, ...]) -> None:
        self.coefficient = coefficient
        self.lines = letters, letters[::-1]
        """The letters from the beginning, and from the end."""
        self.sums = [at for at, each in enumerate(letters) if each.words]
        self.likeness = hash((coefficient, sum([each.number for each in letters])))
        """What is the same for a word and its transpose, and for few others."""
        self.cost: Cost | None = None

    @property
    def may_have_halves(self) -> bool:
        """Whether half of a product in it may be known, at first sight."""
        letters = self.lines[0]
        beside = any(one.number == other.number for one, other in pairwise(letters))
        return beside or any(each.letter.triangular for each in letters)

    @property
    def word(self) -> Monomial:
        """The word as it was written, or made of others."""
        return Monomial(self.coefficient, tuple([each.letter for each in self.lines[0]]))


_SearchSum = tuple[_SearchMonomial, ...]


class _CostSearch:
    """One search: what is known of the sums that have been looked at."""

    def __init__(self, halves: bool) -> None:
        self.halves = halves
        self.sums: dict[_SearchSum, tuple[Cost, _SearchSum]] = {}
        self.letters: dict[MatrixFactor | _SearchSum, _SearchFactor] = {}
        self.words: dict[tuple[Coefficient, tuple[_SearchFactor, ...]], _SearchMonomial] = {}
        self.left = SEARCH_BUDGET

    def entered(self, words: Sequence[Monomial]) -> _SearchSum:
        """Return words as those of this search."""
        return tuple(
            [
                self._word(word.coefficient, tuple([self._letter(each) for each in word.letters]))
                for word in words
            ]
        )

    def _letter(self, letter: MatrixFactor) -> _SearchFactor:
        if letter.words:
            return self._sum(self.entered(letter.words))
        return self.letters.get(letter) or self.letters.setdefault(
            letter, _SearchFactor(letter, ())
        )

    def _sum(self, words: _SearchSum) -> _SearchFactor:
        found = self.letters.get(words)
        if found is None:
            letter = sum_of(tuple([each.word for each in words]))
            found = self.letters[words] = _SearchFactor(letter, words)
        return found

    def _word(
        self, coefficient: Coefficient, letters: tuple[_SearchFactor, ...]
    ) -> _SearchMonomial:
        key = coefficient, letters
        return self.words.get(key) or self.words.setdefault(
            key, _SearchMonomial(coefficient, letters)
        )

    def of(self, words: _SearchSum) -> tuple[Cost, _SearchSum]:
        """Return the least cost of a sum, and the words that have it. When enough has been looked
        at, only the factoring that promises most is followed.
        """
        found = self.sums.get(words)
        if found is not None:
            return found
        self.left -= sum([len(word.lines[0]) for word in words])
        found = self._as_it_is(words), words
        for other in self._factored(words, all_of_them=self.left > 0):
            cheaper = self.of(other)
            if cheaper[0] < found[0]:
                found = cheaper
            if self.left <= 0:
                break
        self.sums[words] = found
        return found

    def written(self, words: _SearchSum) -> tuple[Monomial, ...]:
        """Return words that were found as plain ones, with the sums in them as they cost least."""
        return tuple([self._written(word) for word in words])

    def _written(self, word: _SearchMonomial) -> Monomial:
        letters = [
            each.letter._replace(words=self.written(self.of(each.words)[1]))
            if each.words
            else each.letter
            for each in word.lines[0]
        ]
        return Monomial(word.coefficient, tuple(letters))

    def _as_it_is(self, words: _SearchSum) -> Cost:
        """The cost of each word by itself; sums in it are searched."""
        costs = [word.cost or self._one(word) for word in words]
        if self.halves and len({word.likeness for word in words}) < len(words):
            cost_of = {word.word: cost for word, cost in zip(words, costs, strict=True)}
            costs = [cost_of[word] for word, _ in pair_transposes([word.word for word in words])]
        multiply_adds, products, sums = map(sum, zip(*costs, strict=True))
        return Cost(multiply_adds, products, sums + len(words) - 1)

    def _one(self, word: _SearchMonomial) -> Cost:
        """The cost of a word, with its sums as they cost least."""
        multiply_adds = sums = 0
        products = len(word.lines[0]) - 1
        if products:
            plain = word.word
            halves = plain.halves if self.halves and word.may_have_halves else GENERAL
            multiply_adds = best_order(plain.lengths, halves)[0]
        for at in word.sums:
            inner = self.of(word.lines[0][at].words)[0]
            multiply_adds += inner.multiply_adds
            products += inner.products
            sums += inner.sums
        word.cost = Cost(multiply_adds, products, sums)
        return word.cost

    def _factored(self, words: _SearchSum, *, all_of_them: bool) -> Iterator[_SearchSum]:
        """Yield the sums in which some words that begin alike, or end alike, have become one; first
        those which save the products by the largest matrices.
        """
        if 1 < len(words) <= MAX_MONOMIALS:
            for _, chosen, count, end in sorted(_common_ends(words, all_of_them=all_of_them)):
                yield self._joined(words, chosen, count, end)
        for place, word in enumerate(words):
            for at in word.sums:
                for spliced in self._spliced(word, at):
                    yield (*words[:place], spliced, *words[place + 1 :])

    def _spliced(self, word: _SearchMonomial, at: int) -> Iterator[_SearchMonomial]:
        """Yield the word with the sum at a place as one word: its letters join the chain."""
        letters = word.lines[0]
        inner = letters[at].words
        for end in (0, -1):
            for count in range(_common_prefix_length([each.lines[end] for each in inner]), 0, -1):
                (one,) = self._joined(inner, tuple(range(len(inner))), count, end)
                coefficient = word.coefficient.times(one.coefficient)
                yield self._word(coefficient, (*letters[:at], *one.lines[0], *letters[at + 1 :]))

    def _joined(self, words: _SearchSum, chosen: tuple[int, ...], count: int, end: int) -> _SearchSum:
        """Make one word of those chosen: the letters they share, around the sum of what is left."""
        shared = _common_coefficient([words[place].coefficient for place in chosen])
        rests = []
        for place in chosen:
            letters = words[place].lines[0]
            rest = letters[count:] if end == 0 else letters[:-count]
            rests.append(self._word(words[place].coefficient.without(shared), rest))
        inner, letters = self._sum(tuple(rests)), words[chosen[0]].lines[0]
        around = (*letters[:count], inner) if end == 0 else (inner, *letters[-count:])
        one = self._word(shared, around)
        left = [word for place, word in enumerate(words) if place not in chosen]
        left.insert(chosen[0], one)  # the first of those chosen: all before it are left
        return tuple(left)


def _common_ends(
    words: _SearchSum, *, all_of_them: bool
) -> Iterator[tuple[int, tuple[int, ...], int, int]]:
    """Yield what words have in common: (minus the elements of the matrices that are saved, their
    places, the letters, at which end).
    """
    for end in (0, -1):
        groups: dict[_SearchFactor, list[int]] = {}
        lines = [word.lines[end] for word in words]
        for place, letters in enumerate(lines):
            if len(letters) > 1:
                groups.setdefault(letters[0], []).append(place)
        for group in groups.values():
            if len(group) == 1:
                continue
            for chosen in _selections(group, all_of_them=all_of_them):
                rows = [lines[place] for place in chosen]
                saved = 0
                for count in range(1, _common_prefix_length(rows) + 1):
                    letter = rows[0][count - 1].letter
                    saved += letter.rows * letter.columns
                    yield -saved * (len(chosen) - 1), chosen, count, end


def _selections(group: list[int], *, all_of_them: bool) -> Iterator[tuple[int, ...]]:
    yield tuple(group)
    if len(group) <= MAX_SUBSET_GROUP and all_of_them:
        for size in range(len(group) - 1, 1, -1):
            yield from combinations(group, size)


def _common_prefix_length(rows: Sequence[tuple[_SearchFactor, ...]]) -> int:
    """How many letters are the same at the beginning; one of each row is left over."""
    most, first = min(map(len, rows)) - 1, rows[0]
    for place in range(most):
        letter = first[place]
        for row in rows:
            if row[place] is not letter:
                return place
    return most


def _common_coefficient(coefficients: list[Coefficient]) -> Coefficient:
    """Return the scalars that all coefficients have, and the sign of the first."""
    first = coefficients[0]
    if all(each.scalars == first.scalars for each in coefficients):
        return first
    if not all(each.scalars for each in coefficients):
        return Coefficient(first.sign)
    counts = (Counter(each.scalars) for each in coefficients)
    shared = reduce(lambda one, other: one & other, counts)
    return Coefficient(first.sign, tuple(sorted(shared.elements())))
