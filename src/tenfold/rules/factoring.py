"""Factoring: a sum of products of matrices with the fewest multiply-adds. No arrays, no graph.

Takes words: a coefficient and the letters that are multiplied, each with its lengths. Hands on
words of the same sum: words that begin or end alike are one word around a letter that is a sum
itself, where that is cheaper. Small sums are searched as a whole, larger ones until `STATES` have
been looked at; then what is best of those is taken.

>>> from tenfold.rules.words import ONE
>>> a, b, c = (Letter((number, "N"), 8, 8) for number in range(3))
>>> cost, words = best((Word(ONE, (a, b)), Word(ONE, (a, c))))
>>> cost.multiply_adds, [[letter.name for letter in word.letters] for word in words]
(512, [[(0, 'N'), None]])
>>> [[letter.name for letter in word.letters] for word in words[0].letters[1].words]
[[(1, 'N')], [(2, 'N')]]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

from tenfold.rules.chains import NONE, chain
from tenfold.rules.words import Coefficient, Letter, Word, paired, sum_of

EFFORT = 150
"""The letters of sums that are looked at before a search follows only what promises most."""
LARGEST = 64
"""The words of a sum that is searched at all."""
SUBSETS = 5
"""Of so many words that begin alike every selection is tried; of more only all together."""


class Cost(NamedTuple):
    """What is to be little: the first counts most."""

    multiply_adds: int = 0
    products: int = 0
    sums: int = 0

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both."""
        return Cost(
            self.multiply_adds + other.multiply_adds,
            self.products + other.products,
            self.sums + other.sums,
        )


def best(words: tuple[Word, ...], *, halves: bool = True) -> tuple[Cost, tuple[Word, ...]]:
    """Return the least cost that was found, and the words that have it; with `halves` half of a
    product counts where the other half is known.
    """
    return _Search(halves).of(words)


class _Search:
    """One search: what is known of the sums that have been looked at."""

    def __init__(self, halves: bool) -> None:
        self.halves = halves
        self.sums: dict[tuple[Word, ...], tuple[Cost, tuple[Word, ...]]] = {}
        self.words: dict[Word, tuple[Cost, Word]] = {}
        self.left = EFFORT

    def of(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """Return what `best` returns. When enough has been looked at, only the factoring that
        promises most is followed.
        """
        if words in self.sums:
            return self.sums[words]
        self.left -= sum(len(word.letters) for word in words)
        found = self._as_it_is(words)
        self.sums[words] = found
        for other in _factored(words, all_of_them=self.left > 0):
            found = min(found, self.of(other), key=_cost)
            if self.left <= 0:
                break
        self.sums[words] = found
        return found

    def _as_it_is(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """The cost of each word by itself; sums in it are searched."""
        total, made = Cost(sums=len(words) - 1), []
        for word in words:
            known = self.words.get(word)
            if known is None:
                known = self.words[word] = self._one(word)
            made.append(known[1])
        for word, _ in paired(words, halves=self.halves):
            total = total.plus(self.words[word][0])
        return total, tuple(made)

    def _one(self, word: Word) -> tuple[Cost, Word]:
        """The cost of a word, and the word with its sums as they cost least."""
        if len(word.letters) == 1 and not word.letters[0].words:
            return Cost(), word
        halves = word.halves if self.halves else NONE
        total, letters = Cost(chain(word.lengths, halves)[0], len(word.letters) - 1), []
        for letter in word.letters:
            if letter.words:
                cost, inner = self.of(letter.words)
                total, letter = total.plus(cost), letter._replace(words=inner)
            letters.append(letter)
        return total, word._replace(letters=tuple(letters))


def _cost(found: tuple[Cost, tuple[Word, ...]]) -> Cost:
    return found[0]


def _factored(words: tuple[Word, ...], *, all_of_them: bool) -> Iterator[tuple[Word, ...]]:
    """Yield the sums in which some words that begin alike, or end alike, have become one; first
    those which save the products by the largest matrices.
    """
    if len(words) <= LARGEST:
        for _, chosen, count, end in sorted(_shared_ends(words, all_of_them=all_of_them)):
            yield _joined(words, chosen, count, end)
    for place, word in enumerate(words):
        for spliced in _spliced(word):
            yield (*words[:place], spliced, *words[place + 1 :])


def _shared_ends(
    words: tuple[Word, ...], *, all_of_them: bool
) -> Iterator[tuple[int, tuple[int, ...], int, int]]:
    """Yield what words have in common: (minus the elements of the matrices that are saved, their
    places, the letters, at which end).
    """
    for end in (0, -1):
        groups: dict[Letter, list[int]] = {}
        for place, word in enumerate(words):
            if len(word.letters) > 1:
                groups.setdefault(word.letters[end], []).append(place)
        for group in groups.values():
            for chosen in _selections(group, all_of_them=all_of_them):
                rows = [words[place].letters[:: 1 + 2 * end] for place in chosen]
                saved = 0
                for count in range(1, _alike(rows) + 1):
                    letter = rows[0][count - 1]
                    saved += letter.rows * letter.columns
                    yield -saved * (len(chosen) - 1), chosen, count, end


def _spliced(word: Word) -> Iterator[Word]:
    """Yield the word with a sum in it that is one word: its letters join the chain."""
    for at, letter in enumerate(word.letters):
        for inner in _factored(letter.words, all_of_them=False) if letter.words else ():
            if len(inner) == 1:
                (one,) = inner
                letters = (*word.letters[:at], *one.letters, *word.letters[at + 1 :])
                yield Word(word.coefficient.times(one.coefficient), letters)


def _selections(group: list[int], *, all_of_them: bool) -> Iterator[tuple[int, ...]]:
    if len(group) > 1:
        yield tuple(group)
    if len(group) <= SUBSETS and all_of_them:
        for size in range(len(group) - 1, 1, -1):
            yield from combinations(group, size)


def _alike(rows: Sequence[tuple[Letter, ...]]) -> int:
    """How many letters are the same at the beginning; one of each row is left over."""
    most, first = min(map(len, rows)) - 1, rows[0]
    return next(
        (i for i in range(most) if any(row[i] != first[i] for row in rows)),
        most,
    )


def _shared(coefficients: list[Coefficient]) -> Coefficient:
    """Return the scalars that all coefficients have, and the sign of the first."""
    if not all(each.scalars for each in coefficients):
        return Coefficient(coefficients[0].sign)
    counts = (Counter(each.scalars) for each in coefficients)
    shared = reduce(lambda one, other: one & other, counts)
    return Coefficient(coefficients[0].sign, tuple(sorted(shared.elements())))


def _joined(
    words: tuple[Word, ...], chosen: tuple[int, ...], count: int, end: int
) -> tuple[Word, ...]:
    """Make one word of those chosen: the letters they share, around the sum of what is left."""
    first = words[chosen[0]]
    shared = _shared([words[place].coefficient for place in chosen])
    rests = []
    for place in chosen:
        coefficient, letters = words[place]
        rest = letters[count:] if end == 0 else letters[:-count]
        rests.append(Word(coefficient.without(shared), rest))
    inner = sum_of(tuple(rests))
    letters = (*first.letters[:count], inner) if end == 0 else (inner, *first.letters[-count:])
    one = Word(shared, letters)
    return tuple(
        one if place == chosen[0] else word
        for place, word in enumerate(words)
        if place == chosen[0] or place not in chosen
    )
