"""Products: sums of products of matrices with the fewest multiply-adds. Class linear-algebra.

Takes the largest expression around a node that is made of products, sums, scales, transposes and
conjugates which nobody else needs, in one floating dtype; reads it as words (`rules/factoring.py`),
hands on the cheapest sum of them: chains in the best order, what is alike factored out, the rest
distributed. Scales, signs, transposes and conjugates go into the flags of `gemm`, and what is
added is where the next product is accumulated.

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
from tenfold.ops.gemm import gemm
from tenfold.ops.movement import permute_dims
from tenfold.rules.factoring import best
from tenfold.rules.products_made import made
from tenfold.rules.products_read import DTYPES, alike, belongs, joins, read, score


class _Surroundings:
    """What is known of a graph as it was written: who reads a node, if one node does."""

    def __init__(self, work: Rewriting) -> None:
        self.readers: dict[int, int] = {}
        self.made: set[int] = set()
        """What the rules have made: nothing is to be gained there."""
        several: set[int] = set()
        self.products = False
        for at, inputs in enumerate(work.written):
            self.products = self.products or work.ops[at] in (matmul, gemm)
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


def _cheaper(match: Match) -> Term | None:
    root = match.root
    words = read(root)
    if words is None:
        return None
    work, before = root.work, len(root.work.nodes)
    looked = work.looked
    by = made(match, best(words)[1], accumulated=not _mapped(root))
    work.looked = looked  # numbers are operands before and after: any may stand there
    _around(work).made.update(range(before, len(work.nodes)))
    return by if score(by) < score(root) else None


def _begins_with_rows(match: Match) -> bool:
    """Whether rows that are repeated, or a stack that is made of another, are added to a product
    that nobody else needs, and no kernel passes by.
    """
    root, rows, factors = match.root, match["z"], (match["x"], match["y"])
    (product,) = {each for each in root.inputs if each.op is matmul and each.inputs == factors}
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
