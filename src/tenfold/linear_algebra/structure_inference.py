"""Structure inference: whether a matrix is triangular, diagonal, symmetric or positive definite.

Takes a term, hands on through which transposes it is seen, which triangle holds it, and which
structure it was promised to have. Of a node as it was written it says whether it is positive
definite. It uses structure alone, never a value, but for the sign of a literal number.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.ones((3, 2))
>>> is_definite(_native.node_of(x.mT @ x + 0.5 * tn.eye(2)))
True
>>> is_definite(_native.node_of(x.mT @ x - tn.eye(2)))
False
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold._native import Node
from tenfold.core.op import Op
from tenfold.dtypes import kind_of
from tenfold.ops.arithmetic import add, divide, multiply
from tenfold.ops.assume import declared, verified
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.diagonal_tril_triu import diagonal_matrix, tril, triu
from tenfold.ops.linalg import cholesky, qr
from tenfold.ops.lu_and_triangular import lu
from tenfold.ops.movement import permute_dims
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match


def is_matrix_transpose(axes: tuple[int, ...]) -> bool:
    """Whether a permutation transposes matrices and nothing else."""
    last = len(axes) - 2
    return last >= 0 and axes == (*range(last), last + 1, last)


def transpose(match: Match, term: NodeView) -> NodeView:
    """Return the transposed matrices: what was transposed before if that is it."""
    if term.op is permute_dims and is_matrix_transpose(*term.params):
        return term.inputs[0]
    last = len(term.shape) - 2
    return match.make(permute_dims, term, params=((*range(last), last + 1, last),))


def conjugate(match: Match, term: NodeView) -> NodeView:
    """Return the conjugate: itself of real numbers."""
    if kind_of(term.dtype) != "c":
        return term
    return term.inputs[0] if term.op is conj else match.make(conj, term)


class UntransposedMatrix(NamedTuple):
    """A matrix below transposes and conjugates."""

    matrix: NodeView
    form: str
    """ "N" as it is, "T" transposed, "J" conjugated, "C" both."""
    between: tuple[NodeView, ...]
    """The terms that transpose and conjugate."""


TRANSPOSED_FORM = {"N": "T", "T": "N", "J": "C", "C": "J"}
_CONJUGATED_FORM = {"N": "J", "J": "N", "T": "C", "C": "T"}


def strip_transposes(term: NodeView) -> UntransposedMatrix:
    """Return the matrix below transposes and conjugates."""
    form, between = "N", []
    while True:
        if term.op is permute_dims and is_matrix_transpose(*term.params):
            form = TRANSPOSED_FORM[form]
        elif term.op is conj:
            form = _CONJUGATED_FORM[form] if kind_of(term.dtype) == "c" else form
            if term.inputs[0].dtype != term.dtype:
                break
        else:
            break
        between.append(term)
        (term,) = term.inputs
    return UntransposedMatrix(term, form, tuple(between))


def apply_form(match: Match, term: NodeView, form: str) -> NodeView:
    """Return a matrix transposed and conjugated, as a form says."""
    if form in "TC":
        term = transpose(match, term)
    return conjugate(match, term) if form in "JC" else term


def assumed_structure(term: NodeView) -> str:
    """Return what was promised of a matrix; nothing for most."""
    return str(term.params[0]) if term.op in (declared, verified) else ""


class Triangle(NamedTuple):
    """A matrix that is held by one side of another, which need not be 0 elsewhere."""

    matrix: NodeView
    side: str
    """As of `linalg.triangular_solve`: "lower", "upper", "either", "diagonal"."""
    unit_diagonal: bool = False


def triangle_of(term: NodeView) -> Triangle | None:
    """Return the triangle that holds a square matrix, where that is visible."""
    op, promise = term.op, assumed_structure(term)
    if promise in ("triangular", "diagonal"):
        return Triangle(term, "either" if promise == "triangular" else "diagonal")
    if op is diagonal_matrix and term.params == (0,):
        return Triangle(term, "diagonal")
    if op is tril and term.params[0] <= 0:
        return Triangle(term.inputs[0] if term.params == (0,) else term, "lower")
    if op is triu and term.params[0] >= 0:
        return Triangle(term.inputs[0] if term.params == (0,) else term, "upper")
    if op is cholesky:
        return Triangle(term, "upper" if term.params[0] else "lower")
    if op is None and term.width == 1:  # one of several results
        return _triangle_of_result(term)
    return None


def _triangle_of_result(term: NodeView) -> Triangle | None:
    (whole,), (number,) = term.inputs, term.params
    if whole.op is lu and number:
        return Triangle(term, "lower" if number == 1 else "upper", number == 1)
    return Triangle(term, "upper") if whole.op is qr and number == 1 else None


_TRANSPOSED_SIDE = {"lower": "upper", "upper": "lower", "either": "either", "diagonal": "diagonal"}


def visible_triangle(match: Match, term: NodeView) -> Triangle | None:
    """As triangle_of, through transposes and conjugates."""
    matrix, form, _ = strip_transposes(term)
    found = triangle_of(matrix)
    if found is None or form == "N":
        return found
    side = _TRANSPOSED_SIDE[found.side] if form in "TC" else found.side
    return Triangle(apply_form(match, found.matrix, form), side, found.unit_diagonal)


def original_operand(term: NodeView, place: int = 0) -> Node:
    """Return an operand of an operation as it was written, whatever stands there now."""
    return term.node.inputs[place]


def is_positive_definite(node: Node) -> bool:
    """Whether a matrix is seen to be positive definite, but for rounding: `x.T @ x` of no more
    columns than rows, and `c * eye + x.T @ x` with c > 0, conjugated where complex, scaled by
    numbers above 0.
    """
    node = _strip_node_transposes(node)[0]
    if _pending_op(node) in (declared, verified):
        return bool(node.params[0] == "positive-definite")
    if _pending_op(node) is add:
        first, second = node.inputs
        for gram, shift in ((first, second), (second, first)):
            if _is_identity(_unscaled(shift)) and _is_gram(_unscaled(gram), tall=False):
                return True
        return False
    return _is_gram(_unscaled(node), tall=True)


def factorization_method(node: Node) -> str:
    """By which of the ways of `ops/factors.py` a matrix is factored: by Cholesky's one that is seen
    to be positive definite; "symmetric" for one that was promised to be that.
    """
    if is_positive_definite(node):
        return "cholesky"
    node = _strip_node_transposes(node)[0]
    promised = _pending_op(node) in (declared, verified) and node.params[0] == "symmetric"
    return "symmetric" if promised else "gauss"


def _pending_op(node: Node) -> Op[...] | None:
    return node.op if node.pending else None


def _unscaled(node: Node) -> Node:
    """Return a matrix without the numbers above 0 that multiply or divide it."""
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
    return _pending_op(node) is eye and node.params[0] == node.params[1] and node.params[2] == 0


def _is_gram(node: Node, *, tall: bool) -> bool:
    """Whether it is a product of a matrix with its own adjoint; `tall`: of full rank, perhaps."""
    if _pending_op(node) is not matmul:
        return False
    first, second = node.inputs
    one, other = _strip_node_transposes(first), _strip_node_transposes(second)
    if one[0] != other[0] or len(first.type.shape) < 2:
        return False
    forms = one[1] + other[1]
    adjoint = kind_of(first.type.dtype) == "c"
    if forms not in (("NC", "CN", "TJ", "JT") if adjoint else ("NT", "TN")):
        return False
    rows, columns = first.type.shape[-2:]
    return not tall or rows <= columns


def _strip_node_transposes(node: Node) -> tuple[Node, str]:
    """Return the matrix below transposes and conjugates, and the form in which it is seen."""
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
