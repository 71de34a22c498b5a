"""The derivative of each operation: against central differences, forward against reverse, twice.

The cases are made from the table of operations: an operation without a rule, without a word in its
declaration fails.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.callable_signature import signature_of
from tenfold.core.op import OPS, Kind, Op, Operation, SampleCall
from tenfold.core.pytree import flatten
from tenfold.dtypes import kind_of
from tenfold.errors import UnsupportedError
from tenfold.testing import check_gradients
from tenfold.transforms.derivative_rules import has_derivative

READS_VALUES = {"unique_all", "unique_counts", "unique_inverse", "unique_values"}
"""They compute their operand at the call, and raise UnsupportedError for one that is watched."""
NO_DIFFERENCES = {
    *("nextafter", "stop_gradient"),  # 0 by declaration
    "assume",  # the value is a promise
}
INTERNAL_WITHOUT_RULE = {
    "while_loop",
    *("linalg.schur", "row_exchanges", "lu_solve"),  # refused; integers
    *("stored_csr", "stored_diagonal", "stored_permutation"),  # rules read their components
    *("gemm", "syrk", "trmm", "solve", "inv", "det", "regular_factors"),  # rules make them
}
HERMITIAN = {"linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"}
"""They read a triangle; the derivative is by the Hermitian part."""
SECOND_ORDER = {"matmul", "linalg.solve", "linalg.inv", "prod", "cumulative_prod", "var", "softmax"}
DOMAINS: dict[str, tuple[float, float]] = {"acosh": (1.2, 2.0)}
EMPTY_OR_CONSTANT = {"segment_max", "segment_min", "segment_mean", "logsumexp", "std"}
"""Of no rows they are infinite or NaN, and so is the derivative of a deviation of one number."""
EXTRA = {
    "linalg.cholesky": [SampleCall(((3, 3),)), SampleCall(((2, 2, 2),), {"upper": True})],
    "linalg.solve_triangular": [SampleCall(((3, 3), (3, 2)), {"lower": True})],
    "einsum": [SampleCall(((2, 3, 4), (4, 3), (2, 5)))],
    "linalg.svd": [
        SampleCall(((3, 3),)),
        *(
            SampleCall((shape,), {"full_matrices": False})
            for shape in ((3, 2), (2, 3), (2, 3, 2), (0, 3))
        ),
    ],
    "linalg.qr": [SampleCall((shape,)) for shape in ((3, 2), (2, 3), (2, 3, 3), (0, 3))],
    "linalg.solve_banded": [
        SampleCall(((3, 4), (4,))),
        SampleCall(((2, 3, 4), (4,))),
        SampleCall(((3, 4), (2, 4, 3))),
    ],
    **{
        f"fft.{f}": [SampleCall(((4, 5),), {"norm": n}) for n in ("backward", "ortho", "forward")]
        for f in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
        + [f"{f}{n}" for f in ("fft", "ifft", "rfft", "irfft") for n in "2n"]
    },
    "view_as_real": [SampleCall(((3,),))],
    "astype": [SampleCall(((3,),), {}, ("float64",))],
}


def is_elementwise(operation: Operation[...]) -> bool:
    semantics = operation.semantics if isinstance(operation, Op) else None
    return semantics is not None and semantics.kind is Kind.MAP and semantics.dtypes is not None


def samples_of(name: str, operation: Operation[...]) -> list[SampleCall]:
    if is_elementwise(operation):
        return [SampleCall(((2, 3),) * len(signature_of(operation.function).parameters))]
    samples = list(EXTRA.get(name, operation.samples))
    return [s for s in samples if s.shapes and s.arguments.get("dtype") is None]


def operands_of(name: str, operation: Operation[...], sample: SampleCall) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(map(ord, name)))
    low, high = DOMAINS.get(name, (0.2, 0.8))
    operands = []
    for shape in sample.shapes:
        x = rng.uniform(low, high, shape)
        if operation.namespace == "linalg" and len(shape) > 1 and shape[-1] == shape[-2]:
            n = shape[-1]
            x = (x + np.swapaxes(x, -1, -2)) / 2 + np.diag(np.arange(n, 2.0 * n))
        operands.append(x)
    return operands


def function_of(
    name: str, operation: Operation[...], sample: SampleCall
) -> Callable[..., list[tn.Array]]:
    """Return the function from the operands to the floating results."""
    positional = [
        tn.asarray(value) if isinstance(value, np.ndarray) else value for value in sample.positional
    ]

    def call(*arrays: Any) -> list[tn.Array]:
        if name == "einsum":
            result = tn.einsum("ijk,kj,il->l", *arrays)
        elif name == "linalg.solve_banded":
            result = tn.linalg.solve_banded((1, 1), *arrays)
        elif name in HERMITIAN:
            (x,) = arrays
            result = operation((x + tn.conj(tn.matrix_transpose(x))) / 2, **sample.arguments)
        elif name in ("concat", "stack", "linalg.multi_dot"):
            result = operation(list(arrays), *positional, **sample.arguments)
        else:
            result = operation(*arrays, *positional, **sample.arguments)
        leaves = flatten(result)[0]
        return [x for x in leaves if isinstance(x, tn.Array) and kind_of(x.dtype) in "fc"]

    return call


TABLE = {
    name: operation
    for name, operation in sorted(OPS.items())
    if operation.namespace != "random" and samples_of(name, operation)
}
ROWS = [
    pytest.param(name, sample, id=f"{name}-{number}")
    for name, operation in TABLE.items()
    for number, sample in enumerate(samples_of(name, operation))
    if name not in NO_DIFFERENCES
    and not (
        name in EMPTY_OR_CONSTANT | READS_VALUES and any(0 in shape for shape in sample.shapes)
    )
]


def order_of(name: str) -> int:
    is_matrix = name.startswith("linalg.")
    return 2 if name in SECOND_ORDER or is_matrix or is_elementwise(OPS[name]) else 1


@pytest.mark.parametrize(("name", "sample"), ROWS)
def test_derivatives_equal_differences(name: str, sample: SampleCall) -> None:
    operation = OPS[name]
    operands = operands_of(name, operation, sample)
    function = function_of(name, operation, with_values(name, sample, operands))
    if name in ("view_as_real", "fft.ifft", "fft.irfft", "fft.hfft"):
        operands = [x + 0.5j * x[::-1] for x in operands]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mean of nothing
            if not function(*map(tn.asarray, operands)):
                return  # its results are integers
    except TypeError:
        assert operation.page == "bitwise"
        return
    if name in READS_VALUES:
        with pytest.raises(UnsupportedError, match="derivative"):
            tn.grad(lambda *xs: tn.sum(tn.real(function(*xs)[0])))(*operands)
        return
    if name == "std" and operands[0].size == 1:
        return
    check_gradients(function, *operands, order=order_of(name))


REAL_ONLY = {
    *("atan2", "cbrt", "ceil", "clip", "copysign", "erf", "erfc", "floor", "floor_divide", "fma"),
    *("gelu", "hypot", "log_softmax", "logaddexp", "logsumexp", "max", "maximum", "min", "minimum"),
    *("pool", "relu", "remainder", "segment_max", "segment_min", "segment_sort", "sigmoid", "sort"),
    *("softmax", "softplus", "sort_by_key", "trunc", "unpool", "astype", "view_as_complex"),
    *("fft.ihfft", "fft.rfft", "fft.rfft2", "fft.rfftn", "softmax_gradient"),
}
PHASES = {"linalg.svd", "linalg.eig", "linalg.eigh"}
"""Complex vectors have any phase: tests/transforms/test_matrix_derivatives.py."""


def with_values(name: str, sample: SampleCall, operands: list[np.ndarray]) -> SampleCall:
    if name in EMPTY_OR_CONSTANT and sample.positional:
        return sample._replace(positional=(np.arange(len(operands[0])) % 2, 2))
    return sample


@pytest.mark.parametrize(
    ("name", "sample"),
    [row for row in ROWS if row.values[0] not in PHASES | READS_VALUES | {"view_as_real"}],
)
def test_complex_gradients_are_those_by_both_parts(name: str, sample: SampleCall) -> None:
    operation, rng = OPS[name], np.random.default_rng(3)
    reals = operands_of(name, operation, sample)
    operands = [x + 0.2j * rng.uniform(0.1, 1, x.shape) for x in reals]
    if name == "where":
        operands = [operands[0].real, *operands[1:]]
    function = function_of(name, operation, with_values(name, sample, operands))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mean of nothing
            results = operation.page != "bitwise" and function(*map(tn.asarray, reals))
            results = results and function(*map(tn.asarray, operands))
    except TypeError:
        assert name in REAL_ONLY
        return
    if results and not (name == "std" and operands[0].size == 1):
        check_gradients(function, *operands)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(9))
@pytest.mark.parametrize(
    ("dtype", "unit"), [("float16", 1e-3), ("bfloat16", 8e-3), ("float32", 2e-7)]
)
def test_gradients_of_narrow_dtypes_are_those_of_float64(
    dtype: str, unit: float, part: int
) -> None:
    compared = set()
    for row in ROWS[part::9]:
        name, sample = row.values
        operation = OPS[name]
        if name in READS_VALUES:
            continue
        operands = operands_of(name, operation, sample)
        function = function_of(name, operation, with_values(name, sample, operands))

        def loss(*arrays: Any, function: Any = function) -> Any:
            results = [tn.astype(tn.real(x), "float64") for x in function(*arrays)]
            weights = [np.linspace(1, 2, x.size).reshape(x.shape) for x in results]
            return tn.sum(tn.stack([tn.sum(x * w) for x, w in zip(results, weights, strict=True)]))

        narrow = [tn.astype(tn.asarray(x), dtype) for x in operands]
        wide = [tn.astype(x, "float64") for x in narrow]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a mean of nothing
                if not function(*narrow):
                    continue
                gradient = tn.grad(loss, argnums=tuple(range(len(narrow))))
                pairs = list(zip(gradient(*narrow), gradient(*wide), narrow, strict=True))
        except TypeError:  # LAPACK and bits
            assert name.startswith(("linalg.", "bitwise_", "view_as"))
            continue
        compared.add(name)
        for found, wanted, x in pairs:
            assert found.dtype == x.dtype, name
            difference = np.asarray(tn.astype(found, "float64")) - np.asarray(wanted)
            scale = max(1.0, np.max(np.abs(np.asarray(wanted)), initial=0))
            assert np.max(np.abs(difference), initial=0) <= 30 * unit * scale, name
    assert len(compared) > 15


def declared_ops() -> Iterator[Op[...]]:
    """Yield the operations of the library, those without a public name too."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tenfold.")]
    found = {id(op): op for m in modules for op in vars(m).values() if isinstance(op, Op)}
    yield from found.values()


def test_each_operation_has_a_rule_or_a_word() -> None:
    without = set()
    for op in declared_ops():
        name = op.full_name
        if has_derivative(op) or op.semantics.body is not None or op.semantics.opaque:
            continue
        if name in TABLE and not op.semantics.creates:
            continue  # tried above: its results are integers, or it raises
        without.add(name)
    creations = {"full", "eye", "arange", "linspace", "assume"}
    random = {n for n in without if n in OPS and OPS[n].namespace == "random"}
    random |= {op.full_name for op in declared_ops() if op.semantics.creates}
    unknown = without - creations - random - INTERNAL_WITHOUT_RULE
    assert not unknown, "declare partials=, vjp=, expression= or zero_derivative="


def test_results_of_a_zero_derivative_are_constant_almost_everywhere() -> None:
    zero = {op.full_name for op in declared_ops() if op.transforms.zero_derivative}
    assert zero == {
        *(
            "ceil",
            "floor",
            "round",
            "trunc",
            "floor_divide",
            "nextafter",
            "stop_gradient",
            "zeros_of",
        )
    }
