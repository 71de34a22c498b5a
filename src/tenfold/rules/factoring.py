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
from collections.abc import Iterator
from functools import reduce
from itertools import combinations
from typing import NamedTuple

from tenfold.rules.chains import NONE, chain
from tenfold.rules.words import Coefficient, Letter, Word, paired, sum_of

STATES = 96
"""The sums that are looked at for one sum, at most."""
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
        return Cost(*(one + another for one, another in zip(self, other, strict=True)))


def best(words: tuple[Word, ...], *, halves: bool = True) -> tuple[Cost, tuple[Word, ...]]:
    """Return the least cost that was found, and the words that have it; with `halves` half of a
    product counts where the other half is known.
    """
    return _Search(STATES if len(words) <= LARGEST else 0, halves).of(words)


class _Search:
    """One search: what is known of the sums that have been looked at."""

    def __init__(self, states: int, halves: bool) -> None:
        self.halves = halves
        self.known: dict[tuple[Word, ...], tuple[Cost, tuple[Word, ...]]] = {}
        self.left = states

    def of(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """Return what `best` returns."""
        if words in self.known:
            return self.known[words]
        self.left -= 1
        found = self._as_it_is(words)
        self.known[words] = found
        for other in _factored(words) if self.left > 0 else ():
            if self.left <= 0:
                break
            found = min(found, self.of(other), key=lambda each: each[0])
        self.known[words] = found
        return found

    def _as_it_is(self, words: tuple[Word, ...]) -> tuple[Cost, tuple[Word, ...]]:
        """The cost of each word by itself; sums in it are searched."""
        total, made = Cost(sums=len(words) - 1), {}
        for word in words:
            letters = []
            for letter in word.letters:
                if letter.words:
                    cost, inner = self.of(letter.words)
                    total, letter = total.plus(cost), letter._replace(words=inner)
                letters.append(letter)
            made[word] = word._replace(letters=tuple(letters))
        for word, _ in paired(words, halves=self.halves):
            if len(word.letters) > 1:
                multiply_adds = chain(word.lengths, word.halves if self.halves else NONE)[0]
                total = total.plus(Cost(multiply_adds, len(word.letters) - 1))
        return total, tuple(made[word] for word in words)


def _factored(words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """Yield the sums in which some words that begin alike, or end alike, have become one."""
    for end in (0, -1):
        groups: dict[Letter, list[int]] = {}
        for place, word in enumerate(words):
            if len(word.letters) > 1:
                groups.setdefault(word.letters[end], []).append(place)
        for group in groups.values():
            for chosen in _selections(group):
                shortest = _alike([words[place].letters for place in chosen], end)
                for count in range(shortest, 0, -1):
                    yield _joined(words, chosen, count, end)
    for place, word in enumerate(words):
        for spliced in _spliced(word):
            yield (*words[:place], spliced, *words[place + 1 :])


def _spliced(word: Word) -> Iterator[Word]:
    """Yield the word with a sum in it that is one word: its letters join the chain."""
    for at, letter in enumerate(word.letters):
        for inner in _factored(letter.words) if letter.words else ():
            if len(inner) == 1:
                (one,) = inner
                letters = (*word.letters[:at], *one.letters, *word.letters[at + 1 :])
                yield Word(word.coefficient.times(one.coefficient), letters)


def _selections(group: list[int]) -> Iterator[tuple[int, ...]]:
    if len(group) > 1:
        yield tuple(group)
    if len(group) <= SUBSETS:
        for size in range(len(group) - 1, 1, -1):
            yield from combinations(group, size)


def _alike(rows: list[tuple[Letter, ...]], end: int) -> int:
    """How many letters are the same at that end; one of each row is left over."""
    turned = rows if end == 0 else [row[::-1] for row in rows]
    most = min(map(len, rows)) - 1
    first = turned[0]
    return next(
        (i for i in range(most) if any(row[i] != first[i] for row in turned)),
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
