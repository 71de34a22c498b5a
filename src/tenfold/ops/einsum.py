"""Einsum: sums of products written with letters, made of diagonals, sums and products.

Takes text such as "ij,jk->ik" and operands, hands on an Array. Text, dtype and shapes determine a
path, which is cached (`einsum_path`). First come sums over labels of one operand alone, then
products of two terms in their cheapest order (`contraction_order.py`). Each is one matrix product
or one map (`einsum_steps.py`). A call applies the operations of the path to its operands.

>>> from tenfold.dtypes import FLOAT64
>>> for step in einsum_path("ij,kj->ki", FLOAT64, ((2, 3), (4, 3))).steps:
...     print(step)
operand 0: permute_dims((1, 0))
operands 1, 2: matmul()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native, settings
from tenfold._native import Array
from tenfold.caches import memoized
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import promote, promotion_operand
from tenfold.errors import DTypeError
from tenfold.ops.cast import convert
from tenfold.ops.contraction_order import contraction_order
from tenfold.ops.create import number_of
from tenfold.ops.einsum_parser import Labels, label_lengths, parse_subscripts
from tenfold.ops.einsum_steps import EinsumPath, LabelledTerm, PathBuilder

MAX_CACHED_PATHS = 1024
"""The most cached paths; the least recently used one is evicted first."""


@memoized("einsum paths", MAX_CACHED_PATHS, "choosing the order of an einsum takes 0.1 ms")
def einsum_path(subscripts: str, dtype: np.dtype, shapes: tuple[Shape, ...]) -> EinsumPath:
    """Return the operations of an einsum of operands of one dtype, or raise ShapeError."""
    inputs, output = parse_subscripts(subscripts, [len(shape) for shape in shapes])
    lengths = label_lengths(inputs, shapes)
    builder = PathBuilder(dtype, len(shapes), lengths)
    operands = zip(inputs, shapes, strict=True)
    terms = [builder.operand(position, *operand) for position, operand in enumerate(operands)]
    if len(terms) > 1:
        # Axes of length 1 are dropped here; the last reshape restores them.
        squeezed = tuple(label for label in output if lengths[label] != 1)
        result = _contract_terms(builder, terms, squeezed)
        shape = tuple(lengths[label] for label in output)
        return EinsumPath((*builder.steps, *builder.reshape_step(result.position, squeezed, shape)))
    (term,) = terms
    builder.reorder(builder.sum_out(term, set(output)), output)
    if not builder.steps:
        # The result must not be the operand itself: rebinding one would rebind both.
        builder.permute(0, tuple(range(len(output))))
    return EinsumPath(tuple(builder.steps))


def _contract_terms(
    builder: PathBuilder, terms: list[LabelledTerm], output: Labels
) -> LabelledTerm:
    """Multiply terms in their cheapest order, and sum over the labels that the output lacks."""
    counts = Counter(label for term in terms for label in term.labels)
    needed_labels = {label for label, count in counts.items() if count > 1} | set(output)
    products: dict[int, LabelledTerm] = {
        i: builder.sum_out(term, needed_labels) for i, term in enumerate(terms)
    }
    label_counts = Counter(label for term in products.values() for label in term.labels)
    label_counts.update(output)
    labels = [term.labels for term in terms]
    pairs = contraction_order(
        [term.labels for term in products.values()], output, builder.lengths
    ).pairs
    for product_index, (a, b) in enumerate(pairs, len(labels)):
        first, second = products.pop(a), products.pop(b)
        label_counts.subtract((*first.labels, *second.labels))
        kept_labels = {x for x in (*first.labels, *second.labels) if label_counts[x] > 0}
        products[product_index] = builder.product(
            first, second, kept_labels, None if products else output
        )
        label_counts.update(products[product_index].labels)
    (result,) = products.values()
    return builder.reorder(result, output)


def _to_common_dtype(operands: Sequence[Any]) -> tuple[list[Array], np.dtype]:
    """Return the operands as Arrays of their common dtype, and that; Python scalars are weak."""
    if operands and type(operands[0]) is Array:
        dtype = operands[0].dtype
        if not [x for x in operands if type(x) is not Array or x.dtype is not dtype]:
            return list(operands), dtype
    return _convert_operands(operands)


def _convert_operands(operands: Sequence[Any]) -> tuple[list[Array], np.dtype]:
    """Return operands of several dtypes, or of other classes, in their common dtype."""
    arrays = [array(operand) for operand in operands]
    types = [promotion_operand(operand) for operand in operands]
    dtype = promote(types)
    dtypes = dict.fromkeys(str(type_.dtype) for type_ in types if not type_.weak)
    if len(dtypes) > 1 and settings.get("strict_dtypes"):
        rule = f"strict_dtypes refuses to mix {', '.join(dtypes)}"
        raise DTypeError("", rule, remedy="convert one with tn.astype")
    for position, (operand_, type_) in enumerate(zip(operands, types, strict=True)):
        if type_.weak:  # an int beyond the dtype is refused, where a cast would wrap it
            arrays[position] = array(number_of(operand_, dtype, "einsum"))
    return [convert(x, dtype) for x in arrays], dtype


@derived(
    numpy=(np.einsum,),
)
def einsum(subscripts: str, /, *operands: Any, optimize: Any = True) -> Array:
    """Sum of products over the axes that letters name: einsum("ij,jk->ik", x, y) is x @ y.

    `subscripts` has one term of letters for each operand and, after "->", the letters of the
    result. A letter that stands twice in a term takes the diagonal; one that the result lacks is
    summed; "..." stands for axes that broadcast, and so does an axis of length 1. Without "->" the
    result has the axes of "..." and the letters that stand once, sorted.

    dtypes promote first and the result has the common one: integers wrap, bool is "any of and",
    halves are accumulated in float32 in each product. Whatever NumPy's `optimize` says, operands
    are multiplied two at a time: up to 8 of them in the order of the fewest multiply-adds, of more
    always the two whose product is smallest against what it replaces. Raises ShapeError for text
    or lengths that do not fit, DTypeError for subscripts that are not a str.

    >>> import tenfold as tn
    >>> x, y = tn.asarray([[1, 2], [6, 5]]), tn.asarray([[1, 2], [5, 6]])
    >>> tn.einsum("ij,ij->", x, y).item(), tn.einsum("ii->i", x).tolist()
    (65, [1, 5])
    """
    if not isinstance(subscripts, str):
        raise _not_a_string(subscripts)
    arrays, dtype = _to_common_dtype(operands)
    values: list[Any] = arrays
    for op, positions, params in einsum_path(
        subscripts, dtype, tuple([x.shape for x in arrays])
    ).steps:
        inputs = tuple([values[position] for position in positions])
        values.append(_native.apply(op.id, inputs, params))
    result: Array = values[-1]
    return result


def _not_a_string(subscripts: object) -> DTypeError:
    """Return the error to raise for a first argument that is not a str."""
    remedy = "as in einsum('ij,jk->ik', x, y)"
    if isinstance(subscripts, (Array, np.ndarray)):
        remedy = "write lists of axes as letters, before the operands: einsum('ij,jk->ik', x, y)"
    rule = f"subscripts are text, not {type(subscripts).__name__}"
    return DTypeError("", rule, remedy=remedy)
