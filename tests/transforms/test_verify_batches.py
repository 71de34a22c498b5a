"""verify=True: what is computed in groups is computed member by member too, and compared."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import computed, program, several
from tenfold.ops.contract import matmul
from tenfold.testing import assert_equal_bits

MEMBERS = 600


@tn.op(
    shape=lambda x: x.shape[:1],
    reference=lambda x: np.ptp(x, axis=1),
    batch=lambda x: tn.max(x, axis=2),  # forgets to subtract the least
)
def wrong_spread(x: Any) -> Any:
    "Largest less smallest of each row."


@tn.op(
    shape=lambda a, x: (a.shape[0],),
    reference=lambda a, x: a @ x,
    batch=lambda a, x: tn.sum(a * x[:, None, :], axis=2) * (1 + 2**-50),
)
def wrong_product(a: Any, x: Any) -> Any:
    "A product of a matrix and a vector, that a batch gives other last bits."


def test_a_wrong_batch_rule_is_found() -> None:
    xs = several(MEMBERS, 3, 4)
    with tn.options(verify=True):
        found = [wrong_spread(x) for x in xs]
        tn.eval(*found)  # whoever waits is told
        total = tn.stack(found)
        with pytest.raises(tn.errors.RunError) as raised:
            total.wait()
    line = traceback.extract_stack()[-1].lineno
    text = str(raised.value)
    assert f"wrong_spread: member 0 of {MEMBERS} computed together has " in text
    assert str(np.max(np.asarray(xs[0])[0])) in text
    assert str(np.ptp(np.asarray(xs[0])[0])) in text
    assert f"{__file__}:" in text
    assert abs(line - int(text.split(f"{__file__}:")[1].split(")")[0])) < 8
    assert "batch=" in text
    assert_equal_bits(np.asarray(found[5]), np.ptp(np.asarray(xs[5]), axis=1))  # by itself


def test_the_operation_of_a_function_that_is_wrong_is_named() -> None:
    inner = tn.function(lambda x: wrong_spread(x) * 2)

    @tn.function
    def outer(x: Any) -> Any:
        return tn.tanh(inner(x)) + tn.sum(x)

    with tn.options(verify=True):
        found = tn.stack([outer(x) for x in several(MEMBERS, 3, 4)])
        with pytest.raises(tn.errors.RunError, match=r"outer: member 0 .* \(wrong_spread in it\)"):
            found.wait()


def test_operation_without_product_must_have_the_same_bits() -> None:
    columns = several(MEMBERS, 3, 4), several(MEMBERS, 4)
    with tn.options(verify=True):
        found = tn.stack([wrong_product(*row) for row in zip(*columns, strict=True)])
        with pytest.raises(tn.errors.RunError, match="wrong_product: member"):
            found.wait()


def test_the_member_that_is_wrong_is_named() -> None:
    @tn.op(
        shape=lambda x: x.shape,
        reference=np.abs,
        batch=lambda x: tn.where(x == -77.0, x, tn.abs(x)),
    )
    def modulus(x: Any) -> Any:
        "Of each element, but of one."

    xs = [tn.asarray([float(-i), 1.0]) for i in range(MEMBERS)]
    with tn.options(verify=True):
        found = tn.stack([modulus(x) for x in xs])
        with pytest.raises(tn.errors.RunError, match=r"member 77 .* has -77.0 at \(0,\), and 77.0"):
            found.wait()


@pytest.mark.parametrize("seed", range(2))
def test_programs_pass(seed: int) -> None:
    wanted = program(seed, 700, lambda function: function, lambda x: x.wait())
    with tn.options(verify=True):
        found = program(seed, 700, tn.function, lambda x: x)
        p = computed(found)
    assert p.batches > 0
    for one, other in zip(found, wanted, strict=True):
        assert_equal_bits(np.asarray(one), np.asarray(other))


W = np.random.default_rng(1).normal(size=(6, 6))
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "matrix and vector": lambda a, x: a @ x,
    "shared": lambda a, x: tn.asarray(W, dtype=x.dtype) @ x,
    "in a function": tn.function(lambda a, x: tn.tanh(a @ x) @ (a @ x) + tn.sum(x @ a)),
    "of products": tn.function(lambda a, x: (a @ a.T) @ (a @ x)),
    "tensordot": lambda a, x: tn.tensordot(a, a, axes=2) * x,
    "vecdot": lambda a, x: tn.vecdot(a, x),
    "solve": lambda a, x: tn.linalg.solve(a, x),
    "solves": tn.function(lambda a, x: tn.linalg.inv(a) @ x + tn.linalg.solve(a.T, x)),
    "factors": tn.function(lambda a, x: tn.linalg.cholesky(a @ tn.conj(a.T)) @ x),
    "shared solve": lambda a, x: tn.linalg.solve(tn.asarray(W, dtype=x.dtype), x),
    "several results": tn.function(lambda a, x: tn.linalg.qr(a)[0] @ x),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [tn.float16, tn.float32, tn.float64, tn.complex128], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_pass(name: str, dtype: Any) -> None:
    if dtype == tn.float16 and any(word in name for word in ("solve", "factors", "results")):
        dtype = tn.complex64  # there is no such operation on halves
    function = PRODUCTS[name]
    columns = several(MEMBERS, 6, 6, dtype=dtype), several(MEMBERS, 6, dtype=dtype, seed=1)
    with tn.options(verify=True):
        p = computed([function(*row) for row in zip(*columns, strict=True)])
    assert p.batches > 0


@pytest.mark.parametrize(("factor", "passes"), [(1 + 2**-52, True), (1 + 2**-40, False)])
def test_a_product_must_be_within_the_bound(factor: float, passes: bool) -> None:
    rule = matmul.transforms.batch
    assert rule is not None
    object.__setattr__(matmul.transforms, "batch", lambda members: rule(members) * factor)
    try:
        with tn.options(verify=True):
            columns = several(MEMBERS, 6, 6), several(MEMBERS, 6, seed=1)
            found = tn.stack([a @ x for a, x in zip(*columns, strict=True)])
            if passes:
                found.wait()
            else:
                with pytest.raises(tn.errors.RunError, match="matmul: member 0 of 600"):
                    found.wait()
    finally:
        object.__setattr__(matmul.transforms, "batch", rule)


def test_a_member_that_fails_fails_alone_under_verify() -> None:
    matrices = [(x + 5 * tn.eye(3)).wait() for x in several(MEMBERS, 3, 3)]
    matrices[77] = tn.zeros((3, 3))
    with tn.options(verify=True):
        found = [tn.linalg.inv(x) for x in matrices]
        tn.eval(*found)
        with pytest.raises(np.linalg.LinAlgError):
            found[77].wait()
        assert [x.shape for x in map(np.asarray, found[:77] + found[78:])] == [(3, 3)] * 599
