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

from weakref import WeakKeyDictionary

from tenfold.ir.op import Kind
from tenfold.ir.pattern import pattern, variables
from tenfold.ir.rewriting import Rewriting
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
from tenfold.rules.products_read import DTYPES, UPDATES, belongs, joins, read, score


class _Surroundings:
    """What is known of a graph as it was written: who reads a node, if one node does."""

    def __init__(self, work: Rewriting) -> None:
        self.readers: dict[int, int] = {}
        self.made: set[int] = set()
        """What the rules have made: nothing is to be gained there."""
        several: set[int] = set()
        self.products = False
        for at, inputs in enumerate(work.written):
            self.products = self.products or work.ops[at] in (matmul, *UPDATES)
            for i in inputs:
                several.update([i] if i in self.readers else [])
                self.readers[i] = at
        for i in several:
            del self.readers[i]


_known: WeakKeyDictionary[Rewriting, _Surroundings] = WeakKeyDictionary()


def _around(work: Rewriting) -> _Surroundings:
    found = _known.get(work)
    if found is None:
        found = _known[work] = _Surroundings(work)
    return found


def whole(match: Match) -> bool:
    """Whether the root is the top of an expression that may have a product in it."""
    work = match.root.work
    around = _around(work)
    if not around.products or match.root.at in around.made or not belongs(match.root):
        return False
    reader = _reader(match.root)
    return reader is None or not (belongs(reader) and joins(match.root))


def _reader(term: Term) -> Term | None:
    """The one node that reads a term, if it is as it was written."""
    at = _around(term.work).readers.get(term.at)
    if at is None or not term.alone or not term.work.needed(at):
        return None
    return Term(term.work, at)


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
    words = read(root)
    if words is None:
        return None
    work, before = root.work, len(root.work.nodes)
    looked = work.looked
    halves = not _read_in_part(root)
    by = made(match, best(words, halves=halves)[1], accumulated=not _mapped(root), halves=halves)
    work.looked = looked  # numbers are operands before and after: any may stand there
    _around(work).made.update(range(before, len(work.nodes)))
    return by if score(by) < score(root) else None


def _begins_with_rows(match: Match) -> bool:
    """Whether a row is added to a product that nobody else needs, and no kernel passes by."""
    root, row, product = match.root, match["z"], match.root.inputs
    x1, x2 = match["x"], match["y"]
    matrices = len(x1.shape) == len(x2.shape) == 2 and min(root.shape, default=0) > 1
    rows = row.shape in (root.shape[1:], (1, *root.shape[1:]))
    same = x1.dtype == x2.dtype == row.dtype == root.dtype and root.dtype in DTYPES
    alone = any(each.op is matmul and each.alone for each in product)
    return matrices and rows and same and alone and not row.is_scalar and not _mapped(root)


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
"""A row that is added to every row of a product is what the product begins with."""

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
