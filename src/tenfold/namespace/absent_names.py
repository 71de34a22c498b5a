"""Absent names: what NumPy and its arrays have and Tenfold has not, each with its remedy. Table.

`namespace/absent.py` says the remedy in the AttributeError, `docs/absent.py` writes the page of
all. A test asks the installed NumPy for its names, so that none is forgotten.

>>> ABSENT_NAMES["linalg"]
{}
>>> ABSENT_NAMES[""]["bmat"]
'use tenfold.numpy.block'
"""

from __future__ import annotations

from collections.abc import Mapping


def _each(names: str, remedy: str) -> dict[str, str]:
    return {name: remedy.format(name) for name in names.split()}


SEED = "make a generator: rng = tn.random.default_rng(seed)"
"""The remedy for NumPy's old generators."""

ABSENT_NAMES: Mapping[str, Mapping[str, str]] = {
    "": {
        "ma": "fill first: tn.asarray(values.filled(0)); numpy.ma.getmaskarray(values) is the mask",
        **_each("asmatrix matrix", "write tn.asarray(A), whose product is A @ B"),
        "bmat": "use tenfold.numpy.block",
        "flatiter": "write x.flat, which is an Array",
        **_each("ctypeslib f2py test", "use numpy.{}"),
        "core": "use tenfold.numpy, which has its public names",
        "__array_namespace_info__": "use tn.__array_namespace_info__()",
        "__version__": "use numpy.__version__ or tn.__version__",
        "trapz": "use tenfold.numpy.trapezoid",
        "in1d": "use tenfold.numpy.isin",
    },
    "linalg": {},
    "fft": {},
    "random": _each("BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64", SEED),
    "lib": _each(
        "Arrayterator NumpyVersion add_docstring add_newdoc array_utils format introspect mixins "
        "npyio scimath tracemalloc_domain",
        "use numpy.lib.{}",
    ),
}
"""Names of NumPy's modules, those of its older versions too, that `tenfold.numpy` has not."""

PEER_NAMES: Mapping[str, str] = {
    **_each("Tensor from_numpy tensor", "write tn.asarray(values)"),
    "cat": "write tn.concat([x, y], axis=0)",
    "unsqueeze": "write tn.expand_dims(x, axis=0)",
    "clamp": "write tn.clip(x, low, high)",
    **_each("bmm mm", "write x @ y"),
    "numel": "write x.size",
    "topk": "write tn.argsort(x, descending=True)[..., :k], and tn.sort likewise",
    **_each("double float", "use tn.float64"),
    "half": "use tn.float16",
    **_each("int long", "use tn.int64"),
    **_each("fori_loop lax", "write tn.scan(step, start, inputs), tn.while_loop or tn.cond"),
    "compile": "write @tn.function: it traces a function once",
    "make_jaxpr": "write x.explain(), which prints every stage",
    **_each("pmap shard_map", "write tn.vmap(f); for data larger than memory tn.blockwise"),
    "remat": "use tn.checkpoint",
    "device_put": "write x.to_device(device)",
    **_each("inference_mode no_grad", "leave it out: only tn.grad and tn.watch record anything"),
    "autograd": "use tn.grad, tn.vjp, tn.grad_of",
    "jnp": "use tenfold.numpy",
    **_each("nn optim", "write layers and steps as functions: docs/derivatives.md"),
    **_each(
        "tree_map tree_util", "pass tuples, lists and dicts of Arrays to functions as they are"
    ),
    **_each("get_num_threads set_num_threads", "write tn.set_options(threads=2)"),
    **_each(
        "Generator PRNGKey default_rng key manual_seed rand randint randn random_key seed", SEED
    ),
    "sparse_coo_tensor": "use tn.csr_from_coo",
    "sparse_csr_tensor": "use tn.csr",
    "block_until_ready": "write x.wait(), or tn.eval(x, y)",
}
"""Names of the main namespaces of JAX and PyTorch."""

ATTRIBUTES: Mapping[str, str] = {
    "H": "write tn.conj(x.mT)",
    **_each("add_ div_ mul_ sub_", "write x += y, and likewise for other operators"),
    "at": "write x[index] = value, or tn.add_at(x, index, value)",
    **_each("backward grad requires_grad", "write tn.grad(f)(x), or tn.grad_of(loss, x)"),
    "block_until_ready": "write x.wait()",
    **_each("byte char double float half int long short type", "write tn.astype(x, dtype)"),
    "clone": "write x.copy()",
    "contiguous": "leave it out: any layout is taken",
    "cpu": "write x.to_device('cpu')",
    "cuda": "write x.to_device('cuda')",
    "detach": "write tn.stop_gradient(x)",
    **_each("devices is_cuda", "use x.device"),
    "dim": "use x.ndim",
    "expand": "write tn.broadcast_to(x, shape)",
    **_each("fill_ zero_", "write x[...] = value"),
    "index_select": "write tn.take(x, indices, axis=0)",
    "masked_fill": "write tn.where(mask, value, x)",
    "mm": "write x @ y",
    "numel": "use x.size",
    "permute": "write tn.permute_dims(x, axes)",
    "repeat_interleave": "write tn.repeat(x, n)",
    "t": "use x.T",
    "topk": "write tn.argsort(x, descending=True)[..., :k]",
    "unsqueeze": "write tn.expand_dims(x, axis=0)",
    "ctypes": "use np.asarray(x, order='C').ctypes, which waits",
    "getfield": "use np.asarray(x).getfield, which waits",
    "numpy": "write np.asarray(x), which waits",
    "ptp": "write tn.max(x) - tn.min(x)",
    "resize": "write x = tenfold.numpy.resize(x, shape), which makes an Array",
    "setfield": "write x[...] = value",
    "to": "write x.to_device(device), or tn.astype(x, dtype)",
}
"""Attributes of an ndarray, and of arrays of other libraries, that Array has not."""

GENERATORS: Mapping[str, str] = {
    "bit_generator": "use rng.state",
    "tomaxint": "write rng.integers(2**63 - 1)",
}
"""Attributes of NumPy's Generator and RandomState that those of Tenfold have not."""
