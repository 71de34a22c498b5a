"""Random numbers: draws of a key and a draw number, generated inside the kernels that use them.

An element is a function of (key, draw, stream, its index) alone: `ops/philox.py`. Key and draw are
operands, so that one plan serves all draws, and no two draws are merged. Operands with leading axes
give a block of `size` for each of their elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.gather_rules import GatherSource, ResultIndex
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, operation
from tenfold.core.scalar_ir import Body, Element
from tenfold.core.shape_rules import Shape, broadcast, checked_shape, product
from tenfold.dtypes import FLOAT64, INT64, canonical, kind_of
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.ops import philox
from tenfold.ops.batch_rules import Members
from tenfold.ops.cast import astype
from tenfold.ops.philox import (
    ARRAYS,
    STREAM_SHIFT,
    STREAMS,
    UINT64,
    Block,
    Word,
    array_block,
    joined,
)
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where
from tenfold.settings import checked_device

Distribution = Callable[[Any, Block, np.dtype], Word]
"""From the words of a block to a number: `distribution(k, block, dtype)`."""
Integer = int | Array
"""A key or a draw number."""
Size = int | Shape | None
SHORT_ROW = 16
"""The elements of a packet of float64."""
COST = 60.0
"""The cost of a draw, in additions."""
_SAMPLES = tuple(
    SampleCall((), facts, (20260101, 77777))
    for facts in (
        {"size": 5},
        {"size": (3, 40)},
        {"size": (2, 0)},
        {},
    )
)


def operand(value: Any, name: str) -> Any:
    """Return a key or a draw number as an operand: an int as it is, else an integer Array.

    A number from 2**63 to 2**64 is taken by its bits, as int64.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if not -(2**63) <= number < 2**64:
            rule = f"{name} {number} has more than 64 bits"
            raise OverflowError(message("random", rule, (), "take it modulo 2**64"))
        return number - 2**64 if number >= 2**63 else number
    x = array_operand(value)
    if kind_of(x.dtype) not in "iu":
        rule = f"a {name} is an integer, not {x.dtype}"
        raise DTypeError("", rule, remedy="take both from rng.next_draw()")
    return x


def array_operand(value: Any) -> Array:
    """Return an argument as an Array: of any sequence, such as a list or a range, too."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    return array(np.asarray(value) if is_sequence else value)


def element_size(size: Size) -> Shape:
    """Return NumPy's `size` as a shape; None is one number."""
    return () if size is None else checked_shape(size)


def with_all_axes(
    parameters: Sequence[Any], size: Size, operands: Sequence[Any]
) -> tuple[Shape, list[Any]]:
    """Return the size of a draw, that of its parameters if it is None, and the parameters: numbers,
    or arrays with all axes, of key and draw first.
    """
    arrays = [x for x in parameters if isinstance(x, Array)]
    shape = broadcast((), *(x.shape for x in arrays))
    lengths = shape if size is None else element_size(size)
    if broadcast(shape, lengths) != lengths:
        rule = f"parameters of shape {shape} do not broadcast to size {lengths}"
        raise ShapeError("", rule, remedy="give a size that their shape broadcasts to")
    lead = max((x.ndim for x in operands if isinstance(x, Array)), default=0)
    ndim = lead + len(lengths)
    return lengths, [
        reshape(x, (1,) * (ndim - x.ndim) + x.shape)
        if isinstance(x, Array) and x.ndim < ndim
        else x
        for x in parameters
    ]


def has_short_rows(size: Shape) -> bool:
    """Whether rows of this size leave most lanes of a packet empty."""
    return len(size) > 1 and size[-1] < SHORT_ROW and product(size) > SHORT_ROW


def in_one_row(
    draw_op: Callable[..., Array], key: int, number: int, size: Size, **kw: Any
) -> Array:
    """Return a draw whose short rows are made as one long row: the same numbers."""
    lengths = tuple(size) if isinstance(size, (tuple, list)) else ()
    if not has_short_rows(lengths):
        return draw_op(key, number, size, **kw)
    return reshape(draw_op(key, number, product(lengths), **kw), lengths)


def checked_stream(stream: int) -> int:
    """Return the number of a stream, or raise ValueError."""
    if not 0 <= stream < STREAMS:
        raise ValueError(
            message(
                "random", f"stream {stream} is not in [0, {STREAMS})", remedy="give a smaller one"
            )
        )
    return int(stream)


def draw_rule(types: tuple[Type, ...], size: Shape, *params: Any) -> Inferred:
    """The result has the axes of key and draw, then those of `size`."""
    lead = broadcast(types[0].shape, types[1].shape)
    return Inferred((((*lead, *size), params[-2]),), (INT64, INT64))


def block_at(
    k: Body, at: ResultIndex, key: GatherSource, draw: GatherSource, size: Shape, stream: int
) -> Block:
    """Return the words of the element at an index."""
    lead = len(at) - len(size)
    index = k.constant(0, INT64)
    for axis in range(lead, len(at)):
        index = at[axis] if axis == lead else index * at.number(at.shape[axis]) + at[axis]
    if stream:
        index = index + (stream << STREAM_SHIFT)
    words = []
    for source in (key, draw):
        element = source.at(at.axes[lead - len(source.shape) : lead])
        assert isinstance(element, Element), "keys and draws are integers"
        words.append(k.bits(element, UINT64))
    return philox.block(words[0], words[1], k.bits(index, UINT64))


def draw_members(members: Members, size: Shape, *params: Any) -> Any:
    """Batch rule: the batch is one more leading axis of key or draw.

    An operand behind them is a number for each element of the leading axes, or has all axes.
    """
    if not any(members.batched[:2]):
        return NotImplemented
    lead = max(members.ndim(0), members.ndim(1))
    operands = []
    for at in range(len(members.operands)):
        ndim, batched = members.ndim(at), members.batched[at]
        if at < 2 or ndim == 0:
            operands.append(members.aligned(at, lead))
        else:  # all axes, and that of the batch, which a shared operand has not
            missing = lead + len(size) - ndim + (not batched)
            operands.append(members.spread(at, 0, missing))
    return members.call(operands, (size, *params))


def _declared(distribution: Distribution) -> dict[str, Any]:
    """Return the Op fields of a distribution of one block."""

    def reference(
        key: np.ndarray, draw: np.ndarray, size: Shape, stream: int, dtype: np.dtype, device: str
    ) -> np.ndarray:
        numbers = distribution(ARRAYS, array_block(key, draw, size, stream), dtype)
        return np.asarray(numbers).reshape(np.broadcast_shapes(key.shape, draw.shape) + size)

    def element_at(
        k: Body, at: ResultIndex, key: GatherSource, draw: GatherSource, *params: Any
    ) -> Any:
        size, stream, dtype, _ = params
        return distribution(k, block_at(k, at, key, draw, size, stream), dtype)

    return {
        "namespace": "random",
        "kind": Kind.VALUE,
        "rule": draw_rule,
        "reference": reference,
        "element_at": element_at,
        "batch": draw_members,
        "param_names": "size stream dtype -",
        "creates": True,
        "cost": COST,
        "samples": _SAMPLES,
    }


def _bind(key: Any, draw: Any, size: Size, stream: int, dtype: Any, allowed: str) -> BoundCall:
    name = canonical(dtype, "random")
    if str(name) not in allowed.split():
        rule = f"random numbers are {allowed.replace(' ', ' or ')}, not {name}"
        raise DTypeError("", rule, remedy="convert the result with tn.astype")
    operands = operand(key, "key"), operand(draw, "draw number")
    params = element_size(size), checked_stream(stream), name, checked_device(None)
    return BoundCall(operands, params)


def _bits(k: Any, block: Block, dtype: np.dtype) -> Word:
    return joined(*block[:2]) if dtype == UINT64 else k.convert(block[1] & philox.LOW, dtype)


def _unit(k: Any, block: Block, dtype: np.dtype) -> Word:
    return philox.half_open_unit(k, *block[:2], dtype)


@operation(**_declared(_bits))
def bits(
    key: Integer, draw: Integer, /, size: Size = None, *, dtype: Any = "uint64", stream: int = 0
) -> BoundCall:
    """Return random bits, as uint64 or uint32: those of Philox4x32-10 for this key and draw number.

    Streams 0 to 65535 are independent numbers of one draw.

    >>> import tenfold as tn
    >>> tn.random.bits(0, 0, 2).tolist()
    [16242730742183356629, 6679402142117448868]
    """
    return _bind(key, draw, size, stream, dtype, "uint64 uint32")


@operation(**_declared(_unit))
def random(
    key: Integer, draw: Integer, /, size: Size = None, *, dtype: Any = FLOAT64, stream: int = 0
) -> BoundCall:
    """Return uniform numbers in [0, 1): multiples of 2**-53, for float32 of 2**-24.

    >>> import tenfold as tn
    >>> tn.random.random(1, 2, 3).shape
    (3,)
    """
    return _bind(key, draw, size, stream, dtype, "float64 float32")


@operation(**_declared(philox.normal))
def standard_normal(
    key: Integer, draw: Integer, /, size: Size = None, *, dtype: Any = FLOAT64, stream: int = 0
) -> BoundCall:
    """Return numbers of the standard normal distribution, by Box and Muller's method.

    >>> import tenfold as tn
    >>> tn.random.standard_normal(1, 2, 3).shape
    (3,)
    """
    return _bind(key, draw, size, stream, dtype, "float64 float32")


@operation(**_declared(philox.exponential))
def standard_exponential(
    key: Integer, draw: Integer, /, size: Size = None, *, dtype: Any = FLOAT64, stream: int = 0
) -> BoundCall:
    """Return numbers of the exponential distribution of mean 1, by the inverse of its distribution.

    >>> import tenfold as tn
    >>> tn.random.standard_exponential(1, 2, 3).shape
    (3,)
    """
    return _bind(key, draw, size, stream, dtype, "float64 float32")


def _bounded_rule(types: tuple[Type, ...], size: Shape, *params: Any) -> Inferred:
    result = draw_rule(types[:2], size, *params)
    return Inferred(result.results, (INT64,) * 4)


def _bounded_reference(
    key: np.ndarray, draw: np.ndarray, low: np.ndarray, count: np.ndarray, *params: Any
) -> np.ndarray:
    size, stream, checked, dtype, _ = params
    if checked and np.any(count == 0):
        raise ValueError("low is not below high, or a bound is beyond the dtype")
    block = array_block(key, draw, size, stream)
    shape = np.broadcast_shapes(key.shape, draw.shape) + size
    lead = len(shape) - len(size)
    low, count = (
        np.atleast_1d(x.reshape(x.shape + (1,) * len(size)) if x.ndim <= lead else x).view(UINT64)
        for x in (low, count)
    )
    below = np.where(count == 0, joined(*block[:2]), philox.bounded(block, count))
    return (below + low).astype(dtype).reshape(shape)


def _bounded_at(
    k: Body,
    at: ResultIndex,
    key: GatherSource,
    draw: GatherSource,
    low: GatherSource,
    count: GatherSource,
    *params: Any,
) -> Element:
    size, stream, checked, dtype, _ = params
    block = block_at(k, at, key, draw, size, stream)
    lead = len(at) - len(size)
    bounds = []
    for source in (low, count):
        ndim = len(source.shape)
        element = source.at(at.axes if ndim > lead else at.axes[lead - ndim : lead])
        assert isinstance(element, Element), "bounds are integers"
        bounds.append(element)
    if checked:
        k.fail(bounds[1] == 0)
    start, number = (k.bits(bound, UINT64) for bound in bounds)
    below = k.select(number == 0, joined(*block[:2]), philox.bounded(block, number))
    return k.convert(below + start, dtype)


def _integers_again(key: Any, draw: Any, low: Any, count: Any, *params: Any) -> BoundCall:
    size, stream, checked, dtype, _ = params
    operands = [operand(key, "key"), operand(draw, "draw number")]
    lengths, bounds = with_all_axes((low, count), size, operands)
    if kind_of(dtype) not in "iub":
        raise DTypeError("", f"integers are not {dtype}", remedy="give an integer dtype")
    bound = lengths, checked_stream(stream), bool(checked), dtype, checked_device(None)
    return BoundCall((*operands, *bounds), bound)


@operation(
    namespace="random",
    kind=Kind.VALUE,
    rebind=_integers_again,
    rule=_bounded_rule,
    reference=_bounded_reference,
    element_at=_bounded_at,
    batch=draw_members,
    can_fail=True,
    remedy="give bounds with low < high, or endpoint=True with low <= high",
    creates=True,
    cost=COST,
    samples=[
        SampleCall((), {"size": 5}, (20260101, 77777, 6)),
        SampleCall((), {"size": (3, 40), "dtype": "int8"}, (20260101, 77777, -128, 128)),
        SampleCall((), {"size": (2, 0)}, (20260101, 77777, 1, 7)),
        SampleCall((), {"size": 40, "endpoint": True}, (20260101, 77777, -(2**63), 2**63 - 1)),
    ],
)
def integers(
    key: Integer,
    draw: Integer,
    /,
    low: int | Array | Sequence[int],
    high: int | Array | Sequence[int] | None = None,
    size: Size = None,
    *,
    dtype: Any = INT64,
    endpoint: bool = False,
    stream: int = 0,
) -> BoundCall:
    """Return integers from `low` (0 when only one bound is given) to below `high`, to `high` itself
    with `endpoint`; any integer dtype. Bounds broadcast with `size`.

    The 128 bits of a block times the count of numbers, divided by 2**128: without rejection, each
    number has its probability up to a relative error of 2**-64. Raises ValueError if there is no
    number between the bounds, or if one is beyond the dtype: at the call for ints, at the wait for
    arrays.

    >>> import tenfold as tn
    >>> bool(tn.all(tn.random.integers(1, 2, 10, 20, size=100) < 20))
    True
    """
    result = canonical(dtype, "integers")
    if kind_of(result) not in "iub":
        rule = f"integers have an integer dtype, not {result}"
        raise DTypeError("", rule, remedy="convert the result with tn.astype")
    first, last = (0, low) if high is None else (low, high)
    operands = [operand(key, "key"), operand(draw, "draw number")]
    bounds: list[Any]
    checked = False
    if isinstance(first, (int, np.integer)) and isinstance(last, (int, np.integer)):
        lengths = element_size(size)
        bounds = [*_number_bounds(int(first), int(last), result, endpoint)]
    else:
        checked = True
        lengths, *bounds = _array_bounds(first, last, size, result, endpoint, operands)
    params = (lengths, checked_stream(stream), checked, result, checked_device(None))
    return BoundCall((*operands, *bounds), params)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    """Return the least and the greatest number of a dtype of integers or truth values."""
    if kind_of(dtype) == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _number_bounds(low: int, high: int, dtype: np.dtype, endpoint: bool) -> tuple[int, int]:
    """Return the first number and the count of numbers, 2**64 as 0, by their bits."""
    last = high if endpoint else high - 1
    _refuse_beyond(low, "low", dtype)
    _refuse_beyond(last, "high", dtype)
    if low > last:
        rule = f"no integer is between low {low} and high {high}"
        raise ValueError(message("integers", rule, (), "give bounds with low < high"))
    return operand(low % 2**64, "bound"), operand((last - low + 1) % 2**64, "bound")


def _refuse_beyond(number: int, bound: str, dtype: np.dtype) -> None:
    minimum, maximum = _limits(dtype)
    if number < minimum or number > maximum:
        rule = f"{bound} is out of bounds for {dtype}"
        raise ValueError(message("integers", rule, remedy="give a wider dtype"))


def _array_bounds(
    low: Any, high: Any, size: Size, dtype: np.dtype, endpoint: bool, operands: list[Any]
) -> tuple[Shape, Any, Any]:
    """Return the size, and the first numbers and counts with all axes; 0 for wrong bounds."""
    first, is_first = _checked_bound(low, "low", dtype, exclusive=False)
    last, is_last = _checked_bound(high, "high", dtype, exclusive=not endpoint)
    is_valid = is_first & is_last & (first <= last)
    bounds = [astype(first, INT64), where(is_valid, astype(last - first + 1, INT64), 0)]
    lengths, (start, count) = with_all_axes(bounds, size, operands)
    return lengths, start, count


def _checked_bound(
    value: Any, name: str, dtype: np.dtype, *, exclusive: bool
) -> tuple[Array, Array]:
    """Return the numbers that a bound includes, and whether the dtype has them. They are uint64 for
    that dtype, else int64.
    """
    common = UINT64 if dtype == UINT64 else INT64
    if isinstance(value, (int, np.integer)):
        number = int(value) - exclusive
        if not exclusive or number >= 0:  # below 0 there is no number at all
            _refuse_beyond(number, name, dtype)
        least = _limits(common)[0]
        return array(np.asarray(max(number, least), common)), array(np.bool_(number >= least))
    x = array_operand(value)
    if kind_of(x.dtype) not in "iub":
        rule = f"a bound is an integer, not {x.dtype}"
        raise DTypeError("", rule, remedy="convert it with tn.astype(x, tn.int64)")
    x = x if x.dtype == UINT64 else astype(x, INT64)
    (minimum, maximum), (least, greatest) = _limits(dtype), _limits(x.dtype)
    is_valid = x > least if exclusive else x >= least
    x = x - 1 if exclusive else x
    if minimum > least:
        is_valid = is_valid & (x >= minimum)
    if maximum < greatest:
        is_valid = is_valid & (x <= maximum)
    return astype(x, common), is_valid
