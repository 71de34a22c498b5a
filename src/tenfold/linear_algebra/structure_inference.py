"""Structure inference: whether a matrix is triangular, diagonal, symmetric or positive definite.

Input: a term. Output: the matrix below its transposes, its triangle, and its assumed structure
(`tn.assume`). For an original node: whether it is positive definite. Inference reads the structure
of the graph and the sign of literal numbers, and no array values.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.ones((3, 2))
>>> is_positive_definite(_native.node_of(x.mT @ x + 0.5 * tn.eye(2)))
True
>>> is_positive_definite(_native.node_of(x.mT @ x - tn.eye(2)))
False
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold._native import Node
from tenfold.core.op import Op
from tenfold.core.structure import IDENTITY, Structure, transposed_structure
from tenfold.dtypes import kind_of
from tenfold.ops.arithmetic import add, divide, multiply
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.diagonal_tril_triu import tril, triu
from tenfold.ops.movement import permute_dims
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match


def is_matrix_transpose(axes: tuple[int, ...]) -> bool:
    """Whether a permutation transposes matrices and nothing else."""
    row_axis = len(axes) - 2
    return row_axis >= 0 and axes == (*range(row_axis), row_axis + 1, row_axis)


def transpose(match: Match, term: NodeView) -> NodeView:
    """Return the transposed matrices; the transpose of a transpose is its input."""
    if term.op is permute_dims and is_matrix_transpose(*term.params):
        return term.inputs[0]
    row_axis = len(term.shape) - 2
    return match.make(permute_dims, term, params=((*range(row_axis), row_axis + 1, row_axis),))


def conjugate(match: Match, term: NodeView) -> NodeView:
    """Return the conjugate, or the term itself if it is real."""
    if kind_of(term.dtype) != "c":
        return term
    return term.inputs[0] if term.op is conj else match.make(conj, term)


class UntransposedMatrix(NamedTuple):
    """A matrix below transposes and conjugates."""

    matrix: NodeView
    form: str
    """ "N" plain, "T" transposed, "J" conjugated, "C" both."""
    views: tuple[NodeView, ...]
    """The terms that transpose and conjugate."""


TRANSPOSED_FORM = {"N": "T", "T": "N", "J": "C", "C": "J"}
_CONJUGATED_FORM = {"N": "J", "J": "N", "T": "C", "C": "T"}


def strip_transposes(term: NodeView) -> UntransposedMatrix:
    """Return the matrix below transposes and conjugates."""
    form, views = "N", []
    while True:
        if term.op is permute_dims and is_matrix_transpose(*term.params):
            form = TRANSPOSED_FORM[form]
        elif term.op is conj:
            form = _CONJUGATED_FORM[form] if kind_of(term.dtype) == "c" else form
            if term.inputs[0].dtype != term.dtype:
                break
        else:
            break
        views.append(term)
        (term,) = term.inputs
    return UntransposedMatrix(term, form, tuple(views))


def apply_form(match: Match, term: NodeView, form: str) -> NodeView:
    """Return a matrix in a form: transposed, conjugated, both or plain."""
    if form in "TC":
        term = transpose(match, term)
    return conjugate(match, term) if form in "JC" else term


class Triangle(NamedTuple):
    """A triangular matrix, stored in one side of `matrix`, whose other side need not be 0."""

    matrix: NodeView
    side: Structure
    """LOWER, UPPER or DIAGONAL; TRIANGULAR where only the values tell it."""
    unit_diagonal: bool = False


def triangle_of(term: NodeView) -> Triangle | None:
    """Return the triangle of a square matrix; None if none is visible."""
    if not term.has_structure:
        return None
    side = term.structure & Structure.DIAGONAL or term.structure & Structure.TRIANGULAR
    if not side:
        return None
    is_half = side in _UNREAD and term.op is _UNREAD[side] and term.params == (0,)
    return Triangle(term.inputs[0] if is_half else term, side, Structure.UNIT in term.structure)


_UNREAD = {Structure.LOWER: tril, Structure.UPPER: triu}


def visible_triangle(match: Match, term: NodeView) -> Triangle | None:
    """As triangle_of, through transposes and conjugates."""
    matrix, form, _ = strip_transposes(term)
    triangle = triangle_of(matrix)
    if triangle is None or form == "N":
        return triangle
    side = transposed_structure(triangle.side) if form in "TC" else triangle.side
    return Triangle(apply_form(match, triangle.matrix, form), side, triangle.unit_diagonal)


def original_operand(term: NodeView, index: int = 0) -> Node:
    """Return an operand of an operation before any rewrite."""
    return term.node.inputs[index]


def is_positive_definite(node: Node) -> bool:
    """Whether a matrix is visibly positive definite, up to rounding.

    That is `x.T @ x` with no more columns than rows, and `c * eye + x.T @ x` with c > 0; adjoints
    if complex, and multiples by positive numbers.
    """
    node = _strip_node_transposes(node)[0]
    if Structure.POSITIVE_DEFINITE in Structure(node.type.structure):
        return True
    if _pending_op(node) is add:
        first, second = node.inputs
        for gram, shift in ((first, second), (second, first)):
            if _is_identity(_unscaled(shift)) and _is_gram(_unscaled(gram), tall=False):
                return True
        return False
    return _is_gram(_unscaled(node), tall=True)


def factorization_method(node: Node) -> str:
    """Return the factorisation method of a matrix (`ops/factors.py`).

    "cholesky" if it is positive definite, "symmetric" if it is known or visibly symmetric, else
    "gauss"; also where a structure makes a factorisation superfluous.
    """
    if node.type.structure & (Structure.TRIANGULAR | Structure.ORTHOGONAL):
        return "gauss"
    if is_positive_definite(node):
        return "cholesky"
    return "symmetric" if _is_symmetric(node) else "gauss"


def _is_symmetric(node: Node) -> bool:
    """Whether a matrix is known or visibly equal to its transpose, such as x + x.T and x @ x.T."""
    node = _unscaled(_strip_node_transposes(node)[0])
    if Structure.SYMMETRIC in Structure(node.type.structure):
        return True
    if _pending_op(node) not in (add, matmul):
        return False
    (first, form), (second, other_form) = map(_strip_node_transposes, node.inputs)
    return first == second and {form, other_form} in ({"N", "T"}, {"J", "C"})


def _pending_op(node: Node) -> Op[...] | None:
    return node.op if node.pending else None


def _unscaled(node: Node) -> Node:
    """Return a matrix without the positive numbers that multiply or divide it."""
    while _pending_op(node) in (multiply, divide):
        first, second = node.inputs
        if second.is_scalar and _is_positive(second):
            node = first
        elif first.is_scalar and _pending_op(node) is multiply and _is_positive(first):
            node = second
        else:
            break
    return node


def _is_positive(scalar: Node) -> bool:
    number: Any = scalar.scalar
    return not isinstance(number, complex) and bool(number > 0)


def _is_identity(node: Node) -> bool:
    return IDENTITY in Structure(node.type.structure)


def _is_gram(node: Node, *, tall: bool) -> bool:
    """Whether it is a matrix times its own adjoint; `tall`: it may have full rank."""
    if _pending_op(node) is not matmul:
        return False
    first, second = node.inputs
    first_stripped, second_stripped = _strip_node_transposes(first), _strip_node_transposes(second)
    if first_stripped[0] != second_stripped[0] or len(first.type.shape) < 2:
        return False
    forms = first_stripped[1] + second_stripped[1]
    is_complex = kind_of(first.type.dtype) == "c"
    if forms not in (("NC", "CN", "TJ", "JT") if is_complex else ("NT", "TN")):
        return False
    rows, columns = first.type.shape[-2:]
    return not tall or rows <= columns


def _strip_node_transposes(node: Node) -> tuple[Node, str]:
    """Return the matrix below transposes and conjugates, and its form."""
    form = "N"
    while True:
        op = _pending_op(node)
        if op is permute_dims and is_matrix_transpose(*node.params):
            form = TRANSPOSED_FORM[form]
        elif op is conj and node.inputs[0].type.dtype == node.type.dtype:
            form = _CONJUGATED_FORM[form] if kind_of(node.type.dtype) == "c" else form
        else:
            return node, form
        (node,) = node.inputs
