"""Absent names: what NumPy and its arrays have and Tenfold has not, each with its remedy. Table.

`namespace/absent.py` says the remedy in the AttributeError, `docs/absent.py` writes the page of
all. A test asks the installed NumPy for its names, so that none is forgotten.

>>> ABSENT_NAMES["linalg"]
{}
>>> ABSENT_NAMES[""]["longdouble"]
'use tn.float64'
"""

from __future__ import annotations

from collections.abc import Mapping


def _each(names: str, remedy: str) -> dict[str, str]:
    return {name: remedy.format(name) for name in names.split()}


SEED = "make a generator: rng = tn.random.default_rng(seed)"
"""The remedy for NumPy's old generators."""

ABSENT_NAMES: Mapping[str, Mapping[str, str]] = {
    "": {
        **_each(
            "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data "
            "is_busday timedelta64",
            "keep dates in NumPy's arrays, and import counts: tn.asarray(dates.astype(np.int64))",
        ),
        **_each(
            "rec recarray record void",
            "keep records in NumPy's arrays, and import one field: tn.asarray(records['name'])",
        ),
        **_each(
            "char strings",
            "keep text in NumPy's arrays, and import numbers: tn.asarray(text.astype(np.float64))",
        ),
        "ma": "fill first: tn.asarray(values.filled(0)); numpy.ma.getmaskarray(values) is the mask",
        **_each("asmatrix matrix", "write tn.asarray(A), whose product is A @ B"),
        "bmat": "use tenfold.numpy.block",
        **_each("float128 longdouble", "use tn.float64"),
        **_each("clongdouble complex256", "use tn.complex128"),
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

ATTRIBUTES: Mapping[str, str] = {
    "H": "write tn.conj(x.mT)",
    "cpu": "write x.to_device('cpu')",
    "ctypes": "use np.asarray(x, order='C').ctypes, which waits",
    "data": "write memoryview(x), which waits",
    "flags": "use np.asarray(x).flags, which waits",
    "getfield": "use np.asarray(x).getfield, which waits",
    "numpy": "write np.asarray(x), which waits",
    "ptp": "write tn.max(x) - tn.min(x)",
    "resize": "write x = tenfold.numpy.resize(x, shape), which makes an Array",
    "setfield": "write x[...] = value",
    "setflags": "use np.asarray(x).setflags, which waits",
    "to": "write x.to_device(device), or tn.astype(x, dtype)",
}
"""Attributes of an ndarray, and of arrays of other libraries, that Array has not."""

GENERATORS: Mapping[str, str] = {
    "bit_generator": "use rng.state",
    "tomaxint": "write rng.integers(2**63 - 1)",
}
"""Attributes of NumPy's Generator and RandomState that those of Tenfold have not."""
