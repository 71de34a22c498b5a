"""Einsum parser: reads the subscripts of an einsum as labels for each operand and the result.

Takes text such as "ij,jk->ik" and the operands' numbers of axes, hands on one label for each axis
of each operand and of the result. Takes these and the operands' shapes, hands on the length of each
label. Each kind of mistake has an error message of its own.

>>> parse_subscripts("ij,jk", (2, 2))
([('i', 'j'), ('j', 'k')], ('i', 'k'))
>>> parse_subscripts("...i,i", (3, 1))
([('...2', '...1', 'i'), ('i',)], ('...2', '...1'))
>>> label_lengths([("i", "j"), ("j",)], [(2, 1), (3,)])
{'i': 2, 'j': 3}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tenfold.core.shape_rules import Shape
from tenfold.errors import DTypeError, ShapeError

Labels = tuple[str, ...]
"""A label for each axis: a letter, or "...1" for the last axis of the ellipsis, "...2" before
it."""


def parse_subscripts(subscripts: str, ndims: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Return the labels of each operand's axes and of the result's, or raise ShapeError.

    `ndims` are the numbers of axes of the operands. Spaces count for nothing. Without "->" the
    result has the axes of the ellipsis and then the letters that stand once, in the order of their
    code points.
    """
    text = _validated_text(subscripts)
    input_text, arrow, output_text = text.partition("->")
    terms = input_text.split(",")
    if len(terms) != len(ndims):
        raise ShapeError(
            "",
            f"{subscripts!r} has {_with_count(len(terms), 'term')} for "
            f"{_with_count(len(ndims), 'operand')}",
            remedy="write one term for each operand, with commas between them",
        )
    inputs = [
        _operand_labels(term, ndim, position)
        for position, (term, ndim) in enumerate(zip(terms, ndims, strict=True), 1)
    ]
    broadcast = max((sum(map(_is_ellipsis_label, labels)) for labels in inputs), default=0)
    dots = tuple(f"...{i}" for i in range(broadcast, 0, -1))
    if arrow:
        return inputs, _output_labels(output_text, inputs, dots)
    counts = Counter(
        label for labels in inputs for label in labels if not _is_ellipsis_label(label)
    )
    return inputs, dots + tuple(sorted(label for label, count in counts.items() if count == 1))


def _is_ellipsis_label(label: str) -> bool:
    return label.startswith("...")


def _with_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _validated_text(subscripts: object) -> str:
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
                f"{character!r} in {subscripts!r} is not part of an arrow '->'",
                remedy="write '->' before the letters of the output",
            )
        if character == ".":
            raise ShapeError(
                "",
                f"'.' in {subscripts!r} is not part of an ellipsis '...'",
                remedy="write three dots together",
            )
        if character != "," and not (character.isascii() and character.isalpha()):
            raise ShapeError(
                "",
                f"{character!r} in {subscripts!r} is not a letter",
                remedy="use a to z and A to Z",
            )
    return text


def _operand_labels(term: str, ndim: int, position: int) -> Labels:
    """Return the labels of one operand's axes; its ellipsis takes the axes no letter names."""
    prefix, dots, suffix = term.partition("...")
    if "..." in suffix:
        raise ShapeError(
            "",
            f"the ellipsis stands twice in the term {term!r} of operand {position}",
            remedy="write it once at most",
        )
    letters = len(prefix) + len(suffix)
    if letters > ndim or (letters < ndim and not dots):
        raise ShapeError(
            "",
            f"the term {term!r} names {_with_count(letters, 'axis').replace('axiss', 'axes')}, "
            f"operand {position} has {ndim}",
            remedy="name every axis, or let '...' stand for the others",
        )
    return (*prefix, *(f"...{i}" for i in range(ndim - letters, 0, -1)), *suffix)


def _output_labels(output: str, inputs: Sequence[Labels], dots: Labels) -> Labels:
    """Return the labels of an explicit output, or raise ShapeError."""
    if "," in output:
        raise ShapeError(
            "", f"there is a comma in the output {output!r}", remedy="there is one result"
        )
    prefix, ellipsis, suffix = output.partition("...")
    if "..." in suffix:
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
    input_labels = {label for labels in inputs for label in labels}
    for letter in prefix + suffix:
        if letter not in input_labels:
            raise ShapeError(
                "",
                f"the output letter {letter!r} stands in no term of an operand",
                remedy="use letters of the operands",
            )
        if (prefix + suffix).count(letter) > 1:
            raise ShapeError(
                "",
                f"the output letter {letter!r} stands more than once in {output!r}",
                remedy="write each letter once there",
            )
    return (*prefix, *dots, *suffix)


def label_lengths(inputs: Sequence[Labels], shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the length of each label; a length of 1 is broadcast, as NumPy does."""
    lengths: dict[str, int] = {}
    owners: dict[str, int] = {}
    for position, (labels, shape) in enumerate(zip(inputs, shapes, strict=True), 1):
        for label, length in zip(labels, shape, strict=True):
            earlier_length = lengths.get(label, 1)
            same_operand = owners.get(label) == position
            if earlier_length != length and (same_operand or 1 not in (earlier_length, length)):
                _refuse_lengths(label, (lengths[label], owners[label]), (length, position))
            if label not in lengths or earlier_length == 1:
                lengths[label], owners[label] = length, position
    return lengths


def _refuse_lengths(label: str, first: tuple[int, int], second: tuple[int, int]) -> None:
    label_name = "an axis of the ellipsis" if _is_ellipsis_label(label) else f"the letter {label!r}"
    raise ShapeError(
        "",
        f"{label_name} has length {first[0]} in operand {first[1]} "
        f"and {second[0]} in operand {second[1]}",
        remedy="give equal lengths wherever a letter stands",
    )
