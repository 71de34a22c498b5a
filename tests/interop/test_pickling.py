"""Pickle and copy: values and expressions, shared nodes, long chains, what is missing elsewhere."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.dtype_rules import any_dtype
from tenfold.core.op import OPS
from tenfold.core.op_decorators import elementwise
from tenfold.errors import DeviceError, UnsupportedError
from tenfold.interop import pickling

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(x: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


def nodes_below(x: tn.Array) -> int:
    return len(_native.linearize([_native.node_of(x)])[0])


@pytest.mark.exhaustive
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", list(tn.dtypes.DTYPES))
def test_a_computed_array_keeps_its_bits(protocol: int, dtype: str) -> None:
    x = tn.asarray(np.arange(6).reshape(2, 3).astype(getattr(tn, dtype)))
    back = again(x, protocol)
    assert back.dtype == x.dtype
    assert np.asarray(back).tobytes() == np.asarray(x).tobytes()
    assert back.shape == (2, 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pending_expression_stays_pending(protocol: int) -> None:
    x = tn.asarray([1.0, 2.0])
    pending = tn.where(x > 1, x * 2, -x) + tn.sum(x)
    back = again(pending, protocol)
    assert "pending" in repr(pending)
    assert "pending" in repr(back)
    assert nodes_below(back) == nodes_below(pending)
    assert back.tolist() == pending.tolist() == [2, 7]


def test_shared_nodes_stay_shared() -> None:
    x = tn.asarray([1.0])
    for _ in range(60):
        x = x + x
    back = again(x)
    assert nodes_below(back) == 61
    assert back.item() == 2.0**60


def test_an_operation_of_several_results_stays_one_node() -> None:
    q, r = tn.linalg.qr(tn.asarray([[2.0, 1.0], [0.0, 3.0]]))
    product = q @ r
    back = again(product)
    assert nodes_below(back) == nodes_below(product)
    q.wait()
    assert np.allclose(np.asarray(again(q @ r)), [[2, 1], [0, 3]])
    assert np.allclose(np.asarray(back), [[2, 1], [0, 3]])


def test_creation_movement_and_views_go_through() -> None:
    x = tn.arange(6, dtype="float32").reshape((2, 3)).T[::-1, 1:]
    back = again(x)
    assert back.base is None
    assert back.tolist() == x.tolist()
    assert again([x, x + 1])[1].tolist() == (x + 1).tolist()


def test_scalars_keep_their_kind() -> None:
    x = tn.asarray([1], dtype="float32")
    for number in (True, 3, 2**63, 0.1, -0.0, 1e400, 2j):
        pending = x * number
        back = again(pending)
        assert back.dtype == pending.dtype
        assert np.asarray(back).tobytes() == np.asarray(pending).tobytes()


def test_a_restored_array_is_as_safe_as_an_imported_one() -> None:
    x = tn.asarray([1.0, 2.0])
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    memory = [bytearray(buffer.raw()) for buffer in buffers]
    back = pickle.loads(data, buffers=memory)
    for buffer in memory:
        buffer[:] = bytes(len(buffer))
    assert back.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(again(x))[0] = 9


def test_strict_options_do_not_keep_an_old_expression_out() -> None:
    data = pickle.dumps(tn.asarray([1]) + tn.asarray([0.5]))
    with tn.options(strict_dtypes=True):
        assert pickle.loads(data).tolist() == [1.5]


def test_a_chain_of_a_hundred_thousand_nodes_pickles_without_recursion() -> None:
    x = tn.asarray([1.0])
    with tn.options(pending_depth=0):
        for _ in range(10**5):
            x = x + 1
        back = again(copy.deepcopy(x))
        assert "depth 100000," in repr(back)


def test_an_operation_that_is_missing_is_named() -> None:
    @elementwise(dtypes=any_dtype, reference=np.positive)
    def of_this_test(x: tn.Array, /) -> tn.Array:  # type: ignore[empty-body]
        """As it is."""

    pending = of_this_test(tn.asarray([1, 2]))
    data = pickle.dumps(pending)
    assert pickle.loads(data).tolist() == [1, 2]
    del OPS["of_this_test"]
    with pytest.raises(UnsupportedError, match="'of_this_test' is not declared here") as caught:
        pickle.loads(data)
    assert "import the module that declares it" in str(caught.value)
    with pytest.raises(UnsupportedError, match="'of_this_test' is not in the table, which"):
        pickle.dumps(pending)


def test_another_format_or_device_is_refused() -> None:
    restore, (_, *columns) = pickling.reduce(tn.asarray([1]))
    with pytest.raises(UnsupportedError, match="format 99 is not 1"):
        restore(99, *columns)
    columns[-1][0] = ("gpu", columns[-1][0][1])
    with pytest.raises(DeviceError, match="'gpu' does not exist here"):
        restore(pickling.PICKLE_FORMAT, *columns)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_name_for_the_same_value(duplicate: Any) -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    other = duplicate(x)
    assert other is not x
    x += 1
    assert other.tolist() == [2, 3]
    assert x.tolist() == [3, 4]
    assert duplicate([x])[0].tolist() == [3, 4]


def test_a_copy_of_a_view_is_no_view() -> None:
    x = tn.asarray([[1.0, 2.0]])
    view = x[0]
    other = copy.copy(view)
    x += 1
    assert other.base is None
    assert other.tolist() == [1, 2]
    assert view.tolist() == [2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tn.var(x),
        lambda x: tn.assume(x, "symmetric"),
        lambda x: tn.linalg.slogdet(x).logabsdet,
        lambda x: tn.linalg.pinv(x),
    ],
)
def test_operations_made_of_inner_ones_stay_pending(make: Any) -> None:
    x = tn.asarray(np.array([[2.0, 1.0], [1.0, 3.0]]))
    pending = make(x) + tn.zeros((2, 2))
    again = pickle.loads(pickle.dumps(pending))
    assert "pending" in repr(again)
    assert again.tolist() == pending.tolist()


def test_an_array_of_fewer_bytes_than_its_leaves_is_computed_first() -> None:
    x = tn.ones(1000).wait()
    total, twice = tn.sum(x + 1), tn.function(lambda a: tn.max(a) * 2)(x)
    assert len(pickle.dumps(total)) < 1024
    assert again(total).item() == 2000
    assert again(twice).item() == 2
    assert "pending" in repr(again(x + 1))
    with tn.options(strict_sync=True):
        assert len(pickle.dumps(tn.sum(x + 1))) > 8000


def test_a_function_of_no_module_is_pickled_by_value_and_read_once() -> None:
    pytest.importorskip("cloudpickle")
    scale = tn.asarray([1.0, 2.0])
    written = pickle.dumps(tn.function(lambda x: tn.sum(x * scale)))
    back = pickle.loads(written)
    assert back is pickle.loads(written)
    assert back(tn.ones(2)).item() == 3


def test_a_function_that_calls_itself_is_pickled_by_value() -> None:
    pytest.importorskip("cloudpickle")

    @tn.function
    def doubled(times: int, x: tn.Array) -> tn.Array:
        return x if times == 0 else doubled(times - 1, x * 2)

    assert again(doubled)(3, tn.ones(1)).tolist() == [8]


def test_a_function_of_no_module_needs_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match="pip install cloudpickle"):
        pickle.dumps(tn.function(lambda x: x))


def test_a_failure_of_an_array_that_is_pickled_is_raised() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pickle.dumps(tn.linalg.inv(tn.zeros((2, 2)))[0, 0] + tn.sum(tn.ones(9).wait()))


@tn.function
def named_in_this_module(x: tn.Array) -> tn.Array:
    return x * 2


def test_a_function_that_a_module_names_is_pickled_by_its_name() -> None:
    assert again(named_in_this_module) is named_in_this_module
    assert len(pickle.dumps(named_in_this_module)) < 200


def test_a_name_of_a_page_that_declares_no_operation_is_refused() -> None:
    written = pickle.dumps(tn.assume(tn.zeros((2, 2)), "diagonal"))
    for other in (b"assume:get_____", b"shutil:rmtree__", b"assume:PROMISES"):
        with pytest.raises(UnsupportedError, match="is not declared here"):
            pickle.loads(written.replace(b"assume:declared", other))
