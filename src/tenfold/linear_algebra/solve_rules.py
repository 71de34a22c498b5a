"""Solve rules: replace inverses by solves, and share one factorisation of each matrix.

Takes products with inverses, solves, inverses and determinants, hands on solves. They become
substitutions where a triangle, a diagonal or a promise is visible
(`linear_algebra/structure_inference.py`). All solves and determinants of a matrix share one
factorisation, by Cholesky where the matrix is seen to be positive definite. Class linear-algebra.

>>> print(SOLVES[0])
inverse-times: matmul(x, y) => ... (linear-algebra)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tenfold._native import Node
from tenfold.core.op import Op
from tenfold.core.pattern import pattern, variables
from tenfold.dtypes import kind_of
from tenfold.linear_algebra.structure_inference import apply_form, is_positive_definite, assumed_structure, strip_transposes, transpose, visible_triangle, factorization_method, original_operand
from tenfold.ops.cast import astype
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.factors import det_factored, factors, inv_factored, solve_factored
from tenfold.ops.linalg import det, inv, solve
from tenfold.ops.lu_and_triangular import triangular_solve
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import prod
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import ORIGIN
from tenfold.rewrite.rule import Match, Rule

x, y = variables("x y")


def readers(term: NodeView) -> Iterator[NodeView]:
    """Yield the operations that read a term, the newest first."""
    return (NodeView(term.work, at) for at in term.work.readers(term.at))


def _only_read_by_products(term: NodeView) -> bool:
    """Whether only products read an inverse, directly or through transposes: if they become solves,
    the inverse is dead.
    """
    if term.seen:
        return False
    for reader in readers(term):
        if reader.op is matmul:
            if all(each == term for each in reader.inputs):
                return False
        elif not (reader.op in (permute_dims, conj) and _only_read_by_products(reader)):
            return False
    return True


_INVERSE_OPS: tuple[Op[...], ...] = (inv, permute_dims, conj)
"""What may be an inverse, or a view of one."""


def _match_inverse(term: NodeView) -> tuple[NodeView, str] | None:
    """Return the inverse that a factor is, and in which form it stands there."""
    inverse, form, between = strip_transposes(term)
    if inverse.op is not inv:
        return None
    if not all(each.read_once or _only_read_by_products(each) for each in (inverse, *between)):
        return None
    return inverse, form


def _solve_with_inverted(match: Match, inverse: NodeView, form: str, right: NodeView) -> NodeView | None:
    """Return the solution of equations with what was inverted, in that form."""
    (matrix,) = inverse.inputs
    token = ORIGIN.set(inverse.node.origin)  # a failure names the line of the inverse
    try:
        way = _solve_method(matrix, original_operand(inverse))
        if way != "gauss":
            return _solve_with_factors(match, _get_or_make_factors(match, matrix, way), right, form)
        if matrix.dtype != inverse.dtype:
            matrix = match.make(astype, matrix, params=(inverse.dtype,))
        return match.make(solve, apply_form(match, matrix, form), right)
    finally:
        ORIGIN.reset(token)


def _if_root_type(match: Match, made: NodeView | None) -> NodeView | None:
    """Return what was made if it has the Type of the root."""
    return made if made is not None and made.type == match.root.type else None


def _inverse_times(match: Match) -> NodeView | None:
    """inv(A) @ B solves A X = B."""
    found = _match_inverse(match["x"])
    return None if found is None else _if_root_type(match, _solve_with_inverted(match, *found, match["y"]))


_TRANSPOSED = {"N": "T", "T": "N", "J": "C", "C": "J"}


def _times_inverse(match: Match) -> NodeView | None:
    """B @ inv(A) is the transpose of what solves A^T X = B^T."""
    found, left = _match_inverse(match["y"]), match["x"]
    if found is None:
        return None
    inverse, form = found
    vector = len(left.shape) == 1
    if vector and len(inverse.shape) > 2:
        return None
    right = left if vector else transpose(match, left)
    made = _solve_with_inverted(match, inverse, _TRANSPOSED[form], right)
    if made is None or vector:
        return _if_root_type(match, made)
    return _if_root_type(match, transpose(match, made))


_SOLVE_OPS: tuple[Op[...], ...] = (solve, triangular_solve, solve_factored)


def _product_of_solution(match: Match) -> NodeView | None:
    """inv(A) @ B @ C with fewer columns in C than in B: first B @ C."""
    solution, second = match["x"], match["y"]
    if not solution.alone:
        return None
    matrix, right = solution.inputs
    if len(right.shape) < 2 or (len(second.shape) == 1 and len(solution.shape) > 2):
        return None
    if (second.shape[-1] if len(second.shape) > 1 else 1) >= right.shape[-1]:
        return None
    product = match.make(matmul, right, second)
    if solution.op is solve_factored and kind_of(product.dtype) != kind_of(solution.dtype):
        return None
    return _if_root_type(match, match.again(solution, matrix, product))


def _solve_product(match: Match) -> NodeView | None:
    """(A @ C) X = B of square A and C: first A, then C; the product is not made. Not where more
    columns are solved for than that saves, nor where Cholesky's way is seen.
    """
    matrix, right = match["x"], match["y"]
    if matrix.op is not matmul or not matrix.read_once or is_positive_definite(original_operand(match.root)):
        return None
    first, second = matrix.inputs
    alike = first.shape == second.shape == matrix.shape and len(matrix.shape) == 2
    if not alike or not first.dtype == second.dtype == match.root.dtype:
        return None
    if right.size * 3 > matrix.size * 2:
        return None
    return _if_root_type(match, match.make(solve, second, match.make(solve, first, right)))


def _determinant_of_transposed(match: Match) -> NodeView | None:
    """It is that of the matrix."""
    matrix, form, between = strip_transposes(match["x"])
    if not between or form not in "NT":
        return None
    return _if_root_type(match, match.make(det, matrix))


def _structured_solve(match: Match) -> NodeView | None:
    """A substitution, or a product with the transpose of an orthogonal matrix."""
    matrix, right = match["x"], match["y"]
    triangle = visible_triangle(match, matrix)
    if triangle is not None:
        params = (triangle.side, triangle.unit_diagonal)
        made = match.make(triangular_solve, triangle.matrix, right, params=params)
        return _if_root_type(match, made)
    inner, form, _ = strip_transposes(matrix)
    if assumed_structure(inner) == "orthogonal":
        turned = apply_form(match, inner, _ADJOINT[form])
        return _if_root_type(match, match.make(matmul, turned, right))
    return None


_ADJOINT = {"N": "C", "C": "N", "T": "J", "J": "T"}


def _structured_inverse(match: Match) -> NodeView | None:
    """The adjoint of an orthogonal matrix; a substitution for the identity."""
    matrix, root = match["x"], match.root
    inner, form, _ = strip_transposes(matrix)
    if assumed_structure(inner) == "orthogonal":
        return _if_root_type(match, apply_form(match, inner, _ADJOINT[form]))
    triangle = visible_triangle(match, matrix)
    if triangle is None or _only_read_by_products(root):
        return None  # the products become substitutions
    order = root.shape[-1]
    identity = match.make(eye, params=(order, order, 0, root.dtype, root.type.device))
    params = (triangle.side, triangle.unit_diagonal)
    return _if_root_type(match, match.make(triangular_solve, triangle.matrix, identity, params=params))


def _structured_determinant(match: Match) -> NodeView | None:
    """The product of a triangle's diagonal."""
    triangle = visible_triangle(match, match["x"])
    if triangle is None or kind_of(triangle.matrix.dtype) not in "fc":
        return None
    matrix = triangle.matrix
    last = len(matrix.shape) - 2
    on_it = match.make(diagonal, matrix, params=(0, last, last + 1))
    return _if_root_type(match, match.make(prod, on_it, params=((last,), False, None)))


def _factoring_operations(term: NodeView) -> Iterator[NodeView]:
    """Yield what factors a matrix, be it through transposes."""
    for reader in readers(term):
        if reader.op in (solve, inv, det, factors) and reader.inputs[0] == term:
            yield reader
        elif reader.op in (permute_dims, conj) and strip_transposes(reader).between:
            yield from (each for each in _factoring_operations(reader) if each.op is solve)


def _is_shared(matrix: NodeView) -> bool:
    """Whether several operations factor a matrix."""
    return next(islice(_factoring_operations(matrix), 1, None), None) is not None


_SUITABLE_METHODS = {
    "gauss": ("gauss", "cholesky"),
    "cholesky": ("cholesky",),
    "symmetric": ("symmetric", "cholesky"),
}
"""Factors of which ways do where one is wanted."""


def _get_or_make_factors(match: Match, matrix: NodeView, way: str) -> NodeView:
    """Return the factors of a matrix: those that are there, or new ones."""
    for reader in readers(matrix):
        if reader.op is factors and reader.params[0] in _SUITABLE_METHODS[way]:
            return reader
    return match.make(factors, matrix, params=(way,))


def _solve_method(matrix: NodeView, node: Node) -> str:
    """By which way a matrix is factored for solves: that for symmetric matrices has no inverses
    and no determinants, so what else is asked of the matrix takes Cholesky's way if that goes, or
    else Gauss's; then solves do as well.
    """
    way = factorization_method(node)
    if way == "symmetric" and not all(_only_solves(each) for each in _factoring_operations(matrix)):
        return _inverse_method(node)
    return way


def _only_solves(term: NodeView) -> bool:
    """Whether what factors a matrix does it to solve."""
    if term.op is inv:
        return _only_read_by_products(term)
    return term.op is solve or (term.op is factors and term.params == ("symmetric",))


def _inverse_method(node: Node) -> str:
    """By which way a matrix is factored for its inverse or determinant: what is complex and
    symmetric need not be Hermitian.
    """
    way = factorization_method(node)
    if way == "symmetric":
        return "gauss" if kind_of(node.type.dtype) == "c" else "cholesky"
    return way


def _solve_with_factors(match: Match, packed: NodeView, right: NodeView, form: str) -> NodeView | None:
    """Return the solution by factors, in the dtype of the root."""
    if kind_of(packed.dtype) != "c":
        if kind_of(right.dtype) == "c":
            return None
        form = "T" if form in "TC" else "N"
    elif packed.params == ("symmetric",):
        form = "C" if form in "CJ" else "N"
    elif form == "J":
        if packed.params != ("cholesky",):
            return None
        form = "T"  # of a Hermitian matrix the conjugate is the transpose
    return match.make(solve_factored, packed, right, params=(form, match.root.dtype))


def _use_shared_factors(match: Match) -> NodeView | None:
    """By factors that others use as well, or that are cheaper to have, or of fewer matrices."""
    root, node = match.root, original_operand(match.root)
    matrix, form, between = strip_transposes(match["x"])
    way = _solve_method(matrix, node) if root.op is solve else _inverse_method(node)
    if (form == "J" and way != "symmetric") or (between and root.op is not solve):
        matrix, form, between = match["x"], "N", ()
    broadcast = root.op is solve and len(matrix.shape) < len(root.shape)
    if way == "gauss" and not (broadcast or _is_shared(matrix)):
        return None
    if root.op is inv:
        if _only_read_by_products(root):
            return None  # the products become solves
        return match.make(inv_factored, _get_or_make_factors(match, matrix, way), params=(root.dtype,))
    packed = _get_or_make_factors(match, matrix, way)
    if root.op is det:
        return match.make(det_factored, packed, params=(root.dtype,))
    return _solve_with_factors(match, packed, match["y"], form)


def _merge_factors(match: Match) -> NodeView | None:
    """By factors that serve an inverse or a determinant as well, of a matrix that is only now seen
    to be the same.
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
    """Cholesky's way, where it is seen to be one, or may be."""
    if match.root.params != ("gauss",) or _inverse_method(original_operand(match.root)) == "gauss":
        return None
    return match.again(match.root, match["x"], params=("cholesky",))


def _symmetric_transposed(match: Match) -> NodeView | None:
    """A matrix that was promised to be its own transpose."""
    term, (axes,) = match["x"], match.root.params
    last = len(axes) - 2
    promise = assumed_structure(term)
    own = promise in ("symmetric", "diagonal") or (
        promise == "positive-definite" and kind_of(term.dtype) != "c"
    )
    return term if own and axes == (*range(last), last + 1, last) else None


def _rule(name: str, matched: object, by: object) -> Rule:
    return Rule(name, matched, by, exactness="linear-algebra")  # type: ignore[arg-type]  # checked


SOLVE_RULES = (
    _rule("inverse-times", x.of(*_INVERSE_OPS) @ y, _inverse_times),
    _rule("times-inverse", x @ y.of(*_INVERSE_OPS), _times_inverse),
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
    _rule("symmetric-transposed", pattern.permute_dims(x), _symmetric_transposed),
)
