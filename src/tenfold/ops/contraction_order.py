"""Contraction order: chooses which two terms of an einsum are multiplied first, and so on.

Takes the labels of each term and of the result, and the length of each label, hands on pairs. A
product of two terms costs the multiply-adds of a loop over all labels that either has. Up to 8
terms all orders are weighed, by dynamic programming over the sets of terms (Pfeifer, Haegeman,
Verstraete 2014, "Faster identification of optimal contraction sequences for tensor networks"). Of
orders with the same cost the one whose products have the fewest elements is taken. With more terms
the search is greedy (Smith and Gray 2018, "opt_einsum", JOSS 3). Terms with the same labels come
first, then the two whose product is smallest compared with its factors. Terms that share no label
come last, the smallest first.

>>> contraction_order(["ij", "jk", "kl"], "il", {"i": 9, "j": 2, "k": 9, "l": 2})
ContractionOrder(pairs=((1, 2), (0, 3)), multiply_adds=72)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import prod
from typing import NamedTuple

MAX_OPTIMAL_TERMS = 8
"""The most terms of which all orders are weighed: 3,280 products, about 2 ms."""


class ContractionOrder(NamedTuple):
    """The pairs of terms to multiply, in order, and their cost."""

    pairs: tuple[tuple[int, int], ...]
    """Terms have numbers from 0, products those that follow; each is a factor once."""
    multiply_adds: int


def contraction_order(
    terms: Sequence[Iterable[str]], output: Iterable[str], lengths: Mapping[str, int]
) -> ContractionOrder:
    """Return the order in which terms are multiplied. Labels of one term alone that the output
    lacks must be summed before. Linear in terms of equal labels, else quadratic.
    """
    network = _Network(terms, output, lengths)
    if len(network.terms) <= MAX_OPTIMAL_TERMS:
        return _optimal_order(network)
    return _GreedySearch(network).order()


class _Network:
    """Terms as sets of labels, each set an int with a bit for each label."""

    def __init__(
        self, terms: Sequence[Iterable[str]], output: Iterable[str], lengths: Mapping[str, int]
    ) -> None:
        self.label_bits = {label: 1 << i for i, label in enumerate(lengths)}
        self.lengths = list(lengths.values())
        self.output = self._label_mask(output)
        self.terms = [self._label_mask(labels) for labels in terms]
        self._sizes: dict[int, int] = {}

    def _label_mask(self, labels: Iterable[str]) -> int:
        return sum(self.label_bits[label] for label in set(labels))

    def size(self, labels: int) -> int:
        """Return how many elements some labels span."""
        if labels not in self._sizes:
            self._sizes[labels] = prod(self.lengths[i] for i in bit_positions(labels))
        return self._sizes[labels]


def bit_positions(bits: int) -> Iterator[int]:
    """Give the positions of the bits that are 1."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def _optimal_order(network: _Network) -> ContractionOrder:
    """Find the cheapest order: that of each set of terms is a product of two smaller sets."""
    count = len(network.terms)
    all_terms = (1 << count) - 1
    labels = [0] * (all_terms + 1)
    for subset in range(1, all_terms + 1):
        labels[subset] = labels[subset & (subset - 1)] | network.terms[next(bit_positions(subset))]
    output_labels = [
        subset_labels & (network.output | labels[all_terms ^ subset])
        for subset, subset_labels in enumerate(labels)
    ]
    best: list[tuple[int, int, int]] = [(0, 0, 0)] * (all_terms + 1)
    for subset in range(1, all_terms + 1):
        if subset & (subset - 1):
            best[subset] = _best_split(network, output_labels, best, subset)
    pairs: list[tuple[int, int]] = []
    _collect_pairs(best, all_terms, count, pairs)
    return ContractionOrder(tuple(pairs), best[all_terms][0])


def _best_split(
    network: _Network, output_labels: list[int], best: list[tuple[int, int, int]], subset: int
) -> tuple[int, int, int]:
    """Return (multiply-adds, elements of products, one part) of the cheapest split of a set."""
    splittable = part = subset & (
        subset - 1
    )  # the first term is in the other part, so no cut comes twice
    candidates = []
    while part:
        cost1, cost2 = best[part], best[subset ^ part]
        cost = network.size(output_labels[part] | output_labels[subset ^ part])
        candidates.append((cost1[0] + cost2[0] + cost, cost1[1] + cost2[1], part))
        part = (part - 1) & splittable
    cost, elements, part = min(candidates)
    return cost, elements + network.size(output_labels[subset]), part


def _collect_pairs(
    best: list[tuple[int, int, int]], subset: int, count: int, pairs: list[tuple[int, int]]
) -> int:
    """Append the products that make a set of terms, and return the number of the last."""
    if not subset & (subset - 1):
        return next(bit_positions(subset))
    part = best[subset][2]
    factors = [_collect_pairs(best, factor, count, pairs) for factor in (subset ^ part, part)]
    pairs.append((min(factors), max(factors)))
    return count + len(pairs) - 1


class _GreedySearch:
    """Greedy search for many terms: the remaining terms, and the terms that own each label."""

    def __init__(self, network: _Network) -> None:
        self.network = network
        self.remaining = dict(enumerate(network.terms))
        self.owners: dict[int, set[int]] = defaultdict(set)
        for term, labels in self.remaining.items():
            self._add_owner(term, labels)
        self.pairs: list[tuple[int, int]] = []
        self.cost = 0

    def _add_owner(self, term: int, labels: int) -> None:
        for label in bit_positions(labels):
            self.owners[label].add(term)

    def order(self) -> ContractionOrder:
        """Multiply until one term remains."""
        self._multiply_same_labels()
        self._multiply_sharing()
        sizes = [(self.network.size(labels), term) for term, labels in self.remaining.items()]
        heapify(sizes)
        while len(sizes) > 1:
            product_term = self._multiply(heappop(sizes)[1], heappop(sizes)[1])
            heappush(sizes, (self.network.size(self.remaining[product_term]), product_term))
        return ContractionOrder(tuple(self.pairs), self.cost)

    def _multiply_same_labels(self) -> None:
        """Multiply terms that have the same labels."""
        groups = defaultdict(list)
        for number, labels in self.remaining.items():
            groups[labels].append(number)
        for terms in groups.values():
            product_term = terms[0]
            for number in terms[1:]:
                product_term = self._multiply(product_term, number)

    def _multiply_sharing(self) -> None:
        """Multiply terms that share a label, the smallest product against its factors first."""
        queue = [
            (self._size_growth(a, b), a, b)
            for a in self.remaining
            for b in self._neighbours(a)
            if a < b
        ]
        heapify(queue)
        while queue:
            _, a, b = heappop(queue)
            if a in self.remaining and b in self.remaining:
                product_term = self._multiply(a, b)
                for neighbour in self._neighbours(product_term):
                    heappush(
                        queue, (self._size_growth(neighbour, product_term), neighbour, product_term)
                    )

    def _neighbours(self, term: int) -> set[int]:
        owners = (self.owners[label] for label in bit_positions(self.remaining[term]))
        return set().union(*owners) - {term}

    def _product(self, a: int, b: int) -> int:
        """Return the labels of a product: those that the output or another term needs."""
        union = self.remaining[a] | self.remaining[b]
        required = self.network.output
        for label in bit_positions(union & ~required):
            if not self.owners[label] <= {a, b}:
                required |= 1 << label
        return union & required

    def _size_growth(self, a: int, b: int) -> int:
        size = self.network.size
        return size(self._product(a, b)) - size(self.remaining[a]) - size(self.remaining[b])

    def _multiply(self, a: int, b: int) -> int:
        labels = self._product(a, b)
        product_term = len(self.network.terms) + len(self.pairs)
        self.pairs.append((min(a, b), max(a, b)))
        self.cost += self.network.size(self.remaining[a] | self.remaining[b])
        for term in (a, b):
            for label in bit_positions(self.remaining.pop(term)):
                self.owners[label].discard(term)
        self.remaining[product_term] = labels
        self._add_owner(product_term, labels)
        return product_term
