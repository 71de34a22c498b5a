"""Solve rules: replace inverses by solves, and share one factorisation of each matrix.

Input: products with inverses, solves, inverses and determinants. Output: solves. A visible or
assumed triangle (`linear_algebra/structure_inference.py`) makes them substitutions. A solve with a
diagonal matrix is a division by the diagonal; the matrix is not computed, and the division fuses
with its neighbours. All solves and determinants of a matrix share one factorisation: Cholesky for a
positive definite matrix. Class linear-algebra.

>>> print(SOLVE_RULES[0])
inverse-times: matmul(x, y) => ... (linear-algebra)
>>> import tenfold as tn
>>> tn.linalg.solve(tn.diag(tn.asarray([2.0, 4.0])), tn.asarray([1.0, 1.0])).tolist()
[0.5, 0.25]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tenfold._native import Node, Scope
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Op
from tenfold.core.pattern import pattern, variables
from tenfold.core.structure import Structure
from tenfold.dtypes import COMPLEX128, FLOAT32, FLOAT64, kind_of
from tenfold.linear_algebra.structure_inference import (
    TRANSPOSED_FORM,
    apply_form,
    factorization_method,
    is_matrix_transpose,
    is_positive_definite,
    original_operand,
    strip_transposes,
    transpose,
    visible_triangle,
)
from tenfold.ops.cast import astype
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.factors import (
    det_factored,
    factors,
    inv_factored,
    regular_factors,
    solve_factored,
)
from tenfold.ops.linalg import det, inv, solve
from tenfold.ops.lu_and_triangular import solve_diagonal, triangular_solve
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import prod
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes

x, y = variables("x y")


def readers(term: NodeView) -> Iterator[NodeView]:
    """Yield the operations that read a term, newest first."""
    return (NodeView(term.graph, at) for at in term.graph.readers(term.at))


def _only_read_by_products(term: NodeView) -> bool:
    """Whether only products read an inverse, directly or through transposes.

    When they become solves, the inverse is dead.
    """
    if term.live_out:
        return False
    for reader in readers(term):
        if reader.op is matmul:
            if all(operand == term for operand in reader.inputs):
                return False
        elif not (reader.op in (permute_dims, conj) and _only_read_by_products(reader)):
            return False
    return True


_INVERSE_OPS: tuple[Op[...], ...] = (inv, inv_factored, permute_dims, conj)
"""The operations that may be an inverse or a view of one."""


def _match_inverse(term: NodeView) -> tuple[NodeView, str] | None:
    """Return the inverse below the views of a factor, and its form."""
    inverse, form, views = strip_transposes(term)
    if inverse.op not in (inv, inv_factored):
        return None
    if not all(node.single_use or _only_read_by_products(node) for node in (inverse, *views)):
        return None
    return inverse, form


def _solve_with_inverted(
    match: Match, inverse: NodeView, form: str, right_side: NodeView
) -> NodeView | None:
    """Return the solution of equations with the inverted matrix, in a form."""
    (matrix,) = inverse.inputs
    with Scope((ORIGIN, inverse.node.origin)):  # a failure names the line of the inverse
        if inverse.op is inv_factored:
            return _solve_with_factors(match, matrix, right_side, form)
        method = _solve_method(matrix, original_operand(inverse))
        if method != "gauss":
            return _solve_with_factors(
                match, _get_or_make_factors(match, matrix, method), right_side, form
            )
        if matrix.dtype != inverse.dtype:
            matrix = match.make(astype, matrix, params=(inverse.dtype,))
        return match.make(solve, apply_form(match, matrix, form), right_side)


def _if_root_type(match: Match, result: NodeView | None) -> NodeView | None:
    """Return the result if it has the Type of the root."""
    return result if result is not None and result.type == match.root.type else None


def _inverse_times(match: Match) -> NodeView | None:
    """inv(A) @ B solves A X = B."""
    inverse_and_form = _match_inverse(match["x"])
    if inverse_and_form is None:
        return None
    return _if_root_type(match, _solve_with_inverted(match, *inverse_and_form, match["y"]))


def _times_inverse(match: Match) -> NodeView | None:
    """B @ inv(A) is the transpose of the solution of A^T X = B^T."""
    inverse_and_form, left = _match_inverse(match["y"]), match["x"]
    if inverse_and_form is None or _is_read_by_narrower_product(match.root):
        return None
    inverse, form = inverse_and_form
    is_vector = len(left.shape) == 1
    if is_vector and len(inverse.shape) > 2:
        return None
    right_side = left if is_vector else transpose(match, left)
    solution = _solve_with_inverted(match, inverse, TRANSPOSED_FORM[form], right_side)
    if solution is None or is_vector:
        return _if_root_type(match, solution)
    return _if_root_type(match, transpose(match, solution))


def _is_read_by_narrower_product(root: NodeView) -> bool:
    """Whether the only reader of a product is `_product_of_inverse`."""
    reader = next(readers(root)) if root.single_use else None
    is_first = reader is not None and reader.op is matmul and reader.inputs[0] == root
    return reader is not None and is_first and _is_narrower(reader)


def _is_narrower(product: NodeView) -> bool:
    """Whether the right operand of (B @ C) @ D has fewer columns than B has rows."""
    first, second = product.inputs
    if len(first.shape) != 2 or len(second.shape) > 2 or first.dtype != product.dtype:
        return False
    return (second.shape[1] if len(second.shape) > 1 else 1) < first.shape[0]


def _product_of_inverse(match: Match) -> NodeView | None:
    """(B @ inv(A)) @ C with fewer columns in C than rows in B is B @ (the solution of A X = C)."""
    product, second = match["x"], match["y"]
    if not product.single_use or not _is_narrower(match.root):
        return None
    left, right = product.inputs
    inverse_and_form = _match_inverse(right)
    if inverse_and_form is None or len(left.shape) != 2 or len(right.shape) != 2:
        return None
    solution = _solve_with_inverted(match, *inverse_and_form, second)
    if solution is None:
        return None
    return _if_root_type(match, match.make(matmul, left, solution))


_SOLVE_OPS: tuple[Op[...], ...] = (solve, triangular_solve, solve_factored)


def _product_of_solution(match: Match) -> NodeView | None:
    """inv(A) @ B @ C with fewer columns in C than in B: first B @ C."""
    solution, second = match["x"], match["y"]
    if not solution.single_reader:
        return None
    matrix, right_side = solution.inputs
    if len(right_side.shape) < 2 or (len(second.shape) == 1 and len(solution.shape) > 2):
        return None
    if (second.shape[-1] if len(second.shape) > 1 else 1) >= right_side.shape[-1]:
        return None
    product = match.make(matmul, right_side, second)
    if solution.op is solve_factored and kind_of(product.dtype) != kind_of(solution.dtype):
        return None
    return _if_root_type(match, match.again(solution, matrix, product))


def _solve_product(match: Match) -> NodeView | None:
    """(A @ C) X = B of square A and C: solve with A, then with C, without the product.

    Not for many columns of B, nor for a positive definite product.
    """
    matrix, right_side = match["x"], match["y"]
    if (
        matrix.op is not matmul
        or not matrix.single_use
        or is_positive_definite(original_operand(match.root))
    ):
        return None
    first, second = matrix.inputs
    same_square = first.shape == second.shape == matrix.shape and len(matrix.shape) == 2
    if not same_square or not first.dtype == second.dtype == match.root.dtype:
        return None
    if right_side.size * 3 > matrix.size * 2:
        return None
    return _if_root_type(match, match.make(solve, second, match.make(solve, first, right_side)))


def _determinant_of_transposed(match: Match) -> NodeView | None:
    """The determinant of a transpose is that of the matrix."""
    matrix, form, views = strip_transposes(match["x"])
    if not views or form not in "NT":
        return None
    return _if_root_type(match, match.make(det, matrix))


def _structured_solve(match: Match) -> NodeView | None:
    """A substitution, or a product with the transpose of an orthogonal matrix."""
    matrix, right_side = match["x"], match["y"]
    triangle = visible_triangle(match, matrix)
    if triangle is not None:
        params = (triangle.side.word, triangle.unit_diagonal)
        solution = match.make(triangular_solve, triangle.matrix, right_side, params=params)
        return _if_root_type(match, solution)
    inner, form, _ = strip_transposes(matrix)
    if Structure.ORTHOGONAL in inner.structure:
        adjoint = apply_form(match, inner, _ADJOINT[form])
        return _if_root_type(match, match.make(matmul, adjoint, right_side))
    return None


_ADJOINT = {"N": "C", "C": "N", "T": "J", "J": "T"}


def _structured_inverse(match: Match) -> NodeView | None:
    """The adjoint of an orthogonal matrix; a substitution for the identity."""
    matrix, root = match["x"], match.root
    inner, form, _ = strip_transposes(matrix)
    if Structure.ORTHOGONAL in inner.structure:
        return _if_root_type(match, apply_form(match, inner, _ADJOINT[form]))
    triangle = visible_triangle(match, matrix)
    if triangle is None or _only_read_by_products(root):
        return None  # the products become substitutions
    order = root.shape[-1]
    identity = match.make(eye, params=(order, order, 0, root.dtype, root.type.device))
    params = (triangle.side.word, triangle.unit_diagonal)
    return _if_root_type(
        match, match.make(triangular_solve, triangle.matrix, identity, params=params)
    )


def _structured_determinant(match: Match) -> NodeView | None:
    """The product of a triangle's diagonal."""
    triangle = visible_triangle(match, match["x"])
    if triangle is None or kind_of(triangle.matrix.dtype) not in "fc":
        return None
    matrix = triangle.matrix
    row_axis = len(matrix.shape) - 2
    diagonal_term = match.make(diagonal, matrix, params=(0, row_axis, row_axis + 1))
    return _if_root_type(match, match.make(prod, diagonal_term, params=((row_axis,), False, None)))


def _factoring_operations(term: NodeView) -> Iterator[NodeView]:
    """Yield the operations that factor a matrix, directly or through transposes."""
    for reader in readers(term):
        if reader.op in (solve, inv, det, factors) and reader.inputs[0] == term:
            yield reader
        elif reader.op in (permute_dims, conj) and strip_transposes(reader).views:
            yield from (
                operation for operation in _factoring_operations(reader) if operation.op is solve
            )


def _is_shared(matrix: NodeView) -> bool:
    """Whether several operations factor a matrix."""
    return next(islice(_factoring_operations(matrix), 1, None), None) is not None


def _get_or_make_factors(match: Match, matrix: NodeView, method: str) -> NodeView:
    """Return existing factors of a matrix, or new ones; Cholesky's serve for every method."""
    for reader in readers(matrix):
        if reader.op is factors and reader.params[0] in (method, "cholesky"):
            return reader
    return match.make(factors, matrix, params=(method,))


def _solve_method(matrix: NodeView, node: Node) -> str:
    """Return the factorisation method for solves.

    Symmetric factors serve solves only. If the matrix has other factoring operations, all use
    Cholesky or Gauss.
    """
    method = factorization_method(node)
    if method == "symmetric" and not all(
        _only_solves(operation) for operation in _factoring_operations(matrix)
    ):
        return _inverse_method(node)
    return method


def _only_solves(term: NodeView) -> bool:
    """Whether an operation factors a matrix only to solve."""
    if term.op is inv:
        return _only_read_by_products(term)
    return term.op is solve or (term.op is factors and term.params == ("symmetric",))


def _inverse_method(node: Node) -> str:
    """Return the factorisation method for an inverse or a determinant.

    A complex symmetric matrix need not be Hermitian, so it takes Gauss.
    """
    method = factorization_method(node)
    if method == "symmetric":
        return "gauss" if kind_of(node.type.dtype) == "c" else "cholesky"
    return method


def _solve_with_factors(
    match: Match, packed: NodeView, right_side: NodeView, form: str
) -> NodeView | None:
    """Return the solution from factors, in the dtype of the root."""
    if kind_of(packed.dtype) != "c":
        if kind_of(right_side.dtype) == "c":
            if packed.params == ("symmetric",):
                return None
            packed = match.make(astype, packed, params=(COMPLEX128,))
        form = "T" if form in "TC" else "N"
    elif packed.params == ("symmetric",):
        form = "C" if form in "CJ" else "N"
    elif form == "J":
        if packed.params != ("cholesky",):
            return None
        form = "T"  # of a Hermitian matrix the conjugate is the transpose
    return match.make(solve_factored, packed, right_side, params=(form, match.root.dtype))


def _use_shared_factors(match: Match) -> NodeView | None:
    """Use factors if they are shared, cheaper than Gauss, or broadcast to several systems."""
    root, node = match.root, original_operand(match.root)
    matrix, form, views = strip_transposes(match["x"])
    method = _solve_method(matrix, node) if root.op is solve else _inverse_method(node)
    if (form == "J" and method != "symmetric") or (views and root.op is not solve):
        matrix, form, views = match["x"], "N", ()
    broadcast = root.op is solve and len(matrix.shape) < len(root.shape)
    if method == "gauss" and not (broadcast or _is_shared(matrix)):
        return None
    if root.op is inv:
        if _only_read_by_products(root):
            return None  # the products become solves
        return match.make(
            inv_factored, _get_or_make_factors(match, matrix, method), params=(root.dtype,)
        )
    packed = _get_or_make_factors(match, matrix, method)
    if root.op is det:
        return match.make(det_factored, packed, params=(root.dtype,))
    return _solve_with_factors(match, packed, match["y"], form)


def _merge_factors(match: Match) -> NodeView | None:
    """Use the factors of an inverse or a determinant in place of symmetric factors.

    CSE may show only now that both factor the same matrix.
    """
    root, packed = match.root, match["x"]
    if packed.op is not factors or packed.params != ("symmetric",):
        return None
    (matrix,) = packed.inputs
    for reader in readers(matrix):
        if reader.op is factors and reader.params != packed.params:
            return match.again(root, reader, match["y"])
    return None


def _cholesky_factors(match: Match) -> NodeView | None:
    """Replace Gauss factors by Cholesky factors if the matrix is symmetric."""
    if match.root.params != ("gauss",) or _inverse_method(original_operand(match.root)) == "gauss":
        return None
    return match.again(match.root, match["x"], params=("cholesky",))


def _symmetric_transposed(match: Match) -> NodeView | None:
    """The transpose of a matrix that is assumed symmetric is the matrix."""
    term, (axes,) = match["x"], match.root.params
    return term if Structure.SYMMETRIC in term.structure and is_matrix_transpose(axes) else None


def _diagonal_division(match: Match) -> NodeView | None:
    """Divide the right side by the diagonal; None for an empty system, which cannot fail."""
    root, matrix, right_side = match.root, match["x"], match["y"]
    if root.params != ("diagonal", False) or root.dtype not in (FLOAT32, FLOAT64) or not root.size:
        return None
    if matrix.dtype != root.dtype or right_side.dtype != root.dtype:
        return None
    row_axis = len(matrix.shape) - 2
    diagonal_term = match.make(diagonal, matrix, params=(0, row_axis, row_axis + 1))
    if len(right_side.shape) > 1:
        diagonal_term = insert_axes(match, diagonal_term, (row_axis + 1,))
    return _if_root_type(match, match.make(solve_diagonal, right_side, diagonal_term))


def _rule(name: str, lhs: object, rhs: object) -> Rule:
    return Rule(name, lhs, rhs, exactness="linear-algebra")  # type: ignore[arg-type]  # checked


SOLVE_RULES = (
    _rule("inverse-times", x.of(*_INVERSE_OPS) @ y, _inverse_times),
    _rule("times-inverse", x @ y.of(*_INVERSE_OPS), _times_inverse),
    _rule("product-of-inverse", x.of(matmul) @ y, _product_of_inverse),
    _rule("solution-times", x.of(*_SOLVE_OPS) @ y, _product_of_solution),
    _rule("solve-product", pattern.linalg_solve(x, y), _solve_product),
    _rule("solve-structured", pattern.linalg_solve(x, y), _structured_solve),
    _rule("inverse-structured", pattern.linalg_inv(x), _structured_inverse),
    _rule("determinant-structured", pattern.linalg_det(x), _structured_determinant),
    _rule("determinant-transposed", pattern.linalg_det(x), _determinant_of_transposed),
    _rule("solve-factored", pattern.linalg_solve(x, y), _use_shared_factors),
    _rule("inverse-factored", pattern.linalg_inv(x), _use_shared_factors),
    _rule("determinant-factored", pattern.linalg_det(x), _use_shared_factors),
    _rule("factors-shared", pattern(solve_factored, x, y), _merge_factors),
    _rule("factors-definite", pattern(factors, x), _cholesky_factors),
    _rule("factors-definite", pattern(regular_factors, x), _cholesky_factors),
    _rule("symmetric-transposed", pattern.permute_dims(x), _symmetric_transposed),
    _rule("solve-diagonal", pattern(triangular_solve, x, y), _diagonal_division),
)
