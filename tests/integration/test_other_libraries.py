"""Libraries that take NumPy's arrays, unmodified, on Arrays.

They are the extra `[integration]`. A test without its library skips; with `--skips-fail`, as
`.ci/run` runs these tests, it fails.
"""

from __future__ import annotations

import operator
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import FallbackWarning

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def conversions() -> Iterator[None]:
    """Conversions are accepted; warnings of the libraries' own are theirs."""
    with warnings.catch_warnings(), tn.options(numpy_fallback="convert"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FallbackWarning)
        yield


def library(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def test_scipy_computes_on_arrays() -> None:
    from scipy import integrate, optimize, signal, special, stats

    x = tn.asarray(VALUES)
    np.testing.assert_allclose(special.erf(x), special.erf(VALUES))
    np.testing.assert_allclose(special.gammaln(x + 1), special.gammaln(VALUES + 1))
    np.testing.assert_allclose(signal.detrend(x), signal.detrend(VALUES), atol=1e-12)
    np.testing.assert_allclose(stats.zscore(np.asarray(x)), stats.zscore(VALUES))
    np.testing.assert_allclose(integrate.trapezoid(x, axis=0), np.trapezoid(VALUES, axis=0))
    found = optimize.minimize(lambda p: float(tn.sum((tn.asarray(p) - 1) ** 2)), np.zeros(2))
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "dtype"),
    [
        ("gaussian_filter", (1,), "float64"),
        ("median_filter", (3,), "float32"),
        ("sobel", (), "float64"),
        ("label", (), "int32"),
        ("binary_dilation", (), "bool"),
    ],
)
def test_ndimage_writes_to_arrays(name: str, arguments: Any, dtype: str) -> None:
    ndimage = library("scipy.ndimage")
    function, target = getattr(ndimage, name), tn.zeros((3, 4), dtype=dtype)
    expected = np.zeros((3, 4), dtype)
    found = function(tn.asarray(VALUES) - 5, *arguments, output=target)
    answer = function(VALUES - 5, *arguments, output=expected)
    np.testing.assert_array_equal(np.asarray(target), expected)
    assert (found is target) == (answer is expected)
    assert pickle.loads(pickle.dumps(function)) is function  # our own bytes
    distances = tn.zeros((3, 4))
    ndimage.distance_transform_edt(VALUES > 5, distances=distances)
    np.testing.assert_array_equal(distances, ndimage.distance_transform_edt(VALUES > 5))


BY_ARRAY_API = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np
import tenfold as tn
from scipy import signal, special, stats
x, y = np.random.default_rng(0).normal(size=(2, 48))
numerator, denominator = np.asarray([1.0, 2.0]), np.asarray([1.0, 0.5])
CALLS = [
    *((f, (x, y)) for f in (signal.convolve, signal.fftconvolve, signal.correlate)),
    *((f, (x,)) for f in (signal.hilbert, signal.detrend)),
    (signal.resample, (x, 24)), (signal.savgol_filter, (x, 5, 2)),
    (signal.lfilter, (numerator, denominator, x)), (signal.filtfilt, (numerator, denominator, x)),
    *((f, (x,)) for f in (stats.zscore, stats.skew, stats.kurtosis, stats.sem, stats.rankdata)),
    *((f, (x, y)) for f in (stats.ttest_ind, stats.pearsonr, stats.kruskal)),
    *((f, (x,)) for f in (special.expit, special.logsumexp, special.softmax, stats.iqr)),
]
for function, args in CALLS:
    found = function(*(tn.asarray(a) if isinstance(a, np.ndarray) else a for a in args))
    expected = function(*args)
    results = [(found, expected)]
    if hasattr(expected, "statistic"):
        results = [(found.statistic, expected.statistic), (found.pvalue, expected.pvalue)]
    for ours, theirs in results:
        assert isinstance(ours, tn.Array), function
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-12)
print(len(CALLS))
"""


def test_functions_of_scipy_return_arrays_by_the_array_api() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BY_ARRAY_API], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "21\n"), done.stderr


def test_scikit_learn_fits_on_arrays() -> None:
    linear = library("sklearn.linear_model")
    preprocessing = library("sklearn.preprocessing")
    x, y = tn.asarray(VALUES), tn.asarray([1.0, 2.0, 4.0])
    model = linear.Ridge().fit(x, y)
    expected = linear.Ridge().fit(VALUES, np.asarray(y))
    np.testing.assert_allclose(model.predict(x), expected.predict(VALUES))
    scaled = preprocessing.StandardScaler().fit_transform(x)
    np.testing.assert_allclose(np.mean(np.asarray(scaled), axis=0), np.zeros(4), atol=1e-12)


SAMPLES = np.random.default_rng(0).standard_normal((40, 4))
LABELS = (SAMPLES[:, 0] + 0.1 * SAMPLES[:, 1] > 0).astype(int)
ESTIMATORS = {
    "linear_model.LogisticRegression": {},
    "cluster.KMeans": {"n_clusters": 3, "n_init": 2, "random_state": 0},
    "decomposition.PCA": {"n_components": 2},
    "neighbors.KNeighborsClassifier": {},
    "tree.DecisionTreeClassifier": {"random_state": 0},
    "ensemble.HistGradientBoostingClassifier": {"max_iter": 3},
    "svm.SVC": {},
    "naive_bayes.GaussianNB": {},
    "impute.SimpleImputer": {},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_of_scikit_learn_take_arrays(name: str) -> None:
    module, _, kind = name.partition(".")
    estimator = getattr(library(f"sklearn.{module}"), kind)
    found = []
    for x, y in ((SAMPLES, LABELS), (tn.asarray(SAMPLES), tn.asarray(LABELS))):
        model = estimator(**ESTIMATORS[name]).fit(x, y)
        found.append(model.predict(x) if hasattr(model, "predict") else model.transform(x))
    np.testing.assert_allclose(np.asarray(found[1]), found[0], atol=1e-10)


def test_scores_and_splits_of_scikit_learn_take_arrays() -> None:
    selection, metrics = library("sklearn.model_selection"), library("sklearn.metrics")
    ridge = library("sklearn.linear_model").Ridge()
    x, y = tn.asarray(SAMPLES), tn.asarray(LABELS)
    parts = selection.train_test_split(x, y, random_state=0)
    expected = selection.train_test_split(SAMPLES, LABELS, random_state=0)
    for part, values in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(part), values)
    scores = selection.cross_val_score(ridge, x, y, cv=3)
    np.testing.assert_allclose(scores, selection.cross_val_score(ridge, SAMPLES, LABELS, cv=3))
    for score in (metrics.accuracy_score, metrics.f1_score, metrics.mean_squared_error):
        np.testing.assert_allclose(score(y, 1 - y), score(LABELS, 1 - LABELS))
    np.testing.assert_allclose(
        np.asarray(metrics.pairwise_distances(x)), metrics.pairwise_distances(SAMPLES)
    )


@pytest.mark.parametrize("skipna", [True, False])
def test_xarray_holds_arrays(skipna: bool) -> None:
    xarray = library("xarray")
    values = VALUES.copy()
    values[0, 1] = np.nan
    ours = xarray.DataArray(tn.asarray(values), dims=("time", "place"))
    theirs = xarray.DataArray(values, dims=("time", "place"))
    assert isinstance(ours.data, tn.Array)
    for name in ("mean", "sum", "max", "min", "prod", "std", "var"):
        made = getattr(ours, name)("time", skipna=skipna)
        expected = getattr(theirs, name)("time", skipna=skipna)
        assert isinstance(made.data, tn.Array), name
        np.testing.assert_allclose(np.asarray(made.data), expected.data, err_msg=name)
    for name in ("std", "var"):  # with NumPy's name of the correction, whatever the namespace is
        made = getattr(ours, name)("time", skipna=skipna, ddof=1)
        expected = getattr(theirs, name)("time", skipna=skipna, ddof=1)
        np.testing.assert_allclose(np.asarray(made.data), expected.data, err_msg=name)
    shifted = (ours * 2 + 1).transpose("place", "time").isel(time=1)
    np.testing.assert_allclose(np.asarray(shifted.data), (theirs * 2 + 1)[1].data)


XARRAY_CALLS: dict[str, Callable[[Any], Any]] = {
    "median": lambda x: x.median("time"),
    "median of all": lambda x: x.median("time", skipna=False),
    "quantile": lambda x: x.quantile([0.25, 0.5], "time"),
    "quantile of all": lambda x: x.quantile(0.25, "time", skipna=False),
    "rolling": lambda x: x.rolling(time=2, min_periods=1).mean(),
    "rolling sums": lambda x: x.rolling(time=2).sum(),
    "dot": lambda x: x.dot(x, "time"),
    "differentiate": lambda x: x.assign_coords(time=[0.0, 1, 3]).differentiate("time"),
    "integrate": lambda x: x.assign_coords(time=[0.0, 1, 3]).integrate("time"),
    "cumsum": lambda x: x.cumsum("time"),
    "argmax": lambda x: x.argmax("time"),
    "coarsen": lambda x: x.coarsen(time=3).mean(),
    "shift": lambda x: x.shift(time=1),
    "diff": lambda x: x.diff("time"),
    "where": lambda x: x.where(x > 3, 0),
    "fillna": lambda x: x.where(x > 3).fillna(7),
    "isnull": lambda x: x.where(x > 3).isnull(),
    "clip": lambda x: x.clip(2, 8),
    "stack": lambda x: x.stack(both=("time", "place")),
    "groupby": lambda x: x.assign_coords(time=[0, 1, 0]).groupby("time").mean(),
    "interp": lambda x: x.assign_coords(time=[0.0, 1.0, 2.0]).interp(time=[0.5, 1.25]),
    "sel": lambda x: x.assign_coords(time=[0, 1, 2]).sel(time=[2, 0]),
    "pad": lambda x: x.pad(time=1),
    "roll": lambda x: x.roll(time=1),
}


@pytest.mark.parametrize("name", XARRAY_CALLS)
def test_xarray_computes_on_arrays(name: str) -> None:
    xarray = library("xarray")
    library("scipy.interpolate")
    call = XARRAY_CALLS[name]
    made = call(xarray.DataArray(tn.asarray(VALUES), dims=("time", "place")))
    expected = call(xarray.DataArray(VALUES, dims=("time", "place")))
    assert made.dims == expected.dims
    np.testing.assert_allclose(np.asarray(made.data), expected.data, atol=1e-12)


def test_dask_has_chunks_that_are_arrays() -> None:
    dask = library("dask.array")
    chunked = dask.from_array(tn.asarray(VALUES), chunks=(2, 2), asarray=False)
    assert isinstance(chunked._meta, tn.Array)
    made = (chunked * 2 + chunked.sum(axis=0)).compute(scheduler="synchronous")
    assert isinstance(made, tn.Array)
    np.testing.assert_allclose(np.asarray(made), VALUES * 2 + VALUES.sum(axis=0))
    total = chunked.mean().compute(scheduler="synchronous")
    np.testing.assert_allclose(np.asarray(total), VALUES.mean())
    expected = VALUES.T @ VALUES
    for product in (chunked.T @ chunked, dask.dot(chunked.T, chunked)):
        np.testing.assert_allclose(product.compute(scheduler="threads"), expected)
    picked = chunked[chunked[:, 0] > 0, ::-1].compute(scheduler="synchronous")
    np.testing.assert_array_equal(picked, VALUES[1:, ::-1])


def test_dask_computes_with_arrays_on_either_side() -> None:
    dask = library("dask.array")
    chunked, x = dask.from_array(VALUES, chunks=2), tn.asarray(VALUES)
    for made in (chunked + x, x + chunked, np.add(x, chunked), np.where(x > 3, x, chunked) * 2):
        np.testing.assert_array_equal(np.asarray(made.compute()), VALUES * 2)
    np.testing.assert_array_equal(np.asarray((x > chunked - 1).compute()), VALUES > VALUES - 1)
    np.testing.assert_allclose(np.asarray((x @ chunked.T).compute()), VALUES @ VALUES.T)
    rows = dask.from_array(x.ravel(), chunks=6)
    expected = dask.percentile(dask.from_array(VALUES.ravel(), chunks=6), [25, 50]).compute()
    np.testing.assert_allclose(np.asarray(dask.percentile(rows, [25, 50]).compute()), expected)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_stores_arrays(version: int) -> None:
    zarr = library("zarr")
    options = {"shape": (3, 4), "chunks": (2, 2), "dtype": "f8", "zarr_format": version}
    stored = zarr.create_array(store={}, **options)
    stored[:] = tn.asarray(VALUES)
    stored[0, :2] = tn.asarray([7.0, 8.0])
    expected = VALUES.copy()
    expected[0, :2] = [7, 8]
    np.testing.assert_array_equal(tn.asarray(stored[:]), expected)


def test_matplotlib_draws_arrays() -> None:
    library("matplotlib").use("Agg")
    pyplot = library("matplotlib.pyplot")
    x = tn.asarray(np.linspace(0.0, 1.0, 5))
    plane = np.meshgrid(x, x)
    figure, axes = pyplot.subplots()
    axes.plot(x, x * 2)
    axes.bar(x, x + 1)
    axes.scatter(x, x)
    axes.hist(x)
    axes.quiver(*plane, plane[0], plane[1])
    axes.imshow(plane[0])
    axes.contour(*plane, plane[0] * plane[1])
    space = figure.add_subplot(projection="3d")
    space.plot_surface(*plane, plane[0] * plane[1])
    figure.canvas.draw()
    pyplot.close(figure)


@pytest.mark.parametrize("module", ["einops", "einops.array_api"])
def test_einops_rearranges_arrays(module: str) -> None:
    einops = library(module)
    x = tn.asarray(VALUES)
    for pattern, options in (("a b -> b a", {}), ("a (b c) -> a b c", {"c": 2})):
        made = einops.rearrange(x, pattern, **options)
        expected = einops.rearrange(VALUES, pattern, **options)
        np.testing.assert_array_equal(np.asarray(made), expected)
        assert isinstance(made, tn.Array)
    np.testing.assert_array_equal(einops.reduce(x, "a b -> a", "sum"), VALUES.sum(1))


def test_all_functions_of_einops_take_arrays() -> None:
    einops = library("einops")
    x = tn.asarray(VALUES)
    for function, args in (
        (einops.repeat, (x, "a b -> a b c", 2)),
        (einops.reduce, (x, "a b -> b", "mean")),
        (einops.rearrange, ([x, x + 1], "n a b -> a b n")),
        (einops.einsum, (x, x, "a b, c b -> a c")),
    ):
        operands = [np.asarray(a) if isinstance(a, tn.Array) else a for a in args]
        if isinstance(args[0], list):
            operands[0] = [np.asarray(each) for each in args[0]]
        options = {"c": operands.pop()} if function is einops.repeat else {}
        made = function(*args[: len(operands)], **options)
        assert isinstance(made, tn.Array)
        np.testing.assert_allclose(np.asarray(made), function(*operands, **options))


@pytest.mark.parametrize("first", ["einops", "tenfold"])
def test_einops_and_tenfold_are_imported_in_any_order(first: str) -> None:
    library("einops")
    second = "tenfold" if first == "einops" else "einops"
    code = (
        f"import {first}, {second}, einops, tenfold as tn; "
        "print(einops.rearrange(tn.ones((2, 3)), 'a b -> b a').shape)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "(3, 2)\n", result.stderr


def test_pandas_takes_arrays() -> None:
    pandas = library("pandas")
    frame = pandas.DataFrame({"a": np.asarray(tn.asarray(VALUES[0]) * 2)})
    assert frame["a"].tolist() == (VALUES[0] * 2).tolist()
    x = tn.asarray([0.0, 2.0, np.nan, 6.0])
    assert pandas.isnull(x).tolist() == [False, False, True, False]
    assert (frame["a"] == x).tolist() == (x == frame["a"]).tolist() == [True, True, False, True]
    assert (frame["a"] < x + 1).tolist() == [True, True, False, True]
    assert pandas.Index(x[:2]).tolist() == [0.0, 2.0]
    assert pandas.cut(x, 2).codes.tolist() == [0, 0, -1, 1]


def test_xarray_passes_on_what_it_is_given() -> None:
    xarray = library("xarray")
    pairs = [(tn.asarray(VALUES), VALUES), (tn.asarray(VALUES) * 2, VALUES * 2)]
    for values, expected in pairs:
        mine, theirs = (
            xarray.DataArray(x, dims=("p", "q"), coords={"q": [1.0, 2.0, 3.0, 5.0]})
            for x in (values, expected)
        )
        for call in (
            lambda x: x.polyfit("q", 1).polyfit_coefficients,
            lambda x: x.isin([2.0, 8.0]),
            lambda x: x.idxmax("q"),
            lambda x: np.any(x > 3),
        ):
            np.testing.assert_allclose(np.asarray(call(mine)), np.asarray(call(theirs)), atol=1e-9)


@pytest.mark.parametrize(("dtype", "shape"), [("u1", (4, 5)), ("u1", (4, 5, 3)), ("f4", (4, 5))])
def test_pillow_makes_images_of_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    image = library("PIL.Image")
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for x, expected in ((tn.asarray(values), values), (tn.asarray(values)[::-1], values[::-1])):
        made, right = image.fromarray(x), image.fromarray(expected)
        assert (made.mode, made.size) == (right.mode, right.size)
        np.testing.assert_array_equal(np.asarray(made), expected)


SPARSE = ["csr_array", "csc_array", "coo_array", "csr_matrix"]


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("symbol", "add sub mul truediv eq ne lt gt matmul".split())
def test_a_sparse_matrix_computes_with_an_array_on_either_side(symbol: str, kind: str) -> None:
    from scipy import sparse

    apply, matrix = getattr(operator, symbol), getattr(sparse, kind)(np.eye(3, 4) * 2)
    is_product = symbol == "matmul" or (symbol, kind) == ("mul", "csr_matrix")
    values = VALUES.T if is_product else VALUES
    for swap in (False, True):
        operands, expected = (
            (x, matrix)[:: -1 if swap else 1] for x in (tn.asarray(values), values)
        )
        try:
            right = apply(*expected)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                apply(*operands)
        else:
            np.testing.assert_allclose(dense(apply(*operands)), dense(right))


def test_a_sparse_matrix_is_added_in_place() -> None:
    from scipy import sparse

    x = tn.asarray(VALUES)
    x += sparse.csr_array(np.eye(3, 4))
    assert x.tolist() == (VALUES + np.eye(3, 4)).tolist()


def dense(value: Any) -> np.ndarray:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


def test_a_sparse_matrix_becomes_one_of_a_storage_kind() -> None:
    from scipy import sparse

    assert tn.asarray(sparse.csr_array(np.eye(2))).storage == "csr"


def test_a_library_that_writes_through_dlpack_changes_no_array() -> None:
    torch = library("torch")
    x = tn.asarray([1.0, 2.0]) + 0
    for tensor in (torch.from_dlpack(x), torch.from_dlpack(x.wait(), copy=True)):
        tensor[0] = 9
        assert x.tolist() == [1, 2]


def test_lazy_signs_of_a_tensor_of_torch_are_resolved() -> None:
    torch = library("torch")
    z = torch.tensor([1 + 2j, 3 - 4j])
    for take in (tn.from_dlpack, tn.asarray):
        assert take(z.conj().imag).tolist() == [-2, 4]
        assert take(z.conj()).tolist() == [1 - 2j, 3 + 4j]


def test_bfloat16_of_torch_comes_in() -> None:
    torch = library("torch")
    tensor = torch.tensor([[1.5, -2.0], [3.0, 4.0]], dtype=torch.bfloat16)
    made = tn.asarray(tensor.T)
    assert made.dtype == tn.bfloat16
    assert made.tolist() == [[1.5, 3.0], [-2.0, 4.0]]
    tensor.zero_()
    assert made.tolist() == [[1.5, 3.0], [-2.0, 4.0]]


def test_h5py_stores_arrays(tmp_path: Path) -> None:
    h5py = library("h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        stored = file.create_dataset("x", data=tn.asarray(VALUES) * 2, chunks=(2, 2))
        stored[0, :2] = tn.asarray([7.0, 8.0])
        expected = VALUES * 2
        expected[0, :2] = [7, 8]
        assert tn.asarray(stored).tolist() == tn.asarray(stored[:]).tolist() == expected.tolist()


def test_distributed_sends_arrays_to_its_workers() -> None:
    distributed = library("distributed")
    x = tn.asarray(VALUES)
    with distributed.Client(processes=False, dashboard_address=None) as client:
        made = client.submit(tn.sum, x * 2, axis=0).result(timeout=60)
    assert made.tolist() == (VALUES.sum(axis=0) * 2).tolist()
    header, frames = distributed.protocol.serialize(x + 1)
    assert distributed.protocol.deserialize(header, frames).tolist() == (VALUES + 1).tolist()
