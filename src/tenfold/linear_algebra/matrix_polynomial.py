"""Matrix polynomial: a sum of monomials, each a coefficient times a product of matrix factors.

A sum is a tuple of monomials. A factor has a number and a form ("N" plain, "T" transposed, "J"
conjugated, "C" both), or is itself a sum of monomials. The module transposes and conjugates
monomials, and finds pairs that are transposes of each other. It uses neither arrays nor graphs.

>>> a = (Monomial(ONE, (MatrixFactor((0, "N"), 2, 3), MatrixFactor((1, "T"), 3, 4))),)
>>> [factor[:3] for factor in transposed(a, "T", real=True)[0].factors]
[((1, 'N'), 4, 3), ((0, 'T'), 3, 2)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenfold.linear_algebra.chain_order import GENERAL, ChainStructure

Name = tuple[int, str]
"""A unique number and a form."""


Scalar = tuple[int, str]
"""A unique number and a form: "N" plain, "J" conjugated, "" of a real scalar."""


class Coefficient(NamedTuple):
    """The coefficient of a monomial: a sign, and its sorted scalars."""

    sign: int = 1
    scalars: tuple[Scalar, ...] = ()

    def times(self, other: Coefficient) -> Coefficient:
        """Return the product of two."""
        if not other.scalars:
            return Coefficient(self.sign * other.sign, self.scalars)
        scalars = tuple(sorted((*self.scalars, *other.scalars)))
        return Coefficient(self.sign * other.sign, scalars)

    def divided_by(self, other: Coefficient) -> Coefficient:
        """Return the quotient; the scalars of `other` are a subset of these."""
        if not other.scalars:
            return Coefficient(self.sign * other.sign, self.scalars)
        quotient = list(self.scalars)
        for scalar in other.scalars:
            quotient.remove(scalar)
        return Coefficient(self.sign * other.sign, tuple(quotient))

    def conjugated(self) -> Coefficient:
        """Return the conjugate."""
        scalars = [(number, {"N": "J", "J": "N"}.get(form, form)) for number, form in self.scalars]
        return Coefficient(self.sign, tuple(sorted(scalars)))


ONE = Coefficient()
"""The coefficient 1."""


class MatrixFactor(NamedTuple):
    """A factor of a matrix product: a named matrix, or a sum of monomials."""

    name: Name | None
    rows: int
    columns: int
    monomials: tuple[Monomial, ...] = ()
    triangular: bool = False
    """Whether it is triangular and large enough for a trmm."""


class Monomial(NamedTuple):
    """A coefficient times a product of factors."""

    coefficient: Coefficient
    factors: tuple[MatrixFactor, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the chain."""
        return (self.factors[0].rows, *[factor.columns for factor in self.factors])

    @property
    def structure(self) -> ChainStructure:
        """The symmetric and triangular products of the chain."""
        factors = self.factors
        triangular = [at for at, factor in enumerate(factors) if factor.triangular]
        symmetric_spans = list(_symmetric_spans(factors))
        if not (triangular or symmetric_spans):
            return GENERAL
        return ChainStructure(frozenset(symmetric_spans), frozenset(triangular))


def sum_of(monomials: tuple[Monomial, ...]) -> MatrixFactor:
    """Return the factor that is a sum of monomials of one shape."""
    return MatrixFactor(
        None, monomials[0].factors[0].rows, monomials[0].factors[-1].columns, monomials
    )


_FLAGS = {"N": (0, 0), "T": (1, 0), "J": (0, 1), "C": (1, 1)}
_FORMS = {flags: form for form, flags in _FLAGS.items()}


def transposed(monomials: tuple[Monomial, ...], form: str, *, real: bool) -> tuple[Monomial, ...]:
    """Return the monomials of the transpose, the conjugate, or both."""
    if form == "N":
        return monomials
    step, conjugates = -1 if _FLAGS[form][0] else 1, _FLAGS[form][1]
    return tuple(
        [
            Monomial(
                coefficient.conjugated() if conjugates else coefficient,
                tuple([_transposed_factor(factor, form, real) for factor in factors[::step]]),
            )
            for coefficient, factors in monomials
        ]
    )


def _transposed_factor(factor: MatrixFactor, form: str, real: bool) -> MatrixFactor:
    rows, columns = factor.rows, factor.columns
    if _FLAGS[form][0]:
        rows, columns = columns, rows
    if factor.monomials:
        return MatrixFactor(None, rows, columns, transposed(factor.monomials, form, real=real))
    assert factor.name is not None, "a factor that is not a sum has a name"
    number, old_form = factor.name
    (transposed_before, conjugated_before), (transposes, conjugates) = (
        _FLAGS[old_form],
        _FLAGS[form],
    )
    form = _FORMS[transposed_before ^ transposes, 0 if real else conjugated_before ^ conjugates]
    return MatrixFactor((number, form), rows, columns, (), factor.triangular)


def transpose_relation(first: MatrixFactor, second: MatrixFactor) -> str:
    """Return "T" if one factor is the transpose of the other, "C" if the adjoint, else "".

    The result for real factors is "T".

    >>> transpose_relation(MatrixFactor((0, "N"), 2, 3), MatrixFactor((0, "C"), 3, 2))
    'C'
    """
    if not _may_be_transposes(first, second):
        return ""
    forms = "T" if _has_scalars(first.monomials) else "TC"  # it may have an imaginary part
    for form in forms:
        transformed = _transposed_factor(first, form, real=False)
        if transformed == second or (
            first.monomials and _equal_sums(transformed.monomials, second.monomials)
        ):
            return form
    return ""


def _equal_sums(first: tuple[Monomial, ...], second: tuple[Monomial, ...]) -> bool:
    """Whether two sums are equal in any order of their monomials."""
    return Counter(first) == Counter(second)


def _may_be_transposes(first: MatrixFactor, second: MatrixFactor) -> bool:
    """Whether two factors may be transposes of each other: a cheap necessary condition."""
    if first.name is None or second.name is None:
        return first.name is second.name and len(first.monomials) == len(second.monomials)
    return first.name[0] == second.name[0] and first.name != second.name


def _has_scalars(monomials: tuple[Monomial, ...]) -> bool:
    return any(
        monomial.coefficient.scalars
        or any(_has_scalars(factor.monomials) for factor in monomial.factors)
        for monomial in monomials
    )


def _symmetric_spans(factors: Sequence[MatrixFactor]) -> Iterator[tuple[int, int]]:
    """Yield the spans [first, last) of a chain that are a product with its own transpose or
    adjoint.
    """
    for middle in range(1, len(factors)):
        form = transpose_relation(factors[middle - 1], factors[middle])
        first, last = middle - 1, middle
        while form:
            yield first, last + 1
            first, last = first - 1, last + 1
            in_bounds = first >= 0 and last < len(factors)
            if not in_bounds or transpose_relation(factors[first], factors[last]) != form:
                break


def pair_transposes(
    monomials: Sequence[Monomial], *, use_structure: bool = True
) -> list[tuple[Monomial, str]]:
    """Merge each monomial with its transpose or adjoint in the same sum.

    Returns pairs of a monomial and the form of the merged one: "T" for the transpose, "C" for the
    adjoint, "" for none. Without `use_structure` every form is "".

    >>> a, b = MatrixFactor((0, "N"), 8, 9), MatrixFactor((1, "T"), 9, 8)
    >>> monomials = (Monomial(ONE, (a, b)), *transposed((Monomial(ONE, (a, b)),), "T", real=True))
    >>> [(len(monomial.factors), form) for monomial, form in pair_transposes(monomials)]
    [(2, 'T')]
    """
    if not use_structure or len({_pair_signature(monomial) for monomial in monomials}) == len(
        monomials
    ):
        return [(monomial, "") for monomial in monomials]
    forms = dict.fromkeys(range(len(monomials)), "")
    unpaired: dict[_PairSignature, dict[Monomial, list[int]]] = {}
    for i, monomial in enumerate(monomials):
        candidates = unpaired.setdefault(_pair_signature(monomial), {})
        for candidate, positions in candidates.items():
            if form := _monomial_relation(candidate, monomial):
                forms[positions.pop(0)] = form
                del forms[i]
                if not positions:
                    del candidates[candidate]
                break
        else:
            candidates.setdefault(monomial, []).append(i)
    return [(monomials[i], form) for i, form in forms.items()]


_PairSignature = tuple[Coefficient, tuple[int, ...]]


def _pair_signature(monomial: Monomial) -> _PairSignature:
    """Return a key that a monomial shares with its transpose and its adjoint."""
    numbers = tuple(
        [factor.name[0] if factor.name else -len(factor.monomials) for factor in monomial.factors]
    )
    return monomial.coefficient, min(numbers, numbers[::-1])


def _monomial_relation(first: Monomial, second: Monomial) -> str:
    """As transpose_relation, for monomials with equal signatures.

    The result is "" for a monomial that is its own transpose, and for a single factor.
    """
    if first == second or len(first.factors) == 1:
        return ""
    forms = {
        transpose_relation(*pair) for pair in zip(first.factors, second.factors[::-1], strict=True)
    }
    (form, *mismatches) = forms
    return "" if mismatches or (form == "C" and first.coefficient.scalars) else form
