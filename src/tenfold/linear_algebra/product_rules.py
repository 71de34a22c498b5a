"""Product rules: rewrite sums of matrix products to the form with the fewest multiply-adds.

Input: the largest expression at a node of products, sums, scales, transposes and conjugates, in one
floating dtype, whose inner nodes have no other readers. Output: the cheapest equal sum of monomials
(`linear_algebra/cost_search.py`): chains in the best order, common factors factored out, other
products distributed. Scales, signs, transposes and conjugates become flags of `gemm`; the next
product accumulates into an addend. Symmetric and triangular products such as `x @ x.T` and `tril(x)
@ y` compute one half. Class linear-algebra.

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
from tenfold.linear_algebra.cost_search import CheapestSum, cheapest_sum
from tenfold.linear_algebra.matrix_polynomial import Monomial
from tenfold.linear_algebra.normal_form import (
    BLAS_PRODUCTS,
    INEXACT,
    MatrixExpression,
    is_inner,
    is_matrix_operation,
    same_stack_shape,
    score,
    trmm_triangle,
    untransposed,
)
from tenfold.linear_algebra.polynomial_lowering import lower_polynomial, min_operations
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
    """Facts about the products of a graph during its rewrite."""

    def __init__(self) -> None:
        self.found_product = False
        self.scanned = 0
        """The number of nodes already searched for products."""
        self.cheapest_sums: dict[tuple[tuple[Monomial, ...], bool], CheapestSum] = {}
        self.matrices_read: dict[int, frozenset[int]] = {}
        """For the root of each expression read or built so far, its matrices then. With the same
        matrices it cannot become cheaper."""

    def cheapest_sum(self, monomials: tuple[Monomial, ...], *, use_structure: bool) -> CheapestSum:
        """Return the cheapest form of a sum, searched once in a rewrite."""
        key = monomials, use_structure
        if key not in self.cheapest_sums:
            self.cheapest_sums[key] = cheapest_sum(monomials, use_structure=use_structure)
        return self.cheapest_sums[key]

    def has_products(self, ops: Sequence[Operator]) -> bool:
        """Whether the graph has a product."""
        if not self.found_product and self.scanned < len(ops):
            self.found_product = not _PRODUCT_OPS.isdisjoint(ops[self.scanned :])
            self.scanned = len(ops)
        return self.found_product


def _product_cache(graph: RewriteGraph) -> _ProductCache:
    cache: _ProductCache | None = graph.rule_cache.get(_ProductCache)
    if cache is None:
        cache = graph.rule_cache[_ProductCache] = _ProductCache()
    return cache


def is_expression_root(match: Match) -> bool:
    """Whether the root is the root of an expression that may have a product."""
    root = match.root
    if not _product_cache(root.graph).has_products(root.graph.ops) or not is_matrix_operation(root):
        return False
    reader = _reader(root)
    return reader is None or not (is_matrix_operation(reader) and root.shape)


def _reader(term: NodeView) -> NodeView | None:
    """Return the only node that reads a term; None if there are several."""
    if not term.single_reader:
        return None
    readers = list(islice(term.graph.readers(term.at), 2))
    return NodeView(term.graph, readers[0]) if len(readers) == 1 else None


def _feeds_elementwise(root: NodeView) -> bool:
    """Whether an elementwise kernel reads a term: an addition is free there."""
    reader = _reader(root)
    return reader is not None and reader.op is not None and reader.op.semantics.kind is Kind.MAP


def _read_in_part(root: NodeView) -> bool:
    """Whether the reader of a term may need only a part of it."""
    reader = _reader(root)
    return reader is not None and reader.op in (index, diagonal, sum_over)


def _cheapest_form(match: Match) -> NodeView | None:
    root = match.root
    cache = _product_cache(root.graph)
    matrices_read = cache.matrices_read
    expression = MatrixExpression(root)
    if not expression.is_complete:
        return None
    matrices = expression.matrices
    if matrices_read.get(root.at) == matrices:
        return None
    matrices_read[root.at] = matrices
    if not expression.has_product or _is_already_cheapest(root):
        return None
    monomials = expression.monomials()
    if monomials is None:
        return None
    use_structure = len(root.shape) <= 2 and not _read_in_part(root)  # stacks are computed whole
    cost, cheapest = cache.cheapest_sum(monomials, use_structure=use_structure)
    accumulate, current_score = not _feeds_elementwise(root), expression.score()
    operations = min_operations(cost, cheapest, accumulate=accumulate)
    if (cost.multiply_adds, 4 * operations) >= current_score:
        return None
    read_scalars = (
        root.graph.read_scalars
    )  # scalars are operands before and after: no value is read
    result = lower_polynomial(
        match,
        cheapest,
        expression.numbered_terms,
        accumulate=accumulate,
        use_structure=use_structure,
    )
    root.graph.read_scalars = read_scalars
    if score(result) >= current_score:
        return None
    matrices_read[result.at] = matrices
    return result


def _is_already_cheapest(root: NodeView) -> bool:
    """Whether the expression is one product of two unrelated matrices, perhaps with an addend.

    An elementwise kernel adds the addend. Such an expression has no cheaper form.
    """
    if root.op in (add, subtract) and _feeds_elementwise(root):
        product, addend = root.inputs
        if is_inner(addend):
            product, addend = addend, product
        return is_inner(product) and not is_inner(addend) and _is_unstructured_product(product)
    return _is_unstructured_product(root)


def _is_unstructured_product(term: NodeView) -> bool:
    """Whether a term is a product of two different matrices without a known triangle.

    A matrix may be the sum of two others: to distribute it takes one more product.
    """
    if term.op is not matmul or any(is_inner(x) and not _is_plain_sum(x) for x in term.inputs):
        return False
    first, second = map(untransposed, term.inputs)
    return first != second and trmm_triangle(first) is trmm_triangle(second) is None


def _is_plain_sum(term: NodeView) -> bool:
    """Whether a term is the sum or difference of two different matrices."""
    if term.op not in (add, subtract):
        return False
    first, second = term.inputs
    return first != second and not is_inner(first) and not is_inner(second)


def _adds_broadcast_rows(match: Match) -> bool:
    """Whether a broadcast array is added to a product, and no elementwise kernel reads the sum.

    The product must have no other reader.
    """
    root, rows, factors = match.root, match["z"], (match["x"], match["y"])
    shape = root.shape
    if rows.is_scalar or (rows.shape == shape and same_stack_shape(*factors)):
        return False
    if rows.shape[-1:] != shape[-1:] or min(len(operand.shape) for operand in factors) < 2:
        return False
    product = next(
        operand for operand in root.inputs if operand.op is matmul and operand.inputs == factors
    )
    fits = product.shape == shape and min(shape[-2:]) > 1
    fits = fits and {operand.dtype for operand in (*factors, rows, root)} == {root.dtype}
    return fits and root.dtype in INEXACT and product.single_reader and not _feeds_elementwise(root)


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
"""A broadcast addend initialises the result of a gemm. So does the addend of a product whose
operands have different stack shapes, which has no normal form."""

PRODUCT_RULES = (
    GEMM_ROWS_RULE,
    *tuple(
        Rule(
            f"products-{name}",
            pattern(op),
            _cheapest_form,
            when=is_expression_root,
            exactness="linear-algebra",
        )
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
