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


NOTHING = Cost()


def best(words: tuple[Word, ...], *, halves: bool = True) -> tuple[Cost, tuple[Word, ...]]:
    """Return the least cost that was found, and the words that have it; with `halves` half of a
    product counts where the other half is known.
    """
    return _Search(halves).of(words)


class _Search:
    """One search: what is known of the sums that have been looked at."""

    def __init__(self, halves: bool) -> None:
        self.halves = halves
        self.sums: dict[tuple[Word, ...], list[tuple[Cost, tuple[Word, ...]]]] = {}
        self.words: dict[Word, tuple[Cost, Word]] = {}
        self.left = EFFORT

    def of(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """Return what `best` returns. When enough has been looked at, only the factoring that
        promises most is followed.
        """
        known = self.sums.get(words)
        if known is not None:
            return known[0]
        self.left -= sum(len(word.letters) for word in words)
        found = self._as_it_is(words)
        known = self.sums[words] = [found]
        for other in _factored(words, all_of_them=self.left > 0):
            found = min(found, self.of(other), key=_cost)
            if self.left <= 0:
                break
        known[0] = found
        return found

    def _as_it_is(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """The cost of each word by itself; sums in it are searched."""
        found = [self.words.get(word) or self._one(word) for word in words]
        costs, made = zip(*found, strict=True)
        counted = paired(words, halves=self.halves)
        if len(counted) < len(words):
            cost_of = dict(zip(words, costs, strict=True))
            costs = tuple([cost_of[word] for word, _ in counted])
        multiply_adds, products, sums = map(sum, zip(*costs, strict=True))
        return Cost(multiply_adds, products, sums + len(words) - 1), made

    def _one(self, word: Word) -> tuple[Cost, Word]:
        """The cost of a word, and the word with its sums as they cost least."""
        if len(word.letters) == 1 and not word.letters[0].words:
            return NOTHING, word
        halves = word.halves if self.halves else NONE
        total, letters = Cost(chain(word.lengths, halves)[0], len(word.letters) - 1), word.letters
        for place, letter in enumerate(letters):
            if letter.words:
                cost, inner = self.of(letter.words)
                total, sum_ = total.plus(cost), letter._replace(words=inner)
                letters = (*letters[:place], sum_, *letters[place + 1 :])
        made = word if letters is word.letters else Word(word.coefficient, letters)
        found = self.words[word] = total, made
        return found


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
        lines = [word.letters[:: 1 + 2 * end] for word in words]
        for place, letters in enumerate(lines):
            if len(letters) > 1:
                groups.setdefault(letters[0], []).append(place)
        for group in groups.values():
            for chosen in _selections(group, all_of_them=all_of_them):
                rows = [lines[place] for place in chosen]
                saved = 0
                for count in range(1, _alike(rows) + 1):
                    letter = rows[0][count - 1]
                    saved += letter.rows * letter.columns
                    yield -saved * (len(chosen) - 1), chosen, count, end


def _spliced(word: Word) -> Iterator[Word]:
    """Yield the word with a sum in it that is one word: its letters join the chain."""
    for at, letter in enumerate(word.letters):
        for end in (0, -1) if letter.words else ():
            rows = [inner.letters[:: 1 + 2 * end] for inner in letter.words]
            for count in range(_alike(rows), 0, -1):
                (one,) = _joined(letter.words, tuple(range(len(rows))), count, end)
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
    for place in range(most):
        letter = first[place]
        for row in rows:
            if row[place] != letter:
                return place
    return most


def _shared(coefficients: list[Coefficient]) -> Coefficient:
    """Return the scalars that all coefficients have, and the sign of the first."""
    first = coefficients[0]
    if all(each.scalars == first.scalars for each in coefficients):
        return first
    if not all(each.scalars for each in coefficients):
        return Coefficient(first.sign)
    counts = (Counter(each.scalars) for each in coefficients)
    shared = reduce(lambda one, other: one & other, counts)
    return Coefficient(first.sign, tuple(sorted(shared.elements())))


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
    left = [word for place, word in enumerate(words) if place not in chosen]
    left.insert(chosen[0], one)  # the first of those chosen: all before it are left
    return tuple(left)
