"""Kernel rules of elementwise operations: their packets have the bits of the reference."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tenfold as tn
from grid import (
    ALL_DTYPES,
    arity_of,
    elementwise_ops,
    every_combination,
    every_value,
    legal,
    same_or_close,
    special_values,
    type_of,
)
from packet_runner import CPUS, assembly, run, runnable
from tenfold.core.cast_values import cast_values
from tenfold.core.op import OPS, Op
from tenfold.core.scalar_ir import Body, ComplexElement, Operand
from tenfold.dtypes import DTYPES, REAL_DTYPES, kind_of
from tenfold.ops.cast import constant_element
from tenfold.schedule.elementwise_lowering import apply_rule

Signature = tuple[tuple[np.dtype, ...], np.dtype]
"""The dtypes of the operands in the computation, and of the result."""
RANDOM = 4_000
"""Random values of each operand, beside the special ones."""
PARTS_OF_COMPLEX = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e10)

cpus = pytest.mark.parametrize("cpu", runnable())


def ruled() -> list[Op]:
    """The operations with a kernel rule that rounds exactly, or does for integers."""
    return [op for op in elementwise_ops() if op.lowering.kernel is not None and signatures(op)]


def signatures(op: Op) -> list[Signature]:
    """What an operation is computed in by an exact rule, for all dtypes of its operands."""
    arity = arity_of(op)
    alike = ((name,) * arity for name in ALL_DTYPES)
    every = itertools.product(ALL_DTYPES, repeat=2) if arity == 2 else alike
    found = {
        op.semantics.dtypes(tuple(map(type_of, names))): None for names in every if legal(op, names)
    }
    inexact = "fc" if op.accuracy else "c" if op.page == "elementary" else ""
    return [each for each in found if kind_of(each[1]) not in inexact]


def random_values(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Values of all magnitudes: half of them any bits, half of them near 1 or whole."""
    generator = np.random.default_rng(seed)
    if dtype in REAL_DTYPES:
        made = np.empty(count, dtype)
        made.real, made.imag = (
            random_values(REAL_DTYPES[dtype], count, seed + i) for i in (100, 200)
        )
        return made
    if kind_of(dtype) == "b":
        return generator.integers(0, 2, count).astype(dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = generator.integers(0, 2**64, count, np.uint64).astype(unsigned)
    if kind_of(dtype) in "iu":
        bits >>= generator.integers(0, 8 * dtype.itemsize, count).astype(unsigned)
        signs = generator.integers(0, 2, count).astype(unsigned)
        return np.where(signs == 1, 0 - bits, bits).view(dtype)
    near = generator.standard_normal(count) * 10.0 ** generator.integers(-3, 4, count)
    near[::2] = np.rint(near[::2])
    with np.errstate(all="ignore"):
        return np.where(generator.integers(0, 2, count) == 1, bits.view(dtype), near.astype(dtype))


def operands_of(op: Op, dtypes: tuple[np.dtype, ...]) -> list[np.ndarray]:
    """Special values in all combinations, random ones, and all there are of 8 or 16 bits."""
    special = [some_special(dtype)[: 14 if len(dtypes) == 3 else None] for dtype in dtypes]
    columns = [every_combination(special)]
    columns += [[random_values(dtype, RANDOM, seed) for seed, dtype in enumerate(dtypes)]]
    sizes = {dtype.itemsize for dtype in dtypes if kind_of(dtype) != "b"}
    if sizes == {1} or (len(dtypes) == 1 and sizes == {2}):
        columns += [every_combination([every_value(str(dtype)) for dtype in dtypes])]
    operands = [np.concatenate(column) for column in zip(*columns, strict=True)]
    if op.semantics.whole_exponent and kind_of(dtypes[1]) == "i":
        operands[1] = operands[1] & np.iinfo(dtypes[1]).max
    return operands


def some_special(dtype: np.dtype) -> np.ndarray:
    values = special_values(str(dtype))
    if kind_of(dtype) != "c":
        return values
    made = np.array([complex(a, b) for a, b in itertools.product(PARTS_OF_COMPLEX, repeat=2)])
    return np.concatenate([values, made.astype(dtype)])


def right(op: Op, operands: list[np.ndarray], result: np.dtype) -> np.ndarray:
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return cast_values(np.asarray(op.reference(*operands)), result)


def rule_of(op: Op, signature: Signature, *params: object) -> Callable[..., Operand]:
    """The formula of an operation's rule."""

    def formula(k: Body, *elements: Operand) -> Operand:
        k.fail = lambda condition: None  # which is for the kernel around a body
        made = apply_rule(k, op, params, elements, *signature)
        assert made is not None
        return made

    return formula


def lanes_of(*dtypes: np.dtype) -> int:
    """How many elements fill 32 bytes, a register before AVX-512; fewer compile faster."""
    return 32 // max(REAL_DTYPES.get(dtype, dtype).itemsize for dtype in dtypes)


def parts_of(values: np.ndarray) -> list[np.ndarray]:
    return [values.real, values.imag] if values.dtype in REAL_DTYPES else [values]


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Assert equal bits, of a complex number of each part; one NaN is as good as another."""
    for part, other in zip(parts_of(found), parts_of(expected), strict=True):
        same_or_close(np.ascontiguousarray(part), np.ascontiguousarray(other))


@pytest.mark.exhaustive
@cpus
@pytest.mark.parametrize("op", ruled(), ids=lambda op: op.name)
def test_packets_have_the_bits_of_the_reference(op: Op, cpu: str) -> None:
    for dtypes, result in signatures(op):
        operands = operands_of(op, dtypes)
        lanes = lanes_of(*dtypes, result) if cpu == CPUS[0] else None
        found = run(rule_of(op, (dtypes, result)), *operands, cpu=cpu, lanes=lanes)
        expected = right(op, operands, result)
        if op.name in ("abs", "sign") and dtypes[0] in REAL_DTYPES:  # by an elementary function
            same_or_close(found, expected, 4)
        else:
            same_bits(found, expected)


def test_scalar_becomes_a_constant_that_is_rounded_once() -> None:
    tie = 1 + 2.0**-8 + 2.0**-40  # float32 would lose what lifts it above the tie
    for dtype, value in (("bfloat16", tie), ("float64", 3), ("bool", 1j), ("complex64", 2.5)):
        type_ = DTYPES[dtype]
        found = run(lambda k, _, v=value, t=type_: constant_element(k, v, t), np.zeros(3))
        same_bits(found, np.full(3, cast_values(np.asarray(value), type_)))


def alone(assembly_text: str) -> list[str]:
    """Lines that call what is defined elsewhere, or divide and convert one element at a time."""
    named = set(re.findall(r"^([A-Za-z_][\w.]*):", assembly_text, re.MULTILINE))
    called = re.findall(r"(?:\bcallq?|\bmovabsq)\s+\$?([A-Za-z_][\w.]*)", assembly_text)
    one = re.findall(
        r"\b(?:i?div[bwlq]?|v?divs[sd]|v?cvt\w*s[sd]2u?si\w*|v?cvtu?si2\w+)\b", assembly_text
    )
    return one + [name for name in called if name not in named]


def test_foreign_call_and_single_element_are_seen() -> None:
    text = assembly(lambda k, x: k.convert(x, DTYPES["int64"]), np.zeros(8), cpu=CPUS[0])
    assert set(alone(text)) == {"vcvttsd2si"}
    text = assembly(lambda k, x: k.floor(x), np.zeros(8), cpu="x86-64")
    assert set(alone(text)) == {"floor"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", ruled(), ids=lambda op: op.name)
def test_elements_are_computed_in_packets_without_foreign_calls(op: Op) -> None:
    for dtypes, result in signatures(op):
        operands = [np.zeros(64, dtype) for dtype in dtypes]
        text = assembly(
            rule_of(op, (dtypes, result)), *operands, cpu=CPUS[0], lanes=lanes_of(*dtypes, result)
        )
        assert alone(text) == [], (dtypes, result)


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", ALL_DTYPES)
def test_elements_are_cast_in_packets_without_foreign_calls(source: str) -> None:
    dtype = DTYPES[source]
    for target in DTYPES.values():
        if kind_of(dtype) == "c" and kind_of(target) not in "cb":
            continue
        rule = rule_of(OPS["astype"], ((dtype,), target), target)
        lanes = lanes_of(dtype, target)
        assert alone(assembly(rule, np.zeros(64, dtype), cpu=CPUS[0], lanes=lanes)) == [], target


def cast_edges(dtype: np.dtype) -> np.ndarray:
    """Values at which a cast saturates, or is rounded to a half type at a tie or near it."""
    kind, size = kind_of(dtype), dtype.itemsize
    if kind in "iu":
        shifts = range(7, 8 * size - 1)
        edges = [(m << b) // 256 + e for b in shifts for m in (1, 129, 257) for e in (-1, 0, 1)]
        made = np.array([each % 256**size for each in edges], np.uint64).astype(f"u{size}")
        return np.concatenate([made, 0 - made]).view(dtype)
    powers = [2.0**power for power in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64)]
    edges = [power + step for power in powers for step in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    edges += [power * (1 - 2.0**-bits) for power in powers for bits in (11, 24, 53)]
    ties = [1 + 2.0**-bits for bits in (8, 9, 11, 12)] + [65519.999, 65520.0, 2.0**-25, 9.2e-41]
    edges += [tie * (1 + step) for tie in ties for step in (0.0, 2.0**-52, -(2.0**-53), 2.0**-40)]
    with np.errstate(all="ignore"):
        made = np.array([*edges, 3.39e38, 3.4e38, 3.5e38]).astype(dtype)
        return np.concatenate([made, -made])


@pytest.mark.exhaustive
@cpus
@pytest.mark.parametrize("source", ALL_DTYPES)
def test_casts_have_the_bits_of_the_reference(source: str, cpu: str) -> None:
    dtype = DTYPES[source]
    columns = [some_special(dtype), random_values(dtype, RANDOM, 7)]
    columns += [cast_edges(dtype)] if kind_of(dtype) in "iuf" else []
    columns += [every_value(source)] if dtype.itemsize <= 2 else []
    values = np.concatenate(columns)
    for target in DTYPES.values():
        if kind_of(dtype) == "c" and kind_of(target) not in "cb":
            continue
        found = run(rule_of(OPS["astype"], ((dtype,), target), target), values, cpu=cpu)
        same_bits(found, cast_values(values, target))


def far_quotients(dtype: np.dtype) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Dividends and divisors whose exponents are near each other, far apart, and at the ends."""
    generator = np.random.default_rng(3)
    limits = np.finfo(dtype)
    lowest, highest = limits.minexp - limits.nmant, limits.maxexp
    ranges = [(-20, 20), (lowest, highest), (highest - 30, highest), (lowest, lowest + 60)]
    for first, second in itertools.product(ranges, repeat=2):
        made = []
        for low, high in (first, second):
            exponents = generator.integers(low, high, RANDOM // 4)
            made.append(np.ldexp(generator.uniform(-1, 1, RANDOM // 4), exponents).astype(dtype))
        yield made[0], made[1]


@cpus
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotient_of_any_exponents_is_exact(name: str, dtype: str, cpu: str) -> None:
    op, type_ = OPS[name], DTYPES[dtype]
    x, y = map(np.concatenate, zip(*far_quotients(type_), strict=True))
    same_bits(run(rule_of(op, ((type_, type_), type_)), x, y, cpu=cpu), right(op, [x, y], type_))


@cpus
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_quotient_beside_a_whole_number_is_rounded_down(name: str, dtype: str, cpu: str) -> None:
    op, type_ = OPS[name], DTYPES[dtype]
    y = np.abs(random_values(type_, RANDOM, 11)) | type_.type(1)
    quotients = random_values(type_, RANDOM, 12) // y
    x = np.concatenate([quotients * y + type_.type(step) for step in (0, 1)] + [quotients * y - 1])
    y = np.tile(y, 3)
    same_bits(run(rule_of(op, ((type_, type_), type_)), x, y, cpu=cpu), right(op, [x, y], type_))


def test_negative_power_of_an_integer_fails() -> None:
    dtype, failed = DTYPES["int32"], []

    def formula(k: Body, *elements: Operand) -> Operand:
        k.fail = failed.append
        apply_rule(k, OPS["pow"], (), elements, (dtype, dtype), dtype)
        (condition,) = failed
        return condition

    exponents = np.array([3, 0, -1, -(2**31)], dtype)
    assert run(formula, exponents + 2, exponents).tolist() == [False, False, True, True]


def test_known_exponent_is_a_few_products() -> None:
    body, dtype = Body(), DTYPES["int64"]
    operands = [body.load(0, dtype), body.constant(5, dtype)]
    apply_rule(body, OPS["pow"], (), operands, (dtype, dtype), dtype)
    assert [each.name for each in body.instructions].count("multiply") <= 4


def applied(op: Op, name: str) -> tuple[Body, Operand | None]:
    """The rule of an operation on elements of one dtype."""
    dtypes, result = op.semantics.dtypes((type_of(name),) * arity_of(op))
    body = Body()
    part = REAL_DTYPES.get(dtypes[0])
    operands = [
        ComplexElement(body.load(2 * i, part), body.load(2 * i + 1, part))
        if part
        else body.load(i, dtype)
        for i, dtype in enumerate(dtypes)
    ]
    return body, apply_rule(body, op, (), operands, dtypes, result)


@pytest.mark.parametrize(
    "op", [op for op in elementwise_ops() if op.lowering.elementary], ids=lambda op: op.name
)
def test_elementary_function_is_called_by_its_name(op: Op) -> None:
    body, made = applied(op, "float64")
    assert made is not None
    assert body.instructions[made.position].name == op.name
    body, made = applied(op, "float16")
    names = [each.name for each in body.instructions[-2:]]
    assert names == [op.name, "convert"]


@pytest.mark.parametrize("op", elementwise_ops(), ids=lambda op: op.name)
def test_every_operation_has_a_rule_but_elementary_functions_of_complex_numbers(op: Op) -> None:
    for name in ALL_DTYPES:
        if legal(op, (name,) * arity_of(op)):
            _, made = applied(op, name)
            elementary = op.page == "elementary" or op.name == "pow"
            assert made is not None or (elementary and name.startswith("complex")), name


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logarithm_of_a_sum_of_exponentials_is_near_the_reference(dtype: str) -> None:
    op, type_ = OPS["logaddexp"], DTYPES[dtype]
    x, y = every_combination([special_values(dtype), special_values(dtype)])
    found = run(rule_of(op, ((type_, type_), type_)), x, y)
    same_or_close(found, right(op, [x, y], type_), op.accuracy, op.accuracy_floor)


@pytest.mark.parametrize("name", ["abs2", "relu"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_element_rule_has_the_bits_of_the_reference(name: str, dtype: str) -> None:
    op = OPS[name]
    values = special_values(dtype)
    type_ = DTYPES[dtype]
    found = run(rule_of(op, ((type_,), type_)), values)
    with tn.options(device="reference"):
        same_bits(found, np.asarray(op(tn.asarray(values))))


def test_rule_of_a_user_applies_to_halves_as_to_float32() -> None:
    from tenfold.core.dtype_rules import real_floating
    from tenfold.core.op_decorators import elementwise

    def rule(k: Body, x: Operand) -> Operand:
        assert x.dtype == DTYPES["float32"]
        return k.fma(x, x, x)

    @elementwise(dtypes=real_floating, reference=lambda x: x * x + x, kernel=rule, public=False)
    def grown(x: tn.Array, /) -> tn.Array:
        """Square and itself."""

    half = DTYPES["float16"]
    values = np.array([1.5, 300.0, -2.0], half)
    assert run(rule_of(grown, ((half,), half)), values).tolist() == [3.75, np.inf, 2]
