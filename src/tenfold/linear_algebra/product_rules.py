"""Product rules: rewrite sums of matrix products to the form with the fewest multiply-adds.

Takes the largest expression around a node of products, sums, scales, transposes and conjugates, in
one floating dtype, whose parts have no other readers. Reads it as monomials
(`linear_algebra/cost_search.py`), hands on the cheapest sum of them: chains in the best order,
common factors factored out, the rest distributed. Scales, signs, transposes and conjugates go into
the flags of `gemm`; an addend is accumulated into by the next product. Where half of a product is
known, as of `x @ x.T` and `tril(x) @ y`, half is computed. Class linear-algebra.

>>> import tenfold as tn
>>> x, u = tn.ones((8, 8)), tn.ones((8,))
>>> with tn.profile() as p:
...     y = (x @ x @ u).wait()
>>> p.multiply_adds
128
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tenfold.core.op import Kind
from tenfold.core.pattern import pattern, variables
from tenfold.linear_algebra.cost_search import cheapest_sum
from tenfold.linear_algebra.normal_form import DTYPES, BLAS_PRODUCTS, MatrixExpression, same_stack_shape, is_matrix_operation, is_inner, score, trmm_triangle, untransposed
from tenfold.linear_algebra.polynomial_lowering import min_operations, lower_polynomial
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.gemm import gemm
from tenfold.ops.indexing import index
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_over
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rewrite_graph import Operator, RewriteGraph
from tenfold.rewrite.rule import Match, Rule

_PRODUCT_OPS = frozenset((matmul, *BLAS_PRODUCTS))


class _ProductCache:
    """What is known of a graph while it is rewritten."""

    def __init__(self) -> None:
        self.products = False
        self.seen = 0
        """The nodes among which products have been looked for."""
        self.letters: dict[int, frozenset[int]] = {}
        """For the top of each expression that has been read or made, what it was made of then: as
        long as it is the same, nothing is to be gained."""

    def has_products(self, ops: Sequence[Operator]) -> bool:
        """Whether there is a product anywhere, written or made by a rule."""
        if not self.products and self.seen < len(ops):
            self.products = not _PRODUCT_OPS.isdisjoint(ops[self.seen :])
            self.seen = len(ops)
        return self.products


def _product_cache(work: RewriteGraph) -> _ProductCache:
    found: _ProductCache | None = work.notes.get(_ProductCache)
    if found is None:
        found = work.notes[_ProductCache] = _ProductCache()
    return found


def is_expression_root(match: Match) -> bool:
    """Whether the root is the top of an expression that may have a product in it."""
    root = match.root
    if not _product_cache(root.work).has_products(root.work.ops) or not is_matrix_operation(root):
        return False
    reader = _reader(root)
    return reader is None or not (is_matrix_operation(reader) and root.shape)


def _reader(term: NodeView) -> NodeView | None:
    """The one node that reads a term."""
    if not term.alone:
        return None
    readers = list(islice(term.work.readers(term.at), 2))
    return NodeView(term.work, readers[0]) if len(readers) == 1 else None


def _feeds_elementwise(root: NodeView) -> bool:
    """Whether an elementwise kernel reads a term: an addition costs nothing there."""
    reader = _reader(root)
    return reader is not None and reader.op is not None and reader.op.kind is Kind.MAP


def _read_in_part(root: NodeView) -> bool:
    """Whether the reader of a term may need only a part, less than half of the whole."""
    reader = _reader(root)
    return reader is not None and reader.op in (index, diagonal, sum_over)


def _cheapest_form(match: Match) -> NodeView | None:
    root = match.root
    letters = _product_cache(root.work).letters
    expression = MatrixExpression(root)
    if not expression.is_whole:
        return None
    made_of = expression.made_of
    if letters.get(root.at) == made_of:
        return None
    letters[root.at] = made_of
    if not expression.has_product or _is_already_cheapest(root):
        return None
    words = expression.words()
    if words is None:
        return None
    halves = len(root.shape) == 2 and not _read_in_part(root)  # of stacks all is made
    cost, found = cheapest_sum(words, halves=halves)
    accumulated, written = not _feeds_elementwise(root), expression.score()
    operations = min_operations(cost, found, accumulated=accumulated)
    if (cost.multiply_adds, 4 * operations) >= written:
        return None
    looked = root.work.looked
    by = lower_polynomial(match, found, expression.terms, accumulated=accumulated, halves=halves)
    root.work.looked = looked  # numbers are operands before and after: any may stand there
    if score(by) >= written:
        return None
    letters[by.at] = made_of
    return by


def _is_already_cheapest(root: NodeView) -> bool:
    """Whether it is seen at once that nothing takes less than what is written: one product of two
    matrices that have nothing to do with each other, and what a kernel adds to it.
    """
    if root.op in (add, subtract) and _feeds_elementwise(root):
        one, other = root.inputs
        if is_inner(other):
            one, other = other, one
        return is_inner(one) and not is_inner(other) and _is_unstructured_product(one)
    return _is_unstructured_product(root)


def _is_unstructured_product(term: NodeView) -> bool:
    """Whether a term is a product of two matrices, of which nothing is known."""
    if term.op is not matmul or any(map(is_inner, term.inputs)):
        return False
    first, second = map(untransposed, term.inputs)
    return first != second and trmm_triangle(first) is trmm_triangle(second) is None


def _adds_broadcast_rows(match: Match) -> bool:
    """Whether a broadcast array is added to a product that only the root needs, and no elementwise
    kernel reads the sum.
    """
    root, rows, factors = match.root, match["z"], (match["x"], match["y"])
    shape = root.shape
    if rows.is_scalar or (rows.shape == shape and same_stack_shape(*factors)):
        return False
    if rows.shape[-1:] != shape[-1:] or min(len(each.shape) for each in factors) < 2:
        return False
    product = next(each for each in root.inputs if each.op is matmul and each.inputs == factors)
    fits = product.shape == shape and min(shape[-2:]) > 1
    same = {each.dtype for each in (*factors, rows, root)} == {root.dtype}
    return fits and same and root.dtype in DTYPES and product.alone and not _feeds_elementwise(root)


def _gemm_with_rows(match: Match) -> NodeView:
    return match.make(gemm, match["x"], match["y"], match["z"], params=("N", "N", 1, 0, 1))


x, y, z = variables("x y z")
GEMM_ROWS_RULE = Rule(
    "products-rows",
    x @ y + z,
    _gemm_with_rows,
    when=_adds_broadcast_rows,
    exactness="linear-algebra",
)
"""A row that is added to every row of a product is what the product begins with; and so is what is
added to a product of stacks that are not alike, which is not read as words."""

PRODUCT_RULES = (
    GEMM_ROWS_RULE,
    *tuple(
        Rule(f"products-{name}", pattern(op), _cheapest_form, when=is_expression_root, exactness="linear-algebra")
        for name, op in (
            ("chain", matmul),
            ("sum", add),
            ("difference", subtract),
            ("scale", multiply),
            ("negative", negative),
            ("transpose", permute_dims),
            ("conjugate", conj),
        )
    ),
)
