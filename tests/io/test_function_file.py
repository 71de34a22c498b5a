"""Exported functions (`f.save`, `tn.load_function`): the same bits from a file, and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.op import OPS, Operation, SampleCall
from tenfold.core.pytree import flatten
from tenfold.dtypes import DTYPES
from tenfold.errors import ExplainedError, UnsupportedError
from tenfold.io import function_codec
from tenfold.settings import CPU_LEVELS
from tenfold.testing import assert_equal_bits

SAMPLES = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public
    for number, sample in enumerate(operation.samples)
]
READS_VALUES = ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values")


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    whole = rng.integers(1, 9, shape)
    return (whole if dtype == "int32" else whole % 2 if dtype == "bool" else whole / 8).astype(
        DTYPES[dtype]
    )


def results_of(tree: Any) -> list[np.ndarray]:
    arrays = [x for x in flatten(tree)[0] if isinstance(x, tn.Array)]
    tn.eval(*arrays)
    return [np.array(x) for x in arrays]


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
@pytest.mark.filterwarnings("ignore:Matrix is singular")  # of SciPy
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "dtype", ["float64", "int32", "complex64", "bool", "float16", "bfloat16", "uint8"]
)
@pytest.mark.parametrize(("operation", "sample"), SAMPLES)
def test_sample_of_an_operation_has_the_same_bits(
    operation: Operation[...], sample: SampleCall, dtype: str, tmp_path: Path
) -> None:
    arrays = [tn.asarray(values(shape, dtype)) for shape in sample.shapes]

    @tn.function
    def call(*given: Any) -> Any:
        takes_list = next(iter(operation.public_signature.parameters), "") == "arrays"
        inputs = [[*given]] if takes_list else given
        return operation(*inputs, *sample.positional, **sample.arguments)

    try:
        wanted = results_of(call(*arrays))
    except (ExplainedError, ValueError, ArithmeticError, TypeError):
        pytest.skip("the operation does not take these arrays")
    if operation.name in READS_VALUES:
        with pytest.raises(UnsupportedError, match="asks for a value"):
            call.save(tmp_path / "f", *arrays)
        return
    call.save(tmp_path / "f", *arrays)
    found = results_of(tn.load_function(tmp_path / "f")(*arrays))
    for x, y in zip(found, wanted, strict=True):
        assert_equal_bits(x, y)


W = tn.asarray(np.arange(9.0).reshape(3, 3) / 8)
MATRIX = tn.csr([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3], (2, 3))
LOWER = tn.assume(tn.asarray([[2.0, 0.0, 0.0], [1.0, 4.0, 0.0], [0.0, 1.0, 1.0]]), "lower")
X, V = values((2, 3), "float64"), values((3,), "float64")
rounded = tn.custom_vjp(lambda x: tn.round(x))
rounded.defvjp(lambda x: (tn.round(x), None), lambda _, g: (g,))
inner = tn.function(lambda a, b: (tn.tanh(a @ W) + b, tn.sum(a)))


def assigned(x: Any) -> Any:
    y = x * 1
    y[0] = 5
    y[:, ::-2] += 1
    y[tn.asarray([0, 1]), tn.asarray([2, 0])] = 9.0
    return y


def cumulated(h: Any, row: Any) -> Any:
    h = tn.tanh(W @ h + row)
    return h, {"h": h}


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (lambda x: tn.scan(cumulated, V, x), (X,)),
    "reverse scan": (lambda x: tn.scan(cumulated, V, x, reverse=True), (X,)),
    "scan without rows": (lambda x: tn.scan(lambda h, _: (h / 2, h), x, None, length=5), (X,)),
    "scan of a gradient": (tn.grad(lambda x: tn.sum(tn.scan(cumulated, V, x)[1]["h"])), (X,)),
    "scan with a sparse matrix": (
        lambda y: tn.scan(lambda h, _: (MATRIX.T @ (MATRIX @ h) / 8, h), y, None, length=3),
        (V,),
    ),
    "cond": (
        lambda p, x: tn.cond(p > 0, lambda y: tn.sin(y) + tn.ones(3), lambda y: y * W[0], x),
        (np.float64(1.0), X),
    ),
    "gradient of cond": (
        tn.grad(lambda x: tn.cond(tn.sum(x) > 0, lambda y: tn.sum(tn.sin(y)), tn.sum, x)),
        (X,),
    ),
    "while_loop": (
        lambda x: tn.while_loop(lambda s: tn.sum(s) < 99, lambda s: s * 2 + W[0], x),
        (X,),
    ),
    "tangent of while_loop": (
        lambda x: tn.jvp(
            lambda y: tn.while_loop(lambda s: tn.sum(s) < 99, lambda s: s * 2, y), (x,), (x,)
        ),
        (X,),
    ),
    "hessian": (tn.hessian(lambda x: tn.sum(tn.sin(x) * x**2)), (V,)),
    "mapped loop": (
        tn.vmap(lambda r: tn.while_loop(lambda s: tn.sum(s) < 99, lambda s: s * 2 + 1, r)),
        (X,),
    ),
    "checkpoint": (
        tn.grad(lambda x: tn.sum(tn.checkpoint(lambda y: tn.tanh(W @ y))(x))),
        (V,),
    ),
    "calls": (lambda x: [inner(x, inner(x, x)[0]), inner(x, x)], (X,)),
    "gradient of calls": (tn.grad(lambda x: tn.sum(inner(x, inner(x, x)[0])[0])), (X,)),
    "sparse argument": (lambda s, y: s @ y, (MATRIX, V)),
    "sparse capture": (lambda y: MATRIX @ y, (V,)),
    "diagonal matrix": (lambda d, y: d @ y, (tn.diagonal_matrix(V), V)),
    "permutation": (lambda y: tn.permutation([2, 0, 1]) @ y, (V,)),
    "assumed structure": (lambda y: tn.linalg.solve(LOWER, y), (V,)),
    "random numbers": (lambda k: tn.random.standard_normal(k, 1, (3, 4)), (np.int64(5),)),
    "random integers": (
        lambda k, n: tn.random.integers(k, 1, 0, n, (3,)),
        (np.int64(5), [3, 4, 5]),
    ),
    "gradient of random numbers": (
        tn.grad(lambda a, k: tn.sum(tn.random.standard_gamma(k, 1, a, (4, 3)))),
        (V, np.int64(4)),
    ),
    "created in a branch": (
        lambda p: tn.cond(
            p,
            lambda: tn.full((3,), 2.0) + tn.linspace(0, 1, 3) + tn.random.random(1, 2, (3,)),
            lambda: tn.arange(3.0) + tn.eye(3)[0],
        ),
        (np.bool_(True),),
    ),
    "gradient of slogdet": (
        tn.grad(lambda a: tn.linalg.slogdet(a)[1]),
        (values((2, 2), "float64"),),
    ),
    "singular values": (lambda a: tuple(tn.linalg.svd(a)), (X,)),
    "gradient of a transform": (tn.grad(lambda x: tn.sum(tn.abs(tn.fft.fft(x)))), (V,)),
    "assignments": (assigned, (X,)),
    "static arguments": (lambda x, m, t: x * m if t == "a" else x, (X, 2.5, "a")),
    "own derivative": (tn.grad(lambda x: tn.sum(rounded(x) * x)), (V,)),
    "exact numbers": (lambda x: [x + 2**63, x * 3], (np.asarray([1], np.uint64),)),
    "special numbers": (lambda x: x * float("nan") + float("inf") * x - (-0.0), (V,)),
    "quantiles": (lambda x: tn.numpy.quantile(x, [0.2, 0.5], axis=1), (X,)),
    "halves": (lambda x: tn.sum(x * 3) + x, (values((4,), "bfloat16"),)),
    "captured halves": (lambda x: x + tn.astype(W[0], tn.bfloat16), (values((3,), "bfloat16"),)),
    "parts of complex numbers": (lambda x: tn.grad(lambda z: tn.sum(tn.abs(z)))(x * 1j), (V,)),
    "no arguments": (lambda: tn.ones(3) * 2, ()),
}
OTHER_PROCESS = """
import json, pathlib, sys
import numpy as np, tenfold as tn
from tenfold.core.pytree import flatten
folder = pathlib.Path(sys.argv[1])
for number in range(int(sys.argv[2])):
    given = np.load(folder / f"{number}-in.npz")
    static = json.loads((folder / f"{number}.json").read_text())
    loaded = tn.load_function(folder / f"{number}.tn")
    arguments = [given[str(at)].view(tn.bfloat16) if x == "bfloat16" else
                 given[str(at)] if x == "array" else
                 tn.csr(*[given[f"{at}-{k}"] for k in range(3)], (2, 3)) if x == "csr" else
                 tn.diagonal_matrix(given[str(at)]) if x == "diagonal" else x[0]
                 for at, x in enumerate(static)]
    found = flatten(loaded(*arguments))[0]
    tn.eval(*found)
    bits = {str(at): np.frombuffer(np.asarray(x).tobytes(), np.uint8) for at, x in enumerate(found)}
    np.savez(folder / f"{number}-out.npz", **bits)
"""


def store_arguments(path: Path, arguments: tuple[Any, ...]) -> None:
    """Write arguments for another process: arrays, and how each of them is made."""
    arrays: dict[str, Any] = {}
    forms: list[Any] = []
    for at, x in enumerate(arguments):
        if isinstance(x, tn.Array) and x.storage == "csr":
            arrays |= {f"{at}-0": [1.0, 2.0, 3.0], f"{at}-1": [0, 2, 1], f"{at}-2": [0, 2, 3]}
            forms.append("csr")
        elif isinstance(x, tn.Array):
            arrays[str(at)] = V
            forms.append("diagonal")
        elif isinstance(x, (float, str)) and not isinstance(x, np.generic):
            forms.append([x])
        else:
            x = np.asarray(x)
            is_half = x.dtype == DTYPES["bfloat16"]
            arrays[str(at)] = x.view(np.uint16) if is_half else x
            forms.append("bfloat16" if is_half else "array")
    np.savez(f"{path}-in.npz", **arrays)
    Path(f"{path}.json").write_text(json.dumps(forms), encoding="utf-8")


def test_programs_have_the_same_bits_in_another_process(tmp_path: Path) -> None:
    wanted = []
    for number, (python, arguments) in enumerate(PROGRAMS.values()):
        given = [np.asarray(x) if isinstance(x, list) else x for x in arguments]
        function = tn.function(python)
        wanted.append(results_of(function(*given)))
        function.save(tmp_path / f"{number}.tn", *given)
        store_arguments(tmp_path / str(number), arguments)
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path), str(len(PROGRAMS))]
    has_lower = _native.processor_level() > CPU_LEVELS["x86-64-v3"]
    level = {"TENFOLD_CPU": "x86-64-v3"} if has_lower else {}  # for other kernels of equal bits
    subprocess.run(command, check=True, env={**level, **os.environ})
    for number, name in enumerate(PROGRAMS):
        with np.load(tmp_path / f"{number}-out.npz") as found:
            assert [found[str(at)].tobytes() for at in range(len(found))] == [
                x.tobytes() for x in wanted[number]
            ], name


def saved(tmp_path: Path, python: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    tn.function(python).save(tmp_path / "f.tn", *args, **kwargs)
    return tn.load_function(tmp_path / "f.tn")


def changed(tmp_path: Path, change: Callable[[Any], Any]) -> Path:
    """Write a saved file again, its graph changed."""
    with zipfile.ZipFile(tmp_path / "f.tn") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members["function.json"])
    change(content)
    members["function.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(tmp_path / "g.tn", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return tmp_path / "g.tn"


def test_trees_and_defaults_are_those_of_the_function(tmp_path: Path) -> None:
    def layer(x: Any, state: Any, *, gain: float = 1.5) -> Any:
        h = x * gain + state["h"][0]
        return {"h": [h], "x": (x, None)}

    f = saved(tmp_path, layer, tn.ones(3), {"h": [tn.ones(3)]})
    found = f(tn.asarray([1.0, 2.0, 3.0]), state={"h": [np.ones(3)]}, gain=1.5)
    assert found["h"][0].tolist() == [2.5, 4.0, 5.5]
    assert isinstance(found["x"], tuple)
    assert found["x"][1] is None
    assert f.__name__ == "layer"


def test_named_tuple_is_loaded_as_a_tuple(tmp_path: Path) -> None:
    f = saved(tmp_path, lambda a: tn.linalg.svd(a), tn.ones((2, 2)))
    assert type(f(tn.ones((2, 2)))) is tuple


def test_function_without_examples_keeps_every_trace(tmp_path: Path) -> None:
    f = tn.function(lambda x: x + 1)
    f(tn.ones(2)), f(tn.ones(3, dtype="float32"))
    f.save(tmp_path / "f.tn")
    g = tn.load_function(tmp_path / "f.tn")
    assert g(tn.ones(2)).tolist() == [2, 2]
    assert g(np.ones(3, np.float32)).dtype == tn.float32
    with pytest.raises(TypeError, match=r"has those for \('float64\[2\]',\); \('float32\[3\]',\)"):
        g(tn.ones(4))


def test_example_arguments_are_not_computed(tmp_path: Path) -> None:
    x = tn.ones(3) * 2
    with tn.profile() as p:
        saved(tmp_path, lambda y: y + 1, x)
    assert p.launches == 0


def test_captured_arrays_have_their_values_at_the_save(tmp_path: Path) -> None:
    w = tn.asarray([1.0, 2.0])
    f = tn.function(lambda x: w * x)
    f(tn.ones(2))
    w[0] = 10.0
    f.save(tmp_path / "f.tn")
    w[1] = 20.0
    assert tn.load_function(tmp_path / "f.tn")(tn.ones(2)).tolist() == [10.0, 2.0]


def test_loaded_function_is_traced_mapped_differentiated_and_saved(tmp_path: Path) -> None:
    f = saved(tmp_path, lambda x: tn.sum(tn.sin(x)), tn.ones(3))
    x = tn.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert_equal_bits(np.asarray(tn.vmap(f)(x)), np.sum(np.asarray(tn.sin(x)), axis=1))
    assert_equal_bits(np.asarray(tn.grad(f)(x[0])), np.asarray(tn.cos(x[0])))
    f.save(tmp_path / "again.tn")
    assert tn.load_function(tmp_path / "again.tn")(x[0]).item() == f(x[0]).item()


@pytest.mark.usefixtures("fused_multiply_add")
def test_calls_of_a_loaded_function_are_pushed_and_batched(tmp_path: Path) -> None:
    python = tn.function(lambda x: tn.tanh(W @ x) * 2 + x)
    python.save(tmp_path / "f.tn", tn.ones(3))
    f = tn.load_function(tmp_path / "f.tn")
    rows = [tn.asarray(row) for row in np.random.default_rng(0).random((64, 3))]
    wanted = [f(x).tolist() for x in rows]
    with tn.Engine() as engine:
        assert [engine.push(f, x).get().tolist() for x in rows] == wanted
    launches = []
    for each in (f, python):
        with tn.profile() as p:
            found = tn.eval(*[each(x) for x in rows])
        assert [x.tolist() for x in found] == wanted
        launches.append(p.launches)
    assert launches[0] == launches[1] < 8


def test_loaded_function_outlives_a_trim(tmp_path: Path) -> None:
    f = saved(tmp_path, lambda x: x * 2, tn.ones(2))
    f(tn.ones(2)).wait()
    tn.trim()
    assert f(tn.ones(2)).tolist() == [2, 2]


def test_array_of_a_known_structure_calls_a_general_trace(tmp_path: Path) -> None:
    f = saved(tmp_path, lambda a: a @ a, tn.ones((2, 2)))
    assert f(tn.assume(tn.asarray([[1.0, 0.0], [2.0, 3.0]]), "lower")).tolist() == [[1, 0], [8, 9]]


def test_equal_functions_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tn.function(lambda x: tn.sin(x) @ W).save(tmp_path / name, tn.ones(3))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_file_stays_where_saving_fails(tmp_path: Path) -> None:
    saved(tmp_path, lambda x: x + 1, tn.ones(2))

    @tn.op
    def addone(x: Any) -> Any:
        return x + 1

    with pytest.raises(UnsupportedError, match=r"addone is not one of .*declared at .*py"):
        tn.function(lambda x: addone(x)).save(tmp_path / "f.tn", tn.ones(2))
    assert tn.load_function(tmp_path / "f.tn")(tn.ones(2)).tolist() == [2, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["f.tn"]


def test_callback_in_a_loop_is_refused_with_its_line(tmp_path: Path) -> None:
    @tn.op(shape=lambda x: x.shape, reference=np.sort)
    def in_order(x: Any) -> Any:
        """Sort."""

    f = tn.function(lambda x: tn.scan(lambda h, _: (in_order(h), None), x, None, length=2))
    with pytest.raises(UnsupportedError, match=r"in_order .*written at .*test_function_file.py"):
        f.save(tmp_path / "f.tn", tn.ones(2))


def test_function_that_reads_values_is_refused(tmp_path: Path) -> None:
    f = tn.function(lambda x: x if x[0] > 0 else -x)
    with pytest.raises(UnsupportedError, match="asks for a value"):
        f.save(tmp_path / "f.tn", tn.ones(2))


@dataclass
class Pair:
    a: Any


def test_dataclass_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="a Pair has no form in a file"):
        tn.function(lambda p: p.a).save(tmp_path / "f.tn", Pair(tn.ones(2)))


def test_own_derivative_is_refused_after_loading(tmp_path: Path) -> None:
    f = saved(tmp_path, lambda x: tn.sum(rounded(x)), tn.ones(2))
    assert f(tn.asarray([0.6, 1.2])).item() == 2
    with pytest.raises(UnsupportedError, match=r"the derivative of a tn\.custom_vjp"):
        tn.grad(f)(tn.ones(2))


def test_other_version_says_who_wrote_the_file(tmp_path: Path) -> None:
    saved(tmp_path, lambda x: tn.sin(x), tn.ones(2))
    path = changed(tmp_path, lambda content: content.update(format=2, version="9.1"))
    with pytest.raises(UnsupportedError, match=r"format 2, which tenfold 9\.1 wrote"):
        tn.load_function(path)


def test_unknown_operation_says_who_wrote_the_file(tmp_path: Path) -> None:
    def rename(content: Any) -> None:
        content["version"] = "9.1"
        content["bodies"][-1]["nodes"][0]["op"] = "sine"

    saved(tmp_path, lambda x: tn.sin(x), tn.ones(2))
    with pytest.raises(UnsupportedError, match=r"tenfold 9\.1 wrote: the operation 'sine'"):
        tn.load_function(changed(tmp_path, rename))


def body_of(content: Any) -> Any:
    return content["bodies"][-1]


WRONG = {
    "a slice outside of its array": (
        lambda x: x[1:],
        lambda content: body_of(content)["nodes"][0]["params"][0][0].__setitem__(2, 2),
    ),
    "an axis that is not there": (
        lambda x: tn.cumulative_sum(x, axis=0),
        lambda content: body_of(content)["nodes"][0]["params"].__setitem__(0, 1),
    ),
    "an axis as it is not written": (
        lambda x: tn.cumulative_sum(x, axis=0),
        lambda content: body_of(content)["nodes"][0]["params"].__setitem__(0, -1),
    ),
    "another Type than inferred": (
        lambda x: tn.sin(x),
        lambda content: (
            content["types"].append(["float32", [3], "cpu", "dense", 0])
            or body_of(content)["nodes"][0].update(types=[1])
        ),
    ),
    "an operand behind the node": (
        lambda x: tn.sin(x),
        lambda content: body_of(content)["nodes"][0].update(of=[1]),
    ),
    "a body that calls itself": (
        lambda x: inner(x, x),
        lambda content: next(n for n in body_of(content)["nodes"] if "body" in n).update(body=2),
    ),
    "an operation of no module": (
        lambda x: tn.sin(x),
        lambda content: body_of(content)["nodes"][0].update(op="os:system"),
    ),
    "an operation that rules alone make": (
        lambda x: x @ x,
        lambda content: body_of(content)["nodes"][0].update(op="gemm:gemm"),
    ),
    "a number that is inexact": (
        lambda x: x + 2,
        lambda content: body_of(content)["nodes"][0].update(number=0.1),
    ),
    "a length without end": (
        lambda x: tn.sin(x),
        lambda content: content["types"][0].__setitem__(1, [2**62]),
    ),
    "a device that is not named": (
        lambda x: tn.sin(x),
        lambda content: content["types"][0].__setitem__(2, None),
    ),
    "a structure that is false": (
        lambda x: x @ LOWER,
        lambda content: content["types"][-1].__setitem__(4, 3),
    ),
    "a dict with a key twice": (
        lambda x: {"a": x, "b": x},
        lambda content: content["traces"][0]["results"]["dict"][0].__setitem__(0, "b"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_graph_is_an_error(name: str, tmp_path: Path) -> None:
    python, change = WRONG[name]
    saved(tmp_path, python, tn.ones(3))
    with pytest.raises((ValueError, UnsupportedError)):
        tn.load_function(changed(tmp_path, change))


def test_loop_that_changes_its_carry_is_an_error(tmp_path: Path) -> None:
    def change(content: Any) -> None:
        step = content["bodies"][-2]
        step["outputs"][0] = step["outputs"][1]

    saved(tmp_path, lambda x: tn.scan(lambda h, r: (h + r, h > 0), x[0], x), tn.ones((2, 3)))
    with pytest.raises(ValueError, match="carry of a loop changes"):
        tn.load_function(changed(tmp_path, change))


def test_calls_that_multiply_are_limited(tmp_path: Path) -> None:
    def grow(content: Any) -> None:
        body = content["bodies"][-1]
        for _ in range(60):
            number = len(content["bodies"]) - 1
            call = {"body": number, "of": [0], "types": body["inputs"]}
            again = {**call, "of": [1]}
            body = {"name": "f", "inputs": body["inputs"], "nodes": [call, again], "outputs": [2]}
            content["bodies"].append(body)
        content["traces"][0]["body"] = len(content["bodies"]) - 1

    saved(tmp_path, lambda x: tn.sin(x), tn.ones(3))
    with pytest.raises(ValueError, match="call one another too often"):
        tn.load_function(changed(tmp_path, grow))


def test_deep_json_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "deep.tn", "w") as archive:
        archive.writestr("function.json", "[" * 10**6)
    with pytest.raises(ValueError, match="not an exported function, or damaged"):
        tn.load_function(tmp_path / "deep.tn")


def test_compressed_member_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.tn", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("function.json", b"\0" * 10**7)
    with pytest.raises(ValueError, match="do not fit into it"):
        tn.load_function(tmp_path / "bomb.tn")


def test_graph_that_no_file_may_have_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_codec, "MAX_GRAPH_BYTES", 100)
    with pytest.raises(UnsupportedError, match=r"the graph of <lambda> has \d+ bytes, of 100"):
        tn.function(lambda x: tn.sin(x)).save(tmp_path / "f", tn.ones(3))
    with pytest.raises(UnsupportedError, match="an argument or a result"):
        tn.function(lambda x, n: x * n).save(tmp_path / "f", tn.ones(3), 2**200)
    assert not (tmp_path / "f").exists()


def test_size_of_the_graph_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, lambda x: tn.sin(x), tn.ones(3))
    monkeypatch.setattr(function_codec, "MAX_GRAPH_BYTES", 100)
    with pytest.raises(ValueError, match="its graph has more than 100 bytes"):
        tn.load_function(tmp_path / "f.tn")


def test_limit_of_an_array_is_that_of_the_call(tmp_path: Path) -> None:
    saved(tmp_path, lambda x: tn.broadcast_to(x, (1000, 3)), tn.ones(3))
    with pytest.raises(ValueError, match=r"shape \(1000, 3\) has more than 10,000 bytes"):
        tn.load_function(tmp_path / "f.tn", limit=10_000)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x80\x04.", b"\x93NUMPY" + b"\0" * 100])
def test_file_of_another_format_is_an_error(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ValueError, match="not an exported function, or damaged"):
        tn.load_function(tmp_path / "f")


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tn.load_function(tmp_path / "missing")
    with pytest.raises(OSError, match="directory does not exist"):
        tn.function(lambda x: x).save(tmp_path / "no" / "f", tn.ones(2))


def test_constant_of_another_type_is_an_error(tmp_path: Path) -> None:
    saved(tmp_path, lambda x: x + tn.asarray([1.0, 2.0]), tn.ones(2))
    path = changed(tmp_path, lambda content: None)
    with zipfile.ZipFile(path, "a") as archive:
        assert archive.namelist() == ["function.json", "0.npy"]
    text = path.read_bytes()
    path.write_bytes(text.replace(b"'<f8'", b"'<i8'"))
    with pytest.raises(ValueError, match="damaged"):
        tn.load_function(path)


def test_bool_that_is_neither_0_nor_1_is_an_error(tmp_path: Path) -> None:
    mask = tn.asarray([True, False, True])
    saved(tmp_path, lambda x: tn.where(mask, x, 0), tn.ones(3))
    with zipfile.ZipFile(tmp_path / "f.tn") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "g.tn", "w") as changed_archive:
        for name, data in members.items():
            is_mask = name.endswith(".npy") and b"'|b1'" in data
            changed_archive.writestr(name, data[:-1] + b"\x07" if is_mask else data)
    with pytest.raises(ValueError, match="booleans that are neither 0 nor 1"):
        tn.load_function(tmp_path / "g.tn")


def test_device_that_is_not_here_is_a_device_error(tmp_path: Path) -> None:
    saved(tmp_path, lambda x: tn.sin(x), tn.ones(3))
    path = changed(tmp_path, lambda content: content["types"][0].__setitem__(2, "tpu"))
    with pytest.raises(tn.errors.DeviceError, match="tpu"):
        tn.load_function(path)


def test_file_of_another_device_runs_there(tmp_path: Path) -> None:
    x = tn.ones(3, device="reference")
    f = saved(tmp_path, lambda y: tn.sin(y) + tn.ones(3, device="reference"), x)
    assert f(x).device == "reference"
