"""Structure: what is known of the elements of square matrices, and the rules that infer it.

Input: the structures of operands, as numbers in their Types. Output: those of the results. A Type
carries the structure of its last two axes through evaluation and function boundaries; the elements
are stored whole. Rewrite rules read it (`linear_algebra/structure_inference.py`). A structure of
zeros holds where the elements inside are finite: infinity times 0 is NaN.

>>> transposed_structure(Structure.LOWER) == Structure.UPPER
True
>>> (Structure.LOWER & Structure.DIAGONAL).word
'lower'
>>> closed(Structure.DIAGONAL | Structure.UNIT, is_complex=False).word
'identity'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntFlag
from typing import TYPE_CHECKING

import numpy as np

from tenfold.dtypes import kind_of

if TYPE_CHECKING:
    from tenfold._native import Type


class Structure(IntFlag):
    """Facts about matrices; those of a combination all hold. `&` is what two have in common."""

    GENERAL = 0
    """Nothing is known."""
    LOWER = 1
    """All elements above the diagonal are 0."""
    UPPER = 2
    """All elements below the diagonal are 0."""
    DIAGONAL = 3
    """All elements beside the diagonal are 0."""
    TRIANGULAR = 4
    """It is lower or upper triangular."""
    UNIT = 8
    """All elements on the diagonal are 1."""
    SYMMETRIC = 16
    """x[i, j] equals x[j, i]."""
    HERMITIAN = 32
    """x[i, j] equals conj(x[j, i])."""
    POSITIVE_DEFINITE = 64
    """It is Hermitian, and every pivot is positive, up to rounding."""
    ORTHOGONAL = 128
    """conj(x.T) @ x is the identity, up to rounding."""
    SELECTION = 256
    """Each row has one element that is 1; the others are 0."""

    @property
    def word(self) -> str:
        """The name of the strongest fact; "dense" without one."""
        return next((word for fact, word in _WORDS if fact in self), "dense")


IDENTITY = Structure.DIAGONAL | Structure.UNIT
ZEROS = Structure.DIAGONAL | Structure.TRIANGULAR
"""The facts about elements that are 0."""
SYMMETRIES = Structure.SYMMETRIC | Structure.HERMITIAN
_WORDS = (
    (IDENTITY, "identity"),
    (Structure.SELECTION | Structure.ORTHOGONAL, "permutation"),
    (Structure.DIAGONAL, "diagonal"),
    (Structure.LOWER, "lower"),
    (Structure.UPPER, "upper"),
    (Structure.TRIANGULAR, "triangular"),
    (Structure.POSITIVE_DEFINITE, "positive-definite"),
    (Structure.SYMMETRIC, "symmetric"),
    (Structure.HERMITIAN, "hermitian"),
    (Structure.ORTHOGONAL, "orthogonal"),
    (Structure.SELECTION, "selection"),
)
OF_WORD = {word: fact for fact, word in _WORDS}
"""The facts of the words that params have for them."""


def closed(structure: Structure, *, is_complex: bool) -> Structure:
    """Return a structure with the facts that follow from it."""
    if structure & Structure.DIAGONAL:
        structure |= Structure.TRIANGULAR
    if Structure.DIAGONAL in structure:
        structure |= Structure.SYMMETRIC
    if Structure.POSITIVE_DEFINITE in structure:
        structure |= Structure.HERMITIAN
    if IDENTITY in structure:
        structure |= (
            SYMMETRIES | Structure.POSITIVE_DEFINITE | Structure.ORTHOGONAL | Structure.SELECTION
        )
    if structure & SYMMETRIES and not is_complex:
        structure |= SYMMETRIES
    return structure


def transposed_structure(structure: Structure) -> Structure:
    """Return the structure of the transposed matrices."""
    sides = structure & Structure.DIAGONAL
    if sides in (Structure.LOWER, Structure.UPPER):
        sides ^= Structure.DIAGONAL
    kept = structure & ~(Structure.DIAGONAL | Structure.SELECTION)
    if Structure.SELECTION | Structure.ORTHOGONAL in structure:
        kept |= Structure.SELECTION
    return kept | sides


class Half(Enum):
    """The half that suffices: of a product's symmetric result, or of a triangular operand, in its
    form. Its value: the structure, TRIANGULAR where only the elements tell the side, and the
    position of the operand.

    >>> Half.FIRST_LOWER, bool(Half.NONE)
    ('first lower', False)
    """

    NONE = Structure.GENERAL, -1
    SYMMETRIC = Structure.SYMMETRIC, -1
    HERMITIAN = Structure.HERMITIAN, -1
    FIRST_LOWER = Structure.LOWER, 0
    FIRST_UPPER = Structure.UPPER, 0
    FIRST_TRIANGULAR = Structure.TRIANGULAR, 0
    SECOND_LOWER = Structure.LOWER, 1
    SECOND_UPPER = Structure.UPPER, 1
    SECOND_TRIANGULAR = Structure.TRIANGULAR, 1

    def __init__(self, side: Structure, operand: int) -> None:
        self.side, self.operand = side, operand
        self.is_result = bool(side & SYMMETRIES)

    def __bool__(self) -> bool:
        return self is not Half.NONE

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ") if self else ""

    def __repr__(self) -> str:
        return repr(str(self))

    @property
    def transposed(self) -> Half:
        """The half of the transposed product, whose operands change places."""
        return HALF_OF[transposed_structure(self.side), 1 - self.operand]

    @property
    def note(self) -> str:
        """The description for `explain`."""
        if not self.is_result:
            return f"of x{self.operand + 1} the {self.side.word} triangle"
        if self is Half.SYMMETRIC:
            return "of a symmetric result the lower half, copied to the upper one"
        return "of a Hermitian result the lower half, conjugated to the upper one"


HALF_OF = {(half.side, half.operand): half for half in Half}


def of_shape(structure: Structure, shape: tuple[int, ...]) -> Structure:
    """Return the facts that matrices of this shape have: only of square ones, but a selection."""
    if len(shape) > 1 and shape[-1] == shape[-2]:
        return structure
    return structure & Structure.SELECTION if len(shape) > 1 else Structure.GENERAL


def is_complex(type_: Type) -> bool:
    """Whether elements have an imaginary part."""
    return kind_of(type_.dtype) == "c"


def is_number(type_: Type) -> bool:
    """Whether an operand is one number for all elements."""
    return not type_.shape


def mapped(structure: Structure, *, zero_stays_zero: bool) -> Structure:
    """The structure of a function of each element; that of a complex one may undo conjugates."""
    kept = Structure.SYMMETRIC | (ZEROS if zero_stays_zero else Structure.GENERAL)
    return structure & kept


def keeps_zero(reference: Callable[..., np.ndarray] | None) -> bool:
    """Whether an elementwise function of one operand is 0 at 0, by its NumPy implementation."""
    if reference is None:
        return False
    try:
        with np.errstate(all="ignore"):
            return bool(np.all(np.asarray(reference(np.zeros(1))) == 0))
    except Exception:  # noqa: BLE001  # a user's function may raise: then nothing is known
        return False


def sum_structure(types: Sequence[Type], structures: Sequence[Structure]) -> Structure:
    """The structure of a sum or difference."""
    if any(is_number(type_) for type_ in types):
        return (structures[0] | structures[1]) & Structure.SYMMETRIC
    if types[0].shape[-2:] != types[1].shape[-2:]:
        return Structure.GENERAL
    return structures[0] & structures[1] & (Structure.DIAGONAL | SYMMETRIES)


def positive_sum_structure(types: Sequence[Type], structures: Sequence[Structure]) -> Structure:
    """As sum_structure; the sum of two positive definite matrices is one."""
    definite = structures[0] & structures[1] & Structure.POSITIVE_DEFINITE
    return sum_structure(types, structures) | definite


def scaled_structure(types: Sequence[Type], structures: Sequence[Structure]) -> Structure:
    """The structure of a product, element by element."""
    if not any(is_number(type_) for type_ in types):
        return sum_structure(types, structures)
    at = 0 if is_number(types[1]) else 1
    kept = ZEROS | Structure.SYMMETRIC
    if not is_complex(types[1 - at]):
        kept |= Structure.HERMITIAN
    return structures[at] & kept


def quotient_structure(types: Sequence[Type], structures: Sequence[Structure]) -> Structure:
    """The structure of a quotient, element by element: 0 / 0 is no zero."""
    if is_number(types[1]):
        return scaled_structure(types, structures)
    return sum_structure(types, structures) & Structure.SYMMETRIC


def product_structure(types: Sequence[Type], structures: Sequence[Structure]) -> Structure:
    """The structure of a matrix product."""
    if len(types[0].shape) < 2 or types[0].shape[-2:] != types[1].shape[-2:]:
        return Structure.GENERAL
    common = structures[0] & structures[1]
    found = common & (Structure.DIAGONAL | Structure.ORTHOGONAL | Structure.SELECTION)
    if found & Structure.DIAGONAL:
        found |= common & Structure.UNIT
    return found


def inverse_structure(_: object, structures: Sequence[Structure]) -> Structure:
    """The structure of an inverse."""
    kept = ZEROS | SYMMETRIES | Structure.POSITIVE_DEFINITE | Structure.ORTHOGONAL
    if structures[0] & ZEROS:
        kept |= Structure.UNIT
    if Structure.ORTHOGONAL in structures[0]:
        kept |= Structure.SELECTION
    return structures[0] & kept


def permuted_structure(
    _: object, structures: Sequence[Structure], axes: tuple[int, ...]
) -> Structure:
    """The structure of matrices whose axes are permuted."""
    last = len(axes) - 1
    if axes[-2:] == (last - 1, last):
        return structures[0]
    return (
        transposed_structure(structures[0]) if axes[-2:] == (last, last - 1) else Structure.GENERAL
    )


def cast_structure(
    types: Sequence[Type], structures: Sequence[Structure], dtype: np.dtype
) -> Structure:
    """The structure of elements in another dtype: 0 and 1 are exact in all of them."""
    exact = ZEROS | Structure.SYMMETRIC | Structure.UNIT | Structure.SELECTION
    if kind_of(dtype) == "c" or not is_complex(types[0]):
        exact |= Structure.HERMITIAN
    if Structure.SELECTION in structures[0]:
        exact |= Structure.ORTHOGONAL
    return structures[0] & exact


def same_structure(_: object, structures: Sequence[Structure], *_params: object) -> Structure:
    """The structure of the operand."""
    return structures[0]
