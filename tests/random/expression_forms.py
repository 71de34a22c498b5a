"""The forms of expressions: for each operation how a user writes it, and what NumPy makes of it.

A form takes a Draft (the arrays at hand and a source of choices), hands on a Drawn expression, or
None where nothing fits. Operations with jumps (comparisons, rounding, positions) take exact
operands only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold.core.op import OPS

from . import error_bounds, reduction_forms
from .error_bounds import Bounded, Operand, common, exact, moved
from .expression_draft import Draft


class Drawn(NamedTuple):
    """An expression: a user's text of it, its operands, and NumPy's function of them."""

    text: str
    operands: tuple[Any, ...]
    function: Callable[..., Bounded]
    view: bool = False


Form = Callable[[Draft], Drawn | None]
NUMBERS, REALS, WHOLE, ALL = "iufc", "iuf", "iu", "biufc"


def _jumping(function: Callable[..., Any], result: Any = None) -> Callable[..., Bounded]:
    """A function of the values in their common dtype (halves in float32), which are exact.

    Integers are compared as they are, also where no integer dtype holds both.
    """

    def compute(*operands: Operand) -> Bounded:
        dtype = common(*operands)
        if result is bool and all(isinstance(x, Bounded) and x.kind in "iu" for x in operands):
            return exact(function(*(x.values for x in operands)))
        if dtype == np.bool_ and result is np.int8:
            dtype = np.dtype(np.int8)
        wide = np.dtype(np.float32) if dtype in error_bounds.HALVES else dtype
        values = function(*(error_bounds.cast(x, dtype).values.astype(wide) for x in operands))
        return exact(
            error_bounds.converted(np.asarray(values), np.dtype(bool) if result is bool else dtype)
        )

    return compute


def _binary(symbol: str, function: Callable[..., Bounded], kinds: str, *, jumps: bool) -> Form:
    def form(draft: Draft) -> Drawn | None:
        pair = draft.pair(kinds, exact=jumps)
        if pair is None:
            return None
        text = f"{pair[0]!r} {symbol} {pair[1]!r}"
        return Drawn(text, pair, function)

    return form


def _called(name: str, function: Callable[..., Bounded], kinds: str, *, jumps: bool) -> Form:
    def form(draft: Draft) -> Drawn | None:
        pair = draft.pair(kinds, exact=jumps)
        return pair and Drawn(f"tn.{name}({pair[0]!r}, {pair[1]!r})", pair, function)

    return form


def _without_nan(form: Form) -> Form:
    """A form that reads the signs of its operands: that of NaN is anybody's."""

    def draw(draft: Draft) -> Drawn | None:
        drawn = form(draft)
        named = [draft.arrays[x] for x in drawn.operands if x in draft.arrays] if drawn else []
        return None if any(np.isnan(x.values).any() for x in named) else drawn

    return draw


def _unary(
    text: str,
    function: Callable[..., Bounded],
    kinds: str,
    *,
    jumps: bool = False,
    view: bool = False,
) -> Form:
    def form(draft: Draft) -> Drawn | None:
        name = draft.array(kinds, exact=jumps)
        return None if name is None else Drawn(text.format(name), (name,), function, view)

    return form


def _floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.floor_divide(x, y)
    return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.remainder(x, y)
    return np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _shift(direction: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """In Python's whole numbers: a count beyond the width, or a negative one, moves every bit."""

    def shifted(x: int, count: int, bits: int) -> int:
        count = count if 0 <= count < bits else bits
        return x << count if direction > 0 else x >> count

    def shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = np.broadcast_arrays(x, y)
        bits = 8 * x.dtype.itemsize
        pairs = zip(x.flat, y.flat, strict=True)
        moved_bits = [shifted(int(a), int(b), bits) & (2**bits - 1) for a, b in pairs]
        unsigned = np.dtype(f"uint{bits}")
        return np.array(moved_bits, unsigned).reshape(x.shape).view(x.dtype)

    return shift


def _ordered_zeros(ufunc: np.ufunc) -> Callable[..., Bounded]:
    """maximum and minimum with -0 below 0; errors as the larger of the two."""

    def compute(a: Operand, b: Operand) -> Bounded:
        dtype = common(a, b)
        x, y, ex, ey = error_bounds.operands_of(a, b, dtype=dtype)
        values = ufunc(x, y)
        if error_bounds.kind(dtype) == "f":
            combine = np.logical_and if ufunc is np.maximum else np.logical_or
            negative = combine(np.signbit(x), np.signbit(y))
            values = np.where((x == 0) & (y == 0), np.where(negative, -0.0, 0.0), values)
        return error_bounds.finish(values, np.maximum(ex, ey), dtype)

    return compute


def _where(draft: Draft) -> Drawn | None:
    condition = draft.array("b", exact=True)
    pair = draft.pair(ALL, near=condition)
    if condition is None or pair is None:
        return None
    text = f"tn.where({condition}, {pair[0]!r}, {pair[1]!r})"
    return Drawn(text, (condition, *pair), _chosen)


def _chosen(condition: Bounded, a: Operand, b: Operand) -> Bounded:
    dtype = common(a, b)
    x, y = error_bounds.cast(a, dtype), error_bounds.cast(b, dtype)
    values = np.where(condition.values, x.values, y.values)
    return error_bounds.finish(values, np.where(condition.values, x.error, y.error), dtype, units=0)


def _cast(draft: Draft) -> Drawn | None:
    dtype = draft.dtype()
    discrete = error_bounds.kind(dtype) in "biu"
    real = dtype.kind != "c" and dtype != np.bool_
    name = draft.array("biuf" if real else ALL, exact=discrete)
    if name is None:
        return None
    return Drawn(f"tn.astype({name}, tn.{dtype})", (name,), lambda x: error_bounds.cast(x, dtype))


def _power(draft: Draft) -> Drawn | None:
    name = draft.array("iuf", exact=True)
    if name is None:
        return None
    whole = draft.value(name).kind in WHOLE
    exponent = draft.choose([0, 1, 2, 3] if whole else [2, 0.5, 3, -1.0])

    def power(x: Bounded) -> Bounded:
        if whole:
            return exact(np.power(x.values, np.array(exponent, x.dtype)))
        return error_bounds.smooth(
            x, lambda v: np.power(v, np.longdouble(exponent)), 4, monotone=False
        )

    return Drawn(f"{name} ** {exponent}", (name,), power)


def _same(ufunc: Callable[..., Any]) -> Callable[[Bounded], Bounded]:
    """A function whose slope is at most 1 and which rounds nothing."""
    return lambda x: error_bounds.finish(np.asarray(ufunc(x.values)), x.error, x.dtype, units=0)


def _modulus(x: Bounded) -> Bounded:
    if x.kind != "c":
        return _same(np.abs)(x)
    dtype = np.dtype(np.float32 if x.dtype == np.complex64 else np.float64)
    size = np.abs(x.values)
    lost = error_bounds.unpromised(x.dtype, x.values)
    return error_bounds.finish(
        size, np.where(lost, np.inf, x.error + 5 * error_bounds.ulp(size, dtype)), dtype
    )


def _part(name: str) -> Callable[[Bounded], Bounded]:
    """A view of the parts; the imaginary ones of real numbers are read-only."""

    def part(x: Bounded) -> Bounded:
        return Bounded(getattr(x.values, name), x.error)

    return part


def _rounded(function: Any) -> Callable[[Bounded], Bounded]:
    """Rounding to whole numbers keeps the dtype; the nearest of bool is a float16, as NumPy's."""

    def compute(x: Bounded) -> Bounded:
        dtype = np.dtype(np.float16) if x.kind == "b" and function is np.round else x.dtype
        wide = x.values.astype(np.float32) if dtype in error_bounds.HALVES else x.values
        values = x.values if x.kind in "biu" else function(wide)
        return exact(error_bounds.converted(np.asarray(values), dtype))

    return compute


def _question(function: Any) -> Callable[[Bounded], Bounded]:
    return lambda x: exact(function(x.values))


def _truths(function: Any) -> Callable[..., Bounded]:
    def compute(*operands: Operand) -> Bounded:
        return exact(function(*(x.values if isinstance(x, Bounded) else x for x in operands)))

    return compute


def _smooth(name: str, function: Callable[..., Any], *, monotone: bool = True) -> Form:
    units = max(OPS[name].accuracy, 4)
    return _unary(
        f"tn.{name}({{}})",
        lambda x: error_bounds.smooth(x, function, units, monotone=monotone),
        "biuf",
    )


ONE = np.longdouble(1)
ELEMENTARY: list[Form] = [
    _smooth("exp", np.exp),
    _smooth("expm1", np.expm1),
    _smooth("exp2", np.exp2),
    _smooth("log", np.log),
    _smooth("log1p", np.log1p),
    _smooth("log2", np.log2),
    _smooth("log10", np.log10),
    _smooth("cbrt", np.cbrt),
    _smooth("sin", np.sin, monotone=False),
    _smooth("cos", np.cos, monotone=False),
    _smooth("tanh", np.tanh),
    _smooth("sinh", np.sinh),
    _smooth("asinh", np.arcsinh),
    _smooth("atan", np.arctan),
    _smooth("sigmoid", lambda x: ONE / (ONE + np.exp(-x))),
    _smooth("softplus", lambda x: np.logaddexp(x, np.longdouble(0))),
]
ARITHMETIC: list[Form] = [
    _binary("+", error_bounds.add, ALL, jumps=False),
    _binary("-", error_bounds.subtract, NUMBERS, jumps=False),
    _binary("*", error_bounds.multiply, ALL, jumps=False),
    _binary("/", error_bounds.divide, ALL, jumps=False),
    _binary("//", _jumping(_floor_divide, np.int8), "biuf", jumps=True),
    _binary("%", _jumping(_remainder, np.int8), "biuf", jumps=True),
    _called("maximum", _ordered_zeros(np.maximum), "biuf", jumps=False),
    _called("minimum", _ordered_zeros(np.minimum), "biuf", jumps=False),
    _power,
    _unary("-{}", _same(np.negative), NUMBERS),
    _unary("abs({})", _modulus, ALL),
    _unary("tn.sqrt({})", error_bounds.sqrt, ALL),
    _unary("tn.square({})", lambda x: error_bounds.multiply(x, x), NUMBERS),
    _unary("tn.conj({})", _same(np.conj), NUMBERS),
    _unary("tn.real({})", _part("real"), NUMBERS, view=True),
    _unary("tn.imag({})", _part("imag"), NUMBERS, view=True),
    _unary("tn.relu({})", lambda x: _ordered_zeros(np.maximum)(x, 0), "iuf"),
]
DISCRETE: list[Form] = [
    *(
        _binary(symbol, _jumping(function, bool), kinds, jumps=True)
        for symbol, function, kinds in [
            ("<", np.less, "biuf"),
            ("<=", np.less_equal, "biuf"),
            (">", np.greater, "biuf"),
            (">=", np.greater_equal, "biuf"),
            ("==", np.equal, ALL),
            ("!=", np.not_equal, ALL),
        ]
    ),
    _binary("&", _jumping(np.bitwise_and), "biu", jumps=True),
    _binary("|", _jumping(np.bitwise_or), "biu", jumps=True),
    _binary("^", _jumping(np.bitwise_xor), "biu", jumps=True),
    _binary("<<", _jumping(_shift(1), np.int8), "biu", jumps=True),
    _binary(">>", _jumping(_shift(-1), np.int8), "biu", jumps=True),
    _unary("~{}", _jumping(np.invert), "biu", jumps=True),
    _unary("tn.floor({})", _rounded(np.floor), "biuf", jumps=True),
    _unary("tn.ceil({})", _rounded(np.ceil), "biuf", jumps=True),
    _unary("tn.trunc({})", _rounded(np.trunc), "biuf", jumps=True),
    _unary("tn.round({})", _rounded(np.round), "biuf", jumps=True),
    _unary("tn.isnan({})", _question(np.isnan), ALL, jumps=True),
    _unary("tn.isfinite({})", _question(np.isfinite), ALL, jumps=True),
    _unary("tn.isinf({})", _question(np.isinf), ALL, jumps=True),
    _without_nan(_unary("tn.signbit({})", _question(np.signbit), "f", jumps=True)),
    _called("logical_and", _truths(np.logical_and), ALL, jumps=True),
    _called("logical_or", _truths(np.logical_or), ALL, jumps=True),
    _called("logical_xor", _truths(np.logical_xor), ALL, jumps=True),
    _without_nan(_called("copysign", _jumping(np.copysign), "f", jumps=True)),
    _unary("tn.logical_not({})", _question(np.logical_not), ALL, jumps=True),
    _where,
    _where,
    _cast,
    _cast,
]


def _along(name: str, function: Callable[..., Bounded], kinds: str, *, jumps: bool = False) -> Form:
    def form(draft: Draft) -> Drawn | None:
        operand = draft.array(kinds, exact=jumps)
        if operand is None:
            return None
        x = draft.value(operand)
        axis = draft.axes(x.ndim) if name not in ("argmax", "argmin") else draft.axis(x.ndim)
        keepdims = draft.choose([False, True])
        if name in ("max", "min", "argmax", "argmin", "mean") and not _has_elements(x, axis):
            return None
        text = f"tn.{name}({operand}, axis={axis}, keepdims={keepdims})"
        return Drawn(text, (operand,), lambda v: function(v, axis, keepdims))

    return form


def _has_elements(x: Bounded, axis: Any) -> bool:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return all(x.shape[each] for each in axes)


def _whole_fold(function: Any) -> Callable[..., Bounded]:
    def compute(x: Bounded, axis: Any, keepdims: bool) -> Bounded:
        wide = x.values.astype(np.float32) if x.dtype in error_bounds.HALVES else x.values
        return exact(function(wide, axis=axis, keepdims=keepdims))

    return compute


def _cumulative_sum(draft: Draft) -> Drawn | None:
    name = draft.array(ALL)
    if name is None or not draft.value(name).ndim:
        return None
    axis = draft.integer(0, draft.value(name).ndim - 1)
    form = draft.choose(["", "include_initial", "exclusive"])
    option = f", {form}=True" if form else ""

    def scan(x: Bounded) -> Bounded:
        scanned = reduction_forms.cumulated(x, axis)
        if not form:
            return scanned
        widths = [(int(i == axis), 0) for i in range(x.ndim)]
        length = x.shape[axis] + (form == "include_initial")
        key = tuple(slice(length if i == axis else None) for i in range(x.ndim))
        return moved(scanned, lambda v: np.pad(v, widths)[key])

    return Drawn(f"tn.cumulative_sum({name}, axis={axis}{option})", (name,), scan)


def _matmul(draft: Draft) -> Drawn | None:
    name = draft.array(NUMBERS)
    if name is None or draft.value(name).ndim != 2:
        return None
    return Drawn(
        f"{name} @ {name}.T", (name,), lambda x: reduction_forms.matmul(x, moved(x, np.transpose))
    )


def _sort(draft: Draft) -> Drawn | None:
    name = draft.array("biuf", exact=True)
    if name is None or not draft.value(name).ndim or np.isnan(draft.value(name).values).any():
        return None
    axis = draft.integer(0, draft.value(name).ndim - 1)
    if draft.value(name).kind == "f" and (draft.value(name).values == 0).any():
        return None  # -0 and 0 are equal and keep their order, which NumPy does not promise
    if draft.integer(0, 1):
        text = f"tn.argsort({name}, axis={axis})"
        return Drawn(text, (name,), lambda x: exact(np.argsort(x.values, axis, kind="stable")))
    return Drawn(
        f"tn.sort({name}, axis={axis})", (name,), lambda x: exact(np.sort(x.values, axis=axis))
    )


FOLDING: list[Form] = [
    _along("sum", reduction_forms.sum_of, ALL),
    _along("sum", reduction_forms.sum_of, ALL),
    _along("prod", reduction_forms.prod_of, "biuf"),
    _along("mean", reduction_forms.mean_of, "biuf"),
    _along("max", lambda *a: reduction_forms.extreme(np.maximum, *a), "biuf"),
    _along("min", lambda *a: reduction_forms.extreme(np.minimum, *a), "biuf"),
    _along("any", _whole_fold(np.any), ALL, jumps=True),
    _along("all", _whole_fold(np.all), ALL, jumps=True),
    _along("count_nonzero", _whole_fold(np.count_nonzero), ALL, jumps=True),
    _along("argmax", _whole_fold(np.argmax), "biuf", jumps=True),
    _along("argmin", _whole_fold(np.argmin), "biuf", jumps=True),
    _cumulative_sum,
    _matmul,
    _sort,
]
