"""Calls of NumPy's functions, as they are written in programs. Table.

Each row is a name with calls of it, one a line. `np` is NumPy or `tenfold.numpy`. The arguments are
`a`, `b` (2, 3), `v`, `w` (4,), `m` (3, 3), `t` (2, 2, 3), of a dtype and with special values;
`k` (4,) and `i` (2,) are whole numbers below 2, `mask` (2, 3) is of truth values, `f` (5,) rises.
Names after `!` are the data that a call is for, if it is not for all.
"""

from __future__ import annotations

REAL = "!real"
FUNCTIONS = """
all: np.all(a); np.all(a, 0); np.all(a, axis=(0, 1), keepdims=True); np.all(a, 1, where=mask)
allclose: np.allclose(a, a + 1e-9); np.allclose(a, b); np.allclose(a, a, equal_nan=True)
amax: np.amax(a, 1, initial=0) !real
amin: np.amin(a, 1, initial=0) !real
angle: np.angle(a); np.angle(a, deg=True)
any: np.any(a); np.any(a, 0); np.any(a, axis=(0, 1), keepdims=True); np.any(a, 1, where=mask)
append: np.append(a, b); np.append(a, b, axis=0); np.append(a, [[1, 2, 3]], 0)
apply_along_axis: np.apply_along_axis(sum, 0, a)
apply_over_axes: np.apply_over_axes(real_numpy.sum, t, [0, 1])
arange: np.arange(5); np.arange(1, 10, 3); np.arange(0.0, 1.0, 0.25);
    np.arange(3, dtype="float32"); np.arange(5, 1, -1); np.arange(3, dtype="uint64")
argmax: np.argmax(a); np.argmax(a, 0); np.argmax(a, axis=1, keepdims=True) !real
argmin: np.argmin(a); np.argmin(a, 0); np.argmin(a, axis=1, keepdims=True) !real
argpartition: np.take(v, np.argpartition(v, 2))[:3].sum(); np.argpartition(k, 1).shape !real
argsort: np.argsort(a, kind="stable"); np.argsort(a, 0, kind="stable");
    np.argsort(a, axis=None, stable=True)
argwhere: np.argwhere(a); np.argwhere(mask)
around: np.around(a, 1)
array: np.array([[1, 2], [3, 4]]); np.array(a, dtype="complex128"); np.array([1.5], ndmin=3);
    np.array(2.5); np.array([a, b]); np.array(a, copy=True, order="F")
array2string: np.array2string(a)
array_equal: np.array_equal(a, a); np.array_equal(a, b); np.array_equal(a, v);
    np.array_equal(a, a, equal_nan=True)
array_equiv: np.array_equiv(a, a); np.array_equiv(a, a[:1]); np.array_equiv(a, v)
array_repr: np.array_repr(a)
array_split: np.array_split(v, 3); np.array_split(a, 2, axis=1); np.array_split(v, [1, 3])
array_str: np.array_str(a)
asanyarray: np.asanyarray([1, 2]); np.asanyarray(a)
asarray: np.asarray([1, 2], dtype="float32"); np.asarray(a); np.asarray(1, dtype=bool)
asarray_chkfinite: np.asarray_chkfinite(a)
ascontiguousarray: np.ascontiguousarray(a.T); np.ascontiguousarray(3.0)
asfortranarray: np.asfortranarray(a)
astype: np.astype(a, np.complex64)
atleast_1d: np.atleast_1d(3.0); np.atleast_1d(a, v)
atleast_2d: np.atleast_2d(3.0); np.atleast_2d(a, v)
atleast_3d: np.atleast_3d(3.0); np.atleast_3d(a, v, t)
average: np.average(a); np.average(a, 0); np.average(a, axis=1, weights=[1.0, 2.0, 3.0]);
    np.average(a, 0, returned=True); np.average(a, 1, [1, 2, 1], True)
bartlett: np.bartlett(5)
base_repr: np.base_repr(5, 3)
binary_repr: np.binary_repr(5)
bincount: np.bincount(k); np.bincount(k, minlength=5); np.bincount(k, weights=f[:4])
blackman: np.blackman(5)
block: np.block([[a, b], [b, a]]); np.block([v, w]); np.block([[m, m], [m, m]])
broadcast: np.broadcast(a, a[0]).shape
broadcast_arrays: np.broadcast_arrays(a, a[0]); np.broadcast_arrays(a, 0.5)
broadcast_shapes: np.broadcast_shapes((2, 1), (1, 3))
broadcast_to: np.broadcast_to(v, (2, 4)); np.broadcast_to(2.5, (3,))
can_cast: np.can_cast(a.dtype, "complex128"); np.can_cast("f8", "f4")
choose: np.choose(k, [v, w]); np.choose([0, 1, 1], [[1, 2, 3], [4, 5, 6]]); np.choose(k, [v, 3])
clip: np.clip(a, 0, 1); np.clip(a, None, 1); np.clip(a, a_min=0, a_max=None); np.clip(a, min=1);
    np.clip(a, 0.25, 0.75) !real
column_stack: np.column_stack([v, w]); np.column_stack([a, b])
common_type: np.common_type(a)
compress: np.compress([True, False, True], a, axis=1); np.compress([False, True], v)
concat: np.concat([a, b])
concatenate: np.concatenate([a, b]); np.concatenate((a, b), 1);
    np.concatenate([a, v], axis=None); np.concatenate([a, b], dtype="complex128");
    np.concatenate([a, [[1, 2, 3]]])
convolve: np.convolve(v, w); np.convolve(v, w, "same"); np.convolve(v, [1, 2], mode="valid")
copy: np.copy(a)
corrcoef: np.corrcoef(m); np.corrcoef(v, w); np.corrcoef(m, rowvar=False)
correlate: np.correlate(v, w); np.correlate(v, w, "full")
count_nonzero: np.count_nonzero(a); np.count_nonzero(a, axis=0);
    np.count_nonzero(a, 1, keepdims=True)
cov: np.cov(m); np.cov(v, w); np.cov(m, rowvar=False); np.cov(m, bias=True); np.cov(v);
    np.cov(m, ddof=0); np.cov(v, aweights=[1, 2, 1, 2])
cross: np.cross(m, m[::-1]); np.cross(a, b, axis=1); np.cross(m[0], m)
cumprod: np.cumprod(a); np.cumprod(a, 0); np.cumprod(a, axis=1, dtype="complex128")
cumsum: np.cumsum(a); np.cumsum(a, 0); np.cumsum(a, axis=1, dtype="complex128")
cumulative_prod: np.cumulative_prod(a, axis=1); np.cumulative_prod(v, include_initial=True)
cumulative_sum: np.cumulative_sum(a, axis=1); np.cumulative_sum(v, include_initial=True)
delete: np.delete(v, 1); np.delete(a, [0, 2], axis=1); np.delete(a, 1);
    np.delete(v, slice(0, 2)); np.delete(v, -1)
diag: np.diag(v); np.diag(m); np.diag(m, 1); np.diag(v, k=-1)
diag_indices: np.diag_indices(3); np.diag_indices(2, 3)
diag_indices_from: np.diag_indices_from(m)
diagflat: np.diagflat(v); np.diagflat(a, 1)
diagonal: np.diagonal(m); np.diagonal(t, 0, 1, 2); np.diagonal(a, offset=1)
diff: np.diff(v); np.diff(a, 1, 0); np.diff(a, axis=0, n=2); np.diff(v, prepend=0);
    np.diff(v, append=v[:2])
digitize: np.digitize(v, [0.0, 0.5, 1.0]); np.digitize(v, [1.0, 0.5, 0.0]);
    np.digitize(v, [0.0, 1.0], right=True) !real
dot: np.dot(v, w); np.dot(m, m); np.dot(m, m[0]); np.dot(t, m); np.dot(t, t.transpose(0, 2, 1));
    np.dot(2, v)
dsplit: np.dsplit(t, 3); np.dsplit(t, [1])
dstack: np.dstack([a, b]); np.dstack([v, w]); np.dstack([t, t])
ediff1d: np.ediff1d(v); np.ediff1d(a, to_end=0)
einsum: np.einsum("ij,jk->ik", m, m); np.einsum("ij->j", a); np.einsum("ii", m);
    np.einsum("i,i", v, w)
einsum_path: np.einsum_path("ij,jk,kl->il", m, m, m)
empty: np.empty((2, 3)).shape; np.empty(3, "float32").dtype
empty_like: np.empty_like(a).shape; np.empty_like(a, dtype=int).dtype
expand_dims: np.expand_dims(a, 1); np.expand_dims(a, (0, 2)); np.expand_dims(a, axis=-1)
extract: np.extract(mask, b); np.extract(v > 0, v) !real nonempty
eye: np.eye(3); np.eye(2, 3, 1); np.eye(3, k=-1, dtype=int)
fix: np.fix(a) !float
flatnonzero: np.flatnonzero(a); np.flatnonzero(mask)
flip: np.flip(a); np.flip(a, 0); np.flip(a, axis=(0, 1))
fliplr: np.fliplr(a)
flipud: np.flipud(a); np.flipud(v)
format_float_positional: np.format_float_positional(0.1)
format_float_scientific: np.format_float_scientific(0.1)
from_dlpack: np.from_dlpack(real_numpy.arange(3))
frombuffer: np.frombuffer(b"1234", dtype="uint8")
fromfunction: np.fromfunction(lambda i, j: i + j, (2, 3));
    np.fromfunction(lambda i: i, (3,), dtype=int)
fromiter: np.fromiter(range(3), dtype=float)
fromstring: np.fromstring("1 2 3", sep=" ")
frompyfunc: np.frompyfunc(lambda x, y: x + y, 2, 1)(a, b).tolist()
full: np.full((2, 3), 7); np.full(3, 0.5, dtype="float32"); np.full((2, 4), v);
    np.full((2,), np.asarray(1.5))
full_like: np.full_like(a, 1); np.full_like(a, 1, dtype=float, shape=(2,))
geomspace: np.geomspace(1, 1000, 4)
gradient: np.gradient(v); np.gradient(m); np.gradient(m, axis=1); np.gradient(v, 2.0);
    np.gradient(m, 1.0, 2.0); np.gradient(v, [0, 1, 3, 4]); np.gradient(v, edge_order=2)
hamming: np.hamming(5)
hanning: np.hanning(5)
histogram: np.histogram(v, 3, (0, 2)); np.histogram(v, bins=[0, 1, 2]);
    np.histogram(v, bins=[0.0, 1.0, 2.0], density=True) !real
histogram2d: np.histogram2d(v, w, 2, [[-2, 2], [-2, 2]]) !real
histogram_bin_edges: np.histogram_bin_edges(f, 4)
histogramdd: np.histogramdd(m, 2, [[-9, 9]] * 3) !real
hsplit: np.hsplit(a, 3); np.hsplit(v, 2); np.hsplit(a, [1])
hstack: np.hstack([v, w]); np.hstack([a, b]); np.hstack([t, t]); np.hstack((1.0, v))
i0: np.i0(v) !real
identity: np.identity(3); np.identity(2, dtype=int)
imag: np.imag(a)
indices: np.indices((2, 3)); np.indices((2, 3), sparse=True); np.indices((2,), dtype=float)
inner: np.inner(v, w); np.inner(m, m); np.inner(t, m); np.inner(2, v)
insert: np.insert(v, 1, 5); np.insert(a, 1, 9, axis=1); np.insert(v, [1, 2], [7, 8])
interp: np.interp(v, f, f * 2); np.interp(0.5, f, f, left=-1.0, right=9.0) !real
intersect1d: np.intersect1d(v, w); np.intersect1d(k, [0, 3])
isclose: np.isclose(a, b); np.isclose(a, a + 1e-9); np.isclose(a, a, equal_nan=True);
    np.isclose(a, b, rtol=1.0, atol=0.5)
iscomplex: np.iscomplex(a)
iscomplexobj: np.iscomplexobj(a)
isdtype: np.isdtype(np.float64, "real floating")
isfortran: np.isfortran(a)
isin: np.isin(a, [0, 1]); np.isin(a, b, invert=True); np.isin(k, [1])
isneginf: np.isneginf(a) !real
isposinf: np.isposinf(a) !real
isreal: np.isreal(a)
isrealobj: np.isrealobj(a)
isscalar: np.isscalar(3.0); np.isscalar(a)
issubdtype: np.issubdtype(np.float32, np.floating)
iterable: np.iterable(a); np.iterable(3)
ix_: np.ix_([0, 1], [1, 2]); a[np.ix_([0, 1], [0, 2])]
kaiser: np.kaiser(5, 14.0)
kron: np.kron(a, b); np.kron(v, m)
lexsort: np.lexsort((k, v)) !real
linspace: np.linspace(0, 1, 5); np.linspace(0, 1); np.linspace(0, 1, 4, endpoint=False);
    np.linspace(0, 1, 3, retstep=True); np.linspace(v, w, 3); np.linspace(0, 4, 5, dtype=int)
logspace: np.logspace(0, 2, 3); np.logspace(0, 3, 4, base=2.0);
    np.logspace(0, 2, 3, dtype="float32")
mask_indices: np.mask_indices(3, np.triu)
matrix_transpose: np.matrix_transpose(t)
max: np.max(a); np.max(a, 0); np.max(a, axis=1, keepdims=True);
    np.max(a, 1, initial=0, where=mask)
may_share_memory: np.may_share_memory(a, b)
mean: np.mean(a); np.mean(a, 0); np.mean(a, axis=(0, 1), keepdims=True);
    np.mean(a, 1, where=mask); np.mean(a, dtype="complex128"); np.mean(a, axis=())
median: np.median(a); np.median(a, 0); np.median(a, axis=1, keepdims=True); np.median(v);
    np.median(t, axis=(0, 2)) !real
meshgrid: np.meshgrid(v, w); np.meshgrid(v, w, indexing="ij"); np.meshgrid(v, w, sparse=True);
    np.meshgrid(v, real_numpy.arange(2)); np.meshgrid(v)
min: np.min(a); np.min(a, 0); np.min(a, axis=1, keepdims=True);
    np.min(a, 1, initial=0, where=mask)
min_scalar_type: np.min_scalar_type(3); np.min_scalar_type(a)
mintypecode: np.mintypecode("fd")
moveaxis: np.moveaxis(t, 0, -1); np.moveaxis(t, [0, 1], [2, 0])
nan_to_num: np.nan_to_num(a); np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=3.0)
nanargmax: np.nanargmax(a); np.nanargmax(a, axis=0) !real
nanargmin: np.nanargmin(a); np.nanargmin(a, axis=0) !real
nancumprod: np.nancumprod(a); np.nancumprod(a, axis=1)
nancumsum: np.nancumsum(a); np.nancumsum(a, axis=1)
nanmax: np.nanmax(a); np.nanmax(a, 0); np.nanmax(a, axis=1, keepdims=True) !real
nanmean: np.nanmean(a); np.nanmean(a, 0); np.nanmean(a, axis=1, keepdims=True)
nanmedian: np.nanmedian(a); np.nanmedian(a, axis=0) !real
nanmin: np.nanmin(a); np.nanmin(a, 0); np.nanmin(a, axis=1, keepdims=True) !real
nanpercentile: np.nanpercentile(a, 25); np.nanpercentile(a, [25, 75], axis=0) !real
nanprod: np.nanprod(a); np.nanprod(a, 0); np.nanprod(a, axis=1, keepdims=True)
nanquantile: np.nanquantile(a, 0.25); np.nanquantile(a, [0.25, 0.75], axis=0) !real
nanstd: np.nanstd(a); np.nanstd(a, axis=0); np.nanstd(a, axis=1, ddof=1)
nansum: np.nansum(a); np.nansum(a, 0); np.nansum(a, axis=1, keepdims=True)
nanvar: np.nanvar(a); np.nanvar(a, axis=0); np.nanvar(a, axis=1, ddof=1)
ndim: np.ndim(a); np.ndim(3); np.ndim([[1]])
nonzero: np.nonzero(a); np.nonzero(mask)
ones: np.ones((2, 3)); np.ones(3, int)
ones_like: np.ones_like(a); np.ones_like(a, dtype=float); np.ones_like(a, shape=(2,))
outer: np.outer(v, w); np.outer(a, v)
packbits: np.packbits(mask); np.packbits(mask, axis=1)
pad: np.pad(a, 1); np.pad(a, ((1, 0), (0, 2))); np.pad(v, (1, 2), "constant", constant_values=5);
    np.pad(v, 1, mode="edge"); np.pad(v, 2, "reflect"); np.pad(v, 1, "linear_ramp");
    np.pad(v, (2, 1), "mean")
partition: np.partition(v, 2)[:3].sum(); np.partition(v, 2)[2] !real
percentile: np.percentile(a, 25); np.percentile(a, [25, 75], axis=0);
    np.percentile(a, 50, 1, keepdims=True); np.percentile(v, 30, method="lower") !real
permute_dims: np.permute_dims(t, (1, 0, 2))
piecewise: np.piecewise(f, [f < 2, f >= 2], [-1, lambda x: x * 2])
poly: np.poly([1.0, 2.0]); np.poly(m)
polyadd: np.polyadd(v, w[:2])
polyder: np.polyder(v); np.polyder(v, 2)
polydiv: np.polydiv(f[1:], [1.0, 2.0])
polyfit: np.polyfit(f, f * 2, 1)
polyint: np.polyint(v)
polymul: np.polymul(v, w[:2])
polysub: np.polysub(v, w[:2])
polyval: np.polyval([1, 0, 2], v); np.polyval(v, 2.0); np.polyval(v, a)
prod: np.prod(a); np.prod(a, 0); np.prod(a, axis=1, keepdims=True); np.prod(a, 1, where=mask);
    np.prod(a, initial=2); np.prod(a, dtype="complex128")
promote_types: np.promote_types("f4", "i4")
ptp: np.ptp(a); np.ptp(a, 0); np.ptp(a, axis=1, keepdims=True) !real
quantile: np.quantile(a, 0.25); np.quantile(a, [0.25, 0.75], axis=0);
    np.quantile(a, 0.5, 1, keepdims=True); np.quantile(t, 0.3, axis=(0, 1));
    np.quantile(v, [[0.0, 0.2], [0.6, 1.0]]) !real
ravel: np.ravel(a); np.ravel(a, order="F"); np.ravel(a.T, "C")
ravel_multi_index: np.ravel_multi_index(([0, 1], [1, 2]), (2, 3))
real: np.real(a)
real_if_close: np.real_if_close(a); np.real_if_close(a + 1e-20j)
repeat: np.repeat(v, 2); np.repeat(a, 2, axis=0); np.repeat(v, [1, 0, 2, 1]); np.repeat(a, 2)
require: np.require(a, requirements="C")
reshape: np.reshape(a, (3, 2)); np.reshape(a, -1); np.reshape(a, (3, -1), order="F");
    np.reshape(a, shape=(6,))
resize: np.resize(a, (3, 4)); np.resize(v, 6); np.resize(v, (2, 1))
result_type: np.result_type(a, "float32"); np.result_type(a, 2.0)
roll: np.roll(v, 1); np.roll(a, 1, axis=1); np.roll(a, (1, 1), axis=(0, 1)); np.roll(a, 2)
rollaxis: np.rollaxis(t, 2); np.rollaxis(t, 0, 3)
roots: np.roots([1.0, -3.0, 2.0])
rot90: np.rot90(a); np.rot90(a, 2); np.rot90(a, k=3); np.rot90(t, 1, (1, 2)); np.rot90(a, -1)
round: np.round(a); np.round(a, 1); np.round(a * 16, -1); np.round(a, decimals=2)
row_stack: np.vstack([v, w])
searchsorted: np.searchsorted(f, v); np.searchsorted(f, 2.0, side="right");
    np.searchsorted(f, [1, 2], "left") !real
select: np.select([v > 0, v < 0], [v, w]); np.select([v > 1, v > 0], [v, w], default=7);
    np.select([mask], [b], -1) !real nonempty
setdiff1d: np.setdiff1d(k, [0]); np.setdiff1d(v, w)
setxor1d: np.setxor1d(k, [0, 3]); np.setxor1d(v, w)
shape: np.shape(a); np.shape([[1, 2]])
shares_memory: np.shares_memory(a, b)
sinc: np.sinc(a); np.sinc(0.0)
size: np.size(a); np.size(a, 0); np.size(a, axis=1)
sort: np.sort(a); np.sort(a, 0); np.sort(a, axis=None); np.sort(v, kind="stable")
sort_complex: np.sort_complex(v)
split: np.split(v, 2); np.split(a, 3, axis=1); np.split(v, [1, 3]); np.split(a, [1], 1)
squeeze: np.squeeze(a[:, :1]); np.squeeze(a[:, :1], axis=1); np.squeeze(a[None], 0)
stack: np.stack([a, b]); np.stack((a, b), 1); np.stack([a, b], axis=-1)
std: np.std(a); np.std(a, 0); np.std(a, axis=1, ddof=1, keepdims=True); np.std(a, correction=1);
    np.std(a, 1, where=mask)
sum: np.sum(a); np.sum(a, 0); np.sum(a, axis=(0, 1), keepdims=True); np.sum(a, 1, where=mask);
    np.sum(a, initial=5); np.sum(a, dtype="complex64"); np.sum([a, b], axis=0); np.sum(a, axis=())
swapaxes: np.swapaxes(t, 0, 2); np.swapaxes(a, 0, 1)
take: np.take(v, [0, 2]); np.take(a, [1, 0], axis=1); np.take(a, [[0, 1], [2, 0]], 1);
    np.take(v, [5, -1], mode="wrap"); np.take(v, [9, -3], mode="clip"); np.take(v, 1)
take_along_axis: np.take_along_axis(a, np.argsort(a, axis=1, kind="stable"), axis=1);
    np.take_along_axis(v, i, 0); np.take_along_axis(a, i, None)
tensordot: np.tensordot(m, m); np.tensordot(m, m, 1); np.tensordot(t, m, axes=([2], [0]))
tile: np.tile(v, 2); np.tile(a, (2, 1)); np.tile(v, (2, 2)); np.tile(a, np.array([2, 1]))
trace: np.trace(m); np.trace(m, 1); np.trace(t, 0, 1, 2); np.trace(m, dtype="complex128")
transpose: np.transpose(t); np.transpose(t, (1, 0, 2)); np.transpose(v);
    np.transpose(t, axes=[2, 0, 1])
trapezoid: np.trapezoid(v); np.trapezoid(a, axis=0); np.trapezoid(v, f[:4]);
    np.trapezoid(v, dx=2.0); np.trapezoid(a, [0.0, 1.0, 3.0])
tri: np.tri(3); np.tri(2, 3, -1); np.tri(2, dtype=int)
tril: np.tril(m); np.tril(a, 1); np.tril(t, k=-1)
tril_indices: np.tril_indices(3); np.tril_indices(3, 1, 2)
tril_indices_from: np.tril_indices_from(m); np.tril_indices_from(a, k=1)
trim_zeros: np.trim_zeros([0, 1, 2, 0]); np.trim_zeros(v)
triu: np.triu(m); np.triu(a, 1); np.triu(t, k=-1)
triu_indices: np.triu_indices(3); np.triu_indices(3, 1, 2)
triu_indices_from: np.triu_indices_from(m); np.triu_indices_from(a, k=1)
typename: np.typename("f")
union1d: np.union1d(v, w); np.union1d(k, [5])
unique: np.unique(a); np.unique(k, return_counts=True);
    np.unique(v, return_index=True, return_inverse=True); np.unique(a, axis=0)
unique_all: np.unique_all(k)
unique_counts: np.unique_counts(k)
unique_inverse: np.unique_inverse(k)
unique_values: np.sort(np.unique_values(k))
unpackbits: np.unpackbits(np.array([3], dtype="uint8"))
unravel_index: np.unravel_index(5, (2, 3)); np.unravel_index([1, 2], shape=(2, 3))
unstack: np.unstack(a); np.unstack(a, axis=1)
unwrap: np.unwrap(v * 3); np.unwrap(a, axis=0) !real
vander: np.vander(v); np.vander(v, 2, True)
var: np.var(a); np.var(a, 0); np.var(a, axis=1, ddof=1, keepdims=True); np.var(a, correction=1);
    np.var(a, 1, where=mask); np.var(a, axis=1, mean=np.mean(a, axis=1, keepdims=True))
vdot: np.vdot(v, w); np.vdot(a, b)
vsplit: np.vsplit(a, 2); np.vsplit(m, [1])
vstack: np.vstack([v, w]); np.vstack((a, b)); np.vstack([a, v[:3]])
where: np.where(a > 0); np.where(mask, 1, 0); np.where(v > 0, v, 0);
    np.where(a, 1.5, a) !real nonempty
zeros: np.zeros((2, 3)); np.zeros(3, "int32"); np.zeros(shape=2, dtype=np.complex64)
zeros_like: np.zeros_like(a); np.zeros_like(a, dtype=float); np.zeros_like(a, shape=(2,))
"""

# Functions that write into their first argument: the call, then what it has written.
WRITERS = """
copyto: np.copyto(a, b); np.copyto(a, 1); np.copyto(a, b, where=mask)
fill_diagonal: np.fill_diagonal(m, 5)
place: np.place(a, mask, [1, 0])
put: np.put(a, [0, 4], [1, 0]); np.put(v, [1], 1)
put_along_axis: np.put_along_axis(a, np.array([[0], [1]]), 1, axis=1)
putmask: np.putmask(a, mask, b)
"""

UNARY = """
absolute abs arccos acos arccosh acosh arcsin asin arcsinh asinh arctan atan arctanh atanh
bitwise_count bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2
expm1 fabs floor frexp invert isfinite isinf isnan log log10 log1p log2 logical_not modf negative
positive rad2deg radians rint sign signbit sin sinh spacing sqrt square tan tanh trunc
"""
BINARY = """
add arctan2 atan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod equal float_power
floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp
logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal pow
power remainder subtract true_divide
"""
OTHER_UFUNCS = """
reciprocal: np.reciprocal(a) !float
bitwise_left_shift: np.bitwise_left_shift(k, 2); np.bitwise_left_shift(k, i[0])
bitwise_right_shift: np.bitwise_right_shift(k, 1)
left_shift: np.left_shift(k, 2)
right_shift: np.right_shift(k + 4, 1)
ldexp: np.ldexp(f, 2)
matmul: np.matmul(m, m); np.matmul(t, m); np.matmul(v, w)
matvec: np.matvec(m, m[0]); np.matvec(t, m[:2])
vecdot: np.vecdot(v, w); np.vecdot(a, b)
vecmat: np.vecmat(m[0], m); np.vecmat(m[:2], t.mT)
"""

METHODS = """
all: a.all(); a.all(0); a.all(1, keepdims=True)
any: a.any(); a.any(0); a.any(axis=1)
argmax: a.argmax(); a.argmax(0) !real
argmin: a.argmin(); a.argmin(0) !real
argpartition: v.argpartition(2).shape !real
argsort: a.argsort(kind="stable"); a.argsort(0, kind="stable"); a.argsort(axis=None, stable=True)
astype: a.astype("complex64"); a.astype(np.complex128, copy=False); a.astype("c16", "K", "unsafe")
choose: k.choose([v, w])
clip: a.clip(0, 1); a.clip(max=1); a.clip(min=0) !real
compress: a.compress([True, False, True], axis=1)
conj: a.conj()
conjugate: a.conjugate()
copy: a.copy(); a.copy("C")
cumprod: a.cumprod(); a.cumprod(0); a.cumprod(axis=1)
cumsum: a.cumsum(); a.cumsum(0); a.cumsum(axis=1)
diagonal: m.diagonal(); m.diagonal(1); t.diagonal(0, 1, 2)
dot: m.dot(m); v.dot(w); m.dot(m[0])
dtype: a.dtype
dumps: __import__("pickle").loads(a.dumps())
flat: list(a.flat); [x for x in v.flat]
flatten: a.flatten(); a.flatten("F")
imag: a.imag
item: v.item(2); a.item(1, 2); a[:1, :1].item()
itemsize: a.itemsize
max: a.max(); a.max(0); a.max(1, keepdims=True) !real
mean: a.mean(); a.mean(0); a.mean(1, keepdims=True)
min: a.min(); a.min(0); a.min(1, keepdims=True) !real
nbytes: a.nbytes
ndim: a.ndim
nonzero: a.nonzero()
prod: a.prod(); a.prod(0); a.prod(1, keepdims=True)
ravel: a.ravel(); a.ravel("F"); a.ravel(order="C")
real: a.real
repeat: v.repeat(2); a.repeat(2, 0)
reshape: a.reshape(3, 2); a.reshape(-1); a.reshape((3, 2)); a.reshape(3, -1, order="F");
    a.reshape(-1, 1)
round: a.round(); a.round(1); a.round(decimals=2)
searchsorted: f.searchsorted(v); f.searchsorted(2.0, "right") !real
shape: a.shape
size: a.size
squeeze: a[:, :1].squeeze(); a[:, :1].squeeze(1)
std: a.std(); a.std(0); a.std(1, ddof=1)
strides: a.strides
sum: a.sum(); a.sum(0); a.sum((0, 1)); a.sum(1, keepdims=True); a.sum(0, "complex128")
swapaxes: t.swapaxes(0, 2)
T: a.T; v.T; t.T
mT: t.mT
take: v.take([0, 2]); a.take([1, 0], 1)
tobytes: a.tobytes()
tolist: a.tolist()
trace: m.trace(); m.trace(1)
transpose: t.transpose(); t.transpose(1, 0, 2); t.transpose((2, 0, 1)); t.transpose(None)
var: a.var(); a.var(0); a.var(1, ddof=1)
view: a.view(); a.view("uint8").shape
byteswap: a.byteswap().tobytes()
"""

METHOD_WRITERS = """
fill: a.fill(1)
partition: v.partition(1) !sorted
put: a.put([0, 4], [1, 0])
sort: a.sort(); a.sort(0); v.sort(kind="stable")
"""

LINALG = """
cholesky: np.linalg.cholesky(spd); np.linalg.cholesky(spd, upper=True)
cond: np.linalg.cond(spd); np.linalg.cond(spd, 2)
cross: np.linalg.cross(spd, spd[::-1])
det: np.linalg.det(spd)
diagonal: np.linalg.diagonal(spd, offset=1)
eig: np.linalg.eig(spd)[0]; np.linalg.eig(rotation)[0]
eigh: np.linalg.eigh(spd)[0]; np.linalg.eigh(spd, "U").eigenvalues
eigvals: np.sort(np.linalg.eigvals(spd))
eigvalsh: np.linalg.eigvalsh(spd); np.linalg.eigvalsh(spd, UPLO="U")
inv: np.linalg.inv(spd)
lstsq: np.linalg.lstsq(spd[:, :2], spd[0], rcond=None)[0]
matmul: np.linalg.matmul(spd, spd)
matrix_norm: np.linalg.matrix_norm(spd); np.linalg.matrix_norm(spd, ord=2)
matrix_power: np.linalg.matrix_power(spd, 3); np.linalg.matrix_power(spd, -1)
matrix_rank: np.linalg.matrix_rank(spd); np.linalg.matrix_rank(spd[:, :2], tol=0.1)
matrix_transpose: np.linalg.matrix_transpose(spd)
multi_dot: np.linalg.multi_dot([spd, spd, spd[0]])
norm: np.linalg.norm(spd); np.linalg.norm(spd, 2); np.linalg.norm(spd, axis=0);
    np.linalg.norm(spd, 1, (0, 1), True)
outer: np.linalg.outer(spd[0], spd[1])
pinv: np.linalg.pinv(spd[:, :2]); np.linalg.pinv(spd, 1e-10)
qr: abs(np.linalg.qr(spd)[1]); abs(np.linalg.qr(spd, "r"));
    np.linalg.qr(spd, mode="complete").Q.shape
slogdet: np.linalg.slogdet(spd)
solve: np.linalg.solve(spd, spd[0]); np.linalg.solve(spd, spd)
svd: np.linalg.svd(spd)[1]; np.linalg.svd(spd, compute_uv=False);
    np.linalg.svd(spd[:, :2], False)[2].shape
svdvals: np.linalg.svdvals(spd)
tensordot: np.linalg.tensordot(spd, spd, axes=1)
tensorinv: np.linalg.tensorinv(spd.reshape(3, 3), ind=1)
tensorsolve: np.linalg.tensorsolve(spd, spd[0])
trace: np.linalg.trace(spd)
vecdot: np.linalg.vecdot(spd, spd)
vector_norm: np.linalg.vector_norm(spd); np.linalg.vector_norm(spd, axis=0, ord=1)
"""


def rows(table: str) -> list[tuple[str, str, str]]:
    """Each call of a table, as its name, its expression and its data."""
    found = []
    for line in table.strip().replace(";\n   ", ";").splitlines():
        name, _, rest = line.partition(": ")
        calls, _, data = rest.partition(" !")
        found += [(name, call.strip(), data.strip()) for call in calls.split("; ")]
    return found
