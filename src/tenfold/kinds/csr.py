"""Sparse matrices in compressed rows (`tn.csr`): stored as the elements, their columns, and the
bounds of the rows.

Source of the format: Saad 2003, "Iterative Methods for Sparse Linear Systems", 2nd edition, 3.4.

>>> import tenfold as tn
>>> x = csr(tn.asarray([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 3], (2, 3))
>>> (x @ tn.ones(3)).tolist(), x.to_dense().tolist()
([3.0, 3.0], [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Op, Params
from tenfold.core.op_decorators import array, operation, values
from tenfold.dtypes import INT64, kind_of
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.kinds import csr_patterns, element_rules
from tenfold.kinds.csr_patterns import RowPattern
from tenfold.kinds.diagonal import DIAGONAL
from tenfold.kinds.permutation import PERMUTATION
from tenfold.ops import comparison, diagonal_tril_triu, reduce, selection
from tenfold.ops.arange import arange
from tenfold.ops.arithmetic import multiply
from tenfold.ops.assignment import put_at
from tenfold.ops.contract import matmul
from tenfold.ops.create import ones, zeros
from tenfold.ops.elementary import exp
from tenfold.ops.gathering import gather, take
from tenfold.ops.indexing import get_item
from tenfold.ops.movement import expand_dims, matrix_transpose, permute_dims
from tenfold.ops.reshaping import broadcast_to
from tenfold.ops.segment_reductions import segment_max, segment_min
from tenfold.ops.segment_sum import segment_sum
from tenfold.ops.segments import ragged_max, ragged_min, ragged_repeat, ragged_sum
from tenfold.ops.statistics import softmax
from tenfold.storage.kinds import (
    StorageKind,
    as_general,
    components,
    constructor_params,
    keeps_zeros,
    kept_indices,
    refusal,
    storage_kind,
)


def _rule(types: tuple[Type, ...], columns: int) -> Inferred:
    data, indices, indptr = types
    for type_, name in ((indices, "indices"), (indptr, "indptr")):
        if kind_of(type_.dtype) not in "iu":
            rule = f"{name} of {type_.dtype} are not integers"
            raise DTypeError("", rule, remedy="convert them with tn.astype(x, tn.int64)")
    if len(data.shape) != 1 or data.shape != indices.shape:
        rule = f"data of shape {data.shape} and indices of shape {indices.shape} are no elements"
        raise ShapeError("", rule, remedy="give one column index for each element")
    if len(indptr.shape) != 1 or not indptr.shape[0]:
        rule = f"indptr of shape {indptr.shape} has no bounds of rows"
        raise ShapeError("", rule, remedy="give one bound more than there are rows, from 0 on")
    dtypes = data.dtype, indices.dtype, indptr.dtype
    return Inferred((((indptr.shape[0] - 1, columns), data.dtype),), dtypes)


def _reference(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int
) -> np.ndarray:
    result = np.zeros((len(indptr) - 1, columns), data.dtype)
    result[RowPattern(indices, indptr).rows, indices] = data
    return result


@operation(rule=_rule, reference=_reference, storage="csr", public=False, portable=True)
def stored_csr(data: Array, indices: Array, indptr: Array, /, columns: int) -> BoundCall:
    """Return the matrix of elements `data`, (nnz,), at ascending columns of rows."""
    return BoundCall((data, indices, indptr), (operator.index(columns),))


def csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Array:
    """Return the sparse matrix of `shape` (m, n) in compressed rows: elements `data`, (nnz,), in
    columns `indices`, (nnz,) integers; those of row i are from `indptr[i]` to `indptr[i + 1]` - 1,
    (m + 1,) integers.

    Indices are read and checked once, here. Elements of one row need not be in order; those at one
    place are summed. Data may be pending, and is copied only for that. Products, sums, maps that
    are 0 at 0, transposes, rows and comparisons compute with the elements; elements outside are 0
    and take part in no arithmetic: 0 times NaN is not formed. What has no rule raises
    UnsupportedError and says what `x.to_dense()` would take; so do `np.asarray(x)` and assignments.

    Raises ShapeError for shapes that do not fit, DTypeError unless indices are integers, and
    IndexError for an index that is out of range or bounds that do not ascend.

    >>> import tenfold as tn
    >>> x = tn.csr([1.0, 2.0], [1, 0], [0, 1, 2], (2, 2))
    >>> (2 * x @ tn.asarray([1.0, 10.0])).tolist(), x.nnz
    ([20.0, 4.0], 2)
    """
    rows, columns = _checked_shape("csr", shape)
    data = array(np.asarray(data) if isinstance(data, (list, tuple)) else data)
    indices, indptr = (_indices(x) for x in (indices, indptr))
    _native.apply(stored_csr.id, (data, indices, indptr), (columns,))  # checks shapes and dtypes
    pattern = RowPattern(values(indices, "csr"), values(indptr, "csr"))
    fault = csr_patterns.check(pattern, (rows, columns))
    if fault is not None:
        remedy = "give columns from 0 to n - 1, and for each row where its elements end"
        raise IndexError(message("csr", fault, [data, indices, indptr], remedy))
    if csr_patterns.is_ordered(pattern):
        indices, indptr = map(kept_indices, (indices, indptr), pattern)
        return CSR.make(data, indices, indptr, params=(columns,))
    return _of_elements(data, pattern.rows, pattern.indices, (rows, columns))


def csr_from_coo(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Array:
    """Return the sparse matrix of `shape` (m, n) of elements `data`, (nnz,), at `rows` and
    `columns`, (nnz,) integers in any order. Elements at one place are summed, in order.

    Raises ShapeError for shapes that do not fit, DTypeError unless indices are integers, and
    IndexError for one that is out of range.

    >>> import tenfold as tn
    >>> tn.csr_from_coo([1.0, 2.0, 3.0], [1, 0, 1], [0, 1, 0], (2, 2)).to_dense().tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    shape = _checked_shape("csr_from_coo", shape)
    data = array(np.asarray(data) if isinstance(data, (list, tuple)) else data)
    # an ndarray is read here and now: no copy of it is made
    rows, columns = (x if isinstance(x, np.ndarray) else _indices(x) for x in (rows, columns))
    for indices, name in ((rows, "row"), (columns, "column")):
        if indices.shape != data.shape or data.ndim != 1:
            rule = f"{name}s of shape {indices.shape} do not place data of shape {data.shape}"
            remedy = "give a row and a column for each element"
            raise ShapeError("csr_from_coo", rule, [data, array(indices)], remedy)
        if kind_of(indices.dtype) not in "iu":
            remedy = "convert them with tn.astype(x, tn.int64)"
            raise DTypeError("csr_from_coo", f"{name}s are not integers", [array(indices)], remedy)
    at_rows, at_columns = (
        x if isinstance(x, np.ndarray) else values(x, "csr_from_coo") for x in (rows, columns)
    )
    try:
        return _of_elements(data, at_rows, at_columns, shape)
    except IndexError:
        is_row = at_rows.size and not 0 <= at_rows.min() <= at_rows.max() < shape[0]
        name, indices, length = ("row", rows, shape[0]) if is_row else ("column", columns, shape[1])
        rule = f"a {name} is not one of 0 to {length - 1}"
        operands = [array(indices)]
        raise IndexError(message("csr_from_coo", rule, operands, "give a larger shape")) from None


def _checked_shape(name: str, shape: Any) -> tuple[int, int]:
    try:
        rows, columns = map(operator.index, shape)
    except (TypeError, ValueError):
        rule = f"shape {shape!r} is not (rows, columns)"
        raise ShapeError(name, rule, remedy="give two ints") from None
    if min(rows, columns) < 0:
        raise ShapeError(name, f"shape {shape!r} is negative", remedy="give lengths from 0 on")
    return rows, columns


def _indices(x: Any) -> Array:
    if isinstance(x, (list, tuple, range)):
        x = np.asarray(x)
        x = x if x.size else x.astype(INT64)
    return array(x)


def _of_elements(
    data: Array, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> Array:
    """Return the matrix of elements in any order, of which those at one place are summed."""
    pattern, order, group = csr_patterns.ordered(rows, columns, shape)
    elements = data if order is None else take(data, _known(order, data))
    if group is not None:
        total = len(pattern.indices)
        elements = segment_sum(elements, _known(group, data), total)
        if elements.dtype != data.dtype:
            elements = elements.astype(data.dtype)
    return _make(elements, pattern, shape[1])


def _known(values: np.ndarray, peer: Array) -> Array:
    return array(values, peer)


def _make(data: Array, pattern: RowPattern, columns: int) -> Array:
    return CSR.make(data, *(_known(part, data) for part in pattern), params=(columns,))


def _to_dense(x: Array) -> Array:
    data, indices, _ = components(x)
    target = zeros(x.shape, dtype=x.dtype, device=x.device)
    operands = target, data, row_of_elements(x), indices
    result: Array = _native.apply(put_at.id, operands, ((0, 1), 0))
    return result


def row_of_elements(x: Array) -> Array:
    """Return the row of each element, (nnz,)."""
    data, _, indptr = components(x)
    rows = arange(x.shape[0], dtype=indptr.dtype, device=x.device)
    return ragged_repeat(rows, indptr, data.shape[0])


def _at_elements(x: Array, y: Array) -> Array:
    """The elements of a dense array, which broadcasts to the shape of `x`, at those of `x`."""
    data, indices, _ = components(x)
    if y.ndim == 0:
        return y
    if y.ndim == 1 or y.shape[0] == 1 < x.shape[0]:
        row = y if y.ndim == 1 else get_item(y, 0)
        return take(row, indices) if len(row) == x.shape[1] else broadcast_to(row, data.shape)
    if y.shape[1] == 1 < x.shape[1]:
        return take(get_item(y, (slice(None), 0)), row_of_elements(x))
    return gather(y, row_of_elements(x), indices)


_same_places = element_rules.rule_of(_at_elements)


def _elementwise(op: Op[...], operands: Sequence[Any], params: Params) -> Any:
    """The rule of maps: of two patterns the union, of a product the places that both have."""
    kinded = [i for i, x in enumerate(operands) if isinstance(x, Array) and storage_kind(x)]
    if len(kinded) == len(operands) == 2:
        x, y = map(as_general, operands)
        if not storage_kind(x) is storage_kind(y) is CSR or x.shape != y.shape:
            return NotImplemented
        if not element_rules.has_places_of(x, y):
            return _of_two_patterns(op, x, y, params)
    is_csr = storage_kind(operands[kinded[0]]) is CSR
    return _same_places(op, operands, params) if is_csr else NotImplemented


def _of_two_patterns(op: Op[...], x: Array, y: Array, params: Params) -> Any:
    if op is not multiply and not keeps_zeros(op, (x, y), {0, 1}, params):
        return NotImplemented
    pattern, first, second = csr_patterns.union(_pattern(x), _pattern(y), x.shape[1])
    if op is multiply:
        both = (first >= 0) & (second >= 0)
        indptr = np.zeros_like(pattern.indptr)
        np.cumsum(np.bincount(pattern.rows[both], minlength=x.shape[0]), out=indptr[1:])
        pattern, first, second = (
            RowPattern(pattern.indices[both], indptr),
            first[both],
            second[both],
        )
    elements = [_elements_or_zero(z, at) for z, at in ((x, first), (y, second))]
    return _make(_native.apply(op.id, tuple(elements), params), pattern, x.shape[1])


def _elements_or_zero(x: Array, positions: np.ndarray) -> Array:
    """The elements of `x` at positions in its data; 0 for -1."""
    (data, *_) = components(x)
    if not data.shape[0]:
        return zeros(positions.shape, dtype=x.dtype, device=x.device)
    if len(positions) and positions.min() >= 0:
        return take(data, _known(positions, x))
    at = _known(positions, x)
    zero = zeros((), dtype=x.dtype, device=x.device)
    return selection.where(at >= 0, take(data, selection.maximum(at, 0)), zero)


def _pattern(x: Array) -> RowPattern:
    """The known pattern of an array; its values are waited for."""
    _, indices, indptr = components(x)
    return RowPattern(values(indices, "csr"), values(indptr, "csr"))


CSR = StorageKind(
    name="csr",
    constructor=stored_csr,
    to_dense=_to_dense,
    elementwise=_elementwise,
    has_pattern=True,
    get_item=lambda x, key: _get_item(x, key),
)


@DIAGONAL.general
def _diagonal_as_csr(x: Array) -> Array | None:
    (d,) = components(x)
    if d.ndim > 1:
        return None
    places = arange(x.shape[0] + 1, device=x.device)
    return CSR.make(d, get_item(places, slice(None, -1)), places, params=(x.shape[0],))


@PERMUTATION.general
def _permutation_as_csr(x: Array) -> Array:
    (columns,), (dtype,) = components(x), constructor_params(x)
    data = ones(columns.shape, dtype=dtype, device=x.device)
    return CSR.make(data, columns, arange(x.shape[0] + 1, device=x.device), params=x.shape[:1])


@CSR.rule(matmul)
def _product(x: Any, y: Any) -> Any:
    kinds = storage_kind(x), storage_kind(y)
    if kinds == (CSR, CSR):
        return _sparse_product(x, y)
    if kinds == (CSR, DIAGONAL) and y.ndim == 2:
        return multiply(x, components(y)[0])
    if kinds == (DIAGONAL, CSR) and x.ndim == 2:
        return multiply(expand_dims(components(x)[0], axis=1), y)
    if kinds == (CSR, None) and y.ndim <= 2:
        return _times_dense(x, y)
    if kinds == (None, CSR) and x.ndim <= 2:
        return _dense_times(x, y)
    return NotImplemented


def _times_dense(x: Array, y: Array) -> Array:
    """The rows are sums in the order of the elements: SciPy's bits."""
    data, indices, _ = components(x)
    factors = data if y.ndim == 1 else expand_dims(data, axis=1)
    return _row_sums(x, multiply(factors, take(y, indices, axis=0)))


def _row_sums(x: Array, terms: Array) -> Array:
    """The sums of terms, (nnz, ...), over the elements of each row, in the dtype of the terms."""
    sums = ragged_sum(terms, components(x)[2])
    return sums if sums.dtype == terms.dtype else sums.astype(terms.dtype)


def _dense_times(x: Array, y: Array) -> Array:
    data, indices, _ = components(y)
    columns = x if x.ndim == 1 else matrix_transpose(x)
    factors = data if x.ndim == 1 else expand_dims(data, axis=1)
    terms = multiply(factors, take(columns, row_of_elements(y), axis=0))
    sums = segment_sum(terms, indices, y.shape[1])
    sums = sums if sums.dtype == terms.dtype else sums.astype(terms.dtype)
    return sums if x.ndim == 1 else matrix_transpose(sums)


def _sparse_product(x: Array, y: Array) -> Array:
    columns = y.shape[1]
    pattern, first, second, bounds = csr_patterns.product_of(_pattern(x), _pattern(y), columns)
    factors = [take(components(z)[0], _known(at, z)) for z, at in ((x, first), (y, second))]
    terms = multiply(*factors)
    sums = ragged_sum(terms, _known(bounds, x))
    return _make(sums if sums.dtype == terms.dtype else sums.astype(terms.dtype), pattern, columns)


@CSR.rule(permute_dims, by_values=True)
def _transposed(x: Array, axes: tuple[int, ...]) -> Array:
    if axes == (0, 1):
        return x
    pattern, order = csr_patterns.transpose_of(_pattern(x), x.shape[1])
    return _make(take(components(x)[0], _known(order, x)), pattern, x.shape[0])


@CSR.rule(diagonal_tril_triu.diagonal, by_values=True)
def _diagonal(x: Array, offset: int, first: int, second: int) -> Array:
    if first > second:
        offset = -offset
    rows, columns = x.shape
    pattern = _pattern(x)
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    at = np.flatnonzero(pattern.indices - pattern.rows.astype(INT64) == offset)
    positions = np.full(count, -1)
    positions[pattern.rows[at] - max(-offset, 0)] = at
    return _elements_or_zero(x, positions)


@CSR.rule(reduce.sum)
def _sum(x: Array, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Array:
    if not axes:
        return element_rules.with_elements(x, reduce.sum(components(x)[0], axis=(), dtype=dtype))
    data, indices, indptr = components(x)
    total = reduce.sum(data, dtype=dtype) if len(axes) == 2 else None
    if total is None:
        terms = data if dtype is None else data.astype(dtype)
        total = (
            ragged_sum(terms, indptr) if axes == (1,) else segment_sum(terms, indices, x.shape[1])
        )
        total = total if dtype is None else total.astype(dtype)
    return _with_kept_axes(total, axes) if keepdims else total


def _with_kept_axes(x: Array, axes: tuple[int, ...]) -> Array:
    for axis in axes:
        x = expand_dims(x, axis=axis)
    return x


def _stored_counts(x: Array, axis: int) -> Array:
    data, indices, indptr = components(x)
    if axis == 1:
        return get_item(indptr, slice(1, None)) - get_item(indptr, slice(None, -1))
    return segment_sum(ones(data.shape, dtype=INT64, device=x.device), indices, x.shape[1])


def _extreme(fold: Any, by_row: Any, by_segment: Any, combine: Any) -> Any:
    def rule(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
        data, indices, indptr = components(x)
        zero = zeros((), dtype=x.dtype, device=x.device)
        if not axes:
            return x
        if len(axes) == 2:
            result = fold(data) if data.shape[0] else zero
            result = combine(result, zero) if data.shape[0] < x.size else result
        else:
            (axis,) = axes
            stored = by_row(data, indptr) if axis == 1 else by_segment(data, indices, x.shape[1])
            is_full = _stored_counts(x, axis) == x.shape[axis]
            result = selection.where(is_full, stored, combine(stored, zero))
        return _with_kept_axes(result, axes) if keepdims else result

    return rule


CSR.rule(reduce.max)(_extreme(reduce.max, ragged_max, segment_max, selection.maximum))
CSR.rule(reduce.min)(_extreme(reduce.min, ragged_min, segment_min, selection.minimum))


@CSR.rule(softmax)
def _softmax(x: Array, axis: Any = -1) -> Array:
    """The softmax of the stored elements of each row: there is nothing outside of them."""
    if axis not in (1, -1):
        raise refusal(softmax.name, x)
    data, _, indptr = components(x)
    elements = data.shape[0]
    exponentials = exp(data - ragged_repeat(ragged_max(data, indptr), indptr, elements))
    total = ragged_repeat(ragged_sum(exponentials, indptr), indptr, elements)
    return element_rules.with_elements(x, exponentials / total)


@CSR.rule(reduce.count_nonzero)
def _count_nonzero(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    is_stored = element_rules.with_elements(x, comparison.not_equal(components(x)[0], 0))
    return reduce.sum(is_stored, axis=axes, keepdims=keepdims)


@CSR.rule(reduce.any)
def _any(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return comparison.greater(_count_nonzero(x, axes, keepdims), 0)


def _get_item(x: Array, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 2 and isinstance(keys[1], slice) and keys[1] == slice(None):
        keys = keys[:1]
    if len(keys) == 2 and all(_is_index(part) for part in keys):
        return _element(x, *map(operator.index, keys))
    if len(keys) != 1:
        return NotImplemented
    (rows,) = keys
    if _is_index(rows):
        row = _row_number(x, operator.index(rows))
        part = _take_rows(x, np.asarray([row]))
        data, indices, _ = components(part)
        target = zeros((x.shape[1],), dtype=x.dtype, device=x.device)
        return put_at(target, indices, data)
    if isinstance(rows, slice):
        return _take_rows(x, np.arange(x.shape[0])[rows])
    numbers = np.asarray(values(rows, "getitem") if isinstance(rows, Array) else rows)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        return NotImplemented
    return _take_rows(x, np.arange(x.shape[0])[numbers])


def _is_index(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def _row_number(x: Array, row: int, axis: int = 0) -> int:
    if not -x.shape[axis] <= row < x.shape[axis]:
        rule = f"index {row} is out of bounds for axis {axis} of length {x.shape[axis]}"
        raise IndexError(message("getitem", rule, [x]))
    return row % x.shape[axis]


def _element(x: Array, row: int, column: int) -> Array:
    row, column = _row_number(x, row), _row_number(x, column, 1)
    pattern = _pattern(x)
    start, stop = (int(bound) for bound in pattern.indptr[row : row + 2])
    at = start + int(np.searchsorted(pattern.indices[start:stop], column))
    if at == stop or pattern.indices[at] != column:
        return zeros((), dtype=x.dtype, device=x.device)
    return get_item(components(x)[0], at)


def _take_rows(x: Array, rows: np.ndarray) -> Array:
    pattern, order = csr_patterns.taken(_pattern(x), rows)
    return _make(take(components(x)[0], _known(order, x)), pattern, x.shape[1])


_native.set_sparse_product(ragged_sum.id, multiply.id, gather.id, ((0,), 0))

__all__ = ["CSR", "csr", "csr_from_coo", "row_of_elements"]
