"""Symmetric solve: the LAPACK programs that factor symmetric matrices and solve with their factors.

Takes the layouts of operands and the Types of results, hands on a DriverLaunch. A matrix that
Cholesky refuses is factored by Bunch and Kaufman (`codegen/lapack/symmetric_steps.py`), at half the
multiply-adds of Gaussian elimination. A singular or non-finite matrix is factored by the latter, so
that its solutions are those without the promise. `ops/factors.py` documents the layout.

>>> from tenfold.dtypes import FLOAT64
>>> x = StackedLayout((3, 3), (24, 8), FLOAT64)
>>> print(symmetric_factors((x,), (Type((5, 3), FLOAT64, "cpu"),)).kernel)
library call of dpotrf, dsytrf, dsyconv, dgetrf, 2 buffers
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold._native import Type
from tenfold.codegen.lapack.diagonal_steps import FiniteDiagonal, NonzeroDiagonal, PositiveDiagonal
from tenfold.codegen.lapack.driver_call import Branch
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.codegen.lapack.matrix_copies import INT32, Conjugate, Move
from tenfold.codegen.lapack.symmetric_steps import (
    ExchangeRows,
    Interchanges,
    InvertibleBlocks,
    NegativePivot,
    RightSides,
    SolveBlockDiagonal,
)
from tenfold.dtypes import kind_of
from tenfold.runtime.lapack.drivers import DriverLaunch
from tenfold.runtime.lapack.lapack_program import (
    LapackProgram,
    Side,
    StackedLayout,
    squares,
    step_with,
)
from tenfold.runtime.lapack.right_hand_sides import RightHandSides, Solving, substitution


def symmetric_factors(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    """By Cholesky's way if the diagonal lets it be tried and it goes; each matrix as it goes."""
    operand, recipe, units = squares(layouts)
    n, item = recipe.order, recipe.item
    copied = recipe.square(_closest(operand.side), "m1")
    pivots, tried = f"m1+{recipe.number(n * n * item)}", recipe.area(recipe.dtype, 1)
    last = f"m1+{recipe.number(((n + 2) * n - 1) * item)}"
    # NaN passes through a comparison with 0, so LAPACK need not see it
    trial = (
        recipe.call("potrf", "'L n m1 n report", fails=False),
        FiniteDiagonal("m1", recipe.n, recipe.dtype),
        Branch("report", (), (_number(recipe, "one", tried), copied)),
    )
    way = _by_bunch_and_kaufman(recipe, copied, pivots, tried)
    if kind_of(recipe.dtype) != "c":  # what is complex would have to be Hermitian
        way = (
            PositiveDiagonal("m1", recipe.n, recipe.dtype),
            Branch("report", trial, ()),
            _number(recipe, "zero", pivots, n),
            Branch("report", (), way),
        )
    recipe.steps = [
        copied,
        _number(recipe, "zero", tried),
        *way,
        _number(recipe, tried, last),
    ]
    return step_with(recipe, (operand,), types, units, n**3 // 6)


def _closest(side: Side) -> Side:
    """A symmetric matrix, so that its columns are what lies closest."""
    if abs(side.rows) <= abs(side.columns):
        return side
    return side._replace(rows=side.columns, columns=side.rows)


def _number(recipe: LapackProgram, source: str, target: str, times: int = 1) -> Move:
    """The copy of a number, so many times."""
    return recipe.move(
        source, target, (recipe.dtype, recipe.dtype), (1, 0, 0), (times, 0, recipe.item)
    )


def _by_bunch_and_kaufman(
    recipe: LapackProgram, copied: Move, pivots: str, tried: str
) -> tuple[KernelStep, ...]:
    """The routine leaves the exchanges of rows out of its triangle; another one does them, and
    moves what D has beside its diagonal into a row of its own.
    """
    n = recipe.order
    found, work = recipe.area(INT32, n), recipe.work("sytrf", ("L", n, None, n, None, None, -1))
    beside = f"m1+{recipe.number((n + 1) * n * recipe.item)}"
    gauss = (
        copied,
        recipe.call("getrf", f"n n m1 n {found} report", fails=False),
        recipe.numbered(found, pivots, (INT32, recipe.dtype)),
        _number(recipe, "one", tried),
    )
    return (
        recipe.call("sytrf", f"'L n m1 n {found} {work} report", fails=False),
        recipe.call("syconv", f"'L 'C n m1 n {found} {beside} report", fails=False),
        InvertibleBlocks("m1", beside, recipe.n, recipe.dtype),
        Branch("report", (Interchanges(found, beside, recipe.n, pivots, recipe.dtype),), gauss),
    )


def solving_symmetric(recipe: LapackProgram, pivots: str, conjugated: bool) -> Solving:
    """Return what solves with the factors in m0: two substitutions, and what lies between them;
    with the conjugate of a matrix for the conjugates of right sides.
    """
    beside = f"m0+{recipe.number((recipe.order + 1) * recipe.order * recipe.item)}"
    negative = recipe.area(INT32, 1)
    nonzero = NonzeroDiagonal("m0", recipe.n, recipe.dtype)

    def solving(x: RightHandSides) -> Sequence[KernelStep]:
        rows = _rows(recipe, x)
        lower, other = (
            substitution(recipe, x, "m0", "L", unit=True, transposed=each) for each in (False, True)
        )
        cholesky = (
            nonzero,
            substitution(recipe, x, "m0", "L"),
            substitution(recipe, x, "m0", "L", transposed=True),
        )
        gauss = (nonzero, substitution(recipe, x, "m0", "U"))
        symmetric = (
            SolveBlockDiagonal("m0", beside, recipe.n, rows),
            other,
            ExchangeRows(pivots, recipe.n, rows, reverse=True),
        )
        exchanged = (
            ExchangeRows(pivots, recipe.n, rows),
            lower,
            NegativePivot(pivots, negative),
            Branch(negative, gauss, symmetric),
        )
        steps: list[KernelStep] = [Branch(pivots, cholesky, exchanged)]
        if not conjugated:
            return steps
        conjugate = Conjugate(x.at, recipe.number(recipe.order * x.width))
        return [conjugate, *steps, conjugate]

    return solving


def _rows(recipe: LapackProgram, x: RightHandSides) -> RightSides:
    """Right sides as they lie."""
    apart = (x.width, 1) if x.by_rows else (1, recipe.order)
    far, near = (recipe.number(each * recipe.item) for each in apart)
    return RightSides(x.at, far, near, x.columns, x.by_rows, recipe.dtype)
