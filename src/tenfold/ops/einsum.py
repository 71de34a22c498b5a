"""einsum: sums of products written with letters, made of diagonals, sums, products and matrix
products.

Takes text such as "ij,jk->ik" and operands. The text becomes one term a label for each axis of
each operand; terms are multiplied two at a time, the pair whose result is smallest against what it
replaces first; a letter is summed as soon as nobody else needs it.

>>> from tenfold.ops.einsum import labelled
>>> labelled("ij,jk", (2, 2))
([('i', 'j'), ('j', 'k')], ('i', 'k'))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tenfold import settings
from tenfold._native import Array
from tenfold.dtypes import promote, typed
from tenfold.errors import DTypeError, ShapeError
from tenfold.ir.declare import array, derived
from tenfold.ir.shape import Shape, product
from tenfold.ops.arithmetic import multiply
from tenfold.ops.cast import converted
from tenfold.ops.contract import matmul
from tenfold.ops.create import number_of
from tenfold.ops.diagonals import diagonal
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_over
from tenfold.ops.reshaping import reshape
from tenfold.ops.steps import Step, again, steps_between

Labels = tuple[str, ...]
"""A label for each axis: a letter, or "...1" for the last axis of the ellipsis, "...2" before
it."""


def labelled(subscripts: str, ndims: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Return the labels of each operand's axes and of the result's, or raise ShapeError.

    `ndims` are the numbers of axes of the operands. Spaces count for nothing. Without "->" the
    result has the axes of the ellipsis and then the letters that stand once, in the order of their
    code points.
    """
    text = _checked_text(subscripts)
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ShapeError(
            "",
            f"{subscripts!r} has {_counted(len(terms), 'term')} for "
            f"{_counted(len(ndims), 'operand')}",
            remedy="write one term for each operand, with commas between them",
        )
    inputs = [
        _labels_of(term, ndim, position)
        for position, (term, ndim) in enumerate(zip(terms, ndims, strict=True), 1)
    ]
    broadcast = max((sum(map(_is_dots, labels)) for labels in inputs), default=0)
    dots = tuple(f"...{i}" for i in range(broadcast, 0, -1))
    if arrow:
        return inputs, _output_labels(right, inputs, dots)
    counts = Counter(label for labels in inputs for label in labels if not _is_dots(label))
    return inputs, dots + tuple(sorted(label for label, count in counts.items() if count == 1))


def _is_dots(label: str) -> bool:
    return label.startswith("...")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _checked_text(subscripts: object) -> str:
    """Return the text without spaces, or raise the error of its first wrong character."""
    if not isinstance(subscripts, str):
        raise DTypeError(
            "",
            f"subscripts are text, not {type(subscripts).__name__}",
            remedy="as in einsum('ij,jk->ik', x, y)",
        )
    text = subscripts.replace(" ", "")
    if text.count("->") > 1:
        raise ShapeError(
            "",
            f"the arrow '->' stands {text.count('->')} times in {subscripts!r}",
            remedy="write it once at most",
        )
    for character in text.replace("->", "").replace("...", ""):
        if character in "->":
            raise ShapeError(
                "",
                f"{character!r} in {subscripts!r} is no part of an arrow '->'",
                remedy="write '->' before the letters of the output",
            )
        if character == ".":
            raise ShapeError(
                "",
                f"'.' in {subscripts!r} is no part of an ellipsis '...'",
                remedy="write three dots together",
            )
        if character != "," and not (character.isascii() and character.isalpha()):
            raise ShapeError(
                "", f"{character!r} in {subscripts!r} is no letter", remedy="use a to z and A to Z"
            )
    return text


def _labels_of(term: str, ndim: int, position: int) -> Labels:
    """Return the labels of one operand's axes; its ellipsis takes the axes no letter names."""
    before, dots, after = term.partition("...")
    if "..." in after:
        raise ShapeError(
            "",
            f"the ellipsis stands twice in the term {term!r} of operand {position}",
            remedy="write it once at most",
        )
    named = len(before) + len(after)
    if named > ndim or (named < ndim and not dots):
        raise ShapeError(
            "",
            f"the term {term!r} names {_counted(named, 'axis').replace('axiss', 'axes')}, "
            f"operand {position} has {ndim}",
            remedy="name every axis, or let '...' stand for the others",
        )
    return (*before, *(f"...{i}" for i in range(ndim - named, 0, -1)), *after)


def _output_labels(output: str, inputs: Sequence[Labels], dots: Labels) -> Labels:
    """Return the labels of an output that was written, or raise ShapeError."""
    if "," in output:
        raise ShapeError(
            "", f"there is a comma in the output {output!r}", remedy="there is one result"
        )
    before, ellipsis, after = output.partition("...")
    if "..." in after:
        raise ShapeError(
            "",
            f"the ellipsis stands twice in the output {output!r}",
            remedy="write it once at most",
        )
    if dots and not ellipsis:
        raise ShapeError(
            "",
            f"the output {output!r} lacks the ellipsis that the operands have",
            remedy="add '...' to the output, or name and sum these axes",
        )
    known = {label for labels in inputs for label in labels}
    for letter in before + after:
        if letter not in known:
            raise ShapeError(
                "",
                f"the output letter {letter!r} stands in no term of an operand",
                remedy="use letters of the operands",
            )
        if (before + after).count(letter) > 1:
            raise ShapeError(
                "",
                f"the output letter {letter!r} stands more than once in {output!r}",
                remedy="write each letter once there",
            )
    return (*before, *dots, *after)


def _lengths(inputs: Sequence[Labels], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the length of each label; a length of 1 is broadcast, as NumPy does."""
    lengths: dict[str, int] = {}
    owners: dict[str, int] = {}
    for position, (labels, shape) in enumerate(zip(inputs, shapes, strict=True), 1):
        for label, length in zip(labels, shape, strict=True):
            known = lengths.get(label, 1)
            same_operand = owners.get(label) == position
            if known != length and (same_operand or 1 not in (known, length)):
                _refuse_lengths(label, (lengths[label], owners[label]), (length, position))
            if label not in lengths or known == 1:
                lengths[label], owners[label] = length, position
    return lengths


def _refuse_lengths(label: str, first: tuple[int, int], second: tuple[int, int]) -> None:
    what = "an axis of the ellipsis" if _is_dots(label) else f"the letter {label!r}"
    raise ShapeError(
        "",
        f"{what} has length {first[0]} in operand {first[1]} "
        f"and {second[0]} in operand {second[1]}",
        remedy="give equal lengths wherever a letter stands",
    )


class _Term(NamedTuple):
    """An array whose axes have labels, each label once."""

    values: Array
    labels: Labels

    def length(self, labels: Iterable[str]) -> int:
        """Return how many elements some of its axes span."""
        return product(self.values.shape[self.labels.index(label)] for label in labels)

    def shape(self, labels: Iterable[str]) -> Shape:
        """Return the lengths of some of its axes."""
        return tuple(self.values.shape[self.labels.index(label)] for label in labels)

    def ordered(self, labels: Labels) -> Array:
        """Return its array with the axes in another order."""
        if labels == self.labels:
            return self.values
        return permute_dims(self.values, tuple(self.labels.index(label) for label in labels))

    def summed(self, kept: Iterable[str]) -> _Term:
        """Return it summed over every label that is not to be kept."""
        gone = tuple(i for i, label in enumerate(self.labels) if label not in kept)
        if not gone:
            return self
        total = converted(sum_over(self.values, axis=gone), self.values.dtype)
        return _Term(total, tuple(label for label in self.labels if label in kept))


def _prepared(values: Array, labels: Labels, lengths: dict[str, int]) -> _Term:
    """Return an operand with each label once: axes to be broadcast dropped, diagonals taken."""
    real = [i for i, label in enumerate(labels) if values.shape[i] == lengths[label]]
    if len(real) < len(labels):
        values = reshape(values, tuple(values.shape[i] for i in real))
        labels = tuple(labels[i] for i in real)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            values = diagonal(values, axis1=first, axis2=second)
            labels = (*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label)
    return _Term(values, labels)


def _product(a: _Term, b: _Term, kept: set[str]) -> _Term:
    """Return the product of two terms, summed over the shared labels that are not to be kept."""
    stack = tuple(label for label in a.labels if label in b.labels and label in kept)
    inner = tuple(label for label in a.labels if label in b.labels and label not in kept)
    rows = tuple(label for label in a.labels if label not in b.labels)
    columns = tuple(label for label in b.labels if label not in a.labels)
    labels, shape = stack + rows + columns, a.shape(stack + rows) + b.shape(columns)
    if not inner:
        left = _reshaped(a.ordered(stack + rows), a.shape(stack + rows) + (1,) * len(columns))
        right = b.shape(stack) + (1,) * len(rows) + b.shape(columns)
        return _Term(multiply(left, _reshaped(b.ordered(stack + columns), right)), labels)
    length = a.length(inner)
    left = _reshaped(a.ordered(stack + rows + inner), (*a.shape(stack), a.length(rows), length))
    right = (*b.shape(stack), length, b.length(columns))
    made = matmul(left, _reshaped(b.ordered(stack + inner + columns), right))
    return _Term(_reshaped(made, shape), labels)


def _reshaped(values: Array, shape: Shape) -> Array:
    return values if values.shape == shape else reshape(values, shape)


def _contract(terms: list[_Term], output: Labels) -> Array:
    """Multiply all terms and sum over what the output does not name."""
    while True:
        counts = Counter(label for term in terms for label in term.labels)
        shared = {label for label, count in counts.items() if count > 1} | set(output)
        terms = [term.summed(shared) for term in terms]
        if len(terms) == 1:
            return terms[0].ordered(output)
        first, second = _cheapest(terms, counts, output)
        a, b = terms[first], terms[second]
        rest = [term for i, term in enumerate(terms) if i not in (first, second)]
        needed = set(output).union(*(term.labels for term in rest))
        terms = [_product(a, b, needed), *rest]


def _cheapest(terms: Sequence[_Term], counts: Counter[str], output: Labels) -> tuple[int, int]:
    """Return the positions of the pair whose product is smallest against its factors."""

    def growth(pair: tuple[int, int]) -> int:
        a, b = terms[pair[0]], terms[pair[1]]
        rows = [x for x in a.labels if x in output or counts[x] > 1 + (x in b.labels)]
        columns = [x for x in b.labels if x not in a.labels and (x in output or counts[x] > 1)]
        return a.length(rows) * b.length(columns) - a.values.size - b.values.size

    return min(combinations(range(len(terms)), 2), key=growth)


def _common(operands: Sequence[Any]) -> list[Array]:
    """Return the operands as Arrays of their common dtype; Python scalars are weak.

    Under strict_dtypes only these are converted: the products refuse what is mixed.
    """
    arrays = [array(operand) for operand in operands]
    dtype = promote(map(typed, operands))
    for position, given in enumerate(operands):
        if typed(given).weak:  # an int beyond the dtype is refused, where a cast would wrap it
            arrays[position] = array(number_of(given, dtype, "einsum"))
    if not settings.get("strict_dtypes"):
        return [converted(x, dtype) for x in arrays]
    pairs = zip(arrays, operands, strict=True)
    return [converted(x, dtype) if typed(given).weak else x for x, given in pairs]


@derived(
    reference=np.einsum,
    numpy=(np.einsum,),
)
def einsum(subscripts: str, /, *operands: Any, optimize: Any = True) -> Array:
    """Sum of products over the axes that letters name: einsum("ij,jk->ik", x, y) is x @ y.

    `subscripts` has one term of letters for each operand and, after "->", the letters of the
    result. A letter that stands twice in a term takes the diagonal; one that the result lacks is
    summed; "..." stands for axes that broadcast, and so does an axis of length 1. Without "->" the
    result has the axes of "..." and the letters that stand once, sorted.

    dtypes promote first and the result has the common one: integers wrap, bool is "any of and",
    halves are accumulated in float32 in each product. Of more than two operands the pair whose
    product is smallest is multiplied first, whatever NumPy's `optimize` says. Raises ShapeError
    for text or lengths that do not fit.

    >>> import tenfold as tn
    >>> x, y = tn.asarray([[1, 2], [6, 5]]), tn.asarray([[1, 2], [5, 6]])
    >>> tn.einsum("ij,ij->", x, y).item(), tn.einsum("ii->i", x).tolist()
    (65, [1, 5])
    """
    distinct = {id(x): x for x in operands}
    key = _key(subscripts, operands, [*distinct])
    steps = _known.get(key)
    if steps is not None:
        return again(steps, [*distinct.values()])
    result = _made(subscripts, operands)
    if key is not None and (found := steps_between(result, [*distinct.values()])) is not None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = found
    return result


Key = tuple[Hashable, ...]
_known: dict[Key | None, tuple[Step, ...]] = {}
MOST_KNOWN = 512
"""The texts, with the Types of their operands, whose operations are remembered."""


def _key(subscripts: object, operands: Sequence[Any], distinct: list[int]) -> Key | None:
    """What the operations depend on; None where that is more than Types and which are the same."""
    if type(subscripts) is not str or any(type(x) is not Array for x in operands):
        return None
    known = [(distinct.index(id(x)), x.shape, x.dtype, x.device) for x in operands]
    return (subscripts, settings.get("strict_dtypes"), *known)


def _made(subscripts: str, operands: Sequence[Any]) -> Array:
    arrays = _common(operands)
    inputs, output = labelled(subscripts, [x.ndim for x in arrays])
    lengths = _lengths(inputs, [x.shape for x in arrays])
    terms = [
        _prepared(values, labels, lengths) for values, labels in zip(arrays, inputs, strict=True)
    ]
    result = _contract(terms, output)
    if all(result is not x for x in arrays):
        return result
    # An operand that is its own result gets a second name: rebinding one must not rebind both.
    return permute_dims(result, tuple(range(result.ndim)))
