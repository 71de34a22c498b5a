"""Products: sums of products of matrices with the fewest multiply-adds. Class linear-algebra.

Takes the largest expression around a node that is made of products, sums, scales, transposes and
conjugates which nobody else needs, in one floating dtype; reads it as words (`rules/factoring.py`),
hands on the cheapest sum of them: chains in the best order, what is alike factored out, the rest
distributed. Scales, signs, transposes and conjugates go into the flags of `gemm`, and what is
added is where the next product is accumulated. Where half of a product is known, as of `x @ x.T`
and `tril(x) @ y`, half is computed.

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
from weakref import WeakKeyDictionary

from tenfold.ir.op import Kind
from tenfold.ir.pattern import pattern, variables
from tenfold.ir.rewriting import Operator, Rewriting
from tenfold.ir.rule import Match, Rule
from tenfold.ir.term import Term
from tenfold.ops.arithmetic import add, multiply, negative, subtract
from tenfold.ops.complex import conj
from tenfold.ops.contract import matmul
from tenfold.ops.diagonals import diagonal
from tenfold.ops.gemm import gemm
from tenfold.ops.indexing import index
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_over
from tenfold.rules.factoring import best
from tenfold.rules.products_made import made
from tenfold.rules.products_read import DTYPES, UPDATES, alike, belongs, joins, leaves, read, score


class _Known:
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
            self.products = any(op in (matmul, *UPDATES) for op in islice(ops, self.seen, None))
            self.seen = len(ops)
        return self.products


_all_known: WeakKeyDictionary[Rewriting, _Known] = WeakKeyDictionary()


def _known(work: Rewriting) -> _Known:
    found = _all_known.get(work)
    if found is None:
        found = _all_known[work] = _Known()
    return found


def whole(match: Match) -> bool:
    """Whether the root is the top of an expression that may have a product in it."""
    root = match.root
    if not _known(root.work).has_products(root.work.ops) or not belongs(root):
        return False
    reader = _reader(root)
    return reader is None or not (belongs(reader) and joins(root))


def _reader(term: Term) -> Term | None:
    """The one node that reads a term."""
    if not term.alone:
        return None
    readers = list(islice(term.work.readers(term.at), 2))
    return Term(term.work, readers[0]) if len(readers) == 1 else None


def _mapped(root: Term) -> bool:
    """Whether a kernel reads a term, element by element: what is added costs nothing there."""
    reader = _reader(root)
    return reader is not None and reader.op is not None and reader.op.kind is Kind.MAP


def _read_in_part(root: Term) -> bool:
    """Whether what reads a term may do with a part of it: a half of the whole would be more."""
    reader = _reader(root)
    return reader is not None and reader.op in (index, diagonal, sum_over)


def _cheaper(match: Match) -> Term | None:
    root = match.root
    letters = _known(root.work).letters
    made_of = leaves(root)
    if letters.get(root.at) == made_of:
        return None
    letters[root.at] = made_of
    words = read(root)
    if words is None:
        return None
    looked = root.work.looked
    halves = len(root.shape) <= 2 and not _read_in_part(root)
    by = made(match, best(words, halves=halves)[1], accumulated=not _mapped(root), halves=halves)
    root.work.looked = looked  # numbers are operands before and after: any may stand there
    if score(by) >= score(root):
        return None
    letters[by.at] = made_of
    return by


def _begins_with_rows(match: Match) -> bool:
    """Whether rows that are repeated, or a stack that is made of another, are added to a product
    that nobody else needs, and no kernel passes by.
    """
    root, rows, factors = match.root, match["z"], (match["x"], match["y"])
    product = next(each for each in root.inputs if each.op is matmul and each.inputs == factors)
    if rows.is_scalar or min(len(each.shape) for each in factors) < 2:
        return False
    fits = product.shape == root.shape and min(root.shape[-2:]) > 1
    repeated = rows.shape[-1:] == root.shape[-1:] and rows.shape != root.shape
    new = repeated or (rows.shape == root.shape and not alike(*factors))
    same = {each.dtype for each in (*factors, rows, root)} == {root.dtype}
    return fits and new and same and root.dtype in DTYPES and product.alone and not _mapped(root)


def _with_rows(match: Match) -> Term:
    return match.make(gemm, match["x"], match["y"], match["z"], params=("N", "N", 1, 0, 1))


x, y, z = variables("x y z")
ROWS = Rule(
    "products-rows",
    x @ y + z,
    _with_rows,
    when=_begins_with_rows,
    exactness="linear-algebra",
)
"""A row that is added to every row of a product is what the product begins with; and so is what is
added to a product of stacks that are not alike, which is not read as words."""

PRODUCTS = (
    ROWS,
    *tuple(
        Rule(f"products-{name}", pattern(op), _cheaper, when=whole, exactness="linear-algebra")
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
