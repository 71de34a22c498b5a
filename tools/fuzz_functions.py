"""Fuzzes the reader of exported functions: mutated files give an error, or the right result.

Takes a count and a first seed; hands on the number of each outcome, and exit status 1 for a file
that crashes or hangs a process, raises an error of another class, or gives another result than the
reference device. A seed is one file of `FUNCTIONS`, with flipped, cut or inserted bytes, or with a
valid archive whose graph or constants are changed. The right result of a changed graph is that of
the reference device, which interprets it with NumPy.

Example: `python tools/fuzz_functions.py --count 10000 --seed 0`
"""

from __future__ import annotations

import argparse
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.core.op import OPS, SampleCall
from tenfold.core.pytree import flatten

LIMIT = 1 << 24
"""Bytes of an array in a file."""
SECONDS = 10
"""Limit of one computation."""
ERRORS = (ValueError, tn.errors.UnsupportedError, tn.errors.DeviceError, OSError)
RUN_ERRORS = (*ERRORS, ArithmeticError, LookupError, TypeError, tn.errors.RunError, MemoryError)
NUMBERS = (0, 1, -1, 2, 3, 7, 63, 64, 2**31, -(2**31), 2**63 - 1, 2**63, 2**64, 10**30)
LOOPS = (b"control:while_loop", b"control:scan")

W = tn.asarray(np.arange(12.0).reshape(3, 4) / 8)
B = tn.asarray(np.linspace(-1, 1, 4).astype("float32"))
CSR = tn.csr([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 2, 3], (3, 3))
PLACES = tn.asarray([2, 0, -1])


def _dense(x: Any) -> Any:
    h = tn.tanh(x @ W) + B
    return {"h": h, "m": [tn.mean(h, axis=0), tn.argmax(h, axis=-1)], "s": tn.softmax(h)}


def _moved(x: Any) -> Any:
    y = x[::-1, 1:].T + 1
    y[0] = 5.0
    y[:, ::2] += 1
    parts = [tn.concat([x, x], axis=1), tn.stack([x, x * 2]), tn.roll(x, 1, axis=0)]
    wider = [tn.pad(x, 1), tn.repeat(x, 2, axis=0), tn.tile(x, (2, 1)), tn.flip(x)]
    taken = [tn.take(x, PLACES, axis=1), x[PLACES[:2], PLACES[1:]], tn.tril(x), tn.diagonal(x)]
    windows = tn.sliding_window_view(x, (2,), axis=1)
    return [y, parts, wider, taken, windows, tn.put_at(x, PLACES[1:], 0.5), tn.reshape(x, (3, 2))]


def _ordered(x: Any) -> Any:
    steps = [
        tn.cumulative_sum(x, axis=1),
        tn.sort(x, axis=0),
        tn.argsort(x),
        tn.max(x, axis=(0, 1)),
    ]
    return [*steps, tn.searchsorted(W[0], x), tn.isin(x, W), tn.segment_sum(x, PLACES[:2] * 0, 3)]


def _matrices(x: Any) -> Any:
    a = x @ x.T + tn.eye(2)
    found = [tn.linalg.solve(a, x), tn.linalg.cholesky(a), tn.linalg.norm(x, axis=1)]
    return [*found, tn.linalg.slogdet(a)[1], tn.fft.rfft(x), tn.einsum("ij,kj,k->i", x, x, x[:, 0])]


def _looped(x: Any) -> Any:
    last, rows = tn.scan(lambda h, r: (tn.tanh(h + r), {"h": h * 2}), W[:, 0], x)
    chosen = tn.cond(tn.sum(x) > 1, lambda y: y * 2, lambda y: y + W[0, 1], x)
    return last, rows, chosen, tn.while_loop(lambda s: tn.sum(s) < 50, lambda s: s * 2 + 1, x)


_inner = tn.function(lambda a, b: (tn.sin(a) * b, tn.sum(a)))
FUNCTIONS = {
    "dense": _dense,
    "moved": _moved,
    "ordered": _ordered,
    "matrices": _matrices,
    "looped": _looped,
    "sparse": lambda x: (CSR @ x.T, tn.sum(CSR, axis=0), CSR.T @ tn.ones(3), CSR.to_dense()),
    "gradient": tn.grad(lambda x: tn.sum(_dense(x)["h"] ** 2)),
    "nested": lambda x: [_inner(x, _inner(x, x)[0]), _inner(x, x)],
    "halves": lambda x: [
        tn.astype(x, tn.bfloat16) * 3,
        tn.astype(x, tn.int8) // 2,
        x > 0.5,
        x * 1j,
    ],
    "drawn": lambda x: tn.random.random(tn.astype(x[0, 0], tn.int64), 1, (2, 3)) + x,
}


def saved_files() -> dict[str, bytes]:
    """Return the unchanged file of each function, and of each sample of each operation."""
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.tn"
        for name, python in FUNCTIONS.items():
            tn.function(python).save(path, tn.ones((2, 3)))
            files[name] = path.read_bytes()
        for operation in OPS.values():
            for number, sample in enumerate(operation.samples):
                with suppress(*RUN_ERRORS):
                    arrays = [tn.ones(shape) for shape in sample.shapes]
                    tn.function(partial(_sampled, operation, sample)).save(path, *arrays)
                    files[f"{operation.full_name}-{number}"] = path.read_bytes()
    return files


def _sampled(operation: Any, sample: SampleCall, *arrays: Any) -> Any:
    """Call an operation as a sample says: with the arrays one by one, or as one list."""
    takes_list = next(iter(operation.public_signature.parameters), "") == "arrays"
    inputs = [[*arrays]] if takes_list else arrays
    return operation(*inputs, *sample.positional, **sample.arguments)


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: dict[str, bytes]) -> bytes:
    """Return an archive of members, with right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) for each value in JSON."""
    found: list[tuple[Any, Any]] = []
    containers = [value]
    while containers:
        container = containers.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, item in items:
            found.append((container, key))
            if isinstance(item, (dict, list)):
                containers.append(item)
    return found


def change_graph(text: bytes, rng: random.Random) -> bytes:
    """Return a graph with one to three values changed."""
    content = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        places = places_in(content)
        narrow = places_in([container for container, key in places if key == "of"])
        container, key = rng.choice(narrow if narrow and rng.random() < 0.7 else places)
        value = container[key]
        other_container, other_key = rng.choice(places)
        kind = rng.random()
        if isinstance(value, int) and kind < 0.5:
            container[key] = rng.choice(
                [value + 1, value - 1, rng.choice(NUMBERS), rng.randint(0, 9)]
            )
        elif kind < 0.6:
            container[key] = rng.choice(
                [None, True, [], {}, "", "float32", "x" * 2000, [[[]]], 1.5]
            )
        elif kind < 0.7 and isinstance(container, list):
            del container[key]
        elif kind < 0.8 and isinstance(container, list):
            container.insert(key, value)
        else:
            same = [c[k] for c, k in places if type(c[k]) is type(value)]
            container[key] = json.loads(
                json.dumps(rng.choice(same) if kind < 0.97 else other_container[other_key])
            )
    return json.dumps(content).encode()


def change_params(text: bytes, rng: random.Random) -> bytes:
    """Return a graph with one or two params, or a fact of a Type, changed: many are valid."""
    content = json.loads(text)
    nodes = [node for body in content["bodies"] for node in body["nodes"] if node.get("params")]
    places = [
        (container, key)
        for container, key in places_in([node["params"] for node in nodes])
        if isinstance(container[key], int) or container[key] is None
    ]
    if rng.random() < 0.2 and content["types"]:
        type_ = rng.choice(content["types"])
        at, value = rng.choice([(3, "csr"), (3, "permutation"), (4, rng.randrange(512))])
        type_[at] = value
    for _ in range(rng.choice([1, 1, 2]) if places else 0):
        container, key = rng.choice(places)
        value = container[key]
        if isinstance(value, bool) or value is None:
            container[key] = rng.choice([0, 1, 2, -1, None, not value])
        else:
            container[key] = rng.choice(
                [value + 1, value - 1, -value, 0, 1, 2, rng.choice(NUMBERS)]
            )
    return json.dumps(content).encode()


def change_constant(data: bytes, rng: random.Random) -> bytes:
    """Return an `.npy` file of the same Type with other values, or of another Type."""
    values = np.load(io.BytesIO(data), allow_pickle=False).copy()
    if values.size and rng.random() < 0.8:
        at = rng.randrange(values.size)
        is_integer, signed = values.dtype.kind in "iu", values.dtype.kind == "i"
        values.reshape(-1)[at] = (
            rng.randint(-100 * signed, 100) if is_integer else rng.choice([0, -1, 1e300])
        )
    else:
        values = values.real.astype(rng.choice(["int8", "float32", "complex128"])).reshape(-1)
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a mutated file."""
    kind = rng.random()
    if kind < 0.25:
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if kind < 0.3:
        return data[: rng.randrange(len(data))]
    if kind < 0.35:
        at = rng.randrange(len(data))
        return data[:at] + rng.randbytes(rng.randint(1, 64)) + data[at + rng.choice([0, 4, 64]) :]
    members = members_of(data)
    constants = [name for name in members if name.endswith(".npy")]
    if kind < 0.45 and constants:
        name = rng.choice(constants)
        members[name] = change_constant(members[name], rng)
    else:
        change = change_params if kind < 0.7 else change_graph
        members["function.json"] = change(members["function.json"], rng)
    return archive_of(members)


class TooLong(Exception):
    """A computation did not end in time."""


def _stop(*_: Any) -> None:
    raise TooLong


def outcome_of(data: bytes, path: Path, device: str) -> tuple[str, Any]:
    """Return the kind of outcome of a file on a device, and the results or the error."""
    members = data
    if device != "cpu":
        try:
            parts = members_of(data)
        except Exception:  # noqa: BLE001  # the archive is damaged: as it is
            parts = {}
        if parts.get("function.json"):
            parts["function.json"] = parts["function.json"].replace(b'"cpu"', b'"reference"')
            members = archive_of(parts)
    path.write_bytes(members)
    try:
        loaded = tn.load_function(path, limit=LIMIT)
    except ERRORS as error:
        return "refused", error
    function: Any = loaded.save
    calls = function.__self__.saved_calls()
    if not calls:
        return "without traces", None
    call = calls[0]
    if any(node.name == "factors" for node in call.trace.subgraph.outputs):
        return "undefined", None  # their form is chosen with the method
    nodes = call.trace.subgraph.inputs[: call.trace.subgraph.num_arguments]
    arrays = iter([argument(node.type) for node in nodes])
    structure, constants = call.arguments
    try:
        args, kwargs = structure.unflatten([next(arrays) if c is None else c for c in constants])
        results = flatten(loaded(*args, **kwargs))[0]
        tn.eval(*results)
        dense = [x.to_dense() if hasattr(x, "to_dense") else x for x in results]
        return "computed", [np.array(x) for x in dense]
    except RUN_ERRORS as error:
        return "failed", error


def argument(type_: Any) -> tn.Array:
    """Return an array of a Type, its elements small numbers."""
    count = int(np.prod(type_.shape, dtype=object))
    values = (np.arange(count) % 7 / 4).reshape(type_.shape)
    x = tn.asarray(values.astype(type_.dtype), device=type_.device)
    x.wait()
    return x


def fault_of(seed: int, files: dict[str, bytes], folder: Path) -> tuple[str, str]:
    """Return the outcome of one seed, and what is wrong with it ("" for nothing)."""
    rng = random.Random(seed)
    name = rng.choice([*FUNCTIONS] if rng.random() < 0.4 else [*files])
    data = mutated(files[name], rng)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        kind, found = outcome_of(data, folder / "mutated.tn", "cpu")
        if kind not in ("computed", "failed"):
            return kind, ""
        other_kind, wanted = outcome_of(data, folder / "reference.tn", "reference")
    except TooLong:
        is_loop = name == "looped"
        return "long loop", "" if is_loop else f"{name}: it does not end"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if "ragged_" in str(wanted):  # offsets that do not ascend: kernels clamp them
        return "undefined", ""
    if kind != other_kind:
        return kind, f"{name}: {kind} {found}, but by the reference {other_kind} {wanted}"
    return kind, "" if kind == "failed" else difference(name, found, wanted)


def difference(name: str, found: list[np.ndarray], wanted: list[np.ndarray]) -> str:
    """Return how results differ by more than rounding, or ""."""
    for x, y in zip(found, wanted, strict=True):
        wide = complex if x.dtype.kind == "c" else np.float64
        tolerance = 1e-2 if x.dtype.itemsize <= 2 else 1e-3
        with np.errstate(all="ignore"):
            fits = np.allclose(x.astype(wide), y.astype(wide), tolerance, tolerance, equal_nan=True)
        if (x.shape, x.dtype) != (y.shape, y.dtype) or not fits:
            return f"{name}: {x.tolist()} is not {y.tolist()}"[:2000]
    return ""


def work(first: int, last: int) -> None:
    """Check seeds in this process; print each before its outcome, so that a crash has a seed."""
    signal.signal(signal.SIGALRM, _stop)
    np.seterr(all="ignore")
    files = saved_files()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            print(seed, end=" ", flush=True)
            try:
                kind, fault = fault_of(seed, files, Path(folder))
            except Exception as error:  # noqa: BLE001  # the fault to be found
                kind, fault = "raised", f"{type(error).__name__}: {error}"
            print(json.dumps([kind, fault]), flush=True)


def main() -> int:
    """Check all seeds in processes of their own; 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--last", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.last is not None:
        work(options.seed, options.last)
        return 0
    seed, end = options.seed, options.seed + options.count
    kinds: Counter[str] = Counter()
    faults = 0
    while seed < end:
        command = [sys.executable, __file__, "--seed", str(seed), "--last", str(end)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        for line in run.stdout.splitlines():
            number, _, outcome = line.partition(" ")
            kind, fault = (
                json.loads(outcome) if outcome else ("crashed", f"status {run.returncode}")
            )
            kinds[kind] += 1
            seed = int(number) + 1
            if fault:
                faults += 1
                print(f"seed {number}: {fault}")
        if not run.stdout:
            print("the worker did not start")
            return 1
    print(", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()))
    print(f"{faults} of {options.count:,} files have a fault")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
