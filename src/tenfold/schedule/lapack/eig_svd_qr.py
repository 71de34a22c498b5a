"""Eigenvalues, SVD and QR: the choices of the drivers that compute them.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverChoice for each operation in `LAPACK_OPS`. Work lengths without a query are those of
LAPACK's documentation. The drivers are in `native/lapack/qr_svd_eig.cpp`.

>>> x = StackedLayout((3, 2), (16, 8), FLOAT64)
>>> LAPACK_OPS[svd_eig.svdvals]((x,), (Type((2,), FLOAT64, "cpu"),)).routines
('dgesdd',)
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold._native import Type
from tenfold.core.op import Op
from tenfold.dtypes import FLOAT64
from tenfold.ops import eigenvalues, linalg, lu_and_triangular, svd_eig
from tenfold.schedule.lapack.driver_builder import (
    INT32,
    Area,
    DriverBuilder,
    DriverChoice,
    StackedLayout,
    StackedMatrix,
    stack_of,
)
from tenfold.schedule.lapack.right_hand_sides import IN_PLACE, Work

Layouts = tuple[StackedLayout, ...]
Types = tuple[Type, ...]


def _real_values(build: DriverBuilder, type_: Type, length: int) -> tuple[StackedMatrix, Work]:
    """Return the result of real values, and where they are computed."""
    work: Work = IN_PLACE if type_.dtype == FLOAT64 else build.area(length, FLOAT64)
    return build.vector_result(type_), work


def _real_work(build: DriverBuilder, length: int) -> Area:
    """Allocate the real work memory of a complex routine; a real one has none."""
    return build.area(length if build.is_complex else 0, FLOAT64)


def _qr(layouts: Layouts, types: Types, mode: str) -> DriverChoice:
    """QR by Householder reflections."""
    x, build = stack_of(layouts)
    m, n = layouts[0].shape[-2:]
    rank, inner = min(m, n), m if mode == "complete" else min(m, n)
    expand = f"{'un' if build.is_complex else 'or'}gqr"
    factor_work, factor_length = build.work("geqrf", (m, n, None, m, None, None, -1))
    expand_work, expand_length = build.work(expand, (m, inner, rank, None, m, None, None, -1))
    areas = build.area(m * n), build.area(m * inner), build.area(rank)
    sizes = (
        *(x, build.result(types[0]), build.result(types[1]), m, n, inner, *areas),
        *(factor_work, expand_work, factor_length, expand_length),
    )
    cost = rank * rank * 3 * max(m, n)
    return build.choice("qr", ("geqrf", "laset", expand), (x,), sizes, types, cost, columns=n)


def _hermitian(layouts: Layouts, types: Types) -> DriverChoice:
    """Hermitian eigenvalues by divide and conquer, from the lower triangle."""
    x, build = stack_of(layouts)
    n, with_vectors = build.order, len(types) == 2
    values = _real_values(build, types[0], n)
    vectors = build.result(types[1]) if with_vectors else values[0]
    name = "heevd" if build.is_complex else "syevd"
    reals, integers = 1 + 5 * n + 2 * n * n, 3 + 5 * n
    queries = (None, -1) * (2 if build.is_complex else 1)
    job = "V" if with_vectors else "N"
    work, length = build.work(name, (job, "L", n, None, n, None, None, -1, *queries))
    sizes = (
        *(x, values, vectors, n, with_vectors, build.area(n * n), work),
        *(_real_work(build, reals), build.area(integers, INT32), length, reals, integers),
    )
    cost = 9 * n**3 // 2
    return build.choice("hermitian", (name,), (x,), sizes, types, cost, columns=n)


def _svd(layouts: Layouts, types: Types, full_matrices: bool = False) -> DriverChoice:
    """SVD by divide and conquer; without vectors only the singular values."""
    x, build = stack_of(layouts)
    m, n = layouts[0].shape[-2:]
    rank, longest = min(m, n), max(m, n)
    u_columns, vh_rows = (m, n) if full_matrices else (rank, rank)
    job = "N" if len(types) == 1 else "A" if full_matrices else "S"
    values = _real_values(build, types[0 if job == "N" else 1], rank)
    u = vh = values[0]  # unused without vectors
    lengths = 1, 1
    if job != "N":
        u, vh = build.result(types[0]), build.result(types[2])
        lengths = m * u_columns, vh_rows * n
    reals = 7 * rank if job == "N" else rank * max(5 * rank + 7, 2 * longest + 2 * rank + 1)
    extra_work = (None,) * (2 if build.is_complex else 1)
    query = (job, m, n, None, m, None, None, m, None, vh_rows, None, -1, *extra_work)
    work, length = build.work("gesdd", query)
    sizes = (
        *(x, values, u, vh, m, n, u_columns, vh_rows, ord(job)),
        *(build.area(m * n), *map(build.area, lengths), work),
        *(_real_work(build, reals), build.area(8 * rank, INT32), length),
    )
    cost = (2 if job == "N" else 9) * longest * rank * rank
    return build.choice("svd", ("gesdd",), (x,), sizes, types, cost, columns=n)


def _eigenvalues(layouts: Layouts, types: Types) -> DriverChoice:
    """Eigenvalues of finite matrices only: the iteration does not end with NaN."""
    x, build = stack_of(layouts)
    n = build.order
    values, real_work = ((None,), (None,)) if build.is_complex else ((None, None), ())
    query = ("N", "N", n, None, n, *values, None, 1, None, 1, None, -1, *real_work)
    work, length = build.work("geev", query)
    areas = build.area(n * n), build.area(n), build.area(0 if build.is_complex else n)
    sizes = (
        *(x, build.vector_result(types[0]), n, *areas),
        *(work, _real_work(build, 2 * n), length),
    )
    return build.choice("eigenvalues", ("geev",), (x,), sizes, types, 10 * n**3, columns=n)


def _lu(layouts: Layouts, types: Types) -> DriverChoice:
    """LU by Gaussian elimination, also of rectangular matrices."""
    x, build = stack_of(layouts)
    m, n = layouts[0].shape[-2:]
    rank = min(m, n)
    areas = build.area(m * n), build.area(m * rank), build.area(rank, INT32), build.area(m, INT32)
    sizes = (x, *map(build.result, types), m, n, *areas)
    cost = rank * rank * (3 * max(m, n) - rank) // 6
    return build.choice("lu", ("getrf", "laset"), (x,), sizes, types, cost, columns=n)


LAPACK_OPS: dict[Op[...], Callable[..., DriverChoice]] = {
    linalg.qr: _qr,
    linalg.eigh: _hermitian,
    linalg.svd: _svd,
    svd_eig.eigvalsh: _hermitian,
    svd_eig.svdvals: _svd,
    eigenvalues.eigvals: _eigenvalues,
    lu_and_triangular.lu: _lu,
}
