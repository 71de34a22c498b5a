"""What the table-driven tests of elementwise operations share; import it as `from grid import ...`.

ALL_DTYPES, HALVES, INTEGERS  the dtypes by name
WEAK                          Python scalars, by the kind they have
SHAPES                        pairs of shapes that broadcast: with 0, 1, 0-d, rank 6
elementwise_ops(arity)        the elementwise operations of the op table, with so many operands
legal(op, dtypes)             whether an operation's dtype rule takes these dtypes
special_values(dtype)         zeros of both signs, infinities, NaN, subnormals, extremes, plain ones
values_for(op, dtypes)        those of each operand for which the operation has an answer
every_value(dtype)            all values of a dtype of 8 or 16 bits
every_combination(values)     the product of several axes of values, an axis for each operand
shared(ndarray)               an Array that reads the very memory, so that the layout stays
computed(array)               its values as an ndarray
same_or_close(...)            asserts dtype, shape, and values within some units in the last place
distance(a, b)                units in the last place between floats, over zero and subnormals
"""

from __future__ import annotations

import inspect
import itertools

import ml_dtypes
import numpy as np

import tenfold as tn
from tenfold._native import Type
from tenfold.core.op import OPS, Kind, Op
from tenfold.dtypes import DTYPES, PYTHON_TYPES, kind_of
from tenfold.errors import DTypeError

ALL_DTYPES = tuple(DTYPES)
HALVES = ("float16", "bfloat16")
INTEGERS = tuple(name for name in DTYPES if kind_of(DTYPES[name]) in "iu")
WEAK = {"bool": True, "int": 2, "float": 0.75, "complex": 1 + 2j}
SHAPES = (
    ((), ()),
    ((0,), (1,)),
    ((5,), ()),
    ((2, 3), (3,)),
    ((0, 3), (1, 3)),
    ((2, 1, 3), (4, 1)),
    ((1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1)),
)


def elementwise_ops(arity: int | None = None) -> list[Op]:
    """The elementwise operations of the table: a dtype rule, and no parameters but operands."""
    return [
        op
        for op in OPS.values()
        if isinstance(op, Op)
        and op.semantics.kind == Kind.MAP
        and op.semantics.dtypes is not None
        and arity in (None, arity_of(op))
    ]


def arity_of(op: Op) -> int:
    """How many operands an elementwise operation takes."""
    return len(inspect.signature(op.function).parameters)


def type_of(name: str) -> Type:
    """The Type of an array of one dtype, or of a Python scalar by the name of its class."""
    classes = {c.__name__: c for c in PYTHON_TYPES if c is not bool}
    if name in classes:
        return Type((), PYTHON_TYPES[classes[name]], "reference", weak=True)
    return Type((3,), DTYPES[name], "reference")


def legal(op: Op, names: tuple[str, ...]) -> bool:
    """Whether the op's dtype rule takes these dtypes ("int", "float", "complex" are scalars)."""
    try:
        op.semantics.dtypes(tuple(type_of(name) for name in names))
    except DTypeError:
        return False
    return True


def numpy_dtype(op: Op, names: tuple[str, ...]) -> np.dtype | None:
    """The dtype of NumPy's result; None where NumPy has no function for these dtypes."""
    if not op.numpy:
        return None
    classes = {"int": 1, "float": 1.0, "complex": 1j}
    arguments = [classes.get(name, np.ones(1, DTYPES.get(name, bool))) for name in names]
    try:
        with np.errstate(all="ignore"):
            return np.asarray(op.numpy[0](*arguments)).dtype
    except TypeError:
        return None


def special_values(name: str) -> np.ndarray:
    """Values of a dtype at which functions are easily wrong, and some plain ones, on one axis."""
    dtype = DTYPES[name]
    kind = kind_of(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        wanted = [0, 1, 2, 3, 5, 7, 100, limits.max - 1, limits.max, limits.min, limits.min + 1]
        return np.array(wanted + ([-1, -2, -7] if kind == "i" else []), dtype)
    if kind == "c":
        plain = [0, 1, -1, 1j, -1j, 3 + 4j, -3 + 4j, 0.5 - 0.25j, -0.7 - 2j, 1e-3 + 1e-5j, 20 - 7j]
        return np.array([*plain, complex(np.inf, 1), complex(np.nan, 2)], dtype)
    limits = ml_dtypes.finfo(dtype)
    positive = [0, 0.3, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, np.pi, 10, 70, 500, np.inf]
    ends = [limits.tiny, limits.smallest_subnormal, limits.max, limits.eps, 1 + limits.eps]
    positive = np.array([*positive, *(float(end) for end in ends)]).astype(dtype)
    return np.concatenate([positive, -positive, np.array([np.nan]).astype(dtype)])


def every_value(name: str) -> np.ndarray:
    """All values of a dtype of at most 16 bits, one axis."""
    dtype = DTYPES[name]
    if name == "bool":
        return np.array([False, True])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return np.arange(256**dtype.itemsize).astype(unsigned).view(dtype)


def values_for(op: Op, names: tuple[str, ...]) -> list[np.ndarray]:
    """Special values of each operand, one axis; no negative exponents for integer powers."""
    found = [special_values(name) if name in DTYPES else np.array([WEAK[name]]) for name in names]
    if (
        op.semantics.whole_exponent
        and kind_of(op.semantics.dtypes(tuple(map(type_of, names)))[1]) == "i"
    ):
        found[1] = found[1][found[1] >= 0]
    return found


def every_combination(values: list[np.ndarray]) -> list[np.ndarray]:
    """Every value of the first with every one of the second, and so on, each on one axis."""
    return [np.ascontiguousarray(grid).ravel() for grid in np.meshgrid(*values, indexing="ij")]


def shared(values: np.ndarray) -> tn.Array:
    """An Array of these values that reads the very memory, so that its layout stays."""
    values = values.view()
    values.flags.writeable = False
    return tn.asarray(values)


def computed(array: tn.Array) -> np.ndarray:
    """The values of an Array as an ndarray."""
    return np.asarray(array)


def distance(result: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Steps between floating numbers of one dtype; from the largest to infinity is one step."""

    def place(values: np.ndarray) -> np.ndarray:
        bits = values.view(f"i{values.itemsize}")
        lowest = np.iinfo(bits.dtype).min
        return np.where(bits < 0, lowest - bits, bits).astype(
            np.float64 if bits.itemsize < 8 else object
        )

    return np.abs(place(result) - place(expected))


def same_or_close(
    result: np.ndarray, expected: np.ndarray, accuracy: int = 0, floor: float = 0.0
) -> None:
    """Assert equality of dtype, shape and values: NaN where NaN, zeros by sign, `accuracy` units.

    For complex a unit is one of the modulus, and where a part is not finite neither result is.
    `floor`: the magnitude whose unit counts for smaller values.
    """
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    kind = kind_of(result.dtype)
    if kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    result, expected = result.ravel(), expected.ravel()
    with np.errstate(all="ignore"):
        if kind == "c":
            bad = _far_complex(result, expected, max(accuracy, 4))
        else:
            bad = _far_real(result, expected, accuracy, floor)
    found = list(itertools.islice(zip(result[bad], expected[bad], strict=True), 5))
    assert not bad.any(), f"{bad.sum()} differ by more than {accuracy}; (found, right): {found}"


def _far_real(result: np.ndarray, expected: np.ndarray, accuracy: int, floor: float) -> np.ndarray:
    nan = np.isnan(expected)
    far = distance(result, expected) > accuracy
    if floor:
        unit = float(ml_dtypes.finfo(result.dtype).eps) * floor
        far &= ~(np.abs(result - expected) <= accuracy * unit)
    far |= (expected == 0) & (result == 0) & (np.signbit(expected) != np.signbit(result))
    return np.where(nan, ~np.isnan(result), far | np.isnan(result))


def _far_complex(result: np.ndarray, expected: np.ndarray, accuracy: int) -> np.ndarray:
    finite = np.isfinite(expected)
    modulus = np.minimum(np.abs(expected), np.finfo(expected.dtype).max)
    far = np.abs(result - expected) > accuracy * np.spacing(modulus)
    return np.where(finite, far | ~np.isfinite(result), np.isfinite(result))
