"""Contraction order: chooses which two terms of an einsum are multiplied first, and so on.

Takes the labels of each term and of the result, and the length of each label, hands on pairs. A
product of two terms costs the multiply-adds of a loop over all labels that either has. Up to 8
terms all orders are weighed, by dynamic programming over the sets of terms (Pfeifer, Haegeman,
Verstraete 2014, "Faster identification of optimal contraction sequences for tensor networks"). Of
orders with the same cost the one whose products have the fewest elements is taken. With more terms
the search is greedy (Smith and Gray 2018, "opt_einsum", JOSS 3). Terms with the same labels come
first, then the two whose product is smallest compared with its factors. Terms that share no label
come last, the smallest first.

>>> order_of(["ij", "jk", "kl"], "il", {"i": 9, "j": 2, "k": 9, "l": 2})
ContractionOrder(pairs=((1, 2), (0, 3)), multiply_adds=72)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import prod
from typing import NamedTuple

MOST_WEIGHED = 8
"""The most terms of which all orders are weighed: 3,280 products, about 2 ms."""


class ContractionOrder(NamedTuple):
    """Which terms are multiplied, and what that costs."""

    pairs: tuple[tuple[int, int], ...]
    """Terms have numbers from 0, products those that follow; each is a factor once."""
    multiply_adds: int


def order_of(
    terms: Sequence[Iterable[str]], output: Iterable[str], lengths: Mapping[str, int]
) -> ContractionOrder:
    """Return in which order terms are multiplied; what is in none but one term and not in the
    output has been summed before. Linear in terms that have the same labels, else quadratic.
    """
    network = _Network(terms, output, lengths)
    if len(network.terms) <= MOST_WEIGHED:
        return _weighed(network)
    return _Greedy(network).order()


class _Network:
    """Terms as sets of labels, each set an int with a bit for each label."""

    def __init__(
        self, terms: Sequence[Iterable[str]], output: Iterable[str], lengths: Mapping[str, int]
    ) -> None:
        self.bits = {label: 1 << i for i, label in enumerate(lengths)}
        self.lengths = list(lengths.values())
        self.output = self._set(output)
        self.terms = [self._set(labels) for labels in terms]
        self._sizes: dict[int, int] = {}

    def _set(self, labels: Iterable[str]) -> int:
        return sum(self.bits[label] for label in set(labels))

    def size(self, labels: int) -> int:
        """Return how many elements some labels span."""
        if labels not in self._sizes:
            self._sizes[labels] = prod(self.lengths[i] for i in places(labels))
        return self._sizes[labels]


def places(number: int) -> Iterator[int]:
    """Give the positions of the bits that are 1."""
    while number:
        yield (number & -number).bit_length() - 1
        number &= number - 1


def _weighed(network: _Network) -> ContractionOrder:
    """Find the cheapest order: that of each set of terms is a product of two smaller sets."""
    count = len(network.terms)
    everything = (1 << count) - 1
    labels = [0] * (everything + 1)
    for chosen in range(1, everything + 1):
        labels[chosen] = labels[chosen & (chosen - 1)] | network.terms[next(places(chosen))]
    needed = [
        here & (network.output | labels[everything ^ chosen]) for chosen, here in enumerate(labels)
    ]
    best: list[tuple[int, int, int]] = [(0, 0, 0)] * (everything + 1)
    for chosen in range(1, everything + 1):
        if chosen & (chosen - 1):
            best[chosen] = _split(network, needed, best, chosen)
    pairs: list[tuple[int, int]] = []
    _collect(best, everything, count, pairs)
    return ContractionOrder(tuple(pairs), best[everything][0])


def _split(
    network: _Network, needed: list[int], best: list[tuple[int, int, int]], chosen: int
) -> tuple[int, int, int]:
    """Return (multiply-adds, elements of products, one part) of the best way to make a set."""
    rest = part = chosen & (
        chosen - 1
    )  # the first term is in the other part, so no cut comes twice
    found = []
    while part:
        one, other = best[part], best[chosen ^ part]
        cost = network.size(needed[part] | needed[chosen ^ part])
        found.append((one[0] + other[0] + cost, one[1] + other[1], part))
        part = (part - 1) & rest
    cost, elements, part = min(found)
    return cost, elements + network.size(needed[chosen]), part


def _collect(
    best: list[tuple[int, int, int]], chosen: int, count: int, pairs: list[tuple[int, int]]
) -> int:
    """Append the products that make a set of terms, and return the number of the last."""
    if not chosen & (chosen - 1):
        return next(places(chosen))
    part = best[chosen][2]
    made = [_collect(best, each, count, pairs) for each in (chosen ^ part, part)]
    pairs.append((min(made), max(made)))
    return count + len(pairs) - 1


class _Greedy:
    """The state of the search for many terms: the terms that are left, and the owners of labels."""

    def __init__(self, network: _Network) -> None:
        self.network = network
        self.left = dict(enumerate(network.terms))
        self.owners: dict[int, set[int]] = defaultdict(set)
        for number, labels in self.left.items():
            self._own(number, labels)
        self.pairs: list[tuple[int, int]] = []
        self.cost = 0

    def _own(self, number: int, labels: int) -> None:
        for place in places(labels):
            self.owners[place].add(number)

    def order(self) -> ContractionOrder:
        """Multiply until one term is left."""
        self._alike()
        self._sharing()
        sizes = [(self.network.size(labels), number) for number, labels in self.left.items()]
        heapify(sizes)
        while len(sizes) > 1:
            made = self._multiply(heappop(sizes)[1], heappop(sizes)[1])
            heappush(sizes, (self.network.size(self.left[made]), made))
        return ContractionOrder(tuple(self.pairs), self.cost)

    def _alike(self) -> None:
        """Multiply terms that have the same labels."""
        groups = defaultdict(list)
        for number, labels in self.left.items():
            groups[labels].append(number)
        for numbers in groups.values():
            made = numbers[0]
            for number in numbers[1:]:
                made = self._multiply(made, number)

    def _sharing(self) -> None:
        """Multiply terms that share a label, the smallest product against its factors first."""
        waiting = [
            (self._growth(a, b), a, b) for a in self.left for b in self._neighbours(a) if a < b
        ]
        heapify(waiting)
        while waiting:
            _, a, b = heappop(waiting)
            if a in self.left and b in self.left:
                made = self._multiply(a, b)
                for other in self._neighbours(made):
                    heappush(waiting, (self._growth(other, made), other, made))

    def _neighbours(self, number: int) -> set[int]:
        shared = (self.owners[place] for place in places(self.left[number]))
        return set().union(*shared) - {number}

    def _product(self, a: int, b: int) -> int:
        """Return the labels of a product: those that the output or another term needs."""
        both = self.left[a] | self.left[b]
        needed = self.network.output
        for place in places(both & ~needed):
            if not self.owners[place] <= {a, b}:
                needed |= 1 << place
        return both & needed

    def _growth(self, a: int, b: int) -> int:
        size = self.network.size
        return size(self._product(a, b)) - size(self.left[a]) - size(self.left[b])

    def _multiply(self, a: int, b: int) -> int:
        labels = self._product(a, b)
        made = len(self.network.terms) + len(self.pairs)
        self.pairs.append((min(a, b), max(a, b)))
        self.cost += self.network.size(self.left[a] | self.left[b])
        for number in (a, b):
            for place in places(self.left.pop(number)):
                self.owners[place].discard(number)
        self.left[made] = labels
        self._own(made, labels)
        return made
